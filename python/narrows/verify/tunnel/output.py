"""What `narrows verify-tunnel` prints and writes."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows import __version__
from narrows.report import style
from narrows.report.drawing import Options as FigureOptions
from narrows.report.drawing import new_figure, paper_style, write_figure, write_numbers
from narrows.verify.tunnel.compare import (
    LEVEL_OF_TEST,
    MARGIN,
    MEANINGS,
    METRICS,
    Row,
    circumstances,
    own_account,
    values,
)
from narrows.verify.tunnel.lab import INSIDE
from narrows.verify.tunnel.smirnov import significance
from narrows.verify.tunnel.work import Outcome

if TYPE_CHECKING:
    from rich.console import Console

FORMAT = "narrows/verify-tunnel/1"
FILE, FIGURE = "verify-tunnel.json", "verify-tunnel"
_PANEL_MM, _HEAD_MM = 48.0, 8.0
#: Outside, inside, on a longer way: colour and dashes.
_LINES = ((style.INK, "-"), ("#c44601", "-"), ("#0067a5", (0, (4, 2))))


def document(outcome: Outcome) -> dict[str, Any]:
    """Everything, for programs."""
    options = outcome.options
    return {
        "format": FORMAT,
        "version": __version__,
        "path": asdict(options.road),
        "longer_ns": options.longer_ns or None,
        "seed": options.seed,
        "level": LEVEL_OF_TEST,
        "margin": MARGIN,
        "rows": [row.to_json() for row in outcome.rows],
        "significant": significant(outcome.rows),
        "by_chance": by_chance(outcome.rows),
        "tunnel": {scheme: own_account(places[INSIDE.name]) for scheme, places in outcome.runs.items()},
        "circumstances": {
            scheme: {where: circumstances(runs) for where, runs in places.items()}
            for scheme, places in outcome.runs.items()
        },
        "repeated": outcome.repeated,
        "given_up": outcome.given_up,
        "degraded": outcome.degraded,
        "differing_settings": outcome.differing,
        "runs": outcome.runs,
    }


def significant(rows: list[Row]) -> int:
    """How many comparisons of inside with outside have found a difference."""
    return sum(row.p is not None and row.p < LEVEL_OF_TEST for row in rows if row.where == INSIDE.name)


def by_chance(rows: list[Row]) -> float:
    """How many would, on average, if nothing differed. The probability of each is below the level, because
    the statistic has few possible values."""
    expected = 0.0
    for row in rows:
        if row.where == INSIDE.name and row.p is not None:
            n, m = len(row.outside), len(row.other)
            chances = (significance(n, m, apart) for apart in range(1, n * m + 1))
            expected += next((p for p in chances if p < LEVEL_OF_TEST), 0.0)
    return expected


def write(outcome: Outcome, folder: Path) -> list[Path]:
    """Writes the document and the figure."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(document(outcome), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(path)
    return [path, *_draw(outcome, folder / FIGURE)]


def _draw(outcome: Outcome, stem: Path) -> list[Path]:
    """The distributions over runs: a column per scheme, throughput above, delay below."""
    schemes = list(outcome.runs)
    options = FigureOptions()
    height = len(METRICS) * _PANEL_MM + _HEAD_MM
    columns: dict[str, list[Any]] = {"scheme": [], "where": [], "metric": [], "value": []}
    with paper_style(options):
        figure = new_figure(options, height)
        panels = figure.subplots(len(METRICS), len(schemes), squeeze=False)
        handles: dict[str, Any] = {}
        for column, scheme in enumerate(schemes):
            for line, (metric, words, unit, factor) in enumerate(METRICS):
                panel = panels[line][column]
                for (where, runs), (colour, dash) in zip(outcome.runs[scheme].items(), _LINES, strict=False):
                    found = sorted(value * factor for value in values(runs, metric))
                    columns["scheme"] += [scheme] * len(found)
                    columns["where"] += [where] * len(found)
                    columns["metric"] += [metric] * len(found)
                    columns["value"] += found
                    if found:
                        (handles[where],) = (panel.ecdf(found, color=colour, linestyle=dash),)
                panel.set_xlabel(f"{words} ({unit})", fontsize=6)
                panel.set_ylim(0, 1.02)
                note = "\n".join(
                    f"D = {row.statistic:.2f}, p = {row.p:.2g}"
                    for row in outcome.rows
                    if (row.scheme, row.metric, row.where) == (scheme, metric, INSIDE.name)
                    and row.p is not None
                )
                panel.set_title(
                    f"{scheme}   {note}" if line == 0 else note, fontsize=6.5, loc="left", pad=2.5
                )
                panel.ticklabel_format(axis="x", useOffset=False)
                panel.locator_params(axis="x", nbins=4)
                panel.tick_params(labelsize=6)
            panels[0][0].set_ylabel("share of runs", fontsize=6.5)
            panels[-1][0].set_ylabel("share of runs", fontsize=6.5)
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="upper left",
            bbox_to_anchor=(0.01, 1.0),
            ncols=3,
            frameon=False,
        )
        figure.subplots_adjust(
            left=0.07,
            right=0.98,
            bottom=9 / height,
            top=1 - (_HEAD_MM + 3) / height,
            hspace=0.42,
            wspace=0.22,
        )
    write_numbers(columns, stem.with_suffix(".csv"))
    return [*write_figure(figure, stem, ("svg", "png"), options), stem.with_suffix(".csv")]


