"""A guard of K-fold cross-validation: every record is used for training and for testing.

One guard for each fold would be unsafe. The training part of one fold's guard contains the other folds, and answers
from there are free and exact. An analyst reads the labels of fold 2 from the guard of fold 1, and then asks the guard
of fold 2 for a lookup table of them. `KFoldGuard` therefore guards the out-of-fold values of all records and never
shows a training value. PROOFS.md, "K-fold cross-validation".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from graphs.progress_bar import progress_bar
from thresholdout.certificates import Certificate
from thresholdout.certificates.prior_queries import PriorQueries
from thresholdout.data.arguments import check_word
from thresholdout.data.parts.engines import is_lazy
from thresholdout.data.record_labels import is_name, record_column, record_labels
from thresholdout.data.values import checked_values
from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.answer import Answer
from thresholdout.guard.asking import checked_reserve, class_and_parameters, first_places, listed, repeats
from thresholdout.guard.fold_assignment import fold_model, make_folds
from thresholdout.guard.likely_mistakes import checked_call
from thresholdout.guard.model_queries import check_mean
from thresholdout.guard.out_of_fold import FoldPredictions, OutOfFoldGuard, check_estimator, fold_predictions
from thresholdout.guard.query import Query
from thresholdout.guard.releases import Releases, RemoteReleases
from thresholdout.guard.sharing.shared_objects import Proxy, shared
from thresholdout.guard.status import GuardStatus
from thresholdout.mechanisms import Known
from thresholdout.mechanisms.kind import Parameters
from thresholdout.planning.declaration import Claims
from thresholdout.scoring.metrics import Metric
from thresholdout.scoring.statistics import Statistic

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from thresholdout.guard.holdout import Origin
    from thresholdout.ledger import Ledger
    from thresholdout.noise.sources import NoiseSource

__all__ = ["KFoldGuard"]

_ALL_TRAIN: Final = "All records train and are tested, in different folds: pass them as KFoldGuard((X, y))."


@shared
class KFoldGuard:
    """Guard K-fold cross-validation so that it can answer many adaptive queries with guaranteed intervals.

    Use it in place of `Thresholdout` if all records are to train models. A query is the mean of a metric over all
    records. Each record is predicted by a clone of an estimator that was fitted to the other folds. With probability
    ``confidence`` the ``interval`` of every answer contains the *average risk of the fitted models*, for all queries at
    once and however each query was chosen.

    **Duties of the analyst.** Everything that is learned about these records must come from the answers: no training
    scores, no plots of the data, no hand-picked features, no model that was fitted to them elsewhere. Any choice that
    depends on the records belongs into the estimator (a pipeline), so that every fold repeats it. Choose the
    estimator's seeds without looking at the records, too. Do not ask for the score of an estimator that was later
    fitted to all records, such as ``best_estimator_`` of a `GuardedSearchCV`. A model's prediction for a record must
    not depend on the records that it predicts at the same time, as ranks or batch statistics do.

    Parameters
    ----------
    records : tuple (X, y) or (X, y, groups)
        All records and their labels. Records of one group, such as a patient, may depend on each other in any way.
    cv : int or splitter, default 2
        Number of folds, or a scikit-learn splitter whose test sides partition the records. Two folds have the narrowest
        intervals: the limits for K folds are those of n/K records. Half-widths for 3, 5 and 10 folds are 1.2, 1.6 and
        2.2 times those of two (``benchmarks/folds.py``); more folds only fit each model to more records. Folds must not
        depend on records. A splitter gets placeholders instead of X and y, so stratified ones are refused. Lists of
        positions must be formed without labels, too, which cannot be checked.
    groups : str, optional
        Name of the column or index level of X with the group of each record. Whole groups are in one fold, and only
        groups are independent.
    dependence : graphs.DependenceModel, optional
        How the records depend on each other. Every fold must be a union of its independent groups. If None, records, or
        groups, are independent.
    confidence : float, default 0.95
        Probability with which all intervals hold at once, in (0, 1).
    queries : int, optional
        Maximum number of queries. If None, there is no limit. A declared limit makes intervals narrower, that of the
        last query most.
    mechanism : {"claims", "ladder"}, Claims or parameters, default "claims"
        How queries are answered. "claims" returns the cell of the range that contains the mean: the cell around the
        expected value, or another. Every answer spends error budget, an unexpected one more.
        ``Claims(holdout_answers=...)`` limits how many answers may differ from the expected value.
        ``Claims(max_half_width=...)`` refuses single queries whose interval around it would be wider; lists have no
        such limit. "ladder" returns only the best score so far, the largest. For losses use
        ``LadderParameters(direction="minimize", queries=...)``, with a limit of its own.
    prior_queries : int or PriorQueries, default 0
        Number of scores of these records that were seen before; see `PriorQueries`. A cross-validation counts as many
        as it has folds: the mean of their accuracies is no share of the records, and has more values.
    ledger : str, path or Ledger, optional
        Store of the guard's state and history: a SQLite file to create or continue. If None, it is in memory. A ledger
        has one guard for the same records.
    random_state : int, optional
        Seed of the noise, for simulations only. If None, noise is exact, with entropy of the operating system.

    Attributes
    ----------
    n : int
        Number of records.
    dependence : graphs.models.out_of_fold.OutOfFold
        Model of how the out-of-fold values depend on each other.

    Raises
    ------
    InputError
        If an argument cannot be used, if folds need labels, or if folds depend on each other.

    Notes
    -----
    Limits for one query are those of a holdout of n/K records, since nothing is assumed about the learner: for some
    learners the errors in all folds agree. The gain over such a holdout is that all records train. The estimand depends
    on the records, so that even an expected answer costs something, and intervals for twenty queries are much narrower
    than for a hundred. `score_all` has the narrowest: 20 models of 2,000 records in two folds have half-widths of
    0.035, and of 0.065 one after another. Other processes use the guard through a proxy; it fits models in its own
    process.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(20_000, 5, random_state=0)
    >>> guard = KFoldGuard((X, y), cv=2, queries=20)
    >>> answer = guard.score(LogisticRegression(C=0.1), "accuracy")
    >>> answer.query, answer.half_width < 0.03, 0.0 < guard.status.error_budget_left < 0.05
    (1, True, True)
    >>> guard.folds[["records", "inflation"]]
          records  inflation
    fold
    0       10000        1.0
    1       10000        1.0
    """

    @checked_call("KFoldGuard((X, y))", train=_ALL_TRAIN, holdout=_ALL_TRAIN)
    def __init__(
        self,
        records: tuple[Any, ...],
        *,
        cv: Any = 2,
        groups: str | None = None,
        dependence: DependenceModel | None = None,
        confidence: float = 0.95,
        queries: int | None = None,
        mechanism: Literal["claims", "ladder"] | Claims | Parameters | None = None,
        prior_queries: int | PriorQueries = 0,
        ledger: str | Path | Ledger | None = None,
        random_state: int | NoiseSource | None = None,
    ) -> None:
        by_hand = isinstance(mechanism, Claims) or (isinstance(mechanism, Parameters) and mechanism.folds)
        if mechanism not in (None, "claims", "ladder") and not by_hand:
            expected = "'claims', Claims(...), 'ladder' or LadderParameters(...)"
            raise InputError("mechanism", repr(mechanism), expected, "Out-of-fold values depend on each other.")
        X, y, beside = _checked(records)
        n = int(X.shape[0]) if hasattr(X, "shape") else len(X)
        labels = record_labels((X, y), "holdout")
        if groups is not None and not is_name(groups):
            expected = "the name of a column or index level of X, or (X, y, groups)"
            raise InputTypeError("groups", f"a {type(groups).__name__}", expected)
        if groups is not None and beside is not None:
            raise InputError("groups", "a name", "None beside groups in (X, y, groups)")
        found = record_column(beside if groups is None else groups, (X, y), labels, "groups", "records")
        self._folds = make_folds(n, cv, found, dependence)
        self.n = n
        self.dependence = fold_model(n, self._folds, found, dependence)
        self._guard = OutOfFoldGuard(
            (X, y),
            dependence=self.dependence,
            confidence=confidence,
            queries=queries,
            mechanism=mechanism,
            prior_queries=prior_queries,
            ledger=ledger,
            random_state=random_state,
        )

    def score(
        self,
        estimator: Any,
        metric: str | Metric | Statistic = "accuracy",
        *,
        expected: float | None = None,
        key: str | None = None,
        n_jobs: int | None = None,
    ) -> Answer:
        """Return the cross-validated score of an estimator, with an interval that holds together with all others.

        This is one query and fits K clones of the estimator. Records that a model cannot predict, and all records of a
        fold whose model cannot be fitted, count with the worst value of the metric. Use `score_all` for estimators that
        are all fixed in advance; its intervals are much narrower.

        An estimator is identified by its class, its code and its parameters. If it is scored again with the same
        ``expected``, the earlier answer is returned at no cost. Change its ``random_state`` to fit other models.

        Parameters
        ----------
        estimator : estimator
            Estimator to clone and fit to the complement of every fold. It need not be fitted.
        metric : str or Metric, default "accuracy"
            A metric, or its name, that is a mean of per-record values. A `Statistic` is refused.
        expected : float, optional
            The score to expect, in the metric's units, from earlier answers or from elsewhere, *not from these
            records*. An answer that agrees costs little. If None, the last answer about this metric. Before the first
            one nothing is expected, and the history shows the middle of the range.
        key : str, optional
            Identity of the query, in place of its content. The same key returns the same answer at no cost and without
            a fit, also after a crash.
        n_jobs : int, optional
            Number of folds to fit in parallel. If None, one, unless ``joblib.parallel_config`` sets another number.

        Returns
        -------
        Answer
            Its `value`, `interval` and `half_width` are in the metric's units. Its `source` is "train" if the mean is
            near the expected value, which costs little, else "holdout".

        Raises
        ------
        InputError
            If an argument cannot be used (nothing is spent); or if predictions are none of these records' labels, or
            not one for each record (this is charged).
        BudgetExhausted
            If the answers that may differ from the expected value, or the declared queries, are used up. No model is
            fitted then.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.naive_bayes import GaussianNB
        >>> guard = KFoldGuard(load_digits(return_X_y=True), queries=20)
        >>> answer = guard.score(GaussianNB())
        >>> answer.interval[0] < 0.8 < answer.interval[1]
        True
        """
        chosen = self._checked(metric)
        check_estimator(estimator, chosen.response)
        key = self._guard.key_of(key, estimator, chosen, expected)
        repeated = self._guard.stored(key, chosen)
        if repeated is not None:
            return repeated
        query = self._query(chosen, expected, key)
        return self._guard.out_of_fold(query, lambda X, y: self._values(estimator, chosen, X, y, n_jobs))

    def score_all(
        self,
        models: Sequence[Any] | Mapping[str, Any],
        metric: str | Metric | Statistic = "accuracy",
        *,
        expected: Sequence[float | None] | None = None,
        keys: Sequence[str] | None = None,
        reserve: float = 0.2,
        report: Literal["all", "best"] = "all",
        n_jobs: int | None = None,
    ) -> list[Answer]:
        """Score several estimators in one batch, all fixed before any of their scores is known.

        Intervals are as narrow as for non-adaptive queries, so prefer it to one `score` after another. Without
        ``expected``, the guard predicts that each score is near the one before; a prediction that holds costs later
        queries little.

        Parameters
        ----------
        models : sequence or mapping of estimators
            The keys of a mapping are the candidates' names in the history.
        metric : str or Metric, default "accuracy"
            A metric, or its name, that is a mean of per-record values. A `Statistic` is refused.
        expected : sequence of float or None, optional
            One expected score for each model, in the metric's units; see `score`.
        keys : sequence of str, optional
            One key for each model; see `score`.
        reserve : float, default 0.2
            Fraction of the error budget, in [0, 0.99], to keep for later queries. Pass 0 if no queries follow. Ignored
            if the batch uses all declared queries.
        report : {"all", "best"}, default "all"
            Return every score, or only the best one, which names its candidate and costs later queries much less.
        n_jobs : int, optional
            Number of folds to fit in parallel. If None, one, unless ``joblib.parallel_config`` sets another number.

        Returns
        -------
        list of Answer
            One answer per model, in the order of ``models``, or with ``report="best"`` the best one alone.

        Raises
        ------
        InputError
            If an argument cannot be used. A failure of one estimator is charged once for the whole list.
        BudgetExhausted
            If fewer queries remain than there are models. No model is fitted then.
        """
        candidates, chosen, share = listed(models, keys), self._checked(metric), checked_reserve(reserve)
        check_word("report", report, ("all", "best"))
        for one in candidates:
            check_estimator(one.model, chosen.response)
        given = [None] * len(candidates) if expected is None else list(expected)
        if len(given) != len(candidates):
            raise InputError("expected", f"{len(given)} values", f"{len(candidates)} values, one for each model")
        known = [
            self._guard.key_of(one.key, one.model, chosen, value) for one, value in zip(candidates, given, strict=True)
        ]
        names = [one.name or f"{class_and_parameters(one.model)}, number {k}" for k, one in enumerate(candidates, 1)]
        first = first_places(known)
        places = sorted(set(first))
        stored = {place: self._guard.stored(known[place], chosen) for place in places if report == "all"}
        found = {place: answer for place, answer in stored.items() if answer is not None}

        def read(model: Any) -> Callable[[Any, Any], NDArray[Any]]:
            return lambda X, y: self._values(model, chosen, X, y, n_jobs)

        asked = [
            (self._query(chosen, given[place], known[place]).about(names[place]), read(candidates[place].model))
            for place in places
            if place not in found
        ]
        if report == "best":
            return [self._guard.best_of(asked, share, chosen)]
        if asked:
            new = [place for place in places if place not in found]
            found |= zip(new, self._guard.all_of(asked, share), strict=True)
        return repeats(found, first, names)

    def _checked(self, metric: str | Metric | Statistic) -> Metric:
        chosen = check_mean(metric, ", or make a guard with a holdout part, Thresholdout")
        self.parameters.check_direction(chosen.name, chosen.greater_is_better)
        return chosen

    def _query(self, metric: Metric, expected: float | None, key: str | None) -> Query:
        """Return the query; its training value is the expected one."""
        lower, upper = metric.bounds
        last = self._guard.last(metric) if expected is None else float(expected)
        baseline = sum(metric.bounds) / 2.0 if last is None else last
        if not lower <= baseline <= upper:
            raise InputError("expected", baseline, f"a number in [{lower:g}, {upper:g}], the range of {metric.name}")
        unit = min(1.0, max(0.0, (baseline - lower) / (upper - lower)))
        return Query(unit, metric.bounds, metric.name, key, Known(vague=last is None))

    def _values(self, estimator: Any, metric: Metric, X: Any, y: Any, n_jobs: int | None) -> NDArray[Any]:
        """Return each record's value under the model that was fitted without its fold."""
        from sklearn.utils.parallel import Parallel, delayed

        folds = progress_bar(self._folds, doing="cross-validating", unit="fits")  # as they are started
        fitted = Parallel(n_jobs=n_jobs)(delayed(fold_predictions)(estimator, metric.response, X, y, f) for f in folds)
        parts = [piece for pieces in fitted for piece in pieces]
        if len({one.output.dtype.kind for one in parts}) > 1:  # concatenation would convert some to the others' type
            raise InputTypeError("estimator", "predictions of several types", "a model with predictions of one type")
        if metric.response == "predict" and parts:
            known = [one.classes for one in parts if one.classes is not None]
            classes = np.unique(np.concatenate(known)) if len(known) == len(parts) else None
            records, output = (np.concatenate([getattr(one, name) for one in parts]) for name in ("records", "output"))
            order = np.argsort(records)
            parts = [FoldPredictions(records[order], output[order], classes)]
        labels, worst = np.asarray(y), metric.bounds[0 if metric.greater_is_better else 1]
        values = np.full(self.n, worst)  # of records without a prediction
        for one in parts:
            if len(one.records):
                found = metric.values(labels[one.records], one.output, one.classes)
                values[one.records] = checked_values(found, len(one.records), "metric")
        return values

    @property
    def certificate(self) -> Certificate:
        """Guarantee of the next answers, as a `Certificate`. Its `route` is "fold claims" or "ladder"."""
        return self._guard.certificate

    @property
    def parameters(self) -> Parameters:
        """Public parameters of the mechanism. Their class names the mechanism."""
        return self._guard.parameters

    @property
    def status(self) -> GuardStatus:
        """Use of the guard so far, as a `GuardStatus`; reading it costs nothing.

        It has the number of queries (`asked`), the answers and the error budget that are left, and the information that
        was released.
        """
        return self._guard.status

    @property
    def releases(self) -> Releases:
        """Other private releases about the records, as `Releases`. Record each one before any of its output is seen.

        A release is paid from the error budget, also after answers and also with a delta, and makes later intervals
        wider. Its computation must be decided before the guard is asked again.

        Examples
        --------
        >>> import numpy as np
        >>> from thresholdout.privacy.accounting import GaussianAnswer
        >>> guard = KFoldGuard((np.arange(2000.0)[:, None], np.arange(2000) % 2), cv=2, queries=10)
        >>> guard.releases.record(GaussianAnswer(1000.0)).route, round(guard.status.information_released, 2)
        ('fold claims', 0.2)
        """
        return self._guard.releases

    @property
    def history(self) -> pd.DataFrame:
        """Data frame of all queries and answers so far, one row each. Nothing in it is secret.

        Its columns are those of `Thresholdout.history`; ``train`` is the expected value.
        """
        return self._guard.history

    @property
    def answers(self) -> list[Answer]:
        """List of all answers so far, in the order of their queries."""
        return self._guard.answers()

    def _answered(self, key: str) -> bool:
        return self._guard._answered(key)

    def _origin(self, hashes: NDArray[np.uint64], records: NDArray[np.uint64] | None = None) -> Origin:
        """Return the origin of records, from the hashes of `thresholdout.guard.holdout.content_hashes`."""
        return self._guard._origin(hashes, records)

    @property
    def folds(self) -> pd.DataFrame:
        """Data frame with one row per fold.

        Its columns are the numbers of ``records`` and ``groups`` in the fold, the number of ``train`` records of its
        complement, and ``inflation``, the factor by which dependence inside the fold increases the variance of a mean.
        """
        import pandas as pd

        squares = self.dependence.squares()
        rows = [
            (len(fold.test), len(np.unique(fold.groups)), len(fold.train), square / len(fold.test))
            for fold, square in zip(self._folds, squares[self._home()], strict=True)
        ]
        columns = ["records", "groups", "train", "inflation"]
        return pd.DataFrame(rows, columns=columns, index=pd.RangeIndex(len(rows), name="fold"))

    def _home(self) -> NDArray[np.int64]:
        """Return the number that the model gives to each fold."""
        return self.dependence.folds[[fold.test[0] for fold in self._folds]]

    def __repr__(self) -> str:
        return f"<KFoldGuard: {self.dependence.describe()}; {self.status.line('records')}>"

    def _repr_html_(self) -> str:
        from thresholdout.report.html import guard_html

        return guard_html(self._guard.report(), "KFoldGuard")


class _RemoteKFoldGuard(
    Proxy,
    of=KFoldGuard,
    serves=(
        "__repr__ _answered _origin _repr_html_ answers certificate dependence folds history n parameters "
        "releases.preview releases.record releases.recorded score score_all status"
    ),
):
    """Proxy of a `KFoldGuard` in another process, which fits the models."""

    @property
    def releases(self) -> RemoteReleases:
        """The releases of the guard."""
        return RemoteReleases(self._reference)


def _checked(records: object) -> tuple[Any, Any, Any]:
    """Return features, labels and groups of records in memory."""
    expected = "a tuple (X, y) or (X, y, groups) in memory"
    pieces = records if isinstance(records, tuple) else (records,)
    if any(is_lazy(piece) for piece in pieces):
        advice = "A lazy frame needs Thresholdout((frame, label), train=...)."
        raise InputTypeError("records", "a lazy frame", expected, advice)
    if len(pieces) not in (2, 3):
        seen = f"a tuple of {len(pieces)}" if isinstance(records, tuple) else f"a {type(records).__name__}"
        raise InputTypeError("records", seen, expected)
    return pieces[0], pieces[1], pieces[2] if len(pieces) == 3 else None
