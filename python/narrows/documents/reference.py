"""JSON Schemas of public documents, and the table of formats, from the definitions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import msgspec

from narrows.documents import (
    archive,
    calibration,
    campaign,
    comparison,
    doctor,
    extensions,
    hunt,
    identify,
    laboratory,
    lessons,
    listing,
    notes,
    publications,
    results,
    run,
    site,
    sweep,
)
from narrows.documents.data import Part

#: The table of formats in the guide is between these lines.
BEGIN, END = "<!-- formats, by make generated -->", "<!-- end of formats -->"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True)
class Format:
    """A public document: its format, its location, and its definition."""

    name: str
    place: str
    definition: type[Part]


#: By the names for `narrows schema --document`.
FORMATS = {
    "campaign": Format(campaign.FORMAT, "`campaign.json`", campaign.Campaign),
    "notes": Format(notes.FORMAT, "`notes.json`", notes.Notes),
    "results": Format(results.FORMAT, "`results.json`", results.Results),
    "comparison": Format(comparison.FORMAT, "`narrows compare DIR --json`", comparison.Comparison),
    "calibration": Format(calibration.FORMAT, "`results.json` of a calibration", calibration.Calibration),
    "hunt": Format(hunt.FORMAT, "`hunt.json`", hunt.HuntReport),
    "identify": Format(
        identify.FORMAT, "`identify.json`, `narrows identify WHAT --json`", identify.Identification
    ),
    "lab-report": Format(laboratory.FORMAT, "`comparison.json` of a laboratory", laboratory.LabReport),
    "lab-class": Format(
        lessons.CLASS_FORMAT, "`class.json`, `narrows lab class DIR --json`", lessons.ClassMarks
    ),
    "sweep": Format(sweep.FORMAT, "`sweep.json`", sweep.Sweep),
    "site": Format(site.FORMAT, "`site.json`", site.Site),
    "archive": Format(archive.FORMAT, "`archive.json`", archive.Archive),
    "archive-comparison": Format(
        archive.COMPARISON_FORMAT, "`narrows archive compare A B --json`", archive.ArchiveComparison
    ),
    "list": Format(listing.FORMAT, "`narrows ls --json`", listing.Listing),
    "extensions": Format(extensions.FORMAT, "`narrows extend list --json`", extensions.ExtensionList),
    "cite": Format(publications.FORMAT, "`narrows cite --json`", publications.Citation),
    "check": Format(run.CHECK_FORMAT, "`narrows check DIR --json`", run.CheckReport),
    "doctor": Format(doctor.FORMAT, "`narrows doctor --json`", doctor.Doctor),
}


def schema(name: str) -> dict[str, object]:
    """The JSON Schema of a document."""
    made = msgspec.json.schema(FORMATS[name].definition)
    return {"$schema": _DRAFT, "title": FORMATS[name].name, **made}


def schema_text(name: str) -> str:
    """The JSON Schema of a document, in the form of its file."""
    return json.dumps(schema(name), indent=1, ensure_ascii=False) + "\n"


def formats_table() -> str:
    """The formats as a table in Markdown."""
    rows = ["| format | where | what | schema |", "| --- | --- | --- | --- |"]
    for name, known in FORMATS.items():
        what = (known.definition.__doc__ or "").splitlines()[0].rstrip(".")
        link = f"[{name}](../reference/documents/{name}.schema.json)"
        rows.append(f"| `{known.name}` | {known.place} | {what} | {link} |")
    return "\n".join(rows)


def write(folder: Path, guide: Path) -> None:
    """Writes the schemas into a folder, and the table of formats into a page of the guide."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FORMATS:
        (folder / f"{name}.schema.json").write_text(schema_text(name), encoding="utf-8")
    guide.write_text(with_formats(guide.read_text(encoding="utf-8")), encoding="utf-8")


def with_formats(page: str) -> str:
    """A page with its table of formats updated."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{formats_table()}\n{END}{after}"
