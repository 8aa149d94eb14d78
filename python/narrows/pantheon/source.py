"""A Pantheon data folder: its metadata, and the logs of each run.

| file | content |
| --- | --- |
| `pantheon_metadata.json` | the options of the test, its schemes, the git summary |
| `SCHEME_datalink_runN.log`, `SCHEME_acklink_runN.log` | merged logs, which are what its analysis reads |
| `SCHEME_datalink_runN_flowF_uidU.log.egress`, `.ingress` (and `acklink`) | raw logs of the tunnel |
| `SCHEME_stats_runN.log` | start, end, clock offsets, and the statistics once it was analysed |

Logs of the emulated link (`SCHEME_mm_...`) are not needed: its capacity is in the merged log, and its packets
have no identity.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from narrows.errors import DataError, UsageError, reason
from narrows.files import read_text
from narrows.pantheon.stats import Stats, read_stats

METADATA = "pantheon_metadata.json"
DATA, ACK = "datalink", "acklink"
_MERGED = re.compile(r"(.+)_(datalink|acklink)_run([0-9]{1,9})\.log")
_RAW = re.compile(r"(.+)_(datalink|acklink)_run([0-9]{1,9})_flow([0-9]{1,5})_uid(.+)\.log\.(egress|ingress)")
_STATS = re.compile(r"(.+)_stats_run([0-9]{1,9})\.log")
#: Pantheon numbers its flows from 1; our records have room for this many.
MOST_FLOWS = 65_535
#: Maximum nesting of lists in metadata, which are flat; deeper ones are refused before any code recurses into
#: them.
MOST_LEVELS = 20
_TOO_DEEP = "is nested more deeply than metadata are"
#: Half of a surrogate pair, by which JSON writes characters beyond 16 bits.
_LONE = re.compile("[\ud800-\udfff]")
#: The longest plausible run, in seconds: a week, as for the logs. Pantheon's runs last a minute.
LONGEST_S = 7 * 86_400
#: More runs of a scheme than this are a mistake: each announced run without logs is a failed cell.
MOST_RUNS = 1000


@dataclass
class Logs:
    """The logs of one direction of one run."""

    merged: Path | None = None
    #: By flow: packets sent by one end, and received by the other.
    raw: dict[int, dict[str, Path]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.merged is not None or bool(self.raw)


@dataclass
class Run:
    """One run of one scheme, with its existing files."""

    scheme: str
    number: int
    data: Logs = field(default_factory=Logs)
    ack: Logs = field(default_factory=Logs)
    stats: Stats = field(default_factory=Stats)


@dataclass(frozen=True)
class Source:
    """A data folder."""

    path: Path
    #: Empty if the folder has none.
    metadata: dict[str, Any]
    #: The text of the metadata, as in the file.
    written: str
    schemes: list[str]
    runs: list[Run]

    @property
    def runtime_ns(self) -> int | None:
        """Intended length of each run."""
        value = self.metadata.get("runtime")
        return None if value is None else int(value * 10**9)

    @property
    def flows(self) -> int:
        """Flows of each run; 0 if their intended number is unknown."""
        return _count(self.metadata.get("flows"), 0)

    @property
    def remote(self) -> bool:
        """True if two hosts took part."""
        return self.metadata.get("mode") == "remote"

    @property
    def sender_is_remote(self) -> bool:
        """True if data flowed from the remote host to the local one."""
        return self.metadata.get("sender_side") == "remote"


def read_source(path: Path, raw: Path | None = None, wanted: list[str] | None = None) -> Source:
    """Examines a data folder, and a folder of raw logs if they are elsewhere."""
    metadata, written = _metadata(path)
    runs = _runs(path, raw)
    texts = sorted({scheme for scheme, _ in runs})
    schemes = [str(name) for name in metadata.get("cc_schemes") or []]
    schemes += [name for name in texts if name not in schemes]
    if not texts:
        raise DataError(
            f"{path}: has no logs of Pantheon's tunnel (SCHEME_datalink_runN.log, or raw logs ending in"
            " .log.egress and .log.ingress); with --raw they may lie in another folder"
        )
    if wanted is not None:
        unknown = [name for name in wanted if name not in schemes]
        if unknown:
            raise UsageError(f"{path}: has no scheme {unknown[0]}; it has {', '.join(schemes)}")
        schemes = [name for name in schemes if name in wanted]
    for scheme in schemes:
        first = _count(metadata.get("start_run_id"), 1)
        for number in range(first, first + _count(metadata.get("run_times"), 0)):
            runs.setdefault((scheme, number), Run(scheme, number))
    ordered = sorted((key for key in runs if key[0] in schemes), key=lambda key: (key[1], key[0]))
    return Source(path, metadata, written, schemes, [runs[key] for key in ordered])


def _count(value: Any, otherwise: int) -> int:
    """A number of flows or runs; `None` if it is not one."""
    usable = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_FLOWS
    return int(value) if usable else otherwise


def _metadata(path: Path) -> tuple[dict[str, Any], str]:
    file = path / METADATA
    try:
        text = read_text(file)
    except FileNotFoundError:
        if not path.is_dir():
            raise DataError(f"{path}: does not exist") from None
        return {}, ""  # A test that was aborted leaves none.
    except NotADirectoryError:
        raise DataError(f"{path}: is not a folder; name the data folder with its logs") from None
    except (OSError, UnicodeDecodeError) as error:
        told = reason(error) if isinstance(error, OSError) else str(error)
        raise DataError(f"{file}: can't be read: {told}") from None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        wrong = _TOO_DEEP if isinstance(error, RecursionError) else f"is damaged: {error}"
        raise DataError(f"{file}: {wrong}; without this file its logs can still be read") from None
    if not isinstance(content, dict) or not isinstance(content.get("cc_schemes", []), list):
        raise DataError(f"{file}: is not Pantheon's metadata; without this file its logs can still be read")
    runtime = content.get("runtime")
    if runtime is not None and not _is_time(runtime):
        raise DataError(
            f'{file}: "runtime" is {json.dumps(runtime)[:40]}, not a number of seconds of at most a week;'
            " without this file its logs can still be read"
        )
    for key, value in content.items():
        if why := _not_for_records(key) or _not_for_records(value):
            raise DataError(
                f"{file}: {json.dumps(key)[:40]}: {why}; without this file its logs can still be read"
            )
    run_times = content.get("run_times")
    if isinstance(run_times, int) and run_times > MOST_RUNS:
        raise DataError(
            f'{file}: "run_times" promises more than {MOST_RUNS} runs of each scheme, which is implausible;'
            " without this file its logs can still be read"
        )
    return content, text


def _not_for_records(content: Any) -> str | None:
    """Why a value of the metadata can't be kept; `json` reads more than can be written."""
    level = [content]
    for _ in range(MOST_LEVELS):
        for text in level:
            if isinstance(text, str) and _LONE.search(text):
                return "has half a character (a lone surrogate), which records can't hold"
            if isinstance(text, int | float) and not -(2**63) <= text < 2**63:
                return "is not a number that records can tell"
        level = [inner for item in level for inner in _inside(item)]
    return _TOO_DEEP if level else None


