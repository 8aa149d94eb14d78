"""run.json: what ran, how it ended and how the run is judged (`narrows/run/1`), as the agent writes it
(core/record/src/run.rs). Members that older records lack have defaults."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import UNSET, UnsetType, field, structs

from narrows.documents.agent import OscillatorOffset
from narrows.documents.campaign import INVALID, CellError, Reason
from narrows.documents.data import Count, Integer, Number, Part, Value
from narrows.documents.extensions import Extension, labels
from narrows.documents.results import Measured, MeasuredFlow

FORMAT = "narrows/run/1"
#: The format of the answer of `narrows check`.
CHECK_FORMAT = "narrows/check/1"
#: Outcomes of checks: a check that could not be decided is skipped, and never counts as passed.
HOLDS, SKIPPED, FAILS = "ok", "skipped", "FAIL"


class Check(Part, frozen=True, kw_only=True, omit_defaults=False):
    """A check of a record, or of a campaign."""

    name: str
    ok: bool
    #: True if it could not be decided, so that `ok` does not imply that it holds.
    skipped: bool = False
    #: The finding, or the reason for skipping it.
    detail: str

    @property
    def title(self) -> str:
        """Its name for people."""
        return self.name.replace("_", " ")

    @property
    def outcome(self) -> str:
        """The outcome in one word."""
        return FAILS if not self.ok else SKIPPED if self.skipped else HOLDS


class CheckedCell(Part, frozen=True, kw_only=True, omit_defaults=False):
    """The findings about a record."""

    cell: str = ""
    ok: bool
    checks: list[Check]
    verdict: str | None = None
    reasons: list[Reason] = field(default_factory=list)


class CheckedCampaign(Part, frozen=True, kw_only=True):
    """The findings about a campaign as a whole."""

    campaign: str
    checks: list[Check]
    #: Sentences about the models and extensions that ran.
    notes: list[str] = field(default_factory=list)


class CheckReport(Part, frozen=True, kw_only=True):
    """The findings about records and campaigns."""

    format: str
    ok: bool
    cells: list[CheckedCell]
    campaigns: list[CheckedCampaign]


class Versions(Part, frozen=True, kw_only=True):
    """The program that wrote the record."""

    narrows: str | None = None
    git: str | None = None
    #: Crates of users that were built in.
    extensions: list[Extension] = field(default_factory=list)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The known versions by their names."""
        pairs = (("narrows", self.narrows), ("git", self.git), ("extensions", labels(self.extensions)))
        return [(name, version) for name, version in pairs if version]


class HostFacts(Part, frozen=True, kw_only=True):
    """The machine of a run."""

    #: Settings have tabs.
    UNCHECKED: ClassVar[frozenset[str]] = frozenset({"sysctls"})

    kernel: str | None = None
    #: Its architecture.
    machine: str | None = None
    cpu_model: str | None = None
    clocksource: str | None = None
    cpus: Count | None = None
    memory_bytes: Count | None = None
    congestion_controls: list[str] = field(default_factory=list)
    sysctls: dict[str, Value] = field(default_factory=dict)


class ArrivedDatagrams(Part, frozen=True, kw_only=True):
    """Datagrams at an end of the tunnel, with those refused, by reason."""

    refused: dict[str, Count] = field(default_factory=dict)


class TunnelEnd(Part, frozen=True, kw_only=True):
    """An end of the tunnel."""

    arrived: ArrivedDatagrams = ArrivedDatagrams()


class TunnelDirection(Part, frozen=True, kw_only=True):
    """A direction of the tunnel: packets that the path marked."""

    marked: Count = 0


class Tunnel(Part, frozen=True, kw_only=True):
    """The tunnel between two hosts."""

    overhead_bytes: Count = 0
    forward: TunnelDirection = TunnelDirection()
    backward: TunnelDirection = TunnelDirection()

    @property
    def marked(self) -> int:
        """Packets that the path marked."""
        return self.forward.marked + self.backward.marked


class Ring(Part, frozen=True, kw_only=True):
    """A ring of frames, with the frames that it lost."""

    dropped: Count = 0


class Process(Part, frozen=True, kw_only=True):
    """A process of the run."""

    name: str
    #: False if it ended by itself.
    expected: bool = True


