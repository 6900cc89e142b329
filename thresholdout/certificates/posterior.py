"""The posterior certificate: any dependence, no concentration inequality.

Any quantity in [0, 1] that depends on record i: the log-odds of the analyst's expectation of it are within alpha_i of
those of its estimand, alpha_i the leakage about record i. So means near 0 or 1 move by less than means near 1/2. Proof:
PROOFS.md, "Posterior certificate". Beside other private releases, with a delta too: accounting/RELEASES.md, L1 and L6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.bisection import bracket
from graphs.numerics.rounding import ULP, formula_up
from thresholdout.certificates.problem import Setting, leakage
from thresholdout.certificates.route import Route, larger_side
from thresholdout.suppressed_warnings import suppress_warnings

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.privacy.accounting.accountants.accountant import Accountant
    from thresholdout.privacy.accounting.events.event_types import Event

__all__ = [
    "LogOdds",
    "PosteriorWidths",
    "beside_pure_releases",
    "beside_releases_with_a_delta",
    "groups_leakage",
    "mean_total_variation",
    "posterior",
    "posterior_tolerance",
    "posterior_widths",
]

Floats = NDArray[np.float64]

_CLASSES = 512  # of leakage, where there are more different ones: each counts as its largest
_STEPS = 30  # the bound is flat near the best slope: an error there counts by its square
_WIDE = 600.0  # nats; their exponential is finite, and more leakage says nothing
_DOWN = 1.0 - 1e-12  # far above the rounding of a few operations
_SLACK = 1e-13  # above the rounding errors of a mean of numbers in [0, 1]


class LogOdds:
    """Possible estimands given the analyst's expectation of a mean, from the leakages alpha_i in nats (one or n).

    Notes
    -----
    Given the estimand p of a mean, the largest expectation is at most ``s p + (1/n) sum_i k_i(s)`` for every s > 0,
    ``k_i(s)`` the largest value of ``G_i(x) - s x`` on [0, 1] and ``G_i(x) = x/(x + (1-x) exp(-alpha_i))``. So an
    expectation of c or more needs ``p >= (c - (1/n) sum_i k_i(s))/s``: true for every s, and bisection finds the best
    s. Equal leakage gives ``c/(c + (1-c) exp(alpha))``. An infinite alpha_i allows any knowledge of the record.
    """

    def __init__(self, leakage: Floats) -> None:
        values, counts = np.unique(np.asarray(leakage, dtype=np.float64), return_counts=True)
        if len(values) > _CLASSES:  # up to the largest of each class: more leakage allows more
            parts = np.array_split(np.arange(len(values)), _CLASSES)
            counts = np.array([counts[part].sum() for part in parts])
            values = np.array([values[part[-1]] for part in parts])
        self._leakage: Floats = values
        self._shares: Floats = counts / counts.sum()
        self._lost: Floats = np.where(values > 0.0, -np.expm1(-values), 1.0)

    def lowest(self, expected: float) -> float:
        """Return the smallest estimand of a mean of which the analyst may expect this or more, rounded down."""
        c = min(max(expected, 0.0), 1.0)
        reach = float(self._leakage[-1])
        if c == 0.0 or (c == 1.0 and reach < math.inf):
            return c
        if len(self._leakage) == 1:
            return c / (c + (1.0 - c) * math.exp(reach)) * _DOWN if reach < _WIDE else 0.0
        far = min(reach, _WIDE)
        slopes = bracket(lambda slope: self._most(slope)[0] > c, far, -far, halvings=_STEPS)
        best = max((c - self._most(slope)[1] - _SLACK) * math.exp(-slope) for slope in slopes)
        return max(0.0, best * _DOWN)

    def highest(self, expected: float) -> float:
        """Return the largest estimand of a mean of which the analyst may expect this or less, rounded up."""
        return min(1.0, (1.0 - self.lowest(1.0 - expected)) * (1.0 + ULP))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LogOdds):
            return NotImplemented
        return np.array_equal(self._leakage, other._leakage) and np.array_equal(self._shares, other._shares)

    def __hash__(self) -> int:
        return hash((self._leakage.tobytes(), self._shares.tobytes()))

    def _most(self, log_slope: float) -> tuple[float, float]:
        """Return the mean of ``G_i`` where ``G_i(x) - s x`` is largest, and the mean of these largest values."""
        a = self._leakage
        part = -np.expm1(np.minimum(log_slope - a, 0.0) / 2.0)
        # x = 1 where s <= exp(-alpha), and 0 where s >= exp(alpha); without leakage there is nothing between
        everything, nothing = log_slope <= -a, log_slope >= a
        inside = np.where(everything, 1.0, np.where(nothing, 0.0, part / self._lost))
        gain = np.where(everything, -math.expm1(log_slope), np.where(nothing, 0.0, part * part / self._lost))
        return float(self._shares @ inside), float(self._shares @ gain)


NAME = "posterior"
SOURCE = "PROOFS.md, 'Posterior certificate'; after [J20]"
ASSUMES = "queries are means of per-record values; the declared dependence; records unseen by the analyst"


def posterior(setting: Setting) -> Route:
    """Certify by the analyst's posterior about each record.

    The tolerance is ``CVaR_beta(M) + (1/n) sum_i tanh(alpha_i/4)``: M the largest error of an answer about the holdout,
    alpha_i the interaction's leakage about record i to an analyst who knows the model only. `PosteriorWidths` is
    narrower for one answer v: its interval contains the estimands whose log-odds are within the leakage of those of a
    number within the first term of v, at the moment of its release and ever after.

    The *mean* over the records counts, so a few that depend on many do no harm. Adaptivity, train values of any source,
    and the choice of queries by their answers are all covered. PROOFS.md, "Posterior certificate", after [J20]: C. Jung
    et al., "A new analysis of differential privacy's generalization guarantees", ITCS 2020.
    """
    if why := setting.undeclared():
        return Route.missing(NAME, why, sound=True, assumes=ASSUMES, source=SOURCE)
    widths = posterior_widths(setting)
    return Route(NAME, widths.width, True, ASSUMES, SOURCE, widths=widths)


@dataclass(frozen=True, slots=True)
class PosteriorWidths:
    """Half-widths and intervals by the posterior certificate.

    `error` bounds the distance of an answer from the analyst's expectation of the holdout's value, ``CVaR_beta(M)`` and
    rounding. `width` is the half-width of every answer, `epsilon` the privacy of the interaction alone.
    """

    error: float
    width: float
    beliefs: LogOdds
    epsilon: float

    def half_width(self, query: int, hits: int, source: Literal["train", "holdout"]) -> float:
        """Return the width."""
        return self.width

    def interval(self, value: float) -> tuple[float, float]:
        """Return the possible estimands given an answer."""
        low = self.beliefs.lowest(value - self.error)
        high = self.beliefs.highest(value + self.error)
        return max(low, value - self.width), min(high, value + self.width)

    def expected(self, value: float) -> float:
        """Return the larger side of the interval of an answer with this value."""
        return larger_side(value, self.interval(value))


def posterior_widths(setting: Setting) -> PosteriorWidths:
    """Return the half-widths of a guard whose limits are declared."""
    alphas = leakage(setting.model, setting.epsilon, "uninformed")
    variation = mean_total_variation(setting.model, setting.epsilon)
    width = formula_up(posterior_tolerance(setting, variation))
    return PosteriorWidths(formula_up(posterior_tolerance(setting, 0.0)), width, LogOdds(alphas), setting.epsilon)


def posterior_tolerance(setting: Setting, variation: float) -> float:
    """Return the tolerance, given the second term of the certificate."""
    scale = setting.parameters.noise_scale
    threshold, grid = setting.parameters.threshold / scale, (setting.parameters.grid or 0.0) / scale
    error = scale * setting.law.superquantile(setting.beta, threshold, grid)
    return error + setting.slack + variation


def mean_total_variation(model: DependenceModel, epsilon: float) -> float:
    """Bound ``abs(E[q(X) | answers] - q(P))`` for every mean q of values in [0, 1].

    It is ``(1/n) sum_i tanh(alpha_i/4)``, alpha_i the leakage to an analyst who knows the model only.
    """
    return float(np.mean(np.tanh(leakage(model, epsilon, "uninformed") / 4))) * (1.0 + 1e-12)


_WIDER: Final = 2.0**-12
"""Share of the range that a release with a delta adds to every half-width: rho of L6."""

_FRACTIONS: Final = (0.999, 0.5, 0.2, 0.1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8)  # of the allowed delta; any one is valid
_ROUNDED_UP: Final = 1.0 + 1e-12  # far above the rounding of a few operations
_MOST_EPSILON: Final = 300.0  # its exponential is finite, and a larger one says nothing


def beside_pure_releases(widths: PosteriorWidths, model: DependenceModel, epsilon: float) -> PosteriorWidths:
    """Let the analyst's beliefs move by the leakage of interaction and releases together; the noise stays."""
    total = math.nextafter(widths.epsilon + epsilon, math.inf)
    together = mean_total_variation(model, total)
    return _moved(widths, model, LogOdds(leakage(model, total, "uninformed")), together, 0.0)


