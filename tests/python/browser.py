"""A headless Chromium for tests, controlled over a pipe with the DevTools protocol; no package needed."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import processes

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PATIENCE_S = 60.0

_PLUMBING = """
import fcntl, os, sys
spare = [fcntl.fcntl(int(fd), fcntl.F_DUPFD_CLOEXEC, 10) for fd in sys.argv[1:3]]
os.dup2(spare[0], 3)
os.dup2(spare[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page in one browser, without a network; collects what the page says on its console."""

    def __init__(self, profile: Path) -> None:
        assert PROGRAM is not None, "no Chromium is installed (Debian package: chromium)"
        self.said: list[str] = []
        self.requests: list[str] = []
        self._count = 0
        self._rest = b""
        self._answers: dict[int, dict[str, Any]] = {}
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # The protocol uses descriptors 3 (in) and 4 (out); a small program puts the pipes there.
        plumbing = [sys.executable, "-c", _PLUMBING, str(to_read), str(to_write)]
        command = [
            PROGRAM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--force-device-scale-factor=1",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
        ]
        self._process = subprocess.Popen(
            [*plumbing, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(to_read, to_write),
        )
        os.close(to_read)
        os.close(to_write)
        self._session: str | None = None
        self._open_page()

    def _open_page(self) -> str:
        """Opens a page that shares no storage with others; returns its context."""
        self._session = None
        context: str = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.said, self.requests = [], []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return context

    @contextlib.contextmanager
    def new_page(self) -> Iterator[Browser]:
        """A page as in a browser that has just been started, which takes a second of a processor."""
        context = self._open_page()
        try:
            yield self
        finally:
            self._session = None
            self.call("Target.disposeBrowserContext", browserContextId=context)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            processes.end(self._process)
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Sends one command, and waits for its answer."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE_S
        while self._count not in self._answers:
            self._listen(end)
        answer = self._answers.pop(self._count)
        assert "error" not in answer, f"{method}: {answer['error']}"
        found: dict[str, Any] = answer["result"]
        return found

    def _listen(self, end: float) -> None:
        ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
        assert ready, "the browser does not answer"
        data = os.read(self._read, 1 << 20)
        assert data, "the browser is gone"
        *whole, self._rest = (self._rest + data).split(b"\0")
        for part in whole:
            message = json.loads(part)
            if "id" in message:
                self._answers[message["id"]] = message
            elif message.get("sessionId") == self._session:
                self._event(message["method"], message["params"])

    def _event(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.consoleAPICalled":
            self.said.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.said.append(str((details.get("exception") or {}).get("description") or details["text"]))
        elif method == "Log.entryAdded":
            self.said.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, file: Path, *, dark: bool = False, width: int = 1100, height: int = 1400) -> None:
        """Loads a file and waits until it is complete."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=file.as_uri())
        self.until("document.readyState === 'complete' && location.protocol === 'file:'")

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, script: str) -> None:
        """Waits until an expression is true."""
        end = time.monotonic() + PATIENCE_S
        while not self.run(script):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.05)

    def press(self, key: str) -> None:
        """Presses a key on the element that has the focus."""
        text: dict[str, Any] = {"text": key} if len(key) == 1 else {}
        if key == "Enter":  # Without the character a button is not pressed.
            text = {"text": "\r", "code": "Enter", "windowsVirtualKeyCode": 13}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def drag(self, start: tuple[float, float], end: tuple[float, float] | None = None) -> None:
        """Presses the mouse at one place of the window and releases it at another one, or clicks."""
        places = [start] if end is None else [start, ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2), end]

        def mouse(kind: str, place: tuple[float, float], buttons: int) -> None:
            more = {"button": "left", "buttons": buttons, "clickCount": 1, "pointerType": "mouse"}
            self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], **more)

        mouse("mouseMoved", start, 0)
        mouse("mousePressed", start, 1)
        for place in places[1:]:
            mouse("mouseMoved", place, 1)
        mouse("mouseReleased", places[-1], 0)

    def picture(self, target: Path) -> Path:
        """The whole page as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        answer = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        target.write_bytes(base64.b64decode(answer["data"]))
        return target

    def print(self, target: Path) -> Path:
        """The page in print."""
        target.write_bytes(base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"]))
        return target
