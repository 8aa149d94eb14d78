"""The sides of a comparison: campaigns, their samples of runs of each scheme, and the pairing of samples."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from narrows.analysis import verdicts
from narrows.campaign import integrity, results
from narrows.campaign.json_files import as_run, read_json
from narrows.campaign.schema import scenario_dict
from narrows.campaign.store import CampaignFolder
from narrows.documents.campaign import INVALID, PENDING, CellEntry, Header
from narrows.documents.resolved import Resolved, SchemeRow
from narrows.documents.results import Results
from narrows.errors import DataError, UsageError
from narrows.scenario.derived import suffix
from narrows.text import did_you_mean, shorten

Json = dict[str, Any]
#: Planes with lateness, and planes with clocks.
_LIVE = ("emulate", "hosts")
#: The runs that two samples share.
SAME_SEEDS, OTHER_SEEDS, NO_SEEDS = "same", "different", "none"


@dataclass(frozen=True)
class Run:
    """One valid run of a scheme."""

    number: int
    seed: int | None
    cell: str
    verdict: str
    metrics: Mapping[str, float | None]


@dataclass
class Side:
    """A campaign and its letter."""

    name: str
    folder: CampaignFolder
    results: Results
    #: The only cell that counts, if it was named in place of its campaign.
    cell: str | None = None

    @property
    def header(self) -> Header:
        """The members of campaign.json that are not about single cells."""
        return self.folder.header

    @property
    def path(self) -> Path:
        """The folder that was named."""
        return self.folder.path if self.cell is None else self.folder.cell_dir(self.cell)

    @cached_property
    def cells(self) -> list[CellEntry]:
        """The entries of the cells that count."""
        return [cell for cell in self.folder.cells if self.cell in (None, cell.id)]

    @property
    def where(self) -> str:
        """The plane."""
        return self.header.where or "unknown"

    @cached_property
    def settings(self) -> Json:
        """The members of the resolved scenario that campaign.json has."""
        return scenario_dict(self.header)

    @cached_property
    def resolved(self) -> Resolved:
        """The resolved scenario."""
        return self.folder.resolved

    @cached_property
    def rows(self) -> dict[str, SchemeRow]:
        """The rows of the resolved scenario's schemes, by label."""
        return {row.label: row for row in self.resolved.schemes}

    def values_of(self, scheme: str) -> dict[str, str]:
        """The matrix values of a row, by their names; empty without a matrix."""
        row = self.rows.get(scheme)
        return row.values if row else {}

    def name_of(self, scheme: str) -> str:
        """The scheme of a row, without the values of the matrix."""
        values = self.values_of(scheme)
        return scheme.removesuffix(suffix(values)) if values else scheme

    def settings_of(self, scheme: str) -> Resolved:
        """The resolved scenario for one scheme: a matrix gives each row separate values."""
        return self.resolved.with_row(self.rows.get(scheme))

    @cached_property
    def schemes(self) -> list[str]:
        """Schemes with a run in any state, in the order of the scenario."""
        there = dict.fromkeys(cell.scheme for cell in self.cells)
        return [label for label in self.rows if label in there] + [
            text for text in there if text not in self.rows
        ]

    def record_of(self, cell: str) -> Json:
        """The run.json of a finished cell."""
        place = self.folder.cell_dir(cell)
        record = read_json(place / "run.json", "narrows/run/1")
        if problem := integrity.difference(place, self.folder.entry(cell), as_run(place, record)):
            raise DataError(problem)
        return record


@dataclass
class Sample:
    """The runs of one scheme in one campaign."""

    side: Side
    scheme: str
    runs: dict[int, Run]
    started: int
    finished: int
    degraded: int
    skipped: str | None = None

    def values(self, metric: str) -> list[float]:
        """The values of the valid runs that have one, by run number."""
        amounts = (run.metrics.get(metric) for _, run in sorted(self.runs.items()))
        return [float(value) for value in amounts if value is not None]

    @cached_property
    def is_repeated(self) -> bool:
        """True if all runs have the same numbers in every metric: nothing in them is random."""
        entries = [run.metrics for run in self.runs.values()]
        return len(entries) > 1 and all(entry == entries[0] for entry in entries)

    @cached_property
    def lateness_ns(self) -> float:
        """The time (ns) by which stamps of these runs may be off."""
        if self.side.where not in _LIVE:
            return 0.0
        return verdicts.lateness_ns(self.side.record_of(run.cell) for run in self.runs.values())


