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
    """Define a statistic of your own by a function and a declared bound on the effect of one record.

    Use it for a score that is neither a mean over records nor a function of this package. The narrower the bound, the
    narrower the intervals.

    Parameters
    ----------
    name : str
        Name of the statistic, which the guard's history shows.
    function : callable
        Function ``function(y, output)`` from labels and predictions to a number in the bounds.
    difference : float
        n times the largest change of the value when one of n records, with its label and prediction, is replaced: 1 for
        a mean of values in [0, 1]. It is declared and not checked, and intervals are valid only if it is true.
    bounds : tuple of float, default (0.0, 1.0)
        Range of the value. Values outside are clipped.
    greater_is_better : bool, default True
        Whether a search should maximize the statistic.
    response : str, default "predict"
        Method of an estimator whose output the function takes.

    Returns
    -------
    Statistic
        The statistic, for ``guard.score(model, statistic)``.

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
        raise InputTypeError("name", repr(name), "a string")
    if not callable(function):
        raise InputTypeError("function", f"a {type(function).__name__}", "a function of labels and output")
    lower, upper = check_bounds(bounds)
    spread = positive_number(difference, "difference") / (upper - lower)

    def unit_value(judged: Judged) -> float:
        found = float(function(judged.y, judged.output))
        if not np.isfinite(found):
            raise InputError(
                "function", "a value that is not finite", f"a function with values in [{lower:g}, {upper:g}]"
            )
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
