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

from narrows.calibrate.table import LOSS, METRICS, QUANTITIES, THROUGHPUT, Table
from narrows.errors import DataError
from narrows.files import read_whole
from narrows.scenario.sections import Section
from narrows.scenario.yaml_tree import Node
from narrows.text import any_of, did_you_mean, shorten

_KEYS = ("schemes", "flows", "interval", "duration", THROUGHPUT, LOSS, "columns", "where")
_COLUMNS = ("scheme", "run", "flow", *QUANTITIES)
_LAB = "narrows/lab/1"
_MOST_BYTES = 1_000_000


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
    flows: Node | None = None
    interval: Node | None = None
    duration: Node | None = None
    columns: Node | None = None
    where: Node | None = None


def read_map(path: Path) -> Map:
    """Reads a map. Raises `DataError` with one sentence if it is invalid."""
    from narrows.scenario.yaml_tree import Mapping as Tree
    from narrows.scenario.yaml_tree import Scalar, parse

    def fail(text: str) -> DataError:
        return DataError(f"{path}: {text}")

    try:
        text = read_whole(path, "map", _MOST_BYTES).decode("utf-8-sig")
    except DataError as error:
        raise fail(str(error)) from None
    except UnicodeDecodeError:
        raise fail("is not UTF-8 text") from None
    tree = parse(text, str(path))
    entries = tree.entries
    keys = _Keys.from_mapping(tree)
    is_lab = keys.schema is not None and _word(keys.schema) == _LAB
    if not is_lab:
        for key in entries:
            if key not in _KEYS:
                hint = did_you_mean(key, _KEYS) or f"; a map has {', '.join(_KEYS)}"
                raise fail(f'unknown key "{shorten(key)}"{hint}')
    schemes: dict[str, str | None] = {}
    if keys.schemes is not None:
        if not isinstance(keys.schemes, Tree):
            raise fail('schemes must be names with schemes, such as "TCP BBR: bbr1"')
        schemes = {name: _entry(node, is_lab) for name, node in keys.schemes.entries.items()}
    if is_lab:
        return Map(schemes)
    interval, duration = (
        None if node is None else check_time(_word(node), f"{path}: {name}")
        for name, node in (("interval", keys.interval), ("duration", keys.duration))
    )
    flows = None if keys.flows is None else check_flows(_word(keys.flows), f"{path}: flows")
    metrics = {
        key: check_metric(key, _word(entries[key]), f"{path}: {key}")
        for key in (THROUGHPUT, LOSS)
        if key in entries
    }
    columns: dict[str, str] = {}
    if keys.columns is not None:
        if not isinstance(keys.columns, Tree) or set(keys.columns.entries) - set(_COLUMNS):
            raise fail(f"columns must name headings of {any_of(_COLUMNS)}")
        columns = {name: _word(node) for name, node in keys.columns.entries.items()}
    where: dict[str, str] = {}
    if keys.where is not None:
        if not isinstance(keys.where, Tree) or not all(
            isinstance(node, Scalar) for node in keys.where.entries.values()
        ):
            raise fail('where must be headings with a value each, such as "place: India"')
        where = {name: _word(node) for name, node in keys.where.entries.items()}
    return Map(schemes, flows, interval, duration, metrics, columns, where)


def check_time(text: str, what: str) -> str:
    """Checks a time in the notation of scenarios; a bare number is in seconds. Raises `DataError`."""
    from narrows.scenario.quantity import QuantityError, convert, parse

    text = f"{text} s" if text.strip().isdecimal() else text
    try:
        convert(parse(text, "span"), "span", None)
    except QuantityError as error:
        raise DataError(f"{what}: {error}") from None
    return text


def check_flows(text: str, what: str) -> int:
    """Checks a number of flows. Raises `DataError`."""
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise DataError(f'{what}: "{shorten(text)}" must be a number from 1 to 1000')
    return int(text)


def check_metric(quantity: str, text: str, what: str) -> str:
    """Checks the name of a metric for a quantity. Raises `DataError`."""
    if text not in METRICS[quantity]:
        raise DataError(f'{what}: "{shorten(text)}" must be {any_of(METRICS[quantity])}')
    return text


def _word(node: Any) -> str:
    from narrows.scenario.matrix import in_words

    return in_words(node)


def _entry(node: Any, is_lab: bool) -> str | None:
    from narrows.scenario.yaml_tree import Scalar

    if isinstance(node, Scalar):
        # Laboratories write schemes with parameters as texts.
        return None if node.is_null else (node.text if is_lab else _quote(node.text))
    return _flow_style(node)


def _flow_style(node: Any) -> str:
    from narrows.scenario.yaml_tree import Mapping as Tree
    from narrows.scenario.yaml_tree import Scalar, Sequence

    if isinstance(node, Tree):
        inner = ", ".join(f"{_quote(key)}: {_flow_style(value)}" for key, value in node.entries.items())
        return f"{{{inner}}}"
    if isinstance(node, Sequence):
        return f"[{', '.join(_flow_style(item) for item in node.items)}]"
    assert isinstance(node, Scalar)
    return "null" if node.is_null else _quote(node.text)


def _quote(text: str) -> str:
    import re

    return (
        text if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 ._/%+-]*", text) else "'" + text.replace("'", "''") + "'"
    )


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
    if not parts:
        return _quote(first)
    return (
        f"{{scheme: {_quote(first)}, " + ", ".join(f"{key}: {_quote(value)}" for key, _, value in parts) + "}"
    )


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
