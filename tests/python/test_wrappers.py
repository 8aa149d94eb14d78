"""Wrapper scripts of Pantheon as schemes: the calls to them, and wrappers that can't answer."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from campaign_kit import narrows
from narrows.campaign.plan import make_plan
from narrows.documents.agent import MachineFacts
from narrows.errors import DataError
from narrows.scenario import registry
from narrows.scenario.model import Scenario, cells_of
from narrows.scenario.programs import wrapper
from narrows.scenario.resolve import resolve
from narrows.scenario.yaml_tree import parse

WRAPPERS = Path(__file__).with_name("wrappers")
SCENARIO = """\
schema: narrows/scenario/1
question: Do wrappers run?
where: emulate
path: {forward: [{rate: 12 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 20 ms}]}
schemes: SCHEMES
duration: 2 s
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the wrappers."""
    return Path(shutil.copytree(WRAPPERS, tmp_path / "wrappers"))


def scenario(schemes: str, base: Path) -> Scenario:
    return resolve(
        parse(SCENARIO.replace("SCHEMES", schemes), "test.yaml"), registry.load(), "test.yaml", base
    )


def program(schemes: str, base: Path) -> dict[str, Any]:
    flow = cells_of(scenario(schemes, base))[0].to_json()["flows"][0]
    assert flow["scheme"].startswith("pantheon:")
    found: dict[str, Any] = flow["program"]
    return found


def test_a_wrapper_says_who_listens(folder: Path) -> None:
    first = program('["pantheon:wrappers/receiver_first.py"]', folder.parent)
    path = str(folder / "receiver_first.py")
    assert first["listener"]["command"] == ["python3", path, "receiver", "{port}"]
    assert first["connector"]["command"] == ["python3", path, "sender", "{address}", "{port}"]
    assert (first["data"], first["listener"]["ready"]) == ("connector", {"port": None})
    assert first["files"] == [path]
    other = program('["pantheon:sender_first.py"]', folder)
    assert other["data"] == "listener"
    assert other["connector"]["command"][2:] == ["receiver", "{address}", "{port}"]


def test_names_and_interpreters(folder: Path) -> None:
    rows = scenario(
        '["pantheon:receiver_first.py", {scheme: "pantheon:talks.py", name: chatty},'
        ' {scheme: "pantheon:receiver_first.py", python: python3.11}, "pantheon:needs_setup.sh"]',
        folder,
    ).schemes
    assert [row.label for row in rows] == [
        "pantheon:receiver_first",
        "chatty",
        "pantheon:receiver_first python=python3.11",
        "pantheon:needs_setup",
    ]
    programs = [row.flows[0].program for row in rows]
    commands = [program.listener.command for program in programs if program]
    assert commands[1][:2] == ["python3", "-u"]
    assert [command[0] for command in commands] == ["python3", "python3", "python3.11", "/bin/sh"]
    (folder / "more").mkdir()
    shutil.copy(folder / "talks.py", folder / "more")
    shutil.copy(folder / "arg_parser.py", folder / "more")
    with pytest.raises(DataError, match="another program is called pantheon:talks as well"):
        scenario('["pantheon:talks.py", "pantheon:more/talks.py"]', folder)


def test_a_changed_wrapper_is_another_scheme(folder: Path) -> None:
    before = scenario('["pantheon:talks.py"]', folder).hash
    with (folder / "talks.py").open("a") as stream:
        stream.write("# changed\n")
    assert scenario('["pantheon:talks.py"]', folder).hash != before


@pytest.mark.parametrize(
    ("first_line", "words"),
    [
        ("#!/usr/bin/python2.7 -u", ["/usr/bin/python2.7", "-u"]),
        ("#!/usr/bin/env python", ["python"]),
        ("#! /usr/bin/env -S A=1 python3 -u", ["python3", "-u"]),
        ("import sys", ["python"]),
        ("\x7fELF", []),
    ],
)
def test_interpreters_follow_from_first_lines(first_line: str, words: list[str]) -> None:
    assert wrapper.interpreter_of(f"{first_line}\nx\n".encode()) == words


def reason(folder: Path, text: str, name: str = "odd.py") -> str:
    (folder / name).write_text(text)
    return make_plan(scenario(f'["pantheon:{name}", reno]', folder), MachineFacts()).skipped[0].reason


def test_each_wrapper_that_cannot_answer_has_its_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match=r'wrapper "none.py" does not exist \(looked for at'):
        scenario('["pantheon:none.py"]', folder)
    python3 = "#!/usr/bin/env python3\n"
    assert "run_first printed" in reason(folder, f"{python3}print('both')\n")
    assert 'ended with exit code 1; its last line was "gone"' in reason(
        folder, f"{python3}import sys; sys.exit('gone')"
    )
    assert "ModuleNotFoundError: No module named 'context9'" in reason(folder, f"{python3}import context9")
    said = reason(folder, f"{python3}print 'receiver'\n")
    assert "odd.py can't be read by python3 (SyntaxError" in said
    assert "python: /path/of/python" in said
    # Python 2 is not installed, or only as a shim of a version manager.
    empty = folder / "bin"
    empty.mkdir()
    monkeypatch.setenv("PATH", f"{empty}{os.pathsep}/usr/bin{os.pathsep}/bin")
    (folder / "old.py").write_text("#!/usr/bin/env python2.6\nprint 'receiver'\n")
    (row,) = make_plan(scenario('["pantheon:old.py", reno]', folder), MachineFacts()).skipped
    assert row.reason.startswith(
        "pantheon:old: old.py is for python2.6, and there is no python2.6 on PATH; name another one:"
    )
    shim = empty / "python2.6"
    shim.write_text("#!/bin/sh\necho 'shim: no such version' >&2\nexit 127\n")
    shim.chmod(0o755)
    wrapper._program.cache_clear()
    (row,) = make_plan(scenario('["pantheon:old.py", reno]', folder), MachineFacts()).skipped
    assert "old.py is for python2.6, which doesn't run here: shim: no such version" in row.reason
    assert "\n" not in row.reason


def test_a_wrapper_that_does_not_end_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrapper, "_LIMIT_S", 0.3)
    text = "#!/bin/sh\nsleep 77 &\nsleep 77\n"
    assert "run_first has not answered within" in reason(folder, text, "odd.sh")


def test_a_wrapper_is_set_up_by_one_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    done = narrows("programs", "setup", "pantheon:needs_setup.sh", "--after-reboot")
    assert done.exit_code == 0, done.output
    assert (folder / "rebooted").exists()
    assert not (folder / "built.py").exists()
    assert narrows("programs", "setup", "pantheon:needs_setup.sh").exit_code == 0
    assert (folder / "built.py").exists()
    (folder / "built.py").unlink()
    (folder / "receiver_first.py").unlink()
    done = narrows("programs", "setup", "pantheon:needs_setup.sh")
    assert "needs_setup.sh setup ended with exit code 1" in str(done.exception)
    done = narrows("programs", "setup", "iperf3:cubic")
    assert "is not a wrapper of Pantheon" in str(done.exception)
    if shutil.which("dpkg-query"):
        needy = folder / "needy.sh"
        needy.write_text(
            "#!/bin/sh\ncase $1 in deps) echo no-such-package coreutils;; *) echo sender;; esac\n"
        )
        done = narrows("programs", "setup", "pantheon:needy.sh")
        assert "needs packages that are not installed: no-such-package (apt-get" in str(done.exception)


def test_the_schema_knows_wrappers(folder: Path) -> None:
    import jsonschema
    import yaml

    from narrows.scenario.schema import schema

    document = yaml.safe_load(SCENARIO.replace("SCHEMES", '["pantheon:a/b.py", {scheme: "pantheon:c.py"}]'))
    assert not list(jsonschema.Draft7Validator(schema(registry.load())).iter_errors(document))
    assert json.dumps(document)
