"""Claims about grouped records: every outcome of small groups, for laws on the far side of the claim."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.cases import for_each
from tests.sizes import corners
from thresholdout.limits.group_sums import GroupSizes, GroupSums
from thresholdout.limits.normal_limits import TrainingGroups
from thresholdout.mechanisms import Known
from thresholdout.mechanisms.base import Grouped
from thresholdout.mechanisms.claims import ClaimsMechanism, ClaimsParameters
from thresholdout.mechanisms.claims.gate_tests import GroupGate, Proposal
from thresholdout.mechanisms.claims.group_tests import GroupBetTest, GroupNormalTest
from thresholdout.mechanisms.claims.grouped_records import _total
from thresholdout.noise.sources import SeededNoise

STEPS = 64


def grouped(
    sizes: list[int], correlation: float | None = 0.2, training_groups: float = 40.0, training: float = 20.0
) -> Grouped:
    index = np.repeat(np.arange(len(sizes)), sizes)
    return Grouped(index, GroupSizes.of(np.array(sizes)), correlation, training, training_groups)


def laws(sizes: list[int], mean: float, trials: int = 60) -> list[np.ndarray]:
    """Probabilities of full groups, the others being empty, with this mean over all records."""
    s, rng, found = np.array(sizes, dtype=float), np.random.default_rng(3), [np.full(len(sizes), mean)]
    for trial in range(trials):
        left, ps = mean * s.sum(), np.zeros(s.size)
        if trial % 2:
            for g in rng.permutation(s.size):
                ps[g] = min(1.0, left / s[g])
                left -= ps[g] * s[g]
        else:
            ps = rng.dirichlet(np.full(s.size, (0.3, 3.0)[trial % 4 == 0])) * left / s
        if (ps <= 1.0).all():
            found.append(ps)
    return found


def confirmed(test: GroupBetTest, sizes: list[int], lo: int, hi: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    outcomes = np.array(list(product((0.0, 1.0), repeat=len(sizes))))
    s = np.array(sizes, dtype=float)
    said = []
    for each in outcomes:
        test._values = GroupSums(s * each, s, 0)
        said.append(test.outcome(lo, hi, math.log(level), (), (0, 0, 0)) == "confirmed")
    return outcomes, np.array(said)


@for_each("sizes", [[2, 2, 2, 2], [1, 2, 3, 3], [1, 1, 1, 6]])
@for_each("level", [0.3, 0.1])
@for_each(("lo", "hi"), [(20, 44), (40, 64), (0, 30), (32, 60)])
@for_each("correlation", [0.0, 0.5, None])
def test_a_false_claim_is_confirmed_with_its_level_at_most(
    sizes: list[int], level: float, lo: int, hi: int, correlation: float | None
) -> None:
    test = GroupBetTest(STEPS, None, grouped(sizes, correlation), 0.2, 0.5)
    low, high = test.interval(lo, hi, math.log(level), ())
    outcomes, said = confirmed(test, sizes, lo, hi, level)
    for truth in (low - 1e-9, high + 1e-9):
        if 0.0 < truth < 1.0:
            for ps in laws(sizes, truth):
                law = np.prod(np.where(outcomes > 0, ps, 1.0 - ps), axis=1)
                assert float(law[said].sum()) <= level * (1.0 + 1e-9)


def test_a_split_group_confirms_false_claims() -> None:
    """The side that must fail: groups of four records taken for records."""
    sizes, level, lo, hi = [4, 4, 4], 0.1, 40, 64
    outcomes = np.array(list(product((0.0, 1.0), repeat=3)))
    test = GroupBetTest(STEPS, None, grouped([1] * 12, 0.0), 0.2, 0.5)
    low, _ = test.interval(lo, hi, math.log(level), ())
    said = []
    for each in outcomes:
        test._values = GroupSums(np.repeat(each, 4), np.ones(12), 0)
        said.append(test.outcome(lo, hi, math.log(level), (), (0, 0, 0)) == "confirmed")
    worst = 0.0
    for ps in laws(sizes, low - 1e-9):
        law = np.prod(np.where(outcomes > 0, ps, 1.0 - ps), axis=1)
        worst = max(worst, float(law[np.array(said)].sum()))
    assert worst > 1.5 * level


@pytest.mark.slow
@for_each("level", [0.3, 0.05])
@for_each("correlation", [0.1, None])
@for_each("sizes", [[2, 2, 2, 2], [1, 1, 3, 3]])
def test_stated_intervals_miss_with_both_levels_at_most(
    sizes: list[int], level: float, correlation: float | None
) -> None:
    """None as correlation: a mixture of bets."""
    s = np.array(sizes, dtype=float)
    outcomes = np.array(list(product((0.0, 1.0), repeat=len(sizes))))
    ends = []
    for each in outcomes:
        test = GroupBetTest(STEPS, GroupSums(s * each, s, 0), grouped(sizes, correlation, 5.0), 0.2, 0.6)
        ends.append(test.ends(math.log(level), 0.6))
    lows, highs = (np.array(one) / STEPS for one in zip(*ends, strict=True))
    for truth in np.linspace(0.05, 0.95, 19).tolist():
        for ps in laws(sizes, truth, 20):
            law = np.prod(np.where(outcomes > 0, ps, 1.0 - ps), axis=1)
            mean = float(ps @ s) / s.sum()
            assert float(law[lows > mean + 1e-9].sum()) <= level * (1.0 + 1e-9)
            assert float(law[highs < mean - 1e-9].sum()) <= level * (1.0 + 1e-9)


@pytest.mark.slow
@for_each("sizes", [[2, 2, 2, 2], [1, 2, 3, 3]])
@for_each("delta", [0.0, 0.2, -0.2])
def test_a_gate_keeps_its_level(sizes: list[int], delta: float) -> None:
    """Groups that win, lose or tie as a whole; a mean difference of at most delta."""
    s, level = np.array(sizes, dtype=float), 0.1
    proposal = Proposal(0.3, 0.5, 40.0, 8.0, delta, grouped(sizes))
    outcomes = np.array(list(product((-1.0, 0.0, 1.0), repeat=len(sizes))))
    passes = np.array(
        [GroupGate(GroupSums(0.5 * (s + s * z), s, 1)).passes(proposal, math.log(level)) for z in outcomes]
    )
    rng, worst = np.random.default_rng(4), 0.0
    for trial in range(200):
        gains = np.full(s.size, delta) if trial < 20 else delta + rng.normal(size=s.size) * 0.3
        gains -= (gains @ s) / s.sum() - delta
        if (np.abs(gains) > 1.0).any():
            continue
        move = rng.random() * (1.0 - np.abs(gains))
        win = np.maximum(gains, 0.0) + 0.5 * move
        loss = win - gains
        law = np.prod(np.where(outcomes > 0, win, np.where(outcomes < 0, loss, 1.0 - win - loss)), axis=1)
        worst = max(worst, float(law[passes].sum()))
    assert worst <= level * (1.0 + 1e-9)


class TestRoutes:
    """Which test an end is put to is public."""

    def test_few_groups_that_are_alike_are_tested_by_sizes_and_many_by_bets(self) -> None:
        for sizes, correlation, bets in (([5] * 400, 0.1, True), ([1] * 100 + [60], 1.0, False)):
            test = GroupBetTest(1024, None, grouped(sizes, correlation), 0.09, 0.9)
            _, bet = test._place(0.88, math.log(0.04), (), upper=False)
            assert (bet > 0.0) == bets

    def test_an_interval_does_not_depend_on_the_values(self) -> None:
        groups, found = grouped([3] * 50), set()
        for count in (0, 20, 50):
            sums = np.where(np.arange(50) < count, 3.0, 0.0)
            test = GroupBetTest(256, GroupSums(sums, np.full(50, 3.0), 0), groups, 0.2, 0.7)
            found.add(test.interval(150, 200, -3.0, (0.001, 0.002)))
        assert len(found) == 1


class TestMechanism:
    """A guard's mechanism with groups of five."""

    parameters = ClaimsParameters(effective=200.0, inflation=5.0, sizes=((5, 200),))

    def test_parameters_survive_a_ledger(self) -> None:
        assert ClaimsParameters.from_json(self.parameters.to_json()) == self.parameters

    def test_claims_bet_on_groups_and_are_narrower_than_from_means(self) -> None:
        mechanism, noise = ClaimsMechanism(self.parameters, 1000), SeededNoise(0)
        known = Known(binary=True, groups=grouped([5] * 200, 0.1, 200.0, 700.0))
        values = np.random.default_rng(0).random(1000) < 0.9
        reading = mechanism.read(values, 1000, (0, 1), "values", known)
        assert repr(reading.group_sums) == "<GroupSums n=1000>"
        _, outcome = mechanism.step(mechanism.start(noise), 0.9, reading, noise)
        assert outcome.interval is not None
        plain = ClaimsMechanism(ClaimsParameters(effective=200.0, inflation=5.0), 1000)
        low, high = plain.first_claim(plain.start(noise), 0.9, Known(binary=True)).interval
        assert outcome.interval[1] - outcome.interval[0] < 0.65 * (high - low)

    def test_values_without_known_groups_are_tested_by_sizes(self) -> None:
        mixed = ClaimsParameters(effective=20.0, inflation=20.0, sizes=((1, 500), (10, 49), (50, 1)))
        own = ClaimsMechanism(mixed, 1040).first_claim(
            ClaimsMechanism(mixed, 1040).start(SeededNoise(0)), 0.9, Known(binary=True)
        )
        plain = ClaimsMechanism(ClaimsParameters(effective=20.8, inflation=10.0), 1040)
        other = plain.first_claim(plain.start(SeededNoise(0)), 0.9, Known(binary=True))
        assert own.interval[1] - own.interval[0] < other.interval[1] - other.interval[0]

    def test_sizes_of_other_records_are_refused(self) -> None:
        with pytest.raises(Exception, match="groups of 1200 records in all; got groups of 1000 records"):
            ClaimsMechanism(self.parameters, 1200)


