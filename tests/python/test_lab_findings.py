"""The findings in tables as sentences, and the agreement of two tables: hand-made ones with ties, gaps and
negative values."""

from __future__ import annotations

import math

import pytest

from narrows.lab.arithmetic import combine, jain
from narrows.lab.findings import findings, ranks
from narrows.statistics.agreement import Agreement, agreement, total


def told(table: dict[str, dict[str, float | None]]) -> list[str]:
    return findings("loss", table, lambda value: f"{value:g} %")


def test_the_same_order_in_all_conditions_is_stated_once() -> None:
    assert told({"day": {"a": 3, "b": 2, "c": 1}, "night": {"a": 9, "b": 8, "c": 7}}) == [
        "Highest loss: a (3 % to 9 %) in both conditions.",
        "Lowest loss: c (1 % to 7 %) in both conditions.",
        "The order of loss is the same in both conditions: a > b > c.",
    ]


def test_changes_of_rank_are_reported() -> None:
    found = told(
        {
            "home": {"a": 4, "b": 3, "c": 2, "d": 1},
            "train": {"a": 4, "b": 3, "c": 1, "d": 2},
            "office": {"a": 1, "b": 3, "c": 2, "d": 4},
        }
    )
    assert found == [
        "Highest loss: a in 2 of 3 conditions (home, train); d in 1 of 3 conditions (office).",
        "Lowest loss: d in 1 of 3 conditions (home); c in 1 of 3 conditions (train); a in 1 of 3 conditions"
        " (office).",
        "Constant orders of loss in all 3 conditions: 1 of 6 pairs keep their order, such as b > c.",
        "The rank of a in loss changes most: 1 in home, 4 in office.",
        "The order of loss changes most from train to office.",
    ]


def test_of_many_conditions_the_first_are_named() -> None:
    table: dict[str, dict[str, float | None]] = {f"{n}": {"a": 2, "b": 1} for n in range(7)}
    table["other, evening"] = {"a": 1, "b": 2}
    assert told(table)[0] == (
        "Highest loss: a in 7 of 8 conditions (0, 1, 2, 3 and 3 more);"
        " b in 1 of 8 conditions (other, evening)."
    )
    table["last"] = {"a": 1, "b": 2}
    assert told(table)[0].endswith("b in 2 of 9 conditions (other, evening; last).")


def test_single_runs_that_differ_by_less_than_chance_are_ties() -> None:
    table: dict[str, dict[str, float | None]] = {"day": {"a": 1000, "b": 999.8, "c": 800}}
    of_one_run = {"day": {"a", "b", "c"}}
    assert findings("loss", table, lambda value: f"{value:g} %", of_one_run) == [
        "Highest loss: a and b (1000 %).",
        "Lowest loss: c (800 %).",
        "Loss within 1 %, which single runs do not tell apart: a and b (day).",
    ]
    # Several runs, or a run beside a published number, are compared exactly.
    for single in ({}, {"day": {"a"}}, {"night": {"a", "b"}}):
        assert "Highest loss: a (1000 %)." in findings("loss", table, lambda value: f"{value:g} %", single)
    # Small steps do not tie the ends of a chain.
    chain: dict[str, dict[str, float | None]] = {"day": {"a": 100, "b": 99.2, "c": 98.4}}
    assert "Lowest loss: c (98.4 %)." in findings("loss", chain, lambda value: f"{value:g} %", of_one_run)


def test_ties_are_named_and_share_a_rank() -> None:
    found = told({"day": {"a": 2, "b": 2, "c": 1}, "night": {"a": 2, "b": 1, "c": 1}})
    assert "Highest loss: a and b in 1 of 2 conditions (day); a in 1 of 2 conditions (night)." in found
    assert "Equal loss: a and b (day)." in found
    assert "Equal loss: b and c (night)." in found
    assert (
        "Constant orders of loss in both conditions: 1 of 3 pairs keep their order, such as a > c." in found
    )
    assert ranks({"a": 2, "b": 2, "c": 1}) == {"a": 1.5, "b": 1.5, "c": 3}


def test_equal_values_have_no_first_place() -> None:
    assert told({"day": {"a": 1, "b": 1}}) == ["Equal loss: a and b (day)."]


def test_missing_values_are_named_and_not_ranked() -> None:
    found = told({"day": {"a": 3, "b": None, "c": 1}, "night": {"a": 3, "b": 9, "c": math.nan}})
    assert "No value of loss: b (day); c (night)." in found
    assert "Highest loss: a in 1 of 2 conditions (day); b in 1 of 2 conditions (night)." in found
    assert not any("a > b" in text for text in found)


