"""Guards in LightGBM, which is not loaded, and need not be installed, before one of its fits calls a hook."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from thresholdout.data.arguments import check_count
from thresholdout.data.identity import handed_out
from thresholdout.errors import BudgetExhausted, InputError, InputTypeError, SharingError
from thresholdout.guard.answer import Answer
from thresholdout.guard.exhaustion import Exhausted, check_exhausted, warn_exhausted, without_answer
from thresholdout.guard.holdout import origin
from thresholdout.guard.sharing.shared_objects import Proxy
from thresholdout.model_selection.guarded_stopping import GuardedStopping
from thresholdout.model_selection.predicting_functions import Kind, check_objective, predictor
from thresholdout.scoring.fitted_models import classifies
from thresholdout.scoring.metrics import Metric, get_metric

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from thresholdout.guard.guard import Thresholdout

__all__ = ["LightGBMCallback", "LightGBMEval"]


def _softmax(raw: NDArray[Any], params: dict[str, Any]) -> NDArray[Any]:
    from scipy.special import softmax

    return np.asarray(softmax(raw, axis=1))


def _logistic(raw: NDArray[Any], params: dict[str, Any]) -> NDArray[Any]:
    from scipy.special import expit

    return np.asarray(expit(float(params.get("sigmoid", 1.0)) * raw))


def _exponential(raw: NDArray[Any], params: dict[str, Any]) -> NDArray[Any]:
    return np.asarray(np.exp(raw))


def _itself(raw: NDArray[Any], params: dict[str, Any]) -> NDArray[Any]:
    return raw


_OBJECTIVES: dict[str, tuple[Kind, Callable[[NDArray[Any], dict[str, Any]], NDArray[Any]]]] = {
    **dict.fromkeys(("binary", "cross_entropy", "xentropy"), ("probabilities", _logistic)),
    **dict.fromkeys(("multiclass", "softmax"), ("probabilities", _softmax)),
    **dict.fromkeys(("multiclassova", "multiclass_ova", "ova", "ovr"), ("probabilities", _logistic)),
    **dict.fromkeys(("poisson", "gamma", "tweedie"), ("values", _exponential)),
    **dict.fromkeys(
        (
            *("regression", "regression_l2", "l2", "mean_squared_error", "mse", "l2_root", "root_mean_squared_error"),
            *("rmse", "regression_l1", "l1", "mean_absolute_error", "mae", "huber", "fair", "quantile"),
            *("mape", "mean_absolute_percentage_error"),
        ),
        ("values", _itself),
    ),
}
"""What LightGBM's objectives put out, under all their names, and what makes it of raw scores."""


class _FreeOutputs:
    """What a booster puts out for the free records, round by round, from sums of raw scores.

    A prediction by the whole ensemble costs as many trees as there were rounds, so that a fit of r rounds pays for
    r^2 / 2 of them; the sum pays for r. Where sums are not what the booster puts out (random forests average, and
    parameters such as ``reg_sqrt`` change the outputs), it predicts as a whole: that is found out after 1, 2, 4, 8, ...
    looks, by comparing both.
    """

    def __init__(self, X: Any, objective: str, params: dict[str, Any]) -> None:
        self._X, self._params, self._threads = X, params, _threads(params)
        self._transform = _OBJECTIVES[objective][1]
        self._raw: Any = 0.0
        self._output = np.empty(0)
        self._rounds = self._looks = 0
        self._adds = True

    def after(self, booster: Any, rounds: int) -> NDArray[Any]:
        """Return the outputs of the first ``rounds`` rounds, at least as many as in the call before."""
        if rounds == self._rounds:
            return self._output
        if self._adds:
            more = {"start_iteration": self._rounds, "num_iteration": rounds - self._rounds, **self._threads}
            self._raw = self._raw + booster.predict(self._X, raw_score=True, **more)
            self._output = self._transform(self._raw, self._params)
        self._looks, self._rounds = self._looks + 1, rounds
        if not self._adds or self._looks & (self._looks - 1) == 0:
            whole = np.asarray(booster.predict(self._X, num_iteration=rounds, **self._threads))
            self._adds = self._adds and np.allclose(self._output, whole, rtol=1e-9, atol=1e-12)
            self._output = whole
        return self._output


