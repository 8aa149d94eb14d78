"""One example of everything in the registries, from `examples.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narrows.files import packaged
from narrows.reference.probe import ECN, Load, Stream

#: In which queues are tried.
BOTTLENECK = "{rate: 10 Mbit/s, queue: QUEUE}"


@dataclass(frozen=True)
class Example:
    """An element as it is written in a scenario, and how its picture is made; see `examples.yaml`."""

    written: str
    shows: str
    load: Load = Load()  # noqa: RUF009 - frozen
    seconds: float = 1.0
    bin_ms: int = 50
    changes: tuple[dict[str, Any], ...] = ()
    view: str = "delay"


def _example(entry: dict[str, Any]) -> Example:
    streams = [
        Stream(**{**one, "spans_s": tuple(map(tuple, one["spans_s"])), "ecn": ECN[one.get("ecn", "Not-ECT")]})
        for one in entry.get("load", ())
    ]
    return Example(**{**entry, "load": Load(tuple(streams)), "changes": tuple(entry.get("changes", ()))})


def _families() -> dict[str, dict[str, Example]]:
    document = packaged(Path(__file__).with_name("examples.yaml"))
    return {
        family: {name: _example({**common, **entry}) for name, entry in document[family].items()}
        for family, common in document["defaults"].items()
    }


FAMILIES = _families()
