"""`.ci/rustc` compiles our crates, and no others, with a profile of simulations."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PINNED = "1.95.0"
FAKE = """#!/bin/sh
case "$*" in
    *--version) echo "{says}" ;;
    *) printf '%s\\n' "$@" ;;
esac
"""


Called = Callable[..., list[str]]


@pytest.fixture
def called(tmp_path: Path) -> Called:
    """Calls the wrapper around a compiler that prints its arguments; returns the added ones."""

    def call(*words: str, says: str = f"rustc {PINNED} (abc 2026-01-01)", into: str = "") -> list[str]:
        compiler = tmp_path / "rustc"
        compiler.write_text(FAKE.format(says=says))
        compiler.chmod(0o755)
        environment = os.environ | {"NARROWS_PROFILE_INTO": into}
        command = [str(ROOT / ".ci/rustc"), str(compiler), *words]
        run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        told = run.stdout.splitlines()
        assert told[: len(words)] == list(words)
        return told[len(words) :]

    return call


OURS = ("--crate-name", "narrows_net", "--edition=2024", "core/net/src/lib.rs")


def test_our_crates_are_compiled_with_the_profile(called: Called) -> None:
    for words in (OURS, ("--crate-name=narrows_net",)):
        profile, quiet = called(*words)
        name, _, path = profile.partition("=")
        assert name == "-Cprofile-use" and Path(path).is_file() and Path(path).is_absolute()
        assert quiet == "-Cllvm-args=-no-pgo-warn-mismatch"


@pytest.mark.parametrize(
    "words",
    [
        ("--crate-name", "serde", "src/lib.rs"),
        ("--crate-name", "build_script_build", "narrows_net"),
        ("--crate-name", "___", "--print=cfg"),
        (*OURS, "--target", "aarch64-unknown-linux-gnu"),
        (*OURS, "--target=aarch64-unknown-linux-gnu"),
    ],
)
def test_foreign_crates_and_targets_are_compiled_without_the_profile(
    called: Called, words: tuple[str, ...]
) -> None:
    assert called(*words) == []
    assert called(*words, into="somewhere") == []


@pytest.mark.parametrize("crate", ["narrows_net", "all"])
def test_programs_of_tests_are_compiled_without_optimisation_or_line_tables(
    called: Called, crate: str
) -> None:
    added = ["-Copt-level=0", "-Cdebuginfo=0"]
    assert called("--crate-name", crate, "-C", "opt-level=3", "--test") == added
    assert called("--crate-name", "narrows_tests", "-C", "opt-level=3") == added


def test_programs_of_tests_that_compute_long_are_optimised(called: Called) -> None:
    assert called("--crate-name", "queues", "-C", "opt-level=3", "--test") == []
    assert called("--crate-name", "narrows_media", "--test")[0].startswith("-Cprofile-use=")


@pytest.mark.parametrize("says", ["rustc 1.94.1 (abc)", "rustc 1.97.0-nightly (abc)", "clippy 0.1.95 (abc)"])
def test_other_compilers_compile_without(called: Called, says: str) -> None:
    assert called(*OURS, says=says) == []


@pytest.mark.parametrize("word", ["--crate-type bin", "--crate-type=bin"])
def test_the_agent_alone_is_linked_statically(called: Called, word: str, tmp_path: Path) -> None:
    program = word.split()
    library = subprocess.run(["cc", "-print-file-name=libc.a"], check=True, capture_output=True, text=True)
    static = ["-Ctarget-feature=+crt-static"] if "/" in library.stdout else []
    assert called("--crate-name", "narrows_agent", *program)[:-2] == static
    for others in (
        ("--crate-name", "narrows_bpf", *program),
        ("--crate-name", "narrows_agent", "--test"),
        ("--crate-name", "narrows_agent", "--crate-type", "lib"),
    ):
        assert called(*others)[:-2] == []


def test_a_profile_is_made(called: Called) -> None:
    assert called(*OURS, into="/some/folder") == ["-Cprofile-generate=/some/folder"]


def test_the_environment_stays_as_cargo_made_it(tmp_path: Path) -> None:
    compiler = tmp_path / "rustc"
    compiler.write_text(
        "#!/usr/bin/env python3\nimport os\nprint(os.environ['CARGO_BIN_EXE_narrows-agent'])\n"
    )
    compiler.chmod(0o755)
    environment = os.environ | {"CARGO_BIN_EXE_narrows-agent": "/some/program"}
    command = [str(ROOT / ".ci/rustc"), str(compiler), "--crate-name", "all"]
    run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert run.stdout == "/some/program\n"


def test_the_pinned_compiler_is_the_one_of_these_tests() -> None:
    assert f'channel = "{PINNED}"' in (ROOT / "rust-toolchain.toml").read_text()
