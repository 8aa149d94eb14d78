"""The path of a scenario: elements per direction, resolved with the help of the registry.

An element is a mapping. With the key `rate` it is a bottleneck (a rate server with a queue); without,
its one key names a link element: `{delay: 20 ms}`, `{loss: 0.1 %}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from narrows.scenario.params import Context, entry_from, read_entry
from narrows.scenario.problems import Problems, any_of, join
from narrows.scenario.quantity import NO_BDP
from narrows.scenario.registry import Registry
from narrows.scenario.written import Mapping, Mark, Scalar, Sequence, Written

#: The queue of a bottleneck for which none is written.
DEFAULT_QUEUE = "unlimited"
#: The parameter by which a link element says that it delays every packet by the same time.
FIXED_DELAY = "delay"

DIRECTIONS = ("forward", "backward")


@dataclass
class Path:
    """Both directions, with what follows from them."""

    forward: list[dict[str, Any]]
    backward: list[dict[str, Any]]

    def delay_ns(self, direction: str) -> int:
        """The fixed delay of a direction."""
        elements: list[dict[str, Any]] = getattr(self, direction)
        return sum(element.get(FIXED_DELAY) or 0 for element in elements if element["kind"] != "bottleneck")

    @property
    def base_rtt_ns(self) -> int:
        """The round-trip time of an empty path, without any flow's extra RTT."""
        return self.delay_ns("forward") + self.delay_ns("backward")


def read_path(value: Written, registry: Registry, problems: Problems) -> Path:
    """Resolves the key `path`."""
    mapping = problems.expect_mapping(value, "path", "forward: [{rate: 12 Mbit/s}, {delay: 20 ms}]")
    if mapping is None:
        return Path([], [])
    for key, mark, _ in mapping:
        if key not in DIRECTIONS:
            problems.unknown_key(mark, "path", key, DIRECTIONS)
    if "forward" not in mapping.entries:
        problems.add(mapping.mark, "path", "needs the key forward: the elements from sender to receiver")
        return Path([], [])
    lists = {
        direction: _list(mapping.entries[direction], join("path", direction), problems)
        for direction in DIRECTIONS
        if direction in mapping.entries
    }
    # Delays first: amounts in bdp need the round-trip time of the whole path. Problems with the
    # delays are noted on the second reading.
    probes = {direction: [_probe(item, registry) for item in items] for direction, items in lists.items()}
    delays = {direction: sum(delay or 0 for delay, _ in probe) for direction, probe in probes.items()}
    base_rtt = delays["forward"] + delays.get("backward", delays["forward"])
    resolved: dict[str, list[dict[str, Any]]] = {}
    for direction, items in lists.items():
        rates = [rate for _, rate in probes[direction] if rate]
        bdp = Fraction(min(rates) * base_rtt, 8 * 10**9) if rates and base_rtt else None
        resolved[direction] = []
        for index, item in enumerate(items):
            path = join(join("path", direction), index)
            before = len(problems.found)
            element = _element(item, path, registry, Context(problems, bdp))
            if element is None:
                continue
            resolved[direction].append({"name": f"{direction}.{index}", **element})
            if len(problems.found) == before and (reason := registry.refusal(element)):
                problems.add(item.mark, path, reason)
    _drop_consequences(problems)
    if "backward" not in resolved:
        fixed = [
            element
            for element in resolved["forward"]
            if element["kind"] != "bottleneck" and element.get(FIXED_DELAY) is not None
        ]
        resolved["backward"] = [
            {**element, "name": f"backward.{index}"} for index, element in enumerate(fixed)
        ]
    return Path(resolved["forward"], resolved["backward"])


def _drop_consequences(problems: Problems) -> None:
    """A wrong rate or delay leaves the bdp unknown; telling that too would only confuse."""
    others = [one for one in problems.found if one.key.startswith("path.") and NO_BDP not in one.text]
    if others:
        problems.found = [one for one in problems.found if NO_BDP not in one.text]


def _list(value: Written, path: str, problems: Problems) -> list[Written]:
    if isinstance(value, Sequence):
        return value.items
    if isinstance(value, Scalar) and value.is_null:
        return []
    problems.add(value.mark, path, "must be a list of elements such as [{rate: 12 Mbit/s}, {delay: 20 ms}]")
    return []


def _probe(item: Written, registry: Registry) -> tuple[int | None, int | None]:
    """The fixed delay (ns) and the constant rate (bit/s) of an element, as far as they are there."""
    quiet = Context(Problems())
    if not isinstance(item, Mapping):
        return None, None
    if "rate" in item.entries:
        server = read_entry(item.entries["rate"], "", registry.rates, "rate", quiet, any_shorthand=True)
        rate = (server or {}).get("rate")
        return None, rate if isinstance(rate, int) else None
    element = _element(item, "", registry, quiet)
    delay = (element or {}).get(FIXED_DELAY)
    return (delay if isinstance(delay, int) else None), None


def _element(item: Written, path: str, registry: Registry, context: Context) -> dict[str, Any] | None:
    problems = context.problems
    kinds = ["rate", *registry.links]
    if not isinstance(item, Mapping) or not item.entries:
        problems.add(item.mark, path, f"an element is one of {any_of(kinds)}, such as {{delay: 20 ms}}")
        return None
    if "rate" in item.entries:
        return _bottleneck(item, path, registry, context)
    if len(item.entries) > 1:
        known = [key for key in item.entries if key in registry.links]
        if len(known) > 1:
            problems.add(
                item.mark,
                path,
                f"holds {len(item.entries)} elements; write each as an item of its own"
                " so that their order is clear",
            )
        elif "queue" in item.entries:
            problems.add(
                item.key_marks["queue"],
                join(path, "queue"),
                "a queue belongs to a bottleneck; write its"
                " rate beside it, such as {rate: 12 Mbit/s, queue: ...}",
            )
        else:
            for key, mark, _ in item:
                if key not in kinds:
                    problems.unknown_key(mark, path, key, kinds)
        return None
    ((name, mark, value),) = item
    if name == "queue":
        problems.add(
            mark,
            join(path, name),
            "a queue belongs to a bottleneck; write its rate beside it, such as"
            " {rate: 12 Mbit/s, queue: ...}",
        )
        return None
    if name not in registry.links:
        problems.unknown_key(mark, path, name, kinds)
        return None
    return entry_from(value, join(path, name), registry.links[name], context)


def _bottleneck(item: Mapping, path: str, registry: Registry, context: Context) -> dict[str, Any] | None:
    for key, mark, _ in item:
        if key in registry.links:
            context.problems.add(
                mark,
                join(path, key),
                "write it as an item of its own after the bottleneck, so that the order is clear",
            )
        elif key not in ("rate", "queue"):
            context.problems.unknown_key(mark, path, key, ("rate", "queue"))
    rate = read_entry(
        item.entries["rate"], join(path, "rate"), registry.rates, "rate", context, any_shorthand=True
    )
    _refuse_zero(rate, item.entries["rate"].mark, join(path, "rate"), context)
    written: Written = item.entries.get("queue", Scalar(Mark(""), DEFAULT_QUEUE))
    queue = read_entry(written, join(path, "queue"), registry.queues, "queue", context)
    return {"kind": "bottleneck", "rate": rate, "queue": queue}


def _refuse_zero(rate: dict[str, Any] | None, mark: Mark, path: str, context: Context) -> None:
    if rate and rate.get("rate") == 0:
        context.problems.add(mark, path, "a rate of zero lets nothing through; it must be more than 0")
