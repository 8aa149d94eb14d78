"""Values of parameters and choices from the registry: from written text to base units."""

from __future__ import annotations

from narrows.documents.components import Component
from narrows.documents.resolved import Params
from narrows.errors import DataError
from narrows.scenario import quantity
from narrows.scenario.declarations.value import STEPS, Context, Value
from narrows.scenario.problems import Wrong, unknown_key
from narrows.scenario.quantity import EXAMPLES, NoUnitError, QuantityError
from narrows.scenario.registry import Entry, Param
from narrows.scenario.yaml_tree import Mapping, Node, Scalar, Sequence
from narrows.text import any_of, did_you_mean, shorten

_WITH_UNIT = ("rate", "span", "bytes", "packets")


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
        values[key] = Value(value, known[key], context).read()
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
    result = Value(value, param, context).read()
    # The other parameters keep their defaults.
    others = tuple(item for item in entry.params if item is not param)
    values = read_params(Mapping(value.mark), others, entry.name, context.quiet()) if others else {}
    missing = [item.name for item in entry.params if item.required and item.name != param.name]
    for name in missing:
        wanted = next(EXAMPLES[item.kind] for item in entry.params if item.name == name)
        context.problems.add(value.mark, f"{entry.name} also needs {name}: {wanted}; write all by name")
    given = {item.name: result if item is param else values[item.name] for item in entry.params}
    return Component(entry.name, given)


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
