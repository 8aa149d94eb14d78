"""Programs in their own file system: one built against another C library runs, and can't leave its root."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import processes
from narrows.agent.location import find_agent, this_machine
from narrows.errors import DataError
from narrows.scenario.programs.manifest import read
from root_kit import Image, layer_of, musl_root

MANIFEST = """\
schema: narrows/program/1
what: A probe
root: {root}
version: probe --version
data: connector
listener: {{command: [/bin/probe, listen, "{{port}}", "{{log}}"], ready: udp}}
connector: {{command: [probe, "{{address}}", "{{port}}", "{{log}}", {secret}]}}
"""
#: Before a command that an ordinary user shall run.
NOBODY = ["setpriv", "--reuid", "65534", "--clear-groups", "--regid", "65534"]


@pytest.fixture
def possible() -> None:
    """These tests need a machine that can emulate."""
    facts = this_machine().doctor()
    for ability in (facts.namespaces, facts.packet_socket):
        if ability and not ability.ok:
            pytest.skip(str(ability.why))


def check(folder: Path, before: list[str] | None = None) -> dict[str, Any]:
    env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "NARROWS_SECRET": "1"}
    command = [*(before or []), sys.executable, "-m", "narrows", "programs", "check", "probe.yaml", "--json"]
    done = processes.run(command, cwd=folder, seconds=120, env=env)
    assert "Traceback" not in done.stderr, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)["checks"][0] if done.stdout else {"why": done.stderr}
    return result


def prepare(folder: Path, root: str) -> Path:
    secret = folder / "secret"
    secret.write_text("of the machine")
    secret.chmod(0o644)
    (folder / "probe.yaml").write_text(MANIFEST.format(root=root, secret=secret))
    return secret


def run(folder: Path, root: str, before: list[str] | None = None) -> dict[str, Any]:
    """Runs the probe in a campaign; returns run.json, with the lines of the probe's reports. With `before`
    only the agent, which does all that needs rights, is started by it: this Python may be closed to others.
    """
    prepare(folder, root)
    (folder / "s.yaml").write_text(
        "schema: narrows/scenario/1\nquestion: Does it stay inside?\nwhere: emulate\nduration: 2 s\n"
        "path: {forward: [{rate: 10 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 10 ms}]}\n"
        "schemes: [{program: probe.yaml}]\n"
    )
    env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "NARROWS_SECRET": "1"}
    command = [sys.executable, "-m", "narrows", "run", "s.yaml", "-o", "out", "--no-report"]
    if before:
        shutil.copy(find_agent(), folder / "narrows-agent")
        (folder / "agent").write_text(f'#!/bin/sh\nexec {shlex.join(before)} {folder}/narrows-agent "$@"\n')
        (folder / "agent").chmod(0o755)
        env["NARROWS_AGENT"] = str(folder / "agent")
        command = ["sh", "-c", 'umask 0; exec "$@"', "sh", *command]
    done = processes.run(command, cwd=folder, seconds=120, env=env)
    assert "Traceback" not in done.stderr, done.stderr
    cells = list((folder / "out" / "cells").glob("*/run.json"))
    assert cells, done.stderr + done.stdout
    found: dict[str, Any] = json.loads(cells[0].read_text())
    logs = cells[0].parent / "logs"
    found["said"] = {path.parent.name: path.read_text() for path in logs.glob("*/probe.txt")}
    assert not [path for path in logs.rglob("*") if path.is_symlink()], "links of programs are removed"
    return found


def assert_contained(found: dict[str, Any], user: int, image: str) -> None:
    assert sorted(found["said"]) == ["flow-1-connector", "flow-1-listener"]
    for said in found["said"].values():
        assert said.splitlines()[-1].startswith(f"escapes: 0, works: 1, user: {user}, "), said
        assert said.endswith(f"image: {image}\n")
        assert len(said.splitlines()) == 1, said
    program = found["flows"][0]["program"]
    assert program["traffic"]["sender"]["payload_bytes"] > 100_000
    assert program["connector"]["version"] == "probe 1.0, musl"
    files = {item["path"]: item for item in program["connector"]["files"]}
    assert files["/usr/bin/probe"]["part"] == "program"
    (library,) = (path for path in files if path.startswith("/lib/ld-musl"))
    assert len(files[library]["sha256"]) == 64
    assert len(files) == 2, "no library of the machine"
    assert program["connector"]["kept_by"] == "namespace"


@pytest.mark.system
def test_a_program_with_another_c_library_runs_and_writes_and_reads_nothing_of_the_machine(
    tmp_path: Path, possible: None
) -> None:
    musl_root(tmp_path / "root")
    before = sorted(str(path) for path in (tmp_path / "root").rglob("*"))
    found = run(tmp_path, "root")
    user = 65534 if os.geteuid() == 0 else 0
    assert_contained(found, user, "none")
    assert sorted(str(path) for path in (tmp_path / "root").rglob("*")) == before
    root = found["flows"][0]["program"]["root"]
    assert root["folder"] == str(tmp_path / "root")
    assert root["digest"].startswith("sha256:")
    assert root["kind"] == "folder"
    # Another content is another experiment.
    campaign = json.loads((tmp_path / "out" / "campaign.json").read_text())
    assert root["digest"] in json.dumps(campaign)


@pytest.mark.system
def test_an_image_runs_from_its_archive(tmp_path: Path, possible: None) -> None:
    musl_root(tmp_path / "root")
    digest = Image(layer_of(tmp_path / "root")).write(tmp_path / "image.tar")
    found = run(tmp_path, "image.tar")
    assert_contained(found, 65534 if os.geteuid() == 0 else 0, "yes")
    assert found["flows"][0]["program"]["root"]["digest"] == digest


@pytest.mark.system
def test_a_program_check_names_the_root(tmp_path: Path, possible: None) -> None:
    musl_root(tmp_path / "root")
    prepare(tmp_path, "root")
    seen = check(tmp_path)
    assert seen["verdict"] != "invalid", seen
    assert seen["seen"]["root"]["folder"] == str(tmp_path / "root")


def refusals(path: Path) -> list[str]:
    with pytest.raises(DataError) as refused:
        read(path)
    return str(refused.value).splitlines()


def test_each_mistake_has_its_place_and_its_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "probe.yaml"
    (tmp_path / "root" / "bin").mkdir(parents=True)
    (tmp_path / "root" / "bin" / "probe").write_text("text")
    (tmp_path / "root" / "bin" / "probe").chmod(0o755)
    prepare(tmp_path, "root")
    good = path.read_text()
    assert read(path).root is not None

    def said(old: str, new: str) -> str:
        assert old in good
        path.write_text(good.replace(old, new))
        (line,) = refusals(path)
        return line.removeprefix(str(path))

    at = f"{tmp_path}"
    assert said("root: root", "root: no") == f":3:7: root: the folder or archive {at}/no does not exist"
    assert said("root: root", "root: []").startswith(":3:7: root: must be a folder or an OCI archive")
    assert said("root: root", "root: secret") == (
        f":3:7: root: {at}/secret is not an OCI archive: it is not a tar file without compression"
    )
    assert said("/bin/probe", "/bin/no").startswith(
        f":6:21: listener.command: there is no program /bin/no in {at}/root"
    )
    assert said("[probe,", "[./probe,").startswith(
        ':7:22: connector.command: "./probe" is not a path in the root'
    )
    assert "{here} is a folder of the machine" in said("[/bin/probe,", '["/bin/probe", "{here}/x",')
    assert "can't be beside build" in said("root: root", "root: root\nbuild: {debian: [iperf3]}")
    assert "is not a path in the root" in said("root: root", "root: root\nfiles: [data]")
    (tmp_path / "root" / "bin" / "probe").write_text("#!/bin/lua\n")
    path.write_text(good)
    assert [line.removeprefix(str(path)) for line in refusals(path)] == [
        f":6:21: listener.command: /bin/probe is a script for /bin/lua, which does not exist in {at}/root",
        f":7:22: connector.command: /bin/probe is a script for /bin/lua, which does not exist in {at}/root",
    ]
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in said("root: root", "root: pipe")
    image = tmp_path / "image.tar"
    Image(b"no layer").write(image)
    assert f":3:7: root: {image} can't be unpacked: layer 1" in said("root: root", "root: image.tar")


@pytest.mark.system
def test_an_ordinary_user_has_the_same_containment(tmp_path: Path, possible: None) -> None:
    """As root this changes to the user 65534, who then makes user namespaces."""
    if os.geteuid() != 0:
        pytest.skip("the other tests run as an ordinary user")
    trial = subprocess.run([*NOBODY, "unshare", "-Urn", "true"], check=False, capture_output=True)
    if trial.returncode:
        pytest.skip("an ordinary user can make no user namespaces here")
    folder = Path("/tmp") / f"narrows-root-{os.getpid()}"
    folder.mkdir()
    try:
        musl_root(folder / "root")
        os.chown(folder, 65534, 65534)
        before = [*NOBODY, "env", f"HOME={folder}"]
        assert_contained(run(folder, "root", before), 0, "none")
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)
