"""The worst-case pair, and the exact law of the iterates on it: after any step, and after whole epochs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import count, positive
from thresholdout.privacy.learning.sgld.regression_model import Normal

__all__ = ["Chain", "EpochLaw", "Mixture", "ProofEpoch", "epoch_law", "proof_epoch", "sgld_moments", "worst_case_chain"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Mixture:
    """The law of both chains after some whole epochs (PROOFS.md, L1).

    The first data set's iterate is N(mean, var). If ``k`` batches follow the changed one in a sweep, the second one's
    is normal with mean ``mean - gap0 - gap1 q`` and variance ``var0 + var1 q^2``, ``q = exp(k log_lam)``; k is uniform
    on 0, ..., parts - 1. `slack` bounds the relative rounding error of these numbers.
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

    `s` is ``x_h^2 beta`` and `u` is ``alpha + n s``. `limit` is M, the limit of the first data set's mean. `push` is g,
    the distance by which the changed batch moves the mean away from M. `shrink` and `shrink_changed` are ``1 - lam``
    and ``1 - lamh``, without cancellation.
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
        """Limit of the variance of the first data set's iterate, ``eta/(1 - lam^2)``."""
        return 2.0 / (self.u * (2.0 - self.shrink))

    def ordinary(self, j: int) -> Normal:
        """Return the law of the first data set's iterate after j steps."""
        exponent = j * self.log_lam
        mean = -self.limit * math.expm1(exponent)
        var = math.exp(2.0 * exponent) / self.alpha - self.stationary * math.expm1(2.0 * exponent)
        return Normal(mean, var)

    def after(self, epochs: int) -> Mixture:
        """Return the laws after some whole epochs, 0 or more."""
        # The closed forms of L1; `expm1` and `log1p` stand where a difference would cancel.
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
    """Return the constants of the chain on the worst-case pair, checked."""
    n, batch_size = count(n, "n", least=2), count(batch_size, "batch_size")
    c, alpha = positive(c, "c"), positive(alpha, "alpha")
    s = positive(x_h, "x_h") ** 2 * positive(beta, "beta")
    if batch_size > n or n % batch_size:
        raise InputError("batch_size", f"{batch_size}", f"a divisor of {n}, the number of records")
    u = alpha + n * s
    if not (math.isfinite(u) and u > 1.0):
        raise InputError("alpha", f"alpha + n x_h^2 beta = {u:g}", "such that this number is finite and more than 1")
    eta = 2.0 / u**2 if eta is None else positive(eta, "eta")
    shrink = eta / 2.0 * u
    if shrink >= 1.0:
        raise InputError("eta", repr(eta), f"less than 2/(alpha + n x_h^2 beta) = {2.0 / u:g}")
    limit = n * c * s / u
    # kappa of L1: the changed record has a quarter of the others' square.
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


CHUNK = 1 << 18  # positions at once, 2 MB an array


class EpochLaw(NamedTuple):
    """The law of the iterates on both data sets after whole epochs.

    The first data set's iterate is N(mean, var). On the second it is N(mean - gap, var_hat), given the changed record's
    position r in the sweep; r is uniform, so the law is an equal mixture.
    """

    mean: float
    var: float
    gap: Floats | float
    var_hat: Floats | float


class ProofEpoch(NamedTuple):
    """The epoch at which the paper proves that privacy fails [HF, Lemma A.6].

    At `k_dot`, less one epoch, the prior's share of the variance equals the noise's. `epochs` is ``ceil(k_dot) + 1``;
    `steps` are those of these epochs.
    """

    k_dot: float
    epochs: int
    steps: int


def _position(r: object, chain: Chain) -> int:
    found = count(r, "r")
    if found > chain.steps_per_epoch:
        raise InputError("r", str(found), f"at most {chain.steps_per_epoch}, the steps of a sweep")
    return found


