"""Things that are not files: pipes, devices, names that no system accepts. Each is refused in one
sentence."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import forked_commands
from narrows.errors import NarrowsError, as_refusal
from narrows.files import read_whole, resolve_path

LONG = "x" * 300
SCENARIO = """schema: narrows/scenario/1
question: Is it refused?
where: simulate
path: {forward: [{rate: %s, queue: {droptail: 60 kB}}, {delay: 10 ms}]}
schemes: [%s]
duration: 1 s
"""


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A pipe without a writer: opening it blocks forever."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def narrows(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    # Killed if it blocks forever.
    return forked_commands.run_in(os.environ | {"NO_COLOR": "1"}, arguments, Path.cwd())


def refusal(*arguments: str | Path) -> str:
    """The one sentence with which a command refuses its input."""
    done = narrows(*arguments)
    assert done.returncode == 3, done
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "internal error" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "command", [("run",), ("run", "--dry-run"), ("trace", "show"), ("models", "add", "x")]
)
def test_pipes_and_devices_are_not_waited_for(pipe: Path, command: tuple[str, ...]) -> None:
    for path in (pipe, Path("/dev/zero")):
        assert "is not a regular file" in refusal(*command, path)


def test_files_of_the_kernel_that_never_end_are_refused() -> None:
    if not os.access("/proc/kmsg", os.R_OK):
        pytest.skip("only root may read /proc/kmsg")
    # The file may at that moment be no scenario, or empty.
    done = narrows("run", "/proc/kmsg")
    assert done.returncode == 3 and "/proc/kmsg:" in done.stderr


@pytest.mark.parametrize("command", [("run",), ("show",), ("report",), ("check",), ("trace", "show")])
def test_names_that_are_too_long_are_reported_as_such(command: tuple[str, ...]) -> None:
    told = refusal(*command, LONG + "/x")
    assert "file name too long" in told and len(told) < 400


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("'~nobody-of-this-name/x'", "names the home folder of a user who does not exist"),
        ('"a\\x00b"', "has the character NUL in it"),
        (LONG, "file name too long"),
        ("/dev/zero", "is not a regular file"),
        ("pipe", "is not a regular file"),
    ],
)
def test_bad_files_are_refused_where_a_scenario_names_them(
    tmp_path: Path, pipe: Path, name: str, told: str
) -> None:
    for number, (rate, scheme) in enumerate(
        [
            (f"{{trace: {name}}}", "reno"),
            ("1 Mbit/s", f"{{scheme: indigo, model: {name}}}"),
            ("1 Mbit/s", f"{{bpf: {name}}}"),
        ]
    ):
        file = tmp_path / f"{number}.yaml"
        file.write_text(SCENARIO % (rate, scheme))
        message = refusal("run", file)
        assert f"{file}:" in message and told in message, message


@pytest.mark.parametrize("kind", ["run.json", "packets.parquet", "states.parquet"])
def test_a_pipe_in_a_record_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(SCENARIO % ("1 Mbit/s", "reno"))
    out = tmp_path / "out"
    assert narrows("run", file, "-o", out, "--no-report").returncode == 0
    record = out / "cells" / "reno-r1" / kind
    record.unlink()
    os.mkfifo(record)
    done = narrows("check", out)
    assert done.returncode in (3, 6) and (
        "regular file" in done.stdout + done.stderr or "plain file" in done.stderr
    )
    assert "internal error" not in done.stderr


@pytest.mark.parametrize("size", [1, 1000, 100_000])
def test_only_what_may_be_read_is_read(tmp_path: Path, size: int) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * size)
    assert len(read_whole(file, "trace", size)) == size
    with pytest.raises(NarrowsError, match="is larger than"):
        read_whole(file, "trace", size - 1)


def test_paths_of_files_that_are_not_there_are_paths(tmp_path: Path) -> None:
    assert resolve_path("new", tmp_path) == tmp_path / "new"
    assert resolve_path("~/new", tmp_path) == Path.home() / "new"


def test_only_errors_about_paths_name_a_path(tmp_path: Path) -> None:
    full = as_refusal(OSError(28, "No space left on device", "report.html"))
    assert full is not None and full.exit_code == 1 and "no space left" in str(full)
    assert as_refusal(ConnectionError(111, "Connection refused")) is None
    assert as_refusal(ValueError("a bug")) is None
