"""What exact noise costs, beside floating-point noise, Google's library and a naive exact sampler.

Run with ``python -m benchmarks.noise``.

The scale is one that the guard uses: 5 * 2**38 steps of its grid. All are
measured in turn, several times, and the smallest time of each is taken.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from thresholdout.noise.sources import SeededNoise, SystemNoise

SCALE = Fraction(5 * 2**38)
BATCH = 100_000
SINGLE = 20_000
REPEATS = 5


def rational_laplace(scale: Fraction, rng: random.Random) -> int:
    """Draw one exact number with rational arithmetic, by rejection (Canonne, Kamath and Steinke 2020)."""
    numerator, denominator = scale.as_integer_ratio()
    while True:
        low = rng.randrange(numerator)
        if not _heads(low, numerator, rng):
            continue
        high = 0
        while _heads(1, 1, rng):
            high += 1
        size = (low + numerator * high) // denominator
        negative = rng.randrange(2) == 1
        if size or not negative:
            return -size if negative else size


def _heads(numerator: int, denominator: int, rng: random.Random) -> bool:
    """Toss a coin of probability exp(-numerator/denominator), for at most 1."""
    count = 1
    while rng.randrange(denominator * count) < numerator:
        count += 1
    return count % 2 == 1


def contenders() -> dict[str, tuple[Callable[[], object], int]]:
    """Return what is measured: a name, a call, and the draws that the call makes."""
    system, seeded = SystemNoise(), SeededNoise(0)
    rng, scale = np.random.default_rng(0), float(SCALE)
    secure = random.SystemRandom()

    def one_by_one() -> None:
        for _ in range(SINGLE):
            system.laplace(SCALE)

    def naive() -> None:
        for _ in range(SINGLE // 10):
            rational_laplace(SCALE, secure)

    calls: dict[str, tuple[Callable[[], object], int]] = {
        "exact, system entropy, batch": (lambda: system.laplace_array(SCALE, BATCH), BATCH),
        "exact, system entropy, one by one": (one_by_one, SINGLE),
        "exact, seeded, batch": (lambda: seeded.laplace_array(SCALE, BATCH), BATCH),
        "numpy rng.laplace, batch": (lambda: rng.laplace(scale=scale, size=BATCH), BATCH),
        "numpy rng.laplace, one by one": (lambda: [rng.laplace(scale=scale) for _ in range(SINGLE)], SINGLE),
        "rational sampler, one by one": (naive, SINGLE // 10),
    }
    try:
        from pydp.distributions import LaplaceDistribution
    except ImportError:
        return calls
    theirs = LaplaceDistribution(epsilon=1.0, sensitivity=scale)
    calls["python-dp, one by one"] = (lambda: [theirs.sample() for _ in range(SINGLE)], SINGLE)
    return calls


def measure() -> dict[str, float]:
    """Return microseconds a draw of every contender."""
    calls = contenders()
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(REPEATS):
        for name, (call, draws) in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], (time.perf_counter() - start) / draws * 1e6)
    return best


def main() -> None:
    """Print the table."""
    best = measure()
    reference = best["exact, system entropy, batch"]
    print("| noise | µs a draw | times the exact batch |")
    print("|---|---:|---:|")
    for name, microseconds in best.items():
        print(f"| {name} | {microseconds:.3f} | {microseconds / reference:.2f} |")


if __name__ == "__main__":
    main()
