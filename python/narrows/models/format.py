"""The format of model files: a line, a JSON header, and little-endian arrays one after the other.

The core reads the same format (`core/cc/src/parts/model_file.rs`) and decides whether a model can be used;
this module writes files, and reads as much of them as is shown to people.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrows.errors import DataError
from narrows.text import shorten

MAGIC = b"narrows/model/1\n"
#: The beginning of all versions.
FAMILY = b"narrows/model/"
#: The ending of the names of model files.
SUFFIX = ".model"

#: Types of arrays, as headers call them.
TYPES: dict[str, str] = {"f32": "<f4", "f64": "<f8", "i32": "<i4"}

Array = NDArray[Any]

#: Kinds are names of schemes, and arrays have plain names as well, so that both may be printed.
_KIND = re.compile(r"[a-z0-9-]{1,40}")
_ARRAY = re.compile(r"[A-Za-z0-9_]{1,60}")


@dataclass(frozen=True)
class Summary:
    """The header of a model file."""

    kind: str
    #: Name, type and shape of each array.
    arrays: tuple[tuple[str, str, tuple[int, ...]], ...]
    #: Everything else in the header, for people.
    notes: dict[str, Any]


def write(kind: str, arrays: Mapping[str, Array], notes: Mapping[str, Any]) -> bytes:
    """The content of a model file. The same model gives the same bytes."""
    listed, data = [], []
    for name, values in arrays.items():
        code = next(
            code for code, kind_ in TYPES.items() if np.dtype(kind_) == values.dtype.newbyteorder("<")
        )
        listed.append({"name": name, "type": code, "shape": list(values.shape)})
        data.append(np.ascontiguousarray(values, dtype=TYPES[code]).tobytes())
    header = json.dumps({"kind": kind, **notes, "arrays": listed}, separators=(",", ":")).encode()
    return b"".join([MAGIC, len(header).to_bytes(4, "little"), header, *data])


def summary(content: bytes) -> Summary:
    """The content of a model file; raises `DataError` if it is none."""
    if not content.startswith(MAGIC):
        raise DataError(
            "it is a model file of another version; make it again"
            if content.startswith(FAMILY)
            else "it is not a model file"
        )
    start = len(MAGIC) + 4
    length = int.from_bytes(content[len(MAGIC) : start], "little")
    try:
        header = json.loads(content[start : start + length])
        kind = header.pop("kind")
        arrays = tuple((one["name"], one["type"], tuple(one["shape"])) for one in header.pop("arrays"))
        # JSON as it is read here may hold what can't be written again: half characters, numbers without end.
        json.dumps([kind, arrays, header], ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise DataError("its header is damaged") from None
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise DataError(f"its header has no kind of a model, but {shorten(json.dumps(kind), 40)}")
    for name, code, shape in arrays:
        named = isinstance(name, str) and _ARRAY.fullmatch(name)
        shaped = all(type(length) is int and length > 0 for length in shape)
        if not named or code not in tuple(TYPES) or not shaped:
            raise DataError(
                f"its header describes no array that models have: {shorten(json.dumps(name), 40)}"
            )
    return Summary(kind, arrays, header)
