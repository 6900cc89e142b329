"""The published composition theorems: their values, and the counterexamples to them."""

import itertools
import math
import warnings

import numpy as np
import pytest

from tests.cases import for_each
from tests.thresholdout.privacy.accounting.oracles import bernoulli_tail, equal_delta
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.adaptive_steps import (
    chernoff_delta,
    compose_chernoff,
    compose_kov,
    compose_theorem5,
)
from thresholdout.privacy.accounting.optimal_composition import compose_optimal_delta
from thresholdout.privacy.accounting.published_bounds import (
    compose_he,
    first_order_delta,
    full_steps,
    paper_log_tail,
    second_delta,
)
from thresholdout.privacy.accounting.results import Composition, UnsoundBoundWarning


def published(*args: object, variant: str, check: bool = False) -> Composition:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsoundBoundWarning)
        return compose_he(*args, variant=variant, formula="paper", check=check)  # type: ignore[arg-type]


def leak(delta: float, T: int) -> float:
    """Return the probability that one of T steps, each revealing its input with probability delta, does so."""
    return -math.expm1(T * math.log1p(-delta))


def test_worked_values() -> None:
    one, two = (published(0.1, 1e-6, 1e-6, 100, variant=v) for v in ("I", "II"))
    assert one.delta == pytest.approx(9.887682987766891e-05, rel=1e-12)
    assert two.delta == pytest.approx(9.889937401599176e-05, rel=1e-12)
    assert two.details["m"] == 58
    assert two.details["first_order"] == pytest.approx(9.890174825e-05, rel=1e-9)
    assert paper_log_tail(0.1, 100, 5.756105519335735) == pytest.approx(-30.632715170453707, rel=1e-12)
    assert first_order_delta(0.1, 1e-6, 100, 58, 1e-6) == two.details["first_order"]


def test_d1_no_delta_is_below_what_leaks_outright() -> None:
    """A step that reveals its input with probability delta is (0, delta)-private, and T leak with 1 - (1-delta)^T."""
    with pytest.warns(UnsoundBoundWarning):
        found = compose_he(0.5, 1e-6, 1e-9, 100, variant="II", formula="paper", check=True)
    assert found.delta == pytest.approx(9.730e-5, rel=1e-4)
    assert found.delta < leak(1e-6, 100) == pytest.approx(9.9995e-5, rel=1e-5)
    assert not found.sound
    assert found.details["violates"]
    for variant in ("I", "II", "III", "V"):
        assert published(0.5, 1e-6, 1e-9, 100, variant=variant).delta < leak(1e-6, 100)
        right = compose_he(0.5, 1e-6, 1e-9, 100, variant=variant, check=True)
        assert right.sound
        assert not right.details["violates"]
        assert right.delta >= leak(1e-6, 100)


@pytest.mark.slow
def test_d1_on_a_grid() -> None:
    violations, worst, settings = 0, 0.0, 0
    for eps, T, dt, delta in itertools.product(
        (0.01, 0.1, 0.5, 1.0, 2.0), (2, 10, 50, 200, 1000), (1e-9, 1e-6, 1e-3, 0.1), (1e-8, 1e-6, 1e-4)
    ):
        settings += 1
        found = published(eps, delta, dt, T, variant="II", check=True)
        violations += found.details["violates"]
        worst = max(worst, 1 - found.delta / found.details["optimal_delta"])
        assert not found.sound or not found.details["violates"]
        kov = compose_kov(eps, delta, dt, T)
        assert kov.delta >= compose_optimal_delta(eps, delta, kov.eps, T) * (1 - 1e-9)
    assert violations > settings / 20
    assert worst > 0.1


@pytest.mark.slow
def test_d2_the_published_tail_has_the_wrong_sign() -> None:
    """It is e^-(eps' + T eps) times the right one, and below the optimum."""
    eps, T, total = 0.1, 100, 5.756105519335735
    assert chernoff_delta(eps, T, total) == pytest.approx(float(bernoulli_tail(eps, T, total)), rel=1e-10)
    exact = float(equal_delta(eps, 0, total, T))
    assert exact == pytest.approx(3.808383547e-9, rel=1e-9)
    assert math.exp(paper_log_tail(eps, T, total)) < exact / 1e4 < exact < chernoff_delta(eps, T, total)
    below = 0
    for e, steps, dt in itertools.product((0.01, 0.1, 0.5), (50, 200, 1000), (1e-9, 1e-6, 1e-3)):
        third = compose_theorem5(e, dt, steps).eps
        if third < steps * e:
            below += math.exp(paper_log_tail(e, steps, third)) < float(equal_delta(e, 0, third, steps))
    assert below >= 15


def test_d3_published_iii_is_unsound_without_a_delta_too() -> None:
    found = published(0.1, 0.0, 1e-6, 100, variant="III", check=True)
    assert not found.sound
    assert found.details["violates"]


def test_d6_without_the_box_one_alpha_takes_everything() -> None:
    small = 1e-6 / (1 + math.exp(0.1))
    total = compose_kov(0.1, 1e-6, 1e-6, 100).eps
    others = -math.expm1(99 * math.log1p(-small) + math.log1p(-math.exp(total) * small))
    literal = 1e-6 + others - math.expm1(100 * math.log1p(-small))
    assert literal == pytest.approx(2.457e-4, rel=1e-3)
    assert published(0.1, 1e-6, 1e-6, 100, variant="I").delta < literal / 2


def test_d7_ii_relaxes_i() -> None:
    for eps, T, dt in itertools.product((0.05, 0.3, 1.0), (5, 40, 300), (1e-9, 1e-4)):
        one, two = (published(eps, 1e-5, dt, T, variant=v) for v in ("I", "II"))
        assert one.delta <= two.delta * (1 + 1e-12)


