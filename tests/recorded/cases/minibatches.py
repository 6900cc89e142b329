"""Steps on minibatches: Rényi divergences, privacy-loss distributions, samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.papers.minibatch_epsilons import pld_fswor, pld_fswr, pld_poisson
from benchmarks.papers.minibatch_variance import minibatch_variance
from tests.recorded.cases.registry import Cases
from thresholdout.privacy.accounting import (
    E_tilde,
    F_tilde,
    H_taylor,
    rdp_fswor,
    rdp_fswor_lower,
    rdp_fswr,
    rdp_fswr_lower,
    rdp_poisson,
    rdp_wang,
    remainder_add_remove,
    sample_minibatch,
    taylor_moment,
    taylor_moment_bound,
)
from thresholdout.privacy.accounting.pld.distribution import PrivacyLossDistribution
from thresholdout.privacy.accounting.pld.minibatch_steps import fswor_pairs
from thresholdout.privacy.accounting.pld.pairs import Laplace, gaussian, randomised_response

CASES = Cases()

ORDERS = [2.0, 3.5, 8.0, 20.0]


@CASES.case("minibatches: renyi, without replacement")
def without_replacement() -> Any:
    return [
        [adjacency, method, rdp_fswor(ORDERS, 2.0, 0.02, adjacency=adjacency, method=method)]
        for adjacency in ("add_remove", "replace_one")
        for method in ("auto", "taylor")
    ]


@CASES.case("minibatches: renyi, without replacement, from below")
def without_replacement_lower() -> Any:
    return rdp_fswor_lower([2, 3, 8], 2.0, 0.02)


@CASES.case("minibatches: renyi, with replacement")
def with_replacement() -> Any:
    return [rdp_fswr(ORDERS, 3.0, 10, 1000), rdp_fswr_lower(3, 3.0, 10, 1000)]


@CASES.case("minibatches: renyi, poisson")
def poisson() -> Any:
    return [rdp_poisson(ORDERS, 2.0, 0.02, adjacency=adjacency) for adjacency in ("add_remove", "replace_one")]


@CASES.case("minibatches: renyi, as published")
def published() -> Any:
    return [rdp_wang([2, 3, 8], 2.0, 0.02), rdp_wang([2, 3, 8], 2.0, 0.02, bound="lower")]


@CASES.case("minibatches: parts of taylor bounds")
def taylor_parts() -> Any:
    return [
        F_tilde(3.0, 2.0, 4),
        E_tilde(3.0, 2.0, 0.02, 4),
        H_taylor(3.0, 2.0, 0.02, 4),
        remainder_add_remove(3.0, 2.0, 0.02, 4),
        [taylor_moment(2.0, k) for k in (2, 3, 5)],
        [taylor_moment_bound(2.0, k) for k in (3, 5)],
    ]


def _interval(found: Any) -> Any:
    return [found.lower, found.estimate, found.upper]


for _adjacency in ("add_remove", "replace_one"):
    for _name, _pld in (("poisson", pld_poisson), ("without replacement", pld_fswor), ("with replacement", pld_fswr)):
        CASES.add(
            f"minibatches: distribution, {_name}, {_adjacency}",
            lambda pld=_pld, adjacency=_adjacency: _interval(  # type: ignore[misc]
                pld(3.0, 20, 1e-5, batch_size=10, dataset_size=1000, adjacency=adjacency, accuracy=1e-3)
            ),
        )


@CASES.case("minibatches: distributions of other pairs")
def other_pairs() -> Any:
    found = []
    for steps in ({gaussian(0.1): 10}, {Laplace(0.1): 10}, {randomised_response(0.3, 1e-7): 5, gaussian(0.2): 2}):
        distribution = PrivacyLossDistribution(steps)  # type: ignore[arg-type]
        found.append([_interval(distribution.epsilon(1e-4)), _interval(distribution.delta(0.4))])
    return found


@CASES.case("minibatches: composed distributions")
def composed() -> Any:
    pairs = fswor_pairs(2.0, 0.05)
    one = PrivacyLossDistribution([pairs[0]])
    return _interval(one.self_compose(10).compose(PrivacyLossDistribution([gaussian(0.05)])).epsilon(1e-5, 1e-3))


@CASES.case("minibatches: drawn records")
def drawn() -> Any:
    return [sample_minibatch(np.random.default_rng(1), 50, 6, scheme) for scheme in ("wor", "wr", "poisson")]


@CASES.case("minibatches: variances of gradients")
def variances() -> Any:
    return minibatch_variance([0.0, 1.0, 0.25, 0.5, 3.0], 2)
