"""Our values and the published ones as one document (`narrows/lab-report/1`), for text and page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Literal

from msgspec.structs import asdict, replace

from narrows.analysis.metrics import show_amount
from narrows.documents.laboratory import (
    ARTEFACT,
    COMPARED,
    FAILS,
    FORMAT,
    HOLDS,
    NEITHER,
    ONLY_OURS,
    ONLY_THEIRS,
    OPEN,
    Accuracy,
    AccuracyLimit,
    ColumnFindings,
    ColumnMetric,
    LabCell,
    LabColumn,
    LabExperiment,
    LabReport,
    NoMeasurements,
    Outcome,
    RankedSchemes,
    ReversedPair,
    Sides,
    State,
    StatementOutcome,
)
from narrows.documents.results import Metric, Quantity
from narrows.errors import NarrowsError
from narrows.lab import answer
from narrows.lab.findings import findings
from narrows.lab.ours import Measured, Ours, measure
from narrows.lab.published import Value, same
from narrows.lab.reading import Case, Column, Expectation, Experiment, Lab, Relation
from narrows.lab.running import LabRun, columns_of
from narrows.statistics.agreement import Agreement, agreement, total


def compare(run: LabRun) -> LabReport:
    """The report of a finished laboratory, without figures; for an interrupted one, that of the
    runs so far.
    """
    lab = run.lab
    done = {name: measure(run, lab.experiments[name]) for name in run.done()}
    columns = [_column(run, column, done) for column in lab.columns.values()]
    columns = [column for column in columns if column.cells]
    # The limits of a family apply to full runs only.
    limits = [] if run.quick else lab.expect
    by_name = {column.name: column for column in columns}
    report = LabReport(
        format=FORMAT,
        lab=lab.name,
        title=lab.title,
        question=lab.question,
        source=lab.source,
        where=run.where,
        quick=lab.quick if run.quick else None,
        folder=str(run.folder),
        experiments=[_experiment(run, lab.experiments[name], values) for name, values in done.items()],
        not_run=[name for name in lab.experiments if name not in done],
        ranks=RankedSchemes(among=list(lab.ranks), why=lab.ranks_why),
        columns=columns,
        relations=[
            _relation(relation, by_name[relation.column])
            for relation in lab.relations
            if relation.column in by_name
        ],
        expect=[_limit(lab, limit, by_name[limit.column]) for limit in limits if limit.column in by_name],
        certain=list(lab.certain),
        assumed=list(lab.assumed),
        tried=list(lab.tried),
        artefacts=[
            NoMeasurements(column=artefact.column, where=artefact.where, why=artefact.why)
            for artefact in lab.artefacts
        ],
        answer=[],
        figures=[],
    )
    if not report.has_published:
        answered = [replace(each, answer=_answer(Path(each.folder))) for each in report.experiments]
        report = replace(report, experiments=answered)
    return replace(report, answer=answer.sentences(report))


def _answer(folder: Path) -> list[str]:
    """The findings of an experiment, in the words of its campaign's report; empty if the campaign can't be
    read.
    """
    from narrows.report import answers
    from narrows.report.data import load

    try:
        return answers.answer(load(folder)).sentences
    except NarrowsError:
        return []


def _experiment(run: LabRun, experiment: Experiment, values: Measured) -> LabExperiment:
    facts = values.facts
    return LabExperiment(
        name=experiment.name,
        what=experiment.what or "",
        folder=str(run.campaign(experiment.name)),
        schemes={name: run.lab.scheme_of(name, run.where) for name in experiment.schemes},
        cases=list(experiment.cases),
        scenario=facts.scenario,
        hash=facts.hash,
        seconds=facts.seconds,
        runs=facts.runs,
        cells=facts.cells,
        verdicts=facts.verdicts,
        narrows=facts.narrows,
        kernel={},
        own_models=facts.own_models,
    )


# -- columns -------------------------------------------------------------------------------------


def _column(run: LabRun, column: Column, done: Mapping[str, Measured]) -> LabColumn:
    cells: list[LabCell] = []
    metric: Quantity = Quantity.unknown(column.metric)
    for name in column.experiments:
        if name not in done or column not in columns_of(run, name):
            continue
        experiment = run.lab.experiments[name]
        metric = done[name].metrics.get(column.metric, metric)
        cells += [
            _cell(
                run.lab, column, experiment, scheme, case, done[name].values[column.name, scheme, case.name]
            )
            for case in experiment.cases.values()
            for scheme in experiment.schemes
        ]
    if column.published is not None:
        cells = [cell for cell in cells if _is_published(cells, cell)]
    if all(cell.state == NEITHER for cell in cells):
        cells = []
    label = column.label or metric.label
    if column.across == "jain":
        # An index of any quantity.
        better = {"better": "higher"} if isinstance(metric, Metric) else {}
        metric = replace(metric, unit="1", show_unit="1", show_scale=1.0, **better)
    among = [cell for cell in cells if cell.scheme in run.lab.ranks]
    return LabColumn(
        name=column.name,
        label=label,
        metric=ColumnMetric(**asdict(metric)),
        definition=column.definition,
        statistic=_in_words(column, metric),
        cells=cells,
        all=summarize(cells),
        ranked=summarize(among),
        by_case={
            case: summarize([cell for cell in among if cell.case == case])
            for case in dict.fromkeys(cell.case for cell in cells)
        },
        reversed=_find_reversed(among),
        findings=ColumnFindings(
            ours=_findings(label, cells, "ours", metric), theirs=_findings(label, cells, "theirs", metric)
        ),
    )


def _is_published(cells: Sequence[LabCell], cell: LabCell) -> bool:
    """True if a value was published in this column for the condition of a cell."""
    condition = (cell.experiment, cell.case)
    return any(other.theirs is not None for other in cells if (other.experiment, other.case) == condition)


def _in_words(column: Column, metric: Quantity) -> str:
    """Describes one of our values."""
    flow = "all flows together" if column.flow == "all" else f"flow {column.flow}"
    if "*" in column.flow:
        flow = f"flows {column.flow}: {column.across}"
    text = f"{column.metric} of {flow}; {column.of} over runs"
    if column.cap is not None:
        text += f", {show_amount(column.cap, metric)} where it never happened"
    return f"{text}, times {column.factor:g}" if column.factor != 1 else text


def _cell(lab: Lab, column: Column, experiment: Experiment, scheme: str, case: Case, ours: Ours) -> LabCell:
    theirs, artefact = _theirs(lab, column, experiment, scheme, case)
    state = _state(ours.value, theirs, artefact)
    absolute = relative = log = None
    if state == COMPARED and ours.value is not None and theirs is not None:
        absolute, relative, log = _errors(float(ours.value), float(theirs.value))
    return LabCell(
        experiment=experiment.name,
        case=case.name,
        scheme=scheme,
        ours=ours.value,
        runs=list(ours.runs),
        never=ours.never,
        why=ours.why,
        records=list(ours.cells),
        theirs=None if theirs is None else theirs.value,
        lines=0 if theirs is None else theirs.lines,
        spread=None if theirs is None or theirs.lines < 2 else (theirs.low, theirs.high),
        artefact=artefact,
        state=state,
        absolute=absolute,
        relative=relative,
        log=log,
    )


def _state(ours: float | None, theirs: Value | None, artefact: str | None) -> State:
    if theirs is None:
        return NEITHER if ours is None else ONLY_OURS
    if artefact is not None:
        return ARTEFACT
    return ONLY_THEIRS if ours is None else COMPARED


def _theirs(
    lab: Lab, column: Column, experiment: Experiment, scheme: str, case: Case
) -> tuple[Value | None, str | None]:
    """The published value of a cell, and the reason if it is not a measurement."""
    if lab.published is None or column.published is None:
        return None, None
    source = column.published
    lines = lab.published.lines(source.scheme or scheme, experiment.published, case.published, source.where)
    value = lab.published.value(lines, source.column, source.of, source.factor)
    if value is None:
        return None, None
    for artefact in lab.artefacts:
        if artefact.column == column.name and any(
            all(any(same(row[name], text) for text in texts) for name, texts in artefact.where.items())
            for row in lines
        ):
            return value, artefact.why
    return value, None


def _errors(ours: float, theirs: float) -> tuple[float, float | None, float | None]:
    """The error of our value: in the unit, as a share of theirs, and as |ln(ours/theirs)| if both are
    positive.
    """
    relative = (ours - theirs) / theirs if theirs > 0 else None
    log = abs(math.log(ours / theirs)) if ours > 0 and theirs > 0 else None
    return ours - theirs, relative, log


def summarize(cells: Sequence[LabCell]) -> Accuracy:
    """Errors and order of the compared cells; order counts within a case of an experiment."""
    compared = _pairs(cells)
    groups: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for cell, theirs, ours in compared:
        groups.setdefault((cell.experiment, cell.case), []).append((theirs, ours))
    order: Agreement = total(
        agreement([theirs for theirs, _ in group], [ours for _, ours in group]) for group in groups.values()
    )
    return Accuracy(
        cells=len(compared),
        artefacts=sum(cell.state == ARTEFACT for cell in cells),
        not_measured=sum(cell.state == ONLY_THEIRS for cell in cells),
        mean_absolute_error=_mean(abs(ours - theirs) for _, theirs, ours in compared),
        mean_relative_error=_mean(abs(cell.relative) for cell, *_ in compared if cell.relative is not None),
        mean_log_error=_mean(cell.log for cell, *_ in compared if cell.log is not None),
        tau=order.tau,
        same_signs=order.same_signs,
        pairs=order.pairs,
        same=order.same,
        reversed=order.reversed,
        ties_published=order.ties_first + order.ties_both,
        ties_ours=order.ties_second + order.ties_both,
    )


def _pairs(cells: Iterable[LabCell]) -> list[tuple[LabCell, float, float]]:
    """The compared cells, each with the published value and ours."""
    return [
        (cell, cell.theirs, cell.ours)
        for cell in cells
        if cell.state == COMPARED and cell.theirs is not None and cell.ours is not None
    ]


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return fmean(numbers) if numbers else None


def _find_reversed(cells: Sequence[LabCell]) -> list[ReversedPair]:
    """The pairs of schemes with opposite orders; `within_runs` if our runs overlap, so that they show no
    order."""
    pairs = []
    compared = _pairs(cells)
    for number, (cell, theirs, ours) in enumerate(compared):
        for other, others_theirs, others_ours in compared[number + 1 :]:
            if (cell.experiment, cell.case) != (other.experiment, other.case):
                continue
            if (theirs - others_theirs) * (ours - others_ours) < 0:
                more, less = (cell, other) if theirs > others_theirs else (other, cell)
                pairs.append(
                    ReversedPair(
                        experiment=cell.experiment,
                        case=cell.case,
                        published_more=more.scheme,
                        published_less=less.scheme,
                        within_runs=min(less.runs) <= max(more.runs) and len(cell.runs) > 1,
                    )
                )
    return pairs


def _findings(
    label: str, cells: Sequence[LabCell], side: Literal["ours", "theirs"], metric: Quantity
) -> list[str]:
    """Findings about the conditions of all experiments that test the same schemes."""
    schemes: dict[str, dict[str, None]] = {}
    for cell in cells:
        schemes.setdefault(cell.experiment, {})[cell.scheme] = None
    tables: dict[tuple[str, ...], dict[str, dict[str, float | None]]] = {}
    single: dict[str, set[str]] = {}
    for cell in cells:
        if side == "ours" and len(cell.runs) == 1:
            single.setdefault(cell.case, set()).add(cell.scheme)
        if cell.state != ARTEFACT:
            table = tables.setdefault(tuple(schemes[cell.experiment]), {})
            value = cell.ours if side == "ours" else cell.theirs
            table.setdefault(cell.case, {})[cell.scheme] = value
    sentences: list[str] = []
    for table in tables.values():
        if any(value is not None for row in table.values() for value in row.values()):
            sentences += findings(
                answer.inside(label), table, lambda value: show_amount(value, metric), single
            )
    return sentences


# -- statements ----------------------------------------------------------------------------------


def _relation(relation: Relation, column: LabColumn) -> StatementOutcome:
    sides = [_cell_at(column, *side) for side in (relation.more, relation.less)]
    theirs = [None if side is None else side.theirs for side in sides]
    ours = [None if side is None else side.ours for side in sides]
    return StatementOutcome(
        says=relation.says,
        column=relation.column,
        because=relation.because,
        published=_holds(*theirs),
        here=_holds(*ours),
        values=Sides(
            theirs=[show_amount(value, column.metric) for value in theirs],
            ours=[show_amount(value, column.metric) for value in ours],
        ),
        records=[
            f"{side.experiment}/cells/{name}" for side in sides if side is not None for name in side.records
        ],
    )


def _cell_at(column: LabColumn, scheme: str, case: str) -> LabCell | None:
    return next((cell for cell in column.cells if (cell.scheme, cell.case) == (scheme, case)), None)


def _holds(more: float | None, less: float | None) -> Outcome:
    if more is None or less is None:
        return OPEN
    return HOLDS if more > less else FAILS


def _limit(lab: Lab, limit: Expectation, column: LabColumn) -> AccuracyLimit:
    cells = [
        cell
        for cell in column.cells
        if (limit.case is None or cell.case == limit.case) and (not limit.ranked or cell.scheme in lab.ranks)
    ]
    value = summarize(cells).statistic(limit.statistic)
    low, high = limit.at_least, limit.at_most
    broken = value is not None and ((low is not None and value < low) or (high is not None and value > high))
    return AccuracyLimit(
        column=limit.column,
        statistic=limit.statistic,
        case=limit.case,
        ranked=limit.ranked,
        at_least=low,
        at_most=high,
        value=value,
        outcome=OPEN if value is None else FAILS if broken else HOLDS,
    )
