"""The guard: the one class that most people need."""

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
    """A holdout that answers many adaptive queries.

    A query is a mean over records: the accuracy of a model, a loss, the frequency of a pattern. If the holdout agrees
    with the training value, the guard returns that value at almost no cost. If it does not, the guard retries with a
    wider interval and spends part of the error budget that all answers share. With probability ``confidence`` the
    ``interval`` of every answer contains its estimand, for all queries at once, however each was chosen from others.

    Parameters
    ----------
    holdout : tuple (X, y) or (X, y, groups), array, data frame or lazy frame
        The records to protect, one row per record. Records of one group, such as a patient, may depend on each other in
        any way; ``(X, None, groups)`` has no labels. A lazy frame (Polars, DuckDB, Dask, Spark) stands alone or as
        ``(frame, "label")``; its engine counts, and queries are expressions of narwhals or columns.
    train : optional
        The training part, in the same form, needed by `score` and by queries given as functions. It must share no
        record and no group with the holdout.
    development : tuple (X, y), or float, optional
        Open records to climb on, whose free and exact scores (`development_score`) take the place of cross-validation.
        A number splits off that share of the holdout, whole groups together, alike in every ledger. Shuffle sorted
        records first, once: a second division (another share, seed or order) voids the guarantee.
    groups : str or list of str, optional
        The name of a column or index level of both parts with the group of each record. A column stays among the
        features, so keep identifiers in the index (``X.set_index("patient")``). Several names, ``["user", "item"]``,
        are effects of each kind on their records (`graphs.Crossed`).
    dependence : graphs.DependenceModel or TimeOrder, optional
        How the holdout's records depend on each other; independent by default, apart from groups. The certificate holds
        under this model. ``TimeOrder("day", window=7)`` is for records in order of time. A `graphs.DependencyGraph` is
        matched by name: its nodes are the index of the holdout (0, 1, 2, ... for arrays), and that of the training part
        where its records have neighbours in the holdout.
    sampling : {"independent", "iid", "fixed_features"}, default="independent"
        "iid" declares that all records (or groups, of one size) have one law, and that every query is the same function
        of each record, whatever its number, id or place. "fixed_features" declares that everybody knows the holdout's
        features: estimands are expectations given these, and comparisons use only records on which models disagree. It
        needs pairs (X, y) of independent records or groups, and metrics that are means.
    confidence : float, default=0.95
        Probability with which all intervals hold at once, in (0, 1).
    queries : int, optional
        How many queries may be asked. Any number by default; declaring it makes intervals a little narrower.
    final_check : bool, default=False
        Reserve most of the error budget for a last query, `final_check`. Other intervals are 9 to 29 % wider.
    mechanism : str or object, optional
        How queries are answered. "claims", the default, or `Claims` with rarer parameters. "leaderboard" is for many
        clients, whose training values are guesses. "ladder" tells only the best score so far. "algorithm-1" has noise
        for an ``epsilon``, see `SparseVector.for_budget`. Parameters that ``plan(...)`` suggests serve as they are.
    epsilon : float, optional
        Beside "algorithm-1": nats that all answers together may tell about one record to whoever knows any others.
    prior_queries : int or PriorQueries, default=0
        Scores of this holdout that were seen before, each a share of the records or read to at most four decimals;
        ``PriorQueries(10, values=301)`` counts the values that each could have had.
    ledger : str, path or Ledger, optional
        A file name makes or continues a SQLite file; in memory by default. A ledger has one guard for a holdout.
    random_state : int, optional
        Noise from a seed, for simulations only. By default it is exact noise from the operating system's entropy.
    allow_duplicates : bool, default=False
        Accept rows that occur in both parts because they are different records here (few distinct values, say).

    Attributes
    ----------
    certificate : Certificate
        What the answers are worth from now on, and by which route.
    n : int
        Number of guarded records.
    dependence : DependenceModel
        Of the guarded records.

    Raises
    ------
    InputError, OverlapError, LedgerMismatch, PlanError
        When an argument cannot be used, and nothing has been written; when parts share records; when the ledger has
        other data or another declaration; when no parameters serve the declared use.

    Warns
    -----
    WideAnswersWarning, LikelyMistakeWarning, MechanismWarning
        When answers will be wide; when the training part hints at undeclared dependence, or lacks a class; when the
        dependence allows no claims, and Algorithm 1 answers.

    Notes
    -----
    Proofs: ``thresholdout/PROOFS.md``. The guard keeps an honest analyst from adapting; code here can read the holdout.

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
        """Return the guard of records that somebody else keeps, with secret texts for its ledger; see `_begin`."""
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
        """Find the holdout in the ledger and continue, or enter it; then put the guard's parts together."""
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
        self._searched = 0  # how often scorers of this guard were asked for a score of the holdout

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
        """Ask one query.

        Parameters
        ----------
        train_values : array-like of shape (n_train,), float, callable or expression
            The query's value for each training record. A number stands for their mean, such as a cross-validation
            estimate. A callable is applied to both parts, ``train_values(X, y)``, and returns per-record values. Of
            lazy frames an expression of narwhals is asked, ``nw.col("pred") == nw.col("y")``.
        holdout_values : array-like of shape (n,), optional
            The value for each holdout record; left out beside a callable.
        bounds : tuple of float, default=(0, 1)
            The declared range of the values.
        name : str, optional
            What the history calls the query.
        key : str, optional
            The same key gives the same answer at no cost, also after a crash. Without one, a function is known again by
            its code and by what the code uses, and arrays are a new query each time.
        binary : bool, optional
            Whether every value is one end of the range or the other: limits are exact binomial ones then. By default it
            is when all training values are, and beside a number when the holdout's values are booleans.

        Raises
        ------
        InputError, BudgetExhausted
            When a value is missing or out of range, which spends nothing; when a declared number is used up.

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
        """Ask queries that were fixed together, before any of their answers was seen: all in one transaction, or none.

        No query pays for the information that others released, so intervals are much narrower.

        Parameters
        ----------
        queries : sequence of (train_values, holdout_values)
            As in `ask`, one pair for each query; so are ``bounds``, ``names``, ``keys`` and ``binary``.
        reserve : float, default=0.2
            Share of the error budget for queries after the list, at most 0.99; 0 for a list that is the last.
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
        """Ask for a fitted estimator's score.

        Parameters
        ----------
        estimator : object or str
            Fitted; of lazy frames the name of a column of predictions.
        metric : str, Metric or Statistic, default="accuracy"
            Of `thresholdout.scoring.metrics`, or `thresholdout.scoring.statistics` where claims answer; or its name.
        cv : int, splitter, iterable of (fit, test) or "training", optional
            How the training value is cross-validated, by clones of the estimator. By default in 5 folds as scikit-learn
            forms them, of whole groups where these are declared, and of later records for a series. ``"training"``
            fits nothing and takes the score on the training records, too good for models that fit them closely. Leave
            it out beside a development part, whose exact score takes its place.
        train_values : float or array-like, optional
            The training value itself, in place of ``cv``, for models that cannot be fitted again: a cross-validated
            score that is known already, or the metric's value for each training record.
        sample_weight : tuple of two array-likes, optional
            Of training (or development) and holdout records, for means: the mean of weight times value over the mean
            *training* weight. Holdout weights are cut to the largest training weight.
        key : str, optional
            As in `ask`. Without one, the query is known again by its content: running a cell again costs nothing.
        name : str, optional
            What the history calls the candidate; its class with the parameters that are no defaults otherwise.
        precise : bool, default=False
            State the interval directly, as narrow as that of a fixed query; `Answer.cost` has the nats, about ten.

        Losses are not negated. `Answer.estimand` says which estimand the interval is about.
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
        """Score fitted estimators that were fixed together, before any of their answers was seen.

        Parameters
        ----------
        models : sequence or mapping of fitted estimators
            The keys of a mapping are the candidates' names in the history.
        metric, cv, train_values, keys
            As in `score` and `ask_all`; ``train_values`` may have ``None`` for a model that is cross-validated.
        report : {"all", "best"}, default="all"
            Return every score, or the best one alone, which costs later queries much less and names its candidate.
            Where values are 0 or 1 and records independent, no other estimand is beyond its interval's better end.
        """
        return score_all(self, models, metric, cv, train_values, keys, reserve, report)

    def development_score(self, estimator: Any, metric: str | Metric | Statistic = "accuracy") -> float:
        """Return a fitted estimator's score on the development part: exact, free, and never asked of the holdout.

        A climb overfits these scores in time; `score` warns (`DevelopmentOverfitWarning`) where it can refute one.
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
        """Ask the last query, the score of the chosen model, with the whole remaining error budget; see `score`.

        The guard answers no more afterwards, and answers this where declared numbers are used up. The interval is about
        that of a single look if ``final_check=True`` was declared and earlier intervals were accepted at once.
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
        """Ask whether one fitted estimator is better than another, and by how much.

        Values on which both agree cancel, so a difference is known more sharply than either score.

        Parameters
        ----------
        b, a : estimator
            Fitted; the query is whether ``b`` is better.
        metric : str or Metric, default="accuracy"
            A metric that is a mean over records.
        about : {"difference", "win_rate"}, default="difference"
            The difference of both scores; or, for independent records and ``sampling="iid"``, the win rate of ``b``
            among the records on which exactly one of both is right, which settles more.
        cv, train_values, key, name, precise
            As in `score`, for both by the same folds; ``train_values`` are a pair, of ``b`` and of ``a``. Among at most
            five declared queries an interval is stated directly wherever that is narrower; the last one always.

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
        """Compare fitted estimators with a baseline; they were fixed together, before any of their answers was seen.

        All verdicts hold at once. Parameters are those of `compare` and `score_all`.
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
        """Return a gate, which keeps or rejects candidates; with its confidence no worse one is certified.

        Parameters
        ----------
        champion, metric : estimator or column, str or Metric
            Fitted, with nothing certified about it; a metric that is a mean over records.
        certify : {"each", "milestones"}, default="each"
            Test every candidate; or, for smaller steps, let cross-validation take candidates at no cost, and test the
            current one against the last certified one now and then.
        delta, tolerance, train_values : optional
            By how much a candidate has to be better; or may be worse, see `Gate`; the champion's values, see `score`.
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
        """Return a scorer for scikit-learn's searches, for use with `split`; see `GuardScorer`."""
        self._records.labelled()
        return GuardScorer(self, metric, cv=cv, sample_weight=sample_weight, exhausted=exhausted, intervals=intervals)

    def split(self) -> TrainSplit:
        """Return a splitter for ``cv=``: one split, which fits on all training records that it is given.

        The holdout never passes through the search; `scorer` asks the guard for it.
        """
        self._records.labelled()
        return TrainSplit(self, len(self._records.train[1]))

    def join(self, predictions: object, on: str) -> None:
        """Add columns to both parts of a guard of lazy frames, such as predictions of a new model.

        Parameters
        ----------
        predictions : lazy frame
            Of the same engine as the parts, with a row for each record of both parts. A record without a row has no
            values there, which count as the worst ones.
        on : str
            Name of the column by which records are found, in the parts and in the frame: an identifier.
        """
        if not isinstance(self._records, LazyRecords):
            raise InputError("predictions", "columns for parts in memory", "values for ask(), or a model for score()")
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
        """What the answers are worth from now on; after a failure those of Algorithm 1 are wider than it says."""
        return self._releases.certificate()

    @property
    def status(self) -> GuardStatus:
        """Queries so far, answers and error budget that are left, information released, epsilon."""
        state, asked = self._engine.state(), self._ledger.count(self._id)
        start = math.log1p(-self._opened.confidence) - self.parameters.information_released
        return status_of(self._mechanism, state, asked, start, self.certificate, self._records.development is not None)

    @property
    def releases(self) -> Releases:
        """Other private releases about the holdout, to be recorded before anything of them is seen."""
        return self._releases

    @property
    def history(self) -> pd.DataFrame:
        """Every query and answer so far, one row each; nothing in it is secret."""
        from thresholdout.ledger.entry import history_frame

        return history_frame(self._ledger.entries(self._id), self._mechanism.parameters.approximation)

    def _answered(self, key: str) -> bool:
        return self._ledger.find(self._id, key) is not None

    @property
    def parameters(self) -> Parameters:
        """The mechanism's public parameters, in units of a query's range; their class says which mechanism it is."""
        return self._opened.parameters

    def report(self, title: str = "") -> GuardReport:
        """Return everything public about this guard: `GuardReport.save` writes a page, `GuardReport.plot` draws it."""
        from thresholdout.report import report_of

        released, model = tuple(map(repr, self._releases.recorded.events)), self.dependence.describe()
        facts: dict[str, Any] = {"certificate": self.certificate, "dependence": model, "releases": released}
        return report_of(self._ledger, self._id, **facts, title=title)

    @property
    def train(self) -> Part:
        """The training part, as a tuple of arrays that can be read and not written."""
        return self._records.train

    @property
    def development(self) -> Part | None:
        """The development part, in the same form; ``None`` where there is none."""
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
