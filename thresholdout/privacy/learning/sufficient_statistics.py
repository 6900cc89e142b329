"""Linear regression from one private release of its sufficient statistics.

The guarantee. Record i becomes a vector ``z_i = (f_i / F, 1/2, y_i / 2) / sqrt(3/2)``: f_i are the features, cut to
norm F, and y_i is the target, cut to [-1, 1], so that ``|z_i| <= 1``. Only the matrix ``M = sum z_i z_i'`` is computed
from the records. For two vectors in the unit ball

    |z z' - w w'|_F^2 = |z|^4 + |w|^4 - 2 (z'w)^2 <= 2,

so that one replaced record moves M by at most sqrt(2) in the Frobenius norm; orthogonal vectors of norm 1 attain it.
The symmetric matrices with that norm are a Euclidean space, in which the diagonal entries and sqrt(2) times those above
the diagonal are coordinates. Noise N(0, s^2) in each coordinate, of variance s^2 on the diagonal and s^2/2 beside it,
is the Gaussian mechanism with noise multiplier s / sqrt(2). Coefficients and their shrinkage are functions of the noisy
matrix and of public numbers (post-processing).

In floating point, entries are sums of n products in blocks of m and then over blocks. In any order, an entry is
off by at most ``g sum |z_ij z_ik|``, g = k u / (1 - k u), k = m + n/m + 2, u = 2^-53 (Higham 2002, (3.5)), and the
matrix by at most ``g sum |z_i|^2 <= g n`` in the Frobenius norm. Two neighbours' matrices are apart by twice that more,
which the sensitivity includes.

This is sufficient-statistics perturbation (Vu and Slavkovic 2009; Dwork, Talwar, Thakurta and Zhang 2014).
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import open_unit, positive
from thresholdout.privacy.accounting.events.event_types import GaussianAnswer
from thresholdout.privacy.learning.dpsgd.settings import two_bounds
from thresholdout.privacy.learning.dpsgd.spending import DEFAULT_EPSILON, default_delta
from thresholdout.privacy.learning.interrupted_calls import UnchangedIfRefused
from thresholdout.privacy.learning.privacy_report import (
    LowSignalWarning,
    PrivacyReport,
    account_for,
    standing_assumptions,
)
from thresholdout.privacy.learning.random_streams import is_seeded, streams
from thresholdout.privacy.learning.targets import least_noise

__all__ = ["SSPRegressor", "noisy_statistics"]

Floats = NDArray[np.float64]

# Intercept and target beside features of norm 1. Small weights leave more of the bounded norm to the features: little
# data estimate their covariance worst.
_INTERCEPT = _TARGET = 0.5
# The largest norm of (features, intercept, target), by which each row is divided.
_LENGTH = math.sqrt(1.0 + _INTERCEPT**2 + _TARGET**2)
_HUGE = 1e100  # an entry whose square is finite; longer rows have their entries cut to it first
_INSIDE = 1.0 - 1e-12  # more than the rounding errors of a norm, so that vectors are in the unit ball
_BLOCK = 8192  # rows that are multiplied at once
_PRIOR = 0.25  # variance of a weight in these coordinates, where features explain about half of [-1, 1]
_LEAST_SHARE = 0.5  # of the variance that features explain; a fit below it is far from the one without noise


def noisy_statistics(rows: Floats, noise_multiplier: float, rng: np.random.Generator) -> Floats:
    """Return the sum of ``z z'`` over rows of norm 1 at most, with noise (guarantee: head of this module)."""
    noise = rng.normal(0.0, noise_multiplier * _sensitivity(len(rows)), (rows.shape[1],) * 2)
    upper = np.triu(noise, 1) / math.sqrt(2.0)
    released: Floats = np.diag(np.diag(noise)) + upper + upper.T
    total = np.zeros_like(released)
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK]
        with np.errstate(all="ignore"):  # no warning depends on records
            # A row above the ball is scaled into it, by a computed norm that is off by less than 1 - _INSIDE.
            part = part * (_INSIDE / np.maximum(np.sqrt(np.square(part).sum(axis=1, keepdims=True)), _INSIDE))
        total += part.T @ part
    released += (total + total.T) / 2.0  # products may be rounded differently above and below the diagonal
    return released


def _sensitivity(records: int) -> float:
    """Return the largest distance between the computed matrices of two neighbours."""
    # k u of the head of this module; the last factor covers the roundings of this bound.
    terms = (_BLOCK + records / _BLOCK + 2.0) * 2.0**-53
    return (math.sqrt(2.0) + 2.0 * records * terms / (1.0 - terms)) * (1.0 + 1e-15)


class SSPRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Train linear regression from one private release of its sufficient statistics.

    Sums of products of features and target are all that least squares needs. They are released once, with Gaussian
    noise, and the coefficients follow from the noisy sums (sufficient-statistics perturbation). A fit takes
    milliseconds, so use it to fit many models. With 5 features it predicts as well as `DPSGDRegressor` from about 2,000
    records at epsilon 3, or 20,000 at epsilon 0.5. With fewer records, `DPSGDRegressor` is better.

    Parameters
    ----------
    epsilon : float, optional
        Privacy target. The noise is calibrated to the smallest multiplier that meets it. Pass at most one of `epsilon`
        and `noise_multiplier`. If both are None, the target is 1.
    noise_multiplier : float, optional
        Standard deviation of the noise divided by the sensitivity of the statistics, in [0.01, 1e8].
    delta : float, optional
        Delta of the guarantee, in (0, 1). The default is 1e-5, or ``1 / (10 n)`` if that is less.
    feature_bounds : pair, optional
        Public lower and upper bounds of the features, as two numbers or two arrays with one number for each feature.
        Features are clipped to them and mapped onto [-1, 1]. If None, features are used as they are.
    feature_norm : float, optional
        Largest Euclidean norm of a row of (mapped) features. Longer rows are scaled down to it. The default, the square
        root of the number of features, scales no row within bounds. A smaller norm needs less noise if most rows are
        shorter.
    target_bounds : pair of float, optional
        Public lower and upper bounds of the target. Targets and predictions are clipped to them. The default is [-1,
        1].
    random_state : int, numpy.random.Generator or None, default None
        Seed or generator of the noise. Pass None for a model that you publish: anyone who knows the seed can compute
        the noise.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, in the original units.
    intercept_ : float
        Intercept, in the original units.
    statistics_ : ndarray of shape (n_features + 2, n_features + 2)
        The released noisy matrix of sums of products, in the order features, intercept, target.
    privacy_report_ : PrivacyReport
        Guarantee of the release, with its assumptions.
    noise_multiplier_ : float
        Noise multiplier of the release.
    delta_ : float
        Delta of the guarantee.
    n_features_in_ : int
        Number of features seen during `fit`.

    Notes
    -----
    The guarantee holds for data sets of equal size that differ in one record. The proof is at the head of this module.
    Let A be the noisy matrix of the features, with eigenvectors V and eigenvalues a, and c the column of the target.
    The coefficients are ``V diag(a / (a^2 + v)) V' c``, without the directions of negative eigenvalues. Here v is about
    the variance of the noise over that of a weight. This is the posterior mean of the weights in a known direction. It
    tends to 0 where the noise is larger than the records.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (2000, 3))
    >>> y = X @ [0.5, -0.25, 0.0] + rng.normal(0, 0.1, 2000)
    >>> model = SSPRegressor(epsilon=1, feature_bounds=(-1, 1), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.7), bool(model.privacy_report_.epsilon <= 1)
    (True, True)
    """

    coef_: Floats
    intercept_: float
    statistics_: Floats
    privacy_report_: PrivacyReport
    noise_multiplier_: float
    delta_: float
    n_features_in_: int
    _target_range: tuple[float, float]

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        noise_multiplier: float | None = None,
        delta: float | None = None,
        feature_bounds: Any = None,
        feature_norm: float | None = None,
        target_bounds: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.noise_multiplier = noise_multiplier
        self.delta = delta
        self.feature_bounds = feature_bounds
        self.feature_norm = feature_norm
        self.target_bounds = target_bounds
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SSPRegressor:
        """Release the noisy statistics of the records once, and compute the coefficients from them.

        Each call is a new release. Add up the reports of several calls with an accountant.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the training records. All values must be finite.
        y : array_like of shape (n,)
            Target of each record. All values must be finite.

        Returns
        -------
        SSPRegressor
            The fitted estimator itself. Read its guarantee from `privacy_report_`.

        Raises
        ------
        InputError, InputTypeError
            If a parameter is out of range or of the wrong type, or the bounds do not fit the number of features.

        Warns
        -----
        LowSignalWarning
            Before the release, if public numbers show that the noise hides most of the variance that the features
            explain.
        """
        with UnchangedIfRefused(self):
            return self._fit(X, y)

    def _fit(self, X: Any, y: Any) -> SSPRegressor:
        epsilon, noise = self._checked_privacy()
        delta = None if self.delta is None else open_unit(self.delta, "delta")
        bounds = two_bounds((-1.0, 1.0) if self.feature_bounds is None else self.feature_bounds, "feature_bounds")
        norm = None if self.feature_norm is None else positive(self.feature_norm, "feature_norm")
        low, high = self._checked_targets()
        rng = streams(self.random_state).noise
        rows, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        n, d = rows.shape
        for end in bounds:
            if end.shape not in ((), (d,)):
                raise InputError("feature_bounds", f"{end.size} numbers", f"a number or {d} numbers for each bound")
        centre, half = _middle(*bounds, "feature_bounds")
        delta = default_delta(n) if delta is None else delta
        if noise is None:
            noise = least_noise(GaussianAnswer, epsilon, delta)
        longest = math.sqrt(d) if norm is None else norm
        _warn_if_lost(n, d, noise, longest)

        middle, width = _middle(low, high, "target_bounds")
        if self.feature_bounds is not None:
            rows = np.clip(rows, *bounds)
        with np.errstate(all="ignore"):  # no warning depends on records
            features = np.clip((rows - centre) / half / longest, -_HUGE, _HUGE)
            features /= np.maximum(np.sqrt(np.square(features).sum(axis=1, keepdims=True)), 1.0)
            goal = (np.clip(targets, low, high) - middle) / width
        z = np.column_stack([features, np.full(n, _INTERCEPT), _TARGET * goal]) / _LENGTH
        statistics = noisy_statistics(z, noise, rng)
        weights = _coefficients(statistics, noise, n) / _TARGET * width
        coef = weights[:d] / longest / half
        report = account_for(
            GaussianAnswer(noise),
            delta=delta,
            released="the noisy statistics and the coefficients",
            noise_multiplier=noise,
            assumptions=standing_assumptions(seeded=is_seeded(self.random_state)),
        )
        # All at once: a call that is stopped before this has released nothing.
        self.__dict__.update(
            statistics_=statistics,
            coef_=coef,
            intercept_=float(middle + weights[d] * _INTERCEPT - coef @ np.broadcast_to(centre, (d,))),
            noise_multiplier_=noise,
            delta_=delta,
            privacy_report_=report,
            _target_range=(low, high),
        )
        return self

    def _checked_privacy(self) -> tuple[float, float | None]:
        if self.epsilon is not None and self.noise_multiplier is not None:
            raise InputError("epsilon", repr(self.epsilon), "None where noise_multiplier is given")
        noise = None if self.noise_multiplier is None else positive(self.noise_multiplier, "noise_multiplier")
        # The range of the accountants; less noise protects nothing.
        if noise is not None and not 0.01 <= noise <= 1e8:
            raise InputError("noise_multiplier", repr(noise), "a number in [0.01, 1e8]", "Less noise protects nothing.")
        return (DEFAULT_EPSILON if self.epsilon is None else positive(self.epsilon, "epsilon")), noise

    def _checked_targets(self) -> tuple[float, float]:
        low, high = two_bounds((-1.0, 1.0) if self.target_bounds is None else self.target_bounds, "target_bounds")
        if low.ndim or high.ndim:
            raise InputError("target_bounds", "arrays", "two numbers")
        return float(low), float(high)

    def predict(self, X: Any) -> Floats:
        """Predict the target of each row, clipped to the bounds of the target.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the records.

        Returns
        -------
        ndarray of shape (n,)
            Predicted targets, in the original units.
        """
        check_is_fitted(self, "coef_")
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        found: Floats = np.clip(rows @ self.coef_ + self.intercept_, *self._target_range)
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # with the noise that few records need
        return tags


def _middle(low: Any, high: Any, name: str) -> tuple[Any, Any]:
    """Return the middle of bounds and half of their distance; refuse bounds that floats cannot divide by."""
    half = high / 2 - low / 2
    if not np.all(half >= np.finfo(np.float64).tiny):
        raise InputError(name, "bounds too close to each other for floats", "a wider range")
    return low / 2 + high / 2, half


def _coefficients(statistics: Floats, noise_multiplier: float, records: int) -> Floats:
    """Return weights of features and intercept from a noisy matrix (see the notes of `SSPRegressor`)."""
    gram, moment = statistics[:-1, :-1], statistics[:-1, -1]
    values, vectors = np.linalg.eigh(gram)
    variance = _variance(noise_multiplier * _sensitivity(records), len(moment))
    # A matrix of squares has no negative eigenvalue: there is nothing but noise in such a direction.
    gain = np.where(values > 0.0, values / (values**2 + variance), 0.0)
    found: Floats = vectors @ (gain * (vectors.T @ moment))
    return found


def _variance(noise_std: float, weights: int) -> float:
    """Return the variance of ``c - A w`` by noise, for weights of their usual size, over the variance of a weight."""
    return noise_std**2 / 2.0 * (1.0 + (weights + 1) * _PRIOR) / _PRIOR


def _warn_if_lost(n: int, d: int, noise: float, longest: float) -> None:
    """Warn by public numbers alone, as if features were uniform on [-1, 1]."""
    # A feature that is uniform on [-1, 1] has a second moment of 1/3.
    signal = n / (3.0 * longest**2 * _LENGTH**2)
    share = signal**2 / (signal**2 + _variance(noise * _sensitivity(n), d + 1))
    if share < _LEAST_SHARE:
        message = (
            f"Noise leaves about {share:.1g} of the R2 that the features have without privacy, where they are uniform "
            f"within their bounds. About {math.sqrt(1 / share - 1):.2g} times as many records, a larger epsilon, fewer "
            "features, or a smaller feature_norm are needed."
        )
        warnings.warn(message, LowSignalWarning, stacklevel=4)
