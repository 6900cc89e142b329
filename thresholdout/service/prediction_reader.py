"""Reader of tables of predictions, which are joined by id and checked by format and training labels alone.

Nothing here sees a label of the holdout, so a refusal releases no information about one.
"""

from __future__ import annotations

import io
import json
import zlib
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.data.table_dependence import MOST_CLASSES
from thresholdout.data.tables import check_table, id_texts, numbers, predicted_labels, unordered
from thresholdout.errors import InputError, ThresholdoutError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from thresholdout.scoring.metrics import Metric
    from thresholdout.service.labelled_records import LabelledRecords

__all__ = ["OF_LABELS", "PredictionReader", "Reading"]

# First bytes of an encoded reading, with the version of its format.
_FORMAT: Final = b"thresholdout-reading-1\n"


@dataclass(frozen=True, eq=False)
class Reading:
    """A checked table of predictions in the order of the records; made by `PredictionGuard.read`.

    Notes
    -----
    `output` holds the training part's records first, where the table has them, then the holdout's. `classes` are the
    classes of its columns, for metrics of probabilities. `train` are the metric's values on the training part.
    """

    guard: str
    metric: str
    output: NDArray[Any]
    classes: NDArray[Any] | None
    train: NDArray[Any] | None

    def __post_init__(self) -> None:
        for piece in (self.output, self.classes, self.train):
            if piece is not None:
                piece.flags.writeable = False

    @cached_property
    def digest(self) -> str:
        """Digest of the predictions for this metric: 64 hexadecimal digits."""
        output = np.ascontiguousarray(self.output)
        about = f"{self.metric}\n{output.dtype.str}{output.shape}{self.train is not None}\n"
        digest = sha256(about.encode())
        digest.update(output.view(np.uint8).data)
        return digest.hexdigest()

    @cached_property
    def encoded(self) -> bytes:
        """The reading as bytes, which `PredictionGuard.decoded` restores."""
        pieces = {"output": self.output, "classes": self.classes, "train": self.train}
        there = {name: piece for name, piece in pieces.items() if piece is not None}
        packed = io.BytesIO()
        packed.write(json.dumps({"guard": self.guard, "metric": self.metric, "pieces": list(there)}).encode() + b"\n")
        for piece in there.values():
            np.lib.format.write_array(packed, np.ascontiguousarray(piece), allow_pickle=False)
        return _FORMAT + zlib.compress(packed.getbuffer(), 1)

    @classmethod
    def decoded(cls, encoded: bytes, guard: str) -> Reading:
        """Return the reading in the bytes of `encoded`, which the given guard must have made."""
        try:
            if not encoded.startswith(_FORMAT):
                raise ValueError
            packed = io.BytesIO(zlib.decompress(encoded[len(_FORMAT) :]))
            head = json.loads(packed.readline())
            there = {name: np.lib.format.read_array(packed, allow_pickle=False) for name in head["pieces"]}
            found = cls(head["guard"], head["metric"], there["output"], there.get("classes"), there.get("train"))
        except (EOFError, KeyError, TypeError, ValueError, zlib.error):
            found = None
        if found is None or found.guard != guard:
            raise InputError("encoded", "other bytes", "bytes of `Reading.encoded` of this guard")
        return found


# Metrics whose values are 0 or 1.
OF_LABELS: Final = ("accuracy", "zero_one_loss")

# Metrics that need labels which are numbers.
_OF_NUMBERS: Final = ("squared_error", "absolute_error")


