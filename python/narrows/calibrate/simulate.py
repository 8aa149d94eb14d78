"""Results of schemes on paths, simulated in memory on several threads and kept on disk.

    evaluations.jsonl    a line for each evaluation, written when it is finished: the path, what was
                         simulated, and the values of every scheme, flow and run

An evaluation is identified by the hash of its definition and the version, and never runs twice. A resumed
search is determined by its seed, so it requests the same evaluations again and receives them from here. A
line that a crash cut off is removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as File

import msgspec

from narrows import scratch
from narrows.calibrate.paths import Path, Workload, scenario_text
from narrows.calibrate.table import METRICS, QUANTITIES
from narrows.documents.data import Number, Part, from_data, to_data
from narrows.documents.run import Simulated
from narrows.errors import DataError, NarrowsError, reason
from narrows.files import read_bytes

EVALUATIONS = "evaluations.jsonl"
#: Memory limit of one cell.
_MEMORY = 2_000_000_000
_METRICS = tuple(metric for metrics in METRICS.values() for metric in metrics)


@dataclass(frozen=True)
class Wanted:
    """One evaluation: a path, the schemes (by their published names) that run on it, the number of runs, and
    the seed of their randomness.
    """

    path: Path
    schemes: tuple[str, ...]
    runs: int
    seed: int


#: By scheme, flow and metric the values of all runs.
Values = dict[str, dict[str, dict[str, list[Number | None]]]]


class KeptEvaluation(Part, frozen=True, kw_only=True):
    """A line of the file of evaluations."""

    key: str
    link: str
    #: The path in words.
    path: dict[str, str]
    runs: int
    seed: int
    seconds: Number
    values: Values = msgspec.field(name="found")


@dataclass(frozen=True)
class Evaluation:
    """The results of an evaluation: for each scheme and flow, the values of each metric in each run."""

    path: Path
    seconds: float
    values: Mapping[str, Mapping[str, Mapping[str, Sequence[float | None]]]]

    def runs(self, metrics: Mapping[str, str]) -> dict[str, dict[str, dict[str, Sequence[float | None]]]]:
        """The values of runs by scheme, flow and quantity; `metrics` maps each quantity to a metric."""
        return {
            scheme: {
                flow: {quantity: of[metrics[quantity]] for quantity in QUANTITIES}
                for flow, of in flows.items()
            }
            for scheme, flows in self.values.items()
        }


class Simulator:
    """Simulates evaluations and keeps their results. `entries` are the schemes in the notation of scenarios,
    by published names.
    """

    def __init__(
        self,
        folder: File,
        entries: Mapping[str, str],
        work: Workload,
        threads: int,
        tell: Callable[[int], object] = lambda _: None,
    ) -> None:
        self.entries = dict(entries)
        self.work = work
        self.threads = threads
        self.tell = tell
        self.done = 0
        #: Seconds that evaluations of this search have taken, earlier sessions included.
        self.spent = 0.0
        self._path = folder / EVALUATIONS
        self._known = self._load()
        #: Evaluations whose time is part of `spent`.
        self._counted: set[str] = set()

    def _load(self) -> dict[str, KeptEvaluation]:
        try:
            content = read_bytes(self._path) if self._path.exists() else b""
            whole = content[: content.rfind(b"\n") + 1]
            if whole != content:
                os.truncate(self._path, len(whole))
        except OSError as error:
            raise NarrowsError(f"{self._path}: can't be read: {reason(error)}") from None
        result = {}
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                entry = msgspec.json.decode(line, type=KeptEvaluation)
                result[entry.key] = entry
            except (ValueError, msgspec.MsgspecError):
                raise DataError(
                    f"{self._path}:{number}: is damaged; remove the line, and it is simulated again"
                ) from None
        return result

    def check_kept(self) -> None:
        """Raises `NarrowsError` if the file of kept evaluations has vanished from the folder."""
        lost = self._known.keys() - self._load().keys()
        if lost:
            raise NarrowsError(
                f"{self._path}: {len(lost)} of {len(self._known)} evaluations are gone: the file was changed"
                " while narrows was working on this calibration; run the same command again, which makes them"
                " anew"
            )

    def evaluate(self, wanted: Sequence[Wanted]) -> list[Evaluation]:
        """The results of some evaluations; unknown ones are simulated, one cell on each thread. Raises
        `DataError` where a scheme cannot be simulated."""
        keys, cells, missing = [], [], []
        for item in wanted:
            text = self._text(item)
            key = self._key(text)
            if key not in self._known and key not in missing:
                missing.append(key)
                cells.append((item, key, text))
            keys.append(key)
        if cells:
            self._simulate(cells)
        evaluations = []
        for element, key in zip(wanted, keys, strict=True):
            entry = self._known[key]
            self.spent += 0.0 if key in self._counted else float(entry.seconds)
            self._counted.add(key)
            evaluations.append(Evaluation(element.path, float(entry.seconds), entry.values))
        self.done += len(wanted)
        self.tell(self.done)
        return evaluations

    def _text(self, wanted: Wanted) -> str:
        work = Workload(
            tuple(self.entries[name] for name in wanted.schemes),
            self.work.flows,
            self.work.interval,
            self.work.duration,
        )
        return scenario_text(wanted.path, work, runs=wanted.runs, seed=wanted.seed)

    def _key(self, text: str) -> str:
        from narrows import _native
        from narrows.scenario.registry import version_of_extensions

        version = f"{_native.version()} {version_of_extensions()}".strip()
        return hashlib.sha256(f"{version}\n{text}".encode()).hexdigest()[:24]

    def _simulate(self, missing: Sequence[tuple[Wanted, str, str]]) -> None:
        from narrows import _native
        from narrows.scenario.files import name_in_store
        from narrows.scenario.loading import load_text
        from narrows.scenario.model import cell_of

        texts: list[str] = []
        owners: list[tuple[_Pending, str, int]] = []
        # The file lies beside the evaluations: removing the output folder removes it too.
        with scratch.working_folder("traces", self._path.parent) as place:
            folder = str(place)
            for item, key, text in missing:
                scenario = load_text(text, source="path", is_point=True).scenario
                for sha256, content in scenario.files.contents.items():
                    name = name_in_store(scenario.files.names[sha256], sha256)
                    File(folder, name).write_bytes(content)
                pending = _Pending(item, key, item.runs * len(item.schemes))
                for scheme, row in zip(item.schemes, scenario.schemes, strict=True):
                    for run in range(1, item.runs + 1):
                        texts.append(cell_of(scenario, row, run).to_text())
                        owners.append((pending, scheme, run))
            began = time.monotonic()

            def tell(index: int, text: str) -> None:
                nonlocal began
                pending, scheme, run = owners[index]
                pending.take(scheme, run, from_data(json.loads(text), Simulated))
                if not pending.left:
                    now = time.monotonic()
                    self._keep(pending, now - began)
                    began = now

            _native.simulate_summaries(texts, tell, memory=_MEMORY, threads=self.threads, files_dir=folder)

    def _keep(self, pending: _Pending, seconds: float) -> None:
        entry = KeptEvaluation(
            key=pending.key,
            link=pending.wanted.path.link,
            path=pending.wanted.path.words(),
            runs=pending.wanted.runs,
            seed=pending.wanted.seed,
            seconds=round(seconds, 3),
            values=pending.values,
        )
        try:
            with self._path.open("ab") as stream:
                stream.write(json.dumps(to_data(entry), separators=(",", ":")).encode() + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise NarrowsError(
                f"{self._path}: can't be written: {reason(error)}; make room and run the same command again"
            ) from None
        self._known[pending.key] = entry


class _Pending:
    """An evaluation whose cells are being simulated."""

    def __init__(self, wanted: Wanted, key: str, cells: int) -> None:
        self.wanted, self.key, self.left = wanted, key, cells
        self.values: Values = {}

    def take(self, scheme: str, run: int, result: Simulated) -> None:
        """Takes the result of one cell. Raises `DataError` if it could not be simulated."""
        self.left -= 1
        if result.error is not None:
            raise DataError(f"{scheme}: can't be simulated: {result.error.message}")
        for row in result.flows:
            if row.background:
                continue
            of = self.values.setdefault(scheme, {}).setdefault(row.flow, {})
            for metric in _METRICS:
                values = of.setdefault(metric, [None] * self.wanted.runs)
                values[run - 1] = row.metrics.get(metric)
