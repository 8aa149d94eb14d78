"""The first divergence of two traces of states: how long two senders agreed, and which state differed first.

Two simulated runs with one seed meet the same packets and random events, so the first difference of their
senders' states is the point at which their code, or its input, diverges. In real time no two traces are
identical; there, differences below a tolerance are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from narrows.comparison.sides import Pairing
from narrows.documents.comparison import FlowTrace, StateDifference
from narrows.errors import DataError
from narrows.scenario.expect import unit_of

Floats = NDArray[np.float64]
Series = Mapping[str, Floats]

#: The default tolerance in real time, as a share of the larger value.
LIVE_TOLERANCE = 0.05
SIMULATED = "simulate"


def tolerance_of(pairing: Pairing) -> float:
    """The tolerance for two runs: none if both were simulated."""
    simulated = pairing.base.side.where == pairing.other.side.where == SIMULATED
    return 0.0 if simulated else LIVE_TOLERANCE


def divergences(pairing: Pairing, tolerance: float | None = None) -> list[FlowTrace]:
    """For each flow of the first run that both sides have, the divergence of its senders' states.

    Each entry has `run`, `flow`, `samples` (the number of compared instants) and, unless the traces agree to
    the end, `at_s` and `values`: the states that differed then, each with its `name`, `unit` and both values.
    Empty without common runs or states. Raises `DataError` if a record can't be read.
    """
    runs = sorted(pairing.base.runs.keys() & pairing.other.runs.keys())
    if not runs:
        return []
    allowed = tolerance_of(pairing) if tolerance is None else tolerance
    first, second = (
        _states(sample.side.folder.record_dir(sample.runs[runs[0]].cell))
        for sample in (pairing.base, pairing.other)
    )
    flow_traces = []
    for flow in sorted(first.keys() & second.keys()):
        samples, at_s, values = divergence(first[flow], second[flow], allowed)
        flow_traces.append(FlowTrace(run=runs[0], flow=flow, samples=samples, at_s=at_s, values=values))
    return flow_traces


def divergence(
    first: Series, second: Series, tolerance: float
) -> tuple[int, float | None, list[StateDifference]]:
    """The divergence of two series, each with `time_s` and a column per value (NaN if unknown): the number of
    instants, the time (s; None if they agree to the end), and the differing values.

    Both are compared at the instants at which either was sampled, while both last; between samples a value is
    held. Values diverge if they differ by more than `tolerance` times the larger one.
    """
    own, others = first["time_s"], second["time_s"]
    times = np.union1d(own, others)
    if len(own) and len(others):
        start, end = max(own[0], others[0]), min(own[-1], others[-1])
        times = times[(times >= start) & (times <= end)]
    else:
        times = times[:0]
    names = [name for name in first if name != "time_s" and name in second]
    parted: dict[str, int] = {}
    held: dict[str, tuple[Floats, Floats]] = {}
    for name in names:
        one, two = _hold(first[name], own, times), _hold(second[name], others, times)
        apart = np.abs(one - two) > tolerance * np.maximum(np.abs(one), np.abs(two))
        held[name] = one, two
        if apart.any():
            parted[name] = int(np.argmax(apart))
    if not parted:
        return len(times), None, []
    index = min(parted.values())
    values = [
        StateDifference(
            name=name,
            unit=unit_of(name)[0],
            base=float(held[name][0][index]),
            other=float(held[name][1][index]),
        )
        for name, place in parted.items()
        if place == index
    ]
    return len(times), float(times[index]), values


def _hold(values: Floats, sampled: Floats, times: Floats) -> Floats:
    """The values at these times, each held until the next sample."""
    return values[np.searchsorted(sampled, times, side="right") - 1] if len(times) else times


def _states(cell: Path) -> dict[int, Series]:
    from narrows import _native

    try:
        return {flow: cast(Series, series) for flow, series in _native.state_series(str(cell)).items()}
    except (ValueError, OSError) as error:
        raise DataError(f"{cell}: its states can't be read: {error}") from None
