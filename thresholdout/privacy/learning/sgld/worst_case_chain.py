"""The chain on the worst-case pair: its constants, and its law after whole epochs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import count, positive
from thresholdout.privacy.learning.sgld.regression_model import Normal

__all__ = ["Chain", "Mixture", "worst_case_chain"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Mixture:
    """The law of both chains after some whole epochs (PROOFS.md, L1).

    The first data set's iterate is normal. The second one's is, given that ``k`` batches follow the changed one in a
    sweep, normal as well; k is uniform on 0, ..., parts - 1.

    Attributes
    ----------
    mean, var : float
        Of the first data set's iterate.
    parts : int
        How many normals the second one's mixture has.
    log_lam : float
        Logarithm of the factor of an ordinary step.
    gap0, gap1 : float
        The k-th normal's mean is ``mean - gap0 - gap1 q`` with ``q = exp(k log_lam)``.
    var0, var1 : float
        Its variance is ``var0 + var1 q^2``.
    slack : float
        Bound on the relative rounding error of these numbers.
    """

    mean: float
    var: float
    parts: int
    log_lam: float
    gap0: float
    gap1: float
    var0: float
    var1: float
    slack: float

    def power(self, k: Floats) -> Floats:
        """Return ``q = lam^k``."""
        found: Floats = np.exp(self.log_lam * k)
        return found


@dataclass(frozen=True)
class Chain:
    """Constants of the chain with step size eta on the worst-case pair, in the notation of the paper.

    Attributes
    ----------
    n, batch_size : int
        Records, and how many a step looks at.
    alpha, eta : float
        Precision of the prior, step size.
    s, u : float
        ``x_h^2 beta`` and ``alpha + n s``.
    limit : float
        M, where the first data set's mean goes.
    push : float
        g, by how much the changed batch moves the mean away from M.
    shrink, shrink_changed : float
        ``1 - lam`` and ``1 - lamh``, without cancellation.
    """

    n: int
    batch_size: int
    alpha: float
    eta: float
    s: float
    u: float
    limit: float
    push: float
    shrink: float
    shrink_changed: float

    @property
    def steps_per_epoch(self) -> int:
        """Batches in a sweep."""
        return self.n // self.batch_size

    @property
    def difference(self) -> float:
        """``lamh - lam``, without cancellation."""
        return self.eta / 2.0 * self.n * self.s * 0.75 / self.batch_size

    @property
    def log_lam(self) -> float:
        """Logarithm of the factor of an ordinary step."""
        return math.log1p(-self.shrink)

    @property
    def log_changed(self) -> float:
        """Logarithm of lamh, the factor of the step with the changed record."""
        return math.log1p(-self.shrink_changed)

    @property
    def log_ratio(self) -> float:
        """``ln(lamh/lam)``, without cancellation."""
        return math.log1p(self.difference / (1.0 - self.shrink))

    @property
    def log_epoch(self) -> float:
        """``ln Lam``: one sweep of the second data set."""
        return self.log_changed + (self.steps_per_epoch - 1) * self.log_lam

    @property
    def stationary(self) -> float:
        """The variance that the first data set's iterate tends to, ``eta/(1 - lam^2)``."""
        return 2.0 / (self.u * (2.0 - self.shrink))

    def ordinary(self, j: int) -> Normal:
        """Return the law of the first data set's iterate after j steps."""
        exponent = j * self.log_lam
        mean = -self.limit * math.expm1(exponent)
        var = math.exp(2.0 * exponent) / self.alpha - self.stationary * math.expm1(2.0 * exponent)
        return Normal(mean, var)

    def after(self, epochs: int) -> Mixture:
        """Return the laws after some whole epochs, 0 or more."""
        first = self.ordinary(epochs * self.steps_per_epoch)
        epoch = epochs * self.log_epoch
        gone = -math.expm1(2.0 * epoch)
        wider = self.difference * (2.0 - self.shrink - self.shrink_changed)  # lamh^2 - lam^2
        longest = abs(epochs * self.steps_per_epoch * self.log_lam)
        return Mixture(
            mean=first.mean,
            var=first.var,
            parts=self.steps_per_epoch,
            log_lam=self.log_lam,
            gap0=-self.limit * math.exp(epoch) * math.expm1(-epochs * self.log_ratio),
            gap1=self.push * math.expm1(epoch) / math.expm1(self.log_epoch),
            var0=math.exp(2.0 * epoch) / self.alpha + self.stationary * gone,
            var1=self.stationary * wider * gone / -math.expm1(2.0 * self.log_epoch),
            slack=2e-14 * (1.0 + longest),
        )


def worst_case_chain(
    n: int, c: float, x_h: float, alpha: float, beta: float, eta: float | None = None, batch_size: int = 1
) -> Chain:
    """Return the constants of the chain on the worst-case pair, checked.

    Raises
    ------
    InputError
        When there are fewer than two records, a number is not positive, ``u <= 1``, the step is too large for the
        chain to be stable without oscillation (``eta u/2 >= 1``), or batches do not divide the records.
    """
    n, batch_size = count(n, "n", least=2), count(batch_size, "batch_size")
    c, alpha = positive(c, "c"), positive(alpha, "alpha")
    s = positive(x_h, "x_h") ** 2 * positive(beta, "beta")
    if batch_size > n or n % batch_size:
        raise InputError("batch_size", f"{batch_size} of {n} records", "a divisor of the number of records")
    u = alpha + n * s
    if not (math.isfinite(u) and u > 1.0):
        raise InputError("alpha", f"alpha + n x_h^2 beta = {u:g}", "more than 1, and finite")
    eta = 2.0 / u**2 if eta is None else positive(eta, "eta")
    shrink = eta / 2.0 * u
    if shrink >= 1.0:
        raise InputError("eta", repr(eta), f"less than 2/(alpha + n x_h^2 beta) = {2.0 / u:g}")
    limit = n * c * s / u
    kept = 1.0 - 0.75 / batch_size
    return Chain(
        n=n,
        batch_size=batch_size,
        alpha=alpha,
        eta=eta,
        s=s,
        u=u,
        limit=limit,
        push=eta / 2.0 * alpha * limit * 0.75 / batch_size,
        shrink=shrink,
        shrink_changed=eta / 2.0 * (alpha + n * s * kept),
    )
