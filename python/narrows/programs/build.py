"""Builds programs from their sources, in their locked versions (`narrows programs build`)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from msgspec import field as member

from narrows.documents.data import DamagedError, Number, Part, from_data, to_data
from narrows.errors import DataError, NarrowsError, UnavailableError, reason
from narrows.files import open_regular, read_text
from narrows.scenario.programs.keys import BUILT as BUILT_WORD
from narrows.scenario.programs.program import Program
from narrows.scenario.programs.recipe import (
    ABOUT,
    CARGO,
    DEBIAN,
    GO,
    LOCKED,
    NPM,
    Recipe,
    builds_folder,
    folder_of,
    identity,
    is_built,
)

FORMAT = "narrows/program-build/1"
BUILT, THERE = "built", "there"

#: The tools of each kind of build, and where to get them.
_TOOLS = {
    CARGO: ("cargo", "install Rust (rustup, or Debian's package cargo)"),
    GO: ("go", "install Go (Debian's package golang, or golang-go of its backports)"),
    NPM: ("npm", "install it (Debian's package npm)"),
    DEBIAN: ("apt-get", "it comes with Debian and Ubuntu; install the program as your system does"),
}
#: Messages of the tools if a registry cannot be reached.
_UNREACHABLE = re.compile(
    r"could ?n[o']t resolve|no such host|name resolution|network is unreachable|connection refused"
    r"|failed to connect|couldn't connect|timed? ?out|no route to host|max retries|failed to establish"
    r"|failed to fetch|module lookup disabled|--offline was specified|offline mode|proxy tunnel",
    re.IGNORECASE,
)
_ERROR = re.compile(r"^\s*(?:error\S*|E|fatal|go)\s*:", re.IGNORECASE)
#: Folders of a build that contain downloads from registries.
_INSTALLED = ("node_modules", "lib", "lib64", "include", "share", "pyvenv.cfg")
#: A build that takes longer hangs.
_LIMIT_S = 1800.0
#: The prefix of folders in which a build is running.
_UNFINISHED = ".building-"

#: Receives the output of the tools, line by line.
Tell = Callable[[str], None]


class About(Part, frozen=True, kw_only=True):
    """The content of `built.json`; packages of Debian have no sources and no files."""

    format: str
    kind: str
    sources_sha256: str | None = None
    tool: str | None = None
    seconds: Number | None = None
    packages: dict[str, str] = member(default_factory=dict)
    files: dict[str, str] = member(default_factory=dict)


@dataclass(frozen=True)
class Build:
    """A built program, or installed packages."""

    name: str
    #: `built` now, or `there` from before.
    state: str
    #: The folder of the build; None for Debian packages.
    folder: Path | None
    #: Its entry in `built.json`.
    about: About

    def to_json(self) -> dict[str, object]:
        """As plain data."""
        folder = None if self.folder is None else str(self.folder)
        return {"name": self.name, "state": self.state, "folder": folder, **to_data(self.about)}


def build(program: Program, tell: Tell) -> Build:
    """Builds a program unless it exists already; in that case nothing is fetched. Raises `DataError` for a
    program that can't be built, `UnavailableError` if a tool, a registry or a right is missing,
    `NarrowsError` if it fails.
    """
    recipe = program.build
    if recipe is None:
        raise DataError(
            f"{program.name} has no key build in its manifest ({program.path}); it is yours to install"
        )
    packages = _packages(program.name, recipe, tell) if recipe.packages else None
    if recipe.sources is None:
        assert packages is not None
        return packages
    folder = folder_of(program.name, recipe)
    if is_built(folder):
        return Build(program.name, THERE, folder, _about(folder))
    started = time.monotonic()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder.parent)
        # Beside the target, so that a rename can move it there once it is complete.
        with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=folder.parent) as made:
            place = Path(made) / "built"
            place.mkdir()
            with _log(folder.with_suffix(".log")) as log:
                _make(program.name, recipe, place, _Tools(program.name, log, tell))
            about = About(
                format=FORMAT,
                kind=recipe.kind,
                sources_sha256=identity(recipe),
                tool=_version_of(recipe.kind),
                seconds=round(time.monotonic() - started, 1),
                packages=packages.about.packages if packages else {},
                files=_hashes(place),
            )
            (place / ABOUT).write_text(json.dumps(to_data(about), indent=2) + "\n", encoding="utf-8")
            _move(place, folder)
    except OSError as error:
        raise NarrowsError(f"{folder.parent}: {program.name} can't be built there: {reason(error)}") from None
    return Build(program.name, BUILT, folder, about)


def in_words(build: Build) -> str:
    """The outcome, in a line."""
    if build.folder is None:
        verb = "installed" if build.state == BUILT else "is installed"
        packages = ", ".join(f"{name} {version}" for name, version in build.about.packages.items())
        return f"{build.name}: {verb}: {packages}"
    took = f"built in {build.about.seconds or 0:.0f} s" if build.state == BUILT else "is built"
    return f"{build.name}: {took}, with {build.about.tool}, in {build.folder}"


def _about(folder: Path) -> About:
    try:
        about = from_data(json.loads(read_text(folder / ABOUT)), About)
    except (OSError, ValueError, DamagedError):
        about = None
    missing = next((name for name in about.files if not (folder / name).is_file()), None) if about else ABOUT
    if about is None or missing:
        raise DataError(f"{folder} lacks {missing}; remove the folder, and build it again")
    return about


def _hashes(place: Path) -> dict[str, str]:
    """SHA-256 of the built files by path; installed packages have hashes in lock files."""
    hashes = {}
    for path in sorted(place.rglob("*")):
        inner = path.relative_to(place)
        if inner.parts[0] not in _INSTALLED and path.is_file() and not path.is_symlink():
            with open_regular(path) as stream:
                hashes[str(inner)] = hashlib.file_digest(stream, "sha256").hexdigest()
    return hashes


def _move(place: Path, folder: Path) -> None:
    """Moves a build to its place, unless another process was faster."""
    if folder.exists() and not is_built(folder):
        shutil.rmtree(folder)
    with contextlib.suppress(FileExistsError):
        try:
            place.rename(folder)
        except OSError:
            if not is_built(folder):
                raise


@contextlib.contextmanager
def _log(path: Path) -> Iterator[TextIO]:
    """The output of the tools, kept if they fail."""
    with path.open("w", encoding="utf-8") as stream:
        yield stream
    path.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Removes leftovers of killed builds."""
    for path in folder.glob(f"{_UNFINISHED}*"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < time.time() - 2 * _LIMIT_S:
                shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True)
