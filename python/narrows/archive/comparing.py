"""The differences between two archives.

Simulated runs of one scenario with one seed repeat to the last bit, so that any difference is a change of
Narrows: runs are compared exactly, pair by pair. Medians only describe the differences.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from narrows.documents.archive import Archive, ArchiveComparison, ArchivedCampaign, ArchivedRun, Change
from narrows.documents.data import Number

_SIMULATED = "simulate"
Pair = tuple[ArchivedRun, ArchivedRun]


def compare(before: Archive, after: Archive) -> ArchiveComparison:
    """Everything that differs; the largest relative changes of each campaign come first."""
    common = [name for name in before.campaigns if name in after.campaigns]
    only_before = [name for name in before.campaigns if name not in after.campaigns]
    only_after = [name for name in after.campaigns if name not in before.campaigns]
    other_scenario, by_chance, compared = [], [], []
    for name in common:
        first, second = before.campaigns[name], after.campaigns[name]
        if first.plane != _SIMULATED or second.plane != _SIMULATED:
            by_chance.append(name)
        elif first.hash != second.hash:
            other_scenario.append(name)
        else:
            compared.append(name)
    known = [metric.name for metric in before.metrics]
    later = [metric.name for metric in after.metrics]
    shared = [name for name in known if name in later]
    rows: set[tuple[str, str]] = set()
    changes: list[Change] = []
    for name in compared:
        first, second = before.campaigns[name], after.campaigns[name]
        only_before += _missing(name, first, second)
        only_after += _missing(name, second, first)
        pairs = _pairs(first, second)
        rows.update((name, row) for row in pairs)
        here = [change for row, runs in pairs.items() for change in _changes(name, row, runs, shared)]
        changes += sorted(here, key=_size, reverse=True)
    return ArchiveComparison(
        before=version_of(before),
        after=version_of(after),
        campaigns=len(compared),
        rows=len(rows),
        rows_changed=len({(change.campaign, change.row) for change in changes}),
        changes=changes,
        only_before=only_before,
        only_after=only_after,
        other_scenario=other_scenario,
        by_chance=by_chance,
        metrics_only_before=[name for name in known if name not in later],
        metrics_only_after=[name for name in later if name not in known],
    )


def version_of(archive: Archive) -> str:
    """`narrows 0.1.0 (e9bba83e)`."""
    return f"narrows {archive.narrows or '?'}" + (f" ({archive.git})" if archive.git else "")


def _key(run: ArchivedRun) -> tuple[str, int]:
    return run.row, run.run


def _missing(name: str, one_side: ArchivedCampaign, other: ArchivedCampaign) -> list[str]:
    """The runs of one side that the other lacks, such as `pantheon-nepal: cubic run 1`."""
    there = {_key(run) for run in other.runs}
    return [f"{name}: {run.row} run {run.run}" for run in one_side.runs if _key(run) not in there]


def _pairs(before: ArchivedCampaign, after: ArchivedCampaign) -> dict[str, list[Pair]]:
    later = {_key(run): run for run in after.runs}
    result: dict[str, list[Pair]] = {}
    for run in before.runs:
        if _key(run) in later:
            result.setdefault(run.row, []).append((run, later[_key(run)]))
    return result


def _changes(campaign: str, row: str, pairs: list[Pair], metrics: Iterable[str]) -> Iterable[Change]:
    for metric in metrics:
        values = [(first.metrics.get(metric), second.metrics.get(metric)) for first, second in pairs]
        changed = sum(first != second for first, second in values)
        if changed:
            yield Change(
                campaign=campaign,
                row=row,
                metric=metric,
                runs=len(values),
                changed=changed,
                before=_median(first for first, _ in values),
                after=_median(second for _, second in values),
            )


def _median(values: Iterable[Number | None]) -> Number | None:
    present = [value for value in values if value is not None]
    return statistics.median(present) if present else None


def _size(change: Change) -> float:
    """The relative change; infinite where a value appeared or vanished, or was zero."""
    if change.before is None or change.after is None:
        return float("inf") if change.before != change.after else 0.0
    if change.before == 0:
        return float("inf") if change.after else 0.0
    return abs(change.after / change.before - 1)
