"""One Chromium without windows, driven over its debugging pipe (Chrome DevTools Protocol)."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

#: Programs that are Chromium, the first of which is taken.
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless",
    "--remote-debugging-pipe",
    # Only the page of this folder is opened, and root has no other choice.
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-extensions",
    "--mute-audio",
    # Otherwise invisible pages are slowed down.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--autoplay-policy=no-user-gesture-required",
    "--use-fake-ui-for-media-stream",
    "--use-fake-device-for-media-stream",
    # Addresses instead of names that only multicast DNS knows.
    "--disable-features=WebRtcHideLocalIpsWithMdns,MediaRouter,OptimizationHints",
)


class BrowserError(Exception):
    """Why a call is impossible, as a sentence."""


def find() -> str:
    """The path of Chromium; raises `BrowserError`."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise BrowserError("Chromium is not installed (Debian's package chromium)")
    return found


class Browser:
    """A Chromium with one page."""

    def __init__(self, page: Path, profile: Path, options: tuple[str, ...] = ()) -> None:
        """Starts it; `profile` is a folder that is removed at the end. Raises `BrowserError`."""
        self._profile = profile
        self._number = 0
        self._read = b""
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()
        self._process = subprocess.Popen(
            [find(), *OPTIONS, *options, f"--user-data-dir={profile}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, close_fds=False,
            preexec_fn=lambda: _place(to_read, from_write),  # noqa: PLW1509 - this process has one thread
        )  # fmt: skip
        os.close(to_read)
        os.close(from_write)
        self._in, self._out = from_read, to_write
        self._session: str | None = None
        try:
            target = self._ask("Target.createTarget", {"url": page.resolve().as_uri()})["targetId"]
            attached = self._ask("Target.attachToTarget", {"targetId": target, "flatten": True})
            self._session = attached["sessionId"]
            self._until_loaded()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def evaluate(self, expression: str, limit: float = 10.0) -> Any:
        """The awaited value of an expression of the page. Raises `BrowserError`."""
        wanted = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        found = self._ask("Runtime.evaluate", wanted, self._session, limit)
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            text = details.get("exception", {}).get("description") or details["text"]
            raise BrowserError(f"the page failed: {text.splitlines()[0]}")
        return found["result"].get("value")

    def clock_offset_ns(self) -> int:
        """`CLOCK_MONOTONIC` minus the page's clock in ns, from the fastest of several readings."""
        found: list[tuple[int, int]] = []
        for _ in range(20):
            before = time.monotonic_ns()
            page_ns: int = round(self.evaluate("clock()") * 1e6)
            after = time.monotonic_ns()
            found.append((after - before, (before + after) // 2 - page_ns))
        return min(found)[1]

    def close(self) -> None:
        """Ends it, with all its processes."""
        with contextlib.suppress(BrowserError):
            self._ask("Browser.close", {}, limit=1.0)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._profile, ignore_errors=True)

    def _until_loaded(self) -> None:
        limit = time.monotonic() + 10
        while not self.evaluate("typeof take == 'function' && document.readyState == 'complete'"):
            if time.monotonic() > limit:
                raise BrowserError("the page was not loaded")
            time.sleep(0.02)

    def _ask(
        self, method: str, params: dict[str, Any], session: str | None = None, limit: float = 20.0
    ) -> dict[str, Any]:
        """Chromium's answer within `limit` seconds; other messages are ignored."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        try:
            os.write(self._out, json.dumps(message).encode() + b"\0")
            end = time.monotonic() + limit
            while True:
                answer = self._next(end)
                if answer.get("id") == self._number:
                    break
        except OSError:
            raise BrowserError("Chromium has ended") from None
        if "error" in answer:
            raise BrowserError(f"Chromium refused {method}: {answer['error'].get('message')}")
        found: dict[str, Any] = answer["result"]
        return found

    def _next(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._read:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise BrowserError("Chromium does not answer")
            more = os.read(self._in, 1 << 20)
            if not more:
                raise BrowserError("Chromium has ended")
            self._read += more
        first, _, self._read = self._read.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        return message


def _place(to_read: int, from_write: int) -> None:
    """Moves the pipes to Chromium's descriptors: it reads from 3 and writes to 4."""
    # Moved away first: they may be 3 and 4 themselves.
    low = [os.dup2(fd, spare) for fd, spare in ((to_read, 60), (from_write, 61))]
    for fd, place in zip(low, (3, 4), strict=True):
        os.dup2(fd, place)
    os.closerange(5, 64)
