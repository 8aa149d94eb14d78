"""A campaign between two hosts of a user who is not root here, but may become root without a password."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hosts_kit as kit
import processes
import shell_kit
from hosts_kit import NAME, Hosts
from processes import eventually
from real_path_kit import Lab
from shell_kit import SOMEBODY

pytestmark = pytest.mark.system

SCENARIO = f"""\
schema: narrows/scenario/1
question: Does it work for those who are not root?
where: hosts
real_path: {{other: {NAME}, ports: 5001-5002, retries: 2}}
schemes: [reno]
duration: 2 s
runs: 2
"""
#: The commands that sudo allows without a password.
SUDO = """\
#!/bin/sh
[ "$1" = -n ] || exit 1
shift
exec {setpriv} --reuid 0 --regid 0 --clear-groups "$@"
"""
_RUN = ("setpriv", "--reuid", str(SOMEBODY), "--regid", str(SOMEBODY), "--clear-groups")


@contextlib.contextmanager
def lab_of_somebody() -> Iterator[Lab]:
    """A campaign of a user without rights, with a sudo on the path that grants root."""
    if shell_kit.refusal():
        pytest.skip(shell_kit.refusal())
    shell_kit.needs("setpriv")
    with shell_kit.folder_for_everybody() as folder, kit.hosts(folder) as pair:
        programs, campaign, home = folder / "path", folder / "campaign", folder / "home"
        for made in (programs, campaign, home):
            made.mkdir()
        # Excludes the process that holds the other host's folder: there an agent is started by root.
        for own in (home, campaign, folder / "user_key"):
            os.chown(own, SOMEBODY, SOMEBODY)
        sudo(programs)
        # ssh looks up the name of the user who runs it.
        users = folder / "passwd"
        users.write_text(
            f"{Path('/etc/passwd').read_text()}somebody:x:{SOMEBODY}:{SOMEBODY}::{home}:/bin/sh\n"
        )
        pair.here.do(f"mount --bind {users} /etc/passwd")
        words = (
            *("env", f"PATH={programs}:{os.environ['PATH']}", f"HOME={home}"),
            f"XDG_CACHE_HOME={home}/cache",
            *_RUN,
        )
        check(pair, words)
        yield Lab(pair, campaign, SCENARIO, before=words)


def sudo(programs: Path) -> None:
    """A sudo for the members of one group, whose only member is the user."""
    setpriv = programs / "root"
    shutil.copy(shutil.which("setpriv") or "", setpriv)
    os.chown(setpriv, 0, SOMEBODY)
    setpriv.chmod(0o4750)
    (programs / "sudo").write_text(SUDO.format(setpriv=setpriv))
    (programs / "sudo").chmod(0o755)


def check(pair: Hosts, words: tuple[str, ...]) -> None:
    """Skips the test if the user cannot become root, or if only root may run our Python."""
    tried = processes.run([*pair.here.enter, *words, "sudo", "-n", "id", "-u"])
    if tried.stdout.strip() != "0":
        pytest.skip(f"programs cannot give rights here: {tried.stderr.strip()[-200:]}")
    tried = processes.run([*pair.here.enter, *words, sys.executable, "-c", "import narrows._native"])
    if tried.returncode != 0:
        pytest.skip(f"other users cannot read this installation: {tried.stderr.strip()[-200:]}")


def foreign(folder: Path) -> list[str]:
    """The files in a folder that do not belong to the user."""
    return [str(path) for path in (folder, *folder.rglob("*")) if path.lstat().st_uid != SOMEBODY]


def hidden(lab: Lab) -> list[str]:
    """Folders of runs that have not ended."""
    return [path.name for path in (lab.out / "cells").glob(".*")]


@contextlib.contextmanager
def running(lab: Lab) -> Iterator[subprocess.Popen[str]]:
    """The campaign, with both agents of a cell at work."""
    quiet = subprocess.DEVNULL
    with processes.running(lab.start("--no-report", stdout=quiet, stderr=quiet)) as started:
        measures(lab)
        yield started


def measures(lab: Lab) -> None:
    eventually("a cell is run", lambda: bool(list(lab.out.glob("cells/.*.here*/logs/*"))), seconds=60)


@pytest.mark.timeout(300)
def test_files_written_by_root_do_not_block_the_user() -> None:
    with lab_of_somebody() as lab:
        with running(lab) as started:
            # A cell whose near agent was killed is tried again.
            for pid in lab.agents("side"):
                if pid in lab.agents_at("here"):
                    os.kill(pid, signal.SIGKILL)
            eventually("the cell has failed", lambda: "failures" in str(lab.campaign), seconds=60)
            measures(lab)
            # Ctrl-C leaves nothing that prevents the next session.
            started.send_signal(signal.SIGINT)
            processes.finish(started)
            assert started.returncode == 130
        assert not hidden(lab) and not foreign(lab.out)
        assert list((lab.out / "logs/reno-r1-here").iterdir()), "what was logged before the failure"
        with running(lab) as started:
            started.kill()
            started.wait()
            eventually("no agent runs any more", lambda: not lab.agents())
        # A later campaign removes its leftovers.
        assert foreign(lab.out / "cells")
        done = lab.run("--no-report")
        assert done.returncode in (0, 6), done.stderr
        assert lab.states() == ["finished"] * 2, done.stderr
        failures = [one for cell in lab.campaign["cells"] for one in cell.get("failures", [])]
        assert [one["kind"] for one in failures] == ["internal"], failures
        assert not hidden(lab) and not foreign(lab.out)
