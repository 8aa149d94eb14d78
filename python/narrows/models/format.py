"""The format of model files: safetensors, with the kind of the model among the metadata.

The core reads the same files (`core/cc/src/parts/files/model_file.rs`) and decides whether a model can be
used; this module writes them, and reads the parts that are shown to people. Files of the former format (a
line, a JSON header, arrays) are converted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from narrows.documents.components import NARROWS, TRAINED_BY
from narrows.errors import DataError
from narrows.files import open_regular
from narrows.text import printable, shorten

#: The suffix of model files.
SUFFIX = ".safetensors"
#: The note with the description of a policy.
POLICY = "policy"
#: The beginning of files of the former format.
FORMER = b"narrows/model/1\n"
_FORMER_TYPES = {"f32": "<f4", "f64": "<f8", "i32": "<i4"}

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]
else:
    # The list of schemes reads only the headers of models, which takes less time than importing numpy.
    Array = Any

#: Kinds are names of schemes, and arrays have plain names as well, so that both can be printed safely.
_KIND = re.compile(r"[a-z0-9-]{1,40}")
_ARRAY = re.compile(r"[A-Za-z0-9_.-]{1,60}")
#: Bytes of the length field before the header; headers are padded to this alignment.
_LENGTH = 8
#: No header is longer.
_MOST_HEADER = 1_000_000


class _Metadata(msgspec.Struct):
    kind: str


class _Header(msgspec.Struct):
    metadata: _Metadata = msgspec.field(name="__metadata__")


class Design(msgspec.Struct, frozen=True):
    """The description of a policy, which the core checks."""

    observation: str
    action: str
    layers: tuple[msgspec.Raw, ...]


@dataclass(frozen=True)
class Summary:
    """The header of a model file."""

    kind: str
    #: Name, type and shape of each array.
    arrays: tuple[tuple[str, str, tuple[int, ...]], ...]
    #: All other metadata, for people.
    notes: dict[str, str]

    @property
    def is_ours(self) -> bool:
        """True if Narrows trained the model, by its own note."""
        return self.notes.get(TRAINED_BY) == NARROWS


def write(kind: str, arrays: Mapping[str, Array], notes: Mapping[str, str]) -> bytes:
    """The content of a model file. Equal models have equal bytes."""
    import numpy as np
    from safetensors.numpy import save

    plain = {name: np.ascontiguousarray(values) for name, values in arrays.items()}
    content = save(plain, metadata={"kind": kind, **notes})
    # The library writes metadata in the order of a hash table, which varies.
    start = _data_start(content)
    header = json.dumps(json.loads(content[_LENGTH:start]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % _LENGTH)
    return len(header).to_bytes(_LENGTH, "little") + header + content[start:]


def read_kind(path: Path) -> str | None:
    """The kind of the model file at `path`; None if it has none, or can't be read.

    Reads only the header, and needs no library: a list of names takes a few ms.
    """
    try:
        with open_regular(path) as file:
            length = int.from_bytes(file.read(_LENGTH), "little")
            text = file.read(min(length, _MOST_HEADER))
        kind = msgspec.json.decode(text, type=_Header).metadata.kind
    except (OSError, RecursionError, msgspec.DecodeError):
        return None
    return kind if _KIND.fullmatch(kind) else None


def summary(content: bytes) -> Summary:
    """The header of a model file; raises `DataError` if the file is not one."""
    from safetensors import SafetensorError, deserialize

    try:
        result = deserialize(content)  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise DataError(f"it is not a model file: {printable(shorten(str(error), 80))}") from None
    metadata = json.loads(content[_LENGTH : _data_start(content)]).get("__metadata__") or {}
    kind = metadata.pop("kind", None)
    if kind is None or not _KIND.fullmatch(kind):
        raise DataError(f"its metadata has no kind of a model, but {shorten(json.dumps(kind), 40)}")
    for name, item in result:
        if not _ARRAY.fullmatch(name) or 0 in item["shape"]:
            raise DataError(
                f"its header describes no array that models have: {shorten(json.dumps(name), 40)}"
            )
    return Summary(
        kind,
        tuple((name, item["dtype"].lower(), tuple(item["shape"])) for name, item in sorted(result)),
        metadata,
    )


def read_design(notes: Mapping[str, str]) -> Design | None:
    """The design of a policy by its notes; None if there is none."""
    try:
        return msgspec.json.decode(notes[POLICY], type=Design)
    except (KeyError, RecursionError, msgspec.DecodeError):
        return None


def is_model(content: bytes) -> bool:
    """True if the content looks like a file of the format."""
    return content[_LENGTH : _LENGTH + 1] == b"{" and _data_start(content) <= len(content)


def former(content: bytes) -> tuple[str, dict[str, Array], dict[str, str]]:
    """Kind, arrays and notes of a file of the former format; raises `DataError` if it is damaged."""
    start = len(FORMER) + 4
    length = int.from_bytes(content[len(FORMER) : start], "little")
    import numpy as np

    arrays: dict[str, Array] = {}
    try:
        header = json.loads(content[start : start + length])
        kind, at = str(header.pop("kind")), start + length
        for item in header.pop("arrays"):
            values = np.frombuffer(content, _FORMER_TYPES[item["type"]], math.prod(item["shape"]), at)
            arrays[str(item["name"])] = values.reshape(item["shape"])
            at += values.nbytes
        source = header.pop("source", None)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        raise DataError("its header is damaged") from None
    if not all(map(_ARRAY.fullmatch, arrays)) or not _KIND.fullmatch(kind):
        raise DataError("its header has names that models do not have")
    if at != len(content):
        raise DataError(f"it has {len(content) - at} bytes after its last array")
    return kind, arrays, {} if source is None else {"source": describe_origin(source)}


def describe_origin(source: object) -> str:
    """The origin of a model, as a note."""
    if not isinstance(source, dict):
        return printable(str(source))
    return ", ".join(f"{key} {value}".removeprefix("format ") for key, value in source.items())


def _data_start(content: bytes) -> int:
    return _LENGTH + int.from_bytes(content[:_LENGTH], "little")
