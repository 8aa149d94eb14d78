"""Progress bars on standard error, for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID


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
    """One bar."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def update(self, done: float | None = None, total: float | None = None, note: str | None = None) -> None:
        """Updates the amount done, the total and the note; None leaves a value unchanged."""
        self._progress.update(self._task, completed=done, total=total)
        if note is not None:
            self._progress.update(self._task, note=note)

    def count(self, done: int, total: int, noun: str = "") -> None:
        """Shows `done` of `total`, in words too: `3 of 12 runs`."""
        self.update(done, total, f"{done} of {total} {noun}".rstrip())

    def advance(self) -> None:
        """Advances by one."""
        self._progress.advance(self._task)


@contextmanager
def progress(description: str, total: float | None = None, *, quiet: bool = False) -> Iterator[Bar]:
    """A bar while the block runs, if standard error is a terminal and not `quiet`."""
    from narrows.console import stderr_console

    console = stderr_console()
    with bars(console, console.is_terminal and not quiet) as all_bars:
        yield Bar(all_bars, all_bars.add_task(description, total=total, note=""))
