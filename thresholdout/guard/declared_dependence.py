"""The dependence of a guard's records: the given model, or the one that follows from groups, a time order or a graph.

It depends on the training part, too: training records are public, and can join records of the holdout between which
they stand. PROOFS.md, "Groups, orders and graphs".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.rounding import shown_above
from graphs.structure.sort_keys import sort_ranks
from thresholdout.data.overlap import check_groups
from thresholdout.data.record_labels import aligned, is_name, record_column
from thresholdout.data.record_structure import TimeOrder, group_model, series_model, window_model
from thresholdout.data.series_range import seen_range
from thresholdout.errors import InputError, InputTypeError, OverlapError
from thresholdout.guard.registration import check_dependence

if TYPE_CHECKING:
    from graphs import DependenceModel, DependencyGraph
    from graphs.numerics.arguments import IntArray
    from thresholdout.guard.holdout import Records

__all__ = ["Declared", "among_known", "check_meaning", "checked_names", "declared_dependence"]

_MOST_FACTORS: Final = 8
"""Maximum number of columns that are groups at once."""

_NOTHING_LEFT: Final = 0.5
"""Half-width of one query that is the whole range."""

_NODES: Final = "The nodes are labels of the data frame's index, or 0, 1, 2, ... for arrays."


@dataclass(frozen=True, slots=True)
class Declared:
    """The holdout's model given the training records, and the structure of the training part.

    ``train_groups`` are the training records' groups; ``together`` has those that share a fold for another reason.
    """

    model: DependenceModel
    train_groups: Any = None
    together: IntArray | None = None
    ordered: bool = False


def declared_dependence(
    records: Records,
    dependence: object = None,
    *,
    groups: object = None,
    holdout_groups: Any = None,
    train_groups: Any = None,
) -> Declared:
    """Return the dependence of a guard's records; see `thresholdout.Thresholdout` for the arguments.

    Examples
    --------
    >>> import pandas as pd
    >>> from thresholdout.guard.holdout import Records
    >>> scans = pd.DataFrame({"patient": ["a", "a", "b", "c"], "age": [30.0, 31.0, 40.0, 50.0]})
    >>> records = Records(scans[:2], scans[2:], allow_duplicates=False)
    >>> found = declared_dependence(records, groups="patient")
    >>> found.model, found.train_groups.tolist()
    (<Groups: 2 records in 1 independent group of 2>, ['b', 'c'])
    """
    check_meaning(dependence)
    if dependence is not None and (groups is not None or holdout_groups is not None):
        advice = "A dependence model covers all records, so pass one of the two."
        raise InputError("dependence", f"a {type(dependence).__name__}", "None beside groups", advice)
    if groups is not None:
        if holdout_groups is not None or train_groups is not None:
            raise InputError("groups", "a name", "None beside groups in (X, y, groups)")
        names = checked_names(groups)
        if len(names) > 1:
            return _crossed(records, names)
        named = record_column(names[0], records.holdout, records.labels, "groups", "holdout")
        own = None
        if records.train_size is not None:
            own = record_column(names[0], records.train, records.train_labels, "groups", "training part")
        return Declared(group_model(named, records.n), own)
    if holdout_groups is not None:
        if train_groups is None and records.train_size is not None:
            advice = "No group may be in both parts."
            raise InputError("train", "a part without groups", "(X_train, y_train, groups), like the holdout", advice)
        model = group_model(aligned(holdout_groups, records.labels, "groups"), records.n)
        return Declared(model, _aligned_groups(records, train_groups))
    own = _aligned_groups(records, train_groups)
    if isinstance(dependence, TimeOrder):
        return Declared(_in_order(records, dependence), own, ordered=True)
    if dependence is not None:
        from graphs import DependencyGraph

        if isinstance(dependence, DependencyGraph):
            return Declared(_on_graph(records, dependence), own)
    return Declared(check_dependence(dependence, records.n), own)


def check_meaning(dependence: object) -> None:
    """Refuse a networkx graph, which may be a dependency graph or a Markov field."""
    if hasattr(dependence, "adj") and hasattr(dependence, "is_directed"):
        raise InputTypeError(
            "dependence",
            f"a networkx {type(dependence).__name__}, which can mean two things",
            "graphs.DependencyGraph(graph) or graphs.MarkovField.ising(graph, coupling)",
            "In the first, records without an edge between them are independent. In the second, dependence passes "
            "along the edges.",
        )


def checked_names(groups: object) -> tuple[Any, ...]:
    """Return the names of the columns that are groups."""
    names = tuple(groups) if isinstance(groups, (list, tuple)) else (groups,)
    if not names or len(names) > _MOST_FACTORS or not all(map(is_name, names)):
        seen = (
            f"a {type(groups).__name__} of {len(names)}"
            if isinstance(groups, (list, tuple))
            else f"a {type(groups).__name__}"
        )
        expected = f"the name of a column or index level, or a list of at most {_MOST_FACTORS} names"
        raise InputTypeError("groups", seen, expected, "Pass the groups of records as (X, y, groups) in both parts.")
    return names


def _aligned_groups(records: Records, train_groups: Any) -> Any:
    """Return the groups of the training records in their order."""
    if train_groups is None:
        return None
    return aligned(train_groups, records.train_labels, "groups")


def _crossed(records: Records, names: tuple[Any, ...]) -> Declared:
    """Return the model of records in crossed groups, such as users and items."""
    from graphs import Crossed

    columns = [record_column(name, records.holdout, records.labels, "groups", "holdout") for name in names]
    models = [group_model(column, records.n) for column in columns]
    together = None
    if records.train_size is not None:
        data = records.train
        for name, model in zip(names, models, strict=True):
            column = record_column(name, data, records.train_labels, "groups", "training part")
            try:
                found = check_groups(column, model, records.train_size, records.train_labels)
                together = found if together is None else together
            except OverlapError as error:
                others = " and ".join(repr(other) for other in names if other != name)
                advice = (
                    f"Pass groups={others} if answers are to be about these groups of {name!r} and not about new ones."
                )
                seen = f"{name!r}, whose training part has {error.seen}"
                raise OverlapError("groups", seen, "names of columns without common groups", advice) from None
    factors = {str(name): model.groups for name, model in zip(names, models, strict=True)}
    return Declared(Crossed.of_factors(factors), together=together)


def _in_order(records: Records, order: TimeOrder) -> DependenceModel:
    """Return the model of records in an order of time."""
    by = order.by
    keys = None if by is None else record_column(by, records.holdout, records.labels, "by", "holdout")
    train_keys = None
    if keys is not None and is_name(by) and records.train_size is not None:
        train_keys = record_column(by, records.train, records.train_labels, "by", "training part")
        _check_sorted(train_keys, "train")
    if order.model is not None:
        if keys is not None:
            _check_sorted(keys, "holdout")
        return check_dependence(order.model, records.n)
    if order.window is None:
        seen = "a TimeOrder without window= and model="
        raise InputError("dependence", seen, "a TimeOrder with its range", _ways(records, train_keys))
    if keys is None:
        return window_model(records.n, order.window)
    try:
        model = series_model(keys, order.window, records.n)
    except InputError as error:
        raise InputError(
            "by" if error.argument == "order" else error.argument, error.seen, error.expected, error.advice
        ) from None
    return model if train_keys is None else among_known(model, train_keys, keys, order.window)


def _check_sorted(keys: Any, part: str) -> None:
    """Refuse a part that is not in order."""
    if (np.diff(_ranks(keys)) < 0).any():
        advice = "Take rows by np.argsort(column, kind='stable'), or call data.sort_values."
        raise InputError(
            "dependence", f"unsorted records in {part}=", "an order by which both parts are sorted", advice
        )


def _ranks(*keys: Any) -> IntArray:
    """Return the rank of each key among all of them."""
    try:
        return sort_ranks("by", _joined(*keys))
    except ArgumentError as error:
        raise InputError("dependence", error.seen, error.expected, error.advice) from None


def _joined(*keys: Any) -> Any:
    """Return columns of keys one after the other."""
    import pandas as pd

    if len(keys) == 1:
        return keys[0]
    return pd.concat([pd.Series(column).reset_index(drop=True) for column in keys], ignore_index=True)


def among_known(model: DependenceModel, train_keys: Any, keys: Any, window: object) -> DependenceModel:
    """Return the holdout's model; refuse training records that join records which it keeps apart."""
    both = _joined(train_keys, keys)
    _ranks(both)
    size = len(both) - model.n
    rest = series_model(both, window, len(both)).given(range(size))
    joined = _joined_records(rest, model)
    if joined:
        seen = f"training records between those of the holdout, which join {joined} of {model.n} to more distant ones"
        advice = "Take a training part before the holdout (or after it), or leave a gap of more than the window."
        raise InputError("dependence", seen, "an order in which the training part joins no records", advice)
    return model


