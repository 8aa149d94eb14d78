"""Every command that writes, on a full disk and on a read-only one: one sentence that names the place, the
exit code of a failure, and no incomplete output.

The disk is a real one (tmpfs) in a mount namespace that ends with the command.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from campaign_kit import one_and_two
from mutated_kit import ROOT
from narrows.errors import EXIT_BAD_INPUT, EXIT_FAILURE

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

SWEEP = """\
schema: narrows/scenario/1
name: swept
question: Is there room?
where: simulate
path: {forward: [{rate: 4 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 10 ms}]}
schemes: [reno]
duration: 1 s
sweep: {path.forward.0.rate: [2 Mbit/s, 4 Mbit/s]}
"""
TABLE = "scheme,run,flow,throughput (Mbit/s),delay (ms),loss (%)\n"
TABLE += "cubic,1,all,1,50,0\nreno,1,all,1.1,48,0\nvegas,1,all,1,22,0\n"

#: Commands, with DISK for the full folder and IN for their inputs. Those that write beside their input find
#: it in DISK/c.
COMMANDS = {
    "run": "run IN/short.yaml -o DISK/out --no-report",
    "report": "report DISK/c",
    "plot": "plot IN/c -o DISK/figure.pdf",
    "export csv": "export IN/c --format csv -o DISK/out",
    "export pcapng": "export IN/c --format pcapng -o DISK/out",
    "export pantheon": "export IN/c --format pantheon -o DISK/out",
    "export qlog": "export IN/c --format qlog -o DISK/out",
    "compare": "compare IN/c --html -o DISK/compared.html",
    "site": "site IN/c -o DISK/site",
    "merge": "merge IN/c IN/d -o DISK/out",
    "note": "note DISK/c words",
    "tag": "tag DISK/c words",
    "sweep run": "sweep run IN/swept.yaml -o DISK/out",
    "sweep export": "sweep export IN/swept.yaml --slurm -o DISK/out",
    "hunt": "hunt reno --worst loss --budget 20 --time 2 --no-report -o DISK/out",
    "calibrate": "calibrate IN/table.csv --time 2 --budget 50 -o DISK/out",
    "lab run": "lab run geni --quick -o DISK/out",
    "lab new": "lab new DISK/out",
    "lab copy": "lab copy geni DISK/out",
    "init": "init DISK/new.yaml",
    "trace make": "trace make cellular DISK/drive.csv",
    "trace convert": "trace convert IN/link.csv DISK/link.trace",
    "import mahimahi": "import mahimahi IN/up.log -o DISK/out",
}
#: In a private namespace: a disk, its existing content, no free space, the command, and its output.
SCRIPT = """\
set -e
mount -t tmpfs -o size=8m tmpfs "$1"
if [ -d "$2/c" ]; then cp -r "$2/c" "$1/c"; rm -f "$1/c/notes.json"; fi
if [ "$3" = full ]; then cat /dev/zero > "$1/filler" 2>/dev/null || true; else mount -o remount,ro "$1"; fi
shift 3
set +e
"$@"
code=$?
cp -r "$DISK" "$LEFT"
exit $code
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("no-room")
    made = one_and_two(place / "made")
    (made / "one").rename(place / "c")
    (made / "two").rename(place / "d")
    shutil.copy(made / "one.yaml", place / "short.yaml")
    (place / "swept.yaml").write_text(SWEEP)
    (place / "table.csv").write_text(TABLE)
    (place / "link.csv").write_text("time_s,rate_mbps\n0,4\n1,2\n2,4\n")
    logs = sorted((ROOT / "tests/imports/mahimahi").glob("cubic_up_1.log"))
    shutil.copy(logs[0], place / "up.log")
    return place


@pytest.mark.parametrize("disk", ["full", "read-only"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_without_room_ends_with_one_sentence(
    inputs: Path, tmp_path: Path, name: str, disk: str
) -> None:
    place, left, temporary = tmp_path / "disk", tmp_path / "left", tmp_path / "tmp"
    place.mkdir()
    temporary.mkdir()
    words = COMMANDS[name].replace("DISK", str(place)).replace("IN", str(inputs)).split()
    command = [sys.executable, "-m", "narrows", *words]
    beside = str(inputs) if str(place / "c") in words else "/nowhere"
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    done = subprocess.run(
        [*unshare, "sh", "-c", SCRIPT, "sh", str(place), beside, disk, *command],
        cwd=tmp_path,
        env=os.environ | {"DISK": str(place), "LEFT": str(left), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert left.is_dir(), done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("narrows: ")]
    assert done.returncode in (EXIT_FAILURE, EXIT_BAD_INPUT), (done.returncode, done.stdout, done.stderr)
    assert len(said) == 1, done.stderr
    assert str(place) in said[0], said
    assert "traceback" not in done.stderr.lower() and "internal error" not in done.stderr, done.stderr
    assert not list(temporary.iterdir())
    before = inputs / "c"
    for file in left.rglob("*"):
        if file.is_dir() or file.name == "filler":
            continue
        own = before / file.relative_to(left / "c") if file.is_relative_to(left / "c") else None
        if own is not None and own.is_file():
            assert file.read_bytes() == own.read_bytes(), file
        elif file.suffix == ".json":
            json.loads(file.read_text())
        else:
            assert file.stat().st_size == 0 or file.suffix in {".yaml", ".jsonl"}, file
