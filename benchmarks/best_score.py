"""How wide the interval of the best score is: a ladder, a leaderboard and claims, for the same submissions.

Submissions improve slowly: each is right on a record with a probability that is drawn around a rising level, and teams
know their scores from as many records of their own. Run with ``python -m benchmarks.best_score``.
"""

from __future__ import annotations

import numpy as np

from thresholdout.errors import BudgetExhausted
from thresholdout.mechanisms import ClaimsParameters, Known, LadderParameters, build_mechanism
from thresholdout.mechanisms.kind import Parameters
from thresholdout.noise.sources import SeededNoise

SIZES = (
    *((1_000, submissions) for submissions in (100, 1_000, 10_000)),
    *((n, submissions) for n in (10_000, 100_000) for submissions in (100, 1_000)),
)
LOW, HIGH, SPREAD = 0.7, 0.8, 0.02
MECHANISMS: dict[str, Parameters] = {
    "ladder": LadderParameters(),
    "leaderboard": ClaimsParameters(noise=0.0, allowance=24.0),
    "claims": ClaimsParameters(),
}


def best_width(parameters: Parameters, n: int, submissions: int, seed: int = 1) -> float:
    """Return the half-width of the best score's interval after all submissions."""
    rng, noise = np.random.default_rng(seed), SeededNoise(seed)
    mechanism = build_mechanism(parameters, n)
    state, best, width = mechanism.start(noise), -1.0, 1.0
    for number in range(submissions):
        truth = LOW + (HIGH - LOW) * number / submissions - abs(SPREAD * rng.normal())
        score, guess = rng.binomial(n, truth) / n, rng.binomial(n, truth) / n
        known = Known(binary=True, client=f"team {number % 50}") if parameters.anticipates else Known(binary=True)
        values = np.arange(n) < round(score * n)
        try:
            read = mechanism.read(values, n, (0.0, 1.0), "holdout_values", known)
            state, outcome = mechanism.step(state, guess, read, noise)
        except BudgetExhausted:
            break
        low, high = outcome.interval or (0.0, 1.0)
        if outcome.about == "best" or outcome.value > best:
            best, width = outcome.value, 0.5 * (high - low)
    return width


def main() -> None:
    """Print the table."""
    print("| records | submissions | " + " | ".join(MECHANISMS) + " |\n|---:|---:|" + "---:|" * len(MECHANISMS))
    for n, submissions in SIZES:
        cells = [f"{best_width(parameters, n, submissions):.4f}" for parameters in MECHANISMS.values()]
        print(f"| {n:,} | {submissions:,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
