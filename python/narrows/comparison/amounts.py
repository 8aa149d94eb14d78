"""Amounts by which a metric may differ, in the notation of options: `5 %` of the base, `2 ms`, `0.5
points`.
"""

from __future__ import annotations

import re

from narrows.analysis.metrics import head_of
from narrows.documents.results import Metric
from narrows.errors import UsageError
from narrows.scenario.expect import kind_of
from narrows.scenario.quantity import QuantityError, convert, parse

_POINTS = re.compile(r"(?P<number>[0-9]*\.?[0-9]+)\s*(?:pp|(?:percentage\s+)?points?)")
_NUMBER = re.compile(r"[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?")


def read_amount(text: str, metric: Metric, option: str) -> tuple[float, bool]:
    """An amount, and whether it is a share of the base; otherwise it is in the unit of the metric. Raises
    `UsageError`, naming the option, for an amount that does not fit the metric.
    """
    kind = kind_of(metric)
    if points := _POINTS.fullmatch(text):
        if kind != "ratio":
            raise UsageError(
                f"{option}: {head_of(metric)} is not in per cent, so it has no points; write 5 %"
            )
        return float(points["number"]) / 100, False
    if kind == "number" and _NUMBER.fullmatch(text):
        return float(text), False
    try:
        quantity = parse(text, kind if kind in ("rate", "span", "bytes", "packets") else "ratio")
        if quantity.kind == "ratio":
            return float(quantity.value), True
        return float(convert(quantity, kind, None)), False
    except QuantityError as error:
        raise UsageError(f"{option}: {error}; or write a share of the base such as 5 %") from None
