"""The example of each entry of the registries: its text, its experiment, and its picture."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from narrows import _native
from narrows.reference.probe import ECN, Load, Stream

#: In which queues are tried.
BOTTLENECK = "{rate: 10 Mbit/s, queue: QUEUE}"


@dataclass(frozen=True)
class Example:
    """An element in the notation of scenarios, and the source of its picture."""

    #: The text after `queue:`, `rate:` or `traffic:`; of a
    #: link element: the element.
    written: str
    #: The caption of the picture.
    shows: str
    load: Load = Load()  # noqa: RUF009 - frozen
    #: Length of the time axis in seconds, and bins of rates in milliseconds.
    seconds: float = 1.0
    bin_ms: int = 50
    changes: tuple[dict[str, Any], ...] = ()
    #: "delay": a dot per packet; "rate": arrivals and departures, for elements that do not delay.
    view: str = "delay"


#: Settings that the examples of a family share. Queues: flow 1 is thin and steady, flow 2 comes in two bursts
#: of a second, together 16 Mbit/s into 10 Mbit/s.
_COMMON: dict[str, dict[str, Any]] = {
    "queues": {
        "seconds": 3.2,
        "load": [
            {"every_us": 6000, "spans_s": [[0, 3.2]], "ecn": "ECT(0)"},
            {"every_us": 857, "spans_s": [[0.2, 1.2], [1.8, 2.8]]},
        ],
    },
    "rates": {},
    "links": {"load": [{"every_us": 2000, "spans_s": [[0, 1]]}]},
    "traffic": {},
}


def _example(entry: dict[str, Any]) -> Example:
    streams = [
        Stream(
            **{**item, "spans_s": tuple(map(tuple, item["spans_s"])), "ecn": ECN[item.get("ecn", "Not-ECT")]}
        )
        for item in entry.get("load", ())
    ]
    return Example(**{**entry, "load": Load(tuple(streams)), "changes": tuple(entry.get("changes", ()))})


def _families() -> dict[str, dict[str, Example]]:
    known = json.loads(_native.registry())
    return {
        family: {entry["name"]: _example({**common, **entry["example"]}) for entry in known[family]}
        for family, common in _COMMON.items()
    }


FAMILIES = _families()
