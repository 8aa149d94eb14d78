"""Tables of flows, of their traffic, and of links, for the terminal: medians over valid runs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from narrows.analysis.metrics import ENDS, has_packets, of_names
from narrows.analysis.row_names import RowNames
from narrows.analysis.tables import (
    Metrics,
    beside,
    column_of,
    fit_spread,
    name_cells,
    name_columns,
    rows_by_label,
)
from narrows.blocks.model import Column, Table
from narrows.blocks.terminal import print_table
from narrows.campaign import own_metrics
from narrows.documents.resolved import Resolved
from narrows.documents.results import LinkSummary, Results, SummaryLine

#: Metrics of a single flow.
PER_FLOW = (
    "throughput_bps",
    "goodput_bps",
    "delay_p95_ns",
    "queueing_delay_p95_ns",
    "loss_ratio",
    "retransmitted_ratio",
)
#: Metrics of several flows together.
SHARING = ("throughput_ratio", "loss_events", "loss_synchronisation")
#: The first of these metrics that has a value in any run is shown.
CONVERGENCE = ("convergence_10s_ns", "convergence_1s_ns")
#: Metrics of flows that send frames of video, our schemes and programs alike.
OF_FRAMES = (
    "media_target_bps",
    "media_sent_bps",
    "frame_delay_p95_ns",
    "frame_loss_ratio",
    "freezes",
    "freeze_ratio",
)
#: Metrics of flows whose program is a player of video.
OF_PLAYBACK = (
    "playback_startup_ns",
    "playback_stalls",
    "playback_stalled_ratio",
    "playback_bitrate_bps",
    "playback_switches",
)
#: Metrics of a link.
PER_LINK = ("throughput_bps", "utilization_ratio", "bottleneck_drop_ratio", "cov_1s", "cov_10s")


def _print_lines(
    console: Console,
    heads: Sequence[Column],
    rows: Sequence[tuple[Sequence[str], SummaryLine | LinkSummary]],
    metrics: Metrics,
    more: Sequence[tuple[Column, Sequence[str]]] = (),
) -> None:
    """Prints a table with the first cells of each row, its metrics (with their spread where there is room),
    and more columns with their cells.
    """

    def make(spreads: int) -> Table:
        lines = [line for _, line in rows]
        columns = [beside(lines, metric, spread=place < spreads) for place, metric in enumerate(metrics)]
        return Table.new(
            (*heads, *map(column_of, metrics), *(column for column, _ in more)),
            (
                (*first, *values)
                for (first, _), *values in zip(rows, *columns, *(cells for _, cells in more), strict=True)
            ),
        )

    print_table(console, fit_spread(console, len(metrics), make)[0])


def print_flows(console: Console, results: Results, scenarios: Sequence[Resolved] = ()) -> None:
    """Prints the table per scheme and flow; the resolved scenario supplies the values of a matrix."""
    lines = [line for line in results.summary if line.flow != "all"]
    if not lines or all(line.flow == 1 for line in lines):
        return
    console.print()
    metrics = of_names(results.metrics, PER_FLOW if has_packets(results) else ENDS)
    metrics += [
        metric
        for metric in of_names(results.metrics, own_metrics.names(results.metrics))
        if any(metric.name in line.metrics for line in lines)
    ]
    rows: list[tuple[Sequence[str], SummaryLine]] = []
    called = RowNames(rows_by_label(scenarios), [line.scheme for line in lines])
    before = None
    for line in lines:
        flow = f"{line.flow} ({line.label})" if line.label else str(line.flow)
        label = "" if line.scheme == before else line.scheme
        rows.append(((*name_cells(called, label), flow), line))
        before = line.scheme
    _print_lines(console, (*name_columns(called), Column("flow", "left")), rows, metrics)


def print_sharing(console: Console, results: Results, scenarios: Sequence[Resolved] = ()) -> None:
    """Prints the table of several flows under test together; prints nothing for a single flow."""
    lines = [line for line in results.summary if line.flow == "all"]
    lines = [line for line in lines if line.metrics.get(SHARING[0])]
    if not lines:
        return
    console.print()
    metrics = of_names(results.metrics, SHARING)
    times = [
        metric
        for metric in of_names(results.metrics, CONVERGENCE)
        if any(metric.name in line.metrics for line in lines)
    ]
    metrics += times[:1]
    called = RowNames(rows_by_label(scenarios), [line.scheme for line in lines])
    rows: list[tuple[Sequence[str], SummaryLine]] = []
    converged = []
    for line in lines:
        time = line.metrics.get(times[0].name) if times else None
        converged.append(f"{time.happened} of {time.of}" if time else "")
        rows.append((name_cells(called, line.scheme), line))
    more = [(Column("runs\nconverged", rank=1), converged)] if times else []
    _print_lines(console, name_columns(called), rows, metrics, more)


def print_frames(console: Console, results: Results, scenarios: Sequence[Resolved] = ()) -> None:
    """Prints the table of video frames by scheme, and by flow if several flows are tested; prints nothing if
    no frames were sent.
    """
    _print_some(console, results, scenarios, OF_FRAMES, "freezes")


def print_playback(console: Console, results: Results, scenarios: Sequence[Resolved] = ()) -> None:
    """Prints the corresponding table of films in players."""
    _print_some(console, results, scenarios, OF_PLAYBACK, OF_PLAYBACK[0])


def _print_some(
    console: Console,
    results: Results,
    scenarios: Sequence[Resolved],
    names: Sequence[str],
    of: str,
) -> None:
    """Prints a table of the flows that have the metric `of`."""
    lines = [line for line in results.summary if of in line.metrics]
    flows = [line for line in lines if line.flow != "all"]
    schemes = {line.scheme for line in lines}
    if not lines:
        return
    console.print()
    metrics = of_names(results.metrics, names)
    called = RowNames(rows_by_label(scenarios), schemes)
    if len(flows) <= len(schemes):
        rows = [(name_cells(called, line.scheme), line) for line in lines if line.flow == "all"]
        _print_lines(console, name_columns(called), rows, metrics)
        return
    named = [((*name_cells(called, line.scheme), line.label or str(line.flow)), line) for line in flows]
    _print_lines(console, (*name_columns(called), Column("flow", "left")), named, metrics)


def print_links(console: Console, results: Results, scenarios: Sequence[Resolved] = ()) -> None:
    """Prints the table per scheme and link, if the scenario measures links."""
    lines = results.link_summary
    if not lines:
        return
    console.print()
    called = RowNames(rows_by_label(scenarios), [line.scheme for line in lines])
    rows = [((*name_cells(called, line.scheme), line.link), line) for line in lines]
    heads = (*name_columns(called), Column("link", "left"))
    _print_lines(console, heads, rows, of_names(results.metrics, PER_LINK))
