"""The guard of a holdout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from thresholdout.certificates.prior_queries import PriorQueries, check_prior_queries
from thresholdout.certificates.problem import declared_confidence
from thresholdout.data.arguments import check_count
from thresholdout.data.identity import Part
from thresholdout.data.record_structure import TimeOrder
from thresholdout.data.values import check_bounds
from thresholdout.errors import InputError
from thresholdout.guard.answer import Answer
from thresholdout.guard.asking import ask_all, compare, compare_all, score, score_all
from thresholdout.guard.declared_parts import declared_parts, in_lazy_frames
from thresholdout.guard.development import declared_share, development_score, open_records
from thresholdout.guard.given_features import check_sampling
from thresholdout.guard.likely_mistakes import checked_call
from thresholdout.guard.registered_guard import RegisteredGuard
from thresholdout.guard.registration import noise_of
from thresholdout.guard.train_split import TrainSplit, made_by_a_call
from thresholdout.ledger import Ledger
from thresholdout.noise.sources import NoiseSource
from thresholdout.planning.declaration import Declaration, MechanismChoice, Sampling
from thresholdout.planning.declared_parameters import check_choice, check_final

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.guard.comparison import About, Comparison
    from thresholdout.guard.exhaustion import Exhausted
    from thresholdout.guard.gates import Certify, Gate
    from thresholdout.guard.scorer import GuardScorer
    from thresholdout.guard.training_values import Trained
    from thresholdout.scoring.metrics import Metric
    from thresholdout.scoring.statistics import Statistic

__all__ = ["Thresholdout"]


class Thresholdout(RegisteredGuard):
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
        Records that are not guarded: their exact scores (`development_score`) are free and replace cross-validation. A
        number splits off that share of the holdout, in whole groups and alike in every ledger. Shuffle sorted records
        once before; a second split (another share, seed or order) voids the guarantee.
    groups : str or list of str, optional
        Name of the column or index level, in both parts, with the group of each record. A column stays a feature, so
        keep identifiers in the index (``X.set_index("patient")``). ``["user", "item"]`` declares `graphs.Crossed`
        groups.
    dependence : graphs.DependenceModel or TimeOrder, optional
        How the holdout's records depend on each other; the guarantee holds under this model. If None, records, or
        groups, are independent. ``TimeOrder("day", window=7)`` is for records in time order. A `graphs.DependencyGraph`
        is matched by name: its nodes are the index of the holdout (0, 1, 2, ... for arrays), and that of the training
        part if its records have neighbours in the holdout.
    sampling : {"independent", "iid", "fixed_features"}, default "independent"
        "independent" assumes no more than ``dependence``. "iid" declares that all records (or groups, of one size) have
        the same distribution, and that every query is the same function of each record and ignores its position and
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
    InputError
        If an argument cannot be used. Nothing is written then.
    OverlapError
        If the parts share records or groups.
    LedgerMismatch
        If the ledger has a guard of other data, or of these data with another declaration.
    PlanError
        If no parameters of the mechanism serve the declared use.

    Warns
    -----
    WideAnswersWarning, LikelyMistakeWarning, MechanismWarning
        If intervals will be wide; if the data suggest a mistake; if the dependence rules out the default mechanism.

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

    @checked_call("Thresholdout((X, y), train=(X_train, y_train))")
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
        """Ask a query: the mean over the holdout of one value per record.

        Use `score` for the score of a fitted model, and `ask_all` for several queries that are known in advance.

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
            name is a label for the history.
        binary : bool, optional
            Whether every value is one of the two bounds, so that exact binomial limits apply. If None, the training
            values decide or, if these are one number, whether the holdout values are boolean.

        Returns
        -------
        Answer
            Its `value`, `interval`, `half_width` and `source`: "train" if the holdout confirmed the training value,
            which costs almost no error budget, or "holdout" if it did not, which costs more.

        Raises
        ------
        InputError
            If a value is missing or out of range. Nothing is spent.
        BudgetExhausted
            If the guard has no answers left, or if the interval would be wider than the declared ``max_half_width``.

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
            Range of the values, one name and one key for each query, and whether values are the bounds; see `ask`.
        reserve : float, default 0.2
            Fraction of the error budget, in [0, 0.99], to keep for later queries. Pass 0 if no queries follow.

        Returns
        -------
        list of Answer
            One answer for each query, in the same order. All intervals hold at once.

        Examples
        --------
        >>> import numpy as np
        >>> holdout = np.arange(1000.0)
        >>> answers = Thresholdout(holdout).ask_all([(0.25, holdout < 250), (0.5, holdout < 500)], reserve=0)
        >>> [answer.value for answer in answers]
        [0.25, 0.5]
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
        """Score a fitted estimator on the holdout, with an interval that holds together with all other answers.

        The holdout confirms or corrects the training value: the cross-validated score on the training part by default.
        Losses are not negated. Use `score_all` for models that are all fixed in advance, `compare` to tell which of two
        is better, and `gate` to accept or reject many small changes.

        Parameters
        ----------
        estimator : object or str
            A fitted estimator; for lazy frames the name of a column of predictions.
        metric : str, Metric or Statistic, default "accuracy"
            Score from `thresholdout.scoring`, or its name. A `Statistic`, such as an area under a curve, needs the
            mechanism "claims".
        cv : int, splitter, iterable of (fit, test) or "training", optional
            How clones of the estimator are cross-validated for the training value. If None, use scikit-learn's 5 folds
            (whole groups if groups are declared, later records if the records are a series). ``"training"`` fits
            nothing and uses the score on the training records, which is too optimistic for models that fit them
            closely. Omit it with a development part, whose exact score is used instead.
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
            If True, state an interval as narrow as for a query without adaptivity, at a cost of about ten nats
            (`Answer.cost`), where every nat divides the remaining error budget by e.

        Returns
        -------
        Answer
            Its `value`, `interval` and `half_width` are in the metric's units. Its `source` is "train" if the holdout
            confirmed the training value, which costs almost no error budget, else "holdout".

        Raises
        ------
        InputError
            If an argument cannot be used, which spends nothing, or if the model fails on the holdout but not on the
            training part, which is charged.
        BudgetExhausted
            If the guard has no answers left, or if the interval would be wider than the declared ``max_half_width``.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = load_digits(return_X_y=True)
        >>> guard = Thresholdout((X[:800], y[:800]), train=(X[800:], y[800:]))
        >>> answer = guard.score(GaussianNB().fit(X[800:], y[800:]))
        >>> answer.interval[0] < 0.81 < answer.interval[1]
        True
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

        Intervals are much narrower than with one `score` after another, because no model of the batch pays for the
        information that the scores of the others release.

        Parameters
        ----------
        models : sequence or mapping of fitted estimators
            The keys of a mapping are the candidates' names in the history.
        metric, cv : optional
            Metric, "accuracy" by default, and cross-validation of all models by the same folds; see `score`.
        train_values : sequence, optional
            One training value for each model, or ``None`` for a model that is cross-validated.
        keys : sequence of str, optional
            One key for each model; see `ask`.
        reserve : float, default 0.2
            Fraction of the error budget, in [0, 0.99], to keep for later queries. Pass 0 if no queries follow.
        report : {"all", "best"}, default "all"
            Return every score, or only the best one, which names its candidate and costs later queries much less. If
            values are 0 or 1 and records independent, no other estimand is beyond the better end of its interval.

        Returns
        -------
        list of Answer
            One answer per model, in the order of ``models``, or with ``report="best"`` the best one alone.
        """
        return score_all(self, models, metric, cv, train_values, keys, reserve, report)

    def development_score(self, estimator: Any, metric: str | Metric | Statistic = "accuracy") -> float:
        """Return the exact score of a fitted estimator on the development part; it costs no error budget.

        ``metric`` is as in `score`. Repeated selection overfits the development part in time: `score` gives a
        `DevelopmentOverfitWarning` if the holdout refutes the development score of a model.
        """
        return development_score(self._records, estimator, metric)

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
        """Score the finally chosen model with the whole remaining error budget. It is the guard's last answer.

        It is answered even if a declared limit is reached. If ``final_check=True`` was declared and earlier intervals
        were accepted at once, its interval is nearly as narrow as for a single evaluation of a fresh holdout. The
        parameters are those of `score`, and ``status.final_half_width`` is the half-width to expect.

        Returns
        -------
        Answer
            Value and interval of the score. The interval holds together with those of all earlier answers.
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

        Records with equal values cancel, so the interval is usually narrower than that of either score. A comparison is
        one query.

        Parameters
        ----------
        b, a : estimator
            Fitted estimators. The verdict states whether ``b`` is better than ``a``.
        metric : str or Metric, default "accuracy"
            Mean over records, such as accuracy or a mean squared error. An area under a curve is refused.
        about : {"difference", "win_rate"}, default "difference"
            "difference": score of ``b`` minus that of ``a``. "win_rate": share of ``b`` among the records that exactly
            one is right about; settles more often, and needs independent records with ``sampling="iid"``.
        cv, train_values, key, name, precise : optional
            See `score`. Both models use the same folds; ``train_values`` is a tuple ``(of_b, of_a)``. With at most five
            declared queries, the interval is computed directly where that is narrower, and always for the last query.

        Returns
        -------
        Comparison
            Its `verdict` is "better", "worse" or "not settled"; `value` and `interval` are those of the difference or
            win rate. `settling` estimates the number of records that would settle it.

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
        """Compare several fitted estimators with one baseline, all fixed before any of the answers is known.

        Intervals are much narrower than with one `compare` after another. The parameters are those of `compare` and
        `score_all`.

        Returns
        -------
        list of Comparison
            One comparison with ``baseline`` per model, in the order of ``models``. All verdicts hold at once.
        """
        return compare_all(self, models, baseline, metric, about, cv, keys, reserve)

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
        """Make a `Gate` for hill climbing: it keeps or rejects one candidate after another and releases no scores.

        Parameters
        ----------
        champion : estimator or str
            The first model to beat, fitted; for lazy frames the name of a column of predictions. It is not certified.
        metric : str or Metric, default "accuracy"
            Mean over records.
        certify : {"each", "milestones"}, default "each"
            "each" tests every candidate. "milestones", for smaller steps, lets cross-validation accept candidates at no
            cost, and from time to time tests the current one against the last certified one.
        delta : float, default 0.0
            Amount by which a candidate has to be better, in the metric's units.
        tolerance : float, optional
            Amount by which a candidate may be worse, instead of ``delta``; see `Gate`.
        train_values : float or array-like, optional
            The champion's training values, in place of cross-validation; see `score`.

        Returns
        -------
        Gate
            ``gate.propose(model)`` decides. With the guard's confidence, no certified candidate is worse.
        """
        from thresholdout.guard.gates import Gate

        return Gate(self, champion, metric, certify, delta, tolerance, train_values)

    @made_by_a_call
    def scorer(
        self,
        metric: object = "accuracy",
        *,
        cv: object | None = None,
        sample_weight: tuple[object, object] | None = None,
        exhausted: Exhausted = "stop",
        intervals: bool = False,
    ) -> GuardScorer:
        """Make a scorer for ``scoring=`` of a scikit-learn search whose ``cv=`` is `split`; see `GuardScorer`.

        Every candidate is one query per metric. `GuardedSearchCV` asks about all as one list, with narrower intervals.
        """
        self._records.labelled()
        from thresholdout.guard.scorer import GuardScorer

        return GuardScorer(self, metric, cv=cv, sample_weight=sample_weight, exhausted=exhausted, intervals=intervals)

    def split(self) -> TrainSplit:
        """Make a splitter for ``cv=`` of a search whose ``scoring=`` is a `scorer` of this guard.

        Its one split fits on all training records that the search passes. The holdout never passes through the search.
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
        if not in_lazy_frames(self._records):
            raise InputError("predictions", "columns", "values for ask() or a model for score() of parts in memory")
        self._records.join(predictions, on)

    def _trained(self, metric: Metric | Statistic, estimator: Any, cv: object, given: object = None) -> Trained:
        return self._queries.trained(metric, estimator, cv, given)

    def _fixed(self, cv: object | None) -> object | None:
        return self._queries.fixed(cv)

    def _score_key(self, key: str | None, kind: str, models: Sequence[Any], score: Any, *rest: object) -> str | None:
        self._queries.forget_applied()
        return self._queries.keys.of_score(self._queries.digest, key, kind, models, score, *rest)

    @property
    def _open(self) -> Part:
        return self._records.open

    @property
    def train(self) -> Part:
        """Training part as a tuple, ``(X, y)`` with labels. Arrays are read-only; data frames are copies."""
        return self._records.train

    @property
    def development(self) -> Part | None:
        """Development part as a tuple, ``(X, y)`` with labels, or ``None`` if the guard has none."""
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
