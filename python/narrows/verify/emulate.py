"""Running the grid on the emulator: a few cells per scheme and run, repeated if the machine spoils them."""

from __future__ import annotations

import json
import shutil
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from narrows import _native
from narrows.agent.cell import CellRun
from narrows.agent.location import Location
from narrows.errors import Interrupted, UnavailableError
from narrows.scenario import cells_of, loads
from narrows.scenario.model import Cell
from narrows.verify.compare import Measured
from narrows.verify.grid import PACKET, Place, groups, scenario

PLANE = "emulate"
#: How often a cell with one path is tried before its numbers are given up. One with several is tried once:
#: what was too much for the machine is less in two halves.
ATTEMPTS = 3
INVALID = "invalid"
#: Verdicts of runs that count, the better first.
_ORDER = ("ok", "degraded")


@dataclass
class Ran:
    """What became of one run of a scheme on all paths."""

    verdict: str
    reasons: list[str]
    attempts: int
    #: Per path: throughput (bit/s) and 95th percentile of the queueing delay (ns), None where not known.
    flows: list[dict[str, float | None]] = field(default_factory=list)
    #: Per path: samples of the window, for the figure.
    windows: list[dict[str, list[float]]] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        """Whether the numbers say something about the scheme."""
        return self.verdict not in (INVALID, "failed")

    def to_json(self) -> dict[str, Any]:
        """As it is kept."""
        return asdict(self)


def run(
    scheme: str,
    places: tuple[Place, ...],
    seconds: int,
    seed: int,
    agent: Location,
    work: Path,
    tell: Callable[[str], None],
) -> Ran:
    """Runs a scheme on all paths; a run that the machine spoiled is repeated, and never used."""
    parts = []
    for numbers in groups(places, scheme):
        cell = _Cell(scheme, tuple(places[number] for number in numbers), seconds, seed)
        parts += _run(cell, agent, work, tell)
        if not parts[-1].valid:
            return parts[-1]
    worst = max(parts, key=lambda part: _ORDER.index(part.verdict) if part.verdict in _ORDER else len(_ORDER))
    return Ran(
        worst.verdict,
        [reason for part in parts for reason in part.reasons],
        max(part.attempts for part in parts),
        [flow for part in parts for flow in part.flows],
        [window for part in parts for window in part.windows],
    )


@dataclass(frozen=True)
class _Cell:
    """A scheme on some of the paths at once."""

    scheme: str
    places: tuple[Place, ...]
    seconds: int
    seed: int

    def halves(self) -> list[_Cell]:
        """The same in two cells."""
        middle = (len(self.places) + 1) // 2
        return [replace(self, places=part) for part in (self.places[:middle], self.places[middle:])]

    def content(self) -> Cell:
        """What the agent is given."""
        (cell,) = cells_of(loads(scenario(self.scheme, self.places, self.seconds, self.seed)))
        return cell


def _run(cell: _Cell, agent: Location, work: Path, tell: Callable[[str], None]) -> list[Ran]:
    """Runs a cell, in halves if it is too much at once. Ends with the first part that stays invalid."""
    several = len(cell.places) > 1
    for attempt in range(1, 2 if several else ATTEMPTS + 1):
        ran = _once(cell.content(), cell.places, agent, work)
        ran.attempts = attempt
        if ran.valid:
            return [ran]
        again = "in halves" if several else "trying again" if attempt < ATTEMPTS else "given up"
        tell(f"{cell.scheme}: {ran.verdict}, {again} ({'; '.join(ran.reasons)[:300]})")
    if not several or ran.verdict != INVALID:
        return [ran]
    parts: list[Ran] = []
    for half in cell.halves():
        parts += _run(half, agent, work, tell)
        if not parts[-1].valid:
            break
    return parts


def _once(cell: Cell, places: tuple[Place, ...], agent: Location, work: Path) -> Ran:
    work.mkdir(parents=True, exist_ok=True)
    cell_file, log, record = work / "cell.json", work / "agent.log", work / "record"
    shutil.rmtree(record, ignore_errors=True)
    cell_file.write_text(json.dumps(cell.content), encoding="utf-8")
    outcome = CellRun(agent, PLANE, cell_file, record, log, lambda _: None, work).run()
    if outcome.state == "interrupted":
        raise Interrupted("interrupted; everything finished is kept", 2)
    if outcome.state != "finished":
        if outcome.kind == "unavailable":
            raise UnavailableError(outcome.message)
        return Ran("failed", [outcome.message], 0)
    try:
        return _read(record, places)
    finally:
        # A record of 30 s has hundreds of megabytes.
        shutil.rmtree(record, ignore_errors=True)


def _read(record: Path, places: tuple[Place, ...]) -> Ran:
    document = json.loads((record / "run.json").read_text(encoding="utf-8"))
    word, reasons = document.get("verdict"), document.get("reasons") or []
    rows = {str(row["flow"]): row["metrics"] for row in json.loads(_native.measure(str(record)))["flows"]}
    states = _native.state_series(str(record))
    flows: list[dict[str, float | None]] = []
    windows: list[dict[str, list[float]]] = []
    for number in range(1, len(places) + 1):
        metrics = rows.get(str(number)) or {}
        flows.append(
            {
                "throughput_bps": metrics.get("throughput_bps"),
                "delay_p95_ns": metrics.get("queueing_delay_p95_ns"),
            }
        )
        windows.append(_window(states.get(number)))
    texts = [str(one.get("text") if isinstance(one, dict) else one) for one in reasons]
    return Ran(str(word), texts, 0, flows, windows)


def _window(states: Any) -> dict[str, list[float]]:
    """Samples of a window, some hundred of them."""
    if states is None:
        return {"time_s": [], "cwnd_packets": []}
    window = states["cwnd_bytes"]
    step = max(1, len(window) // 600)
    known = ~np.isnan(window[::step])
    return {
        "time_s": [round(float(t), 3) for t in states["time_s"][::step][known]],
        "cwnd_packets": [round(float(w) / 1448, 1) for w in window[::step][known]],
    }


def measured(runs: list[dict[str, Any]], places: tuple[Place, ...]) -> list[Measured]:
    """Medians over the valid runs; paths without a valid number are left out."""
    found = []
    valid = [one for one in runs if one["verdict"] not in (INVALID, "failed")]
    for index, place in enumerate(places):
        pairs = [
            (flow["throughput_bps"], flow["delay_p95_ns"])
            for one in valid
            for flow in [one["flows"][index]]
            if flow["throughput_bps"] is not None and flow["delay_p95_ns"] is not None
        ]
        if pairs:
            found.append(
                Measured(
                    place.name,
                    statistics.median(rate for rate, _ in pairs) / 1e6,
                    statistics.median(delay for _, delay in pairs) / 1e6,
                    PACKET * 8 / (place.rate_mbps * 1e3),
                    len(pairs),
                )
            )
    return found
