"""What DP-SGD on minibatches of fixed size leaks: epsilons and times, beside dp-accounting, autodp and prv-accountant.

Run with ``python -m benchmarks.accounting``. A peer that is not installed is left out, and the tables say so.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd

from benchmarks import timed
from thresholdout.privacy.accounting import (
    Accountant,
    BlackBox,
    Composed,
    DistributionAccountant,
    Event,
    PoissonGaussianStep,
    PureAccountant,
    RenyiAccountant,
    SelfComposed,
    WithoutReplacementGaussianStep,
    calibrate_sigma,
    rdp_fswor,
)
from thresholdout.privacy.accounting.accountants.renyi_conversion import default_orders
from thresholdout.privacy.accounting.events.event_types import Adjacency

STEPS, SIGMA, BATCH, RECORDS, DELTA = 104_000, 6.0, 120, 50_000, 1e-5
RATE = BATCH / RECORDS


def ours(kind: Callable[[Adjacency], Accountant], adjacency: Adjacency, event: Event) -> pd.DataFrame:
    return kind(adjacency).compose(event).table(DELTA)


def dp_accounting_rdp(adjacency: str, multiplier: float) -> float:
    """Return dp-accounting's epsilon for the sampler without replacement, which knows replaced records only."""
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    event = dp_accounting.SampledWithoutReplacementDpEvent(RECORDS, BATCH, dp_accounting.GaussianDpEvent(multiplier))
    relation = getattr(dp_accounting.NeighboringRelation, adjacency)
    accountant = RdpAccountant(neighboring_relation=relation)
    return float(accountant.compose(event, STEPS).get_epsilon(DELTA))


def dp_accounting_poisson(sigma: float, interval: float) -> float:
    """Return dp-accounting's epsilon for Poisson batches, by privacy-loss distributions."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    event = dp_accounting.PoissonSampledDpEvent(RATE, dp_accounting.GaussianDpEvent(sigma))
    accountant = PLDAccountant(value_discretization_interval=interval)
    return float(accountant.compose(event, STEPS).get_epsilon(DELTA))


def autodp_replaced(multiplier: float) -> float:
    """Return autodp's epsilon for the sampler without replacement with replaced records set by hand."""
    from autodp.mechanism_zoo import GaussianMechanism
    from autodp.transformer_zoo import AmplificationBySampling, Composition

    mechanism = GaussianMechanism(multiplier, name="step")
    mechanism.neighboring = "replace_one"
    sampled = AmplificationBySampling(PoissonSampling=False)(mechanism, RATE, improved_bound_flag=False)
    return float(Composition()([sampled], [STEPS]).get_approxDP(DELTA))


def prv_poisson(sigma: float) -> float:
    """Return prv-accountant's upper epsilon for Poisson batches."""
    from prv_accountant import PRVAccountant  # type: ignore[import-not-found]
    from prv_accountant.privacy_random_variables import (  # type: ignore[import-not-found]
        PoissonSubsampledGaussianMechanism,
    )

    variable = PoissonSubsampledGaussianMechanism(sampling_probability=RATE, noise_multiplier=sigma)
    accountant = PRVAccountant(prvs=variable, max_self_compositions=STEPS, eps_error=0.01, delta_error=DELTA / 1000)
    return float(accountant.compute_epsilon(DELTA, STEPS)[2])


HALF = SIGMA / 2
PEERS: list[tuple[str, str, str, str, Callable[[], float]]] = [
    (
        "dp-accounting",
        "replace_one",
        "renyi, noise 6 as it is",
        "below what is attained at each order",
        lambda: dp_accounting_rdp("REPLACE_ONE", SIGMA),
    ),
    (
        "dp-accounting",
        "replace_one",
        "renyi, noise 3 by hand",
        "upper",
        lambda: dp_accounting_rdp("REPLACE_ONE", HALF),
    ),
    ("dp-accounting", "add_remove", "renyi", "upper", lambda: dp_accounting_rdp("ADD_OR_REMOVE_ONE", HALF)),
    (
        "dp-accounting",
        "add_remove",
        "distribution, Poisson at noise 3, cells 1e-4",
        "upper",
        lambda: dp_accounting_poisson(HALF, 1e-4),
    ),
    ("autodp", "replace_one", "renyi, noise 3 by hand", "upper", lambda: autodp_replaced(HALF)),
    ("prv-accountant", "add_remove", "distribution, Poisson at noise 3", "upper", lambda: prv_poisson(HALF)),
]


