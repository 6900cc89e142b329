"""Exact probabilities of what the sparse vector releases, on small integer scales, from the formula of its law.

A transcript is a sequence of ``None`` (answered by the train value) and integers (noisy means before clipping, which
tell more than what is released). Its probability is a product over phases, each one sum over the threshold noise of a
product of distribution functions: nothing here draws noise or runs the mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


def log_probability(k: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    """ln P(L = k) of the discrete Laplace law."""
    return float(np.log(np.tanh(0.5 / scale))) - np.abs(k).astype(np.float64) / scale


def log_at_least(k: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    """ln P(L >= k)."""
    normaliser = np.log1p(np.exp(-1 / scale))
    upper = -np.maximum(k, 1) / scale - normaliser
    lower = np.log1p(-np.exp(-np.maximum(1 - k, 1) / scale - normaliser))
    return np.asarray(np.where(k >= 1, upper, lower))


@dataclass(frozen=True)
class SmallSparseVector:
    """The mechanism with integer threshold and means, and noise of the three scales."""

    threshold: int
    scales: tuple[float, float, float]
    redrawn: bool = True

    def log_transcript(self, means: Sequence[int], trains: Sequence[int], transcript: Sequence[int | None]) -> float:
        """ln P(transcript) when query i has the given holdout mean and train value."""
        first, second, third = self.scales
        noise = np.arange(-int(60 * max(first, second)), int(60 * max(first, second)) + 1)
        prior = log_probability(noise, first)
        level = self.threshold + noise
        total, weights = 0.0, prior.copy()
        for mean, train, released in zip(means, trains, transcript, strict=True):
            hit = log_at_least(level - abs(mean - train) + 1, second)
            if released is None:
                weights += np.log(-np.expm1(hit))
                continue
            weights += hit
            total += float(log_probability(np.array(released - mean), third))
            if self.redrawn:
                total += _log_sum(weights)
                weights = prior.copy()
        return total + _log_sum(weights)

    def log_fails_then_hit(self, fails: int, gap: int, last_gap: int, released: int, last_mean: int) -> float:
        """ln P(``fails`` equal train answers, then a hit that releases ``released``), for huge ``fails``."""
        first, second, third = self.scales
        noise = np.arange(-int(60 * max(first, second)), int(60 * max(first, second)) + 1)
        level = self.threshold + noise
        weights = log_probability(noise, first)
        weights += fails * np.log(-np.expm1(log_at_least(level - gap + 1, second)))
        weights += log_at_least(level - last_gap + 1, second)
        return _log_sum(weights) + float(log_probability(np.array(released - last_mean), third))


def _log_sum(weights: NDArray[np.float64]) -> float:
    peak = float(weights.max())
    return peak + float(np.log(np.exp(weights - peak).sum()))
