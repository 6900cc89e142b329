"""Values of records that a caller names: a column of a data frame, a level of an index, or the values themselves."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, Final

from thresholdout.data.record_labels import aligned
from thresholdout.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from thresholdout.data.identity import Part

__all__ = ["is_name", "record_column"]

_SHOWN: Final = 8
"""Names of columns that a message shows."""


def is_name(given: object) -> bool:
    """Return whether something names a column, rather than being one.

    Examples
    --------
    >>> is_name("patient"), is_name(3), is_name([3]), is_name(True)
    (True, True, False, False)
    """
    return isinstance(given, (str, Integral)) and not isinstance(given, bool)


def record_column(given: Any, data: Part, labels: pd.Index[Any] | None, argument: str, part: str) -> Any:
    """Return one value per record: the column or index level of this name, or what is given, in the records' order.

    Parameters
    ----------
    given : object
        A name, or values; a series is taken by its index, where the records have one.
    data : tuple
        The pieces of a part, such as ``(X, y)``.
    labels : pandas.Index or None
        Of its records.
    argument, part : str
        How error messages call the values and the part.

    Raises
    ------
    InputError
        When the part has no column or index level of that name, or more than one, or the values have another index.

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
    thresholdout.errors.InputError: groups: 'Patient', which is no column or index level of the holdout; expected: on...
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
        seen = f"{given!r}, which {len(found)} columns or index levels of the {part} are called"
        raise InputError(argument, seen, "a name that is there once, or the values themselves")
    shown = ", ".join(map(repr, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
    expected = f"one of {shown}, or the values themselves" if names else "values, one for each record"
    raise InputError(argument, f"{given!r}, which is no column or index level of the {part}", expected)
