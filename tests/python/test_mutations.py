"""Damaged scenarios of every kind give a scenario or a clean error, never a crash."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from test_networks import HEAD, NETWORK, STAR
from test_scenario import _check, _mutate

pytestmark = pytest.mark.usefixtures("fixed_registry")

BUSY = (
    HEAD
    + STAR
    + """\
hosts: {all: {tcp_sack: 0}, left: {mtu: 1400 B}}
flows:
  - {count: 2, interval: 1 s, label: pair}
  - {from: top, to: left, traffic: {cbr: 2 Mbit/s}, dscp: EF}
background: [{scheme: cubic, direction: backward, traffic: {web: 1 Mbit/s}}]
timeline:
  - {at: 1 s, set: {slow: 9 ms, right-center.0: {rate: 5 Mbit/s, queue: {droptail: 9 kB}}}}
  - {at: 2 s, cut: [left, center]}
  - {at: 3 s, restore: [left, center]}
  - {at: 4 s, stop: pair}
expect: [{metric: throughput_bps, scheme: reno, flow: 3, of: max, at_least: 1 Mbit/s}]
"""
)
GRAPH = (
    HEAD
    + NETWORK
    + """\
matrix:
  network.links.4.forward.0.rate: [8 Mbit/s, 9 Mbit/s]
  flows.0.connections: [1, 30]
"""
)
LOT = (
    HEAD
    + """\
topology:
  parking-lot:
    hops: 2
    forward: [{rate: {toy_steps: [[0 s, 1 Mbit/s], [4 s, 2 Mbit/s]]}, overhead: 38 B}, {toy_list: [3, 7]}]
    access: [{toy_moves: [[0 s, 1 ms], [2 s, 3 ms]], name: wave}]
"""
)


@pytest.mark.parametrize("text", [BUSY, GRAPH, LOT], ids=["star", "graph", "parking lot"])
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 4))
def test_any_mutation_gives_a_scenario_or_a_clean_error(text: str, seed: int, steps: int) -> None:
    _check(_mutate(text, seed, steps))


@pytest.mark.parametrize("text", [BUSY, GRAPH, LOT], ids=["star", "graph", "parking lot"])
def test_undamaged_they_are_taken(text: str) -> None:
    _check(text)
    from narrows.scenario import loads

    assert loads(text).schemes
