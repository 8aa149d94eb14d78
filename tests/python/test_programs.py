"""External programs: reading manifests, schemes in scenarios, the list, and missing requirements."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from campaign_kit import narrows
from narrows.campaign.plan import Sender, make_plan
from narrows.documents.agent import MachineFacts
from narrows.errors import DataError, ScenarioError, UnavailableError
from narrows.scenario import registry
from narrows.scenario.model import Scenario, cells_of
from narrows.scenario.programs import missing, store
from narrows.scenario.programs.keys import schema
from narrows.scenario.programs.manifest import read, read_text
from narrows.scenario.resolve import resolve
from narrows.scenario.schema import schema as scenario_schema
from narrows.scenario.yaml_tree import parse

MANIFEST = """\
schema: narrows/program/1
what: A pair of scripts
data: connector
parameters: {size: {default: 9, what: bytes}}
variants: {small: , large: {set: {size: 99}, connector: --fast}}
listener: {command: "python3 {here}/recv.py {port}", ready: tcp}
connector:
  command: [./send, "{address}", "{port}", "{size}"]
  env: {SIZE: "{size}"}
"""
SCENARIO = """\
schema: narrows/scenario/1
question: Do programs run?
where: emulate
path: {forward: [{rate: 12 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 20 ms}]}
schemes: SCHEMES
duration: 2 s
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder of manifests, with one in it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = store.user_folder()
    made.mkdir(parents=True)
    (made / "pair.yaml").write_text(MANIFEST)
    (made / "recv.py").write_text("")
    sender = made / "send"
    sender.write_text("#!/bin/sh\n")
    sender.chmod(0o755)
    return made


def scenario(schemes: str, base: Path | None = None, more: str = "") -> Scenario:
    tree = parse(SCENARIO.replace("SCHEMES", schemes) + more, "test.yaml")
    return resolve(tree, registry.load(), "test.yaml", base)


def problems(schemes: str, more: str = "") -> str:
    with pytest.raises(DataError) as caught:
        scenario(schemes, more=more)
    return str(caught.value)


def wrong(old: str, new: str) -> str:
    """The errors of the manifest after a change."""
    assert old in MANIFEST
    with pytest.raises(DataError) as caught:
        read_text(MANIFEST.replace(old, new, 1), Path("pair.yaml"), "pair")
    return str(caught.value)


def flow(schemes: str, base: Path | None = None) -> dict[str, Any]:
    found: dict[str, Any] = cells_of(scenario(schemes, base))[0].to_json()["flows"][0]
    return found


def test_a_manifest_becomes_plain_data_in_cells(folder: Path) -> None:
    found = flow('["pair:large"]')
    assert (found["scheme"], found["params"]) == ("pair:large", {})
    program = found["program"]
    assert program["connector"]["command"] == [f"{folder}/send", "{address}", "{port}", "99", "--fast"]
    assert program["connector"]["env"] == {"SIZE": "99"}
    assert program["listener"]["command"] == ["python3", f"{folder}/recv.py", "{port}"]
    assert program["listener"]["ready"] == {"tcp": None}
    assert program["end"] == {"when": "signal", "signal": 15, "grace_ns": 1_000_000_000}
    assert program["limits"]["ready_ns"] == 10_000_000_000
    assert "memory_bytes" not in program["limits"]


