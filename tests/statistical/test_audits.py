"""Audits of what this package says about privacy: lower bounds stay below guarantees, and broken versions are caught.

Single comparisons are made at a confidence of 1 - 1e-9, so that a true guarantee fails its test with probability 1e-9.
Bounds over many seeds are at a confidence of 0.9, and the number of those that are too large is compared with a
binomial quantile at 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr
from scipy.stats import binom

from tests.oracles.noise_doubles import LaplaceOnly
from tests.sizes import corners
from thresholdout import SparseVector, Thresholdout
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.mechanisms import SparseVectorMechanism, SparseVectorParameters
from thresholdout.noise.sources import NoiseSource, SeededNoise
from thresholdout.privacy.accounting import (
    GaussianAnswer,
    SelfComposed,
    ThresholdoutInteraction,
    WithoutReplacementGaussianStep,
    best_epsilon,
)
from thresholdout.privacy.accounting.accountants.calibration import best_delta
from thresholdout.privacy.auditing import audit_learner, audit_outputs, audit_sampler
from thresholdout.privacy.learning import DPSGDClassifier, sgld_sample, step_size, worst_case_pair
from thresholdout.privacy.learning.dpsgd.batches import Batches

pytestmark = [
    pytest.mark.statistical,
    pytest.mark.filterwarnings("ignore::thresholdout.privacy.learning.LowSignalWarning"),  # a record, and much noise
]

Floats = NDArray[np.float64]
SURE = 1 - 1e-9
SEEDS = 40
MOST = int(binom.isf(1e-9, SEEDS, 0.1))  # so many of the bounds at 0.9 may be too large


def gaussian_epsilon(shift: float, delta: float) -> float:
    """Epsilon of two normal laws of variance 1, from their distribution functions [Balle and Wang, Theorem 8]."""

    def excess(epsilon: float) -> float:
        near, far = shift / 2 - epsilon / shift, -shift / 2 - epsilon / shift
        return math.exp(log_ndtr(near)) - math.exp(epsilon + log_ndtr(far)) - delta

    return float(brentq(excess, 0.0, 100.0))


def normal(mean: float, size: int, rng: np.random.Generator, noise: float = 1.0) -> Floats:
    return rng.normal(mean, noise, size)


class TestGaussianAnswers:
    """Noise of standard deviation 1 on a number that differs by 1, audited where the truth is known."""

    def test_bounds_are_below_the_truth_and_the_accountant(self) -> None:
        truth, accounted = gaussian_epsilon(1.0, 0.05), best_epsilon(GaussianAnswer(1.0), 0.05).epsilon
        assert truth <= accounted
        bounds = [
            audit_sampler(partial(normal, 0.0), partial(normal, 1.0), delta=0.05, draws=800, random_state=seed).epsilon
            for seed in range(SEEDS)
        ]
        assert sum(bound > truth for bound in bounds) <= MOST
        assert np.median(bounds) > truth / 3

    def test_an_attack_counted_where_it_was_fitted_breaks_the_promise(self) -> None:
        """The side that must fail: equal laws, and an attack that knows the outputs it is tried on."""

        def by_heart(first: Floats, second: Floats) -> Callable[[Floats], Floats]:
            known = set(second[:, 0].tolist())
            return lambda features: np.array([float(value in known) for value in features[:, 0].tolist()])

        broken = 0
        for seed in range(SEEDS):
            first, second = (normal(0.0, 50, rng) for rng in np.random.default_rng(seed).spawn(2))
            twice = np.concatenate([first, first]), np.concatenate([second, second])
            broken += audit_outputs(*twice, delta=0.05, attack=by_heart).epsilon > 0
        assert broken > MOST

    def test_half_the_noise_is_caught(self) -> None:
        claim = best_epsilon(GaussianAnswer(2.0), 0.01).epsilon
        for noise, caught in ((2.0, False), (1.0, True)):
            result = audit_sampler(
                partial(normal, 0.0, noise=noise),
                partial(normal, 1.0, noise=noise),
                delta=0.01,
                confidence=SURE,
                random_state=1,
            )
            assert result.contradicts(claim, 0.01) == caught


class Half(LaplaceOnly):
    """Noise of half the scale."""

    for_release = False

    def __init__(self, noise: NoiseSource) -> None:
        self.noise = noise

    def laplace(self, scale: Fraction) -> int:
        return self.noise.laplace(scale / 2)


class ThresholdKept(LaplaceOnly):
    """The noise of a test is no fresh draw, but that of the threshold: it has the right law, and protects nothing."""

    for_release = False

    def __init__(self, noise: NoiseSource) -> None:
        self.noise = noise
        self.threshold: tuple[Fraction, int] | None = None

    def laplace(self, scale: Fraction) -> int:
        if self.threshold is None:
            self.threshold = scale, self.noise.laplace(scale)
            return self.threshold[1]
        return 2 * self.threshold[1] if scale == 2 * self.threshold[0] else self.noise.laplace(scale)


Ask = Callable[[float], Any]


class TestGuard:
    """One record whose values are 0 or 1, budget 1, noise scale 1: the interaction costs at most 2.25 nats.

    Five queries whose test fails more easily on one holdout, then one that it passes more easily there; with half the
    noise, the log ratio of this pattern is up to 4.
    """

    threshold = 0.5

    def transcript(self, ask: Ask, side: int) -> float:
        """What an analyst sees: 0, or 1 and the last answer after the whole pattern."""
        values = [float(side)] * 5 + [1.0 - side]
        for value in values[:-1]:
            if ask(value).source == "holdout":
                return 0.0
        answer = ask(values[-1])
        return 1.0 + answer.value if answer.source == "holdout" else 0.0

    def audit(self, start: Callable[[NoiseSource], Ask], runs: int) -> Any:
        seen = [
            np.array([self.transcript(start(SeededNoise(2 * run + side)), side) for run in range(runs)])
            for side in (0, 1)
        ]
        return audit_outputs(*seen, delta=0.0, confidence=SURE, attack="score", fit_share=0.25)

    @pytest.mark.slow
    @pytest.mark.parametrize(("make", "caught"), [(lambda noise: noise, False), (ThresholdKept, True)])
    def test_a_whole_guard(self, monkeypatch: pytest.MonkeyPatch, make: Any, caught: bool) -> None:
        certificates: dict[str, Any] = {}

        def once(*args: Any, **options: Any) -> Any:  # all guards have the same parameters
            if "it" not in certificates:
                certificates["it"] = certify_parameters(*args, **options)
            return certificates["it"]

        def start(noise: NoiseSource) -> Ask:
            guard = Thresholdout(
                np.zeros(1), mechanism=SparseVector(self.threshold, 1.0, budget=1), queries=6, random_state=make(noise)
            )
            return lambda value: guard.ask(0.0, np.array([value]))

        monkeypatch.setattr("thresholdout.guard.registration.certify_parameters", once)
        result = self.audit(start, 2000)
        assert result.contradicts(ThresholdoutInteraction(1, 1.0, 1).epsilon, 0.0) == caught

    @pytest.mark.parametrize(
        ("make", "runs", "caught"), corners([(lambda noise: noise, 10_000, False), (Half, 20_000, True)], 0)
    )
    def test_its_mechanism(self, make: Any, runs: int, caught: bool) -> None:
        mechanism = SparseVectorMechanism(SparseVectorParameters(self.threshold, 1.0, budget=1, queries=None))

        def start(noise: NoiseSource) -> Ask:
            noise = make(noise)
            state = [mechanism.start(noise)]

            def ask(value: float) -> Any:
                state[0], outcome = mechanism.step(state[0], 0.0, value, noise)
                return outcome

            return ask

        result = self.audit(start, runs)
        assert result.contradicts(ThresholdoutInteraction(1, 1.0, 1).epsilon, 0.0) == caught
        assert result.epsilon > 0.3


class Steps:
    """DP-SGD in one direction, in which one record's clipped gradient is -1 or +1 and all others are 0.

    Every step is released, divided by its noise. `order` says which steps see the record: "fresh" batches without
    replacement as the accountant assumes; "swept": every epoch goes through the records in the same, known order;
    "shuffled": every epoch goes through them in a new order.
    """

    def __init__(self, records: int, batch: int, steps: int, noise: float, order: str = "fresh") -> None:
        self.records, self.batch, self.steps, self.noise, self.order = records, batch, steps, noise, order

    def draw(self, gradient: float, size: int, rng: np.random.Generator) -> Floats:
        """Return increments, shape (size, steps)."""
        length = self.records // self.batch
        if self.order == "fresh":
            hits = rng.random((size, self.steps)) < self.batch / self.records
        elif self.order == "swept":
            hits = np.broadcast_to(np.arange(self.steps) % length == 0, (size, self.steps))
        else:
            place = rng.integers(0, length, (size, self.steps // length))
            hits = (np.arange(length) == place[:, :, None]).reshape(size, self.steps)
        return gradient * hits / self.noise + rng.normal(size=(size, self.steps))

    def ratio(self, increments: Floats) -> Floats:
        """Return the log-likelihood ratio of both data sets for fresh batches."""
        rate, shift = self.batch / self.records, 1 / self.noise
        both = (np.log1p(rate * np.expm1(s * increments * shift - shift**2 / 2)) for s in (1, -1))
        return np.asarray((next(both) - next(both)).sum(axis=1))

    def audit(self, score: Callable[[Floats], Floats] | None = None, **options: Any) -> Any:
        chosen = {"draws": 10_000, "attack": "score", "confidence": SURE, "random_state": 2, **options}
        score = score or self.ratio
        return audit_sampler(
            lambda size, rng: score(self.draw(-1.0, size, rng)),
            lambda size, rng: score(self.draw(1.0, size, rng)),
            **chosen,
        )


class TestSteps:
    """Simulated steps against the account of fresh batches."""

    @pytest.mark.slow
    def test_bounds_of_many_seeds_stay_below_the_account(self) -> None:
        for records, batch, steps, noise in ((32, 8, 16, 3.0), (8, 4, 4, 1.0)):
            event = SelfComposed(WithoutReplacementGaussianStep(noise, batch, records), steps)
            claim = best_epsilon(event, 0.02).epsilon
            process = Steps(records, batch, steps, noise)
            bounds = [
                process.audit(delta=0.02, draws=600, confidence=0.9, random_state=seed).epsilon for seed in range(SEEDS)
            ]
            assert sum(bound > claim for bound in bounds) <= MOST
            assert np.median(bounds) > claim / 5

    @pytest.mark.parametrize(
        ("noise", "order", "caught"), [(4.0, "fresh", False), (2.0, "fresh", True), (4.0, "swept", True)]
    )
    def test_half_the_noise_and_a_swept_order_are_caught(self, noise: float, order: str, caught: bool) -> None:
        """In a known order, the record's own steps show 2 sqrt(16)/4 = 2 standard deviations of difference.

        That is a Gaussian answer without any sampling, which costs 3.8 nats at delta 0.02; the account says 1.6.
        """
        claim = best_epsilon(SelfComposed(WithoutReplacementGaussianStep(4.0, 8, 64), 128), 0.02).epsilon
        assert claim < 1.7 < 3.7 < gaussian_epsilon(2.0, 0.02)
        process = Steps(64, 8, 128, noise, order)
        score = (lambda increments: increments[:, ::8].sum(axis=1)) if order == "swept" else None
        assert process.audit(score, delta=0.02).contradicts(claim, 0.02) == caught

    def test_an_epoch_that_sees_every_record_once_is_caught(self) -> None:
        """Two fresh batches of half the records miss a record with probability 1/4, a partition of them never does.

        So the account, whatever the noise, knows that the data sets stay within 3/4 in total variation; with little
        noise a partition tells them apart nearly always.
        """
        claim = best_delta(SelfComposed(WithoutReplacementGaussianStep(0.3, 4, 8), 2), 1.0)
        assert claim < 0.8
        for order, caught in (("fresh", False), ("shuffled", True)):
            result = Steps(8, 4, 2, 0.3, order).audit(epsilon=1.0)
            assert result.contradicts(1.0, claim) == caught


ROWS = np.zeros((16, 2))
ROWS[0, 0] = 1.0  # the only record with a gradient
LABELS = np.arange(16) % 2
OTHER = np.where(np.arange(16) == 0, 1 - LABELS, LABELS)


def trained(labels: NDArray[np.int64], seed: int, *, noise: float, batch: int, steps: int) -> list[float]:
    """Weights of the first feature, before the first step and after each one."""
    path = [0.0]

    def remember(step: int, layers: Any) -> None:
        weights = layers[0][0]
        path.append(float(weights[0, 1] - weights[0, 0]))

    model = DPSGDClassifier(
        batch_size=batch,
        n_steps=steps,
        clip_norm=0.01,
        learning_rate=1.0,
        noise_multiplier=noise,
        classes=[0, 1],
        fit_intercept=False,
        random_state=seed,
        callback=remember,
    )
    model.fit(ROWS, labels)
    return path


def last(path: list[float]) -> float:
    return path[-1]


def first_of_each_sweep(path: list[float], length: int) -> float:
    return float(np.diff(path)[::length].sum())


class TestDPSGD:
    """The classifier of this package, against its own report."""

    @pytest.mark.slow
    @pytest.mark.parametrize(("batch", "steps"), [(16, 4), (8, 8)])
    def test_bounds_of_many_seeds_stay_below_the_report(self, batch: int, steps: int) -> None:
        make = partial(trained, noise=4.0, batch=batch, steps=steps)
        claim = best_epsilon(self.event(batch, steps), 0.05).epsilon
        bounds = [
            audit_learner(
                make, LABELS, OTHER, features=last, models=40, delta=0.05, random_state=seed, progress=False
            ).epsilon
            for seed in range(10)
        ]
        assert sum(bound > claim for bound in bounds) <= int(binom.isf(1e-9, 10, 0.1))
        assert max(bounds) > 0.1

    @staticmethod
    def event(batch: int, steps: int, noise: float = 4.0) -> Any:
        """What the report of a model says was done."""
        model = DPSGDClassifier(batch_size=batch, n_steps=steps, noise_multiplier=noise, random_state=0)
        return model.fit(ROWS, LABELS).privacy_report_.event

    @pytest.mark.parametrize(("noise", "caught"), [(4.0, False), (2.0, True)])
    def test_half_the_noise_is_caught(self, noise: float, caught: bool) -> None:
        claim = best_delta(self.event(16, 4), 0.3)
        make = partial(trained, noise=noise, batch=16, steps=4)
        result = audit_learner(
            make,
            LABELS,
            OTHER,
            features=last,
            models=400,
            epsilon=0.3,
            confidence=SURE,
            fit_share=0.1,
            random_state=1,
            progress=False,
        )
        assert result.contradicts(0.3, claim) == caught

    @pytest.mark.slow
    @pytest.mark.parametrize("caught", [False, True])
    def test_a_swept_order_is_caught(self, monkeypatch: pytest.MonkeyPatch, caught: bool) -> None:
        """Batches of two in the order of the records: the first one is in every eighth batch, as everybody knows."""
        if caught:
            turn = iter(range(10**9))

            def swept(self: Batches, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
                return (np.arange(self.batch_size) + self.batch_size * next(turn)) % n

            monkeypatch.setattr(Batches, "draw", swept)
        claim = best_delta(self.event(2, 64, 3.0), 0.3)
        result = audit_learner(
            partial(trained, noise=3.0, batch=2, steps=64),
            LABELS,
            OTHER,
            features=partial(first_of_each_sweep, length=8),
            models=400,
            epsilon=0.3,
            confidence=SURE,
            fit_share=0.1,
            random_state=2,
            progress=False,
        )
        assert result.contradicts(0.3, claim) == caught


class TestSGLD:
    """The sampler on the worst pair of 100 records; exact epsilons at delta 0.001 from an independent computation."""

    records = 100

    def audit(self, order: str, epochs: int, draws: int) -> Any:
        alpha, beta, x_high = 1.0, 4.0, 1.0
        pair = worst_case_pair(self.records, self.records**1.2, x_high)
        eta = step_size(self.records, x_high, alpha, beta)

        def sampler(part: int) -> Callable[[int, np.random.Generator], Floats]:
            x, y = pair[part]
            return lambda size, rng: sgld_sample(
                x, y, alpha, beta, eta, epochs * self.records, order=order, n_chains=size, rng=rng
            )

        return audit_sampler(
            sampler(0), sampler(1), delta=0.001, confidence=SURE, draws=draws, attack="gaussian", random_state=3
        )

    @pytest.mark.parametrize(("epochs", "exact", "least"), [(1, 1.2689715, 0.2), (4, 7.0572956, 2.0)])
    def test_sweeps_in_a_secret_order(self, epochs: int, exact: float, least: float) -> None:
        assert least < self.audit("cyclic", epochs, 20_000).epsilon < exact

    @pytest.mark.slow
    def test_fresh_draws_are_told_apart_in_the_other_direction(self) -> None:
        """Defect E7: no event that is likely on the first data set shows more than the cap, one on the second does."""
        cap = -3 * self.records * math.log1p(-1 / self.records)
        result = self.audit("uniform", 3, 100_000)
        assert result.epsilon > cap + 0.3
        assert result.fp[0] < 0.001 * result.n_fp
        assert result.n_fn - result.fn[0] > 0.01 * result.n_fn
