"""Sentences of reports: the path, the workload and the answer, all derived from numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from narrows.analysis.verdicts import lateness_ns, resolution
from narrows.report import networks, real_path, units
from narrows.report.data import Campaign, Json, registry
from narrows.text import plural


def _param_kinds(section: str, name: str) -> dict[str, str]:
    for entry in registry().get(section) or []:
        if entry.get("name") == name:
            return {p["name"]: p["kind"] for p in entry.get("params") or []}
    return {}


def params(section: str, name: str, values: Mapping[str, Any], skip: tuple[str, ...] = ()) -> list[str]:
    """Parameters as `name value` with units, by the kinds the registry gives them; unset ones left out."""
    kinds = _param_kinds(section, name)
    known = {"delay": "span", "ratio": "ratio", "rate": "rate", "bytes": "bytes", "packets": "packets"}
    found = []
    for key, value in values.items():
        if key in skip or value is None:
            continue
        text = units.parameter(kinds.get(key) or known.get(key), value)
        found.append(text if key in known or key == name else f"{key.replace('_', ' ')} {text}")
    return found


def rate_text(rate: Any) -> str:
    """A link's rate: a number for a constant one, kind and parameters for others."""
    if isinstance(rate, int | float):
        return units.rate(float(rate))
    if not isinstance(rate, Mapping):
        return "no rate"
    kind = str(rate.get("kind", "constant"))
    listed = params("rates", kind, rate, skip=("kind",))
    return listed[0] if kind == "constant" and listed else " ".join([kind, ", ".join(listed)]).strip()


def queue_text(queue: Any) -> str:
    """A queue: its discipline and limits."""
    if not isinstance(queue, Mapping):
        return "unlimited queue"
    kind = str(queue.get("kind", "queue"))
    listed = params("queues", kind, queue, skip=("kind",))
    return f"{kind} {' / '.join(listed)}".strip()


def element_lines(element: Json) -> list[str]:
    """An element in a few short lines, as for a box in a picture."""
    kind = str(element.get("kind"))
    if kind == "bottleneck":
        return [rate_text(element.get("rate")), queue_text(element.get("queue"))]
    listed = params("links", kind, element, skip=("kind", "name"))
    return [kind, *listed[:3]]


def element_sentence(element: Json, rtt_ns: float) -> str:
    """An element in words, with what its numbers mean."""
    kind = str(element.get("kind"))
    if kind == "delay":
        return f"a fixed delay of {units.span(float(element.get('delay') or 0))}"
    if kind == "loss":
        return f"independent random loss of {units.ratio(float(element.get('ratio') or 0))} of the packets"
    if kind == "path":
        listed = element_lines(element)[1:]
        return "a path of which the logs of its ends are all that is known" + (
            f" ({', '.join(listed)})" if listed else ""
        )
    if kind == "real":
        return "a real path, of which what was sent and what arrived is all that is known"
    if kind != "bottleneck":
        return " ".join([f"an element “{kind}”", *([f"({', '.join(element_lines(element)[1:])})"])])
    text = (
        f"a bottleneck of {rate_text(element.get('rate'))} with a queue ({queue_text(element.get('queue'))}"
    )
    queue, rate = element.get("queue") or {}, element.get("rate")
    limit = queue.get("bytes") if isinstance(queue, Mapping) else None
    constant = (
        rate.get("rate") if isinstance(rate, Mapping) and rate.get("kind", "constant") == "constant" else None
    )
    if limit and constant:
        text += f", at most {units.span(round(limit * 8e9 / constant, -4))} of waiting"
        if rtt_ns > 0:
            text += f", {units.trimmed(limit * 8e9 / constant / rtt_ns, 3)} × the bandwidth-delay product"
    return text + ")"


