"""The extension set in use: an agent and an extension module with entries of the user's crates.

A set is a folder, the user's (`extensions` in the folder of user data) or that of a project
(`.narrows/extensions`), whose link `current` leads to the built files. `narrows extend` makes it; `import
narrows` looks for it, which costs one look at the file system if there is none. A project's set contains
programs, so it is used only if it was made on this machine by this user: its folder is listed in the file
`projects` beside the user's set.
"""

from __future__ import annotations

import os

#: `off`, or the folder of a set to use in place of those that are looked for.
VARIABLE = "NARROWS_EXTENSIONS"
OFF = "off"
#: Names in the folder of a set.
CURRENT, PROJECTS = "current", "projects"
#: Folder of a project's set.
IN_PROJECT = os.path.join(".narrows", "extensions")
#: The extension module, in the package and in built files.
MODULE = "_native.abi3.so"
#: Beside the built files: the identity of the package's module that they were built beside.
BESIDE = "beside"

#: The built files in use, or "".
folder = ""
#: The set that exists and can't be used, with the reason, or "".
problem = ""


def user_base() -> str:
    """The folder of the user's set (it need not exist)."""
    # As narrows.files.data_folder, whose imports would be too slow here.
    named = os.getenv("XDG_DATA_HOME", "")
    data = named if os.path.isabs(named) else os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(data, "narrows", "extensions")


def find_base() -> str:
    """The folder of the set to use: the one that $NARROWS_EXTENSIONS names, that of the project around the
    working folder, the user's; "" if there is none.
    """
    named = os.getenv(VARIABLE, "")
    if named:
        return "" if named == OFF else os.path.abspath(named)
    user = user_base()
    if not os.path.isdir(user):
        return ""
    return find_project(user) or (user if os.path.islink(os.path.join(user, CURRENT)) else "")


def list_projects(user: str) -> list[str]:
    """The folders of projects whose sets the user made on this machine."""
    try:
        with open(os.path.join(user, PROJECTS), encoding="utf-8") as lines:
            return [line.rstrip("\n") for line in lines if line.strip()]
    except OSError:
        return []


def find_project(user: str) -> str:
    """The folder of the innermost project's set around the working folder, or ""."""
    projects = list_projects(user)
    if not projects:
        return ""
    try:
        here = os.path.join(os.getcwd(), "")
    except OSError:
        return ""
    around = [project for project in projects if here.startswith(os.path.join(project, ""))]
    bases = (os.path.join(project, IN_PROJECT) for project in sorted(around, key=len, reverse=True))
    return next((base for base in bases if os.path.islink(os.path.join(base, CURRENT))), "")


def identify_package(package: str) -> str:
    """A text that differs between two builds of the package's module."""
    status = os.stat(os.path.join(package, MODULE))
    return f"{status.st_size} {status.st_mtime_ns}"


def activate(path: list[str]) -> None:
    """Puts the built files of the set before the package's folder on the package's `path`, if there is a
    set for this build of the package.
    """
    global folder, problem
    base = find_base()
    if not base:
        return
    built = os.path.realpath(os.path.join(base, CURRENT))
    try:
        with open(os.path.join(built, BESIDE), encoding="utf-8") as file:
            same = file.read().strip() == identify_package(path[0])
    except OSError:
        problem = (
            f"the extensions in {base} are not complete; build them with: narrows extend build, or do without"
            f" them: {VARIABLE}={OFF}"
        )
        return
    if not same:
        problem = (
            f"the extensions in {base} were built for another build of Narrows; build them again with:"
            f" narrows extend build, or do without them: {VARIABLE}={OFF}"
        )
        return
    folder = built
    path.insert(0, built)
