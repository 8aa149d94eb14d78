"""`narrows calibrate`: from its input to its output folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from narrows.calibrate.fit import fit
from narrows.calibrate.mapping import Map, entries_of, read_map
from narrows.calibrate.output import Report, write
from narrows.calibrate.paths import TraceFile, Workload
from narrows.calibrate.search import Budget, Search
from narrows.calibrate.simulate import EVALUATIONS, Simulator
from narrows.calibrate.table import DELAY, LOSS, METRICS, THROUGHPUT, Table
from narrows.calibrate.table_sources import read
from narrows.calibrate.targets import Targets, floor_of, targets_of
from narrows.campaign import sealing, signals
from narrows.campaign.json_files import read_json, write_atomically
from narrows.documents.calibration import Calibration
from narrows.errors import DataError, NarrowsError, UnavailableError, UsageError, reason
from narrows.files import read_bytes
from narrows.locks import FolderLock

DOCUMENT = "calibration.json"
INPUT_FORMAT = "narrows/calibration-input/1"


@dataclass(frozen=True)
class Asked:
    """The request for a calibration."""

    source: Path
    map: Map
    seed: int
    budget: Budget
    threads: int
    #: A trace for the link, in place of a constant rate or a Poisson process.
    trace: Path | None = None


def merge_map(path: Path | None, written: Mapping[str, str | None], others: Map) -> Map:
    """Merges the map of a file with options, which take precedence."""
    base = read_map(path) if path is not None else Map()
    return Map(
        {**base.schemes, **written},
        others.flows if others.flows is not None else base.flows,
        others.interval or base.interval,
        others.duration or base.duration,
        {**base.metrics, **others.metrics},
        base.columns,
        {**base.where, **others.where},
    )


def calibrate(asked: Asked, folder: Path, watch: Callable[[str, float], object]) -> Calibration:
    """Calibrates, or completes an interrupted calibration; returns the content of results.json. `watch`
    receives the current step and the share of the budget that is used."""
    _need_scipy()
    table = read(asked.source, asked.map.columns, asked.map.where)
    entries, left = entries_of(table, asked.map.schemes)
    work = workload(table, asked.map)
    targets = targets_of(table, list(entries))
    if not any(target.quantity == THROUGHPUT and target.value > 0 for target in targets.all):
        raise DataError(
            f"{table.source}: no scheme has a throughput above zero, so the rate cannot be determined"
        )
    trace = _trace(asked.trace) if asked.trace is not None else None
    lock = _open(folder, _identity(table, entries, work, asked))
    try:
        with signals.interruptible(f"interrupted; run the same command with -o {folder} to resume it"):
            return _run(asked, folder, watch, Known(table, entries, left, work, targets, trace))
    finally:
        lock.close()


@dataclass(frozen=True)
class Known:
    """The facts that are known before the fit."""

    table: Table
    entries: dict[str, str]
    left: dict[str, str]
    work: Workload
    targets: Targets
    trace: TraceFile | None


def _run(asked: Asked, folder: Path, watch: Callable[[str, float], object], known: Known) -> Calibration:
    stage = ""
    search: Search | None = None

    def report() -> None:
        if search is not None:
            watch(stage, min(1.0, search.budget.measure_share(search)))

    def tell(text: str) -> None:
        nonlocal stage
        stage = text
        report()

    simulator = Simulator(folder, known.entries, known.work, asked.threads)
    search = Search(
        simulator,
        known.targets,
        metrics_of(known.table, asked.map),
        seed=asked.seed,
        runs=1,
        budget=asked.budget,
        report=report,
    )
    floor = floor_of(known.targets)
    made = fit(search, floor.mean if floor else None, tell, known.trace)
    simulator.check_kept()
    return write(Report(known.table, known.entries, known.left, known.work, search, floor, made), folder)


def _trace(path: Path) -> TraceFile:
    """A trace with its mean. Raises `DataError` if the file is not a trace, or has a format that scenarios
    don't accept.
    """
    from narrows.traces.formats import read_rates

    result, form = read_rates(path)
    if form not in ("mahimahi", "csv", "parquet"):
        raise DataError(f"{path}: is of the format {form}; narrows trace convert makes a csv of it")
    return TraceFile(str(path.absolute()), result.mean_bps)


def _need_scipy() -> None:
    try:
        import scipy  # noqa: F401
    except ImportError:
        raise UnavailableError(
            "narrows calibrate needs SciPy, which is not installed; pip install 'narrows[calibrate]'"
        ) from None


def workload(table: Table, chosen: Map) -> Workload:
    """Flows, interval and duration: from the map or options, else from the campaign. Raises `DataError` if a
    required value is missing in both.
    """
    facts = table.facts
    flows = chosen.flows or int(facts.get("flows") or max([1, *map(int, table.flows)]))
    interval = chosen.interval or facts.get("interval")
    if interval is None and flows > 1:
        raise DataError(
            f"{table.source}: has {flows} flows and does not say how far apart they start; give --interval"
            ' such as "10 s", or "0 s" if they start together'
        )
    duration = chosen.duration or facts.get("duration")
    if duration is None:
        raise DataError(f'{table.source}: does not say how long a run is; give --time such as "30 s"')
    return Workload((), flows, interval or "0 s", duration)


def metrics_of(table: Table, chosen: Map) -> dict[str, str]:
    """The metric of Narrows for each quantity of the table."""
    result = {quantity: METRICS[quantity][0] for quantity in (THROUGHPUT, DELAY, LOSS)}
    return {**result, **table.metrics, **chosen.metrics}


def _identity(table: Table, entries: Mapping[str, str], work: Workload, asked: Asked) -> dict[str, object]:
    rows = [[row.scheme, row.run, row.flow, dict(row.values)] for row in table.rows]
    content = json.dumps(
        [rows, dict(entries), vars(work) | {"schemes": None}, metrics_of(table, asked.map), asked.seed],
        sort_keys=True,
    )
    if asked.trace is not None:
        content += hashlib.sha256(read_bytes(asked.trace)).hexdigest()
    return {
        "format": INPUT_FORMAT,
        "table": table.source,
        "schemes": dict(entries),
        "seed": asked.seed,
        "hash": hashlib.sha256(content.encode()).hexdigest(),
    }


def _open(folder: Path, document: dict[str, object]) -> FolderLock:
    """Creates the folder, or opens it again for the same table, schemes and seed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = (folder / DOCUMENT).exists()
        left = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
    except OSError as error:
        raise NarrowsError(f"{folder}: can't be created: {reason(error)}; choose another with -o") from None
    lock = FolderLock(folder, "calibration")
    try:
        if there:
            if read_json(folder / DOCUMENT, INPUT_FORMAT)["hash"] != document["hash"]:
                raise UsageError(
                    f"{folder} holds a calibration to another table, or with other schemes or another seed;"
                    " choose another folder with -o"
                )
        elif left and left != [EVALUATIONS]:
            raise UsageError(f"{folder} is not empty and holds no calibration; choose another folder with -o")
        else:
            write_atomically(folder / DOCUMENT, sealing.seal(document, INPUT_FORMAT))
    except BaseException:
        lock.close()
        raise
    return lock
