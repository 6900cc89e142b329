"""The price of groups: how wide a guard's intervals are where records of one group may depend on each other.

Run with ``python -m benchmarks.groups``; ``--quick`` takes three sessions each, not twenty. Records are right or wrong.
The difficulty of a record is normal. Its correlation inside a group gives right answers the stated correlation there.
Candidates share 0.7 of its variance, as models of one search do. The training part has as many groups. Guards have
defaults and know the groups. Tables have means and 90 % quantiles over sessions of the half-length, and of its ratio to
two lists that were fixed before (0.05/m each): constant bets on group sums that know the true variance and correlation
("exact"), and Student's t on group sums ("t"). "missed" counts sessions with a missed truth. Each table has guards with
exact limits, the default, and with normal ones, which are approximate.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import multivariate_normal
from scipy.stats import t as student

from thresholdout import BudgetExhausted, Claims, Thresholdout

__all__ = ["NORMAL", "Design", "both", "checked", "compared", "listed", "main", "scored", "seen", "student_half"]

BETA: Final = 0.05
_SHARED: Final = 0.7
DROPS: Final = 8

Half = tuple[float, float, float, bool]
"""Half-lengths of a guard, of the exact list and of Student's; whether the guard's interval misses the truth."""


@dataclass(frozen=True)
class Design:
    """So many groups of one size, or of the sizes 1 to so many, with a correlation of right answers inside."""

    groups: int
    size: int
    correlation: float
    mixed: bool = False

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Size of each group."""
        if self.mixed:
            return 1 + np.arange(self.groups, dtype=np.int64) % self.size
        return np.full(self.groups, self.size, dtype=np.int64)

    @property
    def index(self) -> NDArray[np.int64]:
        """Group of each record of one part."""
        return np.repeat(np.arange(self.groups), self.sizes)


def latent(share: float, correlation: float) -> float:
    """Return the correlation of two normal variables that are below a quantile together as two answers are right."""
    if correlation == 0.0:
        return 0.0
    wanted = share * share + correlation * share * (1.0 - share)
    low, high, cut = 0.0, 1.0 - 1e-6, float(ndtri(share))
    for _ in range(40):
        middle = 0.5 * (low + high)
        both = float(multivariate_normal.cdf([cut, cut], cov=[[1.0, middle], [middle, 1.0]]))
        low, high = (middle, high) if both < wanted else (low, middle)
    return high


