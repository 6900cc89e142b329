"""Which drop a number of items, samples and checks shows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from thresholdout.errors import InputError
from thresholdout.evaluations.account import Account
from thresholdout.evaluations.scores import Scores

__all__ = ["Variability", "drop_seen", "variability"]

_POWER_QUANTILE: Final = 0.8416212335729143  # of the standard normal law at .8
_WITHIN: Final = 0.09375  # E p (1 - p) for difficulties of Beta(.75, .25), a usual benchmark
_SAME: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Variability:
    """How one run of an item differs from the next.

    Parameters
    ----------
    within : float
        Variance between samples of an item.
    measured : bool
        Whether it comes from a log with repeats.

    Examples
    --------
    >>> Variability(0.09375, False).samples_differ
    True
    """

    within: float
    measured: bool

    @property
    def samples_differ(self) -> bool:
        """Whether more samples of an item tell more; at temperature 0 they do not."""
        return self.within > _SAME


def variability(run: Scores | None = None) -> Variability:
    """Return what a run with repeats says of samples, or what a usual benchmark has.

    Parameters
    ----------
    run : Scores, optional

    Examples
    --------
    >>> variability().within
    0.09375
    """
    if run is None or int((run.samples > 1).sum()) == 0:
        return Variability(_WITHIN, False)
    kept = run.spread[run.samples > 1]
    return Variability(float(kept.mean()), True)


def drop_seen(
    items: int, samples: int = 1, *, checks: int = 1, alarms: int = 0, within: float = _WITHIN, inflation: float = 1.0
) -> float:
    """Return the drop that the last of some checks calls worse with probability .8, about.

    Parameters
    ----------
    items, samples : int
        Number of items, and of independent samples of each.
    checks : int, default=1
        Planned checks; one is a single comparison at .05.
    alarms : int, default=0
        Alarms before, spread evenly.
    within : float
        Variance between samples of an item; 0 at temperature 0, where nothing differs by chance.
    inflation : float, default=1
        Design effect of clusters.

    Returns
    -------
    float
        A fraction, by the normal law: the difference of two runs has twice the variance of one.

    Examples
    --------
    >>> round(drop_seen(3000), 3), round(drop_seen(600, samples=5), 3)  # five samples need a fifth of the items
    (0.02, 0.02)
    """
    for name, value in (("items", items), ("samples", samples), ("checks", checks)):
        if value < 1:
            raise InputError(name, value, "a whole number of at least 1")
    if not 0 <= alarms < checks:
        raise InputError("alarms", alarms, "fewer than the checks")
    from scipy.special import ndtri_exp

    level = math.log(0.05)
    if checks > 1:
        account = Account(checks, checks, False, "year", level)
        at = {round(checks * (k + 1) / (alarms + 1)) for k in range(alarms)}
        for number in range(1, checks):
            account = account.after(number in at)
        level = account.log_level - math.log(2.0)  # two baselines
    z = -float(ndtri_exp(level)) + _POWER_QUANTILE
    lost = math.ceil(-level / math.log(2.0))  # items that have to be lost, where none differs by chance
    return max(z * math.sqrt(2.0 * within / samples * inflation / items), lost / items)
