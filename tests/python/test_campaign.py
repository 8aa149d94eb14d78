"""Campaigns with a fake agent: stored results, messages and exit codes after every kind of failure."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import forked_commands
import processes
from narrows.campaign import journal, store
from narrows.campaign.progress import ProgressView
from narrows.errors import NarrowsError
from processes import eventually

HERE = Path(__file__).resolve().parent

SCENARIO = """\
schema: narrows/scenario/1
question: Does it work?
where: emulate
path: {forward: [{rate: 12 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 20 ms}]}
schemes: ["linux:cubic", cubic, reno]
duration: 1 s
runs: 2
"""


class Lab:
    """A folder with a scenario, and the program to run there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.out = path / "out"
        #: Variables that differ from those of the other tests.
        self.variables: dict[str, str] = {}
        (path / "test.yaml").write_text(SCENARIO)

    def environment(self, agent: dict[str, Any]) -> dict[str, str]:
        # A wrapper that chooses among versions of Python would take more time than the agent.
        path = f"{Path(sys.executable).resolve().parent}{os.pathsep}{os.environ['PATH']}"
        return os.environ | {
            "NARROWS_AGENT": str(HERE / "fake_agent.py"),
            "FAKE_AGENT": json.dumps(agent),
            "FAKE_LAB": str(self.path),
            "NO_COLOR": "1",
            "PATH": path,
        }

    def start(self, *arguments: str, **agent: Any) -> subprocess.Popen[str]:
        """Starts the program as a process to be signalled or killed."""
        return subprocess.Popen(
            [sys.executable, str(HERE / "patched_cli.py"), *arguments],
            cwd=self.path,
            env=self.environment(agent),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def call(self, *arguments: str, **agent: Any) -> tuple[int, str, str]:
        environment = self.environment(agent) | self.variables
        done = forked_commands.run_in(environment, arguments, self.path, program="patched_cli")
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr

    def run(self, *arguments: str, **agent: Any) -> tuple[int, str, str]:
        return self.call("run", "test.yaml", "--no-report", "-o", "out", *arguments, **agent)

    def run_in_background(self, *arguments: str, **agent: Any) -> subprocess.Popen[str]:
        return self.start("run", "test.yaml", "--no-report", "-o", "out", *arguments, **agent)

    @property
    def campaign(self) -> dict[str, Any]:
        return store.read_document(self.out)

    def states(self) -> list[str]:
        return sorted(cell["state"] for cell in self.campaign["cells"])

    def hidden(self) -> list[str]:
        return [
            str(path)
            for path in self.path.rglob("*")
            if path.name.startswith(".") or path.name in ("half-written", journal.FILE)
        ]

    def wait_for_finished(self, number: int) -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with contextlib.suppress(NarrowsError):
                if self.states().count("finished") >= number:
                    return
            time.sleep(0.02)
        raise AssertionError("the campaign makes no progress")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    yield Lab(tmp_path)


def test_a_campaign_from_start_to_end(lab: Lab) -> None:
    code, stdout, stderr = lab.run()
    assert code == 0, stderr
    assert lab.states() == ["finished"] * 6
    assert "linux:cubic" in stdout and "  thr  " in stdout and "Mbit/s" in stdout
    results = json.loads((lab.out / "results.json").read_text())
    assert results["format"] == "narrows/results/2.1"
    assert [row["flow"] for row in results["rows"][:2]] == [1, None]
    assert results["summary"][0]["started"] == 2
    assert results["rows"][0]["absent"] == {"loss_ratio": "made up"}
    csv = (lab.out / "results.csv").read_text().splitlines()
    assert csv[0] == (
        "scenario,plane,scheme,row,run,seed,duration_ns,flow,flow_scheme,background,verdict,cell,throughput_bps,loss_ratio"
    )
    assert len(csv) == 1 + 12
    assert not lab.hidden()
    assert lab.campaign["sessions"][0]["outcome"] == "done"
    assert lab.campaign["host"]["kernel"] == "6.0.0-fake"


def test_results_are_the_same_bytes_and_hold_no_time(lab: Lab) -> None:
    assert lab.run()[0] == 0
    first = (lab.out / "results.json").read_bytes()
    lab.out.rename(lab.path / "before")
    assert lab.run()[0] == 0
    assert (lab.out / "results.json").read_bytes() == first


def test_each_round_has_an_order_of_its_own_that_follows_from_the_seed(lab: Lab) -> None:
    def order(*arguments: str) -> list[str]:
        code, stdout, _ = lab.call("run", "test.yaml", "--dry-run", "--json", *arguments)
        assert code == 0
        return [cell["id"] for cell in json.loads(stdout)["cells"]]

    first = order("--runs", "20")
    assert first == order("--runs", "20")
    assert first != order("--runs", "20", "--seed", "2")
    assert all(name.endswith("-r1") for name in first[:3])
    rounds = [
        tuple(name.rsplit("-r", 1)[0] for name in first[start : start + 3]) for start in range(0, 60, 3)
    ]
    assert len(set(rounds)) > 3
    assert not lab.out.exists()


def test_schemes_that_cannot_run_are_skipped_with_the_reason(lab: Lab) -> None:
    code, stdout, stderr = lab.run("--where", "simulate")
    assert code == 0
    assert "skipped linux:cubic: it is the kernel's code" in stderr
    assert "linux:cubic skipped" in stdout
    assert json.loads((lab.out / "results.json").read_text())["skipped"][0]["scheme"] == "linux:cubic"


def test_a_missing_kernel_scheme_is_skipped_with_its_reason(lab: Lab) -> None:
    code, _, stderr = lab.run("--schemes", "linux:vegas,reno")
    assert code == 0
    assert "this kernel (6.0.0-fake) does not offer vegas; it offers reno, cubic, bbr" in stderr
    lab.out.rename(lab.path / "before")
    code, _, stderr = lab.run("--schemes", "linux:vegas")
    assert code == 4
    assert "no scheme of this scenario can run here: linux:vegas: this kernel" in stderr
    assert not lab.out.exists()


def test_a_failed_cell_is_recorded_and_run_again(lab: Lab) -> None:
    code, stdout, stderr = lab.run(fail={"cubic-r1": 1})
    assert code == 6
    assert "cubic run 1: failed: injected failure 1" in stderr
    assert "1 of 2 runs failed" in stdout
    assert lab.states() == ["failed"] + ["finished"] * 5
    failed = next(cell for cell in lab.campaign["cells"] if cell["state"] == "failed")
    assert failed["error"] == {"kind": "internal", "message": "injected failure 1"}
    assert (lab.out / "logs" / "cubic-r1.log").read_text() == "the last line of the log\n"
    code, _, stderr = lab.run()
    assert code == 0
    assert "resuming out: 5 of 6 cells are finished" in stderr
    assert lab.states() == ["finished"] * 6


def test_failed_attempts_are_reported_although_the_cell_has_finished(lab: Lab) -> None:
    lab.run(fail={"cubic-r1": 1, "cubic-r2": 1})
    _, stdout, _ = lab.run(fail={"cubic-r2": "kill"})
    # The table shows the present failures; repeated attempts are reported separately.
    told = "2 attempts of cubic failed and were made again (runs 1, 2): injected failure 1 (2 times)."
    assert told in stdout, stdout
    lab.run()
    _, stdout, _ = lab.call("show", "out")
    told = "3 attempts of cubic failed and were made again (runs 1, 2): injected failure 1 (2 times); the"
    assert told in stdout, stdout
    assert "runs failed" not in stdout and lab.states() == ["finished"] * 6
    found = {one["cell"]: one for one in json.loads(lab.call("show", "out", "--json")[1])["failed_attempts"]}
    assert sorted(found) == ["cubic-r1", "cubic-r2"]
    assert [failure["kind"] for failure in found["cubic-r2"]["failures"]] == ["internal", "killed"]
    assert "failed_attempts" not in json.loads((lab.out / "results.json").read_text())


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("kill", "the agent was killed by SIGKILL"),
        ("mute", "the agent ended without leaving a record"),
        (3, "injected failure 3"),
    ],
)
def test_other_failures_of_one_cell(lab: Lab, how: object, words: str) -> None:
    code, _, stderr = lab.run(fail={"reno-r1": how})
    assert code == 6
    assert words in stderr
    assert lab.states() == ["failed"] + ["finished"] * 5
    assert not lab.hidden()


