"""
A search on a cluster of Spark
==============================

Executors generate records, fit twenty models, predict and count; one of them is killed in the middle.

A tenth of the records is for the fits: regressions of ``pyspark.ml``, on a million records at most. The others become
both parts of the guard: Parquet files with predictions. Only totals reach this process.

All queries are asked twice, of two guards that draw no noise. The first has its ledger in memory. While the second one
counts for its list, an executor is killed. Spark starts another and counts again: the same answers, each charged once.

Run with ``python examples/on_spark.py``; needs ``pyspark`` and Java 17. A larger run, with the second ledger on
a server: ``--records 100000000 --folder /shared --ledger postgresql://user@host/base``, with ``THRESHOLDOUT_KEY_FILE``
set. On your own cluster, name its master in place of ``local-cluster``.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.regression import LinearRegression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, exp, rand, randn

from thresholdout import Claims, Thresholdout

FEATURES = [f"x{k}" for k in range(6)]
MODELS = [f"terms{k:02}" for k in range(1, 21)]
TERMS = [*FEATURES, *(f"{a}_{b}" for a, b in combinations(FEATURES, 2))]
FIT, LARGEST, STARTED = 1_000_000, 5_000_000, time.perf_counter()


def done(what: str) -> None:
    print(f"{time.perf_counter() - STARTED:8.1f} s: {what}", file=sys.stderr)


def records(spark: SparkSession, total: int) -> DataFrame:
    """Generate identifiers, labels, features and their products by a plan: the same on every executor, every time."""
    # A partition's generator starts at the seed plus its place, so seeds are far apart.
    frame = spark.range(total).withColumns({f: randn(1000 * k) for k, f in enumerate(FEATURES)})
    chance = 1 / (1 + exp(0.5 * col("x3") - col("x0") - col("x1") * col("x2")))
    frame = frame.withColumn("y", (rand(1000 * len(FEATURES)) < chance).cast("byte"))
    return frame.withColumns({f"{a}_{b}": col(a) * col(b) for a, b in combinations(FEATURES, 2)})


def fitted(data: DataFrame) -> tuple[Any, Any]:
    """Fit models by least squares, of one to twenty terms, and return their weights and intercepts."""
    weights, intercepts, data = np.zeros((len(MODELS), len(MODELS))), np.zeros(len(MODELS)), data.cache()
    for k in range(1, len(MODELS) + 1):
        assembler = VectorAssembler(inputCols=TERMS[:k], outputCol="features")
        model = LinearRegression(labelCol="y", solver="normal").fit(assembler.transform(data))
        weights[:k, k - 1], intercepts[k - 1] = model.coefficients.toArray(), model.intercept
    data.unpersist()
    return weights, intercepts


def write(spark: SparkSession, folder: Path, total: int) -> None:
    """Fit the models on a tenth of the records, a million at most, and write the others with their predictions."""
    data, place = records(spark, total), col("id") % 20
    weights, intercepts = fitted(data.where((place < 2) & (col("id") < 10 * FIT)))
    done("the models are fitted")

    def predicted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            X = np.column_stack([batch[term] for term in TERMS[: len(MODELS)]])
            labels = (X @ weights + intercepts > 0.5).astype(np.int8)
            yield pa.RecordBatch.from_arrays([batch["id"], batch["y"], *map(pa.array, labels.T)], ["id", "y", *MODELS])

    schema = f"id long, y byte, {', '.join(f'{model} byte' for model in MODELS)}"
    for part, chosen in (("train", (place >= 2) & (place < 11)), ("holdout", place >= 11)):
        data.where(chosen).mapInArrow(predicted, schema).write.parquet(str(folder / part))
    done("the files are written")


def kill_an_executor(spark: SparkSession) -> threading.Thread:
    """Freeze an executor, and kill it when only its piece of work is left; the thread ends then, or in two minutes."""
    (pid, *_) = (child.pid() for child in spark._jvm.java.lang.ProcessHandle.current().children().toArray())
    os.kill(pid, signal.SIGSTOP)

    def wait() -> None:
        tracker, until = spark.sparkContext.statusTracker(), time.monotonic() + 120
        while time.monotonic() < until:
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            if any(stage and stage.numActiveTasks == 1 == stage.numTasks - stage.numCompletedTasks for stage in stages):
                break
            time.sleep(0.05)
        os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def search(spark: SparkSession, folder: Path, ledger: str | Path | None, kill: bool) -> list[str]:
    """Make a guard of the files, ask it everything, and return its answers."""
    holdout, train = ((spark.read.parquet(str(folder / part)), "y") for part in ("holdout", "train"))
    guard = Thresholdout(holdout, train=train, mechanism=Claims(noise=0.0), final_check=True, ledger=ledger)
    done("the guard is made")
    first = guard.score(MODELS[0])
    killing = kill_an_executor(spark) if kill else None
    (listed,) = guard.score_all(MODELS, report="best")
    done("a score and a list")
    if killing:
        killing.join()
    base, best = MODELS[0], listed.candidate
    lines = [f"{base}: {first}", f"{best}: {listed}", f"{best} against {base}: {guard.compare(best, base)}"]
    lines += [f"{best}: {guard.final_check(best)}", f"{len(guard.history)} queries were charged"]
    done("a comparison and the final check")
    return lines


def main() -> None:
    """Search twice, the second time with an executor that is killed, and compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=100_000, help="for fitting and both parts together")
    parser.add_argument("--folder", help="for the files; all executors share it")
    parser.add_argument("--ledger", help="address of a PostgreSQL database, for the second guard")
    given = parser.parse_args()
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}  # executors of this machine
    partitions = str(max(4, given.records // LARGEST))
    settings = {"spark.default.parallelism": partitions, "spark.sql.shuffle.partitions": partitions}
    settings |= {"spark.log.level": "OFF", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = SparkSession.builder.master("local-cluster[2,1,1024]").config(map=settings).getOrCreate()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        write(spark, Path(folder), given.records)
        calm = search(spark, Path(folder), None, kill=False)
        killed = search(spark, Path(folder), given.ledger or Path(folder, "guard.db"), kill=True)
    spark.stop()
    print("\n".join(calm))
    print(f"an executor was killed; the same answers and charges: {calm == killed}")


if __name__ == "__main__":
    main()
