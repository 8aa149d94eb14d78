"""A hunt from its question to its output.

DIR/hunt.json          format narrows/hunt/1: question, bounds, what was found, and how it held
DIR/evaluations/       every evaluation, as the data set of a sweep
DIR/found.yaml         the worst point, as it was found
DIR/minimal.yaml       what is left of it: runs by narrows run, with its claim as expectations
DIR/hunt.md            all that in words
DIR/simulated/         a campaign of minimal.yaml with fresh seeds, beside CUBIC and Reno, with report
DIR/emulated/          the same on the emulator, after --replay
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from narrows.campaign import sealing, signals
from narrows.campaign.entries import now
from narrows.campaign.json_files import read_json, write_atomically
from narrows.documents.data import DamagedError, to_data
from narrows.documents.hunt import FORMAT, Bound, HuntReport, MinimalPath, read_hunt
from narrows.documents.hunt import Path as HuntPath
from narrows.errors import DataError, Interrupted, NarrowsError, reason
from narrows.files import read_text
from narrows.hunt import minimal_scenario
from narrows.hunt.evaluate import EVALUATIONS, Evaluator, Question
from narrows.hunt.minimise import Minimal, minimise
from narrows.hunt.search import CONFIRMED, Best, Budget, Search, confirm, library
from narrows.hunt.space import Values
from narrows.sweep.engines import Engine

DOCUMENT, FOUND, MINIMAL, WORDS = "hunt.json", "found.yaml", "minimal.yaml", "hunt.md"
SIMULATED, EMULATED = "simulated", "emulated"
#: Schemes for comparison, to see whether a path is hard for every scheme.
BESIDE = ("cubic", "reno")


@dataclass
class Watch:
    """Receives the progress of a hunt."""

    search: Callable[[Search], None] = lambda _: None
    minimise: Callable[[Minimal], None] = lambda _: None
    say: Callable[[str], None] = lambda _: None


@dataclass
class Hunt:
    """One hunt in its folder."""

    question: Question
    path: Path
    budget: Budget
    engine: Engine
    memory: int
    watch: Watch = field(default_factory=Watch)
    document: HuntReport = field(init=False)

    def run(self) -> HuntReport:
        """Searches, minimises the finding and writes it. Raises `Interrupted` with the worst point so far
        written, and `NarrowsError` if no point yielded a number.
        """
        library()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NarrowsError(
                f"{self.path}: can't be created: {reason(error)}; choose another with -o"
            ) from None
        evaluator = Evaluator.open(self.path, self.question, self.engine, self.memory)
        before = read(self.path) if (self.path / DOCUMENT).is_file() else None
        self.document = self._opening(before)
        search = Search(
            evaluator,
            self.budget,
            self.watch.search,
            before_s=float(before.searched_s) if before else 0.0,
            before=before.evaluations if before else 0,
        )
        outcome = "stopped"
        try:
            with signals.interruptible("interrupted"):
                self._search(evaluator, search)
            outcome = "done"
        except (Interrupted, KeyboardInterrupt) as error:
            outcome = "interrupted"
            self._keep_best(search, "interrupted")
            best = search.best
            known = f"; the worst so far, {self._claim(best.value)}, is {self.path / FOUND}" if best else ""
            number = error.number if isinstance(error, Interrupted) else 2
            raise Interrupted(
                f"interrupted after {search.evaluations} evaluations{known}; the same command with"
                f" -o {self.path} resumes it",
                number,
            ) from None
        finally:
            if outcome != "done":
                self.engine.stop()
            evaluator.folder.end(outcome, evaluator.failed)
            evaluator.folder.close()
            self.engine.end()
        return self.document

    def _opening(self, before: HuntReport | None) -> HuntReport:
        question = self.question
        return HuntReport(
            format=FORMAT,
            hash=question.hash,
            question=minimal_scenario.ask(question),
            scheme=question.scheme,
            worst=question.objective.name,
            against=question.against,
            goal=question.goal,
            seed=question.seed,
            duration_ns=question.space.duration_ns,
            bounds=[
                Bound(
                    name=gene.name,
                    about=gene.about,
                    low=gene.low,
                    high=gene.high,
                    kind=gene.kind,
                    optional=gene.optional,
                    searched=gene.searched,
                )
                for gene in question.space.genes
            ],
            created_at=before.created_at if before else now(),
            state="searching",
            evaluations=0,
            searched_s=0.0,
        )

    def _search(self, evaluator: Evaluator, search: Search) -> None:
        search.run()
        worst = confirm(evaluator, search)
        self._keep_best(search, "searching")
        if worst is None:
            raise DataError(
                f"none of {search.evaluations} paths gave a number for {self.question.objective.name} in all"
                " of several runs; widen the bounds, or lengthen the runs with --time"
            )
        self._write_found(worst.values, worst.value)
        self._minimise(evaluator, search, worst)

    def _minimise(self, evaluator: Evaluator, search: Search, worst: Best) -> None:
        question, objective = self.question, self.question.objective
        goal = question.goal if search.reached else None
        kept = objective.value_to_keep(worst.value, goal, question.compared)
        # The limit must be milder than the value of the worst path.
        kept = kept if objective.worse(worst.value, kept) else worst.value
        small = minimise(evaluator, worst.values, kept, self.watch.minimise)
        promised = objective.value_to_promise(kept)
        runs = [value for value in evaluator.values([small.values], CONFIRMED)[0] if value is not None]
        expect = minimal_scenario.expectations(question, evaluator, small.values, promised)
        mildest = min(runs) if objective.high else max(runs)
        claim = self._claim(mildest)
        text = minimal_scenario.scenario(
            question,
            small.values,
            name=self.name,
            claim=claim,
            expect=expect,
            comment=[f"Found by narrows hunt: {minimal_scenario.ask(question)}"],
        )
        write_atomically(self.path / MINIMAL, text)
        small_path = self._path(small.values, mildest)
        self.document = replace(
            self.document,
            state="done",
            reached=None if question.goal is None else search.reached,
            best=self._path(worst.values, worst.value),
            minimal=MinimalPath(
                value=small_path.value,
                words=small_path.words,
                values=small_path.values,
                runs=runs,
                promised=promised,
                removed=small.removed,
                tried=small.tried,
                claim=claim,
                scenario=MINIMAL,
            ),
        )
        self.save()

    def _keep_best(self, search: Search, state: str) -> None:
        self.document = replace(
            self.document,
            state=state,
            evaluations=max(search.evaluations, search.before),
            searched_s=round(search.seconds, 3),
        )
        if search.best is not None:
            best = self._path(search.best.values, search.best.value)
            self.document = replace(self.document, best=best)
            self._write_found(search.best.values, search.best.value)
        self.save()

    def _write_found(self, values: Values, value: float) -> None:
        text = minimal_scenario.scenario(
            self.question, values, name=f"{self.name}-found", claim=self._claim(value), expect=[]
        )
        write_atomically(self.path / FOUND, text)

    def _path(self, values: Values, value: float) -> HuntPath:
        space = self.question.space
        present = {
            name: text for name, text in space.in_words(values).items() if values.get(name) is not None
        }
        return HuntPath(value=value, words=self.question.objective.words(value), values=present)

    def _claim(self, value: float) -> str:
        return minimal_scenario.claim(self.question, value)

    @property
    def name(self) -> str:
        """The name of the resulting scenario."""
        against = f"-{self.question.against}" if self.question.against else ""
        words = f"{self.question.scheme}{against}-{self.question.objective.name}"
        return words.replace("_", "-").replace(":", "-").lower()

    # -- runs of the finding ----------------------------------------------------------------------

    def simulate(self, *, quiet: bool, report: bool) -> None:
        """Runs the minimal scenario with seeds that the search has not used, with other schemes on the same
        path for comparison, and writes the report.
        """
        more = [] if self.question.objective.beside else [self.question.scheme, *BESIDE]
        if self.question.compared and self.question.against:
            more.insert(1, self.question.against)
        changes = [("schemes", f"[{', '.join(dict.fromkeys(more))}]")] if more else []
        self._campaign(SIMULATED, changes, quiet=quiet)
        if report:
            from narrows.report import build

            build(self.path / SIMULATED, pdf=False)

    def replay(self, runs: int, *, quiet: bool) -> bool:
        """Runs the minimal scenario on the emulator; True if the finding holds there."""
        self._campaign(EMULATED, [("where", "emulate"), ("runs", str(runs))], quiet=quiet)
        return self.document.emulated is not None and self.document.emulated.holds

    def _campaign(self, plane: str, changes: list[tuple[str, str]], *, quiet: bool) -> None:
        from narrows.campaign.run import run_campaign
        from narrows.console import stderr_console
        from narrows.scenario.loading import load
        from narrows.scenario.overrides import Override

        loaded = load(self.path / MINIMAL, [Override(f"--set {key}", key, text) for key, text in changes])
        target = self.path / plane
        if target.exists() and _hash_of(target) != loaded.scenario.hash:
            # The scenario was minimal before the search was extended.
            shutil.rmtree(target)
        finished = run_campaign(
            loaded, target, resume=False, argv=["narrows", "hunt"], console=stderr_console(), quiet=quiet
        )
        outcome = minimal_scenario.outcome(self.question, finished.results, plane)
        self.document = replace(self.document, **{plane: outcome})
        self.save()

    def save(self) -> None:
        """Writes hunt.json, and in words hunt.md."""
        from narrows.blocks import markdown
        from narrows.hunt.prose import document

        write_atomically(self.path / DOCUMENT, sealing.seal(to_data(self.document), FORMAT, allow_nan=False))
        scenario = self.path / MINIMAL
        told = read_text(scenario) if scenario.is_file() else None
        write_atomically(
            self.path / WORDS, markdown.render(document(self.document, self.question.objective, told))
        )


def _hash_of(campaign: Path) -> str | None:
    with contextlib.suppress(NarrowsError, OSError, KeyError):
        return str(read_json(campaign / "campaign.json", "narrows/campaign/1")["hash"])
    return None


def read(path: Path) -> HuntReport:
    """The content of a folder's hunt.json; raises `DataError`."""
    file = path / DOCUMENT
    try:
        return read_hunt(read_json(file, FORMAT))
    except DamagedError as error:
        raise DataError(f"{file}: is damaged: {error}; {sealing.remedy(file, FORMAT)}") from None


def is_hunt(path: Path) -> bool:
    """True if the folder holds a hunt."""
    return (path / DOCUMENT).is_file() and (path / EVALUATIONS).is_dir()
