"""A progress bar for work in stages."""

from __future__ import annotations

import time

from narrows.campaign.progress import show_time
from narrows.console import stderr_console
from narrows.progress import bars

#: Shorter work shows no bar.
_PATIENCE_S = 2.0
#: A smaller share of a stage allows no estimate of the rest.
_LEAST_SHARE = 0.02


class StageBar:
    """Shows one stage after the other with its note, on a terminal, once the work has taken two seconds."""

    def __init__(self, *, quiet: bool) -> None:
        console = stderr_console()
        self._bars = bars(console, console.is_terminal and not quiet)
        self._began = time.monotonic()
        self._first: tuple[float, float] | None = None
        self._stage = ""

    def __enter__(self) -> StageBar:
        self._bars.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.__exit__(*error)  # type: ignore[arg-type]

    def show(self, stage: str, done: float, total: float | None, note: str = "") -> None:
        """Shows that `done` of `total` is complete; `total` is `None` if it is unknown."""
        if time.monotonic() - self._began < _PATIENCE_S:
            return
        if stage != self._stage:
            for task in self._bars.task_ids:
                self._bars.remove_task(task)
            self._bars.add_task(stage, total=None, note="")
            self._stage = stage
        self._bars.update(self._bars.task_ids[0], completed=done, total=total, note=note)

    def time_left(self, share: float) -> str:
        """`, at most 20 s left` once enough is done for an estimate; work may end early."""
        now = time.monotonic()
        if self._first is None:
            self._first = (now, share)
        began, already = self._first
        if share - already <= _LEAST_SHARE or share >= 1:
            return ""
        return f", at most {show_time((now - began) * (1 - share) / (share - already))} left"
