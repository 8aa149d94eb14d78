"""Campaign folders with synthetic results, for tests of their presentation: no record is simulated, and the
test chooses the numbers."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import termios
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner, Result

import forked_commands
from narrows.campaign import results
from narrows.campaign.columns import Columns
from narrows.campaign.measurement import list_metrics
from narrows.cli.all_commands import app
from narrows.comparison.document import Request
from narrows.comparison.document import compare as typed
from narrows.documents.campaign import CellEntry
from narrows.documents.data import from_data, to_data
from narrows.documents.resolved import read_resolved
from narrows.documents.results import FORMAT, Results, Skipped
from narrows.errors import NarrowsError
from results_kit import made_row

#: Ten schemes.
SCHEMES = ("cubic", "reno", "bbr1", "bbr3", "copa", "vegas", "westwood", "htcp", "illinois", "bic")
#: Values of one run by metric.
Values = Mapping[str, float | None]

NETWORK = {
    "kind": "dumbbell",
    "forward": [
        {
            "name": "forward.0",
            "kind": "bottleneck",
            "rate": {"kind": "constant", "rate": 12_000_000},
            "queue": {"kind": "droptail", "bytes": 60_000, "packets": None},
        },
        {"name": "forward.1", "kind": "delay", "delay": 20_000_000, "limit": None},
    ],
    "backward": [{"name": "backward.0", "kind": "delay", "delay": 20_000_000, "limit": None}],
}


def flow(scheme: str, number: int = 1, **changes: Any) -> dict[str, Any]:
    """A flow of a resolved scenario."""
    found = {"flow": number, "scheme": scheme, "params": {}, "start_ns": 0, "stop_ns": 10_000_000_000}
    return {**found, "direction": "forward", "extra_rtt_ns": 0, **changes}


def campaign(
    folder: Path,
    schemes: Mapping[str, Sequence[Values]],
    *,
    first_seed: int = 1000,
    where: str = "simulate",
    verdicts: Mapping[tuple[str, int], str] | None = None,
    lateness_ns: int = 0,
    changes: Mapping[str, Any] | None = None,
    document: Mapping[str, Any] | None = None,
    skipped: Mapping[str, str] | None = None,
) -> Path:
    """A finished campaign of these schemes, each with the values of its runs. A verdict may also be `failed`
    or `pending`. `changes` apply to the resolved scenario, `document` to campaign.json."""
    folder.mkdir(parents=True)
    cells, rows = [], []
    for scheme, runs in schemes.items():
        slug = "".join(letter if letter.isalnum() else "-" for letter in scheme).strip("-")
        for number, values in enumerate(runs, 1):
            verdict = (verdicts or {}).get((scheme, number), "ok")
            state = verdict if verdict in ("failed", "pending") else "finished"
            cell = {"id": f"{slug}-r{number}", "scheme": scheme, "run": number, "seed": first_seed + number}
            cell |= {"state": state, "verdict": verdict if state == "finished" else None, "reasons": []}
            cells.append(cell)
            if state != "finished":
                continue
            (folder / "cells" / str(cell["id"])).mkdir(parents=True)
            late = {"p99_ns": lateness_ns} if lateness_ns else None
            run: dict[str, Any] = {"format": "narrows/run/1", "lateness": late}
            run |= {"verdict": verdict, "reasons": []}
            (folder / "cells" / str(cell["id"]) / "run.json").write_text(json.dumps(run))
            rows.append(made_row(scheme, dict(values), run=number, verdict=verdict, cell=str(cell["id"])))
    metrics = list_metrics()
    listed = [{"scheme": name, "reason": why} for name, why in (skipped or {}).items()]
    resolved = {
        "format": "narrows/resolved/1",
        "name": "made-up",
        "question": "Which?",
        "where": where,
        "network": NETWORK,
        "base_rtt_ns": 40_000_000,
        "duration_ns": 10_000_000_000,
        "runs": max(map(len, schemes.values())),
        "seed": first_seed,
        "transport": {"ack_every": 2},
        "schemes": [
            {"label": name, "flows": [flow(name)], "values": {}} for name in [*schemes, *(skipped or {})]
        ],
        **(changes or {}),
    }
    content = {
        "format": "narrows/campaign/1",
        "name": "made-up",
        "hash": "0123456789ab",
        "where": where,
        "scenario": {"resolved": resolved, "written": "", "overrides": []},
        "created_at": "2026-11-24T05:36:49.665Z",
        "versions": {"narrows": "0.1.0", "agent": {"git": "aaaaaaaaaaaa"}},
        "host": {"kernel": "6.18.44"},
        "skipped": listed,
        "cells": cells,
        **(document or {}),
    }
    (folder / "campaign.json").write_text(json.dumps(content))
    entries = from_data(cells, list[CellEntry])
    columns = Columns(read_resolved(resolved))
    made = Results(
        format=FORMAT,
        scenario="made-up",
        hash=str(content["hash"]),
        metrics=metrics,
        rows=rows,
        digests={},
        summary=results._summaries(list(schemes), entries, rows, metrics, columns),
        skipped=[Skipped(scheme=name, reason=why) for name, why in (skipped or {}).items()],
    )
    (folder / "results.json").write_text(json.dumps(to_data(made)))
    return folder


def compare(request: Request) -> dict[str, Any]:
    """The comparison in the form of `narrows compare --json`."""
    document: dict[str, Any] = json.loads(json.dumps(to_data(typed(request)), allow_nan=False))
    return document


def on_terminal(*command: object, columns: int, cwd: Path | None = None) -> str:
    """The output of a command on a terminal of this many columns; it must succeed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    environment |= {"NO_COLOR": "1", "TERM": "xterm"}
    found: list[bytes] = []
    # A terminal holds a page or two: the output is read while the command writes.
    reader = threading.Thread(target=_read_all, args=(ours, found))
    reader.start()
    try:
        done = forked_commands.run_in(
            environment, [str(word) for word in command], cwd or Path.cwd(), terminal=os.ttyname(theirs)
        )
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)
    text = b"".join(found).decode()
    assert done.returncode == 0, text
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r\n", "\n")


