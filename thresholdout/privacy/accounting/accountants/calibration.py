"""The smallest epsilon of all accountants, and the noise that a target requires."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal

from graphs.numerics.rounding import shown_above
from graphs.progress_bar import progress_bar
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.accountants.accountant import Accountant, PureAccountant, Stated
from thresholdout.privacy.accounting.accountants.distribution_accountant import DistributionAccountant
from thresholdout.privacy.accounting.accountants.renyi_accountant import RenyiAccountant
from thresholdout.privacy.accounting.accountants.renyi_conversion import EdgeOrderWarning, NoFiniteOrderWarning
from thresholdout.privacy.accounting.bound_arguments import chosen, count, open_unit, positive, probability
from thresholdout.privacy.accounting.events.composed_events import Composed, SelfComposed, check_event, leaves
from thresholdout.privacy.accounting.events.event_types import Adjacency, Event, check_adjacency
from thresholdout.privacy.accounting.events.learning_steps import (
    PoissonGaussianStep,
    WithoutReplacementGaussianStep,
    WithReplacementGaussianStep,
)
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import batch
from thresholdout.suppressed_warnings import suppress_warnings

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "METHODS",
    "BestEpsilon",
    "Calibration",
    "all_accountants",
    "best_delta",
    "best_epsilon",
    "calibrate",
    "calibrate_sigma",
    "composed_accountants",
    "step_of",
]

Make = Callable[[Adjacency], Accountant]
Method = Literal["best", "rdp", "pld"]

# Accountants of the steps of DP-SGD.
METHODS: dict[str, tuple[type[Accountant], ...]] = {
    "best": (RenyiAccountant, DistributionAccountant),
    "rdp": (RenyiAccountant,),
    "pld": (DistributionAccountant,),
}

# Any accountant's epsilon is a guarantee, so leaving one out is sound. The ratio of two accountants' epsilons changes
# slowly with the noise: one whose epsilon is 1.2 times the best twice, within a factor of 1.5 of the target, is not
# the best there.
_BEHIND, _NEAR, _TRIALS = 1.2, 1.5, 2

# Below this share of the records a sum of losses takes up to ten seconds at the usual accuracy, and a tenth of one at
# the rough one. Epsilon is steep in the noise there, so little accuracy is enough for a close noise.
_TINY, _ROUGH, _USUAL = 1e-3, 1e-2, 1e-5


@dataclass(frozen=True)
class BestEpsilon:
    """The smallest epsilon of several accountants, in nats, and the accountant that found it.

    ``epsilon`` is infinite and ``accountant`` is "none" if no accountant knows all events; ``how`` says how it was
    computed. ``refused`` maps each accountant that does not know some event to the reason.
    """

    epsilon: float
    delta: float
    accountant: str
    how: str
    refused: dict[str, str]
    _composed: tuple[Accountant, ...] = field(compare=False)

    def __float__(self) -> float:
        return self.epsilon

    @cached_property
    def table(self) -> pd.DataFrame:
        """All numbers, as in `Accountant.table`; the bounds from below are computed when it is first used."""
        import pandas as pd

        with suppress_warnings(EdgeOrderWarning, NoFiniteOrderWarning):
            tables = [accountant.table(self.delta) for accountant in self._composed]
        columns = ["accountant", "adjacency", "delta", "epsilon", "bound", "how"]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)

    def __repr__(self) -> str:
        return f"<epsilon {shown_above(self.epsilon, 6)} at delta {self.delta:g}, by the {self.accountant} accountant>"


def all_accountants() -> tuple[Make, ...]:
    """Return every kind of accountant."""
    return (PureAccountant, RenyiAccountant, DistributionAccountant)


def composed_accountants(
    events: Event | Iterable[Event], adjacency: Adjacency, makers: Iterable[Make]
) -> tuple[list[Accountant], dict[str, str]]:
    """Return the accountants that know some events, with these composed, and why others do not."""
    event = events if isinstance(events, Event) else Composed(events)
    taken, refused = [], {}
    for make in makers:
        accountant = make(adjacency)
        reason = accountant.why_not(event)
        if reason:
            refused[accountant.name] = reason
        else:
            taken.append(accountant.compose(event))
    return taken, refused


def best_epsilon(
    events: Event | Iterable[Event],
    delta: float,
    *,
    adjacency: Adjacency = "replace_one",
    accountants: Iterable[Make] | None = None,
) -> BestEpsilon:
    """Compute the smallest guaranteed epsilon of some events, over all accountants that know them.

    This is the usual way to account for a training or a sequence of releases. `calibrate` solves the reverse problem,
    the noise that a target epsilon requires.

    Parameters
    ----------
    events : Event or iterable of Event
        The releases, such as the ``event`` of a learner's report.
    delta : float
        Delta at which epsilon holds, in [0, 1).
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        The notion of neighbours: one record is replaced by another one, or one record is added or removed.
    accountants : iterable of callable, optional
        The accountants to try: classes such as `RenyiAccountant`, or functions that return an empty accountant for an
        adjacency. If None, all accountants.

    Returns
    -------
    BestEpsilon
        Object with ``epsilon``, in nats, and the name of the ``accountant`` that found it. ``epsilon`` is a guarantee,
        because the epsilon of each accountant is one for the same mechanism. It is infinite if no accountant knows all
        events. ``how`` says how it was computed, ``table`` has the numbers of all accountants, and ``refused`` maps
        each accountant that does not know some event to the reason.

    Raises
    ------
    InputError, InputTypeError
        If an argument is out of range, or an entry of `events` is not an event.

    Examples
    --------
    >>> from thresholdout.privacy.accounting.events.event_types import BlackBox
    >>> best_epsilon(SelfComposed(BlackBox(0.1), 3), 1e-9)
    <epsilon 0.3 at delta 1e-09, by the distribution accountant>
    """
    delta, adjacency = probability(delta, "delta"), check_adjacency(adjacency)
    taken, refused = composed_accountants(events, adjacency, all_accountants() if accountants is None else accountants)
    with suppress_warnings(EdgeOrderWarning, NoFiniteOrderWarning):
        found = [(accountant.epsilon_guarantee(delta), accountant.name) for accountant in taken]
    nothing = Stated(math.inf, "upper", "nothing is known"), ""
    best, name = min(found, key=lambda one: one[0].value, default=nothing)
    accountant = name if best.value < math.inf else "none"
    return BestEpsilon(best.value, delta, accountant, best.how, refused, tuple(taken))


def best_delta(
    events: Event | Iterable[Event],
    epsilon: float,
    *,
    adjacency: Adjacency = "replace_one",
    accountants: Iterable[Make] | None = None,
) -> float:
    """Return the smallest guaranteed delta of all accountants that know the events, or 1."""
    adjacency = check_adjacency(adjacency)
    taken, _ = composed_accountants(events, adjacency, all_accountants() if accountants is None else accountants)
    with suppress_warnings(EdgeOrderWarning, NoFiniteOrderWarning):
        return min((accountant.delta(epsilon) for accountant in taken), default=1.0)


def _epsilons(taken: Iterable[Accountant], delta: float) -> dict[str, float]:
    with suppress_warnings(EdgeOrderWarning, NoFiniteOrderWarning):
        return {accountant.name: accountant.epsilon(delta) for accountant in taken}


@dataclass(frozen=True)
class Calibration:
    """A parameter that meets a target, the event that it makes, and the cost of that event."""

    value: float
    event: Event
    epsilon: float
    delta: float

    def __float__(self) -> float:
        return self.value


def calibrate(
    make_event: Callable[[float], Event],
    target_epsilon: float,
    delta: float,
    *,
    adjacency: Adjacency = "replace_one",
    accountants: Iterable[Make] | None = None,
    bracket: tuple[float, float] = (0.01, 100.0),
    limits: tuple[float, float] = (0.01, 1e8),
    tolerance: float = 1e-6,
    progress: bool = False,
) -> Calibration:
    """Find the smallest parameter, such as the scale of the noise, at which an event meets a target epsilon.

    Use it to calibrate the noise of any release. `calibrate_sigma` is a shortcut for the steps of DP-SGD.

    Parameters
    ----------
    make_event : callable
        ``make_event(value)`` returns an event for a value of the parameter. The cost of the event must fall as the
        parameter grows.
    target_epsilon : float
        Largest allowed epsilon in nats, above 0.
    delta : float
        Delta at which epsilon holds, in [0, 1).
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        The notion of neighbours: one record is replaced by another one, or one record is added or removed.
    accountants : iterable of callable, optional
        The accountants to try, such as the class `RenyiAccountant`, see `best_epsilon`. If None, all accountants.
    bracket : tuple of float, default (0.01, 100.0)
        Smaller and larger end of the interval in which the search starts. It is widened as needed.
    limits : tuple of float, default (0.01, 1e8)
        Smallest and largest allowed value of the parameter.
    tolerance : float, default 1e-6
        Largest relative distance of the result from the smallest possible parameter, in [1e-12, 1).
    progress : bool, default False
        Whether to show a progress bar after two seconds.

    Returns
    -------
    Calibration
        Object with ``value``, the parameter; ``event``, the event that it makes; and ``epsilon`` and ``delta``, the
        cost of that event. The accountants were applied to this event itself, so ``epsilon`` is at most the target even
        if the cost does not fall with the parameter.

    Raises
    ------
    InputError
        If no parameter within the limits meets the target, or an argument is out of range.
    InputTypeError
        If `make_event` is not callable or does not return an event, or an argument has the wrong type.

    Examples
    --------
    >>> from thresholdout.privacy.accounting.events.event_types import LaplaceAnswer
    >>> found = calibrate(lambda scale: SelfComposed(LaplaceAnswer(scale), 2), 1.0, 0.0)
    >>> round(found.value, 4), found.epsilon <= 1.0
    (2.0, True)
    """
    _check_function(make_event)
    target, delta = positive(target_epsilon, "target_epsilon"), probability(delta, "delta")
    adjacency, tolerance = check_adjacency(adjacency), open_unit(tolerance, "tolerance")
    if tolerance < 1e-12:
        raise InputError("tolerance", repr(tolerance), "at least 1e-12")
    least, most = _pair(limits, "limits")
    low, high = (min(max(end, least), most) for end in _pair(bracket, "bracket"))
    if not least < most or not low <= high:
        expected = "a smaller and a larger number, as limits must be"
        raise InputError("bracket", f"{bracket} within {limits}", expected)
    makers = tuple(all_accountants() if accountants is None else accountants)

    with progress_bar(doing="finding the noise", unit="tries", show=progress) as bar:
        behind: dict[str, int] = {}

        def cost(value: float, accuracy: float | None = None) -> float:
            """Return the smallest epsilon; an accountant that was far behind twice near the target is left out."""
            asked = makers if accuracy is None else [_rough(make, accuracy) for make in makers]
            accountants = composed_accountants(_made(make_event, value), adjacency, asked)[0]
            found = _epsilons((each for each in accountants if behind.get(each.name, 0) < _TRIALS), delta)
            best = min(found.values(), default=math.inf)
            if target / _NEAR <= best <= target * _NEAR:
                behind.update({name: behind.get(name, 0) + 1 for name, each in found.items() if each > _BEHIND * best})
            bar.update()
            return best

        final: Callable[[float], float] = cost
        # Costs mostly fall at least like 1 / parameter, and small parameters take long to account for.
        steep, much = 1.0, 0.95
        if _tiny_batches(_made(make_event, high)):
            rough = partial(cost, accuracy=_ROUGH)
            ends, costs = _bracketed(rough, target, (low, high), (least, most), (steep, much))
            (low, high), costs = _narrowed(rough, target, ends, costs, max(_ROUGH, tolerance))
            steep = math.log(costs[0] / costs[1]) / math.log(high / low) if 0 < costs[1] < costs[0] < math.inf else 1.0
            # Epsilon falls `steep` times as fast as the noise grows; half of the tolerance is left to the search.
            final = partial(cost, accuracy=min(max(0.5 * tolerance * steep, _USUAL), _ROUGH))
            steep, much = max(steep, 1.0), 1 - 0.4 * tolerance
        ends, costs = _bracketed(final, target, (low, high), (least, most), (steep, much))
        (_, high), (_, epsilon) = _narrowed(final, target, ends, costs, tolerance)
    return Calibration(high, _made(make_event, high), epsilon, delta)


def _tiny_batches(event: Event) -> bool:
    """Return whether a step's batch is so small a share of the records that summing its losses closely is slow."""
    for leaf, _ in leaves(event):
        if isinstance(leaf, (WithoutReplacementGaussianStep, WithReplacementGaussianStep)):
            share = leaf.batch_size / leaf.records
        else:
            share = leaf.rate if isinstance(leaf, PoissonGaussianStep) else 1.0
        if share < _TINY:
            return True
    return False