class PredictionReader:
    """Reader of tables of predictions for the records of one guard; it uses the labels of the training part alone."""

    def __init__(self, records: LabelledRecords, guard: str) -> None:
        self._records = records
        self._guard = guard

    def read(
        self,
        predictions: pd.DataFrame | Reading,
        metric: Metric,
        argument: str = "predictions",
    ) -> Reading:
        """Return the reading of a table, with the metric's values on the training part where it has rows for that."""
        if isinstance(predictions, Reading):
            return self._again(predictions, metric, argument)
        try:
            table, trains = self._in_order(predictions)
            output, classes = self._output(table, metric)
            rehearsed = self._rehearsed(metric, output, classes)
            train = rehearsed[: len(self._records.train_labels)] if trains else None
            # The output is copied, so that no caller can change it.
            return Reading(self._guard, metric.name, np.array(output), classes, train)
        except InputError as error:
            if error.argument == "predictions" != argument:
                raise type(error)(argument, error.seen, error.expected, error.advice) from None
            raise

    def _again(self, reading: Reading, metric: Metric, argument: str) -> Reading:
        """Return a reading, or refuse another guard's or another metric's."""
        if reading.guard != self._guard:
            seen = f"a reading of guard {reading.guard[:12]!r}..."
            raise InputError(argument, seen, f"a reading of guard {self._guard[:12]!r}...")
        if reading.metric != metric.name:
            raise InputError(argument, f"a reading for {reading.metric}", f"a reading for {metric.name}")
        wanted = len(self._records.ids) - (0 if reading.train is not None else len(self._records.train_labels))
        if len(reading.output) != wanted:
            raise InputError(argument, f"a reading of {len(reading.output)} records", f"a reading of {wanted} records")
        return reading

    def check_metric(self, metric: Metric) -> None:
        """Refuse a metric that does not suit the training labels."""
        labels, name = self._records.train_labels, metric.name.partition("(")[0]
        if name in _OF_NUMBERS and labels.dtype.kind == "U":
            seen = f"{name}, for labels that were read as text"
            advice = "Metrics of numbers need a guard whose labels are numbers."
            raise InputError("metric", seen, "a metric of classes, such as 'accuracy'", advice)
        if metric.response == "predict_proba" and (
            labels.dtype.kind == "f" or self._records.classes.size > MOST_CLASSES
        ):
            different = "that are not integers" if labels.dtype.kind == "f" else f"of more than {MOST_CLASSES} kinds"
            seen = f"{name}, for training labels {different}"
            advice = "Metrics of probabilities need labels that are classes."
            raise InputError("metric", seen, "a metric of numbers, such as squared_error or absolute_error", advice)

    def _in_order(self, predictions: pd.DataFrame) -> tuple[pd.DataFrame, bool]:
        """Return the predictions in the order of the records, training part first, and whether it is included."""
        column = check_table(predictions, "predictions", [self._records.id])[self._records.id]
        places, size = self._records.places(column), len(self._records.train_ids)
        trains = bool(((places >= 0) & (places < size)).any())
        first = 0 if trains else size
        wanted = size + len(self._records.holdout_ids) - first
        if len(places) == wanted and bool((places == np.arange(first, first + wanted)).all()):
            return predictions, trains
        places = places - first
        rows = np.full(wanted, -1)
        rows[places[places >= 0]] = np.flatnonzero(places >= 0)
        if (rows < 0).any() or len(places) != wanted:
            of = "both parts" if trains else "the holdout"
            raise unordered(id_texts(column), self._records.ids[first:], of)
        return predictions.iloc[rows], trains

    def _output(self, table: pd.DataFrame, metric: Metric) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return the columns that a metric needs, in the type of the labels."""
        labels = self._records.train_labels
        if metric.response == "predict":
            check_table(table, "predictions", ["prediction"])
            output = predicted_labels(table["prediction"], labels)
            if metric.name in OF_LABELS and not np.isin(output, self._records.classes).any():
                seen = "a column 'prediction' without any of these labels"
                raise InputError("predictions", seen, "a table of labels, written as in the training part")
            return output, None
        classes = self._records.classes
        names = [f"p_{c}" for c in classes.tolist()]
        check_table(table, "predictions", names)
        extra = [str(c) for c in table.columns if str(c).startswith("p_") and c not in names and c != self._records.id]
        if extra:
            seen = f"column {extra[0]!r}, which is for no such class"
            expected = f"a table with {len(names)} columns p_<class>, one for each class of the training labels"
            raise InputError("predictions", seen, expected)
        return np.stack([numbers(table[n], "predictions", n) for n in names], axis=1), classes

    def _rehearsed(self, metric: Metric, output: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
        """Compute a metric's values with repeated training labels in place of the holdout's.

        A failure here releases no information about the holdout, and the refusal is free of charge.
        """
        try:
            return np.asarray(metric.values(np.resize(self._records.train_labels, len(output)), output, classes))
        except ThresholdoutError as error:
            if isinstance(error, InputError) and error.argument == "estimator":
                raise InputError("predictions", error.seen, error.expected, error.advice) from None
            raise
        except Exception as error:
            seen = f"{metric.name}, which raised {type(error).__name__}"
            advice = "Its message could show labels, and is left out."
            raise InputError("metric", seen, "suitable for the labels and predictions", advice) from None
