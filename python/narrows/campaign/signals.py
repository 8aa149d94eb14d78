"""Stop signals while no cells run: they end the current work with an exception, so that everything opened is
closed on the way out. (While cells run, `execute` handles signals.)
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator, Sequence
from types import FrameType

from narrows.errors import Interrupted

#: Ctrl-C, `kill`, and a closed terminal.
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signalled(BaseException):
    """A signal arrived. Not an `Exception`, so that error handlers do not catch it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def interruptible(sentence: str, numbers: Sequence[signal.Signals] = STOPS) -> Iterator[None]:
    """Turns signals into `Signalled` with a sentence inside the context."""
    try:
        with _raise_on(numbers):
            yield
    except Signalled as one:
        raise Interrupted(sentence, one.number) from None


@contextlib.contextmanager
def _raise_on(numbers: Sequence[signal.Signals]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in numbers}
    # The parent may want a signal ignored, as nohup does.
    heard = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in heard:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number, handler in heard.items():
            signal.signal(number, handler)


def _raise(number: int, _frame: FrameType | None) -> None:
    raise Signalled(number)
