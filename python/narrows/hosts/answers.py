"""What agents answer, checked where it comes in: one of them runs on another machine, which may be broken, or
lie.
"""

from __future__ import annotations

import ipaddress
import json
from typing import Any

from narrows.errors import UnavailableError
from narrows.hosts.addresses import socket_address, split_address
from narrows.shapes import (
    COUNT,
    NUMBER,
    TEXT,
    TRUTH,
    WHOLE,
    Shape,
    Wrong,
    atom,
    each,
    is_text,
    maybe,
    record,
    table,
)


def _is_address(value: Any) -> bool:
    try:
        return isinstance(value, str) and value.isprintable() and bool(ipaddress.ip_address(value))
    except ValueError:
        return False


def _is_socket(value: Any) -> bool:
    try:
        ip, port = split_address(value)
        return socket_address(ip, port) == value and 0 <= port < 1 << 16 and value.isprintable()
    except (AttributeError, ValueError):
        return False


ADDRESS = atom(_is_address, "IP address")
SOCKET = atom(_is_socket, "IP address with port")


def parse(text: bytes) -> dict[str, Any] | None:
    """A line of an agent, which is a JSON object; None if it is not."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def complaint(document: dict[str, Any]) -> str | None:
    """What a document says has gone wrong, if it is about that."""
    if document.get("event") == "error":
        told = document.get("message")
    elif "error" in document:
        told = document["error"]
    else:
        return None
    return told if told and is_text(told) else "something has gone wrong, and the agent does not tell what"


def checked(place: str, document: Any, shape: Shape) -> dict[str, Any]:
    """The document, if it has the shape; raises `UnavailableError` with what it complains of or what is wrong
    with it, else."""
    if isinstance(document, dict) and (told := complaint(document)):
        raise UnavailableError(f"{place}: {told}")
    try:
        shape(document, "its answer")
    except Wrong as wrong:
        raise UnavailableError(
            f"{place}: the agent's answer makes no sense: {wrong}; see whether the host is what it should be"
        ) from None
    found: dict[str, Any] = document
    return found


# -- the documents ---------------------------------------------------------------------------------

_ABLE = record({"ok": TRUTH, "why": maybe(TEXT)})
_CHANGES = each(record({"name": TEXT, "before": COUNT, "now": COUNT}))
#: drivers/realpath/src/timekeeping.rs
_CLOCK = {
    "real_ns": WHOLE,
    "raw_ns": WHOLE,
    "source": maybe(TEXT),
    "synchronized": TRUTH,
    "bound_ns": maybe(COUNT),
    "correction_ppb": maybe(WHOLE),
    "keeper": maybe(record({"program": TEXT, "reference": maybe(TEXT), "stratum": maybe(COUNT)})),
}
CLOCK = record(_CLOCK)
_BRIEF = {
    "name": maybe(TEXT),
    "system": maybe(TEXT),
    "virtual": TRUTH,
    "load": maybe(each(NUMBER)),
    "available_bytes": maybe(COUNT),
    "clock": record({**_CLOCK, "shift_ns": WHOLE}),
    "left_behind": _CHANGES,
    "kernel": maybe(TEXT),
    "sysctls": table(TEXT, TEXT),
}
#: agent/src/host.rs
HOST_NOW = record(_BRIEF)
HOST = record(
    {
        **_BRIEF,
        "tunnel_device": _ABLE,
        "machine": maybe(TEXT),
        "cpus": COUNT,
        "cpu_model": maybe(TEXT),
        "memory_bytes": maybe(COUNT),
        "root": TRUTH,
        "namespaces": record({"ok": TRUTH, "how": maybe(TEXT), "why": maybe(TEXT)}),
        "packet_socket": _ABLE,
        "congestion_controls": each(TEXT),
        "bpf": _ABLE,
    }
)
#: drivers/realpath/src/path_probe
READY = record({"clock_shift_ns": WHOLE})
OPENED = record(
    {
        "opened": each(
            record({"asked": COUNT, "port": maybe(COUNT), "index": maybe(COUNT), "why": maybe(TEXT)})
        )
    }
)
SENT = record({"refused": each(record({"size": COUNT, "why": TEXT}))})
ROUTE = record({"source": ADDRESS})
_EXCHANGE = record(
    {"asked_ns": WHOLE, "arrived_ns": WHOLE, "answered_ns": WHOLE, "back_ns": WHOLE, "seen": SOCKET}
)
ARRIVED = record(
    {
        "ports": each(
            record(
                {
                    "packets": COUNT,
                    "largest": COUNT,
                    "from": maybe(SOCKET),
                    "answers": table(SOCKET, COUNT),
                    "best": maybe(_EXCHANGE),
                    "strangers": COUNT,
                }
            )
        )
    }
)
VERSION = record({"narrows": TEXT, "protocol": COUNT})
#: agent/src/bpf.rs
PROGRAMS = record({"results": each(record({"ok": TRUTH, "kind": maybe(TEXT), "message": maybe(TEXT)}))})
#: Of an agent that holds settings, when it begins and ends.
HELD = record({"changed": _CHANGES, "recovered": _CHANGES})
RESTORED = record({"restored": _CHANGES})
