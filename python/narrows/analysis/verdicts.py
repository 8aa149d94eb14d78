"""The number of runs behind a number, the fate of the others, and the reliability of the number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def runs_in_words(started: int, finished: int, valid: int, degraded: int = 0) -> str:
    """`2 ok`, `2, 1 degraded`, `1 of 2, 1 invalid`, `none of 3, 3 failed`, from the counts of runs `started`,
    `finished`, `valid` and, of these, `degraded`."""
    if not started:
        return "not run"
    bad = [(degraded, "degraded"), (finished - valid, "invalid"), (started - finished, "failed")]
    told = [f"{number} {word}" for number, word in bad if number > 0]
    if not told:
        return f"{valid} ok"
    many = f"{valid}" if valid == started else f"{valid or 'none'} of {started}"
    return ", ".join([many, *told])


def lateness_ns(records: Iterable[Mapping[str, Any]]) -> float:
    """The time (ns) by which time stamps of these runs may be off, from their run.json: the largest 99th
    percentile of the emulator's lateness, which also decides verdicts, or the largest bound of the clocks of
    two hosts; 0 in simulation.
    """
    values = [0.0]
    for record in records:
        values.append(float((record.get("lateness") or {}).get("p99_ns") or 0))
        values.append(float((record.get("clock") or {}).get("error_ns") or 0))
    return max(values)


def resolution(unit: str, value: float, late_ns: float, duration_ns: float) -> float:
    """The difference that lateness alone can cause in a number of this unit and size: for times that time
    itself, for rates its share of the run, for others 0.
    """
    if unit == "ns":
        return late_ns
    if unit == "bit/s" and duration_ns > 0:
        return abs(value) * late_ns / duration_ns
    return 0.0
