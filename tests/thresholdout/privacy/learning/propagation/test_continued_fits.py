"""Calls of propagation and variational inference that continue each other, or are stopped in the middle and resumed."""

from __future__ import annotations

import warnings
from copy import deepcopy
from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from tests.cases import for_each
from tests.sizes import corners, sizes
from tests.thresholdout.privacy.learning.interrupts import KeepsNames, Stops, StopsAtLine, numbers, same
from tests.thresholdout.privacy.learning.private_learners import LABELS, X, Y
from thresholdout.errors import InputError
from thresholdout.privacy.accounting import SelfComposed
from thresholdout.privacy.learning import (
    DPVIRegressor,
    EPClassifier,
    EPGaussianMixture,
    EPLinearRegression,
    PBPRegressor,
)
from thresholdout.privacy.learning.interrupted_calls import RunInterrupted
from thresholdout.privacy.learning.privacy_report import LowSignalWarning
from thresholdout.privacy.learning.propagation import dpvi, ep_runs
from thresholdout.privacy.learning.propagation.dpvi import clipped_gradient_sum
from thresholdout.privacy.learning.propagation.ep_update import dp_sep_step

PROPAGATION: dict[str, Any] = {
    "algorithm": "dp-sep",
    "clip_norm": 1.0,
    "sigma": 2.0,
    "n_epochs": 2,
    "random_state": 3,
    "accountant": "rdp",
}


POSTERIORS: dict[str, tuple[Any, Any]] = {
    "EPLinearRegression": (EPLinearRegression(**PROPAGATION), Y),
    "EPClassifier": (EPClassifier(classes=[0, 1], **PROPAGATION), LABELS),
    "EPGaussianMixture": (EPGaussianMixture(2, **PROPAGATION), None),
    "PBPRegressor": (PBPRegressor((3,), **PROPAGATION), Y),
}


pytestmark = pytest.mark.filterwarnings("ignore::thresholdout.privacy.learning.LowInformationWarning")


PRIVATE_AND_NOT: list[dict[str, Any]] = [
    {},
    {"sampling": "shuffle", "clip_mode": "separate"},
    {"algorithm": "sep", "clip_norm": None, "sigma": None, "sampling": "shuffle"},
]


@pytest.mark.parametrize(
    ("name", "setting", "updates"),
    corners(product(POSTERIORS, range(3), [1, 59, 60, 97]), 0, 16, 31, 47),
)
def test_expectation_propagation(monkeypatch: pytest.MonkeyPatch, name: str, setting: int, updates: int) -> None:
    estimator, targets = POSTERIORS[name]
    estimator = clone(estimator).set_params(**PRIVATE_AND_NOT[setting])
    whole = clone(estimator).fit(X, targets)
    model = clone(estimator)
    with monkeypatch.context() as patched:
        patched.setattr(ep_runs, "dp_sep_step", KeepsNames(dp_sep_step, updates + 1))
        with pytest.raises(RunInterrupted):
            model.fit(X, targets)
    assert np.isfinite(model.predict(X)).all()
    assert model.n_iter_ == updates // 60
    assert model.privacy_report_ == whole.privacy_report_
    kept = deepcopy(model)
    model.set_params(clip_norm=9.0, sampling="cyclic", **{"sigma": 0.1} if setting < 2 else {})
    model.resume(X, targets)
    same(model, whole)
    with pytest.raises(InputError, match="no call that was interrupted"):
        model.resume(X, targets)
    with monkeypatch.context() as patched:  # and once more, in the middle of the rest
        patched.setattr(ep_runs, "dp_sep_step", KeepsNames(dp_sep_step, 9))
        with pytest.raises(RunInterrupted):
            kept.resume(X, targets)
    same(kept.resume(X, targets), whole)


