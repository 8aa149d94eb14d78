"""The events of a running campaign, as lines of JSON for other programs: `narrows run --events`.

Each line is an object with `event` and `at` (UTC). The names and their members:

* `campaign`: `path`, `name`, `hash`, `where`, `cells` (number), `finished` (earlier), `skipped`.
* `start`, `progress` (`share` from 0 to 1), `retry` (`why`): of `cell`, with `scheme` and `run`.
* `live`, with `narrows run --live`: `time_ns` of the run, and `flows` and `queues` since the last such line
  (`narrows.documents.live.Reading`), of `cell`, with `scheme` and `run`.
* `end`: a cell is finished or has failed: `state`, `verdict`, `reasons`, `error`, `seconds` it took, `done`
  and `cells`, and `left_s`, the remaining seconds, if known.
* `measure`: all cells have ended, and the results are computed.
* `report`: `files` that were written.
* `done`: `path`, `exit_code`, `verdicts` (counts), `expectations_failed`; or `error`: `message`, `exit_code`.
  The last line is one of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TextIO

from narrows.campaign.entries import now

FORMAT = "narrows/events/1"

#: Reports an event by its name, with its fields.
Tell = Callable[..., None]


def ignore_event(_event: str, **_fields: Any) -> None:
    """Ignores events, for campaigns without a listener."""


def teller(stream: TextIO) -> Tell:
    """Returns a function that writes each event as a line, at once."""

    def tell(event: str, **fields: Any) -> None:
        first = {"format": FORMAT} if event == "campaign" else {}
        line = json.dumps({"event": event, "at": now(), **first, **fields}, ensure_ascii=False)
        print(line, file=stream, flush=True)

    return tell
