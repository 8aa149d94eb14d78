"""Quantities with units: `12 Mbit/s`, `20 ms`, `150 kB`, `100 packets`, `1.5 bdp`, `0.1 %`.

k, M and G are powers of 1000, Ki, Mi and Gi powers of 1024; `bit` and `B` (byte) cannot be confused, because
the unit is always written. Arithmetic is exact (fractions); results are whole numbers of base units: bit/s,
ns, bytes, packets.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from narrows.scenario.habits import HABITS
from narrows.text import any_of, did_you_mean, shorten

#: The largest value of any quantity: it must fit the integers of the core.
LARGEST = 2**63 - 1


#: Why an amount in bdp is unknown.
NO_BDP = "needs a constant bottleneck rate in this direction and a delay on the path"


class QuantityError(ValueError):
    """A quantity that can't be read; the message is a clause that fits after a key and a colon."""


@dataclass(frozen=True)
class Quantity:
    """A number with its unit, in base units of its kind."""

    kind: str  # rate, span, bytes, packets, bdp, ratio
    value: Fraction
    text: str


def _units() -> dict[str, tuple[str, Fraction]]:
    prefixes = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
    prefixes |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
    units: dict[str, tuple[str, Fraction]] = {}
    for prefix, factor in prefixes.items():
        units[f"{prefix}bit/s"] = ("rate", Fraction(factor))
        units[f"{prefix}B/s"] = ("rate", Fraction(factor * 8))
        units[f"{prefix}B"] = ("bytes", Fraction(factor))
    times = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9}
    for unit, nanoseconds in {**times, "min": 60 * 10**9, "h": 3600 * 10**9}.items():
        units[unit] = ("span", Fraction(nanoseconds))
    units |= {"packet": ("packets", Fraction(1)), "packets": ("packets", Fraction(1))}
    units |= {"bdp": ("bdp", Fraction(1)), "BDP": ("bdp", Fraction(1)), "%": ("ratio", Fraction(1, 100))}
    return units


#: The units in our spelling.
UNITS = _units()
#: The units in the spellings of other tools as well.
SPELLINGS = UNITS | {other: UNITS[ours] for other, ours in HABITS["units"].items()}
#: A value of each kind in words, for messages.
EXAMPLES: dict[str, str] = tomllib.loads(
    Path(__file__).with_name("quantity.toml").read_text(encoding="utf-8")
)["examples"]

#: More digits than the largest value has in its smallest unit.
MOST_DIGITS = 60
_UNIT_OF_KIND = {"rate": "Mbit/s", "span": "ms", "bytes": "kB", "packets": "packets", "ratio": "%"}
_PATTERN = re.compile(
    r"(?P<number>[-+]?(?P<digits>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE](?P<exponent>[-+]?[0-9]+))?)"
    r"\s*(?P<unit>\S.*)?",
    re.DOTALL,
)


def parse(text: str, wanted: str | None = None) -> Quantity:
    """Reads a number with its unit; `wanted` is the expected kind, for messages."""
    match = _PATTERN.fullmatch(text.strip())
    what = EXAMPLES.get(wanted or "", "a number with a unit such as 20 ms")
    if match is None:
        raise QuantityError(f'"{shorten(text)}" is not {what}')
    number, unit = match["number"], match["unit"]
    # Beyond any value that fits, and expensive to compute with.
    if len(match["digits"]) > MOST_DIGITS:
        raise QuantityError(f"{shorten(text)} has more than {MOST_DIGITS} digits")
    if len((match["exponent"] or "").lstrip("+-0")) > 2:
        raise QuantityError(f"{shorten(text)} is too {'small' if '-' in match['exponent'] else 'large'}")
    if unit is None:
        raise NoUnitError(text, number, wanted)
    if unit not in SPELLINGS:
        unclear = HABITS["unclear_units"].get(unit)
        hint = f"; write {unclear}" if unclear else did_you_mean(unit, UNITS)
        kinds = sorted(name for name, (kind, _) in UNITS.items() if wanted in (kind, None))
        raise QuantityError(f'unknown unit "{shorten(unit)}"{hint or "; known units: " + ", ".join(kinds)}')
    kind, factor = SPELLINGS[unit]
    return Quantity(kind, Fraction(number) * factor, text.strip())


class NoUnitError(QuantityError):
    """A number without its required unit."""

    def __init__(self, text: str, number: str, wanted: str | None) -> None:
        self.text = text
        self.number = number
        what = EXAMPLES.get(wanted or "", "a number with a unit").split(" such as")[0]
        super().__init__(f"{shorten(text)} has no unit; write {what}{_examples(number, wanted)}")

    def of_kinds(self, kinds: list[str]) -> QuantityError:
        """The error message if several kinds of quantities are possible."""
        # The capacity of a queue, in packets or bytes, is often one of these.
        queue = (
            [f"{self.number} bdp"] if {"bytes", "packets"} <= {*kinds} and Fraction(self.number) < 10 else []
        )
        every = [*queue, *(example for kind in kinds for example in _meanings(self.number, kind))]
        return QuantityError(f"{shorten(self.text)} has no unit; write for example {any_of(every)}")


