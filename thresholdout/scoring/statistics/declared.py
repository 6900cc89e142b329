"""User-defined statistics, with a declared bound on the effect of one record."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.data.arguments import positive_number
from thresholdout.data.values import check_bounds
from thresholdout.errors import InputError, InputTypeError
from thresholdout.scoring.metrics import remembered
from thresholdout.scoring.statistics.statistic import Statistic
from thresholdout.scoring.statistics.statistic_parts import Concentrated, Judged

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["bounded_difference"]


@remembered
def bounded_difference(
    name: str,
    function: Callable[[NDArray[Any], NDArray[Any]], float],
    *,
    difference: float,
    bounds: tuple[float, float] = (0.0, 1.0),
    greater_is_better: bool = True,
    response: str = "predict",
) -> Statistic:
    """Return a user-defined statistic with a declared bound on the effect of one record.

    Parameters
    ----------
    name : str
        Name of the statistic.
    function : callable
        ``function(y, output)``, from labels and predictions to a number in the bounds.
    difference : float
        n times the largest change of the value when one of n records, with its label and prediction, is replaced: 1 for
        a mean of values in [0, 1]. It is declared and not checked.
    bounds : tuple of float, default=(0, 1)
        The range of the value; values outside are clipped.
    greater_is_better : bool, default=True
        Whether a search should maximise it.
    response : str, default="predict"
        The method of an estimator whose output the function takes.

    Notes
    -----
    The estimand is the expectation of the value on as many records as the holdout has (McDiarmid's inequality). For a
    biased statistic this is not its value for the population.

    Examples
    --------
    >>> agreement = bounded_difference("most of them", lambda y, said: max(np.mean(y == said), 0.5), difference=1.0)
    >>> agreement.value([0, 1, 1, 1], [0, 1, 1, 0])
    0.75
    """
    if not isinstance(name, str) or not name:
        raise InputTypeError("name", repr(name), "a text")
    if not callable(function):
        raise InputTypeError("function", f"a {type(function).__name__}", "a function of labels and output")
    lower, upper = check_bounds(bounds)
    spread = positive_number(difference, "difference") / (upper - lower)

    def unit_value(judged: Judged) -> float:
        found = float(function(judged.y, judged.output))
        if not np.isfinite(found):
            raise InputError("function", "a value that is not finite", f"a number in [{lower:g}, {upper:g}]")
        return min(1.0, max(0.0, (found - lower) / (upper - lower)))

    return Statistic(
        name=name,
        responses=(response,),
        parts=lambda _: (Concentrated(unit_value, spread),),
        bounds=(lower, upper),
        greater_is_better=greater_is_better,
        target="the expectation of the value on as many records as the holdout has",
        classifies=False,
    )
