"""How often `SGLDRegressor` says that it swings, or has not arrived, on good fits and on fits that are worth nothing.

Run with ``python -m benchmarks.private_learners swings``; some ten minutes. Clips are multiples of the one that the
comparison sets; batches are a quarter of the records, drawn for each of 400 steps, or a tenth in 20 sweeps.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from typing import Any

from sklearn.linear_model import LinearRegression

from benchmarks.private_learners.learners import PRIVATE
from benchmarks.private_learners.tasks import EPSILONS, TASKS, Split, splits

__all__ = ["kind", "swings", "table"]

MULTIPLES = (0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 2.0, 5.0, 10.0, 30.0)
ORDERS: tuple[dict[str, Any], ...] = (
    {"order": "uniform", "n_steps": 400},
    {"order": "cyclic", "n_steps": 200},
)


WORDS = ("The noise moves", "The chain swings", "has not arrived")


def warned(model: Any, split: Split) -> list[bool]:
    """Return whether a fit warns of its noise, of swinging, and of steps that are too short."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(split.X, split.y)
    texts = [str(each.message) for each in found]
    return [any(words in text for text in texts) for words in WORDS]


def kind(score: float, line: float) -> str:
    """Return how good a fit is, where a line without privacy has some R2."""
    return "good" if score >= line / 2 else "at least 0" if score >= 0 else "at least -1" if score >= -1 else "below -1"


def table(found: list[tuple[float, float, float, list[bool]]]) -> list[str]:
    """Return rows of a table: how many fits, by multiple, R2, what is possible and warnings, warn of what."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for multiple, score, line, (noise, swing, start) in found:
        row, side = counts[kind(score, line)], "small" if multiple <= MULTIPLES[3] else "large"
        row.update(["fits", *(["noise"] if noise else [side]), *(["all"] if noise or swing or start else [])])
        row.update([] if noise else [f"{side} swing"] * swing + [f"{side} start"] * start)
    return [
        f"| {name} | {row['fits']} | {row['noise']} | {row['small swing']} and {row['small start']} of {row['small']} "
        f"| {row['large swing']} and {row['large start']} of {row['large']} | {row['all']} |"
        for name, row in counts.items()
    ]


def swings() -> None:
    found: list[tuple[float, float, float, list[bool]]] = []
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
                            said = warned(model, split)
                            score = model.score(split.X_test, split.y_test)
                            cell = f"{name}  {records}  {epsilon:g}  {multiple:g}  {named['order']}"
                            print(f"{cell}  {score:.4g}  {line:.4g}  {said}", flush=True)
                            found.append((multiple, score, line, said))
    print("R2 | fits | noise | small clips: swing and start | larger ones | any", *table(found), sep="\n")
