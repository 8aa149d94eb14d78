"""Commands that are killed at any moment and called again end as if nothing had happened: nothing is lost,
duplicated, or left behind.

`make test` kills each command once. NARROWS_KILLS=200 spreads that many kills over them; NARROWS_KILLS_SEED
chooses other moments.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import campaign_kit
import processes
from lab_kit import family
from narrows.campaign.json_files import read_json
from narrows.sweep.store import SweepFolder
from processes import eventually

KILLS = int(os.environ.get("NARROWS_KILLS", "0"))
SEED = int(os.environ.get("NARROWS_KILLS_SEED", "1"))
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
#: Maximum number of consecutive kills before a command may end.
IN_A_ROW = 3

RUN = """\
schema: narrows/scenario/1
name: short
question: What is left?
where: simulate
path: {forward: [{rate: 4 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 10 ms}, {loss: 1 %}]}
schemes: [reno, cubic, vegas]
duration: 2 s
runs: 12
"""
#: Cells name a trace, a file that workers keep in a folder while they simulate.
SWEEP = """\
schema: narrows/scenario/1
name: swept
question: What is left?
where: simulate
path: {forward: [{rate: {trace: steady.csv}, queue: {droptail: 60 kB}}, {delay: 10 ms}]}
schemes: [reno, cubic]
duration: 2 s
runs: 3
sweep:
  design: grid
  path.forward.1.delay: [2 ms, 5 ms, 10 ms, 20 ms, 40 ms, 60 ms, 80 ms, 100 ms]
