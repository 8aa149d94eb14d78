"""The path as a picture: hosts, and the elements of both directions in the order in which packets
pass them.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from narrows.documents.components import BOTTLENECK, FIXED_DELAY, Element
from narrows.documents.resolved import Flow, Network
from narrows.report import prose, units
from narrows.report.data import Campaign
from narrows.report.drawing import Numbers, Options, box, canvas, paper_style
from narrows.report.figures import _network
from narrows.report.real_path import is_real
from narrows.report.style import GRID, INK, MUTED, PAPER
from narrows.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "The path"
ALSO = ("topology",)
SCOPE = "campaign"
ORDER = 10

_HOST = 27.0  # Widths and heights in mm on the page.
_BOX = (27.0, 15.0)
_LANE = 24.0


def absent(data: Campaign) -> str | None:
    """Without a record there is no path to draw."""
    if data.settings is None:
        return "No record describes the path; see the scenario below."
    network = data.settings.network
    return None if network.is_known else f"No picture is drawn for networks of the kind {network.kind!r}."


def _lanes(network: Network, options: Options) -> list[tuple[str, list[Element], bool]]:
    """Rows of boxes: direction, elements, whether the row continues in the next one."""
    room = max(1, int((options.width_mm - 2 * _HOST - 14) // (_BOX[0] + 4)))
    lanes = []
    for link in network.directed:
        rows = [link.elements[i : i + room] for i in range(0, len(link.elements), room)] or [[]]
        lanes += [(link.name, row, i + 1 < len(rows)) for i, row in enumerate(rows)]
    return lanes


def numbers(data: Campaign) -> Numbers:
    """One row per element."""
    network = _network_of(data)
    rows = [(link.name, element) for link in network.directed for element in link.elements]
    return {
        "direction" if network.is_dumbbell else "link": [name for name, _ in rows],
        "element": [element.name for _, element in rows],
        "kind": [element.kind for _, element in rows],
        "settings": ["; ".join(prose.element_lines(element)) for _, element in rows],
    }


def _network_of(data: Campaign) -> Network:
    return data.settings.network if data.settings else data.resolved.network


def caption(data: Campaign) -> str:
    """The caption."""
    if not _network_of(data).is_dumbbell:
        return (
            "Boxes are hosts, circles routers. Numbered links have what the list says, in the order in which "
            "packets meet it (↔: the same both ways); links without a number have nothing. Rates count IP "
            "bytes."
        )
    text = "Packets meet the elements in the order of the arrows. Rates count IP bytes."
    ways = {str(run.settings.network) for run in data.runs if is_real(run)}
    if len(data.conditions) > 1:
        text += f" The network is that of {next(iter(data.conditions))}; the matrix changes these values."
    drawn = next((run.settings.drawn for run in data.runs if run.settings.drawn), {})
    if drawn:
        text += f" Every run draws these anew; the picture shows one run: {', '.join(drawn)}."
    if len(ways) > 1:
        text += " Where a scheme's name says so, sender and receiver have changed places."
    return text


def figure(data: Campaign, options: Options) -> Figure:
    """Boxes and arrows, in millimetres."""
    network, flows = _network_of(data), data.settings.flows if data.settings else []
    if not network.is_dumbbell:
        return _network.figure(network, flows, options)
    lanes = _lanes(network, options)
    with paper_style(options):
        picture, axes, height = canvas(options, _LANE * len(lanes) + 4)
        _host(axes, 1, height, "sender", _flow_lines(flows))
        _host(axes, options.width_mm - 1 - _HOST, height, "receiver", [])
        for index, (direction, elements, goes_on) in enumerate(lanes):
            middle = height - 4 - _LANE * (index + 0.5)
            _lane(axes, options, middle, direction, elements, goes_on)
    return picture


def _flow_lines(flows: list[Flow]) -> list[str]:
    behind = sum(1 for flow in flows if flow.background)
    lines = [plural(len(flows) - behind, "flow")] + ([f"{behind} in background"] if behind else [])
    listed = [flow for flow in flows if flow.start_ns or flow.extra_rtt_ns]
    for flow in listed[:4]:
        notes = []
        if flow.start_ns:
            notes.append(f"from {units.span(flow.start_ns)}")
        if flow.extra_rtt_ns:
            notes.append(f"RTT +{units.span(flow.extra_rtt_ns)}")
        lines.append(f"{flow.number}: {', '.join(notes)}")
    return lines + (["…"] if len(listed) > 4 else [])


def _host(axes: Axes, left: float, height: float, name: str, lines: list[str]) -> None:
    box(axes, (left + 1, 3), (_HOST - 2, height - 6), 1.6, facecolor="none")
    middle = left + _HOST / 2
    top = height / 2 + 1.8 * (len(lines))
    axes.text(middle, top, name, ha="center", va="center", fontweight="bold")
    for i, line in enumerate(lines):
        axes.text(middle, top - 3.6 * (i + 1), line, ha="center", va="center", color=MUTED, fontsize="small")


def _lane(
    axes: Axes, options: Options, middle: float, direction: str, elements: list[Element], goes_on: bool
) -> None:
    left, right = 1 + _HOST, options.width_mm - 1 - _HOST
    start, end = (left, right) if direction == "forward" else (right, left)
    axes.annotate(
        "",
        xy=(end, middle),
        xytext=(start, middle),
        arrowprops={
            "arrowstyle": "-|>",
            "color": INK,
            "linewidth": 0.9,
            "shrinkA": 0,
            "shrinkB": 0,
            "linestyle": (0, (3, 2)) if goes_on else "-",
        },
        zorder=1,
    )
    count = len(elements)
    gap = (right - left) / max(1, count)
    for i, element in enumerate(elements):
        place = i if direction == "forward" else count - 1 - i
        _element(axes, left + gap * (place + 0.5), middle, element)
    if not elements:
        axes.text(
            (left + right) / 2, middle + 2.4, "nothing in between", ha="center", color=MUTED, fontsize="small"
        )


def _element(axes: Axes, x: float, y: float, element: Element) -> None:
    width, height = _BOX
    box(axes, (x - width / 2, y - height / 2), _BOX, 1.2, edgecolor=MUTED, linewidth=0.7, zorder=2)
    icons = {BOTTLENECK: _queue_icon, FIXED_DELAY: _pipe_icon, "loss": _loss_icon}
    icon = icons.get(element.kind, _dots_icon)
    icon(axes, x, y + height / 2 - 4.0)
    lines: list[str] = []
    for line in prose.element_lines(element):
        lines += textwrap.wrap(line, 23, max_lines=2, placeholder="…")
    lines = lines[:3]
    for i, line in enumerate(lines):
        weight = "bold" if i == 0 else "normal"
        base = y - 0.7 - 2.5 * i - (0.0 if len(lines) > 2 else 1.3)
        axes.text(x, base, line, ha="center", va="center", fontweight=weight, fontsize="small", zorder=3)
    axes.text(
        x,
        y + height / 2 + 1.5,
        element.name,
        ha="center",
        va="center",
        color=MUTED,
        fontsize="x-small",
        zorder=3,
    )


def _queue_icon(axes: Axes, x: float, y: float) -> None:
    from matplotlib.patches import Circle, Rectangle

    axes.plot(
        [x - 7, x + 3, x + 3, x - 7], [y + 1.7, y + 1.7, y - 1.7, y - 1.7], color=INK, linewidth=0.8, zorder=3
    )
    for i in range(3):
        axes.add_patch(
            Rectangle((x + 0.4 - 2.4 * i, y - 1.1), 1.7, 2.2, facecolor=MUTED, edgecolor="none", zorder=3)
        )
    axes.add_patch(Circle((x + 5.2, y), 1.9, facecolor="none", edgecolor=INK, linewidth=0.8, zorder=3))


def _pipe_icon(axes: Axes, x: float, y: float) -> None:
    from matplotlib.patches import Ellipse

    for side in (-1.5, 1.5):
        axes.plot([x - 6, x + 6], [y + side, y + side], color=INK, linewidth=0.8, zorder=3)
    axes.add_patch(Ellipse((x - 6, y), 1.6, 3.0, facecolor=PAPER, edgecolor=INK, linewidth=0.8, zorder=3))
    axes.add_patch(Ellipse((x + 6, y), 1.6, 3.0, facecolor=GRID, edgecolor=INK, linewidth=0.8, zorder=3))


def _loss_icon(axes: Axes, x: float, y: float) -> None:
    for i in range(5):
        if i == 3:
            for sign in (-1, 1):
                axes.plot(
                    [x + 1.4, x + 3.6], [y - 1.1 * sign, y + 1.1 * sign], color=INK, linewidth=1.0, zorder=3
                )
        else:
            axes.plot([x - 5 + 2.5 * i], [y], marker="s", markersize=3.2, color=MUTED, zorder=3)


def _dots_icon(axes: Axes, x: float, y: float) -> None:
    axes.plot(
        [x - 2.5, x, x + 2.5], [y] * 3, linestyle="none", marker="o", markersize=2.4, color=MUTED, zorder=3
    )
