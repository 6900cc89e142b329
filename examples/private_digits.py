"""
Digits read by a private model
==============================

The cost of privacy in accuracy, and the report of a private model.

Run with ``python examples/private_digits.py``.
"""

from __future__ import annotations

import textwrap
from typing import Any

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from thresholdout.privacy.learning import DPSGDClassifier


def main() -> None:
    """Train with less and less noise, and print accuracies and the report of one model."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
    public: dict[str, Any] = {"feature_bounds": (0, 16), "classes": range(10), "delta": 1e-5, "n_epochs": 20}

    print("noise  epsilon  accuracy")
    for noise in (16.0, 8.0, 4.0, 0.0):
        model = DPSGDClassifier(noise_multiplier=noise, batch_size=256, average=False, **public, random_state=0)
        model.fit(X_train, y_train)
        print(f"{noise:5.1f}  {model.privacy_report_.epsilon:7.2f}  {model.score(X_test, y_test):8.3f}")

    model = DPSGDClassifier(epsilon=2.0, batch_size=256, average=50, **public).fit(X_train, y_train)
    print(f"\nFor epsilon 2, each batch gets noise of {model.noise_multiplier_:.2f} clipping norms.")
    print(f"The mean of later iterates costs nothing more; its accuracy is {model.score(X_test, y_test):.2f}.")
    for line in str(model.privacy_report_).splitlines():
        print(textwrap.fill(line, 118))


if __name__ == "__main__":
    main()
