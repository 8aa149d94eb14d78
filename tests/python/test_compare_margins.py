"""`narrows compare --margin`: the smallest difference that matters, and the runs' evidence about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compare_kit import Values, campaign, compare, run_command
from narrows.campaign.measurement import list_metrics
from narrows.comparison.document import Request
from narrows.comparison.equivalence import BEYOND, UNDECIDED, WITHIN, read_margins
from narrows.documents.resolved import read_resolved
from narrows.documents.results import NO_RESULTS
from narrows.errors import UsageError


def made(folder: Path, rates: np.ndarray[Any, Any], seed: int = 1000) -> Path:
    """A campaign of one scheme with these throughputs in Mbit/s."""
    runs: list[Values] = [{"throughput_bps": float(rate) * 1e6, "delay_p95_ns": 40e6} for rate in rates]
    return campaign(folder, {"cubic": runs}, first_seed=seed)


def outcome(base: Path, other: Path, margin: str = "5 %") -> dict[str, Any]:
    document = compare(Request([base, other], metrics=["thr"], margins=[margin], traces=False))
    return dict(document["rows"][0]["metrics"]["throughput_bps"]["margin"])


def test_margins_have_three_outcomes(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    base = chance.normal(10, 0.5, 10)
    before = made(tmp_path / "before", base)
    noise = chance.normal(1, 0.01, 10)
    cases = {1.0: WITHIN, 1.01: WITHIN, 1.2: BEYOND, 0.8: BEYOND, 1.05: UNDECIDED}
    for number, (factor, expected) in enumerate(cases.items()):
        after = made(tmp_path / f"after-{number}", base * factor * noise)
        assert outcome(before, after)["outcome"] == expected, factor


def test_no_difference_shown_is_not_equivalent(tmp_path: Path) -> None:
    chance = np.random.default_rng(2)
    before = made(tmp_path / "a", chance.normal(10, 2, 8), seed=1)
    after = made(tmp_path / "b", chance.normal(10, 2, 8), seed=100)
    assert outcome(before, after)["outcome"] == UNDECIDED
    assert outcome(before, after, "8 Mbit/s")["outcome"] == WITHIN


def test_few_runs_decide_nothing_and_identical_ones_exactly(tmp_path: Path) -> None:
    few = outcome(made(tmp_path / "a", np.array([10.0, 10.1])), made(tmp_path / "b", np.array([10.0, 10.2])))
    assert few["outcome"] == UNDECIDED and "at least 6 are needed" in few["why"]
    one = outcome(made(tmp_path / "c", np.array([10.0])), made(tmp_path / "d", np.array([10.0])))
    assert one["outcome"] == UNDECIDED, "one run says nothing, although both are equal"
    same = made(tmp_path / "e", np.full(3, 10.0))
    assert outcome(same, made(tmp_path / "f", np.full(3, 10.4)))["outcome"] == WITHIN
    assert outcome(same, made(tmp_path / "g", np.full(3, 10.6)))["outcome"] == BEYOND


def test_a_margin_below_the_lateness_decides_nothing(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    folders = [
        campaign(
            tmp_path / name,
            {"cubic": [{"delay_p95_ns": 40e6 + float(one)} for one in chance.normal(0, 1e4, 8)]},
            where="emulate",
            lateness_ns=500_000,
        )
        for name in "ab"
    ]
    for margin, expected in (("0.3 ms", UNDECIDED), ("2 ms", WITHIN)):
        document = compare(Request(folders, metrics=["p95 OWD"], margins=[margin], traces=False))
        assert document["rows"][0]["metrics"]["delay_p95_ns"]["margin"]["outcome"] == expected


@pytest.mark.parametrize("paired", [True, False])
def test_false_statements_are_as_rare_as_promised(tmp_path: Path, paired: bool) -> None:
    """At the margin itself neither statement is true, so at most 5 % of families of comparisons may make one:
    10 of 200, of which 16 would be chance once in 30. The values have a skewed distribution."""
    from narrows.comparison.equivalence import decide
    from narrows.comparison.findings import judge
    from narrows.comparison.sides import Pairing, Run, Sample, Side

    chance = np.random.default_rng(20261127)
    metrics = [one for one in list_metrics() if one.name in ("throughput_bps", "goodput_bps")]
    margins = read_margins(["10 %"], metrics)
    runs_of_each = 8 if paired else 6

    def sample(name: str, factor: float, shared: np.ndarray[Any, Any]) -> Sample:
        runs = {}
        for number in range(runs_of_each):
            values = {
                one.name: float(1e7 * factor * shared[number] * np.exp(chance.exponential(0.03)))
                for one in metrics
            }
            seed = number if paired else None
            runs[number] = Run(number, seed, "", "ok", values)
        side = Side(name, None, NO_RESULTS)  # type: ignore[arg-type]
        side.__dict__.update(settings={}, resolved=read_resolved({}))
        made = Sample(side, "cubic", runs, runs_of_each, runs_of_each, 0)
        made.__dict__["lateness_ns"] = 0.0
        return made

    false = 0
    for _ in range(200):
        shared = np.exp(chance.normal(0, 0.2 if paired else 0.0, 8))
        pairings = [Pairing(sample("A", 1.0, shared), sample("B", factor, shared)) for factor in (1.1, 0.9)]
        findings = judge(pairings, metrics)
        decide(findings, margins)
        outcomes = {one.equivalence.outcome for one in findings if one.equivalence}
        false += outcomes != {UNDECIDED}
    assert false <= 15


def test_margins_of_several_metrics() -> None:
    metrics = [one for one in list_metrics() if one.name in ("throughput_bps", "delay_p95_ns", "loss_ratio")]
    found = read_margins(["1 %", "2 ms", "loss 0.5 points"], metrics)
    assert found["throughput_bps"].share and found["throughput_bps"].amount == 0.01
    assert (found["delay_p95_ns"].share, found["delay_p95_ns"].amount) == (False, 2e6)
    assert (found["loss_ratio"].share, found["loss_ratio"].amount) == (False, 0.005)
    assert read_margins(["p95 OWD 3 ms"], metrics).keys() == {"delay_p95_ns"}


@pytest.mark.parametrize(
    ("margin", "says"),
    [
        ("much", "is not a margin"),
        ("0 %", "must be more than 0"),
        ("100 %", "less than 100 %"),
        ("2 kB", "--margin"),
        ("shine 2 ms", 'metric "shine" does not exist'),
        ("thr 2 ms", "--margin"),
    ],
)
def test_margins_that_make_no_sense(tmp_path: Path, margin: str, says: str) -> None:
    metrics = [one for one in list_metrics() if one.name in ("throughput_bps", "delay_p95_ns", "loss_ratio")]
    with pytest.raises(UsageError, match=says):
        read_margins([margin], metrics)


def test_all_forms_and_the_gate(tmp_path: Path) -> None:
    chance = np.random.default_rng(4)
    base = chance.normal(10, 0.5, 10)
    before = made(tmp_path / "a", base)
    after = made(tmp_path / "b", base * chance.normal(1, 0.003, 10))
    worse = made(tmp_path / "c", base * chance.normal(0.9, 0.003, 10))
    options = ("--metrics", "thr", "--margin", "1 %", "--no-traces")
    text = run_command(before, after, *options).stdout
    assert "of 1 comparisons 1 is equivalent within it" in " ".join(text.split())
    assert "equivalent within the margin" in run_command(before, after, *options, "--markdown").stdout
    assert "equivalent within the margin" in run_command(before, after, *options, "--html").stdout
    document = json.loads(run_command(before, after, *options, "--json").stdout)
    assert document["margin"] == ["1 %"]
    gate = (*options, "--fail-on", "throughput not equivalent")
    assert run_command(before, after, *gate).exit_code == 0
    broken = run_command(before, worse, *gate)
    assert broken.exit_code == 5 and "differs by more than the margin of 1 %" in " ".join(
        broken.stdout.split()
    )
    without = run_command(before, after, "--fail-on", "throughput not equivalent")
    assert without.exit_code == 2 and "--margin" in str(without.exception)