class Clock(Part, frozen=True, kw_only=True):
    """Agreement of the clocks at both ends."""

    #: The receiver's clock minus the sender's, and the bound of its error.
    offset_ns: Integer = 0
    error_ns: Count = 0
    drift_ppb: Number | None = None
    #: By direction, whether one-way delays vary by more than the error.
    resolved: dict[str, bool] | None = None
    #: The offset according to the programs that discipline both clocks.
    by_ntp: OscillatorOffset | None = None


class ReportPlan(Part, frozen=True, kw_only=True):
    """How to read a metric from the output of a program, from its manifest."""

    unit: str
    better: str | None
    what: str | None
    side: str
    #: `output`, `errors`, or the name of a file.
    place: str = field(name="in")
    json: str | None = None
    ndjson: str | None = None
    regex: str | None = None
    combine: str
    #: How values of several flows are combined; null if they are not.
    flows: str | None = None


class ProgramProcess(Part, frozen=True, kw_only=True):
    """A process of a program under test; times since the start of the run."""

    command: list[str] = field(default_factory=list)
    version: str | None = None
    started_ns: Integer | None = None
    ready_ns: Integer | None = None
    ended_ns: Integer | None = None
    exit: Integer | None = None
    signal: Integer | None = None
    killed: bool = False
    stopped: bool = False
    #: Bytes printed and kept, of standard output and standard error.
    printed: tuple[Count, Count] = (0, 0)
    kept: tuple[Count, Count] = (0, 0)


class SentData(Part, frozen=True, kw_only=True):
    """The packets that one host of a program has sent."""

    packets: Count
    payload_bytes: Count


class Conversation(Part, frozen=True, kw_only=True):
    """A protocol and a pair of ports between the hosts of a program."""

    protocol: Count
    sender_port: Count
    receiver_port: Count


class ProgramTraffic(Part, frozen=True, kw_only=True):
    """The packets between the hosts of a program."""

    sender: SentData
    receiver: SentData
    conversations: list[Conversation]


class ProgramRoot(Part, frozen=True, kw_only=True):
    """The root file system of a program."""

    folder: str
    kind: str
    digest: str
    env: dict[str, str] = field(default_factory=dict)


class ProgramRun(Part, frozen=True, kw_only=True):
    """The program of a flow (drivers/cell/src/program_reports.rs)."""

    name: str
    #: The side that sends data.
    data: str | None = None
    root: ProgramRoot | None = None
    reports: dict[str, ReportPlan] | None = None
    first_data_ns: Integer | None = None
    traffic: ProgramTraffic | None = None
    listener: ProgramProcess | None = None
    connector: ProgramProcess | None = None


class Fingerprint(Part, frozen=True, kw_only=True):
    """The identity of the code of a sender."""

    #: `native`, `linux`, `bpf`, `program`, or the tool of an import.
    kind: str | None = None
    name: str | None = None
    version: str | None = None
    git: str | None = None
    kernel: str | None = None
    #: The name that the system returned.
    read_back: str | None = None
    params: dict[str, object] = field(default_factory=dict)


class Flow(Part, frozen=True, kw_only=True):
    """A flow: its code and the counters of its endpoints."""

    flow: Count
    scheme: str = ""
    background: bool = False
    direction: str = "forward"
    fingerprint: Fingerprint = Fingerprint()
    program: ProgramRun | None = None

    @property
    def reports(self) -> dict[str, ReportPlan]:
        """The metrics that its program reports."""
        return (self.program and self.program.reports) or {}

    @property
    def program_name(self) -> str:
        """The name of its program; empty if it has none."""
        return self.program.name if self.program else ""

    def process(self, side: str) -> ProgramProcess:
        """The process of its program at the `listener` or the `connector`."""
        sides = (self.program.listener, self.program.connector) if self.program else (None, None)
        return sides[side == "connector"] or ProgramProcess()


class Element(Part, frozen=True, kw_only=True):
    """The counters of an element: in + copied = out + dropped + held."""

    name: str
    kind: str
    in_packets: Count
    out_packets: Count
    out_bytes: Count
    dropped_packets: Count
    held_packets: Count


class Lateness(Part, frozen=True, kw_only=True):
    """The lateness of packets' releases relative to the model's time."""

    packets: Count = 0
    p50_ns: Count = 0
    p99_ns: Count = 0
    p999_ns: Count = 0
    max_ns: Count = 0


class Cpu(Part, frozen=True, kw_only=True):
    """Shares of processor time during the run."""

    busy_ratio: Number | None = None
    stolen_ratio: Number | None = None