@dataclass(frozen=True)
class Pairing:
    """Two samples to compare; the first is the base."""

    base: Sample
    other: Sample

    @property
    def title(self) -> str:
        """The name of the row: the scheme, or both if their names differ."""
        if self.base.side is self.other.side:
            return self.other.scheme
        if self.base.scheme == self.other.scheme:
            return self.base.scheme
        return f"{self.other.scheme} for {self.base.scheme}"

    @property
    def group(self) -> tuple[str, str, bool]:
        """The runs that may be permuted together: those of the same two campaigns."""
        return self.base.side.name, self.other.side.name, self.is_paired

    @cached_property
    def common(self) -> list[int]:
        """Numbers of the runs that share their randomness on both sides."""
        mine, others = self.base.runs, self.other.runs
        return [
            number
            for number in sorted(mine.keys() & others.keys())
            if mine[number].seed is not None and mine[number].seed == others[number].seed
        ]

    @property
    def seeds(self) -> str:
        """Whether the runs of both sides have the `same` seeds, by which they are paired, `different` ones,
        or `none`, like runs of other tools.
        """
        if self.is_paired:
            return SAME_SEEDS
        every = [run.seed for sample in (self.base, self.other) for run in sample.runs.values()]
        return NO_SEEDS if any(seed is None for seed in every) else OTHER_SEEDS

    @cached_property
    def is_paired(self) -> bool:
        """True if most runs have a run of the same seed on the other side."""
        fewest = min(len(self.base.runs), len(self.other.runs))
        return 2 * len(self.common) >= fewest > 0

    def values(self, metric: str) -> tuple[dict[int, float], dict[int, float]]:
        """The values of both sides by run; for paired runs only those that both sides have."""
        entries: list[dict[int, float]] = []
        for sample in (self.base, self.other):
            numbers: Sequence[int] = self.common if self.is_paired else sorted(sample.runs)
            every = {number: sample.runs[number].metrics.get(metric) for number in numbers}
            entries.append({number: float(value) for number, value in every.items() if value is not None})
        if self.is_paired:
            both = entries[0].keys() & entries[1].keys()
            entries = [{number: values[number] for number in sorted(both)} for values in entries]
        return entries[0], entries[1]


def open_side(path: Path, number: int) -> Side:
    """Opens a campaign, or one of its cells, as the `number`-th side (from 0); for a campaign that is still
    being written, only its finished cells.
    """
    if not (path / "run.json").exists():
        folder = CampaignFolder.read(path)
        return Side(letter(number), folder, results.read(path, folder))
    cell = path.resolve()
    folder = CampaignFolder.read(cell.parent.parent)
    if cell.name not in [entry.id for entry in folder.cells]:
        raise DataError(f"{path}: is not a cell of the campaign {folder.path}")
    result = results.read(folder.path, folder)
    rows = [row for row in result.rows if row.cell == cell.name]
    return Side(letter(number), folder, replace(result, rows=rows), cell.name)


def letter(number: int) -> str:
    """`A`, `B`, ... `Z`, `A1`, ..."""
    turn, place = divmod(number, len(string.ascii_uppercase))
    return string.ascii_uppercase[place] + (str(turn) if turn else "")


def sample(side: Side, scheme: str, flow: str) -> Sample:
    """The runs of a scheme, with the metrics of one flow (a number, its label, or `all`)."""
    cells = {cell.id: cell for cell in side.cells if cell.scheme == scheme}
    runs: dict[int, Run] = {}
    for row in side.results.rows:
        if row.scheme != scheme or flow not in (str(row.flow), row.label):
            continue
        if row.verdict != INVALID:
            seed = cells[row.cell].seed if row.cell in cells else None
            runs[row.run] = Run(row.run, seed, row.cell, str(row.verdict), row.metrics)
    reasons = {row.scheme: row.reason for row in side.folder.header.skipped}
    return Sample(
        side,
        scheme,
        runs,
        started=sum(cell.state != PENDING for cell in cells.values()),
        finished=sum(cell.is_finished for cell in cells.values()),
        degraded=sum(run.verdict == "degraded" for run in runs.values()),
        skipped=reasons.get(scheme),
    )


def pairings(
    sides: Sequence[Side],
    *,
    schemes: Sequence[str] = (),
    pairs: Sequence[tuple[str, str] | str] = (),
    against: str | None = None,
    flow: str = "all",
    across: bool = False,
) -> list[Pairing]:
    """The pairings: with several campaigns, each against the first, scheme by scheme; with one campaign, all
    pairs of its rows that met the same conditions, or all rows with `against`, which names a row, or a scheme
    in each combination of a matrix. A row together with `across` is also compared with rows of other
    conditions. `pairs` names schemes whose names differ between the sides; a text `ONE=OTHER` is split where
    both parts are schemes.

    Raises `DataError` if nothing can be compared, `UsageError` for a scheme that does not exist.
    """
    for side in sides:
        _check_flow(side, flow)
    base = sides[0]
    if pairs:
        return [
            Pairing(
                sample(base, _find_named(base, first), flow), sample(side, _find_named(side, second), flow)
            )
            for side in (sides[1:] or sides)
            for first, second in (_split_pair(base, side, pair) for pair in pairs)
        ]
    if len(sides) == 1:
        return _within(base, schemes, against, flow, across)
    result = []
    for side in sides[1:]:
        # A scheme that was skipped on one side, or failed there, is reported and not passed over.
        known = [*side.schemes, *(row.scheme for row in side.folder.header.skipped)]
        common = [scheme for scheme in base.schemes if scheme in known]
        if schemes:
            common = [_find_named(base, scheme) for scheme in schemes]
        elif base.cell and side.cell:
            # The user named two runs, whatever their schemes are called.
            one, other = base.schemes[0], side.schemes[0]
            result.append(Pairing(sample(base, one, flow), sample(side, other, flow)))
            continue
        if not common:
            raise DataError(
                f"{base.path} ({_some(base.schemes)}) and {side.path}"
                f" ({_some(side.schemes)}) have no"
                " scheme in common; name two that belong together with --pair ONE=OTHER"
            )
        result += [Pairing(sample(base, text, flow), sample(side, text, flow)) for text in common]
    return result


