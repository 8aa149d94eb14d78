"""External programs between two hosts, through the tunnel."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hosts_kit as kit
import program_kit
import shell_kit
from hosts_kit import NAME, Hosts
from narrows.documents.programs import CONNECTOR, LISTENER, Plan, Side
from narrows.scenario.programs.missing import why_missing
from real_path_kit import Lab

pytestmark = pytest.mark.system

#: A shell script as a program: the sender is a pipe into a socket.
SCRIPT = """\
#!/bin/sh
case $1 in
listen) exec PYTHON -c "import socket, sys; peer = socket.create_server(('', int(sys.argv[1]))).accept()[0]
while peer.recv(65536): pass" "$2" ;;
call) yes | PYTHON -c "import socket, sys; peer = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print('calling', flush=True)
while data := sys.stdin.buffer.read(65536): peer.sendall(data)" "$2" "$3" ;;
esac
"""
MANIFEST = """\
schema: narrows/program/1
what: A shell script
data: connector
listener: {command: "sh {here}/pipe.sh listen {port}", ready: tcp}
connector: {command: "sh {here}/pipe.sh call {address} {port}"}
"""
SCENARIO = f"""\
schema: narrows/scenario/1
question: Do programs run between two hosts?
where: hosts
real_path: {{other: {NAME}, sender: both, ports: 5001-5002, retries: 2}}
duration: 2 s
flows:
  - {{}}
  - {{start: 300 ms}}
  - {{scheme: 'linux:cubic'}}
"""
#: Reasons that concern a program and not a busy machine.
BLAME = ("program_", "no_data", "wrong_", "stray_", "processes_left", "output_")


@pytest.fixture
def pair(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    if shell_kit.refusal():
        pytest.skip(shell_kit.refusal())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache-of-hosts"))
    with kit.hosts(tmp_path_factory.mktemp("hosts")) as made:
        yield made


@pytest.mark.timeout(300)
def test_programs_run_between_two_hosts(pair: Hosts, tmp_path: Path) -> None:
    (tmp_path / "pipe.sh").write_text(SCRIPT.replace("PYTHON", sys.executable))
    (tmp_path / "pipe.yaml").write_text(MANIFEST)
    schemes = ["{program: pipe.yaml}"]
    if shutil.which("iperf3"):
        schemes.append("'iperf3:cubic'")
    lab = Lab(pair, tmp_path, f"{SCENARIO}schemes: [{', '.join(schemes)}]\n")
    done = lab.run("--no-report")
    assert done.returncode in (0, 6), (done.stdout, done.stderr)
    cells = lab.campaign["cells"]
    assert len(cells) == 2 * len(schemes)
    for cell in cells:
        assert cell["state"] == "finished", cell.get("error", cell)
        run = lab.run_json(cell["id"])
        blamed = [one for one in run["reasons"] if one["code"].startswith(BLAME)]
        assert not blamed, blamed
        for number in (1, 2):
            flow = next(one for one in run["flows"] if one["flow"] == number)
            program = flow["program"]
            assert program["listener"]["ready_ns"] > 0
            assert program["connector"]["files"][0]["sha256"]
            assert program["traffic"]["sender"]["payload_bytes"] > 100_000, program["traffic"]
            assert program["traffic"]["receiver"]["packets"] > 10
            ports = {one["receiver_port"] for one in program["traffic"]["conversations"]}
            assert ports == {20_000 + number}
            assert (lab.out / "cells" / cell["id"] / "logs" / f"flow-{number}-connector.out").exists()
    results = json.loads((lab.out / "results.json").read_text())
    rates = [row["metrics"]["throughput_bps"] for row in results["rows"] if row["flow"] in (1, 2, 3)]
    assert len(rates) == 6 * len(schemes)
    assert all(rate > 100_000 for rate in rates), rates
    if len(schemes) > 1:
        reported = [row["metrics"].get("reported_throughput") for row in results["rows"] if row["flow"] == 1]
        assert any(value is not None and value > 100_000 for value in reported), reported


@pytest.mark.timeout(300)
def test_calls_between_two_hosts_have_frames(
    pair: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in program_kit.need("pion").items():
        monkeypatch.setenv(name, value)
    text = SCENARIO.replace("  - {scheme: 'linux:cubic'}\n", "").replace("sender: both", "sender: here")
    lab = Lab(pair, tmp_path, text.replace("2 s", "4 s") + 'schemes: ["pion:gcc"]\n')
    done = lab.run("--no-report")
    assert done.returncode in (0, 6), (done.stdout, done.stderr)
    results = json.loads((lab.out / "results.json").read_text())
    rows = {row["flow"]: row["metrics"] for row in results["rows"]}
    for number in (1, 2):
        assert rows[number]["reported_frames_received"] > 30, rows[number]
        # Both ends share one clock here, as the tunnel detects.
        assert 0 <= rows[number]["frame_delay_p50_ns"] < 200e6
        assert rows[number]["freezes"] is not None
        assert rows[number]["media_target_bps"] > 100_000
    (cell,) = lab.campaign["cells"]
    blamed = [
        one for one in lab.run_json(cell["id"])["reasons"] if one["code"].startswith((*BLAME, "frames"))
    ]
    assert not blamed, blamed


@pytest.mark.timeout(300)
@pytest.mark.skipif(
    shutil.which("chromium") is None, reason="no Chromium is installed (Debian package: chromium)"
)
def test_chromium_calls_from_host_to_host(pair: Hosts, tmp_path: Path) -> None:
    text = SCENARIO.replace("  - {}\n  - {start: 300 ms}\n  - {scheme: 'linux:cubic'}\n", "  - {}\n")
    text = text.replace("sender: both", "sender: here").replace("2 s", "8 s")
    # The Python of these tests: logins of the other host would find another one first.
    programs = program_kit.ROOT / "programs"
    shutil.copytree(programs / "chromium", tmp_path / "chromium")
    manifest = (programs / "chromium.yaml").read_text().replace("python3", sys.executable)
    (tmp_path / "chromium.yaml").write_text(manifest)
    program = "{program: chromium.yaml, variant: vp8, width: 320, height: 240}"
    lab = Lab(pair, tmp_path, f"{text}schemes: [{program}]\n")
    done = lab.run("--no-report")
    assert done.returncode in (0, 6), (done.stdout, done.stderr)
    (cell,) = lab.campaign["cells"]
    assert cell["state"] == "finished", cell.get("error", cell)
    run = lab.run_json(cell["id"])
    blamed = [one for one in run["reasons"] if one["code"].startswith((*BLAME, "frames"))]
    assert not blamed, blamed
    program = run["flows"][0]["program"]
    for side in (LISTENER, CONNECTOR):
        assert (program[side]["exit"], program[side]["killed"]) == (0, False), program[side]
    results = json.loads((lab.out / "results.json").read_text())
    metrics = next(row["metrics"] for row in results["rows"] if row["flow"] == 1)
    assert metrics["reported_frames_received"] > 30, metrics
    assert 0 <= metrics["frame_delay_p50_ns"] < 500e6
    assert metrics["media_sent_bps"] > 50_000


def test_only_what_runs_here_has_to_be_here() -> None:
    sides = [Side(command=[name]) for name in ("no-such-program", "sh")]
    program = Plan(name="test", listener=sides[0], connector=sides[1])
    assert "no-such-program" in str(why_missing(program))
    assert "no-such-program" in str(why_missing(program, (LISTENER,)))
    assert why_missing(program, (CONNECTOR,)) is None
