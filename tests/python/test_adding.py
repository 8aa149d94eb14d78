"""Each kind that Python registers is added by what CONTRIBUTING says and nothing else, in a copy of the
source tree. (Schemes, queues, links and metrics: tests/tests/adding.rs.)"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

FIGURE = '''"""The number of runs of a campaign."""

from matplotlib.figure import Figure

TITLE, SCOPE, ORDER = "Number of runs", "campaign", 99


def absent(data):
    return None


def numbers(data):
    return {"runs": [len(data.runs)]}


def figure(data, options):
    drawn = Figure(figsize=(2, 1))
    drawn.subplots().bar([0], numbers(data)["runs"])
    return drawn


def caption(data):
    return "This figure was added by a test."
'''

PROGRAM = """schema: narrows/program/1
what: Bytes from a script to another
source: https://docs.python.org/3/library/socket.html
licence: PSF-2.0
version: python3 --version
data: connector
variants:
  plain: {what: one connection of the kernel}
listener:
  command: [python3, -c, "import socket, sys; p = socket.create_server(('', int(sys.argv[1]))).accept()[0];
    [None for _ in iter(lambda: p.recv(65536), b'')]", "{port}"]
  ready: tcp
connector:
  command: [python3, -c, "import socket, sys; p = socket.create_connection((sys.argv[1], int(sys.argv[2])));
    [p.sendall(bytes(65536)) for _ in iter(int, 1)]", "{address}", "{port}"]
end: {when: signal}
"""

LABORATORY = {
    "lab.yaml": """schema: narrows/lab/1
title: Two rates
question: Does a flow fill a link?
source: this test
where: simulate
schemes: {reno: reno}
published: {file: published.csv, scheme: scheme}
quick: The same.
experiments:
  alone:
    scenario: alone.yaml
    what: One flow over 10 Mbit/s.
    published: {link: a}
    cases: {alone: {}}
columns:
  throughput:
    metric: throughput_bps
    definition: Rate of the flow.
    published: {column: mbps, factor: 1000000}
""",
    "alone.yaml": """schema: narrows/scenario/1
title: One flow
path:
  forward: [{rate: 10 Mbit/s, queue: {droptail: 50 kB}}, {delay: 10 ms}]
  backward: [{delay: 10 ms}]
schemes: [reno]
duration: 3 s
""",
    "published.csv": "link,scheme,mbps\na,reno,9.6\n",
    "page.md": "# Two rates\n\nOne flow fills the link.\n",
}

DOCUMENT = '''"""A note about a campaign."""

from narrows.documents.data import Part

FORMAT = "narrows/added/1"


class Note(Part, frozen=True):
    """A note about a campaign."""

    #: The text of the note.
    text: str
'''


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of those parts of the source tree that Python reads. Compiled programs are links."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(
        ROOT / "python" / "narrows",
        root / "python" / "narrows",
        ignore=shutil.ignore_patterns("__pycache__", "_bin", "_native*"),
    )
    for compiled in [ROOT / "python" / "narrows" / "_bin", *(ROOT / "python" / "narrows").glob("_native*")]:
        (root / "python" / "narrows" / compiled.name).symlink_to(compiled)
    for folder in ("labs", "programs", "scenarios"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("target"))
    (root / "pyproject.toml").write_text("")
    return root


def narrows(copy: Path, *arguments: str) -> str:
    """Runs the copy, which must accept the arguments, and returns its output."""
    # Compiled once, and beside the copy.
    cache = str(copy / "cache")
    environment = os.environ | {"PYTHONPATH": str(copy / "python"), "PYTHONPYCACHEPREFIX": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "narrows", *arguments]
    ended = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, (arguments, ended.stdout, ended.stderr)
    return ended.stdout


@pytest.fixture(scope="module")
def campaign(copy: Path) -> str:
    """A campaign that the copy has run."""
    place = str(copy / "campaign")
    path = ["--rate", "10 Mbit/s", "--delay", "10 ms", "--time", "1 s", "--runs", "1"]
    narrows(copy, "run", *path, "--schemes", "reno", "--where", "simulate", "-o", place, "--no-report")
    return place


def test_a_figure_is_one_file(copy: Path, campaign: str) -> None:
    (copy / "python/narrows/report/figures/added.py").write_text(FIGURE)
    narrows(copy, "report", campaign)
    assert (Path(campaign) / "figures" / "added.csv").read_text() == "runs\n1\n"
    assert (Path(campaign) / "figures" / "added.svg").is_file()
    page = (Path(campaign) / "report.html").read_text()
    assert "Number of runs" in page
    assert "This figure was added by a test." in page
    narrows(copy, "plot", campaign, "--figure", "added", "-o", str(copy / "added.pdf"))
    assert (copy / "added.pdf").read_bytes().startswith(b"%PDF")


def test_a_program_is_one_file(copy: Path) -> None:
    (copy / "programs" / "added.yaml").write_text(PROGRAM)
    programs = json.loads(narrows(copy, "programs", "--json"))
    assert "added" in json.dumps(programs)
    assert "added:plain" in narrows(copy, "schemes", "--json")
    assert "Bytes from a script to another" in narrows(copy, "programs", "--reference")
    narrows(copy, "run", "--rate", "10 Mbit/s", "--schemes", "added:plain", "--where", "emulate", "--dry-run")


def test_a_laboratory_is_one_folder(copy: Path) -> None:
    folder = copy / "labs" / "added"
    folder.mkdir()
    for name, text in LABORATORY.items():
        (folder / name).write_text(text)
    assert "Does a flow fill a link?" in narrows(copy, "lab", "list", "--json")
    narrows(copy, "lab", "run", "added", "-o", str(copy / "lab"))
    report = json.loads((copy / "lab" / "comparison.json").read_text())
    assert report["answer"] == ["Of 1 published value 1 is met within 10 %, 1 within 30 %."]


def test_a_scenario_is_one_file(copy: Path) -> None:
    (copy / "scenarios" / "basic" / "added.yaml").write_text(LABORATORY["alone.yaml"])
    assert "added" in narrows(copy, "scenarios", "--json")
    narrows(copy, "run", "added", "--where", "simulate", "--dry-run")


def test_a_document_is_one_file_and_one_line(copy: Path) -> None:
    (copy / "python/narrows/documents/added.py").write_text(DOCUMENT)
    registry = copy / "python/narrows/documents/reference.py"
    text = registry.read_text()
    line = '    "added": Format(added.FORMAT, "`note.json`", added.Note),\n}\n'
    text = text.replace("from narrows.documents import (", "from narrows.documents import (\n    added,", 1)
    registry.write_text(text.replace("}\n", line, 1) if "}\n" in text else text)
    assert '"text"' in narrows(copy, "schema", "--document", "added")
