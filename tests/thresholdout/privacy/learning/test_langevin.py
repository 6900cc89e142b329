"""Langevin dynamics with privacy in every step: its loop, its noise, its account, its refusals."""

import dataclasses
import math
import warnings
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.cases import for_each
from tests.sizes import sizes
from tests.terminal import bars_at_once
from thresholdout.certificates.new_data import generalization_certificate
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting import (
    GaussianAnswer,
    SelfComposed,
    SGLDStep,
    UnsoundBoundWarning,
    sgld_generalization,
)
from thresholdout.privacy.accounting.accountants.calibration import best_delta
from thresholdout.privacy.accounting.generalization_bounds import best_error
from thresholdout.privacy.learning import run_sgld
from thresholdout.privacy.learning.bounded_mean import bounded_mean
from thresholdout.privacy.learning.langevin import LangevinRun

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (40, 3)) / math.sqrt(3)
Y = np.where(X @ [1.0, -2.0, 0.5] > 0, 1.0, -1.0)


def logistic(theta: Any, rows: Any, signs: Any) -> Any:
    return -(signs / (1.0 + np.exp(signs * (rows @ theta))))[:, None] * rows


def nothing(theta: Any, rows: Any, labels: Any) -> Any:
    return np.zeros((len(rows), theta.size))


def run(grad: Any = logistic, **named: Any) -> LangevinRun:
    usual: dict[str, Any] = {"theta0": [0.0, 0.0, 0.0], "step_sizes": 0.5, "T": 5, "batch_size": 8, "sigma": 0.3}
    return run_sgld(grad, X, Y, **{**usual, "L": 1.0, "random_state": 0, **named})


def test_one_noiseless_step_on_all_records_by_hand() -> None:
    """Gradients (3, 4), (0.3, 0.4), (-1, 0) with L = 1: clipped mean (-1/30, 0.4); 0.5 of it, and of (2, 0)/3."""
    rows = np.array([[3.0, 4.0], [0.3, 0.4], [-1.0, 0.0]])
    found = run_sgld(
        lambda theta, chosen, _: chosen,
        rows,
        np.zeros(3),
        theta0=[1.0, 1.0],
        step_sizes=0.5,
        T=1,
        batch_size=3,
        sigma=1e-12,
        L=1.0,
        grad_reg=lambda theta: 2.0 * theta * np.array([1.0, 0.0]),
    )
    np.testing.assert_allclose(found.theta, [1.0 - 0.5 * (-1 / 30 + 2 / 3), 0.8], atol=1e-10)


def test_tiny_noise_is_plain_gradient_descent() -> None:
    found = run(sigma=1e-12, batch_size=40, T=30, step_sizes=0.7, grad_reg=lambda theta: 0.2 * theta)
    theta = np.zeros(3)
    for _ in range(30):
        theta = theta - 0.7 * (logistic(theta, X, Y).mean(axis=0) + 0.2 * theta / 40)
    np.testing.assert_allclose(found.theta, theta, atol=1e-9)
    assert found.event is None
    assert math.isinf(found.privacy(1e-5).epsilon)


