"""Programs that are copied to another host, the user as whom they run there, and the ports to examine."""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import processes
from narrows.agent import location
from narrows.agent.location import SUDO, USER, find_agent
from narrows.cli.all_commands import app
from narrows.cli.hosts import _ports
from narrows.documents.agent import HostFacts
from narrows.errors import DataError, UnavailableError, UsageError
from narrows.hosts import agent_binary, ssh, sysctls
from narrows.hosts.deploy import deploy, read_remote_folder
from narrows.hosts.ssh import Ssh
from shell_kit import SOMEBODY, folder_for_everybody, needs

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("own_cache")]


def elf(machine: int, *segments: int) -> bytes:
    """The beginning of a program: ELF header, and a table of segments of these kinds."""
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, len(segments), 0, 0, 0)
    return head + b"".join(struct.pack("<I", kind) + bytes(52) for kind in segments)


def test_the_agents_needs_are_read_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "agent"
    file.write_bytes(elf(183, 1, 2))
    program = agent_binary.examine(file)
    assert program.static and program.runs_on("aarch64") and not program.runs_on("x86_64")
    with pytest.raises(
        UnavailableError, match=r"there is x86_64, and .* is for aarch64; build narrows-agent"
    ):
        agent_binary.fitting(program, "x86_64", "there")
    file.write_bytes(elf(62, 3, 1))
    assert not agent_binary.examine(file).static and agent_binary.examine(file).size == 64 + 2 * 56
    own = agent_binary.examine(find_agent())
    assert own.runs_on(os.uname().machine)


@pytest.mark.parametrize(
    "content", [b"", b"#!/bin/sh\n" + b"x" * 100, b"\x7fELF", elf(62, 1, 1)[:100]], ids=str
)
def test_files_that_are_not_programs_are_not_sent(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "agent"
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"is not a Linux program|is damaged"):
        agent_binary.examine(file)


def test_a_program_of_another_kind_ends_the_command_before_anything_is_sent(tmp_path: Path) -> None:
    file = tmp_path / "agent"
    file.write_text("no program")
    command = ["check", "host.invalid", "--agent", str(file), "--ssh", "true"]
    done = processes.run([sys.executable, "-m", "narrows", "hosts", *command])
    assert done.returncode == 3 and "is not a Linux program" in done.stderr, done


@pytest.mark.parametrize("ports", ["", "0", "65536", "5-4", "1-100", "a", "5000-", "5000,,5001"])
def test_ports_that_make_no_sense_are_refused(ports: str) -> None:
    with pytest.raises(UsageError, match="--ports"):
        _ports(ports)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("~/x/y", "x/y"),
        ("~//x", "x"),
        ("~/~x", "~x"),
        ("x/y/", "x/y"),
        ("/x~/y", "/x~/y"),
        ("a~b", "a~b"),
        (None, None),
    ],
)
def test_a_folder_there_may_be_named_from_the_home_folder(written: str | None, meant: str | None) -> None:
    assert read_remote_folder(written) == meant


@pytest.mark.parametrize("written", ["~other/x", "~other", "~", "~/", "", ".", "~/../x", "/"])
@pytest.mark.parametrize("command", ["check", "clean"])
def test_unreachable_remote_folders_are_refused(written: str, command: str) -> None:
    done = CliRunner().invoke(app, ["hosts", command, "nowhere", "--remote-folder", written])
    assert isinstance(done.exception, UsageError), done.output
    assert "not " + repr(written) in str(done.exception) and "~/narrows" in str(done.exception)


def test_ports_keep_their_order_and_come_once() -> None:
    assert _ports("443, 5000-5002,5001,80") == (443, 5000, 5001, 5002, 80)


