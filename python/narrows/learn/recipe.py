"""Recipes: everything that determines a trained model besides its seed.

A recipe is a YAML file of numbers in base units. The trainers in Rust define its keys (`drivers/learn`); this
module finds the file and names the line of an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from narrows.errors import DataError
from narrows.files import read_whole
from narrows.learn.recipe_errors import locate, to_lines
from narrows.scenario.yaml_tree import Mapping, Scalar, parse
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
        return "\n".join(text for text, _ in to_lines(self.tree))

    def locate(self, problem: str) -> str:
        """The problem of a trainer with file, line and column."""
        return locate(problem, self.tree)


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
