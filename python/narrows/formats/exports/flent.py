"""One `.flent.gz` per run: flent's results format (version 3), which `flent -i` and its plots read.

A run appears as flent's test `tcp_nup` (flows that send forward) or `tcp_ndown` (backward; a run with both is
two files). The series "TCP upload::k" has the arrivals of flow k, "Ping (ms) ICMP" the mean delay of a packet
there and of one back in each step; values of the sender's states are raw values, like flent's socket
statistics.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows.campaign.store import CampaignFolder
from narrows.formats.cells import CellToExport, ExportedCell, export_cells

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Series = NDArray[np.float64]

#: Version of the format.
VERSION = 3
#: Flent's default step, and the smallest number of steps of a run.
STEP_NS = 200_000_000
FEWEST = 20
#: Flent's tests by direction: name, series, parameter with the number of streams.
TESTS = {
    "forward": ("tcp_nup", "TCP upload", "upload_streams"),
    "backward": ("tcp_ndown", "TCP download", "download_streams"),
}
PING = "Ping (ms) ICMP"


def export_campaign(
    folder: CampaignFolder, target: Path, _say: Callable[[str], None], _version: str
) -> list[ExportedCell]:
    """Writes the results of each finished run; returns the names of the files and their series."""

    def write(cell: CellToExport, partial: Path) -> ExportedCell:
        flows = cell.cell.flows
        directions = [word for word in TESTS if any(flow.direction == word for flow in flows)]
        files: list[str] = []
        series = 0
        for direction in directions:
            suffix = "-down" if direction == "backward" and len(directions) > 1 else ""
            name = f"{cell.id}{suffix}.flent.gz"
            document = results(cell, direction, name)
            text = json.dumps(document, separators=(",", ":"), sort_keys=True)
            # Without the time of day, so that the same records yield the same bytes.
            (partial / name).write_bytes(gzip.compress(text.encode(), mtime=0))
            files.append(name)
            series += len(document["results"])
        return ExportedCell(files=files, series=series)

    return export_cells(folder, target, write)


def results(cell: CellToExport, direction: str, name: str) -> dict[str, Any]:
    """The document of one run: its flows in one direction."""
    import numpy as np

    from narrows.campaign.series import read_states, read_throughput

    test, series, parameter = TESTS[direction]
    ran = cell.cell
    duration = ran.duration_ns
    step = min(STEP_NS, max(1_000_000, duration // FEWEST))
    rates = read_throughput(cell.path, step)
    time = rates.time_s
    numbers = [flow.number for flow in ran.flows if flow.direction == direction]
    arrived = [rates.flows[number].arrived_bps / 1e6 for number in numbers]
    all_flows = np.array(arrived)
    total = all_flows.sum(axis=0)
    squares = len(numbers) * (all_flows**2).sum(axis=0)
    fairness = np.where(squares > 0, total**2 / np.where(squares > 0, squares, 1), np.nan)
    result: dict[str, Series] = {
        f"{series}::{place}": values for place, values in enumerate(arrived, start=1)
    }
    result |= {
        f"{series} sum": total,
        f"{series} avg": total / len(numbers),
        f"{series} fairness": fairness,
        PING: _ping(cell, time, step),
    }
    start = datetime.fromtimestamp(cell.base_ns / 1e9, UTC)
    raw = {key: _points(cell.base_ns, time, val=values) for key, values in result.items() if "::" in key}
    raw[PING] = _points(cell.base_ns, time, val=result[PING])
    for number, sender in read_states(cell.path).items():
        if number in numbers:
            raw[f"{series}::{numbers.index(number) + 1}"] += _points(
                cell.base_ns,
                sender.time_s,
                tcp_cwnd=sender.cwnd_bytes / 1448,
                tcp_rtt=sender.srtt_ns / 1e6,
                tcp_delivery_rate=sender.delivery_rate_bps / 1e6,
                tcp_pacing_rate=sender.pacing_bps / 1e6,
            )
    return {
        "version": VERSION,
        "x_values": [round(float(x), 9) for x in time],
        "results": {key: _numbers(values) for key, values in result.items()},
        "raw_values": raw,
        "metadata": {
            "NAME": test,
            "TITLE": cell.title,
            "NOTE": cell.description,
            "TIME": _moment(start),
            "T0": _moment(start),
            "LENGTH": duration / 1e9,
            "TOTAL_LENGTH": duration / 1e9,
            "STEP_SIZE": step / 1e9,
            "HOST": "receiver" if direction == "forward" else "sender",
            "HOSTS": ["receiver" if direction == "forward" else "sender"],
            "LOCAL_HOST": "narrows",
            "IP_VERSION": 4,
            "TEST_PARAMETERS": {parameter: str(len(numbers))},
            "DATA_FILENAME": name,
            "FLENT_VERSION": "2.1.1",
            "SERIES_META": {
                f"{series}::{place}": {"UNITS": "Mbits/s", "CONG_CONTROL": cell.entry.scheme}
                for place in range(1, len(numbers) + 1)
            },
        },
    }


def _ping(cell: CellToExport, time: Series, step: int) -> Series:
    """Mean delay there plus mean delay back of the packets sent in each step, in ms; without packets the
    sender's round-trip time; NaN if unknown.
    """
    import numpy as np

    from narrows.campaign.series import read_packets, read_states

    bins = len(time)
    packets = read_packets(cell.path)
    if packets is not None:
        arrived = packets.arrived_ns >= 0
        place = np.minimum(packets.sent_ns // step, bins - 1)
        delay = (packets.arrived_ns - packets.sent_ns) / 1e6
        both = np.zeros(bins)
        for backward in (False, True):
            mine = arrived & (packets.backward == backward)
            count = np.bincount(place[mine], minlength=bins)
            total = np.bincount(place[mine], weights=delay[mine], minlength=bins)
            both += np.where(count > 0, total / np.maximum(count, 1), np.nan)
        return both
    states = list(read_states(cell.path).values())
    if not states:
        return np.full(bins, np.nan)
    place = np.concatenate([(state.time_s * 1e9).astype(np.int64) // step for state in states])
    rtt = np.concatenate([state.srtt_ns for state in states]) / 1e6
    known = np.isfinite(rtt)
    place = np.minimum(place[known], bins - 1)
    count = np.bincount(place, minlength=bins)
    total = np.bincount(place, weights=rtt[known], minlength=bins)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _points(base_ns: int, time: Series, **values: Series) -> list[dict[str, float]]:
    """Raw values with their absolute times; unknown values are omitted."""
    import numpy as np

    absolute = (base_ns / 1e9 + time).tolist()
    rows: list[dict[str, float]] = [{"t": t} for t in absolute]
    for name, column in values.items():
        for place in np.flatnonzero(np.isfinite(column)).tolist():
            rows[place][name] = float(column[place])
    return [row for row in rows if len(row) > 1]


def _numbers(values: Series) -> list[float | None]:
    return [value if value == value else None for value in values.tolist()]  # noqa: PLR0124 - NaN


def _moment(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}Z"
