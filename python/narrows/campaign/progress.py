"""Shows the progress of a campaign on standard error: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import TaskID
from rich.text import Text

from narrows.campaign.events import Tell, ignore_event
from narrows.documents.campaign import CellEntry
from narrows.documents.data import to_data
from narrows.progress import bars, show_time
from narrows.scenario.model import Cell

_VERDICT_STYLE = {"ok": "green", "degraded": "yellow", "invalid": "red"}


class TimeLeft:
    """Estimates the remaining time from the cells that have ended."""

    def __init__(self, cells: int, workers: int, guess: float | None) -> None:
        self.left = cells
        self.workers = workers
        self.guess = guess
        self.seconds = 0.0
        self.ended_cells = 0
        self.shares: dict[str, float] = {}

    def note_end(self, cell_id: str, seconds: float) -> None:
        """Records the duration of a cell."""
        self.seconds += seconds
        self.ended_cells += 1
        self.shares.pop(cell_id, None)
        self.left -= 1

    def estimate(self) -> float | None:
        """The seconds until all cells are done; None if nothing is known."""
        each = self.seconds / self.ended_cells if self.ended_cells else self.guess
        if each is None:
            return None
        return max(0.0, each * (self.left - sum(self.shares.values())) / self.workers)


def _name(cell: Cell) -> dict[str, object]:
    return {"cell": cell.id, "scheme": cell.scheme, "run": cell.run}


class ProgressView:
    """Informs the user when cells start, progress and end."""

    def __init__(
        self,
        console: Console,
        done: int,
        cells: int,
        workers: int,
        guess: float | None,
        quiet: bool = False,
        tell: Tell = ignore_event,
    ) -> None:
        self.console = console
        self.tell = tell
        self.done = done
        self.total = done + cells
        self.time_left = TimeLeft(cells, workers, guess)
        self.quiet = quiet
        self.live = console.is_terminal and not quiet
        self.started = time.monotonic()
        self.progress = bars(console, self.live)
        self.all_task: TaskID | None = None
        self.tasks: dict[str, TaskID] = {}

    def __enter__(self) -> ProgressView:
        self.progress.start()
        if self.total > 1:
            self.all_task = self.progress.add_task(
                "all cells", total=self.total, completed=self.done, note=""
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def cell_started(self, cell: Cell) -> None:
        """A cell begins."""
        self.tell("start", **_name(cell))
        self.tasks[cell.id] = self.progress.add_task(f"{cell.scheme} run {cell.run}", total=1.0, note="")
        self._note()

    def cell_progress(self, cell: Cell, share: float) -> None:
        """A cell has reached this share."""
        self.tell("progress", **_name(cell), share=round(share, 3))
        self.time_left.shares[cell.id] = share
        if cell.id in self.tasks:
            self.progress.update(self.tasks[cell.id], completed=share)
        self._note()

    def cell_again(self, cell: Cell, why: str) -> None:
        """A cell has failed and will be tried again."""
        self.tell("retry", **_name(cell), why=why)
        self.time_left.shares.pop(cell.id, None)
        if cell.id in self.tasks:
            self.progress.remove_task(self.tasks.pop(cell.id))
        line = Text(f"{cell.scheme} run {cell.run}: ")
        line.append("failed", "yellow")
        line.append(f": {why}")
        self.message(line)

    def cell_ended(self, cell: Cell, entry: CellEntry, seconds: float) -> None:
        """A cell has finished or failed."""
        self.done += 1
        self.time_left.note_end(cell.id, seconds)
        if cell.id in self.tasks:
            self.progress.remove_task(self.tasks.pop(cell.id))
        if self.all_task is not None:
            self.progress.update(self.all_task, completed=self.done)
        self._note()
        left = self.time_left.estimate()
        self.tell(
            "end",
            **_name(cell),
            state=entry.state,
            verdict=entry.verdict,
            reasons=to_data(entry.reasons),
            error=to_data(entry.error),
            seconds=round(seconds, 3),
            done=self.done,
            cells=self.total,
            left_s=None if left is None else round(left, 1),
        )
        if self.quiet:
            return
        line = Text(f"[{self.done}/{self.total}] {cell.scheme} run {cell.run}: ")
        if entry.is_finished:
            verdict = str(entry.verdict)
            line.append(verdict, _VERDICT_STYLE.get(verdict, ""))
            line.append(f" ({show_time(seconds)})" if seconds >= 1 else f" ({seconds:.1f} s)")
        else:
            line.append("failed", "red")
            line.append(f": {entry.error_message or 'no reason given'}")
        if not self.live and left and self.time_left.left:
            line.append(f", about {show_time(left)} left")
        self.message(line)
        for reason in entry.reasons if entry.verdict != "ok" else ():
            self.message(Text(f"    {reason.text or reason.code}"))

    def message(self, text: Text | str) -> None:
        """A message for the user."""
        if not self.quiet:
            # Addresses of IPv6 contain colons and brackets, and so may users' folders.
            self.console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def _note(self) -> None:
        left = self.time_left.estimate()
        if self.all_task is not None and left is not None:
            self.progress.update(
                self.all_task, note=f"{self.done} of {self.total}, about {show_time(left)} left"
            )
