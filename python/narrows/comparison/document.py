"""The comparison as one document (`narrows/compare/1`): the output of `--json`, and the source of all other
forms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from narrows.analysis.metrics import ENDS, SUMMARY, find, has_packets, of_names
from narrows.campaign import own_metrics
from narrows.comparison import envelope, equivalence, gate, setups, sides, traces
from narrows.comparison.findings import BETTER, CLAIMS, ERROR_RATE, LEVEL, WORSE, Finding, judge
from narrows.comparison.sides import Pairing, Sample, Side
from narrows.documents.comparison import (
    CAMPAIGNS,
    FORMAT,
    SCHEMES,
    ComparedRow,
    ComparedSample,
    Comparison,
    Envelope,
    Frontier,
    FrontierEntry,
    Rank,
    Ranks,
    SideFacts,
    Trace,
    Unmatched,
    Unread,
)
from narrows.documents.results import Metric, Statistics
from narrows.errors import DataError, NarrowsError, UsageError
from narrows.statistics import ranking
from narrows.statistics.runs import FEWEST_FOR_INTERVAL, median_over_runs

#: The axes of the frontier: one metric to maximise, one to minimise.
_FRONTIER = (("throughput_bps", "delay_p95_ns"), ("goodput_bps", "rtt_p95_ns"))
#: Up to this many pairings, traces and envelopes are compared by default; they read all packets.
FEW = 2


def _ignore(*_: object) -> None:
    """Ignores its arguments."""


@dataclass
class Request:
    """The request for a comparison."""

    folders: Sequence[Path]
    schemes: Sequence[str] = ()
    #: Pairs of schemes with different names: two labels, or a text `ONE=OTHER`, which is split where both
    #: parts are labels.
    pairs: Sequence[tuple[str, str] | str] = ()
    #: Within one campaign, the scheme to compare the others with.
    against: str | None = None
    #: Names of metrics in users' words; empty for those of the summary.
    metrics: Sequence[str] = ()
    #: A flow's number or label, or `all`.
    flow: str = "all"
    #: Conditions that may differ between the campaigns.
    across: Sequence[str] = ()
    fail_on: Sequence[str] = ()
    #: The smallest differences that matter, such as `1 %` or `p95 OWD 2 ms`.
    margins: Sequence[str] = ()
    #: More pairs of rows than this are refused; None allows any number.
    most_pairs: int | None = None
    #: Whether to compare traces of states and performance envelopes; None compares them only for few schemes.
    traces: bool | None = None
    #: The campaigns of `folders`, if they are already open.
    sides: Sequence[Side] = ()
    #: The relative tolerance of traces; None for the default of the planes.
    tolerance: float | None = None
    #: Called for a campaign that can't be read, while others can.
    warn: Callable[[str], None] = _ignore
    #: Called during long work with the number of finished pairings and the total.
    progress: Callable[[int, int], None] = _ignore


def compare(request: Request) -> Comparison:
    """Compares campaigns, or the schemes of one, and returns the document.

    Raises `DataError` for folders that contain no campaign or are not comparable, `UsageError` for unknown
    names. Among three or more campaigns, unreadable ones are omitted, reported to `warn`, and listed as
    `unread`.
    """
    if request.fail_on and len(request.folders) == 1 and not (request.against or request.pairs):
        raise UsageError("--fail-on needs a base: name two campaigns, or of one the scheme with --against")
    opened, unread = _open(request)
    base = opened[0]
    metrics = _metrics(request, opened)
    limits = [gate.read(text, base.results.metrics) for text in request.fail_on]
    metrics += [limit.metric for limit in limits if limit.metric not in metrics]
    _check_times(metrics)
    pairings = sides.pairings(
        opened,
        schemes=request.schemes,
        pairs=request.pairs,
        against=request.against,
        flow=request.flow,
        across=bool(request.across),
    )
    if request.most_pairs is not None and len(pairings) > request.most_pairs:
        raise DataError(
            f"{base.path}: its rows make {len(pairings)} pairs, more than are compared unasked; narrows"
            " compare compares them"
        )
    differences = setups.differences(opened, pairings)
    setups.check(opened, differences, request.across)
    findings = judge(pairings, metrics)
    equivalence.decide(findings, equivalence.read_margins(request.margins, metrics))
    kind = SCHEMES if len(opened) == 1 and not request.pairs else CAMPAIGNS
    is_ranked = kind == SCHEMES and request.against is None
    rows, ranks = _rows(findings), _ranks(findings, metrics) if is_ranked else None
    limits_then = gate.hold(limits, findings)
    frontiers = _frontiers(pairings, base) if is_ranked else None
    looked = request.traces if request.traces is not None else len(pairings) <= FEW
    parted, shapes = _behind(pairings, request) if looked else (None, None)
    return Comparison(
        format=FORMAT,
        kind=kind,
        sides=[_side(side) for side in opened],
        unread=unread,
        unmatched=_find_unmatched(opened, pairings, request),
        uncompared=_list_uncompared(base, pairings, request),
        flow=request.flow,
        differences=differences,
        error_rate=ERROR_RATE,
        level=LEVEL,
        fewest_runs=FEWEST_FOR_INTERVAL,
        metrics=metrics,
        rows=rows,
        against=request.against,
        margin=list(request.margins),
        shown=sum(finding.outcome in CLAIMS for finding in findings),
        tests=len(findings),
        limits=limits_then,
        ranks=ranks,
        frontiers=frontiers,
        looked_behind=looked,
        traces=parted,
        envelopes=shapes,
        own_models=_rows_with_own_models(pairings),
    )


def _rows_with_own_models(pairings: Sequence[sides.Pairing]) -> list[str]:
    """The labels of the rows whose models Narrows trained."""
    samples = [sample for pairing in pairings for sample in (pairing.base, pairing.other)]
    rows = ((sample.scheme, sample.side.rows.get(sample.scheme)) for sample in samples)
    return list(dict.fromkeys(label for label, row in rows if row and row.has_own_model))


def _open(request: Request) -> tuple[list[Side], list[Unread]]:
    if request.sides:
        return list(request.sides), []
    opened: list[Side] = []
    unread: list[Unread] = []
    if len({path.resolve() for path in request.folders}) < len(request.folders):
        raise UsageError("a campaign is named twice; the schemes of one are compared by naming it once")
    for number, path in enumerate(request.folders):
        try:
            opened.append(sides.open_side(path, number))
        except NarrowsError as error:
            if len(request.folders) < 3:
                raise
            unread.append(Unread(folder=str(path), why=str(error)))
            request.warn(str(error))
    if len(opened) < min(2, len(request.folders)):
        raise DataError(
            f"{len(unread)} of {len(request.folders)} campaigns can't be read, so there is nothing to compare"
        )
    return opened, unread


def _metrics(request: Request, opened: Sequence[Side]) -> list[Metric]:
    """The metrics that all sides have."""
    known = [
        metric
        for metric in opened[0].results.metrics
        if all(any(metric.name == item.name for item in side.results.metrics) for side in opened[1:])
    ]
    if request.metrics:
        return [find(known, name) for name in request.metrics]
    packets = all(has_packets(side.results) for side in opened)
    own = dict.fromkeys(name for side in opened for name in own_metrics.names(side.results.metrics))
    metrics = of_names(known, (*(SUMMARY if packets else ENDS), *own))
    flow = request.flow
    values = [
        [row.metrics for row in side.results.rows if flow in (str(row.flow), row.label)] for side in opened
    ]
    # A metric without any value (the fairness of a single flow) is omitted.
    return [
        item for item in metrics if any(row.get(item.name) is not None for rows in values for row in rows)
    ]


def _check_times(metrics: Sequence[Metric]) -> None:
    for metric in metrics:
        if metric.happened:
            raise UsageError(
                f"{metric.name} has no value in runs in which it did not happen, so those that have one"
                " are not"
                f" comparable; compare {metric.happened}"
            )


def _side(side: Side) -> SideFacts:
    header = side.header
    pending = sum(cell.state == "pending" for cell in side.cells)
    return SideFacts(
        name=side.name,
        folder=str(side.path),
        scenario=header.name,
        hash=header.hash,
        where=side.where,
        created_at=header.created_at,
        narrows=header.versions.narrows if header.versions else None,
        cells=len(side.cells),
        pending=pending,
    )


def _find_unmatched(opened: Sequence[Side], pairings: Sequence[Pairing], request: Request) -> list[Unmatched]:
    """The schemes of each campaign that have no counterpart, if all were requested."""
    if len(opened) < 2 or request.schemes or request.pairs:
        return []
    compared = {(sample.side.name, sample.scheme) for pair in pairings for sample in (pair.base, pair.other)}
    unmatched_schemes = []
    for side in opened:
        alone = [scheme for scheme in side.schemes if (side.name, scheme) not in compared]
        if alone:
            unmatched_schemes.append(Unmatched(side=side.name, schemes=alone))
    return unmatched_schemes


def _list_uncompared(side: Side, pairings: Sequence[Pairing], request: Request) -> list[str]:
    """The rows of a single campaign whose conditions differ from those of the base of the comparison."""
    if request.against is None or request.pairs:
        return []
    compared = {sample.scheme for pair in pairings for sample in (pair.base, pair.other)}
    return [scheme for scheme in request.schemes or side.schemes if scheme not in compared]


def _rows(findings: Sequence[Finding]) -> list[ComparedRow]:
    grouped: dict[int, list[Finding]] = {}
    for finding in findings:
        grouped.setdefault(id(finding.pairing), []).append(finding)
    return [_row(group[0].pairing, group) for group in grouped.values()]


def _row(pairing: Pairing, findings: Sequence[Finding]) -> ComparedRow:
    return ComparedRow(
        title=pairing.title,
        base=_sample(pairing.base),
        other=_sample(pairing.other),
        paired=pairing.is_paired,
        seeds=pairing.seeds,
        runs=len(pairing.common) if pairing.is_paired else None,
        metrics={finding.metric.name: finding.to_document() for finding in findings},
    )


def _sample(sample: Sample) -> ComparedSample:
    return ComparedSample(
        side=sample.side.name,
        scheme=sample.scheme,
        name=sample.side.name_of(sample.scheme),
        values=sample.side.values_of(sample.scheme),
        started=sample.started,
        finished=sample.finished,
        valid=len(sample.runs),
        degraded=sample.degraded,
        skipped=sample.skipped,
    )


def _ranks(findings: Sequence[Finding], metrics: Sequence[Metric]) -> list[Ranks]:
    """For each metric and each set of schemes that met the same conditions, the possible ranks of each."""
    ranks = []
    for metric in metrics:
        if metric.better not in ("higher", "lower"):
            continue
        groups: dict[str, list[Finding]] = {}
        for finding in findings:
            if finding.metric is metric:
                groups.setdefault(_stratum(finding.pairing), []).append(finding)
        for values, group in groups.items():
            conditions = group[0].pairing.base.side.values_of(group[0].pairing.base.scheme)
            ranks.append(
                Ranks(metric=metric.name, values=values, conditions=conditions, schemes=_rank(group))
            )
    return ranks


def _stratum(pairing: Pairing) -> str:
    return sides.stratum(pairing.base.side, pairing.base.scheme)


def _rank(group: Sequence[Finding]) -> list[Rank]:
    summaries: dict[str, Statistics | None] = {}
    for finding in group:
        summaries.setdefault(finding.pairing.base.scheme, finding.base)
        summaries.setdefault(finding.pairing.other.scheme, finding.other)
    names = [name for name, summary in summaries.items() if summary is not None]
    better = np.zeros((len(names), len(names)), dtype=np.bool_)
    for finding in group:
        pair = finding.pairing.other.scheme, finding.pairing.base.scheme
        if finding.outcome in (BETTER, WORSE):
            first, second = pair if finding.outcome == BETTER else pair[::-1]
            better[names.index(first), names.index(second)] = True
    ranges = ranking.rank_ranges(better)
    rows = [
        Rank(scheme=name, first=low, last=high, summary=summaries[name])
        for name, (low, high) in zip(names, ranges, strict=True)
    ]
    return rows + [
        Rank(scheme=name, first=None, last=None, summary=None) for name in summaries if name not in names
    ]


def _frontiers(pairings: Sequence[Pairing], side: Side) -> list[Frontier]:
    """The Pareto frontier of each set of schemes that met the same conditions, with its support."""
    groups: dict[str, dict[str, Sample]] = {}
    for pairing in pairings:
        members = groups.setdefault(_stratum(pairing), {})
        for sample in (pairing.base, pairing.other):
            members.setdefault(sample.scheme, sample)
    runs = [
        run.metrics
        for members in groups.values()
        for member in members.values()
        for run in member.runs.values()
    ]
    measured = (
        axes
        for axes in (_FRONTIER if has_packets(side.results) else _FRONTIER[::-1])
        if any(all(metrics.get(name) is not None for name in axes) for metrics in runs)
    )
    axes = next(measured, _FRONTIER[0])
    return [
        _frontier(values, members, axes, side.values_of(next(iter(members))))
        for values, members in groups.items()
    ]


def _frontier(
    values: str, members: dict[str, Sample], axes: tuple[str, str], conditions: dict[str, str]
) -> Frontier:
    runs = sorted({run for member in members.values() for run in member.runs})
    points = np.full((len(members), len(runs), 2), np.nan)
    for row, member in enumerate(members.values()):
        for number, run in member.runs.items():
            for axis, (name, sign) in enumerate(zip(axes, (1.0, -1.0), strict=True)):
                value = run.metrics.get(name)
                points[row, runs.index(number), axis] = np.nan if value is None else sign * value
    there = ~np.isnan(points).any(axis=2)
    middle = np.full((len(members), 2), np.nan)
    for row in range(len(members)):
        if there[row].any():
            middle[row] = [median_over_runs(column) for column in points[row][there[row]].T]
    on = ranking.on_frontier(middle)
    enough = (
        bool(there.any(axis=1).any())
        and int(there[there.any(axis=1)].sum(axis=1).min()) >= FEWEST_FOR_INTERVAL
    )
    support = ranking.frontier_support(points) if enough else None
    return Frontier(
        metrics=list(axes),
        values=values,
        schemes=[
            FrontierEntry(
                scheme=name, on=bool(on[row]), support=None if support is None else float(support[row])
            )
            for row, name in enumerate(members)
        ],
        conditions=conditions,
    )


def _behind(pairings: Sequence[Pairing], request: Request) -> tuple[list[Trace], list[Envelope]]:
    """The traces of states and the performance envelopes."""
    flow = int(request.flow) if request.flow.isdigit() else None
    parted: list[Trace] = []
    shapes: list[Envelope] = []
    whole = [pairing for pairing in pairings if pairing.base.runs and pairing.other.runs]
    for number, pairing in enumerate(whole):
        request.progress(number, len(whole))
        sides = pairing.base.side.name, pairing.other.side.name
        schemes = pairing.base.scheme, pairing.other.scheme
        tolerance = traces.tolerance_of(pairing) if request.tolerance is None else request.tolerance
        try:
            flows = traces.divergences(pairing, tolerance)
            shapes.append(envelope.envelopes(pairing, flow))
        except DataError as error:
            # The results have the numbers even if a record is thinned.
            title, why = pairing.title, str(error)
            parted.append(Trace(title=title, sides=sides, schemes=schemes, absent=why, flows=[]))
            shapes.append(Envelope(title=title, sides=sides, schemes=schemes, absent=why))
            continue
        flows = [trace for trace in flows if flow in (None, trace.flow)]
        parted.append(
            Trace(title=pairing.title, sides=sides, schemes=schemes, tolerance=tolerance, flows=flows)
        )
    request.progress(len(whole), len(whole))
    return parted, shapes
