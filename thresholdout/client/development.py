"""Open records beside a holdout of a service, whose predictions are scored here, exactly and free of charge.

The service never sees them. A table of predictions has rows for both: those of open records are removed before it is
submitted, and their score is the anticipated score of the guarded ones.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from graphs.numerics.rounding import shown_above, shown_below
from thresholdout.client.tables import PARQUET, Table
from thresholdout.errors import InputError
from thresholdout.scoring.metrics import get_metric

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from thresholdout.client.evaluation import Asked, Told
    from thresholdout.scoring.metrics import Metric

__all__ = ["OpenRecords", "accepted_or_corrected", "correction"]


@dataclass(frozen=True)
class OpenRecords:
    """The labels of open records, and the metric of a holdout.

    Examples
    --------
    >>> import pandas as pd
    >>> records = OpenRecords.of(pd.DataFrame({"id": ["7", "8"], "y": ["0", "1"]}), "y", "id", "accuracy")
    >>> score, rest = records.scored(Table(b"id,prediction\\n1,1\\n7,0\\n8,0\\n"))
    >>> score, rest.body
    (0.5, b'id,prediction\\n1,1\\n')
    """  # noqa: D301

    ids: NDArray[Any] = field(repr=False)
    labels: NDArray[Any] = field(repr=False)
    id: str
    metric: Metric

    @classmethod
    def of(cls, table: pd.DataFrame, label: str, id: str, metric: str) -> OpenRecords:
        """Return the records of a table, whose ids and labels are texts."""
        for column in (id, label):
            if column not in table:
                raise InputError(
                    "development", f"a table without {column!r}", f"a table with columns {id!r} and {label!r}"
                )
        ids = table[id].to_numpy(dtype=str)
        if not ids.size or np.unique(ids).size != ids.size:
            seen = "an empty table" if not ids.size else "an id that occurs twice"
            raise InputError("development", seen, "a table with one row for each open record")
        return cls(ids, table[label].to_numpy(dtype=str), id, get_metric(metric))

    @classmethod
    def read(cls, path: Path, label: str, id: str, metric: str) -> OpenRecords:
        """Read a CSV."""
        import pandas as pd

        return cls.of(pd.read_csv(path, dtype=str, keep_default_na=False), label, id, metric)

    def scored(self, table: Table) -> tuple[float, Table]:
        """Return the score on the open records, and the table without their rows."""
        import pandas as pd

        try:
            if table.content_type == PARQUET:
                found = pd.read_parquet(io.BytesIO(table.body))
            else:
                found = pd.read_csv(io.BytesIO(table.body), dtype=str, keep_default_na=False)
        except Exception:  # a reader may raise any error for an invalid file
            raise InputError("predictions", "a table that cannot be read", "a CSV or Parquet file") from None
        if self.id not in found:
            raise InputError("predictions", "a table without it", f"a table with column {self.id!r}, the ids")
        ids = found[self.id].astype(str).to_numpy(dtype=str)
        order = np.argsort(ids, kind="stable")
        places = np.searchsorted(ids, self.ids, sorter=order)
        rows = order[np.minimum(places, max(0, ids.size - 1))] if ids.size else np.zeros(0, dtype=np.intp)
        is_open = np.isin(ids, self.ids)
        if int(is_open.sum()) != self.ids.size or not np.array_equal(ids[rows], self.ids):
            seen = f"{int(is_open.sum())} rows for {self.ids.size} open records"
            raise InputError("predictions", seen, "a table with one row for each record of the development part")
        rest, body = found[~is_open], io.BytesIO()
        if table.content_type == PARQUET:
            rest.to_parquet(body, index=False)
        else:
            body.write(rest.to_csv(index=False, lineterminator="\n").encode())
        return self._score(found.iloc[rows]), Table(body.getvalue(), table.content_type)

    def _score(self, rows: pd.DataFrame) -> float:
        """Return the metric's mean over predictions in the order of the open records."""
        if self.metric.response == "predict":
            if "prediction" not in rows:
                raise InputError("predictions", "a table without it", "a table with column 'prediction'")
            labels, output = _alike(self.labels, rows["prediction"].astype(str).to_numpy(dtype=str))
            return float(np.mean(self.metric.values(labels, output, np.unique(labels))))
        classes = np.unique([str(name)[2:] for name in rows if str(name).startswith("p_") and name != self.id])
        if not np.isin(self.labels, classes).all():
            raise InputError(
                "predictions", "a label without such a column", "a table with a column p_<class> for each class"
            )
        output = np.stack([_numbers(rows[f"p_{one}"].to_numpy()) for one in classes], axis=1)
        return float(np.mean(self.metric.values(self.labels, output, classes)))


def _alike(labels: NDArray[Any], output: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both as numbers if all labels are numbers, and as texts otherwise."""
    try:
        known = labels.astype(np.float64)
    except ValueError:
        return labels, output
    return known, _numbers(output)


def _numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    try:
        found = values.astype(np.float64)
    except (TypeError, ValueError):
        found = np.array([math.nan])
    if not np.isfinite(found).all():
        raise InputError(
            "predictions", "a prediction that is no number", "a table of finite numbers, as the labels are"
        )
    return found


def accepted_or_corrected(holdout: Asked, submission: Told, expected: float, best: float | None = None) -> float | None:
    """Return a development score, of which more is better, limited to the certified interval of the guarded records."""
    sign = 1.0 if holdout.greater_is_better else -1.0
    score = sign * expected
    if submission.state == "hidden":
        return score
    if submission.state != "answered":
        return None
    if submission.verdict is not None:
        if submission.verdict in ("better", "first"):
            return score
        return None if best is None else min(score, best)
    if submission.low is None or submission.high is None:
        return score if submission.value is None else min(score, sign * submission.value)
    low, high = sorted((sign * submission.low, sign * submission.high))
    return min(max(score, low), high)


def correction(holdout: Asked, submission: Told, expected: float) -> str:
    """Return a sentence if a development score is better than the guarded records allow, and an empty text otherwise.

    Examples
    --------
    >>> from thresholdout.client.received import Holdout, Submission
    >>> loss = Holdout("digits", "brier_score", False, "interval", "open")
    >>> correction(loss, Submission("s1", "answered", low=0.1, high=0.2), 0.05)
    'The development part says 0.05, and the guarded records say at least 0.1: the development part is overfitted.'
    """
    low, high = submission.low, submission.high
    if holdout.greater_is_better and high is not None and high < expected:
        says = f"at most {shown_above(high, 3)}"
    elif not holdout.greater_is_better and low is not None and low > expected:
        says = f"at least {shown_below(low, 3)}"
    else:
        return ""
    return (
        f"The development part says {expected:.3g}, and the guarded records say {says}: the development part is "
        "overfitted."
    )
