"""Behaviour cards of simulated runs: constants within their intervals, and planted changes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from narrows.campaign.run import run_campaign
from narrows.campaign.series import read_states
from narrows.console import stderr_console
from narrows.documents.identify import Card, Line
from narrows.identify.differences import compare_cards
from narrows.identify.features import BESIDE_CUBIC, ECN, LONG, SHALLOW, SHORT
from narrows.identify.running import SIMULATE, Order, read_cards, run_probes
from narrows.identify.trace import find_data, read_trace, resolve
from narrows.scenario import load
from narrows.scenario.overrides import Override

RUNS = 4


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cards")


@cache
def card(place: Path, scheme: str, probe: str, seed: int = 1) -> Card:
    """The card of a scheme on one probe."""
    folder = place / f"{scheme} {probe} {seed}"
    return run_probes(scheme, folder, Order(SIMULATE, RUNS, seed, probes=(probe,)))


def line_of(card: Card, name: str, probe: str) -> Line:
    return next(line for line in card.lines if line.key == (name, probe))


#: Scheme, feature, probe, and the configured constant.
CONSTANTS = [
    ("reno", "decrease", LONG, 0.5),
    ("reno", "growth-linear", LONG, 1.0),
    ("reno", "slow-start-growth", LONG, 2.0),
    ("reno", "decrease", SHALLOW, 0.5),
    ("cubic", "decrease", LONG, 0.7),
    ("cubic", "decrease", SHORT, 0.7),
    ("cubic", "growth-cubic", LONG, 0.4),
    # RFC 9438, section 4.3: 3 (1 - beta) / (1 + beta) packets per round where it imitates Reno.
    ("cubic", "growth-linear", SHORT, 0.529),
    ("{scheme: cubic, beta: 0.8}", "decrease", LONG, 0.8),
    ("scalable", "decrease", LONG, 0.875),
    ("scalable", "growth-exponential", LONG, 0.01),
    ("htcp", "decrease", LONG, 0.5),
    # The smallest round trip by the largest, at least 0.5 and at most 0.8.
    ("htcp", "decrease", SHALLOW, 0.8),
    ("bbr1", "gain", LONG, 1.25),
    ("bbr1", "drain", LONG, 0.75),
    ("bbr1", "dip-floor", LONG, 4.0),
    ("bbr3", "gain", LONG, 1.25),
    ("bbr3", "drain", LONG, 0.90625),
    # Half of a product of 80 packets.
    ("bbr3", "dip-floor", LONG, 40.0),
    ("copa", "slow-start-growth", LONG, 2.0),
    ("dctcp", "decrease", LONG, 0.5),
]


@pytest.mark.parametrize(("scheme", "name", "probe", "constant"), CONSTANTS)
def test_intervals_contain_the_configured_constant(
    place: Path, scheme: str, name: str, probe: str, constant: float
) -> None:
    line = line_of(card(place, scheme, probe), name, probe)
    assert line.why is None, line.why
    assert line.low is not None and line.high is not None and line.value is not None
    assert line.low <= constant <= line.high, (line.low, line.value, line.high)
    # An interval that contains everything says nothing.
    assert line.high - line.low < 0.2 * constant or line.high - line.low <= 4


@pytest.mark.parametrize(
    ("scheme", "law"),
    [("reno", "linear"), ("cubic", "cubic"), ("scalable", "exponential"), ("htcp", "convex")],
)
def test_the_law_of_growth_is_that_of_the_scheme(place: Path, scheme: str, law: str) -> None:
    assert line_of(card(place, scheme, LONG), "law", LONG).words == {law: RUNS}


def test_vegas_and_dctcp_keep_the_queue_that_they_aim_at(place: Path) -> None:
    # alpha and beta of Vegas: 2 and 4 packets.
    queue = line_of(card(place, "vegas", SHORT), "queue", SHORT)
    assert queue.value is not None and 2 <= queue.value <= 4
    # The threshold of the probe: 10 packets, which losses never exceed.
    made = card(place, "dctcp", ECN)
    queue = line_of(made, "queue", ECN)
    assert queue.value is not None and 7 <= queue.value <= 11
    assert line_of(made, "loss", ECN).value == 0
    fall = line_of(made, "fall", ECN)
    assert fall.value is not None and fall.value > 0.9


def test_a_card_says_why_a_line_is_not_measured(place: Path) -> None:
    made = card(place, "vegas", LONG)
    assert line_of(made, "decrease", LONG).why == "no packet was lost"
    assert line_of(made, "queue", SHORT).why == "its probe did not run"


def test_samples_name_their_seconds_of_a_run(place: Path) -> None:
    line = line_of(card(place, "cubic", LONG), "decrease", LONG)
    assert line.cell == "cubic-r1"
    assert len(line.spans) >= 4
    for span in line.spans:
        assert 0 < float(span.from_s) < float(span.to_s) < 40


def test_a_planted_change_of_beta_is_seen_and_equal_senders_are_not_told_apart(place: Path) -> None:
    base = card(place, "cubic", LONG)
    changed = compare_cards(base, card(place, "{scheme: cubic, beta: 0.75}", LONG, 2))
    assert "decrease" in {line.name for line in changed.lines}
    for seed in (2, 3, 4):
        same = compare_cards(base, card(place, "cubic", LONG, seed))
        assert same.compared > 5
        assert [line.name for line in same.lines] == []


def test_a_planted_change_of_the_gain_of_probing_is_seen(place: Path) -> None:
    changed = compare_cards(card(place, "bbr1", LONG), card(place, "{scheme: bbr1, probe_gain: 1.5}", LONG))
    assert {"gain", "drain"} <= {line.name for line in changed.lines}


def test_harm_is_the_part_of_its_rate_alone_that_cubic_loses(place: Path) -> None:
    harm = line_of(card(place, "bbr1", BESIDE_CUBIC), "harm", BESIDE_CUBIC)
    loaded = load(
        BESIDE_CUBIC, [Override("--set", "schemes", "[cubic]"), Override("--set", "background", "[]")]
    )
    run_campaign(
        loaded, place / "alone", resume=False, argv=["narrows"], console=stderr_console(), quiet=True
    )
    alone = read_trace(place / "alone" / "cells" / "cubic-r1").arrival_rate_bps(6, 30)
    rates = []
    for number in range(1, RUNS + 1):
        cells = place / f"bbr1 {BESIDE_CUBIC} 1" / BESIDE_CUBIC / "cells"
        trace = read_trace(cells / f"bbr1-r{number}")
        rates.append(trace.others_bytes[trace.others_s >= 6].sum() * 8 / 24)
    assert harm.value == pytest.approx((alone - np.mean(rates)) / alone, abs=0.04)


def test_a_sender_that_is_not_paced_is_seen_by_its_bursts(place: Path) -> None:
    changes = {"schemes": "[reno]", "runs": str(RUNS), "transport.pacing": "window"}
    loaded = load(SHORT, [Override("--set", key, value) for key, value in changes.items()])
    run_campaign(
        loaded, place / "paced", resume=False, argv=["narrows"], console=stderr_console(), quiet=True
    )
    (paced,) = read_cards(place / "paced")
    found = compare_cards(paced, card(place, "reno", SHORT, 2))
    bursts = next(line for line in found.lines if line.name == "bursts")
    assert bursts.base.value is not None and bursts.other.value is not None
    assert bursts.base.value < bursts.other.value


# -- traces ----------------------------------------------------------------------------------------


def test_packets_are_resolved_by_the_answers_after_them() -> None:
    # Packets 1 to 6 arrive at these times; answers leave at 11, 13, 14 and 15, and return 10 later.
    arrived = np.array([10, 11, np.nan, 13, 14, 15.0])
    lost = np.array([False, False, True, False, False, False])
    answered = np.array([11.0, 13.0, 14.0, 15.0])
    resolved = resolve(arrived, lost, answered, answered + 10)
    # Packet 3 is noticed by the third packet after it, 6.
    assert resolved.tolist() == [21, 21, 25, 23, 24, 25]
    # Two answers are lost: the last one covers packets 4 and 5 too.
    resolved = resolve(arrived, lost, np.array([11.0, 15.0]), np.array([21.0, 25.0]))
    assert resolved.tolist() == [21, 21, 25, 25, 25, 25]


def test_handshakes_and_bare_acknowledgements_are_no_data() -> None:
    # A SYN, an acknowledgement, a short first message, data, the rest of a file, a FIN.
    sizes = np.array([60, 52, 400, *[1500] * 40, 700, 52], np.uint32)
    assert np.flatnonzero(~find_data(sizes)).tolist() == [0, 1, 44]
    assert find_data(np.full(9, 1252, np.uint32)).all()


@pytest.mark.parametrize("scheme", ["reno", "bbr1"])
def test_packets_in_flight_are_those_that_the_sender_itself_counts(place: Path, scheme: str) -> None:
    card(place, scheme, LONG)
    record = place / f"{scheme} {LONG} 1" / LONG / "cells" / f"{scheme}-r1"
    trace = read_trace(record)
    states = read_states(record)[1]
    # Headers of IP, UDP and our transport.
    payload = np.median(trace.size_bytes) - 20 - 8 - 24
    index = np.searchsorted(trace.sent_s, states.time_s, "right") - 1
    chosen = (states.time_s > 8) & np.isfinite(states.inflight_bytes) & (index > 0)
    ours, theirs = trace.in_flight[index[chosen]], states.inflight_bytes[chosen] / payload
    # Between two packets acknowledgements arrive; the state is sampled at any time.
    assert np.median(np.abs(ours - theirs)) <= 2
    assert np.percentile(np.abs(ours - theirs), 95) <= 0.05 * ours.max() + 3
