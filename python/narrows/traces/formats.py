"""Files of traces: detecting, reading and writing them.

The content decides the format, never the name. `docs/guide/traces.md` defines each format. The core has a
separate reader for the two formats that scenarios accept (mahimahi and CSV; Parquet is passed to it as CSV);
tests ensure that both accept the same files.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import numpy as np

from narrows.errors import DataError, UsageError
from narrows.files import read_decompressed, read_whole
from narrows.text import any_of, shorten
from narrows.traces.trace import (
    NS_PER_MS,
    NS_PER_S,
    AnyTrace,
    Delays,
    Integers,
    Opportunities,
    Rates,
    Trace,
)

#: Larger times and rates would overflow the core's integers, which need room for a repetition.
LARGEST = 2**62
#: Files above this size are not traces but mistakes.
LARGEST_FILE = 512 * 2**20

_DIGITS = re.compile(r"[0-9]{1,19}")
_ANY_DIGITS = re.compile(r"[0-9]+")
#: White space as defined by Unicode and the core; Python's definition includes control characters.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_NO_SPACE = str.maketrans("", "", _SPACE)
_DECIMAL = re.compile(r"[0-9]{1,19}(?:\.[0-9]{0,18})?(?:[eE][-+]?[0-9]{1,2})?")
_LOG_EVENT = re.compile(r"[0-9]+ [+#d-] ")
_RATE_HEADS = {"time_ns,rate_bps": (1, 1), "time_s,rate_mbps": (NS_PER_S, 10**6)}
_DELAY_HEADS = {"time_ns,delay_ns": (1, 1), "time_s,delay_ms": (NS_PER_S, NS_PER_MS)}
_HEADS = _RATE_HEADS | _DELAY_HEADS
#: The maximum fixed delay of a link.
LONGEST_DELAY_NS = 3600 * NS_PER_S


@dataclass(frozen=True)
class Format:
    """One format: its name, file suffix, description, and writer (if there is one)."""

    name: str
    suffix: str
    what: str
    writes: str | None  # "opportunities", "rates", or None


FORMATS = {
    item.name: item
    for item in (
        Format(
            "mahimahi", ".trace", "opportunities of 1500 bytes, one millisecond per line", "opportunities"
        ),
        Format("csv", ".csv", "lines of time and rate (or delay) under a heading", "rates"),
        Format("parquet", ".parquet", "columns time_ns and rate_bps (or delay_ns)", "rates"),
        Format("pensieve", ".txt", "lines of seconds and Mbit/s, separated by space", "rates"),
        Format("mahimahi-log", ".log", "log of a mahimahi link: its opportunities are taken", None),
    )
}


def _fail(path: Path, line: int, text: str) -> DataError:
    return DataError(f"{path}:{line}: {text}")


def read_rates(path: Path, form: str | None = None) -> tuple[Trace, str]:
    """The trace of rates or opportunities in a file, and the name of its format."""
    result, name = read(path, form)
    if isinstance(result, Delays):
        raise DataError(f"{path}: is a trace of delays, not of rates")
    return result, name


def read(path: Path, form: str | None = None) -> tuple[AnyTrace, str]:
    """The trace in a file, and the name of its format."""
    try:
        content = read_decompressed(path, "trace", LARGEST_FILE)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    name = form or detect(content, path)
    if name not in FORMATS:
        raise UsageError(f'unknown format "{shorten(name)}"; known: {any_of(FORMATS)}')
    return _READERS[name](content, path), name


def detect(content: bytes, path: Path) -> str:
    """The format of a file, by its content."""
    if content.startswith(b"PAR1"):
        return "parquet"
    first = ""
    for _, line in _lines(content, path):
        first = line.strip(_SPACE)
        if first and not line.startswith("#"):
            break
    if not first:
        raise DataError(f"{path}: is empty; a trace has at least one line")
    if "," in first:
        return "csv"
    if _LOG_EVENT.match(first + " "):
        return "mahimahi-log"
    if first.startswith("#"):
        raise DataError(f"{path}: holds nothing but comments")
    if _ANY_DIGITS.fullmatch(first):
        return "mahimahi"
    if len(first.split()) == 2:
        return "pensieve"
    raise _fail(
        path, 1, f'"{shorten(first)}" begins no known kind of trace; narrows trace convert --help lists them'
    )


def _text(content: bytes, path: Path) -> str:
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise DataError(f"{path}: is neither text nor Parquet") from None


def _lines(content: bytes, path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; the newline at the end of the file starts no further line."""
    lines = _text(content, path).split("\n")
    last = lines.pop()
    for number, line in enumerate(lines, 1):
        yield number, line.removesuffix("\r")
    if last:
        yield len(lines) + 1, last


