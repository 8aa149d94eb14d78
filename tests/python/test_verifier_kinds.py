"""Every kind of link element, queue and rate in the simulator: the verifier accepts all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from narrows import _native
from narrows.scenario.files import name_in_store
from narrows.scenario.loading import load_text
from narrows.scenario.model import cells_of

Json = dict[str, Any]
MS = 1_000_000
LENGTH = 5000 * MS
DELAY: Json = {"name": "d", "kind": "delay", "delay": 10 * MS}


def bottleneck(queue: Json | None = None, rate: Json | None = None, **more: Any) -> Json:
    queue = queue or {"kind": "droptail", "bytes": 60_000}
    rate = rate or {"kind": "constant", "rate": 12_000_000}
    return {"name": "b", "kind": "bottleneck", "rate": rate, "queue": queue} | more


def cell(
    forward: list[Json], backward: list[Json] | None = None, timeline: list[Json] | None = None, **more: Any
) -> Json:
    extra = more.pop("extra", (0, 0))
    flows = [
        {
            "flow": n,
            "scheme": scheme,
            "start_ns": 400 * MS * n,
            "stop_ns": LENGTH,
            "extra_rtt_ns": extra[n - 1],
        }
        for n, scheme in ((1, "cubic"), (2, "reno"))
    ]
    backward = backward or [{"kind": "delay", "delay": 10 * MS}]
    network = {"kind": "dumbbell", "forward": forward, "backward": backward}
    return {
        "format": "narrows/cell/1",
        "id": "x",
        "scheme": "cubic",
        "run": 1,
        "where": "simulate",
        "seed": 1,
        "duration_ns": LENGTH,
        "record": "packets",
        "bin_ns": 100 * MS,
        "sample_ns": 10 * MS,
        "network": network,
        "timeline": timeline or [],
        "flows": flows,
        "transport": {},
        **more,
    }


RATES_TICKS: Json = {"kind": "ticks", "rate": 12_000_000, "tick": 1 * MS}
RATES_WIFI: Json = {"kind": "wifi", "rate": 14_400_000}
#: At 12 Mbit/s 20 packets would be in flight in it.
LINE: Json = {"name": "b", "kind": "delay", "delay": 20 * MS, "limit": 12}

LINKS: list[Json] = [
    {"kind": "loss", "ratio": 0.01},
    {"kind": "gilbert", "p": 0.01, "r": 0.3, "good": 0.0, "bad": 0.5},
    {"kind": "periodicloss", "every": 97},
    {"kind": "losslist", "packets": [5, 9, 100]},
    {"kind": "reorder", "ratio": 0.01},
    {"kind": "duplicate", "ratio": 0.02},
    {"kind": "corrupt", "ratio": 0.01},
    {"kind": "policer", "rate": 9_000_000, "burst": 20_000},
    {"kind": "ackaggregation", "packets": 10, "time": 20 * MS},
    {"kind": "ackdecimation", "keep": 4},
    {"kind": "mtu", "bytes": 1500},
    {"kind": "outage", "start": 2000 * MS, "length": 300 * MS},
    {"kind": "outage", "start": 2000 * MS, "length": 300 * MS, "period": 1000 * MS, "mode": "hold"},
    {"kind": "gate", "open": True},
    {"kind": "delay", "delay": 20 * MS, "limit": 12},
    {"kind": "jitter", "spread": 2 * MS},
    {"kind": "jitter", "spread": 2 * MS, "reorder": True},
    {"kind": "drift", "delay": 5 * MS, "amplitude": 2 * MS, "period": 1000 * MS},
    {"kind": "delayticks", "delay": 5 * MS, "tick": 2 * MS},
    {"kind": "delaysteps", "steps": [[0, 5 * MS], [3000 * MS, 1 * MS]]},
]
QUEUES: list[Json] = [
    {"kind": "drophead", "bytes": 30_000},
    {"kind": "onepacket"},
    {"kind": "red", "packets": 100},
    {"kind": "step", "threshold": 10},
    {"kind": "step", "threshold_time": 5 * MS, "packets": 60},
    {"kind": "codel"},
    {"kind": "pie"},
    {"kind": "fqcodel"},
    {"kind": "cake"},
    {"kind": "sfq"},
    {"kind": "drr", "packets": 100},
    {"kind": "dualpi2"},
    {"kind": "priority", "packets": 50},
    {"kind": "unlimited"},
    {"kind": "droptail", "packets": 20},
]
RATES: list[Json] = [
    {
        "kind": "steps",
        "steps": [[0, 12_000_000], [2000 * MS, 3_000_000], [4000 * MS, 0], [4200 * MS, 12_000_000]],
    },
    {"kind": "steps", "steps": [[0, 2_000_000], [3 * MS, 20_000_000]], "period": 10 * MS},
    {"kind": "square", "low": 1_000_000, "high": 12_000_000, "period": 777 * MS},
    {"kind": "sine", "mean": 8_000_000, "amplitude": 4_000_000, "period": 1000 * MS},
    {"kind": "poisson", "rate": 12_000_000},
    {"kind": "poissondrift", "rate": 12_000_000, "deviation": 0.3, "time": 500 * MS},
    {"kind": "onoff", "rate": 12_000_000, "on": 100 * MS, "off": 50 * MS},
    {"kind": "tokenbucket", "rate": 8_000_000, "burst": 30_000},
    {"kind": "ticks", "rate": 12_000_000, "tick": 1 * MS},
    {"kind": "ticks", "rate": 12_000_000, "tick": 10 * MS},
    {"kind": "wifi", "rate": 14_400_000},
    {"kind": "wifi", "rate": 300_000_000},
]


def _sets(element: str, changes: list[tuple[int, Json]]) -> list[Json]:
    return [{"at_ns": at * MS, "element": element, "set": change} for at, change in changes]


def _rates(changes: list[tuple[int, int]]) -> list[Json]:
    return _sets("b", [(at, {"rate": {"kind": "constant", "rate": bps}}) for at, bps in changes])


def _cases() -> dict[str, Json]:
    found = {}
    for link in LINKS:
        own = {"name": "x", **link}
        name = "-".join([str(link["kind"]), *[k for k in ("mode", "reorder") if k in link]])
        found[f"{name} before"] = cell([own, bottleneck(), DELAY])
        found[f"{name} behind"] = cell([bottleneck(), own, DELAY])
        found[f"{name} on the way back"] = cell(
            [bottleneck(), DELAY], [own, {"kind": "delay", "delay": 5 * MS}]
        )
        found[f"{name} in bins"] = cell([bottleneck(), own, DELAY], record="bins")
    for queue in QUEUES:
        kind = " ".join([str(queue["kind"]), *[key for key in queue if key.startswith("threshold")]])
        found[f"queue {kind}"] = cell([bottleneck(queue), DELAY])
        found[f"queue {kind}, two RTTs"] = cell([bottleneck(queue), DELAY], extra=(0, 7 * MS))
    for index, rate in enumerate(RATES):
        found[f"rate {index} {rate['kind']}"] = cell([bottleneck(rate=rate), DELAY])
        found[f"rate {index} {rate['kind']} in bins"] = cell([bottleneck(rate=rate), DELAY], record="bins")
    found["overhead"] = cell([bottleneck(overhead=38), DELAY])
    found["cells of ATM"] = cell([bottleneck(overhead=8, atm=True), DELAY])
    fast_changes = [
        (1000, 1_000_000),
        (1500, 500_000),
        (2000, 20_000_000),
        (2003, 100_000),
        (2005, 9_000_000),
    ]
    found["rates of a timeline"] = cell([bottleneck(), DELAY], timeline=_rates(fast_changes))
    limits: list[tuple[int, Json]] = [
        (2000, {"queue": {"bytes": 15_000}}),
        (4000, {"queue": {"bytes": 90_000}}),
    ]
    found["limits of a timeline"] = cell([bottleneck(), DELAY], timeline=_sets("b", limits))
    delays: list[tuple[int, Json]] = [(2000, {"delay": 3 * MS}), (4000, {"delay": 30 * MS})]
    found["delays of a timeline"] = cell([bottleneck(), DELAY], timeline=_sets("d", delays))
    gate: Json = {"name": "g", "kind": "gate", "open": True}
    cut = _sets("g", [(2000, {"open": False}), (2500, {"open": True})])
    found["a cut in front"] = cell([gate, bottleneck(), DELAY], timeline=cut)
    found["a cut behind"] = cell([bottleneck(), DELAY, gate], timeline=cut)
    twice = [{"name": name, "kind": "duplicate", "ratio": 0.02} for name in ("x", "y")]
    found["copies of copies"] = cell([twice[0], bottleneck(), twice[1], DELAY])
    found["copies, two RTTs"] = cell([DELAY, twice[0], bottleneck()], extra=(0, 3 * MS))
    return found


CASES = _cases()


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_wrong_with_it(name: str, tmp_path: Path) -> None:
    record = json.loads(_native.simulate(json.dumps(CASES[name]), tmp_path / "x"))
    assert [check for check in record["checks"] if not check["ok"]] == []
    measured = json.loads(_native.measure(tmp_path / "x"))
    utilization = measured["flows"][-1]["metrics"]["utilization_ratio"]
    assert utilization is not None and 0 < utilization < 1.02


def _examples() -> dict[tuple[str, str], str]:
    """Each kind of the registry, with the syntax on its page."""
    document = json.loads(_native.registry())
    return {
        (family, str(entry["name"])): str(entry["example"]["written"])
        for family in ("links", "queues", "rates")
        for entry in document[family]
    }


SCENARIO = """\
schema: narrows/scenario/1
question: Does the verifier accept it?
where: simulate
duration: 5 s
schemes: [cubic]
runs: 1
flows: {count: 2, interval: 400 ms}
path:
  forward: [{rate: RATE, queue: QUEUE}, LINK, {delay: 10 ms}]
