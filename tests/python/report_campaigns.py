"""Campaign folders for tests of the report: real records from the simulator, with chosen outcomes.

The core simulates the records, and the usual code measures them. Afterwards `run.json` may get another
verdict, scheme name or host, as if it had been emulated: the test chooses these, and all numbers follow from
the packets.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from narrows import _native
from narrows.campaign import results
from narrows.campaign.store import CampaignFolder
from narrows.hashes import content_hash
from narrows.scenario.model import hash_of

RATE = 12_000_000
ONE_WAY_NS = 20_000_000
QUEUE_BYTES = 60_000
QUESTION = "Which schemes fill a short queue, and what does it cost in delay?"
HOST = {
    "kernel": "6.18.44",
    "machine": "x86_64",
    "cpu_model": "Example CPU 9000",
    "cpus": 2,
    "memory_bytes": 25_000_000_000,
    "clocksource": "tsc",
    "sysctls": {
        "net.core.default_qdisc": "fq",
        "net.core.rmem_max": "212992",
        "net.ipv4.tcp_rmem": "4096\t131072",
    },
}
TIMES = ("2026-11-21T10:15:00.123Z", "2026-11-21T10:15:10.456Z")


@dataclass
class Spec:
    """One cell to be made; `runs_as` are the schemes that are actually simulated, one per flow."""

    scheme: str
    run: int = 1
    runs_as: tuple[str, ...] = ("cubic", "cubic")
    state: str = "finished"
    verdict: str = "ok"
    reason: str = "The emulator was late: 1 % of the packets left more than 4.1 ms too late."
    record: str = "packets"
    stop_s: dict[int, float] = field(default_factory=dict)

    @property
    def cell(self) -> str:
        """The name of the folder."""
        plain = "".join(c if c.isalnum() else "-" for c in self.scheme.lower())
        return f"{plain.strip('-')}-r{self.run}"


def network(rate: int = RATE, queue_bytes: int = QUEUE_BYTES) -> dict[str, Any]:
    """A bottleneck and a delay."""
    droptail = {"kind": "droptail", "bytes": queue_bytes, "packets": None}
    return {
        "kind": "dumbbell",
        "forward": [
            {
                "name": "forward.0",
                "kind": "bottleneck",
                "rate": {"kind": "constant", "rate": rate},
                "queue": droptail,
            },
            {"name": "forward.1", "kind": "delay", "delay": ONE_WAY_NS},
        ],
        "backward": [{"name": "backward.0", "kind": "delay", "delay": ONE_WAY_NS}],
    }


def cell_input(
    spec: Spec, duration_s: float, path: dict[str, Any], interval_s: float = 1.0
) -> dict[str, Any]:
    """The cell in the simulator's format."""
    end = int(duration_s * 1e9)
    flows = [
        {
            "flow": i + 1,
            "scheme": scheme,
            "params": {},
            "start_ns": int(i * interval_s * 1e9),
            "stop_ns": int(spec.stop_s.get(i + 1, duration_s) * 1e9),
            "direction": "forward",
            "extra_rtt_ns": 0,
        }
        for i, scheme in enumerate(spec.runs_as)
    ]
    return {
        "format": "narrows/cell/1",
        "id": spec.cell,
        "scheme": spec.scheme,
        "run": spec.run,
        "where": "simulate",
        "seed": 1000 + spec.run,
        "duration_ns": end,
        "record": spec.record,
        "bin_ns": 100_000_000,
        "sample_ns": 10_000_000,
        "network": path,
        "flows": flows,
        "transport": {},
    }


