"""Hosts' information about their clocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from narrows.agent.location import USER, Location, find_agent
from narrows.documents.agent import Clock, OscillatorOffset
from narrows.documents.data import from_data, to_data
from narrows.hosts import clocks

#: A report of `chronyc -c tracking`: 40 us fast, with an error of at most 40 us + 300 us + 1 ms / 2.
_TRACKING = (
    "C0000207,192.0.2.7,2,1795256100.5,-0.000040000,0.000001,0.000002,21.500,0.001,0.020,0.001000000,"
    "0.000300000,64.2,Normal"
)


def place(folder: Path, **programs: str) -> Location:
    """The agent with only these programs in its path."""
    for name, script in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    return Location("near", ["/usr/bin/env", f"PATH={folder}", str(find_agent())], USER)


def read(place: Location) -> Clock:
    """The current state of the clock."""
    return place.ask(Clock, "clock")


def test_the_keeper_of_a_clock_is_found_and_named(tmp_path: Path) -> None:
    found = read(place(tmp_path, chronyc=f'[ "$*" = "-c -n tracking" ] && echo "{_TRACKING}"'))
    assert found.format == "narrows/clock/1"
    assert found.keeper and (found.keeper.program, found.keeper.offset_ns) == ("chrony", 40_000)
    assert found.synchronized and found.bound_ns == 840_000
    assert found.keeper_in_words == "synchronized by chrony from 192.0.2.7, stratum 2"


def test_chrony_without_a_source_keeps_nothing(tmp_path: Path) -> None:
    line = "7F7F0101,,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised"
    found = read(place(tmp_path, chronyc=f"echo '{line}'"))
    assert found.keeper and found.keeper.bound_ns is None
    if not found.synchronized:  # Another program may have set the kernel's values.
        assert found.keeper_in_words == "not synchronized (chrony runs and has no source)"


def test_timesyncd_is_asked_where_chrony_does_not_answer(tmp_path: Path) -> None:
    found = read(
        place(
            tmp_path,
            chronyc="echo '506 Cannot talk to daemon'; exit 1",
            timedatectl="echo ServerName=ntp.example.net; echo 'NTPMessage={ Leap=0, Stratum=3 }'",
        )
    )
    assert to_data(found.keeper) == {
        "program": "systemd-timesyncd",
        "reference": "ntp.example.net",
        "stratum": 3,
    }


def test_programs_that_hang_do_not_stop_the_agent(tmp_path: Path) -> None:
    found = read(place(tmp_path, chronyc="exec /bin/sleep 1000"))
    assert found.keeper is None and found.raw_ns > 0


def kept(**changes: int | None) -> Clock:
    clock = {"real_ns": 10**18, "raw_ns": 5 * 10**9, "bound_ns": 1_000, "correction_ppb": 0}
    return from_data({**clock, "source": "tsc", "synchronized": True, "keeper": None, **changes}, Clock)


def test_kept_clocks_tell_how_their_oscillators_relate() -> None:
    # Theirs has counted 2 s more, was read 1 s later, and runs 30 ppm slow where ours runs 20 fast.
    ours = kept(correction_ppb=-20_000)
    theirs = kept(real_ns=10**18 + 10**9, raw_ns=8 * 10**9, bound_ns=500, correction_ppb=30_000)
    expected = OscillatorOffset(offset_ns=2 * 10**9, bound_ns=1_500, drift_ppb=-50_000)
    assert clocks.by_ntp(ours, theirs) == expected
    back = clocks.by_ntp(theirs, ours)
    assert back is not None and back.offset_ns == -2 * 10**9


@pytest.mark.parametrize("missing", ["bound_ns", "correction_ppb"])
def test_undisciplined_clocks_have_no_known_relation(missing: str) -> None:
    assert clocks.by_ntp(kept(), kept(**{missing: None})) is None
    assert clocks.by_ntp(kept(**{missing: None}), kept()) is None


def test_both_clocks_of_one_machine_agree(tmp_path: Path) -> None:
    tracking = f"echo '{_TRACKING}'"
    here = place(tmp_path, chronyc=tracking)
    both = {name: read(here) for name in ("here", "there")}
    assert both["here"].raw_ns < both["there"].raw_ns
    by_ntp = clocks.by_ntp(both["here"], both["there"])
    if by_ntp is None:
        pytest.skip("the kernel does not tell how it corrects the clock")
    # Within the maximum correction of a clock, 10 %, during the moment between both readings.
    passed = both["there"].raw_ns - both["here"].raw_ns
    assert abs(by_ntp.offset_ns) <= passed / 10 + 10_000
    assert (by_ntp.bound_ns, by_ntp.drift_ppb) == (1_680_000, 0)
