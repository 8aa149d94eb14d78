"""The pictures of a comparison on pages: intervals of differences, and performance envelopes."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import escape

from narrows.analysis.metrics import four_digits
from narrows.comparison import words
from narrows.comparison.findings import MISSING, SAME
from narrows.documents.comparison import ComparedMetric, Envelope, EnvelopeSide, Estimate

#: Size of the picture of an interval, in pixels.
_WIDE, _HIGH = 180, 18
#: Size of the picture of two envelopes, and the margins for its axes.
_BOX, _LEFT, _BELOW = (340, 240), 56, 40


def _estimate(finding: ComparedMetric) -> Estimate | None:
    return None if finding.outcome in (MISSING, SAME) else finding.shown


def reach(finding: ComparedMetric) -> float:
    """The largest distance from zero that the picture of a finding must show."""
    estimate = _estimate(finding)
    return 0.0 if estimate is None else max(map(abs, (estimate.low, estimate.high, estimate.estimate)))


def draw_interval(finding: ComparedMetric, reach: float) -> str:
    """A line over the interval, a dot at the estimate, and a mark at zero, as SVG; it shows up to `reach` on
    either side of zero.
    """
    middle = _WIDE / 2
    zero = f'<line class="zero" x1="{middle}" x2="{middle}" y1="0" y2="{_HIGH}"/>'
    estimate = _estimate(finding)
    body = ""
    if estimate is not None and reach > 0:
        low, at, high = (
            middle + (middle - 6) * end / reach for end in (estimate.low, estimate.estimate, estimate.high)
        )
        body = (
            f'<line class="range" x1="{low:.1f}" x2="{high:.1f}" y1="{_HIGH / 2}" y2="{_HIGH / 2}"/>'
            f'<circle cx="{at:.1f}" cy="{_HIGH / 2}" r="3.5"/>'
        )
    return (
        f'<svg class="interval" width="{_WIDE}" height="{_HIGH}" viewBox="0 0 {_WIDE} {_HIGH}"'
        ' aria-hidden="true">'
        f"{zero}{body}</svg>"
    )


def draw_envelope(envelope: Envelope, base: EnvelopeSide, other: EnvelopeSide) -> str:
    """Two hulls over delay (in ms) and throughput (in Mbit/s), as SVG."""
    first, second = words.names_of(envelope)
    shapes = [[(delay / 1e6, rate / 1e6) for delay, rate in side.hull] for side in (base, other)]
    every = [point for shape in shapes for point in shape]
    scales = [_scale([point[axis] for point in every]) for axis in (0, 1)]
    wide, high = _BOX

    def place(point: tuple[float, float]) -> str:
        x, y = ((point[axis] - low) / (top - low) for axis, (low, top) in enumerate(scales))
        return f"{_LEFT + x * wide:.1f},{8 + (1 - y) * high:.1f}"

    parts = [f'<rect class="frame" x="{_LEFT}" y="8" width="{wide}" height="{high}"/>']
    for name, shape in zip(("base", "other"), shapes, strict=True):
        parts.append(f'<polygon class="{name}" points="{" ".join(map(place, shape))}"/>')
    (left, right), (low, top) = scales
    below = high + 24
    parts += [
        f'<text x="{_LEFT}" y="{below}">{four_digits(left)}</text>',
        f'<text x="{_LEFT + wide}" y="{below}" text-anchor="end">{four_digits(right)}</text>',
        f'<text x="{_LEFT + wide / 2}" y="{below}" text-anchor="middle">one-way delay [ms]</text>',
        f'<text x="{_LEFT - 4}" y="{high + 8}" text-anchor="end">{four_digits(low)}</text>',
        f'<text x="{_LEFT - 4}" y="18" text-anchor="end">{four_digits(top)}</text>',
        f'<text transform="translate(14 {8 + high / 2}) rotate(-90)" text-anchor="middle">throughput'
        " [Mbit/s]</text>",
    ]
    size = f"{_LEFT + wide + 8} {high + _BELOW}"
    label = escape(f"Performance envelopes of {first} (full line) and {second} (dashed)")
    return (
        f'<svg class="envelope" viewBox="0 0 {size}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
    )


def _scale(values: Sequence[float]) -> tuple[float, float]:
    """An axis that contains all values with some margin."""
    low, high = min(values), max(values)
    room = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    return low - room, high + room
