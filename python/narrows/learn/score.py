"""Scores of models: the power of one flow on many paths, and the objective of rule tables.

Power is the throughput by the 95th percentile of the one-way delay.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from narrows._native import score_model, score_rules
from narrows.errors import DataError
from narrows.learn.path_sets import PathSet


class AckBunches(msgspec.Struct, frozen=True):
    """Times at which acknowledgements may pass: so many packets of 1500 bytes at each."""

    packets: int
    every_ms: float


class TrialPath(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A path, as the trainers describe it."""

    rate_bps: float
    one_way_ms: float
    poisson: bool = False
    queue_packets: int | None = None
    #: A single packet may wait, in both directions.
    one_packet_queue: bool = False
    ack_bunches: AckBunches | None = None
    loss: float = 0.0

    @property
    def words(self) -> str:
        """Rate, delay and queue in a few words."""
        parts = [f"{self.rate_bps / 1e6:g} Mbit/s", f"{self.one_way_ms:g} ms"]
        if self.poisson:
            parts.append("Poisson")
        if self.queue_packets is not None:
            parts.append(f"{self.queue_packets} packets")
        if self.one_packet_queue:
            parts.append("one packet")
        if self.ack_bunches:
            parts.append(f"{self.ack_bunches.packets} acks/{self.ack_bunches.every_ms:g} ms")
        if self.loss:
            parts.append(f"loss {self.loss:.2%}")
        return ", ".join(parts)


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A path with its conditions."""

    path: TrialPath
    late_hosts: bool = False
    seconds: float = 30.0
    seed: int = 1


class Measured(msgspec.Struct, frozen=True):
    """Measurements of the flow on a path."""

    throughput_bps: float
    delay_p95_ns: float
    loss: float

    @property
    def power(self) -> float:
        """Throughput (Mbit/s) by the 95th percentile of the one-way delay (ms)."""
        return self.throughput_bps / self.delay_p95_ns if self.delay_p95_ns else 0.0


@dataclass(frozen=True)
class Comparison:
    """Ratios of the power of one model to that of another."""

    name: str
    ratios: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median ratio."""
        return statistics.median(self.ratios)

    @property
    def tenth(self) -> float:
        """The tenth percentile (nearest rank)."""
        return sorted(self.ratios)[max(0, -(-len(self.ratios) // 10) - 1)]


#: Rates (bit/s) and one-way delays (ms) of the paths on which the published networks were trained.
GRID_RATES = (5e6, 10e6, 20e6, 50e6, 100e6, 200e6)
GRID_DELAYS = (10.0, 20.0, 40.0, 80.0)
#: The calibrated paths of Pantheon (Yan et al. 2018, table 2).
CALIBRATED = (
    TrialPath(rate_bps=0.57e6, one_way_ms=28, poisson=True, queue_packets=14, loss=0.0477),
    TrialPath(rate_bps=2.64e6, one_way_ms=88, poisson=True, queue_packets=130),
    TrialPath(rate_bps=3.04e6, one_way_ms=130, poisson=True, queue_packets=426),
    TrialPath(rate_bps=100.42e6, one_way_ms=27, queue_packets=173),
    TrialPath(rate_bps=77.72e6, one_way_ms=51, queue_packets=94, loss=0.0006),
    TrialPath(rate_bps=114.68e6, one_way_ms=45, queue_packets=450),
)
#: Buffers of Pantheon's emulated paths, in bytes, behind 12 Mbit/s and 30 ms each way.
BUFFERS = (30_000, 45_000, 90_000)


#: The sets of a score unless others are chosen.
USUAL = (PathSet.GRID, PathSet.CALIBRATED, PathSet.BUFFERS)


def list_trials(sets: Sequence[PathSet] = USUAL) -> list[Trial]:
    """The paths of the sets of power, each once, in the order of `PathSet`."""
    return [trial for kind in PathSet if kind in sets and kind in _TRIALS for trial in _TRIALS[kind]()]


def _grid() -> list[Trial]:
    """The paths of the published training."""
    paths = [TrialPath(rate_bps=rate, one_way_ms=delay) for rate in GRID_RATES for delay in GRID_DELAYS]
    return [Trial(path=path) for path in paths]


def _calibration_trials() -> list[Trial]:
    return [Trial(path=path) for path in CALIBRATED]


def _behind(buffer: int) -> TrialPath:
    return TrialPath(rate_bps=12e6, one_way_ms=30, queue_packets=buffer // 1500)


def _buffers() -> list[Trial]:
    return [Trial(path=_behind(buffer)) for buffer in BUFFERS]


def _pantheon() -> list[Trial]:
    """The other nine of Pantheon's 18 emulated paths: a queue of one packet, acknowledgements in bunches, a
    buffer of a tenth of the bandwidth-delay product; with hosts as late as those of its scenarios.
    """
    paths = [
        TrialPath(rate_bps=rate, one_way_ms=delay, one_packet_queue=True)
        for rate in (12e6, 60e6, 108e6)
        for delay in (10.0, 50.0)
    ]
    paths += [
        TrialPath(rate_bps=12e6, one_way_ms=10, ack_bunches=bunches)
        for bunches in (AckBunches(1, 100), AckBunches(10, 200))
    ]
    return [Trial(path=path, late_hosts=True) for path in [*paths, _behind(9_000)]]


_TRIALS: dict[PathSet, Callable[[], list[Trial]]] = {
    PathSet.GRID: _grid,
    PathSet.CALIBRATED: _calibration_trials,
    PathSet.BUFFERS: _buffers,
    PathSet.PANTHEON: _pantheon,
}


class Objective(msgspec.Struct, frozen=True, kw_only=True):
    """Networks of Remy's objective, as the trainers describe them."""

    links: int
    packets_per_ms: tuple[float, float]
    one_way_ms: float
    seconds: float
    senders: int
    active_s: float
    pause_s: float


class LinkScore(msgspec.Struct, frozen=True):
    """The objective on one link: log2 of its share, less log2 of the mean round trip by the minimum one."""

    packets_per_ms: float
    score_log2: float


#: Remy's networks with rates and times of senders on which no recipe trains.
HELD_OUT = Objective(
    links=20, packets_per_ms=(0.33, 30.0), one_way_ms=75, seconds=30, senders=2, active_s=1, pause_s=1
)
HELD_OUT_SEED = 1_001


def measure_links(content: bytes, threads: int) -> list[LinkScore]:
    """Simulates the rule table in `content` on each link of `HELD_OUT`."""
    objective = msgspec.json.encode(HELD_OUT).decode()
    try:
        text = score_rules(content, objective, HELD_OUT_SEED, threads)
    except ValueError as error:
        raise DataError(str(error)) from None
    return msgspec.json.decode(text, type=list[LinkScore])


def measure(scheme: str, content: bytes, trials: Sequence[Trial], threads: int) -> list[Measured]:
    """Simulates the model in `content` in each trial."""
    try:
        text = score_model(scheme, content, msgspec.json.encode(trials).decode(), threads)
    except ValueError as error:
        raise DataError(str(error)) from None
    return msgspec.json.decode(text, type=list[Measured])
