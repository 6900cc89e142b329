"""Guards in the Trainer of Hugging Face's transformers, by its ``compute_metrics``; no library is loaded here.

`thresholdout.model_selection.transformers_callback` is a callback that stops training. Here the holdout's features pass
through the Trainer as an evaluation set, without its labels: the Trainer would log the loss on them.
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
    """Keep or reject the model of each evaluation, as the function of ``Trainer(compute_metrics=...)``.

    It makes the two evaluation sets that it needs: ``eval_dataset={"free": metrics.free(...), "holdout":
    metrics.holdout(...)}``, in this order. For the free one it returns the plain metric, for the holdout the verdict:
    ``eval_holdout_kept`` and ``eval_holdout_certified`` are 1 or 0, ``eval_holdout_score`` rises with every model that
    is kept and is 0 for all others, and ``eval_holdout_asked`` is 0 if the guard is exhausted. With
    ``metric_for_best_model="eval_holdout_score"`` the best checkpoint is the guard's champion.

    Parameters
    ----------
    models : GuardedModels
        Judges the models. Give its guard validation records as training part: a network that was fitted to them seems
        better than it is, and evaluations of the holdout are spent in vain.
    outputs : callable, optional
        ``outputs(predictions)`` returns probabilities of the classes, or numbers, from the model's outputs. By default
        the softmax of the last axis for metrics of classes, else the outputs themselves.

    Notes
    -----
    The Trainer may evaluate records in another order (``train_sampling_strategy="group_by_length"``). So the sets keep
    the order in which they were read, in this process: ``dataloader_num_workers`` must be 0, and there must be one
    process. The loss on the holdout's set is meaningless; for classes it is NaN.

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
        """Return the evaluation set of the training part: all its records in the guard's order, with their labels."""
        self._sets["free"] = self._made(dataset, len(self._models.guard._open[1]), None, ())
        return self._sets["free"]

    def holdout(self, dataset: Any, label_names: Sequence[str] = _LABELS) -> Any:
        """Return the evaluation set of the holdout, with the label that losses ignore in place of all labels.

        Parameters
        ----------
        dataset : sequence of dict
            All its records in the guard's order.
        label_names : sequence of str
            Columns that are labels or reveal them, all of which are left out; empty for records without labels.

        Raises
        ------
        InputError
            The records have none of these columns, so that the Trainer could log the loss on labels under another name.
        """
        label = _IGNORED if self._classifies else float(_IGNORED)
        made = self._made(dataset, self._models.guard.n, label, tuple(label_names))
        columns = list(dict(dataset[0]))
        if label_names and not set(label_names).intersection(columns):
            seen = f"records with the columns {columns}, none of them {' or '.join(map(repr, label_names))}"
            advice = "Pass an empty list for records without labels."
            raise InputError("label_names", seen, "the columns that are labels", advice)
        self._sets["holdout"] = made
        return made

    def __call__(self, prediction: Any) -> dict[str, float]:
        """Return the metrics of one evaluation set; the Trainer calls this."""
        read = [name for name, rows in self._sets.items() if rows.read]
        if len(read) != 1:
            advice = "Read it in this process, with dataloader_num_workers=0."
            expected = "a set of GuardedMetrics.free or GuardedMetrics.holdout"
            raise InputError("eval_dataset", "another set", expected, advice)
        order = self._sets[read[0]].order()
        told = prediction.predictions[0] if isinstance(prediction.predictions, tuple) else prediction.predictions
        found = np.asarray(self._outputs(np.asarray(told)))
        if len(found) != len(order):
            raise InputError("predictions", f"{len(found)} of them", f"those of all {len(order)} records")
        outputs = np.empty_like(found)
        outputs[order] = found
        if read[0] == "free":
            self._check_labels(np.asarray(prediction.label_ids), order)
            self._free = outputs
            values = self._models.values_on_train(outputs, np.arange(len(order)))
            return {self._models.metric.name: float(np.mean(values))}
        free, self._free = self._free, None
        if free is None:
            seen = "the holdout with no free set before it"
            raise InputError("eval_dataset", seen, "a dict with the keys 'free' and 'holdout', in this order")
        return numbers(self._models.propose_outputs(free, outputs))

    def _made(self, dataset: Any, n: int, label: float | None, label_names: tuple[str, ...]) -> _Rows:
        if len(dataset) != n:
            raise InputError("dataset", f"{len(dataset)} records", f"the guard's {n} records, in its order")
        return _Rows(dataset, label, label_names)

    def _check_labels(self, given: NDArray[Any], order: NDArray[np.intp]) -> None:
        """Refuse records in another order than the guard's, as far as labels show it."""
        labels = np.asarray(self._models.guard._open[1])[order]
        if self._classifies:
            codes = np.searchsorted(self._models.classes, labels)
            same = np.array_equal(codes, given.ravel())
        else:
            same = np.allclose(labels.ravel().astype(np.float64), given.ravel().astype(np.float64), rtol=1e-5)
        if not same:
            advice = "Classes are numbered in the order of models.classes."
            expected = "the guard's training part in its order"
            raise InputError("eval_dataset", "a free set with other labels", expected, advice)


class _Rows:
    """The records of one part, and the order in which they were last read."""

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
        """Return the records' positions in the order of reading, and forget it."""
        found, self.read = np.array(self.read[-len(self) :], dtype=np.intp), []
        if not np.array_equal(np.sort(found), np.arange(len(self))):
            raise InputError("eval_dataset", f"{np.unique(found).size} records", f"a set of all {len(self)} records")
        return found


def _softmax(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Return probabilities from logits."""
    powers = np.exp(scores.astype(np.float64) - scores.max(axis=-1, keepdims=True))
    shares: NDArray[np.float64] = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def _numbers(scores: NDArray[Any]) -> NDArray[Any]:
    return scores.reshape(len(scores)) if scores.ndim == 2 and scores.shape[1] == 1 else scores
