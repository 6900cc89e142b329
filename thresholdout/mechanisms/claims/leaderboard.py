"""A leaderboard: each team states its expected score, and only a wrong guess costs anything.

Participants know the training labels, so they can make a score on the training part say anything. Here it is a guess:
the range is divided into cells, all of one width for a proportion's angle, the middle one around the guess, and the
answer is the cell of the holdout's value. Each cell has a claim of its own and a share of the remaining error budget
(PROOFS.md, B11). The cell of the guess has nearly all of it, so that a good guess costs next to nothing. The others
share a code that is longer for more distant cells. No answer takes more than one outcome, however wrong the guess is.
Where records have groups a cell is two outcomes: with an interval that bets on group sums confirm, and with the wider
one from the groups' sizes.

The memory of each client makes junk cheap for everybody else. It counts wrong guesses (another one then has a larger
share), and keeps the distance of the last wrong one (the next is moved by as much). An allowance limits the information
that all answers of one client release together; nobody else's queries are refused for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import ClassVar, Final

from thresholdout.data.arguments import check_unit
from thresholdout.data.values import record_rounding
from thresholdout.errors import BudgetExhausted, InputError
from thresholdout.mechanisms.base import Known, Outcome, PairedCounts, refuse_if
from thresholdout.mechanisms.claims.clients import (
    NEWCOMERS,
    Client,
    Newcomers,
    client_of,
    credited,
    kept_as,
    newcomers_of,
)
from thresholdout.mechanisms.claims.group_tests import GroupBetTest
from thresholdout.mechanisms.claims.interval import MeanTest
from thresholdout.mechanisms.claims.mechanism import ClaimsMechanism
from thresholdout.mechanisms.claims.predictor import PredictorState, predict
from thresholdout.mechanisms.claims.proposals import proposal_refusal
from thresholdout.mechanisms.claims.reading import Reading, variance_of
from thresholdout.mechanisms.claims.score import FAILURE_SHARE, lowered
from thresholdout.mechanisms.claims.state import ClaimsState
from thresholdout.noise.sources import NoiseSource, SystemNoise

__all__ = ["AngleCells", "LeaderboardMechanism"]

_LEAST_AHEAD: Final = 100
"""Least number of further queries to expect, where none is declared."""

# All shares are valid as long as they sum to at most 1; these suit good guesses that are sometimes wrong.
_EVEN: Final = 0.2  # of the share for wrong guesses, in equal parts; the rest falls with the distance from the guess
_WRONG: Final = 0.01  # least share for a wrong guess by an unknown client
_VAGUE: Final = 0.1  # share for another cell, where nothing is guessed and the last answer stands in
_RECALLED: Final = 1.5  # times the width, where the expected value comes from an earlier answer
_WIDE: Final = 0.01  # of a cell's share, for an interval by the sizes of groups, where bets on their sums are lost
_NARROW: Final = math.log1p(-_WIDE)
_ROUNDING: Final = 1.0 - 1e-9  # of a share, far above the rounding of their sum
_NORMAL: Final = NormalDist()
_SPREAD: Final = (0.7548776662466927, 0.5698402909980532)
"""Steps of a sequence that fills a square evenly: 1/p and 1/p**2 where p**3 = p + 1 (Roberts 2018)."""


@dataclass(frozen=True, slots=True)
class AngleCells:
    """Cells of the range, of one width for the angle asin sqrt(p), and each one's share of the error budget.

    `edges` are the first step of each cell, and one more than the last step; increasing, or equal for a cell without
    steps. `middle` is the cell with the guess. The shares, as logarithms, sum to at most 1 less the reserve for
    failures.
    """

    edges: tuple[int, ...]
    middle: int
    log_shares: tuple[float, ...]

    @classmethod
    def around(cls, guess: float, reach: float, steps: int, share: float, *, even: bool = False) -> AngleCells:
        """Divide the range."""
        angle = math.asin(math.sqrt(guess))
        below = max(0, math.ceil((angle - reach) / (2.0 * reach)))
        above = max(0, math.ceil((0.5 * math.pi - angle - reach) / (2.0 * reach)))
        inner = [_first_step(angle + (2 * k - 1) * reach, steps) for k in range(1 - below, above + 1)]
        edges = [0]
        for edge in inner:
            edges.append(max(edge, edges[-1]))
        cells = below + above + 1
        if even or cells == 1:
            shares = [1.0 / cells] * cells
        else:
            near = [_near(abs(k - below)) for k in range(cells)]
            falling = (1.0 - _EVEN) / math.fsum(near)
            shares = [share * (_EVEN / (cells - 1) + falling * part) for part in near]
            shares[below] = 1.0 - share
        kept = math.log1p(-2.0 * FAILURE_SHARE)
        return cls((*edges, steps + 1), below, tuple(lowered(math.log(one * _ROUNDING) + kept) for one in shares))

    def holding(self, value: int) -> int:
        """Return the number of a value's cell."""
        return next(cell for cell in range(len(self.log_shares)) if value < self.edges[cell + 1])

    def limits(self, cell: int) -> tuple[int, int]:
        """Return the first and the last step of a cell."""
        return self.edges[cell], self.edges[cell + 1] - 1


