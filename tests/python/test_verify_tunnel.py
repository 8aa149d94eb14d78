"""`python -m validation tunnel`: the statistics, the numbers of a list of packets, and the command."""

from __future__ import annotations

import itertools
import json
import os
import random
import sys
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import processes
import shell_kit
from narrows.errors import UsageError
from validation.tunnel import smirnov
from validation.tunnel.compare import DIFFERENT, EQUIVALENT, SAME, UNKNOWN, compare
from validation.tunnel.measure import NoDataError, measure
from validation.tunnel.output import by_chance, significant
from validation.tunnel.testbed import INSIDE, OUTSIDE, EmulatedPath
from validation.tunnel.work import Options, chosen, jobs

# -- the test of Kolmogorov and Smirnov ------------------------------------------------------------

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_distance_is_that_of_the_distributions() -> None:
    assert smirnov.distance([1, 2, 3], [4, 5, 6]) == 9
    assert smirnov.distance([1, 3, 5], [2, 4, 6]) == 3
    # Equal values are one common step.
    assert smirnov.distance([1, 1, 2], [1, 1, 2]) == 0
    # Up to 3: all against one half, in sixths.
    assert smirnov.distance([1, 2, 3], [2, 4]) == 3
    chance = random.Random(5)
    for _ in range(50):
        first = [chance.randrange(8) for _ in range(chance.randrange(1, 9))]
        second = [chance.randrange(8) for _ in range(chance.randrange(1, 9))]

        def share(sample: list[int], limit: int) -> float:
            return sum(one <= limit for one in sample) / len(sample)

        most = max(abs(share(first, x) - share(second, x)) for x in range(8))
        assert smirnov.distance(first, second) / (len(first) * len(second)) == pytest.approx(most)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (4, 4), (5, 3), (6, 4)])
def test_the_significance_counts_all_orders(n: int, m: int) -> None:
    """Every order of the values of both samples is equally likely."""
    found = [
        smirnov.distance(first, [one for one in range(n + m) if one not in first])
        for first in itertools.combinations(range(n + m), n)
    ]
    assert len(found) == comb(n + m, n)
    for apart in range(n * m + 2):
        share = sum(one >= apart for one in found) / len(found)
        assert smirnov.significance(n, m, apart) == pytest.approx(share, abs=1e-15)


def test_values_of_the_published_tables() -> None:
    """Massey, "Distribution table for the deviation between two sample cumulatives", Annals of Mathematical
    Statistics 23 (1952): the largest deviation (times n) with a probability of at most 5 % is 9 for n = 20, 8
    for 15."""
    for n, critical in ((20, 9), (15, 8), (10, 7), (5, 5)):
        assert smirnov.significance(n, n, critical * n) <= 0.05
        assert smirnov.significance(n, n, (critical - 1) * n) > 0.05
    statistic, p = smirnov.test([1, 2, 3], [4, 5, 6])
    assert statistic == 1
    assert p == pytest.approx(0.1)
    with pytest.raises(ValueError, match="empty"):
        smirnov.test([], [1])


def test_several_tests_at_once() -> None:
    # Holm's procedure: the smallest counts three times, the next twice, and none less than one before.
    assert smirnov.holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert smirnov.holm([0.9, 0.8]) == [1.0, 1.0]
    assert smirnov.holm([]) == []


# -- the comparison ----------------------------------------------------------------------------


def packets(*rows: tuple[int, int, int, int]) -> Any:
    """Packets by time of sending, time of arrival (-1: none), size, lateness; negative sizes go back."""
    table = np.array(rows, dtype=np.int64)
    return {
        "flow": np.ones(len(rows), dtype=np.uint16),
        "backward": table[:, 2] < 0,
        "size_bytes": np.abs(table[:, 2]).astype(np.uint32),
        "sent_ns": table[:, 0],
        "arrived_ns": table[:, 1],
        "late_ns": table[:, 3],
    }


