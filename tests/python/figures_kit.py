"""Campaigns for tests of figures, and the flaws of a drawn figure.

The campaigns are planned from scenarios, simulated, measured and stored by the same code as every campaign.
`problems` examines a figure from the reader's point of view, without knowing how it was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from campaign_kit import narrows

SCHEMES = [
    *("cubic", "reno", "bbr1", "bbr3", "copa", "vegas"),
    *("ledbat", "ledbat++", "htcp", "westwood", "vivace", "pcc-allegro"),
    *("verus", "fillp", "hybla", "illinois", "bic", "scalable"),
    *("highspeed", "yeah", "veno", "tahoe", "newreno", "utp"),
]
DROPTAIL = ("1 bdp", "2 bdp", "4 bdp")
DELAYS = ("20 ms", "30 ms", "40 ms", "60 ms", "80 ms", "120 ms")
MATRIX = """\
schema: narrows/scenario/1
name: matrix
question: What do buffers and delays change?
where: simulate
path: {{forward: [{{rate: 600 kbit/s, queue: {{droptail: 1 bdp}}}}, {{delay: 20 ms}}, {{loss: 0.5 %}}]}}
schemes: [{schemes}]
flows:
  - {{count: 2, interval: 200 ms}}
  - {{start: 1 s, interval: 300 ms, count: 2, traffic: {{transfer: 6 kB}}}}
matrix:
  path.forward.0.queue.droptail: [{droptail}]
  path.forward.1.delay: [{delays}]
duration: 10 s
runs: 1
"""
PAIRS = """\
schema: narrows/scenario/1
name: pairs
question: Who starves whom?
where: simulate
path: {{forward: [{{rate: 2 Mbit/s, queue: {{droptail: 1 bdp}}}}, {{delay: 10 ms}}]}}
pairs: [{schemes}]
flows: {{count: 2}}
matrix:
  path.forward.1.delay: [{delays}]
duration: 500 ms
"""
VIDEO = """\
schema: narrows/scenario/1
name: video
question: How late are frames?
where: simulate
path: {forward: [{rate: 3 Mbit/s, queue: {droptail: 2 bdp}}, {delay: 20 ms}]}
schemes: [gcc, scream]
matrix:
  path.forward.1.delay: [10 ms, 40 ms]
