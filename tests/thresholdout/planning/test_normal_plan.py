"""Plans of guards with normal limits, against guards in simulation.

Right answers come from normal variables with a common part inside groups, and not from the beta-binomial law by which
plans expect them. Planned over simulated half-widths are to be from 0.9 to 1.15. The mean over sessions is off by its
standard error; six of them are allowed, which a normal law exceeds with probability 2e-9.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtri

from benchmarks.groups import latent
from graphs import Groups
from tests.cases import for_each
from thresholdout import Claims, InputError, Thresholdout, plan
from thresholdout.limits.group_sums import GroupSizes
from thresholdout.limits.normal_limits import ExpectedGroups, TrainingGroups

LEAST, MOST, ERRORS = 0.9, 1.15, 6.0
Kind = Literal["adaptive", "batch", "single"]
pytestmark = pytest.mark.filterwarnings("ignore::thresholdout.errors.WideAnswersWarning")


class Told:
    """A model that is right where it is told to be."""

    classes_ = np.array([0.0, 1.0])

    def __init__(self, right: NDArray[np.float64]) -> None:
        self._right = right

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        number = X[:, 0].astype(int)
        return np.where(self._right[number] > 0.5, number % 2, 1 - number % 2).astype(float)


def session(
    sizes: list[int], train: list[int], alike: float, score: float, queries: int, kind: Kind, seed: int
) -> float:
    """Return the mean half-width of a guard's answers."""
    rng = np.random.default_rng(seed)
    n, index = sum(sizes), np.repeat(np.arange(len(sizes) + len(train)), sizes + train)
    within = latent(score, alike)

    def drawn() -> NDArray[np.float64]:
        own = rng.standard_normal(int(index[-1]) + 1)[index]
        return np.asarray(math.sqrt(within) * own + math.sqrt(1.0 - within) * rng.standard_normal(index.size))

    X, hard = np.arange(float(index.size))[:, None], drawn()
    y = X[:, 0] % 2
    guard = Thresholdout(
        (X[:n], y[:n], index[:n]),
        train=(X[n:], y[n:], index[n:]),
        queries=queries,
        mechanism=Claims(limits="normal"),
        random_state=seed,
    )
    rights = [(math.sqrt(0.5) * hard + math.sqrt(0.5) * drawn() < ndtri(score)).astype(float) for _ in range(queries)]
    if kind == "single":
        answer = guard.final_check(Told(rights[0]), cv="training")
        low, high = answer.interval
        return max(answer.value - low, high - answer.value)
    if kind == "batch":
        listed = guard.ask_all([(right[n:], right[:n]) for right in rights], binary=True, reserve=0.0)
        intervals = [answer.interval for answer in listed]
    else:
        intervals = [guard.ask(right[n:], right[:n], binary=True).interval for right in rights]
    return float(np.mean([0.5 * (high - low) for low, high in intervals]))


def beside(
    sizes: list[int], train: list[int], alike: float, score: float, queries: int, kind: Kind, sessions: int
) -> tuple[float, float, float]:
    """Return planned over simulated half-widths, for normal limits and for exact ones, and the standard error."""
    found = [session(sizes, train, alike, score, queries, kind, seed) for seed in range(sessions)]
    model, mean = Groups(np.repeat(np.arange(len(sizes)), sizes)), float(np.mean(found))
    normal, exact = (
        plan(
            model,
            queries=queries,
            anticipated_score=score,
            n_train=len(train),
            correlation=alike,
            limits=limits,
        )
        .way(kind)
        .half_width
        / mean
        for limits in ("normal", "exact")
    )
    return normal, exact, float(np.std(found, ddof=1)) / math.sqrt(sessions) / mean


UNEVEN = [1] * 200 + [5] * 120 + [20] * 20


