"""The drop that a number of items, samples and checks can show."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from thresholdout.errors import InputError
from thresholdout.evaluations.account import Account
from thresholdout.evaluations.scores import Scores

__all__ = ["Variability", "drop_seen", "variability"]

_POWER_QUANTILE: Final = 0.8416212335729143  # of the standard normal law at .8
_WITHIN: Final = 0.09375  # E p (1 - p) for difficulties of law Beta(.75, .25), which stands for a usual benchmark
_SAME: Final = 1e-9  # variances below it are rounding errors of equal samples


@dataclass(frozen=True, slots=True)
class Variability:
    """Variance between samples of an item, and whether it is `measured` in a log with repeats."""

    within: float
    measured: bool

    @property
    def samples_differ(self) -> bool:
        """Whether more samples of an item add information; at temperature 0 they do not."""
        return self.within > _SAME


def variability(run: Scores | None = None) -> Variability:
    """Return the variance between samples in a run with repeats, or that of a usual benchmark."""
    if run is None or int((run.samples > 1).sum()) == 0:
        return Variability(_WITHIN, False)
    kept = run.spread[run.samples > 1]
    return Variability(float(kept.mean()), True)


def drop_seen(
    items: int, samples: int = 1, *, checks: int = 1, alarms: int = 0, within: float = _WITHIN, inflation: float = 1.0
) -> float:
    """Return about the drop that the last of some checks calls worse with probability .8, by the normal law.

    Earlier `alarms` are spread evenly, `within` is the variance between samples of an item, `inflation` the design
    effect of clusters. One check is a single comparison at .05. The difference of two runs has twice the variance.

    Examples
    --------
    >>> round(drop_seen(3000), 3), round(drop_seen(600, samples=5), 3)  # five samples need a fifth of the items
    (0.02, 0.02)
    """
    for name, value in (("items", items), ("samples", samples), ("checks", checks)):
        if value < 1:
            raise InputError(name, value, "at least 1")
    if not 0 <= alarms < checks:
        raise InputError("alarms", alarms, f"at least 0 and below the {checks} checks")
    from scipy.special import ndtri_exp

    level = math.log(0.05)
    if checks > 1:
        account = Account(checks, checks, False, "year", level)
        at = {round(checks * (k + 1) / (alarms + 1)) for k in range(alarms)}
        for number in range(1, checks):
            account = account.after(number in at)
        level = account.log_level - math.log(2.0)  # the release and main share the level
    z = -float(ndtri_exp(level)) + _POWER_QUANTILE
    # where none differs by chance: k lost items have the p-value 2^-k in the sign test
    lost = math.ceil(-level / math.log(2.0))
    return max(z * math.sqrt(2.0 * within / samples * inflation / items), lost / items)
