"""The location of models, and the file for a name in a scenario."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narrows.errors import DataError, NarrowsError, reason
from narrows.files import data_folder, named_path, read_whole
from narrows.models.format import SUFFIX, Summary, summary
from narrows.text import did_you_mean, printable, shorten

#: Names another folder than the one in the user's data.
FOLDER_VARIABLE = "NARROWS_MODELS"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,59}")
#: A word with one of these suffixes names a file, not an installed model.
_ENDINGS = (SUFFIX, ".model", ".dna", ".index", ".pb", ".txt", ".json")


@dataclass(frozen=True)
class Installed:
    """A model in the user's folder."""

    name: str
    path: Path
    #: Empty if it can't be read.
    sha256: str
    size: int
    #: Its header; None if it is damaged, or can't be read.
    summary: Summary | None
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        known = self.summary
        return {
            "name": self.name,
            "kind": known.kind if known else None,
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


def list_models() -> list[Installed]:
    """The models in the user's folder, by name."""
    folder = user_folder()
    if not folder.is_dir():
        return []
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == SUFFIX and path.is_file())
    except OSError as error:
        raise NarrowsError(f"{folder}: can't be read: {reason(error)}") from None
    return [describe(path) for path in paths]


def describe(path: Path) -> Installed:
    """The facts about a model file."""
    name, digest, size = printable(path.stem), "", 0
    try:
        size = path.stat().st_size
        content = read_whole(path, "model")
        digest = hashlib.sha256(content).hexdigest()
        return Installed(name, path, digest, size, summary(content))
    except DataError as error:
        return Installed(name, path, digest, size, None, str(error))
    except OSError as error:
        return Installed(name, path, digest, size, None, f"can't be read: {(error.strerror or '').lower()}")


def names_of_kind(kind: str) -> tuple[str, ...]:
    """The names of the installed models of a kind."""
    fitting = (model.name for model in list_models() if model.summary and model.summary.kind == kind)
    return tuple(name for name in fitting if _NAME.fullmatch(name))


def find(text: str, base: Path) -> Path | None:
    """The file for the name `text` in a scenario of the folder `base`; None for a name that is not installed.

    A path is relative to `base`; raises `DataError` if it does not exist. A bare name is searched there, and
    among the installed models.
    """
    path = named_path(text, base)
    if path.is_file():
        return path
    plain = _NAME.fullmatch(text) and not text.endswith(_ENDINGS)
    if plain:
        own = user_folder() / (text + SUFFIX)
        return own if own.is_file() else None
    if path.is_dir() or path.with_name(path.name + ".index").is_file():
        # The files of a checkpoint by their common name, or their folder.
        return path
    raise DataError(f'there is no file "{shorten(text)}" (looked for at {path})')


def load(path: Path) -> tuple[str, bytes]:
    """Name and content of the model file at `path`, which may also be a published model of another format."""
    from narrows.models.convert import convert

    return path.stem + SUFFIX, convert(path)


def how_to_add(name: str) -> str:
    """Why a name that is not installed can't be used, and the remedy."""
    known = [model.name for model in list_models()]
    hint = did_you_mean(name, known)
    former = user_folder() / f"{name}.model"
    where = former if former.is_file() else "PATH (docs/guide/models.md says where models are published)"
    return f"the model {name} is not installed{hint}; add it with: narrows models add {name} {where}"


def target(name: str) -> Path:
    """The file for a model of that name; raises for names that a scenario could not use."""
    if not _NAME.fullmatch(name) or name.endswith(_ENDINGS):
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
    """Deletes an installed model."""
    path = target(name)
    try:
        path.unlink()
    except FileNotFoundError:
        known = [model.name for model in list_models()]
        hint = did_you_mean(name, known) or "; narrows models list shows those that are"
        raise DataError(f'no model "{name}" is installed{hint}') from None
    except OSError as error:
        raise NarrowsError(f"{path}: can't be removed: {reason(error)}") from None
    return path
