"""The answers of agents, checked where they come in: they may be those of another machine, which is broken or
lies."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from typing import Any

from narrows.errors import UnavailableError
from narrows.json_shapes import KINDS, Shape, ShapeError, is_text, read_shapes, scalar


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


def parse(text: bytes) -> dict[str, Any] | None:
    """A line of an agent, which is a JSON object; None if it is not."""
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return result if isinstance(result, dict) else None


def complaint(document: dict[str, Any]) -> str | None:
    """The failure that a document reports, if any."""
    if document.get("event") == "error":
        message = document.get("message")
    elif "error" in document:
        message = document["error"]
    else:
        return None
    return message if message and is_text(message) else "the agent failed without giving a reason"


def check_document(place: str, document: Any, shape: Shape) -> dict[str, Any]:
    """The document, if it has the shape; raises `UnavailableError` if not."""
    if isinstance(document, dict) and (message := complaint(document)):
        raise UnavailableError(f"{place}: {message}")
    try:
        shape(document, "its answer")
    except ShapeError as error:
        raise UnavailableError(f"{place}: the agent's answer is malformed: {error}; check the host") from None
    result: dict[str, Any] = document
    return result


_SHAPES = read_shapes(
    Path(__file__).with_name("answers.toml"),
    {
        **KINDS,
        "address": scalar(_is_address, "an IP address"),
        "socket": scalar(_is_socket, "an IP address with port"),
    },
)
CLOCK, HOST_NOW, HOST = (_SHAPES[name] for name in ("clock", "host_now", "host"))
READY, OPENED, SENT, ROUTE, ARRIVED = (
    _SHAPES[name] for name in ("ready", "opened", "sent", "route", "arrived")
)
VERSION, PROGRAMS = _SHAPES["version"], _SHAPES["programs"]
OVERRIDDEN, RESTORED = _SHAPES["overridden"], _SHAPES["restored"]
