"""Langevin dynamics: steps a minute, the exact law of twenty million records, the growth table and figure 1.

Run with ``python -m benchmarks.sgld``, with a directory for the pictures if you want them. The peer of the sampler is a
plain loop of numpy over the same chains, in the same run; that of the sums over blocks is the sum over all records.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import timed
from benchmarks.papers.sgld_figures import figure1_curves, growth_table, plot_figure1, plot_growth
from thresholdout.privacy.learning import (
    SGLDRegressor,
    epoch_law,
    eps_tail,
    pair_epsilon,
    sgld_sample,
    step_size,
    theorem_parameters,
    worst_case_pair,
    worst_epoch,
)
from thresholdout.privacy.learning.sgld.iterate_law import worst_case_chain
from thresholdout.privacy.learning.sgld.lower_bounds import log_mean
from thresholdout.privacy.learning.sgld.regression_model import RegressionDomain


def plain_loop(x: np.ndarray, y: np.ndarray, eta: float, steps: int, chains: int) -> np.ndarray:
    """Run chains as one would write it down, with independent draws."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=chains)
    for _ in range(steps):
        batch = rng.integers(0, x.size, chains)
        gradient = 4.0 * x[batch] * (y[batch] - theta * x[batch])
        theta = theta + eta / 2 * (-theta + x.size * gradient) + np.sqrt(eta) * rng.normal(size=chains)
    return theta


def sampler() -> pd.DataFrame:
    x, y = worst_case_pair(100, 100.0, 1.0)[1]
    eta, steps, chains = step_size(100, 1.0, 1.0, 4.0), 400, 100_000
    plain = steps * chains / timed(lambda: plain_loop(x, y, eta, steps, chains))[1]
    rows: list[tuple[str, float, float]] = [("plain loop, independent draws", plain * 60, 1.0)]
    variants: dict[str, dict[str, Any]] = {
        "independent draws": {"order": "uniform"},
        "one shuffle": {"order": "cyclic"},
        "a shuffle for each sweep": {"order": "reshuffle"},
        "batches of 10": {"order": "uniform", "batch_size": 10},
        "clipped": {"order": "uniform", "clip": 1.0},
    }
    for name, rest in variants.items():
        call = partial(sgld_sample, x, y, 1.0, 4.0, eta, steps, n_chains=chains, rng=0, **rest)
        seconds = timed(call)[1]
        rows.append((name, 60 * steps * chains / seconds, steps * chains / seconds / plain))
    seconds = timed(lambda: sgld_sample(x, y, 1.0, 4.0, eta, 20_000, n_chains=1, rng=0), 1)[1]
    rows.append(("one chain", 60 * 20_000 / seconds, 20_000 / seconds / plain))
    X = np.random.default_rng(0).normal(size=(1000, 10))
    seconds = timed(lambda: sgld_sample(X, X[:, 0], 1.0, 4.0, 1e-9, 100, order="uniform", n_chains=10_000, rng=0))[1]
    rows.append(("ten slopes", 60 * 100 * 10_000 / seconds, 100 * 10_000 / seconds / plain))
    table = pd.DataFrame(rows, columns=["sampler", "steps a minute", "ratio to the plain loop"])
    return table.round({"ratio to the plain loop": 2})


def memory() -> None:
    x, y = worst_case_pair(1000, 100.0, 1.0)[0]
    eta = step_size(1000, 1.0, 1.0, 4.0)
    for chains in (10_000, 100_000):
        tracemalloc.start()
        sgld_sample(x, y, 1.0, 4.0, eta, 20, n_chains=chains, rng=0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"{chains:,} chains over 1,000 records, shuffled: at most {peak / 2**20:.0f} MiB")


def law() -> pd.DataFrame:
    n = 20_000_000
    setting = (n, 1.17 * n, 1.8, 2.0, 1.0, 25)
    rows = [("epoch_law, two arrays of length n", timed(lambda: epoch_law(*setting))[1], "")]
    mixture = worst_case_chain(*setting[:5]).after(25)
    every, seconds = timed(lambda: log_mean(mixture, "above", terms=n), 1)
    rows.append(("mean of the tail, all records", seconds, f"{every.high - every.low:.1e}"))
    blocks, seconds = timed(lambda: log_mean(mixture, "above"))
    rows.append(("mean of the tail, certified blocks", seconds, f"{blocks.high - blocks.low:.1e}"))
    assert blocks.low <= every.high
    assert every.low <= blocks.high
    rows.append(("eps_tail", timed(lambda: eps_tail(*setting, delta=0.001))[1], ""))
    rows.append(("worst_epoch, all epochs to 56", timed(lambda: worst_epoch(*setting[:5], delta=0.001), 1)[1], ""))
    small = (1000, 1000**1.4, 1.0, 1.0, 4.0, 15)
    rows.append(("pair_epsilon, 1,000 records", timed(lambda: pair_epsilon(*small, delta=0.001))[1], ""))
    return pd.DataFrame(rows, columns=["20,000,000 records", "seconds", "width of the bracket"]).round(4)


def theorem() -> pd.DataFrame:
    rows = []
    for gamma2 in (1.2, 1.3, 1.4):
        found = theorem_parameters(0.5, 38, 0.001, 2, 1, 1.8, 0.1, gamma2)
        rows.append((gamma2, found["n_p"], found["K"], found["posterior_epsilon"], found["sgld_epsilon"]))
    columns = ["gamma2", "n_p", "epoch", "posterior: at most", "SGLD: at least"]
    return pd.DataFrame(rows, columns=columns)


def learner() -> tuple[SGLDRegressor, float]:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 1.0, (1000, 1))
    domain = RegressionDomain(c=3000.0, x_l=0.5, x_h=1.0, gamma1=0.1)
    model = SGLDRegressor(beta=4.0, batch_size=1, fit_intercept=False, n_steps=15_000, delta=0.001, domain=domain)
    return timed(lambda: model.fit(X, 3000.0 * X[:, 0]), 1)


def main(directory: str | None = None) -> None:
    print(sampler().to_string(index=False, float_format="{:,.4g}".format))
    print()
    memory()
    for table in (law(), theorem()):
        print("\n" + table.to_string(index=False))
    growth, seconds = timed(growth_table, 1)
    print(f"\n{growth.round(4).to_string(index=False)}\n({seconds:.1f} s)")
    curves, seconds = timed(figure1_curves, 1)
    peaks = curves.loc[curves.groupby("step", sort=False)["chernoff"].idxmax()]
    print(f"\nfigure 1, the peaks:\n{peaks.round(4).to_string(index=False)}\n({seconds:.1f} s)")
    model, seconds = learner()
    print(f"\nSGLDRegressor, 100 chains of 15,000 steps: {seconds:.1f} s\n{model.privacy_report_}")
    print({name: value for name, value in model.privacy_report_.details.items() if "epsilon" in name})
    if directory is not None:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot

        draw: dict[str, Callable[[Any], Any]] = {
            "figure_1": partial(plot_figure1, curves),
            "growth": partial(plot_growth, growth),
            "regressor": model.plot_privacy,
        }
        for name, plot in draw.items():
            figure, ax = pyplot.subplots(figsize=(8, 5), layout="constrained")
            plot(ax)
            figure.savefig(Path(directory) / f"sgld_{name}.png", dpi=120)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
