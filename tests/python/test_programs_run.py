"""External programs in emulated campaigns, with the real agent."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import processes
from narrows.agent.location import this_machine

pytestmark = pytest.mark.system

SCENARIO = """\
schema: narrows/scenario/1
question: Do programs run beside the others?
where: emulate
path: {forward: [{rate: 20 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 10 ms}]}
"""
#: A program in 11 lines: a receiver and a sender of a few lines each.
MANIFEST = """\
schema: narrows/program/1
what: Two lines of Python
data: connector
listener:
  ready: tcp
  command: [python3, -c, "import socket, sys; server = socket.create_server(('', int(sys.argv[1])));
    peer = server.accept()[0]; any(iter(lambda: peer.recv(65536) == b'', True))", "{port}"]
connector:
  command: [python3, -c, "import socket, sys; at = (sys.argv[1], int(sys.argv[2]));
    peer = socket.create_connection(at); any(peer.sendall(bytes(65536)) for _ in iter(int, 1))",
    "{address}", "{port}"]
"""
#: Reasons that concern the machine and not the flows.
BUSY = ("lateness", "standstill", "emulator_", "endpoint_starved", "sender_starved", "stolen", "clock_step")
NEVER_READY = MANIFEST.replace("server.accept()", "__import__('time').sleep(99)").replace(
    "create_server(('', int(sys.argv[1])))", "socket()"
)


@pytest.fixture(autouse=True)
def possible() -> None:
    """These tests need a machine that can emulate."""
    facts = this_machine().doctor()
    for ability in (facts.namespaces, facts.packet_socket):
        if ability and not ability.ok:
            pytest.skip(str(ability.why))


def call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "XDG_CONFIG_HOME": str(folder / "config")}
    done = processes.run([sys.executable, "-m", "narrows", *arguments], cwd=folder, seconds=120, env=env)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def add(folder: Path, name: str, manifest: str) -> None:
    place = folder / "config" / "narrows" / "programs"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.yaml").write_text(manifest)


def campaign(folder: Path, text: str) -> tuple[int, dict[str, Any]]:
    (folder / "s.yaml").write_text(SCENARIO + text)
    done = call(folder, "run", "s.yaml", "-o", "out", "--no-report")
    path = folder / "out" / "campaign.json"
    assert path.exists(), done.stderr
    return done.returncode, json.loads(path.read_text())


def run_of(folder: Path, cell: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "out" / "cells" / cell / "run.json").read_text())
    return found


def test_a_program_is_added_by_one_manifest(tmp_path: Path) -> None:
    assert len(MANIFEST.splitlines()) < 15
    add(tmp_path, "mine", MANIFEST)
    code, document = campaign(
        tmp_path, 'schemes: ["mine:default"]\nduration: 3 s\nflows: {count: 2, interval: 1 s}\n'
    )
    run = run_of(tmp_path, "mine-default-r1")
    assert code in (0, 6), document
    assert all(one["code"].startswith((*BUSY, "endpoint_")) for one in run["reasons"]), run
    second = run["flows"][1]["program"]
    assert second["start_up_ns"] > 0
    assert second["connector"]["started_ns"] >= 1e9
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    whole = next(row for row in results["rows"] if row["flow"] is None)
    assert whole["metrics"]["throughput_bps"] > 10e6
    done = call(tmp_path, "check", "out")
    assert done.returncode == 0, done.stdout


def test_a_campaign_continues_when_a_program_does_not_run(tmp_path: Path) -> None:
    limit = "limits: {ready: 500 ms}\n"
    add(tmp_path, "never", NEVER_READY + limit)
    add(tmp_path, "gone", MANIFEST.replace("[python3, -c", "[no-such-program, -c"))
    schemes = 'schemes: ["never:default", "gone:default", "linux:reno"]\nduration: 1 s\n'
    code, document = campaign(tmp_path, schemes)
    states = {cell["scheme"]: cell for cell in document["cells"]}
    assert code == 6
    assert states["linux:reno"]["state"] == "finished"
    failure = json.dumps(states["never:default"])
    assert "the listener was not ready within 0.5 s: nothing listens on TCP port 20001" in failure
    assert "gone:default" not in states
    assert "there is no program no-such-program on PATH" in json.dumps(document)


def test_programs_run_beside_the_kernels_schemes_and_ours(tmp_path: Path) -> None:
    if shutil.which("iperf3") is None:
        pytest.skip("iperf3 is not installed")
    text = """\
flows: [{scheme: "iperf3:cubic"}, {scheme: "linux:cubic"}, {scheme: cubic}]
background: [{scheme: {scheme: "iperf3:udp", rate: 500k}}]
duration: 6 s
"""
    for attempt in range(4):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        code, document = campaign(folder, text)
        run = run_of(folder, document["cells"][0]["id"])
        # A busy machine may spoil a run; programs must not.
        spoilt = [one for one in run["reasons"] if one["severity"] != "note"]
        blamed = [one for one in spoilt if not one["code"].startswith(BUSY)]
        assert not blamed, blamed
        if not spoilt:
            break
    if not spoilt:
        assert (code, run["verdict"]) == (0, "ok")
    assert call(folder, "check", "out").returncode == 0
    flow = run["flows"][0]
    assert flow["fingerprint"]["version"].startswith("iperf 3")
    assert flow["program"]["connector"]["files"][0]["path"].endswith("iperf3")
    results = json.loads((folder / "out" / "results.json").read_text())
    rates = {row["flow"]: row["metrics"]["throughput_bps"] for row in results["rows"]}
    assert all(rates[number] > 1e6 for number in (1, 2, 3)), rates
    assert 0.3e6 < rates[4] < 0.7e6, rates


@pytest.mark.alone
def test_a_check_reports_its_observations(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(MANIFEST)
    done = call(tmp_path, "programs", "check", "mine.yaml", "--json")
    (trial,) = json.loads(done.stdout)["checks"]
    # A busy machine may spoil the run or delay its packets, and that is all that may be wrong with it.
    of_machine = "emulator|processor|hypervisor|packets? left .* late"
    by_the_machine = [re.search(of_machine, reason) for reason in trial["reasons"]]
    assert trial["verdict"] in ("ok", "degraded", "invalid") and all(by_the_machine), trial["reasons"]
    assert done.returncode == (6 if trial["verdict"] == "invalid" else 0), done.stdout + done.stderr
    assert trial["scheme"] == "mine:default"
    assert trial["seen"]["traffic"]["sender"]["payload_bytes"] > 500_000
    shown = call(tmp_path, "programs", "check", "mine.yaml").stdout
    assert "data       connector to listener:" in shown
    assert "to 20001" in shown
    (tmp_path / "never.yaml").write_text(NEVER_READY + "limits: {ready: 300 ms}\n")
    done = call(tmp_path, "programs", "check", "never.yaml")
    assert done.returncode == 6
    assert "never:default: failed" in done.stdout
    assert "nothing listens on TCP port 20001" in done.stdout


def test_a_check_shows_what_a_program_reports(tmp_path: Path) -> None:
    manifest = MANIFEST.replace("peer = socket.create_connection(at)", "print('rate=7.5', flush=True); \\0")
    manifest = manifest.replace("\\0", "peer = socket.create_connection(at)")
    more = "reports: {speed: {regex: 'rate=(.*)', unit: Mbit/s}, gone: {json: a.b}}\n"
    (tmp_path / "mine.yaml").write_text(manifest + more)
    done = call(tmp_path, "programs", "check", "mine.yaml", "--json")
    (found,) = json.loads(done.stdout)["checks"]
    assert found["reported"]["reported_speed"] == "7.5 Mbit/s", done.stdout
    assert "is not a JSON document" in found["reported"]["reported_gone"]
