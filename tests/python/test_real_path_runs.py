"""Whole campaigns between two hosts: an sshd in another namespace, and what is between us on the way.

One campaign goes over an emulated path behind an address translator, so that only the other host can be
reached; in the other one only we can.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hosts_kit as kit
import processes
import shell_kit
from hosts_kit import NAME, Hosts
from narrows.campaign.agent import find_agent
from processes import eventually

pytestmark = pytest.mark.alone

SCENARIO = """\
schema: narrows/scenario/1
question: Does it work between two hosts?
where: hosts
real_path: {{other: {name}, sender: {sender}, ports: 5001-5002, retries: 2}}
{flows}
duration: 1200 ms
report: {{pdf: false}}
"""
#: Each scheme against itself, and all of them against each other.
ALONE = "schemes: ['linux:cubic', copa]\nflows: {count: 3, interval: 200 ms}"
TOGETHER = """\
flows:
  - {scheme: 'linux:bbr'}
  - {scheme: sprout, start: 200 ms}
  - {scheme: copa, direction: backward}
runs: 2"""
#: Every cell is finished; on a machine with too much else to do some may be invalid, and say so.
DONE = (0, 6)
#: Why they may be invalid.
STARVED = {"endpoint_starved", "socket_drops", "lost_here"}
#: What the path of the first campaign does.
RATE_BPS, DELAY_MS = 12_000_000, 10
SHELL = ("--rate", "12 Mbit/s", "--delay", f"{DELAY_MS} ms", "--queue", "droptail 60 kB", "--quiet", "--")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    if shell_kit.refusal():
        pytest.skip(shell_kit.refusal())
    with kit.hosts(tmp_path_factory.mktemp("real-paths")) as made:
        yield made


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache-of-hosts"))


class Lab:
    """A folder with a scenario."""

    def __init__(
        self, pair: Hosts, folder: Path, sender: str, flows: str, before: tuple[str, ...] = ()
    ) -> None:
        self.pair = pair
        self.folder = folder
        self.before = before
        self.out = folder / "out"
        (folder / "x.yaml").write_text(SCENARIO.format(name=NAME, sender=sender, flows=flows))

    def words(self, *more: str) -> list[str]:
        arguments = (str(self.folder / "x.yaml"), "-o", str(self.out), *more)
        return self.pair.words(*arguments, command="run", before=self.before)

    def run(self, *more: str) -> subprocess.CompletedProcess[str]:
        done = processes.run(self.words(*more), env=self.pair.environment(), cwd=self.folder, seconds=240)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def start(self, *more: str, **options: Any) -> subprocess.Popen[str]:
        """The campaign as a process that somebody will disturb; `options` are those of Popen."""
        return subprocess.Popen(
            self.words(*more),
            env=self.pair.environment(),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            text=True,
            **options,
        )

    @property
    def campaign(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.out / "campaign.json").read_text())
        return document

    def states(self) -> list[str]:
        with contextlib.suppress(OSError, ValueError):
            return sorted(cell["state"] for cell in self.campaign["cells"])
        return []

    def run_json(self, cell: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.out / "cells" / cell / "run.json").read_text())
        return document

    def leftovers(self) -> list[str]:
        """Folders of runs there, and processes of agents anywhere."""
        runs = self.pair.remote_folder / "runs"
        folders = [str(path) for path in runs.glob("*")] if runs.exists() else []
        return folders + [" ".join(words) for _, words in running(self) if "sshd" not in words[0]]

    def nothing_is_left(self) -> None:
        """Waits for what ends by itself: an ssh whose path was cut notices it after 15 s (three probes)."""
        left: list[str] = []

        def none() -> bool:
            left[:] = self.leftovers()
            return not left

        with contextlib.suppress(AssertionError):
            eventually("nothing is left", none, seconds=60)
        assert left == []


def program(*words: str) -> subprocess.CompletedProcess[str]:
    done = processes.run([sys.executable, "-m", "narrows", *words], seconds=120)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_a_campaign_over_an_emulated_path(pair: Hosts, tmp_path: Path) -> None:
    """The other host sends to us, who are behind an address translator; the campaign is killed in between."""
    shell = (sys.executable, "-m", "narrows", "shell", *SHELL)
    lab = Lab(pair, tmp_path, "there", ALONE, before=shell)
    nowhere = subprocess.DEVNULL
    started = lab.start("--no-report", stdout=nowhere, stderr=nowhere, start_new_session=True)
    with processes.running(started):
        eventually("a cell is finished", lambda: "finished" in lab.states(), seconds=100)
        # The shell, and everything in it.
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()
    # Folders of a killed campaign stay there until it is resumed; no process does.
    eventually("nothing runs any more", lambda: not agents(lab, "side"))
    finished = lab.states().count("finished")
    assert finished == 1

    done = lab.run()
    assert done.returncode in DONE, (done.stdout, done.stderr)
    assert f"resuming {lab.out}: 1 of 2 cells are finished" in done.stderr
    assert f"{NAME} listens at {kit.THERE}:5001" in done.stderr
    document = lab.campaign
    assert lab.states() == ["finished"] * 2
    lab.nothing_is_left()
    # Both machines were looked at before and after each round of this session at least.
    noted = [(one["round"], one["when"]) for one in document["rounds"][-2:]]
    assert noted == [(1, "before"), (1, "after")]
    last = document["rounds"][-1]
    assert last["here"]["kernel"] == last["there"]["kernel"] and last["there"]["sysctls"]
    assert document["sessions"][-1]["hosts"]["way"]["their_address"] == kit.THERE

    check_cells(lab)
    assert (lab.out / "report.html").stat().st_size > 0
    checked = program("check", str(lab.out), "--json")
    assert checked.returncode == 0, (checked.stdout, checked.stderr)
    assert json.loads(checked.stdout)["ok"]


def check_cells(lab: Lab) -> None:
    """What is known about the path, from the records of cells that went over it."""
    rows = json.loads((lab.out / "results.json").read_text())["rows"]
    for cell in lab.campaign["cells"]:
        run = lab.run_json(cell["id"])
        assert run["plane"] == "hosts"
        codes = {reason["code"] for reason in run["reasons"] if reason["severity"] == "invalid"}
        assert codes <= STARVED, run["reasons"]
        own = {row["flow"]: row["metrics"] for row in rows if row["cell"] == cell["id"]}
        assert list(own) == [1, 2, 3, "all"]
        for flow in (1, 2, 3):
            # No packet is faster than the path, and the clocks say so within their own bound.
            assert own[flow]["delay_p50_ns"] >= DELAY_MS * 1e6 - run["clock"]["error_ns"], own[flow]
            assert own[flow]["goodput_bps"] > 0
        # The bottleneck carries the headers of the tunnel as well, so packets inside have less than it.
        assert 0.2 * RATE_BPS < own["all"]["throughput_bps"] < RATE_BPS, own["all"]


def test_a_campaign_where_only_we_can_be_reached(pair: Hosts, tmp_path: Path) -> None:
    """Different schemes in both directions at once; ssh breaks in between, and nothing is left anywhere."""
    lab = Lab(pair, tmp_path, "here", TOGETHER)
    with pair.blocked(*(pair.to_there(port) for port in (5001, 5002))), slow(pair):
        plan = lab.run("--dry-run")
        assert plan.returncode == 0, plan.stderr
        assert f"this machine listens at {kit.HERE}:5001" in plan.stdout
        assert "the real path from here to there" in plan.stdout
        started = lab.start("--json", "--no-report", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with processes.running(started):
            eventually("a cell runs", lambda: len(agents(lab, "side")) == 2, seconds=60)
            (master,) = masters(lab)
            os.kill(master, signal.SIGKILL)
            said, complaints = processes.finish(started, seconds=120)
    assert started.returncode in DONE, (said, complaints)
    results = json.loads(said)
    assert {row["flow"] for row in results["rows"]} == {1, 2, 3, "all"}
    assert all(row["metrics"]["goodput_bps"] > 0 for row in results["rows"])
    failures = [one for cell in lab.campaign["cells"] for one in cell.get("failures", [])]
    assert [one["kind"] for one in failures] == ["vanished"], failures
    assert f"{NAME} has vanished" in failures[0]["message"]
    # What was left there when ssh broke is removed at the end, as everything else is.
    lab.nothing_is_left()


def running(lab: Lab) -> Iterator[tuple[int, list[str]]]:
    """Processes that belong to these tests, with their words."""
    marks = (str(lab.folder), str(lab.pair.folder), str(find_agent()))
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if any(mark in word for mark in marks for word in words):
                yield int(process.name), words


def agents(lab: Lab, command: str) -> list[int]:
    """Agents here and there that do something."""
    return [pid for pid, words in running(lab) if words[0].endswith("/narrows-agent") and command in words]


def masters(lab: Lab) -> list[int]:
    """The processes that hold connections."""
    return [pid for pid, words in running(lab) if "ControlMaster=yes" in words and words[0].endswith("ssh")]


@contextlib.contextmanager
def slow(pair: Hosts) -> Iterator[None]:
    """20 Mbit/s in both directions, by the kernel's own shaper: processors shall not be the bottleneck."""
    for device in ("near", "far"):
        pair.router.do(f"tc qdisc add dev {device} root tbf rate 20mbit burst 10k limit 100k")
    try:
        yield
    finally:
        for device in ("near", "far"):
            pair.router.do(f"tc qdisc del dev {device} root")


