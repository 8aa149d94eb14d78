"""Sampled states of a sender: its reductions, and its window in between.

A reduction begins with a loss found outside a recovery and is over when everything that was in flight then is
delivered. Congestion avoidance is the rest, above the slow-start threshold. Closed forms speak of it alone: a
recovery lasts a round trip more, in which a window neither grows nor is reduced again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from narrows import _native
from validation.schemes.fluid import Floats

#: Payload of a full packet: 1500 bytes less 52 of headers.
PAYLOAD = 1448


@dataclass(frozen=True)
class Epochs:
    """The life of one window, reduction by reduction."""

    time_s: Floats
    #: Packets.
    window: Floats
    #: Packets delivered so far.
    delivered: Floats
    #: Samples at which a reduction begins and ends.
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    #: True if each sample is in congestion avoidance.
    avoidance: NDArray[np.bool_]

    def span(self, skip: int) -> tuple[int, int]:
        """The samples from the end of a reduction to the beginning of the last one."""
        if len(self.begins) < skip + 2:
            raise ValueError(
                f"there are {len(self.begins)} reductions and {skip + 2} are needed; the run is too short"
            )
        return int(self.ends[skip]), int(self.begins[-1])

    def mean_window(self, skip: int) -> float:
        """The mean over time in congestion avoidance, after `skip` reductions."""
        first, last = self.span(skip)
        return float(np.mean(self.window[first:last][self.avoidance[first:last]]))

    def gaps(self, skip: int) -> Floats:
        """Packets acknowledged in congestion avoidance between reductions, after `skip` of them."""
        found: Floats = self.delivered[self.begins[skip + 1 :]] - self.delivered[self.ends[skip:-1]]
        return found

    def peaks(self, skip: int) -> Floats:
        """The windows just before each reduction, except the first `skip` + 1."""
        found: Floats = self.window[np.maximum(self.begins[skip + 1 :] - 1, 0)]
        return found

    def lengths_s(self, skip: int) -> Floats:
        """Times from the end of each reduction to the next one, after `skip` of them."""
        found: Floats = self.time_s[self.begins[skip + 1 :]] - self.time_s[self.ends[skip:-1]]
        return found


def epochs(record: Path, flow: int = 1) -> Epochs:
    """Reads the states of a flow."""
    states = _native.state_series(str(record))[flow]
    window = states["cwnd_bytes"] / PAYLOAD
    delivered = states["delivered_bytes"] / PAYLOAD
    in_flight = states["inflight_bytes"] / PAYLOAD
    lost = states["lost_packets"]
    threshold = states["ssthresh_bytes"] / PAYLOAD
    avoidance = ~(window < threshold * 0.999)
    avoidance &= ~np.isnan(threshold)
    begins: list[int] = []
    ends: list[int] = []
    # The retransmission may not have left yet when the loss is detected, so the end of a recovery is known to
    # 2 packets.
    guard = -1
    for index in np.flatnonzero(np.diff(lost) > 0) + 1:
        if index <= guard:
            continue
        # A loss of the same window that is detected as its recovery ends has no effect.
        if np.min(window[index : index + 3]) >= window[index - 1] - 0.5:
            continue
        end, guard = np.searchsorted(delivered, delivered[index] + in_flight[index] + np.array([0, 2]))
        begins.append(int(index))
        ends.append(min(max(int(end), int(index) + 1), len(window) - 1))
        avoidance[begins[-1] : ends[-1]] = False
    return Epochs(states["time_s"], window, delivered, np.array(begins), np.array(ends), avoidance)
