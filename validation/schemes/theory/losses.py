"""Throughput under random losses, with the three ways of detecting them: by time (RACK), by the count of
packets that have overtaken, and by duplicate cumulative acknowledgements alone.

Between 1 and 20 % two laws bound schemes that grow like Reno at such windows. The upper bound is the square
root of Mathis, Semke, Mahdavi and Ott (1997), which has no timeouts. The lower bound is the formula of
Padhye, Firoiu, Towsley and Kurose (SIGCOMM 1998, equation 30), in which a loss includes all following packets
of its round trip, so that more losses end in timeouts than with independent losses. In addition, more losses
must leave less throughput, at least by the square root: timeouts make the curve steeper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from validation.schemes.check import Check, Finding
from validation.schemes.paths import EVERY_PACKET, SimulatedPath, metrics_of
from validation.schemes.states import PAYLOAD

KIND = "losses"
#: Ways of detecting losses: in words, and as transport parameters.
WAYS: dict[str, dict[str, str]] = {
    "with RACK": {},
    "without RACK": {"rack": "false", "tail_loss_probe": "false"},
    "without SACK": {"sack": "false"},
}
RATIOS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2)
RTTS_MS = (0.4, 20, 100)
#: Approximate minimum number of losses in a run: their number then varies by 3 %.
LOSSES = 1000
LONGEST_S = 600
#: The smallest retransmission timeout in addition to the round trip (Linux).
LEAST_RTO_S = 0.2
TOLERANCE = 0.1
WHY = (
    "the loss ratio of one run varies by 3 %, which is 1.5 to 4 % of throughput, and whole packets matter to"
    " windows of a few packets"
)


@dataclass(frozen=True)
class Losses:
    """A scheme that adds one packet per round trip and halves, at windows of up to 12 packets."""

    scheme: str


def checks(expected: Losses) -> list[Check]:
    """One check for each round-trip time and way of finding losses."""
    return [
        Check(
            expected.scheme,
            KIND,
            f"goodput at {min(RATIOS):.0%} to {max(RATIOS):.0%} of loss, {rtt:g} ms, {way}",
            tuple(_path(expected.scheme, rtt, way, p) for p in RATIOS),
            partial(_judge, rtt, way),
            True,
        )
        for rtt in RTTS_MS
        for way in WAYS
    ]


def with_timeouts(p: float, rtt_s: float) -> float:
    """Packets per second by Padhye et al. at loss ratio `p`, with one acknowledgement per packet."""
    timeouts = min(1.0, 3 * math.sqrt(3 * p / 8)) * p * (1 + 32 * p * p)
    return 1 / (rtt_s * math.sqrt(2 * p / 3) + (LEAST_RTO_S + rtt_s) * timeouts)


def without_timeouts(p: float, rtt_s: float) -> float:
    """Packets per second by the square root."""
    return math.sqrt(3 / (2 * p)) / rtt_s


def _judge(rtt_ms: float, way: str, records: list[Path]) -> list[Finding]:
    found = [float(metrics_of(record)["goodput_bps"]) / 8 / PAYLOAD for record in records]
    setting = f"{rtt_ms:g} ms, {way}"
    findings = [
        Finding(
            f"goodput at {p:.0%} of loss, {setting}",
            with_timeouts(p, rtt_ms / 1000),
            rate,
            "packets/s",
            TOLERANCE,
            True,
            WHY,
            without_timeouts(p, rtt_ms / 1000),
        )
        for p, rate in zip(RATIOS, found, strict=True)
    ]
    # The share of the throughput that remains at the next smaller ratio, divided by the share by the square
    # root.
    left = max(
        after / before * math.sqrt(q / p)
        for (p, before), (q, after) in pairwise(zip(RATIOS, found, strict=True))
    )
    what = f"most that a larger loss ratio leaves, over its square root's share, {setting}"
    return [*findings, Finding(what, 0, left, "", TOLERANCE, True, WHY, 1)]


def _path(scheme: str, rtt_ms: float, way: str, p: float) -> SimulatedPath:
    # On average a loss costs one window, and so leaves at least the throughput of Padhye's formula.
    seconds = min(LONGEST_S, LOSSES / (p * with_timeouts(p, rtt_ms / 1000)))
    transport = {**EVERY_PACKET, **WAYS[way]}
    elements = (f"{{loss: {p * 100:g} %}}",)
    return SimulatedPath(scheme, rtt_ms, seconds, elements, {}, transport, sample_ms=1000)
