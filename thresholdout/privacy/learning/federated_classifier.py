"""A linear classifier that is trained by federated averaging, private about each client."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import count, open_unit, positive
from thresholdout.privacy.accounting.events.composed_events import SelfComposed
from thresholdout.privacy.accounting.events.learning_steps import FederatedRound
from thresholdout.privacy.accounting.iterative_learners import federated_privacy
from thresholdout.privacy.learning.bounded_mean import check_bound, noisy_mean
from thresholdout.privacy.learning.federated import ClientModels, client_numbers, federated_assumptions
from thresholdout.privacy.learning.interrupted_calls import ResumedCalls, UnchangedIfRefused, check_alike
from thresholdout.privacy.learning.iterates import LEAST_NOISE, draw, keep_steps
from thresholdout.privacy.learning.privacy_report import (
    CLASSES_LEAK,
    PrivacyReport,
    account_for,
    noise_share,
    standing_assumptions,
    warn_of_noise,
)
from thresholdout.privacy.learning.random_streams import is_seeded, streams
from thresholdout.privacy.learning.targets import Search, Spent, TargetNoise, further_steps, noise_of_call

__all__ = ["FederatedClassifier"]

Floats = NDArray[np.float64]
MOST_NOISE = 0.3  # of the way of gradients; beyond it, fits of classes were worth nothing


@dataclass(frozen=True)
class _Rounds:
    """The event of rounds, as a function of their noise multiplier."""

    clients: int
    drawn: int
    rounds: int

    def __call__(self, noise: float) -> SelfComposed:
        # The event has the noise on the mean, the multiplier that on the sum.
        return SelfComposed(FederatedRound(noise / self.drawn, self.drawn, self.clients), self.rounds)


@dataclass(frozen=True, eq=False)
class _Call:
    """One call, decided before any record counts: public numbers only."""

    rounds: int
    local_steps: int
    rate: float
    alpha: float
    clip: float
    delta: float
    intercept: bool
    clients: int
    drawn: int
    noise: float
    number: int
    first: int
    average: bool
    progress: bool
    random_state: Any

    def of(self, rounds: int) -> _Rounds:
        """Return so many rounds of it, for any noise."""
        return _Rounds(self.clients, self.drawn, rounds)


class FederatedClassifier(ResumedCalls, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Train softmax regression by federated averaging, with differential privacy for whole clients.

    Use it if each client, for instance a patient, a user or a hospital, contributes several records and must be
    protected with *all* of them. In each round, clients take gradient steps on their own records from the current
    model. The mean of their clipped increments gets Gaussian noise and is added to the model. The argument `groups` of
    `fit` names the client of each record. `DPSGDClassifier` protects single records.

    Parameters
    ----------
    rounds : int, default 50
        Number of rounds of a `fit`.
    clients_per_round : int, optional
        Number of clients in a round, drawn anew without replacement. The default, all clients, has the least noise for
        the privacy of a round.
    local_steps : int, default 5
        Number of gradient steps that a client takes in a round, on the mean loss of its records.
    learning_rate : float, default 0.5
        Learning rate of these steps.
    clip : float, default 1.0
        Clipping threshold for the norm of the increment of each client.
    epsilon : float, default 1.0
        Privacy target, for which the noise is calibrated. Ignored if `noise_multiplier` is given.
    delta : float, default 1e-5
        Delta of the guarantee, in (0, 1). It should be well below one over the number of clients.
    noise_multiplier : float, optional
        Standard deviation of the noise on the *sum* of the increments of a round, divided by `clip`. Less than 0.01
        gives no privacy. (`run_federated` takes the noise on the mean: this number divided by the clients of a round.)
    alpha : float, default 0.0
        Strength of an L2 penalty on the coefficients, in the loss of each client.
    fit_intercept : bool, default True
        Whether to add an intercept. The intercept is not penalized.
    average : bool, default True
        Whether to use the mean of the models of the later half of the rounds in place of the last model. The mean has
        less noise and costs no privacy, because the guarantee covers all rounds.
    classes : array_like, optional
        All possible classes. If None, they are read from the labels, which the guarantee does not cover.
    random_state : int, numpy.random.Generator or None, default None
        Seed or generator of noise and draws of clients. Pass None for a model that you publish: anyone who knows the
        seed can compute the noise.
    progress : bool, default True
        Whether to show a progress bar after two seconds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels in increasing order.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Coefficients of `decision_function`.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts of `decision_function`, 0 without an intercept.
    n_clients_ : int
        Number of clients in the last call.
    n_rounds_ : int
        Number of rounds taken since the model started.
    privacy_report_ : PrivacyReport
        Guarantee of all rounds together, about a client with all its records.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Names of the features, if `X` had names that are all strings.

    Notes
    -----
    The algorithm follows [He, Algorithm 2]; the proofs are in FEDERATED.md. Scale features by public numbers only. A
    client whose steps diverge counts as one without an increment.

    A call is charged as a whole before its first round. After an interrupt the model is the result of the finished
    rounds, and `resume` takes the others.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 2))
    >>> y = np.where(X.sum(axis=1) > 0, "up", "down")
    >>> model = FederatedClassifier(epsilon=1.0, classes=["down", "up"], random_state=0)
    >>> model = model.fit(X, y, groups=np.arange(20_000) // 10)
    >>> bool(model.score(X, y) > 0.95), model.n_clients_
    (True, 2000)
    >>> model.privacy_report_.epsilon <= 1.0, model.privacy_report_.unit
    (True, 'client')
    """

    classes_: NDArray[Any]
    coef_: Floats
    intercept_: Floats
    n_clients_: int
    n_rounds_: int
    privacy_report_: PrivacyReport
    _trajectory: Floats
    _spent: Spent
    _target: TargetNoise | None
    _leaks: tuple[str, ...]
    _stopped: _Call | None

    def __init__(
        self,
        *,
        rounds: int = 50,
        clients_per_round: int | None = None,
        local_steps: int = 5,
        learning_rate: float = 0.5,
        clip: float = 1.0,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        noise_multiplier: float | None = None,
        alpha: float = 0.0,
        fit_intercept: bool = True,
        average: bool = True,
        classes: Any = None,
        random_state: Any = None,
        progress: bool = True,
    ) -> None:
        self.rounds = rounds
        self.clients_per_round = clients_per_round
        self.local_steps = local_steps
        self.learning_rate = learning_rate
        self.clip = clip
        self.epsilon = epsilon
        self.delta = delta
        self.noise_multiplier = noise_multiplier
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.average = average
        self.classes = classes
        self.random_state = random_state
        self.progress = progress

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self.noise_multiplier != 0  # few clients, much noise
        return tags

    def fit(self, X: Any, y: Any, groups: Any = None) -> FederatedClassifier:
        """Train a new model on the records of all clients.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the training records. All values must be finite.
        y : array_like of shape (n,)
            Class of each record.
        groups : array_like of shape (n,), optional
            Client of each record, as numbers or strings. If None, each record is a client of its own.

        Returns
        -------
        FederatedClassifier
            The fitted estimator itself. Read its guarantee from `privacy_report_`.

        Raises
        ------
        InputError, InputTypeError
            If an argument is out of range or of the wrong type, or no noise meets the target epsilon.

        Warns
        -----
        LowSignalWarning
            If public numbers show that the noise is likely to hide the signal.
        """
        with UnchangedIfRefused(self):
            return self._train(X, y, groups, self.classes, partial=False, asked=None)

    def partial_fit(
        self, X: Any, y: Any, groups: Any = None, rounds: int | None = None, classes: Any = None
    ) -> FederatedClassifier:
        """Continue training from the current model, with the same or with other clients.

        If `epsilon` is set as a target, it is the budget for as many rounds as a single call to `fit` would take; all
        calls to `partial_fit` together share those rounds. The first call calibrates the noise for all of them.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the records of this call. All values must be finite.
        y : array_like of shape (n,)
            Class of each record.
        groups : array_like of shape (n,), optional
            Client of each record, as numbers or strings. If None, each record is a client of its own.
        rounds : int, optional
            Number of rounds. If None, one round.
        classes : array_like, optional
            All possible classes, in the first call. If None, the parameter `classes` of the estimator. Later calls may
            repeat the same classes.

        Returns
        -------
        FederatedClassifier
            The estimator itself. Its `privacy_report_` covers all calls so far.

        Raises
        ------
        InputError, InputTypeError
            If `fit` would refuse the arguments, if a target has fewer than `rounds` rounds left, or if the classes
            differ from those of earlier calls.

        Warns
        -----
        SpentTargetWarning
            If `rounds` is None and a target has no rounds left. The call then does nothing.
        CostlyTargetWarning
            If the rest of a target needs at least twice the noise of earlier calls, because the numbers of clients
            changed.

        Notes
        -----
        The report composes all calls. It holds for two sequences of data sets that differ in one client, who may be in
        the data of every call.
        """
        with UnchangedIfRefused(self):
            return self._train(X, y, groups, self.classes if classes is None else classes, partial=True, asked=rounds)

    def resume(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Take the remaining rounds of an interrupted `fit` or `partial_fit`.

        The whole call was charged when it began, so its remaining rounds cost no more privacy, once.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the interrupted call, in the same order of records.
        y : array_like of shape (n,)
            Classes of the interrupted call.
        groups : array_like of shape (n,), optional
            Clients of the interrupted call.

        Returns
        -------
        FederatedClassifier
            The estimator itself. With an integer as `random_state`, the model equals that of an uninterrupted call.

        Raises
        ------
        InputError
            If no call was interrupted, or if the number of clients differs from that of the interrupted call.
        """
        self._rest(self._call_to_resume(), X, y, groups)
        return self

    def _rest(self, call: _Call, X: Any, y: Any, groups: Any = None) -> None:
        X, y = validate_data(self, X, y, dtype=np.float64, reset=False)
        labels = _codes(y, self.classes_)
        clients = client_numbers(groups, len(X))
        check_alike("the number of clients", call.clients, int(clients.max()) + 1)
        self._follow(call, self._models(call, X, labels, clients, self.classes_.size), self._trajectory, {})

    def _train(
        self, X: Any, y: Any, groups: Any, given: Any, *, partial: bool, asked: int | None
    ) -> FederatedClassifier:
        rounds, local_steps = count(self.rounds, "rounds"), count(self.local_steps, "local_steps")
        rate, alpha = positive(self.learning_rate, "learning_rate"), positive(self.alpha, "alpha", zero=True)
        clip, delta = check_bound(self.clip, "clip"), open_unit(self.delta, "delta")
        wanted = None if asked is None else count(asked, "rounds")
        # Refuses a wrong random_state before any record is read.
        streams(self.random_state)
        fresh = not (partial and hasattr(self, "_spent"))
        X, y = validate_data(self, X, y, dtype=np.float64, reset=fresh)
        check_classification_targets(y)
        classes, labels = _encoded(y, given if fresh or given is not None else self.classes_)
        if not fresh and not np.array_equal(classes, self.classes_):
            raise InputError("classes", "other classes", "those of the earlier calls")
        clients = client_numbers(groups, len(X))
        N = int(clients.max()) + 1
        tau = N if self.clients_per_round is None else count(self.clients_per_round, "clients_per_round")
        if tau > N:
            raise InputError("clients_per_round", f"{tau}", f"at most {N}, the number of clients")
        spent, target = (Spent(), None) if fresh else (self._spent, self._target)
        first = 0 if fresh else len(self._trajectory) - 1
        call = _Call(
            rounds, local_steps, rate, alpha, clip, delta, bool(self.fit_intercept), N, tau, 0.0, spent.calls, first,
            bool(self.average), bool(self.progress), self.random_state,
        )  # fmt: skip
        taken, shared = rounds, None if self.noise_multiplier is not None else self.epsilon
        if partial:
            taken = further_steps(wanted, 1, rounds, spent.steps, shared, name="rounds")
            if not taken:
                return self
        noise, target = noise_of_call(
            call.of, spent, target, noise_multiplier=self.noise_multiplier, epsilon=self.epsilon, delta=delta,
            public=(N, tau), total=rounds, search=Search(progress=bool(self.progress)),
        )  # fmt: skip
        call = replace(call, rounds=taken, noise=noise)
        # Less noise is no privacy: the report then has an infinite epsilon.
        event = call.of(taken)(noise) if noise >= LEAST_NOISE else None
        models = self._models(call, X, labels, clients, classes.size)
        size = math.prod(models.shape)
        if not fresh and self._trajectory.shape[1] != size:
            raise InputError("fit_intercept", repr(self.fit_intercept), "as in the earlier calls")
        if not partial:
            share = noise_share(np.full(taken, noise), np.ones(taken), tau, size)
            warn_of_noise(share, MOST_NOISE, "as many clients, or as large an epsilon,", stacklevel=3)
        leaks = self._leaks if not fresh else () if given is not None else (CLASSES_LEAK,)
        spent = spent.charge(event, taken, noise, seeded=is_seeded(self.random_state))
        report = self._report(call, spent, leaks)
        charged = {"classes_": classes, "n_clients_": N, "_target": target, "_leaks": leaks}
        charged |= {"_spent": spent, "privacy_report_": report}
        self._follow(call, models, np.zeros((1, size)) if fresh else self._trajectory, charged)
        return self

    @staticmethod
    def _models(
        call: _Call, X: Floats, labels: NDArray[np.int64], clients: NDArray[np.int64], classes: int
    ) -> ClientModels:
        if call.intercept:
            X = np.column_stack([X, np.ones(len(X))])
        decay = np.full((X.shape[1], 1), call.alpha)
        if call.intercept:
            # The intercept is not penalised.
            decay[-1] = 0.0
        return ClientModels(X, labels, classes, clients, call.local_steps, call.rate, decay)

    def _follow(self, call: _Call, models: ClientModels, trajectory: Floats, charged: Mapping[str, Any]) -> None:
        """Take the rounds of a call, or those that an interrupt has left."""
        random = streams(call.random_state, call.number)
        # Of the noise on the mean of the increments.
        std = call.clip * (call.noise / call.drawn)
        before, done = trajectory[: call.first], trajectory[call.first :]

        def keep(found: Floats, left: bool) -> None:
            whole = self._described(call, np.concatenate([before, found]), models.shape)
            self.__dict__.update({**charged, **whole, "_stopped": call if left else None})

        def step(_: int, theta: Floats) -> Floats:
            increments = models.increments(draw(random.sampling, call.clients, call.drawn), theta)
            return np.asarray(theta + noisy_mean(increments, call.clip, std, random.noise, non_finite="zero"))

        def replay() -> None:
            draw(random.sampling, call.clients, call.drawn)
            random.noise.standard_normal(math.prod(models.shape))

        keep_steps(keep, done, call.rounds, step, replay, progress=call.progress, unit="rounds")

    def _described(self, call: _Call, trajectory: Floats, shape: tuple[int, ...]) -> dict[str, Any]:
        """Return all rounds so far, with their coefficients and intercepts, one row for each class."""
        rounds, width = len(trajectory) - 1, self.n_features_in_
        late = trajectory[rounds // 2 + 1 :] if call.average else trajectory[-1:]
        parameters = (late if len(late) else trajectory).mean(axis=0).reshape(shape).T
        if len(parameters) == 2:
            # Two classes have one row of log-odds, as in scikit-learn.
            parameters = parameters[1:] - parameters[:1]
        intercept = np.array(parameters[:, -1]) if shape[0] > width else np.zeros(len(parameters))
        found = {"_trajectory": trajectory, "n_rounds_": rounds}
        return {**found, "coef_": np.array(parameters[:, :width]), "intercept_": intercept}

    @staticmethod
    def _report(call: _Call, spent: Spent, leaks: tuple[str, ...]) -> PrivacyReport:
        standing = standing_assumptions(seeded=spent.seeded, unit="client", calls=spent.calls)
        details: dict[str, Any] = {"clients": call.clients, "clients_per_round": call.drawn, "rounds": spent.steps}
        if spent.calls == 1 and spent.event is not None:
            share = min(0.5, call.delta * call.clients / (2 * call.drawn * call.rounds))
            sizes = call.clients, call.drawn, call.rounds, call.noise / call.drawn
            details["epsilon by composition"] = federated_privacy(*sizes, share, call.delta / 2).eps
        return account_for(
            spent.event,
            delta=call.delta,
            released="the model after every round",
            noise_multiplier=spent.least_noise,
            assumptions=(*standing, *federated_assumptions("zero")),
            leaks=leaks,
            details=details,
            unit="client",
        )

    def decision_function(self, X: Any) -> Floats:
        """Compute the score of each class for each row.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the records.

        Returns
        -------
        ndarray of shape (n, n_classes), or (n,) for two classes
            Scores of the classes. For two classes, the log-odds of the second one.
        """
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scores = X @ self.coef_.T + self.intercept_
        return np.asarray(scores[:, 0] if len(self.coef_) == 1 else scores)

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
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array_like of shape (n, n_features)
            Features of the records.

        Returns
        -------
        ndarray of shape (n,)
            Predicted class labels.
        """
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])


def _encoded(y: NDArray[Any], given: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the sorted classes, by default those of the labels, and the number of each label among them."""
    present, labels = np.unique(y, return_inverse=True)
    if given is None:
        if present.size < 2:
            raise InputError("y", "one class", "labels of at least two classes")
        return present, labels.astype(np.int64)
    try:
        classes = np.unique(np.asarray(given))
    except (TypeError, ValueError):
        raise InputTypeError("classes", f"a {type(given).__name__}", "a list of classes") from None
    if classes.ndim != 1 or classes.size < 2:
        raise InputError("classes", f"{classes.size} classes", "at least two classes")
    return classes, _codes(y, classes)


def _codes(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of each label among sorted classes."""
    present, labels = np.unique(y, return_inverse=True)
    if not np.isin(present, classes).all():
        raise InputError("y", "a label that is not among them", "labels out of classes")
    return np.searchsorted(classes, present)[labels].astype(np.int64)
