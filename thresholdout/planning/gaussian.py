"""The Gaussian guard in plans: every question is answered from the holdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thresholdout.certificates.gaussian import GaussianWidths
from thresholdout.certificates.latent_groups import gaussian_within, tightest_gaussian
from thresholdout.errors import PlanError
from thresholdout.mechanisms import GaussianGuard, GaussianParameters

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["gaussian_parameters", "gaussian_widths", "most_gaussian_answers"]


def gaussian_parameters(model: DependenceModel, queries: int, confidence: float) -> GaussianParameters:
    """Choose the noise of a Gaussian guard for a number of questions.

    Raises
    ------
    PlanError
        When the model has dependence that the certificate does not cover.

    Examples
    --------
    >>> from graphs import Independent
    >>> gaussian_parameters(Independent(10_000), 600, 0.95).queries
    600
    """
    widths = gaussian_widths(model, queries, 1.0 - confidence)
    if widths is None:
        raise PlanError(
            f"Gaussian answers about {model.describe()} cannot be certified: it takes independent records, independent "
            "groups, or a stationary chain that forgets its state with some probability at every step; take "
            "mechanism='thresholdout'"
        )
    return GaussianParameters(widths.schedule.expand(), queries)


def gaussian_widths(model: DependenceModel, queries: int, beta: float) -> GaussianWidths | None:
    """Return the noise schedule with the smallest tolerance, and its half-widths; ``None`` for other dependence."""
    return tightest_gaussian(model, queries, beta, slack=_slack(model.n))


def most_gaussian_answers(model: DependenceModel, tolerance: float, beta: float) -> GaussianWidths | None:
    """Return the schedule for the largest number of questions within a tolerance; ``None`` for not even one."""
    left = tolerance - _slack(model.n)
    return gaussian_within(model, left, beta) if left > 0.0 else None


def _slack(n: int) -> float:
    """Return what arithmetic adds to the error of an answer; it does not depend on the noise."""
    return GaussianGuard(GaussianParameters(1.0)).noise_slack(n)
