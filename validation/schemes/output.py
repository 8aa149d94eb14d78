"""Output of `python -m validation schemes`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from rich.console import Console

from narrows.console import Listing
from narrows.errors import DataError
from narrows.schemes.status import FILE, MARKS
from validation.campaign import slug
from validation.schemes.check import HOLDS
from validation.schemes.document import compose
from validation.schemes.figures import draw
from validation.schemes.verdict import document
from validation.schemes.work import Outcome

PAGE, OVERVIEW = Path("docs/verification/schemes.md"), Path("docs/images/verification.png")
#: The comparison whose figure is part of the documents.
SHOWN = ("bbr1", "linux:bbr")


def write(outcome: Outcome, folder: Path, *, update: bool) -> list[Path]:
    """Writes figures, document and status into the folder; with `update`, also writes document, status and
    the one committed figure into the source tree."""
    folder.mkdir(parents=True, exist_ok=True)
    root = _source_tree() if update else None
    page = root / PAGE if root else folder / "schemes.md"
    status = FILE if root else folder / "verification.json"
    drawn: dict[tuple[str, str], str] = {}
    for one in outcome.comparisons:
        pair = (one.scheme, one.reference)
        notes = {
            row.path: f"{row.throughput * 100:+.1f} %, delay {row.delay * 100:+.0f} %" for row in one.rows
        }
        stem = folder / "figures" / slug(one.scheme if one.reference.startswith("linux:") else one.reference)
        path = draw(*pair, outcome.grid_paths, outcome.runs, stem, notes)
        if root is None:
            drawn[pair] = path.relative_to(folder).as_posix()
        elif pair == SHOWN:
            shutil.copyfile(path, root / OVERVIEW)
            drawn[pair] = f"../images/{OVERVIEW.name}"
    page.write_text(compose(outcome, drawn, root), encoding="utf-8", newline="\n")
    text = json.dumps(document(outcome.entries), indent=1, ensure_ascii=False) + "\n"
    status.write_text(text, encoding="utf-8", newline="\n")
    return [page, status]


def _source_tree() -> Path:
    """The source tree that contains this package."""
    root = FILE.parent.parent.parent
    if not (root / "core" / "cc").is_dir():
        raise DataError(
            f"{root}: --update needs the source tree that this package was built in; leave it out to write"
            " the document into the folder of -o"
        )
    return root


def _others(outcome: Outcome) -> Listing:
    """The comparisons with external programs."""
    made = Listing("scheme", "program of others", "paths", "throughput", "p95 queueing delay")
    for one in outcome.others:
        throughput, delay = (f"{share * 100:.1f} %" for share in (one.throughput, one.delay))
        made.add_row(one.scheme, one.reference, str(len(one.rows)), throughput, delay)
    return made


def print_outcome(console: Console, outcome: Outcome, paths: list[Path]) -> None:
    """Prints the verdicts, and the files with the details."""
    made = Listing("scheme", "status", "checks", "why", whole=("scheme", "status", "checks"))
    for name, entry in outcome.entries.items():
        good = sum(one["outcome"] == HOLDS for one in entry["checks"])
        status = entry["status"]
        made.add_row(name, f"{MARKS[status]} {status}", f"{good} of {len(entry['checks'])}", entry["reason"])
    if outcome.entries:
        console.print(made)
    if outcome.others:
        console.print(_others(outcome))
    for path in paths:
        console.print(f"written: {path}", soft_wrap=True)
