"""Guards of lazy frames: the answers that arrays have, whatever the engine, and what is refused, free or charged."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import networkx as nx
import numpy as np
import pandas as pd
import pytest

from graphs import DependencyGraph, Groups, Independent, MarkovChain
from graphs.models.law_free import GroupSizes
from tests.cases import for_each
from tests.patience import PATIENCE
from tests.sizes import corners
from tests.thresholdout.guard.lazy_guards import (
    Column,
    Engine,
    N,
    array_guard,
    hit,
    lazy_guard,
    of_duckdb,
    of_polars,
)
from thresholdout import Claims, KFoldGuard, Thresholdout, TimeOrder
from thresholdout.data.parts.lazy_part import LazyPart
from thresholdout.errors import InputError, InputTypeError, LedgerMismatch, OverlapError
from thresholdout.guard.holdout import origin
from thresholdout.mechanisms import SparseVectorParameters
from thresholdout.scoring.metrics import absolute_error, log_loss, squared_error


@pytest.mark.parametrize(
    "declared",
    corners(
        [
            pytest.param({}, id="claims"),
            pytest.param({"mechanism": Claims(noise=0.0), "queries": 5}, id="guess"),
            pytest.param({"groups": "g"}, id="groups"),
            pytest.param({"mechanism": Claims(epsilon=2.0)}, id="private"),
            pytest.param({"mechanism": SparseVectorParameters(0.05, 0.005, budget=3, queries=5)}, id="algorithm 1"),
        ],
        2,
        4,
    ),
)
@pytest.mark.parametrize("engine", ["polars", "duckdb"], indirect=True)
def test_shares_have_the_answers_that_arrays_have(engine: Engine, table: pd.DataFrame, declared: Any) -> None:
    lazy, eager = lazy_guard(engine, table, **declared), array_guard(table, **declared)
    assert repr(lazy.certificate) == repr(eager.certificate)
    assert lazy.certificate.about == eager.certificate.about
    assert lazy.parameters == eager.parameters
    assert lazy.dependence.describe() == eager.dependence.describe()
    top, rest = table[:N], table[N:]
    for name in ("good", "bad"):
        found = lazy.ask(nw.col(name) == nw.col("y"), name=name)
        expected = eager.ask(hit(rest, name), hit(top, name), name=name)
        assert (found.value, found.interval, found.source) == (expected.value, expected.interval, expected.source)
    found, expected = lazy.ask(0.5, nw.col("good") == 1, binary=True), eager.ask(0.5, top.good == 1, binary=True)
    assert (found.value, found.interval) == (expected.value, expected.interval)
    found, expected = lazy.ask(0.3, nw.col("bad") == nw.col("y")), eager.ask(0.3, hit(top, "bad"), binary=True)
    assert (found.value, found.interval, found.source) == (expected.value, expected.interval, expected.source)
    assert lazy.history["value"].tolist() == eager.history["value"].tolist()


def test_a_list_takes_one_pass_of_each_part_and_has_the_answers_of_single_queries(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[str] = []
    once = LazyPart.row

    def row(part: LazyPart, plan: Callable[[], Any]) -> Any:
        passes.append(part.name)
        return once(part, plan)

    def listed(ask: Callable[[Thresholdout], Any], most: int) -> Any:
        guard = lazy_guard(of_polars, table, mechanism=Claims(noise=0.0))
        monkeypatch.setattr(LazyPart, "row", row)
        passes.clear()
        found = ask(guard)
        assert max(passes.count(part) for part in set(passes)) <= most
        monkeypatch.setattr(LazyPart, "row", once)
        return found

    eager = array_guard(table, mechanism=Claims(noise=0.0))
    top, rest = table[:N], table[N:]
    for metric, most in (("accuracy", 1), ("f1", 2)):  # the classes are read in a pass of their own
        found = listed(partial(Thresholdout.score_all, models=["good", "bad", "good"], metric=metric), most)
        single = lazy_guard(of_polars, table, mechanism=Claims(noise=0.0))
        assert [one.value for one in found[:2]] != [one.value for one in found[1:]]
        assert abs(found[0].value - single.score("good", metric).value) < 0.05
    found = listed(lambda guard: guard.score_all(["good", "bad"]), 1)
    pairs = [(hit(rest, name), hit(top, name)) for name in ("good", "bad")]
    assert [(one.value, one.interval) for one in found] == [(one.value, one.interval) for one in eager.ask_all(pairs)]
    found = listed(lambda guard: guard.compare_all(["good", "bad"], "good"), 1)
    assert found[0].value == 0.0
    assert found[1].value < 0.0
    asked = [(nw.col(name) == nw.col("y"),) * 2 for name in ("good", "bad")]
    found = listed(lambda guard: guard.ask_all([*asked, (0.5, nw.col("good") == 1)]), 1)
    assert [one.value for one in found[:2]] != [found[2].value] * 2


@pytest.mark.slow
def test_a_list_of_groups_takes_one_pass_of_each_part_too(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[tuple[str, str]] = []
    row, by_group = LazyPart.row, LazyPart._by_group

    def noted(part: LazyPart, asked: Any, column: str) -> Any:
        passes.append((part.name, column))
        return by_group(part, asked, column)

    def rows(part: LazyPart, plan: Callable[[], Any]) -> Any:
        passes.append((part.name, ""))
        return row(part, plan)

    columns = ["good", "bad"]
    asked = [(nw.col(name) == nw.col("y"),) * 2 for name in columns]
    asks: list[Callable[[Any], Any]] = [
        lambda guard: guard.ask_all(asked),
        lambda guard: guard.score_all(columns),
        lambda guard: guard.compare_all(columns, "p", squared_error(1.0)),
    ]
    for ask in asks:
        guard, single = (lazy_guard(of_polars, table, groups="g", mechanism=Claims(noise=0.0)) for _ in range(2))
        monkeypatch.setattr(LazyPart, "row", rows)
        monkeypatch.setattr(LazyPart, "_by_group", noted)
        records: Any = guard._records
        assert records.train_part.n == N
        passes.clear()
        found = ask(guard)
        assert sorted(passes) == [("holdout", "g"), ("train", ""), ("train", "g")], ask
        monkeypatch.undo()
        alone = one_by_one(single, ask, monkeypatch)
        assert [one.interval for one in found] == [one.interval for one in alone]


def one_by_one(guard: Thresholdout, ask: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Ask the same with a pass for each query."""
    with monkeypatch.context() as patch:
        patch.setattr(LazyPart, "fetched", lambda part, queries, by=None: nullcontext())
        return ask(guard)