def _first_step(angle: float, steps: int) -> int:
    """Return the first step from an angle on."""
    return min(steps + 1, max(0, math.ceil(steps * math.sin(min(max(angle, 0.0), 0.5 * math.pi)) ** 2)))


def _near(distance: int) -> float:
    """Return the weight of a cell at a distance from the guess, whose logarithm falls slowly."""
    return 1.0 / (distance * (distance + 1)) if distance else 0.0


class LeaderboardMechanism(ClaimsMechanism):
    """Claims by cells around guesses, with an allowance for each client."""

    name: ClassVar[str] = "leaderboard"
    statistics: ClassVar[bool] = False
    from_totals: ClassVar[bool] = False

    def step(
        self, state: ClaimsState, train: float, holdout: Reading, noise: NoiseSource
    ) -> tuple[ClaimsState, Outcome]:
        """Release the cell of one query's value; see `Mechanism.step`."""
        refuse_if(self.refusal(state))
        check_unit("train", train)
        known = holdout.known
        guess = _guess(client_of(state, known.client), newcomers_of(state), train, known)
        _, effective, training = self._sizes(known)
        variance = variance_of(guess, known, effective)
        claim = self._claim(predict(PredictorState(), guess, variance, effective, training), variance, holdout, noise)
        if isinstance(claim, MeanTest):
            return self.release(state, train, claim, claim.value, known)
        assert isinstance(claim, GroupBetTest)
        value, cells = holdout.on_grid(claim.steps), self.cells(state, train, known, claim.steps)
        cell = cells.holding(value)
        level = lowered(state.log_error_budget + cells.log_shares[cell] + _NARROW)
        wide = claim.outcome(*cells.limits(cell), level, (), (0, 0, 0)) != "confirmed"
        return self.release(state, train, claim, value, known, wide=wide)

    def release(
        self,
        state: ClaimsState,
        train: float,
        claim: MeanTest | GroupBetTest,
        value: int,
        known: Known,
        *,
        wide: bool = False,
    ) -> tuple[ClaimsState, Outcome]:
        """Release the cell of a value of the holdout, in steps, and of groups whether bets on them were lost."""
        client, newcomers = client_of(state, known.client), newcomers_of(state)
        guess = _guess(client, newcomers, train, known)
        cells = self.cells(state, train, known, claim.steps)
        cell = cells.holding(value)
        level, stated = state.log_error_budget + cells.log_shares[cell], claim
        if isinstance(claim, GroupBetTest):
            level += math.log(_WIDE) if wide else _NARROW
            stated = claim.by_sizes(value) if wide else claim
        level = lowered(level)
        low, high = self._interval(stated, cells, cell, level)
        right = cell == cells.middle
        told = min(max(guess if right else 0.5 * sum(cells.limits(cell)) / claim.steps, low), high)
        off, distance = told - guess, abs(cell - cells.middle)
        learned = _learned(client, guess - train, off, distance, told, known, state.log_error_budget - level)
        climbs = {**state.climbs, kept_as(known.client): learned.numbers()}
        if known.client and not client.scored and not known.difference:
            climbs[NEWCOMERS] = newcomers.after(off, distance, told, known.vague).numbers()
        after = replace(
            state,
            log_error_budget=level,
            asked=state.asked + 1,
            hits=state.hits + (not right),
            outcomes=state.outcomes + (not right),
            climbs=climbs,
        )
        return after, Outcome(
            value=told,
            source="train" if right else "holdout",
            hits=state.hits,
            asked=after.asked,
            interval=(low, high),
            log_error_budget=level,
        )

    def cells(self, state: ClaimsState, train: float, known: Known, steps: int) -> AngleCells:
        """Return the cells of a query, and their shares: public numbers only."""
        client = client_of(state, known.client)
        share, even = self._share(client, state, known)
        guess = _guess(client, newcomers_of(state), train, known)
        return AngleCells.around(guess, self._reach(client, state, known), steps, share, even=even)

    def first_half_width(self, score: float) -> float:
        """Return half the length of the first answer's interval where the guess is right; see `Mechanism`."""
        return self.next_half_width(self.start(SystemNoise()), score)

    def next_half_width(self, state: ClaimsState, score: float) -> float:
        """Return half the length of the next interval of a client whose guess is right; public numbers only."""
        known = self.typical(score)
        claim = self._likely_test(score, known)
        cells = self.cells(state, score, known, claim.steps)
        narrow = _NARROW if isinstance(claim, GroupBetTest) else 0.0
        level = lowered(state.log_error_budget + cells.log_shares[cells.middle] + narrow)
        low, high = self._interval(claim, cells, cells.middle, level)
        return 0.5 * (high - low)

    def right_guess_nats(self, state: ClaimsState) -> float:
        """Return the largest information that a right guess releases after right ones; public numbers only."""
        narrow = 0.0 if self._groups is None else _NARROW
        return -math.log1p(-self._first_share(state)) - narrow - 2.0 * math.log1p(-2.0 * FAILURE_SHARE)

    def expected_session(self, teams: int, score: float, anticipation_error: float) -> ClaimsState:
        """Return the expected state after one answer to each of some teams.

        Teams have the same score. They guess it with an error that all of them share, beside the noise of both parts of
        the records, which runs through evenly spread quantiles.
        """
        _, effective, training = self._sizes(self.typical(score))
        coin = math.sqrt(score * (1.0 - score))
        claim, state = self._likely_test(score, self.typical(score)), self.start(SystemNoise())
        for team in range(1, teams + 1):
            known = replace(self.typical(score), client=f"team {team}")
            first, second = (_NORMAL.inv_cdf((team * step + 0.5) % 1.0 or 0.5) for step in _SPREAD)
            value = round(claim.steps * min(1.0, max(0.0, score + first * coin / math.sqrt(effective))))
            guess = min(1.0, max(0.0, score + anticipation_error + second * coin / math.sqrt(training)))
            after, _ = self.release(state, guess, claim, value, known)
            state = replace(after, climbs={NEWCOMERS: after.climbs[NEWCOMERS]})  # this team asks no more
        return state

    def _likely_test(self, score: float, known: Known) -> MeanTest | GroupBetTest:
        """Return the test of a value of which only the likely score is known."""
        _, effective, training = self._sizes(known)
        variance = variance_of(score, known, effective)
        claim = self._test(predict(PredictorState(), score, variance, effective, training), variance, known)
        assert isinstance(claim, (MeanTest, GroupBetTest))
        return claim

    def client_refusal(self, state: ClaimsState, known: Known) -> BudgetExhausted | None:
        """Return why this client may send no more queries, or ``None``: the longest outcome must fit the allowance.

        A query without a client is the organiser's, who has no allowance. A failure, which is a longer outcome, may
        exceed the allowance once: only after it is the client refused.
        """
        allowance = self.parameters.allowance
        assert allowance is not None
        if known.proposal:
            return proposal_refusal(state, known.client, allowance)
        if not known.client:
            return None
        client = client_of(state, known.client)
        share, even = self._share(client, state, known)
        cells = math.ceil(0.25 * math.pi / self._reach(client, state, known)) + 1
        longest = math.log(cells) if even else max(-math.log(_EVEN * share / cells), -math.log1p(-share))
        longest -= 2.0 * math.log1p(-2.0 * FAILURE_SHARE)  # the reserve for failures, and more than all rounding
        longest -= 0.0 if known.groups is None else math.log(_WIDE)
        asked = round(client.asked)
        return BudgetExhausted("allowance", asked, asked) if client.released + longest > allowance else None

    def failed(self, before: ClaimsState, after: ClaimsState, known: Known) -> ClaimsState:
        """Count the information that a failure releases to its client."""
        return credited(after, known.client, before.log_error_budget - after.log_error_budget)

    def refuses(self, state: ClaimsState, train: float, known: Known) -> BudgetExhausted | None:
        """Return why this query is not allowed; public numbers decide."""
        return super().refuses(state, train, known) or self.client_refusal(state, known)

    def paired_counts(self, counts: PairedCounts, known: Known) -> Reading:
        """Refuse a win rate: predictions of a leaderboard come in by record, which have no one law."""
        raise InputError("about", "'win_rate'", "the difference of both scores in a leaderboard")

    def _bets(self, known: Known) -> bool:
        return False

    def _interval(
        self, claim: MeanTest | GroupBetTest, cells: AngleCells, cell: int, log_level: float
    ) -> tuple[float, float]:
        """Return the claim about a cell: limits from its first and from its last step."""
        low, high = claim.interval(*cells.limits(cell), log_level, ())
        rounding = record_rounding(self._n)
        return max(0.0, low - rounding), min(1.0, high + rounding)

    def _reach(self, client: Client, state: ClaimsState, known: Known) -> float:
        """Return half the width of cells, as an angle: so many deviations that hardly any good guess is wrong.

        A guess that comes from an earlier answer is off by up to half a cell. The expected difference is no value of
        the training part: cells are as narrow as the noise of the holdout, and a collapse is in another one.
        """
        _, effective, training = self._sizes(known)
        deviation = 0.5 * math.sqrt(1.0 / effective + (0.0 if known.difference else 1.0 / training))
        recalled = not known.difference and (known.vague or client.wrong > 0.0)
        return min((_RECALLED if recalled else 1.0) * self._deviations(state) * deviation, 0.25 * math.pi)

    def _deviations(self, state: ClaimsState) -> float:
        ahead = max(_LEAST_AHEAD, state.queries)
        left = ahead if self.parameters.queries is None else max(2, self.parameters.queries - state.queries)
        return math.sqrt(2.0 * math.log(max(left / 1.5, 1.5)))

    def _first_share(self, state: ClaimsState) -> float:
        """Return the share of the error budget for other cells than that of an unknown client's guess."""
        return max(_WRONG, math.erfc(self._deviations(state) / math.sqrt(2.0)))

    def _share(self, client: Client, state: ClaimsState, known: Known) -> tuple[float, bool]:
        """Return the other cells' share of the error budget, and whether all cells have the same."""
        first, newcomers = self._first_share(state), newcomers_of(state)
        if known.vague:
            nothing = not client.scored and newcomers.answer is None
            return client.share(_VAGUE), nothing and not known.difference
        if client.scored or known.difference or not known.client:
            return client.share(first), False
        return newcomers.share(first), False


def _guess(client: Client, newcomers: Newcomers, train: float, known: Known) -> float:
    """Return the expected value: the given guess, moved by the error of earlier guesses.

    Nobody knows whether a client that has seen this error corrects its guesses itself: its last answer decides.
    """
    if known.difference:
        return train
    if not client.scored:
        if known.vague:
            return 0.5 if newcomers.answer is None else newcomers.answer
        return min(1.0, max(0.0, train + newcomers.shift)) if known.client else train
    if known.vague:
        return client.last
    return sorted((train, min(1.0, max(0.0, train + client.shift)), client.last))[1]


def _learned(client: Client, shift: float, off: float, distance: int, told: float, known: Known, nats: float) -> Client:
    """Return the memory of a client after an answer.

    In the next cell the value is likely to be near the guess, which may have been a good one: half of the way.
    """
    last, scored, kept = client.last, client.scored, client.shift
    if not known.difference:
        last, scored = told, 1.0
        if not known.vague:
            kept = shift + (0.5 * off if distance == 1 else off)
    return Client(client.asked + 1.0, client.wrong + (distance > 0), kept, last, client.released + nats, scored)
