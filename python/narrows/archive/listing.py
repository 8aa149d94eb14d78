"""Reads the list of an archive's campaigns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import field

from narrows.documents.archive import Limits
from narrows.documents.data import Part
from narrows.scenario.declarations.declaration import Key, read_format
from narrows.scenario.declarations.reader import Reader, read_file
from narrows.scenario.overrides import Override
from narrows.scenario.problems import Wrong, mapping_of
from narrows.scenario.sections import Section
from narrows.scenario.yaml_tree import Mark, Node, to_flow
from narrows.text import shorten

#: The list of each release.
SHIPPED = Path(__file__).with_name("release.yaml")
FORMAT = read_format(Path(__file__).parent)


class ListedCampaign(Part, frozen=True, kw_only=True):
    """A scenario with changes, or a laboratory."""

    scenario: str | None
    lab: str | None
    #: Changes of the scenario, each with the place where it is written.
    changes: tuple[Override, ...] = field(name="set")
    #: The shorter runs of the laboratory.
    quick: bool


class ArchiveList(Part, frozen=True, kw_only=True):
    """The campaigns of an archive, by the names of their folders."""

    title: str
    limits: Limits
    campaigns: dict[str, ListedCampaign]


class _Keys(Section, frozen=True, kw_only=True):
    scenario: Node | None = None
    lab: Node | None = None
    changes: Node | None = field(name="set", default=None)
    quick: Node | None = None


class _Reader(Reader):
    def check_name(self, name: str, mark: Mark, key: Key) -> None:
        """Names become folders."""
        try:
            super().check_name(name, mark, key)
        except Wrong:
            text = f'"{shorten(name)}" cannot be the name of a folder; use at most 80 small letters, digits,'
            raise Wrong(mark, f"{text} hyphens and full stops, beginning with a letter or digit") from None

    def read_entry(self, name: str, node: Node, key: Key) -> Any:
        """A campaign with keys that fit each other."""
        mapping = self.mapping_of_entry(node, key)
        keys = _Keys.from_mapping(mapping)
        if (keys.scenario is None) == (keys.lab is None):
            raise Wrong(mapping.mark, "needs either scenario or lab")
        if keys.lab is not None and keys.changes is not None:
            mark = keys.key_mark(keys.changes)
            raise Wrong(mark, "changes a scenario; a laboratory states its own changes")
        if keys.scenario is not None and keys.quick is not None:
            raise Wrong(keys.key_mark(keys.quick), "shortens a laboratory; a scenario is shortened by set")
        return super().read_entry(name, node, key)

    def read_changes(self, node: Node, key: Key) -> list[Override]:
        """Changes of a scenario."""
        return [
            Override(f"{mark}: {mark.path}", name, to_flow(value))
            for name, mark, value in mapping_of(node, key.example)
        ]


def read_list(path: Path) -> ArchiveList:
    """The list in a file. Raises `DataError` with file, line and key of each error."""
    return read_file(path, FORMAT, "list", "list of an archive", ArchiveList, _Reader).content