def _as_emulated(record: dict[str, Any], spec: Spec) -> None:
    """Turns a simulated run.json into the form that the test needs."""
    record.update(plane="emulate", host=HOST, started_at=TIMES[0], ended_at=TIMES[1], verdict=spec.verdict)
    record["cell"]["where"] = "emulate"
    packets = {
        "packets": 1,
        "p50_ns": 4_000,
        "p90_ns": 11_000,
        "p99_ns": 42_000,
        "p999_ns": 90_000,
        "max_ns": 312_000,
    }
    record["lateness"] = packets
    record["rings"] = [{"port": "sender", "received": 1, "dropped": 0}]
    record["cpu"] = {"emulator_ratio": 0.31, "busy_ratio": 0.62, "stolen_ratio": 0.0}
    if spec.verdict != "ok":
        record["reasons"] = [{"code": "lateness", "severity": spec.verdict, "text": spec.reason}]
    if spec.scheme not in spec.runs_as and len(set(spec.runs_as)) == 1:
        for flow in [*record["flows"], *record["cell"]["flows"]]:
            flow["scheme"] = spec.scheme


def _entry(spec: Spec, record: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "id": spec.cell,
        "scheme": spec.scheme,
        "run": spec.run,
        "seed": 1000 + spec.run,
        "hash": content_hash(record["cell"]) if record else "0" * 12,
        "state": spec.state,
        "verdict": record["verdict"] if record else None,
        "reasons": record["reasons"] if record else [],
        "error": {"kind": "internal", "message": spec.reason} if spec.state == "failed" else None,
        "started_at": None if spec.state == "pending" else TIMES[0],
        "ended_at": None if spec.state == "pending" else TIMES[1],
        "attempts": 1,
    }


def write_campaign(
    folder: Path,
    specs: list[Spec],
    *,
    duration_s: float = 4.0,
    path: dict[str, Any] | None = None,
    question: str = QUESTION,
    title: str | None = None,
    skipped: list[dict[str, str]] | None = None,
    simulated: bool = False,
    shape: Callable[[dict[str, Any], Spec], None] = _as_emulated,
) -> Path:
    """A campaign folder with the given cells; `shape` edits run.json for the test."""
    path = path or network()
    (folder / "cells").mkdir(parents=True)
    records: dict[str, dict[str, Any]] = {}
    for spec in specs:
        if spec.state != "finished":
            continue
        where = folder / "cells" / spec.cell
        record = json.loads(_native.simulate(json.dumps(cell_input(spec, duration_s, path)), str(where)))
        if not simulated:
            shape(record, spec)
            (where / "run.json").write_text(json.dumps(record))
        records[spec.cell] = record
    flows: dict[str, Any] = {}
    for spec in specs:
        cell = records[spec.cell]["cell"] if spec.cell in records else cell_input(spec, duration_s, path)
        flows.setdefault(spec.scheme, cell["flows"])
    resolved = {
        "format": "narrows/resolved/1",
        "name": "first-look",
        "title": title,
        "question": question,
        "where": "simulate" if simulated else "emulate",
        "topology": "dumbbell",
        "network": path,
        "schemes": [{"label": s, "slug": s, "flows": listed} for s, listed in flows.items()],
        "duration_ns": int(duration_s * 1e9),
        "runs": max((s.run for s in specs), default=1),
        "seed": 1,
    }
    campaign = {
        "format": "narrows/campaign/1",
        "name": "first-look",
        "hash": hash_of(resolved),
        "where": resolved["where"],
        "scenario": {
            "file": "first-look.yaml",
            "written": f"schema: narrows/scenario/1\nquestion: {question}\nwhere: emulate\n",
            "overrides": [{"option": "--time", "path": "duration", "value": f"{duration_s:g} s"}],
            "resolved": resolved,
        },
        "created_at": TIMES[0],
        "ended_at": TIMES[1],
        "sessions": [
            {
                "argv": ["narrows", "run", "scenarios/basic/first-look.yaml", "-o", "my results"],
                "started_at": TIMES[0],
                "ended_at": TIMES[1],
                "outcome": "done",
            }
        ],
        "versions": {"narrows": "0.1.0", "agent": {"narrows": "0.1.0", "git": "abc1234"}, "python": "3.11.7"},
        "host": {**HOST, "congestion_controls": ["reno", "bbr", "cubic"]},
        "skipped": skipped or [],
        "cells": [_entry(s, records.get(s.cell)) for s in specs],
    }
    (folder / "campaign.json").write_text(json.dumps(campaign))
    opened = CampaignFolder.read(folder)
    results.write(opened, results.compute(opened))
    return folder
