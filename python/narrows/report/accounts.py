"""The account of a figure: its number of runs, its statistic, and the flaws of runs.

It is the source of captions, the metadata of files and the JSON of `narrows plot`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from narrows.report.data import Campaign, Run
from narrows.sweep.store import SweepFolder, is_sweep
from narrows.text import plural

#: A caption names up to this many reasons, and this many runs for each; the others are counted.
_REASONS, _NAMED = 3, 3
DEGRADED, INVALID, MISSING = "degraded", "invalid", "missing"
_SAYS = {DEGRADED: "judged degraded", INVALID: "invalid and not counted", MISSING: "missing"}


@dataclass(frozen=True, slots=True)
class Flawed:
    """A run that is not `ok`: its cell (or scheme, if it was skipped), the flaw and the reason."""

    cell: str
    flaw: str
    reasons: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """In the form of `narrows plot --json`."""
        return {"run": self.cell, "reasons": list(self.reasons)}


@dataclass(frozen=True, slots=True)
class Account:
    """The number of valid runs behind a figure, the statistic that combines them, and the runs that are not
    `ok`.
    """

    runs: int
    statistic: str
    flawed: tuple[Flawed, ...] = ()

    def sentences(self) -> str:
        """The account in sentences, for a caption."""
        text = f"Of {plural(self.runs, 'valid run')}: {self.statistic}."
        for flaw in _SAYS:
            own = [item for item in self.flawed if item.flaw == flaw]
            if own:
                text += f" {_sentence(own, flaw)}"
        return text

    def to_json(self) -> dict[str, object]:
        """In the form of `narrows plot --json`."""
        return {
            "runs_shown": self.runs,
            "statistic": self.statistic,
            **{flaw: [item.to_json() for item in self.flawed if item.flaw == flaw] for flaw in _SAYS},
        }


def of_campaign(data: Campaign, statistic: str) -> Account:
    """The account of a figure of all valid runs."""
    if is_sweep(data.folder) and not data.runs:
        return _of_sweep(data, statistic)
    valid = sum(run.valid for run in data.runs)
    skipped = [Flawed(row.scheme, MISSING, (row.reason or "it was skipped",)) for row in data.skipped]
    return Account(valid, statistic, (*list_flaws(data.runs), *skipped))


def of_runs(runs: Sequence[Run], statistic: str) -> Account:
    """The account of a figure of single runs."""
    return Account(sum(run.valid for run in runs), statistic, tuple(list_flaws(runs)))


def list_flaws(runs: Iterable[Run]) -> list[Flawed]:
    """The runs that are not `ok`."""
    result = []
    for run in runs:
        flaw = _flaw(run)
        if flaw is None:
            continue
        own = [reason.text for reason in run.reasons if reason.severity in (flaw, "failed")]
        reasons = own or [reason.text for reason in run.reasons]
        result.append(Flawed(run.cell, flaw, tuple(reasons or [f"the run is {run.outcome}"])))
    return result


def _flaw(run: Run) -> str | None:
    if run.state != "finished":
        return MISSING
    if run.valid:
        return DEGRADED if run.verdict == "degraded" else None
    return INVALID


def _of_sweep(data: Campaign, statistic: str) -> Account:
    import pyarrow.compute as pc

    table = SweepFolder.read(data.folder).table(["cell", "flow", "verdict", "reasons"])
    whole = table.filter(pc.is_null(table["flow"])).to_pydict()
    result, valid = [], 0
    for cell, verdict, reasons in zip(whole["cell"], whole["verdict"], whole["reasons"], strict=True):
        if verdict != INVALID:
            valid += 1
        if verdict in (DEGRADED, INVALID):
            result.append(Flawed(str(cell), verdict, (str(reasons or "no reason was recorded"),)))
    return Account(valid, statistic, tuple(result))


def _sentence(flaweds: Sequence[Flawed], flaw: str) -> str:
    """`2 runs are judged degraded: the emulator was late (cubic-r1, cubic-r2).` Reasons that differ only in
    their numbers are stated once.
    """
    groups: dict[str, tuple[str, list[str]]] = {}
    for item in flaweds:
        for reason in item.reasons[:1]:
            groups.setdefault(re.sub(r"[0-9][0-9.,]*", "#", reason), (reason, []))[1].append(item.cell)
    parts = [f"{text.rstrip('. ')} ({_some(cells)})" for text, cells in list(groups.values())[:_REASONS]]
    if len(groups) > _REASONS:
        parts.append(f"{plural(len(groups) - _REASONS, 'more reason')}")
    verb = "is" if len(flaweds) == 1 else "are"
    return f"{plural(len(flaweds), 'run')} {verb} {_SAYS[flaw]}: {'; '.join(parts)}."


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
