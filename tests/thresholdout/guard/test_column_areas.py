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
from tests.thresholdout.guard.lazy_guards import (
    ENGINES,
    Column,
    Engine,
    N,
    guards,
    lazy_guard,
    of_duckdb,
    of_polars,
    shown,
)
from tests.thresholdout.mechanisms.test_evidence import AREAS, scores_of_two_classes, worst
from thresholdout import Claims, Thresholdout
from thresholdout.data.parts import value_cells
from thresholdout.data.parts.engines import map_batches
from thresholdout.data.parts.lazy_part import LazyPart
from thresholdout.data.parts.value_cells import cell_counts, common_values
from thresholdout.errors import EngineFailed, InputError, InputTypeError
from thresholdout.guard.column_areas import _score_counts
from thresholdout.scoring.statistics import roc_auc, roc_auc_ovo, roc_auc_ovr
from thresholdout.scoring.statistics.areas import Area, ScoreCounts, _evidence

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


@pytest.mark.slow
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
    with pytest.raises(InputTypeError, match="a mapping from each class to the column of its scores"):
        lazy.score("rated", "roc_auc_ovr")
    with pytest.raises(
        InputError, match=r"a column for each class of the training part: \[0, 1\]; got columns of 0, 2"
    ):
        lazy.score({0: "own", 2: "rated"}, "roc_auc_ovo")
    with pytest.raises(InputTypeError, match="the name of one column, except for areas"):
        lazy.score({0: "own", 1: "rated"}, "roc_auc")
    with pytest.raises(InputTypeError, match="estimator must be the name of a column"):
        lazy.score({0: "own", 1: "rated"}, "accuracy")
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


KINDS = np.array(["ant", "bee", "cow"])
COLUMNS = {kind: f"p_{kind}" for kind in KINDS.tolist()}
FINE = {kind: f"q_{kind}" for kind in KINDS.tolist()}


class Probabilities:
    """A model whose probabilities of three classes stand in columns."""

    classes_ = KINDS

    def __init__(self, columns: dict[str, str]) -> None:
        self.columns = columns

    def predict_proba(self, X: pd.DataFrame) -> Any:
        return X[[self.columns[kind] for kind in KINDS]].to_numpy()


@pytest.fixture(scope="module")
def several() -> pd.DataFrame:
    rng = np.random.default_rng(12)
    truth = rng.choice(3, size=2 * N, p=[0.5, 0.3, 0.2])
    fine = rng.random((2 * N, 3)) + 0.5 * np.eye(3)[truth]
    made = {f"p_{kind}": np.round(fine[:, place] * 16) / 16 for place, kind in enumerate(KINDS)}
    made |= {f"q_{kind}": fine[:, place] for place, kind in enumerate(KINDS)}
    return pd.DataFrame({"id": np.arange(2 * N), "y": KINDS[truth], **made})


