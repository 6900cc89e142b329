"""Dask and Spark count what Polars and DuckDB count; ``make test-engines`` installs them and runs this."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from thresholdout import Thresholdout
from thresholdout.data.parts.engines import as_lazy
from thresholdout.data.parts.lazy_part import LazyPart, Wanted
from thresholdout.data.parts.part_identity import part_identity
from thresholdout.data.parts.value_cells import cell_counts
from thresholdout.data.values import record_bits
from thresholdout.errors import EngineFailed, InputError
from thresholdout.scoring.metrics import log_loss
from thresholdout.scoring.statistics import cohen_kappa, median_absolute_error, sliced

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning"),
]

N: Final = 600
Scan = Callable[[Path], Any]
c = nw.col


@pytest.fixture(scope="module")
def dask() -> Iterator[Scan]:
    """Dask with two processes."""
    dask = pytest.importorskip("dask", reason="Dask is not installed: make test-engines")
    frames = pytest.importorskip("dask.dataframe", reason="Dask is not installed: make test-engines")
    with (
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool,
        dask.config.set(scheduler="processes", pool=pool),
    ):
        yield lambda where: frames.read_parquet(str(where / "*.parquet"))


@pytest.fixture(scope="module")
def spark() -> Iterator[Scan]:
    """Spark in local mode, with two threads."""
    sql = pytest.importorskip("pyspark.sql", reason="Spark is not installed: make test-engines")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        try:
            builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
            session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
        except Exception as error:  # Java is missing
            pytest.skip(f"Spark does not start ({type(error).__name__}): make test-engines says what it needs")
        session.sparkContext.setLogLevel("OFF")
        yield lambda where: session.read.parquet(str(where))
        session.stop()


@pytest.fixture(scope="module", params=["dask", "spark"])
def scan(request: pytest.FixtureRequest) -> Scan:
    found: Scan = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    p = rng.random(N)
    p[:5] = [math.nan, 2.0, -1.0, math.inf, -math.inf]
    p[5:45] = (2.0 * np.arange(40) + 1.0) * 2.0 ** -(record_bits(N) + 1)  # in the middle between two steps
    frame = pl.DataFrame(
        {
            "id": np.arange(N),
            "p": p,
            "x": np.round(rng.random(N), 6),
            "y": rng.integers(0, 2, N),
            "q": rng.integers(0, 2, N).astype(np.int8),
            "b": rng.random(N) < 0.5,
            "s": rng.choice(["a", "B", "é"], N),
            "f": rng.random(N).astype(np.float32),
        }
    )
    absent = pl.col("x") < 0.3
    return frame.with_columns(
        [pl.when(absent).then(None).otherwise(pl.col(name)).alias(f"{name}_or_none") for name in ("x", "y", "s", "b")]
    )


@pytest.fixture(scope="module")
def files(table: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table in four files, one of which has no records."""
    where = tmp_path_factory.mktemp("table")
    for place, rows in enumerate((slice(0, 100), slice(100, 100), slice(100, 250), slice(250, N))):
        table[rows].write_parquet(where / f"{place}.parquet")
    return where


