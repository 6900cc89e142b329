"""Dependence models from groups, time orders and graphs.

Each model states no more than its declaration: arbitrary dependence inside a group, within a window of an order, or
along the edges of a graph, and independence otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from graphs.errors import ArgumentError
from thresholdout.data.arguments import check_count
from thresholdout.data.record_labels import is_name
from thresholdout.errors import InputError, InputTypeError

if TYPE_CHECKING:
    import networkx as nx

    from graphs import DependenceModel, DependencyGraph, Groups, MovingWindow

__all__ = [
    "TimeOrder",
    "check_window",
    "graph_model",
    "group_model",
    "one_structure",
    "planned_records",
    "series_model",
    "window_model",
]


@dataclass(frozen=True, slots=True)
class TimeOrder:
    """Declare that records are in time order, for ``Thresholdout(..., dependence=TimeOrder("day", window=7))``.

    Records more than ``window`` apart are independent. The training part is in the same order and comes before the
    holdout, so cross-validation fits earlier records than it tests. Pass exactly one of ``window`` and ``model``.

    Parameters
    ----------
    by : str or array-like, optional
        Name of the column or index level by which both parts are sorted, or one number or time for each holdout record.
        If None, the records are in time order as they are.
    window : int, float or time difference, optional
        Distance beyond which records are independent: a difference of two times, or a number of records without ``by``.
    model : graphs.DependenceModel, optional
        Dependence of the records, in place of a window, such as ``graphs.estimation.fit_autoregression(values of other
        series, n=n)``.

    Examples
    --------
    >>> TimeOrder("day", window=7)
    TimeOrder(by='day', window=7, model=None)
    """

    by: Any = None
    window: Any = None
    model: DependenceModel | None = None

    def __post_init__(self) -> None:
        if isinstance(self.by, bool):
            expected = "the name of a column, times, or None for records in order"
            raise InputTypeError("by", repr(self.by), expected)
        if self.window is not None and self.model is not None:
            advice = "Both state the range of the dependence."
            raise InputError("model", "a model beside window=", "None beside window=", advice)


_WINDOW: Final = "the largest distance of records that depend on each other"


def one_structure(**given: object) -> str | None:
    """Return the name of the given structure, or ``None``; refuse several.

    Examples
    --------
    >>> one_structure(groups=None, graph=None) is None, one_structure(groups=["a"], graph=None)
    (True, 'groups')
    >>> one_structure(groups=["a"], graph=3)
    Traceback (most recent call last):
    thresholdout.errors.InputError: graph must be None beside groups=; got a value. Pass one of the two, or a ...
    """
    there = [name for name, value in given.items() if value is not None]
    if len(there) > 1:
        advice = "Pass one of the two, or a model of both as dependence=."
        if set(there) == {"groups", "order"}:
            advice = (
                "Pass groups alone, in which records may depend on each other in any way, over time too; or "
                "dependence=Panel(model, units) for a series in each of them."
            )
        raise InputError(there[1], "a value", f"None beside {there[0]}=", advice)
    return there[0] if there else None


def check_window(window: object, structure: str | None) -> None:
    """Refuse a window without an order or a graph.

    Examples
    --------
    >>> check_window(3, "groups")
    Traceback (most recent call last):
    thresholdout.errors.InputError: window must be None without order= or graph=; got 3. For records in order of ...
    """
    if window is not None and structure not in ("order", "graph"):
        advice = "For records in order of time pass order=True, for others a column of times as order=."
        raise InputError("window", repr(window), "None without order= or graph=", advice)


def planned_records(n: Any, groups: Any, order: Any, window: object, graph: Any, *, solved: bool = False) -> Any:
    """Return the planned records: a number, a model, or the model of their structure.

    If their number is to be found, records in time order are a function from a number to a model.

    Examples
    --------
    >>> planned_records(None, ["ann", "ann", "bob"], None, None, None)
    <Groups: 3 records in 2 independent groups of 1 to 2>
    >>> planned_records(100, None, True, 7, None)
    <MovingWindow: 100 records in a series, independent when more than 7 apart>
    """
    from graphs import DependenceModel

    structure = one_structure(groups=groups, order=order, graph=graph)
    check_window(window, structure)
    if structure is None:
        return n
    if isinstance(n, DependenceModel):
        raise InputError(structure, "a value", "None beside a model of the records")
    size = None if n is None else check_count("n", n)
    if structure == "graph":
        nodes = list(graph) if hasattr(graph, "nodes") else []
        model = graph_model(graph, window, nodes)
        _check_size("graph", model.n, size)
        return model
    values = groups if structure == "groups" else order
    if is_name(values):
        raise InputError(
            structure, repr(values), "one value for each record", f"Pass the column itself: X[{values!r}]."
        )
    if structure == "groups":
        return group_model(groups, size)
    if order is not True:
        return series_model(order, window, size)
    if size is None and solved:
        window_model(1, window)  # refuses a window that is no number
        return lambda n: window_model(n, window)
    if size is None:
        raise InputError("records", "nothing", "the number of records in order of time, or width= to find it")
    return window_model(size, window)


def group_model(groups: Any, n: int | None) -> Groups:
    """Return the model of records in groups: anything inside a group, independence across.

    Examples
    --------
    >>> group_model(["ann", "ann", "bob"], 3)
    <Groups: 3 records in 2 independent groups of 1 to 2>
    """
    from graphs import Groups

    with _renamed(labels="groups"):
        model = Groups(groups)
    _check_size("groups", model.n, n)
    return model


def window_model(n: int, window: object) -> MovingWindow:
    """Return the model of records in time order that are independent if more than a window apart.

    Examples
    --------
    >>> window_model(100, 7).variance_inflation()
    8.0
    """
    from graphs import MovingWindow

    if window is None:
        raise InputError("window", "nothing", f"{_WINDOW}, as a number of records")
    with _renamed(m="window"):
        return MovingWindow(n, window)  # type: ignore[arg-type]


def series_model(times: Any, window: object, n: int | None) -> MovingWindow:
    """Return the model of records at given times that are independent if more than a window apart.

    Examples
    --------
    >>> series_model([2001, 2003, 2004], 1, 3).independent_groups()
    array([1, 2])
    """
    from graphs import MovingWindow

    if window is None:
        raise InputError("window", "nothing", f"{_WINDOW}, as a difference of two times in order")
    with _renamed(times="order", length="window"):
        model = MovingWindow.of_times(times, window)
    _check_size("order", model.n, n)
    return model


def graph_model(graph: nx.Graph[Any], window: object, records: Sequence[Any]) -> DependencyGraph:
    """Return the model of records on a graph that are independent if more than a number of edges apart.

    Examples
    --------
    >>> import networkx as nx
    >>> graph_model(nx.path_graph(4), 2, range(4)).leakage(0.1, adversary="uninformed").round(6)
    array([0.3, 0.4, 0.4, 0.3])
    """
    import networkx as nx

    from graphs import DependencyGraph
    from graphs.structure.layout import as_networkx

    with _renamed():
        graph = as_networkx(graph)
    if graph.is_directed():
        raise InputError("graph", "a directed graph", "an undirected networkx.Graph whose nodes are the records")
    named = set(records)
    if len(named) < len(records):
        raise InputError("graph", f"{len(records) - len(named)} records with the label of another", _NAMES)
    absent = [label for label in records if label not in graph]
    if absent:
        seen = f"no node for {len(absent)} of {len(records)} records, such as {absent[0]!r}"
        raise InputError("graph", seen, "a graph with a node for each record", f"Nodes have the labels of {_INDEX}.")
    reach = 1 if window is None else check_count("window", window)
    foreign = [label for label in graph if label not in named]
    if foreign:
        seen = f"{len(foreign)} nodes that are no record, such as {foreign[0]!r}"
        # With a window, paths through foreign nodes count, so they are removed after the power.
        near = "graph" if reach == 1 else f"without window=, networkx.power(graph, {reach})"
        advice = f"Pass {near}.subgraph(labels) with the labels of {_INDEX}."
        raise InputError("graph", seen, "a graph whose nodes are the records", advice)
    if reach > 1:
        simple: nx.Graph[Any] = nx.Graph()
        simple.add_nodes_from(graph)
        simple.add_edges_from((a, b) for a, b, *_ in graph.edges() if a != b)
        graph = nx.power(simple, reach)
    with _renamed():
        return DependencyGraph(graph, records=list(records))


_INDEX: Final = "the index of the data frame (or 0, 1, 2, ... in their order, for arrays)"
_NAMES: Final = "given with an index that names every record once"


def _check_size(argument: str, found: int, n: int | None) -> None:
    if n is not None and found != n:
        raise InputError(argument, f"{found} values", f"{n} values, one for each record")


@contextmanager
def _renamed(**names: str) -> Iterator[None]:
    """Rename the arguments in a model's errors to those of the caller."""
    try:
        yield
    except InputError:
        raise
    except ArgumentError as error:
        raise InputError(names.get(error.argument, error.argument), error.seen, error.expected, error.advice) from None