def _read_mahimahi(content: bytes, path: Path) -> Opportunities:
    times: list[int] = []
    before = 0
    for number, line in _lines(content, path):
        if not _ANY_DIGITS.fullmatch(line):
            what = "an empty line" if not line.strip() else f'"{shorten(line)}"'
            raise _fail(path, number, f"{what} is not a time; each line is a whole number of milliseconds")
        # Python refuses to parse numbers of thousands of digits, so their length is checked first.
        time = int(line) if len(line.lstrip("0")) < 20 else LARGEST
        if time > LARGEST // NS_PER_MS:
            raise _fail(path, number, f"the time {shorten(line)} ms is too large")
        if time < before:
            raise _fail(path, number, f"the time {time} ms comes before {before} ms of the line above")
        times.append(time)
        before = time
    if not times:
        raise DataError(f"{path}: is empty; a trace has at least one line")
    if times[-1] == 0:
        raise DataError(f"{path}: the last time is 0 ms, so the trace has no length; it must be above 0")
    return Opportunities(np.array(times, dtype=np.int64))


def _number(text: str, scale: int, path: Path, line: int, what: str) -> int:
    """A number times `scale` as a whole number, with halves rounded up."""
    pattern = _DIGITS if scale == 1 else _DECIMAL
    bare = text.strip(_SPACE)
    if not pattern.fullmatch(bare):
        kind = "whole number" if scale == 1 else "number"
        raise _fail(path, line, f'the {what} "{shorten(text)}" is not a {kind} of 0 or more')
    value = int((Decimal(bare) * scale).quantize(Decimal(1), ROUND_HALF_UP))
    if value > LARGEST:
        raise _fail(path, line, f'the {what} "{shorten(text)}" is too large')
    return value


def _columns(rows: list[tuple[int, int, int]], path: Path) -> tuple[Integers, Integers, int]:
    """Times, values and end from rows (line, time in ns, value) of which the last marks the end."""
    if len(rows) < 2:
        raise DataError(
            f"{path}: has {len(rows) or 'no'} row{'' if len(rows) == 1 else 's'};"
            " a trace needs two at least: the last row marks its end"
        )
    line, first, _ = rows[0]
    if first:
        raise _fail(path, line, f"the first time is {first} ns; it must be 0")
    for (_, before, _), (line, time, _) in itertools.pairwise(rows):
        if time <= before:
            raise _fail(path, line, f"the time {time} ns does not come after {before} ns of the row above")
    times = np.array([time for _, time, _ in rows], dtype=np.int64)
    values = np.array([value for _, _, value in rows[:-1]], dtype=np.int64)
    return times[:-1], values, int(times[-1])


def _rates(rows: list[tuple[int, int, int]], path: Path) -> Rates:
    rates = Rates(*_columns(rows, path))
    if not rates.rate_bps.any():
        raise DataError(f"{path}: every rate is 0, so the trace lets no packet pass")
    return rates


def _delays(rows: list[tuple[int, int, int]], path: Path) -> Delays:
    for line, _, delay in rows:
        if delay > LONGEST_DELAY_NS:
            raise _fail(path, line, f"the delay {delay} ns is too large; an hour is allowed")
    return Delays(*_columns(rows, path))


def _read_csv(content: bytes, path: Path) -> Rates | Delays:
    rows: list[tuple[int, int, int]] = []
    scales: tuple[int, int] | None = None
    what = "rate"
    for number, line in _lines(content, path):
        if scales is None:
            if line.startswith("#"):
                continue
            heading = line.translate(_NO_SPACE).lower()
            scales = _HEADS.get(heading)
            if scales is None:
                known = f"{any_of(_RATE_HEADS)} (delays: {any_of(_DELAY_HEADS)})"
                raise _fail(path, number, f'the heading must be {known}, not "{shorten(line)}"')
            what = "delay" if heading in _DELAY_HEADS else "rate"
            continue
        cells = line.split(",")
        if len(cells) != 2:
            raise _fail(path, number, f'"{shorten(line)}" is not a time and a {what}, separated by a comma')
        time = _number(cells[0], scales[0], path, number, "time")
        rows.append((number, time, _number(cells[1], scales[1], path, number, what)))
    return _delays(rows, path) if what == "delay" else _rates(rows, path)


def _read_pensieve(content: bytes, path: Path) -> Rates:
    """The rate of a row holds since the previous row, as in Pensieve's simulator; times may start
    anywhere.
    """
    rows: list[tuple[int, int, int]] = []
    for number, line in _lines(content, path):
        cells = line.split()
        if len(cells) != 2:
            raise _fail(path, number, f'"{shorten(line)}" is not a time and a rate, separated by space')
        time = _number(cells[0], NS_PER_S, path, number, "time")
        rows.append((number, time, _number(cells[1], 10**6, path, number, "rate")))
    start = rows[0][1] if rows else 0
    held = [rate for _, _, rate in rows[1:]] + [0]
    moved = [(line, time - start, rate) for (line, time, _), rate in zip(rows, held, strict=True)]
    return _rates(moved, path)


