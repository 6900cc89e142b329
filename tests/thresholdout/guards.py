"""The guard that the tests of guards make, and its records."""

import numpy as np

from thresholdout import Claims, Thresholdout

N = 2000


def data(seed: int = 0, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.integers(0, 2, size=n)


def make(**changes: object) -> Thresholdout:
    settings: dict[str, object] = {"train": data(1), "queries": 50, "mechanism": Claims(holdout_answers=3), **changes}
    return Thresholdout(data(0), **settings)  # type: ignore[arg-type]