def _rough(make: Make, accuracy: float) -> Make:
    """Return a maker of the same accountant at an accuracy, if it has one: its bounds are guarantees at any."""
    return partial(make, accuracy=accuracy) if make is DistributionAccountant else make


def _bracketed(
    cost: Callable[[float], float],
    target: float,
    ends: tuple[float, float],
    limits: tuple[float, float],
    smaller: tuple[float, float],
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return a parameter that does not meet a target, if there is one, and one that does, and their costs.

    `smaller` holds about the exponent at which epsilon falls with the parameter, and a factor below 1 for the next
    parameter.
    """
    steep, much = smaller
    (low, high), (least, most), above = ends, limits, math.inf
    while (epsilon := cost(high)) > target:
        if high >= most:
            seen = f"{target:g}, while {high:g} costs {epsilon:g}"
            raise InputError("target_epsilon", seen, "a target that a parameter within the limits meets")
        low, high, above = high, min(most, 10 * high), epsilon
    while above == math.inf and high > least:
        guess = max(least, high * max(0.1, much * (epsilon / target) ** (1 / steep)))
        if (found := cost(guess)) > target:
            low, above = guess, found
        else:
            low, high, epsilon = guess, guess, found
    return (min(low, high), high), (above, epsilon)


def _check_function(make_event: object) -> None:
    """Check that an event's maker is callable."""
    if not callable(make_event):
        expected = "a function of the parameter, such as lambda noise: GaussianAnswer(noise)"
        raise InputTypeError("make_event", f"a {type(make_event).__name__}", expected)


def _pair(ends: object, name: str) -> tuple[float, float]:
    """Check a pair of numbers above 0."""
    if not isinstance(ends, (list, tuple)) or len(ends) != 2:
        raise InputTypeError(name, repr(ends), "a pair of numbers above 0")
    return positive(ends[0], name), positive(ends[1], name)


def _made(make_event: Callable[[float], object], value: float) -> Event:
    """Return the event that a function makes of a parameter."""
    made = make_event(value)
    if not isinstance(made, (Event, list, tuple)):
        seen = f"one whose result for the parameter {value:g} is of type {type(made).__name__}"
        raise InputTypeError("make_event", seen, "a function that returns an event")
    return check_event(made)


def _narrowed(
    cost: Callable[[float], float],
    target: float,
    ends: tuple[float, float],
    costs: tuple[float, float],
    tolerance: float,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return parameters close together, of which the larger one meets a target, and their costs: secants in logs."""
    (low, high), (above, below) = ends, costs
    side, trial = 1.0, 0
    while high > low * (1 + tolerance):
        middle = math.sqrt(low * high)  # every fourth trial halves, where secants converge from one side only
        if trial % 4 != 3 and below > 0 and above < math.inf:
            start, end = math.log(above / target), math.log(below / target)
            root = math.log(low) + math.log(high / low) * start / (start - end)
            # Aim a little to the side of the end that has not moved, so that both ends come close.
            nearer = math.exp(root + side * 0.4 * tolerance)
            middle = nearer if low < nearer < high else middle
        if not low < middle < high:
            break
        if (found := cost(middle)) <= target:
            high, below, side = middle, found, -1.0
        else:
            low, above, side = middle, found, 1.0
        trial += 1
    return (low, high), (above, below)


def step_of(sampling: str, sigma: float, batch_size: int, dataset_size: int) -> Event:
    """Return the step of DP-SGD on a batch of a sampling scheme: "wor", "wr" or "poisson"."""
    size, records = batch(batch_size, dataset_size)
    scheme = chosen(sampling, "sampling", ("wor", "wr", "poisson"))
    if scheme == "poisson":
        nearest = size / records  # rounded up below if the division has rounded it down
        whole, parts = nearest.as_integer_ratio()
        return PoissonGaussianStep(sigma, nearest if whole * records >= size * parts else math.nextafter(nearest, 1.0))
    kind = WithoutReplacementGaussianStep if scheme == "wor" else WithReplacementGaussianStep
    return kind(sigma, size, records)


def calibrate_sigma(
    target_eps: float,
    delta: float,
    steps: int,
    *,
    batch_size: int,
    dataset_size: int,
    sampling: str = "wor",
    adjacency: Adjacency = "replace_one",
    method: Method = "best",
    tolerance: float = 1e-4,
) -> float:
    """Find the smallest noise multiplier at which a training with DP-SGD meets a target epsilon.

    All steps use the same batch size and noise. `calibrate` does the same for any other event.

    Parameters
    ----------
    target_eps : float
        Largest allowed epsilon in nats, above 0.
    delta : float
        Delta at which epsilon holds, in (0, 1).
    steps : int
        Number of steps of the training.
    batch_size : int
        Number of records in a batch, at least 1. For "poisson", the mean number.
    dataset_size : int
        Number of records of the data set, more than `batch_size`.
    sampling : {"wor", "wr", "poisson"}, default "wor"
        How batches are drawn.

        * "wor": a fresh batch of a fixed size for each step, without replacement.
        * "wr": a fresh batch of a fixed size for each step, with replacement.
        * "poisson": each record enters a batch independently.
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        The notion of neighbours: one record is replaced by another one, or one record is added or removed.
    method : {"best", "rdp", "pld"}, default "best"
        The accountants that compute epsilon.

        * "best": both of the following, whichever is smaller.
        * "rdp": Renyi divergences (`RenyiAccountant`).
        * "pld": privacy-loss distributions (`DistributionAccountant`).
    tolerance : float, default 1e-4
        Largest relative distance of the result from the smallest possible multiplier.

    Returns
    -------
    float
        Noise multiplier, the standard deviation of the noise on the sum of clipped gradients divided by the clipping
        norm. The training costs at most the target at this multiplier.

    Raises
    ------
    InputError
        If no multiplier between 0.01 and 1e8 is enough, or an argument is out of range.

    Examples
    --------
    >>> calibrate_sigma(1.083, 1e-5, 104_000, batch_size=120, dataset_size=50_000, adjacency="add_remove",
    ...                 method="rdp") <= 6.001
    True
    """
    makers, number = METHODS[chosen(method, "method", tuple(METHODS))], count(steps, "steps")
    make = partial(_schedule, number, sampling, batch_size, dataset_size)
    return calibrate(
        make,
        target_eps,
        open_unit(delta, "delta"),
        adjacency=adjacency,
        accountants=makers,
        bracket=(0.3, 30.0),
        tolerance=tolerance,
    ).value


def _schedule(steps: int, sampling: str, batch_size: int, dataset_size: int, sigma: float) -> Event:
    return SelfComposed(step_of(sampling, sigma, batch_size, dataset_size), steps)
