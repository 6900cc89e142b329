"""How often audits find a planted bug, and what one training with canaries shows.

Descent by clipped gradients with noise, all models at once, on the worst pair: one record of 50 pulls with all of its
norm either way, the others do not pull. Run with ``python -m benchmarks.private_learners planted``; a few minutes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresholdout.privacy.accounting import GaussianAnswer, SelfComposed, calibrate
from thresholdout.privacy.auditing import audit_outputs, audit_training

__all__ = ["planted"]

Floats = NDArray[np.float64]
STEPS, DELTA, AUDITS, CLAIMS = 20, 1e-5, 12, (1.0, 3.0, 8.0)
# Bug: factor on the noise, factor on the clipping norm; a missing factor 2 of sensitivity halves the noise.
BUGS = {
    "none": (1.0, 1.0, 300),
    "halved noise": (0.5, 1.0, 300),
    "noise / sqrt(2)": (0.5**0.5, 1.0, 2000),
    "clipping off by 2": (1.0, 2.0, 2000),
    "sensitivity missing 2": (0.5, 1.0, 2000),
}


def noise_for(epsilon: float, sensitivity: float) -> float:
    """Return the noise with which all steps cost an epsilon."""
    return calibrate(lambda noise: SelfComposed(GaussianAnswer(noise, sensitivity), STEPS), epsilon, DELTA).value


def descend(record: float, models: int, noise: float, clip: float, rng: np.random.Generator) -> Floats:
    """Return one parameter of each model after all steps, with a record that pulls towards a far target."""
    theta = np.zeros(models)
    for _ in range(STEPS):
        gradient = np.clip(1e6 * record - theta, -clip, clip)
        theta += gradient + noise * rng.normal(size=models)
    return theta


def planted() -> None:
    """Print how many of 12 audits refute each claim, and the bounds of one training."""
    print(f"refuted of {AUDITS}, claims {CLAIMS} at delta {DELTA:g}, confidence 0.9")
    noises = {claim: noise_for(claim, 2.0) for claim in CLAIMS}
    for bug, (share, clip, models) in BUGS.items():
        counts = []
        for claim, noise in noises.items():
            event = SelfComposed(GaussianAnswer(noise, 2.0), STEPS)
            refuted = 0
            for seed in range(AUDITS):
                rng = np.random.default_rng([seed, int(claim)])
                worlds = [descend(record, models, share * noise, clip, rng) for record in (-1.0, 1.0)]
                refuted += audit_outputs(*worlds, claim=event, random_state=seed).refuted
            counts.append(refuted)
        print(f"{bug:24s} {models:5d} models  {counts}", flush=True)
    print("one training, 1,000 gradient canaries: epsilon for the gaussian family, without one; claims refuted")
    for claim in CLAIMS:
        noise = calibrate(
            lambda noise: SelfComposed(GaussianAnswer(noise, 1.0, "add_remove"), STEPS),
            claim,
            DELTA,
            adjacency="add_remove",
        ).value
        event = SelfComposed(GaussianAnswer(noise, 1.0, "add_remove"), STEPS)
        rows: list[tuple[float, float, float, float]] = []
        for seed in range(AUDITS):

            def train(included: NDArray[np.bool_], seed: int, noise: float = noise) -> Floats:
                rng = np.random.default_rng(seed)
                theta = np.zeros(included.size)
                for _ in range(STEPS):
                    theta += included + noise * rng.normal(size=included.size)
                return theta

            family = audit_training(train, 1000, family="gaussian", random_state=seed)
            plain = audit_training(train, 1000, claim=event, random_state=seed)
            half = audit_training(
                lambda included, seed: train(included, seed, noise / 2),  # noqa: B023
                1000,
                claim=event,
                random_state=seed,
            )
            rows.append((family.epsilon, plain.epsilon, float(bool(plain.refuted)), float(bool(half.refuted))))
        mean = np.mean(rows, axis=0)
        verdicts = f"refuted {AUDITS * mean[2]:.0f}, with half of the noise {AUDITS * mean[3]:.0f}"
        print(f"claim {claim:g}: {mean[0]:.2f}, {mean[1]:.2f}; {verdicts}", flush=True)
