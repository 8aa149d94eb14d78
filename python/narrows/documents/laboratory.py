"""comparison.json: a laboratory's results beside the published ones (`narrows/lab-report/1`)."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import UNSET, UnsetType

from narrows.documents.data import Count, Number, Part, Value
from narrows.documents.results import Quantity

FORMAT = "narrows/lab-report/1"

#: States of a cell of the table.
COMPARED: Literal["compared"] = "compared"
ARTEFACT: Literal["artefact"] = "artefact"
ONLY_OURS: Literal["not published"] = "not published"
ONLY_THEIRS: Literal["not measured"] = "not measured"
NEITHER: Literal["no value"] = "no value"
State = Literal["compared", "artefact", "not published", "not measured", "no value"]
#: Outcomes of a statement or a limit.
HOLDS: Literal["holds"] = "holds"
FAILS: Literal["does not hold"] = "does not hold"
OPEN: Literal["can't be told"] = "can't be told"
Outcome = Literal["holds", "does not hold", "can't be told"]


class LabExperiment(Part, frozen=True, kw_only=True):
    """An experiment that has been run."""

    UNCHECKED: ClassVar[frozenset[str]] = frozenset({"kernel"})

    name: str
    what: str
    folder: str
    #: The schemes by their published names.
    schemes: dict[str, str]
    cases: list[str]
    scenario: str
    hash: str
    seconds: Number
    #: Runs of each scheme in each case.
    runs: Count
    cells: Count
    #: The number of cells by verdict, or by state without one.
    verdicts: dict[str, Count]
    narrows: str | None
    kernel: dict[str, Value]
    #: The rows whose models Narrows trained, in words; the published values are of other models.
    own_models: str = ""
    #: The findings of its campaign's report, if nothing was published.
    answer: list[str] | UnsetType = UNSET

    @property
    def sentences(self) -> list[str]:
        """The findings of its campaign's report."""
        return [] if self.answer is UNSET else self.answer


class ColumnMetric(Quantity, frozen=True, kw_only=True):
    """The metric of a column; only a quantity if no campaign has the metric."""

    better: str | UnsetType | None = UNSET
    scope: str | UnsetType = UNSET
    links: bool | UnsetType = UNSET
    happened: str | UnsetType | None = UNSET
    definition: str | UnsetType = UNSET
    own: str | UnsetType | None = UNSET
    source: str | UnsetType | None = UNSET


class LabCell(Part, frozen=True, kw_only=True):
    """A scheme in a condition: our value and the published one."""

    experiment: str
    case: str
    scheme: str
    ours: Number | None
    #: The values of our runs.
    runs: list[Number]
    #: Runs in which the timed event never happened.
    never: Count
    #: The reason if we have no value.
    why: str | None
    #: Names of our records.
    records: list[str]
    theirs: Number | None
    #: Lines of the published table that supply the value, and their smallest and largest value.
    lines: Count
    spread: tuple[Number, Number] | None
    #: Why the published value is not a measurement.
    artefact: str | None
    state: State
    #: The error of our value: in the unit, as a share of theirs, and as |ln(ours/theirs)|.
    absolute: Number | None
    relative: Number | None
    log: Number | None


class Accuracy(Part, frozen=True, kw_only=True):
    """Errors and order of the compared cells."""

    cells: Count
    artefacts: Count
    not_measured: Count
    mean_absolute_error: Number | None
    mean_relative_error: Number | None
    mean_log_error: Number | None
    #: Kendall's tau-b, and the share of ordered pairs with the same order.
    tau: Number | None
    same_signs: Number | None
    pairs: Count
    same: Count
    reversed: Count
    ties_published: Count
    ties_ours: Count

    def statistic(self, name: str) -> float | None:
        """A statistic by its name in `lab.yaml`."""
        value: float | None = getattr(self, name)
        return value


class ReversedPair(Part, frozen=True, kw_only=True):
    """Two schemes with opposite orders."""

    experiment: str
    case: str
    published_more: str
    published_less: str
    #: True if our runs overlap, so that they show no order.
    within_runs: bool


class ColumnFindings(Part, frozen=True, kw_only=True):
    """Sentences about our values and about the published ones."""

    ours: list[str]
    theirs: list[str]


class LabColumn(Part, frozen=True, kw_only=True):
    """One of our metrics, and the published values to compare it with."""

    name: str
    label: str
    metric: ColumnMetric
    definition: str
    statistic: str
    cells: list[LabCell]
    all: Accuracy
    #: Values of the schemes that are ranked.
    ranked: Accuracy
    by_case: dict[str, Accuracy]
    reversed: list[ReversedPair]
    findings: ColumnFindings


class Sides(Part, frozen=True, kw_only=True):
    """The two values of a statement, the one that should be larger first."""

    theirs: list[str]
    ours: list[str]


class StatementOutcome(Part, frozen=True, kw_only=True):
    """Whether a statement of the original holds in the original and here."""

    says: str
    column: str
    because: str | None
    published: Outcome
    here: Outcome
    values: Sides
    records: list[str]


class AccuracyLimit(Part, frozen=True, kw_only=True):
    """The outcome of a limit of the family."""

    column: str
    statistic: str
    case: str | None
    ranked: bool
    at_least: Number | None
    at_most: Number | None
    value: Number | None
    outcome: Outcome


class RankedSchemes(Part, frozen=True, kw_only=True):
    """The schemes whose order counts, with the reason."""

    among: list[str]
    why: str | None


class NoMeasurements(Part, frozen=True, kw_only=True):
    """Published values that are not measurements."""

    column: str
    where: dict[str, list[str]]
    why: str


class LabFigure(Part, frozen=True, kw_only=True, omit_defaults=False):
    """A figure of a report: its file below the folder of the run, or the reason why it could not be drawn."""

    title: str
    caption: str
    file: str | None
    #: The column whose values it shows, or its task.
    column: str | None = None
    task: str | None = None
    problem: str | None = None


class LabReport(Part, frozen=True, kw_only=True):
    """The results of a laboratory beside the published values."""

    format: str
    lab: str
    title: str
    question: str
    source: str | None
    where: str
    #: How quick runs differ; null for full runs.
    quick: str | None
    folder: str
    experiments: list[LabExperiment]
    not_run: list[str]
    ranks: RankedSchemes
    columns: list[LabColumn]
    relations: list[StatementOutcome]
    expect: list[AccuracyLimit]
    certain: list[str]
    assumed: list[str]
    tried: list[str]
    artefacts: list[NoMeasurements]
    #: The opening sentences of the report.
    answer: list[str]
    figures: list[LabFigure]

    @property
    def has_published(self) -> bool:
        """True if there are published values beside the measured ones."""
        return any(column.all.cells for column in self.columns)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of columns by their names."""
        return {column.name: column.label for column in self.columns}
