"""The price of adaptivity: how much wider a guard's intervals are than those of queries that were fixed in advance.

For each answer the half length of the certified interval is divided by that of the exact (Clopper-Pearson) interval at
the true score and at 0.05/m, m the number of queries: what a list that was written down before has (Bonferroni).
Guards are made with defaults; nothing is declared, not even m. A refused query counts as an interval of width 1.
Tables have the mean over sessions, the 90 % quantile over sessions, and in how many some truth was missed.

*Lists* are fixed in advance, and asked as lists. *Comparisons* are of pairs of models that differ on some of the
records; the baseline is the exact sign test at 0.05/m. *Attacks* are followed by an honest query. *Simulated
searches*: candidates whose errors agree as those of real models do (a common difficulty of the records with 0.7 of the
variance), true accuracies spread below a best one of 0.85 to 0.97, training values from n_train records. *Real
searches*: random candidates from seven families of scikit-learn on digits, breast cancer, and three generated data
sets, training values cross-validated. For generated data the truth is the accuracy on 20,000 fresh records; for real
data there is none, and the baseline is taken at the holdout's own score.

Run: ``python -m benchmarks.price``, or with ``--quick`` (within three minutes). Real searches, which take most of the
time, end after a number of minutes (``--real 40``), with as many sessions as were finished. ``--quoted`` measures the
numbers of docs/start.md only, and writes them to ``benchmarks/prices/summary.json``. ``--planned`` puts searches of 20
queries beside their plans.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from benchmarks.prices.candidates import GENERATED, Candidate, real, simulated
from benchmarks.prices.sessions import Kind, Run, after_attack, beside_plan, checked, compared, listed, searched
from benchmarks.prices.summary import write
from benchmarks.prices.times import asking, planning
from thresholdout.mechanisms.claims.predictor import SHARED

__all__ = ["main"]


def heading(title: str) -> None:
    print(f"\n{title}\n\n{'':62} {'mean':>6} {'90 %':>6} {'missed':>8} {'nats told':>9}", flush=True)


def row(name: str, runs: Iterable[Run]) -> None:
    """Print the mean over sessions, the 90 % quantile over sessions, and the sessions with a missed truth."""
    found = list(runs)
    price = [run.price for run in found]
    missed = sum(run.missed > 0 for run in found)
    told = float(np.mean([run.told for run in found]))
    numbers = f"{np.mean(price):6.2f} {np.quantile(price, 0.9):6.2f} {missed:4}/{len(found):<3}"
    numbers += f" {told:9.1f}" if np.isfinite(told) else f" {'all':>9}"
    print(f"{name:62} {numbers}", flush=True)


def lists(seeds: int) -> None:
    """Ask a list that is the first of a session, one of a guard for nothing else, and a single final check."""
    heading("Lists")
    for name, sizes, keep in (
        ("a list first, a fifth of the risk kept", (20, 100, 1000), 0.2),
        ("a guard for lists alone", (20, 100, 1000), 0.0),
        ("a final check alone", (1,), 0.0),
    ):
        for queries in sizes:
            for n in (300, 2000, 20_000):
                some = max(2, seeds // 4) if queries == 1000 else seeds
                runs = (listed(list(simulated(n, n, queries, seed)), n, n, keep) for seed in range(some))
                row(f"{name}: {queries} queries, n = {n}", runs)
    for queries in (20, 100):
        for n in (300, 2000, 20_000):
            runs = (checked(n, n, queries, seed) for seed in range(seeds))
            row(f"a final check after a search: {queries} queries, n = {n}", runs)


def comparisons(seeds: int) -> None:
    """Compare two models: the population's difference, a win rate, the difference given the features."""
    kinds: tuple[Kind, ...] = ("population", "win_rate", "given features")
    for kind in kinds:
        heading(f"Comparisons, {kind}, n_train = 2n")
        for queries in (20, 100):
            for n in (1000, 10_000):
                for share in (0.03, 0.08):
                    runs = (compared(kind, n, 2 * n, queries, share, seed) for seed in range(seeds))
                    row(f"{queries} comparisons, n = {n}, disagreement {share:.0%}", runs)


def attacks(seeds: int) -> None:
    """Ask an honest query after an attack, and of a new guard."""
    print(f"\nUnder attack\n\n{'':62} {'half length':>11} {'new guard':>9} {'nats told':>9} {'risk left':>9}")
    for attack in ("misleading", "majority"):
        for n in (300, 2000, 20_000):
            for queries in (10, 50, 200):
                found = np.array([after_attack(n, queries, attack, seed) for seed in range(seeds)])
                after, fresh, told = found.mean(axis=0)
                left = f"{0.05 * np.exp(-told):9.1e}" if told < 700 else f"e^-{told + 3:.0f}"
                print(
                    f"{attack}, after {queries} queries, n = {n}".ljust(62),
                    f"{after:11.4f} {fresh:9.4f} {told:9.1f} {left:>9}",
                    flush=True,
                )