@pytest.mark.slow
@pytest.mark.parametrize("groups", [None, "g"])
def test_other_values_have_them_too(engine: Engine, table: pd.DataFrame, groups: str | None) -> None:
    """But for variances, which arrays have by another order of additions, and bets by a bound on their wealth."""
    lazy, eager = lazy_guard(engine, table, groups=groups), array_guard(table, groups=groups)
    top, rest = table[:N], table[N:]
    pairs = [
        (lazy.score("p", "brier_score"), eager.ask((rest.y - rest.p) ** 2, (top.y - top.p) ** 2)),
        (lazy.ask("p"), eager.ask(rest.p, top.p)),
        (
            lazy.score("p", absolute_error(0.3)),
            eager.ask(*(np.minimum(abs(part.y - part.p), 0.3) for part in (rest, top)), bounds=(0, 0.3)),
        ),
        (
            lazy.score("p", squared_error(0.1)),
            eager.ask(*(np.minimum((part.y - part.p) ** 2, 0.1) for part in (rest, top)), bounds=(0, 0.1)),
        ),
    ]
    for found, expected in pairs:
        assert found.value == pytest.approx(expected.value, abs=1e-12)
        assert found.interval == pytest.approx(expected.interval, abs=1e-9)
        assert found.source == expected.source


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "about"), [(None, "difference"), ("g", "difference"), (None, "win_rate")])
def test_comparisons_have_them_too(engine: Engine, table: pd.DataFrame, groups: Any, about: Any) -> None:
    declared = {"groups": groups, "sampling": "iid" if groups is None else "independent"}
    lazy, top, rest = lazy_guard(engine, table, **declared), table[:N], table[N:]
    eager = Thresholdout(
        (top, top.y), train=(rest, rest.y), random_state=3, **declared | {"groups": None if groups is None else "g"}
    )
    values = tuple(hit(rest, name) for name in ("good", "bad"))
    found = lazy.compare("good", "bad", about=about)
    expected = eager.compare(Column("good"), Column("bad"), about=about, train_values=values)
    # 10 % are 7.7 standard errors of a mean whose groups are independent inside, and bets on their sums need about 5
    assert found.verdict == expected.verdict == "better"
    assert found.value == pytest.approx(expected.value, abs=1e-12)
    assert found.interval == pytest.approx(expected.interval, abs=1e-12)
    assert lazy.compare("bad", "good", "zero_one_loss").verdict == "worse"


