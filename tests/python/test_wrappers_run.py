"""Wrapper scripts in Pantheon's styles in one emulated campaign, with the real agent."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

import processes
from narrows.agent.location import this_machine

pytestmark = pytest.mark.system

#: Styles of wrappers, each with the suffix of its file.
SHAPES = {
    "receiver_first": "py",
    "sender_first": "py",
    "talks": "py",
    "starts_child": "py",
    "needs_setup": "sh",
}
SCENARIO = """\
schema: narrows/scenario/1
question: Do wrappers run unchanged?
where: emulate
path: {forward: [{rate: 10 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 10 ms}]}
duration: 2 s
"""
#: Reasons that concern a program and not a busy machine.
BLAME = ("program_", "no_data", "wrong_", "stray_", "processes_left", "output_")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the wrappers, on a machine that can emulate."""
    facts = this_machine().doctor()
    for ability in (facts.namespaces, facts.packet_socket):
        if ability and not ability.ok:
            pytest.skip(str(ability.why))
    shutil.copytree(Path(__file__).with_name("wrappers"), tmp_path / "wrappers")
    return tmp_path


def test_wrappers_of_each_shape_run_unchanged(folder: Path) -> None:
    (folder / "wrappers" / "old.py").write_text("#!/usr/bin/env python2\nprint 'receiver'\n")
    names = [f'"pantheon:wrappers/{name}.{ending}"' for name, ending in SHAPES.items()]
    (folder / "s.yaml").write_text(f"{SCENARIO}schemes: [{', '.join(names)}, 'pantheon:wrappers/old.py']\n")
    command = [sys.executable, "-m", "narrows"]
    env = {**os.environ, "XDG_CONFIG_HOME": str(folder / "config")}
    setup = [*command, "programs", "setup", "pantheon:wrappers/needs_setup.sh"]
    assert processes.run(setup, cwd=folder, env=env).returncode == 0
    run = [*command, "run", "s.yaml", "-o", "out", "--no-report"]
    done = processes.run(run, cwd=folder, seconds=120, env=env)
    assert "Traceback" not in done.stderr
    campaign = json.loads((folder / "out" / "campaign.json").read_text())
    states = {cell["scheme"]: cell["state"] for cell in campaign["cells"]}
    # With Python 2, the old wrapper runs far enough to find that it has nothing to listen with.
    states.pop("pantheon:old", None)
    assert states == {f"pantheon:{name}": "finished" for name in SHAPES}, done.stderr
    for name in SHAPES:
        document = next((folder / "out" / "cells").glob(f"pantheon-{name.replace('_', '*')}*/run.json"))
        found = json.loads(document.read_text())
        blamed = [one for one in found["reasons"] if one["code"].startswith(BLAME)]
        assert not blamed, (name, blamed)
        sent = found["flows"][0]["program"]["traffic"]["sender"]["payload_bytes"]
        assert sent > 500_000, (name, sent)
    said = next((folder / "out" / "cells").glob("pantheon-talks*/logs/flow-1-listener.err"))
    assert "bytes" in said.read_text()
