"""Films in players: metrics and figure of their logs, with a minimal player and with dash.js."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import program_kit
from narrows.campaign import players
from narrows.documents.resolved import read_cell
from test_programs_run import BUSY, add, call, campaign, possible, run_of

__all__ = ["possible"]

MS = 1_000_000
METRICS = (
    "playback_startup_ns",
    "playback_stalls",
    "playback_stalled_ratio",
    "playback_bitrate_bps",
    "playback_switches",
)
#: A film of six segments of half a second, fetched from a Python server; the picture stalls once.
PLAYER = """\
import json, sys, time, urllib.request

address, port = sys.argv[1:]
out = open("segments.ndjson", "w", 1)

def tell(**what):
    print(json.dumps({**what, "at_ns": time.monotonic_ns()}), file=out)

tell(state="begun")
for number, rate in enumerate((200_000, 200_000, 800_000, 800_000, 400_000, 400_000)):
    asked = time.monotonic_ns()
    size = rate // 16
    urllib.request.urlopen(f"http://{address}:{port}/{size}").read()
    tell(segment=number, asked_ns=asked, bytes=size, bitrate_bps=rate, duration_ns=500_000_000)
    if number in (1, 4):
        tell(state="playing")
    if number == 3:
        tell(state="stalled")
        time.sleep(0.4)
time.sleep(99)
"""
SERVER = """\
import http.server, sys

