"""Precision, recall, F scores and their like of lazy frames: by counts, with the answers that arrays have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.metrics

from graphs.models.law_free import GroupSizes
from tests.cases import for_each
from tests.sizes import corners
from thresholdout import Claims, SparseVector, Thresholdout
from thresholdout.data.parts.lazy_part import LazyPart
from thresholdout.errors import EngineFailed, InputError
from thresholdout.guard.column_classes import class_counts, classes_of
from thresholdout.scoring.statistics import (
    bounded_difference,
    f1,
    fbeta,
    jaccard,
    matthews_corrcoef,
    precision,
    recall,
)

N = 1500
CONNECTION = duckdb.connect()
Engine = Callable[[pd.DataFrame], Any]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    y, three = rng.integers(0, 2, size=2 * N), rng.integers(0, 3, size=2 * N)
    names = np.array(["ant", "bee", "cow"])
    return pd.DataFrame(
        {
            "id": np.arange(2 * N),
            "g": np.arange(2 * N) // 3,
            "y": y,
            "said": np.where(rng.random(2 * N) < 0.8, y, 1 - y),
            "kind": names[three],
            "told": names[np.where(rng.random(2 * N) < 0.7, three, (three + 1) % 3)],
        }
    )


@pytest.fixture(params=["polars", pytest.param("duckdb", marks=pytest.mark.slow)])
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "polars":
        return lambda frame: pl.from_pandas(frame).lazy()
    return CONNECTION.from_df


class Column:
    """A model that says what stands in a column."""

    def __init__(self, name: str, classes: Any) -> None:
        self.name = name
        self.classes_ = np.unique(classes)

    def predict(self, X: pd.DataFrame) -> Any:
        return X[self.name].to_numpy()


def guards(engine: Engine, table: pd.DataFrame, label: str, **declared: Any) -> tuple[Thresholdout, Thresholdout]:
    top, rest = table[:N], table[N:]
    lazy = Thresholdout((engine(top), label), train=(engine(rest), label), random_state=3, **declared)
    eager = Thresholdout((top, top[label]), train=(rest, rest[label]), random_state=3, **declared)
    return lazy, eager


def shown(answer: Any) -> tuple[Any, ...]:
    return answer.value, answer.interval, answer.source, answer.name, answer.estimand


@pytest.mark.parametrize("mechanism", corners(["claims", Claims(noise=0.0)], 1))
@pytest.mark.parametrize("one_law", corners([True, False], 0))
def test_ratios_have_the_answers_that_arrays_have(
    engine: Engine, table: pd.DataFrame, one_law: bool, mechanism: Any
) -> None:
    declared = {"sampling": "iid" if one_law else "independent", "mechanism": mechanism}
    lazy, eager = guards(engine, table, "y", **declared)
    assert repr(lazy.certificate) == repr(eager.certificate)
    for metric in ("precision", "recall", f1(), f1(positive=0), jaccard(), fbeta(2.0), "matthews_corrcoef"):
        found, expected = lazy.score("said", metric), eager.score(Column("said", [0, 1]), metric, cv="training")
        assert shown(found) == shown(expected)
    found = lazy.score("said", "recall", train_values=0.6)
    assert shown(found) == shown(eager.score(Column("said", [0, 1]), "recall", train_values=0.6))
    assert found.source == "holdout"
    assert lazy.history["value"].tolist() == eager.history["value"].tolist()
    assert lazy.score("said", "precision").repeated
    lazy, eager = guards(engine, table, "kind", **declared)
    for metric in ("f1_macro", precision(average="macro"), recall("bee"), jaccard(average="macro")):
        found, expected = lazy.score("told", metric), eager.score(Column("told", table.kind), metric, cv="training")
        assert shown(found) == shown(expected)


@pytest.mark.slow
def test_groups_have_the_answers_of_arrays_of_which_the_sizes_are_known(engine: Engine, table: pd.DataFrame) -> None:
    """With each record's group arrays bet on whole groups, and know more."""
    lazy, eager = guards(engine, table, "y", dependence=GroupSizes({3: N // 3}))
    named, _ = guards(engine, table, "y", groups="g")
    for metric in ("precision", "recall", "f1"):
        found, expected = lazy.score("said", metric), eager.score(Column("said", [0, 1]), metric, cv="training")
        assert shown(found) == shown(expected)
        wider = named.score("said", metric)  # it knows that the training records are in groups, too
        assert found.half_width <= wider.half_width <= 1.2 * found.half_width


@pytest.mark.slow
def test_lists_of_them(engine: Engine, table: pd.DataFrame) -> None:
    lazy, eager = guards(engine, table, "y")
    models = {"one": Column("said", [0, 1]), "labels": Column("y", [0, 1])}
    found = lazy.score_all({"one": "said", "labels": "y"}, "f1")
    assert [shown(one) for one in found] == [shown(one) for one in eager.score_all(models, "f1", cv="training")]
    assert shown(lazy.final_check("said", "f1")) == shown(eager.final_check(models["one"], "f1", cv="training"))


@pytest.mark.slow
@pytest.mark.parametrize(("label", "said"), [("y", "said"), ("kind", "told")])
def test_balanced_accuracy_is_bet_on_by_counts(engine: Engine, table: pd.DataFrame, label: str, said: str) -> None:
    """Sums of weights come in another order than in memory, so that last digits may differ."""
    lazy, eager = guards(engine, table, label, mechanism=Claims(noise=0.0))
    model = Column(said, table[label])
    for given in (None, 0.7):
        found = lazy.score(said, "balanced_accuracy", train_values=given)
        cv = "training" if given is None else None
        expected = eager.score(model, "balanced_accuracy", cv=cv, train_values=given)
        assert found.interval == pytest.approx(expected.interval, abs=1e-11)
        assert found.value == pytest.approx(expected.value, abs=1e-11)
        assert (found.source, found.name, found.estimand) == (expected.source, expected.name, expected.estimand)
    (found,) = lazy.score_all([said], "balanced_accuracy")
    truth = sklearn.metrics.balanced_accuracy_score(table[label][:N], table[said][:N])
    assert found.interval[0] <= truth <= found.interval[1]
    lazy, _ = guards(engine, table, label, dependence=GroupSizes({3: N // 3}))
    with pytest.raises(InputError, match="independent records or Groups"):
        lazy.score(said, "balanced_accuracy")
    assert lazy.history.empty


@pytest.mark.parametrize(("label", "said"), corners([("y", "said"), ("kind", "told")], 0))
def test_balanced_accuracy_of_groups_is_bet_on_by_their_counts(
    engine: Engine, table: pd.DataFrame, label: str, said: str
) -> None:
    """Groups come in another order than in memory, so that last digits may differ."""
    declared: dict[str, Any] = {"mechanism": Claims(noise=0.0), "random_state": 3}
    shuffled = table.assign(g=(np.arange(2 * N) // 3 * 7) % N + np.where(np.arange(2 * N) < N, 0, N))
    top, rest = shuffled[:N], shuffled[N:]
    lazy = Thresholdout((engine(top), label), train=(engine(rest), label), groups="g", **declared)
    eager = Thresholdout((top, top[label], top.g), train=(rest, rest[label], rest.g), **declared)
    found = lazy.score(said, "balanced_accuracy")
    expected = eager.score(Column(said, table[label]), "balanced_accuracy", cv="training")
    assert found.interval == pytest.approx(expected.interval, abs=1e-11)
    assert found.value == pytest.approx(expected.value, abs=1e-11)
    assert (found.source, found.estimand) == (expected.source, expected.estimand)
    assert lazy.score(said, "balanced_accuracy").repeated
    one = table.assign(y=np.where(table.id < N, 0, table.y))
    nobody = Thresholdout((engine(one[:N]), "y"), train=(engine(one[N:]), "y"), groups="g")
    with pytest.raises(InputError, match="failed on the holdout"):
        nobody.score("said", "balanced_accuracy")


def test_values_are_those_of_scikit_learn(engine: Engine, table: pd.DataFrame) -> None:
    train, kinds, m = LazyPart(engine(table), "train"), ["ant", "bee", "cow"], sklearn.metrics
    for label, said, statistic, expected in (
        ("y", "said", precision(), m.precision_score(table.y, table.said)),
        ("y", "said", recall(0), m.recall_score(table.y, table.said, pos_label=0)),
        ("y", "said", f1(), m.f1_score(table.y, table.said)),
        ("y", "said", jaccard(), m.jaccard_score(table.y, table.said)),
        ("y", "said", fbeta(0.5), m.fbeta_score(table.y, table.said, beta=0.5)),
        ("y", "said", matthews_corrcoef(), m.matthews_corrcoef(table.y, table.said)),
        ("kind", "told", f1(average="macro"), m.f1_score(table.kind, table.told, average="macro")),
        ("kind", "told", f1("cow"), m.f1_score(table.kind, table.told, average=None, labels=kinds)[2]),
    ):
        known = classes_of(train, label)
        assert known.tolist() == sorted(set(table[label]))
        counts = class_counts(train, said, label, known.tolist(), check=True)
        assert statistic.of_counts(counts, known) == pytest.approx(expected, rel=1e-14)


@pytest.mark.slow
def test_what_is_missing_is_of_no_class(engine: Engine, table: pd.DataFrame) -> None:
    """In the holdout; in the training part it is refused, with its number."""
    gone = table.astype({"said": float}).copy()
    gone.loc[gone.index[:N][::7], "said"] = None
    lazy, eager = guards(engine, gone, "y")
    for metric in ("precision", "recall", "f1"):
        found, expected = lazy.score("said", metric), eager.score(Column("said", [0, 1]), metric, cv="training")
        assert shown(found) == shown(expected)
    gone.loc[gone.index[N:][:4], "said"] = None
    with pytest.raises(InputError, match=r"train_values must be .*; got 4 of 1500 values missing"):
        guards(engine, gone, "y")[0].score("said", "f1")
    gone = table.copy()
    gone["kind"] = gone["kind"].where(gone.index != N, None)
    with pytest.raises(InputError, match=r"labels 'kind' that are missing in the training part"):
        Thresholdout((engine(gone[:N]), "kind"), train=(engine(gone[N:]), "kind")).score("told", "f1_macro")


@pytest.mark.slow
@for_each(
    ("metric", "message"),
    [
        (bounded_difference("own", lambda y, said: 0.5, difference=1.0), "'own' of columns that are not in memory"),
        (bounded_difference("own", lambda y, said: 0.5, difference=1.0), "Others need single values: load the frames"),
        (precision("bee"), "values of one type"),
        ("f1_weighted", "a scorer of 'f1_score' with average='weighted'"),
    ],
)
def test_what_counts_do_not_tell_is_refused_free(table: pd.DataFrame, metric: Any, message: str) -> None:
    lazy = Thresholdout((pl.from_pandas(table[:N]).lazy(), "y"), train=(pl.from_pandas(table[N:]).lazy(), "y"))
    with pytest.raises(InputError, match=message):
        lazy.score("said", metric)
    assert lazy.history.empty


def test_too_many_classes_and_mechanisms_of_means_are_refused(table: pd.DataFrame) -> None:
    holdout, train = pl.from_pandas(table[:N]).lazy(), pl.from_pandas(table[N:]).lazy()
    with pytest.raises(InputError, match="more than 200 classes in the column 'id'"):
        Thresholdout((holdout, "id"), train=(train, "id")).score("g", "f1_macro")
    with pytest.raises(InputError, match="labels of 3 classes"):
        Thresholdout((holdout, "kind"), train=(train, "kind")).score("told", "f1")
    with pytest.raises(InputError, match="a mean over records for sparse vector"):
        Thresholdout((holdout, "y"), train=(train, "y"), mechanism=SparseVector(0.1, 0.01, budget=3), queries=3).score(
            "said", "f1"
        )


def test_one_scan_of_the_holdout_and_its_failure_is_free(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = Thresholdout((pl.from_pandas(table[:N]).lazy(), "kind"), train=(pl.from_pandas(table[N:]).lazy(), "kind"))
    scans: list[str] = []
    row = LazyPart.row

    def counting(part: LazyPart, plan: Any) -> Any:
        scans.append(part.name)
        if len(scans) == 2:
            raise EngineFailed(part.name, "a worker is gone")
        return row(part, plan)

    monkeypatch.setattr(LazyPart, "row", counting)
    with pytest.raises(EngineFailed):
        lazy.score("told", "f1_macro", key="macro")
    assert lazy.history.empty
    assert not lazy.score("told", "f1_macro", key="macro").repeated
    assert scans == ["train", "holdout"] * 2
    assert len(lazy.history) == 1


def test_a_holdout_without_records_that_count_is_charged_as_in_memory(table: pd.DataFrame) -> None:
    never = table.copy()
    never.loc[never.index[:N], "said"] = 0
    lazy, eager = guards(lambda frame: pl.from_pandas(frame).lazy(), never, "y")
    with pytest.raises(InputError, match="failed on the holdout"):
        lazy.score("said", "precision")
    with pytest.raises(InputError, match="failed on the holdout"):
        eager.score(Column("said", [0, 1]), "precision", cv="training")
    assert len(lazy.history) == len(eager.history)
