"""Regressor by differentially private gradient descent."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import column_or_1d, validate_data

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.events.event_types import Adjacency
from thresholdout.privacy.learning.dpsgd.batches import Sampling
from thresholdout.privacy.learning.dpsgd.descent import PrivateDescent, Steps
from thresholdout.privacy.learning.dpsgd.gradient_networks import Activation
from thresholdout.privacy.learning.dpsgd.settings import check_settings, two_bounds
from thresholdout.privacy.learning.interrupted_calls import UnchangedIfRefused

__all__ = ["DPSGDRegressor"]

Floats = NDArray[np.float64]


class DPSGDRegressor(RegressorMixin, PrivateDescent):  # type: ignore[misc]
    """Linear regression or a small network for a number, trained by differentially private gradient descent (DP-SGD).

    The loss is half the squared error. An outlier has a large gradient, which is clipped: beyond the clipping norm its
    influence does not grow, as with a Huber loss.

    Parameters
    ----------
    target_bounds : pair of float, optional
        Public bounds of the targets. Targets are clipped to them and mapped onto [-1, 1] for training, and predictions
        are mapped back. Before the first step the middle is predicted. Without bounds the targets are taken as they
        are; scale them to a size of about 1 by public numbers.
    hidden_layer_sizes, activation, sampling, batch_size, n_epochs, n_steps, clip_norm, learning_rate, epsilon, \
    noise_multiplier, delta, adjacency, public_size, l2, fit_intercept, feature_bounds, feature_norm, average, \
    warm_start, random_state, verbose, callback
        As in `DPSGDClassifier`; the default of `learning_rate` is 0.25.

    Attributes
    ----------
    coefs_, intercepts_ : list of ndarray
        Each layer's weights, shape (inputs, outputs), and intercepts, for features and targets as the bounds map them.
    coef_ : ndarray, shape ``(n_features_in_,)``
        The same without hidden layers.
    intercept_ : float
    privacy_report_, noise_multiplier_, batch_size_, delta_, n_steps_, n_features_in_, feature_names_in_
        As in `DPSGDClassifier`; its notes hold here, too.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + rng.normal(0, 0.1, 5000)
    >>> model = DPSGDRegressor(epsilon=4, target_bounds=(-4, 4), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), bool(model.privacy_report_.epsilon <= 4)
    (True, True)
    """

    _bounds: tuple[float, float] | None

    def __init__(
        self,
        hidden_layer_sizes: int | tuple[int, ...] = (),
        *,
        activation: Activation = "relu",
        sampling: Sampling = "wor",
        batch_size: int | Literal["auto"] = "auto",
        n_epochs: float = 60,
        n_steps: int | None = None,
        clip_norm: Any = 1.0,
        learning_rate: Any = 0.25,
        epsilon: float | None = None,
        noise_multiplier: Any = None,
        delta: float | None = None,
        adjacency: Adjacency = "replace_one",
        public_size: int | None = None,
        l2: float = 0.0,
        fit_intercept: bool = True,
        feature_bounds: Any = None,
        feature_norm: float | None = None,
        target_bounds: Any = None,
        average: bool | int | Literal["half"] = "half",
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool | int = 0,
        callback: Any = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.sampling = sampling
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.n_steps = n_steps
        self.clip_norm = clip_norm
        self.learning_rate = learning_rate
        self.epsilon = epsilon
        self.noise_multiplier = noise_multiplier
        self.delta = delta
        self.adjacency = adjacency
        self.public_size = public_size
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.feature_bounds = feature_bounds
        self.feature_norm = feature_norm
        self.target_bounds = target_bounds
        self.average = average
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any) -> DPSGDRegressor:
        """Train on records.

        Parameters
        ----------
        X : array_like, shape (n, features)
            Finite numbers.
        y : array_like, shape (n,)
            Finite numbers.

        Returns
        -------
        DPSGDRegressor
            Itself.

        Raises
        ------
        InputError
            As in `DPSGDClassifier.fit`.
        """
        with UnchangedIfRefused(self):
            return self._train(X, y, partial=False)

    def partial_fit(self, X: Any, y: Any, n_steps: int | None = None) -> DPSGDRegressor:
        """Take further steps from the current parameters; see `DPSGDClassifier.partial_fit`."""
        with UnchangedIfRefused(self):
            return self._train(X, y, partial=True, n_steps=n_steps)

    def _rest(self, call: Steps, X: Any, y: Any) -> None:
        X, targets = self._checked(X, y, self._bounds, reset=False)
        self._go_on(call, X, targets)

    def _train(self, X: Any, y: Any, *, partial: bool, n_steps: int | None = None) -> DPSGDRegressor:
        settings, bounds = check_settings(self), self._checked_bounds()
        X, targets = self._checked(X, y, bounds, reset=self._begins(partial=partial))
        self._learn(X, targets, 1, settings, {"_bounds": bounds}, partial=partial, n_steps=n_steps)
        return self

    def _checked(self, X: Any, y: Any, bounds: tuple[float, float] | None, *, reset: bool) -> tuple[Floats, Floats]:
        X, y = validate_data(self, X, y, reset=reset, dtype=np.float64, y_numeric=True)
        targets: Floats = column_or_1d(y, warn=True).astype(np.float64)
        if bounds is not None:
            low, high = bounds
            targets = 2 * ((np.clip(targets, low, high) - low) / (high - low)) - 1
        return X, targets

    def _checked_bounds(self) -> tuple[float, float] | None:
        if self.target_bounds is None:
            return None
        low, high = two_bounds(self.target_bounds, "target_bounds")
        if low.ndim or high.ndim:
            raise InputError("target_bounds", "arrays", "two numbers")
        return float(low), float(high)

    @property
    def coef_(self) -> Floats:
        """Weights of linear regression, shape (features,)."""
        if len(self.coefs_) != 1:
            raise AttributeError("A network with hidden layers has no coef_; its weights are in coefs_.")
        return self.coefs_[0][:, 0]

    @property
    def intercept_(self) -> float:
        """Intercept of linear regression."""
        if len(self.coefs_) != 1:
            raise AttributeError("A network with hidden layers has no intercept_; its intercepts are in intercepts_.")
        return float(self.intercepts_[0][0]) if self.intercepts_ else 0.0

    def predict(self, X: Any) -> Floats:
        """Return predictions in the targets' units, shape (n,); they may be outside of the bounds."""
        values = self._scores(X)[:, 0]
        if self._bounds is None:
            return values
        low, high = self._bounds
        return low + (values + 1) / 2 * (high - low)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # with the noise that few records need
        return tags
