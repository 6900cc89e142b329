"""
A gate between an agent and the holdout
=======================================

An agent tries changes to a model, with a gate between it and the holdout.

It changes one setting at a time and proposes the result. The gate keeps a candidate if the holdout confirms that it is
better than the champion, and reveals nothing else: with 95 % confidence every kept model is better than the one before,
for any number of candidates. Cross-validation rejects most of them, free of charge.

Run with ``python examples/gate.py``.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from thresholdout import Thresholdout

SETTINGS: dict[str, list[float]] = {
    "max_depth": [3, 5, 8, 12],
    "min_samples_leaf": [1, 2, 5, 10],
    "max_features": [0.1, 0.3, 1.0],
}


def main(steps: int = 25) -> None:
    """Climb, and print the kept models."""
    X_train, X_holdout, y_train, y_holdout = train_test_split(
        *load_digits(return_X_y=True), test_size=0.5, random_state=4
    )
    guard = Thresholdout((X_holdout, y_holdout), train=(X_train, y_train), sampling="iid")
    gate = guard.gate(DecisionTreeClassifier(max_depth=2, random_state=0).fit(X_train, y_train))

    rng = np.random.default_rng(0)
    for step in range(steps):
        name = str(rng.choice(list(SETTINGS)))
        change = {name: rng.choice(SETTINGS[name]).item()}
        candidate = clone(gate.champion).set_params(**change).fit(X_train, y_train)
        decision = gate.propose(candidate, key=f"step {step}", name=str(change))
        if decision:
            print(decision)

    print(gate)
    print(f"{len(guard.history)} candidates, {guard.status.information_released:.2f} nats told of the holdout")


if __name__ == "__main__":
    main()