class LightGBMCallback:
    """Early stopping for ``lightgbm.train(callbacks=[...])`` and ``LGBMClassifier.fit(callbacks=[...])``.

    The holdout does not pass through LightGBM: the model predicts it in the guard's process, and only for rounds that
    are asked about. For the free records the raw scores of each round's trees are added up. After the fit
    ``best_iteration`` is the chosen number of rounds, as with LightGBM's own early stopping, and ``stopping`` shows
    what was asked, spent and replaced.

    Parameters
    ----------
    stopping : GuardedStopping
        What to follow, and when to ask. One for each fit.
    classes : array-like, optional
        The labels that the booster's outputs stand for; by default the labels of the guard's training part, sorted, as
        ``LGBMClassifier`` numbers them.

    Examples
    --------
    >>> import lightgbm
    >>> from sklearn.datasets import load_breast_cancer
    >>> from thresholdout import Claims, Thresholdout
    >>> from thresholdout.model_selection import GuardedStopping
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> guard = Thresholdout((X[300:], y[300:]), train=(X[:300], y[:300]), queries=50,
    ...                      mechanism=Claims(holdout_answers=5, noise=0.0))
    >>> stopping = GuardedStopping(guard, "accuracy", validation=range(200, 300))
    >>> booster = lightgbm.train({"objective": "binary", "verbose": -1}, lightgbm.Dataset(X[:200], y[:200]), 200,
    ...                          callbacks=[LightGBMCallback(stopping)])
    >>> booster.best_iteration == stopping.best_round + 1
    True
    >>> stopping.asked <= 6 < stopping.rounds < 200
    True
    """

    order = 30  # after LightGBM's own, so that what they record is complete
    before_iteration = False

    def __init__(self, stopping: GuardedStopping, classes: ArrayLike | None = None) -> None:
        self.stopping = stopping
        self._free: Any = None
        self._classes = stopping.classes if classes is None else np.asarray(classes)

    def __call__(self, env: Any) -> None:
        """Look at the booster after a round; LightGBM calls this.

        Raises
        ------
        lightgbm.callback.EarlyStopException
            When training should stop, or has come to its last round.
        InputError
            When the objective puts out raw scores, or the callback served an earlier fit.
        """
        from lightgbm.callback import EarlyStopException

        if env.iteration == env.begin_iteration:
            self._check(env)
            self._free = _FreeOutputs(self.stopping.free[0], _objective(env.params), env.params)
        booster, rounds, free = env.model, env.iteration + 1, self._free
        kind, threads = _OBJECTIVES[_objective(env.params)][0], _threads(env.params)

        def kept(_: Any) -> Any:
            return predictor(lambda X: booster.predict(X, num_iteration=rounds, **threads), kind, self._classes)

        stopped = self.stopping.update(predictor(lambda _: free.after(booster, rounds), kind, self._classes), keep=kept)
        if not stopped and rounds < env.end_iteration:
            return
        self.stopping.finish()
        if self.stopping.best_round is not None:
            best = env.begin_iteration + self.stopping.best_round
            raise EarlyStopException(best, env.evaluation_result_list or [])

    def _check(self, env: Any) -> None:
        """Refuse what cannot be served, before the first look."""
        from lightgbm import Booster

        if not isinstance(env.model, Booster):
            raise InputTypeError("callbacks", "a guard's callback in lightgbm.cv", "lightgbm.train; cv has many models")
        if self.stopping.rounds:
            raise InputError("stopping", "a GuardedStopping of an earlier fit", "a new one for each fit")
        objective = _objective(env.params)
        known = None if objective == "none" else objective
        check_objective(known, _OBJECTIVES.get(objective, (None,))[0], self.stopping.metric)
        names = ("boosting", "boosting_type", "boost")
        if "dart" in [env.params.get(name) for name in names]:
            raise InputError("boosting", "'dart', which changes earlier trees", "'gbdt', 'rf' or 'goss'")


def _objective(params: dict[str, Any]) -> str:
    return str(params.get("objective") or "regression").split()[0]


def _threads(params: dict[str, Any]) -> dict[str, Any]:
    """Predict with as many threads as the fit has; LightGBM would take all."""
    names = ("num_threads", "num_thread", "nthread", "nthreads", "n_jobs")
    given = [params[name] for name in names if name in params]
    return {"num_threads": given[0]} if given else {}


