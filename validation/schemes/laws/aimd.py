"""Additive increase, multiplicative decrease: a packets more per round trip, b of the window less.

Between losses W grows by a/W per packet, so that W^2 grows by 2a per packet. With one loss in 1/p packets the
window moves between (1-b) Wmax and Wmax = sqrt(2a / (p b (2-b))); it grows evenly in time, so its mean is
that of the two ends: sqrt(a (2-b) / (2 b p)). For Reno that is sqrt(3/2 / p) = 1.2247 / sqrt(p), the
formula of Mathis et al., CCR 27(3), 1997.

With independent losses, V = W^2 p / (2a) grows by p per packet and is multiplied by (1-b)^2 at each event
of a Poisson process, whose rate is one in these units. Its stationary law has the moments of
autoregression V = E + (1-b)^2 V', E exponential. The mean of W over time is 1 / E[1/W] over packets; for
Reno it is 1.310 / sqrt(p) (Ott, Kemperman and Mathis, The stationary behavior of ideal TCP congestion
avoidance, 1996).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from validation.schemes.fluid import AimdLike, Floats


class Aimd(AimdLike):
    """AIMD(a, b)."""

    def __init__(self, increase: float, decrease: float) -> None:
        self.increase, self.decrease = increase, decrease

    def per_packet(self, w: Floats) -> Floats:
        """Growth for one packet acknowledged."""
        return self.increase / w

    def kept(self, w: Floats) -> Floats:
        """The window after a loss."""
        return w * (1 - self.decrease)

    def mean(self, p: float) -> float:
        """The mean window with one loss in 1/p packets."""
        a, b = self.increase, self.decrease
        return math.sqrt(a * (2 - b) / (2 * b * p))


class Scalable(AimdLike):
    """Scalable TCP: 0.01 packets for each one acknowledged, at least one per round trip; an eighth less.

    Above 100 packets W grows by 0.01 per packet: from 7/8 Wmax to Wmax in Wmax/8/0.01 packets, so that
    Wmax = 0.08 / p; it grows exponentially in time, by ln(8/7) in ln(8/7)/0.01 = 13.35 round trips (13.42 if
    round trips are counted whole, at 1 % each), and 1/p packets in that time make a mean of 0.0749 / p.
    """

    GAIN, DECREASE = 0.01, 0.125

    def per_packet(self, w: Floats) -> Floats:
        """Growth for one packet acknowledged."""
        return np.maximum(self.GAIN, 1 / w)

    def kept(self, w: Floats) -> Floats:
        """The window after a loss."""
        return w * (1 - self.DECREASE)

    def mean(self, p: float) -> float:
        """The mean window with one loss in 1/p packets; below 100 packets that of AIMD(1, 1/8)."""
        scalable = self.GAIN / (p * -math.log(1 - self.DECREASE))
        if scalable * 0.875 > 100:
            return scalable
        return Aimd(1, self.DECREASE).mean(p)


class Counted:
    """A law in whole packets, as RFC 5681 and RFC 3465 count.

    The window grows by one packet when `every(w)` packets have been acknowledged; what has been counted
    towards the next one is forgotten at a loss. Only whole packets are in flight. At windows of ten packets
    that makes the mean a tenth smaller than the fluid's, at a hundred packets a hundredth.
    """

    def __init__(self, every: Callable[[Floats], Floats], kept: Callable[[Floats], Floats]) -> None:
        self.every, self.kept = every, kept

    def mean_window(self, gaps: Floats, skip: int, start: float) -> float:
        """As `fluid.mean_window`."""
        w = np.full(gaps.shape[1], start)
        packets = rounds = 0.0
        for index, row in enumerate(gaps):
            left = row.copy()
            while left.any():
                counted = np.minimum(self.every(w), left)
                full = counted < left
                if index >= skip:
                    packets += float(np.sum(counted / np.floor(w) * w))
                    rounds += float(np.sum(counted / np.floor(w)))
                w = np.where(full, w + 1, w)
                left = np.where(full, left - counted, 0.0)
            w = np.maximum(self.kept(w), 2.0)
        return packets / rounds