class Film(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(bytes(int(self.path[1:])))

http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Film).serve_forever()
"""
MANIFEST = """\
schema: narrows/program/1
what: A film
data: listener
segments: segments.ndjson
listener: {command: "python3 {here}/server.py {port}", ready: tcp}
connector: {command: "python3 {here}/player.py {address} {port}"}
"""


def _read(folder: Path, lines: list[dict[str, Any]], **flow: Any) -> players.Playback | str:
    place = folder / "logs" / "flow-1-connector"
    place.mkdir(parents=True, exist_ok=True)
    (place / "s.ndjson").write_text("nonsense\n" + "".join(json.dumps(one) + "\n" for one in lines))
    program = {"data": "listener", "segments": "s.ndjson"}
    cell = read_cell({"duration_ns": 10_000 * MS, "flows": [{"flow": 1, "program": program, **flow}]})
    return players.of_run(folder, cell)[1]


def _segment(at_ms: int, number: int, bitrate: int) -> dict[str, Any]:
    return {"segment": number, "at_ns": at_ms * MS, "bitrate_bps": bitrate, "duration_ns": 2000 * MS}


def _state(at_ms: int, state: str) -> dict[str, Any]:
    return {"state": state, "at_ns": at_ms * MS}


def test_stalls_and_qualities_are_those_until_the_flow_stopped(tmp_path: Path) -> None:
    lines = [
        _state(5000, "begun"),
        _state(5100, "stalled"),  # It has not moved yet.
        _segment(5400, 0, 300_000),
        _state(5500, "playing"),
        _segment(6000, 1, 300_000),
        _segment(6500, 2, 300_000),
        _state(7000, "stalled"),
        _segment(7400, 2, 600_000),  # Again, in a better quality.
        _state(7500, "playing"),
        _segment(8000, 3, 300_000),
        _state(12000, "stalled"),
        _segment(14000, 4, 900_000),
        _state(14500, "playing"),
        _state(20000, "stopped"),
    ]
    found = _read(tmp_path, lines, start_ns=1000 * MS, stop_ns=9000 * MS)
    assert isinstance(found, players.Playback)
    assert (found.end_ns, found.moved_ns) == (8000 * MS, 500 * MS)
    # The second one lasts as long as the flow.
    assert found.stalls == [(2000 * MS, 2500 * MS), (7000 * MS, 8000 * MS)]
    assert found.film() == [(rate, 2000 * MS) for rate in (3e5, 3e5, 6e5, 3e5)]
    longer = _read(tmp_path, lines, start_ns=0)
    assert isinstance(longer, players.Playback)
    assert longer.stalls[1] == (7000 * MS, 9500 * MS)
    assert len(longer.film()) == 5


def test_what_nobody_knows_has_a_reason(tmp_path: Path) -> None:
    none = read_cell({"flows": [{"flow": 1, "program": {"name": "x"}}, {"flow": 2}]})
    assert players.of_run(tmp_path, none) == {}
    assert _read(tmp_path, []) == "the file s.ndjson of the player does not say when it began"
    shutil.rmtree(tmp_path / "logs" / "flow-1-connector")
    program = {"data": "listener", "segments": "s.ndjson"}
    cell = read_cell({"duration_ns": 1, "flows": [{"flow": 1, "program": program}]})
    assert players.of_run(tmp_path, cell)[1] == "the file s.ndjson of the player does not exist"
    without = [_state(0, "begun"), {"segment": 1, "at_ns": 5}]
    assert "has a segment without its bitrate_bps" in str(_read(tmp_path, without))
    endless = [_state(0, "begun"), {**_segment(1, 1, 5), "duration_ns": 0}]
    assert "has a segment without a duration" in str(_read(tmp_path, endless))


@pytest.mark.system
def test_any_player_has_the_metrics_of_playback(tmp_path: Path) -> None:
    add(tmp_path, "film", MANIFEST)
    place = tmp_path / "config" / "narrows" / "programs"
    (place / "server.py").write_text(SERVER)
    (place / "player.py").write_text(PLAYER)
    code, document = campaign(
        tmp_path,
        'schemes: ["film:default", "linux:reno"]\nduration: 4 s\n'
        "expect:\n  - {metric: playback_stalls, scheme: film:default, at_most: 1}\n"
        "  - {metric: playback_startup_ns, scheme: film:default, at_most: 1 ms}\n",
    )
    assert code in (5, 6), document
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    rows = {row["scheme"]: row["metrics"] for row in results["rows"] if row["flow"] == 1}
    mine = rows["film:default"]
    assert mine["playback_stalls"] == 1
    assert 0.05 < mine["playback_stalled_ratio"] < 0.5
    assert mine["playback_bitrate_bps"] == pytest.approx(1.4e6 / 3)
    assert mine["playback_switches"] == 2
    assert mine["playback_startup_ns"] > 10e6
    assert all(rows["linux:reno"][name] is None for name in METRICS)
    whole = next(row for row in results["rows"] if row["flow"] is None and row["scheme"] == "film:default")
    assert whole["metrics"]["playback_stalls"] == 1
    outcomes = [one["outcome"] for one in results["expect"]]
    # A busy machine may spoil the run.
    spoilt = run_of(tmp_path, "film-default-r1")["verdict"] == "invalid"
    assert spoilt or outcomes == ["holds", "fails"]
    assert spoilt or "stalled" in call(tmp_path, "show", "out").stdout
    assert call(tmp_path, "plot", "out", "--figure", "playback", "-o", "film.pdf").returncode == 0
    rows_drawn = (tmp_path / "film.csv").read_text().splitlines()
    assert len(rows_drawn) >= 6 + 2


def _built(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for path in ("/usr/sbin/nginx", "/usr/bin/chromium", "/usr/bin/ffmpeg"):
        if not Path(path).exists():
            pytest.skip(f"{path} is not installed")
    for name, value in program_kit.need(*names).items():
        monkeypatch.setenv(name, value)


@pytest.mark.system
def test_nginx_sends_with_the_congestion_control_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _built(monkeypatch, "nginx")
    code, document = campaign(
        tmp_path, 'flows: [{scheme: "nginx:cubic"}, {scheme: "nginx:reno"}]\nduration: 4 s\n'
    )
    assert code in (0, 6), document
    cell = document["cells"][0]["id"]
    run = run_of(tmp_path, cell)
    blamed = [one for one in run["reasons"] if not one["code"].startswith((*BUSY, "endpoint_"))]
    assert not [one for one in blamed if one["severity"] != "note"], blamed
    rows = json.loads((tmp_path / "out" / "results.json").read_text())["rows"]
    for row in rows:
        if row["flow"] is not None:
            delivered = row["metrics"]["throughput_bps"]
            assert 0.7 * delivered < row["metrics"]["reported_throughput"] < 1.1 * delivered
    for number, flow in enumerate(run["flows"], 1):
        assert flow["fingerprint"]["version"].startswith("nginx version")
        for side in ("listener", "connector"):
            assert (flow["program"][side]["exit"], flow["program"][side]["left"]) == (0, [])
        # Neither its configuration nor its folders are kept.
        logs = tmp_path / "out" / "cells" / cell / "logs" / f"flow-{number}-listener"
        assert [path.name for path in logs.iterdir()] == ["requests.ndjson"]
    other = 'flows=[{scheme: {scheme: "nginx:cubic", control: nothing}}]'
    done = call(tmp_path, "run", "s.yaml", "-o", "none", "--no-report", "--set", other)
    assert "the kernel has no congestion control nothing" in done.stderr + done.stdout


@pytest.mark.system
def test_dash_js_plays_a_film(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _built(monkeypatch, "dashjs", "nginx")
    code, document = campaign(tmp_path, 'schemes: ["dashjs:dynamic", "dashjs:bola"]\nduration: 10 s\n')
    assert code in (0, 6), document
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    first = [row for row in results["rows"] if row["flow"] == 1]
    assert len(first) == 2
    for row in first:
        metrics = row["metrics"]
        assert metrics["playback_startup_ns"] < 8e9, metrics
        # The qualities of the ladder are 0.3 to 4.8 Mbit/s.
        assert 0.29e6 < metrics["playback_bitrate_bps"] < 4.9e6, metrics
        assert metrics["playback_switches"] is not None
    for cell in document["cells"]:
        flow = run_of(tmp_path, cell["id"])["flows"][0]["program"]
        for side in ("listener", "connector"):
            seen = flow[side]
            assert (seen["exit"], seen["killed"], seen["left"]) == (0, False, []), seen
        logs = tmp_path / "out" / "cells" / cell["id"] / "logs" / "flow-1-connector"
        assert [path.name for path in logs.iterdir()] == ["segments.ndjson"]
        lines = [json.loads(line) for line in (logs / "segments.ndjson").read_text().splitlines()]
        segments = [one for one in lines if "segment" in one]
        assert len(segments) > 3
        assert all(one["bytes"] > 10_000 and one["asked_ns"] < one["at_ns"] for one in segments)


@pytest.mark.system
def test_the_shipped_scenario_has_players_beside_all_others(tmp_path: Path) -> None:
    done = call(tmp_path, "run", "video", "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    cells = [cell["scheme"] for cell in json.loads(done.stdout)["cells"]]
    skipped = json.loads(done.stdout).get("skipped", [])
    assert len(cells) + len(skipped) == 5
