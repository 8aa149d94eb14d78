"""From points of a hunt to numbers: scenarios, cells simulated in memory, and the data set that stores them.

Every evaluation is a cell of a sweep's folder (`evaluations/`), identified by the hash of its content. No
cell is simulated twice, so an interrupted hunt resumes by running again: the same seed requests the same
points.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from narrows.campaign.columns import FIXED, free_name, infer_types
from narrows.campaign.entries import now
from narrows.campaign.measurement import list_metrics
from narrows.documents.campaign import INVALID
from narrows.documents.data import from_data
from narrows.documents.run import Simulated
from narrows.documents.sweep import FailedCell, Sweep, SweepKey
from narrows.errors import DataError, Problem, ScenarioError, UnavailableError, UsageError
from narrows.hashes import content_hash
from narrows.hunt import space as spaces
from narrows.hunt.objectives import Metrics, Objective
from narrows.hunt.space import Space, Values
from narrows.scenario.loading import load_text
from narrows.scenario.quantity import show
from narrows.sweep.engines import MOST_TRIES, Engine, failure
from narrows.sweep.loading import SweepCell, cell_at, this_version
from narrows.sweep.plan import Point
from narrows.sweep.store import SweepFolder, read_document

EVALUATIONS = "evaluations"
#: Metrics cover the part of a run after this share of it, when flows have started.
SETTLED = 4
#: A scheme in the notation of the command line.
_NAME = re.compile(r"[A-Za-z0-9][\w.:-]*")


@dataclass(frozen=True)
class Question:
    """The scheme, the objective and the space of a hunt."""

    scheme: str
    objective: Objective
    #: The competing scheme, or the one to compare with.
    against: str | None
    space: Space
    seed: int
    goal: float | None = None

    @property
    def compared(self) -> bool:
        """True if a difference between two schemes counts."""
        return self.against is not None and not self.objective.beside

    @property
    def hash(self) -> str:
        """The identity of the search: everything that determines the points that it visits."""
        genes = [[gene.name, gene.low, gene.high, gene.fixed, gene.optional] for gene in self.space.genes]
        asked = [self.scheme, self.objective.name, self.against, self.space.duration_ns, self.seed]
        return content_hash({"asked": asked, "genes": genes})

    def check(self) -> None:
        """Raises `DataError` or, for options, `UsageError` for schemes that cannot be simulated, and for
        meaningless combinations; `UnavailableError` for a scheme whose model is not installed.
        """
        from narrows.scenario import registry

        ours = registry.load().schemes
        for name, error in ((self.scheme, DataError), (self.against, UsageError)):
            if name and (not _NAME.fullmatch(name) or name not in ours):
                from narrows.text import did_you_mean

                hint = did_you_mean(name, ours) or "; narrows schemes lists them"
                raise error(f'"{name}" is not a native scheme, and only those can be simulated{hint}')
            if name and (model := ours[name].model) and model.default is not None:
                from narrows.models.store import find_installed, how_to_add

                if find_installed(model.default) is None:
                    raise UnavailableError(f"{name}: {how_to_add(model.default)}")
        if self.objective.beside and self.against is None:
            raise UsageError(f"--worst {self.objective.name} needs a competitor: --against cubic")

    def scenario(self, values: Values, seed: int, runs: int = 1, more: Sequence[str] = ()) -> str:
        """The text of the scenario at a point; `more` are further lines at its head."""
        beside = self.against if self.objective.beside else None
        schemes = [self.scheme] + ([self.against] if self.compared and self.against else [])
        traffic = spaces.background(values)
        several = spaces.flows(values, self.space.duration_ns, beside)
        from_ns = self.space.duration_ns // SETTLED
        lines = [
            "schema: narrows/scenario/1",
            *more,
            "path:",
            f"  forward: [{', '.join(spaces.elements(values))}]",
            f"  backward: [{{delay: {spaces.write_value('span', float(values[spaces.DELAY.name] or 0))}}}]",
            f"schemes: [{', '.join(schemes)}]",
            *([f"flows: {several}"] if several else []),
            *([f"background: [{', '.join(traffic)}]"] if traffic else []),
            f"duration: {show('span', self.space.duration_ns)}",
            f"measure: {{from: {show('span', from_ns)}}}",
            f"runs: {runs}",
            f"seed: {seed}",
        ]
        return "\n".join(lines) + "\n"


@dataclass
class Evaluator:
    """Evaluates points; the folder is open while it works."""

    question: Question
    folder: SweepFolder
    engine: Engine
    memory: int
    version: str
    #: Points by their values in words.
    points: dict[tuple[str, ...], Point] = field(default_factory=dict)
    known: dict[str, Metrics | None] = field(default_factory=dict)
    failed: list[FailedCell] = field(default_factory=list)
    #: The contents of the models that cells name, by the names that workers use.
    files: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, question: Question, engine: Engine, memory: int) -> Evaluator:
        """The evaluations of a hunt: a new data set, or the existing one."""
        place, version = path / EVALUATIONS, this_version()
        there = (place / "sweep.json").is_file()
        if there and read_document(place).hash != question.hash:
            raise UsageError(f"{path} holds another hunt; choose another folder with -o")
        folder = SweepFolder.adopting(place, None if there else _new_document(question), version)
        made = cls(question, folder, engine, memory, version)
        made._read()
        return made

    def _read(self) -> None:
        """Loads the existing evaluations of the folder."""
        wanted = self.question.objective.columns
        table = self.folder.table(["cell", "flow", "verdict", *wanted])
        for row in table.to_pylist():
            if row["verdict"] == "invalid":
                self.known[row["cell"]] = None
                continue
            flow = "all" if row["flow"] is None else str(row["flow"])
            metrics = self.known.setdefault(row["cell"], {})
            if isinstance(metrics, dict):
                metrics[flow] = {name: row[name] for name in wanted}

    def apart(self, values: Values, runs: Iterable[int]) -> list[list[float | None]]:
        """For each run of a point, the values of both schemes, not their difference."""
        objective = self.question.objective
        cells = [self._cells(values, run) for run in runs]
        self._simulate([cell for of_run in cells for cell in of_run if cell.address not in self.known])
        known = [[self.known.get(cell.address) for cell in of_run] for of_run in cells]
        return [
            [None if metrics is None else objective.of_run(metrics) for metrics in of_run] for of_run in known
        ]

    def values(self, points: Sequence[Values], runs: Iterable[int] = (1,)) -> list[list[float | None]]:
        """For each point, the value of each run; None for runs that are invalid or have no value."""
        asked = [[self._cells(point, run) for run in runs] for point in points]
        missing = {
            cell.address: cell
            for of_point in asked
            for of_run in of_point
            for cell in of_run
            if cell.address not in self.known
        }
        self._simulate(list(missing.values()))
        return [[self._value(of_run) for of_run in of_point] for of_point in asked]

    def _value(self, cells: Sequence[SweepCell]) -> float | None:
        metrics = [self.known.get(cell.address) for cell in cells]
        valid = [of_cell for of_cell in metrics if of_cell is not None]
        return self.question.objective.of_runs(valid) if len(valid) == len(metrics) else None

    def _cells(self, values: Values, run: int) -> list[SweepCell]:
        words = self.question.space.in_words(values)
        point = self.points.setdefault(tuple(words.values()), Point(len(self.points), {}, words))
        try:
            loaded = load_text(
                self.question.scenario(values, self.question.seed), [], "the scenario", is_point=True
            )
        except ScenarioError as error:
            said = ", ".join(f"{name} {text}" for name, text in words.items())
            raise ScenarioError([Problem(f"at the point {said}", "", str(error))]) from None
        scenario = loaded.scenario
        self.files |= scenario.files.stored
        return [cell_at(self.version, scenario, row, point, run) for row in scenario.schemes]

    def _simulate(self, cells: list[SweepCell]) -> None:
        """Simulates cells on all workers and stores their metrics."""
        size = max(1, min(8, len(cells) // (2 * self.engine.workers)))
        shares = [cells[at : at + size] for at in range(0, len(cells), size)]
        waiting: list[tuple[list[SweepCell], Future[list[str | None]]]] = [
            (share, self._submit(share)) for share in shares
        ]
        for share, future in waiting:
            for cell, text in zip(share, self._result(share, future), strict=True):
                if text is not None:
                    self._keep(cell, text)

    def _submit(self, share: list[SweepCell]) -> Future[list[str | None]]:
        return self.engine.submit([cell.text for cell in share], self.files, self.version, self.memory)

    def _result(self, share: list[SweepCell], future: Future[list[str | None]]) -> list[str | None]:
        for _ in range(MOST_TRIES):
            try:
                return future.result()
            except self.engine.broken:
                self.engine.renew()
                future = self._submit(share)
            except RuntimeError as error:
                raise failure(error) from None
        raise failure(RuntimeError("its processes died again and again"))

    def _keep(self, cell: SweepCell, text: str) -> None:
        import json

        result = from_data(json.loads(text), Simulated)
        if result.error is not None:
            self.known[cell.address] = None
            self.failed.append(cell.fail(result.error.message or ""))
            return
        self.folder.add(cell, result)
        valid = result.verdict != INVALID
        self.known[cell.address] = {row.flow: row.metrics for row in result.flows} if valid else None


def _new_document(question: Question) -> Sweep:
    """The evaluations in the form of a sweep whose points were chosen by a search."""
    metrics = [metric.name for metric in list_metrics()]
    taken = {*FIXED, "point", "reasons", "slug", *metrics}
    parameters = []
    for gene in question.space.genes:
        kind, _ = infer_types([gene.words(gene.low), gene.words(gene.high)])
        name = free_name(gene.name, kind, f"{gene.name}_searched", taken)
        parameters.append(SweepKey(name=name, label=gene.name, key=gene.name, kind=kind, law=gene.law))
    schemes = [question.scheme, *([question.against] if question.against and question.compared else [])]
    return Sweep(
        name=f"hunt-{question.scheme}-{question.objective.name}",
        title=f"A hunt: {question.scheme}, {question.objective.label}",
        hash=question.hash,
        written=question.scenario(question.space.plain(), question.seed),
        parameters=parameters,
        design="hunt",
        schemes=schemes,
        metrics=metrics,
        created_at=now(),
    )
