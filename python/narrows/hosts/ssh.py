"""One connection to another host by the user's own OpenSSH: its configuration, agents, keys and jump hosts.

A first session is the master of the connection; all others go through its socket and need no login. The
master's remote side is `cat`: when this process dies, for any reason, its pipe closes, and the connection
ends. Host keys are always checked, whatever the configuration says: a laboratory that runs programs as root
on other machines must know their identity.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from narrows.errors import UnavailableError, UsageError

#: ssh's exit code if the connection failed.
CONNECTION_FAILED = 255
#: Time limit for a host to answer; it may have to wake up a modem.
_CONNECT_S = 20
#: Time limit for the login; the user may have to type a password.
_LOGIN_S = 45.0
_TYPING_S = 300.0
#: Time limit for the first output of a started program.
_GREETING_S = 60.0
#: Time limit for ssh to read its configuration, which may run programs (`Match exec`).
_CONFIGURATION_S = 30.0
#: The line that follows the output of the login shell's start files.
BEGIN = "narrows-begin"
#: Socket names must be short (unix(7): 108 bytes), and ssh initially appends a random suffix of 17
#: characters.
_MOST_PATH = 80

_ALWAYS = (
    f"ConnectTimeout={_CONNECT_S}",
    # A vanished host is detected within a quarter of a minute.
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    # Settings for interactive logins that would interfere.
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "RequestTTY=no",
    "EscapeChar=none",
    "LogLevel=ERROR",
    # Compression shrinks the agent to a third.
    "Compression=yes",
)


#: Runs the words after it immune to Ctrl-C.
_DEAF = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")


def _options(*options: str) -> list[str]:
    return [word for option in options for word in ("-o", option)]


class Ssh:
    """A connection; a context manager."""

    def __init__(self, host: str, command: Sequence[str] = ("ssh",)) -> None:
        if not host or host.startswith("-"):
            raise UsageError(f"{host!r} is not a host; name one as ssh does, such as user@host")
        if any("stricthostkeychecking" in word.lower() for word in command):
            raise UsageError("--ssh: host keys are always checked; leave StrictHostKeyChecking out")
        program = shutil.which(command[0]) if command else None
        if program is None:
            raise UnavailableError(
                f"there is no program {shlex.join(command[:1])}; install OpenSSH's client, or name it with"
                " --ssh"
            )
        self.host = host
        self._command = [program, *command[1:]]
        self._socket: Path | None = None
        self._master: subprocess.Popen[bytes] | None = None
        self._complaints: IO[bytes] | None = None

    def __enter__(self) -> Ssh:
        try:
            self._connect()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        """True if ssh reports the connection as up."""
        return self._master is not None and self._master.poll() is None

    # -- using it ----------------------------------------------------------------------------------

    def run(
        self, script: str, *, given: IO[bytes] | None = None, seconds: float = 60
    ) -> subprocess.CompletedProcess[bytes]:
        """Runs a line of POSIX shell there to its end; returns its output without the login's greeting."""
        try:
            done = subprocess.run(
                self._session(f"echo {BEGIN}; sh -c {shlex.quote(script)}"),
                stdin=given or subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise self._silence(seconds) from None
        if done.returncode == CONNECTION_FAILED:
            raise self.failure(done.stderr.decode(errors="replace"))
        done.stdout = done.stdout.partition(f"{BEGIN}\n".encode())[2]
        return done

    def start(self, words: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Starts a program there, with pipes like `subprocess.Popen`; the output of the login shell's start
        files has been consumed.
        """
        process = subprocess.Popen(self._session(f"echo {BEGIN}; exec {shlex.join(words)}"), **options)
        # If it does not start, the next reader gets no output, and reports that.
        _await_begin(process, _GREETING_S)
        return process

    def configuration(self) -> dict[str, str]:
        """ssh's effective configuration for the host: `hostname`, `port`, `proxyjump` and so on."""
        try:
            done = subprocess.run(
                [*self._command, "-G", "--", self.host],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_CONFIGURATION_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise self._silence(_CONFIGURATION_S, "ssh -G ") from None
        if done.returncode != 0:
            raise self.failure(done.stderr)
        pairs = (line.split(maxsplit=1) for line in done.stdout.splitlines())
        return {pair[0].lower(): pair[1] for pair in pairs if len(pair) == 2}

    def _silence(self, seconds: float, what: str = "") -> UnavailableError:
        return UnavailableError(
            f"{what}{self.host} has not answered for {seconds:g} s; see whether this works: {self.by_hand}"
        )

    def failure(self, complaint: str) -> UnavailableError:
        """Why ssh failed, in one sentence."""
        lines = [line.strip().rstrip(".\r") for line in complaint.splitlines() if line.strip()]
        text = "\n".join(lines).lower()
        by_hand = self.by_hand
        if "identification has changed" in text:
            return UnavailableError(
                f"{self.host} shows another host key than the one that is known; find out why before you"
                f" remove the old one, and then connect by hand: {by_hand}"
            )
        if "host key verification failed" in text or "host key is known" in text:
            return UnavailableError(
                f"the host key of {self.host} is not known here; connect once by hand, compare it and accept"
                f" it: {by_hand}"
            )
        if "permission denied (" in text or "too many authentication failures" in text:
            return UnavailableError(
                f"{self.host} refuses the login; make this work without being asked anything: {by_hand}"
            )
        said = lines[-1] if lines else "no output"
        return UnavailableError(f"ssh to {self.host} failed: {said}; see whether this works: {by_hand}")

    @property
    def by_hand(self) -> str:
        """The command that a user types to connect."""
        return shlex.join([Path(self._command[0]).name, *self._command[1:], self.host])

    # -- the connection ----------------------------------------------------------------------------

    def _session(self, command: str) -> list[str]:
        options = _options(
            *_ALWAYS,
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            "ControlMaster=no",
            f"ControlPath={self._socket}",
            # Without its master, a session must fail instead of logging in by itself.
            "ProxyCommand=false",
        )
        return [*self._command, "-T", *options, "--", self.host, command]

    def _connect(self) -> None:
        self._socket = _place_for_socket()
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the connection
        asks = sys.stdin.isatty() and sys.stderr.isatty()
        keys = "ask" if asks else "yes"
        options = _options(
            *_ALWAYS,
            f"BatchMode={'no' if asks else 'yes'}",
            f"StrictHostKeyChecking={keys}",
            "ControlMaster=yes",
            f"ControlPath={self._socket}",
            "ControlPersist=no",
        )
        words = [*self._command, "-T", *options, "--", self.host, f"echo {BEGIN}; exec cat"]
        self._master = subprocess.Popen(
            [*_DEAF, *words] if asks else words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            # Ctrl-C belongs to us, so that the other host can be cleaned up first. A question on the terminal
            # requires that ssh stays in its foreground, so ssh is made to ignore the signal (it keeps
            # ignoring a signal that was ignored at its start).
            start_new_session=not asks,
        )
        self._await_login(_TYPING_S if asks else _LOGIN_S)

    def _await_login(self, seconds: float) -> None:
        assert self._master
        begun = _await_begin(self._master, seconds)
        if begun is None:
            raise UnavailableError(
                f"{self.host} has not completed the login within {seconds:g} s; see whether this works:"
                f" {self.by_hand}"
            )
        if not begun:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._master.wait(5)
            raise self.failure(self._complaint())

    def _complaint(self) -> str:
        assert self._complaints
        self._complaints.seek(0)
        return self._complaints.read().decode(errors="replace")

    def close(self) -> None:
        """Ends the connection, and with it everything that still runs through it."""
        if self._master is not None:
            assert self._master.stdin and self._master.stdout
            with contextlib.suppress(OSError):
                self._master.stdin.close()
            try:
                self._master.wait(5)
            except subprocess.TimeoutExpired:
                self._master.kill()
                self._master.wait()
            self._master.stdout.close()
            self._master = None
        if self._complaints is not None:
            self._complaints.close()
            self._complaints = None
        if self._socket is not None:
            # Exists only if ssh had to be killed.
            self._socket.unlink(missing_ok=True)
            self._socket = None


def _place_for_socket() -> Path:
    """An unguessable name, short enough for a socket. ssh removes the socket when it ends, so nothing is left
    even if this process is killed.
    """
    for parent in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):
        if parent and len(parent) <= _MOST_PATH - 25 and os.access(parent, os.W_OK | os.X_OK):
            return Path(parent) / f"narrows-{secrets.token_hex(8)}"
    raise UnavailableError("there is no folder for a socket of ssh; set TMPDIR to one with a short name")


def _await_begin(process: subprocess.Popen[bytes], seconds: float) -> bool | None:
    """Reads the output of a program up to the line `BEGIN`, after any other output of the login; False if the
    output ends before, None if it takes longer.
    """
    assert process.stdout
    stream = process.stdout.fileno()
    limit = time.monotonic() + seconds
    said = b""
    # Byte by byte, so that nothing after the line is consumed.
    while not said.endswith(f"{BEGIN}\n".encode()):
        ready, _, _ = select.select([stream], [], [], max(0.0, limit - time.monotonic()))
        if not ready:
            return None
        letter = os.read(stream, 1)
        if not letter:
            return False
        said = said[-len(BEGIN) :] + letter
    return True
