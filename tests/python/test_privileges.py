"""The processes of an emulated run have only the rights that they need; a full disk of root is reported."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

PROGRAM = str(Path(sys.executable).parent / "narrows")
NOBODY = 65534
CAP_NET_ADMIN = 1 << 12
#: For a process whose system calls are filtered (proc_pid_status(5)).
FILTERED = "2"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")


def status(folder: Path) -> dict[str, str]:
    """The kernel's status of a process or thread; empty if it has ended."""
    with contextlib.suppress(OSError):
        lines = (folder / "status").read_text().splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return {}


def agents_of(parent: int) -> list[Path]:
    """Descendants of a process that run the agent's program, by their folders in /proc."""
    found, names = [], [str(parent)]
    while names:
        name = names.pop()
        for task in Path(f"/proc/{name}/task").glob("*"):
            with contextlib.suppress(OSError):
                names += (task / "children").read_text().split()
        with contextlib.suppress(OSError):
            if "narrows-agent" in str(Path(f"/proc/{name}/exe").readlink()):
                found.append(Path("/proc") / name)
    return found


@needs_root
@pytest.mark.parametrize("scheme", ["cubic", "linux:cubic"])
def test_endpoints_and_the_emulator_give_up_what_they_do_not_need(tmp_path: Path, scheme: str) -> None:
    words = ["run", "one-flow", "--where", "emulate", "--schemes", scheme, "--time", "6 s", "--runs", "1"]
    endpoints: dict[Path, dict[str, str]] = {}
    emulators: list[tuple[int, str]] = []
    with subprocess.Popen([PROGRAM, *words, "-o", tmp_path / "out", "--no-report"]) as run:
        # Waits for the run instead of a fixed time.
        while run.poll() is None:
            for process in agents_of(run.pid):
                told = status(process)
                if told.get("Uid", "").split()[:1] == [str(NOBODY)]:
                    endpoints[process] = told
                for thread in process.glob("task/*"):
                    inner = status(thread)
                    if inner.get("Name") == "emulator":
                        emulators.append((int(inner["CapEff"], 16), inner["Seccomp"]))
            time.sleep(0.02)
    assert run.returncode in (0, 6), "its measurements do not matter here, on a machine that may be busy"
    assert len(endpoints) == 2, "the sender and the receiver"
    allowed = CAP_NET_ADMIN if scheme.startswith("linux:") else 0
    for told in endpoints.values():
        assert told["Uid"].split() == [str(NOBODY)] * 4 and told["Gid"].split() == [str(NOBODY)] * 4
        assert int(told["CapPrm"], 16) & ~allowed == 0 and told["NoNewPrivs"] == "1"
        assert told["Seccomp"] == FILTERED
    assert (0, FILTERED) in emulators, "the thread that meets frames of any content"


@needs_root
def test_a_full_disk_while_reporting_is_a_failure_of_the_machine(tmp_path: Path) -> None:
    words = ["run", "one-flow", "--where", "simulate", "--time", "1 s", "--runs", "1", "--no-report"]
    subprocess.run([PROGRAM, *words, "-o", tmp_path / "out"], check=True, capture_output=True)
    (tmp_path / "small").mkdir()
    # A file system in memory with room for the campaign but not for a report, in a private mount namespace.
    script = """
        size=$(du -sk out | cut -f 1)
        mount -t tmpfs -o size=$((size + 150))k tmpfs small && cp -R out small/out
        "$0" report small/out; code=$?
        ls -A small/out >left
        exit $code
    """
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", script, PROGRAM],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done
    assert "no space left on device" in done.stderr and len(done.stderr.strip().splitlines()) == 1
    left = (tmp_path / "left").read_text().split()
    assert not [name for name in left if "report" in name or name.startswith(".")], "nothing half-written"
