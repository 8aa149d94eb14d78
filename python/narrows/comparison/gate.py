"""Limits on differences, as `--fail-on` takes them: `throughput worse by 5 %`.

A limit is broken where the runs show a difference that way and its 95 % interval reaches the amount. It need
not be the estimate that does: of campaigns in which a scheme lost exactly 5 %, half have an estimate below
that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from narrows.analysis.metrics import find, head_of
from narrows.comparison.findings import BETTER, DIFFERENT, MISSING, NOT_SHOWN, SAME, TOO_FEW, WORSE, Finding
from narrows.errors import DataError, UsageError
from narrows.scenario.expect import kind_of
from narrows.scenario.quantity import QuantityError, convert, parse
from narrows.text import shorten

Json = dict[str, Any]

EXAMPLE = '"throughput worse by 5 %"'
_FORM = re.compile(
    r"\s*(?:(?P<scheme>.+?)\s*:\s*(?=\S.*\s(?:worse|better|different)))?(?P<metric>.+?)\s+(?:is\s+)?"
    r"(?P<way>worse|better|different)(?:\s+(?:by|than)\s+(?P<amount>\S.*?))?\s*"
)
_POINTS = re.compile(r"(?P<number>[0-9]*\.?[0-9]+)\s*(?:pp|(?:percentage\s+)?points?)")
_NUMBER = re.compile(r"[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?")
#: An interval reaches an amount up to rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Limit:
    """A difference that is not accepted."""

    text: str
    metric: Mapping[str, Any]
    way: str
    #: The least amount: in the metric's unit, or as a share of the base; 0 for any difference that is shown.
    amount: float
    share: bool
    #: The scheme that it is about; None for all.
    scheme: str | None


def read(text: str, metrics: Sequence[Mapping[str, Any]]) -> Limit:
    """Reads a limit; raises `UsageError` with what is wrong."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(
            f'--fail-on: "{shorten(text)}" is no limit; write a metric, worse, better or different, and an'
            " amount, such"
            f" as {EXAMPLE}"
        )
    metric = find(metrics, match["metric"])
    if match["way"] != DIFFERENT and metric.get("better") not in ("higher", "lower"):
        raise UsageError(f"--fail-on: of {head_of(metric)} neither more nor less is better; write different")
    amount, share = _amount(match["amount"], metric)
    return Limit(text.strip(), metric, match["way"], amount, share, match["scheme"])


def _amount(text: str | None, metric: Mapping[str, Any]) -> tuple[float, bool]:
    """An amount, and whether it is a share of the base."""
    if text is None:
        return 0.0, True
    if points := _POINTS.fullmatch(text):
        if kind_of(dict(metric)) != "ratio":
            raise UsageError(
                f"--fail-on: {head_of(metric)} is not in per cent, so it has no points; write 5 %"
            )
        return float(points["number"]) / 100, False
    kind = kind_of(dict(metric))
    if kind == "number" and _NUMBER.fullmatch(text):
        return float(text), False
    try:
        quantity = parse(text, kind if kind in ("rate", "span", "bytes", "packets") else "ratio")
        if quantity.kind == "ratio":
            return float(quantity.value), True
        return float(convert(quantity, kind, None)), False
    except QuantityError as error:
        raise UsageError(f"--fail-on: {error}; or write a share of the base such as 5 %") from None


def hold(limits: Sequence[Limit], findings: Sequence[Finding]) -> list[Json]:
    """What became of each limit: `broken`, with one entry in `by` per finding that broke it.

    A scheme whose runs all failed on the other side breaks every limit on what is worse, as it must not gain
    by failing. Raises `DataError` if no scheme has the runs to ever break a limit, since a gate that can't
    close is none.
    """
    return [_hold(limit, findings) for limit in limits]


def _hold(limit: Limit, findings: Sequence[Finding]) -> Json:
    about = [
        one
        for one in findings
        if one.metric["name"] == limit.metric["name"]
        and limit.scheme in (None, one.pairing.title, one.pairing.other.scheme, one.pairing.base.scheme)
    ]
    if not about:
        known = list(dict.fromkeys(one.pairing.title for one in findings))
        raise UsageError(
            f'--fail-on "{limit.text}": nothing that is compared is called {limit.scheme}; there is'
            f" {', '.join(known[:6])}"
        )
    decided = [one for one in about if one.outcome not in (TOO_FEW, MISSING) or _is_lost(one, limit)]
    if not decided:
        why = next(one.why for one in about if one.why)
        raise DataError(f'--fail-on "{limit.text}" can\'t be decided: {why}')
    by = [
        {
            "scheme": one.pairing.title,
            "sides": [one.pairing.base.side.name, one.pairing.other.side.name],
            "why": one.why if _is_lost(one, limit) else None,
        }
        for one in about
        if _breaks(one, limit)
    ]
    undecided = [one.pairing.title for one in about if one not in decided]
    return {
        "limit": limit.text,
        "metric": limit.metric["name"],
        "broken": bool(by),
        "by": by,
        "undecided": list(dict.fromkeys(undecided)),
    }


def _is_lost(finding: Finding, limit: Limit) -> bool:
    """True if a scheme had results, and has none any more."""
    pairing = finding.pairing
    return (
        limit.way == WORSE
        and bool(pairing.base.runs)
        and not pairing.other.runs
        and pairing.other.started > 0
    )


def _breaks(finding: Finding, limit: Limit) -> bool:
    if _is_lost(finding, limit):
        return True
    wanted = (WORSE, BETTER, DIFFERENT) if limit.way == DIFFERENT else (limit.way,)
    if finding.outcome not in wanted or finding.outcome in (NOT_SHOWN, SAME):
        return False
    estimate = finding.relative if limit.share else finding.absolute
    if estimate is None:
        # A share of nothing: any difference is more.
        return True
    reach = max(abs(estimate["low"]), abs(estimate["high"]), abs(estimate["estimate"]))
    return bool(reach >= limit.amount * (1 - _ROUNDING))
