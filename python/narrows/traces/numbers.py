"""Reproducible random numbers: the stream is pinned, and the laws are implemented here.

numpy promises the raw output of a bit generator for a given seed, but not the draws of its distributions (NEP
19). Therefore only raw 64-bit words are used, and converted to uniform, exponential and normal numbers here
by inversion (Devroye, Non-Uniform Random Variate Generation, 1986, II.2) and by the method of Box and Muller
(1958). `log`, `cos` and `sin` may differ in the last bit between machines; generators of traces round their
output so that such a difference vanishes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


class Source:
    """A stream of random numbers (PCG64) that depends only on a seed and a name."""

    def __init__(self, seed: int, name: str) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence([seed, *name.encode()]))

    def uniform(self, count: int) -> Numbers:
        """Numbers in [0, 1), multiples of 2^-53."""
        words = np.asarray(self._bits.random_raw(count), dtype=np.uint64)
        numbers: Numbers = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return numbers

    def exponential(self, count: int) -> Numbers:
        """Exponential numbers with mean 1."""
        numbers: Numbers = -np.log1p(-self.uniform(count))
        return numbers

    def normal(self, count: int) -> Numbers:
        """Normal numbers with mean 0 and deviation 1."""
        pairs = self.uniform(2 * count)
        numbers: Numbers = np.sqrt(-2 * np.log1p(-pairs[::2])) * np.cos(2 * np.pi * pairs[1::2])
        return numbers
