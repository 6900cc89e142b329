"""Keep or reject a candidate: a claim about two models that releases only its outcome.

The claim is "the candidate is better than the champion by more than delta", tested at a level ``w = q R``. *Keep*
leaves w, *reject* leaves ``R - w`` and claims nothing. `FAILURE_SHARE` of R is set aside for a comparison that fails on
the holdout, and as much for an interrupted one. So an expected keep costs ``ln(1/q)``, a tenth of a nat, and not the
logarithm of the number of proposals. Cross-validation of this candidate and of earlier ones determines q. A test that
is not worth its price is not made: the candidate is rejected, and nothing is spent.

PROOFS.md, "Comparisons and gates", has the proof that the probability of any false keep in a whole climb is at most
beta. Everything here is a function of public numbers, except a test's values from the holdout.
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
# The next five choose tests and their shares; any choice is valid.
_PRIOR: Final = 4.0  # proposals without effect that the first ones are averaged with
_PRICE: Final = 0.1  # of a nat, in kept candidates
_TESTED: Final = 10.0  # the first of an undeclared number of proposals is tested for "worse" at a tenth of the budget
_STEP: Final = 1.5  # standard deviations that a climb on cross-validation requires
_LIKELY: Final = 0.9  # predicted probability of a confirmation from which a checkpoint is tested
_SHARES: Final = tuple(1.0 / (1.0 + math.exp(-0.5 * step)) for step in range(-14, 10))  # 0.001 to 0.989


@dataclass(frozen=True, slots=True)
class History:
    """Cross-validation of earlier candidates; public.

    The number of them, and sums of their differences, of the squares of these, and of the variances of sampling noise.
    """

    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    noise: float = 0.0


@dataclass(frozen=True, slots=True)
class GateState:
    """The memory of a gate between two proposals; public.

    `ahead` and `uncertain` are mean and variance of the predicted lead of the present model over the last certified
    one; 0 where every step is certified.
    """

    log_error_budget: float
    history: History = History()
    ahead: float = 0.0
    uncertain: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """A gate's decision about one candidate, its level (``None`` without an evaluation), and the state after it.

    "keep" claims that the candidate is better, or not worse by more than a tolerance; "worse" that it is worse;
    "reject" claims nothing.
    """

    outcome: Literal["keep", "reject", "worse"]
    log_level: float | None
    state: GateState


def foreseen(history: History, proposal: Proposal) -> tuple[float, float]:
    """Return mean and standard deviation of the true difference, from cross-validation of this and earlier candidates.

    Empirical Bayes: earlier differences are a normal law of mean mu and variance t2, and sampling noise; the first
    ones are averaged with a few proposals without effect, spread as widely as the noise of this one.
    """
    noise = proposal.train_deviation**2
    number = history.count + _PRIOR
    middle = history.total / number
    spread = (history.squares + 2.0 * _PRIOR * noise) / number - middle * middle
    variance = max(0.1 * noise, spread - (history.noise + _PRIOR * noise) / number)
    weight = variance / (variance + noise)
    return middle + weight * (proposal.difference - middle), math.sqrt(weight * noise)


def remembered(history: History, proposal: Proposal) -> History:
    """Return the history with one more proposal."""
    x = proposal.difference
    return History(
        history.count + 1, history.total + x, history.squares + x * x, history.noise + proposal.train_deviation**2
    )


def chance(mean: float, deviation: float, proposal: Proposal, needed: float) -> float:
    """Return the predicted probability that a test passes."""
    scale = proposal.deviation
    above = (mean - proposal.delta) / scale - needed
    return 0.5 * math.erfc(-above / math.sqrt(2.0 * (1.0 + (deviation / scale) ** 2)))


def share_of_error_budget(state: GateState, proposal: Proposal, test: GateTest) -> float | None:
    """Return q, the share of the error budget for a candidate's test; ``None`` where it is not worth its price.

    The gain is the predicted probability B(q) of a keep. The price is `_PRICE` for each nat of error budget, on average
    over both outcomes.
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
    """Decide about one candidate."""
    state = replace(state, history=remembered(state.history, proposal))
    return Decision("reject", None, state) if share is None else decide(state, proposal, test, share)


