"""Times in logs of `ss`: lines of `date` between snapshots, or the prefix that `ts` adds to every line.

| form | from |
| --- | --- |
| `1700000000.123456789`, `1700000000` | `date +%s.%N`, `date +%s`, `ts %.s` |
| `1700000000123` (or 16 or 19 digits) | `date +%s%3N`, `%s%6N`, `%s%N` |
| `2023-11-14T22:13:20,123+00:00` | `date -Ins`, `date -Iseconds`, `ts '%F %.T'` |
| `Tue Nov 14 22:13:20 UTC 2023`, `Tue 14 Nov 2023 10:13:20 PM UTC` | `date` |
| `Nov 14 22:13:20` | `ts` |
| `22:13:20.123` | `date +%T.%N`, `ts %.T`, `ts -s` |
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

_DAY = 86_400.0
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = r"(?P<h>\d{1,2}):(?P<m>\d\d):(?P<s>\d\d)(?P<part>[.,]\d{1,12})?"
_MONTH, _DATE = r"(?P<month>[a-z]{3})", r"(?P<day>\d{1,2})"
_HALF = r"(?: (?P<half>[AP]M))?"
_ZONE = r"(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d|[A-Z]{2,5})"
_NUMBER = re.compile(r"\[?(?P<whole>\d{9,10}|\d{13}|\d{16}|\d{19})(?P<part>\.\d{1,12})?\]?(?=\s|$)")
_DATES = tuple(
    re.compile(rf"\[?{form}\]?(?=\s|$)", re.IGNORECASE)
    for form in (
        rf"(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d)[T ]{_CLOCK} ?(?:{_ZONE}(?=[\s\]]|$))?",
        rf"[a-z]{{3}} {_MONTH} +{_DATE} {_CLOCK}{_HALF} {_ZONE} (?P<year>\d{{4}})",
        rf"[a-z]{{3}} +{_DATE} {_MONTH} (?P<year>\d{{4}}) {_CLOCK}{_HALF} {_ZONE}",
        rf"{_MONTH} +{_DATE} {_CLOCK}",
        _CLOCK,
    )
)


def split_time(line: str) -> tuple[float | None, bool, str]:
    """The time at the start of a line in seconds, whether it is since 1970 (UTC), and the rest of the line.
    Without a time: None and the line.
    """
    if match := _NUMBER.match(line):
        whole = match["whole"]
        seconds = int(whole) / 10.0 ** max(len(whole) - 10, 0) + float(match["part"] or 0)
        return seconds, True, line[match.end() :].strip()
    for form in _DATES:
        if match := form.match(line):
            pair = _moment(_Parts(**match.groupdict()))
            if pair is not None:
                return *pair, line[match.end() :].strip()
    return None, False, line


@dataclass(frozen=True)
class _Parts:
    """The parts of a time; forms lack some."""

    h: str
    m: str
    s: str
    part: str | None
    half: str | None = None
    year: str | None = None
    month: str | None = None
    day: str | None = None
    zone: str | None = None


def _moment(parts: _Parts) -> tuple[float, bool] | None:
    """Seconds, and whether they are since 1970 in UTC; None if the time is invalid."""
    hour = int(parts.h)
    half = (parts.half or "").upper()
    if half:
        hour = hour % 12 + (12 if half == "PM" else 0)
    clock = hour * 3600 + int(parts.m) * 60 + int(parts.s)
    clock_s = clock + float((parts.part or "0").replace(",", "."))
    month = parts.month
    if month is None:
        return clock_s, False
    number = (
        int(month) if month.isdigit() else _MONTHS.index(month.lower()) + 1 if month.lower() in _MONTHS else 0
    )
    # A leap year, for logs without a year.
    year = parts.year or "2000"
    try:
        day = datetime(int(year), number, int(parts.day or 0), tzinfo=UTC)
    except ValueError:
        return None
    zone = parts.zone or ""
    seconds = day.timestamp() + clock_s
    if zone[:1] in {"+", "-"}:
        offset = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
        return (seconds - offset if zone[0] == "+" else seconds + offset), True
    return seconds, bool(parts.year) and zone.upper() in {"", "Z", "UTC", "GMT"}


def past_midnight(before: float, now: float) -> float:
    """Moves a time of day after `before`, which may include days: a clock without a date restarts at
    midnight. Other values are returned unchanged.
    """
    if now >= _DAY:
        return now
    days = before // _DAY * _DAY
    now = now + days
    return now + _DAY if now < before - _DAY / 2 else now


def spread(times: Iterable[float]) -> list[float]:
    """Spreads the times of snapshots in whole seconds evenly over each second. The first second may lack its
    start and the last its end, so these use the step of the fullest second.
    """
    groups: list[list[float]] = []
    for time in times:
        if groups and groups[-1][0] == time:
            groups[-1].append(time)
        else:
            groups.append([time])
    step = 1.0 / max((len(group) for group in groups), default=1)
    values: list[float] = []
    for place, group in enumerate(groups):
        second, count = group[0], len(group)
        if place == 0 and len(groups) > 1:
            values += [second + 1.0 - (count - k) * step for k in range(count)]
        else:
            own = step if place == len(groups) - 1 else 1.0 / count
            values += [second + k * own for k in range(count)]
    return values
