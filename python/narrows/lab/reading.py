"""A laboratory as defined by its `lab.yaml` (`narrows/lab/1`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narrows.lab.published import Published
from narrows.lab.sections import read_section
from narrows.lab.tasks import Drawing, Lesson, Pair, Question, Task, expand_conditions
from narrows.scenario.problems import Problems
from narrows.scenario.yaml_tree import Mapping, Mark
from narrows.text import any_of, did_you_mean, shorten

FILE = "lab.yaml"
SCHEMA = "narrows/lab/1"
#: Conditions on lines of a published table: from a column to the accepted texts.
Lines = dict[str, list[str]]


@dataclass(frozen=True)
class Case:
    """A condition: a row of a scenario's matrix, and the corresponding lines of the published table."""

    name: str
    ours: dict[str, str]
    published: Lines


@dataclass(frozen=True)
class Experiment:
    """One campaign of a laboratory."""

    name: str
    scenario: str
    what: str
    set: dict[str, str]
    quick: dict[str, str]
    #: The published names of the schemes that take part.
    schemes: tuple[str, ...]
    published: Lines
    cases: dict[str, Case]


@dataclass(frozen=True)
class ValuesOf:
    """Where the published values of a column are."""

    column: str
    #: The scheme of these lines, if not the one under test.
    scheme: str | None
    where: Lines
    of: str
    factor: float


@dataclass(frozen=True)
class Column:
    """A column: one of our metrics, and the published values to compare it with."""

    name: str
    label: str | None
    metric: str
    flow: str
    across: str
    of: str
    #: In the base unit of the metric (ns).
    cap: float | None
    factor: float
    published: ValuesOf | None
    definition: str
    experiments: tuple[str, ...]
    quick: bool


@dataclass(frozen=True)
class Artefact:
    """Published values that are not measurements."""

    column: str
    where: Lines
    why: str


@dataclass(frozen=True)
class Relation:
    """A statement about two values: `(scheme, case)` of the larger and of the smaller one."""

    says: str
    column: str
    more: tuple[str, str]
    less: tuple[str, str]
    because: str | None


@dataclass(frozen=True)
class Expectation:
    """A limit of a statistic of the comparison."""

    column: str
    statistic: str
    case: str | None
    ranked: bool
    at_least: float | None
    at_most: float | None


@dataclass(frozen=True)
class Lab:
    """A laboratory. Schemes have their published names; `schemes` and `emulated` map them to ours."""

    name: str
    folder: Path
    title: str
    question: str
    source: str | None
    page: str
    where: str
    published: Published | None
    schemes: dict[str, str]
    emulated: dict[str, str]
    experiments: dict[str, Experiment]
    columns: dict[str, Column]
    quick: str | None
    ranks: tuple[str, ...]
    ranks_why: str | None
    artefacts: tuple[Artefact, ...]
    certain: tuple[str, ...]
    assumed: tuple[str, ...]
    tried: tuple[str, ...]
    relations: tuple[Relation, ...]
    expect: tuple[Expectation, ...]
    figures: tuple[Drawing, ...]
    lesson: Lesson | None
    #: The names of all cases, in the order of the experiments.
    cases: tuple[str, ...]

    def scheme_of(self, published: str, where: str) -> str:
        """The scheme that represents a published one on a plane, in the notation of scenarios."""
        own = self.emulated if where == "emulate" else {}
        return own.get(published) or self.schemes[published]


def read(folder: Path) -> Lab:
    """The laboratory in a folder. Raises `DataError` with all errors in its files."""
    raw, tree, problems = read_section(folder / FILE, "lab", "laboratory")
    if problems.found:
        problems.raise_if_any()
    lab = _Checked(raw, tree, problems, folder).lab()
    problems.raise_if_any()
    return lab


#: Members of a laboratory that are copied unchanged, and those that are lists.
_PLAIN = (
    *("title", "question", "source", "page", "where"),
    *("schemes", "emulated", "quick", "ranks_why"),
)
_LISTS = ("certain", "assumed", "tried")


