"""The members of a campaign's files that we read, and what they must be.

The files are plain text, and whoever changes them by hand is told what does not fit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from narrows.errors import DataError
from narrows.json_shapes import (
    COUNT,
    LIST,
    NUMBER,
    OBJECT,
    STRING,
    Shape,
    ShapeError,
    dict_of,
    is_text,
    list_of,
    nullable,
    record,
    scalar,
)

_REASON = record({}, {"severity": STRING, "code": STRING, "text": STRING})
_NAME = scalar(lambda value: is_text(value) or (isinstance(value, int) and value >= 0), "a name or number")
_CELL = record(
    {"id": STRING, "scheme": STRING, "run": COUNT, "state": STRING},
    {
        "verdict": nullable(STRING),
        "reasons": list_of(_REASON),
        "error": nullable(OBJECT),
        "failures": list_of(OBJECT),
        "attempts": COUNT,
        "seed": nullable(COUNT),
        "digest": nullable(STRING),
        "input": nullable(OBJECT),
    },
)
_SKIPPED = list_of(record({"scheme": STRING, "reason": STRING}))
_FLOW = record(
    {},
    {
        "flow": COUNT,
        "scheme": STRING,
        "direction": STRING,
        "params": nullable(OBJECT),
        "transport": nullable(OBJECT),
        "label": nullable(STRING),
    },
)
_WORDS = nullable(dict_of(STRING, STRING))
_ROW_OF_SCHEME = record(
    {"label": STRING},
    {
        "scheme": STRING,
        "flows": list_of(_FLOW),
        "params": nullable(OBJECT),
        "values": _WORDS,
        "derived": _WORDS,
        "overlay": nullable(OBJECT),
    },
)
_RESOLVED = record(
    {},
    {
        "question": STRING,
        "schemes": list_of(_ROW_OF_SCHEME),
        "name": STRING,
        "title": nullable(STRING),
        "network": nullable(OBJECT),
        "expect": nullable(list_of(OBJECT)),
        "measure": nullable(OBJECT),
        "matrix": _WORDS,
        "duration_ns": COUNT,
        "transport": nullable(OBJECT),
    },
)
_CAMPAIGN = record(
    {"cells": list_of(_CELL)},
    {
        "name": STRING,
        "hash": STRING,
        "where": STRING,
        "scenario": record({}, {"resolved": _RESOLVED, "written": STRING, "overrides": LIST}),
        "sessions": list_of(OBJECT),
        "skipped": _SKIPPED,
        "rounds": list_of(OBJECT),
        "versions": nullable(OBJECT),
        "host": nullable(OBJECT),
    },
)
_METRIC = record(
    {"name": STRING},
    {"unit": STRING, "label": STRING, "definition": STRING, "show_unit": STRING, "show_scale": NUMBER},
)
_COLUMN = record({"name": STRING}, {"label": STRING, "of": STRING, "key": STRING, "unit": STRING})
_ROW = record(
    {
        "cell": STRING,
        "scheme": STRING,
        "run": COUNT,
        "flow": nullable(_NAME),
        "metrics": dict_of(STRING, nullable(NUMBER)),
    },
    {"verdict": nullable(STRING), "absent": nullable(OBJECT), "row": STRING, "values": OBJECT},
)
_SUMMARY = record(
    {"scheme": STRING, "flow": nullable(_NAME), "metrics": dict_of(STRING, OBJECT)},
    {"started": COUNT, "finished": COUNT, "valid": COUNT, "label": STRING, "row": STRING, "values": OBJECT},
)
_RESULTS = record(
    {"rows": list_of(_ROW), "metrics": list_of(_METRIC), "summary": list_of(_SUMMARY)},
    {
        "scenario": STRING,
        "hash": STRING,
        "skipped": _SKIPPED,
        "columns": list_of(_COLUMN),
        "digests": dict_of(STRING, STRING),
        "links": list_of(OBJECT),
        "link_summary": list_of(OBJECT),
        "expect": list_of(OBJECT),
    },
)
_NOTES = record({"tags": list_of(STRING), "notes": list_of(record({"at": STRING, "text": STRING}))})
_SHAPES: dict[str, Shape] = {
    "narrows/campaign": _CAMPAIGN,
    "narrows/results": _RESULTS,
    "narrows/notes": _NOTES,
}


def check_members(path: Path, document: dict[str, Any]) -> None:
    """Raises `DataError` if what we read of a document of a known format is not what it should be."""
    shape = _SHAPES.get(str(document.get("format")).rsplit("/", 1)[0])
    if shape is None:
        return
    try:
        shape(document, "the file")
    except ShapeError as error:
        raise DataError(f"{path}: is damaged: {error}") from None


def resolved(document: dict[str, Any]) -> dict[str, Any]:
    """The resolved scenario of a campaign; one without it asks no question and names no scheme."""
    return {"question": "", "schemes": [], **((document.get("scenario") or {}).get("resolved") or {})}
