"""The bibliography of Narrows (`narrows/cite/publications.toml`), and the document of `narrows cite --json`
(`narrows/cite/1`)."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from narrows.documents.data import Count, Part

FORMAT = "narrows/cite/1"


class Publication(Part, frozen=True, kw_only=True):
    """A paper, standard, draft or program. A field of which we are not sure is absent."""

    type: Literal["article", "inproceedings", "rfc", "draft", "software", "misc"]
    title: str
    #: In full, given names first, in the order of the publication.
    authors: list[str]
    #: True if the author is an organisation, whose name has no family name in it.
    collective: bool = False
    #: True if there are further authors.
    others: bool = False
    #: The journal or the proceedings.
    venue: str | None = None
    volume: str | None = None
    #: The number of the issue, or the name of a draft.
    number: str | None = None
    #: First and last page: `314-329`.
    pages: str | None = None
    year: Count | None = None
    doi: str | None = None
    rfc: Count | None = None
    url: str | None = None
    #: The version, branch or commit that Narrows follows.
    version: str | None = None
    note: str | None = None

    @property
    def full_doi(self) -> str | None:
        """Its DOI; that of an RFC follows from its number."""
        return f"10.17487/RFC{self.rfc:04}" if self.rfc is not None else self.doi


class Unpublished(Part, frozen=True, kw_only=True):
    """A thing without a publication, with the reason."""

    unpublished: str


#: The keys of publications, the most important first, or the reason for their absence.
Sources = list[str] | Unpublished
Family = dict[str, Sources]


class Bibliography(Part, frozen=True, kw_only=True):
    """All publications by key, and the sources of each thing by name."""

    publications: dict[str, Publication]
    schemes: Family
    #: Schemes of the Linux kernel, without their prefix.
    kernel: Family
    #: Programs, or single variants of them (`NAME:VARIANT`).
    programs: Family
    queues: Family
    rates: Family
    links: Family
    traffic: Family
    traces: Family
    laboratories: Family


class NamedFile(Part, frozen=True, kw_only=True):
    """A file that a parameter names, such as a trace."""

    name: str
    sha256: str


class LaboratoryNote(Part, frozen=True, kw_only=True):
    """The member of `lab.json` that names the laboratory."""

    lab: str


class CitedEntry(Part, frozen=True, kw_only=True, omit_defaults=False):
    """A thing that was used, with the keys of its publications or the reason for their absence."""

    #: `narrows`, `scheme`, `queue`, `rate`, `link`, `traffic`, `trace` or `laboratory`.
    kind: str
    name: str
    keys: list[str] = field(default_factory=list)
    why_none: str | None = None


class Citation(Part, frozen=True, kw_only=True, omit_defaults=False):
    """The things that were used, and their publications by key."""

    format: str = FORMAT
    used: list[CitedEntry]
    publications: dict[str, Publication]
    bibtex: str
