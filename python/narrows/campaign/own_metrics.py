"""User-defined metrics: plain functions of one run, marked with `@narrows.metric`.

They come from files: those of `--metrics FILE`, and all in the folder `metrics` of the configuration folder
(`~/.config/narrows/metrics/*.py`, or below `XDG_CONFIG_HOME`). In a program or notebook the decorator
suffices. Their values appear beside those of the core in results, and so in every table, file and report. A
failing function affects only its own value, which becomes unavailable, with a reason in one sentence.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import math
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from msgspec.structs import replace

from narrows.documents.results import ALL, MeasuredFlow, Metric, Results, Row
from narrows.errors import DataError, UsageError
from narrows.files import config_folder, read_whole
from narrows.text import shorten

if TYPE_CHECKING:
    from narrows.campaign.record import Run

Function = TypeVar("Function", bound=Callable[..., Any])

MOST_BYTES = 1_000_000
#: Units by the suffix of a function's name: in files, for people, and the factor between them.
SHOWN_UNITS = {
    "_bps": ("bit/s", "Mbit/s", 1e-6),
    "_ns": ("ns", "ms", 1e-6),
    "_bytes": ("bytes", "bytes", 1.0),
    "_packets": ("packets", "packets", 1.0),
    "_ratio": ("1", "%", 100.0),
}
#: Reasons why flows lack a metric that other programs report; readers of a table need no note about them.
NOT_REPORTED = "the program of this flow does not report it"
_BETTER = ("higher", "lower")


@dataclass(frozen=True)
class OwnMetric:
    """A metric and the function that computes it."""

    name: str
    function: Callable[..., Any]
    description: Metric
    file: Path | None
    fingerprint: str | None


_registered: dict[str, OwnMetric] = {}
#: The file that is being loaded, and its fingerprint.
_reading: list[tuple[Path, str]] = []
#: Files that were loaded, by their fingerprints.
_read: dict[Path, str] = {}


@overload
def metric(function: Function, /) -> Function: ...
@overload
def metric(
    *, name: str | None = ..., label: str | None = ..., unit: str | None = ..., better: str | None = ...
) -> Callable[[Function], Function]: ...
def metric(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    label: str | None = None,
    unit: str | None = None,
    better: str | None = None,
) -> Function | Callable[[Function], Function]:
    """Registers a function of one run as a metric that appears wherever metrics are shown.

    The function receives a `narrows.Run` and returns a number (for all flows together), a mapping from
    numbers of flows (and `"all"`) to numbers, or None if there is no value. `name` is the column of results
    (default: the name of the function); a name that ends in `_bps`, `_ns`, `_bytes`, `_packets` or `_ratio`
    has that unit, and people see Mbit/s, ms or %. Otherwise `unit` is shown literally. `label` is the title
    for people, `better` is "higher" or "lower". The function's docstring is the definition.

    Raises `UsageError` if the name or `better` can't be used. The function itself may raise anything: its
    value then becomes unavailable, with the reason.
    """

    def register(function: Function) -> Function:
        called = name or function.__name__
        if not called.isidentifier():
            raise UsageError(f'"{shorten(called)}" is not a name of a metric; use letters, digits and "_"')
        if better is not None and better not in _BETTER:
            raise UsageError(f'{called}: better is "higher" or "lower", not "{shorten(str(better))}"')
        file, fingerprint = _reading[-1] if _reading else (None, None)
        source = file.name if file else "this program"
        described = replace(
            _description(called, function, label, unit, better), own=fingerprint, source=source
        )
        _registered[called] = OwnMetric(called, function, described, file, fingerprint)
        return function

    return register if function is None else register(function)


def _description(
    name: str, function: Callable[..., Any], label: str | None, unit: str | None, better: str | None
) -> Metric:
    end = next((end for end in SHOWN_UNITS if name.endswith(end)), "")
    base, shown, scale = ("", unit, 1.0) if unit is not None else SHOWN_UNITS.get(end, ("", "", 1.0))
    text = inspect.getdoc(function) or "A metric of your own, without a definition at its head."
    return Metric(
        name=name,
        label=label or name.removesuffix(end).replace("_", " ").strip() or name,
        unit=base or shown,
        show_unit=shown,
        show_scale=scale,
        better=better,
        scope="both",
        links=False,
        happened=None,
        definition=" ".join(text.split("\n\n")[0].split()),
        source=None,
    )


# -- files ---------------------------------------------------------------------------------------


def folder() -> Path:
    """The folder of metrics that are loaded by default (it need not exist)."""
    return config_folder() / "metrics"


def read_files(files: Iterable[Path], say: Callable[[str], None]) -> None:
    """Reads the metrics of these files and of the configuration folder.

    Raises `DataError` for a named file that can't be used; an unusable file of the configuration folder
    yields only a sentence, since the user has not asked for it now.
    """
    try:
        paths = sorted(folder().glob("*.py"))
    except OSError:
        paths = []
    for path in paths:
        try:
            read_file(path)
        except DataError as error:
            say(f"{error}; it is left out")
    for path in files:
        read_file(path)


def read_file(path: Path) -> None:
    """Reads the metrics of one file. Raises `DataError` with one sentence if it is not a program that defines
    a metric.
    """
    try:
        content = read_whole(path, "file of metrics", MOST_BYTES)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    fingerprint = hashlib.sha256(content).hexdigest()
    if _read.get(path.resolve()) == fingerprint:
        return
    before = dict(_registered)
    try:
        with _reading_of(path, fingerprint):
            _execute(path, content, fingerprint)
    except DataError:
        _registered.clear()
        _registered.update(before)
        raise
    if not any(own_metric.file == path for own_metric in _registered.values()):
        raise DataError(f"{path}: defines no metric; write @narrows.metric above a function of one run")
    _read[path.resolve()] = fingerprint


@contextmanager
def _reading_of(path: Path, fingerprint: str) -> Iterator[None]:
    _reading.append((path, fingerprint))
    try:
        yield
    finally:
        _reading.pop()


def _execute(path: Path, content: bytes, fingerprint: str) -> None:
    """Runs the file as a separate module, which tracebacks and data classes need."""
    name = f"narrows_metrics_{fingerprint[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise DataError(f"{path}: is not a file of Python; its name has to end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        exec(compile(content, str(path), "exec"), module.__dict__)
    except SyntaxError as error:
        raise DataError(f"{path}:{error.lineno or 1}: is not Python: {error.msg}") from None
    except UsageError as error:
        raise DataError(f"{path}: {error}") from None
    except (Exception, SystemExit) as error:
        raise DataError(f"{path}:{_line(error, path)}: can't be read: {_describe_error(error)}") from None


def _describe_error(error: BaseException) -> str:
    text = shorten(str(error), 200).rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _line(error: BaseException, path: Path | str) -> int:
    """The last line of a file in the traceback of an error."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno or 0 for frame in reversed(frames) if frame.filename == str(path)), 0)


