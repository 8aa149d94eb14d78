"""Numbers as people write them: `12.5`, `12,5`, `1/2`, `50 %`, `4x`, or `0.08 s` when the unit is ms."""

from __future__ import annotations

import re
from fractions import Fraction

from narrows.scenario.quantity import Quantity, QuantityError, parse

_DECIMAL = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?"
_PLAIN = re.compile(_DECIMAL)
_QUOTIENT = re.compile(rf"({_DECIMAL})\s*[/:]\s*({_DECIMAL})")
_TIMES = re.compile(r"\s*(x|×|times|fold|-fold)$", re.IGNORECASE)


def read_number(text: str, unit: str | None) -> list[float]:
    """The possible values of a written number, in `unit`; an empty list for text that is not a number.

    Without a percent sign `0.5` is ambiguous if per cent are expected: both 0.5 % and 50 % are returned.
    """
    plain = _with_point(" ".join(text.split()))
    if unit is None:
        plain = _TIMES.sub("", plain)
    elif plain.endswith(unit):
        return _values(plain.removesuffix(unit).strip(), unit, is_bare=False)
    if plain.endswith("%"):
        return [value / 100 for value in _values(plain.removesuffix("%").strip(), None, is_bare=False)]
    return _values(plain, unit, is_bare=True) or _convert(plain, unit)


def _with_point(text: str) -> str:
    """Replaces a decimal comma by a point."""
    return text.replace(",", ".") if text.count(",") == 1 and "." not in text else text


def _values(text: str, unit: str | None, *, is_bare: bool) -> list[float]:
    """The values of a decimal number or a quotient; `is_bare` if it has no unit."""
    quotient = _QUOTIENT.fullmatch(text)
    if quotient is not None:
        divisor = float(quotient[2])
        if divisor == 0:
            return []
        value = float(quotient[1]) / divisor
    elif _PLAIN.fullmatch(text):
        value = float(text)
    else:
        return []
    if unit == "%" and is_bare and abs(value) <= 1:
        return [value * 100] if quotient is not None else [value, value * 100]
    return [value]


def _convert(text: str, unit: str | None) -> list[float]:
    """The value of a number with another unit of the same kind."""
    given, wanted = _quantity(text), _quantity(f"1 {unit}")
    if given is None or wanted is None or given.kind != wanted.kind or not wanted.value:
        return []
    return [float(Fraction(given.value) / Fraction(wanted.value))]


def _quantity(text: str) -> Quantity | None:
    try:
        return parse(text)
    except QuantityError:
        return None