def test_a_range_wider_than_the_values_keeps_its_units(table: pd.DataFrame) -> None:
    """Errors of 0 and 1 within a range of 5 were counted as if its ends were meant: five times the difference."""
    guard, top = lazy_guard(of_polars, table, mechanism=Claims(noise=0.0)), table[:N]
    found = guard.compare("good", "bad", squared_error(5.0))
    truth = float(np.mean((top.good - top.y) ** 2 - (top.bad - top.y) ** 2))
    assert found.interval[0] <= truth <= found.interval[1] < 0.1
    assert found.value == pytest.approx(truth, abs=0.04)
    (listed,) = guard.compare_all(["good"], "bad", squared_error(5.0))
    assert listed.value == pytest.approx(truth, abs=0.02)


@pytest.mark.slow
def test_lists_and_final_checks(engine: Engine, table: pd.DataFrame) -> None:
    lazy, eager = lazy_guard(engine, table, final_check=True), array_guard(table, final_check=True)
    top, rest = table[:N], table[N:]
    asked = [(nw.col(name) == nw.col("y"),) * 2 for name in ("good", "bad")]
    values = [(hit(rest, name), hit(top, name)) for name in ("good", "bad")]
    for found, expected in zip(lazy.ask_all(asked), eager.ask_all(values), strict=True):
        assert (found.value, found.interval) == (expected.value, expected.interval)
    once = lazy.ask_all([asked[0], asked[1]], reserve=0.5)
    before = len(lazy.history)
    twice = lazy.ask_all([asked[0], asked[1], asked[0]], names=["x", "y", "z"], reserve=0.5)
    assert [(answer.value, answer.interval) for answer in twice] == [
        (answer.value, answer.interval) for answer in (*once, once[0])
    ]
    assert (len(lazy.history), twice[2].name, twice[2].repeated) == (before, "z", True)
    scores = lazy.score_all({"a": "good", "b": "bad"})
    assert [answer.candidate for answer in scores] == ["a", "b"]
    assert lazy.score_all(["good", "bad"], "zero_one_loss", report="best")[0].candidate == "good"
    assert lazy.compare_all(["good"], "bad")[0].verdict == "better"
    last = lazy.final_check("good")
    assert last.interval[0] <= float(hit(top, "good").mean()) <= last.interval[1]


@pytest.mark.slow
def test_a_query_is_known_again_by_its_content_on_every_engine(tmp_path: Path, table: pd.DataFrame) -> None:
    path = tmp_path / "guard.db"
    first = lazy_guard(of_polars, table, ledger=path)
    told = [first.ask(nw.col("good") == nw.col("y")), first.score("bad")]
    compared = first.compare("good", "bad")
    again = lazy_guard(of_duckdb, table.sample(frac=1.0, random_state=1).sort_values("id", kind="stable"), ledger=path)
    assert len(again.history) == 3
    repeated = [again.ask(nw.col("good") == nw.col("y")), again.score("bad")]
    assert again.compare("good", "bad").interval == compared.interval
    assert [one.interval for one in repeated] == [one.interval for one in told]
    assert all(one.repeated for one in repeated)
    assert len(again.history) == 3
    assert not again.ask(nw.col("good") != nw.col("y")).repeated
    assert again.ask(nw.col("good") == nw.col("y"), bounds=(-1, 1)).repeated is False


def test_frames_that_cannot_be_joined_are_refused(table: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="cannot be joined"):
        Thresholdout(of_duckdb(table[:N]), train=duckdb.connect().from_df(table[N:]))


def test_groups_of_other_types_cannot_be_compared(table: pd.DataFrame) -> None:
    for train in (table[N:].assign(g=table.g.astype(float)), table[N:].assign(g=table.g.astype(str))):
        with pytest.raises(InputError, match="of type"):
            Thresholdout(of_polars(table[:N]), train=of_polars(train), groups="g")


