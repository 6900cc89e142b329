"""The logarithmic loss of lazy frames: an engine's own logarithm, and its largest error in the interval."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from tests.sizes import corners
from tests.thresholdout.guard.lazy_guards import ENGINES, Engine, N, lazy_guard
from thresholdout import Claims, Thresholdout
from thresholdout.data.parts.lazy_part import LOGARITHM
from thresholdout.guard.query import Query
from thresholdout.limits.bets import log_wealth
from thresholdout.mechanisms import Outcome
from thresholdout.scoring.metrics import log_loss


@pytest.fixture(scope="module")
def table(table: pd.DataFrame) -> pd.DataFrame:
    p = 0.05 + 0.9 * table.p
    return table.assign(p=p, q=np.clip(p + np.where(table.y == 1, 0.04, -0.04), 0.0, 1.0))


class Probable:
    """A model whose probability of the class 1 is a column."""

    classes_ = np.array([0, 1])

    def __init__(self, name: str) -> None:
        self.name = name

    def predict_proba(self, X: pd.DataFrame) -> NDArray[np.float64]:
        one = X[self.name].to_numpy()
        return np.stack([1.0 - one, one], axis=1)


CASES = [(engine, *case) for engine in ("polars", "duckdb") for case in ((None, 5.0), ("g", 20.0))]


@pytest.mark.parametrize(("engine", "groups", "clip"), corners(CASES, 0), indirect=["engine"])
def test_answers_are_those_of_arrays(engine: Engine, table: pd.DataFrame, clip: float, groups: Any) -> None:
    top, rest = table[:N], table[N:]
    metric, declared = log_loss(clip), {"mechanism": Claims(noise=0.0), "groups": groups}
    lazy = lazy_guard(engine, table, **declared)
    eager = Thresholdout((top, top.y), train=(rest, rest.y), random_state=3, **declared)
    found = lazy.score("p", metric)
    expected = eager.score(Probable("p"), metric, train_values=metric.of(Probable("p"), rest, rest.y))
    slack = LOGARITHM * clip
    assert found.source == expected.source
    assert found.value == pytest.approx(expected.value, abs=slack)
    for own, theirs, sign in zip(found.interval, expected.interval, (-1.0, 1.0), strict=True):
        assert 0.0 < sign * (own - theirs) < 2.0 * slack + 1e-9  # wider by the bound, and variances in another order
    assert lazy.score("p", metric).repeated


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "groups", "clip"), CASES, indirect=["engine"])
def test_comparisons_and_lists_are_those_of_arrays(
    engine: Engine, table: pd.DataFrame, clip: float, groups: Any
) -> None:
    top, rest = table[:N], table[N:]
    metric, declared = log_loss(clip), {"mechanism": Claims(noise=0.0), "groups": groups}
    lazy = lazy_guard(engine, table, **declared)
    eager = Thresholdout((top, top.y), train=(rest, rest.y), random_state=3, **declared)
    values = {name: metric.of(Probable(name), rest, rest.y) for name in "pq"}
    compared = lazy.compare("q", "p", metric)
    other = eager.compare(Probable("q"), Probable("p"), metric, train_values=(values["q"], values["p"]))
    assert compared.verdict == other.verdict
    assert compared.interval == pytest.approx(other.interval, abs=1e-9)
    for name, listed in zip("pq", lazy.score_all(["p", "q"], metric), strict=True):
        truth = float(np.mean(metric.of(Probable(name), top, top.y)))
        assert listed.interval[0] <= truth <= listed.interval[1]


def test_probabilities_and_labels_that_are_none_have_the_largest_loss(table: pd.DataFrame) -> None:
    odd = table.copy()
    odd.loc[:4, "p"] = [0.0, 1.0, 7.0, -3.0, np.nan]
    odd.loc[:4, "y"] = [1, 0, 0, 1, 1]
    odd.loc[5, "y"] = 3
    losses = np.append(np.full(6, 5.0), log_loss().of(Probable("p"), odd[6:N], odd.y[6:N]))
    for engine in ENGINES:
        guard = lazy_guard(engine, odd, mechanism=Claims(noise=0.0))
        (found,) = guard.score_all(["p"], "log_loss", train_values=[float(losses.mean())])
        assert found.value == pytest.approx(losses.mean(), abs=0.01)
        assert found.interval[0] <= losses.mean() <= found.interval[1]


def test_a_query_is_known_again_on_another_engine(tmp_path: Any, table: pd.DataFrame) -> None:
    first, second = (lazy_guard(engine, table, ledger=tmp_path / "guard.db") for engine in ENGINES)
    told = first.score("p", "log_loss")
    again = second.score("p", "log_loss")
    assert (again.repeated, again.value, again.interval) == (True, told.value, told.interval)


def test_the_interval_of_a_query_has_the_slack_at_both_ends() -> None:
    outcome = Outcome(0.5, "train", 0, 1, interval=(0.25, 0.75), log_error_budget=-3.0)
    plain, slack = Query(0.5, (0.0, 4.0), "loss", None), Query(0.5, (0.0, 4.0), "loss", None)
    slack.slack = 0.125
    for query in (slack, slack.about("a"), slack.standing_for("list", None)):
        entry, other = query.entry(outcome, None), plain.entry(outcome, None)
        assert (entry.low, entry.high) == pytest.approx((other.low - 0.125, other.high + 0.125), abs=1e-15)


def test_the_slack_pays_for_errors_of_any_kind() -> None:
    """Values that are off by e each, in any direction: what they refute of m, the exact ones refute of m - e.

    The twin without the slack is refuted by errors that are all on one side.
    """
    rng, off, wrong = np.random.default_rng(1), 2.0**-6, 0
    for _ in range(300):
        exact = rng.beta(2.0, 5.0, size=100)
        errors = off * rng.choice([-1.0, 0.3, 1.0], size=100) if rng.random() < 0.5 else np.full(100, off)
        seen = np.clip(exact + errors, 0.0, 1.0)
        bet, mean = float(rng.uniform(0.1, 1.5)), float(rng.uniform(0.05, 0.4))
        assert log_wealth(seen, bet, mean) <= log_wealth(exact, bet, mean - off) + 1e-9
        wrong += log_wealth(seen, bet, mean) > log_wealth(exact, bet, mean) + 1e-9
    assert wrong > 100
    assert math.isclose(LOGARITHM, 9.1e-13, rel_tol=0.01)
