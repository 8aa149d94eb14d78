"""Reads a campaign folder for a report: the only place that accesses files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from narrows.campaign import integrity, series
from narrows.campaign.conditions import Row as Conditions
from narrows.campaign.conditions import rows_of
from narrows.campaign.json_files import read_run
from narrows.campaign.measurement import list_metrics
from narrows.campaign.results import compute, current
from narrows.campaign.schema import read_scenario
from narrows.campaign.series import FlowRates, Throughput
from narrows.campaign.store import CampaignFolder
from narrows.documents.campaign import FAILED, FORMAT, SKIPPED, CellEntry, Header
from narrows.documents.components import BOTTLENECK, Element
from narrows.documents.data import DamagedError
from narrows.documents.resolved import Cell, Resolved, read_cell
from narrows.documents.results import (
    NO_RESULTS,
    Metric,
    Quantity,
    Results,
    Row,
    Skipped,
    Statistics,
    SummaryLine,
)
from narrows.documents.run import RunRecord
from narrows.errors import DataError
from narrows.report import style
from narrows.report.errors import ReportError
from narrows.report.style import Style
from narrows.sweep.store import SweepFolder, is_sweep

Floats = NDArray[np.float64]
Kept = TypeVar("Kept")

FEWEST_BINS = 40
MOST_BINS = 600
"""Bins of a throughput curve: enough to see changes, not more than a page can show."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a run is not `ok`."""

    severity: str
    text: str


@dataclass(frozen=True, slots=True)
class Flow:
    """One flow of a run: its number, scheme, direction and name in figures."""

    number: int
    scheme: str
    direction: str
    label: str
    background: bool = False


class _Keeper:
    """Caches computed values by name."""

    def keep(self, name: str, make: Callable[[], Kept]) -> Kept:
        """The value of this name, computed once."""
        kept: dict[str, Any] = self.__dict__.setdefault("_kept", {})
        if name not in kept:
            kept[name] = make()
        value: Kept = kept[name]
        return value


