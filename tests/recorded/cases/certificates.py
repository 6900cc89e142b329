"""What certificates say: tolerances by every route, half-widths, intervals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from graphs import (
    Communities,
    DependenceModel,
    DependencyGraph,
    Groups,
    HiddenMarkov,
    Independent,
    MarkovChain,
    MovingWindow,
)
from tests.recorded.cases.registry import Cases
from thresholdout import Certificate, PlanError, certify
from thresholdout.certificates.after_releases import with_releases
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.certificates.drift_bound import belief_drift
from thresholdout.certificates.new_data import generalization_certificate
from thresholdout.certificates.problem import LargestError
from thresholdout.certificates.published_tolerances import (
    lemma_1_failure,
    theorem_1_records,
    theorem_2,
    theorem_2_tolerance,
    theorem_3_bits,
)
from thresholdout.errors import InputError
from thresholdout.mechanisms import (
    ClaimsParameters,
    FoldClaimsParameters,
    LadderParameters,
    NoiseRatios,
    Parameters,
    SparseVectorParameters,
    interaction_epsilon,
    noise_slack,
    parameters_to_json,
)
from thresholdout.mechanisms.claims.kinds import guard_width, list_width
from thresholdout.privacy.accounting import BlackBox, LaplaceAnswer, PoissonGaussianStep, SelfComposed

CASES = Cases()

TWO = [[0.9, 0.1], [0.2, 0.8]]
MILD = [[0.55, 0.45], [0.45, 0.55]]

MODELS: dict[str, Callable[[], DependenceModel]] = {
    "300 records": lambda: Independent(300),
    "2000 records": lambda: Independent(2000),
    "100000 records": lambda: Independent(100_000),
    "400 groups of 5": lambda: Groups([k // 5 for k in range(2000)]),
    "groups of many sizes": lambda: Groups([min(k % 37, k % 101) for k in range(3000)]),
    "moving window": lambda: MovingWindow(5000, 3),
    "chain": lambda: MarkovChain(TWO, 4000),
    "mild chain": lambda: MarkovChain(MILD, 5000),
    "hidden chain": lambda: HiddenMarkov(TWO, 3000, emission=MILD),
    "communities": lambda: Communities([k % 300 for k in range(3000)], emission=MILD),
    "dependency graph": lambda: DependencyGraph(_cycle(600)),
}

ALGORITHM_1: dict[str, Callable[[], SparseVectorParameters]] = {
    "narrow": lambda: SparseVectorParameters(0.06, 0.0025, budget=100, queries=1000),
    "few": lambda: SparseVectorParameters(0.05, 0.004, budget=2, queries=20),
    "on a grid": lambda: SparseVectorParameters(0.04, 0.001, budget=10, queries=100, grid=1 / 64),
    "other noise": lambda: SparseVectorParameters(0.05, 0.002, budget=5, queries=50, ratios=NoiseRatios(2.0, 4.0, 1.0)),
    "no limits": lambda: SparseVectorParameters(0.05, 0.002, budget=None, queries=None),
}

OTHERS: dict[str, Callable[[], Parameters]] = {
    "claims": lambda: ClaimsParameters(queries=100),
    "claims without noise": lambda: ClaimsParameters(0.9, noise=0.0),
    "claims before a final check": lambda: ClaimsParameters(queries=20, budget=3, max_half_width=0.2, final_check=True),
    "private claims": lambda: ClaimsParameters(epsilon=1.0, budget=5),
    "claims beside few training records": lambda: ClaimsParameters(queries=50, n_train=200.0),
    "ladder": lambda: LadderParameters(queries=100),
    "ladder, any number": lambda: LadderParameters(0.9, "minimize"),
}


def _cycle(n: int) -> Any:
    import networkx as nx

    return nx.cycle_graph(n)


def _table(certificate: Certificate) -> Any:
    return certificate.routes[["tolerance", "applies", "sound", "chosen"]]


def _widths(certificate: Certificate) -> Any:
    if certificate.chosen is None:
        return "nothing"
    sources: tuple[Literal["train", "holdout"], ...] = ("train", "holdout")
    widths = [
        _attempt(partial(certificate.half_width, query, hits, source))
        for query in (1, 5)
        for hits in (0, 1)
        for source in sources
    ]
    return widths + [_attempt(partial(certificate.interval, 1, 1, "holdout", value)) for value in (0.02, 0.5, 0.93)]


def _attempt(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except (InputError, PlanError) as error:
        return type(error).__name__


def _expected(certificate: Certificate) -> Any:
    return [_attempt(lambda v=value: certificate.expected_half_width(v)) for value in (0.5, 0.9, 0.99)]  # type: ignore[misc]


def _all(certificate: Certificate) -> Any:
    final = certificate.final
    return {
        "confidence": certificate.confidence,
        "tolerance": certificate.tolerance,
        "route": certificate.route,
        "states intervals": certificate.states_intervals,
        "epsilon": certificate.epsilon,
        "table": _table(certificate),
        "half-widths": _widths(certificate),
        "expected": _expected(certificate),
        "final": None if final is None else [final.share, final.half_width(0.9)],
    }


def _of(model: Callable[[], DependenceModel], parameters: Callable[[], Parameters], confidence: float = 0.95) -> Any:
    try:
        return _all(certify_parameters(model(), parameters(), confidence))
    except InputError as error:
        return type(error).__name__


def _by_hand(model: Callable[[], DependenceModel], parameters: Callable[[], SparseVectorParameters]) -> Any:
    asked = parameters()
    return _all(
        certify(
            model(),
            threshold=asked.threshold,
            noise_scale=asked.noise_scale,
            budget=asked.budget,
            queries=asked.queries,
            grid=asked.grid,
            ratios=asked.ratios,
            confidence=0.9,
        )
    )


for _parameters, _make in ALGORITHM_1.items():
    for _model in ("2000 records", "100000 records"):
        CASES.add(
            f"certificates: algorithm 1, {_parameters}: {_model}",
            lambda model=MODELS[_model], make=_make: _by_hand(model, make),  # type: ignore[misc]
        )
for _model, _records in MODELS.items():
    if _model not in ("2000 records", "100000 records"):
        CASES.add(
            f"certificates: algorithm 1, few: {_model}",
            lambda records=_records: _by_hand(records, ALGORITHM_1["few"]),  # type: ignore[misc]
        )
for _parameters, _other in OTHERS.items():
    CASES.add(
        f"certificates: {_parameters}: 2000 records",
        lambda make=_other: _of(MODELS["2000 records"], make),  # type: ignore[misc]
    )
    CASES.add(
        f"certificates: {_parameters}: groups at 0.99",
        lambda make=_other: _of(MODELS["400 groups of 5"], make, 0.99),  # type: ignore[misc]
    )


@CASES.case("certificates: claims for dependent records")
def dependent_claims() -> Any:
    entropy = ClaimsParameters(queries=40, effective=500.0, inflation=3.0)
    hoeffding = ClaimsParameters(inflation=2.5)
    return [
        _all(certify_parameters(MovingWindow(2000, 3), entropy)),
        _all(certify_parameters(MarkovChain(TWO, 4000), hoeffding)),
    ]


@CASES.case("certificates: releases about the holdout")
def releases() -> Any:
    parameters = ClaimsParameters(queries=20)
    model = Independent(2000)
    alone = certify_parameters(model, parameters)
    training = SelfComposed(PoissonGaussianStep(4.0, 0.01), 100)
    return [
        _all(with_releases(alone, model, parameters, event))
        for event in (BlackBox(0.01), LaplaceAnswer(50.0), training)
    ]


@CASES.case("certificates: releases beside algorithm 1")
def looks_beside_algorithm_1() -> Any:
    model, parameters = Independent(20_000), ALGORITHM_1["few"]()
    return _all(with_releases(certify_parameters(model, parameters), model, parameters, BlackBox(0.005)))


@CASES.case("certificates: generalisation of private learners")
def generalisation() -> Any:
    columns = ["bound", "kind"]
    patients = Groups([record // 5 for record in range(10_000)])
    training = SelfComposed(PoissonGaussianStep(6.0, 0.005), 20)
    asked: list[tuple[Any, Any]] = [
        (BlackBox(0.02), None),
        (BlackBox(0.01, 1e-7), None),
        (BlackBox(0.02), patients),
        (training, None),
    ]
    found = [generalization_certificate(event, 10_000, model) for event, model in asked]
    return [[each.bound, each.route, each.average, each.routes[columns]] for each in found]


@CASES.case("certificates: published theorems")
def published() -> Any:
    chain = MarkovChain(MILD, 5000)
    theorem = theorem_2(Independent(10_000), tolerance=0.1, queries=1000, budget=1, beta=0.05)
    return [
        theorem_1_records(Groups([0] * 3944), tolerance=0.1, noise_scale=27.001 / 0.4, budget=1, beta=0.05),
        theorem_1_records(chain, tolerance=0.2, noise_scale=0.01, budget=2, beta=0.05),
        lemma_1_failure(10_000, 0.1, 1e-4),
        [theorem.noise_scale, theorem.threshold, theorem.records],
        theorem_2_tolerance(Independent(10_000), queries=1000, budget=1, beta=0.05),
        theorem_2_tolerance(chain, queries=100, budget=1, beta=0.05),
        theorem_3_bits(10_000, 0.01, 0.05),
        belief_drift(0.1, 10, 0.05),
    ]


@CASES.case("certificates: widths of sessions")
def sessions() -> Any:
    claims = [
        ClaimsParameters(queries=100),
        ClaimsParameters(),
        ClaimsParameters(queries=20, noise=0.0, n_train=500),
    ]
    return [
        [
            width(parameters, n, 20, score)
            for width in (guard_width, list_width)
            for n in (300, 2000)
            for score in (0.7, 0.97)
        ]
        for parameters in claims
    ]


@CASES.case("certificates: largest errors of the noise")
def largest_errors() -> Any:
    law = LargestError(7)
    return [
        [law.surprise_quantile(p), law.answer_quantile(p), law.quantile(p, 3.0), law.superquantile(p, 3.0, 0.5)]
        for p in (0.5, 0.01, 1e-6)
    ]


@CASES.case("certificates: parameters as a ledger keeps them")
def stored_parameters() -> Any:
    made = [make() for make in (*ALGORITHM_1.values(), *OTHERS.values())]
    return [parameters_to_json(parameters) for parameters in (*made, FoldClaimsParameters(400.0, 5.0))]


@CASES.case("certificates: epsilon of an interaction")
def epsilon_of_an_interaction() -> Any:
    return [interaction_epsilon(1000, 0.01, 3), interaction_epsilon(1000, 0.01, None), noise_slack(1000, 0.01)]
