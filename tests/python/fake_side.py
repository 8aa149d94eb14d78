#!/usr/bin/env python3
"""A stand-in for `narrows-agent side` that speaks its protocol and fails on demand.

$FAKE_SIDE is its behaviour: "well", "error" (after its plan), "late error" (a second later), "dies", "mute"
(only reads commands), "silent end" (ends without `done`), "babbles" (a line without end), "raves"
(nonsensical events). It writes the commands that it receives to the file $FAKE_SIDE_LOG.
"""

import json
import os
import sys
import time
from pathlib import Path


def say(**event: object) -> None:
    print(json.dumps(event), flush=True)


def main() -> int:
    how = os.environ.get("FAKE_SIDE", "well")
    log = Path(os.environ["FAKE_SIDE_LOG"])
    assert sys.argv[1:] == ["side", "--plan", "-"], sys.argv
    plan = json.loads(sys.stdin.readline())
    told = [plan]
    # The log shows a received command before the side ends.
    log.write_text(json.dumps(told))
    print("a complaint", file=sys.stderr)
    if how.endswith("error"):
        time.sleep(1.0 if how == "late error" else 0)
        say(event="error", kind="unavailable", message=f"{how} of host {plan['host']}")
        return 4
    if how == "dies":
        os.kill(os.getpid(), 9)
    if how == "silent end":
        return 0
    if how == "babbles":
        print("A" * (2 << 20), end="", flush=True)
    if how == "raves":
        print("[" * 100_000, flush=True)
        say(event={"a": 1})
        say(event="error", kind=["unavailable"], message="\x1b[2J")
        return 1
    if how != "mute":
        say(event="ready", address="0.0.0.0:1", inner_mtu=1444, inside="10.77.0.1")
        print("no JSON", flush=True)
        say(event="open", peer=None)
        say(event="prepared")
    for line in sys.stdin:
        order = json.loads(line)
        told.append(order)
        if order["order"] == "start":
            if "in_ns" in order:
                say(event="starting", at_ns=12345)
            for step in range(3):
                say(event="progress", time_ns=step, of_ns=2)
            Path(plan["folder"]).mkdir()
            say(event="done")
    # Its input has ended.
    log.write_text(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
