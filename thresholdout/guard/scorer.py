"""A scikit-learn scorer that asks a guard."""

from __future__ import annotations

import logging
import math
import os
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Self, cast

import numpy as np

from thresholdout.data.row_hashes import row_hashes
from thresholdout.errors import (
    BudgetExhausted,
    InputError,
    InputTypeError,
    LedgerError,
    SearchExhausted,
    SearchFailed,
    SharingError,
)
from thresholdout.guard.exhaustion import Exhausted, check_exhausted, warn_exhausted
from thresholdout.guard.holdout import content_hashes
from thresholdout.guard.sharing.shared_objects import Proxy, check_process, shared
from thresholdout.guard.train_split import check_width, placeholder_size, rows_of
from thresholdout.ledger.entry import SpareKey, fresh_key
from thresholdout.scoring.statistics import Statistic, get_score
from thresholdout.scoring.statistics.scorers import is_scorer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.guard.answer import Answer
    from thresholdout.guard.guard import Thresholdout
    from thresholdout.guard.training_values import Trained
    from thresholdout.scoring.metrics import Metric

__all__ = ["GuardScorer", "stands_for"]

_LOG: Final = logging.getLogger(__name__)

_SAVING: Final = (
    "A scorer asks about one candidate at a time, and each query pays for earlier answers. GuardedSearchCV(search, "
    "guard) asks about all candidates as one list, with intervals 1.6 to 2 times narrower (simulated for 20)."
)

_NONE: Final = (math.nan, math.nan)
"""Interval of a score without a guarantee."""

_ONE: Final = ""
"""Name of the only metric of a scorer that returns a number."""


@dataclass(frozen=True)
class Declared:
    """Public parameters of a scorer, as other processes may know them."""

    guard: Thresholdout
    metrics: dict[str, Metric | Statistic]
    cv: object | None
    weighted: bool
    intervals: bool


