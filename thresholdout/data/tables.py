"""Tables of records, read without loss of text.

"01" and "1" may be two classes, and "007" and "7" two records. So files are read as text, ids stay text, and labels
become numbers only if no two different texts can become one number.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.errors import IndexColumnWarning, InputError, InputTypeError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = [
    "as_numbers",
    "check_table",
    "first_twice",
    "id_texts",
    "is_number_like",
    "label_texts",
    "labels_of",
    "numbers",
    "predicted_labels",
    "read_table",
    "shared_content",
    "shortened",
    "sorted_by",
    "unordered",
    "without_index",
]

INDEX: Final = "Unnamed: 0"
"""Name in pandas of a first column without a name, as `DataFrame.to_csv` writes an index."""

_SHOWN: Final = 6
"""Maximum number of names in a message."""

_DECIMAL = re.compile(r"-?(?:0|[1-9]\d*)(?:\.(\d+))?([eE][+-]?\d+)?", re.ASCII)
_WHOLE = 2**53
"""Integers below this are exact as 64-bit floats."""

_NO_NUMBERS = {"inf", "infinity", "nan", "na", "n/a", "#n/a", "null", "none", ".", "?"}
"""Texts, in lower case, that programs write for infinite or missing numbers."""


def read_table(path: str | Path) -> pd.DataFrame:
    r"""Read a CSV file with a header, or JSON lines (``.jsonl``, ``.ndjson``), as text; empty cells are missing.

    A first column without a name is called "Unnamed: 0", as in pandas; see `without_index`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("id,y\n007,NA\n")
    >>> read_table(path).to_dict("records")
    [{'id': '007', 'y': 'NA'}]
    """
    import pandas as pd

    if Path(path).suffix.lower() in (".jsonl", ".ndjson"):
        return _json_lines(Path(path))
    try:
        cells = pd.read_csv(path, header=None, dtype=str, keep_default_na=False, na_values=[""])
    except (OSError, ValueError) as error:  # pandas' parser errors are ValueErrors
        reason = error.strerror if isinstance(error, OSError) else None
        lines = (reason or str(error)).strip().splitlines()
        raise InputError(str(path), lines[0] if lines else type(error).__name__, "a CSV file with a header") from None
    names = cells.iloc[0].copy()
    if bool(names.isna().iloc[0]) and len(names) > 1:
        names.iloc[0] = INDEX
    if bool(names.isna().any()):
        column = int(np.argmax(names.isna().to_numpy())) + 1
        raise InputError(
            str(path), f"a header in which column {column} has no name", "a file with a header that names each column"
        )
    table = cells.iloc[1:].reset_index(drop=True)
    table.columns = pd.Index(names.tolist())
    _check_names(table, str(path))
    return table


def _json_lines(path: Path) -> pd.DataFrame:
    """Read a file with one JSON object of texts, numbers and booleans in each line."""
    import pandas as pd

    rows = []
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                row = json.loads(line)
                if not isinstance(row, dict) or any(isinstance(cell, (dict, list)) for cell in row.values()):
                    raise InputError(
                        str(path), f"line {number}", "a file with one JSON object of plain values in each line"
                    )
                rows.append({name: _cell(cell) for name, cell in row.items()})
    except OSError as error:
        raise InputError(str(path), error.strerror or type(error).__name__, "a file of JSON lines") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        seen = f"a line {number} that is not JSON" if rows or number > 1 else "no JSON in its first line"
        raise InputError(str(path), seen, "a file with one JSON object in each line") from None
    if not rows:
        raise InputError(str(path), "no lines", "a file with one JSON object in each line")
    return pd.DataFrame(rows, dtype=object)


def _cell(cell: object) -> str | float:
    """Return a cell's text as in a CSV file; null and empty cells are missing."""
    if cell is None or cell == "":
        return math.nan
    return str(cell)


