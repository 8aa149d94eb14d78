"""The name of a sender: the references that its card is most like, each with a probability, or none of them.

The lines' log-likelihoods are summed for each scheme. How much the sum is worth, and from which surprise on
a sender is none of the library's (`calibration`), is fitted to the library itself, with exactly the lines
that the card has: each part of its seeds is named by the others, once with all schemes, and once without the
family of the scheme. Before any measurement "none of these" is as probable as all schemes together.

The references run over our transport. Another one resumes in its own way after a pause, and may negotiate ECN
with any scheme, so these lines say nothing there: the first about any scheme, the second about those that
send without ECN over ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from narrows.documents.identify import Candidate, Card, Evidence, Naming
from narrows.identify.calibration import Fit, Sums, Trials, fit_trials
from narrows.identify.features import COMBINED, ECN, FEATURES, PAUSE
from narrows.identify.likeness import Likeness, Model, Observation
from narrows.identify.reference_library import Key, Library
from narrows.identify.scheme_families import family_of, name_of
from narrows.identify.trace import Bools, Floats
from narrows.scenario import registry

#: Parts into which the seeds of the library are divided for the calibration.
FOLDS = 4
#: A line decides for or against a name from this logarithm of a likelihood on, and so many are listed.
DECISIVE, MOST_LISTED = 0.7, 4
#: A line contradicts a name from this surprise on: of a scheme's own runs fewer than one in fifty have it.
CONTRADICTION = 2.5
#: Candidates below this probability are not listed, except the first two.
LEAST_LISTED = 0.01
NONE = "none of these"


def is_of_our_transport(card: Card) -> bool:
    """Whether the sender of a card is a native scheme, and so shares the transport of the references."""
    return card.where == "simulate" or card.scheme in registry.load().schemes


@dataclass(frozen=True)
class _Reading:
    """A card by the library."""

    card: Card
    observation: Observation
    #: The lines of the library that it has, or could not measure on probes that ran.
    known: Bools
    likeness: Likeness
    fit: Fit
    #: The probabilities of all schemes, and that of none of them.
    shares: Floats
    none: float


class Namer:
    """Names cards by a library."""

    def __init__(self, library: Library) -> None:
        self._lines, self._references = library.header.lines, library.references
        self.model = Model(self._lines, self._references)
        self.names = [name_of(scheme) for scheme in self.model.schemes]
        families = np.array([family_of(name) for name in self.names])
        self.same_family = families[:, None] == families[None, :]
        self.trials = self._run_trials()
        # The choice of the next probe and the name ask for the same card.
        self._latest: _Reading | None = None

    def _run_trials(self) -> Trials:
        """The likeness of all references to schemes without their own part of the seeds."""
        rows = self._references
        seeds = sorted({row.seed for row in rows})
        places = {scheme: index for index, scheme in enumerate(self.model.schemes)}
        likelihoods, surprises, labels = [], [], []
        for fold in range(FOLDS):
            held = set(seeds[fold::FOLDS])
            own = [row for row in rows if row.seed in held]
            others = Model(self._lines, [row for row in rows if row.seed not in held])
            if not own or others.schemes != self.model.schemes:
                continue
            keys = self.model.keys
            likeness = others.compare([Observation.from_reference(row, keys) for row in own])
            likelihoods.append(likeness.log_likelihood)
            surprises.append(likeness.surprise)
            labels += [places[row.scheme] for row in own]
        joined = Likeness(
            self.model.schemes, self.model.keys, np.concatenate(likelihoods), np.concatenate(surprises)
        )
        return Trials(joined, np.array(labels, np.int64))

    def fit(self, known: Bools) -> Fit:
        """The fit for cards that have some of the lines."""
        return fit_trials(self.trials, self.same_family, known)

    def know(self, card: Card | None) -> Bools:
        """Which lines of the library a card has, or could not measure on probes that ran."""
        return np.zeros(len(self.model.keys), bool) if card is None else self._read(card).known

    def weight(self, card: Card | None) -> float:
        """The weight of sums over lines that a card lacks, after those that it has."""
        return self.fit(self.know(card)).weight if card is None else self._read(card).fit.weight

    def _read(self, card: Card) -> _Reading:
        """The reading of a card; that of the latest is kept."""
        if self._latest is None or self._latest.card is not card:
            observation = Observation.from_card(card)
            omitted = () if is_of_our_transport(card) else (PAUSE,)
            known = np.array(
                [
                    (key in observation.values or key in observation.absent) and key[1] not in omitted
                    for key in self.model.keys
                ]
            )
            likeness = self._compare(card, observation)
            fit = self.fit(known)
            if known.any():
                shares, none = fit.probabilities(Sums.from_likeness(likeness, known))
            else:
                count = len(self.model.schemes)
                shares, none = np.full((1, count), 1 / count), np.zeros(1)
            self._latest = _Reading(card, observation, known, likeness, fit, shares[0], float(none[0]))
        return self._latest

    def _compare(self, card: Card, observation: Observation) -> Likeness:
        """The likeness of a card to each scheme."""
        likeness = self.model.compare([observation])
        if is_of_our_transport(card):
            return likeness
        schemes = registry.load().schemes
        without = [schemes[name].ecn == "none" for name in self.names]
        marked = [probe == ECN for _, probe in self.model.keys]
        counts = ~np.outer(without, marked)
        return replace(
            likeness, log_likelihood=likeness.log_likelihood * counts, surprise=likeness.surprise * counts
        )

    def shares(self, card: Card | None) -> Floats:
        """The probabilities of all schemes, if it is one of them."""
        if card is None:
            return np.full(len(self.model.schemes), 1 / len(self.model.schemes))
        reading = self._read(card)
        return np.asarray(reading.shares / (1 - reading.none))

    def by_name(self, shares: Floats) -> Floats:
        """Probabilities of schemes, summed by name."""
        names = sorted(set(self.names))
        return np.column_stack([shares[:, [own == name for own in self.names]].sum(axis=1) for name in names])

    def name(self, card: Card) -> Naming | None:
        """The name of a card's sender; None if the library has none of its lines."""
        reading = self._read(card)
        known = reading.known
        if not known.any():
            return None
        candidates = self._list_candidates(reading.shares)
        scheme = self.model.schemes[int(reading.shares.argmax())]
        evidence = self._list_evidence(reading.observation, reading.likeness, known)
        listed = [
            candidate
            for place, candidate in enumerate(candidates)
            if place < 2 or float(candidate.probability) >= LEAST_LISTED
        ]
        return Naming(
            nearest=scheme,
            candidates=listed,
            none=round(reading.none, 4),
            lines=int(known.sum()),
            unknown=int((~known).sum()),
            decisive=[item for item in evidence if float(item.weight) > 0],
            contrary=[item for item in evidence if float(item.weight) < 0],
        )

    def _list_candidates(self, shares: Floats) -> list[Candidate]:
        """All names with their probabilities, the most probable first."""
        sums: dict[str, float] = {}
        for name, share in zip(self.names, shares.tolist(), strict=True):
            sums[name] = sums.get(name, 0.0) + share
        order = sorted(sums, key=sums.__getitem__, reverse=True)
        return [
            Candidate(name=name, family=family_of(name), probability=round(sums[name], 4)) for name in order
        ]

    def _list_evidence(self, observation: Observation, likeness: Likeness, known: Bools) -> list[Evidence]:
        """The lines that speak most for the nearest scheme against the next other name, and those that
        contradict it."""
        order = np.argsort(-Sums.from_likeness(likeness, known).likelihoods[0])
        best = int(order[0])
        rival = next(int(index) for index in order if self.names[int(index)] != self.names[best])
        difference = likeness.log_likelihood[0, best] - likeness.log_likelihood[0, rival]
        surprise = likeness.surprise[0, best]
        evidence = []
        for index in np.argsort(-difference)[:MOST_LISTED]:
            if known[index] and difference[index] >= DECISIVE:
                key = self.model.keys[int(index)]
                evidence.append(self._make_evidence(key, observation, best, rival, float(difference[index])))
        contrary = 0
        for index in np.argsort(-np.maximum(surprise, -difference)):
            against = surprise[index] >= CONTRADICTION or difference[index] <= -DECISIVE
            if known[index] and against and contrary < MOST_LISTED:
                key = self.model.keys[int(index)]
                if any((item.name, item.probe) == key for item in evidence):
                    continue
                weight = min(float(difference[index]), -float(surprise[index]), -0.01)
                evidence.append(self._make_evidence(key, observation, best, rival, weight))
                contrary += 1
        return evidence

    def _make_evidence(
        self, key: Key, observation: Observation, best: int, rival: int, weight: float
    ) -> Evidence:
        return Evidence(
            name=key[0],
            probe=key[1],
            title=title_of(key[0]),
            value=_show(observation.values.get(key), key[0]),
            usual=self._usual(key, best),
            rival=self.names[rival],
            rival_usual=self._usual(key, rival),
            weight=round(weight, 2),
        )

    def _usual(self, key: Key, index: int) -> str:
        """The usual values of a scheme, in words."""
        scheme = self.model.schemes[index]
        if (word := self.model.usual_word(key, scheme)) is not None:
            return word
        if (ends := self.model.usual_range(key, scheme)) is not None:
            return f"{_show(ends[0], key[0])} to {_show(ends[1], key[0])}"
        return ABSENT


ABSENT = "not seen"


def title_of(name: str) -> str:
    """The title of a line; lines of ratios of loss have that of their feature."""
    for feature in (*FEATURES, *(feature for feature, _ in COMBINED)):
        if name in (feature.name, name.rpartition("-")[0] if feature.name == name.rpartition("-")[0] else ""):
            suffix = name.removeprefix(feature.name).removeprefix("-")
            return f"{feature.title}, {suffix} %" if suffix else feature.title
    return name


def _show(value: float | str | None, name: str) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, str):
        return value
    digits = next((feature.digits for feature in FEATURES if name.startswith(feature.name)), 3)
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def best_of(naming: Naming) -> tuple[str, float]:
    """The most probable answer, `none of these` among them, and its probability."""
    first = naming.candidates[0]
    none = float(naming.none)
    return (NONE, none) if none > float(first.probability) else (first.name, float(first.probability))


def families_of(candidates: Sequence[Candidate]) -> dict[str, float]:
    """The probabilities of families."""
    sums: dict[str, float] = {}
    for candidate in candidates:
        sums[candidate.family] = sums.get(candidate.family, 0.0) + float(candidate.probability)
    return sums
