"""The user's set of extensions, and that of a project: adding, removing, rebuilding.

```text
extensions/            in the folder of user data, or .narrows/extensions of a project
  current              a link to the built files in use: changing it is the one step that changes a set
  built-0123456789ab/  set.json, the crates' files, narrows-agent, narrows-bpf, the extension module
  work/                the copy of the workspace and what was compiled; of the user's set, for projects too
  projects             of the user's set: folders whose sets the user made
```
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from narrows import __version__, extended
from narrows.documents.data import DamagedError, from_data, to_data
from narrows.documents.extensions import ExtensionSet
from narrows.errors import DataError, NarrowsError, UnavailableError, reason
from narrows.extend import crates as reading
from narrows.extend.building import Workshop, check_tools
from narrows.extend.crates import Crate
from narrows.files import read_bytes
from narrows.locks import FolderLock
from narrows.text import did_you_mean, printable

FILE = "set.json"
_PACKAGE = Path(extended.__file__).resolve().parent
_WORK, _CRATES, _BUILT = "work", "crates", "built-"
_DIGITS = 12


@dataclass(frozen=True)
class SetFolder:
    """The folder of a set, which need not exist."""

    base: Path
    #: The folder of the project; None for the user's set.
    project: Path | None = None

    @property
    def current(self) -> Path | None:
        """The built files in use, if there are any."""
        link = self.base / extended.CURRENT
        return link.resolve() if link.is_symlink() and link.exists() else None

    def read(self) -> ExtensionSet:
        """The crates of the set; none if it does not exist. Raises `DataError` if its list is damaged."""
        if self.current is None:
            return ExtensionSet(narrows=__version__)
        file = self.current / FILE
        try:
            return from_data(msgspec.json.decode(read_bytes(file)), ExtensionSet)
        except (OSError, msgspec.DecodeError, DamagedError) as error:
            why = reason(error) if isinstance(error, OSError) else str(error)
            raise DataError(
                f"{file}: can't be read: {why}; remove {self.base} and add the extensions again"
            ) from None

    def crates(self) -> list[Crate]:
        """The crates as they were added."""
        built = self.current
        if built is None:
            return []
        kept = [(item, built / _CRATES / item.name) for item in self.read().crates]
        return [reading.restore(item, folder) for item, folder in kept]

    @property
    def problem(self) -> str | None:
        """Why the set can't be used with this build of Narrows."""
        if self.current is None:
            return None
        try:
            beside = read_bytes(self.current / extended.BESIDE).decode().strip()
        except OSError as error:
            return f"it is not complete: {reason(error)}"
        same = beside == extended.identify_package(str(_PACKAGE))
        return (
            None
            if same
            else "it was built for another build of Narrows; build it again with: narrows extend build"
        )


def user_set() -> SetFolder:
    """The user's set."""
    return SetFolder(Path(extended.user_base()))


def project_set(folder: Path) -> SetFolder:
    """The set of the project in a folder."""
    project = folder.resolve()
    return SetFolder(project / extended.IN_PROJECT, project)


def set_in_use() -> SetFolder:
    """The set that applies in the working folder: of the project around it, or the user's."""
    base = extended.find_base() or extended.user_base()
    inside = Path(base)
    of_project = inside.parts[-2:] == Path(extended.IN_PROJECT).parts
    return SetFolder(inside, inside.parent.parent if of_project else None)


def add(place: SetFolder, crate: Crate) -> bool:
    """Adds a crate to a set, or replaces the one of its name (then the result is true). An error or an
    interruption leaves the set as it was.
    """
    with _changing(place):
        before = place.crates()
        others = [other for other in before if other.name != crate.name]
        check_names(crate, others)
        _build(place, [*others, crate], [crate])
        return len(others) < len(before)


def remove(place: SetFolder, name: str) -> None:
    """Removes a crate from a set; with the last one, everything that was built."""
    names = [item.name for item in place.read().crates]
    if name not in names:
        raise DataError(
            f'extension "{printable(name)}" does not exist in {place.base}{did_you_mean(name, names)}'
        )
    if names == [name]:
        _delete(place)
        return
    with _changing(place):
        _build(place, [crate for crate in place.crates() if crate.name != name], [])


def rebuild(place: SetFolder) -> list[str]:
    """Builds a set again, for this build of Narrows, and returns the names of its crates."""
    with _changing(place):
        crates = place.crates()
        if not crates:
            raise DataError(f"{place.base} has no extensions; add one with: narrows extend add FOLDER")
        _build(place, crates, crates)
        return [crate.name for crate in crates]


def check(crate: Crate) -> None:
    """Runs the conformance kit and the tests of a crate, without adding it."""
    check_tools()
    check_names(crate, [])
    with _workshop() as workshop:
        workshop.write([crate])
        workshop.test([crate], [crate])


