"""The workers that simulate the cells of a sweep: threads of this process, processes of this machine, or
Dask.

All are `concurrent.futures` executors. A worker that dies loses only its current work: a pool of processes
submits the work again, and on Dask the scheduler gives it to another worker.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any

from narrows.errors import NarrowsError, UnavailableError, UsageError
from narrows.sweep.work import simulate

#: How often one batch of work may be submitted again.
MOST_TRIES = 4
LOCAL, DASK = "local:", "dask:"
_FORMS = (
    "local:N for N processes of this machine, or dask:ADDRESS of a scheduler, such as dask:tcp://host:8786"
)


def usable_processors() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass
class Engine:
    """An executor, and the number of batches that it has at a time."""

    name: str
    workers: int
    make: Callable[[], Executor]
    #: Exceptions of a worker that died.
    broken: tuple[type[BaseException], ...] = ()
    #: Threads of this process check here whether they must stop.
    stopping: threading.Event = field(default_factory=threading.Event)
    in_process: bool = False
    #: True if the executor drops pending work when it is shut down.
    cancels: bool = True
    #: Ends resources that outlive an executor.
    release: Callable[[], object] = lambda: None
    _executor: Executor | None = None

    def submit(
        self, texts: Sequence[str], files: dict[str, bytes], version: str, memory: int
    ) -> Future[list[str | None]]:
        """Submits a batch of work."""
        if self._executor is None:
            self._executor = self.make()
        more = (self.stopping.is_set,) if self.in_process else ()
        try:
            return self._executor.submit(simulate, list(texts), files, version, memory, *more)
        except self.broken:
            self.renew()
            assert self._executor is not None
            return self._executor.submit(simulate, list(texts), files, version, memory, *more)

    def renew(self) -> None:
        """Replaces an executor whose workers have died."""
        self.close()
        self._executor = self.make()

    def stop(self) -> None:
        """Ends the current work."""
        self.stopping.set()
        executor = self._executor
        processes = getattr(executor, "_processes", None) or {}
        for process in list(processes.values()):
            with contextlib.suppress(Exception):
                process.terminate()
        self.close()

    def close(self) -> None:
        """Shuts the workers down."""
        if self._executor is not None:
            # Dask's executor has no more options, and cancels pending work when the client is closed.
            more = {"cancel_futures": True} if self.cancels else {}
            self._executor.shutdown(wait=self.in_process, **more)
            self._executor = None

    def end(self) -> None:
        """Releases all resources."""
        self.close()
        self.release()


def engine(on: str | None) -> Engine:
    """The engine for `--on`; threads of this process by default."""
    if on is None:
        count = usable_processors()
        made = Engine("this process", count, lambda: ThreadPoolExecutor(count, "cells"))
        made.in_process = True
        return made
    if on.startswith(LOCAL):
        text = on.removeprefix(LOCAL)
        if not text.isdecimal() or not 1 <= int(text) <= 1024:
            raise UsageError(f"--on {on}: write a number of processes, such as local:8")
        return Engine(on, int(text), lambda: processes(int(text)), (BrokenProcessPool,))
    if on.startswith(DASK):
        return _dask(on.removeprefix(DASK))
    raise UsageError(f"--on {on}: this engine does not exist; write {_FORMS}")


def processes(count: int) -> Executor:
    """Processes of this machine, each with a separate interpreter."""
    import multiprocessing

    return ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), initializer=_follow_parent)


def _follow_parent() -> None:
    """Leaves signals of the terminal to the parent, and ends the worker with it: a worker holds both ends of
    its queue, so that it would otherwise wait forever after its parent was killed.
    """
    import multiprocessing
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _dask(address: str) -> Engine:
    try:
        import distributed
    except ImportError:
        raise UnavailableError(
            "--on dask: needs Dask, which is not installed; pip install 'narrows[dask]'"
        ) from None
    try:
        client = distributed.Client(address, timeout="10s", set_as_default=False)
        threads = sum(
            worker["nthreads"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()
        )
    except (OSError, TimeoutError, ValueError) as error:
        raise UnavailableError(f"--on dask:{address}: no scheduler answers there ({_short(error)})") from None

    def make() -> Executor:
        executor: Any = client.get_executor(pure=False, retries=MOST_TRIES)
        return executor  # type: ignore[no-any-return]

    return Engine(f"dask:{address}", max(1, threads), make, cancels=False, release=client.close)


def _short(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def failure(error: BaseException) -> NarrowsError:
    """The message for a worker that cannot work at all."""
    return NarrowsError(f"a worker failed: {_short(error)}")
