"""The metric of a holdout, which settings name by a text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from thresholdout.errors import InputError
from thresholdout.scoring.metrics import Metric, absolute_error, get_metric, log_loss, squared_error

__all__ = ["served_metric"]

_CLIPPED: Final = re.compile(r"(log_loss|squared_error|absolute_error)\(clip=([0-9.e+-]{1,30})\)")
_MADE: Final[dict[str, Callable[..., Metric]]] = {
    "log_loss": log_loss,
    "squared_error": squared_error,
    "absolute_error": absolute_error,
}


def served_metric(text: object) -> Metric:
    """Return the metric of a name, with the largest loss of one record behind it where it needs one.

    Parameters
    ----------
    text : str
        As `Metric.name`, or the name alone where that stands for one metric.

    Raises
    ------
    InputError
        No metric has that name.

    Examples
    --------
    >>> served_metric("squared_error(clip=4)").name, served_metric("accuracy").bounds
    ('squared_error(clip=4.0)', (0.0, 1.0))
    """
    found = _CLIPPED.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return get_metric(text)  # type: ignore[arg-type]
    try:
        clip = float(found[2])
    except ValueError:
        raise InputError("metric", repr(text), "clip= and a number") from None
    return _MADE[found[1]](clip=clip)
