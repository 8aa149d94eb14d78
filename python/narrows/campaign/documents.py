"""The members of a campaign's files that we read, and what they must be.

The files are plain text, and whoever changes them by hand is told what does not fit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from narrows.errors import DataError
from narrows.shapes import (
    COUNT,
    LIST,
    NUMBER,
    OBJECT,
    STRING,
    Shape,
    Wrong,
    atom,
    each,
    is_text,
    maybe,
    record,
    table,
)

_REASON = record({}, {"severity": STRING, "code": STRING, "text": STRING})
_NAME = atom(lambda value: is_text(value) or (isinstance(value, int) and value >= 0), "name or number")
_CELL = record(
    {"id": STRING, "scheme": STRING, "run": COUNT, "state": STRING},
    {
        "verdict": maybe(STRING),
        "reasons": each(_REASON),
        "error": maybe(OBJECT),
        "failures": each(OBJECT),
        "attempts": COUNT,
        "digest": maybe(STRING),
        "input": maybe(OBJECT),
    },
)
_SKIPPED = each(record({"scheme": STRING, "reason": STRING}))
_FLOW = record({}, {"scheme": STRING, "direction": STRING, "params": maybe(OBJECT), "label": maybe(STRING)})
_ROW_OF_SCHEME = record({"label": STRING}, {"scheme": STRING, "flows": each(_FLOW), "params": maybe(OBJECT)})
_RESOLVED = record(
    {},
    {
        "question": STRING,
        "schemes": each(_ROW_OF_SCHEME),
        "name": STRING,
        "title": maybe(STRING),
        "network": maybe(OBJECT),
        "expect": maybe(each(OBJECT)),
        "measure": maybe(OBJECT),
    },
)
_CAMPAIGN = record(
    {"cells": each(_CELL)},
    {
        "name": STRING,
        "hash": STRING,
        "where": STRING,
        "scenario": record({}, {"resolved": _RESOLVED, "written": STRING, "overrides": LIST}),
        "sessions": each(OBJECT),
        "skipped": _SKIPPED,
        "rounds": each(OBJECT),
        "versions": maybe(OBJECT),
        "host": maybe(OBJECT),
    },
)
_METRIC = record(
    {"name": STRING},
    {"unit": STRING, "label": STRING, "definition": STRING, "show_unit": STRING, "show_scale": NUMBER},
)
_ROW = record(
    {"cell": STRING, "scheme": STRING, "run": COUNT, "flow": _NAME, "metrics": table(STRING, maybe(NUMBER))},
    {"verdict": maybe(STRING), "absent": maybe(OBJECT)},
)
_SUMMARY = record(
    {"scheme": STRING, "flow": _NAME, "metrics": table(STRING, OBJECT)},
    {"started": COUNT, "finished": COUNT, "valid": COUNT, "label": STRING},
)
_RESULTS = record(
    {"rows": each(_ROW), "metrics": each(_METRIC), "summary": each(_SUMMARY)},
    {
        "scenario": STRING,
        "hash": STRING,
        "skipped": _SKIPPED,
        "digests": table(STRING, STRING),
        "links": each(OBJECT),
        "link_summary": each(OBJECT),
        "expect": each(OBJECT),
    },
)
_SHAPES: dict[str, Shape] = {"narrows/campaign": _CAMPAIGN, "narrows/results": _RESULTS}


def check_members(path: Path, document: dict[str, Any]) -> None:
    """Raises `DataError` if what we read of a document of a known format is not what it should be."""
    shape = _SHAPES.get(str(document.get("format")).rsplit("/", 1)[0])
    if shape is None:
        return
    try:
        shape(document, "the file")
    except Wrong as wrong:
        raise DataError(f"{path}: is damaged: {wrong}") from None


def resolved(document: dict[str, Any]) -> dict[str, Any]:
    """The resolved scenario of a campaign; one without it asks no question and names no scheme."""
    return {"question": "", "schemes": [], **((document.get("scenario") or {}).get("resolved") or {})}