@contextlib.contextmanager
def somebody(*programs: tuple[str, str]) -> Iterator[tuple[Ssh, Path]]:
    """A user without rights behind a program that acts like ssh, with these programs (name, text of a shell
    script) on the path; and the home folder."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    needs("setpriv")
    with folder_for_everybody() as folder:
        home, path = folder / "home", folder / "path"
        home.mkdir()
        path.mkdir()
        os.chown(home, SOMEBODY, SOMEBODY)
        ssh = folder / "ssh"
        ssh.write_text(
            '#!/bin/sh\n[ "$1" = -G ] && { echo hostname 127.0.0.1; exit; }\nfor last; do :; done\n'
            f"cd {home}; export HOME={home} PATH={path}:$PATH; unset XDG_CACHE_HOME\n"
            f'exec setpriv --reuid {SOMEBODY} --regid {SOMEBODY} --clear-groups sh -c "$last"\n'
        )
        ssh.chmod(0o755)
        for name, text in programs:
            (path / name).write_text(f"#!/bin/sh\n{text}\n")
            (path / name).chmod(0o755)
        with Ssh("somebody", [str(ssh)]) as connection:
            yield connection, home


def test_an_ordinary_user_is_served_through_a_user_namespace() -> None:
    with somebody(("sudo", "exit 1")) as (connection, home):
        deployment = deploy(connection)
        assert deployment.location.rights == USER
        assert Path(deployment.folder) == home / ".cache/narrows/agents"
        with (
            pytest.raises(UnavailableError, match="by root only"),
            sysctls.SysctlOverride(deployment.location),
        ):
            pytest.fail("settings are held without rights")
        facts = deployment.location.ask(HostFacts, "host")
        assert not facts.root
        if not facts.namespaces.ok:
            pytest.skip(f"no user namespaces here: {facts.namespaces.why}")
        assert facts.namespaces.how == "user namespace"


def test_sudo_without_a_password_is_used() -> None:
    """A sudo that records its arguments; it need not grant root to show that it is used."""
    with somebody(
        ("sudo", 'printf "%s\\n" "$*" >>$HOME/called; [ "$1" = -n ] || exit 1; shift; exec "$@"')
    ) as (
        connection,
        home,
    ):
        deployment = deploy(connection)
        assert deployment.location.rights == SUDO
        agent = f"{deployment.folder}/{deployment.program.sha256}/narrows-agent"
        assert (home / "called").read_text().splitlines() == ["-n true", f"-n {agent} version"]


def sleeper(folder: Path, name: str) -> Path:
    """A program that takes longer than the time limit."""
    program = folder / name
    program.write_text("#!/bin/sh\nexec sleep 2\n")
    program.chmod(0o755)
    return program


def test_an_ssh_without_readable_configuration_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh, "_CONFIGURATION_S", 0.2)
    program = sleeper(tmp_path, "ssh")
    with pytest.raises(UnavailableError, match=r"me@there has not answered for 0\.2 s; see whether this"):
        Ssh("me@there", [str(program)]).configuration()


def test_a_sudo_that_does_not_answer_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(location, "_SUDO_S", 0.2)
    monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)
    monkeypatch.setenv("PATH", f"{sleeper(tmp_path, 'sudo').parent}:{os.environ['PATH']}")

    def refuse(_: object) -> None:
        raise PermissionError

    # A sudo that has become root can't be killed by us.
    monkeypatch.setattr(subprocess.Popen, "kill", refuse)
    with pytest.raises(UnavailableError, match=r"sudo has not answered for 0\.2 s.*: sudo -n true"):
        location.with_best_rights()


@pytest.mark.parametrize(
    ("lack", "told"),
    [
        (("sha256sum", "shasum", "openssl"), "none of sha256sum, shasum and openssl"),
        (("uname",), "does not run commands"),
    ],
    ids=["hashes", "uname"],
)
def test_missing_programs_of_a_host_are_reported(lack: tuple[str, ...], told: str) -> None:
    """A host with the few required programs, except for some."""
    with somebody() as (connection, home):
        tools = home.parent / "path"
        needed = {
            "sh",
            "uname",
            "id",
            "cat",
            "cut",
            "ls",
            "mkdir",
            "chmod",
            "mv",
            "rm",
            "sha256sum",
            "setpriv",
        }
        for name in needed - set(lack):
            program = shutil.which(name)
            assert program is not None
            (tools / name).symlink_to(program)
        ssh = Path(connection._command[0])
        ssh.write_text(ssh.read_text().replace(":$PATH", ""))
        with pytest.raises(UnavailableError, match=told):
            deploy(connection)
