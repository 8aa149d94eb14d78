"""The agent of installations without the program narrows-agent: simulates with the extension module.

`python -m narrows.agent.portable COMMAND` answers those commands of narrows-agent that need no Linux
(`version`, `doctor`, `simulate`), with the same arguments, events and exit codes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import signal
import sys
import threading
from pathlib import Path

import msgspec

from narrows import _native
from narrows.agent.location import MISSING, PROTOCOL, REMEDY
from narrows.errors import EXIT_BAD_INPUT, EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_TERMINATED

#: Time between two looks at signals, standard input and memory.
_LOOK_S = 0.05
#: Bytes of a unit of `ru_maxrss`.
_RESIDENT_UNIT = 1 if sys.platform == "darwin" else 1024


def main(words: list[str] | None = None) -> int:
    """Runs a command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="narrows.agent.portable", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("version", help="print the version, as JSON")
    commands.add_parser("doctor", help="print what this machine can do, as JSON")
    simulate = commands.add_parser("simulate", help="run a cell in virtual time")
    simulate.add_argument("--cell", type=Path, required=True, help="the cell, a JSON document")
    simulate.add_argument("--out", type=Path, required=True, help="folder of the record; it must not exist")
    simulate.add_argument("--files", type=Path, help="folder of the files that the cell names")
    simulate.add_argument("--watch-stdin", action="store_true", help="stop when standard input ends")
    simulate.add_argument("--memory", type=int, help="maximum memory of the run, in bytes")
    simulate.add_argument("--beside", type=int, default=1, help="number of runs that share the memory")
    options, others = parser.parse_known_args(words)
    if options.command == "version":
        _say({"narrows": _native.version(), "git": _native.git(), "protocol": PROTOCOL})
        return 0
    if options.command == "doctor":
        _say(_examine())
        return 0
    if others:
        parser.error(f"unknown arguments: {' '.join(others)}")
    return _Simulation(options).run()


def _say(document: dict[str, object]) -> None:
    print(json.dumps(document), flush=True)


def _examine() -> dict[str, object]:
    """The facts of `narrows doctor`: what needs a kernel of Linux and narrows-agent is not possible."""
    names = ("network namespaces", "packet sockets", "virtual hosts", "kernel congestion controls")
    return {
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "cpu_model": platform.processor() or platform.machine(),
        "memory_bytes": _memory(),
        "root": os.geteuid() == 0,
        "namespaces": {"ok": False, "how": None, "why": MISSING},
        "packet_socket": {"ok": False, "why": MISSING},
        "bpf": {"ok": False, "why": MISSING},
        "checks": [
            {"name": "simulation, reports, comparisons", "ok": True, "detail": "work here", "remedy": None},
            *({"name": name, "ok": False, "detail": MISSING, "remedy": REMEDY} for name in names),
        ],
    }


def _memory() -> int:
    """The machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class _Reason(msgspec.Struct, frozen=True):
    """A reason of a verdict."""

    text: str


class _Run(msgspec.Struct, frozen=True):
    """The members of run.json that the last event repeats."""

    verdict: str
    reasons: list[_Reason]


class _Simulation:
    """A simulated cell, which signals, the end of standard input and a limit of memory end at any point."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._memory: int = options.memory or _memory() // 4 * 3 // max(1, options.beside)
        self._signal: int | None = None
        self._code = EXIT_FAILURE
        # The simulation or its end from outside, whichever is first, decides the outcome.
        self._over = threading.Lock()

    def run(self) -> int:
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: setattr(self, "_signal", number))
        if self._options.watch_stdin:
            threading.Thread(target=self._wait_for_end_of_input, daemon=True).start()
        work = threading.Thread(target=self._simulate, daemon=True)
        work.start()
        while work.is_alive():
            work.join(_LOOK_S)
            if self._signal is not None:
                code = EXIT_INTERRUPTED if self._signal == signal.SIGINT else EXIT_TERMINATED
                self._leave("interrupted", "the run was interrupted; no part of it was kept", code)
            if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RESIDENT_UNIT > self._memory:
                self._leave(
                    "memory",
                    f"the run needs more memory than the {self._memory / 1e9:.3g} GB that are allowed:"
                    " allow more with --memory, or reduce the data in flight, in queues or in the record"
                    " (lower rates and delays, shorter queues, record: bins)",
                    EXIT_FAILURE,
                )
        return self._code

    def _wait_for_end_of_input(self) -> None:
        while os.read(0, 256):
            pass
        self._signal = self._signal or signal.SIGTERM

    def _simulate(self) -> None:
        options = self._options
        files = options.files or options.cell.parent / "files"
        try:
            if options.out.exists():
                raise ValueError(f"{options.out} exists already")
            cell = options.cell.read_text(encoding="utf-8")
            text = _native.simulate(cell, options.out, files.absolute(), self._report)
            run = msgspec.json.decode(text, type=_Run)
            reasons = [reason.text for reason in run.reasons]
            event: dict[str, object] = {"event": "done", "verdict": run.verdict, "reasons": reasons}
            code, message = 0, ""
        except (ValueError, OSError) as error:
            data = isinstance(error, ValueError)
            message = f"{options.cell}: {error}" if data else str(error)
            event = {"event": "error", "kind": "input" if data else "io", "message": message}
            code = EXIT_BAD_INPUT if data else EXIT_FAILURE
        if self._over.acquire(blocking=False):
            self._code = code
            _say(event)
            if message:
                print(f"narrows-agent: {message}", file=sys.stderr)

    @staticmethod
    def _report(time_ns: int, of_ns: int) -> None:
        _say({"event": "progress", "time_ns": time_ns, "of_ns": of_ns})

    def _leave(self, kind: str, message: str, code: int) -> None:
        """Ends the process without a record, unless the work has ended."""
        if not self._over.acquire(blocking=False):
            return
        out: Path = self._options.out
        partial, gone = (out.with_name(f".{out.name}.{word}") for word in ("partial", "gone"))
        # Renamed first: the work may still write, and must not give the folder its final name.
        while partial.exists():
            shutil.rmtree(gone, ignore_errors=True)
            try:
                partial.rename(gone)
            except OSError:
                break
        shutil.rmtree(gone, ignore_errors=True)
        _say({"event": "error", "kind": kind, "message": message})
        print(f"narrows-agent: {message}", file=sys.stderr, flush=True)
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