def test_the_best_of_a_list_has_the_best_mean_and_says_nothing_of_the_others() -> None:
    """A training value that is wrong makes a wide interval, whose middle and upper end are no measure of the mean."""
    sizes, noise = [5] * 400, SeededNoise(0)
    n, groups = sum(sizes), grouped(sizes, 0.0, 400.0, 2000.0)
    mechanism = ClaimsMechanism(ClaimsParameters(effective=400.0, inflation=5.0, sizes=((5, 400),)), n)
    known = Known(binary=True, groups=groups)
    counts = (1400, 1600)
    readings = [
        (train, mechanism.read(np.arange(n) * 7 % n < count, n, (0, 1), "values", known))
        for train, count in zip((0.7, 0.02), counts, strict=True)
    ]
    start = mechanism.start(noise)
    _, outcome, place = mechanism.step_best(start, readings, noise, 0.2, True)
    _, (first, second) = mechanism.step_all(start, readings, noise, 0.2)
    assert place == 1
    assert outcome.interval == second.interval
    assert first.interval is not None
    assert first.interval[1] < 0.8  # the other's mean is beyond the end of this one, whose middle was the larger one
    assert second.interval is not None
    assert sum(first.interval) > sum(second.interval)


class TestNormalLimits:
    """At a level of .3 few groups suffice, so that all outcomes are counted. Nothing is said of levels."""

    LEVEL = math.log(0.3)

    def made(self, values: GroupSums | None, sizes: list[int]) -> GroupNormalTest:
        known = grouped(sizes)
        trained = TrainingGroups(np.resize([2.0, 1.0, 0.0, 2.0], 40), np.full(40, 2.0))
        known = replace(known, trained=trained)
        return GroupNormalTest(STEPS, values, known, 0.2, 0.5)

    def outcomes(self, sizes: list[int]) -> list[GroupSums]:
        s = np.array(sizes, dtype=float)
        return [GroupSums(np.array(sums, dtype=float), s, 0) for sums in product(*(range(size + 1) for size in sizes))]

    def test_ends_are_public(self) -> None:
        """With any holdout, and with none."""
        sizes = [2, 2, 2, 2]
        blank = self.made(None, sizes).interval(20, 44, self.LEVEL, ())
        assert {self.made(one, sizes).interval(20, 44, self.LEVEL, ()) for one in self.outcomes(sizes)} == {blank}
        exact = GroupBetTest(STEPS, None, grouped(sizes), 0.2, 0.5).interval(20, 44, self.LEVEL, ())
        assert exact[0] < blank[0] < blank[1] < exact[1]

    @pytest.mark.parametrize(("sizes", "expected"), corners(product([[2, 2, 2, 2], [1, 2, 2, 3]], [0.5, 0.7]), 3))
    def test_a_limit_above_a_truth_is_one_test(self, sizes: list[int], expected: float) -> None:
        """Limits are edges; each edge from the first of the run to the limit is refuted, and the one above is not."""
        level, stated = self.LEVEL + math.log1p(-0.02), set()
        for values in self.outcomes(sizes):
            found = self.made(values, sizes)
            limit = found._stated(self.LEVEL, expected, upper=False)
            normal = found._normal(False)
            assert normal is not None
            edges = np.arange(1, STEPS) / STEPS
            allowed = normal.allowed(edges, level)
            refuted = np.array([normal.refutes(values, float(edge), level) for edge in edges])
            stated.add(limit)
            if limit in edges and refuted[edges <= limit][-1]:
                place = int(limit * STEPS) - 1
                assert allowed[place]
                assert not (refuted[place + 1] and allowed[place + 1]) or limit > expected
            else:  # an exact limit at a fiftieth of the level
                exact = GroupBetTest(STEPS, values, grouped(sizes), 0.2, 0.5)
                assert limit <= exact._stated(self.LEVEL + math.log(0.02), expected, upper=False) + 1e-12
        assert len(stated) > 3

    @pytest.mark.parametrize("sizes", [[2, 2, 2, 2], [1, 2, 2, 3]])
    def test_the_upper_end_is_the_lower_one_of_mirrored_values(self, sizes: list[int]) -> None:
        known = replace(grouped(sizes), trained=TrainingGroups(np.resize([2.0, 1.0, 0.0], 30), np.full(30, 2.0)))
        turned = replace(known, trained=TrainingGroups(np.resize([0.0, 1.0, 2.0], 30), np.full(30, 2.0)))
        for values in self.outcomes(sizes)[::7]:
            low, high = GroupNormalTest(STEPS, values, known, 0.2, 0.5).ends(self.LEVEL, 0.6)
            other = GroupNormalTest(STEPS, values.mirrored(), turned, 0.2, 0.5).ends(self.LEVEL, 0.4)
            assert (STEPS - high, STEPS - low) == other

    def test_a_level_at_the_edge_of_the_rule_is_exact(self) -> None:
        """Allowed at the level, and not at 49/50 of it, which is what stated limits would have."""
        sizes = [2] * 60
        sums = np.repeat([2.0, 1.0], [100, 9])
        known = replace(grouped(sizes), trained=TrainingGroups(sums, np.full(sums.size, 2.0)))
        values = GroupSums(np.repeat([2.0, 1.0], [52, 8]), np.full(60, 2.0), 0)
        normal = GroupNormalTest(STEPS * 8, values, known, 0.06, 0.9)
        exact = GroupBetTest(STEPS * 8, values, known, 0.06, 0.9)
        test = normal._normal(False)
        assert test is not None
        levels = np.linspace(0.005, 0.04, 200).tolist()
        least = min(level for level in levels if test.allowed(np.array([0.85]), math.log(level))[0])
        for level in (0.985 * least, least, 1.001 * least, 1.01 * least):
            assert normal._stated(math.log(level), 0.93, upper=False) == exact._stated(
                math.log(level), 0.93, upper=False
            )

    def test_without_training_values_limits_are_exact(self) -> None:
        sizes = [2, 2, 2, 2]
        for values in self.outcomes(sizes)[::9]:
            normal = GroupNormalTest(STEPS, values, grouped(sizes), 0.2, 0.5)
            exact = GroupBetTest(STEPS, values, grouped(sizes), 0.2, 0.5)
            assert normal.ends(self.LEVEL, 0.6) == exact.ends(self.LEVEL, 0.6)
            assert normal.interval(20, 44, self.LEVEL, ()) == exact.interval(20, 44, self.LEVEL, ())

    def test_gates_test_the_opposite_by_the_training_groups_of_the_opposite(self) -> None:
        """A gain of 1 to each of most groups: kept as better, and refused as worse; and the reverse of both."""
        sizes = [2] * 60
        won, none = np.resize([1.5, 2.0, 1.0, 0.5], 60), np.full(60, 2.0)
        for sums in (won, 2.0 - won):
            known = replace(grouped(sizes), trained=TrainingGroups(sums, none))
            difference = float(sums.mean() - 1.0)
            proposal = Proposal(difference, 0.5, 60.0, 60.0, 0.0, known)
            gate = GroupGate(GroupSums(sums, none, 1), normal=True)
            mirrored = replace(proposal, difference=-difference)
            assert gate.passes(proposal, math.log(0.02)) == (difference > 0.0)
            assert gate.mirrored().passes(mirrored, math.log(0.02)) == (difference < 0.0)
            assert gate.needed(proposal, math.log(0.02)) < GroupGate().needed(proposal, math.log(0.02))


def test_the_sum_of_squares_is_that_of_fsum_in_every_order() -> None:
    rng = np.random.default_rng(0)
    for power in range(1, 9):
        squares = rng.random(500) ** power * 10.0 ** rng.integers(-6, 6)
        assert _total(squares) == _total(rng.permutation(squares)) == math.fsum(squares)
    assert _total(np.zeros(3)) == 0.0