@pytest.mark.parametrize("declared", corners([{}, {"sampling": "iid"}, {"dependence": GroupSizes({3: N // 3})}], 0, 2))
@pytest.mark.parametrize("metric", [roc_auc_ovr(), roc_auc_ovo()])
def test_areas_of_several_classes(engine: Engine, several: pd.DataFrame, metric: Any, declared: dict[str, Any]) -> None:
    """Equal to those of arrays for scores that training records have, otherwise a little wider."""
    lazy, eager = guards(engine, several, **declared)
    found, expected = lazy.score(COLUMNS, metric), eager.score(Probabilities(COLUMNS), metric, cv="training")
    assert shown(found) == shown(expected)
    assert lazy.score(dict(reversed(COLUMNS.items())), metric).repeated
    found = lazy.score(COLUMNS, metric, train_values=0.6)
    assert shown(found) == shown(eager.score(Probabilities(COLUMNS), metric, train_values=0.6))
    assert found.source == "holdout"
    listed = lazy.score_all([COLUMNS, FINE], metric)
    wanted = eager.score_all([Probabilities(COLUMNS), Probabilities(FINE)], metric, cv="training")
    assert shown(listed[0]) == shown(wanted[0])
    top, areas = several[:N], []
    for one, other in itertools.product(KINDS, KINDS if metric.name == "roc_auc_ovo" else [None]):
        if one != other:
            some = top[top.y.isin([one, other])] if other else top
            areas.append(sklearn.metrics.roc_auc_score(some.y == one, some[FINE[one]]))
    assert listed[1].interval[0] <= np.mean(areas) <= listed[1].interval[1]
    assert listed[1].half_width < 1.1 * wanted[1].half_width
    assert lazy.history["candidate"].tolist()[-2:] == ["p_ant, p_bee, p_cow", "q_ant, q_bee, q_cow"]


def test_records_without_a_score_or_a_class_are_on_the_wrong_side(several: pd.DataFrame) -> None:
    """By arrays in which they have the least score of their own class, and the largest one of others."""
    gone = several.copy()
    lost = gone.index[:N][::9]
    gone.loc[lost, "p_bee"] = np.nan
    filled = gone.assign(p_bee=gone.p_bee.mask(gone.p_bee.isna(), np.where(gone.y == "bee", -9.0, 9.0)))
    for metric in (roc_auc_ovr(), roc_auc_ovo()):
        lazy, eager = lazy_guard(of_polars, gone), guards(of_polars, filled)[1]
        found, expected = lazy.score(COLUMNS, metric), eager.score(Probabilities(COLUMNS), metric, cv="training")
        assert shown(found) == shown(expected)
    nameless = several.copy()
    nameless.loc[lost, "y"] = None
    known = several.copy()
    known.loc[lost, "y"] = "dog"  # a class of the holdout alone
    lazy, eager = lazy_guard(of_polars, nameless), guards(of_polars, known)[1]
    for metric in (roc_auc_ovr(), roc_auc_ovo()):
        found = lazy.score(COLUMNS, metric)
        assert shown(found) == shown(eager.score(Probabilities(COLUMNS), metric, cv="training"))


def test_all_columns_are_counted_in_one_pass_of_the_holdout(
    several: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    lazy, passes = lazy_guard(of_polars, several), list[object]()

    def counting(*given: Any) -> Iterator[Any]:
        passes.append(given)
        return map_batches(*given)

    monkeypatch.setattr(value_cells, "map_batches", counting)
    lazy.score(COLUMNS, "roc_auc_ovo")
    assert len(passes) == 3 + 1 + 1  # values of each column, and counts of each part


def test_cells_of_a_pair_of_classes() -> None:
    """By plain loops: rows are classes, and the last column has records without a score."""
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 3, size=(4, 6))
    for label, other in itertools.product(range(3), (None, 0, 1, 2)):
        if label == other:
            continue
        behind = [row for row in range(4) if (row != label if other is None else row == other)]
        found = _score_counts(counts, Area(lambda judged: ..., label, other), {0: 0, 1: 1, 2: 2})  # type: ignore[arg-type, return-value]
        rows = [(0 if one == 5 else one + 1, 1) for one in range(6) for _ in range(counts[label, one])]
        rows += [(one + 1, 0) for one in range(6) for row in behind for _ in range(counts[row, one])]
        cells = sorted({cell for cell, _ in rows})
        assert found.ahead.tolist() == [sum(row == (cell, 1) for row in rows) for cell in cells]
        assert found.behind.tolist() == [sum(row == (cell, 0) for row in rows) for cell in cells]
        assert found.sharp is not None
        assert found.sharp.tolist() == [cell % 2 == 0 for cell in cells]


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
    (counts,) = cell_counts(part, [nw.col("p")], nw.col("t"), [found[0]], 2)
    for known in (0.0, 1.0):
        places = sum(np.searchsorted(found[0], own[truth == known], side) for side in ("left", "right"))
        assert counts[int(known)].tolist() == np.bincount(places, minlength=counts.shape[1]).tolist()
    assert common_values(part, nw.col("p"), nw.col("t"), (3800, 200), 2).size == 32
    area = sklearn.metrics.roc_auc_score(truth, own)
    scores = _score_counts(counts, Area(lambda judged: ..., 1), {0: 0, 1: 1})  # type: ignore[arg-type, return-value]
    lower, upper = (
        float(np.average(side[0][0], weights=side[0][1]))
        for side in (scores.placements(), scores.placements(wrong=True))
    )
    assert lower <= area <= 1.0 - upper
    assert 1.0 - upper - lower == pytest.approx(scores.lost)
    assert 0.0 < scores.lost < 0.1
