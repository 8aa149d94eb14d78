"""A network of several links as a picture: nodes, numbered links, and the elements of each link in a list
below.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from narrows.documents.resolved import Flow, Link, Network
from narrows.report import prose
from narrows.report.drawing import Options, box, canvas, paper_style
from narrows.report.figures import _layout
from narrows.report.style import INK, MUTED, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BOX = (25.0, 9.6)  # Widths and heights in mm on the page.
_ROUTER = 4.4
_LINE = 3.3
MOST_LINES = 26
"""Lines of the list; larger networks are only in the scenario."""


def _pairs(network: Network) -> list[tuple[str, str, Link | None, Link | None]]:
    """Links with their reverse direction: two ends and the link in each direction."""
    pairs: list[tuple[str, str, Link | None, Link | None]] = []
    for link in network.directed:
        ends = (link.origin, link.target)
        for i, (text, other, there, back) in enumerate(pairs):
            if ends == (other, text) and back is None:
                pairs[i] = (text, other, there, link)
                break
        else:
            pairs.append((*ends, link, None))
    return pairs


def _text(link: Link | None) -> str:
    if link is None:
        return ""
    parts = [", ".join(prose.element_lines(e)) for e in link.elements]
    return "; then ".join(part.replace("delay, ", "delay ") for part in parts)


def _list(network: Network) -> tuple[list[str], dict[tuple[str, str], str]]:
    """The lines of the list, and the number of each pair of ends; equal contents share a number."""
    numbered: dict[tuple[str, str, bool], tuple[int, list[str]]] = {}
    marks: dict[tuple[str, str], str] = {}
    for first, second, there, back in _pairs(network):
        forth, home = _text(there), _text(back)
        if not forth and not home:
            continue
        one, other = (first, second) if forth else (second, first)
        if not forth:
            forth, home = home, forth
        both = forth == home
        key = (forth, home, both)
        number, ends = numbered.setdefault(key, (len(numbered) + 1, []))
        ends.append(f"{one} {'↔' if both else '→'} {other}")
        marks[one, other] = marks[other, one] = str(number)
    lines = []
    for (forth, home, both), (number, ends) in numbered.items():
        named = ", ".join(ends[:5]) + (f" and {len(ends) - 5} more" if len(ends) > 5 else "")
        lines.append(f"{number}  {named}: {forth or 'nothing'}")
        if not both and home:
            lines.append(f"    back: {home}")
    return lines, marks


def _flow_lines(network: Network, flows: Sequence[Flow], host: str) -> list[str]:
    """Flows that a host sends and receives."""
    lines = []
    for word, place in (("sends", 0), ("gets", 1)):
        own = [flow for flow in flows if network.ends(flow)[place] == host]
        tested = [flow.number for flow in own if not flow.background]
        behind = len(own) - len(tested)
        parts = [_ranges(tested)] if tested else []
        if behind:
            parts.append(f"{'+' if tested else ''}{behind} background")
        if parts:
            lines.append(f"{word} {' '.join(parts)}")
    return lines


def _ranges(numbers: list[int]) -> str:
    """`flow 1`, `flows 1–10`, `flows 1, 3, 5 …`."""
    if len(numbers) == 1:
        return f"flow {numbers[0]}"
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"flows {numbers[0]}–{numbers[-1]}"
    return f"{', '.join(map(str, numbers[:3]))}{' …' if len(numbers) > 3 else ''}"


def figure(network: Network, flows: Sequence[Flow], options: Options) -> Figure:
    """The picture above, the list below."""
    hosts, routers = [host.name for host in network.hosts], network.routers or []
    at = _layout.places(hosts, routers, [(link.origin, link.target) for link in network.directed])
    columns = max(1, int(options.width_mm / (options.font_pt * 0.185)))
    lines, marks = _list(network)
    wrapped = [part for line in lines for part in textwrap.wrap(line, columns, subsequent_indent="    ")]
    if len(wrapped) > MOST_LINES:
        wrapped = [*wrapped[: MOST_LINES - 1], "… the other links are in the scenario below"]
    levels = _levels(at)
    tall = 4 + levels * (_BOX[1] + 5.5) + (8 if len(routers) == 1 else 0)
    listed = _LINE * len(wrapped) + 3
    with paper_style(options):
        picture, axes, height = canvas(options, tall + listed)
        width = options.width_mm
        # Boxes side by side must not touch; the outermost ones extend half a box into the picture.
        gap = 0.92 * _gap(at, hosts)
        size_of_box = (min(_BOX[0], width / 4.2, gap * (width - 4) / (1 + gap)), _BOX[1])
        size = min(1.0, max(0.78, width / 150))
        across, upright = size_of_box[0] / 2, size_of_box[1] / 2
        inner = (across + 2, width - across - 2, listed + upright + 1.5, height - upright - 1.5)
        spot = {
            node: (inner[0] + x * (inner[1] - inner[0]), inner[2] + y * (inner[3] - inner[2]))
            for node, (x, y) in at.items()
        }
        drawn: set[frozenset[str]] = set()
        for text, other, _, back in _pairs(network):
            if frozenset((text, other)) in drawn:
                continue
            drawn.add(frozenset((text, other)))
            _edge(
                axes, spot[text], spot[other], marks.get((text, other), ""), size, two_ways=back is not None
            )
        for router in routers:
            _router(axes, spot[router], router, size)
        for host in hosts:
            _host(axes, spot[host], size_of_box, host, _flow_lines(network, flows, host))
        for i, line in enumerate(wrapped):
            axes.text(2, listed - 1.5 - _LINE * (i + 0.5), line, va="center", fontsize="small", color=INK)
    return picture


def _gap(at: dict[str, _layout.Place], hosts: list[str]) -> float:
    """The smallest distance between two hosts side by side, as a share of the width."""
    pairs = [(at[a], at[b]) for i, a in enumerate(hosts) for b in hosts[:i]]
    beside = [abs(pair[0] - two[0]) for pair, two in pairs if abs(pair[1] - two[1]) < 0.2]
    return min((gap for gap in beside if gap > 0.02), default=1.0)


def _levels(at: dict[str, _layout.Place]) -> int:
    """The maximum number of hosts above one another."""
    columns: dict[float, list[float]] = {}
    for x, y in at.values():
        columns.setdefault(round(x, 2), []).append(y)
    return max(2, *(len(own) for own in columns.values()))


def _edge(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    mark: str,
    size: float,
    *,
    two_ways: bool,
) -> None:
    style = "-" if two_ways else "-|>"
    arrow = {
        "arrowstyle": style,
        "color": MUTED,
        "linewidth": 0.9,
        "shrinkA": 0,
        "shrinkB": 0 if two_ways else 12,
    }
    axes.annotate("", xy=end, xytext=start, arrowprops=arrow, zorder=1)
    if not mark:
        return
    from matplotlib.patches import Circle

    # Off the middle of short links, so that numbers of neighbouring links do not meet at a router.
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    if math.dist(start, end) < 6:
        return
    axes.add_patch(Circle((x, y), 2.1 * size, facecolor=PAPER, edgecolor=MUTED, linewidth=0.7, zorder=2))
    axes.text(x, y - 0.1, mark, ha="center", va="center", fontsize="small", zorder=3)


def _router(axes: Axes, place: tuple[float, float], name: str, size: float) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle(place, _ROUTER * size, facecolor=PAPER, edgecolor=INK, linewidth=0.8, zorder=4))
    shown = name if len(name) <= 9 else name[:8] + "…"
    across = 2 * _ROUTER * size / 25.4 * 72
    font = min(5.6, across / (0.66 * max(1, len(shown))))
    axes.text(place[0], place[1], shown, ha="center", va="center", fontsize=font, zorder=5)


def _host(
    axes: Axes, place: tuple[float, float], size: tuple[float, float], name: str, lines: list[str]
) -> None:
    x, y = place
    box(axes, (x - size[0] / 2, y - size[1] / 2), size, zorder=4)
    top = y + 1.35 * len(lines)
    axes.text(x, top, name, ha="center", va="center", fontweight="bold", zorder=5)
    most = int(size[0] / 0.9)
    for i, line in enumerate(lines):
        shown = line if len(line) <= most else line[: most - 1] + "…"
        height = top - 2.75 * (i + 1)
        axes.text(x, height, shown, ha="center", va="center", color=MUTED, fontsize="x-small", zorder=5)
