"""The account of an estimator: what calls cost together, targets, and what is charged when."""

from typing import Any

import numpy as np
import pytest

from tests.cases import for_each
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting import (
    Composed,
    GaussianAnswer,
    SelfComposed,
    WithoutReplacementGaussianStep,
    best_epsilon,
)
from thresholdout.privacy.learning import DPSGDClassifier, DPSGDRegressor
from thresholdout.privacy.learning.dpsgd.batches import Batches
from thresholdout.privacy.learning.dpsgd.spending import Account, noise_for_target, per_step

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(100, 3)), RNG.integers(0, 2, 100)
CLASSES = [0, 1]
Step = WithoutReplacementGaussianStep


def classifier(**parameters: Any) -> DPSGDClassifier:
    return DPSGDClassifier(**{"classes": CLASSES, "batch_size": 10, "n_steps": 12, "delta": 1e-5, **parameters})


@pytest.mark.slow
@for_each("adjacency", ["replace_one", "add_remove"])
def test_the_report_is_the_accountants_of_the_steps(adjacency: Any) -> None:
    size = 80 if adjacency == "add_remove" else None
    model = classifier(noise_multiplier=3.0, adjacency=adjacency, public_size=size).fit(X, Y)
    event = SelfComposed(Step(3.0, 10, size or 100), 12)
    report = model.privacy_report_
    assert report.event == event
    assert report.epsilon == best_epsilon(event, 1e-5, adjacency=adjacency).epsilon
    assert (report.delta, report.adjacency, report.noise_multiplier) == (1e-5, adjacency, 3.0)
    assert report.private
    assert report.details == {
        "sampling": "wor",
        "batch_size": 10,
        "records": size or 100,
        "clip_norm": 1.0,
        "steps": 12,
        "calls": 1,
    }
    assert any("public_size" in words for words in report.assumptions) == (size is not None)
    assert model.privacy_report_ is report


@pytest.mark.slow
def test_assumptions_about_one_record_more_or_less() -> None:
    common: dict[str, Any] = {"noise_multiplier": 3.0, "adjacency": "add_remove", "public_size": 80}
    coins = classifier(**common, sampling="poisson").fit(X, Y)
    assert any("rounds a row alike" in words for words in coins.privacy_report_.assumptions)
    assert not any("public_size" in words for words in coins.privacy_report_.assumptions)
    both = coins.set_params(sampling="wr").partial_fit(X, Y).privacy_report_.assumptions
    assert any("rounds a row alike" in words for words in both)
    assert any("public_size" in words for words in both)


@pytest.mark.slow
def test_calls_are_composed() -> None:
    model = classifier(noise_multiplier=3.0).partial_fit(X, Y)
    assert model.n_steps_ == 10  # one epoch
    model.partial_fit(X[:50], Y[:50], n_steps=4).set_params(noise_multiplier=5.0).partial_fit(X, Y, n_steps=2)
    expected = [SelfComposed(Step(3.0, 10, 100), 10), SelfComposed(Step(3.0, 10, 50), 4)]
    expected.append(SelfComposed(Step(5.0, 10, 100), 2))
    report = model.privacy_report_
    assert report.event == Composed(expected)
    assert report.epsilon == best_epsilon(expected, 1e-5).epsilon
    assert report.noise_multiplier == 3.0
    assert any("row in the data of each call" in words for words in report.assumptions)
    assert report.details["calls"] == 3
    assert model.n_steps_ == 16


@pytest.mark.slow
def test_a_fit_starts_anew_and_a_warm_one_goes_on() -> None:
    model = classifier(noise_multiplier=3.0, random_state=0).fit(X, Y)
    first = model.coef_.copy()
    np.testing.assert_array_equal(model.fit(X, Y).coef_, first)
    assert model.privacy_report_.details["steps"] == 12
    model.set_params(warm_start=True).fit(X, Y)
    assert model.privacy_report_.event == SelfComposed(Step(3.0, 10, 100), 24)
    assert not np.array_equal(model.coef_, first)


