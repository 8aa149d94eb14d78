"""Campaign folders for tests of the report: synthetic runs with real dynamics in small.

Each run is a fluid of packets through a FIFO of constant rate (Lindley's recursion in numpy) with windows that
saw-tooth, so that throughput, delay, queue and window belong together as in a real record. Nothing here is used
as a reference for metrics; the record crate has its own tests for those.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

SIZE = 1500
RATE = 12_000_000
ONE_WAY_NS = 20_000_000
QUEUE_BYTES = 60_000

METRICS = [
    ("throughput_bps", "throughput", "Mbit/s", 1e-6, "higher", "both",
     "Bits of the packets that arrived, over the time from the first to the last arrival."),
    ("goodput_bps", "goodput", "Mbit/s", 1e-6, "higher", "both", "New application bytes over the same span."),
    ("delay_mean_ns", "mean one-way delay", "ms", 1e-6, "lower", "both", "Mean over all packets that arrived."),
    ("delay_p50_ns", "median one-way delay", "ms", 1e-6, "lower", "both", "Nearest-rank 50th percentile."),
    ("delay_p95_ns", "95th percentile one-way delay", "ms", 1e-6, "lower", "both", "Nearest-rank 95th percentile."),
    ("delay_p99_ns", "99th percentile one-way delay", "ms", 1e-6, "lower", "both", "Nearest-rank 99th percentile."),
    ("queueing_delay_p95_ns", "95th percentile queueing delay", "ms", 1e-6, "lower", "both",
     "One-way delay less the propagation delay of the path."),
    ("loss_ratio", "loss", "%", 100.0, "lower", "both", "Dropped over dropped and delivered packets."),
    ("utilization_ratio", "utilization", "%", 100.0, "higher", "all", "Delivered bits over what the link could carry."),
    ("jain_index", "Jain index", "", 1.0, "higher", "all", "Fairness of throughput over the span all flows share."),
    ("rtt_mean_ns", "mean round-trip time", "ms", 1e-6, "lower", "flow", "Mean of the sampled round-trip times."),
]  # fmt: skip


def metric_list() -> list[dict[str, Any]]:
    """The metrics in the form of `narrows._native.metrics()`."""
    return [
        {"name": n, "label": label, "unit": "", "show_unit": unit, "show_scale": scale, "better": better,
         "scope": scope, "definition": text, "source": "test"}
        for n, label, unit, scale, better, scope, text in METRICS
    ]  # fmt: skip


@dataclass
class Spec:
    """One cell to be made."""

    scheme: str
    run: int = 1
    state: str = "finished"
    verdict: str = "ok"
    flows: int = 2
    load: float = 1.03
    reason: str | None = None
    record: str = "packets"
    silent: tuple[int, ...] = ()
    schemes: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def cell(self) -> str:
        return f"{self.scheme.replace(':', '-').replace(' ', '-')}-r{self.run}"


def _network(rate: int) -> dict[str, Any]:
    return {
        "kind": "dumbbell",
        "forward": [
            {"name": "forward.0", "kind": "bottleneck", "rate": {"kind": "constant", "rate": rate},
             "queue": {"kind": "droptail", "bytes": QUEUE_BYTES * rate // RATE, "packets": None}},
            {"name": "forward.1", "kind": "delay", "delay": ONE_WAY_NS},
        ],
        "backward": [{"name": "backward.0", "kind": "delay", "delay": ONE_WAY_NS}],
    }  # fmt: skip


def cell_input(spec: Spec, duration_s: float, rate: int) -> dict[str, Any]:
    """The cell as the agent would get it."""
    end = int(duration_s * 1e9)
    names = spec.schemes or (spec.scheme,) * spec.flows
    return {
        "format": "narrows/cell/1", "id": spec.cell, "scheme": spec.scheme, "run": spec.run, "where": "emulate",
        "seed": 100 + spec.run, "duration_ns": end, "record": spec.record, "bin_ns": 100_000_000,
        "sample_ns": 10_000_000, "network": _network(rate),
        "flows": [{"flow": i + 1, "scheme": names[i], "params": {}, "start_ns": int(i * duration_s / 4 * 1e9),
                   "stop_ns": end, "direction": "forward", "extra_rtt_ns": 0} for i in range(spec.flows)],
        "transport": {},
    }  # fmt: skip


def _packets(spec: Spec, cell: dict[str, Any], rate: int) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Packets, states and queue samples of one run."""
    seed = int.from_bytes(hashlib.sha256(spec.cell.encode()).digest()[:4], "big")
    chance = np.random.default_rng(seed)
    end, service = cell["duration_ns"], SIZE * 8 * 1_000_000_000 // rate
    times, owners = [], []
    states: dict[str, list[Any]] = {"flow": [], "time_ns": [], "cwnd_bytes": [], "srtt_ns": []}
    sample = np.arange(0, end, cell["sample_ns"], dtype=np.int64)
    active = sum((sample >= f["start_ns"]).astype(int) for f in cell["flows"] if f["flow"] not in spec.silent)
    for flow in cell["flows"]:
        if flow["flow"] in spec.silent:
            continue
        phase = 0.3 * flow["flow"]
        saw = spec.load * (0.86 + 0.28 * np.mod(sample / 1e9 / 2.5 + phase, 1.0))
        share = np.where(sample >= flow["start_ns"], saw / np.maximum(active, 1), 0.0)
        amount = np.cumsum(share * rate * cell["sample_ns"] / 1e9 / (SIZE * 8))
        ticks = np.arange(1, int(amount[-1]) + 1)
        when = np.interp(ticks, amount, sample + cell["sample_ns"]) + chance.uniform(0, 0.2e6, len(ticks))
        times.append(np.sort(when))
        owners.append(np.full(len(ticks), flow["flow"]))
        own = sample[sample >= flow["start_ns"]]
        states["flow"].append(np.full(len(own), flow["flow"]))
        states["time_ns"].append(own)
        states["cwnd_bytes"].append(share[sample >= flow["start_ns"]] * rate / 8 * 0.06)
        states["srtt_ns"].append(np.full(len(own), 60_000_000))
    time = np.concatenate(times or [np.zeros(0)])
    owner = np.concatenate(owners or [np.zeros(0)])
    order = np.argsort(time, kind="stable")
    time, owner = time[order].astype(np.int64), owner[order].astype(np.int64)
    keep, leave = _queue(time, service, QUEUE_BYTES * rate // RATE // SIZE)
    arrived = np.where(keep, leave + ONE_WAY_NS, -1)
    fate = np.where(~keep, "dropped", np.where(arrived <= end, "delivered", "in_flight"))
    packets = pl.DataFrame(
        {"flow": owner, "direction": ["forward"] * len(time), "uid": np.arange(1, len(time) + 1), "size_bytes": SIZE,
         "sent_ns": time, "arrived_ns": arrived, "late_ns": 0, "fate": fate,
         "element": np.where(fate == "delivered", "", "forward.0"), "reason": np.where(keep, "", "queue full")},
        schema_overrides={"flow": pl.UInt16, "uid": pl.UInt64, "size_bytes": pl.UInt32, "sent_ns": pl.UInt64,
                          "late_ns": pl.Int64},
    ).with_columns(
        pl.when(pl.col("fate") == "delivered").then(pl.col("arrived_ns")).cast(pl.UInt64),
        pl.when(pl.col("fate") == "delivered").then(pl.col("late_ns")),
        pl.when(pl.col("element") != "").then(pl.col("element")),
        pl.when(pl.col("reason") != "").then(pl.col("reason")),
    )  # fmt: skip
    columns = {k: np.concatenate(v) if v else np.zeros(0) for k, v in states.items()}
    state = pl.DataFrame(columns).cast({"flow": pl.UInt16, "time_ns": pl.UInt64, "cwnd_bytes": pl.UInt64,
                                        "srtt_ns": pl.UInt64})  # fmt: skip
    entered = np.searchsorted(time[keep], sample)
    left = np.searchsorted(leave[keep], sample)
    backlog = np.maximum(entered - left - 1, 0)
    queue = pl.DataFrame({"element": ["forward.0"] * len(sample), "time_ns": sample, "backlog_bytes": backlog * SIZE,
                          "backlog_packets": backlog}).cast({"time_ns": pl.UInt64, "backlog_bytes": pl.UInt64,
                                                            "backlog_packets": pl.UInt32})  # fmt: skip
    return packets, state, queue


def _queue(time: Any, service: int, limit: int) -> tuple[Any, Any]:
    """Which packets a droptail FIFO takes and when they leave it."""
    keep = np.ones(len(time), dtype=bool)
    leave = np.zeros(len(time), dtype=np.int64)
    free = 0
    for i, now in enumerate(time.tolist()):
        waiting = max(0, (free - now + service - 1) // service - 1)
        if waiting >= limit:
            keep[i] = False
            continue
        free = max(free, now) + service
        leave[i] = free
    return keep, leave


def _metrics(packets: pl.DataFrame, flow: int | None, rate: int) -> tuple[dict[str, Any], dict[str, str]]:
    own = packets if flow is None else packets.filter(pl.col("flow") == flow)
    got = own.filter(pl.col("fate") == "delivered")
    values: dict[str, Any] = dict.fromkeys(name for name, *_ in METRICS)
    if len(got) < 2:
        return values, {name: "no packet of the flow arrived" for name in values}
    arrived = got["arrived_ns"].cast(pl.Int64).to_numpy()
    delay = np.sort(arrived - got["sent_ns"].cast(pl.Int64).to_numpy())
    seconds = (arrived.max() - arrived.min()) / 1e9
    bps = float(got["size_bytes"].sum()) * 8 / seconds

    def rank(share: float) -> float:
        return float(delay[max(0, int(np.ceil(share * len(delay))) - 1)])

    lost = int((own["fate"] == "dropped").sum())
    values.update(throughput_bps=bps, goodput_bps=bps * 0.965, delay_mean_ns=float(delay.mean()),
                  delay_p50_ns=rank(0.5), delay_p95_ns=rank(0.95), delay_p99_ns=rank(0.99),
                  queueing_delay_p95_ns=rank(0.95) - ONE_WAY_NS, loss_ratio=lost / (lost + len(got)))  # fmt: skip
    absent = {}
    if flow is None:
        values.update(utilization_ratio=bps / rate, jain_index=0.97)
        absent["rtt_mean_ns"] = "defined for single flows"
    else:
        values["rtt_mean_ns"] = float(delay.mean()) + ONE_WAY_NS
        absent = {"utilization_ratio": "defined for all flows together", "jain_index": "needs two flows"}
    return values, absent


def _write_cell(folder: Path, spec: Spec, cell: dict[str, Any], rate: int) -> list[dict[str, Any]]:
    where = folder / "cells" / spec.cell
    where.mkdir(parents=True)
    packets, states, queues = _packets(spec, cell, rate)
    packets.write_parquet(where / "packets.parquet")
    states.write_parquet(where / "states.parquet")
    queues.write_parquet(where / "queues.parquet")
    reasons = [] if spec.verdict == "ok" else [
        {"code": "lateness", "severity": spec.verdict, "text": spec.reason or "The emulator was late: p99 4.1 ms."}
    ]  # fmt: skip
    record = {
        "format": "narrows/run/1", "cell": cell, "plane": "emulate", "versions": {"narrows": "0.1.0", "git": "abc1234"},
        "host": {"kernel": "6.18.44", "cpu_model": "Example CPU", "cpus": 2, "memory_bytes": 25_000_000_000,
                 "clocksource": "tsc", "sysctls": {"net.core.default_qdisc": "fq", "net.core.rmem_max": "212992",
                                                   "net.ipv4.tcp_rmem": "4096 131072 6291456"}},
        "started_at": "2026-11-21T10:15:00.123Z", "ended_at": "2026-11-21T10:15:10.456Z",
        "clock": {"offset_ns": 0, "error_ns": 0},
        "flows": [{"flow": f["flow"], "scheme": f["scheme"],
                   "fingerprint": {"kind": "linux" if ":" in f["scheme"] else "native",
                                   "name": f["scheme"].split(":")[-1], "version": "0.1.0", "git": "abc1234",
                                   "kernel": "6.18.44" if ":" in f["scheme"] else None,
                                   "read_back": f["scheme"].split(":")[-1], "params": {}},
                   "sender": {}, "receiver": {}} for f in cell["flows"]],
        "elements": [], "processes": [{"name": "flow 1 sender", "exit": 0, "signal": None, "expected": True}],
        "lateness": {"packets": len(packets), "p50_ns": 4_000, "p90_ns": 11_000, "p99_ns": 42_000, "p999_ns": 90_000,
                     "max_ns": 312_000},
        "rings": [{"port": "sender", "received": len(packets), "dropped": 0}],
        "cpu": {"emulator_ratio": 0.31, "busy_ratio": 0.62, "stolen_ratio": 0.0},
        "verdict": spec.verdict, "reasons": reasons, "checks": [{"name": "conservation", "ok": True, "detail": ""}],
    }  # fmt: skip
    (where / "run.json").write_text(json.dumps(record))
    rows = []
    for flow in [*range(1, spec.flows + 1), None]:
        metrics, absent = _metrics(packets, flow, rate)
        rows.append({"scheme": spec.scheme, "run": spec.run, "flow": flow or "all", "verdict": spec.verdict,
                     "cell": spec.cell, "metrics": metrics, "absent": absent})  # fmt: skip
    return rows


def _summary(specs: list[Spec], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for scheme in dict.fromkeys(s.scheme for s in specs):
        own = [s for s in specs if s.scheme == scheme]
        valid = {s.cell for s in own if s.state == "finished" and s.verdict in ("ok", "degraded")}
        for flow in [*range(1, max(s.flows for s in own) + 1), "all"]:
            metrics = {}
            for name, *_ in METRICS:
                values = [r["metrics"][name] for r in rows if r["cell"] in valid and r["flow"] == flow
                          and r["metrics"][name] is not None]  # fmt: skip
                if values:
                    ordered = sorted(values)
                    ci = [ordered[0], ordered[-1]] if len(values) >= 6 else None
                    metrics[name] = {"mean": float(np.mean(values)), "median": float(np.median(values)), "ci95": ci,
                                     "n": len(values)}  # fmt: skip
            found.append({"scheme": scheme, "flow": flow, "started": len(own),
                          "finished": sum(s.state == "finished" for s in own), "valid": len(valid), "metrics": metrics})
    return found


def write_campaign(
    folder: Path,
    specs: list[Spec],
    *,
    duration_s: float = 6.0,
    rate: int = RATE,
    question: str = "Which schemes fill a short queue, and what does it cost in delay?",
    skipped: list[dict[str, str]] | None = None,
) -> Path:
    """A campaign folder with the given cells."""
    rows: list[dict[str, Any]] = []
    entries = []
    for spec in specs:
        cell = cell_input(spec, duration_s, rate)
        if spec.state == "finished":
            rows += _write_cell(folder, spec, cell, rate)
        entries.append({"id": spec.cell, "scheme": spec.scheme, "run": spec.run, "state": spec.state,
                        "verdict": spec.verdict if spec.state == "finished" else None, "reason": spec.reason,
                        "started_at": "2026-11-21T10:15:00.123Z", "ended_at": "2026-11-21T10:15:10.456Z"})  # fmt: skip
    written = f"schema: narrows/scenario/1\nquestion: {question}\nwhere: emulate\npath:\n  forward:\n    - ...\n"
    campaign = {
        "format": "narrows/campaign/1",
        "scenario": {"written": written, "resolved": {"name": "first-look", "question": question, "seed": 1}},
        "hash": "3fa9c1" + "0" * 58, "cells": entries, "skipped": skipped or [],
        "host": {"kernel": "6.18.44", "cpu_model": "Example CPU", "cpus": 2},
        "versions": {"narrows": "0.1.0", "python": "3.11.7"},
        "argv": ["narrows", "run", "scenarios/basic/first-look.yaml", "-o", "my results"],
    }  # fmt: skip
    results = {"format": "narrows/results/1", "scenario": "first-look", "hash": campaign["hash"],
               "metrics": metric_list(), "rows": rows, "summary": _summary(specs, rows), "skipped": skipped or []}  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "campaign.json").write_text(json.dumps(campaign))
    (folder / "results.json").write_text(json.dumps(results))
    return folder
