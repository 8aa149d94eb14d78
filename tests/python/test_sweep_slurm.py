"""A sweep as a job array of a real SLURM: slurmctld and slurmd of this machine, in private folders.

Needs root and Debian's packages slurmctld, slurmd, slurm-client and munge: `make slurm`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from test_sweep import SWEEP, loaded, rows, run, written

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "munged")
pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(
        any(shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None for name in PROGRAMS),
        reason="slurm is not installed: apt-get install slurmctld slurmd slurm-client munge",
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="slurmd starts jobs as root only"),
]
_CONFIG = """\
ClusterName=narrows-test
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
ReturnToService=2
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def _ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return found


def _wait(what: str, is_there: object, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not is_there():  # type: ignore[operator]
        assert time.monotonic() < until, f"waited in vain for {what}"
        time.sleep(0.3)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A private cluster on this machine; the environment for its commands."""
    folder = tmp_path / "slurm"
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    host = socket.gethostname().partition(".")[0]
    cpus = str(len(os.sched_getaffinity(0)))
    config = folder / "slurm.conf"
    config.write_text(_CONFIG.format(host=host, folder=folder, ports=_ports(2), cpus=cpus))
    environment = {**os.environ, "SLURM_CONF": str(config), "PATH": _PATH}
    log = (folder / "output.log").open("wb")
    begun: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> None:
        begun.append(subprocess.Popen(words, env=environment, stdout=log, stderr=log))

    try:
        start(
            "/usr/sbin/munged", "--foreground", "--force", f"--key-file={key}",
            f"--socket={folder}/munge.socket",
            f"--pid-file={folder}/munge.pid", f"--log-file={folder}/munge.log",
            f"--seed-file={folder}/munge.seed",
        )  # fmt: skip
        _wait("munged", (folder / "munge.socket").exists)
        start("/usr/sbin/slurmctld", "-D", "-f", str(config))
        start("/usr/sbin/slurmd", "-D", "-f", str(config), "-N", host)

        def is_idle() -> bool:
            words = ["scontrol", "show", "node", "-o"]
            shown = subprocess.run(words, env=environment, capture_output=True, text=True)
            return "State=IDLE" in shown.stdout

        _wait("an idle node", is_idle)
        yield environment
    finally:
        for process in reversed(begun):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        log.close()


def test_a_job_array_yields_the_results_of_one_machine(tmp_path: Path, cluster: dict[str, str]) -> None:
    sweep = loaded(tmp_path, SWEEP, "4 s")
    file = written(tmp_path, SWEEP, "4 s")
    words = [sys.executable, "-m", "narrows", "sweep", "export", str(file), "--slurm", "--tasks", "4"]
    subprocess.run([*words, "-o", str(tmp_path / "jobs")], check=True, capture_output=True)
    script = tmp_path / "jobs" / "sweep.sbatch"

    def submit(*more: str) -> None:
        subprocess.run(["sbatch", *more, str(script)], env=cluster, check=True, cwd=tmp_path)

        def is_over() -> bool:
            queue = subprocess.run(["squeue", "-h"], env=cluster, capture_output=True, text=True, check=True)
            return not queue.stdout.strip()

        _wait("the end of the jobs", is_over, 200)

    submit()
    tasks = sorted((tmp_path / "jobs").glob("task-?"))
    logs = [log.read_text() for log in sorted((tmp_path / "jobs").glob("*.log"))]
    assert len(tasks) == 4, logs
    # A task that has lost its results is run again, and no other.
    lost = next(tasks[2].glob("data/*/*.parquet"))
    lost.unlink()
    submit("--array=3")
    merged = [
        sys.executable,
        "-m",
        "narrows",
        "merge",
        *map(str, tasks),
        "-o",
        str(tmp_path / "jobs" / "merged"),
    ]
    subprocess.run(merged, check=True, capture_output=True)
    run(sweep, tmp_path / "here")
    assert rows(tmp_path / "jobs" / "merged") == rows(tmp_path / "here")
