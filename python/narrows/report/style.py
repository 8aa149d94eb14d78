"""One style per scheme, the same in every figure of every report.

The style follows from the name alone: hand-picked for well-known schemes, derived from a hash of the name for
all others, so that a new scheme has a style without an entry here. Schemes of one family share a hue; the
kernel's scheme is lighter. Marker and dash distinguish schemes without colour (print, colour blindness). All
colours have a contrast of at least 3:1 to their background (WCAG 2.2, non-text contrast).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from narrows.files import read_packaged
from narrows.imported import plain_name

INK = "#1b1f24"
"""Text and axes; HTML pages replace it by the colour of their theme."""
MUTED = "#5b6470"
GRID = "#d8dde3"
SHADE = "#ece6d8"
"""Capacity in throughput figures."""
PAPER = "#ffffff"

_LOOKS = read_packaged(Path(__file__).with_name("style.yaml"))
_COLOURS: dict[str, tuple[str, str]] = {name: tuple(pair) for name, pair in _LOOKS["colours"].items()}
#: Colour, marker and dash of well-known schemes.
_KNOWN: dict[str, tuple[str, str, int]] = _LOOKS["schemes"]
PAIRS: dict[str, str] = dict(_COLOURS.values())
"""For every colour on white the one that replaces it on a dark page."""

_SCHEME_COLOURS = tuple(PAIRS)
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
        """The dash pattern in Matplotlib's notation."""
        return (0, self.dash) if self.dash else "-"

    @property
    def weight(self) -> float:
        """The size factor that makes marks of all shapes look equally large."""
        return 1.5 if self.marker == "*" else 1.0


#: Suffixes of the names of schemes that were sent from either of two hosts.
_SENDERS = (" (sender here)", " (sender there)")


def of(scheme: str) -> Style:
    """The style of a scheme, from its name alone. An imported scheme looks like ours of that name; a scheme
    that was sent from either host has one colour, and a marker and dash for each host.
    """
    for number, words in enumerate(_SENDERS):
        if scheme.endswith(words):
            own = of(scheme.removesuffix(words))
            return with_condition(own, number, scheme)
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


def distinct(schemes: Sequence[str]) -> dict[str, Style]:
    """Styles for the schemes of one figure, all distinct: as marks (colour and marker), as lines (colour and
    dash), and without colour (marker and dash).

    Schemes keep the style of their name if possible, hand-picked ones first. Others take the least used
    attributes. Beyond 60 schemes there are not enough dashes, and beyond 144 not enough markers.
    """
    result: dict[str, Style] = {}
    for scheme in sorted(dict.fromkeys(schemes), key=lambda text: text not in _KNOWN):
        own, used = of(scheme), list(result.values())
        if any(
            own.color == style.color and (own.marker == style.marker or own.dash == style.dash)
            for style in used
        ):
            own = _unlike(own, used)
        elif any((own.marker, own.dash) == (style.marker, style.dash) for style in used):
            own = _in_its_colour(own, used)
        result[scheme] = own
    return {scheme: result[scheme] for scheme in schemes}


def _in_its_colour(own: Style, used: Sequence[Style]) -> Style:
    """The style with another marker or dash, distinct from all used ones even without colour, as in print;
    unchanged if all are taken.
    """
    marks = {(style.marker, style.dash) for style in used}
    mine = [style for style in used if style.color == own.color]
    looks = sorted(
        ((marker, dash) for marker in _MARKERS for dash in _DASHES),
        key=lambda look: (look[0] != own.marker) + (look[1] != own.dash),
    )
    for marker, dash in looks:
        alike = any(marker == style.marker or dash == style.dash for style in mine)
        if (marker, dash) not in marks and not alike:
            return Style(own.label, own.color, own.dark, marker, dash)
    return own


