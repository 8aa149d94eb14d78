"""The answers of agents, which may run on other machines: facts about a host, and outcomes of commands.

Texts have one line, because they are printed on terminals and may come from a machine that lies.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, UnsetType, field

from narrows.addresses import is_address, is_socket_address, split_address
from narrows.documents.data import Count, Integer, Number, Part, Value
from narrows.documents.extensions import Extension

Text = Annotated[str, Meta(max_length=4096, pattern=r"^[^\r\n]*\Z")]


class Version(Part, frozen=True, kw_only=True):
    """The agent's version, and that of its command line."""

    narrows: Text
    git: Text | UnsetType | None = UNSET
    protocol: Count
    #: Crates of users that were built in.
    extensions: list[Extension] = field(default_factory=list)


# -- machines ------------------------------------------------------------------------------------


class Ability(Part, frozen=True, kw_only=True):
    """Whether a machine can do something, and why not."""

    ok: bool
    why: Text | None


class Namespaces(Part, frozen=True, kw_only=True):
    """Whether a machine can make network namespaces, and with which privilege."""

    ok: bool
    how: Text | None
    why: Text | None

    @property
    def obstacle(self) -> str:
        """Why it can't, as a part of a sentence."""
        return (self.why or "not permitted").rstrip(".")


class MachineCheck(Part, frozen=True, kw_only=True):
    """A check of `narrows doctor`."""

    name: Text
    ok: bool
    #: True if it passes with a drawback.
    warning: bool | UnsetType = UNSET
    detail: Text
    remedy: Text | None


class MachineFacts(Part, frozen=True, kw_only=True):
    """The facts about a machine that cells depend on (agent/src/doctor.rs)."""

    UNCHECKED: ClassVar[frozenset[str]] = frozenset({"sysctls"})

    kernel: Text | None = None
    machine: Text | None = None
    cpus: Count | None = None
    cpu_model: Text | None = None
    memory_bytes: Count | None = None
    root: bool | None = None
    namespaces: Namespaces | None = None
    packet_socket: Ability | None = None
    congestion_controls: list[Text] = field(default_factory=list)
    bpf: Ability | None = None
    clocksource: Text | None = None
    #: Some values consist of several numbers, separated by tabs.
    sysctls: dict[str, Value] = field(default_factory=dict)
    checks: list[MachineCheck] = field(default_factory=list)


class ClockKeeper(Part, frozen=True, kw_only=True):
    """The program that disciplines a clock."""

    program: Text
    reference: Text | None
    stratum: Count | None
    offset_ns: Integer | UnsetType = UNSET
    bound_ns: Integer | UnsetType | None = UNSET
    root_delay_ns: Integer | UnsetType = UNSET
    root_dispersion_ns: Integer | UnsetType = UNSET
    frequency_ppb: Integer | UnsetType = UNSET
    skew_ppb: Integer | UnsetType = UNSET
    updated_s: Number | UnsetType = UNSET
    leap: Text | UnsetType = UNSET

    def __str__(self) -> str:
        reference = f" from {self.reference}" if self.reference else ""
        stratum = f", stratum {self.stratum}" if self.stratum else ""
        return f"{self.program}{reference}{stratum}"


class Clock(Part, frozen=True, kw_only=True):
    """The clocks of a machine (drivers/realpath/src/timekeeping.rs)."""

    format: Text | UnsetType = UNSET
    #: The wall clock and the oscillator at one moment.
    real_ns: Integer
    raw_ns: Integer
    source: Text | None
    synchronized: bool
    max_error_ns: Count | UnsetType | None = UNSET
    estimated_error_ns: Count | UnsetType | None = UNSET
    #: The correction that the kernel applies to the oscillator.
    correction_ppb: Integer | None
    #: The maximum error of the wall clock, as estimated by its keeper.
    bound_ns: Count | None
    keeper: ClockKeeper | None

    @property
    def keeper_in_words(self) -> str:
        """The program that disciplines the clock."""
        if not self.synchronized:
            idle = f" ({self.keeper.program} runs and has no source)" if self.keeper else ""
            return f"not synchronized{idle}"
        return f"synchronized by {self.keeper or 'an unknown program'}"


class HostClock(Clock, frozen=True, kw_only=True):
    """The clocks of a host of a campaign between two hosts."""

    #: The artificial shift, for tests.
    shift_ns: Integer


class OscillatorOffset(Part, frozen=True, kw_only=True):
    """The relation of the oscillators of two hosts according to the programs that discipline their clocks:
    the other reading minus ours, the bound of its error, and the relative rate of the other one."""

    offset_ns: int
    bound_ns: int
    drift_ppb: int


class SysctlChange(Part, frozen=True, kw_only=True):
    """A setting of the kernel that would be, or was, changed."""

    name: Text
    before: Count
    now: Count

    def __str__(self) -> str:
        return f"{self.name} from {self.before} to {self.now}"


class HostState(Part, frozen=True, kw_only=True):
    """The facts about a host that may change from run to run (agent/src/host.rs)."""

    format: Text | UnsetType = UNSET
    versions: Version | UnsetType = UNSET
    name: Text | None
    system: Text | None
    virtual: bool
    load: list[Number] | None
    available_bytes: Count | None
    clock: HostClock
    tunnel_device: Ability
    left_behind: list[SysctlChange]
    kernel: Text | None