def test_groups_are_those_of_a_column(engine: Engine, table: pd.DataFrame) -> None:
    guard = lazy_guard(engine, table, groups="g")
    groups = Groups(table.g[:N])
    assert isinstance(guard.dependence, GroupSizes)
    assert guard.dependence.effective_records() == groups.effective_records() == N / 5
    assert guard.dependence.variance_inflation() == groups.variance_inflation()
    assert guard.parameters.n_train == N / 5  # type: ignore[attr-defined]
    with pytest.raises(OverlapError, match="groups of 'g' in both parts"):
        lazy_guard(engine, table.assign(g=np.arange(2 * N) % 7), groups="g")
    with pytest.raises(InputError, match="without a value of 'g'"):
        lazy_guard(engine, table.assign(g=table.g.where(table.g > 3)), groups="g")
    same = lazy_guard(engine, table, dependence=GroupSizes({5: N // 5}))
    assert same.dependence.fingerprint() == guard.dependence.fingerprint()


def test_lists_and_final_checks_of_groups_have_the_answers_that_arrays_have(
    engine: Engine, table: pd.DataFrame
) -> None:
    """Stated limits add up logarithms of the groups, which arrays have in another order."""
    lazy = lazy_guard(engine, table, groups="g", final_check=True)
    eager = array_guard(table, groups="g", final_check=True)
    top, rest = table[:N], table[N:]
    found = lazy.ask_all([(nw.col(name) == nw.col("y"),) * 2 for name in ("good", "bad")])
    expected = eager.ask_all([(hit(rest, name), hit(top, name)) for name in ("good", "bad")])
    for one, other in zip(found, expected, strict=True):
        assert one.interval == pytest.approx(other.interval, abs=1e-9)
    last = lazy.final_check("good")
    assert last.interval[0] <= float(hit(top, "good").mean()) <= last.interval[1]


def test_groups_in_which_values_are_alike_have_wide_intervals(engine: Engine, table: pd.DataFrame) -> None:
    """All five values of a group are equal, so intervals are at least those of a fifth of the records."""
    alike = table.assign(v=np.repeat(np.random.default_rng(5).random(2 * N // 5) < 0.8, 5))
    guard = lazy_guard(engine, alike, groups="g")
    answer = guard.ask(nw.col("v"))
    assert answer.half_width > 3.0 * np.sqrt(0.16 / (N / 5))
    assert answer.interval[0] <= alike.v[:N].mean() <= answer.interval[1]


def test_parts_that_share_records_are_refused(engine: Engine, table: pd.DataFrame) -> None:
    with pytest.raises(OverlapError):
        Thresholdout(engine(table[:N]), train=engine(table[N - 3 :]))
    Thresholdout(engine(table[:N]), train=engine(table[N - 3 :]), allow_duplicates=True)


@for_each(
    ("declared", "message"),
    [
        ({"dependence": TimeOrder("nr", window=3)}, "by must be .*; got no column 'nr'"),
        ({"dependence": TimeOrder(window=3)}, "a TimeOrder of a lazy frame without a column or a window"),
        ({"dependence": TimeOrder("g")}, "a TimeOrder of a lazy frame without a column or a window"),
        ({"dependence": TimeOrder("g", window=3), "groups": "g"}, "a TimeOrder beside groups"),
        ({"dependence": DependencyGraph(([[0, 1]], N))}, "in which each record has its place"),
        ({"dependence": nx.path_graph(3)}, "which can mean two things"),
        ({"groups": ["g", "y"]}, "groups must be .*; got a list"),
        ({"groups": "nr"}, "groups must be .*; got no column 'nr'"),
        ({"groups": "g", "dependence": Independent(N)}, "a model beside groups"),
        ({"dependence": MarkovChain([[0.9, 0.1], [0.2, 0.8]], N)}, "in which each record has its place"),
        ({"dependence": Independent(3)}, "dependence must be .*; got a model of 3 records"),
        ({"mechanism": "ladder"}, "'claims' for lazy frames; got 'ladder'"),
        ({"mechanism": "leaderboard"}, "'claims' for lazy frames; got 'leaderboard'"),
    ],
)
def test_what_needs_places_or_single_values_is_refused(
    tmp_path: Path, table: pd.DataFrame, declared: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        lazy_guard(of_polars, table, ledger=tmp_path / "guard.db", **declared)
    assert not (tmp_path / "guard.db").exists()


@for_each(
    ("parts", "kind", "message"),
    [
        (lambda top, rest: ((top, "nr"), (rest, "nr")), InputError, "label must be .*; got no column 'nr'"),
        (
            lambda top, rest: ((top, 3), (rest, 3)),
            InputTypeError,
            r"\(frame, 'label'\), a lazy frame with all columns and the name of its column of labels",
        ),
        (
            lambda top, rest: ((top, "y"), rest),
            InputError,
            "train must be .*; got None as the column of labels, beside 'y'",
        ),
        (
            lambda top, rest: ((top, "y"), (rest, "p")),
            InputError,
            "train must be .*; got 'p' as the column of labels, beside 'y'",
        ),
        (lambda top, rest: ((top, top), rest), InputTypeError, "a tuple with a lazy frame"),
    ],
)
def test_labels_are_the_name_of_one_column(
    table: pd.DataFrame, parts: Callable[[Any, Any], Any], kind: type[Exception], message: str
) -> None:
    holdout, train = parts(of_polars(table[:N]), of_polars(table[N:]))
    with pytest.raises(kind, match=message):
        Thresholdout(holdout, train=train)


@pytest.mark.slow
@for_each(
    ("ask", "message"),
    [
        (lambda guard: guard.ask(lambda X, y: y), "train_values must be .*; got a function"),
        (lambda guard: guard.ask(np.ones(N), np.ones(N)), "train_values must be .*; got values for records"),
        (lambda guard: guard.ask(0.5), "holdout_values is missing: pass "),
        (lambda guard: guard.ask(nw.col("p").mean()), "mean"),
        (lambda guard: guard.ask(nw.col("p").rank()), "rank"),
        (lambda guard: guard.ask("nr"), "no column 'nr'"),
        (lambda guard: guard.score(Column("good")), "estimator must be .*; got a Column, beside lazy frames"),
        (lambda guard: guard.score("nr"), "no column 'nr'"),
        (lambda guard: guard.ask(nw.col("p").clip(0.1, 1.0).log()), "whose last digits differ between engines"),
        (lambda guard: guard.score("p", log_loss(clip=701.0)), "clip must be .*; got 701 nats"),
        (lambda guard: guard.gate("p", "log_loss"), "without logarithms for a gate of lazy frames; got 'log_loss"),
        (lambda guard: guard.score("good", "roc_auc_ovr"), "a mapping from each class to the column of its scores"),
        (lambda guard: guard.compare("good", "bad", "f1"), "a mean over records"),
        (lambda guard: guard.score("good", cv=5), "cv must be .*; got a way"),
        (lambda guard: guard.score("good", train_values=np.ones(N)), "train_values must be .*; got an ndarray"),
        (lambda guard: guard.score("good", sample_weight=(1, 1)), "sample_weight"),
        (
            lambda guard: guard.compare("good", "bad", train_values=(1, 1)),
            "train_values must be None for lazy frames; got a value",
        ),
        (lambda guard: guard.compare("good", "bad", about="win_rate"), "got 'win_rate'.*sampling='iid'"),
        (lambda guard: guard.gate(Column("good")), "candidate must be .*; got a Column, beside lazy frames"),
        (
            lambda guard: guard.gate("good", train_values=np.ones(N)),
            "train_values must be None for lazy frames; got array",
        ),
        (lambda guard: guard.split(), "holdout must be .*; got a lazy frame"),
        (lambda guard: guard.scorer(), "holdout must be .*; got a lazy frame"),
        (lambda guard: guard.score(np.ones(N)), "estimator must be the name .*; got an ndarray, beside lazy frames"),
        (
            lambda guard: guard.score_all(["good", np.ones(3)]),
            "estimator must be .*; got an ndarray, beside lazy frames",
        ),
        (lambda guard: origin(guard, np.ones((3, 2))), "X must be .*; got rows"),
    ],
)
def test_queries_that_need_records_in_memory_are_refused_free(table: pd.DataFrame, ask: Any, message: str) -> None:
    guard = lazy_guard(of_polars, table)
    with pytest.raises(InputError, match=message):
        ask(guard)
    assert guard.history.empty


def from_elsewhere(guard: Thresholdout) -> list[Any]:
    """Ask from another process."""
    right = nw.col("good") == nw.col("y")
    return [guard.score("good"), guard.ask(right), guard.compare("good", "bad"), *guard.score_all(["good", "bad"])]


@pytest.mark.slow
def test_other_processes_ask_too(table: pd.DataFrame) -> None:
    guard, alone = lazy_guard(of_polars, table), lazy_guard(of_polars, table)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = pool.submit(from_elsewhere, guard).result(timeout=PATIENCE)
    assert [one.interval for one in found] == [one.interval for one in from_elsewhere(alone)]
    assert guard.score("good").repeated
    assert guard.history["value"].tolist() == alone.history["value"].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("column", ["good", "p"])
def test_training_records_without_a_prediction_are_refused_free(
    engine: Engine, table: pd.DataFrame, column: str
) -> None:
    metric = "accuracy" if column == "good" else "brier_score"
    guard = lazy_guard(engine, table.drop(columns=["good", "p"]).assign(base=table[column]))
    guard.join(engine(table[["id", column]][: 2 * N - 7]), on="id")  # the last 7 are training records
    with pytest.raises(InputError, match=rf"estimator must be .*; got 7 of {N} training records without a prediction"):
        guard.score(column, metric)
    for pair in ((column, "base"), ("base", column)):
        with pytest.raises(InputError, match=rf"b must be .*; got 7 of {N} training records without a prediction"):
            guard.compare(*pair, metric)
    assert guard.history.empty
    assert guard.score(column, metric, train_values=0.8).query == 1


def test_a_model_of_dependence_is_named_by_what_declares_it(tmp_path: Path, table: pd.DataFrame) -> None:
    lazy_guard(of_polars, table, ledger=tmp_path / "guard.db", groups="g").score("good")
    with pytest.raises(LedgerMismatch, match=r"another model of dependence \(groups.*\)\. Open it with"):
        lazy_guard(of_polars, table, ledger=tmp_path / "guard.db")


def test_both_parts_are_lazy_or_none_is(table: pd.DataFrame) -> None:
    with pytest.raises(InputTypeError, match=r"train must be a lazy frame, such as polars.scan_parquet"):
        Thresholdout((of_polars(table[:N]), "y"), train=("train.parquet", "y"))
    with pytest.raises(InputTypeError, match=r"holdout must be a lazy frame, such as polars.scan_parquet"):
        Thresholdout(Path("a.parquet"), train=of_polars(table[N:]))
    with pytest.raises(
        InputTypeError,
        match=r"^holdout must be \(frame, 'label'\), a lazy frame with all columns",
    ):
        Thresholdout((of_polars(table[:N]), table.y[:N]), train=(of_polars(table[N:]), "y"))
    with pytest.raises(InputTypeError, match="beside a holdout"):
        Thresholdout(of_polars(table[:N]), train=table[N:])
    with pytest.raises(InputTypeError, match="beside a holdout"):
        Thresholdout(table[:N], train=of_polars(table[N:]))
    with pytest.raises(InputTypeError, match=r"\(X, y\) with.*; got the text 'y' beside records in memory"):
        Thresholdout((table[:N], "y"), train=(table[N:], "y"))
    with pytest.raises(InputError, match=r"predictions must be .* of parts in memory; got columns"):
        Thresholdout(table[:N], train=table[N:]).join(of_polars(table), on="id")
    with pytest.raises(InputTypeError, match="the text 'good'"):
        Thresholdout((table[:N], table.y[:N]), train=(table[N:], table.y[N:])).score("good")
    with pytest.raises(InputError, match="with the columns of the holdout"):
        Thresholdout(of_polars(table[:N]), train=of_polars(table[N:].drop(columns="p")))
    with pytest.raises(InputError, match="'good' of type"):
        Thresholdout(of_polars(table[:N]), train=of_polars(table[N:].assign(good="a")))
    with pytest.raises(InputTypeError):
        KFoldGuard((of_polars(table), of_polars(table)))


def test_a_guard_without_a_training_part(table: pd.DataFrame) -> None:
    guard = Thresholdout((of_polars(table), "y"), random_state=0)
    answer = guard.score("good", train_values=0.9)
    assert answer.interval[0] <= float(hit(table, "good").mean()) <= answer.interval[1]
    with pytest.raises(InputError, match="train is missing"):
        guard.score("bad")
    with pytest.raises(InputError, match="train is missing"):
        guard.compare("good", "bad")
