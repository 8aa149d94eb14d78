"""Short descriptions of paths, as on the command line: `--rate "12 Mbit/s" --delay "20 ms" --queue "1 bdp"`,
and the resulting scenario.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from narrows.errors import UsageError
from narrows.scenario import overrides
from narrows.scenario import registry as registries
from narrows.scenario.keys import SCHEMA
from narrows.scenario.loading import Loaded
from narrows.scenario.overrides import Override
from narrows.scenario.resolve import resolve
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence, parse_value

#: The order of elements in a path: queue and rate first, then the delay, then the loss.
_ORDER = ("rate", "queue", "delay", "loss")
#: The queue for a bare amount.
_PLAIN_QUEUE = "droptail"
#: Defaults of a scenario without a file.
_DEFAULTS = {"schemes": "[cubic]", "duration": "30 s"}
_EXAMPLE = 'narrows run --rate "12 Mbit/s" --delay "20 ms" --queue "1 bdp" --schemes cubic,bbr1'
#: Lines are never wrapped.
_WIDE = 1_000_000


@dataclass(frozen=True)
class QuickPath:
    """A path described by options; `trace` is a file, in place of a rate."""

    rate: str | None = None
    delay: str | None = None
    queue: str | None = None
    loss: str | None = None
    trace: str | None = None

    def __bool__(self) -> bool:
        return any(getattr(self, name) is not None for name in (*_ORDER, "trace"))

    def elements(self) -> list[Mapping]:
        """The elements of the path, in order."""
        entries = {
            name: option_value(text, f"--{name}")
            for name in _ORDER
            if (text := getattr(self, name)) is not None
        }
        if self.trace is not None:
            if self.rate is not None:
                raise UsageError("--trace: a trace takes the place of the rate; leave out one of the two")
            mark = Mark("--trace")
            entries["rate"] = Mapping(mark, {"trace": Scalar(mark, self.trace)}, {"trace": mark})
        if "queue" in entries and "rate" not in entries:
            raise UsageError("--queue: a queue stands before a rate; write --rate as well")
        if self.rate is not None and self.delay is not None and self.queue is None:
            entries["queue"] = read_queue("1 bdp", Mark("--queue"))
        return in_order(entries)


def quick_scenario(path: QuickPath, changes: list[Override]) -> Loaded:
    """The scenario of a path over which every scheme sends one flow, with changes from the command line; its
    text spells out the options.
    """
    mark = Mark("the options")
    if not path:
        raise UsageError(
            "name a scenario (narrows scenarios lists the shipped ones), or describe a path, for example:"
            f" {_EXAMPLE}"
        )
    forward = Sequence(mark, list(path.elements()))
    entries: dict[str, Node] = {
        "schema": Scalar(mark, SCHEMA),
        "name": Scalar(mark, "quick"),
        "path": Mapping(mark, {"forward": forward}, {"forward": mark}),
    }
    for key, text in _DEFAULTS.items():
        entries[key] = parse_value(text, str(mark), is_option=True) or Scalar(mark, "")
    tree = overrides.apply(Mapping(mark, entries, dict.fromkeys(entries, mark)), changes)
    scenario = resolve(tree, registries.load(), "quick.yaml", Path())
    return Loaded(scenario, Path("quick.yaml"), text_of(tree), [])


# -- options -------------------------------------------------------------------------------------


def option_value(text: str, option: str) -> Node:
    """The value of an option that describes an element."""
    mark = Mark(option)
    if text.strip()[:1] in ("{", "["):
        return parse_value(text, option, is_option=True) or Scalar(mark, "")
    return read_queue(text, mark) if option == "--queue" else Scalar(mark, text.strip())


def read_queue(text: str, mark: Mark) -> Node:
    """A queue in words: `droptail 60 kB`, `60 kB` (of droptail), `codel`."""
    text = text.strip()
    name, _, amount = text.partition(" ")
    if name[:1].isdigit():
        name, amount = _PLAIN_QUEUE, text
    if not amount:
        return Scalar(mark, text)
    name = name.removesuffix(":")
    return Mapping(mark, {name: Scalar(mark, amount.strip())}, {name: mark})


def in_order(entries: dict[str, Node]) -> list[Mapping]:
    """Sorts elements: queue and rate first, then the delay, then the loss, then the rest in the
    order given.
    """

    def element(*keys: str) -> Mapping:
        marks = {key: entries[key].mark for key in keys}
        return Mapping(marks[keys[0]], {key: entries[key] for key in keys}, marks).copy("")

    documents: list[Mapping] = []
    if "rate" in entries:
        documents.append(element("rate", *(["queue"] if "queue" in entries else [])))
    rest = [key for key in entries if key not in _ORDER]
    return documents + [element(key) for key in ("delay", "loss", *rest) if key in entries]


# -- text ----------------------------------------------------------------------------------------


def text_of(tree: Mapping) -> str:
    """A scenario as YAML, with an element of a path per line."""
    return "".join(f"{key}:{_block(value, 1)}\n" for key, value in tree.entries.items())


def _block(value: Node, level: int) -> str:
    indent = "\n" + "  " * level
    if isinstance(value, Mapping) and any(isinstance(item, Sequence) for item in value.entries.values()):
        return "".join(f"{indent}{key}:{_block(item, level + 1)}" for key, item in value.entries.items())
    if isinstance(value, Sequence) and any(isinstance(item, Mapping) for item in value.items):
        return "".join(f"{indent}- {_flow(item)}" for item in value.items)
    return f" {_flow(value)}"


def _flow(value: Node) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_word(key)}: {_flow(item)}' for key, item in value.entries.items())}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_flow, value.items))}]"
    return _word(value.text, value.quoted)


def _word(text: str, quoted: bool = True) -> str:
    """A word in a form that is valid inside braces; numbers and flags keep their meaning unless they were
    `quoted`.
    """
    plain = Scalar(Mark(""), text)
    if not quoted and (plain.is_null or plain.flag is not None or plain.number is not None):
        return text
    listed: str = yaml.safe_dump([text], default_flow_style=True, width=_WIDE, allow_unicode=True)
    return listed.strip()[1:-1]
