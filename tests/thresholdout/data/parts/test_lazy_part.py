"""Lazy frames as parts of the data: what they are, what becomes of damaged and changed files, how records come out."""

import subprocess
import sys
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import narwhals.stable.v1 as stable
import numpy as np
import pandas as pd
import polars as pl
import pytest

from tests.cases import for_each
from tests.patience import PATIENCE
from tests.thresholdout.data.parts.frames import ENGINES
from thresholdout.data.parts.engines import is_lazy
from thresholdout.data.parts.lazy_part import LazyPart, Wanted
from thresholdout.errors import EngineFailed, InputError, InputTypeError

engines = pytest.mark.parametrize("engine", ENGINES)
c = nw.col


def scan(engine: str, where: Path) -> Any:
    """Return the Parquet files of a folder as a lazy frame."""
    if engine == "polars":
        return pl.scan_parquet(where / "*.parquet")
    return duckdb.connect().read_parquet(str(where / "*.parquet"))


def write(where: Path, name: str, **columns: object) -> Path:
    file = where / f"{name}.parquet"
    pl.DataFrame(columns).write_parquet(file)
    return file


def test_frames_that_are_lazy() -> None:
    eager = pl.DataFrame({"a": [1]})
    relation = duckdb.connect().from_arrow(eager.to_arrow())
    lazy = [eager.lazy(), relation, nw.from_native(eager.lazy()), stable.from_native(eager.lazy())]
    assert [is_lazy(frame) for frame in lazy] == [True] * 4
    assert [LazyPart(frame, "holdout").columns for frame in lazy] == [("a",)] * 4
    others = [eager, eager.to_pandas(), eager.to_arrow(), np.zeros(3), [1], (eager.lazy(), eager.lazy()), None]
    assert [is_lazy(frame) for frame in others] == [False] * 7


@for_each("frame", [pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]}), np.zeros(3), None])
def test_other_frames_are_refused(frame: object) -> None:
    with pytest.raises(InputTypeError, match=r"train must be a polars.LazyFrame, a DuckDB relation"):
        LazyPart(frame, "train")


