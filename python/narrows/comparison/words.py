"""The wording of a comparison: differences, verdicts and sentences, the same in the terminal, in Markdown and
in HTML.
"""

from __future__ import annotations

from collections.abc import Sequence

from narrows.analysis.metrics import NOT_AVAILABLE, four_digits, head_of, show_number, unit_of
from narrows.analysis.verdicts import runs_in_words
from narrows.comparison.findings import BETTER, CLAIMS, MISSING, SAME, TOO_FEW, WORSE
from narrows.comparison.setups import CIRCUMSTANCE, CONDITION, SCHEME
from narrows.comparison.sides import NO_SEEDS, OTHER_SEEDS
from narrows.documents.comparison import (
    ComparedMetric,
    ComparedRow,
    ComparedSample,
    Comparison,
    Envelope,
    Estimate,
    FrontierEntry,
    Rank,
    Ranks,
    SideFacts,
    Trace,
)
from narrows.documents.resolved import TRAINED_BY_NARROWS
from narrows.documents.results import Metric, Statistics
from narrows.scenario.expect import unit_of as unit_of_state
from narrows.text import any_of

#: Marks differences in the complete table.
MARKS = {WORSE: "!", BETTER: "*", "different": "#"}
_KINDS = {
    CONDITION: "conditions of the runs",
    SCHEME: "schemes and transport",
    CIRCUMSTANCE: "circumstances",
}
#: Notes name up to this many rows, and sentences this many flows; the others are counted.
_MOST_NAMED = 6


def show_signed(value: float, scale: float = 1.0, decimals: int = 1, *, exactly: bool = False) -> str:
    """A number with its sign: `-5.0`, `+0.3`; `exactly` adds enough digits to distinguish it from 0."""
    scaled = value * scale
    while exactly and decimals < 6 and scaled != 0 and round(scaled, decimals) == 0:
        decimals += 1
    text = f"{scaled:+.{decimals}f}"
    return text[1:] if float(text) == 0 else text


def _form(finding: ComparedMetric, metric: Metric) -> tuple[Estimate | None, float, str]:
    """The estimate to print, the factor to its unit, and the unit."""
    if finding.told_as == "relative":
        return finding.relative, 100.0, "%"
    unit = unit_of(metric)
    return finding.absolute, metric.show_scale, "pp" if unit == "%" else unit


def difference(finding: ComparedMetric, metric: Metric) -> str:
    """`-5.0 %`, `+0.12 pp` (percentage points), `N/A`; `=` where both sides are identical."""
    if finding.outcome == MISSING:
        return NOT_AVAILABLE
    if finding.outcome == SAME:
        return "="
    estimate, scale, unit = _form(finding, metric)
    if estimate is None:
        return NOT_AVAILABLE
    decimals = 1 if unit == "%" else _decimals(estimate.estimate * scale)
    number = show_signed(estimate.estimate, scale, decimals, exactly=finding.outcome in CLAIMS)
    return " ".join(part for part in (number, unit) if part)


def _decimals(scaled: float) -> int:
    """Decimals for three significant digits."""
    text = four_digits(abs(scaled))
    return max(0, len(text.partition(".")[2]) - 1)


def interval(finding: ComparedMetric, metric: Metric) -> str:
    """`[-5.6, -4.3]` is the 95 % interval of a difference, `-5.6 to -4.3` the smallest and largest of a few
    pairs."""
    estimate, scale, unit = _form(finding, metric)
    if finding.outcome in (MISSING, SAME) or estimate is None or estimate.kind == "unknown":
        return ""
    if finding.exact or estimate.kind == "identical":
        return "exact"
    decimals = 1 if unit == "%" else _decimals(estimate.estimate * scale)
    low, high = (show_signed(end, scale, decimals) for end in (estimate.low, estimate.high))
    return f"[{low}, {high}]" if estimate.kind == "interval" else f"{low} to {high}"


def verdict(finding: ComparedMetric) -> str:
    """The outcome in a few words, with `exact` if it is not subject to chance."""
    return (
        f"{finding.outcome}, exact" if finding.exact and finding.outcome in CLAIMS else str(finding.outcome)
    )


def show_marked(finding: ComparedMetric, metric: Metric) -> str:
    """A difference with its mark if it is shown, for the complete table."""
    return f"{difference(finding, metric)} {MARKS.get(finding.outcome, ' ')}"


