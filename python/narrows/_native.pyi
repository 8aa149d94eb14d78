"""The native core: simulate, read records, measure, verify.

Documents go in and out as JSON text, series as numpy arrays. Bad data raises ``ValueError``, trouble with
files ``OSError``; each message is one sentence that names the file.
"""

from collections.abc import Callable
from os import PathLike
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

_Path: TypeAlias = str | PathLike[str]
_Series: TypeAlias = NDArray[np.float64]

class Training:
    """A training under way. `recipe` is JSON; with `state` and `rows` (numbers of rounds and their rows) it
    is resumed.

    Raises `ValueError` with one sentence.
    """

    def __init__(
        self,
        recipe: str,
        seed: int,
        threads: int,
        state: bytes | None = None,
        rows: list[tuple[int, bytes]] | None = None,
    ) -> None: ...
    @property
    def complete(self) -> bool:
        """True after the last round of the recipe."""
    @property
    def rounds_kept(self) -> int:
        """Number of latest rounds whose rows a resumed training needs."""
    @property
    def score(self) -> float | None:
        """The score of the best model so far in doublings, once measured."""
    def round(self, threads: int) -> str:
        """Makes one round; returns a row of the log as JSON."""
    def state(self) -> bytes:
        """The state after the latest round, without rows."""
    def latest_rows(self) -> bytes:
        """The rows of the latest round; empty if later rounds need none."""
    def model(self, notes: list[tuple[str, str]]) -> bytes:
        """The content of the file of the best model so far, with `notes` in its metadata."""

def score_model(scheme: str, content: bytes, trials: str, threads: int) -> str:
    """Throughput, delay and loss of one flow of a model in each of `trials`, as JSON."""

def score_rules(content: bytes, objective: str, seed: int, threads: int) -> str:
    """The objective of a rule table on each link, as JSON."""

def simulate_summaries(
    cells: list[str],
    tell: Callable[[int, str], object],
    *,
    memory: int,
    threads: int | None = None,
    files_dir: _Path | None = None,
    stop: Callable[[], bool] | None = None,
) -> None:
    """Simulates cells (JSON texts) in memory, and hands what remains of each to ``tell(index, text)``.

    The text is a JSON object: ``verdict``, ``reasons`` and ``measured`` (as ``measure`` gives it), or
    ``error`` with ``kind`` (``input``, ``memory``, ``internal``) and ``message``. No file is written and no
    process started.
    """