# -- values --------------------------------------------------------------------------------------


def list_registered() -> list[OwnMetric]:
    """The registered metrics, in the order of their definition."""
    return list(_registered.values())


def forget() -> None:
    """Forgets all registered metrics and loaded files."""
    _registered.clear()
    _read.clear()


def names(metrics: Iterable[Metric]) -> tuple[str, ...]:
    """The names of the user-defined metrics."""
    return tuple(metric.name for metric in metrics if metric.is_own)


def missing(results: Results) -> list[OwnMetric]:
    """User-defined metrics that the results lack, or have from another version of their file."""
    known = {metric.name: metric for metric in results.metrics}
    taken = [name for name in _registered if name in known and not known[name].is_own]
    if taken:
        file = _registered[taken[0]].file
        raise DataError(
            f"{f'{file}: ' if file else ''}{taken[0]} is the name of a metric that there is already;"
            " call yours something else"
        )
    return [
        own_metric
        for own_metric in _registered.values()
        if own_metric.fingerprint is None
        or own_metric.name not in known
        or known[own_metric.name].own != own_metric.fingerprint
    ]


def add_values(own_metric: OwnMetric, run: Run, rows: Sequence[Row | MeasuredFlow]) -> None:
    """Adds the values of one metric to the rows of a run, or the reason why it has none."""
    result, why = _values(own_metric, run)
    for row in rows:
        flow = ALL if row.flow == ALL else int(row.flow)
        value = result.get(flow)
        row.metrics[own_metric.name] = value
        if row.absent is not None:
            row.absent.pop(own_metric.name, None)
            if value is None:
                row.absent[own_metric.name] = why or _no_value(flow, result)


def _no_value(flow: int | str, entry: Mapping[Any, float | None]) -> str:
    if flow in entry or not entry:
        return "the function gives no value"
    return "it is computed per flow only" if flow == ALL else "it is computed for all flows only"


def _values(own_metric: OwnMetric, run: Run) -> tuple[dict[Any, float | None], str | None]:
    """The values by flow, or the reason why there are none."""
    try:
        given = own_metric.function(run)
        by_flow = given.items() if isinstance(given, Mapping) else [(ALL, given)]
        result: dict[Any, float | None] = {}
        for flow, value in by_flow:
            key = flow if flow == ALL else int(flow)
            result[key] = None if value is None else float(value)
            if result[key] is not None and not math.isfinite(result[key] or 0):
                result[key] = None
                return (
                    result,
                    f"the function gives {float(value)}, which is not a number that can be compared",
                )
        return result, None
    except (Exception, SystemExit) as error:
        file = own_metric.function.__code__.co_filename if hasattr(own_metric.function, "__code__") else ""
        line = _line(error, file)
        where = (
            f" ({Path(file).name}, line {line})"
            if line and own_metric.file
            else f" (line {line})"
            if line
            else ""
        )
        return {}, f"the function {own_metric.name} fails: {_describe_error(error)}{where}"
