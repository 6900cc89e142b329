"""A guard that holds the labels: predictions come in, answers go out.

This is how a leaderboard or an evaluation service uses a guard. Labels are stored in the ledger once, when it is
created; afterwards predictions are scored, and labels of the holdout come out through the guard's answers only.
Labels of the training part are not protected: outside of a competition the history shows the exact training value of
every question, so two predictions that differ in one training record tell its label. Give a training part that may be
known. Where whoever asks knows these labels, a training value is a claim and no evidence; a competition uses none.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from graphs.numerics.arguments import as_real
from thresholdout.certificates import Certificate
from thresholdout.certificates.prior_looks import PriorLooks
from thresholdout.data.identity import handed_out
from thresholdout.data.overlap import check_disjoint
from thresholdout.data.table_dependence import MOST_CLASSES, described, model_of
from thresholdout.data.tables import (
    check_table,
    first_twice,
    id_texts,
    labels_of,
    numbers,
    predicted_labels,
    read_table,
    shared_content,
    sorted_by,
    unordered,
    without_index,
)
from thresholdout.data.values import unit_mean
from thresholdout.errors import (
    InputError,
    InputTypeError,
    ThresholdoutError,
)
from thresholdout.guard.answer import Answer
from thresholdout.guard.comparing import Side
from thresholdout.guard.comparison import Comparison
from thresholdout.guard.given_features import said_by
from thresholdout.guard.guard import Thresholdout
from thresholdout.guard.question import Question
from thresholdout.ledger import Ledger, open_ledger
from thresholdout.mechanisms import Known
from thresholdout.mechanisms.catalogue import kind_named
from thresholdout.mechanisms.kind import Parameters
from thresholdout.planning.declaration import Given, MechanismName, read_declaration
from thresholdout.planning.declared_parameters import INSTEAD, check_choice
from thresholdout.scoring.metrics import Metric, get_metric
from thresholdout.service.standings import Standing, standings
from thresholdout.service.stored_labels import DOCUMENT, check_stored, chosen_guard, stored_document

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


__all__ = ["DOCUMENT", "PredictionGuard", "read_table"]


@dataclass(frozen=True, slots=True)
class Said:
    """What a table of predictions says.

    Attributes
    ----------
    output : ndarray
        Of the holdout's records, behind those of the training part where the table has these.
    classes : ndarray or None
        What its columns stand for, where a metric needs probabilities.
    train : ndarray or None
        The metric's values on the training part.
    """

    output: NDArray[Any]
    classes: NDArray[Any] | None
    train: NDArray[Any] | None


_DECLARED = ("queries", "budget", "confidence", "mechanism", "given", "looks")
"""What `PredictionGuard.create` tells the guard."""

_GIVEN_FEATURES = ("independent", "groups")
"""Dependence for which truths can be given the features."""

_OF_LABELS = ("accuracy", "zero_one_loss")
_OF_NUMBERS = ("squared_error", "absolute_error")


class PredictionGuard:
    """A guard behind which labels are hidden; made by `create`, found again by `open`.

    Attributes
    ----------
    guard : Thresholdout
        The guard itself.
    queries : int or None
        Questions that were declared; ``None`` for any number.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> table = pd.DataFrame({"id": range(4000), "x": range(4000), "y": [0, 1] * 2000})
    >>> path = Path(tempfile.mkdtemp()) / "guard.db"
    >>> service = PredictionGuard.create(path, table[:2000], table[2000:], label="y", queries=100, budget=1)
    >>> predictions = pd.DataFrame({"id": table["id"], "prediction": table["x"] % 2})
    >>> PredictionGuard.open(path).ask(predictions, "accuracy").value
    1.0
    """

    def __init__(self, guard: Thresholdout, document: dict[str, Any], queries: int | None) -> None:
        self.guard = guard
        self.queries = queries
        self._document = document

    @classmethod
    def create(
        cls,
        path: str | Path | Ledger,
        train: pd.DataFrame,
        holdout: pd.DataFrame,
        *,
        label: str,
        id: str = "id",
        groups: str | None = None,
        order: str | None = None,
        window: int | None = None,
        transition: pd.DataFrame | None = None,
        graph: pd.DataFrame | None = None,
        queries: int | None = None,
        budget: int | None = None,
        confidence: float = 0.95,
        mechanism: MechanismName | Parameters | None = None,
        given: Given | Literal["nothing"] = None,
        looks: int | PriorLooks | None = None,
        allow_equal_rows: bool = False,
        owner: str = "",
    ) -> PredictionGuard:
        """Make a guard in a new file and put the labels there.

        Parameters
        ----------
        path : str, Path or Ledger
            The ledger's file. If it exists it must hold the same guard already, with the same training part. Or the
            address of a server, which may hold others beside it; `identity` then tells them apart.
        train, holdout : DataFrame
            One row per record, with the columns that the other arguments name.
        label : str
            Column of the true labels: numbers, or names of classes. Text is taken as numbers only if all labels of
            both tables are numbers and no two of them become one, so "01" and "1" are two classes.
        id : str, default="id"
            Column that identifies a record, unique in both tables together; compared as text.
        groups : str, optional
            Column of the holdout that says which records may depend on each other arbitrarily: `graphs.Groups`.
        order : str, optional
            Column by which both tables are put in order, the holdout after the training part; beside it stands
            ``window`` or ``transition``.
        window : int, optional
            Rows of the holdout more than ``window`` apart are independent, in the order of ``order``, or as they stand
            without it: `graphs.MovingWindow`.
        transition : DataFrame, optional
            The labels in the order of ``order`` form a Markov chain, and records depend on each other only through it:
            `graphs.MarkovChain`, beginning after the last training label. Its law is known from elsewhere: a first
            column of labels, and for each label a column with the probability that it comes next. One that is
            estimated from the training labels is not their law.
        graph : DataFrame, optional
            Pairs of ids, in the first two columns, of records that may depend on each other; records of the holdout
            that are connected within it form a group. Edges that touch training records are left out: the
            certificate is then about the holdout's expected values given the training records.
        mechanism : optional
            As for `Thresholdout`; "competition" by default, where what is expected of a submission is a guess, if
            there is no `budget`. Mechanisms that answer from a part of the records are refused: a
            table of predictions by id is another function of every record.
        given : {"features", "nothing"}, optional
            As for `Thresholdout`. In a competition of independent records or groups it is "features" by default, since
            participants have them: truths are what is expected of the labels of these records. With "nothing", and for
            orders, truths are about features and labels together, and predictions for a record have to come from a
            rule that was chosen without the holdout's features.
        queries, budget, confidence, looks, allow_equal_rows, owner
            As for `Thresholdout`.

        Raises
        ------
        InputError
            When a column is missing, an id occurs twice, a label is missing or no label, an edge names an unknown
            record, or more than one kind of dependence is named. Nothing has been written then.
        LedgerMismatch
            When the file holds a guard for other data, or it or the server holds one for this holdout that was declared
            otherwise; it is left as it is.
        """
        if mechanism is None and budget is None:
            mechanism = "competition"
        _check_mechanism(mechanism)
        needed = [id, label, *([order] if order else []), *([groups] if groups else [])]
        train, holdout = (
            without_index(check_table(table, part, needed), part, needed)
            for table, part in ((train, "train"), (holdout, "holdout"))
        )
        if order is not None:
            train, holdout = sorted_by(train, order, "train"), sorted_by(holdout, order, "holdout")
        ids = id_texts(train[id]), id_texts(holdout[id])
        twice = first_twice([*ids[0], *ids[1]])
        if twice is not None:
            raise InputError(id, f"id {twice!r} occurs twice", "ids that are unique in both tables together")
        labels = labels_of(train[label], holdout[label], label)
        if not allow_equal_rows and len(train.columns) > 2:
            parts = shared_content(train, holdout, id)
            check_disjoint((parts[0],), (parts[1],))
        document: dict[str, Any] = {
            "id": id,
            "train": {"ids": ids[0], "labels": labels[0].tolist()},
            "holdout": {"ids": ids[1], "labels": labels[1].tolist()},
        }
        document["dependence"] = described(
            document, train, holdout, groups=groups, order=order, window=window, transition=transition, graph=graph
        )
        if given is None and mechanism == "competition" and document["dependence"]["kind"] in _GIVEN_FEATURES:
            given = "features"
        text = json.dumps(document, allow_nan=False)
        limits: dict[str, Any] = {
            "queries": queries,
            "budget": budget,
            "confidence": confidence,
            "mechanism": mechanism,
            "given": None if given == "nothing" else given,
            "looks": looks,
        }
        limits["owner"] = owner
        guard = _guard(document, path, documents={DOCUMENT: text}, **limits)
        check_stored(guard._ledger, guard._id, document)
        return cls(guard, document, queries)

    @classmethod
    def open(cls, path: str | Path | Ledger, guard: str | None = None) -> PredictionGuard:
        """Find a guard in its file, or in a ledger that is open, again.

        Parameters
        ----------
        path : str, Path or Ledger
            Where it is; a server may hold many.
        guard : str, optional
            First characters of its `identity`, when there are several with labels.

        Raises
        ------
        LedgerUnusable
            When the file is missing, is no ledger, or holds no labels.
        InputError
            When there are several such guards, or none.
        """
        ledger = open_ledger(path, must_exist=True)
        identity = chosen_guard(ledger, guard)
        document = stored_document(ledger, identity)
        declared, _ = read_declaration(ledger, identity)
        settings = {name: getattr(declared, name) for name in _DECLARED}
        return cls(_guard(document, ledger, owner=ledger.owner(identity), **settings), document, declared.queries)

    @property
    def identity(self) -> str:
        """What its ledger calls the guard; the first characters are enough for `open`."""
        return self.guard._id

    @property
    def id_column(self) -> str:
        """Name of the column that identifies a record."""
        return str(self._document["id"])

    @property
    def certificate(self) -> Certificate:
        """What the answers are worth."""
        return self.guard.certificate

    @property
    def labels(self) -> str:
        """How the labels were read, in words: as numbers, or as text."""
        kind = "text" if self._train_labels.dtype.kind == "U" else "numbers"
        return f"read as {kind}, {self._classes.size} different ones in the training part"

    @property
    def note(self) -> str:
        """What the certificate is conditional on, in words; empty when there is nothing to say."""
        both = self._document["dependence"].get("in_both", 0)
        if not both:
            return ""
        from_edges = self._document["dependence"].get("from") == "edges"
        seen = "edges touch both parts" if from_edges else "groups occur in both parts"
        return f"{both} {seen}: the certificate is about the holdout's expected values given the training records"

    def ask(
        self,
        predictions: pd.DataFrame,
        metric: str | Metric = "accuracy",
        *,
        expected: float | None = None,
        name: str = "",
        key: str | None = None,
        asker: str = "",
        quota: int | None = None,
    ) -> Answer:
        """Score predictions for the holdout.

        Parameters
        ----------
        predictions : DataFrame
            The id column of the tables, and either ``prediction`` or, for metrics of probabilities, one column
            ``p_<class>`` for each class of the *training* labels (``p_0`` and ``p_1`` for labels 0 and 1). A class
            that only the holdout has counts as one that was given no probability. Every record of the holdout once, in
            any order; those of the training part too where nothing is `expected` outside of a competition.
        metric : str or Metric, default="accuracy"
            One of `thresholdout.scoring.metrics`.
        expected : float, optional
            What whoever asks expects of the score, such as a cross-validated one. Left out, it is the score on the
            training part; in a competition, where that proves nothing because everybody has these labels, the last
            answer to this asker.
        name : str, optional
            What the history calls the question; the metric's name stands behind it.
        key : str, optional
            Identity of the question among those of this asker. By default the content of the predictions, so that
            sending the same predictions again gives the same answer, under its first name, and costs nothing.
        asker, quota : optional
            As in `Thresholdout.ask`. The same predictions from somebody else are another question.

        Raises
        ------
        InputError
            When a row or column is missing or twice there, predictions are of another kind than the labels, no
            prediction is a label, a number is not finite, or the metric does not suit the labels; nothing is spent, and
            the message shows no label of the holdout. When a metric fails with the holdout's labels only; this is
            charged.
        BudgetExhausted
            When the guard, or this asker, may ask no more.
        """
        chosen = get_metric(metric)
        self._check_metric(chosen)
        read = self._read(predictions, chosen)
        mean, known = self._expected(chosen, read, expected)
        title = f"{name} ({chosen.name})" if name else chosen.name
        if key is None:
            said = chosen.name if expected is None else f"{chosen.name}, {expected!r} expected"
            key, title = self._known_by(said, [read], title, asker)
        question = Question(mean, chosen.bounds, title, key, known).asked_by(asker, quota)
        reading = self.guard._reading("metric", question, lambda: self._on_holdout(chosen, read))
        return self.guard._interaction.look("metric", question, reading, self.guard._worth)

    def _expected(self, metric: Metric, read: Said, expected: float | None) -> tuple[float, Known]:
        """Return what is expected of a score, in units of its range, and what is known of the values."""
        records, mechanism, guesses = self.guard._records, self.guard._mechanism, self.guard.parameters.guesses
        known = Known(binary=metric.name in _OF_LABELS)
        mean = 0.5
        if read.train is not None:
            try:
                mean, known = records.train_mean(read.train, metric.bounds, mechanism)
            except InputError as error:
                raise InputError("metric", error.seen, error.expected) from None
        if expected is not None:
            if as_real(expected) is None:
                raise InputTypeError("expected", repr(expected), "a number, or nothing")
            return unit_mean([expected], 1, metric.bounds, "expected"), known
        if guesses:
            return 0.5, replace(known, vague=True)
        if read.train is None:
            seen = "rows for the holdout alone, and nothing expected of the score"
            raise InputError("predictions", seen, "rows for both parts, or expected=")
        return mean, known

    def _on_holdout(self, metric: Metric, read: Said) -> NDArray[np.float64]:
        """Return a metric's values on the holdout; after the training labels, so that the metric sees all classes."""
        known, (_, labels) = self._train_labels, handed_out(self.guard._records.holdout)
        output = read.output
        if read.train is None:  # then it sees training labels with predictions of the holdout, which are left out
            output = np.concatenate([np.resize(output, (len(known), *output.shape[1:])), output])
        values = metric.values(np.concatenate([known, labels]), output, read.classes)
        return np.asarray(values, dtype=np.float64)[len(known) :]

    def compare(
        self,
        b: pd.DataFrame,
        a: pd.DataFrame,
        metric: str | Metric = "accuracy",
        *,
        name: str = "",
        key: str | None = None,
        asker: str = "",
        quota: int | None = None,
    ) -> Comparison:
        """Say whether one table of predictions is better than another, and by how much.

        Parameters
        ----------
        b, a : DataFrame
            As in `ask`, with rows for both parts; the question is whether `b` is better.
        metric, name, asker, quota : optional
            As in `ask`.
        key : str, optional
            As in `ask`; by default the content of both tables.

        Returns
        -------
        Comparison
            About the difference, see `Thresholdout.compare`. A share of wins is about records of one law, each of which
            gets the same function of it, which predictions by id need not be.

        Raises
        ------
        InputError
            As `ask`; or when the mechanism answers no comparisons.

        Examples
        --------
        >>> import pandas as pd, tempfile
        >>> table = pd.DataFrame({"id": range(4000), "y": [0, 1] * 2000})
        >>> path = Path(tempfile.mkdtemp()) / "guard.db"
        >>> service = PredictionGuard.create(path, table[:2000], table[2000:], label="y", given="features")
        >>> right = table.rename(columns={"y": "prediction"})
        >>> service.compare(right, right.assign(prediction=0)).verdict
        'better'
        """
        chosen = get_metric(metric)
        self._check_metric(chosen)
        chosen = self.guard._compared(chosen, "difference")
        said = [
            self._read(predictions, chosen, f"predictions of {which}", both=True)
            for which, predictions in (("b", b), ("a", a))
        ]
        title = f"{name} ({chosen.name}, difference)" if name else f"{chosen.name}, difference"
        if key is None:
            key, title = self._known_by(f"{chosen.name}, difference", said, title, asker)
        first, second = (self._side(chosen, one) for one in said)
        return self.guard._decide(
            chosen, first, second, key=key, name=title, argument="metric", asker=asker, quota=quota
        )

    def standings(self, metric: str | Metric = "accuracy") -> list[Standing]:
        """Return who is certified to be how good, by the best submission of each asker.

        Parameters
        ----------
        metric : str or Metric, default="accuracy"
            Which submissions count.

        Raises
        ------
        InputError
            When the mechanism tells the best score of all only.

        Examples
        --------
        >>> import pandas as pd, tempfile
        >>> table = pd.DataFrame({"id": range(4000), "y": [0, 1] * 2000})
        >>> path = Path(tempfile.mkdtemp()) / "guard.db"
        >>> service = PredictionGuard.create(path, table[:2000], table[2000:], label="y")
        >>> right = table.rename(columns={"y": "prediction"})
        >>> answer = service.ask(right, expected=0.9, asker="ann")
        >>> answer = service.ask(right.assign(prediction=0), expected=0.5, asker="bob")
        >>> [(team.asker, team.first, team.last) for team in service.standings()]
        [('ann', 1, 1), ('bob', 2, 2)]
        """
        chosen = get_metric(metric)
        if self.guard._mechanism.about == "best":
            seen = f"{self.guard._mechanism.name}, which tells the best score of all only"
            raise InputError("mechanism", seen, "a guard with mechanism='competition'")
        entries = self.guard._ledger.entries(self.guard._id)
        return standings(entries, chosen.name, greater_is_better=chosen.greater_is_better)

    def _side(self, metric: Metric, read: Said) -> Side:
        """Return a table of predictions as comparisons see it."""
        assert read.train is not None
        size = len(self._train_labels)
        said = None if self.guard.given is None else said_by(metric, read.output[size:], read.classes)
        return Side(np.asarray(read.train, dtype=np.float64), lambda: self._on_holdout(metric, read), said)

    def _read(
        self, predictions: pd.DataFrame, metric: Metric, argument: str = "predictions", *, both: bool = False
    ) -> Said:
        """Return what a table says, with the metric's values on the training part where it has rows for that."""
        try:
            table, trains = self._in_order(predictions, both)
            output, classes = self._output(table, metric)
            rehearsed = self._rehearsed(metric, output, classes)
            return Said(output, classes, rehearsed[: len(self._train_labels)] if trains else None)
        except InputError as error:
            if error.argument == "predictions" != argument:
                raise type(error)(argument, error.seen, error.expected) from None
            raise

    def _known_by(self, asked: str, said: list[Said], title: str, asker: str) -> tuple[str, str]:
        """Return a key for these predictions, and the name under which this asker sent them before, or the title."""
        digest = hashlib.sha256(f"{asked}\n".encode())
        for one in said:
            digest.update(json.dumps(one.output.tolist()).encode())
        key = digest.hexdigest()[:32]
        stored = self.guard._ledger.find(self.guard._id, key, asker)
        return key, title if stored is None else stored.name

    @cached_property
    def _train_labels(self) -> NDArray[Any]:
        return np.asarray(self._document["train"]["labels"])

    def _check_metric(self, metric: Metric) -> None:
        """Refuse a metric that does not suit the training labels or the mechanism."""
        labels, name = self._train_labels, metric.name.partition("(")[0]
        if name in _OF_NUMBERS and labels.dtype.kind == "U":
            seen = f"{name} of labels that were read as text"
            raise InputError(
                "metric", seen, "a metric of classes, such as 'accuracy', or a guard whose labels are numbers"
            )
        if metric.response == "predict_proba" and (labels.dtype.kind == "f" or self._classes.size > MOST_CLASSES):
            different = "that are not integers" if labels.dtype.kind == "f" else f"of more than {MOST_CLASSES} kinds"
            seen = f"{name} of training labels {different}"
            raise InputError("metric", seen, "labels that are classes; for numbers, squared_error or absolute_error")
        self.guard.parameters.check_direction(metric.name, metric.greater_is_better)

    def _in_order(self, predictions: pd.DataFrame, both: bool) -> tuple[pd.DataFrame, bool]:
        """Return the predictions in the order of the records, training part first, and whether that part is there."""
        import pandas as pd

        ids = id_texts(check_table(predictions, "predictions", [self.id_column])[self.id_column])
        places, size = self._ids.get_indexer(pd.Index(ids, dtype=object)), len(self._train_labels)
        trains = both or bool(((places >= 0) & (places < size)).any())
        wanted: pd.Index[Any] = self._ids if trains else self._ids[size:]
        places = places if trains else places - size
        rows = np.full(len(wanted), -1)
        rows[places[places >= 0]] = np.flatnonzero(places >= 0)
        if (rows < 0).any() or len(ids) != len(wanted):
            raise unordered(ids, wanted, "both parts" if trains else "the holdout")
        return predictions.iloc[rows], trains

    @cached_property
    def _ids(self) -> pd.Index[Any]:
        """The ids of both parts, those of the training part first."""
        import pandas as pd

        found: pd.Index[Any] = pd.Index(
            [*self._document["train"]["ids"], *self._document["holdout"]["ids"]], dtype=object
        )
        return found

    @cached_property
    def _classes(self) -> NDArray[Any]:
        """The different labels of the training part."""
        return np.unique(self._train_labels)

    def _output(self, table: pd.DataFrame, metric: Metric) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Take from a table of predictions what a metric needs, in the type of the labels."""
        labels = self._train_labels
        if metric.response == "predict":
            check_table(table, "predictions", ["prediction"])
            output = predicted_labels(table["prediction"], labels)
            if metric.name in _OF_LABELS and not np.isin(output, self._classes).any():
                seen = "no value in column 'prediction' is a label of the training part"
                raise InputError("predictions", seen, "predicted labels, written as in the tables of `create`")
            return output, None
        classes = self._classes
        names = [f"p_{c}" for c in classes.tolist()]
        check_table(table, "predictions", names)
        extra = [str(c) for c in table.columns if str(c).startswith("p_") and c not in names and c != self.id_column]
        if extra:
            seen = f"a column {extra[0]!r}, which is no class of the training labels"
            raise InputError("predictions", seen, f"{len(names)} columns p_<class>, one for each of these classes")
        return np.stack([numbers(table[n], "predictions", n) for n in names], axis=1), classes

    def _rehearsed(self, metric: Metric, output: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
        """Compute a metric's values with training labels, again and again, in place of the holdout's.

        What fails here tells nothing about the holdout, and is refused for nothing.
        """
        try:
            return np.asarray(metric.values(np.resize(self._train_labels, len(output)), output, classes))
        except ThresholdoutError as error:
            if isinstance(error, InputError) and error.argument == "estimator":
                raise InputError("predictions", error.seen, error.expected) from None
            raise
        except Exception as error:
            seen = f"{type(error).__name__} from {metric.name} (its message could show labels)"
            raise InputError("metric", seen, "a metric that suits the labels and predictions") from None


def _check_mechanism(mechanism: object) -> None:
    """Refuse to answer about records that are told apart by their ids from a part of these."""
    chosen = check_choice(mechanism)
    named = kind_named(chosen) if isinstance(chosen, str) else None
    kind = type(chosen) if isinstance(chosen, Parameters) else named.parameters if named else None
    if kind is not None and kind.from_parts:
        name = chosen if isinstance(chosen, str) else kind.__name__
        seen = f"{name}, which answers from a part of the records, for predictions that come in by id"
        raise InputError("mechanism", seen, INSTEAD)


def _guard(document: dict[str, Any], ledger: str | Path | Ledger, **settings: Any) -> Thresholdout:
    parts = [(np.asarray(document[p]["ids"]), np.asarray(document[p]["labels"])) for p in ("train", "holdout")]
    return Thresholdout(parts[1], train=parts[0], dependence=model_of(document), ledger=ledger, **settings)
