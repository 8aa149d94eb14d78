"""Crates of users that were built into the agent and the extension module, and the list of a set of them."""

from __future__ import annotations

from msgspec import field

from narrows.documents.data import Part

#: The format of `set.json`, and of `narrows extend list --json`.
FORMAT = "narrows/extensions/1"


class Extension(Part, frozen=True, kw_only=True, omit_defaults=False):
    """A crate, as records name it."""

    name: str
    version: str
    #: The hash of the lines that `sha256sum` prints for its files, in the order of their names.
    sha256: str

    @property
    def label(self) -> str:
        """Name, version and hash for people."""
        return f"{self.name} {self.version} ({self.sha256[:12]})"


class ExtensionCrate(Extension, frozen=True, kw_only=True):
    """A crate of a set, with the entries that it adds, by their kind."""

    adds: dict[str, list[str]] = field(default_factory=dict)
    #: Where it was added from.
    origin: str = ""


class ExtensionSet(Part, frozen=True, kw_only=True, omit_defaults=False):
    """The crates of a set, and the version of Narrows that they were built with."""

    format: str = FORMAT
    narrows: str
    crates: list[ExtensionCrate] = field(default_factory=list)


class ExtensionList(ExtensionSet, frozen=True, kw_only=True):
    """The set in use, as `narrows extend list` prints it."""

    #: The set's folder.
    folder: str
    #: Why the set can't be used; null if it can.
    problem: str | None = None


def labels(extensions: list[Extension]) -> str:
    """All of them in one line."""
    return ", ".join(extension.label for extension in extensions)
