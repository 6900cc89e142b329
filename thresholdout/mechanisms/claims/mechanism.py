"""Thresholdout with one number: claims about the holdout, paid from the remaining error budget.

A *claim* is an interval hypothesis about a query's value, placed around the training value, which earlier answers may
have corrected. If the holdout confirms it, the interval is the answer, at the price of the share that was set aside for
the other outcomes. If not, the outcome is the direction, and the mechanism retries with another interval. Theorem
(PROOFS.md, "The remaining error budget"): the probability that any confirmed claim is false is at most beta, for any
client, any queries, any number of them and any stopping time.

References
----------
C. Dwork, V. Feldman, M. Hardt, T. Pitassi, O. Reingold, A. Roth, "Generalization in adaptive data analysis and holdout
reuse", NeurIPS 2015, for the test with noise in threshold and comparison; R. Rogers et al., "Guaranteed validity for
empirical approaches to adaptive data analysis", AISTATS 2020, for guesses that are checked. The accounting is another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

from thresholdout.data.arguments import check_unit
from thresholdout.data.parts.totals import GroupTotals, Joint, Totals
from thresholdout.data.values import UnitRecords, record_rounding
from thresholdout.errors import BudgetExhausted
from thresholdout.limits.bets import ManyValues
from thresholdout.limits.group_sums import GroupSums
from thresholdout.mechanisms.base import UNKNOWN, Known, Mechanism, Outcome, PairedCounts, refuse_if
from thresholdout.mechanisms.claims.final import CHOSEN, INNER, check_expected, final_interval
from thresholdout.mechanisms.claims.interval import BetTest, ClaimOutcome, MeanTest, TwoEnds
from thresholdout.mechanisms.claims.lists import (
    CLOSED,
    FEW,
    NOTHING,
    PRECISE,
    Told,
    after_list,
    after_release,
    cell_nats,
    ends_nats,
    list_level,
)
from thresholdout.mechanisms.claims.predictor import Prediction, PredictorState, learn, predict
from thresholdout.mechanisms.claims.query_claims import QueryClaims, check_covered, refuse_private
from thresholdout.mechanisms.claims.reading import (
    COARSE,
    FINE,
    Reading,
    random_order,
    read_bets,
    read_groups,
    read_sums,
    read_totals,
    read_values,
    variance_of,
)
from thresholdout.mechanisms.claims.score import FAILURE_SHARE, MAX_RETRIES, Found, lowered, search, start_error_budget
from thresholdout.mechanisms.claims.state import ClaimsState
from thresholdout.noise.sources import NoiseSource, SeededNoise

if TYPE_CHECKING:
    from thresholdout.mechanisms.claims.evidence import Evidence

__all__ = ["ClaimsMechanism"]

_TYPICAL: Final = 0.0475  # variance of a value that is right 95 times in 100; scales the first edge's noise only
_RESERVES: Final = (0.05, 0.2, 0.5)  # candidates for few declared queries; any share is valid
_NOTHING_MORE: Final = 1e-9  # reserved by the last query
_USUAL: Final = 100  # queries, where their number is not declared


class ClaimsMechanism(QueryClaims, Mechanism[ClaimsState, Reading]):
    """Answer queries by claims: interval hypotheses about means, which the holdout confirms or not.

    It is the default mechanism of a guard (`thresholdout.Thresholdout`), which calls it. A claim states that the mean
    lies in an interval around the training value. If the holdout confirms the claim, the answer is the training value.
    Otherwise a wider interval is tested, which spends part of the error budget that all answers share.

    Parameters
    ----------
    parameters : ClaimsParameters
        Confidence, limits, noise, and the dependence of the records.
    n : int
        Number of records.

    Attributes
    ----------
    parameters : ClaimsParameters
        The parameters that were passed.

    Examples
    --------
    >>> from thresholdout.mechanisms import Known
    >>> from thresholdout.mechanisms.claims import ClaimsParameters
    >>> from thresholdout.noise.sources import SeededNoise
    >>> mechanism, noise = ClaimsMechanism(ClaimsParameters(queries=100), n=1000), SeededNoise(0)
    >>> values = mechanism.read([1] * 940 + [0] * 60, 1000, (0, 1), "values", Known(binary=True))
    >>> state, outcome = mechanism.step(mechanism.start(noise), 0.95, values, noise)
    >>> outcome.value, outcome.source, [round(limit, 3) for limit in outcome.interval]
    (0.95, 'train', [0.907, 0.985])
    """

    name: ClassVar[str] = "claims"
    statistics: ClassVar[bool] = True
    from_totals: ClassVar[bool] = True
    expects_spread: ClassVar[bool] = True

    def shares_error_budget(self, what: str, instead: str = "", *, private: str | None = None) -> ClaimsMechanism:
        """Return this mechanism, and refuse a request that the epsilon of its answers does not cover."""
        if self.parameters.epsilon is not None:
            raise refuse_private(private or what)
        return self

    def start(self, noise: NoiseSource) -> ClaimsState:
        """Return the state before the first query."""
        log_error_budget = start_error_budget(self.parameters.confidence, self.parameters.information_released)
        exponent = self._exponent(_TYPICAL, UNKNOWN)
        return ClaimsState(log_error_budget, 0, 0, 0, exponent, self._edges.edge(exponent, noise), PredictorState())

    def read(
        self, values: object, n: int, bounds: tuple[float, float], argument: str, known: Known = UNKNOWN
    ) -> Reading:
        """Check the values of the holdout records and reduce them to a count or an exact mean, where not bet on."""
        bets = self.needs_squares(known)
        if isinstance(values, GroupTotals):
            return Reading(GroupSums(values.sums, values.sizes, values.bits), known)
        if isinstance(values, (Totals, Joint)):
            return read_totals(values, known, bets)
        if known.groups is not None and self._bets_on_groups(known):
            return read_groups(values, n, bounds, argument, known, known.groups)
        if known.blocks is not None and self._bets_on_blocks(known):
            return read_groups(values, n, bounds, argument, known, known.blocks)
        if bets:
            read = read_values if known.trinomial else read_bets  # signs need single values
        else:
            read = read_sums
        return read(values, n, bounds, argument, known)

    def needs_squares(self, known: Known) -> bool:
        """Return whether values are bet on; see `Mechanism.needs_squares`."""
        return not known.binary and self._bets(known)

    def needs_group_sums(self, known: Known) -> bool:
        """Return whether bets are placed on the sums of groups; see `Mechanism.needs_group_sums`."""
        return self._bets_on_groups(known)

    def statistic(self, evidence: Sequence[Evidence], known: Known) -> Reading:
        """Return the reading of a statistic; see `thresholdout.mechanisms.claims.statistic_claims`."""
        return Reading(tuple(evidence), known)

    def paired_counts(self, counts: PairedCounts, known: Known) -> Reading:
        """Return the reading of a win rate from the wins and losses of two models."""
        return Reading(counts, known)

    def step(
        self, state: ClaimsState, train: float, holdout: Reading, noise: NoiseSource
    ) -> tuple[ClaimsState, Outcome]:
        """Answer one query; see `Mechanism.step`."""
        refuse_if(self.refusal(state))
        check_unit("train", train)
        self.check_covered(holdout.known)
        state = _given(state, holdout.known)
        made, variance = self._predict(state, train, holdout.known)
        claim = self._claim(made, variance, holdout, noise)
        window = self._window(state, made, claim)
        state = self._quieter(state, variance, holdout.known, noise)
        scales = () if self.noiseless(holdout.known) else self._edges.scales(state.exponent)
        edge = state.edge

        def ask(lo: int, hi: int, log_level: float) -> ClaimOutcome:
            nonlocal claim, edge
            outcome = claim.outcome(lo, hi, log_level, scales, (edge, *self._edges.tests(state.exponent, noise)))
            if outcome != "confirmed":
                edge, claim = self._edges.edge(state.exponent, noise), claim.wider() if outcome == "wide" else claim
            return outcome

        most = MAX_RETRIES if self._private is None else self._private.most(state.outcomes)
        found = search(window, claim.steps, state.log_error_budget, ask, self._pad(claim, scales), claim.others, most)
        low, high = _rounded(*claim.interval(found.lo, found.hi, found.log_level, scales), self._n)
        after = replace(
            state,
            log_error_budget=found.log_error_budget,
            asked=state.asked + 1,
            hits=state.hits + (found.outcomes > 0),
            outcomes=state.outcomes + found.outcomes,
            edge=edge,
            memory=state.memory if holdout.known.difference else self._learned(state, made, found, claim.steps),
        )
        return after, Outcome(
            value=_told(made, found, low, high, claim.steps),
            source="holdout" if found.outcomes else "train",
            hits=state.hits,
            asked=after.asked,
            interval=(low, high),
            log_error_budget=after.log_error_budget,
        )

    def fail(
        self, state: ClaimsState, train: float, noise: NoiseSource, *, final: bool = False
    ) -> tuple[ClaimsState, Outcome]:
        """Release that a query, or the final check, could not be computed, as *raised*; see `Mechanism.fail`."""
        refuse_if(self.refuses_final(state) if final else self.refusal(state))
        after = replace(
            state,
            log_error_budget=lowered(state.log_error_budget + math.log(FAILURE_SHARE)),
            asked=state.asked + 1,
            hits=state.hits + 1,
            outcomes=state.outcomes + 1,
            edge=self._edges.edge(state.exponent, noise),
        )
        return after, Outcome(
            train, "failed", state.hits, after.asked, interval=(0.0, 1.0), log_error_budget=after.log_error_budget
        )

    def step_all(
        self, state: ClaimsState, asked: Sequence[tuple[float, Reading]], noise: NoiseSource, reserve: float = 0.2
    ) -> tuple[ClaimsState, list[Outcome]]:
        """Answer a list of queries that were fixed together; see `thresholdout.mechanisms.claims.lists`."""
        refuse_if(self.refusal(state, len(asked)))
        for _, reading in asked:
            state = _given(state, reading.known)
        level = list_level(state.log_error_budget, len(asked), reserve)
        told, memory = [], state.memory
        for train, reading in asked:
            made, variance = self._predict(state, train, reading.known)
            item, lo, hi, steps = self._stated(
                made, variance, reading, noise, level, FINE if reserve <= 0.0 else COARSE
            )
            if not reading.known.difference:
                memory = learn(memory, made, (lo - 0.5) / steps, (hi + 0.5) / steps)
            told.append(item)
        left = after_list(state.log_error_budget, reserve, told)
        after = replace(
            state,
            log_error_budget=left,
            asked=state.asked + len(asked),
            hits=state.hits + len(asked),
            outcomes=state.outcomes + len(asked),
            memory=memory,
        )
        return after, [
            Outcome(
                item.value,
                "holdout",
                state.hits + k,
                state.asked + k + 1,
                interval=item.interval,
                log_error_budget=left,
            )
            for k, item in enumerate(told)
        ]

    def step_best(
        self,
        state: ClaimsState,
        asked: Sequence[tuple[float, Reading]],
        noise: NoiseSource,
        reserve: float,
        greatest: bool,
    ) -> tuple[ClaimsState, Outcome, int]:
        """Release which of some queries has the best value, and this value. Its position is one more outcome.

        All intervals hold at the level of a list, though only one is released. Where they are limits of counts of
        independent records, the estimand of every other query is at most the upper end of the released one (for the
        least value, at least its lower end). Its own value is not better, and limits at one level rise with the value.
        Intervals by bets, and so all those of groups, do not: their widths depend on training values too.
        """
        refuse_if(self.refusal(state))
        for _, reading in asked:
            state = _given(state, reading.known)
        level = list_level(state.log_error_budget, len(asked), reserve)
        found = []
        for train, reading in asked:
            made, variance = self._predict(state, train, reading.known)
            found.append((made, *self._stated(made, variance, reading, noise, level, COARSE)))
        values = [
            2.0 * reading.mean.mean() if isinstance(reading.values, GroupSums) else (lo + hi) / steps
            for (_, reading), (_, _, lo, hi, steps) in zip(asked, found, strict=True)
        ]
        place = values.index(max(values) if greatest else min(values))
        made, item, lo, hi, steps = found[place]
        told = Told(item.value, item.interval, item.nats + math.log(len(asked)))
        left = after_list(state.log_error_budget, reserve, [told])
        memory = learn(state.memory, made, (lo - 0.5) / steps, (hi + 0.5) / steps)
        after = replace(
            state,
            log_error_budget=left,
            asked=state.asked + 1,
            hits=state.hits + 1,
            outcomes=state.outcomes + 1,
            memory=memory,
        )
        outcome = Outcome(item.value, "holdout", state.hits, after.asked, interval=item.interval, log_error_budget=left)
        return after, outcome, place

    def _stated(
        self, made: Prediction, variance: float, reading: Reading, noise: NoiseSource, level: float, fine: int
    ) -> tuple[Told, int, int, int]:
        """State an interval directly; return the released numbers, and the cell of the holdout's value, in steps."""
        claim = _in_order(self._claim(made, variance, reading, noise, fine), reading, noise)
        steps = claim.steps
        if isinstance(claim, TwoEnds):
            middle = round(min(max(made.mean, 0.0), 1.0) * steps)
            lo, hi = claim.ends(level, middle / steps)
            interval = lo / steps, hi / steps
            doubt = self._doubt(variance, reading.known)
            nats = ends_nats(lo, hi, made, steps, claim.interval(middle, middle, level, ()), doubt)
            third = (hi - lo) // 3
            value, lo, hi = 0.5 * sum(interval), lo + third, hi - third
        else:
            lo, hi, interval = claim.stated(level)
            value, nats = lo / steps, cell_nats(lo, made, steps)
        low, high = _rounded(*interval, self._n)
        return Told(min(max(value, low), high), (low, high), nats), lo, hi, steps

    def direct(self, state: ClaimsState, train: float, known: Known, reserve: float = PRECISE) -> tuple[float, float]:
        """Return the expected half-width, and the cost in nats, of an interval that is stated directly."""
        made, variance = self._predict(state, train, known)
        claim = self._test(made, variance, known, COARSE)
        steps, level = claim.steps, list_level(state.log_error_budget, 1, reserve)
        middle = round(min(max(made.mean, 0.0), 1.0) * steps)
        low, high = claim.interval(middle, middle, level, ())
        if isinstance(claim, TwoEnds):
            ends = math.floor(low * steps), math.ceil(high * steps)
            nats = ends_nats(*ends, made, steps, (low, high), self._doubt(variance, known))
        else:
            nats = cell_nats(middle, made, steps)
        return 0.5 * (high - low), nats - math.log(reserve)

    def few_left(self, state: ClaimsState, train: float, known: Known) -> float | None:
        """Return the share to reserve if a query is to be stated directly, as one of few declared ones; or ``None``.

        The last one leaves nothing. Before that public numbers decide which way is narrower, on average over the
        remaining queries: a direct interval is narrow, and makes the next ones wider by the information that it
        releases.
        """
        queries = self.parameters.queries
        left = math.inf if queries is None else queries - state.queries
        declared = self.parameters
        if left > FEW or declared.final_check or self._private is not None or declared.anticipates:
            return None
        if declared.budget is not None or declared.max_half_width is not None:  # which interval hypotheses keep to
            return None
        if left <= 1:
            return 0.0
        low, high = self.first_claim(state, train, known).interval
        best, found = 0.5 * (high - low), None
        for reserve in _RESERVES:
            after, total = state, 0.0
            for later in range(int(left)):
                half, nats = self.direct(after, train, known, reserve if later < left - 1 else _NOTHING_MORE)
                after, total = replace(after, log_error_budget=after.log_error_budget - nats), total + half
            if total / left < best:
                best, found = total / left, reserve
        return found

    def final(
        self, state: ClaimsState, train: float, holdout: Reading, noise: NoiseSource
    ) -> tuple[ClaimsState, Outcome]:
        """Answer the final check with all of the remaining error budget; see `thresholdout.mechanisms.claims.final`.

        It is answered also after the declared numbers of queries, or of answers from the holdout.
        """
        from thresholdout.mechanisms.claims.statistic_claims import StatisticTest

        refuse_if(self.refuses_final(state))
        state = _given(state, holdout.known)
        made, variance = self._predict(state, train, holdout.known)
        claim = _in_order(self._claim(made, variance, holdout, noise), holdout, noise)
        inner = CHOSEN if holdout.known.chosen else INNER
        low, high = _rounded(*final_interval(claim, state.log_error_budget, made.mean, inner), self._n)
        if isinstance(claim, StatisticTest):
            value = claim.value
        elif isinstance(claim, TwoEnds):
            value = holdout.mean.mean()
        else:
            value = claim.stated(0.0)[0] / claim.steps
        asked, hits, outcomes = state.asked + 1, state.hits + 1, state.outcomes + 1
        after = replace(state, log_error_budget=CLOSED, asked=asked, hits=hits, outcomes=outcomes)
        value = min(max(value, low), high)
        return after, Outcome(value, "holdout", state.hits, asked, interval=(low, high), log_error_budget=CLOSED)

    def first_half_width(self, score: float) -> float:
        """Return the half-width of a first answer that is confirmed, for 100 queries where none are declared.

        Those of later answers are about the same, if training values deviate from the holdout's by sampling alone.
        """
        of = self if self.parameters.queries else ClaimsMechanism(replace(self.parameters, queries=_USUAL), self._n)
        low, high = of.first_claim(of.start(SeededNoise(0)), score, of.typical(score)).interval
        return 0.5 * (high - low)

    def refuses_final(self, state: ClaimsState) -> BudgetExhausted | None:
        """Return the reason why there is no final check any more, or ``None``."""
        if state.log_error_budget > NOTHING:
            return None
        what = "final_check" if state.log_error_budget <= CLOSED else "error_budget"
        return BudgetExhausted(what, state.queries, state.queries)

    def final_half_width(self, log_error_budget: float, expected: float, *, chosen: bool = False) -> float:
        """Return the half-width of a final check of a share of right predictions, at a likely score."""
        score = check_expected(expected)
        known = self.typical(score)
        if log_error_budget <= NOTHING:
            return 1.0
        _, effective, training = self._sizes(known)
        variance = variance_of(score, known, effective)
        made = predict(PredictorState(), score, variance, effective, training)
        steps = self._test(made, variance, known).steps
        claim = self._test(made, variance, known, value=round(score * steps))
        low, high = final_interval(claim, log_error_budget, score, CHOSEN if chosen else INNER)
        return max(score - low, high - score)

    def pay_release(self, state: ClaimsState, nats: Callable[[float], float]) -> tuple[ClaimsState, Outcome]:
        """Pay for another private release about the holdout, at a node of its own (PROOFS.md, B8)."""
        left = after_release(state.log_error_budget, nats)
        after = replace(state, log_error_budget=left, asked=state.asked + 1, other_releases=state.other_releases + 1)
        return after, Outcome(0.0, "release", state.hits, after.asked, interval=(0.0, 1.0), log_error_budget=left)

    def noted(self, state: ClaimsState) -> tuple[ClaimsState, Outcome]:
        """Write a line into the history; see `Mechanism.noted`."""
        after = replace(state, asked=state.asked + 1, other_releases=state.other_releases + 1)
        return after, Outcome(
            0.0, "note", state.hits, after.asked, interval=(0.0, 1.0), log_error_budget=state.log_error_budget
        )

    def refusal(self, state: ClaimsState, more: int = 1) -> BudgetExhausted | None:
        """Return the reason why no further query, or list of queries, is allowed, or ``None``."""
        closed = self.refuses_final(state)
        if closed is not None:
            return closed
        if self._private is not None and state.outcomes >= self._private.outcomes:
            return BudgetExhausted("epsilon", state.queries, state.queries)
        if state.hits + more > self._budget:
            return BudgetExhausted("budget", state.hits, int(self._budget))
        if state.queries + more > self._queries:
            return BudgetExhausted("queries", state.queries, int(self._queries))
        return None

    def refuses(self, state: ClaimsState, train: float, known: Known) -> BudgetExhausted | None:
        """Return the reason why this query is not allowed, or ``None``.

        A query is also refused if its first claim would be wider than ``max_half_width``. Public numbers decide, before
        the holdout is evaluated: a refusal free of charge must not depend on whether a query fails there.
        """
        self.check_covered(known)
        most, refusal = self.parameters.max_half_width, self.refusal(state)
        if refusal is not None or most is None:
            return refusal
        state = _given(state, known)
        first = self.first_claim(state, train, known)
        made, (low, high) = first.made, first.interval
        value = min(max(made.mean, low), high)
        share = 1.0 if known.part is None else known.part.records / self._n  # of the range that the part's values have
        wide = share * max(value - low, high - value) > most
        return BudgetExhausted("width", state.queries, state.queries) if wide else None

    def check_covered(self, known: Known) -> None:
        """Refuse a query that a declared epsilon does not cover; see `EdgeNoise`."""
        if self._private is not None:
            check_covered(known)

    def epsilon(self, n: int) -> float:
        """Bound the privacy loss of all answers together; see `Mechanism.epsilon`."""
        return math.inf if self._private is None else self._private.epsilon

    def restore(self, text: str) -> ClaimsState:
        """Return the state from the text that `ClaimsState.to_text` wrote."""
        return ClaimsState.from_text(text)

    def remaining(self, state: ClaimsState) -> int | None:
        """Return the number of further answers from the holdout, or ``None`` without a limit."""
        return None if self.parameters.budget is None else max(0, self.parameters.budget - state.hits)

    def log_error_budget(self, state: ClaimsState) -> float:
        """Return the natural logarithm of the remaining error budget."""
        return state.log_error_budget

    def _quieter(self, state: ClaimsState, variance: float, known: Known, noise: NoiseSource) -> ClaimsState:
        """Draw the edges' noise anew where it is too loud for this query; the query decides, not the records."""
        exponent = self._exponent(variance, known)
        if exponent >= state.exponent:
            return state
        return replace(state, exponent=exponent, edge=self._edges.edge(exponent, noise))

    def _learned(self, state: ClaimsState, made: Prediction, found: Found, steps: int) -> PredictorState:
        """Remember the confirmed cell, as far as noise in the edges lets it be known."""
        doubt = self._edges.deviation()
        return learn(state.memory, made, (found.lo - 0.5) / steps - doubt, (found.hi + 0.5) / steps + doubt)