@dataclass
class Run(_Keeper):
    """One cell of a campaign with the contents of its folder; series are read on first use."""

    cell: str
    scheme: str
    number: int
    state: str
    verdict: str | None
    reasons: list[Reason]
    folder: Path
    record: RunRecord | None
    rows: dict[str, Row] = field(default_factory=dict)
    entry: CellEntry | None = None
    #: Why its record can't be shown, if it does not match the campaign.
    problem: str | None = None
    #: False until the files of the record have been compared with their digests.
    checked: bool = False
    #: The share of its points that a chart shows: below 1 in reports of very many runs.
    detail: float = 1.0
    #: The scheme without its conditions, and the styles of all schemes of the campaign.
    base: str = ""
    looks: Mapping[str, Style] = field(default_factory=dict)

    @property
    def valid(self) -> bool:
        """True if the run may enter statistics."""
        return self.state == "finished" and self.verdict in ("ok", "degraded")

    @property
    def outcome(self) -> str:
        """One word for tables: the verdict of a finished run, else its state."""
        return (self.verdict or "unjudged") if self.state == "finished" else self.state

    def value(self, flow: str, metric: str) -> float | None:
        """The value of a metric of a flow (a number, or `all`), in base units; None if there is none."""
        row = self.rows.get(flow)
        return None if row is None else row.metrics.get(metric)

    @cached_property
    def settings(self) -> Cell:
        """The cell that was run; an empty cell without a record."""
        try:
            return read_cell((self.record and self.record.cell) or (self.entry and self.entry.input) or {})
        except DamagedError as error:
            raise ReportError(f"{self.folder / 'run.json'}: is damaged: {error}") from None

    @cached_property
    def flows(self) -> list[Flow]:
        """The flows in order, labelled with the scheme if the run mixes schemes."""
        planned = self.settings.flows
        mixed = len({flow.scheme for flow in planned if not flow.background}) > 1
        result = []
        for flow in planned:
            scheme = flow.scheme or self.scheme
            label = f"flow {flow.number}" + (f" ({scheme})" if mixed and not flow.background else "")
            result.append(Flow(flow.number, scheme, flow.direction, label, flow.background))
        return result

    @property
    def tested(self) -> list[Flow]:
        """The flows under test."""
        return [flow for flow in self.flows if not flow.background]

    def styles_of(self, flows: Sequence[Flow]) -> list[Style]:
        """Styles of some flows: the colours of their schemes, the same in all figures."""
        mixed = len({flow.scheme for flow in self.tested}) > 1
        names = [flow.scheme if mixed else self.base or flow.scheme for flow in flows]
        return style.of_flows(names, [flow.label for flow in flows], self.looks)

    @property
    def background(self) -> list[Flow]:
        """The flows that take part without being under test."""
        return [flow for flow in self.flows if flow.background]

    @property
    def change_times_s(self) -> list[float]:
        """The times at which the timeline changes something, in order, without duplicates."""
        return sorted({change.at_ns / 1e9 for change in self.settings.timeline})

    @property
    def duration_s(self) -> float:
        """The configured length of the run."""
        return self.settings.duration_ns / 1e9

    @property
    def bin_ns(self) -> int:
        """The width of a throughput bin: the record's, widened until a bin is meaningful on the page."""
        base = self.settings.bin_ns or 100_000_000
        length = self.duration_s * 1e9
        least = length / MOST_BINS
        bottlenecks = self.elements(BOTTLENECK)
        rates = [bps for element in bottlenecks if element.rate and (bps := element.rate.number("rate"))]
        # At least 25 full-size packets of the slowest link; smaller bins show packets instead of rates.
        if rates:
            least = max(least, 25 * 1500 * 8e9 / min(rates))
        # Bins as long as a round trip alias with the bursts of windows; several round trips average them.
        round_trip = self.settings.network.longest_rtt_ns(self.settings.flows)
        least = max(least, min(5 * round_trip, length / FEWEST_BINS))
        steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
        return base * next((step for step in steps if base * step >= least), steps[-1])

    def elements(self, kind: str) -> list[Element]:
        """All network elements of a kind, forward ones first."""
        return [element for element in self.settings.network.elements if element.kind == kind]

    def _read(self, read: Callable[[Path], Kept]) -> Kept:
        """The result of reading the record with a function, after its files were compared with
        their digests.
        """
        if self.record is None:
            raise ReportError(f"the record of {self.cell} is missing")
        if not self.checked:
            if problem := integrity.describe_change(self.folder, self.entry):
                raise ReportError(problem)
            self.checked = True
        return read(self.folder)

    @cached_property
    def throughput(self) -> Throughput:
        """Sent and delivered rate per bin and flow, and the capacity.

        Data that arrives at the very end opens a bin without width, whose rate is meaningless; it is omitted.
        """
        whole = self._read(lambda record: series.read_throughput(record, self.bin_ns))
        if not self.duration_s:
            return whole
        keep = int(np.searchsorted(whole.time_s, self.duration_s - 1e-6))
        return Throughput(
            whole.time_s[:keep],
            None if whole.capacity_bps is None else whole.capacity_bps[:keep],
            {
                number: FlowRates(rates.sent_bps[:keep], rates.arrived_bps[:keep])
                for number, rates in whole.flows.items()
            },
        )

    @cached_property
    def queues(self) -> dict[str, series.Queue]:
        """Samples of every queue."""
        return self._read(series.read_queues)

    @cached_property
    def states(self) -> dict[int, series.States]:
        """Samples of every sender."""
        return self._read(series.read_states)

    @cached_property
    def transfers(self) -> series.Transfers:
        """Transfers of applications."""
        return self._read(series.read_transfers)

    @cached_property
    def frames(self) -> series.Frames:
        """Frames of video."""
        return self._read(series.read_frames)

    def delays(self, most: int) -> dict[int, series.Delays] | None:
        """One-way delays of packets, thinned to about `most` per flow with every extreme kept."""
        return self.keep(
            f"delays {most}", lambda: self._read(lambda record: series.read_delays(record, most))
        )

    def read_packets(self) -> series.Packets | None:
        """All packets of the record, read anew; `None` where the record keeps no packets."""
        return self._read(series.read_packets)

    def forget(self) -> None:
        """Releases the series, so that a campaign of many runs does not fill the memory."""
        for name in ("throughput", "queues", "states", "transfers", "frames", "_kept"):
            self.__dict__.pop(name, None)


