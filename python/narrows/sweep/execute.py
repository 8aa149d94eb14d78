"""Runs the missing cells of a sweep.

The main thread resolves points, submits cells in batches of about half a second of work, writes the results
and decides by the stopping rule whether a point needs more runs. Its decisions depend on the results alone,
never on the order of their arrival, so an interrupted sweep ends like an uninterrupted one.
"""

from __future__ import annotations

import itertools
import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, field

from narrows.campaign import signals
from narrows.documents.data import from_data
from narrows.documents.run import Simulated
from narrows.documents.sweep import FailedCell
from narrows.errors import Interrupted
from narrows.scenario.model import Scenario, SchemeRow
from narrows.statistics.runs import summarise
from narrows.sweep.engines import MOST_TRIES, Engine, failure
from narrows.sweep.loading import LoadedSweep, SweepCell
from narrows.sweep.plan import Point
from narrows.sweep.store import SweepFolder

#: Seconds of work in one batch, and the maximum number of its cells.
_SHARE_S, _MOST_CELLS = 0.5, 256
#: Pending batches per worker, so that none is idle while this thread is busy.
_AHEAD = 3

#: Receives the numbers of finished cells, of cells known so far, and of failed cells.
Watch = Callable[[int, int, int], None]


@dataclass
class _Group:
    """The runs of a scheme at a point, under a stopping rule."""

    scenario: Scenario
    row: SchemeRow
    point: Point
    asked: int
    #: The metric by run; None if it has no value.
    values: dict[int, float | None] = field(default_factory=dict)


@dataclass
class _Share:
    cells: list[SweepCell]
    tries: int = 0
    began: float = field(default_factory=time.monotonic)


