"""Tests of a claimed trade-off curve by outputs on two neighbouring data sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.bisection import bisect
from graphs.numerics.rounding import down_relative, shown_below
from thresholdout.plotting import BLUE, GREY, ORANGE, axes, finish
from thresholdout.privacy.accounting.adaptive_steps import gaussian_delta
from thresholdout.privacy.accounting.binomial_probabilities import clopper_pearson_upper
from thresholdout.privacy.auditing.attacks import Attack, best_cut, spread_cuts
from thresholdout.privacy.auditing.audit_settings import DeltaGoal, EpsilonGoal
from thresholdout.privacy.auditing.claimed_curves import ClaimedCurve, CurvePoint
from thresholdout.privacy.auditing.error_counts import bound, method_for

if TYPE_CHECKING:
    from thresholdout.privacy.auditing.audit_result import AuditResult


__all__ = [
    "ClaimAudit",
    "GaussianBound",
    "audit_claim",
    "gaussian_bound",
    "lower_curve",
    "plot_curve",
    "plot_errors",
    "plot_stages",
]

Floats = NDArray[np.float64]

Scores = tuple[Floats, Floats]

Errors = tuple[int, int, int, int]  # fp, n_fp, fn, n_fn

_SIMULATED = 4_000_000  # numbers in all draws of a simulated law: half a second

_DRAWS = 1999  # a p-value at 0.1 then has a standard error of 0.007, which costs power and no validity

# The event is the best of thousands on its part, so its standardised evidence there is too high by 1 to 2.
_FLATTERED = 2.0

_CLEAR = 3.0  # expected standard deviations beyond the claim from which on one event suffices


@dataclass(frozen=True, eq=False)
class ClaimAudit:
    """Result of `audit_outputs` or `audit_learner` with a claim: whether the outputs refute the claimed privacy.

    The claim is a curve: a largest delta at every epsilon. The audit also returns lower bounds that hold without the
    claim.

    Attributes
    ----------
    refuted : bool
        Whether the outputs refute the claim. It is True with probability at most ``1 - confidence`` if the claim is
        true. False proves nothing.
    at : CurvePoint
        The point (epsilon, delta) of the claimed curve with the strongest evidence against it. It is chosen on the
        first part of the outputs.
    epsilon, delta : float
        Lower bounds from the other outputs: on epsilon at the delta of `at`, and on delta at the epsilon of `at`. Each
        holds with probability `confidence`.
    confidence : float
        Probability with which each bound holds. A true claim is refuted with probability at most ``1 - confidence``.
    test : {"point", "ranks"}
        The test that decided, chosen on the first part of the outputs. "point" counts the errors of one event and
        compares them with the point `at`. "ranks" compares the ranks of pairs of outputs with the whole curve, and is
        used if one event shows too little.
    claim : ClaimedCurve
        The claimed curve.
    errors : tuple of (fp, n_fp, fn, n_fn)
        Errors of three events on the other outputs, with the numbers of outputs: the tested event, the best event at
        epsilon 0, and the best event at the smallest delta of the claim. `lower_curve` uses all three.

    Examples
    --------
    >>> from thresholdout.privacy.auditing import audit_outputs
    >>> rng = np.random.default_rng(0)
    >>> found = audit_outputs(rng.normal(size=300), rng.normal(2, size=300), claim=(1.0, 1e-5), random_state=0)
    >>> found.refuted, found.at
    (True, CurvePoint(epsilon=1.0, delta=1e-05))
    """

    refuted: bool
    at: CurvePoint
    epsilon: float
    delta: float
    confidence: float
    test: Literal["point", "ranks"]
    claim: ClaimedCurve
    errors: tuple[Errors, ...]

    def __repr__(self) -> str:
        verdict = "refuted" if self.refuted else "not refuted"
        shown = f"delta >= {shown_below(self.delta)} at epsilon {self.at.epsilon:.3g}, claimed {self.at.delta:.3g}"
        outputs = f"{self.errors[0][1]} and {self.errors[0][3]} outputs"
        by = "" if self.test == "point" else "; by ranks against the whole curve"
        return f"<claim {verdict}: {shown}, confidence {self.confidence:g}; {outputs}{by}>"

    def lower_curve(self, epsilons: Any) -> Floats:
        """Return lower bounds on delta at several epsilons.

        Parameters
        ----------
        epsilons : array_like of float
            Epsilons in nats, at least 0.

        Returns
        -------
        ndarray, shape (k,)
            A lower bound on delta at each epsilon. All of them hold together with probability `confidence` or more.
        """
        return lower_curve(self.errors, epsilons, self.confidence)

    def plot(self, ax: Any = None) -> Any:
        """Draw the claimed curve, the measured lower bound and the tested point.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on. If None, a new figure is made.

        Returns
        -------
        matplotlib axes
            The axes with the drawing.
        """
        from thresholdout.privacy.auditing.claim_audits import plot_curve

        return plot_curve(self, ax)


@dataclass(frozen=True)
class GaussianBound:
    """A lower bound on mu for a declared family: the two laws are those of a Gaussian mechanism (mu-GDP).

    With probability `confidence` or more, the mechanism is not mu-GDP for any smaller mu. `epsilon` and `delta` hold if
    the trade-off of the learner is that of some mu.
    """

    mu: float
    confidence: float
    family: str = "gaussian"

    def delta(self, epsilon: float) -> float:
        """Return delta at an epsilon."""
        return 0.0 if self.mu <= 0.0 else down_relative(gaussian_delta(self.mu, 1.0, epsilon), 1e-9)

    def epsilon(self, delta: float) -> float:
        """Return epsilon at a delta."""
        if self.mu <= 0.0 or self.delta(0.0) <= delta:
            return 0.0
        # At this epsilon the loss, normal with mean mu^2/2 and deviation mu, is 40 deviations away.
        far = self.mu**2 + 40.0 * self.mu
        return bisect(lambda epsilon: self.delta(epsilon) > delta, far, 0.0, halvings=60)


def lower_curve(events: Sequence[Errors], epsilons: Any, confidence: float) -> Floats:
    """Return the bounds on delta that the errors of some events imply at every epsilon at once (PROOFS.md, L2)."""
    share = (1.0 - confidence) / (2.0 * len(events))  # for each rate of each event: all limits hold together
    rates = [
        (clopper_pearson_upper(fp, n_fp, share), clopper_pearson_upper(fn, n_fn, share))
        for fp, n_fp, fn, n_fn in events
    ]
    at = np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
    return np.array([max(_delta_at(float(e), p, q) for p, q in rates) for e in at.tolist()])


def _delta_at(epsilon: float, p: float, q: float) -> float:
    goal = DeltaGoal(epsilon)
    return goal.value(float(goal.order(np.array([p]), np.array([q]))[0]))


@dataclass(frozen=True)
class _Event:
    """The event ``sign * score >= cut``, the point of the curve where it shows most, and its standardised evidence."""

    sign: float
    cut: float
    point: CurvePoint
    evidence: float


def _best_event(fitted: Scores, curve: ClaimedCurve) -> _Event:
    first, second = (np.sort(part) for part in fitted)
    cuts = spread_cuts(np.unique(np.concatenate([first, second])), 400)
    fp = first.size - np.searchsorted(first, cuts, side="left")
    fn = np.searchsorted(second, cuts, side="left")
    shrunk, deltas = np.exp(-curve.epsilons), curve.deltas  # e^-epsilon underflows where e^epsilon would overflow
    best: _Event | None = None
    for sign, x, y in ((1.0, fp, fn), (-1.0, first.size - fp, second.size - fn)):
        # One more error of each kind: a rate of 0 has no variance, and its evidence would be infinite.
        p, q = (x + 1.0) / (first.size + 2.0), (y + 1.0) / (second.size + 2.0)
        for a, b, n_a, n_b in ((p, q, first.size, second.size), (q, p, second.size, first.size)):
            above = shrunk * (1.0 - b[:, None] - deltas) - a[:, None]
            spread = np.sqrt(shrunk**2 * (b * (1.0 - b) / n_b)[:, None] + (a * (1.0 - a) / n_a)[:, None])
            evidence = above / spread
            k, at = np.unravel_index(int(np.argmax(evidence)), evidence.shape)
            if best is None or evidence[k, at] > best.evidence:
                cut = float(cuts[k]) if sign > 0 else math.nextafter(-float(cuts[k]), math.inf)
                best = _Event(sign, cut, curve.points[int(at)], float(evidence[k, at]))
    assert best is not None
    return best


def _differences(first: Floats, second: Floats) -> Floats:
    """Return differences of pairs of scores: 0 for equal ones, also if both are infinite."""
    with np.errstate(invalid="ignore"):
        found: Floats = np.where(first == second, 0.0, second - first)
    return found


def _signed_rank(differences: Floats, coins: Floats) -> Floats:
    """Return sums of signed ranks of absolute differences along the last axis; ties are broken by coins in (0, 1)."""
    order = np.lexsort((coins, np.abs(differences)), axis=-1)
    ordered, fair = np.take_along_axis(differences, order, -1), np.take_along_axis(coins, order, -1)
    # A difference of 0 has a fair sign: the last bit of its coin, which does not decide the order.
    signs = np.where(ordered == 0.0, np.where((fair * 2.0**53) % 2.0 < 1.0, -1.0, 1.0), np.sign(ordered))
    found: Floats = signs @ np.arange(1.0, differences.shape[-1] + 1.0)
    return found


def _rank_law(curve: ClaimedCurve, pairs: int, rng: np.random.Generator) -> Floats:
    """Return draws of the signed-rank sum of pairs from the two laws that the claim allows."""
    p, q, losses = curve.pair
    draws = int(np.clip(_SIMULATED // pairs, 199, _DRAWS))
    found = np.empty(draws)
    for k in range(draws):
        differences = losses[rng.choice(q.size, pairs, p=q)] - losses[rng.choice(p.size, pairs, p=p)]
        found[k] = _signed_rank(differences, rng.random(pairs))
    return found


def audit_claim(
    curve: ClaimedCurve,
    worlds: tuple[Floats, Floats],
    *,
    confidence: float,
    attack: Attack,
    fit_share: float,
    rng: np.random.Generator,
) -> ClaimAudit:
    """Audit a claimed curve: all choices on one part of the outputs, the test on the other (PROOFS.md, L8, L9)."""
    shuffled = [part[rng.permutation(len(part))] for part in worlds]
    sizes = [max(2, round(len(part) * fit_share)) for part in shuffled]
    score = attack(shuffled[0][: sizes[0]], shuffled[1][: sizes[1]])
    scores = [np.asarray(score(part), dtype=np.float64) for part in shuffled]
    fitted = scores[0][: sizes[0]], scores[1][: sizes[1]]
    first, second = scores[0][sizes[0] :], scores[1][sizes[1] :]
    event = _best_event(fitted, curve)
    alpha = 1.0 - confidence
    ends = DeltaGoal(0.0), EpsilonGoal(min(point.delta for point in curve.points))
    cuts = [(event.sign, event.cut), *(best_cut(*fitted, goal, 0.2 * alpha) for goal in ends)]
    counted = tuple(_errors(first, second, sign, cut) for sign, cut in cuts)
    errors = counted[0]
    method = method_for(first.size, second.size)
    delta = bound(DeltaGoal(event.point.epsilon), *errors, alpha, method)
    epsilon = bound(EpsilonGoal(event.point.delta), *errors, alpha, method)
    pairs = min(first.size, second.size)
    test: Literal["point", "ranks"] = "point"
    refuted = delta > event.point.delta
    known = min(sizes)
    if (event.evidence - _FLATTERED) * math.sqrt(pairs / known) < _CLEAR:
        law = _rank_law(curve, pairs, rng)
        seen = float(_signed_rank(_differences(fitted[0][:known], fitted[1][:known]), rng.random(known)))
        # The mean of the sum grows with the square of the number of pairs, its standard deviation with the power 3/2.
        shrunk = (known / pairs) ** 1.5
        by_ranks = (seen - law.mean() * (known / pairs) ** 2) / max(float(law.std()) * shrunk, 1e-300)
        if by_ranks > event.evidence - _FLATTERED:
            test = "ranks"
            found = float(_signed_rank(_differences(first[:pairs], second[:pairs]), rng.random(pairs)))
            # One more than counted: draws and the statistic are exchangeable under the claim (PROOFS.md, L9).
            refuted = (1.0 + float((law >= found).sum())) / (1.0 + law.size) <= alpha
    return ClaimAudit(refuted, event.point, epsilon, delta, confidence, test, curve, counted)


def _errors(first: Floats, second: Floats, sign: float, cut: float) -> Errors:
    return int((sign * first >= cut).sum()), first.size, int((sign * second < cut).sum()), second.size


def gaussian_bound(first: Floats, second: Floats, confidence: float, rng: np.random.Generator) -> GaussianBound:
    """Return a lower bound on mu from scores of outputs that the attack has not seen, if both laws are normal.

    Notes
    -----
    The signed-rank sum of differences is a sum of signs of Walsh averages, so it rises with mu for the same normal
    draws. So the simulated p-value falls, and all mu that are not refuted lie above one number (PROOFS.md, L10).
    """
    pairs = min(first.size, second.size)
    alpha = 1.0 - confidence
    seen = float(_signed_rank(_differences(first[:pairs], second[:pairs]), rng.random(pairs)))
    draws = int(np.clip(_SIMULATED // (4 * pairs), max(199.0, math.ceil(10.0 / alpha)), _DRAWS))
    # The same noise for every mu, so that the p-value falls with mu.
    noise = math.sqrt(2.0) * rng.standard_normal((draws, pairs))
    coins = np.broadcast_to(rng.random(pairs), noise.shape)

    def refuted(mu: float) -> bool:
        return (1.0 + float((_signed_rank(noise + mu, coins) >= seen).sum())) / (1.0 + draws) <= alpha

    if not refuted(0.0):
        return GaussianBound(0.0, confidence)
    high = 1.0
    while refuted(high) and high < 64.0:
        high *= 2.0
    return GaussianBound(bisect(refuted, high, 0.0, halvings=16), confidence)


def plot_stages(result: AuditResult, ax: Any = None) -> Any:
    """Draw the bound of each stage, and the largest one that this many outputs can show."""
    ax = axes(ax)
    numeric = all(isinstance(stage, (int, float)) for stage in result.stages)
    x = list(result.stages) if numeric else list(range(1, len(result.stages) + 1))
    label = f"lower bound, {result.confidence:.4g} confidence at each stage alone"
    ax.plot(x, result.bounds, "-o", color=BLUE, markersize=4, label=label)
    if result.measured == "epsilon":
        label = f"largest possible with {result.n_fp} + {result.n_fn} outputs"
        ax.axhline(result.largest, color=GREY, linestyle="--", linewidth=0.9, label=label)
    unit = "epsilon (nats)" if result.measured == "epsilon" else "delta"
    return finish(ax, "stage", unit)


def plot_errors(result: AuditResult, ax: Any = None) -> Any:
    """Draw the error rates of the attack, and the border of the rates that are possible under its bound."""
    ax = axes(ax)
    fp = np.linspace(0.0, 1.0, 401)
    factor = math.exp(result.epsilon)
    least = np.maximum(1.0 - result.delta - factor * fp, (1.0 - result.delta - fp) / factor).clip(0.0)
    ax.plot(fp, 1.0 - fp, ":", color=GREY, linewidth=0.9, label="guessing")
    ax.plot(fp, least, color=BLUE, label=f"border of epsilon {result.epsilon:.3g}, delta {result.delta:.3g}")
    rates = result.fp[-1] / result.n_fp, result.fn[-1] / result.n_fn
    ax.plot(*rates, "D", color=ORANGE, markersize=6, label=f"the attack, {result.n_fp} + {result.n_fn} outputs")
    ax.set_aspect("equal")
    return finish(ax, "share of first taken for second", "share of second taken for first")


def plot_curve(result: ClaimAudit, ax: Any = None) -> Any:
    """Draw a claimed curve delta(epsilon), the measured lower bound, and the tested point."""
    ax = axes(ax)
    claim = result.claim
    grid = np.linspace(0.0, max(1.0, 1.05 * float(claim.epsilons.max())), 200)
    style = "-o" if len(claim.points) == 1 else "-"
    ax.plot(claim.epsilons, claim.deltas, style, color=GREY, markersize=4, label="claimed: at most")
    label = f"measured: at least, confidence {result.confidence:.4g}"
    ax.plot(grid, result.lower_curve(grid), color=BLUE, label=label)
    ax.plot(result.at.epsilon, result.delta, "D", color=ORANGE, markersize=6, label="the point that was tested")
    ax.set_ylim(0.0, None)
    return finish(ax, "epsilon (nats)", "delta")
