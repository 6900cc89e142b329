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
    """Softmax regression or a small network, trained by differentially private gradient descent (DP-SGD).

    Every step draws a fresh batch, clips each record's gradient, and adds Gaussian noise to the sum. All iterates are
    private, and so are the model and everything that is computed from it. `privacy_report_` gives the guarantee and its
    gaps.

    Parameters
    ----------
    hidden_layer_sizes : int or tuple of int, default=()
        Widths of hidden layers; none for softmax regression.
    activation : {"relu", "tanh"}, default="relu"
        Of hidden layers.
    sampling : {"wor", "wr", "poisson"}, default="wor"
        Fresh batches of every step: B different records, B independent draws, or each record with probability B / n. A
        fixed size keeps the work of a step constant. Poisson batches need about half the noise of a fixed size with
        ``adjacency="add_remove"``. With replaced records the three are close to each other, except for small noise.
    batch_size : int or "auto", default="auto"
        B, the (expected) size of a batch and the divisor of its sum; less than n. ``"wor"`` with replaced records
        allows B = n, where each step uses all records. "auto" is n there and n / 2 otherwise, and at most 2048.
    n_epochs : float, default=60
        A `fit` takes ``ceil(n_epochs * n / B)`` steps.
    n_steps : int, optional
        Number of steps, in place of `n_epochs`.
    clip_norm : float or sequence of float, default=1.0
        C: each record's gradient, in all parameters jointly, is scaled down to at most this norm, in [1e-50, 1e50].
        With one norm for each layer, each layer's part is scaled down by itself; C, the unit of the noise, is then the
        root of the sum of their squares. A gradient that is not finite, or of a norm beyond 1e75, counts as zero.
    learning_rate : float, array or callable, default=2.0
        One rate for all steps, one for each, or a function of the step's number.
    epsilon : float, optional
        Target for all calls since the parameters started. The noise is the least that meets it (up to a part of 1e-3).
        1 when `noise_multiplier` is not given either. The search for the noise may take some seconds.
    noise_multiplier : float, array or callable, optional
        Standard deviation of the noise on the *sum* of a batch's clipped gradients, over C; for all steps, one for
        each, or a function of the step's number. 0 is no noise and no privacy; otherwise 0.01 to 1e8.
    delta : float, optional
        Of the guarantee. By default 1e-5, or 1 / (10 n) when that is less, for n of the first call.
    adjacency : {"replace_one", "add_remove"}, default="replace_one"
        Neighbours differ in one replaced record, or in one record more or less.
    public_size : int, optional
        Required with ``"add_remove"``: a public number in place of n, on which rates, numbers of steps and noise
        depend, because n itself shows whether a record is there. For batches of a fixed size, the data must have at
        least as many records.
    l2 : float, default=0.0
        Of a penalty ``l2 / 2`` times the squared weights, without intercepts, on the mean loss. It depends on no
        record.
    fit_intercept : bool, default=True
        Whether layers have intercepts.
    feature_bounds : pair of floats or of arrays, optional
        Public bounds. Features are clipped to them and mapped onto [0, 1]. Standardise by public numbers only: means
        and deviations of the data would be releases outside the account.
    feature_norm : float, optional
        Rows are then scaled down to at most this Euclidean norm.
    classes : array, optional
        All possible labels. Without it they are taken from `y`, which the report lists as a leak: a class with one
        record shows that record.
    average : bool, int or "half", default="half"
        True for the mean of all iterates, an integer for that of the iterates after so many steps, "half" for that of
        the later half of the last call's, False for the last iterate. A mean is no further release, and has less noise.
    warm_start : bool, default=False
        Whether `fit` continues from the end of the last call. Earlier calls count towards `epsilon`: a target that they
        have spent is refused, and the rest of a larger one may need much noise. To use one target up in parts, call
        `partial_fit` with `n_steps`.
    random_state : None, int or generator of numpy
        None for a release: noise from fresh entropy. Whoever knows an integer can compute the noise, and the same
        integer on other data gives the same noise.
    verbose : bool or int, default=0
        Show a progress bar. It has no loss, which would be a further release about the records.
    callback : callable, optional
        Called after each step with its number and the layers' (weights, intercepts), read-only. A true result ends the
        call. The call was charged in full, because the decision to stop depends on iterates.

    Attributes
    ----------
    classes_ : ndarray, shape (k,)
    coefs_, intercepts_ : list of ndarray
        Each layer's weights, shape (inputs, outputs), and intercepts, for features as `feature_bounds` maps them.
    coef_, intercept_ : ndarray, shapes ``(k, n_features_in_)`` and (k,)
        The same without hidden layers.
    privacy_report_ : PrivacyReport
        Epsilon of all steps since the parameters started, its assumptions, and the leaks that it does not cover.
    noise_multiplier_, batch_size_, delta_
        Values in use; the noise multiplier is the smallest of the last call's steps.
    n_steps_ : int
        Steps taken since the parameters started.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    A call is charged as a whole before its first step, even if it is interrupted or stopped. After an interrupt the
    estimator holds the result of its finished steps, and `resume` takes the others. ``PROOFS.md`` of this package
    proves the bounds, also for floating-point numbers. The noise is drawn in floating point by numpy's generator, which
    is not cryptographic. Labels outside of `classes` and features that are not finite are refused. The guarantee covers
    neither such refusals nor running times.

    Another `fit` on the same data is a new release. Each report is about the calls since the parameters started, and
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
        """Train on records.

        Parameters
        ----------
        X : array_like, shape (n, features)
            Finite numbers.
        y : array_like, shape (n,)
            Labels.

        Returns
        -------
        DPSGDClassifier
            Itself.

        Raises
        ------
        InputError
            When a parameter or the data cannot be used, a batch is not smaller than the data, no noise meets the target
            epsilon, or earlier calls have spent it.

        Warns
        -----
        CostlyTargetWarning
            When the rest of a target needs at least twice the noise of earlier calls.
        LowSignalWarning
            When public numbers show that the noise is likely to hide the signal.
        """
        with UnchangedIfRefused(self):
            return self._train(X, y, self.classes, partial=False)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, n_steps: int | None = None) -> DPSGDClassifier:
        """Take further steps from the current parameters, on the same or on other records.

        Parameters
        ----------
        X, y
            As in `fit`.
        classes : array, optional
            In the first call, all labels; the parameter of the same name by default.
        n_steps : int, optional
            Number of steps. The default is one epoch, ``ceil(n / B)``, or the remaining steps of a target if they are
            fewer.

        Returns
        -------
        DPSGDClassifier
            Itself.

        Raises
        ------
        InputError
            As `fit`; and when a target epsilon, which is for all the steps of a `fit`, leaves fewer than `n_steps`.

        Warns
        -----
        SpentTargetWarning
            When `n_steps` is not given and a target leaves none. The call then does nothing.
        CostlyTargetWarning
            As in `fit`.

        Notes
        -----
        The report composes all calls. It holds for two sequences of data sets that differ in one record, which may be
        in every call's data, once in each. Where no record comes back, the true loss is smaller than the report.
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
        """Weights of softmax regression, shape (classes, features)."""
        if len(self.coefs_) != 1:
            raise AttributeError("A network with hidden layers has no coef_; its weights are in coefs_.")
        return self.coefs_[0].T

    @property
    def intercept_(self) -> Floats:
        """Intercepts of softmax regression, shape (classes,)."""
        if len(self.coefs_) != 1:
            raise AttributeError("A network with hidden layers has no intercept_; its intercepts are in intercepts_.")
        return self.intercepts_[0] if self.intercepts_ else np.zeros(len(self.classes_))

    def decision_function(self, X: Any) -> Floats:
        """Return scores, shape (n, classes); for two classes their difference, shape (n,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> Floats:
        """Return probabilities of the classes, shape (n, classes)."""
        scores = self._scores(X)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        probabilities: Floats = scores / scores.sum(axis=1, keepdims=True)
        return probabilities

    def predict_log_proba(self, X: Any) -> Floats:
        """Return logarithms of the probabilities, shape (n, classes)."""
        scores = self._scores(X)
        scores = scores - scores.max(axis=1, keepdims=True)
        logarithms: Floats = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return logarithms

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the classes with the largest scores, shape (n,)."""
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