class LightGBMEval:
    """A function for ``lightgbm.train(feval=...)`` that asks a guard every so many rounds.

    Its method `holdout` makes the set that stands for the holdout in ``valid_sets``: ``[train, holdout]``, or ``[train,
    validation, holdout]`` with a part cut from the training records. Every other set is free: its value is the plain
    metric, and that of the last free set before the holdout is the training value of the query. LightGBM's own early
    stopping then works on the answers, with ``"metric": "none"`` in the parameters. `LightGBMCallback` serves the same
    purpose with fewer queries, and needs no holdout in ``valid_sets``.

    Parameters
    ----------
    guard : Thresholdout
        The guard, with its training part, in this process; no ladder, which tells the best score so far.
    metric : str or Metric, default="accuracy"
        As in `Thresholdout.score`; no statistic.
    every : int, default=10
        Ask in one round of so many, from the first on. In between the last answer is repeated.
    classes : array-like, optional
        As in `LightGBMCallback`.
    exhausted : {"stop", "nan", "train", "raise"}, default="stop"
        What happens when the guard answers no more. An evaluation function can't stop LightGBM: by "stop" the metric is
        NaN from there on, which LightGBM's own early stopping counts as no improvement, so that it ends the fit and
        keeps the best round that was answered; without any answer `BudgetExhausted` is raised. "nan": the same, also
        without any. "train": the training value stands in, without certificate. "raise": `BudgetExhausted`.
    key : str, optional
        Identity of this fit, as in `GuardedStopping`.

    Attributes
    ----------
    answers : dict of int to Answer
        Answers by round, from 0.
    asked, spent, replaced : int
        New queries; answers from the holdout among them; queries without an answer.
    exhausted : {"budget", "queries"} or None
        Which limit of the guard was reached.

    Notes
    -----
    With a custom objective LightGBM passes raw scores. They are refused when they do not look like probabilities.

    The plain metric of a set with holdout records would be an answer that nobody has charged. So a set of one's own
    that still has its records, by ``lightgbm.Dataset(..., free_raw_data=False)``, must have training records of the
    guard. Those of other sets can't be seen; they are not compared with the holdout, neither here nor there, because
    such a comparison tells which records are in it.

    Examples
    --------
    >>> import lightgbm
    >>> from sklearn.datasets import load_breast_cancer
    >>> from thresholdout import Claims, Thresholdout
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> guard = Thresholdout((X[300:], y[300:]), train=(X[:300], y[:300]), queries=50,
    ...                      mechanism=Claims(holdout_answers=5, noise=0.0))
    >>> train, function = lightgbm.Dataset(X[:300], y[:300]), LightGBMEval(guard, "accuracy", every=5)
    >>> booster = lightgbm.train({"objective": "binary", "metric": "none", "verbose": -1}, train, 10,
    ...                          valid_sets=[train, function.holdout(train)], feval=function)
    >>> sorted(function.answers), function.asked
    ([0, 5], 2)
    """

    def __init__(
        self,
        guard: Thresholdout,
        metric: str | Metric = "accuracy",
        *,
        every: int = 10,
        classes: ArrayLike | None = None,
        exhausted: Exhausted = "stop",
        key: str | None = None,
    ) -> None:
        self.metric = get_metric(metric)
        self.every = check_count("every", every)
        self._policy = check_exhausted(exhausted)
        if isinstance(guard, Proxy):
            raise SharingError(
                "LightGBMEval needs the holdout, which is in another process; LightGBMCallback works here"
            )
        guard.parameters.check_tells_each()
        self._guard = guard
        train, _ = guard._records.labelled()
        self._kind: Kind = "probabilities" if classifies(self.metric) else "values"
        self._classes = np.unique(np.asarray(train[1])) if classes is None else np.asarray(classes)
        self._own: Any = None
        self._free_sets: weakref.WeakSet[Any] = weakref.WeakSet()
        self._key = key
        self._round = 0
        self._free: float | None = None
        self._shown = math.nan
        self.answers: dict[int, Answer] = {}
        self.asked = self.spent = self.replaced = 0
        self.exhausted: str | None = None

    def holdout(self, reference: Any, **settings: Any) -> Any:
        """Return the set that stands for the holdout.

        Parameters
        ----------
        reference : lightgbm.Dataset
            The training set.
        **settings
            Others of ``lightgbm.Dataset``, such as ``categorical_feature``.

        Returns
        -------
        lightgbm.Dataset
            It has the holdout's features, and the same label everywhere: LightGBM's own metrics see no other. It can't
            be pickled.
        """
        import lightgbm

        class Holdout(lightgbm.Dataset):
            def __reduce__(self) -> NoReturn:
                raise SharingError("a set with the records of a holdout cannot be pickled")

        if self._own is not None:
            raise InputError("holdout", "a second call of LightGBMEval.holdout", "a new LightGBMEval for each fit")
        train, protected = self._guard._records.labelled()
        label = 0.0 if self._kind == "probabilities" else float(np.asarray(train[1])[0])
        X = handed_out(protected)[0]
        self._own = Holdout(X, np.full(self._guard.n, label), reference=reference, **settings)
        return self._own

    def __call__(self, preds: Any, data: Any) -> tuple[str, float, bool]:
        """Return the metric of one set; LightGBM calls this.

        Raises
        ------
        InputError
            When no free set came before the holdout in this round, a set has other records than training records, or
            the predictions are raw scores.
        BudgetExhausted
            When the guard answers no more, and ``exhausted="raise"``, or "stop" and there is no answer at all.
        """
        model = predictor(lambda X: np.asarray(preds), self._kind, self._classes, only_holdout=True)
        if data is self._own:
            shown = self._on_holdout(model)
        else:
            labels = self._labels(np.asarray(data.get_label()))
            self._check_free(data, labels)
            shown = self._free = float(np.mean(self.metric.of(model, None, labels)))
        return self.metric.name, shown, self.metric.greater_is_better

    def _labels(self, given: NDArray[Any]) -> NDArray[Any]:
        """Return the labels of a set; LightGBM numbers classes from 0."""
        if self._kind == "values":
            return given
        codes = given.astype(np.intp)
        if codes.size and (codes.min() < 0 or codes.max() >= self._classes.size):
            seen = f"a set with labels from {codes.min()} to {codes.max()}"
            raise InputError("classes", seen, f"numbers of the {self._classes.size} classes; pass classes=[...]")
        known: NDArray[Any] = self._classes[codes]
        return known

    def _check_free(self, data: Any, labels: NDArray[Any]) -> None:
        """Refuse a set that has its records still, and they are no training records; once for each set."""
        if data in self._free_sets:
            return
        records = data.data if hasattr(data.data, "shape") else None  # None when LightGBM has freed them
        given = labels if self._kind == "probabilities" else None  # others are in single precision here
        if records is not None and origin(self._guard, records, given) != "train":
            seen = "a set of your own with records that are not all in the guard's training part"
            raise InputError(
                "valid_sets", seen, "sets of training records, and LightGBMEval.holdout(train) for the holdout"
            )
        self._free_sets.add(data)

    def _on_holdout(self, model: Any) -> float:
        """Ask in this round, or repeat the last answer."""
        number, self._round = self._round, self._round + 1
        free, self._free = self._free, None
        if number % self.every:
            return self._shown
        if free is None:
            seen = "a holdout with no free set before it"
            raise InputError("valid_sets", seen, "[train, holdout], or a part cut from the training records first")
        try:
            key = None if self._key is None else f"{self._key}/round {number}"
            answer = self._guard.score(model, self.metric, train_values=free, key=key)
        except BudgetExhausted as error:
            if self._policy == "raise":
                raise
            if self._policy == "stop" and not self.answers:
                raise without_answer(error) from None
            if self.exhausted is None:
                warn_exhausted(error, self._policy, len(self.answers))
            self.exhausted = error.what
            self.replaced += 1
            self._shown = free if self._policy == "train" else math.nan
            return self._shown
        self.answers[number] = answer
        self.asked += not answer.repeated
        self.spent += not answer.repeated and answer.source == "holdout"
        self._shown = answer.value
        return self._shown

    def __reduce__(self) -> NoReturn:
        raise SharingError("an evaluation function cannot be pickled: its copy would lose the set that is the holdout")
