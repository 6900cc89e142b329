"""The guard: the one class that most people need."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from graphs.numerics.arguments import as_real
from graphs.numerics.rounding import shown_above
from thresholdout.certificates import Certificate
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.certificates.prior_looks import PriorLooks, check_looks, confidence_after
from thresholdout.certificates.problem import declared_confidence, within_limits
from thresholdout.data.arguments import check_count
from thresholdout.data.identity import Part
from thresholdout.data.values import check_bounds, is_boolean
from thresholdout.errors import InputError
from thresholdout.guard.answer import Answer
from thresholdout.guard.answering import FAILURES, Worth
from thresholdout.guard.automatic_keys import rounded
from thresholdout.guard.candidate_names import class_and_parameters
from thresholdout.guard.comparing import ComparesModels
from thresholdout.guard.declared_dependence import declared_dependence
from thresholdout.guard.gating import MakesGates
from thresholdout.guard.given_features import check_given, check_served, truth_given
from thresholdout.guard.holdout import Records
from thresholdout.guard.interaction import Interaction
from thresholdout.guard.lazy_records import check_mechanism, records_of
from thresholdout.guard.likely_mistakes import data_in_pairs, named_as_one, warn_of_width
from thresholdout.guard.progress import ReportsProgress
from thresholdout.guard.question import Question
from thresholdout.guard.registration import (
    check_documents,
    check_noise,
    check_order,
    enter,
    is_file,
    is_there,
    known_as,
    optional_number,
    stored_parameters,
)
from thresholdout.guard.searching import ServesSearches
from thresholdout.guard.sharing.shared_objects import Elsewhere, Handle, Shared
from thresholdout.guard.state_check import check_standing
from thresholdout.guard.training_folds import checked_cv
from thresholdout.ledger import Ledger, open_ledger
from thresholdout.ledger.entry_checks import check_short_texts
from thresholdout.mechanisms import Mechanism
from thresholdout.mechanisms.catalogue import build_mechanism
from thresholdout.mechanisms.kind import Parameters
from thresholdout.noise.sources import NoiseSource
from thresholdout.planning.declaration import Declaration, Given, MechanismName, check_budget
from thresholdout.planning.declared_parameters import (
    check_choice,
    check_final,
    choose_parameters,
    record_groups,
)
from thresholdout.planning.request import check_declaration
from thresholdout.scoring.metrics import Metric
from thresholdout.scoring.statistics import Statistic, get_score

if TYPE_CHECKING:
    from datetime import timedelta

    import networkx as nx
    import numpy as np
    from numpy.typing import ArrayLike

    from graphs import DependenceModel

__all__ = ["Thresholdout"]


@named_as_one
class Thresholdout(Shared, ComparesModels, MakesGates, ServesSearches, ReportsProgress):
    """A holdout that can be asked many adaptive questions.

    A question is a mean over records: the accuracy of a model, a loss, the frequency of a pattern. The guard claims
    that its value on the holdout is near what the training part and earlier answers say, and tests the claim. A claim
    that is confirmed is the answer and costs next to nothing; one that is not is made again, further out, and leaves
    less of the probability of error that all answers share. With probability ``confidence`` the truth is in the
    ``interval`` of every answer, for all questions at once and however each was chosen from earlier answers.

    Parameters
    ----------
    holdout : tuple (X, y), array, data frame or lazy frame
        The records to protect, one row per record. Of a lazy frame (Polars, DuckDB, Dask, Spark) the engine counts what
        a question needs, and nothing else is ever in memory; questions are expressions of narwhals then.
    train : tuple (X, y), array, data frame or lazy frame, optional
        The training part, needed by `score` and by questions given as functions. It must share no record with the
        holdout.
    dependence : graphs.DependenceModel, optional
        How the holdout's records depend on each other; independent records by default, where neither ``groups``,
        ``order`` nor ``graph`` says it. The certificate holds under this model, so it is the one assumption to think
        about.
    groups : str, list of str, or array-like of hashable, optional
        Group of each holdout record, such as the patient: records of one group may depend on each other in any way, and
        groups are independent. The name of a column of the data frame or of an index level, which both parts have, or
        one value for each record. A column is only read, and stays among the features: an identifier is none, so keep
        it in the index (``X.set_index("patient")``), or drop it in a pipeline. Several names, ``["user", "item"]``,
        are effects of each kind on their records (`graphs.Crossed`).
    train_groups : str or array-like of hashable, optional
        Group of each training record, beside ``groups`` as an array or ``dependence=Groups(patients)``; where
        ``groups`` is a name, it is read from the training part. Groups in both parts are refused.
    order : True, str or array-like, optional
        Declares that the records of both parts stand in order of time (True), or what they are sorted by: the name of a
        column or index level, or a number or time for each holdout record. The training part is in this order, too, and
        comes before the holdout. Beside it stands ``window``, or a model as ``dependence``.
    window : int, float or time difference, optional
        Beside ``order``: how far apart records have to be to be independent of each other, in records for
        ``order=True``, else as a difference of two times. Beside ``graph``: how many edges apart, 1 by default;
        where paths lead through nodes that are no records, ``graph=networkx.power(network, window).subgraph(index)``
        stands for both, since a subgraph has lost these paths.
    graph : networkx.Graph, optional
        Which records may depend on each other: records without an edge between them are independent. Its nodes are the
        index of the holdout (0, 1, 2, ... for arrays), and that of the training part where its records have neighbours
        in the holdout. For dependence that passes on from node to node take a model, such as
        ``dependence=graphs.MarkovField.ising(graph, coupling)``.
    queries : int, optional
        How many questions may be asked. Any number by default; declaring it makes answers a little narrower.
    budget : int, optional
        How many questions may be answered from the holdout, because their first claim was not confirmed. Any number by
        default.
    at_most : float, optional
        Largest half-width of an answer whose first claim is confirmed, in units of the range. A question that could
        only be answered with a larger one is refused, free of charge (but for the first statistic that is no mean).
    confidence : float, default=0.95
        Probability with which all half-widths hold at once, in (0, 1).
    final_check : bool, default=False
        Keep most of the risk for a last question about the model that is chosen, see `final_check`: at least 0.7 of it
        while every claim is confirmed. Other answers are 9 to 29 % wider, since claims reach so far out that few fail.
    private : float, optional
        Epsilon: noise in all claims, such that all answers of the guard together are differentially private under
        replacing one record. It is shared among twice `budget` claims that fail, or 10 of them, and the guard answers
        no more after these. Only means over records are answered, one question after another. Intervals are much wider:
        the noise moves the edges by tens of records.
    mechanism : {"thresholdout", "guess-and-check", "competition", "gaussian", "ladder", "splitting"} or parameters
        How questions are answered. "thresholdout", the default, makes claims, with a little Laplace noise in their
        edges; "guess-and-check" is the same without noise. "competition" is for many clients, whose training values are
        guesses: a wrong one costs one letter. "gaussian" answers everything from the holdout, with noise; "ladder"
        tells only the best score so far; "splitting" takes a fresh part for each question (see
        `identically_distributed`). Parameters of `thresholdout.mechanisms` serve as they are, with their own limits.
    threshold, noise_scale, grid : float, optional
        Parameters of Algorithm 1 by hand, in units of a query's range: the sparse vector with a threshold, noise and
        a budget of answers from the holdout, which are private. It is what answers where a dependence model bounds no
        deviation of a mean.
    identically_distributed : bool, default=False
        Declares that all records (or groups, of one size) have one law, and that every question will be the same
        function of each record, whatever its number, id or place. Only then may a part of them answer for all, and
        models be compared by their share of wins.
    given : {"features"}, optional
        Declares that the features of the holdout's records are known to everybody, so that all truths of this guard
        are what is expected of their labels, given the features: about these records, not about a population. Models
        are then compared on the records where they say something else, which are fewer and no secret. For pairs
        (X, y) of independent records or groups; answers from a part of the records, Algorithm 1 by hand, and statistics
        that are no means are refused.
    ledger : str, path or Ledger, optional
        Where the guard's state lives. A file name makes a SQLite file (or continues it: answers that are left, noisy
        threshold and history go on exactly where they were). In memory by default, gone with the process. A holdout has
        one guard, and one error budget, in a ledger: whoever opens it finds that guard by its records.
    noise : NoiseSource, optional
        Exact noise from the operating system's entropy by default. `SeededNoise` is for simulations only.
    allow_equal_rows : bool, default=False
        Accept rows that occur in both parts because they are different records here (few distinct values, say).
    looks : int or PriorLooks, optional
        How many scores of this holdout were seen before the guard was made. Intervals are wider by what these can have
        told, however each look was chosen from the ones before. A number stands for scores in [0, 1] that are shares
        of the records or were read to at most four decimals; ``PriorLooks(10, values=301)`` says how many values each
        could have had, which makes answers narrower: 301 for an accuracy on 300 records.
    documents : mapping of str to str, optional
        Secret texts to keep in the ledger with a new guard, such as the labels of a service.
    label : str, optional
        For lazy frames: name of the column of labels, by which columns of predictions are scored and compared.

    Attributes
    ----------
    certificate : Certificate
        What the answers are worth from now on, and by which route.
    looks : PriorLooks or None
        As declared.
    recorded_looks : Composed
        Other private looks at the holdout, see `record_look`.
    n : int
        Number of records in the holdout.
    dependence : DependenceModel
        As declared, or `graphs.Independent`.
    given : {"features"} or None
        As declared.

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
        When a column of the training part names what records belong to, or dates, and nothing of the kind is declared;
        or when the labels' type declares a class that no training record has.
    MechanismWarning
        When the dependence between the records leaves no claims, and Algorithm 1 answers.

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
            "__repr__", "_answered", "_asked", "_id", "_made", "_origin", "_recalled", "_repr_html_",
            "_training_folds", "ask", "ask_all", "certificate", "certificate_with", "compare", "compare_all",
            "dependence", "epsilon", "exhausted", "final_check", "final_half_width", "gate", "given", "history", "join",
            "looks", "n", "parameters", "record_look", "recorded_looks", "remaining", "report", "risk_left",
            "score", "score_all", "scorer", "split", "told", "train",
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
        dependence: DependenceModel | None = None,
        groups: ArrayLike | None = None,
        train_groups: ArrayLike | None = None,
        order: ArrayLike | None = None,
        window: float | timedelta | np.timedelta64 | None = None,
        graph: nx.Graph[Any] | None = None,
        queries: int | None = None,
        budget: int | None = None,
        at_most: float | None = None,
        confidence: float = 0.95,
        final_check: bool = False,
        private: float | None = None,
        mechanism: MechanismName | Parameters | None = None,
        threshold: float | None = None,
        noise_scale: float | None = None,
        grid: float | None = None,
        identically_distributed: bool = False,
        given: Given = None,
        ledger: str | Path | Ledger | None = None,
        noise: NoiseSource | None = None,
        allow_equal_rows: bool = False,
        looks: int | PriorLooks | None = None,
        documents: Mapping[str, str] | None = None,
        label: str | None = None,
    ) -> None:
        own = isinstance(holdout, Records)  # by a guard that keeps labels
        self._records: Records = cast(Records, holdout) if own else records_of(holdout, train, allow_equal_rows, label)
        self.n = self._records.n
        of_records = self._frames.declared if self._lazy else partial(declared_dependence, self._records)
        structure = of_records(
            dependence, groups=groups, train_groups=train_groups, order=order, window=window, graph=graph
        )
        self.dependence = structure.model
        self._records.check_groups(
            structure.train_groups, self.dependence, together=structure.together, ordered=structure.ordered
        )
        self._noise: NoiseSource = check_noise(noise)
        kept = check_documents(documents)
        declared = Declaration(
            queries=None if queries is None else check_count("queries", queries),
            budget=check_budget(budget),
            confidence=declared_confidence(confidence),
            at_most=optional_number("at_most", at_most),
            private=optional_number("private", private),
            threshold=optional_number("threshold", threshold),
            noise_scale=optional_number("noise_scale", noise_scale),
            grid=optional_number("grid", grid),
            mechanism=check_choice(mechanism),
            identically_distributed=check_declaration(identically_distributed),
            given=check_given(given, self.dependence, identically_distributed, len(self._records.holdout)),
            final_check=check_final(final_check),
            dependence=self.dependence.fingerprint(),
            for_release=self._noise.for_release,
            looks=check_looks(looks),
        )
        parameters = None if is_there(ledger) else self._choose(declared)  # a known guard has its own
        self._ledger = open_ledger(ledger)  # may make a file, when nothing is left to refuse
        self._open(declared, parameters, is_file(ledger), kept)
        nothing = dependence is None and groups is None and order is None and graph is None
        if not self._lazy and not own:
            self._records.warn_of_mistakes(columns=nothing)

    def _choose(self, declared: Declaration) -> Parameters:
        parameters = choose_parameters(self.dependence, declared, self._records.train_independent)
        check_served(declared.given, parameters)
        self._built(parameters)
        return parameters

    def _built(self, parameters: Parameters) -> Mechanism[Any, Any]:
        """Return a mechanism of this holdout, or refuse one that needs more than can be told of it."""
        mechanism = build_mechanism(parameters, self.n, record_groups(self.dependence))
        if self._lazy:
            check_mechanism(mechanism)
        return mechanism

    def _open(
        self, declared: Declaration, parameters: Parameters | None, sole: bool, documents: dict[str, str]
    ) -> None:
        """Find this holdout in the ledger and continue, or enter it."""
        known = known_as(self._ledger, self._records, sole)
        if known is not None:
            parameters = stored_parameters(self._ledger, known, declared)
            check_order(self._ledger, known, self._records, parameters, self.dependence)
        elif parameters is None:
            parameters = self._choose(declared)
        self._parameters = parameters
        self._mechanism = self._built(parameters)
        self._assumed, needed = within_limits(self.dependence, declared.confidence)
        self.looks = declared.looks
        self._confidence = needed if parameters.pays_looks else confidence_after(self.looks, self.n, needed)
        self._one_law = declared.identically_distributed
        self.given = declared.given
        certificate = certify_parameters(self._assumed, parameters, 1.0 - (1.0 - self._confidence) * (1.0 - FAILURES))
        truth = truth_given(self.given, certificate.truth)
        self._alone = dataclasses.replace(
            certificate,
            confidence=declared.confidence,
            truth=truth,
            limits=self.dependence.fitted_limits,
            looks=None if self.looks is None else self.looks.counted(self.n),
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

    def ask(
        self,
        train_values: object,
        holdout_values: object | None = None,
        *,
        bounds: tuple[float, float] = (0.0, 1.0),
        name: str = "",
        key: str | None = None,
        binary: bool | None = None,
        client: str = "",
        quota: int | None = None,
        since: float | None = None,
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
        client : str, optional
            Who asks, where several do: the history says so, and keys are each client's own.
        quota : int, optional
            How many questions this client may have asked, with this one; checked in the transaction that answers it.
        since : float, optional
            From which time on these count, in POSIX seconds; all of them by default.

        Returns
        -------
        Answer

        Raises
        ------
        InputError
            When a value is missing or out of range, or the lengths are wrong; nothing is spent.
        BudgetExhausted
            When the answers from the holdout, the declared number of questions, or what this client may ask, are used
            up.

        Examples
        --------
        >>> import numpy as np
        >>> holdout = np.arange(1000.0)
        >>> guard = Thresholdout(holdout, queries=10, budget=2, mechanism="thresholdout")
        >>> guard.ask(0.25, holdout < 250, name="small").source
        'train'
        >>> guard.ask([0, 0, 1], holdout > 200, name="large").source
        'holdout'
        """
        limits = (0.0, 1.0) if bounds == (0.0, 1.0) else check_bounds(bounds)
        if self._lazy:
            question, count = self._ask_columns(train_values, holdout_values, limits, name, key, binary)
            return self._interaction.look("train_values", question.asked_by(client, quota, since), count, self._worth)
        if not callable(train_values):
            if holdout_values is None:
                raise InputError("holdout_values", "nothing", f"{self.n} values, one per holdout record")
            if binary is None and as_real(train_values) is not None:
                binary = is_boolean(holdout_values)
            mean, known = self._records.train_mean(train_values, limits, self._mechanism, binary)
            question = Question(mean, limits, name, key, known).asked_by(client, quota, since)
            holdout_values = self._records.ordered(holdout_values, "holdout_values")
            read = self._interaction.read(holdout_values, self.n, question, "holdout_values")
            return self._interaction.answer(question, read, self._worth())
        if holdout_values is not None:
            raise InputError("holdout_values", "values beside a callable", "only the callable; it serves both parts")
        values, on_holdout = self._records.apply(train_values)
        mean, known = self._records.train_mean(values, limits, self._mechanism, binary)
        key = self._known_by(key, "ask", train_values, limits, binary, rounded(values))
        question = Question(mean, limits, name, key, known).asked_by(client, quota, since)
        read = self._reading("train_values", question, on_holdout)
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
            number of records (precision, F1) are a little narrower with ``identically_distributed=True``.
        cv : int, splitter, iterable of (fit, test) or "training", optional
            How the training value is cross-validated: by clones of the estimator, fitted to parts of the training part
            and tested on the rest. By default in 5 folds as scikit-learn forms them, stratified for classifiers; folds
            of whole groups where `train_groups` are declared, and of later records where the dependence model is that
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
        left = "any number of" if self.remaining is None else self.remaining
        private = "" if self.epsilon is None else f"; epsilon {shown_above(self.epsilon)} for all answers"
        described = self.dependence.describe()
        return f"<Thresholdout: {mechanism} for {described}; {left} answers from the holdout left{private}{noise}>"

    def _repr_html_(self) -> str:
        from thresholdout.report.html import guard_html

        return guard_html(self.report(), "Thresholdout")
