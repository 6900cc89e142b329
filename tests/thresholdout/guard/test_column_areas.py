"""Areas under the curve of lazy frames: by numbers of records in cells of scores, with the answers that arrays have."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics

from graphs.models.law_free import GroupSizes
from tests.sizes import corners
from tests.thresholdout.guard.lazy_guards import ENGINES, Column, Engine, N, lazy_guard, of_duckdb, of_polars
from tests.thresholdout.mechanisms.test_evidence import AREAS, scores_of_two_classes, worst
from thresholdout import Claims, Thresholdout
from thresholdout.data.parts import value_cells
from thresholdout.data.parts.engines import map_batches
from thresholdout.data.parts.lazy_part import LazyPart
from thresholdout.data.parts.value_cells import cell_counts, common_values
from thresholdout.errors import EngineFailed, InputError
from thresholdout.guard.column_statistics import _score_counts
from thresholdout.scoring.statistics import roc_auc
from thresholdout.scoring.statistics.areas import ScoreCounts, _evidence

ABOVE = 1.0 + 1e-9


class Scores(Column):
    """A model whose scores stand in a column."""

    def decision_function(self, X: pd.DataFrame) -> Any:
        return X[self.name].to_numpy()


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    y = (rng.random(2 * N) < 0.2).astype(int)
    own = y + rng.normal(size=2 * N)
    return pd.DataFrame(
        {
            "id": np.arange(2 * N),
            "g": np.arange(2 * N) // 3,
            "y": y,
            "rated": np.clip(np.round(3 * own), -5, 8).astype(np.int16),
            "own": own,
            "kind": np.where(y == 1, "spam", "ham"),
        }
    )


def guards(engine: Engine, table: pd.DataFrame, **declared: Any) -> tuple[Thresholdout, Thresholdout]:
    top, rest = table[:N], table[N:]
    return lazy_guard(engine, table, **declared), Thresholdout(
        (top, top.y), train=(rest, rest.y), random_state=3, **declared
    )


def shown(answer: Any) -> tuple[Any, ...]:
    return answer.value, answer.interval, answer.source, answer.name, answer.estimand


@pytest.mark.parametrize("declared", corners([{}, {"mechanism": Claims(noise=0.0)}, {"sampling": "iid"}], 0, 2))
def test_scores_that_training_records_have_get_the_answers_of_arrays(
    engine: Engine, table: pd.DataFrame, declared: dict[str, Any]
) -> None:
    lazy, eager = guards(engine, table, **declared)
    found, expected = lazy.score("rated", "roc_auc"), eager.score(Scores("rated"), "roc_auc", cv="training")
    assert shown(found) == shown(expected)
    assert lazy.score("rated", roc_auc()).repeated
    found = lazy.score("rated", "roc_auc", train_values=0.6)
    assert shown(found) == shown(eager.score(Scores("rated"), "roc_auc", train_values=0.6))
    assert found.source == "holdout"
    listed = lazy.score_all(["rated", "own"], "roc_auc")
    wanted = eager.score_all([Scores("rated"), Scores("own")], "roc_auc", cv="training")
    assert shown(listed[0]) == shown(wanted[0])
    truth = sklearn.metrics.roc_auc_score(table.y[:N], table.own[:N])
    assert listed[1].interval[0] <= truth <= listed[1].interval[1]
    assert wanted[1].half_width <= listed[1].half_width < 1.05 * wanted[1].half_width


def test_sizes_of_groups_and_labels_of_text(table: pd.DataFrame) -> None:
    lazy, eager = guards(of_polars, table, dependence=GroupSizes({3: N // 3}))
    found, expected = lazy.score("rated", "roc_auc"), eager.score(Scores("rated"), "roc_auc", cv="training")
    assert shown(found) == shown(expected)
    top, rest = of_polars(table[:N]), of_polars(table[N:])
    named = Thresholdout((top, "kind"), train=(rest, "kind"), random_state=3).score("rated", "roc_auc")
    assert shown(named) == shown(guards(of_polars, table)[0].score("rated", "roc_auc"))
    by_group = lazy_guard(of_polars, table, groups="g").score("rated", "roc_auc")
    assert found.half_width <= by_group.half_width <= 1.2 * found.half_width


def test_records_without_a_score_are_on_the_wrong_side_of_all(table: pd.DataFrame) -> None:
    """Of the holdout; in the training part they are refused, with their number."""
    gone = table.astype({"rated": float})
    gone.loc[gone.index[:N][::7], "rated"] = np.nan
    lost = gone.rated.isna()
    filled = gone.assign(rated=gone.rated.mask(lost, np.where(gone.y == 1, -99.0, 99.0)))
    for engine in ENGINES:
        lazy, eager = lazy_guard(engine, gone), guards(engine, filled)[1]
        found, expected = lazy.score("rated", "roc_auc"), eager.score(Scores("rated"), "roc_auc", cv="training")
        assert shown(found) == shown(expected)
    gone.loc[gone.index[N:][:4], "rated"] = np.nan
    with pytest.raises(InputError, match="4 of 1500 training records without"):
        lazy_guard(of_polars, gone).score("rated", "roc_auc")


def test_what_has_no_area_is_refused_free(table: pd.DataFrame) -> None:
    lazy = lazy_guard(of_polars, table)
    with pytest.raises(InputError, match="a column of scores"):
        lazy.score("kind", "roc_auc")
    with pytest.raises(InputError, match="'roc_auc_ovr' of columns that are not in memory"):
        lazy.score("rated", "roc_auc_ovr")
    with pytest.raises(InputError, match="labels of 14 classes"):
        Thresholdout((of_polars(table[:N]), "rated"), train=(of_polars(table[N:]), "rated")).score("own", "roc_auc")
    assert lazy.history.empty
    lazy = lazy_guard(of_polars, table.assign(y=np.where(table.id < N, 0, table.y)))
    with pytest.raises(InputError, match="failed on the holdout"):
        lazy.score("rated", "roc_auc")
    assert lazy.history["source"].tolist() == ["failed"]


def test_a_pass_that_fails_is_free(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two passes of the training part succeed, and the holdout's fails once."""
    lazy, passes = lazy_guard(of_polars, table), list[object]()

    def failing(*given: Any) -> Iterator[Any]:
        passes.append(given)
        if len(passes) == 3:
            raise OSError("a file is gone")
        yield from map_batches(*given)

    monkeypatch.setattr(value_cells, "map_batches", failing)
    with pytest.raises(EngineFailed, match="holdout"):
        lazy.score("rated", "roc_auc")
    assert lazy.history.empty
    assert not lazy.score("rated", "roc_auc").repeated
    assert len(passes) == 6


