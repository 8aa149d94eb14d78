"""Single values: from written text to base units, by the kind of their key or parameter."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from msgspec import structs

from narrows import __version__
from narrows.errors import DataError
from narrows.scenario import quantity
from narrows.scenario.derived import quantity_of
from narrows.scenario.files import Files
from narrows.scenario.problems import Problems, Wrong, mapping_of
from narrows.scenario.quantity import EXAMPLES, QuantityError
from narrows.scenario.registry import Param
from narrows.scenario.yaml_tree import Node, Scalar, Sequence
from narrows.text import any_of, did_you_mean, shorten

#: Kinds whose values are lists of [time, value], each with the kind of the values.
STEPS = {"rate_steps": "rate", "span_steps": "span"}


@dataclass
class Context:
    """The context of a value that is being read."""

    problems: Problems
    #: Bandwidth-delay product in bytes at the current place, if it is known.
    bdp: Fraction | None = None
    #: The reason if it is unknown.
    no_bdp: str = quantity.NO_BDP
    #: The files that the scenario names.
    files: Files = field(default_factory=Files)
    #: True if files are models of schemes, not traces.
    models: bool = False

    def quiet(self) -> Context:
        """The same context without reporting problems."""
        return replace(self, problems=Problems())


@dataclass(frozen=True)
class Value:
    """A value as written, with the parameter that it sets and its context."""

    node: Node
    param: Param
    context: Context

    def read(self) -> Any:
        """The value in base units, or None after noting a problem."""
        with self.context.problems.note():
            return self.require()
        return None

    def require(self) -> Any:
        """The value in base units; raises `Wrong` if it is not of the kind or out of range."""
        if (read := _COLLECTIONS.get(self.param.kind)) is not None:
            return read(self)
        node, kind = self.node, self.param.kind
        if not isinstance(node, Scalar) or (node.is_null and kind != "choice"):
            raise self.wrong(f"must be {self._expected}")
        try:
            result = _SINGLE[kind](self, node)
            if not isinstance(result, str | bool | dict):
                self._check_range(result)
        except (QuantityError, DataError) as error:
            raise Wrong(node.mark, str(error), is_of_file=isinstance(error, DataError)) from None
        return result

    @property
    def _expected(self) -> str:
        if self.param.kind == "choice":
            return any_of(self.param.choices)
        is_model = self.param.kind == "file" and self.context.models
        return "the name of a model" if is_model else EXAMPLES[self.param.kind]

    def wrong(self, text: str) -> Wrong:
        """The problem that the value has."""
        return Wrong(self.node.mark, text)

    # -- texts -----------------------------------------------------------------------------------

    def text(self) -> str:
        """A text on one line, with white space as single spaces."""
        node = self.node
        if not isinstance(node, Scalar) or not node.text.strip() or node.is_null:
            raise self.wrong("must be a text")
        return " ".join(node.text.split())

    def items(self) -> list[Value]:
        """The items of a list."""
        if not isinstance(self.node, Sequence):
            raise self.wrong(f"must be a list, such as {self._example}")
        return [replace(self, node=item) for item in self.node.items]

    def members(self) -> dict[str, Value]:
        """The values of a mapping by their keys."""
        return {name: replace(self, node=node) for name, _, node in mapping_of(self.node, self._example)}

    @property
    def _example(self) -> str:
        return getattr(self.param, "example", "")

    def _texts(self) -> list[str]:
        return [item.text() for item in self.items()]

    def _values(self) -> dict[str, str]:
        return {name: value.text() for name, value in self.members().items()}

    def _choices(self) -> dict[str, list[str]]:
        """Names with a text or a list of texts each; null is a text here."""
        result = {}
        for name, value in self.members().items():
            items = value.items() if isinstance(value.node, Sequence) else [value]
            result[name] = [_text_or_null(item) for item in items]
        return result

    def _neighbour(self) -> str:
        """The name of a file in the folder of the file that is read."""
        text = self.text()
        if Path(text).is_absolute() or ".." in Path(text).parts:
            raise self.wrong("must be a file in the folder of the family, which is passed on as a whole")
        return text

    def _quantity(self) -> float:
        """A number, with or without a unit."""
        result = quantity_of(self.text())
        if result is None:
            raise self.wrong(f"must be a number, such as {self._example}")
        return float(result.value)

    def _format(self) -> str:
        """The format of the file, such as narrows/scenario/1: its only choice."""
        (expected,) = self.param.choices
        text = self.node.text if isinstance(self.node, Scalar) else ""
        prefix = expected.rsplit("/", 1)[0]
        if text != expected and re.fullmatch(re.escape(prefix) + r"/[0-9]+", text):
            raise self.wrong(
                f"the file is in the format {text}, which this version of narrows ({__version__}) can't"
                f" read; it reads {expected}"
            )
        if text != expected:
            raise self.wrong(f"must be {expected}")
        return text

    # -- lists -----------------------------------------------------------------------------------

    def _counts(self) -> list[int] | None:
        """A list of whole numbers; a single one needs no brackets."""
        items = self.node.items if isinstance(self.node, Sequence) else [self.node]
        if not items:
            raise self.wrong(f"must be {EXAMPLES['counts']}")
        count = structs.replace(self.param, kind="count")
        result = [Value(item, count, self.context).read() for item in items]
        return None if None in result else result

    def _steps(self) -> list[list[int]] | None:
        """A list of [time, value] with increasing times."""
        problems, kind = self.context.problems, self.param.kind
        if not isinstance(self.node, Sequence) or not self.node.items:
            raise self.wrong(f"must be {EXAMPLES[kind]}")
        before = len(problems.entries)
        params = Param("", "span", low=0), structs.replace(self.param, kind=STEPS[kind])
        result: list[list[int]] = []
        for item in self.node.items:
            with problems.note():
                if not isinstance(item, Sequence) or len(item.items) != 2:
                    raise Wrong(item.mark, f"must be a time and a value; write {EXAMPLES[kind]}")
                pairs = zip(item.items, params, strict=True)
                step = [Value(node, param, self.context).read() for node, param in pairs]
                if None in step:
                    continue
                if result and step[0] <= result[-1][0]:
                    shown, earlier = (quantity.show("span", entry[0]) for entry in (step, result[-1]))
                    problems.add(item.mark, f"the time {shown} is not after {earlier} of the step before")
                result.append(step)
        return result if len(problems.entries) == before else None

    # -- single values ---------------------------------------------------------------------------

    def _with_unit(self, node: Scalar) -> int | float:
        parsed = quantity.parse(node.text, self.param.kind)
        return quantity.convert(parsed, self.param.kind, self.context.bdp, self.context.no_bdp)

    def _file(self, node: Scalar) -> dict[str, str | None] | dict[str, str]:
        files = self.context.files
        return files.read_model(node) if self.context.models else files.read(node)

    def _flag(self, node: Scalar) -> bool:
        if node.flag is None:
            raise QuantityError(f'"{shorten(node.text)}" is neither true nor false')
        return node.flag

    def _choice(self, node: Scalar) -> str:
        choices = self.param.choices
        text = "null" if node.is_null and "null" in choices else node.text
        if text not in choices:
            hint = did_you_mean(text, choices)
            raise QuantityError(f'"{shorten(text)}" is not one of {any_of(choices)}{hint}')
        return text

    def _count(self, node: Scalar) -> int:
        if node.integer is None:
            raise QuantityError(f'"{shorten(node.text)}" is not {EXAMPLES["count"]}')
        if node.integer > quantity.LARGEST:
            raise QuantityError(f"{shorten(node.text)} is too large")
        return node.integer

    def _number(self, node: Scalar) -> int | float:
        kind = self.param.kind
        if kind == "ratio" and node.text.endswith("%"):
            return quantity.convert(quantity.parse(node.text, kind), kind, None)
        if node.number is None or not math.isfinite(node.number):
            what = "a share such as 0.5 or 50 %" if kind == "ratio" else EXAMPLES[kind]
            raise QuantityError(f'"{shorten(node.text)}" is not {what}')
        return node.number

    def _check_range(self, value: Any) -> None:
        kind, low, high = self.param.kind, self.param.low, self.param.high
        if (low is None or value >= low) and (high is None or value <= high):
            return
        if low is not None and high is not None:
            allowed = f"between {quantity.show(kind, low)} and {quantity.show(kind, high)}"
        elif low is not None:
            allowed = f"{quantity.show(kind, low)} or more"
        else:
            allowed = f"{quantity.show(kind, high)} or less"
        raise QuantityError(f"{quantity.show(kind, value)} is out of range; it must be {allowed}")


def _text_or_null(value: Value) -> str:
    node = value.node
    return node.text if isinstance(node, Scalar) and node.is_null else value.text()


#: The readers of values that are, or may be, more than one scalar, and of plain texts.
_COLLECTIONS: dict[str, Callable[[Value], Any]] = {
    "text": Value.text,
    "texts": Value._texts,
    "values": Value._values,
    "choices": Value._choices,
    "neighbour": Value._neighbour,
    "quantity": Value._quantity,
    "format": Value._format,
    "counts": Value._counts,
    **dict.fromkeys(STEPS, Value._steps),
}
#: The readers of scalars.
_SINGLE: dict[str, Callable[[Value, Scalar], Any]] = {
    **dict.fromkeys(("rate", "span", "bytes", "packets"), Value._with_unit),
    "ratio": Value._number,
    "number": Value._number,
    "file": Value._file,
    "flag": Value._flag,
    "choice": Value._choice,
    "count": Value._count,
}
#: The kinds of values.
KINDS = (*_SINGLE, *_COLLECTIONS)
