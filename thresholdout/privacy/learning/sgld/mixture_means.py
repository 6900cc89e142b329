"""Means over the mixture of the worst-case pair: sums for few records, certified sums over blocks for many."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

from thresholdout.privacy.learning.sgld.worst_case_chain import Mixture

__all__ = ["Bracket", "Form", "log_mean"]

Floats = NDArray[np.float64]
Form = Literal["chernoff", "above", "below"]
MOST_TERMS = 1 << 15  # more positions are summed in as many blocks
_ROOT = 0.5 * math.log(2.0 * math.pi)


class Bracket(NamedTuple):
    """Two numbers between which an exact value lies, also in floating point.

    Attributes
    ----------
    low, high : float
    """

    low: float
    high: float


def log_mean(mixture: Mixture, form: Form, shift: float = 0.0, *, terms: int = MOST_TERMS) -> Bracket:
    """Return the logarithm of a mean over the mixture's normals.

    Parameters
    ----------
    mixture : Mixture
        Of the second data set.
    form : {"chernoff", "above", "below"}
        With z, how far a threshold is above a normal's mean, in its standard deviations: the mean of ``exp(-z^2/2)``
        for z of 0 or more; of the probability above the threshold; or of that below it.
    shift : float
        From the first data set's mean to the threshold.
    terms : int
        So many positions are summed one by one; more of them in as many blocks.

    Returns
    -------
    Bracket

    Notes
    -----
    Within a block, z as a function of the position has no minimum inside, and the sum over the block is that of a
    chord between its ends, up to a bound on the second derivative (PROOFS.md, L2). So the bracket holds for any number
    of blocks, and its width falls with the square of it.

    Examples
    --------
    >>> from thresholdout.privacy.learning.sgld.worst_case_chain import worst_case_chain
    >>> mixture = worst_case_chain(10**7, 1e7, 1.0, 1.0, 4.0).after(20)
    >>> low, high = log_mean(mixture, "above")
    >>> 0 < high - low < 1e-7
    True
    """
    if mixture.parts <= terms:
        low, high = _each(mixture, form, shift)
    else:
        low, high = _blocks(mixture, form, shift, terms)
    return Bracket(low - math.log(mixture.parts), high - math.log(mixture.parts))


def _log_form(form: Form, z: Floats) -> Floats:
    found: Floats
    if form == "chernoff":
        found = -0.5 * z * z
    else:
        found = np.asarray(log_ndtr(-z if form == "above" else z), dtype=np.float64)
    return found


def _scores(mixture: Mixture, shift: float, q: Floats) -> Floats:
    found: Floats = (mixture.gap0 + shift + mixture.gap1 * q) / np.sqrt(mixture.var0 + mixture.var1 * q * q)
    return found


def _rounding(mixture: Mixture, shift: float, z: Floats, logs: Floats, terms: int) -> float:
    """Return a bound on the error of the logarithm of a sum: from z, whose relative error is known, and from logs."""
    error = 4.0 * mixture.slack * (mixture.gap0 + mixture.gap1 + abs(shift)) / math.sqrt(mixture.var0)
    largest, total = float(np.abs(z).max()), float(np.abs(logs).max())
    return (largest + 1.0) * error + 1e-14 * (1.0 + total) + 1e-16 * terms


def _each(mixture: Mixture, form: Form, shift: float) -> tuple[float, float]:
    z = _scores(mixture, shift, mixture.power(np.arange(float(mixture.parts))))
    logs = _log_form(form, z)
    total = float(logsumexp(logs))
    slack = _rounding(mixture, shift, z, logs, mixture.parts)
    return total - slack, total + slack


def _blocks(mixture: Mixture, form: Form, shift: float, blocks: int) -> tuple[float, float]:
    edges = np.floor(np.linspace(0.0, float(mixture.parts), blocks + 1))
    first, last = edges[:-1], edges[1:] - 1.0
    width, log_count = last - first, np.log(np.diff(edges))
    high_q, low_q = mixture.power(first), mixture.power(last)
    z_first, z_last = _scores(mixture, shift, high_q), _scores(mixture, shift, low_q)
    log_first, log_last = _log_form(form, z_first), _log_form(form, z_last)
    chord = log_count + np.logaddexp(log_first, log_last) - math.log(2.0)

    least_var = mixture.var0 + mixture.var1 * low_q * low_q
    slope, bend = _derivatives(mixture, shift, high_q, low_q, least_var)
    step = -mixture.log_lam
    least = np.minimum(z_first, z_last)
    most = np.maximum(z_first, z_last) + slope * (step * width)
    near = np.where((least < 0) & (most > 0), 0.0, np.minimum(np.abs(least), np.abs(most)))
    far = np.maximum(np.abs(least), np.abs(most))
    if form == "chernoff":
        curvature = (far * slope) ** 2 + slope**2 + far * bend
        log_scale = -0.5 * near * near
    else:
        curvature = far * slope**2 + bend
        log_scale = -0.5 * near * near - _ROOT
    with np.errstate(divide="ignore", under="ignore"):
        log_error = log_scale + np.log(curvature) + np.log((width**3 - width) / 12.0) + 2.0 * math.log(step)
        # The form falls in z, but for "below", where it rises.
        lower, upper = (least, most) if form == "below" else (most, least)
        high = np.minimum(np.logaddexp(chord, log_error), log_count + _log_form(form, upper))
        share = np.exp(np.minimum(log_error - chord, 0.0))
        low = np.maximum(chord + np.log1p(-share), log_count + _log_form(form, lower))
    ends = np.concatenate([z_first, z_last])
    slack = _rounding(mixture, shift, ends, np.concatenate([chord, log_first, log_last]), blocks)
    if mixture.parts > 1 << 53:
        slack += 1e-16 * blocks  # ends of blocks are then rounded
    return float(logsumexp(low)) - slack, float(logsumexp(high)) + slack


def _derivatives(
    mixture: Mixture, shift: float, high_q: Floats, low_q: Floats, least_var: Floats
) -> tuple[Floats, Floats]:
    """Return bounds on the first two derivatives of z in ln q, within each block."""
    ahead, behind = mixture.gap1 * mixture.var0, (mixture.gap0 + shift) * mixture.var1

    def largest(times: float) -> Floats:
        found: Floats = np.maximum(np.abs(ahead - times * behind * high_q), np.abs(ahead - times * behind * low_q))
        return found

    slope = high_q * largest(1.0) * least_var**-1.5
    bend = high_q * (largest(2.0) * least_var**-1.5 + 3.0 * mixture.var1 * high_q**2 * largest(1.0) * least_var**-2.5)
    return slope, bend
