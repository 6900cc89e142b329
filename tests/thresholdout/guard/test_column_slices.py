"""Slices and smoothed medians of lazy frames: by counts, moments and cells, with the answers that arrays have."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

from graphs.models.law_free import GroupSizes
from tests.sizes import corners
from tests.thresholdout.guard.lazy_guards import Column, Engine, N, guards, lazy_guard, of_polars, shown
from thresholdout import Claims
from thresholdout.data.parts.lazy_part import LazyPart
from thresholdout.errors import InputError, InputTypeError, ThresholdoutError
from thresholdout.guard.column_metrics import metric_expression
from thresholdout.guard.column_statistics import _slice_counts, _wanted_slice
from thresholdout.limits.bets import Moments
from thresholdout.mechanisms.claims.evidence import Bets, MomentBets
from thresholdout.scoring.metrics import brier_score, log_loss, squared_error
from thresholdout.scoring.statistics import median_absolute_error, sliced
from thresholdout.scoring.statistics.regression import SmoothedMedian
from thresholdout.scoring.statistics.slices import SliceMean

WHERE = ("place", "north")


class Predicted(Column):
    """A model whose predictions or probabilities stand in a column."""

    def predict_proba(self, X: pd.DataFrame) -> Any:
        p = X[self.name].to_numpy()
        return np.stack([1.0 - p, p], axis=1)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(9)
    y = rng.integers(0, 2, size=2 * N)
    place = np.array(["north", "south", "west"])[rng.integers(0, 3, 2 * N)]
    predicted = np.where(rng.random(2 * N) < 0.85, y, 1 - y)
    p = np.clip(0.5 + (y - 0.5) * rng.random(2 * N), 0.0, 1.0)
    return pd.DataFrame(
        {"id": np.arange(2 * N), "place": place, "in": place == "west", "y": y, "predicted": predicted, "p": p}
    )


@pytest.mark.parametrize("declared", corners([{}, {"sampling": "iid"}, {"dependence": GroupSizes({3: N // 3})}], 1, 2))
def test_slices_have_the_answers_of_arrays(engine: Engine, table: pd.DataFrame, declared: dict[str, Any]) -> None:
    lazy, eager = guards(engine, table, mechanism=Claims(noise=0.0), **declared)
    for metric, where in (("accuracy", WHERE), ("zero_one_loss", ("in", True))):
        found = lazy.score("predicted", sliced(metric, where))
        assert shown(found) == shown(eager.score(Predicted("predicted"), sliced(metric, where), cv="training"))
    for name, loss in (("p", brier_score()), ("predicted", squared_error(clip=0.75))):
        found = lazy.score(name, sliced(loss, WHERE))
        expected = eager.score(Predicted(name), sliced(loss, WHERE), cv="training")
        assert found.value == pytest.approx(expected.value, abs=1e-9)
        assert found.interval == pytest.approx(expected.interval, abs=1e-8)
        assert (found.source, found.name, found.estimand) == (expected.source, expected.name, expected.estimand)
    assert lazy.score("p", sliced(brier_score(), WHERE)).repeated


def test_lists_of_slices_take_one_pass(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    lazy, eager = guards(of_polars, table)
    passes: list[str] = []
    row = LazyPart.row

    def counting(part: LazyPart, plan: Any) -> Any:
        passes.append(part.name)
        return row(part, plan)

    monkeypatch.setattr(LazyPart, "row", counting)
    found = lazy.score_all(["predicted", "y"], sliced("accuracy", WHERE))
    assert passes.count("holdout") == 1
    expected = eager.score_all([Predicted("predicted"), Predicted("y")], sliced("accuracy", WHERE), cv="training")
    assert list(map(shown, found)) == list(map(shown, expected))


def test_moments_of_a_slice_say_no_more_than_its_values(engine: Engine, table: pd.DataFrame) -> None:
    """Records without a value have the worst one; the twin that leaves them out says more than the values do."""
    gone = table.copy()
    gone.loc[gone.index[:N][::5], "p"] = np.nan
    gone.loc[gone.index[:N][::11], "place"] = None
    share = sliced(brier_score(), WHERE).first_part
    part = LazyPart(engine(gone[:N]), "holdout")
    queries: Any = SimpleNamespace(
        records=SimpleNamespace(part=part), values_of=lambda metric, column: metric_expression(metric, column, "y")
    )
    assert isinstance(share, SliceMean)
    moments = _slice_counts(share, part.totals_of(_wanted_slice(queries, "p", share)))
    assert isinstance(moments, Moments)
    top = gone[:N]
    inside = (top.place == "north").to_numpy()
    values = ((top.y - top.p) ** 2).fillna(1.0).to_numpy()[inside]
    assert moments.size == inside.sum()
    assert moments.mean() == pytest.approx(values.mean(), abs=1e-9)
    exact = Bets(values, np.ones(values.size), (1.0, 1.0))
    without = values[~top.p.isna().to_numpy()[inside]]
    twin = Bets(without, np.ones(without.size), (1.0, 1.0))
    for end in (0.8 * values.mean(), 0.9 * values.mean()):
        for bet in (0.1, 0.5, 1.0):
            assert MomentBets(moments, 1e-9).against(end, bet) <= exact.against(end, bet)
    rest = 0.9 * (1.0 - values.mean())
    assert MomentBets(moments, 1e-9).mirrored().against(rest, 0.5) <= exact.mirrored().against(rest, 0.5)
    assert twin.mirrored().against(rest, 0.5) > exact.mirrored().against(rest, 0.5) + 1.0


def test_slices_that_are_no_columns_are_refused_free(table: pd.DataFrame) -> None:
    lazy = lazy_guard(of_polars, table)
    refused: list[tuple[Any, str]] = [
        (lambda X: X > 3, r"a function that fails on columns of a lazy frame \(TypeError\)"),
        (lambda X: X.place == "north", r"such as lambda X: X\['age'\] > 60; got a function that fails"),
        (lambda X: X["p"], r"such as nw.col\('age'\) > 60, .*; got col\('p'\), which is no boolean"),
        (lambda X: X["p"].log() > 0.0, "without logarithms"),
        (lambda X: True, "a function that returns a bool"),
        (nw.col("p").mean() > 0.5, "the operation 'mean'"),
        (("other", 1), "no column 'other'"),
        (("place", 1), "values of one type"),
    ]
    for where, message in refused:
        with pytest.raises(ThresholdoutError, match=message):
            lazy.score("predicted", sliced("accuracy", where, "some"))
    assert lazy.history.empty
    with pytest.raises(InputTypeError, match="an expression beside records in memory"):
        guards(of_polars, table)[1].score(Predicted("predicted"), sliced("accuracy", nw.col("in"), "in"), cv="training")
    with pytest.raises(InputError, match="a name, which the history shows"):
        sliced("accuracy", nw.col("in"))
    with pytest.raises(InputTypeError, match="an expression of narwhals; got an int"):
        sliced("accuracy", 3, "three")  # type: ignore[arg-type]
    nobody = lazy_guard(of_polars, table.assign(place=np.where(table.id < N, "south", table.place)))
    for column, score in (("predicted", sliced("accuracy", WHERE)), ("p", sliced(brier_score(), WHERE))):
        with pytest.raises(InputError, match="failed on the holdout"):
            nobody.score(column, score)
    assert nobody.history["source"].tolist() == ["failed", "failed"]


def test_functions_and_expressions_are_slices(engine: Engine, table: pd.DataFrame) -> None:
    """A function of columns is the same for data frames and lazy frames, and so is its key."""
    late = lambda X: (X["p"] > 0.25) & (X["place"] != "west")  # noqa: E731
    lazy, eager = guards(engine, table, mechanism=Claims(noise=0.0))
    found = lazy.score("predicted", sliced("accuracy", late, "late"))
    expected = eager.score(Predicted("predicted"), sliced("accuracy", late, "late"), cv="training")
    assert shown(found) == shown(expected)
    assert lazy.score("predicted", sliced("accuracy", late, "late")).repeated
    expression = (nw.col("p") > 0.25) & (nw.col("place") != "west")
    found = lazy.score("predicted", sliced("accuracy", expression, "late"))
    assert not found.repeated
    assert found.name == expected.name
    assert lazy.score("predicted", sliced("accuracy", expression, "late")).repeated
    again = (nw.col("p") > 0.25) & (nw.col("place") != "west")
    assert lazy.score("predicted", sliced("accuracy", again, "late")).repeated
    assert not lazy.score("predicted", sliced("accuracy", expression | nw.col("in"), "late")).repeated


@pytest.mark.parametrize("declared", corners([{}, {"dependence": GroupSizes({3: N // 3})}], 1))
def test_slices_of_the_logarithmic_loss(engine: Engine, table: pd.DataFrame, declared: dict[str, Any]) -> None:
    lazy, eager = guards(engine, table, mechanism=Claims(noise=0.0), **declared)
    statistic = sliced(log_loss(clip=3.0), WHERE)
    found, expected = lazy.score("p", statistic), eager.score(Predicted("p"), statistic, cv="training")
    assert found.value == pytest.approx(expected.value, abs=1e-8)
    assert found.interval == pytest.approx(expected.interval, abs=1e-8)
    assert (found.source, found.name, found.estimand) == (expected.source, expected.name, expected.estimand)


def test_the_slack_of_logarithms_in_a_slice_pays_for_errors_of_any_kind() -> None:
    """Values that are off by at most the slack never say more than exact ones; the twin without the slack does."""
    rng, n, slack, worse = np.random.default_rng(7), 60, 1e-3, 0
    for _ in range(50):
        exact = rng.random(n)
        for off in (exact + slack * rng.choice([-1.0, 0.0, 1.0], n), exact + slack, exact - slack):
            steps = [int(value) for value in np.round(np.clip(off, 0.0, 1.0) * 2.0**40)]
            moments = Moments(n, 40, sum(steps), sum(step**2 for step in steps))
            paid, sides = MomentBets(moments, slack + 1e-9), Bets(exact, np.ones(n), (1.0, 1.0))
            for end, bet in itertools.product((0.3, 0.45), (0.001, 0.2, 0.8)):
                assert paid.against(end, bet) <= sides.against(end, bet)
                assert paid.mirrored().against(end, bet) <= sides.mirrored().against(end, bet)
                worse += MomentBets(moments, 1e-9).against(end, bet) > sides.against(end, bet)
    assert worse > 50


@pytest.fixture(scope="module")
def target() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    y = np.round(20.0 * rng.normal(size=2 * N))
    return pd.DataFrame(
        {
            "id": np.arange(2 * N),
            "y": y,
            "predicted": y + np.round(6.0 * rng.normal(size=2 * N)),
            "own": y + 6.0 * rng.normal(size=2 * N),
        }
    )


@pytest.mark.parametrize("declared", [{}, {"dependence": GroupSizes({3: N // 3})}])
def test_medians_have_the_answers_of_arrays(engine: Engine, target: pd.DataFrame, declared: dict[str, Any]) -> None:
    statistic = median_absolute_error(clip=12.0, window=0.5)
    lazy, eager = guards(engine, target, mechanism=Claims(noise=0.0), **declared)
    found, expected = lazy.score("predicted", statistic), eager.score(Column("predicted"), statistic, cv="training")
    assert shown(found) == shown(expected)
    truth = statistic.value(target.y[:N].to_numpy(), target.own[:N].to_numpy())
    found, expected = lazy.score("own", statistic), eager.score(Column("own"), statistic, cv="training")
    assert found.interval[0] <= truth <= found.interval[1]
    assert found.half_width == pytest.approx(expected.half_width, rel=0.05)


def test_a_median_is_between_those_of_the_ends_of_cells() -> None:
    """The twin takes values for the middle of their cells: it is on neither side for certain."""
    rng, wrong = np.random.default_rng(2), set()
    (part,) = median_absolute_error(clip=4.0, window=0.3).parts(None)
    assert isinstance(part, SmoothedMedian)
    for _ in range(200):
        errors, cells = rng.exponential(2.0, size=41), np.sort(rng.choice(np.arange(1.0, 8.0), 3, replace=False))
        errors[::7] = np.round(errors[::7])
        places = cells.searchsorted(errors, "left") + cells.searchsorted(errors, "right")
        counts = np.bincount(places, minlength=2 * cells.size + 2)
        low, high = part.between(cells, counts)
        exact = median_absolute_error(clip=4.0, window=0.3).value(np.zeros(41), errors) / 4.0
        assert low - 1e-15 <= exact <= high + 1e-15
        wrong.add(np.sign(0.5 * (low + high) - exact))
    assert wrong >= {-1.0, 1.0}
