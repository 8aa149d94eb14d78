"""Statistics over runs."""

from __future__ import annotations

import itertools
import json
import random
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrows.documents.data import to_data
from narrows.documents.results import Statistics
from narrows.statistics import differences, permutation, ranking
from narrows.statistics.runs import (
    RESAMPLES,
    SEED,
    Spread,
    bootstrap_interval,
    spread_of,
    summarise,
)

#: Depression scores of nine patients before and after, and permeability of two groups of membranes: examples
#: 3.1 and 4.1 of Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods".
BEFORE = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
AFTER = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])
AT_TERM = np.array([0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46])
EARLY = np.array([1.15, 0.88, 0.90, 0.74, 1.21])


# -- one sample ---------------------------------------------------------------------------------


def test_median_and_mean_are_exact() -> None:
    assert summarise([3.0, 1.0, 2.0]).median == 2
    assert summarise([4.0, 1.0, 2.0, 3.0]).median == 2.5
    assert summarise([0.1] * 10).mean == pytest.approx(0.1, abs=0)


def test_no_interval_below_six_runs() -> None:
    five = summarise([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (five.ci95, five.min, five.max) == (None, 1.0, 5.0)
    assert spread_of(five) == Spread("range", 1.0, 5.0)
    six = summarise([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert six.ci95 is not None
    assert spread_of(six).kind == "interval"
    assert spread_of(summarise([1.0])).kind == "unknown"


def test_identical_runs_have_no_interval() -> None:
    same = summarise([5.0] * 8)
    assert (same.identical, same.ci95) == (True, None)
    assert spread_of(same).kind == "identical"
    assert spread_of(summarise([5.0, 5.0])).kind == "identical"
    assert not summarise([5.0]).identical
    assert json.dumps(to_data(summarise([np.float64(1.0)] * 3)))


def test_summaries_of_an_older_version_show_their_interval() -> None:
    assert spread_of(Statistics(mean=1.0, median=1.0, ci95=(0.5, 1.5), n=7)) == Spread("interval", 0.5, 1.5)
    assert spread_of(Statistics(mean=1.0, median=1.0, ci95=None, n=3)).kind == "unknown"


def test_interval_is_repeatable_and_ignores_the_order() -> None:
    values = [random.Random(1).gauss(10, 1) for _ in range(12)]
    low, high = bootstrap_interval(values)
    assert bootstrap_interval(list(reversed(values))) == (low, high)
    assert low <= median(values) <= high
    assert bootstrap_interval([5.0] * 8) == (5.0, 5.0)


def test_interval_is_that_of_ten_thousand_resamples() -> None:
    # By hand: every resample is drawn, and its median taken.
    for size in (6, 7, 10, 15):
        values = np.sort(np.random.RandomState(size).normal(10, 2, size))
        picks = np.random.RandomState(SEED).randint(0, size, size=(RESAMPLES, size))
        medians = np.sort(np.median(values[picks], axis=1))
        expected = medians[int(0.025 * (RESAMPLES - 1))], medians[-1 - int(0.025 * (RESAMPLES - 1))]
        assert bootstrap_interval(values) == expected


def test_interval_agrees_with_scipy() -> None:
    # scipy.stats.bootstrap((values,), numpy.median, n_resamples=200_000, method="percentile") of SciPy 1.17.
    values = [3.1, 2.4, 5.9, 4.2, 3.3, 8.1, 2.2, 6.0, 4.4, 5.1]
    assert bootstrap_interval(values) == (pytest.approx(2.85), pytest.approx(5.9))


def test_many_samples_at_once_are_each_by_itself() -> None:
    samples = np.random.RandomState(3).normal(size=(4, 5, 9))
    low, high = bootstrap_interval(samples)
    assert low.shape == high.shape == (4, 5)
    assert (low[2, 3], high[2, 3]) == bootstrap_interval(samples[2, 3])


def test_interval_covers_the_true_median_about_as_often_as_it_says() -> None:
    dice = random.Random(7)
    hits = 0
    for _ in range(60):
        low, high = bootstrap_interval([dice.gauss(0, 1) for _ in range(15)])
        hits += low <= 0 <= high
    assert hits >= 51


# -- two samples --------------------------------------------------------------------------------


def test_paired_shift_and_interval_of_a_textbook() -> None:
    apart = BEFORE - AFTER
    assert differences.shift_of_pairs(apart) == pytest.approx(0.46)
    # Example 3.4: the interval at 96.1 %, the least above 95 % for nine pairs.
    assert differences.interval_of_pairs(apart) == (pytest.approx(0.010), pytest.approx(0.786))
    # scipy.stats.wilcoxon(apart, method="exact")
    assert differences.signed_rank_p(apart) == pytest.approx(0.0390625)


def test_unpaired_shift_of_a_textbook() -> None:
    assert differences.shift_of_samples(EARLY, AT_TERM) == pytest.approx(0.305)
    # scipy.stats.mannwhitneyu(EARLY, AT_TERM, method="exact")
    assert differences.rank_sum_p(EARLY, AT_TERM) == pytest.approx(0.2544122544)


def test_ties_are_exact_too() -> None:
    # scipy.stats.wilcoxon(..., method=PermutationMethod(n_resamples=inf)), and the rank sum by
    # permutation_test.
    assert differences.signed_rank_p(np.array([1, -1, 2, 2, 3, -2, 4, 5.0])) == pytest.approx(0.1015625)
    first, second = np.array([1, 2, 2, 3, 4, 4.0]), np.array([2, 3, 4, 5, 5, 6.0])
    assert differences.rank_sum_p(first, second) == pytest.approx(0.125541125541)


def test_pairs_without_a_difference_say_nothing() -> None:
    assert differences.signed_rank_p(np.zeros(9)) == 1
    assert differences.signed_rank_p(np.array([0.0, 0.0, 1.0])) == 1


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=9))
def test_signed_rank_p_is_the_share_of_all_signs(values: list[int]) -> None:
    there = np.array([value for value in values if value], dtype=float)
    ranks = [(np.abs(there) < abs(v)).sum() + ((np.abs(there) == abs(v)).sum() + 1) / 2 for v in there]
    sums = [sum(r for r, plus in zip(ranks, signs, strict=True) if plus)
            for signs in itertools.product((0, 1), repeat=len(there))]  # fmt: skip
    found = sum(r for r, v in zip(ranks, there, strict=True) if v > 0)
    below, above = (sum(s <= found for s in sums), sum(s >= found for s in sums))
    expected = min(1.0, 2 * min(below, above) / len(sums))
    assert differences.signed_rank_p(np.array(values, dtype=float)) == pytest.approx(expected)


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=5), st.lists(st.integers(0, 5), min_size=1, max_size=5)
)
def test_rank_sum_p_is_the_share_of_all_groups(first: list[int], second: list[int]) -> None:
    both = np.array([*first, *second], dtype=float)
    ranks = [(both < v).sum() + ((both == v).sum() + 1) / 2 for v in both]
    sums = [sum(ranks[i] for i in chosen) for chosen in itertools.combinations(range(len(both)), len(second))]
    found = sum(ranks[len(first) :])
    below, above = (sum(s <= found for s in sums), sum(s >= found for s in sums))
    expected = min(1.0, 2 * min(below, above) / len(sums))
    p = differences.rank_sum_p(np.array(first, dtype=float), np.array(second, dtype=float))
    assert p == pytest.approx(expected)


