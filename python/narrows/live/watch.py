"""The latest run and its readings: agents add to them from their threads, and views read them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from narrows.agent.schema import parse, read_event
from narrows.documents.data import DamagedError, from_data
from narrows.documents.live import Changed, LiveSample, Reading, Refused
from narrows.documents.resolved import Cell
from narrows.errors import NarrowsError
from narrows.live.meter import Meter

#: Readings that are kept of a run: an hour of five per second.
MOST_READINGS = 18_000
#: Messages that are kept.
MOST_NOTES = 100


class Takes(Protocol):
    """A run that takes orders."""

    def order(self, line: bytes) -> None:
        """Sends an order to the agent."""


class Orders(Protocol):
    """Reads what people write as orders, and keeps those that were carried out."""

    @property
    def examples(self) -> tuple[str, ...]:
        """Orders that these runs take."""

    def read(self, text: str) -> bytes:
        """The line for the agent. Raises `NarrowsError` if the text can't be one."""

    def keep(self, changed: Changed) -> str:
        """Keeps an order that takes effect; returns it in words."""

    def drop(self) -> None:
        """Forgets the oldest order without an answer, which the agent has refused."""

    def clear(self) -> None:
        """Forgets all orders: another run begins."""

    def cell_with_changes(self) -> Cell | None:
        """The cell with the orders that were carried out; none without any."""


@dataclass(frozen=True)
class Note:
    """A message about a run, at a time of the run."""

    time_ns: int
    text: str
    is_change: bool = False


@dataclass(frozen=True)
class Watched:
    """The state of the latest run at an instant."""

    cell: Cell | None
    readings: list[Reading]
    notes: list[Note]
    #: True once the run has ended.
    over: bool = False

    @property
    def time_ns(self) -> int:
        """The time of the latest reading."""
        return self.readings[-1].time_ns if self.readings else 0


@dataclass
class Watch:
    """The latest run; `hear`, `order` and `look` may be called from any thread."""

    orders: Orders | None = None
    _cell: Cell | None = None
    _run: Takes | None = None
    _over: bool = False
    _meter: Meter = field(default_factory=Meter)
    _readings: deque[Reading] = field(default_factory=lambda: deque(maxlen=MOST_READINGS))
    _notes: deque[Note] = field(default_factory=lambda: deque(maxlen=MOST_NOTES))
    _news: threading.Condition = field(default_factory=threading.Condition)
    #: Rises with each change.
    _version: int = 0

    def begin(self, cell: Cell, run: Takes) -> Callable[[bytes], None]:
        """Forgets the last run; returns a function that takes the lines of this one's agent."""
        with self._news:
            self._cell, self._run, self._over = cell, run, False
            self._meter = Meter()
            self._readings.clear()
            self._notes.clear()
            if self.orders is not None:
                self.orders.clear()
            self._rise()
        return self.hear

    def end(self, cell: Cell) -> None:
        """The run of a cell has ended."""
        with self._news:
            if self._cell is not None and cell.id == self._cell.id:
                self._over, self._run = True, None
                self._rise()

    def hear(self, line: bytes) -> None:
        """Takes a line of the agent; one that is damaged is ignored."""
        event, data = read_event(line), parse(line)
        if event is None:
            return
        try:
            match event.event:
                case "live":
                    self._read(from_data(data, LiveSample))
                case "changed":
                    self.keep(from_data(data, Changed))
                case "refused":
                    self.refuse(from_data(data, Refused))
        except DamagedError:
            return

    def _read(self, sample: LiveSample) -> None:
        with self._news:
            reading = self._meter.read(sample)
        if reading is not None:
            self.add(reading)

    def add(self, reading: Reading) -> None:
        """Adds a reading, later than the last one."""
        with self._news:
            self._readings.append(reading)
            self._rise()

    def keep(self, changed: Changed) -> None:
        """The oldest order without an answer takes effect."""
        words = self.orders.keep(changed) if self.orders is not None else ""
        with self._news:
            self._notes.append(Note(changed.at_ns, words, is_change=True))
            self._rise()

    def refuse(self, refused: Refused) -> None:
        """The oldest order without an answer is refused."""
        if self.orders is not None:
            self.orders.drop()
        self.note(refused.message)

    def note(self, text: str) -> None:
        """Adds a message at the time of the latest reading."""
        with self._news:
            self._notes.append(Note(self._readings[-1].time_ns if self._readings else 0, text))
            self._rise()

    def order(self, text: str) -> str | None:
        """Sends what someone wrote as an order to the run; returns why it is refused, if it is."""
        if not text.strip():
            return None
        why: str | None = None
        with self._news:
            run = self._run
        if self.orders is None:
            why = "this run takes no orders; start it with --interactive"
        elif run is None:
            why = "no run is under way"
        else:
            try:
                run.order(self.orders.read(text))
            except NarrowsError as error:
                why = str(error)
        if why is not None:
            self.note(why)
        return why

    def look(self) -> Watched:
        """The state now."""
        with self._news:
            return self._state()

    def wait(self, version: int, seconds: float) -> tuple[int, Watched]:
        """The number of the latest change and the state; waits for a later one than `version`."""
        with self._news:
            self._news.wait_for(lambda: self._version > version, seconds)
            return self._version, self._state()

    def _state(self) -> Watched:
        return Watched(self._cell, list(self._readings), list(self._notes), self._over)

    def _rise(self) -> None:
        self._version += 1
        self._news.notify_all()
