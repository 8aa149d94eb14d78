"""The timeline: at given times values of elements change, links are cut, flows start and stop.

Starts and stops of flows are resolved here, in the flows. A link that is cut has a gate as its first element,
so scenarios without cuts have none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from narrows.documents.components import Component, Element, Values
from narrows.documents.resolved import Change
from narrows.scenario.declarations.value import Context, Value
from narrows.scenario.elements import Link, check_element, read_rate
from narrows.scenario.flows import Flow, Flows
from narrows.scenario.network import Network
from narrows.scenario.params import entry_from
from narrows.scenario.problems import Problems, Wrong, mapping_of
from narrows.scenario.quantity import show
from narrows.scenario.registry import Entry, Param, Registry
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence
from narrows.text import any_of, did_you_mean, shorten, suggest

ACTIONS = ("set", "cut", "restore", "start", "stop")
#: The link element that a cut closes.
GATE = "gate"

_AT = Param("", "span", (), None, 0, None, False, "", "")
_EXAMPLE = "{at: 10 s, set: {forward.0: {rate: 5 Mbit/s}}}"
_NO_BDP = "is not defined in a timeline"


@dataclass
class _Event:
    at_ns: int
    action: str
    value: Node
    key_mark: Mark


@dataclass
class TimelineReader:
    """Reads the key `timeline` for a resolved network and flows."""

    network: Network
    flows: Flows
    duration_ns: int
    registry: Registry
    context: Context
    changes: list[Change] = field(default_factory=list)
    #: The elements in their state at the current time.
    now: dict[str, Element] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)

    @property
    def problems(self) -> Problems:
        """Where problems are noted."""
        return self.context.problems

    def read(self, value: Node) -> list[Change]:
        """The changes in order of time, in the form of cells."""
        if not isinstance(value, Sequence):
            self.problems.add(value.mark, f"must be a list of changes such as [{_EXAMPLE}]")
            return []
        self.context.no_bdp = _NO_BDP
        self.now = {element.name: element for link in self.network.links for element in link.elements}
        events: list[_Event] = []
        for item in value.items:
            with self.problems.note():
                events += self._events(item)
        done = {"set": self._set, "cut": self._cut, "restore": self._restore}
        for event in sorted(events, key=lambda event: event.at_ns):
            with self.problems.note():
                done.get(event.action, self._flow)(event)
        self._check_flows(value.mark)
        self._add_gates()
        return self.changes

    def _events(self, item: Node) -> list[_Event]:
        mapping = mapping_of(item, _EXAMPLE)
        for key, mark, _ in mapping:
            if key != "at" and key not in ACTIONS:
                self.problems.unknown_key(mark, key, ("at", *ACTIONS))
        actions = [key for key in mapping.entries if key in ACTIONS]
        if "at" not in mapping.entries or not actions:
            missing = "at: the time" if actions else f"one of {any_of(ACTIONS)}"
            raise Wrong(mapping.mark, f"needs the key {missing}; write for example {_EXAMPLE}")
        at = Value(mapping.entries["at"], _AT, self.context).require()
        if at >= self.duration_ns:
            self.problems.add(
                mapping.entries["at"].mark,
                f"{show('span', at)} is not before the end of the scenario at"
                f" {show('span', self.duration_ns)} (duration)",
            )
        return [_Event(at, key, mapping.entries[key], mapping.key_marks[key]) for key in actions]

    # -- elements --------------------------------------------------------------------------------

    def _set(self, event: _Event) -> None:
        example = "{forward.0: {rate: 5 Mbit/s}}"
        for name, mark, value in mapping_of(event.value, example):
            if name not in self.now:
                hint = suggest(name, self.now, "element")
                self.problems.add(mark, f'element "{shorten(name)}" does not exist{hint}')
                continue
            before = len(self.problems.entries)
            element = self.now[name]
            if element.is_bottleneck:
                change = self._bottleneck(value, element)
            else:
                change = self._params_as_written(value, self.registry.links[element.kind])
            params = {key: self._apply(item, element.part(key)) for key, item in change.items()}
            self.now[name] = element.change(params)
            if len(self.problems.entries) > before:
                continue
            check_element(value.mark, self.now[name], self.registry, self.context)
            self._change(event.at_ns, name, change)

    @staticmethod
    def _apply(value: object, before: Component | None) -> object:
        """The value after a change: parameters of a queue that are not written stay."""
        return before.change(value) if before and isinstance(value, dict) else value

    def _change(self, at_ns: int, element: str, values: dict[str, object]) -> None:
        self.changes.append(Change(at_ns=at_ns, element=element, values=Values(values)))

    def _bottleneck(self, value: Node, element: Element) -> dict[str, object]:
        own = {param.name: param for param in self.registry.bottleneck}
        mapping = self.problems.expect_mapping(value, "{rate: 5 Mbit/s}")
        change: dict[str, object] = {}
        for key, written in self.problems.check_keys(mapping, ("rate", "queue", *own)):
            if key == "rate":
                change[key] = read_rate(written, self.registry, self.context)
            elif key == "queue":
                change[key] = self._queue(written, element)
            else:
                change[key] = Value(written, own[key], self.context).read()
        return change

    def _queue(self, value: Node, element: Element) -> dict[str, object]:
        """The changes of a queue; its discipline stays the same."""
        assert element.queue is not None
        kind = element.queue.kind
        entry = self.registry.queues[kind]
        if isinstance(value, Mapping) and len(value.entries) == 1:
            ((name, mark, inner),) = value
            if name == kind:
                return self._params_as_written(inner, entry)
            if name in self.registry.queues:
                text = f"the queue is a {kind} and can't become another discipline during a run"
                self.problems.add(mark, text)
                return {}
        return self._params_as_written(value, entry)

    def _params_as_written(self, value: Node, entry: Entry) -> dict[str, object]:
        """Only the written parameters: the others stay unchanged."""
        if not isinstance(value, Mapping):
            result = entry_from(value, entry, self.context)
            # The unit of a single quantity selects its parameter, which is the one whose value differs from
            # the default.
            names = [name for name in entry.shorthand if result and self._differs(result, entry, name)]
            return {name: result.params[name] for name in names[:1]} if result else {}
        known = {param.name: param for param in entry.params}
        return {
            key: Value(written, known[key], self.context).read()
            for key, written in self.problems.check_keys(value, known)
        }

    @staticmethod
    def _differs(read: Component, entry: Entry, name: str) -> bool:
        param = entry.param(name)
        return len(entry.shorthand) == 1 or (param is not None and read.params[name] != param.default)

    # -- links -----------------------------------------------------------------------------------

    def _links(self, event: _Event) -> list[Link]:
        value, network = event.value, self.network
        if isinstance(value, Sequence) and len(value.items) == 2:
            names = [item.text if isinstance(item, Scalar) else "" for item in value.items]
            for name, item in zip(names, value.items, strict=True):
                if name not in network.hosts and name not in network.routers:
                    raise Wrong(item.mark.at(event.key_mark.path), network.node_problem(name))
            links = network.between(names[0], names[1])
            if not links:
                raise Wrong(value.mark, f"there is no link between {names[0]} and {names[1]}")
            return links
        name = value.text if isinstance(value, Scalar) else ""
        if name not in network.cuts:
            hint = suggest(name, network.cuts, "link")
            text = f'link "{shorten(name)}" does not exist' if name else "must be a link, or two nodes [a, b]"
            raise Wrong(value.mark, text + hint)
        return network.cuts[name]

    def _cut(self, event: _Event) -> None:
        for link in self._links(event):
            if link.name in self.closed:
                self.problems.add(event.key_mark, f"{link.name} is cut already")
            self.closed.add(link.name)
            self._gate(event.at_ns, link, is_open=False)

    def _restore(self, event: _Event) -> None:
        links = self._links(event)
        if not any(link.name in self.closed for link in links):
            names = any_of(link.name for link in links).replace(" or ", " and ")
            self.problems.add(
                event.key_mark,
                f"{names} is not cut at {show('span', event.at_ns)}; cut it before",
            )
        for link in links:
            if link.name in self.closed:
                self.closed.discard(link.name)
                self._gate(event.at_ns, link, is_open=True)

    def _gate(self, at_ns: int, link: Link, *, is_open: bool) -> None:
        self._change(at_ns, f"{link.name}.{GATE}", {"open": is_open})

    def _add_gates(self) -> None:
        used = {change.element for change in self.changes}
        for link in self.network.links:
            name = f"{link.name}.{GATE}"
            if name in used and name not in self.now:
                entry = self.registry.links.get(GATE)
                values = {param.name: param.default for param in entry.params} if entry else {}
                link.elements.insert(0, Element(GATE, {**values, "open": True}, name))

    # -- flows -----------------------------------------------------------------------------------

    def _flow(self, event: _Event) -> None:
        key = event.action
        word = event.value.text if isinstance(event.value, Scalar) else ""
        chosen = self._choose(word)
        if not chosen:
            labels = dict.fromkeys(label for flow in self.flows.items for label in _labels(flow))
            hint = did_you_mean(word, labels)
            count = len(self.flows.items)
            there = f"; flows are 1 to {count}" + (f", {', '.join(labels)}" if labels else "")
            raise Wrong(event.value.mark, f'flow "{shorten(word)}" does not exist{hint or there}')
        for flow in chosen:
            if key in flow.changed:
                text = f"the {key} of flow {word} is given already; a flow starts and stops once"
                self.problems.add(event.key_mark, text)
            flow.changed = (*flow.changed, key)
            if key == "start":
                flow.start_ns, flow.spread_ns = event.at_ns, 0
            else:
                flow.stop_ns = event.at_ns

    def _choose(self, word: str) -> list[Flow]:
        if word.isdecimal() and len(word) < 6:
            return self.flows.items[int(word) - 1 : int(word)] if int(word) else []
        return self._by_label.get(word, [])

    @cached_property
    def _by_label(self) -> dict[str, list[Flow]]:
        """The flows by their labels and those of their entries."""
        result: dict[str, list[Flow]] = {}
        for flow in self.flows.items:
            for label in dict.fromkeys(_labels(flow)):
                result.setdefault(label, []).append(flow)
        return result

    def _check_flows(self, mark: Mark) -> None:
        for number, flow in enumerate(self.flows.items, 1):
            if flow.start_ns >= flow.stop_ns:
                text = (
                    f"flow {number} would start at {flow.start_ns / 1e9:g} s, which is not before it stops at"
                )
                self.problems.add(mark, f"{text} {flow.stop_ns / 1e9:g} s")


def _labels(flow: Flow) -> list[str]:
    return [label for label in (flow.label, flow.group) if label]
