"""Shipped programs, actually built and run over emulated paths with the real agent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import program_kit
from narrows.scenario.programs import store
from narrows.scenario.programs.recipe import folder_of, is_built
from test_programs_run import BUSY, call, campaign, possible, run_of

pytestmark = pytest.mark.system
__all__ = ["possible"]

#: The QUIC libraries, each with its recorded program and the beginning of its version.
STACKS = {
    "quinn:cubic": ("narrows-quinn", "quinn 0."),
    "quic-go:reno": ("narrows-quic-go", "quic-go v0."),
}


@pytest.fixture(autouse=True)
def built(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the programs, which are built if they are not."""
    env = program_kit.need("iperf3", *(scheme.partition(":")[0] for scheme in STACKS))
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    return program_kit.FOLDER


def test_quic_libraries_share_a_link_with_tcp_and_ours(tmp_path: Path, built: Path) -> None:
    listed = ", ".join(f'{{scheme: "{scheme}"}}' for scheme in (*STACKS, "iperf3:cubic", "quic-cubic"))
    code, document = campaign(tmp_path, f"flows: [{listed}]\nduration: 6 s\n")
    assert code in (0, 6), document
    run = run_of(tmp_path, document["cells"][0]["id"])
    # A busy machine may spoil a run; programs must not.
    blamed = [one for one in run["reasons"] if not one["code"].startswith((*BUSY, "endpoint_"))]
    assert not [one for one in blamed if one["severity"] != "note"], blamed
    assert call(tmp_path, "check", "out").returncode == 0
    logs = tmp_path / "out" / "cells" / document["cells"][0]["id"] / "logs"
    for number, (scheme, (program, version)) in enumerate(STACKS.items(), 1):
        flow = run["flows"][number - 1]
        assert flow["fingerprint"]["version"].startswith(version)
        # The program that ran is the one that was built.
        (about,) = built.glob(f"{scheme.partition(':')[0]}-*/built.json")
        hashes = json.loads(about.read_text())["files"]
        process = flow["program"]["connector"]
        ran = next(one for one in process["files"] if one["path"].endswith(program))
        assert hashes[f"bin/{program}"] == ran["sha256"]
        assert (process["exit"], process["killed"], process["printed"]) == (0, False, [0, 0])
        lines = (logs / f"flow-{number}-connector" / "report.ndjson").read_text().splitlines()
        reported = [json.loads(line) for line in lines]
        assert len(reported) > 40
        assert reported[-1]["sent_packets"] > 100
        assert all(one["cwnd_bytes"] > 2000 for one in reported)
        # 20 ms are the path's, and at most as much the queue's; the machine may add some.
        assert 20 <= reported[-1]["rtt_ms"] < 100
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    rates = {row["flow"]: row["metrics"]["throughput_bps"] for row in results["rows"]}
    assert all(rates[number] > 0.5e6 for number in (1, 2, 3, 4)), rates


@pytest.mark.alone
def test_every_variant_fills_the_path_of_a_check(tmp_path: Path) -> None:
    done = call(tmp_path, "programs", "check", "quinn", "--json")
    checks = json.loads(done.stdout)["checks"]
    assert [one["scheme"] for one in checks] == ["quinn:cubic", "quinn:newreno", "quinn:bbr"]
    for one in checks:
        # Two seconds of 10 Mbit/s are 2.5 MB.
        assert one["seen"]["traffic"]["sender"]["payload_bytes"] > 1e6, one
        assert one["seen"]["connector"]["exit"] == 0, one


@pytest.mark.parametrize("name", ["quiche", "s2n-quic"])
def test_libraries_that_take_long_to_build_run_where_they_are(tmp_path: Path, name: str) -> None:
    recipe = store.load(program_kit.ROOT / "programs" / f"{name}.yaml").build
    assert recipe is not None
    if not is_built(folder_of(name, recipe)):
        pytest.skip(f"{name} has not been built (narrows programs build {name})")
    done = call(tmp_path, "programs", "check", name, "--json")
    for one in json.loads(done.stdout)["checks"]:
        assert one["seen"]["traffic"]["sender"]["payload_bytes"] > 1e6, one
        for side in ("listener", "connector"):
            seen = one["seen"][side]
            assert (seen["exit"], seen["killed"], seen["printed"]) == (0, False, [0, 0]), seen
        assert one["seen"]["connector"]["version"].startswith(f"{name} ")


def test_utp_of_bittorrent_leaves_no_received_data(tmp_path: Path) -> None:
    program_kit.need("libtorrent")
    code, document = campaign(tmp_path, 'schemes: ["libtorrent:utp"]\nduration: 4 s\n')
    assert code in (0, 6), document
    cell = document["cells"][0]["id"]
    flow = run_of(tmp_path, cell)["flows"][0]
    assert flow["fingerprint"]["version"].startswith("libtorrent 2.")
    for side in ("listener", "connector"):
        process = flow["program"][side]
        assert (process["exit"], process["killed"], process["printed"]) == (0, False, [0, 0]), process
    logs = tmp_path / "out" / "cells" / cell / "logs"
    lines = (logs / "flow-1-connector" / "report.ndjson").read_text().splitlines()
    reported = [json.loads(line) for line in lines]
    assert reported[-1]["sent_bytes"] > 1e6
    assert not any(path.stat().st_size > 1e6 for path in logs.rglob("*"))


def test_the_shipped_scenario_plans_all_stacks(tmp_path: Path) -> None:
    done = call(tmp_path, "run", "quic-stacks", "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    schemes = {cell["scheme"] for cell in plan["cells"]}
    for scheme in (*STACKS, "iperf3:cubic", "quic-cubic", "linux:cubic"):
        assert any(one.startswith(scheme) for one in schemes), schemes
