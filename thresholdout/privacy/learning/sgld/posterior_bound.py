"""Upper bounds on the epsilon of one exact draw from the posterior, over a whole domain."""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphs.numerics.rounding import up_relative
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import count, number, open_unit, positive
from thresholdout.privacy.learning.sgld.regression_model import exponent, inputs

__all__ = [
    "gaussian_renyi",
    "paper_order",
    "posterior_dp",
    "posterior_dp_holds",
    "posterior_rdp_bound",
    "posterior_size_terms",
    "rdp_to_dp",
    "renyi_order",
]


def renyi_order(value: object, name: str = "nu") -> float:
    """Return a Renyi order: a finite number above 1."""
    found = number(value, name, "a finite number above 1")
    if found <= 1:
        raise InputError(name, repr(found), "a finite number above 1")
    return found


def gaussian_renyi(nu: float, m1: float, v1: float, m2: float, v2: float) -> float:
    """Return the Renyi divergence of N(m1, v1) from N(m2, v2), in nats; ``inf`` where ``nu v2 + (1 - nu) v1 <= 0``.

    The formula printed in [HF, eq. 20] has the first logarithm upside down and ``nu - 1`` in place of its inverse, and
    can be negative (defect E1).
    """
    nu = renyi_order(nu)
    m1, m2 = number(m1, "m1"), number(m2, "m2")
    v1, v2 = positive(v1, "v1"), positive(v2, "v2")
    relative = (v2 - v1) / v2  # difference of the variances over the second
    left = 1.0 + (nu - 1.0) * relative  # (nu v2 + (1 - nu) v1) / v2
    if left <= 0:
        return math.inf
    widths = 0.5 * (-math.log1p(-relative) - math.log1p((nu - 1.0) * relative) / (nu - 1.0))
    return max(0.0, widths + nu * (m1 - m2) ** 2 / (2.0 * v2 * left))


def rdp_to_dp(nu: float, rdp: float, delta: float) -> float:
    """Return the epsilon of a Renyi bound at a delta, ``rdp + log(1/delta)/(nu - 1)``, rounded up [HF, Prop. III.4].

    `accounting.rdp_to_epsilon` has a better conversion. The constants of the paper are made of this one.
    """
    nu, rdp, delta = renyi_order(nu), positive(rdp, "rdp", zero=True), open_unit(delta, "delta")
    return up_relative(rdp + math.log(1.0 / delta) / (nu - 1.0))


@dataclass(frozen=True)
class Sizes:
    """The constants of the bounds, checked."""

    x_l: float
    x_h: float
    alpha: float
    beta: float
    gamma1: float

    def __post_init__(self) -> None:
        x_l, x_h = inputs(self.x_l, self.x_h)
        found = {"x_l": x_l, "x_h": x_h, "alpha": positive(self.alpha, "alpha"), "beta": positive(self.beta, "beta")}
        for name, value in {**found, "gamma1": exponent(self.gamma1)}.items():
            object.__setattr__(self, name, value)

    @property
    def ratio(self) -> float:
        """``x_h^2/x_l^2``."""
        return (self.x_h / self.x_l) ** 2

    @property
    def s(self) -> float:
        """``x_h^2 beta``."""
        return self.x_h**2 * self.beta

    @property
    def mixed(self) -> float:
        """``x_h^4 (alpha + s)/(0.9 x_l^4)``, A of [HF, eq. 33]."""
        return self.ratio**2 * (self.alpha + self.s) / 0.9

    @property
    def prior(self) -> float:
        """``x_h^4 (alpha + s)^2/(0.9 x_l^6 beta)``, B of [HF, eq. 33]."""
        return self.ratio**2 * (self.alpha + self.s) ** 2 / (0.9 * self.x_l**2 * self.beta)

    def least(self, nu: float, printed_condition: bool) -> float:
        """Return the lower limit of n for Lemma A.1."""
        if printed_condition:
            return max(1.0 + 10.0 * self.ratio * nu / self.beta, 1.0 + nu * self.ratio)
        return up_relative(1.0 + 10.0 * nu * self.ratio)


def paper_order(eps: float, delta: float) -> float:
    """Return the order ``1 + 2 ln(1/delta)/eps`` at which half of epsilon pays for delta [HF, Claim D.27]."""
    return 1.0 + 2.0 * math.log(1.0 / open_unit(delta, "delta")) / positive(eps, "eps")


def posterior_rdp_bound(
    n: int,
    nu: float,
    x_l: float,
    x_h: float,
    alpha: float,
    beta: float,
    gamma1: float,
    c: float,
    *,
    printed_condition: bool = False,
    sharp: bool = False,
) -> float:
    """Return a bound on the Renyi divergence of the posteriors of all neighbours in a domain [HF, Lemma A.1].

    Proved in PROOFS.md, B1, for all orders, and for both kinds of neighbours without the paper's correction for a
    record that is left out (defect E12).
    """
    n, nu = count(n, "n"), renyi_order(nu)
    sizes, c = Sizes(x_l, x_h, alpha, beta, gamma1), positive(c, "c", zero=True)
    least = sizes.least(nu, printed_condition)
    if not n > least:
        raise InputError("n", str(n), f"more than {least:g} at this order", "A smaller order nu needs fewer records.")
    # A computed power is off by some units of rounding, far less than 1e-13.
    w = up_relative(float(n) ** sizes.gamma1, 1e-13)
    first = sizes.ratio / (2.0 * (n - 1))
    if sharp:
        # The sharp form of B1.
        width, rest = min(2.0 * w, c + w), max(0.0, c - w)
        size = width + sizes.alpha * rest / (sizes.alpha + sizes.beta * (n - 1) * sizes.x_l**2)
        return up_relative(first + 5.0 * nu * sizes.s * sizes.ratio * size**2 / (9.0 * n), 1e-13)
    # The paper's five terms, which B1 shows to be larger.
    left = (n - 1) - nu * sizes.ratio
    terms = (
        first,
        (nu - 1.0) * nu * sizes.ratio / (2.0 * left),
        20.0 * nu * sizes.s * sizes.ratio * w**2 / (9.0 * n),
        20.0 * nu * 0.9 * sizes.mixed * (c + w) * w / (9.0 * n**2),
        5.0 * nu * 0.9 * sizes.prior * (c + w) ** 2 / (9.0 * float(n) ** 3),
    )
    return up_relative(math.fsum(terms), 1e-12)


