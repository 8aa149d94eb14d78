"""The answers of agents, checked on arrival: they may come from a machine that is broken or lies."""

from __future__ import annotations

import json
from typing import TypeVar

from narrows.documents.agent import Event
from narrows.documents.data import DamagedError, from_data
from narrows.errors import UnavailableError
from narrows.text import is_text

Kind = TypeVar("Kind")
_NO_REASON = "the agent failed without giving a reason"


def parse(text: bytes) -> dict[str, object] | None:
    """Parses a line of an agent as a JSON object; returns None if it is not one."""
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return result if isinstance(result, dict) else None


def read_event(line: bytes) -> Event | None:
    """A line of an agent that runs a cell; None if it is not an event."""
    try:
        return from_data(parse(line), Event)
    except DamagedError:
        return None


def complaint(answer: dict[str, object]) -> str | None:
    """The failure that an answer reports, if any."""
    if answer.get("event") == "error":
        return sentence(answer.get("message"))
    return sentence(answer["error"]) if "error" in answer else None


def sentence(message: object) -> str:
    """The message of a failed agent, if it may be printed."""
    return message if isinstance(message, str) and message and is_text(message) else _NO_REASON


def read_answer(place: str, answer: object, kind: type[Kind]) -> Kind:
    """The typed answer of an agent; raises `UnavailableError` if it is a failure or does not fit."""
    if isinstance(answer, dict) and (message := complaint(answer)):
        raise UnavailableError(f"{place}: {message}")
    try:
        return from_data(answer, kind, "its answer")
    except DamagedError as error:
        raise UnavailableError(f"{place}: the agent's answer is malformed: {error}; check the host") from None
