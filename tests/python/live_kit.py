"""A run that is under way without an agent: samples computed from rates that are known."""

from __future__ import annotations

import json

from narrows.documents.resolved import Cell
from narrows.live.watch import Watch
from narrows.scenario import cells_of
from narrows.scenario.loading import Loaded, load_text

SCENARIO = """\
schema: narrows/scenario/1
question: How does a change look, while it happens?
where: emulate
path:
  forward:
    - {rate: 12 Mbit/s, queue: {droptail: 60 kB}}
    - {delay: 20 ms}
  backward:
    - {delay: 20 ms}
schemes: [reno]  # comments stay
flows: {count: 2}
duration: 30 s
seed: 5
"""


def load(text: str = SCENARIO) -> Loaded:
    """The scenario of these tests."""
    return load_text(text)


def cell_of(text: str = SCENARIO) -> Cell:
    """Its only cell."""
    (cell,) = cells_of(load(text).scenario)
    return cell


class Recorder:
    """A run that keeps its orders."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def order(self, line: bytes) -> None:
        """Keeps the line."""
        self.lines.append(line)


def sample(number: int, flows: int = 2, queues: int = 1) -> bytes:
    """The line of sample `number`, one per 200 ms: in each, 10 f packets of 1500 B of flow f arrive after 5 f
    ms of queueing and 1 is dropped; queues have 7 packets.
    """
    line = {
        "event": "live",
        "time_ns": 200_000_000 * number,
        "flows": [
            {
                "flow": flow,
                "delivered_packets": 10 * flow * number,
                "delivered_bytes": 15_000 * flow * number,
                "dropped_packets": number,
                "queueing_ns": 10 * flow * number * 5_000_000 * flow,
                "cwnd_bytes": 30_000 * flow,
            }
            for flow in range(1, flows + 1)
        ],
        "elements": [
            {
                "element": f"forward.{index}",
                "left_packets": 30 * number,
                "left_bytes": 45_000 * number,
                "dropped_packets": 2 * number,
                "queued_packets": 7,
                "queued_bytes": 10_500,
                "rate_bps": 12_000_000,
            }
            for index in range(queues)
        ],
    }
    return json.dumps(line).encode()


def watch_run(
    samples: int = 40, flows: int = 2, queues: int = 1, text: str = SCENARIO
) -> tuple[Watch, Recorder]:
    """A run that has been under way for some samples."""
    watch, run = Watch(), Recorder()
    hear = watch.begin(cell_of(text), run)
    for number in range(1, samples + 1):
        hear(sample(number, flows, queues))
    return watch, run
