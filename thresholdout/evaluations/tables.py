"""Tables of scores: MLflow's, JSONL, CSV and Parquet with named columns, and pandas frames."""

from __future__ import annotations

import csv
import json
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from thresholdout.errors import EvaluationFileError, InputError, LikelyMistakeWarning, outside
from thresholdout.evaluations.scores import Row, Scores, choose, collect, fingerprint, lookup

if TYPE_CHECKING:
    import pandas as pd

    from thresholdout.evaluations.reading import Fields

__all__ = ["csv_rows", "frame_rows", "parquet_rows", "read_mlflow_split", "read_table"]

_SCORE_COLUMNS: Final = ("/score", "/value")  # of MLflow's two evaluations
_ITEM_COLUMNS: Final = ("item", "item_id", "id")
_ERROR: Final = "error"
_MANY: Final = 10  # rows of an item, beyond the usual numbers of repeats or seeds
_NO_ERROR: Final = {"", "0", "false", "no", "none", "null", "nan"}


def csv_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read the rows of a CSV file; an empty cell is missing."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        for number, row in enumerate(reader, 2):
            if None in row or None in row.values():
                raise EvaluationFileError(
                    str(path), f"Row {number} has another number of cells than the header. Write the file again."
                )
            yield {key: None if value == "" else value for key, value in row.items()}


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read the rows of a Parquet file."""
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise EvaluationFileError(
            str(path), "Reading Parquet needs pyarrow: pip install 'thresholdout[big]'."
        ) from None
    except Exception as error:
        raise EvaluationFileError(str(path), f"It is not a complete Parquet file ({error}). Write it again.") from None
    return frame_rows(frame)


def frame_rows(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Read the rows of a pandas frame; NaN and None are missing."""
    columns = [frame[name].tolist() for name in frame.columns]
    names = list(map(str, frame.columns))
    for row in zip(*columns, strict=True):
        yield {
            name: None if value is None or (isinstance(value, float) and math.isnan(value)) else value
            for name, value in zip(names, row, strict=True)
        }


def read_mlflow_split(path: Path, table: Mapping[str, Any], fields: Fields) -> Scores:
    """Read `eval_results_table.json`; the caller names the column of items."""
    columns = list(map(str, table["columns"]))
    rows = [dict(zip(columns, row, strict=True)) for row in table["data"]]
    return read_table(rows, str(path), fields)


def read_table(rows: Iterable[Mapping[str, Any]], where: str, fields: Fields) -> Scores:
    """Read rows with named columns; rows of one item are its samples."""
    if fields.only:
        only = dict(fields.only)
        rows = [row for row in rows if all(_text(lookup(row, name, where)) == value for name, value in only.items())]
    kept = list(rows)
    if not kept:
        raise EvaluationFileError(where, "It has no rows. Run the evaluation again.")
    first = kept[0]
    metric = _metric(first, fields.metric, where)
    traces = "trace_id" in first
    item = fields.item or ("request" if traces else next((name for name in _ITEM_COLUMNS if name in first), None))
    if item is None:
        raise InputError("item", "nothing", f"one of the columns of {where}: {', '.join(first)}")
    sample = fields.sample or ("sample" if "sample" in first and not traces else None)
    error = fields.error or (_ERROR if metric != _ERROR else None)
    if fields.error is not None and not any(_named(row, fields.error) is not None for row in kept):
        known = sorted({name for row in kept for name in row})
        if fields.error.split(".")[0] not in known:
            raise InputError(
                "error", repr(fields.error), "the column with entries for failures", f"Columns: {', '.join(known)}."
            )

    def failed(row: Mapping[str, Any]) -> bool:
        if row.get("state") == "ERROR":
            return True
        found = None if error is None else _named(row, error)
        return found is not None and str(found).strip().lower() not in _NO_ERROR

    def found() -> Iterator[Row]:
        for row in kept:
            content = lookup(row, item, where)
            if content is None:
                raise EvaluationFileError(where, f"A row has no {item}. Fill it in, or name another column by item=.")
            key = content if isinstance(content, str) else json.dumps(content, sort_keys=True, default=str)
            long = len(key) > 80 or not key.isprintable()
            yield Row(
                fingerprint(key) if long else key,
                None if failed(row) else lookup(row, metric, where),
                None if sample is None else _text(lookup(row, sample, where)),
                fingerprint(key),
                None if fields.cluster is None else _text(lookup(row, fields.cluster, where)),
                None if fields.by is None else _text(lookup(row, fields.by, where)),
            )

    name = next((metric.removesuffix(end) for end in _SCORE_COLUMNS if metric.endswith(end)), metric)
    scores = collect(found(), where, name, fields.scale)
    if sample is None:
        _warn_of_few_items(scores, item)
    return scores


def _warn_of_few_items(scores: Scores, item: str) -> None:
    """Warn if a column seems to hold a property of items, such as their subject, instead of their names."""
    counts = scores.samples + scores.missing
    rows, most = int(counts.sum()), int(counts.max())
    if rows > _MANY * len(scores) or (rows > 2 * len(scores) and int(counts.min()) < most):
        warnings.warn(
            f"{scores.name}: its {rows:,} rows have only {len(scores):,} values of {item!r}, and up to {most:,} rows "
            "count as samples of one item. If they are other items, name the column that tells items apart by item=. "
            "If they are repeats, name the column that numbers them by sample=.",
            LikelyMistakeWarning,
            stacklevel=outside(),
        )


def _named(row: Mapping[str, Any], path: str) -> Any:
    """Return a field, or None where a row lacks it; rows without a failure often do."""
    found: Any = row.get(path)
    if found is None and "." in path:
        found = row
        for part in path.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _metric(row: Mapping[str, Any], named: str | None, where: str) -> str:
    """Return the column of a metric: NAME/score or NAME/value in MLflow, whose expectations are no metrics."""
    if named is not None and named in row:
        return named
    expected = {f"{name}/value" for name in _expectations(row)}
    scored = [name for name in row if name.endswith(_SCORE_COLUMNS) and name not in expected]
    if scored:
        short = {name.rsplit("/", 1)[0]: name for name in scored}
        return short[choose("metric", short, named, where)]
    if named is None and "score" in row:
        return "score"
    seen = "nothing" if named is None else repr(named)
    raise InputError("metric", seen, f"one of the columns of {where}: {', '.join(row)}")


def _expectations(row: Mapping[str, Any]) -> set[str]:
    found = {"expected_response", "expected_facts", "guidelines"}
    assessments = row.get("assessments")
    if isinstance(assessments, list):
        found |= {each["assessment_name"] for each in assessments if isinstance(each, dict) and "expectation" in each}
    return found


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
