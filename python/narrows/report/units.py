"""Numbers for people: Mbit/s, ms, kB and per cent, with only as many digits as help."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from narrows.text import plural

NARROW_SPACE = "\N{NARROW NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"


def decimals_for(values: Iterable[float]) -> int:
    """The number of decimals for a column: about four significant digits of its largest value."""
    largest = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    if largest == 0.0:
        return 0
    if largest < 1.0:
        return min(6, 2 - math.floor(math.log10(largest)))
    return max(0, 2 - max(0, math.floor(math.log10(largest)) - 1))


def number(value: float, decimals: int | None = None) -> str:
    """A number with a true minus sign and narrow spaces between thousands."""
    if not math.isfinite(value):
        return "not finite"
    places = decimals_for([value]) if decimals is None else decimals
    text = f"{abs(value):,.{places}f}".replace(",", NARROW_SPACE)
    negative = value < 0 and any(c not in "0.," + NARROW_SPACE for c in text)
    return (MINUS if negative else "") + text


def trim(value: float, digits: int = 4) -> str:
    """A configured (not measured) quantity: the shortest text that keeps `digits` significant digits."""
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = number(value, places)
    return text.rstrip("0").rstrip(".") if "." in text else text


def rate(bits_per_second: float) -> str:
    """A configured rate: `12 Mbit/s`."""
    for scale, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if abs(bits_per_second) >= scale and not (scale == 1e9 and bits_per_second % 1e9):
            return f"{trim(bits_per_second / scale, 6)} {unit}"
    return f"{trim(bits_per_second)} bit/s"


def span(ns: float) -> str:
    """A configured duration: `20 ms`, `30 s`."""
    if abs(ns) >= 1e9:
        return f"{trim(ns / 1e9)} s"
    if abs(ns) >= 1e6:
        return f"{trim(ns / 1e6)} ms"
    if abs(ns) >= 1e3:
        return f"{trim(ns / 1e3)} µs"
    return "0 ms" if ns == 0 else f"{trim(ns)} ns"


def size(count: float) -> str:
    """A configured amount of bytes: `60 kB`."""
    if abs(count) >= 1e6:
        return f"{trim(count / 1e6)} MB"
    if abs(count) >= 1e3:
        return f"{trim(count / 1e3)} kB"
    return f"{trim(count)} B"


def ratio(value: float) -> str:
    """A ratio as per cent: `0.1 %`."""
    return f"{trim(value * 100)} %"


def memory(count: float) -> str:
    """Memory of a machine in GiB."""
    return f"{trim(count / 2**30, 3)} GiB"


def parameter(kind: str | None, value: Any) -> str:
    """A parameter of a queue, link or scheme, in the notation of its kind in the registry."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        form = {"rate": rate, "span": span, "bytes": size, "ratio": ratio}.get(kind or "")
        if form is not None:
            return form(float(value))
        if kind == "packets":
            return plural(int(value), "packet")
        return trim(float(value), 6)
    if kind in ("rate_steps", "span_steps") and isinstance(value, list):
        return _steps(rate if kind == "rate_steps" else span, value)
    if isinstance(value, Mapping) and "sha256" in value:
        return str(value.get("name"))
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {parameter(None, v)}" for k, v in value.items() if v is not None)
    if isinstance(value, list | tuple):
        return ", ".join(parameter(kind, v) for v in value)
    return str(value)


MOST_STEPS = 6
"""Steps of a schedule that are written out."""


def _steps(form: Callable[[float], str], steps: list[Any]) -> str:
    """`1 Mbit/s, from 40 s 2.5 Mbit/s`."""
    shown = [
        form(float(value)) if i == 0 else f"from {span(float(at))} {form(float(value))}"
        for i, (at, value) in enumerate(steps[:MOST_STEPS])
    ]
    return ", ".join(shown) + (f" and {len(steps) - MOST_STEPS} more" if len(steps) > MOST_STEPS else "")
