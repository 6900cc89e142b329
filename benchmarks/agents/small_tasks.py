"""Fifteen small tabular tasks: nine that are generated, so that fresh records tell the truth, and six files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["FILES", "FRESH", "GENERATED", "TASKS", "Task", "draw"]

TRAIN: Final = 500  # records that pipelines are fitted to
SLICES: Final = 20_000  # generated records that slices are taken from
FRESH: Final = 20_000  # generated records that tell the truth

Floats = NDArray[np.float64]
Made = tuple[Floats, NDArray[Any]]


class Task(NamedTuple):
    """Records in random order, the training part first."""

    X: Floats
    y: NDArray[np.int64]
    train: int


def _classification(**settings: Any) -> Callable[[int, int], Made]:
    def make(size: int, seed: int) -> Made:
        from sklearn.datasets import make_classification

        made: Made = make_classification(size, random_state=seed, **settings)
        return made

    return make


def _friedman(size: int, seed: int) -> Made:
    from sklearn.datasets import make_friedman1

    X, target = make_friedman1(size, noise=2.0, random_state=seed)
    return X, target > np.median(target)


def _hastie(size: int, seed: int) -> Made:
    from sklearn.datasets import make_hastie_10_2

    X, y = make_hastie_10_2(size, random_state=seed)
    return X, y > 0


def _shells(size: int, seed: int) -> Made:
    from sklearn.datasets import make_gaussian_quantiles

    X, y = make_gaussian_quantiles(n_samples=size, n_features=6, n_classes=3, random_state=seed)
    wrong = np.random.default_rng(seed).random(size) < 0.1
    return X, np.where(wrong, (y + 1) % 3, y)


GENERATED: Final[dict[str, Callable[[int, int], Made]]] = {
    "linear": _classification(n_features=20, n_informative=5, n_clusters_per_class=1, class_sep=1.0, flip_y=0.05),
    "noisy labels": _classification(n_features=12, n_informative=6, class_sep=1.5, flip_y=0.4),
    "clusters": _classification(n_features=12, n_informative=6, n_clusters_per_class=3, class_sep=1.5, flip_y=0.02),
    "useless features": _classification(n_features=40, n_informative=4, n_redundant=0, class_sep=1.0, flip_y=0.1),
    "five classes": _classification(n_features=15, n_informative=8, n_classes=5, class_sep=1.2, flip_y=0.05),
    "one in six": _classification(n_features=12, n_informative=5, weights=[0.85], class_sep=0.8, flip_y=0.05),
    "cut regression": _friedman,
    "sum of squares": _hastie,
    "shells": _shells,
}


def _digits() -> Made:
    from sklearn.datasets import load_digits

    made: Made = load_digits(return_X_y=True)
    return made


def _breast_cancer() -> Made:
    from sklearn.datasets import load_breast_cancer

    made: Made = load_breast_cancer(return_X_y=True)
    return made


def _diabetes() -> Made:
    from sklearn.datasets import load_diabetes

    X, target = load_diabetes(return_X_y=True)
    return X, target > np.median(target)


def _table(name: str) -> Any:
    from statsmodels import datasets

    return getattr(datasets, name).load_pandas().data.astype(np.float64)


def _affairs() -> Made:
    table = _table("fair")
    return table.drop(columns="affairs").to_numpy(), (table["affairs"] > 0).to_numpy()


def _doctor_visits() -> Made:
    table = _table("randhie")
    return table.drop(columns="mdvis").to_numpy(), (table["mdvis"] > table["mdvis"].median()).to_numpy()


def _votes() -> Made:
    table = _table("anes96")
    return table[["TVnews", "selfLR", "age", "educ", "income", "logpopul"]].to_numpy(), table["vote"].to_numpy()


FILES: Final[dict[str, tuple[Callable[[], Made], int]]] = {
    "digits": (_digits, TRAIN),
    "breast cancer": (_breast_cancer, 200),
    "diabetes": (_diabetes, 150),
    "votes": (_votes, 300),
    "affairs": (_affairs, TRAIN),
    "doctor's visits": (_doctor_visits, TRAIN),
}
"""Data of scikit-learn and statsmodels, and how many of their records train."""

TASKS: Final = (*GENERATED, *FILES)


def draw(name: str, seed: int, fresh: int = FRESH) -> Task:
    """Return a task: new records of a generated one, a file in another order."""
    if name in GENERATED:
        train = TRAIN
        X, y = GENERATED[name](train + SLICES + fresh, seed)
    else:
        load, train = FILES[name]
        X, y = load()
    order = np.random.default_rng(seed).permutation(len(y))
    return Task(X[order], y[order].astype(np.int64), train)
