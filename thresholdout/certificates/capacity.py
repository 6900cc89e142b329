"""How many questions a holdout can answer within a tolerance, by every route for answers that all come from it.

Three views of the same bounds: the number of questions for n and tau, the tolerance for n and k, and the number of
records for k and tau. `best` picks among the sound ones; splitting is one of them where records are declared to be
identically distributed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphs.numerics.bisection import bisect_integers
from thresholdout.certificates.baselines.jung_et_al import posterior_sensitivity_width
from thresholdout.certificates.gaussian.deviations import GaussianWidths
from thresholdout.certificates.gaussian.noise_schedule import is_possible
from thresholdout.certificates.independent_blocks import IndependentBlocks, blocks_of
from thresholdout.certificates.problem import check_confidence, within_limits
from thresholdout.certificates.routes.latent_groups import gaussian_within, tightest_gaussian
from thresholdout.certificates.routes.mutual_information import (
    divergence_width,
    monitor_width,
    published_information_width,
)
from thresholdout.certificates.split_records import bernoulli_holds, splitting_width
from thresholdout.errors import InputError

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["Reach", "best", "fewest_records", "questions_within", "tolerances_for"]

SCHEDULE = "Gaussian, schedule"
ONE_SCALE = "Gaussian, one scale"
SPLITTING = "splitting"
BINARY = "splitting, values 0 or 1"

_MOST_RECORDS = 2**48


@dataclass(frozen=True, slots=True)
class Reach:
    """What one route makes of a holdout whose answers all come from it.

    Attributes
    ----------
    route : str
        Name.
    records, questions : int
        n and k.
    tolerance : float
        tau, at which all k answers hold at once; ``inf`` where there is none.
    sound : bool
        Whether it is proved as used here; printed formulas are for comparison.
    source : str
        Where it comes from.
    why_not : str
        Why it does not apply; empty otherwise.
    widths : GaussianWidths or None
        Noise and half-widths of a Gaussian guard.
    """

    route: str
    records: int
    questions: int
    tolerance: float
    sound: bool
    source: str
    why_not: str = ""
    widths: GaussianWidths | None = None


@dataclass(frozen=True, slots=True)
class _Printed:
    """A route given by a formula for the half-width of k Gaussian answers, N and beta."""

    name: str
    source: str
    sound: bool
    width: Callable[[float, int, float], float]
    unequal: bool = True

    def why_not(self, blocks: IndependentBlocks | None) -> str:
        """Say why the route does not apply to these records; empty when it does."""
        if blocks is None:
            return "the records are neither independent nor in independent groups"
        if not self.unequal and blocks.largest > blocks.inflation * (1.0 + 1e-9):
            return "the groups are of different sizes"
        return ""


def _posterior_sensitivity(effective: float, answers: int, beta: float) -> float:
    return posterior_sensitivity_width(math.floor(effective * (1.0 + 1e-9)), answers, beta)


_PRINTED = (
    _Printed("monitor", "[R20, Theorem 2.1], with the noise for which it holds", True, monitor_width),
    _Printed("mutual information, published", "[XR17]", False, published_information_width),
    _Printed("posterior sensitivity, published", "[J20]", False, _posterior_sensitivity, unequal=False),
    _Printed("mutual information", "PROOFS.md, 'Mutual information'", True, divergence_width),
)
_GAUSSIAN_SOURCE = "PROOFS.md, 'Gaussian answers'"
_SPLITTING_SOURCE = "exact tails for every mean; PROOFS.md, 'Splitting'"
_DEPENDENT = "the records form no independent groups, declared or latent"
_NO_PARTS = "the records are not independent, nor in independent groups of one size"


def questions_within(
    model: DependenceModel, tolerance: float, confidence: float = 0.95, *, binary: bool = False
) -> tuple[Reach, ...]:
    """Count the questions that every route can answer within a tolerance, all from the holdout.

    Parameters
    ----------
    model : graphs.DependenceModel
        How the records depend on each other.
    tolerance : float
        tau, in units of the range, in (0, 1); less what rounding adds.
    confidence : float
        1 - beta.
    binary : bool
        Whether values are in {0, 1}, for the splitting of independent records.

    Returns
    -------
    tuple of Reach
        One for each route; those that do not apply answer no question and say why.

    Examples
    --------
    >>> from graphs import Independent
    >>> reached = questions_within(Independent(10_000), 0.1)
    >>> best(reached).route, best(reached).questions >= 664
    ('Gaussian, schedule', True)
    >>> {reach.route: reach.questions for reach in reached}["splitting"]
    28
    """
    model, confidence = within_limits(model, confidence)
    beta = 1.0 - confidence
    _check_tolerance(tolerance)
    blocks, reached = blocks_of(model), []
    for name, halves in ((SPLITTING, False), (BINARY, True)):
        if halves and not binary:
            continue
        count = _most_parts(model, tolerance, beta, halves)
        possible = _splits(model, 1, 1.0, beta, halves)
        reached.append(_reach(name, model, count, tolerance, _SPLITTING_SOURCE, "" if possible else _NO_PARTS))
    for route in _PRINTED:
        why, count = route.why_not(blocks), 0
        if blocks is not None and not why:
            size = blocks.effective
            count = _most(lambda k, route=route, size=size: route.width(size, k, beta) <= tolerance)  # type: ignore[misc]
        reached.append(_reach(route.name, model, count, tolerance, route.source, why, sound=route.sound))
    for name, constant in ((ONE_SCALE, True), (SCHEDULE, False)):
        widths = gaussian_within(model, tolerance, beta, constant=constant)
        count = widths.schedule.answers if widths else 0
        why = "" if widths or blocks is not None else _DEPENDENT
        reached.append(_reach(name, model, count, tolerance, _GAUSSIAN_SOURCE, why, widths=widths))
    return tuple(reached)


def tolerances_for(
    model: DependenceModel, questions: int, confidence: float = 0.95, *, binary: bool = False
) -> tuple[Reach, ...]:
    """Find the tolerance within which every route answers a number of questions, all from the holdout.

    Parameters
    ----------
    model : graphs.DependenceModel
        How the records depend on each other.
    questions : int
        k, at least 1.
    confidence : float
        1 - beta.
    binary : bool
        Whether values are in {0, 1}, for the splitting of independent records.

    Returns
    -------
    tuple of Reach
        One for each route.

    Examples
    --------
    >>> from graphs import Groups
    >>> pairs = Groups([record // 2 for record in range(20_000)])
    >>> found = best(tolerances_for(pairs, 664))
    >>> found.route, found.tolerance < 0.1
    ('Gaussian, schedule', True)
    """
    model, confidence = within_limits(model, confidence)
    beta = 1.0 - confidence
    if questions < 1:
        raise InputError("questions", questions, "at least 1")
    blocks, reached = blocks_of(model), []
    for name, halves in ((SPLITTING, False), (BINARY, True)):
        if halves and not binary:
            continue
        width = splitting_width(model, questions, beta, binary=halves)
        why = "" if width < math.inf else f"{_NO_PARTS}, or too few"
        reached.append(_reach(name, model, questions, width, _SPLITTING_SOURCE, why))
    for route in _PRINTED:
        why = route.why_not(blocks)
        width = math.inf if blocks is None or why else route.width(blocks.effective, questions, beta)
        reached.append(_reach(route.name, model, questions, width, route.source, why, sound=route.sound))
    for name, constant in ((ONE_SCALE, True), (SCHEDULE, False)):
        widths = tightest_gaussian(model, questions, beta, constant=constant)
        width = widths.tolerance() if widths else math.inf
        why = "" if widths else _DEPENDENT
        reached.append(_reach(name, model, questions, width, _GAUSSIAN_SOURCE, why, widths=widths))
    return tuple(reached)


def fewest_records(
    questions: int,
    tolerance: float,
    confidence: float = 0.95,
    *,
    binary: bool = False,
    identically_distributed: bool = False,
) -> Reach:
    """Find how few independent records are enough for a number of questions and a tolerance.

    Parameters
    ----------
    questions : int
        k, at least 1.
    tolerance : float
        tau, in (0, 1); less what rounding adds.
    confidence : float
        1 - beta.
    binary : bool
        Whether values are in {0, 1}.
    identically_distributed : bool
        As in `best`.

    Returns
    -------
    Reach
        By the sound route that needs the fewest records, up to a part in a thousand.

    Examples
    --------
    >>> found = fewest_records(664, 0.1)
    >>> found.route, found.records < 10_000
    ('Gaussian, schedule', True)
    >>> fewest_records(2, 0.1, identically_distributed=True).route
    'splitting'
    """
    from graphs import Independent

    beta = 1.0 - check_confidence(confidence)
    _check_tolerance(tolerance)
    if questions < 1:
        raise InputError("questions", questions, "at least 1")

    def splits(per_question: int) -> bool:
        return _splits(Independent(per_question * questions), questions, tolerance, beta, binary)

    answered = _fewest(lambda n: is_possible(IndependentBlocks.of_records(n), questions, tolerance, beta))
    if identically_distributed and (split := questions * _fewest(splits)) <= answered:
        return _reach(BINARY if binary else SPLITTING, Independent(split), questions, tolerance, _SPLITTING_SOURCE)
    return _reach(SCHEDULE, Independent(answered), questions, tolerance, _GAUSSIAN_SOURCE)


def best(reached: Iterable[Reach], *, identically_distributed: bool = False) -> Reach:
    """Return the sound one that answers most questions, at equal numbers within the smallest tolerance.

    Parameters
    ----------
    reached : iterable of Reach
        To pick from.
    identically_distributed : bool
        Whether all records have one law, and each question is the same function of each: splitting counts only then.

    Examples
    --------
    >>> from graphs import Independent
    >>> reached = questions_within(Independent(1_000), 0.1)
    >>> best(reached).route, best(reached, identically_distributed=True).route
    ('Gaussian, one scale', 'splitting')
    """
    picked = [one for one in reached if one.sound and (identically_distributed or one.route not in (SPLITTING, BINARY))]
    return max(picked, key=lambda one: (one.questions, -one.tolerance))


def _reach(
    name: str,
    model: DependenceModel,
    questions: int,
    tolerance: float,
    source: str,
    why_not: str = "",
    *,
    sound: bool = True,
    widths: GaussianWidths | None = None,
) -> Reach:
    return Reach(name, model.n, questions, tolerance, sound, source, why_not, widths)


def _splits(model: DependenceModel, questions: int, tolerance: float, beta: float, binary: bool) -> bool:
    """Whether one part for each question is enough for tau, with exact tails up to a relative 1e-9 of tau."""
    from graphs import Independent

    if binary and isinstance(model, Independent):
        part = model.n // questions
        return part > 0 and bernoulli_holds(part, tolerance, beta / questions)
    return splitting_width(model, questions, beta, binary=binary) <= tolerance


def _most_parts(model: DependenceModel, tolerance: float, beta: float, binary: bool) -> int:
    """Return the largest number of parts, trying some beyond the first that fails: exact tails jump."""
    count = _most(lambda k: _splits(model, k, tolerance, beta, binary))
    return max((k for k in range(count + 1, count + 9) if _splits(model, k, tolerance, beta, binary)), default=count)


def _most(holds: Callable[[int], bool]) -> int:
    """Return the largest k for which it holds, if it holds for all below."""
    if not holds(1):
        return 0
    low, high = 1, 2
    while holds(high):
        low, high = high, 2 * high
    return bisect_integers(holds, high, low)


def _fewest(holds: Callable[[int], bool]) -> int:
    """Return the smallest n for which it holds, if it holds for all above."""
    low, high = 0, 1
    while not holds(high):
        low, high = high, 2 * high
        if high > _MOST_RECORDS:
            raise InputError("tolerance", "out of reach", f"one that {_MOST_RECORDS} records can keep")
    return bisect_integers(holds, low, high)


def _check_tolerance(tolerance: float) -> None:
    if not 0.0 < tolerance < 1.0:
        raise InputError("tolerance", tolerance, "a number in (0, 1)")
