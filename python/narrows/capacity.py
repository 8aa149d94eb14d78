"""The rates that this machine carries: `narrows doctor --measure`.

Emulated cells of a second each, with two flows of kernel TCP, at rates that double until a run's verdict is
no longer `ok`, and then between the last two: the real emulator, and the verdicts of all runs. The simulator
runs a fixed cell on one processor. The whole measurement takes about ten seconds.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from narrows.agent.location import Location
from narrows.campaign.json_files import read_run
from narrows.documents.data import from_data
from narrows.documents.doctor import Capacity, EmulatedRun, Simulator
from narrows.documents.results import Measured
from narrows.documents.run import Cpu, Lateness
from narrows.errors import UnavailableError
from narrows.scenario.loading import load_text
from narrows.scenario.model import cells_of
from narrows.scenario.quantity import show

#: First rate in Mbit/s; where it is too much, less is tried.
FIRST, LEAST, MOST = 100, 5, 12_800
#: Seconds of a run: the minimum that leaves TCP a good part at the full rate.
RUN_S = 1
#: Seconds after which no more runs are started; each takes its duration and a set-up of similar length.
UNTIL_S = 8.0
#: Runs of a second cannot distinguish two rates that are closer than this.
CLOSE = 1.3
#: Steal time of a hypervisor above this share of the processors is reported.
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
) -> Capacity:
    """The rates that simulator and emulator carry; of the simulator alone without an agent, or where `cannot`
    says why emulation is impossible."""
    simulated = simulator()
    told("simulator")
    runs = emulator(agent, told) if agent is not None and cannot is None else []
    most = max((run.rate_bps for run in runs if run.verdict == "ok"), default=None)
    capacity = Capacity(simulator=simulated, runs=runs, emulator_bps=most, cannot=cannot, advice="")
    return replace(capacity, advice=advice(capacity))


def simulator() -> Simulator:
    """Data packets that one processor simulates in a second, transport and record included."""
    from narrows import _native

    cell = cells_of(load_text(_SIMULATED).scenario)[0]
    texts: list[str] = []
    began = time.perf_counter()
    _native.simulate_summaries(
        [cell.to_text()], lambda _, text: texts.append(text), memory=2 * 10**9, threads=1
    )
    seconds = time.perf_counter() - began
    measured = from_data(json.loads(texts[0])["measured"], Measured)
    whole = next(flow for flow in measured.flows if flow.flow == "all")
    # Rates are of IP packets, all of one size here.
    packets = (whole.metrics["throughput_bps"] or 0) * (measured.span_ns or 0) / 8e9 / 1500
    return Simulator(packets_per_s=round(packets / seconds), seconds=round(seconds, 3))


def emulator(agent: Location, told: Callable[[str], None]) -> list[EmulatedRun]:
    """Runs at rising rates, until the highest rate with verdict ok is known."""
    began = time.monotonic()
    runs: list[EmulatedRun] = []
    good: float | None = None
    bad: float | None = None
    rate: float | None = FIRST
    with tempfile.TemporaryDirectory(prefix="narrows-measure-") as folder:
        while rate is not None and time.monotonic() - began < UNTIL_S:
            told(f"{show('rate', round(rate * 1e6))}")
            runs.append(_run(agent, Path(folder) / str(len(runs)), round(rate * 1e6)))
            if runs[-1].verdict == "ok":
                good, bad = max(rate, good or 0.0), None if rate == bad else bad
            else:
                bad = min(rate, bad or math.inf)
            rate = _next(good, bad, [run.rate_bps / 1e6 for run in runs])
    return runs


def _next(good: float | None, bad: float | None, tried: list[float]) -> float | None:
    """The next rate to try in Mbit/s; None when the result is precise enough."""
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


def _run(agent: Location, folder: Path, rate_bps: int) -> EmulatedRun:
    """One emulated run and what its record says."""
    from narrows.agent.cell import CellRun

    folder.mkdir()
    path = _PATH.format(rate=show("rate", rate_bps), queue="1 bdp", delay="5 ms")
    cell = cells_of(load_text(_EMULATED.format(path=path, seconds=RUN_S)).scenario)[0]
    (folder / "cell.json").write_text(cell.to_text(), encoding="utf-8")
    out = folder / "record"
    outcome = CellRun(
        agent, "emulate", folder / "cell.json", out, folder / "log", lambda _: None, folder
    ).run()
    if outcome.state != "finished":
        raise UnavailableError(f"the emulator failed: {outcome.message.rstrip('.')}")
    run = read_run(out)
    carried = next(element for element in run.elements if element.kind == "bottleneck")
    late, cpu = run.lateness or Lateness(), run.cpu or Cpu()
    return EmulatedRun(
        rate_bps=rate_bps,
        delivered_bps=round(carried.out_bytes * 8 / RUN_S),
        packets=late.packets,
        verdict=run.verdict or "",
        reasons=[reason.text or "" for reason in run.reasons],
        late_p50_ns=late.p50_ns,
        late_p99_ns=late.p99_ns,
        late_p999_ns=late.p999_ns,
        busy_ratio=cpu.busy_ratio,
        stolen_ratio=cpu.stolen_ratio,
    )


def advice(capacity: Capacity) -> str:
    """The conclusion, in one sentence."""
    packets = f"{capacity.simulator.packets_per_s / 1e6:.2g} million packets a second on each processor"
    if capacity.cannot:
        return f"Simulate here: {packets}; emulation can't be measured, because {capacity.cannot}."
    if not capacity.runs:
        return f"Simulate here: {packets}; there is no agent to emulate with."
    if capacity.emulator_bps is None:
        least = show("rate", min(run.rate_bps for run in capacity.runs))
        return (
            f"Simulate here ({packets}): not even {least} were emulated with verdict ok; if other programs"
            " are running, measure again without them."
        )
    most = show("rate", capacity.emulator_bps)
    return f"Emulate up to {most} with verdict ok; simulate {packets}, whatever the rate."
