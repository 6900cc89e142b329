"""The price of comparisons: how much wider they are than the exact sign test for comparisons fixed in advance.

Run with ``python -m benchmarks.comparisons`` (a quarter of an hour). First, one comparison beside Wald's interval,
losses of one law, and a gate with a tolerance after harmless proposals; then many comparisons. Records are right or
wrong under each model; two models differ on 3 or 8 % of them, with a true difference drawn up to a third of that, and
training values are out of fold, on twice as many records. Nothing is declared, and all m comparisons are adaptive,
but for the lists. The baseline is the exact (Clopper-Pearson) interval for the win rate at 0.05/m and at the
expected number of records that differ; for differences, times that share of the records. Numbers are mean half
lengths over that of the baseline; in brackets, truths missed.
"""

from __future__ import annotations

import math
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
from thresholdout.mechanisms.claims.gate import GateState, settle, tolerated_shares
from thresholdout.mechanisms.claims.gate_tests import Proposal, TrinomialGate
from thresholdout.mechanisms.claims.lists import PRECISE

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


def difference_of_one_law(claims: ClaimsMechanism, pair: Pair) -> tuple[float, Reading, float, float]:
    values = 0.5 * (pair.train + 1.0)
    known = Known(float(values.var()), difference=True, trinomial=True)
    reading = claims.read(pair.holdout, len(pair.holdout), (-1, 1), "values", known)
    return float(values.mean()), reading, 0.5 * (pair.gain + 1.0), 2.0


def single(seeds: int = 20) -> None:
    """Print how much wider the first comparison is than Wald's interval at 0.95, and how many differences it misses."""
    print(f"{'one comparison / Wald':32}" + "".join(f"{name:>20}" for name in ("claim", "precise", "stated, the last")))
    for n, differ in ((1_000, 0.08), (1_000, 0.03), (10_000, 0.08)):
        for name, read in (("any laws", difference), ("one law", difference_of_one_law)):
            cells = []
            for reserve in (None, PRECISE, 0.0):
                widths, missed = [], 0
                for seed in range(seeds):
                    (pair,) = pairs(n, differ, 1, seed)
                    claims = ClaimsMechanism(ClaimsParameters(n_train=RATIO * n), n)
                    noise = SeededNoise(seed)
                    train, reading, truth, _ = read(claims, pair)
                    state = claims.start(noise)
                    if reserve is None:
                        _, outcome = claims.step(state, train, reading, noise)
                    else:
                        _, (outcome,) = claims.step_all(state, [(train, reading)], noise, reserve)
                    assert outcome.interval is not None
                    low, high = outcome.interval
                    missed += not low <= truth <= high
                    widths.append((high - low) / (1.96 * pair.holdout.std() / math.sqrt(n)))
                cells.append(f"{np.mean(widths):.2f} ({missed} of {seeds})")
            print(f"{f'{n:,} records, {differ:.0%}, {name}':32}" + "".join(f"{c:>20}" for c in cells), flush=True)


def losses(seeds: int = 20) -> None:
    """Print how much wider stated intervals for a mean of 2,000 losses are than Wald's."""
    n = 2_000
    laws: dict[str, Callable[[np.random.Generator, int], NDArray[np.float64]]] = {
        "losses near 0, Beta(1, 9)": lambda rng, k: rng.beta(1.0, 9.0, size=k),
        "losses, Beta(2, 2)": lambda rng, k: rng.beta(2.0, 2.0, size=k),
        "differences of losses": lambda rng, k: 0.5 + 0.5 * rng.normal(0.0, 0.1, size=k).clip(-1.0, 1.0),
    }
    print(f"{'stated mean of losses / Wald':32}" + "".join(f"{name:>20}" for name in ("any laws", "one law")))
    for name, law in laws.items():
        cells = []
        for one_law in (False, True):
            widths = []
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                train, holdout = law(rng, RATIO * n), law(rng, n)
                claims, noise = ClaimsMechanism(ClaimsParameters(n_train=RATIO * n), n), SeededNoise(seed)
                known = Known(float(train.var()), difference=name.startswith("diff"), one_law=one_law)
                reading = claims.read(holdout, n, (0, 1), "values", known)
                _, (outcome,) = claims.step_all(claims.start(noise), [(float(train.mean()), reading)], noise, 0.0)
                assert outcome.interval is not None
                low, high = outcome.interval
                widths.append((high - low) / (2 * 1.96 * holdout.std() / math.sqrt(n)))
            cells.append(f"{np.mean(widths):.2f}")
        print(f"{name:32}" + "".join(f"{c:>20}" for c in cells), flush=True)


def regressions(declared_seeds: int = 200, undeclared_seeds: int = 10) -> None:
    """Print how often a two-point drop in 10,000 records is certified as proposal 30, after harmless ones."""
    n, differ, drop, tolerance, at = 10_000, 0.2025, 0.02, 0.02, 30
    harmless = Proposal(0.0, differ, n, n, -tolerance)
    ways = (("300 declared", 300.0, declared_seeds), ("none declared", math.inf, undeclared_seeds))
    for name, declared, seeds in ways:
        seen = fired = 0
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            state = GateState(math.log(BETA))
            for number in range(1, at + 1):
                gain = -drop if number == at else 0.0
                wins, losses, _ = rng.multinomial(n, [(differ + gain) / 2, (differ - gain) / 2, 1 - differ])
                test = TrinomialGate(int(wins), int(losses), n)
                shares = tolerated_shares(state, harmless, test, declared - number + 1)
                decision = settle(state, harmless, test, shares)
                state = decision.state
                if number == at:
                    seen += decision.outcome == "worse"
                else:
                    fired += decision.outcome == "worse"
        print(f"two points worse as proposal {at}, {name}: seen {seen} of {seeds}, false alarms before it {fired}")


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
    single()
    losses()
    regressions()
    print()
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
