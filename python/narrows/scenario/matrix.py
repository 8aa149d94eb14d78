"""The key `matrix`: the same experiment for every combination of some values.

`{path.forward.0.rate: [1 Mbit/s, 10 Mbit/s]}` runs every scheme once per rate and run. Each combination is
resolved as if its values had been written in their places, and gives rows of its own in the results.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from narrows.errors import Problem, ScenarioError, UsageError
from narrows.scenario import overrides, real_path
from narrows.scenario.model import OVERLAID, Scenario, SchemeRow
from narrows.scenario.problems import Problems
from narrows.scenario.slugs import free_slug, slug_of
from narrows.scenario.yaml_tree import Mapping, Node, Scalar, Sequence
from narrows.text import shorten

KEY = "matrix"
#: These are the same for a whole campaign.
FIXED = ("schema", "name", "title", "question", "where", "runs", "seed", "report", "expect", "schemes", KEY)
MOST_COMBINATIONS = 1000
_EXAMPLE = "{path.forward.0.rate: [1 Mbit/s, 10 Mbit/s]}"


def resolve_all(tree: Mapping, resolve: Callable[[Mapping], Scenario]) -> Scenario:
    """Resolves all combinations of a scenario with a matrix into one scenario with all their rows."""
    entries = {key: value for key, value in tree.entries.items() if key != KEY}
    base = Mapping(tree.mark, entries, tree.key_marks)
    problems = Problems()
    axes = _axes(tree.entries[KEY], problems) if KEY in tree.entries else []
    if real_path.is_wanted(tree):
        _check_for_hosts(tree, axes, problems)
    problems.raise_if_any()
    if real_path.asks_for_both(tree):
        axes.append(real_path.both_directions())
    found: list[tuple[dict[str, str], Scenario]] = []
    names = _short_names([key for key, _ in axes])
    for values in itertools.product(*(values for _, values in axes)):
        changed = base.copy("")
        words = {}
        for (key, _), value in zip(axes, values, strict=True):
            _place(changed, key, value)
            words[names[key]] = in_words(value)
        found.append((words, resolve(changed)))
    return _merge(found)


def _place(tree: Mapping, key: str, value: Node) -> None:
    option = str(value.mark)
    try:
        overrides.place(tree, key, value, option)
    except UsageError as error:
        text = str(error).removeprefix(f"{option}: ")
        raise ScenarioError([Problem(option, f"{KEY}.{key}", text)]) from None


def _axes(value: Node, problems: Problems) -> list[tuple[str, list[Node]]]:
    mapping = problems.expect_mapping(value, _EXAMPLE)
    axes: list[tuple[str, list[Node]]] = []
    count = 1
    for key, mark, written in mapping or ():
        path = f"{KEY}.{key}"
        if key.split(".")[0] in FIXED:
            problems.add(mark, f"{key.split('.')[0]} is the same for a whole campaign; remove it")
        elif not isinstance(written, Sequence) or not written.items:
            problems.add(written.mark, f"must be a list of values such as in {_EXAMPLE}")
        else:
            shown = [in_words(item) for item in written.items]
            for index, item in enumerate(written.items):
                if shown[index] in shown[:index]:
                    problems.add(item.mark.at(path), f"{shorten(shown[index])} is in the list already")
            count *= len(written.items)
            axes.append((key, written.items))
    if mapping is not None and not axes and not problems.found:
        problems.add(mapping.mark, f"needs a key with a list of values, such as {_EXAMPLE}")
    if count > MOST_COMBINATIONS:
        text = f"has {count} combinations, more than {MOST_COMBINATIONS}"
        problems.add(value.mark, text)
    return axes


def _check_for_hosts(tree: Mapping, axes: list[tuple[str, list[Node]]], problems: Problems) -> None:
    for key, values in axes:
        wrong = real_path.check_axis(key)
        if wrong is None and real_path.asks_for_both(tree) and key.startswith(real_path.KEY):
            wrong = f"{real_path.KEY} says both for it already; remove one of the two"
        if wrong is not None:
            problems.add(values[0].mark.at(f"{KEY}.{key}"), wrong)


def _short_names(keys: list[str]) -> dict[str, str]:
    """The last word of each key, or the whole key where that is not clear."""
    last = {
        key: next((part for part in reversed(key.split(".")) if not part.isdecimal()), key) for key in keys
    }
    words = list(last.values())
    return {key: word if words.count(word) == 1 else key for key, word in last.items()}


def in_words(value: Node) -> str:
    """A written value on one line: `{droptail: 75 kB}` is `droptail 75 kB`."""
    if isinstance(value, Scalar):
        return " ".join(value.text.split())
    if isinstance(value, Sequence):
        return "[" + ", ".join(in_words(item) for item in value.items) + "]"
    return ", ".join(f"{key} {in_words(item)}".strip() for key, _, item in value)


def _merge(found: list[tuple[dict[str, str], Scenario]]) -> Scenario:
    first = found[0][1]
    rows: list[SchemeRow] = []
    labels: dict[str, list[str]] = {}
    base = {name: getattr(first, name) for name in OVERLAID}
    for words, scenario in found:
        overlay = {
            name: getattr(scenario, name) for name in OVERLAID if getattr(scenario, name) != base[name]
        }
        for row in scenario.schemes:
            label = f"{row.label} ({', '.join(f'{name} {value}' for name, value in words.items())})"
            slug = free_slug(slug_of(label), [one.slug for one in rows])
            rows.append(SchemeRow(label, slug, row.flows, overlay, words))
            labels.setdefault(row.label, []).append(label)
        first.files.contents.update(scenario.files.contents)
        first.files.names.update(scenario.files.names)
    expect: list[dict[str, Any]] = []
    for one in first.expect:
        expect += [{**one, "scheme": label} for label in labels.get(one["scheme"], [one["scheme"]])]
    return replace(first, schemes=rows, expect=expect)