def epoch_law(
    n: int,
    c: float,
    x_h: float,
    alpha: float,
    beta: float,
    K: int,
    eta: float | None = None,
    r: Any = None,
    *,
    batch_size: int = 1,
) -> EpochLaw:
    """Return the exact law after K epochs of cyclic sweeps over the worst-case pair.

    The default step size is ``2/(alpha + n x_h^2 beta)^2``. Step sizes are below ``2/(alpha + n x_h^2 beta)``, so the
    default needs ``alpha + n x_h^2 beta > 1``. `r` are positions of the changed record (with batches, of its batch) in
    the sweep, from 1 on; by default all.

    No closed form here subtracts two nearly equal numbers (PROOFS.md, L1). Both means are linear in ``lam^(n-r)`` and
    both variances in its square, so `eps_tail` needs no array of length n.
    """
    chain = worst_case_chain(n, c, x_h, alpha, beta, eta, batch_size)
    mixture = chain.after(count(K, "K"))
    if r is not None and np.ndim(r) == 0:
        one = math.exp((chain.steps_per_epoch - _position(r, chain)) * mixture.log_lam)
        narrow, wide = mixture.gap0 + mixture.gap1 * one, mixture.var0 + mixture.var1 * one * one
        return EpochLaw(mixture.mean, mixture.var, narrow, wide)
    positions = None if r is None else _positions(r, chain)
    size = chain.steps_per_epoch if positions is None else positions.size
    gap, var_hat = np.empty(size), np.empty(size)
    for start in range(0, size, CHUNK):
        stop = min(start + CHUNK, size)
        # Positions are counted from 1.
        each = np.arange(start + 1.0, stop + 1.0) if positions is None else positions[start:stop]
        q = mixture.power(chain.steps_per_epoch - each)
        np.multiply(q, mixture.gap1, out=gap[start:stop])
        gap[start:stop] += mixture.gap0
        np.multiply(q, q, out=q)
        np.multiply(q, mixture.var1, out=var_hat[start:stop])
        var_hat[start:stop] += mixture.var0
    return EpochLaw(mixture.mean, mixture.var, gap, var_hat)


def _positions(r: Any, chain: Chain) -> Floats:
    array = np.asarray(r)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputTypeError("r", f"an array of {array.dtype} of shape {array.shape}", "a list of positions")
    if array.size and not (array.min() >= 1 and array.max() <= chain.steps_per_epoch):
        raise InputError("r", "a position out of range", f"integers from 1 to {chain.steps_per_epoch}")
    return array.astype(np.float64)


def sgld_moments(
    n: int,
    c: float,
    x_h: float,
    alpha: float,
    beta: float,
    j: int,
    r: int | None = None,
    eta: float | None = None,
) -> Normal:
    """Return mean and variance of the iterate after j steps of cyclic sweeps over the worst-case pair.

    `r` is the position of the changed record in the sweep, from 1 on; without it, the law is that on the first data
    set.
    """
    chain = worst_case_chain(n, c, x_h, alpha, beta, eta)
    j = count(j, "j", least=0)
    first = chain.ordinary(j)
    if r is None:
        return first
    epochs, rest = divmod(j, chain.n)
    position = _position(r, chain)
    mixture = chain.after(epochs)
    q = math.exp((chain.n - position) * chain.log_lam)
    gap, var = mixture.gap0 + mixture.gap1 * q, mixture.var0 + mixture.var1 * q * q
    if rest < position:
        shrunk, widened = _steps(chain, gap, var, rest)
        return Normal(first.mean - shrunk, widened)
    # Ordinary steps up to the changed one, that one, and ordinary steps after it.
    gap, var = _steps(chain, gap, var, position - 1)
    before = chain.limit * math.exp((epochs * chain.n + position - 1) * chain.log_lam)  # from the first mean to M
    gap = (1.0 - chain.shrink_changed) * gap + chain.difference * before + chain.push
    var = (1.0 - chain.shrink_changed) ** 2 * var + chain.eta
    gap, var = _steps(chain, gap, var, rest - position)
    return Normal(first.mean - gap, var)


def _steps(chain: Chain, gap: float, var: float, times: int) -> tuple[float, float]:
    """Apply ordinary steps to a gap between means and to a variance."""
    exponent = times * chain.log_lam
    return math.exp(exponent) * gap, math.exp(2.0 * exponent) * var - chain.stationary * math.expm1(2.0 * exponent)


def proof_epoch(
    n: int, x_h: float, alpha: float, beta: float, eta: float | None = None, *, batch_size: int = 1
) -> ProofEpoch:
    """Return the epoch of the paper's proof, a little after the worst one [HF, Lemma A.6]."""
    return _proof_epoch(worst_case_chain(n, 1.0, x_h, alpha, beta, eta, batch_size))


def _proof_epoch(chain: Chain) -> ProofEpoch:
    steps = chain.steps_per_epoch
    k_dot = math.log1p(1.0 / (chain.alpha * chain.stationary)) / (-2.0 * steps * chain.log_lam) - 1.0
    epochs = max(1, math.ceil(k_dot) + 1)
    return ProofEpoch(k_dot, epochs, epochs * steps)
