"""Classifier by differentially private gradient descent."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.events.event_types import Adjacency
from thresholdout.privacy.learning.dpsgd.batches import Sampling
from thresholdout.privacy.learning.dpsgd.descent import PrivateDescent, Steps
from thresholdout.privacy.learning.dpsgd.gradient_networks import Activation, Output
from thresholdout.privacy.learning.dpsgd.settings import check_settings
from thresholdout.privacy.learning.interrupted_calls import UnchangedIfRefused
from thresholdout.privacy.learning.privacy_report import CLASSES_LEAK

__all__ = ["DPSGDClassifier"]

Floats = NDArray[np.float64]


class DPSGDClassifier(ClassifierMixin, PrivateDescent):  # type: ignore[misc]
    """Train softmax regression or a small neural network with differentially private gradient descent (DP-SGD).

    Use it in place of `sklearn.linear_model.LogisticRegression` or `sklearn.neural_network.MLPClassifier` where the
    model must not reveal any single training record. Ten classes of 64 features need about 1,000 records at epsilon 1.
    Every step draws a fresh batch, clips the gradient of each record and adds Gaussian noise to the sum. All iterates
    are private, and so are the model and everything that is computed from it. `privacy_report_` states the guarantee
    (epsilon and delta), its assumptions and its gaps.

    Parameters
    ----------
    hidden_layer_sizes : int or tuple of int, default ()
        Width of each hidden layer. The default has no hidden layer, which is softmax regression.
    activation : {"relu", "tanh"}, default "relu"
        Activation function of the hidden layers.
    sampling : {"wor", "wr", "poisson"}, default "wor"
        How each step draws its batch of size B from the n records.

        - "wor": B different records, without replacement.
        - "wr": B independent draws, with replacement.
        - "poisson": each record independently with probability B / n.

        A fixed size keeps the work of a step constant. Poisson batches need about half the noise of a fixed size with
        ``adjacency="add_remove"``. With replaced records the three are close to each other, except for small noise.
    batch_size : int or "auto", default "auto"
        B, the size of a batch (the expected size for "poisson") and the divisor of the sum of gradients. It must be
        less than n. Only "wor" with ``adjacency="replace_one"`` allows B = n, where each step uses all records. "auto"
        is n in that case and n / 2 otherwise, and at most 2048.
    n_epochs : float, default 60
        Number of passes over the data. A `fit` takes ``ceil(n_epochs * n / B)`` steps.
    n_steps : int, optional
        Number of steps of a `fit`. If given, `n_epochs` is ignored.
    clip_norm : float or sequence of float, default 1.0
        C, the clipping threshold in [1e-50, 1e50]. The gradient of each record, over all parameters jointly, is scaled
        down to at most this norm. With a sequence, one norm for each layer, the part of each layer is scaled down by
        itself. C, the unit of the noise, is then the root of the sum of their squares. A gradient that is not finite,
        or whose norm exceeds 1e75, counts as zero.
    learning_rate : float, array or callable, default 2.0
        One rate for all steps, an array with one rate for each step, or a function that maps the number of a step to
        its rate.
    epsilon : float, optional
        Privacy target for all calls since the parameters started. The noise is calibrated to the smallest multiplier
        that meets the target, up to a relative error of 1e-3, which may take some seconds. Pass at most one of
        `epsilon` and `noise_multiplier`. If both are None, the target is 1.
    noise_multiplier : float, array or callable, optional
        Standard deviation of the noise on the *sum* of the clipped gradients of a batch, divided by C. Pass one number
        for all steps, an array with one for each step, or a function of the number of a step. Values are 0, which gives
        neither noise nor privacy, or 0.01 to 1e8.
    delta : float, optional
        Delta of the guarantee, in (0, 1). The default is 1e-5, or 1 / (10 n) if that is less, for the n of the first
        call.
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        Which data sets the guarantee makes hard to tell apart.

        - "replace_one": data sets of equal size that differ in one record.
        - "add_remove": data sets of which one has one record more.
    public_size : int, optional
        Required with ``adjacency="add_remove"``, because n itself reveals whether a record is present: a public number
        on which rates, numbers of steps and noise depend in place of n. For batches of a fixed size, the data must have
        at least as many records.
    l2 : float, default 0.0
        Strength of the penalty ``l2 / 2`` times the sum of the squared weights, without intercepts, on the mean loss.
        The penalty depends on no record and needs no noise.
    fit_intercept : bool, default True
        Whether the layers have intercepts.
    feature_bounds : pair of floats or of arrays, optional
        Public lower and upper bounds of the features. Features are clipped to them and mapped onto [0, 1]. If None,
        features are used as they are. Standardize by public numbers only: means and standard deviations of the data
        would be releases outside the account.
    feature_norm : float, optional
        Largest Euclidean norm of a row of (mapped) features. Longer rows are scaled down to it. If None, no row is
        scaled.
    classes : array, optional
        All possible labels. If None, they are taken from `y`, which `privacy_report_` lists as a leak: a class with one
        record reveals that record.
    average : bool, int or "half", default "half"
        Which iterates the model averages. An average is no further release, and has less noise.

        - "half": the iterates of the later half of the last call.
        - True: all iterates.
        - An integer k: the iterates after the first k steps.
        - False: the last iterate alone.
    warm_start : bool, default False
        Whether `fit` continues from the end of the last call. Earlier calls count towards `epsilon`: a target that they
        have used up is refused, and the rest of a larger one may need much noise. To use one target up in parts, call
        `partial_fit` with `n_steps`.
    random_state : int, numpy.random.Generator or None, default None
        Seed or generator of batches, noise and start. Pass None for a model that you publish: the noise then comes from
        fresh entropy. Anyone who knows an integer seed can compute the noise, and the same integer on other data gives
        the same noise.
    verbose : bool or int, default 0
        Whether to show a progress bar. It shows no loss, which would be a further release about the records.
    callback : callable, optional
        Function that is called after each step with the number of the step and a read-only list of (weights,
        intercepts) of the layers. A true result ends the call. The call is charged in full even then, because the
        decision to stop depends on iterates.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Class labels in increasing order.
    coefs_ : list of ndarray
        Weights of each layer, shape (inputs, outputs), for features as `feature_bounds` and `feature_norm` map them.
    intercepts_ : list of ndarray
        Intercepts of each layer. Empty without intercepts.
    coef_ : ndarray of shape ``(k, n_features_in_)``
        Weights of softmax regression. Not available with hidden layers.
    intercept_ : ndarray of shape (k,)
        Intercepts of softmax regression. Not available with hidden layers.
    privacy_report_ : PrivacyReport
        Guarantee of all steps since the parameters started: its epsilon and delta, its assumptions, and the leaks that
        it does not cover.
    noise_multiplier_ : float
        Smallest noise multiplier among the steps of the last call.
    batch_size_ : int
        Batch size B of the last call.
    delta_ : float
        Delta of the guarantee.
    n_steps_ : int
        Number of steps taken since the parameters started.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Names of the features, if `X` had names that are all strings.

    Notes
    -----
    A call is charged as a whole before its first step, even if it is interrupted or stopped. After an interrupt the
    estimator holds the result of its finished steps, and `resume` takes the others. ``PROOFS.md`` of this package
    proves the bounds, also for floating-point numbers. The noise is drawn in floating point by the generator of numpy,
    which is not cryptographic. Labels outside of `classes` and features that are not finite are refused. The guarantee
    covers neither such refusals nor running times.

    Another `fit` on the same data is a new release. Each report covers the calls since the parameters started, and the
    reports of several fits add up: record their events with ``guard.releases.record`` or an accountant.

    References
    ----------
    Abadi et al., *Deep Learning with Differential Privacy*, 2016. Birrell, Ebrahimi, Behnia, Pacheco, *Differentially
    Private SGD with Fixed-Size Minibatches*, 2024.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = DPSGDClassifier(noise_multiplier=4, batch_size=256, n_epochs=20, feature_bounds=(0, 16),
    ...                         learning_rate=2, classes=range(10), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.85)
    True
    >>> report = model.privacy_report_
    >>> 4 < report.epsilon < 6, report.delta, report.private
    (True, 1e-05, True)
    """

    classes_: NDArray[Any]

    _output: Output = "softmax"
    _most_noise = 0.3

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
        learning_rate: Any = 2.0,
        epsilon: float | None = None,
        noise_multiplier: Any = None,
        delta: float | None = None,
        adjacency: Adjacency = "replace_one",
        public_size: int | None = None,
        l2: float = 0.0,
        fit_intercept: bool = True,
        feature_bounds: Any = None,
        feature_norm: float | None = None,
        classes: Any = None,
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
        self.classes = classes
        self.average = average
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any) -> DPSGDClassifier:
        """Train the classifier with differential privacy.

        The parameters start anew, unless `warm_start` is True.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the training records. All values must be finite.
        y : array_like of shape (n,)
            Label of each record.

        Returns
        -------
        DPSGDClassifier
            The fitted estimator itself. Read its guarantee from `privacy_report_`.

        Raises
        ------
        InputError
            If a parameter is invalid, the data are not usable, a batch is not smaller than the data where it must be,
            no noise meets the target epsilon, or earlier calls have used the target up.

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
            return self._train(X, y, self.classes, partial=False)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, n_steps: int | None = None) -> DPSGDClassifier:
        """Continue training from the current parameters, on the same or on new data.

        The first call initializes the parameters. If `epsilon` is set as a target, it is the budget for as many steps
        as a single call to `fit` would take; all calls to `partial_fit` together share those steps. The first call
        calibrates the noise for all of them.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the records of this call. All values must be finite.
        y : array_like of shape (n,)
            Label of each record.
        classes : array, optional
            All possible labels, in the first call. If None, the parameter `classes` of the estimator. Later calls may
            repeat the same labels.
        n_steps : int, optional
            Number of steps. If None, one pass over the data, ``ceil(n / B)`` steps, or the remaining steps of a target
            if they are fewer.

        Returns
        -------
        DPSGDClassifier
            The estimator itself. Its `privacy_report_` covers all calls so far.

        Raises
        ------
        InputError
            If `fit` would refuse the parameters or the data, if the classes or the layers differ from those of earlier
            calls, or if a target has fewer than `n_steps` steps left.

        Warns
        -----
        SpentTargetWarning
            If `n_steps` is None and a target has no steps left. The call then does nothing.
        CostlyTargetWarning
            If the rest of a target needs at least twice the noise of earlier calls.
        DivergedWarning
            If the trained parameters are not finite.

        Notes
        -----
        The report composes all calls. It holds for two sequences of data sets that differ in one record, which may be
        in the data of every call, once in each. If no record is used in two calls, the true privacy loss is smaller
        than reported.
        """
        with UnchangedIfRefused(self):
            return self._train(X, y, self.classes if classes is None else classes, partial=True, n_steps=n_steps)

    def _rest(self, call: Steps, X: Any, y: Any) -> None:
        X, y = self._checked(X, y, reset=False)
        self._go_on(call, X, _codes(y, self.classes_))

    def _train(self, X: Any, y: Any, classes: Any, *, partial: bool, n_steps: int | None = None) -> DPSGDClassifier:
        settings = check_settings(self)
        fresh = self._begins(partial=partial)
        if classes is not None:
            classes = _checked_classes(classes)
            if not fresh and not np.array_equal(classes, self.classes_):
                raise InputError("classes", "other classes", "those of the earlier calls")
        X, y = self._checked(X, y, reset=fresh)
        leaks = () if fresh else self._leaks
        if not fresh:
            classes = self.classes_
        elif classes is None:
            classes, leaks = _checked_classes(y), (CLASSES_LEAK,)
        targets = _codes(y, classes)
        known = {"classes_": classes}
        self._learn(X, targets, len(classes), settings, known, leaks=leaks, partial=partial, n_steps=n_steps)
        return self

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Floats, NDArray[Any]]:
        X, y = validate_data(self, X, y, reset=reset, dtype=np.float64)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        return X, y

    @property
    def coef_(self) -> Floats:
        """Weights of softmax regression, an array of shape (classes, features).

        Raises AttributeError for a network with hidden layers, whose weights are in `coefs_`.
        """
        if len(self.coefs_) != 1:
            raise AttributeError("A network with hidden layers has no coef_; its weights are in coefs_.")
        return self.coefs_[0].T

    @property
    def intercept_(self) -> Floats:
        """Intercepts of softmax regression, an array of shape (classes,).

        Zeros without intercepts. Raises AttributeError for a network with hidden layers, whose intercepts are in
        `intercepts_`.
        """
        if len(self.coefs_) != 1:
            raise AttributeError("A network with hidden layers has no intercept_; its intercepts are in intercepts_.")
        return self.intercepts_[0] if self.intercepts_ else np.zeros(len(self.classes_))

    def decision_function(self, X: Any) -> Floats:
        """Compute the score of each class for each row, before the softmax.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the records.

        Returns
        -------
        ndarray of shape (n, n_classes), or (n,) for two classes
            Scores of the classes. For two classes, the score of the second class minus that of the first.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> Floats:
        """Predict the probability of each class for each row.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the records.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Probabilities in the order of `classes_`. Each row sums to 1.
        """
        scores = self._scores(X)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        probabilities: Floats = scores / scores.sum(axis=1, keepdims=True)
        return probabilities

    def predict_log_proba(self, X: Any) -> Floats:
        """Predict the logarithm of the probability of each class for each row.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the records.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Logarithms of the probabilities, in the order of `classes_`.
        """
        scores = self._scores(X)
        scores = scores - scores.max(axis=1, keepdims=True)
        logarithms: Floats = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return logarithms

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the records.

        Returns
        -------
        ndarray of shape (n,)
            Label with the largest score.
        """
        best = np.argmax(self._scores(X), axis=1)
        found: NDArray[Any] = self.classes_[best]
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # with the noise that few records need
        return tags


def _checked_classes(values: Any) -> NDArray[Any]:
    classes = np.unique(np.asarray(values))
    if len(classes) < 2:
        raise InputError("classes", f"{len(classes)} class", "at least two classes")
    return classes


def _codes(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    try:
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        known = classes[codes] == y
    except TypeError:
        known = np.array(False)
    if not np.all(known):
        raise InputError("y", "a label that is not among them", "labels out of classes")
    return codes.astype(np.int64)