def test_d8_ii_is_above_kov_where_the_sum_is_the_smallest() -> None:
    two, kov = published(1.0, 1e-5, 1e-5, 20, variant="II"), compose_kov(1.0, 1e-5, 1e-5, 20)
    assert two.delta == pytest.approx(2.09988e-4, rel=1e-5)
    assert kov.details["literal_delta"] == pytest.approx(2.09979e-4, rel=1e-5)
    assert two.delta > kov.details["literal_delta"]


def test_the_claimed_gain() -> None:
    kov, two = compose_kov(0.1, 1e-6, 1e-6, 100), published(0.1, 1e-6, 1e-6, 100, variant="II")
    assert kov.delta - two.delta == pytest.approx(2.096e-6, rel=1e-3)
    assert 1e-6 * math.tanh(0.05) * 42 == pytest.approx(2.098e-6, rel=1e-3)


def test_pure_steps_and_large_epsilons_are_sound() -> None:
    for variant in ("I", "II", "V"):
        found = compose_he(0.1, 0.0, 1e-6, 100, variant=variant, formula="paper")
        assert found.sound
        assert found.delta == 1e-6
        assert found.eps == compose_kov(0.1, 0.0, 1e-6, 100).eps
    for variant in ("I", "II", "III"):
        found = compose_he(1.0, 1e-3, 1e-3, 5, variant=variant, formula="paper", check=True)
        assert found.sound
        assert found.delta >= leak(1e-3, 5)
        assert not found.details["violates"]
    four = compose_he(0.1, 0.0, 1e-6, 100, variant="IV", formula="paper")
    assert four.sound
    assert four.eps == compose_theorem5(0.1, 1e-6, 100).eps


def test_corrected_variants_are_the_valid_rules() -> None:
    kov = compose_kov(0.1, 1e-6, 1e-6, 100)
    for variant in ("I", "II"):
        assert tuple(compose_he(0.1, 1e-6, 1e-6, 100, variant=variant)) == tuple(kov)
    assert tuple(compose_he(0.1, 1e-6, 1e-6, 100, variant="III")) == tuple(compose_chernoff(0.1, 1e-6, 100, 1e-6))
    five = compose_he(0.1, 1e-6, 0.5, 5, variant="V")
    assert five.eps == five.details["e3"]
    assert five.delta == five.details["literal_delta"]
    assert compose_he([0.1, 0.2], 0.0, 1e-3, variant="IV").eps == compose_theorem5([0.1, 0.2], 1e-3).eps


def test_i_by_every_vertex() -> None:
    """For unequal steps, against all ways to choose full steps and one partial one."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        eps, delta, dt = rng.uniform(0.1, 1, 6), rng.uniform(0, 0.1, 6), 0.3
        total = min(compose_kov(eps, delta, dt).eps, float(eps.sum()))
        d = delta / (1 + np.exp(eps))
        best = 0.0
        for full in itertools.product([0, 1], repeat=6):
            rest = total - float(eps @ np.array(full))
            for j in range(6):
                if full[j] or not -1e-12 <= rest <= eps[j] * (1 + 1e-12):
                    continue
                alpha = eps * np.array(full)
                alpha[j] = max(rest, 0.0)
                best = max(best, 1 - float(np.prod(1 - np.exp(alpha) * d)))
        if total >= eps.sum() * (1 - 1e-12):
            best = 1 - float(np.prod(1 - np.exp(eps) * d))
        expected = dt + best + 1 - float(np.prod(1 - d))
        assert published(eps, delta, dt, variant="I").delta == pytest.approx(min(1, expected), rel=1e-9)


def test_i_with_many_different_steps_is_bounded_by_the_knapsack() -> None:
    eps = np.linspace(0.05, 0.15, 40)
    found = published(eps, 1e-4, 1e-3, variant="I")
    assert found.details["exact"] is False
    small, large = 1e-4 / (1 + np.exp(eps)), 1e-4 / (1 + np.exp(-eps))
    assert found.delta <= 1e-3 + 1 - np.prod(1 - large) + 1 - np.prod(1 - small)
    alpha = np.full(40, found.eps / 40)  # any point of the box with this sum is below
    alpha = np.minimum(alpha, eps)
    assert found.delta >= 1e-3 + 1 - np.prod(1 - np.exp(alpha) * small) + 1 - np.prod(1 - small)


def test_full_steps_are_rounded_up() -> None:
    assert full_steps(0.3, 0.1, 10) == 3
    assert full_steps(0.31, 0.1, 10) == 4
    assert full_steps(5.0, 0.1, 10) == 10
    assert second_delta(700.0, 0.5, 3, 3, 0.0) == pytest.approx(1 - 0.5**3)


@for_each("eps", [0.0, 1e-12, 50.0, 700.0])
@for_each("T", [1, 10**6])
def test_no_overflow(eps: float, T: int) -> None:
    for delta, variant in itertools.product((0.0, 1e-300, 0.999999), ("I", "II", "III", "V")):
        found = published(eps, delta, 1e-6, T, variant=variant)
        assert math.isfinite(found.eps)
        assert 0 <= found.delta <= 1


def test_refusals() -> None:
    with pytest.raises(InputError, match="equal steps"):
        compose_he([0.1, 0.2], 0.0, 1e-3, variant="II")
    with pytest.raises(InputError, match="pure steps"):
        compose_he(0.1, 1e-6, 1e-3, 5, variant="IV")
    with pytest.raises(InputError):
        compose_he(0.1, 1e-6, 1e-3, 5, variant="VI")
    with pytest.raises(InputError):
        compose_he(0.1, 1e-6, 1e-3, 5, formula="best")
