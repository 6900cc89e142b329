"""What a private learner has leaked, in numbers and in words, and warnings of fits that are worth nothing."""

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

FLOATING_POINT = "nobody reads the low bits of what is released: the noise is a Gaussian in floating point"
SECRET = "random_state stays secret and served for no other release: it gives the noise away"
CALLS = "a {0} has at most one row in the data of each call, and how many calls there are was not decided on results"
CLASSES_LEAK = "the set of classes, which was taken from the labels; give classes"
_NEIGHBOURS = dict(zip(ADJACENCIES, ("one {0} more or less", "another {0} in one's place"), strict=True))


@dataclass(frozen=True)
class PrivacyReport:
    """What a learner has leaked about its records.

    Attributes
    ----------
    epsilon, delta : float
        The guarantee, of everything released so far; epsilon is ``inf`` where there is none.
    adjacency : {"replace_one", "add_remove"}
        What a neighbour is.
    event : Event or None
        What was done, for an accountant, or for ``guard.releases.record``; None where nothing private was done.
    accountant : str
        Which one found the epsilon.
    noise_multiplier : float
        Of each step; what it is a multiple of is the learner's to say.
    released : str
        What the guarantee covers.
    assumptions : tuple of str
        Under which it holds.
    leaks : tuple of str
        What the learner has taken from the data outside the guarantee.
    details : mapping
        More numbers of the learner.
    unit : str
        Whose data neighbours differ in: a record's, or a client's with all its records.

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
        """Whether there is a guarantee, with nothing outside it."""
        return math.isfinite(self.epsilon) and not self.leaks

    def to_series(self) -> pd.Series[Any]:
        """Return all numbers and words as a pandas Series."""
        import pandas as pd

        numbers = ("epsilon", "delta", "adjacency", "unit", "accountant", "noise_multiplier")
        names = (*numbers, "released", "assumptions", "leaks")
        return pd.Series({**{name: getattr(self, name) for name in names}, **self.details}, dtype=object)

    def __str__(self) -> str:
        if not math.isfinite(self.epsilon):
            lines = [f"No privacy: there is no bound on what can be learned about a {self.unit} from {self.released}."]
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
    """Return under which assumptions the report of any learner here holds; its own ones come after them.

    Examples
    --------
    >>> for assumption in standing_assumptions(seeded=True):
    ...     print(assumption)
    nobody reads the low bits of what is released: the noise is a Gaussian in floating point
    the number of records is public
    random_state stays secret and served for no other release: it gives the noise away
    """
    found = [FLOATING_POINT]
    if check_adjacency(adjacency) == "replace_one":
        found.append(f"the number of {unit}s is public")
    if seeded:
        found.append(SECRET)
    if calls > 1:
        found.append(CALLS.format(unit))
    return tuple(found)


class ProvedEpsilon(NamedTuple):
    """The smallest epsilon of some accountants, which one found it, and how."""

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
    """Return the smallest epsilon of all accountants, or of some; kept, as audits fit the same thousands of times.

    Examples
    --------
    >>> from thresholdout.privacy.accounting import GaussianAnswer
    >>> proved_epsilon(GaussianAnswer(4.0), 1e-6)
    ProvedEpsilon(epsilon=1.0607..., accountant='distribution', how='privacy-loss distributions of dominating pairs')
    """
    from thresholdout.privacy.accounting.accountants.calibration import best_epsilon

    best = best_epsilon(event, delta, adjacency=adjacency, accountants=makers)
    how = best.table.loc[best.table["epsilon"] == best.epsilon, "how"]
    return ProvedEpsilon(best.epsilon, best.accountant, str(how.iloc[0]) if len(how) else "nothing is known")


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
    """Return the report of what was done, at the smallest epsilon of all accountants."""
    delta, adjacency = open_unit(delta, "delta"), check_adjacency(adjacency)
    epsilon, accountant = math.inf, "none"
    if event is not None:
        epsilon, accountant, _ = proved_epsilon(event, delta, adjacency)
    more = details or {}
    return PrivacyReport(
        epsilon, delta, adjacency, event, accountant, noise_multiplier, released, assumptions, leaks, more, unit
    )


class LowSignalWarning(UserWarning):
    """The noise is so large beside what can be learned that the fit is likely to be worth nothing.

    Examples
    --------
    As an error, so that such a fit is not taken for a good one:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=LowSignalWarning)
    """


def noise_share(noise: NDArray[np.float64], rates: NDArray[np.float64], batch_size: int, parameters: int) -> float:
    """Return how far noise alone moves the parameters of noisy descent, relative to the longest way of its gradients.

    Notes
    -----
    The root of the expected square of the noise, over the way that gradients take when all of them are as long as the
    clipping norm and have one direction in all steps: ``sqrt(d sum (rate noise)^2) / (B sum rate)``. It is made of
    public numbers, so nothing is leaked by looking at it.

    Examples
    --------
    >>> round(noise_share(np.full(60, 57.8), np.full(60, 2.0), 1000, 650), 2)
    0.19
    """
    moved = float(np.sqrt(parameters * np.square(rates * noise).sum()))
    return moved / (batch_size * float(rates.sum()))


def warn_of_noise(share: float, most: float, advice: str, *, stacklevel: int) -> None:
    """Warn when the noise is more than a share of the most that can be learned.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     warn_of_noise(0.9, 0.3, "as many records, or as large an epsilon,", stacklevel=1)
    >>> print(found[0].message)
    the noise moves the parameters 0.9 times as far as gradients could that all agree, and above 0.3 fits are worth \
nothing: about 3 times as many records, or as large an epsilon, or fewer parameters, are needed
    """
    if share > most:
        message = (
            f"the noise moves the parameters {share:.2g} times as far as gradients could that all agree, and above "
            f"{most:g} fits are worth nothing: about {share / most:.2g} times {advice} or fewer parameters, are needed"
        )
        warnings.warn(message, LowSignalWarning, stacklevel=stacklevel + 1)
