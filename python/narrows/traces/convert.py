"""From one format to another."""

from __future__ import annotations

from pathlib import Path

from narrows.errors import DataError, UsageError
from narrows.text import any_of, shorten
from narrows.traces.formats import FORMATS, write
from narrows.traces.trace import NS_PER_MS, AnyTrace, Delays, Opportunities, Rates, bin_rates, opportunities

#: The default bins in which opportunities become rates.
DEFAULT_BIN_NS = 100 * NS_PER_MS
_BY_SUFFIX = {item.suffix: item.name for item in FORMATS.values() if item.writes and item.name != "pensieve"}


def format_for(path: Path, wanted: str | None) -> str:
    """The output format: the requested one, or the one that the file name implies."""
    writable = [item.name for item in FORMATS.values() if item.writes]
    if wanted is None:
        if path.suffix in _BY_SUFFIX:
            return _BY_SUFFIX[path.suffix]
        raise UsageError(
            f"{path}: the name does not say which format to write;"
            f" end it in {any_of(_BY_SUFFIX)}, or name the format: {any_of(writable)}"
        )
    if wanted not in writable:
        raise UsageError(f'"{shorten(wanted)}" can\'t be written; formats: {any_of(writable)}')
    return wanted


def as_kind(trace: AnyTrace, form: str, bin_ns: int = DEFAULT_BIN_NS) -> AnyTrace:
    """The trace in the kind that a format contains."""
    if isinstance(trace, Delays):
        if form not in ("csv", "parquet"):
            raise UsageError(f"a trace of delays can't be written as {form}; formats: csv or parquet")
        return trace
    if FORMATS[form].writes == "opportunities":
        return trace if isinstance(trace, Opportunities) else opportunities(trace)
    return trace if isinstance(trace, Rates) else bin_rates(trace, bin_ns)


def check_target(path: Path, *, force: bool) -> None:
    """Raises `DataError` if a trace can't be written there."""
    if path.is_dir():
        raise DataError(f"{path}: is a folder; name a file")
    if path.exists() and not force:
        raise DataError(f"{path}: exists already; choose another name or add --force")


def save(trace: AnyTrace, path: Path, form: str, *, force: bool, bin_ns: int = DEFAULT_BIN_NS) -> AnyTrace:
    """Writes a trace in a format; returns the trace that was actually written."""
    check_target(path, force=force)
    result = as_kind(trace, form, bin_ns)
    write(result, path, form)
    return result
