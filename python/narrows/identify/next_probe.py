"""Which probe to run next: the one that is expected to tell most per second about what is still open.

The gain of a probe is the expected fall of the entropy of the name, in bits: the mean over the runs of the
library, weighted by the present probabilities of their schemes, of the entropy before less the entropy
after the probe's lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from narrows.documents.identify import Card
from narrows.identify.naming import NONE, Namer, best_of
from narrows.identify.trace import Floats


def estimate_gains(namer: Namer, card: Card | None, probes: Sequence[str]) -> dict[str, float]:
    """The gain of each probe, in bits, after the lines of a card; without one, from nothing."""
    trials = namer.trials
    prior = namer.shares(card)
    weight = namer.weight(card)
    before = _entropy(namer.by_name(prior[None, :]))[0]
    counts = np.bincount(trials.labels, minlength=len(prior))
    row_weights = prior[trials.labels] / counts[trials.labels]
    gains = {}
    for probe in probes:
        known = np.array([key[1] == probe for key in namer.model.keys])
        sums = trials.likeness.log_likelihood[:, :, known].sum(axis=2)
        with np.errstate(divide="ignore"):
            logarithms = np.log(prior)[None, :] + weight * sums
        after = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
        after /= after.sum(axis=1, keepdims=True)
        gains[probe] = float(
            before - (row_weights * _entropy(namer.by_name(after))).sum() / row_weights.sum()
        )
    return gains


def choose_probe(namer: Namer, card: Card | None, probes: Sequence[str], seconds: Mapping[str, float]) -> str:
    """The probe with the largest gain per second."""
    gains = estimate_gains(namer, card, probes)
    return max(probes, key=lambda probe: gains[probe] / seconds[probe])


def is_certain(namer: Namer, card: Card, certainty: float) -> bool:
    """True if a name has at least this probability. None of them is never certain before all probes ran: a
    few surprising lines, of a noisy machine or of a path at the edge of the library, would be enough for it.
    """
    naming = namer.name(card)
    if naming is None:
        return False
    name, probability = best_of(naming)
    return name != NONE and probability >= certainty


def _entropy(shares: Floats) -> Floats:
    """The entropy of each row, in bits."""
    logarithms = np.log2(np.where(shares > 0, shares, 1.0))
    return np.asarray(-(shares * logarithms).sum(axis=1))
