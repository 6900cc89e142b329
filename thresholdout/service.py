"""A guard that holds the labels: predictions come in, answers go out.

This is how a leaderboard or an evaluation service uses a guard. Labels are stored in the ledger once, when it is
created; afterwards whoever has the ledger can have predictions scored without ever seeing a label.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.answer import Answer
from thresholdout.certificates import Certificate
from thresholdout.errors import InputError, LedgerUnusable
from thresholdout.fingerprint import check_disjoint
from thresholdout.guard import Thresholdout
from thresholdout.ledger import Ledger, open_ledger
from thresholdout.metrics import Metric, get_metric

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from graphs import DependenceModel

__all__ = ["PredictionGuard", "read_table"]

_DOCUMENT = "labels"
_MOST_STATES = 100


class PredictionGuard:
    """A guard behind which labels are hidden; made by `create`, found again by `open`.

    Attributes
    ----------
    guard : Thresholdout
        The guard itself.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> table = pd.DataFrame({"id": range(4000), "x": range(4000), "y": [0, 1] * 2000})
    >>> path = Path(tempfile.mkdtemp()) / "guard.db"
    >>> service = PredictionGuard.create(path, table[:2000], table[2000:], label="y", queries=100, budget=5)
    >>> predictions = pd.DataFrame({"id": table["id"], "prediction": table["x"] % 2})
    >>> PredictionGuard.open(path).ask(predictions, "accuracy").value
    1.0
    """

    def __init__(self, guard: Thresholdout, document: dict[str, Any]) -> None:
        self.guard = guard
        self._document = document

    @classmethod
    def create(
        cls,
        path: str | Path,
        train: pd.DataFrame,
        holdout: pd.DataFrame,
        *,
        label: str,
        id: str = "id",
        groups: str | None = None,
        window: int | None = None,
        chain: str | None = None,
        edges: pd.DataFrame | None = None,
        queries: int = 1000,
        budget: int = 10,
        confidence: float = 0.95,
        allow_equal_rows: bool = False,
    ) -> PredictionGuard:
        """Make a guard in a new file and put the labels there.

        Parameters
        ----------
        path : str or Path
            The ledger's file. If it exists it must hold the same guard already.
        train, holdout : DataFrame
            One row per record, with the columns that the other arguments name.
        label : str
            Column of the true labels.
        id : str, default="id"
            Column that identifies a record, unique in both tables together.
        groups : str, optional
            Column of the holdout that says which records may depend on each other arbitrarily: `graphs.Groups`.
        window : int, optional
            Rows of the holdout more than ``window`` apart are independent: `graphs.MovingWindow`.
        chain : str, optional
            Column by which both tables are put in order; the labels then form a Markov chain, estimated from the
            training labels, and records depend on each other only through it: `graphs.MarkovChain`.
        edges : DataFrame, optional
            Pairs of ids, in the first two columns, of records that may depend on each other; connected records
            form a group.
        queries, budget, confidence, allow_equal_rows
            As for `Thresholdout`.

        Raises
        ------
        InputError
            When a column is missing, an id occurs twice, a label is missing, or more than one kind of dependence is
            named. Nothing has been written then.
        """
        for name, table in (("train", train), ("holdout", holdout)):
            _check_table(table, name, [id, label, *([chain] if chain else []), *([groups] if groups else [])])
        if chain is not None:
            train, holdout = train.sort_values(chain, kind="stable"), holdout.sort_values(chain, kind="stable")
        ids = [str(v) for part in (train, holdout) for v in part[id]]
        if len(set(ids)) != len(ids):
            seen: set[str] = set()
            twice = next(i for i in ids if i in seen or seen.add(i))  # type: ignore[func-returns-value]
            raise InputError(id, f"id {twice!r} occurs twice", "ids that are unique in both tables together")
        if not allow_equal_rows and len(train.columns) > 2:
            check_disjoint((train.drop(columns=id),), (holdout.drop(columns=id),))
        document = {
            "id": id,
            "train": {"ids": [str(v) for v in train[id]], "labels": train[label].tolist()},
            "holdout": {"ids": [str(v) for v in holdout[id]], "labels": holdout[label].tolist()},
            "dependence": _dependence(train, holdout, label, id, groups, window, chain, edges),
        }
        text = json.dumps(document, allow_nan=False)
        limits = {"queries": queries, "budget": budget, "confidence": confidence}
        return cls(_guard(document, path, documents={_DOCUMENT: text}, **limits), document)

    @classmethod
    def open(cls, path: str | Path) -> PredictionGuard:
        """Find a guard in its file again.

        Raises
        ------
        LedgerUnusable
            When the file is missing, is no ledger, or holds no labels.
        """
        ledger = open_ledger(path, must_exist=True)
        for identity in ledger.guards():
            text = ledger.document(identity, _DOCUMENT)
            if text is not None:
                document: dict[str, Any] = json.loads(text)
                declared: Any = ledger.parameters(identity)["declared"]
                limits = {key: declared[key] for key in ("queries", "budget", "confidence")}
                return cls(_guard(document, ledger, **limits), document)
        raise LedgerUnusable(ledger.location, "it holds no labels; make it with `thresholdout create`")

    @property
    def id_column(self) -> str:
        """Name of the column that identifies a record."""
        return str(self._document["id"])

    @property
    def certificate(self) -> Certificate:
        """What the answers are worth."""
        return self.guard.certificate

    @property
    def note(self) -> str:
        """What the certificate is conditional on, in words; empty when there is nothing to say."""
        both = self._document["dependence"].get("in_both", 0)
        if not both:
            return ""
        return (
            f"{both} groups occur in both parts: the certificate is about the holdout's expected values given the "
            "training records"
        )

    def ask(
        self, predictions: pd.DataFrame, metric: str | Metric = "accuracy", *, name: str = "", key: str | None = None
    ) -> Answer:
        """Score predictions for both parts.

        Parameters
        ----------
        predictions : DataFrame
            The id column of the tables, and either ``prediction`` or, for metrics of probabilities, one column
            ``p_<class>`` for each class. Every record of both parts once, in any order.
        metric : str or Metric, default="accuracy"
            One of `thresholdout.metrics`.
        name : str, optional
            What the history calls the question; the metric's name by default.
        key : str, optional
            Identity of the question. By default the content of the predictions, so that sending the same predictions
            again gives the same answer and costs nothing.

        Raises
        ------
        InputError
            When a row or column is missing, twice there, or not a number where one is needed; nothing is spent.
        """
        chosen = get_metric(metric)
        column = self.id_column
        _check_table(predictions, "predictions", [column])
        rows = {str(value): k for k, value in enumerate(predictions[column])}
        if len(rows) != len(predictions):
            raise InputError("predictions", f"{len(predictions) - len(rows)} ids twice", "each record once")
        wanted = [*self._document["train"]["ids"], *self._document["holdout"]["ids"]]
        missing = [i for i in wanted if i not in rows]
        if missing or len(rows) != len(wanted):
            seen = f"{len(missing)} records missing, first {missing[0]!r}" if missing else "records of other data"
            raise InputError("predictions", seen, f"one row for each of the {len(wanted)} records of both parts")
        labels = np.asarray([*self._document["train"]["labels"], *self._document["holdout"]["labels"]])
        output, classes = _output(predictions.iloc[[rows[i] for i in wanted]], chosen, labels)
        values = chosen.values(labels, output, classes)
        if key is None:
            digest = hashlib.sha256(f"{chosen.name}\n".encode())
            digest.update(json.dumps(output.tolist()).encode())
            key = digest.hexdigest()[:32]
        n_train = len(self._document["train"]["ids"])
        return self.guard.ask(
            values[:n_train], values[n_train:], bounds=chosen.bounds, name=name or chosen.name, key=key
        )


def read_table(path: str | Path, id: str | None = None) -> pd.DataFrame:
    """Read a CSV file; the id column stays text.

    Raises
    ------
    InputError
        When the file cannot be read as a table with a header.
    """
    import pandas as pd

    try:
        return pd.read_csv(path, dtype=None if id is None else {id: str})
    except (OSError, ValueError) as error:  # pandas' parser errors are ValueErrors
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(str(path), first, "a CSV file with a header") from None


def _guard(document: dict[str, Any], ledger: str | Path | Ledger, **settings: Any) -> Thresholdout:
    parts = [(np.asarray(document[p]["ids"]), np.asarray(document[p]["labels"])) for p in ("train", "holdout")]
    return Thresholdout(parts[1], train=parts[0], dependence=_model(document), ledger=ledger, **settings)


def _check_table(table: Any, name: str, columns: list[str]) -> None:
    """Columns that must be there, without missing values."""
    for column in columns:
        if column not in table.columns:
            raise InputError(name, f"columns {', '.join(map(str, table.columns))}", f"a column {column!r} among them")
        if bool(table[column].isna().any()):
            row = int(np.argmax(table[column].isna().to_numpy()))
            raise InputError(name, f"column {column!r} is empty in row {row + 1}", "a value in every row")
    if len(table) < 1:
        raise InputError(name, "no rows", "at least one record")


def _dependence(
    train: pd.DataFrame,
    holdout: pd.DataFrame,
    label: str,
    id: str,
    groups: str | None,
    window: int | None,
    chain: str | None,
    edges: pd.DataFrame | None,
) -> dict[str, Any]:
    """Write a dependence model down, as JSON values."""
    given = [
        n for n, v in (("groups", groups), ("window", window), ("chain", chain), ("edges", edges)) if v is not None
    ]
    if len(given) > 1:
        raise InputError(given[1], f"given beside {given[0]}", "one kind of dependence")
    if groups is not None:
        labels = [str(v) for v in holdout[groups]]
        in_both = set(labels) & {str(v) for v in train[groups]}
        return {"kind": "groups", "labels": labels, "in_both": len(in_both)}
    if window is not None:
        return {"kind": "window", "m": int(window)}
    if chain is not None:
        from graphs import MarkovChain

        kinds = train[label].nunique()
        if kinds > _MOST_STATES:
            raise InputError("chain", f"{kinds} different labels", f"labels of at most {_MOST_STATES} kinds")
        fitted = MarkovChain.fit(train[label].tolist(), n=len(holdout))
        return {"kind": "chain", "transition": np.asarray(fitted.transition).tolist()}
    if edges is not None:
        return {"kind": "groups", "labels": _components([str(v) for v in holdout[id]], edges)}
    return {"kind": "independent"}


def _components(ids: list[str], edges: pd.DataFrame) -> list[str]:
    """Name each record's connected component by one of its ids; edges to other records are left out."""
    import networkx as nx

    if edges.shape[1] < 2:
        raise InputError("edges", f"{edges.shape[1]} column", "two columns of ids")
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(ids)
    known = set(ids)
    pairs = edges.iloc[:, :2].astype(str)
    graph.add_edges_from((a, b) for a, b in pairs.itertuples(index=False) if a in known and b in known)
    names = {member: min(component) for component in nx.connected_components(graph) for member in component}
    return [names[i] for i in ids]