class SweepRun:
    """One process that works on a sweep. `share` is (K, N): only every N-th point, starting with K - 1."""

    def __init__(
        self,
        loaded: LoadedSweep,
        folder: SweepFolder,
        engine: Engine,
        memory: int,
        share: tuple[int, int] = (1, 1),
        watch: Watch = lambda *_: None,
    ) -> None:
        self.loaded = loaded
        self.folder = folder
        self.engine = engine
        self.memory = memory
        self.share = share
        self.watch = watch
        self.more: deque[SweepCell] = deque()
        self.groups: dict[tuple[int, str], _Group] = {}
        self.known = 0
        self.finished = 0
        self.failed: list[FailedCell] = []
        self.per_cell_s = 0.05
        self.running: dict[Future[list[str | None]], _Share] = {}
        self.handed: set[str] = set()
        self.earlier = self._earlier() if loaded.sweep.until else {}

    @signals.interruptible("interrupted")
    def run(self) -> None:
        """Runs all missing cells; raises `Interrupted` with all finished cells kept."""
        outcome = "stopped"
        try:
            self._loop()
            outcome = "done"
        except (signals.Signalled, KeyboardInterrupt):
            outcome = "interrupted"
            self.engine.stop()
            raise
        finally:
            if outcome != "done":
                self.engine.stop()
            self.folder.end(outcome, self.failed)
            self.engine.end()

    def _loop(self) -> None:
        points = self._cells()
        while True:
            while len(self.running) < self.engine.workers * _AHEAD:
                size = max(1, min(_MOST_CELLS, int(_SHARE_S / self.per_cell_s)))
                # Runs requested by the stopping rule come first, so that few points are open at a time.
                taken = list(itertools.islice(itertools.chain(self._list_asked(), points), size))
                if not taken:
                    break
                self._hand_in(_Share(taken))
            if not self.running:
                return
            done, _ = wait(self.running, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in done:
                self._take(future)
            self.watch(self.finished, self.known, len(self.failed))

    # -- cells -----------------------------------------------------------------------------------

    def _cells(self) -> Iterator[SweepCell]:
        """The missing cells, point by point."""
        first, of = self.share
        for point in self.loaded.sweep.points():
            if point.number % of != first - 1:
                continue
            scenario = self.loaded.scenario_at(point)
            runs = scenario.runs
            if self.loaded.sweep.until:
                for row in scenario.schemes:
                    self._open(scenario, row, point, runs)
            for cell in self.loaded.cells(scenario, point, range(1, runs + 1)):
                yield from self._wants(cell)

    def _list_asked(self) -> Iterator[SweepCell]:
        while self.more:
            yield from self._wants(self.more.popleft())

    def _wants(self, cell: SweepCell) -> Iterator[SweepCell]:
        if cell.address in self.handed:
            return
        self.handed.add(cell.address)
        self.known += 1
        if cell.address in self.folder.done:
            self.finished += 1
            self._note(cell, self.earlier.get(cell.address))
        else:
            yield cell

    def _earlier(self) -> dict[str, float | None]:
        """The metric of the stopping rule, for the existing cells."""
        until = self.loaded.sweep.until
        assert until is not None
        table = self.folder.table(["cell", "flow", "verdict", until.metric])
        flow = None if until.flow == "all" else int(until.flow)
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        return {
            cell: value if verdict != "invalid" else None for cell, of, verdict, value in rows if of == flow
        }

    # -- the stopping rule -----------------------------------------------------------------------

    def _open(self, scenario: Scenario, row: SchemeRow, point: Point, runs: int) -> None:
        self.groups[point.number, row.slug] = _Group(scenario, row, point, runs)

    def _note(self, cell: SweepCell, value: float | None) -> None:
        """Records one run of a group; when all are known, requests more or closes the group."""
        until = self.loaded.sweep.until
        group = self.groups.get(cell.group)
        if until is None or group is None:
            return
        group.values[cell.run] = value
        if len(group.values) < group.asked:
            return
        if group.asked >= until.most or _is_narrow([*group.values.values()], until.within):
            del self.groups[cell.group]
            return
        begun, group.asked = group.asked, min(until.most, group.asked + max(1, group.asked // 2))
        for run in range(begun + 1, group.asked + 1):
            self.more.append(self.loaded.cell(group.scenario, group.row, group.point, run))

    # -- work ------------------------------------------------------------------------------------

    def _hand_in(self, share: _Share) -> None:
        texts = [cell.text for cell in share.cells]
        share.began = time.monotonic()
        future = self.engine.submit(texts, self.loaded.files, self.loaded.version, self.memory)
        self.running[future] = share

    def _take(self, future: Future[list[str | None]]) -> None:
        share = self.running.pop(future)
        try:
            results = future.result()
        except Exception as error:
            if not isinstance(error, (*self.engine.broken, CancelledError)):
                self._give_up(share, error)
                return
            # A worker died: the pool is unusable, and all of its batches fail like this one.
            if share.tries >= MOST_TRIES:
                self._fail(share, f"its worker died {share.tries + 1} times ({type(error).__name__})")
                return
            self.engine.renew()
            # A single cell may be what kills workers; run alone, it can't take others with it.
            parts = [share.cells] if share.tries < 1 else [[cell] for cell in share.cells]
            for cells in parts:
                self._hand_in(_Share(cells, share.tries + 1))
            return
        passed = (time.monotonic() - share.began) / (_AHEAD * len(share.cells))
        self.per_cell_s += 0.2 * (max(1e-4, passed) - self.per_cell_s)
        for cell, text in zip(share.cells, results, strict=True):
            if text is not None:
                self._keep(cell, from_data(json.loads(text), Simulated))

    def _give_up(self, share: _Share, error: Exception) -> None:
        if type(error).__name__ != "KilledWorker":
            raise failure(error) from None
        # Dask has given these cells to several workers, all of which died.
        self._fail(share, f"its workers died ({error})")

    def _keep(self, cell: SweepCell, result: Simulated) -> None:
        if result.error is not None:
            self._fail_cell(cell, result.error.message or "")
            return
        self.finished += 1
        self.folder.add(cell, result)
        if (until := self.loaded.sweep.until) is not None:
            row = next((flow for flow in result.flows if flow.flow == until.flow), None)
            self._note(cell, row.metrics.get(until.metric) if row else None)

    def _fail(self, share: _Share, message: str) -> None:
        for cell in share.cells:
            self._fail_cell(cell, message)

    def _fail_cell(self, cell: SweepCell, message: str) -> None:
        self.failed.append(cell.fail(message))
        self._note(cell, None)


def _is_narrow(values: list[float | None], within: float) -> bool:
    """True if half the 95 % interval of the median is at most this share of the median, or all runs are
    equal; also without a value, which more runs would not change.
    """
    amounts = [value for value in values if value is not None]
    if not amounts:
        return True
    summary = summarise(amounts)
    if summary.identical:
        return True
    interval = summary.ci95
    if interval is None:
        return False
    return (interval[1] - interval[0]) / 2 <= within * abs(summary.median or 0.0)


def interruption_sentence(folder: SweepFolder, number: int) -> Interrupted:
    """The message for a user who has stopped a sweep."""
    return Interrupted(
        f"interrupted; {len(folder.done)} cells are finished and kept in {folder.path}; run the same command"
        f" with -o {folder.path} to complete the sweep",
        number,
    )