def title_of(metric: Metric) -> str:
    """`throughput [Mbit/s]`."""
    unit = unit_of(metric)
    return f"{metric.label}{f' [{unit}]' if unit else ''}"


def value(summary: Statistics | None, metric: Metric) -> str:
    """The median of a side."""
    return show_number(None if summary is None else summary.median, metric)


def claims(document: Comparison) -> list[tuple[ComparedRow, Metric, ComparedMetric]]:
    """Row, metric and finding of everything that is shown: worse ones first, then better ones, each with the
    largest differences of a metric first.
    """
    order = {WORSE: 0, BETTER: 1}
    pairs = [
        (row, metric, row.metrics[metric.name])
        for metric in document.metrics
        for row in document.rows
        if row.metrics[metric.name].outcome in CLAIMS
    ]
    place = {metric.name: number for number, metric in enumerate(document.metrics)}

    def key(pair: tuple[ComparedRow, Metric, ComparedMetric]) -> tuple[float, ...]:
        _, metric, finding = pair
        estimate, scale, _ = _form(finding, metric)
        return (
            order.get(finding.outcome, 2),
            place[metric.name],
            -abs((estimate.estimate if estimate else 0) * scale),
        )

    return sorted(pairs, key=key)


def headline(document: Comparison) -> str:
    """The findings in one sentence."""
    counts = dict.fromkeys(CLAIMS, 0)
    for row in document.rows:
        for finding in row.metrics.values():
            if finding.outcome in counts:
                counts[finding.outcome] += 1
    told = [
        f"{number} {word}" for word, number in ((WORSE, counts[WORSE]), (BETTER, counts[BETTER])) if number
    ]
    told += [f"{counts['different']} different"] if counts["different"] else []
    tests = document.tests
    of = f"{tests} comparisons" if tests != 1 else "1 comparison"
    if document.ranks is not None and any(counts.values()):
        schemes = len(samples(document))
        return f"{sum(counts.values())} of {tests} comparisons of {schemes} schemes show a difference."
    if told:
        number = sum(counts.values())
        return f"{number} of {of} {'shows' if number == 1 else 'show'} a difference: {', '.join(told)}."
    few = sum(f.outcome == TOO_FEW for row in document.rows for f in row.metrics.values())
    same = sum(f.outcome == SAME for row in document.rows for f in row.metrics.values())
    if same == tests:
        return f"All {of} are of identical numbers." if tests != 1 else "The numbers are identical."
    if few and few + same + _missing(document) == tests:
        return f"{of} {'shows' if tests == 1 else 'show'} nothing: there are too few runs."
    return f"No difference is shown by {of}."


def _missing(document: Comparison) -> int:
    return sum(f.outcome == MISSING for row in document.rows for f in row.metrics.values())


def method(document: Comparison) -> list[str]:
    """The certainty of the claims, and the meaning of the numbers."""
    texts = []
    tested = [f for row in document.rows for f in row.metrics.values() if f.p is not None]
    rows = [row for row in document.rows if any(f.p is not None for f in row.metrics.values())]
    if tested:
        pairs = _span([row.runs or 0 for row in rows if row.paired])
        unpaired = {row.seeds for row in rows if not row.paired}
        ways = {
            f"{pairs} pairs of runs with the same seed": any(row.paired for row in rows),
            "runs of different seeds, which are not paired": OTHER_SEEDS in unpaired,
            "runs without a seed, which are not paired": NO_SEEDS in unpaired,
        }
        of = " and ".join(way for way, there in ways.items() if there)
        texts.append(
            f"If nothing differed, the chance that any of the {document.tests} comparisons claimed"
            " something would be"
            f" at most {document.error_rate * 100:g} %: permutation test of Westfall and Young at"
            f" {document.level * 100:g} %, over {of}. A difference that is not shown is not shown to be zero:"
            " the interval"
            " says how large it may be."
        )
    if any(f.exact for row in document.rows for f in row.metrics.values()):
        texts.append(
            "Exact: all runs of each side are identical, so the difference is not due to chance; it"
            " holds for this"
            " set-up, and nothing is known about others."
        )
    told = [f for row in document.rows for f in row.metrics.values() if f.absolute and not f.exact]
    if any(f.absolute is not None and f.absolute.kind == "interval" for f in told):
        texts.append(
            "Values are medians over valid runs; differences and their 95 % intervals are those of Hodges and"
            " Lehmann, each by itself."
        )
    elif told:
        texts.append("Values are medians over valid runs, differences the estimates of Hodges and Lehmann.")
    return texts


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers, default=0), max(numbers, default=0)
    return str(low) if low == high else f"{low} to {high}"


