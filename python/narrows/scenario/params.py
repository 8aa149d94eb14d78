"""Values of parameters and choices from the registry: from written text to base units."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from msgspec import structs

from narrows.documents.components import Component
from narrows.documents.resolved import Params
from narrows.errors import DataError
from narrows.scenario import quantity
from narrows.scenario.files import Files
from narrows.scenario.problems import Problems, Wrong, unknown_key
from narrows.scenario.quantity import EXAMPLES, NoUnitError, QuantityError
from narrows.scenario.registry import Entry, Param
from narrows.scenario.yaml_tree import Mapping, Node, Scalar, Sequence
from narrows.text import any_of, did_you_mean, shorten

_WITH_UNIT = ("rate", "span", "bytes", "packets")
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


def read_value(value: Node, param: Param, context: Context) -> Any:
    """The value of a parameter in base units, or None after noting a problem."""
    with context.problems.note():
        return require(value, param, context)
    return None


def require(value: Node, param: Param, context: Context) -> Any:
    """The same, but raises `Wrong` instead."""
    if param.kind == "counts":
        return _counts(value, param, context)
    if param.kind in STEPS:
        return _steps(value, param, context)
    if not isinstance(value, Scalar) or (value.is_null and param.kind != "choice"):
        is_model = param.kind == "file" and context.models
        raise Wrong(value.mark, f"must be {'the name of a model' if is_model else EXAMPLES[param.kind]}")
    try:
        result = _convert(value, param, context)
        _check_range(result, param)
    except (QuantityError, DataError) as error:
        raise Wrong(value.mark, str(error), is_of_file=isinstance(error, DataError)) from None
    return result


def _counts(value: Node, param: Param, context: Context) -> list[int] | None:
    """A list of whole numbers; a single one needs no brackets."""
    items = value.items if isinstance(value, Sequence) else [value]
    if not items:
        raise Wrong(value.mark, f"must be {EXAMPLES[param.kind]}")
    result = [read_value(item, structs.replace(param, kind="count"), context) for item in items]
    return None if None in result else result


def _steps(value: Node, param: Param, context: Context) -> list[list[int]] | None:
    """A list of [time, value] with increasing times."""
    problems = context.problems
    if not isinstance(value, Sequence) or not value.items:
        raise Wrong(value.mark, f"must be {EXAMPLES[param.kind]}")
    before = len(problems.entries)
    time = Param("", "span", low=0)
    inner = structs.replace(param, kind=STEPS[param.kind])
    result: list[list[int]] = []
    for item in value.items:
        with problems.note():
            if not isinstance(item, Sequence) or len(item.items) != 2:
                raise Wrong(item.mark, f"must be a time and a value; write {EXAMPLES[param.kind]}")
            step = [read_value(item.items[0], time, context), read_value(item.items[1], inner, context)]
            if None in step:
                continue
            if result and step[0] <= result[-1][0]:
                shown, earlier = (quantity.show("span", entry[0]) for entry in (step, result[-1]))
                problems.add(item.mark, f"the time {shown} is not after {earlier} of the step before")
            result.append(step)
    return result if len(problems.entries) == before else None


def _convert(value: Scalar, param: Param, context: Context) -> Any:
    kind = param.kind
    if kind in _WITH_UNIT:
        return quantity.convert(quantity.parse(value.text, kind), kind, context.bdp, context.no_bdp)
    if kind == "file":
        return context.files.read_model(value) if context.models else context.files.read(value)
    if kind == "flag":
        if value.flag is None:
            raise QuantityError(f'"{shorten(value.text)}" is neither true nor false')
        return value.flag
    if kind == "choice":
        if value.text not in param.choices:
            hint = did_you_mean(value.text, param.choices)
            raise QuantityError(f'"{shorten(value.text)}" is not one of {any_of(param.choices)}{hint}')
        return value.text
    if kind == "count":
        if value.integer is None:
            raise QuantityError(f'"{shorten(value.text)}" is not {EXAMPLES[kind]}')
        if value.integer > quantity.LARGEST:
            raise QuantityError(f"{shorten(value.text)} is too large")
        return value.integer
    if kind == "ratio" and value.text.endswith("%"):
        return quantity.convert(quantity.parse(value.text, kind), kind, None)
    if value.number is None or not math.isfinite(value.number):
        what = "a share such as 0.5 or 50 %" if kind == "ratio" else EXAMPLES[kind]
        raise QuantityError(f'"{shorten(value.text)}" is not {what}')
    return value.number


def _check_range(value: Any, param: Param) -> None:
    if isinstance(value, str | bool | dict):
        return
    low, high = param.low, param.high
    if (low is None or value >= low) and (high is None or value <= high):
        return
    shown = quantity.show(param.kind, value)
    if low is not None and high is not None:
        allowed = f"between {quantity.show(param.kind, low)} and {quantity.show(param.kind, high)}"
    elif low is not None:
        allowed = f"{quantity.show(param.kind, low)} or more"
    else:
        allowed = f"{quantity.show(param.kind, high)} or less"
    raise QuantityError(f"{shown} is out of range; it must be {allowed}")


def read_params(
    given: Mapping,
    params: tuple[Param, ...],
    owner: str,
    context: Context,
    ignore: tuple[str, ...] = (),
) -> Params:
    """All parameters of an entry of the registry: the written ones, and the defaults of the others."""
    known = {param.name: param for param in params}
    values: Params = {}
    for key, mark, value in given:
        if key in ignore:
            continue
        if key not in known:
            if known:
                context.problems.unknown_key(mark, key, known)
            else:
                context.problems.add(mark, f"{owner} takes no parameters; remove it")
            continue
        values[key] = read_value(value, known[key], context)
    for param in params:
        if param.name in given.entries:
            continue
        if param.required:
            needed = f"{param.name}: {EXAMPLES[param.kind]}"
            if param.kind == "file" and context.models:
                needed = f"a model, such as {{{owner}: NAME}}; narrows models lists those that are installed"
            context.problems.add(given.mark, f"{owner} needs {needed}")
        values[param.name] = param.default
        if param.kind == "file" and context.models and param.default is not None:
            values[param.name] = _default_model(param, given, context)
    return {param.name: values.get(param.name) for param in params}


def _default_model(param: Param, given: Mapping, context: Context) -> dict[str, str | None] | None:
    try:
        return context.files.read_default_model(param.default)
    except DataError as error:
        context.problems.add(given.mark, str(error), is_of_file=True)
        return None


def read_entry(
    value: Node,
    family: dict[str, Entry],
    what: str,
    context: Context,
    *,
    any_shorthand: bool = False,
) -> Component | None:
    """An entry of a family of the registry: `unlimited`, `{droptail: 75 kB}`, ....

    With `any_shorthand` a bare quantity is accepted too (`rate: 12 Mbit/s`): for the first member of the
    family whose short form accepts it.
    """
    with context.problems.note():
        if isinstance(value, Mapping):
            if len(value.entries) != 1:
                raise Wrong(value.mark, f"must name one {what}: {any_of(family)}")
            ((name, mark, inner),) = value
            if name not in family:
                raise unknown_key(mark, name, family)
            return entry_from(inner, family[name], context)
        if not isinstance(value, Scalar) or value.is_null:
            raise Wrong(value.mark, f"must name a {what}: {any_of(family)}")
        if value.text in family:
            return entry_from(Mapping(value.mark), family[value.text], context)
        if any_shorthand:
            return entry_from(value, _for_quantity(value, family, what), context)
        hint = did_you_mean(value.text, family) or _suggest_entry(value, family)
        known = hint or "; known: " + ", ".join(family)
        raise Wrong(value.mark, f'unknown {what} "{shorten(value.text)}"{known}')
    return None


def entry_from(value: Node, entry: Entry, context: Context) -> Component | None:
    """The parameters of one named entry, given by name or as one quantity whose unit selects the
    parameter.
    """
    if isinstance(value, Scalar) and value.is_null:
        value = Mapping(value.mark)
    if isinstance(value, Mapping):
        return Component(entry.name, read_params(value, entry.params, entry.name, context))
    with context.problems.note():
        return _from_quantity(value, entry, context)
    return None


def _from_quantity(value: Scalar | Sequence, entry: Entry, context: Context) -> Component:
    candidates = [one for name in entry.shorthand if (one := entry.param(name))]
    if not candidates:
        how = "its parameters by name" if entry.params else "it alone"
        raise Wrong(value.mark, f"{entry.name} takes no value; write {how}")
    lists = [candidate for candidate in candidates if candidate.kind in ("counts", *STEPS)]
    if lists and (isinstance(value, Sequence) or len(lists) == len(candidates)):
        param = lists[0]
    elif not isinstance(value, Scalar):
        raise Wrong(value.mark, f"must be {any_of(EXAMPLES[p.kind] for p in candidates)}")
    else:
        param = _fitting(value, candidates)
    given = Mapping(value.mark, {param.name: value}, {param.name: value.mark})
    result = read_value(value, param, context)
    # The other parameters keep their defaults; a problem with the value is noted once, above.
    values = read_params(given, entry.params, entry.name, context.quiet())
    missing = [item.name for item in entry.params if item.required and item.name != param.name]
    for name in missing:
        wanted = next(EXAMPLES[item.kind] for item in entry.params if item.name == name)
        context.problems.add(value.mark, f"{entry.name} also needs {name}: {wanted}; write all by name")
    return Component(entry.name, {**values, param.name: result})


def _fitting(value: Scalar, candidates: list[Param]) -> Param:
    """The first parameter whose kind accepts the quantity as written."""
    plain = [param for param in candidates if param.kind not in (*_WITH_UNIT, "ratio")]
    try:
        parsed = quantity.parse(value.text, candidates[0].kind)
    except QuantityError as error:
        if plain:
            return plain[0]
        kinds = [param.kind for param in candidates]
        # All candidates, such as bytes and packets of a queue.
        said = error.of_kinds(kinds) if isinstance(error, NoUnitError) and len(kinds) > 1 else error
        raise Wrong(value.mark, str(said)) from None
    for param in candidates:
        if quantity.fits(parsed, param.kind):
            return param
    wanted = any_of(EXAMPLES[param.kind] for param in candidates)
    raise Wrong(value.mark, f"{shorten(value.text)} is not {wanted}")


def _shorthands(family: dict[str, Entry]) -> list[tuple[Entry, Param]]:
    """The entries of a family that accept one quantity, with the parameters that it can set."""
    return [
        (entry, param)
        for entry in family.values()
        for name in entry.shorthand
        if (param := entry.param(name))
    ]


def _for_quantity(value: Scalar, family: dict[str, Entry], what: str) -> Entry:
    """The entry for which a bare quantity is the short form."""
    known = _shorthands(family)
    if not known:
        raise Wrong(value.mark, f"must name a {what}: {any_of(family)}")
    first = known[0][1].kind
    try:
        parsed = quantity.parse(value.text, first)
    except QuantityError as error:
        raise Wrong(value.mark, f"{error}{did_you_mean(value.text, family)}") from None
    for entry, param in known:
        if quantity.fits(parsed, param.kind):
            return entry
    raise Wrong(value.mark, f"{shorten(value.text)} is not {EXAMPLES[first]}")


def _suggest_entry(value: Scalar, family: dict[str, Entry]) -> str:
    """For a bare amount in place of a queue: suggests the correct form."""
    try:
        parsed = quantity.parse(value.text)
    except QuantityError:
        return ""
    for entry, param in _shorthands(family):
        if quantity.fits(parsed, param.kind):
            return f"; write {{{entry.name}: {shorten(value.text)}}}"
    return ""