def check_table(table: object, name: str, columns: Iterable[str]) -> pd.DataFrame:
    """Check that a table has these columns, without missing values."""
    import pandas as pd

    if not isinstance(table, pd.DataFrame):
        raise InputTypeError(name, f"a {type(table).__name__}", "a pandas DataFrame")
    _check_names(table, name)
    if len(table) < 1:
        raise InputError(name, "no rows", "a table of at least one record")
    for column in columns:
        if column not in table.columns:
            advice = "If the index is that column, write the file by to_csv(index_label=...)."
            seen, expected = f"columns {shortened(table.columns)}", f"a table with a column {column!r}"
            raise InputError(name, seen, expected, advice if INDEX in table.columns else "")
        _check_full(table[column], name, column)
    return table


def shortened(names: Iterable[object]) -> str:
    """Return a list of names for a message: a long one as its first names and their number.

    Examples
    --------
    >>> shortened(["id", "y"]), shortened(range(300))
    ('id, y', '0, 1, 2, 3, 4, 5, ... (300 in all)')
    """
    texts = [str(name) for name in names]
    if len(texts) <= _SHOWN + 1:
        return ", ".join(texts)
    return f"{', '.join(texts[:_SHOWN])}, ... ({len(texts):,} in all)"


def without_index(table: pd.DataFrame, name: str, needed: Iterable[str]) -> pd.DataFrame:
    """Drop the column that `DataFrame.to_csv` makes of an index, with a warning.

    Its numbers are no content, and would make equal records of two tables differ.

    Examples
    --------
    >>> import pandas as pd, warnings
    >>> table = pd.DataFrame({"Unnamed: 0": [0, 1], "id": ["a", "b"]})
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     list(without_index(table, "train", ["id"]).columns)
    ['id']
    >>> len(said)
    1
    """
    if len(table.columns) < 2 or table.columns[0] != INDEX or INDEX in needed or set(needed) - set(table.columns):
        return table
    warnings.warn(
        f"The first column of {name} has no name, like an index that DataFrame.to_csv() writes, and is dropped. "
        "Write the table with to_csv(index=False), or name the column.",
        IndexColumnWarning,
        stacklevel=3,
    )
    return table.iloc[:, 1:]


