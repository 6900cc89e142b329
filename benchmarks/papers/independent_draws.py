"""What an iterate shows of the worst-case pair when records are drawn anew, instead of in sweeps.

Proofs: PROOFS.md of Langevin dynamics, L6.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from thresholdout.privacy.accounting.bound_arguments import count, open_unit
from thresholdout.privacy.learning.random_streams import streams
from thresholdout.privacy.learning.sgld.iterate_law import worst_case_chain
from thresholdout.privacy.learning.sgld.lower_bounds import half

__all__ = ["uniform_sampling_bound", "uniform_sampling_cap"]


def uniform_sampling_cap(n: int, j: int) -> float:
    """Return the most that an event which is likely on the first data set can show, when records are drawn anew.

    Parameters
    ----------
    n : int
        Records, 2 or more.
    j : int
        Steps, each of which looks at one of them, drawn independently and uniformly.

    Returns
    -------
    float
        ``-j ln(1 - 1/n)``, about the number of epochs: the changed record is never drawn with probability
        ``(1 - 1/n)^j``, and then both chains have the same law. So ``P1(S) <= e^cap P2(S)`` for all events; the proof's
        events, above a threshold, cannot show more (defect E7). `uniform_sampling_bound` has the other direction.

    Examples
    --------
    >>> round(uniform_sampling_cap(100, 1200), 4)
    12.0604
    """
    return -count(j, "j") * math.log1p(-1.0 / count(n, "n", least=2))


def uniform_sampling_bound(
    n: int,
    c: float,
    x_h: float,
    alpha: float,
    beta: float,
    j: int,
    *,
    delta: float,
    patterns: int = 4000,
    error: float = 1e-6,
    eta: float | None = None,
    rng: Any = None,
) -> float:
    """Return a lower bound on the epsilon of the iterate when records are drawn anew, by simulation.

    Parameters
    ----------
    n, c, x_h, alpha, beta, eta
        As in `epoch_law`.
    j : int
        Steps.
    delta : float
        In [0, 1/2).
    patterns : int
        How often the steps that see the changed record are drawn; half of them choose the event.
    error : float
        Probability that the bound is wrong, in (0, 1).
    rng : None, int, numpy.random.RandomState or numpy.random.Generator
        See `streams`.

    Returns
    -------
    float
        At least 0: ``ln((P2(S) - delta)/P1(S))`` for the event S below a threshold, with a lower confidence limit in
        place of P2(S), by an empirical Bernstein inequality. Given when the changed record is seen, the iterate is
        normal, and its mean and variance follow the exact recursion.

    Examples
    --------
    >>> found = uniform_sampling_bound(100, 100**1.2, 1.0, 1.0, 4.0, 1200, delta=0.001, rng=0)
    >>> found > uniform_sampling_cap(100, 1200)
    True
    """
    chain = worst_case_chain(n, c, x_h, alpha, beta, eta)
    j, delta, error = count(j, "j"), half(delta), open_unit(error, "error")
    half_of_them = count(patterns, "patterns", least=4) // 2
    generator = streams(rng).sampling
    gap, var = np.zeros(2 * half_of_them), np.full(2 * half_of_them, 1.0 / chain.alpha)
    away = chain.limit  # of the first mean from where it goes
    for _ in range(j):
        seen = generator.random(gap.size) < 1.0 / chain.n
        factor = 1.0 - np.where(seen, chain.shrink_changed, chain.shrink)
        gap = factor * gap + np.where(seen, chain.difference * away + chain.push, 0.0)
        var = factor**2 * var + chain.eta
        away *= 1.0 - chain.shrink
    first = chain.ordinary(j)
    size = math.log(2.0 / error)

    def value(part: slice, shift: float) -> float:
        masses = np.exp(log_ndtr((shift + gap[part]) / np.sqrt(var[part])))
        # An empirical Bernstein bound [Maurer and Pontil 2009, Theorem 4].
        limit = math.sqrt(2.0 * float(masses.var(ddof=1)) * size / masses.size) + 7.0 * size / (3.0 * (masses.size - 1))
        mass = float(masses.mean()) - limit - delta - 1e-9
        score = shift / math.sqrt(first.var)
        return math.log(mass) - float(log_ndtr(score)) * (1.0 - 1e-9) - 1e-9 if mass > 0 else -math.inf

    trial, test = slice(0, half_of_them), slice(half_of_them, None)
    low, high = -float(gap[trial].max()), 4.0 * math.sqrt(first.var)
    shift = max(np.linspace(low, high, 400).tolist(), key=lambda each: value(trial, each))
    return max(0.0, value(test, shift))
