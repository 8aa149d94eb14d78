"""`python -m validation identify-names`: how often names are right.

Each native scheme of bulk traffic is simulated on all probes, on paths and with seeds that the library does
not have. Each card is named twice: by the library, and by the library without the family of its scheme.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Annotated

import numpy as np

from narrows.cli.parameters import option
from narrows.console import say
from narrows.documents.identify import Card, Naming
from narrows.identify.naming import NONE, Namer, best_of
from narrows.identify.probe_paths import SPREAD, PathFactors
from narrows.identify.reference_library import read_library
from narrows.identify.references import list_native
from narrows.identify.scheme_families import family_of, name_of
from narrows.identify.simulated_cards import simulate_card
from narrows.text import markdown_table

#: The library's seeds begin at 2000.
FIRST_SEED = 9001
#: A wrong name with more than this probability misleads.
MISLEADING = 0.8
#: Edges of stated probabilities in the table of reliability.
_EDGES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)


@dataclass(frozen=True)
class Trial:
    """A card of a scheme, and its names by the library with and without the scheme's family."""

    scheme: str
    seed: int
    closed: tuple[str, float]
    open: tuple[str, float]

    @property
    def is_named(self) -> bool:
        """True if its name is right."""
        return self.closed[0] == name_of(self.scheme)

    @property
    def is_in_family(self) -> bool:
        """True if the family of its name is right."""
        return self.closed[0] != NONE and family_of(self.closed[0]) == family_of(name_of(self.scheme))

    @property
    def is_refused(self) -> bool:
        """True if the library without its family calls it none of these."""
        return self.open[0] == NONE


def run(
    seeds: Annotated[int, option("--seeds", min=1, help="Runs of each scheme.")] = 10,
    spread: Annotated[
        float, option("--spread", min=0.0, max=0.9, help="Paths differ from the probes by up to this share.")
    ] = SPREAD,
    schemes: Annotated[
        list[str] | None, option("--scheme", metavar="NAME", help="Only this scheme. Repeatable.")
    ] = None,
) -> None:
    """Name simulated senders on paths around the probes, and count how often the name is right."""
    trials, seconds = [], []
    for scheme in schemes or list_native():
        say(scheme)
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            began = time.process_time()
            card = simulate_card(scheme, seed, PathFactors.from_seed(seed, spread))
            closed = _name(_namer(None), card)
            seconds.append(time.process_time() - began)
            trials.append(Trial(scheme, seed, closed, _name(_namer(family_of(name_of(scheme))), card)))
    print("\n\n".join(report(trials, seconds)))


@cache
def _namer(without: str | None) -> Namer:
    """Names by the library, or by what is left of it without a family."""
    library = read_library()
    rows = [row for row in library.references if family_of(name_of(row.scheme)) != without]
    return Namer(replace(library, references=rows))


def _name(namer: Namer, card: Card) -> tuple[str, float]:
    naming: Naming | None = namer.name(card)
    return best_of(naming) if naming is not None else (NONE, 1.0)


def report(trials: Sequence[Trial], seconds: Sequence[float]) -> Iterator[str]:
    """The tables of a study in Markdown."""
    count = len(trials)
    misled = [
        trial for trial in trials if not trial.is_in_family and trial.closed[0] != NONE
        and trial.closed[1] > MISLEADING
    ]  # fmt: skip
    misled_open = [trial for trial in trials if not trial.is_refused and trial.open[1] > MISLEADING]

    def share(part: int) -> str:
        return f"{100 * part / count:.1f} %"

    yield markdown_table(
        ["of cards", "share"],
        [
            ["right name", share(sum(trial.is_named for trial in trials))],
            ["right family", share(sum(trial.is_in_family for trial in trials))],
            [f"wrong family with more than {MISLEADING:g}", share(len(misled))],
            ["none of these, without the family in the library", share(sum(t.is_refused for t in trials))],
            [f"a name with more than {MISLEADING:g}, without it", share(len(misled_open))],
        ],
    )
    yield _reliability(trials)
    misses: dict[tuple[str, str], int] = {}
    for trial in trials:
        if not trial.is_named:
            key = (trial.scheme, trial.closed[0])
            misses[key] = misses.get(key, 0) + 1
    if misses:
        rows = [[scheme, name, str(number)] for (scheme, name), number in misses.items()]
        yield markdown_table(["scheme", "named", "cards"], rows)
    taken: dict[tuple[str, str], int] = {}
    for trial in trials:
        if not trial.is_refused:
            key = (trial.scheme, trial.open[0])
            taken[key] = taken.get(key, 0) + 1
    if taken:
        rows = [[scheme, name, str(number)] for (scheme, name), number in taken.items()]
        yield markdown_table(["scheme that the library lacks", "named", "cards"], rows)
    time_s = f"{np.median(seconds):.1f} s of processor time each (median), {max(seconds):.1f} s at most"
    yield f"{count} cards; {time_s}."


def _reliability(trials: Sequence[Trial]) -> str:
    """Stated probabilities of the first answer by the share of right ones, with and without the family."""
    stated, right = [], []
    for trial in trials:
        stated += [trial.closed[1], trial.open[1]]
        right += [trial.is_named, trial.is_refused]
    probability, correct = np.array(stated), np.array(right)
    rows = []
    for low, high in pairwise(_EDGES):
        inside = (probability > low) & (probability <= high)
        if inside.any():
            rows.append(
                [
                    f"{low:g} to {high:g}",
                    f"{probability[inside].mean():.2f}",
                    f"{correct[inside].mean():.2f}",
                    str(int(inside.sum())),
                ]
            )
    return markdown_table(["stated", "mean", "right", "answers"], rows)