# -- at random -------------------------------------------------------------------------------------

#: How many campaigns are disturbed at random; each takes half a minute, so that this is asked for by hand:
#: NARROWS_CHAOS=30 pytest -k disturbed. (Two kinds of disturbance are in the tests above.)
CHAOS = int(os.environ.get("NARROWS_CHAOS", "0"))
SHORT = "schemes: [copa, 'linux:cubic']\nflows: {count: 2, interval: 100 ms}\nruns: 2"


@pytest.mark.parametrize("number", range(CHAOS))
def test_disturbed_campaigns_leave_nothing_and_can_be_completed(
    pair: Hosts, tmp_path: Path, number: int
) -> None:
    chance = random.Random(number)
    lab = Lab(pair, tmp_path, chance.choice(("here", "there")), SHORT)
    before = devices(pair)
    victim = chance.choice(("ssh", "agent there", "agent here", "path", "campaign"))
    with slow(pair):
        started = lab.start("--no-report", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with processes.running(started):
            time.sleep(chance.uniform(0.5, 12))
            disturb(lab, victim, started, chance)
            _, complaints = processes.finish(started, seconds=200)
        assert "Traceback" not in complaints, complaints
        eventually(f"no agent is left ({victim})", lambda: not agents(lab, "side"), seconds=60)
        finished = {path.parent.name: path.read_bytes() for path in lab.out.glob("cells/*/run.json")}
        done = lab.run("--no-report")
    assert done.returncode in DONE, (victim, complaints, done.stdout, done.stderr)
    assert lab.states() == ["finished"] * 4
    for name, content in finished.items():
        assert (lab.out / "cells" / name / "run.json").read_bytes() == content, victim
    lab.nothing_is_left()
    assert devices(pair) == before, victim


def disturb(lab: Lab, victim: str, campaign: subprocess.Popen[str], chance: random.Random) -> None:
    """Kills something that runs, if it does, or cuts the path for a while."""
    if victim == "path":
        with lab.pair.blocked("iif near", "iif far"):
            time.sleep(chance.uniform(1, 30))
        return
    there = str(lab.pair.remote_folder)
    found = {
        "ssh": masters(lab),
        "campaign": [campaign.pid],
        "agent there": [pid for pid, words in running(lab) if words[0].startswith(there)],
        "agent here": [pid for pid, words in running(lab) if words[0] == str(find_agent())],
    }[victim]
    for pid in found[:1]:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def devices(pair: Hosts) -> list[str]:
    """The network devices of both machines. (A namespace without a name is gone with its processes.)"""
    command = ["ip", "-brief", "link"]
    return [processes.run([*end.enter, *command]).stdout for end in (pair.here, pair.there)]
