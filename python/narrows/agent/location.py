"""The location of an agent, and how to start and query it there.

An agent gets a separate session and a pipe on its standard input. When this process dies, however it dies,
the pipe closes and the agent stops and cleans up.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from narrows import extended
from narrows.agent.process import end, exit_code, kill
from narrows.errors import UnavailableError, reason

if TYPE_CHECKING:
    # Only for types, because finding an agent must be quick.
    from narrows.documents.agent import MachineFacts, Version

Kind = TypeVar("Kind")

#: The version of the agent's command line that this package speaks.
PROTOCOL = 1
#: Rights under which agents can run, the most powerful first.
ROOT, SUDO, USER = "root", "sudo", "user"
#: Building and removing two virtual hosts and loading a BPF program takes two seconds on slow machines.
ANSWER_S = 60.0
#: Removing gigabytes from a slow disk takes a while.
_REMOVE_S = 60.0
#: Time for sudo to determine the user's rights; it may have to query a server.
_SUDO_S = 30.0

#: Why an installation without narrows-agent can't do what needs it, and what to do.
MISSING, REMEDY = (
    ("the program narrows-agent does not exist", "build it in the source tree with: make build")
    if sys.platform == "linux"
    else ("narrows-agent needs Linux", "run this on Linux, where the wheel contains narrows-agent")
)
_PACKAGED = Path(__file__).resolve().parent.parent / "_bin" / "narrows-agent"


class Connection(Protocol):
    """A connection to another host (narrows.hosts.ssh)."""

    def start(self, words: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Starts a program there, with pipes as in `subprocess.Popen`."""

    def run(self, script: str) -> subprocess.CompletedProcess[bytes]:
        """Runs a line of POSIX shell there and waits for it."""


def find_agent() -> Path:
    """The agent's binary: $NARROWS_AGENT, the one with the user's extensions, the one in the package, the one
    on the PATH.
    """
    named = os.environ.get("NARROWS_AGENT")
    if named:
        if not os.access(named, os.X_OK):
            raise UnavailableError(
                f"$NARROWS_AGENT names {named}, which is not a program; correct or unset it"
            )
        return Path(named)
    if extended.problem:
        raise UnavailableError(extended.problem)
    if extended.folder:
        return Path(extended.folder) / _PACKAGED.name
    if os.access(_PACKAGED, os.X_OK):
        return _PACKAGED
    text = shutil.which("narrows-agent")
    if text:
        return Path(text)
    raise UnavailableError(f"{MISSING}; {REMEDY}")


@dataclass
class Location:
    """Where an agent runs: here, or on another host."""

    name: str
    #: Words before the agent's arguments: its path, preceded by sudo if needed.
    prefix: list[str]
    #: `root`, `sudo` (root without a password) or `user`.
    rights: str
    #: The connection to the other host; None on this machine.
    ssh: Connection | None = None

    def start(
        self, *arguments: str, stderr: Any = subprocess.PIPE, pass_fds: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        """Starts the agent with pipes; it ends with its standard input."""
        words = [*self.prefix, *arguments]
        options: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": stderr,
            # A separate session: the kernel's scheduler gives the emulator its fair share, however busy our
            # terminal is.
            "start_new_session": True,
        }
        if self.ssh is not None:
            return self.ssh.start(words, **options)
        try:
            return subprocess.Popen(words, **options, pass_fds=pass_fds)
        except OSError as error:
            raise UnavailableError(f"{words[0]} can't be started: {reason(error)}") from None

    def ask(self, kind: type[Kind], *arguments: str, pass_fds: Sequence[int] = ()) -> Kind:
        """The document of this kind that the agent prints."""
        from narrows.agent import schema

        process = self.start(*arguments, pass_fds=pass_fds)
        try:
            said, complaint = process.communicate(timeout=ANSWER_S)
        except subprocess.TimeoutExpired:
            kill(process)
            end(process)
            raise UnavailableError(
                f"{self.name}: narrows-agent {arguments[0]} has not ended after {ANSWER_S:g} s; see what the"
                " machine is doing, and try again"
            ) from None
        answer = schema.parse(said)
        if answer is not None and (process.returncode == 0 or schema.complaint(answer)):
            return schema.read_answer(self.name, answer, kind)
        why = _cannot_run(arguments[0], complaint.decode(errors="replace"), process.returncode)
        raise UnavailableError(f"{self.name}: {why}")

    def version(self, program: Path | None = None) -> Version:
        """The agent's version; raises `UnavailableError`, naming `program`, unless it speaks our protocol."""
        from narrows.documents.agent import Version

        result = self.ask(Version, "version")
        if result.protocol != PROTOCOL:
            raise UnavailableError(
                f"{program or self.prefix[-1]} speaks protocol {result.protocol}, this package"
                f" {PROTOCOL}; build both from the same source with: make build"
            )
        return result

    def doctor(self) -> MachineFacts:
        """The facts about the machine that cells depend on."""
        from narrows.documents.agent import MachineFacts

        return self.ask(MachineFacts, "doctor")

    def remove(self, folder: Path) -> None:
        """Removes a folder on this machine, including files that agents have written; leaves what cannot be
        removed.
        """
        assert self.ssh is None
        shutil.rmtree(folder, ignore_errors=True)
        if self.rights == SUDO and os.path.lexists(folder):
            # The folder belongs to root, as does everything that agents write here.
            words = [*self.prefix[:-1], "rm", "-rf", "--", str(folder.absolute())]
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                exit_code(words, _REMOVE_S)


def _cannot_run(question: str, complaint: str, code: int) -> str:
    """The error that explains why an agent gave no answer."""
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


def this_machine() -> Location:
    """This machine, with the rights of this process. Without narrows-agent it simulates."""
    return Location("this machine", _find_words(), ROOT if os.geteuid() == 0 else USER)


def _find_words() -> list[str]:
    """How to start narrows-agent, or its substitute that only simulates."""
    try:
        return [str(find_agent())]
    except UnavailableError as error:
        if not str(error).startswith(MISSING):
            raise
        return [sys.executable, "-m", "narrows.agent.portable"]


def with_best_rights() -> Location:
    """This machine, as root if that is possible without a password."""
    agent = str(find_agent())
    if os.geteuid() == 0:
        return Location("here", [agent], ROOT)
    sudo = shutil.which("sudo")
    if sudo is not None:
        try:
            may = exit_code([sudo, "-n", "true"], _SUDO_S) == 0
        except subprocess.TimeoutExpired:
            raise UnavailableError(
                f"sudo has not answered for {_SUDO_S:g} s; see whether this works: sudo -n true"
            ) from None
        if may:
            return Location("here", [sudo, "-n", agent], SUDO)
    return Location("here", [agent], USER)
