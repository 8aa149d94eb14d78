"""Shows the cells of a campaign while they run: on the whole terminal, or as a line per second elsewhere."""

from __future__ import annotations

import time

from rich.console import Group
from rich.live import Live
from rich.text import Text

from narrows.campaign.progress import ProgressView
from narrows.documents.campaign import CellEntry
from narrows.documents.data import to_data
from narrows.documents.live import Reading
from narrows.live.keyboard import Keyboard
from narrows.live.terminal import draw, in_a_line
from narrows.live.terminal_guard import TerminalGuard
from narrows.live.watch import Watch
from narrows.scenario.model import Cell
from narrows.threads import stay_apart

#: Time between two lines where there is no terminal.
_LINE_S = 1.0


class LiveView(ProgressView):
    """The view of `narrows run --live`: messages are printed when the terminal is free again."""

    def __init__(self, *arguments: object, watch: Watch, draws: bool, **more: object) -> None:
        super().__init__(*arguments, **more)  # type: ignore[arg-type]
        self.watch = watch
        #: True for the terminal, False if only a page shows the runs.
        self.draws = draws
        self._later: list[Text | str] = []
        self._screen: Live | None = None
        self._keyboard: Keyboard | None = None
        self._guard: TerminalGuard | None = None
        self._printed = 0.0
        self._told = 0
        self._apart = False

    def __enter__(self) -> LiveView:
        watch = self.watch
        if self.draws and self.live:
            self._guard = TerminalGuard(self.console.file, keys=watch.orders is not None)
            self._guard.start()
        if watch.orders is not None:
            self._keyboard = Keyboard(watch.order, shows=self.draws and self.live)
            self._keyboard.start()
        if not (self.draws and self.live):
            super().__enter__()
            return self
        self._screen = Live(console=self.console, screen=True, auto_refresh=False, transient=True)
        self._screen.start()
        self._draw()
        return self

    def __exit__(self, *problem: object) -> None:
        if self._keyboard is not None:
            self._keyboard.stop()
        if self._screen is not None:
            self._screen.stop()
            self._screen = None
            if self._guard is not None:
                self._guard.stop()
            later, self._later = self._later, []
            for text in later:
                self.message(text)
        else:
            super().__exit__(*problem)

    def cell_started(self, cell: Cell) -> None:
        """A cell begins."""
        super().cell_started(cell)
        self._told, self._printed = 0, 0.0
        self._draw()

    def cell_progress(self, cell: Cell, share: float) -> None:
        """A cell has reached this share."""
        self._stay_apart()
        super().cell_progress(cell, share)
        self._tell(cell)
        self._draw()

    def cell_ended(self, cell: Cell, entry: CellEntry, seconds: float) -> None:
        """A cell has finished or failed."""
        self.watch.end(cell)
        super().cell_ended(cell, entry, seconds)
        self._draw()

    def message(self, text: Text | str) -> None:
        """A message for the user."""
        if self._screen is not None:
            self._later.append(text)
        else:
            super().message(text)

    def _tell(self, cell: Cell) -> None:
        """Passes on readings: all to the listener of events, and one per second as a line."""
        readings = self.watch.look().readings
        for reading in readings[self._told :]:
            self.tell("live", cell=cell.id, scheme=cell.scheme, run=cell.run, **_event(reading))
        self._told = len(readings)
        if readings and self.draws and not self.live and time.monotonic() - self._printed >= _LINE_S:
            self._printed = time.monotonic()
            self.message(in_a_line(cell, readings[-1]))

    def _draw(self) -> None:
        if self._screen is None:
            return
        width, height = self.console.size
        typed = self._keyboard.typed if self._keyboard is not None else None
        lines = draw(self.watch.look(), width, height, typed)
        self._screen.update(Group(*lines), refresh=True)

    def _stay_apart(self) -> None:
        """Leaves the last processor, on which packets are emulated, to the agent; only now, because the agent
        inherits the processors of this process.
        """
        if self._apart:
            return
        self._apart = True
        stay_apart()


def _event(reading: Reading) -> dict[str, object]:
    content: dict[str, object] = to_data(reading)
    return content
