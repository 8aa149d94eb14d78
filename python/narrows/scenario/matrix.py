"""The key `matrix`: the same experiment for every combination of some values.

`{path.forward.0.rate: [1 Mbit/s, 10 Mbit/s]}` runs every scheme once per rate and run. Each combination is
resolved as if its values had been written in place, and has separate rows in the results.

A key may have a `label` for display (`{label: capacity, values: [...]}`). A name that is not an address has
an expression (narrows.scenario.derived): a value derived from the others and shown beside them. `paired`
lists names whose values are combined one by one instead of in all combinations, `without` lists combinations
that are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

from msgspec import structs

from narrows.documents.resolved import SchemeRow, find_differences
from narrows.documents.results import Expectation
from narrows.errors import Problem, ScenarioError, UsageError
from narrows.scenario import overrides, pairs, real_path
from narrows.scenario.declarations.declaration import Schema
from narrows.scenario.declarations.schema import by_type
from narrows.scenario.derived import evaluate, quantity_of, suffix
from narrows.scenario.keys import KEYS
from narrows.scenario.model import Scenario
from narrows.scenario.problems import Problems
from narrows.scenario.quantity import QuantityError
from narrows.scenario.slugs import Slugs, slug_of
from narrows.scenario.words import check_visible, read_label
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence
from narrows.text import any_of, did_you_mean, shorten

KEY = "matrix"
#: Keys of the matrix that are not addresses.
PAIRED, WITHOUT = "paired", "without"
LABEL, VALUES = "label", "values"
LONGEST_LABEL = 40
#: These keys are the same for a whole campaign.
FIXED = (
    "schema",
    "name",
    "title",
    "question",
    "where",
    "runs",
    "seed",
    "report",
    "expect",
    "schemes",
    pairs.KEY,
    KEY,
)
MOST_COMBINATIONS = 1000
_EXAMPLE = "{path.forward.0.rate: [1 Mbit/s, 10 Mbit/s]}"


@dataclass(frozen=True)
class Axis:
    """One key of the matrix: its address, its display name and its values."""

    key: str
    values: list[Node]
    mark: Mark
    label: str | None = None
    name: str = ""


def resolve_all(tree: Mapping, resolve: Callable[[Mapping], Scenario]) -> Scenario:
    """Resolves all combinations of a scenario with a matrix into one scenario with all their rows."""
    entries = {key: value for key, value in tree.entries.items() if key != KEY}
    base = Mapping(tree.mark, entries, tree.key_marks)
    problems = Problems()
    written = tree.entries.get(KEY)
    axes = _axes(written, base, problems) if written is not None else []
    if real_path.is_wanted(tree):
        _check_for_hosts(tree, axes, problems)
    problems.raise_if_any()
    if real_path.asks_for_both(tree):
        key, directions = real_path.both_directions()
        axes.append(Axis(key, directions, directions[0].mark))
    axes = _name_axes(axes, problems)
    combinations = _combinations(axes, written, problems)
    derived = _derive(axes, combinations, written, problems)
    problems.raise_if_any()
    result: list[_Combination] = []
    for number, values in enumerate(combinations):
        changed = base.copy("")
        for axis, value in zip(axes, values, strict=True):
            _place(changed, axis.key, value)
        words = {axis.name: in_words(value) for axis, value in zip(axes, values, strict=True)}
        follows = {name: listed[number] for name, listed in derived.items()}
        result.append(_Combination(words, follows, resolve(changed)))
    return _merge(result, axes)


def _place(tree: Mapping, key: str, value: Node) -> None:
    option = str(value.mark)
    try:
        overrides.place(tree, key, value, option)
    except UsageError as error:
        text = str(error).removeprefix(f"{option}: ")
        raise ScenarioError([Problem(option, f"{KEY}.{key}", text)]) from None


def _axes(value: Node, scenario: Mapping, problems: Problems) -> list[Axis]:
    mapping = problems.expect_mapping(value, _EXAMPLE)
    axes: list[Axis] = []
    for key, mark, written in mapping or ():
        if key in (PAIRED, WITHOUT) or _is_derived(key, written):
            continue
        if key.split(".")[0] in FIXED:
            problems.add(mark, f"{key.split('.')[0]} is the same for a whole campaign; remove it")
            continue
        if key not in KEYS and "." not in key:
            meant = _addresses(scenario, key)
            hint = (
                f"did you mean {any_of(meant)}?"
                if meant
                else f"a matrix has addresses of values, as in {_EXAMPLE}"
            )
            problems.add(mark, f"unknown key; {hint}")
            continue
        label, values = _label_and_values(written, problems)
        if not isinstance(values, Sequence) or not values.items:
            problems.add(written.mark, f"must be a list of values such as in {_EXAMPLE}")
            continue
        before: set[str] = set()
        for item in values.items:
            shown, at = in_words(item), item.mark.at(f"{KEY}.{key}")
            with problems.note():
                check_visible(at, shown)
            if shown in before:
                problems.add(at, f"{shorten(shown)} is in the list already")
            before.add(shown)
        axes.append(Axis(key, values.items, mark, label))
    if mapping is not None and not axes and not problems.entries:
        problems.add(mapping.mark, f"needs a key with a list of values, such as {_EXAMPLE}")
    return axes


def _addresses(node: Node, key: str, at: str = "") -> list[str]:
    """The addresses of the values named `key` in the scenario."""
    if isinstance(node, Mapping):
        entries = list(node.entries.items())
    elif isinstance(node, Sequence):
        entries = [(str(number), item) for number, item in enumerate(node.items)]
    else:
        return []
    mine = [f"{at}{name}" for name, _ in entries if name == key]
    return mine + [text for name, value in entries for text in _addresses(value, key, f"{at}{name}.")]


def _is_derived(key: str, written: Node) -> bool:
    """True for a derived value: a word that is not a key of a scenario, with an expression."""
    return isinstance(written, Scalar) and "." not in key and key not in KEYS


def _label_and_values(written: Node, problems: Problems) -> tuple[str | None, Node]:
    """The label and the list of values of `{label: capacity, values: [...]}`; a bare list has no label."""
    if not isinstance(written, Mapping) or VALUES not in written.entries:
        return None, written
    for _ in problems.check_keys(written, (LABEL, VALUES)):
        pass
    label = written.entries.get(LABEL)
    return (_label(label, problems) if label is not None else None), written.entries[VALUES]


def _label(written: Node, problems: Problems) -> str | None:
    with problems.note():
        return read_label(written, f"must be a name of at most {LONGEST_LABEL} letters", LONGEST_LABEL)
    return None


def _check_for_hosts(tree: Mapping, axes: list[Axis], problems: Problems) -> None:
    for axis in axes:
        wrong = real_path.check_axis(axis.key)
        if wrong is None and real_path.asks_for_both(tree) and axis.key.startswith(real_path.KEY):
            wrong = f"{real_path.KEY} says both for it already; remove one of the two"
        if wrong is not None:
            problems.add(axis.values[0].mark.at(f"{KEY}.{axis.key}"), wrong)


def last_word(key: str) -> str:
    """The last word of an address, which is its short name: `rate` of `path.forward.0.rate`."""
    return next((part for part in reversed(key.split(".")) if not part.isdecimal()), key)


def _name_axes(axes: list[Axis], problems: Problems) -> list[Axis]:
    """The axes with their names: the label, the last word of the key, or the whole key if that is
    ambiguous.
    """
    last = [axis.label or last_word(axis.key) for axis in axes]
    named: list[Axis] = []
    for axis, word in zip(axes, last, strict=True):
        name = word if last.count(word) == 1 else axis.label or axis.key
        if any(name == other.name for other in named):
            problems.add(
                axis.mark, f'another key has the label "{shorten(name)}" as well; change one of them'
            )
        named.append(replace(axis, name=name))
    return named


def _beside(written: Node | None, key: str) -> Node | None:
    return written.entries.get(key) if isinstance(written, Mapping) else None


def _combinations(axes: list[Axis], written: Node | None, problems: Problems) -> list[tuple[Node, ...]]:
    """The combinations of values to run, each with a value for every axis."""
    groups = [[axis] for axis in axes]
    paired = _beside(written, PAIRED)
    if paired is not None:
        groups = _pairs(paired, axes, problems)
    count = 1
    for group in groups:
        count *= len(group[0].values)
    if count > MOST_COMBINATIONS and written is not None:
        problems.add(written.mark, f"has {count} combinations, more than {MOST_COMBINATIONS}")
        return []
    places = {axis.key: number for number, group in enumerate(groups) for axis in group}
    pairs = [
        tuple(axis.values[picks[places[axis.key]]] for axis in axes)
        for picks in itertools.product(*(range(len(group[0].values)) for group in groups))
    ]
    left_out = _beside(written, WITHOUT)
    return pairs if left_out is None else _without(left_out, axes, pairs, problems)


def _axis(node: Node, axes: list[Axis], problems: Problems, text: str | None = None) -> Axis | None:
    """The axis of a name or an address."""
    word = text if text is not None else node.text if isinstance(node, Scalar) else ""
    names = [axis.name for axis in axes]
    for axis in axes:
        if word in (axis.name, axis.key):
            return axis
    hint = did_you_mean(word, names) or f"; it has {any_of(names)}".replace(" or ", " and ")
    problems.add(node.mark, f'the matrix has no "{shorten(word)}"{hint}')
    return None


def _pairs(written: Node, axes: list[Axis], problems: Problems) -> list[list[Axis]]:
    """The axes in groups with paired values, each group at the position of its first axis."""
    example = f"{PAIRED}: [[rate, delay]]"
    lists = written.items if isinstance(written, Sequence) else []
    if lists and all(isinstance(item, Scalar) for item in lists):
        lists = [written]
    groups: list[list[Axis]] = []
    for sequence in lists:
        items = sequence.items if isinstance(sequence, Sequence) else []
        group = [axis for item in items if (axis := _axis(item, axes, problems)) is not None]
        taken = {axis.key for other in groups for axis in other}
        if len(items) < 2 or len({axis.key for axis in group}) < len(group):
            problems.add(sequence.mark, f"must be a list of two names or more, such as {example}")
        elif any(axis.key in taken for axis in group):
            problems.add(sequence.mark, "names a key that is in a pair already")
        elif len({len(axis.values) for axis in group}) > 1:
            counts = ", ".join(f"{len(axis.values)} of {axis.name}" for axis in group)
            problems.add(sequence.mark, f"these go together one by one, and their numbers differ: {counts}")
        groups.append(group)
    if not lists:
        problems.add(written.mark, f"must be lists of names such as {example}")
    first = {group[0].key: group for group in groups if group}
    inside = {axis.key for group in groups for axis in group}
    return [first.get(axis.key, [axis]) for axis in axes if axis.key in first or axis.key not in inside]


def _without(
    written: Node, axes: list[Axis], pairs: list[tuple[Node, ...]], problems: Problems
) -> list[tuple[Node, ...]]:
    """The combinations without the excluded ones."""
    example = f"{WITHOUT}: [{{rate: 1 Mbit/s, delay: 20 ms}}]"
    if not isinstance(written, Sequence) or not written.items:
        problems.add(written.mark, f"must be a list of combinations such as {example}")
        return pairs
    kept = pairs
    for item in written.items:
        mapping = problems.expect_mapping(item, "{rate: 1 Mbit/s, delay: 20 ms}")
        if mapping is None or not mapping.entries:
            continue
        unwanted: dict[int, list[str]] = {}
        for key, mark, value in mapping:
            axis = _axis(Scalar(mark, key), axes, problems)
            if axis is not None:
                values = value.items if isinstance(value, Sequence) else [value]
                unwanted[axes.index(axis)] = [in_words(entry) for entry in values]
        if len(unwanted) < len(mapping.entries):
            continue
        rest = [
            pair
            for pair in kept
            if not all(_is_one_of(in_words(pair[place]), texts) for place, texts in unwanted.items())
        ]
        if len(rest) == len(kept):
            problems.add(mapping.mark, "leaves nothing out; no other combination has these values")
        kept = rest
    if pairs and not kept:
        problems.add(written.mark, "leaves all combinations out")
    return kept


def _is_one_of(text: str, texts: list[str]) -> bool:
    """True if a value equals one of these, in whatever unit."""
    if text in texts:
        return True
    value = quantity_of(text)
    others = (quantity_of(other) for other in texts)
    return value is not None and any(
        other is not None and (other.kind, other.value) == (value.kind, value.value) for other in others
    )


def _derive(
    axes: list[Axis], combinations: list[tuple[Node, ...]], written: Node | None, problems: Problems
) -> dict[str, list[str]]:
    """The derived values by name, one for each combination."""
    names = {axis.name for axis in axes}
    derive: dict[str, list[str]] = {}
    for name, mark, value in written if isinstance(written, Mapping) else ():
        if name in (PAIRED, WITHOUT) or not _is_derived(name, value):
            continue
        if name in names:
            problems.add(mark, f'"{shorten(name)}" is a key of the matrix already; choose another one')
            continue
        with problems.note():
            read_label(
                Scalar(mark, name), f"must be a name of at most {LONGEST_LABEL} letters", LONGEST_LABEL
            )
        assert isinstance(value, Scalar)
        try:
            derive[name] = [
                evaluate(
                    value.text,
                    {axis.name: in_words(node) for axis, node in zip(axes, combination, strict=True)},
                )
                for combination in combinations
            ]
        except QuantityError as error:
            problems.add(value.mark, str(error))
    return derive


def schema() -> Schema:
    """The key in the JSON Schema."""
    values = {"minItems": 1}
    word = {"type": "string", "minLength": 1}
    label = {**word, "maxLength": LONGEST_LABEL, "description": "Name of the key for people, and in results."}
    labelled = {
        "additionalProperties": False,
        "required": [VALUES],
        "properties": {LABEL: label, VALUES: {"type": "array", **values}},
    }
    varied = {"description": "An address, with the values.", **by_type(array=values, object=labelled)}
    names = {"minItems": 2, "items": word}
    return {
        "type": "object",
        "minProperties": 1,
        "properties": {
            PAIRED: {
                "description": "Names of keys whose values go together one by one.",
                "type": "array",
                "minItems": 1,
                "items": by_type(string={"minLength": 1}, array=names),
            },
            WITHOUT: {
                "description": "Combinations that are left out.",
                "type": "array",
                "minItems": 1,
                "items": {"type": "object", "minProperties": 1},
            },
        },
        "patternProperties": {rf"\.|^({'|'.join(KEYS)})$": varied},
        "additionalProperties": {
            "description": "A value that follows from the others, such as rtt: 2 x (2 ms + delay).",
            "type": ["string", "number"],
        },
    }


def in_words(value: Node) -> str:
    """A written value on one line: `{droptail: 75 kB}` is `droptail 75 kB`."""
    if isinstance(value, Scalar):
        return " ".join(value.text.split())
    if isinstance(value, Sequence):
        return "[" + ", ".join(in_words(item) for item in value.items) + "]"
    return ", ".join(f"{key} {in_words(item)}".strip() for key, _, item in value)


@dataclass(frozen=True)
class _Combination:
    """The values of one combination by name, the derived values, and the resolved scenario."""

    words: dict[str, str]
    derived: dict[str, str]
    scenario: Scenario


def _merge(combinations: list[_Combination], axes: list[Axis]) -> Scenario:
    first = combinations[0].scenario
    rows: list[SchemeRow] = []
    slugs = Slugs()
    labels: dict[str, list[str]] = {}
    for combination in combinations:
        scenario = combination.scenario
        overlay = find_differences(first, scenario)
        for row in scenario.schemes:
            label = f"{row.label}{suffix(combination.words)}"
            slug = slugs.add(slug_of(label))
            rows.append(
                structs.replace(
                    row,
                    label=label,
                    slug=slug,
                    overlay=overlay,
                    values=combination.words,
                    derived=combination.derived,
                )
            )
            labels.setdefault(row.label, []).append(label)
        first.files.merge(scenario.files)
    expect: list[Expectation] = []
    for wanted in first.expect:
        of_schemes = labels.get(wanted.scheme, [wanted.scheme]) if wanted.scheme is not None else [None]
        expect += [structs.replace(wanted, scheme=label) for label in of_schemes]
    keys = {axis.name: axis.key for axis in axes}
    warnings = list(
        dict.fromkeys(warning for combination in combinations for warning in combination.scenario.warnings)
    )
    return structs.replace(first, schemes=rows, expect=expect, matrix=keys, warnings=warnings)
