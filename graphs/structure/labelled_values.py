"""Alignment of values of records: labelled ones by label, others by order; a mixture is refused.

A mapping and a pandas Series have labels; lists and arrays have none. Labels 0 to n - 1 in order, those of a Series
without an index of its own, are equivalent to the order. Records have labels where a graph names them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.arguments import IntArray, check_count

__all__ = [
    "Listed",
    "align",
    "by_label",
    "has_labels",
    "in_order",
    "numbered_labels",
    "places_of",
    "read",
    "refuse_unordered",
    "with_labels_of",
]


@dataclass(frozen=True, slots=True)
class Listed:
    """Values of records, with their labels."""

    argument: str  # name for error messages
    items: list[Any]  # the values
    labels: list[Hashable] | None = None  # a label for each of them, or None
    # whether the labels are those of a Series without an index of its own, so that label and order say the same
    numbered: bool = False

    def along(self, labels: Sequence[Hashable]) -> list[Any]:
        """Return the values in the order of these labels, each of which occurs once."""
        if self.labels is None or self.labels == list(labels):
            return self.items
        found = dict(zip(self.labels, self.items, strict=True))
        wanted = dict.fromkeys(labels)
        expected = "one value for each record"
        if len(found) < len(self.labels):
            raise ArgumentError(self.argument, "a label that occurs twice", expected)
        for label in wanted:
            if label not in found:
                raise ArgumentError(self.argument, f"nothing for the record {label!r}", expected)
        for label in found:
            if label not in wanted:
                raise ArgumentError(self.argument, f"a value for {label!r}, which is no record", expected)
        return [found[label] for label in labels]


def has_labels(values: Any) -> bool:
    """Return whether values come with labels: a mapping, or a pandas Series.

    >>> import pandas as pd
    >>> has_labels({"ann": 1}), has_labels(pd.Series([1])), has_labels([1])
    (True, True, False)
    """
    return isinstance(values, Mapping) or (hasattr(values, "iloc") and getattr(values, "ndim", 0) == 1)


def refuse_unordered(argument: str, values: Any, expected: str) -> None:
    """Refuse values without an order of records, or with more than one value for each.

    >>> refuse_unordered("labels", {"ann": 1}, "a sequence with one label for each record")
    Traceback (most recent call last):
    graphs.errors.ArgumentError: labels must be a sequence with one label for each record; got a mapping...
    """
    if isinstance(values, Mapping):
        keys = f"{len(values)} key{'s' if len(values) != 1 else ''}"
        advice = f"Pass list({argument}.values()) if they are in the order of the records."
        raise ArgumentError(argument, f"a mapping ({keys})", expected, advice)
    if isinstance(values, Set):
        raise ArgumentError(argument, "a set, which has no order", expected, "Pass a list in the order of the records.")
    if hasattr(values, "columns"):
        raise ArgumentError(argument, "a table with columns", expected, f'Pass one of its columns, {argument}["name"].')


def in_order(argument: str, values: Any, expected: str) -> list[Any]:
    """Return values as a list, in their order."""
    refuse_unordered(argument, values, expected)
    if isinstance(values, str | bytes):
        raise ArgumentError(argument, f"the text {values!r}", expected)
    if getattr(values, "ndim", 1) != 1:
        raise ArgumentError(argument, f"an array of shape {values.shape}", expected, "Pass a vector.")
    try:
        items: list[Any] = values.tolist() if hasattr(values, "tolist") else list(values)
    except TypeError:
        raise ArgumentError(argument, repr(values), expected) from None
    return items


def numbered_labels(argument: str, labels: Iterable[Any]) -> tuple[IntArray, tuple[Hashable, ...]]:
    """Return the number of each record's label, in order of first appearance, and the labels in that order.

    >>> numbered_labels("groups", ["b", "a", "b"])
    (array([0, 1, 0]), ('b', 'a'))
    """
    expected = "a sequence with one label for each record"
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iu" and labels.ndim == 1 and len(labels):
        values, firsts, inverse = np.unique(labels, return_index=True, return_inverse=True)
        order = np.argsort(firsts)
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.arange(len(order))
        return number[inverse], tuple(values[order].tolist())
    items = in_order(argument, labels, expected)
    if not items:
        raise ArgumentError(argument, "nothing", expected)
    try:
        seen = {label: number for number, label in enumerate(dict.fromkeys(items))}
    except TypeError:
        record, label = next((record, label) for record, label in enumerate(items) if not _can_be_hashed(label))
        found = f"{label!r} of type {type(label).__name__} for record {record}"
        raise ArgumentError(argument, found, "a vector of labels that can be hashed") from None
    for label in seen:
        if label is None or type(label).__name__ in ("NAType", "NaTType") or label != label:
            record = next(record for record, other in enumerate(items) if other is label)
            raise ArgumentError(argument, f"a missing label of record {record} ({label!r})", expected)
    return np.fromiter(map(seen.__getitem__, items), dtype=np.int64, count=len(items)), tuple(seen)


def _can_be_hashed(label: Any) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


def read(argument: str, values: Any, expected: str) -> Listed:
    """Return values with their labels."""
    items = list(values.values()) if isinstance(values, Mapping) else in_order(argument, values, expected)
    return with_labels_of(argument, items, values)


def with_labels_of(argument: str, items: list[Any], values: Any) -> Listed:
    """Return items with the labels of the values that they were made of, one for one.

    >>> with_labels_of("order", [1, 0], {"ann": "later", "bob": "sooner"}).labels
    ['ann', 'bob']
    """
    if isinstance(values, Mapping):
        return Listed(argument, items, list(values))
    if not has_labels(values):
        return Listed(argument, items)
    labels = values.index.tolist()
    return Listed(argument, items, labels, labels == list(range(len(labels))))


def by_label(argument: str, values: Any, labels: Sequence[Hashable], expected: str) -> list[Any]:
    """Return one value for each record, in the order of the records' labels.

    >>> by_label("values", {"bob": 4, "ann": 3}, ["ann", "bob"], "one value for each record")
    [3, 4]
    """
    return align([read(argument, values, expected)], labels)[0]


def places_of(argument: str, names: Iterable[Any], labels: Sequence[Hashable] | None, n: int) -> list[int]:
    """Return the positions of named records: by label where records have labels, else by number.

    >>> places_of("known", ["bob"], ["ann", "bob"], 2), places_of("known", [1], None, 2)
    ([1], [1])
    """
    found = []
    if labels is None:
        for name in names:
            found.append(check_count(argument, name, 0))
            if found[-1] >= n:
                raise ArgumentError(argument, found[-1], f"records from 0 to {n - 1}")
        return found
    place = {label: position for position, label in enumerate(labels)}
    for name in names:
        try:
            found.append(place[name])
        except (KeyError, TypeError):
            shown = ", ".join(map(repr, labels[:3]))
            expected = f"names of records ({shown}, ...)"
            raise ArgumentError(argument, repr(name), expected, "See the model's `records`.") from None
    return found


def align(columns: Sequence[Listed], labels: Sequence[Hashable] | None = None) -> list[list[Any]]:
    """Return the values of several arguments, all in the same order of records.

    >>> import pandas as pd
    >>> one = read("one", pd.Series([1, 2], index=["a", "b"]), "values")
    >>> align([one, read("two", pd.Series([3, 4], index=["b", "a"]), "values")])
    [[1, 2], [4, 3]]
    """
    named = [column for column in columns if column.labels is not None]
    bare = [column for column in columns if column.labels is None]
    if labels is None:
        if not named or (len(columns) == 1):
            return [column.items for column in columns]
        reference: list[Hashable] = list(named[0].labels or ())
        moved = [column for column in named if not column.numbered]
    else:
        reference = list(labels)
        numbers = set(reference) == set(range(len(reference)))
        bare += [column for column in named if column.numbered and not numbers]
        named = [column for column in named if not column.numbered or numbers]
        moved = [column for column in named if column.labels != reference]
    if bare and moved:
        seen = "values without labels"
        expected = f"a pandas Series with labels, as `{moved[0].argument}` is"
        advice = f"Pass {moved[0].argument}.to_numpy() to align both by order."
        raise ArgumentError(bare[0].argument, seen, expected, advice)
    for column in bare:
        if len(column.items) != len(reference):
            seen = f"{len(column.items)} values for {len(reference)} records"
            raise ArgumentError(column.argument, seen, "one value for each record")
    unlabelled = {id(column) for column in bare}
    return [column.items if id(column) in unlabelled else column.along(reference) for column in columns]
