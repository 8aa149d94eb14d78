"""Measured values: throughput, 95th percentile of delay, and loss by scheme, run and flow.

A table is a CSV file with a line for each flow of each run, `all` being all flows together. Headings name
the quantity and the unit (`throughput_mbps`, `p95 delay (ms)`, `loss [%]`); those of our results.csv are
among them. A campaign, imported or our own, is read from its records.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from narrows.errors import DataError
from narrows.files import read_whole
from narrows.text import did_you_mean, shorten

MOST_BYTES = 50_000_000
ALL = "all"
THROUGHPUT, DELAY, LOSS = "throughput", "delay", "loss"
QUANTITIES = (THROUGHPUT, DELAY, LOSS)
#: The metrics that may represent a quantity; a heading or a map may select another than the first.
METRICS = {
    THROUGHPUT: ("throughput_bps", "goodput_bps"),
    DELAY: ("delay_p95_ns",),
    LOSS: ("loss_pantheon_ratio", "loss_ratio"),
}
_KINDS = {THROUGHPUT: "rate", DELAY: "span", LOSS: "ratio"}
_NAMES = {
    "scheme": ("scheme", "protocol", "cc", "algorithm", "congestion control", "name"),
    "run": ("run", "run id", "repetition", "trial", "iteration"),
    "flow": ("flow", "flow id"),
}
_EXAMPLES = {
    THROUGHPUT: "throughput_mbps or throughput (Mbit/s)",
    DELAY: "delay95_ms or p95 delay (ms)",
    LOSS: "loss_pct, loss_ratio or loss (%)",
}
_WORDS = {THROUGHPUT: r"throughput|tput|goodput", DELAY: r"delay|latency|owd", LOSS: r"loss|lost"}
#: Units as headings spell them, in addition to those of scenarios.
_UNITS = {"bps": "bit/s", "kbps": "kbit/s", "mbps": "Mbit/s", "gbps": "Gbit/s", "pct": "%", "percent": "%"}
_UNITS |= {"mbit": "Mbit/s", "kbit": "kbit/s", "msec": "ms", "sec": "s", "usec": "us", "µs": "us"}
_NONE = ("", "n/a", "na", "nan", "-", "none", "null")
_EVERYTHING = ("all", "total", "sum", "")


@dataclass(frozen=True)
class Measured:
    """One line: values in base units (bit/s, ns, share), None where there is none."""

    scheme: str
    run: str
    flow: str
    values: Mapping[str, float | None]


@dataclass(frozen=True)
class Table:
    """Measured values, and the source's facts about the runs."""

    source: str
    rows: tuple[Measured, ...]
    #: The metric of a quantity, if the source states it.
    metrics: dict[str, str] = field(default_factory=dict)
    #: Facts about the runs that a campaign states: keys `flows`, `interval`, `duration`, in words.
    facts: dict[str, str] = field(default_factory=dict)
    #: Remarks on values that are not taken literally.
    notes: tuple[str, ...] = ()

    @property
    def schemes(self) -> list[str]:
        """The names of schemes, in the order of the table."""
        return list(dict.fromkeys(row.scheme for row in self.rows))

    @property
    def flows(self) -> list[str]:
        """The flows without `all`."""
        return [flow for flow in dict.fromkeys(row.flow for row in self.rows) if flow != ALL]


def read_csv(
    path: Path, columns: Mapping[str, str] | None = None, where: Mapping[str, str] | None = None
) -> Table:
    """The table of a CSV file; `columns` names headings that are not recognised, `where` selects the lines
    with these values under these headings. Raises `DataError` in one sentence with the place."""
    return _Reading(path, dict(columns or {}), dict(where or {})).table()