@pytest.mark.slow
@for_each("name", POSTERIORS)
@for_each("algorithm", ["ep", "adf"])
def test_sites_of_all_records(monkeypatch: pytest.MonkeyPatch, name: str, algorithm: str) -> None:
    """A site of each record, or none: an interrupt may fall at any call of anything that makes them."""
    estimator, targets = POSTERIORS[name]
    settings = {"clip_norm": None, "sigma": None, "n_epochs": 1 if algorithm == "adf" else 3}
    estimator = clone(estimator).set_params(algorithm=algorithm, **settings)
    whole = clone(estimator).fit(X, targets)
    for at in (2, 61, 119) if algorithm == "ep" else (2, 59):
        model = clone(estimator)
        with monkeypatch.context() as patched:
            patched.setattr(ep_runs, "_site_of", Stops(ep_runs._site_of, at))
            with pytest.raises(RunInterrupted):
                model.fit(X, targets)
        assert model.n_iter_ == (at - 1) // 60
        same(model.resume(X, targets), whole)


@for_each("name", POSTERIORS)
def test_a_pass_that_was_interrupted_goes_once_through_the_records(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Also with fresh entropy: a pass is charged as one answer about each record."""
    estimator, targets = POSTERIORS[name]
    model = clone(estimator).set_params(sampling="shuffle", random_state=None, n_epochs=3)
    seen: list[Any] = []
    site_of = ep_runs._site_of

    def looking(learned: Any, record: Any) -> Any:
        seen.append(float(np.ravel(record if targets is None else record[0])[0]))
        return site_of(learned, record)

    monkeypatch.setattr(ep_runs, "_site_of", looking)
    for at in (100, 0, 11, 0):
        with monkeypatch.context() as patched:
            if at:
                patched.setattr(ep_runs, "dp_sep_step", KeepsNames(dp_sep_step, at))
            else:  # while earlier passes are gone through again, before an update is made
                patched.setattr(ep_runs, "_order", Stops(ep_runs._order, 1 if name == "PBPRegressor" else 2))
            with pytest.raises(RunInterrupted):
                model.resume(X, targets) if seen else model.fit(X, targets)
        if at:
            seen.pop()
    model.resume(X, targets)
    np.testing.assert_array_equal(np.sort(np.reshape(seen, (3, 60)), axis=1), np.tile(np.sort(X[:, 0]), (3, 1)))


def test_what_an_interrupt_leaves_counts_no_failed_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number depends on the records alone, and estimators are saved and handed on."""
    estimator, targets = POSTERIORS["EPClassifier"]
    left = [9]

    def failing(*args: Any, **named: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        after, trace = dp_sep_step(*args, **named)
        return after, trace._replace(failed=True)

    model = clone(estimator)
    with monkeypatch.context() as patched:
        patched.setattr(ep_runs, "dp_sep_step", failing)
        with pytest.raises(RunInterrupted) as stopped:
            model.fit(X, targets)
    assert (model._stopped.done.updates, model._stopped.done.failed, stopped.value.run.failed) == (8, 0, 0)


def test_an_interrupt_before_the_first_update_leaves_nothing_and_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator, targets = POSTERIORS["EPLinearRegression"]
    model = clone(estimator)
    with monkeypatch.context() as patched:
        patched.setattr(ep_runs, "dp_sep_step", KeepsNames(dp_sep_step, 1))
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, targets)
    assert not hasattr(model, "posterior_")
    assert not hasattr(model, "privacy_report_")


def test_expectation_propagation_resumes_with_as_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator, targets = POSTERIORS["EPLinearRegression"]
    model = clone(estimator)
    with monkeypatch.context() as patched:
        patched.setattr(ep_runs, "dp_sep_step", KeepsNames(dp_sep_step, 9))
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, targets)
    with pytest.raises(InputError, match="the number of records"):
        model.resume(X[:50], targets[:50])


