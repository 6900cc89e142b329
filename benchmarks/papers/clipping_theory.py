"""How far clipping and noise move a Gaussian posterior: divergences, bounds with proof, and the published ones.

Proofs, and counterexamples to what is published, are in thresholdout/privacy/learning/propagation/THEORY.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.certified import (
    inverse_form_bounds,
    least_eigenvalue_bound,
    log_deficit_bound,
)
from graphs.numerics.rounding import ULP
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import chosen, positive
from thresholdout.privacy.learning.propagation.natural_parameters import GaussianNatural

__all__ = ["KLBound", "clipped_kl", "dp_sep_kl_bound", "kl_gaussian", "kl_leading_order"]

Floats = NDArray[np.float64]

_LARGE = 1e100


@dataclass(frozen=True)
class KLBound:
    """A bound on the divergence that one noisy update causes.

    Attributes
    ----------
    value : float
        Nats; of the divergence from the noiseless posterior to the noisy one, in the mean over the noise on ``eta``.
        NaN when the repaired bound does not apply or the paper's formula is undefined.
    probability : float
        Over the noise on the precision, with which it holds (repaired) or is said to hold (paper).
    valid : bool
        Whether its conditions are met. Of the paper's variant: whether its formula is
        defined and not negative, as no divergence is; not whether it is true.
    terms : dict of str to float
        What half of the sum is.
    h, H : ndarray, shape (d,), or None
        The paper's bounds on ratios of eigenvalues.
    """

    value: float
    probability: float
    valid: bool
    terms: dict[str, float] = field(default_factory=dict)
    h: Floats | None = None
    H: Floats | None = None

    def __float__(self) -> float:
        return self.value


def _full(q: GaussianNatural, name: str = "q") -> tuple[Floats, Floats]:
    if q.diagonal or q.eta.ndim != 1:
        raise InputError(name, "a diagonal precision, or several components", "one component with a full precision")
    if not q.is_pd():
        raise InputError(name, "a precision that is not positive definite", "a proper density")
    return q.eta, q.Lam


def kl_gaussian(q: GaussianNatural, p: GaussianNatural) -> float:
    """Return the Kullback-Leibler divergence from one Gaussian to another, in nats.

    Parameters
    ----------
    q, p : GaussianNatural
        Proper densities of the same shape.

    Raises
    ------
    InputError
        When the shapes differ, or one is no proper density.

    Examples
    --------
    >>> kl_gaussian(GaussianNatural([0.0], [[1.0]]), GaussianNatural([2.0], [[1.0]]))
    2.0
    """
    if q.eta.shape != p.eta.shape or q.diagonal != p.diagonal:
        raise InputError("p", f"a density of shape {p.eta.shape}", f"one like q, of shape {q.eta.shape}")
    return q.kl(p)


def clipped_kl(q: GaussianNatural, C: float, *, variant: Literal["corrected", "paper"] = "corrected") -> float:
    """Return the divergence from a Gaussian to the one whose parameters are clipped separately, in nats.

    Parameters
    ----------
    q : GaussianNatural
        One component, with a full precision.
    C : float
        Norm that eta and Lam are each clipped to; above 0.
    variant : {"corrected", "paper"}
        The paper's formula [VP, Appendix A] is wrong: see THEORY.md; it is here to compare with.

    Notes
    -----
    With ``sE = max(1, |eta|/C)``, ``sL = max(1, |Lam|_F/C)`` and ``b = sL/sE - 1``:
    ``[d/sL + (b^2/sL) eta' Lam^-1 eta - d + d log sL] / 2``.

    Examples
    --------
    >>> q = GaussianNatural([2.0, -1.0], [[6.0, 1.0], [1.0, 3.0]])
    >>> round(clipped_kl(q, 2.0), 6), round(clipped_kl(q, 2.0, variant="paper"), 3)
    (1.329334, 3.234)
    """
    eta, Lam = _full(q)
    C = positive(C, "C")
    chosen(variant, "variant", ("corrected", "paper"))
    d = eta.size
    s_eta = max(1.0, float(np.linalg.norm(eta)) / C)
    s_lam = max(1.0, float(np.linalg.norm(Lam)) / C)
    quadratic = float(eta @ np.linalg.solve(Lam, eta)) * (s_lam / s_eta - 1) ** 2 / s_lam
    if variant == "paper":
        logarithm = math.log(max(1.0, float(np.linalg.norm(q.cov())) / C))
        return 0.5 * (d * s_lam + quadratic - d + d * logarithm)
    return 0.5 * (d * max(0.0, 1 / s_lam - 1 + math.log(s_lam)) + quadratic)


def dp_sep_kl_bound(
    q: GaussianNatural,
    s1: float,
    s2: float,
    rho: float,
    M: float,
    *,
    variant: Literal["repaired", "paper"] = "repaired",
) -> KLBound:
    """Bound the divergence from a posterior to the same one with noise on its natural parameters.

    Parameters
    ----------
    q : GaussianNatural
        One component, with a full precision: the posterior of an update before its noise.
    s1, s2 : float
        Standard deviations of the noise on ``eta`` and on the upper triangle of ``Lam``, 0 or more. Of an update they
        are both ``sigma * sensitivity(N, C, gamma)``.
    rho : float
        What eigenvalues of at most 0 become, above 0; the repaired bound does not depend on it.
    M : float
        How much noise on the precision, in spectral norm, is reckoned with; 0 or more. More of it is more likely to
        be enough, and bounds less.
    variant : {"repaired", "paper"}
        "repaired" is proved in THEORY.md and rounded conservatively. "paper" is Theorem 4.1 as printed, which is
        wrong (counterexample there), to compare with.

    Returns
    -------
    KLBound
        Not valid when M reaches the smallest eigenvalue (repaired), or when the formula is undefined or negative
        (paper).

    Notes
    -----
    Repaired, with ``r = M / lmin < 1``: ``[d (-r - log(1 - r)) + (s1^2 tr S + r^2 eta'S eta) / (1 - r)] / 2`` where
    ``S = Lam^-1``, with probability at least ``1 - 2 d exp(-M^2 / (2 d s2^2))``. It is about one update, of the
    published algorithm's line 9 and 10; clipping comes on top.

    Examples
    --------
    >>> q = GaussianNatural([2.0, -1.0], [[6.0, 1.0], [1.0, 3.0]])
    >>> bound = dp_sep_kl_bound(q, 0.05, 0.05, 1e-4, 0.3)
    >>> round(bound.value, 7), round(bound.probability, 6), bound.valid
    (0.0164374, 0.999506, True)
    """
    eta, Lam = _full(q)
    s1, s2, M = positive(s1, "s1", zero=True), positive(s2, "s2", zero=True), positive(M, "M", zero=True)
    rho = positive(rho, "rho")
    chosen(variant, "variant", ("repaired", "paper"))
    return _repaired(eta, Lam, s1, s2, M) if variant == "repaired" else _printed(eta, Lam, s1, s2, rho, M)


def _tail(d: int, s2: float, M: float) -> float:
    """Return ``d exp(-M^2 / (2 d s2^2))``, rounded up."""
    if s2 == 0.0:
        return 0.0
    exponent = (M / s2) * (M / s2) / (2 * d)
    return d * math.exp(-exponent * (1 - 8 * ULP)) * (1 + 8 * ULP) + math.ulp(0.0)


def _repaired(eta: Floats, Lam: Floats, s1: float, s2: float, M: float) -> KLBound:
    d = eta.size
    probability = max(0.0, math.nextafter(1.0 - 2 * _tail(d, s2, M), 0.0)) if s2 else 1.0
    least = least_eigenvalue_bound(Lam)
    if least <= 0 or least * (1 - 4 * ULP) <= M or np.abs(eta).max() > _LARGE:
        return KLBound(math.nan, probability, False)
    # Squares of anything smaller would vanish.
    r = max(math.nextafter(M / least, math.inf), 1 / _LARGE) if M else 0.0
    s1 = max(s1, 1 / _LARGE) if s1 else 0.0
    trace, energy = inverse_form_bounds(eta, Lam, least)
    rest = (1.0 - r) * (1 - 2 * ULP)
    terms = {
        "precision": d * log_deficit_bound(r),
        "noise": s1 * s1 * trace / rest * (1 + 8 * ULP),
        "mean": r * r * energy / rest * (1 + 8 * ULP),
    }
    value = 0.5 * sum(terms.values()) * (1 + 8 * ULP) + (1e-300 if r or s1 else 0.0)
    if not math.isfinite(value):
        return KLBound(math.nan, probability, False)
    return KLBound(value, probability, True, terms)


def _printed(eta: Floats, Lam: Floats, s1: float, s2: float, rho: float, M: float) -> KLBound:
    d = eta.size
    roots, vectors = np.linalg.eigh(Lam)
    least, variance = float(roots[0]), d * s2 * s2
    t = math.sqrt(2 * variance * math.log(d))
    h, H = 1 + (rho - least - 2 * M) / roots, 1 + (rho - least + 2 * M) / roots
    probability = max(0.0, 1.0 - _tail(d, s2, M)) if s2 else 1.0
    if (h <= 0).any():
        return KLBound(math.nan, probability, False, {}, h, H)
    R = (1 + (rho - least + t) / roots) / (h * H)
    if (R <= 0).any():
        return KLBound(math.nan, probability, False, {}, h, H)
    b = vectors @ ((vectors.T @ eta) / np.sqrt(roots))
    a = vectors @ ((vectors.T @ eta) / roots)
    terms = {
        "precision": (rho - least + t) * float((1 / roots).sum()),
        "noise": s1 * s1 / least * float(R.sum()),
        "mean": float((b * b * R).sum()),
        "own mean": -float(b @ b),
        "shifted mean": float(a @ a) * (rho - least + t),
        "logarithms": float(np.log(R).sum()),
    }
    value = 0.5 * sum(terms.values())
    rounding = 8 * ULP * sum(abs(term) for term in terms.values())  # without noise the bound is 0, and so is the truth
    possible = math.isfinite(value) and value >= -rounding
    return KLBound(value, probability, possible, terms, h, H)


def kl_leading_order(q: GaussianNatural, s1: float, s2: float) -> float:
    """Return the mean divergence of one noisy update to the second order of the noise, in nats.

    Parameters
    ----------
    q, s1, s2
        As in `dp_sep_kl_bound`.

    Notes
    -----
    ``[s1^2 tr S + (s2^2/2) (|S|_F^2 + (tr S)^2 - sum S_ii^2) + s2^2 (m'S m + |m|^2 tr S - sum m_i^2 S_ii)] / 2`` with
    ``S = Lam^-1`` and ``m = S eta``. With both noises ``2 gamma C sigma / N`` it falls as ``1/N^2``; the paper says
    1/N.

    Examples
    --------
    >>> q = GaussianNatural([2.0, -1.0], [[6.0, 1.0], [1.0, 3.0]])
    >>> round(kl_leading_order(q, 0.05, 0.05), 10)
    0.0011285111
    """
    _full(q)
    s1, s2 = positive(s1, "s1", zero=True), positive(s2, "s2", zero=True)
    S, mean = q.cov(), q.mean()
    own, trace = np.diag(S), float(np.trace(S))
    squares = float((S * S).sum()) + trace**2 - float(own @ own)
    shift = float(mean @ S @ mean) + float(mean @ mean) * trace - float((mean**2) @ own)
    return 0.5 * (s1 * s1 * trace + 0.5 * s2 * s2 * squares + s2 * s2 * shift)