class _Reading:
    def __init__(self, path: Path, columns: dict[str, str], where: dict[str, str]) -> None:
        self.path = path
        self.wanted = columns
        self.where = where
        self.notes: dict[str, None] = {}

    def fail(self, text: str, line: int | None = None) -> DataError:
        return DataError(f"{self.path}{f':{line}' if line else ''}: {text}")

    def table(self) -> Table:
        try:
            text = read_whole(self.path, "table", MOST_BYTES).decode("utf-8-sig")
            lines = list(csv.reader(text.splitlines(), strict=True))
        except DataError as error:
            raise self.fail(str(error)) from None
        except (UnicodeDecodeError, csv.Error):
            raise self.fail("is not CSV in UTF-8; save the table as CSV") from None
        if len(lines) < 2:
            raise self.fail("a table has a line of headings and at least one line of values")
        head = [name.strip() for name in lines[0]]
        places, factors, metrics = self.columns(head)
        rows: dict[tuple[str, str, str], Measured] = {}
        for number, line in self.choose_lines(head, lines[1:]):
            cells = {name: line[at].strip() for name, at in places.items()}
            row = self.row(cells, factors, number)
            if row is None:
                continue
            key = (row.scheme, row.run, row.flow)
            if key in rows:
                named = f"{row.scheme}, run {row.run}, flow {row.flow}"
                raise self.fail(f"{shorten(named)} stands in the table twice", number)
            rows[key] = row
        if not any(value is not None for row in rows.values() for value in row.values.values()):
            raise self.fail("has no line with a value")
        return Table(str(self.path), tuple(rows.values()), metrics, {}, tuple(self.notes))

    def choose_lines(self, head: list[str], lines: Sequence[list[str]]) -> list[tuple[int, list[str]]]:
        """The lines of values that `where` selects, with their numbers."""
        for heading in self.where:
            if heading not in head:
                hint = did_you_mean(heading, head) or f"; it has {', '.join(head)}"
                raise self.fail(f'has no heading "{shorten(heading)}" to choose lines by{hint}', 1)
        numbered = []
        for number, line in enumerate(lines, 2):
            if not any(text.strip() for text in line):
                continue
            if len(line) != len(head):
                raise self.fail(f"has {len(line)} values for {len(head)} headings", number)
            numbered.append((number, line))
        for heading, value in self.where.items():
            at = head.index(heading)
            values = list(dict.fromkeys(line[at].strip() for _, line in numbered))
            if value not in values:
                hint = did_you_mean(value, values) or f"; lines have {shorten(', '.join(values))}"
                raise self.fail(f'has no line whose {shorten(heading)} is "{shorten(value)}"{hint}')
            numbered = [(number, line) for number, line in numbered if line[at].strip() == value]
        return numbered

    # -- headings --------------------------------------------------------------------------------

    def columns(self, head: list[str]) -> tuple[dict[str, int], dict[str, Fraction], dict[str, str]]:
        for name, heading in self.wanted.items():
            if heading not in head:
                hint = did_you_mean(heading, head) or f"; it has {', '.join(head)}"
                raise self.fail(f'has no heading "{shorten(heading)}" for {name}{hint}', 1)
        places = {
            name: at
            for name, words in _NAMES.items()
            if (at := self.find_named(name, words, head)) is not None
        }
        if "scheme" not in places:
            raise self.fail("has no heading scheme (or protocol, cc, algorithm)", 1)
        factors, metrics = {}, {}
        for quantity in QUANTITIES:
            at = self.quantity(quantity, head)
            if at is None:
                continue
            places[quantity] = at
            factors[quantity] = self.factor(quantity, head[at])
            if head[at] in METRICS[quantity]:
                metrics[quantity] = head[at]
            elif "goodput" in head[at].lower():
                metrics[quantity] = "goodput_bps"
        if THROUGHPUT not in places:
            raise self.fail(f"has no heading for throughput, such as {_EXAMPLES[THROUGHPUT]}", 1)
        return places, factors, metrics

    def find_named(self, name: str, words: Sequence[str], head: list[str]) -> int | None:
        if name in self.wanted:
            return head.index(self.wanted[name])
        plain = [re.sub(r"[\s_-]+", " ", heading.lower()) for heading in head]
        for word in words:
            if plain.count(word) > 1:
                raise self.fail(f"has the heading {word} twice", 1)
            if word in plain:
                return plain.index(word)
        return None

    def quantity(self, quantity: str, head: list[str]) -> int | None:
        if quantity in self.wanted:
            return head.index(self.wanted[quantity])
        for metric in METRICS[quantity]:
            if metric in head:
                return head.index(metric)
        numbers = [at for at, heading in enumerate(head) if re.search(_WORDS[quantity], heading.lower())]
        if quantity == DELAY:
            # A table may also contain other percentiles and means of the delay.
            ours = [at for at in numbers if "95" in head[at]]
            other = re.compile(r"mean|average|avg|median|min|max|p?50|99|queue")
            numbers = ours or [at for at in numbers if not other.search(head[at].lower())]
        if len(numbers) > 1:
            listed = ", ".join(head[at] for at in numbers)
            raise self.fail(
                f"has several headings for {quantity} ({listed}); choose with columns in a map", 1
            )
        return numbers[0] if numbers else None

    def factor(self, quantity: str, heading: str) -> Fraction:
        """The factor from the unit in a heading to the base unit."""
        from narrows.scenario.quantity import SPELLINGS

        kind = _KINDS[quantity]
        inside = re.search(r"[\[(]([^)\]]*)[\])]\s*$", heading)
        words = re.split(r"[\s_]+", heading.strip())
        unit = inside[1].strip() if inside else words[-1]
        unit = _UNITS.get(unit.lower(), unit)
        if kind == "ratio":
            if unit == "%":
                return Fraction(1, 100)
            if unit.lower() in ("ratio", "share", "fraction", "1"):
                return Fraction(1)
        elif unit in SPELLINGS and SPELLINGS[unit][0] == kind:
            base = SPELLINGS[{"rate": "bit/s", "span": "ns"}[kind]][1]
            return SPELLINGS[unit][1] / base
        raise self.fail(
            f'heading "{shorten(heading)}" has no unit of {quantity}; write {_EXAMPLES[quantity]}', 1
        )

    # -- lines -----------------------------------------------------------------------------------

    def row(self, cells: dict[str, str], factors: dict[str, Fraction], number: int) -> Measured | None:
        scheme = cells["scheme"]
        if not scheme:
            raise self.fail("has no name of a scheme", number)
        run = cells.get("run", "1") or "1"
        if run.lower() in ("mean", "median", "average", "avg"):
            self.notes["lines of means are left out; the runs say the same"] = None
            return None
        flow = cells.get("flow", ALL).lower()
        flow = ALL if flow in _EVERYTHING else flow
        if flow != ALL and (not flow.isdecimal() or int(flow) < 1):
            raise self.fail(f'flow "{shorten(flow)}" must be a number from 1, or all', number)
        values = {name: self.value(name, cells[name], factors[name], number) for name in factors}
        return Measured(scheme, run, flow, values)

    def value(self, quantity: str, text: str, factor: Fraction, number: int) -> float | None:
        if text.lower() in _NONE:
            return None
        try:
            plain = float(text)
        except ValueError:
            raise self.fail(f'{quantity} "{shorten(text)}" is not a number', number) from None
        if not math.isfinite(plain):
            raise self.fail(f'{quantity} "{shorten(text)}" is not a finite number', number)
        value = plain * float(factor)
        if quantity == LOSS:
            if value > 1:
                raise self.fail(f"a loss of {text} is more than everything; look at the unit", number)
            if value < 0:
                if value < -0.05:
                    raise self.fail(f"a loss of {text} is less than nothing", number)
                self.notes["losses below zero are taken for none"] = None
                return 0.0
        elif value < 0 or (quantity == DELAY and value == 0):
            what = "negative" if value < 0 else "zero"
            why = "; correct the clocks first" if quantity == DELAY else ""
            raise self.fail(f"{quantity} {text} is {what}{why}", number)
        return value
