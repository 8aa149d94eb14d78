"""archive.json: the campaigns of an archive with the metrics of their runs (`narrows/archive/1`); the
differences between two archives.
"""

from __future__ import annotations

from narrows.documents.data import Count, Integer, Number, Part
from narrows.documents.results import Quantity

FORMAT = "narrows/archive/1"
COMPARISON_FORMAT = "narrows/archive-comparison/1"


# -- the archive ---------------------------------------------------------------------------------


class Limits(Part, frozen=True, kw_only=True):
    """The most that an archive may take."""

    processor_minutes: Number | None = None
    site_megabytes: Number | None = None


class ArchivedRun(Part, frozen=True, kw_only=True):
    """A finished run, with the metrics of all its flows together."""

    row: str
    run: Count
    seed: Integer | None
    verdict: str | None
    metrics: dict[str, Number | None]


class ArchivedCampaign(Part, frozen=True, kw_only=True):
    """The finished runs of a campaign."""

    title: str
    plane: str
    #: The digest of the scenario, which says whether two campaigns had the same one.
    hash: str
    runs: list[ArchivedRun]


class Archive(Part, frozen=True, kw_only=True, omit_defaults=False):
    """The campaigns of an archive, with the metrics of their runs."""

    format: str = FORMAT
    title: str
    #: The version of Narrows, and the commit.
    narrows: str | None
    git: str | None
    #: Processor time that the runs and the site took, in seconds.
    processor_s: Number
    #: The size of the site's files.
    site_bytes: Count
    metrics: list[Quantity]
    campaigns: dict[str, ArchivedCampaign]


# -- two archives --------------------------------------------------------------------------------


class Change(Part, frozen=True, kw_only=True, omit_defaults=False):
    """A metric of a row that has another value in some run."""

    campaign: str
    row: str
    metric: str
    #: The runs in both archives, and those in which the metric differs.
    runs: Count
    changed: Count
    #: Medians over these runs; null if no run has a value.
    before: Number | None
    after: Number | None


class ArchiveComparison(Part, frozen=True, kw_only=True, omit_defaults=False):
    """The differences between two archives."""

    format: str = COMPARISON_FORMAT
    #: The versions of Narrows that made them.
    before: str
    after: str
    #: Campaigns whose runs were compared, their rows, and the rows that differ in some metric.
    campaigns: Count
    rows: Count
    rows_changed: Count
    changes: list[Change]
    #: Campaigns and runs that only one of them has.
    only_before: list[str]
    only_after: list[str]
    #: Campaigns whose scenario has changed, so that their runs were not compared.
    other_scenario: list[str]
    #: Campaigns that were not simulated: their runs differ by chance, so that they were not compared.
    by_chance: list[str]
    #: Metrics that only one of them has.
    metrics_only_before: list[str]
    metrics_only_after: list[str]
