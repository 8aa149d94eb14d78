"""Metrics of films in programs that log their segments, in addition to the built-in ones.

A player logs when the picture moves and stalls, and the segments that it fetched (the key `segments` of its
manifest). Only differences of its times count; events after the stop of its flow are ignored.
"""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from narrows.campaign.json_files import read_run
from narrows.campaign.own_metrics import NOT_REPORTED
from narrows.documents.resolved import Cell, read_cell
from narrows.documents.results import Measured, Metric
from narrows.errors import DataError
from narrows.files import read_whole
from narrows.scenario.programs.playback import METRICS, describe

BEGUN, PLAYING, STALLED, STOPPED = "begun", "playing", "stalled", "stopped"
#: Larger files are not read.
MOST_BYTES = 20_000_000
ALL = "all"
NEVER = "the picture never moved"


@dataclass
class Playback:
    """The log of a player, in ns since the command to play; events after `end_ns` are ignored."""

    end_ns: int
    #: When the picture first moved; None if it never did.
    moved_ns: int | None = None
    #: When it stalled, and moved again (or ended).
    stalls: list[tuple[int, int]] = field(default_factory=list)
    #: Segments as they arrived: time, number, bitrate, duration in ns.
    segments: list[tuple[int, int, float, int]] = field(default_factory=list)
    #: Samples of the buffer ahead of the picture: time, ns of film.
    buffer: list[tuple[int, int]] = field(default_factory=list)

    def film(self) -> list[tuple[float, int]]:
        """Bitrate and duration of the segments in the order of the film."""
        last = {number: (bitrate, duration) for _, number, bitrate, duration in self.segments}
        return [last[number] for number in sorted(last)]


def of_run(folder: Path, cell: Cell) -> dict[int, Playback | str]:
    """The playback of each flow that has a log in a record, or the reason why it is unknown."""
    result: dict[int, Playback | str] = {}
    for flow in cell.flows:
        if flow.program and flow.segments_file:
            path = folder / "logs" / f"flow-{flow.number}-{flow.program.receiver}" / flow.segments_file
            result[flow.number] = _read(path, (flow.stop_ns or cell.duration_ns) - flow.start_ns)
    return result


def add(cells: Iterable[tuple[Path, Measured]]) -> list[Metric]:
    """Adds these metrics to measured records, as `program_reports.add` does. Returns their descriptions; none
    if no flow has them.
    """
    listed = [(measured, _of_run(path)) for path, measured in cells]
    if not any(values for _, values in listed):
        return []
    for measured, values in listed:
        for row in measured.flows:
            reasons = measured.absent.setdefault(row.flow, {})
            for name, *_ in METRICS:
                value = values.get(row.flow, {}).get(name, NOT_REPORTED)
                row.metrics[name] = None if isinstance(value, str) else value
                if isinstance(value, str):
                    reasons[name] = value
    return describe()


def _of_run(folder: Path) -> dict[str, dict[str, float | str]]:
    """The values of a run by flow and metric, or the reasons why there are none."""
    cell = read_cell(read_run(folder).cell)
    played = of_run(folder, cell)
    result = {str(flow): _values(item) for flow, item in played.items()}
    tested = [flow.number for flow in cell.flows if not flow.background]
    of_tested = [result[str(flow)] for flow in tested if flow in played]
    if not of_tested:
        return result
    row: dict[str, float | str] = {}
    for name, _, _, _, how, _ in METRICS:
        values = [entry[name] for entry in of_tested]
        numbers = [value for value in values if not isinstance(value, str)]
        if len(of_tested) < len(tested):
            row[name] = "only some of the flows are players"
        elif len(numbers) < len(values):
            row[name] = next(value for value in values if isinstance(value, str))
        else:
            row[name] = sum(numbers) if how == "sum" else statistics.fmean(numbers)
    return result | {ALL: row}


def _values(playback: Playback | str) -> dict[str, float | str]:
    names = [name for name, *_ in METRICS]
    if isinstance(playback, str):
        return dict.fromkeys(names, playback)
    film = playback.film()
    result: dict[str, float | str] = dict.fromkeys(names, NEVER)
    if playback.moved_ns is not None and playback.end_ns > playback.moved_ns:
        stalled = sum(end - begin for begin, end in playback.stalls)
        ratio = stalled / (playback.end_ns - playback.moved_ns)
        result |= dict(zip(names, (playback.moved_ns, len(playback.stalls), ratio), strict=False))
    if film:
        length = sum(duration for _, duration in film)
        pairs = itertools.pairwise(bitrate for bitrate, _ in film)
        result[names[3]] = sum(bitrate * duration for bitrate, duration in film) / length
        result[names[4]] = sum(a != b for a, b in pairs)
    else:
        result |= dict.fromkeys(names[3:], "no segment has arrived")
    return result


def _read(path: Path, span_ns: int) -> Playback | str:
    """The lines of a player until its flow stopped, `span_ns` after its start."""
    name = f"the file {path.name} of the player"
    try:
        lines = read_whole(path, "file", MOST_BYTES).decode(errors="replace").splitlines()
    except DataError as error:
        return f"{name} {error}" if path.is_file() else f"{name} does not exist"
    told = []
    for line in lines:
        try:
            event = json.loads(line)
            told.append((int(event["at_ns"]), event))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    told.sort(key=lambda pair: pair[0])
    begun = next((at for at, item in told if item.get("state") == BEGUN), None)
    if begun is None:
        return f"{name} does not say when it began"
    stopped = next((at for at, item in told if item.get("state") == STOPPED), None)
    playback = Playback(span_ns if stopped is None else min(stopped - begun, span_ns))
    stands: int | None = None
    for at, event in ((at - begun, item) for at, item in told):
        if at > playback.end_ns:
            break
        if event.get("state") == PLAYING:
            if stands is not None:
                playback.stalls.append((stands, at))
            playback.moved_ns, stands = at if playback.moved_ns is None else playback.moved_ns, None
        elif event.get("state") == STALLED and playback.moved_ns is not None and stands is None:
            stands = at
        elif "segment" in event:
            try:
                segment = (int(event["segment"]), float(event["bitrate_bps"]), int(event["duration_ns"]))
            except (ValueError, KeyError, TypeError):
                return f"{name} has a segment without its bitrate_bps or duration_ns"
            if segment[2] <= 0:
                return f"{name} has a segment without a duration"
            playback.segments.append((at, *segment))
        elif "buffer_ns" in event:
            playback.buffer.append((at, int(event["buffer_ns"])))
    if stands is not None:
        playback.stalls.append((stands, playback.end_ns))
    return playback
