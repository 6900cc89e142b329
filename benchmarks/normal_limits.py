"""How often normal limits miss, one test at a time, beside Student's t on group sums.

Run with ``python -m benchmarks.normal_limits``; ``--quick`` takes few laws. A law says how the sum of a group of a size
is distributed; the truth is exactly the mean that is tested, so each test refutes a truth. The printed ratio is the
probability of that over the level. It comes from importance sampling: group sums y, less their mean, are drawn from
their law times ``e^(b y - b^2 y^2/2)``, and weighted back. Whether the normal test is allowed depends on training
groups of the same law, drawn anew for each sample: as many as in the holdout, or a quarter. The rule of
`thresholdout.limits.normal_limits` was fixed before these laws were run. *Rare* laws have groups that lose far more
than others, and fewer than five of them are expected in a holdout: a training part that shows none cannot warn.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr, ndtri
from scipy.stats import t as student

from thresholdout.limits.group_sums import GroupSizes
from thresholdout.limits.normal_limits import NormalTest, TrainingGroups, effective_groups, normal_nats

__all__ = ["LEVELS", "Law", "Measured", "compound", "difference", "laws", "main", "measured", "spoiled", "summary"]

Array = NDArray[np.float64]

LEVELS: Final = (0.025, 0.001, 1e-4, 1.001e-5)
TRAININGS: Final = 100
_HALVINGS: Final = 25
_ONE_OF: Final = 10  # tests; all would take hours
_FEW: Final = 5.0  # groups of a kind in a holdout
_RARELY: Final = 0.05  # tests that are allowed more rarely are left out


@dataclass(frozen=True)
class Law:
    """Groups of some sizes, the values that a sum can have for each, and their probabilities."""

    name: str
    sizes: tuple[int, ...]
    numbers: tuple[int, ...]
    values: tuple[Array, ...]
    shares: tuple[Array, ...]
    rare: bool = False

    @property
    def group_sizes(self) -> GroupSizes:
        """How many groups there are of each size."""
        return GroupSizes(zip(self.sizes, self.numbers, strict=True))

    @property
    def mean(self) -> float:
        """The truth: the mean of all expectations."""
        total = sum(k * float(v @ p) for k, v, p in zip(self.numbers, self.values, self.shares, strict=True))
        return total / self.group_sizes.n

    def mirrored(self) -> Law:
        """Return the law of one less each value."""
        values = tuple(size - v for size, v in zip(self.sizes, self.values, strict=True))
        return Law(f"{self.name}, mirrored", self.sizes, self.numbers, values, self.shares, self.rare)


@dataclass(frozen=True)
class Measured:
    """True levels over the nominal one: with normal limits where `allowed`, given that they are, else ``nan``."""

    law: str
    rare: bool
    level: float
    allowed: float
    normal: float
    student: float

    @property
    def ratio(self) -> float:
        """Over both parts: where the training part allows no normal limits, the exact test has its level at most."""
        return self.allowed * self.normal + 1.0 - self.allowed


def _binomial(size: int, p: Array) -> Array:
    """Return the probabilities of 0 to size right answers, one row for each p."""
    k = np.arange(size + 1)
    logs = gammaln(size + 1) - gammaln(k + 1) - gammaln(size - k + 1)
    p = np.clip(p, 1e-300, 1.0 - 1e-16)[:, None]
    return np.asarray(np.exp(logs + k * np.log(p) + (size - k) * np.log1p(-p)), dtype=np.float64)


def compound(kind: str, size: int, share: float, rho: float) -> Array:
    """Return the law of the number of right answers in a group, of one of five kinds.

    "beta" is beta-binomial; in "coin" all answers are equal with probability rho; in "crash" a group is all wrong with
    such a probability that the correlation is rho; "probit" adds a normal effect; "kinds" has two kinds of groups.
    """
    if rho == 0.0 or kind == "coin":
        found: Array = (1.0 - rho) * _binomial(size, np.array([share]))[0]
        found[0] += rho * (1.0 - share)
        found[-1] += rho * share
        return found
    if kind == "beta":
        a, b, k = share * (1.0 / rho - 1.0), (1.0 - share) * (1.0 / rho - 1.0), np.arange(size + 1)
        logs = gammaln(size + 1) - gammaln(k + 1) - gammaln(size - k + 1) + gammaln(k + a) + gammaln(size - k + b)
        return np.asarray(np.exp(logs - gammaln(size + a + b) + gammaln(a + b) - gammaln(a) - gammaln(b)))
    if kind == "crash":  # p^2 (1 - c) = share^2 + rho share (1 - share), p (1 - c) = share
        p = share + rho * (1.0 - share)
        crash = 1.0 - share / p
        found = (1.0 - crash) * _binomial(size, np.array([p]))[0]
        found[0] += crash
        return found
    if kind == "kinds":
        spread = math.sqrt(rho * share * (1.0 - share))
        low, weight = max(0.0, share - spread), 0.5
        if low == 0.0 or share + spread > 1.0:
            high = min(1.0, share + 0.5 * (1.0 - share))
            low = share - rho * share * (1.0 - share) / (high - share)
            weight = (share - low) / (high - low)
        else:
            high = share + spread
        return np.array([1.0 - weight, weight]) @ _binomial(size, np.array([low, high]))
    grid, weights = np.polynomial.hermite_e.hermegauss(64)
    effect = ndtr((ndtri(share) + math.sqrt(rho) * grid) / math.sqrt(1.0 - rho))
    return np.asarray((weights / weights.sum()) @ _binomial(size, effect))


def difference(size: int, differ: float, rho: float, won: float) -> tuple[Array, Array]:
    """Return sums of (z + 1)/2 for two models, of which z is 1, 0 or -1; groups differ together, and are won together.

    With probability rho one coin decides for all of a group that differ.
    """
    number = compound("beta", size, differ, rho)
    found = np.zeros(2 * size + 1)
    for k, probability in enumerate(number):
        wins = (1.0 - rho) * _binomial(k, np.array([won]))[0]
        wins[0] += rho * (1.0 - won)
        wins[-1] += rho * won
        found[size - k : size + k + 1 : 2] += probability * wins
    return np.arange(2 * size + 1) / 2.0, found


def spoiled(size: int, share: float, rare: float) -> tuple[Array, Array]:
    """Return sums of graded values: 1 for most, and a group of which all values are low, now and then."""
    graded = np.array([0.0, 0.02, 0.08, 0.2, 0.7]) if share > 0.5 else np.array([0.3, 0.3, 0.2, 0.1, 0.1])
    one = np.array([1.0])
    for _ in range(size):
        one = np.convolve(one, graded)
    found = (1.0 - rare) * one
    found[: size + 1] += rare * _binomial(size, np.array([0.5]))[0]  # values of 0 or 1/4
    return np.arange(4 * size + 1) / 4.0, found


def laws(quick: bool = False) -> Iterator[Law]:
    """Yield the laws: kinds of groups, shares, correlations, sizes and numbers of groups."""
    designs: list[tuple[str, tuple[tuple[int, float], ...]]] = [
        (f"x {size}", ((size, 1.0),)) for size in ((5,) if quick else (2, 6, 15, 70))
    ]
    if not quick:
        designs += [("of 1 to 10", ((1, 0.3), (2, 0.3), (5, 0.2), (10, 0.2))), ("of 4 or 60", ((4, 0.95), (60, 0.05)))]
    for groups in (100, 400) if quick else (60, 120, 200, 350, 700, 1500):
        for label, parts in designs:
            sizes = tuple(size for size, _ in parts)
            numbers = tuple(max(1, round(groups * part)) for _, part in parts)
            name = f"{sum(numbers)} {label}"
            for kind in ("beta",) if quick else ("beta", "coin", "crash", "probit", "kinds"):
                for share in (0.9,) if quick else (0.55, 0.75, 0.88, 0.96):
                    for rho in (0.1,) if quick else (0.05, 0.2, 0.5):
                        values = tuple(np.arange(size + 1.0) for size in sizes)
                        shares = tuple(compound(kind, size, share, rho) for size in sizes)
                        lost = {"coin": rho * (1.0 - share), "crash": 1.0 - share / (share + rho * (1.0 - share))}
                        rare = groups * lost.get(kind, 1.0) < _FEW
                        yield Law(f"{name}, {kind}, share {share}, icc {rho}", sizes, numbers, values, shares, rare)
            if quick:
                continue
            for differ, rho, won in ((0.08, 0.1, 0.5), (0.04, 0.3, 0.6), (0.15, 0.05, 0.45), (0.25, 0.2, 0.35)):
                pairs = [difference(size, differ, rho, won) for size in sizes]
                values, shares = tuple(v for v, _ in pairs), tuple(p for _, p in pairs)
                rare = groups * differ * rho < _FEW
                yield Law(f"{name}, differ {differ}, icc {rho}, won {won}", sizes, numbers, values, shares, rare)
            for share, spoilt in ((0.9, 0.0), (0.9, 0.005), (0.9, 0.02), (0.3, 0.03)):
                pairs = [spoiled(size, share, spoilt) for size in sizes]
                values, shares = tuple(v for v, _ in pairs), tuple(p for _, p in pairs)
                rare = spoilt > 0.0 and groups * spoilt < _FEW
                yield Law(f"{name}, graded {share}, spoiled {spoilt}", sizes, numbers, values, shares, rare)


def best_bets(counts: Array, y: Array, largest: Array) -> Array:
    """Return for each row of counts the most that a bet of at most one over the largest loss wins."""
    there = np.where(counts > 0.0, y, 0.0)
    low, high = np.zeros(len(counts)), (1.0 - 1e-9) / largest
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        slope = np.sum(counts * there / (1.0 + middle[:, None] * there), axis=1)
        low, high = np.where(slope > 0.0, middle, low), np.where(slope > 0.0, high, middle)
    return np.asarray(np.sum(counts * np.log1p(low[:, None] * there), axis=1))


def measured(law: Law, level: float, quarter: bool, samples: int, rng: np.random.Generator) -> Measured:
    """Measure the test of the truth of a law from below, at a level."""
    mean, sizes = law.mean, law.group_sizes
    means = [size * mean for size in law.sizes]
    moved = [v - m for v, m in zip(law.values, means, strict=True)]
    kept = [p > 0.0 for p in law.shares]
    moved = [v[k] for v, k in zip(moved, kept, strict=True)]
    shares = [p[k] / p[k].sum() for p, k in zip(law.shares, kept, strict=True)]
    log_level = math.log(level)
    allowed, farthest, centres = _trainings(law, log_level, quarter, rng)
    spread = sum(k * float(p @ (v - p @ v) ** 2) for k, v, p in zip(law.numbers, moved, shares, strict=True))
    bet = math.sqrt(2.0 * normal_nats(max(3.0, effective_groups(sizes)), log_level) / spread)
    counts, log_weight = [], np.zeros(samples)
    for number, v, p in zip(law.numbers, moved, shares, strict=True):
        log_tilt = bet * v - 0.5 * (bet * v) ** 2
        scale = float(p @ np.exp(log_tilt))
        tilted = p * np.exp(log_tilt) / scale
        drawn = rng.multinomial(number, tilted / tilted.sum(), size=samples).astype(np.float64)
        counts.append(drawn)
        log_weight += number * math.log(scale) - drawn @ log_tilt
    together, y = np.concatenate(counts, axis=1), np.concatenate(moved)
    weight, total = np.exp(log_weight), together @ y
    size_of = np.concatenate([np.full(v.size, float(size)) for v, size in zip(moved, law.sizes, strict=True)])
    # Student's: residuals about the mean that is seen
    n, groups = float(sizes.n), float(sizes.groups)
    seen = total / n
    squares = together @ (y * y) - 2.0 * seen * (together @ (y * size_of)) + seen**2 * (together @ size_of**2)
    error = np.sqrt(np.maximum(squares, 0.0) * groups / (groups - 1.0))
    by_t = (total > student.isf(level, groups - 1.0) * error) & (total > 0.0)
    normal = math.nan
    share = float(allowed.mean())
    if share >= _RARELY:
        part, there = rng.choice(np.flatnonzero(allowed), samples), together > 0.0
        lost = np.where(there, -y, 0.0).max(axis=1)
        gained = np.where(there, y - size_of * (centres[part, None] - mean), 0.0).max(axis=1)
        possible, training = sizes.largest * mean, sum(max(1, k // 4) if quarter else k for k in law.numbers)
        largest = np.minimum(possible, 1.5 * np.maximum(np.maximum(lost, gained), farthest[part]))
        largest = np.maximum(largest, possible / (0.7 * (1.0 + training / sizes.groups)))
        won = best_bets(together, y, np.maximum(largest, 1e-9))
        normal = float(np.mean(weight * ((won >= normal_nats(effective_groups(sizes), log_level)) & (total > 0.0))))
    return Measured(law.name, law.rare, level, share, normal / level, float(np.mean(weight * by_t)) / level)


def _trainings(
    law: Law, log_level: float, quarter: bool, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], Array, Array]:
    """Draw training parts; return which of them allow the normal test, the largest deviations, and the means."""
    allowed, farthest, centres = np.zeros(TRAININGS, dtype=bool), np.zeros(TRAININGS), np.zeros(TRAININGS)
    for place in range(TRAININGS):
        sums, sizes = [], []
        for number, v, p, size in zip(law.numbers, law.values, law.shares, law.sizes, strict=True):
            count = max(1, number // 4) if quarter else number
            sums.append(rng.choice(v, count, p=p / p.sum()))
            sizes.append(np.full(count, float(size)))
        training = TrainingGroups(np.concatenate(sums), np.concatenate(sizes))
        test = NormalTest(law.group_sizes, training)
        allowed[place] = test.allowed(np.array([law.mean]), log_level)[0]
        farthest[place], centres[place] = training.farthest(law.mean), training.mean
    return allowed, farthest, centres


def every(quick: bool, samples: int) -> Iterator[tuple[bool, Measured]]:
    """Yield whether the training part was a quarter, and what was measured, for laws, levels and both sides."""
    rng = np.random.default_rng(0)
    for law in laws(quick):
        for side in (law, law.mirrored()):
            for level in LEVELS[:2] if quick else LEVELS:
                for quarter in (False,) if quick else (False, True):
                    if quick or rng.integers(_ONE_OF) == 0:
                        yield quarter, measured(side, level, quarter, samples, rng)


def table(rows: list[Measured]) -> None:
    """Print, for each level, how many tests are within 1.3 and over 2 times their level, and the worst."""
    print(f"{'':10} {'':8} {'normal limits, where they are taken':^50}   Student's t, everywhere")
    print(
        f"{'level':>10} {'tests':>8} {'taken':>7} {'<= 1.3':>8} {'> 2':>5} {'worst':>8} {'worst, given training':>22}",
        end="",
    )
    print(f"   {'<= 1.3':>8} {'> 2':>5} {'worst':>9}")
    for level in sorted({row.level for row in rows}, reverse=True):
        here = [row for row in rows if row.level == level]
        taken = [row for row in here if not math.isnan(row.normal)]
        print(f"{level:10.2g} {len(here):8} {len(taken):7}", end="")
        if taken:
            ratio = np.array([row.ratio for row in taken])
            given = max(row.normal for row in taken)
            print(f" {np.mean(ratio <= 1.3):8.1%} {np.sum(ratio > 2.0):5} {ratio.max():8.2f} {given:22.2f}", end="")
        else:
            print(" " * 47, end="")
        by_t = np.array([row.student for row in here])
        print(f"   {np.mean(by_t <= 1.3):8.1%} {np.sum(by_t > 2.0):5} {by_t.max():9.1f}")


def summary(found: list[tuple[bool, Measured]]) -> None:
    """Print the tables, and the tests with the highest levels."""
    for rare in (False, True):
        for quarter in (False, True):
            rows = [row for part, row in found if part == quarter and row.rare == rare]
            if rows:
                size = "a quarter of" if quarter else "as many as"
                print(f"\n{'Rare laws' if rare else 'Other laws'}; training groups: {size} the holdout's\n")
                table(rows)
    print("\nThe highest levels, where normal limits are taken\n")
    taken = [(part, row) for part, row in found if not math.isnan(row.normal)]
    for part, row in sorted(taken, key=lambda item: -item[1].ratio)[:12]:
        name = f"{row.law}{' (a quarter)' if part else ''}"
        print(
            f"{name:66} {row.level:8.2g} {row.ratio:7.2f}, given training {row.normal:7.2f} ({row.allowed:.2f})", end=""
        )
        print(f"; t {row.student:.1f}")


def main() -> None:
    """Print the tables."""
    quick, begun = "--quick" in sys.argv, time.monotonic()
    summary(list(every(quick, 2000 if quick else 3000)))
    print(f"\n{(time.monotonic() - begun) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