def test_schemes_are_named_in_three_ways(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(MANIFEST.replace("./send", "sh"))
    rows = scenario(
        '["pair:small", {scheme: "pair:small", size: 5}, {program: mine.yaml, variant: large, name: quick},'
        " {program: pair, variant: large, size: 7}]",
        tmp_path,
    ).schemes
    labels = [row.label for row in rows]
    assert labels == ["pair:small", "pair:small size=5", "quick", "pair:large size=7"]
    programs = [row.flows[0].program for row in rows]
    commands = [program.connector.command for program in programs if program]
    assert [command[3] for command in commands] == ["9", "5", "99", "7"]
    assert [row.flows[0].scheme for row in rows][2] == "mine:large"
    # Without variants there is a single one, which need not be named.
    lines = [line for line in MANIFEST.splitlines() if not line.startswith("variants")]
    (tmp_path / "one.yaml").write_text("\n".join(lines))
    assert flow("[{program: one.yaml}]", tmp_path)["scheme"] == "one:default"


def test_a_changed_program_changes_the_scenario(folder: Path) -> None:
    before = scenario('["pair:small"]').hash
    (folder / "pair.yaml").write_text(MANIFEST + "end: {grace: 2 s}\n")
    assert scenario('["pair:small"]').hash != before


def test_each_mistake_in_a_scenario_has_its_sentence(tmp_path: Path) -> None:
    assert 'unknown scheme "pear:small"; did you mean "pair:small"?' in problems('["pear:small"]')
    assert "named by its file: {program: pair.yaml, variant: small}" in problems('["pair.yaml:small"]')
    assert 'pair has no variant "smal"; did you mean "small"?' in problems('["pair:smal"]')
    assert "needs the key variant: pair has small, large" in problems("[{program: pair}]")
    assert "unknown parameter of pair" in problems('[{scheme: "pair:small", sise: 5}]')
    assert 'program "pear" does not exist; did you mean "pair"?' in problems("[{program: pear}]")
    assert 'manifest "x/none.yaml" does not exist' in problems("[{program: x/none.yaml}]")
    mixed = "flows: [{connections: 2}, {dscp: 46}]\n"
    said = problems('["pair:small"]', mixed)
    assert "pair:small has what it sends from its own program; remove connections" in said
    assert "remove dscp" in said
    # An invalid manifest is quoted with its own lines.
    (store.user_folder() / "bad.yaml").write_text("schema: narrows/program/1\nwhat: x\n")
    said = problems('["bad:default"]')
    assert "bad.yaml:1:1: the key data is missing" in said
    assert "the key listener is missing" in said


def test_each_mistake_in_a_manifest_has_its_sentence() -> None:
    assert "pair.yaml:2:1: waht: unknown key; did you mean" in wrong("what: A pair", "waht: A pair")
    assert 'data: "sender" is not one of connector or listener' in wrong("data: connector", "data: sender")
    assert "the key ready is missing; write for example ready: tcp" in wrong(", ready: tcp", "")
    assert "unknown sign" in wrong("ready: tcp", "ready: {tpc: 5}")
    assert 'must be a port from 1 to 65535, or "{port}"' in wrong("ready: tcp", "ready: {tcp: 70000}")
    assert "unknown placeholder {adress}; did you mean" in wrong("{address}", "{adress}")
    assert 'must be a word; write "{port}" in quotes' in wrong('"{port}", "{size}"', "{port}")
    assert "unknown parameter" in wrong("set: {size: 99}", "set: {sze: 99}")
    assert "ready: is {line: TEXT} for a connector" in wrong("  env:", "  ready: tcp\n  env:")
    ahead = "  ready: {line: go}\n  stdin: open\n  env:"
    assert "stdin: can't be chosen where the connector has ready" in wrong("  env:", ahead)
    assert "frames: must be a file that the program writes" in wrong("data:", "frames: /tmp/x\ndata:")
    shared = "frames: frames.ndjson\nlisteners: one\ndata:"
    assert "frames: one listener serves all flows" in wrong("data:", shared)
    assert "read; it reads narrows/program/1" in wrong("narrows/program/1", "narrows/program/2")
    assert "can't be split into words" in wrong('"python3 {here}', "\"python3 'x")
    assert "can't be the name of a parameter" in wrong("{size: {default", "{port: {default")
    assert 'stdin: "endles" is not one of null, open or endless' in wrong("  env:", "  stdin: endles\n  env:")
    bad = MANIFEST + "end: {when: never, grace: 9 s}\nlimits: {memory: 3}\n"
    with pytest.raises(ScenarioError) as caught:
        read_text(bad, Path("pair.yaml"), "pair")
    said = str(caught.value)
    assert 'end.when: "never" is not one of signal, duration or done' in said
    assert "end.grace: 9 s is out of range" in said
    assert "limits.memory" in said
    with pytest.raises(DataError, match='the program would be called "Pair"'):
        read_text(MANIFEST, Path("Pair.yaml"), "Pair")


def test_names_of_other_schemes_are_taken(folder: Path) -> None:
    for name in ("cubic", "linux", "udp"):
        path = folder / f"{name}.yaml"
        path.write_text(MANIFEST)
        with pytest.raises(DataError, match="is the name of other schemes"):
            store.load(path)


def test_missing_requirements_are_reported_before_anything_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(scenario('["pair:small", "linux:reno"]'), MachineFacts(congestion_controls=["reno"]))
    assert not plan.skipped
    (folder / "send").chmod(0o644)
    plan = make_plan(scenario('["pair:small", "linux:reno"]'), MachineFacts(congestion_controls=["reno"]))
    assert [(one.scheme, one.reason) for one in plan.skipped] == [
        ("pair:small", f"pair:small: there is no program {folder}/send (the connector)")
    ]
    with pytest.raises(UnavailableError, match="no scheme of this scenario can run here"):
        make_plan(scenario('["pair:small"]'), MachineFacts())
    (folder / "send").chmod(0o755)
    text = scenario('["pair:small", reno]')
    text = replace(text, where="simulate")
    assert "is a program and needs a real machine" in make_plan(text, MachineFacts()).skipped[0].reason
    (folder / "pair.yaml").write_text(MANIFEST + "files: [data.bin]\n")
    assert "its file" in make_plan(scenario('["pair:small", reno]'), MachineFacts()).skipped[0].reason
    # A library that the dynamic linker does not find.
    linker = folder / "ldd"
    linker.write_text("#!/bin/sh\necho '\tlibgone.so.1 => not found'\n")
    linker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    missing._libraries.cache_clear()
    (folder / "pair.yaml").write_text(MANIFEST.replace("./send", "cat"))
    reason = make_plan(scenario('["pair:small", reno]'), MachineFacts()).skipped[0].reason
    assert "needs the library libgone.so.1, which can't be found" in reason
    missing._libraries.cache_clear()


def test_programs_are_listed(folder: Path) -> None:
    (folder / "bad.yaml").write_text("schema: narrows/program/1\n")
    done = narrows("programs", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["format"] == "narrows/programs/1"
    found = {one["name"]: one for one in document["programs"]}
    assert found["pair"]["variants"] == ["small", "large"]
    assert (found["pair"]["origin"], found["iperf3"]["origin"]) == ("yours", "shipped")
    assert found["pair"]["missing"] is None
    assert "the key what is missing" in found["bad"]["problem"]
    shown = narrows("programs").stdout
    assert "small, large" in shown
    assert "the key what is missing" in shown


def test_a_check_of_a_missing_program_is_refused() -> None:
    for name, sentence in (
        ("pear", 'program "pear" does not exist; did you mean "pair"?'),
        ("pair:smal", 'pair has no variant "smal"'),
        ("none.yaml", 'manifest "none.yaml" does not exist'),
    ):
        done = narrows("programs", "check", name)
        assert sentence in str(done.exception), done.output


def test_the_schemas_and_the_reader_accept_the_same(folder: Path) -> None:
    import yaml

    validator = jsonschema.Draft7Validator(schema())
    shipped = sorted((Path(__file__).parents[2] / "programs").glob("*.yaml"))
    assert shipped
    for path in [*shipped, folder / "pair.yaml"]:
        read(path)
        assert not list(validator.iter_errors(yaml.safe_load(path.read_text()))), path
    assert list(validator.iter_errors(yaml.safe_load(MANIFEST.replace(", ready: tcp", ""))))
    scenarios = jsonschema.Draft7Validator(scenario_schema(registry.load()))
    for schemes in (
        '["pair:small", {scheme: "pair:small", size: 5}]',
        "[{program: a.yaml, variant: x, size: 5}]",
    ):
        document = yaml.safe_load(SCENARIO.replace("SCHEMES", schemes))
        assert not list(scenarios.iter_errors(document))


def test_the_committed_reference_and_schema_are_current() -> None:
    from narrows.scenario.programs.keys import schema_text
    from narrows.scenario.programs.reference import markdown

    root = Path(__file__).parents[2]
    assert (root / "docs/reference/programs.md").read_text() == markdown()
    assert (root / "programs/program.schema.json").read_text() == schema_text()


def test_programs_are_schemes_of_the_list_and_have_pages(folder: Path) -> None:
    done = narrows("schemes", "--kind", "program", "--json")
    assert done.exit_code == 0, done.output
    found = {one["name"]: one for one in json.loads(done.stdout)["schemes"]}
    assert {"pair:small", "pair:large", "iperf3:cubic"} <= found.keys()
    assert found["pair:small"]["kind"] == "program"
    (folder / "send").chmod(0o644)
    found = {one["name"]: one for one in json.loads(narrows("schemes", "--json").stdout)["schemes"]}
    assert (
        "there is no program" in found["pair:small"]["missing"]
        or "not possible" in found["pair:small"]["missing"]
    )
    assert {"cubic", "pair:large"} <= found.keys()
    page = json.loads(narrows("schemes", "pair:large", "--json").stdout)
    assert [(row["name"], row["default"]) for row in page["params"]] == [("size", "99")]
    assert "the connector sends the data" in page["text"][0]
    for name, sentence in (("pear:large", 'did you mean "pair:large"?'), ("pair:big", "has no variant")):
        assert sentence in str(narrows("schemes", name).exception)


def test_one_listener_and_limits_reach_the_cell(folder: Path) -> None:
    (folder / "pair.yaml").write_text(MANIFEST + "listeners: one\nlimits: {time: 90 s, memory: 1 GB}\n")
    program = flow('["pair:small"]')["program"]
    assert program["shared"] is True
    assert program["limits"]["time_ns"] == 90_000_000_000
    assert program["limits"]["memory_bytes"] == 1_000_000_000
    (folder / "pair.yaml").write_text(MANIFEST)
    program = flow('["pair:small"]')["program"]
    assert "shared" not in program
    assert "time_ns" not in program["limits"]


def test_programs_between_two_hosts_need_the_tunnel(folder: Path) -> None:
    between = "real_path: {other: user@host, tunnel: off, sender: here, ports: 5001-5002}\n"
    text = SCENARIO.replace("where: emulate", "where: hosts").replace("path:", "# path:") + between
    tree = parse(text.replace("SCHEMES", '["pair:small", "linux:reno"]'), "test.yaml")
    found = resolve(tree, registry.load(), "test.yaml")
    facts = MachineFacts(congestion_controls=["reno"])
    plan = make_plan(found, facts, Sender("there", facts))
    assert "write tunnel: on" in plan.skipped[0].reason


@pytest.mark.parametrize(
    "command", ["python3 recv.py {port}", "python3 -u ./recv.py", "cat recv.py", "sh gone.sh"]
)
def test_a_file_beside_the_manifest_is_named_with_here(folder: Path, command: str) -> None:
    text = MANIFEST.replace("python3 {here}/recv.py {port}", command)
    with pytest.raises(ScenarioError) as error:
        read_text(text, folder / "pair.yaml", "pair")
    (problem,) = error.value.problems
    assert problem.position.endswith(":6:21") and problem.key == "listener.command"
    assert 'write "{here}/' in problem.text and "is looked for where the process runs" in problem.text
    with_folder = text.replace("ready: tcp", 'ready: tcp, folder: "{here}"')
    assert read_text(with_folder, folder / "pair.yaml", "pair").listener.folder == "{here}"
