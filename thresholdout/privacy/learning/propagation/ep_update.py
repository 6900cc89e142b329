"""One update of stochastic expectation propagation: a pure function, whose noise comes from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from thresholdout.errors import InputError
from thresholdout.privacy.learning.propagation.natural_parameters import ClipMode, Natural

__all__ = ["StepTrace", "dp_sep_step"]

T = TypeVar("T", bound=Natural)


class StepTrace(NamedTuple, Generic[T]):
    """What an update did.

    Attributes
    ----------
    cavity : Natural
        All but one site, line 4 of [VP, Algorithm 3].
    site : Natural
        Of the record, with what failed replaced by the shared site, line 6.
    clipped : Natural
        The site of norm at most C, line 7.
    noisy : Natural
        The posterior with its noise, line 9.
    posterior : Natural
        The same made proper, line 10.
    failed : bool
        Whether the site was not finite; depends on the record.
    projected : bool
        Whether line 10 changed something; depends on the noisy posterior only.
    """

    cavity: T
    site: T
    clipped: T
    noisy: T
    posterior: T
    failed: bool
    projected: bool


def dp_sep_step(
    theta_f: T,
    theta_0: T,
    site: Callable[[T], T],
    *,
    N: int,
    gamma: float,
    C: float | None = None,
    noise: T | None = None,
    rho: float = 1e-4,
    clip_mode: ClipMode = "joint",
    state: str = "site",
) -> tuple[T, StepTrace[T]]:
    """Return the shared site after one update by one record's site [VP, Algorithm 3].

    It never skips an update: where the record's site is not finite, the shared site takes its place.

    Parameters
    ----------
    theta_f, theta_0 : Natural
        The shared site and the prior, of the same shapes.
    site : callable
        From a cavity to the record's site; entries that are not finite mark failures.
    N : int
        Number of records.
    gamma : float
        In (0, N]; the record's site enters the posterior to the power of gamma/N. N is the algorithm of Li,
        Hernandez-Lobato and Turner (2015), 1 that of [VP], which is N times slower.
    C : float, optional
        Norm to which the record's site and the shared one are clipped; not clipped when left out.
    noise : Natural, optional
        Already scaled: two posteriors of neighbours are at most ``2 gamma C / N`` apart before it is added.
    rho : float
        What eigenvalues of the posterior's precision of at most 0 become, above 0.
    clip_mode : {"joint", "separate"}
        Clip all parameters together, or the blocks of `Natural.blocks` by themselves.
    state : {"site", "posterior"}
        Whether the shared site is kept clipped, or clipped for the cavity only, as the authors' mixture script does.

    Returns
    -------
    theta_f : Natural
        The posterior is ``theta_0 + N theta_f``.
    trace : StepTrace

    Notes
    -----
    ``theta = theta_0 + (N - gamma/N) theta_f + [(gamma/N) theta_n + noise]``. The noise is added to the record's part
    first: everything after it is post-processing, so no other rounding counts for the sensitivity (PROOFS.md, E1).
    [VP] is M. Vinaroz and M. Park, "Differentially private stochastic expectation propagation".

    Examples
    --------
    >>> from thresholdout.privacy.learning.propagation.natural_parameters import GaussianNatural
    >>> prior, start = GaussianNatural([0.125], [[0.25]]), GaussianNatural([0.3], [[0.2]])
    >>> noise = GaussianNatural([0.05], [[-3.0]])
    >>> after, trace = dp_sep_step(start, prior, lambda cavity: GaussianNatural([2.0], [[0.5]]), N=5, gamma=5.0, C=0.6,
    ...                            noise=noise)
    >>> trace.cavity
    GaussianNatural(eta=[1.325], Lam=[[1.05]])
    >>> after
    GaussianNatural(eta=[0.3664171...], Lam=[[-0.04998...]])
    """
    if N < 1 or not 0 < gamma <= N:
        raise InputError("gamma", f"{gamma!r} with N = {N}", "a number in (0, N], and at least one record")
    if C is None and noise is not None:
        raise InputError("C", "None with noise", "a norm to clip to: without it no noise protects anything")
    shared = theta_f.clip(C, clip_mode) if C is not None and state == "posterior" else theta_f
    cavity = theta_0 + shared.scale(N - 1)
    found = site(cavity)
    failed = not np.isfinite(found.values).all()
    if failed:
        found = found.repair(theta_f)
    clipped = found if C is None else found.clip(C, clip_mode)
    share = gamma / N
    part = clipped.scale(share)
    if noise is not None:
        part = part + noise
    noisy = theta_0 + theta_f.scale(N - share) + part
    posterior = noisy.project(rho)
    after = (posterior - theta_0).scale(1 / N)
    if C is not None and state == "site":
        after = after.clip(C, clip_mode)
    return after, StepTrace(cavity, found, clipped, noisy, posterior, failed, posterior is not noisy)
