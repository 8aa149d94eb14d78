"""Metrics of films in players that log their segments (the key `segments` of manifests)."""

from __future__ import annotations

from narrows.documents.results import Metric

#: Name, label, unit in files, display unit and factor, better, total of all flows, definition.
METRICS: tuple[tuple[str, str, tuple[str, str, float], str, str, str], ...] = (
    (
        "playback_startup_ns", "start-up of playback", ("ns", "s", 1e-9), "lower", "mean",
        "Time from the command to play until its picture first moves.",
    ),
    (
        "playback_stalls", "stalls", ("1", "", 1.0), "lower", "sum",
        "Times that the picture stood for want of data, after it had first moved.",
    ),
    (
        "playback_stalled_ratio", "time stalled", ("1", "%", 100.0), "lower", "mean",
        "Share of the time since the picture first moved during which it stood for want of data.",
    ),
    (
        "playback_bitrate_bps", "bitrate of segments", ("bit/s", "Mbit/s", 1e-6), "higher", "mean",
        "Mean of the bitrates of the segments that were fetched, weighted by their durations; one that was"
        " fetched again counts as it was last.",
    ),
    (
        "playback_switches", "switches of quality", ("1", "", 1.0), "lower", "sum",
        "Segments, in the order of the film, whose bitrate is not that of the segment before.",
    ),
)  # fmt: skip


def describe() -> list[Metric]:
    """The metrics, in the form in which results describe metrics."""
    return [
        Metric(
            name=name,
            label=label,
            unit=unit,
            show_unit=shown,
            show_scale=scale,
            better=better,
            scope="both",
            links=False,
            happened=None,
            definition=definition,
            source="what the player wrote of its segments",
        )
        for name, label, (unit, shown, scale), better, _, definition in METRICS
    ]
