"""One style per scheme, the same in every figure of every report.

The style follows from the name alone: hand-picked for well-known schemes, derived from a hash of the name
for all others, so that a new scheme has its style without an entry here. Schemes of one family share a hue;
the one of the kernel is the lighter. Marker and dash tell schemes apart where colour does not (print, colour
blindness). All colours reach a contrast of 3:1 on their background (WCAG 2.2, non-text contrast).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from narrows.imported import plain_name

INK = "#1b1f24"
"""Text and axes; HTML pages replace it by the colour of their theme."""
MUTED = "#5b6470"
GRID = "#d8dde3"
SHADE = "#ece6d8"
"""Capacity in throughput figures."""
PAPER = "#ffffff"

_COLOURS: dict[str, tuple[str, str]] = {  # name: (on white, on dark)
    "blue": ("#0067a5", "#4ea6e0"),
    "sky": ("#2f95d3", "#8accf5"),
    "vermilion": ("#c44601", "#f0733a"),
    "orange": ("#c78200", "#f3b13c"),
    "green": ("#00795c", "#20b58d"),
    "mint": ("#2b9f78", "#6fd6b3"),
    "purple": ("#8d4f9f", "#c58ad6"),
    "rose": ("#c2578f", "#ec94c0"),
    "brown": ("#7a5a3a", "#c3a07d"),
    "slate": ("#56606b", "#a9b4c0"),
    "crimson": ("#a3123a", "#ee6a8b"),
    "olive": ("#737500", "#bdbf45"),
}
PAIRS: dict[str, str] = dict(_COLOURS.values())
"""For every colour on white the one that replaces it on a dark page."""

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "<", ">", "h", "*")
_DASHES: tuple[tuple[float, ...], ...] = ((), (6, 2), (2, 1.5), (7, 2, 1.5, 2), (4, 1.5, 1.5, 1.5, 1.5, 1.5))


@dataclass(frozen=True, slots=True)
class Style:
    """The style of a scheme (or a flow): colours for light and dark pages, marker, dash pattern in points."""

    label: str
    color: str
    dark: str
    marker: str
    dash: tuple[float, ...]

    @property
    def linestyle(self) -> str | tuple[int, tuple[float, ...]]:
        """The dash pattern in matplotlib's words."""
        return (0, self.dash) if self.dash else "-"


_KNOWN: dict[str, tuple[str, str, int]] = {  # colour, marker, dash
    "cubic": ("blue", "o", 0),
    "linux:cubic": ("sky", "s", 1),
    "bpf:cubic": ("slate", "p", 2),
    "reno": ("vermilion", "^", 0),
    "linux:reno": ("orange", "v", 1),
    "linux:bbr": ("green", "D", 3),
    "bbr1": ("green", "P", 0),
    "bbr3": ("mint", "X", 1),
    "copa": ("purple", "*", 0),
    "vegas": ("rose", "h", 0),
    "linux:vegas": ("rose", "<", 1),
    "ledbat": ("slate", "v", 0),
    "ledbat++": ("slate", "^", 1),
    "sprout": ("brown", "s", 0),
    "verus": ("olive", "D", 0),
    "scream": ("crimson", "o", 0),
    "gcc": ("crimson", "s", 2),
    "pcc-allegro": ("olive", "P", 2),
    "vivace": ("olive", "X", 0),
    "pcc-expr": ("olive", "^", 3),
    "koho": ("purple", "D", 3),
    "koho-calibrated": ("purple", "o", 4),
    "remy": ("brown", "P", 1),
    "indigo": ("mint", "s", 2),
    "muses": ("mint", "<", 4),
    "quic-cubic": ("blue", "v", 2),
    "fillp": ("orange", "P", 0),
    "fillp-sheep": ("orange", "X", 2),
    "htcp": ("purple", "p", 2),
    "bpf:htcp": ("purple", "<", 1),
    "westwood": ("brown", ">", 2),
    "dctcp": ("rose", "P", 2),
    "linux:dctcp": ("rose", "X", 3),
}


#: Endings of the names of schemes that were sent from either of two hosts.
_SENDERS = (" (sender here)", " (sender there)")


def of(scheme: str) -> Style:
    """The style of a scheme, from its name alone. One that was imported looks like ours of that name; one
    that was sent from either host has one colour, and a marker and dash for each."""
    for number, words in enumerate(_SENDERS):
        if scheme.endswith(words):
            own = of(scheme.removesuffix(words))
            other_marker = _MARKERS[(_MARKERS.index(own.marker) + number) % len(_MARKERS)]
            other_dash = _DASHES[(_DASHES.index(own.dash) + number) % len(_DASHES)]
            return Style(scheme, own.color, own.dark, other_marker, other_dash)
    imported = plain_name(scheme)
    known = _KNOWN.get(imported.replace("_", "-") if imported else scheme)
    if known is not None:
        colour, marker, dash = known
    else:
        digest = int.from_bytes(hashlib.sha256(scheme.encode()).digest()[:8], "big")
        digest, c = divmod(digest, len(_COLOURS))
        digest, m = divmod(digest, len(_MARKERS))
        colour, marker, dash = list(_COLOURS)[c], _MARKERS[m], digest % len(_DASHES)
    light, dark = _COLOURS[colour]
    return Style(scheme, light, dark, marker, _DASHES[dash])


_FLOW_COLOURS = ("blue", "orange", "green", "rose", "slate", "crimson", "sky", "olive")


def of_flow(index: int, label: str) -> Style:
    """The style of the flow at a position (from 0) among flows of one scheme; repeats after 96 flows."""
    light, dark = _COLOURS[_FLOW_COLOURS[index % len(_FLOW_COLOURS)]]
    return Style(label, light, dark, _MARKERS[(index + index // len(_MARKERS)) % len(_MARKERS)], ())


def of_background(label: str) -> Style:
    """The style of traffic that is not under test: present, but not in the way."""
    return Style(label, "#8b95a1", "#7d8792", ".", ())


def of_flows(schemes: list[str], labels: list[str]) -> list[Style]:
    """Styles for the flows of one run: those of the schemes when all differ, else by position."""
    if len(set(schemes)) == len(schemes):
        found = [of(s) for s in schemes]
        return [Style(label, s.color, s.dark, s.marker, ()) for s, label in zip(found, labels, strict=True)]
    return [of_flow(i, label) for i, label in enumerate(labels)]
