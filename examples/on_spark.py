"""
A search on a cluster of Spark
==============================

Executors generate records, fit twenty models, predict and count; one of them is killed in the middle.

The models are regressions of ``pyspark.ml``, fitted on a tenth of the records. The others become both parts of the
guard: Parquet files with predictions. Only totals reach this process.

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
from itertools import combinations
from pathlib import Path
from typing import Any

from pyspark.ml.feature import VectorAssembler
from pyspark.ml.regression import LinearRegression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, exp, rand, randn

from thresholdout import Claims, Thresholdout

FEATURES = [f"x{k}" for k in range(6)]
TERMS = [*FEATURES, *(f"{a}_{b}" for a, b in combinations(FEATURES, 2))]
PARTITIONS, STARTED = 4, time.perf_counter()


def done(what: str) -> None:
    print(f"{time.perf_counter() - STARTED:8.1f} s: {what}", file=sys.stderr)


def records(spark: SparkSession, total: int) -> DataFrame:
    """Generate identifiers, labels, features and their products by a plan: the same on every executor, every time."""
    # A partition's generator starts at the seed plus its place, so seeds are far apart.
    frame = spark.range(total, numPartitions=PARTITIONS).withColumns(
        {f: randn(1000 * k) for k, f in enumerate(FEATURES)}
    )
    chance = 1 / (1 + exp(0.5 * col("x3") - col("x0") - col("x1") * col("x2")))
    frame = frame.withColumn("y", (rand(1000 * len(FEATURES)) < chance).cast("byte"))
    return frame.withColumns({f"{a}_{b}": col(a) * col(b) for a, b in combinations(FEATURES, 2)})


def fitted(data: DataFrame) -> dict[str, tuple[VectorAssembler, Any]]:
    """Fit models by least squares: the first has one term, each other has one more."""
    models, data = {}, data.cache()
    for k in range(1, 21):
        assembler = VectorAssembler(inputCols=TERMS[:k], outputCol="features")
        model = LinearRegression(labelCol="y", solver="normal").fit(assembler.transform(data))
        models[f"terms{k:02}"] = assembler, model
    data.unpersist()
    return models


def write(spark: SparkSession, folder: Path, total: int) -> list[str]:
    """Fit the models on a tenth of the records, write the others with their predictions, and return the models."""
    data, place = records(spark, total), col("id") % 20
    models = fitted(data.where(place < 2))
    done("the models are fitted")
    for name, (assembler, model) in models.items():
        data = model.transform(assembler.transform(data)).withColumn(name, (col("prediction") > 0.5).cast("byte"))
        data = data.drop("features", "prediction")
    data = data.select("id", "y", *models)
    data.where((place >= 2) & (place < 11)).write.parquet(str(folder / "train"))
    data.where(place >= 11).write.parquet(str(folder / "holdout"))
    done("the files are written")
    return list(models)


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


def search(spark: SparkSession, folder: Path, names: list[str], ledger: str | Path | None, kill: bool) -> list[str]:
    """Make a guard of the files, ask it everything, and return its answers."""
    holdout, train = ((spark.read.parquet(str(folder / part)), "y") for part in ("holdout", "train"))
    guard = Thresholdout(holdout, train=train, mechanism=Claims(noise=0.0), final_check=True, ledger=ledger)
    done("the guard is made")
    first = guard.score(names[0])
    killing = kill_an_executor(spark) if kill else None
    (listed,) = guard.score_all(names, report="best")
    done("a score and a list")
    if killing:
        killing.join()
    base, best = names[0], listed.candidate
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
    settings = {"spark.sql.shuffle.partitions": str(PARTITIONS), "spark.log.level": "OFF"}
    settings |= {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = SparkSession.builder.master("local-cluster[2,1,1024]").config(map=settings).getOrCreate()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        names = write(spark, Path(folder), given.records)
        calm = search(spark, Path(folder), names, None, kill=False)
        killed = search(spark, Path(folder), names, given.ledger or Path(folder, "guard.db"), kill=True)
    spark.stop()
    print("\n".join(calm))
    print(f"an executor was killed; the same answers and charges: {calm == killed}")


if __name__ == "__main__":
    main()
