"""The gain of each probe for names: measured on the library, each part of its seeds named by the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from narrows.identify.calibration import Sums, fit_trials
from narrows.identify.features import PROBES
from narrows.identify.naming import Namer
from narrows.identify.trace import Bools
from narrows.text import markdown_table


@dataclass(frozen=True)
class Gain:
    """A probe, and shares of right names."""

    probe: str
    seconds: float
    lines: int
    #: With its lines alone.
    alone: float
    #: With all probes but it.
    without: float
    #: With it and those before it, in the order of the greatest share each.
    joined: float


def measure_gains(namer: Namer, seconds: Mapping[str, float]) -> tuple[list[Gain], float]:
    """The gain of each probe, in the order in which a greedy choice takes them, and the share of correct
    names with all probes."""
    lines = {probe: np.array([key[1] == probe for key in namer.model.keys]) for probe in PROBES}
    every = np.ones(len(namer.model.keys), bool)
    whole = _share_right(namer, every)
    order: list[Gain] = []
    taken = ~every
    # Probes that are younger than the library have no lines in it.
    left = [probe for probe in PROBES if lines[probe].any()]
    while left:
        shares = {probe: _share_right(namer, taken | lines[probe]) for probe in left}
        probe = max(left, key=shares.__getitem__)
        left.remove(probe)
        taken |= lines[probe]
        order.append(
            Gain(
                probe=probe,
                seconds=seconds[probe],
                lines=int(lines[probe].sum()),
                alone=_share_right(namer, lines[probe]),
                without=_share_right(namer, every & ~lines[probe]),
                joined=shares[probe],
            )
        )
    return order, whole


def _share_right(namer: Namer, known: Bools) -> float:
    """The share of the references with the right name among all answers, "none of these" included."""
    trials = namer.trials
    sums = Sums.from_likeness(trials.likeness, known)
    shares, none = fit_trials(trials, namer.same_family, known).probabilities(sums)
    by_name = namer.by_name(shares)
    names = sorted(set(namer.names))
    best = by_name.argmax(axis=1)
    right = [
        names[index] == namer.names[label] and by_name[row, index] >= none[row]
        for row, (index, label) in enumerate(zip(best, trials.labels, strict=True))
    ]
    return float(np.mean(right))


def table(gains: Sequence[Gain]) -> str:
    """The gains in Markdown."""
    return markdown_table(
        ["probe", "seconds", "lines", "alone", "with those above", "all but it"],
        [
            [
                f"`{gain.probe}`",
                f"{gain.seconds:g}",
                str(gain.lines),
                f"{100 * gain.alone:.0f} %",
                f"{100 * gain.joined:.1f} %",
                f"{100 * gain.without:.1f} %",
            ]
            for gain in gains
        ],
    )
