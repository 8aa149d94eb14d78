"""Differentiated services code points by name (RFC 2474, 2597, 3246, 5865, 8622)."""

from __future__ import annotations

from narrows.scenario.problems import Wrong
from narrows.scenario.yaml_tree import Node, Scalar
from narrows.text import did_you_mean, shorten

NAMES: dict[str, int] = {
    **{f"CS{k}": 8 * k for k in range(8)},
    **{f"AF{k}{drop}": 8 * k + 2 * drop for k in range(1, 5) for drop in range(1, 4)},
    "EF": 46,
    "VA": 44,
    "LE": 1,
    "BE": 0,
}
LARGEST = 63


def read_dscp(value: Node) -> int:
    """A code point: 0 to 63, or a name."""
    if not isinstance(value, Scalar):
        raise Wrong(value.mark, "must be a code point such as 46 or EF")
    if value.text in NAMES:
        return NAMES[value.text]
    if value.integer is not None and 0 <= value.integer <= LARGEST:
        return value.integer
    hint = did_you_mean(value.text, NAMES) or "; write a number from 0 to 63, or EF, AF41, CS1"
    raise Wrong(value.mark, f'"{shorten(value.text)}" is not a code point{hint}')
