"""Guards of series with a window: bets on alternating blocks, where training values say that they win."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from tests.cases import for_each
from thresholdout import Thresholdout, TimeOrder, plan
from thresholdout.limits.entropy import entropy_lower, entropy_upper
from thresholdout.mechanisms.claims.kinds import list_width
from thresholdout.mechanisms.claims.parameters import ClaimsParameters

N, WINDOW = 1200, 5
pytestmark = pytest.mark.filterwarnings("ignore::thresholdout.errors.WideAnswersWarning")


def guard_of(times: bool = False, seed: int = 0, queries: int | None = 10) -> Thresholdout:
    """Return a guard of a series; by times, its holdout stands in another order than its times."""
    order = TimeOrder(window=WINDOW)
    if times:
        order = TimeOrder(np.random.default_rng(1).permutation(N).astype(float), window=float(WINDOW))
    given = np.arange(float(N)) + N
    return Thresholdout(given, train=np.arange(float(N)), dependence=order, random_state=seed, queries=queries)


def stretched(rng: np.random.Generator, score: float, length: int) -> NDArray[np.float64]:
    """Right answers to both parts: stretches of so many records are copies of a coin."""
    return np.repeat(rng.random(2 * N // length) < score, length).astype(float)


def half(guard: Thresholdout, values: NDArray[np.float64]) -> float:
    (answer,) = guard.ask_all([(values[:N], values[N:])], reserve=0.0)
    low, high = answer.interval
    return 0.5 * (high - low)


def by_entropy(mean: float) -> float:
    """What every window has, from the number of records that are independent by themselves."""
    level = math.log(0.025)
    return 0.5 * (entropy_upper(mean, N / (WINDOW + 1), level) - entropy_lower(mean, N / (WINDOW + 1), level))


@for_each("times", [False, True])
def test_unlike_neighbours_make_narrow_answers(times: bool) -> None:
    values = stretched(np.random.default_rng(2), 0.9, 1)
    assert half(guard_of(times), values) < 0.72 * by_entropy(float(values[N:].mean()))
    differences = np.where(np.random.default_rng(3).random(2 * N) < 0.05, 1.0, 0.5)
    assert half(guard_of(times), differences) < 0.35 * by_entropy(float(differences[N:].mean()))


def test_alike_neighbours_or_a_mean_alone_keep_the_other_limits() -> None:
    values = stretched(np.random.default_rng(4), 0.9, WINDOW + 1)
    expected = by_entropy(float(values[N:].mean()))
    assert half(guard_of(), values) == pytest.approx(expected, rel=0.03)
    guard = guard_of()
    (answer,) = guard.ask_all([(float(values[:N].mean()), values[N:])], reserve=0.0)
    assert 0.5 * (answer.interval[1] - answer.interval[0]) == pytest.approx(expected, rel=0.03)


@for_each(("correlation", "length"), [(0.0, 1), (0.2, 2)])
def test_lists_are_as_wide_as_planned(correlation: float, length: int) -> None:
    """Planned over realised from 0.9 to 1.15, and six standard errors; the plan for any records is beyond.

    Blocks have five records. Of their ten pairs two are copies in the second case.
    """
    found = [half(guard_of(), stretched(np.random.default_rng(seed), 0.9, length)) for seed in range(6)]
    error = 6.0 * float(np.std(found, ddof=1)) / math.sqrt(6)
    planned, unknown = (
        plan(N, order=True, window=WINDOW, queries=1, anticipated_score=0.9, correlation=given).parameters
        for given in (correlation, None)
    )
    mean = float(np.mean(found))
    assert isinstance(planned, ClaimsParameters)
    assert isinstance(unknown, ClaimsParameters)
    assert 0.9 * (mean - error) < list_width(planned, N, 1, 0.9) < 1.15 * (mean + error)
    if not correlation:  # the side that must fail
        assert list_width(unknown, N, 1, 0.9) > 1.15 * (mean + error)


def missed(sessions: int, dependence: TimeOrder | None) -> int:
    """Count lists of one query that miss the truth 1/2: training values alternate, the holdout's come in copies."""
    found = 0
    for seed in range(sessions):
        guard = Thresholdout(
            np.arange(800.0) + 800,
            train=np.arange(800.0),
            dependence=dependence,
            confidence=0.9,
            random_state=seed,
        )
        holdout = np.repeat(np.random.default_rng(seed).random(100) < 0.5, 8).astype(float)
        (answer,) = guard.ask_all([(np.tile([0.0, 1.0], 400), holdout)], reserve=0.0)
        found += not answer.interval[0] <= 0.5 <= answer.interval[1]
    return found


@pytest.mark.slow
def test_training_values_that_mislead_cost_no_guarantee() -> None:
    """At most a tenth of the lists miss: more than 34 of 120 have probability 1e-9 then.

    The side that must fail takes the records for independent. Expected wealth and small series have twins of their own.
    """
    most = int(binom.isf(1e-9, 120, 0.1))
    assert missed(120, TimeOrder(window=7)) <= most < missed(120, None)
