"""A run in a terminal: a table of its flows, one of its queues, and charts of the last seconds, line by line,
so that they fit any terminal.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.text import Text

from narrows.documents.live import FlowReading, QueueReading, Reading
from narrows.documents.resolved import Cell
from narrows.live.canvas import chart
from narrows.live.watch import Watched
from narrows.text import plural

#: The charts show the last seconds.
HISTORY_S = 30.0
#: Colours of flows, in their order.
COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red")
#: Lines of the charts, at least and at most, and the width below which there is a single chart.
_LEAST_CHART, _MOST_CHART, _TWO_CHARTS = 5, 14, 64
#: Lines of the table of flows beside charts, at least.
_LEAST_FLOWS = 3
_LONGEST_NAME = 16
_S = 1e9
_ABSENT = "-"


Shown = TypeVar("Shown")


@dataclass(frozen=True)
class _Column(Generic[Shown]):
    title: str
    width: int
    show: Callable[[Shown], str]


def _number(value: float | None, factor: float, digits: int) -> str:
    return _ABSENT if value is None else f"{value / factor:.{digits}f}"


#: The columns of flows after number and name; the last ones are left out where there is no room.
_COLUMNS: tuple[_Column[FlowReading], ...] = (
    _Column("Mbit/s", 8, lambda flow: _number(flow.throughput_bps, 1e6, 2)),
    _Column("queue ms", 8, lambda flow: _number(flow.queueing_ns, 1e6, 1)),
    _Column("loss %", 7, lambda flow: _number(flow.loss_ratio, 0.01, 2)),
    _Column("window kB", 9, lambda flow: _number(flow.cwnd_bytes, 1e3, 1)),
    _Column("RTT ms", 8, lambda flow: _number(flow.srtt_ns, 1e6, 1)),
)
#: The same of queues, after the name.
_QUEUE_COLUMNS: tuple[_Column[QueueReading], ...] = (
    _Column("Mbit/s", 8, lambda queue: _number(queue.throughput_bps, 1e6, 2)),
    _Column("of rate", 8, lambda queue: _number(queue.rate_bps, 1e6, 2)),
    _Column("packets", 7, lambda queue: str(queue.queued_packets)),
    _Column("kB", 8, lambda queue: _number(queue.queued_bytes, 1e3, 1)),
    _Column("dropped", 7, lambda queue: str(queue.dropped_packets)),
)


def _fitting(columns: Sequence[_Column[Shown]], width: int) -> list[_Column[Shown]]:
    """The first of these columns, for which there is room."""
    ends = itertools.accumulate(column.width + 2 for column in columns)
    return [column for column, end in zip(columns, ends, strict=True) if end <= width]


def draw(watched: Watched, width: int, height: int, prompt: str | None = None) -> list[Text]:
    """The lines of the view: at most `height` of at most `width` columns. `prompt` is what is being typed."""
    cell = watched.cell
    if cell is None:
        return _fit([Text("waiting for the first run")], width, height)
    head = [_title(cell, watched)]
    foot = _foot(watched, prompt)
    if not watched.readings:
        return _fit([*head, Text("the hosts and endpoints of the run start", "dim"), *foot], width, height)
    last = watched.readings[-1]
    queues = _queues(last.queues, width)
    room = height - len(head) - len(queues) - len(foot) - 1
    # A chart is left out if it has no room below the flows.
    beside = room - _LEAST_CHART if room - _LEAST_CHART >= _LEAST_FLOWS else room
    flows = _flows(cell, last, width, max(2, min(len(last.flows) + 1, beside)))
    room -= len(flows)
    charts = _charts(watched.readings, width, min(room, _MOST_CHART)) if room >= _LEAST_CHART else []
    return _fit([*head, *flows, *queues, *charts, *foot], width, height)


def _fit(lines: Iterable[Text], width: int, height: int) -> list[Text]:
    shown = list(lines)[:height]
    for line in shown:
        line.no_wrap = True
        line.truncate(width, overflow="ellipsis")
    return shown


def _title(cell: Cell, watched: Watched) -> Text:
    passed, length = watched.time_ns / _S, cell.duration_ns / _S
    words = "ended" if watched.over else f"{passed:.1f} s of {length:g} s"
    return Text.assemble((f"{cell.scheme} run {cell.run}", "bold"), f"  {words}")


def name_of(cell: Cell, number: int) -> str:
    """The scheme of a flow, or the label that it has."""
    flow = next((flow for flow in cell.flows if flow.number == number), None)
    return (flow.label or flow.scheme) if flow else ""


def _flows(cell: Cell, reading: Reading, width: int, height: int) -> list[Text]:
    """The table of flows: heads, and as many flows as there is room for."""
    names = {flow.flow: name_of(cell, flow.flow) for flow in reading.flows}
    longest = min(_LONGEST_NAME, max(map(len, names.values()), default=0))
    columns = _fitting(_COLUMNS, width - 5 - longest)
    heads = "".join(f"  {column.title:>{column.width}}" for column in columns)
    lines = [Text(f"{'flow':>4} {'':{longest}}{heads}", "dim")]
    shown = reading.flows if len(reading.flows) < height else reading.flows[: max(1, height - 2)]
    for place, flow in enumerate(shown):
        name = names[flow.flow]
        name = name if len(name) <= longest else f"{name[: longest - 1]}…"
        cells = "".join(f"  {column.show(flow):>{column.width}}" for column in columns)
        lines.append(
            Text.assemble((f"{flow.flow:>4} {name:{longest}}", COLOURS[place % len(COLOURS)]), cells)
        )
    if len(shown) < len(reading.flows):
        more = reading.flows[len(shown) :]
        total = sum(flow.throughput_bps for flow in more) / 1e6
        count = plural(len(more), "more flow")
        lines.append(Text(f"     and {count} with {total:.2f} Mbit/s", "dim"))
    return lines


def _queues(queues: Sequence[QueueReading], width: int) -> list[Text]:
    """The table of queues; at most four, those with the most packets."""
    if not queues:
        return []
    shown = sorted(queues, key=lambda queue: -queue.queued_packets)[:4] if len(queues) > 4 else queues
    longest = max(5, *(len(queue.element) for queue in shown))
    longest = min(longest, max(5, width - _QUEUE_COLUMNS[0].width - 2))
    columns = _fitting(_QUEUE_COLUMNS, width - longest)
    heads = "".join(f"  {column.title:>{column.width}}" for column in columns)
    lines = [Text(f"{'queue':{longest}}{heads}", "dim")]
    for queue in shown:
        name = queue.element if len(queue.element) <= longest else f"{queue.element[: longest - 1]}…"
        cells = "".join(f"  {column.show(queue):>{column.width}}" for column in columns)
        lines.append(Text(f"{name:{longest}}{cells}"))
    return lines


def _charts(readings: Sequence[Reading], width: int, height: int) -> list[Text]:
    """The charts of throughput and of queueing delay, side by side where there is room."""
    end = readings[-1].time_ns / _S
    begin = max(0.0, end - HISTORY_S)
    recent = [reading for reading in readings if reading.time_ns / _S >= begin]
    both: list[tuple[str, Callable[[FlowReading], float | None]]] = [
        ("throughput (Mbit/s)", lambda flow: flow.throughput_bps / 1e6),
        ("queueing delay (ms)", lambda flow: None if flow.queueing_ns is None else flow.queueing_ns / 1e6),
    ]
    wanted = both if width >= _TWO_CHARTS else both[:1]
    wide = (width - 2 * (len(wanted) - 1)) // len(wanted)
    drawn = []
    for title, value in wanted:
        curves = [
            (
                [(reading.time_ns / _S, value(reading.flows[place])) for reading in recent],
                COLOURS[place % len(COLOURS)],
            )
            for place in range(min(len(recent[-1].flows), len(COLOURS)))
        ]
        drawn.append(chart(title, curves, (begin, max(end, 1.0)), wide, height))
    if len(drawn) == 1:
        return drawn[0]
    lines = []
    for left, right in zip(*drawn, strict=True):
        left.pad_right(wide - left.cell_len)
        lines.append(Text.assemble(left, "  ", right))
    return lines


def _foot(watched: Watched, prompt: str | None) -> list[Text]:
    lines = []
    if watched.notes:
        note = watched.notes[-1]
        lines.append(Text(f"{note.time_ns / _S:.2f} s: {note.text}", "" if note.is_change else "dim"))
    if prompt is not None:
        lines.append(Text.assemble(("> ", "bold"), prompt, ("_", "blink")))
    return lines


def in_a_line(cell: Cell, reading: Reading) -> str:
    """A reading in one line, for a log."""
    parts = []
    for flow in reading.flows:
        words = [f"{_number(flow.throughput_bps, 1e6, 2)} Mbit/s"]
        if flow.queueing_ns is not None:
            words.append(f"queue {_number(flow.queueing_ns, 1e6, 1)} ms")
        if flow.loss_ratio:
            words.append(f"loss {_number(flow.loss_ratio, 0.01, 2)} %")
        if flow.cwnd_bytes is not None:
            words.append(f"window {_number(flow.cwnd_bytes, 1e3, 1)} kB")
        parts.append(f"flow {flow.flow} {', '.join(words)}")
    parts += [
        f"{queue.element} {queue.queued_packets} packets of {queue.queued_bytes / 1e3:.1f} kB"
        for queue in reading.queues
    ]
    return f"{cell.scheme} run {cell.run}, {reading.time_ns / _S:.1f} s: {'; '.join(parts)}"
