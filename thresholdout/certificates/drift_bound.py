"""The drift bound: an analyst's beliefs about a record move by steps, and steps add up like a random walk.

For B adaptive steps, each eps_0-differentially private, beliefs about an average record move by about ``0.76 eps_0
sqrt(B)`` at most, instead of the ``0.25 eps_0 B`` of the posterior certificate. Independent records or groups only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import formula_up
from thresholdout.certificates.problem import Setting
from thresholdout.certificates.route import Route
from thresholdout.mechanisms import interaction_epsilon

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["belief_drift", "drift_bound"]

Floats = NDArray[np.float64]

NAME = "drift bound"
SOURCE = "PROOFS.md, 'Drift bound'"
ASSUMES = "independent records or independent groups; queries are means of per-record values"

_MOST_STEPS = 128  # of the recursion; beyond it the slightly larger solution of a differential equation is used


def belief_drift(step: float, steps: int, failure: float) -> float:
    """Bound the distance of the analyst's expectation of any query from its estimand, at all times.

    It is ``min over lambda > 0 of sqrt((ln(1/b2) + (eps_0^2/8) sum_r lambda_r) / (2 lambda))``, at most 1, with
    ``lambda_B = lambda``, ``lambda_{r-1} = lambda_r + lambda_r (1 + lambda_r) (e^{eps_0} - 1)^2/4``.
    """
    if not step < 30.0:  # growth would be 1e25: the bound is 1 long before
        return 1.0
    growth = math.expm1(step) ** 2 / 4.0

    def cost(log_rate: Floats) -> Floats:
        rate = np.exp(log_rate)
        total = _sum_of_rates(rate, growth, steps)
        bound: Floats = np.sqrt((step**2 / 8.0 * total - math.log(failure)) / (2.0 * rate))
        return bound

    centre = -math.log(growth * steps)  # at larger rates the sum grows beyond all bounds
    return min(
        1.0, formula_up(best_parameters(cost, [(centre - 20.0, centre + 8.0)], points=33, rounds=5)[1]) * (1.0 + 1e-9)
    )


def _sum_of_rates(rate: Floats, growth: float, steps: int) -> Floats:
    """Return ``sum lambda_r``, or for many steps the integral of the flow ``lambda' = growth lambda (1 + lambda)``."""
    if steps > _MOST_STEPS:
        share = rate / (1.0 + rate)
        room = 1.0 - share * np.exp(growth * steps)
        with np.errstate(all="ignore"):
            return np.where(room > 0.0, (-np.log1p(rate) - np.log(room)) / growth, np.inf)
    total, current = np.zeros_like(rate), rate
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(steps):
            total = total + current
            current = current + current * (1.0 + current) * growth
    return np.where(np.isnan(total), np.inf, total)


def drift_bound(setting: Setting) -> Route:
    """Certify by the drift of the analyst's beliefs: ``CVaR_{b1}(M)`` and the drift at ``b2``."""
    largest = _largest_group(setting.model)
    why = setting.undeclared()
    if largest is None:
        why = "the records are neither independent nor in independent groups"
    if why or largest is None:
        return Route.missing(NAME, why, sound=True, assumes=ASSUMES, source=SOURCE)
    parameters, steps = setting.parameters, setting.budget
    assert steps is not None
    step = formula_up(largest * interaction_epsilon(setting.n, parameters.noise_scale, 1, parameters.ratios))
    scale = parameters.noise_scale
    threshold, grid = parameters.threshold / scale, (parameters.grid or 0.0) / scale

    def width(share: float) -> float:
        noise = scale * setting.law.superquantile(share * setting.beta, threshold, grid)
        return noise + belief_drift(step, steps, (1.0 - share) * setting.beta)

    tolerance = min(map(width, np.linspace(0.1, 0.9, 7).tolist())) + setting.slack
    return Route.constant(NAME, tolerance, sound=True, assumes=ASSUMES, source=SOURCE)


def _largest_group(model: DependenceModel) -> float | None:
    """Return the size of the largest declared independent group; ``None`` for other dependence."""
    from graphs import Independent

    if isinstance(model, Independent):
        return 1.0
    sizes = model.independent_groups()
    return None if sizes is None else float(sizes.max())


def best_parameters(
    cost: Callable[..., Floats], boxes: Sequence[tuple[float, float]], *, points: int = 13, rounds: int = 8
) -> tuple[tuple[float, ...], float]:
    """Minimise a function of a few parameters by grids that close in on the best point."""
    limits = list(boxes)
    best: tuple[float, ...] = tuple(low for low, _ in limits)
    value = float("inf")
    current = list(boxes)
    for _ in range(rounds):
        axes = [np.linspace(low, high, points) for low, high in current]
        mesh = np.meshgrid(*axes, indexing="ij")
        with np.errstate(all="ignore"):
            costs = np.where(np.isnan(found := cost(*mesh)), np.inf, found)
        where = int(np.argmin(costs))
        if costs.flat[where] < value:
            value = float(costs.flat[where])
            best = tuple(float(axis.flat[where]) for axis in mesh)
        elif value == float("inf"):
            break
        steps = [float(axis[1] - axis[0]) for axis in axes]
        current = [
            (max(low, centre - step), min(high, centre + step))
            for centre, step, (low, high) in zip(best, steps, limits, strict=True)
        ]
    return best, value