@sizes("steps", 1500, 4000)
def test_minibatches_are_fresh_subsets_of_the_size(steps: int) -> None:
    seen: list[Any] = []

    def watch(theta: Any, rows: Any, labels: Any) -> Any:
        seen.append(np.sort(rows[:, 0]))
        return np.zeros((len(rows), 1))

    run_sgld(
        watch,
        np.arange(10.0)[:, None],
        np.zeros(10),
        theta0=[0.0],
        step_sizes=1.0,
        T=steps,
        batch_size=4,
        sigma=1.0,
        L=1.0,
        random_state=3,
    )
    assert all(len(set(batch.tolist())) == 4 for batch in seen)
    counts = np.bincount([sum(1 << int(i) for i in batch) for batch in seen], minlength=1024)
    subsets = [sum(1 << i for i in subset) for subset in combinations(range(10), 4)]
    assert counts.sum() == counts[subsets].sum()
    assert stats.chisquare(counts[subsets]).pvalue > 1e-9
    pairs = sum(bool(np.array_equal(a, b)) for a, b in pairwise(seen))
    assert stats.binom.sf(pairs - 1, len(seen) - 1, 1 / 210) > 1e-9  # successive subsets do not depend on each other
    blocks = sum(not set(a.tolist()) & set(b.tolist()) for a, b in zip(seen[::2], seen[1::2], strict=True))
    expected = math.comb(6, 4) / 210
    assert stats.binomtest(blocks, len(seen) // 2, expected).pvalue > 1e-9
    assert stats.binomtest(len(seen) // 2, len(seen) // 2, expected).pvalue < 1e-9  # an order cut into batches


@pytest.mark.statistical
def test_d13_sigma_is_the_standard_deviation_of_the_noise_on_the_mean() -> None:
    """Two-sided at 1e-9; the variance, the noise on the sum and 30 % less are rejected."""
    sigma, steps = 0.25, 4000
    found = run(nothing, sigma=sigma, T=steps, step_sizes=0.5, theta0=np.zeros(5))
    noise = -np.diff(found.trajectory, axis=0).ravel() / 0.5
    low, high = (float(stats.chi2.ppf(level, noise.size)) for level in (0.5e-9, 1 - 0.5e-9))

    def accepted(std: float) -> bool:
        return bool(low < np.sum(noise**2) / std**2 < high)

    assert accepted(sigma)
    assert not accepted(math.sqrt(sigma))
    assert not accepted(sigma / 8)
    assert not accepted(0.7 * sigma)
    assert not accepted(1.3 * sigma)
    assert stats.kstest(noise / sigma, "norm").pvalue > 1e-9
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 6.2 / math.sqrt(noise.size)


def test_coupled_minibatches_of_neighbours_differ_by_the_sensitivity_at_most() -> None:
    """Record 0 is replaced. The same subset, or the subset with another record in its place: 2 L / tau, exactly."""
    L, tau, theta = 0.05, 3, np.array([0.3, -0.2, 0.1])
    rows, signs = X[:6], Y[:6]
    others = rows.copy()
    others[0] = -2 * rows[0]
    limit = (Fraction(2) * Fraction(L) / tau) ** 2

    def mean(data: Any, subset: Any) -> Any:
        chosen = list(subset)
        return bounded_mean(logistic(theta, data[chosen], signs[chosen]), L)

    def apart(one: Any, other: Any) -> Fraction:
        return sum(
            ((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(one, other, strict=True)), Fraction()
        )

    largest = Fraction()
    for subset in combinations(range(6), tau):
        here, there = mean(rows, subset), mean(others, subset)
        if 0 not in subset:
            np.testing.assert_array_equal(here, there)
            continue
        for place in set(range(6)) - set(subset):
            exchanged = mean(rows, [place, *subset[1:]])
            assert apart(exchanged, here) <= limit
            assert apart(exchanged, there) <= limit
        largest = max(largest, apart(here, there))
    assert largest <= limit
    assert largest > limit * Fraction(99, 100)  # here a replaced record is the worst one: L / tau would be wrong (D9)


@pytest.mark.statistical
@sizes("runs", 1500, 3000)
def test_the_epsilon_survives_an_attack_which_finds_half_the_noise(runs: int) -> None:
    """One record of 4 pulls the other way; the guess is by the first two iterates. Error rate 1e-9 for each side."""
    eps = 1.0
    record = np.ones((4, 1))
    other = record.copy()
    other[0] = -1.0

    def sums(data: Any, sigma: float, seed: int) -> Any:
        ends = [
            run_sgld(
                lambda theta, rows, _: rows,
                data,
                np.zeros(4),
                theta0=[0.0],
                step_sizes=1.0,
                T=2,
                batch_size=2,
                sigma=sigma,
                L=1.0,
                random_state=np.random.default_rng([seed, repeat]),
            ).theta[0]
            for repeat in range(runs)
        ]
        return np.asarray(ends)

    claimed = run_sgld(
        nothing, record, np.zeros(4), theta0=[0.0], step_sizes=1.0, T=2, batch_size=2, sigma=0.6, L=1.0
    ).event
    assert claimed is not None
    delta = best_delta(claimed, eps)
    for sigma, caught in ((0.6, False), (0.3, True)):
        with_it, without = sums(other, sigma, 1) > -1.0, sums(record, sigma, 2) > -1.0
        least = stats.binomtest(int(with_it.sum()), runs).proportion_ci(1 - 1e-9).low
        most = stats.binomtest(int(without.sum()), runs).proportion_ci(1 - 1e-9).high
        assert bool(least > math.exp(eps) * most + delta) is caught


@pytest.mark.slow
def test_worked_values() -> None:
    found = run_sgld(
        nothing,
        np.zeros(60_000),
        np.zeros(60_000),
        theta0=[0.0],
        step_sizes=0.1,
        T=2000,
        batch_size=64,
        sigma=0.5,
        L=1.0,
        random_state=0,
    )
    kov, optimal = found.composition(1e-6, 1e-6), found.composition(1e-6, 1e-6, method="optimal")
    assert kov.sound
    assert kov.eps == pytest.approx(0.0830, abs=5e-5)
    assert optimal.eps == pytest.approx(0.0659, abs=5e-5)
    assert best_error(kov.eps, kov.delta, 60_000, 2e-4) == pytest.approx(0.75, abs=0.005)
    assert best_error(optimal.eps, optimal.delta, 60_000, 2e-4) == pytest.approx(0.59, abs=0.005)
    assert sgld_generalization(60_000, 64, 2000, 1.0, 0.5, 1e-6, 1e-6).error == pytest.approx(9 * kov.eps, rel=1e-12)
    assert found.event == SelfComposed(SGLDStep(0.5, 1.0, 64, 60_000), 2000)
    assert found.privacy(kov.delta).epsilon < optimal.eps
    small = LangevinRun(np.zeros((501, 1)), 1000, 32, 1.0, False, 1.0, True, np.full(500, 0.1))
    loose = small.composition(1e-6, 1e-6)
    assert 0.9 < small.composition(1e-6, 1e-6, method="optimal").eps < loose.eps < 1.5  # "about 1"
    assert best_error(loose.eps, loose.delta, 1000, 0.05) is None
    one = LangevinRun(np.zeros((2, 1)), 10, 10, 1.0, False, 1.0, True, np.full(1, 0.1))
    assert one.composition(1e-5, 1e-6).details["step_eps"] == pytest.approx(0.9797051824376162, rel=1e-12)
    with pytest.warns(UnsoundBoundWarning):
        paper = one.composition(1e-5, 1e-6, formula="paper")
    assert paper.details["step_eps"] == pytest.approx(0.4998525912188081, rel=1e-12)
    assert not paper.sound


@pytest.mark.slow
def test_the_measured_gap_is_far_below_the_bound() -> None:
    """Section 9's learner on a logistic model with features of norm 1 at most; bounds fail with probability 0.01."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(160_000, 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    signs = np.where(rng.random(160_000) < 1 / (1 + np.exp(-8 * rows[:, 0])), 1.0, -1.0)
    options: dict[str, Any] = {"step_sizes": 0.5, "T": 2000, "batch_size": 64, "sigma": 0.5, "L": 1.0}
    found = run_sgld(logistic, rows[:60_000], signs[:60_000], theta0=np.zeros(5), random_state=0, **options)
    wrong = (rows @ found.theta) * signs <= 0
    gap = abs(wrong[:60_000].mean() - wrong[60_000:].mean())
    composed = found.composition(1e-6, 1e-6, method="optimal")
    bound = best_error(composed.eps, composed.delta, 60_000, 0.01)
    assert bound is not None
    assert gap < bound / 10 < 0.06
    assert wrong.mean() < 0.45


@pytest.mark.slow
def test_the_events_say_something_about_new_data() -> None:
    """The expected gap is at most tanh(epsilon/2) for pure privacy, so at most that with delta in it."""
    found = run(batch_size=40, sigma=0.5)
    assert found.event is not None
    report = found.privacy(1e-9)
    average = generalization_certificate(found.event, 40).average
    assert 0 < average < math.tanh(report.epsilon / 2) + 1e-9


def test_step_sizes_do_not_matter_for_privacy() -> None:
    small, large = run(step_sizes=0.01), run(step_sizes=[1.0, 2.0, 3.0, 4.0, 5.0])
    assert small.event == large.event
    assert small.composition(1e-6, 1e-6) == large.composition(1e-6, 1e-6)
    np.testing.assert_array_equal(large.step_sizes, [1, 2, 3, 4, 5])
    first, second = (np.diff(found.trajectory, axis=0)[0] / found.step_sizes[0] for found in (small, large))
    np.testing.assert_allclose(first, second, rtol=1e-12)


@pytest.mark.slow
def test_the_bound_and_the_noise_cancel() -> None:
    one, other = run(L=1.0, sigma=0.3), run(L=0.1, sigma=0.03)
    assert one.noise_multiplier == pytest.approx(other.noise_multiplier)
    assert one.privacy(1e-5).epsilon == pytest.approx(other.privacy(1e-5).epsilon)


def test_the_same_seed_gives_the_same_run_and_the_global_generator_is_left_alone() -> None:
    np.random.seed(7)  # noqa: NPY002
    expected = np.random.random(3)  # noqa: NPY002
    np.random.seed(7)  # noqa: NPY002
    one, again, other, fresh = run(), run(), run(random_state=1), run(random_state=None)
    np.testing.assert_array_equal(one.trajectory, again.trajectory)
    assert not np.array_equal(one.trajectory, other.trajectory)
    assert not np.array_equal(fresh.trajectory, run(random_state=None).trajectory)
    np.testing.assert_array_equal(np.random.random(3), expected)  # noqa: NPY002
    assert one.seeded
    assert not fresh.seeded


def test_start_sampling_and_noise_have_streams_of_their_own() -> None:
    noise, again = (np.diff(run(nothing, batch_size=size).trajectory, axis=0) for size in (8, 40))
    np.testing.assert_array_equal(noise, again)
    seen: list[list[Any]] = [[], []]
    for place, sigma in enumerate((0.1, 1.0)):
        keep = seen[place]

        def watch(theta: Any, rows: Any, labels: Any, keep: list[Any] = keep) -> Any:
            keep.append(rows)
            return np.zeros((len(rows), 3))

        run(watch, sigma=sigma)
    np.testing.assert_array_equal(seen[0], seen[1])
    started = run(nothing, theta0=lambda rng: rng.normal(size=3))
    np.testing.assert_allclose(started.trajectory - started.trajectory[0], run(nothing).trajectory, atol=1e-12)
    assert np.unique([*started.trajectory[0], *(noise[0] / -0.15)]).size == 6


def test_the_result_is_frozen() -> None:
    found = run()
    assert found.trajectory.shape == (6, 3)
    assert found.steps == 5
    np.testing.assert_array_equal(found.theta, found.trajectory[-1])
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.sigma = 0.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        found.trajectory[0] = 1.0
    assert repr(found) == "<LangevinRun: 5 steps on 8 of 40, sigma 0.3>"


def test_what_the_report_says() -> None:
    report = run().privacy(1e-5)
    assert math.isfinite(report.epsilon)
    assert report.private
    assert report.released == "the start and all iterates"
    assert any("random_state" in assumption for assumption in report.assumptions)
    assert not any("random_state" in assumption for assumption in run(random_state=None).privacy(1e-5).assumptions)
    assert any("longer than 1" in assumption for assumption in run(clip=False).privacy(1e-5).assumptions)
    assert run(batch_size=40).event == SelfComposed(SGLDStep(0.3, 1.0, 40, 40), 5)
    everything = SGLDStep(0.3, 1.0, 40, 40).primitive()
    assert isinstance(everything, GaussianAnswer)


def test_gradients_longer_than_the_bound() -> None:
    with pytest.raises(InputError, match=r"gradients must be .*; got a longer one"):
        run(L=0.01, clip=False, sigma=0.01)
    assert np.isfinite(run(L=0.01, sigma=0.01).theta).all()
    run(L=1.0, clip=False)


def test_gradients_of_the_wrong_kind() -> None:
    wrong: list[tuple[Any, str]] = [
        (
            lambda theta, rows, _: np.full((len(rows), 3), np.nan),
            "gradients must be .*; got a value that is not finite",
        ),
        (
            lambda theta, rows, _: np.full((len(rows), 3), np.inf),
            "gradients must be .*; got a value that is not finite",
        ),
        (lambda theta, rows, _: np.zeros(3), r"grad_loss must be .*; got an array of shape \(3,\)"),
        (lambda theta, rows, _: np.zeros((len(rows), 2)), r"numbers of shape \(8, 3\)"),
        (lambda theta, rows, _: np.full((len(rows), 3), "a"), "grad_loss"),
    ]
    for grad, message in wrong:
        with pytest.raises(InputError, match=message):
            run(grad)
    for regulariser in (lambda theta: np.zeros(2), lambda theta: np.full(3, np.nan), lambda theta: 0.0):
        with pytest.raises(InputError, match="grad_reg"):
            run(grad_reg=regulariser)


def test_a_gradient_cannot_change_the_iterate() -> None:
    def spoil(theta: Any, rows: Any, _: Any) -> Any:
        theta += 1.0
        return np.zeros((len(rows), 3))

    with pytest.raises(ValueError, match="read-only"):
        run(spoil)


def test_iterates_that_overflow() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(InputError, match="not finite after 1 steps"):
            run(nothing, theta0=[1e300, 0, 0], step_sizes=1e10, grad_reg=lambda theta: theta)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"sigma": 0.0}, "sigma"),
    ({"sigma": -1.0}, "sigma"),
    ({"sigma": math.nan}, "sigma"),
    ({"sigma": math.inf}, "sigma"),
    ({"sigma": 1e9}, r"sigma must be .*; got 1e\+09, 8e\+09 times the bound on the sum"),
    ({"L": 0.0}, "L"),
    ({"L": math.inf}, "L"),
    ({"L": 1e-200}, "L"),
    ({"T": 0}, "T"),
    ({"batch_size": 0}, "batch_size"),
    ({"batch_size": 41}, "batch_size must be at most 40, .*; got 41"),
    ({"step_sizes": 0.0}, "step_sizes"),
    ({"step_sizes": [0.1, 0.1, -0.1, 0.1, 0.1]}, "step_sizes"),
    ({"step_sizes": [0.1, 0.1]}, "step_sizes must be .*; got 2 numbers"),
    ({"step_sizes": math.nan}, "step_sizes"),
    ({"theta0": [0.0, math.nan, 0.0]}, "theta0"),
    ({"theta0": [[0.0]]}, "theta0"),
    ({"theta0": []}, "theta0"),
    ({"theta0": [[0.0], [0.0, 1.0]]}, "theta0"),
    ({"random_state": -1}, "random_state"),
]
BAD_TYPES: list[tuple[dict[str, Any], str]] = [
    ({"sigma": True}, "sigma"),
    ({"sigma": "1"}, "sigma"),
    ({"L": None}, "L"),
    ({"T": 5.0}, "T"),
    ({"batch_size": 8.0}, "batch_size"),
    ({"step_sizes": ["a"] * 5}, "step_sizes"),
    ({"theta0": ["a", "b", "c"]}, "theta0"),
    ({"clip": 1}, "clip"),
    ({"grad_reg": 0.1}, "grad_reg"),
    ({"random_state": "0"}, "random_state"),
]


@for_each(("named", "message"), BAD)
def test_values_that_are_refused(named: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(lambda *_: pytest.fail("data were looked at"), **named)


@for_each(("named", "message"), BAD_TYPES)
def test_types_that_are_refused(named: dict[str, Any], message: str) -> None:
    with pytest.raises(InputTypeError, match=message):
        run(lambda *_: pytest.fail("data were looked at"), **named)


def test_records_that_are_refused() -> None:
    usual: dict[str, Any] = {"theta0": [0.0], "step_sizes": 0.1, "T": 1, "batch_size": 1, "sigma": 1.0, "L": 1.0}
    for rows, labels, message in (
        ([], [], "X"),
        (1.0, [1.0], "X"),
        ([[1.0], [1.0, 2.0]], [1, 2], "X"),
        ([1.0, 2.0], [1.0], "y must be .*; got 1 labels"),
    ):
        with pytest.raises(InputError, match=message):
            run_sgld(nothing, rows, labels, **usual)
    with pytest.raises(InputTypeError, match="grad_loss"):
        run_sgld(None, [1.0], [1.0], **usual)  # type: ignore[arg-type]


def test_progress_is_shown_unless_it_is_not_wanted() -> None:
    with bars_at_once() as terminal:
        silent = run(progress=False)
        assert not terminal.getvalue()
        np.testing.assert_array_equal(silent.trajectory, run().trajectory)
    assert "0/5" in terminal.getvalue()
