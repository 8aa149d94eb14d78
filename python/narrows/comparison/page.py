"""The comparison as one self-contained HTML page without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from narrows import __version__
from narrows.analysis.metrics import four_digits, head_of
from narrows.blocks import html
from narrows.comparison import margins, words
from narrows.comparison import rows as row_names
from narrows.comparison.findings import MISSING, SAME
from narrows.documents.comparison import ComparedMetric, Comparison, Envelope, EnvelopeSide, Estimate
from narrows.documents.results import Metric, Quantity
from narrows.policy import lock

#: Size of the picture of an interval, in pixels.
_WIDE, _HIGH = 180, 18
#: Size of the picture of two envelopes, and the margins for its axes.
_BOX, _LEFT, _BELOW = (340, 240), 56, 40


def page(document: Comparison) -> str:
    """The page as text; equal documents have equal bytes."""
    from jinja2 import Environment
    from markupsafe import Markup

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    templates = files("narrows.comparison").joinpath("templates")
    template = environment.from_string(templates.joinpath("compare.html.j2").read_text(encoding="utf-8"))
    style = html.asset("page.css")
    own = templates.joinpath("compare.css").read_text(encoding="utf-8")
    made: str = template.render(
        version=__version__,
        doc=document,
        w=words,
        r=row_names,
        m=margins,
        names=row_names.conditions(document)[1],
        head_of=head_of,
        quantity=Quantity.unknown,
        css=Markup(style + own),
        tables=[]
        if document.ranks is not None
        else [_table(document, metric) for metric in document.metrics],
        ranks=_ranks(document) if document.ranks is not None else [],
        claims=[] if document.ranks is not None else words.claims(document),
        set_up=words.set_up(document),
        envelopes=[
            {
                "text": text,
                "picture": Markup(_envelope(envelope, envelope.base, envelope.other))
                if envelope.base and envelope.other
                else "",
            }
            for envelope, text in zip(
                document.envelopes or [], words.envelope_sentences(document), strict=True
            )
        ],
        provenance=words.provenance(document),
        notes=[] if document.ranks is not None else words.notes(document),
    )
    return lock(made)


def _table(document: Comparison, metric: Metric) -> dict[str, Any]:
    """One metric of all rows, with the pictures of their intervals on a common scale."""
    from markupsafe import Markup

    findings = [(row, row.metrics[metric.name]) for row in document.rows]
    _, names = row_names.conditions(document)
    reach = max((_reach(finding) for _, finding in findings), default=0.0)
    rows = [
        {
            "name": row_names.brief_name(row, document),
            "conditions": row_names.values_of(row, names),
            "base": words.runs_of(row.base),
            "other": words.runs_of(row.other),
            "values": [words.value(finding.base, metric), words.value(finding.other, metric)],
            "difference": words.difference(finding, metric),
            "interval": words.interval(finding, metric),
            "verdict": words.verdict(finding),
            "outcome": str(finding.outcome).replace(" ", "-"),
            "why": finding.why or "",
            "picture": Markup(_interval(finding, reach)),
        }
        for row, finding in findings
    ]
    better = {"higher": "more is better", "lower": "less is better"}.get(metric.better or "", "")
    return {
        "title": words.title_of(metric),
        "better": better,
        "rows": rows,
        "text": metric.definition,
    }


def _estimate(finding: ComparedMetric) -> Estimate | None:
    return None if finding.outcome in (MISSING, SAME) else finding.shown


def _reach(finding: ComparedMetric) -> float:
    estimate = _estimate(finding)
    return 0.0 if estimate is None else max(map(abs, (estimate.low, estimate.high, estimate.estimate)))


def _interval(finding: ComparedMetric, reach: float) -> str:
    """A line over the interval, a dot at the estimate, and a mark at zero."""
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


def _ranks(document: Comparison) -> list[dict[str, Any]]:
    """The tables of ranks, one for each set of schemes that met the same conditions."""
    metrics = {metric.name: metric for metric in document.metrics}
    counts = words.samples(document)
    _, names = row_names.conditions(document)
    entries = []
    for frontier in document.frontiers or []:
        ranks = [rank for rank in document.ranks or [] if rank.values == frontier.values]
        rows = []
        for entry in frontier.schemes:
            cells = []
            for rank in ranks:
                mine = words.entry_of(rank, entry.scheme)
                shown = words.value(mine.summary, metrics[rank.metric])
                cells.append({"value": shown, "rank": words.rank(mine)})
            rows.append(
                {
                    "scheme": words.without_values(entry.scheme, frontier.values),
                    "runs": words.runs_of(counts[entry.scheme]),
                    "cells": cells,
                    "on": words.on_frontier(entry),
                }
            )
        heads = [words.title_of(metrics[rank.metric]) for rank in ranks]
        entries.append({"title": row_names.heading(frontier.conditions, names), "heads": heads, "rows": rows})
    return entries


def _envelope(envelope: Envelope, base: EnvelopeSide, other: EnvelopeSide) -> str:
    """Two hulls over delay (in ms) and throughput (in Mbit/s)."""
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
    from markupsafe import escape

    label = escape(f"Performance envelopes of {first} (full line) and {second} (dashed)")
    return (
        f'<svg class="envelope" viewBox="0 0 {size}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
    )


def _scale(values: Sequence[float]) -> tuple[float, float]:
    """An axis that contains all values with some margin."""
    low, high = min(values), max(values)
    room = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    return low - room, high + room
