#!/usr/bin/env -S python3 -I -S
"""A stand-in for narrows-agent that speaks its protocol and fails on demand.

$FAKE_AGENT is a JSON object: {"sleep": seconds per cell, "fail": {CELL ID: how}, "facts": {...}, "bpf":
{PROGRAM OR FILE NAME: {"kind": "input", "message": "..."}}}, where `how` is an exit code with an error line
(3, 4, 1), "full" (disk full), "kill" (dies by SIGKILL), "mute" (leaves no record), "invalid" or "degraded"
(verdicts). A file named by "once" makes it fail only once.
"""

import json
import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

SETTINGS = json.loads(os.environ.get("FAKE_AGENT", "{}"))
FACTS = {
    "kernel": "6.0.0-fake",
    "machine": "x86_64",
    "cpus": 2,
    "cpu_model": "Fake",
    "memory_bytes": 2**30,
    "root": True,
    "namespaces": {"ok": True, "how": "root", "why": None},
    "packet_socket": {"ok": True, "why": None},
    "congestion_controls": ["reno", "cubic", "bbr"],
    "clocksource": "tsc",
    "sysctls": {},
    "checks": [],
}


def say(**event: object) -> None:
    print(json.dumps(event), flush=True)


def main() -> int:
    command = sys.argv[1]
    if command == "version":
        say(narrows="0.1.0", git=None, protocol=SETTINGS.get("protocol", 1))
        return 0
    if command == "doctor":
        print(json.dumps(FACTS | SETTINGS.get("facts", {})))
        return 0
    if command == "bpf":
        # For objects, NAME=PATH.
        asked = [what.partition("=")[0] for what in sys.argv[3::2]]
        refused = SETTINGS.get("bpf") or {}
        results = [{"what": what, "ok": what not in refused, **refused.get(what, {})} for what in asked]
        print(json.dumps({"results": results}))
        return 0
    arguments = dict(zip(sys.argv[2:-1:2], sys.argv[3::2], strict=False))
    cell = json.loads(Path(arguments["--cell"]).read_text())
    out = Path(arguments["--out"])
    return run(cell, out, SETTINGS.get("fail", {}).get(cell["id"]), arguments.get("--files"))


def run(cell: dict[str, Any], out: Path, how: object, files: str | None) -> int:
    once = SETTINGS.get("once")
    if how is not None and once:
        if Path(once).exists():
            how = None
        else:
            Path(once).write_text("failed already")
    stopped: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: stopped.append(number))
    partial = out.parent / f".{out.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    (partial / "half-written").write_text("x")
    ends = time.monotonic() + SETTINGS.get("sleep", 0)
    while True:
        left = ends - time.monotonic()
        say(event="progress", time_ns=int(max(0, 1 - left) * 1e9), of_ns=10**9)
        ready, _, _ = select.select([sys.stdin], [], [], max(0.0, min(0.1, left)))
        if stopped or (ready and not os.read(0, 1)):
            shutil.rmtree(partial)
            say(event="error", kind="interrupted", message="interrupted")
            return 128 + (stopped[0] if stopped else signal.SIGTERM)
        if left <= 0:
            break
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "full":
        say(event="error", kind="io", message=f"{partial}/packets.parquet: No space left on device")
        return 1
    if isinstance(how, int):
        print("the last line of the log", file=sys.stderr)
        say(
            event="error",
            kind={3: "input", 4: "unavailable"}.get(how, "internal"),
            message=f"injected failure {how}",
        )
        return how
    if how == "mute":
        return 0
    verdict = how if how in ("invalid", "degraded") else "ok"
    reasons = [{"code": "x", "severity": verdict, "text": f"made {verdict}"}] if verdict != "ok" else []
    document = {
        "format": "narrows/run/1",
        "cell": cell,
        "plane": sys.argv[1],
        "verdict": verdict,
        "reasons": reasons,
        "elements": [],
        "flows": [],
        "checks": [],
        "lateness": None,
        "files": files,
    }
    (partial / "half-written").unlink()
    # The ends of a Parquet file: a record without one is torn.
    (partial / "packets.parquet").write_bytes(b"PAR1" + bytes(4) + b"PAR1")
    (partial / "run.json").write_text(json.dumps(document))
    partial.rename(out)
    say(event="done", verdict=verdict, reasons=[])
    return 0


if __name__ == "__main__":
    sys.exit(main())