def test_an_invalid_cell_gives_exit_code_6_and_enters_no_statistic(lab: Lab) -> None:
    code, stdout, stderr = lab.run(fail={"reno-r1": "invalid", "cubic-r1": "degraded"})
    assert code == 6
    assert "made invalid" in stderr and "made degraded" in stderr
    summary = json.loads((lab.out / "results.json").read_text())["summary"]
    reno = next(line for line in summary if line["scheme"] == "reno" and line["flow"] is None)
    assert (reno["started"], reno["finished"], reno["valid"]) == (2, 2, 1)
    assert reno["metrics"]["throughput_bps"]["n"] == 1
    assert "1 of 2 runs are invalid" in stdout


def test_failures_that_concern_every_cell_end_the_campaign(lab: Lab) -> None:
    every = {f"{scheme}-r{run}": 4 for scheme in ("linux-cubic", "cubic", "reno") for run in (1, 2)}
    code, _, stderr = lab.run(fail=every)
    assert code == 4
    assert "narrows: injected failure 4" in stderr
    assert lab.states() == ["pending"] * 6
    assert lab.run()[0] == 0


def test_a_full_disk_ends_the_campaign_and_it_can_be_completed(lab: Lab) -> None:
    code, _, stderr = lab.run(fail={"reno-r2": "full"})
    assert code == 1
    assert "narrows: the disk of out is full; make room and run the same command again" in stderr
    assert not lab.hidden()
    assert not (lab.out / "results.json").exists()
    assert "finished" in lab.states()
    assert lab.run()[0] == 0
    assert lab.states() == ["finished"] * 6


