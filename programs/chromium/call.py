"""A video call of two Chromiums.

`call.py receive PORT FOLDER` waits for one call. `call.py send ADDRESS PORT FOLDER SETTINGS` prints `ready`,
makes a call when it reads a line, and shows the film of `camera.py`, until SIGTERM. SETTINGS are width,
height, frames per second, and start, minimum and maximum rate in bit/s, separated by commas. The offer and
the answer are exchanged over a TCP connection to PORT, which is then closed. Both ends write a line for each
frame to `FOLDER/frames.ndjson`, and the output of `getStats` to `FOLDER/stats.ndjson` each second.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from camera import shoot
from stop import Stop, until_stopped

from browser import Browser, BrowserError

PAGE = Path(__file__).with_name("page.html")
#: Interval between samples of the call, in s.
INTERVAL = 1.0
#: Time limit for the offer and the answer.
PATIENCE = 20.0


def main(words: list[str]) -> int:
    """Runs one end; returns the exit code."""
    roles: dict[tuple[str, int], Callable[..., None]] = {("receive", 3): receive, ("send", 5): send}
    role = roles.get((words[0] if words else "", len(words)))
    if role is None:
        print(__doc__, file=sys.stderr)
        return 2
    return until_stopped(role, *words[1:])


def receive(port: str, folder: str) -> None:
    """Waits for a call and takes it."""
    place = Path(folder)
    with Browser(PAGE, place / "profile") as browser, contextlib.ExitStack() as stack:
        with Stop.interrupts(), socket.create_server(("0.0.0.0", int(port))) as server:
            over, _ = server.accept()
            stack.enter_context(over)
        over.settimeout(PATIENCE)
        lines = over.makefile("rw", encoding="utf-8")
        with Stop.interrupts():
            theirs = _hear(lines)
        _say(lines, browser.evaluate(f"answer({json.dumps(theirs)})"))
        over.close()
        Call(browser, place, sends=False).watch()


def send(address: str, port: str, folder: str, settings: str) -> None:
    """Makes a call."""
    width, height, frame_rate, start, least, most = (float(word) for word in settings.split(","))
    place = Path(folder)
    film = place / "film.y4m"
    try:
        shoot(film, int(width), int(height), frame_rate)
        camera = f"--use-file-for-fake-video-capture={film}"
        with Browser(PAGE, place / "profile", (camera,)) as browser:
            print("ready", flush=True)
            with Stop.interrupts():
                sys.stdin.readline()
                over = socket.create_connection((address, int(port)), timeout=PATIENCE)
            with over:
                lines = over.makefile("rw", encoding="utf-8")
                _say(lines, browser.evaluate(f"offer({width:.0f}, {height:.0f}, {frame_rate:g}, {most:.0f})"))
                with Stop.interrupts():
                    answer = with_rates(_hear(lines), start, least, most)
            browser.evaluate(f"accept({json.dumps(answer)})")
            Call(browser, place, sends=True).watch()
    finally:
        film.unlink(missing_ok=True)


def _say(lines: TextIO, description: str) -> None:
    lines.write(json.dumps(description) + "\n")
    lines.flush()


def _hear(lines: TextIO) -> str:
    line = lines.readline()
    if not line:
        raise BrowserError("the other end has ended")
    return str(json.loads(line))


def with_rates(description: str, start: float, least: float, most: float) -> str:
    """An answer with rates in bit/s for VP8, as Chromium reads them."""
    lines = description.splitlines()
    vp8 = next(line for line in lines if line.startswith("a=rtpmap:") and " VP8/" in line)
    number = vp8.removeprefix("a=rtpmap:").split()[0]
    named = zip(("start", "min", "max"), (start, least, most), strict=True)
    rates = ";".join(f"x-google-{name}-bitrate={rate / 1000:.0f}" for name, rate in named)
    lines.insert(lines.index(vp8) + 1, f"a=fmtp:{number} {rates}")
    return "\r\n".join(lines) + "\r\n"


class Call:
    """An established call, and its log."""

    def __init__(self, browser: Browser, folder: Path, *, sends: bool) -> None:
        self._browser = browser
        self._sends = sends
        self._files = [
            (folder / name).open("w", encoding="utf-8") for name in ("frames.ndjson", "stats.ndjson")
        ]
        self._offset_ns = browser.clock_offset_ns()

    def watch(self) -> None:
        """Writes until a stop is requested; then nothing more is sent."""
        while not Stop.wanted.wait(INTERVAL):
            self._write(self._browser.evaluate("take(false)"))
        self._write(self._browser.evaluate("take(true)", 2.0))
        for file in self._files:
            file.close()

    def _write(self, taken: dict[str, Any]) -> None:
        frames, stats = self._files
        for stamp, at_ms, size, key in taken["frames"]:
            line = {"frame": stamp, "at_ns": self._at(at_ms)}
            if self._sends:
                line |= {"bytes": size, "key": key}
            frames.write(json.dumps(line) + "\n")
        at_ns = self._at(taken["at"])
        wanted = "outbound-rtp" if self._sends else "inbound-rtp"
        rtp: dict[str, Any] = next((one for one in taken["stats"] if one["type"] == wanted), {})
        pairs = [one for one in taken["stats"] if one["type"] == "candidate-pair" and one.get("nominated")]
        available = pairs[0].get("availableOutgoingBitrate") if pairs else None
        target = rtp.get("targetBitrate")
        if target is not None:
            frames.write(json.dumps({"target_bps": target, "at_ns": at_ns}) + "\n")
        stats.write(json.dumps({"at_ns": at_ns, "available_bps": available, **rtp}) + "\n")

    def _at(self, page_ms: float) -> int:
        return int(page_ms * 1e6) + self._offset_ns


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
