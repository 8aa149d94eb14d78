"""Deployment of the agent to another host: it is copied once into a cache folder of the remote user, under
its hash.

The program that loads congestion controls into the kernel goes beside it, if it exists here. Nothing else is
installed. Copies are verified before each use, and lie where only root and the user may write, so that the
verified program is the one that runs.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from pathlib import Path

from narrows.agent.location import ROOT, SUDO, USER, Location, find_agent
from narrows.errors import DataError, UnavailableError, UsageError, reason
from narrows.files import open_regular
from narrows.hosts import agent_binary
from narrows.hosts.agent_binary import AGENT, LOADER, Program
from narrows.hosts.ssh import Ssh
from narrows.scenario.registry import check_extensions

_HELLO = (
    'uname -s; uname -m; id -u; echo "$HOME"; echo "${XDG_CACHE_HOME:-}";'
    ' echo "${SSH_CONNECTION:-}"; if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null;'
    " then echo yes; else echo no; fi"
)
#: Time limit of a copy: 10 MB in five minutes is 270 kbit/s.
_COPY_S = 300.0
_EXIT_WRONG_HASH = 4


@dataclass
class Deployment:
    """The agent on another host."""

    location: Location
    program: Program
    #: The folder of all copies there.
    folder: str
    #: False if the agent already existed there.
    copied: bool
    machine: str
    ssh: Ssh
    #: The other host's view of the connection: our address, our port, its address, its port.
    connection: tuple[str, ...]


@dataclass(frozen=True)
class _Hello:
    machine: str
    root: bool
    sudo: bool
    folder: str
    connection: tuple[str, ...]


def deploy(ssh: Ssh, agent: Path | None = None, home: str | None = None) -> Deployment:
    """Copies the agent, with the loader of programs for the kernel, to the other end of a connection, unless
    it already has them.
    """
    hello = _hello(ssh, home)
    if agent is None:
        own = agent_binary.examine(find_agent())
        agent_binary.fitting(own, hello.machine, ssh.host)
        program = agent_binary.strip_symbols(own)
    else:
        program = agent_binary.examine(agent)
        agent_binary.fitting(program, hello.machine, ssh.host)
    # From here on the resolved folder: links on the way are not followed again.
    folder = _private(ssh, f"{hello.folder}/{program.sha256}")
    copied = _bring(ssh, program, folder, AGENT)
    loader = (agent or find_agent()).with_name(LOADER)
    if loader.is_file():
        its = agent_binary.examine(loader)
        if its.runs_on(hello.machine):
            _bring(ssh, agent_binary.strip_symbols(its), folder, LOADER)
    path = f"{folder}/{AGENT}"
    rights = ROOT if hello.root else SUDO if hello.sudo else USER
    prefix = ["sudo", "-n", path] if rights == SUDO else [path]
    location = Location(ssh.host, prefix, rights, ssh)
    version = location.version(program.path)
    check_extensions(version.extensions, f"{ssh.host}: {agent or find_agent()}")
    return Deployment(
        location, program, posixpath.dirname(folder), copied, hello.machine, ssh, hello.connection
    )


def clean(ssh: Ssh, folder: str | None = None) -> tuple[str, int]:
    """Removes all copies of agents there; returns their folder and their number."""
    hello = _hello(ssh, folder)
    _private(ssh, hello.folder, make=False)
    before = "sudo -n " if hello.sudo and not hello.root else ""
    done = ssh.run(clean_script(hello.folder, before))
    try:
        count = int(_last_line(done.stdout))
    except ValueError:
        raise UnavailableError(f"{ssh.host}: {hello.folder} could not be removed") from None
    return hello.folder, count


def _hello(ssh: Ssh, folder: str | None) -> _Hello:
    done = ssh.run(_HELLO)
    lines = done.stdout.decode(errors="replace").splitlines()
    if len(lines) < 7:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no output"]
        raise UnavailableError(
            f"{ssh.host} does not run commands ({last[0]}); the login shell there must be able to run: sh -c"
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
    """The resolved path of a folder there, which is created if necessary; raises if others than root and the
    user may write there.
    """
    done = ssh.run(private_script(folder, make))
    lines = done.stdout.decode(errors="replace").splitlines()
    if done.returncode == EXIT_NOT_PRIVATE and len(lines) >= 2:
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


def _bring(ssh: Ssh, program: Program, folder: str, name: str) -> bool:
    """Copies a program into a folder there, unless it has a complete copy; returns whether it copied."""
    if _last_line(ssh.run(seek_script(folder, name)).stdout) == program.sha256:
        return False
    try:
        with open_regular(program.path) as file:
            done = ssh.run(put_script(folder, name, program.sha256), given=file, seconds=_COPY_S)
    except OSError as error:
        raise DataError(f"{program.path} cannot be read: {reason(error)}") from None
    if done.returncode == 0:
        return True
    complaint = done.stderr.decode(errors="replace").strip().splitlines()
    arrived = _last_line(done.stdout)
    if done.returncode != _EXIT_WRONG_HASH:
        why = complaint[-1] if complaint else f"exit code {done.returncode}"
        raise UnavailableError(
            f"{ssh.host}: {name} ({agent_binary.wire_size(program)}) could not be written into {folder}"
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


# -- folders and scripts there ------------------------------------------------------------------------


def read_remote_folder(text: str | None) -> str | None:
    """The argument of `--remote-folder`: absolute, or from the home folder there, with or without `~/`.

    It must be a dedicated folder, because cleaning removes it.
    """
    if text is None:
        return None
    from_home = text.startswith("~/")
    meant = posixpath.normpath("./" + text.removeprefix("~/") if from_home else text)
    of_others = text.startswith("~") and not from_home
    if of_others or meant.split("/")[0] in (".", "..") or not meant.strip("/ "):
        raise UsageError(
            "--remote-folder takes a separate folder, from the root (/var/tmp/narrows) or from the home"
            f" folder there (~/narrows), not {text!r}"
        )
    return meant


#: Prints the SHA-256 of the file $f. (Scripts contain no single quotes, line ends, backslashes or exclamation
#: marks, which login shells understand differently.)
_HASH = (
    "{ if command -v sha256sum >/dev/null 2>&1; then sha256sum; elif command -v shasum >/dev/null 2>&1; then"
    " shasum -a 256; elif command -v openssl >/dev/null 2>&1; then openssl dgst -sha256 -r; else echo none;"
    " fi; }"
    ' <"$f" | cut -c 1-64'
)


#: Exit code of `private_script` if others may write.
EXIT_NOT_PRIVATE = 5


def private_script(folder: str, make: bool = True) -> str:
    """Prints the resolved path of a folder, if only root and the user may write into it and into all folders
    above it; otherwise the folder into which others may write, and the reason. With `make`, the folder is
    created.

    Files in such a folder belong to the user: nobody else can replace them between their verification and
    their start. A folder above may be world-writable if only owners may remove files in it (sticky, like
    /tmp).
    """
    place = quote(folder)
    begin = 'umask 077; mkdir -p "$d" || exit 3' if make else '[ -d "$d" ] || exit 0'
    return (
        f'd={place}; {begin}; d=$(cd -P "$d" && pwd -P) || exit 3; u=$(id -u); p=$d;'
        f' bad() {{ echo "$p"; echo "$1"; exit {EXIT_NOT_PRIVATE}; }};'
        ' while :; do q=$p; [ -n "$q" ] || q=/; l=$(ls -ldn "$q") || exit 3; set -f; set -- $l; m=$1; o=$3;'
        ' case "$o" in 0|"$u") ;; *) bad "belongs to user $o";; esac;'
        ' w=; case "$m" in ?????w*|????????w*) w=yes;; esac;'
        ' case "$w$m" in yes?????????[tT]*) [ "$p" = "$d" ] || w=;; esac;'
        ' [ -z "$w" ] || bad "is writable for others";'
        ' [ -n "$p" ] || break; p=${p%/*}; done; echo "$d"'
    )


def seek_script(folder: str, name: str) -> str:
    """Prints the hash of the copy of that name in a folder, or `absent`; only a file that belongs to root or
    the user, and that no other user may write, counts as a copy.
    """
    place = quote(f"{folder}/{name}")
    return (
        f'f={place}; set -f; set -- $(ls -ldn "$f" 2>/dev/null);'
        ' case "$1" in -????-??-*) case "$3" in 0|"$(id -u)") ;; *) f=/;; esac;; *) f=/;; esac;'
        f' if [ -f "$f" ]; then {_HASH}; else echo absent; fi'
    )


def put_script(folder: str, name: str, sha256: str) -> str:
    """Stores a program from standard input in a folder, if it arrives complete; prints its hash."""
    place = quote(folder)
    return (
        f'umask 077; d={place}; mkdir -p "$d" || exit 3; f="$d/.new.$$"; fail() {{ rm -f "$f"; exit "$1"; }};'
        f' cat >"$f" || fail 3; h=$({_HASH}); echo "$h"; [ "$h" = {sha256} ] || fail 4;'
        f' chmod 700 "$f" && mv -f "$f" "$d/{name}" || fail 3'
    )


#: Names of the folders of copies and of runs, as shell patterns: nothing else is removed, since the user may
#: have named a folder with other files.
_HEX = "[0-9a-f]"
COPIES, RUNS = _HEX * 64, _HEX * 16 + "-*"


def clean_script(folder: str, before: str = "") -> str:
    """Removes all copies, and leftovers of runs beside them; prints the number of copies.

    `before` acquires the rights that agents have there, since they own their output. Folders are removed if
    nothing else is in them.
    """
    place = quote(folder)
    return (
        f'd={place}; n=0; for a in "$d"/{COPIES}; do [ -d "$a" ] || continue;'
        f' [ -f "$a/narrows-agent" ] && n=$((n+1)); {before}rm -rf "$a"; done;'
        f' {before}rm -rf "$d"/runs/{RUNS}; echo "$n";'
        f' {before}rmdir "$d/runs" "$d" 2>/dev/null; rmdir "$(dirname "$d")" 2>/dev/null; true'
    )


def quote(path: str) -> str:
    """A path as one word of shell, in double quotes. Raises if it would need more quoting."""
    if any(letter in path for letter in "\"'\\$`!\n"):
        raise UnavailableError(
            f"the folder {path!r} has a name with quotes or the like; choose another one with --remote-folder"
        )
    return f'"{path}"'
