"""The short answer of a campaign: what its runs show, and nothing beyond that.

Every order comes from `narrows compare` (`narrows.comparison`), with its bound on false claims: rows are
compared only if they met the same conditions, a single run shows no order, and rows without a shown
difference have none. The sentences are made from `Leaders` alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from narrows.analysis.metrics import show_amount
from narrows.campaign.conditions import Row
from narrows.comparison.leaders import Leaders, leaders_of
from narrows.comparison.sides import Side
from narrows.documents.comparison import Comparison
from narrows.errors import NarrowsError
from narrows.report import prose, real_path
from narrows.report.data import Campaign
from narrows.statistics.runs import FEWEST_FOR_INTERVAL
from narrows.text import any_of, plural

#: With more pairs of rows than this, the short answer makes no comparison.
MOST_PAIRS = 2000
#: A sentence names up to this many rows, and combinations of conditions; the others are counted.
_MOST_NAMED, _MOST_COMBINATIONS = 4, 4
#: Up to this many rows, values are listed if nothing can be compared.
_MOST_ALONE = 6
#: The metrics of the answer: in each line the first one that has values.
_RATES = ("throughput_bps", "goodput_bps")
_DELAYS = ("delay_p95_ns", "rtt_p95_ns")


@dataclass(frozen=True)
class Answer:
    """Sentences, and their sources."""

    sentences: list[str]
    leaders: list[Leaders] = field(default_factory=list)


def compare_rows(folder: Path, side: Side | None = None) -> Comparison | str:
    """The comparison of a campaign's rows in the form of `narrows compare`, or the reason why there is none.
    `side` is the campaign, if it is already open.
    """
    from narrows.comparison.document import Request, compare

    try:
        return compare(Request([folder], traces=False, most_pairs=MOST_PAIRS, sides=(side,) if side else ()))
    except NarrowsError as error:
        return str(error).removeprefix(f"{folder}: ")


def answer(campaign: Campaign, compared: Comparison | str | None = None) -> Answer:
    """The answer that the numbers support, with its limits; invalid runs are excluded. `compared` is the
    comparison of the rows, if it already exists.
    """
    metrics = _metrics(campaign)
    if not campaign.runs:
        return Answer(["No run was started, so this campaign has no answer."])
    medians = {name: _medians(campaign, name) for name in metrics}
    rows = list(dict.fromkeys(label for own in medians.values() for label in own))
    if not rows:
        return Answer(["No run is valid, so this campaign has no answer; the verdicts below say why."])
    caveat = _caveat(campaign, rows)
    if len(rows) == 1:
        return Answer([_alone(campaign, rows[0], medians), caveat])
    if compared is None:
        compared = compare_rows(campaign.folder)
    if isinstance(compared, str):
        # The rest of a sentence is advice about the command line.
        why = re.split("; name another campaign|; if that is what you compare", compared)[0].rstrip(".")
        why = f"the campaign {why}" if why.startswith("has ") else why
        values = [_alone(campaign, row, medians) for row in rows[:_MOST_ALONE]]
        return Answer([*values, f"No order of the schemes is shown: {why}.", caveat])
    leaders = [item for item in leaders_of(compared, metrics) if len(item.medians) > 1]
    if not any(leader.first for leader in leaders):
        return Answer([_nothing(campaign, rows), caveat], leaders)
    sentences = [
        _sentence(campaign, metric, own)
        for metric in metrics
        if (own := [leader for leader in leaders if leader.metric == metric and leader.first])
    ]
    return Answer([*sentences, *_limits(compared, leaders), caveat], leaders)


def _metrics(campaign: Campaign) -> list[str]:
    step = -1 if real_path.only_ends(campaign) else 1
    known = ([name for name in names[::step] if name in campaign.measured] for names in (_RATES, _DELAYS))
    return [names[0] for names in known if names]


def _medians(campaign: Campaign, metric: str) -> dict[str, float]:
    """The median of each row that has one, as in every table."""
    medians = {}
    for label in campaign.schemes:
        median = campaign.median(label, "all", metric)
        if median is not None:
            medians[label] = float(median)
    return medians


def _amount(campaign: Campaign, metric: str, value: float) -> str:
    return show_amount(value, campaign.quantity(metric))


def _label(campaign: Campaign, metric: str) -> str:
    return campaign.quantity(metric).label


def _better(campaign: Campaign, metric: str) -> str | None:
    known = campaign.metric(metric)
    return None if known is None else known.better


def _superlative(campaign: Campaign, metric: str) -> str:
    word = "Lowest" if _better(campaign, metric) == "lower" else "Highest"
    return f"{word} {_label(campaign, metric)}"


def _alone(campaign: Campaign, row: str, medians: Mapping[str, Mapping[str, float]]) -> str:
    parts = [
        f"{_label(campaign, name)} {_amount(campaign, name, own[row])}"
        for name, own in medians.items()
        if row in own
    ]
    return f"{row}: {', '.join(parts)}."


def _nothing(campaign: Campaign, rows: Sequence[str]) -> str:
    """Why no order of several rows is shown."""
    most = max(len([run for run in campaign.of_scheme(row) if run.valid]) for row in rows)
    if most == 1:
        return "There is one valid run of each scheme, which shows no order among them."
    if most < FEWEST_FOR_INTERVAL:
        return (
            f"{plural(most, 'valid run')} of each scheme cannot show an order: it takes at least"
            f" {FEWEST_FOR_INTERVAL}."
        )
    return "No order of the schemes is shown: too few of them have enough valid runs."


def _sentence(campaign: Campaign, metric: str, leaderses: Sequence[Leaders]) -> str:
    what = _superlative(campaign, metric)
    if len(leaderses) == 1:
        return f"{what}: {_one_place(campaign, metric, leaderses[0])}."
    grouped: dict[tuple[str, ...], list[Leaders]] = {}
    for leaders in leaderses:
        names = tuple(_name(campaign, label) for label in leaders.first) if leaders.best else ()
        grouped.setdefault(names, []).append(leaders)
    shown = sorted((item for item in grouped.items() if item[0]), key=lambda item: -len(item[1]))
    parts = [
        f"{names[0]} {_how_many(own, leaderses)} ({_places(campaign, metric, own)})"
        for names, own in shown[:_MOST_NAMED]
    ]
    if len(shown) > _MOST_NAMED:
        parts.append(f"others in {sum(len(own) for _, own in shown[_MOST_NAMED:])}")
    if unsettled := grouped.get(()):
        parts.append(f"open {_how_many(unsettled, leaderses)} ({_open_places(campaign, unsettled)})")
    return f"{what} by {_names_of_conditions(leaderses)}, {len(leaderses)} combinations: {'; '.join(parts)}."


def _how_many(own: Sequence[Leaders], leaderses: Sequence[Leaders]) -> str:
    return "in all" if len(own) == len(leaderses) else f"in {len(own)}"


def _one_place(campaign: Campaign, metric: str, leaders: Leaders) -> str:
    """Names the first row if all met the same conditions."""
    amounts = {label: _amount(campaign, metric, leaders.medians[label]) for label in leaders.medians}
    if leaders.best:
        other = next((name for name in _metrics(campaign) if name != metric), None)
        beside = _medians(campaign, other).get(leaders.best) if other else None
        text = f" ({_label(campaign, other)} {_amount(campaign, other, beside)})" if other and beside else ""
        return f"{leaders.best} with {amounts[leaders.best]}{text}"
    if not leaders.behind:
        low, high = min(leaders.medians.values()), max(leaders.medians.values())
        span = f"{_amount(campaign, metric, low)} to {_amount(campaign, metric, high)}"
        return f"open, since no order is shown among {plural(len(leaders.first), 'scheme')} ({span})"
    listed = [f"{label} ({amounts[label]})" for label in leaders.first[:_MOST_NAMED]]
    if len(leaders.first) > _MOST_NAMED:
        listed.append(f"{len(leaders.first) - _MOST_NAMED} more")
    rest = f"the other {len(leaders.behind)} are" if len(leaders.behind) > 1 else f"{leaders.behind[0]} is"
    word = "higher" if _better(campaign, metric) == "lower" else "lower"
    return f"open among {', '.join(listed[:-1])} and {listed[-1]}; {rest} shown to be {word}"


def _places(campaign: Campaign, metric: str, leaderses: Sequence[Leaders]) -> str:
    if len(leaderses) > _MOST_COMBINATIONS:
        values = [leaders.medians[leaders.first[0]] for leaders in leaderses]
        return f"{_amount(campaign, metric, min(values))} to {_amount(campaign, metric, max(values))}"
    return "; ".join(
        f"{_where(campaign, leaders)}: {_amount(campaign, metric, leaders.medians[leaders.first[0]])}"
        for leaders in leaderses
    )


def _open_places(campaign: Campaign, leaderses: Sequence[Leaders]) -> str:
    """Names the candidates for the first place if it is undecided; combinations with the same schemes
    together.
    """
    grouped: dict[str, list[Leaders]] = {}
    for leaders in leaderses:
        names = [_name(campaign, label) for label in leaders.first]
        who = any_of(names) if len(names) <= _MOST_NAMED else f"{len(names)} schemes"
        grouped.setdefault(who, []).append(leaders)
    if len(grouped) == 1:
        return next(iter(grouped))
    parts = [
        f"{who}: {_where(campaign, own[0]) if len(own) == 1 else len(own)}" for who, own in grouped.items()
    ]
    more = len(parts) - _MOST_COMBINATIONS
    return "; ".join(parts[:_MOST_COMBINATIONS]) + (f"; and {more} more" if more > 0 else "")


def _name(campaign: Campaign, label: str) -> str:
    return _rows(campaign)[label].scheme


def _where(campaign: Campaign, leaders: Leaders) -> str:
    shared = _common_conditions(campaign)
    return ", ".join(f"{name} {value}" for name, value in leaders.conditions.items() if name not in shared)


def _names_of_conditions(leaderses: Sequence[Leaders]) -> str:
    names = dict.fromkeys(name for leaders in leaderses for name in leaders.conditions)
    varied = [name for name in names if len({leaders.conditions.get(name) for leaders in leaderses}) > 1]
    return " and ".join(varied)


def _rows(campaign: Campaign) -> Mapping[str, Row]:
    return campaign.rows


def _common_conditions(campaign: Campaign) -> dict[str, str]:
    rows = [dict(row.values) for row in campaign.rows.values()]
    first = rows[0] if rows else {}
    return {name: value for name, value in first.items() if all(row.get(name) == value for row in rows)}


def _limits(compared: Comparison, leaders: Sequence[Leaders]) -> list[str]:
    """The certainty of an order, and the rows without a place."""
    limits = []
    if any(leader.best or leader.behind for leader in leaders):
        if all(leader.exact for leader in leaders if leader.behind):
            limits.append("All runs of a scheme are identical, so the order is exact for this set-up.")
        else:
            limits.append(
                f"An order is one that narrows compare shows: the chance that any of its {compared.tests}"
                " comparisons claims a difference where there is none is at most"
                f" {compared.error_rate * 100:g} %."
            )
    unjudged = dict.fromkeys(
        label for leader in leaders for label in leader.unjudged if label in leader.medians
    )
    if unjudged:
        names = list(unjudged)
        some = ", ".join(names[:_MOST_NAMED]) + (
            f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        )
        limits.append(f"Not ranked, with too few valid runs: {some}.")
    return limits


def _caveat(campaign: Campaign, rows: Sequence[str]) -> str:
    counts = sorted({len([run for run in campaign.of_scheme(row) if run.valid]) for row in rows})
    least, most = counts[0], counts[-1]
    amount = plural(least, "valid run") if least == most else f"{least} to {most} valid runs"
    if most == 1:
        text = f"Each number comes from {amount}, so nothing is known about how much it varies."
    elif least < FEWEST_FOR_INTERVAL:
        text = f"Each number is the median of {amount} per scheme, too few for an interval."
    else:
        text = f"Each number is the median of {amount} per scheme; the table has the intervals."
    if problems := prose.problem_counts(campaign):
        text += f" Not in these numbers: {problems}."
    degraded = sum(1 for r in campaign.runs if r.valid and r.verdict == "degraded")
    if degraded:
        are, were = ("is", "was") if degraded == 1 else ("are", "were")
        text += f" {plural(degraded, 'run')} that {are} counted {were} judged degraded."
    return text
