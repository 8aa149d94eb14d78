"""The study of emulated names: its file, its tables, and an attempt on a machine that may be busy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from narrows.identify.naming import NONE
from narrows.identify.probe_paths import PathFactors
from validation.identify.emulated import (
    NOTHING,
    Attempt,
    identify,
    read_attempts,
    tables,
    write_attempts,
)

RIGHT = Attempt(
    sender="linux:cubic",
    expected="cubic",
    seed=1,
    rate=1.1,
    rtt=0.9,
    buffer=1.0,
    answer="cubic",
    probability=0.97,
    nearest="cubic-linux",
    probes=2,
    ok=1,
    degraded=1,
    invalid=0,
    seconds=47.2,
    megabytes=80.5,
)


def test_attempts_are_read_as_they_were_written(tmp_path: Path) -> None:
    attempts = [RIGHT, replace(RIGHT, sender="nginx:reno", expected="reno", answer=NONE)]
    write_attempts(tmp_path / "names.csv", attempts)
    assert read_attempts(tmp_path / "names.csv") == attempts


def test_names_relatives_and_refusals_are_counted_apart() -> None:
    attempts = [
        RIGHT,
        replace(RIGHT, seed=2, answer="cubic2008"),
        replace(RIGHT, seed=3, answer=NONE),
        replace(RIGHT, seed=4, answer=NOTHING),
        replace(RIGHT, seed=5, answer="reno", seconds=119.6),
    ]
    summary, senders = tables(attempts)
    assert "| the kernel | 5 | 1 | 2 | 1 | 120 | 80 |" in summary
    assert [row.split("|")[3].strip() for row in senders.splitlines()[2:]] == [
        "yes", "family", "no", "no", "no"
    ]  # fmt: skip


@pytest.mark.system
def test_an_emulated_attempt_counts_its_runs_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.identify.emulated.BUDGET_S", 1.0)
    attempt = identify("linux:reno", 9301, PathFactors(rate=0.5))
    assert attempt.probes == 1
    assert attempt.ok + attempt.degraded + attempt.invalid == 1
    # The first probe carries 12 or 24 Mbit/s, halved, for 20 s and more.
    assert 5 < attempt.megabytes < 60