def test_intervals_need_runs() -> None:
    assert differences.interval_of_pairs(np.arange(6.0)) == (0, 5)
    with pytest.raises(ValueError, match="5 pairs of runs are too few"):
        differences.interval_of_pairs(np.arange(5.0))
    assert differences.interval_of_samples(np.arange(4.0), np.arange(4.0)) == (-3, 3)
    with pytest.raises(ValueError, match="3 and 3 runs are too few"):
        differences.interval_of_samples(np.arange(3.0), np.arange(3.0))


def test_interval_and_test_agree() -> None:
    chance = np.random.RandomState(11)
    for _ in range(200):
        apart = chance.normal(0.6, 1.0, 9)
        low, high = differences.interval_of_pairs(apart)
        assert (low > 0 or high < 0) == (differences.signed_rank_p(apart) <= 0.05)
        x, y = chance.normal(0, 1, 7), chance.normal(0.9, 1, 8)
        low, high = differences.interval_of_samples(x, y)
        assert (low > 0 or high < 0) == (differences.rank_sum_p(x, y) <= 0.05)


def test_intervals_cover_the_true_shift() -> None:
    chance = np.random.RandomState(5)
    apart = chance.standard_t(3, size=(2000, 10)) + 1.0
    low, high = differences.interval_of_pairs(apart)
    assert ((low <= 1) & (high >= 1)).mean() > 0.94
    base, other = chance.normal(0, 1, (2000, 8)), chance.normal(0.5, 1, (2000, 9))
    low, high = differences.interval_of_samples(base, other)
    assert ((low <= 0.5) & (high >= 0.5)).mean() > 0.94