@shared
class GuardScorer:
    """Scorer for ``scoring=`` of scikit-learn's searches that asks a guard for each score.

    `Thresholdout.scorer` makes it, for use with ``cv=guard.split()``. The result depends on the given records, and
    never on the order of calls:

    - For the placeholder of `TrainSplit` (two or more equal training records), or exactly the holdout's records in any
      order, it asks the guard for the estimator's score, one query for each metric.
    - For any other training records, as with ``return_train_score=True`` or in an outer cross-validation, it computes
      the plain score, which is free.
    - Other records are refused. The message is the same for a part of the holdout and for unknown records, so it does
      not show which rows are in the holdout.

    A scorer works in any process: a copy in a worker asks the guard in the guard's process. Row hashes are sent there
    to identify the records, and the estimator for a query; the holdout is never sent back. ``copy``, ``deepcopy`` and
    scikit-learn's ``clone`` return the scorer itself.

    Parameters
    ----------
    guard : Thresholdout
        The guard, with its training part. A guard with the Ladder mechanism, which releases only the best score so far,
        is refused.
    metric : str, Metric, Statistic, or a list or mapping of them, default "accuracy"
        The score. A loss is negated, so that greater is better. With several metrics the scorer returns a dict, as for
        scikit-learn's multimetric scoring.
    cv : int, splitter, iterable of (fit, test) or "training", optional
        How to cross-validate the training value; see `Thresholdout.score`. All candidates have the same folds.
    intervals : bool, default False
        If True, return the ends of the interval, too: ``score``, ``low`` and ``high`` in the direction of the score,
        which a search stores as columns such as ``mean_test_low``. With several metrics they are named ``name``,
        ``name_low`` and ``name_high``. The search then needs ``refit="score"``, or a metric's name. For a plain
        training score both ends are the score; without an answer they are NaN.
    sample_weight : tuple of two array-likes, optional
        Weights of the training records and of the holdout records; see `Thresholdout.score`. Weights that a search
        routes here apply to plain training scores: holdout records have none in the search.
    exhausted : {"stop", "nan", "train", "raise"}, default "stop"
        Policy for an exhausted guard. "stop" gives the remaining candidates NaN, so that scikit-learn, whose searches
        cannot be ended, ranks them last and refits the best of the others. A round of a search without any answer ends
        with `SearchExhausted`, since scikit-learn would choose by position: the guard was exhausted before the search,
        or before a later round of a halving search. "nan" continues with NaN, also without any answer. "train"
        continues with training values, which have no guarantee. "raise" aborts the search with `SearchExhausted`.
        Beside this package's `GuardExhaustedWarning`, scikit-learn warns that scores are non-finite.

    Notes
    -----
    With `sklearn.model_selection.PredefinedSplit`, or another splitter that passes the holdout through the search, set
    ``refit=False``. Otherwise the best estimator is fitted to the holdout, and later queries about it measure memorised
    records; one warning says so. With ``cv=guard.split()`` this cannot happen.

    A model's prediction for a record must not depend on the records that it predicts at the same time, as ranks or
    batch statistics do: a score is a mean of one value per record.

    A halving search scores every candidate on the whole holdout, also if it was fitted to a part of the training
    records.

    A scorer sees one candidate at a time, in the order in which workers finish, so every query is adaptive and pays for
    information that earlier answers released. `GuardedSearchCV` fits first and asks about all candidates as one list:
    for 20 of them its intervals were 1.6 to 2 times narrower (simulated at 1,000 and 5,000 records). The log
    ``thresholdout.guard.scorer`` says so once, at INFO.
    """

    _warned = False
    _asks = False
    """Whether this copy has asked, or knows that another one has."""

    def __init__(
        self,
        guard: Thresholdout,
        metric: object = "accuracy",
        *,
        cv: object | None = None,
        sample_weight: tuple[object, object] | None = None,
        exhausted: Exhausted = "stop",
        intervals: bool = False,
    ) -> None:
        self._policy = check_exhausted(exhausted)
        guard.parameters.check_tells_each()
        metrics = _metrics(metric)
        for chosen in metrics.values():
            guard._queries.checked(chosen, sample_weight)
        if not isinstance(intervals, bool):
            raise InputTypeError("intervals", repr(intervals), "True or False")
        self._declared = Declared(guard, metrics, guard._fixed(cv), sample_weight is not None, intervals)
        self._weights = None if sample_weight is None else (np.array(sample_weight[0]), np.array(sample_weight[1]))
        self._request: bool | str | None = None
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._asked = 0
        self._replaced: set[str] = set()
        self._rounds: dict[str, set[str]] = {}
        self._answered: set[str] = set()
        self._refusal: BudgetExhausted | None = None
        self._said = False
        self._began = guard._searched
        self._looked_for = False

    @property
    def guard(self) -> Thresholdout:
        """The guard that is asked."""
        return self._declared.guard

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics. Each metric is one query per candidate."""
        return tuple(metric.name for metric in self._declared.metrics.values())

    @property
    def asked(self) -> int:
        """Number of queries that the guard has answered for this scorer, in all processes."""
        return self._asked

    @property
    def replaced(self) -> int:
        """Number of queries without an answer, whose scores were replaced."""
        return len(self._replaced)

    @property
    def exhausted(self) -> Literal["budget", "queries"] | None:
        """The limit of the guard that stopped this scorer's queries, or ``None``."""
        refusal = self._refusal
        return None if refusal is None else cast(Literal["budget", "queries"], refusal.what)

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any | None = None) -> Any:
        """Return the guarded score of a fitted estimator.

        Parameters
        ----------
        estimator : object
            A fitted estimator.
        X, y : array-like
            Records that the search passes: the placeholder, the holdout's records or training records.
        sample_weight : array-like, optional
            Weights of these records, for a plain training score.

        Returns
        -------
        float, or dict of str to float for several metrics
            The score, with a loss negated; with ``intervals=True`` a dict with the ends of the interval, too.

        Raises
        ------
        InputError
            If the records are neither training records nor the holdout or its placeholder.
        SearchExhausted
            If the guard is exhausted and the policy is "raise", or "stop" and nothing in this round was answered.
        SearchFailed
            If the guard's ledger, or the process that holds the guard, cannot be reached.
        """
        try:
            return self._scored(estimator, X, y, sample_weight)
        except (LedgerError, SharingError) as error:
            raise SearchFailed(error) from error

    def _scored(self, estimator: Any, X: Any, y: Any, sample_weight: Any | None) -> Any:
        """Return a guarded or a plain score, according to the records."""
        declared = self._declared
        if _repeated(X, y):
            X_seen, y_seen = X[:2], None if y is None else y[:2]
        else:
            X_seen, y_seen = X, y
        stands = stands_for(declared.guard, X_seen, y_seen)
        if stands == "holdout":
            self._warn_of_refit()
        if stands == "train":
            self._warn_of_silence()
        else:
            self._asks = True
            if sample_weight is not None and not declared.weighted:
                seen = "weights from the search"
                advice = "In the search the holdout's records have no weights."
                expected = "given to the scorer: guard.scorer(..., sample_weight=(train, holdout))"
                raise InputError("sample_weight", seen, expected, advice)
            keys = {name: SpareKey(fresh_key()) for name in declared.metrics}
            return self._result(self._ask(estimator, keys, _round(X)))
        plain: dict[str, float] = {}
        for name, metric in declared.metrics.items():
            value = _plain(metric, estimator, X, y, sample_weight)
            plain.update(_shown(name, metric, value, (value, value) if declared.intervals else None))
        return self._result(plain)

    def _warn_of_silence(self) -> None:
        """Warn once about a search with other splits, which scores on training records and asks nothing."""
        if not self._asks:
            self._asks = True
            if self._unasked():
                warnings.warn(
                    "The scorer got training records before any query, so this search does not ask the guard and its "
                    "scores have no guarantee. Pass cv=guard.split() to the search, or use "
                    "GuardedSearchCV(search, guard).",
                    UserWarning,
                    stacklevel=5,
                )

    def _unasked(self) -> bool:
        """Whether no scorer of this guard was asked since this one was made; true only for the first call."""
        if os.getpid() != self._process:
            return False
        with self._lock:
            first = not self._looked_for and self.guard._searched == self._began
            self._looked_for = True
        return first

    def _warn_of_refit(self) -> None:
        """Warn once per process about a search that passes the holdout's records and must not refit."""
        if not self._warned:
            self._warned = True
            warnings.warn(
                "The scorer got the holdout's records from the search. Pass refit=False to such a search, or the best "
                "estimator is fitted to the holdout. A search with cv=guard.split() needs no holdout.",
                UserWarning,
                stacklevel=4,
            )

    def set_score_request(self, *, sample_weight: bool | str | None = None) -> Self:
        """Set whether a search routes ``sample_weight`` to the scorer; see scikit-learn's metadata routing.

        Parameters
        ----------
        sample_weight : bool, str or None
            Whether to route it, or the name to route.

        Returns
        -------
        GuardScorer
            The scorer itself.
        """
        self._request = sample_weight
        return self

    def get_metadata_routing(self) -> Any:
        """Return the requested metadata, as scikit-learn's ``MetadataRequest``."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner="GuardScorer")
        request.score.add_request(param="sample_weight", alias=self._request)
        return request

    def _accept_sample_weight(self) -> bool:
        """Accept weights from a search without metadata routing; scikit-learn calls this by name."""
        return True

    def _result(self, values: dict[str, float]) -> float | dict[str, float]:
        if self._declared.intervals:
            return {name or "score": value for name, value in values.items()}
        return values.get(_ONE, values)

    def _ask(
        self, estimator: Any, keys: Mapping[str, str], round_: str, given: Mapping[str, Any] | None = None
    ) -> dict[str, float]:
        """Ask one query for each metric, in the guard's process."""
        check_process(self._process, "scorer")
        guard, cv, weights = self.guard, self._declared.cv, self._weights
        keys = {
            name: guard._score_key(keys[name], "score", [estimator], metric, cv, None, weights) or str(keys[name])
            for name, metric in self._declared.metrics.items()
        }
        with self._lock:
            guard._searched += 1
            self._rounds.setdefault(round_, set()).update(keys.values())
        values: dict[str, float] = {}
        for name, metric in self._declared.metrics.items():
            found = self._answer(estimator, metric, keys[name], round_, None if given is None else given[name])
            value, interval = (found, _NONE) if isinstance(found, float) else (found.value, found.interval)
            values.update(_shown(name, metric, value, interval if self._declared.intervals else None))
        return values

    def _answer(
        self, estimator: Any, metric: Metric | Statistic, key: str, round_: str, given: Trained | None = None
    ) -> Answer | float:
        """Ask one query, or return the replacement of its answer."""
        told = self.guard._recalled(key, metric)
        if told is not None:
            with self._lock:
                self._answered.add(round_)
            return told
        if self._refusal is not None and self._policy in ("nan", "stop"):
            return self._stand_in(self._refusal, estimator, metric, key, round_)
        found = self.guard._trained(metric, estimator, self._declared.cv) if given is None else given
        try:
            answer = self.guard.score(estimator, metric, train_values=found, sample_weight=self._weights, key=key)
        except BudgetExhausted as error:
            return self._stand_in(error, estimator, metric, key, round_, found)
        with self._lock:
            self._asked += not answer.repeated
            self._answered.add(round_)
            said, self._said = self._said, True
        if not said and self.guard.parameters.takes_lists:
            _LOG.info(_SAVING)
        return answer

    def _stand_in(
        self,
        error: BudgetExhausted,
        estimator: Any,
        metric: Metric | Statistic,
        key: str,
        round_: str,
        found: Trained | None = None,
    ) -> float:
        with self._lock:
            first = self._refusal is None
            self._refusal = error
            if round_ not in self._answered and self._answers(self._rounds[round_]):
                self._answered.add(round_)
            ends = self._policy == "raise" or (self._policy == "stop" and round_ not in self._answered)
            if not ends:
                self._replaced.add(key)
        if ends:
            self._raise(error)
        if first:
            warn_exhausted(error, self._policy, self._answers(set().union(*self._rounds.values())), stacklevel=4)
        if self._policy != "train":
            return math.nan
        found = found or self.guard._trained(metric, estimator, self._declared.cv)
        weights = None if self._weights is None else self._weights[0]
        if weights is not None and found.tested is not None:
            weights = weights[found.tested]
        return float(np.average(found.values, weights=weights))

    def _answers(self, keys: set[str]) -> int:
        """Count the answers in the ledger, including those that other threads have not yet returned."""
        return int(self.guard.history["key"].isin(keys).sum())

    def _raise(self, error: BudgetExhausted) -> NoReturn:
        raise SearchExhausted(error.what, error.spent, error.limit) from error

    def __repr__(self) -> str:
        return f"GuardScorer({', '.join(self.metrics)})"


