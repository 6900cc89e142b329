"""Means of squared errors of lazy frames, also in units of the labels' variance: the answers that arrays have."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray

from graphs.models.law_free import GroupSizes
from tests.sizes import corners
from tests.thresholdout.guard.lazy_guards import ENGINES, Column, Engine, N, lazy_guard, of_polars
from thresholdout import Claims, Thresholdout
from thresholdout.data.parts.lazy_part import LazyPart
from thresholdout.errors import EngineFailed, InputError
from thresholdout.guard.column_statistics import LabelSpread, label_spread
from thresholdout.limits.bets import Moments
from thresholdout.mechanisms.claims.evidence import Bets, MomentBets
from thresholdout.scoring.statistics import r2, root_mean_squared_error
from thresholdout.scoring.statistics.statistic_parts import MeanShare


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    y = 1e4 + 20.0 * rng.normal(size=2 * N)
    return pd.DataFrame(
        {"id": np.arange(2 * N), "y": y, "said": y + 6.0 * rng.normal(size=2 * N), "g": np.arange(2 * N) // 3}
    )


def guards(engine: Engine, table: pd.DataFrame, **declared: Any) -> tuple[Thresholdout, Thresholdout]:
    top, rest = table[:N], table[N:]
    return lazy_guard(engine, table, **declared), Thresholdout(
        (top, top.y), train=(rest, rest.y), random_state=3, **declared
    )


@pytest.mark.parametrize("statistic", [r2(clip=2.0), root_mean_squared_error(clip=30.0)], ids=["r2", "rmse"])
@pytest.mark.parametrize(
    "declared", corners([pytest.param({}, id="claims"), pytest.param({"mechanism": Claims(noise=0.0)}, id="exact")], 0)
)
def test_answers_are_those_of_arrays(engine: Engine, table: pd.DataFrame, statistic: Any, declared: Any) -> None:
    lazy, eager = guards(engine, table, **declared)
    found, expected = lazy.score("said", statistic), eager.score(Column("said"), statistic, cv="training")
    assert found.value == pytest.approx(expected.value, abs=1e-8)
    assert found.interval == pytest.approx(expected.interval, abs=1e-7)
    assert (found.source, found.name, found.estimand) == (expected.source, expected.name, expected.estimand)
    assert lazy.score("said", statistic).repeated
    truth = statistic.value(table.y[:N].to_numpy(), table.said[:N].to_numpy())
    (listed,) = lazy.score_all(["said"], statistic, train_values=[found.value - 0.01])
    assert listed.interval[0] <= truth <= listed.interval[1]
    assert listed.half_width < 0.1 * (statistic.bounds[1] - statistic.bounds[0])


def test_sizes_of_groups(engine: Engine, table: pd.DataFrame) -> None:
    lazy, eager = guards(engine, table, dependence=GroupSizes({3: N // 3}))
    statistic = root_mean_squared_error(clip=30.0)
    found, expected = lazy.score("said", statistic), eager.score(Column("said"), statistic, cv="training")
    assert found.interval == pytest.approx(expected.interval, abs=1e-8)
    with pytest.raises(InputError, match="independent records or Groups"):
        lazy.score("said", r2(clip=2.0))


@pytest.mark.parametrize("statistic", [r2(clip=2.0), root_mean_squared_error(clip=30.0)], ids=["r2", "rmse"])
def test_sums_by_group_have_the_answers_of_arrays(engine: Engine, table: pd.DataFrame, statistic: Any) -> None:
    lazy = lazy_guard(engine, table, groups="g", mechanism=Claims(noise=0.0))
    top, rest = table[:N], table[N:]
    eager = Thresholdout((top, top.y, top.g), train=(rest, rest.y, rest.g), mechanism=Claims(noise=0.0), random_state=3)
    found, expected = lazy.score("said", statistic), eager.score(Column("said"), statistic, cv="training")
    assert found.value == pytest.approx(expected.value, abs=1e-8)
    assert found.interval == pytest.approx(expected.interval, abs=1e-7)
    assert (found.source, found.estimand) == (expected.source, expected.estimand)


def test_sums_of_shares_that_are_off_say_no_more_than_the_shares() -> None:
    """Every share is off by the slack, one way; its twin without slack says more than the shares do."""
    rng, by, more = np.random.default_rng(1), 2.0**-6, 0
    for _ in range(100):
        sizes = rng.integers(1, 6, size=60)
        shares, groups = rng.beta(2.0, 1.0, size=int(sizes.sum())), np.repeat(np.arange(60), sizes)
        for sign in (1.0, -1.0):
            off = np.clip(shares + sign * by, 0.0, 1.0)
            for part in (r2(clip=1.0).first_part, root_mean_squared_error(clip=1.0).first_part):
                assert isinstance(part, MeanShare)
                sums, known = (np.bincount(groups, weights=one).astype(np.float64) for one in (shares, off))
                counts = sizes.astype(np.float64)
                exact, moved = part.evidence_of_groups(sums, counts, 0.0), part.evidence_of_groups(known, counts, by)
                for bet in (0.02, 0.1, 0.19):
                    for one, other in ((exact, moved), (exact.mirrored(), moved.mirrored())):
                        end = 0.9 * one.value
                        assert other.against(end, bet) <= one.against(end, bet) + 1e-9
                        twin = part.evidence_of_groups(known, counts, 0.0)
                        twin = twin.mirrored() if one is not exact else twin
                        more += twin.against(end, bet) > one.against(end, bet) + 1e-9
    assert more > 100


@pytest.mark.parametrize("far", [1.0, 1e6, 1e9])
def test_the_variance_is_as_near_as_it_says(engine: Engine, far: float) -> None:
    """Against fractions, also where one label is far off and the grid between the ends is coarse."""
    rng = np.random.default_rng(4)
    y = np.append(5.0 + rng.normal(size=200), far)
    found = label_spread(LazyPart(engine(pd.DataFrame({"y": y})), "holdout"), "y")
    exact = [Fraction(one) for one in y.tolist()]
    mean = sum(exact) / len(exact)
    variance = float(sum((one - mean) ** 2 for one in exact) / len(exact))
    assert abs(math.sqrt(found.variance) - math.sqrt(variance)) <= found.off * math.sqrt(found.variance)
    assert found.usable


def test_labels_that_vary_too_little_for_the_grid_are_no_use() -> None:
    for y in ([1.0, 1.0], [1.0, None], [1.0, math.inf], [math.nan, 1.0], [0.0] * 5 + [1e-320]):
        found = label_spread(LazyPart(pl.LazyFrame({"y": y}), "holdout"), "y")
        assert not found.usable
        with pytest.raises(InputError, match="labels that vary"):
            found.check("y")
    assert not LabelSpread(1.0, 2e-3).usable


def moved(values: NDArray[np.float64], by: float) -> MomentBets:
    """Return what is known of values that rounding has moved, all one way."""
    steps = np.floor((values + by) * 2.0**20).astype(np.int64)
    return MomentBets(Moments(values.size, 20, int(steps.sum()), int((steps * steps).sum())), by)


def test_evidence_from_moments_is_never_more_than_that_of_the_values() -> None:
    """The slack pays for a mean that is too large; its twin without slack says more than the values do."""
    rng, more = np.random.default_rng(0), 0
    for _ in range(200):
        values = rng.beta(rng.uniform(0.3, 3.0), rng.uniform(0.3, 3.0), size=200)
        exact = Bets(values, np.ones(200), (1.0, 1.0))
        by = 2.0**-8
        known = moved(np.minimum(values, 1.0 - by), by)
        end = float(rng.uniform(0.2, 0.95) * values.mean())
        for bet in (0.1, 0.5, 1.0):
            assert known.against(end, bet) <= exact.against(end, bet) + 1e-9
            assert (
                known.mirrored().against(0.9 * (1.0 - values.mean()), bet)
                <= exact.mirrored().against(0.9 * (1.0 - values.mean()), bet) + 1e-9
            )
            twin = MomentBets(known.moments, 0.0)
            more += twin.against(end, 0.02) > exact.against(end, 0.02)
    assert more > 20


def test_labels_that_are_no_use_on_the_holdout_are_charged_and_engines_that_fail_are_not(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoiled = table.assign(y=np.where(np.arange(2 * N) == 7, np.nan, table.y))
    for engine in ENGINES:
        lazy = lazy_guard(engine, spoiled)
        with pytest.raises(InputError, match="failed on the holdout"):
            lazy.score("said", r2(clip=2.0))
        assert lazy.history["source"].tolist() == ["failed"]
    lazy = lazy_guard(of_polars, table)
    once = LazyPart.row

    def row(part: LazyPart, plan: Any) -> Any:
        if part.name == "holdout":
            raise EngineFailed(part.name, "no memory")
        return once(part, plan)

    monkeypatch.setattr(LazyPart, "row", row)
    with pytest.raises(EngineFailed):
        lazy.score("said", r2(clip=2.0))
    assert lazy.history.empty
