"""Parses the text at the head of a scheme's source.

It has a first line, paragraphs, `Provenance: ...` and `Deviations: ...` somewhere in them; that of a program
for the kernel also has a table of parameters. The core's tests enforce that form for every scheme.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PART = re.compile(r"\b(Provenance|Deviations):\s*(.*?)(?=\s*\b(?:Provenance|Deviations):|\Z)", re.DOTALL)
_ROW = re.compile(r"^\|\s*([^|]*?)\s*\|\s*([^|]*?)\s*\|\s*([^|]*?)\s*\|\s*$")


@dataclass(frozen=True)
class Row:
    """A row of the table of parameters as written."""

    default: str
    source: str

    @property
    def unit(self) -> str:
        """The unit after the number of the default."""
        match = re.fullmatch(r"[-+]?[0-9.]+(?:e[-+]?[0-9]+)?\s+([^\s0-9(].*)", self.default.strip("`"))
        return match[1] if match else ""


@dataclass(frozen=True)
class Header:
    """The head of a source."""

    first: str
    #: All paragraphs after the first line, without the table of parameters.
    paragraphs: tuple[str, ...]
    rows: dict[str, Row]

    @property
    def provenance(self) -> str:
        """The source of the rules."""
        return self._part("Provenance")

    @property
    def deviations(self) -> str:
        """The differences between the code and the source."""
        return self._part("Deviations")

    def _part(self, word: str) -> str:
        for paragraph in self.paragraphs:
            for match in _PART.finditer(paragraph):
                if match[1] == word:
                    return " ".join(match[2].split())
        return ""


def read(page: str) -> Header:
    """Parses a page."""
    paragraphs: list[str] = []
    rows: dict[str, Row] = {}
    for block in re.split(r"\n\s*\n", page.strip()):
        lines = block.splitlines()
        if _is_parameters(lines):
            for line in lines[2:]:
                if match := _ROW.match(line):
                    rows[match[1].strip("`")] = Row(match[2], match[3])
        else:
            paragraphs.append(block)
    first = " ".join(paragraphs[0].split()) if paragraphs else ""
    return Header(first, tuple(paragraphs[1:]), rows)


def _is_parameters(lines: list[str]) -> bool:
    match = _ROW.match(lines[0]) if lines else None
    return match is not None and match.groups() == ("parameter", "default", "source")