class _Tools:
    """Runs the tools of a build."""

    name: str
    log: TextIO
    tell: Tell

    def run(self, command: list[str], folder: Path, env: dict[str, str] | None = None) -> None:
        """Runs one tool to its end; raises `NarrowsError` with its message if it fails."""
        lines: list[str] = []
        process = subprocess.Popen(
            command,
            cwd=folder, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        assert process.stdout is not None
        watch = threading.Timer(_LIMIT_S, process.kill)
        watch.start()
        try:
            for line in process.stdout:
                self.log.write(line)
                if line.strip():
                    lines.append(line.strip())
                    self.tell(line.strip())
            code = process.wait()
        finally:
            watch.cancel()
            process.kill()
            process.wait()
            process.stdout.close()
        if code != 0:
            raise _failure(self, command, code, lines)


def _failure(tools: _Tools, command: list[str], code: int, lines: list[str]) -> NarrowsError:
    """Why a tool has failed, in one sentence."""
    tool = Path(command[0]).name
    where = f"; everything that it printed is in {tools.log.name}"
    unreachable = next((line for line in lines if _UNREACHABLE.search(line)), None)
    if unreachable is not None:
        said = f"{tool} could not reach its registry ({_bare(unreachable)})"
        return UnavailableError(
            f"{tools.name} is not built: {said}; only the first build needs the network{where}"
        )
    said = next((line for line in lines if _ERROR.match(line)), lines[-1] if lines else "it printed nothing")
    return NarrowsError(
        f"{tools.name} is not built: {tool} ended with exit code {code}: {_bare(said)}{where}"
    )


def _bare(line: str) -> str:
    """A line of a tool's output as part of a sentence."""
    return " ".join(line.split()).rstrip(".;:")[:300]


def _make(name: str, recipe: Recipe, place: Path, tools: _Tools) -> None:
    """Builds into the folder `place`."""
    assert recipe.sources is not None
    # The tools start in another folder, so that settings of a source tree around the sources are ignored.
    sources, folder = recipe.sources.resolve(), place.parent
    if recipe.kind == CARGO:
        tool = _tool(name, CARGO)
        where = ["--path", str(sources), "--root", str(place), "--target-dir", str(folder / "target")]
        tools.run([tool, "install", "--locked", "--no-track", *where], folder)
    elif recipe.kind == GO:
        settings = {"GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}
        (place / "bin").mkdir()
        options = ["-mod=readonly", "-trimpath", "-buildvcs=false", "-v", "-o", f"{place / 'bin'}/"]
        tools.run([_tool(name, GO), "build", "-C", str(sources), *options, "."], folder, settings)
    elif recipe.kind == NPM:
        for text in LOCKED[NPM]:
            shutil.copy(sources / text, place)
        options = ["--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--no-update-notifier"]
        tools.run([_tool(name, NPM), "ci", *options], place)
    else:
        tools.run([sys.executable, "-m", "venv", str(place)], folder)
        needed = str(sources / "requirements.txt")
        options = ["--require-hashes", "--only-binary", ":all:", "--disable-pip-version-check", "--no-input"]
        tools.run([str(place / "bin" / "python"), "-m", "pip", "install", *options, "-r", needed], folder)
    if recipe.then:
        command = [word.replace(f"{{{BUILT_WORD}}}", str(place)) for word in recipe.then]
        tools.run(command, sources, {"PYTHONDONTWRITEBYTECODE": "1"})


def _tool(name: str, kind: str) -> str:
    """The path of a tool; raises `UnavailableError` if it does not exist."""
    tool, how = _TOOLS[kind]
    path = shutil.which(tool)
    if path is None:
        raise UnavailableError(f"{name} is built with {tool}, which is not on PATH; {how}")
    return path


def _version_of(kind: str) -> str:
    """The build tool with its version."""
    if kind not in _TOOLS:
        return f"Python {sys.version.split()[0]}"
    tool = _TOOLS[kind][0]
    command = [tool, "version" if kind == GO else "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    said = " ".join(done.stdout.split())
    return said if said.startswith(tool) else f"{tool} {said}"


def _packages(name: str, recipe: Recipe, tell: Tell) -> Build:
    """Installs missing Debian packages."""
    result = _read_versions(recipe.packages)
    missing = [package for package in recipe.packages if package not in result]
    state = THERE
    if missing:
        tool = _tool(name, DEBIAN)
        if os.geteuid() != 0:
            packages = " ".join(missing)
            raise UnavailableError(
                f"{name} is installed for the whole machine, which only root can;"
                f" run: sudo apt-get install {packages}"
            )
        folder = builds_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with _log(folder / f"{name}.log") as log:
            tools = _Tools(name, log, tell)
            # Services among them are not started, as systemd would.
            settings = {"DEBIAN_FRONTEND": "noninteractive", "SYSTEMD_OFFLINE": "1"}
            tools.run([tool, "update", "-q"], folder, settings)
            options = ["install", "-q", "-y", "--no-install-recommends"]
            tools.run([tool, *options, *missing], folder, settings)
        state, result = BUILT, _read_versions(recipe.packages)
    about = About(format=FORMAT, kind=DEBIAN, packages=result)
    return Build(name, state, None, about)


def _read_versions(packages: tuple[str, ...]) -> dict[str, str]:
    """The installed versions of those packages that are installed."""
    if shutil.which("dpkg-query") is None:
        return {}
    command = ["dpkg-query", "--show", "--showformat", "${Package} ${Version} ${Status}\n", *packages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    lines = (line.split() for line in done.stdout.splitlines())
    return {words[0]: words[1] for words in lines if words[-1:] == ["installed"]}
