"""Two grouped data sets: exact and normal limits beside clustered t, a cluster bootstrap, and Wald without groups.

Countries with forty years each (World Bank fertility) and travellers with four alternatives each (modechoice), both of
statsmodels. A model is fitted to a third of the groups. The other groups are a population, from which holdouts are
drawn, whole groups with replacement: groups are independent and of one size, and the population's mean is the truth.
Run ``python -m benchmarks.grouped_data``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from thresholdout import Claims, Thresholdout

_GUARDS: Final = 20
_DRAWS: Final = 2000
_BOOTSTRAPS: Final = 400
_LEVEL: Final = 0.95

Floats = NDArray[np.float64]
Data = tuple[Floats, NDArray[np.int64]]


def fertility() -> Data:
    """Return for each country and year whether the rate falls by over 1.5 % to the next one, with earlier changes."""
    from statsmodels import datasets

    table = datasets.fertility.load_pandas().data.iloc[:, 4:].astype(float)
    table = table.dropna(axis=1, thresh=150).dropna()
    rates = np.log(table.to_numpy())
    change = np.diff(rates, axis=1)
    years = range(8, 48)
    X = np.stack([np.column_stack([rates[:, k], change[:, k - 8 : k : 4]]) for k in years], axis=1)
    y = np.stack([change[:, k] < -0.015 for k in years], axis=1)
    return X, y.astype(np.int64)


def choices() -> Data:
    """Return for each traveller and way of travelling whether it was chosen, with its times and costs."""
    from statsmodels import datasets

    table = datasets.modechoice.load_pandas().data
    X = np.column_stack([table["mode"] == k for k in (1, 2, 3)] + [table[c] for c in ("ttme", "invc", "invt", "hinc")])
    return X.astype(float).reshape(210, 4, -1), table["choice"].to_numpy().astype(np.int64).reshape(210, 4)


def values_of(data: Data, simple: bool) -> tuple[Floats, Floats]:
    """Return right and wrong answers by group, of training groups (out of fold) and of the population."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    X, y = data
    order = np.random.default_rng(0).permutation(len(y))
    train, rest = order[: len(y) // 3], order[len(y) // 3 :]
    tree = DecisionTreeClassifier(max_depth=6, random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression()) if simple else tree
    flat, labels, groups = X[train].reshape(-1, X.shape[2]), y[train].ravel(), np.repeat(train, y.shape[1])
    told = cross_val_predict(model, flat, labels, cv=GroupKFold(5), groups=groups) == labels
    fitted = model.fit(flat, labels)
    right = fitted.predict(X[rest].reshape(-1, X.shape[2])) == y[rest].ravel()
    return told.reshape(len(train), -1).astype(float), right.reshape(len(rest), -1).astype(float)


def clustered(values: Floats) -> tuple[float, float]:
    """Return mean and half-width by the clustered sandwich and Student's quantile; checked against statsmodels."""
    groups = values.shape[0]
    sums = (values - values.mean()).sum(axis=1)
    n = values.size
    error = np.sqrt(groups / (groups - 1) * float(sums @ sums)) / n
    return float(values.mean()), float(student.isf((1 - _LEVEL) / 2, groups - 1)) * error


def bootstrap(values: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Return the middle and the half-width of a percentile interval over groups."""
    means = values.mean(axis=1)
    drawn = means[rng.integers(0, means.size, (_BOOTSTRAPS, means.size))].mean(axis=1)
    low, high = np.quantile(drawn, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return 0.5 * (low + high), 0.5 * (high - low)


def wald(values: Floats) -> tuple[float, float]:
    """Return mean and half-width as if records were independent."""
    mean = float(values.mean())
    return mean, 1.96 * float(values.std()) / np.sqrt(values.size)


def guarded(train: Floats, values: Floats, bounds: tuple[float, float], limits: Any) -> tuple[float, float]:
    """Return middle and half-width of the one answer of a guard."""
    size = values.shape[1]
    labels = np.repeat(np.arange(len(values)), size), np.repeat(len(values) + np.arange(len(train)), size)
    parts = [np.arange(own.size, dtype=float) + shift for own, shift in ((values, 0.0), (train, 1e6))]
    guard = Thresholdout(
        (parts[0], None, labels[0]),
        train=(parts[1], None, labels[1]),
        queries=1,
        mechanism=Claims(limits=limits),
        random_state=0,
    )
    (answer,) = guard.ask_all([(train.ravel(), values.ravel())], bounds=bounds, reserve=0.0)
    return 0.5 * sum(answer.interval), answer.half_width


def table(name: str, train: Floats, population: Floats, groups: int, bounds: tuple[float, float]) -> None:
    """Print a row."""
    truth, rng = float(population.mean()), np.random.default_rng(1)
    draws = [population[rng.integers(0, len(population), groups)] for _ in range(_DRAWS)]
    ways: dict[str, tuple[Callable[[Floats], tuple[float, float]], int]] = {
        "exact": (lambda values: guarded(train, values, bounds, "exact"), _GUARDS),
        "normal": (lambda values: guarded(train, values, bounds, "normal"), _GUARDS),
        "clustered t": (clustered, _DRAWS),
        "cluster bootstrap": (lambda values: bootstrap(values, rng), _DRAWS),
        "Wald": (wald, _DRAWS),
    }
    cells = []
    for interval, number in ways.values():
        found = [interval(values) for values in draws[:number]]
        missed = sum(abs(middle - truth) > half for middle, half in found)
        cells.append(f"{np.mean([half for _, half in found]):.3f} ({missed}/{number})")
    print(f"| {name} | {groups} x {population.shape[1]} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print the table."""
    print("| query | groups | exact | normal | clustered t | cluster bootstrap | Wald, no groups |")
    print("|---|---|---|---|---|---|---|")
    for name, data, sizes in (("countries", fertility(), (30, 100)), ("travellers", choices(), (30, 140))):
        simple, tree = values_of(data, True), values_of(data, False)
        for groups in sizes:
            table(f"{name}, accuracy", *simple, groups, (0.0, 1.0))
            table(f"{name}, difference", simple[0] - tree[0], simple[1] - tree[1], groups, (-1.0, 1.0))


if __name__ == "__main__":
    main()