@dataclass
class Campaign(_Keeper):
    """The content of a campaign folder."""

    folder: Path
    header: Header
    results: Results
    metrics: list[Metric]
    runs: list[Run]
    skipped: list[Skipped]
    #: Rows and styles if several campaigns are combined; otherwise those of the resolved scenario.
    own_rows: Mapping[str, Conditions] | None = None
    own_styles: Mapping[str, Style] | None = None
    #: The metric that the reader asked for; empty if none.
    chosen_metric: str = ""

    @cached_property
    def rows(self) -> Mapping[str, Conditions]:
        """The rows, by label: their schemes and the values that a matrix gave them."""
        return self.own_rows or rows_of(self.resolved, self.schemes)

    @cached_property
    def styles(self) -> Mapping[str, Style]:
        """The styles of the schemes without their conditions, and of those of flows: the same in every figure
        of the campaign, whichever runs are chosen.
        """
        if self.own_styles is not None:
            return self.own_styles
        listed = self.resolved.schemes
        rows = rows_of(self.resolved, [row.label for row in listed] + [run.scheme for run in self.runs])
        flows = [name for row in listed for flow in row.flows if (name := flow.scheme)]
        return style.distinct([*(row.scheme for row in rows.values()), *flows])

    @cached_property
    def conditions(self) -> dict[str, list[Conditions]]:
        """The rows of each combination of matrix values, in words without the values that all share; a single
        group without a name if there is no matrix.
        """
        rows = [self.rows[label] for label in self.schemes if label in self.rows]
        values: dict[str, set[str]] = {}
        for row in rows:
            for name, value in row.values:
                values.setdefault(name, set()).add(value)
        result: dict[str, list[Conditions]] = {}
        for row in rows:
            varied = [f"{name} {value}" for name, value in row.values if len(values[name]) > 1]
            result.setdefault(", ".join(varied), []).append(row)
        return result

    @cached_property
    def resolved(self) -> Resolved:
        """The resolved scenario; empty if the campaign has not kept it."""
        return read_scenario(self.folder, self.header)

    @property
    def schemes(self) -> list[str]:
        """Schemes in the order of the scenario (cells are shuffled), without skipped ones."""
        wanted = [row.label for row in self.resolved.schemes]
        present = list(dict.fromkeys(run.scheme for run in self.runs))
        return [s for s in wanted if s in present] + [s for s in present if s not in wanted]

    def metric(self, name: str) -> Metric | None:
        """The description of one metric."""
        return next((m for m in self.metrics if m.name == name), None)

    def quantity(self, name: str) -> Quantity:
        """The description of one metric, or one derived from its name if it is unknown."""
        metric = self.metric(name)
        return Quantity.unknown(name) if metric is None else metric

    @cached_property
    def _summary(self) -> dict[tuple[str, str], SummaryLine]:
        return {(line.scheme, str(line.flow)): line for line in reversed(self.results.summary)}

    def statistics(self, scheme: str, flow: str) -> Mapping[str, Statistics]:
        """The statistics of a scheme and flow over its valid runs, by metric."""
        line = self._summary.get((scheme, flow))
        return {} if line is None else line.metrics

    def median(self, scheme: str, flow: str, metric: str) -> float | None:
        """The median of a metric over the valid runs; None if there is none."""
        statistics = self.statistics(scheme, flow).get(metric)
        return None if statistics is None else statistics.median

    def of_scheme(self, scheme: str) -> list[Run]:
        """The runs of a scheme, by number."""
        return sorted((r for r in self.runs if r.scheme == scheme), key=lambda r: r.number)

    @cached_property
    def measured(self) -> frozenset[str]:
        """The names of all metrics that have a value in any run."""
        rows = (row.metrics for run in self.runs for row in run.rows.values())
        return frozenset(name for row in rows for name, value in row.items() if value is not None)

    @cached_property
    def settings(self) -> Cell | Resolved | None:
        """Settings that all cells share (network, flows, duration): from a record, or from the resolved
        scenario.

        If they differ (both directions of a real path, a matrix) the scenario's first row counts.
        """
        for run in (run for scheme in self.schemes for run in self.of_scheme(scheme)):
            if run.record is not None and run.record.cell:
                return run.settings
        return self.resolved if self.resolved.network.is_known else None

    @property
    def planes(self) -> list[str]:
        """The planes of the runs, in the words of the scenario file."""
        places = {run.settings.where or str(run.record.plane) for run in self.runs if run.record}
        return sorted(places or ({self.settings.where} if self.settings and self.settings.where else ()))

    @property
    def name(self) -> str:
        """The name of the campaign."""
        names = (self.header.name, self.resolved.name, self.results.scenario)
        return str(next((name for name in names if name), self.folder.name))


