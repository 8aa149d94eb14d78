"""The build of a program (`build:` of its manifest), and the location of builds."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from narrows.errors import DataError, reason
from narrows.files import data_folder, read_bytes
from narrows.scenario.declarations.reader import Section
from narrows.scenario.problems import Wrong
from narrows.scenario.yaml_tree import Mapping, Node, Scalar, Sequence
from narrows.text import any_of

CARGO, GO, PIP, NPM, DEBIAN = "cargo", "go", "pip", "npm", "debian"
#: The key of an additional command after those steps.
THEN = "then"
#: The file with the versions and hashes of all dependencies, in the folder of sources.
LOCKED = {
    CARGO: ("Cargo.toml", "Cargo.lock"),
    GO: ("go.mod", "go.sum"),
    PIP: ("requirements.txt",),
    NPM: ("package.json", "package-lock.json"),
}
#: Names another folder of builds than the one in the data folder.
FOLDER_VARIABLE = "NARROWS_PROGRAMS"
#: Written last, so that a folder without it is not a build.
ABOUT = "built.json"

#: A name that can't be mistaken for an option of a package manager.
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9.+-]*$")
#: Folders that tools create and that are not sources.
_NOT_SOURCES = ("target", "__pycache__", "node_modules")
_MOST_FILES = 2000
_MOST_BYTES = 50_000_000


@dataclass(frozen=True)
class Recipe:
    """The build instructions of a program."""

    kind: str
    #: The folder of sources; None for Debian packages alone.
    sources: Path | None
    #: Debian packages.
    packages: tuple[str, ...] = ()
    #: An additional command, with the placeholder `{built}`.
    then: tuple[str, ...] = ()


def read_recipe(written: Mapping, content: Section, base: Path) -> Recipe:
    """The recipe of a manifest in the folder `base`, whose keys were read; raises `Wrong`."""
    kinds = [name for name in LOCKED if name in written.entries]
    packages = tuple(content[DEBIAN])
    if len(kinds) > 1 or not (kinds or DEBIAN in written.entries):
        raise Wrong(written.mark, f"must have one of the keys {any_of((*LOCKED, DEBIAN))}")
    if not kinds:
        if THEN in written.entries:
            text = f"makes more of sources, so one of {any_of(tuple(LOCKED))} has to be beside it"
            raise Wrong(written.key_marks[THEN], text)
        return Recipe(DEBIAN, None, packages)
    (kind,) = kinds
    folder = base / (content[kind] or "")
    for name in LOCKED[kind]:
        if content[kind] is not None and not (folder / name).is_file():
            raise Wrong(written.entries[kind].mark, f"there is no {name} in the folder {folder}")
    return Recipe(kind, folder, packages, tuple(content[THEN]))


def read_sources(value: Node) -> str:
    """The folder of sources; raises `Wrong`."""
    if not isinstance(value, Scalar) or value.is_null or not value.text.strip():
        raise Wrong(value.mark, "must be a folder, relative to the manifest")
    return value.text


def read_packages(value: Node) -> list[str]:
    """Names of Debian packages; raises `Wrong`."""
    items = value.items if isinstance(value, Sequence) else [value]
    names = [item.text if isinstance(item, Scalar) else "" for item in items]
    if not names or not all(map(_PACKAGE.match, names)):
        raise Wrong(value.mark, "must be names of packages, such as [iperf3]")
    return names


def builds_folder() -> Path:
    """The folder of all builds (it need not exist)."""
    named = Path(os.environ.get(FOLDER_VARIABLE, ""))
    return named if named.is_absolute() else data_folder() / "programs"


def folder_of(name: str, recipe: Recipe) -> Path:
    """The folder of a program's build."""
    return builds_folder() / f"{name}-{identity(recipe)[:12]}"


def is_built(folder: Path) -> bool:
    """True if a folder contains a complete build."""
    return (folder / ABOUT).is_file()


def identity(recipe: Recipe) -> str:
    """SHA-256 of the recipe: names and contents of its sources. Raises `DataError` if they can't be read."""
    words = (recipe.kind, " ".join(recipe.packages), *recipe.then)
    whole = hashlib.sha256(f"{' '.join(words)}\n".encode())
    if recipe.sources is not None:
        try:
            for path in _files(recipe.sources):
                content = hashlib.sha256(read_bytes(path)).hexdigest()
                whole.update(f"{path.relative_to(recipe.sources)} {content}\n".encode())
        except OSError as error:
            raise DataError(f"{recipe.sources}: can't be read: {reason(error)}") from None
    return whole.hexdigest()


def _files(folder: Path) -> list[Path]:
    """The source files, in order."""
    files: list[Path] = []
    size = 0
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(text for text in folders if text not in _NOT_SOURCES and not text.startswith("."))
        paths = [Path(at) / name for name in sorted(names) if not name.startswith(".")]
        files += (path for path in paths if path.is_file())
        size += sum(path.stat().st_size for path in paths if path.is_file())
        if len(files) > _MOST_FILES or size > _MOST_BYTES:
            raise DataError(
                f"{folder}: has more than {_MOST_FILES} files or {_MOST_BYTES // 1_000_000} MB, so it is no"
                " folder of sources; name the one with the program alone"
            )
    return files