@pytest.mark.slow
@for_each(
    ("sizes", "train", "alike", "score", "queries", "kind"),
    [
        ([8] * 150, [8] * 150, 0.1, 0.7, 20, "adaptive"),
        ([5] * 400, [5] * 400, 0.1, 0.9, 20, "adaptive"),
        ([5] * 400, [5] * 800, 0.4, 0.9, 40, "adaptive"),
        ([3] * 1000, [3] * 1000, 0.1, 0.9, 20, "adaptive"),
        (UNEVEN, UNEVEN, 0.1, 0.7, 20, "adaptive"),
        ([5] * 400, [5] * 400, 0.4, 0.9, 20, "batch"),
        ([8] * 150, [8] * 150, 0.4, 0.7, 20, "batch"),
        ([3] * 1000, [3] * 1000, 0.4, 0.9, 20, "single"),
        (UNEVEN, UNEVEN, 0.4, 0.7, 20, "single"),
        ([30] * 60, [30] * 60, 0.4, 0.7, 20, "single"),
    ],
)
def test_guards_with_normal_limits_are_as_wide_as_planned(
    sizes: list[int], train: list[int], alike: float, score: float, queries: int, kind: Kind
) -> None:
    sessions = {"adaptive": 16, "batch": 8, "single": 24}[kind]
    normal, _, error = beside(sizes, train, alike, score, queries, kind, sessions)
    assert LEAST - ERRORS * error < normal < MOST + ERRORS * error
    assert ERRORS * error < 0.3  # few answers of a session are several times as wide as the others


def test_one_look_is_as_wide_as_planned() -> None:
    """The side that must fail: the plan for exact limits, which every guard had before."""
    normal, exact, error = beside([5] * 400, [5] * 400, 0.1, 0.9, 20, "single", 6)
    assert LEAST - ERRORS * error < normal < MOST + ERRORS * error
    assert exact > MOST + ERRORS * error


def test_expected_groups_lose_as_drawn_ones_do() -> None:
    sizes, rng = GroupSizes([(3, 300), (40, 100)]), np.random.default_rng(0)
    counts = np.repeat([3, 40], [30_000, 10_000])
    alpha = 0.9 * 0.8 / 0.2  # a correlation of 0.2
    sums = rng.binomial(counts, rng.beta(alpha, alpha / 9.0, counts.size))
    drawn = TrainingGroups(sums.astype(float), counts.astype(float))
    expected = ExpectedGroups.of(sizes, 40_000.0, 0.9, 0.2)
    for one, other in ((expected, drawn), (expected.mirrored(), drawn.mirrored())):
        means = np.array([0.8, 0.95, 1.05]) * one.mean
        assert one.losers(means) == pytest.approx(other.losers(means), rel=0.05)
    assert expected.mean == pytest.approx(0.9)
    copies = ExpectedGroups.of(GroupSizes([(1000, 10)]), 100.0, 0.9, 1.0)
    assert copies.losers(np.array([0.9]))[0] == pytest.approx(10.0, rel=1e-3)  # a tenth of them loses, all alike


def test_plans_say_that_normal_limits_are_approximate() -> None:
    groups = np.repeat(np.arange(400), 5)
    found = plan(groups=groups, queries=20, correlation=0.1, limits="normal")
    assert "approximate, not guaranteed: normal limits from 400 groups" in repr(found)
    assert "approximate" in found._repr_html_()
    assert found.certificate.statement.startswith("Approximate")
    assert "approximate" not in repr(plan(groups=groups, queries=20, correlation=0.1))
    again = Thresholdout(
        np.arange(2000.0), train=(np.arange(2000.0, 4000.0), None, groups + 400), dependence=found.model, queries=20
    )
    assert not again.parameters.approximation  # a guard's limits are declared, not planned


@for_each(
    ("given", "error"),
    [
        ({"records": 2000}, "'normal' for 2000 independent records"),
        ({"width": 0.05}, "'exact' for independent records; got 'normal'"),
        ({"groups": [k // 5 for k in range(500)], "epsilon": 1.0}, "'exact' beside epsilon="),
        ({"groups": [k // 5 for k in range(500)], "teams": 3}, "'exact' beside teams="),
    ],
)
def test_normal_limits_are_planned_for_groups_alone(given: dict[str, object], error: str) -> None:
    with pytest.raises(InputError, match=error):
        plan(**given, limits="normal")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"'exact' or 'normal'.*; got 'approximate'"):
        plan(100, limits="approximate")  # type: ignore[arg-type]