def _unlike(own: Style, used: Sequence[Style]) -> Style:
    """The style that differs most from those in use, and among equally different ones the nearest
    to its own.
    """
    colours = Counter(style.color for style in used)
    markers = Counter(style.marker for style in used)
    marks = {(style.color, style.marker) for style in used}
    lines = {(style.color, style.dash) for style in used}
    grey = {(style.marker, style.dash) for style in used}

    def cost(look: tuple[str, str, tuple[float, ...]]) -> tuple[int, ...]:
        color, marker, dash = look
        alike = 4 * ((color, marker) in marks) + 2 * ((color, dash) in lines) + ((marker, dash) in grey)
        return alike, colours[color] + markers[marker], color != own.color, marker != own.marker

    looks = ((color, marker, dash) for color in _SCHEME_COLOURS for marker in _MARKERS for dash in _DASHES)
    color, marker, dash = min(looks, key=cost)
    return Style(own.label, color, PAIRS[color], marker, dash)


def with_condition(own: Style, number: int, label: str) -> Style:
    """The style of a scheme under a numbered condition (from 0): the scheme's colour with the condition's
    marker and dash.
    """
    marker = _MARKERS[(_MARKERS.index(own.marker) + number) % len(_MARKERS)]
    dash = _DASHES[(_DASHES.index(own.dash) + number) % len(_DASHES)]
    return Style(label, own.color, own.dark, marker, dash)


#: Tones of one colour: the flows of a scheme in a run have its colour, with darker tones on white and lighter
#: ones on dark pages.
_TONES = (0.0, 0.36, 0.66)


def _mix(colour: str, other: str, share: float) -> str:
    parts = (
        round((1 - share) * int(colour[i : i + 2], 16) + share * int(other[i : i + 2], 16)) for i in (1, 3, 5)
    )
    return "#" + "".join(f"{part:02x}" for part in parts)


for _light, _dark in list(_COLOURS.values()):
    for _tone in _TONES[1:]:
        PAIRS[_mix(_light, INK, _tone)] = _mix(_dark, PAPER, _tone)


def of_flows(names: Sequence[str], labels: Sequence[str], looks: Mapping[str, Style]) -> list[Style]:
    """Styles for the flows of one run, whose schemes are given by their names in the campaign's figures: the
    colour identifies the scheme, and tone, marker and dash distinguish its flows. `looks` are the styles of
    the schemes in the campaign.
    """
    styles: list[Style] = []
    seen: Counter[str] = Counter()
    for name, label in zip(names, labels, strict=True):
        own, number = looks.get(name) or of(name), seen[name]
        seen[name] += 1
        tone = _TONES[number % len(_TONES)]
        shifted = with_condition(own, number, label)
        light = own.color if tone == 0 else _mix(own.color, INK, tone)
        dark = own.dark if tone == 0 else _mix(own.dark, PAPER, tone)
        dash = _DASHES[number // len(_TONES) % len(_DASHES)]
        styles.append(Style(label, light, dark, shifted.marker, dash))
    return styles


_NEUTRAL = (("#5b6470", "#a9b4c0"), ("#1b1f24", "#e3e8ee"), ("#8b95a1", "#7d8792"))


def of_part(number: int, label: str) -> Style:
    """The style of a part of the network, such as a queue: grey, since colours identify schemes."""
    light, dark = _NEUTRAL[number % len(_NEUTRAL)]
    return Style(label, light, dark, _MARKERS[number % len(_MARKERS)], _DASHES[number % len(_DASHES)])


_FLOW_COLOURS = ("blue", "orange", "green", "rose", "slate", "crimson", "sky", "olive")


def of_flow(index: int, label: str) -> Style:
    """The style of a series at a position (from 0) among series that are not schemes; repeats after 96."""
    light, dark = _COLOURS[_FLOW_COLOURS[index % len(_FLOW_COLOURS)]]
    return Style(label, light, dark, _MARKERS[(index + index // len(_MARKERS)) % len(_MARKERS)], ())


def of_background(label: str) -> Style:
    """The style of traffic that is not under test: visible but unobtrusive."""
    return Style(label, "#8b95a1", "#7d8792", ".", ())