# -- many comparisons ---------------------------------------------------------------------------


def test_one_comparison_is_the_permutation_test() -> None:
    # scipy.stats.permutation_test((apart,), permutation_type="samples", n_resamples=inf) of the absolute
    # mean.
    assert permutation.permute_pairs((BEFORE - AFTER)[None, :])[0] == pytest.approx(0.02734375)
    base, other = np.arange(5.0), np.arange(5.0) + 10
    assert permutation.permute_samples(base[None, :], other[None, :])[0] == pytest.approx(2 / 252)


def test_three_pairs_can_show_nothing() -> None:
    assert permutation.permute_pairs(np.array([[1.0, 1.1, 1.2]]))[0] == 0.25
    assert permutation.least_paired_p(3) == 0.25
    assert permutation.least_paired_p(6) == pytest.approx(2 / 64)
    assert permutation.least_unpaired_p(3, 3) == pytest.approx(0.1)


def test_stepping_down_matches_westfall_and_young() -> None:
    # By hand: over all signs, the largest of a statistic and of all smaller ones.
    values = np.random.RandomState(2).normal([[1.5], [0.6], [0.0], [-0.9]], 1.0, (4, 7))

    def statistic(signs: differences.Floats) -> differences.Floats:
        moved = values * signs
        error = moved.std(axis=1, ddof=1) / np.sqrt(7)
        return np.asarray(np.abs(moved.mean(axis=1)) / error)

    actual = statistic(np.ones(7))
    order = np.argsort(-actual)
    reached = np.zeros(4)
    for signs in itertools.product((1, -1), repeat=7):
        found = statistic(np.array(signs))
        for place, row in enumerate(order):
            reached[place] += max(found[one] for one in order[place:]) >= actual[row] - 1e-12
    expected = np.empty(4)
    expected[order] = np.maximum.accumulate(reached / 128)
    assert permutation.permute_pairs(values) == pytest.approx(expected)


def test_units_and_order_of_comparisons_do_not_matter() -> None:
    values = np.random.RandomState(8).normal(0.5, 1.0, (5, 9))
    scaled = values * np.array([[1e-9], [1], [1e6], [1e12], [3]])
    assert permutation.permute_pairs(scaled) == pytest.approx(permutation.permute_pairs(values))
    assert permutation.permute_pairs(values[::-1])[::-1] == pytest.approx(permutation.permute_pairs(values))
    base, other = values, values + 1
    found = permutation.permute_samples(base, other)
    assert permutation.permute_samples(base * 1e9 + 5e9, other * 1e9 + 5e9) == pytest.approx(found)


def test_missing_runs_are_left_out_of_their_own_comparison_alone() -> None:
    values = np.random.RandomState(4).normal(1.0, 0.5, (2, 8))
    holed = values.copy()
    holed[1, 3] = np.nan
    alone = permutation.permute_pairs(np.delete(values[1:], 3, axis=1))
    assert permutation.permute_pairs(holed[1:]) == pytest.approx(alone)
    assert np.isfinite(permutation.permute_pairs(holed)).all()
    assert np.isfinite(permutation.permute_samples(holed, values + 1)).all()