def path_sentences(settings: Json) -> list[str]:
    """The network of a cell, one sentence per direction and one on round-trip times."""
    network: Json = settings.get("network") or {}
    if not networks.is_dumbbell(network):
        return _graph_sentences(settings, network)
    rtt = networks.longest_rtt_ns(settings)
    found = []
    for direction, ends in (("forward", "sender to receiver"), ("backward", "receiver to sender")):
        elements = network.get(direction) or []
        if elements:
            listed = "; then ".join(element_sentence(e, rtt) for e in elements)
            found.append(f"{direction.capitalize()} ({ends}): {listed}.")
        else:
            found.append(f"{direction.capitalize()} ({ends}): nothing in between.")
    if any(element.get("kind") in ("path", "real") for _, element in networks.elements(network)):
        return found  # nobody knows its delay
    text = f"The smallest possible round trip takes {units.span(rtt)} (without serialization)"
    extra = [f for f in settings.get("flows") or [] if f.get("extra_rtt_ns")]
    if extra:
        text += "; " + ", ".join(f"flow {f['flow']} has {units.span(f['extra_rtt_ns'])} more" for f in extra)
    found.append(text + ".")
    return found


MOST_LINKS = 12
"""Links that are told in sentences; larger networks are in the scenario."""


def _graph_sentences(settings: Json, network: Json) -> list[str]:
    hosts, routers = network.get("hosts") or [], network.get("routers") or []
    between = f" and {plural(len(routers), 'router')}" if routers else ""
    found = [f"A network of {plural(len(hosts), 'host')}{between}."]
    grouped: dict[str, list[str]] = {}
    for link in network.get("links") or []:
        listed = "; then ".join(element_sentence(e, 0) for e in link.get("elements") or [])
        if listed:
            grouped.setdefault(listed, []).append(f"{link.get('from')} → {link.get('to')}")
    for listed, ends in list(grouped.items())[:MOST_LINKS]:
        named = ", ".join(ends[:6]) + (f" and {len(ends) - 6} more" if len(ends) > 6 else "")
        found.append(f"{named}: {listed}.")
    if len(grouped) > MOST_LINKS:
        found.append(f"{len(grouped) - MOST_LINKS} more kinds of links are in the scenario below.")
    flows = [flow for flow in settings.get("flows") or [] if not flow.get("background")]
    round_trips = sorted({networks.rtt_ns(network, flow) for flow in flows})
    if round_trips:
        low, high = units.span(round_trips[0]), units.span(round_trips[-1])
        text = low if low == high else f"{low} to {high}"
        found.append(f"The smallest possible round trips of the flows take {text} (without serialization).")
    return found


def timeline_sentences(settings: Json) -> list[str]:
    """The changes of the timeline, one sentence per instant."""
    grouped: dict[float, list[str]] = {}
    for change in settings.get("timeline") or []:
        parts = [_change(str(name), value) for name, value in (change.get("set") or {}).items()]
        what = f"{change.get('element')}: {', '.join(parts)}"
        grouped.setdefault(float(change.get("at_ns", 0)), []).append(what)
    listed = [f"At {units.span(at)}, {'; '.join(changes)}." for at, changes in sorted(grouped.items())]
    if len(listed) > MOST_LINKS:
        rest = len(listed) - MOST_LINKS
        listed = [*listed[:MOST_LINKS], f"{plural(rest, 'more instant')} of change: see the scenario."]
    return listed


def _change(name: str, value: Any) -> str:
    if name == "rate":
        return f"rate {rate_text(value)}"
    if name == "open":
        return "restored" if value else "cut"
    if name == "queue" and isinstance(value, Mapping):
        return "queue " + ", ".join(params("queues", "", value, skip=("kind",)))
    return ", ".join(params("links", "", {name: value})) or name


