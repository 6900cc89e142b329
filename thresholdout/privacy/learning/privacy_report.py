"""The privacy of a learner in numbers and in words, and warnings of fits whose noise hides the signal."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import shown_above
from thresholdout.privacy.accounting.bound_arguments import open_unit
from thresholdout.privacy.accounting.events.event_types import ADJACENCIES, Adjacency, Event, check_adjacency

if TYPE_CHECKING:
    import pandas as pd

    from thresholdout.privacy.accounting.accountants.accountant import Accountant

__all__ = [
    "CLASSES_LEAK",
    "LowSignalWarning",
    "PrivacyReport",
    "account_for",
    "noise_share",
    "proved_epsilon",
    "standing_assumptions",
    "warn_of_noise",
]

FLOATING_POINT = "nobody reads the low bits of the released numbers: the noise is a Gaussian in floating point"
SECRET = "random_state stays secret and served for no other release: it gives the noise away"
CALLS = "a {0} has at most one row in the data of each call, and how many calls there are was not decided on results"
CLASSES_LEAK = "the set of classes, which was taken from the labels; give classes"
_NEIGHBOURS = dict(zip(ADJACENCIES, ("one {0} more or less", "another {0} in one's place"), strict=True))


@dataclass(frozen=True)
class PrivacyReport:
    """Privacy guarantee of everything that a private learner has released.

    Fitted learners keep it as `privacy_report_`. Print it for the guarantee, its assumptions and its gaps in plain
    sentences.

    Attributes
    ----------
    epsilon : float
        Epsilon of the guarantee, ``inf`` if there is no guarantee.
    delta : float
        Delta of the guarantee.
    adjacency : {"replace_one", "add_remove"}
        Whether the guarantee is about one replaced unit, or about one unit more or less.
    event : Event or None
        The released mechanism. Pass it to an accountant or to ``guard.releases.record`` to add up several releases.
        None if nothing private was done.
    accountant : str
        Name of the accountant that found the epsilon.
    noise_multiplier : float
        Noise multiplier of each step, in the unit that the learner documents. The smallest one if steps differ.
    released : str
        Outputs that the guarantee covers.
    assumptions : tuple of str
        Conditions under which the guarantee holds.
    leaks : tuple of str
        Facts that the learner took from the data outside the guarantee.
    details : mapping
        Further numbers that depend on the learner, by name.
    unit : str
        The unit that is protected: a "record", or a "client" with all its records.

    Examples
    --------
    >>> from thresholdout.privacy.accounting import GaussianAnswer
    >>> report = account_for(GaussianAnswer(4.0), delta=1e-6, released="the answer", noise_multiplier=4.0)
    >>> round(report.epsilon, 3), report.private
    (1.061, True)
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    event: Event | None
    accountant: str
    noise_multiplier: float
    released: str
    assumptions: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    unit: str = "record"

    @property
    def private(self) -> bool:
        """Whether there is a finite epsilon and no leak outside the guarantee."""
        return math.isfinite(self.epsilon) and not self.leaks

    def to_series(self) -> pd.Series[Any]:
        """Return the report as a pandas Series, for tables of several fits.

        Returns
        -------
        pandas.Series
            Epsilon, delta and the other attributes except the event, followed by the entries of `details`.
        """
        import pandas as pd

        numbers = ("epsilon", "delta", "adjacency", "unit", "accountant", "noise_multiplier")
        names = (*numbers, "released", "assumptions", "leaks")
        return pd.Series({**{name: getattr(self, name) for name in names}, **self.details}, dtype=object)

    def __str__(self) -> str:
        if not math.isfinite(self.epsilon):
            lines = [f"No privacy: nothing bounds the information about a {self.unit} in {self.released}."]
        else:
            lines = [
                f"({shown_above(self.epsilon, 4)}, {self.delta:g})-differential privacy of {self.released}, "
                f"for neighbours with {_NEIGHBOURS[self.adjacency].format(self.unit)} ({self.accountant} accountant, "
                f"noise multiplier {self.noise_multiplier:.4g})."
            ]
            lines += [f"It holds if {assumption}." for assumption in self.assumptions]
        lines += [f"NOT covered: {leak}." for leak in self.leaks]
        return "\n".join(lines)


