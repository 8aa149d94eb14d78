"""Planted changes must be found from behaviour cards, and equal senders must not be told apart."""

from __future__ import annotations

import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Annotated

from narrows.cli.app import Group, subcommand
from narrows.cli.parameters import option
from narrows.documents.identify import Card
from narrows.identify.differences import compare_cards
from narrows.identify.features import LONG, SHORT
from narrows.identify.running import SIMULATE, Order, run_probes

#: The name of a change, the base, the changed sender, and the line that must differ.
CHANGES = (
    ("cubic, beta 0.7 to 0.75", "cubic", "{scheme: cubic, beta: 0.75}", "decrease"),
    ("bbr1, probe gain 1.25 to 1.5", "bbr1", "{scheme: bbr1, probe_gain: 1.5}", "gain"),
)
#: Schemes that are compared with themselves.
EQUAL = ("cubic", "bbr1")


def register(program: Group) -> None:
    """Adds the command to the program."""
    subcommand(program, "identify-changes", example="python -m validation identify-changes --seeds 2")(
        identify_changes
    )


def identify_changes(
    seeds: Annotated[int, option("--seeds", min=1, max=1000, help="Pairs of seeds for each change.")] = 10,
    runs: Annotated[int, option("--runs", min=4, max=1000, help="Runs of each probe.")] = 6,
) -> None:
    """Count how often --against finds planted changes, and differences between equal senders.

    The probes are those of the deep buffers, simulated; each comparison has new seeds on both sides.
    """
    with tempfile.TemporaryDirectory() as scratch:

        @cache
        def card(scheme: str, seed: int) -> Card:
            folder = Path(scratch) / f"{scheme}-{seed}"
            return run_probes(scheme, folder, Order(SIMULATE, runs, seed, probes=(LONG, SHORT)))

        for name, base, changed, line in CHANGES:
            hits = 0
            for seed in range(1, seeds + 1):
                made = compare_cards(card(base, seed), card(changed, 1000 + seed))
                hits += line in {item.name for item in made.lines}
            print(f"{name}: {line} differs in {hits} of {seeds}", flush=True)
        for scheme in EQUAL:
            wrong: Counter[str] = Counter()
            claims = 0
            for seed in range(1, seeds + 1):
                made = compare_cards(card(scheme, seed), card(scheme, 2000 + seed))
                claims += bool(made.lines)
                wrong.update(item.name for item in made.lines)
            names = ", ".join(f"{name} ({count})" for name, count in wrong.items())
            print(
                f"{scheme}, equal: differences in {claims} of {seeds}{': ' if names else ''}{names}",
                flush=True,
            )
