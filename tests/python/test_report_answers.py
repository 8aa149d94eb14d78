"""The short answer: no sentence ranks rows beyond the findings of `narrows compare`."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compare_kit import Values, campaign, compare, flow, runs
from narrows.comparison.document import Request
from narrows.report import document
from narrows.report.answers import answer
from narrows.report.data import load

QUEUES = ("0.5 bdp", "1 bdp", "4 bdp")
SCHEMES = ("cubic", "reno", "copa")


def matrix(folder: Path, values: dict[tuple[str, str], list[Values]]) -> Path:
    """A campaign of schemes under queues, with these runs."""
    rows, found = [], {}
    for (scheme, queue), own in values.items():
        label = f"{scheme} (droptail {queue}, delay 10 ms)"
        rows.append(
            {"label": label, "flows": [flow(scheme)], "values": {"droptail": queue, "delay": "10 ms"}}
        )
        found[label] = own
    return campaign(folder, found, changes={"schemes": rows})


def random_runs(chance: np.random.Generator, count: int) -> list[Values]:
    rate = 1e7 * chance.lognormal(0, 0.1)
    late = 3e7 * chance.lognormal(0, 0.5)
    spread = chance.choice([0.005, 0.05, 0.3])
    return [
        {
            "throughput_bps": float(rate * chance.lognormal(0, spread)),
            "delay_p95_ns": float(late * chance.lognormal(0, spread)),
        }
        for _ in range(count)
    ]


def shown_better(found: dict[str, Any], metric: str) -> set[tuple[str, str]]:
    """Pairs of rows of which compare shows the first to be better."""
    pairs = set()
    for row in found["rows"]:
        base, other = row["base"]["scheme"], row["other"]["scheme"]
        outcome = row["metrics"][metric]["outcome"]
        if outcome in ("better", "worse"):
            pairs.add((other, base) if outcome == "better" else (base, other))
    return pairs


@pytest.mark.parametrize("seed", range(12))
def test_no_row_is_ranked_beyond_what_compare_shows(tmp_path: Path, seed: int) -> None:
    chance = np.random.default_rng(seed)
    count = int(chance.choice([1, 3, 6, 10]))
    values = {pair: random_runs(chance, count) for pair in itertools.product(SCHEMES, QUEUES[: 1 + seed % 3])}
    folder = matrix(tmp_path / "a", values)
    loaded = load(folder)
    whole = document.compose(loaded, {})
    found = compare(Request([folder], traces=False))
    for one in whole.leaders:
        better = shown_better(found, one.metric)
        rows = [*one.first, *one.behind, *one.unjudged]
        # Only rows of the same conditions share an order.
        assert len({loaded.rows[label].values for label in rows}) == 1
        for label in one.behind:
            assert any((winner, label) in better for winner in rows), "somebody is shown to be better"
        for label in one.first:
            assert not any((winner, label) in better for winner in rows), "no scheme is shown to be better"
        if one.best:
            assert one.first == (one.best,) and count >= 6
    if count < 6:
        assert not any(one.first for one in whole.leaders)
    # Sentences name exactly the leaders as winners.
    crowned = {loaded.rows[one.best].scheme for one in whole.leaders if one.best}
    for sentence in whole.answer:
        if match := re.match(r"(?:Highest|Lowest) [^:]*?: (\w+) (?:with|in) ", sentence):
            assert match[1] in {*crowned, "open"}, sentence


def test_clearly_different_runs_are_ranked(tmp_path: Path) -> None:
    """Ten runs each around 18.43, 19.70 and 87.46 ms."""
    folder = campaign(
        tmp_path / "a",
        {
            name: [
                {"throughput_bps": 1e7 * (1 + k * 1e-3), "delay_p95_ns": delay * 1e6 * (1 + 1e-3 * (k % 3))}
                for k in range(10)
            ]
            for name, delay in (("copa", 18.43), ("vegas", 19.70), ("cubic", 87.46))
        },
    )
    found = answer(load(folder))
    (delay,) = [one for one in found.leaders if one.metric == "delay_p95_ns"]
    assert delay.best == "copa" and set(delay.behind) == {"vegas", "cubic"}
    assert any(
        one.startswith("Lowest 95th percentile one-way delay: copa with 18.4") for one in found.sentences
    )
    assert "open" in found.sentences[0], "the throughputs are the same"


def test_single_runs_have_no_winner(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "a", {"cubic": runs(1, 1), "reno": runs(2, 1, factor=2)})
    text = " ".join(answer(load(folder)).sentences)
    assert "one valid run of each scheme, which shows no order" in text
    assert "nothing is known about how much it varies" in text
    assert "Highest" not in text and "Lowest" not in text


def test_rows_of_other_networks_are_answered_for_each(tmp_path: Path) -> None:
    factors = dict(zip(QUEUES, (1.5, 1.0, 0.5), strict=True))
    values = {
        (scheme, queue): runs(10 * place + number, factor=factors[queue] if scheme == "copa" else 1.0)
        for place, scheme in enumerate(SCHEMES)
        for number, queue in enumerate(QUEUES)
    }
    found = answer(load(matrix(tmp_path / "a", values)))
    rates = {one.conditions["droptail"]: one for one in found.leaders if one.metric == "throughput_bps"}
    assert rates["0.5 bdp"].best == "copa (droptail 0.5 bdp, delay 10 ms)"
    assert rates["1 bdp"].best is None
    assert [label.split()[0] for label in rates["4 bdp"].behind] == ["copa"]
    text = found.sentences[0]
    assert text.startswith("Highest throughput by droptail, 3 combinations: copa in 1 (droptail 0.5 bdp:")
    assert "open in 2 (" in text
    assert "delay 10 ms" not in text, "what all rows share is not repeated"


def test_identical_runs_have_an_exact_order(tmp_path: Path) -> None:
    folder = campaign(
        tmp_path / "a",
        {
            name: [{"throughput_bps": rate, "delay_p95_ns": 4e7}] * 2
            for name, rate in (("a", 1e7), ("b", 2e7))
        },
    )
    text = " ".join(answer(load(folder)).sentences)
    assert "Highest throughput: b with 20.00 Mbit/s" in text and "exact" in text


def test_values_are_those_of_every_table_also_where_a_run_of_another_row_is_missing(tmp_path: Path) -> None:
    """Differences use the pairs that both rows have; values use all runs of a row."""
    folder = campaign(
        tmp_path / "a",
        {"cubic": runs(1, 9, noise=0.2), "reno": runs(2, 9, noise=0.2)},
        verdicts={("cubic", 2): "invalid", ("cubic", 5): "invalid"},
    )
    loaded = load(folder)
    found = answer(loaded)
    (row,) = compare(Request([folder], traces=False))["rows"]
    finding = row["metrics"]["throughput_bps"]
    assert finding["runs"] == 7, "pairs"
    for side, label in (("base", "cubic"), ("other", "reno")):
        median = loaded.median(label, "all", "throughput_bps")
        assert median is not None
        assert finding[side]["median"] == median
        assert all(one.medians[label] == median for one in found.leaders if one.metric == "throughput_bps")
