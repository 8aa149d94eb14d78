"""The campaign of all schemes of the Pantheon reports: each runs, or is skipped with the missing
requirement."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from narrows import _native
from narrows.campaign.plan import Plan, make_plan
from narrows.documents.agent import MachineFacts
from narrows.scenario import Override, load
from narrows.scenario.files import name_in_store
from narrows.scenario.shipped import list_scenarios

#: Long enough for every scheme to leave its start. A flow whose very first packet finds the queue full (Verus
#: begins with a single packet) waits a second before it tries again.
TIME, INTERVAL = "5 s", "1 s"

(SCENARIO,) = [one for one in list_scenarios() if one.name == "all-schemes"]


def plan() -> Plan:
    # FillP fills the queue so that none of a newcomer's packets arrives within 5 s in 3 of 11 seeds, with
    # noise of the hosts and without it; without it the scenario's seed is not among them.
    short = [
        Override("--time", "duration", TIME),
        Override("--set", "flows.interval", INTERVAL),
        Override("--set", "hosts.all.noise", "none"),
    ]
    return make_plan(load(SCENARIO.path, short).scenario, MachineFacts())


def test_every_report_has_its_scheme() -> None:
    whole = plan()
    names = {flow.scheme for row in whole.scenario.schemes for flow in row.flows}
    wanted = {"bbr1", "utp", "quic-cubic", "copa", "koho", "koho-calibrated", "pcc-allegro", "vivace"}
    wanted |= {"pcc-expr", "verus", "fillp", "fillp-sheep"}
    wanted |= {"sprout", "scream", "gcc", "remy", "indigo", "muses"}
    assert wanted <= names
    for one in whole.skipped:
        assert "narrows models add" in one.reason, one


@pytest.mark.parametrize("label", [cell.scheme for cell in plan().cells])
def test_three_flows_of_it_run(label: str, tmp_path: Path) -> None:
    whole = plan()
    (cell,) = [one for one in whole.cells if one.scheme == label]
    files = tmp_path / "files"
    files.mkdir()
    known = whole.scenario.files
    for sha256, content in known.contents.items():
        (files / name_in_store(known.names[sha256], sha256)).write_bytes(content)
    out = tmp_path / "out"
    run = json.loads(_native.simulate(cell.to_text(), out, files))
    assert run["verdict"] == "ok", run["reasons"]
    assert all(check["ok"] for check in json.loads(_native.verify(out))["checks"])
    rows = {row["flow"]: row["metrics"] for row in json.loads(_native.measure(out))["flows"]}
    assert len(run["flows"]) == 3
    for number in ("1", "2", "3"):
        # The slowest of all is SCReAM, with at least 64 kbit/s.
        assert rows[number]["throughput_bps"] > 50_000, rows[number]
    # The first second belongs to the first flow, and nothing is faster than the link.
    assert rows["all"]["throughput_bps"] < 12.01e6
