"""The dependence of a table's records: declared by columns, stored as JSON values, read as a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.data.tables import check_table, id_texts, numbers, shortened, sorted_by, without_index
from thresholdout.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from graphs import DependenceModel

__all__ = ["MOST_CLASSES", "described", "model_of"]

MOST_CLASSES: Final = 100
"""Maximum number of classes, or of states of a chain."""

_TABLE: Final = "a first column of labels, and for each label a column with its probability to be next"


def described(
    ids: tuple[list[str], list[str]],
    labels: list[NDArray[Any]],
    train: pd.DataFrame,
    holdout: pd.DataFrame,
    *,
    groups: str | None,
    order: str | None,
    window: int | None,
    transition: pd.DataFrame | None,
    graph: pd.DataFrame | None,
) -> tuple[dict[str, Any], list[str] | None]:
    """Return a dependence model as JSON values, and the group of each holdout record if there are groups."""
    kinds = {"groups": groups, "window": window, "transition": transition, "graph": graph}
    given = [name for name, value in kinds.items() if value is not None]
    if len(given) > 1:
        raise InputError(given[1], f"a value beside {given[0]}", f"left out beside {given[0]}")
    if order is not None:
        _check_order(train, holdout, order, given)
    elif transition is not None:
        raise InputError("transition", "a table without an order", "given with an order, the name of a column")
    if groups is not None:
        found = id_texts(holdout[groups])
        in_both = set(found) & set(id_texts(train[groups]))
        return {"kind": "groups", "in_both": len(in_both)}, found
    if window is not None:
        return {"kind": "window", "m": _window(len(holdout), window)}, None
    if transition is not None:
        return _declared_chain(labels, transition), None
    if graph is not None:
        return _edge_groups(*ids, graph)
    return {"kind": "independent"}, None


def model_of(stored: dict[str, Any], n: int, groups: list[str] | None) -> DependenceModel:
    """Read a dependence model of n records from the JSON values of `described`."""
    from graphs import Groups, Independent, MarkovChain, MovingWindow

    if stored["kind"] == "groups":
        if groups is None or len(groups) != n:
            raise ValueError
        return Groups(groups)
    if stored["kind"] == "window":
        return MovingWindow(n, stored["m"])
    if stored["kind"] == "chain":
        return MarkovChain(stored["transition"], n, stored["initial"])
    return Independent(n)


def _check_order(train: pd.DataFrame, holdout: pd.DataFrame, order: str, given: list[str]) -> None:
    """Refuse an order without a range, and a holdout that does not come after the training part."""
    import pandas as pd

    if not given:
        advice = (
            "Pass window=, the number of rows beyond which rows are independent, or transition=, a table that is known "
            f"from another source than the training labels: {_TABLE}. Groups can replace the order."
        )
        raise InputError("order", "an order alone", "given with a window or a transition table", advice)
    if given[0] in ("groups", "graph"):
        raise InputError(
            "order", "a column", f"left out beside {given[0]}", "An order needs a window or a transition table."
        )
    size = len(train)
    both = pd.DataFrame({order: [*train[order], *holdout[order]], "held": np.arange(size + len(holdout)) >= size})
    ordered = sorted_by(both, order, "train and holdout")
    early = int(ordered["held"].iloc[:size].sum())
    if early or ordered[order].iloc[size - 1] == ordered[order].iloc[size]:
        seen = f"{early} holdout rows before the end of the training part" if early else "a holdout row at its last row"
        advice = "Rows between known ones have another distribution."
        raise InputError("order", seen, "a column in which the holdout follows the last training row", advice)


def _declared_chain(parts: list[NDArray[Any]], transition: pd.DataFrame) -> dict[str, Any]:
    """Read a declared chain that begins after the last training label, which is public."""
    from graphs import MarkovChain
    from graphs.errors import ArgumentError

    table = check_table(transition, "transition", [])
    names = [str(column) for column in table.columns[1:]]
    if not 1 <= len(names) <= MOST_CLASSES:
        raise InputError("transition", f"a table of {len(names)} labels", f"a table of 1 to {MOST_CLASSES} labels")
    check_table(table, "transition", list(table.columns))
    labels = [part.tolist() for part in parts]
    text = isinstance(labels[0][0], str)
    states = names if text else numbers(table.columns[1:].to_series(), "transition", "its header").tolist()
    column = table.iloc[:, 0]
    rows = id_texts(column) if text else numbers(column, "transition", table.columns[0]).tolist()
    if len(set(rows)) < len(rows) or set(rows) != set(states):
        raise InputError(
            "transition",
            f"rows for {shortened(rows)}, columns for {shortened(states)}",
            "a table with each label once as row and as column",
            f"It has {_TABLE}.",
        )
    foreign = sum(label not in set(states) for part in labels for label in part)
    if foreign:
        raise InputError(
            "transition", f"a table without {foreign} labels of the records", "a table of every label of both parts"
        )
    found = np.stack([numbers(table[name], "transition", name) for name in table.columns[1:]], axis=1)
    matrix = found[[rows.index(state) for state in states]]
    try:
        model = MarkovChain(matrix, len(labels[1]), matrix[states.index(labels[0][-1])])
    except ArgumentError as error:
        raise InputError("transition", error.seen, error.expected, error.advice) from None
    return {"kind": "chain", "transition": model.transition.tolist(), "initial": model.initial.tolist()}


def _window(n: int, window: int) -> int:
    """Check the range of a moving window."""
    from graphs import MovingWindow
    from graphs.errors import ArgumentError

    try:
        MovingWindow(n, window)
    except ArgumentError as error:
        raise InputError("window", error.seen, error.expected, error.advice) from None
    return int(window)


def _edge_groups(train: list[str], holdout: list[str], graph: pd.DataFrame) -> tuple[dict[str, Any], list[str]]:
    """Name each holdout record's connected component by one of its ids.

    Paths through training records count: given a known common effect, its causes depend on each other.
    """
    import networkx as nx

    edges = without_index(check_table(graph, "graph", []), "edges", [])
    titles = list(edges.columns[:2])
    if len(titles) < 2:
        raise InputError("graph", "a table with one column", "a table with two columns of ids")
    check_table(graph, "graph", titles)
    known, protected = {*train, *holdout}, set(holdout)
    if all(str(title) in known for title in titles):
        raise InputError(
            "graph", f"ids in the header, {titles[0]!r} and {titles[1]!r}", "a table with a header, such as a,b"
        )
    pairs = list(zip(*(id_texts(graph[title]) for title in titles), strict=True))
    for row, pair in enumerate(pairs):
        for one in pair:
            if one not in known:
                raise InputError(
                    "graph", f"the unknown id {one!r} in row {row + 1}", "a table of ids of train and holdout"
                )
    network: nx.Graph[str] = nx.Graph()
    network.add_nodes_from(holdout)
    network.add_edges_from(pairs)
    names = {member: min(component) for component in nx.connected_components(network) for member in component}
    touching = sum((a in protected) != (b in protected) for a, b in pairs)
    return {"kind": "groups", "in_both": touching, "from": "edges"}, [names[i] for i in holdout]
