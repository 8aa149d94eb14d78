"""Metrics for people: short column heads, numbers with four digits, amounts with their unit, and the names
that the command line accepts for a metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from narrows.documents.results import Metric, Quantity, Results, Statistics
from narrows.errors import UsageError
from narrows.statistics.runs import spread_of
from narrows.text import did_you_mean, shorten

#: The metrics of the summary, in the order of the columns; metrics that the core does not know are omitted.
SUMMARY = (
    "throughput_bps",
    "delay_p95_ns",
    "queueing_delay_p95_ns",
    "loss_ratio",
    "utilization_ratio",
    "jain_index",
)
#: The metrics of tables without packet observations, such as runs between hosts without a tunnel.
ENDS = ("goodput_bps", "rtt_p95_ns", "retransmitted_ratio")

NOT_AVAILABLE = "N/A"

#: Short heads that leave room for numbers; other metrics use their label.
_HEADS = {
    "throughput_bps": "thr",
    "goodput_bps": "goodput",
    "delay_mean_ns": "mean OWD",
    "delay_p50_ns": "p50 OWD",
    "delay_p95_ns": "p95 OWD",
    "delay_p99_ns": "p99 OWD",
    "delay_max_ns": "max OWD",
    "queueing_delay_mean_ns": "mean queue",
    "queueing_delay_p50_ns": "p50 queue",
    "queueing_delay_p95_ns": "p95 queue",
    "queueing_delay_p99_ns": "p99 queue",
    "utilization_ratio": "util",
    "jain_index": "Jain",
    "throughput_ratio": "thr ratio",
    "retransmitted_ratio": "retrans",
    "rtt_mean_ns": "mean RTT",
    "rtt_p95_ns": "p95 RTT",
    "bottleneck_drop_ratio": "drops",
    "loss_synchronisation": "loss sync",
    "convergence_1s_ns": "converged\nin (1 s)",
    "convergence_10s_ns": "converged\nin (10 s)",
    "media_target_bps": "target",
    "media_sent_bps": "media",
    "frame_delay_p95_ns": "p95 frame\ndelay",
    "frame_loss_ratio": "frames lost\nor late",
    "freeze_ratio": "time\nfrozen",
    "playback_startup_ns": "start-up",
    "playback_stalled_ratio": "time\nstalled",
    "playback_bitrate_bps": "quality",
    "playback_switches": "switches",
    "completion_p50_ns": "p50 FCT",
    "completion_p95_ns": "p95 FCT",
    "completion_mean_ns": "mean FCT",
    "responsiveness_rpm": "respon-\nsiveness",
    "foreign_responsiveness_rpm": "separate\nconnections",
    "loaded_responsiveness_rpm": "load's\nconnections",
    "qoo_ratio": "QoO",
}
#: Words that people use for a metric, in addition to its name, label and head.
_ALSO = {
    "throughput": "throughput_bps",
    "delay": "delay_p95_ns",
    "p95 delay": "delay_p95_ns",
    "one-way delay": "delay_p95_ns",
    "queueing delay": "queueing_delay_p95_ns",
    "queue": "queueing_delay_p95_ns",
    "loss": "loss_ratio",
    "utilisation": "utilization_ratio",
    "fairness": "jain_index",
    "rtt": "rtt_p95_ns",
    "rpm": "responsiveness_rpm",
    "qoo": "qoo_ratio",
}


def head_of(metric: Quantity) -> str:
    """The short head of a column: `thr`, `p95 OWD`."""
    return _HEADS.get(metric.name) or metric.label or metric.name


def unit_of(metric: Quantity) -> str:
    """The unit for people, empty for plain numbers."""
    return "" if metric.show_unit == "1" else metric.show_unit


def has_packets(results: Results) -> bool:
    """True if packets were observed in any run, or the results do not say."""
    entries = [row.metrics for row in results.rows]
    return not entries or any(
        row.get("throughput_bps") is not None or row.get("goodput_bps") is None for row in entries
    )


def find(metrics: Iterable[Metric], called: str) -> Metric:
    """Finds a metric by name, label, head or a usual word. Raises `UsageError` with suggestions."""
    known = {metric.name: metric for metric in metrics}
    words = {word: known[name] for word, name in _ALSO.items() if name in known}
    for name, metric in known.items():
        for word in (metric.label or name, _HEADS.get(name, name), name):
            words[word.lower()] = metric
    wanted = " ".join(called.lower().split())
    if wanted not in words:
        hint = did_you_mean(wanted, words) or "; narrows show --json lists the metrics of a campaign"
        raise UsageError(f'metric "{shorten(called)}" does not exist{hint}')
    return words[wanted]


def show_number(value: float | None, metric: Quantity) -> str:
    """A value in the unit for people, with four significant digits."""
    if value is None:
        return NOT_AVAILABLE
    return four_digits(value * metric.show_scale)


def show_amount(value: float | None, metric: Quantity) -> str:
    """The same with its unit: `11.43 Mbit/s`."""
    unit = unit_of(metric) if value is not None else ""
    return f"{show_number(value, metric)} {unit}".rstrip()


def show_spread(summary: Statistics, metric: Quantity) -> str:
    """The spread to be shown beside the median: `[11.2, 11.6]` is the 95 % interval of the median, `11.2 to
    11.6` the smallest and the largest value of a few runs; empty for a single run.
    """
    spread = spread_of(summary)
    if spread.kind == "identical":
        return "identical"
    if spread.low is None or spread.high is None:
        return ""
    low, high = show_number(spread.low, metric), show_number(spread.high, metric)
    return f"[{low}, {high}]" if spread.kind == "interval" else f"{low} to {high}"


def four_digits(scaled: float) -> str:
    """A number with at most four significant digits; digits before the decimal point are never cut off."""
    if scaled == 0:
        return "0"
    digits = 3
    size = abs(scaled)
    while size >= 10 and digits > 0:
        size /= 10
        digits -= 1
    return f"{scaled:.{digits}f}"


def of_names(metrics: Iterable[Metric], wanted: Sequence[str]) -> list[Metric]:
    """The metrics with these names, in the order of the names; names that the core does not know
    are omitted.
    """
    known = {metric.name: metric for metric in metrics}
    return [known[name] for name in wanted if name in known]
