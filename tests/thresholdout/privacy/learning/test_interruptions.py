"""Long learners that are stopped in the middle: what they have is kept and charged, and resumed to the same result."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from tests.cases import for_each
from tests.sizes import corners, sized
from tests.thresholdout.privacy.learning.interrupts import KeepsNames, Stops, StopsAtLine, same, spoiled, stopped_late
from tests.thresholdout.privacy.learning.private_learners import ESTIMATORS, LABELS, RESUMED, X, Y, quiet_fit
from thresholdout.errors import InputError
from thresholdout.privacy.accounting import SelfComposed
from thresholdout.privacy.learning import (
    DPSGDClassifier,
    DPSGDRegressor,
    EPClassifier,
    FederatedClassifier,
    SGLDRegressor,
    federated_classifier,
    run_federated,
    run_sgld,
)
from thresholdout.privacy.learning.dpsgd import descent
from thresholdout.privacy.learning.dpsgd.clipping import ClippedSums
from thresholdout.privacy.learning.dpsgd.gradient_networks import Network
from thresholdout.privacy.learning.federated import ClientModels
from thresholdout.privacy.learning.interrupted_calls import RunInterrupted
from thresholdout.privacy.learning.iterates import PrivateIterates
from thresholdout.privacy.learning.privacy_report import account_for
from thresholdout.privacy.learning.sgld import sampler

GROUPS = np.arange(60) // 2


def gradients(theta: Any, rows: Any, y: Any) -> Any:
    return rows * (rows @ theta - y)[:, None]


def towards(client: Any, theta: Any) -> Any:
    return client - theta


SGLD: dict[str, Any] = {"theta0": [0.0, 0.0], "step_sizes": 0.1, "T": 9, "batch_size": 7, "sigma": 0.1, "L": 1.0}
ROUNDS: dict[str, Any] = {"theta0": [0.0, 0.0], "T": 9, "batch_size": 1, "sigma": 0.3, "L": 1.0}


def langevin(function: Any = gradients, **more: Any) -> PrivateIterates:
    return run_sgld(function, X, Y, **{**SGLD, "random_state": 3, "progress": False, **more})


def federated(function: Any = towards, **more: Any) -> PrivateIterates:
    return run_federated(function, list(X), **{**ROUNDS, "random_state": 3, "progress": False, **more})


RUNS = pytest.mark.parametrize(("run", "function"), [(langevin, gradients), (federated, towards)])


@RUNS
@pytest.mark.parametrize("steps", corners([0, 1, 4, 8], 2))
def test_a_run_keeps_its_iterates_and_resumes_to_the_same_ones(run: Any, function: Any, steps: int) -> None:
    whole = run()
    with pytest.raises(KeyboardInterrupt) as stopped:
        run(Stops(function, steps + 1))
    assert isinstance(stopped.value, RunInterrupted)
    kept = stopped.value.run
    np.testing.assert_array_equal(kept.trajectory, whole.trajectory[: steps + 1])
    assert (kept.steps, kept.planned) == (steps, 9)
    assert kept.event == whole.event  # charged in full: who stopped it had seen iterates
    again = run(resume=kept)
    np.testing.assert_array_equal(again.trajectory, whole.trajectory)
    assert again.planned is None
    assert again.event == whole.event


@RUNS
def test_a_run_may_be_stopped_twice(run: Any, function: Any) -> None:
    with pytest.raises(RunInterrupted) as once:
        run(Stops(function, 3))
    with pytest.raises(RunInterrupted) as twice:
        run(Stops(function, 4), resume=once.value.run)
    assert [once.value.run.steps, twice.value.run.steps] == [2, 5]
    np.testing.assert_array_equal(run(resume=twice.value.run).trajectory, run().trajectory)


@RUNS
def test_fresh_entropy_goes_on_with_fresh_noise(run: Any, function: Any) -> None:
    with pytest.raises(RunInterrupted) as stopped:
        run(Stops(function, 3), random_state=None)
    kept = stopped.value.run
    one, other = run(resume=kept, random_state=None), run(resume=kept, random_state=None)
    np.testing.assert_array_equal(one.trajectory[:3], kept.trajectory)
    assert (one.trajectory[3:] != other.trajectory[3:]).all()
    assert not one.seeded
    assert run(resume=kept, random_state=1).seeded


@RUNS
@pytest.mark.parametrize("change", [{"T": 10}, {"batch_size": 2}, {"sigma": 0.05}, {"L": 2.0}])
def test_a_run_is_resumed_as_what_it_was_charged_for(run: Any, function: Any, change: dict[str, Any]) -> None:
    with pytest.raises(RunInterrupted) as stopped:
        run(Stops(function, 3))
    with pytest.raises(InputError, match="as in the interrupted run"):
        run(resume=stopped.value.run, **change)


@RUNS
def test_a_whole_run_is_not_resumed(run: Any, function: Any) -> None:
    with pytest.raises(InputError, match="resume"):
        run(resume=run())


FEDERATED = FederatedClassifier(
    rounds=8, clients_per_round=6, noise_multiplier=3.0, classes=[0, 1], random_state=3, progress=False
)


@pytest.mark.slow
@for_each(("rounds", "average"), [(0, True), (1, False), (5, True)])
def test_federated_averaging(monkeypatch: pytest.MonkeyPatch, rounds: int, average: bool) -> None:
    whole = clone(FEDERATED).set_params(average=average).fit(X, LABELS, GROUPS)
    model = clone(FEDERATED).set_params(average=average)
    with monkeypatch.context() as patched:
        stops = Stops(ClientModels.increments, rounds + 1)
        patched.setattr(ClientModels, "increments", lambda self, *args: stops(self, *args))
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, LABELS, GROUPS)
    assert model.n_rounds_ == rounds
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.privacy_report_ == whole.privacy_report_
    model.set_params(noise_multiplier=0.1, clip=50.0)  # what was charged counts
    model.resume(X, LABELS, GROUPS)
    assert model.n_rounds_ == 8
    np.testing.assert_array_equal(model.coef_, whole.coef_)
    np.testing.assert_array_equal(model.intercept_, whole.intercept_)
    with pytest.raises(InputError, match="no call that was interrupted"):
        model.resume(X, LABELS, GROUPS)


def test_federated_averaging_resumes_with_the_same_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    model = clone(FEDERATED)
    with monkeypatch.context() as patched:
        stops = Stops(ClientModels.increments, 3)
        patched.setattr(ClientModels, "increments", lambda self, *args: stops(self, *args))
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, LABELS, GROUPS)
    with pytest.raises(InputError, match="the number of clients"):
        model.resume(X, LABELS, np.arange(60))
    kept = deepcopy(model)
    model.partial_fit(X, LABELS, GROUPS, rounds=2)  # the rest of the call is given up, and stays charged
    assert model.n_rounds_ == 4
    assert model.privacy_report_.event == SelfComposed(kept.privacy_report_.event.event, 10)


def test_an_interrupt_before_the_first_round_leaves_no_older_call_to_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rounds, with their noise, would be taken from the new start, and be charged as those of the new call."""
    model = clone(FEDERATED)
    for name, stopped in (("run_steps", 1), ("_report", 2)):
        with monkeypatch.context() as patched:
            if name == "run_steps":
                stops = Stops(ClientModels.increments, 3)
                patched.setattr(ClientModels, "increments", lambda self, *args, stops=stops: stops(self, *args))
            else:
                patched.setattr(federated_classifier, "account_for", KeepsNames(account_for, 1))
            with pytest.raises(KeyboardInterrupt):
                model.set_params(noise_multiplier=3.0 * stopped).fit(X, LABELS, GROUPS)
    assert model._stopped is not None
    model.resume(X, LABELS, GROUPS)
    charged = clone(FEDERATED).fit(X, LABELS, GROUPS)
    assert model._spent == charged._spent
    assert model.privacy_report_ == charged.privacy_report_
    np.testing.assert_array_equal(model.coef_, charged.coef_)