def times(repeats: int) -> None:
    """Time a query and a plan."""
    print("\nA query of 1,000 holdout and 2,000 training values, median\n")
    found = asking(1000, repeats)
    by_hand = {place: found[f"the sparse vector by hand, in {place}"] for place in ("a file", "memory")}
    for name, micro in found.items():
        place = "memory" if name.endswith("memory") else "a file"
        print(f"{name:62} {micro:8.1f} us, {micro / by_hand[place]:.2f} of the sparse vector by hand, in {place}")
    print("\nPlanning, once, processor time\n")
    for name, seconds in planning().items():
        print(f"{name:62} {seconds:8.3f} s", flush=True)


def simulations(seeds: int, sizes: Iterable[int]) -> None:
    """Print simulated searches."""
    heading("Simulated searches")
    for queries in sizes:
        for ratio in (3.0, 1.4, 1.0, 0.5, 0.25):
            for n in (300, 2000, 20_000):
                some = max(2, seeds // 5) if queries == 1000 and n == 20_000 else seeds
                size = int(n * ratio)
                runs = (searched(simulated(n, size, queries, seed), n, size, queries) for seed in range(some))
                row(f"{queries} queries, n = {n}, n_train = {ratio:g} n", runs)


def planned(seeds: int, queries: int) -> None:
    """Print how wide the answers of searches are beside what was planned for them: simulated ones, then real ones."""
    print(f"\n{f'Answers beside the plan, {queries} queries':62} {'/ plan':>6} {'/ list':>6}", flush=True)
    for name, shared, similarity in (("models of one search", 0.7, SHARED), ("unrelated queries", 0.0, 0.0)):
        for n in (300, 1000, 3000):
            found = np.array(
                [beside_plan(list(simulated(n, n, queries, k, shared)), n, n, similarity) for k in range(seeds)]
            )
            beside_plan_row(f"{name}, n = {n}, n_train = n", found)
    real_searches = [("digits", 600, 1.4), ("breast cancer", 250, 1.0), *((name, 1000, 1.0) for name in GENERATED)]
    for name, n, ratio in real_searches:
        size = int(n * ratio)
        found = np.array(
            [beside_plan(list(real(name, n, size, queries, k)), n, size, SHARED) for k in range(max(1, seeds // 10))]
        )
        beside_plan_row(f"{name}, n = {n}, n_train = {ratio:g} n", found)


def beside_plan_row(name: str, found: NDArray[np.float64]) -> None:
    print(f"{name:62} {found[:, 0].mean():6.2f} {found[:, 1].mean():6.2f}", flush=True)


def searches(seeds: int, sizes: tuple[int, ...], minutes: float) -> None:
    """Print real searches: a session each of all, then a second one, until the time is over."""
    ends = time.monotonic() + 60 * minutes
    kinds = [
        ("digits", 300, 3.0),
        ("digits", 600, 1.4),
        ("breast cancer", 300, 0.8),
        *((name, n, ratio) for name in GENERATED for n in (300, 2000) for ratio in (1.4, 0.5)),
    ]
    found: dict[tuple[int, str], list[Run]] = {}
    for seed in range(seeds):
        for name, n, ratio in kinds:
            if time.monotonic() > ends:
                break
            size = int(n * ratio)
            asked = sizes if seed % 5 == 0 else sizes[:1]  # long searches in a fifth of the sessions
            candidates: list[Candidate] = list(real(name, n, size, max(asked), seed))
            for queries in asked:
                label = f"{name}, {queries} queries, n = {n}, n_train = {ratio:g} n"
                run = searched(islice(candidates, queries), n, size, queries)
                found.setdefault((queries, label), []).append(run)
    heading("Real searches (truths known for generated data)")
    for (_, label), runs in sorted(found.items()):
        row(label, runs)


def main() -> None:
    """Print the tables, or write the numbers that are quoted."""
    if "--quoted" in sys.argv:
        write(20)
        return
    quick = "--quick" in sys.argv
    minutes = float(sys.argv[sys.argv.index("--real") + 1]) if "--real" in sys.argv else 0.8 if quick else 60.0
    seeds = 3 if quick else 20
    begun = time.monotonic()
    if "--planned" in sys.argv:
        planned(seeds, 20)
        return
    times(300 if quick else 3000)
    lists(seeds)
    comparisons(max(2, seeds // 2))
    attacks(seeds)
    simulations(seeds, (20, 100) if quick else (20, 100, 1000))
    searches(seeds, (20,) if quick else (20, 100), minutes)
    print(f"\n{(time.monotonic() - begun) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