# One interval of scores, and one score: the cells of a grid between them
CELLS = [(0, 0, 1), (0, 1, 1), (0, 1, 0)]


def counted(ahead: tuple[int, ...], behind: tuple[int, ...], cells: tuple[int, ...]) -> ScoreCounts:
    """Scores 0, 1, 2 in cells; a cell of one of them is sharp."""
    size = max(cells) + 1
    sharp = np.bincount(cells, minlength=size) == 1
    sides = [np.bincount([cells[score] for score in side], minlength=size) for side in (ahead, behind)]
    return ScoreCounts(sides[0], sides[1], sharp)


def pairs(ahead: tuple[int, ...], behind: tuple[int, ...]) -> float:
    return float(np.mean([(a > b) + 0.5 * (a == b) for a in ahead for b in behind]))


def level(laws: Any, cells: tuple[int, ...], make: Any) -> float:
    """The largest excess of evidence over the true area, of both sides, with bets and without."""
    truth, chances = 0.0, dict[Any, float]()
    for one, other, p in scores_of_two_classes(*laws):
        truth += p * pairs(one, other)
        key = tuple(sorted(one)), tuple(sorted(other))
        chances[key] = chances.get(key, 0.0) + p
    said = [(make(counted(one, other, cells)), p) for (one, other), p in chances.items() if p > 0.0]
    found = []
    for bet in (0.0, 0.3, 0.95, -0.3, -0.95):
        ends = [end for end in (truth, 0.5 * (1 + truth)) if 0.0 < end < 1.0]
        found += [worst([(one.against(end, bet / end), p) for one, p in said]) for end in ends]
        if truth < 1.0:
            rest = 1.0 - truth
            found.append(worst([(one.mirrored().against(rest, bet / rest), p) for one, p in said]))
    return max(found)


