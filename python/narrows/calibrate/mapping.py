"""Maps from the names in a table to schemes, the number of flows and the duration.

    schemes:
      TCP BBR: bbr1
      Copa: {scheme: copa, profile: pantheon}
      Mystery: null              # left out
    flows: 3
    interval: 10 s
    duration: 30 s
    loss: loss_ratio             # the metric of its losses
    columns: {delay: "latency 95 (ms)"}
    where: {place: India}        # only lines with this value under this heading

The `lab.yaml` of a laboratory also serves as a map, by its schemes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import convert

from narrows.calibrate.table import LOSS, QUANTITIES, THROUGHPUT, Table
from narrows.documents.data import Part
from narrows.errors import DataError
from narrows.scenario.declarations.declaration import Key, read_format
from narrows.scenario.declarations.reader import Reader, parse_file, read_text
from narrows.scenario.declarations.value import Value
from narrows.scenario.matrix import in_words
from narrows.scenario.problems import Problems, Wrong
from narrows.scenario.registry import Param
from narrows.scenario.sections import Section
from narrows.scenario.yaml_tree import Mapping as Tree
from narrows.scenario.yaml_tree import Mark, Node, Scalar, to_flow
from narrows.text import any_of, did_you_mean, shorten

_SPAN = Param("", "span", low=0)
FORMAT = read_format(Path(__file__).parent)
KEYS = FORMAT.keys("map")
_COLUMNS = ("scheme", "run", "flow", *QUANTITIES)
_LAB = "narrows/lab/1"


@dataclass(frozen=True)
class Map:
    """A map as it was written: schemes in YAML, None for a scheme that is left out."""

    schemes: dict[str, str | None] = field(default_factory=dict)
    flows: int | None = None
    interval: str | None = None
    duration: str | None = None
    metrics: dict[str, str] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    #: Values by heading: the lines of the table that are meant.
    where: dict[str, str] = field(default_factory=dict)


class _Keys(Section, frozen=True, kw_only=True):
    schema: Node | None = None
    schemes: Node | None = None


class _Written(Part, frozen=True, kw_only=True):
    schemes: dict[str, str | None]
    flows: int | None
    interval: str | None
    duration: str | None
    throughput: str | None
    loss: str | None
    columns: dict[str, str]
    where: dict[str, str]


class _Reader(Reader):
    """Reads the kinds of values that only maps have."""

    def read_schemes(self, node: Node, _key: Key) -> dict[str, str | None]:
        """Schemes in the notation of scenarios, None for those that are left out."""
        if not isinstance(node, Tree):
            raise Wrong(node.mark, 'must be names with schemes, such as "TCP BBR: bbr1"')
        return {
            name: None if isinstance(value, Scalar) and value.is_null else to_flow(value)
            for name, _, value in node
        }

    def read_seconds(self, node: Node, key: Key) -> str:
        """A time in the notation of scenarios; a bare number is in seconds."""
        text = Value(node, key, self.context).text()
        text = f"{text} s" if text.isdecimal() else text
        Value(Scalar(node.mark, text), _SPAN, self.context).require()
        return text

    def read_columns(self, node: Node, _key: Key) -> dict[str, str]:
        """Headings by what is in their columns."""
        if not isinstance(node, Tree) or set(node.entries) - set(_COLUMNS):
            raise Wrong(node.mark, f"must name headings of {any_of(_COLUMNS)}")
        return {name: in_words(value) for name, _, value in node}


def read_map(path: Path) -> Map:
    """Reads a map. Raises `DataError` with file, line and key of each error."""
    tree = parse_file(read_text(path, "map"), str(path), "map")
    keys = _Keys.from_mapping(tree)
    if keys.schema is not None and in_words(keys.schema) == _LAB:
        return Map(_of_lab(keys.schemes))
    problems = Problems(is_scenario=False)
    content = _Reader(FORMAT, problems).section(tree, "map")
    problems.raise_if_any()
    written = convert(content, _Written)
    metrics = {THROUGHPUT: written.throughput, LOSS: written.loss}
    return Map(
        written.schemes,
        written.flows,
        written.interval,
        written.duration,
        {quantity: metric for quantity, metric in metrics.items() if metric is not None},
        written.columns,
        written.where,
    )


def _of_lab(schemes: Node | None) -> dict[str, str | None]:
    """The schemes of a laboratory, which writes those with parameters as texts."""
    entries = schemes.entries if isinstance(schemes, Tree) else {}
    return {
        name: (None if node.is_null else node.text) if isinstance(node, Scalar) else to_flow(node)
        for name, node in entries.items()
    }


def read_option(option: str, key: str, text: str | None) -> Any:
    """The value of an option by the rules of a key of maps; None if it is not given. Raises `DataError`."""
    if not text:
        return None
    problems = Problems()
    with problems.note():
        return _Reader(FORMAT, problems).value(Scalar(Mark(option), text), KEYS[key])
    problems.raise_if_any()
    return None


def entries_of(table: Table, chosen: Mapping[str, str | None]) -> tuple[dict[str, str], dict[str, str]]:
    """The schemes of a table in the notation of scenarios, and the reasons for omitting others.

    A name has an entry in the map, or is the name or label of a native scheme (`copa profile=pantheon`).
    Raises `DataError` for a name that has neither, a map with names that the table lacks, a scheme that
    cannot be simulated, and a table without any scheme left.
    """
    from narrows.scenario.registry import load

    names = table.schemes
    for name in chosen:
        if name not in names:
            hint = did_you_mean(name, names) or f"; it has {', '.join(names)}"
            raise DataError(f'{table.source}: has no scheme "{shorten(name)}", which the map names{hint}')
    known = load().schemes
    result: dict[str, str] = {}
    left: dict[str, str] = {}
    strange = []
    for name in names:
        if name in chosen:
            entry = chosen[name]
            if entry is None:
                left[name] = "the map leaves it out"
                continue
        else:
            label = _of_label(name)
            if label is None or _base(name) not in known:
                strange.append(name)
                continue
            entry = label
        if not any(_is_value(row) for row in table.rows if row.scheme == name):
            left[name] = "the table has no value of it"
            continue
        if reason := _why_not(name, entry):
            left[name] = reason
            continue
        result[name] = entry
    if strange:
        listed = ", ".join(f'"{shorten(name)}"' for name in strange[:5])
        more = f" and {len(strange) - 5} more" if len(strange) > 5 else ""
        are = "is not a scheme" if len(strange) == 1 else "are not schemes"
        raise DataError(
            f"{table.source}: {listed}{more} {are} of Narrows; say what it is with --scheme"
            f' "{shorten(strange[0])}=cubic" or in a map, or null to leave it out'
        )
    if not result:
        reasons = "; ".join(f"{name}: {why}" for name, why in left.items())
        raise DataError(f"{table.source}: no scheme is left to calibrate with: {reasons}")
    return result, left


def _is_value(row: Any) -> bool:
    return any(value is not None and value > 0 for value in row.values.values())


def _base(name: str) -> str:
    return name.split(" ", maxsplit=1)[0]


def _of_label(name: str) -> str | None:
    """A label in the notation of scenarios; `None` if the text is not a label."""
    first, *settings = name.split(" ")
    parts = [setting.partition("=") for setting in settings]
    if not all(middle and key and value for key, middle, value in parts):
        return None
    words = [("scheme", first), *((key, value) for key, _, value in parts)]
    entries = [f"{key}: {to_flow(Scalar(Mark(''), value))}" for key, value in words]
    return f"{{{', '.join(entries)}}}" if parts else entries[0].removeprefix("scheme: ")


def _why_not(name: str, entry: str) -> str | None:
    """Why a scheme can't be simulated: its model is missing, it belongs to the kernel, or it is a program.
    Raises `DataError` for text that names no scheme.
    """
    from narrows.campaign.plan import make_plan
    from narrows.documents.agent import MachineFacts
    from narrows.errors import ScenarioError, UnavailableError
    from narrows.scenario.loading import load_text

    text = (
        "schema: narrows/scenario/1\nquestion: Can it be simulated?\nwhere: simulate\n"
        "path: {forward: [{rate: 1 Mbit/s, queue: {droptail: 10 packets}}, {delay: 1 ms}],"
        " backward: [{delay: 1 ms}]}\n"
        f"schemes: [{entry}]\nduration: 1 s\nruns: 1\nseed: 1\n"
    )
    try:
        scenario = load_text(text, source=name).scenario
    except ScenarioError as error:
        raise DataError(
            f"{shorten(name)}: {shorten(entry)} is not a scheme: {error.problems[0].text}"
        ) from None
    if len(scenario.schemes) != 1:
        raise DataError(f"{shorten(name)}: {shorten(entry)} must be one scheme")
    try:
        make_plan(scenario, MachineFacts())
    except UnavailableError as error:
        return str(error).partition(": ")[2] or str(error)
    return None
