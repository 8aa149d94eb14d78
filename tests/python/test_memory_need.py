"""The memory of cells, announced before they run."""

from __future__ import annotations

from pathlib import Path

import pytest

from narrows.campaign.plan import make_plan
from narrows.documents.agent import MachineFacts
from narrows.scenario.loading import load

HEAD = "schema: narrows/scenario/1\nwhere: simulate\nschemes: [cubic]\n"


def told(folder: Path, rate: str, duration: str, extra: str = "") -> list[str]:
    path = f"path: {{forward: [{{rate: {rate}, queue: {{droptail: 256 kB}}}}, {{delay: 5 ms}}]}}\n"
    (folder / "s.yaml").write_text(f"{HEAD}{path}duration: {duration}\n{extra}", encoding="utf-8")
    return make_plan(load(folder / "s.yaml").scenario, MachineFacts()).memory


@pytest.mark.parametrize(
    ("rate", "duration", "gigabytes"),
    [
        # 83.3 million packets, and half as many acknowledgements, at 150 bytes.
        ("1000 Gbit/s", "1 s", 18.9),
        ("{tokenbucket: {rate: 10 Gbit/s, burst: 1 MB}}", "100 s", 18.8),
    ],
)
def test_large_memory_needs_are_announced(tmp_path: Path, rate: str, duration: str, gigabytes: float) -> None:
    (sentence,) = told(tmp_path, rate, duration)
    amount = float(sentence.partition("up to ")[2].partition(" GB")[0])
    assert amount == pytest.approx(gigabytes, rel=0.01)
    assert "record: bins" in sentence


def test_a_trace_with_millions_of_opportunities_in_a_moment_is_reported(tmp_path: Path) -> None:
    (tmp_path / "dense.trace").write_text("1\n" * 2_000_000, encoding="utf-8")
    assert told(tmp_path, "{trace: dense.trace}", "2 s")
    # Bins keep no packets, but 24 Tbit/s over 10 ms are 20 million in flight.
    (sentence,) = told(tmp_path, "{trace: dense.trace}", "2 s", "record: bins\n")
    assert "3.0 GB" in sentence and "record: bins" not in sentence


def test_cells_of_usual_sizes_need_no_warning(tmp_path: Path) -> None:
    assert told(tmp_path, "100 Mbit/s", "30 s") == []
    assert told(tmp_path, "100 kbit/s", "86400 s", "record: bins\n") == []
    limited = "flows: {count: 2}\n"
    assert told(tmp_path, "1 Gbit/s", "10 s", limited) == []
