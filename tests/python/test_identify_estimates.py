"""Intervals and tests of behaviour cards, against scipy, closed forms and simulated samples."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from narrows.identify.estimates import Estimate, distribution, estimate, holm, p_of_words, p_value, quantile


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 30, 101, 399, 5000])
def test_students_distribution_is_that_of_scipy(freedom: int) -> None:
    # Here, as every process that collects tests would import it, which takes a second.
    from scipy import stats

    for t in (0.0, 0.3, 1.0, 2.5, 9.0, 40.0):
        assert distribution(t, freedom) == pytest.approx(
            stats.t.cdf(t, freedom), abs=2e-4 if freedom > 400 else 1e-9
        )
    for share in (0.5, 0.9, 0.975, 0.9999):
        assert quantile(share, freedom) == pytest.approx(stats.t.ppf(share, freedom), rel=2e-3, abs=1e-9)


def test_p_values_are_those_of_welchs_and_fishers_tests() -> None:
    from scipy import stats

    generator = np.random.default_rng(1)
    a, b = generator.normal(0, 1, 6), generator.normal(1, 3, 9)
    ours = p_value(estimate([[x] for x in a]), estimate([[x] for x in b]), 0.0)
    theirs = stats.ttest_ind(a, b, equal_var=False)
    # The degrees of freedom are rounded down.
    assert ours == pytest.approx(theirs.pvalue, rel=0.05)
    for table in ([[3, 0], [0, 3]], [[5, 1], [2, 4]], [[6, 0], [6, 0]], [[1, 9], [8, 2]]):
        first, second = (Counter({"x": row[0], "y": row[1]}) for row in table)
        if table[0][0] < table[0][1]:
            first, second = (Counter({"x": row[1], "y": row[0]}) for row in table)
        assert p_of_words(first, second) == pytest.approx(stats.fisher_exact(table).pvalue)


def test_intervals_of_runs_contain_the_truth_in_95_of_100_cases() -> None:
    generator = np.random.default_rng(2)
    inside = 0
    for _ in range(2000):
        runs = generator.normal(5, 1, (6, 1)) + generator.normal(0, 0.3, (6, 9))
        low, high = estimate(runs.tolist()).interval(0.0)
        inside += low <= 5 <= high
    # Three standard deviations of a share of 2000 around 95 %.
    assert abs(inside / 2000 - 0.95) < 0.015


def test_a_disturbed_sample_does_not_move_a_run() -> None:
    assert estimate([[0.7, 0.7, 0.7, 0.1]]).value == pytest.approx(0.7)
    assert estimate([[0.5, 0.5, 9.0]] * 5).value == pytest.approx(0.5)


def test_fewer_than_four_samples_have_no_error_and_decide_nothing() -> None:
    few = estimate([[1.0], [2.0], [3.0]])
    assert few.error is None
    assert p_value(few, Estimate(100.0, 0.1, 9), 0.0) is None


def test_what_the_method_cannot_resolve_is_no_difference() -> None:
    first, second = Estimate(0.70, 0.0, 5), Estimate(0.72, 0.0, 5)
    assert p_value(first, second, 0.03) == 1.0
    assert p_value(first, second, 0.01) == 0.0


def test_holm_rejects_as_in_the_example_of_its_definition() -> None:
    # 0.01 <= 0.05 / 4, 0.015 <= 0.05 / 3, and 0.03 > 0.05 / 2 stops.
    assert holm([0.03, 0.01, 0.04, 0.015], 0.05) == [False, True, False, True]
    assert holm([], 0.05) == []


def test_equal_senders_differ_in_any_line_in_at_most_5_of_100_comparisons() -> None:
    generator = np.random.default_rng(3)
    wrong = 0
    for _ in range(600):
        p = [
            p_value(
                estimate(generator.normal(0, 1, (6, 1)).tolist()),
                estimate(generator.normal(0, 1, (6, 1)).tolist()),
                0.0,
            )
            for _ in range(30)
        ]
        wrong += any(holm([value for value in p if value is not None], 0.05))
    # Three standard deviations of a share of 600 above 5 %.
    assert wrong / 600 < 0.05 + 3 * (0.05 * 0.95 / 600) ** 0.5
