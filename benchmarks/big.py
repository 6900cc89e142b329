"""Queries about a holdout in Parquet files against the engine's own mean of the same column, and memory.

``python -m benchmarks.big ROWS`` for another number than ten million; each engine runs in a process of its own.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

RUNS: Final = 5
FILE: Final = 5_000_000
"""Records in a file, and in one row group of DuckDB and Polars at most."""


def write(where: Path, rows: int, seed: int) -> None:
    """Write a table: labels, predictions that are right in 9 of 10 records, and probabilities."""
    import polars as pl

    where.mkdir()
    rng = np.random.default_rng(seed)
    for start in range(0, rows, FILE):
        n = min(FILE, rows - start)
        y = rng.integers(0, 2, n, dtype=np.int8)
        columns = {
            "id": np.arange(start, start + n) + seed * rows,
            "y": y,
            "pred": np.where(rng.random(n) < 0.9, y, 1 - y).astype(np.int8),
            "p": rng.random(n),
        }
        pl.DataFrame(columns).write_parquet(where / f"{start // FILE:03}.parquet")


def taken(*runs: Callable[[], object]) -> list[float]:
    """Return the median time of each of some runs, in seconds; they take turns."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(RUNS):
        for run, found in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            found.append(time.perf_counter() - start)
    return [statistics.median(found) for found in times]


def row(name: str, *cells: str) -> None:
    """Print a line of the table."""
    print(f"| {' | '.join([name, *cells])} |", flush=True)


def measure(engine: str, where: Path) -> None:
    """Print the lines of one engine."""
    import narwhals as nw

    from thresholdout.data.parts.lazy_part import LazyPart, Wanted
    from thresholdout.data.parts.part_identity import check_parts_disjoint, part_identity

    def scan(name: str) -> Any:
        if engine == "Polars":
            import polars as pl

            return pl.scan_parquet(where / name / "*.parquet")
        import duckdb

        return duckdb.read_parquet(str(where / name / "*.parquet"))

    def own(column: str) -> object:
        if engine == "Polars":
            import polars as pl

            of = {"p": pl.col("p"), "pred": pl.col("pred") == pl.col("y"), "square": (pl.col("y") - pl.col("p")) ** 2}
            return scan("holdout").select(of[column].mean()).collect(engine="streaming")
        of_duckdb = {"p": "avg(p)", "pred": "avg((pred = y)::INT)", "square": "avg((y - p) ** 2)"}
        return scan("holdout").aggregate(of_duckdb[column]).fetchall()

    part = LazyPart(scan("holdout"), "holdout")
    square = ((nw.col("y").cast(nw.Float64) - nw.col("p")) ** 2).clip(upper_bound=1.0)
    queries = {
        "p": Wanted("p"),
        "pred": Wanted(nw.col("pred") == nw.col("y")),
        "square": Wanted(square, squares=True),  # of scores: the variance, too
    }
    assert part.n > 0
    scanned = 0.0
    for column, title in (
        ("p", "mean of a column of floats"),
        ("pred", "share of right predictions"),
        ("square", "mean and variance of squared errors"),
    ):
        mean, asked = taken(partial(own, column), partial(part.totals_of, [queries[column]]))
        scanned += mean if column != "square" else 0.0
        row(f"{engine}: {title}", f"{mean:.2f} s", f"{asked:.2f} s", f"{asked / mean:.2f}", memory())
    start = time.perf_counter()
    part_identity(part)
    found = time.perf_counter() - start
    row(f"{engine}: identity", f"{scanned:.2f} s", f"{found:.2f} s", f"{found / scanned:.1f}", memory())
    if engine == "DuckDB":
        start = time.perf_counter()
        check_parts_disjoint(LazyPart(scan("train"), "train"), part)
        found = time.perf_counter() - start
        row(f"{engine}: disjointness", f"{scanned:.2f} s", f"{found:.2f} s", f"{found / scanned:.1f}", memory())


def memory() -> str:
    """Return the most memory that this process had so far."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return f"{int(line.split()[1]) / 2**20:.2f} GiB"


def main(rows: int = 10_000_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        write(where / "holdout", rows, 0)
        write(where / "train", rows // 10, 1)
        print(f"{rows:,} records in the holdout, a tenth of that in the training part\n")
        row("what", "the engine's own", "here", "ratio", "memory")
        row("---", "---", "---", "---", "---")
        for engine in ("Polars", "DuckDB"):
            command = [sys.executable, "-m", "benchmarks.big", engine, folder]
            subprocess.run(command, check=True, timeout=1200)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        measure(sys.argv[1], Path(sys.argv[2]))
    else:
        main(*map(int, sys.argv[1:]))
