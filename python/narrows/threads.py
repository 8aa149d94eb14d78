"""Applies a function to many items on all processors, aborting at once on a signal."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")
#: Pending calls per thread.
_AHEAD = 16


def in_threads(function: Callable[[_Item], _Found], items: Iterable[_Item]) -> list[_Found]:
    """The results of a function that releases Python's lock, in the order of `items`.

    Few calls are pending at a time, so that after an exception, of a call or of a signal, only running calls
    must be awaited.
    """
    threads = os.cpu_count() or 1
    result: list[_Found] = []
    waiting: deque[Future[_Found]] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= threads * _AHEAD:
                result.append(waiting.popleft().result())
        result += [future.result() for future in waiting]
    finally:
        pool.shutdown(cancel_futures=True)
    return result


def stay_apart() -> None:
    """Moves this thread away from the last processor, on which packets are emulated."""
    with contextlib.suppress(AttributeError, OSError):
        usable = sorted(os.sched_getaffinity(0))
        if len(usable) > 1:
            os.sched_setaffinity(0, usable[:-1])
