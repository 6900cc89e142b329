"""Guards in Optuna, which is loaded only when a study calls the objective."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from graphs.errors import amount
from thresholdout.data.arguments import check_word
from thresholdout.errors import BudgetExhausted, GuardExhaustedWarning, InputError, InputTypeError
from thresholdout.guard.answer import Answer
from thresholdout.guard.exhaustion import Exhausted, check_exhausted, warn_exhausted, without_answer
from thresholdout.scoring.metrics import Metric
from thresholdout.scoring.statistics import Statistic, get_score

if TYPE_CHECKING:
    from thresholdout.guard.guard import Thresholdout

__all__ = ["GuardedObjective", "stop_when_exhausted"]

_GUARD = "guard"
_STATE = "guard_state"


class GuardedObjective:
    """Objective for an Optuna study that scores every trial on a guarded holdout.

    Pass the object to ``study.optimize``. For every trial it calls ``build(trial)`` for an estimator, fits the
    estimator to the guard's training part, and asks the guard for its score on the holdout: one query for each metric.
    A guard (`Thresholdout`) answers queries about a holdout and tracks an error budget, so the interval of the best
    trial is valid although the trial was chosen for its score. The holdout never passes through Optuna.

    Each answer is stored in ``trial.user_attrs`` under the name of its metric, as a dict with ``value``,
    ``half_width``, ``source``, ``query``, ``remaining`` and ``repeated``. ``study.user_attrs["guard"]`` is the guard's
    identity; a study of another guard is refused. ``study.user_attrs["guard_state"]`` is the guard's state after the
    last trial.

    Parameters
    ----------
    guard : Thresholdout
        The guard, with labels and a training part. A guard that reports only the best score so far (a ladder) is
        refused. If several processes work on one study, each opens its own guard on the same records and the same
        ledger.
    build : callable
        Function ``build(trial)`` that suggests parameters and returns an estimator.
    metric : str, Metric, Statistic or sequence of them, default "accuracy"
        Score to query, or its name. A sequence makes a study with several objectives. Losses are not negated: the
        study's direction for a loss must be ``"minimize"``, which is checked.
    cv : int, splitter, iterable of (fit, test) or "training", optional
        How to compute the training value, the score that the guard compares with the holdout. If None, by 5-fold
        cross-validation on the training part. ``"training"`` fits nothing further and uses the score on the training
        records. All trials have the same folds.
    fit : bool, default True
        Whether to fit the estimator that `build` returns. Pass False if `build` fits it.
    exhausted : {"stop", "nan", "train", "raise"}, default "stop"
        Policy when the guard is exhausted (its error budget, its answers or its queries):

        - "stop": the study stops, in every worker, with one warning. A trial without an answer fails, as trials without
          a value do in Optuna, and the best trial is the best answered one. If no trial has an answer,
          `BudgetExhausted` is raised.
        - "nan": the trial fails, and the study continues.
        - "train": the training value replaces the answer, without a certificate.
        - "raise": `BudgetExhausted` is raised, which ends the study unless Optuna's ``catch`` includes it.
    key : {"trial", "params"}, default "trial"
        Identity of a query. A repeated query returns its earlier answer free of charge.

        - "trial": the same trial of the same study. A call that is repeated after a lost connection or a crash is free.
        - "params": the same parameters for the same `build`, in any trial, study or process. Retried trials and
          repeated configurations are free too. Use it only if `build` and the fit depend on the parameters alone (fixed
          random states). The ledger refuses a fit with another training value.

    Attributes
    ----------
    asked : int
        Number of new queries that this object made.
    spent : int
        Number of new queries that were answered from the holdout rather than by the training value.
    repeated : int
        Number of queries that returned an earlier answer.
    replaced : int
        Number of queries without an answer.
    exhausted : {"budget", "queries"} or None
        Limit of the guard that was reached, or None.

    Raises
    ------
    InputTypeError
        If `build` is not callable.
    InputError
        If no metric is given or one is repeated, if `key` or `exhausted` is not one of the listed words, or if the
        guard has no labels or reports only the best score.

    See Also
    --------
    stop_when_exhausted : Stop a study with an objective of your own.

    Notes
    -----
    The answers of all trials are valid simultaneously with the guard's confidence, including the best trial's answer.

    This object does not call ``trial.report``, since every guarded value costs a query. To prune trials, let `build`
    report values on the training part, which are free, and raise ``TrialPruned``. A pruned trial makes no query.

    Examples
    --------
    >>> import optuna
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from thresholdout import Thresholdout
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> guard = Thresholdout((X[300:], y[300:]), train=(X[:300], y[:300]), queries=8)
    >>> def build(trial):
    ...     return DecisionTreeClassifier(max_depth=trial.suggest_int("max_depth", 1, 8), random_state=0)
    >>> objective = GuardedObjective(guard, build, "accuracy", exhausted="stop")
    >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
    >>> study = optuna.create_study(direction="maximize")
    >>> study.optimize(objective, n_trials=4)
    >>> objective.asked, sorted(study.best_trial.user_attrs["accuracy"])
    (4, ['half_width', 'query', 'remaining', 'repeated', 'source', 'value'])
    """

    def __init__(
        self,
        guard: Thresholdout,
        build: Callable[[Any], Any],
        metric: str | Metric | Statistic | Sequence[str | Metric | Statistic] = "accuracy",
        *,
        cv: object | None = None,
        fit: bool = True,
        exhausted: Exhausted = "stop",
        key: Literal["trial", "params"] = "trial",
    ) -> None:
        if not callable(build):
            raise InputTypeError("build", f"a {type(build).__name__}", "a function build(trial) -> estimator")
        several = (metric,) if isinstance(metric, str | Metric | Statistic) else metric
        self.metrics = tuple(get_score(one) for one in several)
        names = [one.name for one in self.metrics]
        if not names or len(set(names)) < len(names):
            raise InputError("metric", names, "at least one metric without repetitions")
        check_word("key", key, ("trial", "params"))
        if len(guard.train) != 2:
            advice = "Make it as Thresholdout((X, y), train=(X, y))."
            raise InputError("guard", "one with a training part without labels", "a guard of pairs (X, y)", advice)
        guard.parameters.check_tells_each()
        self.guard = guard
        self._build = build
        self._cv = guard._fixed(cv)
        self._fit = fit
        self._policy = check_exhausted(exhausted)
        self._key = key
        self._process = os.getpid()
        self._lock = threading.Lock()
        self.asked = self.spent = self.repeated = self.replaced = 0
        self.exhausted: str | None = None

    def __call__(self, trial: Any) -> float | tuple[float, ...]:
        """Return the guarded values of one trial. Optuna calls this method.

        Parameters
        ----------
        trial : optuna.trial.Trial
            The trial to score.

        Returns
        -------
        float or tuple of float
            Value of the metric, or of each metric in order. NaN, which fails the trial, for a query without an answer.

        Raises
        ------
        InputError
            If a direction of the study differs from its metric's, or if the study belongs to another guard.
        BudgetExhausted
            If the guard is exhausted and ``exhausted="raise"``, or ``exhausted="stop"`` and no trial has a value.
        """
        if os.getpid() != self._process:  # a forked child has a copy of the lock, but not the thread that may hold it
            self._process, self._lock = os.getpid(), threading.Lock()
        study = getattr(trial, "study", None)
        if study is not None:
            self._check(study)
        estimator = self._build(trial)
        keys = self._keys(trial, study)
        if self.exhausted is not None and self._policy in ("nan", "stop") and not self._known(keys):
            values = [self._unanswered(trial, metric, math.nan, self.exhausted) for metric in self.metrics]
        else:
            if self._fit:
                estimator = estimator.fit(*self.guard.train)
            values = [self._ask(trial, estimator, one, key) for one, key in zip(self.metrics, keys, strict=True)]
        if study is not None:
            self._record(trial, study)
        return values[0] if len(values) == 1 else tuple(values)

    def summary(self) -> str:
        """Return one line of text with the numbers of queries, answers from the holdout and repeated answers."""
        replaced = f", {self.replaced} without an answer ({self.exhausted} used up)" if self.replaced else ""
        return f"{amount(self.asked, 'query')}, {self.spent} from the holdout, {self.repeated} repeated{replaced}"

    def __repr__(self) -> str:
        return f"<GuardedObjective {', '.join(one.name for one in self.metrics)}: {self.summary()}>"

    def _check(self, study: Any) -> None:
        """Refuse a study with other directions, or of another guard; mark a new study as this guard's."""
        expected = ["MAXIMIZE" if one.greater_is_better else "MINIMIZE" for one in self.metrics]
        seen = [direction.name for direction in study.directions]
        if seen != expected:
            names = ", ".join(one.name for one in self.metrics)
            raise InputError("study", f"one with directions {seen}", f"one with directions {expected} for {names}")
        if _GUARD not in study.user_attrs:
            study.set_user_attr(_GUARD, self.guard._id)
        owner = study.user_attrs[_GUARD]  # read again: another process may have marked it for another guard
        if owner != self.guard._id:
            mine = f"a new one or one of guard {self.guard._id[:12]}..."
            raise InputError("study", f"a study of guard {owner[:12]}...", mine)

    def _keys(self, trial: Any, study: Any) -> list[str | None]:
        """Return the identities of a trial's queries."""
        if self._key == "params":
            name = getattr(self._build, "__qualname__", type(self._build).__qualname__)
            made = json.dumps(
                [name, getattr(self._build, "__module__", ""), trial.params], sort_keys=True, default=repr
            )
            prefix = f"optuna params {hashlib.sha256(made.encode()).hexdigest()[:32]}"
        elif study is not None:
            # The time tells apart studies of the same name, one of which was deleted.
            prefix = f"optuna {study.study_name} trial {trial.number} of {trial.datetime_start.isoformat()}"
        else:
            return [None for _ in self.metrics]
        return [f"{prefix} {metric.name}" for metric in self.metrics]

    def _known(self, keys: list[str | None]) -> bool:
        """Return whether the guard has answered one of these queries before."""
        return any(key is not None and self.guard._answered(key) for key in keys)

    def _ask(self, trial: Any, estimator: Any, metric: Metric | Statistic, key: str | None) -> float:
        """Make one query and note the answer in the trial."""
        try:
            answer = self.guard.score(estimator, metric, cv=self._cv, key=key)
        except BudgetExhausted as error:
            if self._policy == "raise":
                raise
            if self._policy == "stop" and not _has_values(trial):
                raise without_answer(error) from None
            with self._lock:
                first, self.exhausted = self.exhausted is None, error.what
            if first:
                warn_exhausted(error, self._policy, self.asked + self.repeated, stacklevel=3)
            value = self._train_value(estimator, metric) if self._policy == "train" else math.nan
            return self._unanswered(trial, metric, value, error.what)
        with self._lock:
            self.asked += not answer.repeated
            self.repeated += answer.repeated
            self.spent += not answer.repeated and answer.source == "holdout"
        trial.set_user_attr(metric.name, _shown(answer))
        return answer.value

    def _unanswered(self, trial: Any, metric: Metric | Statistic, value: float, what: str) -> float:
        """Note in a trial that the guard gave no answer, and return the value in its place."""
        with self._lock:
            self.replaced += 1
        trial.set_user_attr(metric.name, {"unanswered": what})
        return value

    def _train_value(self, estimator: Any, metric: Metric | Statistic) -> float:
        return float(np.mean(self.guard._trained(metric, estimator, self._cv).values))

    def _record(self, trial: Any, study: Any) -> None:
        """Note the guard's state in the study, and stop the study after the last answer."""
        exhausted = self.guard.status.exhausted
        if exhausted is None:
            asked = max(trial.user_attrs[one.name].get("query", 0) for one in self.metrics)
        else:
            asked = self.guard.status.asked
        study.set_user_attr(
            _STATE, {"asked": asked, "remaining": self.guard.status.answers_left, "exhausted": exhausted}
        )
        if exhausted is None or self._policy != "stop":
            return
        with self._lock:
            first, self.exhausted = self.exhausted is None, exhausted
        if first:
            used = "The guard's answers from the holdout are" if exhausted == "budget" else "The guard's queries are"
            answers = self.asked + self.repeated
            said = (
                f"{used} used up. The study stops after trial {trial.number}, and this run has {answers} "
                f"answer{'' if answers == 1 else 's'}. The best trial is the best of those that were answered."
            )
            warnings.warn(said, GuardExhaustedWarning, stacklevel=3)
        _stop(study)