def print_outcome(console: Console, outcome: Outcome, paths: list[Path]) -> None:
    """The table, what the tunnel says itself, what may explain differences, and where to read more."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    for title in (
        "scheme",
        "metric",
        "outside",
        "compared",
        "difference",
        "95 % interval",
        "D",
        "p",
        "p (all)",
        "",
    ):
        table.add_column(
            title, no_wrap=True, justify="left" if title in ("scheme", "metric", "") else "right"
        )
    units = {key: (words, unit, factor) for key, words, unit, factor in METRICS}
    for row in outcome.rows:
        words, unit, factor = units[row.metric]
        name = "p95 of delay" if row.metric == "delay_p95_ns" else words
        table.add_row(
            row.scheme,
            name,
            _number(row.median_outside, factor, unit),
            f"{row.where} {_number(row.median_other, factor, unit)}",
            "" if row.difference is None else f"{row.difference * 100:+.2f} %",
            "" if row.interval is None else f"{row.interval[0] * 100:+.2f} to {row.interval[1] * 100:+.2f} %",
            "" if row.statistic is None else f"{row.statistic:.2f}",
            "" if row.p is None else f"{row.p:.2g}",
            "" if row.p_holm is None else f"{row.p_holm:.2g}",
            row.outcome,
        )
    console.print(table)
    for line in remarks(outcome):
        console.print(line, markup=False, soft_wrap=True)
    for path in paths:
        console.print(f"written: {path}", markup=False, soft_wrap=True)


def _number(value: float | None, factor: float, unit: str) -> str:
    return "N/A" if value is None else f"{value * factor:.3f} {unit}"


def remarks(outcome: Outcome) -> list[str]:
    """What the table does not say."""
    compared = sum(row.where == INSIDE.name and row.p is not None for row in outcome.rows)
    lines = [
        "",
        f"{significant(outcome.rows)} of {compared} comparisons of inside with outside are below p ="
        f" {LEVEL_OF_TEST:g}; if nothing differed, {by_chance(outcome.rows):.1f} would be on average."
        " p (all) allows for their number.",
    ]
    lines += [
        f"{name}: {MEANINGS[name]}" for name in MEANINGS if any(row.outcome == name for row in outcome.rows)
    ]
    lines.append("")
    for scheme, places in outcome.runs.items():
        for where, runs in places.items():
            lines.append(f"{scheme} {where}: {_circumstances(circumstances(runs))}")
        account = own_account(places[INSIDE.name])
        if account is not None:
            lines.append(
                f"{scheme}: the tunnel's own logs say {account['throughput'] * 100:+.3f} % of throughput and"
                f" {account['delay_p95_ns'] / 1e6:+.3f} ms of the 95th percentile more than the path's record"
            )
    lines.append("")
    lines.append(
        f"{outcome.repeated} attempts were repeated because the machine had too much else to do;"
        f" {outcome.given_up} runs were given up, {outcome.degraded} count although they are degraded."
    )
    if outcome.differing:
        lines.append(f"Settings of the kernel that differ outside: {', '.join(outcome.differing)}")
    return lines


def _circumstances(found: dict[str, float | None]) -> str:
    parts = (
        ("loss_ratio", 100, "{:.3f} % lost"),
        ("train_ratio", 100, "{:.1f} % of packets in trains"),
        ("rtt_min_ns", 1e-6, "smallest RTT {:.3f} ms"),
        ("late_p99_ns", 1e-3, "emulator late by {:.0f} us (p99)"),
        ("waited_p99_ns", 1e-3, "waited in the tunnel for {:.0f} us (p99)"),
    )
    return ", ".join(
        text.format(value * factor) for key, factor, text in parts if (value := found.get(key)) is not None
    )
