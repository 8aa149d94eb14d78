"""Output of verification: the document, its figures, the shipped status, marks in tables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from narrows.cli.all_commands import app
from narrows.documents.resolved import Flow, read_cell
from narrows.report import verification
from narrows.report.data import load
from narrows.schemes import status
from validation.schemes import emulate, grid
from validation.schemes.compare import STRICT, compare
from validation.schemes.grid import GridPath
from validation.schemes.output import write
from validation.schemes.pairs import Pair
from validation.schemes.verdict import verdict
from validation.schemes.work import Outcome
from verify_kit import simulated

PLACES = (GridPath(5, 20, 1), GridPath(5, 30, 0.5, 0.2))


def _ran(scheme: str) -> emulate.GridResult:
    """A run on two paths; simulated records are read like emulated ones."""
    text = grid.scenario("reno", PLACES, 5, 1).replace("where: emulate", "where: simulate")
    with simulated(text.replace('scheme: "reno"', f"scheme: {scheme}")) as record:
        return emulate.GridResult("ok", [], **emulate.read(record, len(PLACES)))


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    runs = {"reno": [_ran("reno")], "linux:reno": [_ran("{scheme: reno, beta: 0.55}")]}
    ours, theirs = (emulate.measured(runs[name], PLACES) for name in ("reno", "linux:reno"))
    one = compare("reno", "linux:reno", ours, theirs, STRICT)
    pair = Pair("reno", "linux:reno", STRICT)
    entry = verdict("reno", [], [pair], {("reno", "linux:reno"): one}, {})
    entries = {"reno": {**entry, "date": "2026-01-01", "version": "1"}}
    return Outcome(theory={}, comparisons=[one], runs=runs, entries=entries, grid_paths=PLACES)


def test_records_of_the_grid_are_read(outcome: Outcome) -> None:
    (ran,) = outcome.runs["reno"]
    assert ran.verdict == "ok"
    assert len(ran.flows) == len(ran.windows) == len(PLACES)
    for grid_path, one in zip(PLACES, emulate.measured([ran], PLACES), strict=True):
        assert 0.5 * grid_path.rate_mbps < one.throughput_mbps <= grid_path.rate_mbps
        assert one.packet_ms == pytest.approx(12 / grid_path.rate_mbps)
    assert max(ran.windows[0]["cwnd_packets"]) > 5


def test_everything_is_written(outcome: Outcome, tmp_path: Path) -> None:
    write(outcome, tmp_path, update=False)
    text = (tmp_path / "schemes.md").read_text(encoding="utf-8")
    assert "## `reno`" in text
    assert all(grid_path.name in text for grid_path in PLACES)
    assert "(figures/reno.png)" in text
    assert "## How it is done" in text
    assert "@grid@" not in text
    assert (tmp_path / "figures" / "reno.png").stat().st_size > 10_000
    shipped = status.status_of("reno", tmp_path / "verification.json")
    assert shipped.word == outcome.entries["reno"]["status"]
    assert len(shipped.checks) == 2
    assert json.loads((tmp_path / "verification.json").read_text())["format"] == status.FORMAT


def test_external_programs_have_a_separate_section(outcome: Outcome, tmp_path: Path) -> None:
    (one,) = outcome.comparisons
    other = replace(one, scheme="quic-cubic", reference="quinn:cubic")
    write(replace(outcome, others=[other]), tmp_path, update=False)
    text = (tmp_path / "schemes.md").read_text(encoding="utf-8")
    section = text[text.index("## Programs of others") : text.index("## How it is done")]
    assert "### `quic-cubic` and `quinn:cubic`" in section
    assert all(grid_path.name in section for grid_path in PLACES)
    assert "quinn" not in text[: text.index("## Programs of others")]
    assert "quinn" not in (tmp_path / "verification.json").read_text(encoding="utf-8")


def test_rows_of_several_schemes_have_the_weakest_status() -> None:
    def statuses(*names: str) -> list[status.Status]:
        return list(status.statuses_of(map(Flow.from_scheme, names)).values())

    def word(*names: str) -> str | None:
        found = status.weakest(statuses(*names))
        return found.word if found else None

    assert word("linux:reno") == status.REFERENCE
    assert word("linux:reno", "never-heard-of") == status.UNVERIFIED
    assert word("udp") is None
    assert [mark for mark, _, _ in status.legend(statuses("linux:reno", "never-heard-of"))] == ["?", "="]


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({}, status.VERIFIED),
        ({"params": {"beta": 0.7, "fast_convergence": True}}, status.VERIFIED),
        ({"params": {"beta": 0.5}}, status.UNVERIFIED),
        ({"params": {"beta": 0.7, "gone": 1}}, status.UNVERIFIED),
        ({"transport": {"initial_window": 4}}, status.UNVERIFIED),
        ({"object": {"name": "my_cc.bpf.o", "sha256": "0"}}, status.UNVERIFIED),
    ],
)
def test_only_the_defaults_of_a_scheme_are_verified(
    tmp_path: Path, changed: dict[str, Any], word: str
) -> None:
    file = tmp_path / "verification.json"
    file.write_text(json.dumps({"format": status.FORMAT, "schemes": {"cubic": {"status": "verified"}}}))
    (flow,) = read_cell({"flows": [{"scheme": "cubic", "params": {}} | changed]}).flows
    found = status.statuses_of([flow], file)["cubic"]
    assert (found.word, found.reason) == (word, "" if word == status.VERIFIED else status.DEFAULTS_ONLY)
    assert status.statuses_of([flow, Flow.from_scheme("cubic")], file)["cubic"].word == word, (
        "the weaker counts"
    )


def test_tables_and_reports_mark_the_settings_that_were_checked(tmp_path: Path) -> None:
    scenario, out = tmp_path / "a.yaml", tmp_path / "out"
    scenario.write_text(
        "schema: narrows/scenario/1\nquestion: q\nwhere: simulate\nduration: 1 s\n"
        "path: {forward: [{rate: 5 Mbit/s, queue: {droptail: 20 kB}}], backward: [{delay: 20 ms}]}\n"
        "schemes: [reno, {scheme: reno, beta: 0.8}]\n"
    )
    done = CliRunner().invoke(app, ["run", str(scenario), "--no-report", "-o", str(out)])
    assert done.exit_code == 0, done.output
    marks = {line.split("  ")[0].strip(): line.split()[-1] for line in done.stdout.splitlines() if line}
    assert (marks["reno"], marks["reno beta=0.8"]) == ("✓", "?")
    assert "reno beta=0.8: verified with its defaults only" in done.stdout
    campaign = load(out)
    plain, changed = (verification.status_of(campaign, label) for label in ("reno", "reno beta=0.8"))
    assert plain is not None and plain.word == "verified"
    assert changed is not None and changed.word == "unverified"
    assert verification.explain(campaign).reasons == ["reno beta=0.8: verified with its defaults only"]