def provenance(document: Comparison) -> list[str]:
    """The rows whose models Narrows trained, in a sentence."""
    return [f"{some(document.own_models)}: {TRAINED_BY_NARROWS}"] if document.own_models else []


def notes(document: Comparison) -> list[str]:
    """The reasons why verdicts are missing, each once with the rows that it concerns."""
    grouped: dict[str, dict[str, None]] = {}
    metrics = {metric.name: metric for metric in document.metrics}
    for row in document.rows:
        whys: dict[str, list[str]] = {}
        for name, finding in row.metrics.items():
            if finding.why:
                whys.setdefault(str(finding.why), []).append(head_of(metrics[name]))
        for why, heads in whys.items():
            text = why if len(heads) == len(row.metrics) else f"{', '.join(heads)}: {why}"
            grouped.setdefault(text, {})[row_name(row, document)] = None
    every = len(document.rows)
    if document.uncompared:
        rows = document.uncompared
        word = f"{len(rows)} rows are" if len(rows) > 1 else f"{rows[0]} is"
        grouped.setdefault(
            f"{word} not compared: other conditions than those of {document.against} (--across network"
            " compares rows of other networks)",
            {},
        )
    alone = [
        f"only in {item.side}, and not compared (--pair ONE=OTHER would): {some(item.schemes)}"
        for item in document.unmatched
    ]
    return alone + [
        f"{'all rows' if len(names) == every > 1 else some(list(names))}: {text}" if names else text
        for text, names in grouped.items()
    ]


