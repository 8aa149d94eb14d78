"""Where an agent runs: here, or on another host."""

from __future__ import annotations

import contextlib
import os
import posixpath
import select
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narrows.campaign.agent import PROTOCOL, find_agent
from narrows.errors import DataError, UnavailableError
from narrows.hosts import answers, travel
from narrows.hosts.ssh import BEGIN, Ssh
from narrows.shapes import Shape

#: Rights under which agents can run, the best first.
ROOT, SUDO, USER = "root", "sudo", "user"
_HELLO = (
    'uname -s; uname -m; id -u; echo "$HOME"; echo "${XDG_CACHE_HOME:-}";'
    ' echo "${SSH_CONNECTION:-}"; if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null;'
    " then echo yes; else echo no; fi"
)
#: Building and removing two virtual hosts and loading a BPF program takes two seconds on slow machines.
_FACTS_S = 60.0
#: How long a copy may take: 10 MB in five minutes is 270 kbit/s.
_COPY_S = 300.0
_EXIT_WRONG_HASH = 4
#: Removing gigabytes from a slow disk takes a while.
_REMOVE_S = 60.0
#: How long sudo may take to find out what a user may do; a server may have to be asked.
_SUDO_S = 30.0
#: What was killed ends so soon, unless it is stuck inside of the kernel.
_DEATH_S = 10.0


@dataclass
class Place:
    """Where an agent runs, and how it is started there."""

    name: str
    #: Words before the agent's arguments: perhaps sudo, and its path.
    prefix: list[str]
    #: `root`, `sudo` (root without a password) or `user`.
    rights: str
    #: The connection, unless it is here.
    ssh: Ssh | None = None

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Starts the agent with pipes; it ends with its standard input."""
        words = [*self.prefix, *arguments]
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        if self.ssh is not None:
            process = self.ssh.start(words, **pipes, start_new_session=True)
            _skip_greeting(process)
            return process
        try:
            return subprocess.Popen(words, **pipes, start_new_session=True)
        except OSError as error:
            raise UnavailableError(
                f"{words[0]} can't be started: {(error.strerror or str(error)).lower()}"
            ) from None

    def ask(self, shape: Shape, *arguments: str) -> dict[str, Any]:
        """The document that the agent prints, which has this shape."""
        process = self.start(*arguments)
        try:
            said, complaint = process.communicate(timeout=_FACTS_S)
        except subprocess.TimeoutExpired:
            kill(process)
            end(process)
            raise UnavailableError(
                f"{self.name}: narrows-agent {arguments[0]} has not ended after {_FACTS_S:g} s; see what the"
                " machine is doing, and try again"
            ) from None
        answer = self._read(arguments[0], said, complaint.decode(errors="replace"), process.returncode)
        return answers.checked(self.name, answer, shape)

    def remove(self, folder: Path) -> None:
        """Removes a folder here with what agents have written into it; what cannot be removed stays."""
        assert self.ssh is None
        shutil.rmtree(folder, ignore_errors=True)
        if self.rights == SUDO and os.path.lexists(folder):
            # It is root's, as everything is that agents write here.
            words = [*self.prefix[:-1], "rm", "-rf", "--", str(folder.absolute())]
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                _exit_code(words, _REMOVE_S)

    def _read(self, question: str, said: bytes, complaint: str, code: int) -> dict[str, Any]:
        answer = answers.parse(said)
        if answer is not None and (code == 0 or answers.complaint(answer)):
            return answer
        raise UnavailableError(f"{self.name}: {_cannot_run(question, complaint, code)}")


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a program that was started with pipes: it ends when its standard input does, or else is killed."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    for _ in range(2):
        try:
            process.wait(_DEATH_S)
            return
        except subprocess.TimeoutExpired:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Ends a program at once."""
    with contextlib.suppress(PermissionError):  # behind sudo; the end of its pipes must do
        process.kill()


