"""The guard of a holdout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from thresholdout.certificates import Certificate
from thresholdout.certificates.prior_queries import PriorQueries, check_prior_queries
from thresholdout.certificates.problem import declared_confidence
from thresholdout.data.arguments import check_count
from thresholdout.data.identity import Part
from thresholdout.data.record_structure import TimeOrder
from thresholdout.data.values import check_bounds
from thresholdout.errors import InputError
from thresholdout.guard.answer import Answer
from thresholdout.guard.asking import ask_all, compare, compare_all, score, score_all
from thresholdout.guard.column_queries import ColumnQueries
from thresholdout.guard.comparison import About, Comparison
from thresholdout.guard.development import declared_share, development_score, open_records
from thresholdout.guard.gates import Certify, Gate
from thresholdout.guard.given_features import check_sampling
from thresholdout.guard.holdout import Origin, Records
from thresholdout.guard.lazy_records import LazyRecords, declared_parts
from thresholdout.guard.likely_mistakes import data_in_pairs
from thresholdout.guard.model_queries import ModelQueries
from thresholdout.guard.query_engine import QueryEngine
from thresholdout.guard.registration import check_dependence, noise_of, opened
from thresholdout.guard.releases import Releases
from thresholdout.guard.scorer import GuardScorer
from thresholdout.guard.sharing.shared_objects import shared
from thresholdout.guard.status import GuardStatus, status_of
from thresholdout.guard.train_split import TrainSplit
from thresholdout.guard.training_values import TrainingFolds
from thresholdout.ledger import Ledger
from thresholdout.ledger.entry import ContentKey
from thresholdout.mechanisms.kind import Parameters
from thresholdout.noise.sources import NoiseSource
from thresholdout.planning.declaration import Declaration, MechanismChoice, Sampling
from thresholdout.planning.declared_parameters import check_choice, check_final
from thresholdout.scoring.metrics import Metric
from thresholdout.scoring.statistics import Statistic, get_score

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from thresholdout.guard.exhaustion import Exhausted
    from thresholdout.guard.training_values import Trained
    from thresholdout.report import GuardReport

__all__ = ["Thresholdout"]


@shared
class Thresholdout:
    """Guard a holdout so that it can answer many adaptive queries with guaranteed intervals.

    Use it in place of a plain test set when models are chosen by repeated scores on the same records. A query is a mean
    over records: the accuracy of a model, a loss, the frequency of a pattern. If the holdout agrees with the training
    value, the guard returns that value at almost no cost. If it does not, the guard retries with a wider interval and
    spends part of the error budget that all answers share. With probability ``confidence`` the ``interval`` of every
    answer contains its estimand, for all queries at once and however each query was chosen.

    Parameters
    ----------
    holdout : tuple (X, y) or (X, y, groups), array, data frame or lazy frame
        The records to protect, one row per record. Records of one group, such as a patient, may depend on each other in
        any way. Without labels, pass ``(X, None, groups)``. A lazy frame (Polars, DuckDB, Dask, Spark) is passed alone
        or as ``(frame, "label")``. Its queries are narwhals expressions or column names, and its engine evaluates them.
    train : same form as holdout, optional
        Training part, for `score` and functions as queries. It must share no record or group with the holdout.
    development : tuple (X, y) or float, optional
        Records that are not guarded, whose free and exact scores (`development_score`) replace cross-validation. A
        number splits off that share of the holdout, in whole groups and alike in every ledger. Shuffle sorted records
        once before; a second split (another share, seed or order) voids the guarantee.
    groups : str or list of str, optional
        Name of the column or index level, in both parts, with the group of each record. A column stays a feature, so
        keep identifiers in the index (``X.set_index("patient")``). ``["user", "item"]`` declares `graphs.Crossed`
        groups.
    dependence : graphs.DependenceModel or TimeOrder, optional
        How the holdout's records depend on each other; the certificate holds under this model. By default records, or
        groups, are independent. ``TimeOrder("day", window=7)`` is for records in time order. A `graphs.DependencyGraph`
        is matched by name: its nodes are the index of the holdout (0, 1, 2, ... for arrays), and that of the training
        part if its records have neighbours in the holdout.
    sampling : {"independent", "iid", "fixed_features"}, default "independent"
        "independent" assumes no more than ``dependence``. "iid" declares that all records (or groups, of one size) have
        the same distribution, and that every query is the same function of each record, whatever its position or
        identifier. "fixed_features" declares that the holdout's features are public: estimands are expectations given
        these, and comparisons use only records on which models disagree. It needs pairs (X, y) of independent records
        or groups, and metrics that are means.
    confidence : float, default 0.95
        Probability with which all intervals hold at once, in (0, 1).
    queries : int, optional
        Maximum number of queries. If None, there is no limit. A declared limit makes intervals slightly narrower.
    final_check : bool, default False
        If True, reserve most of the error budget for a last query, `final_check`. Other intervals are 9 to 29 % wider.
    mechanism : str, Claims, SparseVector or parameters of a plan, default "claims"
        How queries are answered. "claims" is the procedure described above; `Claims` sets its parameters. "leaderboard"
        is for many clients whose training values are guesses. "ladder" releases only the best score so far.
        "algorithm-1" adds noise calibrated to an ``epsilon``, see `SparseVector.for_budget`.
    epsilon : float, optional
        Bound in nats on the (Bayesian) privacy loss of all answers together, with "algorithm-1" only.
    prior_queries : int or PriorQueries, default 0
        Number of scores of this holdout that were seen before, each a share of the records or rounded to at most four
        decimals. ``PriorQueries(10, values=301)`` states how many values each could have had.
    ledger : str, path or Ledger, optional
        Store of the guard's state and history: a SQLite file to create or continue. If None, it is in memory.
    random_state : int, optional
        Seed of the noise, for simulations only. If None, noise is exact, with entropy of the operating system.
    allow_duplicates : bool, default False
        If True, accept equal rows in both parts, where they are different records (few distinct values, for example).

    Raises
    ------
    InputError, OverlapError, LedgerMismatch, PlanError
        If an argument cannot be used (nothing is written then); if parts share records or groups; if the ledger has
        other data or another declaration; if no parameters serve the declared use.

    Warns
    -----
    WideAnswersWarning, LikelyMistakeWarning, MechanismWarning
        If answers will be wide; if the data suggest a mistake; if Algorithm 1 answers because of the dependence.

    Notes
    -----
    The guard protects against adaptivity, not against code that reads the holdout (``thresholdout/PROOFS.md``). Its
    attributes `n` and `dependence` are the number of guarded records and their model.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.random.default_rng(0).normal(size=(20_000, 3)), np.arange(20_000) % 2
    >>> guard = Thresholdout((X[:10_000], y[:10_000]), train=(X[10_000:], y[10_000:]))
    >>> answer = guard.ask(lambda X, y: (X[:, 0] > 0) == y)
    >>> abs(answer.value - 0.5) <= answer.half_width < 0.05
    True
    """

    @data_in_pairs
    def __init__(
        self,
        holdout: object,
        *,
        train: object | None = None,
        development: object | None = None,
        groups: object = None,
        dependence: DependenceModel | TimeOrder | None = None,
        sampling: Sampling = "independent",
        confidence: float = 0.95,
        queries: int | None = None,
        final_check: bool = False,
        mechanism: MechanismChoice | None = None,
        epsilon: float | None = None,
        prior_queries: int | PriorQueries = 0,
        ledger: str | Path | Ledger | None = None,
        random_state: int | NoiseSource | None = None,
        allow_duplicates: bool = False,
    ) -> None:
        records, model = declared_parts(holdout, train, allow_duplicates, groups, dependence)
        noise, share = noise_of(random_state), declared_share(development)
        fingerprint = model.fingerprint()  # of all records: their groups say which of them are open
        documents: dict[str, str] = {}
        if development is not None:
            open_part = development, share, groups, allow_duplicates
            model, documents = open_records(records, model, *open_part, ledger, noise)
        declared = Declaration(
            queries=None if queries is None else check_count("queries", queries),
            confidence=declared_confidence(confidence),
            mechanism=check_choice(mechanism, epsilon),
            sampling=check_sampling(sampling, model, records.pieces),
            final_check=check_final(final_check),
            development=share,
            dependence=fingerprint,
            for_release=noise.for_release,
            prior_queries=check_prior_queries(prior_queries),
        )
        self._begin(records, model, declared, noise, ledger, documents)
        records.warn_of_mistakes(dependence, model)

    @classmethod
    def _of_records(cls, records: Records, model: DependenceModel, *rest: Any) -> Self:
        """Return the guard of records that are kept elsewhere; see `_begin`."""
        guard = cls.__new__(cls)
        guard._begin(records, check_dependence(model, records.n), *rest)
        return guard

    def _begin(
        self,
        records: Records,
        model: DependenceModel,
        declared: Declaration,
        noise: NoiseSource,
        ledger: str | Path | Ledger | None,
        documents: Mapping[str, str],
    ) -> None:
        """Find the holdout in the ledger and continue, or enter it; then build the guard's parts."""
        found = opened(records, model, declared, noise, ledger, documents)
        self.n, self.dependence = records.n, model
        self._records, self._declared, self._noise, self._opened = records, declared, noise, found
        self._ledger, self._id, self._mechanism = found.ledger, found.identity, found.mechanism
        self._engine = QueryEngine(found, noise)
        self._releases = Releases(self._engine, model, found)
        parts = self._engine, found.mechanism, model, declared
        self._queries: ModelQueries | ColumnQueries = (
            ColumnQueries(records, *parts) if isinstance(records, LazyRecords) else ModelQueries(records, *parts)
        )
        self._searched = 0  # holdout scores that scorers of this guard were asked for

    def ask(
        self,
        train_values: object,
        holdout_values: object | None = None,
        *,
        bounds: tuple[float, float] = (0.0, 1.0),
        name: str = "",
        key: str | None = None,
        binary: bool | None = None,
    ) -> Answer:
        """Ask a query, the mean of one value for each record, and return an `Answer` with its `value` and `interval`.

        Parameters
        ----------
        train_values : array-like of shape (n_train,), float, callable or expression
            The query's value for each training record, or their mean, such as a cross-validation estimate. A callable
            is applied to both parts, ``train_values(X, y)``, and returns per-record values. For lazy frames pass a
            narwhals expression, ``nw.col("pred") == nw.col("y")``.
        holdout_values : array-like of shape (n,), optional
            The value for each holdout record. Omit it with a callable or an expression.
        bounds : tuple of float, default (0.0, 1.0)
            Smallest and largest value that a record can have.
        key, name : str, optional
            The key identifies the query: the same key returns the same answer at no cost, also after a crash. If None,
            a function is identified by its code and the objects that it uses, and arrays are always a new query. The
            name stands in the history only.
        binary : bool, optional
            Whether every value is an end of the range; limits are exact binomial ones then. If None, the training
            values or, with a number, boolean holdout values decide.

        Raises
        ------
        InputError, BudgetExhausted
            If a value is missing or out of range, which spends nothing; if a declared limit is reached.

        Examples
        --------
        >>> import numpy as np
        >>> holdout = np.arange(1000.0)
        >>> guard = Thresholdout(holdout, queries=10)
        >>> guard.ask(0.25, holdout < 250).source, guard.ask([0, 0, 1], holdout > 200).source
        ('train', 'holdout')
        """
        limits = (0.0, 1.0) if bounds == (0.0, 1.0) else check_bounds(bounds)
        query, read, fails = self._queries.ask(train_values, holdout_values, limits, name, key, binary)
        return self._engine.evaluate("train_values", query, read) if fails else self._engine.store_given(query, read())

    def ask_all(
        self,
        queries: Sequence[tuple[object, object]],
        *,
        bounds: tuple[float, float] = (0.0, 1.0),
        names: Sequence[str] | None = None,
        keys: Sequence[str] | None = None,
        binary: bool | None = None,
        reserve: float = 0.2,
    ) -> list[Answer]:
        """Ask a list of queries that were all chosen before any of their answers was seen.

        Intervals are much narrower than those of the same queries asked one after another, because no query of the list
        pays for information that the others release. Either all queries are answered and recorded, or none.

        Parameters
        ----------
        queries : sequence of (train_values, holdout_values)
            One pair for each query, in the form that `ask` accepts.
        bounds, names, keys, binary : optional
            Range of the values, and one name and one key for each query; see `ask`.
        reserve : float, default 0.2
            Share of the error budget to keep for queries after the list, at most 0.99. Pass 0 if the list is the last.
        """
        return ask_all(self, queries, bounds, names, keys, binary, reserve)

    def score(
        self,
        estimator: Any,
        metric: str | Metric | Statistic = "accuracy",
        *,
        cv: object | None = None,
        train_values: object | None = None,
        sample_weight: tuple[object, object] | None = None,
        key: str | None = None,
        name: str = "",
        precise: bool = False,
    ) -> Answer:
        """Ask for the score of a fitted estimator, and return an `Answer` with its `value` and `interval`.

        The training value, which the holdout confirms or corrects, is the estimator's cross-validated score by default.
        Losses are not negated. `Answer.estimand` names the estimand.

        Parameters
        ----------
        estimator : object or str
            A fitted estimator; for lazy frames the name of a column of predictions.
        metric : str, Metric or Statistic, default "accuracy"
            A score, or its name, from `thresholdout.scoring`; a `Statistic` only if claims answer.
        cv : int, splitter, iterable of (fit, test) or "training", optional
            How clones of the estimator are cross-validated for the training value. If None, in scikit-learn's 5 folds,
            of whole groups if declared, and of later records for a series. ``"training"`` fits nothing and uses the
            score on the training records, which is too optimistic for models that fit them closely. Omit it with a
            development part, whose exact score is used instead.
        train_values : float or array-like, optional
            The training value, in place of ``cv``, for models that cannot be refitted: a known cross-validated score,
            or the metric's value for each training record.
        sample_weight : tuple of two array-likes, optional
            Weights of training (or development) and holdout records, for means: the mean of weight times value over the
            mean *training* weight. Holdout weights are clipped to the largest training weight.
        key : str, optional
            Identity of the query, see `ask`. If None, its content identifies it, so running a cell again costs nothing.
        name : str, optional
            Name of the candidate in the history. If None, its class with the parameters that differ from defaults.
        precise : bool, default False
            If True, state an interval as narrow as for a query without adaptivity, at about ten nats (`Answer.cost`).
        """
        return score(self, "score", estimator, metric, cv, train_values, sample_weight, key, name, precise)

    def score_all(
        self,
        models: Sequence[Any] | Mapping[str, Any],
        metric: str | Metric | Statistic = "accuracy",
        *,
        cv: object | None = None,
        train_values: Sequence[object] | None = None,
        keys: Sequence[str] | None = None,
        reserve: float = 0.2,
        report: Literal["all", "best"] = "all",
    ) -> list[Answer]:
        """Score several fitted estimators in one batch, all fixed before any of their scores is known.

        Parameters
        ----------
        models : sequence or mapping of fitted estimators
            The keys of a mapping are the candidates' names in the history. Answers come in the same order.
        metric, cv, keys, reserve : optional
            Metric, cross-validation, one key per model, share of the error budget to keep; see `score` and `ask_all`.
        train_values : sequence, optional
            One training value for each model, or ``None`` for a model that is cross-validated.
        report : {"all", "best"}, default "all"
            Return every score, or only the best one, which names its candidate and costs later queries much less. If
            values are 0 or 1 and records independent, no other estimand is beyond the better end of its interval.
        """
        return score_all(self, models, metric, cv, train_values, keys, reserve, report)

    def development_score(self, estimator: Any, metric: str | Metric | Statistic = "accuracy") -> float:
        """Return the exact score of a fitted estimator on the development part, at no cost to the error budget.

        Repeated selection overfits these scores in time. `score` warns (`DevelopmentOverfitWarning`) if it refutes one.
        """
        return development_score(self._records, estimator, get_score(metric))

    def final_check(
        self,
        estimator: Any,
        metric: str | Metric | Statistic = "accuracy",
        *,
        cv: object | None = None,
        train_values: object | None = None,
        key: str | None = None,
        name: str = "",
    ) -> Answer:
        """Score the chosen model with the whole remaining error budget and close the guard; parameters as in `score`.

        It is answered even if a declared limit is reached. The interval is nearly that of a single evaluation if
        ``final_check=True`` was declared and earlier intervals were accepted at once.
        """
        return score(self, "final check", estimator, metric, cv, train_values, None, key, name)

    def compare(
        self,
        b: Any,
        a: Any,
        metric: str | Metric = "accuracy",
        *,
        about: About = "difference",
        cv: object | None = None,
        train_values: tuple[object, object] | None = None,
        key: str | None = None,
        name: str = "",
        precise: bool = False,
    ) -> Comparison:
        """Test whether one fitted estimator is better than another, and by how much.

        Records with equal values cancel, so the interval is usually narrower than that of either score. Returns a
        `Comparison` with attributes `verdict` ("better", "worse" or "not settled"), `value` and `interval`.

        Parameters
        ----------
        b, a : estimator
            Fitted estimators. The verdict says whether ``b`` is better than ``a``.
        metric : str or Metric, default "accuracy"
            Must be a mean over records, such as accuracy or a mean squared error, and not an area under a curve.
        about : {"difference", "win_rate"}, default "difference"
            "difference": score of ``b`` minus that of ``a``. "win_rate": share of ``b`` among the records that exactly
            one is right about; settles more often, and needs independent records with ``sampling="iid"``.
        cv, train_values, key, name, precise : optional
            See `score`. Both models use the same folds; ``train_values`` is a tuple ``(of_b, of_a)``. With at most five
            declared queries, the interval is computed directly where that is narrower, and always for the last query.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.dummy import DummyClassifier
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = load_digits(return_X_y=True)
        >>> guard = Thresholdout((X[:800], y[:800]), train=(X[800:], y[800:]), sampling="iid")
        >>> bayes, dummy = GaussianNB().fit(X[800:], y[800:]), DummyClassifier().fit(X[800:], y[800:])
        >>> guard.compare(bayes, dummy).verdict, guard.compare(bayes, dummy, about="win_rate").verdict
        ('better', 'better')
        """
        return compare(self, b, a, metric, about, cv, train_values, key, name, precise)

    def compare_all(
        self,
        models: Sequence[Any] | Mapping[str, Any],
        baseline: Any,
        metric: str | Metric = "accuracy",
        *,
        about: About = "difference",
        cv: object | None = None,
        keys: Sequence[str] | None = None,
        reserve: float = 0.2,
    ) -> list[Comparison]:
        """Compare a list of fitted estimators, all chosen before any of their answers was seen, with one baseline.

        Returns one `Comparison` for each; all verdicts hold at once. Parameters are those of `compare` and `score_all`.
        """
        return compare_all(self, models, baseline, metric, about, cv, keys, reserve)

    def _recalled(self, key: str | None, score: Metric | Statistic) -> Answer | None:
        return self._engine.recall(key, score.target if isinstance(score, Statistic) else "")

    def gate(
        self,
        champion: Any,
        metric: str | Metric = "accuracy",
        *,
        certify: Certify = "each",
        delta: float = 0.0,
        tolerance: float | None = None,
        train_values: object | None = None,
    ) -> Gate:
        """Return a `Gate`, which keeps or rejects candidates and certifies, with the guard's confidence, no worse one.

        Parameters
        ----------
        champion, metric : estimator or column, str or Metric
            The first model to beat, fitted and not certified; a metric that is a mean over records.
        certify : {"each", "milestones"}, default "each"
            "each" tests every candidate. "milestones", for smaller steps, lets cross-validation accept candidates at no
            cost, and from time to time tests the current one against the last certified one.
        delta, tolerance, train_values : float, float, float or array-like, optional
            By how much a candidate has to be better (0 by default), or may be worse (see `Gate`); the champion's
            training values, see `score`.
        """
        return Gate(self, champion, metric, certify, delta, tolerance, train_values)

    def scorer(
        self,
        metric: object = "accuracy",
        *,
        cv: object | None = None,
        sample_weight: tuple[object, object] | None = None,
        exhausted: Exhausted = "stop",
        intervals: bool = False,
    ) -> GuardScorer:
        """Return a scorer for ``scoring=`` of scikit-learn's searches, with ``cv=guard.split()``; see `GuardScorer`."""
        self._records.labelled()
        return GuardScorer(self, metric, cv=cv, sample_weight=sample_weight, exhausted=exhausted, intervals=intervals)

    def split(self) -> TrainSplit:
        """Return a splitter for ``cv=`` of a search, with one split that fits on all training records that it is given.

        The holdout never passes through the search, since `scorer` asks the guard.
        """
        self._records.labelled()
        return TrainSplit(self, len(self._records.train[1]))

    def join(self, predictions: object, on: str) -> None:
        """Add columns to the training and holdout frames of a guard of lazy frames, such as predictions of a new model.

        Parameters
        ----------
        predictions : lazy frame
            Lazy frame of the same engine, with one row for each record of both parts. Missing predictions receive the
            worst possible score.
        on : str
            Name of the identifier column to join on, which all frames must have.
        """
        if not isinstance(self._records, LazyRecords):
            raise InputError("predictions", "columns", "values for ask() or a model for score() of parts in memory")
        self._records.join(predictions, on)

    @property
    def _models(self) -> ModelQueries:
        assert isinstance(self._queries, ModelQueries)
        return self._queries

    def _trained(self, metric: Metric | Statistic, estimator: Any, cv: object, given: object = None) -> Trained:
        return self._queries.trained(metric, estimator, cv, given)

    def _fixed(self, cv: object | None) -> object | None:
        return self._queries.fixed(cv)

    def _score_key(self, key: str | None, kind: str, models: Sequence[Any], score: Any, *rest: object) -> str | None:
        self._queries.forget_applied()
        return self._queries.keys.of_score(self._queries.digest, key, kind, models, score, *rest)

    def _made(self, digest: str) -> ContentKey:
        return self._queries.keys.made(digest)

    @property
    def _training_folds(self) -> TrainingFolds:
        return self._records.training_folds

    @property
    def _open_folds(self) -> TrainingFolds | None:
        return self._records.open_folds

    @property
    def _open(self) -> Part:
        return self._records.open

    def _origin(self, hashes: NDArray[np.uint64], records: NDArray[np.uint64] | None = None) -> Origin:
        return self._records.origin(hashes, records)

    @property
    def certificate(self) -> Certificate:
        """Guarantee of the next answers. After a failed query, answers of Algorithm 1 are wider than it states."""
        return self._releases.certificate()

    @property
    def status(self) -> GuardStatus:
        """Use of the guard so far: queries, remaining answers and error budget, information released, epsilon."""
        state, asked = self._engine.state(), self._ledger.count(self._id)
        start = math.log1p(-self._opened.confidence) - self.parameters.information_released
        return status_of(self._mechanism, state, asked, start, self.certificate, self._records.development is not None)

    @property
    def releases(self) -> Releases:
        """Other private releases about the holdout. Record each one before any of its output is seen."""
        return self._releases

    @property
    def history(self) -> pd.DataFrame:
        """Data frame of all queries and answers so far, one row each. Nothing in it is secret."""
        from thresholdout.ledger.entry import history_frame

        return history_frame(self._ledger.entries(self._id), self._mechanism.parameters.approximation)

    def _answered(self, key: str) -> bool:
        return self._ledger.find(self._id, key) is not None

    @property
    def parameters(self) -> Parameters:
        """Public parameters of the mechanism, in units of a query's range. Their class names the mechanism."""
        return self._opened.parameters

    def report(self, title: str = "") -> GuardReport:
        """Return a report of everything public: `GuardReport.save` writes a page, `GuardReport.plot` draws it."""
        from thresholdout.report import report_of

        released, model = tuple(map(repr, self._releases.recorded.events)), self.dependence.describe()
        facts: dict[str, Any] = {"certificate": self.certificate, "dependence": model, "releases": released}
        return report_of(self._ledger, self._id, **facts, title=title)

    @property
    def train(self) -> Part:
        """Training part, as a tuple of read-only arrays."""
        return self._records.train

    @property
    def development(self) -> Part | None:
        """Development part, as a tuple of read-only arrays, or ``None`` if the guard has none."""
        return None if self._records.development is None else self._records.open

    def __repr__(self) -> str:
        size, closed = self._records.open_size, self._ledger.closed(self._id)
        kind = f"{self._mechanism.title} for {self.dependence.describe()}"
        kind += "" if self._records.development is None else f" beside {size} development records"
        seeded = "" if self._noise.for_release else ", seeded noise (simulation only)"
        return f"<Thresholdout: {kind}; {self.status.line() if closed is None else f'closed: {closed}'}{seeded}>"

    def _repr_html_(self) -> str:
        from thresholdout.report.html import guard_html

        return guard_html(self.report(), "Thresholdout")
