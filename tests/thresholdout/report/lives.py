"""Guards with a life behind them."""

from __future__ import annotations

import numpy as np

from graphs import Groups
from thresholdout import BudgetExhausted, Claims, Thresholdout

SECRET = 0.123456789
"""A feature's value that only the holdout has."""


def long_life(queries: int = 120) -> Thresholdout:
    """Return a guard that was asked until its budget was gone, some queries with names that try to do harm."""
    rng = np.random.default_rng(0)
    y = rng.random(4000) < 0.5
    X = rng.normal(size=(4000, 30)) + 0.1 * y[:, None]
    X[:2000, 0] = SECRET
    dependence = Groups(np.arange(2000) // 2)
    parts = (X[:2000], y[:2000]), (X[2000:], y[2000:])
    guard = Thresholdout(
        parts[0], train=parts[1], dependence=dependence, queries=200, mechanism=Claims(holdout_answers=5)
    )
    for k in range(queries):
        correct = ((X @ rng.normal(size=30) > 0) == y)[:2000]
        try:
            guard.ask(0.9 if k % 25 == 7 else correct.mean(), correct, name=f"rule <script>alert({k})</script>")
        except BudgetExhausted:
            break
    return guard
