"""Early stopping behind a guard, for any loop."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from thresholdout.data.arguments import check_count
from thresholdout.errors import BudgetExhausted, InputError
from thresholdout.guard.answer import Answer
from thresholdout.guard.exhaustion import Exhausted, check_exhausted, warn_exhausted, without_answer
from thresholdout.guard.training_values import without_fits
from thresholdout.model_selection.early_stopping import EarlyStopping, EveryRound, StoppingRule
from thresholdout.scoring.metrics import Metric
from thresholdout.scoring.statistics import Statistic, get_score

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from thresholdout.guard.guard import Thresholdout

__all__ = ["Evaluation", "GuardedStopping"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A round that was evaluated, counted from 0, and its signal: the metric on the free records."""

    round: int
    signal: float


class GuardedStopping:
    """Early stopping that follows a free signal and queries a guard about a few rounds.

    The signal is the metric on records of the guard's training part, best on a part that the model is not fitted to
    (``validation``). It is also the training value of each query: where the holdout confirms it, no answer from the
    holdout is spent. (A model in training cannot be fitted again to parts of its records, so nothing is cross-validated
    here.) `EarlyStopping` states which rounds are queried and the guarantee of their answers.

    In your own loop call `update` once a round and `finish` at the end. For LightGBM and XGBoost see
    `lightgbm_callback` and `xgboost_callback`, for networks `keras_callback` and `lightning_callback`. Each fit needs a
    new object, which shows its history afterwards.

    Parameters
    ----------
    guard : Thresholdout
        The guard, with its training part. A ladder, which reports the best score so far, is refused.
    metric : str, Metric or Statistic, default="accuracy"
        As in `Thresholdout.score`. A statistic needs ``validation=None``.
    validation : array-like of int or bool, optional
        Records of the guard's training part that the model is *not* fitted to, by position or as a mask. By default all
        of them, which is right if none is used for fitting. With fitted records the signal keeps rising, and the
        holdout contradicts it: answers stay valid, but more of them come from the holdout.
    patience : int, default=10
        Stop after this many evaluations without a better signal.
    queries : int, default=6
        Largest number of queries for ``ask="claims"``.
    worth, min_delta, doubts : float, float, int
        As in `EarlyStopping`; in units of the metric.
    ask : {"claims", "rounds"}, default="claims"
        ``"rounds"`` makes a query at every evaluation, as early stopping on a holdout usually does, for comparison.
    every : int, default=1
        Evaluate every k-th round, from the first on. An evaluation predicts the free records.
    keep : callable, default=copy.deepcopy
        Copies the model of the best round, which later rounds change and a later query may need.
    exhausted : {"stop", "nan", "train", "raise"}, default="stop"
        Policy at exhaustion of the guard. "stop": the loop ends with one warning, and the best of the answered rounds
        is chosen; without any, `BudgetExhausted` is raised, since no answer supports the model. "nan": the loop goes on
        until the signal ends it; without any answer the signal chooses. "train": the signal stands in, without a
        certificate. "raise": `BudgetExhausted`.
    key : str, optional
        Identity of this fit. With it, a repeated fit has the same answers free of charge; the fit must be reproducible.

    Attributes
    ----------
    stopped : bool
        Whether the loop should end, or ended here.
    best_round : int or None
        The round with the best answer; without answers, that with the best signal.
    best : Answer or None
        The answer about the best round, None without a query about it.
    best_model : object or None
        The model of the best round, as kept.
    answers : dict of int to Answer
        Answers by round.
    evaluations : list of Evaluation
        The evaluated rounds, with their signals.
    asked, spent, replaced : int
        New queries; answers from the holdout among them; queries without an answer.
    last_value : float
        The last answer's value; NaN before the first and after a query without an answer; with ``exhausted="train"``
        the signal in its place.
    exhausted : {"budget", "queries"} or None
        The limit of the guard that was reached.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import SGDClassifier
    >>> from thresholdout import Claims, Thresholdout
    >>> X, y = load_digits(return_X_y=True)
    >>> guard = Thresholdout((X[1000:], y[1000:]), train=(X[:1000], y[:1000]), queries=50,
    ...                      mechanism=Claims(holdout_answers=5))
    >>> stopping = GuardedStopping(guard, "accuracy", validation=range(700, 1000), patience=5)
    >>> model = SGDClassifier(random_state=0)
    >>> for _ in range(100):
    ...     model = model.partial_fit(X[:700], y[:700], classes=range(10))
    ...     if stopping.update(model):
    ...         break
    >>> stopping.finish()
    >>> stopping.asked <= 6 < len(stopping.evaluations) < 100
    True
    >>> stopping.best is stopping.answers[stopping.best_round]
    True
    """

    def __init__(
        self,
        guard: Thresholdout,
        metric: str | Metric | Statistic = "accuracy",
        *,
        validation: ArrayLike | None = None,
        patience: int = 10,
        queries: int = 6,
        worth: float = 0.0,
        min_delta: float = 0.0,
        doubts: int = 2,
        ask: Literal["claims", "rounds"] = "claims",
        every: int = 1,
        keep: Callable[[Any], Any] = copy.deepcopy,
        exhausted: Exhausted = "stop",
        key: str | None = None,
    ) -> None:
        guard.parameters.check_tells_each()
        self.guard = guard
        self.metric = get_score(metric)
        self._sign = 1.0 if self.metric.greater_is_better else -1.0
        self._train: tuple[Any, Any] = _pair(guard)
        if validation is not None and isinstance(self.metric, Statistic):
            seen = f"{self.metric.name!r}, which is no mean over records"
            advice = "Or give the guard the validation part as its training part, without validation=."
            raise InputError("metric", seen, "a metric beside validation=", advice)
        self._free = self._train
        if validation is not None:
            rows = _positions(validation, _size(self._train[1]))
            self._free = _take(self._train[0], rows), _take(self._train[1], rows)
        upper = self.metric.bounds[1] if self._sign > 0 else -self.metric.bounds[0]
        self._rule: StoppingRule
        if ask == "claims":
            self._rule = EarlyStopping(
                upper, patience=patience, queries=queries, worth=worth, min_delta=min_delta, doubts=doubts
            )
        elif ask == "rounds":
            self._rule = EveryRound(patience=patience, min_delta=min_delta)
        else:
            raise InputError("ask", repr(ask), "'claims' or 'rounds'")
        self.every = check_count("every", every)
        self._keep = keep
        self._policy = check_exhausted(exhausted)
        self._key = key
        self._kept: dict[int, Any] = {}
        self._rounds = 0
        self.evaluations: list[Evaluation] = []
        self.answers: dict[int, Answer] = {}
        self.asked = self.spent = self.replaced = 0
        self.last_value = math.nan
        self.exhausted: str | None = None

    @property
    def stopped(self) -> bool:
        """Whether the loop should end, or ended here."""
        return self._rule.stopped

    @property
    def classes(self) -> NDArray[Any]:
        """The labels of the training part, sorted."""
        return np.unique(np.asarray(self._train[1]))

    @property
    def free(self) -> tuple[Any, Any]:
        """The records of the signal, (X, y)."""
        return self._free

    @property
    def rounds(self) -> int:
        """Number of rounds, evaluated or not."""
        return self._rounds

    @property
    def best_round(self) -> int | None:
        """The round with the best answer; without answers, that with the best signal."""
        evaluation = self._rule.best_round
        return None if evaluation is None else self.evaluations[evaluation].round

    @property
    def best(self) -> Answer | None:
        """The answer about the best round, or None."""
        best = self.best_round
        return None if best is None else self.answers.get(best)

    @property
    def best_signal(self) -> float | None:
        """The signal of the best round."""
        evaluation = self._rule.best_round
        return None if evaluation is None else self.evaluations[evaluation].signal

    @property
    def best_model(self) -> Any:
        """The model of the best round, as kept."""
        best = self._rule.best_round
        return None if best is None else self._kept.get(best)

    def update(self, model: Any, *, keep: Callable[[Any], Any] | None = None) -> bool:
        """Evaluate the model after one more round, and return whether to stop.

        Parameters
        ----------
        model : object
            Fitted, with ``predict`` or ``predict_proba`` as the metric needs.
        keep : callable, optional
            Replaces the `keep` of the object for this round.

        Returns
        -------
        bool
            Whether the loop should end.

        Raises
        ------
        InputError
            An earlier call returned True.
        BudgetExhausted
            The guard is exhausted, and ``exhausted="raise"``, or "stop" without any answer.
        """
        if self.stopped:
            advice = "Make a new GuardedStopping for each fit."
            raise InputError("model", "a further round", "the last one after update() returned True", advice)
        number, self._rounds = self._rounds, self._rounds + 1
        if number % self.every:
            return False
        signal = float(np.mean(self.metric.of(model, *self._free)))
        evaluation = len(self.evaluations)
        self.evaluations.append(Evaluation(number, signal))
        asked = self._rule.update(self._sign * signal)
        if evaluation in (self._rule.signal_round, asked):
            self._kept[evaluation] = (keep or self._keep)(model)
        self._ask(asked)
        return self.stopped

    def finish(self) -> None:
        """Query the signal's best round unless its answer is known; call this at the end of the loop."""
        self._ask(self._rule.finish())

    def summary(self) -> str:
        """Return one line about queries, spent answers and the choice."""
        best = f"; best round {self.best_round}: {self.best!r}" if self.best is not None else ""
        if not best and self.best_round is not None:
            best = f"; best round {self.best_round} by the signal alone"
        replaced = f", {self.replaced} without an answer ({self.exhausted} used up)" if self.replaced else ""
        return f"{self._rounds} rounds, {self.asked} queries, {self.spent} from the holdout{replaced}{best}"

    def __repr__(self) -> str:
        return f"<GuardedStopping {self.metric.name}: {self.summary()}>"

    def _ask(self, evaluation: int | None) -> None:
        """Query a kept round, tell the rule, and drop models without further use."""
        if evaluation is not None:
            number = self.evaluations[evaluation].round
            try:
                answer = self._query(self._kept[evaluation], self.evaluations[evaluation])
            except BudgetExhausted as error:
                self.last_value = self._stand_in(error, self.evaluations[evaluation].signal)
            else:
                self.answers[number] = answer
                self.asked += not answer.repeated
                self.spent += not answer.repeated and answer.source == "holdout"
                self.last_value = answer.value
            self._rule.tell(self._sign * self.last_value)
        needed = {self._rule.best_round, self._rule.signal_round}
        self._kept = {kept: model for kept, model in self._kept.items() if kept in needed}

    def _query(self, model: Any, evaluation: Evaluation) -> Answer:
        key = None if self._key is None else f"{self._key}/round {evaluation.round}"
        if isinstance(self.metric, Statistic):
            return self.guard.score(model, self.metric, cv=without_fits(self.guard._open_folds), key=key)
        return self.guard.score(model, self.metric, train_values=evaluation.signal, key=key)

    def _stand_in(self, error: BudgetExhausted, signal: float) -> float:
        """Apply the policy at exhaustion, and return the value in place of the answer."""
        if self._policy == "raise":
            raise error
        if self._policy == "stop" and not self.answers:
            raise without_answer(error)
        if self.exhausted is None:
            warn_exhausted(error, self._policy, len(self.answers), stacklevel=4)
        self.exhausted = error.what
        self.replaced += 1
        if self._policy == "stop":
            self._rule.stopped = True
        return signal if self._policy == "train" else math.nan


