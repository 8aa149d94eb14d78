"""A list of models for a scheme: `{indigo: [indigo-1-32, indigo]}` means the first one that is at hand.

A name is at hand if it is installed or comes with Narrows, a file if it exists. The scheme is then the same
as if that model alone had been written.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from narrows.errors import DataError, Problem
from narrows.scenario.problems import Wrong
from narrows.scenario.yaml_tree import Mark, Scalar, Sequence
from narrows.text import shorten

if TYPE_CHECKING:
    from narrows.scenario.files import Files

_EXAMPLE = "a list of the names of models, such as [indigo-1-32, indigo]"


@dataclass(frozen=True)
class ModelChoice:
    """The model chosen from a list."""

    model: Scalar
    #: The models before it in the list, none of which is at hand; all of the list if no model is.
    passed: tuple[str, ...]
    mark: Mark
    #: True if a model is at hand.
    is_at_hand: bool = True

    def describe(self, *, is_ours: bool) -> Problem | None:
        """Why this model is used; None if it is the first. `is_ours`: trained by Narrows."""
        if not self.is_at_hand and len(self.passed) > 1:
            return self._note(f"{self._why}; the row is called by the first")
        if not self.is_at_hand or not self.passed:
            return None
        whose = " (trained by Narrows)" if is_ours else ""
        return self._note(f"{shorten(self.model.text)}{whose} is used, since {self._why}")

    def describe_double(self, label: str) -> Problem:
        """Why the row is left out: `label` is a row with the same model."""
        why = f"{self._why}, and " if self.passed else ""
        return self._note(f"is left out, since {why}{label} is in the list already")

    @property
    def _why(self) -> str:
        *names, last = map(shorten, self.passed)
        if not names:
            return f"{last} is not at hand"
        if len(names) == 1:
            return f"neither {names[0]} nor {last} is at hand"
        return f"none of {', '.join(names)} and {last} is at hand"

    def _note(self, text: str) -> Problem:
        return Problem(str(self.mark), self.mark.path, text)


def choose(written: Sequence, kind: str, files: Files) -> ModelChoice:
    """The first model of a list that is at hand; raises `Wrong` for lists that are not of models of this
    kind.

    If none is, it is the first name, which can be added; if there are only files, the first of them.
    """
    from narrows.models.store import is_at_hand, is_name

    items = _read_items(written)
    at_hand: list[Scalar] = []
    for item in items:
        try:
            if is_at_hand(item.text, files.base_of(item)):
                at_hand.append(item)
        except DataError as error:
            raise Wrong(item.mark, str(error), is_of_file=True) from None
    if not at_hand:
        first = next((item for item in items if is_name(item.text)), items[0])
        return ModelChoice(first, tuple(item.text for item in items), written.mark, is_at_hand=False)
    # The scheme checks the chosen one.
    for item in at_hand[1:]:
        _check_kind(item, kind, files)
    passed = items[: items.index(at_hand[0])]
    return ModelChoice(at_hand[0], tuple(item.text for item in passed), written.mark)


def _read_items(written: Sequence) -> list[Scalar]:
    if not written.items:
        raise Wrong(written.mark, f"is an empty list; write the name of a model, or {_EXAMPLE}")
    items: list[Scalar] = []
    names: set[str] = set()
    for item in written.items:
        plain = isinstance(item, Scalar) and item.flag is None and item.number is None and not item.is_null
        if not isinstance(item, Scalar) or not plain or not item.text:
            raise Wrong(item.mark, f"must be the name of a model in {_EXAMPLE}")
        if item.text in names:
            raise Wrong(item.mark, f"{shorten(item.text)} is in the list already; remove it")
        names.add(item.text)
        items.append(item)
    return items


def _check_kind(item: Scalar, kind: str, files: Files) -> None:
    """Refuses a model of another kind. One that can't be read is not used, and ignored."""
    from narrows.models.format import summary
    from narrows.models.store import find, load

    with contextlib.suppress(DataError):
        path = find(item.text, files.base_of(item))
        if path is not None and (other := summary(load(path)[1]).kind) != kind:
            text = f"{shorten(item.text)} is of the kind {other}, where a model of the kind {kind} is needed"
            raise Wrong(item.mark, text, is_of_file=True)
