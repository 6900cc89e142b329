"""Slow twins of the Gaussian noise: another exact sampler, the same bits read in high precision, and the law.

The sampler is Algorithm N of C. F. F. Karney, "Sampling exactly from the normal distribution", ACM TOMS 42 (2016): its
coins are games with uniform numbers that are compared digit by digit, without any transcendental function.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath


class LazyUniform:
    """A uniform number in [0, 1) whose binary digits are drawn when a comparison needs them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.digits: list[int] = []

    def digit(self, place: int) -> int:
        while len(self.digits) <= place:
            self.digits.append(self.rng.getrandbits(1))
        return self.digits[place]

    def __lt__(self, other: LazyUniform) -> bool:
        place = 0
        while self.digit(place) == other.digit(place):
            place += 1
        return self.digit(place) < other.digit(place)

    def known(self, places: int) -> int:
        return sum(self.digit(place) << (places - 1 - place) for place in range(places))


def _half(rng: random.Random) -> bool:
    """A coin of probability exp(-1/2), by von Neumann's game."""
    first = LazyUniform(rng)
    if first.digit(0):
        return True
    last, count = first, 1
    while True:
        fresh = LazyUniform(rng)
        if not fresh < last:
            return count % 2 == 0
        last, count = fresh, count + 1


def _game(k: int, x: LazyUniform, rng: random.Random) -> bool:
    """A coin of probability exp(-x (2k + x)/(2k + 2))."""
    last, count = x, 0
    while True:
        fresh = LazyUniform(rng)
        if not fresh < last:
            return count % 2 == 0
        # Goes on with probability (2k + x)/(2k + 2).
        choice = rng.randrange(2 * k + 2)
        if choice == 2 * k + 1 or (choice == 2 * k and not LazyUniform(rng) < x):
            return count % 2 == 0
        last, count = fresh, count + 1


def karney_normal(rng: random.Random, bits: int) -> int:
    """floor(g * 2**bits) for an exact standard normal g."""
    while True:
        k = 0
        while _half(rng):
            k += 1
        if not all(_half(rng) for _ in range(k * (k - 1))):
            continue
        x = LazyUniform(rng)
        if all(_game(k, x, rng) for _ in range(k + 1)):
            size = (k << bits) + x.known(bits)
            return size if rng.getrandbits(1) else -size - 1


def keeping(size: Fraction, run: int) -> mpmath.mpf:
    """Probability of keeping a candidate, in the current precision."""
    y = mpmath.mpf(size.numerator) / size.denominator
    return mpmath.mpf(2) ** (run - 1) * mpmath.exp((1 - y * y) / 2)


def rounded_below(k: int, centre: Fraction, scale: Fraction) -> float:
    """P(round(centre + scale g) <= k)."""
    return 0.5 * math.erfc(-float((k + Fraction(1, 2) - centre) / scale) / math.sqrt(2.0))
