"""The stats file of one run: its time, clock offsets, and the statistics that Pantheon printed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from narrows.errors import DataError, reason
from narrows.files import read_bytes

HEAD = "# Datalink statistics"
_TIME = re.compile(r"(Start|End) at: (.+)")
_OFFSET = re.compile(r"(Local|Remote) clock offset: (-?[0-9.]+) ms")
_FLOW = re.compile(r"-- Flow ([0-9]+):")
_THROUGHPUT = re.compile(r"Average throughput: (-?[0-9.]+) Mbit/s")
_DELAY = re.compile(r"95th percentile per-packet one-way delay: (-?[0-9.]+) ms")
_LOSS = re.compile(r"Loss rate: (-?[0-9.]+)%")
#: An offset of more than a day means that a clock was not set at all.
_LARGEST_OFFSET_MS = 86_400_000.0
#: Years whose times fit into 63 bits of nanoseconds since 1970, even after the longest run.
YEARS = range(1970, 2256)


@dataclass(frozen=True)
class Stats:
    """The content of a stats file; empty if there is none."""

    started_at: str | None = None
    ended_at: str | None = None
    #: By side, `local` and `remote`: the offset that NTP says must be added to its clock.
    offsets_ns: tuple[tuple[str, int], ...] = ()
    #: The statistics of the data, from their heading on.
    printed: str | None = None

    @property
    def offsets(self) -> dict[str, int] | None:
        """The offsets of both sides; Pantheon uses them only if it has both."""
        result = dict(self.offsets_ns)
        return result if len(result) == 2 else None


@dataclass(frozen=True)
class Printed:
    """The printed numbers of one flow or of all; None for a missing line."""

    throughput_mbps: float | None = None
    delay_p95_ms: float | None = None
    loss_percent: float | None = None


def read_stats(file: Path) -> Stats:
    """Reads a stats file; ignores unknown lines."""
    try:
        lines = read_bytes(file).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise DataError(f"{file}: can't be read: {reason(error)}") from None
    times: dict[str, str] = {}
    offsets: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if match := _TIME.fullmatch(line.strip()):
            times[match[1]] = _moment(file, number, match[2])
        elif match := _OFFSET.fullmatch(line.strip()):
            offsets[match[1].lower()] = _offset(file, number, match[2])
    block = None
    if HEAD in lines:
        rest = lines[lines.index(HEAD) :]
        end = next((i for i, line in enumerate(rest) if i and line.startswith("# ")), len(rest))
        block = "\n".join(rest[:end]).rstrip() + "\n"
    return Stats(times.get("Start"), times.get("End"), tuple(sorted(offsets.items())), block)


def _moment(file: Path, number: int, text: str) -> str:
    try:
        moment = datetime.strptime(text.strip(), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        raise DataError(
            f'{file}:{number}: "{text[:40]}" is not a time; expected YYYY-MM-DD HH:MM:SS in UTC'
        ) from None
    if moment.year not in YEARS:
        raise DataError(
            f"{file}:{number}: a run in the year {moment.year} can't be; expected {YEARS[0]} to {YEARS[-1]}"
        )
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _offset(file: Path, number: int, text: str) -> int:
    try:
        value = float(text)
    except ValueError:
        value = float("inf")
    if abs(value) > _LARGEST_OFFSET_MS:
        raise DataError(f"{file}:{number}: {text[:40]} ms is not a plausible clock offset")
    return round(value * 1e6)


def numbers_of(block: str) -> dict[str, Printed]:
    """The numbers in a block of statistics, by flow; `all` for the total."""
    result: dict[str, dict[str, float]] = {}
    current = "all"
    kinds = (("throughput_mbps", _THROUGHPUT), ("delay_p95_ms", _DELAY), ("loss_percent", _LOSS))
    for line in block.splitlines():
        if match := _FLOW.match(line):
            current = match[1]
        for name, pattern in kinds:
            if match := pattern.match(line):
                result.setdefault(current, {})[name] = float(match[1])
    return {flow: Printed(**values) for flow, values in result.items()}
