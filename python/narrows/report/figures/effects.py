"""Main effects of the parameters of a sweep or a matrix on metrics, and interactions of pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from narrows.analysis.metrics import head_of
from narrows.report.data import Campaign
from narrows.report.drawing import Numbers, Options, legend_over, new_figure, paper_style
from narrows.report.figures._space import spaces
from narrows.report.style import distinct
from narrows.sweep.effects import effects

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Effects of parameters"
ALSO = ("main-effects",)
SCOPE = "campaign"
ORDER = 27
IN_REPORT = False

#: Interactions of less than this share are not drawn.
LEAST = 0.01
#: Of many, the largest interactions of a scheme are drawn.
MOST_PAIRS = 10
_ROW_MM = 5.0
_LETTER_MM = 1.3


def absent(data: Campaign) -> str | None:
    """Needs a parameter that varies."""
    return None if spaces(data) else "No parameter varies over the valid runs."


def _rows(data: Campaign) -> list[tuple[str, str, str, float]]:
    """Scheme, metric, parameter or pair of them, and share."""
    found = []
    for metric, points in spaces(data):
        for one in points:
            known = effects(one)
            plain = {name: name.partition(" (")[0] for name in known.main}
            found += [(one.scheme, metric["name"], plain[name], share) for name, share in known.main.items()]
            pairs = sorted(known.pairs.items(), key=lambda pair: -pair[1])[:MOST_PAIRS]
            found += [
                (one.scheme, metric["name"], f"{plain[first]} with {plain[second]}", share)
                for (first, second), share in pairs
                if share >= LEAST
            ]
    return found


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
    """Bars by metric, a colour per scheme."""
    rows = _rows(data)
    metrics = list(dict.fromkeys(metric for _, metric, _, _ in rows))
    styles = distinct(list(dict.fromkeys(scheme for scheme, _, _, _ in rows)))
    most = max(len({row[2] for row in rows if row[1] == metric}) for metric in metrics)
    with paper_style(options):
        picture = new_figure(options, most * (2.0 + _ROW_MM * len(styles) / 1.6) + 22)
        grid = picture.subplots(1, len(metrics), squeeze=False)
        handles: dict[str, Any] = {}
        for place, metric in zip(grid[0], metrics, strict=True):
            own = {(scheme, effect): share for scheme, one, effect, share in rows if one == metric}
            names = _in_order(own, list(styles))
            high = 0.8 / len(styles)
            for number, (scheme, style) in enumerate(styles.items()):
                bars = place.barh(
                    [at + (number + 0.5) * high - 0.4 for at in range(len(names))],
                    [100 * own.get((scheme, name), 0.0) for name in names],
                    height=high * 0.9,
                    color=style.color,
                )
                handles.setdefault(scheme, bars)
            place.set_yticks(range(len(names)), names)
            place.set_ylim(len(names) - 0.5, -0.5)
            place.set_xlim(0, 100)
            place.grid(visible=False, axis="y")
            place.set_xlabel(f"share of the variance of {head_of(data.metric(metric) or {})} (%)")
        legend_over(picture, handles, options, 6.0)
        # Labels of two long names need more room than figures have at their left.
        longest = max(len(effect) for _, _, effect, _ in rows) * _LETTER_MM + 4.0
        room = longest / (picture.get_figwidth() * 25.4)
        picture.subplots_adjust(
            left=max(0.125, room),
            wspace=max(0.45, 1.2 * room * len(metrics) / (1 - room)),
            bottom=14.0 / (picture.get_figheight() * 25.4),
        )
    return picture


def _in_order(own: dict[tuple[str, str], float], schemes: list[str]) -> list[str]:
    """Effects with the largest first; those of single parameters before those of pairs."""
    most = {effect: max(own.get((one, effect), 0.0) for one in schemes) for _, effect in own}
    return sorted(most, key=lambda effect: (" with " in effect, -most[effect]))