def _read_all(terminal: int, parts: list[bytes]) -> None:
    """Reads until no process has the other end open."""
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 65536):
            parts.append(part)


def runs(
    seed: int, count: int = 10, *, factor: float = 1.0, common: int = 1, noise: float = 0.01
) -> list[Values]:
    """Runs with the spread of a path with random loss; runs with the same `common` share their randomness."""
    own, shared = np.random.RandomState(seed), np.random.RandomState(common)
    path = shared.normal(0, 0.03, count)
    found: list[Values] = []
    for number in range(count):
        rate = 11e6 * factor * float((1 + path[number]) * (1 + own.normal(0, noise)))
        queue = 20e6 * float(1 + own.normal(0, 0.05))
        loss = float(abs(own.normal(0.005, 0.001)))
        found.append(
            {
                "throughput_bps": rate,
                "delay_p95_ns": 20e6 + queue,
                "queueing_delay_p95_ns": queue,
                "loss_ratio": loss,
                "utilization_ratio": rate / 12e6,
                "jain_index": None,
            }
        )
    return found


def ten(seed: int, common: int = 1, **factors: float) -> dict[str, list[Values]]:
    """Ten schemes with ten runs each; `factors` scale the throughput."""
    return {
        name: runs(100 * seed + place, factor=factors.get(name, 1.0), common=common)
        for place, name in enumerate(SCHEMES)
    }


def run_command(*args: object, columns: int = 80) -> Result:
    """Calls `narrows compare` inside this process, on a terminal of this many columns."""
    environment = {"COLUMNS": str(columns), "NO_COLOR": "1"}
    result = CliRunner().invoke(app, ["compare", *map(str, args)], env=environment)
    if isinstance(result.exception, NarrowsError):
        result.exit_code = result.exception.exit_code
    elif result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
