"""Limits on differences, in the notation of `--fail-on`: `throughput worse by 5 %`.

A limit is broken if the runs show a difference in that direction and its 95 % interval reaches the amount.
The estimate need not reach it: of campaigns in which a scheme lost exactly 5 %, half have an estimate below
that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from narrows.analysis.metrics import find, head_of
from narrows.comparison.amounts import read_amount
from narrows.comparison.equivalence import BEYOND, WITHIN, Equivalence
from narrows.comparison.findings import BETTER, DIFFERENT, MISSING, NOT_SHOWN, SAME, TOO_FEW, WORSE, Finding
from narrows.documents.comparison import Breach, LimitOutcome
from narrows.documents.results import Metric
from narrows.errors import DataError, UsageError
from narrows.text import shorten

EXAMPLE = '"throughput worse by 5 %"'
_FORM = re.compile(
    r"\s*(?:(?P<scheme>.+?)\s*:\s*(?=\S.*\s(?:worse|better|different|equivalent)))?(?P<metric>.+?)\s+"
    r"(?:is\s+)?(?P<way>worse|better|different|not\s+equivalent)(?:\s+(?:by|than)\s+(?P<amount>\S.*?))?\s*"
)
#: A limit that is broken unless equivalence within the margin is shown.
NOT_EQUIVALENT = "not equivalent"
#: An interval reaches an amount up to rounding errors.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Limit:
    """A difference that is not accepted."""

    text: str
    metric: Metric
    way: str
    #: The smallest amount: in the metric's unit, or as a share of the base; 0 for any difference that is
    #: shown.
    amount: float
    share: bool
    #: The scheme that it applies to; None for all.
    scheme: str | None


def read(text: str, metrics: Sequence[Metric]) -> Limit:
    """Reads a limit; raises `UsageError` with the mistake."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(
            f'--fail-on: "{shorten(text)}" is not a limit; write a metric, worse, better or different, and an'
            " amount, such"
            f" as {EXAMPLE}"
        )
    metric, way = find(metrics, match["metric"]), " ".join(match["way"].split())
    if way in (WORSE, BETTER) and metric.better not in ("higher", "lower"):
        raise UsageError(f"--fail-on: of {head_of(metric)} neither more nor less is better; write different")
    if way == NOT_EQUIVALENT and match["amount"]:
        raise UsageError('--fail-on: "not equivalent" takes the amount from --margin')
    amount, share = read_amount(match["amount"], metric, "--fail-on") if match["amount"] else (0.0, True)
    return Limit(text.strip(), metric, way, amount, share, match["scheme"])


def hold(limits: Sequence[Limit], findings: Sequence[Finding]) -> list[LimitOutcome]:
    """The outcome of each limit: `broken`, with one entry in `by` per finding that broke it.

    A scheme whose runs all failed on the other side breaks every limit with `worse`, because failing must not
    be an advantage. Raises `DataError` if no scheme has enough runs to ever break a limit, since such a gate
    could never close.
    """
    return [_hold(limit, findings) for limit in limits]


def _hold(limit: Limit, findings: Sequence[Finding]) -> LimitOutcome:
    about = [
        finding
        for finding in findings
        if finding.metric.name == limit.metric.name
        and limit.scheme
        in (None, finding.pairing.title, finding.pairing.other.scheme, finding.pairing.base.scheme)
    ]
    if not about:
        known = list(dict.fromkeys(finding.pairing.title for finding in findings))
        raise UsageError(
            f'--fail-on "{limit.text}": nothing that is compared is called {limit.scheme}; there is'
            f" {', '.join(known[:6])}"
        )
    if limit.way == NOT_EQUIVALENT and not any(finding.equivalence for finding in about):
        raise UsageError(
            f'--fail-on "{limit.text}": {head_of(limit.metric)} has no margin; name one with --margin "1 %"'
        )
    decided = [
        finding for finding in about if finding.outcome not in (TOO_FEW, MISSING) or _is_lost(finding, limit)
    ]
    if not decided:
        why = next(finding.why for finding in about if finding.why)
        raise DataError(f'--fail-on "{limit.text}" can\'t be decided: {why}')
    by = [
        Breach(
            scheme=finding.pairing.title,
            sides=(finding.pairing.base.side.name, finding.pairing.other.side.name),
            why=_why(finding, limit),
        )
        for finding in about
        if _breaks(finding, limit)
    ]
    undecided = [finding.pairing.title for finding in about if finding not in decided]
    return LimitOutcome(
        limit=limit.text,
        metric=limit.metric.name,
        broken=bool(by),
        by=by,
        undecided=list(dict.fromkeys(undecided)),
    )


def _is_lost(finding: Finding, limit: Limit) -> bool:
    """True if a scheme had results in the base and has none on the other side."""
    pairing = finding.pairing
    return (
        limit.way in (WORSE, NOT_EQUIVALENT)
        and bool(pairing.base.runs)
        and not pairing.other.runs
        and pairing.other.started > 0
    )


def _is_within(equivalence: Equivalence | None) -> bool:
    return equivalence is not None and equivalence.outcome == WITHIN


def _why(finding: Finding, limit: Limit) -> str | None:
    """The finding that broke the limit, if the limit alone does not identify it."""
    if _is_lost(finding, limit):
        return finding.why
    if limit.way != NOT_EQUIVALENT or finding.equivalence is None:
        return None
    if finding.equivalence.outcome == BEYOND:
        return f"{BEYOND} of {finding.equivalence.margin.text}"
    return finding.equivalence.why or "not shown to be within the margin"


def _breaks(finding: Finding, limit: Limit) -> bool:
    if _is_lost(finding, limit):
        return True
    if limit.way == NOT_EQUIVALENT:
        return finding.outcome not in (TOO_FEW, MISSING) and not _is_within(finding.equivalence)
    wanted = (WORSE, BETTER, DIFFERENT) if limit.way == DIFFERENT else (limit.way,)
    if finding.outcome not in wanted or finding.outcome in (NOT_SHOWN, SAME):
        return False
    estimate = finding.relative if limit.share else finding.absolute
    if estimate is None:
        # Relative to zero, any difference exceeds the share.
        return True
    reach = max(abs(estimate.low), abs(estimate.high), abs(estimate.estimate))
    return bool(reach >= limit.amount * (1 - _ROUNDING))
