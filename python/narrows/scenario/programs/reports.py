"""Metrics that a program reports itself, as described by its manifest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from narrows.scenario.problems import Wrong
from narrows.scenario.quantity import UNITS
from narrows.scenario.yaml_tree import Node, Scalar
from narrows.text import did_you_mean, shorten

#: Ways of locating values; each metric has one.
FINDERS = ("json", "ndjson", "regex")
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


def file_in_log(value: Node, kinds: str = "a file") -> str:
    """The path of a file that a program writes into `{log}`, relative to that folder; raises `Wrong`, which
    asks for `kinds`.
    """
    text = value.text if isinstance(value, Scalar) and not value.is_null else ""
    path = PurePosixPath(text.removeprefix("{log}/"))
    if not text or path.is_absolute() or ".." in path.parts or "{" in str(path) or "\0" in text:
        raise Wrong(value.mark, f"must be {kinds} that the program writes into {{log}}")
    return str(path)


def read_unit(value: Node, text: str) -> str:
    """A unit. Others than ours are shown as written, unless they resemble one: that raises `Wrong`."""
    hint = did_you_mean(text, UNITS)
    if text not in UNITS and hint and text.lower() in {unit.lower() for unit in UNITS}:
        raise Wrong(value.mark, f'unknown unit "{shorten(text)}"{hint}')
    return text


def read_pattern(finder: str, value: Node) -> str:
    """The place of a value in output, or the regular expression for it; raises `Wrong`."""
    if not isinstance(value, Scalar) or value.is_null or not value.text:
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