def _check_full(column: pd.Series[Any], name: str, title: object) -> None:
    """Refuse a column with a missing value."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biu":
        return  # these types have no missing values
    missing = column.isna().to_numpy(dtype=bool)
    if _is_text(column):
        missing = missing | (column == "").to_numpy(dtype=bool)
    elif column.dtype.kind == "O":
        missing = missing | np.asarray([isinstance(v, str) and not v for v in column.tolist()], dtype=bool)
    if missing.any():
        raise InputError(
            name,
            f"a table whose column {title!r} is empty in row {int(np.argmax(missing)) + 1}",
            "a table without empty cells",
        )


def _is_text(column: pd.Series[Any]) -> bool:
    """Whether all values of a column that are not missing are text."""
    import pandas as pd

    return column.dtype.kind in "OU" and pd.api.types.infer_dtype(column, skipna=True) == "string"


def id_texts(column: pd.Series[Any]) -> list[str]:
    """Return ids as text; whole floats, from columns with gaps, as integers.

    Examples
    --------
    >>> import pandas as pd
    >>> id_texts(pd.Series([1.0, 2.0])), id_texts(pd.Series(["007", "7"]))
    (['1', '2'], ['007', '7'])
    """
    if _is_text(column) and not column.hasnans:
        texts: list[str] = column.tolist()
        return texts
    return [
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value) for value in column.tolist()
    ]


def label_texts(column: pd.Series[Any], argument: str) -> list[str]:
    """Return labels, or predictions of labels, as text."""
    if column.dtype.kind in "biu" or (_is_text(column) and not column.hasnans):  # no two different ones are equal
        import pandas as pd

        codes, different = pd.factorize(column)
        texts = np.asarray([_text(value, argument) for value in different.tolist()], dtype=object)
        found: list[str] = texts[codes].tolist()
        return found
    return [_text(value, argument) for value in column.tolist()]


def labels_of(train: pd.Series[Any], holdout: pd.Series[Any], argument: str) -> list[NDArray[Any]]:
    """Return the labels of both parts: as integers or floats if all of them are numbers, else as text.

    Examples
    --------
    >>> import pandas as pd
    >>> labels_of(pd.Series(["0", "1"]), pd.Series([1.0, 0.0]), "label")
    [array([0, 1]), array([1, 0])]
    >>> labels_of(pd.Series(["1", "01"]), pd.Series(["1", "1"]), "label")
    [array(['1', '01'], dtype='<U2'), array(['1', '1'], dtype='<U1')]
    """
    texts = [label_texts(train, argument), label_texts(holdout, argument)]
    found = as_numbers(*texts)
    if found is not None:
        return found
    for part, column in zip(("train", "holdout"), texts, strict=True):
        strange = [k for k, text in enumerate(column) if _is_no_number(text)]
        rest = [[text for text in other if not _is_no_number(text)] for other in texts]
        if strange and any(rest) and as_numbers(*rest) is not None:
            seen = f"an infinite or missing value among numbers, in row {strange[0] + 1} of {part}"
            raise InputError(argument, seen, "a column of finite numbers, or of names of classes")
    return [np.asarray(column, dtype=str) for column in texts]


def as_numbers(*columns: Sequence[str]) -> list[NDArray[Any]] | None:
    """Read columns of text as numbers, or return ``None`` if two different texts could become one number.

    They are read if every text is the plain form of its number (no leading zeros, no trailing ones except in "1.0") or
    all have the same number of decimals, if no two texts of a column are the same number, and if integers are below
    2**53.

    Examples
    --------
    >>> as_numbers(["0", "1"], ["1.0"])
    [array([0, 1]), array([1])]
    >>> as_numbers(["1.50", "2.25"])
    [array([1.5 , 2.25])]
    >>> as_numbers(["1.1", "1.10"]), as_numbers(["01"]), as_numbers([str(2**53 + 1)])
    (None, None, None)
    """
    values: dict[str, float] = {}
    forms = set()
    plain = True
    for text in set().union(*columns):
        match = _DECIMAL.fullmatch(text)
        if match is None:
            return None
        decimals, exponent = match.groups()
        number = float(text)
        if not math.isfinite(number) or (decimals is None and exponent is None and abs(number) >= _WHOLE):
            return None
        plain &= decimals in (None, "0") or not decimals.endswith("0")
        forms.add((len(decimals or ""), exponent is not None))
        values[text] = number
    if not plain and len(forms) > 1:
        return None
    for column in columns:
        different = {text if values[text] else text.lstrip("-") for text in column}
        if len({float(text) for text in different}) != len(different):
            return None
    return [_typed(np.asarray([values[text] for text in column], dtype=np.float64)) for column in columns]


def is_number_like(labels: Iterable[str]) -> bool:
    """Whether all text labels are integers in plain form, which are too large to be numbers."""
    return all(re.fullmatch(r"-?(?:0|[1-9]\d*)", label, re.ASCII) for label in labels)


def numbers(column: pd.Series[Any], table: str, title: object) -> NDArray[np.float64]:
    """Read a column as finite numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> numbers(pd.Series(["1", "2.50"]), "predictions", "prediction")
    array([1. , 2.5])
    """
    import pandas as pd

    if column.dtype.kind in "biuf":
        found = column.to_numpy(dtype=np.float64)
    elif isinstance(column.dtype, pd.StringDtype):  # few different texts stand for many numbers
        codes, different = pd.factorize(column)
        found = np.append([_number(text) for text in different.tolist()], math.nan)[codes]  # a missing one has code -1
    else:
        found = np.asarray([_number(value) for value in column.tolist()], dtype=np.float64)
    if not np.isfinite(found).all():
        row = int(np.argmax(~np.isfinite(found)))
        seen = str(column.iloc[row])
        infinite = isinstance(column.iloc[row], Real) or "inf" in seen.lower()
        what = f"{seen} in column {title!r}, row {row + 1}" if infinite else f"text in column {title!r}, row {row + 1}"
        raise InputError(table, what, "a table of finite numbers")
    return found


def sorted_by(table: pd.DataFrame, column: str, name: str) -> pd.DataFrame:
    """Sort a table by a column: by its numbers if it has only numbers, else by its text or dates."""
    import pandas as pd

    keys = table[column]
    if keys.dtype.kind == "O":
        found = pd.to_numeric(keys, errors="coerce")
        keys = keys if bool(found.isna().any()) else found
    try:
        order = keys.reset_index(drop=True).sort_values(kind="stable").index
    except TypeError:
        raise InputError(
            name, f"a column {column!r} that mixes kinds of values", "a table whose values can be sorted"
        ) from None
    return table.iloc[order]


def shared_content(train: pd.DataFrame, holdout: pd.DataFrame, id: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the content columns of both tables: their common columns without ids.

    Text that is a number becomes one, so that "1.0" equals "1".
    """
    import pandas as pd

    columns = [column for column in train.columns if column in holdout.columns and column != id]
    parts = train[columns].copy(), holdout[columns].copy()
    for column in columns:
        if any(part[column].dtype.kind == "O" for part in parts):
            texts = [part[column].astype(object).where(part[column].notna(), None) for part in parts]
            found = [pd.to_numeric(text, errors="coerce") for text in texts]
            numeric = all(bool((f.notna() == t.notna()).all()) for f, t in zip(found, texts, strict=True))
            for part, number, text in zip(parts, found, texts, strict=True):
                part[column] = number if numeric else text.map(str)
    return parts


