"""Propose-Test-Sample: a private draw from the posterior without assumptions about the data [HF, Algorithm 1]."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import up_relative
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import number, open_unit, positive, sum_up
from thresholdout.privacy.accounting.events.event_types import Adjacency, check_adjacency
from thresholdout.privacy.accounting.results import PrivacyParams
from thresholdout.privacy.learning.random_streams import streams
from thresholdout.privacy.learning.sgld.lower_bounds import half
from thresholdout.privacy.learning.sgld.posterior_bound import Sizes, free_terms, paper_order, power_of
from thresholdout.privacy.learning.sgld.regression_model import exponent, posterior, records

__all__ = [
    "ProposeTestSampleTrace",
    "propose_test_sample",
    "propose_test_sample_privacy",
    "propose_test_sample_trace",
    "pts_n_min",
    "pts_ratio_scale",
]

Floats = NDArray[np.float64]
Sampler = Callable[[Floats, Floats], float]


@dataclass(frozen=True)
class ProposeTestSampleTrace:
    """Internal values of one run of the algorithm. **Not private**; for tests and for teaching.

    `nb` is the noisy number of records, `size_v` the number of records with a ratio of at most ``nb^rho1``, and `n2`
    the latter with noise. `m` is their common ratio by least squares, `scale` the scale of its noise, and `m_noisy` the
    noisy ratio. `size_w` records have a ratio close to it; `n_w` is their noisy number, and must reach `n_min`. `mean`
    and `var` are those of the posterior of these records. Values that were not reached are NaN. `reason` explains a
    missing `value`.
    """

    value: float | None = None
    reason: str = ""
    nb: float = math.nan
    size_v: int = 0
    n2: float = math.nan
    m: float = math.nan
    scale: float = math.nan
    m_noisy: float = math.nan
    size_w: int = 0
    n_w: float = math.nan
    n_min: float = math.nan
    mean: float = math.nan
    var: float = math.nan


@dataclass(frozen=True)
class _Parameters:
    eps: float
    delta: float
    sizes: Sizes
    rho1: float
    rho2: float

    @property
    def margin(self) -> float:
        """Quantile of the noise: it is larger with probability delta."""
        return up_relative(math.log(1.0 / (2.0 * self.delta)) / self.eps)


def _parameters(
    eps: Any,
    delta: Any,
    x_l: Any,
    x_h: Any,
    alpha: Any,
    beta: Any,
    rho1: Any,
    rho2: Any,
    gamma1: Any,
) -> _Parameters:
    eps, delta = positive(eps, "eps"), half(open_unit(delta, "delta"))
    rho1, rho2 = number(rho1, "rho1"), exponent(rho2, "rho2")
    if not 1.0 < rho1 < 1.5:
        raise InputError("rho1", repr(rho1), "a number in (1, 3/2)")
    sizes = Sizes(x_l, x_h, alpha, beta, gamma1)
    if sizes.x_l == sizes.x_h:
        raise InputError("x_l", repr(sizes.x_l), f"less than x_h = {sizes.x_h!r}")
    if not rho2 < sizes.gamma1:
        raise InputError("gamma1", repr(sizes.gamma1), f"a number in (rho2, 1/2) = ({rho2:g}, 0.5)")
    if sizes.beta < 3.0 / sizes.x_h**2:
        raise InputError("beta", repr(sizes.beta), f"at least 3/x_h^2 = {3.0 / sizes.x_h**2:g}")
    return _Parameters(eps, delta, sizes, rho1, rho2)


def pts_n_min(
    m: float,
    size: float,
    *,
    eps: float,
    delta: float,
    x_l: float,
    x_h: float,
    alpha: float,
    beta: float,
    rho1: float,
    rho2: float,
    gamma1: float,
    printed_condition: bool = False,
) -> float:
    """Return the number of records that the last step needs, rounded up [HF, eq. 33].

    A negative noisy ratio `m` counts as 0 (the paper takes powers of it, defect E9). `size`, whose power rho2 is the
    width around the ratio, is the algorithm's n2. The paper has the number of all records here, which is private
    (defect E9). With `printed_condition`, the paper's own condition, the algorithm is not private for beta above 1
    (defect E2).
    """
    found = _parameters(eps, delta, x_l, x_h, alpha, beta, rho1, rho2, gamma1)
    size = number(size, "size")
    return _n_min(found, number(m, "m"), size, printed_condition)


def _n_min(found: _Parameters, m: float, size: float, printed_condition: bool = False) -> float:
    nu, sizes, gamma1 = paper_order(found.eps, found.delta), found.sizes, found.sizes.gamma1
    # Ratios of the domain are not negative (E9).
    m, share = max(0.0, m), nu / found.eps
    terms = [
        *free_terms(sizes, nu, found.eps),
        power_of(32.0 * share * sizes.mixed * m, 1.0 / (2.0 - gamma1)),
        power_of(32.0 * share * sizes.mixed, 1.0 / (2.0 - 2.0 * gamma1)),
        power_of(4.0 * share * sizes.prior * 4.0 * m * m, 1.0 / 3.0),
        power_of(16.0 * share * sizes.prior, 1.0 / (3.0 - 2.0 * gamma1)),
        sizes.least(nu, printed_condition),
        power_of(max(0.0, size), found.rho2 / gamma1),
    ]
    # 1e-12 is more than the rounding of these products and powers.
    return up_relative(max(terms), 1e-12)


def pts_ratio_scale(nb: float, n2: float, *, eps: float, x_l: float, x_h: float, rho1: float) -> float:
    """Return the scale of the Laplace noise on the common ratio.

    ``nb^rho1 (2 (n2-1) x_h^2 x_l^2 + x_h^4)/(eps n2 (n2-1) x_l^4)``. Half of it would be enough (PROOFS.md, P1).
    """
    eps, nb, n2 = positive(eps, "eps"), positive(nb, "nb"), positive(n2, "n2")
    if n2 <= 1.0:
        raise InputError("n2", repr(n2), "more than 1")
    x_l, x_h = positive(x_l, "x_l"), positive(x_h, "x_h")
    largest = nb ** number(rho1, "rho1")
    return up_relative(largest * (2.0 * (n2 - 1.0) * (x_h * x_l) ** 2 + x_h**4) / (eps * n2 * (n2 - 1.0) * x_l**4))


def propose_test_sample_privacy(eps: float, delta: float, adjacency: Adjacency = "add_remove") -> PrivacyParams:
    """Return the guarantee of `propose_test_sample` with these parameters."""
    eps, delta = positive(eps, "eps"), half(open_unit(delta, "delta"))
    steps = 5 if check_adjacency(adjacency) == "add_remove" else 4
    return PrivacyParams(sum_up([eps], [steps]), 2.0 * delta)


def propose_test_sample(
    x: Any,
    y: Any,
    eps: float,
    delta: float,
    x_l: float,
    x_h: float,
    alpha: float,
    beta: float,
    rho1: float,
    rho2: float,
    gamma1: float,
    rng: Any = None,
) -> float | None:
    """Return a private draw from the posterior of the slope, or None [HF, Algorithm 1].

    The result is (5 eps, 2 delta)-private for one record more or less, and (4 eps, 2 delta)-private for a replaced one,
    if nobody reads its low bits (PROOFS.md, P1 to P4). Inputs are clipped to ``[x_l, x_h]`` and negative targets to 0;
    all parameters are chosen without the data. None means that too few records are close to the common ratio. Neither
    the reason nor their number is released.

    This is the published algorithm with three changes that its proof needs: the corrected condition of Lemma A.1 (E2),
    the noisy number of records in place of the true one in the last test, and 0 in place of a negative noisy number or
    ratio (E9). A draw by a chain of Langevin dynamics in place of an exact one has no such guarantee. `rng` is None for
    a release.
    """
    return propose_test_sample_trace(x, y, eps, delta, x_l, x_h, alpha, beta, rho1, rho2, gamma1, rng=rng).value


def propose_test_sample_trace(
    x: Any,
    y: Any,
    eps: float,
    delta: float,
    x_l: float,
    x_h: float,
    alpha: float,
    beta: float,
    rho1: float,
    rho2: float,
    gamma1: float,
    *,
    noise: Sequence[float] | None = None,
    sampler: Sampler | None = None,
    rng: Any = None,
) -> ProposeTestSampleTrace:
    """Run `propose_test_sample` and return all its internal values. **Not private**: for tests and for teaching."""
    found = _parameters(eps, delta, x_l, x_h, alpha, beta, rho1, rho2, gamma1)
    inputs, targets = records(x, y)
    if noise is not None:
        if len(noise) != 4:
            raise InputError("noise", f"{len(noise)} numbers", "four numbers")
        noise = [number(each, "noise") for each in noise]
    generator = streams(rng).noise
    inputs = np.clip(inputs, found.sizes.x_l, found.sizes.x_h)
    targets = np.maximum(targets, 0.0)

    def laplace(place: int, scale: float) -> float:
        return float(generator.laplace(0.0, scale)) if noise is None else noise[place]

    return _run(found, inputs, targets, laplace, sampler, generator)


def _run(
    found: _Parameters,
    x: Floats,
    y: Floats,
    laplace: Callable[[int, float], float],
    sampler: Sampler | None,
    generator: np.random.Generator,
) -> ProposeTestSampleTrace:
    eps, sizes = found.eps, found.sizes
    with np.errstate(over="ignore"):
        ratios = y / x
    # eps-private by itself (PROOFS.md, P4).
    nb = x.size - found.margin + laplace(0, 1.0 / eps)
    small = ratios <= nb**found.rho1 if nb > 0 else np.zeros(x.size, dtype=bool)
    size_v = int(small.sum())
    # n2 and the noisy ratio together are (2 eps, delta)-private (P1).
    n2 = size_v - found.margin + laplace(1, 1.0 / eps)
    seen: dict[str, Any] = {"nb": nb, "size_v": size_v, "n2": n2}
    if n2 <= 1.0 or not size_v:
        return ProposeTestSampleTrace(reason="too few records have a small ratio", **seen)
    m = float((x[small] * y[small]).sum() / (x[small] ** 2).sum())
    scale = pts_ratio_scale(nb, n2, eps=eps, x_l=sizes.x_l, x_h=sizes.x_h, rho1=found.rho1)
    m_noisy = m + laplace(2, scale)
    # The test and the draw together are (2 eps, delta)-private; n_min depends on released numbers only (P2, P3).
    close = np.abs(ratios - m_noisy) <= n2**found.rho2
    size_w = int(close.sum())
    n_w = size_w - found.margin + laplace(3, 1.0 / eps)
    n_min = _n_min(found, m_noisy, n2)
    seen |= {"m": m, "scale": scale, "m_noisy": m_noisy, "size_w": size_w, "n_w": n_w, "n_min": n_min}
    if n_w < n_min or not size_w:
        return ProposeTestSampleTrace(reason="too few records are close to the common ratio", **seen)
    mean, var = posterior(x[close], y[close], sizes.alpha, sizes.beta)
    if sampler is not None:
        value = float(sampler(x[close], y[close]))
    else:
        value = float(generator.normal(mean, math.sqrt(var)))
    return ProposeTestSampleTrace(value=value, mean=mean, var=var, **seen)
