"""Orders that change a run while it is under way: `rate 5 Mbit/s`, `delay forward.1 40 ms`,
`set forward.0 {queue: {droptail: 30 kB}}`, `start 2`, `stop 1`.

An order is an entry of the scenario's timeline without its time. It is resolved as such, so that everything
that a timeline can set, and every refusal, is the same here; the agent determines the time. Orders that were
carried out become entries of the scenario.
"""

from __future__ import annotations

import json
import re
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from narrows.documents.data import to_data
from narrows.documents.live import Changed
from narrows.documents.resolved import Cell, Change
from narrows.errors import DataError, ScenarioError, UsageError
from narrows.live.as_run import only_cell, with_whole_paths
from narrows.scenario import overrides as _overrides
from narrows.scenario import registry as _registry
from narrows.scenario.loading import Loaded
from narrows.scenario.model import Scenario
from narrows.scenario.real_path import WHERE as REAL
from narrows.scenario.resolve import resolve
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence, parse, parse_value
from narrows.text import any_of

_AT, _START, _STOP = "at", "start", "stop"
#: Orders for help and refusals: those that a real path allows, and all.
_OF_FLOWS = (f"{_START} 2", f"{_STOP} 1")
EXAMPLES = ("rate 5 Mbit/s", "delay 40 ms", "set ELEMENT {queue: {droptail: 30 kB}}", *_OF_FLOWS)
_SOURCE = "the order"
_TIMELINE = "timeline"
_LONGEST = 1000
_LONGEST_NUMBER = 6
_S = 1_000_000_000
#: Characters of text that YAML would read as something else.
_SPECIAL = frozenset(',[]{}#\\"\n')
_FIRST = frozenset("&*!|>'%@`")


@dataclass(frozen=True)
class _Order:
    """`set` with an element and its values in YAML, or `start` or `stop` with a flow."""

    key: str
    name: str
    text: str = ""

    def in_yaml(self, at_ns: int) -> str:
        """The entry of the timeline."""
        value = f"{{{self.name}: {self.text}}}" if self.text else self.name
        return f"{{at: {_seconds(at_ns)} s, {self.key}: {value}}}"

    def __str__(self) -> str:
        if not self.text:
            return f"{self.key} of flow {self.name}"
        return f"{self.name} {self.text.strip('{}')}"


@dataclass(frozen=True)
class _Kept:
    at_ns: int
    order: _Order

    def in_yaml(self) -> str:
        """The entry of the timeline."""
        return self.order.in_yaml(self.at_ns)


