"""Networks by expectation propagation and by variational inference, private and not, on shipped and generated data.

Run with ``python -m benchmarks.papers.pbp``; ``python -m benchmarks.papers.pbp DIRECTORY`` also draws the errors there.
Private learners are compared at the same epsilon 1 and delta 1e-5 for replaced records, by proved accounting of each
release; inputs and targets are scaled by constants that do not come from the data. Nothing is tuned to a data set.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.model_selection import train_test_split

from benchmarks.papers.clipping_theory import kl_leading_order
from benchmarks.papers.regression_standins import make_linear_standin, make_wine_standin
from benchmarks.papers.simulated_mixtures import make_kin8_standin
from thresholdout.privacy.learning import (
    DPVIRegressor,
    EPLinearRegression,
    GaussianNatural,
    PBPRegressor,
)

Floats = NDArray[np.float64]
Data = tuple[Floats, Floats]

EPSILON, SPLITS = 1.0, 3
NORMS = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0)
SIGMAS = (0.0, 0.02, 0.05, 0.1, 0.3, 1.0)
PRIVATE_SEP = ["DP-SEP, gamma 1", "DP-SEP, auto gamma", "DP-SEP, auto, rho 5/6"]
ROOT_12 = float(np.sqrt(12.0))

# Name, data, hidden units, passes, and public scales: of the inputs' ranges, and a guess of the target's.
SETS: list[tuple[str, Callable[[], Data], int, int, dict[str, float]]] = [
    (
        "diabetes",
        lambda: load_diabetes(return_X_y=True),
        10,
        20,
        {"x_offset": 0.0, "x_scale": 0.0476, "y_offset": 150.0, "y_scale": 75.0},
    ),
    (
        "friedman1",
        lambda: make_friedman1(1000, n_features=10, noise=1.0, random_state=0),
        10,
        10,
        {"x_offset": 0.5, "x_scale": 1 / ROOT_12, "y_offset": 15.0, "y_scale": 5.0},
    ),
    (
        "arm",
        lambda: make_kin8_standin(3000, 0),
        20,
        5,
        {"x_offset": 0.0, "x_scale": np.pi / 2 / ROOT_12, "y_offset": 0.4, "y_scale": 0.25},
    ),
    ("wine stand-in", make_wine_standin, 10, 10, {"x_offset": 0.0, "x_scale": 1.0, "y_offset": 5.5, "y_scale": 0.8}),
]


def contenders(hidden: int, passes: int, records: int) -> dict[str, Any]:
    network: dict[str, Any] = {"hidden_layer_sizes": (hidden,), "n_epochs": passes, "random_state": 0}
    fixed: dict[str, Any] = {"noise_precision": "fixed", "noise_var": 0.2}
    private = {**network, "algorithm": "dp-sep", "clip_norm": 1.0, "epsilon": EPSILON}
    descent: dict[str, Any] = {"n_epochs": 40, "batch_size": min(100, records // 4), "random_state": 0}
    descent |= {"learning_rate": 0.1, "noise_precision": 5.0, "kl_weight": 0.1}
    return {
        "VI": DPVIRegressor(hidden, **{**descent, "n_epochs": 100, "clip_norm": 10.0}),
        "EP": PBPRegressor(**network, algorithm="ep"),
        "SEP": PBPRegressor(**network),
        "SEP, noise fixed": PBPRegressor(**network, **fixed),
        "clipped SEP": PBPRegressor(**network, algorithm="clipped-sep", clip_norm=1.0),
        "SEP, gamma 1": PBPRegressor(**network, gamma="paper"),
        "DP-SEP, gamma 1": PBPRegressor(**private, **fixed, gamma="paper"),
        "DP-SEP, auto gamma": PBPRegressor(**private, **fixed),
        "DP-SEP, auto, rho 5/6": PBPRegressor(**private, **fixed, rho=5 / 6),
        "DP-VI": DPVIRegressor(hidden, **descent, epsilon=EPSILON),
    }


def splits(data: Data, test: int) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
    for seed in range(SPLITS):
        X, X_test, y, y_test = train_test_split(*data, test_size=test, random_state=seed)
        yield X, X_test, y, y_test


def measured(model: Any, X: Floats, X_test: Floats, y: Floats, y_test: Floats) -> tuple[float, float, float]:
    """Return root mean squared error, mean log-likelihood, and seconds of the fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
    error = float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
    return error, model.log_likelihood(X_test, y_test), seconds


