"""From a file to a scenario."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from narrows.errors import DataError
from narrows.scenario import overrides as _overrides
from narrows.scenario import registry as _registry
from narrows.scenario.model import Scenario
from narrows.scenario.overrides import Override
from narrows.scenario.resolve import resolve
from narrows.scenario.shipped import find
from narrows.scenario.yaml_tree import MOST_BYTES, parse, read_file

#: The name of a scenario that is read from standard input.
STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Loaded:
    """A scenario with its source file."""

    scenario: Scenario
    path: Path
    text: str
    overrides: list[Override]


def load(name: str | Path, overrides: list[Override] | None = None) -> Loaded:
    """Reads a scenario by path or shipped name (`-`: standard input), with changes from the command line."""
    if str(name) == STANDARD_INPUT:
        return load_text(_read_standard_input(), overrides, "standard input")
    path = find(str(name))
    text, tree = read_file(path)
    changes = overrides or []
    scenario = resolve(_overrides.apply(tree, changes), _registry.load(), path.name, path.parent)
    return Loaded(scenario, path, text, changes)


def _read_standard_input() -> str:
    data = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise DataError(f"standard input has more than {MOST_BYTES // 1_000_000} MB, so it is not a scenario")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError("standard input is not UTF-8 text") from None


def load_text(
    text: str,
    overrides: list[Override] | None = None,
    source: str = "scenario.yaml",
    *,
    is_point: bool = False,
) -> Loaded:
    """A scenario without a file, with changes; files that it names are relative to the working folder.
    Messages call it `source`. `is_point` is as in `resolve`.
    """
    path = Path("scenario.yaml")
    changes = overrides or []
    tree = _overrides.apply(parse(text, source), changes)
    scenario = resolve(tree, _registry.load(), path.name, Path(), is_point=is_point)
    return Loaded(scenario, path, text, changes)


def loads(text: str, name: str = "scenario.yaml") -> Scenario:
    """Resolves the text of a scenario."""
    return resolve(parse(text, name), _registry.load(), name)
