"""The content of a report, for the layouts of pages and the PDF.

Everything in it is text, numbers, tables and names of figure files; users' text (names, questions, reasons)
stays plain until a template escapes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import field

from narrows.blocks.model import Table
from narrows.comparison.leaders import Leaders
from narrows.documents.data import Part

#: A label and its value.
Fact = tuple[str, str]


class ReportFigure(Part, frozen=True, kw_only=True, omit_defaults=False):
    """A drawn figure, or the reason why it was not drawn."""

    name: str
    title: str
    #: The picture below the folder of the report, without its suffix.
    file: str | None = None
    caption: str = ""
    absent: str | None = None
    #: Tool tips for parts of the picture, by id.
    tips: dict[str, str] = field(default_factory=dict)
    #: The addition to the caption for the picture, compared with the interactive form.
    note: str = ""


class PathSection(Part, frozen=True, kw_only=True):
    """The path and the workload."""

    figure: ReportFigure | None
    sentences: list[str]
    workload: list[str]


class OutcomeCount(Part, frozen=True, kw_only=True):
    """The number of runs with an outcome, and its meaning."""

    outcome: str
    count: int
    meaning: str


class VerdictSection(Part, frozen=True, kw_only=True):
    """The verdicts of all runs."""

    counts: list[OutcomeCount]
    table: Table
    #: Sentences about failed attempts.
    attempts: list[str]


class WordedTable(Part, frozen=True, kw_only=True):
    """A table and its explanation."""

    title: str
    table: Table
    words: str


class StatusMark(Part, frozen=True, kw_only=True):
    """A sign of verification and its meaning."""

    mark: str
    word: str
    meaning: str


class Verification(Part, frozen=True, kw_only=True):
    """The legend of the signs, and the reasons of unverified schemes."""

    legend: list[StatusMark]
    reasons: list[str]
    #: The rows whose models Narrows trained, in a sentence; empty if there are none.
    own_models: str = ""


class RunCaption(Part, frozen=True, kw_only=True):
    """The caption of a figure that every run has."""

    title: str
    caption: str
    note: str


class RunSection(Part, frozen=True, kw_only=True):
    """A run with its figures."""

    cell: str
    scheme: str
    number: int
    outcome: str
    reasons: list[str]
    facts: list[Fact]
    figures: list[ReportFigure]
    #: True if it has numbers.
    measured: bool
    #: Its numbers, if the PDF shows the run.
    table: Table | None
    paper: bool


class Machine(Part, frozen=True, kw_only=True):
    """A machine or software that some runs share."""

    title: str
    rows: list[Fact]
    text: str = ""


class Reproduction(Part, frozen=True, kw_only=True):
    """How to repeat the campaign."""

    commands: list[str]
    #: The file of the scenario, and its text.
    file: str
    written: str
    facts: list[Fact]


class MetricDefinition(Part, frozen=True, kw_only=True):
    """The definition of a metric."""

    name: str
    label: str
    unit: str
    text: str
    better: str
    source: str


class Report(Part, frozen=True, kw_only=True):
    """The whole content."""

    title: str
    subtitle: str
    question: str
    facts: list[Fact]
    answer: list[str]
    leaders: list[Leaders]
    path: PathSection
    verdicts: VerdictSection
    figures: list[ReportFigure]
    tables: list[WordedTable]
    results: WordedTable
    verification: Verification
    run_captions: list[RunCaption]
    runs: list[RunSection]
    side_by_side: bool
    system: list[Machine]
    fingerprints: Table
    reproduce: Reproduction
    definitions: list[MetricDefinition]
    made_by: str

    def pictures(self) -> Iterator[str]:
        """The files of all figures that were drawn."""
        own = [self.path.figure] if self.path.figure else []
        for figure in [*own, *self.figures, *(figure for run in self.runs for figure in run.figures)]:
            if figure.file is not None:
                yield figure.file
