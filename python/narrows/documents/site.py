"""site.json: the pages of a web site of campaigns and sweeps (`narrows/site/1`)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from narrows.documents.data import Count, Part
from narrows.documents.notes import Note

FORMAT = "narrows/site/1"
MADE_FORMAT = "narrows/site-made/1"


class Listing(Part, frozen=True, kw_only=True, omit_defaults=False):
    """A line of a list of campaigns or sweeps."""

    name: str = ""
    folder: str = ""
    title: str = ""
    question: str = ""
    #: The time when it was created.
    made: str = ""


class CampaignListing(Listing, frozen=True, kw_only=True, omit_defaults=False):
    """A campaign in the list of all campaigns."""

    plane: str = ""
    runs: Count = 0
    #: The number of runs by verdict or state.
    outcomes: dict[str, Count] = field(default_factory=dict)
    schemes: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


class SweepListing(Listing, frozen=True, kw_only=True, omit_defaults=False):
    """A sweep in the list of all sweeps."""

    keys: list[str] = field(default_factory=list)
    schemes: list[str] = field(default_factory=list)
    points: Count = 0
    cells: Count = 0
    outcomes: dict[str, Count] = field(default_factory=dict)
    #: The outcomes in words.
    words: str = ""
    bad_points: Count = 0
    #: How its last session ended.
    ended: str = ""


class RankedMetric(Part, frozen=True, kw_only=True):
    """A metric of a ranking."""

    name: str
    label: str
    unit: str
    better: str | None


class RankedScheme(Part, frozen=True, kw_only=True):
    """The possible ranks of a scheme, its median in words, and its number of valid runs."""

    scheme: str
    rank: str
    value: str
    runs: Count


class Ranking(Part, frozen=True, kw_only=True):
    """The ranks of schemes that met the same conditions, in one metric."""

    metric: RankedMetric
    #: The matrix values in words.
    values: str
    schemes: list[RankedScheme]


class Page(Part, frozen=True, kw_only=True, omit_defaults=False):
    """A page and its sources."""

    #: The identity of its campaign or sweep, independent of the folder.
    origin: str
    #: The digest of everything that the page is made of.
    mark: str
    #: The shared files that it names.
    assets: list[str]


class CampaignPage(Page, frozen=True, kw_only=True, omit_defaults=False):
    """The page of a campaign."""

    listed: CampaignListing
    ranking: list[Ranking]
    #: The folder of the campaign, relative to that of the site.
    source: str


class SweepPage(Page, frozen=True, kw_only=True, omit_defaults=False):
    """The page of a sweep."""

    listed: SweepListing
    #: The folder of the sweep, relative to that of the site.
    source: str


class Site(Part, frozen=True, kw_only=True, omit_defaults=False):
    """The pages of a site, by name."""

    format: str = FORMAT
    made_by: str = ""
    campaigns: dict[str, CampaignPage]
    sweeps: dict[str, SweepPage] | UnsetType = UNSET


class RunNumbers(Part, frozen=True, kw_only=True):
    """The file with the numbers of a run, and the names of its charts."""

    file: str
    charts: list[str]


class PageContents(Part, frozen=True, kw_only=True, omit_defaults=False):
    """The files of a campaign's page: the numbers of its runs, titles of quantities, and downloads."""

    runs: dict[str, RunNumbers]
    quantities: dict[str, str]
    #: Names with link texts.
    files: list[tuple[str, str]]


class MadePage(Part, frozen=True, kw_only=True):
    """A page, and whether it was drawn again."""

    id: str
    folder: str
    page: str
    drawn: bool


class SiteProblem(Part, frozen=True, kw_only=True):
    """A campaign or sweep that is not shown in its present state, in a sentence."""

    #: The name of its page, if it has one.
    id: str | None
    folder: str
    problem: str
    #: True if a process is working on it.
    busy: bool


class SiteMade(Part, frozen=True, kw_only=True):
    """The pages of a site that was made or updated."""

    format: str = field(default_factory=lambda: MADE_FORMAT)
    site: str
    #: The file of the first page.
    index: str
    campaigns: list[MadePage]
    sweeps: list[MadePage]
    #: Pages whose campaigns no longer exist, kept or removed.
    kept: list[str]
    removed: list[str]
    problems: list[SiteProblem]
