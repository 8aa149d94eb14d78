"""`python -m validation identify-names`: how often names are right.

Each native scheme of bulk traffic is simulated on all probes, on paths and with seeds that the library does
not have. Each card is named twice: by the library, and by the library without the family of its scheme.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated

from msgspec import structs

from narrows.cli.parameters import option
from narrows.console import say
from narrows.documents.identify import Card, Naming
from narrows.identify.features import PROBES
from narrows.identify.naming import NONE, Namer, best_of
from narrows.identify.next_probe import choose_probe, is_certain
from narrows.identify.probe_paths import SPREAD, PathFactors
from narrows.identify.reference_library import read_library
from narrows.identify.references import list_native
from narrows.identify.running import DEFAULT_CERTAINTY, length_s, load_probes
from narrows.identify.scheme_families import family_of, name_of
from narrows.identify.simulated_cards import simulate_card
from narrows.scenario.overrides import Override
from validation.identify.study import LINUX, Trial, report, write_page

#: The library's seeds begin at 2000.
FIRST_SEED = 9101
#: Paths outside those of the library.
OUTSIDE = {
    "half the rate": PathFactors(rate=0.5),
    "twice the rate": PathFactors(rate=2),
    "half the round trip": PathFactors(rtt=0.5),
    "twice the round trip": PathFactors(rtt=2),
    "half the buffer": PathFactors(buffer=0.5),
    "twice the buffer": PathFactors(buffer=2),
    "2 ms of jitter": PathFactors(jitter_ms=2),
}


def run(
    seeds: Annotated[int, option("--seeds", min=1, help="Runs of each scheme.")] = 10,
    spread: Annotated[
        float, option("--spread", min=0.0, max=0.9, help="Paths differ from the probes by up to this share.")
    ] = SPREAD,
    schemes: Annotated[
        list[str] | None, option("--scheme", metavar="NAME", help="Only this scheme. Repeatable.")
    ] = None,
    outside: Annotated[
        int,
        option("--outside", min=0, help="Runs of each algorithm of Linux on each path outside the library."),
    ] = 0,
    page: Annotated[
        Path | None, option("--page", metavar="FILE", help="Write the page of the study in Markdown.")
    ] = None,
) -> None:
    """Name simulated senders on paths around the probes, and count how often the name is right."""
    chosen = schemes or list_native()
    trials: list[Trial] = []
    for scheme in chosen:
        say(scheme)
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            trials.append(_try(scheme, seed, PathFactors.from_seed(seed, spread)))
    for path, factors in OUTSIDE.items() if outside else ():
        say(path)
        for scheme in [name for name in LINUX if name in chosen]:
            for seed in range(FIRST_SEED, FIRST_SEED + outside):
                trials.append(_try(scheme, seed, factors, path))
    print("\n\n".join(report(trials)))
    if page is not None:
        write_page(page, trials, _namer(None))


def _try(scheme: str, seed: int, factors: PathFactors, path: str = "") -> Trial:
    """Simulates a card and names it."""
    began = time.process_time()
    return name_card(scheme, seed, simulate_card(scheme, seed, factors), began, path)


def name_card(scheme: str, seed: int, card: Card, began_s: float, path: str = "") -> Trial:
    """The trial of a card, of which the simulation began at this processor time."""
    closed = _name(_namer(None), card)
    seconds = time.process_time() - began_s
    without = _name(_namer(family_of(name_of(scheme))), card)
    early, probes = _stop_early(_namer(None), card)
    return Trial(scheme, seed, closed, without, path, seconds, early, probes)


def _stop_early(namer: Namer, card: Card) -> tuple[tuple[str, float], int]:
    """The name of a card by the probes that `narrows identify` would have run, and their number."""
    remaining, seconds = list(PROBES), _lengths_s()
    part: Card | None = None
    while remaining and (part is None or not is_certain(namer, part, DEFAULT_CERTAINTY)):
        remaining.remove(choose_probe(namer, part, remaining, seconds))
        part = structs.replace(card, lines=[line for line in card.lines if line.probe not in remaining])
    return _name(namer, card if part is None else part), len(PROBES) - len(remaining)


@cache
def _lengths_s() -> dict[str, float]:
    loaded, _ = load_probes(PROBES, [Override("WHAT", "schemes", "[reno]")])
    return {probe: length_s(scenario) for probe, scenario in loaded.items()}


@cache
def _namer(without: str | None) -> Namer:
    """Names by the library, or by what is left of it without a family."""
    library = read_library()
    rows = [row for row in library.references if family_of(name_of(row.scheme)) != without]
    return Namer(replace(library, references=rows))


def _name(namer: Namer, card: Card) -> tuple[str, float]:
    naming: Naming | None = namer.name(card)
    return best_of(naming) if naming is not None else (NONE, 1.0)
