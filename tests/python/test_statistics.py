"""Statistics over runs."""

from __future__ import annotations

import random
from statistics import median

import pytest

from narrows.analysis.statistics import bootstrap_interval, summarise


def test_median_and_mean() -> None:
    assert summarise([3.0, 1.0, 2.0])["median"] == 2
    assert summarise([4.0, 1.0, 2.0, 3.0])["median"] == 2.5
    assert summarise([0.1] * 10)["mean"] == pytest.approx(0.1, abs=0)


def test_no_interval_below_six_runs() -> None:
    assert summarise([1.0, 2.0, 3.0, 4.0, 5.0])["ci95"] is None
    assert summarise([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])["ci95"] is not None


def test_interval_is_repeatable_and_ignores_the_order() -> None:
    values = [random.Random(1).gauss(10, 1) for _ in range(12)]
    low, high = bootstrap_interval(values)
    assert bootstrap_interval(list(reversed(values))) == (low, high)
    assert low <= median(values) <= high
    assert bootstrap_interval([5.0] * 8) == (5.0, 5.0)


def test_interval_covers_the_true_median_about_as_often_as_it_says() -> None:
    dice = random.Random(7)
    hits = 0
    for _ in range(60):
        low, high = bootstrap_interval([dice.gauss(0, 1) for _ in range(15)])
        hits += low <= 0 <= high
    assert hits >= 51
