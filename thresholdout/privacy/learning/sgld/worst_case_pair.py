"""The exact epsilon of the worst-case pair: of the iterates for few records, and of the posteriors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp

from thresholdout.errors import InputError
from thresholdout.plotting import axes, finish
from thresholdout.privacy.accounting.bound_arguments import chosen, count, number, open_unit, positive
from thresholdout.privacy.learning.sgld.iterate_law import proof_epoch, worst_case_chain
from thresholdout.privacy.learning.sgld.lower_bounds import DIRECTIONS, WorstEpoch, eps_tail, half, worst_epoch
from thresholdout.privacy.learning.sgld.posterior_bound import Sizes, paper_order, posterior_dp, posterior_size_terms
from thresholdout.privacy.learning.sgld.regression_model import exponent

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "pair_curve",
    "pair_epsilon",
    "plot_pair_curve",
    "posterior_pair_epsilon",
    "theorem_parameters",
    "worst_of_pair",
]

Floats = NDArray[np.float64]

Masses = tuple[float, float, float]  # logs of the likelier and of the other mass, and a bound on their errors

MOST_RECORDS = 20_000  # each evaluation takes time in proportion

_TAIL = 38.0  # standard deviations; the mass beyond is below the smallest float


def pair_epsilon(
    n: int,
    c: float,
    x_h: float,
    alpha: float,
    beta: float,
    K: int,
    *,
    delta: float,
    direction: str = "max",
    eta: float | None = None,
    batch_size: int = 1,
) -> float:
    """Return the exact epsilon of the iterate on the worst-case pair, over all events.

    The smallest eps with ``P(S) <= e^eps Q(S) + delta`` for all events S, rounded down by about 1e-10; ``inf`` for
    "D2->D1" with a delta of 0. The direction names the data set on which the event is likelier. The logarithm of the
    densities' ratio is convex, so the best event is an interval or the outside of one (PROOFS.md, L5).
    """
    chain = worst_case_chain(n, c, x_h, alpha, beta, eta, batch_size)
    if chain.steps_per_epoch > MOST_RECORDS:
        seen = str(chain.steps_per_epoch)
        raise InputError("n", seen, f"at most {MOST_RECORDS} steps in a sweep", "eps_threshold takes any number.")
    mixture = chain.after(count(K, "K"))
    delta, direction = _unit(delta), chosen(direction, "direction", DIRECTIONS)
    q = mixture.power(np.arange(float(mixture.parts)))
    spread = math.sqrt(mixture.var)
    gaps = (mixture.gap0 + mixture.gap1 * q) / spread
    return _Pair(gaps, (mixture.var0 + mixture.var1 * q * q) / mixture.var, mixture.slack).epsilon(delta, direction)


def posterior_pair_epsilon(
    n: int, c: float, x_h: float, alpha: float, beta: float, *, delta: float, direction: str = "max"
) -> float:
    """Return the exact epsilon of one draw from the posterior on the worst-case pair, the limit of an ideal chain."""
    chain = worst_case_chain(n, c, x_h, alpha, beta)
    c, delta, direction = positive(c, "c"), _unit(delta), chosen(direction, "direction", DIRECTIONS)
    # The changed record has half the input, so a quarter of its square.
    fewer = chain.u - 0.75 * chain.s  # precision of the second posterior
    # The first mean is c n s / u, the second c (u - alpha - 3 s / 4) / fewer: their gap, without cancellation.
    gap = 0.75 * chain.s * c * chain.alpha / (chain.u * fewer)
    ratio = chain.u / fewer
    return _Pair(np.array([gap * math.sqrt(chain.u)]), np.array([ratio]), 1e-14).epsilon(delta, direction)


def _unit(delta: object) -> float:
    found = number(delta, "delta", "a number in [0, 1)")
    if not 0.0 <= found < 1.0:
        raise InputError("delta", repr(found), "a number in [0, 1)")
    return found


class _Pair:
    """A standard normal P, and an equal mixture Q of wider normals with means below 0."""

    def __init__(self, gaps: Floats, variances: Floats, slack: float) -> None:
        self.gaps, self.spreads, self.slack = gaps, np.sqrt(variances), slack
        # log of a part's density over P's: square x^2 + slope x + level, with square of 0 or more
        self.square = np.maximum(0.0, (variances - 1.0) / (2.0 * variances))
        self.slope = -gaps / variances
        self.level = -(gaps**2) / (2.0 * variances) - 0.5 * np.log(variances) - math.log(gaps.size)
        self.low = -float(gaps.max()) - _TAIL * float(self.spreads.max())
        self.high = _TAIL * float(self.spreads.max())
        self.bottom = self._bottom()

    def epsilon(self, delta: float, direction: str) -> float:
        """Return the epsilon, rounded down."""
        found = [0.0]
        if direction != "D2->D1":
            # With delta = 0, the loss is the largest ln(p/q), at the minimum of ln(q/p).
            largest = max(0.0, -self.ratio(self.bottom))
            if delta == 0.0:
                # The minimum is flat, so the root's error hardly counts; 1e-12 and the slack cover it and the rounding.
                found.append(largest - 1e-12 * (1.0 + largest) - self.slack * self.reach)
            else:
                found.append(self._search(self._inside, delta, largest))
        if direction != "D1->D2":
            if delta == 0.0:
                return math.inf
            found.append(self._search(self._outside, delta, None))
        return max(found)

    def ratio(self, x: float) -> float:
        """Return ``ln(q/p)`` at a point."""
        return float(logsumexp((self.square * x + self.slope) * x + self.level))

    def _derivative(self, x: float) -> float:
        weights = (self.square * x + self.slope) * x + self.level
        weights = np.exp(weights - weights.max())
        return float((weights * (2.0 * self.square * x + self.slope)).sum() / weights.sum())

    def _bottom(self) -> float:
        """Return the minimum of the convex log ratio between `low` and `high`."""
        if self._derivative(self.high) <= 0:
            return self.high
        return float(brentq(self._derivative, self.low, self.high, xtol=1e-12))

    def _edges(self, level: float) -> tuple[float, float]:
        """Return the ends of the interval on which the log ratio is below a level, cut at `low` and `high`."""

        def above(x: float) -> float:
            return self.ratio(x) - level

        # Errors of the ends only make the difference of masses smaller (PROOFS.md, L5).
        left = self.low if above(self.low) <= 0 else float(brentq(above, self.low, self.bottom, xtol=1e-12))
        right = self.high if above(self.high) <= 0 else float(brentq(above, self.bottom, self.high, xtol=1e-12))
        return left, right

    def _inside(self, eps: float) -> Masses:
        """Return the masses of the interval where P is the likelier one."""
        if self.ratio(self.bottom) >= -eps:
            return -math.inf, -math.inf, 0.0
        left, right = self._edges(-eps)
        q, rough = _log_mass((left + self.gaps) / self.spreads, (right + self.gaps) / self.spreads)
        p, rough_p = _log_mass(np.array([left]), np.array([right]))
        return float(p[0]), float(logsumexp(q)) - math.log(q.size), max(rough, rough_p)

    def _outside(self, eps: float) -> Masses:
        """Return the masses of the set where Q is the likelier one."""
        left, right = self._edges(eps) if self.ratio(self.bottom) < eps else (self.bottom, self.bottom)
        q = np.logaddexp(log_ndtr((left + self.gaps) / self.spreads), log_ndtr(-(right + self.gaps) / self.spreads))
        p = float(np.logaddexp(log_ndtr(left), log_ndtr(-right)))
        return float(logsumexp(q)) - math.log(q.size), p, 1e-14 * (1.0 + abs(p))

    def _search(self, masses: Callable[[float], Masses], delta: float, most: float | None) -> float:
        """Return the largest eps that is certain to have a difference of masses above delta."""

        def excess(eps: float) -> float:
            likely, unlikely, rough = masses(eps)
            rough += 1e-13 + self.slack * self.reach  # errors of the logs by those of means and deviations
            # Each mass is moved against the claim by its error.
            return math.exp(likely - rough) - math.exp(min(700.0, eps + unlikely + rough)) - delta

        if excess(0.0) <= 0:
            return 0.0
        high = most if most is not None else 1.0
        while excess(high) > 0:
            if most is not None:
                return high
            high *= 2.0
        found = float(brentq(excess, 0.0, high, xtol=1e-12))
        # The root is off by its tolerance: eps is lowered until the difference is above delta for certain.
        margin = 1e-11 * (1.0 + found)
        while excess(found - margin) <= 0:
            margin *= 2.0
            if margin > found:
                return 0.0
        return found - margin

    @property
    def reach(self) -> float:
        """Largest relative change of a mass's logarithm by the relative size of means and deviations.

        Ends that are more than 10 deviations away from both distributions hold no mass that matters.
        """
        return 4.0 * (11.0 + float(self.gaps.max())) ** 2


def _log_mass(left: Floats, right: Floats) -> tuple[Floats, float]:
    """Return the log of the standard normal mass of intervals, on the side where it cancels less, and its error."""
    mirrored = left > 0
    low = log_ndtr(np.where(mirrored, -right, left))
    high = log_ndtr(np.where(mirrored, -left, right))
    share = -np.expm1(low - high)
    if not (share > 0).all():
        return np.asarray(high), math.inf  # too narrow to say anything
    found: Floats = high + np.log(share)
    return found, float((4e-15 * (1.0 + np.abs(high)) / share).max())


MOST_EPOCHS = 500  # of a curve by default; each takes some milliseconds


def _whole(n: int, batch_size: int) -> int:
    """Return the largest number of records that batches divide, with two batches at least."""
    whole = n - n % batch_size
    if whole < 2 * batch_size:
        advice = "A curve over epochs needs at least two batches."
        raise InputError("batch_size", f"{batch_size}", f"at most half of the {n} records", advice)
    return whole


def pair_curve(
    n: int,
    c: float,
    x_h: float,
    *,
    alpha: float,
    beta: float,
    eta: float,
    batch_size: int,
    delta: float,
    steps: int,
    epochs: int | None = None,
) -> pd.DataFrame:
    """Return a table of the epsilons of iterates (lower bounds) and posterior on the worst-case pair, by epoch.

    Arguments as in `eps_tail`; n is rounded down to full batches.
    """
    import pandas as pd

    whole = _whole(n, batch_size)
    if epochs is None:
        proof = proof_epoch(whole, x_h, alpha, beta, eta, batch_size=batch_size).epochs
        epochs = min(MOST_EPOCHS, max(2 * proof, -(-steps * batch_size // whole)))
    posterior = posterior_pair_epsilon(whole, c, x_h, alpha, beta, delta=delta)
    rows = [
        (epoch, eps_tail(whole, c, x_h, alpha, beta, epoch, delta=delta, eta=eta, batch_size=batch_size), posterior)
        for epoch in range(1, count(epochs, "epochs") + 1)
    ]
    return pd.DataFrame(rows, columns=["epoch", "iterate", "posterior"])


def worst_of_pair(
    n: int, c: float, x_h: float, *, alpha: float, beta: float, eta: float, batch_size: int, delta: float
) -> WorstEpoch | None:
    """Return the worst epoch of the pair; None where there is no exact law, as with very large step sizes."""
    try:
        whole = _whole(n, batch_size)
        return worst_epoch(whole, c, x_h, alpha, beta, delta=delta, eta=eta, batch_size=batch_size)
    except InputError:
        return None


def plot_pair_curve(curve: pd.DataFrame, delta: float, ax: Any = None) -> Any:
    """Draw a table of `pair_curve`; delta is for the label."""
    ax = axes(ax)
    ax.plot(curve["epoch"], curve["iterate"], label="iterate after so many epochs: at least")
    ax.plot(curve["epoch"], curve["posterior"], "--", label="one draw from the posterior (never reached): exactly")
    ax.set_ylim(0.0, 1.25 * float(max(curve["iterate"].max(), curve["posterior"].max())))
    return finish(ax, "epochs", f"epsilon of the worst-case pair, nats, at delta = {delta:g}")


def theorem_parameters(
    eps: float,
    eps_prime: float,
    delta: float,
    alpha: float,
    beta: float,
    x_h: float,
    gamma1: float,
    gamma2: float,
    *,
    printed_condition: bool = False,
) -> dict[str, Any]:
    """Return a number of records for which the posterior is private and the chain is not [HF, Theorem IV.1].

    One draw from the posterior is (eps, delta)-private, and the iterate after ``K`` epochs is not (eps_prime,
    delta)-private. This needs ``x_h^2 beta > 3`` and ``1 + gamma1 < gamma2 < 3/2``; the smallest input is ``x_h/2``,
    and the ratios are around ``c = n^gamma2``. With `printed_condition`, the paper's condition on n, the posterior has
    no guarantee for beta above 1 (defect E2).

    The result has ``n1`` to ``n4``, ``terms`` (those of `posterior_size_terms`, whose largest is ``n2``), ``n_p``, the
    largest of all, rounded up, ``c_p``, ``nu`` and ``K``, the epoch of the proof. Two numbers check both halves without
    these constants: ``posterior_epsilon``, an upper bound (Lemma A.1), and ``sgld_epsilon``, a lower bound (`eps_tail`
    after K epochs). n_p is astronomical; no array of its size is ever built. The paper does not round it up.
    """
    eps, eps_prime = positive(eps, "eps"), positive(eps_prime, "eps_prime")
    delta = half(open_unit(delta, "delta"))
    x_h, gamma1, gamma2 = positive(x_h, "x_h"), exponent(gamma1), positive(gamma2, "gamma2")
    x_l = x_h / 2.0
    sizes = Sizes(x_l, x_h, alpha, beta, gamma1)
    s, alpha, beta = sizes.s, sizes.alpha, sizes.beta
    if s <= 3.0:
        raise InputError("x_h", f"x_h^2 beta = {s:g}", "such that x_h^2 beta is more than 3")
    if not 1.0 + gamma1 < gamma2 < 1.5:
        raise InputError("gamma2", repr(gamma2), f"a number in (1 + gamma1, 3/2) = ({1.0 + gamma1:g}, 1.5)")
    nu = paper_order(eps, delta)
    terms = posterior_size_terms(eps, delta, x_l, x_h, alpha, beta, gamma1, gamma2, printed_condition=printed_condition)
    # v1 and the four lower limits of n as in [HF, Theorem IV.1].
    v1 = max(6.0, 1.0 + 2.0 * math.exp(1.0 / s))
    wanted = eps_prime - math.log(0.5 - delta)
    fourth = 2.0 * v1 / alpha * (32.0 * s / 3.0) ** 2 * wanted * math.exp(2.0 / s)
    n1 = max(1.0 / (2.0 * alpha * s) - 1.0 / s, alpha / s, alpha / s * (math.exp(2.0 / s) - 2.0) + 0.5 / s) + 1.0
    found: dict[str, Any] = {
        "n1": n1,
        "n2": max(terms),
        "n3": sizes.least(nu, printed_condition) + 1.0,
        "n4": math.exp(min(700.0, math.log(fourth) / (2.0 * (gamma2 - 1.0)))),
        "terms": terms,
        "nu": nu,
    }
    largest = max(found["n1"], found["n2"], found["n3"], found["n4"])
    # Beyond, n^gamma2 with gamma2 < 3/2 is too large for a float.
    if not math.isfinite(largest) or largest > 1e200:
        return {**found, "n_p": math.inf, "c_p": math.inf, "K": None, "posterior_epsilon": None, "sgld_epsilon": None}
    n_p = math.ceil(largest)
    c_p = float(n_p) ** gamma2
    epochs = proof_epoch(n_p, x_h, alpha, beta).epochs
    return {
        **found,
        "n_p": n_p,
        "c_p": c_p,
        "K": epochs,
        "posterior_epsilon": posterior_dp(n_p, delta, x_l, x_h, alpha, beta, gamma1, c_p, nu=nu, sharp=False),
        "sgld_epsilon": eps_tail(n_p, c_p, x_h, alpha, beta, epochs, delta=delta),
    }
