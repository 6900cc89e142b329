"""Offsets and scales of inputs and target, and predictions in the units of the target."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import floats

__all__ = ["GaussianPredictions", "Scaling", "checked_numbers", "scaled_numbers"]

Floats = NDArray[np.float64]

_NAMES = ("x_offset", "x_scale", "y_offset", "y_scale")

_CONSTANT = 1e-10  # columns that vary less than this share of their size are left as they are

_LEAK = "means and deviations of the columns and of the target, taken from the training data by standardize=True"


@dataclass(frozen=True)
class Scaling:
    """Offsets and scales of inputs and target: ``(X - x_offset) / x_scale``, and the same for y.

    `leaks` names them if a private fit took them from the data.
    """

    x_offset: Floats
    x_scale: Floats
    y_offset: float
    y_scale: float
    leaks: tuple[str, ...] = ()

    @staticmethod
    def check(settings: Any, *, private: bool, allow_leaks: bool) -> bool:
        """Return whether to standardise by the training data; read no data.

        A `standardize` of None means True only if the fit is not private and no public number is given.
        """
        given = any(getattr(settings, name) is not None for name in _NAMES)
        if settings.standardize is None:
            return not private and not given
        if settings.standardize and given:
            raise InputError("standardize", "True", "False where offsets or scales are given")
        if settings.standardize and private and not allow_leaks:
            advice = "Pass public x_offset, x_scale, y_offset and y_scale, or allow_leaks=True."
            raise InputError("standardize", "True", "False in a private fit", advice)
        return bool(settings.standardize)

    @classmethod
    def of(cls, settings: Any, X: Floats, y: Floats, *, private: bool, allow_leaks: bool) -> Self:
        """Return the scaling of a fit."""
        if cls.check(settings, private=private, allow_leaks=allow_leaks):
            (x_offset, x_scale), (offset, scale) = _standard(X), _standard(y[:, None])
            return cls(x_offset, x_scale, float(offset[0]), float(scale[0]), (_LEAK,) if private else ())
        x_offset, x_scale, y_offset, y_scale = (
            _public(getattr(settings, name), name, X.shape[1] if name[0] == "x" else None) for name in _NAMES
        )
        return cls(x_offset, x_scale, float(y_offset), float(y_scale))

    def inputs(self, X: Floats) -> Floats:
        """Return scaled inputs, shape (n, d)."""
        return (X - self.x_offset) / self.x_scale

    def targets(self, y: Floats) -> Floats:
        """Return scaled targets, shape (n,)."""
        return (y - self.y_offset) / self.y_scale


def checked_numbers(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[Floats, Floats]:
    """Return inputs and targets of an estimator as numbers, by the checks of scikit-learn."""
    X, y = validate_data(estimator, X, y, dtype=np.float64, y_numeric=True, reset=reset)
    return X, np.asarray(y, dtype=np.float64)


def scaled_numbers(
    estimator: Any, X: Any, y: Any, *, private: bool, allow_leaks: bool, fresh: bool
) -> tuple[Floats, Floats, Scaling]:
    """Return inputs and targets as numbers, and their scaling: that of the first call unless this one is fresh."""
    Scaling.check(estimator, private=private, allow_leaks=allow_leaks)
    rows, targets = checked_numbers(estimator, X, y, reset=fresh)
    if not fresh:
        return rows, targets, estimator.scaling_
    return rows, targets, Scaling.of(estimator, rows, targets, private=private, allow_leaks=allow_leaks)


def _standard(values: Floats) -> tuple[Floats, Floats]:
    deviation = values.std(axis=0)
    steady = deviation <= _CONSTANT * (1 + np.abs(values).max(axis=0))
    return values.mean(axis=0), np.where(steady, 1.0, deviation)


def _public(value: Any, name: str, d: int | None) -> Floats:
    scale = name.endswith("scale")
    many = "" if d is None else f" or {d} numbers"
    expected = f"None, a number{many}, {'positive and ' if scale else ''}finite"
    found = floats((1.0 if scale else 0.0) if value is None else value, name, expected)
    if (
        found.shape not in ((), () if d is None else (d,))
        or not np.isfinite(found).all()
        or (scale and found.min() <= 0)
    ):
        raise InputError(name, repr(value), expected)
    return found if d is None else np.broadcast_to(found, (d,)).copy()


class GaussianPredictions(ABC):
    """Predictions from the predictive mean and variance of scaled targets."""

    scaling_: Scaling

    @abstractmethod
    def _scaled_moments(self, X: Any) -> tuple[Floats, Floats]:
        """Return mean and variance of each row's scaled target, noise included; check that the model is fitted."""

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the mean of the target of each row, and optionally its standard deviation.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the records.
        return_std : bool, default False
            Whether to return the standard deviation, too. It includes the noise of the target and the uncertainty of
            the weights.

        Returns
        -------
        mean : ndarray of shape (n,)
            Predictive means, in the original units of the target.
        std : ndarray of shape (n,)
            Predictive standard deviations. Only with ``return_std=True``.
        """
        mean, variance = self._scaled_moments(X)
        found = self.scaling_.y_offset + self.scaling_.y_scale * mean
        return (found, self.scaling_.y_scale * np.sqrt(variance)) if return_std else found

    def log_likelihood(self, X: Any, y: Any) -> float:
        """Compute the mean log density of targets under the predictive Gaussian distributions.

        Use it to compare models by their uncertainty as well as by their means. Larger is better.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the records.
        y : array_like of shape (n,)
            Target of each record, in the original units.

        Returns
        -------
        float
            Mean over the records of the logarithm of the predictive density.
        """
        mean, std = self.predict(X, return_std=True)
        gap = (np.asarray(y, dtype=np.float64) - mean) / std
        return float(np.mean(-0.5 * gap**2 - np.log(std)) - 0.5 * math.log(2 * math.pi))