def test_negative_values_are_named_and_not_ranked() -> None:
    found = told({"day": {"a": 3, "b": -0.5, "c": 1}, "night": {"a": 3, "b": 2, "c": 1}})
    assert "Negative loss, which is not a measurement and not ranked: b in day (-0.5 %)." in found
    assert "Lowest loss: c (1 % to 1 %) in both conditions." not in found
    assert "Lowest loss: c (1 %) in both conditions." in found


def test_a_table_without_a_usable_value_has_no_order() -> None:
    assert told({"day": {"a": None, "b": -1}}) == [
        "No value of loss: a (day).",
        "Negative loss, which is not a measurement and not ranked: b in day (-1 %).",
    ]
    assert told({}) == []
    assert told({"day": {"a": 1}}) == []


def test_kendalls_tau_with_ties() -> None:
    # Agresti, "Analysis of Ordinal Categorical Data": tau-b counts the ties of one side only in that side's
    # factor.
    found = agreement([1, 2, 3, 3], [1, 3, 2, 4])
    assert (found.same, found.reversed, found.ties_first, found.ties_second) == (4, 1, 1, 0)
    assert found.tau == pytest.approx((4 - 1) / math.sqrt(5 * 6))
    assert found.same_signs == pytest.approx(4 / 5)
    assert agreement([1, 2, 3], [3, 2, 1]).tau == -1
    assert agreement([1, 2, 3], [1, 2, 3]).tau == 1


def test_tables_without_an_order_have_no_tau() -> None:
    assert agreement([1, 1], [1, 2]).tau is None
    assert agreement([1, 1], [1, 2]).same_signs is None
    assert agreement([1, 2], [1, 1]).same_signs == 0
    assert agreement([], []).tau is None
    assert agreement([1, 1], [1, 1]) == Agreement(ties_both=1)


def test_pairs_count_within_their_group_only() -> None:
    both = total([agreement([1, 2], [1, 2]), agreement([10, 20], [5, 4])])
    assert (both.same, both.reversed, both.pairs) == (1, 1, 2)
    assert both.tau == 0


def test_jains_index_is_1_for_equal_values() -> None:
    assert jain([1, 1, 1]) == 1
    assert jain([1, 0]) == 0.5
    assert jain([0, 0]) == 1
    assert combine([1, 3], "mean") == 2
    assert combine([1, 3], "sum") == 4


def test_a_family_without_published_values_is_answered_by_what_its_runs_show() -> None:
    from narrows.documents import laboratory
    from narrows.documents.data import from_data
    from narrows.lab.answer import sentences

    counts = (
        "cells",
        "artefacts",
        "not_measured",
        "pairs",
        "same",
        "reversed",
        "ties_published",
        "ties_ours",
    )
    errors = ("mean_absolute_error", "mean_relative_error", "mean_log_error", "tau", "same_signs")
    accuracy = dict.fromkeys(counts, 0) | dict.fromkeys(errors)
    column = {
        "name": "loss",
        "label": "loss",
        "metric": {"name": "loss_ratio", "label": "loss", "unit": "1", "show_unit": "%", "show_scale": 100},
        "definition": "lost packets",
        "statistic": "median over runs",
        "cells": [],
        "all": accuracy,
        "ranked": accuracy,
        "by_case": {},
        "reversed": [],
        "findings": {"ours": ["Highest loss: a (3 %)."], "theirs": []},
    }
    shown = "There is one valid run of each scheme, which shows no order among them."
    experiment = {
        "name": "one",
        "what": "",
        "folder": "out/one",
        "schemes": {"a": "cubic"},
        "cases": ["all"],
        "scenario": "one",
        "hash": "0",
        "seconds": 1.0,
        "runs": 1,
        "cells": 1,
        "verdicts": {"ok": 1},
        "narrows": None,
        "kernel": {},
        "answer": [shown],
    }
    document: dict[str, object] = {
        "format": laboratory.FORMAT,
        **dict.fromkeys(("lab", "title", "question", "where", "folder"), "x"),
        **dict.fromkeys(("source", "quick")),
        "experiments": [experiment],
        "columns": [column],
        "ranks": {"among": [], "why": None},
        **{name: [] for name in ("not_run", "relations", "expect", "certain", "assumed", "tried")},
        **{name: [] for name in ("artefacts", "answer", "figures")},
    }
    assert sentences(from_data(document, laboratory.LabReport)) == [shown]