def stop_when_exhausted(guard: Thresholdout) -> Callable[[Any, Any], None]:
    """Return an Optuna callback that stops a study once a guard is exhausted.

    Pass it to ``study.optimize(callbacks=[...])`` if your own objective queries a guard. `GuardedObjective` with
    ``exhausted="stop"`` stops its study without a callback.

    Parameters
    ----------
    guard : Thresholdout
        The guard that the objective queries, in this process.

    Returns
    -------
    callable
        Function ``f(study, trial)``, to be called after each trial: it calls ``study.stop()`` if the guard has no
        answers or queries left.

    Examples
    --------
    >>> import numpy as np
    >>> import optuna
    >>> from thresholdout import Claims, Thresholdout
    >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
    >>> holdout = np.linspace(0, 1, 1000)
    >>> guard = Thresholdout(holdout, queries=3, mechanism=Claims(holdout_answers=3))
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", 0, 1)
    ...     return guard.ask(x, holdout < x).value
    >>> study = optuna.create_study(direction="maximize")
    >>> study.optimize(objective, n_trials=10, callbacks=[stop_when_exhausted(guard)])
    >>> len(study.trials)
    3
    """

    def callback(study: Any, trial: Any) -> None:
        if guard.status.exhausted is not None:
            _stop(study)

    return callback


def _stop(study: Any) -> None:
    # With study.ask() and study.tell() there is no loop to stop, and Optuna says so.
    with contextlib.suppress(RuntimeError):
        study.stop()


def _has_values(trial: Any) -> bool:
    """Return whether another trial, or another objective of this one, has a value to choose from."""
    study = getattr(trial, "study", None)
    others = [] if study is None else study.get_trials(deepcopy=False)
    answered = any("value" in found for found in trial.user_attrs.values() if isinstance(found, dict))
    return answered or any(other.state.name == "COMPLETE" for other in others)


def _shown(answer: Answer) -> dict[str, Any]:
    """Return the parts of an answer that a trial keeps."""
    names = ("value", "half_width", "source", "query", "remaining", "repeated")
    return {name: getattr(answer, name) for name in names}
