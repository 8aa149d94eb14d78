"""Campaigns between two hosts: messages about ports in use and full disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from narrows.agent.cell import CellOutcome
from narrows.campaign import execute
from narrows.campaign.execute import Executor
from narrows.errors import NarrowsError, UnavailableError
from narrows.hosts.remote_host import rendezvous_of
from test_real_paths import FakePlane, Quiet, campaign, way, wishes

pytestmark = pytest.mark.usefixtures("fixed_registry")


@pytest.mark.parametrize(
    ("there", "here", "told"),
    [
        (True, True, "all of the UDP ports 443, 5201 are in use at there and this machine; is another"),
        (True, False, "443, 5201 are in use at there, and no datagram reaches this machine; is another"),
        (False, True, "are in use at this machine, and no datagram reaches there; is another campaign"),
        (False, False, "no datagram passes between here and there"),
    ],
)
def test_ports_in_use_are_not_called_blocked(there: bool, here: bool, told: str) -> None:
    found = way([], [])
    for one in found.ports:
        one.why_there = "address already in use" if there else None
        one.why_here = "Address already in use (os error 98)" if here else None
    with pytest.raises(UnavailableError, match=told):
        rendezvous_of(found, "there", wishes())


def test_a_listener_whose_ports_are_in_use_is_reported() -> None:
    found = way([], [443])
    for one in found.ports:
        one.why_there = "address already in use"
    with pytest.raises(UnavailableError, match=r"are in use at there, but the other way .*listener: auto"):
        rendezvous_of(found, "there", wishes(listener="there"))


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            "me@there: /var/cache/narrows/agents/runs/95ae0ba43cf9721e-cubic-r1-bf6f544b: No space left on"
            " device (os error 28); here: the other end has closed the tunnel",
            r"the disk of me@there is full \(/var/cache/narrows/agents\); make room there, .*--remote-folder",
        ),
        (
            "me@there: narrows-agent (9.5 MB) could not be written into /x (cat: No space left on device)",
            r"the disk of me@there is full .*could not be written into /x",
        ),
        (
            "here: /out/cells/.x: No space left on device (os error 28); me@there: ended",
            "the disk of .*/out is",
        ),
        (
            "me@there: the logs could not be fetched: [Errno 28] No space left on device",
            "the disk of .*/out is",
        ),
        (
            "/out/cells/.x/packets.parquet: No space left on device (os error 28)",
            "the disk of .*/out is full",
        ),
    ],
)
def test_the_disk_that_is_full_is_the_one_that_is_named(tmp_path: Path, message: str, told: str) -> None:
    made, cells = campaign(tmp_path)
    plane = FakePlane(tmp_path, 0, {"cubic-r1": [CellOutcome("failed", "io", message, 1)]})
    with pytest.raises(NarrowsError, match=told):
        Executor(made, plane, Quiet()).run(cells)


def test_a_full_local_disk_is_reported_even_if_the_other_is_full_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "_free_bytes", lambda _: 1000)
    made, cells = campaign(tmp_path)
    full = CellOutcome("failed", "io", "me@there: /x: No space left on device (os error 28)", 1)
    with pytest.raises(NarrowsError, match=r"the disk of .*/out is full"):
        Executor(made, FakePlane(tmp_path, 0, {"cubic-r1": [full]}), Quiet()).run(cells)
