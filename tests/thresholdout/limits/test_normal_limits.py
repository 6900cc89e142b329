"""Normal limits: the best bet against its dual, the rule that takes them, and laws on which they fail."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize, minimize_scalar
from scipy.stats import norm
from scipy.stats import t as student

from thresholdout.limits.group_sums import GroupSizes, GroupSums
from thresholdout.limits.normal_limits import (
    NormalTest,
    TrainingGroups,
    best_log_wealth,
    effective_groups,
    normal_nats,
)


@pytest.mark.parametrize(("won", "lost", "gain", "loss"), [(30, 10, 1.0, 1.0), (90, 10, 0.5, 4.0), (7, 5, 2.0, 0.1)])
def test_the_best_bet_on_two_values_is_relative_entropy(won: int, lost: int, gain: float, loss: float) -> None:
    """With y of a or -b, the mean 0 has the share b/(a + b) of gains; sum ln(1 + L y) is at most G kl(share, that)."""
    share, null = won / (won + lost), loss / (gain + loss)
    entropy = share * math.log(share / null) + (1.0 - share) * math.log((1.0 - share) / (1.0 - null))
    found = best_log_wealth(np.repeat([gain, -loss], [won, lost]), loss)
    assert found == pytest.approx((won + lost) * entropy, rel=1e-7)


def test_the_best_bet_is_the_empirical_likelihood() -> None:
    """Its dual: probabilities of the groups with the mean 0, as near to equal ones as can be."""
    y = np.array([0.9, 0.2, -0.4, 0.6, 0.1, -0.3, 0.5])

    def less(q: np.ndarray) -> float:
        return -float(np.sum(np.log(q.size * q)))

    fixed = LinearConstraint(np.array([np.ones(y.size), y]), [1.0, 0.0], [1.0, 0.0])
    dual = minimize(
        less, np.full(y.size, 1 / y.size), bounds=[(1e-9, 1)] * y.size, constraints=fixed, method="SLSQP", tol=1e-12
    )
    assert dual.success
    assert best_log_wealth(y, 0.4) == pytest.approx(dual.fun, rel=1e-6)


@pytest.mark.parametrize("largest", [0.5, 1.0, 3.0, 40.0])
def test_bets_are_limited_by_the_largest_loss(largest: float) -> None:
    y = np.random.default_rng(int(largest)).uniform(-0.4, 1.0, 50)

    def less(bet: float) -> float:
        return -float(np.sum(np.log1p(bet * y)))

    found = minimize_scalar(less, bounds=(0.0, 1.0 / largest), method="bounded", options={"xatol": 1e-12})
    assert best_log_wealth(y, largest) == pytest.approx(-found.fun, rel=1e-6)


@pytest.mark.parametrize("level", [0.025, 1e-3, 1e-5])
def test_the_threshold_is_that_of_students_t(level: float) -> None:
    """For normal sums G/2 ln(1 + T^2/(G - 1)) is the likelihood ratio; it is half of the normal quantile's square."""
    for groups in (40.0, 400.0):
        t = float(student.isf(level, groups - 1.0))
        assert normal_nats(groups, math.log(level)) == pytest.approx(groups / 2 * math.log1p(t * t / (groups - 1.0)))
    assert normal_nats(1e8, math.log(level)) == pytest.approx(0.5 * float(norm.isf(level)) ** 2, rel=1e-5)
    assert normal_nats(1e8, math.log(level)) < -math.log(level)  # of a bet that was fixed before


def training(groups: int, sums: list[float], size: float = 5.0) -> TrainingGroups:
    return TrainingGroups(np.resize(np.array(sums), groups), np.full(groups, size))


class TestTheRule:
    @pytest.mark.parametrize("level", [0.025, 1e-3, 1.1e-5])
    def test_enough_groups(self, level: float) -> None:
        least = math.ceil(8.0 * float(norm.isf(level)) ** 2)
        for groups, taken in ((least, True), (least - 1, False)):
            test = NormalTest(GroupSizes([(5, groups)]), training(1000, [5.0, 5.0, 2.0]))
            assert test.allowed(np.array([0.8]), math.log(level)).tolist() == [taken]

    def test_one_giant_group_is_as_few_groups(self) -> None:
        sizes = GroupSizes([(1, 2000), (100, 1)])
        assert effective_groups(sizes) == pytest.approx((2000 + 100**2) ** 2 / (2000 + 100**4))
        test = NormalTest(sizes, training(1000, [5.0, 5.0, 2.0]))
        assert not test.allowed(np.array([0.8]), math.log(0.025)).any()

    def test_enough_groups_that_lose(self) -> None:
        """N = 20 equal losers suffice where 2 z^2 is at most 20, as at 0.0008, and one of them more at no time."""
        for losers, level, taken in ((20, 0.001, True), (19, 0.001, False), (8, 0.025, True), (7, 0.025, False)):
            sums = np.repeat([5.0, 3.0], [2000, losers])
            test = NormalTest(GroupSizes([(5, 2000)]), TrainingGroups(sums, np.full(sums.size, 5.0)))
            assert 2.0 * float(norm.isf(level)) ** 2 == pytest.approx(losers, abs=1.0)
            assert test.allowed(np.array([0.9]), math.log(level)).tolist() == [taken]

    def test_very_small_and_large_levels_are_exact(self) -> None:
        test = NormalTest(GroupSizes([(5, 10_000)]), training(10_000, [5.0, 5.0, 2.0]))
        said = [bool(test.allowed(np.array([0.8]), math.log(level))[0]) for level in (9.9e-6, 1.01e-5, 0.49, 0.51)]
        assert said == [False, True, True, False]

    def test_nobody_loses(self) -> None:
        test = NormalTest(GroupSizes([(5, 1000)]), training(1000, [5.0]))
        assert not test.allowed(np.linspace(0.1, 1.0, 10), math.log(0.025)).any()

    def test_the_other_side_is_that_of_one_less_each_value(self) -> None:
        found = training(10, [5.0, 1.0]).mirrored()
        assert found.sums.tolist()[:2] == [0.0, 4.0]
        assert found.mean == pytest.approx(0.4)


