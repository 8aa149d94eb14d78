"""CUBIC (RFC 9438): the window is a cubic of the time since the last loss, or Reno's if that is larger.

With one loss in 1/p packets and without the Reno-friendly part, the mean window is
(C (3 + beta) / (4 (1 - beta)))^(1/4) (R / p)^(3/4) = 1.054 (R / p)^(3/4) (RFC 9438, section 5.2). That
formula knows no fast convergence, which acts on every loss at a window that is the least bit below the
last one.
"""

from __future__ import annotations

import numpy as np

from validation.schemes.fluid import Floats


class Cubic:
    """The rules of RFC 9438, sections 4.2 to 4.7; times in seconds, windows in packets."""

    w: Floats

    def __init__(
        self, c: float = 0.4, beta: float = 0.7, *, friendly: bool = True, converge: bool = True
    ) -> None:
        self.c, self.beta, self.friendly, self.converge = c, beta, friendly, converge
        self.alpha = 3 * (1 - beta) / (1 + beta)

    def start(self, windows: Floats) -> None:
        """Begins with these windows, as after a loss."""
        self.w = np.array(windows, dtype=np.float64)
        self.w_max = self.w / self.beta
        self._begin()

    def _begin(self) -> None:
        self.t = np.zeros_like(self.w)
        self.k = np.cbrt(np.maximum(self.w_max - self.w, 0) / self.c)
        self.estimate = self.w.copy()
        self.prior = self.w_max.copy()

    def lose(self) -> None:
        """A loss, with fast convergence."""
        before = self.w
        lower = self.converge & (before < self.w_max)
        self.w_max = np.where(lower, before * (1 + self.beta) / 2, before)
        self.w = np.maximum(before * self.beta, 2.0)
        self._begin()
        self.prior = before

    def grow(self, packets: Floats, rtt: Floats | float) -> None:
        """Packets are acknowledged."""
        rounds = packets / self.w
        self.t = self.t + rounds * rtt
        alpha = np.where(self.estimate >= self.prior, 1.0, self.alpha)
        self.estimate = self.estimate + alpha * rounds
        target = np.clip(self._curve(self.t + rtt), self.w, 1.5 * self.w)
        # cwnd moves to the target within a round trip: (target - cwnd)/cwnd for each packet.
        cubic = self.w + (target - self.w) * -np.expm1(-rounds)
        if self.friendly:
            self.w = np.where(self._curve(self.t) < self.estimate, np.maximum(self.estimate, self.w), cubic)
        else:
            self.w = cubic

    def _curve(self, t: Floats) -> Floats:
        return self.c * (t - self.k) ** 3 + self.w_max

    def mean(self, p: float, rtt_s: float) -> float:
        """The mean window with one loss in 1/p packets where the cubic part rules."""
        factor = (self.c * (3 + self.beta) / (4 * (1 - self.beta))) ** 0.25
        return float(factor * (rtt_s / p) ** 0.75)
