"""Guards in LightGBM, which is loaded only when one of its fits calls a hook."""

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
"""Kinds of outputs of LightGBM's objectives, under all their names, and their functions of raw scores."""


class _FreeOutputs:
    """Outputs of a booster for the free records, round by round, from sums of raw scores.

    A prediction by the whole ensemble after each of r rounds costs r^2 / 2 trees, the sum r. Some boosters do not
    output sums (random forests average, and parameters such as ``reg_sqrt`` change the outputs). Both ways are compared
    after 1, 2, 4, 8, ... evaluations; if they differ, the whole ensemble predicts.
    """

    def __init__(self, X: Any, objective: str, params: dict[str, Any]) -> None:
        self._X, self._params, self._threads = X, params, _threads(params)
        self._transform = _OBJECTIVES[objective][1]
        self._raw: Any = 0.0
        self._output = np.empty(0)
        self._rounds = self._looks = 0
        self._adds = True

    def after(self, booster: Any, rounds: int) -> NDArray[Any]:
        """Return the outputs of the first ``rounds`` rounds, at least as many as in the previous call."""
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
    """Stop LightGBM early by a `GuardedStopping`.

    Pass it in ``lightgbm.train(callbacks=[...])`` or ``LGBMClassifier.fit(callbacks=[...])``. A `GuardedStopping`
    follows a free signal and queries a guard about a few rounds. The holdout does not pass through LightGBM: the model
    predicts it in the guard's process, and only for queries. After the fit the booster's ``best_iteration`` is the
    chosen number of rounds, as with LightGBM's own early stopping, and `stopping` holds the answers.

    Parameters
    ----------
    stopping : GuardedStopping
        The stopping rule with its guard. Each fit needs a new one.
    classes : array-like, optional
        Labels of the booster's outputs, in their order. If None, the sorted labels of the guard's training part, as
        ``LGBMClassifier`` numbers them.

    Notes
    -----
    The signal's outputs are updated after each round by the raw scores of the new trees. ``lightgbm.cv`` and the
    boosting type ``"dart"`` are refused at the first round, because they fit several models or change earlier trees.

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

    order = 30  # LightGBM's place for early stopping: after callbacks that log (10) and record (20)
    before_iteration = False

    def __init__(self, stopping: GuardedStopping, classes: ArrayLike | None = None) -> None:
        self.stopping = stopping
        self._free: Any = None
        self._classes = stopping.classes if classes is None else np.asarray(classes)

    def __call__(self, env: Any) -> None:
        """Evaluate the booster after a round; LightGBM calls this, and stops at its EarlyStopException."""
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
        """Refuse unsupported fits before the first evaluation."""
        from lightgbm import Booster

        if not isinstance(env.model, Booster):
            advice = "lightgbm.cv fits several models."
            raise InputTypeError("callbacks", "a guard's callback in lightgbm.cv", "used in lightgbm.train", advice)
        if self.stopping.rounds:
            raise InputError("stopping", "the GuardedStopping of an earlier fit", "a new one for each fit")
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
    """Evaluate the holdout in LightGBM through a guard, every few rounds.

    Pass it as ``lightgbm.train(feval=...)``, with ``"metric": "none"`` in the parameters. LightGBM's own early stopping
    then uses the guard's answers. Its method `holdout` makes the data set that represents the holdout in
    ``valid_sets``: ``[train, holdout]``, or ``[train, validation, holdout]`` with a part cut from the training records.
    Every other set is free, and its value is the plain metric. The value of the last free set before the holdout is the
    training value of the query, which the guard compares with the holdout. `LightGBMCallback` reaches the same with
    fewer queries and without a holdout in ``valid_sets``.

    Parameters
    ----------
    guard : Thresholdout
        The guard, with labels and a training part, in this process. A guard that reports only the best score so far (a
        ladder) is refused.
    metric : str or Metric, default "accuracy"
        Metric that is a mean over records, or its name.
    every : int, default 10
        Query every k-th round, from the first one on. Other rounds repeat the last answer.
    classes : array-like, optional
        Labels of the booster's outputs, in their order. If None, the sorted labels of the guard's training part.
    exhausted : {"stop", "nan", "train", "raise"}, default "stop"
        Policy when the guard is exhausted (its error budget, its answers or its queries). An evaluation function cannot
        stop LightGBM.

        - "stop": the metric is NaN from then on. LightGBM's own early stopping counts NaN as no improvement, ends the
          fit and keeps the best answered round. If no round has an answer, `BudgetExhausted` is raised.
        - "nan": like "stop", but never an error.
        - "train": the training value replaces the answer, without a certificate.
        - "raise": `BudgetExhausted` is raised.
    key : str, optional
        Identity of this fit. A repeated fit with the same key returns the same answers free of charge. The fit must be
        reproducible.

    Attributes
    ----------
    answers : dict of int to Answer
        Answers by round, counted from 0.
    asked : int
        Number of new queries.
    spent : int
        Number of new queries that were answered from the holdout rather than by the training value.
    replaced : int
        Number of queries without an answer.
    exhausted : {"budget", "queries"} or None
        Limit of the guard that was reached, or None.

    Raises
    ------
    SharingError
        If the guard lives in another process.

    Notes
    -----
    With a custom objective LightGBM passes raw scores, which are refused unless they have the form of probabilities.

    The plain metric of a set with holdout records would be an answer without charge. A set of your own that still has
    its records, by ``lightgbm.Dataset(..., free_raw_data=False)``, must therefore consist of training records of the
    guard. The records of other sets cannot be checked. No set is compared with the holdout, since a comparison would
    reveal which records are in it.

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
                "LightGBMEval needs the holdout, which is in another process. Use LightGBMCallback here."
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
        """Return the LightGBM data set that represents the holdout in ``valid_sets``. Call it once.

        Parameters
        ----------
        reference : lightgbm.Dataset
            The training set.
        **settings
            Other arguments of ``lightgbm.Dataset``, such as ``categorical_feature``.

        Returns
        -------
        lightgbm.Dataset
            Data set with the holdout's features and one constant label, so that LightGBM's own metrics see no label of
            the holdout. It cannot be pickled.

        Raises
        ------
        InputError
            If the method was called before. Each fit needs a new `LightGBMEval`.
        """
        import lightgbm

        class Holdout(lightgbm.Dataset):
            def __reduce__(self) -> NoReturn:
                raise SharingError("A set with the records of a holdout cannot be pickled. Make it in each process.")

        if self._own is not None:
            advice = "Make a new LightGBMEval for each fit."
            raise InputError("holdout", "a second call of LightGBMEval.holdout", "called once", advice)
        train, protected = self._guard._records.labelled()
        label = 0.0 if self._kind == "probabilities" else float(np.asarray(train[1])[0])
        X = handed_out(protected)[0]
        self._own = Holdout(X, np.full(self._guard.n, label), reference=reference, **settings)
        return self._own

    def __call__(self, preds: Any, data: Any) -> tuple[str, float, bool]:
        """Return the metric of one data set. LightGBM calls this method.

        Raises
        ------
        InputError
            If no free set precedes the holdout in this round, if a set has records that are not training records of the
            guard, or if the predictions are raw scores.
        BudgetExhausted
            If the guard is exhausted and ``exhausted="raise"``, or ``exhausted="stop"`` and no round has an answer.
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
            expected = f"labels for all numbers in the sets, not for {self._classes.size} alone"
            raise InputError("classes", seen, expected, "Pass classes=[...].")
        known: NDArray[Any] = self._classes[codes]
        return known

    def _check_free(self, data: Any, labels: NDArray[Any]) -> None:
        """Refuse a set whose records are available and are no training records; once for each set."""
        if data in self._free_sets:
            return
        records = data.data if hasattr(data.data, "shape") else None  # LightGBM may have freed them
        given = labels if self._kind == "probabilities" else None  # LightGBM keeps numbers in single precision
        if records is not None and origin(self._guard, records, given) != "train":
            seen = "a set of your own with records that are not all in the guard's training part"
            expected = "sets of training records and LightGBMEval.holdout(train)"
            raise InputError("valid_sets", seen, expected)
        self._free_sets.add(data)

    def _on_holdout(self, model: Any) -> float:
        """Query the guard in this round, or repeat the last answer."""
        number, self._round = self._round, self._round + 1
        free, self._free = self._free, None
        if number % self.every:
            return self._shown
        if free is None:
            seen = "a holdout with no free set before it"
            advice = "A part cut from the training records may come first instead."
            raise InputError("valid_sets", seen, "a list such as [train, holdout]", advice)
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
        raise SharingError("LightGBMEval cannot be pickled: its copy would lose the set that stands for the holdout.")
