"""
A model improved by trial and error
===================================

An agent improves a model by trial and error, with a guard between it and the evaluation.

It changes one setting at a time and keeps each better score, 40 times. The guard answers from cross-validation on the
training part while the holdout does not contradict it. Here it never does, except with probability below 1e-6; if the
guard is exhausted, the climb ends with the best model so far.

Run with ``python examples/hill_climbing.py``.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from thresholdout import BudgetExhausted, Claims, Thresholdout

SETTINGS: dict[str, list[float]] = {
    "max_depth": [3, 5, 8, 12],
    "min_samples_leaf": [1, 2, 5, 10],
    "max_features": [0.1, 0.3, 1.0],
    "ccp_alpha": [0.0, 0.001, 0.01],
}


def main(steps: int = 40) -> None:
    """Climb, and print the guard's summary."""
    X, y = load_digits(return_X_y=True)
    X_train, X_holdout, y_train, y_holdout = train_test_split(X, y, test_size=0.7, random_state=4)
    guard = Thresholdout(
        (X_holdout, y_holdout), train=(X_train, y_train), queries=steps + 1, mechanism=Claims(holdout_answers=2)
    )

    rng = np.random.default_rng(0)
    best = {name: values[0] for name, values in SETTINGS.items()}
    best_answer = None
    for _ in range(steps):
        name = str(rng.choice(list(SETTINGS)))
        candidate = best | {name: rng.choice(SETTINGS[name]).item()}
        model = DecisionTreeClassifier(random_state=0, **candidate).fit(X_train, y_train)
        try:
            answer = guard.score(model, "accuracy", key=str(sorted(candidate.items())))
        except BudgetExhausted as end:
            print(f"the climb ends early: {end}")
            break
        if best_answer is None or answer.value > best_answer.value:
            best, best_answer = candidate, answer

    print("best settings:", best)
    print(f"the best answer of {steps}: {best_answer}")
    print(f"{len(guard.history)} different queries, {guard.status.answers_left} of 2 answers from the holdout left")


if __name__ == "__main__":
    main()
