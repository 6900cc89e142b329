"""How many adaptive questions a holdout answers within a tolerance, by every route, side by side with public formulas.

Run with ``python -m benchmarks.questions``; with ``--picture questions.png`` it also draws them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs import DependenceModel, Groups, Independent, MarkovChain
from thresholdout.certificates.capacity import Reach, best, fewest_records, questions_within, tolerances_for
from thresholdout.certificates.gaussian.noise_schedule import tightest_schedule
from thresholdout.certificates.independent_blocks import IndependentBlocks
from thresholdout.plotting import axes

CONFIDENCE = 0.95
RECORDS = (1_000, 2_000, 5_000, 10_000, 50_000, 100_000, 300_000, 1_000_000)
TOLERANCES = (0.1, 0.05)
COLUMNS = {
    "splitting, values 0 or 1": "split 0/1",
    "splitting": "split [0,1]",
    "monitor": "RZ",
    "mutual information, published": "XR",
    "posterior sensitivity, published": "J20",
    "mutual information": "mutual information",
    "Gaussian, one scale": "Gaussian, one scale",
    "Gaussian, schedule": "Gaussian, schedule",
}


def chain(n: int, redraw: float) -> MarkovChain:
    """Return a stationary chain of two states that is redrawn with this probability before each record."""
    return MarkovChain([[1 - redraw / 2, redraw / 2], [redraw / 2, 1 - redraw / 2]], n=n)


def cells(reached: tuple[Reach, ...]) -> list[str]:
    """Return the counts in the order of the columns, the largest sound one in bold."""
    first = best(reached)
    shown = {
        reach.route: f"**{reach.questions:,}**"
        if reach.questions and reach.sound and reach.questions == first.questions
        else f"{reach.questions:,}"
        for reach in reached
    }
    return [shown.get(route, "–") for route in COLUMNS]


def print_counts(title: str, rows: list[tuple[list[str], DependenceModel, float]]) -> None:
    """Print one table of counts."""
    print(f"{title}, confidence {CONFIDENCE:g}\n")
    print(f"| records | tau | {' | '.join(COLUMNS.values())} | seconds |")
    print("|---" * (len(COLUMNS) + 3) + "|")
    for labels, model, tolerance in rows:
        start = time.perf_counter()
        reached = questions_within(model, tolerance, CONFIDENCE, binary=True)
        seconds = time.perf_counter() - start
        print(f"| {' | '.join([*labels, *cells(reached)])} | {seconds:.2f} |", flush=True)
    print()


def print_inverses() -> None:
    """Print the tolerance of 1,000 answers, and the records that a number of questions needs."""
    print("Tolerance of 1,000 answers\n")
    print(f"| records | {' | '.join(COLUMNS.values())} |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for n in RECORDS[2:]:
        widths = {reach.route: reach.tolerance for reach in tolerances_for(Independent(n), 1000, binary=True)}
        print(f"| {n:,} | {' | '.join(f'{min(1.0, widths[route]):.4f}' for route in COLUMNS)} |")
    print("\nFewest records for tau = 0.1\n")
    print("| questions | records | route | records per question |")
    print("|---|---|---|---|")
    for questions in (1, 10, 100, 1_000, 10_000, 100_000):
        found = fewest_records(questions, 0.1, CONFIDENCE, binary=True, identically_distributed=True)
        print(f"| {questions:,} | {found.records:,} | {found.route} | {found.records / questions:.2f} |")
    start = time.perf_counter()
    schedule = tightest_schedule(IndependentBlocks.of_records(123_456), 100_000, 1 - CONFIDENCE)
    seconds = time.perf_counter() - start
    print(f"\nA schedule for 100,000 answers (tau {schedule.tolerance():.4f}) takes {seconds:.2f} s.")


def picture(path: str, tolerance: float = 0.1) -> Any:
    """Draw the questions answered against the number of records, one line for each route."""
    ax = axes()
    sizes = np.unique(np.geomspace(300, 10**6, 29).astype(int)).tolist()
    reached = [{one.route: one for one in questions_within(Independent(n), tolerance, binary=True)} for n in sizes]
    for route, label in COLUMNS.items():
        points = [(n, row[route].questions) for n, row in zip(sizes, reached, strict=True) if row[route].questions]
        sound = reached[-1][route].sound
        ax.plot(
            *zip(*points, strict=True), "-" if sound else ":", label=label, linewidth=2.5 if "sched" in route else 1.3
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("records")
    ax.set_ylabel(f"adaptive questions, all within {tolerance:g}")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize="small")
    ax.figure.savefig(path, dpi=150)
    return ax


def main(words: Sequence[str] = ()) -> None:
    """Print the tables, and draw the picture if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", metavar="FILE", help="also draw questions against records, to this file")
    arguments = parser.parse_args(words)
    print_counts(
        "Independent records",
        [([f"{n:,}", f"{tau:g}"], Independent(n), tau) for tau in TOLERANCES for n in RECORDS],
    )
    print_counts(
        "Groups of five",
        [
            ([f"{5 * n:,} ({n:,} groups)", "0.1"], Groups(np.repeat(np.arange(n), 5)), 0.1)
            for n in (2_000, 10_000, 100_000)
        ],
    )
    print_counts(
        "Stationary chain, redrawn with probability e",
        [
            ([f"{n:,}, e = {redraw:g}", "0.1"], chain(n, redraw), 0.1)
            for n, redraw in ((100_000, 0.5), (100_000, 0.1), (1_000_000, 0.1))
        ],
    )
    print_inverses()
    if arguments.picture:
        picture(arguments.picture)
        print(f"\nPicture: {arguments.picture}")


if __name__ == "__main__":
    main(sys.argv[1:])