class RecordHost(Part, frozen=True, kw_only=True):
    """A host of a run: a namespace, or one of two machines with its facts."""

    UNCHECKED: ClassVar[frozenset[str]] = frozenset({"sysctls"})

    name: str = ""
    host_name: str | None = None
    sysctls: dict[str, Value] = field(default_factory=dict)
    machine: HostFacts = HostFacts()
    versions: Versions = Versions()
    cpu: Cpu = Cpu()
    tunnel: TunnelEnd | None = None

    @property
    def facts(self) -> HostFacts:
        """The machine with the settings of the host."""
        return structs.replace(self.machine, sysctls=self.sysctls)

    @property
    def refused(self) -> int:
        """Datagrams of third parties that arrived."""
        return sum(self.tunnel.arrived.refused.values()) if self.tunnel else 0


class PantheonFlow(Part, frozen=True, kw_only=True):
    """The statistics of a flow."""

    throughput_mbps: Number | None = None
    delay_p95_ms: Number | None = None
    loss_ratio: Number | None = None


class PantheonStatistics(Part, frozen=True, kw_only=True):
    """The statistics computed from the logs of a run: of all flows together, and of each."""

    total: PantheonFlow = PantheonFlow()
    flows: dict[str, PantheonFlow] = field(default_factory=dict)


class PantheonNumbers(Part, frozen=True, kw_only=True):
    """Pantheon's numbers of a run that it measured."""

    #: In their printed form.
    text: str | None = None
    #: Why Pantheon's tools would refuse the logs.
    refused: str | None = None
    statistics: PantheonStatistics | None = None
    #: The commits of its software.
    git: dict[str, str] = field(default_factory=dict)
    #: The offsets of the clocks of both sides.
    offsets_ns: dict[str, Integer] = field(default_factory=dict)


class ImportFacts(Part, frozen=True, kw_only=True):
    """Facts of other tools about a run that was imported."""

    tool: str | None = None
    files: list[str] = field(default_factory=list)
    version: Value | list[Value] = None
    protocol: Value | list[Value] = None
    qlog: Value | list[Value] = None
    vantage_point: Value | list[Value] = None
    host: Value | list[Value] = None

    @property
    def words(self) -> str:
        """The known facts, preceded by the tool."""
        facts = {
            "version": self.version,
            "protocol": self.protocol,
            "qlog": self.qlog,
            "vantage_point": self.vantage_point,
            "host": self.host,
        }
        return ", ".join([self.tool or "", *(f"{name} {value}" for name, value in facts.items() if value)])


class RunRecord(Part, frozen=True, kw_only=True):
    """The document run.json."""

    UNCHECKED: ClassVar[frozenset[str]] = frozenset({"cell"})

    format: str
    #: The cell as it was given to the agent.
    cell: dict[str, Any] = field(default_factory=dict)
    #: `simulate`, `emulate`, `hosts`, or `import` for a run measured by another tool.
    plane: str | None = None
    versions: Versions = Versions()
    host: HostFacts | None = None
    hosts: list[RecordHost] = field(default_factory=list)
    #: By the wall clock, if the run depended on one.
    started_at: str | None = None
    ended_at: str | None = None
    clock: Clock = Clock()
    flows: list[Flow] = field(default_factory=list)
    elements: list[Element] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    lateness: Lateness | None = None
    rings: list[Ring] = field(default_factory=list)
    #: Null if the packets between two hosts were not observed.
    tunnel: Tunnel | UnsetType | None = UNSET
    cpu: Cpu | None = None
    verdict: str | None = None
    reasons: list[Reason] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    pantheon: PantheonNumbers | None = None
    origin: ImportFacts | None = field(name="import", default=None)

    @property
    def title(self) -> str:
        """The cell in a few words."""
        return f"{self.cell['id']}: {self.cell['scheme']}, run {self.cell['run']}"


class Simulated(Part, frozen=True, kw_only=True):
    """The rest of a cell that was simulated in memory: its verdict and its metrics, or why there are none."""

    verdict: str | None = None
    reasons: list[Reason] = field(default_factory=list)
    measured: Measured | None = None
    error: CellError | None = None

    @property
    def flows(self) -> list[MeasuredFlow]:
        """The metrics of all flows of a valid run; empty for one that is invalid."""
        return self.measured.flows if self.measured and self.verdict != INVALID else []
