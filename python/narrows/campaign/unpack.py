"""Unpacks the stream of `narrows-agent pack`, and gives up when the stream stalls."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

from narrows.agent.process import kill

#: Fetching is aborted after this many seconds of silence.
_SILENCE_S = 60.0


class Watch:
    """Kills a program that is silent for too long, or no longer needed."""

    def __init__(self, process: subprocess.Popen[bytes], unwanted: Callable[[], bool]) -> None:
        self._process = process
        self._unwanted = unwanted
        self._heard = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True, name="watch of a transfer")
        self._thread.start()

    def beat(self) -> None:
        """Records a sign of life."""
        self._heard = time.monotonic()

    def end(self) -> None:
        """Records that the program has ended."""
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.2):
            if self._unwanted() or time.monotonic() - self._heard > _SILENCE_S:
                with contextlib.suppress(OSError):
                    self._process.kill()
                return


@contextlib.contextmanager
def watch_program(process: subprocess.Popen[bytes], unwanted: Callable[[], bool]) -> Iterator[Watch]:
    """Watches a program inside the context."""
    watch = Watch(process, unwanted)
    try:
        yield watch
    finally:
        watch.end()


class _Stream:
    """The output of a program, for `tarfile`; each read is a sign of life."""

    def __init__(self, stream: IO[bytes], beat: Callable[[], None]) -> None:
        self._stream = stream
        self._beat = beat

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        data = self._stream.read(size)
        self._beat()
        return data


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    """Extracts only plain files and folders below the target: the other host is not trusted."""
    way = PurePosixPath(member.name)
    path = target / way
    if way.is_absolute() or ".." in way.parts or not (member.isdir() or member.isreg()):
        raise tarfile.TarError(f"{member.name!r} is not a plain file or folder")
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    content = archive.extractfile(member)
    assert content is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        shutil.copyfileobj(content, file, 1 << 18)


def unpack(process: subprocess.Popen[bytes], target: Path, beat: Callable[[], None]) -> tuple[int, str]:
    """Unpacks the output of a program; returns its exit code and the reason of a failure."""
    assert process.stdin and process.stdout and process.stderr
    wrong = ""
    try:
        stream = cast(IO[bytes], _Stream(process.stdout, beat))
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                _extract(archive, member, target)
        process.stdout.read()
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        wrong = f"{error}"
        kill(process)
        # It then ends even if we may not kill it.
        process.stdout.close()
    complaint = process.stderr.read().decode(errors="replace").strip().splitlines()
    code = process.wait()
    if code == 0 and not wrong:
        return 0, ""
    return code or 1, (complaint[-1] if complaint else wrong or f"exit code {code}")
