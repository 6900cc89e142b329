"""Gates of lazy frames decide as gates of arrays do, and never keep where all values would not."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

from graphs.models.law_free import GroupSizes
from tests.sizes import corners, sizes
from tests.thresholdout.guard.lazy_guards import Column, Engine, N, hit, lazy_guard, of_polars
from thresholdout import Claims, Thresholdout
from thresholdout.data.parts.lazy_part import LazyPart
from thresholdout.errors import EngineFailed, InputError
from thresholdout.guard.decision import Decision
from thresholdout.limits.bets import Moments
from thresholdout.mechanisms.claims.gate_tests import BetGate, Proposal
from thresholdout.scoring.metrics import squared_error


@pytest.fixture
def table(table: pd.DataFrame) -> pd.DataFrame:
    """A climb: each column corrects some records of the one before; the first candidate is no better."""
    rng, climbed = np.random.default_rng(9), table.copy()
    right = hit(table, "bad")
    for name, share in (("one", 0.6), ("two", 0.9)):
        right = right | (rng.random(2 * N) < share)
        climbed[name] = np.where(right, table.y, 1 - table.y)
    return climbed.assign(start=table.bad)


def shown(decision: Decision) -> tuple[Any, ...]:
    told = decision.outcome, decision.certified, decision.test, decision.cost, decision.error_budget_left
    return *told, decision.gain, decision.query, decision.approximate


def climbs(lazy: Any, eager: Any, rest: pd.DataFrame, metric: str) -> tuple[list[Decision], list[Decision]]:
    sign = hit if metric == "accuracy" else lambda part, name: ~hit(part, name)
    found, expected = [], []
    for name in ("bad", "one", "two"):
        found.append(lazy.propose(name, name=name))
        expected.append(eager.propose(Column(name), train_values=sign(rest, name), name=name))
    return found, expected


@pytest.mark.parametrize(
    ("declared", "how"),
    corners(
        [
            pytest.param({"sampling": "iid"}, {}, id="sign"),
            pytest.param({"sampling": "iid"}, {"delta": 0.01}, id="trinomial"),
            pytest.param({"sampling": "iid", "queries": 8}, {"tolerance": 0.02}, id="tolerance"),
            pytest.param({}, {}, id="bets"),
            pytest.param({"queries": 8}, {"tolerance": 0.02}, id="tolerated bets"),
            pytest.param({"dependence": GroupSizes({2: N // 2})}, {}, id="sizes"),
            pytest.param({}, {"certify": "milestones"}, id="milestones"),
        ],
        1,
        3,
        5,
    ),
)
def test_decisions_are_those_of_arrays(engine: Engine, table: pd.DataFrame, declared: Any, how: Any) -> None:
    """To the bit, since three counts are all that a decision about right and wrong needs."""
    top, rest = table[:N], table[N:]
    metric = "accuracy" if engine is of_polars else "zero_one_loss"
    lazy_one = lazy_guard(engine, table, **declared)
    eager_one = Thresholdout((top, top.y), train=(rest, rest.y), random_state=3, **declared)
    values = hit(rest, "bad") if metric == "accuracy" else ~hit(rest, "bad")
    lazy = lazy_one.gate("start", metric, **how)
    eager = eager_one.gate(Column("start"), metric, train_values=values, **how)
    found, expected = climbs(lazy, eager, rest, metric)
    assert [*map(shown, found)] == [*map(shown, expected)]
    assert "keep" in [one.outcome for one in found]
    columns = ["value", "low", "high", "source", "train"]
    assert lazy_one.history[columns].equals(eager_one.history[columns])
    assert (lazy.test, lazy.on_the_way) == (eager.test, eager.on_the_way)
    if "certify" in how:
        last = lazy.last_evaluation()
        assert last is None or last.outcome in ("keep", "reject")
    else:
        assert lazy.champion == ("start" if how.get("tolerance") else "two")
        assert lazy.propose("two" if not how.get("tolerance") else "one").repeated


def test_groups_are_bet_on(engine: Engine, table: pd.DataFrame) -> None:
    """Logarithms of groups are added up in another order than in memory."""
    top, rest = table[:N], table[N:]
    lazy_one = lazy_guard(engine, table, groups="g")
    eager_one = Thresholdout((top, top.y), train=(rest, rest.y), random_state=3, groups="g")
    lazy = lazy_one.gate("bad")
    eager = eager_one.gate(Column("bad"), train_values=hit(rest, "bad"))
    for name in ("one", "two"):
        found, expected = lazy.propose(name), eager.propose(Column(name), train_values=hit(rest, name))
        assert (found.outcome, found.test, found.query) == (expected.outcome, "bets on groups", expected.query)
        assert found.cost == pytest.approx(expected.cost, abs=1e-9)
        assert found.gain == expected.gain


@pytest.mark.slow
def test_other_values_are_bet_on_by_their_moments(engine: Engine, table: pd.DataFrame) -> None:
    sharp = table.assign(q=0.3 * table.p + 0.7 * table.y, p=0.5 * table.p + 0.25)
    gate = lazy_guard(engine, sharp).gate("p", squared_error(1.0))
    assert gate.test == "bets"
    assert gate.propose("q")
    worse = lazy_guard(engine, sharp).gate("q", squared_error(1.0)).propose("p")
    assert (worse.outcome, worse.cost) == ("reject", 0.0)
    assert not lazy_guard(engine, sharp, queries=3).gate("q", "brier_score", tolerance=0.01).propose("p")


@sizes("values", 5, 7)
def test_a_bet_that_wins_by_moments_wins_by_the_values(values: int) -> None:
    """For all values on a grid; the twin without the loss factor of squares keeps what the values do not."""
    kept, twin = 0, 0
    for some in combinations_with_replacement((0.0, 0.25, 0.5, 0.75, 1.0), values):
        unit = np.array(some * 3)
        total, squares = int(unit.sum() * 4), int((unit * unit).sum() * 16)
        known, proposal = Moments(unit.size, 2, total, squares), Proposal(0.3, 0.2, 50, unit.size)
        none = Moments(unit.size, 2, total, total * total // unit.size)  # as if all values were the mean
        for level in (0.5, 0.2, 0.05, 0.01):
            by_values = BetGate(unit).passes(proposal, math.log(level))
            for gate in (BetGate(known), BetGate(known).mirrored().mirrored()):
                assert by_values or not gate.passes(proposal, math.log(level))
            by_less = BetGate(1.0 - unit).passes(proposal, math.log(level))
            assert by_less or not BetGate(known).mirrored().passes(proposal, math.log(level))
            kept += BetGate(known).passes(proposal, math.log(level))
            twin += BetGate(none).passes(proposal, math.log(level)) and not by_values
    assert kept > 20
    assert twin > 0


def test_an_engine_that_fails_in_a_gate_is_free(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = lazy_guard(of_polars, table)
    gate, once = guard.gate("bad"), LazyPart.row

    def row(part: LazyPart, plan: Any) -> Any:
        if part.name == "holdout":
            raise EngineFailed(part.name, "no memory")
        return once(part, plan)

    monkeypatch.setattr(LazyPart, "row", row)
    with pytest.raises(EngineFailed, match="no memory"):
        gate.propose("two")
    assert guard.history.empty
    monkeypatch.undo()
    assert gate.propose("two").cost > 0.0
    assert gate.propose("two").repeated


def test_what_a_gate_of_columns_refuses_is_free(table: pd.DataFrame) -> None:
    guard = lazy_guard(of_polars, table, mechanism=Claims(noise=0.0))
    gate = guard.gate("bad")
    for candidate, how, message in (
        ("bad", {}, "another column.*; got the champion's column"),
        ("nr", {}, "no column 'nr'"),
        (nw.col("one"), {}, "candidate must be .*; got an Expr, beside lazy frames"),
        ("one", {"cv": 3}, "cv must be None for lazy frames"),
        ("one", {"train_values": np.ones(N)}, "train_values must be None for lazy frames"),
    ):
        with pytest.raises(InputError, match=message):
            gate.propose(candidate, **how)
    assert guard.history.empty