def test_what_an_interrupt_of_a_network_leaves_counts_no_failed_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither those of the pass that was interrupted, nor those of the passes before."""
    estimator, targets = POSTERIORS["PBPRegressor"]
    left = [70]

    def failing(*args: Any, **named: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        after, trace = dp_sep_step(*args, **named)
        return after, trace._replace(failed=True)

    for allowed, expected in ((False, [0, 0]), (True, [60, 9])):
        model, left[0] = clone(estimator).set_params(allow_leaks=allowed), 70
        with monkeypatch.context() as patched:
            patched.setattr(ep_runs, "dp_sep_step", failing)
            with pytest.raises(RunInterrupted) as stopped:
                model.fit(X, targets)
        assert stopped.value.run is model._stopped.done
        assert [model._stopped.done.passes[0].n_failed_sites, model._stopped.done.within.failed] == expected


MODULES = ("fitting.py", "continued_fits.py", "ep_linear_models.py", "mixture.py", "pbp.py", "dpvi.py")
VARIATIONAL = DPVIRegressor(2, noise_multiplier=3.0, n_epochs=2, batch_size=20, n_samples=2, random_state=3)


EVERYWHERE: dict[str, tuple[Any, Any]] = {**POSTERIORS, "DPVIRegressor": (VARIATIONAL, Y)}


@pytest.mark.parametrize("name", EVERYWHERE)
@sizes("stride", 307, 1)
def test_wherever_an_interrupt_falls_a_report_is_that_of_what_is_beside_it(name: str, stride: int) -> None:
    """A fit with little noise, then one with much that is stopped at a line: the first never has the second's report.

    What is kept of the second is resumed to the same bits.
    """
    estimator, targets = EVERYWHERE[name]
    rows = X[:8]
    targets = None if targets is None else targets[:8]
    noise = "noise_multiplier" if name == "DPVIRegressor" else "sigma"
    estimator = clone(estimator).set_params(**{"batch_size": 4} if name == "DPVIRegressor" else {})
    first = clone(estimator).set_params(**{noise: 0.5}).fit(rows, targets)
    second = clone(estimator).set_params(**{noise: 5.0}).fit(rows, targets)
    shown = "q_" if name == "DPVIRegressor" else "posterior_"
    kept = {"first": 0, "second": 0, "rest": 0}
    at = 1
    while True:
        model = deepcopy(first).set_params(**{noise: 5.0})
        try:
            with StopsAtLine(at, *MODULES):
                model.fit(rows, targets)
            break
        except KeyboardInterrupt:
            at += stride
        old = model.privacy_report_ == first.privacy_report_
        assert old or model.privacy_report_ == second.privacy_report_
        now, then = (np.concatenate([np.ravel(part) for part in numbers(vars(each)[shown])]) for each in (model, first))
        assert np.array_equal(now, then) == old
        if old:
            same(model, first)
            kept["first"] += 1
        elif model._stopped is None:
            same(model, second)
            kept["second"] += 1
        else:
            assert np.isfinite(model.predict(rows)).all()
            same(model.resume(rows, targets), second)
            kept["rest"] += 1
    same(model, second)
    assert kept["first"]
    if stride == 1:
        assert kept["second"]
        assert kept["rest"] or name in ("EPLinearRegression", "EPClassifier", "EPGaussianMixture")


@pytest.mark.parametrize("name", corners(EVERYWHERE, 0))
def test_warnings_that_are_errors_leave_a_report_beside_what_it_is_about(name: str) -> None:
    estimator, targets = EVERYWHERE[name]
    noise = "noise_multiplier" if name == "DPVIRegressor" else "sigma"
    first = clone(estimator).set_params(**{noise: 0.5}).fit(X, targets)
    second = clone(estimator).set_params(**{noise: 5.0}).fit(X, targets)
    model = deepcopy(first).set_params(**{noise: 5.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error", LowSignalWarning)
        if name in ("EPLinearRegression", "EPClassifier"):
            with pytest.raises(
                LowSignalWarning, match="The weights are expected to have an R2"
            ):  # before the first step
                model.fit(X, targets)
            same(model, first)
            warnings.filterwarnings("ignore", "The weights are expected to have an R2", LowSignalWarning)
        with pytest.raises(LowSignalWarning):
            model.fit(X, targets)
    same(model, first if name == "DPVIRegressor" else second)


@pytest.mark.parametrize("steps", corners([0, 1, 5], 2))
@for_each("setting", [{}, {"noise_multiplier": None}, {"adjacency": "add_remove", "public_size": 61}])
def test_variational_inference(monkeypatch: pytest.MonkeyPatch, steps: int, setting: dict[str, Any]) -> None:
    estimator = clone(VARIATIONAL).set_params(**setting)
    whole, model = clone(estimator).fit(X, Y), clone(estimator)
    with monkeypatch.context() as patched:
        patched.setattr(dpvi, "clipped_gradient_sum", Stops(clipped_gradient_sum, steps + 1, after=steps == 5))
        with pytest.raises(RunInterrupted) as stopped:
            model.fit(X, Y)
    assert stopped.value.run is model.q_
    assert (model.n_steps_, whole.n_steps_) == (steps, 6)
    assert model.privacy_report_ == whole.privacy_report_
    model.set_params(clip_norm=50.0, learning_rate=9.0, kl_weight=0.0, n_epochs=90, noise_precision=1.0, random_state=4)
    model.resume(X, Y)
    same(model, whole)
    np.testing.assert_array_equal(*(each.predict(X, return_std=True)[1] for each in (model, whole)))
    with pytest.raises(InputError, match="no call that was interrupted"):
        model.resume(X, Y)


def test_variational_inference_resumes_with_as_many_records_where_their_number_is_public(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for setting in ({}, {"adjacency": "add_remove", "public_size": 61}):
        model = clone(VARIATIONAL).set_params(**setting)
        with monkeypatch.context() as patched:
            patched.setattr(dpvi, "clipped_gradient_sum", Stops(clipped_gradient_sum, 3))
            with pytest.raises(RunInterrupted):
                model.fit(X, Y)
        if setting:  # a record more or less must not show, so it is not kept how many there were
            assert 60 not in vars(model._stopped).values()
            assert model.resume(X[:59], Y[:59]).n_steps_ == 6
        else:
            with pytest.raises(InputError, match="the number of records"):
                model.resume(X[:59], Y[:59])


@for_each("algorithm", ["ep", "adf"])
def test_exact_posteriors_of_parts_are_that_of_all_records(algorithm: str) -> None:
    """A posterior of one part is the prior of the next; for linear regression there is a closed form."""
    whole = EPLinearRegression(noise_var=0.3, algorithm=algorithm, n_epochs=1, x_scale=2.0, y_offset=0.1)
    parts = clone(whole)
    parts.partial_fit(X[:25], Y[:25]).partial_fit(X[25:], Y[25:])
    rows = np.column_stack([X / 2.0, np.ones(60)])
    precision = np.eye(3) + rows.T @ rows / 0.3
    mean = np.linalg.solve(precision, rows.T @ (Y - 0.1) / 0.3)
    np.testing.assert_allclose(parts.coef_, mean[:2] / 2.0, rtol=1e-9)
    np.testing.assert_allclose(parts.posterior()["Lam"], precision, rtol=1e-9)
    np.testing.assert_allclose(whole.fit(X, Y).coef_, parts.coef_, rtol=1e-9)


@for_each("algorithm", ["ep", "adf"])
def test_a_cluster_of_parts_is_that_of_all_records(algorithm: str) -> None:
    """Of one cluster, whose mean has a closed posterior."""
    parts = EPGaussianMixture(
        1, noise_var=0.3, prior_mean=[[0.5, -0.5]], prior_precision=2.0, algorithm=algorithm, n_epochs=1
    )
    parts.partial_fit(X[:25]).partial_fit(X[25:])
    precision = 2.0 + 60 / 0.3
    np.testing.assert_allclose(
        parts.means_[0], (2.0 * np.array([0.5, -0.5]) + X.sum(axis=0) / 0.3) / precision, rtol=1e-9
    )
    np.testing.assert_allclose(parts.covariances_[0], np.eye(2) / precision, rtol=1e-9, atol=1e-12)
    assert parts.labels_.shape == (35,)


@for_each("noise", ["learn", "fixed"])
def test_a_filtered_network_of_parts_is_that_of_all_records(noise: str) -> None:
    """Assumed density filtering goes through records one after the other: parts of them are no different."""
    whole = PBPRegressor((3,), algorithm="adf", n_epochs=1, noise_precision=noise, standardize=False, random_state=0)
    parts = clone(whole).partial_fit(X[:25], Y[:25]).partial_fit(X[25:], Y[25:])
    np.testing.assert_array_equal(parts.posterior_.values, whole.fit(X, Y).posterior_.values)
    assert parts.noise_var_ == whole.noise_var_


def test_later_parts_of_a_network_keep_what_was_learned() -> None:
    """The prior of a later part is the last posterior, with neither a new start nor a new guess of its precision."""
    model = PBPRegressor((3,), n_epochs=3, standardize=False, random_state=0).partial_fit(X, Y)
    first = model.posterior_
    model.partial_fit(X[:20], Y[:20])
    np.testing.assert_array_equal(model.theta_0_.values, first.values)
    total = model.theta_0_ + model.theta_f_.scale(20)
    np.testing.assert_allclose(total.values, model.posterior_.values, rtol=1e-12)
    assert model.posterior_.Lam.sum() > first.Lam.sum()


PARTS: dict[str, tuple[dict[str, Any], str]] = {
    "EPLinearRegression": ({"fit_intercept": False}, "fit_intercept"),
    "EPClassifier": ({"fit_intercept": False}, "fit_intercept"),
    "EPGaussianMixture": ({"n_components": 3}, "n_components"),
    "PBPRegressor": ({"hidden_layer_sizes": (4,)}, "hidden_layer_sizes"),
}


@for_each("name", PARTS)
def test_later_parts_are_about_the_same_parameters(name: str) -> None:
    estimator, targets = POSTERIORS[name]
    change, named = PARTS[name]
    model = clone(estimator).partial_fit(X, targets)
    kept = deepcopy(model)
    with pytest.raises(InputError, match=named):
        model.set_params(**change).partial_fit(X, targets)
    with pytest.raises(ValueError, match="features"):
        model.set_params(**estimator.get_params()).partial_fit(X[:, :1], targets)
    same(model, kept)
    if name == "PBPRegressor":
        with pytest.raises(InputError, match="noise_precision"):
            model.set_params(noise_precision="learn").partial_fit(X, targets)
    if name in ("EPLinearRegression", "EPClassifier"):  # a fitted model is what it was fitted as
        np.testing.assert_array_equal(kept.set_params(fit_intercept=False).predict(X), model.predict(X))


def test_labels_of_records_do_not_survive_into_a_private_fit() -> None:
    model = EPGaussianMixture(2, n_epochs=1, random_state=0).fit(X)
    assert model.labels_.shape == (60,)
    model.set_params(**PROPAGATION).fit(X)
    assert not hasattr(model, "labels_")
    assert model.privacy_report_.private


@pytest.mark.parametrize(
    ("sampling", "name"), corners([*product(["cyclic"], POSTERIORS), ("uniform", "EPLinearRegression")], 0)
)
def test_parts_of_expectation_propagation_compose(sampling: str, name: str) -> None:
    estimator, targets = POSTERIORS[name]
    model = clone(estimator).set_params(sampling=sampling)
    first = model.partial_fit(X, targets).privacy_report_
    second = model.partial_fit(X, targets).privacy_report_
    assert second.event == SelfComposed(first.event.event, 2 * first.event.count)
    assert second.epsilon > first.epsilon
    model.set_params(epsilon=second.epsilon / 2, sigma=None)
    with pytest.raises(InputError, match="earlier calls have spent"):
        model.partial_fit(X, targets)
    model.set_params(epsilon=2 * second.epsilon)
    assert model.partial_fit(X, targets).privacy_report_.epsilon <= 2 * second.epsilon
    model.set_params(algorithm="adf", n_epochs=1, clip_norm=None, epsilon=None).partial_fit(X, targets)
    model.set_params(**{key: value for key, value in PROPAGATION.items() if key != "random_state"})
    assert not model.partial_fit(X, targets).privacy_report_.private  # what was leaked stays leaked


def test_labels_of_later_parts_are_those_of_the_first() -> None:
    model = EPClassifier(algorithm="adf", n_epochs=1).partial_fit(X, LABELS)
    with pytest.raises(InputError, match="a label that is not among them"):
        model.partial_fit(X, LABELS + 1)
    assert model.partial_fit(X[:5], np.zeros(5, dtype=int)).classes_.tolist() == [0, 1]
