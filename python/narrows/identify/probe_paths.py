"""Probes on other paths than their own: rates, delays and buffers multiplied by factors."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import yaml

from narrows.errors import DataError
from narrows.files import read_text
from narrows.scenario.loading import Loaded, load_text
from narrows.scenario.overrides import Override
from narrows.scenario.shipped import find

#: Paths around the probes: each factor is between 1 - SPREAD and 1 + SPREAD.
SPREAD = 0.2
_AMOUNT = re.compile(r"([0-9.]+)\s*(\S.*)")
_BOOLEAN = "tag:yaml.org,2002:bool"


class _Loader(yaml.SafeLoader):
    """YAML in which `on` and `off` are words, as in scenarios."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOLEAN]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True, slots=True)
class PathFactors:
    """By how much a path differs from that of its probe."""

    rate: float = 1.0
    #: All fixed delays.
    rtt: float = 1.0
    #: The queue, in bandwidth-delay products.
    buffer: float = 1.0
    #: The standard deviation of a further delay that each packet of data has, without reordering.
    jitter_ms: float = 0.0

    @classmethod
    def from_seed(cls, seed: int, spread: float = SPREAD) -> PathFactors:
        """Uniformly distributed factors; equal seeds give equal factors."""
        factors = np.random.default_rng(seed).uniform(1 - spread, 1 + spread, 3)
        return cls(*(round(float(factor), 3) for factor in factors))


#: Ordinary probes.
UNCHANGED = PathFactors()


def load_probe(probe: str, factors: PathFactors, overrides: list[Override]) -> Loaded:
    """A shipped probe with its path multiplied, and further changes."""
    tree = yaml.load(read_text(find(probe)), _Loader)
    if factors != UNCHANGED:
        for part in ("path", "timeline", "flows"):
            if part in tree:
                tree[part] = _multiply(tree[part], factors, "")
    return load_text(yaml.safe_dump({**tree, "name": probe}, sort_keys=False), overrides, probe)


def _multiply(value: object, factors: PathFactors, key: str) -> object:
    """A copy of a part of a scenario, in which the amounts under known keys are multiplied."""
    if isinstance(value, dict):
        return {name: _multiply(member, factors, str(name)) for name, member in value.items()}
    if isinstance(value, list):
        members = [_multiply(member, factors, key) for member in value]
        if key == "forward" and factors.jitter_ms:
            members.append({"jitter": f"{factors.jitter_ms:g} ms"})
        return members
    if key == "rate":
        return _scale(value, factors.rate)
    if key in ("delay", "extra_rtt"):
        return _scale(value, factors.rtt)
    if key in ("droptail", "packets"):
        is_relative = str(value).endswith("bdp")
        return _scale(value, factors.buffer * (1 if is_relative else factors.rate * factors.rtt))
    return value


def _scale(amount: object, factor: float) -> str:
    match = _AMOUNT.fullmatch(str(amount))
    if match is None:
        raise DataError(f"{amount}: has no unit, so a probe can't be moved to another path")
    number = float(match[1]) * factor
    if match[2] == "packets":
        number = max(1, round(number))
    return f"{round(number, 3):g} {match[2]}"