class Desk:
    """Reads orders for the runs of a scenario, and keeps those that were carried out."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._tree = _overrides.apply(parse(loaded.text, loaded.path.name), loaded.overrides)
        self._lock = threading.Lock()
        #: Orders without an answer, oldest first: the agent answers them in order.
        self._open: deque[_Order] = deque()
        self._kept: list[_Kept] = []

    @property
    def is_real(self) -> bool:
        """True if the path is a real one, which can't be changed."""
        return self._loaded.scenario.where == REAL

    @property
    def examples(self) -> tuple[str, ...]:
        """Orders that these runs take."""
        return _OF_FLOWS if self.is_real else EXAMPLES

    @property
    def elements(self) -> dict[str, str]:
        """The elements that can be changed, with their kinds."""
        return {element.name: element.kind for element in self._loaded.scenario.network.elements}

    def read(self, text: str) -> bytes:
        """The line for the agent. Raises `UsageError` with one sentence if the text can't be one."""
        if len(text) > _LONGEST:
            raise UsageError(f"an order has at most {_LONGEST} characters")
        order = self._understand(text.split(None, 2))
        change = self._resolve(order)
        line: dict[str, object] = {"order": order.key}
        if change is None:
            line |= {"flow": int(order.name)}
        else:
            line |= {"order": "change", "element": change.element, "set": to_data(change.values)}
        with self._lock:
            self._open.append(order)
        return json.dumps(line).encode()

    def keep(self, changed: Changed) -> str:
        """Keeps the oldest order without an answer, which takes effect; returns it in words."""
        with self._lock:
            if not self._open:
                return ""
            order = self._open.popleft()
            self._kept.append(_Kept(changed.at_ns, order))
        return str(order)

    def drop(self) -> None:
        """Forgets the oldest order without an answer."""
        with self._lock:
            if self._open:
                self._open.popleft()

    def clear(self) -> None:
        """Forgets all orders: another run begins."""
        with self._lock:
            self._open.clear()
            self._kept.clear()

    def cell_with_changes(self) -> Cell | None:
        """The cell with the orders that were carried out; none without any."""
        changed = self.scenario_with_changes()
        return only_cell(changed) if changed is not None else None

    def scenario_with_changes(self) -> Loaded | None:
        """The scenario with the orders that were carried out in its timeline; none without any."""
        with self._lock:
            kept = sorted(self._kept, key=lambda entry: entry.at_ns)
        if not kept:
            return None
        entries = [f"  - {entry.in_yaml()}\n" for entry in kept]
        files = self._loaded.scenario.files
        if not self._loaded.overrides and _TIMELINE not in self._tree.entries:
            # Comments and layout stay as they were written.
            text = f"{self._loaded.text.rstrip()}\n\n# Changes made during the run.\n{_TIMELINE}:\n"
            text += "".join(entries)
        else:
            tree = self._with([parse_value(entry.in_yaml(), _SOURCE) for entry in kept])
            whole = with_whole_paths(tree, files)
            assert isinstance(whole, Mapping)
            text = "".join(f"{key}: {to_yaml(value)}\n" for key, _, value in whole)
        path = self._loaded.path
        scenario = resolve(parse(text, path.name), _registry.load(), path.name, path.parent)
        return replace(self._loaded, scenario=scenario, text=text, overrides=[])

    # -- reading ---------------------------------------------------------------------------------

    def _understand(self, words: list[str]) -> _Order:
        elements = self.elements
        examples = any_of(self.examples)
        if self.is_real and words[:1] and words[0] in ("rate", "delay", "set"):
            raise UsageError(
                f"the rate, delay and queues of a real path can't be changed; between hosts, write {examples}"
            )
        match words:
            case ["set", element, values]:
                self._check_element(element)
                return _Order("set", element, values.strip())
            case [("start" | "stop") as key, number] if number.isdecimal() and len(number) < _LONGEST_NUMBER:
                return _Order(key, str(int(number)))
            case [("start" | "stop") as key, *_]:
                raise UsageError(f"{key} needs the number of a flow; write for example {key} 2")
            case [("rate" | "delay") as key, element, value] if element in elements:
                return _Order("set", element, f"{{{key}: {value.strip()}}}")
            case [("rate" | "delay") as key, *value] if value:
                kind = "bottleneck" if key == "rate" else "delay"
                fitting = [name for name, other in elements.items() if other == kind]
                if not fitting:
                    raise UsageError(f"no element has a {key}; the elements are {any_of(elements)}")
                return _Order("set", fitting[0], f"{{{key}: {' '.join(value)}}}")
            case [("rate" | "delay") as key]:
                example = EXAMPLES[0 if key == "rate" else 1]
                raise UsageError(f"{key} needs a value; write for example {example}")
        first = words[0] if words else ""
        raise UsageError(f'"{first}" is not an order; write for example {examples}')

    def _check_element(self, name: str) -> None:
        if name not in self.elements:
            raise UsageError(f'element "{name}" does not exist; there are {any_of(self.elements)}')

    def _resolve(self, order: _Order) -> Change | None:
        """The change that an entry of the timeline would make at the end of the run; none of an element if a
        flow starts (at any time before) or stops.
        """
        last_ns = self._loaded.scenario.duration_ns - 1
        text = order.in_yaml(1 if order.key == "start" else last_ns)
        try:
            with self._lock:
                kept = [parse_value(entry.in_yaml(), _SOURCE) for entry in self._kept]
            tree = self._with([*kept, parse_value(text, _SOURCE)])
            path = self._loaded.path
            scenario: Scenario = resolve(tree, _registry.load(), path.name, path.parent)
        except ScenarioError as error:
            first = error.problems[0]
            raise UsageError(f"{order.name}: {first.text}" if order.text else first.text) from None
        except DataError as error:
            raise UsageError(str(error)) from None
        changes = [change for change in scenario.timeline if change.at_ns == last_ns]
        if not order.text and not changes:
            return None
        if len(changes) != 1:
            raise UsageError(f"an order changes one element; write for example {any_of(EXAMPLES)}")
        return changes[0]

    def _with(self, entries: list[Node | None]) -> Mapping:
        """The scenario with more entries in its timeline."""
        tree = self._tree.copy("")
        before = tree.entries.get(_TIMELINE)
        items = list(before.items) if isinstance(before, Sequence) else []
        added = [entry for entry in entries if isinstance(entry, Mapping)]
        for entry in added:
            items = [kept for item in items for kept in self._without(item, entry)]
        mark = Mark(_SOURCE, path=_TIMELINE)
        tree.entries[_TIMELINE] = Sequence(mark, [*items, *added]).copy(_TIMELINE)
        tree.key_marks.setdefault(_TIMELINE, mark)
        return tree

    def _without(self, item: Node, order: Mapping) -> Iterator[Node]:
        """An entry of the written timeline without the start or stop that an order has replaced; other flows
        of its label keep theirs.
        """
        key = next((key for key in (_START, _STOP) if key in order.entries), None)
        written = item.entries.get(key) if key is not None and isinstance(item, Mapping) else None
        if key is None or not isinstance(item, Mapping) or not isinstance(written, Scalar):
            yield item
            return
        number = order.entries[key]
        numbers = self._flows_of(written.text)
        if not isinstance(number, Scalar) or int(number.text) not in numbers:
            yield item
            return
        entries = {name: value for name, value in item.entries.items() if name != key}
        if len(entries) > 1:
            yield Mapping(item.mark, entries, {name: item.key_marks[name] for name in entries})
        marks = {name: item.key_marks[name] for name in (_AT, key)}
        for other in numbers:
            if other != int(number.text):
                yield Mapping(
                    item.mark, {_AT: item.entries[_AT], key: Scalar(written.mark, str(other))}, marks
                )

    def _flows_of(self, word: str) -> list[int]:
        """The numbers of the flows that an entry of a timeline names, by number or label."""
        if word.isdecimal():
            return [int(word)]
        flows = only_cell(self._loaded).flows
        return [
            flow.number
            for flow in flows
            if flow.label is not None
            and (flow.label == word or re.fullmatch(rf"{re.escape(word)} [0-9]+", flow.label))
        ]


def _seconds(time_ns: int) -> str:
    """A time in seconds, exactly."""
    whole, rest = divmod(time_ns, _S)
    return f"{whole}.{rest:09}".rstrip("0").rstrip(".") if rest else str(whole)


def to_yaml(value: Node) -> str:
    """A value on one line of YAML, with all its text."""
    if isinstance(value, Sequence):
        return f"[{', '.join(map(to_yaml, value.items))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_text(key)}: {to_yaml(inner)}' for key, _, inner in value)}}}"
    return json.dumps(value.text, ensure_ascii=False) if value.quoted else _text(value.text)


def _text(text: str) -> str:
    odd = not _SPECIAL.isdisjoint(text) or ": " in text or text[:1] in _FIRST or text != text.strip()
    return json.dumps(text, ensure_ascii=False) if odd else text