def beside_releases_with_a_delta(
    widths: PosteriorWidths, model: DependenceModel, releases: Sequence[Event], spare: float
) -> PosteriorWidths | str:
    """Do the same where releases have a delta, for independent records and independent groups.

    `releases` are in the order in which they were recorded; each may have been chosen in view of earlier ones.
    """
    from graphs import Independent

    sizes = np.ones(1) if isinstance(model, Independent) else model.independent_groups()
    if sizes is not None and sizes.max() == 1:
        sizes = np.ones(1)
    if sizes is None:
        return "have a delta, which is covered for independent records and independent groups only"
    leaked = groups_leakage(sizes.astype(np.float64), releases, spare * _WIDER)
    if math.isinf(leaked):
        return "leak too much"
    alphas = sizes * (widths.epsilon + leaked) * _ROUNDED_UP
    together = float(np.sum(sizes * np.tanh(alphas / 4.0)) / np.sum(sizes)) * _ROUNDED_UP
    return _moved(widths, model, LogOdds(np.repeat(alphas, sizes.astype(np.int64))), together, _WIDER)


def groups_leakage(sizes: Floats, releases: Sequence[Event], spare: float) -> float:
    """Bound the change of the odds of a record's values by releases, in nats, except with small mean probability."""
    from thresholdout.privacy.accounting.accountants.accountant import PureAccountant, total_pure_epsilon
    from thresholdout.privacy.accounting.accountants.calibration import all_accountants, composed_accountants
    from thresholdout.privacy.accounting.accountants.renyi_conversion import EdgeOrderWarning, NoFiniteOrderWarning

    weights, total = sizes / np.sum(sizes), 0.0
    for number, release in enumerate(releases, 1):
        pure, allowed = PureAccountant("replace_one"), spare / (number * (number + 1.0))
        best = total_pure_epsilon(pure.compose(release)) if pure.supports(release) else math.inf
        if math.isinf(best):
            with suppress_warnings(EdgeOrderWarning, NoFiniteOrderWarning):
                accountants, _ = composed_accountants(release, "replace_one", all_accountants())
                best = min((_epsilon(one, sizes, weights, allowed) for one in accountants), default=best)
        total = math.nextafter(total + best, math.inf)
    return total


