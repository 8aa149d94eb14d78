"""Makes the references of the library from simulated runs, and says which of them are stale."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from narrows.documents.identify import Card
from narrows.identify.features import ECN, PROBES, SHALLOW
from narrows.identify.probe_paths import UNCHANGED, PathFactors
from narrows.identify.reference_library import Key, Library, Reference, Value, make_series, value_of
from narrows.identify.simulated_cards import simulate_card
from narrows.identify.trace import Floats, Trace
from narrows.scenario import registry

#: The seed of the runs on the probes' own paths; the following ones are those of other paths around them.
FIRST_SEED = 2000
#: Runs of each scheme.
SEEDS = tuple(range(FIRST_SEED, FIRST_SEED + 11))
#: The probes whose packets and values show whether a reference is stale.
DIGESTED = (SHALLOW, ECN)
#: Values are stored in 32 bits, and computed with the linear algebra of the machine.
_SAME = 1e-3


def list_native() -> list[str]:
    """The native schemes of bulk traffic that have rules without a model of the user."""
    return [
        name
        for name, entry in registry.load().schemes.items()
        if not entry.media and (entry.model is None or entry.model.default is not None)
    ]


def factors_of(seed: int) -> PathFactors:
    """The path of a seed of the library."""
    return UNCHANGED if seed == FIRST_SEED else PathFactors.from_seed(seed)


@dataclass
class _Digest:
    """A digest of packets."""

    state: hashlib._Hash = field(default_factory=hashlib.sha256)

    def add(self, trace: Trace) -> None:
        """Adds the times of a trace, in nanoseconds."""
        for times in (trace.sent_s, trace.arrived_s):
            rounded = np.rint(np.nan_to_num(times, nan=-1.0) * 1e9).astype("<i8")
            self.state.update(rounded.tobytes())

    @property
    def text(self) -> str:
        """Its first digits."""
        return self.state.hexdigest()[:16]


def digest(scheme: str) -> tuple[str, Card]:
    """The digest of the packets of a scheme on two probes, and its card there."""
    made = _Digest()
    card = simulate_card(scheme, FIRST_SEED, probes=DIGESTED, see=lambda _, trace: made.add(trace))
    return made.text, card


def make_reference(scheme: str, seed: int) -> tuple[Reference, Card]:
    """The reference of a scheme from one run of each probe, and its card."""
    series: dict[tuple[str, str], Floats] = {}

    def keep(probe: str, trace: Trace) -> None:
        if seed == FIRST_SEED:
            series.update({(probe, kind): values for kind, values in make_series(trace).items()})

    factors = factors_of(seed)
    card = simulate_card(scheme, seed, factors, PROBES, see=keep)
    return Reference.from_card(card, seed, factors, series), card


@dataclass(frozen=True)
class Stale:
    """A scheme whose references are not those that this version would make."""

    scheme: str
    reason: str


def list_stale(library: Library, schemes: Sequence[str]) -> Iterator[Stale]:
    """The stale schemes of a library. Lines that are newer than the library are no reason."""
    stored = {row.scheme: row.values for row in library.references if row.seed == FIRST_SEED}
    for scheme in schemes:
        if scheme not in stored:
            yield Stale(scheme, "the library does not have it")
            continue
        text, card = digest(scheme)
        if text != library.header.digests.get(scheme):
            yield Stale(scheme, "it sends other packets")
        elif (key := _find_change(card, stored[scheme], library)) is not None:
            yield Stale(scheme, f"{key[0]} on {key[1]} has another value")
    for scheme in set(stored) - set(schemes):
        yield Stale(scheme, "it does not exist any more")


def _find_change(card: Card, values: Mapping[Key, Value], library: Library) -> Key | None:
    known = {line.key for line in library.header.lines}
    for line in card.lines:
        if (
            line.probe in DIGESTED
            and line.key in known
            and not _are_equal(value_of(line), values.get(line.key))
        ):
            return line.key
    return None


def _are_equal(first: Value | None, second: Value | None) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return abs(first - second) <= _SAME * max(abs(first), abs(second), _SAME)
    return first == second
