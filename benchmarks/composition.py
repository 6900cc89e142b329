"""Composition and generalisation: times, how close the bounds are, and the comparison tables.

Run with ``python -m benchmarks.composition``; with ``--pictures DIRECTORY`` it also draws the tables.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import timed
from benchmarks.federated import print_learners
from benchmarks.papers.bound_pictures import (
    plot_composition,
    plot_high_probability,
    plot_kl,
    plot_on_average,
)
from benchmarks.papers.bound_tables import (
    compare_composition,
    compare_high_probability,
    compare_kl,
    compare_on_average,
)
from thresholdout.privacy.accounting.adaptive_steps import compose_kov
from thresholdout.privacy.accounting.generalization_bounds import best_error
from thresholdout.privacy.accounting.iterative_learners import sgld_privacy
from thresholdout.privacy.accounting.optimal_composition import (
    compose_optimal_delta,
    compose_optimal_epsilon,
    optimal_epsilon_bounds,
)
from thresholdout.privacy.accounting.results import UnsoundBoundWarning


def print_equal_steps() -> None:
    """Print the optimal composition of equal steps."""
    compose_optimal_epsilon(0.1, 0.0, 1e-6, 10)  # loads scipy
    print("Optimal composition of equal steps, total delta 1e-6:\n")
    print("| steps | epsilon of each | epsilon, lower | upper | Kairouz-Oh-Viswanath | ms, epsilon | ms, delta |")
    print("|---|---|---|---|---|---|---|")
    for T, eps in ((100, 0.1), (1000, 0.03), (10_000, 0.01), (1_000_000, 0.001), (1_000_000, 700.0)):
        (low, high), _ = timed(lambda: optimal_epsilon_bounds(eps, 0.0, 1e-6, T))  # noqa: B023
        _, first = timed(lambda: compose_optimal_epsilon(eps, 0.0, 1e-6, T))  # noqa: B023
        _, second = timed(lambda: compose_optimal_delta(eps, 0.0, high, T))  # noqa: B023
        kov = compose_kov(eps, 0.0, 1e-6, T).eps
        row = f"{low:.12g} | {high:.12g} | {kov:.6g} | {first * 1e3:.2f} | {second * 1e3:.2f}"
        print(f"| {T:,} | {eps:g} | {row} |")
    print()


def print_peer() -> None:
    """Print the same epsilon by dp-accounting's privacy-loss distributions."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    print("| steps | epsilon of each | here | dp-accounting, grid 1e-4 | ms here | ms there | ratio |")
    print("|---|---|---|---|---|---|---|")
    for T, eps in ((100, 0.1), (1000, 0.03), (10_000, 0.01)):
        here, mine = timed(lambda: compose_optimal_epsilon(eps, 0.0, 1e-6, T))  # noqa: B023

        def peer(eps: float = eps, T: int = T) -> float:
            parameters = common.DifferentialPrivacyParameters(eps, 0.0)
            one = pld.from_privacy_parameters(parameters, value_discretization_interval=1e-4)
            return float(one.self_compose(T).get_epsilon_for_delta(1e-6))

        there, theirs = timed(peer)
        times = f"{mine * 1e3:.2f} | {theirs * 1e3:.2f} | {mine / theirs:.3f}"
        print(f"| {T:,} | {eps:g} | {here:.9g} | {there:.9g} | {times} |")
    print()


def learners() -> pd.DataFrame:
    """Return what stochastic gradient Langevin dynamics leaks, and the error that follows, by rule of composition."""
    rows = []
    for N, tau, T, sigma in ((60_000, 64, 2000, 0.5), (60_000, 64, 20_000, 0.5), (10**6, 256, 20_000, 0.5)):
        for method in ("kov", "chernoff", "optimal"):
            found = sgld_privacy(N, tau, T, 1.0, sigma, 1e-6, 1e-6, method=method)
            error = best_error(found.eps, found.delta, N, 0.01)
            rows.append((N, tau, T, sigma, method, found.eps, found.delta, error))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsoundBoundWarning)
            paper = sgld_privacy(N, tau, T, 1.0, sigma, 1e-6, 1e-6, "paper")
        delta = paper.details["delta_with_free_dt"]
        rows.append((N, tau, T, sigma, "published (unsound)", paper.eps, delta, None))
    return pd.DataFrame(rows, columns=["N", "tau", "T", "sigma", "rule", "eps", "delta", "error at failure 0.01"])


def print_table(title: str, table: pd.DataFrame) -> None:
    """Print a table."""
    print(f"{title}:\n\n```\n{table.to_string(index=False, float_format=lambda x: f'{x:.5g}')}\n```\n")


def main(words: Sequence[str] = ()) -> None:
    """Print all tables, and draw the comparisons if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", metavar="DIRECTORY", help="also draw the comparison tables, to files there")
    directory = parser.parse_args(words).pictures
    print_equal_steps()
    print_peer()
    grid = np.geomspace(0.005, 1.0, 9).tolist()
    drawn = [
        ("high probability", compare_high_probability(grid, 1e-6, 100_000, 0.05), plot_high_probability),
        ("on average", compare_on_average(grid, 1e-6), plot_on_average),
        ("kl", compare_kl(grid), plot_kl),
        ("composition", compare_composition(0.1, 1e-6, [10, 30, 100, 300, 1000], 1e-6), plot_composition),
    ]
    for title, table, plot in drawn:
        print_table(title, table)
        if directory is not None:
            plot(table).figure.savefig(Path(directory) / f"{title.replace(' ', '_')}.png", dpi=150)
    print_table("Stochastic gradient Langevin dynamics", learners())
    print_learners(directory)


if __name__ == "__main__":
    main(sys.argv[1:])
