"""Private fits that are worth nothing say so, and those that are worth something do not; by public numbers alone."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tests.cases import for_each
from thresholdout.privacy.learning import (
    DPSGDClassifier,
    DPSGDRegressor,
    DPVIRegressor,
    EPClassifier,
    EPLinearRegression,
    FederatedClassifier,
    LowSignalWarning,
    PBPRegressor,
    SGLDRegressor,
)
from thresholdout.privacy.learning.privacy_report import noise_share
from thresholdout.privacy.learning.propagation.ep_privacy import best_r2

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (4000, 4))
Y = X @ [0.4, -0.3, 0.2, 0.1] + RNG.normal(0, 0.05, 4000)
LABELS = (Y > 0).astype(int)
EP: dict[str, Any] = {"algorithm": "dp-sep", "clip_norm": 1.0, "n_epochs": 2}

# Learners with a noise, and how many records are too few and enough for it.
LEARNERS: dict[str, tuple[Any, int, int]] = {
    "DPSGDClassifier": (DPSGDClassifier(noise_multiplier=50.0, classes=[0, 1]), 40, 400),
    "DPSGDRegressor": (DPSGDRegressor(noise_multiplier=50.0), 100, 1500),
    "FederatedClassifier": (FederatedClassifier(noise_multiplier=50.0, classes=[0, 1], progress=False), 40, 400),
    "SGLDRegressor": (
        SGLDRegressor(clip=1.0, step_size=1e-4, n_steps=200, n_chains=1, order="cyclic", batch_size=20, progress=False),
        40,
        4000,
    ),
    "DPVIRegressor": (DPVIRegressor(3, noise_multiplier=20.0, batch_size=90, n_epochs=6), 180, 4000),
    "EPLinearRegression": (EPLinearRegression(sigma=1.0, noise_var=0.1, fit_intercept=False, **EP), 60, 3000),
}


@pytest.mark.slow
@for_each("name", LEARNERS)
def test_too_few_records_are_warned_of_and_enough_are_not(name: str) -> None:
    model, few, enough = LEARNERS[name]
    model.set_params(random_state=0)
    targets = LABELS if "Classifier" in name else Y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", LowSignalWarning)
        with pytest.warns(LowSignalWarning, match="are needed"):
            model.fit(X[:few], targets[:few])
        warnings.simplefilter("error", LowSignalWarning)
        model.fit(X[:enough], targets[:enough])
    assert model.score(X, targets) > (0.7 if "Classifier" in name else 0.0) or name == "DPVIRegressor"


@pytest.mark.slow
def test_a_private_network_on_some_hundreds_of_records_says_that_it_is_worth_nothing() -> None:
    """At epsilon 1 its R2 is about -1e7, and it said nothing: the posterior moved 1.2 times as far as by noise."""
    model = PBPRegressor((5,), epsilon=1.0, random_state=0, **EP)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", LowSignalWarning)
        with pytest.warns(LowSignalWarning, match="useless"):
            model.fit(X[:300], Y[:300])
    assert model.score(X, Y) < 0


def test_the_warning_of_noisy_descent_knows_no_record() -> None:
    """It is the same for data that are learned at once and for data without any signal."""
    texts = []
    for labels in (LABELS[:60], RNG.integers(0, 2, 60)):
        with pytest.warns(LowSignalWarning) as found:
            DPSGDClassifier(epsilon=0.3, classes=[0, 1], random_state=0).fit(X[:60], labels)
        texts.append([str(each.message) for each in found])
    assert texts[0] == texts[1]


def test_the_share_of_noise_by_simulation() -> None:
    """Gradients of norm 1 and one direction in all steps, and the mean square of the noise of 2,000 runs."""
    rng = np.random.default_rng(1)
    rates, noise = np.array([1.0, 0.5, 2.0]), np.array([3.0, 1.0, 2.0])
    moved = (rng.normal(size=(2000, 3, 5)) * (rates * noise)[:, None] / 10).sum(axis=1)
    root = np.sqrt((moved**2).sum(axis=1).mean())
    way = rates.sum()
    assert noise_share(noise, rates, 10, 5) == pytest.approx(root / way, rel=0.05)
    assert noise_share(0 * noise, rates, 10, 5) == 0.0


@pytest.mark.slow
@for_each("model", [EPLinearRegression(sigma=20.0, **EP), EPClassifier(sigma=20.0, classes=[0, 1], **EP)])
def test_linear_weights_by_propagation_warn_before_they_answer_by_public_numbers(model: Any) -> None:
    """The warning comes before the first step, as an error leaves nothing, and is the same for data without signal."""
    texts = []
    for labels in (LABELS[:60], RNG.integers(0, 2, 60)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", "The weights are expected to have an R2", LowSignalWarning)
            with pytest.raises(LowSignalWarning) as found:
                model.fit(X[:60], labels)
        texts.append(str(found.value))
        assert not hasattr(model, "posterior_")
    assert texts[0] == texts[1]


def test_the_r2_of_noisy_weights_by_simulation() -> None:
    """Equal precisions are best: the mean smallest eigenvalue of others with the same trace is below the bound's."""
    rng = np.random.default_rng(3)
    noise = np.triu(rng.normal(size=(4000, 4, 4)))
    noise += np.triu(noise, 1).transpose(0, 2, 1)
    equal = np.linalg.eigvalsh(25.0 * np.eye(4) + noise)[:, 0].mean()
    other = np.linalg.eigvalsh(np.diag([40.0, 30.0, 20.0, 10.0]) + noise)[:, 0].mean()
    assert best_r2(100.0, 4, 30.0, 1.0, 1e-4) == pytest.approx(1 - (30.0 / equal) ** 2, rel=0.02)
    assert other < equal
    assert best_r2(4.0, 4, 3.0, 1.0, 1e-2) == pytest.approx(1 - 300.0**2)  # projected to rho
    assert best_r2(1e6, 4, 3.0, 1.0, 1e-4) > 0.99