def test_steps_without_noise_leave_no_guarantee_for_ever() -> None:
    model = classifier(noise_multiplier=0.0).fit(X, Y)
    assert model.privacy_report_.epsilon == float("inf")
    assert not model.privacy_report_.private
    model.set_params(noise_multiplier=100.0).partial_fit(X, Y)
    assert model.privacy_report_.epsilon == float("inf")
    with pytest.raises(InputError, match="epsilon"):
        model.set_params(noise_multiplier=None, epsilon=1.0, warm_start=True).fit(X, Y)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampling", ["wor", pytest.param("wr", marks=pytest.mark.slow), pytest.param("poisson", marks=pytest.mark.slow)]
)
def test_targets_are_met(sampling: Any) -> None:
    model = classifier(epsilon=2.0, sampling=sampling).fit(X, Y)
    assert 1.9 < model.privacy_report_.epsilon <= 2.0
    less = Batches(sampling, 10, 100).event(model.noise_multiplier_ / 1.005)
    assert best_epsilon(SelfComposed(less, 12), 1e-5).epsilon > 2.0


@pytest.mark.slow
def test_a_target_is_for_all_calls_together() -> None:
    model = classifier(epsilon=2.0, batch_size=100, warm_start=True).fit(X, Y)
    noise = model.noise_multiplier_
    assert 1.9 < model.privacy_report_.epsilon <= 2.0
    model.set_params(epsilon=3.0).fit(X, Y)
    assert 2.85 < model.privacy_report_.epsilon <= 3.0
    assert model.noise_multiplier_ != noise
    with pytest.raises(InputError, match=r"epsilon must be .*; got 2.5, of which earlier calls have spent"):
        model.set_params(epsilon=2.5).fit(X, Y)
    assert model.privacy_report_.details["steps"] == 24


@pytest.mark.slow
def test_a_target_is_the_default() -> None:
    report = DPSGDClassifier(classes=CLASSES, batch_size=100, n_steps=2).fit(X, Y).privacy_report_
    assert 0.99 < report.epsilon <= 1.0


@pytest.mark.slow
def test_a_target_is_used_up_by_partial_fits() -> None:
    model = classifier(epsilon=2.0)
    model.partial_fit(X, Y, n_steps=5)
    noise = model.noise_multiplier_
    assert model.privacy_report_.epsilon < 1.8
    model.partial_fit(X, Y, n_steps=3).partial_fit(X, Y)  # of an epoch of 10 steps, 4 are left
    assert model.noise_multiplier_ == noise
    assert model.n_steps_ == 12
    assert 1.9 < model.privacy_report_.epsilon <= 2.0
    with pytest.raises(InputError, match="at most 0, the rest of the "):
        model.partial_fit(X, Y, n_steps=1)
    with pytest.raises(InputError, match="at most 7, the rest of the "):
        classifier(epsilon=2.0).partial_fit(X, Y, n_steps=5).partial_fit(X, Y, n_steps=8)


@pytest.mark.slow
def test_a_target_holds_when_later_calls_have_fewer_records() -> None:
    model = classifier(epsilon=2.0).partial_fit(X, Y, n_steps=5)
    noise = model.noise_multiplier_
    model.partial_fit(X[:40], Y[:40], n_steps=7)
    assert model.noise_multiplier_ > noise  # the rate is larger
    assert 1.9 < model.privacy_report_.epsilon <= 2.0


def test_a_schedule_of_noise() -> None:
    levels = np.repeat([4.0, 2.0, 4.0], 4)
    expected = [SelfComposed(GaussianAnswer(2.0, 2.0), 4), SelfComposed(GaussianAnswer(4.0, 2.0), 8)]
    for noise in (levels, levels.tolist(), lambda step: levels[step]):
        report = classifier(noise_multiplier=noise, batch_size=100).fit(X, Y).privacy_report_
        assert report.event == Composed(expected)
        assert report.noise_multiplier == 2.0
    seen: list[int] = []

    def level(step: int) -> float:
        seen.append(step)
        return 2.0

    model = classifier(noise_multiplier=level)
    model.partial_fit(X, Y, n_steps=2).partial_fit(X, Y, n_steps=3)
    assert seen == [0, 1, 2, 3, 4]


