"""From a file to a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from narrows.scenario import overrides as _overrides
from narrows.scenario import registry as _registry
from narrows.scenario.model import Scenario
from narrows.scenario.overrides import Override
from narrows.scenario.resolve import resolve
from narrows.scenario.shipped import find
from narrows.scenario.yaml_tree import parse, read_file


@dataclass(frozen=True)
class Loaded:
    """A scenario with the file it came from."""

    scenario: Scenario
    path: Path
    text: str
    overrides: list[Override]


def load(name: str | Path, overrides: list[Override] | None = None) -> Loaded:
    """Reads a scenario by path or shipped name, with changes from the command line."""
    path = find(str(name))
    text, tree = read_file(path)
    changes = overrides or []
    scenario = resolve(_overrides.apply(tree, changes), _registry.load(), path.name, path.parent)
    return Loaded(scenario, path, text, changes)


def load_text(text: str, overrides: list[Override] | None = None) -> Loaded:
    """A scenario that is in no file, with changes; files that it names are relative to the working folder."""
    path = Path("scenario.yaml")
    changes = overrides or []
    tree = _overrides.apply(parse(text, path.name), changes)
    return Loaded(resolve(tree, _registry.load(), path.name, Path()), path, text, changes)


def loads(text: str, name: str = "scenario.yaml") -> Scenario:
    """Resolves the text of a scenario."""
    return resolve(parse(text, name), _registry.load(), name)
