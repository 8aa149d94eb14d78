"""The location of models, and the file for a name in a scenario.

Models are in the user's folder, and a few trained by Narrows come with the package. A name means the user's
model if both have it.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from narrows.errors import DataError, NarrowsError, reason
from narrows.files import SHIPPED, USERS, data_folder, read_whole, resolve_path
from narrows.models.format import SUFFIX, Summary, read_kind, summary
from narrows.text import did_you_mean, printable, shorten

#: Names another folder than the one in the user's data.
FOLDER_VARIABLE = "NARROWS_MODELS"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,59}")
#: A word with one of these suffixes names a file, not an installed model.
_ENDINGS = (SUFFIX, ".model", ".dna", ".index", ".pb", ".txt", ".json")


@dataclass(frozen=True)
class Installed:
    """A model in the user's folder, or one that comes with Narrows."""

    name: str
    path: Path
    #: `yours` or `shipped`.
    origin: str
    #: Empty if it can't be read.
    sha256: str
    size: int
    #: Its header; None if it is damaged, or can't be read.
    summary: Summary | None
    problem: str = ""
    #: True if the other folder has a model of this name as well; the user's is used.
    is_double: bool = False

    @property
    def is_shipped(self) -> bool:
        """True if it comes with Narrows."""
        return self.origin == SHIPPED

    @property
    def is_hidden(self) -> bool:
        """True if the user's model of the same name is used in its place."""
        return self.is_shipped and self.is_double

    @property
    def card(self) -> Path | None:
        """The model card beside it, if there is one."""
        path = self.path.with_suffix(".md")
        return path if path.is_file() else None

    def to_json(self) -> dict[str, object]:
        """As plain data."""
        known = self.summary
        return {
            "name": self.name,
            "kind": known.kind if known else None,
            "origin": self.origin,
            "hides_shipped": self.is_double and not self.is_shipped,
            "hidden": self.is_hidden,
            "path": printable(self.path),
            "size_bytes": self.size,
            "sha256": self.sha256 or None,
            "arrays": [
                {"name": name, "type": code, "shape": list(shape)} for name, code, shape in known.arrays
            ]
            if known
            else [],
            "notes": known.notes if known else {},
            "problem": self.problem or None,
        }


def user_folder() -> Path:
    """The folder of the user's models (it need not exist)."""
    named = Path(os.environ.get(FOLDER_VARIABLE, ""))
    if named.is_absolute():
        return named
    return data_folder() / "models"


def find_shipped_folder() -> Path:
    """The folder of the models that come with Narrows, which is part of the package."""
    return Path(__file__).resolve().parent.parent / "_models"


def list_models() -> list[Installed]:
    """The models of both folders, by name; of two with one name the user's first."""
    users, shipped = (
        [describe(path, origin) for path in _files_in(folder)]
        for origin, folder in ((USERS, user_folder()), (SHIPPED, find_shipped_folder()))
    )
    names = {model.name for model in users} & {model.name for model in shipped}
    every = [replace(model, is_double=model.name in names) for model in (*users, *shipped)]
    return sorted(every, key=lambda model: model.name)


def _files_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == SUFFIX and path.is_file())
    except OSError as error:
        raise NarrowsError(f"{folder}: can't be read: {reason(error)}") from None


def describe(path: Path, origin: str | None = None) -> Installed:
    """The facts about a model file."""
    name, digest, size = printable(path.stem), "", 0
    origin = origin or (SHIPPED if path.parent == find_shipped_folder() else USERS)
    try:
        size = path.stat().st_size
        content = read_whole(path, "model")
        digest = hashlib.sha256(content).hexdigest()
        return Installed(name, path, origin, digest, size, summary(content))
    except DataError as error:
        return Installed(name, path, origin, digest, size, None, str(error))
    except OSError as error:
        why = f"can't be read: {(error.strerror or '').lower()}"
        return Installed(name, path, origin, digest, size, None, why)


def names_of_kind(kind: str) -> tuple[str, ...]:
    """The names of the models of a kind, yours and those that come with Narrows."""
    paths: dict[str, Path] = {}
    for folder in (user_folder(), find_shipped_folder()):
        for path in _files_in(folder):
            paths.setdefault(path.stem, path)
    names = sorted(name for name in paths if _NAME.fullmatch(name))
    return tuple(name for name in names if read_kind(paths[name]) == kind)


def is_name(text: str) -> bool:
    """True if a word can be the name of a model; other words are files."""
    return bool(_NAME.fullmatch(text)) and not text.endswith(_ENDINGS)


def find_installed(name: str) -> Path | None:
    """The file of a model: the user's, or else the shipped one; None if neither exists."""
    paths = (folder / (name + SUFFIX) for folder in (user_folder(), find_shipped_folder()))
    return next((path for path in paths if path.is_file()), None)


def find(text: str, base: Path) -> Path | None:
    """The file for the name `text` in a scenario of the folder `base`; None for a name that is not installed.

    A path is relative to `base`; raises `DataError` if it does not exist. A bare name is searched there, and
    among the installed models.
    """
    path = resolve_path(text, base)
    if path.is_file():
        return path
    if is_name(text):
        return find_installed(text)
    if _is_checkpoint(path):
        return path
    raise DataError(f'file "{shorten(text)}" does not exist (looked for at {path})')


def is_at_hand(text: str, base: Path) -> bool:
    """True if the name or the file `text` in a scenario of the folder `base` exists."""
    path = resolve_path(text, base)
    if path.is_file():
        return True
    return find_installed(text) is not None if is_name(text) else _is_checkpoint(path)


def _is_checkpoint(path: Path) -> bool:
    """True for the common name of the files of a checkpoint, or their folder."""
    return path.is_dir() or path.with_name(path.name + ".index").is_file()


def load(path: Path) -> tuple[str, bytes]:
    """Name and content of the model file at `path`, which may also be a published model of another format."""
    from narrows.models.convert import convert

    return path.stem + SUFFIX, convert(path)


def how_to_add(name: str) -> str:
    """Why a name that is not installed can't be used, and the remedy."""
    hint = did_you_mean(name, _names())
    former = user_folder() / f"{name}.model"
    where = former if former.is_file() else "PATH (docs/guide/models.md says where models are published)"
    return f"the model {name} is not installed{hint}; add it with: narrows models add {name} {where}"


def _names() -> list[str]:
    return list(dict.fromkeys(model.name for model in list_models()))


def target(name: str) -> Path:
    """The file for a model of that name; raises for names that a scenario could not use."""
    if not is_name(name):
        raise DataError(
            f'"{shorten(name)}" can\'t be the name of a model;'
            " use letters, digits and . _ + -, beginning with a letter or digit, without the ending of a file"
        )
    return user_folder() / (name + SUFFIX)


def save(path: Path, content: bytes) -> None:
    """Writes a model file atomically."""
    partial = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        raise NarrowsError(f"{path}: can't be written: {reason(error)}") from None


def remove(name: str) -> Path:
    """Deletes a model in the user's folder."""
    path = target(name)
    try:
        path.unlink()
    except FileNotFoundError:
        if find_installed(name) is not None:
            raise DataError(
                f"the model {name} comes with Narrows and can't be removed;"
                " a model that you add under that name is used in its place"
            ) from None
        hint = did_you_mean(name, _names()) or "; narrows models list shows those that are"
        raise DataError(f'no model "{name}" is installed{hint}') from None
    except OSError as error:
        raise NarrowsError(f"{path}: can't be removed: {reason(error)}") from None
    return path
