"""How far the schemes of a campaign are verified: a mark beside each, and what the marks mean."""

from __future__ import annotations

from typing import Any

from narrows.report.data import Campaign
from narrows.schemes.status import legend, statuses_of, weakest


def names_of(campaign: Campaign, label: str) -> list[str]:
    """The schemes under test in a row of the results, without their parameters."""
    found = dict.fromkeys(flow.scheme for run in campaign.of_scheme(label) for flow in run.tested)
    return list(found) or [label.split(" ", maxsplit=1)[0]]


def every_name(campaign: Campaign) -> list[str]:
    """The schemes of all rows."""
    return list(dict.fromkeys(name for label in campaign.schemes for name in names_of(campaign, label)))


def mark(campaign: Campaign, label: str) -> dict[str, str]:
    """What a cell with the label of a row carries."""
    status = weakest(names_of(campaign, label))
    return {"status": status.word, "status_mark": status.mark} if status else {}


def explained(campaign: Campaign) -> dict[str, Any]:
    """The legend, and the reasons of those that are not verified."""
    names = every_name(campaign)
    alike: dict[str, list[str]] = {}
    for name, status in statuses_of(names).items():
        if status.reason:
            alike.setdefault(status.reason, []).append(name)
    reasons = [f"{', '.join(same)}: {reason}" for reason, same in alike.items()]
    marks = [{"mark": sign, "word": word, "meaning": meaning} for sign, word, meaning in legend(names)]
    return {"legend": marks, "reasons": reasons}