def test_no_difference_at_all_is_never_shown() -> None:
    assert (permutation.permute_pairs(np.zeros((3, 10))) == 1).all()
    assert (permutation.permute_samples(np.ones((2, 8)), np.ones((2, 8))) == 1).all()


def test_more_runs_than_exchanges_are_drawn() -> None:
    values = np.random.RandomState(6).normal(2.0, 1.0, (3, 30))
    found = permutation.permute_pairs(values)
    assert (found == permutation.permute_pairs(values)).all()
    assert found.max() <= 2 / permutation.MOST_EXCHANGES
    assert permutation.permute_samples(values, values + 3).max() <= 2 / permutation.MOST_EXCHANGES


@pytest.mark.parametrize("law", ["normal", "skewed", "heavy"])
def test_false_claims_are_as_rare_as_promised(law: str) -> None:
    chance = np.random.RandomState(20)

    def draw(size: tuple[int, int]) -> differences.Floats:
        if law == "normal":
            return chance.normal(size=size)
        if law == "skewed":
            return np.asarray(chance.exponential(size=size) ** 1.5)
        return chance.standard_t(2, size=size)

    paired = unpaired = within = 0
    for _ in range(200):
        common = draw((6, 10))
        paired += permutation.permute_pairs(common + draw((6, 10)) - common - draw((6, 10))).min() <= 0.05
        unpaired += permutation.permute_samples(draw((6, 8)), draw((6, 8))).min() <= 0.05
        # All pairs of five schemes, which share their runs.
        schemes = draw((5, 9))
        pairs = list(itertools.combinations(range(5), 2))
        within += (
            permutation.permute_pairs(np.array([schemes[a] - schemes[b] for a, b in pairs])).min() <= 0.05
        )
    # The bound is 10 of 200; 18 or more occur by chance less than once in a hundred.
    assert max(paired, unpaired, within) < 18


# -- order --------------------------------------------------------------------------------------


def test_ranks_have_ties_where_no_order_is_shown() -> None:
    better = np.zeros((4, 4), dtype=bool)
    better[0, 1:] = True
    better[1, 3] = True
    assert ranking.rank_ranges(better) == [(1, 1), (2, 3), (2, 4), (3, 4)]
    assert ranking.rank_ranges(np.zeros((3, 3), dtype=bool)) == [(1, 3)] * 3


def test_the_frontier_has_the_undominated_points() -> None:
    points = np.array([[10.0, -20], [9, -10], [8, -15], [10, -20], [np.nan, -1]])
    assert ranking.on_frontier(points).tolist() == [True, True, False, True, False]


def test_support_of_the_frontier_is_the_share_of_resamples() -> None:
    chance = np.random.RandomState(9)
    values = np.stack([chance.normal(10, 0.5, (3, 8)), chance.normal(-20, 1.0, (3, 8))], axis=-1)
    values[2] -= 30
    picks = np.random.RandomState(SEED).randint(0, 8, size=(500, 8))
    expected = np.zeros(3)
    for pick in picks:
        middle = np.median(values[:, pick], axis=1)
        for one in range(3):
            beaten = any(
                (middle[o] >= middle[one]).all() and (middle[o] > middle[one]).any() for o in range(3)
            )
            expected[one] += not beaten
    assert ranking.frontier_support(values, 500) == pytest.approx(expected / 500)
    assert ranking.frontier_support(values)[2] == 0


def test_support_without_some_runs() -> None:
    values = np.stack([np.full((2, 6), 10.0), np.full((2, 6), -20.0)], axis=-1)
    values[1] -= 1
    values[0, :5] = np.nan
    first, second = ranking.frontier_support(values)
    # Resamples without the only run of the first scheme leave the second one on the frontier.
    assert first == pytest.approx(1 - (5 / 6) ** 6, abs=0.02)
    assert second == pytest.approx((5 / 6) ** 6, abs=0.02)
