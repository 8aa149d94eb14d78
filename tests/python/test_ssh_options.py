"""Options on ssh's command line, which no user configuration can override."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from narrows.hosts.ssh import Ssh

#: Records its arguments, and then acts like the other host's shell.
FAKE = """\
#!{python}
import json, subprocess, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
sys.exit(subprocess.call(["sh", "-c", sys.argv[-1]]) if "-T" in sys.argv else 0)
"""


@pytest.fixture
def told(tmp_path: Path) -> list[list[str]]:
    """The arguments of all ssh calls while a host was connected, used and disconnected."""
    program, log = tmp_path / "ssh", tmp_path / "log"
    program.write_text(FAKE.format(python=sys.executable, log=str(log)))
    program.chmod(0o755)
    with Ssh("somewhere", [str(program)]) as ssh:
        assert ssh.run("echo hello").stdout == b"hello\n"
    return [json.loads(line) for line in log.read_text().splitlines()]


def options(words: list[str]) -> dict[str, str]:
    """The argument of each `-o`; ssh uses the first of several."""
    pairs = [after for before, after in pairwise(words) if before == "-o"]
    return {name.lower(): value for name, value in reversed([pair.split("=", 1) for pair in pairs])}


def test_host_keys_are_checked_by_every_connection(told: list[list[str]]) -> None:
    connections = [words for words in told if "-T" in words]
    assert len(connections) >= 2, told
    for words in connections:
        assert options(words)["stricthostkeychecking"] == "yes", words
        # Nobody is there to answer questions.
        assert options(words)["batchmode"] == "yes", words
