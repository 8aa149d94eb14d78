"""Queues, rates, link elements and traffic, whose kinds and parameters the registry of the core declares.

Kinds are open: apart from its name, a kind has a mapping of parameters, in base units (bit/s, ns, bytes).
`narrows.scenario.registry` declares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

#: The link element (and its parameter) that delays every packet by the same constant time.
FIXED_DELAY = "delay"
BOTTLENECK = "bottleneck"
#: The note of models that says who trained them, and its value in those that Narrows trained.
TRAINED_BY, NARROWS = "trained_by", "Narrows"


class Values:
    """Values of parameters by name, in the order in which they are written."""

    __slots__ = ("params",)

    def __init__(self, params: Mapping[str, object]) -> None:
        self.params = dict(params)

    @classmethod
    def from_members(cls, members: Mapping[str, Any]) -> Self:
        """The values that an object of JSON has; an object with a `kind` is a component."""
        return cls({name: _value(value) for name, value in members.items()})

    def to_members(self) -> dict[str, object]:
        """The members of the object of JSON."""
        return {
            name: value.to_members() if isinstance(value, Values) else value
            for name, value in self.params.items()
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Values) and self._key() == other._key()

    def _key(self) -> tuple[object, ...]:
        return type(self), self.to_members()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_members()})"

    def number(self, name: str) -> int | float | None:
        """A number; None if it is absent."""
        value = self.params.get(name)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def integer(self, name: str) -> int | None:
        """A whole number; None if it is absent."""
        value = self.number(name)
        return value if isinstance(value, int) else None

    def flag(self, name: str) -> bool | None:
        """True or false; None if it is absent."""
        value = self.params.get(name)
        return value if isinstance(value, bool) else None

    def text(self, name: str) -> str | None:
        """A text; None if it is absent."""
        value = self.params.get(name)
        return value if isinstance(value, str) else None

    def steps(self, name: str) -> list[tuple[int, int]]:
        """Times and the values from then on; empty if there are none."""
        value = self.params.get(name)
        return [(at, amount) for at, amount in value] if isinstance(value, list) else []

    def digest(self, name: str) -> str | None:
        """The SHA-256 of a file; None if none is named."""
        value = self.params.get(name)
        return value.get("sha256") if isinstance(value, Mapping) else None

    @property
    def has_own_model(self) -> bool:
        """True if one of them is a model that Narrows trained."""
        files = (value for value in self.params.values() if isinstance(value, Mapping))
        return any(file.get(TRAINED_BY) == NARROWS for file in files)

    def part(self, name: str) -> Component | None:
        """The component inside this one, such as the queue of a bottleneck; None if there is none."""
        value = self.params.get(name)
        return value if isinstance(value, Component) else None


class Component(Values):
    """Values of the parameters of a kind."""

    __slots__ = ("kind",)

    def __init__(self, kind: str, params: Mapping[str, object]) -> None:
        super().__init__(params)
        self.kind = kind

    @classmethod
    def from_members(cls, members: Mapping[str, Any]) -> Self:
        """The component that an object of JSON describes."""
        params = {name: _value(value) for name, value in members.items() if name != "kind"}
        return cls(str(members["kind"]), params)

    def to_members(self) -> dict[str, object]:
        """The members of the object of JSON."""
        return {"kind": self.kind, **super().to_members()}

    def change(self, params: Mapping[str, object]) -> Self:
        """The same with other values of some parameters."""
        return type(self)(self.kind, {**self.params, **params})


class Element(Component):
    """An element of a link: a bottleneck (a rate with a queue), or a link element; it has a name."""

    __slots__ = ("name",)

    def __init__(self, kind: str, params: Mapping[str, object], name: str = "") -> None:
        super().__init__(kind, params)
        self.name = name

    @classmethod
    def from_members(cls, members: Mapping[str, Any]) -> Self:
        """The element that an object of JSON describes."""
        params = {name: _value(value) for name, value in members.items() if name not in ("name", "kind")}
        return cls(str(members.get("kind", "")), params, str(members.get("name", "")))

    def to_members(self) -> dict[str, object]:
        """The members of the object of JSON."""
        return {"name": self.name, **super().to_members()}

    def change(self, params: Mapping[str, object]) -> Self:
        """The same with other values of some parameters."""
        return type(self)(self.kind, {**self.params, **params}, self.name)

    def rename(self, name: str) -> Self:
        """The same with another name."""
        return type(self)(self.kind, self.params, name)

    @property
    def is_bottleneck(self) -> bool:
        """True for a rate with a queue."""
        return self.kind == BOTTLENECK

    @property
    def fixed_delay_ns(self) -> int:
        """The constant time by which it delays every packet."""
        return (self.kind == FIXED_DELAY and self.integer(FIXED_DELAY)) or 0

    @property
    def rate(self) -> Component | None:
        """The rate server of a bottleneck."""
        return self.part("rate")

    @property
    def queue(self) -> Component | None:
        """The queue of a bottleneck."""
        return self.part("queue")


def _value(value: Any) -> object:
    """A component for an object with a kind; any other value unchanged."""
    return Component.from_members(value) if isinstance(value, dict) and "kind" in value else value
