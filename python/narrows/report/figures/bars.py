"""Bars of a metric with the intervals of the medians, one per scheme (--metric chooses the metric)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.analysis.metrics import find, head_of, unit_of
from narrows.documents.results import Metric
from narrows.report.data import Campaign
from narrows.report.drawing import Numbers, Options, limit, paper_style
from narrows.report.figures import _conditions
from narrows.report.figures._rows import rows_of_names, width_of
from narrows.report.panels import Block, Panels
from narrows.report.style import INK
from narrows.statistics.runs import FEWEST_FOR_INTERVAL as FEWEST
from narrows.statistics.runs import STATISTIC as OF_RUNS
from narrows.statistics.runs import bootstrap_interval, median_over_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Bars of a metric"
ALSO = ("bar", "barchart")
SCOPE = "campaign"
ORDER = 85
IN_REPORT = False
STATISTIC = OF_RUNS
#: It shows the metric that the reader chooses.
OF_METRIC = True
USUAL = "throughput_bps"

#: Median, ends of the spread, and number of the valid runs.
_Values = dict[str, tuple[float, float, float, int]]


def _metric(data: Campaign) -> Metric:
    """The chosen metric. Raises `UsageError` if the campaign has none of that name."""
    return find(data.metrics, data.chosen_metric or USUAL)


def _of_schemes(data: Campaign) -> _Values:
    """The values of each row in the metric's unit for people."""
    metric = _metric(data)
    values: _Values = {}
    for label in data.schemes:
        measured = (run.value("all", metric.name) for run in data.of_scheme(label) if run.valid)
        own = [float(value * metric.show_scale) for value in measured if value is not None]
        if own:
            low, high = map(float, bootstrap_interval(own)) if len(own) >= FEWEST else (min(own), max(own))
            values[label] = (median_over_runs(own), low, high, len(own))
    return values


def absent(data: Campaign) -> str | None:
    """The figure needs a valid run with a value."""
    return None if _of_schemes(data) else f"No valid run has a value of {_metric(data).label}."


def numbers(data: Campaign) -> Numbers:
    """One row per scheme and condition."""
    values, metric = _of_schemes(data), _metric(data)
    spreads = ["interval" if count >= FEWEST else "range" for *_, count in values.values()]
    shown: dict[str, list[object]] = {
        "metric": [metric.name] * len(values),
        "unit": [unit_of(metric)] * len(values),
    }
    for place, name in enumerate(("median", "low", "high", "runs")):
        shown |= {name: [value[place] for value in values.values()]}
    return _conditions.columns(data, list(values), shown | {"spread": spreads})


def caption(data: Campaign) -> str:
    """The caption."""
    counts = [value[3] for value in _of_schemes(data).values()]
    lines = [f"95 % interval of the median (of {FEWEST} runs or more)"] if max(counts) >= FEWEST else []
    lines += ["range of all runs where there are fewer"] if min(counts) < FEWEST else []
    return (
        f"{_metric(data).label or data.chosen_metric}, of all flows together: bars end at the median over the"
        f" valid runs, lines are the {' and the '.join(lines)}."
    ) + _conditions.says_conditions(data)


def figure(data: Campaign, options: Options) -> Figure:
    """A bar per scheme, one below the other, a panel per condition; all panels have the same axis."""
    values, metric = _of_schemes(data), _metric(data)
    groups = _conditions.groups(data, list(values))
    schemes = list(dict.fromkeys(_conditions.scheme_of(data, label) for label in values))
    unit = unit_of(metric)
    label = " ".join(head_of(metric).split()) if len(groups) > 1 else metric.label
    with paper_style(options):
        names, row_mm = rows_of_names(schemes, options, 0.4 if len(groups) == 1 else 0.25)
        high = max(row_mm * len(schemes), 8.0)
        block = Block(list(groups), f"{label} ({unit})" if unit else label, "", high, high)
        left = width_of(names, options)
        panels = Panels(options, [block], least_mm=20.0, narrowest_mm=9.0, shared=(True, True), left_mm=left)
        for axes, labels in zip(panels.axes[0], groups.values(), strict=True):
            for name in labels:
                row = schemes.index(_conditions.scheme_of(data, name))
                median, low, end, _ = values[name]
                axes.barh(row, median, height=0.62, color=_conditions.look(data, name).color, zorder=2)
                axes.plot([low, end], [row, row], color=INK, linewidth=0.9, zorder=3)
                for stop in (low, end):
                    axes.plot([stop, stop], [row - 0.17, row + 0.17], color=INK, linewidth=0.9, zorder=3)
            axes.grid(visible=False, axis="y")
        first = panels.axes[0][0]
        most = max(max(value[:3]) for value in values.values())
        least = min(0.0, *(min(value[:3]) for value in values.values()))
        room = 0.06 * (most - least) or 1.0
        first.set_xlim(least - room if least < 0 else 0.0, most + room)
        limit(first, Options(x=options.x))
        first.set_yticks(range(len(schemes)), names)
        first.set_ylim(len(schemes) - 0.5, -0.5)
        panels.finish({})
    return panels.figure
