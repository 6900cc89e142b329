"""The Gaussian guard in plans: every question is answered from the holdout."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from thresholdout.certificates.gaussian import GaussianWidths
from thresholdout.certificates.gaussian_expected import tightest_for
from thresholdout.certificates.gaussian_route import gaussian_route
from thresholdout.certificates.independent_blocks import blocks_of
from thresholdout.certificates.latent_groups import gaussian_within, tightest_gaussian
from thresholdout.errors import PlanError
from thresholdout.mechanisms import GaussianGuard, GaussianParameters

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["gaussian_parameters", "gaussian_tolerance", "most_gaussian_answers", "one_scale_tolerance"]


def gaussian_parameters(
    model: DependenceModel,
    queries: int,
    confidence: float,
    expected: float | None = None,
    *,
    schedule: bool = False,
) -> GaussianParameters:
    """Choose the noise of a Gaussian guard for a number of questions.

    Parameters
    ----------
    model : graphs.DependenceModel
        How the records depend on each other.
    queries : int
        k.
    confidence : float
        1 - beta.
    expected : float, optional
        Near which value the answers are likely to be, in [0, 1]: intervals are narrow there, and the tolerance, which
        is for answers anywhere, is larger. Latent groups of a chain have half-widths only, and take no notice.
    schedule : bool, default=False
        Whether early answers get more noise, while little is known: about 15 per cent narrower, for answers that are
        not compared with each other. The best of equal candidates would mostly be an early one.

    Raises
    ------
    PlanError
        When the model has dependence that the certificate does not cover.

    Examples
    --------
    >>> from graphs import Independent
    >>> gaussian_parameters(Independent(10_000), 600, 0.95).schedule
    NoiseSchedule(0.011...)
    >>> gaussian_parameters(Independent(10_000), 600, 0.95, schedule=True).schedule
    <NoiseSchedule of 600 answers, 0.01594 to 0.001305>
    >>> gaussian_parameters(Independent(10_000), 50, 0.95, expected=0.9).expected
    0.9
    """
    widths = _widths(model, queries, 1.0 - confidence, expected, constant=not schedule)
    if widths is None:
        raise PlanError(
            f"Gaussian answers about {model.describe()} cannot be certified: it takes independent records, independent "
            "groups, or a stationary chain that forgets its state with some probability at every step; take "
            "mechanism='thresholdout'"
        )
    scales = widths.schedule.expand() if schedule else widths.schedule.scale(1)
    return GaussianParameters(scales, queries, expected=expected)


def gaussian_tolerance(model: DependenceModel, queries: int, beta: float) -> tuple[float, float]:
    """Return the certified tolerance of a Gaussian guard, and its last standard deviation; ``inf`` where there is none.

    Examples
    --------
    >>> from graphs import Independent
    >>> round(gaussian_tolerance(Independent(10_000), 730, 0.05)[0], 3)
    0.1
    """
    widths = _widths(model, queries, beta)
    if widths is None:
        return math.inf, math.inf
    parameters = GaussianParameters(widths.schedule.expand(), queries)
    return gaussian_route(model, parameters, beta).tolerance, widths.schedule.scale(queries)


def one_scale_tolerance(model: DependenceModel, queries: int, beta: float) -> float:
    """Return the tolerance of a Gaussian guard with the same noise on all answers, which is quick to find."""
    widths = tightest_gaussian(model, queries, beta, constant=True, slack=_slack(model.n))
    return math.inf if widths is None else widths.tolerance()


def most_gaussian_answers(model: DependenceModel, tolerance: float, beta: float) -> int:
    """Return the largest number of questions that a Gaussian guard answers within a tolerance."""
    left = tolerance - _slack(model.n)
    widths = gaussian_within(model, left, beta) if left > 0.0 else None
    answers = 0 if widths is None else widths.schedule.answers
    while answers and gaussian_tolerance(model, answers, beta)[0] > tolerance:
        answers -= max(1, answers // 1000)  # the certificate looks for its own shares of beta, and may miss the best
    return answers


def _widths(
    model: DependenceModel, queries: int, beta: float, expected: float | None = None, *, constant: bool = False
) -> GaussianWidths | None:
    """Return the noise schedule with the smallest tolerance, and its half-widths; ``None`` for other dependence."""
    blocks = blocks_of(model)
    if expected is not None and blocks is not None:
        return tightest_for(blocks, queries, beta, expected, constant=constant, slack=_slack(model.n))
    return tightest_gaussian(model, queries, beta, constant=constant, slack=_slack(model.n))


def _slack(n: int) -> float:
    """Return what arithmetic adds to the error of an answer; it does not depend on the noise."""
    return GaussianGuard(GaussianParameters(1.0)).noise_slack(n)