"""
TABLE = """\
scheme,run,flow,throughput_mbps,delay95_ms,loss_pct
cubic,1,all,1.86,190,1.4
cubic,2,all,1.84,188,1.5
vegas,1,all,1.71,60,1.0
vegas,2,all,1.70,61,1.1
reno,1,all,1.80,170,1.3
reno,2,all,1.79,172,1.2
"""


def narrows(*words: str) -> list[str]:
    return [sys.executable, "-m", "narrows", *words]


def make_campaigns(place: Path, number: int) -> None:
    for run in range(1, number + 1):
        (place / "short.yaml").write_text(RUN.replace("runs: 12", f"runs: {run}"))
        made = campaign_kit.narrows(
            "run", place / "short.yaml", "--no-report", "-o", place / f"results/c{run}"
        )
        assert made.exit_code == 0, made.output


def prepare_run(place: Path) -> None:
    (place / "short.yaml").write_text(RUN)


def prepare_sweep(place: Path) -> None:
    (place / "steady.csv").write_text("time_s,rate_mbps\n0,4\n1,8\n2,4\n")
    (place / "swept.yaml").write_text(SWEEP)


def prepare_calibrate(place: Path) -> None:
    (place / "table.csv").write_text(TABLE)


def prepare_lab(place: Path) -> None:
    family(place / "buffers")


def prepare_hunt(_: Path) -> None:
    pass


@dataclass(frozen=True)
class Command:
    """A command to be killed: its words, and its requirements in a new folder."""

    words: tuple[str, ...]
    prepare: Callable[[Path], None]
    #: Folders and files that it creates or changes.
    made: tuple[str, ...]
    #: Exit codes besides 0 of a command that has completed its work.
    codes: tuple[int, ...] = ()


HUNT = ("hunt", "bbr1", "--worst", "loss", "--bound", "rate=2..8 Mbit/s", "--budget", "46", "--time", "4")
COMMANDS = {
    "run": Command(("run", "short.yaml", "--no-report", "-o", "out"), prepare_run, ("out",)),
    "sweep": Command(("sweep", "run", "swept.yaml", "-o", "out"), prepare_sweep, ("out",)),
    "hunt": Command((*HUNT, "--no-report", "-o", "out"), prepare_hunt, ("out",), (5,)),
    "calibrate": Command(
        ("calibrate", "table.csv", "--time", "3", "--budget", "50", "-o", "out"), prepare_calibrate, ("out",)
    ),
    "lab": Command(("lab", "run", "buffers", "-o", "out"), prepare_lab, ("out",), (5,)),
    "site": Command(
        ("site", "results", "-o", "out"), lambda place: make_campaigns(place, 2), ("out", "results")
    ),
    "report": Command(("report", "results/c1"), lambda place: make_campaigns(place, 1), ("results",)),
}

#: Members with times, durations and numbers of sessions.
TIMES = {
    "created_at", "ended_at", "started_at", "sessions", "attempts", "failures", "argv", "at", "searched_s",
    "seconds", "version", "versions", "host", "folder", "family", "_cell_order",
}  # fmt: skip


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(one) for name, one in value.items() if name not in TIMES}
    return [without_times(one) for one in value] if isinstance(value, list) else value


def content_of(path: Path) -> object:
    """The content of a file, independent of the time of its creation."""
    data = path.read_bytes()
    if path.suffix == ".json":
        document = json.loads(data)
        if str(document.get("format")).endswith(".1"):
            # The digest depends on times and folders; reading the file verifies it.
            assert read_json(path, document["format"].partition(".")[0]) and document.pop("digest")
        if path.name == "sweep.json":
            # The distribution of cells over parts depends on the kills; the rows are compared instead.
            assert document.pop("parts")
        return without_times(document)
    if path.suffix == ".jsonl":
        lines = [json.loads(line) for line in data.splitlines()]
        keys = [line["key"] for line in lines]
        assert len(set(keys)) == len(keys), f"{path}: something is there twice"
        return sorted(json.dumps(without_times(line), sort_keys=True) for line in lines)
    if path.name == "hunt.md":
        return re.sub(rb" in \d+ s,", b"", data).decode()
    return hashlib.sha256(data).hexdigest()


def state_of(command: Command, place: Path) -> dict[str, object]:
    """The whole output of a command, with the rows of data sets in place of their parts."""
    found: dict[str, object] = {}
    for root in command.made:
        for path in sorted((place / root).rglob("*")):
            name = path.relative_to(place).as_posix()
            assert not path.name.startswith(".") and path.name != "journal.jsonl", f"{name} was left behind"
            if path.is_dir() or "/data/slug=" in name:
                continue
            found[name] = content_of(path)
            if path.name == "sweep.json":
                rows = SweepFolder.read(path.parent).table().to_pylist()
                found[f"{name} rows"] = sorted(json.dumps(row, sort_keys=True) for row in rows)
                cells = [(row["cell"], row["flow"]) for row in rows]
                assert len(set(cells)) == len(cells), f"{name}: something is there twice"
    # Pages contain dates; their content follows from files that are compared.
    if "lab" in command.words:
        found |= {name: "there" for name in found if name.endswith((".html", ".md", ".pdf"))}
    return found


@dataclass
class Killer:
    """Runs a command repeatedly in private folders, and kills it before it has completed its work."""

    command: Command
    base: Path
    draw: random.Random
    seconds: float = 0.0
    slowest: float = 0.0
    told: list[str] = field(default_factory=list)

    def start(self, place: Path) -> subprocess.Popen[str]:
        (place / "tmp").mkdir(exist_ok=True)
        environment = os.environ | {"TMPDIR": str(place / "tmp"), "NARROWS_KILLED": str(place)}
        with (place / "said.txt").open("ab") as said:
            return subprocess.Popen(
                narrows(*self.command.words),
                cwd=place,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                text=True,
                start_new_session=True,
            )

    def complete(self, place: Path) -> dict[str, object]:
        """Lets the command end; returns its final state."""
        process = self.start(place)
        processes.finish(process, 600)
        said = (place / "said.txt").read_text()
        assert process.returncode in (0, *self.command.codes), (self.told, said)
        assert "Traceback" not in said and "internal error" not in said, (self.told, said)
        left = sorted(one.name for one in (place / "tmp").iterdir())
        assert not left, f"{left} was left in the folder for temporary files, {self.told}"
        return state_of(self.command, place)

    def kill(self, place: Path) -> bool:
        """Starts the command and kills it at some moment; False if it was faster."""
        process = self.start(place)
        moment = self.draw.uniform(0.05, 1.0) * self.seconds
        number = self.draw.choice(SIGNALS)
        try:
            process.wait(moment)
            return False
        except subprocess.TimeoutExpired:
            pass
        began = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            # A terminal's Ctrl-C reaches all of its processes.
            (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        processes.finish(process, 60)
        self.slowest = max(self.slowest, time.monotonic() - began)
        self.told.append(f"{number.name} after {moment:.2f} s: exit {process.returncode}")
        accepted = (0, *self.command.codes, 128 + number, -number)
        assert process.returncode in accepted, (self.told, (place / "said.txt").read_text())
        mark = f"NARROWS_KILLED={place}\0".encode()
        eventually(f"all processes have ended, {self.told}", lambda: not _alive(mark), 60)
        return process.returncode < 0 or process.returncode >= 128


def _alive(mark: bytes) -> list[int]:
    """Processes with this in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes() and processes.is_alive(int(entry.name)):
                found.append(int(entry.name))
    return found


@pytest.mark.timeout(7200 if KILLS else 900)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_killed_and_called_again_ends_as_if_nothing_had_happened(
    tmp_path: Path, name: str
) -> None:
    command = COMMANDS[name]
    place = list(COMMANDS).index(name)
    wanted = max(1, KILLS // len(COMMANDS) + (place < KILLS % len(COMMANDS)))
    killer = Killer(command, tmp_path, random.Random(f"{SEED} {name}"))
    whole = tmp_path / "whole"
    whole.mkdir()
    command.prepare(whole)
    # Before it runs: preparation may take long, and must be the same in all folders.
    shutil.copytree(whole, tmp_path / "prepared")
    began = time.monotonic()
    expected = killer.complete(whole)
    killer.seconds = time.monotonic() - began
    assert expected
    kills = number = 0
    while kills < wanted:
        number += 1
        assert number < 20 * wanted, "the command is always quicker"
        folder = tmp_path / f"killed{number}"
        shutil.copytree(tmp_path / "prepared", folder)
        killer.told.clear()
        for _ in range(min(wanted - kills, killer.draw.randint(1, IN_A_ROW))):
            kills += killer.kill(folder)
        found = killer.complete(folder)
        different = sorted(one for one in {*found, *expected} if found.get(one) != expected.get(one))
        assert not different, (different, killer.told)
        shutil.rmtree(folder)
    print(f"{name}: {kills} kills, at most {killer.slowest:.2f} s until the command had ended")
