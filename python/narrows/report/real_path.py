"""Remarks of a report on runs between two real hosts: their clocks and their machines."""

from __future__ import annotations

from narrows.documents.run import RecordHost
from narrows.hosts import clocks
from narrows.report import units
from narrows.report.data import Campaign, Run
from narrows.text import plural

WHERE = "hosts"

ONE_WAY = ("delay_", "frame_delay_")
"""Metrics, by the start of their names, that compare a time at one host with one at the other. Queueing
delays do not: what the clocks are off by is in the smallest delay, too, from which they count."""

_BETWEEN_ENDS = ("completion_",)
"""Metrics that do so where an application's end is told by the other host; a tunnel knows the clocks well
enough for them."""


def is_real(run: Run) -> bool:
    """True if a run was between two real hosts."""
    return run.record is not None and run.record.plane == WHERE


def has_only_ends(run: Run) -> bool:
    """True if the packets of a run were not observed, because it used no tunnel."""
    return run.record is not None and run.record.plane == WHERE and run.record.tunnel is None


NOT_SEEN = "There was no tunnel, so packets were not observed."
"""Why a figure of packets is missing."""


def only_ends(campaign: Campaign) -> bool:
    """True if no run had its packets observed."""
    known = [run for run in campaign.runs if run.record]
    return bool(known) and all(map(has_only_ends, known))


def doubt(runs: list[Run], flow: str, metric: str) -> str | None:
    """Why a delay must be read with caution: the error of some run's clocks exceeds the variation of its
    delays.
    """
    if not metric.startswith((*ONE_WAY, *_BETWEEN_ENDS)):
        return None
    blind = [run.record.clock.error_ns for run in runs if run.record and has_only_ends(run)]
    if blind:
        return (
            f"known to ± {_about(max(blind))} only: it lies between times at the two hosts, whose clocks were"
            " compared once, before the run"
        )
    if not metric.startswith(ONE_WAY):
        return None
    errors = []
    for run in runs:
        if run.record and is_real(run):
            clock, ways = (
                run.record.clock,
                {f.direction for f in run.tested if flow in (str(f.number), "all")},
            )
            if any((clock.resolved or {}).get(way) is False for way in ways):
                errors.append(clock.error_ns)
    if not errors:
        return None
    return (
        f"known to ± {_about(max(errors))} only, as the clocks of the two hosts are, which is more than the "
        "delays of a run vary; differences within a run, such as queueing delays, do not depend on it"
    )


def _about(ns: float) -> str:
    """A duration with three digits."""
    return units.span(float(f"{ns:.3g}"))


def facts(run: Run) -> list[tuple[str, str]]:
    """Facts about clocks and hosts of a run."""
    record = run.record
    if record is None or not is_real(run):
        return []
    clock = record.clock
    text = f"± {_about(float(clock.error_ns))}"
    if has_only_ends(run):
        text += " before the run; not compared during it"
    elif clock.drift_ppb is not None:
        text += f", drift {units.number(clock.drift_ppb / 1e3, 1)} ppm"
    result = [("clocks", text)]
    ntp = clocks.against(clock)
    if ntp:
        result.append(("clocks by NTP", ntp))
    if has_only_ends(run):
        result.append(("tunnel", "none: only the ends of the flows were measured"))
    if record.tunnel and record.tunnel.overhead_bytes:
        result.append(("around each packet", f"{record.tunnel.overhead_bytes} bytes of the tunnel"))
    if record.tunnel and record.tunnel.marked:
        result.append(("marked by the path", plural(record.tunnel.marked, "packet")))
    for host in record.hosts:
        if host.cpu.busy_ratio is not None:
            result.append((f"CPU busy ({host.name})", f"{units.number(host.cpu.busy_ratio * 100, 0)} %"))
        if host.refused:
            result.append((f"refused datagrams ({host.name})", str(host.refused)))
    return result


def hosts(run: Run) -> list[tuple[str, RecordHost]]:
    """The machines of a run and their names."""
    if run.record is None or not is_real(run):
        return []
    return [
        (f"the {host.name}" + (f" ({host.host_name})" if host.host_name else ""), host)
        for host in run.record.hosts
    ]
