"""The Gaussian guard in plans: every question is answered from the holdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thresholdout.certificates.gaussian.chosen_widths import one_scale
from thresholdout.certificates.gaussian.deviations import GaussianWidths
from thresholdout.certificates.gaussian.expected_width import alike, tightest_for
from thresholdout.certificates.independent_blocks import IndependentBlocks, blocks_of
from thresholdout.certificates.problem import within_limits
from thresholdout.certificates.routes.latent_groups import tightest_gaussian
from thresholdout.errors import PlanError
from thresholdout.mechanisms import GaussianGuard, GaussianParameters

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["gaussian_guess", "gaussian_half_width", "gaussian_parameters"]


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
    model, confidence = within_limits(model, confidence)
    widths = _widths(model, queries, 1.0 - confidence, expected, constant=not schedule)
    if widths is None:
        raise PlanError(
            f"Gaussian answers about {model.describe()} cannot be certified: it takes independent records, independent "
            "groups, or a stationary chain that forgets its state with some probability at every step; take "
            "mechanism='claims'"
        )
    scales = widths.schedule.expand() if schedule else widths.schedule.scale(1)
    return GaussianParameters(scales, queries, expected=expected)


def gaussian_half_width(
    model: DependenceModel, queries: int, confidence: float, expected: float
) -> tuple[GaussianParameters, float] | None:
    """Return the noise of a Gaussian guard, and the half-width to expect near a value; ``None`` where there is none.

    Parameters
    ----------
    model, queries, confidence, expected
        As for `gaussian_parameters`.

    Returns
    -------
    (GaussianParameters, float) or None
        The certificate of these parameters looks for the shares of beta again, and may differ in the third digit.

    Examples
    --------
    >>> from graphs import Independent
    >>> round(gaussian_half_width(Independent(10_000), 50, 0.95, 0.9)[1], 3)
    0.044
    """
    model, confidence = within_limits(model, confidence)
    widths = _widths(model, queries, 1.0 - confidence, expected, constant=True)
    if widths is None:
        return None
    half_width = widths.tolerance() if blocks_of(model) is None else min(widths.tolerance(), widths.expected(expected))
    return GaussianParameters(widths.schedule.scale(1), queries, expected=expected), half_width


def gaussian_guess(n: int, queries: int, confidence: float, expected: float) -> float:
    """Return about what `gaussian_half_width` says of independent records, in a tenth of its time.

    It is off by about a fifth, and by nearly the same share for numbers of records and questions that are near.

    Examples
    --------
    >>> round(gaussian_guess(10_000, 100, 0.95, 0.9), 3)
    0.043
    """
    blocks, width = IndependentBlocks.of_records(n), 0.5
    for _ in range(2):
        width = 0.8 * one_scale(alike(blocks, expected, width), queries, 1.0 - confidence).tolerance()
    return width


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
