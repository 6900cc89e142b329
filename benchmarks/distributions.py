"""Privacy-loss distributions beside dp-accounting and prv-accountant: epsilons, seconds and memory.

Run with ``python -m benchmarks.distributions``. A peer that is not installed is left out, and the table says so.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

from benchmarks.accounting import RATE, SIGMA, STEPS, dp_accounting_poisson, prv_poisson
from thresholdout.accounting import pld_fswor, pld_fswr, pld_poisson

DELTA = 1e-5
CASES: list[tuple[str, str, Callable[[], float]]] = [
    ("Poisson", "thresholdout, bounds 1e-4 apart", lambda: pld_poisson(SIGMA, STEPS, DELTA, q=RATE).upper),
    ("Poisson", "dp-accounting, cells 1e-4", lambda: dp_accounting_poisson(SIGMA, 1e-4)),
    ("Poisson", "prv-accountant, error 0.01", lambda: prv_poisson(SIGMA)),
    ("without replacement", "thresholdout", lambda: pld_fswor(SIGMA, STEPS, DELTA, q=RATE).upper),
    (
        "without replacement, replaced",
        "thresholdout",
        lambda: pld_fswor(SIGMA, STEPS, DELTA, q=RATE, adjacency="replace_one").upper,
    ),
    (
        "with replacement, B 64, N 10,000, noise 2, T 1000",
        "thresholdout",
        lambda: pld_fswr(2.0, 1000, DELTA, batch_size=64, dataset_size=10_000).upper,
    ),
]


def measured(call: Callable[[], float]) -> tuple[float, float, float]:
    """Return a value, the seconds it took, and the peak of memory in MB (from a second call)."""
    start = time.perf_counter()
    value = call()
    seconds = time.perf_counter() - start
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return value, seconds, peak


def main() -> None:
    print("| Batches | Accountant | Upper epsilon | Seconds | MB |\n|---|---|---|---|---|")
    for batches, accountant, call in CASES:
        try:
            value, seconds, peak = measured(call)
        except ImportError as missing:
            print(f"| {batches} | {accountant} | not installed: {missing.name} | | |", flush=True)
            continue
        print(f"| {batches} | {accountant} | {value:.5f} | {seconds:.2f} | {peak:.0f} |", flush=True)


if __name__ == "__main__":
    main()
