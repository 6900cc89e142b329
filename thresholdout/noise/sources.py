"""Exact noise: discrete Laplace, from the operating system's entropy.

Floating-point noise leaks. The low bits of ``value + rng.laplace()`` reveal the possible values, and so does truncated
noise. The noise of this package is an integer, in units of a dyadic grid that is far finer than the scale. Its law is

    ``P(k) = (1 - q) / (1 + q) * q**|k|``,   ``q = exp(-1/s)``,   on *all* integers, exactly.

Sampling is exact (proof: PROOFS.md, "Noise"):

* A draw is the difference of two independent geometric numbers, ``P(x) = (1 - q) q**x``.
* The binary digits of a geometric number are independent. Digit ``j`` is a coin of probability
  ``1 / (1 + exp(2**j / s))``. The part above digit K is again geometric, of ratio ``exp(-2**K / s)``.
* A coin of probability p compares uniform random bits with the binary expansion of p. numpy compares the first 16 bits
  of all coins at once. The few coins that agree in all 16 go on, 64 bits at a time. Their expansion is computed by
  correctly rounded decimal arithmetic between a lower and an upper bound. Since p is irrational, every digit is found,
  and every comparison ends with probability 1. No coin is approximated.

Scales are rational numbers (`fractions.Fraction`), so the law does not depend on rounding.

Not protected: a reader of this process's memory sees the buffered draws, and a virtual machine that is resumed twice
from one snapshot uses them twice.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError

__all__ = ["DiscreteLaplace", "NoiseSource", "SeededNoise", "SystemNoise"]

Entropy = Callable[[int], bytes]
"""Returns the given number of random bytes."""

SMALLEST_SCALE = Fraction(1, 1 << 10)  # noise of this scale is 0 except with probability 2 exp(-1024)
LARGEST_SCALE = Fraction(1 << 48)  # a draw of this scale fits 63 bits except with probability exp(-2**13)

_WORD = 16  # bits of a coin's probability that numpy compares at once; one coin in 65,536 stays undecided
_STEP = 64  # bits by which an undecided comparison goes on
_ROWS = 4096  # geometric numbers made together: their bits fit the second-level cache
_FIRST_BATCH, _LARGEST_BATCH = 16, 4096  # a guard of few queries draws little; the overhead of numpy is paid rarely


class NoiseSource(Protocol):
    """Protocol of sources of noise: `SystemNoise` for released answers, `SeededNoise` for simulations and tests."""

    @property
    def for_release(self) -> bool:
        """Whether answers with this noise may be released."""

    def laplace(self, scale: Fraction) -> int:
        """Draw one integer from the discrete Laplace distribution of the given scale."""

    def uniform(self, bits: int, size: int) -> NDArray[np.uint64]:
        """Draw `size` independent uniform integers from 0 to ``2**bits - 1``."""


class _Coin:
    """A coin of probability ``1 / (1 + exp(exponent))`` if logistic, else ``exp(-exponent)``, known to any digit."""

    __slots__ = ("_digits", "exponent", "logistic")

    def __init__(self, exponent: Fraction, *, logistic: bool) -> None:
        self.exponent = exponent
        self.logistic = logistic
        self._digits: dict[int, int] = {}

    def digits(self, bits: int) -> int:
        """Return ``floor(p * 2**bits)``, exactly."""
        known = self._digits.get(bits)
        if known is None:
            known = self._digits[bits] = self._floor(bits)
        return known

    def _floor(self, bits: int) -> int:
        precision = 20 + bits // 3  # a bit is 0.302 decimal digits; 20 more decide nearly every floor
        while True:
            low, high = self._bounds(precision)
            floor = int(low * (1 << bits))
            if floor == int(high * (1 << bits)):
                return floor
            precision *= 2

    def _bounds(self, precision: int) -> tuple[Fraction, Fraction]:
        """Return two rational numbers around the probability.

        `Decimal.exp` is correctly rounded to nearest. One unit in the last place to either side encloses the
        exponential of its (rounded) argument, and the exponential is monotone.
        """
        down = Context(prec=precision, rounding=ROUND_FLOOR, traps=[])
        up = Context(prec=precision, rounding=ROUND_CEILING, traps=[])
        numerator, denominator = map(Decimal, self.exponent.as_integer_ratio())
        with localcontext(down):
            low = max(Decimal(0), (-up.divide(numerator, denominator)).exp().next_minus())
            high = (-(numerator / denominator)).exp().next_plus()
        if self.logistic:
            low = down.divide(low, up.add(1, low))
            high = up.divide(high, down.add(1, high))
        return Fraction(low), Fraction(high)

    def toss(self, entropy: Entropy, bits: int = 0) -> bool:
        """Toss the coin, given that its first `bits` random bits agreed with its probability."""
        while True:
            seen = self.digits(bits) << _STEP
            bits += _STEP
            rest = self.digits(bits) - seen
            word = int.from_bytes(entropy(_STEP // 8), "little")
            if word != rest:
                return word < rest


class DiscreteLaplace:
    """The discrete Laplace law on the integers, ``P(k)`` proportional to ``exp(-|k| / scale)``.

    The scale is between 2**-10 and 2**48. Draws are 64-bit integers. A draw beyond 2**62 would raise `OverflowError`
    instead of wrapping around; its probability is below ``exp(-2**13)`` at the largest scale.

    Examples
    --------
    >>> law = DiscreteLaplace(Fraction(5, 2))
    >>> law.sample(4, np.random.default_rng(0).bytes).dtype
    dtype('int64')
    """

    def __init__(self, scale: Fraction) -> None:
        if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
            raise InputError("scale", scale, "a number of grid steps between 2**-10 and 2**48")
        self.scale = scale
        numerator, denominator = scale.as_integer_ratio()
        count = 0
        while (denominator << count) < 16 * numerator:
            count += 1
        self._count = count  # K: digits that are tossed one by one
        self._coins = [_Coin(Fraction(1 << j) / scale, logistic=True) for j in range(count)]
        # Its probability is at most exp(-16) < 2**-16: the first 16 bits are zeros, and it is decided in `_settle`.
        self._coins.append(_Coin(Fraction(1 << count) / scale, logistic=False))
        self._words = np.array([coin.digits(_WORD) for coin in self._coins], dtype=np.uint16)

    def sample(self, size: int, entropy: Entropy) -> NDArray[np.int64]:
        """Draw independent numbers."""
        draws = np.empty(size, dtype=np.int64)
        for start in range(0, size, _ROWS // 2):
            part = draws[start : start + _ROWS // 2]
            geometric = self._geometric(2 * part.size, entropy)
            np.subtract(geometric[: part.size], geometric[part.size :], out=part)
        return draws

    def _geometric(self, size: int, entropy: Entropy) -> NDArray[np.int64]:
        """Draw independent geometric numbers, ``P(x) = (1 - q) q**x``, x >= 0."""
        columns = len(self._coins)
        random = np.frombuffer(entropy(2 * size * columns), dtype="<u2").reshape(size, columns)
        digits = np.zeros((size, 64), dtype=np.bool_)
        np.less(random, self._words, out=digits[:, :columns])
        tops: list[tuple[int, int]] = []
        for row, column in np.argwhere(random == self._words).tolist():
            if column < self._count:
                digits[row, column] = self._coins[column].toss(entropy, _WORD)
            elif self._coins[column].toss(entropy, _WORD):
                tops.append((row, self._top(entropy)))
        values = np.packbits(digits, axis=1, bitorder="little").view("<i8").ravel().astype(np.int64, copy=False)
        for row, top in tops:
            values[row] += top << self._count
        return values

    def _top(self, entropy: Entropy) -> int:
        """Draw the part above the digits, given that it is not 0."""
        top = 1
        while self._coins[-1].toss(entropy):
            top += 1
            if top >= 1 << (62 - self._count):
                raise OverflowError("a noise draw beyond 2**62, of probability below exp(-2**13)")
        return top


@lru_cache(maxsize=256)
def _law(numerator: int, denominator: int) -> DiscreteLaplace:
    """Return the law of a scale; it holds tables only, no random state."""
    return DiscreteLaplace(Fraction(numerator, denominator))


class _BufferedNoise:
    """Noise drawn in batches that double up to 4,096, and handed out one by one."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._buffers: dict[tuple[int, int], list[int]] = {}
        self._batches: dict[tuple[int, int], int] = {}

    def laplace(self, scale: Fraction) -> int:
        """Draw one number from the discrete Laplace distribution.

        Parameters
        ----------
        scale : Fraction
            Scale of the distribution, in units of the grid, between 2**-10 and 2**48.

        Returns
        -------
        int
            The number, in units of the grid.

        Raises
        ------
        InputError
            If the scale is out of range.
        """
        try:
            return self._buffers[scale.as_integer_ratio()].pop()
        except (KeyError, IndexError):
            return self._refill(scale.as_integer_ratio())

    def laplace_array(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Draw independent numbers from the discrete Laplace distribution.

        Parameters
        ----------
        scale : Fraction
            Scale of the distribution, in units of the grid, between 2**-10 and 2**48.
        size : int
            Number of draws.

        Returns
        -------
        ndarray of int64, shape (size,)
            The draws, in units of the grid.
        """
        return _law(*scale.as_integer_ratio()).sample(size, self._entropy)

    def uniform(self, bits: int, size: int) -> NDArray[np.uint64]:
        """Draw independent uniform integers from 0 to ``2**bits - 1``.

        Parameters
        ----------
        bits : int
            Number of random bits of each integer, from 1 to 64.
        size : int
            Number of integers.

        Returns
        -------
        ndarray of uint64, shape (size,)
            The integers.
        """
        words = np.frombuffer(self._entropy(8 * size), dtype=np.uint64)
        return words >> np.uint64(64 - bits)

    def _refill(self, key: tuple[int, int]) -> int:
        size = self._batches.get(key, _FIRST_BATCH)
        draws: list[int] = _law(*key).sample(size, self._entropy).tolist()
        self._batches[key] = min(2 * size, _LARGEST_BATCH)
        draw = draws.pop()
        self._buffers.setdefault(key, []).extend(draws)
        return draw


class SystemNoise(_BufferedNoise):
    """Draw exact discrete noise from the operating system's entropy, for answers that are released.

    A guard uses this source by default, and it is the only one whose noise protects released answers. Threads may share
    it. After a fork the child process drops the buffer, so no draw is used by two processes. A pickle or a copy is a
    fresh source.

    Attributes
    ----------
    for_release : bool
        Always True.

    Examples
    --------
    >>> noise = SystemNoise()
    >>> isinstance(noise.laplace(Fraction(1000)), int)
    True
    >>> noise.laplace_array(Fraction(1000), 3).shape
    (3,)
    """

    for_release = True

    def __init__(self) -> None:
        super().__init__(os.urandom)
        self._lock = threading.Lock()
        _LIVE.add(self)

    def _refill(self, key: tuple[int, int]) -> int:
        with self._lock:
            return super()._refill(key)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._buffers = {}
        self._batches = {}

    def __reduce__(self) -> tuple[type[SystemNoise], tuple[()]]:
        return (SystemNoise, ())

    def __repr__(self) -> str:
        return "SystemNoise()"


class SeededNoise(_BufferedNoise):
    """Draw reproducible noise from a seed, for simulations and tests. NOT for release: a known seed reveals the noise.

    Draws have exactly the same distribution as those of `SystemNoise`, from the bytes of a `numpy.random.Generator`.
    Threads must not share a source. A pickle or a deep copy continues with the same numbers as the original.

    Parameters
    ----------
    seed : int, sequence of int, or numpy.random.SeedSequence
        Seed for `numpy.random.default_rng`.

    Attributes
    ----------
    for_release : bool
        Always False.

    Examples
    --------
    >>> noise = SeededNoise(7)
    >>> noise
    <SeededNoise seed=7: for simulation, not for release>
    >>> noise.laplace(Fraction(1000)) == SeededNoise(7).laplace(Fraction(1000))
    True
    """

    for_release = False

    def __init__(self, seed: int | list[int] | np.random.SeedSequence) -> None:
        self._seed = seed
        super().__init__(np.random.default_rng(seed).bytes)

    def __repr__(self) -> str:
        return f"<SeededNoise seed={self._seed}: for simulation, not for release>"


_LIVE: weakref.WeakSet[SystemNoise] = weakref.WeakSet()


def _forget_after_fork() -> None:
    for source in list(_LIVE):
        source._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
