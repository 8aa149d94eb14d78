"""A sweep on a real Dask scheduler with worker processes, one of which is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from narrows.errors import NarrowsError
from narrows.sweep.store import SweepFolder
from test_sweep import loaded, rows, run

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")

MANY = """\
  path.forward.0.rate: {loguniform: [1 Mbit/s, 10 Mbit/s]}
  path.forward.1.delay: {uniform: [5 ms, 50 ms], label: one way}
  design: random
  points: 40
"""


def _start(*words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers, each in a separate process."""
    where = tmp_path / "scheduler.json"
    scheduler = _start(
        "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
        "--scheduler-file", str(where),
    )  # fmt: skip
    until = time.monotonic() + 60
    while not where.exists():
        assert time.monotonic() < until
        time.sleep(0.1)
    workers = [
        _start(
            "dask_worker", "--scheduler-file", str(where), "--nthreads", "1", "--no-nanny", "--no-dashboard",
            "--local-directory", str(tmp_path / f"worker-{number}"),
        )
        for number in range(2)
    ]  # fmt: skip
    import distributed

    with distributed.Client(scheduler_file=str(where), set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        address = client.scheduler.address
    yield f"dask:{address}", workers
    for process in (*workers, scheduler):
        process.kill()
        process.wait()


@pytest.mark.filterwarnings("ignore")
def test_a_worker_is_killed_and_no_cell_is_lost_or_runs_twice(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    on, workers = cluster
    sweep = loaded(tmp_path, MANY, "100 s")
    command = [sys.executable, "-m", "narrows", "sweep", "run", "space.yaml", "-o", "out", "--on", on]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as process:
        until = time.monotonic() + 120
        while not list(tmp_path.glob("out/data/*/part-*.parquet")):
            assert process.poll() is None, "it has ended already"
            assert time.monotonic() < until
            time.sleep(0.05)
        os.kill(workers[0].pid, signal.SIGKILL)
        _, said = process.communicate(timeout=240)
        assert process.returncode == 0, said
    cells = [row["cell"] for row in rows(tmp_path / "out") if row["flow"] is None]
    assert len(cells) == len(set(cells)) == 160
    assert SweepFolder.read(tmp_path / "out").document.failed == []
    # Here a quarter of the points is simulated again.
    run(sweep, tmp_path / "here", share=(1, 4))
    here = rows(tmp_path / "here")
    again = {row["cell"] for row in here}
    assert len(again) == 40
    assert [row for row in rows(tmp_path / "out") if row["cell"] in again] == here


@pytest.mark.filterwarnings("ignore")
def test_a_worker_of_another_version_is_refused(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    sweep = loaded(tmp_path, MANY, "1 s")
    sweep.version = "9.9"
    with pytest.raises(NarrowsError, match=r"the sweep 9\.9; install that one there"):
        run(sweep, tmp_path / "out", cluster[0])
