"""Models whose predictions are known, guards of them, and climbs, for tests of gates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from thresholdout import Thresholdout
from thresholdout.guard.decision import Decision
from thresholdout.guard.gates import Gate

N = 1000
TRAIN = 2 * N
STEPS = 12


class Told:
    """A model whose predictions are a column of the records; it notes when it sees the holdout."""

    classes_ = np.array([0, 1])

    def __init__(self, column: int) -> None:
        self.column = column
        self.evaluations = 0

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        self.evaluations += len(X) == N
        return X[:, self.column].astype(int)

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        self.evaluations += len(X) == N
        one = 0.1 + 0.8 * X[:, self.column]
        return np.stack([1.0 - one, one], axis=1)


class Fails(Told):
    """A model that works on the training part and not on the holdout."""

    def __init__(self, column: int, error: type[BaseException] = ValueError) -> None:
        super().__init__(column)
        self.error = error

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        if len(X) == N:
            raise self.error(f"the first label is {X[0]}")
        return super().predict(X)


def columns(gains: list[float], seed: int = 0, changed: float = 0.08) -> NDArray[np.float64]:
    """Return whether models are right: each changes some records of the one before, and is better by a gain."""
    rng = np.random.default_rng(seed)
    right, accuracy = rng.random(N + TRAIN) < 0.6, 0.6
    found = [right]
    for gain in gains:
        change = max(changed, abs(gain))
        up, down = 0.5 * (change + gain) / (1.0 - accuracy), 0.5 * (change - gain) / accuracy
        u = rng.random(N + TRAIN)
        right, accuracy = np.where(right, u >= down, u < up), accuracy + gain
        found.append(right)
    return np.stack(found, axis=1).astype(float)


def guarded(right: NDArray[np.float64], **settings: Any) -> Thresholdout:
    settings = {"sampling": "iid", "random_state": 1, **settings}
    X = np.column_stack([right, np.arange(len(right))])
    y = np.ones(len(right), dtype=int)
    return Thresholdout((X[:N], y[:N]), train=(X[N:], y[N:]), **settings)


def p_value(right: NDArray[np.float64], new: int, old: int) -> float:
    """Return scipy's p-value of the sign test on the holdout."""
    wins = int(((right[:N, new] == 1) & (right[:N, old] == 0)).sum())
    losses = int(((right[:N, new] == 0) & (right[:N, old] == 1)).sum())
    return float(binomtest(wins, max(1, wins + losses), 0.5, alternative="greater").pvalue) if wins + losses else 1.0


def sources(guard: Thresholdout) -> list[str]:
    return list(guard.history["source"])


def climbed(gate: Gate, models: list[Told], first: int = 0) -> list[Decision]:
    return [gate.propose(model, key=f"step {k}", cv="training") for k, model in enumerate(models) if k >= first]


def gains(certify: str) -> list[float]:
    return [0.04, 0.0, 0.04, -0.02] * 3 if certify == "each" else [0.03, 0.02, -0.02, 0.03] * 3


def public(decision: Decision) -> tuple[Any, ...]:
    return decision.outcome, decision.certified, decision.test, decision.error_budget_left, decision.query


def misleading(seed: int = 0) -> NDArray[np.float64]:
    """Return columns of which all but the first look better on the training part, and are worse on the holdout."""
    right = columns([0.06] * 6, seed)
    right[:N] = columns([-0.02] * 6, seed + 1)[:N]
    return right
