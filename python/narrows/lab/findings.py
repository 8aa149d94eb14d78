"""The findings in a table of values, as sentences: the highest and the lowest, changes of rank between
conditions, and orders that hold in all of them. Ties share a place, and so do values of single runs that
differ by less than chance; values that are missing, or negative without reason, are named and not ranked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations, pairwise

from narrows.text import plural

#: For each condition, the values by scheme; None if missing.
Table = Mapping[str, Mapping[str, float | None]]
#: For each condition, the schemes whose values are of a single run.
Single = Mapping[str, Collection[str]]
#: Single runs that differ by less than this share of the larger value have no order: chance moves the
#: throughput of a run by 1 to 2 %.
ALIKE = 0.01
#: Up to this many statements about pairs are written out; the others are counted.
_MOST_PAIRS = 6
#: Up to this many conditions are named; the others are counted.
_MOST_NAMES = 5


def findings(
    label: str, table: Table, show: Callable[[float], str], single: Single | None = None
) -> list[str]:
    """Sentences about one column; `label` is its name within a sentence, `show` formats a value with its
    unit, and `single` names the values of single runs.
    """
    single = single or {}
    usable = {
        case: {name: value for name, value in row.items() if _is_usable(value)} for case, row in table.items()
    }
    ranked = {case: _in_order(row, single.get(case, ())) for case, row in usable.items() if len(row) > 1}
    texts = []
    # If all values are equal, there is no first or last.
    differing = {case: order for case, order in ranked.items() if len(order) > 1}
    if differing:
        texts.append(_ends(f"Highest {label}", differing, usable, 0, show))
        texts.append(_ends(f"Lowest {label}", differing, usable, -1, show))
    if len(ranked) > 1:
        texts += [_always(label, ranked), *_changes(label, ranked)]
    return [*texts, *_ties(label, ranked, usable), *_missing(label, table), *_negative(label, table, show)]


def _is_usable(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value >= 0


def _in_order(row: Mapping[str, float | None], single: Collection[str] = ()) -> list[list[str]]:
    """The schemes from the highest value to the lowest; those with equal values together, and those of single
    runs that are alike with the highest of them.
    """
    values = {name: value for name, value in row.items() if value is not None}
    groups: list[list[str]] = []
    for name in sorted(values, key=lambda name: -values[name]):
        highest = groups[-1][0] if groups else name
        alike = ALIKE if name in single and highest in single else 0.0
        if groups and values[highest] - values[name] <= alike * abs(values[highest]):
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def ranks(row: Mapping[str, float | None]) -> dict[str, float]:
    """The rank of each scheme with a usable value, 1 for the highest; ties have the mean of the ranks that
    they share.
    """
    by_name: dict[str, float] = {}
    place = 1
    for group in _in_order({name: value for name, value in row.items() if _is_usable(value)}):
        by_name |= dict.fromkeys(group, place + (len(group) - 1) / 2)
        place += len(group)
    return by_name


def _some(names: Sequence[str]) -> str:
    """The first few of many names, and the number of the others."""
    between = "; " if any("," in name for name in names) else ", "
    if len(names) <= _MOST_NAMES:
        return between.join(names)
    return f"{between.join(names[: _MOST_NAMES - 1])} and {len(names) - _MOST_NAMES + 1} more"


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _in_all(conditions: int) -> str:
    return "in both conditions" if conditions == 2 else f"in all {conditions} conditions"


def _ends(
    what: str,
    ranked: Mapping[str, Sequence[Sequence[str]]],
    usable: Table,
    place: int,
    show: Callable[[float], str],
) -> str:
    """Names the first or the last, case by case or for all of them."""
    cases: dict[str, list[str]] = {}
    for case, order in ranked.items():
        cases.setdefault(_join(order[place]), []).append(case)
    if len(cases) == 1:
        (names, of), values = (
            next(iter(cases.items())),
            [usable[case][order[place][0]] for case, order in ranked.items()],
        )
        numbers = [value for value in values if value is not None]
        low, high = show(min(numbers)), show(max(numbers))
        amount = low if low == high else f"{low} to {high}"
        return f"{what}: {names} ({amount}){'' if len(of) == 1 else f' {_in_all(len(of))}'}."
    parts = [
        f"{names} in {len(of)} of {len(ranked)} conditions ({_some(of)})"
        for names, of in sorted(cases.items(), key=lambda entry: -len(entry[1]))
    ]
    return f"{what}: {'; '.join(parts)}."


def _above(ranked: Mapping[str, Sequence[Sequence[str]]]) -> list[tuple[str, str]]:
    """Pairs of schemes of which the first ranks above the second in every condition, and both have a rank in
    each.
    """
    places = [
        {name: place for place, group in enumerate(order) for name in group} for order in ranked.values()
    ]
    common = [name for name in places[0] if all(name in place for place in places)]
    pairs = []
    for text, other in combinations(common, 2):
        if all(place[text] < place[other] for place in places):
            pairs.append((text, other))
        elif all(place[text] > place[other] for place in places):
            pairs.append((other, text))
    return pairs


def _always(label: str, ranked: Mapping[str, Sequence[Sequence[str]]]) -> str:
    pairs = _above(ranked)
    names = list(dict.fromkeys(name for order in ranked.values() for group in order for name in group))
    every = len(names) * (len(names) - 1) // 2
    where = _in_all(len(ranked))
    if not pairs:
        return f"No two schemes have the same order of {label} {where}."
    if len(pairs) == every:
        order = sorted(names, key=lambda name: -sum(first == name for first, _ in pairs))
        return f"The order of {label} is the same {where}: {' > '.join(order)}."
    shown = ", ".join(f"{first} > {second}" for first, second in _nearest(pairs)[:_MOST_PAIRS])
    counts = f"{len(pairs)} of {plural(every, 'pair')}"
    return f"Constant orders of {label} {where}: {counts} keep their order, such as {shown}."


def _nearest(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs that do not follow from two others, to say the same in fewer words."""
    known = set(pairs)
    names = {name for pair in pairs for name in pair}
    return [
        (first, second)
        for first, second in pairs
        if not any((first, middle) in known and (middle, second) in known for middle in names)
    ]


