"""Laws made for large windows: HighSpeed TCP and the fast part of Compound."""

from __future__ import annotations

import math

import numpy as np

from validation.schemes.fluid import AimdLike, Floats


class HighSpeed(AimdLike):
    """RFC 3649, section 5: growth and reduction as functions of the window, Reno up to 38 packets.

    The functions are made so that the mean window at a loss ratio p is 0.12 / p^0.835.
    """

    LOW, HIGH = 38.0, 83_000.0

    def _decrease(self, w: Floats) -> Floats:
        way = np.log(np.maximum(w, self.LOW) / self.LOW) / math.log(self.HIGH / self.LOW)
        return 0.5 - 0.4 * way

    def per_packet(self, w: Floats) -> Floats:
        """Growth for one packet acknowledged."""
        b = self._decrease(w)
        increase = w**2 * 0.078 / w**1.2 * 2 * b / (2 - b)
        return np.where(w <= self.LOW, 1.0, increase) / w

    def kept(self, w: Floats) -> Floats:
        """The window after a loss."""
        return w * (1 - self._decrease(w))

    def mean(self, p: float) -> float:
        """The response function of section 5; Reno's above p = 1e-3."""
        return max(0.12 / p**0.835, math.sqrt(1.5 / p)) if p < 1.5e-3 else math.sqrt(1.5 / p)


class Compound(AimdLike):
    """Compound TCP while no queue holds its delay part back: W^0.75 / 8 per round trip, half after a loss.

    With dW/dn = a W^(k-1), W^(2-k) grows by a (2-k) per packet, so that with one loss in 1/p packets
    Wmax^(2-k) = a (2-k) / (p (1 - (1-b)^(2-k))); the mean over time is (1/p) / (time in round trips), where
    the time is (Wmax^(1-k) - ((1-b) Wmax)^(1-k)) / (a (1-k)): 0.2553 / p^0.8 for a = 1/8, k = 3/4, b = 1/2.
    Up to 38 packets, and wherever W^0.75 / 8 is below one packet, it is Reno.
    """

    A, K, B, LOW = 0.125, 0.75, 0.5, 38.0

    def per_packet(self, w: Floats) -> Floats:
        """Growth for one packet acknowledged."""
        fast = np.where(w < self.LOW, 1.0, np.maximum(1.0, self.A * w**self.K))
        return fast / w

    def kept(self, w: Floats) -> Floats:
        """The window after a loss."""
        return w * (1 - self.B)

    def mean(self, p: float) -> float:
        """The mean window with one loss in 1/p packets; Reno's where that is larger."""
        a, k, b = self.A, self.K, self.B
        top = (a * (2 - k) / (p * (1 - (1 - b) ** (2 - k)))) ** (1 / (2 - k))
        rounds = (top ** (1 - k) - ((1 - b) * top) ** (1 - k)) / (a * (1 - k))
        return float(max(1 / (p * rounds), math.sqrt(1.5 / p)))
