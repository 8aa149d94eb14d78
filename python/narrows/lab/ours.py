"""The values of a laboratory's columns in our campaigns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from narrows.documents.campaign import INVALID, CellEntry, Header
from narrows.documents.resolved import Resolved
from narrows.documents.results import Metric, Row
from narrows.lab.arithmetic import combine
from narrows.lab.reading import Column, Experiment
from narrows.lab.running import LabRun, columns_of, find_rows

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Ours:
    """One of our values: the result of a scheme's runs in a case, or the reason why it has none."""

    value: float | None
    #: The values of the runs, by their numbers.
    runs: tuple[float, ...] = ()
    why: str | None = None
    #: Runs in which the timed event never happened.
    never: int = 0
    #: Names of the records.
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Facts:
    """A campaign's own description."""

    scenario: str
    hash: str
    seconds: float
    #: Runs of each scheme in each case.
    runs: int
    cells: int
    #: The number of cells by verdict, or by state without one.
    verdicts: dict[str, int]
    narrows: str | None
    #: The rows whose models Narrows trained, in words.
    own_models: str


@dataclass(frozen=True)
class Measured:
    """The values of one experiment by column, scheme and case, and their metrics."""

    values: dict[tuple[str, str, str], Ours]
    metrics: dict[str, Metric]
    facts: Facts


def measure(run: LabRun, experiment: Experiment) -> Measured:
    """The values of a finished experiment; for an interrupted one, those of its finished runs."""
    from narrows.campaign.results import read
    from narrows.campaign.store import CampaignFolder

    path = run.campaign(experiment.name)
    folder = CampaignFolder.read(path)
    results = read(path)
    scenario = folder.resolved
    skipped = {row.scheme: row.reason for row in folder.header.skipped}
    result: dict[tuple[str, str, str], Ours] = {}
    metrics = {metric.name: metric for metric in results.metrics}
    for (name, case), labels in find_rows(run.lab, experiment, run.where, scenario).items():
        rows = [row for row in results.rows if row.scheme in labels]
        why = next((skipped[label] for label in labels if label in skipped), None)
        for column in columns_of(run, experiment.name):
            result[column.name, name, case] = _value(column, rows, metrics, why)
    return Measured(result, metrics, _facts(folder.cells, folder.header, scenario))


def _facts(cells: Sequence[CellEntry], header: Header, scenario: Resolved) -> Facts:
    words = [cell.verdict or cell.state for cell in cells]
    return Facts(
        scenario=header.name,
        hash=header.hash,
        seconds=scenario.duration_ns / 1e9,
        runs=max((cell.run for cell in cells), default=0),
        cells=len(cells),
        verdicts={word: words.count(word) for word in dict.fromkeys(words)},
        narrows=header.versions.narrows if header.versions else None,
        own_models=scenario.own_models_in_words,
    )


def _value(column: Column, rows: Sequence[Row], metrics: Mapping[str, Metric], skipped: str | None) -> Ours:
    if column.metric not in metrics:
        return Ours(None, why=f"there is no metric {column.metric} in the campaign")
    own = [row for row in rows if _is_of(row, column.flow)]
    if not own:
        return Ours(
            None, why=skipped or ("no run is finished" if not rows else f"there is no flow {column.flow}")
        )
    happened = metrics[column.metric].happened
    of_runs: list[float] = []
    cells, reasons, never = [], [], 0
    for _, parts in _by_run(own):
        if parts[0].verdict == INVALID:
            reasons.append("its runs are invalid")
            continue
        values, missing = [], 0
        for row in parts:
            value = row.metrics.get(column.metric)
            if value is None and happened and row.metrics.get(happened) == 0:
                missing += 1
                value = column.cap
            if value is not None:
                values.append(float(value))
            else:
                reasons.append(str(row.absent.get(column.metric) or "it has no value"))
        never += bool(missing)
        if values and len(values) == len(parts):
            of_runs.append(combine(values, column.across) * column.factor)
            cells.append(parts[0].cell)
    if not of_runs:
        if never:
            return Ours(None, why=f"it never happened in {never} of {never} runs", never=never)
        return Ours(None, why=next(iter(reasons), "no run is finished"))
    return Ours(combine(of_runs, column.of), tuple(of_runs), None, never, tuple(cells))


def _is_of(row: Row, flow: str) -> bool:
    if row.background:
        return False
    if flow == "all":
        return row.flow == "all"
    names = (str(row.flow), row.label or "")
    return row.flow != "all" and any(fnmatchcase(name, flow) for name in names)


def _by_run(rows: Iterable[Row]) -> list[tuple[int, list[Row]]]:
    result: dict[int, list[Row]] = {}
    for row in rows:
        result.setdefault(row.run, []).append(row)
    return sorted(result.items())