def test_other_errors_are_told_and_leave_a_call_to_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    model = clone(FEDERATED)

    def late(*_: Any) -> Any:
        raise TimeoutError("too late")

    with monkeypatch.context() as patched:
        patched.setattr(ClientModels, "increments", late)
        with pytest.raises(TimeoutError, match="too late"):
            model.fit(X, LABELS, GROUPS)
    assert model.n_rounds_ == 0
    np.testing.assert_array_equal(model.resume(X, LABELS, GROUPS).coef_, clone(FEDERATED).fit(X, LABELS, GROUPS).coef_)


LANGEVIN = SGLDRegressor(
    clip=1.0, step_size=1e-3, n_steps=40, n_chains=5, batch_size=20, random_state=3, progress=False
)


CASES = list(product(["uniform", "cyclic", "reshuffle"], [False, True], [0, 1, 17, 39, 40, 41, 70]))


@pytest.mark.parametrize(("order", "after", "steps"), corners(CASES, 2, 10, 20, 39))
def test_langevin_dynamics(monkeypatch: pytest.MonkeyPatch, order: str, after: bool, steps: int) -> None:
    """Chains run in groups of three and two; an interrupt falls before or after a step has changed its states."""
    monkeypatch.setattr(sampler, "MOST_CHAINS", 3)
    whole = clone(LANGEVIN).set_params(order=order).fit(X, Y)
    model = clone(LANGEVIN).set_params(order=order)
    with monkeypatch.context() as patched:
        left = [steps + 1]
        many = sampler._many_dimensional

        def stopping(problem: Any) -> Any:
            step = many(problem)

            def one(*args: Any) -> None:
                left[0] -= 1
                Stops(step, 1 if left[0] == 0 else 2, after=after)(*args)

            return one

        patched.setattr(sampler, "_many_dimensional", stopping)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
    assert len(model.samples_) == (1 if steps == 0 else 3 if steps <= 40 else 5)
    assert np.isfinite(model.predict(X)).all()
    assert model.privacy_report_ == whole.privacy_report_
    if steps == 17:  # none of the states is one that a half step has left
        path = sampler.sgld_sample(
            np.column_stack([X, np.ones(60)]), Y, 1.0, 1.0, 1e-3, 17, batch_size=20, order=order, clip=1.0,
            n_chains=3, rng=3, progress=False,
        )  # fmt: skip
        if order != "uniform":  # whose records are drawn for several steps at once
            np.testing.assert_array_equal(model.samples_, path[:3])
    model.set_params(clip=50.0, step_size=1.0)
    model.resume(X, Y)
    np.testing.assert_array_equal(model.samples_, whole.samples_)
    np.testing.assert_array_equal(model.coef_, whole.coef_)
    with pytest.raises(InputError, match="no call that was interrupted"):
        model.resume(X, Y)