def check_names(crate: Crate, others: Sequence[Crate]) -> None:
    """Raises `DataError` if another crate of the set has an entry of the same kind and name."""
    taken = {entry: other.name for other in others for entry in other.entries()}
    for kind, name in crate.entries():
        if (kind, name) in taken:
            raise DataError(
                f"{crate.name}: the extension {taken[kind, name]} has a {kind} {name} already;"
                f" choose another name"
            )


@contextlib.contextmanager
def _changing(place: SetFolder) -> Iterator[None]:
    """The right to change a set, for one process at a time."""
    check_tools()
    made = [folder for folder in (place.base, *place.base.parents) if not folder.exists()]
    try:
        place.base.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NarrowsError(f"{place.base}: can't be made: {reason(error)}") from None
    lock = FolderLock(place.base, "set of extensions")
    try:
        yield
    finally:
        lock.close()
        if place.current is None:
            # Nothing was added: the folders go, innermost first, unless something is in them.
            for folder in made:
                with contextlib.suppress(OSError):
                    folder.rmdir()


@contextlib.contextmanager
def _workshop() -> Iterator[Workshop]:
    """The user's workshop, which projects share; for one process at a time."""
    folder = Path(extended.user_base()) / _WORK
    folder.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(folder, "set of extensions")
    try:
        yield Workshop(folder, _git())
    finally:
        lock.close()


def _git() -> str | None:
    """The source of the agent in the package."""
    from narrows.agent.location import USER, Location
    from narrows.documents.agent import Version

    agent = _PACKAGE / "_bin" / "narrows-agent"
    git = Location("this machine", [str(agent)], USER).ask(Version, "version").git
    return git or None


def _build(place: SetFolder, crates: Sequence[Crate], tried: Sequence[Crate]) -> None:
    """Builds crates and puts them into use; those that were not tried before pass their tests first."""
    with _workshop() as workshop:
        workshop.write(crates)
        if tried:
            workshop.test(tried, crates)
        built = workshop.build(crates)
        listed = ExtensionSet(narrows=__version__, crates=[crate.described for crate in crates])
        content = msgspec.json.format(msgspec.json.encode(to_data(listed)), indent=1) + b"\n"
        name = _BUILT + hashlib.sha256(content + os.urandom(16)).hexdigest()[:_DIGITS]
        folder = place.base / name
        try:
            _fill(folder, crates, content, built.agent, built.module)
            if place.project is not None:
                _note_project(place.project)
            _switch(place, name)
        except OSError as error:
            raise NarrowsError(f"{place.base}: can't be written: {reason(error)}") from None
        finally:
            if place.current != folder.resolve():
                shutil.rmtree(folder, ignore_errors=True)


def _fill(folder: Path, crates: Sequence[Crate], content: bytes, agent: Path, module: Path) -> None:
    folder.mkdir()
    for crate in crates:
        for path, text in crate.files.items():
            target = folder / _CRATES / crate.name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text)
    (folder / FILE).write_bytes(content)
    shutil.copy2(agent, folder / "narrows-agent")
    shutil.copy2(module, folder / extended.MODULE)
    loader = _PACKAGE / "_bin" / "narrows-bpf"
    if loader.is_file():
        shutil.copy2(loader, folder / loader.name)
    (folder / extended.BESIDE).write_text(extended.identify_package(str(_PACKAGE)), encoding="utf-8")


def _switch(place: SetFolder, name: str) -> None:
    """Puts built files into use, and removes those that were."""
    link = place.base / f".{extended.CURRENT}.new"
    link.unlink(missing_ok=True)
    link.symlink_to(name)
    link.replace(place.base / extended.CURRENT)
    for other in place.base.glob(f"{_BUILT}*"):
        if other.name != name:
            shutil.rmtree(other, ignore_errors=True)


def _note_project(project: Path) -> None:
    _change_projects(lambda known: [*(other for other in known if other != str(project)), str(project)])


def _change_projects(change: Callable[[list[str]], list[str]]) -> None:
    user = extended.user_base()
    file = Path(user) / extended.PROJECTS
    projects = change(extended.list_projects(user))
    if not projects:
        file.unlink(missing_ok=True)
        return
    new = file.with_name(f".{file.name}.new")
    new.write_text("".join(f"{project}\n" for project in projects), encoding="utf-8")
    new.replace(file)


def _delete(place: SetFolder) -> None:
    """Removes a set, and what was compiled if no other set is left."""
    lock = FolderLock(place.base, "set of extensions")
    user = user_set()
    try:
        (place.base / extended.CURRENT).unlink(missing_ok=True)
        for folder in place.base.glob(f"{_BUILT}*"):
            shutil.rmtree(folder)
        if place.project is not None:
            _change_projects(lambda known: [other for other in known if other != str(place.project)])
            for folder in (place.base, place.base.parent):
                with contextlib.suppress(OSError):
                    folder.rmdir()
        if user.current is None and not extended.list_projects(str(user.base)):
            shutil.rmtree(user.base)
            with contextlib.suppress(OSError):
                user.base.parent.rmdir()
    except OSError as error:
        raise UnavailableError(f"{error.filename or place.base}: can't be removed: {reason(error)}") from None
    finally:
        lock.close()
