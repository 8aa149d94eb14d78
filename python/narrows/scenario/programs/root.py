"""The key `root` of manifests: a folder or an archive that is the file system of the program."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from narrows.documents import programs as document
from narrows.errors import DataError
from narrows.files import resolve_path
from narrows.roots.archive import unpack
from narrows.roots.binary import SEARCH, why_not
from narrows.roots.digest import digest_of
from narrows.scenario.problems import Wrong
from narrows.scenario.yaml_tree import Mark, Node, Scalar

FOLDER, OCI = "folder", "oci"
#: The search path of programs.
PATH = "PATH"


@dataclass(frozen=True)
class Root:
    """A folder that is the root of a program, or an archive with such a folder."""

    path: Path
    kind: str


def read_root(value: Node, base: Path) -> tuple[Root, document.Root]:
    """The root that a manifest in the folder `base` names, and its form in cells; raises `Wrong`."""
    if not isinstance(value, Scalar) or value.is_null or not value.text.strip():
        raise Wrong(value.mark, "must be a folder or an OCI archive, relative to the manifest")
    try:
        path = resolve_path(value.text, base)
        if not path.exists():
            raise DataError(f"the folder or archive {path} does not exist")
        root = Root(path.resolve(), FOLDER if path.is_dir() else OCI)
        return root, prepare(root)
    except DataError as error:
        raise Wrong(value.mark, str(error)) from None


def prepare(root: Root) -> document.Root:
    """A root in the form of cells: its folder and its digest. Unpacks an archive if that has not been done.
    Raises `DataError`.
    """
    try:
        if root.kind == FOLDER:
            return document.Root(folder=str(root.path), kind=FOLDER, digest=digest_of(root.path))
        image = unpack(root.path)
    except DataError as error:
        raise DataError(f"{root.path} {error}") from None
    return document.Root(folder=str(image.folder), kind=OCI, digest=image.digest, env=image.env)


def check_words(words: tuple[str, ...], root: document.Root, env: dict[str, str], mark: Mark) -> None:
    """Raises `Wrong` unless a command names a program that can run in its root."""
    name = words[0] if words else ""
    if not name or "{" in name:
        return
    if "/" in name and not name.startswith("/"):
        text = f'"{name}" is not a path in the root; name a program there by a path that starts with /,'
        text += " or by its name on PATH"
        raise Wrong(mark, text)
    if reason := why_not_in(root, name, env):
        raise Wrong(mark, reason)


def why_not_in(root: document.Root, name: str, env: dict[str, str]) -> str | None:
    """Why a program can't run in a root; None if no obstacle is known."""
    folder = Path(root.folder)
    if not folder.is_dir():
        return f"its root {folder} does not exist"
    search = env.get(PATH, root.env.get(PATH, SEARCH))
    return None if "{" in search else why_not(folder, name, search)
