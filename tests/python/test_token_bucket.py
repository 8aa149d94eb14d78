"""Utilization of token buckets: their capacity follows from their content."""

from __future__ import annotations

import json

import pytest

from narrows import _native
from narrows.scenario.loading import load_text
from narrows.scenario.model import cells_of


def utilization(bucket: str, more: str) -> float:
    """The utilization of a cell with one bulk flow behind a bucket, simulated in memory."""
    text = f"""\
schema: narrows/scenario/1
where: simulate
path:
  forward:
    - {{rate: {{tokenbucket: {{{bucket}}}}}, queue: {{droptail: 256 kB}}}}
    - {{delay: 5 ms}}
schemes: [cubic]
{more}
"""
    cell = cells_of(load_text(text).scenario)[0]
    texts: list[str] = []
    _native.simulate_summaries(
        [cell.to_text()], lambda _, text: texts.append(text), memory=2 * 10**9, threads=1
    )
    flows = json.loads(texts[0])["measured"]["flows"]
    return float(next(one for one in flows if one["flow"] == "all")["metrics"]["utilization_ratio"])


@pytest.mark.parametrize(
    ("bucket", "more"),
    [
        # In closed form: 8 * 2 MB + 15 Mbit/s * 4 s, all of which a bulk flow uses.
        ("rate: 15 Mbit/s, burst: 2 MB, peak: 1 Gbit/s", "duration: 4 s"),
        ("rate: 15 Mbit/s, burst: 2 MB, peak: 40 Mbit/s", "duration: 4 s"),
        ("rate: 15 Mbit/s, burst: 4 MB", "duration: 4 s"),
        ("rate: 15 Mbit/s, burst: 4 MB", "duration: 4 s\nrecord: bins"),
        # The bucket is full when the flow begins, however late.
        ("rate: 15 Mbit/s, burst: 4 MB", "duration: 4 s\nflows: {start: 1530 ms}"),
        (
            "rate: 15 Mbit/s, burst: 2 MB, peak: 100 Mbit/s",
            "duration: 4 s\nflows: {start: 777 ms}\nrecord: bins",
        ),
        # In a part of the run the bucket has only its remaining content, here nothing.
        ("rate: 15 Mbit/s, burst: 2 MB, peak: 1 Gbit/s", "duration: 5 s\nmeasure: {from: 2500 ms}"),
    ],
)
def test_a_bulk_flow_uses_all_that_a_token_bucket_lets_through(bucket: str, more: str) -> None:
    assert utilization(bucket, more) == pytest.approx(1.0, abs=0.005)


def test_a_bucket_that_never_empties_is_as_fast_as_its_line() -> None:
    more = "duration: 5 s\nmeasure: {from: 2 s}"
    used = utilization("rate: 15 Mbit/s, burst: 100 MB, peak: 20 Mbit/s", more)
    assert used == pytest.approx(1.0, abs=0.005)
