"""How like a card is to the references of each scheme, line by line.

A line's values in the runs of a scheme are described by their mean and spread (numbers, on a logarithmic
scale from the line's resolution on), or by the frequency of each word; the share of runs without a value
counts too, because "no packet was lost" is behaviour. The surprise of a line is the negative logarithm of
its probability by that description, relative to the most probable value. No line may decide more than
`MOST`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from narrows.documents.identify import Card
from narrows.identify.reference_library import Key, LineFacts, Reference, Value, value_of
from narrows.identify.trace import Floats

#: Degrees of freedom of the distribution of a line's values: a run far from the others is not impossible.
FREEDOM = 4
#: The most that one line may count against a scheme, as the logarithm of a likelihood.
MOST = 4.0
#: Runs that the typical spread of a line, over all schemes, counts for in the spread of a scheme.
PRIOR_RUNS = 3.0
#: Resolutions below this would make differences of nothing count.
LEAST_RESOLUTION = 1e-4
#: The spread of lines that no scheme has twice.
UNKNOWN_SPREAD = 0.1
#: The least share of runs without a line, and with it, among all schemes.
LEAST_ABSENCE = 0.03
#: Differences of this share (on the logarithmic scale) are within what a method resolves.
RESOLVED = 0.02


@dataclass(frozen=True)
class Observation:
    """A card as the values of its lines."""

    values: Mapping[Key, Value]
    #: Lines without a value on probes that ran.
    absent: frozenset[Key]

    @classmethod
    def from_card(cls, card: Card) -> Observation:
        """The values of a card. A probe without any value did not run, so its lines say nothing."""
        values = {line.key: value for line in card.lines if (value := value_of(line)) is not None}
        seen = {probe for _, probe in values}
        absent = {line.key for line in card.lines if line.key not in values and line.probe in seen}
        return cls(values, frozenset(absent))

    @classmethod
    def from_reference(cls, reference: Reference, keys: Sequence[Key]) -> Observation:
        """A reference as if it was unknown; all probes ran."""
        return cls(reference.values, frozenset(key for key in keys if key not in reference.values))

    def on_probes(self, probes: Sequence[str]) -> Observation:
        """The observation if only these probes had run."""
        return Observation(
            {key: value for key, value in self.values.items() if key[1] in probes},
            frozenset(key for key in self.absent if key[1] in probes),
        )


@dataclass(frozen=True)
class Likeness:
    """Observations under all schemes: arrays by observation, scheme and line."""

    schemes: Sequence[str]
    lines: Sequence[Key]
    #: Logarithms of likelihoods, relative to that of a scheme of which nothing is known.
    log_likelihood: Floats
    #: Surprises: 0 for a value as usual.
    surprise: Floats


@dataclass(frozen=True)
class _Numbers:
    """A line of numbers: by scheme the location and the spread, and those of all schemes together."""

    location: Floats
    spread: Floats
    all_location: float
    all_spread: float


@dataclass(frozen=True)
class _Words:
    """A line of words: by word the logarithm of its frequency, by scheme, and among all schemes."""

    by_scheme: Mapping[str, Floats]
    among_all: Mapping[str, float]
    #: For a word that no reference has.
    new: float


class Model:
    """The description of all lines in all schemes."""

    def __init__(self, lines: Sequence[LineFacts], references: Sequence[Reference]) -> None:
        self.schemes = sorted({reference.scheme for reference in references})
        self.keys = [line.key for line in lines]
        self._resolution = {line.key: max(float(line.resolution), LEAST_RESOLUTION) for line in lines}
        groups = [[row for row in references if row.scheme == scheme] for scheme in self.schemes]
        self._runs = np.array([len(group) for group in groups], np.float64)
        self._numbers: dict[Key, _Numbers] = {}
        self._words: dict[Key, _Words] = {}
        self._present: dict[Key, Floats] = {}
        for key in self.keys:
            values = [[row.values[key] for row in group if key in row.values] for group in groups]
            self._present[key] = np.array([len(several) for several in values], np.float64)
            if any(isinstance(value, str) for several in values for value in several):
                self._words[key] = _describe_words([[str(value) for value in several] for several in values])
            else:
                scaled = [self._scale(key, np.array(several, np.float64)) for several in values]
                self._numbers[key] = _describe_numbers(scaled)

    def _scale(self, key: Key, value: Floats) -> Floats:
        return np.asarray(np.sign(value) * np.log1p(np.abs(value) / self._resolution[key]))

    def _unscale(self, key: Key, scaled: float) -> float:
        return math.copysign(math.expm1(abs(scaled)) * self._resolution[key], scaled)

    def compare(self, observations: Sequence[Observation]) -> Likeness:
        """The likeness of observations to each scheme."""
        shape = (len(observations), len(self.schemes), len(self.keys))
        likelihood, surprise = np.zeros(shape), np.zeros(shape)
        for index, key in enumerate(self.keys):
            values = [row.values.get(key) for row in observations]
            present = np.array([value is not None for value in values])
            lacking = np.array([key in row.absent for row in observations])
            absence = (self._runs - self._present[key] + 0.5) / (self._runs + 1)
            any_absence = float((self._runs - self._present[key]).sum() / self._runs.sum())
            any_absence = min(max(any_absence, LEAST_ABSENCE), 1 - LEAST_ABSENCE)
            likelihood[lacking, :, index] = np.log(absence) - math.log(any_absence)
            surprise[lacking, :, index] = -np.log(absence)
            if present.any():
                relative, own = self._compare_values(key, [value for value in values if value is not None])
                likelihood[present, :, index] = relative + np.log(1 - absence) - math.log(1 - any_absence)
                surprise[present, :, index] = own - np.log(1 - absence)
        return Likeness(self.schemes, self.keys, np.maximum(likelihood, -MOST), np.minimum(surprise, MOST))

    def _compare_values(self, key: Key, values: Sequence[Value]) -> tuple[Floats, Floats]:
        """By value and scheme, the logarithm of the likelihood of a value where the line is present, relative
        to that among all schemes, and the surprise."""
        if key in self._words:
            words = self._words[key]
            unknown = np.full(len(self.schemes), words.new)
            known = np.array([words.by_scheme.get(str(value), unknown) for value in values])
            among = np.array([words.among_all.get(str(value), words.new) for value in values])
            return known - among[:, None], -known
        numbers = self._numbers[key]
        scaled = self._scale(key, np.array([float(value) for value in values]))[:, None]
        surprise = _surprise((scaled - numbers.location) / numbers.spread)
        among_all = _surprise((scaled - numbers.all_location) / numbers.all_spread)
        return among_all - surprise - np.log(numbers.spread / numbers.all_spread), surprise

    def usual_range(self, key: Key, scheme: str) -> tuple[float, float] | None:
        """The interval that has most values of a line of numbers in runs of a scheme; None if it has none."""
        index = self.schemes.index(scheme)
        if key not in self._numbers or not self._present[key][index]:
            return None
        location = float(self._numbers[key].location[index])
        reach = 2 * float(self._numbers[key].spread[index])
        return self._unscale(key, location - reach), self._unscale(key, location + reach)

    def usual_word(self, key: Key, scheme: str) -> str | None:
        """The most frequent word of a line in runs of a scheme; None if it has none."""
        index = self.schemes.index(scheme)
        if key not in self._words or not self._present[key][index]:
            return None
        return max(self._words[key].by_scheme.items(), key=lambda item: float(item[1][index]))[0]


def _surprise(deviation: Floats) -> Floats:
    return np.asarray((FREEDOM + 1) / 2 * np.log1p(deviation**2 / FREEDOM))


def _describe_numbers(values: Sequence[Floats]) -> _Numbers:
    """Describes each scheme by its values. A scheme without values is described by all others, so
    that only the presence of a value speaks against it."""
    every = np.concatenate([*values, np.zeros(0)])
    location, spread = (float(np.median(every)), float(every.std()) + 1e-3) if len(every) else (0.0, 1.0)
    counts = np.array([len(several) for several in values], np.float64)
    places = np.repeat(np.arange(len(values)), counts.astype(np.int64))
    means = np.bincount(places, every, len(values)) / np.maximum(counts, 1)
    squares = np.bincount(places, (every - means[places]) ** 2, len(values))
    # A single value has no spread, and an absent one no location.
    runs = np.where(counts >= 2, counts, 0)
    own = np.where(counts >= 2, squares / np.maximum(counts - 1, 1), 0.0)
    typical = float(np.median(own[runs > 0])) if runs.any() else UNKNOWN_SPREAD**2
    variances = (own * runs + typical * PRIOR_RUNS) / (runs + PRIOR_RUNS)
    locations = np.where(counts > 0, means, location)
    spreads = np.where(counts > 0, np.sqrt(variances + RESOLVED**2), spread)
    return _Numbers(locations, spreads, location, spread)


def _describe_words(words: Sequence[Sequence[str]]) -> _Words:
    """The description from the words of each scheme; half a run counts as of all schemes together."""
    total = Counter(word for several in words for word in several)
    count = total.total()
    share = {word: (n + 1) / (count + len(total) + 1) for word, n in total.items()}
    runs = np.array([len(several) for several in words], np.float64)
    by_scheme = {
        word: np.log(
            (np.array([several.count(word) for several in words]) + 0.5 * share[word]) / (runs + 0.5)
        )
        for word in total
    }
    among_all = {word: math.log(part) for word, part in share.items()}
    return _Words(by_scheme, among_all, math.log(1 / (count + len(total) + 1)))
