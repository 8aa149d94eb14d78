"""The distributions over runs, as a figure and its numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from narrows.report import style
from narrows.report.drawing import Options, new_figure, paper_style, write_figure, write_numbers
from validation.tunnel.compare import METRICS, is_main, values
from validation.tunnel.work import Outcome

_PANEL_MM, _HEAD_MM = 48.0, 8.0
#: Outside, inside, with a longer return path: colour and dashes.
_LINES = ((style.INK, "-"), ("#c44601", "-"), ("#0067a5", (0, (4, 2))))


def draw(outcome: Outcome, stem: Path) -> list[Path]:
    """The distributions over runs: a column per scheme, throughput above, delay below."""
    schemes = list(outcome.runs)
    options = Options()
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
                    if (row.scheme, row.metric) == (scheme, metric) and is_main(row) and row.p is not None
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
