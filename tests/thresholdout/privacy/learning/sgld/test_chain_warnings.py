"""Clipped chains whose steps are too long or too short for the minimum say so, others do not."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from tests.cases import for_each
from thresholdout.privacy.learning import LowSignalWarning, SGLDRegressor
from thresholdout.privacy.learning.interrupted_calls import RunInterrupted
from thresholdout.privacy.learning.random_streams import streams
from thresholdout.privacy.learning.sgld import sampler
from thresholdout.privacy.learning.sgld.clipped_events import swing, warn_of_start, warn_of_swing, way
from thresholdout.privacy.learning.sgld.sampler import Problem, run

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


@pytest.mark.slow
@for_each("epsilon", [1.0, 8.0])
def test_a_clip_that_is_too_small_is_warned_of_and_one_that_is_not_is_none(epsilon: float) -> None:
    """A larger epsilon makes steps larger, so that the same clip does worse and the clip has to grow."""
    with pytest.warns(LowSignalWarning, match="The chain swings"):
        swinging = langevin(epsilon=epsilon, clip=0.3).fit(X, Y)
    assert swinging.score(X, Y) < 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", LowSignalWarning)
        steady = langevin(epsilon=epsilon, clip=6.0 * math.sqrt(epsilon)).fit(X, Y)
    assert steady.score(X, Y) > 0.5
    assert swinging.privacy_report_.epsilon <= epsilon >= steady.privacy_report_.epsilon


@pytest.mark.slow
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


@pytest.mark.slow
@for_each("k", [0.5, 1.0, 1.5])
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


@for_each("steps", [1, 2, 7])
def test_the_states_that_are_looked_at_are_those_of_the_path(steps: int) -> None:
    seen = np.empty((3, *problem(steps=steps).shape))
    last = run(problem(steps=steps), None, streams(3), progress=False, seen=seen)
    path = run(problem(steps=steps), None, streams(3), progress=False, return_path=True)
    assert (seen[0] == path[:, 0]).all()
    assert (seen[1] == path[:, steps // 2]).all()
    assert (seen[2] == path[:, -2]).all()
    assert (last == path[:, -1]).all()
    assert (seen[2] != last).any()


@pytest.mark.slow
def test_steps_that_are_too_short_to_arrive_are_warned_of() -> None:
    """By `swing`, k is 0.5e-6 * 4000 * 4 / 3 a step, so that 100 steps take a quarter of the way."""
    with pytest.warns(LowSignalWarning, match="The chain has not converged"):
        far = langevin(clip=1e3, step_size=1e-6, order="cyclic", random_state=4).fit(X, Y)
    assert far.score(X, Y) < 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", LowSignalWarning)
        near = langevin(clip=1e3, step_size=2e-5, order="cyclic", random_state=4, warm_start=True).fit(X, Y)
        assert near.score(X, Y) > 0.5
        near.set_params(step_size=2e-6).fit(X, Y)  # goes on from where it was, which is no start


@for_each("r", [0.2, 0.5, 0.9])
def test_the_way_of_a_chain_that_comes_closer_by_a_share(r: float) -> None:
    start, minimum = np.array([[3.0, -1.0], [0.5, 2.0]]), np.array([1.0, 1.0])
    deviation = start - minimum
    gone, pace = way(start, minimum + r * deviation, minimum + r**2 * deviation)
    assert pace == pytest.approx(r)
    assert gone == pytest.approx((1 - r**2) ** 2 * (4 + 4 + 0.25 + 1) / (9 + 1 + 0.25 + 4))


def test_the_limits_of_the_way_have_two_sides() -> None:
    """By hand: at a full pace the square of the way may be 0.4 of that of the start, 10; and noise be as long."""
    eta = np.array([1.0, 1e-3])
    for length, steps, warned in (
        (6.2, eta, True),
        (6.4, eta, False),
        (6.2, eta * 1e4, False),  # 3.1 by noise of deviation 3.2
        (6.2, eta * 9e3, True),
    ):
        start, halfway, after = np.array([[10.0]]), np.array([[10.0 - length / 2]]), np.array([[10.0 - length]])
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            warn_of_start(start, halfway, after, steps, stacklevel=1)
        assert bool(found) is warned
    still = np.ones((1, 2))
    assert way(still, still, still) == (0.0, 0.0)
    assert way(0 * still, still, still)[0] == math.inf


@pytest.mark.slow
@for_each("after", [49, 50, 51])
@for_each(("clip", "size", "words"), [(0.3, 0.02, "swings"), (1e3, 2e-6, "has not converged")])
def test_an_interrupted_fit_warns_when_it_is_resumed(
    monkeypatch: pytest.MonkeyPatch, clip: float, size: float, after: int, words: str
) -> None:
    """Also where the half of it, 50 steps, was over."""
    many = sampler._many_dimensional

    def interrupted(given: Problem) -> Any:
        step, taken = many(given), iter(range(after))

        def each(*arguments: Any) -> None:
            if next(taken, None) is None:
                raise KeyboardInterrupt
            step(*arguments)

        return each

    model = langevin(order="cyclic", step_size=size, clip=clip)
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error", LowSignalWarning)
        patch.setattr(sampler, "_many_dimensional", interrupted)
        with pytest.raises(RunInterrupted):
            model.fit(X, Y)
    with pytest.warns(LowSignalWarning, match=f"The chain {words}"):
        model.resume(X, Y)
    at_once = langevin(order="cyclic", step_size=size, clip=clip)
    with pytest.warns(LowSignalWarning, match=f"The chain {words}"):
        at_once.fit(X, Y)
    assert (at_once.samples_ == model.samples_).all()


@pytest.mark.slow
def test_steps_in_parts_are_not_warned_of() -> None:
    """A part may be on its way, which is no reason to say that it is worth nothing."""
    model = langevin(epsilon=8.0, clip=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LowSignalWarning)
        model.partial_fit(X, Y, n_steps=8)
