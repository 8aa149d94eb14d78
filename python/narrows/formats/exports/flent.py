"""One `.flent.gz` per run: flent's results format (version 3), which `flent -i` and its plots read.

A run appears as that test of flent whose series its flows fill: `tcp_nup` (all send forward), `tcp_ndown`
(all send backward), `rrul` (in either direction one flow in each of four classes) or `rrul_be_nflows` (any
other run with both directions). Series of flows are arrivals. "Ping (ms) ICMP" is the mean delay of a packet
there plus that of one back in each step, "Ping (ms) UDP BE" the mean time of the exchanges of requests and
answers in that class. Values of the senders' states are raw values, like flent's socket statistics.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows.campaign.store import CampaignFolder
from narrows.documents.resolved import BACKWARD, FORWARD, REQUESTS, Flow
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
#: Flent's words for the directions, and for the classes of `rrul` by DSCP.
WORDS = {FORWARD: "upload", BACKWARD: "download"}
CLASSES = {0: "BE", 8: "BK", 40: "CS5", 46: "EF"}
PING = "Ping (ms) ICMP"


def export_campaign(
    folder: CampaignFolder, target: Path, _say: Callable[[str], None], _version: str
) -> list[ExportedCell]:
    """Writes the results of each finished run; returns the names of the files and their series."""

    def write(cell: CellToExport, partial: Path) -> ExportedCell:
        name = f"{cell.id}.flent.gz"
        document = results(cell, name)
        text = json.dumps(document, separators=(",", ":"), sort_keys=True)
        # Without the time of day, so that the same records yield the same bytes.
        (partial / name).write_bytes(gzip.compress(text.encode(), mtime=0))
        return ExportedCell(files=[name], series=len(document["results"]))

    return export_cells(folder, target, write)


@dataclass(frozen=True)
class Form:
    """The test of flent as which a run appears, with the series of its flows by their numbers."""

    test: str
    parameters: dict[str, str]
    #: By direction.
    senders: dict[str, dict[int, str]]
    exchanges: dict[int, str]


def choose_form(flows: Sequence[Flow]) -> Form:
    """The test whose series the flows fill. Exchanges count as senders only if there are no others."""
    asking = [flow for flow in flows if flow.traffic_kind == REQUESTS]
    sending = [flow for flow in flows if flow.traffic_kind != REQUESTS]
    if not sending:
        asking, sending = [], list(flows)
    sides = {word: [flow for flow in sending if flow.direction == word] for word in WORDS}
    sides = {word: side for word, side in sides.items() if side}
    counts = {f"{WORDS[word]}_streams": str(len(side)) for word, side in sides.items()}
    if len(sides) == 1:
        ((word, side),) = sides.items()
        series = {flow.number: f"TCP {WORDS[word]}::{place}" for place, flow in enumerate(side, start=1)}
        return Form("tcp_nup" if word == FORWARD else "tcp_ndown", counts, {word: series}, {})
    if all(sorted(flow.dscp for flow in side) == sorted(CLASSES) for side in sides.values()):
        classified = {
            word: {flow.number: f"TCP {WORDS[word]} {CLASSES[flow.dscp]}" for flow in side}
            for word, side in sides.items()
        }
        pings = {
            flow.number: f"Ping (ms) UDP {CLASSES[flow.dscp]}" for flow in asking if flow.dscp in CLASSES
        }
        return Form("rrul", {}, classified, pings)
    numbered = {
        word: {flow.number: f"TCP {WORDS[word]} BE::{place}" for place, flow in enumerate(side, start=1)}
        for word, side in sides.items()
    }
    pings = {flow.number: "Ping (ms) UDP BE" for flow in asking if flow.dscp == 0}
    return Form("rrul_be_nflows", counts, numbered, pings)


def results(cell: CellToExport, name: str) -> dict[str, Any]:
    """The document of one run."""
    import numpy as np

    from narrows.campaign.series import read_states, read_throughput

    ran = cell.cell
    form = choose_form(ran.flows)
    duration = ran.duration_ns
    step = min(STEP_NS, max(1_000_000, duration // FEWEST))
    rates = read_throughput(cell.path, step)
    time = rates.time_s
    result: dict[str, Series] = {}
    for word, series in form.senders.items():
        arrived = {key: rates.flows[number].arrived_bps / 1e6 for number, key in series.items()}
        result |= arrived | _sums(f"TCP {WORDS[word]}", list(arrived.values()), len(form.senders) == 1)
    flows = {number: key for series in form.senders.values() for number, key in series.items()}
    if len(form.senders) > 1:
        result |= {"TCP totals": np.sum([result[key] for key in flows.values()], axis=0)}
    raw = {key: _points(cell.base_ns, time, val=result[key]) for key in flows.values()}
    pings = {PING: _ping(cell, time, step)}
    raw[PING] = _points(cell.base_ns, time, val=pings[PING])
    for key, (times, values) in _read_exchanges(cell.path, form.exchanges).items():
        pings[key] = _average(times * 1e9, values, step, len(time))
        raw[key] = _points(cell.base_ns, times, val=values)
    result |= pings
    if len(pings) > 1:
        result |= {"Ping (ms) avg": _mean_of_known(list(pings.values()))}
    for number, sender in read_states(cell.path).items():
        if number in flows:
            raw[flows[number]] += _points(
                cell.base_ns,
                sender.time_s,
                tcp_cwnd=sender.cwnd_bytes / 1448,
                tcp_rtt=sender.srtt_ns / 1e6,
                tcp_delivery_rate=sender.delivery_rate_bps / 1e6,
                tcp_pacing_rate=sender.pacing_bps / 1e6,
            )
    start = _moment(datetime.fromtimestamp(cell.base_ns / 1e9, UTC))
    host = "sender" if list(form.senders) == [BACKWARD] else "receiver"
    return {
        "version": VERSION,
        "x_values": [round(float(x), 9) for x in time],
        "results": {key: _numbers(values) for key, values in result.items()},
        "raw_values": raw,
        "metadata": {
            "NAME": form.test,
            "TITLE": cell.title,
            "NOTE": cell.description,
            "TIME": start,
            "T0": start,
            "LENGTH": duration / 1e9,
            "TOTAL_LENGTH": duration / 1e9,
            "STEP_SIZE": step / 1e9,
            "HOST": host,
            "HOSTS": [host],
            "LOCAL_HOST": "narrows",
            "IP_VERSION": 4,
            "TEST_PARAMETERS": form.parameters,
            "DATA_FILENAME": name,
            "FLENT_VERSION": "2.1.1",
            "SERIES_META": {
                key: {"UNITS": "Mbits/s", "CONG_CONTROL": cell.entry.scheme} for key in flows.values()
            },
        },
    }


def _sums(name: str, arrived: list[Series], fairness: bool) -> dict[str, Series]:
    """Sum, mean and, of a test with one direction, fairness of its flows."""
    import numpy as np

    all_flows = np.array(arrived)
    total = all_flows.sum(axis=0)
    sums = {f"{name} sum": total, f"{name} avg": total / len(arrived)}
    if fairness:
        squares = len(arrived) * (all_flows**2).sum(axis=0)
        jain = np.where(squares > 0, total**2 / np.where(squares > 0, squares, 1), np.nan)
        sums[f"{name} fairness"] = jain
    return sums


def _read_exchanges(record: Path, series: dict[int, str]) -> dict[str, tuple[Series, Series]]:
    """The ends (s) and the times (ms) of the exchanges of each series."""
    import numpy as np

    from narrows.campaign.series import read_transfers

    if not series:
        return {}
    transfers = read_transfers(record)
    exchanges: dict[str, tuple[Series, Series]] = {}
    for key in dict.fromkeys(series.values()):
        numbers = [number for number, name in series.items() if name == key]
        own = np.isin(transfers.flow, numbers) & np.isfinite(transfers.ended_s)
        started, ended = transfers.started_s[own], transfers.ended_s[own]
        exchanges[key] = (ended, (ended - started) * 1e3)
    return exchanges


def _average(times_ns: Series, values: Series, step: int, bins: int) -> Series:
    """The mean of the values in each step; NaN where there is none."""
    import numpy as np

    place = np.minimum(times_ns.astype(np.int64) // step, bins - 1)
    count = np.bincount(place, minlength=bins)
    total = np.bincount(place, weights=values, minlength=bins)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _mean_of_known(columns: list[Series]) -> Series:
    """The mean over the columns that have a value, step by step."""
    import numpy as np

    rows = np.array(columns)
    known = np.isfinite(rows)
    count = known.sum(axis=0)
    return np.asarray(
        np.where(count > 0, np.where(known, rows, 0).sum(axis=0) / np.maximum(count, 1), np.nan)
    )


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
        delay = (packets.arrived_ns - packets.sent_ns) / 1e6
        both = np.zeros(bins)
        for backward in (False, True):
            mine = arrived & (packets.backward == backward)
            both += _average(packets.sent_ns[mine], delay[mine], step, bins)
        return both
    states = list(read_states(cell.path).values())
    if not states:
        return np.full(bins, np.nan)
    time_s = np.concatenate([state.time_s for state in states])
    rtt = np.concatenate([state.srtt_ns for state in states]) / 1e6
    known = np.isfinite(rtt)
    return _average(time_s[known] * 1e9, rtt[known], step, bins)


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
