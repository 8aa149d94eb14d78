"""Logs of mahimahi's links: `mm-link up.trace down.trace --uplink-log=up.log --downlink-log=down.log`.

One log is one direction of the data; a second one of the same name with `up` for `down` (or the other way
round) is its way back. The direction that carried more bytes has the data. Times are whole milliseconds,
and all packets are one flow, since the logs do not tell flows apart."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from narrows.errors import DataError, NarrowsError
from narrows.formats.runs import NEVER, Flow, MeasuredRun, note

PATTERNS = ("*.log",)
_WAY = re.compile(r"(up|down)(?:link)?", re.IGNORECASE)
_ROUNDED = "The logs have whole milliseconds: delays may be off by one, and packets leave in groups."


def read(files: list[Path], scheme: str | None = None) -> list[MeasuredRun]:
    """One run per pair of logs, or per log; raises `DataError` where a file is no log of mm-link."""
    pairs: dict[tuple[Path, str], dict[str, Path]] = {}
    for file in files:
        match = _WAY.search(file.name)
        way = match[1].lower() if match else "up"
        rest = file.name if match is None else file.name[: match.start()] + file.name[match.end() :]
        taken = pairs.setdefault((file.parent, rest), {})
        if way in taken:
            taken = pairs.setdefault((file.parent, file.name), {})
        taken[way] = file
    return [_run(list(pair.values()), scheme, rest) for (_, rest), pair in pairs.items()]


def _run(files: list[Path], scheme: str | None, rest: str) -> MeasuredRun:
    links = [(_read(file), file) for file in files]
    links.sort(key=lambda link: -int(link[0]["size_bytes"].sum()))
    data = links[0][0]
    back = links[1][0] if len(links) > 1 else None
    if back is not None:
        for name in ("sent_ns", "arrived_ns", "opportunity_ns"):
            moved = back[name] + (back["base_ns"] - data["base_ns"])
            back[name] = moved if name != "arrived_ns" else _kept(back[name], moved)
    stem = re.sub(r"[-_. ]*$", "", rest.partition(".")[0]) or links[0][1].name.partition(".")[0]
    return MeasuredRun(
        scheme or stem,
        [file for _, file in links],
        [Flow(1, scheme or stem)],
        data=data,
        back=back,
        reasons=[note("milliseconds", _ROUNDED)],
        facts={"data": links[0][1].name},
    )


def _kept(arrived: Any, moved: Any) -> Any:
    import numpy as np

    return np.where(arrived == NEVER, NEVER, moved)


def _read(file: Path) -> dict[str, Any]:
    from narrows import _native

    try:
        return dict(_native.read_mahimahi(file))
    except ValueError as error:
        raise DataError(str(error)) from None
    except OSError as error:
        raise NarrowsError(str(error)) from None