def _within(
    side: Side, schemes: Sequence[str], against: str | None, flow: str, across: bool
) -> list[Pairing]:
    chosen = [_find_named(side, scheme) for scheme in schemes] or side.schemes
    if against is not None:
        if against in side.schemes and against not in chosen:
            chosen = [against, *chosen]
        if not any(_base_of(side, [scheme], against) for scheme in chosen):
            _find_named(side, against)
    everything = against in side.schemes and across
    within = []
    for members in [chosen] if everything else strata(side, chosen).values():
        base = _base_of(side, members, against)
        if against is not None and base is None:
            # Rows of other conditions have no base: their differences were not requested.
            continue
        ordered = members if base is None else [base, *(scheme for scheme in members if scheme != base)]
        samples = [sample(side, scheme, flow) for scheme in ordered]
        bases = samples[:1] if base is not None else samples
        within += [Pairing(item, two) for place, item in enumerate(bases) for two in samples[place + 1 :]]
    if not within:
        raise DataError(
            f"{side.path}: has no two schemes that met the same conditions ({_some(chosen)}), so"
            " there is nothing"
            " to compare; name another campaign too"
        )
    return within


def strata(side: Side, schemes: Sequence[str]) -> dict[str, list[str]]:
    """The schemes that met the same conditions, by their matrix values (empty without a matrix)."""
    result: dict[str, list[str]] = {}
    for scheme in schemes:
        result.setdefault(stratum(side, scheme), []).append(scheme)
    return result


def stratum(side: Side, scheme: str) -> str:
    """The matrix values of a row, in words."""
    return ", ".join(f"{name} {value}" for name, value in side.values_of(scheme).items())


def _base_of(side: Side, schemes: Sequence[str], against: str | None) -> str | None:
    """The row of this name: by its label, or else by its scheme, with or without matrix values."""
    if against is None:
        return None
    if against in side.schemes:
        return against if against in schemes else None
    for scheme in schemes:
        row = side.rows.get(scheme)
        if row and row.values and against in (side.name_of(scheme), *row.scheme_names[:1]):
            return scheme
    return None


def _all_schemes(side: Side) -> list[str]:
    return [*side.schemes, *(row.scheme for row in side.folder.header.skipped)]


def _split_pair(base: Side, other: Side, pair: tuple[str, str] | str) -> tuple[str, str]:
    """The two schemes of a pair. Labels may contain the separator, so the text is split where both parts are
    schemes, or at the first separator if no split fits, so that the unknown name is reported.
    """
    if not isinstance(pair, str):
        return pair
    splits = [(pair[:at].strip(), pair[at + 1 :].strip()) for at, letter in enumerate(pair) if letter == "="]
    splits = [split for split in splits if all(split)]
    if not splits:
        raise UsageError(
            f'--pair: "{shorten(pair)}" is not a pair; write two schemes such as cubic=linux:cubic'
        )
    fitting = [
        split for split in splits if split[0] in _all_schemes(base) and split[1] in _all_schemes(other)
    ]
    if len(fitting) > 1:
        ways = " or ".join(f'"{first}" with "{second}"' for first, second in fitting)
        raise UsageError(f'--pair: "{shorten(pair)}" may mean {ways}; write two campaigns with other labels')
    return (fitting or splits)[0]


def _find_named(side: Side, scheme: str) -> str:
    known = _all_schemes(side)
    if scheme not in known:
        hint = did_you_mean(scheme, known) or f"; it has {_some(known)}"
        raise UsageError(f'{side.path}: has no scheme "{shorten(scheme)}"{hint}')
    return scheme


def _check_flow(side: Side, flow: str) -> None:
    rows = side.results.rows
    if not rows:
        total = len(side.cells)
        raise DataError(f"{side.path}: none of its {total} runs has finished, so there is nothing to compare")
    known = list(dict.fromkeys(str(row.flow) for row in rows))
    named = [row.label for row in rows if row.label]
    if flow not in known and flow not in named:
        hint = did_you_mean(flow, named) or f"; it has {_some(known)}"
        raise UsageError(f'{side.path}: has no flow "{shorten(flow)}"{hint}')


def _some(names: Sequence[str], most: int = 6) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
