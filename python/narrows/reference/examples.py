"""The example of each entry of the registries: its text, its experiment, and its picture."""

from __future__ import annotations

import msgspec

from narrows import _native
from narrows.reference.probe import Change, Load, Stream

#: In which queues are tried.
BOTTLENECK = "{rate: 10 Mbit/s, queue: QUEUE}"


class Example(msgspec.Struct, frozen=True):
    """An element in the notation of scenarios, and the source of its picture."""

    #: The text after `queue:`, `rate:` or `traffic:`; of a
    #: link element: the element.
    written: str
    #: The caption of the picture.
    shows: str
    #: A stream per flow, from 1.
    streams: tuple[Stream, ...] = msgspec.field(name="load", default=())
    #: Length of the time axis in seconds, and bins of rates in milliseconds.
    seconds: float = 1.0
    bin_ms: int = 50
    changes: tuple[Change, ...] = ()
    #: "delay": a dot per packet; "rate": arrivals and departures, for elements that do not delay.
    view: str = "delay"

    @property
    def load(self) -> Load:
        """The packets that are sent into the element."""
        return Load(self.streams)


class _Entry(msgspec.Struct, frozen=True):
    """An entry of the registry, with the members of its example."""

    name: str
    example: dict[str, object] = msgspec.field(default_factory=dict)


#: Settings that the examples of a family share. Queues: flow 1 is thin and steady, flow 2 comes in two bursts
#: of a second, together 16 Mbit/s into 10 Mbit/s.
_COMMON: dict[str, dict[str, object]] = {
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


def _families() -> dict[str, dict[str, Example]]:
    known = msgspec.json.decode(_native.registry(), type=dict[str, list[_Entry]])
    return {
        family: {entry.name: msgspec.convert({**common, **entry.example}, Example) for entry in known[family]}
        for family, common in _COMMON.items()
    }


FAMILIES = _families()