def test_means_that_are_refuted_are_those_up_to_a_limit() -> None:
    rng, level = np.random.default_rng(1), math.log(0.3)
    for _ in range(60):
        sizes = rng.integers(1, 4, 6)
        sums, others = (rng.binomial(sizes, rng.uniform(0.3, 0.9)).astype(float) for _ in range(2))
        test = NormalTest(GroupSizes.of(sizes), TrainingGroups(others, sizes.astype(float)))
        values = GroupSums(sums, sizes.astype(float), 0)
        refuted = [test.refutes(values, mean, level) for mean in np.linspace(0.01, 0.99, 30).tolist()]
        assert refuted == sorted(refuted, reverse=True)


def silent(cap: bool) -> float:
    """The level of a test of the truth: 150 + 150 groups of 20; one in 120 is all wrong, the others are right at .99.

    Over both parts no group is all wrong with exactly this probability. Given that, sums are 20 or 19 as a rule, and
    the truth is refuted or not for a typical holdout.
    """
    crash, groups = 1 / 120, 150
    truth = 20 * 0.99 * (1.0 - crash) / 20
    sums = np.repeat([20.0, 19.0, 18.0], [123, 24, 3])  # of binomial sums with 0.99: 122.7, 24.8, 2.4
    part = TrainingGroups(sums, np.full(groups, 20.0))
    test, values = NormalTest(GroupSizes([(20, groups)]), part), GroupSums(sums, np.full(groups, 20.0), 0)
    if cap:
        refuted = test.refutes(values, truth, math.log(0.001))
    else:
        above = values.above(truth)
        refuted = best_log_wealth(above, -1.5 * float(above.min())) >= test.nats(math.log(0.001))
    return (1.0 - crash) ** (2 * groups) * refuted / 0.001


def test_a_group_that_neither_part_shows_is_beyond_every_test_but_bold_bets_are_limited() -> None:
    """The side that must fail: without the limit b/(S m) a truth is refuted 80 times as often as the level says."""
    assert silent(cap=False) > 80.0
    assert silent(cap=True) == 0.0


@pytest.mark.parametrize("share", [0.5, 0.7])
@pytest.mark.parametrize("together", [0.0, 0.5])
def test_levels_of_pairs_counted_exactly(share: float, together: float) -> None:
    """Sums of 60 pairs, all outcomes; training pairs as expected. Approximate: between half and 1.5 times the level."""
    groups, level = 60, 0.025
    law = np.array([(1 - share) ** 2, 2 * share * (1 - share), share**2]) * (1.0 - together)
    law += together * np.array([1.0 - share, 0.0, share])
    expected = np.repeat([0.0, 1.0, 2.0], np.round(groups * law).astype(int))
    test = NormalTest(GroupSizes([(2, groups)]), TrainingGroups(expected, np.full(expected.size, 2.0)))
    assert test.allowed(np.array([share]), math.log(level)).all()
    total, mass = 0.0, 0.0
    logs = np.log(np.maximum(law, 1e-300))
    factorials = [math.lgamma(k + 1) for k in range(groups + 1)]
    for none, one in product(range(groups + 1), repeat=2):
        both = groups - none - one
        if both < 0:
            continue
        log_p = factorials[groups] - factorials[none] - factorials[one] - factorials[both]
        probability = math.exp(log_p + none * logs[0] + one * logs[1] + both * logs[2])
        mass += probability
        if probability > 1e-9 and one + 2 * both > groups * 2 * share:
            sums = np.repeat([0.0, 1.0, 2.0], [none, one, both])
            total += probability * test.refutes(GroupSums(sums, np.full(groups, 2.0), 0), share, math.log(level))
    assert mass == pytest.approx(1.0)
    assert 0.5 * level < total < 1.5 * level


def test_a_step_onto_the_pole_is_not_taken_for_the_maximum() -> None:
    """Newton's step from the middle is 2 but for rounding, where groups lose all: their order decides the rounding."""
    y = np.repeat([0.5, -0.5], [90, 10])
    for seed in range(40):
        found = best_log_wealth(np.random.default_rng(seed).permutation(y), 0.5)
        assert found == pytest.approx(90 * math.log(1.8) + 10 * math.log(0.2), rel=1e-9)
