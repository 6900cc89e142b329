"""Reading of logs and tables of all tools."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from thresholdout.errors import EvaluationFileError, InputError, InputTypeError
from thresholdout.evaluations.inspect_logs import read_eval, read_inspect_json
from thresholdout.evaluations.json_logs import json_lines, read_lm_eval, read_openai_evals, read_promptfoo
from thresholdout.evaluations.tables import csv_rows, frame_rows, parquet_rows, read_mlflow_split, read_table

if TYPE_CHECKING:
    import pandas as pd

    from thresholdout.evaluations.scores import Scores

__all__ = ["Fields", "read"]


class Fields(NamedTuple):
    """The requested fields of a log; None for those that the tool itself defines."""

    metric: str | None
    cluster: str | None
    item: str | None
    sample: str | None
    by: str | None
    only: Mapping[str, str]
    scale: tuple[float, float]
    error: str | None = None


def read(
    path: str | Path | pd.DataFrame,
    metric: str | None = None,
    *,
    cluster: str | None = None,
    item: str | None = None,
    sample: str | None = None,
    by: str | None = None,
    only: Mapping[str, str] | None = None,
    range: tuple[float, float] = (0.0, 1.0),
    error: str | None = None,
) -> Scores:
    """Read the scores of one run from a log, a table or a data frame.

    The result is the input of `diff`, `rank`, `agreement` and `EvaluationGuard`. Repeated scores of an item are its
    samples. Errors and time-outs are missing scores, never zeros.

    Parameters
    ----------
    path : str, Path or DataFrame
        Log of Inspect (`.eval`, JSON), lm-eval (`samples_*.jsonl`), promptfoo (JSON), OpenAI evals (JSONL) or MLflow
        (JSON), a table with named columns as CSV, JSONL or Parquet, or a pandas data frame.
    metric : str, optional
        Name of the metric. Required if the file has several.
    cluster : str, optional
        Field with the same value for all items of a cluster, such as ``"metadata.passage_id"``. If None, items count as
        independent.
    item : str, optional
        Field that identifies an item. If None, that of the tool.
    sample : str, optional
        Field that identifies a sample of an item. If None, that of the tool.
    by : str, optional
        Field that divides the items into slices, which `diff` compares one by one.
    only : mapping, optional
        Parts to read from a file with several, such as ``{"filter": "strict-match"}``, ``{"provider": "..."}``, or a
        column and its value.
    range : tuple of float, default (0, 1)
        Smallest and largest possible score.
    error : str, optional
        Column of a table that has an entry if the sample failed. If None, the column ``"error"`` if there is one. Logs
        of tools record failures themselves.

    Returns
    -------
    Scores
        Items with their mean scores in ``values`` and their numbers of samples in ``samples``.

    Raises
    ------
    EvaluationFileError
        If the file, or a score in it, cannot be used.
    InputError
        If a name is needed, or is not in the file. The message lists the names in the file.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"id": [1, 2, 3], "score": ["C", "I", None]})
    >>> scores = read(frame)
    >>> scores.values.tolist(), scores.errors
    ([1.0, 0.0, nan], 1)
    """
    fields = Fields(metric, cluster, item, sample, by, dict(only or {}), range, error)
    kept = {name: value for name, value in fields._asdict().items() if name not in ("by", "scale")} | {"range": range}
    if not isinstance(path, str | Path):
        if not hasattr(path, "columns"):
            raise InputTypeError("path", f"a {type(path).__name__}", "a file name or a pandas frame")
        return replace(read_table(frame_rows(path), "the frame", fields), fields=kept)
    path = Path(path)
    if not path.is_file():
        raise EvaluationFileError(str(path), "The file does not exist. Pass the log that the run wrote.")
    try:
        return replace(_read_file(path, fields), file_digest=_digest(path), fields=kept)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise EvaluationFileError(
            str(path), f"Its layout is not that of its tool ({type(error).__name__}: {error}). Write it again."
        ) from error
    except UnicodeDecodeError:
        raise EvaluationFileError(str(path), "It is not UTF-8 text. Write it again.") from None


def _of_tool(path: Path, fields: Fields) -> Fields:
    if fields.error is not None:
        raise InputError(
            "error", fields.error, "left out for a tool's log", f"{path} says itself which samples failed."
        )
    return fields


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_file(path: Path, fields: Fields) -> Scores:
    with path.open("rb") as file:
        start = file.read(4)
    if not start:
        raise EvaluationFileError(str(path), "It is empty. Run the evaluation again.")
    kind = path.suffix.lower()
    if kind == ".eval" or start == b"PK\x03\x04":
        return read_eval(path, _of_tool(path, fields))
    if kind in (".parquet", ".pq") or start == b"PAR1":
        return read_table(parquet_rows(path), str(path), fields)
    if kind in (".csv", ".tsv"):
        return read_table(csv_rows(path), str(path), fields)
    if kind in (".jsonl", ".ndjson"):
        return _read_lines(path, fields)
    try:
        log = json.loads(path.read_bytes())
    except json.JSONDecodeError:
        raise EvaluationFileError(
            str(path), "It is not complete JSON: it was cut off or changed. Write it again."
        ) from None
    return _read_json(path, log, fields)


def _read_lines(path: Path, fields: Fields) -> Scores:
    first = next(json_lines(path), None)
    if first is None:
        raise EvaluationFileError(str(path), "It has no lines. Run the evaluation again.")
    if "spec" in first:
        return read_openai_evals(path, _of_tool(path, fields))
    if "doc_hash" in first and "filtered_resps" in first:
        return read_lm_eval(path, _of_tool(path, fields))
    return read_table(json_lines(path), str(path), fields)


def _read_json(path: Path, log: Any, fields: Fields) -> Scores:
    if isinstance(log, list):
        return read_table(log, str(path), fields)
    if isinstance(log, dict):
        if "eval" in log and "status" in log:
            return read_inspect_json(path, log, _of_tool(path, fields))
        if isinstance(log.get("results"), dict) and "results" in log["results"]:
            return read_promptfoo(path, log, _of_tool(path, fields))
        if {"columns", "data"} <= log.keys():
            return read_mlflow_split(path, log, fields)
    raise EvaluationFileError(
        str(path),
        "Its format is not that of a known tool. Pass a log, or a table whose columns you name by item= and metric=.",
    )