def workload_sentences(campaign: Campaign) -> list[str]:
    """Numbers of schemes, runs and flows, their length, and where they ran."""
    settings = campaign.settings
    schemes = len(campaign.schemes)
    counts = {s: len(campaign.of_scheme(s)) for s in campaign.schemes}
    each = next(iter(counts.values()), 0)
    same = len(set(counts.values())) <= 1
    found = []
    if schemes:
        times = plural(each, "run") + (" each" if schemes > 1 else "")
        amount = times if same else f"{sum(counts.values())} runs in all"
        found.append(f"{plural(schemes, 'scheme')}, {amount}.")
    if settings:
        every = settings.get("flows") or []
        flows = [flow for flow in every if not flow.get("background")]
        length = units.span(float(settings.get("duration_ns", 0)))
        text = f"Each run lasts {length} with {plural(len(flows), 'flow')}"
        starts = sorted(f.get("start_ns", 0) for f in flows)
        gaps = {b - a for a, b in itertools.pairwise(starts)}
        if len(flows) > 1 and gaps == {0}:
            text += " that start together"
        elif len(flows) > 1 and len(gaps) == 1:
            text += f" that start {units.span(float(gaps.pop()))} apart"
        kinds = {_traffic_text(flow) for flow in flows} - {""}
        if kinds:
            text += f" ({'; '.join(sorted(kinds))})"
        if len(every) > len(flows):
            text += f", beside {plural(len(every) - len(flows), 'background flow')}"
            kinds = {_traffic_text(flow) for flow in every if flow.get("background")} - {""}
            text += f" ({'; '.join(sorted(kinds))})" if kinds else ""
        found.append(text + ".")
        found += timeline_sentences(settings)
    places = {
        "simulate": "simulated (virtual clock, repeatable bit for bit)",
        "emulate": "emulated (real time, on the machine below)",
        "hosts": "made between two real hosts, through a tunnel that logs every packet at both ends",
        "import": f"made and logged by {_tool(campaign)}, and imported",
    }
    if real_path.only_ends(campaign):
        places["hosts"] = (
            "made between two real hosts, without a tunnel: what the ends of the flows counted is all that is"
            " known, and nothing compared the clocks of the hosts while they ran"
        )
    if campaign.planes:
        found.append("The runs were " + " and ".join(places.get(p, p) for p in campaign.planes) + ".")
    return found


def _tool(campaign: Campaign) -> str:
    """The tool that made the runs of an imported campaign."""
    tools = {str(((run.record or {}).get("import") or {}).get("tool") or "Pantheon") for run in campaign.runs}
    return " and ".join(sorted(tools)) or "others"


def _traffic_text(flow: Json) -> str:
    """The application of a flow; nothing for bulk transfers over one connection."""
    traffic = flow.get("traffic") or {}
    kind = str(traffic.get("kind", "bulk"))
    listed = (
        [] if kind == "bulk" else [f"{kind} {', '.join(params('traffic', kind, traffic, ('kind',)))}".strip()]
    )
    connections = int(flow.get("connections") or 1)
    if connections > 1:
        listed.append(f"{connections} connections per flow")
    return ", ".join(listed)


@dataclass(frozen=True)
class _Measures:
    """The subjects of answers: the metrics, and their names in sentences."""

    rate: str = "throughput_bps"
    delay: str = "delay_p95_ns"
    rate_words: str = "throughput"
    delay_words: str = "95th percentile one-way delay"


_ENDS = _Measures("goodput_bps", "rtt_p95_ns", "goodput", "95th percentile round-trip time")
"""Where nobody saw the packets."""


def _measures(campaign: Campaign) -> _Measures:
    return _ENDS if real_path.only_ends(campaign) else _Measures()


def _totals(campaign: Campaign) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {}
    measures = _measures(campaign)
    for run in campaign.runs:
        metrics = (run.rows.get("all") or {}).get("metrics") or {}
        if not run.valid:
            continue
        for name in (measures.rate, measures.delay):
            if metrics.get(name) is not None:
                found.setdefault(run.scheme, {}).setdefault(name, []).append(float(metrics[name]))
    return found


def _indistinct(best: list[float], other: list[float], least: float) -> bool:
    """True if the ranges of two schemes' runs overlap, or lie apart by no more than the runs were late: then
    the order of their medians proves nothing."""
    apart = max(min(best), min(other)) - min(max(best), max(other))
    return apart <= least


def _lateness_ns(campaign: Campaign) -> float:
    return lateness_ns(run.record for run in campaign.runs if run.valid and run.record is not None)


def _leader(
    campaign: Campaign, totals: dict[str, dict[str, list[float]]], name: str, highest: bool
) -> tuple[str, list[str]] | None:
    """The scheme with the best median, and those that are not to be told apart from it."""
    known = {s: own[name] for s, own in totals.items() if own.get(name)}
    if not known:
        return None
    pick = max if highest else min
    best = pick(known, key=lambda s: median(known[s]))
    late = _lateness_ns(campaign)
    duration = float(campaign.settings.get("duration_ns") or 0)
    unit = "ns" if name.endswith("_ns") else "bit/s"
    least = resolution(unit, median(known[best]), late, duration)
    return best, [s for s in known if s != best and _indistinct(known[best], known[s], least)]