def _exit_code(words: list[str], seconds: float) -> int:
    """Runs a program that may be root's, and which is left alone when it takes too long."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        kill(process)
        end(process)
        raise


def _skip_greeting(process: subprocess.Popen[bytes]) -> None:
    """Reads what start files of the login shell print before a program runs."""
    assert process.stdout
    stream = process.stdout.fileno()
    limit = time.monotonic() + _FACTS_S
    said = b""
    # Byte by byte, so that nothing of what follows is taken away.
    while not said.endswith(f"{BEGIN}\n".encode()):
        ready, _, _ = select.select([stream], [], [], max(0.0, limit - time.monotonic()))
        letter = os.read(stream, 1) if ready else b""
        if not letter:
            return  # whoever reads on finds nothing, and says so
        said = said[-len(BEGIN) :] + letter


def _cannot_run(question: str, complaint: str, code: int) -> str:
    """Why an agent gave no answer."""
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    last = lines[-1] if lines else f"exit code {code}"
    low = complaint.lower()
    if "glibc" in low or "shared librar" in low:
        return (
            f"the agent does not run there ({last}); send a statically linked one: make build makes it where"
            " the C library is there for static linking (Debian: libc6-dev)"
        )
    if code == 126 and "permission denied" in low:
        return (
            f"the agent may not be executed ({last}); choose a folder on a file system without noexec with"
            " --remote-folder"
        )
    return f"narrows-agent {question} gives no answer ({last})"


def here() -> Place:
    """This machine, with the packaged agent."""
    agent = str(find_agent())
    if os.geteuid() == 0:
        return Place("here", [agent], ROOT)
    sudo = shutil.which("sudo")
    if sudo is not None:
        try:
            may = _exit_code([sudo, "-n", "true"], _SUDO_S) == 0
        except subprocess.TimeoutExpired:
            raise UnavailableError(
                f"sudo has not answered for {_SUDO_S:g} s; see whether this works: sudo -n true"
            ) from None
        if may:
            return Place("here", [sudo, "-n", agent], SUDO)
    return Place("here", [agent], USER)


@dataclass
class Arrival:
    """Another host, and what was needed to get there."""

    place: Place
    program: travel.Program
    #: The folder of all copies there.
    folder: str
    #: Whether the agent was copied, and not found there.
    copied: bool
    machine: str
    #: As the other host sees the connection: our address, our port, its address, its port.
    connection: tuple[str, ...]


@dataclass(frozen=True)
class _Hello:
    machine: str
    root: bool
    sudo: bool
    folder: str
    connection: tuple[str, ...]


def arrive(ssh: Ssh, agent: Path | None = None, home: str | None = None) -> Arrival:
    """Brings the agent to the other end of a connection, unless it is there already, and the loader of
    programs for the kernel beside it."""
    hello = _hello(ssh, home)
    if agent is None:
        own = travel.examine(find_agent())
        travel.fitting(own, hello.machine, ssh.host)
        program = travel.lightened(own)
    else:
        program = travel.examine(agent)
        travel.fitting(program, hello.machine, ssh.host)
    # From here on where it really is: links on the way there are not followed again.
    folder = _private(ssh, f"{hello.folder}/{program.sha256}")
    copied = _bring(ssh, program, folder, travel.AGENT)
    loader = (agent or find_agent()).with_name(travel.LOADER)
    if loader.is_file():
        its = travel.examine(loader)
        if its.runs_on(hello.machine):
            _bring(ssh, travel.lightened(its), folder, travel.LOADER)
    path = f"{folder}/{travel.AGENT}"
    rights = ROOT if hello.root else SUDO if hello.sudo else USER
    prefix = ["sudo", "-n", path] if rights == SUDO else [path]
    place = Place(ssh.host, prefix, rights, ssh)
    version = place.ask(answers.VERSION, "version")
    if version.get("protocol") != PROTOCOL:
        raise UnavailableError(
            f"{program.path} speaks protocol {version.get('protocol')}, this package {PROTOCOL}; build both"
            " from the same source with: make build"
        )
    return Arrival(place, program, posixpath.dirname(folder), copied, hello.machine, hello.connection)


def clean(ssh: Ssh, folder: str | None = None) -> tuple[str, int]:
    """Removes all copies of agents there; gives their folder and how many there were."""
    hello = _hello(ssh, folder)
    _private(ssh, hello.folder, make=False)
    before = "sudo -n " if hello.sudo and not hello.root else ""
    done = ssh.run(travel.clean_script(hello.folder, before))
    try:
        count = int(_last_line(done.stdout))
    except ValueError:
        raise UnavailableError(f"{ssh.host}: {hello.folder} could not be removed") from None
    return hello.folder, count


def _hello(ssh: Ssh, folder: str | None) -> _Hello:
    done = ssh.run(_HELLO)
    lines = done.stdout.decode(errors="replace").splitlines()
    if len(lines) < 7:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
        raise UnavailableError(
            f"{ssh.host} does not run commands for us ({last[0]}); the login shell there must be able to"
            " run: sh -c"
        )
    kernel, machine, user, home, cache, connection, sudo = lines[:7]
    if kernel != "Linux":
        raise UnavailableError(f"{ssh.host} runs {kernel}; runs between hosts need Linux on both ends")
    if folder is None:
        base = cache if cache.startswith("/") else f"{home}/.cache"
        folder = f"{base}/narrows/agents"
    elif not folder.startswith("/"):
        folder = f"{home}/{folder}"
    return _Hello(machine, user == "0", sudo == "yes", folder.rstrip("/"), tuple(connection.split()))


def _private(ssh: Ssh, folder: str, make: bool = True) -> str:
    """Where a folder there really is, which is made if need be; refused if others than root and the user may
    write there."""
    done = ssh.run(travel.private_script(folder, make))
    lines = done.stdout.decode(errors="replace").splitlines()
    if done.returncode == travel.EXIT_NOT_PRIVATE and len(lines) >= 2:
        raise UnavailableError(
            f"{ssh.host}: {lines[-2]} {lines[-1]}, who could exchange the agent before it starts; choose"
            " another folder with --remote-folder, or take that right away with: chmod go-w"
        )
    if done.returncode != 0 or (make and not lines):
        complaint = done.stderr.decode(errors="replace").strip().splitlines()
        why = complaint[-1] if complaint else f"exit code {done.returncode}"
        raise UnavailableError(
            f"{ssh.host}: {folder} can't be made or examined ({why}); choose another folder with"
            " --remote-folder"
        )
    return lines[-1] if lines else folder


def _bring(ssh: Ssh, program: travel.Program, folder: str, name: str) -> bool:
    """Copies a program into a folder there, unless it is there whole; tells whether it was copied."""
    if _last_line(ssh.run(travel.seek_script(folder, name)).stdout) == program.sha256:
        return False
    try:
        with program.path.open("rb") as file:
            done = ssh.run(travel.put_script(folder, name, program.sha256), given=file, seconds=_COPY_S)
    except OSError as error:
        raise DataError(f"{program.path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    if done.returncode == 0:
        return True
    complaint = done.stderr.decode(errors="replace").strip().splitlines()
    arrived = _last_line(done.stdout)
    if done.returncode != _EXIT_WRONG_HASH:
        why = complaint[-1] if complaint else f"exit code {done.returncode}"
        raise UnavailableError(
            f"{ssh.host}: {name} ({travel.wire_size(program)}) could not be written into {folder}"
            f" ({why}); make room there, or choose another folder with --remote-folder"
        )
    if arrived == "none":
        raise UnavailableError(
            f"{ssh.host} has none of sha256sum, shasum and openssl, so that the copy cannot be verified;"
            " install one"
        )
    raise UnavailableError(
        f"{ssh.host}: {name} arrived damaged (SHA-256 {arrived[:12]} instead of {program.sha256[:12]})"
        " and was removed; try again"
    )


def _last_line(said: bytes) -> str:
    lines = said.decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