@pytest.mark.parametrize("order", corners(["uniform", "cyclic"], 0))
def test_an_interrupt_before_the_rest_of_a_group_of_chains_leaves_it_as_it_was(
    monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """Its steps were released: taken again, with other noise, they would be in what was charged once."""
    monkeypatch.setattr(sampler, "MOST_CHAINS", 3)
    model = clone(LANGEVIN).set_params(order=order, random_state=None, n_steps=9)
    many = sampler._many_dimensional
    left = [9 + 4 + 1]  # in the second group

    def stopping(problem: Any) -> Any:
        step = many(problem)

        def one(*args: Any) -> None:
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt
            step(*args)

        return one

    with monkeypatch.context() as patched:
        patched.setattr(sampler, "_many_dimensional", stopping)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
    before, samples = model._stopped.chains, model.samples_

    with monkeypatch.context() as patched:
        # The first group, which is over, comes to no step.
        patched.setattr(sampler, "batches", lambda *_, **__: map(Stops(int, 1), [0]))
        with pytest.raises(KeyboardInterrupt):
            model.resume(X, Y)
    after = model._stopped.chains
    assert (after.first, after.steps, after.moved) == (before.first, before.steps, before.moved) == (3, 4, 5)
    np.testing.assert_array_equal(model.samples_, samples)


@for_each("order", ["cyclic", "reshuffle"])
@for_each("steps", [4, 6])
def test_a_sweep_that_was_interrupted_looks_at_each_record_once(
    monkeypatch: pytest.MonkeyPatch, order: str, steps: int
) -> None:
    """Also with fresh entropy: it is charged as one answer, which another order for its rest would not be."""
    model = clone(LANGEVIN).set_params(order=order, random_state=None, n_chains=2, n_steps=9)
    seen: list[Any] = []
    many = sampler._many_dimensional
    stops = [steps + 1, 2]  # the second one in the middle of the rest

    def looking(problem: Any) -> Any:
        step, left = many(problem), stops.pop(0) if stops else 0

        def one(theta: Any, batch: Any, *more: Any) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise KeyboardInterrupt
            seen.append(np.array(batch))
            step(theta, batch, *more)

        return one

    monkeypatch.setattr(sampler, "_many_dimensional", looking)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    with pytest.raises(KeyboardInterrupt):
        model.resume(X, Y)
    model.resume(X, Y)
    assert len(seen) == 9
    sweeps = np.array(seen).reshape(3, 60, 2)  # of three steps on 20 records each, for two chains
    np.testing.assert_array_equal(np.sort(sweeps, axis=1), np.broadcast_to(np.arange(60)[:, None], (3, 60, 2)))
    if order == "cyclic":
        np.testing.assert_array_equal(sweeps[0], sweeps[2])


def test_langevin_dynamics_resumes_with_as_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    model = clone(LANGEVIN)
    with monkeypatch.context() as patched:
        patched.setattr(sampler, "_many_dimensional", lambda problem: Stops(lambda *args: None, 3))
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
    with pytest.raises(InputError, match="the number of records"):
        model.resume(X[:40], Y[:40])


TARGETS: dict[str, tuple[Any, Any, Any]] = {
    "federated": (
        clone(FEDERATED).set_params(noise_multiplier=None, epsilon=3.0, clients_per_round=None),
        LABELS,
        "rounds",
    ),
    "langevin": (clone(LANGEVIN).set_params(step_size=None, epsilon=3.0, n_chains=1, n_steps=7), Y, "n_steps"),
    "sweeps": (clone(LANGEVIN).set_params(step_size=None, epsilon=3.0, n_chains=1, order="cyclic"), Y, "n_steps"),
}


@pytest.mark.parametrize("name", corners(TARGETS, 0))
def test_a_target_is_used_up_in_parts(name: str) -> None:
    """Parts of the steps of a fit cost what the fit costs, at its noise; then there are none left."""
    from thresholdout.privacy.learning import SpentTargetWarning

    estimator, targets, steps = TARGETS[name]
    whole = clone(estimator).fit(X, targets).privacy_report_
    model = clone(estimator)
    total = model.get_params()[steps]
    part = 6 if name == "sweeps" else 3
    fit = partial(model.partial_fit, X, targets)
    costs = [fit(**{steps: part}).privacy_report_.epsilon for _ in range(total // part)]
    assert costs == sorted(costs)
    with pytest.raises(InputError, match=f"at most {total % part}, the rest of the "):
        fit(**{steps: part})
    if total % part:
        fit(**{steps: total % part})
    assert model.privacy_report_.epsilon == pytest.approx(whole.epsilon, rel=1e-6)
    assert model.privacy_report_.epsilon <= 3.0
    assert model.privacy_report_.noise_multiplier == whole.noise_multiplier
    with pytest.warns(SpentTargetWarning):
        fit()


def test_sweeps_are_not_cut_where_a_target_pays_for_them() -> None:
    estimator, targets, _ = TARGETS["sweeps"]
    with pytest.raises(InputError, match="whole sweeps of 3 steps"):
        clone(estimator).partial_fit(X, targets, n_steps=4)


@pytest.mark.slow
def test_parts_compose() -> None:
    model = clone(LANGEVIN)
    model.partial_fit(X, Y).partial_fit(X[:20], Y[:20], n_steps=5)
    assert model.n_steps_ == 3 + 5
    events = model.privacy_report_.event.events
    assert [each.count for each in events] == [3 * 5, 5 * 5]
    assert any("at most one row in the data of each call" in each for each in model.privacy_report_.assumptions)
    named = clone(FEDERATED).set_params(noise_multiplier=3.0, epsilon=1.0, clients_per_round=None)
    named.partial_fit(X, LABELS, GROUPS).partial_fit(X[:30], LABELS[:30], GROUPS[:30], rounds=2)
    assert named.n_rounds_ == 3
    assert [each.count for each in named.privacy_report_.event.events] == [1, 2]
    with pytest.raises(InputError, match="a label that is not among them"):
        named.partial_fit(X, LABELS + 1, GROUPS)


DESCENT: dict[str, Any] = {"noise_multiplier": 3.0, "batch_size": 20, "n_steps": 8, "random_state": 3}


GRADIENT = {
    "DPSGDClassifier": (DPSGDClassifier(classes=[0, 1], learning_rate=0.1, **DESCENT), LABELS),
    "DPSGDRegressor": (DPSGDRegressor(target_bounds=(-2, 2), **DESCENT), Y),
}


SAMPLINGS: list[dict[str, Any]] = [
    {},
    {"sampling": "wr", "average": False},
    {"sampling": "poisson", "average": 3, "adjacency": "add_remove", "public_size": 59},
    {"batch_size": 60, "average": True, "l2": 0.1},
    {"hidden_layer_sizes": (3,), "noise_multiplier": [3.0, 2.0] * 4},
]


def stop_descent(monkeypatch: pytest.MonkeyPatch, steps: int, *, after: bool = False) -> None:
    """Stop a descent with Ctrl-C after some steps, before or after the clipped sum of the next one is there."""

    def stopping(*args: Any) -> Any:
        return Stops(ClippedSums(*args), steps + 1, after=after)

    monkeypatch.setattr(descent, "ClippedSums", stopping)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::thresholdout.privacy.learning.LowSignalWarning")
@pytest.mark.parametrize(
    ("name", "setting", "steps"), corners(product(GRADIENT, range(5), [0, 1, 5, 7]), 2, 5, 10, 18, 34)
)
def test_gradient_descent(monkeypatch: pytest.MonkeyPatch, name: str, setting: int, steps: int) -> None:
    estimator, targets = GRADIENT[name]
    estimator = clone(estimator).set_params(**SAMPLINGS[setting])
    whole, model = clone(estimator).fit(X, targets), clone(estimator)
    with monkeypatch.context() as patched:
        stop_descent(patched, steps, after=steps == 5)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, targets)
    assert model.n_steps_ == steps
    assert np.isfinite(model.predict(X)).all()
    assert model.privacy_report_ == whole.privacy_report_
    model.set_params(noise_multiplier=0.1, clip_norm=50.0, learning_rate=9.0)  # what was charged counts
    model.resume(X, targets)
    assert model.n_steps_ == 8
    for kept, expected in zip(model.coefs_ + model.intercepts_, whole.coefs_ + whole.intercepts_, strict=True):
        np.testing.assert_array_equal(kept, expected)
    assert model.privacy_report_ == whole.privacy_report_
    with pytest.raises(InputError, match="no call that was interrupted"):
        model.resume(X, targets)


@pytest.mark.filterwarnings("ignore::thresholdout.privacy.learning.LowSignalWarning")
def test_gradient_descent_is_stopped_between_what_a_step_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever an interrupt falls, parameters, their number and their mean belong together."""
    estimator, targets = GRADIENT["DPSGDClassifier"]
    whole = clone(estimator).set_params(average=True).fit(X, targets)
    layers = Network.layers
    for at in range(1, 11):
        model = clone(estimator).set_params(average=True)
        with monkeypatch.context() as patched:
            stops = Stops(layers, at, after=True)
            patched.setattr(Network, "layers", lambda self, parameters, stops=stops: stops(self, parameters))
            with pytest.raises(KeyboardInterrupt):
                model.fit(X, targets)
        if hasattr(model, "coefs_"):
            np.testing.assert_array_equal(model.resume(X, targets).coef_, whole.coef_)


@pytest.mark.filterwarnings("ignore::thresholdout.privacy.learning.LowSignalWarning")
def test_gradient_descent_resumes_later_calls_and_after_callbacks(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator, targets = GRADIENT["DPSGDClassifier"]
    parts = {"average": True, "warm_start": True}
    whole = clone(estimator).set_params(**parts).fit(X, targets).partial_fit(X, targets, n_steps=4)
    seen: list[int] = []

    def callback(step: int, layers: Any) -> None:
        seen.append(step)
        if len(seen) in (3, 10):
            raise KeyboardInterrupt

    model = clone(estimator).set_params(callback=callback, **parts)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, targets)
    model.resume(X, targets)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, targets, n_steps=4)
    assert (model.n_steps_, len(model.privacy_report_.assumptions)) == (10, len(whole.privacy_report_.assumptions))
    model.resume(X, targets)
    assert seen == list(range(12))
    np.testing.assert_array_equal(model.coef_, whole.coef_)
    assert (
        model.privacy_report_.event == whole.privacy_report_.event == SelfComposed(whole._account.events[0].event, 12)
    )
    stopped = clone(estimator).set_params(callback=lambda step, layers: step == 2).fit(X, targets)
    with pytest.raises(InputError, match="no call that was interrupted"):
        stopped.resume(X, targets)


@pytest.mark.filterwarnings("ignore::thresholdout.privacy.learning.LowSignalWarning")
def test_gradient_descent_resumes_with_as_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator, targets = GRADIENT["DPSGDClassifier"]
    public = {"adjacency": "add_remove", "public_size": 59}
    for named, expected in (({}, "the number of records"), (public, "public_size")):
        model = clone(estimator).set_params(**named)
        with monkeypatch.context() as patched:
            stop_descent(patched, 3)
            with pytest.raises(KeyboardInterrupt):
                model.fit(X, targets)
        with pytest.raises(InputError, match=expected):
            model.resume(X[:50], targets[:50])
        fresh = [deepcopy(model).set_params(random_state=None) for _ in range(2)]
        assert (fresh[0].resume(X, targets).coef_ == fresh[1].resume(X, targets).coef_).all()  # the seed of the call


@pytest.mark.slow
@for_each(
    "model",
    [
        FederatedClassifier(noise_multiplier=2.0, rounds=2, random_state=0),
        EPClassifier(algorithm="dp-sep", clip_norm=1.0, sigma=2.0, n_epochs=2, random_state=3),
    ],
    ids=["federated", "propagation"],
)
def test_classes_may_be_given_in_the_first_part(model: Any) -> None:
    """Also where its records have one of them only; then nothing of the labels has become public."""
    model = clone(model)
    one, both = X[LABELS == 1][:10], X[:20]
    model.partial_fit(one, np.ones(10, dtype=int), classes=[0, 1])
    assert model.classes_.tolist() == [0, 1]
    model.partial_fit(both, LABELS[:20])
    model.partial_fit(both, LABELS[:20], classes=[0, 1])
    assert model.classes_.tolist() == [0, 1]
    assert model.privacy_report_.private
    assert not any("class" in leak for leak in model.privacy_report_.leaks)
    for others in ([0, 2], [0, 1, 2]):
        with pytest.raises(InputError, match=r"classes|y must be"):
            model.partial_fit(both, LABELS[:20], classes=others)


EVERYWHERE: dict[str, tuple[Any, Any, tuple[str, ...], str]] = {
    "mixture": (clone(ESTIMATORS["DPEMGaussianMixture"]).set_params(random_state=3), Y, ("dpem/mixture.py",), "means_"),
    "federated": (clone(FEDERATED).set_params(clients_per_round=None), LABELS, ("federated_classifier.py",), "coef_"),
    "langevin": (clone(LANGEVIN).set_params(n_steps=6), Y, ("sgld_regressor.py",), "samples_"),
    "descent": (clone(GRADIENT["DPSGDRegressor"][0]), Y, ("descent.py",), "coefs_"),
}
LITTLE = {
    "mixture": {"noise_multiplier": 0.5},
    "federated": {"noise_multiplier": 0.5},
    "langevin": {"step_size": 1e-2},
    "descent": {"noise_multiplier": 0.5},
}


@pytest.mark.parametrize(("name", "stride"), sized([(name,) for name in EVERYWHERE], 181, 1, 0, 3))
def test_wherever_an_interrupt_falls_a_report_is_that_of_what_is_beside_it(name: str, stride: int) -> None:
    """A fit with little noise, then one with much that is stopped: the first never has the second's report."""
    estimator, targets, modules, shown = EVERYWHERE[name]
    first = clone(estimator).set_params(**LITTLE[name]).fit(X, targets)
    second = clone(estimator).fit(X, targets)
    assert second.privacy_report_.epsilon < first.privacy_report_.epsilon
    at = 1
    while True:
        model = deepcopy(first).set_params(**estimator.get_params())
        try:
            with StopsAtLine(at, *modules):
                model.fit(X, targets)
            break
        except KeyboardInterrupt:
            at += stride
        old = np.array_equal(np.ravel(vars(model)[shown]), np.ravel(vars(first)[shown]))
        assert model.privacy_report_ == (first if old else second).privacy_report_
        if model._stopped is not None:
            assert not old
            model.resume(X, targets)
            np.testing.assert_array_equal(np.ravel(vars(model)[shown]), np.ravel(vars(second)[shown]))
            assert model.privacy_report_ == second.privacy_report_
    assert at > 1


@pytest.mark.slow
@for_each("name", RESUMED)
def test_no_learner_resumes_a_fit_that_was_not_interrupted(name: str) -> None:
    with pytest.raises(InputError, match=r"resume must be .*; got no call that was interrupted"):
        quiet_fit(clone(ESTIMATORS[name])).resume(X, LABELS if "Classifier" in name else Y)


@for_each("name", RESUMED)
def test_a_fit_that_was_stopped_before_it_was_charged_is_no_fit(name: str) -> None:
    model, targets = clone(ESTIMATORS[name]), LABELS if "Classifier" in name else Y
    validate_data(model, X)  # what a call has done when it looks for its noise, which may take seconds
    for call in (partial(model.resume, y=targets), model.predict):
        with pytest.raises(NotFittedError, match=f"This {name} instance is not fitted yet"):
            call(X)


@pytest.mark.parametrize("name", corners(RESUMED, 0, 3))
@pytest.mark.filterwarnings("ignore::thresholdout.privacy.learning.LowSignalWarning")
@pytest.mark.filterwarnings("ignore::thresholdout.privacy.learning.LowInformationWarning")
def test_no_parameter_of_today_counts_in_the_rest_of_a_call(name: str) -> None:
    """What was charged is a call with the parameters that it began with; all of them may be nonsense since."""
    targets, estimator = LABELS if "Classifier" in name else Y, clone(ESTIMATORS[name]).set_params(random_state=3)
    many = {"n_steps": 6, "rounds": 6, "n_epochs": 3}
    estimator.set_params(**{key: value for key, value in many.items() if key in estimator.get_params()})
    whole = clone(estimator).fit(X, targets)
    model = stopped_late(clone(estimator), X, targets)
    assert model._stopped is not None
    with pytest.raises(AssertionError):  # there is something left
        same(model, whole)
    assert spoiled(model).resume(X, targets)._stopped is None
    same(model, whole)
    model.set_params(**estimator.get_params())
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))