QUERIES: Final[dict[str, tuple[Any, tuple[float, float]]]] = {
    "floats": ("p", (0.0, 1.0)),
    "another range": ("p", (-0.3, 0.7)),
    "single precision": ("f", (0.0, 1.0)),
    "missing floats": ("x_or_none", (0.0, 1.0)),
    "integers": ("q", (0.0, 3.0)),
    "missing integers": ("y_or_none", (0.0, 1.0)),
    "booleans": ("b", (0.0, 1.0)),
    "missing booleans": ("b_or_none", (0.0, 1.0)),
    "missing and not": (~c("b_or_none") & c("b"), (0.0, 1.0)),
    "filled booleans": (c("b_or_none").fill_null(True) == c("b"), (0.0, 1.0)),
    "chosen integers": (nw.when(c("b")).then(c("y_or_none")).otherwise(c("q")) == 1, (0.0, 1.0)),
    "filled integers": (c("y_or_none").fill_null(3), (0.0, 3.0)),
    "equal integers": (c("q") == c("y"), (0.0, 1.0)),
    "equal, some missing": (c("y_or_none") == c("q"), (0.0, 1.0)),
    "unequal, some missing": (c("y_or_none") != c("q"), (0.0, 1.0)),
    "and": ((c("y_or_none") == c("q")) & c("b"), (0.0, 1.0)),
    "or": ((c("y_or_none") == c("q")) | c("b"), (0.0, 1.0)),
    "not": (~(c("y_or_none") == c("q")), (0.0, 1.0)),
    "above": (c("p") > 0.5, (0.0, 1.0)),
    "not above": (~(c("p") > 0.5), (0.0, 1.0)),
    "what is no number": (c("p") - c("p") < 1, (0.0, 1.0)),
    "squares": ((c("x") - c("y")) ** 2, (0.0, 1.0)),
    "absolute": ((c("p") - c("y")).abs() < 0.5, (0.0, 1.0)),
    "divided": (c("x") / 49.0, (0.0, 0.02)),
    "divided, on one side": (c("x").fill_null(0.5) / 49.0 >= 0.5 / 49.0, (0.0, 1.0)),
    "divided infinity": ((c("p") / -7.0).abs() > 1.0, (0.0, 1.0)),
    "divided, some missing": (c("x_or_none") / 0.3, (0.0, 4.0)),
    "divided integers": (c("y_or_none") / 49, (0.0, 0.02)),
    "divided booleans": (c("b_or_none").cast(nw.Float64) / 49, (0.0, 0.02)),
    "clipped": (c("p").clip(0.25, 0.75) / 3, (0.0, 1.0)),
    "texts": (c("s_or_none") == c("s"), (0.0, 1.0)),
    "among": (c("s").is_in(["a", "z"]), (0.0, 1.0)),
    "between": (c("p").is_between(0.2, 0.4, closed="left"), (0.0, 1.0)),
    "filled": (c("y_or_none").fill_null(0) == c("y"), (0.0, 1.0)),
    "filled floats": (c("x_or_none").fill_null(0.5), (0.0, 1.0)),
    "filled texts": (c("s_or_none").fill_null("a") == "a", (0.0, 1.0)),
    "whether missing": (c("x_or_none").is_null(), (0.0, 1.0)),
    "choice": (nw.when(c("x_or_none") > 0.5).then(c("f")).otherwise(0.25), (0.0, 1.0)),
    "choice by what may be missing": (nw.when(c("b")).then(c("x_or_none")).otherwise(c("x")), (0.0, 1.0)),
}


def test_engines_count_the_same_integers(scan: Scan, files: Path) -> None:
    """Polars is compared with exact fractions and with plain Python in the default tests."""
    asked = [Wanted(expression, bounds, squares=True) for expression, bounds in QUERIES.values()]
    part, known = LazyPart(scan(files), "holdout"), LazyPart(pl.scan_parquet(files / "*.parquet"), "holdout")
    assert part.n == known.n == N
    found, wanted = (dict(zip(QUERIES, one.totals_of(asked), strict=True)) for one in (part, known))
    assert found == wanted
    sides = c("q") == c("y"), c("x") > 0.5
    assert part.joint(*sides) == known.joint(*sides)


def test_engines_count_classes_and_cells_alike(scan: Scan, files: Path) -> None:
    parts = [LazyPart(one, "holdout") for one in (scan(files), pl.scan_parquet(files / "*.parquet"))]
    pairs = [Wanted((c("y_or_none") == one) & (c("q") == other), only_true=True) for one in (0, 1) for other in (0, 1)]
    pairs.append(Wanted((c("s_or_none") != "a") & ~(c("y") == 1), only_true=True))
    found, wanted = ([one.total for one in part.totals_of(pairs)] for part in parts)
    assert found == wanted
    code = nw.when(c("s_or_none") == "a").then(nw.lit(0.0)).otherwise(nw.lit(1.0))
    cells = [np.array([0.25, 0.5]), np.array([0.5])]
    counts = [cell_counts(part, [c("x_or_none"), c("x")], code, cells, 2) for part in parts]
    for one, other in zip(*counts, strict=True):
        assert np.array_equal(one, other)


