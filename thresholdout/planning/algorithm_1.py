"""Threshold and noise of Algorithm 1 by the posterior route: for dependence that bounds no deviation of a mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from graphs.numerics.rounding import formula_up, shown_above
from thresholdout.certificates.posterior import mean_total_variation, posterior_tolerance, posterior_widths
from thresholdout.certificates.problem import Setting, within_limits
from thresholdout.data.arguments import check_count, check_number
from thresholdout.errors import PlanError
from thresholdout.mechanisms import SparseVectorParameters, noise_slack
from thresholdout.mechanisms.claims.kinds import is_unlimited

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["algorithm_1", "quiet_rise"]

_SMALLEST, _LARGEST = 1e-11, 1e3  # noise scales
_CLOSE: Final = 0.02  # relative step of the noise scale at which the search stops; the tolerance is flat there
_MOST_STEPS: Final = 12  # a bound on the time; every step gives a valid tolerance


def algorithm_1(
    model: DependenceModel,
    *,
    queries: int,
    budget: int,
    confidence: float = 0.95,
    expected: float | None = None,
    quiet_margin: float | None = None,
) -> SparseVectorParameters:
    """Choose threshold and noise of Algorithm 1 for the narrowest answers by the posterior route.

    Notes
    -----
    The threshold is c plus the likely noise of a difference, see `quiet_rise`. The second term of the tolerance is
    nearly a power of the noise scale: the last two evaluations give the exponent, and the optimum of the sum follows.
    Every evaluation is a valid tolerance; the smallest counts.
    """
    search = _Search(model, queries, budget, confidence, quiet_margin)
    try:
        scale = search.anywhere()
    except PlanError:
        if quiet_margin is not None or not search.margin:
            raise
        search = _Search(model, queries, budget, confidence, 0.0)
        scale = search.anywhere()
    if expected is not None:
        scale = search.near(check_number("expected", expected, -math.ulp(0.0), 1.0, "a score in [0, 1]"), scale)
    return search.setting(scale).parameters


def quiet_rise(queries: int, beta: float) -> float:
    """Return the excess of the threshold over the quiet margin, for sigma = 1.

    It is ``2 ln(2m/(3 beta))``: m queries with noise Lap(2) in the test and Lap(1) in the threshold exceed it with
    probability at most beta. PROOFS.md, "The quiet margin".
    """
    return max(0.0, 2.0 * math.log(2.0 * queries / (3.0 * beta)))


class _Search:
    """A search over the noise scale; the scale and the quiet margin determine everything else."""

    def __init__(
        self, model: DependenceModel, queries: int, budget: int, confidence: float, quiet_margin: float | None
    ) -> None:
        self._model, self._confidence = within_limits(model, confidence)
        self._queries = check_count("queries", queries)
        self._budget = min(self._queries, check_count("budget", budget))
        self._beta = 1.0 - self._confidence
        if quiet_margin is None:
            self.margin = self._usual_margin()
        else:
            zero = -math.ulp(0.0)
            below = math.nextafter(1.0, 0.0)
            self.margin = check_number("quiet_margin", quiet_margin, zero, below, "a number in [0, 1)")
        self._rise = quiet_rise(self._queries, self._beta)

    def _usual_margin(self) -> float:
        """Return the radius of m fixed queries, or 0 where it is the whole range."""
        if is_unlimited(self._model):
            return 0.0
        records = self._model.effective_records() or self._model.n / self._model.variance_inflation()
        radius = math.sqrt(math.log(2.0 * self._queries / self._beta) / (2.0 * records))
        return radius if radius < 1.0 else 0.0

    def setting(self, scale: float) -> Setting:
        """Return the setting of a certificate for the guard with this noise scale; its threshold keeps the margin."""
        threshold = formula_up(self.margin + scale * self._rise + noise_slack(self._model.n, scale))
        parameters = SparseVectorParameters(threshold, scale, self._budget, self._queries)
        return Setting(self._model, parameters, self._confidence)

    def anywhere(self) -> float:
        """Return the noise scale with the smallest half-width for answers anywhere."""
        law = self.setting(1.0).law
        unit = law.superquantile(self._beta, self._rise)
        # the minimum of unit s + tanh(eps/4) for independent records, eps = 9 B / (4 n s)
        scale = _clipped(math.sqrt(9.0 * self._budget / (16.0 * self._model.n * unit)))
        best, found = math.inf, scale
        exponent, last = 1.0, (math.nan, math.nan)
        for _ in range(_MOST_STEPS):
            setting = self.setting(scale)
            variation = mean_total_variation(self._model, setting.epsilon)
            tolerance = posterior_tolerance(setting, variation)
            if tolerance < best:
                best, found = tolerance, scale
            here = math.log(scale), math.log(variation)
            if here[0] != last[0] and not math.isnan(last[0]):
                exponent = min(1.5, max(0.25, (last[1] - here[1]) / (here[0] - last[0])))
            last = here
            step = math.log(exponent * variation / (scale * unit)) / (1.0 + exponent)
            if abs(step) < _CLOSE:
                break
            scale = _clipped(scale * math.exp(step))
        if best >= 1.0:
            raise PlanError(
                f"Nothing can be certified about {self._queries} queries, {self._budget} of them answered from the "
                f"holdout, on {self._model.describe()}: the best half-width is {shown_above(best)} of the range. "
                "Take more records, fewer queries=, a smaller budget= or confidence=."
            )
        return found

    def near(self, expected: float, widest: float) -> float:
        """Return the noise scale at which the interval of an answer with a likely value is narrowest."""
        from scipy.optimize import minimize_scalar

        def width(log_scale: float) -> float:
            return posterior_widths(self.setting(_clipped(math.exp(log_scale)))).expected(expected)

        # near the ends of the range the narrowest noise is smaller than the scale for answers anywhere
        limits = math.log(widest / 64.0), math.log(widest * 2.0)
        found = minimize_scalar(width, bounds=limits, method="bounded", options={"xatol": _CLOSE})
        return _clipped(math.exp(float(found.x)))


def _clipped(scale: float) -> float:
    return min(max(scale, _SMALLEST), _LARGEST)
