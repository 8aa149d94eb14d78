"""Rotated captures: one capture in several files, as written by `tcpdump -C`, `tcpdump -G` and `dumpcap -b`.

Files are parts of one capture if their names differ only in digits, the packets of each follow those of the
previous part, and a connection runs across: it has packets in both, and its handshake is not in the later
one. In contrast, two captures of both ends overlap in time, and consecutive runs begin with separate
handshakes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from narrows.formats.imports._capture import Capture

_PCAP_HEADER = 24
#: Block types of pcapng that open a section and describe its interfaces.
_SECTION, _INTERFACE = 0x0A0D0D0A, 1
_BIG_ENDIAN = bytes.fromhex("1a2b3c4d")


def chains(captures: Sequence[Capture]) -> list[list[Capture]]:
    """The captures; the parts of a rotated one are joined in order of time."""
    interfaces = Counter(capture.file for capture in captures)
    series: dict[object, list[list[Capture]]] = {}
    for capture in sorted(captures, key=_first_ns):
        own = series.setdefault(_series(capture.file), [])
        whole = interfaces[capture.file] == 1
        chain = next((chain for chain in own if whole and _continues(chain[-1], capture)), None)
        if chain is None:
            own.append([capture])
        else:
            chain.append(capture)
    order = {id(capture): place for place, capture in enumerate(captures)}
    every = (chain for own in series.values() for chain in own)
    return sorted(every, key=lambda chain: min(order[id(capture)] for capture in chain))


def _first_ns(capture: Capture) -> int:
    return min((connection.first_ns for connection in capture.connections), default=0)


def _continues(before: Capture, after: Capture) -> bool:
    if not (before.connections and after.connections):
        return False
    if max(connection.last_ns for connection in before.connections) > _first_ns(after):
        return False
    known = {(connection.protocol, frozenset(connection.ends)) for connection in before.connections}
    return any(
        not connection.opened and (connection.protocol, frozenset(connection.ends)) in known
        for connection in after.connections
    )


def _series(file: Path) -> tuple[Path, str]:
    """The folder of a file and its name without the digits that number parts or state times."""
    return file.parent, re.sub(r"\d+", "", file.name)


def join(parts: Sequence[bytes]) -> bytes | None:
    """The content of a single file with the packets of all parts; `None` if their headers differ."""
    head = _head(parts[0])
    if any(part[: len(head)] != head for part in parts[1:]):
        return None
    return b"".join([parts[0], *(part[len(head) :] for part in parts[1:])])


def _head(content: bytes) -> bytes:
    """The part before the packets: the header of a pcap file, or the blocks that open a pcapng section."""
    order = "big" if content[8:12] == _BIG_ENDIAN else "little"
    if int.from_bytes(content[:4], "little") != _SECTION:
        return content[:_PCAP_HEADER]
    end = 0
    while end + 8 <= len(content):
        kind = int.from_bytes(content[end : end + 4], order)  # type: ignore[arg-type]
        length = int.from_bytes(content[end + 4 : end + 8], order)  # type: ignore[arg-type]
        if kind not in (_SECTION, _INTERFACE) or length < 12:
            break
        end += length
    return content[:end]