def decide(state: GateState, proposal: Proposal, test: GateTest, share: float) -> Decision:
    """Test a candidate at a share of the error budget."""
    level = _log_level(state.log_error_budget, share)
    if test.passes(proposal, level):
        return Decision("keep", level, replace(state, log_error_budget=level, ahead=0.0, uncertain=0.0))
    return Decision("reject", level, replace(state, log_error_budget=_log_level(state.log_error_budget, 1.0 - share)))


def tolerated_shares(state: GateState, proposal: Proposal, test: GateTest, left: float) -> tuple[float, float]:
    """Return the shares of the error budget for *keep* and *worse*; the rest remains if neither passes.

    *Worse* is always tested. With m remaining declared proposals it has a share of 1/m, so each has beta over their
    number while nothing fires; otherwise levels fall as one over the square of the number. *Keep* is tested where the
    training part expects that it passes. Each harmless proposal pays for it, so with m remaining a nat costs a third of
    m: all keeps together then cost about three nats.
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
    """Test "worse", then "not worse by more than a tolerance"; each outcome leaves its own share of the budget."""
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
    """Take a candidate or not by cross-validation alone, which costs nothing and claims nothing."""
    mean, deviation = foreseen(state.history, proposal)
    taken = proposal.difference > _STEP * proposal.train_deviation
    ahead, uncertain = (mean, deviation * deviation) if taken else (0.0, 0.0)
    history = remembered(state.history, proposal)
    return taken, GateState(state.log_error_budget, history, state.ahead + ahead, state.uncertain + uncertain)


def worth_a_checkpoint(state: GateState, proposal: Proposal, test: GateTest) -> bool:
    """Whether the present model is likely enough to be confirmed against the last certified one.

    The prediction is the sum of those of the steps, each by `foreseen` when it was taken. The difference of both models
    in cross-validation would be too large: it is the sum of steps that were chosen for being large.
    """
    needed = test.needed(proposal, _log_level(state.log_error_budget, 0.5))
    return chance(state.ahead, math.sqrt(state.uncertain), proposal, needed) >= _LIKELY


def checkpoint(state: GateState, proposal: Proposal, test: GateTest) -> Decision:
    """Test the present model against the last certified one at half of the budget; either outcome leaves the rest.

    After a rejection the predicted lead falls, for the holdout's mean difference and not only for the true one: it is
    below the test's requirement, and the next test is of the same records.
    """
    made = decide(state, proposal, test, 0.5)
    if made.outcome == "keep":
        return made
    noise = proposal.deviation**2
    edge = proposal.delta + proposal.deviation * test.needed(proposal, _log_level(state.log_error_budget, 0.5))
    ahead, spread = below(state.ahead, state.uncertain + noise, edge)
    return replace(made, state=replace(made.state, ahead=ahead, uncertain=max(0.0, spread - noise)))


def below(mean: float, variance: float, edge: float) -> tuple[float, float]:
    """Return mean and variance of a normal number, given that it is below an edge."""
    from scipy.special import log_ndtr

    scale = math.sqrt(variance)
    at = (edge - mean) / scale
    ratio = math.exp(-0.5 * at * at - 0.5 * math.log(2.0 * math.pi) - float(log_ndtr(at)))
    return mean - scale * ratio, max(0.0, variance * (1.0 - ratio * (at + ratio)))


def last_evaluation(state: GateState, proposal: Proposal, test: GateTest) -> Decision:
    """Test the present model at all of the error budget but a little, which keeps later intervals finite."""
    return decide(state, proposal, test, 1.0 - FAILURE_SHARE)


def _log_level(log_error_budget: float, share: float) -> float:
    """Return the logarithm of a share of the budget beside the reserve for failures, rounded down."""
    return log_error_budget + math.log(share) + math.log1p(-2.0 * FAILURE_SHARE) - _ROUNDING + _ULPS * log_error_budget
