"""Exact Gaussian noise, rounded to a grid, from random bits.

``round(c + s g)`` for a standard normal g, with the law of the *rounded* number and nothing else: the normal number is
known by as many binary digits as the rounding needs, and further digits are drawn only when these do not decide.

How a standard normal number is made (PROOFS.md, "Gaussian noise"):

* its size is ``k + x``: k is geometric, ``P(k) = 2**-(k+1)``, and the digits of x in [0, 1) are fair bits;
* it is kept with probability ``2**(k-1) exp((1 - (k+x)**2) / 2)``, which is at most 1, and otherwise thrown away;
* its sign is a fair bit.

The coin that decides compares fair bits with the binary expansion of its probability, of which the digits of x seen so
far give a lower and an upper bound. Where 64-bit floating point is not far from a tie, rational bounds decide, with
more digits of both as needed. The digits of x that were not looked at are still fair bits, whatever the coin said.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Entropy", "NormalDeviate", "round_normal", "sample_normals"]

Entropy = Callable[[int], bytes]
"""Returns the given number of random bytes."""

_DIGITS = 52  # of x, known from the start
_RUN = 11  # bits of a word that make k
_STEP = 64
_MARGIN = 2.0**-40  # floating point decides a coin only when it is farther than this from a tie
_ROWS = 4096

_RUNS = np.array([_RUN] + [(word & -word).bit_length() - 1 for word in range(1, 1 << _RUN)], dtype=np.int64)


class NormalDeviate(NamedTuple):
    """A standard normal number, known to ``bits`` binary digits after the point.

    Attributes
    ----------
    negative : bool
        Its sign.
    size : int
        ``floor(|g| * 2**bits)``; all further digits of ``|g|`` are fair bits.
    bits : int
        How many digits are known.
    """

    negative: bool
    size: int
    bits: int


def sample_normals(size: int, entropy: Entropy) -> list[NormalDeviate]:
    """Draw independent standard normal numbers, exactly.

    Parameters
    ----------
    size : int
        How many, at least 0.
    entropy : callable
        Returns the given number of random bytes, for example `os.urandom`.

    Returns
    -------
    list of NormalDeviate

    Notes
    -----
    About 31 random bytes a number. Floating point decides a coin when the two sides are at least 2**-40 apart; for this
    the exponential function of numpy has to be right to 30 of its 53 bits, and nothing else is taken on trust.

    References
    ----------
    C. F. F. Karney, "Sampling exactly from the normal distribution", ACM TOMS 42 (2016), for the idea of normal numbers
    whose digits are drawn when they are needed.

    Examples
    --------
    >>> numbers = sample_normals(3, np.random.default_rng(0).bytes)
    >>> [number.bits for number in numbers]
    [52, 52, 52]
    """
    numbers: list[NormalDeviate] = []
    while len(numbers) < size:
        numbers += _propose(min(_ROWS, 2 * (size - len(numbers)) + 8), entropy)
    return numbers[:size]


def round_normal(number: NormalDeviate, centre: Fraction, scale: Fraction, entropy: Entropy) -> int:
    """Return the integer nearest to ``centre + scale * g``.

    Parameters
    ----------
    number : NormalDeviate
        g. To be used once only.
    centre, scale : Fraction
        In units of the grid; the scale is positive.
    entropy : callable
        Where further digits of g come from.

    Examples
    --------
    >>> round_normal(NormalDeviate(True, 3 << 50, 52), Fraction(10), Fraction(1), bytes)
    9
    """
    (a, b), (s, d) = centre.as_integer_ratio(), scale.as_integer_ratio()
    whole, half_unit = (2 * a + b) * d, 2 * b * d
    negative, size, bits = number
    step = 2 * s * b
    while True:
        # centre + 1/2 + scale g lies strictly between low and low + step, in units of 1 / unit.
        unit = half_unit << bits
        low = (whole << bits) - step * (size + 1) if negative else (whole << bits) + step * size
        floor = low // unit
        if floor == (low + step - 1) // unit:
            return floor
        size = (size << _STEP) + int.from_bytes(entropy(_STEP // 8), "little")
        bits += _STEP


def _propose(count: int, entropy: Entropy) -> list[NormalDeviate]:
    """Make candidates, and return those that are kept, in order."""
    words = np.frombuffer(entropy(16 * count), dtype="<u8").astype(np.uint64, copy=False)
    first, coins = words[:count], words[count:]
    runs = _RUNS[(first & np.uint64((1 << _RUN) - 1)).astype(np.intp)]
    digits = (first >> np.uint64(64 - _DIGITS)).astype(np.int64)
    gaps = coins * 2.0**-64 - _keeping(runs, digits)
    kept = gaps < -_MARGIN
    open_runs = runs == _RUN
    kept &= ~open_runs
    sizes = (runs << _DIGITS) + digits
    longer: dict[int, NormalDeviate] = {}
    for row in np.flatnonzero((np.abs(gaps) <= _MARGIN) | open_runs).tolist():
        run = int(runs[row])
        if run == _RUN:
            run += _further_run(entropy)
        known = _settle(run, int(digits[row]), int(coins[row]), entropy)
        kept[row] = known is not None
        if known is not None:
            longer[row] = NormalDeviate(bool(first[row] >> np.uint64(_RUN) & np.uint64(1)), *known)
    rows = np.flatnonzero(kept)
    signs = (first[rows] >> np.uint64(_RUN)) & np.uint64(1) == 1
    if not longer:
        return [
            NormalDeviate(sign, size, _DIGITS) for sign, size in zip(signs.tolist(), sizes[rows].tolist(), strict=True)
        ]
    return [
        longer.get(row) or NormalDeviate(sign, size, _DIGITS)
        for row, sign, size in zip(rows.tolist(), signs.tolist(), sizes[rows].tolist(), strict=True)
    ]


def _keeping(runs: NDArray[np.int64], digits: NDArray[np.int64]) -> NDArray[np.float64]:
    """Probability of keeping a candidate, in floating point."""
    sizes = runs + digits * 2.0**-_DIGITS
    return np.ldexp(np.exp((1.0 - sizes * sizes) / 2.0), runs - 1)


def _further_run(entropy: Entropy) -> int:
    """Count zeros up to the next one in a stream of fair bits."""
    run = 0
    while True:
        word = int.from_bytes(entropy(_STEP // 8), "little")
        if word:
            return run + (word & -word).bit_length() - 1
        run += _STEP


def _settle(run: int, digits: int, coin: int, entropy: Entropy) -> tuple[int, int] | None:
    """Decide one candidate with rational bounds; return size and bits of what is kept.

    Parameters
    ----------
    run : int
        k.
    digits : int
        The first 52 digits of x.
    coin : int
        The first 64 digits of the uniform number that has to be below the probability.
    """
    bits, coin_bits = _DIGITS, _STEP
    while True:
        low, high = _bounds(run, digits, bits)
        if coin + 1 <= low * (1 << coin_bits):
            return (run << bits) + digits, bits
        if coin >= high * (1 << coin_bits):
            return None
        more = entropy(_STEP // 4)
        digits = (digits << _STEP) + int.from_bytes(more[: _STEP // 8], "little")
        coin = (coin << _STEP) + int.from_bytes(more[_STEP // 8 :], "little")
        bits += _STEP
        coin_bits += _STEP


def _bounds(run: int, digits: int, bits: int) -> tuple[Fraction, Fraction]:
    """Two rational numbers around the probability of keeping ``k + x``, for all x that begin with these digits."""
    precision = 25 + (bits + _STEP) // 3
    size = Fraction((run << bits) + digits, 1 << bits)
    largest, smallest = (1 - size**2) / 2, (1 - (size + Fraction(1, 1 << bits)) ** 2) / 2
    with localcontext(Context(prec=precision, rounding=ROUND_FLOOR, traps=[])):
        low = Fraction(_quotient(smallest).exp().next_minus())
    with localcontext(Context(prec=precision, rounding=ROUND_CEILING, traps=[])):
        high = Fraction(_quotient(largest).exp().next_plus())
    return max(Fraction(0), low * (1 << run) / 2), high * (1 << run) / 2


def _quotient(number: Fraction) -> Decimal:
    """Divide in the current context, rounding its way; the parts are exact."""
    numerator, denominator = number.as_integer_ratio()
    return Decimal(numerator) / Decimal(denominator)
