"""Distribution of one-way delays: one rising line per scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from narrows.report.data import Campaign
from narrows.report.drawing import Numbers, Options
from narrows.report.figures import _delays
from narrows.report.figures._shares import curve, draw
from narrows.text import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Distribution of one-way delays"
ALSO = ("cdf",)
SCOPE = "campaign"
ORDER = 60
IN_REPORT = False


def absent(data: Campaign) -> str | None:
    """Needs single packets."""
    return _delays.absent(data)


def numbers(data: Campaign) -> Numbers:
    """One row per point of a curve."""
    curves = {scheme: curve(delays) for scheme, delays in _delays.of_schemes(data).items()}
    return {
        "scheme": [scheme for scheme, (delays, _) in curves.items() for _ in delays],
        "delay_ms": np.concatenate([delays for delays, _ in curves.values()] or [np.zeros(0)]),
        "share": np.concatenate([shares for _, shares in curves.values()] or [np.zeros(0)]),
    }


def caption(data: Campaign) -> str:
    """The caption."""
    del data
    return (
        "Share of the packets whose one-way delay was no longer than the value on the axis; further left is "
        "better. All packets of a scheme's valid runs together."
    )


def figure(data: Campaign, options: Options) -> Figure:
    """A rising line per scheme."""
    found = {
        scheme: (delays, plural(len(delays), "packet")) for scheme, delays in _delays.of_schemes(data).items()
    }
    return draw(options, found, ("one-way delay (ms)", "share of packets"))
