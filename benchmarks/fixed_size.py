"""Rényi accounting of fixed-size minibatches beside dp-accounting and autodp: times, and the numbers that come out.

Run with ``python -m benchmarks.fixed_size``; ``python -m benchmarks.fixed_size DIRECTORY`` also draws the paper's
figures there. The peers' replace-one accountants take noise relative to the clipping norm, though a replaced record
moves the sum of a batch of fixed size by twice that; "halved" passes half the noise multiplier, which makes them valid.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import timed
from benchmarks.papers import fixed_size_figures as figures
from benchmarks.papers.minibatch_epsilons import refine_epsilon
from thresholdout.privacy.accounting import rdp_fswor, rdp_fswor_lower, rdp_fswr, rdp_poisson, rdp_wang
from thresholdout.privacy.accounting.accountants.renyi_conversion import (
    RenyiEpsilon,
    default_orders,
    rdp_to_epsilon,
)

SIGMA, BATCH, RECORDS, STEPS, DELTA = 6.0, 120, 50_000, 104_000, 1e-5
Q = BATCH / RECORDS
REPEATS = 5


def epsilon(orders: Any, rdp: Any) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rdp_to_epsilon(orders, STEPS * np.asarray(rdp), DELTA).epsilon


def dp_accounting_poisson(orders: Any) -> Any:
    import dp_accounting
    from dp_accounting import rdp

    peer = rdp.RdpAccountant(list(orders))
    peer.compose(dp_accounting.PoissonSampledDpEvent(Q, dp_accounting.GaussianDpEvent(SIGMA)))
    return np.array(peer._rdp)


def dp_accounting_fixed(orders: Any, noise_multiplier: float) -> Any:
    import dp_accounting
    from dp_accounting import rdp

    peer = rdp.RdpAccountant(list(orders), dp_accounting.NeighboringRelation.REPLACE_ONE)
    step = dp_accounting.GaussianDpEvent(noise_multiplier)
    peer.compose(dp_accounting.SampledWithoutReplacementDpEvent(RECORDS, BATCH, step))
    return np.array(peer._rdp)


def autodp_fixed(orders: Any, noise_multiplier: float) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from autodp import mechanism_zoo, transformer_zoo

        step = mechanism_zoo.GaussianMechanism(sigma=noise_multiplier)
        step.neighboring = "replace_one"
        sampled = transformer_zoo.AmplificationBySampling(PoissonSampling=False)(step, Q)
        return np.array([sampled.RenyiDP(float(a)) for a in orders])


def refined(adjacency: str) -> RenyiEpsilon:
    return refine_epsilon(lambda orders: STEPS * rdp_fswor(orders, SIGMA, Q, adjacency=adjacency), DELTA)


def main() -> None:
    orders = default_orders()
    orders = orders[orders <= 63]  # 151 of them
    replaced: dict[str, Any] = {"adjacency": "replace_one"}
    rows: list[tuple[str, Callable[[], Any]]] = [
        ("add/remove, exact", lambda: rdp_fswor(orders, SIGMA, Q)),
        ("Poisson add/remove, exact", lambda: rdp_poisson(orders, SIGMA, Q)),
        ("Poisson add/remove, dp-accounting", lambda: dp_accounting_poisson(orders)),
        ("replace-one, smallest proved", lambda: rdp_fswor(orders, SIGMA, Q, **replaced)),
        ("replace-one, binomial sum", lambda: rdp_fswor(orders, SIGMA, Q, **replaced, method="binomial")),
        ("replace-one, envelope", lambda: rdp_fswor(orders, SIGMA, Q, **replaced, method="envelope")),
        (
            "replace-one, Theorem 3.4 as published (m=4)",
            lambda: rdp_fswor(orders, SIGMA, Q, **replaced, method="taylor", leading="paper"),
        ),
        ("replace-one, Wang et al.", lambda: rdp_wang(orders, SIGMA, Q)),
        ("replace-one, dp-accounting halved", lambda: dp_accounting_fixed(orders, SIGMA / 2)),
        ("replace-one, dp-accounting as is (below what is attained)", lambda: dp_accounting_fixed(orders, SIGMA)),
        ("replace-one, autodp halved", lambda: autodp_fixed(orders, SIGMA / 2)),
        ("with replacement, exact", lambda: rdp_fswr(orders, SIGMA, BATCH, RECORDS)),
    ]
    print(f"sigma {SIGMA:g}, B {BATCH}, N {RECORDS}, {STEPS} steps, delta {DELTA:g}; {orders.size} orders\n")
    print("| bound | one step at order 2 | epsilon | time (ms) |")
    print("|---|---|---|---|")
    at_two = int(np.flatnonzero(orders == 2.0)[0])
    for name, call in rows:
        found, seconds = timed(call, REPEATS)
        print(f"| {name} | {found[at_two]:.6e} | {epsilon(orders, found):.4f} | {1000 * seconds:.1f} |")
    lower = rdp_fswor_lower(2, SIGMA, Q)
    print(f"\nattained at order 2 under either adjacency: {lower:.6e}")
    for adjacency in ("add_remove", "replace_one"):
        best, seconds = timed(partial(refined, adjacency), REPEATS)
        print(f"{adjacency}, refined: epsilon {best.epsilon:.6f} at order {best.order:.2f}, {1000 * seconds:.0f} ms")
    if len(sys.argv) == 2 and Path(sys.argv[1]).is_dir():
        draw(Path(sys.argv[1]))


def draw(directory: Path) -> None:
    for number in (1, 2, 3, 4, 6, 7, 8, 9):
        table = getattr(figures, f"figure{number}")()
        ax = figures.picture(table, ylabel="epsilon" if number in (3, 4) else "Renyi divergence of one step")
        ax.set_title(f"Figure {number}")
        ax.figure.savefig(directory / f"fixed_size_{number}.png", dpi=120)


if __name__ == "__main__":
    main()
