"""What plans say: ways of asking, half-widths, records, queries, parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from graphs import DependenceModel, Groups, Independent, MarkovChain, MovingWindow
from tests.recorded.cases.registry import Cases
from thresholdout import Plan, PlanError, plan
from thresholdout.certificates import Certificate
from thresholdout.mechanisms import parameters_to_json
from thresholdout.planning.algorithm_1 import algorithm_1, quiet_rise
from thresholdout.planning.declaration import Claims, Declaration, MechanismName
from thresholdout.planning.declared_parameters import choose_parameters

CASES = Cases()

CALLS: dict[str, dict[str, Any]] = {
    "300 records": {"records": 300},
    "2000 records, 100 queries": {"records": 2000, "queries": 100, "anticipated_score": 0.95},
    "2000 records and as many to train": {"records": 2000, "queries": 100, "anticipated_score": 0.95, "n_train": 2000},
    "20000 records, 1000 queries": {"records": 20_000, "queries": 1000, "n_train": 20_000},
    "few training records": {"records": 2000, "queries": 20, "n_train": 200},
    "a low score": {"records": 1000, "queries": 20, "anticipated_score": 0.55},
    "at 0.99": {"records": 1000, "queries": 20, "confidence": 0.99},
    "fixed": {"records": 1000, "queries": 20, "adaptive": False},
    "a budget": {"records": 3000, "queries": 20, "budget": 2, "anticipated_score": 0.9},
    "a width": {"width": 0.03, "queries": 20, "anticipated_score": 0.95},
    "a width of a fixed list": {"records": 2000, "width": 0.03, "anticipated_score": 0.95, "adaptive": False},
}

MODELS: dict[str, Callable[[], DependenceModel]] = {
    "patients": lambda: Groups([k // 5 for k in range(10_000)]),
    "moving window": lambda: MovingWindow(3000, 2),
    "chain": lambda: MarkovChain([[0.9, 0.1], [0.2, 0.8]], 5000),
}


def _certificate(certificate: Certificate) -> Any:
    return [certificate.tolerance, certificate.route, certificate.routes[["tolerance", "applies", "sound", "chosen"]]]


def _plan(found: Plan) -> Any:
    return {
        "records": found.records,
        "queries": found.queries,
        "asked": found.asked,
        "half_width": found.half_width,
        "ways": [
            [way.name, way.half_width, way.records, way.queries, parameters_to_json(way.parameters)]
            for way in found.ways
            if way.parameters is not None
        ],
        "recommended": found.recommended.name,
        "warnings": len(found.warnings),
        "certificate": _certificate(found.certificate),
    }


def _planned(call: dict[str, Any]) -> Any:
    try:
        return _plan(plan(**call))
    except PlanError as error:
        return type(error).__name__


for _name, _call in CALLS.items():
    CASES.add(f"plans: {_name}", lambda call=_call: _planned(call))  # type: ignore[misc]
for _name, _make in MODELS.items():
    CASES.add(f"plans: {_name}", lambda make=_make: _plan(plan(make(), queries=50, anticipated_score=0.9)))  # type: ignore[misc]


@CASES.case("plans: parameters of algorithm 1")
def planned_algorithm_1() -> Any:
    found = [
        algorithm_1(Independent(10_000), queries=20, budget=2),
        algorithm_1(Independent(10_000), queries=20, budget=2, expected=0.9, quiet_margin=0.0),
        algorithm_1(Groups([k // 2 for k in range(20_000)]), queries=5, budget=1),
    ]
    return [[parameters_to_json(each) for each in found], quiet_rise(1000, 0.05)]


@CASES.case("plans: what a guard chooses by itself")
def chosen_parameters() -> Any:
    declared = Declaration(queries=20, sampling="iid")
    names: tuple[MechanismName | Claims, ...] = (
        Claims(holdout_answers=3),
        Claims(holdout_answers=3, noise=0.0),
        "ladder",
    )
    return [
        parameters_to_json(choose_parameters(Independent(2000), replace(declared, mechanism=name), 2000))
        for name in names
    ]