def _check_names(table: pd.DataFrame, name: str) -> None:
    names = table.columns.tolist()
    if len(set(names)) < len(names):
        twice = table.columns[table.columns.duplicated()]
        raise InputError(
            name,
            f"a table in which two columns are called {str(twice[0])!r}",
            "a table of columns with different names",
        )


def _typed(column: NDArray[np.float64]) -> NDArray[Any]:
    whole = bool(((column == np.floor(column)) & (np.abs(column) < _WHOLE)).all())
    return column.astype(np.int64) if whole else column


def _text(value: object, argument: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    raise InputTypeError(argument, f"a {type(value).__name__} in the column", "a column of text or numbers")


def _number(value: object) -> float:
    """Return a number, or NaN for other values."""
    if isinstance(value, str) and "_" in value:
        return math.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _is_no_number(text: str) -> bool:
    """Whether a text denotes a missing or infinite number."""
    return text.strip().lstrip("+-").lower() in _NO_NUMBERS


def first_twice(ids: list[str]) -> str | None:
    """Return the first text that occurs again, or ``None``."""
    import pandas as pd

    again = pd.Index(ids, dtype=object).duplicated()
    return ids[int(np.argmax(again))] if again.any() else None


def predicted_labels(column: pd.Series[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Read predicted labels in the type of the observed ones."""
    if labels.dtype.kind != "U":
        return numbers(column, "predictions", "prediction")
    if column.dtype.kind in "iuf" and not is_number_like(np.unique(labels).tolist()):
        raise InputError("predictions", "numbers in column 'prediction'", "text, like the labels")
    return np.asarray(label_texts(column, "predictions"), dtype=str)


def unordered(ids: list[str], wanted: pd.Index[Any], of: str) -> InputError:
    """Return the first reason for which predictions cannot be matched with the records."""
    import pandas as pd

    found = pd.Index(ids, dtype=object)
    twice = first_twice(ids)
    if twice is not None:
        return InputError("predictions", f"a table in which id {twice!r} occurs twice", "a table with each record once")
    expected = f"a table with one row for each of the {len(wanted)} records of {of}"
    missing = wanted[~wanted.isin(found)]
    if len(missing):
        return InputError("predictions", f"a table with {len(missing)} records missing, first {missing[0]!r}", expected)
    foreign = found[~found.isin(wanted)]
    return InputError("predictions", f"{len(foreign)} ids of no record, first {foreign[0]!r}", expected)
