"""The program of a flow in a cell: the processes of both sides, their end and their limits, as the agent
starts them (drivers/cell/src/program.rs). Texts may contain placeholders that only the agent can fill in.
"""

from __future__ import annotations

from msgspec import field

from narrows.documents.data import Count, Part

LISTENER, CONNECTOR = "listener", "connector"


class ListedProgram(Part, frozen=True, kw_only=True, omit_defaults=False):
    """A program in the list of all."""

    name: str
    origin: str
    path: str
    what: str = ""
    source: str = ""
    licence: str = ""
    variants: list[str] = field(default_factory=list)
    data: str | None = None
    #: The folder or archive that is its root file system.
    root: str | None = None
    #: Why it can't run here, or can't be read.
    missing: str | None = None
    problem: str | None = None


class Root(Part, frozen=True, kw_only=True, omit_defaults=False):
    """A folder that is the root file system of a program."""

    folder: str
    #: `folder`, or `oci` for an unpacked archive.
    kind: str
    #: The digest of the manifest of an archive, or over names, modes and contents of a folder.
    digest: str
    #: Variables that an archive sets for its programs.
    env: dict[str, str] = field(default_factory=dict)


class Side(Part, frozen=True, kw_only=True):
    """A process of a program."""

    command: list[str]
    env: dict[str, str] = field(default_factory=dict)
    folder: str | None = None
    #: `null`, `open` or `endless`.
    stdin: str = "null"
    #: `{"tcp": None}` (the flow's port), `{"udp": 5000}`, `{"port": None}` or `{"line": "ready"}`.
    ready: dict[str, int | str | None] | None = None


class End(Part, frozen=True, kw_only=True):
    """How the processes end: the signal, and the time until they are killed."""

    when: str
    signal: Count
    grace_ns: Count


class Limits(Part, frozen=True, kw_only=True):
    """The limits of the processes and of their files."""

    ready_ns: Count
    file_bytes: Count
    output_bytes: Count
    memory_bytes: Count | None = None
    cpu_ns: Count | None = None
    time_ns: Count | None = None


class Plan(Part, frozen=True, kw_only=True):
    """A variant of a program."""

    name: str = ""
    variant: str = ""
    #: Why it can't run here; cells that run never have it.
    unavailable: str | None = None
    #: The SHA-256 of its manifest.
    manifest: str = ""
    #: The side that sends data.
    data: str = ""
    #: True if one listener serves all flows.
    shared: bool = False
    #: The files to which it logs frames, and segments of video.
    frames: str | None = None
    segments: str | None = None
    #: The metrics that it reports, as `narrows.scenario.programs.reports` reads them.
    reports: dict[str, dict[str, str | None]] = field(default_factory=dict)
    #: The command that prints its version.
    version: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    #: Its file system, if not that of the machine.
    root: Root | None = None
    listener: Side = Side(command=[])
    connector: Side = Side(command=[])
    end: End | None = None
    limits: Limits | None = None

    def side(self, name: str) -> Side:
        """The process at the `listener` or the `connector`."""
        return self.listener if name == LISTENER else self.connector

    @property
    def receiver(self) -> str:
        """The side that receives data."""
        return LISTENER if self.data == CONNECTOR else CONNECTOR