def _pair(guard: Thresholdout) -> tuple[Any, Any]:
    """Return the training part as (X, y)."""
    train = guard._open
    if len(train) != 2:
        advice = "Make it as Thresholdout((X, y), train=(X_train, y_train))."
        raise InputError("guard", "one with a training part without labels", "a guard of pairs (X, y)", advice)
    return train[0], train[1]


def _size(piece: Any) -> int:
    return int(piece.shape[0]) if hasattr(piece, "shape") else len(piece)


def _positions(validation: ArrayLike, n: int) -> NDArray[np.intp]:
    """Return the positions of the validation records, after checks."""
    rows = np.asarray(validation)
    if rows.dtype == bool and rows.shape == (n,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.size == 0:
        seen = f"an array of {rows.dtype} of shape {rows.shape}"
        raise InputError("validation", seen, f"at least one position of a training record, or a mask of length {n}")
    if rows.min() < 0 or rows.max() >= n or np.unique(rows).size != rows.size:
        seen = f"positions from {rows.min()} to {rows.max()}, {np.unique(rows).size} of {rows.size} different"
        raise InputError("validation", seen, f"different positions from 0 to {n - 1}")
    return rows.astype(np.intp)


def _take(piece: Any, rows: NDArray[np.intp]) -> Any:
    """Return some records of an array, data frame, series, sparse matrix or list."""
    if hasattr(piece, "iloc"):
        return piece.iloc[rows]
    if hasattr(piece, "tocsr"):
        return piece.tocsr()[rows]
    return piece[rows] if hasattr(piece, "shape") else [piece[k] for k in rows]
