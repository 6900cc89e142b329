"""
A search on a cluster of Dask
=============================

Workers generate records, fit twenty models, predict and count; one of them is killed in the middle.

A tenth of the records is for the fits: in each step workers send the gradients of all models. The others become both
parts of the guard: Parquet files with predictions. Only totals reach this process. All queries are asked twice, of two
guards that draw no noise. The first has its ledger in memory. While the second one counts for its list, a worker is
killed. Dask starts another and counts again: the same answers, each charged once.

Run with ``python examples/on_dask.py``; needs ``dask[dataframe,distributed]``. A larger run, with the second ledger on
a server: ``--records 100000000 --folder /shared --ledger postgresql://user@host/base``, with ``THRESHOLDOUT_KEY_FILE``
set. On your own cluster, connect a ``Client`` to it.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.distributed import Client, WorkerPlugin
from scipy.special import expit

from thresholdout import Claims, Thresholdout

FEATURES = [f"x{k}" for k in range(6)]
MODELS = [f"terms{k:02}" for k in range(1, 21)]
STEPS, PARTITIONS, LARGEST, STARTED = 12, 10, 1_000_000, time.perf_counter()


class Killer(WorkerPlugin):  # type: ignore[misc]
    """Kills a worker when it has a result, and there is a file that orders it."""

    def __init__(self, order: Path) -> None:
        self.order = order

    def transition(self, key: str, start: str, finish: str, **more: Any) -> None:  # noqa: D102
        if finish == "memory" and self.order.exists():
            self.order.unlink(missing_ok=True)
            os.kill(os.getpid(), signal.SIGKILL)


def done(what: str) -> None:
    print(f"{time.perf_counter() - STARTED:8.1f} s: {what}", file=sys.stderr)


def records(number: int, size: int) -> pd.DataFrame:
    """Generate a partition, the same every time."""
    rng = np.random.default_rng([number, size])
    X = rng.normal(size=(size, len(FEATURES)))
    y = X[:, 0] + X[:, 1] * X[:, 2] - 0.5 * X[:, 3] + rng.logistic(size=size) > 0
    return pd.DataFrame(X, columns=FEATURES).assign(id=number * size + np.arange(size), y=y.astype(np.int8))


def terms(data: pd.DataFrame) -> Any:
    """Return the terms of all models: a constant, the features, and their products."""
    X = data[FEATURES].to_numpy()
    products = [X[:, i] * X[:, j] for i, j in combinations(range(X.shape[1]), 2)]
    return np.column_stack([np.ones(len(X)), X, *products])[:, : len(MODELS) + 1]


def gradients(data: pd.DataFrame, weights: Any) -> Any:
    """Return the mean gradients of all models on a partition; a worker computes them."""
    X, y = terms(data), data["y"].to_numpy()[:, None]
    return X.T @ (y - expit(X @ weights)) / len(data)


def fitted(data: dd.DataFrame) -> Any:
    """Fit all logistic models at once: model k has the first k terms and the constant."""
    weights = np.zeros((len(MODELS) + 1, len(MODELS)))
    parts = data.persist().to_delayed()
    for _ in range(STEPS):
        found = dask.compute(*(dask.delayed(gradients)(part, weights) for part in parts))
        # Terms are uncorrelated with variance 1, so no curvature is much above 1/4, and steps of 3 do not overshoot.
        weights += 3.0 * np.triu(np.mean(found, axis=0), -1)
    return weights


def predicted(number: int, size: int, weights: Any) -> pd.DataFrame:
    """Return identifiers, labels and predictions of a partition."""
    data = records(number, size)
    return data[["id", "y"]].join(pd.DataFrame((terms(data) @ weights > 0).astype(np.int8), columns=MODELS))


def write(folder: Path, total: int) -> None:
    """Fit the models on a tenth of the records, and write the other partitions with their predictions."""
    size = min(total // PARTITIONS, LARGEST)
    count = total // size
    fit, train, holdout = np.split(np.arange(count), [count // 10, count * 11 // 20])
    weights = fitted(dd.from_map(records, fit, size=size, meta=records(0, 1)))
    done("the models are fitted")
    for part, numbers in (("train", train), ("holdout", holdout)):
        frame = dd.from_map(predicted, numbers, size=size, weights=weights, meta=predicted(0, 1, weights))
        frame.to_parquet(str(folder / part), write_index=False)
    done("the files are written")


def search(folder: Path, ledger: str | Path | None) -> list[str]:
    """Make a guard of the files and ask it everything; with a ledger, a worker is killed while the list is counted."""
    holdout, train = ((dd.read_parquet(str(folder / part)), "y") for part in ("holdout", "train"))
    guard = Thresholdout(holdout, train=train, mechanism=Claims(noise=0.0), final_check=True, ledger=ledger)
    done("the guard is made")
    first = guard.score(MODELS[0])
    if ledger:
        (folder / "kill").touch()
    (listed,) = guard.score_all(MODELS, report="best")
    done("a score and a list")
    base, best = MODELS[0], listed.candidate
    lines = [f"{base}: {first}", f"{best}: {listed}", f"{best} against {base}: {guard.compare(best, base)}"]
    lines += [f"{best}: {guard.final_check(best)}", f"{len(guard.history)} queries were charged"]
    done("a comparison and the final check")
    return lines


def main() -> None:
    """Search twice, the second time with a worker that is killed, and compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=100_000, help="for fitting and both parts together")
    parser.add_argument("--folder", help="for the files; all workers share it")
    parser.add_argument("--ledger", help="address of a PostgreSQL database, for the second guard")
    given = parser.parse_args()
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # it tells at length of the worker that is killed
    with (
        tempfile.TemporaryDirectory(dir=given.folder) as name,
        Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client,
    ):
        folder = Path(name)
        client.register_plugin(Killer(folder / "kill"))
        write(folder, given.records)
        calm, killed = search(folder, None), search(folder, given.ledger or folder / "guard.db")
        print("\n".join(calm))
        print(f"a worker was killed: {not (folder / 'kill').exists()}; the same answers and charges: {calm == killed}")


if __name__ == "__main__":
    main()
