"""Predictions of regressors whose targets have a normal law given the inputs, in the original units."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from thresholdout.privacy.learning.propagation.natural import Floats
from thresholdout.privacy.learning.propagation.scaling import Scaling

__all__ = ["GaussianPredictions"]


class GaussianPredictions(ABC):
    """What regressors do with the predictive mean and variance of scaled targets."""

    scaling_: Scaling

    @abstractmethod
    def _scaled_moments(self, X: Any) -> tuple[Floats, Floats]:
        """Return mean and variance of each row's scaled target, noise included; checks that the model is fitted."""

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the mean of each row's target, and on request its standard deviation, noise included.

        Parameters
        ----------
        X : array_like, shape (n, d)
        return_std : bool

        Returns
        -------
        ndarray of shape (n,), or two of them
        """
        mean, variance = self._scaled_moments(X)
        found = self.scaling_.y_offset + self.scaling_.y_scale * mean
        return (found, self.scaling_.y_scale * np.sqrt(variance)) if return_std else found

    def log_likelihood(self, X: Any, y: Any) -> float:
        """Return the mean logarithm of the predictive density of targets, in the original units."""
        mean, std = self.predict(X, return_std=True)
        gap = (np.asarray(y, dtype=np.float64) - mean) / std
        return float(np.mean(-0.5 * gap**2 - np.log(std)) - 0.5 * math.log(2 * math.pi))
