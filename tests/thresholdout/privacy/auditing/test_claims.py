"""Claimed curves, tested at a point or by ranks: laws in closed form, and enumeration of small cases."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.cases import for_each
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting import GaussianAnswer, LaplaceAnswer, PoissonGaussianStep, SelfComposed
from thresholdout.privacy.auditing import audit_learner, audit_outputs
from thresholdout.privacy.auditing.claim_audits import GaussianBound, _signed_rank, gaussian_bound
from thresholdout.privacy.auditing.claimed_curves import ClaimedCurve, CurvePoint, claimed_curve

Floats = NDArray[np.float64]


def gaussian_curve(mu: float, epsilon: float) -> float:
    return float(stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu))


class TestCurves:
    @pytest.mark.slow
    def test_an_event_has_the_curve_of_its_law(self) -> None:
        for point in claimed_curve(GaussianAnswer(2.0), "replace_one").points:
            exact = gaussian_curve(0.5, point.epsilon)
            assert exact <= point.delta <= exact * 1.003 + 1e-9
        for point in claimed_curve(LaplaceAnswer(1.0), "replace_one").points:
            assert point.delta == pytest.approx(max(0.0, 1 - math.exp((point.epsilon - 1) / 2)), abs=1e-4)

    def test_a_function_and_a_pair(self) -> None:
        curve = claimed_curve(lambda epsilon: gaussian_curve(1.0, epsilon), "replace_one")
        assert curve.points[0] == (0.0, gaussian_curve(1.0, 0.0))
        assert curve.points[-1].delta < 1e-7
        assert claimed_curve((2.0, 1e-5), "replace_one").points == (CurvePoint(2.0, 1e-5),)

    @for_each("points", [((1.0, 0.0),), ((0.0, 0.3),), ((0.0, 0.38), (0.5, 0.2), (2.0, 0.01))])
    def test_the_pair_attains_the_curve_and_no_more(self, points: tuple[tuple[float, float], ...]) -> None:
        curve = ClaimedCurve(tuple(CurvePoint(*point) for point in points))
        p, q, losses = curve.pair
        assert p.sum() == pytest.approx(1)
        assert q.sum() == pytest.approx(1)
        for epsilon, delta in points:
            for a, b in ((p, q), (q, p)):
                assert np.maximum(a - math.exp(epsilon) * b, 0).sum() == pytest.approx(delta, abs=1e-9)
        finite = np.isfinite(losses)
        assert losses[finite] == pytest.approx(np.log(q[finite] / p[finite]))

    @for_each("power", [0.05, 0.3, 0.7, 0.95])
    def test_the_least_rate_is_that_of_a_normal_law(self, power: float) -> None:
        curve = claimed_curve(lambda epsilon: gaussian_curve(1.0, epsilon), "replace_one")
        exact = stats.norm.cdf(stats.norm.ppf(power) - 1.0)
        assert exact * 0.97 - 1e-6 <= curve.least_rate(power) <= exact * (1 + 1e-9)

    def test_a_claim_of_many_nats_is_audited_without_overflow(self) -> None:
        """The square of e^600 is no float."""
        first, second = np.random.default_rng(0).normal(size=(2, 100))
        assert not audit_outputs(first, second, claim=(600.0, 0.0), random_state=0).refuted

    def test_refusals(self) -> None:
        with pytest.raises(InputTypeError, match="an event, a function"):
            claimed_curve(3.0, "replace_one")
        with pytest.raises(InputError, match="at epsilon 0"):
            claimed_curve(lambda epsilon: 1.5, "replace_one")
        with pytest.raises(InputError, match="some accountant supports"):
            claimed_curve(GaussianAnswer(1.0), "add_remove")
        with pytest.raises(InputError, match="beside a claim"):
            audit_outputs(np.zeros(9), np.ones(9), claim=(1.0, 0.0), delta=0.1)  # type: ignore[call-overload]
        with pytest.raises(InputError, match="2 stages"):
            audit_outputs(np.zeros((9, 2, 1)), np.ones((9, 2, 1)), claim=(1.0, 0.0))


def law_of_ranks(p: Floats, q: Floats, scores: Floats, pairs: int) -> dict[float, float]:
    """Return the law of the signed-rank sum, by all outcomes of all pairs, with fair ties."""
    found: dict[float, float] = {}
    outcomes = [
        (scores[b] - scores[a] if scores[a] != scores[b] else 0.0, p[a] * q[b])
        for a in range(p.size)
        for b in range(q.size)
        if p[a] * q[b] > 0
    ]
    for chosen in itertools.product(outcomes, repeat=pairs):
        chance = math.prod(c for _, c in chosen)
        sizes = [abs(d) for d, _ in chosen]
        orders = [
            o
            for o in itertools.permutations(range(pairs))
            if all(sizes[a] <= sizes[b] for a, b in itertools.pairwise(o))
        ]
        for order in orders:
            signs = [(1, -1) if chosen[k][0] == 0 else (math.copysign(1, chosen[k][0]),) for k in order]
            for each in itertools.product(*signs):
                total = float(sum((rank + 1) * s for rank, s in enumerate(each)))
                share = chance / len(orders) / math.prod(len(s) for s in signs)
                found[total] = found.get(total, 0.0) + share
    return found


class TestRanks:
    @pytest.mark.slow
    @for_each("points", [((1.0, 0.0),), ((0.0, 0.38), (0.5, 0.2), (2.0, 0.01))])
    @for_each("seed", range(6))
    def test_no_image_of_the_pair_has_higher_ranks(self, points: tuple[tuple[float, float], ...], seed: int) -> None:
        """Whatever random map makes outputs of the two laws, and whatever scores these get."""
        rng = np.random.default_rng(seed)
        p, q, losses = ClaimedCurve(tuple(CurvePoint(*point) for point in points)).pair
        best = law_of_ranks(p, q, losses, 3)
        image = rng.dirichlet(np.full(3, 0.3), size=p.size)
        scores = rng.choice([0.0, 1.0, 2.0, 5.0], size=3)
        seen = law_of_ranks(p @ image, q @ image, scores, 3)
        for total in best:
            tail, most = (sum(c for t, c in law.items() if t >= total) for law in (seen, best))
            assert tail <= most + 1e-12

    def test_a_curve_that_is_too_good_is_exceeded(self) -> None:
        p, q, losses = ClaimedCurve((CurvePoint(1.0, 0.0),)).pair
        less = ClaimedCurve((CurvePoint(0.9, 0.0),)).pair
        best, wrong = law_of_ranks(p, q, losses, 3), law_of_ranks(*less, 3)
        assert best[6.0] > wrong[6.0] + 0.01

    def test_sums(self) -> None:
        coins = np.array([0.1, 0.2, 0.3])
        assert _signed_rank(np.array([0.5, -2.0, 1.0]), coins) == 1 - 3 + 2
        assert abs(_signed_rank(np.zeros(3), coins)) in (0, 2, 4, 6)


class TestClaims:
    @pytest.mark.slow
    def test_half_of_the_noise_is_refuted_and_the_noise_is_not(self) -> None:
        rng = np.random.default_rng(1)
        world_0 = rng.normal(size=300)
        other = rng.normal(2, size=300)
        found = audit_outputs(world_0, other, claim=GaussianAnswer(1.0), confidence=1 - 1e-6, random_state=0)
        assert found.refuted
        assert found.test == "point"
        assert found.delta > found.at.delta
        assert found.delta <= gaussian_curve(2.0, found.at.epsilon)
        assert found.at in found.claim.points
        right = audit_outputs(world_0, rng.normal(1, size=300), claim=GaussianAnswer(1.0), random_state=0)
        assert not right.refuted

    @pytest.mark.slow
    def test_ranks_find_a_small_excess(self) -> None:
        rng = np.random.default_rng(2)
        worlds = rng.normal(size=300), rng.normal(0.5, size=300)
        found = audit_outputs(*worlds, claim=GaussianAnswer(4.0), random_state=0)
        assert found.test == "ranks"
        assert found.refuted
        assert "by ranks" in repr(found)

    @pytest.mark.slow
    def test_the_same_state_gives_the_same_answer(self) -> None:
        rng = np.random.default_rng(2)
        worlds = rng.normal(size=100), rng.normal(0.5, size=100)
        first, second = (audit_outputs(*worlds, claim=(0.5, 0.01), random_state=7) for _ in range(2))
        assert (first.at, first.delta, first.refuted) == (second.at, second.delta, second.refuted)

    def test_a_pair_is_tested_where_it_is(self) -> None:
        found = audit_outputs(np.zeros(100), np.ones(100), claim=(1.0, 1e-5), random_state=0)
        assert found.refuted
        assert found.at == (1.0, 1e-5)
        assert found.epsilon > 1.0

    @pytest.mark.slow
    def test_the_lower_curve_holds_at_every_epsilon(self) -> None:
        rng = np.random.default_rng(5)
        found = audit_outputs(
            rng.normal(size=2000), rng.normal(1, size=2000), claim=GaussianAnswer(1.0), random_state=0
        )
        grid = np.linspace(0, 4, 9)
        lower = found.lower_curve(grid)
        assert (lower <= [gaussian_curve(1.0, e) for e in grid]).all()
        assert lower[0] > 0.3
        assert (np.diff(lower) <= 0).all()

    @pytest.mark.slow
    def test_a_learner(self) -> None:
        def learner(value: float, seed: int) -> float:
            return value + 0.5 * np.random.default_rng(seed).normal()

        found = audit_learner(
            learner, 0.0, 1.0, features=float, models=200, claim=GaussianAnswer(1.0), random_state=0, progress=False
        )
        assert found.refuted
        kept = audit_learner(
            learner, 0.0, 1.0, features=float, models=200, claim=GaussianAnswer(0.5), random_state=0, progress=False
        )
        assert not kept.refuted

    @pytest.mark.slow
    def test_sampled_batches(self) -> None:
        """Of 20 Poisson steps: the event's own curve, far below that of its noise alone."""
        rng = np.random.default_rng(4)
        event = SelfComposed(PoissonGaussianStep(1.0, 0.2), 20)
        part = (rng.random((400, 20)) < 0.2).sum(axis=1)
        noise = rng.normal(size=(2, 400)) * math.sqrt(20)
        right = audit_outputs(noise[0], noise[1] + part, claim=event, adjacency="add_remove", random_state=0)
        wrong = audit_outputs(noise[0], noise[1] + 20, claim=event, adjacency="add_remove", random_state=0)
        assert (right.refuted, wrong.refuted) == (False, True)

    @pytest.mark.slow
    def test_the_picture(self) -> None:
        ax = audit_outputs(np.zeros(50), np.ones(50), claim=GaussianAnswer(1.0), random_state=0).plot()
        assert ax.get_xlabel() == "epsilon (nats)"
        assert len(ax.lines) == 3