def test_only_data_of_the_run_counts() -> None:
    table = packets(
        (50, 90, 1500, 0),  # before the start
        (100, 100_100, 1500, 0),
        (100, 900_000, -1500, 0),  # the other way
        (10_000, 10_001, 76, 0),  # no data
        (15_000, 300_100, 1500, 10_000),  # 10 us late
        (50_000, -1, 1500, 0),  # lost
        (900_000, 1_200_000, 1500, 0),  # still on the way at the end
        (999_999, -1, 1500, 0),
        (1_000_200, 1_100_000, 1500, 0),  # after the end
    )
    found = measure(table, 100, 1_000_000)
    assert found.packets == 2
    # Both packets in the 190 us between their arrivals, minus the lateness of one.
    assert found.throughput_bps == pytest.approx(2 * 1500 * 8e9 / 190_000)
    assert (found.delay_p50_ns, found.delay_p95_ns) == (100_000, 275_100)
    assert found.loss_ratio == pytest.approx(2 / 4)
    assert (found.first_loss_ns, found.size_bytes) == (49_900, 1500)
    # The first of the four gaps between five packets is 15 us.
    assert found.train_ratio == pytest.approx(1 / 4)
    # A tunnel adds to each packet, even if that makes it large enough.
    more = measure(table, 100, 1_000_000, overhead=56)
    assert more.throughput_bps == pytest.approx(2 * 1556 * 8e9 / 190_000)
    with pytest.raises(NoDataError):
        measure(table, 5_000_000, 10)


def runs_of(values: list[float], delays: list[float], verdict: str = "ok") -> list[dict[str, Any]]:
    return [
        {"verdict": verdict, "path": {"throughput_bps": value, "delay_p95_ns": delay}, "tunnel": None}
        for value, delay in zip(values, delays, strict=True)
    ]


def test_outcomes_tell_significance_and_size_apart() -> None:
    chance = random.Random(1)
    noise = [chance.gauss(0, 1e-3) for _ in range(40)]
    outside = runs_of([48e6 * (1 + one) for one in noise[:20]], [30e6 * (1 + one) for one in noise[:20]])

    def outcome_of(factor: float) -> list[str]:
        inside = runs_of(
            [48e6 * factor * (1 + one) for one in noise[20:]], [30e6 * (1 + one) for one in noise[20:]]
        )
        # Runs without information about the path do not count, whatever their numbers.
        inside += runs_of([1.0] * 20, [1.0] * 20, "invalid")
        rows = compare({"linux:reno": {"outside": outside, "inside": inside}}, [("outside", "inside")])
        assert [row.metric for row in rows] == ["throughput_bps", "delay_p95_ns"]
        assert significant(rows) == sum(row.outcome != SAME for row in rows)
        # D = 7/20 is the first value below 0.2, with a probability of 0.17.
        assert by_chance(rows) == pytest.approx(2 * 0.1745, abs=1e-3)
        difference = rows[0].difference
        assert difference == pytest.approx(factor - 1, abs=1e-3)
        assert rows[0].interval is not None
        assert rows[0].interval[0] < factor - 1 < rows[0].interval[1]
        return [row.outcome for row in rows]

    assert outcome_of(1.0) == [SAME, SAME]
    assert outcome_of(1.005) == [EQUIVALENT, SAME]
    assert outcome_of(1.05) == [DIFFERENT, SAME]
    few = compare({"linux:reno": {"outside": outside[:3], "inside": outside[3:6]}}, [("outside", "inside")])
    assert [row.outcome for row in few] == [UNKNOWN] * 2
    none = compare({"linux:reno": {"outside": outside, "inside": []}}, [("outside", "inside")])
    assert [(row.p, row.outcome) for row in none] == [(None, UNKNOWN)] * 2


ROAD = EmulatedPath("50 Mbit/s", "10 ms", "droptail 1 bdp", None, 2_000_000_000)


