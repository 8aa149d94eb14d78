"""Support for tests of other hosts: three network namespaces in a row, and an sshd in the last one.

    here 10.77.1.1 ---- router ---- 10.77.2.1 there

Both outer ones share files and users with the machine, except /run/narrows, where agents keep system-wide
state, and except its network. They have no names, and vanish with the processes that hold them, which end
with this one.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import processes
from narrows.agent.location import ROOT, Location, find_agent
from narrows.hosts.ssh import Ssh
from processes import eventually
from shell_kit import needs

HERE, THERE = "10.77.1.1", "10.77.2.1"
HERE_6, THERE_6 = "fd77:1::1", "fd77:2::1"
#: Its name in the ssh configuration.
NAME = "there"
#: The same host, reached through itself as a jump host.
BEHIND = "behind"
SSHD = shutil.which("sshd") or "/usr/sbin/sshd"


@dataclass
class Namespace:
    """Namespaces for network and mounts, held by a process that ends with its standard input."""

    holder: subprocess.Popen[str]

    @property
    def enter(self) -> list[str]:
        """The beginning of a command that runs in it, in the root folder."""
        return ["nsenter", f"--net={self.path}", f"--mount=/proc/{self.holder.pid}/ns/mnt", "--"]

    @property
    def path(self) -> str:
        return f"/proc/{self.holder.pid}/ns/net"

    def do(self, *commands: str) -> None:
        """Runs lines of shell in it; each must succeed."""
        script = "\n".join(("set -e", *commands))
        done = processes.run([*self.enter, "sh", "-c", script])
        assert done.returncode == 0, (script, done.stderr)


@contextlib.contextmanager
def namespace() -> Iterator[Namespace]:
    files = "mkdir -p /run/narrows && mount -t tmpfs narrows /run/narrows"
    holder = subprocess.Popen(
        ["unshare", "--net", "--mount", "sh", "-c", f"{files} && echo ready && exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with processes.running(holder):
        assert holder.stdout and holder.stdout.readline() == "ready\n"
        made = Namespace(holder)
        made.do("ip link set lo up")
        yield made


@dataclass
class Hosts:
    """Both hosts and the network between them."""

    here: Namespace
    router: Namespace
    there: Namespace
    folder: Path
    agent: Path
    #: Rules of the router's firewall, to be removed.
    rules: list[str] = field(default_factory=list)

    def near(self, *before: str) -> Location:
        """The near end as a location, without ssh; `before` precedes the agent, such as `env NAME=VALUE`."""
        return Location("near", [*self.here.enter, *before, str(self.agent)], ROOT)

    def far(self, *before: str) -> Location:
        return Location("far", [*self.there.enter, *before, str(self.agent)], ROOT)

    # -- ssh ---------------------------------------------------------------------------------------

    @property
    def configuration(self) -> Path:
        return self.folder / "ssh_config"

    def ssh_words(self, *options: str) -> list[str]:
        """The ssh program in the near namespace."""
        return [*self.here.enter, "ssh", "-F", str(self.configuration), *options]

    def ssh(self, *options: str, name: str = NAME) -> Ssh:
        return Ssh(name, self.ssh_words(*options))

    @property
    def remote_folder(self) -> Path:
        return self.folder / "remote" / "agents"

    def words(
        self,
        *words: str,
        command: str = "hosts",
        before: tuple[str, ...] = (),
        program: tuple[str, ...] = (sys.executable, "-m", "narrows"),
    ) -> list[str]:
        """The command line in the near namespace, optionally preceded by another program."""
        return [
            *(*self.here.enter, *before, *program, command, *words),
            *("--remote-folder", str(self.remote_folder), "--ssh", f"ssh -F {self.configuration}"),
        ]

    def environment(self) -> dict[str, str]:
        """Nothing is written outside our folder."""
        return {**os.environ, "TMPDIR": str(self.folder), "XDG_RUNTIME_DIR": str(self.folder)}

    def narrows(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs the command line in the near namespace to its end."""
        return processes.run(self.words(*words), env=self.environment())

    # -- the firewall ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def blocked(self, *rules: str) -> Iterator[None]:
        """Makes the router silently drop packets that match a rule."""
        for rule in rules:
            self.router.do(f"ip rule add {rule} blackhole")
        try:
            yield
        finally:
            for rule in rules:
                self.router.do(f"ip rule del {rule} blackhole")

    def to_there(self, port: int) -> str:
        return f"iif near ipproto udp dport {port}"

    def to_here(self, port: int) -> str:
        return f"iif far ipproto udp dport {port}"