def some(names: Sequence[str]) -> str:
    """The names, or the first of them and the number of the others."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def row_name(row: ComparedRow, document: Comparison) -> str:
    """The name of a row, with the campaign where there are several."""
    if document.kind == "schemes":
        return f"{row.other.scheme} against {row.base.scheme}"
    return f"{row.title} in {row.other.side}" if len(document.sides) > 2 else str(row.title)


def side_line(side: SideFacts) -> str:
    """`results/x (first-look, simulate, 2026-11-24 05:36, narrows 0.1.0)`."""
    made = str(side.created_at or "").replace("T", " ")[:16]
    version = f"narrows {side.narrows}" if side.narrows else ""
    told = [part for part in (side.scenario, side.where, made, version) if part]
    waiting = side.pending
    unfinished = f"; {waiting} of {side.cells} runs are not finished" if waiting else ""
    return f"{side.folder} ({', '.join(map(str, told))}{unfinished})"


def set_up(document: Comparison) -> list[tuple[str, list[tuple[str, str]]]]:
    """The differences of the set-ups, by kind: their names, and the values on both sides."""
    result: dict[str, list[tuple[str, str]]] = {}
    for kind in (CONDITION, SCHEME, CIRCUMSTANCE):
        for difference in document.differences:
            if difference.kind != kind:
                continue
            first, second = difference.places
            of = f" (of {some(difference.schemes)})" if difference.schemes else ""
            result.setdefault(_KINDS[kind], []).append(
                (difference.what, f"{difference.base} {first}, {difference.other} {second}{of}")
            )
    return list(result.items())


def trace_sentences(document: Comparison) -> list[str]:
    """How long the states of senders agree, and what differs then."""
    texts = []
    for trace in document.traces or []:
        if trace.absent is not None:
            continue
        if not trace.flows:
            texts.append(f"{trace.title}: no run of the same number has states on both sides.")
        for flow in trace.flows[:_MOST_NAMED]:
            about = f"{trace.title}, run {flow.run}, flow {flow.flow}"
            within = f" within {trace.tolerance * 100:g} %" if trace.tolerance else ""
            if flow.at_s is None:
                texts.append(f"{about}: the states agree{within} to the end ({flow.samples} samples).")
                continue
            first, second = names_of(trace)
            values = [
                f"{v.name} is {_state(v.base, v.name)} for {first} and {_state(v.other, v.name)} for {second}"
                for v in flow.values
            ]
            texts.append(
                f"{about}: the states agree{within} until {flow.at_s:.3f} s; then {'; '.join(values)}."
            )
        if len(trace.flows) > _MOST_NAMED:
            more = len(trace.flows) - _MOST_NAMED
            texts.append(f"{trace.title}: {more} more flows are in the JSON document (--json).")
    return texts


def names_of(trace: Trace | Envelope) -> tuple[str, str]:
    """The words that distinguish the sides of a pairing: their campaigns, or their schemes."""
    names = trace.sides if trace.sides[0] != trace.sides[1] else trace.schemes
    return str(names[0]), str(names[1])


def _state(amount: float, name: str) -> str:
    _, unit, scale = unit_of_state(name)
    text = f"{amount * scale:.10g}" if scale == 1 else four_digits(amount * scale)
    return " ".join(part for part in (text, unit) if part)


def envelope_sentences(document: Comparison) -> list[str]:
    """The agreement of the performance envelopes of two implementations."""
    texts = []
    for envelope in document.envelopes or []:
        if (
            envelope.absent is not None
            or envelope.base is None
            or envelope.other is None
            or envelope.conformance is None
            or envelope.window_ns is None
        ):
            texts.append(f"{envelope.title}: no performance envelope: {envelope.absent}.")
            continue
        first, second = names_of(envelope)
        areas = (
            ""
            if not isinstance(envelope.overlap, float)
            else f", {envelope.overlap * 100:.0f} % of their area is common"
        )
        base, other = envelope.base, envelope.other
        texts.append(
            f"{envelope.title}: conformance {envelope.conformance:.2f} (points of either in the envelope of"
            " the other; windows"
            f" of {envelope.window_ns / 1e6:g} ms){areas}; in the middle {first} has"
            f" {four_digits(base.throughput_bps / 1e6)} Mbit/s at {four_digits(base.delay_ns / 1e6)}"
            " ms,"
            f" {second} {four_digits(other.throughput_bps / 1e6)} Mbit/s at"
            f" {four_digits(other.delay_ns / 1e6)} ms."
        )
    return texts


def limit_sentences(document: Comparison) -> list[str]:
    """The outcome of each limit."""
    texts = []
    for limit in document.limits:
        if limit.broken:
            names = [entry.scheme + (f" ({entry.why})" if entry.why else "") for entry in limit.by]
            texts.append(f"fails   {limit.limit}: {any_of(names).replace(' or ', ' and ')}")
        else:
            open_ones = f" (not decided for {some(limit.undecided)})" if limit.undecided else ""
            texts.append(f"holds   {limit.limit}{open_ones}")
    return texts


def rank(entry: Rank) -> str:
    """`1`, `2-4`: the possible ranks of a scheme."""
    if entry.first is None:
        return ""
    return str(entry.first) if entry.first == entry.last else f"{entry.first}-{entry.last}"


def on_frontier(entry: FrontierEntry) -> str:
    """`yes, 98 %`: by the medians, and in this share of resamples of the runs."""
    word = "yes" if entry.on else "no"
    return word if entry.support is None else f"{word}, {entry.support * 100:.0f} %"


def runs_of(sample: ComparedSample) -> str:
    """`10 ok`, `9 of 10, 1 invalid`, `skipped`."""
    return (
        "skipped"
        if sample.skipped and not sample.started
        else runs_in_words(sample.started, sample.finished, sample.valid, sample.degraded)
    )


def samples(document: Comparison) -> dict[str, ComparedSample]:
    """The samples of one campaign, by scheme."""
    return {sample.scheme: sample for row in document.rows for sample in (row.base, row.other)}


def entry_of(ranks: Ranks, scheme: str) -> Rank:
    """The entry of a scheme in the ranks of a metric; an empty one if it has no value there."""
    empty = Rank(scheme=scheme, first=None, last=None, summary=None)
    return next((rank for rank in ranks.schemes if rank.scheme == scheme), empty)


def without_values(scheme: str, values: str) -> str:
    """The label of a scheme without the matrix values, which are shown above it."""
    return scheme.removesuffix(f" ({values})") if values else scheme
