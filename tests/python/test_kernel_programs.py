"""Schemes that are loaded into the kernel: names, files, and refusals before anything runs."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import processes
from narrows.errors import ScenarioError, UsageError
from narrows.scenario import Override, load, loads, registry
from narrows.scenario.model import cells_of
from narrows.scenario.schema import schema as json_schema
from test_campaign import Lab

PROGRAM = str(Path(sys.executable).parent / "narrows")
TEXT = """\
schema: narrows/scenario/1
question: Does it work?
path: {forward: [{rate: 12 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 20 ms}]}
schemes: [SCHEMES]
duration: 1 s
where: emulate
"""


def text(schemes: str) -> str:
    return TEXT.replace("SCHEMES", schemes)


def problems(schemes: str) -> str:
    with pytest.raises(ScenarioError) as error:
        loads(text(schemes))
    return "\n".join(str(problem) for problem in error.value.problems)


@pytest.mark.usefixtures("fixed_registry")
def test_programs_have_names_and_parameters() -> None:
    scenario = loads(text("bpf:gentle, {scheme: bpf:gentle, beta: 0.7}"))
    plain, changed = (cell.to_json()["flows"][0] for cell in cells_of(scenario))
    assert (plain["scheme"], plain["params"]) == ("bpf:gentle", {"beta": 0.5})
    assert changed["params"] == {"beta": 0.7}
    assert [row.label for row in scenario.schemes] == ["bpf:gentle", "bpf:gentle beta=0.7"]
    assert "object" not in plain


@pytest.mark.usefixtures("fixed_registry")
def test_unknown_programs_and_parameters() -> None:
    assert 'unknown scheme "bpf:gentel"; did you mean "bpf:gentle"?' in problems("bpf:gentel")
    assert "known: bpf:gentle, and {bpf: FILE} for a program of your own" in problems("bpf:zzzzzzzz")
    assert "gama" in problems("{scheme: bpf:gentle, gama: 1}")
    assert "out of range" in problems("{scheme: bpf:gentle, beta: 2}")


@pytest.mark.usefixtures("fixed_registry")
def test_a_file_is_named_in_the_place_of_a_scheme(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "mine.bpf.o").write_bytes(b"content")
    file = tmp_path / "s.yaml"
    file.write_text(text("{bpf: sub/mine.bpf.o}, reno"))
    scenario = load(file).scenario
    flow = cells_of(scenario)[0].to_json()["flows"][0]
    sha256 = hashlib.sha256(b"content").hexdigest()
    # The registry of the tests names every object my_cc.
    assert (flow["scheme"], flow["params"]) == ("bpf:my_cc", {})
    assert flow["object"] == {"name": "mine.bpf.o", "sha256": sha256}
    assert scenario.files.contents == {sha256: b"content"}
    before = scenario.hash
    (tmp_path / "sub" / "mine.bpf.o").write_bytes(b"other")
    assert load(file).scenario.hash != before
    file.write_text(text("reno") + "flows: [{scheme: {bpf: sub/mine.bpf.o}}, {}]\n")
    mixed = load(file).scenario
    assert [one["scheme"] for one in cells_of(mixed)[0].to_json()["flows"]] == ["bpf:my_cc", "reno"]


@pytest.mark.usefixtures("fixed_registry")
def test_files_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "a.o").write_bytes(b"a")
    (tmp_path / "b.o").write_bytes(b"b")
    assert "can't be read: no such file" in problems("{bpf: nowhere.o}")
    assert "must be the path of an object file" in problems("{bpf: [1]}")
    assert "beta can't be set" in problems(f"{{bpf: {tmp_path}/a.o, beta: 1}}")
    same = problems(f"{{bpf: {tmp_path}/a.o}}, {{bpf: {tmp_path}/b.o}}")
    assert "another program is called bpf:my_cc as well" in same
    assert "in the list already" in problems(f"{{bpf: {tmp_path}/a.o}}, {{bpf: {tmp_path}/a.o}}")


@pytest.mark.usefixtures("fixed_registry")
def test_the_option_adds_a_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "it's.o").write_bytes(b"content")
    (tmp_path / "far").mkdir()
    file = tmp_path / "far" / "s.yaml"
    file.write_text(text("reno"))
    # Relative to the working directory of the command, not to the scenario.
    monkeypatch.chdir(tmp_path)
    scenario = load(file, [Override.from_object("it's.o")]).scenario
    assert [row.label for row in scenario.schemes] == ["reno", "bpf:my_cc"]
    file.write_text(text("reno").replace("schemes: [reno]\n", "") + "flows: [{scheme: reno}]\n")
    with pytest.raises(UsageError, match="every flow names its own"):
        load(file, [Override.from_object("it's.o")])


def test_the_core_reads_the_name_and_refuses_other_files(tmp_path: Path) -> None:
    (tmp_path / "page.o").write_text("# not an object")
    assert "page.o: this is not an object file (ELF)" in problems(f"{{bpf: {tmp_path}/page.o}}")


def test_the_schema_knows_programs_and_files() -> None:
    whole = json_schema(registry.load())
    one = jsonschema.Draft7Validator({"$ref": "#/definitions/scheme", "definitions": whole["definitions"]})
    for good in ("bpf:exp", {"bpf": "mine.bpf.o"}, {"scheme": "bpf:exp", "name": "mine"}):
        assert one.is_valid(good), good
    for bad in ("bpf:nothing", {"bpf": 1}, {"bpf": "mine.bpf.o", "beta": 0.5}):
        assert not one.is_valid(bad), bad


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def emulate(lab: Lab, *arguments: str, **agent: Any) -> tuple[int, str, str]:
    return lab.run("--where", "emulate", *arguments, **agent)


def test_programs_are_skipped_in_simulation(lab: Lab) -> None:
    code, _, stderr = lab.run("--where", "simulate", "--schemes", "bpf:gentle,reno")
    assert code == 0
    assert "skipped bpf:gentle: it runs inside a kernel, and there is none in simulation" in stderr


def test_without_the_right_to_load_nothing_runs(lab: Lab) -> None:
    facts = {"bpf": {"ok": False, "why": "this user may not; run as root"}}
    code, _, stderr = emulate(lab, "--schemes", "reno,bpf:gentle", facts=facts)
    assert code == 4
    assert "bpf:gentle: this user may not; run as root" in stderr
    assert not lab.out.exists()
    code, _, stderr = emulate(lab, "--schemes", "reno", facts=facts)
    assert code == 0, stderr


@pytest.mark.parametrize(("kind", "expected"), [("input", 3), ("unavailable", 4)])
def test_programs_that_the_kernel_refuses_are_reported_before_anything_runs(
    lab: Lab, kind: str, expected: int
) -> None:
    (lab.path / "mine.o").write_bytes(b"content")
    refused = {"mine.o": {"kind": kind, "message": "mine.o: the kernel does not want it"}}
    code, _, stderr = emulate(lab, "--bpf", "mine.o", bpf=refused)
    assert code == expected
    assert "mine.o: the kernel does not want it" in stderr
    assert not lab.out.exists()
    code, _, stderr = emulate(lab, "--bpf", "mine.o", "--schemes", "reno")
    assert code == 0, stderr
    stored = [path.name for path in (lab.out / "files").iterdir()]
    assert stored == [hashlib.sha256(b"content").hexdigest()[:16] + "-mine.o"]


def call(
    *arguments: str, cwd: Path, before: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    done = processes.run([*before, PROGRAM, *arguments], cwd=cwd, seconds=240, env=os.environ | environment)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take rights away")
def test_an_ordinary_user_learns_which_rights_are_missing(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(text("reno, bpf:exp"))
    rights = ("setpriv", "--bounding-set", "-bpf,-perfmon,-sys_admin", "--inh-caps", "-all", "--")
    done = call("run", "s.yaml", "-o", "out", cwd=tmp_path, before=rights)
    assert done.returncode == 4, done.stderr
    assert "bpf:exp: this user may not load BPF congestion controls (it lacks CAP_BPF" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_program_of_ours_runs_beside_the_kernels(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(text("linux:reno, bpf:exp"))
    facts = json.loads(call("doctor", "--json", cwd=tmp_path).stdout)["facts"]
    if not (facts["bpf"]["ok"] and facts["namespaces"]["ok"]):
        pytest.skip(str(facts["bpf"]["why"] or facts["namespaces"]["why"]))
    done = call("run", "s.yaml", "-o", "out", "--no-report", cwd=tmp_path)
    # 6: a busy machine may make a run invalid, which is not the program's fault.
    assert done.returncode in (0, 6), done.stderr
    run = json.loads((tmp_path / "out/cells/bpf-exp-r1/run.json").read_text())
    # With a numeric suffix while another run uses the program.
    assert run["flows"][0]["fingerprint"]["bpf"]["kernel_name"].startswith("nw_exp")
    assert run["flows"][0]["fingerprint"]["params"]["beta"] == 0.75