class CurrentHost(HostState, frozen=True, kw_only=True):
    """The state of a host before or after a round of runs."""

    sysctls: dict[Text, Text]
    #: Queueing disciplines of its interfaces in the notation of `tc`; null if `tc` is missing.
    qdisc: list[str] | UnsetType | None = UNSET


class HostFacts(HostState, frozen=True, kw_only=True):
    """The facts about a host of a campaign between two hosts."""

    machine: Text | None
    cpus: Count
    cpu_model: Text | None
    memory_bytes: Count | None
    root: bool
    namespaces: Namespaces
    packet_socket: Ability
    congestion_controls: list[Text]
    bpf: Ability
    clocksource: Text | UnsetType | None = UNSET
    sysctls: dict[Text, Text]


#: Facts about a machine that decide which schemes it can run.
Facts = MachineFacts | HostFacts


class Overridden(Part, frozen=True, kw_only=True):
    """The settings that an agent has raised, and those of a killed run that it has restored before."""

    changed: list[SysctlChange]
    recovered: list[SysctlChange]


class Restored(Part, frozen=True, kw_only=True):
    """The settings that an agent has restored at its end."""

    restored: list[SysctlChange]


class TriedProgram(Part, frozen=True, kw_only=True):
    """A BPF program that was loaded briefly."""

    ok: bool
    kind: Text | None = None
    message: Text | None = None


class TriedPrograms(Part, frozen=True, kw_only=True):
    """The outcomes of loading BPF programs (agent/src/bpf.rs)."""

    results: list[TriedProgram]


# -- the path between two hosts (drivers/realpath/src/path_probe) -----------------------------------


class Ready(Part, frozen=True, kw_only=True):
    """An end of an examination that accepts commands."""

    clock_shift_ns: Integer


class OpenedPort(Part, frozen=True, kw_only=True):
    """A requested port: opened, or the reason why not."""

    asked: Count
    port: Count | None
    index: Count | None
    why: Text | None


class OpenedPorts(Part, frozen=True, kw_only=True):
    """The requested ports."""

    opened: list[OpenedPort]


class RefusedSize(Part, frozen=True, kw_only=True):
    """A size of datagrams that the sending host refused."""

    size: Count
    why: Text


class Sent(Part, frozen=True, kw_only=True):
    """The outcome of sending datagrams."""

    refused: list[RefusedSize]


class Route(Part, frozen=True, kw_only=True):
    """The address of a host towards another one."""

    source: str

    def __post_init__(self) -> None:
        if not is_address(self.source):
            raise ValueError("{}.source is not an IP address")


class Exchange(Part, frozen=True, kw_only=True):
    """The time stamps of a question and its answer, in nanoseconds: sent (our clock), arrived and answered
    (the other end's clock), and returned (our clock)."""

    asked_ns: Integer
    arrived_ns: Integer
    answered_ns: Integer
    back_ns: Integer
    #: Our address from the other end's view.
    seen: str

    def __post_init__(self) -> None:
        if not is_socket_address(self.seen):
            raise ValueError("{}.seen is not an IP address with port")

    @property
    def rtt_ns(self) -> int:
        """The time on the path, there and back."""
        return (self.back_ns - self.asked_ns) - (self.answered_ns - self.arrived_ns)

    @property
    def offset_ns(self) -> int:
        """The other end's clock minus ours, if both directions took equally long; the error is at most half
        of `rtt_ns` (RFC 5905, section 8)."""
        return ((self.arrived_ns - self.asked_ns) + (self.answered_ns - self.back_ns)) // 2


class PortArrivals(Part, frozen=True, kw_only=True):
    """Datagrams that have arrived at a port since the last report."""

    packets: Count
    largest: Count
    origin: str | None = field(name="from")
    #: Answers to our questions, by their source address.
    answers: dict[str, Count]
    best: Exchange | None
    strangers: Count

    def __post_init__(self) -> None:
        if self.origin is not None and not is_socket_address(self.origin):
            raise ValueError("{}.from is not an IP address with port")
        if not all(map(is_socket_address, self.answers)):
            raise ValueError("a name in {}.answers is not an IP address with port")

    @property
    def answers_by_port(self) -> dict[int, int]:
        """Answers to our questions, by their source port."""
        counts: dict[int, int] = {}
        for address, count in self.answers.items():
            port = split_address(address)[1]
            counts[port] = counts.get(port, 0) + count
        return counts


class Arrived(Part, frozen=True, kw_only=True):
    """Datagrams that have arrived at the opened ports."""

    ports: list[PortArrivals]


# -- events of running cells (agent/src/events.rs) -------------------------------------------------


class Event(Part, frozen=True, kw_only=True):
    """A line of an agent that runs a cell."""

    UNCHECKED: ClassVar[frozenset[str]] = frozenset({"kind", "message"})

    event: Text
    #: For an error: its kind and a sentence, unless the agent is broken.
    kind: Any = None
    message: Any = None
    #: For progress: the elapsed time of the run, and its length.
    time_ns: Integer = 0
    of_ns: Integer | None = None
    #: The start of the run by the clock of this end, and by its wall clock.
    at_ns: Integer | None = None
    real_ns: Integer | None = None

    @property
    def progress(self) -> float | None:
        """The completed share of the run; None if the event does not state it."""
        return min(1.0, self.time_ns / self.of_ns) if self.of_ns else None
