"""Fairness between round-trip times: the known order of schemes, on the dumbbell of NCSU in simulation."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import processes
from narrows import _native

#: BIC as published (Xu, Harfoush and Rhee, INFOCOM 2004): a maximum step of 32 packets, and a reduction by an
#: eighth after a loss. The defaults of `bic` are the constants of Linux, with which it is fairer.
BIC = {"scheme": "bic", "beta": 0.875, "max_increment": "32 packets"}
#: From the least to the most fair; schemes of one place are equally fair. Where losses hit both flows, a
#: scheme whose response function falls with p^-d shares by the ratio of round-trip times to the power of 1 /
#: (1 - d): without bound for Scalable TCP (d = 1), 5.6 for HighSpeed TCP (0.82), 2 for Reno (0.5). BIC's long
#: steps make it unfair, but less so than HighSpeed TCP (its authors: 13 and 29 with a ratio of three). CUBIC
#: grows by time and not by round trips, and shares about in the inverse ratio; H-TCP also scales its growth
#: with the round-trip time.
#:
#: Measured values: 36, 13.3, 7.5, 3.1, 1.24 and 1.50 (geometric means of eight runs; for Scalable of two).
#: Single runs spread by a factor of 1.2 around that. Places differ by 1.7 and more: between two that each
#: have two runs these are three standard deviations; Scalable and Reno are 2.4 and more away from their
#: neighbours, four deviations with one run. Schemes of one place must be within 1.6, four deviations of a
#: mean of two runs. With nearer second flows (22 and 42 ms) the far flow of every aggressive scheme is down
#: to windows in which all of them behave like Reno.
ORDER: tuple[tuple[str | dict[str, object], ...], ...] = (
    ("scalable",),
    ("highspeed",),
    (BIC,),
    ("reno",),
    ("cubic2008", "htcp"),
)
SAME_PLACE = 1.6
#: Seconds, number of runs, and schemes.
Campaign = tuple[int, int, Sequence[Sequence[str | dict[str, object]]]]
#: The round trip of the second flow is 82 ms, against 162 ms of the first.
DELAY = "39 ms"
#: Seconds, number of runs and schemes of each campaign. The first three schemes need minutes until their
#: flows share as they will in the end, the others come near it in one.
CAMPAIGNS: tuple[Campaign, ...] = (
    (300, 1, ORDER[:1]), (300, 2, ORDER[1:3]), (100, 1, ORDER[3:4]), (100, 2, ORDER[4:]),
)  # fmt: skip


def ratio(cell: Path, seconds: int) -> float:
    """The throughput of the flow with the short round trip divided by the other's, in the second half: until
    then the first flow gives up the share that it had alone."""
    flows = _native.throughput_series(str(cell), 10**9)["flows"]
    far, near = (float(np.sum(flows[flow]["arrived_bps"][seconds // 2 : seconds])) for flow in (1, 2))
    return near / far


def ratios(folder: Path, seconds: int, runs: int, schemes: Sequence[object]) -> dict[str, list[float]]:
    """The ratios of all runs of each scheme."""
    changes = [
        f"schemes={json.dumps(schemes)}",
        "record=bins",
        f"matrix={{topology.dumbbell.hosts.two.access.0.delay: [{DELAY}]}}",
    ]
    out = f"out-{seconds}-{runs}"
    command = [sys.executable, "-m", "narrows", "run", "rtt-fairness", "--where", "simulate", "--no-report"]
    command += ["-o", out, "--time", f"{seconds} s", "--runs", str(runs)]
    for change in changes:
        command += ["--set", change]
    done = processes.run(command, cwd=folder, seconds=1000)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[float]] = {}
    for row in json.loads((folder / out / "results.json").read_text())["rows"]:
        if row["flow"] == 1:
            cell = folder / out / "cells" / row["cell"]
            found.setdefault(row["flow_scheme"].split()[0], []).append(ratio(cell, seconds))
    return found


def called(scheme: str | dict[str, object]) -> str:
    return scheme if isinstance(scheme, str) else str(scheme["scheme"])


def check_order(
    folder: Path, order: Sequence[Sequence[str | dict[str, object]]], campaigns: Sequence[Campaign]
) -> None:
    found: dict[str, list[float]] = {}
    expected: dict[str, int] = {}
    for seconds, runs, chosen in campaigns:
        schemes = list(itertools.chain(*chosen))
        expected |= dict.fromkeys(map(called, schemes), runs)
        found |= ratios(folder, seconds, runs, schemes)
    places = [[called(scheme) for scheme in place] for place in order]
    assert {scheme: len(ratios) for scheme, ratios in found.items()} == expected
    means = {name: float(np.exp(np.mean(np.log(each)))) for name, each in found.items()}
    spans = [sorted(means[name] for name in place) for place in places]
    assert all(worse[0] > better[-1] for worse, better in itertools.pairwise(spans)), means
    assert all(span[-1] < SAME_PLACE * span[0] for span in spans), means


@pytest.mark.study
@pytest.mark.timeout(600)  # half a minute on a quiet machine
def test_scalable_reno_and_schemes_that_grow_by_time_share_in_the_known_order(tmp_path: Path) -> None:
    check_order(tmp_path, (ORDER[0], *ORDER[3:]), (CAMPAIGNS[0], *CAMPAIGNS[2:]))


@pytest.mark.nightly
@pytest.mark.timeout(1100)  # a minute or two on a quiet machine: a hundred million packets
def test_schemes_are_as_fair_between_round_trip_times_as_is_known(tmp_path: Path) -> None:
    check_order(tmp_path, ORDER, CAMPAIGNS)
