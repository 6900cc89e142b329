"""More folds make intervals wider: half-widths of `KFoldGuard` for 2 to 10 folds, one by one and in a list.

Nothing is fitted: the values are those of simulated models that are right with probability 0.9 and share most of their
luck, as models of one search do. Run ``python -m benchmarks.folds``.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from graphs.models.out_of_fold import OutOfFold
from thresholdout.mechanisms import FoldClaims, FoldClaimsParameters, Known
from thresholdout.noise.sources import SeededNoise

_SCORE: Final = 0.9
_QUERIES: Final = 20
_SEEDS: Final = 20


def half_widths(n: int, folds: int, seed: int) -> tuple[float, float]:
    """Return the mean half-width of queries that are asked one after another, and of the same ones as a list."""
    model, rng, noise = OutOfFold(np.arange(n) % folds), np.random.default_rng(seed), SeededNoise(seed)
    parameters = FoldClaimsParameters(model.claim_records(), model.variance_inflation(), queries=_QUERIES)
    claims, shared = FoldClaims(parameters, n), rng.random(n)
    state, told, single, listed = claims.start(noise), 0.5, [], []
    for number in range(_QUERIES):
        right = np.where(rng.random(n) < 0.3, rng.random(n), shared) < _SCORE
        reading = claims.read(right, n, (0.0, 1.0), "values", Known(vague=number == 0, binary=True))
        state, outcome = claims.step(state, told, reading, noise)
        assert outcome.interval is not None
        told = outcome.value
        single.append(0.5 * (outcome.interval[1] - outcome.interval[0]))
        listed.append((0.5, claims.read(right, n, (0.0, 1.0), "values", Known(vague=True, binary=True))))
    intervals = [one.interval for one in claims.step_all(claims.start(noise), listed, noise, 0.0)[1]]
    widths = [0.5 * (high - low) for low, high in (interval or (0.0, 1.0) for interval in intervals)]
    return float(np.mean(single)), float(np.mean(widths))


def main() -> None:
    """Print the table."""
    print(f"{_QUERIES} queries at {_SCORE}, mean half-widths of {_SEEDS} seeds, beside Wald's for one query")
    print("| records | folds | one after another | list | list / 2 folds | Wald |")
    print("|---|---|---|---|---|---|")
    for n in (2_000, 10_000, 50_000):
        wald, two = 1.96 * math.sqrt(_SCORE * (1.0 - _SCORE) / n), 0.0
        for folds in (2, 3, 5, 10):
            single, listed = np.mean([half_widths(n, folds, seed) for seed in range(_SEEDS)], axis=0)
            two = two or listed
            print(f"| {n:,} | {folds} | {single:.3f} | {listed:.3f} | {listed / two:.2f} | {wald:.3f} |")


if __name__ == "__main__":
    main()