def test_each_record_is_in_one_batch_and_the_identity_is_that_of_polars(scan: Scan, files: Path) -> None:
    part = LazyPart(scan(files), "holdout")
    batches = list(part.map_batches(lambda batch: batch, ["id", "x"]))
    assert {tuple(batch.schema.names) for batch in batches} == {("id", "x")}
    ids = np.concatenate([batch.column("id").to_numpy() for batch in batches])
    assert np.array_equal(np.sort(ids), np.arange(N))
    assert part_identity(part) == part_identity(LazyPart(pl.scan_parquet(files / "*.parquet"), "holdout"))


def test_workers_read_the_records(scan: Scan, files: Path) -> None:
    readers = set(LazyPart(scan(files), "holdout").map_batches(lambda batch: os.getpid()))
    assert readers
    assert os.getpid() not in readers


def test_a_guard_has_the_answers_that_polars_has(scan: Scan, table: pl.DataFrame, tmp_path: Path) -> None:
    y = table["y"].to_numpy()
    good = np.where(np.random.default_rng(1).random(N) < 0.9, y, 1 - y)
    guards = []
    for name, half in (("train", slice(0, N // 2)), ("holdout", slice(N // 2, N))):
        (tmp_path / name).mkdir()
        pl.DataFrame({"id": np.arange(N)[half], "y": y[half], "good": good[half], "x": table["x"][half]}).write_parquet(
            tmp_path / name / "0.parquet"
        )
    for read in (scan, lambda where: pl.scan_parquet(where / "*.parquet")):
        parts = [read(tmp_path / name) for name in ("holdout", "train")]
        guards.append(Thresholdout((parts[0], "y"), train=(parts[1], "y"), random_state=3))
    found, wanted = guards
    assert repr(found.certificate) == repr(wanted.certificate)
    for query in (c("good") == c("y"), c("x"), c("x") > 0.5):
        first, second = (guard.ask(query) for guard in guards)
        assert (first.value, first.interval, first.source) == (second.value, second.interval, second.source)
    positive, middle = sliced("accuracy", ("y", 1)), median_absolute_error(clip=1.0)
    scores: list[tuple[Any, Any]] = [("good", "accuracy"), ("x", "roc_auc"), ("good", positive), ("x", middle)]
    scores += [("good", "cohen_kappa"), ("good", cohen_kappa("linear")), ({0: "good", 1: "x"}, "roc_auc_ovo")]
    scores += [("good", sliced("accuracy", c("x") > 0.5, "upper")), ("x", sliced(log_loss(), ("y", 1)))]
    for column, score in scores:
        first, second = (guard.score(column, score) for guard in guards)
        if "log_loss" in first.name:  # the last digits of logarithms are an engine's own
            assert first.interval == pytest.approx(second.interval, abs=1e-9)
        else:
            assert (first.value, first.interval) == (second.value, second.interval)


@pytest.mark.filterwarnings("error")
def test_nothing_is_announced_of_the_engine(scan: Scan, files: Path) -> None:
    as_lazy(scan(files), "holdout")


def test_an_order_of_texts_is_refused_where_some_may_be_objects(dask: Scan, files: Path) -> None:
    with pytest.raises(InputError, match="query must be == or != of texts; got < of texts in Dask"):
        LazyPart(dask(files), "holdout").totals(c("s") < "a")


def test_a_file_that_is_gone_is_told_as_such(scan: Scan, tmp_path: Path) -> None:
    for name in "ab":
        pl.DataFrame({"x": np.random.default_rng(0).random(100)}).write_parquet(tmp_path / f"{name}.parquet")
    part = LazyPart(scan(tmp_path), "holdout")
    assert part.totals("x").n == 200
    (tmp_path / "b.parquet").unlink()
    with pytest.raises(EngineFailed, match=r"holdout: .* while its records were counted. Nothing was released"):
        part.totals("x")
