"""The best of all accountants, and noise from a target."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest

from tests.cases import for_each
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting import (
    BlackBox,
    Composed,
    DistributionAccountant,
    GaussianAnswer,
    LaplaceAnswer,
    PureAccountant,
    RenyiAccountant,
    SelfComposed,
    WithoutReplacementGaussianStep,
    WithReplacementGaussianStep,
    best_epsilon,
    calibrate,
    calibrate_sigma,
)
from thresholdout.privacy.accounting.accountants.calibration import best_delta, step_of
from thresholdout.privacy.accounting.events.event_types import Adjacency
from thresholdout.privacy.accounting.events.learning_steps import PoissonGaussianStep


def test_best_is_the_smallest_guarantee() -> None:
    events = [SelfComposed(BlackBox(0.1), 200)]
    found = best_epsilon(events, 1e-6)
    sound = found.table[found.table["bound"].isin(["exact", "upper"])]
    assert found.epsilon == sound["epsilon"].min()
    assert found.accountant == "distribution"
    assert found.how == sound["how"].iloc[int(sound["epsilon"].argmin())]
    assert {"pure", "distribution", "renyi"} <= set(found.table["accountant"])
    assert float(found) == found.epsilon
    assert best_epsilon(events, 0.0).epsilon == pytest.approx(20.0)


def test_refusals_are_named() -> None:
    found = best_epsilon(Composed([GaussianAnswer(1.0), BlackBox(0.1, 1e-7)]), 1e-5, accountants=[RenyiAccountant])
    assert found.epsilon == math.inf
    assert found.accountant == "none"
    assert "renyi" in found.refused
    assert best_delta([GaussianAnswer(1.0), BlackBox(0.1, 1e-7)], 1.0, accountants=[RenyiAccountant]) == 1.0


@pytest.mark.slow
@for_each("target", [0.1, 1.0, 7.0])
def test_calibration_is_safe_and_close(target: float) -> None:
    found = calibrate(lambda std: SelfComposed(GaussianAnswer(std), 10), target, 1e-5, tolerance=1e-5)
    assert found.epsilon <= target
    assert found.event == SelfComposed(GaussianAnswer(found.value), 10)
    less = best_epsilon(SelfComposed(GaussianAnswer(found.value * (1 - 3e-5)), 10), 1e-5)
    assert less.epsilon > target


def test_calibration_widens_its_bracket() -> None:
    far = calibrate(lambda scale: LaplaceAnswer(scale), 1e-6, 0.0)
    assert far.value == pytest.approx(1e6, rel=1e-5)
    near = calibrate(lambda scale: LaplaceAnswer(scale, 1e-3), 1.0, 0.0, limits=(1e-6, 10), bracket=(1, 2))
    assert near.value == pytest.approx(1e-3, rel=1e-5)
    with pytest.raises(InputError, match="target_epsilon"):
        calibrate(lambda scale: LaplaceAnswer(scale), 1e-3, 0.0, limits=(0.01, 10))
    with pytest.raises(InputError, match="bracket"):
        calibrate(lambda scale: LaplaceAnswer(scale), 1e-3, 0.0, bracket=(2, 1))
    with pytest.raises(InputError, match="tolerance"):
        calibrate(lambda scale: LaplaceAnswer(scale), 1e-3, 0.0, tolerance=1e-13)


@for_each(
    ("what", "argument", "named"),
    [
        ("make_event", GaussianAnswer(1.0), "a function of the parameter.*; got a GaussianAnswer"),
        ("make_event", 3.0, "a function.*; got a float"),
        (
            "make_event",
            lambda noise: noise,
            "a function .*; got one whose result for the parameter 100 is of type float",
        ),
        (
            "make_event",
            lambda noise: None,
            "a function .*; got one whose result for the parameter 100 is of type NoneType",
        ),
        ("bracket", 3.0, "a pair.*; got 3.0"),
        ("bracket", (1.0, 2.0, 3.0), r"a pair.*; got \(1.0, 2.0, 3.0\)"),
        ("limits", None, "a pair.*; got None"),
    ],
)
def test_calibration_names_what_is_no_function_and_no_pair(what: str, argument: Any, named: str) -> None:
    arguments: dict[str, Any] = {"make_event": GaussianAnswer, what: argument}
    with pytest.raises(InputTypeError, match=f"{what} must be {named}"):
        calibrate(target_epsilon=1.0, delta=1e-5, **arguments)


@pytest.mark.slow
def test_calibrate_sigma_inverts_the_accountant() -> None:
    sizes: dict[str, Any] = {"batch_size": 120, "dataset_size": 50_000}
    sigma = calibrate_sigma(1.083, 1e-5, 104_000, adjacency="add_remove", method="rdp", **sizes)
    assert 5.99 < sigma <= 6.0
    accountant = RenyiAccountant("add_remove").compose(WithoutReplacementGaussianStep(sigma, 120, 50_000), 104_000)
    assert accountant.epsilon(1e-5) <= 1.083
    with pytest.raises(InputError, match="method"):
        calibrate_sigma(1.0, 1e-5, 10, method="other", **sizes)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="delta"):
        calibrate_sigma(1.0, 0.0, 10, **sizes)


def test_steps_of_each_scheme() -> None:
    assert step_of("wor", 6, 120, 50_000) == WithoutReplacementGaussianStep(6, 120, 50_000)
    assert step_of("wr", 6, 120, 50_000) == WithReplacementGaussianStep(6, 120, 50_000)
    poisson = step_of("poisson", 6, 1, 3)
    assert isinstance(poisson, PoissonGaussianStep)
    assert 1 / 3 <= poisson.rate <= math.nextafter(1 / 3, 1)
    assert step_of("poisson", 6, 1, 4) == PoissonGaussianStep(6, 0.25)
    with pytest.raises(InputError, match="sampling"):
        step_of("shuffle", 6, 1, 4)


@pytest.mark.slow
@for_each(("adjacency", "winner"), [("add_remove", "distribution"), ("replace_one", "renyi")])
def test_best_of_the_published_learner(adjacency: Adjacency, winner: str) -> None:
    """Distributions win where their pair is exact; with replaced records Renyi's binomial sum does."""
    rough = partial(DistributionAccountant, accuracy=1e-3)
    event = SelfComposed(WithoutReplacementGaussianStep(6, 120, 50_000), 104_000)
    found = best_epsilon(event, 1e-5, adjacency=adjacency, accountants=[RenyiAccountant, rough])
    sound = found.table[found.table["bound"] != "lower"].set_index("accountant")["epsilon"]
    assert found.accountant == winner
    assert found.epsilon == sound.min() == sound[winner]
    assert found.table[found.table["bound"] == "lower"]["epsilon"].max() <= found.epsilon