def test_each_round_has_every_run_once_in_its_own_order() -> None:
    options = Options(ROAD, schemes=("linux:a", "linux:b"), runs=6, seed=3)
    found = jobs(options)
    rounds = [found[at : at + 4] for at in range(0, 24, 4)]
    every = {(scheme, where) for scheme in options.schemes for where in (OUTSIDE, INSIDE)}
    for number, batch in enumerate(rounds, 1):
        assert {(job.scheme, job.where) for job in batch} == every
        assert {job.number for job in batch} == {number}
    assert len({tuple((job.scheme, job.where.name) for job in batch) for batch in rounds}) > 1
    # Each is a separate cell, which a later call reuses.
    cells = [job.cell(options).id for job in found]
    assert cells == [job.cell(options).id for job in jobs(options)] and len(set(cells)) == len(found)
    longer = Options(ROAD, longer_ns=150_500)
    name = "150.5 us longer"
    assert [where.name for where in longer.setups()] == ["outside", "inside", name]
    assert longer.pairs() == [("outside", "inside"), ("outside", name), (name, "inside")]
    # So that it is available later.
    assert longer.key() == Options(ROAD).key()


def test_names_of_schemes() -> None:
    assert chosen("cubic, linux:bbr,cubic") == ("linux:cubic", "linux:bbr")
    with pytest.raises(UsageError, match="empty name"):
        chosen("cubic,,bbr")


# -- the command -----------------------------------------------------------------------------------


def call(*arguments: str, cwd: Path) -> Any:
    return processes.run(
        [sys.executable, "-m", "validation", "tunnel", *arguments],
        seconds=240,
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)},
    )


def test_wrong_usage_is_refused(tmp_path: Path) -> None:
    done = call("--rate", "50", cwd=tmp_path)
    assert done.returncode == 2
    assert "--rate" in done.stderr


@pytest.mark.alone
def test_one_run_inside_and_outside(tmp_path: Path) -> None:
    if shell_kit.refusal():
        pytest.skip(shell_kit.refusal())
    options = ("--schemes", "reno", "--runs", "1", "--rate", "20 Mbit/s", "-o", "out", "--json")
    done = call(*options, "--seconds", "1", cwd=tmp_path)
    assert done.returncode == 0, (done.stdout, done.stderr)
    document = json.loads(done.stdout)
    assert document == json.loads((tmp_path / "out" / "verify-tunnel.json").read_text())
    assert [row["outcome"] for row in document["rows"]] == ["unknown"] * 2
    places = document["runs"]["linux:reno"]
    (outside,), (inside,) = places["outside"], places["inside"]
    for run in (outside, inside):
        if run["verdict"] not in ("ok", "degraded"):
            pytest.skip(f"this machine is too busy: {run['reasons']}")
        # Nothing is faster than the path.
        assert run["rtt_min_ns"] is None or run["rtt_min_ns"] > 20_000_000
        assert 10_000_000 <= run["path"]["delay_p50_ns"] <= run["path"]["delay_p95_ns"]
        # 50 kB before 20 Mbit/s take 20 ms, another packet may be in service, and 10 ms are propagation.
        assert run["path"]["delay_p95_ns"] <= 31_000_000
        # Even a sender that is held up does not leave three quarters of the path empty.
        assert 5e6 < run["path"]["throughput_bps"] <= 20.1e6
    # The packets of both have the same size on the path.
    assert outside["path"]["size_bytes"] == inside["path"]["size_bytes"] == 1500
    assert outside["tunnel"] is None
    # The tunnel's logs have the same packets; those at the beginning or the end of the run may count in only
    # one of both.
    seen, told = inside["path"]["packets"], inside["tunnel"]["packets"]
    assert abs(told - seen) <= 0.05 * seen
    assert document["differing_settings"] == []
    # The second time nothing remains to be done.
    again = call(*options, "--seconds", "1", cwd=tmp_path)
    assert again.returncode == 0
    assert json.loads(again.stdout)["runs"] == document["runs"]
    assert "0 runs in about" in again.stderr
    assert not (tmp_path / "out" / "work").exists()
