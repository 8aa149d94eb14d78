"""`narrows compare`: statements about campaigns, with synthetic results and with simulated ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from compare_kit import NETWORK, Values, campaign, compare, flow, run_command, runs, ten
from narrows.comparison.document import Request
from narrows.errors import DataError


def outcomes(document: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    return {
        (row["title"], name): finding["outcome"]
        for row in document["rows"]
        for name, finding in row["metrics"].items()
    }


def claimed(document: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    found = outcomes(document)
    return {key: outcome for key, outcome in found.items() if outcome in ("better", "worse", "different")}


# -- what is shown ------------------------------------------------------------------------------


def test_a_planted_regression_of_5_percent_in_one_of_ten_schemes_is_found(tmp_path: Path) -> None:
    for seed in range(5):
        before = campaign(tmp_path / f"a{seed}", ten(2 * seed, common=seed))
        after = campaign(tmp_path / f"b{seed}", ten(2 * seed + 1, common=seed, bbr3=0.95))
        document = compare(Request([before, after]))
        found = claimed(document)
        assert found.pop(("bbr3", "throughput_bps")) == "worse"
        assert set(found) <= {("bbr3", "utilization_ratio")}
        row = next(row for row in document["rows"] if row["title"] == "bbr3")
        relative = row["metrics"]["throughput_bps"]["relative"]
        assert relative["low"] < -0.04
        assert relative["low"] <= relative["estimate"] <= relative["high"] < 0
        result = run_command(before, after, "--fail-on", "throughput worse by 5 %")
        assert result.exit_code == 5, result.output
        assert "fails   throughput worse by 5 %: bbr3" in result.stdout


def test_campaigns_that_were_made_again_are_not_claimed_to_differ(tmp_path: Path) -> None:
    base = campaign(tmp_path / "base", ten(0, common=50))
    claims = 0
    for seed in range(20):
        again = campaign(
            tmp_path / f"again{seed}", ten(seed + 1, common=60 + seed), first_seed=9000 + 100 * seed
        )
        claims += bool(claimed(compare(Request([base, again]))))
    # The bound is 5 % of 20.
    assert claims <= 1


def test_paired_campaigns_without_a_difference_are_not_claimed_to_differ(tmp_path: Path) -> None:
    claims = 0
    for seed in range(20):
        sides = [
            campaign(tmp_path / f"{seed}{side}", ten(500 + 2 * seed + side, common=seed)) for side in (0, 1)
        ]
        claims += bool(claimed(compare(Request(sides))))
    assert claims <= 1


def test_runs_of_the_same_seed_are_paired(tmp_path: Path) -> None:
    # The path's effect on each run is ten times the difference, and the same on both sides.
    before = campaign(tmp_path / "a", {"cubic": runs(1, common=3, noise=0.001)})
    paired = campaign(tmp_path / "b", {"cubic": runs(2, common=3, noise=0.001, factor=0.99)})
    other = campaign(tmp_path / "c", {"cubic": runs(2, common=4, noise=0.001, factor=0.99)}, first_seed=7000)
    found = compare(Request([before, paired]))
    assert found["rows"][0]["paired"]
    assert outcomes(found)["cubic", "throughput_bps"] == "worse"
    found = compare(Request([before, other]))
    assert not found["rows"][0]["paired"]
    assert outcomes(found)["cubic", "throughput_bps"] == "no difference shown"


def test_three_runs_show_nothing_and_say_so(tmp_path: Path) -> None:
    sides = [
        campaign(tmp_path / name, {"cubic": runs(seed, 3, factor=factor)})
        for name, seed, factor in (("a", 1, 1.0), ("b", 2, 0.5))
    ]
    result = run_command(*sides)
    assert result.exit_code == 0, result.output
    assert "5 comparisons show nothing: there are too few runs." in result.stdout
    assert "3 pairs of runs: at least 6 are needed" in result.stdout
    # A gate that can't close is useless.
    result = run_command(*sides, "--fail-on", "throughput worse by 5 %")
    assert result.exit_code == 3
    assert "can't be decided: 3 pairs of runs" in str(result.exception)


def test_identical_runs_are_compared_exactly(tmp_path: Path) -> None:
    one: Values = {"throughput_bps": 10e6, "delay_p95_ns": 50e6, "loss_ratio": 0.0}
    other: Values = {"throughput_bps": 9e6, "delay_p95_ns": 50e6, "loss_ratio": 0.0}
    sides = [campaign(tmp_path / "a", {"cubic": [one] * 3}), campaign(tmp_path / "b", {"cubic": [other] * 3})]
    document = compare(Request(sides))
    assert claimed(document) == {("cubic", "throughput_bps"): "worse"}
    finding = document["rows"][0]["metrics"]["throughput_bps"]
    assert (finding["exact"], finding["p"], finding["base"]["ci95"]) == (True, None, None)
    assert outcomes(document)["cubic", "delay_p95_ns"] == "identical"
    result = run_command(*sides, "--fail-on", "throughput worse by 5 %")
    assert result.exit_code == 5
    assert "worse, exact" in result.stdout
    assert "[" not in result.stdout.split("cubic", 1)[1].split("\n", 1)[0].replace("[Mbit/s]", "")
    assert run_command(sides[0], sides[0].rename(tmp_path / "c")).exit_code == 3


def test_a_run_that_differs_among_identical_ones_is_chance(tmp_path: Path) -> None:
    one: Values = {"throughput_bps": 10e6}
    odd: Values = {"throughput_bps": 9.99e6}
    before = campaign(tmp_path / "a", {"cubic": [one] * 10})
    after = campaign(tmp_path / "b", {"cubic": [*[one] * 9, odd]})
    assert not claimed(compare(Request([before, after])))


def test_differences_below_the_lateness_are_not_claimed(tmp_path: Path) -> None:
    def made(name: str, add: float, late: int) -> Path:
        values = [{"delay_p95_ns": 40e6 + 1000 * number + add} for number in range(10)]
        return campaign(tmp_path / name, {"cubic": values}, where="emulate", lateness_ns=late)

    found = compare(Request([made("a", 0, 100_000), made("b", 50_000, 100_000)]))
    finding = found["rows"][0]["metrics"]["delay_p95_ns"]
    assert (finding["outcome"], finding["resolution"]) == ("no difference shown", 100_000)
    assert finding["why"] == "the difference is below the lateness of the runs"
    found = compare(Request([made("c", 0, 100_000), made("d", 500_000, 100_000)]))
    assert found["rows"][0]["metrics"]["delay_p95_ns"]["outcome"] == "worse"


def test_invalid_runs_count_for_nothing_and_are_seen(tmp_path: Path) -> None:
    verdicts = {
        ("cubic", 2): "invalid",
        ("cubic", 3): "degraded",
        ("reno", 1): "failed",
        ("reno", 2): "pending",
    }
    before = campaign(tmp_path / "a", {"cubic": runs(1), "reno": runs(2)})
    after = campaign(tmp_path / "b", {"cubic": runs(3), "reno": runs(4)}, verdicts=verdicts)
    result = run_command(before, after)
    assert "9 of 10, 1 degraded, 1 invalid" in result.stdout
    assert "8 of 9, 1 failed" in result.stdout
    assert "1 of 20 runs are not finished" in " ".join(result.stdout.split())
    document = json.loads(run_command(before, after, "--json").stdout)
    assert document["rows"][0]["metrics"]["throughput_bps"]["runs"] == 9


def test_a_scheme_gains_nothing_by_failing(tmp_path: Path) -> None:
    verdicts = {("reno", number): "failed" for number in range(1, 11)}
    before = campaign(tmp_path / "a", {"cubic": runs(1), "reno": runs(2)})
    after = campaign(tmp_path / "b", {"cubic": runs(3), "reno": runs(4)}, verdicts=verdicts)
    result = run_command(before, after, "--fail-on", "throughput worse by 5 %")
    assert result.exit_code == 5
    assert "reno (no valid run in B)" in " ".join(result.stdout.split())
    assert "none of 10, 10 failed" in result.stdout


def test_skipped_schemes_say_why(tmp_path: Path) -> None:
    before = campaign(tmp_path / "a", {"cubic": runs(1), "linux:bbr": runs(2)})
    after = campaign(tmp_path / "b", {"cubic": runs(3)}, skipped={"linux:bbr": "the kernel has no bbr"})
    result = run_command(before, after)
    assert "linux:bbr: skipped in B: the kernel has no bbr" in " ".join(result.stdout.split())


# -- set-ups ------------------------------------------------------------------------------------


def test_differences_come_first(tmp_path: Path) -> None:
    before = campaign(tmp_path / "a", {"cubic": runs(1)})
    newer = {"versions": {"narrows": "0.2.0", "agent": {"git": "bbbbbbbbbbbb"}}, "host": {"kernel": "7.0.1"}}
    rows = [{"label": "cubic", "flows": [flow("cubic", params={"beta": 0.8})], "values": {}}]
    after = campaign(
        tmp_path / "b", {"cubic": runs(2)}, document=newer, changes={"schemes": rows, "sample_ns": 5}
    )
    result = run_command(before, after)
    text = " ".join(result.stdout.split())
    assert "narrows 0.1.0 (aaaaaaaaaaaa) in A, 0.2.0 (bbbbbbbbbbbb) in B" in text
    assert "kernel 6.18.44 in A, 7.0.1 in B" in text
    assert "beta none in A, 0.8 in B" in text
    assert text.index("The set-ups differ in") < text.index("is shown by")
    assert "sample" not in text


def changed_queue() -> dict[str, Any]:
    network = json.loads(json.dumps(NETWORK))
    network["forward"][0]["queue"]["bytes"] = 120_000
    return {"network": network}


@pytest.mark.parametrize(
    ("changes", "says", "condition"),
    [
        (
            changed_queue,
            "forward.0 is 12 Mbit/s with droptail 60 kB in A and 12 Mbit/s with droptail 120 kB in B",
            "network",
        ),
        (lambda: {"duration_ns": 20_000_000_000}, "duration is 10 s in A and 20 s in B", "duration"),
        (
            lambda: {"measure": {"from_ns": 1_000_000_000}},
            "part measured is the whole run in A and Only the part of each run from 1 s is measured in B",
            "measure",
        ),
        (
            lambda: {
                "schemes": [{"label": "cubic", "flows": [flow("cubic"), flow("cubic", 2)], "values": {}}]
            },
            "flows is 1, starting at 0 s in A and 2, starting at 0 s in B",
            "flows",
        ),
        (
            lambda: {"timeline": [{"at_ns": 10**9, "element": "forward.1", "set": {"delay": 5}}]},
            "timeline is none in A and at 1 s forward.1: delay 5 in B",
            "timeline",
        ),
    ],
)
def test_other_conditions_are_refused_unless_they_are_meant(
    tmp_path: Path, changes: Callable[[], dict[str, Any]], says: str, condition: str
) -> None:
    before = campaign(tmp_path / "a", {"cubic": runs(1)})
    after = campaign(tmp_path / "b", {"cubic": runs(2)}, changes=changes())
    result = run_command(before, after)
    assert result.exit_code == 3, result.output
    message = str(result.exception)
    assert "are not comparable, since their schemes met different conditions" in message
    assert says in message
    assert message.endswith(f"say --across {condition}")
    allowed = run_command(before, after, "--across", condition)
    assert allowed.exit_code == 0, allowed.output
    assert "conditions of the runs" in allowed.stdout
    assert run_command(before, after, "--across", "all").exit_code == 0


def test_real_paths_are_not_described(tmp_path: Path) -> None:
    before = campaign(tmp_path / "a", {"cubic": runs(1)}, where="emulate")
    sessions = [{"hosts": {"here": {}, "there": {"kernel": "5.15.0", "cpus": 4}}}]
    changes = {"network": {"kind": "real"}}
    after = campaign(
        tmp_path / "b", {"cubic": runs(2)}, where="hosts", changes=changes, document={"sessions": sessions}
    )
    result = run_command(before, after)
    assert result.exit_code == 0, result.output
    assert "emulate in A, hosts in B" in result.stdout
    assert "none in A, kernel 5.15.0, 4 processors in B" in " ".join(result.stdout.split())


def test_other_definitions_are_refused(tmp_path: Path) -> None:
    before = campaign(tmp_path / "a", {"cubic": runs(1)})
    after = campaign(tmp_path / "b", {"cubic": runs(2)})
    document = json.loads((after / "results.json").read_text())
    document["metrics"][0]["definition"] = "Something else."
    (after / "results.json").write_text(json.dumps(document))
    with pytest.raises(DataError, match=r"definition of throughput_bps is as in .*say --across metrics"):
        compare(Request([before, after]))


def test_nothing_in_common_is_refused(tmp_path: Path) -> None:
    before = campaign(tmp_path / "a", {"cubic": runs(1)})
    after = campaign(tmp_path / "b", {"linux:cubic": runs(2)})
    result = run_command(before, after)
    assert result.exit_code == 3
    assert "have no scheme in common" in str(result.exception)
    result = run_command(before, after, "--pair", "cubic=linux:cubic", "--no-traces")
    assert result.exit_code == 0, result.output
    assert "linux:cubic for cubic" in result.stdout


def test_unreadable_input_is_reported_in_one_sentence(tmp_path: Path) -> None:
    sides = [campaign(tmp_path / name, {"cubic": runs(place)}) for place, name in enumerate("abcd")]
    (sides[1] / "campaign.json").write_text("{")
    newer = json.loads((sides[3] / "campaign.json").read_text()) | {"format": "narrows/campaign/2"}
    (sides[3] / "campaign.json").write_text(json.dumps(newer))
    result = run_command(*sides)
    assert result.exit_code == 3
    assert "is damaged" in result.stdout
    assert "update narrows" in result.stdout
    assert "comparisons" in result.stdout
    document = json.loads(run_command(*sides, "--json").stdout)
    assert [one["folder"] for one in document["unread"]] == [str(sides[1]), str(sides[3])]
    assert [side["name"] for side in document["sides"]] == ["A", "C"]
    for pair in (sides[:2], [sides[0], sides[3]]):
        result = run_command(*pair)
        assert result.exit_code == 3
        assert not result.stdout


def test_a_campaign_that_has_no_run_yet(tmp_path: Path) -> None:
    before = campaign(tmp_path / "a", {"cubic": runs(1, 2)})
    waiting = {("cubic", 1): "pending", ("cubic", 2): "pending"}
    after = campaign(tmp_path / "b", {"cubic": runs(2, 2)}, verdicts=waiting)
    result = run_command(before, after)
    assert result.exit_code == 3
    assert "none of its 2 runs has finished" in str(result.exception)


# -- schemes of one campaign --------------------------------------------------------------------


def ranked(tmp_path: Path) -> Path:
    return campaign(
        tmp_path / "one",
        {
            "cubic": runs(1),
            "copa": runs(2, factor=0.7),
            "vegas": runs(3, factor=0.7),
            "exp": runs(4, factor=0.3),
        },
    )


def test_ranks_are_those_that_the_runs_leave_open(tmp_path: Path) -> None:
    document = compare(Request([ranked(tmp_path)]))
    ranks = {
        one["metric"]: {entry["scheme"]: (entry["from"], entry["to"]) for entry in one["schemes"]}
        for one in document["ranks"]
    }
    assert ranks["throughput_bps"] == {"cubic": (1, 1), "copa": (2, 3), "vegas": (2, 3), "exp": (4, 4)}
    assert ranks["loss_ratio"]["cubic"] == (1, 4)
    frontier = {entry["scheme"]: entry for entry in document["frontiers"][0]["schemes"]}
    assert frontier["cubic"]["on"]
    assert frontier["cubic"]["support"] == 1
    assert frontier["exp"]["support"] < 1
    text = run_command(tmp_path / "one", columns=100).stdout
    assert "(2-3)" in text
    assert "yes, 100 %" in text


def test_schemes_are_compared_with_a_single_one(tmp_path: Path) -> None:
    document = compare(Request([ranked(tmp_path)], against="copa"))
    found = {key: outcome for key, outcome in claimed(document).items() if key[1] == "throughput_bps"}
    assert found == {("cubic", "throughput_bps"): "better", ("exp", "throughput_bps"): "worse"}
    result = run_command(tmp_path / "one", "--against", "cobic")
    assert result.exit_code == 2
    assert 'did you mean "cubic"?' in str(result.exception)


def test_rows_of_a_matrix_are_compared_where_conditions_are_the_same(tmp_path: Path) -> None:
    rows = []
    schemes = {}
    for rate in ("1 Mbit/s", "10 Mbit/s"):
        for name in ("cubic", "reno"):
            label = f"{name} (rate {rate})"
            network = json.loads(json.dumps(NETWORK))
            network["forward"][0]["rate"]["rate"] = int(rate.split()[0]) * 1_000_000
            rows.append(
                {
                    "label": label,
                    "flows": [flow(name)],
                    "values": {"rate": rate},
                    "overlay": {"network": network},
                }
            )
            schemes[label] = runs(len(rows))
    folder = campaign(tmp_path / "a", schemes, changes={"schemes": rows})
    document = compare(Request([folder]))
    assert len(document["rows"]) == 2
    assert {one["values"] for one in document["frontiers"]} == {"rate 1 Mbit/s", "rate 10 Mbit/s"}
    against = compare(Request([folder], against="cubic"))
    assert {row["base"]["scheme"] for row in against["rows"]} == {
        "cubic (rate 1 Mbit/s)",
        "cubic (rate 10 Mbit/s)",
    }
    pair = ("cubic (rate 1 Mbit/s)", "cubic (rate 10 Mbit/s)")
    with pytest.raises(DataError, match=r"forward\.0 is 1 Mbit/s .* and 10 Mbit/s"):
        compare(Request([folder], pairs=[pair], traces=False))
    assert compare(Request([folder], pairs=[pair], traces=False, across=["network"]))["rows"]
    assert "rate 10 Mbit/s" in run_command(folder).stdout


def test_limits_need_a_base(tmp_path: Path) -> None:
    folder = ranked(tmp_path)
    result = run_command(folder, "--fail-on", "throughput worse by 5%")
    assert result.exit_code == 2
    assert "--fail-on needs a base" in str(result.exception)
    assert run_command(folder, "--against", "cubic", "--fail-on", "throughput worse by 5%").exit_code == 5


def test_one_scheme_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    result = run_command(campaign(tmp_path / "a", {"cubic": runs(1)}))
    assert result.exit_code == 3
    assert "name another campaign too" in str(result.exception)


def test_three_campaigns_are_one_family_of_tests(tmp_path: Path) -> None:
    sides = [
        campaign(tmp_path / str(n), ten(n, common=1, **({"bbr3": 0.9} if n == 2 else {}))) for n in range(3)
    ]
    document = compare(Request(sides))
    worse = [row["other"]["side"] for row in document["rows"]
             if row["metrics"]["throughput_bps"]["outcome"] == "worse"]  # fmt: skip
    assert worse == ["C"]
    assert document["tests"] == 100
    assert "bbr3 in C" in run_command(*sides).stdout


# -- limits -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        ("throughput worse by 10 %", 5),
        ("throughput worse by 15 %", 0),
        ("throughput worse", 5),
        ("throughput_bps is worse by 1 Mbit/s", 5),
        ("thr worse by 2 Mbit/s", 0),
        ("reno: throughput worse by 10 %", 0),
        ("bbr3: throughput worse by 10 %", 5),
        ("util worse by 5 points", 5),
        ("utilization worse by 30 pp", 0),
        ("throughput better by 1 %", 0),
        ("throughput different", 5),
        ("p95 delay worse by 2 ms", 0),
        ("loss worse by 1 %", 0),
    ],
)
def test_limits_decide_the_exit_code(tmp_path: Path, limit: str, code: int) -> None:
    before = campaign(tmp_path / "a", {"bbr3": runs(1), "reno": runs(2)})
    after = campaign(tmp_path / "b", {"bbr3": runs(3, factor=0.9), "reno": runs(4)})
    result = run_command(before, after, "--fail-on", limit)
    assert result.exit_code == code, result.output


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ("", "is not a limit"),
        ("throughput", "is not a limit"),
        ("througput worse by 5 %", 'did you mean "throughput"?'),
        ("throughput worse by 5", "has no unit"),
        ("throughput worse by 5 ms", "is not a rate"),
        ("throughput worse by 5 points", "is not in per cent"),
        ("vegas: throughput worse", "nothing that is compared is called vegas"),
        ("offered load worse", "neither more nor less is better"),
        ("convergence time, windows of 1 s worse", "compare converged_1s"),
    ],
)
def test_limits_that_make_no_sense(tmp_path: Path, limit: str, says: str) -> None:
    before, after = (campaign(tmp_path / name, {"reno": runs(place)}) for place, name in enumerate("ab"))
    result = run_command(before, after, "--fail-on", limit)
    assert result.exit_code in (2, 3)
    assert says in str(result.exception)
