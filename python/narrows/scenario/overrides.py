"""Changes from the command line: `--set path.forward.0.rate="5 Mbit/s"`, `--runs 3`, `--schemes a,b`.

They change the scenario as written, before it is resolved, so they are checked like the file; a message names
the option instead of a line.
"""

from __future__ import annotations

from dataclasses import dataclass

from narrows.errors import UsageError
from narrows.scenario.keys import KEYS
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence, parse_value
from narrows.text import did_you_mean

#: The index of an item that does not exist yet.
MORE = "+"
MATRIX = "matrix"
#: Keys whose members have addresses as names.
ADDRESSED = (MATRIX, "sweep")


@dataclass(frozen=True)
class Override:
    """One change: the option as the user typed it, the address of the key, the new value."""

    option: str
    path: str
    text: str

    @classmethod
    def from_object(cls, file: str) -> Override:
        """Creates it from the argument of `--bpf`: one more scheme under test."""
        quoted = file.replace("'", "''")
        return cls("--bpf", f"schemes.{MORE}", f"{{bpf: '{quoted}'}}")

    @classmethod
    def from_set(cls, argument: str) -> Override:
        """Creates it from the argument of `--set`."""
        path, separator, text = argument.partition("=")
        path = path.strip()
        if not separator or not path:
            raise UsageError(
                f'--set takes KEY=VALUE such as --set path.forward.0.rate="5 Mbit/s", not "{argument}"'
            )
        return cls(f"--set {path}", path, text)


def apply(tree: Mapping, overrides: list[Override]) -> Mapping:
    """A copy of the tree with the changes applied."""
    result = tree.copy("")
    for override in overrides:
        value = parse_value(override.text, override.option, is_option=True)
        if value is None:
            value = Scalar(Mark(override.option), "")
        _place(result, override, value)
    return result


def place(tree: Mapping, path: str, value: Node, option: str) -> None:
    """Writes one value at an address into the tree; `option` is its name in messages."""
    _place(tree, Override(option, path, ""), value)


def split_list(text: str) -> str:
    """The YAML list of a comma-separated option (`--schemes linux:cubic,reno`)."""
    items = [item.strip() for item in text.split(",") if item.strip()]
    return "[" + ", ".join("'" + item.replace("'", "''") + "'" for item in items) + "]"


def _address(tree: Mapping, path: str) -> list[str]:
    """The steps of an address. The keys of a matrix are addresses themselves, and have display names."""
    parts = path.split(".")
    if parts[0] not in ADDRESSED or len(parts) == 1:
        return parts
    key = path.removeprefix(f"{parts[0]}.")
    matrix = tree.entries.get(parts[0])
    keys = list(matrix.entries) if isinstance(matrix, Mapping) else []
    named = [text for text in keys if key in _names(text, matrix)]
    return [parts[0], named[0] if key not in keys and len(named) == 1 else key]


def _names(key: str, matrix: Node | None) -> tuple[str, ...]:
    """The names of a key of a matrix: its last word, and its label."""
    last = next((part for part in reversed(key.split(".")) if not part.isdecimal()), key)
    value = matrix.entries[key] if isinstance(matrix, Mapping) else None
    label = value.entries.get("label") if isinstance(value, Mapping) else None
    return (last, label.text) if isinstance(label, Scalar) else (last,)


def _place(tree: Mapping, override: Override, value: Node) -> None:
    parts = _address(tree, override.path)
    if parts[-1] == MORE and parts[0] not in tree.entries:
        raise UsageError(
            f"{override.option}: there is no list of {parts[0]} in this scenario, every flow names its own;"
            " write {bpf: FILE} as the scheme of a flow"
        )
    here: Node = tree
    walked: list[str] = []
    for part in parts[:-1]:
        here = _step(here, part, walked, override)
        walked.append(part)
    last = parts[-1]
    if isinstance(here, Mapping):
        path = here.mark.below(last)
        old = here.entries.get(last)
        if (
            parts[:-1] in ([text] for text in ADDRESSED)
            and isinstance(value, Sequence)
            and isinstance(old, Mapping)
        ):
            # The values of a key with a label.
            old.entries["values"] = value.copy(old.mark.below("values"))
            return
        here.entries[last] = value.copy(path)
        here.key_marks[last] = Mark(override.option, path=path)
    elif isinstance(here, Sequence):
        index = _index(here, last, walked, override)
        here.items[index : index + 1] = [value.copy(here.mark.below(index))]
    else:
        raise UsageError(f"{override.option}: {'.'.join(walked)} is a single value, it has no key {last}")


def _step(here: Node, part: str, walked: list[str], override: Override) -> Node:
    if isinstance(here, Mapping):
        if part not in here.entries:
            if part not in KEYS and len(walked) < 2:
                # The command line may set a key that the file omits (such as transport).
                hint = did_you_mean(part, here.entries)
                if hint:
                    raise UsageError(
                        f"{override.option}: the scenario has no key {'.'.join([*walked, part])}{hint}"
                    )
            mark = Mark(override.option, path=here.mark.below(part))
            here.entries[part], here.key_marks[part] = Mapping(mark), mark
        return here.entries[part]
    if isinstance(here, Sequence):
        index = _index(here, part, walked, override)
        if index < len(here.items):
            return here.items[index]
    raise UsageError(f"{override.option}: the scenario has no {'.'.join([*walked, part])}")


def _index(here: Sequence, part: str, walked: list[str], override: Override) -> int:
    count = len(here.items)
    if part == MORE:
        return count
    if not part.isdecimal() or len(part) > 6 or int(part) > count:
        raise UsageError(
            f"{override.option}: {'.'.join(walked)} is a list of {count}; its items are 0 to {count - 1}"
            f" and {count} adds one"
        )
    return int(part)