def _epsilon(accountant: Accountant, sizes: Floats, weights: Floats, allowed: float) -> float:
    """Return an epsilon about single records for which the mean of the groups' deltas is within the allowed one."""
    for delta in (allowed * fraction for fraction in _FRACTIONS):
        epsilon = accountant.epsilon(delta)
        if math.isfinite(epsilon) and _in_groups(sizes, weights, epsilon, delta) <= allowed:
            return epsilon
    return math.inf


def _in_groups(sizes: Floats, weights: Floats, epsilon: float, delta: float) -> float:
    """Return the mean of ``delta (e^{s epsilon} - 1)/(e^epsilon - 1)``: group privacy, rounded up."""
    largest = float(np.max(sizes))
    if not epsilon * largest < _MOST_EPSILON:
        return math.inf
    each = sizes if epsilon < 1e-15 else np.expm1(sizes * epsilon) / math.expm1(epsilon)  # the limit at 0 is s
    return float(weights @ (delta * each)) * _ROUNDED_UP


def _moved(
    widths: PosteriorWidths, model: DependenceModel, beliefs: LogOdds, together: float, wider: float
) -> PosteriorWidths:
    """Return the widths with other beliefs, which are off by `together` on average over the records, and by `wider`."""
    alone = mean_total_variation(model, widths.epsilon)
    width = formula_up(widths.width + max(0.0, together - alone * (1.0 - 4e-12)) + wider)
    error = formula_up(widths.error + wider) if wider else widths.error
    return PosteriorWidths(error, width, beliefs, widths.epsilon)
