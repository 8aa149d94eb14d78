"""Metrics that programs report themselves, read from their output in the records.

A metric called `throughput_bps` in a manifest is the column `reported_throughput_bps`, whichever program
reports it. A value that is missing or not a number is not available, and the reason is one sentence.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from narrows.campaign.json_files import read_run
from narrows.campaign.own_metrics import NOT_REPORTED, SHOWN_UNITS
from narrows.documents.results import Measured, Metric
from narrows.documents.run import Flow, ReportPlan
from narrows.errors import DataError
from narrows.files import read_whole
from narrows.scenario.programs.reports import ERRORS, OUTPUT, steps
from narrows.scenario.quantity import UNITS
from narrows.text import shorten

PREFIX = "reported_"
ALL = "all"
#: Larger files are not read.
MOST_BYTES = 20_000_000
#: Further values of a flow are ignored.
_MOST_VALUES = 1_000_000
#: Longer lines are not searched.
_LONGEST_LINE = 10_000
#: Suffixes of names by the kind of unit.
_ENDING = {"rate": "_bps", "span": "_ns", "bytes": "_bytes", "packets": "_packets", "ratio": "_ratio"}
_NAMES = {OUTPUT: "standard output", ERRORS: "standard error"}
_COMBINED: dict[str, Callable[[list[float]], float]] = {
    "last": lambda values: values[-1],
    "first": lambda values: values[0],
    "mean": statistics.fmean,
    "median": statistics.median,
    "sum": math.fsum,
    "min": min,
    "max": max,
}


class NoValueError(ValueError):
    """Why a value does not exist, as a clause."""


def add(cells: Iterable[tuple[Path, Measured]]) -> list[Metric]:
    """Adds the metrics that programs report to measured records: pairs of a record's folder and its
    measurements, whose rows `flows` and reasons `absent` get new members. Returns the descriptions of these
    metrics.
    """
    described: dict[str, Metric] = {}
    listed = list(cells)
    entries = [_of_run(path, described) for path, _ in listed]
    for (_, measured), values in zip(listed, entries, strict=True):
        for row in measured.flows:
            reasons = measured.absent.setdefault(row.flow, {})
            for name in described:
                value = values.get((row.flow, name), NOT_REPORTED)
                row.metrics[name] = None if isinstance(value, str) else value
                if isinstance(value, str):
                    reasons[name] = value
    return list(described.values())


def _of_run(path: Path, described: dict[str, Metric]) -> dict[tuple[str, str], float | str]:
    """The values of a run by flow and metric, or the reasons why there are none."""
    result: dict[tuple[str, str], float | str] = {}
    flows: dict[str, list[tuple[str | None, float | str]]] = {}
    tested = 0
    for flow in read_run(path).flows:
        tested += not flow.background
        for short, plan in flow.reports.items():
            name = PREFIX + short
            description = _description(short, plan, flow.program_name)
            known = described.setdefault(name, description)
            value: float | str
            if known.unit != description.unit:
                here = description.unit or "no unit"
                value = f"it is in {here} here, elsewhere in {known.unit or 'none'}"
            else:
                try:
                    value = _value(path / "logs", flow, plan)
                except NoValueError as error:
                    value = str(error)
            result[(str(flow.flow), name)] = value
            if not flow.background:
                flows.setdefault(name, []).append((plan.flows, value))
    for name, values in flows.items():
        some = len(values) < tested
        result[(ALL, name)] = "only some of the flows report it" if some else _of_all(values)
    return result


def _of_all(values: list[tuple[str | None, float | str]]) -> float | str:
    """The value of all flows together."""
    (how, first), *others = values
    reason = next((value for _, value in values if isinstance(value, str)), None)
    if reason is not None or not others:
        return reason if reason is not None else first
    if how is None:
        return "it is reported per flow"
    return _COMBINED[how]([value for _, value in values if not isinstance(value, str)])


def _description(short: str, plan: ReportPlan, program: str) -> Metric:
    """The metric, as results describe metrics."""
    kind, _ = UNITS.get(plan.unit, ("", 1))
    ending = _ENDING.get(kind) or next((end for end in SHOWN_UNITS if short.endswith(end)), "")
    base, shown, scale = (plan.unit, plan.unit, 1.0)
    if kind or (ending and not plan.unit):
        base, shown, scale = SHOWN_UNITS[ending]
    label = short.removesuffix(ending).replace("_", " ").strip() or short
    return Metric(
        name=PREFIX + short,
        label=f"{label} (reported)",
        unit=base,
        show_unit=shown,
        show_scale=scale,
        better=plan.better,
        scope="both",
        links=False,
        happened=None,
        definition=plan.what or f"The value that the program reports as {short}.",
        own=None,
        source=f"the program {program}",
    )


def _value(logs: Path, flow: Flow, plan: ReportPlan) -> float:
    """The value of one flow in base units. Raises `NoValueError`."""
    text, name = _text(logs, flow, plan)
    if plan.json is not None:
        result, what = list(_in_json(_parse(text, name), plan.json)), plan.json
    elif plan.ndjson is not None:
        result, what = list(_in_lines(text, plan.ndjson)), plan.ndjson
    else:
        result, what = list(_matches(text, plan.regex or "")), f"match of {plan.regex}"
    if not result:
        raise NoValueError(f"{name} has no {shorten(what)}")
    if len(result) > _MOST_VALUES:
        raise NoValueError(f"{name} has more than {_MOST_VALUES} values")
    values = [_number(item, name, what) for item in result]
    _, factor = UNITS.get(plan.unit, ("", 1))
    return _COMBINED[plan.combine](values) * float(factor)


def _text(logs: Path, flow: Flow, plan: ReportPlan) -> tuple[str, str]:
    """The text in which the values are, and its name in sentences."""
    side, where = plan.side, plan.place
    stream = {OUTPUT: 0, ERRORS: 1}.get(where)
    if stream is None:
        name = f"the file {where} of the {side}"
        path = logs / f"flow-{flow.flow}-{side}" / where
        if not path.resolve().is_relative_to(logs.resolve()):
            raise NoValueError(f"{name} is not in its folder")
        if not path.is_file():
            raise NoValueError(f"{name} does not exist")
    else:
        name = f"the {_NAMES[where]} of the {side}"
        process = flow.process(side)
        if not process.printed[stream]:
            raise NoValueError(f"{name} is empty")
        if process.printed[stream] > process.kept[stream] and plan.json is not None:
            raise NoValueError(f"{name} was cut, see output among its limits")
        path = logs / f"flow-{flow.flow}-{side}{('.out', '.err')[stream]}"
    try:
        return read_whole(path, "output", MOST_BYTES).decode(errors="replace"), name
    except DataError as error:
        raise NoValueError(f"{name} {error}") from None


def _parse(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise NoValueError(f"{name} is not a JSON document") from None


def _in_json(document: Any, path: str) -> Iterator[Any]:
    """The values at a path."""
    values = [document]
    for step in steps(path):
        values = [inner for value in values for inner in _below(value, step)]
    yield from values


def _below(value: Any, step: str | int) -> list[Any]:
    if step == "*":
        return value if isinstance(value, list) else []
    if isinstance(step, int):
        return [value[step]] if isinstance(value, list) and step < len(value) else []
    return [value[step]] if isinstance(value, dict) and step in value else []


def _in_lines(text: str, path: str) -> Iterator[Any]:
    """The values at a path in each line that is JSON; programs also print other lines."""
    for line in text.splitlines():
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            continue
        yield from _in_json(document, path)


def _matches(text: str, pattern: str) -> Iterator[str]:
    expression = re.compile(pattern)
    for line in text.splitlines():
        for match in expression.finditer(line[:_LONGEST_LINE]):
            yield match.group(1) or ""


def _number(value: Any, name: str, what: str) -> float:
    """Converts a value to a number: text is parsed, everything else is refused."""
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise NoValueError(f"{shorten(json.dumps(value))} is not a number ({shorten(what)} in {name})")