def comparison() -> pd.DataFrame:
    """Return a row for each data set, learner and split."""
    rows = []
    for name, make, hidden, passes, scales in SETS:
        data = make()
        for split, parts in enumerate(splits(data, len(data[1]) // 10)):
            X, _, y, y_test = parts
            constant = float(np.sqrt(np.mean((y_test - y.mean()) ** 2)))
            rows.append((name, "constant", split, constant, np.nan, 0.0, len(X)))
            for who, model in contenders(hidden, passes, len(X)).items():
                model.set_params(**scales)
                rows.append((name, who, split, *measured(model, *parts), len(X)))
    return pd.DataFrame(rows, columns=["data", "learner", "split", "rmse", "log_likelihood", "seconds", "N"])


def norms() -> pd.DataFrame:
    """Return errors of DP-SEP at epsilon 1 for several clipping norms, a row for each data set, norm and split."""
    rows = []
    for name, make, hidden, passes, scales in SETS[1:3]:
        for split, parts in enumerate(splits(make(), 300)):
            for C in NORMS:
                model = contenders(hidden, passes, 0)["DP-SEP, gamma 1"].set_params(clip_norm=C, **scales)
                rows.append((f"network, {name}", C, split, measured(model, *parts)[0]))
    for split, parts in enumerate(splits(make_linear_standin(20_000, 1), 2000)):
        for C in NORMS:
            model = EPLinearRegression(
                noise_var=0.25, algorithm="dp-sep", epsilon=EPSILON, clip_norm=C, n_epochs=3, random_state=split
            )
            rows.append(("linear, d = 5", C, split, measured(model, *parts)[0]))
    return pd.DataFrame(rows, columns=["data", "C", "split", "rmse"])


def noises() -> pd.DataFrame:
    """Return errors of DP-SEP on the arm by noise multiplier and gamma; 0 is clipping alone."""
    _, make, hidden, passes, scales = SETS[2]
    rows = []
    for split, parts in enumerate(splits(make(), 300)):
        for gamma in ("paper", "sep"):
            model = contenders(hidden, passes, 0)["DP-SEP, gamma 1"]
            model.set_params(gamma=gamma, epsilon=None, **scales)
            for sigma in SIGMAS:
                model.set_params(sigma=sigma or None, algorithm="dp-sep" if sigma else "clipped-sep")
                error = measured(model, *parts)[0]
                rows.append((gamma, sigma, model.privacy_report_.epsilon, split, error))
    return pd.DataFrame(rows, columns=["gamma", "sigma", "epsilon", "split", "rmse"])


def claims(found: pd.DataFrame, by_norm: pd.DataFrame) -> pd.DataFrame:
    """Return the paper's claims about networks, and what was found here."""
    errors = found.pivot_table(index=["data", "split"], columns="learner", values="rmse")
    fits = found.pivot_table(index=["data", "split"], columns="learner", values="log_likelihood")
    rows: list[tuple[str, bool, str]] = []
    gain = (fits["SEP"] - fits["VI"]).groupby("data").mean()
    rows.append(("EP-type beats VI in log-likelihood", bool((gain > 0).all()), _listed(gain, "{:+.2f}")))
    spread = errors["SEP"].groupby("data").std()
    loss = (errors["clipped SEP"] - errors["SEP"]).groupby("data").mean() / spread
    rows.append(("clipped SEP is not worse than SEP by 1 sd on two sets", bool((loss < 1).sum() >= 2), _listed(loss)))
    near = (errors[PRIVATE_SEP].min(axis=1) / errors["SEP"]).groupby("data").mean()
    rows.append(("DP-SEP at epsilon 1 is within 10 % of SEP", bool((near < 1.1).all()), _listed(near)))
    better = (errors[PRIVATE_SEP].min(axis=1) / errors["DP-VI"]).groupby("data").mean()
    rows.append(("DP-SEP beats DP-VI at the same epsilon", bool((better < 1).all()), _listed(better)))
    useful = (errors[PRIVATE_SEP].min(axis=1) / errors["constant"]).groupby("data").mean()
    rows.append(("a DP-SEP network beats the constant by 5 %", bool((useful < 0.95).all()), _listed(useful)))
    trained = (errors["SEP, gamma 1"] / errors["constant"]).groupby("data").mean()
    rows.append(("gamma = 1 as printed trains a network", bool((trained < 0.8).all()), _listed(trained)))
    mean = by_norm.groupby(["data", "C"])["rmse"].mean().unstack()
    rising = mean.apply(lambda row: float(np.corrcoef(np.arange(len(row)), row.rank())[0, 1]), axis=1)
    rows.append(("errors rise with C (rank correlation above 0.8)", bool((rising > 0.8).all()), _listed(rising)))
    q = GaussianNatural([2.0, -1.0], [[6.0, 1.0], [1.0, 3.0]])
    ratio = kl_leading_order(q, 2e-3, 2e-3) / kl_leading_order(q, 2e-4, 2e-4)
    rows.append(("one update's divergence falls as 1/N", abs(ratio - 10) < 1, f"as N^-{np.log10(ratio):.1f}"))
    return pd.DataFrame(rows, columns=["claim", "confirmed", "numbers"])


def _listed(values: pd.Series[Any], form: str = "{:.2f}") -> str:
    return ", ".join(f"{name} {form.format(value)}" for name, value in values.items())


def plot(found: pd.DataFrame, by_noise: pd.DataFrame, by_norm: pd.DataFrame, file: Path) -> None:
    """Draw errors of all learners, by noise, and by clipping norm."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(17, 5.2))
    errors = found.pivot_table(index="data", columns="learner", values="rmse", sort=False)[
        list(dict.fromkeys(found["learner"]))
    ]
    share = errors.drop(columns="constant").div(errors["constant"], axis=0)
    for (name, row), marker in zip(share.iterrows(), "osD^", strict=True):
        left.plot(row.to_numpy(), np.arange(len(row)), marker, label=name, alpha=0.8)
    left.set_yticks(np.arange(share.shape[1]), list(share.columns))
    left.set_xscale("log")
    left.grid(axis="y", alpha=0.3)
    left.axvline(1.0, color="black", linewidth=1)
    left.set(
        xlabel="test RMSE over that of a constant (log scale)", ylabel="", title="Learners; private ones at epsilon 1"
    )
    left.invert_yaxis()
    left.legend(title="data")
    for gamma, group in by_noise.groupby("gamma"):
        mean = group.groupby("sigma")["rmse"].agg(["mean", "std"])
        label = "gamma = 1" if gamma == "paper" else "gamma = N"
        middle.errorbar(mean.index, mean["mean"], yerr=mean["std"], marker="o", capsize=3, label=label)
    constant = found[(found["data"] == "arm") & (found["learner"] == "constant")]["rmse"].mean()
    middle.axhline(constant, color="black", linewidth=1, linestyle="--", label="constant")
    middle.set_xscale("symlog", linthresh=0.02)
    middle.set_xlim(left=-0.003)
    middle.set_yscale("log")
    middle.set(
        xlabel="noise multiplier (0: clipping alone)", ylabel="test RMSE", title="Arm: what noise does to a network"
    )
    middle.legend()
    for name, group in by_norm.groupby("data"):
        by_c = group.groupby("C")["rmse"].mean()
        right.plot(by_c.index, by_c / by_c.iloc[0], marker="o", label=name)
    right.set(xlabel="clipping norm C", ylabel="test RMSE over that at C = 1", title="Clipping norm at epsilon 1")
    right.set_yscale("log")
    right.legend()
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main() -> None:
    """Print the tables."""
    directory = Path(sys.argv[1]) if len(sys.argv) == 2 and Path(sys.argv[1]).is_dir() else None
    found = comparison()
    table = found.groupby(["data", "learner"], sort=False)[["rmse", "log_likelihood", "seconds"]]
    print(f"mean and deviation of {SPLITS} splits; private learners at epsilon {EPSILON:g}, delta 1e-5")
    print(table.agg(["mean", "std"]).drop(columns=[("seconds", "std")]).round(4).to_string())
    updates = found[found["learner"] == "SEP"].groupby("data", sort=False).agg({"seconds": "mean", "N": "first"})
    passes = {name: each for name, _, _, each, _ in SETS}
    for name, seconds, N in updates.itertuples():
        print(f"SEP on {name}: {seconds / N / passes[name] * 1e6:.0f} us an update")
    by_norm, by_noise = norms(), noises()
    print("\nDP-SEP, test RMSE by clipping norm")
    print(by_norm.pivot_table(index="data", columns="C", values="rmse").round(4).to_string())
    print("\nDP-SEP on the arm, test RMSE by noise multiplier")
    print(by_noise.groupby(["gamma", "sigma"])[["epsilon", "rmse"]].mean().round(4).to_string())
    print("\nclaims")
    with pd.option_context("display.max_colwidth", None, "display.width", 250):
        print(claims(found, by_norm).to_string(index=False))
    if directory is not None:
        plot(found, by_noise, by_norm, directory / "pbp.png")


if __name__ == "__main__":
    main()
