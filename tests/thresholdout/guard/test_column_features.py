"""Comparisons of columns given the features: only records about which two columns differ, as in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from graphs.models.law_free import GroupSizes
from tests.sizes import corners
from tests.thresholdout.guard.lazy_guards import Column, Engine, N, hit, lazy_guard, of_polars
from thresholdout import Claims, Thresholdout
from thresholdout.errors import InputError
from thresholdout.scoring.metrics import squared_error


def guards(engine: Engine, table: pd.DataFrame, **declared: Any) -> tuple[Thresholdout, Thresholdout]:
    top, rest = table[:N], table[N:]
    declared = {"sampling": "fixed_features", **declared}
    eager = Thresholdout((top, top.y), train=(rest, rest.y), random_state=3, **declared)
    return lazy_guard(engine, table, **declared), eager


@pytest.mark.parametrize(
    "declared", corners([pytest.param({}, id="claims"), pytest.param({"mechanism": Claims(noise=0.0)}, id="exact")], 0)
)
def test_answers_are_those_of_arrays(engine: Engine, table: pd.DataFrame, declared: Any) -> None:
    """To the bit where values are right or wrong: by a count for two classes, by bets on three values for three."""
    rng = np.random.default_rng(2)
    three = table.assign(y=table.y + (rng.random(2 * N) < 0.1))
    for data, kind in ((table, "two"), (three, "three")):
        lazy, eager = guards(engine, data, **declared)
        assert lazy.certificate.about == eager.certificate.about
        values = tuple(hit(data[N:], name) for name in ("good", "bad"))
        found = lazy.compare("good", "bad")
        expected = eager.compare(Column("good"), Column("bad"), train_values=values)
        assert (found.value, found.interval, found.verdict) == (expected.value, expected.interval, expected.verdict), (
            kind
        )
        answer = lazy.score("good")
        assert answer.interval == eager.score(Column("good"), train_values=values[0]).interval


@pytest.mark.slow
def test_other_values_and_lists(engine: Engine, table: pd.DataFrame) -> None:
    part = table.assign(q=np.where(np.arange(2 * N) % 4 == 0, 0.5 * table.p + 0.5 * table.y, table.p), same=table.p)
    metric, top, rest = squared_error(1.0), part[:N], part[N:]
    lazy, eager = guards(engine, part, mechanism=Claims(noise=0.0))
    values = ((rest.q - rest.y) ** 2).to_numpy(), ((rest.p - rest.y) ** 2).to_numpy()
    found = lazy.compare("q", "p", metric)
    expected = eager.compare(Column("q"), Column("p"), metric, train_values=values)
    assert found.verdict == expected.verdict == "better"
    assert found.interval == pytest.approx(expected.interval, abs=1e-9)
    truth = float(((top.q - top.y) ** 2 - (top.p - top.y) ** 2).mean())
    for answer in lazy.compare_all(["q", "q"], "p", metric):
        assert answer.interval[0] <= truth <= answer.interval[1]
    same = lazy.compare("same", "p", metric)
    assert abs(same.interval[0]) <= 1.0 / N + 1e-9
    assert abs(same.interval[1]) <= 1.0 / N + 1e-9


def test_groups_count_by_the_records_that_differ(engine: Engine, table: pd.DataFrame) -> None:
    """With sizes alone answers are those of arrays; a column of groups says how many differ in one of them."""
    sizes = GroupSizes({5: N // 5})
    lazy, eager = guards(engine, table, dependence=sizes, mechanism=Claims(noise=0.0))
    values = tuple(hit(table[N:], name) for name in ("good", "bad"))
    found = lazy.compare("good", "bad")
    expected = eager.compare(Column("good"), Column("bad"), train_values=values)
    assert (found.value, found.interval, found.verdict) == (expected.value, expected.interval, expected.verdict)
    named = lazy_guard(engine, table, sampling="fixed_features", groups="g")
    part = named._queries._differing("good", "bad", 1.0)  # type: ignore[union-attr]
    unlike = (table.good != table.bad)[:N]
    assert part.records == unlike.sum()
    assert part.effective == part.records / unlike.groupby(table.g[:N]).sum().max()
    truth = float(unlike.mul((table.good == table.y).astype(int) - (table.bad == table.y))[:N].mean())
    answer = named.compare("good", "bad")
    assert answer.interval[0] <= truth <= answer.interval[1]


def test_where_labels_differ_from_predictions_is_not_counted(engine: Engine, table: pd.DataFrame) -> None:
    """Their number on the holdout would be the number of errors, free of charge; labels joined by labels are labels."""
    guard = lazy_guard(engine, table, sampling="fixed_features")
    others = np.arange(2, 2 + 2 * N)
    twice = pd.DataFrame({"y": np.append([0, 1], others), "copy": np.append([0, 1], others)})
    guard.join(engine(twice), on="y")
    guard.join(engine(twice.rename(columns={"y": "copy", "copy": "again"})), on="copy")
    guard.join(engine(pd.DataFrame({"id": np.arange(2 * N), "fine": table.bad})), on="id")
    for b, a in (("y", "good"), ("good", "y"), ("copy", "good"), ("good", "again")):
        with pytest.raises(InputError, match="the column of labels or was joined by it"):
            guard.compare(b, a)
    assert guard.history.empty
    assert guard.compare("good", "fine").interval[0] > -1.0


def test_integers_that_no_float_holds_differ_from_floats(engine: Engine) -> None:
    """2^53 + 1 equals 2^53 as a float, and only one of them is equal to an integer label."""
    large = 1 << 53
    y = np.where(np.arange(2 * N) % 10 == 0, 5 + np.arange(2 * N) % 20, large)
    table = pd.DataFrame({"id": np.arange(2 * N), "y": y, "whole": np.full(2 * N, large + 1), "real": float(large)})
    guard = lazy_guard(engine, table, sampling="fixed_features")
    assert guard._queries._differing("whole", "real", 1.0).records == N  # type: ignore[union-attr]
    answer = guard.compare("whole", "real")
    assert answer.interval[0] <= -0.9 <= answer.interval[1]


@pytest.mark.parametrize("statistic", ["balanced_accuracy", "f1", "roc_auc"])
def test_groups_of_one_record_are_independent_records(engine: Engine, table: pd.DataFrame, statistic: str) -> None:
    alone = table.assign(g=np.arange(2 * N))
    found = lazy_guard(engine, alone, groups="g", mechanism=Claims(noise=0.0)).score("good", statistic)
    expected = lazy_guard(engine, alone, mechanism=Claims(noise=0.0)).score("good", statistic)
    assert (found.value, found.interval) == (expected.value, expected.interval)


def test_statistics_that_are_no_means_are_refused(table: pd.DataFrame) -> None:
    guard = lazy_guard(of_polars, table, sampling="fixed_features")
    with pytest.raises(InputError, match="a mean over records, such as 'accuracy', for sampling='fixed_features'"):
        guard.score("good", "recall")
    with pytest.raises(InputError, match="unless the holdout is a pair"):
        Thresholdout(of_polars(table[:N]), train=of_polars(table[N:]), sampling="fixed_features")
