"""The keys of a scenario: one table from which reading, the JSON Schema and the reference derive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from narrows.scenario.registry import Param

SCHEMA = "narrows/scenario/1"


@dataclass(frozen=True)
class Key:
    """One top-level key. Keys with a `param` are single values; the others have a reader of their own."""

    name: str
    doc: str
    example: str
    required: bool = False
    param: Param | None = None


def _param(
    name: str,
    kind: str,
    default: Any,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
) -> Param:
    return Param(name, kind, choices, default, low, high, False, "", "")


#: Simulated and emulated time is kept in 64 bits of ns; a day is more than any run needs.
LONGEST_NS = 24 * 3600 * 10**9

KEYS: tuple[Key, ...] = (
    Key("schema", f"Format of the file; always `{SCHEMA}`.", SCHEMA, required=True),
    Key(
        "name",
        "Short name, used for folders: lower-case letters, digits, `-` and `.`. Default: the file's name.",
        "first-look",
    ),
    Key("title", "Title of the report. Default: the name.", "A first look"),
    Key(
        "question",
        "The question that the experiment answers, one sentence.",
        "Who fills the link without filling its buffer?",
        required=True,
    ),
    Key(
        "where",
        "Where the scenario runs: `simulate` (virtual clock, nothing needed), `emulate` (real"
        " time, real kernels, Linux) or `hosts` (a real path to another machine, see `real_path`).",
        "emulate",
        param=_param("where", "choice", "simulate", choices=("simulate", "emulate", "hosts")),
    ),
    Key(
        "topology",
        "`dumbbell`: every flow has hosts of its own and may have an extra RTT; `path`: all flows"
        " share one pair of hosts and the same RTT. With settings: `dumbbell` with hosts and access links,"
        " `star`, `parking-lot`, `chain`. Default: `dumbbell`.",
        "dumbbell",
    ),
    Key(
        "path",
        "The network: the elements that a packet passes, in order, `forward` (sender to receiver) and"
        " `backward` (default: the fixed delays of `forward`). Between real hosts it is not applied, and may"
        " be left out.",
        "{forward: [{rate: 12 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 20 ms}]}",
    ),
    Key(
        "network",
        "Instead of `path`: any network of `hosts`, `routers` and `links`, each link with its elements in"
        " both directions, and `routes` where the shortest is not meant.",
        "{hosts: [a, b], links: [{between: [a, b], forward: [{rate: 12 Mbit/s}, {delay: 20 ms}]}]}",
    ),
    Key(
        "hosts",
        "Settings of hosts by name, of `all`, or of those that only `background` flows use: what the kernel"
        " of the host is told, or in simulation our transport where it has the same.",
        "{all: {tcp_sack: 0}}",
    ),
    Key(
        "real_path",
        "For `where: hosts`: the other host, who sends, and how the two are joined.",
        "{other: user@host, sender: both}",
    ),
    Key(
        "schemes",
        "The congestion controls under test; each gets its own runs. Ours by name (`cubic`), the"
        " kernel's with a prefix (`linux:cubic`, `bpf:scalable`), with parameters as"
        " `{scheme: cubic, beta: 0.7}`.",
        "[linux:cubic, cubic, reno]",
    ),
    Key(
        "flows",
        "`{count, interval}`: flow k starts at (k-1) x interval, or with `10 s +- 500 ms` at a time drawn"
        " around it per run, and all stop together; or a list of flows,"
        " each with any of `scheme`, `from`, `to`, `start`, `stop`, `direction`, `traffic`, `connections`,"
        " `dscp`, `count`, `interval`, `extra_rtt`, `label`. Default: one flow.",
        "{count: 3, interval: 10 s}",
    ),
    Key(
        "background",
        "Flows that are not under test, in the same form; they need a scheme of their own and are left out"
        " of sums and summaries.",
        "[{scheme: reno, count: 2}]",
    ),
    Key(
        "timeline",
        "What happens during a run: `{at, set: {ELEMENT: {...}}}`, `{at, cut: LINK}`, `{at, restore: LINK}`,"
        " `{at, start: FLOW}`, `{at, stop: FLOW}`.",
        "[{at: 10 s, set: {forward.0: {rate: 5 Mbit/s}}}]",
    ),
    Key(
        "matrix",
        "Any keys with lists of values, by their addresses as for `--set`: every combination is run, with"
        " rows of its own in the results.",
        "{path.forward.0.rate: [1 Mbit/s, 10 Mbit/s]}",
    ),
    Key(
        "draw",
        "Values of the network that every run draws anew, by their addresses as for `--set`, each with a law:"
        " `uniform`, `loguniform`, `normal`, `choice` or `same`. All schemes of a run meet the same values.",
        "{path.forward.0.rate: {uniform: [5 Mbit/s, 20 Mbit/s]}}",
    ),
    Key(
        "expect",
        "What must hold of the results: `{metric, scheme, flow, of, at_least, at_most}`; the exit code is 5"
        " when it does not.",
        "[{metric: throughput_bps, at_least: 1 Mbit/s}]",
    ),
    Key(
        "duration",
        "Length of a run.",
        "30 s",
        required=True,
        param=_param("duration", "span", None, low=1_000_000, high=LONGEST_NS),
    ),
    Key(
        "runs",
        "How often each scheme is run, each time with other seeds.",
        "3",
        param=_param("runs", "count", 1, low=1, high=10_000),
    ),
    Key(
        "seed",
        "Decides all chance in the scenario and the order of the runs.",
        "1",
        param=_param("seed", "count", 1, low=0, high=2**53 - 1),
    ),
    Key(
        "record",
        "`packets` keeps every packet; `bins` keeps binned series and delay histograms (for long runs).",
        "packets",
        param=_param("record", "choice", "packets", choices=("packets", "bins")),
    ),
    Key(
        "transfers",
        "What is kept of the transfers of applications: `all` of them; `bins` keeps their number and"
        " histograms of their times, in the measured part of the run; `none` keeps nothing.",
        "bins",
        param=_param("transfers", "choice", "all", choices=("all", "bins", "none")),
    ),
    Key(
        "measure",
        "What metrics look at: `from` and `to` bound the part of the run that counts, `links` names"
        " bottlenecks that get a row of their own (throughput, utilization, drops, CoV). Default: the"
        " whole run, no links.",
        "{from: 10 s, links: [forward.0]}",
    ),
    Key(
        "bin",
        "Width of the bins of `record: bins` and of the series in the report.",
        "100 ms",
        param=_param("bin", "span", 100_000_000, low=100_000, high=LONGEST_NS),
    ),
    Key(
        "sample",
        "How often queues and the states of flows are sampled.",
        "10 ms",
        param=_param("sample", "span", 10_000_000, low=100_000, high=LONGEST_NS),
    ),
    Key(
        "transport",
        "Parameters of our own bulk transport, which carries our schemes.",
        "{ack_every: 1 packets}",
    ),
    Key("report", "What the report contains: `pdf` (default true).", "{pdf: false}"),
)

BY_NAME = {key.name: key for key in KEYS}