def _reasons(entry: CellEntry) -> list[Reason]:
    reasons = [
        Reason(reason.severity or "note", reason.text or reason.code or "") for reason in entry.reasons
    ]
    if entry.state == FAILED and entry.error_message:
        reasons.append(Reason("failed", entry.error_message))
    return reasons


def _run(folder: Path, entry: CellEntry, rows: dict[str, dict[str, Row]], checked: bool) -> Run:
    cell, state, where = entry.id, entry.state, folder / "cells" / entry.id
    record, problem = None, None
    if (where / "run.json").exists():
        try:
            record = read_run(where)
            if difference := integrity.difference(where, entry, record):
                raise DataError(difference)
        except DataError as error:
            record, problem = None, str(error)
    if record is None and entry.is_finished:
        state, problem = (
            "failed",
            problem or f"the record {where} is missing although the campaign lists it as finished",
        )
    verdict = (record and record.verdict) or entry.verdict
    reasons = _reasons(entry) + ([Reason("failed", problem)] if problem else [])
    scheme, number = entry.scheme, entry.run
    own = rows.get(cell, {})
    return Run(cell, scheme, number, state, verdict, reasons, where, record, own, entry, problem, checked)


def load(folder: Path, measured: Results | None = None, *, checked: bool = False) -> Campaign:
    """Reads `campaign.json`, `results.json` (unless `measured` is given) and every `run.json`; series are
    read later, when drawn, and the files of their records are then compared with their digests, unless that
    has been `checked`. Raises `DataError` for results that do not belong to the records.
    """
    if is_sweep(folder):
        # Figures over parameter spaces read its data set; there are no records for other figures.
        header = Header(format=FORMAT, name=SweepFolder.read(folder).document.name)
        return Campaign(folder, header, NO_RESULTS, list_metrics(), [], [])
    opened = CampaignFolder.read(folder)
    results = measured or _results(opened)
    rows: dict[str, dict[str, Row]] = {}
    for row in results.rows:
        rows.setdefault(row.cell, {})[str(row.flow)] = row
    runs = [_run(folder, entry, rows, checked) for entry in opened.cells if entry.state != SKIPPED]
    skipped = {row.scheme: row for row in opened.header.skipped or results.skipped}
    for entry in opened.cells:
        if entry.state == SKIPPED:
            why = next((reason.text for reason in entry.reasons if reason.text), "")
            skipped.setdefault(entry.scheme, Skipped(scheme=entry.scheme, reason=why))
    metrics = results.metrics or list_metrics()
    campaign = Campaign(folder, opened.header, results, metrics, runs, list(skipped.values()))
    for run in runs:
        run.base, run.looks = campaign.rows[run.scheme].scheme, campaign.styles
    return campaign


def _results(folder: CampaignFolder) -> Results:
    """The results beside the records; measured again if some records are newer."""
    results = current(folder)
    return (
        compute(folder)
        if results is None and (folder.path / "results.json").is_file()
        else results or NO_RESULTS
    )


def thin(time: Floats, value: Floats, most: int) -> tuple[Floats, Floats]:
    """At most about `most` points of a curve; the smallest and largest value of every column of time are
    kept.
    """
    if len(time) <= most:
        return time, value
    columns = max(1, most // 2)
    width = -(-len(time) // columns)
    columns = -(-len(time) // width)
    filled = np.full(columns * width, np.nan)
    filled[: len(value)] = value
    table = filled.reshape(columns, width)
    starts = np.arange(columns) * width
    gaps = np.isnan(table)
    lowest = starts + np.where(gaps, np.inf, table).argmin(axis=1)
    highest = starts + np.where(gaps, -np.inf, table).argmax(axis=1)
    index = np.unique(np.concatenate([lowest, highest]))
    return time[index], value[index]


def floats(values: Any) -> Floats:
    """A column of the extension, as an array of numbers."""
    return np.asarray(values, dtype=np.float64)