def answer(campaign: Campaign) -> list[str]:
    """The answer of the numbers, with its limits; invalid runs take no part."""
    totals, measures = _totals(campaign), _measures(campaign)
    found: list[str] = []
    if not campaign.runs:
        return ["No run was started, so this campaign has no answer."]
    if not any(own.get(measures.rate) for own in totals.values()):
        return ["No run is valid, so this campaign has no answer; the verdicts below say why."]

    def rate(scheme: str) -> str:
        return f"{units.number(median(totals[scheme][measures.rate]) / 1e6)} Mbit/s"

    def delay(scheme: str) -> str:
        values = totals[scheme].get(measures.delay)
        return f"{units.number(median(values) / 1e6)} ms" if values else "no known delay"

    late = _lateness_ns(campaign) > 0
    first = _leader(campaign, totals, measures.rate, True)
    second = _leader(campaign, totals, measures.delay, False)
    assert first is not None
    best, equals = first
    if len(totals) == 1:
        what = f" of {measures.rate_words}" if measures is _ENDS else ""
        found.append(f"{best} reached {rate(best)}{what} at a {measures.delay_words} of {delay(best)}.")
    else:
        if equals:
            found.append(_open(f"the highest {measures.rate_words}", [best, *equals], rate, late))
        else:
            found.append(
                f"Highest {measures.rate_words}: {best} with {rate(best)} ({measures.delay_words}"
                f" {delay(best)})."
            )
        if second is not None:
            low, same = second
            also = ", which is the same scheme" if low == best else f" ({measures.rate_words} {rate(low)})"
            if same:
                found.append(_open(f"the lowest {measures.delay_words}", [low, *same], delay, late))
            else:
                found.append(f"Lowest {measures.delay_words}: {low} with {delay(low)}{also}.")
    found.append(_caveat(campaign, totals))
    return [s for s in found if s]


def _open(what: str, schemes: list[str], amount: Callable[[str], str], late: bool) -> str:
    """The sentence about a place that several schemes may have, which names no winner. `late` is false where
    time is simulated."""
    listed = [f"{scheme} ({amount(scheme)})" for scheme in schemes[:4]]
    if len(schemes) > 4:
        listed.append(f"{len(schemes) - 4} more")
    return (
        f"Which scheme has {what} is open: {', '.join(listed[:-1])} and {listed[-1]} are not to be told"
        f" apart, as their runs overlap{' or differ by less than the runs were late' if late else ''}."
    )


def _caveat(campaign: Campaign, totals: dict[str, dict[str, list[float]]]) -> str:
    counts = sorted({len(own.get(_measures(campaign).rate) or []) for own in totals.values()})
    least, most = counts[0], counts[-1]
    amount = plural(least, "valid run") if least == most else f"{least} to {most} valid runs"
    if most == 1:
        text = f"Each number comes from {amount}, so nothing is known about how much it varies."
    elif least < 6:
        text = (
            f"Each number is the median of {amount} per scheme; below 6 no interval is given, and small "
            "differences prove nothing."
        )
    else:
        text = f"Each number is the median of {amount} per scheme; the table has the intervals."
    problems = problem_counts(campaign)
    if problems:
        text += f" Not in these numbers: {problems}."
    degraded = sum(1 for r in campaign.runs if r.valid and r.verdict == "degraded")
    if degraded:
        are, were = ("is", "was") if degraded == 1 else ("are", "were")
        text += f" {plural(degraded, 'run')} that {are} counted {were} judged degraded."
    return text


def problem_counts(campaign: Campaign) -> str:
    """`1 invalid run, 2 failed runs, 1 skipped scheme`, or nothing."""
    invalid = sum(1 for r in campaign.runs if r.state == "finished" and not r.valid)
    failed = sum(1 for r in campaign.runs if r.state == "failed")
    other = sum(1 for r in campaign.runs if r.state not in ("finished", "failed"))
    parts = [
        plural(invalid, "invalid run") if invalid else "",
        plural(failed, "failed run") if failed else "",
        plural(other, "unfinished run") if other else "",
        plural(len(campaign.skipped), "skipped scheme") if campaign.skipped else "",
    ]
    return ", ".join(p for p in parts if p)
