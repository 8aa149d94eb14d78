"""The points of a parameter space, of a sweep or of a campaign with a matrix, for figures over it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from narrows.documents.results import Metric
from narrows.report.data import Campaign
from narrows.report.figures.parameter import METRICS, SHOWN, matrix_rows, numeric
from narrows.statistics.runs import median_over_runs
from narrows.sweep.effects import Points, points_of
from narrows.sweep.store import SweepFolder, is_sweep

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Display units of columns, by the kind of the parameter.
_SHOWN = {**SHOWN, "bdp": (1, "bdp")}


def spaces(data: Campaign) -> list[tuple[Metric, list[Points]]]:
    """Each metric with the points of the schemes, in display units; names of parameters include
    their units.
    """
    return data.keep("spaces", lambda: _spaces(data))


def _spaces(data: Campaign) -> list[tuple[Metric, list[Points]]]:
    spaces = []
    for name in METRICS:
        metric = data.metric(name)
        if metric is None:
            continue
        points = list(_of_sweep(data, metric) if is_sweep(data.folder) else _of_matrix(data, metric))
        points = [point for point in points if any(len(set(values)) > 1 for values in point.values.values())]
        if points:
            spaces.append((metric, points))
    return spaces


def _of_sweep(data: Campaign, metric: Metric) -> Iterator[Points]:
    folder = SweepFolder.read(data.folder)
    scale = metric.show_scale
    for points in points_of(folder, metric.name):
        values = {}
        for key in folder.document.parameters:
            factor, unit = _SHOWN.get(key.kind, (1, ""))
            given = points.values[key.name]
            title = f"{key.label} ({unit})" if unit else key.label
            numbers = key.kind not in ("text", "flag")
            values[title] = [value * factor for value in given] if numbers else list(map(str, given))
        yield Points(points.scheme, values, points.metric * scale)


def _of_matrix(data: Campaign, metric: Metric) -> Iterator[Points]:
    import numpy as np

    rows = matrix_rows(data)
    scale = metric.show_scale
    samples: dict[str, list[float]] = {}
    for run in data.runs:
        value = run.value("all", metric.name)
        if run.valid and value is not None and run.scheme in rows:
            samples.setdefault(run.scheme, []).append(float(value) * scale)
    for base in dict.fromkeys(rows[label][0] for label in samples):
        labels = [label for label in samples if rows[label][0] == base]
        values: dict[str, list[Any]] = {}
        for name in dict.fromkeys(name for label in labels for name in rows[label][1]):
            texts = [rows[label][1].get(name, "") for label in labels]
            placed = numeric(texts)
            title = f"{name} ({placed[1]})" if placed and placed[1] else name
            values[title] = list(placed[0]) if placed else texts
        yield Points(base, values, np.array([median_over_runs(samples[text]) for text in labels]))
