"""Labels of records: the index of a data frame or series, by which values find their records.

Values with labels are matched by label and values without labels by order. Other labels than those of the records are
refused.
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, Final

from thresholdout.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from thresholdout.data.identity import Part

__all__ = ["aligned", "is_name", "record_column", "record_labels"]


def record_labels(data: Part, name: str) -> pd.Index[Any] | None:
    """Return the labels of a part's records, or ``None`` if no piece has labels.

    Examples
    --------
    >>> import pandas as pd
    >>> X, y = pd.DataFrame({"a": [1, 2]}, index=[7, 5]), pd.Series([0, 1], index=[5, 7])
    >>> record_labels((X, y.loc[X.index]), "train").tolist(), record_labels((X, y.to_numpy()), "train").tolist()
    ([7, 5], [7, 5])
    >>> record_labels((X, y), "train")
    Traceback (most recent call last):
    thresholdout.errors.InputError: train must be (X, y) with one index; got a y whose index has the labels of X in ...
    """
    labels = None
    for piece in data:
        own = _index(piece)
        if labels is None or own is None:
            labels = own if labels is None else labels
        elif not labels.equals(own):
            same = len(labels) == len(own) and bool(labels.sort_values().equals(own.sort_values()))
            what = "the labels of X in another order" if same else "other labels than that of X"
            advice = "Pass (X, y.loc[X.index]) to take y by label, or (X, y.to_numpy()) if it is in the order of X."
            raise InputError(name, f"a y whose index has {what}", "(X, y) with one index", advice)
    return labels


def aligned(values: Any, labels: pd.Index[Any] | None, argument: str) -> Any:
    """Return per-record values in the order of the records; values without labels are in that order.

    Examples
    --------
    >>> import pandas as pd
    >>> aligned(pd.Series([0.0, 1.0], index=["b", "a"]), pd.Index(["a", "b"]), "holdout_values").tolist()
    [1.0, 0.0]
    """
    own = _index(values)
    if own is None or own is labels:
        return values
    by_order = "Pass values.to_numpy() if they are in the order of the records."
    if labels is None:
        import pandas as pd

        if own.equals(pd.RangeIndex(len(own))):
            return values
        raise InputError(argument, "values with an index for records without one", "values without an index", by_order)
    if own.equals(labels):
        return values
    if len(own) == len(labels) and own.is_unique and own.isin(labels).all() and labels.is_unique:
        return values.loc[labels]
    seen = f"values with another index than that of the {len(labels)} records"
    raise InputError(argument, seen, "values with the index of the records", by_order)


def _index(piece: Any) -> pd.Index[Any] | None:
    """Return the index of a pandas object."""
    if not hasattr(piece, "iloc"):
        return None
    index = piece.index
    return index if hasattr(index, "is_unique") else None


_SHOWN: Final = 8
"""Maximum number of column names in a message."""


def is_name(given: object) -> bool:
    """Whether a value is the name of a column, and not a column.

    Examples
    --------
    >>> is_name("patient"), is_name(3), is_name([3]), is_name(True)
    (True, True, False, False)
    """
    return isinstance(given, (str, Integral)) and not isinstance(given, bool)


def record_column(given: Any, data: Part, labels: pd.Index[Any] | None, argument: str, part: str) -> Any:
    """Return one value per record, in the records' order: the column or index level of this name, or the given values.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"patient": ["a", "b"], "age": [30, 40]}, index=pd.Index([7, 9], name="scan"))
    >>> record_column("patient", (X,), X.index, "groups", "holdout").tolist()
    ['a', 'b']
    >>> record_column("scan", (X,), X.index, "groups", "holdout").tolist()
    [7, 9]
    >>> record_column("Patient", (X,), X.index, "groups", "holdout")
    Traceback (most recent call last):
    thresholdout.errors.InputError: groups must be one of 'patient', 'age', 'scan', or the values themselves; got ...
    """
    if not is_name(given):
        return aligned(given, labels, argument)
    found = []
    names: list[Any] = []
    for piece in data:
        columns = list(getattr(piece, "columns", ()))
        names += columns
        found += [piece[given] for column in columns if column == given]
    levels = [] if labels is None else list(labels.names)
    names += [name for name in levels if name is not None]
    if labels is not None and given in levels:
        found.append(labels.get_level_values(given))
    if len(found) == 1:
        return found[0]
    if found:
        seen = f"{given!r}, the name of {len(found)} columns or index levels of the {part}"
        raise InputError(argument, seen, "a name that occurs once, or the values themselves")
    shown = ", ".join(map(repr, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
    expected = f"one of {shown}, or the values themselves" if names else "values, one for each record"
    raise InputError(argument, f"{given!r}, which is no column or index level of the {part}", expected)
