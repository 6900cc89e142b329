"""Statements of [Z17] as printed, for comparison; nothing builds on them.

* Theorem 1 and Lemma 1 are *false* for dependent records: their proofs use a concentration inequality for independent
  ones. With n copies of one fair coin, ``n = 9 ln(4/beta)/tau^2`` meets `theorem_1_records` at the noise scale
  ``27 B/(4 tau)``, while the mean of the coins is always 1/2 away from the truth.
* Theorem 2 builds on Lemma 1. It ties the noise to the tolerance, which rules the counterexample out. The posterior
  certificate is narrower by another proof.
* The proof of Theorem 3 exchanges a logarithm and an expectation; `thresholdout.certificates.change_of_measure`
  proves more.

References
----------
[Z17] J. Zhao, "Adaptive statistical learning with Bayesian differential privacy", WPES 2017.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from graphs.errors import RouteUnavailable
from graphs.numerics.bisection import bisect, within
from thresholdout.certificates.problem import Setting, leakage
from thresholdout.certificates.route import Route

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = [
    "Theorem2",
    "lemma_1_failure",
    "published",
    "theorem_1_records",
    "theorem_2",
    "theorem_2_tolerance",
    "theorem_3_bits",
]

NAME = "published"
SOURCE = "[Z17, Theorem 2]"
ASSUMES = "fewer than B queries overfit; its proof uses a concentration inequality for independent records"

LeakageRoute = Literal["quilt-published", "blanket-published"]


def theorem_1_records(
    model: DependenceModel,
    *,
    tolerance: float,
    noise_scale: float,
    budget: int,
    beta: float,
    method: LeakageRoute = "quilt-published",
) -> float:
    """Return the number of records of [Z17, Theorem 1]. False for dependent records as printed.

    It is ``max{9 ln(4/beta)/tau^2, max_i min_Q 9 B (|N|+1)/(4 sigma (tau/3 - 4 b_i))}``; ``inf`` when the model is too
    dependent.
    """
    try:
        allowed = _published_budget(model, tolerance / 3.0, method)
    except RouteUnavailable:
        return math.inf
    return max(_concentration_records(tolerance, beta), 9.0 * budget / (4.0 * noise_scale * allowed))


def lemma_1_failure(n: int, tolerance: float, sensitivity: float) -> float:
    """Return the failure probability of [Z17, Lemma 1], ``4 exp(-tau^2/(9 n sens^2))``. False for dependent records.

    It is for an algorithm that leaks at most ``tolerance / (3 n sensitivity)`` about each record.
    """
    return 4.0 * math.exp(-(tolerance**2) / (9.0 * n * sensitivity**2))


@dataclass(frozen=True, slots=True)
class Theorem2:
    """Parameters of [Z17, Theorem 2]: sigma and T in units of the range, and the number of records."""

    noise_scale: float
    threshold: float
    records: float


def theorem_2(
    model: DependenceModel, *, tolerance: float, queries: int, budget: int, beta: float, c: float = 0.5
) -> Theorem2:
    """Return the parameters of [Z17, Theorem 2].

    They are ``sigma = (1-c) tau/(12 ln(4m/beta))``, ``T = (1+c) tau/2``, ``n_#(B, sigma, (1-c) tau/4, beta/(2m))``.
    """
    noise_scale = (1.0 - c) * tolerance / (12.0 * math.log(4.0 * queries / beta))
    records = theorem_1_records(
        model,
        tolerance=(1.0 - c) * tolerance / 4.0,
        noise_scale=noise_scale,
        budget=budget,
        beta=beta / (2.0 * queries),
    )
    return Theorem2(noise_scale, (1.0 + c) * tolerance / 2.0, records)


def theorem_2_tolerance(model: DependenceModel, *, queries: int, budget: int, beta: float) -> float:
    """Return the smallest tolerance of [Z17, Theorem 2] for n records, in the limit c -> 0."""
    per_tolerance = 27.0 * budget * math.log(4.0 * queries / beta) / model.n  # epsilon times tau

    def granted(tolerance: float) -> bool:
        return _largest_leakage(model, per_tolerance / tolerance) <= tolerance / 12.0

    concentration = 12.0 * math.sqrt(math.log(8.0 * queries / beta) / model.n)
    lower = max(concentration, math.sqrt(12.0 * per_tolerance)) * (1.0 + 1e-12)
    if granted(lower):
        return lower
    upper = 2.0 * lower
    while not granted(upper):
        lower, upper = upper, 2.0 * upper
        if lower > 1000.0:
            return math.inf
    return bisect(granted, lower, upper, close=within(1e-4), geometric=True)


def theorem_3_bits(n: int, epsilon: float, beta: float) -> float:
    """Return the max-information of [Z17, Theorem 3], ``(2 epsilon^2 n + epsilon sqrt(2 n ln(2/beta))) log2 e``."""
    return (2.0 * epsilon**2 * n + epsilon * math.sqrt(2.0 * n * math.log(2.0 / beta))) * math.log2(math.e)


def published(setting: Setting) -> Route:
    """Read a guard's threshold and noise scale as those of [Z17, Theorem 2]; marked as not sound.

    ``tau = T + 6 sigma ln(4m/beta)`` and ``c = 2T/tau - 1``, if there are enough records.
    """
    tolerance, why = math.inf, setting.undeclared()
    if not why:
        tolerance, why = _theorem_2_at(setting)
    if why:
        return Route.missing(NAME, why, sound=False, assumes=ASSUMES, source=SOURCE)
    return Route.constant(NAME, tolerance, sound=False, assumes=ASSUMES, source=SOURCE)


def _theorem_2_at(setting: Setting) -> tuple[float, str]:
    """Return the tolerance of Theorem 2 for a guard's own parameters, or the reason why there is none."""
    parameters, beta = setting.parameters, setting.beta
    assert setting.queries is not None
    tolerance = parameters.threshold + 6.0 * parameters.noise_scale * math.log(4.0 * setting.queries / beta)
    c = 2.0 * parameters.threshold / tolerance - 1.0
    if c <= 0.0:
        return tolerance, "the threshold is below the 6 sigma ln(4m/beta) that the theorem's choice of T implies"
    margin = (1.0 - c) * tolerance / 4.0
    records = _concentration_records(margin, beta / (2.0 * setting.queries))
    if setting.n < records:
        return tolerance, f"it asks for at least {math.ceil(records)} records at this threshold and noise scale"
    if _largest_leakage(setting.model, setting.epsilon) > margin / 3.0:
        return tolerance, "the interaction leaks more than the theorem allows at this threshold and noise scale"
    return tolerance, ""


def _concentration_records(tolerance: float, beta: float) -> float:
    return 9.0 * math.log(4.0 / beta) / tolerance**2


def _route(model: DependenceModel, method: LeakageRoute) -> str:
    """Name the route; groups and independent records have no quilt but the empty one: group privacy."""
    return method if method in model.methods else "group"


def _published_budget(model: DependenceModel, epsilon: float, method: LeakageRoute) -> float:
    """Return the largest eps' that [Z17] turns into epsilon-BDP."""
    route = _route(model, method)
    if route == "group":
        return epsilon / float(leakage(model, 1.0, "informed", route).max())
    return model.budget(epsilon, route)


def _largest_leakage(model: DependenceModel, epsilon: float) -> float:
    """Return the leakage of an epsilon-DP mechanism by [Z17, Lemma 2]; infinite where the lemma does not apply."""
    try:
        return float(leakage(model, epsilon, "informed", _route(model, "quilt-published")).max())
    except RouteUnavailable:
        return math.inf
