"""However a command is started: it ends with one sentence and the right exit code."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from campaign_kit import SCENARIO, simulate
from narrows import streams
from narrows.errors import NarrowsError, as_refusal
from narrows.files import config_folder, data_folder

PROGRAM = Path(sys.executable).with_name("narrows")
#: Commands that print results.
PRINTING = [
    ["show", "one"],
    ["show", "one", "--json"],
    ["compare", "one"],
    ["check", "one"],
    ["ls", "."],
    ["run", "words.yaml", "--dry-run"],
    ["schemes", "cubic"],
    ["--version"],
    ["--help"],
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("streams")
    words = SCENARIO.replace("Does it work?", "Wer gewinnt → 5 µs; 日本 😀?").replace(
        "reno", "{scheme: reno, name: Δ}"
    )
    (made / "words.yaml").write_text(words, encoding="utf-8")
    simulate(made / "one", words)
    return made


def run(
    place: Path, arguments: list[str], how: str = "", before: Callable[[], None] | None = None, **more: str
) -> tuple[int, bytes, str]:
    """Exit code, output and messages; `how` is the shell's redirection of the streams."""
    line = f'exec "$0" "$@" {how}'
    done = subprocess.run(
        ["/bin/sh", "-c", line, str(PROGRAM), *arguments],
        cwd=place,
        env={**os.environ, **more},
        capture_output=True,
        timeout=120,
        check=False,
        preexec_fn=before,
    )
    said = done.stderr.decode("ascii" if more.get("PYTHONIOENCODING") == "ascii" else "utf-8")
    assert "Traceback" not in said and "internal error" not in said and "Exception ignored" not in said, said
    return done.returncode, done.stdout, said


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_output_is_ascii_where_nothing_else_can_be_shown(place: Path, arguments: list[str]) -> None:
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code, output, said = run(place, arguments, "", None, **environment)
    assert (code, output.isascii(), bool(output)) == (0, True, True), said


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_output_that_cannot_be_written_is_a_failure_in_one_sentence(
    place: Path, arguments: list[str]
) -> None:
    code, _, said = run(place, arguments, ">/dev/full")
    assert code == 1
    assert said.splitlines()[-1] == "narrows: the output can't be written: no space left on device"
    code, _, said = run(place, arguments, ">&-")
    assert code == 1
    assert said.splitlines()[-1] == "narrows: the output can't be written: standard output is closed"


def test_messages_that_cannot_be_written_change_no_exit_code(place: Path) -> None:
    for how in ("2>&-", "2>/dev/full"):
        assert run(place, ["show", "none"], how)[0] == 3
        assert run(place, ["show", "--nonsense"], how)[0] == 2


def test_a_campaign_is_run_with_every_stream_closed(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, _, _ = run(place, ["run", "words.yaml", "-o", str(out), "--no-report"], "<&- >&- 2>&-")
    assert code == 1 and (out / "results.json").is_file()
    assert run(place, ["check", str(out)])[0] == 0


def test_a_reader_that_goes_away_ends_a_command_without_a_word(place: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [PROGRAM, "schema"], stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def _limited(most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most))


@pytest.mark.parametrize("megabytes", [60, 160])
def test_too_little_memory_is_said(place: Path, tmp_path: Path, megabytes: int) -> None:
    for arguments in (["show", "one"], ["run", "words.yaml", "-o", str(tmp_path / "out")]):
        code, _, said = run(place, arguments, before=_limited(megabytes * 1_000_000))
        assert code in (0, 1), said
        assert code == 0 or "memory ran out" in said or "OpenBLAS" in said


def test_errors_of_libraries_about_memory_are_one_sentence() -> None:
    for error in (
        MemoryError(),
        ImportError("x.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ):
        assert isinstance(refused := as_refusal(error), NarrowsError) and refused.exit_code == 1
        assert "memory ran out" in str(refused)
    assert as_refusal(ValueError("odd")) is None


def test_an_error_of_the_interpreter_is_a_shortage_of_memory_where_that_is_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = SystemError("error return without exception set")
    for limit, is_shortage in ((60_000_000, True), (resource.RLIM_INFINITY, False)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert (as_refusal(error) is not None) == is_shortage


def test_a_user_without_a_home_has_empty_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert not config_folder().exists() and not data_folder().exists()


@pytest.mark.parametrize(
    ("letter", "shown"),
    [("✓", "ok"), ("→", "->"), ("µ", "u"), ("┼", "+"), ("é", "e"), ("日", "\\u65e5"), ("😀", "\\U0001f600")],
)
def test_letters_have_something_in_ascii(letter: str, shown: str) -> None:
    assert streams.plain(letter) == shown
