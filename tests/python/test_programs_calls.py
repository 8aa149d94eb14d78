"""Video calls of programs: frames in the metrics of our media schemes, with real Chromium and pion."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

import program_kit
from narrows.scenario.programs import store
from narrows.scenario.programs.missing import why_missing
from narrows.scenario.programs.scheme import defaults, plan
from test_programs_run import BUSY, add, call, campaign, possible, run_of

pytestmark = pytest.mark.system
__all__ = ["possible"]

PROGRAMS = program_kit.ROOT / "programs"
#: The metrics of frames that any flow with video has.
OF_FRAMES = (
    "media_target_bps",
    "media_sent_bps",
    "frame_delay_p50_ns",
    "frame_delay_p95_ns",
    "frame_loss_ratio",
    "freezes",
    "freeze_ratio",
)
#: Apart from path and schemes it is the shipped scenario, ten times as fast and a quarter as long.
SHORTER = (
    "path.forward.0.rate={steps: [[0 s, 1 Mbit/s], [4 s, 2.5 Mbit/s], [6 s, 0.6 Mbit/s], [8 s, 1 Mbit/s]]}",
    "flows={stop: 9.5 s}",
    "duration=10 s",
)
#: A minimal camera and screen: a frame of 1000 bytes each 40 ms, none of which arrives for half a second.
CAMERA = """\
schema: narrows/program/1
what: A camera
data: connector
frames: "{log}/frames.ndjson"
listener:
  ready: udp
  command: [python3, -c, "import json, socket, sys, time; out = open('frames.ndjson', 'w', 1);
    at = socket.socket(type=socket.SOCK_DGRAM); at.bind(('', int(sys.argv[1])));
    [print(json.dumps(dict(frame=int(at.recv(2000)[:9]), at_ns=time.monotonic_ns())), file=out)
    for _ in iter(int, 1)]", "{port}"]
connector:
  command: [python3, -c, "import json, socket, sys, time; out = open('frames.ndjson', 'w', 1);
    at = socket.socket(type=socket.SOCK_DGRAM); at.connect((sys.argv[1], int(sys.argv[2])));
    [(print(json.dumps(dict(frame=n + 7, at_ns=time.monotonic_ns(), bytes=1000, key=n == 0)), file=out),
    25 <= n < 38 or at.send(b'%09d' % (n + 7) + bytes(991)), time.sleep(0.04)) for n in range(9999)]",
    "{address}", "{port}"]
"""


def _frames_shown(folder: Path) -> str | None:
    """The table of frames; None if a busy machine has spoiled all runs."""
    document = json.loads((folder / "out" / "campaign.json").read_text())
    if all(cell["verdict"] == "invalid" for cell in document["cells"]):
        return None
    shown = call(folder, "show", "out").stdout
    return shown[shown.index("frames lost") :]


def _metrics(folder: Path) -> dict[str, dict[str, float | None]]:
    results = json.loads((folder / "out" / "results.json").read_text())
    return {row["scheme"]: row["metrics"] for row in results["rows"] if row["flow"] is None}


def test_a_freeze_of_any_program_is_counted_as_one_of_ours(tmp_path: Path) -> None:
    add(tmp_path, "camera", CAMERA)
    code, plan = campaign(tmp_path, 'schemes: ["camera:default", gcc]\nduration: 3 s\n')
    assert code in (0, 6), plan
    found = _metrics(tmp_path)
    mine = found["camera:default"]
    assert mine["freezes"] == 1
    # Half a second of three.
    assert 0.1 < (mine["freeze_ratio"] or 0) < 0.3
    assert 0.1 < (mine["frame_loss_ratio"] or 0) < 0.3
    assert 10e6 < (mine["frame_delay_p95_ns"] or 0) < 60e6
    assert mine["media_sent_bps"] == pytest.approx(200e3, rel=0.1)
    assert mine["media_target_bps"] is None
    assert all(found["gcc"][name] is not None for name in OF_FRAMES)
    assert call(tmp_path, "check", "out").returncode == 0
    table = _frames_shown(tmp_path)
    spoilt = [cell["scheme"] for cell in plan["cells"] if cell["verdict"] == "invalid"]
    assert table is None or "camera:default" in spoilt or ("frozen" in table and "camera:default" in table)


def test_frames_that_were_never_sent_make_a_run_invalid(tmp_path: Path) -> None:
    add(tmp_path, "camera", CAMERA.replace("dict(frame=n + 7", "dict(frame=n + 8"))
    code, plan = campaign(tmp_path, 'schemes: ["camera:default"]\nduration: 1 s\n')
    assert code == 6
    reasons = run_of(tmp_path, plan["cells"][0]["id"])["reasons"]
    assert "that its sender never sent" in next(one["text"] for one in reasons if one["code"] == "frames")


def _needed(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for name, value in program_kit.need(*names).items():
        monkeypatch.setenv(name, value)


def test_pion_makes_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _needed(monkeypatch, "pion")
    code, plan = campaign(tmp_path, 'schemes: ["pion:gcc"]\nduration: 4 s\n')
    assert code in (0, 6), plan
    cell = plan["cells"][0]["id"]
    run = run_of(tmp_path, cell)
    blamed = [one for one in run["reasons"] if not one["code"].startswith((*BUSY, "endpoint_"))]
    assert not [one for one in blamed if one["severity"] != "note"], blamed
    assert run["flows"][0]["fingerprint"]["version"].startswith("pion/webrtc v4.")
    found = _metrics(tmp_path)["pion:gcc"]
    assert all(found[name] is not None for name in OF_FRAMES)
    assert (found["reported_frames_received"] or 0) > 60
    assert 0.9 < (found["reported_sent"] or 0) / (found["media_sent_bps"] or 1) < 1.2
    assert call(tmp_path, "check", "out").returncode == 0
    logs = tmp_path / "out" / "cells" / cell / "logs"
    lines = (logs / "flow-1-connector" / "report.ndjson").read_text().splitlines()
    assert {"usage", "state", "averageLoss", "target_bps"} <= json.loads(lines[-1]).keys()


@pytest.mark.skipif(
    shutil.which("chromium") is None, reason="no Chromium is installed (Debian package: chromium)"
)
def test_the_shipped_calls_have_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _needed(monkeypatch, "pion")
    changes = [word for change in SHORTER for word in ("--set", change)]
    done = call(tmp_path, "run", "calls", "-o", "out", "--no-report", *changes)
    assert done.returncode in (0, 6), done.stderr
    found = _metrics(tmp_path)
    assert {name.partition(" ")[0] for name in found} == {"chromium:rfc8867", "pion:rfc8867", "gcc", "scream"}
    for scheme, metrics in found.items():
        missing = [name for name in OF_FRAMES if metrics[name] is None]
        assert not missing, f"{scheme}: {missing}"
    chromium = found["chromium:rfc8867"]
    # A film of 30 frames a second for the seven seconds or more that remain once the call is set up.
    assert (chromium["reported_frames_decoded"] or 0) > 100
    assert (chromium["media_sent_bps"] or 0) > 150e3
    table = _frames_shown(tmp_path)
    cells = json.loads((tmp_path / "out" / "campaign.json").read_text())["cells"]
    for cell in cells:
        assert table is None or cell["verdict"] == "invalid" or f"\n{cell['scheme']} " in table, table
    cell = next(cell["id"] for cell in cells if cell["scheme"] == "chromium:rfc8867")
    for side in ("listener", "connector"):
        seen = run_of(tmp_path, cell)["flows"][0]["program"][side]
        assert (seen["exit"], seen["killed"], seen["left"]) == (0, False, []), seen
        # Neither the film nor the browser's own files are kept.
        logs = tmp_path / "out" / "cells" / cell / "logs" / f"flow-1-{side}"
        assert {path.name for path in logs.iterdir()} == {"frames.ndjson", "stats.ndjson"}


def test_where_chromium_is_missing_a_sentence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    shutil.copytree(PROGRAMS / "chromium", store.user_folder() / "chromium")
    text = (PROGRAMS / "chromium.yaml").read_text()
    path = store.user_folder() / "chromium.yaml"
    path.write_text(text.replace("/usr/bin/chromium", "/no/chromium"))
    program = store.load(path)
    variant = program.variants["vp8"]
    reason = why_missing(plan(program, variant, defaults(program, variant)))
    assert reason == "its file /no/chromium does not exist; run: narrows programs build chromium"


def _part_of_chromium(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(PROGRAMS / "chromium"), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec = importlib.util.spec_from_file_location(f"chromium_{name}", PROGRAMS / "chromium" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its neighbours are not the tests' modules of the same names.
    neighbours = [file.stem for file in (PROGRAMS / "chromium").glob("*.py")]
    known = {name: sys.modules.pop(name) for name in neighbours if name in sys.modules}
    try:
        spec.loader.exec_module(module)
    finally:
        for other in neighbours:
            sys.modules.pop(other, None)
        sys.modules.update(known)
    return module


def test_the_film_is_whole_and_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    camera = _part_of_chromium("camera", monkeypatch)
    for name in ("a.y4m", "b.y4m"):
        camera.shoot(tmp_path / name, 66, 50, 29.97)
    film = (tmp_path / "a.y4m").read_bytes()
    assert film == (tmp_path / "b.y4m").read_bytes()
    head, _, frames = film.partition(b"\n")
    assert head == b"YUV4MPEG2 W66 H50 F29970:1000 Ip A1:1 C420jpeg"
    assert len(frames) == camera.FRAMES * (6 + 66 * 50 * 3 // 2)
    first, second = (frames[6 + at : 6 + at + 66 * 50] for at in (0, 6 + 66 * 50 * 3 // 2))
    assert first != second


def test_rates_go_where_chromium_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    call_of = _part_of_chromium("call", monkeypatch)
    answer = "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96 97\r\na=rtpmap:96 VP8/90000\r\na=rtpmap:97 rtx/90000\r\n"
    found = call_of.with_rates(answer, 300_000, 30_000, 2_500_000)
    fmtp = "a=fmtp:96 x-google-start-bitrate=300;x-google-min-bitrate=30;x-google-max-bitrate=2500\r\n"
    assert found == answer.replace("VP8/90000\r\n", f"VP8/90000\r\n{fmtp}")
