"""BBR: the cycle of its pacing gains, the cadence of ProbeRTT, its throughput under random loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from narrows import _native
from validation.schemes.check import Check, Finding, number
from validation.schemes.paths import EVERY_PACKET, SimulatedPath, metrics_of
from validation.schemes.states import PAYLOAD

KIND = "bbr"
RATE_MBPS, RTT_MS = 24.0, 40.0
#: Start-up and drain are over by then.
SETTLED_S = 5.0
#: Seeds of the runs whose means are compared.
SEEDS = range(1, 9)


@dataclass(frozen=True)
class Bbr:
    """Expectation of a version of BBR."""

    scheme: str
    #: Random loss that it tolerates without reacting, as shares.
    bears: tuple[float, ...]
    #: Pacing gains of probing up and of draining.
    up: float
    down: float
    #: Round trips of a cycle of gains, where it is a fixed number.
    cycle: float | None
    #: Seconds from one ProbeRTT to the next, and its window in packets on this path.
    probe_s: float
    probe_window: float


def checks(expected: Bbr) -> list[Check]:
    """All checks of one version."""
    found = [
        Check(expected.scheme, KIND, "pacing gains", (_path(expected, 60),), partial(_gains, expected), True),
        Check(expected.scheme, KIND, "ProbeRTT", (_path(expected, 65),), partial(_probes, expected), True),
    ]
    return found + [_bears(expected, loss) for loss in expected.bears]


def _bears(expected: Bbr, loss: float) -> Check:
    title = f"throughput with {loss * 100:g} % random loss"
    lossy = (replace(_path(expected, 60, loss), seed=seed) for seed in SEEDS)
    return Check(expected.scheme, KIND, title, (_path(expected, 60), *lossy), partial(_lossy, loss), True)


def _path(expected: Bbr, seconds: float, loss: float = 0.0) -> SimulatedPath:
    elements = [f"{{rate: {RATE_MBPS:g} Mbit/s, queue: {{droptail: 160 packets}}}}"]
    if loss:
        elements.append(f"{{loss: {loss * 100:g} %}}")
    transport = dict(EVERY_PACKET)
    return SimulatedPath(
        expected.scheme, RTT_MS, seconds, tuple(elements), transport=transport, sample_ms=1.0
    )


def _gains(expected: Bbr, records: list[Path]) -> list[Finding]:
    states = _native.state_series(str(records[0]))[1]
    late = states["time_s"] > SETTLED_S
    time, pacing = states["time_s"][late], states["pacing_bps"][late]
    # Outside ProbeRTT, which keeps the rate but changes the cycle.
    steady = states["cwnd_bytes"][late] > 1.5 * expected.probe_window * PAYLOAD
    share = pacing / float(np.median(pacing[steady]))
    why = "gains are kept as fractions of 256, and the bandwidth they multiply is an estimate"
    findings = [
        Finding("gain when probing up", expected.up, float(np.max(share[steady])), "", 0.02, True, why),
        Finding("gain when draining", expected.down, float(np.min(share[steady])), "", 0.02, True, why),
    ]
    if expected.cycle is not None:
        starts = time[_onsets(share > (1 + expected.up) / 2)]
        rounds = float(np.median(np.diff(starts))) / (RTT_MS / 1000)
        lasts = "each phase ends with the first acknowledgement after a round trip, at most a tenth later"
        findings.append(
            Finding(
                "round trips of a cycle", expected.cycle, rounds, "", 0.02, True, lasts, expected.cycle * 1.1
            )
        )
    return findings


def _probes(expected: Bbr, records: list[Path]) -> list[Finding]:
    states = _native.state_series(str(records[0]))[1]
    late = states["time_s"] > SETTLED_S
    time, window = states["time_s"][late], states["cwnd_bytes"][late] / PAYLOAD
    low = window < 1.2 * expected.probe_window
    starts = time[_onsets(low)]
    every = float(np.mean(np.diff(starts))) if len(starts) > 1 else float("nan")
    why = (
        "ProbeRTT is entered with the first acknowledgement after its time, and lasts 200 ms and a round trip"
    )
    return [
        Finding("seconds from one ProbeRTT to the next", expected.probe_s, every, "s", 0.05, True, why),
        Finding(
            "smallest window in ProbeRTT",
            expected.probe_window,
            float(np.min(window)),
            "packets",
            0.1,
            True,
            "half a bandwidth-delay product is an estimate; four packets are four packets",
        ),
    ]


def _lossy(loss: float, records: list[Path]) -> list[Finding]:
    clean, *lossy = (float(metrics_of(record)["throughput_bps"]) / 1e6 for record in records)
    found = float(np.mean(lossy))
    # The estimate is at most the arrival rate, (1 - p) of the link; paced at that rate, (1 - p) of it arrives
    # again. The upper end is a link that is always full.
    least = clean * (1 - loss) ** 2
    # ProbeRTT sends about 20 packets, in five round trips of four. One that is lost twice waits for the
    # retransmission timer until the estimate, kept for ten round trips, is forgotten; it climbs back by
    # a gain of 1.25 per cycle, which costs about half a second's worth of the ten between two ProbeRTTs.
    least *= 1 - 20 * loss**2 * 0.5 / 10
    what = f"throughput with {loss * 100:g} % random loss ({number(clean)} Mbit/s without)"
    why = f"the mean of {len(SEEDS)} runs, of which each is off by about 0.7 % by chance with 10 % of loss"
    return [Finding(what, least, found, "Mbit/s", 0.01, True, why, RATE_MBPS * (1 - loss))]


def _onsets(true: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The positions where a condition begins to hold."""
    return (np.flatnonzero(np.diff(true.astype(np.int8)) == 1) + 1).astype(np.int64)
