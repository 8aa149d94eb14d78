"""The answers of agents, checked where they come in: they may be those of another machine, which is broken or
lies."""

from __future__ import annotations

import ipaddress
import json
from typing import Any

from narrows.errors import UnavailableError
from narrows.json_shapes import (
    BOOLEAN,
    COUNT,
    INTEGER,
    NUMBER,
    TEXT,
    Shape,
    ShapeError,
    dict_of,
    is_text,
    list_of,
    nullable,
    record,
    scalar,
)


def socket_address(ip: str, port: int) -> str:
    """As the agent writes addresses."""
    return f"[{ip}]:{port}" if ipaddress.ip_address(ip).version == 6 else f"{ip}:{port}"


def split_address(text: str) -> tuple[str, int]:
    """The opposite."""
    ip, _, port = text.rpartition(":")
    return ip.strip("[]"), int(port)


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


ADDRESS = scalar(_is_address, "an IP address")
SOCKET = scalar(_is_socket, "an IP address with port")


def parse(text: bytes) -> dict[str, Any] | None:
    """A line of an agent, which is a JSON object; None if it is not."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def complaint(document: dict[str, Any]) -> str | None:
    """The failure that a document tells of, if it does."""
    if document.get("event") == "error":
        message = document.get("message")
    elif "error" in document:
        message = document["error"]
    else:
        return None
    return message if message and is_text(message) else "the agent failed without giving a reason"


def checked(place: str, document: Any, shape: Shape) -> dict[str, Any]:
    """The document, if it has the shape; raises `UnavailableError` with"""
    if isinstance(document, dict) and (message := complaint(document)):
        raise UnavailableError(f"{place}: {message}")
    try:
        shape(document, "its answer")
    except ShapeError as error:
        raise UnavailableError(f"{place}: the agent's answer is malformed: {error}; check the host") from None
    found: dict[str, Any] = document
    return found


# -- the documents ---------------------------------------------------------------------------------

_ABLE = record({"ok": BOOLEAN, "why": nullable(TEXT)})
_CHANGES = list_of(record({"name": TEXT, "before": COUNT, "now": COUNT}))
#: drivers/realpath/src/timekeeping.rs
_CLOCK = {
    "real_ns": INTEGER,
    "raw_ns": INTEGER,
    "source": nullable(TEXT),
    "synchronized": BOOLEAN,
    "bound_ns": nullable(COUNT),
    "correction_ppb": nullable(INTEGER),
    "keeper": nullable(record({"program": TEXT, "reference": nullable(TEXT), "stratum": nullable(COUNT)})),
}
CLOCK = record(_CLOCK)
_BRIEF = {
    "name": nullable(TEXT),
    "system": nullable(TEXT),
    "virtual": BOOLEAN,
    "load": nullable(list_of(NUMBER)),
    "available_bytes": nullable(COUNT),
    "clock": record({**_CLOCK, "shift_ns": INTEGER}),
    "left_behind": _CHANGES,
    "kernel": nullable(TEXT),
    "sysctls": dict_of(TEXT, TEXT),
}
#: agent/src/host.rs
HOST_NOW = record(_BRIEF)
HOST = record(
    {
        **_BRIEF,
        "tunnel_device": _ABLE,
        "machine": nullable(TEXT),
        "cpus": COUNT,
        "cpu_model": nullable(TEXT),
        "memory_bytes": nullable(COUNT),
        "root": BOOLEAN,
        "namespaces": record({"ok": BOOLEAN, "how": nullable(TEXT), "why": nullable(TEXT)}),
        "packet_socket": _ABLE,
        "congestion_controls": list_of(TEXT),
        "bpf": _ABLE,
    }
)
#: drivers/realpath/src/path_probe
READY = record({"clock_shift_ns": INTEGER})
OPENED = record(
    {
        "opened": list_of(
            record({"asked": COUNT, "port": nullable(COUNT), "index": nullable(COUNT), "why": nullable(TEXT)})
        )
    }
)
SENT = record({"refused": list_of(record({"size": COUNT, "why": TEXT}))})
ROUTE = record({"source": ADDRESS})
_EXCHANGE = record(
    {"asked_ns": INTEGER, "arrived_ns": INTEGER, "answered_ns": INTEGER, "back_ns": INTEGER, "seen": SOCKET}
)
ARRIVED = record(
    {
        "ports": list_of(
            record(
                {
                    "packets": COUNT,
                    "largest": COUNT,
                    "from": nullable(SOCKET),
                    "answers": dict_of(SOCKET, COUNT),
                    "best": nullable(_EXCHANGE),
                    "strangers": COUNT,
                }
            )
        )
    }
)
VERSION = record({"narrows": TEXT, "protocol": COUNT})
#: agent/src/bpf.rs
PROGRAMS = record(
    {"results": list_of(record({"ok": BOOLEAN}, {"kind": nullable(TEXT), "message": nullable(TEXT)}))}
)
#: Of an agent that overrides settings, when it begins and ends.
OVERRIDDEN = record({"changed": _CHANGES, "recovered": _CHANGES})
RESTORED = record({"restored": _CHANGES})