def test_no_permission_for_namespaces(lab: Lab) -> None:
    facts = {"namespaces": {"ok": False, "how": None, "why": "user namespaces are disabled"}}
    code, _, stderr = lab.run(facts=facts)
    assert code == 4
    assert (
        "network namespaces can't be made here: user namespaces are disabled; run as root, or simulate"
        in stderr
    )
    assert not lab.out.exists()
    assert lab.run("--where", "simulate", facts=facts)[0] == 0


def test_folders_that_belong_to_something_else(lab: Lab) -> None:
    assert lab.run()[0] == 0
    code, _, stderr = lab.run("--seed", "2")
    assert code == 2
    assert "out holds another campaign (test, " in stderr and "choose another folder with -o" in stderr
    (lab.path / "other").mkdir()
    (lab.path / "other" / "thesis.txt").write_text("x")
    code, _, stderr = lab.call("run", "test.yaml", "-o", "other")
    assert code == 2
    assert "other is not empty and holds no campaign" in stderr
    code, _, stderr = lab.call("run", "test.yaml", "-o", "test.yaml/x")
    assert code == 1
    assert "can't be created: not a directory" in stderr


def test_a_finished_campaign_runs_nothing_again(lab: Lab) -> None:
    assert lab.run()[0] == 0
    before = (lab.out / "cells" / "reno-r1" / "run.json").stat().st_mtime_ns
    code, stdout, stderr = lab.run()
    assert code == 0
    assert "nothing is left to run" in stderr and "  thr  " in stdout
    assert (lab.out / "cells" / "reno-r1" / "run.json").stat().st_mtime_ns == before


