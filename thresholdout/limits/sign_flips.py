"""Sign flips of group totals: exact where every total is as likely as its negative, for totals of any size.

Totals are rounded to a grid that depends on their absolute values alone, so the law of the statistic under flips is an
exact convolution and no random flips are drawn. Proof: PROOFS.md of this package, "Sign flips".
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["log_flip_tail"]

_STEPS: Final = 64.0  # grid steps in the root mean square of few totals: rounding adds 1 / (12 64^2) to the variance
_STEPS_OF_MANY: Final = 16.0  # and of more than 2,000, where it adds 3e-4 and the convolution is four times shorter
_MANY: Final = 2000  # totals up to which the finer grid costs little time
_NEAR: Final = 1e-6  # totals this near to multiples of a part of the smallest one are multiples of it
_CUT: Final = 1e-26  # probability that is cut at either end at a time, and counted as part of the tail
_BETWEEN: Final = 32  # totals between two cuts
_SLACK: Final = 1e-9  # relative; sums of positive numbers lose 1e-16 a total


def log_flip_tail(totals: NDArray[np.float64]) -> float:
    """Return ln of the probability that random signs give at least the observed sum, rounded up."""
    steps = _on_grid(totals[totals != 0.0])
    steps = steps[steps != 0]
    if steps.size == 0:
        return 0.0
    sizes = np.sort(np.abs(steps))
    seen = int(steps.sum())
    # the sum of a random subset is (seen + all) / 2 or more
    law, first, lost = np.ones(1), 0, 0.0
    for number, size in enumerate(sizes.tolist(), 1):
        longer = np.zeros(law.size + size)
        longer[: law.size] = law
        longer[size:] += law
        law = 0.5 * longer
        if number % _BETWEEN == 0:
            below = int(np.searchsorted(np.cumsum(law), _CUT))
            above = int(np.searchsorted(np.cumsum(law[::-1]), _CUT))
            law, first, lost = law[below : law.size - above], first + below, lost + 2.0 * _CUT
    start = -((-seen - int(sizes.sum())) // 2) - first
    tail = float(law[max(0, start) :].sum()) + lost
    return min(0.0, math.log(tail) + _SLACK) if tail > 0.0 else math.log(_CUT)


def _on_grid(totals: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round totals, an odd function of each, to whole steps of a size that their signs do not change."""
    if totals.size == 0:
        return np.zeros(0, dtype=np.int64)
    sizes = np.abs(totals)
    smallest = float(sizes.min())
    size = math.sqrt(float(np.mean(sizes * sizes)))
    finest = size / (_STEPS if totals.size <= _MANY else _STEPS_OF_MANY)
    unit = finest
    for parts in range(1, math.floor(smallest / finest) + 1):
        whole = sizes * (parts / smallest)
        if bool(np.all(np.abs(whole - np.rint(whole)) <= _NEAR)):
            unit = smallest / parts
            break
    return np.asarray(np.sign(totals) * np.rint(sizes / unit)).astype(np.int64)
