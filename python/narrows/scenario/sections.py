"""Mappings of known keys, each with its value as written."""

from __future__ import annotations

from functools import lru_cache
from typing import Self

import msgspec

from narrows.scenario.yaml_tree import Mapping, Mark, Node


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A mapping; its keys are the members of the derived class, None for those that are absent."""

    written: Mapping

    @classmethod
    def list_keys(cls) -> tuple[str, ...]:
        """The known keys."""
        return tuple(_names(cls))

    @classmethod
    def from_mapping(cls, mapping: Mapping) -> Self:
        """The known keys of a mapping."""
        entries = mapping.entries
        members = {name: entries[key] for key, name in _names(cls).items() if key in entries}
        return cls(written=mapping, **members)

    @property
    def mark(self) -> Mark:
        """The position of the mapping."""
        return self.written.mark

    def key_mark(self, value: Node) -> Mark:
        """The position of the key of a value."""
        return next(mark for _, mark, node in self.written if node is value)


@lru_cache
def _names(section: type[Section]) -> dict[str, str]:
    """The members of a section by their keys."""
    names = zip(section.__struct_encode_fields__, section.__struct_fields__, strict=True)
    return {key: name for key, name in names if name != "written"}


class SchemeKeys(Section, frozen=True, kw_only=True):
    """The keys of a scheme besides its parameters."""

    scheme: Node | None = None


class ScenarioKeys(Section, frozen=True, kw_only=True):
    """The keys of a scenario; `narrows.scenario.keys` describes them."""

    schema: Node | None = None
    name: Node | None = None
    title: Node | None = None
    question: Node | None = None
    where: Node | None = None
    topology: Node | None = None
    path: Node | None = None
    network: Node | None = None
    hosts: Node | None = None
    real_path: Node | None = None
    schemes: Node | None = None
    pairs: Node | None = None
    flows: Node | None = None
    background: Node | None = None
    timeline: Node | None = None
    matrix: Node | None = None
    sweep: Node | None = None
    draw: Node | None = None
    expect: Node | None = None
    duration: Node | None = None
    runs: Node | None = None
    seed: Node | None = None
    record: Node | None = None
    transfers: Node | None = None
    measure: Node | None = None
    bin: Node | None = None
    sample: Node | None = None
    transport: Node | None = None
    report: Node | None = None