def test_resume_finds_the_newest_campaign(lab: Lab) -> None:
    code, _, stderr = lab.call("run", "test.yaml", "--no-report", "--resume")
    assert code == 3
    assert "there is no campaign of this scenario in results/ to resume" in stderr
    assert lab.call("run", "test.yaml", "--no-report", fail={"reno-r1": 1})[0] == 6
    assert lab.call("run", "test.yaml", "--no-report", "--resume")[0] == 0
    assert len(list((lab.path / "results").iterdir())) == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_same_command_completes_a_campaign(lab: Lab, number: signal.Signals, code: int) -> None:
    process = lab.run_in_background(sleep=0.3)
    lab.wait_for_finished(2)
    process.send_signal(number)
    _, stderr = processes.finish(process, 30)
    assert process.returncode == code
    assert "cells are finished and kept in out; run the same command with -o out to complete it" in stderr
    assert "Traceback" not in stderr
    assert not lab.hidden()
    finished = lab.states().count("finished")
    assert 2 <= finished < 6
    assert lab.run()[0] == 0
    attempts = [cell["attempts"] for cell in lab.campaign["cells"]]
    assert sum(attempts) <= 7


def signalled_while_connecting(lab: Lab, number: signal.Signals, *words: str) -> tuple[int, str]:
    """The end of a command that waits for a silent ssh, which ends with its input."""
    mute = lab.path / "mute"
    mute.write_text("#!/bin/sh\necho >>called\nexec cat >/dev/null\n")
    mute.chmod(0o755)
    process = lab.start(*words, "--ssh", str(mute))
    eventually("ssh was started", (lab.path / "called").exists)
    time.sleep(0.2)
    process.send_signal(number)
    _, stderr = processes.finish(process, 30)
    return process.returncode, stderr


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_before_anything_was_run(lab: Lab, number: signal.Signals, more: tuple[str, ...]) -> None:
    hosts = ("--where", "hosts", "--host", "me@nowhere")
    found = signalled_while_connecting(lab, number, "run", "test.yaml", "-o", "out", *hosts, *more)
    assert found == (128 + number, "me@nowhere: connecting\nnarrows: interrupted; nothing was run\n")
    assert not lab.out.exists()


def test_other_commands_tell_that_they_were_interrupted(lab: Lab) -> None:
    code, stderr = signalled_while_connecting(lab, signal.SIGINT, "hosts", "check", "me@nowhere")
    assert code == 130 and stderr.endswith("narrows: interrupted\n")


def test_killed_at_any_moment_and_completed(lab: Lab) -> None:
    for moment in (0.05, 0.25, 0.4, 0.6, 0.75):
        process = lab.run_in_background(sleep=0.1)
        time.sleep(moment)
        process.kill()
        processes.finish(process, 30)
        _wait_until_no_agent(lab)
    assert lab.run()[0] == 0
    assert lab.states() == ["finished"] * 6
    assert not lab.hidden()


@pytest.mark.parametrize("left", [["cells/"], ["cells/", "files/", "files/a.trace", ".campaign.json.x1.tmp"]])
def test_killed_before_the_campaign_was_written(lab: Lab, left: list[str]) -> None:
    for name in left:
        path = lab.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if name.endswith("/") else path.write_text("{")
    assert lab.run()[0] == 0
    assert lab.states() == ["finished"] * 6
    assert not lab.hidden()


@pytest.mark.parametrize("left", ["notes.txt", "files/a.trace", "cells/reno-r1/run.json"])
def test_a_folder_of_another_user_is_left_alone(lab: Lab, left: str) -> None:
    (lab.out / left).parent.mkdir(parents=True)
    (lab.out / left).write_text("mine")
    code, _, stderr = lab.run()
    assert code == 2
    assert "is not empty and holds no campaign" in stderr
    assert [path for path in lab.out.rglob("*") if path.is_file()] == [lab.out / left]


def _wait_until_no_agent(lab: Lab) -> None:
    """The agents notice the death of their parent by themselves."""
    # All its child processes have the same environment; other tests run agents too.
    mine = f"FAKE_LAB={lab.path}\0".encode()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        environments = []
        for entry in Path("/proc").glob("[0-9]*/environ"):
            try:
                environments.append(entry.read_bytes())
            except OSError:
                continue
        if not any(mine in environment for environment in environments):
            return
        time.sleep(0.05)
    raise AssertionError("an agent has outlived its parent")