@pytest.mark.slow
def test_calibration_by_distributions() -> None:
    sizes: dict[str, Any] = {"batch_size": 64, "dataset_size": 10_000, "adjacency": "add_remove"}
    sigma = calibrate_sigma(1.12814, 1e-5, 1000, method="pld", tolerance=1e-3, **sizes)
    assert 2.0 <= sigma < 2.004
    assert sigma < calibrate_sigma(1.12814, 1e-5, 1000, method="rdp", tolerance=1e-3, **sizes)


@pytest.mark.slow
def test_an_accountant_that_is_far_behind_is_asked_twice_near_the_target() -> None:
    asked: dict[str, list[float]] = {"pure": [], "distribution": []}

    class Pure(PureAccountant):
        def epsilon(self, delta: float) -> float:
            asked["pure"].append(super().epsilon(delta))
            return asked["pure"][-1]

    class Distribution(DistributionAccountant):
        def epsilon(self, delta: float) -> float:
            asked["distribution"].append(super().epsilon(delta))
            return asked["distribution"][-1]

    def make(scale: float) -> SelfComposed:
        return SelfComposed(LaplaceAnswer(scale), 100)

    found = calibrate(make, 1.0, 1e-6, accountants=(Pure, Distribution))
    near = sum(1 / 1.5 <= epsilon <= 1.5 for epsilon in asked["distribution"])
    assert near > 3
    assert len(asked["pure"]) == len(asked["distribution"]) - near + 2
    assert found == calibrate(make, 1.0, 1e-6, accountants=(DistributionAccountant,))


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["poisson", "wor", "wr"])
def test_tiny_batches_are_calibrated_closely(sampling: str) -> None:
    """Rough accuracies serve the search alone: lower bounds show that a little less noise costs more."""
    sizes: dict[str, Any] = {"batch_size": 10, "dataset_size": 50_000}
    sigma = calibrate_sigma(2.0, 1e-6, 100, sampling=sampling, adjacency="add_remove", method="pld", **sizes)

    def bounds(noise: float) -> dict[str, float]:
        event = SelfComposed(step_of(sampling, noise, **sizes), 100)
        table = DistributionAccountant("add_remove").compose(event).table(1e-6)
        return dict(zip(table["bound"], table["epsilon"], strict=True))

    assert bounds(sigma)["upper"] <= 2.0
    assert bounds(sigma * (1 - 2e-4))["lower"] > 2.0
