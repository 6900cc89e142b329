"""A search whose final choice a guard makes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if

from graphs.progress_bar import progress_bar
from thresholdout.errors import BudgetExhausted, InputError, InputTypeError
from thresholdout.guard.asking import checked_reserve
from thresholdout.guard.content_keys import content_key
from thresholdout.guard.exhaustion import Exhausted, check_exhausted, warn_exhausted, without_answer
from thresholdout.guard.guard import Thresholdout
from thresholdout.guard.holdout import origin
from thresholdout.guard.kfold import KFoldGuard
from thresholdout.guard.likely_mistakes import checked_call
from thresholdout.guard.train_split import check_training
from thresholdout.model_selection.held_out import HeldOut
from thresholdout.model_selection.listed_queries import (
    Candidate,
    Found,
    Reported,
    ask_together,
    candidate,
    candidate_name,
    checked_report,
    takes_lists,
)
from thresholdout.model_selection.refits import (
    estimator_parameters,
    fit_candidate,
    wants_groups,
    with_parameters,
)
from thresholdout.model_selection.search_candidates import check_search, listed_candidates, most_candidates, ranked
from thresholdout.model_selection.search_folds import declared_folds
from thresholdout.model_selection.training_value import Scoring
from thresholdout.scoring.statistics import Statistic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.guard.answer import Answer
    from thresholdout.guard.training_values import Splits
    from thresholdout.ledger import Ledger
    from thresholdout.noise.sources import NoiseSource
    from thresholdout.scoring.metrics import Metric

__all__ = ["GuardedSearchCV"]

_SCORING = "The search has the scoring of cross-validation; metric= is that of the guard's answers."

Method = TypeVar("Method", bound=Callable[..., Any])


def _delegated(name: str) -> Callable[[Method], Method]:
    """Return a decorator for a method that exists if the searched estimator has it."""

    def check(self: GuardedSearchCV) -> bool:
        getattr(getattr(self, "best_estimator_", self.search.estimator), name)
        return True

    return cast(Callable[[Method], Method], available_if(check))


class GuardedSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Search hyperparameters by cross-validation, then choose the best candidate by its score on a guarded holdout.

    It is an estimator, like `sklearn.model_selection.GridSearchCV`. A guard (`Thresholdout` or `KFoldGuard`) answers
    queries about a holdout and tracks an error budget, so the interval of the chosen candidate is valid although the
    candidate was chosen for its score. The search of scikit-learn runs unchanged on the training records. All
    candidates are then fitted to these records, and the guard is asked for their scores as one list: either all queries
    are charged or none, and none if a fit fails. The intervals are as narrow as for a list that was fixed in advance,
    and narrower than those of a search with `Thresholdout.scorer`. Answers and charges do not depend on ``n_jobs``.

    Some guards answer one query after another instead, in the order of the cross-validated rank: those with another
    mechanism than claims, those with ``epsilon=``, and with ``report="all"`` those that limit the answers from the
    holdout. Under such a limit, queries that the holdout confirms spend nothing.

    Parameters
    ----------
    search : GridSearchCV, RandomizedSearchCV, HalvingGridSearchCV, ...
        Search of scikit-learn, or a compatible one with an ``estimator`` and ``cv_results_``. It is cloned. With
        ``cv=None`` the folds keep declared groups together and respect a declared order. Of a halving search, the
        candidates of the last round are queried.
    guard : Thresholdout or KFoldGuard, optional
        With a `Thresholdout`, `fit` takes training records of the guard. With a `KFoldGuard`, `fit` takes all records
        of the guard, every candidate of the grid is one query in the order of the grid, and the search's own
        cross-validation does not run because its scores would reveal the records. A guard that reports only the best
        score so far (a ladder) is refused. If None, `fit` holds out a part of its records and makes a guard of it.
        Without a ledger each such `fit` has new answers, so fit once.
    metric : str, Metric or Statistic, optional
        Metric of the guard's answers. If None, the scoring of the search, if guards support it. An unbounded loss has
        to be clipped, as by ``thresholdout.scoring.metrics.squared_error(clip=...)``.
    candidates : int, optional
        Number of candidates to query, the best ones by cross-validation. If None, all. The fitted models are kept in
        memory until their list is answered.
    report : {"all", "best"}, optional
        "all" reports the guarded score of every candidate. "best" reports that of the best candidate alone, and the
        others have NaN. The intervals of this search have the same width either way, but later queries pay for the
        information released. Measured for 20 candidates and 1,000 records, the intervals of a second search on the same
        guard are 4.3 times as wide as the first's after "all" and 1.6 times after "best". If None, "best" for a given
        `Thresholdout` without a limit of answers, and "all" otherwise.
    reserve : float, default 0.2
        Fraction of the error budget, in [0, 0.99], to keep for later queries. Pass 0 if no queries follow. The default
        widens the intervals by 2 %.
    exhausted : {"stop", "nan", "train", "raise"}, default "stop"
        Policy when the guard is exhausted (its error budget, answers or queries). If no candidate gets a guarded score,
        `BudgetExhausted` is raised under every policy.

        - "stop": make no further query, warn once, and choose among the answered candidates. The others have the
          guarded score NaN and the last rank. A list is cut to the queries that remain.
        - "nan": like "stop", but later candidates are tried too, since their answers may be known.
        - "train": cross-validated scores replace missing answers, without a certificate (NaN with a `KFoldGuard`).
        - "raise": raise `BudgetExhausted`.
    holdout : float, default 0.25
        Share of the records, or of the groups, that is held out if `guard` is None. It is drawn without regard to
        labels.
    budget : int, optional
        If `guard` is None: number of answers that may contradict cross-validation. If None, unlimited.
    confidence : float, default 0.95
        If `guard` is None: probability with which all intervals of the new guard hold at once, in (0, 1).
    ledger : str, path or Ledger, optional
        If `guard` is None: file or database of the new guard. The same records and `random_state` continue its guard.
    noise : NoiseSource, optional
        If `guard` is None: source of the guard's randomness. Every `fit` uses a copy.
    random_state : int, RandomState or None
        If `guard` is None: seed of the draw of the held-out part.

    Attributes
    ----------
    cv_results_ : dict
        Results of the search, with these columns for every candidate: ``guarded_score`` (greater is better, so losses
        are negated; NaN without an answer), ``guarded_low`` and ``guarded_high`` (ends of its interval),
        ``guarded_half_width``, ``guarded_source`` ("train", "holdout", "uncertified", or "" without an answer) and
        ``rank_guarded``.
    best_index_, best_params_, best_estimator_
        Position, parameters and fitted model of the candidate with the best guarded score. Of equal scores, the better
        cross-validated rank is chosen.
    best_score_ : float
        Guarded score of the best candidate.
    best_interval_ : tuple of float
        Interval of the best score, negated with it for a loss.
    best_half_width_ : float
        Largest distance between the best score and an end of its interval.
    answers_ : list of Answer
        Answers in the order of the queries, in the metric's own units. With ``report="best"`` it has one answer.
    n_queries_ : int
        Number of new queries. Repeated queries are free.
    exhausted_ : {"budget", "queries"} or None
        Limit of the guard that was reached, or None.
    certificate_ : Certificate
        Certificate of the guard.
    guard_ : Thresholdout or KFoldGuard
        Guard that answered. A guard that `fit` made is not pickled.
    search_ : estimator
        Fitted search. None with a `KFoldGuard`.

    Notes
    -----
    *Repeated searches.* The key of a query is a hash of the fitted estimator, the metric and the training value, with
    the code of classes and functions outside installed packages. If a search is repeated after a crash with equal
    results, the same ledger returns the same answers free of charge. An estimator with another result (without a fixed
    seed), or whose content cannot be hashed, is a new query. With a `KFoldGuard` the key is a hash of the estimator's
    parameters and the metric, and the answer is about the models that were fitted first. Do not score the best
    estimator on the records of a `KFoldGuard`: it is fitted to all of them.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from thresholdout import Thresholdout
    >>> X, y = load_digits(return_X_y=True)
    >>> guard = Thresholdout((X[900:], y[900:]), train=(X[:900], y[:900]))
    >>> search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [2, 4, 8]}, cv=3)
    >>> guarded = GuardedSearchCV(search, guard, report="all").fit(X[:900], y[:900])
    >>> guarded.best_params_, guarded.n_queries_, guarded.exhausted_
    ({'max_depth': 8}, 3, None)
    >>> guarded.best_interval_[0] <= guarded.best_score_ <= guarded.best_interval_[1]
    True
    >>> [answer.candidate for answer in guarded.answers_], max(answer.half_width for answer in guarded.answers_) < 0.05
    (["2 {'max_depth': 8}", "1 {'max_depth': 4}", "0 {'max_depth': 2}"], True)
    """

    _required_parameters = ("search",)
    answers_: list[Answer]
    best_estimator_: Any
    best_index_: int
    exhausted_: str | None

    @checked_call("GuardedSearchCV(search, guard)", scoring=_SCORING)
    def __init__(
        self,
        search: Any,
        guard: Thresholdout | KFoldGuard | None = None,
        *,
        metric: str | Metric | Statistic | None = None,
        candidates: int | None = None,
        report: Reported | None = None,
        reserve: float = 0.2,
        exhausted: Exhausted = "stop",
        holdout: float = 0.25,
        budget: int | None = None,
        confidence: float = 0.95,
        ledger: str | Path | Ledger | None = None,
        noise: NoiseSource | None = None,
        random_state: Any = None,
    ) -> None:
        self.search = search
        self.guard = guard
        self.metric = metric
        self.candidates = candidates
        self.report = report
        self.reserve = reserve
        self.exhausted = exhausted
        self.holdout = holdout
        self.budget = budget
        self.confidence = confidence
        self.ledger = ledger
        self.noise = noise
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, **fit_params: Any) -> GuardedSearchCV:
        """Run the search, ask the guard for the candidates' scores, and keep the best candidate.

        Parameters
        ----------
        X, y : array-like
            Training records and labels. Without a guard, or with a `KFoldGuard`, all records and labels.
        groups : array-like of shape (n,), optional
            Group of each record, for the search's splitter. Without a guard whole groups are held out, and only the
            groups are assumed to be independent.
        **fit_params
            Arguments of the search's ``fit``. Those with one entry per record are split like the records.

        Returns
        -------
        GuardedSearchCV
            This object.

        Raises
        ------
        InputError
            If an argument cannot be used, or if a record is not a training record of the guard.
        BudgetExhausted
            If the guard is exhausted and ``exhausted="raise"``, or if no candidate gets a guarded score.
        """
        check_search(self.search, self.candidates)
        policy, scoring = check_exhausted(self.exhausted), Scoring(self.search, self.metric)
        y = _checked_labels(self.search, y)
        if isinstance(self.guard, Thresholdout | KFoldGuard):
            self.guard.parameters.check_tells_each()
        report = checked_report(self.report, self.guard)
        checked_reserve(self.reserve)
        if isinstance(self.guard, KFoldGuard):
            return self._fit_folds(self.guard, X, y, groups, fit_params, scoring, policy, report)
        part = HeldOut(self, X, y, groups, fit_params) if self.guard is None else None
        if part is not None:
            X, y, groups, fit_params = part.train
        elif not isinstance(self.guard, Thresholdout):
            raise InputTypeError("guard", f"a {type(self.guard).__name__}", "a Thresholdout, a KFoldGuard, or None")
        else:
            check_training(self.guard, X, y, self.guard.split().n)
        if groups is not None and wants_groups(self.search):
            fit_params = {**fit_params, "groups": groups}
        folds = declared_folds(self.search, None if part is not None else cast(Thresholdout, self.guard), X, y, groups)
        search = self.search_ = self._searched(X, y, fit_params, scoring, folds)
        settings, routed = search.cv_results_["params"], estimator_parameters(search, fit_params)
        order = ranked(search.cv_results_, scoring, self.candidates)
        if not order.size:
            fit_candidate(self.search.estimator, settings[0], X, y, routed)  # a failing fit raises its own error
            seen = "one without any"
            raise InputError("search", seen, "a search that gives some candidate a finite cross-validated score")
        guard = cast(Thresholdout, self.guard) if part is None else part.guard(self, len(order))
        values = scoring.training_values(search.cv_results_)
        own = guard.development is None  # otherwise scores on the development part replace cross-validated ones
        models = self._fitted([settings[index] for index in order], X, y, routed)
        found: Found | None = None
        if takes_lists(guard):
            asked = [
                candidate(model, index, settings[index], float(values[index]) if own else None, scoring.metric)
                for index, model in zip(order.tolist(), models, strict=True)
            ]
            models = iter([one.model for one in asked])
            found = ask_together(guard, asked, scoring.metric, report, self.reserve, policy)

        def ask(position: int, model: Any) -> Answer | None:
            if found is not None:
                return found.answer(position)
            value = float(values[order[position]]) if own else None
            key = content_key(model, scoring.metric, value)
            return guard.score(model, scoring.metric, train_values=value, key=key)

        self._ask_all(guard, order, models, ask, values, scoring, policy)
        if part is not None:
            part.warn_of_nothing(self.answers_)
        self._finish(guard, dict(search.cv_results_), scoring)
        return self

    def _searched(self, X: Any, y: Any, fit_params: Mapping[str, Any], scoring: Scoring, folds: Splits | None) -> Any:
        """Return the search after its own cross-validation, without a refit."""
        search = clone(self.search)
        if folds is not None:
            search.set_params(cv=folds)
        if "refit" in search.get_params(deep=False):
            search.set_params(refit=False)
        if not scoring.direct:
            search.set_params(scoring=scoring.scorer(search))
        return search.fit(X, y, **fit_params)

    def _fit_folds(
        self,
        guard: KFoldGuard,
        X: Any,
        y: Any,
        groups: Any,
        fit_params: Mapping[str, Any],
        scoring: Scoring,
        policy: Exhausted,
        report: Reported,
    ) -> GuardedSearchCV:
        """Query every candidate of the grid; only the guard uses the records themselves."""
        if self.candidates is not None:
            advice = "Nothing ranks the candidates before the guard."
            raise InputError("candidates", self.candidates, "None with a KFoldGuard", advice)
        if fit_params or groups is not None:
            given = ", ".join([*fit_params, *(["groups"] if groups is not None else [])])
            raise InputError("fit_params", given, "left out with a KFoldGuard", "Declare groups to the guard.")
        if origin(guard, X, y) != "holdout":
            raise InputError("X", "other records than the guard's", "all records of the KFoldGuard, and no others")
        settings = listed_candidates(self.search)
        models = [with_parameters(self.search.estimator, one) for one in settings]
        n_jobs = getattr(self.search, "n_jobs", None)
        self.search_ = None
        keys = [content_key(model, scoring.metric, "folds") for model in models]
        asked = [
            Candidate(model, candidate_name(index, one), None, key)
            for index, (model, one, key) in enumerate(zip(models, settings, keys, strict=True))
        ]
        found = ask_together(guard, asked, scoring.metric, report, self.reserve, policy, n_jobs)

        def ask(position: int, model: Any) -> Answer | None:
            if found is not None:
                return found.answer(position)
            return guard.score(model, scoring.metric, key=keys[position], n_jobs=n_jobs)

        missing = np.full(len(settings), np.nan)
        order = np.arange(len(settings))
        self._ask_all(guard, order, iter(models), ask, missing, scoring, policy)
        self.best_estimator_ = clone(self.best_estimator_).fit(X, y)
        self._finish(guard, {"params": settings}, scoring)
        return self

    def _fitted(
        self, settings: Sequence[Mapping[str, Any]], X: Any, y: Any, routed: Mapping[str, Any]
    ) -> Iterator[Any]:
        """Fit the candidates to all records, several at a time and in order."""
        from joblib import effective_n_jobs
        from sklearn.utils.parallel import Parallel, delayed

        n_jobs = getattr(self.search, "n_jobs", None)
        size = 4 * int(effective_n_jobs(n_jobs))
        with progress_bar(doing="fitting candidates", unit="fits", total=len(settings)) as bar:
            for start in range(0, len(settings), size):
                some = settings[start : start + size]
                for fitted in Parallel(n_jobs=n_jobs)(
                    delayed(fit_candidate)(self.search.estimator, one, X, y, routed) for one in some
                ):
                    bar.update()
                    yield fitted

    def _ask_all(
        self,
        guard: Thresholdout | KFoldGuard,
        order: NDArray[np.intp],
        models: Iterator[Any],
        ask: Callable[[int, Any], Answer | None],
        values: NDArray[np.float64],
        scoring: Scoring,
        policy: Exhausted,
    ) -> None:
        """Make the queries in their order, keep the best model, and follow the policy at exhaustion."""
        size = len(values)
        scores, widths, sources = np.full(size, np.nan), np.full(size, np.nan), np.full(size, "", dtype=object)
        lows, highs = np.full(size, np.nan), np.full(size, np.nan)
        self.answers_, self.exhausted_ = [], None
        best, refusal = -np.inf, None
        for position, model in enumerate(models):
            index = int(order[position])
            try:
                answer = ask(position, model)
            except BudgetExhausted as error:
                if policy == "raise":
                    raise
                refusal = error
                if policy == "stop":
                    break
                if policy == "train" and np.isfinite(values[index]):
                    scores[index], widths[index] = scoring.sign * values[index], np.inf
                    lows[index], highs[index] = -np.inf, np.inf
                    sources[index] = "uncertified"
            else:
                if answer is None:
                    continue
                self.answers_.append(answer)
                scores[index], widths[index] = scoring.sign * answer.value, answer.half_width
                lows[index], highs[index] = sorted(scoring.sign * end for end in answer.interval)
                sources[index] = answer.source
            if scores[index] > best:
                best, self.best_index_, self.best_estimator_ = scores[index], index, model
        if refusal is not None:
            if not np.isfinite(best):
                raise without_answer(refusal)
            warn_exhausted(refusal, policy, len(self.answers_), stacklevel=3)
            self.exhausted_ = refusal.what
        self._columns = {
            "guarded_score": scores,
            "guarded_low": lows,
            "guarded_high": highs,
            "guarded_half_width": widths,
            "guarded_source": sources,
            "rank_guarded": _ranks(scores),
        }
        self.guard_ = guard

    def _finish(self, guard: Thresholdout | KFoldGuard, results: dict[str, Any], scoring: Scoring) -> None:
        """Set the remaining attributes."""
        self.cv_results_ = {**results, **self._columns}
        del self._columns
        self.best_params_ = results["params"][self.best_index_]
        self.best_score_ = float(self.cv_results_["guarded_score"][self.best_index_])
        low, high = (float(self.cv_results_[f"guarded_{end}"][self.best_index_]) for end in ("low", "high"))
        self.best_interval_ = low, high
        self.best_half_width_ = float(self.cv_results_["guarded_half_width"][self.best_index_])
        self.n_queries_ = sum(not answer.repeated for answer in self.answers_)
        self.certificate_ = guard.certificate
        self._scoring_name = scoring.name

    def count_queries(self, X: Any = None, y: Any = None) -> int:
        """Return the largest number of queries that `fit` can make, without a fit or a query; X and y are ignored.

        Raises
        ------
        InputError
            If the number of candidates depends on the records and ``candidates=`` does not bound it.

        Examples
        --------
        >>> from sklearn.linear_model import Ridge
        >>> from sklearn.model_selection import GridSearchCV
        >>> GuardedSearchCV(GridSearchCV(Ridge(), {"alpha": [0.1, 1, 10]}), candidates=2).count_queries()
        2
        """
        check_search(self.search, self.candidates)
        most = most_candidates(self.search)
        bounds = [bound for bound in (most, self.candidates) if bound is not None]
        if not bounds:
            seen = f"{type(self.search).__name__}, whose number of candidates depends on the records"
            advice = "Pass candidates=, which bounds the number of queries."
            raise InputError("search", seen, "one with a known number of candidates", advice)
        return min(bounds)

    @_delegated("predict")
    def predict(self, X: Any) -> Any:
        """Predict the labels or values of X with the best estimator."""
        return self._best().predict(X)

    @_delegated("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Predict the class probabilities of X with the best estimator."""
        return self._best().predict_proba(X)

    @_delegated("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:
        """Predict the logarithms of the class probabilities of X with the best estimator."""
        return self._best().predict_log_proba(X)

    @_delegated("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Return the decision function of the best estimator at X."""
        return self._best().decision_function(X)

    @_delegated("transform")
    def transform(self, X: Any) -> Any:
        """Transform X with the best estimator."""
        return self._best().transform(X)

    @_delegated("inverse_transform")
    def inverse_transform(self, X: Any) -> Any:
        """Transform X back with the best estimator's inverse transformation."""
        return self._best().inverse_transform(X)

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Return the score of the best estimator on fresh records, by the scoring of the search; no query is made."""
        from sklearn.metrics import check_scoring

        scoring, best = self.search.scoring, self._best()
        if isinstance(scoring, Mapping):
            scoring = scoring[self._scoring_name]
        elif isinstance(scoring, (list, tuple, set)):
            scoring = self._scoring_name
        found = check_scoring(best, scoring)(best, X, y, **params)
        return float(found)

    def _best(self) -> Any:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    @property
    def classes_(self) -> NDArray[Any]:
        """Class labels of the best estimator."""
        classes: NDArray[Any] = self._fitted_attribute("classes_")
        return classes

    @property
    def n_features_in_(self) -> int:
        """Number of features that the best estimator was fitted to."""
        features: int = self._fitted_attribute("n_features_in_")
        return features

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features that the best estimator was fitted to, if the features had names."""
        names: NDArray[Any] = self._fitted_attribute("feature_names_in_")
        return names

    def _fitted_attribute(self, name: str) -> Any:
        if "best_estimator_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no {name!r} before fit")
        return getattr(self.best_estimator_, name)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags, inner = super().__sklearn_tags__(), get_tags(self.search)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = copy.deepcopy((inner.classifier_tags, inner.regressor_tags))
        tags.input_tags.pairwise, tags.input_tags.sparse = inner.input_tags.pairwise, inner.input_tags.sparse
        tags.input_tags.allow_nan = get_tags(self.search.estimator).input_tags.allow_nan
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        tags.target_tags.required = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes but a guard that `fit` made: its state stays in this process, or in its ledger."""
        state: dict[str, Any] = dict(super().__getstate__())
        if self.guard is None:
            state.pop("guard_", None)
        return state

    def get_metadata_routing(self) -> Any:
        """Return the metadata routing of `fit`, which passes metadata to the search's ``fit``."""
        from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

        router = MetadataRouter(owner=type(self).__name__)
        return router.add(search=self.search, method_mapping=MethodMapping().add(caller="fit", callee="fit"))


def _checked_labels(search: Any, y: Any) -> Any:
    """Return labels with one entry per record, of a type that a guard compares."""
    from sklearn.base import is_classifier
    from sklearn.utils.multiclass import type_of_target
    from sklearn.utils.validation import column_or_1d

    if y is None:
        # scikit-learn's checks of estimators look for this sentence
        advice = "GuardedSearchCV requires y to be passed, but the target y is None."
        raise InputError("y", None, "an array of labels", advice)
    array = np.asarray(y)
    if array.ndim == 2:
        array = y = column_or_1d(y, warn=True)
    if array.dtype == object:
        if is_classifier(search):
            type_of_target(array, input_name="y", raise_unknown=True)
        else:
            y = array.astype(np.float64)
    return y


def _ranks(scores: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return ranks from 1, the largest score first; candidates without a score come last."""
    from scipy.stats import rankdata

    filled = np.where(np.isnan(scores), -np.inf, scores)
    return np.asarray(rankdata(-filled, method="min"), dtype=np.int32)