def _model(document: dict[str, Any]) -> DependenceModel:
    """Read a dependence model that `_dependence` wrote down."""
    from graphs import Groups, Independent, MarkovChain, MovingWindow

    stored, n = document["dependence"], len(document["holdout"]["ids"])
    if stored["kind"] == "groups":
        return Groups(stored["labels"])
    if stored["kind"] == "window":
        return MovingWindow(n, stored["m"])
    if stored["kind"] == "chain":
        return MarkovChain(stored["transition"], n)
    return Independent(n)


def _output(table: pd.DataFrame, metric: Metric, labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Take from a table of predictions what a metric needs, in the type of the labels."""
    if metric.response == "predict":
        _check_table(table, "predictions", ["prediction"])
        column = table["prediction"].to_numpy()
        if labels.dtype.kind in "biuf":
            return _numbers(column, "prediction"), None
        return np.asarray([str(v) for v in column]), None
    classes = np.unique(labels)
    names = [f"p_{c}" for c in classes.tolist()]
    _check_table(table, "predictions", names)
    return np.stack([_numbers(table[n].to_numpy(), n) for n in names], axis=1), classes


def _numbers(column: NDArray[Any], name: str) -> NDArray[np.float64]:
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError("predictions", f"text in column {name!r}", "numbers, as the labels are") from None
