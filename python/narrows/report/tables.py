"""The tables of a report, with the same layout on the page and in the PDF."""

from __future__ import annotations

from pathlib import Path

from msgspec import field

from narrows.analysis.metrics import ENDS
from narrows.blocks.model import Cell, Column, Link, Note, Table
from narrows.campaign import own_metrics
from narrows.documents.data import Part, from_data
from narrows.documents.resolved import TRAINED_BY_NARROWS
from narrows.documents.results import Metric, Quantity, Statistics
from narrows.files import read_packaged
from narrows.report import prose, real_path, units, verification
from narrows.report.cells import Notes, name_cells, name_heads, row_names
from narrows.report.content import MetricDefinition
from narrows.report.data import Campaign, Run
from narrows.scenario import registry
from narrows.scenario.measure import measure_in_words
from narrows.scenario.programs import playback
from narrows.statistics.runs import are_identical, median_over_runs
from narrows.text import plural


class MoreTable(Part, frozen=True, kw_only=True):
    """A table after the results."""

    title: str
    metrics: list[str] = field(default_factory=list)
    words: str
    #: False if it has a row per scheme only.
    flows: bool = True


class TableFile(Part, frozen=True, kw_only=True):
    """The content of `tables.yaml`."""

    headline: list[str]
    if_measured: list[str]
    heads: dict[str, str]
    more: dict[str, MoreTable]


_FILE = from_data(read_packaged(Path(__file__).with_name("tables.yaml")), TableFile, "tables.yaml")
MORE = _FILE.more
SAME = "Runs of a simulated scheme are identical when nothing on the path uses chance."


MOST_BACKGROUND = 4
"""Background flows with a separate column."""


def meaningful_metrics(campaign: Campaign) -> list[Metric]:
    """The metrics of a campaign without those about parts of a scenario that this one lacks."""
    known = registry.metrics()
    groups = {name for name, metric in known.items() if metric.group} | {row[0] for row in playback.METRICS}
    return [m for m in campaign.metrics if m.name not in groups or m.name in campaign.measured]


def _has_no_subject(name: str, reason: str) -> bool:
    """True if a metric is about a part of scenarios that a flow lacks."""
    metric = registry.metrics().get(name)
    return metric is not None and metric.no_subject == reason


def _unit(metric: Quantity) -> str:
    return metric.show_unit


def _head(metric: Metric) -> Column:
    return Column(_FILE.heads.get(metric.name) or metric.label, unit=_unit(metric))


def _is_meant(metric: Metric, flow: str) -> bool:
    """False if a metric does not apply to such a row: a metric of all flows in the row of a single one, or
    the reverse.
    """
    scope = metric.scope
    return scope not in ("all", "flow") or (scope == "all") == (flow == "all")


def _dash() -> Cell:
    return Cell("–", kind="absent")


def _not_available(notes: Notes, reasons: list[str]) -> Cell:
    wanted = list(dict.fromkeys(r for r in reasons if r)) or ["the record does not say why"]
    return Cell("N/A", kind="absent", marks=tuple(notes.mark(r) for r in wanted))


def _values(runs: list[Run], flow: str, name: str) -> list[float]:
    values = []
    for run in runs:
        value = run.value(flow, name)
        if run.valid and value is not None:
            values.append(float(value))
    return values


def _reasons(runs: list[Run], flow: str, name: str) -> list[str]:
    valid = [r for r in runs if r.valid]
    if not valid:
        return ["no valid run"]
    reasons = []
    for run in valid:
        row = run.rows.get(flow)
        if row is None:
            reasons.append(f"run {run.number} has no row for this flow in results.json")
            continue
        if row.metrics.get(name) is None:
            reasons.append(row.absent.get(name, ""))
    return reasons


def _spread(entry: Statistics, values: list[float], scale: float, places: int) -> str | None:
    """The interval of the median, or for a few runs their range; for identical runs neither has a meaning."""
    if are_identical(values):
        return "identical"
    interval = entry.ci95
    if interval:
        return f"[{units.number(interval[0] * scale, places)}, {units.number(interval[1] * scale, places)}]"
    if len(values) > 1:
        low, high = units.number(min(values) * scale, places), units.number(max(values) * scale, places)
        return f"{low} to {high}"
    return None


def _doubts(notes: Notes, runs: list[Run], flow: str, metric: str) -> tuple[str, ...]:
    """The mark of a number that the clocks of two hosts make uncertain."""
    why = real_path.doubt(runs, flow, metric)
    return (notes.mark(why),) if why else ()