class _Checked:
    """Builds a laboratory from its content, and notes contradictions."""

    def __init__(self, raw: dict[str, Any], tree: Mapping, problems: Problems, folder: Path) -> None:
        self.raw, self.tree, self.problems, self.folder = raw, tree, problems, folder
        self.schemes: dict[str, str] = raw["schemes"]
        #: The experiments of cases; statements use the names of cases.
        self.owners: dict[str, str] = {}
        self.published = self._check_published()

    def lab(self) -> Lab:
        """The laboratory."""
        raw = self.raw
        experiments = {
            name: self._experiment(name, experiment) for name, experiment in raw["experiments"].items()
        }
        self.cases = list(
            dict.fromkeys(case for experiment in experiments.values() for case in experiment.cases)
        )
        columns = {name: self._column(name, column, experiments) for name, column in raw["columns"].items()}
        for key in ("emulated", "ranks"):
            for name in raw[key]:
                self._check_known(name, self.schemes, "scheme", key)
        self._file(raw["page"], "page")
        figures = tuple(
            self._drawing(figure, f"figures.{number}", experiments)
            for number, figure in enumerate(raw["figures"])
        )
        plain: dict[str, Any] = {name: raw[name] for name in _PLAIN}
        listed: dict[str, Any] = {name: tuple(raw[name]) for name in _LISTS}
        return Lab(
            name=self.folder.resolve().name,
            folder=self.folder,
            published=self.published,
            experiments=experiments,
            columns=columns,
            ranks=tuple(raw["ranks"] or self.schemes),
            artefacts=tuple(
                self._artefact(number, artefact) for number, artefact in enumerate(raw["artefacts"])
            ),
            relations=tuple(
                self._relation(number, relation) for number, relation in enumerate(raw["relations"])
            ),
            expect=tuple(self._expectation(number, item) for number, item in enumerate(raw["expect"])),
            figures=figures,
            lesson=self._lesson(raw["lesson"], experiments),
            cases=tuple(self.cases),
            **plain,
            **listed,
        )

    # -- parts -----------------------------------------------------------------------------------

    def _check_published(self) -> Published | None:
        named = self.raw["published"]
        if named is None:
            return None
        result = Published.read(self.folder / named["file"], named["scheme"])
        for name in self.schemes:
            if name not in result.schemes:
                hint = did_you_mean(name, result.schemes) or f"; there are {', '.join(result.schemes)}"
                self._wrong("schemes", f'the published table has no scheme "{shorten(name)}"{hint}')
        return result

    def _experiment(self, name: str, raw: dict[str, Any]) -> Experiment:
        at = f"experiments.{name}"
        for scheme in raw["schemes"]:
            self._check_known(scheme, self.schemes, "scheme", at)
        self._lines(raw["published"], at)
        cases = {case: Case(case, item["ours"], item["published"]) for case, item in raw["cases"].items()}
        for case in cases or [name]:
            if self.owners.setdefault(case, name) != name:
                self._wrong(
                    f"{at}.cases.{case}", f"experiment {self.owners[case]} has a case of this name too"
                )
        for case in cases.values():
            self._lines(case.published, f"{at}.cases.{case.name}")
        return Experiment(
            name,
            raw["scenario"],
            raw["what"] or "",
            raw["set"],
            raw["quick"],
            tuple(raw["schemes"] or self.schemes),
            raw["published"],
            cases or {name: Case(name, {}, {})},
        )

    def _column(self, name: str, raw: dict[str, Any], experiments: dict[str, Experiment]) -> Column:
        at = f"columns.{name}"
        for experiment in raw["experiments"]:
            self._check_known(experiment, experiments, "experiment", at)
        values = raw["published"]
        if values is not None:
            if self.published is None:
                self._wrong(at, "has published values, but the family has no published table")
            else:
                self._check_known(
                    values["column"], self.published.columns, "column of the published table", at
                )
                self._lines(values["where"], at)
                if values["scheme"] is not None:
                    self._check_known(
                        values["scheme"], self.published.schemes, "scheme in the published table", at
                    )
        made = None if values is None else ValuesOf(**values)
        rest = {key: value for key, value in raw.items() if key not in ("published", "experiments")}
        return Column(name=name, published=made, experiments=tuple(raw["experiments"] or experiments), **rest)

    def _artefact(self, number: int, raw: dict[str, Any]) -> Artefact:
        at = f"artefacts.{number}"
        self._check_known(raw["column"], self.raw["columns"], "column", at)
        self._lines(raw["where"], at)
        return Artefact(**raw)

    def _relation(self, number: int, raw: dict[str, Any]) -> Relation:
        at = f"relations.{number}"
        self._check_known(raw["column"], self.raw["columns"], "column", at)
        sides = [self._side(raw[key], raw["case"], at) for key in ("more", "less")]
        return Relation(raw["says"], raw["column"], sides[0], sides[1], raw["because"])

    def _side(self, text: str, case: str | None, at: str) -> tuple[str, str]:
        scheme, word, named = (part.strip() for part in text.partition("@"))
        case = named if word else case or (self.cases[0] if len(self.cases) == 1 else "")
        self._check_known(scheme, self.schemes, "scheme", at)
        self._check_known(case, self.cases, "case", at)
        return scheme, case

    def _expectation(self, number: int, raw: dict[str, Any]) -> Expectation:
        at = f"expect.{number}"
        self._check_known(raw["column"], self.raw["columns"], "column", at)
        if raw["case"] is not None:
            self._check_known(raw["case"], self.cases, "case", at)
        if raw["at_least"] is None and raw["at_most"] is None:
            self._wrong(at, "limits nothing; write at_least or at_most")
        return Expectation(**raw)

    def _drawing(self, raw: dict[str, Any], at: str, experiments: dict[str, Experiment]) -> Drawing:
        name = raw["experiment"] or next(iter(experiments))
        self._check_known(name, experiments, "experiment", at)
        own = experiments.get(name) or next(iter(experiments.values()))
        conditions = self._conditions(raw["conditions"], own.schemes, own.cases, f"{at}.conditions")
        return Drawing(raw["figure"], name, conditions, raw["caption"] or "")

    def _conditions(
        self, texts: list[str], schemes: tuple[str, ...], cases: Iterable[str], at: str
    ) -> tuple[Pair, ...]:
        pairs, unknown = expand_conditions(texts, schemes, cases)
        for text in unknown:
            hint = (
                did_you_mean(text, [*schemes, *cases])
                or f"; write SCHEME @ CASE, {any_of([*schemes, *cases])}"
            )
            self._wrong(at, f'"{shorten(text)}" names no condition{hint}')
        return tuple(pairs)

    def _lesson(self, raw: dict[str, Any] | None, experiments: dict[str, Experiment]) -> Lesson | None:
        if raw is None:
            return None
        tasks = []
        for name, task in raw["tasks"].items():
            at = f"lesson.tasks.{name}"
            questions = tuple(
                Question(key, **{**question, "options": tuple(question["options"])})
                for key, question in task["questions"].items()
            )
            if any(asked.name == "predict" for asked in questions):
                self._wrong(at, "a question may not be called predict, the key of the prediction")
            conditions = self._conditions(task["runs"], tuple(self.schemes), self.cases, f"{at}.runs")
            figures = tuple(
                self._drawing(item, f"{at}.look.{number}", experiments)
                for number, item in enumerate(task["look"])
            )
            tasks.append(
                Task(name, task["do"], task["predict"], conditions, figures, tuple(task["hints"]), questions)
            )
        number = None if raw["number"] is None else int(raw["number"])
        return Lesson(number, raw["minutes"], raw["solution"], tuple(tasks))

    # -- checks ----------------------------------------------------------------------------------

    def _mark(self, path: str) -> Mark:
        """The position of the key at an address, or of the nearest key above it."""
        here: Any = self.tree
        mark = self.tree.mark
        for part in path.split("."):
            if isinstance(here, Mapping) and part in here.entries:
                mark, here = here.key_marks[part], here.entries[part]
            elif not isinstance(here, Mapping) and part.isdecimal() and hasattr(here, "items"):
                here = here.items[int(part)]
                mark = here.mark
            else:
                break
        return mark

    def _wrong(self, path: str, text: str) -> None:
        self.problems.add(self._mark(path), text)

    def _check_known(self, name: str, known: Any, what: str, path: str) -> None:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there is {any_of(known)}"
            self._wrong(path, f'there is no {what} "{shorten(name)}"{hint}')

    def _lines(self, lines: Lines, path: str) -> None:
        for column in lines:
            if self.published is None:
                self._wrong(path, "names lines of a published table, and the family has none")
            else:
                self._check_known(column, self.published.columns, "column of the published table", path)

    def _file(self, name: str, path: str) -> None:
        if not (self.folder / name).is_file():
            self._wrong(path, f"there is no file {name} in {self.folder}")
