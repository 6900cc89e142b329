"""Regression by a network with one hidden layer and variational inference, privately by noisy gradient descent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import count, open_unit, positive
from thresholdout.privacy.accounting.events.composed_events import SelfComposed
from thresholdout.privacy.accounting.events.event_types import Adjacency, check_adjacency
from thresholdout.privacy.learning.dpsgd.batches import PLACES, Batches, PlannedSteps, check_public_size
from thresholdout.privacy.learning.interrupted_calls import (
    ResumedCalls,
    UnchangedIfRefused,
    check_alike,
    kept_if_interrupted,
)
from thresholdout.privacy.learning.privacy_report import (
    PrivacyReport,
    account_for,
    noise_share,
    standing_assumptions,
    warn_of_noise,
)
from thresholdout.privacy.learning.propagation.natural_parameters import clip_norm_of
from thresholdout.privacy.learning.propagation.network_moments import forward_moments
from thresholdout.privacy.learning.propagation.scaling import GaussianPredictions, Scaling, checked_numbers
from thresholdout.privacy.learning.random_streams import Streams, is_seeded, streams
from thresholdout.privacy.learning.targets import least_noise

__all__ = [
    "DPVIRegressor",
    "Gaussians",
    "clipped_gradient_sum",
    "kl_gradient",
]

Floats = NDArray[np.float64]

INNER = 1.0 - 2.0**-20  # gradients are clipped to this part of the norm; the rest is for rounding (THEORY.md, T6)

_CHUNK = 2**21  # numbers of one block's gradients in memory

_BLOCK, _PADDING = 1024, 32  # blocks of rows are filled up, so that a row's result does not depend on the others

_WIDEST_LOG = 30.0  # of variances, so that noise makes none overflow


class Gaussians(NamedTuple):
    """Means and log variances of all weights, or a gradient by them.

    `mean_0`, `log_0` are of the hidden layer, shape (hidden, features + 1); `mean_1`, `log_1` of the output, shape
    (hidden + 1,). The bias comes last.
    """

    mean_0: Floats
    log_0: Floats
    mean_1: Floats
    log_1: Floats

    @classmethod
    def start(cls, features: int, hidden: int, variance: float, rng: np.random.Generator) -> Self:
        """Return random means and one variance."""
        shape = (hidden, features + 1)
        return cls(
            rng.standard_normal(shape) / math.sqrt(features + 1),
            np.full(shape, math.log(variance)),
            rng.standard_normal(hidden + 1) / math.sqrt(hidden + 1),
            np.full(hidden + 1, math.log(variance)),
        )

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(part.size for part in self)

    def moved(self, gradient: Gaussians, rate: float) -> Gaussians:
        """Return the parameters after a step against a gradient; variances stay within e^-30 and e^30."""
        parts = [part - rate * slope for part, slope in zip(self, gradient, strict=True)]
        return Gaussians(
            parts[0],
            np.clip(parts[1], -_WIDEST_LOG, _WIDEST_LOG),
            parts[2],
            np.clip(parts[3], -_WIDEST_LOG, _WIDEST_LOG),
        )


@dataclass(frozen=True)
class _Hidden:
    """Hidden units and residuals of records under sampled hidden weights."""

    units: Floats  # (samples, records, hidden + 1), the last unit is the bias
    gap: Floats  # (samples, records): mean output less target


def _forward(theta: Gaussians, draws: Floats, rows: Floats, y: Floats) -> _Hidden:
    weights = theta.mean_0 + np.exp(0.5 * theta.log_0) * draws
    units = np.ones((len(draws), len(rows), theta.mean_1.size))
    units[:, :, :-1] = np.maximum(rows @ weights.swapaxes(1, 2), 0.0)
    return _Hidden(units, units @ theta.mean_1 - y)


def kl_gradient(theta: Gaussians, precision: float) -> Gaussians:
    """Return the gradient of the divergence of all weights from N(0, 1/precision)."""
    return Gaussians(
        precision * theta.mean_0,
        0.5 * (precision * np.exp(theta.log_0) - 1),
        precision * theta.mean_1,
        0.5 * (precision * np.exp(theta.log_1) - 1),
    )


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def clipped_gradient_sum(
    theta: Gaussians, draws: Floats, rows: Floats, y: Floats, noise_precision: float, clip_norm: float | None
) -> Gaussians:
    """Return the sum over records of the gradients of the negative log likelihood, each clipped (THEORY.md, T6)."""
    total = Gaussians(*(np.zeros_like(part) for part in theta))
    size = min(_BLOCK, max(1, _CHUNK // (theta.mean_0.size * _PADDING)) * _PADDING)
    limit = None if clip_norm is None else clip_norm * INNER
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        # Padding rows have factor 0 (`kept`).
        missing = -len(rows[part]) % _PADDING
        block, targets = np.pad(rows[part], ((0, missing), (0, 0))), np.pad(y[part], (0, missing))
        kept = np.ones(len(block))
        kept[len(block) - missing :] = 0.0
        _add(total, theta, draws, block, targets, noise_precision, limit, kept)
    return total


def _add(
    total: Gaussians,
    theta: Gaussians,
    draws: Floats,
    rows: Floats,
    y: Floats,
    precision: float,
    limit: float | None,
    kept: Floats,
) -> None:
    hidden, samples = _forward(theta, draws, rows, y), len(draws)
    variance = np.exp(theta.log_1)
    by_unit = precision / samples * (hidden.gap[..., None] * theta.mean_1 + hidden.units * variance)[..., :-1]
    by_unit *= hidden.units[..., :-1] > 0
    mean_0 = by_unit.sum(axis=0)
    log_0 = np.einsum("lbi,lij->bij", by_unit, draws, optimize=True) * (0.5 * np.exp(0.5 * theta.log_0))
    log_0 *= rows[:, None, :]
    mean_1 = precision / samples * np.einsum("lb,lbi->bi", hidden.gap, hidden.units)
    log_1 = 0.5 * precision / samples * (hidden.units**2).sum(axis=0) * variance
    factors = kept
    if limit is not None:
        # |h d'| = |h| |d|, so the outer product with the rows is never formed (dpsgd/PROOFS.md, C1).
        squares = (mean_0**2).sum(axis=1) * (rows**2).sum(axis=1) + (log_0**2).sum(axis=(1, 2))
        norms = np.sqrt(squares + (mean_1**2).sum(axis=1) + (log_1**2).sum(axis=1))
        fine = np.isfinite(norms)
        factors = kept * np.where(fine, np.minimum(1.0, limit / np.where(fine & (norms > 0), norms, limit)), 0.0)
        # A factor of 0 does not remove an infinite entry, as 0 * inf is NaN.
        if not fine.all():
            rows = np.where(fine[:, None], rows, 0.0)
            for part in (mean_0, log_0, mean_1, log_1):
                part[~fine] = 0.0
    total.mean_0[:] += (factors[:, None] * mean_0).T @ rows
    total.log_0[:] += np.tensordot(factors, log_0, axes=(0, 0))
    total.mean_1[:] += factors @ mean_1
    total.log_1[:] += factors @ log_1


_MOST_NOISE = 0.1  # of the way of gradients

_LARGEST_BATCH = 2**14  # expected size; drawn batches then have at most 2^15 records, as the proof needs (T6)

_DRAWN = "nobody learns which records were drawn"


@dataclass(frozen=True, eq=False)
class _Call:
    """The charged steps of a fit; public numbers only.

    N is the number of records, or the public number in its place; `sigma` is the noise multiplier.
    """

    batches: Batches | None
    sigma: float
    steps: int
    N: int
    batch_size: int
    learning_rate: float
    noise_precision: float
    prior_precision: float
    n_samples: int
    kl_weight: float
    clip_norm: float | None
    random_state: Any
    of_records: bool  # whether N is their number

    def draws(self, rng: Streams, n: int, theta: Gaussians) -> tuple[Floats, NDArray[Any], Gaussians | None]:
        """Return the random numbers of a step on n records: of the hidden weights, of the batch, and of the noise."""
        samples = rng.initial.standard_normal((self.n_samples, *theta.mean_0.shape))
        if self.batches is None:
            size = min(self.batch_size, self.N)
            return samples, np.flatnonzero(rng.sampling.random(n) < size / self.N), None
        chosen = self.batches.draw(rng.sampling, n)
        # Rounded up, so that the noise is never below sigma C.
        scale = self.sigma * float(self.clip_norm or 0.0) * (1 + 2.0**-50)
        return samples, chosen, Gaussians(*(scale * rng.noise.standard_normal(part.shape) for part in theta))

    def step(self, theta: Gaussians, rows: Floats, y: Floats, rng: Streams) -> Gaussians:
        """Return the weights after one step; the rows only enter the noisy sum."""
        samples, chosen, noise = self.draws(rng, len(rows), theta)
        total = clipped_gradient_sum(theta, samples, rows[chosen], y[chosen], self.noise_precision, self.clip_norm)
        if noise is not None:
            for part, added in zip(total, noise, strict=True):
                part += added
        prior = kl_gradient(theta, self.prior_precision)
        size, weight = self.batch_size if self.batches else min(self.batch_size, self.N), self.kl_weight / self.N
        parts = [part / size + weight * pull for part, pull in zip(total, prior, strict=True)]
        return theta.moved(Gaussians(*parts), self.learning_rate)


class DPVIRegressor(GaussianPredictions, ResumedCalls, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Train a Bayesian neural network for regression by variational inference, optionally with differential privacy.

    The network has one hidden layer and independent Gaussian weights, so `predict` also returns standard deviations. It
    is fitted by stochastic gradient descent on the variational objective. A private fit clips the gradient of each
    record and adds noise (DP-SGD). `PBPRegressor` fits a similar network by expectation propagation, and
    `DPSGDRegressor` one without uncertainty.

    Parameters
    ----------
    n_hidden : int, default 50
        Number of rectified linear units in the hidden layer.
    n_epochs : int, default 40
        Number of passes over the data. Each takes ``N // batch_size`` steps, at least one, for N records or for N =
        `public_size`.
    batch_size : int, default 100
        Expected size of a batch. Each record is drawn independently with probability ``batch_size / N``.
    learning_rate : float, default 0.05
        Learning rate of each step.
    noise_precision : float, default 5.0
        Precision of a scaled target about its mean, a public number.
    prior_precision : float, default 1.0
        Precision of the Gaussian prior of the weights, whose mean is 0; a public number.
    n_samples : int, default 10
        Number of draws of the hidden weights in each step.
    kl_weight : float, default 1.0
        beta, the weight of the Kullback-Leibler divergence from the prior, 0 or more. 1 gives the evidence lower bound.
    clip_norm : float or None, default 1.0
        Clipping threshold for the norm of the gradient of each record. None, for no clipping, needs a fit without
        noise.
    epsilon : float, optional
        Privacy target, for which the noise is calibrated. Pass at most one of `epsilon` and `noise_multiplier`. If both
        are None, the fit is not private.
    delta : float, default 1e-5
        Delta of the guarantee, in (0, 1).
    noise_multiplier : float, optional
        Standard deviation of the noise on the sum of clipped gradients, divided by `clip_norm`.
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        Whether the guarantee is about one replaced record, or about one record more or less.
    public_size : int, optional
        Required with ``adjacency="add_remove"``, because N itself reveals whether a record is present: a public number
        in place of N, on which steps, rate, the weight of the prior and noise depend.
    initial_variance : float, default 0.01
        Variance of all weights at the start.
    x_offset, x_scale, y_offset, y_scale : float or array_like, optional
        Public numbers for scaling: ``(X - x_offset) / x_scale``, and the same for y.
    standardize : bool, optional
        Whether to scale by means and standard deviations of the training data. If None, True unless the fit is private
        or a public number is given. A private fit also needs `allow_leaks` for it.
    allow_leaks : bool, default False
        Whether a private fit may use facts outside its guarantee, which `privacy_report_` then lists.
    random_state : int, numpy.random.Generator or None, default None
        Seed or generator of start, batches and noise. Pass None for a model that you publish: anyone who knows the seed
        can compute the noise.

    Attributes
    ----------
    q_ : Gaussians
        Means and log variances of the weights.
    n_steps_ : int
        Number of steps taken. The privacy cost depends on the number of steps, not on `n_epochs`. An interrupted fit is
        charged for all its steps.
    privacy_report_ : PrivacyReport
        Guarantee of all steps of the fit. Its epsilon is ``inf`` without noise.

    Notes
    -----
    A step is ``theta - learning_rate [ (sum of clipped gradients + noise) / batch_size + (beta/N) grad KL ]``. The last
    part does not depend on records, so it is neither clipped nor counted; published code clips it with the rest.
    Predictions propagate moments as in `PBPRegressor`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(300, 1))
    >>> y = np.abs(X[:, 0])
    >>> model = DPVIRegressor(10, n_epochs=60, batch_size=50, learning_rate=0.1, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.8
    True
    """

    q_: Gaussians
    n_steps_: int
    scaling_: Scaling
    _precision: float
    _stopped: _Call | None

    def __init__(
        self,
        n_hidden: int = 50,
        *,
        n_epochs: int = 40,
        batch_size: int = 100,
        learning_rate: float = 0.05,
        noise_precision: float = 5.0,
        prior_precision: float = 1.0,
        n_samples: int = 10,
        kl_weight: float = 1.0,
        clip_norm: float | None = 1.0,
        epsilon: float | None = None,
        delta: float = 1e-5,
        noise_multiplier: float | None = None,
        adjacency: Adjacency = "replace_one",
        public_size: int | None = None,
        initial_variance: float = 0.01,
        x_offset: Any = None,
        x_scale: Any = None,
        y_offset: float | None = None,
        y_scale: float | None = None,
        standardize: bool | None = None,
        allow_leaks: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.noise_precision = noise_precision
        self.prior_precision = prior_precision
        self.n_samples = n_samples
        self.kl_weight = kl_weight
        self.clip_norm = clip_norm
        self.epsilon = epsilon
        self.delta = delta
        self.noise_multiplier = noise_multiplier
        self.adjacency = adjacency
        self.public_size = public_size
        self.initial_variance = initial_variance
        self.x_offset = x_offset
        self.x_scale = x_scale
        self.y_offset = y_offset
        self.y_scale = y_scale
        self.standardize = standardize
        self.allow_leaks = allow_leaks
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train the network, from a new random start.

        Parameters
        ----------
        X : array_like of shape (N, n_features)
            Features of the training records. All values must be finite.
        y : array_like of shape (N,)
            Target of each record. All values must be finite.

        Returns
        -------
        DPVIRegressor
            The fitted estimator itself.

        Raises
        ------
        InputError
            If a parameter is out of range or contradicts another one, or no noise meets the target epsilon.

        Warns
        -----
        LowSignalWarning
            If public numbers show that the noise is likely to hide the signal.
        """
        with UnchangedIfRefused(self):
            return self._learn(X, y)

    def _learn(self, X: Any, y: Any) -> Self:
        private = self._check()
        leaky = bool(self.allow_leaks)
        Scaling.check(self, private=private, allow_leaks=leaky)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        y, N = np.asarray(y, dtype=np.float64), len(X) if self.public_size is None else int(self.public_size)
        n_steps = self.n_epochs * max(1, N // self.batch_size)
        batches, sigma = None, 0.0
        if private:
            batches = Batches("poisson", self.batch_size, N, check_adjacency(self.adjacency))
            sigma = self._noise(PlannedSteps(batches, n_steps))
        scaling = Scaling.of(self, X, y, private=private, allow_leaks=leaky)
        call = _Call(
            batches, sigma, n_steps, N, self.batch_size, float(self.learning_rate), float(self.noise_precision),
            float(self.prior_precision), self.n_samples, float(self.kl_weight), self.clip_norm, self.random_state,
            self.public_size is None,
        )  # fmt: skip
        report = self._report(call, scaling.leaks)
        steps, parameters = np.ones(n_steps), 2 * self.n_hidden * (X.shape[1] + 2)
        share = noise_share(sigma * steps, steps, self.batch_size, parameters)
        warn_of_noise(share, _MOST_NOISE, "as many records, or as large an epsilon,", stacklevel=3)
        rng = streams(self.random_state)
        start = Gaussians.start(X.shape[1], self.n_hidden, self.initial_variance, rng.initial)
        # One assignment before the first step: after any interrupt the report is that of the weights beside it.
        self.__dict__.update(
            scaling_=scaling,
            privacy_report_=report,
            q_=start,
            n_steps_=0,
            _precision=call.noise_precision,
            _stopped=call,
        )
        self._follow(call, X, y, rng)
        return self

    def _rest(self, call: _Call, X: Any, y: Any) -> None:
        X, y = checked_numbers(self, X, y, reset=False)
        if call.of_records:
            check_alike("the number of records", call.N, len(X))
        rng = streams(call.random_state)
        Gaussians.start(X.shape[1], self.q_.mean_0.shape[0], 1.0, rng.initial)
        for _ in range(self.n_steps_):
            call.draws(rng, len(X), self.q_)
        self._follow(call, X, y, rng)

    def _follow(self, call: _Call, X: Floats, y: Floats, rng: Streams) -> None:
        """Take the steps of a fit, or those that an interrupt has left; each is stored in one assignment."""
        rows, targets = np.hstack([self.scaling_.inputs(X), np.ones((len(X), 1))]), self.scaling_.targets(y)
        with kept_if_interrupted(lambda: self.q_):
            for number in range(self.n_steps_, call.steps):
                self.__dict__.update(q_=call.step(self.q_, rows, targets, rng), n_steps_=number + 1)
        self._stopped = None

    def _check(self) -> bool:
        """Check all settings; return whether the fit is private."""
        for name in ("n_hidden", "n_epochs", "batch_size", "n_samples"):
            count(getattr(self, name), name)
        for name in ("learning_rate", "noise_precision", "prior_precision", "initial_variance"):
            positive(getattr(self, name), name)
        positive(self.kl_weight, "kl_weight", zero=True)
        open_unit(self.delta, "delta")
        check_public_size(self.adjacency, self.public_size)
        if self.clip_norm is not None:
            clip_norm_of(self.clip_norm)
        private = self.epsilon is not None or self.noise_multiplier is not None
        if self.epsilon is not None and self.noise_multiplier is not None:
            raise InputError("epsilon", repr(self.epsilon), "None where noise_multiplier is given")
        if private and self.clip_norm is None:
            raise InputError("clip_norm", "None in a private fit", "a norm above 0")
        if private and self.batch_size > _LARGEST_BATCH:
            raise InputError("batch_size", str(self.batch_size), f"at most {_LARGEST_BATCH} in a private fit")
        for name in ("epsilon", "noise_multiplier"):
            if getattr(self, name) is not None:
                positive(getattr(self, name), name)
        return private

    def _noise(self, steps: PlannedSteps) -> float:
        if self.epsilon is None:
            return float(self.noise_multiplier)  # type: ignore[arg-type]
        return least_noise(steps, self.epsilon, self.delta, steps.batches.adjacency)

    def _report(self, call: _Call, leaks: tuple[str, ...]) -> PrivacyReport:
        released = "the weights' means and variances after each step, and all that is computed from them alone"
        batches = call.batches
        if batches is None:
            return account_for(None, delta=self.delta, released=released, noise_multiplier=0.0)
        standing = standing_assumptions(seeded=is_seeded(self.random_state), adjacency=batches.adjacency)
        places = (PLACES,) if batches.adjacency == "add_remove" else ()
        return account_for(
            SelfComposed(batches.event(call.sigma), call.steps),
            delta=self.delta,
            released=released,
            noise_multiplier=call.sigma,
            adjacency=batches.adjacency,
            assumptions=(*standing, *places, _DRAWN),
            leaks=leaks,
            details={"n_releases": call.steps, "sampling": "poisson", "rate": batches.rate},
        )

    def _scaled_moments(self, X: Any) -> tuple[Floats, Floats]:
        check_is_fitted(self, "q_")
        rows = self.scaling_.inputs(validate_data(self, X, reset=False, dtype=np.float64))
        inputs, units = self.q_.mean_0.shape[1], self.q_.mean_1.size
        # `forward_moments` divides each layer by the root of its inputs, this network does not.
        means = [self.q_.mean_0 * math.sqrt(inputs), self.q_.mean_1[None] * math.sqrt(units)]
        variances = [np.exp(self.q_.log_0) * inputs, np.exp(self.q_.log_1)[None] * units]
        found = forward_moments(means, variances, rows)
        return found.mean, found.variance + 1 / self._precision

    def posterior(self) -> dict[str, Any]:
        """Return the posterior of the weights, for inputs and target as they were scaled.

        Returns
        -------
        dict
            Lists with one array for each layer: the moments ``means`` and ``variances``, and the natural parameters
            ``Lam``, one over the variance, and ``eta``, the mean over the variance.
        """
        check_is_fitted(self, "q_")
        means = [self.q_.mean_0, self.q_.mean_1]
        variances = [np.exp(self.q_.log_0), np.exp(self.q_.log_1)]
        eta = [mean / variance for mean, variance in zip(means, variances, strict=True)]
        return {"means": means, "variances": variances, "eta": eta, "Lam": [1 / variance for variance in variances]}
