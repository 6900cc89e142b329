"""
A holdout in files that are never in memory
===========================================

Records lie in Parquet files, an engine counts for each query, and a ledger recognises the query on another engine.

Clicks on advertisements: 400,000 records of 80,000 people, half of them held out, with the predictions of two models.
The guard is made of lazy frames of Polars. It scores both models, compares them, and asks about one device. Then a
third model comes with a file of its own, which is joined by the identifier of each record. At last DuckDB opens the
same ledger: the same records are the same guard, and a query that was asked before has its answer.

A guard that guesses and checks draws no noise, so everything comes out the same in every run.

Run with ``python examples/holdout_in_files.py``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import narwhals as nw
import numpy as np
import polars as pl

from thresholdout import Claims, Thresholdout

PEOPLE, EACH = 80_000, 5


def main() -> None:
    """Query files through two engines, and print the answers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        print("1. Files, of which Polars counts")
        guard = Thresholdout(
            (pl.scan_parquet(folder / "holdout.parquet"), "clicked"),
            train=(pl.scan_parquet(folder / "train.parquet"), "clicked"),
            groups="person",
            mechanism=Claims(noise=0.0),
            ledger=folder / "guard.db",
        )
        print(f"   {guard.dependence.describe()}")
        for model in ("base", "wide"):
            print(f"   {model}: {guard.score(model)}")
        print(f"   wide against base: {guard.compare('wide', 'base')}")
        wrong_on_phones = (nw.col("device") == "phone") & (nw.col("wide") != nw.col("clicked"))
        print(f"   {guard.ask(wrong_on_phones, name='wrong on a phone')}")

        print("2. Predictions that come later, in a file of their own")
        guard.join(pl.scan_parquet(folder / "deep.parquet"), on="id")
        print(f"   deep: {guard.score('deep')}")

        print("3. The same files in DuckDB, with the same ledger")
        engine = duckdb.connect()
        again = Thresholdout(
            (engine.read_parquet(str(folder / "holdout.parquet")), "clicked"),
            train=(engine.read_parquet(str(folder / "train.parquet")), "clicked"),
            groups="person",
            mechanism=Claims(noise=0.0),
            ledger=folder / "guard.db",
        )
        answer = again.score("wide")
        print(f"   wide: {answer}, {'known from before' if answer.repeated else 'asked anew'}")
        print(f"   {len(again.history)} queries were paid for")


def write(folder: Path) -> None:
    """Write both parts, and predictions of a third model for all records."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(PEOPLE), EACH)
    taste = rng.normal(size=PEOPLE)[person]
    clicked = taste + rng.normal(size=person.size) > 0.8
    seen = {name: taste + noise * rng.normal(size=person.size) > 0.8 for name, noise in (("base", 1.0), ("wide", 0.6))}
    device = np.where(rng.random(person.size) < 0.6, "phone", "desk")
    data = pl.DataFrame({"id": np.arange(person.size), "person": person, "device": device, "clicked": clicked, **seen})
    data[: person.size // 2].write_parquet(folder / "train.parquet")
    data[person.size // 2 :].write_parquet(folder / "holdout.parquet")
    deep = taste + 0.3 * rng.normal(size=person.size) > 0.8
    pl.DataFrame({"id": np.arange(person.size), "deep": deep}).write_parquet(folder / "deep.parquet")


if __name__ == "__main__":
    main()
