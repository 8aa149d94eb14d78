"""Remarks of a report on runs between two real hosts: their clocks and their machines."""

from __future__ import annotations

from typing import Any

from narrows.documents.data import from_data
from narrows.documents.run import Clock
from narrows.hosts import clocks
from narrows.report import units
from narrows.report.data import Campaign, Json, Run
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
    return (run.record or {}).get("plane") == WHERE


def has_only_ends(run: Run) -> bool:
    """True if the packets of a run were not observed, because it used no tunnel."""
    record = run.record or {}
    return is_real(run) and "tunnel" in record and record["tunnel"] is None


NOT_SEEN = "There was no tunnel, so packets were not observed."
"""Why a figure of packets is missing."""


def only_ends(campaign: Campaign) -> bool:
    """True if no run had its packets observed."""
    known = [run for run in campaign.runs if run.record]
    return bool(known) and all(map(has_only_ends, known))


def _clock(run: Run) -> Json:
    result: Json = (run.record or {}).get("clock") or {}
    return result


def doubt(runs: list[Run], flow: str, metric: str) -> str | None:
    """Why a delay must be read with caution: the error of some run's clocks exceeds the variation of its
    delays.
    """
    if not metric.startswith((*ONE_WAY, *_BETWEEN_ENDS)):
        return None
    errors = []
    blind = [int(_clock(run).get("error_ns") or 0) for run in runs if has_only_ends(run)]
    if blind:
        return (
            f"known to ± {_about(max(blind))} only: it lies between times at the two hosts, whose clocks were"
            " compared once, before the run"
        )
    if not metric.startswith(ONE_WAY):
        return None
    for run in filter(is_real, runs):
        resolved = _clock(run).get("resolved") or {}
        ways = {f.direction for f in run.tested if flow in (str(f.number), "all")}
        if any(resolved.get(way) is False for way in ways):
            errors.append(int(_clock(run).get("error_ns") or 0))
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
    if not is_real(run):
        return []
    clock, record = _clock(run), run.record or {}
    text = f"± {_about(float(clock.get('error_ns') or 0))}"
    if has_only_ends(run):
        text += " before the run; not compared during it"
    elif clock.get("drift_ppb") is not None:
        text += f", drift {units.number(float(clock['drift_ppb']) / 1e3, 1)} ppm"
    result = [("clocks", text)]
    ntp = clocks.against(from_data(clock, Clock))
    if ntp:
        result.append(("clocks by NTP", ntp))
    if has_only_ends(run):
        result.append(("tunnel", "none: only the ends of the flows were measured"))
    tunnel = record.get("tunnel") or {}
    if tunnel.get("overhead_bytes"):
        result.append(("around each packet", f"{tunnel['overhead_bytes']} bytes of the tunnel"))
    marked = sum(int((tunnel.get(way) or {}).get("marked") or 0) for way in ("forward", "backward"))
    if marked:
        result.append(("marked by the path", plural(marked, "packet")))
    for host in record.get("hosts") or []:
        busy = (host.get("cpu") or {}).get("busy_ratio")
        if busy is not None:
            result.append((f"CPU busy ({host.get('name')})", f"{units.number(busy * 100, 0)} %"))
        refused = ((host.get("tunnel") or {}).get("arrived") or {}).get("refused") or {}
        strangers = sum(int(count) for count in refused.values())
        if strangers:
            result.append((f"refused datagrams ({host.get('name')})", str(strangers)))
    return result


def hosts(run: Run) -> list[tuple[str, Json, Json]]:
    """The machines of a run: the name of each, its facts and settings, its versions."""
    if not is_real(run):
        return []
    pairs = []
    for host in (run.record or {}).get("hosts") or []:
        called = f"the {host.get('name')}"
        if host.get("host_name"):
            called += f" ({host['host_name']})"
        machine: dict[str, Any] = {**(host.get("machine") or {}), "sysctls": host.get("sysctls") or {}}
        pairs.append((called, machine, host.get("versions") or {}))
    return pairs