def _read_parquet(content: bytes, path: Path) -> Rates | Delays:
    from narrows import _native

    # The core reads it from the file, since it has the library.
    if read_whole(path, "trace", LARGEST_FILE) != content:
        raise DataError(f"{path}: is Parquet within a compressed file; decompress it first")
    try:
        times, values, name = _native.read_trace(str(path))
    except ValueError as error:
        raise DataError(str(error)) from None
    pairs = zip(times.tolist(), values.tolist(), strict=True)
    # A row of a table has no line; its number from 1 is used instead.
    rows = [(row, time, value) for row, (time, value) in enumerate(pairs, 1)]
    for row, time, value in rows:
        if max(time, value) > LARGEST:
            raise _fail(path, row, f"the number {max(time, value)} is too large")
    return _delays(rows, path) if name == "delay_ns" else _rates(rows, path)


def _read_log(content: bytes, path: Path) -> Opportunities:
    times: list[int] = []
    base = 0
    for number, line in _lines(content, path):
        match = re.fullmatch(r"# base timestamp: ([0-9]{1,19})\s*", line)
        if match:
            base = int(match[1])
        if line.startswith("#") or not line:
            continue
        cells = line.split()
        if len(cells) < 3 or not _DIGITS.fullmatch(cells[0]) or cells[1] not in "+#d-":
            raise _fail(path, number, f'"{shorten(line)}" is not an event of a mahimahi log')
        if cells[1] != "#":
            continue
        time = int(cells[0]) - base
        if time < (times[-1] if times else 0):
            raise _fail(path, number, f"the time {cells[0]} ms comes before that of an event above")
        times.append(time)
    if not times or times[-1] == 0:
        raise DataError(f"{path}: the log has no delivery opportunity (lines such as 17 # 1504)")
    return Opportunities(np.array(times, dtype=np.int64))


_READERS: dict[str, Callable[[bytes, Path], AnyTrace]] = {
    "mahimahi": _read_mahimahi,
    "csv": _read_csv,
    "parquet": _read_parquet,
    "pensieve": _read_pensieve,
    "mahimahi-log": _read_log,
}


def mahimahi_text(trace: Opportunities) -> str:
    """The content of a file of opportunities."""
    return "".join(f"{time}\n" for time in trace.times_ms.tolist())


def _values(trace: Rates | Delays) -> tuple[Integers, str]:
    return (trace.rate_bps, "rate_bps") if isinstance(trace, Rates) else (trace.delay_ns, "delay_ns")


def csv_text(trace: Rates | Delays) -> str:
    """The content of a file of rates or delays, in base units; the last row marks the end."""
    values, name = _values(trace)
    rows = zip(trace.time_ns.tolist(), values.tolist(), strict=True)
    lines = [f"time_ns,{name}", *(f"{time},{value}" for time, value in rows), f"{trace.end_ns},0"]
    return "\n".join(lines) + "\n"


def pensieve_text(trace: Rates) -> str:
    """The content of a Pensieve file: seconds, and the exact rate in Mbit/s that holds since the
    row above.
    """
    ends = [*trace.time_ns.tolist()[1:], trace.end_ns]
    rates = trace.rate_bps.tolist()
    lines = [f"{_exact(0, 9)} {_exact(rates[0], 6)}"]
    lines += [f"{_exact(end, 9)} {_exact(rate, 6)}" for end, rate in zip(ends, rates, strict=True)]
    return "\n".join(lines) + "\n"


def _exact(value: int, digits: int) -> str:
    """`value` / 10^`digits` without rounding."""
    whole, part = divmod(value, 10**digits)
    return f"{whole}.{part:0{digits}d}".rstrip("0").rstrip(".") if part else str(whole)


def write(trace: AnyTrace, path: Path, form: str) -> None:
    """Writes a trace of the kind that the format contains, atomically."""
    from narrows import _native

    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        if form == "parquet" and not isinstance(trace, Opportunities):
            times = np.append(trace.time_ns, trace.end_ns)
            values, name = _values(trace)
            _native.write_trace(str(partial), times, np.append(values, 0), name)
        else:
            partial.write_text(text_of(trace, form), encoding="utf-8", newline="\n")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise DataError(f"{path}: can't be written: {error.strerror or error}") from None


def text_of(trace: AnyTrace, form: str) -> str:
    """The content of a text file."""
    if form == "mahimahi" and isinstance(trace, Opportunities):
        return mahimahi_text(trace)
    if form == "csv" and not isinstance(trace, Opportunities):
        return csv_text(trace)
    if form == "pensieve" and isinstance(trace, Rates):
        return pensieve_text(trace)
    raise ValueError(f"a trace of {type(trace).__name__} can't be written as {form}")
