"""Shows how the comparison goes, on standard error: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time

from rich.console import Console

from narrows.campaign.progress import TimeLeft, bars, show_time


class ProgressView:
    """Use it with `with`."""

    def __init__(self, console: Console, seconds_each: float) -> None:
        self._console = console
        self._each = seconds_each
        self._left = TimeLeft(0, 1, seconds_each)
        self._done = self._total = 0
        self._began = time.monotonic()
        self._progress = bars(console, console.is_terminal)
        self._task = self._progress.add_task("runs", total=None, note="")

    def __enter__(self) -> ProgressView:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def message(self, text: str) -> None:
        """Something to read."""
        self._console.print(text, highlight=False, soft_wrap=True)

    def started(self, done: int, left: int) -> None:
        """So many runs are kept from before, so many are to be made."""
        self._done, self._total = done, done + left
        self._left = TimeLeft(left, 1, self._each)
        self._began = time.monotonic()
        kept = f", {done} are kept from before" if done else ""
        self.message(f"{left} runs in about {show_time(left * self._each)}{kept}; leave the machine alone")
        self._show()

    def ended(self, text: str) -> None:
        """A run is over."""
        now = time.monotonic()
        self._left.ended("", now - self._began)
        self._began = now
        self._done += 1
        self.message(f"[{self._done}/{self._total}] {text}")
        self._show()

    def _show(self) -> None:
        left = self._left.estimate()
        note = f"{self._done} of {self._total}"
        if left:
            note += f", about {show_time(left)} left"
        self._progress.update(self._task, total=self._total, completed=self._done, note=note)
