"""Clipped chains whose steps throw them from one side of the minimum to the other say so, others do not."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from thresholdout.privacy.learning import LowSignalWarning, SGLDRegressor
from thresholdout.privacy.learning.random_streams import streams
from thresholdout.privacy.learning.run_interrupted import RunInterrupted
from thresholdout.privacy.learning.sgld import sampler
from thresholdout.privacy.learning.sgld.sampler import Problem, run
from thresholdout.privacy.learning.sgld.swinging_chains import swing, warn_of_swing

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (4000, 3))
Y = X @ [1.0, -1.0, 0.5] + RNG.normal(0, 0.5, 4000)
SETTINGS: dict[str, Any] = {"beta": 4.0, "n_steps": 100, "batch_size": 1000, "n_chains": 1, "random_state": 0}


def langevin(**more: Any) -> SGLDRegressor:
    return SGLDRegressor(**{**SETTINGS, "progress": False, **more})


def problem(n: int = 60, steps: int = 7, chains: int = 3) -> Problem:
    return Problem(
        x=X[:n], y=Y[:n], alpha=1.0, beta=4.0, eta=np.full(steps, 1e-3), batch_size=10, order="uniform", clip=1.0,
        chains=chains,
    )  # fmt: skip


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_a_clip_that_is_too_small_is_warned_of_and_one_that_is_not_is_none(epsilon: float) -> None:
    """A larger epsilon makes steps larger, so that the same clip does worse and the clip has to grow."""
    with pytest.warns(LowSignalWarning, match="the chain swings"):
        swinging = langevin(epsilon=epsilon, clip=0.3).fit(X, Y)
    assert swinging.score(X, Y) < 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", LowSignalWarning)
        steady = langevin(epsilon=epsilon, clip=6.0 * math.sqrt(epsilon)).fit(X, Y)
    assert steady.score(X, Y) > 0.5
    assert swinging.privacy_report_.epsilon <= epsilon >= steady.privacy_report_.epsilon


def test_a_swinging_chain_is_as_far_from_the_minimum_as_is_derived() -> None:
    """All gradients are clipped on both sides, so it is thrown to and fro by eta n clip / 2, about the slope 1."""
    n, clip, eta = 1000, 0.1, 2.0
    ones = np.ones((n, 1))
    model = langevin(alpha=1e-6, clip=clip, step_size=eta, batch_size=n, fit_intercept=False, n_chains=80)
    with pytest.warns(LowSignalWarning):
        model.fit(ones, ones[:, 0])
    # Distances |e| and step - |e| alternate, whatever the start: half a step in the mean.
    step = eta * n * clip / 2
    assert np.abs(model.samples_[:, 0] - 1.0).mean() == pytest.approx(step / 2, rel=0.15)


@pytest.mark.parametrize("k", [0.5, 1.0, 1.5])
def test_a_settled_chain_has_the_share_that_is_derived(k: float) -> None:
    """The stationary states of e' = (1 - k) e + sqrt(eta) z are drawn, and one step taken."""
    rng, eta, d, many = np.random.default_rng(1), 0.04, 3, 4000
    slopes = np.full(d, 20.0)
    states = rng.normal(0.0, math.sqrt(eta / (k * (2 - k))), (many, d))
    after = (1 - k) * states + rng.normal(0.0, math.sqrt(eta), (many, d))
    shares = [swing(a[None], b[None], d) for a, b in zip(slopes + states, slopes + after, strict=True)]
    assert np.mean(shares) == pytest.approx(d * eta / (2 * (2 - k)) / (slopes @ slopes), rel=0.1)


def test_the_limit_has_two_sides() -> None:
    """By hand: halves of steps of square 0.14 and 0.16 about a slope of 1; an intercept is none of the slopes."""
    for square, warned in ((0.14, False), (0.16, True)):
        for coordinate in (0, 1):
            before, after = np.array([[1.0, 9.0]]), np.array([[1.0, 9.0]])
            before[0, coordinate] -= math.sqrt(square)
            after[0, coordinate] += math.sqrt(square)
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                warn_of_swing(before, after, 1, stacklevel=1)
            assert bool(found) is warned
    with pytest.warns(LowSignalWarning):
        warn_of_swing(np.full((1, 2), math.nan), np.ones((1, 2)), 2, stacklevel=1)
    assert swing(np.zeros((1, 2)), np.zeros((1, 2)), 2) == math.inf


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_the_states_before_the_last_step_are_those_of_the_path(steps: int) -> None:
    before = np.empty(problem(steps=steps).shape)
    last = run(problem(steps=steps), None, streams(3), progress=False, before=before)
    path = run(problem(steps=steps), None, streams(3), progress=False, return_path=True)
    assert (before == path[:, -2]).all()
    assert (last == path[:, -1]).all()
    assert (before != last).any()


def test_an_interrupted_fit_warns_when_it_is_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    many = sampler._many_dimensional

    def interrupted(given: Problem) -> Any:
        step, taken = many(given), iter(range(50))

        def each(*arguments: Any) -> None:
            if next(taken, None) is None:
                raise KeyboardInterrupt
            step(*arguments)

        return each

    model = langevin(epsilon=8.0, clip=0.3)
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error", LowSignalWarning)
        patch.setattr(sampler, "_many_dimensional", interrupted)
        with pytest.raises(RunInterrupted):
            model.fit(X, Y)
    with pytest.warns(LowSignalWarning, match="the chain swings"):
        model.resume(X, Y)


@pytest.mark.slow
def test_steps_in_parts_are_not_warned_of() -> None:
    """A part may be on its way, which is no reason to say that it is worth nothing."""
    model = langevin(epsilon=8.0, clip=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LowSignalWarning)
        model.partial_fit(X, Y, n_steps=8)
