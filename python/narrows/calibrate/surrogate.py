"""Gaussian processes that predict each scheme's results on paths that have not been simulated.

Each target (a value of one scheme) has a separate process over the parameters on their axes: a linear trend
and a Matérn-5/2 kernel with a length for each axis, whose lengths, height and noise have the largest
likelihood (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapters 2 and 5).
Modelling values and not the objective has two advantages: they are easier to learn, and the objective of any
subset of schemes follows from the same processes, which leaving one out requires.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_ROOT5 = math.sqrt(5.0)
#: Bounds of the logarithms of length, height (of the residual of the trend) and noise.
_LENGTH, _HEIGHT, _NOISE = (-1.9, 3.0), (-4.0, 2.0), (-9.0, 0.7)
_JITTER = 1e-8
#: The prior standard deviation of the trend's coefficients, in standard deviations of the values over a
#: range.
_TREND = 10.0


@dataclass
class _Process:
    """One target."""

    points: Floats
    values: Floats
    #: Logarithms of the lengths, the standard deviation and that of the noise.
    settings: Floats
    centre: float = 0.0
    scale: float = 1.0
    factor: Any = None
    weights: Floats = field(default_factory=lambda: np.zeros(0))

    def learn(self, *, search: bool) -> None:
        from scipy.linalg import cho_factor, cho_solve
        from scipy.optimize import minimize

        self.centre = float(self.values.mean())
        self.scale = max(float(self.values.std()), 1e-6)
        scaled = (self.values - self.centre) / self.scale
        if search:
            axes = self.points.shape[1]
            bounds = [_LENGTH] * axes + [_HEIGHT, _NOISE]
            result = minimize(
                _cost,
                self.settings,
                (self.points, scaled),
                "L-BFGS-B",
                jac=True,
                bounds=bounds,
                options={"maxiter": 30},
            )
            self.settings = np.asarray(result.x)
        covariance = _covariance(self.points, self.points, self.settings)
        covariance[np.diag_indices_from(covariance)] += math.exp(2 * self.settings[-1]) + _JITTER
        self.factor = cho_factor(covariance, lower=True)
        self.weights = cho_solve(self.factor, scaled)

    def mean(self, points: Floats) -> Floats:
        covariance = _covariance(points, self.points, self.settings)
        return np.asarray(covariance @ self.weights * self.scale + self.centre)

    def sample(self, points: Floats, normal: Floats) -> Floats:
        """A joint sample at points, from normal numbers (points x samples)."""
        from scipy.linalg import cho_solve, cholesky

        between = _covariance(points, self.points, self.settings)
        own = _covariance(points, points, self.settings) - between @ cho_solve(self.factor, between.T)
        own[np.diag_indices_from(own)] += 1e-6
        spread = cholesky(own, lower=True)
        return np.asarray(((between @ self.weights)[:, None] + spread @ normal) * self.scale + self.centre)


def _covariance(floats: Floats, other: Floats, settings: Floats) -> Floats:
    lengths, height = np.exp(settings[:-2]), math.exp(2 * settings[-2])
    a, b = floats / lengths, other / lengths
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2 * a @ b.T
    distance = np.sqrt(np.maximum(squares, 0.0))
    matern = (1 + _ROOT5 * distance + 5 * distance**2 / 3) * np.exp(-_ROOT5 * distance)
    return np.asarray(height * matern + _trend(floats, other))


def _trend(floats: Floats, other: Floats) -> Floats:
    return np.asarray(_TREND**2 * (1 + (floats - 0.5) @ (other - 0.5).T) * 0.1)


def _cost(settings: Floats, points: Floats, values: Floats) -> tuple[float, Floats]:
    """The negative logarithm of the likelihood and its gradient, with a weak preference for moderate
    lengths."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    axes = points.shape[1]
    lengths, height, noise = np.exp(settings[:axes]), math.exp(2 * settings[-2]), math.exp(2 * settings[-1])
    gaps = (points[:, None, :] - points[None, :, :]) / lengths
    squares = gaps**2
    distance = np.sqrt(squares.sum(axis=2))
    decay = np.exp(-_ROOT5 * distance)
    matern = height * (1 + _ROOT5 * distance + 5 * distance**2 / 3) * decay
    covariance = matern + _trend(points, points)
    covariance[np.diag_indices_from(covariance)] += noise + _JITTER
    try:
        factor = cho_factor(covariance, lower=True)
    except LinAlgError:
        return 1e10, np.zeros_like(settings)
    inverse = cho_solve(factor, np.eye(len(points)))
    weights = inverse @ values
    cost = 0.5 * values @ weights + np.log(np.diag(factor[0])).sum()
    outer = inverse - np.outer(weights, weights)
    common = outer * (height * 5 / 3 * (1 + _ROOT5 * distance) * decay)
    gradient = np.empty_like(settings)
    gradient[:axes] = 0.5 * np.einsum("ij,ijk->k", common, squares)
    gradient[-2] = (outer * matern).sum()
    gradient[-1] = np.trace(outer) * noise
    # A weak preference for lengths around the width of the ranges and noise of a few per cent of the spread.
    centre = np.concatenate([np.full(axes, 0.3), [-0.7, -3.0]])
    width = np.concatenate([np.full(axes, 1.0), [1.5, 2.0]])
    away = (settings - centre) / width
    return float(cost + 0.5 * away @ away), gradient + away / width


class Surrogate:
    """The processes of all targets over the same points."""

    def __init__(self, axes: int, targets: int) -> None:
        start = np.concatenate([np.full(axes, 0.3), [-0.7, -3.0]])
        self.settings = [start.copy() for _ in range(targets)]
        self.axes = axes
        self.known: list[_Process | None] = [None] * targets
        self.searched = 0

    def learn(self, points: Floats, values: Floats) -> None:
        """Learns from all results so far: points x axes, and points x targets with NaN where there is none.
        Lengths are optimised again when there is a quarter more data than the last time.
        """
        search = len(points) >= 1.25 * self.searched
        if search:
            self.searched = len(points)
        for at in range(values.shape[1]):
            there = np.isfinite(values[:, at])
            if there.sum() < 3:
                self.known[at] = None
                continue
            process = _Process(points[there], values[there, at], self.settings[at])
            process.learn(search=search)
            self.settings[at], self.known[at] = process.settings, process

    def means(self, points: Floats) -> Floats:
        """The expectation at points (points x targets)."""
        values = np.full((len(points), len(self.known)), np.nan)
        for at, process in enumerate(self.known):
            if process is not None:
                values[:, at] = process.mean(points)
        return values

    def chance(self) -> Floats:
        """The standard deviation of the noise of each target; NaN without data."""
        values = np.full(len(self.known), np.nan)
        for at, process in enumerate(self.known):
            if process is not None:
                values[at] = math.exp(process.settings[-1]) * process.scale
        return values

    def samples(self, points: Floats, count: int, random: np.random.Generator) -> Floats:
        """Joint samples of results at points (samples x points x targets)."""
        values = np.full((count, len(points), len(self.known)), np.nan)
        for at, process in enumerate(self.known):
            if process is not None:
                normal = random.standard_normal((len(points), count))
                values[:, :, at] = process.sample(points, normal).T
        return values