"""
EXAMPLES = _examples()


@pytest.mark.parametrize("kind", EXAMPLES, ids=" ".join)
def test_the_example_of_each_registered_kind_is_verified(kind: tuple[str, str], tmp_path: Path) -> None:
    usual = {"links": "{periodicloss: 500 packets}", "queues": "{droptail: 60 kB}", "rates": "12 Mbit/s"}
    parts = usual | {kind[0]: EXAMPLES[kind]}
    text = SCENARIO
    for family, part in parts.items():
        text = text.replace(family[:-1].upper(), part)
    planned = load_text(text, is_point=True).scenario
    files = tmp_path / "files"
    files.mkdir()
    for sha256, content in planned.files.contents.items():
        (files / name_in_store(planned.files.names[sha256], sha256)).write_bytes(content)
    planned_cell = cells_of(planned)[0].to_text()
    record = json.loads(_native.simulate(planned_cell, tmp_path / "x", files))
    assert [check for check in record["checks"] if not check["ok"]] == []
    assert record["flows"][0]["sender"]["sent_packets"] > 0


#: The actual behaviour, the false description in the cell, and the check that must detect it.
LIES: list[tuple[str, list[Json], Json, str]] = [
    ("a slower tick", [bottleneck(rate=RATES_TICKS), DELAY], {"rate": {"tick": 3 * MS}}, "bursts"),
    (
        "a tick with less credit",
        [bottleneck(rate=RATES_TICKS), DELAY],
        {"rate": {"rate": 9_000_000}},
        "bursts",
    ),
    ("a slower radio", [bottleneck(rate=RATES_WIFI), DELAY], {"rate": {"rate": 12_000_000}}, "bursts"),
    ("smaller aggregates", [bottleneck(rate=RATES_WIFI), DELAY], {"rate": {"frames": 2}}, "bursts"),
    ("longer contention", [bottleneck(rate=RATES_WIFI), DELAY], {"rate": {"overhead": 300_000}}, "bursts"),
    ("a shorter line", [bottleneck(name="c"), LINE], {"limit": 11}, "lines"),
    ("a longer line", [LINE, bottleneck(name="c")], {"limit": 13}, "lines"),
    ("a line without limit", [bottleneck(name="c"), LINE], {"limit": None}, "fates"),
]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie[0])
def test_a_cell_that_says_otherwise_is_noticed(
    lie: tuple[str, list[Json], Json, str], tmp_path: Path
) -> None:
    _, forward, change, check = lie
    own = cell(forward)
    _native.simulate(json.dumps(own), tmp_path / "x")
    path = tmp_path / "x" / "run.json"
    record = json.loads(path.read_text())
    [element] = [each for each in record["cell"]["network"]["forward"] if each["name"] == "b"]
    for key, value in change.items():
        element[key] = {**element[key], **value} if isinstance(value, dict) else value
    path.write_text(json.dumps(record))
    found = json.loads(_native.verify(tmp_path / "x"))["checks"]
    assert check in [one["name"] for one in found if not one["ok"]]
