"""`python -m validation identify-changes`: planted changes, and equal senders, compared by their cards.

Cards are those of `narrows identify A --against B`: four runs of each probe, or of the chosen ones, simulated
with the noise of hosts, but with other seeds on each side. Equal senders are compared in pairs of cards that
the changes have already, and on request each native scheme with itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from narrows.cli.parameters import option
from narrows.console import say
from narrows.documents.identify import Card, Differences
from narrows.errors import UsageError
from narrows.identify.differences import LEVEL, compare_cards
from narrows.identify.features import PROBES
from narrows.identify.references import list_native
from narrows.identify.running import DEFAULT_RUNS, SIMULATE
from narrows.identify.simulated_cards import simulate_card
from narrows.text import markdown_table

#: The first seeds of unchanged senders, of changed ones, and of the pairs of all schemes.
FIRST_SEED, FIRST_CHANGED, FIRST_PAIR = 4001, 5001, 6001


@dataclass(frozen=True)
class Change:
    """A planted change: both senders in the notation of scenarios, and the line that must differ."""

    base: str
    changed: str
    title: str
    line: str


CHANGES = (
    Change("cubic", "{scheme: cubic, beta: 0.75}", "beta 0.75 instead of 0.7", "decrease"),
    Change("bbr1", "{scheme: bbr1, probe_gain: 1.5}", "probe gain 1.5 instead of 1.25", "gain"),
    Change("{scheme: reno, transport: {pacing: window}}", "reno", "no pacing", "bursts"),
)


def run(
    seeds: Annotated[int, option("--seeds", min=2, max=900, help="Pairs of seeds for each change.")] = 10,
    runs: Annotated[int, option("--runs", min=1, max=1000, help="Runs of each probe.")] = DEFAULT_RUNS[
        SIMULATE
    ],
    probes: Annotated[
        list[str] | None,
        option("--probe", metavar="PROBE", help="Only this probe. Repeatable. [default: all]"),
    ] = None,
    every: Annotated[bool, option("--every", help="Compare each native scheme with itself too.")] = False,
) -> None:
    """Count how often --against finds planted changes, and differences between equal senders."""
    chosen = probes or list(PROBES)
    if unknown := next((probe for probe in chosen if probe not in PROBES), None):
        raise UsageError(f"--probe {unknown}: probes are {', '.join(PROBES)}")
    rows: list[list[str]] = []
    equal: dict[str, list[Differences]] = {}
    for change in CHANGES:
        say(f"{change.base}: {change.title}")
        base = [_card(change.base, FIRST_SEED + number, chosen, runs) for number in range(seeds)]
        changed = [_card(change.changed, FIRST_CHANGED + number, chosen, runs) for number in range(seeds)]
        rows.append(_row(change, base, changed))
        say(", ".join(rows[-1]))
        equal[change.base] = _compare_pairs(base)
        equal[change.changed] = _compare_pairs(changed)
    print(markdown_table(["sender", "change", "line", "found", "lines that differ", "before", "after"], rows))
    print(_table_of_equal(equal), flush=True)
    if every:
        pairs: dict[str, list[Differences]] = {}
        for scheme in list_native():
            say(scheme)
            pairs[scheme] = _compare_pairs(
                [_card(scheme, FIRST_PAIR + side, chosen, runs) for side in (0, 1)]
            )
        print(_table_of_equal(pairs))


def _card(scheme: str, seed: int, probes: Sequence[str], runs: int) -> Card:
    return simulate_card(scheme, seed, probes=probes, runs=runs)


def _row(change: Change, base: Sequence[Card], changed: Sequence[Card]) -> list[str]:
    made = [compare_cards(first, second) for first, second in zip(base, changed, strict=True)]
    hits = sum(change.line in {item.name for item in item.lines} for item in made)
    numbers = sorted(len(item.lines) for item in made)
    return [
        f"`{change.base}`",
        change.title,
        change.line,
        f"{hits} of {len(made)}",
        f"{numbers[0]} to {numbers[-1]}",
        _range(base, change.line),
        _range(changed, change.line),
    ]


def _range(cards: Sequence[Card], name: str) -> str:
    """The smallest and the largest value of the first measured probe of a line in several cards."""
    probe = next(line.probe for line in cards[0].lines if line.name == name and line.value is not None)
    values = [
        float(line.value)
        for card in cards
        for line in card.lines
        if line.key == (name, probe) and line.value is not None
    ]
    return f"{min(values):.3f} to {max(values):.3f}"


def _compare_pairs(cards: Sequence[Card]) -> list[Differences]:
    """The differences of the first card from the second, the third from the fourth, and so on."""
    return [compare_cards(first, second) for first, second in zip(cards[::2], cards[1::2], strict=False)]


def _table_of_equal(equal: dict[str, list[Differences]]) -> str:
    """How often anything is claimed about equal senders, by sender and in all."""
    rows = []
    for scheme, made in equal.items():
        names = Counter(f"{line.name} on {line.probe}" for item in made for line in item.lines)
        told = ", ".join(f"{name} ({count})" for name, count in names.items())
        rows.append([f"`{scheme}`", str(len(made)), str(sum(bool(item.lines) for item in made)), told])
    comparisons = sum(len(made) for made in equal.values())
    claims = sum(bool(item.lines) for made in equal.values() for item in made)
    rows.append([f"all; stated: {100 * LEVEL:g} %", str(comparisons), str(claims), ""])
    return markdown_table(["equal senders", "comparisons", "with a difference", "lines"], rows)
