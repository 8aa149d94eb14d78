"""Verification marks beside each scheme of a campaign, and their legend."""

from __future__ import annotations

from narrows.documents.resolved import MOST_LISTED, TRAINED_BY_NARROWS, Flow
from narrows.report.content import StatusMark, Verification
from narrows.report.data import Campaign
from narrows.schemes.status import DEFAULTS_ONLY, Status, legend, statuses_of, weakest


def flows_of(campaign: Campaign, label: str) -> list[Flow]:
    """The flows under test in a row of the results, in the form of cells."""
    # All runs of a row have the same flows.
    every = (run.settings.flows for run in campaign.of_scheme(label))
    tested = [flow for flow in next(filter(None, every), []) if not flow.background]
    return tested or [Flow.from_scheme(label.split(" ", maxsplit=1)[0])]


def status_of(campaign: Campaign, label: str) -> Status | None:
    """The weakest status of the schemes in a row of the results."""
    return weakest(statuses_of(flows_of(campaign, label)).values())


def explain(campaign: Campaign) -> Verification:
    """The legend, and the reasons of unverified schemes."""
    every: list[Status] = []
    alike: dict[str, dict[str, None]] = {}
    for label in campaign.schemes:
        for name, status in statuses_of(flows_of(campaign, label)).items():
            every.append(status)
            if status.reason:
                # Settings belong to a row; all other reasons concern the scheme in all of its rows.
                who = label if status.reason == DEFAULTS_ONLY else name
                alike.setdefault(status.reason, {})[who] = None
    reasons = [f"{', '.join(same)}: {reason}" for reason, same in alike.items()]
    marks = [StatusMark(mark=sign, word=word, meaning=meaning) for sign, word, meaning in legend(every)]
    return Verification(legend=marks, reasons=reasons, own_models=_own_models(campaign))


def _own_models(campaign: Campaign) -> str:
    labels = [
        label for label in campaign.schemes if any(flow.has_own_model for flow in flows_of(campaign, label))
    ]
    rows = ", ".join(labels) if len(labels) <= MOST_LISTED else f"{len(labels)} rows"
    return f"{rows}: {TRAINED_BY_NARROWS}." if labels else ""
