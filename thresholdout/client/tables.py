"""Predictions as they are sent: bytes and type of a file, and the key of its content."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from thresholdout.errors import InputError, InputTypeError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Table", "as_table", "content_key", "options_of"]

CSV: Final = "text/csv"
PARQUET: Final = "application/vnd.apache.parquet"

_SUFFIXES: Final = {".csv": CSV, ".parquet": PARQUET, ".pq": PARQUET}


@dataclass(frozen=True, slots=True)
class Table:
    """A file of predictions."""

    body: bytes
    content_type: str = CSV


def as_table(predictions: pd.DataFrame | str | Path | Table) -> Table:
    """Return predictions as they are sent: a file unchanged, a table as CSV that reads back to the same numbers."""
    if isinstance(predictions, Table):
        return predictions
    if isinstance(predictions, str | Path):
        path = Path(predictions)
        if path.suffix.lower() not in _SUFFIXES:
            raise InputError("predictions", str(path), "the name of a .csv or .parquet file, or a DataFrame")
        return Table(path.read_bytes(), _SUFFIXES[path.suffix.lower()])
    import pandas as pd

    if not isinstance(predictions, pd.DataFrame):
        raise InputTypeError("predictions", f"a {type(predictions).__name__}", "a DataFrame, or a file's name")
    return Table(predictions.to_csv(index=False, lineterminator="\n").encode())


def options_of(expected: float | None, title: str) -> dict[str, str]:
    """Return the options beside a table, as they are sent.

    Examples
    --------
    >>> options_of(0.9, ""), options_of(None, "forest")
    ({'expected': '0.9'}, {'title': 'forest'})
    """
    said = {} if expected is None else {"expected": repr(float(expected))}
    return said | {"title": title} if title else said


def content_key(kind: str, holdout: str, table: Table, options: dict[str, str]) -> str:
    """Return the Idempotency-Key of a request, which is equal for equal requests in every process and after a crash."""
    asked = json.dumps([kind, holdout, table.content_type, sorted(options.items())], ensure_ascii=True)
    digest = hashlib.sha256(len(asked).to_bytes(8, "big") + asked.encode() + table.body)
    return f"content-{digest.hexdigest()}"
