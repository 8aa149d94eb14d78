"""The location of agents on other hosts: only root and the user can replace one before it starts."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from narrows.hosts import agent_binary, deploy

STRANGER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give files to somebody else")


def _sh(script: str, given: bytes = b"") -> tuple[int, list[str]]:
    done = subprocess.run(["sh", "-c", script], capture_output=True, input=given, timeout=60, check=False)
    return done.returncode, done.stdout.decode().splitlines()


def _seek(folder: Path) -> str:
    return _sh(deploy.seek_script(str(folder), agent_binary.AGENT))[1][0]


def test_a_folder_of_ours_is_made_and_named(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real").mkdir()
    code, said = _sh(deploy.private_script(str(tmp_path / "link" / "a b" / "c")))
    assert (code, said) == (0, [str((tmp_path / "real" / "a b" / "c").resolve())])
    assert (tmp_path / "real" / "a b").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757, 0o1777])
def test_files_that_others_may_write_are_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "agents"
    folder.mkdir()
    folder.chmod(mode)
    code, said = _sh(deploy.private_script(str(folder)))
    assert (code, said) == (deploy.EXIT_NOT_PRIVATE, [str(folder), "is writable for others"])
    assert not agent_binary._is_private(folder)


def test_folders_above_must_be_sticky(tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir()
    for mode, fits in [(0o777, False), (0o770, False), (0o1777, True), (0o755, True)]:
        above.chmod(mode)
        code, said = _sh(deploy.private_script(str(above / "mine")))
        assert code == (0 if fits else deploy.EXIT_NOT_PRIVATE), said
        assert agent_binary._is_private(above / "mine") == fits
        if not fits:
            assert said == [str(above), "is writable for others"]


@as_root
def test_folders_of_other_users_are_refused(tmp_path: Path) -> None:
    """Their owner could replace the agent between its verification and its start, perhaps as root."""
    folder = tmp_path / "agents"
    folder.mkdir()
    os.chown(folder, STRANGER, STRANGER)
    for make in (True, False):
        code, said = _sh(deploy.private_script(str(folder), make))
        assert (code, said) == (deploy.EXIT_NOT_PRIVATE, [str(folder), f"belongs to user {STRANGER}"])
    code, said = _sh(deploy.private_script(str(folder / "deep" / "er")))
    assert (code, said) == (deploy.EXIT_NOT_PRIVATE, [str(folder), f"belongs to user {STRANGER}"])
    assert not agent_binary._is_private(folder)
    # Not even through our link, nor through their link to our files.
    (tmp_path / "link").symlink_to(folder)
    assert _sh(deploy.private_script(str(tmp_path / "link" / "x")))[0] == deploy.EXIT_NOT_PRIVATE
    (tmp_path / "ours").mkdir()
    (folder / "out").symlink_to(tmp_path / "ours")
    assert _sh(deploy.private_script(str(folder / "out")))[1] == [str(tmp_path / "ours")]


def test_nothing_is_made_to_clean(tmp_path: Path) -> None:
    assert _sh(deploy.private_script(str(tmp_path / "none"), make=False)) == (0, [])
    assert not (tmp_path / "none").exists()


def test_only_copies_of_ours_count(tmp_path: Path) -> None:
    content = b"an agent"
    right = hashlib.sha256(content).hexdigest()
    agent = tmp_path / agent_binary.AGENT
    assert _seek(tmp_path) == "absent"
    code, said = _sh(deploy.put_script(str(tmp_path), agent_binary.AGENT, right), content)
    assert (code, said) == (0, [right])
    assert _seek(tmp_path) == right
    for mode in (0o720, 0o702, 0o777):
        agent.chmod(mode)
        assert _seek(tmp_path) == "absent"
    agent.chmod(0o700)
    agent.rename(tmp_path / "other")
    agent.symlink_to(tmp_path / "other")
    assert _seek(tmp_path) == "absent"
    # Existing files are replaced, not written through.
    code, said = _sh(deploy.put_script(str(tmp_path), agent_binary.AGENT, right), content)
    assert (code, agent.is_symlink(), _seek(tmp_path)) == (0, False, right)


@as_root
def test_copies_of_other_users_do_not_count(tmp_path: Path) -> None:
    content = b"an agent"
    agent = tmp_path / agent_binary.AGENT
    agent.write_bytes(content)
    agent.chmod(0o755)
    assert _seek(tmp_path) == hashlib.sha256(content).hexdigest()
    os.chown(agent, STRANGER, STRANGER)
    assert _seek(tmp_path) == "absent"


@as_root
def test_kept_copies_of_others_are_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stripped agent is stored by the hash of the original, so only the folder proves that it is ours."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    original = agent_binary.examine(Path("/bin/sh").resolve())
    folder = tmp_path / "narrows" / "stripped" / original.path.name
    folder.mkdir(parents=True)
    (folder / original.sha256).write_bytes(Path("/bin/cat").resolve().read_bytes())
    os.chown(tmp_path / "narrows", STRANGER, STRANGER)
    assert agent_binary.strip_symbols(original) == original
