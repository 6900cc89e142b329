"""A guard that holds the labels: predictions come in, answers go out.

This is how a leaderboard or an evaluation service uses a guard. Labels are stored in the ledger once, when it is
created; afterwards predictions are scored, and labels of the holdout come out through the guard's answers only.
Labels of the training part are not protected: the history shows the exact training value of every question, so two
predictions that differ in one training record tell its label. Give a training part that may be known.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.certificates import Certificate
from thresholdout.data.identity import handed_out
from thresholdout.data.overlap import check_disjoint
from thresholdout.data.table_dependence import MOST_CLASSES, described, model_of
from thresholdout.data.tables import (
    check_table,
    id_texts,
    is_number_like,
    label_texts,
    labels_of,
    numbers,
    read_table,
    shared_content,
    sorted_by,
    without_index,
)
from thresholdout.errors import InputError, LedgerDamaged, LedgerMismatch, LedgerUnusable, ThresholdoutError
from thresholdout.guard.answer import Answer
from thresholdout.guard.comparing import Side
from thresholdout.guard.comparison import Comparison
from thresholdout.guard.given_features import said_by
from thresholdout.guard.guard import Thresholdout
from thresholdout.ledger import Ledger, open_ledger
from thresholdout.mechanisms.catalogue import kind_named
from thresholdout.mechanisms.kind import Parameters
from thresholdout.planning.declaration import Given, MechanismName, read_declaration
from thresholdout.planning.declared_parameters import INSTEAD, check_choice
from thresholdout.scoring.metrics import Metric, get_metric

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


__all__ = ["PredictionGuard", "read_table"]

DOCUMENT = "labels"
_DECLARED = ("queries", "budget", "confidence", "mechanism", "given")
"""What `PredictionGuard.create` tells the guard."""

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
        given: Given = None,
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
        queries, budget, confidence, mechanism, given, allow_equal_rows, owner
            As for `Thresholdout`. Mechanisms that answer from a part of the records are refused: a table of predictions
            by id is another function of every record.

        Raises
        ------
        InputError
            When a column is missing, an id occurs twice, a label is missing or no label, an edge names an unknown
            record, or more than one kind of dependence is named. Nothing has been written then.
        LedgerMismatch
            When the file holds a guard for other data, or it or the server holds one for this holdout that was declared
            otherwise; it is left as it is.
        """
        _check_mechanism(mechanism)
        needed = [id, label, *([order] if order else []), *([groups] if groups else [])]
        train, holdout = (
            without_index(check_table(table, part, needed), part, needed)
            for table, part in ((train, "train"), (holdout, "holdout"))
        )
        if order is not None:
            train, holdout = sorted_by(train, order, "train"), sorted_by(holdout, order, "holdout")
        ids = id_texts(train[id]), id_texts(holdout[id])
        twice = _first_twice([*ids[0], *ids[1]])
        if twice is not None:
            raise InputError(id, f"id {twice!r} occurs twice", "ids that are unique in both tables together")
        labels = labels_of(train[label], holdout[label], label)
        if not allow_equal_rows and len(train.columns) > 2:
            parts = shared_content(train, holdout, id)
            check_disjoint((parts[0],), (parts[1],))
        document = {
            "id": id,
            "train": {"ids": ids[0], "labels": labels[0].tolist()},
            "holdout": {"ids": ids[1], "labels": labels[1].tolist()},
        }
        document["dependence"] = described(
            document, train, holdout, groups=groups, order=order, window=window, transition=transition, graph=graph
        )
        text = json.dumps(document, allow_nan=False)
        limits: dict[str, Any] = {
            "queries": queries,
            "budget": budget,
            "confidence": confidence,
            "mechanism": mechanism,
            "given": given,
        }
        limits["owner"] = owner
        guard = _guard(document, path, documents={DOCUMENT: text}, **limits)
        _check_stored(guard._ledger, guard._id, document)
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
        identity = _chosen(ledger, guard)
        document = _stored_document(ledger, identity)
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
        labels = self._train_labels
        kind = "text" if labels.dtype.kind == "U" else "numbers"
        return f"read as {kind}, {np.unique(labels).size} different ones in the training part"

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
        self, predictions: pd.DataFrame, metric: str | Metric = "accuracy", *, name: str = "", key: str | None = None
    ) -> Answer:
        """Score predictions for both parts.

        Parameters
        ----------
        predictions : DataFrame
            The id column of the tables, and either ``prediction`` or, for metrics of probabilities, one column
            ``p_<class>`` for each class of the *training* labels (``p_0`` and ``p_1`` for labels 0 and 1). A class
            that only the holdout has counts as one that was given no probability. Every record of both parts once, in
            any order.
        metric : str or Metric, default="accuracy"
            One of `thresholdout.scoring.metrics`.
        name : str, optional
            What the history calls the question; the metric's name stands behind it.
        key : str, optional
            Identity of the question. By default the content of the predictions, so that sending the same predictions
            again gives the same answer, under its first name, and costs nothing.

        Raises
        ------
        InputError
            When a row or column is missing or twice there, predictions are of another kind than the labels, no
            prediction is a label, a number is not finite, or the metric does not suit the labels; nothing is spent, and
            the message shows no label of the holdout. When a metric fails with the holdout's labels only; this is
            charged.
        """
        chosen = get_metric(metric)
        self._check_metric(chosen)
        output, classes, rehearsed = self._read(predictions, chosen)
        title = f"{name} ({chosen.name})" if name else chosen.name
        if key is None:
            key, title = self._known_by(chosen.name, [output], title)
        known, size = self._train_labels, len(self._train_labels)

        def question(ids: NDArray[Any], labels: NDArray[Any]) -> Any:
            if ids[0] == self._document["train"]["ids"][0]:
                return rehearsed[:size]
            return chosen.values(np.concatenate([known, labels]), output, classes)[size:]

        try:
            return self.guard.ask(question, bounds=chosen.bounds, name=title, key=key)
        except InputError as error:
            if error.argument == "train_values":
                raise InputError("metric", error.seen, error.expected) from None
            raise

    def compare(
        self,
        b: pd.DataFrame,
        a: pd.DataFrame,
        metric: str | Metric = "accuracy",
        *,
        name: str = "",
        key: str | None = None,
    ) -> Comparison:
        """Say whether one table of predictions is better than another, and by how much.

        Parameters
        ----------
        b, a : DataFrame
            As in `ask`; the question is whether `b` is better.
        metric, name : optional
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
            self._read(predictions, chosen, f"predictions of {which}") for which, predictions in (("b", b), ("a", a))
        ]
        title = f"{name} ({chosen.name}, difference)" if name else f"{chosen.name}, difference"
        if key is None:
            key, title = self._known_by(f"{chosen.name}, difference", [output for output, _, _ in said], title)
        first, second = (self._side(chosen, *one) for one in said)
        return self.guard._decide(chosen, first, second, key=key, name=title, argument="metric")

    def _side(
        self, metric: Metric, output: NDArray[Any], classes: NDArray[Any] | None, rehearsed: NDArray[Any]
    ) -> Side:
        """Return a table of predictions as comparisons see it."""
        known = self._train_labels
        size = len(known)

        def on_holdout() -> NDArray[np.float64]:
            _, labels = handed_out(self.guard._records.holdout)
            return np.asarray(metric.values(np.concatenate([known, labels]), output, classes)[size:], dtype=np.float64)

        said = None if self.guard.given is None else said_by(metric, output[size:], classes)
        return Side(np.asarray(rehearsed[:size], dtype=np.float64), on_holdout, said)

    def _read(
        self, predictions: pd.DataFrame, metric: Metric, argument: str = "predictions"
    ) -> tuple[NDArray[Any], NDArray[Any] | None, NDArray[Any]]:
        """Return what a table says, its classes, and the metric's values with training labels."""
        try:
            output, classes = self._output(self._in_order(predictions), metric)
            return output, classes, self._rehearsed(metric, output, classes)
        except InputError as error:
            if error.argument == "predictions" != argument:
                raise type(error)(argument, error.seen, error.expected) from None
            raise

    def _known_by(self, asked: str, outputs: list[NDArray[Any]], title: str) -> tuple[str, str]:
        """Return a key for these predictions, and the name under which they were asked before, or the title."""
        digest = hashlib.sha256(f"{asked}\n".encode())
        for output in outputs:
            digest.update(json.dumps(output.tolist()).encode())
        key = digest.hexdigest()[:32]
        stored = self.guard._ledger.find(self.guard._id, key)
        return key, title if stored is None else stored.name

    @property
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
        if metric.response == "predict_proba" and (labels.dtype.kind == "f" or np.unique(labels).size > MOST_CLASSES):
            different = "that are not integers" if labels.dtype.kind == "f" else f"of more than {MOST_CLASSES} kinds"
            seen = f"{name} of training labels {different}"
            raise InputError("metric", seen, "labels that are classes; for numbers, squared_error or absolute_error")
        self.guard.parameters.check_direction(metric.name, metric.greater_is_better)

    def _in_order(self, predictions: pd.DataFrame) -> pd.DataFrame:
        """Return the predictions in the order of the records, training part first."""
        column = check_table(predictions, "predictions", [self.id_column])[self.id_column]
        ids = id_texts(column)
        twice = _first_twice(ids)
        if twice is not None:
            raise InputError("predictions", f"id {twice!r} is there twice", "each record once")
        rows = {value: k for k, value in enumerate(ids)}
        wanted = [*self._document["train"]["ids"], *self._document["holdout"]["ids"]]
        expected = f"one row for each of the {len(wanted)} records of both parts"
        missing = [i for i in wanted if i not in rows]
        if missing:
            raise InputError("predictions", f"{len(missing)} records missing, first {missing[0]!r}", expected)
        if len(rows) != len(wanted):
            known = set(wanted)
            foreign = [i for i in ids if i not in known]
            raise InputError("predictions", f"{len(foreign)} ids of no record, first {foreign[0]!r}", expected)
        return predictions.iloc[[rows[i] for i in wanted]]

    def _output(self, table: pd.DataFrame, metric: Metric) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Take from a table of predictions what a metric needs, in the type of the labels."""
        labels = self._train_labels
        if metric.response == "predict":
            check_table(table, "predictions", ["prediction"])
            output = _predicted(table["prediction"], labels)
            if metric.name in _OF_LABELS and not np.isin(output, labels).any():
                seen = "no value in column 'prediction' is a label of the training part"
                raise InputError("predictions", seen, "predicted labels, written as in the tables of `create`")
            return output, None
        classes = np.unique(labels)
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


def _chosen(ledger: Ledger, start: str | None) -> str:
    """Return the one guard with labels whose identity starts so."""
    labelled = [identity for identity in ledger.guards() if DOCUMENT in ledger.documents(identity)]
    if not labelled:
        raise LedgerUnusable(ledger.location, "it holds no labels; make it with `thresholdout create`")
    found = [identity for identity in labelled if identity.startswith(start or "")]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(identity[:12] for identity in (found or labelled)[:5])
    seen = f"{start!r}, with which {len(found) or 'no'} guards with labels start in {ledger.location}"
    expected = f"the first characters of one guard's identity: {listed}{', ...' if len(found) > 5 else ''}"
    raise InputError("guard", seen if start else f"none, and {len(found)} guards with labels", expected)


def _stored_document(ledger: Ledger, identity: str) -> dict[str, Any]:
    """Return what `PredictionGuard.create` has put into a ledger."""
    text = ledger.document(identity, DOCUMENT)
    try:
        document: dict[str, Any] = json.loads(text or "")
        for part in (document["train"], document["holdout"]):
            if not all(isinstance(one, str) for one in part["ids"]) or len(part["ids"]) != len(part["labels"]):
                raise ValueError
        model_of(document)
        return document
    except (KeyError, RecursionError, TypeError, ValueError):
        pass  # a message could show labels
    raise LedgerDamaged(ledger.location, None, f"guard {identity[:12]!r}...: its labels can't be read")


def _check_stored(ledger: Ledger, identity: str, document: dict[str, Any]) -> None:
    """Refuse a guard for this holdout that was made with something else besides; a new one has just got it."""
    text = ledger.document(identity, DOCUMENT)
    if text is None:
        raise LedgerMismatch(ledger.location, "this holdout's guard was made without labels; give another file")
    stored = _stored_document(ledger, identity)
    words = {"id": "id column", "train": "training part", "holdout": "holdout", "dependence": "dependence"}
    for key, what in words.items():
        if stored.get(key) != document[key]:
            raise LedgerMismatch(
                ledger.location,
                f"this holdout's guard was made with another {what}; give the same ones, or another file",
            )


def _first_twice(ids: list[str]) -> str | None:
    """Return the first text that has occurred before."""
    seen: set[str] = set()
    for i in ids:
        if i in seen:
            return i
        seen.add(i)
    return None


def _predicted(column: pd.Series[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Read predicted labels in the type of the true ones."""
    if labels.dtype.kind != "U":
        return numbers(column, "predictions", "prediction")
    if column.dtype.kind in "iuf" and not is_number_like(np.unique(labels).tolist()):
        raise InputError("predictions", "numbers in column 'prediction'", "text, as the labels are")
    return np.asarray(label_texts(column, "predictions"), dtype=str)
