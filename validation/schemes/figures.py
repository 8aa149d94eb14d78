"""The windows of two implementations superimposed, path by path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from narrows.report import style
from narrows.report.drawing import Options, new_figure, paper_style
from validation.schemes.emulate import GridResult
from validation.schemes.grid import GridPath

COLUMNS = 3
_WIDTH_MM, _PANEL_MM, _HEAD_MM = 180.0, 34.0, 8.0
#: Samples that are this many times larger than nearly all others are cut off.
_SPIKE = 4.0


def draw(
    ours: str,
    theirs: str,
    grid_paths: tuple[GridPath, ...],
    runs: dict[str, list[GridResult]],
    stem: Path,
    notes: dict[str, str],
) -> Path:
    """One panel per path; `notes` are words for the head of a panel, by the path's name."""
    rows = -(-len(grid_paths) // COLUMNS)
    options = Options(width_mm=_WIDTH_MM)
    with paper_style(options):
        figure = new_figure(options, rows * _PANEL_MM + _HEAD_MM)
        height = rows * _PANEL_MM + _HEAD_MM
        panels = figure.subplots(rows, COLUMNS, squeeze=False).flatten()
        handles: list[Any] = []
        # The reference is below and a little wider, so that coinciding lines remain visible.
        drawn = ((theirs, 1.6, 0.55), (ours, 0.8, 1.0))
        for panel, grid_path, index in zip(panels, grid_paths, range(len(grid_paths)), strict=False):
            handles = []
            for name, width, alpha in drawn:
                window = _window(runs.get(name, []), index)
                how = style.of(name)
                (line,) = panel.plot(
                    window["time_s"], window["cwnd_packets"], color=how.color, linewidth=width, alpha=alpha
                )
                handles.append(line)
            panel.set_title(grid_path.name, fontsize=6.5, loc="left", pad=2.5)
            top, cut_off = _scale([line.get_ydata() for line in handles])
            note = ", ".join(text for text in (notes.get(grid_path.name), cut_off) if text)
            # Inside, because the names of some paths need the whole width.
            panel.text(
                0.99, 0.97, note, ha="right", va="top", transform=panel.transAxes,
                fontsize=5, color=style.MUTED,
            )  # fmt: skip
            panel.set_ylim(0, top)
            panel.tick_params(labelsize=6)
        for panel in panels[len(grid_paths) :]:
            panel.set_visible(False)
        for panel in panels[::COLUMNS]:
            panel.set_ylabel("window (packets)", fontsize=6.5)
        for panel in panels[max(0, len(grid_paths) - COLUMNS) : len(grid_paths)]:
            panel.set_xlabel("time (s)", fontsize=6.5)
        figure.legend(
            handles, [theirs, ours], loc="upper left", bbox_to_anchor=(0.01, 1.0), ncols=2, frameon=False
        )
        figure.subplots_adjust(
            left=0.06, right=0.99, bottom=8 / height, top=1 - _HEAD_MM / height, hspace=0.42, wspace=0.2
        )
        # Few dots: one of the figures is kept in the source tree.
        path = stem.with_name(f"{stem.name}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=140, pil_kwargs={"optimize": True})
    return path


def _scale(lines: list[Any]) -> tuple[float | None, str | None]:
    """The top of the axis, with room for a note, and words if spikes reach above it.

    A few samples may be hundreds of times larger than all others (a wrong window of the kernel's), and would
    make the rest a flat line.
    """
    values = np.concatenate([np.asarray(line, dtype=float) for line in lines]) if lines else np.zeros(0)
    if not values.size or not (most := float(np.percentile(values, 99.5))) > 0:
        return None, None
    largest = float(values.max())
    if largest <= _SPIKE * most:
        return 1.25 * largest, None
    return 1.25 * most, f"spike to {largest:.2g} packets cut off"


def _window(runs: list[GridResult], index: int) -> dict[str, list[float]]:
    """The window on a path in the first valid run."""
    known = (ran.windows[index] for ran in runs if ran.valid and ran.windows)
    return next(known, {"time_s": [], "cwnd_packets": []})
