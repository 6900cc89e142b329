"""Queries about tables of predictions: scores, differences, and proposals that release one bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from graphs.numerics.arguments import as_real
from thresholdout.data.values import UnitRecords, clipped, unit_mean, unit_records
from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.answer import Answer
from thresholdout.guard.comparison import Comparison
from thresholdout.guard.decision import Decision
from thresholdout.guard.given_features import said_by
from thresholdout.guard.guard import Thresholdout
from thresholdout.guard.model_queries import Expected, Side, among_counted
from thresholdout.guard.query import Query
from thresholdout.mechanisms import Known
from thresholdout.mechanisms.claims.gate_states import Rules
from thresholdout.mechanisms.claims.proposals import (
    Betting,
    DifferenceTest,
    Divergence,
    GroupBetting,
    Inflated,
    Proposed,
    Signs,
)
from thresholdout.scoring.metrics import Metric, get_metric
from thresholdout.service.corrections import CorrectedLabels, Labels
from thresholdout.service.labelled_records import LabelledRecords
from thresholdout.service.prediction_reader import OF_LABELS, PredictionReader, Reading

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from thresholdout.ledger.entry import Entry
    from thresholdout.noise.sources import NoiseSource
    from thresholdout.scoring.metrics import Metric
    from thresholdout.service.prediction_reader import Reading

__all__ = ["AsksAboutPredictions", "DecidesAboutPredictions"]


class AsksAboutPredictions:
    """Base class of the queries of a guard that holds labels.

    Attributes
    ----------
    guard : Thresholdout
        The guard itself.
    """

    guard: Thresholdout
    _records: LabelledRecords
    _reader: PredictionReader
    _labels: CorrectedLabels

    def read(self, predictions: pd.DataFrame, metric: str | Metric = "accuracy") -> Reading:
        """Check a table of predictions and sort it by record, without reading a label of the holdout.

        Use it to report errors in a table before it is scored, or to use one table in several queries.

        Parameters
        ----------
        predictions : DataFrame
            Table with one row for each record, in the format that `ask` describes.
        metric : str or Metric, default "accuracy"
            Metric by which the predictions will be scored.

        Returns
        -------
        Reading
            The checked table, which can be passed to queries in place of the original one. Attribute ``digest``
            identifies the predictions, and ``encoded`` holds the table as bytes, which `decoded` restores.

        Raises
        ------
        InputError
            If `ask` would refuse the table because of its ids, its format or the training labels.

        Examples
        --------
        >>> import pandas as pd
        >>> from thresholdout.ledger import open_ledger
        >>> from thresholdout.service import PredictionGuard
        >>> table = pd.DataFrame({"id": range(400), "y": [0, 1] * 200})
        >>> service = PredictionGuard.create(open_ledger(None), table[:200], table[200:], label="y")
        >>> reading = service.read(table[200:].rename(columns={"y": "prediction"}))
        >>> service.decoded(reading.encoded).digest == reading.digest
        True
        """
        return self._reader.read(predictions, self._checked(metric))

    def stored(self, key: str, client: str = "") -> Entry | None:
        """Return the stored answer to an earlier query, identified by the key that was passed to `ask`.

        Parameters
        ----------
        key : str
            Key of the query, as passed to `ask`.
        client : str, default ""
            Client that asked the query.

        Returns
        -------
        Entry or None
            Entry of the history, or None if the key was not used with the current labels.
        """
        return self.guard._ledger.find(self.guard._id, self._labels.now().key(key), client)

    def decoded(self, encoded: bytes) -> Reading:
        """Restore a table of predictions that `read` has checked, from its bytes.

        Parameters
        ----------
        encoded : bytes
            Attribute ``encoded`` of the result of `read`.

        Returns
        -------
        Reading
            The checked table, which can be passed to queries in place of the original one.

        Raises
        ------
        InputError
            If the bytes do not encode a checked table, or belong to another guard.
        """
        return Reading.decoded(encoded, self.guard._id)

    def ask(
        self,
        predictions: pd.DataFrame | Reading,
        metric: str | Metric = "accuracy",
        *,
        expected: float | None = None,
        name: str = "",
        key: str | None = None,
        client: str = "",
        quota: int | None = None,
        since: float | None = None,
    ) -> Answer:
        """Score predictions on the holdout.

        Parameters
        ----------
        predictions : DataFrame or Reading
            Table with the id column of `create`, and either the column ``prediction`` or, for metrics of probabilities,
            one column ``p_<class>`` for each class of the *training* labels (``p_0`` and ``p_1`` for labels 0 and 1). A
            class that only the holdout has gets probability zero. Every record of the holdout needs one row, in any
            order. Records of the training part need rows too, unless `expected` is given or the guard is a leaderboard.
            Or the result of `read` for such a table.
        metric : str or Metric, default "accuracy"
            Metric of the score, one of `thresholdout.scoring.metrics`.
        expected : float, optional
            Score that the client anticipates, such as a cross-validated one. If None, the score on the training part.
            In a leaderboard a table may have no rows for that part: then the default is the client's last answer, or
            for its first query the median of the first answers to others.
        name : str, default ""
            Name of the query in the history, followed by the name of the metric.
        key : str, optional
            Key that identifies the query among those of this client. Repeating a key returns the stored answer at no
            cost. If None, a key is computed from the predictions, so identical predictions get the original answer.
        client : str, default ""
            Name of the client that sends the query. Identical predictions of another client are another query.
        quota : int, optional
            Maximum number of answers to this client, including this one. If None, there is no quota.
        since : float, optional
            POSIX timestamp in seconds; only answers at or after this time count against the quota. If None, all count.

        Returns
        -------
        Answer
            The score, as the attribute `value`, and the `interval` that contains the true score.

        Raises
        ------
        InputError
            If a row or column is missing or repeated, predictions are of another kind than the labels, no prediction is
            a label, a number is not finite, or the metric does not suit the labels. The query is not charged then, and
            the message shows no label of the holdout. Also if the metric fails with the labels of the holdout only, in
            which case the query is charged.
        BudgetExhausted
            If the budget of the guard or the quota of this client is exhausted.
        """
        chosen = self._checked(metric)
        read = self._reader.read(predictions, chosen)
        mean, known = self._expected(chosen, read, expected)
        title = f"{name} ({chosen.name})" if name else chosen.name
        said = chosen.name if expected is None else f"{chosen.name}, {expected!r} expected"

        def ask(labels: Labels) -> Answer:
            part = labels.part(self.guard, len(self._records.train_labels))
            known_as, called = self._known_by(labels, key, said, [read], title, client)
            groups = known.groups
            if part is not None and groups is not None:
                own = self.guard._models._groups
                groups = None if part.effective is None else own(read.train, chosen.bounds, labels.counted)
            about = Query(mean, chosen.bounds, called, known_as, replace(known, part=part, groups=groups))
            query = labels.asked(about.asked_by(client, quota, since))
            among = None if part is None else part.records
            values = lambda: labels.among(self._on_holdout(chosen, read, labels))  # noqa: E731
            reading = self.guard._models.reading("metric", query, values, among=among)
            return self.guard._engine.evaluate("metric", query, reading)

        return self._labels.with_these(ask)

    def compare(
        self,
        b: pd.DataFrame | Reading,
        a: pd.DataFrame | Reading,
        metric: str | Metric = "accuracy",
        *,
        expected: float | None = None,
        name: str = "",
        key: str | None = None,
        client: str = "",
        quota: int | None = None,
        since: float | None = None,
    ) -> Comparison:
        """Test whether one table of predictions is better than another, and return the difference of their scores.

        Parameters
        ----------
        b, a : DataFrame or Reading
            Tables of predictions, as for `ask`. The query is whether `b` is better than `a`.
        metric : str or Metric, default "accuracy"
            Metric of the scores.
        expected : float, optional
            Anticipated difference, the score of `b` minus that of `a`. If None, the difference on the training part. In
            a leaderboard there is no default where one of the tables has no rows for that part.
        name : str, default ""
            Name of the query in the history.
        key : str, optional
            Identity of the query among those of this client. If None, the content of both tables.
        client, quota, since : optional
            Client that asks, and its quota, as for `ask`.

        Returns
        -------
        Comparison
            Attribute `verdict` is "better", "worse" or "not settled". `value` is the difference of the scores, `b`
            minus `a`, and `interval` contains the true difference; see `Thresholdout.compare`. There is no win rate,
            because it requires one prediction function for identically distributed records.

        Raises
        ------
        InputError
            If `ask` would refuse one of the tables, or the mechanism answers no comparisons.
        BudgetExhausted
            If the budget of the guard or the quota of this client is exhausted.

        Examples
        --------
        >>> import pandas as pd
        >>> from thresholdout.ledger import open_ledger
        >>> from thresholdout.service import PredictionGuard
        >>> table = pd.DataFrame({"id": range(4000), "y": [0, 1] * 2000})
        >>> service = PredictionGuard.create(open_ledger(None), table[:2000], table[2000:], label="y",
        ...                                  sampling="fixed_features")
        >>> right = table.rename(columns={"y": "prediction"})
        >>> service.compare(right, right.assign(prediction=0)).verdict
        'better'
        """
        chosen = self.guard._models.compared(self._checked(metric), "difference")
        said = [
            self._reader.read(predictions, chosen, f"predictions of {which}")
            for which, predictions in (("b", b), ("a", a))
        ]
        title = f"{name} ({chosen.name}, difference)" if name else f"{chosen.name}, difference"
        stands_in = self._stands_in(chosen, said, expected)
        asked = "" if expected is None else f", {expected!r} expected"

        def ask(labels: Labels) -> Comparison:
            about = f"{chosen.name}, difference{asked}"
            known_as, called = self._known_by(labels, key, about, said, title, client)
            first, second = (self._side(chosen, one, labels) for one in said)
            query, read = self.guard._models.versus(chosen, first, second, "difference", known_as, called, stands_in)
            query = labels.asked(query.asked_by(client, quota, since))
            answer = self.guard._engine.evaluate("metric", query, read)
            better = chosen.greater_is_better
            return Comparison.of(answer, self.guard.n, greater_is_better=better, about="difference")

        return self._labels.with_these(ask)

    def _stands_in(self, metric: Metric, said: list[Reading], expected: float | None) -> Expected | None:
        """Return the substitute for the difference on the training part; ``None`` where that is used."""
        if expected is not None and as_real(expected) is None:
            raise InputTypeError("expected", repr(expected), "a number, or None")
        if expected is None and all(one.train is not None for one in said):
            return None
        if expected is None and not self.guard.parameters.anticipates:
            raise InputError(
                "predictions",
                "rows for the holdout alone",
                "tables with rows for both parts",
                "Or pass the anticipated difference by expected=.",
            )
        return Expected(expected, metric.name in OF_LABELS)

    def check_metric(self, metric: str | Metric) -> None:
        """Check that a metric can be used with this guard, without asking a query.

        Parameters
        ----------
        metric : str or Metric
            The metric.

        Raises
        ------
        InputError
            If the metric does not suit the training labels or the mechanism, so that `ask` would refuse it.
        """
        self._checked(metric)

    def _checked(self, metric: str | Metric) -> Metric:
        """Return a metric that suits the training labels and the mechanism."""
        chosen = get_metric(metric)
        self._reader.check_metric(chosen)
        self.guard.parameters.check_direction(chosen.name, chosen.greater_is_better)
        return chosen

    def _expected(self, metric: Metric, read: Reading, expected: float | None) -> tuple[float, Known]:
        """Return the anticipated score in units of its range, and the known properties of the values."""
        records, mechanism, guesses = self.guard._records, self.guard._mechanism, self.guard.parameters.anticipates
        known = Known(binary=metric.name in OF_LABELS)
        # The middle of the range stands for an unknown mean.
        mean = 0.5
        if read.train is not None:
            try:
                mean, known = records.train_mean(read.train, metric.bounds, mechanism)
            except InputError as error:
                raise InputError("metric", error.seen, error.expected, error.advice) from None
        if expected is not None:
            if as_real(expected) is None:
                raise InputTypeError("expected", repr(expected), "a number, or None")
            return unit_mean([expected], 1, metric.bounds, "expected"), known
        if read.train is None and guesses:
            return 0.5, replace(known, vague=True)
        if read.train is None:
            raise InputError(
                "predictions",
                "rows for the holdout alone",
                "a table with rows for both parts",
                "Or pass the anticipated score by expected=.",
            )
        return mean, known

    def _on_holdout(self, metric: Metric, read: Reading, labels: Labels) -> NDArray[np.float64]:
        """Return a metric's values on the holdout, computed behind the training labels, which have all classes."""
        known = self._records.train_labels
        output = read.output
        if read.train is None:  # then it sees training labels with predictions of the holdout, which are left out
            output = np.concatenate([np.resize(output, (len(known), *output.shape[1:])), output])
        values = metric.values(np.concatenate([known, labels.values]), output, read.classes)
        return np.asarray(values, dtype=np.float64)[len(known) :]

    def _side(self, metric: Metric, read: Reading, labels: Labels) -> Side:
        """Return a table of predictions as a side of a comparison."""
        size = 0 if read.train is None else len(self._records.train_labels)
        said = (
            None
            if self.guard._declared.sampling != "fixed_features"
            else said_by(metric, read.output[size:], read.classes)
        )
        train = None if read.train is None else np.asarray(read.train, dtype=np.float64)
        values = lambda: self._on_holdout(metric, read, labels)  # noqa: E731
        return Side(train, values, said, counted=labels.counted)

    def _known_by(
        self, labels: Labels, key: str | None, asked: str, said: list[Reading], title: str, client: str
    ) -> tuple[str, str]:
        """Return a key for these predictions, and the name under which this client sent them first, or the title.

        With the caller's own key, return that key and the title.
        """
        if key is not None:
            return labels.key(key), title
        about = "\n".join([asked, *(one.digest for one in said)])
        key = labels.key(sha256(about.encode()).hexdigest()[:32])
        stored = self.guard._ledger.find(self.guard._id, key, client)
        return key, title if stored is None else stored.name