def _joined_records(given: DependenceModel, alone: DependenceModel) -> int:
    """Return how many records depend on more others given the known ones than without."""
    near, before = (each.leakage(1.0, adversary="uninformed") for each in (given, alone))
    return int(np.count_nonzero(near > before))


def _ways(records: Records, train_keys: Any) -> str:
    """Return advice on how to declare the range of a series, with the correlations of the training part."""
    unit = "in records" if train_keys is None else "as a difference of two times"
    seen = ""
    parts = records.train if records.train_size is not None else ()
    found = seen_range(parts[1]) if len(parts) == 2 else None
    if found is not None:
        lag, lags = found
        shown = f"up to lag {lag}{_as_time(train_keys, lag)}" if lag else f"at none of {lags} lags"
        seen = f" Labels of the training part are correlated {shown}, which proves nothing about longer ranges."
    return (
        f"Pass window=, the distance beyond which records are independent ({unit}), or model=, "
        f"such as graphs.estimation.fit_autoregression(values of other series, n={records.n}).{seen}"
    )


def _as_time(keys: Any, lag: int) -> str:
    """Return a number of records as a length of time, in words."""
    import pandas as pd

    if keys is None:
        return " records"
    column = pd.Series(keys).reset_index(drop=True)
    try:
        typical = (column - column.shift(lag)).iloc[lag:].median()
    except TypeError:
        return " records"
    return f" records, about {typical:g}" if isinstance(typical, (int, float)) else f" records, about {typical}"


