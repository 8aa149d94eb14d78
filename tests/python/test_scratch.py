"""Temporary files and folders: leftovers of killed processes are removed by the next one, and
nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaign_kit import simulate
from narrows import scratch
from narrows.campaign.json_files import write_atomically
from narrows.campaign.signals import Signalled, interruptible
from narrows.errors import Interrupted
from narrows.scratch import working_folder
from narrows.threads import in_threads
from processes import eventually

HOLD = """
import sys, time
from pathlib import Path
from narrows.scratch import new_file, working_folder
with working_folder("work", Path(sys.argv[1])) as folder:
    (folder / "x").write_text("x")
    handle, path = new_file(Path(sys.argv[1], "data.json"))
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that works in the folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    with process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def names(folder: Path) -> list[str]:
    return sorted(one.name.split(".")[1] for one in folder.iterdir())


def test_files_of_a_running_process_are_kept(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    assert holder.poll() is None
    with working_folder("work", tmp_path):
        write_atomically(tmp_path / "data.json", "{}")
        assert names(tmp_path) == ["data", "json", "work", "work"]


def test_leftovers_of_a_killed_process_are_removed_by_the_next(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    holder.kill()
    holder.wait()
    assert names(tmp_path) == ["data", "work"]
    with working_folder("work", tmp_path) as folder:
        assert [one for one in tmp_path.iterdir() if ".work." in one.name] == [folder]
    assert names(tmp_path) == ["data"]
    write_atomically(tmp_path / "data.json", "{}")
    assert [one.name for one in tmp_path.iterdir()] == ["data.json"]


def test_files_of_others_are_never_removed(tmp_path: Path) -> None:
    for name in (".data.json.tmp.orig", "data.json.x.tmp", ".other.x.tmp", ".data.jsonx"):
        (tmp_path / name).write_text("mine")
    write_atomically(tmp_path / "data.json", "{}")
    assert len(list(tmp_path.iterdir())) == 5


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").write_text("x")
    (tmp_path / ".work.1.tmp").symlink_to(tmp_path / "mine")
    scratch.remove_left(tmp_path)
    assert (tmp_path / "mine" / "x").exists()


def test_an_exception_removes_a_working_folder(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), working_folder("work", tmp_path):
        _ = 1 / 0
    assert not list(tmp_path.iterdir())


def test_results_of_threads_are_in_the_order_of_their_items() -> None:
    assert in_threads(lambda number: number * number, range(1000)) == [n * n for n in range(1000)]
    assert in_threads(lambda number: number, []) == []


def test_a_signal_ends_thousands_of_calls_that_wait() -> None:
    called: list[int] = []
    begun, gate = threading.Event(), threading.Event()

    def call(number: int) -> None:
        called.append(number)
        begun.set()
        gate.wait(30)

    def interrupt() -> None:
        begun.wait(30)
        os.kill(os.getpid(), signal.SIGTERM)
        gate.set()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(Interrupted), interruptible("interrupted"):
        in_threads(call, range(10_000))
    thread.join()
    assert len(called) < 1000


def test_an_exception_of_a_call_is_raised_before_later_calls_begin() -> None:
    called: list[int] = []

    def call(number: int) -> None:
        called.append(number)
        if number == 5:
            raise Signalled(15)

    with pytest.raises(Signalled):
        in_threads(call, range(10_000))
    assert len(called) < 1000


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_any_command_that_is_terminated_removes_what_it_has_begun(tmp_path: Path, number: int) -> None:
    script = """
import sys, time
from narrows.cli import main
from narrows.report import assemble
assemble._build = lambda *_: (print("ready", flush=True), time.sleep(600))
sys.argv = ["narrows", "report", sys.argv[1], "--no-pdf"]
main()
"""
    folder = simulate(tmp_path / "out")
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout and process.stdout.readline() == "ready\n"
        assert list(folder.glob(".report.*.tmp"))
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (128 + number, "narrows: interrupted\n")
    eventually("nothing is left", lambda: not list(folder.glob(".*")))
