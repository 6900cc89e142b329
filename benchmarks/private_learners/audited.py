"""What an audit shows of the fit on the first screen of ``docs/private_learners.md``, by the number of models.

Run with ``python -m benchmarks.private_learners audited``; five minutes.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresholdout.privacy.accounting import GaussianAnswer, SelfComposed, best_epsilon, calibrate
from thresholdout.privacy.auditing import audit_outputs
from thresholdout.privacy.learning import DPSGDClassifier

__all__ = ["audited"]

EPSILON, DELTA, STEPS = 3.0, 1e-5, 60
MODELS = (60, 300, 2000)


def _outputs(noise: float) -> tuple[list[NDArray[Any]], float]:
    """Return what is seen of models on either of the two data sets, and the seconds for one of them."""
    start = time.perf_counter()
    model = DPSGDClassifier(
        noise_multiplier=noise, delta=DELTA, classes=range(10), clip_norm=1e-6, average=False, n_epochs=STEPS
    )
    parts = []
    for part, record in enumerate((-1e3, 1e3)):
        fits = (
            model.set_params(random_state=2 * i + part).fit([[record]] + 49 * [[0.0]], 50 * [0]).coefs_[0][0]
            for i in range(MODELS[-1])
        )
        parts.append(np.array([weights[0] - weights[1:].mean() for weights in fits]))
    return parts, (time.perf_counter() - start) / (2 * MODELS[-1])


def audited() -> None:
    """Print a row for each noise and number of models."""
    claimed = calibrate(lambda noise: SelfComposed(GaussianAnswer(noise, sensitivity=2), STEPS), EPSILON, DELTA).value
    print("noise / claimed  models  delta  epsilon of the claim  of the noise  shown at least")
    for share in (1.0, 0.5, 0.1):
        (first, second), seconds = _outputs(share * claimed)
        for delta in (DELTA, 0.01):
            said, true = (
                best_epsilon(SelfComposed(GaussianAnswer(noise, sensitivity=2), STEPS), delta).epsilon
                for noise in (claimed, share * claimed)
            )
            for models in MODELS:
                shown = audit_outputs(first[:models], second[:models], delta=delta, attack="score").epsilon
                print(f"{share:g}  {models:6d}  {delta:g}  {said:.2f}  {true:.2f}  {shown:.2f}", flush=True)
        print(f"{1e3 * seconds:.1f} ms for each model", flush=True)
