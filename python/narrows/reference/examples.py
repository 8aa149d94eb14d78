"""One example of everything in the registries: how it is written, how it is tried, what is to be seen.

This is the only place that knows entries by name; a test fails if an entry has no example here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from narrows.reference.probe import ECT0, ECT1, NOT_ECT, Load, Stream


@dataclass(frozen=True)
class Example:
    """An element as it is written in a scenario, and how its picture is made."""

    #: Of a queue: what stands behind `queue:`; of a rate: behind `rate:`; of traffic: behind `traffic:`; of a
    #: link element: the element.
    written: str
    #: The caption of the picture.
    shows: str
    load: Load | None = None
    #: Length of the time axis in seconds, and bins of rates in milliseconds.
    seconds: float = 1.0
    bin_ms: int = 50
    changes: tuple[dict[str, Any], ...] = ()
    #: "delay": a dot per packet; "rate": what comes and what leaves, for elements that do not delay.
    view: str = "delay"


#: Flow 1 is thin and steady, flow 2 comes in two bursts of a second: together 16 Mbit/s into 10 Mbit/s.
BOTTLENECK = "{rate: 10 Mbit/s, queue: QUEUE}"
_BURSTS = ((0.2, 1.2), (1.8, 2.8))


def _two_flows(first_ecn: int = ECT0, first_dscp: int = 0) -> Load:
    thin = Stream(6000.0, ((0.0, 3.2),), ecn=first_ecn, dscp=first_dscp)
    return Load((thin, Stream(857.0, _BURSTS)))


def _queue(written: str, shows: str, load: Load | None = None) -> Example:
    return Example(written, shows, load or _two_flows(), seconds=3.2)


QUEUES = {
    "droptail": _queue(
        "{droptail: 60 kB}",
        "The queue fills to 60 kB = 48 ms, then newcomers of both flows are dropped.",
    ),
    "drophead": _queue(
        "{drophead: 60 kB}",
        "As drop-tail, but the packet that has waited longest goes: senders learn of it sooner.",
    ),
    "unlimited": _queue(
        "unlimited",
        "Nothing is dropped; the delay grows as long as the burst lasts.",
    ),
    "onepacket": _queue(
        "onepacket",
        "One packet waits at most, so that the delay stays below 2.5 ms and the rest of a burst is dropped.",
    ),
    "red": _queue(
        "{red: {packets: 100 packets, min_threshold: 10 packets, max_threshold: 30 packets}}",
        "Between the thresholds (12 and 36 ms) the share of packets that are dropped, or marked where the"
        " sender can be told, grows with the mean queue; the mean lags behind the queue.",
    ),
    "step": _queue(
        "{step: {threshold: 20 packets, packets: 100 packets}}",
        "While more than 20 packets wait (24 ms), flow 1 is marked, and what flow 2 has too much is dropped.",
        Load((Stream(6000.0, ((0.0, 3.2),), ecn=ECT0), Stream(857.0, _BURSTS, ecn=NOT_ECT))),
    ),
    "codel": _queue(
        "{codel: {packets: 100 packets}}",
        "After 100 ms above 5 ms CoDel drops (flow 1: marks) at growing frequency; senders that do not react"
        " fill the queue to its limit of 120 ms all the same.",
    ),
    "pie": _queue(
        "{pie: {packets: 100 packets}}",
        "The first 150 ms of a burst pass; then the share of drops grows until the delay falls. In the second"
        " burst it does not have to start from nothing.",
    ),
    "fqcodel": _queue(
        "{fqcodel: {packets: 100 packets}}",
        "Flow 1 has a queue of its own and keeps below 3 ms; flow 2 fills its own up to the limit of all,"
        " where half of the longest queue is dropped at once.",
    ),
    "cake": _queue(
        "cake",
        "Flow 1 has a queue of its own and keeps below 3 ms. For flow 2, which does not answer, signals come"
        " at growing frequency.",
    ),
    "sfq": _queue(
        "{sfq: {packets: 60 packets}}",
        "Each flow has its share, so that flow 1 hardly waits; the longest queue, that of flow 2, is cut.",
    ),
    "drr": _queue(
        "{drr: {packets: 60 packets}}",
        "Each flow has its share of the bytes; drops come from the longest queue, that of flow 2.",
    ),
    "dualpi2": _queue(
        "{dualpi2: {packets: 100 packets}}",
        "Flow 1 is L4S traffic (ECT(1)): it has a shallow queue of its own and is marked in step with the"
        " drops of flow 2.",
        _two_flows(ECT1),
    ),
    "priority": _queue(
        "{priority: {packets: 60 packets}}",
        "Flow 1 has the code point EF (46) and goes first; flow 2 waits and is dropped if its band is full.",
        _two_flows(first_dscp=46),
    ),
}

RATES = {
    "constant": Example("12 Mbit/s", "Always the same.", seconds=2.0),
    "poisson": Example(
        "{poisson: 12 Mbit/s}",
        "Opportunities with exponential gaps: the rate of each 50 ms varies.",
        seconds=4.0,
    ),
    "poissondrift": Example(
        "{poissondrift: {rate: 12 Mbit/s, deviation: 30 %, time: 2 s}}",
        "The same with a rate that wanders: its standard deviation is 30 %, and it forgets within 2 s.",
        seconds=20.0,
        bin_ms=250,
    ),
    "poissontrace": Example(
        "{poissontrace: cellular-drive.csv}",
        "The same over the rates of a shipped trace of a fading link.",
        seconds=60.0,
        bin_ms=250,
    ),
    "trace": Example(
        "{trace: cellular-drive.csv}", "A shipped trace of a fading link.", seconds=60.0, bin_ms=250
    ),
    "steps": Example(
        "{steps: [[0 s, 4 Mbit/s], [2 s, 2 Mbit/s], [4 s, 3.5 Mbit/s], [6 s, 1 Mbit/s], [8 s, 2 Mbit/s]]}",
        "The capacities of RFC 8867, section 5.2, in a hurry.",
        seconds=10.0,
        bin_ms=100,
    ),
    "square": Example(
        "{square: {low: 2 Mbit/s, high: 10 Mbit/s, period: 1 s, duty: 0.3}}",
        "High for 30 % of each second.",
        seconds=4.0,
    ),
    "sine": Example(
        "{sine: {mean: 6 Mbit/s, amplitude: 4 Mbit/s, period: 2 s}}",
        "A slow wave around the mean.",
        seconds=4.0,
    ),
    "onoff": Example(
        "{onoff: {rate: 10 Mbit/s, on: 300 ms, off: 200 ms, law: exponential}}",
        "Times of work and of silence with exponential lengths.",
        seconds=4.0,
        bin_ms=20,
    ),
    "tokenbucket": Example(
        "{tokenbucket: {rate: 4 Mbit/s, burst: 200 kB, peak: 20 Mbit/s}}",
        "200 kB pass at the peak rate, then the bucket is empty and the rate is that of its tokens.",
        seconds=1.0,
        bin_ms=20,
    ),
    "ticks": Example(
        "{ticks: {rate: 12 Mbit/s, tick: 10 ms}}",
        "The credit of 10 ms leaves at every tenth millisecond, and nothing in between.",
        seconds=0.2,
        bin_ms=1,
    ),
    "wifi": Example(
        "{wifi: {rate: 14.4 Mbit/s}}",
        "Packets arrive in aggregates of four, one of which takes 3.6 ms.",
        seconds=0.1,
        bin_ms=1,
    ),
}

_STEADY = Load((Stream(2000.0, ((0.0, 1.0),)),))
_ACKS = Load((Stream(1000.0, ((0.0, 0.4),), size=40, ack=True),))


def _link(written: str, shows: str) -> Example:
    return Example(written, shows, _STEADY)


def _passing(written: str, shows: str, **values: Any) -> Example:
    """For elements that do not delay."""
    return Example(written, shows, view="rate", **({"load": _STEADY} | values))


LINKS = {
    "delay": _link("{delay: 20 ms}", "Every packet takes 20 ms."),
    "delaysteps": _link(
        "{delaysteps: [[0 s, 20 ms], [400 ms, 50 ms], [700 ms, 30 ms]]}",
        "At 700 ms the delay falls; packets wait for those before them, so that none overtakes.",
    ),
    "drift": _link(
        "{drift: {delay: 20 ms, amplitude: 10 ms, period: 500 ms}}",
        "The delay swings slowly around 20 ms.",
    ),
    "delaytrace": _link(
        "{delaytrace: delays-handover.csv}",
        "A shipped trace of delays. Where it falls, packets wait for those before them.",
    ),
    "jitter": _link(
        "{jitter: {law: truncated, spread: 5 ms}}",
        "The law of RFC 8868. No packet overtakes: one that would waits for the one before it.",
    ),
    "jittertrace": _link(
        "{jittertrace: delays-handover.csv}",
        "The same trace as jitter: in results it is no part of the path's propagation delay.",
    ),
    "loss": _passing("{loss: 5 %}", "One packet in twenty is lost, independently of the others."),
    "gilbert": _passing(
        "{gilbert: {p: 2 %, r: 20 %}}",
        "Losses come in bursts: each packet begins a bad time with 2 % and ends one with 20 %.",
    ),
    "periodicloss": _passing("{periodicloss: 50 packets}", "Every 50th packet is lost."),
    "losslist": _passing("{losslist: [100, 101, 102, 300]}", "Exactly these packets are lost."),
    "reorder": _link(
        "{reorder: {ratio: 5 %, delay: 10 ms}}",
        "One packet in twenty is held for 10 ms and overtaken by five others.",
    ),
    "duplicate": _passing("{duplicate: 5 %}", "One packet in twenty leaves twice."),
    "corrupt": _passing("{corrupt: 5 %}", "One packet in twenty is damaged; its receiver will discard it."),
    "policer": _passing(
        "{policer: {rate: 4 Mbit/s, burst: 75 kB}}",
        "6 Mbit/s come. The burst passes, then a third is dropped; nothing is ever delayed.",
    ),
    "ackaggregation": Example(
        "{ackaggregation: {packets: 10 packets, time: 50 ms}}",
        "Acknowledgements, one every 5 ms, leave together every 50 ms.",
        Load((Stream(5000.0, ((0.0, 0.4),), size=40, ack=True),)),
        seconds=0.4,
    ),
    "ackdecimation": _passing(
        "{ackdecimation: 4 packets}",
        "Of acknowledgements, one per ms, every fourth is kept; the others are dropped.",
        load=_ACKS,
        seconds=0.4,
        bin_ms=20,
    ),
    "mtu": _passing(
        "{mtu: 1000 B}",
        "600 bytes pass; the 1500 bytes that come between 300 and 800 ms do not.",
        load=Load((Stream(5000.0, ((0.0, 1.0),), size=600), Stream(25000.0, ((0.3, 0.8),)))),
    ),
    "outage": _link(
        "{outage: {start: 300 ms, length: 200 ms, mode: hold}}",
        "For 200 ms nothing passes; what came meanwhile leaves together at the end.",
    ),
    "gate": _passing(
        "{gate: {open: true}}",
        "A timeline closes it at 300 ms and opens it at 600 ms; what comes to a closed gate is dropped.",
        changes=(
            {"at_ns": 300_000_000, "element": "probe", "set": {"open": False}},
            {"at_ns": 600_000_000, "element": "probe", "set": {"open": True}},
        ),
    ),
}

_LOAD_SHOWN = "What arrives through 20 Mbit/s"
TRAFFIC = {
    "bulk": Example("bulk", f"{_LOAD_SHOWN}: as much as the scheme allows.", seconds=10, bin_ms=100),
    "transfer": Example("{transfer: 10 MB}", f"{_LOAD_SHOWN}: 10 MB, then nothing.", seconds=10, bin_ms=100),
    "onoff": Example(
        "{onoff: {on: 1 s, off: 1 s, law: exponential}}",
        f"{_LOAD_SHOWN}: times of sending and of silence.",
        seconds=10,
        bin_ms=100,
    ),
    "cbr": Example(
        "{cbr: 2 Mbit/s}", f"{_LOAD_SHOWN}: datagrams at equal distances.", seconds=10, bin_ms=100
    ),
    "poisson": Example(
        "{poisson: 2 Mbit/s}", f"{_LOAD_SHOWN}: datagrams with exponential gaps.", seconds=10, bin_ms=100
    ),
    "requests": Example(
        "{requests: {response: 500 kB, think: 500 ms}}",
        f"{_LOAD_SHOWN}: answers of 500 kB with times to think between them.",
        seconds=10,
        bin_ms=100,
    ),
    "arrivals": Example(
        "{arrivals: {size: 50 kB, load: 8 Mbit/s}}",
        f"{_LOAD_SHOWN}: flows of 50 kB that come as a Poisson process and offer 8 Mbit/s.",
        seconds=20,
        bin_ms=200,
    ),
    "web": Example(
        "{web: 8 Mbit/s}",
        f"{_LOAD_SHOWN}: as many users as offer 8 Mbit/s in the long run; their files have heavy tails.",
        seconds=60,
        bin_ms=500,
    ),
}

FAMILIES = {"queues": QUEUES, "rates": RATES, "links": LINKS, "traffic": TRAFFIC}
