"""The rates that this machine carries: `narrows doctor --measure`.

Emulated cells of a second each, with two flows of kernel TCP, at rates that double until a run's verdict is
no longer `ok`, and then between the last two: the real emulator, and the verdicts of all runs. The simulator
carries a fixed cell on one processor. All together takes about ten seconds.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from narrows.agent.location import Location
from narrows.errors import UnavailableError
from narrows.scenario.loading import load_text
from narrows.scenario.model import Cell, cells_of
from narrows.scenario.quantity import show

Json = dict[str, Any]

#: First rate in Mbit/s; where it is too much, less is tried.
FIRST, LEAST, MOST = 100, 5, 12_800
#: Seconds of a run: as few as leave TCP a good part at the full rate.
RUN_S = 1
#: Seconds after which no more runs are begun; each takes its length, and as long as setting up takes.
UNTIL_S = 8.0
#: Two rates that are closer than this are not told apart by runs of a second.
CLOSE = 1.3
#: Share of the processors that a hypervisor takes from which on it is reported.
STOLEN = 0.02

_PATH = "path: {{forward: [{{rate: {rate}, queue: {{droptail: {queue}}}}}, {{delay: {delay}}}]}}"
#: Four flows of Reno at 400 Mbit/s, as in the benchmarks of simulators.
_SIMULATED = f"""\
schema: narrows/scenario/1
{_PATH.format(rate="400 Mbit/s", queue="2 MB", delay="20 ms")}
schemes: [reno]
flows: {{count: 4}}
duration: 20 s
record: bins
"""
_EMULATED = """\
schema: narrows/scenario/1
where: emulate
{path}
schemes: ["linux:cubic"]
flows: {{count: 2}}
duration: {seconds} s
"""


def measure(
    agent: Location | None, cannot: str | None = None, told: Callable[[str], None] = lambda _: None
) -> Json:
    """The rates that simulator and emulator carry; of the simulator alone without an agent, or where `cannot`
    says why emulation is impossible."""
    result: Json = {"simulator": simulator(), "runs": [], "emulator_bps": None, "cannot": cannot}
    told("simulator")
    if agent is not None and cannot is None:
        result |= emulator(agent, told)
    result["advice"] = advice(result)
    return result


def simulator() -> Json:
    """Data packets that one processor simulates in a second, transport and record included."""
    from narrows import _native

    cell = cells_of(load_text(_SIMULATED).scenario)[0]
    texts: list[str] = []
    began = time.perf_counter()
    _native.simulate_summaries(
        [json.dumps(cell.content)], lambda _, text: texts.append(text), memory=2 * 10**9, threads=1
    )
    seconds = time.perf_counter() - began
    measured = json.loads(texts[0])["measured"]
    whole = next(flow for flow in measured["flows"] if flow["flow"] == "all")
    # Rates are of IP packets, all of one size here.
    packets = whole["metrics"]["throughput_bps"] * measured["span_ns"] / 8e9 / 1500
    return {"packets_per_s": round(packets / seconds), "seconds": round(seconds, 3)}


def emulator(agent: Location, told: Callable[[str], None]) -> Json:
    """Runs at rising rates, and the highest rate with verdict ok."""
    began = time.monotonic()
    runs: list[Json] = []
    good: float | None = None
    bad: float | None = None
    rate: float | None = FIRST
    with tempfile.TemporaryDirectory(prefix="narrows-measure-") as folder:
        while rate is not None and time.monotonic() - began < UNTIL_S:
            told(f"{show('rate', round(rate * 1e6))}")
            runs.append(_run(agent, Path(folder) / str(len(runs)), round(rate * 1e6)))
            if runs[-1]["verdict"] == "ok":
                good, bad = max(rate, good or 0.0), None if rate == bad else bad
            else:
                bad = min(rate, bad or math.inf)
            rate = _next(good, bad, [run["rate_bps"] / 1e6 for run in runs])
    return {"runs": runs, "emulator_bps": None if good is None else round(good * 1e6)}


def _next(good: float | None, bad: float | None, tried: list[float]) -> float | None:
    """The rate to try next in Mbit/s; None when enough is known."""
    if bad is None:
        rate = 2 * (good or FIRST / 2)
        return rate if rate <= MOST else None
    if good is None:
        return bad / 4 if bad / 4 >= LEAST else None
    if tried.count(bad) == 1 and tried[-1] == bad and bad >= 2 * good:
        # One run may have been disturbed.
        return bad
    middle = float(f"{math.sqrt(good * bad):.1e}")
    return middle if bad / good > CLOSE and middle not in (*tried, good, bad) else None


def _run(agent: Location, folder: Path, rate_bps: int) -> Json:
    """One emulated run and what its record says."""
    from narrows.agent.cell import CellRun

    folder.mkdir()
    path = _PATH.format(rate=show("rate", rate_bps), queue="1 bdp", delay="5 ms")
    cell: Cell = cells_of(load_text(_EMULATED.format(path=path, seconds=RUN_S)).scenario)[0]
    (folder / "cell.json").write_text(json.dumps(cell.content), encoding="utf-8")
    out = folder / "record"
    outcome = CellRun(
        agent, "emulate", folder / "cell.json", out, folder / "log", lambda _: None, folder
    ).run()
    if outcome.state != "finished":
        raise UnavailableError(f"the emulator failed: {outcome.message.rstrip('.')}")
    run = json.loads((out / "run.json").read_text(encoding="utf-8"))
    carried = next(element for element in run["elements"] if element["kind"] == "bottleneck")
    cpu = run.get("cpu") or {}
    return {
        "rate_bps": rate_bps,
        "delivered_bps": round(carried["out_bytes"] * 8 / RUN_S),
        "packets": run["lateness"]["packets"],
        "verdict": run["verdict"],
        "reasons": [reason["text"] for reason in run["reasons"]],
        "late_p50_ns": run["lateness"]["p50_ns"],
        "late_p99_ns": run["lateness"]["p99_ns"],
        "late_p999_ns": run["lateness"]["p999_ns"],
        "busy_ratio": cpu.get("busy_ratio"),
        "stolen_ratio": cpu.get("stolen_ratio"),
    }


def advice(document: Json) -> str:
    """The conclusion, in one sentence."""
    packets = f"{document['simulator']['packets_per_s'] / 1e6:.2g} million packets a second on each processor"
    if document["cannot"]:
        return f"Simulate here: {packets}; emulation can't be measured, because {document['cannot']}."
    if not document["runs"]:
        return f"Simulate here: {packets}; there is no agent to emulate with."
    if document["emulator_bps"] is None:
        least = show("rate", min(run["rate_bps"] for run in document["runs"]))
        return (
            f"Simulate here ({packets}): not even {least} were emulated with verdict ok; if other programs"
            " are running, measure again without them."
        )
    most = show("rate", document["emulator_bps"])
    return f"Emulate up to {most} with verdict ok; simulate {packets}, whatever the rate."