@pytest.mark.slow
def test_without_narwhals_it_says_how_to_get_it() -> None:
    code = (
        "import sys, polars as pl; sys.modules['narwhals'] = None\n"
        "from thresholdout.data.parts.lazy_part import LazyPart\n"
        "try: LazyPart(pl.LazyFrame({'a': [1]}), 'holdout')\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.startswith("ThresholdoutError data that stay in files")
    assert "pip install 'thresholdout[big]'" in done.stdout


@engines
def test_a_frame_without_records_is_refused(engine: str) -> None:
    part = LazyPart(ENGINES[engine](pl.DataFrame(schema={"x": pl.Float64})), "train")
    with pytest.raises(InputError, match="train must be at least one record; got no records"):
        part.totals("x")


@engines
def test_partitions_may_be_empty(engine: str, tmp_path: Path) -> None:
    for place, rows in enumerate([0, 3, 0, 1]):
        write(tmp_path, f"{place}", x=np.full(rows, 0.5), y=np.arange(rows) > 0)
    part = LazyPart(scan(engine, tmp_path), "holdout")
    found = part.totals("x")
    assert (part.n, found.mean.mean(), part.totals("y").mean.mean()) == (4, 0.5, 0.5)


@engines
def test_a_file_that_is_gone_or_damaged_is_told_as_such(engine: str, tmp_path: Path) -> None:
    kept, other = (write(tmp_path, name, x=np.random.default_rng(0).random(5000)) for name in "ab")
    part = LazyPart(scan(engine, tmp_path), "holdout")
    assert part.totals("x").n == 10_000
    content = other.read_bytes()
    for damaged in (content[:4] + bytes(len(content) // 2) + content[4 + len(content) // 2 :], content[:100], b""):
        other.write_bytes(damaged)
        with pytest.raises(EngineFailed, match=r"holdout: \w+ while its records were counted. Nothing was released"):
            part.totals("x")
    other.unlink()
    with pytest.raises(EngineFailed, match="holdout: "):
        part.totals("x")
    other.write_bytes(content)
    assert part.totals("x").n == 10_000
    assert kept.exists()


@engines
def test_another_number_of_records_is_refused(engine: str, tmp_path: Path) -> None:
    file = write(tmp_path, "a", x=[0.5, 0.25, 0.75])
    part = LazyPart(scan(engine, tmp_path), "holdout")
    assert part.n == 3
    file.unlink()
    write(tmp_path, "a", x=[0.5, 0.25])
    with pytest.raises(EngineFailed, match=r"holdout: (2 records where there were 3|ComputeError while)"):
        part.totals("x")  # Polars remembers how long files are


@engines
@pytest.mark.parametrize("column", ["x", "z"])
def test_columns_that_changed_are_never_read_as_others(engine: str, column: str, tmp_path: Path) -> None:
    file = write(tmp_path, "a", x=[0.5, 0.25, 0.75])
    part = LazyPart(scan(engine, tmp_path), "holdout")
    assert part.n == 3
    file.unlink()
    write(tmp_path, "a", **{column: ["0.5", "0.25", "1.0"]})
    with pytest.raises(EngineFailed):
        part.totals("x")


def test_an_error_survives_a_process() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(EngineFailed("holdout", "OSError while its records were counted")))
    assert (error.part, error.reason) == ("holdout", "OSError while its records were counted")


@engines
def test_an_interrupt_is_no_failure_of_the_engine(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(frame: object) -> dict[str, Any]:
        raise KeyboardInterrupt

    part = LazyPart(ENGINES[engine]({"x": [0.5]}), "holdout")
    monkeypatch.setattr("thresholdout.data.parts.lazy_part.collected", interrupted)
    with pytest.raises(KeyboardInterrupt):
        part.totals("x")


@engines
def test_records_come_in_batches(engine: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for place in range(3):
        write(
            tmp_path,
            f"{place}",
            id=np.arange(place * 70_000, (place + 1) * 70_000),
            x=rng.random(70_000),
            s=["a"] * 70_000,
        )
    part = LazyPart(scan(engine, tmp_path), "holdout")
    batches = list(part.map_batches(lambda batch: batch, ["x", "id"]))
    assert max(batch.num_rows for batch in batches) <= 1 << 17
    assert all(batch.schema.names == ["x", "id"] for batch in batches)
    ids = np.concatenate([batch.column("id").to_numpy() for batch in batches])
    assert np.array_equal(np.sort(ids), np.arange(210_000))
    assert next(part.map_batches(lambda batch: batch.schema.names)) == ["id", "x", "s"]


@engines
@pytest.mark.parametrize("change", [lambda frame: frame, lambda frame: frame.filter(c("y") == 1)])
def test_a_frame_of_narwhals_may_have_a_plan(engine: str, change: Callable[[Any], Any]) -> None:
    native: Any = ENGINES[engine]({"x": [0.5, 0.25, 0.75], "y": [1, 1, 1]})
    part = LazyPart(change(nw.from_native(native)).with_columns(z=c("x") * 0.5), "holdout")
    assert part.totals("z").mean.mean() == 0.25
    assert repr(part) == "<LazyPart holdout with 3 columns>"


@pytest.mark.slow
@engines
@pytest.mark.parametrize(("bounds", "missing"), [((0.0, 1.0), None), ((-1.0, 3.0), 0.0), ((0.25, 0.75), 0.5)])
def test_sums_by_group_are_those_of_fractions(engine: str, bounds: tuple[float, float], missing: float | None) -> None:
    """Beside plain Python, one record after the other: rounded to the grid, clipped, and missing ones as stated."""
    rng = np.random.default_rng(3)
    n, (lower, upper) = 211, bounds
    reals = [None if k % 17 == 0 else float(rng.normal(0.5, 0.8)) for k in range(n)]
    truths = [None if k % 13 == 0 else bool(rng.random() < 0.4) for k in range(n)]
    groups = [f"g{int(rng.integers(0, 40)) if k > 4 else 99}" for k in range(n)]
    reals[:5], truths[:5] = [None] * 5, [None] * 5  # a group without values
    part = LazyPart(ENGINES[engine]({"v": reals, "t": truths, "g": groups}), "holdout")
    bits = 40
    for column, values in (("v", reals), ("t", truths)):
        found = part.group_totals(Wanted(column, bounds, missing), "g")
        sums: dict[str, Fraction] = {}
        for value, group in zip(values, groups, strict=True):
            counted = (lower if missing is None else missing) if value is None else min(max(float(value), lower), upper)
            steps = round(Fraction((counted - lower) / (upper - lower)) * 2**bits)
            sums[group] = sums.get(group, Fraction(0)) + Fraction(steps, 2**bits)
        expected = sorted((groups.count(group), one) for group, one in sums.items())
        told = zip(found.sizes.tolist(), found.sums.tolist(), strict=True)
        assert [(int(size), Fraction(one)) for size, one in told] == expected
        assert found.bits == bits
        whole = part.totals(column, bounds, missing=missing).mean
        assert Fraction(whole.total, 2**whole.bits) == sum(sums.values())


def test_what_narwhals_announces_about_an_engine_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings are errors in tests. Of Dask a package that nobody tests is announced; other warnings are kept."""
    made = nw.from_native

    def announcing(category: type[Warning]) -> None:
        def found(frame: Any, **options: Any) -> Any:
            warnings.warn("support is moving out", category, stacklevel=2)
            return made(frame, **options)

        monkeypatch.setattr(nw, "from_native", found)

    announcing(FutureWarning)
    assert LazyPart(pl.LazyFrame({"a": [1]}), "holdout").n == 1
    announcing(UserWarning)
    with pytest.warns(UserWarning, match="moving out"):
        LazyPart(pl.LazyFrame({"a": [1]}), "holdout")
