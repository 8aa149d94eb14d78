"""TensorFlow checkpoints, read without TensorFlow: tensors by name.

A checkpoint is an index (`NAME.index`) and one or more files of data (`NAME.data-00000-of-00001`). The index
is a table of sorted keys in LevelDB's format (blocks with shared prefixes, and a footer with the position of
the blocks' index), whose values are small protocol buffers: type, shape, file, offset, length and checksum of
each tensor. Sources: tensorflow/core/util/tensor_bundle, tensorflow/core/protobuf/tensor_bundle.proto,
doc/table_format.md of LevelDB.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import numpy as np

from narrows.errors import DataError
from narrows.files import read_whole
from narrows.models.format import Array
from narrows.models.protobuf import BYTES, VARINT, fields, varint

_FOOTER = 48
_MAGIC = 0xDB4775248B80FB57
#: Follows each block: its compression, and a checksum.
_TRAILER = 5
#: The only number type of the networks (DT_FLOAT).
_FLOAT = 1
_DATA = re.compile(r"\.data-[0-9]{5}-of-[0-9]{5}$")


def prefix_of(path: Path) -> Path | None:
    """The common name of a checkpoint's files, if `path` is one of them, that name, or their folder."""
    if path.is_dir():
        paths = sorted(path.glob("*.index"))
        return paths[0].with_suffix("") if len(paths) == 1 else None
    if path.suffix == ".index":
        return path.with_suffix("")
    if _DATA.search(path.name):
        return path.with_name(_DATA.sub("", path.name))
    return path if path.with_name(path.name + ".index").is_file() else None


def tensors(prefix: Path) -> dict[str, Array]:
    """All tensors of single precision; raises `DataError` for files that are not checkpoints."""
    index = _read(prefix.with_name(prefix.name + ".index"))
    shards = 0
    entries: list[tuple[str, dict[int, list[int | bytes]]]] = []
    for key, value in _table(index):
        entry: dict[int, list[int | bytes]] = {}
        for number, _, field in fields(value):
            entry.setdefault(number, []).append(field)
        if key == b"":
            shards = _whole(entry, 1)
            if _whole(entry, 2):
                raise DataError("the checkpoint was written by a machine with another order of bytes")
        else:
            entries.append((key.decode("utf-8", "replace"), entry))
    if not 1 <= shards <= 100:
        raise DataError("the index has no header, so it is not a checkpoint")
    files = [_read(prefix.with_name(f"{prefix.name}.data-{n:05}-of-{shards:05}")) for n in range(shards)]
    result = {}
    for name, entry in entries:
        if _whole(entry, 1) != _FLOAT:
            continue
        shard, offset, size = (_whole(entry, number) for number in (3, 4, 5))
        data = files[shard][offset : offset + size] if shard < shards else b""
        shape = _shape(entry)
        if len(data) != size or size != 4 * int(np.prod(shape, dtype=object)):
            raise DataError(f"the tensor {name} is cut off, or does not have its shape")
        checksum = entry.get(6, [b""])[0]
        if isinstance(checksum, bytes) and int.from_bytes(checksum, "little") != mask_checksum(crc32c(data)):
            raise DataError(f"the tensor {name} is damaged: its checksum is another")
        result[name] = np.frombuffer(data, dtype="<f4").reshape(shape)
    return result


def _read(path: Path) -> bytes:
    try:
        return read_whole(path, "such network")
    except DataError as error:
        raise DataError(f"{path} {error}") from None


def _whole(entry: dict[int, list[int | bytes]], number: int) -> int:
    """A whole number that counts as 0 when it is absent."""
    value = entry.get(number, [0])[0]
    if not isinstance(value, int):
        raise DataError("the index has an entry of another form than that of checkpoints")
    return value


def _shape(entry: dict[int, list[int | bytes]]) -> tuple[int, ...]:
    lengths = []
    for content in entry.get(2, ()):
        if not isinstance(content, bytes):
            raise DataError("the index has an entry without a shape")
        for number, wire, dimension in fields(content):
            if number == 2 and wire == BYTES:
                assert isinstance(dimension, bytes)
                own = [value for key, kind, value in fields(dimension) if key == 1 and kind == VARINT]
                lengths.append(int(own[0]) if own else 0)
    return tuple(lengths)


def _table(content: bytes) -> list[tuple[bytes, bytes]]:
    """All keys and values of a sorted table."""
    footer = content[-_FOOTER:]
    if len(footer) < _FOOTER or int.from_bytes(footer[-8:], "little") != _MAGIC:
        raise DataError("it is not the index of a checkpoint: its last bytes differ")
    # The first value is that of a block about the table, which is not needed.
    _, at = varint(footer, 0)
    _, at = varint(footer, at)
    offset, at = varint(footer, at)
    size, _ = varint(footer, at)
    table = []
    for _, handle in _block(content, offset, size):
        offset, at = varint(handle, 0)
        size, _ = varint(handle, at)
        table += _block(content, offset, size)
    return table


def _block(content: bytes, offset: int, size: int) -> list[tuple[bytes, bytes]]:
    block = content[offset : offset + size]
    trailer = content[offset + size : offset + size + _TRAILER]
    if len(block) != size or len(trailer) != _TRAILER or size < 4:
        raise DataError("the index is cut off")
    if trailer[0] != 0:
        raise DataError("the index is compressed, which checkpoints of TensorFlow are not")
    if int.from_bytes(trailer[1:], "little") != mask_checksum(crc32c(block + trailer[:1])):
        raise DataError("the index is damaged: its checksum is another")
    restarts = int.from_bytes(block[-4:], "little")
    end = size - 4 * (restarts + 1)
    at, key = 0, b""
    pairs = []
    while at < end:
        shared, at = varint(block, at)
        own, at = varint(block, at)
        length, at = varint(block, at)
        if shared > len(key) or at + own + length > end:
            raise DataError("the index is damaged: a key does not follow from the one before")
        key = key[:shared] + block[at : at + own]
        pairs.append((key, block[at + own : at + own + length]))
        at += own + length
    return pairs


@lru_cache(maxsize=1)
def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # noqa: PLW2901 - the register itself
        table.append(byte)
    return tuple(table)


def crc32c(data: bytes) -> int:
    """The CRC with Castagnoli's polynomial (RFC 3720, appendix B.4)."""
    table, value = _crc_table(), 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ table[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def mask_checksum(checksum: int) -> int:
    """LevelDB's stored form of checksums, since checksums of data that contains checksums would be weak."""
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF
