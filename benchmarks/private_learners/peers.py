"""diffprivlib on the same data: ``python -m benchmarks.private_learners.peers`` where it is installed.

It needs an older scikit-learn than this library (0.6.6 does not load with 1.8 or later), so it has an environment of
its own, and its scores are kept in ``results/diffprivlib.csv`` with the versions. Its epsilon is pure (no delta), which
is more than the other learners promise at the same epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from benchmarks.private_learners.measuring import FOLDER, Make, measure
from benchmarks.private_learners.tasks import Task

__all__ = ["PEERS"]


def _logistic(task: Task, n: int, epsilon: float, seed: int) -> Any:
    from diffprivlib.models import LogisticRegression

    # Rows are scaled down to this norm: about that of uniform features.
    features = task.made()[0].shape[1]
    return LogisticRegression(epsilon=epsilon, data_norm=0.6 * math.sqrt(features), random_state=seed)


def _naive_bayes(task: Task, n: int, epsilon: float, seed: int) -> Any:
    from diffprivlib.models import GaussianNB

    return GaussianNB(epsilon=epsilon, bounds=(task.low, 1.0), random_state=seed)


def _forest(task: Task, n: int, epsilon: float, seed: int) -> Any:
    from diffprivlib.models import RandomForestClassifier

    classes = list(range(task.classes))
    return RandomForestClassifier(epsilon=epsilon, bounds=(task.low, 1.0), classes=classes, random_state=seed)


def _linear(task: Task, n: int, epsilon: float, seed: int) -> Any:
    from diffprivlib.models import LinearRegression

    return LinearRegression(epsilon=epsilon, bounds_X=(task.low, 1.0), bounds_y=task.targets, random_state=seed)


def _means(task: Task, n: int, epsilon: float, seed: int) -> Any:
    from diffprivlib.models import KMeans

    return KMeans(task.classes, epsilon=epsilon, bounds=(task.low, 1.0), random_state=seed)


PEERS: Mapping[str, Mapping[str, Make]] = {
    "classes": {
        "diffprivlib LogisticRegression": _logistic,
        "diffprivlib GaussianNB": _naive_bayes,
        "diffprivlib RandomForestClassifier": _forest,
    },
    "number": {"diffprivlib LinearRegression": _linear},
    "clusters": {"diffprivlib KMeans": _means},
}
"""For each kind of task, how each learner is made."""


def main() -> None:
    """Measure what is missing."""
    versions = f"diffprivlib {version('diffprivlib')}, scikit-learn {version('scikit-learn')}"
    measure(PEERS, FOLDER / "diffprivlib.csv", versions)


if __name__ == "__main__":
    main()
