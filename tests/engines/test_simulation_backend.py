"""Simulations run on a cluster of Dask by joblib's backend; ``make test-engines`` installs it and runs this."""

from __future__ import annotations

import os

import joblib
import numpy as np
import pytest

from thresholdout.simulation import run_experiment

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def coins(rng: np.random.Generator, n: int) -> dict[str, float]:
    """Return the mean of some coins."""
    return {"mean": float((rng.random(n) < 0.5).mean()), "process": os.getpid()}


def test_rows_are_those_of_one_process() -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: make test-engines")
    pytest.importorskip("dask", reason="Dask is not installed: make test-engines")
    grid = {"n": [10, 100, 1000]}
    here = run_experiment(coins, grid, seeds=4, n_jobs=1)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
        joblib.parallel_config("dask"),
    ):
        there = run_experiment(coins, grid, seeds=4)
    assert there.drop(columns="process").equals(here.drop(columns="process"))
    assert len(there) == 12
    assert os.getpid() not in set(there["process"])
