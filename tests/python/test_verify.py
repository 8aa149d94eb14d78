"""Verification: laws against known results, the comparison against recorded numbers, verdicts."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from narrows.agent.cell import CellOutcome
from narrows.documents.campaign import CellEntry
from narrows.scenario import cells_of, loads, registry
from validation.campaign import cell_of
from validation.schemes import emulate, fluid, grid, pairs, verdict
from validation.schemes.check import Finding
from validation.schemes.compare import LOOSE, STRICT, Measured, compare
from validation.schemes.grid import GridPath
from validation.schemes.laws.aimd import Aimd, Counted, Scalable
from validation.schemes.laws.cubic import Cubic
from validation.schemes.paths import SimulatedPath, metrics_of
from validation.schemes.registry import all_checks
from validation.schemes.vectors import unit_tests
from verify_kit import simulated

ROOT = Path(__file__).resolve().parent.parent.parent


# -- laws --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("increase", "decrease"), [(1.0, 0.5), (1.0, 0.25), (10.0, 0.125), (0.3, 0.5)])
def test_aimd_has_the_mean_of_its_closed_form(increase: float, decrease: float) -> None:
    law = Aimd(increase, decrease)
    assert fluid.deterministic(law, 1e-4, 0.1, law.mean(1e-4)) == pytest.approx(law.mean(1e-4), rel=1e-3)
    # Mathis et al., CCR 27(3), 1997.
    assert Aimd(1, 0.5).mean(1e-4) == pytest.approx(122.47, abs=0.01)


def test_random_losses_give_reno_the_mean_of_ott_kemperman_and_mathis() -> None:
    p = 1e-4
    # E[W] over time is 1.3098 / sqrt(p); 100 000 losses leave an error below half a percent.
    assert fluid.random(Aimd(1, 0.5), p, 0.1, 120) * math.sqrt(p) == pytest.approx(1.3098, rel=5e-3)


def test_random_losses_do_not_change_the_mean_of_scalable() -> None:
    p = 1e-5
    law = Scalable()
    # 0.0749 / p, Kelly 2003.
    assert law.mean(p) == pytest.approx(7489, abs=1)
    assert fluid.deterministic(law, p, 0.1, law.mean(p)) == pytest.approx(law.mean(p), rel=1e-3)
    assert fluid.random(law, p, 0.1, law.mean(p)) == pytest.approx(law.mean(p), rel=0.01)


def test_cubic_nears_the_formula_of_its_rfc() -> None:
    p, rtt = 1e-5, 0.1
    law = Cubic()
    # RFC 9438, section 5.2, table 1: 1054 packets... 1.054 (RTT / p)^(3/4).
    assert law.mean(p, rtt) == pytest.approx(1054, rel=1e-3)
    # The plateau is left by a power of time: 5 % after 150 losses.
    gaps = np.full((300, 1), 1 / p)
    assert fluid.mean_window(law, gaps, rtt, 150, 500.0, steps=64) == pytest.approx(1054, rel=0.05)


@pytest.mark.parametrize(("buffer", "share"), [(0.0, 0.75), (100.0, 1.0)])
def test_use_of_a_link_by_reno(buffer: float, share: float) -> None:
    # Without a buffer the window moves between half and all of the path: 3/4 of it on average.
    assert fluid.utilization(Aimd(1, 0.5), 100, buffer, 0.1) == pytest.approx(share, abs=1e-3)


def test_whole_packets_matter_less_as_windows_grow() -> None:
    law = Counted(lambda w: w, lambda w: np.floor(w) / 2)
    shares = [law.mean_window(np.full((64, 1), 1 / p), 32, 10.0) * math.sqrt(p) for p in (1e-2, 1e-3, 1e-5)]
    assert shares == sorted(shares)
    assert shares[0] < 0.97 * 1.2247
    assert shares[2] == pytest.approx(1.2247, rel=0.01)


# -- findings ----------------------------------------------------------------------------------------


def test_findings_hold_within_their_tolerance() -> None:
    def finding(found: float, upper: float | None = None) -> Finding:
        return Finding("x", 10.0, found, "packets", 0.05, True, "why", upper)

    assert finding(10.4).holds
    assert not finding(10.6).holds
    assert not finding(math.nan).holds
    assert finding(15.0, 20.0).holds
    assert finding(20.9, 20.0).holds
    assert not finding(21.1, 20.0).holds
    shown = finding(10.6).to_json()
    assert (shown["expected"], shown["found"], shown["difference"], shown["outcome"]) == (
        "10 packets",
        "10.6 packets",
        "+6.0 %",
        "fails",
    )


def test_every_check_names_a_scheme_of_ours() -> None:
    known = registry.load().schemes
    checks = all_checks()
    assert {check.scheme for check in checks} <= set(known)
    assert {"reno", "cubic"} <= {check.scheme for check in checks}
    assert len({(check.scheme, check.title) for check in checks}) == len(checks)


# -- the comparison ----------------------------------------------------------------------------------

#: One flow of linux:reno and of reno for 30 s on an emulator: path, Mbit/s, p95 queueing delay in ms.
_KERNEL = (("a", 9.91, 9.1), ("b", 8.42, 8.9), ("c", 9.63, 92.0), ("d", 19.8, 71.4), ("e", 11.9, 12.7))
_OURS = (("a", 9.90, 9.3), ("b", 8.49, 8.8), ("c", 9.58, 97.1), ("d", 19.8, 70.2), ("e", 12.1, 14.0))


def _measured(rows: tuple[tuple[str, float, float], ...]) -> list[Measured]:
    return [Measured(grid_path, rate, delay, 0.1) for grid_path, rate, delay in rows]


def test_the_same_rules_agree() -> None:
    found = compare("reno", "linux:reno", _measured(_OURS), _measured(_KERNEL), STRICT)
    assert found.holds
    assert found.trouble() == ""
    assert found.throughput == pytest.approx(0.0052, abs=1e-4)
    assert found.worst()[0].path == "e"


@pytest.mark.parametrize(
    ("rate", "delay", "says"), [(0.96, 1.0, "throughput differs"), (1.0, 1.25, "p95 queueing delay differs")]
)
def test_a_common_shift_is_found(rate: float, delay: float, says: str) -> None:
    shifted = [
        Measured(one.path, one.throughput_mbps * rate, one.delay_ms * delay, 0.1) for one in _measured(_OURS)
    ]
    found = compare("reno", "linux:reno", shifted, _measured(_KERNEL), STRICT)
    assert not found.holds
    assert says in found.trouble()
    # The looser tolerance lets the throughput pass, and not the delay.
    assert compare("reno", "bpf:reno", shifted, _measured(_KERNEL), LOOSE).holds == (delay == 1.0)


def test_one_odd_path_does_not_decide() -> None:
    odd = [*_measured(_OURS)[:-1], Measured("e", 6.0, 1.0, 0.1)]
    found = compare("reno", "linux:reno", odd, _measured(_KERNEL), STRICT)
    assert found.holds
    assert found.worst()[0].path == found.worst()[1].path == "e"


def test_delays_two_packets_apart_are_equal() -> None:
    ours, theirs = [Measured("a", 10.0, 3.4, 1.2)], [Measured("a", 10.0, 1.2, 1.2)]
    assert compare("reno", "linux:reno", ours, theirs, STRICT).delay == 0.0


def test_envelopes_without_overlap_have_conformance_0() -> None:
    with pytest.raises(ValueError, match="no path in common"):
        compare("reno", "linux:reno", _measured(_OURS), [Measured("z", 1.0, 1.0)], STRICT)


_PLACES = (GridPath(10, 20, 0.5), GridPath(10, 40, 0.25), GridPath(20, 20, 0.25), GridPath(20, 30, 0.5, 0.1))


def _simulate(scheme: str) -> list[Measured]:
    """The grid of the comparison, simulated."""
    text = grid.scenario("reno", _PLACES, 20, 1).replace("where: emulate", "where: simulate")
    with simulated(text.replace('scheme: "reno"', f"scheme: {scheme}")) as record:
        found = [metrics_of(record, str(n)) for n in range(1, len(_PLACES) + 1)]
    return [
        Measured(grid_path.name, one["throughput_bps"] / 1e6, one["queueing_delay_p95_ns"] / 1e6, 0.6)
        for grid_path, one in zip(_PLACES, found, strict=True)
    ]


def test_a_planted_wrong_constant_is_found() -> None:
    right = _simulate("reno")
    assert compare("reno", "linux:reno", _simulate("reno"), right, STRICT).holds
    wrong = compare("reno", "linux:reno", _simulate("{scheme: reno, beta: 0.7}"), right, STRICT)
    assert not wrong.holds
    assert wrong.trouble()


def test_the_grid_is_as_large_as_promised() -> None:
    assert len(grid.GRID) >= 12
    rates, rtts = [p.rate_mbps for p in grid.GRID], [p.rtt_ms for p in grid.GRID]
    buffers, losses = [p.buffer_bdp for p in grid.GRID], [p.loss_percent for p in grid.GRID]
    assert (min(rates), max(rates), min(rtts), max(rtts)) == (10, 200, 10, 100)
    assert (min(buffers), max(buffers), min(losses), max(losses)) == (0.25, 4, 0, 1)
    assert sum(rates) <= 600
    assert len({grid_path.name for grid_path in grid.GRID}) == len(grid.GRID)
    (cell,) = cells_of(loads(grid.scenario("linux:reno", grid.GRID, 30, 1)))
    assert len(cell.to_json()["flows"]) == len(grid.GRID)


@pytest.mark.parametrize(
    ("scheme", "most"),
    [("reno", grid.MOST_MBPS), ("bpf:lp", grid.MOST_MBPS_SENSITIVE), ("lp", grid.MOST_MBPS_SENSITIVE)],
)
def test_cells_carry_no_more_than_the_machine_can(scheme: str, most: int) -> None:
    parts = grid.groups(grid.GRID, scheme)
    assert [number for part in parts for number in part] == list(range(len(grid.GRID)))
    # Additional elements on one side only have a separate cell.
    loads_mbps = [sum(grid.GRID[number].rate_mbps for number in part) for part in parts if len(part) > 1]
    assert max(loads_mbps) <= most
    assert len(parts) > 1


# -- runs on the emulator ----------------------------------------------------------------------------


class _Run:
    """Replaces a run by the agent: leaves a record with a verdict."""

    def __init__(self, out: Path, verdict: str) -> None:
        self.out, self.verdict = out, verdict

    def run(self) -> CellOutcome:
        self.out.mkdir()
        (self.out / "run.json").write_text(json.dumps({"verdict": self.verdict}))
        return CellOutcome("finished")

    def stop(self, kill: bool = False) -> None:
        raise AssertionError


def _entry(cell: emulate.GridCell, verdict: str) -> CellEntry:
    return CellEntry(id=cell.cell.id, scheme="reno", run=1, state="finished", verdict=verdict)


@pytest.mark.parametrize(
    ("verdicts", "attempts", "word"),
    [(["ok"], 1, "ok"), (["invalid", "degraded"], 2, "degraded"), (["invalid"] * 4, 3, "invalid")],
)
def test_spoiled_runs_are_repeated_and_never_used(
    verdicts: list[str], attempts: int, word: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    flow: dict[str, float | None] = {"throughput_bps": 1e6, "delay_p95_ns": 1e6}
    monkeypatch.setattr(emulate, "read", lambda *_: {"flows": [flow], "windows": []})
    (cell,) = emulate.cells_of_run("reno", (GridPath(10, 10, 1),), 5, 1)
    out = tmp_path / "cells" / cell.cell.id
    out.parent.mkdir()
    left = list(verdicts)
    run = emulate.GridRun(lambda: _Run(out, left.pop(0)), out, 1, emulate.ATTEMPTS)
    assert run.run().state == "finished"
    assert len(verdicts) - len(left) == attempts
    assert json.loads((out / "run.json").read_text())["verdict"] == word
    entry = _entry(cell, word)
    ran = emulate.gather([cell], {cell.cell.id: entry}, tmp_path)
    assert ran is not None and ran.verdict == word
    assert bool(emulate.measured([ran], cell.grid_paths)) == (word != "invalid")
    assert emulate.gather([cell], {}, tmp_path) is None, "not run yet"


def test_rates_beyond_the_machine_are_halved() -> None:
    (cell,) = emulate.cells_of_run("reno", _PLACES, 5, 1)
    entries = {cell.cell.id: _entry(cell, "invalid")}
    first, second = cell.parts(entries)
    assert first.grid_paths + second.grid_paths == _PLACES
    assert cell.parts({cell.cell.id: _entry(cell, "degraded")}) == [cell]
    entries[first.cell.id] = _entry(first, "invalid")
    assert [len(part.grid_paths) for part in cell.parts(entries)] == [1, 1, 2]


# -- verdicts and stored results ---------------------------------------------------------------------

_GOOD = {"what": "a", "expected": "1", "found": "1", "outcome": "holds"}
_BAD = {"what": "b", "expected": "1", "found": "2", "outcome": "fails"}
_PAIR = pairs.Pair("reno", "linux:reno", STRICT)
_AGREE = compare("reno", "linux:reno", _measured(_OURS), _measured(_KERNEL), STRICT)


def test_verified_requires_every_applicable_check() -> None:
    done = {("reno", "linux:reno"): _AGREE}
    assert verdict.verdict("reno", [_GOOD], [_PAIR], done, {})["status"] == "verified"
    assert verdict.verdict("foo", [_GOOD], [_PAIR], done, {})["status"] == "verified"
    nothing = verdict.verdict("foo", [], [_PAIR], done, {})
    assert (nothing["status"], nothing["reason"]) == ("unverified", verdict.NOTHING)
    failed = verdict.verdict("reno", [_GOOD, _BAD], [_PAIR], done, {})
    assert (failed["status"], failed["reason"]) == ("unverified", "b: 2 found, 1 expected")
    assert "have not been made" in verdict.verdict("reno", None, [_PAIR], done, {})["reason"]
    undone = verdict.verdict("reno", [_GOOD], [_PAIR], {}, {"linux:reno": "no kernel"})
    assert undone["reason"] == "not compared with linux:reno: no kernel"
    json.dumps(verdict.document({"reno": {**failed, "checks": []}}))


def test_a_program_and_its_scheme_share_their_comparison() -> None:
    pair = pairs.Pair("vegas", "bpf:vegas", LOOSE)
    assert pairs.concerns(pair) == ("vegas", "bpf:vegas")
    assert pairs.concerns(_PAIR) == ("reno",)
    done = {("vegas", "bpf:vegas"): _AGREE}
    assert verdict.verdict("bpf:vegas", [], [pair], done, {})["status"] == "verified"
    assert verdict.verdict("bpf:vegas", [], [pair], {}, {})["reason"] == "not compared with vegas yet"


def test_programs_of_others_decide_nothing() -> None:
    known = registry.load()
    for pair in pairs.of_programs():
        assert pairs.concerns(pair) == ()
        assert pair.scheme in known.schemes or pair.scheme == "linux:cubic"
    named = {pair.reference for pair in pairs.of_programs(("gcc", "quinn"))}
    assert named == {"pion:gcc", "chromium:vp8", "quinn:cubic"}
    done = {("quic-cubic", "quinn:cubic"): _AGREE}
    found = verdict.verdict("quic-cubic", [_GOOD], pairs.of_programs(), done, {})
    assert (found["status"], len(found["checks"])) == ("verified", 1)


@pytest.mark.parametrize(("scheme", "most"), [("chromium:vp8", 1), ("pion:gcc", 6), ("gcc", 6)])
def test_calls_have_paths_that_they_can_fill(scheme: str, most: int) -> None:
    places = grid.paths_with_programs(scheme, quick=False)
    assert all(one.rate_mbps < 2.5 for one in places)
    found = grid.groups(places, scheme)
    assert max(map(len, found)) == most
    assert sorted(number for cell in found for number in cell) == list(range(len(places)))


def test_programs_of_others_load_the_machine_less() -> None:
    places = grid.paths_with_programs("quinn:cubic", quick=False)
    assert places == grid.paths_with_programs("quic-cubic", quick=False)
    for numbers in grid.groups(places, "quinn:cubic"):
        assert sum(places[number].rate_mbps for number in numbers) <= 60 < grid.MOST_MBPS
    assert len(grid.groups(places, "quic-cubic")) == 1


def test_cells_are_identified_by_their_content() -> None:
    text = SimulatedPath("ledbat++", 40, 1).text()
    assert cell_of(text) == cell_of(text)
    assert re.fullmatch(r"ledbatpp-[0-9a-f]{12}", cell_of(text).id)
    others = {cell_of(text).id, cell_of(text, ["inside"]).id, cell_of(text.replace("20 ms", "30 ms")).id}
    assert len(others) == 3


def test_unit_tests_of_all_schemes_are_found() -> None:
    found = unit_tests(ROOT)
    assert set(found) == set(registry.load().schemes)
    assert "one_loss_halves_the_data_in_flight" in found["reno"][1]
