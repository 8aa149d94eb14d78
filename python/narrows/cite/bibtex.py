"""Entries of BibTeX (O. Patashnik, BibTeXing, 1988), in ASCII, for every style and every version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from narrows import latex
from narrows.documents.publications import CitedEntry, Publication

_TYPES = {"rfc": "techreport", "draft": "techreport", "software": "misc"}
#: Words before a family name that belong to it.
_PARTICLES = ("de", "De", "van", "Van", "von")


def write_entries(publications: Mapping[str, Publication], used: Iterable[CitedEntry]) -> str:
    """The entries, each once, after comments with the things that cite them or have nothing to cite."""
    used = list(used)
    lines = []
    for entry in used:
        sources = ", ".join(entry.keys) or f"nothing to cite: {entry.why_none}"
        lines.append(_comment(f"{entry.kind} {entry.name}: {sources}"))
    entries = [write_entry(key, publication) for key, publication in publications.items()]
    return "\n".join(["\n".join(lines), *entries])


def _comment(text: str) -> str:
    """A line that BibTeX skips: everything between entries is one, unless an entry begins in it."""
    plain = text.replace("@", "(at)")
    return f"% {plain}"


def write_entry(key: str, publication: Publication) -> str:
    """One entry."""
    kind = _TYPES.get(publication.type, publication.type)
    lines = [f"  {name} = {{{value}}}," for name, value in _fields(publication).items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}", ""])


def _fields(publication: Publication) -> dict[str, str]:
    # Braces inside keep the capitals of a title in every style.
    fields = {"title": f"{{{latex.escape(publication.title)}}}", "author": _authors(publication)}
    venue = "journal" if publication.type == "article" else "booktitle"
    notes = [latex.escape(note) for note in (publication.version, publication.note) if note]
    kinds = {
        "rfc": ("RFC Editor", "RFC", str(publication.rfc)),
        "draft": ("IETF", "Internet-Draft", publication.number or ""),
    }
    issuer, kind, number = kinds.get(publication.type, ("", "", publication.number or ""))
    note = ", ".join(notes)
    fields |= {
        venue: latex.escape(publication.venue or ""),
        "institution": issuer,
        "type": kind,
        "volume": publication.volume or "",
        "number": number,
        "pages": (publication.pages or "").replace("-", "--"),
        "year": "" if publication.year is None else str(publication.year),
        "doi": publication.full_doi or "",
        "url": _url(publication) or "",
        "note": note[:1].upper() + note[1:],
    }
    return {name: value for name, value in fields.items() if value}


def _url(publication: Publication) -> str | None:
    if publication.rfc is not None:
        return f"https://www.rfc-editor.org/rfc/rfc{publication.rfc}"
    if publication.type == "draft":
        name = (publication.number or "").rstrip("0123456789").removesuffix("-")
        return f"https://datatracker.ietf.org/doc/{name}/"
    return publication.url


def _authors(publication: Publication) -> str:
    names = [_author(name, collective=publication.collective) for name in publication.authors]
    return " and ".join([*names, "others"] if publication.others else names)


def _author(name: str, *, collective: bool) -> str:
    """`Family, Given`, in which no style can mistake one for the other."""
    if collective or " " not in name:
        return f"{{{latex.escape(name)}}}"
    *given, family = name.split(" ")
    while len(given) > 1 and given[-1] in _PARTICLES:
        family = f"{given.pop()} {family}"
    return f"{latex.escape(family)}, {latex.escape(' '.join(given))}"
