"""A campaign between two hosts without a tunnel: an sshd in another namespace, and no log of packets."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import hosts_kit as kit
import processes
import shell_kit
from hosts_kit import NAME
from narrows.report import document
from narrows.report.data import load

pytestmark = pytest.mark.system

SCENARIO = f"""\
schema: narrows/scenario/1
question: What do the ends of flows count without a tunnel?
where: hosts
real_path: {{other: {NAME}, sender: both, tunnel: off, ports: 5001-5002}}
flows:
  - {{scheme: 'linux:cubic', traffic: {{transfer: 40 MB}}}}
  - {{scheme: copa, direction: backward, start: 100 ms, traffic: {{transfer: 300 kB}}}}
duration: 1 s
report: {{pdf: false}}
"""


def test_ends_of_flows_are_measured_without_a_tunnel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Kernel and our endpoints, both directions; packet metrics are absent, with the reason."""
    if shell_kit.refusal():
        pytest.skip(shell_kit.refusal())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache-of-hosts"))
    scenario, out = tmp_path / "x.yaml", tmp_path / "out"
    scenario.write_text(SCENARIO)
    with kit.hosts(tmp_path_factory.mktemp("bare")) as pair:
        words = pair.words(str(scenario), "-o", str(out), command="run")
        done = processes.run(words, env=pair.environment(), seconds=120)
        # On a busy machine some runs may be invalid, and say so.
        assert done.returncode in (0, 6), done.stderr
        assert f"without a tunnel to {NAME}" in done.stderr, done.stderr
    cells = json.loads((out / "campaign.json").read_text())["cells"]
    assert len(cells) == 2 and {cell["state"] for cell in cells} == {"finished"}, done.stderr
    for row in json.loads((out / "results.json").read_text())["rows"]:
        metrics = row["metrics"]
        assert metrics["goodput_bps"] > 0, row
        # The other transfer may end before its sender was sampled for the first time.
        assert row["flow"] == 2 or metrics["rtt_p95_ns"] > 0, row
        for name in ("throughput_bps", "delay_p95_ns", "loss_ratio"):
            assert metrics[name] is None and "there was no tunnel" in row["absent"][name], row
    for cell in cells:
        run = json.loads((out / "cells" / cell["id"] / "run.json").read_text())
        assert run["tunnel"] is None and all(check["ok"] for check in run["checks"]), run["checks"]
        assert "ends_only" in {reason["code"] for reason in run["reasons"]}
        # Both ends share one clock here: the reported offset must be right, and not trivial.
        assert 0 < run["clock"]["error_ns"] < 100_000_000
    told = document.compose(load(out), {})
    assert "goodput" in told.answer[0] or "No run is valid" in told.answer[0]
    assert [column.head for column in told.results.table.columns][-3:] == [
        "goodput",
        "95th percentile round-trip time",
        "retransmitted",
    ]
    assert "without a tunnel" in str(told)
    assert (out / "report.html").exists()
    shown = processes.run([sys.executable, "-m", "narrows", "show", str(out)])
    assert "goodput" in shown.stdout and "one-way" not in shown.stdout, shown
