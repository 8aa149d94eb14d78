"""A laboratory as defined by its `lab.yaml` (`narrows/lab/1`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from narrows.documents.data import Part
from narrows.lab.keys import FORMAT
from narrows.lab.published import Published
from narrows.lab.tasks import Drawing, Lesson, Pair, Question, Task, expand_conditions
from narrows.scenario.declarations.reader import File, read_file
from narrows.text import any_of, did_you_mean, shorten, suggest

FILE = "lab.yaml"
SCHEMA = "narrows/lab/1"
#: Conditions on lines of a published table: from a column to the accepted texts.
Lines = dict[str, list[str]]


class Case(Part, frozen=True, kw_only=True):
    """A condition: a row of a scenario's matrix, and the corresponding lines of the published table."""

    name: str = ""
    ours: dict[str, str]
    published: Lines


class Experiment(Part, frozen=True, kw_only=True):
    """One campaign of a laboratory."""

    name: str = ""
    scenario: str
    what: str | None
    set: dict[str, str]
    quick: dict[str, str]
    #: The published names of the schemes that take part.
    schemes: tuple[str, ...]
    published: Lines
    cases: dict[str, Case]


class ValuesOf(Part, frozen=True, kw_only=True):
    """Where the published values of a column are."""

    column: str
    #: The scheme of these lines, if not the one under test.
    scheme: str | None
    where: Lines
    of: str
    factor: float


class Column(Part, frozen=True, kw_only=True):
    """A column: one of our metrics, and the published values to compare it with."""

    name: str = ""
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


class Artefact(Part, frozen=True, kw_only=True):
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


class Expectation(Part, frozen=True, kw_only=True):
    """A limit of a statistic of the comparison."""

    column: str
    statistic: str
    case: str | None
    ranked: bool
    at_least: float | None
    at_most: float | None


# -- what is written otherwise than it is used -----------------------------------------------------


class _PublishedTable(Part, frozen=True, kw_only=True):
    """The file of published values, and its column of schemes."""

    file: str
    scheme: str


class _Relation(Part, frozen=True, kw_only=True):
    says: str
    column: str
    more: str
    less: str
    case: str | None
    because: str | None


class _Drawing(Part, frozen=True, kw_only=True):
    figure: str
    experiment: str | None
    conditions: list[str]
    caption: str | None


class _Task(Part, frozen=True, kw_only=True):
    do: str
    predict: str | None
    runs: list[str]
    look: list[_Drawing]
    hints: tuple[str, ...]
    questions: dict[str, Question]


class _Lesson(Part, frozen=True, kw_only=True):
    number: float | None
    minutes: float
    solution: str
    tasks: dict[str, _Task]


class _Common(Part, frozen=True, kw_only=True):
    """Members whose written form is the one in use."""

    title: str
    question: str
    source: str | None
    page: str
    where: str
    schemes: dict[str, str]
    emulated: dict[str, str]
    quick: str | None
    ranks: tuple[str, ...]
    ranks_why: str | None
    artefacts: tuple[Artefact, ...]
    certain: tuple[str, ...]
    assumed: tuple[str, ...]
    tried: tuple[str, ...]
    expect: tuple[Expectation, ...]


class _Written(_Common, frozen=True, kw_only=True):
    """The content of `lab.yaml`."""

    published: _PublishedTable | None
    experiments: dict[str, Experiment]
    columns: dict[str, Column]
    relations: list[_Relation]
    figures: list[_Drawing]
    lesson: _Lesson | None


class Lab(_Common, frozen=True, kw_only=True):
    """A laboratory. Schemes have their published names; `schemes` and `emulated` map them to ours."""

    name: str
    folder: Path
    published: Published | None
    experiments: dict[str, Experiment]
    columns: dict[str, Column]
    relations: tuple[Relation, ...]
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
    file = read_file(folder / FILE, FORMAT, "lab", "laboratory", _Written)
    lab = _Checked(file, folder).lab()
    file.problems.raise_if_any()
    return lab


