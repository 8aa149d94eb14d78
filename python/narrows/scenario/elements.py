"""Elements of links, resolved with the help of the registry.

An element is a mapping. With the key `rate` it is a bottleneck (a rate server with a queue); otherwise its
only key names a link element: `{delay: 20 ms}`, `{loss: 0.1 %}`. The key `name` names it for the timeline;
the default name consists of its link and its position, such as `forward.0`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from narrows.documents.components import BOTTLENECK, FIXED_DELAY, Component, Element
from narrows.scenario.declarations.value import Context, Value
from narrows.scenario.habits import HABITS
from narrows.scenario.params import entry_from, read_entry
from narrows.scenario.problems import Problems, Wrong, unknown_key
from narrows.scenario.registry import Registry
from narrows.scenario.sections import Section
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence, in_yaml
from narrows.text import any_of, shorten

#: The default queue of a bottleneck.
DEFAULT_QUEUE = "unlimited"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class ElementKeys(Section, frozen=True, kw_only=True):
    """The keys of a bottleneck besides its parameters; other elements have a name at most."""

    rate: Node | None = None
    queue: Node | None = None
    name: Node | None = None


@dataclass
class Item:
    """One element as written."""

    written: Node
    #: Name in the network.
    name: str


@dataclass
class Link:
    """One direction of a link: from node to node, with its elements."""

    name: str
    origin: str
    target: str
    items: list[Item] = field(default_factory=list)
    #: The link whose fixed delays this one copies if it has no written elements.
    mirrors: Link | None = None
    #: Set by `probe`: the sum of the fixed delays, and the constant rates.
    delay_ns: int = 0
    rates: list[int] = field(default_factory=list)
    #: Set by `resolve`.
    elements: list[Element] = field(default_factory=list)

    def probe(self, registry: Registry, context: Context) -> None:
        """Finds delays and rates, which amounts in bdp need; problems are noted by the second pass."""
        pairs = [_probe(item.written, registry, context.quiet()) for item in self.items]
        self.delay_ns = sum(delay or 0 for delay, _ in pairs)
        self.rates = [rate for _, rate in pairs if rate]

    def resolve(self, registry: Registry, context: Context) -> None:
        """Reads the elements and notes problems."""
        problems = context.problems
        for item in self.items:
            before = len(problems.entries)
            element = read_element(item.written, registry, context)
            if element is None:
                continue
            self.elements.append(element.rename(item.name))
            if len(problems.entries) == before:
                check_element(item.written.mark, element, registry, context)

    def mirror(self) -> None:
        """Copies the fixed delays of the other direction."""
        if self.mirrors is not None:
            fixed = [element for element in self.mirrors.elements if element.kind == FIXED_DELAY]
            self.elements = [element.rename(f"{self.name}.{index}") for index, element in enumerate(fixed)]


def check_element(mark: Mark, element: Element, registry: Registry, context: Context) -> None:
    """Asks the core whether an element is valid as a whole."""
    if reason := registry.refusal(element, context.files.contents):
        context.problems.add(mark, reason)


def list_items(value: Node, link: str, problems: Problems, *, shared: bool = False) -> list[Item]:
    """The named elements of a list as written. In a list that serves several links (`shared`), a written name
    follows the link's.
    """
    if isinstance(value, Scalar) and value.is_null:
        return []
    if not isinstance(value, Sequence):
        example = "[{rate: 12 Mbit/s}, {delay: 20 ms}]"
        problems.add(value.mark, f"must be a list of elements such as {example}")
        return []
    items = []
    for index, written in enumerate(value.items):
        name = f"{link}.{index}"
        given = ElementKeys.from_mapping(written).name if isinstance(written, Mapping) else None
        if given is not None:
            if isinstance(given, Scalar) and _NAME.fullmatch(given.text):
                name = f"{link}.{given.text}" if shared else given.text
            else:
                problems.add(
                    given.mark,
                    'must be a name of letters, digits, ".", "-" and "_", such as access',
                )
        items.append(Item(written, name))
    return items


def _probe(item: Node, registry: Registry, quiet: Context) -> tuple[int | None, int | None]:
    """The fixed delay (ns) and the constant rate (bit/s) of an element; `None` for each that it lacks."""
    if not isinstance(item, Mapping):
        return None, None
    written = ElementKeys.from_mapping(item)
    if written.rate is not None:
        server = read_entry(written.rate, registry.rates, "rate", quiet, any_shorthand=True)
        return None, server.integer("rate") if server else None
    if FIXED_DELAY not in item.entries:
        return None, None
    element = read_element(item, registry, quiet)
    return element.integer(FIXED_DELAY) if element else None, None


def read_element(item: Node, registry: Registry, context: Context) -> Element | None:
    """One element, without its name; None after noting a problem."""
    with context.problems.note():
        return _element(item, registry, context)
    return None


def _element(item: Node, registry: Registry, context: Context) -> Element | None:
    kinds = ["rate", *registry.links]
    if not isinstance(item, Mapping) or not item.entries.keys() - {"name"}:
        raise Wrong(item.mark, f"an element is one of {any_of(kinds)}, such as {{delay: 20 ms}}")
    written = ElementKeys.from_mapping(item)
    if written.rate is not None:
        return _bottleneck(item, written, written.rate, registry, context)
    item = _without_name(item)
    if sum(key in registry.links for key in item.entries) > 1:
        text = f"holds {len(item.entries)} elements; write each as a separate item so that their order is"
        raise Wrong(item.mark, f"{text} clear")
    _check_bottleneck(item, registry)
    unknown = [unknown_key(mark, key, kinds) for key, mark, _ in item if key not in registry.links]
    for wrong in unknown[:-1]:
        context.problems.add(wrong.mark, wrong.text)
    if unknown:
        raise unknown[-1]
    ((name, _, value),) = item
    read = entry_from(value, registry.links[name], context)
    return Element(read.kind, read.params) if read else None


def _check_bottleneck(item: Mapping, registry: Registry) -> None:
    """Refuses an element without `rate` that was meant as a bottleneck, with the intended form."""
    keys = ElementKeys.from_mapping(item)
    written = keys.queue
    queue = f", queue: {in_yaml(written)}" if written is not None else ""
    for key, mark, value in item:
        if key in registry.rates:
            form = key if isinstance(value, Scalar) and value.is_null else f"{{{key}: {in_yaml(value)}}}"
            raise Wrong(mark, f"unknown key; {key} is a way to give the rate: write {{rate: {form}{queue}}}")
        if key in HABITS["rates"]:
            raise Wrong(mark, f"unknown key; the key is rate: {{rate: {in_yaml(value)}{queue}}}")
        if key in registry.queues:
            form = key if isinstance(value, Scalar) and value.is_null else f"{{{key}: {in_yaml(value)}}}"
            text = f"unknown key; {key} is a queue, which stands before a rate"
            raise Wrong(mark, f"{text}: {{rate: 12 Mbit/s, queue: {form}}}")
    if written is not None:
        text = "a queue belongs to a bottleneck; write its rate beside it, such as"
        raise Wrong(keys.key_mark(written), f"{text} {{rate: 12 Mbit/s{queue}}}")


def _without_name(item: Mapping) -> Mapping:
    return Mapping(
        item.mark, {key: value for key, value in item.entries.items() if key != "name"}, item.key_marks
    )


def _bottleneck(
    item: Mapping, keys: ElementKeys, written: Node, registry: Registry, context: Context
) -> Element:
    own = {param.name: param for param in registry.bottleneck}
    known = ("rate", "queue", *own, "name")
    for key, mark, _ in item:
        if key in known:
            continue
        value = item.entries[key]
        if key in registry.links:
            text = "write it as a separate item after the bottleneck, so that the order is clear"
            context.problems.add(mark, f"{text}: {{{key}: {in_yaml(value)}}}")
        elif key in registry.queues:
            text = f"{key} is a queue; write queue: {{{key}: {in_yaml(value)}}}"
            context.problems.add(mark, text.replace(": {" + key + ": }", f": {key}"))
        elif key in registry.rates or key in HABITS["rates"]:
            context.problems.add(mark, "the rate is given twice, here and by the key rate; keep one of them")
        else:
            context.problems.unknown_key(mark, key, known)
    rate = read_rate(written, registry, context)
    queue = read_entry(keys.queue or Scalar(Mark(""), DEFAULT_QUEUE), registry.queues, "queue", context)
    # Defaults are omitted, so that a new parameter in the core changes no scenario.
    values = {
        key: Value(item.entries[key], param, context).read()
        for key, param in own.items()
        if key in item.entries
    }
    changed = {key: value for key, value in values.items() if value != own[key].default}
    return Element(BOTTLENECK, {"rate": rate, "queue": queue, **changed})


def read_rate(value: Node, registry: Registry, context: Context) -> Component | None:
    """The rate of a bottleneck; a bare rate is constant."""
    rate = read_entry(value, registry.rates, "rate", context, any_shorthand=True)
    if rate and rate.number("rate") == 0:
        context.problems.add(value.mark, "a rate of zero lets nothing through; it must be more than 0")
    return rate


def same_names(links: list[Link], problems: Problems) -> None:
    """Notes elements with duplicate names."""
    first: dict[str, Item] = {}
    for item in (item for link in links for item in link.items):
        if item.name in first:
            where = first[item.name].written.mark.path
            problems.add(item.written.mark, f'the name "{shorten(item.name)}" is used by {where} already')
        first.setdefault(item.name, item)