def print_learner() -> None:
    """Print the epsilons of one learner, here and there."""
    step = WithoutReplacementGaussianStep(SIGMA, BATCH, RECORDS)
    event = SelfComposed(step, STEPS)
    print(f"{STEPS:,} steps, noise {SIGMA:g}, {BATCH} of {RECORDS:,} records without replacement, delta {DELTA:g}:\n")
    print("| who | neighbours | route | epsilon | what it is | s |\n|---|---|---|---|---|---|")
    both: tuple[Adjacency, Adjacency] = ("add_remove", "replace_one")
    for adjacency in both:
        for kind in (RenyiAccountant, DistributionAccountant):
            table, seconds = timed(lambda: ours(kind, adjacency, event))  # noqa: B023
            for row in table.itertuples():
                print(f"| here | {adjacency} | {row.accountant} | {row.epsilon:.6f} | {row.bound} | {seconds:.3f} |")
    for who, neighbours, route, what, call in PEERS:
        print(f"| {who} | {neighbours} | {route} | {tried(call, what)} |")
    print()


def tried(call: Callable[[], float], what: str) -> str:
    """Return a peer's epsilon and time, or why there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value, seconds = timed(call, repeat=1)
        except ImportError as error:
            return f"- | not installed ({error.name}) | -"
        except Exception as error:
            return f"- | refused: {type(error).__name__} | -"
    return f"{value:.6f} | {what} | {seconds:.3f}"


def print_poisson() -> None:
    """Print the distribution route for Poisson batches, beside the peers'."""
    event = SelfComposed(PoissonGaussianStep(SIGMA, RATE), STEPS)
    print("Poisson batches, one record more or less, the same learner otherwise:\n")
    print("| who | epsilon | what it is | s |\n|---|---|---|---|")
    table, seconds = timed(lambda: ours(DistributionAccountant, "add_remove", event))
    for row in table.itertuples():
        print(f"| here | {row.epsilon:.7f} | {row.bound} | {seconds:.3f} |")
    for cells in (1e-3, 1e-4, 1e-5):
        print(f"| dp-accounting, cells {cells:g} | {tried(lambda: dp_accounting_poisson(SIGMA, cells), 'upper')} |")  # noqa: B023
    print(f"| prv-accountant | {tried(lambda: prv_poisson(SIGMA), 'upper')} |")
    print()


def print_times() -> None:
    """Print what curves, schedules and calibrations take."""
    print("| what | s |\n|---|---|")
    orders = default_orders()
    for adjacency in ("add_remove", "replace_one"):
        curve = timed(lambda: rdp_fswor(orders, SIGMA, RATE, adjacency=adjacency))[1]  # noqa: B023
        print(f"| {orders.size} orders, {adjacency} | {curve:.4f} |")
    schedule = Composed(WithoutReplacementGaussianStep(s, BATCH, RECORDS) for s in np.linspace(3, 12, 1000).tolist())
    pure = Composed(BlackBox(e) for e in np.linspace(1e-3, 1e-2, 1000).tolist())
    schedules: tuple[tuple[str, Callable[[Adjacency], Accountant], Adjacency, Event], ...] = (
        ("renyi", RenyiAccountant, "add_remove", schedule),
        ("renyi", RenyiAccountant, "replace_one", schedule),
        ("distribution", DistributionAccountant, "add_remove", schedule),
        ("pure", PureAccountant, "replace_one", pure),
    )
    for name, kind, adjacency, event in schedules:
        value, seconds = timed(lambda: kind(adjacency).compose(event).epsilon(DELTA), repeat=1)  # noqa: B023
        print(f"| a schedule of 1,000 different steps, {name}, {adjacency}: epsilon {value:.6g} | {seconds:.2f} |")
    for count in (1, 10**9):
        light = SelfComposed(WithoutReplacementGaussianStep(1e4, BATCH, RECORDS), count)
        _, seconds = timed(lambda: RenyiAccountant().compose(light).epsilon(DELTA))  # noqa: B023
        print(f"| {count:,} equal steps, renyi | {seconds:.4f} |")
    for method in ("rdp", "pld"):
        sigma, seconds = timed(
            lambda: calibrate_sigma(1.0, DELTA, STEPS, batch_size=BATCH, dataset_size=RECORDS, method=method),  # noqa: B023
            repeat=1,
        )
        print(f"| noise for epsilon 1 with replaced records, {method}: {sigma:.5f} | {seconds:.2f} |")
    print()


def main(words: list[str] | None = None) -> None:
    """Print all tables."""
    print_learner()
    print_poisson()
    print_times()


if __name__ == "__main__":
    main(sys.argv[1:])
