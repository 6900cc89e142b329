"""Audits of anything that can be drawn from: mechanisms, samplers, whole interactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import count
from thresholdout.privacy.auditing.audit_result import AuditResult
from thresholdout.privacy.auditing.output_audits import AuditOptions, audit_setting, check_options
from thresholdout.privacy.auditing.seeds import entropy_of

__all__ = ["Sampler", "audit_sampler"]

Sampler = Callable[[int, np.random.Generator], Any]


def audit_sampler(
    first: Sampler,
    second: Sampler,
    *,
    draws: int = 20_000,
    random_state: int | np.random.Generator | None = None,
    **options: Unpack[AuditOptions],
) -> AuditResult:
    """Bound epsilon or delta from below by drawing from a mechanism on two neighbouring data sets.

    Parameters
    ----------
    first, second : callable
        ``first(size, rng)`` returns so many independent outputs, or features of them, on the first data set, as an
        array whose first axis has that length; `rng` is a generator of numpy.
    draws : int
        From each of the two.
    random_state : int, numpy.random.Generator or None
        Seed of both generators.
    **options
        ``delta`` or ``epsilon`` (one of them), ``confidence``, ``attack``, ``cut``, ``method``, ``fit_share``,
        ``stages``: see `audit_outputs`. The event is chosen on the first half of the draws, among the thresholds of a
        score and in both directions; the bound comes from the second half.

    Returns
    -------
    AuditResult

    Raises
    ------
    InputError, InputTypeError
        For options out of range, and draws that are not as many finite numbers as asked for.

    Examples
    --------
    A Laplace answer about one record costs 1 nat, and the audit sees most of that:

    >>> result = audit_sampler(lambda size, rng: rng.laplace(0, 1, size), lambda size, rng: rng.laplace(1, 1, size),
    ...                        delta=0.0, random_state=0)
    >>> 0.9 < result.epsilon < 1.0
    True
    """
    entropy = entropy_of(random_state)
    setting = check_options({**options, "random_state": entropy})
    size = count(draws, "draws", least=4)
    samplers = {"first": first, "second": second}
    for name, sampler in samplers.items():
        if not callable(sampler):
            raise InputTypeError(name, f"a {type(sampler).__name__}", "a function of a size and a generator")
    roots = np.random.SeedSequence(entropy).spawn(2)
    drawn = []
    for (name, sampler), root in zip(samplers.items(), roots, strict=True):
        sample = np.asarray(sampler(size, np.random.default_rng(root)))
        if sample.ndim == 0 or len(sample) != size:
            raise InputError(name, f"draws of shape {sample.shape}", f"{size} of them along the first axis")
        drawn.append(sample)
    return audit_setting(setting, *drawn)
