"""Guards in the Trainer of Hugging Face's transformers, by its ``compute_metrics``; nothing is loaded here.

A callback that stops training is `thresholdout.model_selection.transformers_callback`. Here the holdout's features go
through the Trainer, as an evaluation set, and its labels do not: the Trainer logs the loss on whatever labels it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.errors import InputError
from thresholdout.integrations.models import GuardedModels, numbers
from thresholdout.scoring.fitted_models import classifies

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GuardedMetrics"]

_IGNORED: Final = -100
"""The label that losses of classes ignore."""

_LABELS: Final = ("label", "labels", "label_ids")


class GuardedMetrics:
    """A function for ``Trainer(compute_metrics=...)`` that keeps or rejects the model of each evaluation.

    It needs two evaluation sets, which it makes: ``eval_dataset={"free": metrics.free(...), "holdout":
    metrics.holdout(...)}``, in this order. For the free one it returns the plain metric. For the holdout it returns the
    verdict: ``eval_holdout_kept`` and ``eval_holdout_certified`` are 1 or 0, ``eval_holdout_score`` is a number that
    rises with every model that is kept and is 0 for all others, and ``eval_holdout_asked`` is 0 where the guard answers
    no more. With ``metric_for_best_model="eval_holdout_score"`` the best checkpoint is the guard's champion.

    Parameters
    ----------
    models : GuardedModels
        What judges. The guard's training part are the records that validate: a network that was fitted to them looks
        better there than it is, and looks at the holdout are paid for in vain.
    outputs : callable, optional
        ``outputs(predictions)``: from what the model puts out to probabilities of the classes, or to numbers. By
        default the softmax of the last axis for metrics of classes, else the numbers themselves.

    Notes
    -----
    The Trainer may evaluate in another order than that of the records (``train_sampling_strategy="group_by_length"``).
    So the sets remember in which order they were read, in this process: ``dataloader_num_workers`` must be 0, and
    there must be one process. The loss on the holdout's set means nothing; for classes it is NaN.

    Examples
    --------
    ::

        guard = Thresholdout((X_holdout, y_holdout), train=(X_validation, y_validation))
        metrics = GuardedMetrics(GuardedModels(guard))
        trainer = Trainer(
            model,
            arguments,
            train_dataset=fitting,
            eval_dataset={"free": metrics.free(validation), "holdout": metrics.holdout(holdout)},
            compute_metrics=metrics,
        )
        trainer.train()
    """

    def __init__(self, models: GuardedModels, outputs: Callable[[Any], Any] | None = None) -> None:
        self._models = models
        self._classifies = classifies(models.metric)
        self._outputs = outputs or (_softmax if self._classifies else _numbers)
        self._sets: dict[str, _Rows] = {}
        self._free: NDArray[Any] | None = None

    def free(self, dataset: Any) -> Any:
        """Return the set of the guard's training part.

        Parameters
        ----------
        dataset : sequence of dict
            All its records in the guard's order, with their labels.
        """
        self._sets["free"] = self._made(dataset, len(self._models.guard._open[1]), None, ())
        return self._sets["free"]

    def holdout(self, dataset: Any, label_names: Sequence[str] = _LABELS) -> Any:
        """Return the set of the holdout, whose labels are all the one that losses ignore.

        Parameters
        ----------
        dataset : sequence of dict
            All its records in the guard's order; labels are replaced.
        label_names : sequence of str
            Which of their columns are labels, or tell them; all of these are left out. None for records that have no
            labels.

        Raises
        ------
        InputError
            When the records have none of these columns: what the labels are called has to be said, since the Trainer
            would log the loss on them.
        """
        label = _IGNORED if self._classifies else float(_IGNORED)
        made = self._made(dataset, self._models.guard.n, label, tuple(label_names))
        columns = list(dict(dataset[0]))
        if label_names and not set(label_names).intersection(columns):
            seen = f"records with the columns {columns}, none of them {' or '.join(map(repr, label_names))}"
            raise InputError("label_names", seen, "the columns that are labels; [] for records without")
        self._sets["holdout"] = made
        return made

    def __call__(self, prediction: Any) -> dict[str, float]:
        """Return what is known of the evaluation of one set; the Trainer calls this.

        Raises
        ------
        InputError
            When an evaluation is about a part of the records, the holdout comes without the free set before it, or the
            free set has other labels than the guard's training part. Nothing is spent.
        """
        read = [name for name, rows in self._sets.items() if rows.read]
        if len(read) != 1:
            expected = "one of GuardedMetrics.free and .holdout, read in this process (dataloader_num_workers=0)"
            raise InputError("eval_dataset", "an evaluation of another set", expected)
        order = self._sets[read[0]].order()
        told = prediction.predictions[0] if isinstance(prediction.predictions, tuple) else prediction.predictions
        found = np.asarray(self._outputs(np.asarray(told)))
        if len(found) != len(order):
            raise InputError("predictions", f"{len(found)} of them", f"one for each of all {len(order)} records")
        outputs = np.empty_like(found)
        outputs[order] = found
        if read[0] == "free":
            self._check_labels(np.asarray(prediction.label_ids), order)
            self._free = outputs
            values = self._models.values_on_train(outputs, np.arange(len(order)))
            return {self._models.metric.name: float(np.mean(values))}
        free, self._free = self._free, None
        if free is None:
            raise InputError("eval_dataset", "the holdout with no free set before it", "{'free': ..., 'holdout': ...}")
        return numbers(self._models.propose_outputs(free, outputs))

    def _made(self, dataset: Any, n: int, label: float | None, label_names: tuple[str, ...]) -> _Rows:
        if len(dataset) != n:
            raise InputError("dataset", f"{len(dataset)} records", f"all {n} of the guard's, in its order")
        return _Rows(dataset, label, label_names)

    def _check_labels(self, given: NDArray[Any], order: NDArray[np.intp]) -> None:
        """Refuse records in another order than the guard's, as far as labels tell it."""
        labels = np.asarray(self._models.guard._open[1])[order]
        if self._classifies:
            codes = np.searchsorted(self._models.classes, labels)
            same = np.array_equal(codes, given.ravel())
        else:
            same = np.allclose(labels.ravel().astype(np.float64), given.ravel().astype(np.float64), rtol=1e-5)
        if not same:
            expected = "the guard's training part in its order, classes numbered in the order of models.classes"
            raise InputError("eval_dataset", "a free set with other labels", expected)


