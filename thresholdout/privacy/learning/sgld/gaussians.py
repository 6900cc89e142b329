"""Renyi divergence of two normal distributions, and the privacy that a Renyi bound gives."""

from __future__ import annotations

import math

from graphs.numerics.rounding import up_relative
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import number, open_unit, positive

__all__ = ["gaussian_renyi", "rdp_to_dp", "renyi_order"]


def renyi_order(value: object, name: str = "nu") -> float:
    """Return a Renyi order: a finite number above 1."""
    found = number(value, name, "a finite number above 1")
    if found <= 1:
        raise InputError(name, repr(found), "a finite number above 1")
    return found


def gaussian_renyi(nu: float, m1: float, v1: float, m2: float, v2: float) -> float:
    """Return the Renyi divergence of a normal distribution from another one.

    Parameters
    ----------
    nu : float
        The order, above 1.
    m1, m2 : float
        Means.
    v1, v2 : float
        Variances, above 0.

    Returns
    -------
    float
        In nats, 0 or more; ``inf`` where ``nu v2 + (1 - nu) v1 <= 0``.

    Raises
    ------
    InputError
        When the order is 1 or less, a variance is not positive, or a number is not finite.

    Notes
    -----
    The formula printed in [HF, eq. 20] has the first logarithm upside down and ``nu - 1`` in place of its inverse, and
    can be negative (defect E1).

    Examples
    --------
    >>> round(gaussian_renyi(2, 0.3, 1, 0, 1.21), 13)
    0.0786722054922
    """
    nu = renyi_order(nu)
    m1, m2 = number(m1, "m1"), number(m2, "m2")
    v1, v2 = positive(v1, "v1"), positive(v2, "v2")
    relative = (v2 - v1) / v2  # of the spread of both to the second variance
    left = 1.0 + (nu - 1.0) * relative  # (nu v2 + (1 - nu) v1) / v2
    if left <= 0:
        return math.inf
    widths = 0.5 * (-math.log1p(-relative) - math.log1p((nu - 1.0) * relative) / (nu - 1.0))
    return max(0.0, widths + nu * (m1 - m2) ** 2 / (2.0 * v2 * left))


def rdp_to_dp(nu: float, rdp: float, delta: float) -> float:
    """Return the epsilon that a Renyi bound gives at a delta.

    Parameters
    ----------
    nu : float
        The order, above 1.
    rdp : float
        The divergence of all neighbours at this order, at least 0, in nats.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        ``rdp + log(1/delta)/(nu - 1)`` [HF, Prop. III.4], rounded up. `accounting.rdp_to_epsilon` has a better
        conversion; this one is the one that the constants of the paper are made of.

    Examples
    --------
    >>> round(rdp_to_dp(28.631021116, 0.0039102556, 0.001), 9)
    0.253910256
    """
    nu, rdp, delta = renyi_order(nu), positive(rdp, "rdp", zero=True), open_unit(delta, "delta")
    return up_relative(rdp + math.log(1.0 / delta) / (nu - 1.0))
