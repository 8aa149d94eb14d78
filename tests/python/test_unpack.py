"""Folders that are fetched from another host: complete or refused, and in their place whatever is sent."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from narrows.campaign.unpack import unpack


def archive(*members: tuple[str, bytes, str]) -> bytes:
    """A tar file: name, content, and target of a link."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, content, target in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if target:
                info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info, io.BytesIO(content))
    return made.getvalue()


def unpacked(content: bytes, target: Path, code: int = 0) -> tuple[int, str]:
    file = target.with_suffix(".tar")
    file.write_bytes(content)
    target.mkdir()
    process = subprocess.Popen(
        ["sh", "-c", f"cat {file}; echo trouble >&2; exit {code}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        return unpack(process, target, lambda: None)


def test_a_fetched_folder_is_complete_or_refused(tmp_path: Path) -> None:
    good = archive(("logs/flow-1.log", b"hello", ""), ("side.json", b"{}", ""))
    assert unpacked(good, tmp_path / "good") == (0, "")
    assert (tmp_path / "good/logs/flow-1.log").read_bytes() == b"hello"
    assert unpacked(good, tmp_path / "failed", code=3) == (3, "trouble")
    assert unpacked(good[:700], tmp_path / "short")[0] != 0
    assert unpacked(b"", tmp_path / "nothing")[0] != 0


def test_output_that_is_not_an_archive_is_reported_also_for_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(subprocess.Popen, "kill", refuse)
    pipe = subprocess.PIPE
    with subprocess.Popen(["yes"], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        code, why = unpack(process, tmp_path, lambda: None)
    assert code != 0 and why


def test_fetching_needs_no_newer_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(tarfile, "data_filter")
    monkeypatch.delattr(tarfile.TarFile, "extractall")
    good = archive(("logs/flow-1.log", b"hello", ""))
    assert unpacked(good, tmp_path / "good") == (0, "")
    code, _ = unpacked(archive(("link", b"", "/etc/passwd")), tmp_path / "bad")
    assert code != 0 and not list((tmp_path / "bad").iterdir())


@pytest.mark.parametrize(
    "member", [("../outside", b"x", ""), ("/tmp/outside", b"x", ""), ("link", b"", "/etc/passwd")], ids=str
)
def test_files_sent_by_another_host_stay_in_their_folder(
    tmp_path: Path, member: tuple[str, bytes, str]
) -> None:
    code, _ = unpacked(archive(member), tmp_path / "in")
    found = [path for path in tmp_path.rglob("*") if path.name in ("outside", "link")]
    assert code != 0 or all(path.is_relative_to(tmp_path / "in") and not path.is_symlink() for path in found)
    assert not (tmp_path / "outside").exists()
