"""Reading tables of predictions: joined by id, checked by format and training labels alone.

Nothing here sees a label of the holdout, so that what is refused tells nothing about one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.data.table_dependence import MOST_CLASSES
from thresholdout.data.tables import check_table, id_texts, numbers, predicted_labels, unordered
from thresholdout.errors import InputError, ThresholdoutError
from thresholdout.service.reading import Reading

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from thresholdout.scoring.metrics import Metric
    from thresholdout.service.labelled_records import LabelledRecords

__all__ = ["OF_LABELS", "PredictionReader"]

OF_LABELS: Final = ("accuracy", "zero_one_loss")
"""Metrics of which a value is 0 or 1."""

_OF_NUMBERS: Final = ("squared_error", "absolute_error")


class PredictionReader:
    """Reads tables of predictions for the records of one guard.

    Parameters
    ----------
    records : LabelledRecords
        What predictions are about; of the labels those of the training part are used.
    guard : str
        Identity of the guard.
    """

    def __init__(self, records: LabelledRecords, guard: str) -> None:
        self._records = records
        self._guard = guard

    def read(
        self,
        predictions: pd.DataFrame | Reading,
        metric: Metric,
        argument: str = "predictions",
    ) -> Reading:
        """Return what a table says, with the metric's values on the training part where it has rows for that.

        Parameters
        ----------
        predictions : DataFrame or Reading
            The table; or what was read of one before, which is checked to be of this guard and metric.
        metric : Metric
            What it is read for.
        argument : str
            How messages call it.

        Raises
        ------
        InputError
            As `PredictionGuard.ask`, for what depends on ids, format and training labels alone.
        """
        if isinstance(predictions, Reading):
            return self._again(predictions, metric, argument)
        try:
            table, trains = self._in_order(predictions)
            output, classes = self._output(table, metric)
            rehearsed = self._rehearsed(metric, output, classes)
            train = rehearsed[: len(self._records.train_labels)] if trains else None
            return Reading(self._guard, metric.name, np.array(output), classes, train)  # nobody else can change it
        except InputError as error:
            if error.argument == "predictions" != argument:
                raise type(error)(argument, error.seen, error.expected) from None
            raise

    def _again(self, reading: Reading, metric: Metric, argument: str) -> Reading:
        """Refuse what was read for something else."""
        if reading.guard != self._guard:
            seen = f"what guard {reading.guard[:12]!r}... has read"
            raise InputError(argument, seen, f"a reading of guard {self._guard[:12]!r}...")
        if reading.metric != metric.name:
            raise InputError(argument, f"what was read for {reading.metric}", f"a reading for {metric.name}")
        wanted = len(self._records.ids) - (0 if reading.train is not None else len(self._records.train_labels))
        if len(reading.output) != wanted:
            raise InputError(argument, f"what was read for {len(reading.output)} records", f"one for {wanted}")
        return reading

    def check_metric(self, metric: Metric) -> None:
        """Refuse a metric that does not suit the training labels."""
        labels, name = self._records.train_labels, metric.name.partition("(")[0]
        if name in _OF_NUMBERS and labels.dtype.kind == "U":
            seen = f"{name} of labels that were read as text"
            raise InputError(
                "metric", seen, "a metric of classes, such as 'accuracy', or a guard whose labels are numbers"
            )
        if metric.response == "predict_proba" and (
            labels.dtype.kind == "f" or self._records.classes.size > MOST_CLASSES
        ):
            different = "that are not integers" if labels.dtype.kind == "f" else f"of more than {MOST_CLASSES} kinds"
            seen = f"{name} of training labels {different}"
            raise InputError("metric", seen, "labels that are classes; for numbers, squared_error or absolute_error")

    def _in_order(self, predictions: pd.DataFrame) -> tuple[pd.DataFrame, bool]:
        """Return the predictions in the order of the records, training part first, and whether that part is there."""
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
        """Take from a table of predictions what a metric needs, in the type of the labels."""
        labels = self._records.train_labels
        if metric.response == "predict":
            check_table(table, "predictions", ["prediction"])
            output = predicted_labels(table["prediction"], labels)
            if metric.name in OF_LABELS and not np.isin(output, self._records.classes).any():
                seen = "no value in column 'prediction' is a label of the training part"
                raise InputError("predictions", seen, "predicted labels, written as in the training part")
            return output, None
        classes = self._records.classes
        names = [f"p_{c}" for c in classes.tolist()]
        check_table(table, "predictions", names)
        extra = [str(c) for c in table.columns if str(c).startswith("p_") and c not in names and c != self._records.id]
        if extra:
            seen = f"a column {extra[0]!r}, which is no class of the training labels"
            raise InputError("predictions", seen, f"{len(names)} columns p_<class>, one for each of these classes")
        return np.stack([numbers(table[n], "predictions", n) for n in names], axis=1), classes

    def _rehearsed(self, metric: Metric, output: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
        """Compute a metric's values with training labels, again and again, in place of the holdout's.

        What fails here tells nothing about the holdout, and is refused for nothing.
        """
        try:
            return np.asarray(metric.values(np.resize(self._records.train_labels, len(output)), output, classes))
        except ThresholdoutError as error:
            if isinstance(error, InputError) and error.argument == "estimator":
                raise InputError("predictions", error.seen, error.expected) from None
            raise
        except Exception as error:
            seen = f"{type(error).__name__} from {metric.name} (its message could show labels)"
            raise InputError("metric", seen, "a metric that suits the labels and predictions") from None
