"""The price of comparisons: how much wider they are than the exact sign test for comparisons fixed in advance.

Run with ``python -m benchmarks.comparisons`` (two minutes). Records are right or wrong under each model; two models
differ on 3 or 8 % of them, with a true difference drawn up to a third of that, and training values are out of fold, on
twice as many records. Nothing is declared, and all m comparisons are adaptive, but for the lists. The baseline is the
exact (Clopper-Pearson) interval for the win rate at 0.05/m and at the expected number of records that differ; for
differences, times that share of the records. Numbers are mean half lengths over that of the baseline; in brackets,
truths missed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from thresholdout import SeededNoise
from thresholdout.mechanisms import Known, Outcome, Part
from thresholdout.mechanisms.base import PairedCounts
from thresholdout.mechanisms.claims import ClaimsMechanism, ClaimsParameters, Reading

BETA = 0.05
RATIO = 2


@dataclass(frozen=True)
class Pair:
    """One comparison: which records each part's models differ on, and who is right."""

    gain: float
    differ: float
    train: NDArray[np.float64]
    holdout: NDArray[np.float64]

    @property
    def theta(self) -> float:
        """Win rate."""
        return 0.5 * (1.0 + self.gain / self.differ)


Read = Callable[[ClaimsMechanism, Pair], tuple[float, Reading, float, float]]
"""Training value, reading, and truth and length of the range in the units of the baseline."""


def pairs(n: int, differ: float, number: int, seed: int) -> list[Pair]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(number):
        gain = rng.uniform(-differ / 3, differ / 3)
        law = [(differ - gain) / 2, 1 - differ, (differ + gain) / 2]
        train, holdout = (rng.choice([-1.0, 0.0, 1.0], size=k, p=law) for k in (RATIO * n, n))
        found.append(Pair(gain, differ, train, holdout))
    return found


def difference(claims: ClaimsMechanism, pair: Pair) -> tuple[float, Reading, float, float]:
    values = 0.5 * (pair.train + 1.0)
    known = Known(float(values.var()), difference=True)
    reading = claims.read(pair.holdout, len(pair.holdout), (-1, 1), "values", known)
    return float(values.mean()), reading, 0.5 * (pair.gain + 1.0), 2.0


def wins(claims: ClaimsMechanism, pair: Pair) -> tuple[float, Reading, float, float]:
    train, holdout = (
        PairedCounts(int((part > 0).sum()), int((part < 0).sum()), part.size) for part in (pair.train, pair.holdout)
    )
    return train.share, claims.paired_counts(holdout, Known(difference=True, paired_counts=train)), pair.theta, 1.0


def given(claims: ClaimsMechanism, pair: Pair) -> tuple[float, Reading, float, float]:
    """Compare on the records that differ, whose number is public; who is right on each has one law here."""
    inside = pair.holdout[pair.holdout != 0.0] > 0.0
    share = inside.size / pair.holdout.size
    mean = min(1.0, max(-1.0, float(pair.train.mean()) / share))
    known = Known(None, True, difference=True, part=Part(inside.size, None, pair.train.size * share))
    return 0.5 * (mean + 1.0), claims.read(inside, inside.size, (0, 1), "values", known), pair.theta, 2.0 * share


def baseline(pair: Pair, number: int, share: float) -> float:
    """Return the half length of the exact interval; `share` turns a win rate into a difference."""
    records = max(1, round(pair.holdout.size * pair.differ))
    k, level = pair.theta * records, BETA / number / 2
    return 0.5 * share * float(beta.ppf(1 - level, k + 1, records - k) - beta.ppf(level, k, records - k + 1))


def price(read: Read, n: int, differ: float, number: int, seed: int, together: bool = False) -> tuple[float, int]:
    claims, noise = ClaimsMechanism(ClaimsParameters(n_train=RATIO * n), n), SeededNoise(seed)
    state = claims.start(noise)
    asked = [(pair, *read(claims, pair)) for pair in pairs(n, differ, number, seed)]
    outcomes: list[Outcome] = []
    if together:
        _, outcomes = claims.step_all(state, [(train, reading) for _, train, reading, _, _ in asked], noise, 0.0)
    else:
        for _, train, reading, _, _ in asked:
            state, outcome = claims.step(state, train, reading, noise)
            outcomes.append(outcome)
    total, missed = 0.0, 0
    for (pair, _, _, truth, length), outcome in zip(asked, outcomes, strict=True):
        assert outcome.interval is not None
        low, high = outcome.interval
        missed += not low <= truth <= high
        share = 1.0 if read is wins else 2.0 * differ
        total += 0.5 * length * (high - low) / baseline(pair, number, share)
    return total / number, missed


def main() -> None:
    begin = time.perf_counter()
    ways: dict[str, tuple[Read, bool]] = {
        "win rate": (wins, False),
        "difference, given the features": (given, False),
        "difference": (difference, False),
        "list of win rates": (wins, True),
        "list, given the features": (given, True),
        "list of differences": (difference, True),
    }
    settings = [(n, differ, number) for n in (1_000, 10_000) for differ in (0.03, 0.08) for number in (20, 100)]
    print(f"{'':32}" + "".join(f"{f'{n:,} {differ:.0%} {number}':>17}" for n, differ, number in settings))
    for name, (read, together) in ways.items():
        cells = []
        for n, differ, number in settings:
            found = [price(read, n, differ, number, seed, together) for seed in range(12)]
            cells.append(f"{np.mean([one for one, _ in found]):.2f} ({sum(missed for _, missed in found)})")
        print(f"{name:32}" + "".join(f"{cell:>17}" for cell in cells), flush=True)
    print(f"\n{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
