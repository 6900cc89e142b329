"""Bins of losses that draw from their neighbours, so that each has the loss of a point of a lattice."""

from __future__ import annotations

import math

import numpy as np

from graphs.numerics.rounding import UNIT
from thresholdout.privacy.accounting.pld.loss import Floats

__all__ = ["exchanged"]

_MOST = 0.9  # of a bin, that the next lower one may draw
_LEFT = 0.98  # of what is left of it, that the next higher one may draw
_WORTH = 0.02  # of a width, that a bin's loss is above its point before it is joined with the next higher one
_ROUNDS = 8
_WIDE = 600.0  # nats, above which nothing is drawn from lower bins
_SURE = 1e-12  # more than all rounding errors of what is drawn


def exchanged(mass: Floats, gain: Floats, step: float) -> Floats:
    """Return masses at the points of a lattice whose divergences, composed or not, are at most those of bins.

    A bin whose loss is above its point draws a share of the outcomes of the next lower one, at random, as much as it
    may; one whose loss is below draws from the next higher one, as much as it must. Bins that cannot are joined with
    a neighbour.

    Parameters
    ----------
    mass : ndarray
        Probabilities of bins, one for each point.
    gain : ndarray
        The integral of ``1 - exp(point - loss)`` over each bin, at most; above 0 where its loss is above its point.
    step : float
        Distance of the points.

    Returns
    -------
    ndarray
        Masses at the same points.

    Notes
    -----
    What is drawn costs some variance, in the square of the width; lowering losses instead would cost some of the mean.
    PROOFS.md, L4.

    Examples
    --------
    A bin that lies a quarter of a width above its point, and the one below it:

    >>> found = exchanged(np.array([0.5, 0.5]), np.array([0.0, -0.5 * math.expm1(-0.025)]), 0.1)
    >>> bool(0.35 < found[0] < 0.4 and 0.6 < found[1] < 0.65)
    True
    """
    mass, gain = _raised(mass, gain, step)
    mass, gain, needed = _lowered(mass, gain, step)
    cost = _next_higher(-_from_above(mass, gain, step))
    able = (gain > 0) & (cost > 0)
    wanted = np.where(able, gain / np.where(able, cost, 1.0), 0.0) * (1.0 - _SURE)
    most = _LEFT * _next_higher(1.0 - _next_higher(needed))
    down, up = needed, np.minimum(most, wanted)  # at most what is drawn from the next higher and lower bins
    for _ in range(_ROUNDS):
        left = _left(down, up)
        left = _left(needed * left, np.minimum(most, wanted * left))
        down, up = needed * left, np.minimum(most, wanted * left)
    up = np.minimum(most, wanted * _left(down, up))
    found: Floats = _left(down, up) * mass + up * _next_higher(mass) + down * _next_lower(mass)
    return found * (1.0 - 16.0 * UNIT)


def _left(down: Floats, up: Floats) -> Floats:
    """Return what is left of each bin when the next lower and the next higher one draw shares of it."""
    return np.maximum(1.0 - _next_higher(down) - _next_lower(up), 0.0)


def _next_higher(values: Floats) -> Floats:
    """Return what each bin gets if the values of all are handed to the next higher one."""
    return np.concatenate(([0.0], values[:-1]))


def _next_lower(values: Floats) -> Floats:
    return np.concatenate((values[1:], [0.0]))


def _from_above(mass: Floats, gain: Floats, step: float) -> Floats:
    """Return the gains for the next higher points, at most: ``mass - exp(step) (mass - gain)``."""
    if step > _WIDE:
        return np.full(mass.size, -math.inf)
    growth = math.expm1(step)
    with np.errstate(over="ignore"):
        first, second = (1.0 + growth) * gain, growth * mass
        return first - second - 16.0 * UNIT * (np.abs(first) + second)


def _from_below(mass: Floats, gain: Floats, step: float) -> Floats:
    """Return the gains for the next lower points, at most: ``mass - exp(-step) (mass - gain)``."""
    first, second = math.exp(-step) * gain, -math.expm1(-step) * mass
    return first + second - 16.0 * UNIT * (np.abs(first) + second)


def _joined(mass: Floats, gain: Floats, moving: Floats, their: Floats) -> tuple[Floats, Floats]:
    """Return masses, at most, and gains, at most, with those that bins get."""
    joins = moving > 0
    more = np.where(joins, gain + their - 16.0 * UNIT * (np.abs(gain) + np.abs(their)), gain)
    return np.where(joins, (mass + moving) * (1.0 - 4.0 * UNIT), mass), more


def _raised(mass: Floats, gain: Floats, step: float) -> tuple[Floats, Floats]:
    """Join bins that the next lower one has too little for with the next higher one, where that can make up for it."""
    cost = _next_higher(-_from_above(mass, gain, step))
    out = (gain > 0) & (gain > _MOST * cost) & (gain > _WORTH * step * mass)
    out[-1:] = False
    for _ in range(_ROUNDS):
        if not out.any():
            break
        stay = np.where(out, 0.0, mass), np.where(out, 0.0, gain)
        moved = np.where(out, _from_above(mass, gain, step), 0.0)
        found = _joined(*stay, _next_higher(np.where(out, mass, 0.0)), _next_higher(moved))
        helps = _next_lower(_from_below(*found, step))
        short = (found[1] < 0) & (-found[1] > 0.99 * _MOST * helps)
        if not (_next_lower(short.astype(np.float64)) > 0)[out].any():
            return found
        out &= ~(_next_lower(short.astype(np.float64)) > 0)
    return mass, gain


def _lowered(mass: Floats, gain: Floats, step: float) -> tuple[Floats, Floats, Floats]:
    """Return bins and the shares of the next higher ones that they draw; those that cannot join the next lower one."""
    for trial in range(_ROUNDS):
        helps = _next_lower(_from_below(mass, gain, step))
        able = (gain < 0) & (helps > 0)
        drawn = np.where(able, -gain / np.where(able, helps, 1.0), 0.0) * (1.0 + _SURE)
        short = (gain < 0) & (~able | (drawn > _MOST))
        drawn = np.where(short, 0.0, drawn)
        if not short.any():
            break
        if trial == _ROUNDS - 1:  # leaving outcomes out is allowed
            return np.where(gain < 0, 0.0, mass), np.maximum(gain, 0.0), np.zeros(mass.size)
        stay = np.where(short, 0.0, mass), np.where(short, 0.0, gain)
        moved = np.where(short, _from_below(mass, gain, step), 0.0)
        mass, gain = _joined(*stay, _next_lower(np.where(short, mass, 0.0)), _next_lower(moved))
    return mass, gain, drawn
