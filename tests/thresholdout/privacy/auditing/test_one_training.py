"""One training with many canaries: the bound against the worst mechanism of all, found by linear programs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, sparse, stats

from tests.cases import for_each
from tests.sizes import corners
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting import GaussianAnswer
from thresholdout.privacy.auditing import audit_canaries, audit_training
from thresholdout.privacy.auditing.claimed_curves import ClaimedCurve, CurvePoint
from thresholdout.privacy.auditing.one_training import _guesses, chance_of_guesses


def curve(*points: tuple[float, float]) -> ClaimedCurve:
    return ClaimedCurve(tuple(CurvePoint(*point) for point in points))


CURVES = {
    "pure": curve((0.7, 0.0)),
    "approximate": curve((0.7, 0.05)),
    "two points": curve((0.0, 0.3), (1.0, 0.02)),
}


def worst_mechanism(claim: ClaimedCurve, canaries: int, guesses: int, correct: int) -> float:
    """Return the largest probability of so many right guesses that any mechanism on the curve has.

    All mechanisms: for each vector of coins a law on all vectors of guesses (0, 1, or none). The hockey-stick
    divergence of each two laws that differ in one coin is at most delta at each epsilon, in both orders.
    """
    outputs = [o for o in itertools.product((0, 1, None), repeat=canaries) if sum(g is not None for g in o) == guesses]
    worlds = list(itertools.product((0, 1), repeat=canaries))
    at = {world: k * len(outputs) for k, world in enumerate(worlds)}
    gain = np.zeros(len(worlds) * len(outputs))
    for world in worlds:
        for k, output in enumerate(outputs):
            right = sum(g == b for g, b in zip(output, world, strict=True) if g is not None)
            gain[at[world] + k] = (right >= correct) / len(worlds)
    pairs = [(w, v) for w in worlds for v in worlds if sum(a != b for a, b in zip(w, v, strict=True)) == 1]
    n, size = gain.size, len(outputs)
    rows: list[tuple[list[int], list[float]]] = []
    limits: list[float] = []
    extra = n
    for w, v in pairs:
        for point in claim.points:
            for k in range(size):  # excess >= O_w(o) - e^epsilon O_v(o)
                rows.append(([at[w] + k, at[v] + k, extra + k], [1.0, -math.exp(point.epsilon), -1.0]))
                limits.append(0.0)
            rows.append((list(range(extra, extra + size)), [1.0] * size))
            limits.append(point.delta)
            extra += size
    a = sparse.lil_matrix((len(rows), extra))
    for row, (columns, values) in enumerate(rows):
        for column, value in zip(columns, values, strict=True):
            a[row, column] = value
    whole = sparse.lil_matrix((len(worlds), extra))
    for row, world in enumerate(worlds):
        whole[row, at[world] : at[world] + size] = 1.0
    cost = np.concatenate([-gain, np.zeros(extra - n)])
    found: Any = optimize.linprog(
        cost,
        a.tocsr(),
        limits,
        whole.tocsr(),
        np.ones(len(worlds)),
        bounds=(0, None),  # type: ignore[call-overload]
    )
    assert found.success
    return float(-found.fun)


@for_each("name", CURVES)
@pytest.mark.parametrize(("canaries", "guesses"), corners([(1, 1), (2, 2), (2, 1), (3, 2), (3, 3)], 1, 2))
def test_no_mechanism_at_all_guesses_better(name: str, canaries: int, guesses: int) -> None:
    """With a twin: the bound for a little less privacy than the mechanism has must fail somewhere."""
    claim = CURVES[name]
    better = curve(*((0.9 * p.epsilon, 0.9 * p.delta) for p in claim.points))
    failed = False
    for correct in range(1, guesses + 1):
        worst = worst_mechanism(claim, canaries, guesses, correct)
        bound = chance_of_guesses(correct, guesses, canaries, claim)
        assert worst <= bound + 1e-7
        failed |= worst > chance_of_guesses(correct, guesses, canaries, better) + 1e-4
        if correct == guesses and claim is CURVES["pure"]:
            assert bound == pytest.approx(worst, abs=1e-6)
        elif correct == guesses == canaries:
            assert bound <= worst + 0.2  # not empty
    assert failed


@for_each(("m", "epsilon", "correct"), [(10, 0.0, 8), (40, 1.0, 33), (200, 0.3, 130)])
def test_pure_privacy_has_a_binomial_tail(m: int, epsilon: float, correct: int) -> None:
    """[Steinke, Nasr and Jagielski 2023, Theorem 5.2]: equal for guesses that are all right, and close otherwise."""
    rate = 1 / (1 + math.exp(-epsilon))
    exact = stats.binom.sf(correct - 1, m, rate)
    assert exact <= chance_of_guesses(correct, m, m, curve((epsilon, 0.0))) <= 1.25 * exact
    assert chance_of_guesses(m, m, m, curve((epsilon, 0.0))) == pytest.approx(rate**m, rel=1e-6, abs=1e-11)


@pytest.mark.slow
def test_one_canary_is_the_curve_itself() -> None:
    """A single guess is right with probability (1 + TV)/2 at most."""
    for mu in (0.3, 1.0, 2.5):
        event = GaussianAnswer(1 / mu, 1.0, "add_remove")
        found = audit_canaries([True], [1.0], claim=event, guesses=1)
        assert found.p_value is not None
        assert found.p_value == pytest.approx(stats.norm.cdf(mu / 2), abs=1e-3)
        assert found.p_value >= stats.norm.cdf(mu / 2)


def test_a_mechanism_that_tells_all_at_once() -> None:
    """With probability delta all coins are shown: guesses are as dependent as they can be."""
    delta, m = 0.05, 50
    found = chance_of_guesses(m, m, m, curve((0.0, delta)))
    assert found >= delta + (1 - delta) * 2.0**-m


def test_the_bound_falls_with_what_is_seen() -> None:
    found = [chance_of_guesses(c, 60, 100, CURVES["two points"]) for c in range(20, 61, 5)]
    assert all(a >= b for a, b in itertools.pairwise(found))
    assert 0.02 < found[-1] < 0.04


def test_epsilon_is_where_the_chance_is_alpha() -> None:
    included = np.arange(100) >= 50
    scores = included + 0.0
    scores[:4], scores[-3:] = 1.0, 0.0
    found = audit_canaries(included, scores, guesses=100, delta=1e-3, confidence=0.95, random_state=0)
    assert found.correct == 92
    at = chance_of_guesses(92, 100, 100, curve((found.epsilon, 1e-3)))
    assert 0.0499 < at <= 0.05


@pytest.mark.slow
def test_half_of_the_noise_is_found_in_one_training() -> None:
    event = GaussianAnswer(1.0, 1.0, "add_remove")
    seen = []
    for noise in (1.0, 0.5):

        def train(included: NDArray[np.bool_], seed: int, noise: float = noise) -> NDArray[np.float64]:
            found: NDArray[np.float64] = included + noise * np.random.default_rng(seed).normal(size=included.size)
            return found

        seen.append([audit_training(train, 500, claim=event, random_state=k).refuted for k in range(5)])
    assert seen == [[False] * 5, [True] * 5]


@pytest.mark.slow
def test_replaced_records() -> None:
    """Two versions of each canary, 1 or -1: the difference is twice the sensitivity."""
    rng = np.random.default_rng(3)
    which = rng.random(400) < 0.5
    scores = np.where(which, 1.0, -1.0) + rng.normal(size=400)
    found = audit_canaries(which, scores, claim=GaussianAnswer(1.0, 2.0), adjacency="replace_one", family="gaussian")
    assert not found.refuted
    assert found.mu is not None
    assert 0.8 < found.mu < 2.0
    assert audit_canaries(which, scores, claim=GaussianAnswer(1.0, 1.0), adjacency="replace_one").refuted


def test_guesses_are_the_highest_and_the_lowest() -> None:
    guessed, said = _guesses(np.array([0.3, 5.0, -2.0, 0.1, 4.0]), 3, np.random.default_rng(0))
    assert dict(zip(guessed.tolist(), said.tolist(), strict=True)) == {2: False, 1: True, 4: True}


def test_ties_are_broken_by_other_coins_than_those_of_the_same_integer() -> None:
    """Equal scores: 30 guesses by the coins of inclusion would all be right, which fair coins are once in 2^30."""
    for seed in range(3):
        included = np.random.default_rng(seed).random(100) >= 0.5
        found = audit_canaries(included, np.zeros(100), guesses=30, claim=(0.0, 0.0), random_state=seed)
        assert 0 < found.correct < 30


def test_refusals() -> None:
    ones, zeros = np.ones(4), np.zeros(4)
    with pytest.raises(InputError, match="included"):
        audit_canaries([0.5, 1.0], [1.0, 2.0])
    with pytest.raises(InputError, match="4 finite numbers"):
        audit_canaries(ones, zeros[:3])
    with pytest.raises(InputError, match="at most 4"):
        audit_canaries(ones, zeros, guesses=5)
    with pytest.raises(InputError, match="family"):
        audit_canaries(ones, zeros, family="laplace")  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="train"):
        audit_training("fit", 4)  # type: ignore[arg-type]

    def never(included: NDArray[np.bool_], seed: int) -> None:
        raise AssertionError("trained before the options were checked")

    with pytest.raises(InputError, match="confidence"):
        audit_training(never, 4, confidence=1.5)
