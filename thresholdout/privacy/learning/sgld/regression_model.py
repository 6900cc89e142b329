"""Bayesian linear regression in one dimension: its domain, its posterior, and the proof's pair of data sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import count, number, positive

__all__ = ["Normal", "RegressionDomain", "in_domain", "posterior", "step_size", "worst_case_pair"]

Floats = NDArray[np.float64]
Data = tuple[Floats, Floats]


class Normal(NamedTuple):
    """Mean and variance of a normal distribution."""

    mean: float
    var: float


def exponent(value: object, name: str = "gamma1") -> float:
    """Return an exponent of the domain's width: a number in (0, 1/2)."""
    found = number(value, name, "a number in (0, 1/2)")
    if not 0.0 < found < 0.5:
        raise InputError(name, repr(found), "a number in (0, 1/2)")
    return found


@dataclass(frozen=True)
class RegressionDomain:
    """Public bounds of records: ``x_l <= x <= x_h`` and ``|y/x - c| <= n^gamma1``, with x and y above 0 [HF, Sec. IV].

    c, the middle of the ratios, is above 0, ``0 < x_l <= x_h``, and gamma1 is in (0, 1/2).

    Examples
    --------
    >>> RegressionDomain(c=2.0, x_l=0.5, x_h=1.0, gamma1=0.1).width(1024)
    2.0
    """

    c: float
    x_l: float
    x_h: float
    gamma1: float = 0.1

    def __post_init__(self) -> None:
        x_l, x_h = inputs(self.x_l, self.x_h)
        for name, value in (("c", positive(self.c, "c")), ("x_l", x_l), ("x_h", x_h)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "gamma1", exponent(self.gamma1))

    def width(self, n: int) -> float:
        """Return the largest distance of a ratio from the middle, for n records."""
        width: float = float(count(n, "n")) ** self.gamma1
        return width


def inputs(x_l: object, x_h: object) -> tuple[float, float]:
    """Return the smallest and the largest input, ``0 < x_l <= x_h``."""
    low, high = positive(x_l, "x_l"), positive(x_h, "x_h")
    if low > high:
        raise InputError("x_l", repr(low), f"at most x_h = {high!r}")
    return low, high


def records(x: Any, y: Any) -> Data:
    """Return inputs and targets as two finite arrays of shape (n,), n of 1 or more."""
    found = []
    for value, name in ((x, "x"), (y, "y")):
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputTypeError(name, f"a {type(value).__name__}", "an array of numbers, one per record") from None
        if array.ndim != 1 or not array.size:
            raise InputError(
                name, f"an array of shape {array.shape}", "an array of one number for each of at least one record"
            )
        if not np.isfinite(array).all():
            raise InputError(name, "a value that is not finite", "finite numbers")
        found.append(array)
    if found[0].size != found[1].size:
        raise InputError("y", f"{found[1].size} numbers", f"{found[0].size} numbers, one for each of x")
    return found[0], found[1]


def in_domain(x: Any, y: Any, gamma1: float, x_l: float, x_h: float, c: float) -> bool:
    """Return whether a data set lies in the domain of the theorem.

    An input or a target of 0 is outside. So the record "(0, 0)" of one of the paper's lemmas is in no domain (defect
    E12).
    """
    domain = RegressionDomain(c, x_l, x_h, gamma1)
    inputs_, targets = records(x, y)
    if (inputs_ < domain.x_l).any() or (inputs_ > domain.x_h).any() or (targets <= 0).any():
        return False
    return bool((np.abs(targets / inputs_ - domain.c) <= domain.width(inputs_.size)).all())


def worst_case_pair(n: int, c: float, x_h: float) -> tuple[Data, Data]:
    """Return the two neighbours ((x, y), (x', y')) of the proof, which differ in the last record [HF, eq. 8]."""
    n, c, x_h = count(n, "n"), positive(c, "c"), positive(x_h, "x_h")
    x = np.full(n, x_h)
    changed = x.copy()
    changed[-1] = x_h / 2.0
    return (x, c * x), (changed, c * changed)


def posterior(x: Any, y: Any, alpha: float, beta: float) -> Normal:
    """Return the posterior of the slope [HF, Lemma IV.2].

    ``mean = beta sum(x y)/A`` and ``var = 1/A``, with ``A = alpha + beta sum(x^2)``.
    """
    inputs_, targets = records(x, y)
    alpha, beta = positive(alpha, "alpha"), positive(beta, "beta")
    precision = alpha + beta * float((inputs_**2).sum())
    return Normal(beta * float((inputs_ * targets).sum()) / precision, 1.0 / precision)


def step_size(n: int, x_h: float, alpha: float, beta: float, numerator: float = 2.0) -> float:
    """Return the step size ``numerator / (alpha + n x_h^2 beta)^2`` of the theorem.

    The numerator is 2 in the lemmas [HF, Sec. IV-B] and 1 in Claim IV.9; the lemmas are proved for 2 only (defect E5).
    """
    u = positive(alpha, "alpha") + count(n, "n") * positive(x_h, "x_h") ** 2 * positive(beta, "beta")
    return positive(numerator, "numerator") / u**2
