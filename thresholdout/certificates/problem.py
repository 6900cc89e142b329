"""The setting of a certificate: a dependence model and a guard's public parameters.

*The law of the largest error* that a guard's noise can cause. With sigma = 1, scales (a, b, c) of the noises in
threshold, test and answer (1, 2, 4 by default), and at most B answers from the holdout, let

* ``G = max of B draws of Lap(a) + Lap(b)``: the excess over the threshold T of the distance of a train answer from the
  holdout mean;
* ``X = max of B draws of abs(Lap(c))``: the error of an answer from the holdout.

The largest error is stochastically at most ``M = max(T + G, X + grid/2)``. The number of queries does not matter: a
train value too far away that does not pass ends the threshold and costs budget. So an analyst who waits for a lucky
draw has B attempts, and not one for each query. PROOFS.md, "The law of the largest error".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.bisection import bisect
from thresholdout.data.arguments import as_float
from thresholdout.errors import InputError, InputTypeError
from thresholdout.mechanisms import (
    NoiseRatios,
    SparseVectorMechanism,
    SparseVectorParameters,
    interaction_epsilon,
    noise_slack,
)

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = [
    "PUBLISHED_RATIOS",
    "LargestError",
    "Setting",
    "answer_tail",
    "bayesian_epsilon",
    "check_confidence",
    "check_model",
    "declared_confidence",
    "surprise_tail",
    "within_limits",
]

Floats = NDArray[np.float64]

PUBLISHED_RATIOS = NoiseRatios()
"""Scales of the noises in [Z17, Algorithm 1]."""

_UP = 1.0 + 1e-12  # covers the rounding of tails and lengths
_STEPS = 1024  # points per unit of scale, for integrals, which are 0.05 % too large at this step


@dataclass(frozen=True, slots=True)
class LargestError:
    """Quantiles of the largest error of a guard with sigma = 1, B answers and scales (a, b, c), rounded up."""

    budget: int
    ratios: NoiseRatios = PUBLISHED_RATIOS

    def surprise_quantile(self, probability: float) -> float:
        """Return a number that G exceeds with at most this probability, at least 0."""
        return _single_surprise(_single(probability, self.budget), self.ratios.threshold, self.ratios.test)

    def answer_quantile(self, probability: float) -> float:
        """Return a number that X exceeds with at most this probability."""
        return -self.ratios.answer * math.log(_single(probability, self.budget)) * _UP

    def quantile(self, probability: float, threshold: float, grid: float = 0.0) -> float:
        """Return a number that M exceeds with at most this probability, ``VaR(M)``."""
        half = probability / 2.0
        high = max(threshold + self.surprise_quantile(half), grid / 2.0 + self.answer_quantile(half))
        low = min(threshold, grid / 2.0)

        def enough(error: float) -> bool:
            return float(self._tail(np.array([error]), threshold, grid)[0]) <= probability

        return bisect(enough, low, high, halvings=80) * _UP

    def superquantile(self, probability: float, threshold: float, grid: float = 0.0) -> float:
        """Return an upper bound on ``CVaR(M)``, the mean of M over its worst cases of this total probability.

        ``CVaR_p(M) = u + E(M - u)^+ / p`` at ``u = VaR_p(M)``, and at most that for every other u. The expectation is
        the integral of the tail beyond u, bounded by the tail at the left end of each of many intervals, and beyond the
        last one by the sum of both tails' integrals.
        """
        scale = max(self.ratios)
        start = self.quantile(probability, threshold, grid)
        reach = scale * (14.0 + math.log(2.0 * self.budget / probability))  # the tail beyond is e^-14 of the rest
        stop = max(threshold, grid / 2.0, start - reach) + reach
        count = max(1, math.ceil((stop - start) * _STEPS / scale))
        points = start + (stop - start) / count * np.arange(count, dtype=np.float64)
        within = float(np.sum(self._tail(points, threshold, grid))) * (stop - start) / count
        beyond = self._beyond(stop, threshold, grid)
        return (start + (within + beyond) * (1.0 + 1e-9) / probability) * _UP

    def _tail(self, errors: Floats, threshold: float, grid: float) -> Floats:
        """Return an upper bound on ``P(M > x)``; 1 below T and grid/2."""
        surprise = surprise_tail(errors - threshold, self.ratios.threshold, self.ratios.test)
        single = answer_tail(errors - grid / 2.0, self.ratios.answer)
        with np.errstate(divide="ignore"):
            inside = self.budget * (np.log1p(-surprise) + np.log1p(-single))
        tail: Floats = np.minimum(1.0, -np.expm1(inside) * _UP)
        return tail

    def _beyond(self, stop: float, threshold: float, grid: float) -> float:
        """Bound the integral of the tail beyond a point by those of the sums of single tails.

        A single tail of G at T + v + s is at most that at T + v times ``exp(-s/w) (1 + s/w)``, w the larger scale.
        """
        scale = max(self.ratios.threshold, self.ratios.test)
        point = np.array([stop])
        surprise = float(surprise_tail(point - threshold, self.ratios.threshold, self.ratios.test)[0])
        single = float(answer_tail(point - grid / 2.0, self.ratios.answer)[0])
        return self.budget * (2.0 * scale * surprise + self.ratios.answer * single)


def surprise_tail(surprises: Floats, first: float, second: float) -> Floats:
    """Return ``P(Lap(a) + Lap(b) > v)`` for v > 0, and 1 for v <= 0.

    It is ``(b^2 exp(-v/b) - a^2 exp(-v/a)) / (2 (b^2 - a^2))``, written for a <= b without cancellation as
    ``exp(-v/b)/2 (1 + (a v/(b (a+b))) (1 - exp(-x))/x)``, ``x = v (b-a)/(a b)``.
    """
    a, b = sorted((first, second))
    v = np.maximum(surprises, 0.0)
    x = v * (b - a) / (a * b)
    slope = np.where(x > 0.0, -np.expm1(-x) / np.maximum(x, 1e-300), 1.0)
    tail: Floats = np.where(surprises > 0.0, 0.5 * np.exp(-v / b) * (1.0 + a * v / (b * (a + b)) * slope), 1.0)
    return tail


def answer_tail(errors: Floats, scale: float) -> Floats:
    """Return ``P(abs(Lap(c)) > x)``, 1 for x <= 0."""
    tail: Floats = np.exp(-np.maximum(errors, 0.0) / scale)
    return tail


def _single(probability: float, count: int) -> float:
    """Return the p at which the largest of count draws exceeds a number that each exceeds with probability p."""
    return -math.expm1(math.log1p(-probability) / count)


@lru_cache(maxsize=4096)
def _single_surprise(probability: float, first: float, second: float) -> float:
    """Invert `surprise_tail` by bisection."""
    scale = max(first, second)
    low, high = 0.0, scale

    def enough(surprise: float) -> bool:
        return float(surprise_tail(np.array([surprise]), first, second)[0]) * _UP <= probability

    while not enough(high):
        low, high = high, 2.0 * high
    return bisect(enough, low, high, halvings=60) * _UP


class Setting:
    """A model, a guard's parameters and a confidence, checked; derived quantities are computed once.

    `slack` is the arithmetic's share of an answer's error. `levels` is K, the number of possible values of an answer
    from the holdout; without an answer grid these are the points of the noise grid in [0, 1].
    """

    def __init__(self, model: DependenceModel, parameters: SparseVectorParameters, confidence: float) -> None:
        self.model = check_model(model)
        self.parameters = parameters
        self.confidence = check_confidence(confidence)
        self.n = model.n
        self.queries, self.budget = parameters.queries, parameters.budget
        if self.queries is not None and self.budget is not None:
            self.budget = min(self.queries, self.budget)
        self.beta = 1.0 - self.confidence
        self.slack = noise_slack(self.n, parameters.noise_scale)
        grid = parameters.levels
        self.levels = round(1.0 / SparseVectorMechanism(parameters).resolution) + 1 if grid is None else grid

    @cached_property
    def inflation(self) -> float:
        """Lambda of the model, from 1 to n; n where nothing is known."""
        return self.model.variance_inflation()

    @cached_property
    def epsilon(self) -> float:
        """Privacy eps' of the whole interaction about one record, nats; ``inf`` without a budget."""
        return interaction_epsilon(self.n, self.parameters.noise_scale, self.budget, self.parameters.ratios)

    @property
    def law(self) -> LargestError:
        """Law of the largest error that the noise causes, for sigma = 1; a budget must be declared."""
        assert self.budget is not None
        return LargestError(self.budget, self.parameters.ratios)

    def undeclared(self) -> str:
        """Return the undeclared limits, in words; empty when both are declared."""
        missing = [name for name in ("queries", "budget") if getattr(self, name) is None]
        return f"no limit is declared for {' and '.join(missing)}" if missing else ""


