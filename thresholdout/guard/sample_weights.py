"""Weighted queries: means of weight times value."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.data.record_labels import aligned
from thresholdout.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.guard.holdout import Records

__all__ = ["Weights"]


class Weights:
    """Weights of both parts' records.

    A weighted mean on the holdout, ``sum w v / sum w``, is no mean over records: each of them moves the denominator
    too. So both parts are divided by the mean weight c of the *training* records, and the values ``w v / c`` are those
    of an ordinary query, whose truth is ``E[w v] / c``. Holdout weights are cut to the largest training weight, so
    that the range is known without looking at the holdout.

    Parameters
    ----------
    weights : tuple of two array-likes
        Of the training records and of the holdout records, none negative.
    records : Records
        The parts.

    Raises
    ------
    InputError
        When weights are missing, negative or of another number than the records, or all training weights are zero.
    InputTypeError
        When they are not a pair.
    """

    def __init__(self, weights: object, records: Records) -> None:
        if not isinstance(weights, tuple) or len(weights) != 2:
            raise InputTypeError("sample_weight", f"a {type(weights).__name__}", "(train weights, holdout weights)")
        own = aligned(weights[0], records.open_labels, "sample_weight")
        self._train = _checked(own, records.open_size, "training")
        holdout = _checked(records.ordered(weights[1], "sample_weight"), records.n, "holdout")
        with np.errstate(over="ignore"):
            self._centre = float(self._train.mean())
        if self._centre <= 0.0:
            raise InputError("sample_weight", "training weights that are all zero", "a positive one")
        self._most = float(self._train.max()) / self._centre
        if not (0.0 < self._most < math.inf and self._centre < math.inf):
            raise InputError("sample_weight", "training weights of too different sizes for floats", "smaller weights")
        self._holdout = np.minimum(holdout / self._centre, self._most)

    def on_train(
        self, values: Any, bounds: tuple[float, float], tested: NDArray[np.intp] | None = None
    ) -> tuple[NDArray[np.float64], tuple[float, float]]:
        """Return weighted training values, of all records or of those that were tested, and their range."""
        lower, upper = bounds
        limits = min(0.0, lower) * self._most, max(0.0, upper) * self._most
        weights = self._train if tested is None else self._train[tested]
        weighted = np.asarray(values, dtype=np.float64) * (weights / self._centre)
        return np.clip(weighted, *limits), limits

    def on_holdout(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return weighted holdout values. Secret."""
        return values * self._holdout


def _checked(weights: object, n: int | None, part: str) -> NDArray[np.float64]:
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError("sample_weight", f"{part} weights that are not numbers", "real numbers") from None
    if array.ndim != 1 or (n is not None and array.size != n):
        raise InputError("sample_weight", f"{part} weights of shape {array.shape}", f"one for each of {n} records")
    if not np.isfinite(array).all() or (array < 0.0).any():
        raise InputError("sample_weight", f"{part} weights that are missing, infinite or negative", "weights >= 0")
    return array
