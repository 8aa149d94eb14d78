"""Courses: the paths on which episodes take place, from a scenario.

A scenario with the key `sweep` has a course for each of its points; any other has one for each of its runs,
whose draws differ.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from narrows.errors import UsageError
from narrows.scenario.loading import load
from narrows.scenario.model import Scenario, cell_of
from narrows.scenario.overrides import Override
from narrows.scenario.registry import decided_outside
from narrows.scenario.shipped import find
from narrows.scenario.yaml_tree import read_file
from narrows.sweep.loading import load_sweep
from narrows.sweep.plan import KEY

#: The scenario of environments that name none.
DEFAULT_PATH = Path(__file__).with_name("random-paths.yaml")
#: Most courses that are drawn unless asked for otherwise.
DEFAULT_COURSES = 128


@dataclass(frozen=True)
class Course:
    """A path, as a cell whose seed each episode replaces."""

    #: The cell in JSON.
    text: str
    #: Contents of the files that it names, by their names in a folder.
    files: Mapping[str, bytes]


def load_courses(
    path: str | Path | Mapping[str, Any], most: int, changes: Mapping[str, Any] | None = None
) -> list[Course]:
    """At most `most` courses of a scenario: a file, a shipped name, or its content. `changes` sets keys, as
    `--set` does.

    Raises `NarrowsError` if the scenario is invalid or can't be simulated.
    """
    if most < 1:
        raise UsageError(f"paths is {most}; at least one path is required")
    if isinstance(path, Mapping):
        with tempfile.TemporaryDirectory(prefix="narrows-") as folder:
            file = Path(folder) / "scenario.yaml"
            file.write_text(yaml.safe_dump(dict(path), sort_keys=False), encoding="utf-8")
            return load_courses(file, most, changes)
    options = [Override("where", "where", "simulate"), *map(_override, (changes or {}).items())]
    before = decided_outside.set(True)
    try:
        return list(islice(_list_courses(str(path), options), most))
    finally:
        decided_outside.reset(before)


def _list_courses(name: str, options: list[Override]) -> Iterator[Course]:
    if KEY in read_file(find(name))[1].entries:
        loaded = load_sweep(name, options)
        for point in loaded.sweep.points():
            yield from _list_runs(loaded.scenario_at(point), 1)
    else:
        scenario = load(name, options).scenario
        yield from _list_runs(scenario, scenario.runs)


def _list_runs(scenario: Scenario, runs: int) -> Iterator[Course]:
    for run in range(1, runs + 1):
        for row in scenario.schemes:
            yield Course(cell_of(scenario, row, run).to_text(), scenario.files.stored)


def _override(change: tuple[str, Any]) -> Override:
    key, value = change
    return Override(key, key, value if isinstance(value, str) else json.dumps(value))
