"""A search whose choice is made by a guard."""

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


Method = TypeVar("Method", bound=Callable[..., Any])


def _delegated(name: str) -> Callable[[Method], Method]:
    """Return a decorator for a method that exists when the searched estimator has it."""

    def check(self: GuardedSearchCV) -> bool:
        getattr(getattr(self, "best_estimator_", self.search.estimator), name)
        return True

    return cast(Callable[[Method], Method], available_if(check))


class GuardedSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Search by cross-validation, then choose by a guard.

    The search runs as it is, on training records only. Its candidates are fitted to all of these, and then the guard is
    asked for them in this process: as one list, in one transaction, which is answered as a whole or not at all. None of
    the queries pays for what the others tell, so their intervals are as narrow as those of a list that was written
    down before; and nothing is charged if a fit fails. The cross-validated score is the training value of the query,
    or the score on the guard's development part where it has one.
    Answers and charges do not depend on ``n_jobs``, nor on the order in which workers finish.

    A guard that answers one query after another (another mechanism) is asked so, in the order of their cross-validated
    rank; and one with a ``budget=``, of which claims that are confirmed spend nothing. A `KFoldGuard` is asked in the
    order of the grid.

    Parameters
    ----------
    search : GridSearchCV, RandomizedSearchCV, HalvingGridSearchCV, ...
        A search with ``estimator``, which leaves ``cv_results_``; it is cloned. With ``cv=None`` its folds are of whole
        groups where these are declared, and of later records where an order is, as in `Thresholdout.score`. The rounds
        of a halving search are decided by cross-validated scores, so all of it is fixed before the guard is asked:
        about the candidates of the last round, as one list. (Earlier rounds are fits to fewer records, which nobody is
        going to use.)
    guard : Thresholdout or KFoldGuard, optional
        A `Thresholdout` has the training part beside the holdout, and `fit` gets training records. A `KFoldGuard` gets
        all its records in `fit`; the search's own cross-validation is not run then, because its scores would tell about
        the records, and every candidate of the grid is one query. A ladder is refused: it tells the best score so
        far, and not each candidate's. By default `fit` holds out a part of its records and makes a guard of it; without
        a ledger this is a new guard with new answers each time, so fit once.
    metric : str, Metric or Statistic, optional
        What the guard is asked for. By default what the search scores by, where a guard knows it; losses without a
        bound need one, such as ``thresholdout.scoring.metrics.squared_error(clip=...)``.
    candidates : int, optional
        How many of the best candidates the guard is asked about; all of them by default. A list holds all their fitted
        models until it has been asked.
    report : {"all", "best"}, optional
        What a list tells: every score, or the best one alone; the other candidates then have the guarded score NaN. All
        intervals have the same width either way, but what is asked later pays for what was told: measured for 20
        candidates and 1,000 records, the intervals of a second search on the same guard are 4.3 times as wide as those
        of the first one after "all", and 1.6 times after "best" (1.8 times if all are asked one after another, and 1.7
        times in the first search). So by default it is "best" for a `Thresholdout` that is given, and "all" where `fit`
        makes one, which nobody else asks, for a `KFoldGuard`, or where answers come one after another.
    reserve : float, default=0.2
        Share of the error budget that a list leaves for later queries, see `Thresholdout.score_all`; it costs 2 % of
        width.
    exhausted : {"stop", "nan", "train", "raise"}, default="stop"
        What happens when the guard answers no more. "stop": no further query, one warning, and the best of those
        answered is chosen; the others have the guarded score NaN and the last rank. A list has as many candidates as
        there are queries left.
        "nan": the same, but later candidates are tried, whose answers may be known. "train": their cross-validated
        scores stand in, without certificate (with a `KFoldGuard` there are none: NaN). "raise": `BudgetExhausted`. If
        there is no answer at all, it is raised.
    holdout : float, default=0.25
        Without a guard: share of the records that is held out, of the groups if there are groups. Drawn without looking
        at labels.
    budget : int, optional
        Without a guard: how many answers may contradict cross-validation, asked one after another. Any number by
        default: all candidates are one list.
    confidence : float, default=0.95
        Without a guard: see `Thresholdout`.
    ledger : str, path or Ledger, optional
        Without a guard: see `Thresholdout`. With the same records and ``random_state`` the guard is continued.
    noise : NoiseSource, optional
        Without a guard: see `Thresholdout`. A copy is used in every `fit`.
    random_state : int, RandomState or None
        Without a guard: seed for what is held out.

    Attributes
    ----------
    cv_results_ : dict
        The search's, and for every candidate ``guarded_score`` (greater is better, as in the search: losses are
        negated; NaN where nothing was answered), ``guarded_low`` and ``guarded_high``, the ends of its interval,
        ``guarded_half_width``, ``guarded_source`` ("train", "holdout", "uncertified", or "" when nothing was answered),
        ``rank_guarded``.
    best_index_, best_params_, best_estimator_
        The candidate with the best guarded score, at equal scores the one with the better cross-validated rank.
    best_score_ : float
        Its guarded score.
    best_interval_ : tuple of float
        What that is worth: its interval, in the direction of the score. It holds although the best was chosen.
    best_half_width_ : float
        The larger side of the interval.
    answers_ : list of Answer
        The guard's answers in the order of the queries, in the metric's own units; one, if only the best is told.
    n_queries_ : int
        How many of them were new; repeated ones cost nothing.
    exhausted_ : {"budget", "queries"} or None
        Which limit of the guard was met.
    certificate_ : Certificate
        Of the guard.
    guard_ : Thresholdout or KFoldGuard
        That was asked. A guard that `fit` made is not pickled.
    search_ : estimator
        The fitted search; ``None`` with a `KFoldGuard`.

    Notes
    -----
    *Keys.* The key of a query is a hash of the fitted estimator, the metric and the training value: of what the
    query is a function of, with the code of classes and functions that are not of an installed package. If the same
    candidates are fitted again and come out the same, after a crash for instance, the same ledger gives the same
    answers and charges nothing; a search that is killed has been charged for its whole list, or for nothing. An
    estimator that comes out differently (without a fixed seed), or whose content can't be hashed, is a new query.
    With a `KFoldGuard` the key is a hash of the estimator's parameters and the metric, since nothing computed from the
    records may show: the answer is then about the models that were fitted the first time, and the best estimator, which
    is fitted to all records, must not be asked for its score on them.

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
        """Search, ask the guard, and keep the best candidate.

        Parameters
        ----------
        X, y : array-like
            Training records and labels; all records when there is no guard, and with a `KFoldGuard`.
        groups : array-like of shape (n,), optional
            Group of each record, for the search's splitter. Without a guard whole groups are held out, and only groups
            are taken for independent.
        **fit_params
            For the search's ``fit``; what has one entry per record is split like the records.

        Returns
        -------
        GuardedSearchCV
            This object.

        Raises
        ------
        InputError
            When an argument cannot be used, or some record is no training record of the guard.
        BudgetExhausted
            By the policy "raise", or when there is no answer at all.
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
            fit_candidate(self.search.estimator, settings[0], X, y, routed)  # shows its own error, if that is why
            raise InputError("search", "no candidate with a finite cross-validated score", "at least one")
        guard = cast(Thresholdout, self.guard) if part is None else part.guard(self, len(order))
        values = scoring.training_values(search.cv_results_)
        own = guard.development is None  # else scores on the open records take the place of cross-validated ones
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
        """Ask about every candidate of the grid; the records themselves are looked at by the guard only."""
        if self.candidates is not None:
            raise InputError("candidates", self.candidates, "None: nothing ranks the candidates before the guard does")
        if fit_params or groups is not None:
            given = ", ".join([*fit_params, *(["groups"] if groups is not None else [])])
            raise InputError("fit_params", given, "none with a KFoldGuard; groups are given to the guard")
        if origin(guard, X, y) != "holdout":
            raise InputError("X", "other records than the guard's", "exactly the records of the KFoldGuard")
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
        """Fit the candidates to all records, some at a time and in order."""
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
        """Ask the queries in their order, keep the best model, and follow the policy at exhaustion."""
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
        """Set what is left of the attributes."""
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
        """Return how many queries `fit` asks at most, without fitting anything.

        Parameters
        ----------
        X, y : array-like, optional
            Not needed.

        Raises
        ------
        InputError
            When the search does not tell how many candidates it has; ``candidates=`` bounds it then.

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
            raise InputError("search", seen, "candidates= beside it, which bounds the number of queries")
        return min(bounds)

    @_delegated("predict")
    def predict(self, X: Any) -> Any:
        """Return the best estimator's predictions."""
        return self._best().predict(X)

    @_delegated("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Return the best estimator's probabilities."""
        return self._best().predict_proba(X)

    @_delegated("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:
        """Return the best estimator's log probabilities."""
        return self._best().predict_log_proba(X)

    @_delegated("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Return the best estimator's decision function."""
        return self._best().decision_function(X)

    @_delegated("transform")
    def transform(self, X: Any) -> Any:
        """Return what the best estimator makes of X."""
        return self._best().transform(X)

    @_delegated("inverse_transform")
    def inverse_transform(self, X: Any) -> Any:
        """Return what the best estimator makes X of."""
        return self._best().inverse_transform(X)

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Return the best estimator's score on records that nobody has asked about, by the search's own scoring."""
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
        """Number of features of the best estimator."""
        features: int = self._fitted_attribute("n_features_in_")
        return features

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features, if they had any."""
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
        """Return everything but a guard that `fit` made: its state stays in this process, or in its ledger."""
        state: dict[str, Any] = dict(super().__getstate__())
        if self.guard is None:
            state.pop("guard_", None)
        return state

    def get_metadata_routing(self) -> Any:
        """Return what is passed on: everything that the search's ``fit`` asks for."""
        from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

        router = MetadataRouter(owner=type(self).__name__)
        return router.add(search=self.search, method_mapping=MethodMapping().add(caller="fit", callee="fit"))


def _checked_labels(search: Any, y: Any) -> Any:
    """Return labels with one entry per record, of a type that a guard compares."""
    from sklearn.base import is_classifier
    from sklearn.utils.multiclass import type_of_target
    from sklearn.utils.validation import column_or_1d

    if y is None:
        raise InputError("y", None, "labels: GuardedSearchCV requires y to be passed, but the target y is None")
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
    """Return ranks from 1, the largest score first; those without a score come last."""
    from scipy.stats import rankdata

    filled = np.where(np.isnan(scores), -np.inf, scores)
    return np.asarray(rankdata(-filled, method="min"), dtype=np.int32)
