"""
Does a learner leak as little as it says?
=========================================

Thousands of runs on two data sets that differ in one record tell two programs apart.

Sums of 200 people's answers are released a hundred times, each time over a fresh sample of 20 people, with noise. The
account for fresh samples promises an epsilon, and one program keeps that promise. Another one, whose releases are just
as noisy, takes the people in the order of the file: anybody who knows the order knows which releases hold which person.
An audit distinguishes the two programs without reading their code.

Run with ``python examples/audit_a_learner.py``; ``--picture FILE`` draws the results of the audits.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from thresholdout.privacy.accounting import SelfComposed, WithoutReplacementGaussianStep, best_epsilon
from thresholdout.privacy.auditing import audit_learner

Floats = NDArray[np.float64]

PEOPLE, SAMPLE, RELEASES, NOISE, DELTA = 200, 20, 100, 4.0, 0.02


def fresh(answers: Floats, seed: int) -> Floats:
    """Release sums of fresh samples of the answers, each in [-1, 1], with noise."""
    sampling, noise = np.random.default_rng(seed).spawn(2)
    sums = [answers[sampling.choice(PEOPLE, SAMPLE, replace=False)].sum() for _ in range(RELEASES)]
    return np.array(sums) + NOISE * noise.normal(size=RELEASES)


def in_order(answers: Floats, seed: int) -> Floats:
    """Release sums of the next 20 people in the file, with the same noise."""
    sums = np.tile(answers.reshape(-1, SAMPLE).sum(axis=1), RELEASES * SAMPLE // PEOPLE)
    return sums + NOISE * np.random.default_rng(seed).normal(size=RELEASES)


def first_person(releases: Floats) -> Floats:
    """Return the sum of all releases, and of those that would hold the first person of the file."""
    return np.array([releases.sum(), releases[:: PEOPLE // SAMPLE].sum()])


def main() -> None:
    """Audit both, and compare with the promise."""
    event = SelfComposed(WithoutReplacementGaussianStep(NOISE, SAMPLE, PEOPLE), RELEASES)
    promise = best_epsilon(event, DELTA).epsilon
    print(f"promised for {RELEASES} releases: epsilon {promise:.2f} at delta {DELTA}")
    one = np.zeros(PEOPLE)
    one[0] = -1.0
    other = np.zeros(PEOPLE)
    other[0] = 1.0
    results = {}
    for name, learner in (("fresh samples", fresh), ("the same order each time", in_order)):
        result = audit_learner(
            learner, one, other, features=first_person, models=2000, delta=DELTA, confidence=0.999, random_state=0
        )
        verdict = "refuted" if result.contradicts(promise, DELTA) else "not refuted"
        print(f"{name}: at least {result.epsilon:.2f} with confidence {result.confidence}; the promise is {verdict}")
        print(f"  the attack errs on {result.fp[0]} + {result.fn[0]} of {result.n_fp} + {result.n_fn} models")
        results[name] = result
    if "--picture" in sys.argv:
        ax = results["the same order each time"].plot()
        ax.set_title("releases in the same order each time")
        ax.figure.savefig(sys.argv[sys.argv.index("--picture") + 1], dpi=120)


if __name__ == "__main__":
    main()