def _normal(design: Design, alike: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a normal variable for each record of both parts, with a correlation inside groups."""
    index = np.concatenate([design.index, design.index + design.groups])
    own = rng.standard_normal(2 * design.groups)[index]
    found: NDArray[np.float64] = math.sqrt(alike) * own + math.sqrt(1.0 - alike) * rng.standard_normal(index.size)
    return found


def guard_of(design: Design, **settings: Any) -> Thresholdout:
    """Open a guard; records are their numbers."""
    n, index = design.index.size, design.index
    X = np.arange(2.0 * n)[:, None]
    y = np.zeros(2 * n)
    y[::2] = 1.0
    return Thresholdout((X[:n], y[:n], index), train=(X[n:], y[n:], index + design.groups), **settings)


def exact_half(
    values: NDArray[np.float64], design: Design, variance: float, correlation: float, level: float, range_: float = 1.0
) -> float:
    """Return half the length of the interval of two constant bets on group sums, at a two-sided level."""
    units = 0.5 * (values + 1.0) if range_ == 2.0 else values
    sums = np.asarray(np.bincount(design.index, weights=units), dtype=np.float64)
    sizes = design.sizes.astype(np.float64)
    variance = variance / range_**2
    spread = float(np.sum(sizes * variance * (1.0 + (sizes - 1.0) * correlation)))
    needed = math.log(2.0 / level)

    def limit(sums: NDArray[np.float64]) -> float:
        best, mean = math.sqrt(2.0 * needed / spread), float(sums.sum() / sizes.sum())
        low, high = 0.0, mean
        for _ in range(50):
            m = 0.5 * (low + high)
            bet = min(best, 0.9 / (sizes.max() * m))
            if float(np.log1p(bet * (sums - sizes * m)).sum()) >= needed:
                low = m
            else:
                high = m
        return low

    return range_ * 0.5 * (1.0 - limit(sizes - sums) - limit(sums))


def student_half(values: NDArray[np.float64], design: Design, level: float) -> float:
    """Return half the length of Student's interval for the mean, from group sums."""
    sizes = design.sizes.astype(float)
    sums = np.bincount(design.index, weights=values) - sizes * values.mean()
    groups = design.groups
    error = math.sqrt(float(sums @ sums) * groups / (groups - 1)) / values.size
    return float(student.ppf(1.0 - level / 2, groups - 1)) * error


def candidates(design: Design, queries: int, seed: int) -> Iterator[tuple[NDArray[np.float64], float]]:
    """Yield right answers to the holdout's and the training records, and the true accuracy."""
    rng = np.random.default_rng([seed, design.groups, design.size, queries])
    alike = latent(0.88, design.correlation)
    difficulty = _normal(design, alike, rng)
    best = rng.uniform(0.85, 0.93)
    for _ in range(queries):
        truth = float(np.clip(best - abs(rng.normal(0, 0.03)), 0.05, 0.99))
        hard = math.sqrt(_SHARED) * difficulty + math.sqrt(1.0 - _SHARED) * _normal(design, alike, rng)
        yield (hard < ndtri(truth)).astype(float), truth


def scored(design: Design, queries: int, seed: int, **settings: Any) -> list[Half]:
    """Ask a guard about candidates, one after another."""
    guard, n, level = guard_of(design, random_state=seed, **settings), design.index.size, BETA / queries
    found = []
    for right, truth in candidates(design, queries, seed):
        try:
            low, high = guard.ask(right[n:], right[:n], binary=True).interval
        except BudgetExhausted:
            low, high = 0.0, 1.0
        found.append(_halves(low, high, right[:n], design, truth, level))
    return found


def listed(design: Design, queries: int, seed: int, **settings: Any) -> list[Half]:
    """Ask a guard about a list of candidates, and nothing after it."""
    guard, n, level = guard_of(design, random_state=seed, **settings), design.index.size, BETA / queries
    asked = list(candidates(design, queries, seed))
    answers = guard.ask_all([(right[n:], right[:n]) for right, _ in asked], binary=True, reserve=0.0)
    return [
        _halves(*answer.interval, right[:n], design, truth, level)
        for answer, (right, truth) in zip(answers, asked, strict=True)
    ]


def checked(design: Design, queries: int, seed: int, **settings: Any) -> list[Half]:
    """Make a final check of the best of some candidates after a search."""
    guard, n = guard_of(design, random_state=seed, final_check=True, queries=queries, **settings), design.index.size
    asked = list(candidates(design, queries, seed))
    scores = [guard.ask(right[n:], right[:n], binary=True).value for right, _ in asked]
    right, truth = asked[int(np.argmax(scores))]
    answer = guard.final_check(_Told(right), cv="training")
    return [_halves(*answer.interval, right[:n], design, truth, BETA)]


def _halves(low: float, high: float, values: NDArray[np.float64], design: Design, truth: float, level: float) -> Half:
    exact = exact_half(values, design, truth * (1.0 - truth), design.correlation, level)
    return 0.5 * (high - low), exact, student_half(values, design, level), not low <= truth <= high


class _Told:
    """A model that is right on some records."""

    classes_ = np.array([0.0, 1.0])

    def __init__(self, right: NDArray[np.float64]) -> None:
        self._right = right

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        number = X[:, 0].astype(int)
        label = (number % 2 == 0).astype(float)
        return np.asarray(np.where(self._right[number] > 0.5, label, 1.0 - label), dtype=np.float64)


def pair(design: Design, differ: float, gain: float, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return right answers of two models that differ on a share of the records."""
    rng = np.random.default_rng([seed, design.groups, design.size, 7])
    alike = latent(1.0 - differ, design.correlation)
    other = _normal(design, alike, rng) > ndtri(1.0 - differ)
    won = rng.random(other.size) < 0.5 * (1.0 + gain / differ)
    base = (_normal(design, latent(0.88, design.correlation), rng) < ndtri(0.88)).astype(float)
    return np.where(other, won, base).astype(float), np.where(other, ~won, base).astype(float)


def compared(design: Design, seed: int, directly: bool, differ: float = 0.08, **settings: Any) -> list[Half]:
    """Compare two models once."""
    n, gain = design.index.size, float(np.random.default_rng(seed).uniform(-0.3, 0.3)) * differ
    b, a = pair(design, differ, gain, seed)
    guard = guard_of(design, random_state=seed, **settings)
    if directly:
        (answer,) = guard.compare_all([_Told(b)], _Told(a), cv="training", reserve=0.0)
    else:
        answer = guard.compare(_Told(b), _Told(a), cv="training")
    low, high = answer.interval
    z = (b - a)[:n]
    exact = exact_half(z, design, differ - gain * gain, design.correlation, BETA, range_=2.0)
    return [(0.5 * (high - low), exact, student_half(z, design, BETA), not low <= gain <= high)]


def seen(design: Design, drop: float, level: float, seed: int, **settings: Any) -> bool:
    """Whether a gate at a level sees that the older of two models is better."""
    b, a = pair(design, drop + 0.06, -drop, seed)
    guard = guard_of(design, random_state=seed, confidence=1.0 - level, **settings)
    return guard.gate(_Told(b)).propose(_Told(a), cv="training").certified


def row(name: str, *kinds: Iterable[list[Half]]) -> None:
    """Print means over sessions, 90 % quantiles and missed truths, for exact limits and for normal ones."""
    line = f"{name:50}"
    for sessions in kinds:
        found = [np.array(one, dtype=float) for one in sessions]
        half = np.array([one[:, 0].mean() for one in found])
        ratios = np.array([[(one[:, 0] / one[:, k]).mean() for k in (1, 2)] for one in found])
        missed = sum(bool(one[:, 3].any()) for one in found)
        line += f" {half.mean():8.4f} {np.quantile(half, 0.9):8.4f}"
        for k in (0, 1):
            line += f" {ratios[:, k].mean():7.2f} {np.quantile(ratios[:, k], 0.9):7.2f}"
        line += f" {missed:4}/{len(found):<2}"
    print(line, flush=True)


def heading(title: str) -> None:
    """Print a title and the names of columns."""
    columns = f" {'half':>8} {'90 %':>8} {'/exact':>7} {'90 %':>7} {'/t':>7} {'90 %':>7} missed "
    print(f"\n{title}\n\n{'':50} {'exact limits':^{len(columns)}}{'normal limits, approximate':^{len(columns)}}")
    print(f"{'':50}{columns}{columns}")


DESIGNS: Final = tuple(
    Design(groups, size, correlation) for groups, size in ((150, 8), (400, 5), (1000, 3)) for correlation in (0.1, 0.3)
)


NORMAL: Final[dict[str, Any]] = {"mechanism": Claims(limits="normal")}


def both(way: Callable[..., list[Half]], seeds: int, *given: Any, **settings: Any) -> list[list[list[Half]]]:
    """Return sessions of guards with exact limits, and of guards with normal ones."""
    return [[way(*given, seed=seed, **settings, **limits) for seed in range(seeds)] for limits in ({}, NORMAL)]


def tables(seeds: int) -> None:
    """Print all tables, for both kinds of limits."""
    ways: tuple[tuple[str, Callable[..., list[Half]], tuple[int, ...]], ...] = (
        ("Scores, one after another", scored, (20, 100)),
        ("Scores, one list", listed, (20, 100)),
        ("A final check after a search", checked, (20, 100)),
    )
    for title, way, numbers in ways:
        heading(title)
        for design in (*DESIGNS, Design(200, 12, 0.2, mixed=True)):
            for queries in numbers:
                each = f"{'1 to ' * design.mixed}{design.size}"
                name = f"{design.groups} groups x {each}, {design.correlation}, {queries} queries"
                row(name, *both(way, seeds, design, queries))
    for directly in (False, True):
        heading(f"One comparison of models that differ on 8 %, {'stated directly' if directly else 'through a claim'}")
        for groups, size in ((400, 5), (1000, 3), (200, 20), (120, 100)):
            design = Design(groups, size, 0.1)
            row(f"{groups} groups x {size}, {design.correlation}", *both(compared, seeds, design, directly=directly))


def main() -> None:
    """Print the tables."""
    seeds, begun = 3 if "--quick" in sys.argv else 20, time.monotonic()
    tables(seeds)
    design = Design(200, 5, 0.1)
    found, normal = (sum(seen(design, 0.1, 0.005, seed, **limits) for seed in range(DROPS)) for limits in ({}, NORMAL))
    said = f"seen {found} of {DROPS}, with normal limits {normal}"
    print(f"\nA gate at level 0.005, 200 passages x 5, a drop of 10 points: {said}")
    print(f"\n{(time.monotonic() - begun) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