def leakage(
    model: DependenceModel, epsilon: float, adversary: Literal["informed", "uninformed"], method: str = "best"
) -> NDArray[np.float64]:
    """Return the leakage of an epsilon-DP mechanism; shape (n,), or (1,) when the records are independent."""
    from graphs import Independent

    if isinstance(model, Independent):
        return np.array([epsilon])
    return model.leakage(epsilon, method, adversary)


def bayesian_epsilon(model: DependenceModel, epsilon: float) -> float:
    """Return the largest leakage of an epsilon-DP interaction about a record, to an attacker who knows any others."""
    return epsilon if math.isinf(epsilon) else float(leakage(model, epsilon, "informed").max())


def within_limits(model: DependenceModel, confidence: object) -> tuple[DependenceModel, float]:
    """Charge the limits of a fitted model to the probability of error, before anything else.

    The limits are a function of values that are independent of the records. For any such values, if the limits hold,
    the records' law is one for which the model's numbers are valid, and answers fail with probability at most
    ``beta - fit_failure``: PROOFS.md, "Fitted models".
    """
    stated, failure = check_confidence(confidence), check_model(model).fit_failure
    if not failure:
        return model, stated
    left = math.nextafter(1.0 - stated - failure, -math.inf)
    needed = math.nextafter(1.0 - left, math.inf)
    if not needed < 1.0 or left <= 0.0:
        seen = f"{stated!r} for a model whose limits fail with probability {failure:g}"
        advice = "Or fit the model with a smaller fit_failure=."
        raise InputError("confidence", seen, f"below {1.0 - failure:.6g}", advice)
    return model.within_limits(), needed


def check_model(model: object) -> DependenceModel:
    """Return the model; InputTypeError for anything else."""
    from graphs import DependenceModel

    if not isinstance(model, DependenceModel):
        raise InputTypeError("model", f"a {type(model).__name__}", "a model of graphs, such as Independent(n)")
    return model


def check_confidence(confidence: object) -> float:
    """Return the confidence as a float in (0, 1)."""
    expected = "a probability between 0 and 1"
    value = as_float(confidence)
    if value is None:
        raise InputTypeError("confidence", repr(confidence), expected)
    if not 1e-300 < 1.0 - value < 1.0:  # 1 - confidence has to be a positive float
        raise InputError("confidence", confidence, expected)
    return value


def declared_confidence(confidence: object) -> float:
    """Return the confidence that a user declares, in [0.5, 1): a smaller one is an error probability, by mistake."""
    value = check_confidence(confidence)
    if value < 0.5:
        advice = f"Did you mean {1.0 - value:.4g}?"
        raise InputError("confidence", confidence, "a probability of at least 0.5, and below 1", advice)
    return value
