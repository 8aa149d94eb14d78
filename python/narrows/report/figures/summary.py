"""The summary: 95th percentile one-way delay against throughput, one mark per run and one per scheme."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from narrows.report import labels as placing
from narrows.report import real_path, units
from narrows.report.data import Campaign, Run
from narrows.report.drawing import SINGLE_MM, Numbers, Options, new_figure, paper_style
from narrows.report.style import MUTED, of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Throughput against delay"
SCOPE = "campaign"
ORDER = 20

#: More schemes than this need a higher figure, by so much for each.
_CROWD, _ROOM_MM = 10, 3.0

_WEIGHT = {"*": 1.9, "P": 1.2, "X": 1.2, "D": 0.85}  # so that marks of all shapes look equally large


@dataclass(frozen=True, slots=True)
class Dot:
    """One valid run: its totals over all flows."""

    run: Run
    delay_ms: float
    throughput_mbps: float

    @property
    def degraded(self) -> bool:
        """True if the run counts with a warning."""
        return self.run.verdict == "degraded"


def dots(data: Campaign) -> list[Dot]:
    """The valid runs whose totals are defined."""
    found = []
    for run in data.runs:
        metrics = (run.rows.get("all") or {}).get("metrics") or {}
        throughput, delay = metrics.get("throughput_bps"), metrics.get("delay_p95_ns")
        if run.valid and throughput is not None and delay is not None:
            found.append(Dot(run, delay / 1e6, throughput / 1e6))
    return found


def means(data: Campaign) -> dict[str, tuple[float, float, int]]:
    """Mean delay, mean throughput and number of runs of each scheme, over the runs drawn."""
    grouped: dict[str, list[Dot]] = {}
    for dot in dots(data):
        grouped.setdefault(dot.run.scheme, []).append(dot)
    return {
        scheme: (
            sum(d.delay_ms for d in own) / len(own),
            sum(d.throughput_mbps for d in own) / len(own),
            len(own),
        )
        for scheme, own in grouped.items()
    }


def logarithmic(delays: list[float]) -> tuple[float, float] | None:
    """The limits of a logarithmic axis if the range asks for one.

    Rounded outwards to powers of two, the largest must be more than four times the smallest (the rule of
    Pantheon's reports). Delays that are not positive, as from clocks that disagree, have no logarithm.
    """
    if not delays or min(delays) <= 0:
        return None
    low = 2.0 ** math.floor(math.log2(min(delays)))
    high = 2.0 ** math.ceil(math.log2(max(delays)))
    return (low, high) if high > 4 * low else None


def absent(data: Campaign) -> str | None:
    """Without a valid run there is nothing to compare."""
    if real_path.only_ends(data):
        return real_path.NOT_SEEN
    return None if dots(data) else "No valid run with a throughput and a delay, so there is nothing to draw."


def numbers(data: Campaign) -> Numbers:
    """One row per run, then one per scheme (run `mean`)."""
    found = dots(data)
    mean = means(data)
    return {
        "scheme": [d.run.scheme for d in found] + list(mean),
        "run": [str(d.run.number) for d in found] + ["mean"] * len(mean),
        "runs": [1] * len(found) + [n for _, _, n in mean.values()],
        "delay_p95_ms": [d.delay_ms for d in found] + [m[0] for m in mean.values()],
        "throughput_mbps": [d.throughput_mbps for d in found] + [m[1] for m in mean.values()],
        "verdict": [str(d.run.verdict) for d in found] + [""] * len(mean),
    }


def caption(data: Campaign) -> str:
    """The caption."""
    found = dots(data)
    text = (
        "All flows of a run together: throughput against the 95th percentile of one-way delay. The delay "
        "axis is reversed, so better is up and to the right. Small marks are runs, the large mark with the "
        "name is the mean of a scheme's valid runs."
    )
    if logarithmic([d.delay_ms for d in found]):
        text += " The delay axis is logarithmic."
    if any(d.degraded for d in found):
        text += " Hollow marks are runs judged degraded."
    shared = _shared(list(means(data)))
    if shared:
        text += f" Names leave out {' '.join(shared)}, which most of the schemes have."
    left_out = sum(1 for run in data.runs if run.state == "finished" and not run.valid)
    if left_out:
        text += f" {units.plural(left_out, 'invalid run')} not drawn."
    return text


def _shared(schemes: list[str]) -> list[str]:
    """Parameters that most of many schemes have: words that names can do without."""
    counted = Counter(part for scheme in schemes for part in _parts(scheme)[1:])
    shared = [part for part, count in counted.items() if 2 * count > len(schemes) > 2]
    brief = {_without(scheme, shared) for scheme in schemes}
    return shared if len(brief) == len(schemes) else []


def _parts(scheme: str) -> list[str]:
    """The words of a scheme's name; what is in parentheses is one of them."""
    return re.findall(r"\([^)]*\)|\S+", scheme)


def _without(scheme: str, left_out: list[str]) -> str:
    """The name of a scheme without some parameters; a model that is named like the scheme stands alone."""
    name, *parts = [part for part in _parts(scheme) if part not in left_out]
    if parts and parts[0].startswith(f"model={name}"):
        name, parts = parts[0].removeprefix("model="), parts[1:]
    return " ".join([name, *parts])


def tips(data: Campaign) -> dict[str, str]:
    """The numbers of each mark."""

    def numbers_of(throughput: float, delay: float) -> str:
        return f"{units.number(throughput)} Mbit/s, {units.number(delay)} ms"

    found = {
        f"run-{i}": f"{d.run.scheme}, run {d.run.number}: {numbers_of(d.throughput_mbps, d.delay_ms)}"
        for i, d in enumerate(dots(data))
    }
    for i, (scheme, (delay, throughput, count)) in enumerate(means(data).items()):
        of_runs = f"mean of {units.plural(count, 'run')}"
        found[f"mean-{i}"] = f"{scheme}, {of_runs}: {numbers_of(throughput, delay)}"
    return found


def figure(data: Campaign, options: Options) -> Figure:
    """The scatter with names beside the means."""
    found, mean = dots(data), means(data)
    narrow = options.width_mm <= SINGLE_MM + 20
    with paper_style(options):
        # Names of many schemes need room between the marks.
        crowd = max(0, len(mean) - _CROWD)
        picture = new_figure(options, (66.0 if narrow else 84.0) + crowd * _ROOM_MM)
        width, height = options.width_mm, picture.get_figheight() * 25.4
        left, right, bottom, top = 12.0, 3.0, 11.0, 4.0
        axes = picture.add_axes(
            (left / width, bottom / height, (width - left - right) / width, (height - bottom - top) / height)
        )
        axes.set_xlabel(
            "95th percentile one-way delay (ms), reversed"
            if narrow
            else "95th percentile one-way delay (ms), smaller to the right"
        )
        axes.set_ylabel("throughput (Mbit/s)")
        highest = max([d.throughput_mbps for d in found] + [0.0])
        axes.set_ylim(0, highest * 1.15 if highest > 0 else 1)
        _delay_axis(axes, [d.delay_ms for d in found])
        small, large = (9.0, 46.0) if narrow else (13.0, 64.0)
        for i, dot in enumerate(found):
            style = of(dot.run.scheme)
            axes.scatter(
                [dot.delay_ms],
                [dot.throughput_mbps],
                s=small * _WEIGHT.get(style.marker, 1.0),
                marker=style.marker,
                linewidths=0.8,
                zorder=3,
                facecolors="none" if dot.degraded else style.color,
                edgecolors=style.color,
                gid=f"run-{i}",
            )
        for i, (scheme, (delay, throughput, _)) in enumerate(mean.items()):
            style = of(scheme)
            axes.scatter(
                [delay],
                [throughput],
                s=large * _WEIGHT.get(style.marker, 1.0),
                marker=style.marker,
                linewidths=0.7,
                zorder=4,
                facecolors=style.color,
                edgecolors="white",
                gid=f"mean-{i}",
            )
        corner = _better(axes, found)
        _names(picture, axes, found, mean, math.sqrt(large) / 2, corner)
    return picture


def _better(axes: Axes, found: list[Dot]) -> tuple[float, float]:
    """An arrow that says which way is better, in the corner that is farthest from all marks."""
    corners = [(0.94, 0.92), (0.06, 0.08), (0.94, 0.08), (0.06, 0.92)]
    to_axes = axes.transData + axes.transAxes.inverted()
    marks = [to_axes.transform((d.delay_ms, d.throughput_mbps)) for d in found]

    def clearance(corner: tuple[float, float]) -> float:
        return min((max(abs(x - corner[0]), 0.6 * abs(y - corner[1])) for x, y in marks), default=1.0)

    x, y = max(corners, key=lambda corner: (min(clearance(corner), 0.25), -corners.index(corner)))
    axes.annotate(
        "better",
        xy=(x + 0.035, y + 0.05),
        xytext=(x, y - 0.01),
        xycoords="axes fraction",
        textcoords="axes fraction",
        ha="center",
        va="center",
        color=MUTED,
        arrowprops={"arrowstyle": "->", "color": MUTED, "linewidth": 0.8, "shrinkA": 1, "shrinkB": 0},
    )
    return x, y


def _delay_axis(axes: Axes, delays: list[float]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    limits = logarithmic(delays)
    if limits is None:
        low, high = min(delays), max(delays)
        pad = max(0.12 * (high - low), 0.04 * abs(high), 0.05)
        axes.set_xlim(high + pad, max(0.0, low - pad) if low > 0 else low - pad)
        return
    low, high = limits
    axes.set_xscale("log", base=2)
    inner_low, inner_high = min(delays) / 1.12, max(delays) * 1.12
    axes.set_xlim(max(high if high < inner_high else inner_high, inner_high), min(low, inner_low))
    first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
    axes.xaxis.set_major_locator(FixedLocator([2.0**k for k in range(first, last + 1)]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _broken(name: str, width_mm: float) -> str:
    """A very long name in lines that fit beside a mark."""
    parts = re.findall(r"[^-:_/ ]+[-:_/ ]?|[-:_/ ]", name)
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part) > width_mm / 4.5:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.strip() for line in lines)


def _names(
    picture: Figure,
    axes: Axes,
    found: list[Dot],
    mean: dict[str, tuple[float, float, int]],
    radius: float,
    corner: tuple[float, float],
) -> None:
    """Names beside the means, placed in points of the page."""
    from matplotlib.lines import Line2D

    renderer = picture.canvas.get_renderer()  # type: ignore[attr-defined]
    point = picture.dpi / 72
    texts: list[Any] = []
    wanted = []
    shared = _shared(list(mean))
    for scheme, (delay, throughput, _) in mean.items():
        text = picture.text(
            0,
            0,
            _broken(_without(scheme, shared), picture.get_figwidth() * 25.4),
            color=of(scheme).color,
            fontweight="bold",
            va="bottom",
            ha="left",
            zorder=5,
        )
        size = text.get_window_extent(renderer)
        x, y = axes.transData.transform((delay, throughput)) / point
        wanted.append(
            placing.Label(float(x), float(y), radius, size.width / point + 1.5, size.height / point)
        )
        texts.append(text)
    obstacles = []
    for dot in found:
        x, y = axes.transData.transform((dot.delay_ms, dot.throughput_mbps)) / point
        obstacles.append(placing.Box(float(x) - 2, float(y) - 2, float(x) + 2, float(y) + 2))
    inside = axes.get_window_extent(renderer)
    frame = placing.Box(*(v / point for v in (inside.x0 + 2, inside.y0 + 2, inside.x1 - 2, inside.y1 - 2)))
    wide, high = frame.right - frame.left, frame.top - frame.bottom
    word_x, word_y = frame.left + corner[0] * wide, frame.bottom + corner[1] * high
    obstacles += [placing.Box(word_x - 28, word_y - 14, word_x + 28, word_y + 14)] * 10  # the word "better"
    size_points = (picture.get_figwidth() * 72, picture.get_figheight() * 72)
    for text, label, spot in zip(texts, wanted, placing.place(wanted, obstacles, frame), strict=True):
        text.set_position((spot.box.left / size_points[0], spot.box.bottom / size_points[1]))
        if spot.far:
            near_x = min(max(label.x, spot.box.left), spot.box.right)
            near_y = min(max(label.y, spot.box.bottom), spot.box.top)
            reach = math.hypot(near_x - label.x, near_y - label.y)
            if reach > radius:
                share = radius / reach
                start = (label.x + share * (near_x - label.x), label.y + share * (near_y - label.y))
                picture.add_artist(
                    Line2D(
                        [start[0] / size_points[0], near_x / size_points[0]],
                        [start[1] / size_points[1], near_y / size_points[1]],
                        transform=picture.transFigure,
                        color=MUTED,
                        linewidth=0.5,
                        zorder=3.5,
                    )
                )