class Worlds:
    """Many simulated episodes that advance together; results are in its arrays, episode by episode and agent
    by agent.

    Raises `ValueError` with one sentence.
    """

    def __init__(
        self,
        cells: list[str],
        agents: list[int],
        count: int,
        *,
        reward: str,
        steps: int,
        threads: int,
        oracle: bool = False,
        files_dir: _Path | None = None,
    ) -> None: ...
    @property
    def inputs(self) -> int:
        """Numbers of one observation."""
    @property
    def choices(self) -> int | None:
        """Number of actions to choose from; None if an action consists of numbers."""
    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Minimum and maximum of each number of an action."""
    @property
    def observations(self) -> NDArray[np.float32]:
        """Inputs of the next decisions."""
    @property
    def counters(self) -> NDArray[np.float64]:
        """Counters of the last steps, as listed by `gym_counters`."""
    @property
    def rewards(self) -> NDArray[np.float64]:
        """Rewards of the last steps."""
    @property
    def clipped(self) -> NDArray[np.uint32]:
        """Actions out of bounds since the episodes began."""
    @property
    def endings(self) -> NDArray[np.uint8]:
        """For each episode 0 while it waits for actions, 1 after its number of steps, 2 at the end of its
        run, 3 after an action that was not a number.
        """
    def facts(self) -> list[tuple[float, float, float, float, float]]:
        """Of each course: mean capacity (bit/s), base RTT (ns), limit of the queue (bytes, or infinite), best
        window (packets, or NaN), number of flows.
        """
    def reset(self, starts: list[tuple[int, int] | None]) -> None:
        """Begins an episode in each place that has a course and a seed."""
    def step(self, actions: NDArray[np.float32], skip: NDArray[np.bool_]) -> None:
        """Lets the agents of all episodes act, except where `skip` is true."""

class Policies:
    """Copies of a scheme's policy, each with a memory. Raises `ValueError` with one sentence."""

    def __init__(self, cell: str, count: int, files_dir: _Path) -> None: ...
    @property
    def inputs(self) -> int:
        """Numbers of one observation."""
    @property
    def choices(self) -> int | None:
        """Number of actions to choose from; None if an action consists of numbers."""
    def reset(self, which: NDArray[np.bool_]) -> None:
        """Forgets the memories of the copies where `which` is true."""
    def act(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """The actions for observations, one row for each copy."""

def gym_counters() -> list[tuple[str, str]]:
    """Counters of a step: name and meaning of each, in order."""

def gym_rewards() -> list[tuple[str, str]]:
    """Built-in rewards: name and meaning."""

class FlowRates(TypedDict):
    """What one flow sent and what arrived, per bin, in the direction of its data."""

    sent_bps: _Series
    arrived_bps: _Series

class ThroughputSeries(TypedDict):
    """Throughput in bins of time."""

    time_s: _Series
    capacity_bps: _Series | None
    flows: dict[int, FlowRates]

class DelayPoints(TypedDict):
    """One-way delays of packets at the time of their arrival."""

    time_s: _Series
    delay_ms: _Series

class Packets(TypedDict):
    """All packets of a record in the order of entering; ``arrived_ns`` is -1 for one that did not arrive."""

    flow: NDArray[np.uint16]
    backward: NDArray[np.bool_]
    size_bytes: NDArray[np.uint32]
    sent_ns: NDArray[np.int64]
    arrived_ns: NDArray[np.int64]
    late_ns: NDArray[np.int64]

class QueueSeries(TypedDict):
    """Samples of one queue."""

    time_s: _Series
    backlog_bytes: _Series
    backlog_packets: _Series

class Fates(TypedDict):
    """What an element did to packets: times in ns, -1 for never; copies in the order of leaving."""

    left_ns: NDArray[np.int64]
    dropped_ns: NDArray[np.int64]
    reason: list[str | None]
    marked: NDArray[np.bool_]
    corrupt: NDArray[np.bool_]
    dscp: NDArray[np.uint8]
    copy_of: NDArray[np.uint64]
    copy_left_ns: NDArray[np.int64]

class StateSeries(TypedDict):
    """Samples of one sender, NaN where it did not tell."""

    time_s: _Series
    cwnd_bytes: _Series
    ssthresh_bytes: _Series
    pacing_bps: _Series
    rtt_ns: _Series
    srtt_ns: _Series
    min_rtt_ns: _Series
    inflight_bytes: _Series
    delivered_bytes: _Series
    delivery_rate_bps: _Series
    retransmitted_bytes: _Series
    lost_packets: _Series

class TransferSeries(TypedDict):
    """Transfers of applications; ``ended_s`` is NaN where one was not complete at the end."""

    flow: _Series
    connection: _Series
    transfer: _Series
    bytes: _Series
    started_s: _Series
    ended_s: _Series

class FrameSeries(TypedDict):
    """Frames of video; ``key`` and ``discarded`` are 0 or 1, ``arrived_s`` is NaN for one never whole."""

    flow: _Series
    frame: _Series
    captured_s: _Series
    bytes: _Series
    key: _Series
    discarded: _Series
    arrived_s: _Series

class CapacitySeries(TypedDict):
    """What bottlenecks could carry, in bit/s per bin."""

    time_s: _Series
    elements: dict[str, _Series]

def version() -> str:
    """Version of the core."""

def check_element(element_json: str, files: dict[str, bytes] | None = None) -> str | None:
    """Why an element (JSON object, base units) can't be built; None if it can.

    ``files`` has the contents of the files that the element names, by their SHA-256.
    """

def check_scheme(
    name: str, params_json: str, files: dict[str, bytes], decided_outside: bool = False
) -> str | None:
    """Why a scheme can't be built with these parameters (JSON object, base units); None if it can.

    ``files`` has the contents of the files that they name, by their SHA-256. With ``decided_outside`` the
    caller will make its decisions.
    """

def bounds(cell_json: str) -> str:
    """What bounds each flow of a cell (JSON text), as JSON.

    ``flows`` has the number of each flow and ``by``, what bounds it as part of a sentence, or null;
    ``refusal`` says why the cell must not be simulated, or is null.
    """

def bpf_object_name(content: bytes) -> str:
    """What the congestion control in the content of a BPF object file calls itself.

    Raises ``ValueError`` with one sentence if there is none in it.
    """

def git() -> str | None:
    """The hash of the source tree that was built, if it was known at build time."""

def registry() -> str:
    """Everything that scenarios may name, as JSON."""

def simulate(
    cell_json: str,
    out_dir: _Path,
    files_dir: _Path | None = None,
    tell: Callable[[int, int], object] | None = None,
) -> str:
    """Simulate a cell, write its record to ``out_dir``, and return the text of ``run.json``.

    ``files_dir`` has the files that the cell names; ``tell`` gets the simulated time and its end, in
    nanoseconds, five times a second.
    """

def measure(cell_dir: _Path) -> str:
    """All metrics of a record, as JSON."""

def states(cell_dir: _Path, questions: str) -> str:
    """Answers to questions about modes and values of senders (JSON lists)."""

def metrics() -> str:
    """The descriptions of all metrics, as JSON."""

def verify(cell_dir: _Path) -> str:
    """Whether a record is possible at all, check by check, as JSON."""

def encode_table(columns: list[tuple[str, str, list[object]]], entries: list[tuple[str, str]]) -> bytes:
    """A parquet file of columns, each a name, a type (`text`, `integer`, `number`, `flag`) and a value or
    None for each row, with entries in its footer. Raises `ValueError` if lengths differ.
    """

def throughput_series(cell_dir: _Path, bin_ns: int) -> ThroughputSeries:
    """Throughput in bins; a record of bins is summed up to the next multiple of its own width."""

def delay_points(cell_dir: _Path, max_points: int) -> dict[int, DelayPoints] | None:
    """One-way delays per flow, thinned out without losing extremes; None for records of bins."""

def packets(cell_dir: _Path) -> Packets | None:
    """All packets of a record, as columns; None for records of bins."""

def queue_series(cell_dir: _Path) -> dict[str, QueueSeries]:
    """The samples of each queue, by element."""

def transfers(cell_dir: _Path) -> TransferSeries:
    """The transfers of applications, as columns."""

def frames(cell_dir: _Path) -> FrameSeries:
    """The frames of video of real-time schemes, as columns."""

def capacity_series(cell_dir: _Path, bin_ns: int) -> CapacitySeries:
    """What each bottleneck could carry over time, where that is known."""

def state_series(cell_dir: _Path) -> dict[int, StateSeries]:
    """The states of each sender, by flow."""

def read_trace(path: _Path) -> tuple[NDArray[np.uint64], NDArray[np.uint64], str]:
    """Times (ns) and values of the trace in a Parquet file, and the name of the column of values."""

def write_trace(path: _Path, time_ns: NDArray[np.int64], values: NDArray[np.int64], name: str) -> None:
    """Writes times (ns) and values (``rate_bps`` or ``delay_ns``) into a Parquet file."""

def tunnel_arrivals(
    path: _Path,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], str | None]:
    """What arrived at one end of a tunnel: times of sending and arrival (ns, each end's own clock), sizes of
    the IP packets; and what is wrong with the rest of the log."""