def _on_graph(records: Records, graph: DependencyGraph) -> DependenceModel:
    """Return the model of records that are nodes, given the training records that are nodes too."""
    own = list(range(records.n)) if records.labels is None else records.labels.tolist()
    if len(set(own)) < len(own):
        seen = f"{len(own) - len(set(own))} repeated labels"
        raise InputError("dependence", seen, "a graph beside an index without repetitions", _NODES)
    known = [] if records.train_labels is None or records.labels is None else records.train_labels.tolist()
    both = set(known) & set(own)
    if both:
        seen = f"{len(both)} labels of records of both parts, such as {next(iter(both))!r}"
        raise InputError("dependence", seen, "a graph beside an index without repetitions", _NODES)
    nodes = set(graph.records)
    absent = [label for label in own if label not in nodes]
    if absent:
        seen = f"no node for {len(absent)} of {len(own)} records, such as {absent[0]!r}"
        raise InputError("dependence", seen, "a graph with a node for each record", _NODES)
    alone = graph if own == list(graph.records) else graph.subset(own)
    joined = [label for label in known if label in nodes]
    if not joined:
        return alone
    if len(joined) < len(known):
        seen = f"nodes for {len(joined)} of {len(known)} training records"
        advice = "Omit training records that are independent of the holdout from the graph, all of them."
        raise InputError("dependence", seen, "a graph with a node for each training record, or for none", advice)
    model = graph.subset([*known, *own]).given(known)
    if not _joined_records(model, alone):
        return alone
    if model.half_width() >= _NOTHING_LEFT > alone.half_width():
        seen = (
            f"one with a half-width of {shown_above(model.half_width(), 2)} for one query, and of "
            f"{shown_above(alone.half_width(), 2)} without the training records"
        )
        advice = (
            "Put whole parts of the network into the holdout (communities, components), or drop the training records "
            "that are neighbours of the holdout's from train and graph."
        )
        raise InputError("dependence", seen, "a graph in which training records join few others", advice)
    return model
