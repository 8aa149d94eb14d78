"""Rule tables in Remy's format (`*.dna`): a tree of boxes whose leaves are the rules.

Numbers and names of the fields are those of `protobufs/dna.proto` in github.com/keithw/remy.
"""

from __future__ import annotations

import math

import numpy as np

from narrows.errors import DataError
from narrows.models.format import Array
from narrows.models.protobuf import Message, Shape, parse, parse_text

KIND = "remy"
#: The upper end of every signal in tables with four signals. Tables of 2013 have three; the fourth then has
#: no effect.
END = 163_840.0
#: Remy makes no deeper trees.
MOST_RULES = 4096

_DOMAIN, _CHILDREN, _LEAF = 1, 2, 3
_LOWER, _UPPER = 11, 12
_SIGNALS = (21, 22, 23, 24)
_INCREMENT, _MULTIPLE, _SPACING, _LEAF_DOMAIN = 31, 32, 33, 34

SHAPE = Shape(
    messages={
        "domain": _DOMAIN,
        "children": _CHILDREN,
        "leaf": _LEAF,
        "lower": _LOWER,
        "upper": _UPPER,
    },
    doubles={
        "rec_send_ewma": 21,
        "rec_rec_ewma": 22,
        "rtt_ratio": 23,
        "slow_rec_rec_ewma": 24,
        "window_multiple": _MULTIPLE,
        "intersend": _SPACING,
    },
    signed={"window_increment": _INCREMENT},
)
# In the binary form the domain of a leaf has a separate number.
_BINARY = Shape({**SHAPE.messages, "leaf domain": _LEAF_DOMAIN}, SHAPE.doubles, SHAPE.signed)


def arrays(content: bytes) -> dict[str, Array]:
    """The rules of a table in either form; raises `DataError` if the content is not one."""
    try:
        text = content.decode("ascii")
        is_text = text.isprintable() or all(letter.isprintable() or letter.isspace() for letter in text)
    except UnicodeDecodeError:
        is_text = False
    tree = parse_text(text, SHAPE) if is_text else parse(content, _BINARY)
    leaves = _leaves(tree)
    if not leaves:
        raise DataError("it has no rules, so it is not a rule table of Remy")
    if len(leaves) > MOST_RULES:
        raise DataError(f"it has more than {MOST_RULES} rules")
    rows = [_rule(leaf, domain) for leaf, domain in leaves]
    return {
        "lower": np.array([row[0] for row in rows], dtype="<f8"),
        "upper": np.array([row[1] for row in rows], dtype="<f8"),
        "increment": np.array([row[2] for row in rows], dtype="<i4"),
        "multiple": np.array([row[3] for row in rows], dtype="<f8"),
        "spacing_ms": np.array([row[4] for row in rows], dtype="<f8"),
    }


def _leaves(tree: Message) -> list[tuple[Message, Message]]:
    """All leaves in the order of the tree, each with its box."""
    leaves: list[tuple[Message, Message]] = []
    for leaf in tree.get(_LEAF, ()):
        domains = [*leaf.get(_LEAF_DOMAIN, ()), *leaf.get(_DOMAIN, ()), *tree.get(_DOMAIN, ())]
        if not domains:
            raise DataError("it has a rule without a domain")
        leaves.append((leaf, domains[0]))
    for child in tree.get(_CHILDREN, ()):
        leaves += _leaves(child)
    return leaves


def _rule(leaf: Message, domain: Message) -> tuple[list[float], list[float], int, float, float]:
    bounds = []
    for which, default in ((_LOWER, 0.0), (_UPPER, END)):
        point = (domain.get(which) or [{}])[0]
        missing = [number for number in _SIGNALS[:3] if number not in point]
        if missing:
            raise DataError("it has a rule whose domain lacks bounds")
        bounds.append([float(point[number][0]) if number in point else default for number in _SIGNALS])
    try:
        increment, multiple, spacing = (leaf[number][0] for number in (_INCREMENT, _MULTIPLE, _SPACING))
    except KeyError:
        raise DataError("it has a rule without an action") from None
    if not -(2**31) <= increment < 2**31 or not all(
        map(math.isfinite, (*bounds[0], *bounds[1], multiple, spacing))
    ):
        raise DataError("it has a rule with numbers that no rule has")
    return bounds[0], bounds[1], increment, multiple, spacing
