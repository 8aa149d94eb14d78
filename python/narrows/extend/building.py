"""Compiles the copy of the workspace, after the conformance kits have passed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from narrows.agent.process import end, kill
from narrows.cargo import find_cargo, first_error
from narrows.console import say
from narrows.documents.data import to_data
from narrows.documents.extensions import Extension
from narrows.errors import DataError, UnavailableError, reason
from narrows.extend.crates import Crate
from narrows.extend.sources import read_sources
from narrows.extend.workspace import EXTENDED, compose
from narrows.extend.writing import write_files
from narrows.files import read_bytes
from narrows.progress import progress, show_time
from narrows.text import printable, shorten

#: The tools without which nothing is compiled, each with the Debian package that has it.
_TOOLS = {"cc": "build-essential", "pkg-config": "pkg-config", "clang": "clang", "llvm-strip": "llvm"}
#: Packages that the agent is built with.
_AGENT, _MODULE = "narrows-agent", "narrows-native"
#: Messages that are no fault of the crate.
_UNREACHABLE = re.compile(
    r"could ?n[o']t resolve|failed to download|network is unreachable|failed to get|spurious network"
    r"|offline was",
    re.IGNORECASE,
)
_POLL_S = 0.3


@dataclass(frozen=True)
class Built:
    """The compiled files."""

    agent: Path
    module: Path


def check_tools() -> None:
    """Raises `UnavailableError` if this machine can't compile."""
    if not sys.platform.startswith("linux"):
        raise UnavailableError("extensions are built on Linux; this system can run Narrows without them")
    find_cargo("extensions")
    lacking = [package for tool, package in _TOOLS.items() if shutil.which(tool) is None]
    if lacking:
        names = " ".join([*lacking, "libelf-dev", "zlib1g-dev"])
        raise UnavailableError(f"extensions can't be built here; install (Debian names): {names}")


class Workshop:
    """The copy of the workspace in a folder, and its compiler."""

    def __init__(self, folder: Path, git: str | None) -> None:
        """`git` is the source of the agent in use, which records name."""
        self._workspace = folder / "workspace"
        self._log = folder / "cargo.log"
        named = os.getenv("CARGO_TARGET_DIR", "")
        self._target = Path(named).absolute() if named else folder / "target"
        self._git = git

    def write(self, crates: Iterable[Crate]) -> None:
        """Writes the workspace with the crates inside."""
        write_files(self._workspace, compose(read_sources(), crates))

    def test(self, crates: Sequence[Crate], all_crates: Sequence[Crate]) -> None:
        """Runs the conformance kits and the tests of some of the crates; raises `DataError` if one fails."""
        names = ", ".join(crate.name for crate in crates)
        words = ["test", *self._packages(all_crates), "--test", "*", "--no-fail-fast"]
        self._run(f"conformance kit and tests of {names}", words, all_crates, tests=True)

    def build(self, crates: Sequence[Crate]) -> Built:
        """Builds the agent and the extension module; raises `DataError` if they can't be compiled."""
        words = ["build", *self._packages(crates)]
        self._run("agent and extension module", words, crates)
        built = self._target / "release"
        return Built(built / _AGENT, built / "lib_native.so")

    @staticmethod
    def _packages(crates: Iterable[Crate]) -> list[str]:
        # The same packages for tests and programs, so that dependencies are compiled once, with the same
        # features.
        names = [_AGENT, _MODULE, EXTENDED, *(crate.name for crate in crates)]
        return [word for name in names for word in ("-p", name)]

    def _environment(self, crates: Iterable[Crate]) -> dict[str, str]:
        extensions = [
            to_data(Extension(name=item.name, version=item.described.version, sha256=item.described.sha256))
            for item in crates
        ]
        own = {
            "CARGO_TARGET_DIR": str(self._target),
            "NARROWS_EXTENSIONS_BUILT": json.dumps(extensions),
            "PYO3_BUILD_EXTENSION_MODULE": "1",
            "PYO3_NO_PYTHON": "1",
        }
        git = {"NARROWS_GIT": self._git} if self._git else {}
        return {**os.environ, **own, **git}

    def _run(self, what: str, words: Sequence[str], crates: Iterable[Crate], *, tests: bool = False) -> None:
        began = time.monotonic()
        say(f"== {what}")
        command = ["cargo", *words, "--release"]
        environment = self._environment(crates)
        # Without the network if all dependencies are there.
        code = self._cargo([*command, "--offline"], environment, what)
        if code and _UNREACHABLE.search(self._output()):
            code = self._cargo(command, environment, what)
        if code:
            raise self._refusal(tests)
        say(f"== {what}: done in {show_time(time.monotonic() - began)}")

    def _cargo(self, command: list[str], environment: Mapping[str, str], what: str) -> int:
        with self._log.open("wb") as log, progress(what) as bar:
            try:
                process = subprocess.Popen(
                    command,
                    cwd=self._workspace,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            except OSError as error:
                raise UnavailableError(f"{command[0]} can't be started: {reason(error)}") from None
            try:
                while True:
                    try:
                        return process.wait(_POLL_S)
                    except subprocess.TimeoutExpired:
                        bar.update(note=shorten(printable(self._last_line()), 40))
            finally:
                if process.poll() is None:
                    kill(process)
                    end(process)

    def _output(self) -> str:
        try:
            return read_bytes(self._log).decode(errors="replace")
        except OSError:
            return ""

    def _last_line(self) -> str:
        return next((line.strip() for line in reversed(self._output().splitlines()) if line.strip()), "")

    def _refusal(self, tests: bool) -> DataError | UnavailableError:
        said = self._output()
        problem = first_error(said)
        if problem and _UNREACHABLE.search(problem):
            return UnavailableError(f"the dependencies can't be fetched: {problem}")
        if problem:
            return DataError(f"it can't be compiled: {problem} (all of it: {self._log})")
        failed = first_panic(said)
        if tests and failed:
            return DataError(f"a test refuses it: {failed} (all of it: {self._log})")
        return DataError(f"cargo failed: {shorten(self._last_line(), 200)} (all of it: {self._log})")


def first_panic(said: str) -> str:
    """The message of the first test that failed, with the test's name; "" if there is none."""
    match = re.search(r"^thread '([^']*)'[^\n]* panicked at [^\n]*\n([^\n]*)", said, re.MULTILINE)
    return printable(shorten(f"{match[1]}: {match[2]}", 300)) if match else ""
