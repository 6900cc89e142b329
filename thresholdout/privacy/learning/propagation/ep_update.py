"""One update of stochastic expectation propagation: a pure function whose noise is an argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from thresholdout.errors import InputError
from thresholdout.privacy.learning.propagation.natural_parameters import ClipMode, Natural

__all__ = ["StepTrace", "dp_sep_step"]

T = TypeVar("T", bound=Natural)


class StepTrace(NamedTuple, Generic[T]):
    """Intermediate values of an update, by line of [VP, Algorithm 3].

    `cavity` (line 4) lacks one site. `site` (6) is the record's, with the shared site where it failed; `clipped` (7)
    has norm at most C. `noisy` (9) is the posterior with its noise, `posterior` (10) the same made proper. `failed`
    depends on the record; `projected`, a change by line 10, on the noisy posterior only.
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
    """Return the shared site after one update by one record's site, and a trace [VP, Algorithm 3].

    ``theta = theta_0 + (N - gamma/N) theta_f + [(gamma/N) theta_n + noise]``, and the posterior is ``theta_0 + N
    theta_f`` for the new shared site. The noise is added to the record's part first: everything after it is
    post-processing, so no other rounding counts for the sensitivity (PROOFS.md, E1). No update is skipped: the shared
    site takes the place of a record's site that is not finite.

    `noise` is already scaled: before it is added, two neighbours' posteriors are at most ``2 gamma C / N`` apart. A
    gamma of N is the algorithm of Li, Hernandez-Lobato and Turner (2015), 1 that of [VP], which is N times slower.
    `state` "posterior" keeps the shared site unclipped and clips it for the cavity only, as the authors' mixture script
    does. [VP] is M. Vinaroz and M. Park, "Differentially private stochastic expectation propagation".
    """
    if N < 1 or not 0 < gamma <= N:
        raise InputError("gamma", f"{gamma!r} with N = {N}", "a number in (0, N]")
    if C is None and noise is not None:
        raise InputError("C", "None with noise", "a norm to clip to", "Without clipping, no noise protects anything.")
    shared = theta_f.clip(C, clip_mode) if C is not None and state == "posterior" else theta_f
    cavity = theta_0 + shared.scale(N - 1)
    found = site(cavity)
    failed = not np.isfinite(found.values).all()
    if failed:
        found = found.repair(theta_f)
    clipped = found if C is None else found.clip(C, clip_mode)
    # The record's part and its noise are added first: later roundings are post-processing (PROOFS.md, E1).
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