def _inside(value: Any) -> list[Any]:
    """The members of a JSON list or object."""
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else []


def _is_time(value: Any) -> bool:
    """True if this is a plausible duration of a run in seconds."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= LONGEST_S


def _runs(path: Path, raw: Path | None) -> dict[tuple[str, int], Run]:
    runs: dict[tuple[str, int], Run] = {}
    stats: dict[tuple[str, int], Path] = {}
    for folder in dict.fromkeys([path, raw or path]):
        try:
            names = sorted(entry.name for entry in folder.iterdir())
        except OSError as error:
            raise DataError(f"{folder}: can't be read: {reason(error)}") from None
        for name in names:
            if ".log" in name:
                _in_utf_8(folder / name)
            if (match := _MERGED.fullmatch(name)) and not match[1].endswith("_mm"):
                _logs(runs, match).merged = folder / name
            elif match := _RAW.fullmatch(name):
                _add_raw(_logs(runs, match), int(match[4]), match[6], folder / name)
            elif match := _STATS.fullmatch(name):
                stats[match[1], int(match[2])] = folder / name
    for key, file in stats.items():
        if key in runs:
            runs[key].stats = read_stats(file)
    return runs


def _in_utf_8(file: Path) -> None:
    """Raises for a log whose name could not be written into a record."""
    try:
        str(file).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(file).decode(errors="backslashreplace")
        raise DataError(f"{shown}: is not valid UTF-8, so records can't hold it; rename it") from None


def _logs(runs: dict[tuple[str, int], Run], match: re.Match[str]) -> Logs:
    key = (match[1], int(match[3]))
    run = runs.setdefault(key, Run(*key))
    return run.data if match[2] == DATA else run.ack


def _add_raw(logs: Logs, flow: int, side: str, file: Path) -> None:
    pair = logs.raw.setdefault(flow, {})
    if side in pair:
        raise DataError(
            f"{file}: there is another {side} log of the same flow, {pair[side].name}; keep those of one test"
            " in a separate folder"
        )
    if not 0 < flow <= MOST_FLOWS:
        raise DataError(f"{file}: flow {flow} does not exist; flows are numbered from 1 to {MOST_FLOWS}")
    pair[side] = file
