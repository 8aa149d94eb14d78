"""How sums over lines become probabilities, fitted to the trials of a library.

Lines are not independent, so that the sum of their log-likelihoods is weighted. Whether a sender is none of
the library's shows in three numbers about its most likely scheme: the mean surprise of the lines; its
difference from the usual one of that scheme, of which some vary more from path to path, by its spread; and
the mean log-likelihood of the lines. A logistic function of them tells trials of schemes that the library has
from the same trials without the scheme's family.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from narrows.identify.likeness import Likeness
from narrows.identify.trace import Bools, Floats, Indices

#: Weights that are tried. No weight is above 1, which would be that of independent lines.
_WEIGHTS = np.geomspace(0.05, 1.0, 25)
#: The probability that a label of the library is wrong: certainty is never without limits.
MISLABELLED = 0.002
#: Trials that all schemes together count for in the usual surprise of a scheme, and in its spread.
PRIOR_MEAN, PRIOR_SPREAD = 2.0, 3.0
#: The penalty on slopes, which separable trials would make infinite.
PENALTY = 0.5
#: Log-odds beyond this are certainty.
_MOST_ODDS = 30.0


@dataclass(frozen=True)
class Sums:
    """Observations by all schemes over some lines: sums of log-likelihoods, and mean surprises."""

    likelihoods: Floats
    surprises: Floats
    lines: int

    @classmethod
    def from_likeness(cls, likeness: Likeness, known: Bools) -> Sums:
        """The sums over the known lines."""
        return cls(
            likeness.log_likelihood[:, :, known].sum(axis=2),
            likeness.surprise[:, :, known].mean(axis=2),
            int(known.sum()),
        )

    def without(self, excluded: Bools) -> Sums:
        """The sums by a library without some schemes for each observation."""
        return Sums(np.where(excluded, -np.inf, self.likelihoods), self.surprises, self.lines)


@dataclass(frozen=True)
class Trials:
    """References as observed by descriptions without their part of the seeds."""

    likeness: Likeness
    #: The index of the scheme of each.
    labels: Indices


@dataclass(frozen=True)
class Fit:
    """The constants that turn sums into probabilities."""

    weight: float
    #: By scheme, the usual mean surprise in its own runs, and its spread.
    usual: Floats
    spread: Floats
    #: The log-odds of "none of these": a constant and the slopes.
    slopes: Floats

    def probabilities(self, sums: Sums) -> tuple[Floats, Floats]:
        """By observation, the probabilities of all schemes, and that of none of them."""
        scaled = self.weight * (sums.likelihoods - sums.likelihoods.max(axis=1, keepdims=True))
        shares = np.exp(scaled)
        shares /= shares.sum(axis=1, keepdims=True)
        none = _logistic(_describe(sums, self.usual, self.spread) @ self.slopes)
        none = MISLABELLED + (1 - 2 * MISLABELLED) * none
        return shares * (1 - none)[:, None], none


def fit_trials(trials: Trials, same_family: Bools, known: Bools) -> Fit:
    """The fit for cards that have some of the lines."""
    schemes = len(same_family)
    if not known.any():
        return Fit(1.0, np.zeros(schemes), np.ones(schemes), np.zeros(4))
    labels = trials.labels
    sums = Sums.from_likeness(trials.likeness, known)
    spread = sums.likelihoods - sums.likelihoods.max(axis=1, keepdims=True)
    weight = max(_WEIGHTS, key=lambda weight: _log_loss(weight * spread, labels))
    usual, deviation = _usual_surprises(sums.surprises[np.arange(len(labels)), labels], labels, schemes)
    strange = sums.without(same_family[labels])
    columns = np.concatenate([_describe(item, usual, deviation) for item in (sums, strange)])
    slopes = _fit_logistic(columns, np.repeat([0.0, 1.0], len(labels)))
    return Fit(float(weight), usual, deviation, slopes)


def _describe(sums: Sums, usual: Floats, spread: Floats) -> Floats:
    """By observation, the columns of the logistic function."""
    best = sums.likelihoods.argmax(axis=1)
    rows = np.arange(len(best))
    surprise = sums.surprises[rows, best]
    return np.column_stack(
        [
            np.ones(len(best)),
            surprise,
            (surprise - usual[best]) / spread[best],
            sums.likelihoods[rows, best] / sums.lines,
        ]
    )


def _usual_surprises(surprises: Floats, labels: Indices, schemes: int) -> tuple[Floats, Floats]:
    """The mean and the spread of surprises by scheme, both drawn towards those of all schemes."""
    mean = float(surprises.mean())
    groups = [surprises[labels == index] for index in range(schemes)]
    variances = np.array([float(group.var(ddof=1)) if len(group) > 1 else np.nan for group in groups])
    typical = float(np.nanmean(variances)) if np.isfinite(variances).any() else 1.0
    usual = np.array([(group.sum() + PRIOR_MEAN * mean) / (len(group) + PRIOR_MEAN) for group in groups])
    counts = np.array([len(group) for group in groups], np.float64)
    own = np.where(np.isfinite(variances), variances, typical) * counts
    return usual, np.sqrt((own + PRIOR_SPREAD * typical) / (counts + PRIOR_SPREAD)) + 1e-6


def _log_loss(scaled: Floats, labels: Indices) -> float:
    """The mean logarithm of the probability of the right label."""
    shares = np.exp(scaled)
    right = shares[np.arange(len(labels)), labels] / shares.sum(axis=1)
    return float(np.log(MISLABELLED + (1 - MISLABELLED) * right).mean())


def _logistic(odds: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -_MOST_ODDS, _MOST_ODDS))))


def _fit_logistic(columns: Floats, labels: Floats) -> Floats:
    """Constant and slopes of the logistic function that tells labels of 1 from those of 0, by Newton's method
    with a small penalty on the slopes of standardised columns."""
    centre, scale = columns.mean(axis=0), columns.std(axis=0)
    centre[0], scale[0] = 0.0, 1.0
    scale[scale == 0] = 1.0
    matrix = (columns - centre) / scale
    penalty = PENALTY * np.diag([0.0, *np.ones(matrix.shape[1] - 1)])
    solution = np.zeros(matrix.shape[1])
    for _ in range(60):
        shares = _logistic(matrix @ solution)
        gradient = matrix.T @ (shares - labels) + penalty @ solution
        # A tiny ridge keeps the matrix regular where all shares are 0 or 1.
        curvature = (
            (matrix * (shares * (1 - shares))[:, None]).T @ matrix + penalty + 1e-9 * np.eye(len(solution))
        )
        step = np.linalg.solve(curvature, gradient)
        solution -= step
        if float(np.abs(step).max()) < 1e-9:
            break
    slopes = solution / scale
    slopes[0] -= float((slopes[1:] * centre[1:]).sum())
    return np.asarray(slopes)