def standing_assumptions(
    *, seeded: bool, adjacency: Adjacency = "replace_one", unit: str = "record", calls: int = 1
) -> tuple[str, ...]:
    """Return the assumptions that every learner's report makes; a learner adds its own."""
    found = [FLOATING_POINT]
    if check_adjacency(adjacency) == "replace_one":
        found.append(f"the number of {unit}s is public")
    if seeded:
        found.append(SECRET)
    if calls > 1:
        found.append(CALLS.format(unit))
    return tuple(found)


class ProvedEpsilon(NamedTuple):
    """The smallest epsilon of some accountants, the accountant that found it, and its method."""

    epsilon: float
    accountant: str
    how: str


@lru_cache(maxsize=256)
def proved_epsilon(
    event: Event,
    delta: float,
    adjacency: Adjacency = "replace_one",
    makers: tuple[type[Accountant], ...] | None = None,
) -> ProvedEpsilon:
    """Return the smallest epsilon of all or some accountants; cached, as audits fit the same settings very often."""
    from thresholdout.privacy.accounting.accountants.calibration import best_epsilon

    best = best_epsilon(event, delta, adjacency=adjacency, accountants=makers)
    return ProvedEpsilon(best.epsilon, best.accountant, best.how)


def account_for(
    event: Event | None,
    *,
    delta: float,
    released: str,
    noise_multiplier: float,
    adjacency: Adjacency = "replace_one",
    assumptions: tuple[str, ...] = (FLOATING_POINT,),
    leaks: tuple[str, ...] = (),
    details: Mapping[str, Any] | None = None,
    unit: str = "record",
) -> PrivacyReport:
    """Return the report of an event, at the smallest epsilon of all accountants."""
    delta, adjacency = open_unit(delta, "delta"), check_adjacency(adjacency)
    # Without an event nothing is guaranteed.
    epsilon, accountant = math.inf, "none"
    if event is not None:
        epsilon, accountant, _ = proved_epsilon(event, delta, adjacency)
    more = details or {}
    return PrivacyReport(
        epsilon, delta, adjacency, event, accountant, noise_multiplier, released, assumptions, leaks, more, unit
    )


class LowSignalWarning(UserWarning):
    """Issued when the noise of a private fit is so large that its predictions are likely to be useless.

    Private learners issue it from public or released numbers alone, so that the warning reveals nothing. Use more
    records, a larger epsilon, or fewer features or parameters. Most messages estimate how many records are needed.

    Examples
    --------
    Turn it into an error, so that such a fit does not pass for a good one:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=LowSignalWarning)
    """


def noise_share(noise: NDArray[np.float64], rates: NDArray[np.float64], batch_size: int, parameters: int) -> float:
    """Return how far noise alone moves the parameters of noisy descent, relative to the longest way of its gradients.

    The numerator is the root of the expected square of the noise. The denominator is the way of gradients that all are
    as long as the clipping norm and have one direction: ``sqrt(d sum (rate noise)^2) / (B sum rate)``. Only public
    numbers enter, so a warning leaks nothing.
    """
    moved = float(np.sqrt(parameters * np.square(rates * noise).sum()))
    return moved / (batch_size * float(rates.sum()))


def warn_of_noise(share: float, most: float, advice: str, *, stacklevel: int) -> None:
    """Warn when the noise is more than some share of the largest signal."""
    if share > most:
        message = (
            f"The noise moves the parameters {share:.2g} times as far as gradients that all agree. Above {most:g}, "
            f"fits are useless. About {share / most:.2g} times {advice} or fewer parameters, are needed."
        )
        warnings.warn(message, LowSignalWarning, stacklevel=stacklevel + 1)
