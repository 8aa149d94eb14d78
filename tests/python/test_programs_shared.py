"""`listeners: one` in whole campaigns: one process and one host for the listening ends of all flows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from test_programs_run import BUSY, add, call, campaign, possible, run_of

pytestmark = pytest.mark.system
__all__ = ["possible"]

SERVER = """\
import socketserver, sys

class Sink(socketserver.BaseRequestHandler):
    def handle(self):
        while self.request.recv(65536):
            pass

class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

server = Server(("", int(sys.argv[1])), Sink)
print("serving", flush=True)
server.serve_forever()
"""
#: A client that reports how much it has sent.
CLIENT = """\
import signal, socket, sys

sent = 0

def stop(*_):
    print("sent", sent, flush=True)
    sys.exit(0)

signal.signal(signal.SIGTERM, stop)
peer = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while True:
    sent += peer.send(bytes(8192))
"""
MANIFEST = """\
schema: narrows/program/1
what: One server for all
data: connector
listeners: one
listener: {command: "python3 {here}/server.py {port}", ready: tcp}
connector: {command: "python3 {here}/client.py {address} {port}"}
reports:
  sent: {regex: "sent ([0-9]+)", unit: B, flows: sum}
"""
#: Two rates make two cells, each with a separate server; flows of other schemes run beside them.
CAMPAIGN = """\
matrix: {path.forward.0.rate: [8 Mbit/s, 16 Mbit/s]}
flows:
  - {scheme: "server:default"}
  - {scheme: "server:default", start: 300 ms}
  - {scheme: "linux:reno"}
duration: 3 s
"""


def test_one_listener_serves_the_flows_of_each_cell(tmp_path: Path) -> None:
    add(tmp_path, "server", MANIFEST)
    place = tmp_path / "config" / "narrows" / "programs"
    (place / "server.py").write_text(SERVER)
    (place / "client.py").write_text(CLIENT)
    code, document = campaign(tmp_path, CAMPAIGN)
    assert code in (0, 6), document
    assert len(document["cells"]) == 2
    for cell in document["cells"]:
        assert cell["state"] == "finished", cell
        run = run_of(tmp_path, cell["id"])
        blamed = [one for one in run["reasons"] if not one["code"].startswith((*BUSY, "endpoint_"))]
        assert not [one for one in blamed if one["severity"] != "note"], blamed
        names = [host["name"] for host in run["hosts"]]
        assert names[-3:] == ["flow-1-sender", "flow-1-receiver", "flow-2-sender"], names
        first, second = (flow["program"] for flow in run["flows"][:2])
        assert (first["listener_of"], second["listener_of"]) == (1, 1)
        assert first["listener"]["ready_ns"] > 0
        assert second["listener"] is None
        for program in (first, second):
            # Both connect to the port of the first flow, and are identified by their hosts.
            assert {one["receiver_port"] for one in program["traffic"]["conversations"]} == {20_001}
            assert program["traffic"]["stray"] == 0
            assert program["traffic"]["receiver"]["packets"] > 50
        logs = tmp_path / "out" / "cells" / cell["id"] / "logs"
        assert (logs / "flow-1-listener.out").exists()
        assert not (logs / "flow-2-listener.out").exists()
    assert call(tmp_path, "check", "out").returncode == 0
    rows = json.loads((tmp_path / "out" / "results.json").read_text())["rows"]
    for row in rows:
        if row["flow"] in (1, 2):
            received = row["metrics"]["throughput_bps"] * 3 / 8
            # The data of the flow itself, not of both.
            assert 0.3 * received < row["metrics"]["reported_sent"] < 3 * received + 5e6, row
