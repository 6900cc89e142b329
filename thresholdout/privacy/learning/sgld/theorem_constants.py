"""The constants of the theorem: a private posterior, and a chain on the way to it that is not private."""

from __future__ import annotations

import math
from typing import Any

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import open_unit, positive
from thresholdout.privacy.learning.sgld.iterate_law import proof_epoch
from thresholdout.privacy.learning.sgld.lower_bounds import eps_tail, half
from thresholdout.privacy.learning.sgld.posterior_bound import Sizes, paper_order, posterior_dp, posterior_size_terms
from thresholdout.privacy.learning.sgld.regression_model import exponent

__all__ = ["theorem_parameters"]


def theorem_parameters(
    eps: float,
    eps_prime: float,
    delta: float,
    alpha: float,
    beta: float,
    x_h: float,
    gamma1: float,
    gamma2: float,
    *,
    printed_condition: bool = False,
) -> dict[str, Any]:
    """Return a number of records for which the posterior is private and the chain is not [HF, Theorem IV.1].

    Parameters
    ----------
    eps, delta : float
        One draw from the posterior is (eps, delta)-private; eps above 0, delta in (0, 1/2).
    eps_prime : float
        The iterate after ``K`` epochs is not (eps_prime, delta)-private; above 0.
    alpha, beta, x_h : float
        The model, with ``x_h^2 beta > 3``; the smallest input is ``x_h/2``.
    gamma1, gamma2 : float
        ``0 < gamma1 < 1/2`` and ``1 + gamma1 < gamma2 < 3/2``; the ratios are around ``c = n^gamma2``.
    printed_condition : bool
        With the paper's condition on n for the posterior, which is no guarantee for beta above 1 (defect E2).

    Returns
    -------
    dict
        ``n1`` to ``n4`` and ``terms`` (the five of `posterior_size_terms`, whose largest is ``n2``); ``n_p``, an
        integer, the largest of all, rounded up (``inf`` where it is too large for a float); ``c_p``; ``nu``; ``K``, the
        epoch of the proof. Two checks of both halves, that do not rest on the constants: ``posterior_epsilon``, an
        upper bound (Lemma A.1), and ``sgld_epsilon``, a lower bound (`eps_tail` after K epochs).

    Raises
    ------
    InputError
        When an argument is out of range.

    Notes
    -----
    n_p is astronomical; nothing of its size is ever built. The paper does not round it up.

    Examples
    --------
    >>> found = theorem_parameters(0.5, 38, 0.001, alpha=2, beta=1, x_h=1.8, gamma1=0.1, gamma2=1.2)
    >>> f"{found['n_p']:.6e}", found["posterior_epsilon"] <= 0.5, found["sgld_epsilon"] > 38
    ('1.894941e+14', True, True)
    """
    eps, eps_prime = positive(eps, "eps"), positive(eps_prime, "eps_prime")
    delta = half(open_unit(delta, "delta"))
    x_h, gamma1, gamma2 = positive(x_h, "x_h"), exponent(gamma1), positive(gamma2, "gamma2")
    x_l = x_h / 2.0
    sizes = Sizes(x_l, x_h, alpha, beta, gamma1)
    s, alpha, beta = sizes.s, sizes.alpha, sizes.beta
    if s <= 3.0:
        raise InputError("x_h", f"x_h^2 beta = {s:g}", "more than 3")
    if not 1.0 + gamma1 < gamma2 < 1.5:
        raise InputError("gamma2", repr(gamma2), f"a number in (1 + gamma1, 3/2) = ({1.0 + gamma1:g}, 1.5)")
    nu = paper_order(eps, delta)
    terms = posterior_size_terms(eps, delta, x_l, x_h, alpha, beta, gamma1, gamma2, printed_condition=printed_condition)
    v1 = max(6.0, 1.0 + 2.0 * math.exp(1.0 / s))
    wanted = eps_prime - math.log(0.5 - delta)
    fourth = 2.0 * v1 / alpha * (32.0 * s / 3.0) ** 2 * wanted * math.exp(2.0 / s)
    n1 = max(1.0 / (2.0 * alpha * s) - 1.0 / s, alpha / s, alpha / s * (math.exp(2.0 / s) - 2.0) + 0.5 / s) + 1.0
    found: dict[str, Any] = {
        "n1": n1,
        "n2": max(terms),
        "n3": sizes.least(nu, printed_condition) + 1.0,
        "n4": math.exp(min(700.0, math.log(fourth) / (2.0 * (gamma2 - 1.0)))),
        "terms": terms,
        "nu": nu,
    }
    largest = max(found["n1"], found["n2"], found["n3"], found["n4"])
    if not math.isfinite(largest) or largest > 1e200:
        return {**found, "n_p": math.inf, "c_p": math.inf, "K": None, "posterior_epsilon": None, "sgld_epsilon": None}
    n_p = math.ceil(largest)
    c_p = float(n_p) ** gamma2
    epochs = proof_epoch(n_p, x_h, alpha, beta).epochs
    return {
        **found,
        "n_p": n_p,
        "c_p": c_p,
        "K": epochs,
        "posterior_epsilon": posterior_dp(n_p, delta, x_l, x_h, alpha, beta, gamma1, c_p, nu=nu, sharp=False),
        "sgld_epsilon": eps_tail(n_p, c_p, x_h, alpha, beta, epochs, delta=delta),
    }
