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
    """Train linear regression or a small neural network with differentially private gradient descent (DP-SGD).

    Use it for a numeric target where the model must not reveal any single training record. `DPSGDClassifier` is the
    same for classes, and `SSPRegressor` fits linear regression from one noisy release in place of many steps. The loss
    is half the squared error. An outlier has a large gradient, which is clipped: beyond the clipping norm its influence
    does not grow, as with a Huber loss.

    Parameters
    ----------
    hidden_layer_sizes : int or tuple of int, default ()
        Width of each hidden layer. The default has no hidden layer, which is linear regression.
    activation : {"relu", "tanh"}, default "relu"
        Activation function of the hidden layers.
    sampling : {"wor", "wr", "poisson"}, default "wor"
        How each step draws its batch: without replacement, with replacement, or each record with probability B / n.
    batch_size : int or "auto", default "auto"
        B, the (expected) size of a batch. "auto" is n for "wor" with replaced records and n / 2 otherwise, and at most
        2048.
    n_epochs : float, default 60
        Number of passes over the data. A `fit` takes ``ceil(n_epochs * n / B)`` steps.
    n_steps : int, optional
        Number of steps of a `fit`. If given, `n_epochs` is ignored.
    clip_norm : float or sequence of float, default 1.0
        Clipping threshold for the norm of the gradient of each record, or one threshold for each layer.
    learning_rate : float, array or callable, default 0.25
        One rate for all steps, an array with one rate for each step, or a function of the number of a step.
    epsilon : float, optional
        Privacy target for all calls since the parameters started. Pass at most one of `epsilon` and `noise_multiplier`.
        If both are None, the target is 1.
    noise_multiplier : float, array or callable, optional
        Standard deviation of the noise on the sum of the clipped gradients of a batch, divided by the clipping norm. 0
        gives neither noise nor privacy.
    delta : float, optional
        Delta of the guarantee, in (0, 1). The default is 1e-5, or 1 / (10 n) if that is less.
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        Whether the guarantee is about one replaced record, or about one record more or less.
    public_size : int, optional
        Required with ``adjacency="add_remove"``: a public number that replaces n in all settings.
    l2 : float, default 0.0
        Strength of the penalty ``l2 / 2`` times the sum of the squared weights on the mean loss.
    fit_intercept : bool, default True
        Whether the layers have intercepts.
    feature_bounds : pair of floats or of arrays, optional
        Public lower and upper bounds of the features. Features are clipped to them and mapped onto [0, 1]. If None,
        features are used as they are.
    feature_norm : float, optional
        Largest Euclidean norm of a row of (mapped) features. Longer rows are scaled down to it.
    target_bounds : pair of float, optional
        Public lower and upper bounds of the target. Targets are clipped to them and mapped onto [-1, 1] for training,
        and predictions are mapped back. Before the first step, the middle is predicted. If None, targets are used as
        they are: scale them to a size of about 1 by public numbers.
    average : bool, int or "half", default "half"
        Which iterates the model averages: those of the later half of the last call ("half"), all (True), those after
        the first k steps (an integer k), or the last one alone (False).
    warm_start : bool, default False
        Whether `fit` continues from the end of the last call, which then counts towards `epsilon`.
    random_state : int, numpy.random.Generator or None, default None
        Seed or generator of batches, noise and start. Pass None for a model that you publish: anyone who knows the seed
        can compute the noise.
    verbose : bool or int, default 0
        Whether to show a progress bar.
    callback : callable, optional
        Function that is called after each step with the number of the step and the (weights, intercepts) of the layers.
        A true result ends the call, which is charged in full.

    Attributes
    ----------
    coefs_ : list of ndarray
        Weights of each layer, shape (inputs, outputs), for features and targets as the bounds map them.
    intercepts_ : list of ndarray
        Intercepts of each layer, on the same scale. Empty without intercepts.
    coef_ : ndarray of shape ``(n_features_in_,)``
        Weights of linear regression, on the same scale. Not available with hidden layers.
    intercept_ : float
        Intercept of linear regression, on the same scale. Not available with hidden layers.
    privacy_report_ : PrivacyReport
        Guarantee of all steps since the parameters started, with its assumptions and its gaps.
    noise_multiplier_ : float
        Smallest noise multiplier among the steps of the last call.
    batch_size_ : int
        Batch size of the last call.
    delta_ : float
        Delta of the guarantee.
    n_steps_ : int
        Number of steps taken since the parameters started.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Names of the features, if `X` had names that are all strings.

    See Also
    --------
    DPSGDClassifier : Describes the common parameters in full. Its notes hold here, too.

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
        """Train the regressor with differential privacy.

        The parameters start anew, unless `warm_start` is True.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the training records. All values must be finite.
        y : array_like of shape (n,)
            Target of each record. All values must be finite.

        Returns
        -------
        DPSGDRegressor
            The fitted estimator itself. Read its guarantee from `privacy_report_`.

        Raises
        ------
        InputError
            If a parameter is invalid, a batch is not smaller than the data where it must be, no noise meets the target
            epsilon, or earlier calls have used the target up.

        Warns
        -----
        CostlyTargetWarning
            If the rest of a target needs at least twice the noise of earlier calls.
        DivergedWarning
            If the trained parameters are not finite.
        LowSignalWarning
            If public numbers show that the noise is likely to hide the signal.
        """
        with UnchangedIfRefused(self):
            return self._train(X, y, partial=False)

    def partial_fit(self, X: Any, y: Any, n_steps: int | None = None) -> DPSGDRegressor:
        """Continue training from the current parameters, on the same or on new data.

        The first call initializes the parameters. If `epsilon` is set as a target, it is the budget for as many steps
        as a single call to `fit` would take; all calls to `partial_fit` together share those steps. The first call
        calibrates the noise for all of them.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the records of this call. All values must be finite.
        y : array_like of shape (n,)
            Target of each record. All values must be finite.
        n_steps : int, optional
            Number of steps. If None, one pass over the data, ``ceil(n / B)`` steps, or the remaining steps of a target
            if they are fewer.

        Returns
        -------
        DPSGDRegressor
            The estimator itself. Its `privacy_report_` covers all calls so far.

        Raises
        ------
        InputError
            If `fit` would refuse the parameters or the data, if the layers differ from those of earlier calls, or if a
            target has fewer than `n_steps` steps left.

        Warns
        -----
        SpentTargetWarning
            If `n_steps` is None and a target has no steps left. The call then does nothing.
        CostlyTargetWarning
            If the rest of a target needs at least twice the noise of earlier calls.
        """
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
        """Weights of linear regression, an array of shape (features,), for features and targets as the bounds map them.

        Raises AttributeError for a network with hidden layers, whose weights are in `coefs_`.
        """
        if len(self.coefs_) != 1:
            raise AttributeError("A network with hidden layers has no coef_; its weights are in coefs_.")
        return self.coefs_[0][:, 0]

    @property
    def intercept_(self) -> float:
        """Intercept of linear regression, a float, for features and targets as the bounds map them.

        Zero without an intercept. Raises AttributeError for a network with hidden layers, whose intercepts are in
        `intercepts_`.
        """
        if len(self.coefs_) != 1:
            raise AttributeError("A network with hidden layers has no intercept_; its intercepts are in intercepts_.")
        return float(self.intercepts_[0][0]) if self.intercepts_ else 0.0

    def predict(self, X: Any) -> Floats:
        """Predict the target of each row, in the original units.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the records.

        Returns
        -------
        ndarray of shape (n,)
            Predicted targets. They are not clipped to `target_bounds`.
        """
        values = self._scores(X)[:, 0]
        if self._bounds is None:
            return values
        low, high = self._bounds
        return low + (values + 1) / 2 * (high - low)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # with the noise that few records need
        return tags
