"""`python -m validation identify-library`: makes the references of `narrows identify` that are stale."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from narrows import __version__
from narrows.cli.parameters import option
from narrows.console import say
from narrows.documents.identify import Card
from narrows.errors import DataError
from narrows.identify.reference_library import (
    FORMAT,
    SHIPPED,
    Header,
    Library,
    LineFacts,
    Reference,
    list_lines,
    read_library,
    write_library,
)
from narrows.identify.references import SEEDS, digest, list_native, list_stale, make_reference


def run(
    every: Annotated[bool, option("--all", help="Make the references of all schemes anew.")] = False,
    output: Annotated[
        Path, option("-o", "--output", metavar="FILE", help="The library, which is completed.")
    ] = SHIPPED,
) -> None:
    """Make the library of references of narrows identify, or what is stale of it.

    Each native scheme of bulk traffic is simulated on all probes, on paths around theirs, with the noise of
    hosts. A scheme is stale if it sends other packets on two of the probes, or lines of its card have other
    values, than the library says. The file is written after each scheme: the command can be interrupted.
    """
    schemes = list_native()
    library = _read(output) if not every else None
    stale = [item.scheme for item in list_stale(library, schemes)] if library else schemes
    references = [row for row in library.references if row.scheme not in stale] if library else []
    lines = list(library.header.lines) if library else []
    digests = (
        {name: text for name, text in library.header.digests.items() if name not in stale} if library else {}
    )
    made: list[Card] = []
    for number, scheme in enumerate((name for name in stale if name in schemes), 1):
        say(f"{scheme}, {number} of {len(stale)}")
        digests[scheme] = digest(scheme)[0]
        for seed in SEEDS:
            reference, card = make_reference(scheme, seed)
            references.append(reference)
            made.append(card)
        write(references, _merge(lines, made), digests, output)
    if library is None or not stale:
        return
    write(references, _merge(lines, made), digests, output)


def write(references: list[Reference], lines: list[LineFacts], digests: dict[str, str], output: Path) -> None:
    """Writes a library."""
    header = Header(format=FORMAT, narrows=__version__, lines=lines, digests=dict(sorted(digests.items())))
    ordered = sorted(references, key=lambda row: (row.scheme, row.seed))
    write_library(Library(header, ordered), output)


def _read(path: Path) -> Library | None:
    try:
        return read_library(path)
    except DataError:
        return None


def _merge(known: list[LineFacts], cards: list[Card]) -> list[LineFacts]:
    """The known lines, and those of new cards that they lack."""
    keys = {line.key for line in known}
    return [*known, *(line for line in list_lines(cards) if line.key not in keys)]