class DecidesAboutPredictions(AsksAboutPredictions):
    """Queries of a guard that holds labels, with proposals."""

    def propose(
        self,
        new: pd.DataFrame | Reading,
        old: pd.DataFrame | Reading,
        metric: str | Metric = "accuracy",
        *,
        name: str = "",
        key: str | None = None,
        client: str = "",
        quota: int | None = None,
        since: float | None = None,
    ) -> Decision:
        """Test whether new predictions are certified to be better than old ones, and release only this decision.

        Use it instead of `compare` if only the decision matters: one bit releases less information than a difference,
        so the holdout answers more queries. A rejection costs hundredths of a nat. The scores on the training part are
        not used, since clients know the labels there. Predictions that differ on too few records for any certified
        improvement are rejected without reading the holdout, at no cost.

        Parameters
        ----------
        new, old : DataFrame or Reading
            Tables of predictions, as for `ask`. Rows for the holdout are enough.
        metric : str or Metric, default "accuracy"
            Metric of the comparison.
        name : str, default ""
            Name of the query in the history.
        key : str, optional
            Identity of the query among those of this client. If None, the content of both tables.
        client, quota, since : optional
            Client that asks, and its quota, as for `ask`.

        Returns
        -------
        Decision
            Object that is true if `new` is certified to be better. A rejection does not show that `new` is worse. The
            attribute ``cost`` is the information released in nats, and ``gain`` is always zero here.

        Raises
        ------
        InputError
            If `ask` would refuse one of the tables, or the mechanism answers no comparisons.
        BudgetExhausted
            If the budget of the guard or the quota of this client is exhausted.

        Examples
        --------
        >>> import pandas as pd
        >>> from thresholdout.ledger import open_ledger
        >>> from thresholdout.service import PredictionGuard
        >>> table = pd.DataFrame({"id": range(400), "y": [0, 1] * 200})
        >>> service = PredictionGuard.create(open_ledger(None), table[:200], table[200:], label="y")
        >>> right = table[200:].rename(columns={"y": "prediction"})
        >>> constant = right.assign(prediction=0)
        >>> bool(service.propose(right, constant, client="ann")), bool(service.propose(constant, right, client="ann"))
        (True, False)
        """
        chosen = self.guard._models.compared(self._checked(metric), "difference")
        said = [
            self._reader.read(predictions, chosen, f"predictions that are {which}")
            for which, predictions in (("new", new), ("old", old))
        ]
        title = f"{name} ({chosen.name}, proposal)" if name else f"{chosen.name}, proposal"
        most = chosen.bounds[1] - chosen.bounds[0]
        known = Known(difference=True, proposal=True)

        def ask(labels: Labels) -> Decision:
            known_as, called = self._known_by(labels, key, f"{chosen.name}, proposal", said, title, client)
            about = Query(0.5, (-most, most), called, known_as, known).asked_by(client, quota, since)
            test, which = self._contest(chosen, said[0], said[1], labels)
            entry, repeated = self.guard._engine.decide(
                labels.asked(about),
                lambda state: Proposed.planned(state, client, test),
                lambda: self._tested(chosen, said[0], said[1], labels, which, test),
                0.0,
                0.0,
                0.0,
            )
            return self._decided(entry, repeated, test, name)

        return self._labels.with_these(ask)

    def _contest(
        self, metric: Metric, new: Reading, old: Reading, labels: Labels
    ) -> tuple[DifferenceTest, NDArray[np.bool_]]:
        """Return the test of both, and the records that it uses, from public values alone."""
        from graphs import Groups

        def group_index(groups: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.unique(groups, return_inverse=True)[1].astype(np.int64)

        n, parameters = self.guard.n, self.guard._mechanism.parameters
        if self.guard._declared.sampling != "fixed_features":
            rules, everywhere = Rules(parameters, n, 0.0, sign=False), np.ones(n, dtype=bool)
            if parameters.independent:
                return Betting(n), everywhere
            if isinstance(self.guard.dependence, Groups):
                return GroupBetting(n, group_index(self.guard.dependence.groups)), everywhere
            kind = Divergence if rules.test_name == "relative entropy" else Inflated
            return kind(n, rules.effective), everywhere
        b, a = (said_by(metric, one.output[-n:], one.classes) for one in (new, old))
        differ = among_counted(b.differs(a, n), labels.counted)[0]
        if isinstance(self.guard.dependence, Groups) and differ.any():
            index = group_index(self.guard.dependence.groups[differ])
            if np.bincount(index).max() > 1:
                return GroupBetting(index.size, index), differ
        two = metric.name in OF_LABELS and self._records.classes.size <= 2
        return (Signs if two else Betting)(int(np.count_nonzero(differ))), differ

    def _tested(
        self,
        metric: Metric,
        new: Reading,
        old: Reading,
        labels: Labels,
        which: NDArray[np.bool_],
        test: DifferenceTest,
    ) -> Callable[[NoiseSource], float]:
        """Return the test on the differences on the holdout."""
        n, bounds = self.guard.n, metric.bounds
        worst, most = bounds[0 if metric.greater_is_better else 1], bounds[1] - bounds[0]
        values = [clipped(self._on_holdout(metric, one, labels), n, bounds, "metric", worst) for one in (new, old)]
        gain = (values[0] - values[1]) if metric.greater_is_better else (values[1] - values[0])
        found: UnitRecords = unit_records(gain[which], test.records, (-most, most), "metric")
        return lambda noise: test.log_p(found, noise)

    def _decided(self, entry: Entry, repeated: bool, test: DifferenceTest, name: str) -> Decision:
        """Return the decision in an entry of the ledger."""
        assert entry.log_error_budget is not None
        charged = entry.source in ("keep", "reject") and not repeated
        before = self.guard._engine.log_error_budget_before(entry) if charged else entry.log_error_budget
        return Decision(
            outcome="keep" if entry.source == "keep" else "reject",
            certified=entry.source == "keep",
            test=test.name,
            cost=max(0.0, before - entry.log_error_budget),
            error_budget_left=math.exp(entry.log_error_budget),
            remaining=entry.remaining,
            gain=0.0,
            query=entry.query,
            name=name,
            repeated=repeated,
        )