def results(campaign: Campaign) -> Table:
    """The main table: a row per scheme and flow."""
    notes = Notes()
    usual = ENDS if real_path.only_ends(campaign) else _FILE.headline
    names = [n for n in usual if n in campaign.measured or n not in _FILE.if_measured]
    names += own_metrics.names(campaign.metrics)
    metrics = [m for m in (campaign.metric(name) for name in names) if m is not None]
    called = row_names(campaign)
    head = [*name_heads(called), Column("flow", "left"), Column("runs"), *map(_head, metrics)]
    planned = []
    for scheme in campaign.schemes:
        runs = campaign.of_scheme(scheme)
        flows = sorted({f.number for r in runs for f in r.tested})
        flows = flows or sorted({int(k) for r in runs for k in r.rows if k.isdigit()})
        keys = [*map(str, flows), "all"] if len(flows) != 1 else ["all"]
        planned.append((scheme, runs, keys))
    centres: dict[tuple[str, str, str], float] = {}
    for scheme, _, keys in planned:
        for key in keys:
            for metric in metrics:
                value = campaign.median(scheme, key, metric.name)
                if value is not None:
                    centres[scheme, key, metric.name] = float(value)
    places = {}
    for metric in metrics:
        scale = metric.show_scale
        column = [v * scale for (_, _, name), v in centres.items() if name == metric.name]
        places[metric.name] = units.decimals_for(column)
    rows = []
    for scheme, runs, keys in planned:
        valid = sum(1 for r in runs if r.valid)
        for index, key in enumerate(keys):
            row = []
            if index == 0:
                row += name_cells(called, scheme, len(keys), verification.status_of(campaign, scheme))
            row.append(Cell("all" if key == "all" else key, kind="total" if key == "all" else ""))
            marks: tuple[str, ...] = ()
            if valid < len(runs):
                lost = [f"run {r.number} {r.outcome}" for r in runs if not r.valid]
                marks = (notes.mark(f"{scheme}: {', '.join(lost)}, not in these numbers"),)
            row.append(Cell(f"{valid} of {len(runs)}", marks=marks))
            for metric in metrics:
                name, scale = metric.name, metric.show_scale
                centre = centres.get((scheme, key, name))
                if centre is None and not _is_meant(metric, key):
                    row.append(_dash())
                    continue
                if centre is None:
                    row.append(_not_available(notes, _reasons(runs, key, name)))
                    continue
                entry = campaign.statistics(scheme, key)[name]
                values = _values(runs, key, name)
                known = entry.n or len(values)
                marks = ()
                if known < valid:
                    why = "; ".join(dict.fromkeys(r for r in _reasons(runs, key, name) if r))
                    marks = (notes.mark(f"over {plural(known, 'run')} only" + (f": {why}" if why else "")),)
                marks += _doubts(notes, [r for r in runs if r.valid], key, name)
                text = units.number(centre * scale, places[name])
                spread = _spread(entry, values, scale, places[name])
                row.append(Cell(text, small=spread, marks=marks))
            rows.append(row)
    return Table.new(head, rows, notes.list_notes())


def results_words(campaign: Campaign) -> str:
    """The explanation of the main table."""
    counts = [
        statistics.n
        for line in campaign.results.summary
        for statistics in line.metrics.values()
        if statistics.happened is None
    ]
    if not counts:
        return "No run is valid, so there are no numbers."
    few, many = min(counts) < 6, max(counts) >= 6
    parts = ["Only valid runs (ok or degraded) enter."]
    if shared := row_names(campaign).sentence:
        parts.insert(0, shared)
    if many:
        parts.append(
            "From 6 runs on: the median of the runs and, in brackets, its 95 % bootstrap interval "
            "(10 000 resamples, fixed seed)."
        )
    if few and max(counts) > 1:
        parts.append("Below 6 runs: the median of the runs and, below it, their smallest and largest value.")
    elif few and not many:
        parts.append("One run each: the value of that run.")
    if about := measure_in_words(campaign.resolved.measure):
        parts.append(about)
    parts.append("The row “all” pools the packets of all flows of a run.")
    if _repeats(campaign):
        parts.append(SAME)
    return " ".join(parts)


def _repeats(campaign: Campaign) -> bool:
    """True if several runs of a simulated scheme have the same numbers because nothing in them is random.

    The numbers show this, because any element or scheme may be random. A lossy link may by chance lose
    nothing in all runs; that does not count.
    """
    for scheme in campaign.schemes:
        runs = [r for r in campaign.of_scheme(scheme) if r.valid and r.settings.where == "simulate"]
        if len(runs) < 2 or any(r.elements("loss") for r in runs):
            continue
        entries = [{flow: row.metrics for flow, row in r.rows.items()} for r in runs]
        if entries[0] and all(entry == entries[0] for entry in entries):
            return True
    return False


