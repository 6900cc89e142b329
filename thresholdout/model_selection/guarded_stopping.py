"""Early stopping behind a guard, for any loop."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from graphs.errors import amount
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
    """Stop training early, with a certified score of the chosen round, by asking a guard about a few rounds only.

    A guard (`Thresholdout`) answers queries about a holdout and tracks an error budget. Usual early stopping evaluates
    the holdout after every round. This class follows a free signal instead, the metric on records of the guard's
    training part, and asks the guard only about rounds in which the signal has improved. The signal works best on a
    validation part that the model is not fitted to. It is also the training value of each query: if the holdout
    confirms it, no answer from the holdout is spent.

    In your own loop call `update` after each round and `finish` at the end. For libraries see `LightGBMCallback`,
    `xgboost_callback`, `keras_callback`, `lightning_callback` and `transformers_callback`. Each fit needs a new object,
    which keeps the history of that fit.

    Parameters
    ----------
    guard : Thresholdout
        The guard, with labels and a training part. A guard that reports only the best score so far (a ladder) is
        refused.
    metric : str, Metric or Statistic, default "accuracy"
        Score to follow and to query, or its name. A statistic, which is not a mean over records, needs
        ``validation=None``.
    validation : array-like of int or bool, optional
        Records of the guard's training part that the model is *not* fitted to, as positions or a mask. If None, all
        training records, which is right if none of them is used for fitting. On records that the model is fitted to,
        the signal keeps rising and the holdout contradicts it: answers stay valid, but more of them come from the
        holdout.
    patience : int, default 10
        Stop after this many evaluations without a better signal.
    queries : int, default 6
        Maximum number of queries with ``ask="claims"``.
    worth : float, default 0.0
        Smallest improvement of the signal that is worth a query, in units of the metric. If the distance from the first
        signal to the best possible value, divided by ``queries - 1``, is larger, it is used instead.
    min_delta : float, default 0.0
        A signal counts as better only if it exceeds the best one by more than this, in units of the metric.
    doubts : int, default 2
        Stop after this many successive queries whose answers are no better than the best answer before them.
    ask : {"claims", "rounds"}, default "claims"
        "claims" makes a query if the signal has improved enough since the last query. "rounds" makes a query at every
        evaluation, as early stopping on a holdout usually does, for comparison.
    every : int, default 1
        Evaluate every k-th round, from the first one on. An evaluation predicts the records of the signal.
    keep : callable, default copy.deepcopy
        Function that copies a model. Later rounds change the model, and a later query may need the best round's.
    exhausted : {"stop", "nan", "train", "raise"}, default "stop"
        Policy when the guard is exhausted (its error budget, its answers or its queries):

        - "stop": the loop ends with one warning, and the best of the answered rounds is chosen. If no round has an
          answer, `BudgetExhausted` is raised, since no answer supports the model.
        - "nan": the loop continues until the signal ends it. If no round has an answer, the signal chooses.
        - "train": the signal replaces the answer, without a certificate.
        - "raise": `BudgetExhausted` is raised.
    key : str, optional
        Identity of this fit. A repeated fit with the same key returns the same answers free of charge. The fit must be
        reproducible.

    Attributes
    ----------
    stopped : bool
        Whether the loop should end.
    rounds : int
        Number of rounds, evaluated or not.
    best_round : int or None
        Round with the best answer, counted from 0. Without answers, the round with the best signal.
    best : Answer or None
        Answer about the best round, or None if there was no query about it.
    best_signal : float or None
        Signal of the best round.
    best_model : object or None
        Copy of the model of the best round.
    answers : dict of int to Answer
        Answers by round.
    evaluations : list of Evaluation
        Evaluated rounds, each with `round` and `signal`.
    asked : int
        Number of new queries.
    spent : int
        Number of new queries that were answered from the holdout rather than by the signal.
    replaced : int
        Number of queries without an answer.
    last_value : float
        Value of the last answer. NaN before the first answer and after a query without an answer. With
        ``exhausted="train"`` the signal replaces a missing answer.
    exhausted : {"budget", "queries"} or None
        Limit of the guard that was reached, or None.

    Raises
    ------
    InputError
        If the guard has no labels or reports only the best score, if a statistic is combined with `validation`, or if
        another argument cannot be used.

    Notes
    -----
    With the guard's confidence, the score of every queried round is within the half-width of its answer, including the
    chosen round, although it was chosen for its answer. Nothing is guaranteed about rounds without a query.

    A model in training cannot be refitted to parts of its records, so nothing is cross-validated here.

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
        """Whether the loop should end."""
        return self._rule.stopped

    @property
    def classes(self) -> NDArray[Any]:
        """Sorted distinct labels of the guard's training part."""
        return np.unique(np.asarray(self._train[1]))

    @property
    def free(self) -> tuple[Any, Any]:
        """Records that the signal is computed from, as a pair (X, y)."""
        return self._free

    @property
    def rounds(self) -> int:
        """Number of rounds so far, evaluated or not."""
        return self._rounds

    @property
    def best_round(self) -> int | None:
        """Round with the best answer, counted from 0. Without answers, the round with the best signal."""
        evaluation = self._rule.best_round
        return None if evaluation is None else self.evaluations[evaluation].round

    @property
    def best(self) -> Answer | None:
        """Answer about the best round, or None if there was no query about it."""
        best = self.best_round
        return None if best is None else self.answers.get(best)

    @property
    def best_signal(self) -> float | None:
        """Signal of the best round, or None before the first evaluation."""
        evaluation = self._rule.best_round
        return None if evaluation is None else self.evaluations[evaluation].signal

    @property
    def best_model(self) -> Any:
        """Copy of the model of the best round, or None before the first evaluation."""
        best = self._rule.best_round
        return None if best is None else self._kept.get(best)

    def update(self, model: Any, *, keep: Callable[[Any], Any] | None = None) -> bool:
        """Evaluate the model after one more round, query the guard if needed, and return whether to stop.

        Parameters
        ----------
        model : object
            Fitted model with ``predict`` or ``predict_proba``, as the metric needs.
        keep : callable, optional
            Function that copies the model in this round, in place of the object's `keep`.

        Returns
        -------
        bool
            Whether the loop should end.

        Raises
        ------
        InputError
            If an earlier call returned True.
        BudgetExhausted
            If the guard is exhausted and ``exhausted="raise"``, or ``exhausted="stop"`` and no round has an answer.
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
        """Query the guard about the round with the best signal, unless its answer is known.

        Call it once at the end of the loop, also if `update` ended the loop.
        """
        self._ask(self._rule.finish())

    def summary(self) -> str:
        """Return one line of text with the numbers of rounds and queries, the spent answers and the best round."""
        best = f"; best round {self.best_round}: {self.best!r}" if self.best is not None else ""
        if not best and self.best_round is not None:
            best = f"; best round {self.best_round} by the signal alone"
        replaced = f", {self.replaced} without an answer ({self.exhausted} used up)" if self.replaced else ""
        counts = f"{amount(self._rounds, 'round')}, {amount(self.asked, 'query')}, {self.spent} from the holdout"
        return f"{counts}{replaced}{best}"

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