@pytest.mark.parametrize("cells", [CELLS[0], CELLS[1]])
def test_cells_keep_the_level_for_the_area_of_the_scores(cells: tuple[int, ...]) -> None:
    """Enumeration: two records of one score are in one cell, and so are some of different ones."""
    for laws in AREAS:
        constant = 1.0 / min(map(len, laws))
        assert level(laws, cells, lambda counts, c=constant: _evidence(counts, c)) <= ABOVE


def test_cells_that_are_taken_for_ties_exceed_the_level() -> None:
    """The twin: scores that differ and are in one cell count half for both sides."""
    low, high = (0.95, 0.05, 0.0), (0.0, 1.0, 0.0)

    def tied(counts: ScoreCounts) -> Any:
        return _evidence(ScoreCounts(counts.ahead, counts.behind), 1.0 / 3.0)

    for laws in (((low,) * 3, (high,) * 3), ((high,) * 3, (low,) * 3)):
        assert level(laws, CELLS[0], tied) > 1.5
        assert level(laws, CELLS[0], lambda counts: _evidence(counts, 1.0 / 3.0)) <= ABOVE


def test_placements_are_those_of_pairs() -> None:
    """By plain loops, for scores in cells: what is certain, on either side, and what is tied."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        sides, sharp = rng.integers(0, 3, size=(2, 6)), rng.random(6) < 0.5
        counts = ScoreCounts(sides[0], sides[1], sharp)
        if not counts.ahead.sum() or not counts.behind.sum():
            continue
        records = [np.repeat(np.arange(6), side) for side in (counts.ahead, counts.behind)]
        for wrong, ties in itertools.product((False, True), repeat=2):
            for own, (shares, times) in enumerate(counts.placements(wrong=wrong, ties=ties)):
                expected = []
                for one in records[own]:
                    up = (own == 0) != wrong
                    sure = [(one > other) if up else (one < other) for other in records[1 - own]]
                    half = [one == other and bool(ties or sharp[one]) for other in records[1 - own]]
                    expected.append(np.mean(np.array(sure) + 0.5 * np.array(half)))
                assert sorted(expected) == pytest.approx(sorted(np.repeat(shares, times)), abs=1e-15)
                assert np.unique(shares).size == shares.size


def test_values_with_many_records_have_cells_and_engines_have_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """More values than cells: a sample, in which are those of which none can be missing."""
    import narwhals as nw

    rng = np.random.default_rng(1)
    own = np.where(rng.random(4000) < 0.2, np.round(rng.random(4000) * 3) / 4, rng.random(4000))
    truth = (rng.random(4000) < 0.05).astype(float)
    frame = pd.DataFrame({"p": own, "t": truth})
    monkeypatch.setattr(value_cells, "_MOST", 64)
    assert math.isclose(roc_auc().value(truth, own), sklearn.metrics.roc_auc_score(truth, own), rel_tol=1e-12)
    found = [
        common_values(LazyPart(engine(frame), "train"), nw.col("p"), nw.col("t"), (3800, 200))
        for engine in (of_polars, of_duckdb, lambda frame: of_polars(frame[::-1]))
    ]
    assert found[0].size == 64
    assert set(found[0]) >= {0.0, 0.25, 0.5, 0.75}
    assert all(np.array_equal(found[0], other) for other in found[1:])
    part = LazyPart(of_polars(frame), "train")
    counts = cell_counts(part, nw.col("p"), nw.col("t"), found[0])
    for known in (0.0, 1.0):
        places = sum(np.searchsorted(found[0], own[truth == known], side) for side in ("left", "right"))
        assert counts[int(known)].tolist() == np.bincount(1 + places, minlength=counts.shape[1]).tolist()
    area = sklearn.metrics.roc_auc_score(truth, own)
    scores = _score_counts(counts)
    lower, upper = (
        float(np.average(side[0][0], weights=side[0][1]))
        for side in (scores.placements(), scores.placements(wrong=True))
    )
    assert lower <= area <= 1.0 - upper
    assert 1.0 - upper - lower == pytest.approx(scores.lost)
    assert 0.0 < scores.lost < 0.1
