"""The estimator: conventions, what it finds, what it reports, what it refuses, and what an interrupt leaves of it."""

from __future__ import annotations

import math
import pickle
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest, norm
from sklearn.base import clone
from sklearn.mixture import GaussianMixture

from tests.cases import for_each
from tests.estimator_checks import each_check
from tests.sizes import corners
from tests.thresholdout.privacy.learning.private_learners import X
from thresholdout.errors import InputError, ThresholdoutError
from thresholdout.privacy.accounting import GaussianAnswer, SelfComposed
from thresholdout.privacy.learning import DPEMGaussianMixture, LowSignalWarning, SpentTargetWarning
from thresholdout.privacy.learning.dpem import mixture
from thresholdout.privacy.learning.dpem.record_statistics import on_grid, statistics_sum
from thresholdout.privacy.learning.interrupted_calls import RunInterrupted

CENTERS = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
NOISY = DPEMGaussianMixture(2, noise_multiplier=3.0, n_steps=7, clip_norm=2.0, random_state=3, progress=False)


def blobs(n: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return CENTERS[rng.integers(0, 3, n)] + 0.5 * rng.normal(size=(n, 2))


@pytest.mark.slow
@each_check(
    [
        DPEMGaussianMixture(),
        DPEMGaussianMixture(2, noise_multiplier=0.0, covariance_type="full", n_steps=5),
        DPEMGaussianMixture(adjacency="add_remove", covariance_type="diag", noise_multiplier=1.0, n_steps=3),
    ]
)
def test_conventions_of_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.slow
@for_each("kind", ["spherical", "diag", "full"])
def test_without_noise_it_finds_what_scikit_learn_finds(kind: str) -> None:
    rows = blobs(1500)
    found = DPEMGaussianMixture(
        3,
        covariance_type=kind,
        noise_multiplier=0.0,
        n_steps=60,
        clip_norm=6.0,
        means_init=CENTERS + 0.5,
        average=False,
    ).fit(rows)
    assert found.privacy_report_.epsilon == math.inf
    expected = GaussianMixture(3, covariance_type=kind, means_init=CENTERS, tol=1e-9, max_iter=500).fit(rows)
    np.testing.assert_allclose(found.means_, expected.means_, atol=2e-3)
    np.testing.assert_allclose(found.covariances_, expected.covariances_, atol=2e-3)
    assert found.score(rows) == pytest.approx(expected.score(rows), abs=1e-4)
    np.testing.assert_allclose(found.predict_proba(rows[:50]), expected.predict_proba(rows[:50]), atol=0.01)


@pytest.mark.slow
@for_each("kind", ["spherical", "diag", "full"])
def test_a_private_mixture_finds_the_clusters_of_many_records(kind: str) -> None:
    rows = blobs(20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LowSignalWarning)
        found = DPEMGaussianMixture(3, covariance_type=kind, clip_norm=6.0, random_state=0).fit(rows)
    for center in CENTERS:
        assert np.linalg.norm(found.means_ - center, axis=1).min() < 0.15
    exact = GaussianMixture(3, means_init=CENTERS).fit(rows).score(rows)
    assert exact - 0.35 < found.score(rows) < exact
    made, components = found.sample(4000, random_state=1)
    assert made.mean(axis=0) == pytest.approx(found.weights_ @ found.means_, abs=0.1)
    assert np.bincount(components, minlength=3) / 4000 == pytest.approx(found.weights_, abs=0.04)


def test_the_report_says_what_gaussian_answers_cost() -> None:
    """T answers of sensitivity D and noise s are one of D sqrt(T), whose delta has a closed form."""
    for adjacency, moved in (("replace_one", math.sqrt(2)), ("add_remove", 1.0)):
        found = clone(NOISY).set_params(noise_multiplier=8.0, adjacency=adjacency).fit(X).privacy_report_
        assert isinstance(found.event, SelfComposed)
        step = found.event.event
        assert isinstance(step, GaussianAnswer)
        assert (found.event.count, step.std, step.adjacency) == (7, 8.0, adjacency)
        assert step.sensitivity == pytest.approx(moved, rel=1e-5)
        assert step.sensitivity > moved
        mu, epsilon = moved * math.sqrt(7) / 8, found.epsilon
        delta = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert 0.9e-5 < delta <= 1e-5
        assert any("wherever it stands" in each for each in found.assumptions) == (adjacency == "add_remove")
    assert clone(NOISY).set_params(noise_multiplier=0.009).fit(X).privacy_report_.epsilon == math.inf


@pytest.mark.slow
def test_a_target_is_met_and_not_missed_by_much() -> None:
    for adjacency in ("replace_one", "add_remove"):
        found = DPEMGaussianMixture(2, epsilon=2.0, adjacency=adjacency, random_state=0).fit(X)
        assert 1.99 < found.privacy_report_.epsilon <= 2.0


def test_what_is_released_is_the_sum_with_the_noise_that_is_claimed() -> None:
    """The first step of 40 seeds, standardised by the exact sum and the noise that PROOFS.md says; and half of it."""
    wide = np.random.default_rng(0).normal(size=(60, 8))
    total = statistics_sum(on_grid(wide, 2.0), np.ones((60, 1)), "full")[0]
    scales = np.concatenate([[2.0], np.full(8, 2**0.5), np.where(np.equal(*np.triu_indices(8)), 2, 2**0.5)])
    model = clone(NOISY).set_params(covariance_type="full", n_steps=1)
    found = [model.set_params(random_state=seed).fit(wide)._path.states[1][:45] for seed in range(40)]
    standard = ((np.array(found) - total) / (3.0 * scales)).ravel()
    assert kstest(standard, "norm").pvalue > 1e-9
    assert kstest(2 * standard, "norm").pvalue < 1e-9  # power: 1,800 numbers


def test_fits_with_little_signal_say_so() -> None:
    with pytest.warns(LowSignalWarning, match="times as many records"):
        DPEMGaussianMixture(3, clip_norm=6.0, random_state=0).fit(blobs(200))


def test_nothing_of_the_records_is_kept() -> None:
    rows = np.full((50, 2), 0.7654321)
    for model in (NOISY, clone(NOISY).set_params(adjacency="add_remove")):
        kept = pickle.dumps(clone(model).fit(rows))
        assert np.float64(0.7654321).tobytes() not in kept
    one, two = (vars(clone(NOISY).set_params(adjacency="add_remove").fit(each)) for each in (rows, rows[:49]))
    numbers = {name for name, value in one.items() if isinstance(value, (int, tuple))}
    assert "n_steps_" in numbers
    assert all(one[name] == two[name] for name in numbers)
    assert not hasattr(clone(NOISY).fit(rows), "labels_")


@for_each(
    ("change", "named"),
    [
        ({"n_components": 0}, "n_components"),
        ({"covariance_type": "tied"}, "covariance_type"),
        ({"clip_norm": 0.0}, "clip_norm"),
        ({"n_steps": 0}, "n_steps"),
        ({"delta": 1.0}, "delta"),
        ({"noise_multiplier": -1.0}, "noise_multiplier"),
        ({"noise_multiplier": None, "epsilon": 0.0}, "epsilon"),
        ({"adjacency": "zero_out"}, "adjacency"),
        ({"budget_split": (0.5, 0.5)}, "budget_split"),
        ({"budget_split": (0.5, 0.5, 0.5)}, "budget_split"),
        ({"budget_split": (0.5, 0.5, 0.0)}, "budget_split"),
        ({"means_init": np.zeros((3, 2))}, "means_init"),
        ({"means_init": [[np.nan, 0.0], [0.0, 0.0]]}, "means_init"),
        ({"reg_covar": 0.0}, "reg_covar"),
        ({"random_state": "zero"}, "random_state"),
    ],
)
def test_refusals_come_before_any_noise(change: dict[str, Any], named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixture, "statistics_sum", None)
    model = clone(NOISY).set_params(**change)
    with pytest.raises(ThresholdoutError, match=named):
        model.fit(X)
    assert not hasattr(model, "privacy_report_")


def test_parts_compose_and_a_target_is_used_up() -> None:
    whole = clone(NOISY).fit(X)
    parts = clone(NOISY).partial_fit(X).partial_fit(X[:20], n_steps=6)
    assert parts.n_steps_ == 7
    assert parts.privacy_report_.event == whole.privacy_report_.event
    assert any("at most one row in the data of each call" in each for each in parts.privacy_report_.assumptions)
    target = clone(NOISY).set_params(noise_multiplier=None, epsilon=3.0)
    cost = clone(target).fit(X).privacy_report_
    costs = [target.partial_fit(X, n_steps=k).privacy_report_.epsilon for k in (3, 3)]
    assert all(one < two for one, two in pairwise([*costs, 3.0]))
    with pytest.raises(InputError, match="at most 1, the rest of the "):
        target.partial_fit(X, n_steps=2)
    target.partial_fit(X)
    assert target.privacy_report_.noise_multiplier == cost.noise_multiplier
    assert target.privacy_report_.epsilon == pytest.approx(cost.epsilon, rel=1e-9)
    with pytest.warns(SpentTargetWarning):
        target.partial_fit(X)
    for change in ({"clip_norm": 1.0}, {"n_components": 3}, {"adjacency": "add_remove"}, {"covariance_type": "full"}):
        with pytest.raises(InputError, match="as in the earlier calls"):
            clone(NOISY).partial_fit(X).set_params(**change).partial_fit(X)


def stop_at(monkeypatch: pytest.MonkeyPatch, step: int, *, after: bool) -> None:
    left = [step + 1]

    def stopping(*args: Any) -> Any:
        left[0] -= 1
        if left[0] == 0 and not after:
            raise KeyboardInterrupt
        found = statistics_sum(*args)
        if left[0] == 0:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(mixture, "statistics_sum", stopping)


CASES = [(kind, step, average) for kind in ("spherical", "full") for step in (0, 1, 2, 6) for average in (False, True)]


@pytest.mark.parametrize(("kind", "step", "average"), corners(CASES, 0, 3, 5, 14))
def test_an_interrupted_fit_is_resumed_to_the_same_bits(
    kind: str, step: int, average: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = clone(NOISY).set_params(covariance_type=kind, average=average)
    whole = clone(model).fit(X)
    with monkeypatch.context() as patched:
        stop_at(patched, step, after=average)
        with pytest.raises(RunInterrupted):
            model.fit(X)
    assert model.n_steps_ == step
    assert np.isfinite(model.score_samples(X)).all()
    assert model.privacy_report_ == whole.privacy_report_
    with pytest.raises(InputError, match="the number of records"):
        model.resume(X[:50])
    model.set_params(noise_multiplier=0.1, clip_norm=50.0, n_components=9)  # what was charged counts
    model.resume(X)
    assert model.n_steps_ == 7
    for name in ("weights_", "means_", "covariances_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(whole, name))
    with pytest.raises(InputError, match="no call that was interrupted"):
        model.resume(X)


def test_later_parts_are_resumed_and_fresh_entropy_stays_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = clone(NOISY).partial_fit(X, n_steps=2).partial_fit(X, n_steps=4)
    model = clone(NOISY).partial_fit(X, n_steps=2)
    for step in (1, 2):
        with monkeypatch.context() as patched:
            stop_at(patched, step, after=False)
            with pytest.raises(RunInterrupted):
                model.partial_fit(X, n_steps=4) if step == 1 else model.resume(X)
    assert model.n_steps_ == 5
    np.testing.assert_array_equal(model.resume(X).means_, whole.means_)
    fresh = clone(NOISY).set_params(random_state=None, adjacency="add_remove")
    with monkeypatch.context() as patched:
        stop_at(patched, 3, after=False)
        with pytest.raises(RunInterrupted):
            fresh.fit(X)
    kept = fresh._path.states.copy()
    one, two = (pickle.loads(pickle.dumps(fresh)).resume(rows) for rows in (X, X[:59]))
    np.testing.assert_array_equal(one._path.states[:4], kept)
    assert (one._path.states[4:] != two._path.states[4:]).all()


def test_a_refused_fit_of_other_features_leaves_no_way_to_continue_with_them() -> None:
    model = DPEMGaussianMixture(2, noise_multiplier=3.0, n_steps=3, random_state=0, progress=False).fit(
        np.eye(4)[:, :2]
    )
    before = model.privacy_report_
    with pytest.raises(InputError, match="means_init"):
        model.set_params(means_init=np.zeros((2, 2))).fit(np.eye(4)[:, :1])
    with pytest.raises(ValueError, match="X has 1 features, but DPEMGaussianMixture is expecting 2"):
        model.set_params(means_init=None).partial_fit(np.eye(4)[:, :1])
    assert model.privacy_report_ is before
