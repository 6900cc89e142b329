"""How often `SGLDRegressor` says that it swings, or has not arrived, on good fits and on fits that are worth nothing.

Run with ``python -m benchmarks.private_learners swings``; some ten minutes. Clips are multiples of the one that the
comparison sets; batches are a quarter of the records, drawn for each of 400 steps, or a tenth in 20 sweeps.
"""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.linear_model import LinearRegression

from benchmarks.private_learners.learners import PRIVATE
from benchmarks.private_learners.tasks import EPSILONS, TASKS, Split, splits

__all__ = ["swings"]

MULTIPLES = (0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 2.0, 5.0, 10.0, 30.0)
ORDERS: tuple[dict[str, Any], ...] = (
    {"order": "uniform", "n_steps": 400},
    {"order": "cyclic", "n_steps": 200},
)


WORDS = ("the noise moves", "the chain swings", "has not arrived")


def warned(model: Any, split: Split) -> list[bool]:
    """Return whether a fit warns of its noise, of swinging, and of steps that are too short."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(split.X, split.y)
    texts = [str(each.message) for each in found]
    return [any(words in text for text in texts) for words in WORDS]


def swings() -> None:
    print("task  records  epsilon  multiple  order  R2  possible  warned of noise  of swing  of start")
    for name in ("linear", "diabetes", "friedman"):
        task = TASKS[name]
        for records in task.sizes if name == "linear" else task.sizes[:1]:
            for split in list(splits(task, records))[:2]:
                line = LinearRegression().fit(split.X, split.y).score(split.X_test, split.y_test)
                for epsilon in EPSILONS:
                    for multiple in MULTIPLES:
                        for named in ORDERS:
                            model = PRIVATE["number"]["SGLDRegressor"](task, records, epsilon, split.seed)
                            size = records // (4 if named["order"] == "uniform" else 10)
                            model.set_params(clip=model.clip * multiple, batch_size=size, **named)
                            noise, swing, start = warned(model, split)
                            score = model.score(split.X_test, split.y_test)
                            cell = f"{name}  {records}  {epsilon:g}  {multiple:g}  {named['order']}"
                            print(f"{cell}  {score:.4g}  {line:.4g}  {noise:d}  {swing:d}  {start:d}", flush=True)