class _Checked:
    """Builds a laboratory from its content, and notes contradictions."""

    def __init__(self, file: File[_Written], folder: Path) -> None:
        self.content, self._wrong, self.folder = file.content, file.note, folder
        self.schemes = file.content.schemes
        #: The experiments of cases, whose names statements use.
        self.owners: dict[str, str] = {}
        self.published = self._check_published()

    def lab(self) -> Lab:
        """The laboratory."""
        content = self.content
        experiments = {name: self._experiment(name, own) for name, own in content.experiments.items()}
        self.cases = list(
            dict.fromkeys(case for experiment in experiments.values() for case in experiment.cases)
        )
        columns = {name: self._column(name, column, experiments) for name, column in content.columns.items()}
        for key, names in (("emulated", content.emulated), ("ranks", content.ranks)):
            for name in names:
                self._check_known(name, self.schemes, "scheme", key)
        self._file(content.page, "page")
        figures = tuple(
            self._drawing(figure, f"figures.{number}", experiments)
            for number, figure in enumerate(content.figures)
        )
        for number, artefact in enumerate(content.artefacts):
            at = f"artefacts.{number}"
            self._check_known(artefact.column, columns, "column", at)
            self._lines(artefact.where, at)
        relations = tuple(self._relation(number, own) for number, own in enumerate(content.relations))
        for number, limit in enumerate(content.expect):
            self._check_limit(f"expect.{number}", limit)
        common = {name: getattr(content, name) for name in _Common.__struct_fields__}
        return Lab(
            **{**common, "ranks": content.ranks or tuple(self.schemes)},
            name=self.folder.resolve().name,
            folder=self.folder,
            published=self.published,
            experiments=experiments,
            columns=columns,
            relations=relations,
            figures=figures,
            lesson=self._lesson(content.lesson, experiments),
            cases=tuple(self.cases),
        )

    # -- parts -----------------------------------------------------------------------------------

    def _check_published(self) -> Published | None:
        named = self.content.published
        if named is None:
            return None
        result = Published.read(self.folder / named.file, named.scheme)
        for name in self.schemes:
            if name not in result.schemes:
                hint = suggest(name, result.schemes, "scheme")
                self._wrong("schemes", f'the published table has no scheme "{shorten(name)}"{hint}')
        return result

    def _experiment(self, name: str, experiment: Experiment) -> Experiment:
        at = f"experiments.{name}"
        for scheme in experiment.schemes:
            self._check_known(scheme, self.schemes, "scheme", at)
        self._lines(experiment.published, at)
        cases = {case: replace(own, name=case) for case, own in experiment.cases.items()}
        for case in cases or [name]:
            if self.owners.setdefault(case, name) != name:
                self._wrong(
                    f"{at}.cases.{case}", f"experiment {self.owners[case]} has a case of this name too"
                )
        for own in cases.values():
            self._lines(own.published, f"{at}.cases.{own.name}")
        return replace(
            experiment,
            name=name,
            what=experiment.what or "",
            schemes=experiment.schemes or tuple(self.schemes),
            cases=cases or {name: Case(name=name, ours={}, published={})},
        )

    def _column(self, name: str, column: Column, experiments: dict[str, Experiment]) -> Column:
        at = f"columns.{name}"
        for experiment in column.experiments:
            self._check_known(experiment, experiments, "experiment", at)
        values = column.published
        if values is not None:
            if self.published is None:
                self._wrong(at, "has published values, but the family has no published table")
            else:
                self._check_known(values.column, self.published.columns, "column of the published table", at)
                self._lines(values.where, at)
                if values.scheme is not None:
                    self._check_known(
                        values.scheme, self.published.schemes, "scheme in the published table", at
                    )
        return replace(column, name=name, experiments=column.experiments or tuple(experiments))

    def _relation(self, number: int, written: _Relation) -> Relation:
        at = f"relations.{number}"
        self._check_known(written.column, self.content.columns, "column", at)
        more, less = (self._side(text, written.case, at) for text in (written.more, written.less))
        return Relation(written.says, written.column, more, less, written.because)

    def _side(self, text: str, case: str | None, at: str) -> tuple[str, str]:
        scheme, word, named = (part.strip() for part in text.partition("@"))
        case = named if word else case or (self.cases[0] if len(self.cases) == 1 else "")
        self._check_known(scheme, self.schemes, "scheme", at)
        self._check_known(case, self.cases, "case", at)
        return scheme, case

    def _check_limit(self, at: str, limit: Expectation) -> None:
        self._check_known(limit.column, self.content.columns, "column", at)
        if limit.case is not None:
            self._check_known(limit.case, self.cases, "case", at)
        if limit.at_least is None and limit.at_most is None:
            self._wrong(at, "limits nothing; write at_least or at_most")

    def _drawing(self, written: _Drawing, at: str, experiments: dict[str, Experiment]) -> Drawing:
        name = written.experiment or next(iter(experiments))
        self._check_known(name, experiments, "experiment", at)
        own = experiments.get(name) or next(iter(experiments.values()))
        conditions = self._conditions(written.conditions, own.schemes, own.cases, f"{at}.conditions")
        return Drawing(written.figure, name, conditions, written.caption or "")

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

    def _lesson(self, written: _Lesson | None, experiments: dict[str, Experiment]) -> Lesson | None:
        if written is None:
            return None
        tasks = []
        for name, task in written.tasks.items():
            at = f"lesson.tasks.{name}"
            if "predict" in task.questions:
                self._wrong(at, "a question may not be called predict, the key of the prediction")
            conditions = self._conditions(task.runs, tuple(self.schemes), self.cases, f"{at}.runs")
            figures = tuple(
                self._drawing(item, f"{at}.look.{number}", experiments)
                for number, item in enumerate(task.look)
            )
            questions = tuple(replace(asked, name=key) for key, asked in task.questions.items())
            tasks.append(Task(name, task.do, task.predict, conditions, figures, task.hints, questions))
        number = None if written.number is None else int(written.number)
        return Lesson(number, written.minutes, written.solution, tuple(tasks))

    # -- checks ----------------------------------------------------------------------------------

    def _check_known(self, name: str, known: Any, what: str, path: str) -> None:
        if name not in known:
            hint = suggest(name, known, what)
            self._wrong(path, f'{what} "{shorten(name)}" does not exist{hint}')

    def _lines(self, lines: Lines, path: str) -> None:
        for column in lines:
            if self.published is None:
                self._wrong(path, "names lines of a published table, and the family has none")
            else:
                self._check_known(column, self.published.columns, "column of the published table", path)

    def _file(self, name: str, path: str) -> None:
        if not (self.folder / name).is_file():
            self._wrong(path, f"file {name} does not exist in {self.folder}")
