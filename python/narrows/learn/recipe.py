"""Recipes: everything that determines a trained model besides its seed.

A recipe is a YAML file of numbers in base units. The trainers in Rust define its keys (`drivers/learn`); this
module finds the file and names the line of an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from narrows.errors import DataError
from narrows.files import read_whole
from narrows.scenario.yaml_tree import Mapping, Node, Scalar, Sequence, parse
from narrows.text import did_you_mean

#: Recipes that come with Narrows, by their names.
FOLDER = Path(__file__).parent / "recipes"
_MOST_BYTES = 1_000_000


@dataclass(frozen=True)
class Recipe:
    """A recipe as read."""

    path: Path
    text: str
    tree: Mapping

    @property
    def scheme(self) -> str | None:
        """The scheme whose models it makes, if it says so."""
        node = self._scalar("scheme")
        return node.text if node else None

    @property
    def rounds(self) -> int | None:
        """The number of rounds, if it is a whole number."""
        node = self._scalar("rounds")
        return node.integer if node else None

    def _scalar(self, key: str) -> Scalar | None:
        node = self.tree.entries.get(key)
        return node if isinstance(node, Scalar) else None

    def to_json(self) -> str:
        """As the trainers read it."""
        return json.dumps(_to_plain(self.tree))

    def locate(self, problem: str) -> str:
        """The problem with file and line of the first key that it names, or at which reading has stopped."""
        if place := re.search(r" at line 1 column (\d+)$", problem):
            keys = re.findall(r'"(\w+)":', self.to_json()[: int(place[1])])
            problem = problem[: place.start()]
            # A message about a field names it.
            if keys and "field `" not in problem:
                problem = f"{keys[-1]}: {problem}"
        words = re.findall(r"[A-Za-z_]+(?:\[\d+\])?", problem)
        for word in words:
            for node in _values(self.tree, re.sub(r"\[\d+\]", "", word)):
                return f"{self.path}:{node.mark.line}: {problem}"
        return f"{self.path}: {problem}"


def list_recipes() -> list[str]:
    """The names of the recipes that come with Narrows."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def find_recipe(name: str) -> Path:
    """The file of a recipe: a path, or the name of one that comes with Narrows."""
    path = Path(name)
    if path.is_file():
        return path
    shipped = FOLDER / f"{name}.yaml"
    if path.name == name and shipped.is_file():
        return shipped
    known = list_recipes()
    raise DataError(
        f"{name}: is neither a file nor a recipe{did_you_mean(name, known)}; recipes are {', '.join(known)}"
    )


def read_recipe(path: Path) -> Recipe:
    """Reads a recipe; raises `DataError` for text that is not YAML."""
    text = read_whole(path, "recipe", _MOST_BYTES).decode("utf-8", "replace")
    return Recipe(path, text, parse(text, str(path)))


def with_rounds(text: str, rounds: int) -> str:
    """The text of a recipe with another number of rounds."""
    changed, count = re.subn(r"(?m)^rounds:.*$", f"rounds: {rounds}", text)
    return changed if count else f"{text.rstrip()}\nrounds: {rounds}\n"


def _to_plain(node: Node) -> object:
    if isinstance(node, Mapping):
        return {key: _to_plain(value) for key, value in node.entries.items()}
    if isinstance(node, Sequence):
        return [_to_plain(item) for item in node.items]
    if node.is_null:
        return None
    if node.flag is not None:
        return node.flag
    if node.integer is not None:
        return node.integer
    return node.text if node.number is None else node.number


def _values(tree: Node, key: str) -> Iterator[Node]:
    if isinstance(tree, Mapping):
        for name, value in tree.entries.items():
            if name == key:
                yield value
            yield from _values(value, key)
    elif isinstance(tree, Sequence):
        for item in tree.items:
            yield from _values(item, key)