def _examples(number: str, wanted: str | None) -> str:
    """Possible meanings of a number without a unit; for a share, each interpretation."""
    value = Fraction(number)
    if wanted != "ratio" or not 0 < value < 1:
        return f", for example {any_of(_meanings(number, wanted or 'span'))}"
    written = f"{number} {_UNIT_OF_KIND['ratio']}"
    return f": {_plain(100 * value)} % for {_part(value)}, or {written} for {_part(value / 100)}"


def _meanings(number: str, kind: str) -> list[str]:
    """Quantities of a kind that a bare number may mean, the likely one first."""
    value = Fraction(number)
    if kind == "span" and value >= 0:
        # As seconds or as milliseconds, in suitable units.
        meant = [value * 10**9, value * 10**6]
        return [show("span", int(fraction)) for fraction in meant if fraction.denominator == 1] or [
            f"{number} ms"
        ]
    if kind == "rate" and value >= 10_000 and value.denominator == 1:
        return [show("rate", int(value))]
    if kind == "bytes" and value >= 1000 and value.denominator == 1:
        return [show("bytes", int(value))]
    return [f"{number} {_UNIT_OF_KIND.get(kind, 'ms')}"]


def _plain(value: Fraction) -> str:
    """A number in ordinary notation."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.6g}"


def _part(share: Fraction) -> str:
    """A share in whole numbers."""
    return f"{share.numerator} in {share.denominator}"


def whole(value: Fraction, kind: str, text: str) -> int:
    """The value as a whole number of base units; raises a clear error otherwise."""
    if value < 0:
        raise QuantityError(f"{shorten(text)} is negative; it must be 0 or more")
    if value.denominator != 1:
        smallest = {"span": "1 ns", "rate": "1 bit/s", "bytes": "1 B", "packets": "1 packet"}[kind]
        raise QuantityError(f"{shorten(text)} is not a whole multiple of {smallest}")
    if value > LARGEST:
        raise QuantityError(f"{shorten(text)} is too large")
    return int(value)


def fits(quantity: Quantity, kind: str) -> bool:
    """True if a parameter of that kind accepts the quantity."""
    return quantity.kind == kind or (quantity.kind == "bdp" and kind == "bytes")


def convert(quantity: Quantity, kind: str, bdp: Fraction | None, no_bdp: str = NO_BDP) -> int | float:
    """The quantity in base units of `kind`; `bdp` is the bandwidth-delay product in bytes.

    `no_bdp` is the reason if it is unknown.
    """
    if not fits(quantity, kind):
        raise QuantityError(f"{shorten(quantity.text)} is not {EXAMPLES.get(kind, 'a ' + kind)}")
    if kind == "ratio":
        return float(quantity.value)
    if quantity.kind == "bdp":
        if bdp is None:
            raise QuantityError(f"{shorten(quantity.text)} {no_bdp}; write an amount such as 150 kB")
        if quantity.value < 0:
            raise QuantityError(f"{shorten(quantity.text)} is negative; it must be 0 or more")
        return whole(Fraction(round(quantity.value * bdp)), kind, quantity.text)
    return whole(quantity.value, kind, quantity.text)


def show(kind: str, value: Any) -> str:
    """A value in base units in readable form: 12000000 of kind rate is `12 Mbit/s`."""
    if value is None:
        return "none"
    if kind == "flag":
        return "true" if value else "false"
    if kind == "counts":
        return ", ".join(str(number) for number in value)
    if kind in ("rate_steps", "span_steps"):
        inner = kind.removesuffix("_steps")
        return ", ".join(f"{show(inner, amount)} from {show('span', time)}" for time, amount in value)
    if kind == "file":
        # The default of a scheme's model is a name.
        return value if isinstance(value, str) else str(value["name"])
    steps = _STEPS.get(kind)
    if steps is None:
        return _short(value) if isinstance(value, int | float) else str(value)
    fitting = (step for step in steps if value >= step[0] and (value * 1000) % step[0] == 0)
    factor, unit = next(fitting, steps[-1])
    text = _short(value / factor)
    return f"{text} packet" if kind == "packets" and text == "1" else f"{text} {unit}"


_STEPS: dict[str, tuple[tuple[int, str], ...]] = {
    "rate": ((10**12, "Tbit/s"), (10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "kbit/s"), (1, "bit/s")),
    "span": ((3600 * 10**9, "h"), (10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns")),
    "bytes": ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B")),
    "packets": ((1, "packets"),),
}


def _short(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.12g}"
