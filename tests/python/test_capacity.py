"""`narrows doctor --measure`: the tried rates, the report, and a real measurement."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest
from msgspec.structs import replace

from narrows import capacity
from narrows.documents.data import from_data
from narrows.documents.doctor import Capacity, EmulatedRun, Simulator
from narrows.errors import EXIT_CANNOT_HERE, EXIT_OK


def ladder(carried: float, disturbed: float | None = None) -> list[float]:
    """The tried rates on a machine that sustains this many Mbit/s; for a disturbed one the first
    run fails."""
    tried: list[float] = []
    good: float | None = None
    bad: float | None = None
    rate: float | None = capacity.FIRST
    while rate is not None:
        tried.append(rate)
        if rate <= carried and not (rate == disturbed and tried.count(rate) == 1):
            good, bad = max(rate, good or 0), None if rate == bad else bad
        else:
            bad = min(rate, bad or rate)
        rate = capacity._next(good, bad, tried)
        assert len(tried) < 20
    return tried


def test_rates_double_until_they_are_too_much_and_then_close_in() -> None:
    tried = ladder(700)
    assert tried[:5] == [100, 200, 400, 800, 800], "one run may have been disturbed"
    assert all(400 < rate < 800 for rate in tried[5:])
    good = max(rate for rate in tried if rate <= 700)
    assert 700 / good < capacity.CLOSE * 1.1


def test_a_rate_that_failed_once_by_chance_is_passed() -> None:
    assert ladder(10**6, disturbed=400)[:6] == [100, 200, 400, 400, 800, 1600]


def test_a_machine_that_carries_little_is_asked_for_less() -> None:
    tried = ladder(7)
    assert tried[:3] == [100, 25, 6.25]
    assert ladder(1)[-1] >= capacity.LEAST


def test_a_machine_that_carries_everything_is_not_asked_for_ever() -> None:
    assert ladder(10**6)[-1] == capacity.MOST


def run(rate_bps: int) -> EmulatedRun:
    """A run at a rate that delivered nothing."""
    late = {"late_p50_ns": 0, "late_p99_ns": 0, "late_p999_ns": 0}
    return from_data(
        {"rate_bps": rate_bps, "delivered_bps": 0, "packets": 0, "verdict": "invalid", "reasons": [], **late}
        | {"busy_ratio": None, "stolen_ratio": None},
        EmulatedRun,
    )


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"cannot": "it is forbidden"}, "emulation can't be measured, because it is forbidden"),
        ({}, "there is no agent"),
        ({"runs": [run(5_000_000)]}, "not even 5 Mbit/s"),
        ({"runs": [run(1)], "emulator_bps": 800_000_000}, "up to 800 Mbit/s with verdict ok"),
    ],
)
def test_the_advice_is_one_sentence(found: dict[str, Any], words: str) -> None:
    simulator = Simulator(packets_per_s=3_000_000, seconds=1)
    whole = Capacity(simulator=simulator, runs=[], emulator_bps=None, cannot=None, advice="")
    text = capacity.advice(replace(whole, **found))
    assert words in text
    assert "3 million packets a second" in text
    assert text.count(". ") == 0


def test_without_namespaces_the_simulator_alone_is_measured() -> None:
    found = capacity.measure(None, "network namespaces can't be made (not permitted)")
    assert found.runs == []
    assert found.simulator.packets_per_s > 50_000
    assert "can't be measured" in found.advice


@pytest.mark.system
def test_a_measurement_runs_the_real_emulator_for_about_ten_seconds() -> None:
    began = time.monotonic()
    command = [sys.executable, "-m", "narrows", "doctor", "--measure"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=120)
    taken = time.monotonic() - began
    assert done.returncode in (EXIT_OK, EXIT_CANNOT_HERE), done.stderr
    found = json.loads(done.stdout)["measured"]
    if found["cannot"]:
        assert os.geteuid() != 0
        pytest.skip(found["cannot"])
    # Allows for one running measurement, and for its start-up.
    assert taken < 25
    assert found["runs"]
    for run in found["runs"]:
        assert run["verdict"] in ("ok", "degraded", "invalid")
        assert 0 <= run["late_p50_ns"] <= run["late_p99_ns"] <= run["late_p999_ns"]
        assert run["delivered_bps"] <= 1.02 * run["rate_bps"]
    ok = [run["rate_bps"] for run in found["runs"] if run["verdict"] == "ok"]
    assert found["emulator_bps"] == (max(ok) if ok else None)