def run_statistics(campaign: Campaign, run: Run) -> Table:
    """All metrics of one run: a row per metric, a column per flow and one for all flows."""
    notes = Notes()
    shown = [*run.tested, *run.background[:MOST_BACKGROUND]]
    keys = [*(str(f.number) for f in shown), "all"] if run.flows else list(run.rows)
    labels = {str(f.number): f"{f.label} (background)" if f.background else f.label for f in shown}
    hidden = len(run.background) - MOST_BACKGROUND
    if hidden > 0:
        notes.mark(f"{plural(hidden, 'background flow')} more: see results.csv")
    head = [
        *(Column(title, "left") for title in ("metric", "unit")),
        *(Column(labels.get(k, "all flows")) for k in keys),
    ]
    rows = []
    without: dict[str, list[str]] = {}
    for metric in meaningful_metrics(campaign):
        name, scale = metric.name, metric.show_scale
        label = metric.label
        values: list[float | None] = []
        for key in keys:
            value = run.value(key, name)
            values.append(None if value is None else float(value) * scale)
        if all(value is None for value in values):
            for reason in _why_none(run, metric, keys):
                without.setdefault(reason, []).append(label)
            continue
        places = units.decimals_for([v for v in values if v is not None])
        row = [Cell(label), Cell(_unit(metric), kind="unit")]
        for key, value in zip(keys, values, strict=True):
            if value is not None:
                marks = _doubts(notes, [run], key, name)
                row.append(Cell(units.number(value, places), marks=marks))
                continue
            reason = _reason(run, key, name)
            if _has_no_subject(name, reason) or (key in run.rows and not _is_meant(metric, key)):
                row.append(_dash())
            else:
                row.append(_not_available(notes, [reason]))
        rows.append(row)
    absent = [Note("", f"No {', '.join(names)}: {reason}") for reason, names in without.items()]
    return Table.new(head, rows, [*notes.list_notes(), *absent])


def _reason(run: Run, key: str, name: str) -> str:
    """The reason why a row has no value of a metric, in the core's words."""
    entry = run.rows.get(key)
    return "results.json has no row for it" if entry is None else entry.absent.get(name, "")


def _why_none(run: Run, metric: Metric, keys: list[str]) -> list[str]:
    """The reasons why no row of a run has a value of a metric, each once; none if the run lacks the metric's
    subject.
    """
    rows = [key for key in keys if _is_meant(metric, key)]
    reasons = dict.fromkeys(_reason(run, key, metric.name) for key in rows)
    return [reason for reason in reasons if reason and not _has_no_subject(metric.name, reason)]


def _median_table(campaign: Campaign, names: list[str], flows: bool) -> Table | None:
    """A row per scheme (and flow, background included) that has a value of the first of these metrics."""
    notes = Notes()
    metrics = [m for m in (campaign.metric(name) for name in names) if m is not None]
    if not metrics:
        return None
    called = row_names(campaign)
    rows = []
    for scheme in campaign.schemes:
        runs = campaign.of_scheme(scheme)
        numbered = {f.number: f for r in runs for f in r.flows}
        keys = [str(n) for n in sorted(numbered)] if flows else ["all"]
        for key in keys:
            if not _values(runs, key, names[0]):
                continue
            row = name_cells(called, scheme)
            if flows:
                flow = numbered[int(key)]
                row.append(
                    Cell(
                        f"{key} ({flow.scheme}, background)" if flow.background else f"{key} ({flow.scheme})"
                    )
                )
            for metric in metrics:
                name, scale = metric.name, metric.show_scale
                values = sorted(value * scale for value in _values(runs, key, name))
                if not values:
                    row.append(_not_available(notes, _reasons(runs, key, name)))
                    continue
                counts = all(float(value).is_integer() for value in values) and not _unit(metric)
                places = 0 if counts else units.decimals_for(values)
                middle = median_over_runs(values)
                spread = None
                if len(values) > 1:
                    spread = f"{units.number(values[0], places)} to {units.number(values[-1], places)}"
                row.append(Cell(units.number(middle, places), small=spread))
            rows.append(row)
    if not rows:
        return None
    head = [*name_heads(called), *([Column("flow", "left")] if flows else []), *map(_head, metrics)]
    return Table.new(head, rows, notes.list_notes())


def medians(campaign: Campaign, name: str) -> Table | None:
    """One of the tables whose cells are medians; nothing if no scheme has its subject."""
    return _median_table(campaign, MORE[name].metrics, flows=MORE[name].flows)