class _Rows:
    """The records of one part, and in which order they were read last."""

    def __init__(self, dataset: Any, label: float | None, label_names: tuple[str, ...]) -> None:
        self._dataset = dataset
        self._label = label
        self._label_names = label_names
        self.read: list[int] = []

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, position: int) -> dict[str, Any]:
        if position >= len(self._dataset):
            raise IndexError(position)
        self.read.append(int(position))
        row = dict(self._dataset[position])
        if self._label is not None:
            row = {name: value for name, value in row.items() if name not in self._label_names}
            row["labels"] = self._label
        return row

    def order(self) -> NDArray[np.intp]:
        """Return the records' positions in the order in which they were read, and forget it."""
        found, self.read = np.array(self.read[-len(self) :], dtype=np.intp), []
        if not np.array_equal(np.sort(found), np.arange(len(self))):
            raise InputError("eval_dataset", f"an evaluation of {np.unique(found).size} records", f"all {len(self)}")
        return found


def _softmax(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Return probabilities from logits.

    Examples
    --------
    >>> _softmax(np.log([[1.0, 3.0]])).round(12).tolist()
    [[0.25, 0.75]]
    """
    powers = np.exp(scores.astype(np.float64) - scores.max(axis=-1, keepdims=True))
    shares: NDArray[np.float64] = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def _numbers(scores: NDArray[Any]) -> NDArray[Any]:
    return scores.reshape(len(scores)) if scores.ndim == 2 and scores.shape[1] == 1 else scores