class _RemoteScorer(
    Proxy,
    of=GuardScorer,
    serves="_ask _declared _request _unasked asked exhausted replaced set_score_request",
    local=(
        "__call__ _accept_sample_weight _asks _result _scored _warn_of_refit _warn_of_silence _warned "
        "get_metadata_routing guard metrics"
    ),
):
    """Proxy of a `GuardScorer` in another process."""

    def set_score_request(self, *, sample_weight: bool | str | None = None) -> Self:
        """Set whether a search routes ``sample_weight`` to the scorer."""
        self._reference.call("set_score_request", sample_weight=sample_weight)
        self._request = sample_weight
        return self

    def _ask(
        self, estimator: Any, keys: Mapping[str, str], round_: str, given: Mapping[str, Any] | None = None
    ) -> dict[str, float]:
        """Send the estimator to the guard, with training values that are cross-validated in this process."""
        cv = self._declared.cv
        if cv != "training":
            metrics = self._declared.metrics
            given = {name: self.guard._trained(metric, estimator, cv) for name, metric in metrics.items()}
        values: dict[str, float] = self._reference.call("_ask", estimator, keys, round_, given)
        return values

    def __repr__(self) -> str:
        try:
            return f"GuardScorer({', '.join(self.metrics)})"
        except SharingError:
            return f"<GuardScorer in {self._reference.owner}, which does not answer>"