def test_two_at_once_are_refused(lab: Lab) -> None:
    # Long enough for the second one to start, even on a busy machine, before the first one has run five more
    # cells.
    process = lab.run_in_background(sleep=1.5)
    lab.wait_for_finished(1)
    code, _, stderr = lab.run()
    process.terminate()
    processes.finish(process, 30)
    assert code == 1
    assert "another narrows is working on this campaign" in stderr


def test_damaged_folders(lab: Lab) -> None:
    assert lab.run()[0] == 0
    campaign = (lab.out / "campaign.json").read_text()
    (lab.out / "campaign.json").write_text(campaign[:100])
    for command in (["show", "out"], ["run", "test.yaml", "-o", "out"], ["check", "out"]):
        code, _, stderr = lab.call(*command)
        assert code == 3
        assert "campaign.json: is damaged" in stderr
    (lab.out / "campaign.json").write_text(campaign.replace("narrows/campaign/1", "narrows/campaign/9"))
    code, _, stderr = lab.call("show", "out")
    assert code == 3
    assert "is in the format narrows/campaign/9, this version of narrows reads narrows/campaign/1" in stderr
    (lab.out / "campaign.json").write_text(campaign)
    (lab.out / "cells" / "reno-r1" / "run.json").write_text("{")
    code, _, stderr = lab.run()
    assert code == 3
    assert "run.json: is damaged" in stderr
    assert lab.call("show", "nowhere")[0] == 3


def test_json_is_one_document_and_nothing_else(lab: Lab) -> None:
    code, stdout, stderr = lab.run("--json")
    assert code == 0
    assert json.loads(stdout)["format"] == "narrows/results/2"
    assert stderr == ""
    assert json.loads(lab.call("show", "out", "--json")[1])["hash"] == lab.campaign["hash"]


def test_messages_about_folders_and_addresses_stand_as_they_are(lab: Lab) -> None:
    folder = "x[red]y/o[/]1 :x:"
    code, _, stderr = lab.call("run", "test.yaml", "--no-report", "-o", folder, fail={"reno-r1": "invalid"})
    assert code == 6
    assert f"test: 6 cells (emulate, about 18 s) into {folder}" in stderr
    assert f"narrows show {folder} tells why" in stderr
    told = "tunnel to six: six listens at [fd77:2::1]:443"
    console = Console(file=io.StringIO(), width=200)
    ProgressView(console, 0, 1, 1, None).message(told)
    assert isinstance(console.file, io.StringIO) and console.file.getvalue() == f"{told}\n"


def test_show_puts_campaigns_side_by_side(lab: Lab) -> None:
    assert lab.run()[0] == 0
    assert lab.call("run", "test.yaml", "--no-report", "-o", "sim", "--where", "simulate")[0] == 0
    code, stdout, _ = lab.call("show", "out", "sim")
    assert code == 0
    assert "emulate" in stdout and "simulate" in stdout
    assert "linux:cubic (simulate) skipped: it is the kernel's code" in stdout


def test_schemes_that_were_not_requested_do_not_count_as_skipped(lab: Lab) -> None:
    assert lab.run("--schemes", "cubic")[0] == 0
    assert lab.call("run", "test.yaml", "--no-report", "-o", "more", "--schemes", "cubic,reno")[0] == 0
    code, stdout, _ = lab.call("show", "out", "more")
    assert code == 0
    row = next(line for line in stdout.splitlines() if line.startswith("reno "))
    assert row.split()[:3] == ["reno", "out", "-"], stdout
    assert "skipped" not in stdout
    assert "reno (out) is not part of it" in stdout


@pytest.mark.parametrize(
    ("environment", "agent", "words"),
    [
        ({"NARROWS_AGENT": "/nowhere"}, {}, "$NARROWS_AGENT names /nowhere, which is not a program"),
        ({}, {"protocol": 9}, "speaks protocol 9, this package 1; build both from the same source"),
    ],
)
def test_an_agent_that_is_missing_or_foreign(
    lab: Lab, environment: dict[str, str], agent: dict[str, Any], words: str
) -> None:
    lab.variables = environment
    code, _, stderr = lab.run(**agent)
    assert code == 4
    assert words in stderr
    assert not lab.out.exists()
