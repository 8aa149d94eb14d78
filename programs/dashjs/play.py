"""A player of dash.js in Chromium.

`play.py ADDRESS PORT FOLDER BUILT RULE` prints `ready`, and plays `film.mpd` from the HTTP server at
ADDRESS:PORT once it reads a line, until SIGTERM. BUILT is the folder of the build, RULE one of dynamic,
throughput and bola. Fetched segments, movement and stalls of the picture are in FOLDER/segments.ndjson,
with the time that is buffered twice a second.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, TextIO

from stop import Stop, until_stopped

from browser import Browser

PAGE = Path(__file__).with_name("page.html")
LIBRARY = "node_modules/dashjs/dist/modern/umd/dash.all.min.js"
#: Interval between samples of the player, in s.
INTERVAL = 0.5


class Log:
    """The log of a player."""

    def __init__(self, file: TextIO, offset_ns: int) -> None:
        self._file = file
        self._offset_ns = offset_ns

    def write(self, at_ms: float, what: dict[str, Any]) -> None:
        """Writes a line; times of the page become those of `CLOCK_MONOTONIC`."""
        if "asked_ms" in what:
            what = {**what, "asked_ns": self._at(what["asked_ms"])}
            del what["asked_ms"]
        self._file.write(json.dumps({**what, "at_ns": self._at(at_ms)}) + "\n")

    def take(self, taken: dict[str, Any]) -> None:
        """Writes the events that the page has noted."""
        for at_ms, what in taken["noted"]:
            self.write(at_ms, what)
            if "failed" in what:
                # Not the end: if the server was stopped first, more is still to come.
                print(what["failed"], file=sys.stderr)
        self.write(taken["at"], {"buffer_ns": int(taken["buffer_s"] * 1e9)})

    def _at(self, page_ms: float) -> int:
        return int(page_ms * 1e6) + self._offset_ns


def play(address: str, port: str, folder: str, built: str, rule: str) -> None:
    """Plays until a stop is requested."""
    place = Path(folder)
    with Browser(PAGE, place / "profile") as browser, (place / "segments.ndjson").open("w") as file:
        browser.evaluate(f"load({json.dumps((Path(built) / LIBRARY).as_uri())})")
        log = Log(file, browser.clock_offset_ns())
        print("ready", flush=True)
        with Stop.interrupts():
            sys.stdin.readline()
        browser.evaluate(f"play('http://{address}:{port}/film.mpd', {json.dumps(rule)})")
        while not Stop.wanted.wait(INTERVAL):
            log.take(browser.evaluate("take()"))
        last = browser.evaluate("take()", 2.0)
        log.take(last)
        log.write(last["at"], {"state": "stopped"})


def main(words: list[str]) -> int:
    """Plays; returns the exit code."""
    if len(words) != 5:
        print(__doc__, file=sys.stderr)
        return 2
    return until_stopped(play, *words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
