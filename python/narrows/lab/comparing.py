"""Ours and theirs as one plain document (`narrows/lab-report/1`), from which text and page are made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from msgspec.structs import replace

from narrows.analysis.metrics import show_amount
from narrows.documents.results import Metric, Quantity
from narrows.errors import NarrowsError
from narrows.lab import answer
from narrows.lab.findings import findings
from narrows.lab.ours import Measured, Ours, measured
from narrows.lab.published import Value, same
from narrows.lab.reading import Case, Column, Expectation, Experiment, Lab, Relation
from narrows.lab.running import LabRun, columns_of
from narrows.statistics.agreement import Agreement, agreement, total

FORMAT = "narrows/lab-report/1"
Json = dict[str, Any]

#: Outcomes of a cell of the table.
COMPARED, ARTEFACT, ONLY_OURS, ONLY_THEIRS, NEITHER = (
    "compared",
    "artefact",
    "not published",
    "not measured",
    "no value",
)
HOLDS, FAILS, OPEN = "holds", "does not hold", "can't be told"


def compare(run: LabRun) -> Json:
    """The document of a laboratory that has been run; of an interrupted one, that of the runs so far."""
    lab = run.lab
    done = {name: measured(run, lab.experiments[name]) for name in run.done()}
    columns = [_column(run, column, done) for column in lab.columns.values()]
    columns = [column for column in columns if column["cells"]]
    # The promises of a family are about whole runs.
    limits = [] if run.quick else lab.expect
    by_name = {column["name"]: column for column in columns}
    document: Json = {
        "format": FORMAT,
        "lab": lab.name,
        "title": lab.title,
        "question": lab.question,
        "source": lab.source,
        "where": run.where,
        "quick": lab.quick if run.quick else None,
        "folder": str(run.folder),
        "experiments": [_experiment(run, lab.experiments[name], one) for name, one in done.items()],
        "not_run": [name for name in lab.experiments if name not in done],
        "ranks": {"among": list(lab.ranks), "why": lab.ranks_why},
        "columns": columns,
        "relations": [_relation(one, by_name) for one in lab.relations if one.column in by_name],
        "expect": [_expected(lab, one, by_name) for one in limits if one.column in by_name],
        "certain": list(lab.certain),
        "assumed": list(lab.assumed),
        "tried": list(lab.tried),
        "artefacts": [{"column": one.column, "where": one.where, "why": one.why} for one in lab.artefacts],
    }
    if not answer.has_published(document):
        for one in document["experiments"]:
            one["answer"] = _answer(Path(one["folder"]))
    return {**document, "answer": answer.sentences(document)}


def _answer(folder: Path) -> list[str]:
    """The findings of an experiment, in the words of its campaign's report; empty where the campaign can't be
    read."""
    from narrows.report import answers
    from narrows.report.data import load

    try:
        return answers.answer(load(folder)).sentences
    except NarrowsError:
        return []


def _experiment(run: LabRun, experiment: Experiment, of: Measured) -> Json:
    return {
        "name": experiment.name,
        "what": experiment.what,
        "folder": str(run.campaign(experiment.name)),
        "schemes": {name: run.lab.scheme_of(name, run.where) for name in experiment.schemes},
        "cases": list(experiment.cases),
        **of.facts,
    }


# -- columns -------------------------------------------------------------------------------------


def _column(run: LabRun, column: Column, done: Mapping[str, Measured]) -> Json:
    cells: list[Json] = []
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
    if all(cell["state"] == NEITHER for cell in cells):
        cells = []
    label = column.label or metric.label
    if column.across == "jain":
        # An index, whatever it is of.
        better = {"better": "higher"} if isinstance(metric, Metric) else {}
        metric = replace(metric, unit="1", show_unit="1", show_scale=1.0, **better)
    among = [cell for cell in cells if cell["scheme"] in run.lab.ranks]
    return {
        "name": column.name,
        "label": label,
        "metric": metric,
        "definition": column.definition,
        "statistic": _in_words(column, metric),
        "cells": cells,
        "all": statistics(cells),
        "ranked": statistics(among),
        "by_case": {case: statistics([c for c in among if c["case"] == case]) for case in _cases(cells)},
        "reversed": _reversed(among),
        "findings": {
            "ours": _findings(label, cells, "ours", metric),
            "theirs": _findings(label, cells, "theirs", metric),
        },
    }


def _is_published(cells: Sequence[Json], cell: Json) -> bool:
    """True if something was published in this column about the condition of a cell."""
    key = (cell["experiment"], cell["case"])
    return any(one["theirs"] is not None for one in cells if (one["experiment"], one["case"]) == key)


def _in_words(column: Column, metric: Quantity) -> str:
    """Describes one of our values."""
    flow = "all flows together" if column.flow == "all" else f"flow {column.flow}"
    if "*" in column.flow:
        flow = f"flows {column.flow}: {column.across}"
    text = f"{column.metric} of {flow}; {column.of} over runs"
    if column.cap is not None:
        text += f", {show_amount(column.cap, metric)} where it never happened"
    return f"{text}, times {column.factor:g}" if column.factor != 1 else text


def _cell(lab: Lab, column: Column, experiment: Experiment, scheme: str, case: Case, ours: Ours) -> Json:
    theirs, artefact = _theirs(lab, column, experiment, scheme, case)
    cell: Json = {
        "experiment": experiment.name,
        "case": case.name,
        "scheme": scheme,
        "ours": ours.value,
        "runs": list(ours.runs),
        "never": ours.never,
        "why": ours.why,
        "records": list(ours.cells),
        "theirs": None if theirs is None else theirs.value,
        "lines": 0 if theirs is None else theirs.lines,
        "spread": None if theirs is None or theirs.lines < 2 else [theirs.low, theirs.high],
        "artefact": artefact,
        "state": _state(ours.value, theirs, artefact),
        "absolute": None,
        "relative": None,
        "log": None,
    }
    if cell["state"] == COMPARED:
        cell |= _errors(float(cell["ours"]), float(cell["theirs"]))
    return cell


def _state(ours: float | None, theirs: Value | None, artefact: str | None) -> str:
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
    of = column.published
    lines = lab.published.lines(of.scheme or scheme, experiment.published, case.published, of.where)
    found = lab.published.value(lines, of.column, of.of, of.factor)
    if found is None:
        return None, None
    for artefact in lab.artefacts:
        if artefact.column == column.name and any(
            all(any(same(row[name], text) for text in texts) for name, texts in artefact.where.items())
            for row in lines
        ):
            return found, artefact.why
    return found, None


def _errors(ours: float, theirs: float) -> Json:
    """The error of our value: in the unit, as a share of theirs, and as |ln(ours/theirs)| where both are
    positive."""
    relative = (ours - theirs) / theirs if theirs > 0 else None
    log = abs(math.log(ours / theirs)) if ours > 0 and theirs > 0 else None
    return {"absolute": ours - theirs, "relative": relative, "log": log}


def _cases(cells: Iterable[Json]) -> list[str]:
    return list(dict.fromkeys(cell["case"] for cell in cells))


def statistics(cells: Sequence[Json]) -> Json:
    """The summary of the cells that were compared; order counts within a case of an experiment."""
    compared = [cell for cell in cells if cell["state"] == COMPARED]
    groups: dict[tuple[str, str], list[Json]] = {}
    for cell in compared:
        groups.setdefault((cell["experiment"], cell["case"]), []).append(cell)
    order: Agreement = total(
        agreement([one["theirs"] for one in group], [one["ours"] for one in group])
        for group in groups.values()
    )
    return {
        "cells": len(compared),
        "artefacts": sum(cell["state"] == ARTEFACT for cell in cells),
        "not_measured": sum(cell["state"] == ONLY_THEIRS for cell in cells),
        "mean_absolute_error": _mean(abs(cell["absolute"]) for cell in compared),
        "mean_relative_error": _mean(
            abs(cell["relative"]) for cell in compared if cell["relative"] is not None
        ),
        "mean_log_error": _mean(cell["log"] for cell in compared if cell["log"] is not None),
        "tau": order.tau,
        "same_signs": order.same_signs,
        "pairs": order.pairs,
        "same": order.same,
        "reversed": order.reversed,
        "ties_published": order.ties_first + order.ties_both,
        "ties_ours": order.ties_second + order.ties_both,
    }


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return fmean(found) if found else None


def _reversed(cells: Sequence[Json]) -> list[Json]:
    """The pairs of schemes with opposite orders; `within_runs` if our runs overlap, so that they show no
    order."""
    found = []
    compared = [cell for cell in cells if cell["state"] == COMPARED]
    for number, one in enumerate(compared):
        for other in compared[number + 1 :]:
            if (one["experiment"], one["case"]) != (other["experiment"], other["case"]):
                continue
            if (one["theirs"] - other["theirs"]) * (one["ours"] - other["ours"]) < 0:
                more, less = (one, other) if one["theirs"] > other["theirs"] else (other, one)
                overlap = min(less["runs"]) <= max(more["runs"]) and len(one["runs"]) > 1
                found.append(
                    {
                        "experiment": one["experiment"],
                        "case": one["case"],
                        "published_more": more["scheme"],
                        "published_less": less["scheme"],
                        "within_runs": overlap,
                    }
                )
    return found


def _findings(label: str, cells: Sequence[Json], side: str, metric: Quantity) -> list[str]:
    """Findings about the conditions of all experiments that test the same schemes."""
    schemes: dict[str, dict[str, None]] = {}
    for cell in cells:
        schemes.setdefault(cell["experiment"], {})[cell["scheme"]] = None
    tables: dict[tuple[str, ...], dict[str, dict[str, float | None]]] = {}
    for cell in cells:
        if cell["state"] != ARTEFACT:
            table = tables.setdefault(tuple(schemes[cell["experiment"]]), {})
            table.setdefault(cell["case"], {})[cell["scheme"]] = cell[side]
    found: list[str] = []
    for table in tables.values():
        if any(value is not None for row in table.values() for value in row.values()):
            found += findings(answer.inside(label), table, lambda value: show_amount(value, metric))
    return found


# -- statements ----------------------------------------------------------------------------------


def _relation(one: Relation, columns: Mapping[str, Json]) -> Json:
    column = columns[one.column]
    sides = [_at(column, *side) for side in (one.more, one.less)]
    return {
        "says": one.says,
        "column": one.column,
        "because": one.because,
        "published": _holds([side["theirs"] if side else None for side in sides]),
        "here": _holds([side["ours"] if side else None for side in sides]),
        "values": {
            kind: [show_amount(side[kind] if side else None, column["metric"]) for side in sides]
            for kind in ("theirs", "ours")
        },
        "records": [record for side in sides if side for record in _records(side)],
    }


def _at(column: Json, scheme: str, case: str) -> Json | None:
    return next((c for c in column["cells"] if (c["scheme"], c["case"]) == (scheme, case)), None)


def _records(cell: Json) -> list[str]:
    return [f"{cell['experiment']}/cells/{name}" for name in cell["records"]]


def _holds(values: Sequence[float | None]) -> str:
    more, less = values
    if more is None or less is None:
        return OPEN
    return HOLDS if more > less else FAILS


def _expected(lab: Lab, one: Expectation, columns: Mapping[str, Json]) -> Json:
    cells = [
        cell
        for cell in columns[one.column]["cells"]
        if (one.case is None or cell["case"] == one.case) and (not one.ranked or cell["scheme"] in lab.ranks)
    ]
    value = statistics(cells)[one.statistic]
    low, high = one.at_least, one.at_most
    broken = value is not None and ((low is not None and value < low) or (high is not None and value > high))
    return {
        "column": one.column,
        "statistic": one.statistic,
        "case": one.case,
        "ranked": one.ranked,
        "at_least": low,
        "at_most": high,
        "value": value,
        "outcome": OPEN if value is None else FAILS if broken else HOLDS,
    }
