"""Progress on standard error: bars for a person at a terminal, lines for a log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID


#: A smaller share of the work allows no estimate of the rest.
_LEAST_SHARE = 0.02


def show_time(seconds: float) -> str:
    """`48 s`, `3 min 20 s`, `2 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def bars(console: Console, live: bool) -> Progress:
    """Bars of tasks, each with its description and a field `note`; nothing unless `live`. If they do not fit,
    the bar is shortened and the description wrapped; numbers stay whole.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    return Progress(
        TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold")),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(table_column=Column(no_wrap=True)),
        console=console,
        transient=True,
        disable=not live,
    )


class Bar:
    """One bar, which shows one stage of the work after the other."""

    def __init__(self, progress: Progress, task: TaskID, after_s: float) -> None:
        self._progress = progress
        self._task = task
        self._visible_at = time.monotonic() + after_s
        self._stage = ""
        self._first: tuple[float, float] | None = None

    def show(self, stage: str, done: float, total: float | None, note: str = "") -> None:
        """Shows that `done` of `total` of a stage is complete; `total` is None if it is unknown."""
        if stage != self._stage:
            self._progress.reset(self._task, description=stage)
            self._stage = stage
        self._progress.update(self._task, total=total)
        self.update(done, note=note)

    def time_left(self, share: float) -> str:
        """`, at most 20 s left` once enough is done for an estimate; work may end early."""
        now = time.monotonic()
        if self._first is None:
            self._first = (now, share)
        began, already = self._first
        if share - already <= _LEAST_SHARE or share >= 1:
            return ""
        return f", at most {show_time((now - began) * (1 - share) / (share - already))} left"

    def update(self, done: float | None = None, total: float | None = None, note: str | None = None) -> None:
        """Updates the amount done, the total and the note; None leaves a value unchanged."""
        self._progress.update(self._task, completed=done, total=total)
        if note is not None:
            self._progress.update(self._task, note=note)
        self._reveal()

    def _reveal(self) -> None:
        if time.monotonic() >= self._visible_at:
            self._progress.start()

    def count(self, done: int, total: int, noun: str = "") -> None:
        """Shows `done` of `total`, in words too: `3 of 12 runs`."""
        self.update(done, total, f"{done} of {total} {noun}".rstrip())

    def advance(self) -> None:
        """Advances by one."""
        self._progress.advance(self._task)
        self._reveal()


class ProgressLines:
    """Lines on standard error where it is not a terminal: for a new stage, and for a stage that lasts. Short
    work prints none.
    """

    #: Least time before a line for a new stage, and before another one for the same stage.
    APART_S, LASTING_S = 10.0, 30.0

    def __init__(self, name: str, *, quiet: bool = False) -> None:
        from narrows.console import stderr_console

        self._name = name
        self._off = quiet or stderr_console().is_terminal
        self._stage = ""
        self._printed = time.monotonic()

    def show(self, stage: str, note: str) -> None:
        """Prints `name: stage, note` if it is time for a line."""
        from narrows.console import say

        now = time.monotonic()
        wait = self.LASTING_S if stage == self._stage else self.APART_S
        if self._off or now - self._printed < wait:
            return
        self._stage, self._printed = stage, now
        say(f"{self._name}: {stage}, {note}")


@contextmanager
def progress(
    description: str = "", total: float | None = None, *, quiet: bool = False, after_s: float = 0.0
) -> Iterator[Bar]:
    """A bar while the block runs, if standard error is a terminal and not `quiet`; with `after_s`, at its
    first change after so many seconds.
    """
    from narrows.console import stderr_console

    console = stderr_console()
    all_bars = bars(console, console.is_terminal and not quiet)
    bar = Bar(all_bars, all_bars.add_task(description, total=total, note=""), after_s)
    try:
        bar._reveal()
        yield bar
    finally:
        all_bars.stop()