def _given(state: ClaimsState, known: Known) -> ClaimsState:
    """Pay, once, for estimands that are given the labels (PROOFS.md, B9)."""
    if known.layout is None or not known.layout.given or state.given:
        return state
    return replace(state, log_error_budget=lowered(state.log_error_budget - math.log(2.0) * (1.0 + 1e-12)), given=True)


def _in_order(claim: MeanTest | TwoEnds, reading: Reading, noise: NoiseSource) -> MeanTest | TwoEnds:
    """Draw the order of values of one law whose limits are stated; totals have none."""
    if (
        not isinstance(claim, BetTest)
        or not reading.known.one_law
        or not isinstance(reading.values, (UnitRecords, ManyValues))
    ):
        return claim
    values = reading.records.unit()
    return claim.in_order(values[random_order(values.size, noise)])


def _rounded(low: float, high: float, n: int) -> tuple[float, float]:
    """Return an interval for the values as given, from one for values that were rounded to a grid."""
    rounding = record_rounding(n)
    return max(0.0, low - rounding), min(1.0, high + rounding)


def _told(made: Prediction, found: Found, low: float, high: float, steps: int) -> float:
    """Return the released value: the prediction where it was confirmed, otherwise the middle of the cell."""
    value = made.mean if not found.outcomes else 0.5 * (found.lo + found.hi) / steps
    return min(max(value, low), high)
