"""What some guards do not serve: metrics of the other direction, and tools that compare candidates by their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thresholdout.errors import InputError
from thresholdout.mechanisms import GaussianParameters, LadderParameters

if TYPE_CHECKING:
    from thresholdout.mechanisms.catalogue import Parameters
    from thresholdout.scoring.metrics import Metric
    from thresholdout.scoring.statistics import Statistic

__all__ = ["check_direction", "check_tells_each"]


def check_direction(parameters: Parameters, metric: Metric | Statistic) -> None:
    """Refuse a loss where the largest value is the best, and a score where the smallest is.

    Raises
    ------
    InputError
        When the mechanism is a ladder of the other direction.

    Examples
    --------
    >>> from thresholdout.scoring.metrics import get_metric
    >>> check_direction(LadderParameters(direction="minimize"), get_metric("zero_one_loss"))
    """
    if not isinstance(parameters, LadderParameters):
        return
    needed = "maximize" if metric.greater_is_better else "minimize"
    if parameters.direction != needed:
        more = "more" if metric.greater_is_better else "less"
        seen = f"{metric.name}, of which {more} is better, asked of a ladder that keeps to {parameters.direction!r}"
        limit = "" if parameters.queries is None else f", queries={parameters.queries}"
        raise InputError("metric", seen, f"a guard with mechanism=LadderParameters(direction={needed!r}{limit})")


def check_tells_each(parameters: Parameters) -> None:
    """Refuse a guard that does not tell each candidate's score alike, for a tool that picks the best candidate by it.

    With more noise on early answers than on late ones, the best of equal candidates is an early one.

    Raises
    ------
    InputError
        When the mechanism is a ladder, or the noise of a Gaussian one changes from answer to answer.

    Examples
    --------
    >>> check_tells_each(LadderParameters())
    Traceback (most recent call last):
    thresholdout.errors.InputError: guard: a ladder, which tells the best score so far and not each candidate's...
    >>> check_tells_each(GaussianParameters([0.03, 0.02]))
    Traceback (most recent call last):
    thresholdout.errors.InputError: guard: Gaussian noise of 0.03 to 0.02, with which early candidates would win...
    """
    if isinstance(parameters, LadderParameters):
        seen = "a ladder, which tells the best score so far and not each candidate's"
        raise InputError(
            "guard", seen, "a guard with mechanism='thresholdout'; or guard.score(model, metric) candidate by candidate"
        )
    if isinstance(parameters, GaussianParameters) and not parameters.alike:
        schedule = parameters.schedule
        seen = (
            f"Gaussian noise of {schedule.scale(1):.3g} to {schedule.scale(schedule.limit or 1):.3g}, with which early "
            "candidates would win too often or too rarely"
        )
        wanted = "the same noise on all answers: mechanism='gaussian', or GaussianParameters with one number"
        raise InputError("guard", seen, wanted)
