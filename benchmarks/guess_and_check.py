"""Guess and check against the adaptive analyst of Rogers et al. (2020), beside splitting and their published counts.

Run with ``python -m benchmarks.guess_and_check``. The quadratic-adaptive analyst: records are independent fair signs;
question i asks how often attribute i agrees with the label, except that questions 4, 9, 16, ... ask for the accuracy of
the classifier that adds up all attributes with weights ``ln(a/(1-a))`` from the answers a so far. Every truth is 1/2. A
question counts as answered when its half-width is at most 0.1. Confidence 0.95, the largest error is over all answers.

The published code answers 42 to 60 questions at n = 5,000 and 1,569 of 2,500 at n = 20,000, one seed each, and takes
130 to 230 ms a question.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from thresholdout.certificates.splitting import bernoulli_width
from thresholdout.errors import BudgetExhausted
from thresholdout.mechanisms import GaussianParameters, GuessAndCheck, GuessAndCheckParameters, ThresholdoutParameters
from thresholdout.noise import SeededNoise

TOLERANCE, CONFIDENCE = 0.1, 0.95
PUBLISHED = {5_000: "42-60", 20_000: "1569"}
GUESSES: dict[str, Literal["noisy"] | GaussianParameters | ThresholdoutParameters] = {
    "noisy (default)": "noisy",
    "Gaussian, sigma 0.01": GaussianParameters(0.01),
    "Gaussian, sigma 0.02": GaussianParameters(0.02),
    "Thresholdout, T 0.05, sigma 0.01": ThresholdoutParameters(0.05, 0.01, None, None),
}


class QuadraticAnalyst:
    """Asks about single attributes, and at every square number for the classifier built from the answers so far.

    Parameters
    ----------
    n : int
        Number of records.
    rng : numpy.random.Generator
        Draws the records, attribute by attribute, as products with the label.
    """

    truth = 0.5

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.n = n
        self.rng = rng
        self.scores = np.zeros(n)
        self.positive = rng.integers(0, 2, n, dtype=np.uint8).view(np.bool_)
        self.agreements: NDArray[np.bool_] = np.zeros(n, dtype=np.bool_)

    def questions(self) -> Iterator[NDArray[np.bool_]]:
        """Yield per-record values; send the answer to `hear` before the next one."""
        asked = 0
        while True:
            asked += 1
            self.adaptive = asked > 1 and math.isqrt(asked) ** 2 == asked
            if self.adaptive:
                # Without an opinion the classifier says "positive".
                yield np.where(self.scores == 0, self.positive, self.scores > 0)
            else:
                self.agreements = self.rng.integers(0, 2, self.n, dtype=np.uint8).view(np.bool_)
                yield self.agreements

    def hear(self, answer: float) -> None:
        """Learn an answer."""
        if not self.adaptive:
            clipped = min(max(answer, 1e-6), 1 - 1e-6)
            self.scores += math.log(clipped / (1 - clipped)) * np.where(self.agreements, 1.0, -1.0)


@dataclass
class Result:
    """What one interaction came to."""

    answered: int
    failures: int
    largest_error: float
    microseconds: float


def interact(mechanism: GuessAndCheck, n: int, seed: int, limit: int) -> Result:
    """Run one analyst until the guard stops or the limit is reached."""
    analyst = QuadraticAnalyst(n, np.random.default_rng(seed))
    noise = SeededNoise(seed)
    state = mechanism.start(noise)
    answered, largest, spent = 0, 0.0, 0.0
    for asked, values in enumerate(analyst.questions(), start=1):
        start = time.perf_counter()
        try:
            holdout = mechanism.read(values, n, (0.0, 1.0), "holdout_values")
            state, outcome = mechanism.step(state, analyst.truth, holdout, noise)
        except BudgetExhausted:
            break
        spent += time.perf_counter() - start
        answered += outcome.half_width is not None and outcome.half_width <= TOLERANCE
        largest = max(largest, abs(outcome.value - analyst.truth))
        analyst.hear(outcome.value)
        if asked == limit:
            break
    return Result(answered, state.failures, largest, spent / max(1, state.asked) * 1e6)


def splitting_count(n: int) -> int:
    """Return how many questions splitting answers within the tolerance, values 0 or 1."""
    count = 1
    while bernoulli_width(n // (count + 1), (1 - CONFIDENCE) / (count + 1)) <= TOLERANCE:
        count += 1
    return count


def main(seeds: int = 6, limit: int = 20_000) -> None:
    """Print the table."""
    print("| n | guess | answered | failed checks | largest error | µs a question | published | splitting |")
    print("|---:|---|---:|---:|---:|---:|---:|---:|")
    for n, published in PUBLISHED.items():
        split = splitting_count(n)
        for name, guess in GUESSES.items():
            mechanism = GuessAndCheck(GuessAndCheckParameters(TOLERANCE, CONFIDENCE, guess), n)
            runs = [interact(mechanism, n, seed, limit) for seed in range(seeds)]
            answered = "-".join(str(f(run.answered for run in runs)) for f in (min, max))
            failures = max(run.failures for run in runs)
            error = max(run.largest_error for run in runs)
            cost = min(run.microseconds for run in runs)
            row = (n, name, answered, failures, f"{error:.3f}", f"{cost:.0f}", published, split)
            print("|", " | ".join(map(str, row)), "|", flush=True)


if __name__ == "__main__":
    main()
