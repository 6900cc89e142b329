"""From an epsilon to noise: the budget of one record where others depend on it, and Algorithm 1 for that budget."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, Never

from graphs.errors import RouteUnavailable
from graphs.numerics.bisection import bisect, within
from graphs.numerics.rounding import formula_up, shown_above
from thresholdout.certificates.posterior import mean_total_variation, posterior_tolerance
from thresholdout.certificates.problem import LargestError, Setting, leakage
from thresholdout.certificates.transcript import fixed_limits, transcript
from thresholdout.errors import InputError, MechanismWarning, PlanError, outside
from thresholdout.mechanisms import ClaimsMechanism, NoiseRatios, SparseVectorParameters, interaction_epsilon
from thresholdout.mechanisms.sparse_vector import ZHAO_RATIOS, noise_slack
from thresholdout.planning.declaration import BudgetMethod, SparseVectorBudget

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.mechanisms import ClaimsParameters

__all__ = ["HIDDEN", "QUERIES", "Choice", "check_hidden", "for_budget", "record_budget"]

QUERIES: Final = 100
"""Queries of Algorithm 1 for a budget where no number is declared."""

HIDDEN: Final = 0.5
"""Half-width from which on an interval can be the whole range."""

_ROUTES: Final[dict[str, str]] = {"spectral": "spectral-published"}

# Candidates of the search; each is valid, and the one with the narrowest certificate is taken.
_TESTS: Final = (1.0, 1.2, 1.5, 2.0)  # noise of a comparison over that of the threshold
_ANSWERS: Final = (1.5, 2.0, 2.5, 3.0, 4.0)  # of an answer
_INTERVALS: Final = (10, 16, 25, 40, 63, 100, 250, 1000)  # of the answer grid; 25 in the first round
_FIRST: Final = 25  # of the answer grid, while the noises are chosen

_LARGEST_SCALE: Final = 1e3  # of noise, in units of the range: it hides every answer long before
_MOST: Final = 50.0  # nats per record: noise is negligible there
_FINE: Final = 0.02  # relative width of the bracket around the smallest epsilon


@lru_cache(maxsize=2)  # a plan compares several ways, and a guard takes one of them afterwards
def record_budget(model: DependenceModel, epsilon: float, method: BudgetMethod = "best") -> float:
    """Return the largest epsilon under replacing one record that stays within `epsilon` for all its dependants.

    [Z17, Lemma 4] is not proved here. "spectral" takes the smaller of its budget and the best proved one, so it is
    valid whether the lemma is or not.
    """
    from graphs import Independent

    if isinstance(model, Independent):
        return epsilon
    best = partial(model.budget, epsilon)
    try:
        found = best(_ROUTES.get(method, method))
    except RouteUnavailable as error:
        others = ", ".join(map(repr, _applicable(model, epsilon)))
        seen = f"{method!r} for {model.describe()}: {error.reason}"
        raise InputError("method", seen, f"one of {others}") from None
    return min(found, best()) if method in _ROUTES else found


def _applicable(model: DependenceModel, epsilon: float) -> list[str]:
    """Return the methods that apply to a model."""
    found = ["best"]
    for name in ("group", "quilt", "spectral", "messages"):
        try:
            model.budget(epsilon, _ROUTES.get(name, name))
        except RouteUnavailable:
            continue
        found.append(name)
    return found


def for_budget(
    model: DependenceModel, wanted: SparseVectorBudget, *, queries: int | None, confidence: float
) -> SparseVectorParameters:
    """Choose noise and threshold of Algorithm 1 for a privacy budget.

    The noise scale is the smallest within the budget for given ratios of the three noises. Ratios and answer grid are
    those of a few candidates with the smallest certified half-width; every candidate is valid.
    """
    if None not in (queries, wanted.queries) and queries != wanted.queries:
        raise InputError("queries", queries, f"{wanted.queries}, as in for_budget(queries={wanted.queries})")
    asked = queries or wanted.queries or QUERIES
    per_record = record_budget(model, wanted.epsilon, wanted.method)
    if wanted.setting == "published":
        return _published(model, wanted, per_record, asked, confidence)
    choice = Choice(model, wanted, asked, confidence)
    found, width = choice.best(per_record)
    if width >= HIDDEN or found is None:
        _refuse(
            choice.narrowest,
            model,
            per_record,
            wanted,
            f"{asked:,} queries, {wanted.answers:,} of them answered from the holdout",
            "fewer queries=, fewer answers=",
        )
    return found


class Choice:
    """Algorithm 1 for a model, numbers of queries and answers and a confidence, as a function of the budget."""

    def __init__(self, model: DependenceModel, wanted: SparseVectorBudget, queries: int, confidence: float) -> None:
        self._model, self._margin = model, wanted.quiet_margin
        self._queries, self._answers = queries, min(queries, wanted.answers)
        self._confidence, self._limits = confidence, fixed_limits(model)

    def best(self, per_record: float) -> tuple[SparseVectorParameters | None, float]:
        """Return the parameters with the narrowest certificate within a budget for one record, and their half-width."""
        variation = mean_total_variation(self._model, per_record)
        tried = partial(self._tried, per_record, variation)
        found = min((tried(a, b, _FIRST) for a in _TESTS for b in _ANSWERS), key=lambda pair: pair[0])
        if found[1] is not None:
            _, tests, noise = found[1].ratios
            found = min((tried(tests, noise, k) for k in _INTERVALS), key=lambda pair: pair[0])
        return found[1], found[0]

    def narrowest(self, per_record: float) -> float:
        """Return nearly the half-width of `best`, never less, without a search."""
        variation = mean_total_variation(self._model, per_record)
        return min(self._tried(per_record, variation, 1.2, 2.0, intervals)[0] for intervals in (10, _FIRST))

    def _tried(
        self, per_record: float, variation: float, tests: float, noise: float, intervals: int
    ) -> tuple[float, SparseVectorParameters | None]:
        ratios = NoiseRatios(1.0, tests, noise)
        scale = _scale(self._model.n, per_record, self._answers, ratios)
        if scale is None:
            return 1.0, None
        rise = LargestError(1, ratios).surprise_quantile((1.0 - self._confidence) / self._queries)
        threshold = formula_up(self._margin + scale * rise + noise_slack(self._model.n, scale))
        parameters = SparseVectorParameters(threshold, scale, self._answers, self._queries, 1.0 / intervals, ratios)
        setting = Setting(self._model, parameters, self._confidence)
        tolerance = min(posterior_tolerance(setting, variation), transcript(setting, self._limits).tolerance)
        return min(1.0, tolerance), parameters


def _scale(n: int, epsilon: float, answers: int, ratios: NoiseRatios) -> float | None:
    """Return a noise scale whose interaction is within epsilon, hardly larger than needed; ``None`` beyond the range.

    Whole grid steps add a nearly proportional excess to the formula's epsilon, so a few steps of the loop settle it.
    """
    first, second, third = ratios
    scale = answers * (1.0 / first + 2.0 / second + 1.0 / third) / (n * epsilon)
    while scale <= _LARGEST_SCALE:
        cost = interaction_epsilon(n, max(scale, 1e-12), answers, ratios)
        if cost <= epsilon:
            return max(scale, 1e-12)
        scale *= cost / epsilon * (1.0 + 1e-12)
    return None


def _published(
    model: DependenceModel, wanted: SparseVectorBudget, per_record: float, queries: int, confidence: float
) -> SparseVectorParameters:
    """Return the setting of [Z17, Theorem 2] with c = 1/2, read from the noise scale, and warn of its certificate."""
    answers = min(queries, wanted.answers)
    scale = _scale(model.n, per_record, answers, ZHAO_RATIOS)
    if scale is None:
        seen = f"{wanted.epsilon:g}, whose noise would be larger than {_LARGEST_SCALE:g} times the range"
        raise InputError("epsilon", seen, "larger for these records", "Or take more records.")
    # sigma = (1-c) tau/(12 ln(4m/beta)), so tau = 24 sigma ln(4m/beta), and T = (1+c) tau/2
    tolerance = 24.0 * scale * math.log(4.0 * queries / (1.0 - confidence))
    parameters = SparseVectorParameters(0.75 * tolerance, scale, answers, queries)
    setting = Setting(model, parameters, confidence)
    proved = posterior_tolerance(setting, mean_total_variation(model, setting.epsilon))
    certifies = "nothing" if proved >= HIDDEN else f"± {shown_above(proved, 2)}"
    ours, width = Choice(model, wanted, queries, confidence).best(per_record)
    instead = f"± {shown_above(width, 2)}" if ours is not None and width < HIDDEN else "nothing either"
    warnings.warn(
        f"The published setting ([Z17, Theorem 2] with c = 1/2: threshold {shown_above(parameters.threshold, 3)} and "
        f"noise scale {shown_above(scale, 3)} of the range) certifies {certifies} for {model.describe()}; "
        f"setting='certified' certifies {instead} with the same epsilon.",
        MechanismWarning,
        stacklevel=outside(),
    )
    return parameters


def check_hidden(parameters: ClaimsParameters, model: DependenceModel, epsilon: float) -> None:
    """Refuse private claims whose noise hides everything."""

    def width(budget: float) -> float:
        try:
            mechanism = ClaimsMechanism(dataclasses.replace(parameters, epsilon=budget), model.n)
            return mechanism.first_half_width(_SCORE)
        except InputError:  # noise beyond the range
            return 1.0

    assert parameters.epsilon is not None
    if width(parameters.epsilon) >= HIDDEN:
        asked = f"{parameters.queries or 'any number of'} queries"
        _refuse(width, model, parameters.epsilon, SparseVectorBudget(epsilon), asked, "fewer holdout_answers=")


_SCORE: Final = 0.5
"""The score with the widest intervals."""


def _refuse(
    width: Callable[[float], float],
    model: DependenceModel,
    per_record: float,
    wanted: SparseVectorBudget,
    asked: str,
    instead: str,
) -> Never:
    """Refuse an epsilon that hides everything, and name one that does not; `width` is a function of its budget."""
    high = per_record
    start = f"An epsilon of {wanted.epsilon:g} hides everything about {asked}, on {model.describe()}"
    while width(high) >= HIDDEN:
        if high >= _MOST:
            raise PlanError(f"{start}, and so does every other one. Take more records, or {instead}.")
        high = min(2.0 * high, _MOST)
    least = bisect(lambda budget: width(budget) < HIDDEN, high / 2.0, high, close=within(_FINE), geometric=True)
    enough = float(leakage(model, least, "informed", _ROUTES.get(wanted.method, wanted.method)).max())
    raise PlanError(
        f"{start}: it leaves {shown_above(per_record, 3)} for a record. The smallest epsilon that does not is about "
        f"{shown_above(enough, 2)}. Or take more records, {instead}."
    )
