"""From a file with the key `sweep` to cells."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from msgspec import structs

from narrows.campaign.plan import missing_models
from narrows.documents.sweep import FailedCell
from narrows.errors import DataError, Problem, ScenarioError, UnavailableError, UsageError
from narrows.hashes import canonical_json, content_hash
from narrows.scenario import overrides as _overrides
from narrows.scenario import registry as _registry
from narrows.scenario.matrix import in_words
from narrows.scenario.model import FOR_PEOPLE, Scenario, SchemeRow, cell_of
from narrows.scenario.overrides import Override
from narrows.scenario.resolve import resolve
from narrows.scenario.shipped import find
from narrows.scenario.yaml_tree import Mapping, read_file
from narrows.sweep.plan import KEY, Point, Sweep, place, read

#: Length of a cell's address in digits: 96 bits, so that no two of 10^9 cells collide.
_DIGITS = 24


@dataclass(frozen=True)
class SweepCell:
    """One run of one scheme at one point."""

    #: The hash of its content and of the version that simulates it: equal hashes mean equal results.
    address: str
    text: str
    point: Point
    row: SchemeRow
    run: int
    seed: int
    duration_ns: int

    @property
    def group(self) -> tuple[int, str]:
        """The point and the scheme, whose runs are evaluated together."""
        return self.point.number, self.row.slug

    def fail(self, message: str) -> FailedCell:
        """The entry of the cell in sweep.json if it could not be simulated."""
        return FailedCell(point=self.point.number, scheme=self.row.label, run=self.run, message=message)


@dataclass
class LoadedSweep:
    """A scenario with a sweep, ready to be resolved at its points."""

    path: Path
    text: str
    changes: list[Override]
    tree: Mapping
    sweep: Sweep
    version: str
    #: The scenario at the first point.
    first: Scenario = field(init=False)
    #: Contents of files that cells name, by the names that workers use.
    files: dict[str, bytes] = field(default_factory=dict)
    #: The rows that can't run because their models are not installed, with the reason.
    skipped: dict[str, str] = field(default_factory=dict)

    @cached_property
    def hash(self) -> str:
        """The identity of the sweep: everything that is written except texts for people."""
        kept = {name: in_words(node) for name, node in self.tree.entries.items() if name not in FOR_PEOPLE}
        return content_hash({**kept, "files": sorted(self.files)})

    def scenario_at(self, point: Point) -> Scenario:
        """The resolved scenario of a point, without rows whose models are not installed; raises
        `ScenarioError` that names the point, and `UnavailableError` if no row is left.
        """
        try:
            scenario = self._resolve(point)
        except ScenarioError as error:
            said = ", ".join(f"{name} {text}" for name, text in point.words.items())
            raise DataError(f"at point {point.number} ({said}): {error}") from None
        self.files |= scenario.files.stored
        missing = {row.label: reasons[0] for row in scenario.schemes if (reasons := missing_models(row))}
        self.skipped |= missing
        rows = [row for row in scenario.schemes if row.label not in missing]
        if not rows:
            listed = "; ".join(f"{label}: {reason}" for label, reason in missing.items())
            raise UnavailableError(f"no scheme of this scenario can run here: {listed}")
        return structs.replace(scenario, schemes=rows)

    @property
    def remarks(self) -> list[str]:
        """Sentences about models that were chosen from lists, and about rows that can't run."""
        notes = [f"note: {note}" for note in self.first.files.choices]
        return notes + [f"skipped {label}: {reason}" for label, reason in self.skipped.items()]

    def cells(self, scenario: Scenario, point: Point, runs: range) -> Iterator[SweepCell]:
        """Runs of all schemes at a point, run by run."""
        for run in runs:
            for row in scenario.schemes:
                yield self.cell(scenario, row, point, run)

    def cell(self, scenario: Scenario, row: SchemeRow, point: Point, run: int) -> SweepCell:
        """One run."""
        return cell_at(self.version, scenario, row, point, run)

    def _resolve(self, point: Point) -> Scenario:
        base = Mapping(
            self.tree.mark,
            {name: node for name, node in self.tree.entries.items() if name != KEY},
            self.tree.key_marks,
        )
        return resolve(place(base, point), _registry.load(), self.path.name, self.path.parent, is_point=True)


def cell_at(version: str, scenario: Scenario, row: SchemeRow, point: Point, run: int) -> SweepCell:
    """One run of a scheme at a point, as simulated by this version."""
    made = cell_of(scenario, row, run)
    identity = canonical_json({"cell": made.to_json(), "version": version})
    address = hashlib.sha256(identity.encode()).hexdigest()[:_DIGITS]
    return SweepCell(address, made.to_text(), point, row, run, made.seed, made.duration_ns)


def this_version() -> str:
    """The version and source of the local simulator, which are part of a cell's address."""
    from narrows import _native

    git = json.loads(_native.registry()).get("git") or ""
    return " ".join(f"{_native.version()} {git} {_registry.version_of_extensions()}".split())


def load_sweep(name: str, changes: list[Override]) -> LoadedSweep:
    """Reads a sweep by the path or shipped name of its scenario, with changes from the command line."""
    path = find(name)
    text, tree = read_file(path)
    tree = _overrides.apply(tree, changes)
    if KEY not in tree.entries:
        raise UsageError(
            f"{path} has no key sweep, so it is run by narrows run; narrows schema lists the keys"
        )
    for other in ("matrix", "draw"):
        if other in tree.entries:
            mark = tree.key_marks[other]
            raise ScenarioError(
                [Problem(str(mark), other, "a sweep has its own points; write the key there")]
            )
    base = Mapping(tree.mark, {key: node for key, node in tree.entries.items() if key != KEY}, tree.key_marks)
    # Seed and runs are needed before the first point, and other mistakes must be reported at once.
    seed, runs = _single(base)
    sweep = read(tree, seed, runs)
    loaded_sweep = LoadedSweep(path, text, changes, tree, sweep, this_version())
    point = next(sweep.points(), None)
    if point is None:
        raise ScenarioError([Problem(str(tree.key_marks[KEY]), KEY, "no point keeps all constraints")])
    loaded_sweep.first = loaded_sweep.scenario_at(point)
    where = loaded_sweep.first.where
    if where != "simulate":
        raise UsageError(
            f"a sweep is simulated, and this scenario says where: {where}; give --where simulate"
        )
    return loaded_sweep


def _single(base: Mapping) -> tuple[int, int]:
    """The written seed and number of runs of a scenario."""
    from narrows.scenario.declarations.reader import read_key
    from narrows.scenario.keys import KEYS
    from narrows.scenario.problems import Problems

    problems = Problems()
    numbers = [int(read_key(base, KEYS[name], problems)) for name in ("seed", "runs")]
    problems.raise_if_any()
    return numbers[0], numbers[1]