def test_stopped_and_interrupted_calls_are_charged_in_full() -> None:
    stopped = classifier(noise_multiplier=3.0, callback=lambda step, layers: step == 4).fit(X, Y)
    assert stopped.n_steps_ == 5
    assert stopped.privacy_report_.event == SelfComposed(Step(3.0, 10, 100), 12)

    seen: list[Any] = []

    def interrupt(step: int, layers: Any) -> None:
        seen.append(layers[0].weights.copy())
        assert not layers[0].weights.flags.writeable
        if step == 6:
            raise KeyboardInterrupt

    model = classifier(noise_multiplier=3.0, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.n_steps_ == len(seen) == 7
    np.testing.assert_array_equal(model.coefs_[0], seen[-1])
    assert model.privacy_report_.event == SelfComposed(Step(3.0, 10, 100), 12)
    assert model.predict(X).shape == (100,)


def test_a_refused_call_charges_and_changes_nothing() -> None:
    model = classifier(noise_multiplier=3.0).fit(X, Y)
    before, account = model.coef_.copy(), model._account
    for bad in ({"batch_size": 101}, {"noise_multiplier": -1.0}, {"learning_rate": [1.0]}, {"random_state": "a"}):
        with pytest.raises((InputError, ValueError)):
            classifier(noise_multiplier=3.0, warm_start=True).fit(X, Y).set_params(**bad).fit(X, Y)
    for records in ((X[:, :2], Y), (X, np.full(100, 2))):
        with pytest.raises(ValueError, match=r"features|not among them"):
            model.partial_fit(*records)
    with pytest.raises(InputError, match="earlier calls"):
        model.set_params(adjacency="add_remove", public_size=50).partial_fit(X, Y)
    assert model._account == account
    np.testing.assert_array_equal(model.coef_, before)


def test_seeds_are_an_assumption() -> None:
    def secret(model: Any) -> bool:
        return any("random_state stays secret" in words for words in model.privacy_report_.assumptions)

    common = {"noise_multiplier": 3.0, "batch_size": 100}
    assert secret(classifier(**common, random_state=1).fit(X, Y))
    assert not secret(classifier(**common).fit(X, Y))
    model = classifier(**common, random_state=1).partial_fit(X, Y).set_params(random_state=None)
    assert secret(model.partial_fit(X, Y))


def test_default_delta_is_of_the_public_number() -> None:
    model = DPSGDRegressor(noise_multiplier=3.0, n_steps=1, batch_size=2).fit(np.ones((20_000, 1)), np.ones(20_000))
    assert model.delta_ == 1 / 200_000
    model.partial_fit(np.ones((10, 1)), np.ones(10))
    assert model.delta_ == 1 / 200_000


def test_neighbours_are_the_same_in_all_calls() -> None:
    account = Account().charge_batches(Batches("wor", 2, 10), np.ones(3), seeded=False)
    with pytest.raises(InputError, match="adjacency"):
        account.charge_batches(Batches("poisson", 2, 10, "add_remove"), np.ones(3), seeded=False)


@for_each("value", [0.0, -1.0, np.nan, [1.0, 2.0], np.ones((3, 1)), [1.0, 0.0, 1.0], lambda step: -1.0])
def test_learning_rates_that_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match="learning_rate"):
        per_step(value, "learning_rate", 3)


@for_each("value", ["fast", None, {0: 1.0}, [True, False, True]])
def test_learning_rates_are_numbers(value: Any) -> None:
    with pytest.raises(InputTypeError, match="learning_rate"):
        per_step(value, "learning_rate", 3)


@pytest.mark.slow
def test_an_epsilon_that_no_noise_reaches() -> None:
    with pytest.raises(InputError, match="target_epsilon"):
        noise_for_target(Account(), Batches("wor", 20, 20), 1, 1e-12, 1e-12)