class TestFamily:
    @pytest.mark.slow
    def test_mu_of_normal_outputs(self) -> None:
        rng = np.random.default_rng(6)
        found = audit_outputs(
            rng.normal(size=1000), rng.normal(1.5, size=1000), delta=1e-5, family="gaussian", confidence=0.999
        )
        assert found.by_family is not None
        assert 1.2 < found.by_family.mu < 1.5
        assert found.epsilon < found.by_family.epsilon(1e-5)
        assert "for the gaussian family" in repr(found)

    def test_epsilon_and_delta_of_mu(self) -> None:
        bound = GaussianBound(1.0, 0.9)
        assert bound.delta(1.0) == pytest.approx(gaussian_curve(1.0, 1.0), rel=1e-8)
        assert gaussian_curve(1.0, bound.epsilon(1e-5)) == pytest.approx(1e-5, rel=1e-6)
        assert GaussianBound(0.0, 0.9).epsilon(1e-5) == 0.0

    @pytest.mark.slow
    def test_infinite_scores_that_are_equal_show_nothing(self) -> None:
        """Log-likelihood ratios are infinite where one law has no mass: inf - inf is no evidence."""

        def attack(first: Floats, second: Floats) -> Callable[[Floats], Floats]:
            known = {*first[:, 0], *second[:, 0]}
            return lambda features: np.array([0.0 if value in known else math.inf for value in features[:, 0]])

        everywhere = np.full(200, math.inf)
        assert gaussian_bound(everywhere, everywhere, 0.999999, np.random.default_rng(0)).mu == 0.0
        for seed in range(3):
            first, second = np.random.default_rng(seed).random((2, 60))
            found = audit_outputs(
                first, second, claim=(0.1, 0.0), attack=attack, confidence=1 - 1e-3, random_state=seed
            )
            assert not found.refuted

    def test_equal_laws_show_nothing(self) -> None:
        rng = np.random.default_rng(8)
        assert gaussian_bound(np.zeros(50), np.zeros(50), 0.99, rng).mu == 0.0
