"""Checks of the estimators' parameters, before any record is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import chosen, count, number, open_unit, positive
from thresholdout.privacy.accounting.events.event_types import Adjacency, check_adjacency
from thresholdout.privacy.learning.dpsgd.batches import Batches, Sampling, check_public_size
from thresholdout.privacy.learning.dpsgd.clipping import ClipNorm, check_clip_norm
from thresholdout.privacy.learning.dpsgd.gradient_networks import Activation
from thresholdout.privacy.learning.dpsgd.spending import DEFAULT_EPSILON, default_delta

__all__ = ["Preparation", "Settings", "check_settings", "two_bounds"]

Floats = NDArray[np.float64]
AUTO_BATCH = 2048  # measured, as the other defaults: python -m benchmarks.private_learners defaults


def two_bounds(value: object, name: str) -> tuple[Any, Any]:
    """Return finite bounds, the lower below the upper; numbers, or arrays with one for each feature."""
    expected = "two bounds, the lower one first"
    if not isinstance(value, (tuple, list, np.ndarray)) or len(value) != 2:
        raise InputTypeError(name, f"a {type(value).__name__}", expected)
    try:
        low, high = (np.asarray(end, dtype=np.float64) for end in value)
    except (TypeError, ValueError):
        raise InputTypeError(name, "values that are not numbers", expected) from None
    if max(low.ndim, high.ndim) > 1 or not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise InputError(name, "a bound that is not a finite number or row", expected)
    if low.ndim and high.ndim and low.shape != high.shape:
        raise InputError(name, f"{low.shape[0]} and {high.shape[0]} numbers", "two bounds of equal length")
    if not (low < high).all() or not np.isfinite(high - low).all():
        raise InputError(name, "a lower bound that is not below the upper one", expected)
    return low, high


@dataclass(frozen=True, eq=False)
class Preparation:
    """Map of each row of features, by public numbers alone: clip to `bounds`, map onto [0, 1], scale down to `norm`.

    Examples
    --------
    >>> Preparation((np.array(0.0), np.array(10.0)), 1.0)(np.array([[5.0, 20.0], [2.0, -1.0]])).round(3)
    array([[0.447, 0.894],
           [0.2  , 0.   ]])
    """

    bounds: tuple[Any, Any] | None = None
    norm: float | None = None

    def check(self, features: int) -> None:
        """Check that there are bounds for each feature."""
        for end in self.bounds or ():
            if end.ndim and len(end) != features:
                expected = f"numbers, or one bound for each of {features} features"
                raise InputError("feature_bounds", f"bounds of {len(end)} features", expected)

    def __call__(self, X: Floats) -> Floats:
        """Return the rows that the network trains on, shape (n, features)."""
        if self.bounds is not None:
            low, high = self.bounds
            X = (np.clip(X, low, high) - low) / (high - low)
        if self.norm is not None:
            # Divided by the largest entry first, so that no square overflows or underflows.
            largest = np.abs(X).max(axis=1, keepdims=True)
            norms = largest * np.linalg.norm(X / np.where(largest > 0, largest, 1.0), axis=1, keepdims=True)
            X = X * (self.norm / np.maximum(norms, self.norm))
        return X


@dataclass(frozen=True, eq=False)
class Settings:
    """Checked parameters of an estimator; see `DPSGDClassifier`."""

    hidden: tuple[int, ...]
    activation: Activation
    sampling: Sampling
    batch_size: int | None
    n_epochs: float
    n_steps: int | None
    clip_norm: ClipNorm
    learning_rate: Any
    epsilon: float | None
    noise_multiplier: Any
    delta: float | None
    adjacency: Adjacency
    public_size: int | None
    l2: float
    prepare: Preparation
    average_after: int | Literal["half"] | None
    callback: Callable[[int, Any], object] | None

    def records(self, n: int) -> int:
        """Return the public number of records, which is n where all neighbours have as many."""
        return n if self.public_size is None else self.public_size

    def batches(self, n: int) -> Batches:
        """Return the batches for n records."""
        records = self.records(n)
        if self.sampling != "poisson" and n < records:
            raise InputError("public_size", f"{records} (n_samples = {n})", "at most the number of records")
        size = self.batch_size
        if size is None:
            # Only there may a batch hold all records; otherwise it holds half of them.
            whole = self.sampling == "wor" and self.adjacency == "replace_one"
            size = min(AUTO_BATCH, records if whole else max(1, records // 2))
        return Batches(self.sampling, size, records, self.adjacency)

    def steps(self, batches: Batches) -> int:
        """Return the number of steps of a fit."""
        if self.n_steps is not None:
            return self.n_steps
        return max(1, math.ceil(self.n_epochs * batches.records / batches.batch_size))

    def delta_for(self, batches: Batches) -> float:
        """Return delta, or the default for the public number of records."""
        return default_delta(batches.records) if self.delta is None else self.delta


def check_settings(estimator: Any) -> Settings:
    """Return the parameters of an estimator, checked without any data."""
    public_size = check_public_size(estimator.adjacency, estimator.public_size)
    epsilon, noise = estimator.epsilon, estimator.noise_multiplier
    if epsilon is not None and noise is not None:
        raise InputError("epsilon", repr(epsilon), "None where noise_multiplier is given")
    if epsilon is None and noise is None:
        epsilon = DEFAULT_EPSILON
    for name in ("fit_intercept", "warm_start"):
        if not isinstance(getattr(estimator, name), (bool, np.bool_)):
            raise InputTypeError(name, f"a {type(getattr(estimator, name)).__name__}", "True or False")
    if estimator.callback is not None and not callable(estimator.callback):
        raise InputTypeError("callback", f"a {type(estimator.callback).__name__}", "None or a function")
    bounds, norm = estimator.feature_bounds, estimator.feature_norm
    hidden = _hidden(estimator.hidden_layer_sizes)
    return Settings(
        hidden=hidden,
        activation=cast(Activation, chosen(estimator.activation, "activation", ("relu", "tanh"))),
        sampling=cast(Sampling, chosen(estimator.sampling, "sampling", ("wor", "wr", "poisson"))),
        batch_size=_batch_size(estimator.batch_size),
        n_epochs=positive(estimator.n_epochs, "n_epochs"),
        n_steps=None if estimator.n_steps is None else count(estimator.n_steps, "n_steps"),
        clip_norm=check_clip_norm(estimator.clip_norm, layers=len(hidden) + 1),
        learning_rate=estimator.learning_rate,
        epsilon=None if epsilon is None else positive(epsilon, "epsilon"),
        noise_multiplier=noise,
        delta=None if estimator.delta is None else open_unit(estimator.delta, "delta"),
        adjacency=check_adjacency(estimator.adjacency),
        public_size=public_size,
        l2=positive(estimator.l2, "l2", zero=True),
        prepare=Preparation(
            None if bounds is None else two_bounds(bounds, "feature_bounds"),
            None if norm is None else positive(norm, "feature_norm"),
        ),
        average_after=_average(estimator.average),
        callback=estimator.callback,
    )


def _hidden(value: object) -> tuple[int, ...]:
    if isinstance(value, (tuple, list)):
        return tuple(count(width, "hidden_layer_sizes") for width in value)
    return (count(value, "hidden_layer_sizes"),)


def _batch_size(value: object) -> int | None:
    if isinstance(value, str):
        if value != "auto":
            raise InputError("batch_size", repr(value), "'auto' or an integer of at least 1")
        return None
    return count(value, "batch_size")


def _average(value: object) -> int | Literal["half"] | None:
    if isinstance(value, str):
        if value != "half":
            raise InputError("average", repr(value), "True, False, 'half', or an integer of at least 0")
        return "half"
    if isinstance(value, (bool, np.bool_)):
        return 0 if value else None
    return int(number(count(value, "average", least=0), "average"))