@contextlib.contextmanager
def hosts(folder: Path) -> Iterator[Hosts]:
    """Both hosts with an sshd there."""
    if os.geteuid() != 0:
        pytest.skip("only root can build namespaces with an sshd in them")
    needs("ip", "nsenter", "unshare", "ssh", "ssh-keygen")
    if not os.access(SSHD, os.X_OK):
        pytest.skip("no sshd is installed")
    with namespace() as here, namespace() as router, namespace() as there:
        for end, name, number in ((here, "near", 1), (there, "far", 2)):
            end.do(
                f"ip link add eth0 type veth peer name {name} netns {router.holder.pid}",
                # No automatic addresses, which would appear some seconds later.
                "ip link set eth0 addrgenmode none",
                f"ip address add 10.77.{number}.1/24 dev eth0",
                f"ip address add fd77:{number}::1/64 dev eth0 nodad",
                "ip link set eth0 up",
            )
            router.do(
                f"ip address add 10.77.{number}.2/24 dev {name}",
                f"ip address add fd77:{number}::2/64 dev {name} nodad",
                f"ip link set {name} up",
            )
            end.do(
                f"ip route add default via 10.77.{number}.2",
                f"ip -6 route add default via fd77:{number}::2",
            )
        router.do(
            "echo 1 >/proc/sys/net/ipv4/ip_forward",
            "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding",
        )
        made = Hosts(here, router, there, folder, find_agent())
        _keys(made)
        _login(made)
        with sshd(made, folder / "host_key"):
            yield made


def _login(made: Hosts) -> None:
    """Logs in with an empty home there, whose start file prints a greeting: the real user's start files may
    do anything, such as wait for a lock that a killed test has left behind."""
    home = made.folder / "far" / "home"
    home.mkdir(parents=True)
    (home / ".bashrc").write_text("printf 'welcome to narrows-begin '\n")
    user = getpass.getuser()
    known = Path("/etc/passwd").read_text()
    accounts = home.with_name("passwd")
    accounts.write_text(
        re.sub(rf"^({user}:.*):[^:]*:[^:]*$", rf"\1:{home}:/bin/bash", known, flags=re.MULTILINE)
    )
    made.there.do(f"mount --bind {accounts} /etc/passwd")


def _keys(made: Hosts) -> None:
    for name in ("host_key", "other_host_key", "user_key", "other_user_key"):
        file = made.folder / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file], check=True)
    shutil.copy(made.folder / "user_key.pub", made.folder / "authorized_keys")
    key = (made.folder / "host_key.pub").read_text()
    (made.folder / "known_hosts").write_text(f"{THERE} {key}")
    # A configuration that ignores host keys.
    made.configuration.write_text(
        f"""Host {BEHIND}
    ProxyJump {NAME}

Host {NAME} {BEHIND}
    HostName {THERE}
    User {getpass.getuser()}
    IdentityFile {made.folder}/user_key
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile {made.folder}/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking no
    RemoteCommand echo not this
    LocalForward 9999 127.0.0.1:9
"""
    )


@contextlib.contextmanager
def sshd(made: Hosts, host_key: Path, port: int = 22) -> Iterator[None]:
    """An sshd in the far namespace."""
    Path("/run/sshd").mkdir(exist_ok=True)
    file = made.folder / f"sshd_config_{port}"
    file.write_text(
        f"""Port {port}
ListenAddress {THERE}
HostKey {host_key}
AuthorizedKeysFile {made.folder}/authorized_keys
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
"""
    )
    with (made.folder / f"sshd_{port}.log").open("w") as log:
        server = subprocess.Popen(
            [*made.there.enter, SSHD, "-D", "-e", "-f", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            text=True,
        )
        with processes.running(server):
            probe = [*made.here.enter, sys.executable, "-c", _CONNECT, THERE, str(port)]
            eventually("sshd listens", lambda: processes.run(probe).returncode == 0)
            yield


_CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).close()"
