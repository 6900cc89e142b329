"""Small parts of mechanisms and plans, by hand: counts, grids, shares and searches."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

from graphs import Groups, MovingWindow
from tests.cases import for_each
from thresholdout import BudgetExhausted, InputError
from thresholdout.certificates.drift_bound import best_parameters
from thresholdout.data.parts.lazy_part import counted
from thresholdout.data.parts.totals import Joint, Totals
from thresholdout.data.values import ExactMean
from thresholdout.limits.group_sums import GroupSizes
from thresholdout.mechanisms import ClaimsParameters, Known, LadderParameters, LadderState, catalogue
from thresholdout.mechanisms.base import PairedCounts, refuse_if
from thresholdout.mechanisms.claims.final import reserving_window, share_of
from thresholdout.mechanisms.claims.gate_states import Gains, Rules
from thresholdout.mechanisms.claims.grouped_records import BlockedRecords, GroupedRecords, known_of_sums
from thresholdout.mechanisms.claims.kinds import claims_of
from thresholdout.mechanisms.claims.lists import NOTHING, after_release
from thresholdout.mechanisms.claims.parameters import counts_of_groups
from thresholdout.mechanisms.claims.query_claims import predicted_wins
from thresholdout.mechanisms.claims.reading import bet_on, grid_value, read_totals
from thresholdout.mechanisms.claims.score import start_error_budget
from thresholdout.mechanisms.claims.trinomial_claims import TrinomialTest
from thresholdout.mechanisms.rounding_costs import check_grid
from thresholdout.planning.solving import smallest_at_which


def test_a_mechanism_is_found_by_its_parameters_and_by_its_name() -> None:
    assert catalogue.kind_of(LadderParameters()) is catalogue.kind_named("ladder")
    assert catalogue.kind_named("oracle") is None
    state = LadderState(log_error_budget=-3.0, asked=7)
    assert catalogue.read_state(LadderParameters(), state.to_text()) == state


def test_an_allowance_makes_a_leaderboard() -> None:
    assert claims_of(ClaimsParameters(noise=0.0, allowance=24.0), 1000).name == "leaderboard"
    assert claims_of(ClaimsParameters(), 1000).name == "claims"


def test_a_refusal_is_raised_where_there_is_one() -> None:
    refuse_if(None)
    with pytest.raises(BudgetExhausted):
        refuse_if(BudgetExhausted("budget", 3, 3))


def test_sizes_of_groups_are_counted() -> None:
    assert counts_of_groups(Groups([0, 0, 1, 2])) == ((1, 2), (2, 1))
    assert counts_of_groups(Groups([0, 1, 2])) is None


def test_copies_in_a_group_have_the_correlation_1() -> None:
    pairs = np.array([0, 0, 1, 1])
    found = GroupedRecords(Groups(pairs), pairs).known(np.array([1.0, 1.0, 0.0, 0.0]), (0.0, 1.0))
    assert found.correlation == 1.0
    sums, sizes = np.array([2.0, 0.0]), np.array([2.0, 2.0])
    assert known_of_sums(GroupSizes([(2, 2)]), 4, 0.5, 2.0, sums, sizes).correlation == 1.0


def test_blocks_are_taken_where_their_sums_vary_little() -> None:
    blocked = BlockedRecords(MovingWindow(6, 2))
    balanced = blocked.known(np.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0]), (0.0, 1.0))
    assert balanced is not None
    assert (balanced.correlation, balanced.inflation, balanced.training_blocks) == (0.0, 1.0, 3.0)
    assert blocked.known(np.array([1.0, 1.0, 0.0, 0.0, 1.0, 1.0]), (0.0, 1.0)) is None


def test_a_mean_is_rounded_upwards_from_the_middle_of_a_step() -> None:
    assert grid_value(ExactMean(3, 4, 0), 2) == 2  # 1.5 steps
    assert grid_value(ExactMean(1, 4, 0), 3) == 1  # 0.75 steps


def test_steps_of_an_answer_grid() -> None:
    assert check_grid(0.01) == 100
    with pytest.raises(InputError, match=r"grid must be 1/\(K-1\)"):
        check_grid(0.3)


def test_wins_are_predicted_in_proportion_to_the_records() -> None:
    made, number, cautious = predicted_wins(PairedCounts(180, 60, 4000), 2000)
    assert made.mean == pytest.approx(181 / 242)
    assert number == pytest.approx(241 * 2000 / 4001)
    assert cautious == pytest.approx(number - 1.5 * math.sqrt(1.5 * number))


def test_prices_are_taken_from_the_logarithm_of_the_error_budget() -> None:
    assert start_error_budget(0.95, 57.0) == pytest.approx(math.log(0.05) - 57.0)
    assert after_release(-3.0, lambda budget: 2.0) == pytest.approx(-5.0)
    assert after_release(-3.0, lambda budget: math.inf) == NOTHING


def test_the_first_claim_before_a_final_check_fails_as_rarely_as_its_share_says() -> None:
    window, share = reserving_window(900.0, 10.0, 1000, 0, 100), share_of(0, 100)
    reach = 10.0 * float(stats.norm.isf(0.05 * share))
    assert (window.lo, window.hi) == (math.ceil(900.0 - reach), math.floor(900.0 + reach))


def test_totals_give_the_mean_and_the_counts_of_differences() -> None:
    assert read_totals(Totals(4, 40, 3 << 40, coins=True), Known(binary=True), bets=False).mean.mean() == 0.75
    with pytest.raises(InputError, match=r"values must be at the ends of the range; got .*binary=False"):
        read_totals(Totals(4, 40, 1, coins=False), Known(binary=True), bets=False)
    one_each = {-1.0: 1, 0.0: 1, 1.0: 1}
    exact = bet_on(Joint(1, 1, True, counted(3, one_each, (-1.0, 1.0), 0.0, squares=True)))
    wide = bet_on(Joint(1, 1, True, counted(3, one_each, (-2.0, 2.0), 0.0, squares=True)))
    assert [type(one).__name__ for one in (exact, wide)] == ["ThreeValues", "Moments"]


def test_a_difference_is_in_the_interval_around_it() -> None:
    test = TrinomialTest(1 << 16, PairedCounts(60, 20, 1000), 0.08)  # 0.04, step 34,079
    assert test.outcome(34_000, 35_000, -3.0, (), (0, 0, 0)) == "confirmed"
    assert test.outcome(36_000, 37_000, -3.0, (), (0, 0, 0)) == "below"
    assert test.outcome(31_000, 32_000, -3.0, (), (0, 0, 0)) == "above"


@for_each(
    ("parameters", "delta", "name"),
    [
        (ClaimsParameters(), 0.0, "sign test"),
        (ClaimsParameters(), 0.01, "trinomial test"),
        (ClaimsParameters(effective=500.0, inflation=2.0), 0.0, "relative entropy"),
        (ClaimsParameters(effective=20.0, inflation=2.0), 0.0, "Hoeffding's inequality"),
    ],
)
def test_declared_numbers_choose_the_test_of_a_gate(parameters: ClaimsParameters, delta: float, name: str) -> None:
    assert Rules(parameters, 1000, delta, sign=True).test_name == name


def test_a_proposal_has_the_variance_of_one_more_record_that_differs() -> None:
    proposal = Rules(ClaimsParameters(n_train=4.0), 1000, 0.0, sign=True).proposal(
        Gains.of(np.array([1.0, 0.0, 0.0, 0.0]))
    )
    assert (proposal.difference, proposal.n_train) == (0.25, 4.0)
    assert proposal.variance == 2 / 4 - 1 / 16


def test_the_smallest_number_of_a_monotone_condition() -> None:
    for square in (4, 50, 81, 1000):
        assert smallest_at_which(partial(_reaches, square), 1, 1000) == math.isqrt(square - 1) + 1


def _reaches(square: int, number: int) -> bool:
    return number**2 >= square


def test_grids_close_in_on_a_minimum() -> None:
    # the gradient is (2 (x - 1) + y, 2 (y - 2) + x), 0 at (0, 2)
    (x, y), value = best_parameters(lambda x, y: (x - 1) ** 2 + (y - 2) ** 2 + x * y, [(-1, 3), (0, 3)])
    assert (x, y) == pytest.approx((0.0, 2.0), abs=1e-4)
    assert value == pytest.approx(1.0, abs=1e-8)
