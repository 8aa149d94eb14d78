"""Values derived from those of a matrix: `2 x (2 ms + delay)`.

An expression has numbers with units, names of keys of the matrix, `+`, `-`, `x` (or `*`), `/` and
parentheses. Units take part in the computation: a rate times a time is an amount of data, and the sum of a
rate and a time is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from narrows.scenario.quantity import UNITS, Quantity, QuantityError, parse, show
from narrows.text import any_of, did_you_mean, shorten

#: Exponents of bits, seconds, packets and bandwidth-delay products.
_Dimension = tuple[int, int, int, int]

#: Dimension of each kind of quantity, and its base unit in bits, seconds, packets and products.
_KINDS: dict[str, tuple[_Dimension, Fraction]] = {
    "number": ((0, 0, 0, 0), Fraction(1)),
    "rate": ((1, -1, 0, 0), Fraction(1)),
    "span": ((0, 1, 0, 0), Fraction(1, 10**9)),
    "bytes": ((1, 0, 0, 0), Fraction(8)),
    "packets": ((0, 0, 1, 0), Fraction(1)),
    "bdp": ((0, 0, 0, 1), Fraction(1)),
}
_BY_DIMENSION = {dimension: kind for kind, (dimension, _) in _KINDS.items()}
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,2})?")
_UNIT = re.compile("|".join(re.escape(unit) for unit in sorted(UNITS, key=len, reverse=True)))
_OPERATORS = {"+": "+", "-": "-", "−": "-", "*": "x", "x": "x", "×": "x", "/": "/", "(": "(", ")": ")"}
#: Maximum nesting; no readable expression is deeper.
_DEEPEST = 30


@dataclass(frozen=True)
class _Value:
    amount: Fraction
    dimension: _Dimension


def quantity_of(text: str) -> Quantity | None:
    """A value of a matrix as a quantity (of kind `number` if it has no unit); None if it is not a
    quantity.
    """
    if _NUMBER.fullmatch(text.removeprefix("-")):
        return Quantity("number", Fraction(text), text)
    try:
        return parse(text)
    except QuantityError:
        return None


def suffix(values: dict[str, str]) -> str:
    """The suffix of a row's label: the values of the matrix."""
    return f" ({', '.join(f'{name} {value}' for name, value in values.items())})"


def evaluate(expression: str, values: Mapping[str, str]) -> str:
    """The value of an expression in words (`14 ms`), given the values of the keys of the matrix as written.
    Raises `QuantityError` with a clause that fits after the place and a colon.
    """
    return _Reader(expression, values).result()


class _Reader:
    """A recursive descent over the tokens of one expression."""

    def __init__(self, expression: str, values: Mapping[str, str]) -> None:
        self.values = values
        self.tokens = _tokens(expression, list(values))
        self.at = 0
        self.depth = 0

    def result(self) -> str:
        value = self._sum()
        if self.at < len(self.tokens):
            raise QuantityError(f'"{self._next()}" is not expected there')
        kind = _BY_DIMENSION.get(value.dimension)
        if kind is None:
            raise QuantityError("gives neither a rate, a time, an amount of data nor a number")
        amount = value.amount / _KINDS[kind][1]
        whole = int(amount) if amount.denominator == 1 else float(amount)
        return f"{whole:.12g} bdp" if kind == "bdp" else show(kind, whole)

    def _next(self) -> str:
        token = self.tokens[self.at] if self.at < len(self.tokens) else ""
        self.at += 1
        return token

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _sum(self) -> _Value:
        value = self._product()
        while self._peek() in ("+", "-"):
            sign = 1 if self._next() == "+" else -1
            other = self._product()
            if other.dimension != value.dimension:
                raise QuantityError("adds values of different kinds, such as a rate and a time")
            value = _Value(value.amount + sign * other.amount, value.dimension)
        return value

    def _product(self) -> _Value:
        value = self._factor()
        while self._peek() in ("x", "/"):
            divides = self._next() == "/"
            other = self._factor()
            if divides and other.amount == 0:
                raise QuantityError("divides by zero")
            factor, sign = (1 / other.amount, -1) if divides else (other.amount, 1)
            a, b, c, d = (
                number + sign * two for number, two in zip(value.dimension, other.dimension, strict=True)
            )
            value = _Value(value.amount * factor, (a, b, c, d))
        return value

    def _factor(self) -> _Value:
        token = self._next()
        if token == "":
            raise QuantityError("ends where a value is missing")
        if token == "(":
            self.depth += 1
            if self.depth > _DEEPEST:
                raise QuantityError("has too many parentheses in each other")
            value = self._sum()
            if self._next() != ")":
                raise QuantityError("has a parenthesis that is not closed")
            self.depth -= 1
            return value
        if token in _OPERATORS.values():
            raise QuantityError(f'has "{token}" where a value is missing')
        text = self.values.get(token, token)
        quantity = quantity_of(text)
        if quantity is None:
            raise QuantityError(f'{token} is "{shorten(text)}", which is not a quantity')
        if quantity.kind == "ratio":
            return _Value(quantity.value, _KINDS["number"][0])
        dimension, unit = _KINDS[quantity.kind]
        return _Value(quantity.value * unit, dimension)


def _tokens(expression: str, names: list[str]) -> list[str]:
    """Names, quantities and operators in order; operators in a normalised spelling."""
    by_length = sorted(names, key=len, reverse=True)
    tokens: list[str] = []
    rest = expression.strip()
    while rest:
        word = next((name for name in by_length if rest.startswith(name) and _ends(rest, len(name))), None)
        if word is not None:
            tokens.append(word)
            rest = rest[len(word) :].lstrip()
            continue
        if number := _NUMBER.match(rest):
            after = rest[number.end() :].lstrip()
            unit = _UNIT.match(after)
            has_unit = unit is not None and _ends(after, unit.end())
            tokens.append(f"{number[0]} {unit[0]}" if unit is not None and has_unit else number[0])
            rest = after[unit.end() :].lstrip() if unit is not None and has_unit else after
            continue
        if rest[0] in _OPERATORS and (rest[0] != "x" or _ends(rest, 1)):
            tokens.append(_OPERATORS[rest[0]])
            rest = rest[1:].lstrip()
            continue
        wrong = re.match(r"\w+|.", rest, re.DOTALL)
        name = wrong[0] if wrong else rest
        hint = did_you_mean(name, names) or f"; the matrix has {any_of(names)}".replace(" or ", " and ")
        raise QuantityError(
            f'"{shorten(name)}" is neither a number with a unit nor a key of the matrix{hint}'
        )
    return tokens


def _ends(text: str, at: int) -> bool:
    """True if a word ends there."""
    return at >= len(text) or not (text[at].isalnum() or text[at] == "_")