def _metrics(metric: object) -> dict[str, Metric | Statistic]:
    """Return metrics by name; a single one has the empty name."""
    if isinstance(metric, Mapping):
        if not metric or not all(isinstance(name, str) and name for name in metric):
            seen = f"a mapping with the names {list(metric)}"
            raise InputError("metric", seen, "a mapping of at least one metric by its name")
        return {name: get_score(chosen) for name, chosen in metric.items()}
    if isinstance(metric, (list, tuple)):
        chosen = [get_score(one) for one in metric]
        names = [one.name for one in chosen]
        if not names or len(set(names)) < len(names):
            raise InputError("metric", f"the metrics {names}", "at least one metric, without repetitions")
        return dict(zip(names, chosen, strict=True))
    if not isinstance(metric, str) and not hasattr(metric, "greater_is_better") and not is_scorer(metric):
        raise InputTypeError("metric", f"a {type(metric).__name__}", "a name, a Metric, or a list or mapping of them")
    return {_ONE: get_score(cast("str | Metric | Statistic", metric))}


def stands_for(guard: Thresholdout, X: Any, y: Any) -> Literal["placeholder", "holdout", "train"]:
    """Return whether records are the placeholder, the holdout or training records, by content; refuse all others."""
    hashes, records = content_hashes(X, y)
    size = len(hashes)
    if size > 1 and _alike(hashes) and (records is None or _alike(records)):
        first = guard._origin(hashes[:1], None if records is None else records[:1])
        if first == "train":
            return "placeholder"
    origin = guard._origin(hashes, records) if size else "other"
    if origin == "holdout":
        return "holdout"
    if origin == "train" and size > 1:
        return "train"
    if origin == "train" or not size:
        n = guard.split().n
        enough = math.ceil(2 * n / placeholder_size(n)) + 1
        raise InputError(
            "X",
            f"{size} record{'' if size else 's'}",
            "at least 2 records",
            "One record can be the placeholder of cv=guard.split() or a training record. Pass "
            f"min_resources={enough} or more to a halving search.",
        )
    check_width(guard, X)
    raise InputError(
        "X",
        f"{size} other records",
        "training records of the guard, or exactly its holdout",
        "Run the search on training records, with cv=guard.split(); it then scores on the whole holdout.",
    )