def import_pantheon(task_json: str, logs_json: str, out_dir: _Path) -> tuple[str | None, str | None]:
    """Makes a record out of the logs of one run of Pantheon.

    Gives the text of ``run.json``, or in its place (as second) why the logs hold no run at all.
    """

def export_pantheon(cell_dir: _Path, base_ns: int, data: _Path, ack: _Path) -> str:
    """Writes a record as Pantheon's merged logs; gives Pantheon's numbers for it, as JSON."""

def export_pcapng(cell_dir: _Path, base_ns: int, comment: str, sender: _Path, receiver: _Path) -> str:
    """Writes a record as captures of both ends, its time zero at ``base_ns`` (since 1970); counts as JSON."""

def export_qlog(
    cell_dir: _Path, base_ns: int, version: str, title: str, description: str, prefix: str, suffix: str
) -> str:
    """Writes each flow of a record as qlog to ``prefix`` + its number + ``suffix``; counts as JSON."""

def export_csv(cell_dir: _Path, folder: _Path) -> str:
    """Writes the tables of a record as comma-separated values into ``folder``; rows per file as JSON."""

class Connection:
    """One connection of a capture."""

    #: Protocol number of IP.
    protocol: int
    #: Address and port of both ends; the one that opened it, where that is known, comes first.
    ends: tuple[tuple[str, int], tuple[str, int]]
    packets: int
    #: Bytes of payload that each end sent.
    payload: tuple[int, int]
    #: Times of the first and the last packet, in ns since 1970.
    first_ns: int
    last_ns: int
    #: True if a SYN was captured.
    opened: bool
    #: Initial sequence numbers of both ends, if both SYNs were captured.
    handshake: list[int] | None

