"""How far the analyst's expectation of any question can have moved from the truth, given the information given away.

``x = sum 1/(8 N s_j^2)`` is the information in answers with noise of standard deviations s_j. There is no union over
questions. PROOFS.md, "Gaussian answers"; beside other private looks, accounting/LOOKS.md, L5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import formula_up
from thresholdout.certificates.independent_blocks import IndependentBlocks

__all__ = ["AnytimeDrift", "Drift", "beside_looks", "drift_bound", "look_cost"]

Floats = NDArray[np.float64]

_UP = 1.0 + 1e-12

_ANYTIME_STRETCHES: tuple[float, ...] = tuple(np.geomspace(0.02, 10.0, 8).tolist())


def look_cost(blocks: IndependentBlocks, looks: float, stretch: float) -> float:
    """Return ``A = ln(1+b) e^2 sum s_g^2/32``, what other private looks add to the bounds, in nats; rounded up.

    Parameters
    ----------
    blocks : IndependentBlocks
        The records.
    looks : float
        e, epsilon of all looks together about one replaced record.
    stretch : float
        b.

    Examples
    --------
    >>> round(look_cost(IndependentBlocks.of_records(10_000), 0.01, 1.0), 4)
    0.0217
    """
    return math.log1p(stretch) * looks * looks * blocks.n * blocks.inflation / 32.0 * _UP


def beside_looks(given: float, room: float, cost: float) -> float:
    """Return the smallest ``(u + A/t)/(r - t)`` over t in (0, r), or ``u/r`` without looks; ``inf`` where r <= 0.

    Parameters
    ----------
    given, room, cost : float
        u > 0, r, and A of `look_cost`. Every t is valid, so the one that is taken need not be the best.

    Examples
    --------
    >>> beside_looks(4.0, 2.0, 0.0), round(beside_looks(4.0, 2.0, 0.01), 4)
    (2.0, 2.1465)
    """
    if not (room > 0.0 and cost < math.inf):
        return math.inf
    if cost == 0.0:
        return given / room
    share = room / (1.0 + math.sqrt(1.0 + given / cost * room))  # at most r/2
    return (given + cost / share) / (room - share) * _UP if share > 0.0 else math.inf


def drift_bound(blocks: IndependentBlocks, stretch: Floats, failure: Floats, information: Floats) -> Floats:
    """Bound how far the analyst's expectation of any question can be from the truth.

    Parameters
    ----------
    blocks : IndependentBlocks
        The records.
    stretch : ndarray
        b > 0, fixed before the first answer.
    failure : ndarray
        b2, probability with which this may ever be wrong, apart from the blocks' own exception.
    information : ndarray
        x, nats.

    Returns
    -------
    ndarray
        ``D(x) = sqrt((1+b) (x + (L + r)/b) / (N (2 - (1+b) x c))) + r``, ``L = ln(1/b2)``, r the root of the
        exception and c the crowding of the blocks; ``inf`` where the denominator is not positive.

    Examples
    --------
    >>> blocks = IndependentBlocks.of_records(100_000)
    >>> float(drift_bound(blocks, np.array(0.1), np.array(0.01), np.array(500.0)))
    0.05487773...
    """
    exception = math.sqrt(blocks.exception)
    numerator = (1.0 + stretch) * (information + (exception - np.log(failure)) / stretch)
    room = 2.0 - (1.0 + stretch) * information * blocks.crowding
    with np.errstate(divide="ignore", invalid="ignore"):
        bound: Floats = np.where(room > 0.0, np.sqrt(numerator / (blocks.effective * room)), np.inf) + exception
    return bound


@dataclass(frozen=True, slots=True)
class Drift:
    """D as a function of the information given away: valid at all times at once, except with probability `failure`.

    Parameters
    ----------
    blocks : IndependentBlocks
        The records.
    stretch : float
        b > 0, fixed before the first answer; about ``sqrt(L/x)`` is good.
    failure : float
        b2, in (0, 1). The blocks' exception fails with a probability of its root on top.
    looks : float
        Epsilon of other private looks at the records so far, all together; see `beside_looks`.

    Examples
    --------
    >>> drift = Drift(IndependentBlocks.of_records(100_000), 0.1, 0.01)
    >>> round(drift(500.0), 12), drift.information(0.01)
    (0.054877738357, 0.0125)
    >>> import dataclasses
    >>> round(dataclasses.replace(drift, looks=0.01)(500.0), 4)
    0.0562
    """

    blocks: IndependentBlocks
    stretch: float
    failure: float
    looks: float = 0.0

    def __call__(self, information: float) -> float:
        """Return ``D(x)``, rounded up."""
        return float(self.bound(np.array(information)))

    def bound(self, information: Floats) -> Floats:
        """Return ``D(x)`` for many x, rounded up."""
        return _bound(self.blocks, self.stretch, self.failure, information, self.looks) * formula_up(1.0)

    @property
    def events(self) -> tuple[tuple[float, float], ...]:
        """Pairs of b and the probability with which what follows from it may be wrong."""
        return ((self.stretch, self.failure),)

    def information(self, scale: float) -> float:
        """Return the information in one answer with this standard deviation, ``1/(8 N s^2)`` nats."""
        return 1.0 / (8.0 * self.blocks.effective * scale**2)


@dataclass(frozen=True, slots=True)
class AnytimeDrift:
    """The smallest of several D, one for each b, that share the probability of failure: good early and late.

    Parameters
    ----------
    blocks : IndependentBlocks
        The records.
    failure : float
        b2, in (0, 1); each b has an equal share. The blocks' exception fails with a probability of its root on top.
    stretches : tuple of float
        Every b, fixed before the first answer.
    looks : float
        As for `Drift`.

    Examples
    --------
    >>> blocks = IndependentBlocks.of_records(100_000)
    >>> anytime, late = AnytimeDrift(blocks, 0.01), Drift(blocks, 0.1, 0.01)
    >>> round(anytime(0.5), 4), round(late(0.5), 4)
    (0.0074, 0.016)
    >>> round(anytime(500.0), 4), round(late(500.0), 4)
    (0.0559, 0.0549)
    """

    blocks: IndependentBlocks
    failure: float
    stretches: tuple[float, ...] = _ANYTIME_STRETCHES
    looks: float = 0.0

    @property
    def events(self) -> tuple[tuple[float, float], ...]:
        """Every b and the probability with which what follows from it may be wrong; they hold at once."""
        return tuple((stretch, self.failure / len(self.stretches)) for stretch in self.stretches)

    def __call__(self, information: float) -> float:
        """Return the smallest ``D(x)``, rounded up."""
        return float(self.bound(np.array(information)))

    def bound(self, information: Floats) -> Floats:
        """Return the smallest ``D(x)`` for many x, rounded up."""
        share = self.failure / len(self.stretches)
        every = [_bound(self.blocks, stretch, share, information, self.looks) for stretch in self.stretches]
        smallest: Floats = np.min(every, axis=0) * formula_up(1.0)
        return smallest


def _bound(blocks: IndependentBlocks, stretch: float, failure: float, information: Floats, looks: float) -> Floats:
    """Return ``D(x)`` beside other looks; its square is ``(1+b)/(bN)`` times the smallest of `beside_looks`, but for r.

    That is of ``(b x + L + r + A/t)/(2 - (1+b) x c - 2 t)``, r the root of the exception, which comes on top once more.
    """
    if looks == 0.0:
        return drift_bound(blocks, np.array(stretch), np.array(failure), information)
    exception, cost = math.sqrt(blocks.exception), look_cost(blocks, looks, stretch)
    unit = (1.0 + stretch) / (2.0 * stretch * blocks.effective)

    def bound(x: float) -> float:
        room = 1.0 - 0.5 * (1.0 + stretch) * x * blocks.crowding
        squares = unit * beside_looks(stretch * x + exception - math.log(failure), room, cost)
        return math.sqrt(squares * _UP) + exception

    found: Floats = np.vectorize(bound, otypes=[np.float64])(information)
    return found
