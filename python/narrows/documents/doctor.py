"""The answer of `narrows doctor --json`: the abilities of a machine, and the rates that it sustains."""

from __future__ import annotations

from narrows.documents.agent import MachineCheck, MachineFacts
from narrows.documents.data import Count, Number, Part

FORMAT = "narrows/doctor/1"


class Simulator(Part, frozen=True, kw_only=True):
    """Data packets that one processor simulates in a second, transport and record included."""

    packets_per_s: Count
    seconds: Number


class EmulatedRun(Part, frozen=True, kw_only=True):
    """A run that was emulated to find the highest rate."""

    rate_bps: Count
    delivered_bps: Count
    packets: Count
    verdict: str
    reasons: list[str]
    late_p50_ns: Count
    late_p99_ns: Count
    late_p999_ns: Count
    busy_ratio: Number | None
    stolen_ratio: Number | None


class Capacity(Part, frozen=True, kw_only=True):
    """The rates that simulator and emulator sustain."""

    simulator: Simulator
    runs: list[EmulatedRun]
    #: The highest rate with verdict ok.
    emulator_bps: Count | None
    #: Why emulation is impossible.
    cannot: str | None
    #: The conclusion, in one sentence.
    advice: str


class Doctor(Part, frozen=True, kw_only=True):
    """The abilities of this machine."""

    format: str
    ok: bool
    checks: list[MachineCheck]
    facts: MachineFacts
    measured: Capacity | None = None
