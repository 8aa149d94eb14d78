"""Exit codes of all commands: 2 for invalid calls, 3 for invalid input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from campaign_kit import SCENARIO, narrows, simulate
from narrows.cli.all_commands import app
from narrows.errors import NarrowsError


def ended(*arguments: object) -> tuple[int, str]:
    """The exit code of a command, and its sentence."""
    result = narrows(*arguments)
    error = result.exception
    if isinstance(error, NarrowsError):
        return error.exit_code, str(error)
    return result.exit_code, result.output


def commands(parent: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands by their words."""
    for name, command in parent.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


ALL = dict(commands(app))


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_options_and_arguments_that_do_not_exist_are_usage(words: tuple[str, ...]) -> None:
    assert ended(*words, "--no-such-option")[0] == 2
    if any(one.param_type_name == "argument" and one.required for one in ALL[words].params):
        assert ended(*words)[0] == 2


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("codes")
    simulate(made / "one")
    (made / "good.yaml").write_text(SCENARIO)
    (made / "bad.yaml").write_text(SCENARIO.replace("10 ms", "10"))
    (made / "bytes.yaml").write_bytes(b"\xff\xfe")
    (made / "empty").mkdir()
    return made


USAGE = [
    ["run"],
    ["run", "good.yaml", "--where", "nowhere"],
    ["run", "good.yaml", "--schemes", "nosuch", "--dry-run"],
    ["run", "good.yaml", "--runs", "x", "--dry-run"],
    ["run", "good.yaml", "--time", "5x", "--dry-run"],
    ["run", "good.yaml", "--set", "path", "--dry-run"],
    ["run", "good.yaml", "--set", "foo=1", "--dry-run"],
    ["run", "good.yaml", "--set", "path.forward.0.rate=5", "--dry-run"],
    ["run", "good.yaml", "--memory", "x"],
    ["run", "--rate", "12", "--delay", "20 ms", "--dry-run"],
    ["run", "--rate", "12 Mbit/s", "--delay", "20 ms", "--queue", "foo", "--dry-run"],
    ["run", "--rate", "12 Mbit/s", "--delay", "20 ms", "--loss", "100 %", "--dry-run"],
    ["shell", "--rate", "12", "--", "true"],
    ["shell", "--rate", "12 Mbit/s", "--queue", "foo", "--", "true"],
    ["plot", "--figure", "nosuch", "one"],
    ["export", "one", "--format", "nosuch", "-o", "out"],
    ["compare", "one", "--against", "nosuch"],
    ["query", "bad sql", "one"],
    ["report", "one", "--report", "nosuch"],
    ["sweep", "run", "good.yaml"],
    ["hunt", "cubic", "--worst", "nosuch"],
    ["hunt", "cubic", "--worst", "share", "--against", "nosuch"],
    ["identify", "cubic", "--fail-on", "any"],
    ["identify", "cubic", "--against", "reno", "--fail-on", "nosuch"],
    ["identify", "cubic", "--where", "hosts"],
    ["identify", "cubic,reno"],
    ["identify", "cubic", "--budget", "x"],
    ["plot", "one", "--schemes", "nosuch"],
    ["show", "one", "--only", "a=b"],
    ["note", "one", ""],
    ["tag", "one", "a b"],
]
INPUT = [
    ["run", "none.yaml"],
    ["run", "bad.yaml"],
    ["run", "bytes.yaml", "--dry-run"],
    ["run", "empty"],
    ["run", "bad.yaml", "--runs", "x"],
    ["run", "--trace", "none.trace", "--delay", "20 ms", "--dry-run"],
    ["run", "good.yaml", "--bpf", "none.o", "--where", "emulate", "--dry-run"],
    ["shell", "--trace-up", "none.trace", "--", "true"],
    ["sweep", "run", "none.yaml"],
    ["sweep", "show", "none"],
    ["scenarios", "none"],
    ["schemes", "none"],
    ["hunt", "none"],
    ["identify", "./empty"],
    ["identify", "nosuch"],
    ["lab", "show", "none"],
    ["lab", "run", "none"],
    ["models", "show", "none"],
    ["programs", "check", "none"],
    ["trace", "show", "none.trace"],
    ["calibrate", "none.csv"],
    ["merge", "one", "none", "-o", "out"],
    ["site", "none", "-o", "site"],
    ["import", "pantheon", "none", "-o", "out"],
    ["import", "iperf3", "none.json", "-o", "out"],
    *([command, "none"] for command in ("show", "check", "compare", "report", "ls")),
    *([command, "empty"] for command in ("show", "check", "compare", "report")),
    ["plot", "none", "--figure", "throughput"],
    ["export", "none", "--format", "csv", "-o", "out"],
]


@pytest.mark.parametrize(
    ("arguments", "code"), [*((one, 2) for one in USAGE), *((one, 3) for one in INPUT)], ids=str
)
def test_usage_is_2_and_input_is_3(
    place: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int
) -> None:
    monkeypatch.chdir(place)
    found, said = ended(*arguments)
    assert found == code, said
    assert not (place / "out").exists() and not (place / "site" / "index.html").exists()
