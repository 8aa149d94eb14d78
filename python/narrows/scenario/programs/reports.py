"""Metrics that a program reports itself, as described by its manifest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from narrows.scenario.keys import Key
from narrows.scenario.problems import Problems, Wrong, mapping_of
from narrows.scenario.quantity import UNITS
from narrows.scenario.yaml_tree import Mapping, Node, Scalar, Sequence
from narrows.text import any_of, did_you_mean, shorten

#: Ways of locating values; each metric has one.
FINDERS = ("json", "ndjson", "regex")
BETTER = ("higher", "lower")
#: How several values of a flow are combined.
COMBINE = ("last", "first", "mean", "median", "sum", "min", "max")
#: How values of several flows are combined.
FLOWS = ("sum", "mean", "median", "min", "max")
OUTPUT, ERRORS = "output", "errors"
MOST = 20
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}$")
#: `end.sum.retransmits`, `intervals[*].sum.rtt`, `streams[0].id`.
_STEP = re.compile(r"(?P<key>[^.\[\]]+)|\[(?P<index>\d{1,9}|\*)\]")
_LONGEST_PATH = 300


@dataclass(frozen=True)
class Report:
    """One metric that a program reports."""

    name: str
    #: The process that reports it; `output`, `errors`, or a file in its log folder.
    side: str
    where: str
    finder: str
    pattern: str
    unit: str
    better: str | None
    combine: str
    #: How the values of all flows are combined; `None` without a total.
    flows: str | None
    what: str

    def to_json(self) -> dict[str, str | None]:
        """As plain data."""
        return {
            "side": self.side,
            "in": self.where,
            self.finder: self.pattern,
            "unit": self.unit,
            "better": self.better,
            "combine": self.combine,
            "flows": self.flows,
            "what": self.what,
        }


def steps(path: str) -> list[str | int]:
    """The steps of a path through JSON; `*` means every item of a list. Raises `ValueError` for an invalid
    path.
    """
    result: list[str | int] = []
    at = 0
    while at < len(path):
        if path[at] == "." and at > 0:
            at += 1
        match = _STEP.match(path, at)
        if match is None:
            raise ValueError(
                f'"{shorten(path)}" is not a path such as end.sum.retransmits or intervals[*].sum.rtt'
            )
        index = match["index"]
        result.append(match["key"] if index is None else index if index == "*" else int(index))
        at = match.end()
    if not result:
        raise ValueError("is empty")
    return result


def read_reports(
    mapping: Mapping, keys: dict[str, Key], data: str, shared: bool, problems: Problems
) -> tuple[Report, ...]:
    """The metrics of a manifest. `data` is the side that sends; `shared` means that one listener serves all
    flows.
    """
    reports = []
    if len(mapping.entries) > MOST:
        problems.add(mapping.mark, f"has {len(mapping.entries)} metrics; {MOST} are the most")
        return ()
    for name, mark, value in mapping:
        with problems.note():
            if not _NAME.match(name):
                raise Wrong(mark, "is not a name of a metric; use lower-case letters, digits and _")
            inner = mapping_of(value, "{json: end.sum.bits_per_second, unit: bit/s}")
            for _ in problems.check_keys(inner, keys):
                pass
            reports.append(_report(name, inner, data, shared))
    return tuple(reports)


def _report(name: str, mapping: Mapping, data: str, shared: bool) -> Report:
    finders = [key for key in FINDERS if key in mapping.entries]
    if len(finders) != 1:
        raise Wrong(mapping.mark, f"needs one of {any_of(FINDERS)}, and only one")
    finder = finders[0]
    side = _choice(mapping, "side", ("connector", "listener"), data) or data
    if shared and side == "listener":
        raise Wrong(
            mapping.mark, "one listener serves all flows, so only what the connector reports is of a flow"
        )
    return Report(
        name=name,
        side=side,
        where=_where(mapping),
        finder=finder,
        pattern=_pattern(finder, mapping.entries[finder]),
        unit=_text(mapping, "unit"),
        better=_choice(mapping, "better", BETTER, None),
        combine=_choice(mapping, "combine", COMBINE, "last") or "last",
        flows=_choice(mapping, "flows", FLOWS, None),
        what=_text(mapping, "what"),
    )


def _text(mapping: Mapping, key: str) -> str:
    value = mapping.entries.get(key)
    if value is None:
        return ""
    if not isinstance(value, Scalar) or value.is_null or not value.text.strip():
        raise Wrong(value.mark, "must be a text")
    text = " ".join(value.text.split())
    if key == "unit" and text not in UNITS:
        hint = did_you_mean(text, UNITS)
        # Unknown units are shown as written, unless they resemble a known one.
        if hint and text.lower() in {unit.lower() for unit in UNITS}:
            raise Wrong(value.mark, f'unknown unit "{shorten(text)}"{hint}')
    return text


def _choice(mapping: Mapping, key: str, choices: tuple[str, ...], default: str | None) -> str | None:
    value = mapping.entries.get(key)
    if value is None:
        return default
    text = value.text if isinstance(value, Scalar) else ""
    if text not in choices:
        hint = did_you_mean(text, choices)
        raise Wrong(value.mark, f'"{shorten(text)}" is not one of {any_of(choices)}{hint}')
    return text


def _where(mapping: Mapping) -> str:
    value = mapping.entries.get("in")
    if value is None:
        return OUTPUT
    if isinstance(value, Scalar) and value.text in (OUTPUT, ERRORS):
        return value.text
    return file_in_log(value, "output, errors, or a file")


def file_in_log(value: Node, kinds: str = "a file") -> str:
    """The path of a file that a program writes into `{log}`, relative to that folder; raises `Wrong`, which
    asks for `kinds`.
    """
    text = value.text if isinstance(value, Scalar) and not value.is_null else ""
    path = PurePosixPath(text.removeprefix("{log}/"))
    if not text or path.is_absolute() or ".." in path.parts or "{" in str(path) or "\0" in text:
        raise Wrong(value.mark, f"must be {kinds} that the program writes into {{log}}")
    return str(path)


def _pattern(finder: str, value: Node) -> str:
    if isinstance(value, Sequence) or not isinstance(value, Scalar) or value.is_null or not value.text:
        raise Wrong(value.mark, "must be a text")
    text = value.text
    if len(text) > _LONGEST_PATH:
        raise Wrong(value.mark, f"is longer than {_LONGEST_PATH} letters")
    try:
        if finder == "regex":
            if re.compile(text).groups < 1:
                raise Wrong(value.mark, "needs a group around the number, such as rate=([0-9.]+)")
        else:
            steps(text)
    except re.error as error:
        raise Wrong(value.mark, f"is not a regular expression: {error}") from None
    except ValueError as error:
        raise Wrong(value.mark, str(error)) from None
    return text
