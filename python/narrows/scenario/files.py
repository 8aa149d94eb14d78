"""Files that a scenario names, such as traces: found, read once, and identified by their content."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from narrows.documents.resolved import NamedFile
from narrows.errors import DataError, Problem
from narrows.files import read_decompressed, read_whole, resolve_path
from narrows.names import PANTHEON
from narrows.scenario.yaml_tree import Mapping as Tree
from narrows.scenario.yaml_tree import Node, Scalar

_STRANGE = re.compile(r"[^A-Za-z0-9._+-]+")


_SHA256 = "sha256"
#: A file that names others, which is not kept.
_NAMES_OTHERS: Mapping[str, None] = {}


@dataclass(frozen=True)
class Place:
    """A path that a scenario writes, relative to its folder."""

    path: Path
    #: The name that a copy needs, and its content; none for manifests of programs, which name other files.
    name: str = ""
    sha256: str | None = None
    #: Text before the path.
    prefix: str = ""


@dataclass
class Files:
    """The files of one scenario. The identity of a file is the SHA-256 of its content."""

    #: The folder of the scenario, to which names are relative.
    base: Path = field(default_factory=Path)
    contents: dict[str, bytes] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    #: Where paths are written: by source, line, column and text.
    places: dict[tuple[object, ...], Place] = field(default_factory=dict)
    #: Choices of models that the scenario left to what is installed, each with its reason.
    choices: list[Problem] = field(default_factory=list)

    def merge(self, other: Files) -> None:
        """Adds the files and the choices of another version of the scenario."""
        self.contents.update(other.contents)
        self.names.update(other.names)
        self.places.update(other.places)
        self.choices = list(dict.fromkeys([*self.choices, *other.choices]))

    @property
    def stored(self) -> dict[str, bytes]:
        """Their contents, by the names that they have in folders of files."""
        return {
            name_in_store(self.names[sha256], sha256): content for sha256, content in self.contents.items()
        }

    def read(self, value: Scalar) -> dict[str, str]:
        """The named trace, in the form of cells; raises `DataError` if it can't be read."""
        from narrows.traces.store import find

        path = find(value.text, self.base_of(value))
        kept = self._keep(path, "trace", read_decompressed)
        self._note(value, path, path.name, kept)
        return kept

    def read_model(self, value: Scalar) -> dict[str, str | None]:
        """The named model of a scheme. One that is not installed has no hash and can't run."""
        from narrows.models.format import SUFFIX
        from narrows.models.store import find

        path = find(value.text, self.base_of(value))
        kept = self._read_model(value.text, path)
        if path is not None:
            self._note(value, path, f"{path.stem}{SUFFIX}", kept)
        return kept

    def read_default_model(self, name: str) -> dict[str, str | None]:
        """The model that a scheme has by default, which files of the same name do not replace."""
        from narrows.models.store import find_installed

        return self._read_model(name, find_installed(name))

    def _read_model(self, text: str, path: Path | None) -> dict[str, str | None]:
        from narrows.documents.components import NARROWS, TRAINED_BY
        from narrows.models.format import summary
        from narrows.models.store import load

        if path is None:
            return {"name": text, "sha256": None}
        name, content = load(path)
        origin = {TRAINED_BY: NARROWS} if summary(content).is_ours else {}
        return {**self._remember(name, content), **origin}

    def read_object(self, value: Scalar) -> NamedFile:
        """The named object file of a BPF program."""
        path = resolve_path(value.text, self.base_of(value))
        kept = self._keep(path, "object file")
        self._note(value, path, path.name, kept)
        return NamedFile(**kept)

    def note_program(self, scheme: Node, path: Path) -> None:
        """Remembers where a scheme writes the path of its manifest or wrapper."""
        for value in scheme.entries.values() if isinstance(scheme, Tree) else (scheme,):
            if isinstance(value, Scalar):
                prefix = PANTHEON if value.text.startswith(PANTHEON) else ""
                self._note(value, path, prefix=prefix)

    def _note(
        self,
        value: Scalar,
        path: Path,
        name: str = "",
        kept: Mapping[str, str | None] = _NAMES_OTHERS,
        prefix: str = "",
    ) -> None:
        """Remembers a path, unless it is the name of an installed file."""
        text, whole = value.text.removeprefix(prefix), path.absolute()
        # Parameters of a program may be any text.
        with contextlib.suppress(DataError):
            if resolve_path(text, self.base_of(value)).absolute() == whole:
                self.places[place_of(value)] = Place(whole, name, kept.get(_SHA256), prefix)

    def base_of(self, value: Node) -> Path:
        """The folder to which a written path is relative."""
        # Paths on the command line are relative to the working directory.
        return self.base if value.mark.line is not None else Path()

    def _keep(self, path: Path, what: str, read: Callable[[Path, str], bytes] = read_whole) -> dict[str, str]:
        try:
            content = read(path, what)
        except DataError as error:
            raise DataError(f"{path} {error}") from None
        return self._remember(path.name, content)

    def _remember(self, name: str, content: bytes) -> dict[str, str]:
        sha256 = hashlib.sha256(content).hexdigest()
        self.contents[sha256] = content
        # Equal content under another name is the same file.
        return {"name": self.names.setdefault(sha256, _STRANGE.sub("-", name)), "sha256": sha256}


def place_of(value: Scalar) -> tuple[object, ...]:
    """The key of a written value among `Files.places`."""
    return value.mark.source, value.mark.line, value.mark.column, value.text


def name_in_store(name: str, sha256: str) -> str:
    """The name of a file in a campaign's folder of files."""
    return f"{sha256[:16]}-{name}"
