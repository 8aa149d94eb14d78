"""Main effects of the parameters of a sweep or a matrix on metrics, and interactions of pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.report.data import Campaign
from narrows.report.drawing import Numbers, Options, paper_style
from narrows.report.figures._rows import rows_of_names, width_of
from narrows.report.figures._space import spaces
from narrows.report.panels import Block, Panels
from narrows.report.style import distinct
from narrows.sweep.effects import effects

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Effects of parameters"
ALSO = ("main-effects",)
SCOPE = "campaign"
ORDER = 27
IN_REPORT = False
STATISTIC = "share of the variance between points, each the median over its valid runs"

#: Interactions below this share are not drawn.
LEAST = 0.01
#: Only this many of a scheme's interactions are drawn, the largest ones.
MOST_PAIRS = 10


def absent(data: Campaign) -> str | None:
    """The figure needs a parameter that varies."""
    return None if spaces(data) else "No parameter varies over the valid runs."


def _rows(data: Campaign) -> list[tuple[str, str, str, float]]:
    """Scheme, metric, parameter or pair of parameters, and share."""
    rows = []
    for metric, points in spaces(data):
        for point in points:
            known = effects(point)
            plain = {name: name.partition(" (")[0] for name in known.main}
            rows += [(point.scheme, metric.name, plain[name], share) for name, share in known.main.items()]
            pairs = sorted(known.pairs.items(), key=lambda pair: -pair[1])[:MOST_PAIRS]
            rows += [
                (point.scheme, metric.name, f"{plain[first]} with {plain[second]}", share)
                for (first, second), share in pairs
                if share >= LEAST
            ]
    return rows


def numbers(data: Campaign) -> Numbers:
    """One row per scheme, metric and effect."""
    rows = _rows(data)
    names = ("scheme", "metric", "effect", "share")
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


def caption(_data: Campaign) -> str:
    """The caption."""
    return (
        "Share of the variance of each metric over the points that a parameter explains alone (first-order"
        " Sobol index, from means over classes), and that two explain together beyond both alone; less what"
        f" chance explains in the mean. Interactions below {LEAST:.0%}, and more than {MOST_PAIRS}, are left"
        " out."
    )


def figure(data: Campaign, options: Options) -> Figure:
    """A mark per scheme in the row of each effect, a block per metric."""
    rows = _rows(data)
    metrics = list(dict.fromkeys(metric for _, metric, _, _ in rows))
    schemes = list(dict.fromkeys(scheme for scheme, _, _, _ in rows))
    styles = {**distinct(schemes), **data.styles}
    step = min(0.7 / len(schemes), 0.2)
    entries: dict[str, object] = {}
    with paper_style(options):
        own = {
            metric: {(scheme, effect): share for scheme, text, effect, share in rows if text == metric}
            for metric in metrics
        }
        orders = {metric: _in_order(own[metric], schemes) for metric in metrics}
        every = [name for order in orders.values() for name in order]
        names, row_mm = rows_of_names(every, options, 0.36)
        row_mm = max(row_mm, 2.0 + 0.42 * len(schemes))
        folded = dict(zip(every, names, strict=True))
        blocks = []
        for metric in metrics:
            label = f"share of the variance of {data.quantity(metric).label} (%)"
            high = max(8.0, row_mm * len(orders[metric]))
            blocks.append(Block([""], label, "", high, high))
        panels = Panels(options, blocks, left_mm=width_of(names, options))
        for metric, (axes,) in zip(metrics, panels.axes, strict=True):
            order = orders[metric]
            for number, scheme in enumerate(schemes):
                at = [place + (number - (len(schemes) - 1) / 2) * step for place in range(len(order))]
                shares = [100 * own[metric].get((scheme, name), 0.0) for name in order]
                style = styles[scheme]
                axes.hlines(at, 0, shares, color=style.color, linewidth=0.5, alpha=0.6)
                (marks,) = axes.plot(
                    shares,
                    at,
                    linestyle="none",
                    marker=style.marker,
                    markersize=3.4 * style.weight,
                    color=style.color,
                    markeredgecolor="white",
                    markeredgewidth=0.3,
                )
                entries.setdefault(scheme, marks)
            axes.set_yticks(range(len(order)), [folded[name] for name in order])
            axes.set_ylim(len(order) - 0.5, -0.5)
            axes.set_xlim(-3.0, 103.0)
            axes.grid(visible=False, axis="y")
            axes.tick_params(axis="y", length=0)
        panels.finish(entries)
    return panels.figure


def _in_order(own: dict[tuple[str, str], float], schemes: list[str]) -> list[str]:
    """The effects, largest first; those of single parameters before those of pairs."""
    most = {effect: max(own.get((scheme, effect), 0.0) for scheme in schemes) for _, effect in own}
    return sorted(most, key=lambda effect: (" with " in effect, -most[effect]))
