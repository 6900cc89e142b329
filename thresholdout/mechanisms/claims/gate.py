"""Keep or reject a candidate: a claim about two models, of which nothing but the outcome is told.

The claim is "the candidate is better than the champion by more than delta", tested at a level ``w = q R``. *Keep*
leaves w, *reject* leaves ``R - w`` and claims nothing, and `FAILURE_SHARE` of R is set aside for a comparison that
fails on the holdout, and as much for one that is interrupted. So a keep that was to be expected costs ``ln(1/q)``, a
tenth of a nat, and not the logarithm of the number of proposals; how large q is, is decided by what cross-validation
says of this candidate and said of earlier ones. A look that is not worth its price is not taken: the candidate is
rejected, and nothing is spent.

PROOFS.md, "Comparisons and gates", has the proof that the probability of any false keep in a whole climb is at most
beta. Everything here is a function of public numbers, except what a test is given of the holdout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal

from thresholdout.mechanisms.claims.gate_tests import GateTest, Proposal
from thresholdout.mechanisms.claims.score import FAILURE_SHARE

__all__ = [
    "Decision",
    "GateState",
    "History",
    "below",
    "chance",
    "checkpoint",
    "climb",
    "decide",
    "foreseen",
    "last_evaluation",
    "propose",
    "remembered",
    "settle",
    "share_of_error_budget",
    "tolerated_shares",
    "worth_a_checkpoint",
]

_ROUNDING: Final = 1e-12  # taken from the logarithm of every share
_ULPS: Final = 1e-14  # of the logarithm of the error budget: digits that its size leaves out
_PRIOR: Final = 4.0  # proposals without effect that the first ones are averaged with
_PRICE: Final = 0.1  # of a nat, in kept candidates
_TESTED: Final = 10.0  # the first of an undeclared number of proposals is tested for "worse" at a tenth of the risk
_STEP: Final = 1.5  # standard deviations by which a climb on cross-validation asks for
_LIKELY: Final = 0.9  # foreseen probability of a confirmation at which a checkpoint is tested
_SHARES: Final = tuple(1.0 / (1.0 + math.exp(-0.5 * step)) for step in range(-14, 10))  # 0.001 to 0.989


@dataclass(frozen=True, slots=True)
class History:
    """What cross-validation said of earlier candidates; public.

    Attributes
    ----------
    count : int
        How many there were.
    total, squares, noise : float
        Sums of their differences, of the squares of these, and of the variances of their sampling noise.
    """

    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    noise: float = 0.0


@dataclass(frozen=True, slots=True)
class GateState:
    """What a gate remembers between two proposals; public.

    Attributes
    ----------
    log_error_budget : float
        Natural logarithm of R, the remaining error budget.
    history : History
        Of the earlier candidates.
    ahead, uncertain : float
        By how much the present model is foreseen to be better than the last certified one, and the variance of that; 0
        where every step is certified.

    Examples
    --------
    >>> GateState(-3.0)
    GateState(log_error_budget=-3.0, history=History(count=0, ...), ahead=0.0, uncertain=0.0)
    """

    log_error_budget: float
    history: History = History()
    ahead: float = 0.0
    uncertain: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """What a gate says of one candidate, and what is left.

    Attributes
    ----------
    outcome : {"keep", "reject", "worse"}
        "keep" claims that the candidate is better, or not worse by more than a tolerance; "worse" that it is worse;
        "reject" claims nothing.
    log_level : float or None
        Natural logarithm of w; ``None`` where the holdout was not looked at.
    state : GateState
        For the next proposal.
    """

    outcome: Literal["keep", "reject", "worse"]
    log_level: float | None
    state: GateState


def foreseen(history: History, proposal: Proposal) -> tuple[float, float]:
    """Return mean and standard deviation of the true difference, by cross-validation and what it said before.

    Empirical Bayes: earlier differences are a normal law of mean mu and variance t2, and sampling noise; the first
    ones are averaged with a few proposals without effect, spread as widely as the noise of this one.

    Examples
    --------
    >>> mean, deviation = foreseen(History(), Proposal(0.01, 0.05, 2000, 1000))
    >>> round(mean, 6), round(deviation, 6)
    (0.005, 0.003536)
    """
    noise = proposal.train_deviation**2
    number = history.count + _PRIOR
    middle = history.total / number
    spread = (history.squares + 2.0 * _PRIOR * noise) / number - middle * middle
    variance = max(0.1 * noise, spread - (history.noise + _PRIOR * noise) / number)
    weight = variance / (variance + noise)
    return middle + weight * (proposal.difference - middle), math.sqrt(weight * noise)


def remembered(history: History, proposal: Proposal) -> History:
    """Return the history with one more proposal.

    Examples
    --------
    >>> remembered(History(), Proposal(0.5, 1.0, 4, 4))
    History(count=1, total=0.5, squares=0.25, noise=0.25)
    """
    x = proposal.difference
    return History(
        history.count + 1, history.total + x, history.squares + x * x, history.noise + proposal.train_deviation**2
    )


def chance(mean: float, deviation: float, proposal: Proposal, needed: float) -> float:
    """Return the foreseen probability that a test passes.

    Examples
    --------
    >>> chance(0.01, 0.0, Proposal(0.01, 0.1, 1000, 1000), 1.0)
    0.5
    """
    scale = proposal.deviation
    above = (mean - proposal.delta) / scale - needed
    return 0.5 * math.erfc(-above / math.sqrt(2.0 * (1.0 + (deviation / scale) ** 2)))


def share_of_error_budget(state: GateState, proposal: Proposal, test: GateTest) -> float | None:
    """Return q, the share of the error budget to test a candidate at; ``None`` where a look is not worth its price.

    What is gained is the foreseen probability B(q) of a keep; what is paid is `_PRICE` for each nat of risk, on average
    over both outcomes.

    Examples
    --------
    >>> from thresholdout.mechanisms.claims.gate_tests import SignGate
    >>> test = SignGate(0, 0, one_law=True)
    >>> share_of_error_budget(GateState(-3.0), Proposal(0.05, 0.05, 20000, 10000), test) > 0.95
    True
    >>> share_of_error_budget(GateState(-3.0), Proposal(-0.01, 0.05, 20000, 10000), test) is None
    True
    """
    mean, deviation = foreseen(state.history, proposal)
    best, found = 0.0, None
    for share in _SHARES:
        keep = chance(mean, deviation, proposal, test.needed(proposal, _log_level(state.log_error_budget, share)))
        gain = keep - _PRICE * (keep * -math.log(share) + (1.0 - keep) * -math.log1p(-share))
        if gain > best:
            best, found = gain, share
    return found


def propose(state: GateState, proposal: Proposal, test: GateTest, share: float | None) -> Decision:
    """Decide about one candidate.

    Examples
    --------
    >>> from thresholdout.mechanisms.claims.gate_tests import SignGate
    >>> good, test = Proposal(0.02, 0.05, 20_000, 10_000), SignGate(350, 150, one_law=True)
    >>> start = GateState(math.log(0.05))
    >>> made = propose(start, good, test, share_of_error_budget(start, good, test))
    >>> made.outcome, round(made.state.log_error_budget - math.log(0.05), 2)
    ('keep', -0.0...)
    >>> propose(made.state, good, test, None).log_level is None
    True
    """
    state = replace(state, history=remembered(state.history, proposal))
    return Decision("reject", None, state) if share is None else decide(state, proposal, test, share)


def decide(state: GateState, proposal: Proposal, test: GateTest, share: float) -> Decision:
    """Test a candidate at a share of the error budget.

    Examples
    --------
    >>> from thresholdout.mechanisms.claims.gate_tests import SignGate
    >>> test = SignGate(9, 0, one_law=True)
    >>> decision = decide(GateState(math.log(0.04)), Proposal(0.02, 0.05, 2000, 1000), test, 0.25)
    >>> decision.outcome, round(math.exp(decision.log_level), 4), round(math.exp(decision.state.log_error_budget), 4)
    ('keep', 0.01, 0.01)
    """
    level = _log_level(state.log_error_budget, share)
    if test.passes(proposal, level):
        return Decision("keep", level, replace(state, log_error_budget=level, ahead=0.0, uncertain=0.0))
    return Decision("reject", level, replace(state, log_error_budget=_log_level(state.log_error_budget, 1.0 - share)))


def tolerated_shares(state: GateState, proposal: Proposal, test: GateTest, left: float) -> tuple[float, float]:
    """Return the shares of the error budget for *keep* and *worse*; the rest is left if neither passes.

    *Worse* is always tested. With m declared proposals left it has a share of 1/m, so each has beta over their number
    while nothing fires; otherwise levels fall as one over the square of the number. *Keep* is tested where the training
    part expects that it passes. Each harmless proposal pays for it, so with m left a nat costs a third of m: all keeps
    together then cost about three nats.

    Examples
    --------
    >>> from thresholdout.mechanisms.claims.gate_tests import TrinomialGate
    >>> test = TrinomialGate(0, 0, 10_000)
    >>> tolerated_shares(GateState(-3.0), Proposal(0.0, 0.2, 1e4, 1e4, -0.02), test, 300)
    (0.0, 0.0033...)
    >>> keep, worse = tolerated_shares(GateState(-3.0), Proposal(0.0, 0.05, 2e4, 1e4, -0.02), test, math.inf)
    >>> keep > 0.85, worse
    (True, 0.1)
    """
    worse = min(0.5, 1.0 / left) if left < math.inf else 1.0 / (state.history.count + _TESTED)
    price = max(_PRICE, left / 3.0) if left < math.inf else _PRICE
    mean, deviation = foreseen(state.history, proposal)
    best, found = 0.0, 0.0
    for share in _SHARES:
        part = share * (1.0 - worse)
        keep = chance(mean, deviation, proposal, test.needed(proposal, _log_level(state.log_error_budget, part)))
        lost = keep * -math.log(part) + (1.0 - keep) * -math.log1p(-part - worse)
        gain = keep - price * (lost + math.log1p(-worse))
        if gain > best:
            best, found = gain, part
    return found, worse


def settle(state: GateState, proposal: Proposal, test: GateTest, shares: tuple[float, float]) -> Decision:
    """Test "worse", then "not worse by more than a tolerance"; each outcome leaves its own share of the error budget.

    Examples
    --------
    >>> from thresholdout.mechanisms.claims.gate_tests import TrinomialGate
    >>> start, proposal = GateState(math.log(0.04)), Proposal(0.0, 0.1, 2000, 400, -0.05)
    >>> found = [settle(start, proposal, TrinomialGate(*k, 400), (0.5, 0.25)) for k in ((20, 80), (30, 30), (22, 36))]
    >>> [decision.outcome for decision in found]
    ['worse', 'keep', 'reject']
    >>> round(math.exp(found[2].state.log_error_budget), 4)
    0.01
    """
    keep, worse = shares
    state = replace(state, history=remembered(state.history, proposal))
    level = _log_level(state.log_error_budget, worse)
    if test.mirrored().passes(replace(proposal, difference=-proposal.difference, delta=0.0), level):
        return Decision("worse", level, replace(state, log_error_budget=level))
    if keep > 0.0:
        level = _log_level(state.log_error_budget, keep)
        if test.passes(proposal, level):
            return Decision("keep", level, replace(state, log_error_budget=level))
    return Decision(
        "reject", level, replace(state, log_error_budget=_log_level(state.log_error_budget, 1.0 - keep - worse))
    )


def climb(state: GateState, proposal: Proposal) -> tuple[bool, GateState]:
    """Take a candidate or not by cross-validation alone, which costs nothing and claims nothing.

    Examples
    --------
    >>> taken, state = climb(GateState(-3.0), Proposal(0.01, 0.05, 2000, 1000))
    >>> taken, round(state.ahead, 6)
    (True, 0.005)
    >>> climb(state, Proposal(0.007, 0.05, 2000, 1000))[0]
    False
    """
    mean, deviation = foreseen(state.history, proposal)
    taken = proposal.difference > _STEP * proposal.train_deviation
    ahead, uncertain = (mean, deviation * deviation) if taken else (0.0, 0.0)
    history = remembered(state.history, proposal)
    return taken, GateState(state.log_error_budget, history, state.ahead + ahead, state.uncertain + uncertain)


def worth_a_checkpoint(state: GateState, proposal: Proposal, test: GateTest) -> bool:
    """Whether the present model is likely enough to be confirmed against the last certified one.

    What is foreseen is the sum of the steps', each as `foreseen` when it was taken: the difference of both models in
    cross-validation is the sum of steps that were chosen for being large.

    Examples
    --------
    >>> from thresholdout.mechanisms.claims.gate_tests import SignGate
    >>> state = GateState(-3.0, ahead=0.03, uncertain=1e-5)
    >>> worth_a_checkpoint(state, Proposal(0.03, 0.1, 4000, 2000), SignGate(0, 0, one_law=True))
    True
    """
    needed = test.needed(proposal, _log_level(state.log_error_budget, 0.5))
    return chance(state.ahead, math.sqrt(state.uncertain), proposal, needed) >= _LIKELY


def checkpoint(state: GateState, proposal: Proposal, test: GateTest) -> Decision:
    """Test the present model against the last certified one at half of the risk; either outcome leaves the other half.

    After a rejection less is foreseen, of the holdout's mean difference and not only of the true one: it is below what
    the test asked for, and the next test is of the same records.

    Examples
    --------
    >>> from thresholdout.mechanisms.claims.gate_tests import SignGate
    >>> state, test = GateState(math.log(0.04), ahead=0.02, uncertain=1e-5), SignGate(3, 0, one_law=True)
    >>> made = checkpoint(state, Proposal(0.03, 0.1, 4000, 2000), test)
    >>> made.outcome, round(math.exp(made.state.log_error_budget), 4), made.state.ahead < 0.02
    ('reject', 0.02, True)
    """
    made = decide(state, proposal, test, 0.5)
    if made.outcome == "keep":
        return made
    noise = proposal.deviation**2
    edge = proposal.delta + proposal.deviation * test.needed(proposal, _log_level(state.log_error_budget, 0.5))
    ahead, spread = below(state.ahead, state.uncertain + noise, edge)
    return replace(made, state=replace(made.state, ahead=ahead, uncertain=max(0.0, spread - noise)))


def below(mean: float, variance: float, edge: float) -> tuple[float, float]:
    """Return mean and variance of a normal number, given that it is below an edge.

    Examples
    --------
    >>> lower, smaller = below(0.0, 1.0, 0.0)  # half of a normal law
    >>> round(lower, 4), round(smaller, 4)  # -sqrt(2/pi), 1 - 2/pi
    (-0.7979, 0.3634)
    """
    from scipy.special import log_ndtr

    scale = math.sqrt(variance)
    at = (edge - mean) / scale
    ratio = math.exp(-0.5 * at * at - 0.5 * math.log(2.0 * math.pi) - float(log_ndtr(at)))
    return mean - scale * ratio, max(0.0, variance * (1.0 - ratio * (at + ratio)))


def last_evaluation(state: GateState, proposal: Proposal, test: GateTest) -> Decision:
    """Test the present model at all of the risk but a little, which keeps later intervals finite.

    Examples
    --------
    >>> from thresholdout.mechanisms.claims.gate_tests import SignGate
    >>> test = SignGate(5, 0, one_law=True)
    >>> made = last_evaluation(GateState(math.log(0.04)), Proposal(0.03, 0.1, 4000, 2000), test)
    >>> made.outcome, round(math.exp(made.log_level), 4)  # 1/32 is below 0.04
    ('keep', 0.04)
    """
    return decide(state, proposal, test, 1.0 - FAILURE_SHARE)


def _log_level(log_error_budget: float, share: float) -> float:
    """Return the logarithm of a share of what is not set aside for failures, rounded down."""
    return log_error_budget + math.log(share) + math.log1p(-2.0 * FAILURE_SHARE) - _ROUNDING + _ULPS * log_error_budget