def _round(X: Any) -> str:
    """Return the identity of a round of a search: its placeholder."""
    return f"{rows_of(X)} of {row_hashes(X.iloc[:1] if hasattr(X, 'iloc') else X[:1])[0]}"


def _alike(hashes: NDArray[np.uint64]) -> bool:
    return bool((hashes == hashes[0]).all())


def _repeated(X: Any, y: Any) -> bool:
    """Whether arrays repeat one record, so that hashing two rows is enough."""
    if not isinstance(X, np.ndarray) or len(X) <= 2 or not (X[0] == X).all():
        return False
    return y is None or (isinstance(y, np.ndarray) and len(y) == len(X) and bool((y[0] == y).all()))


def _plain(metric: Metric | Statistic, estimator: Any, X: Any, y: Any, sample_weight: Any | None) -> float:
    """Return the score on records that need no guard."""
    values = metric.of(estimator, X, y)
    if sample_weight is None:
        return float(np.mean(values))
    if isinstance(metric, Statistic):
        advice = "Weights need a metric that is a mean over records."
        raise InputError("sample_weight", "weights", f"None for {metric.name!r}", advice)
    return float(np.average(values, weights=np.asarray(sample_weight)))


def _shown(
    name: str, metric: Metric | Statistic, value: float, interval: tuple[float, float] | None
) -> dict[str, float]:
    """Return the score with the sign that makes greater better, and the ends of its interval."""
    sign = 1.0 if metric.greater_is_better else -1.0
    if interval is None:
        return {name: sign * value}
    low, high = sorted(sign * end for end in interval)
    prefix = f"{name}_" if name else ""
    return {name: sign * value, f"{prefix}low": low, f"{prefix}high": high}
