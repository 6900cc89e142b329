"""The guard: the one class that most people need."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from graphs.numerics.arguments import as_real
from graphs.numerics.rounding import shown_above
from thresholdout.certificates import Certificate
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.certificates.prior_queries import PriorQueries, check_prior_queries, confidence_after
from thresholdout.certificates.problem import declared_confidence, within_limits
from thresholdout.data.arguments import check_count
from thresholdout.data.identity import Part
from thresholdout.data.record_structure import TimeOrder
from thresholdout.data.values import check_bounds, is_boolean
from thresholdout.errors import InputError
from thresholdout.guard.answer import Answer
from thresholdout.guard.answering import FAILURES, Worth
from thresholdout.guard.automatic_keys import rounded
from thresholdout.guard.candidate_names import class_and_parameters
from thresholdout.guard.comparing import ComparesModels
from thresholdout.guard.declared_dependence import declared_dependence
from thresholdout.guard.gating import MakesGates
from thresholdout.guard.given_features import check_sampling, check_served
from thresholdout.guard.holdout import Records
from thresholdout.guard.interaction import Interaction
from thresholdout.guard.lazy_records import LazyRecords, check_mechanism, read_parts
from thresholdout.guard.likely_mistakes import data_in_pairs, named_as_one, warn_of_width
from thresholdout.guard.question import Question
from thresholdout.guard.registration import (
    check_dependence,
    check_order,
    enter,
    is_file,
    is_there,
    known_as,
    noise_of,
    stored_parameters,
)
from thresholdout.guard.releases import Releases
from thresholdout.guard.searching import ServesSearches
from thresholdout.guard.sharing.shared_objects import Elsewhere, Handle, Shared
from thresholdout.guard.state_check import check_standing
from thresholdout.guard.status import GuardStatus, status_of
from thresholdout.guard.training_folds import checked_cv
from thresholdout.ledger import Ledger, open_ledger
from thresholdout.ledger.entry_checks import check_short_texts
from thresholdout.mechanisms import Mechanism
from thresholdout.mechanisms.catalogue import build_mechanism
from thresholdout.mechanisms.kind import Parameters
from thresholdout.noise.sources import NoiseSource, SystemNoise
from thresholdout.planning.declaration import Claims, Declaration, MechanismName, Sampling, SparseVector
from thresholdout.planning.declared_parameters import check_choice, check_final, choose_parameters
from thresholdout.scoring.metrics import Metric
from thresholdout.scoring.statistics import Statistic, get_score

if TYPE_CHECKING:
    import pandas as pd

    from graphs import DependenceModel
    from thresholdout.report import GuardReport

__all__ = ["Thresholdout"]


@named_as_one
class Thresholdout(Shared, ComparesModels, MakesGates, ServesSearches):
    """A holdout that answers many adaptive queries.

    A query is a mean over records: the accuracy of a model, a loss, the frequency of a pattern. If the holdout agrees
    with the training value, the guard returns that value at almost no cost. If it does not, the guard retries with a
    wider interval and spends part of the error budget that all answers share. With probability ``confidence`` the
    estimand is in the ``interval`` of every answer, for all queries at once and however each was chosen from earlier
    answers.

    Parameters
    ----------
    holdout : tuple (X, y) or (X, y, groups), array, data frame or lazy frame
        The records to protect, one row per record. Records of one group, such as a patient, may depend on each other in
        any way; ``(X, None, groups)`` has no labels. A lazy frame (Polars, DuckDB, Dask, Spark) stands alone or as
        ``(frame, "label")`` with the name of its column of labels. Its engine counts what a query needs, so the records
        are never in memory, and queries are expressions of narwhals.
    train : optional
        The training part, in the same form, needed by `score` and by queries given as functions. It must share no
        record and no group with the holdout.
    groups : str or list of str, optional
        The name of a column or index level of both parts with the group of each record. A column stays among the
        features: an identifier is none, so keep it in the index (``X.set_index("patient")``), or drop it in a pipeline.
        Several names, ``["user", "item"]``, are effects of each kind on their records (`graphs.Crossed`).
    dependence : graphs.DependenceModel or TimeOrder, optional
        How the holdout's records depend on each other; independent by default, apart from groups. The certificate holds
        under this model. ``TimeOrder("day", window=7)`` is for records in order of time. A `graphs.DependencyGraph` is
        matched by name: its nodes are the index of the holdout (0, 1, 2, ... for arrays), and that of the training part
        where its records have neighbours in the holdout.
    sampling : {"independent", "iid", "fixed_features"}, default="independent"
        "iid" declares that all records (or groups, of one size) have one law, and that every query is the same function
        of each record, whatever its number, id or place. Models can then be compared by their win rate.
        "fixed_features" declares that everybody knows the features of the holdout: all estimands are expectations over
        labels, given the features of these records. Comparisons then use only the records on which models disagree. It
        needs pairs (X, y) of independent records or groups, and metrics that are means.
    confidence : float, default=0.95
        Probability with which all intervals hold at once, in (0, 1).
    queries : int, optional
        How many queries may be asked. Any number by default; declaring it makes intervals a little narrower.
    final_check : bool, default=False
        Reserve most of the error budget for a last query about the chosen model, see `final_check`. Other intervals are
        9 to 29 % wider.
    mechanism : str or object, optional
        How queries are answered. "claims", the default, or `Claims` with its rarer parameters: the largest half-width,
        epsilon, the number of answers from the holdout. "leaderboard" is for many clients, whose training values are
        guesses. "ladder" tells only the best score so far. `SparseVector` is Algorithm 1 by hand. ``plan(...)``
        suggests parameters, which serve as they are.
    prior_queries : int or PriorQueries, default=0
        How many scores of this holdout were seen before the guard was made. Intervals are wider by the information that
        these released. A number stands for scores in [0, 1] that are shares of the records or were read to at most four
        decimals; ``PriorQueries(10, values=301)`` counts the values that each could have had.
    ledger : str, path or Ledger, optional
        Where the guard's state lives. A file name makes a SQLite file, or continues it exactly where it was. In memory
        by default, gone with the process. A holdout has one guard, and one error budget, in a ledger: whoever opens it
        finds that guard by its records.
    random_state : int, optional
        Noise from a seed, for simulations only. By default it is exact noise from the operating system's entropy.
    allow_duplicates : bool, default=False
        Accept rows that occur in both parts because they are different records here (few distinct values, say).

    Attributes
    ----------
    certificate : Certificate
        What the answers are worth from now on, and by which route.
    status : GuardStatus
        Queries so far, answers and error budget that are left, information released, epsilon.
    releases : Releases
        Other private releases about the holdout: ``releases.record(event)`` before each, ``releases.preview(event)``.
    n : int
        Number of records in the holdout.
    dependence : DependenceModel
        As declared, or `graphs.Independent`.
    parameters : Parameters
        Of the mechanism, in units of a query's range; their class says which mechanism it is.

    Raises
    ------
    InputError
        When an argument cannot be used; nothing has been written then.
    OverlapError
        When both parts share records.
    LedgerMismatch
        When the ledger belongs to other data, or the guard in it was declared otherwise.
    PlanError
        When no parameters serve the declared use.

    Warns
    -----
    WideAnswersWarning
        When the answers of a new guard will have half-widths of 0.1 of the range and more, or it has fewer than 300
        records.
    LikelyMistakeWarning
        When a column of the training part names owners of records, or dates, and nothing of the kind is declared; or
        when the labels' type declares a class that no training record has.
    MechanismWarning
        When the dependence between the records allows no claims, and Algorithm 1 answers.

    Notes
    -----
    All mechanisms are in `thresholdout.mechanisms`, all proofs in ``thresholdout/PROOFS.md``; that of the default is
    "The risk that is left". Code in this process can read the holdout from memory: the guard keeps an honest analyst
    from adapting to it, not a secret from a dishonest one.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(20_000, 3)), rng.integers(0, 2, size=20_000)
    >>> guard = Thresholdout((X[:10_000], y[:10_000]), train=(X[10_000:], y[10_000:]))
    >>> answer = guard.ask(lambda X, y: (X[:, 0] > 0) == y)
    >>> abs(answer.value - 0.5) <= answer.half_width < 0.05
    True
    """

    served: ClassVar[frozenset[str]] = frozenset(
        {
            "__repr__", "_answered", "_id", "_made", "_origin", "_recalled", "_repr_html_",
            "_training_folds", "ask", "ask_all", "certificate", "compare", "compare_all", "dependence", "final_check",
            "gate", "history", "join", "n", "parameters", "releases.preview", "releases.record", "releases.recorded",
            "report", "score", "score_all", "scorer", "split", "status", "train",
        }
    )  # fmt: skip
    """What other processes may use of a guard that was sent to them; see
    `thresholdout.guard.sharing.shared_objects`."""

    _stand_in: ClassVar[type[Elsewhere]]
    """What a guard is in other processes; `thresholdout.guard.remote_guard` sets it."""

    @data_in_pairs
    def __init__(
        self,
        holdout: object,
        *,
        train: object | None = None,
        groups: object = None,
        dependence: DependenceModel | TimeOrder | None = None,
        sampling: Sampling = "independent",
        confidence: float = 0.95,
        queries: int | None = None,
        final_check: bool = False,
        mechanism: MechanismName | Claims | SparseVector | Parameters | None = None,
        prior_queries: int | PriorQueries = 0,
        ledger: str | Path | Ledger | None = None,
        random_state: int | NoiseSource | None = None,
        allow_duplicates: bool = False,
    ) -> None:
        records, holdout_groups, train_groups = read_parts(holdout, train, allow_duplicates)
        if isinstance(records, LazyRecords):
            structure = records.declared(dependence, groups=groups)
        else:
            structure = declared_dependence(
                records, dependence, groups=groups, holdout_groups=holdout_groups, train_groups=train_groups
            )
        records.check_groups(
            structure.train_groups, structure.model, together=structure.together, ordered=structure.ordered
        )
        noise = noise_of(random_state)
        declared = Declaration(
            queries=None if queries is None else check_count("queries", queries),
            confidence=declared_confidence(confidence),
            mechanism=check_choice(mechanism),
            sampling=check_sampling(sampling, structure.model, len(records.holdout)),
            final_check=check_final(final_check),
            dependence=structure.model.fingerprint(),
            for_release=noise.for_release,
            prior_queries=check_prior_queries(prior_queries),
        )
        self._begin(records, structure.model, declared, noise, ledger, {})
        if not self._lazy:
            nothing = dependence is None and groups is None and holdout_groups is None
            records.warn_of_mistakes(columns=nothing)

    @classmethod
    def _of_records(
        cls,
        records: Records,
        model: DependenceModel,
        declared: Declaration,
        ledger: str | Path | Ledger | None,
        documents: Mapping[str, str],
    ) -> Self:
        """Return the guard of records that somebody else keeps, with secret texts for its ledger, such as labels."""
        declared = dataclasses.replace(
            declared,
            confidence=declared_confidence(declared.confidence),
            mechanism=check_choice(declared.mechanism),
            sampling=check_sampling(declared.sampling, model, len(records.holdout)),
            dependence=model.fingerprint(),
        )
        guard = cls.__new__(cls)
        guard._begin(records, check_dependence(model, records.n), declared, SystemNoise(), ledger, documents)
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
        """Find the holdout in the ledger and continue, or enter it."""
        self._records, self.n, self.dependence, self._noise = records, records.n, model, noise
        parameters = None if is_there(ledger) else self._choose(declared)  # a known guard has its own
        self._ledger = open_ledger(ledger)  # may make a file, when nothing is left to refuse
        known = known_as(self._ledger, self._records, is_file(ledger))
        if known is not None:
            parameters = stored_parameters(self._ledger, known, declared)
            check_order(self._ledger, known, self._records, parameters, self.dependence)
        elif parameters is None:
            parameters = self._choose(declared)
        self._parameters = parameters
        self._mechanism = self._built(parameters)
        self._assumed, needed = within_limits(self.dependence, declared.confidence)
        prior = declared.prior_queries
        self._confidence = needed if parameters.pays_looks else confidence_after(prior, self.n, needed)
        self._declared = declared
        certificate = certify_parameters(self._assumed, parameters, 1.0 - (1.0 - self._confidence) * (1.0 - FAILURES))
        truth = certificate.truth
        self._alone = dataclasses.replace(
            certificate,
            confidence=declared.confidence,
            truth=truth.given_features() if declared.fixed_features else truth,
            limits=self.dependence.fitted_limits,
            prior_queries=None if prior is None else prior.counted(self.n),
        )
        self._certificates: dict[float, Certificate | None] = {}
        if known is None:
            warn_of_width(self._mechanism, self._alone, declared.queries, self.n)
            state = self._mechanism.start(self._noise).to_text()
            known = enter(self._ledger, self._records, declared, parameters, state, documents)
            check_order(self._ledger, known, self._records, parameters, self.dependence)  # another one was faster
        else:
            check_standing(self._ledger, known, self._mechanism)
        self._id: str = known
        self._interaction = Interaction(
            self._ledger, self._id, self._mechanism, self._noise, parameters, self._confidence
        )
        self._releases = Releases(self._interaction, self.dependence, self._alone)

    def _choose(self, declared: Declaration) -> Parameters:
        parameters = choose_parameters(self.dependence, declared, self._records.train_independent)
        check_served(declared, parameters)
        self._built(parameters)
        return parameters

    def _built(self, parameters: Parameters) -> Mechanism[Any, Any]:
        """Return a mechanism of this holdout, or refuse one that needs more than can be told of it."""
        mechanism = build_mechanism(parameters, self.n)
        if self._lazy:
            check_mechanism(mechanism)
        return mechanism

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
        """Ask one question.

        Parameters
        ----------
        train_values : array-like of shape (n_train,), float, callable or expression
            The question's value for each training record. A number stands for their mean, wherever it comes from (a
            cross-validation estimate, say). A callable is applied to both parts, ``train_values(X, y)``, and returns
            per-record values. A series is taken by its index, where the records have one. Of lazy frames an expression
            of narwhals is asked, ``nw.col("pred") == nw.col("y")``, for both parts, or another one for the holdout.
        holdout_values : array-like of shape (n,), optional
            The value for each holdout record; left out when the question is a callable.
        bounds : tuple of float, default=(0, 1)
            The declared range of the values.
        name : str, optional
            What the history calls the question.
        key : str, optional
            Identity of the question. Asking again with the same key gives the same answer and costs nothing, also
            after a crash. Without one, a function is known again by its code and by what the code uses, as it is then;
            values that come as arrays are a new question each time. A function that may read files, clocks or random
            numbers, or that cannot be pickled, is a new one too, which a warning says once.
        binary : bool, optional
            Whether every value is one end of the range or the other, as that of a prediction that is right or wrong:
            limits are exact binomial ones then. By default it is when all training values are, and beside a number when
            the holdout's values are booleans. A holdout value in between becomes a coin with that mean.

        Returns
        -------
        Answer

        Raises
        ------
        InputError
            When a value is missing or out of range, or the lengths are wrong; nothing is spent.
        BudgetExhausted
            When the answers from the holdout, or the declared number of queries, are used up.

        Examples
        --------
        >>> import numpy as np
        >>> holdout = np.arange(1000.0)
        >>> guard = Thresholdout(holdout, queries=10, mechanism="claims")
        >>> guard.ask(0.25, holdout < 250, name="small").source
        'train'
        >>> guard.ask([0, 0, 1], holdout > 200, name="large").source
        'holdout'
        """
        return self._evaluate(*self._query(train_values, holdout_values, bounds, name, key, binary))

    def _query(
        self,
        train_values: object,
        holdout_values: object | None,
        bounds: tuple[float, float],
        name: str,
        key: str | None,
        binary: bool | None,
    ) -> tuple[Question, Callable[[], Any], bool]:
        """Return a query, what reads the holdout for it, and whether that can fail on the holdout."""
        limits = (0.0, 1.0) if bounds == (0.0, 1.0) else check_bounds(bounds)
        if self._lazy:
            return *self._ask_columns(train_values, holdout_values, limits, name, key, binary), True
        if not callable(train_values):
            if holdout_values is None:
                raise InputError("holdout_values", "nothing", f"{self.n} values, one per holdout record")
            if binary is None and as_real(train_values) is not None:
                binary = is_boolean(holdout_values)
            mean, known = self._records.train_mean(train_values, limits, self._mechanism, binary)
            question = Question(mean, limits, name, key, known)
            holdout_values = self._records.ordered(holdout_values, "holdout_values")
            read = self._interaction.read(holdout_values, self.n, question, "holdout_values")
            return question, lambda: read, False
        if holdout_values is not None:
            raise InputError("holdout_values", "values beside a callable", "only the callable; it serves both parts")
        values, on_holdout = self._records.apply(train_values)
        mean, known = self._records.train_mean(values, limits, self._mechanism, binary)
        key = self._known_by(key, "ask", train_values, limits, binary, rounded(values))
        question = Question(mean, limits, name, key, known)
        return question, self._reading("train_values", question, on_holdout), True

    def _evaluate(self, question: Question, read: Callable[[], Any], fails: bool) -> Answer:
        if not fails:
            return self._interaction.answer(question, read(), self._worth())
        return self._interaction.look("train_values", question, read, self._worth)

    def _worth(self) -> Worth:
        """Return what answers are worth, and a function that says it for a smaller share of beta."""
        certificate = self.certificate
        return certificate, (self._for_share if certificate is self._alone else lambda share: None)

    def _for_share(self, share: float) -> Certificate | None:
        if share not in self._certificates:
            confidence = 1.0 - (1.0 - self._confidence) * share
            self._certificates[share] = (
                certify_parameters(self._assumed, self._parameters, confidence) if confidence < 1.0 else None
            )
        return self._certificates[share]

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
    ) -> Answer:
        """Ask for a fitted estimator's score.

        Parameters
        ----------
        estimator : object or str
            Fitted, with ``predict`` or ``predict_proba`` as the metric needs; the name of a column of predictions,
            where the parts are lazy frames.
        metric : str, Metric or Statistic, default="accuracy"
            One of `thresholdout.scoring.metrics`, which every mechanism answers, or of
            `thresholdout.scoring.statistics` (precision, recall, F1, areas under the curve, R2, a metric on a slice),
            for Thresholdout and guess and check; their names, or scorer objects of scikit-learn. Shares of a random
            number of records (precision, F1) are a little narrower with ``sampling="iid"``.
        cv : int, splitter, iterable of (fit, test) or "training", optional
            How the training value is cross-validated: by clones of the estimator, fitted to parts of the training part
            and tested on the rest. By default in 5 folds as scikit-learn forms them, stratified for classifiers; folds
            of whole groups where these are declared, and of later records where the dependence model is that
            of a series. It takes as many fits as there are folds, which a line in the log
            (``thresholdout.guard.training_values``, at INFO) says. A number is that of such folds. Any splitter will
            do; where it tests some records more than once, or not at all, the training value is the mean over all
            tests. ``"training"`` takes the score on the records that the estimator was fitted to, without a fit; it is
            too good for models that fit them closely, so that their answers are wider and cost more.
        train_values : float or array-like, optional
            The training value itself, in place of `cv`, for models that cannot be fitted again: a cross-validated
            score that is known already, or the metric's value for each training record.
        sample_weight : tuple of two array-likes, optional
            Weights of the training records and of the holdout records, not negative, for metrics that are means. The
            question is then the mean of weight times value, divided by the mean *training* weight: a mean over the
            holdout like any other, whose range grows with the largest training weight (larger holdout weights are cut
            to it), and its half-width with it.
        key : str, optional
            As in `ask`. Without one, the question is known again by the estimator with its fitted state, the metric,
            `cv` or `train_values`, and the weights: running a cell again costs nothing.
        name : str, optional
            What the history calls the candidate; its class with the parameters that are no defaults otherwise.

        Returns
        -------
        Answer
            The metric itself: losses are not negated here. `Answer.truth` says what its interval is about.
        """
        score, cv = get_score(metric), checked_cv(cv)
        check_short_texts(name=name)
        key = self._score_key(key, "score", [estimator], score, cv, train_values, sample_weight)
        told = self._recalled(key, score)
        if told is not None:
            return told
        question, read = self._scoring(estimator, metric, cv, sample_weight, key, train_values)
        answer = self._interaction.look(
            "estimator", question.about(name or class_and_parameters(estimator)), read, self._worth
        )
        return self._beside(answer, question, cv, score.greater_is_better)

    @property
    def certificate(self) -> Certificate:
        """What the answers are worth from now on, and by which route."""
        return self._releases.certificate()

    @property
    def status(self) -> GuardStatus:
        """Queries so far, answers and error budget that are left, information released, epsilon."""
        state, asked = self._interaction.state(), self._ledger.count(self._id)
        start = math.log1p(-self._confidence) - self._parameters.told
        return status_of(self._mechanism, state, asked, start, self.certificate.epsilon)

    @property
    def releases(self) -> Releases:
        """Other private releases about the holdout, to be recorded before anything of them is seen."""
        return self._releases

    @property
    def history(self) -> pd.DataFrame:
        """Every query and answer so far, one row each; nothing in it is secret."""
        from thresholdout.ledger.entry import history_frame

        return history_frame(self._ledger.entries(self._id))

    def _answered(self, key: str) -> bool:
        """Whether the query of this key was asked."""
        return self._ledger.find(self._id, key) is not None

    @property
    def parameters(self) -> Parameters:
        """The mechanism's public parameters, in units of a query's range; their class says which mechanism it is."""
        return self._parameters

    def report(self, title: str = "") -> GuardReport:
        """Return everything public about this guard: `GuardReport.save` writes a page, `GuardReport.plot` draws it.

        Parameters
        ----------
        title : str, optional
            Heading of the page.

        Examples
        --------
        >>> import numpy as np, tempfile
        >>> from pathlib import Path
        >>> from thresholdout import Thresholdout
        >>> guard = Thresholdout(np.arange(1000.0), queries=10)
        >>> guard.report("Spring leaderboard").save(Path(tempfile.mkdtemp()) / "report.html").stat().st_size > 4000
        True
        """
        from thresholdout.report import report_of

        return report_of(
            self._ledger,
            self._id,
            certificate=self.certificate,
            dependence=self.dependence.describe(),
            releases=tuple(map(repr, self._releases.recorded.events)),
            title=title,
        )

    @property
    def train(self) -> Part:
        """The training part, as a tuple of arrays that can be read and not written."""
        return self._records.train

    @classmethod
    def elsewhere(cls, handle: Handle) -> Shared:
        """Return what a guard is in other processes than its own; see `thresholdout.guard.sharing.shared_objects`."""
        return cls._stand_in(handle)

    def __repr__(self) -> str:
        noise = "" if self._noise.for_release else ", seeded noise (simulation only)"
        closed = self._ledger.closed(self._id)
        mechanism = self._mechanism.title
        if closed is not None:
            return f"<Thresholdout: {mechanism} for {self.dependence.describe()}; closed: {closed}>"
        status = self.status
        left = "any number of" if status.answers_left is None else status.answers_left
        private = "" if status.epsilon is None else f"; epsilon {shown_above(status.epsilon)} for all answers"
        described = self.dependence.describe()
        return f"<Thresholdout: {mechanism} for {described}; {left} answers from the holdout left{private}{noise}>"

    def _repr_html_(self) -> str:
        from thresholdout.report.html import guard_html

        return guard_html(self.report(), "Thresholdout")
