"""A card from records: every feature of every run becomes lines with intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from narrows.documents.identify import Card, Line, Span
from narrows.errors import DataError
from narrows.identify.estimates import estimate
from narrows.identify.features import COMBINED, FEATURES, PROBES, RANDOM_LOSS, Feature
from narrows.identify.logs import Log, read_any
from narrows.identify.responses import LossPoint, loss_point, loss_ratio
from narrows.identify.samples import NotMeasuredError, Sample
from narrows.identify.trace import Trace

#: Digits of numbers in the document: no feature is measured better.
_DIGITS = 6
_SIGNED = frozenset(
    feature.name for feature in (*FEATURES, *(feature for feature, _ in COMBINED)) if feature.is_signed
)


@dataclass(frozen=True)
class Runs:
    """The valid runs of one scheme on one scenario."""

    #: The scenario's name.
    probe: str
    folder: Path
    #: Folders of records, and the numbers of their runs.
    records: list[Path]
    numbers: list[int]
    #: Sentences about runs that are left out.
    notes: list[str] = field(default_factory=list)
    #: The log that takes the place of records.
    log: Log | None = None


@dataclass(frozen=True, slots=True)
class _Outcome:
    """A feature in one run: samples, or the reason for none."""

    cell: str
    samples: Sequence[Sample]
    why: str = ""


#: Outcomes of runs by line, which is without value here.
_Outcomes = dict[tuple[str, str], tuple[Line, list[_Outcome]]]


@dataclass(frozen=True)
class Measured:
    """The lines of one scheme on one scenario."""

    #: The scenario's name.
    probe: str
    folder: Path
    lines: list[Line]
    #: Sentences about runs that are left out, and about logs.
    notes: list[str]


def make_card(
    what: str,
    scheme: str,
    where: str,
    runs: Sequence[Runs],
    why_not: str,
    reasons: Mapping[str, str] | None = None,
) -> Card:
    """The card of a scheme from its runs on probes and other scenarios; `why_not` is the reason in lines of
    probes without runs, unless `reasons` has another one; if it is empty, these have no lines."""
    return join_lines(what, scheme, where, [measure_lines(group) for group in runs], why_not, reasons)


def join_lines(
    what: str,
    scheme: str,
    where: str,
    measured: Sequence[Measured],
    why_not: str,
    reasons: Mapping[str, str] | None = None,
) -> Card:
    """The same from lines that have been measured."""
    lines: list[Line] = []
    notes: list[str] = []
    by_probe = {group.probe: group for group in measured}
    for probe in [*PROBES, *(name for name in by_probe if name not in PROBES)]:
        if (group := by_probe.get(probe)) is not None:
            lines += group.lines
            notes += group.notes
        elif why := (reasons or {}).get(probe, why_not):
            lines += [_empty(feature, probe, why) for feature in _features_of(probe)]
    folders = [str(group.folder) for group in measured]
    return Card(what=what, scheme=scheme, where=where, folders=folders, lines=lines, notes=notes)


def measure_lines(group: Runs) -> Measured:
    """The lines of a scheme on a scenario. All its records are read."""
    outcomes, problems = _measure(group)
    lines = [_line(line, several) for line, several in sorted(outcomes.values(), key=_by_ratio)]
    if not outcomes:
        why = "none of its runs can be measured"
        lines = [_empty(feature, group.probe, why) for feature in _features_of(group.probe)]
    return Measured(group.probe, group.folder, lines, [*group.notes, *problems])


def _features_of(probe: str) -> list[Feature]:
    """The features that a probe shows; on other scenarios, those that need no particular path."""
    return [
        feature
        for feature in FEATURES
        if probe in feature.probes or (probe not in PROBES and feature.anywhere)
    ]


def _empty(feature: Feature, probe: str, why: str | None = None) -> Line:
    return Line(name=feature.name, title=feature.title, probe=probe, unit=feature.unit, why=why)


def _measure(group: Runs) -> tuple[_Outcomes, list[str]]:
    """The outcomes of all runs, one trace in memory at a time, and sentences about records that can't be
    measured."""
    outcomes: _Outcomes = {}
    problems: list[str] = []
    points: dict[int, list[LossPoint]] = {}
    for record, number in zip(group.records, group.numbers, strict=True):
        try:
            trace = read_any(group.log or record)
        except DataError as error:
            problems.append(str(error))
            continue
        problems += trace.about
        for feature in _features_of(group.probe):
            line = _variant(_empty(feature, group.probe), trace)
            _add(outcomes, line, trace.cell, partial(_measure_known, feature, trace))
        if group.probe == RANDOM_LOSS:
            points.setdefault(number, []).append(loss_point(trace))
    for number, several in points.items():
        for feature, measure in COMBINED:
            line = _empty(feature, RANDOM_LOSS)
            _add(outcomes, line, f"run {number}", partial(measure, several))
    return outcomes, problems


def _measure_known(feature: Feature, trace: Trace) -> Sequence[Sample]:
    for kind in feature.needs:
        if (why := trace.missing.get(kind)) is not None:
            raise NotMeasuredError(why)
    return feature.measure(trace)


def _variant(line: Line, trace: Trace) -> Line:
    """On the probe of random loss, a line for each ratio."""
    if line.probe != RANDOM_LOSS:
        return line
    percent = f"{100 * (loss_ratio(trace) or 0):g}"
    title = line.title.replace("random loss", f"{percent} % loss")
    return replace(line, name=f"{line.name}-{percent}", title=title)


def _by_ratio(outcome: tuple[Line, list[_Outcome]]) -> float:
    """Lines of ratios of loss by these; the sort leaves all others in their order before them."""
    ratio = outcome[0].name.rpartition("-")[2]
    return float(ratio) if ratio.replace(".", "", 1).isdecimal() else -1.0


def _add(outcomes: _Outcomes, line: Line, cell: str, measure: Callable[[], Sequence[Sample]]) -> None:
    _, several = outcomes.setdefault(line.key, (line, []))
    try:
        several.append(_Outcome(cell, measure()))
    except NotMeasuredError as error:
        several.append(_Outcome(cell, (), str(error)))


def _line(line: Line, outcomes: list[_Outcome]) -> Line:
    """A line from the outcomes of all runs. A feature that most runs lack is left out."""
    seen = [outcome for outcome in outcomes if outcome.samples]
    if len(seen) * 2 < len(outcomes) or not seen:
        why, count = Counter(outcome.why for outcome in outcomes if outcome.why).most_common(1)[0]
        return replace(
            line, why=why if count == len(outcomes) else f"{why} in {count} of {len(outcomes)} runs"
        )
    spans = [
        Span(
            value=sample.value if isinstance(sample.value, str) else _round(sample.value),
            from_s=_round(sample.start_s),
            to_s=_round(sample.end_s),
        )
        for sample in seen[0].samples
    ]
    count = sum(len(outcome.samples) for outcome in seen)
    line = replace(line, samples=count, runs=len(seen), cell=seen[0].cell, spans=spans)
    every = [sample for outcome in seen for sample in outcome.samples]
    words = Counter(sample.value for sample in every if isinstance(sample.value, str))
    if words:
        return replace(line, words=dict(words.most_common()))
    resolution = float(np.median([sample.resolution for sample in every]))
    made = estimate([[float(sample.value) for sample in outcome.samples] for outcome in seen])
    low, high = made.interval(resolution)
    if made.error is None:
        values = [float(sample.value) for sample in every]
        low, high = min(low, *values), max(high, *values)
    if line.name not in _SIGNED:
        # All other features are amounts, and none is negative.
        low = max(0.0, low)
    return replace(
        line,
        value=_round(made.value),
        low=_round(low),
        high=_round(high),
        error=None if made.error is None else _round(made.error),
        freedom=made.freedom,
        resolution=_round(resolution),
    )


def _round(value: float) -> float:
    return round(float(value), _DIGITS)
