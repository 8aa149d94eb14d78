"""A program of others, as its manifest says."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from msgspec import field as key

from narrows.documents.data import Part
from narrows.scenario.programs.keys import End, Limits
from narrows.scenario.programs.recipe import Recipe
from narrows.scenario.programs.reports import Report
from narrows.scenario.programs.root import Root


@dataclass(frozen=True)
class SideOf:
    """One process of a program in its manifest; texts contain placeholders."""

    command: tuple[str, ...]
    env: dict[str, str]
    folder: str | None
    stdin: str
    #: `{"tcp": None}` (the flow's port), `{"udp": 5000}`, `{"port": None}` or `{"line": "ready"}`.
    ready: dict[str, int | str | None] | None


class Variant(Part, frozen=True):
    """A variant of a program."""

    name: str
    what: str
    values: dict[str, str] = key(name="set")
    listener: tuple[str, ...] = ()
    connector: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """A parameter of a program."""

    name: str
    default: str
    what: str


@dataclass(frozen=True)
class Program:
    """A program, as its manifest says. Times are in ns, amounts in bytes."""

    name: str
    path: Path
    sha256: str
    what: str
    source: str
    licence: str
    version: tuple[str, ...]
    data: str
    listener: SideOf
    connector: SideOf
    variants: dict[str, Variant]
    parameters: dict[str, Parameter]
    files: tuple[str, ...]
    build: Recipe | None
    #: The file system in which it runs; None for that of the machine.
    root: Root | None
    end: End
    limits: Limits
    #: Metrics that it reports itself.
    reports: tuple[Report, ...] = ()
    #: File in both sides' folders to which they log frames of video.
    frames: str | None = None
    #: File in the receiving side's folder to which a player logs segments of video.
    segments: str | None = None
    #: True if one listener serves all flows.
    shared: bool = False
    #: Names of the schemes.
    schemes: tuple[str, ...] = field(default=())
    #: Why it can't run here, if that is already known.
    unavailable: str = ""