class CaptureView:
    """The packets captured at one interface."""

    name: str
    #: By how much its clock was set back, each time.
    set_back_ns: list[int]
    #: True if the packets were not in the order of capture.
    sorted: bool

    def connections(self) -> list[Connection]:
        """In the order of their first packets."""
    def one_end(self, connection: int) -> dict[str, Any] | None:
        """What this end saw of a connection, as columns and counters; None if it carried no data."""
    def fates(self, connection: int) -> dict[str, Any] | None:
        """The packets with data of a connection and their fates, as columns and counters; None if it carried
        no data."""

def read_capture(
    path: _Path, content: bytes | None = None
) -> tuple[list[CaptureView], list[tuple[str, int, bool]]]:
    """Reads a capture (pcapng or pcap): the file, or its decompressed ``content``. Gives what each interface
    saw, and what was not read: kind, count, and whether numbers may depend on it."""

def relate(
    first: CaptureView, connection: int, second: CaptureView, other: int
) -> tuple[str, int, dict[str, Any] | None]:
    """How two connections of two captures are related: ``unrelated``, ``unmatched``, ``same place`` or
    ``ends``; then also which of both (0 or 1) is nearer to the sender of the data, and columns and counters
    of its packets."""

def read_qlog(content: bytes) -> list[dict[str, Any]]:
    """The connections of a qlog, as columns of events, with what was not read."""

def read_mahimahi(path: _Path, content: bytes) -> dict[str, Any]:
    """The log of one direction of a mahimahi link, the content of a file: packets and opportunities, as
    columns."""

def import_packets(
    run_json: str,
    out_dir: _Path,
    data: dict[str, Any],
    back: dict[str, Any] | None,
    senders: dict[str, Any] | None,
) -> str:
    """Makes a record of packets that were seen at both ends; gives ``run.json``.

    ``run_json`` is ``run.json`` without what follows from the packets; ``data`` and ``back`` are columns
    (``flow``, ``size_bytes``, ``sent_ns``, ``arrived_ns`` with the smallest number for never), ``senders``
    the states.
    """

def import_bins(run_json: str, out_dir: _Path, bins: dict[str, Any], senders: dict[str, Any] | None) -> str:
    """Makes a record of a run that was measured at one end, of its bins; gives ``run.json``."""

def probe_element(
    element_json: str,
    time_ns: NDArray[np.uint64],
    size: NDArray[np.uint32],
    flow: NDArray[np.uint16],
    ecn: NDArray[np.uint8],
    dscp: NDArray[np.uint8],
    ack: NDArray[np.bool_],
    seed: int = 1,
    timeline: str = "null",
    files: dict[str, bytes] | None = None,
) -> Fates:
    """Sends packets through one element (JSON object as in a cell), which is called ``probe``."""