def posterior_dp(
    n: int,
    delta: float,
    x_l: float,
    x_h: float,
    alpha: float,
    beta: float,
    gamma1: float,
    c: float,
    *,
    nu: float | None = None,
    sharp: bool = True,
) -> float:
    """Return an epsilon of one draw from the posterior, over a whole domain [HF, Lemma IV.4].

    For neighbours that replace or leave out one record, where all records lie in the domain. Rounded up; ``inf`` when
    there are too few records for any order. It covers one exact draw, and **not** the steps of a chain on the way
    there.
    """
    delta, n = open_unit(delta, "delta"), count(n, "n")
    rest = (x_l, x_h, alpha, beta, gamma1, c)
    if nu is not None:
        return rdp_to_dp(nu, posterior_rdp_bound(n, nu, *rest, sharp=sharp), delta)
    sizes = Sizes(x_l, x_h, alpha, beta, gamma1)
    # The largest order of B1, strictly within its condition n > 1 + 10 nu R.
    most = (n - 1) / (10.0 * sizes.ratio) * (1.0 - 1e-9)
    # B1 needs n > 1 + 10 nu R: there are too few records for any order above 1.
    if most <= 1.001:
        return math.inf
    # 481 orders, eight in each factor of 2, down to a distance from 1 of 2^-60: a coarser grid only raises the bound.
    orders = [1.0 + (most - 1.0) * 2.0 ** (-step / 8.0) for step in range(481)]
    found = (rdp_to_dp(each, posterior_rdp_bound(n, each, *rest, sharp=sharp), delta) for each in orders if each > 1.0)
    return min(found)


def posterior_dp_holds(
    n: int,
    eps: float,
    delta: float,
    x_l: float,
    x_h: float,
    alpha: float,
    beta: float,
    gamma1: float,
    c: float,
    *,
    printed_condition: bool = False,
) -> bool:
    """Return whether the paper's conditions for an (eps, delta)-private posterior hold [HF, Claim D.27].

    With the printed condition there is no guarantee. This is a predicate, because two of the conditions have n on both
    sides.
    """
    n, nu = count(n, "n"), paper_order(eps, delta)
    sizes, c = Sizes(x_l, x_h, alpha, beta, gamma1), positive(c, "c", zero=True)
    wide = c + up_relative(float(n) ** sizes.gamma1, 1e-13)
    mixed = (16.0 * nu / eps * sizes.mixed * wide) ** (1.0 / (2.0 - sizes.gamma1))
    prior = (4.0 * nu / eps * sizes.prior * wide**2) ** (1.0 / 3.0)
    enough = max(*free_terms(sizes, nu, eps), mixed, prior)
    return n > sizes.least(nu, printed_condition) and n >= up_relative(enough, 1e-12)


def free_terms(sizes: Sizes, nu: float, eps: float) -> tuple[float, float, float]:
    """Return the conditions (a), (b), (c) of [HF, Claim D.27] on n, which are free of c."""
    power = 1.0 / (1.0 - 2.0 * sizes.gamma1)
    return (
        1.0 + 8.0 * sizes.ratio / eps,
        1.0 + nu * sizes.ratio * (1.0 + 8.0 * (nu - 1.0) / eps),
        power_of(16.0 * nu * sizes.s * sizes.ratio / (0.9 * eps), power),
    )


def power_of(base: float, power: float) -> float:
    """Return a power above 0 of a number, 0 for one below 0, and ``inf`` where it is too large for a float."""
    if base <= 0:
        return 0.0
    exponent_ = power * math.log(base)
    return math.inf if exponent_ > 709.0 else base**power


def posterior_size_terms(
    eps: float,
    delta: float,
    x_l: float,
    x_h: float,
    alpha: float,
    beta: float,
    gamma1: float,
    gamma2: float,
    *,
    printed_condition: bool = False,
) -> tuple[float, float, float, float, float]:
    """Return the lower limits of n for an (eps, delta)-private posterior with ``c = n^gamma2`` [HF, Claim D.28]."""
    # For every n above the condition of B1, c + w is at most c times `corr` (B2).
    nu, sizes = paper_order(eps, delta), Sizes(x_l, x_h, alpha, beta, gamma1)
    gamma2 = positive(gamma2, "gamma2")
    if not sizes.gamma1 < gamma2 < 1.5:
        raise InputError("gamma2", repr(gamma2), f"a number in (gamma1, 3/2) = ({sizes.gamma1:g}, 1.5)")
    least = sizes.least(nu, False) if not printed_condition else 1.0 + 10.0 * sizes.ratio * nu / sizes.beta
    corr = 1.0 + least ** -(gamma2 - sizes.gamma1)
    mixed = power_of(16.0 * nu / eps * sizes.mixed * corr, 1.0 / (2.0 - sizes.gamma1 - gamma2))
    prior = power_of(4.0 * nu / eps * sizes.prior * corr**2, 1.0 / (3.0 - 2.0 * gamma2))
    return (*free_terms(sizes, nu, eps), mixed, prior)