def _changes(label: str, ranked: Mapping[str, Sequence[Sequence[str]]]) -> list[str]:
    """The scheme whose rank changes most, and the conditions between which the order changes most."""
    places: dict[str, dict[str, float]] = {}
    for case, order in ranked.items():
        size = len(order)
        row = {name: float(size - place) for place, group in enumerate(order) for name in group}
        places[case] = ranks(row)
    names = dict.fromkeys(name for row in places.values() for name in row)
    spans = {name: [(row[name], case) for case, row in places.items() if name in row] for name in names}
    name, of = max(spans.items(), key=lambda entry: max(entry[1])[0] - min(entry[1])[0])
    (low, best), (high, worst) = min(of), max(of)
    if low == high:
        return []
    texts = [f"The rank of {name} in {label} changes most: {low:g} in {best}, {high:g} in {worst}."]
    moves = []
    for one, other in pairwise(places):
        both = [name for name in places[one] if name in places[other]]
        moves.append((sum(abs(places[one][name] - places[other][name]) for name in both), one, other))
    if len(moves) > 1:
        most, one, other = max(moves, key=lambda move: move[0])
        if most:
            texts.append(f"The order of {label} changes most from {one} to {other}.")
    return texts


def _ties(label: str, ranked: Mapping[str, Sequence[Sequence[str]]], usable: Table) -> list[str]:
    equal: dict[str, list[str]] = {}
    alike: dict[str, list[str]] = {}
    for case, order in ranked.items():
        for group in order:
            if len(group) > 1:
                tied = equal if len({usable[case][name] for name in group}) == 1 else alike
                tied.setdefault(_join(group), []).append(case)
    start = f"{label[:1].upper()}{label[1:]} within {100 * ALIKE:g} %, which single runs do not tell apart"
    return [
        *(f"Equal {label}: {names} ({_some(cases)})." for names, cases in equal.items()),
        *(f"{start}: {names} ({_some(cases)})." for names, cases in alike.items()),
    ]


def _missing(label: str, table: Table) -> list[str]:
    gone: dict[str, list[str]] = {}
    for case, row in table.items():
        for name, value in row.items():
            if value is None or not math.isfinite(value):
                gone.setdefault(name, []).append(case)
    if not gone:
        return []
    parts = [f"{name} ({_some(cases)})" for name, cases in gone.items()]
    return [f"No value of {label}: {'; '.join(parts)}."]


def _negative(label: str, table: Table, show: Callable[[float], str]) -> list[str]:
    parts = [
        f"{name} in {case} ({show(value)})"
        for case, row in table.items()
        for name, value in row.items()
        if value is not None and value < 0 and math.isfinite(value)
    ]
    if not parts:
        return []
    return [f"Negative {label}, which is not a measurement and not ranked: {'; '.join(parts)}."]
