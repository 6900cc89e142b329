"""Runs of an evaluation set as models that a guard compares by their items' scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from thresholdout.errors import EvaluationFileError, InputError, InputTypeError
from thresholdout.evaluations.scores import Scores, item_records, shown
from thresholdout.evaluations.set_parts import hidden_items, split
from thresholdout.scoring.metrics import Metric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.guard.guard import Thresholdout

__all__ = ["ItemScore", "guard_of_items"]


@dataclass(frozen=True, repr=False)
class ItemScore(Metric):
    """The metric of a guarded evaluation set: the mean of items' scores, for runs that score all of its items."""

    dev_items: tuple[str, ...] = ()
    gate_items: tuple[str, ...] = ()
    judge: str = ""
    scale: tuple[float, float] = (0.0, 1.0)

    def response_of(self, estimator: Any) -> Literal["predict"]:
        """Refuse anything but a run of the set, before a score is read."""
        if not isinstance(estimator, Scores):
            raise InputTypeError(
                "estimator", f"a {type(estimator).__name__}", "a run that thresholdout.evaluations.read returns"
            )
        if (estimator.metric, estimator.scale) != (self.name, self.scale):
            seen = f"{estimator.name} with {estimator.metric} from {estimator.scale[0]:g} to {estimator.scale[1]:g}"
            raise InputError(
                "metric", seen, f"{self.name} from {self.scale[0]:g} to {self.scale[1]:g}, the guarded one"
            )
        if self.judge and estimator.judge and self.judge != estimator.judge:
            raise EvaluationFileError(
                estimator.name,
                f"The settings of scorer {self.name} differ from those of the guarded set. Score both alike.",
            )
        scored = {
            identity
            for identity, value in zip(estimator.identities, estimator.values.tolist(), strict=True)
            if not math.isnan(value)
        }
        lacking = [item for item in (*self.dev_items, *self.gate_items) if item not in scored]
        if lacking:
            many = len(self.dev_items) + len(self.gate_items)
            raise EvaluationFileError(
                estimator.name,
                f"{len(lacking)} of the {many} guarded items have no score there ({shown(lacking)}). "
                "Pass a run of the guarded set, and rerun failed samples.",
            )
        return "predict"


def guard_of_items(baseline: Scores, dev: float = 0.2, **declared: Any) -> tuple[Thresholdout, ItemScore]:
    """Return a guard whose records are the items of an evaluation set, and the metric that compares runs.

    A guard (`Thresholdout`) answers queries about a holdout and tracks an error budget. Its methods `compare`,
    `compare_all`, `score` and `gate` take runs from `read` in place of models, and match items by content. Use this
    guard to certify improvements with intervals. Use `EvaluationGuard` to watch for drops.

    Parameters
    ----------
    baseline : Scores
        Run of the set, from `read`. Its clusters become the guard's groups.
    dev : float, default 0.2
        Share of the items in the development part, which everybody may read. They are chosen by a hash of the item or
        of its cluster, so every process has the same parts.
    **declared
        Further arguments of `Thresholdout`, such as ``ledger=``, ``queries=`` or ``sampling="iid"``.

    Returns
    -------
    guard : Thresholdout
        Guard with the other items as its holdout.
    score : ItemScore
        Metric to pass to the guard's methods: the mean score of the items of a run.

    Raises
    ------
    InputError
        If `dev` is not between 0 and 1, or if a part would have no items.

    Examples
    --------
    >>> import pandas as pd
    >>> from thresholdout.evaluations import guard_of_items, read
    >>> frame = pd.DataFrame({"id": range(3000), "score": [i % 10 < 7 for i in range(3000)]})
    >>> main, pr = read(frame), read(frame.assign(score=[i % 10 < 8 for i in range(3000)]))
    >>> guard, score = guard_of_items(main, sampling="iid")
    >>> guard.compare(pr, main, score).verdict
    'better'
    >>> guard.gate(main, score).propose(pr).outcome
    'keep'
    """
    if not 0.0 < dev < 1.0:
        raise InputError("dev", dev, "between 0 and 1")
    # the hash has no key, so that every process has the same parts, and a ledger one budget for them
    gate_items, dev_items = map(sorted, split(baseline, hidden_items(baseline, "", dev)))
    if not gate_items or not dev_items:
        seen = f"{dev:g} of {len(baseline)} items, which leaves one part without items"
        raise InputError("dev", seen, "a share that leaves items in both parts", "Pass a run with more items.")
    from thresholdout.guard.guard import Thresholdout

    clusters = None if baseline.clusters is None else dict(zip(baseline.identities, baseline.clusters, strict=True))

    def labelled(items: list[str]) -> tuple[Any, ...]:
        """Return items as a part of a guard; nothing is predicted, so all labels are equal."""
        records = item_records(items), np.zeros(len(items), dtype=np.int64)
        return records if clusters is None else (*records, np.array([clusters[item] for item in items]))

    guard = Thresholdout(labelled(gate_items), development=labelled(dev_items), **declared)
    return guard, ItemScore(
        baseline.metric,
        "predict",
        _as_said,
        (0.0, 1.0),
        greater_is_better=True,
        reads_classes=False,
        dev_items=tuple(dev_items),
        gate_items=tuple(gate_items),
        judge=baseline.judge,
        scale=baseline.scale,
    )


def _as_said(y: NDArray[Any], output: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
    return output