def expectations(campaign: Campaign) -> Table | None:
    """The expectations of the scenario, and their outcomes."""
    outcomes = campaign.results.expect
    if not outcomes:
        return None
    kinds = {"holds": "outcome-ok", "fails": "outcome-invalid", "skipped": "outcome-skipped"}
    rows = []
    for outcome in outcomes:
        about = outcome.about or campaign.quantity(outcome.metric)
        text = "–"
        if outcome.value is not None:
            text = f"{units.number(outcome.value * about.show_scale)} {_unit(about)}".strip()
        rows.append(
            [
                Cell(outcome.text),
                Cell(text),
                Cell(outcome.outcome, kind=kinds[outcome.outcome]),
                Cell(outcome.reason or "", kind="quiet"),
            ]
        )
    titles = ("expectation", "found", "outcome", "why")
    head = [Column(title, "right" if title == "found" else "left") for title in titles]
    return Table.new(head, rows)


def verdicts(campaign: Campaign) -> Table:
    """Every cell with its outcome; runs of a scheme that share outcome and reasons share a row."""
    called = row_names(campaign)
    head = [*name_heads(called), *(Column(title, "left") for title in ("runs", "outcome", "why"))]
    grouped: dict[tuple[str, str, str], list[Run]] = {}
    for run in sorted(campaign.runs, key=lambda r: (campaign.schemes.index(r.scheme), r.number)):
        nothing = (
            "nothing to report" if run.outcome == "ok" else "not run yet" if run.outcome == "pending" else ""
        )
        why = " ".join(r.text for r in run.reasons) or nothing or "no reason was recorded"
        grouped.setdefault((run.scheme, run.outcome, why), []).append(run)
    rows = []
    for (scheme, outcome, why), runs in grouped.items():
        links = tuple(Link(str(r.number), f"#run-{r.cell}" if r.record else "") for r in runs)
        rows.append(
            [
                *name_cells(called, scheme, status=verification.status_of(campaign, scheme)),
                Cell(", ".join(str(r.number) for r in runs), links=links),
                Cell(outcome, kind=f"outcome-{outcome}"),
                Cell(why, kind="quiet" if outcome == "ok" else ""),
            ]
        )
    for skipped in campaign.skipped:
        rows.append(
            [
                *name_cells(called, skipped.scheme),
                Cell("–"),
                Cell("skipped", kind="outcome-skipped"),
                Cell(skipped.reason or "no reason was recorded"),
            ]
        )
    return Table.new(head, rows)


def fingerprints(campaign: Campaign) -> Table:
    """The code that ran: one row per distinct identity of a sender, with the flows that had it."""
    titles = ("scheme", "implementation", "version", "read back", "parameters", "runs")
    head = [Column(title, "left", names=title == "scheme") for title in titles]
    grouped: dict[tuple[str, ...], list[str]] = {}
    for run in campaign.runs:
        own = {flow.number for flow in run.settings.flows if flow.has_own_model}
        for flow in run.record.flows if run.record else []:
            mark = flow.fingerprint
            version = f"kernel {mark.kernel}" if mark.kernel else mark.version or "unknown"
            if mark.git and not mark.kernel:
                version += f" ({mark.git})"
            if flow.program and flow.program.root:
                version += f", root {flow.program.root.digest[:19]}"
            params = ", ".join(prose.params(registry.load().schemes.get(mark.name or ""), mark.params))
            if flow.flow in own:
                params += f" ({TRAINED_BY_NARROWS})"
            kind = {"native": "Narrows", "linux": "Linux kernel"}.get(mark.kind or "", mark.kind)
            key = (
                flow.scheme,
                f"{kind}: {mark.name}",
                version,
                mark.read_back or "not possible",
                params or "defaults",
            )
            grouped.setdefault(key, []).append(run.cell)
    rows = [[Cell(k[0], kind="scheme"), *map(Cell, k[1:]), Cell(_cells(v))] for k, v in grouped.items()]
    return Table.new(head, rows)


def _cells(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    return ", ".join(unique) if len(unique) <= 6 else f"{', '.join(unique[:5])} and {len(unique) - 5} more"


def definitions(campaign: Campaign) -> list[MetricDefinition]:
    """The definition of every number."""
    better = {"higher": "higher is better", "lower": "lower is better"}
    return [
        MetricDefinition(
            name=m.name,
            label=m.label,
            unit=_unit(m),
            text=m.definition,
            better=better.get(m.better or "", ""),
            source=m.source or "",
        )
        for m in meaningful_metrics(campaign)
    ]
