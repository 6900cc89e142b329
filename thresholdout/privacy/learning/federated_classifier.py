"""A linear classifier that is trained by federated averaging, private about each client."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import count, open_unit, positive
from thresholdout.privacy.accounting.events.composed_events import SelfComposed
from thresholdout.privacy.accounting.events.learning_steps import FederatedRound
from thresholdout.privacy.accounting.generalization.iterative_learners import federated_privacy
from thresholdout.privacy.learning.bounded_mean import check_bound, noisy_mean
from thresholdout.privacy.learning.client_models import ClientModels, client_numbers
from thresholdout.privacy.learning.federated import federated_assumptions
from thresholdout.privacy.learning.iterates import LEAST_NOISE, check_noise, draw, run_steps
from thresholdout.privacy.learning.privacy_report import (
    CLASSES_LEAK,
    PrivacyReport,
    account_for,
    choose_noise,
    standing_assumptions,
)
from thresholdout.privacy.learning.random_streams import is_seeded, streams

__all__ = ["FederatedClassifier"]

Floats = NDArray[np.float64]


class FederatedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Softmax regression by federated averaging with privacy about clients.

    In each round, clients take gradient steps on their own records, from the current model; the mean of their clipped
    increments gets Gaussian noise and is added to the model. What is guaranteed is about a client with *all* its
    records, for instance a patient, a user or a hospital: `groups` of `fit` says whose each record is.

    Parameters
    ----------
    rounds : int, default=50
        How many.
    clients_per_round : int, optional
        Drawn afresh for each round, without replacement; all of them by default, which has the least noise for the
        privacy of a round.
    local_steps : int, default=5
        Gradient steps of a client in a round, on the mean loss of its records.
    learning_rate : float, default=0.5
        Of these steps.
    clip : float, default=1.0
        Increments are clipped to this norm.
    epsilon : float, default=1.0
        The target, in nats, from which the noise follows. Not used when `noise_multiplier` is given.
    delta : float, default=1e-5
        In (0, 1); well below one over the number of clients.
    noise_multiplier : float, optional
        Standard deviation of the noise on the *sum* of a round's increments, over `clip`; less than 0.01 is no
        privacy. (`run_federated` takes the noise on the mean: this, over the clients of a round.)
    alpha : float, default=0.0
        Strength of an L2 penalty on the coefficients, in each client's loss.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    average : bool, default=True
        Whether the model is the mean over the second half of the rounds, or the last one. All rounds are covered by the
        guarantee, so the mean costs nothing, and it has less noise.
    classes : array_like, optional
        All classes there may be. Without it they are read from the labels, which the guarantee does not cover.
    random_state : None, int or generator of numpy
        See `thresholdout.privacy.learning.streams`.
    progress : bool, default=True
        Whether to show a bar, once two seconds are over.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        In increasing order.
    coef_ : ndarray, shape (n_classes, n_features), or (1, n_features) for two classes
        Coefficients of `decision_function`.
    intercept_ : ndarray, shape (n_classes,) or (1,)
        Zero without an intercept.
    n_clients_ : int
        How many there were.
    privacy_report_ : PrivacyReport
        What all rounds together have leaked about a client.
    n_features_in_ : int
        Seen in `fit`.
    feature_names_in_ : ndarray
        Seen in `fit`, if they are all texts.

    Notes
    -----
    After [He, Algorithm 2]; FEDERATED.md has the proofs. Scale features by numbers that do not come from the data. A
    client whose steps diverge counts as one without an increment.

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
    privacy_report_: PrivacyReport

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
        """Train on all clients.

        Parameters
        ----------
        X : array_like, shape (n, n_features)
            Finite numbers.
        y : array_like, shape (n,)
            Classes.
        groups : array_like, shape (n,), optional
            Each record's client; numbers or texts. Without it, each record is a client of its own.

        Returns
        -------
        FederatedClassifier
            Itself.

        Raises
        ------
        InputError, InputTypeError
            When an argument is out of range, or no noise reaches the target.
        """
        rounds, local_steps = count(self.rounds, "rounds"), count(self.local_steps, "local_steps")
        rate, alpha = positive(self.learning_rate, "learning_rate"), positive(self.alpha, "alpha", zero=True)
        clip, delta = check_bound(self.clip, "clip"), open_unit(self.delta, "delta")
        random = streams(self.random_state)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, labels = self._encoded(y)
        clients = client_numbers(groups, len(X))
        N = int(clients.max()) + 1
        tau = N if self.clients_per_round is None else count(self.clients_per_round, "clients_per_round")
        if tau > N:
            raise InputError("clients_per_round", f"{tau} of {N}", "at most the number of clients")

        def event(noise: float) -> SelfComposed:
            return SelfComposed(FederatedRound(noise / tau, tau, N), rounds)

        noise = choose_noise(
            event,
            epsilon=self.epsilon if self.noise_multiplier is None else None,
            noise_multiplier=self.noise_multiplier,
            delta=delta,
        )
        check_noise(noise, noise, "noise_multiplier")
        done = event(noise) if noise >= LEAST_NOISE else None
        if self.fit_intercept:
            X = np.column_stack([X, np.ones(len(X))])
        decay = np.full((X.shape[1], 1), alpha)
        if self.fit_intercept:
            decay[-1] = 0.0
        models = ClientModels(X, labels, self.classes_.size, clients, local_steps, rate, decay)

        def step(_: int, theta: Floats) -> Floats:
            increments = models.increments(draw(random.sampling, N, tau), theta)
            std = clip * (noise / tau)
            return np.asarray(theta + noisy_mean(increments, clip, std, random.noise, non_finite="zero"))

        start = np.zeros(math.prod(models.shape))
        trajectory = run_steps(start, rounds, step, progress=self.progress, unit="rounds")
        theta = trajectory[rounds // 2 + 1 :].mean(axis=0) if self.average else trajectory[-1]
        self._keep(theta.reshape(models.shape).T)
        self.n_clients_ = N
        self.privacy_report_ = self._report(done, noise, N, tau)
        return self

    def _encoded(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        present, labels = np.unique(y, return_inverse=True)
        if self.classes is None:
            if present.size < 2:
                raise InputError("y", "one class", "at least two classes")
            return present, labels.astype(np.int64)
        try:
            classes = np.unique(np.asarray(self.classes))
        except (TypeError, ValueError):
            raise InputTypeError("classes", f"a {type(self.classes).__name__}", "a list of classes") from None
        if classes.ndim != 1 or classes.size < 2:
            raise InputError("classes", f"{classes.size} classes", "at least two classes")
        if not np.isin(present, classes).all():
            raise InputError("y", "a label that is none of classes", "labels out of classes")
        return classes, np.searchsorted(classes, present)[labels].astype(np.int64)

    def _keep(self, parameters: Floats) -> None:
        """Set coefficients and intercepts from one row of parameters for each class."""
        if len(parameters) == 2:
            parameters = parameters[1:] - parameters[:1]
        self.coef_ = np.array(parameters[:, : self.n_features_in_])
        self.intercept_ = np.array(parameters[:, -1]) if self.fit_intercept else np.zeros(len(parameters))

    def _report(self, event: SelfComposed | None, noise: float, N: int, tau: int) -> PrivacyReport:
        standing = standing_assumptions(seeded=is_seeded(self.random_state), unit="client")
        details: dict[str, Any] = {"clients": N, "clients_per_round": tau, "rounds": self.rounds}
        if event is not None:
            share = min(0.5, self.delta * N / (2 * tau * self.rounds))
            composed = federated_privacy(N, tau, self.rounds, noise / tau, share, self.delta / 2)
            details["epsilon by composition"] = composed.eps
        return account_for(
            event,
            delta=self.delta,
            released="the model after every round",
            noise_multiplier=noise,
            assumptions=(*standing, *federated_assumptions("zero")),
            leaks=() if self.classes is not None else (CLASSES_LEAK,),
            details=details,
            unit="client",
        )

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of the classes.

        Parameters
        ----------
        X : array_like, shape (n, n_features)

        Returns
        -------
        ndarray, shape (n, n_classes), or (n,) for two classes
            Log-odds of the second one then.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scores = X @ self.coef_.T + self.intercept_
        return np.asarray(scores[:, 0] if len(self.coef_) == 1 else scores)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes, shape (n, n_classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable classes, shape (n,)."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])
