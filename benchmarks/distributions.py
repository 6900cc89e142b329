"""Privacy-loss distributions beside dp-accounting, autodp and prv-accountant: epsilons, seconds and memory.

Run with ``python -m benchmarks.distributions``. A peer that is not installed is left out, and the table says so.
Poisson batches are compared at equal accuracy: dp-accounting's cells are the widest with which its epsilon is as close
to the true one as ours.
"""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable

import numpy as np

from benchmarks import timed
from benchmarks.accounting import BATCH, RATE, RECORDS, SIGMA, STEPS, dp_accounting_poisson, prv_poisson
from benchmarks.papers.minibatch_epsilons import pld_fswor, pld_fswr, pld_poisson
from thresholdout.privacy.accounting import (
    Composed,
    DistributionAccountant,
    PoissonGaussianStep,
    SelfComposed,
    WithoutReplacementGaussianStep,
    calibrate_sigma,
)

DELTA = 1e-5
CELLS = 2e-4 / 2.0 ** (np.arange(20) / 2.0)
POISSON = SelfComposed(PoissonGaussianStep(SIGMA, RATE), STEPS)


def measured(call: Callable[[], float], repeat: int = 3) -> tuple[float, float, float]:
    """Return a value, the seconds of the fastest of some calls, and the peak of memory in MB (from one more call)."""
    value, best = timed(call, repeat)
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return value, best, peak


def autodp_poisson(sigma: float) -> float:
    """Return autodp's epsilon for Poisson batches, by Renyi divergences."""
    from autodp.mechanism_zoo import GaussianMechanism
    from autodp.transformer_zoo import AmplificationBySampling, Composition

    sampled = AmplificationBySampling(PoissonSampling=True)(GaussianMechanism(sigma, name="step"), RATE)
    return float(Composition()([sampled], [STEPS]).get_approxDP(DELTA))


def equal_cells(truth: float, distance: float) -> float | None:
    """Return the widest cells with which dp-accounting's epsilon is as close to the truth, or None."""
    for cells in map(float, CELLS):
        if abs(dp_accounting_poisson(SIGMA, cells) - truth) <= distance:
            return cells
    return None


def print_poisson() -> None:
    """Print Poisson batches at equal accuracy."""
    low, _, high = pld_poisson(SIGMA, STEPS, DELTA, q=RATE, accuracy=2e-6)
    truth = 0.5 * (low + high)
    print(
        f"Poisson batches: {STEPS:,} steps, noise {SIGMA:g}, rate {RATE:g}; "
        f"the true epsilon is {low:.7f} to {high:.7f}.\n"
    )
    print("| who | epsilon | above the truth | s | times ours | MB |\n|---|---|---|---|---|---|")
    ours = 0.0
    for accuracy in (1e-3, 1e-4, 1e-5):
        accountant = DistributionAccountant("add_remove", accuracy=accuracy).compose(POISSON)
        value, ours, memory = measured(lambda: accountant.epsilon(DELTA))  # noqa: B023
        print(f"| here, accuracy {accuracy:g} | {value:.7f} | {value - truth:.1e} | {ours:.3f} | 1 | {memory:.0f} |")
        try:
            cells = equal_cells(truth, value - truth)
        except ImportError as missing:
            print(f"| dp-accounting | not installed: {missing.name} | | | | |")
            continue
        if cells is None:
            print("| dp-accounting | no cells are narrow enough | | | | |")
            continue
        value, seconds, memory = measured(lambda: dp_accounting_poisson(SIGMA, cells))  # noqa: B023
        row = f"{value:.7f} | {value - truth:.1e} | {seconds:.3f} | {seconds / ours:.2f} | {memory:.0f}"
        print(f"| dp-accounting, cells {cells:.1e} | {row} |", flush=True)
    peers = (("autodp, Renyi", autodp_poisson), ("prv-accountant, error 0.01", prv_poisson))
    for name, peer in peers:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value, seconds, memory = measured(lambda: peer(SIGMA), repeat=1)  # noqa: B023
        except ImportError as missing:
            print(f"| {name} | not installed: {missing.name} | | | | |")
            continue
        row = f"{value:.7f} | {value - truth:.1e} | {seconds:.3f} | {seconds / ours:.2f} | {memory:.0f}"
        print(f"| {name} | {row} |", flush=True)
    print()


def schedule() -> Composed:
    """Return 1,000 steps with as many noises."""
    return Composed(WithoutReplacementGaussianStep(s, BATCH, RECORDS) for s in np.linspace(3, 12, 1000).tolist())


def answer(event: Composed | SelfComposed, adjacency: str) -> Callable[[], float]:
    """Return a call for the guaranteed epsilon of an event."""
    return lambda: DistributionAccountant(adjacency).compose(event).epsilon(DELTA)  # type: ignore[arg-type]


def lowest(event: Composed) -> float:
    """Return the lower bound that the table of an accountant gives, beside the upper one."""
    table = DistributionAccountant("add_remove").compose(event).table(DELTA)
    return float(table.loc[table["bound"] == "lower", "epsilon"].iloc[0])


CASES: list[tuple[str, Callable[[], float]]] = [
    ("without replacement, both bounds", lambda: pld_fswor(SIGMA, STEPS, DELTA, q=RATE).upper),
    (
        "without replacement, replaced, both bounds",
        lambda: pld_fswor(SIGMA, STEPS, DELTA, q=RATE, adjacency="replace_one").upper,
    ),
    (
        "with replacement, B 64, N 10,000, noise 2, T 1000, both bounds",
        lambda: pld_fswr(2.0, 1000, DELTA, batch_size=64, dataset_size=10_000).upper,
    ),
    ("1,000 noises from 3 to 12, one record more or less", answer(schedule(), "add_remove")),
    ("the same, lower bound of the table", lambda: lowest(schedule())),
    ("the same, one record replaced", answer(schedule(), "replace_one")),
    (
        "1,000,000,000 Poisson steps, noise 300",
        answer(SelfComposed(PoissonGaussianStep(300.0, RATE), 10**9), "add_remove"),
    ),
    (
        "noise for epsilon 1, one record replaced",
        lambda: calibrate_sigma(1.0, DELTA, STEPS, batch_size=BATCH, dataset_size=RECORDS, method="pld"),
    ),
]


def main() -> None:
    """Print all tables."""
    print_poisson()
    print("| what | value | s | MB |\n|---|---|---|---|")
    for what, call in CASES:
        value, seconds, peak = measured(call, repeat=1)
        print(f"| {what} | {value:.6f} | {seconds:.2f} | {peak:.0f} |", flush=True)


if __name__ == "__main__":
    main()