duration: 3 s
"""

#: Texts may touch: their extents include space above and below the letters.
TOUCH_MM = 0.3
#: Points may lie on the frame, up to rounding.
SLACK = 1e-6


def write_matrix(folder: Path, schemes: int, droptail: Sequence[str], delays: Sequence[str]) -> Path:
    """A campaign of this many schemes with all combinations of buffers and delays."""
    text = MATRIX.format(
        schemes=", ".join(SCHEMES[:schemes]),
        droptail=", ".join(droptail),
        delays=", ".join(delays),
    )
    return _simulated(folder, text)


def write_pairs(folder: Path, schemes: int, delays: int) -> Path:
    """A campaign in which each scheme meets each other one."""
    return _simulated(
        folder, PAIRS.format(schemes=", ".join(SCHEMES[:schemes]), delays=", ".join(DELAYS[:delays]))
    )


def write_video(folder: Path) -> Path:
    """A campaign of schemes that send frames."""
    return _simulated(folder, VIDEO)


def _simulated(folder: Path, text: str) -> Path:
    file = folder.parent / f"{folder.name}.yaml"
    file.write_text(text)
    done = narrows("run", file, "-o", folder, "--no-report")
    # Some runs may be invalid: short flows without any arrival.
    assert done.exit_code in (0, 6), done.exception
    return folder


def problems(figure: Figure) -> list[str]:
    """Flaws that a reader would notice: data outside axes, text outside the page, overlapping texts."""
    with _drawn_texts() as texts:
        figure.canvas.draw()
    return [*_cut_data(figure), *_bad_texts(figure, texts)]


@contextmanager
def _drawn_texts() -> Iterator[list[Text]]:
    """The texts that are actually drawn; Matplotlib also keeps others, such as ticks out of view."""
    found: list[Text] = []
    original: Callable[..., Any] = Text.draw

    def draw(self: Text, renderer: Any) -> Any:
        if self.get_visible() and self.get_text().strip():
            found.append(self)
        return original(self, renderer)

    Text.draw = draw  # type: ignore
    try:
        yield found
    finally:
        Text.draw = original  # type: ignore


def _bad_texts(figure: Figure, texts: list[Text]) -> Iterator[str]:
    mm = 25.4 / figure.dpi
    page = (figure.bbox.width * mm, figure.bbox.height * mm)
    boxes = []
    for text in dict.fromkeys(texts):
        extent = text.get_window_extent()
        box = (extent.x0 * mm, extent.y0 * mm, extent.x1 * mm, extent.y1 * mm)
        words = text.get_text().replace("\n", " / ")
        if min(box[:2]) < -TOUCH_MM or box[2] > page[0] + TOUCH_MM or box[3] > page[1] + TOUCH_MM:
            yield f"{words!r} leaves the page of {page[0]:.0f} x {page[1]:.0f} mm: {_in_mm(box)}"
        boxes.append((box, words))
    boxes.sort()
    for place, (one, words) in enumerate(boxes):
        for other, others in boxes[place + 1 :]:
            if other[0] >= one[2]:
                break
            across = min(one[2], other[2]) - max(one[0], other[0])
            upright = min(one[3], other[3]) - max(one[1], other[1])
            if min(across, upright) > TOUCH_MM:
                yield f"{words!r} and {others!r} overlap: {_in_mm(one)} and {_in_mm(other)}"


def _in_mm(box: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{side:.1f}" for side in box) + ")"


def _cut_data(figure: Figure) -> Iterator[str]:
    for number, axes in enumerate(figure.axes):
        (left, right), (low, high) = sorted(axes.get_xlim()), sorted(axes.get_ylim())
        for what, points in _points(axes):
            kept = np.asarray(points, dtype=float).reshape(-1, 2)
            kept = kept[np.isfinite(kept).all(axis=1)]
            x, y = _along(axes, "x", kept[:, 0]), _along(axes, "y", kept[:, 1])
            (start, end), (foot, top) = _along(axes, "x", (left, right)), _along(axes, "y", (low, high))
            out = (x < start - SLACK * (end - start)) | (x > end + SLACK * (end - start))
            out |= (y < foot - SLACK * (top - foot)) | (y > top + SLACK * (top - foot))
            if out.any():
                worst = kept[out][0]
                yield (
                    f"axes {number} ({axes.get_title(loc='left')!r}): {int(out.sum())} of {len(kept)} points"
                    f" of {what} lie outside of {left:g} to {right:g}, {low:g} to {high:g}, such as"
                    f" {worst[0]:g}, {worst[1]:g}"
                )


def _along(axes: Axes, which: str, values: Any) -> Any:
    scale = axes.get_xscale() if which == "x" else axes.get_yscale()
    values = np.asarray(values, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(values) if scale == "log" else values


def _points(axes: Axes) -> Iterator[tuple[str, Any]]:
    """The data of everything drawn in the coordinates of axes."""
    data = axes.transData
    for line in axes.lines:
        if line.get_transform() == data and line.get_visible():
            yield "a line", line.get_xydata()
    for one in axes.collections:
        yield from _points_of(one, data)
    for patch in axes.patches:
        if patch.get_data_transform() == data and patch.get_visible():
            path = patch.get_path().transformed(patch.get_patch_transform())
            yield type(patch).__name__, np.asarray(path.vertices)[: _closing(path)]
    for image in axes.images:
        left, right, low, high = image.get_extent()
        yield "an image", [(left, low), (right, high)]


def _closing(path: Any) -> int | None:
    """A closed path ends with a meaningless point."""
    codes = path.codes
    return -1 if codes is not None and len(codes) and codes[-1] == path.CLOSEPOLY else None


def _points_of(one: Collection, data: Any) -> Iterator[tuple[str, Any]]:
    if not one.get_visible():
        return
    kind = type(one).__name__
    offsets = one.get_offsets()
    if one.get_offset_transform() == data and np.size(offsets):
        yield kind, np.ma.filled(offsets, np.nan)
    elif one.get_transform() == data:
        for path in one.get_paths():
            if np.size(path.vertices):
                yield kind, path.vertices


def same_looks(figure: Figure) -> list[str]:
    """Pairs of entries of the legend that a reader cannot distinguish."""
    looks: dict[tuple[Any, ...], str] = {}
    pairs = []
    for legend in figure.legends:
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
            if not isinstance(handle, Line2D):
                continue
            look = (
                to_hex(handle.get_color()),
                str(handle.get_linestyle()),
                str(handle._unscaled_dash_pattern),  # type: ignore[attr-defined]
                str(handle.get_marker()),
                str(handle.get_fillstyle()),
                str(handle.get_markerfacecolor()),
            )
            if look in looks:
                pairs.append(f"{looks[look]} and {text.get_text()}")
            looks[look] = text.get_text()
    return pairs


def colours_in_legends(figure: Figure) -> dict[str, str]:
    """The colour of each name in the legends of a figure, without numbers before the names."""
    from matplotlib.colors import to_hex

    found = {}
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    for legend in filter(None, legends):
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
            shown: Any = handle
            colour = shown.get_color() if hasattr(shown, "get_color") else shown.get_facecolor()
            name = text.get_text().replace("\n", " ")
            number, _, rest = name.partition("  ")
            found[rest if number.isdecimal() and rest else name] = to_hex(colour)
    return found
