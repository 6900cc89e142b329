"""Mechanisms from their parameters, and parameters through a ledger."""

from __future__ import annotations

import json

import pytest

from thresholdout.errors import InputError
from thresholdout.mechanisms import (
    DWORK_RATIOS,
    GaussianGuard,
    GaussianParameters,
    Ladder,
    LadderParameters,
    Parameters,
    SparseVectorMechanism,
    Splitting,
    SplittingParameters,
    ThresholdoutParameters,
    build_mechanism,
    parameters_from_json,
    parameters_to_json,
)

SPARSE = ThresholdoutParameters(0.1, 1 / 3, 3, None, grid=1 / 7, ratios=DWORK_RATIOS)
SCHEDULE = GaussianParameters([0.3, 0.1 + 1e-17, 0.1], queries=2, threshold=0.05, grid=1 / 3)
ALL: list[tuple[Parameters, type]] = [
    (SPARSE, SparseVectorMechanism),
    (SCHEDULE, GaussianGuard),
    (GaussianParameters(0.1), GaussianGuard),
    (LadderParameters(0.99, "minimize", 5, 2.5), Ladder),
    (SplittingParameters(4), Splitting),
]


@pytest.mark.parametrize(("parameters", "kind"), ALL)
def test_parameters_survive_a_ledger(parameters: Parameters, kind: type) -> None:
    again = parameters_from_json(json.loads(json.dumps(parameters_to_json(parameters))))
    assert again == parameters
    assert type(again) is type(parameters)
    assert type(build_mechanism(again, 1000)) is kind


def test_groups_reach_the_mechanisms_that_part_records() -> None:
    labels = [record // 50 for record in range(1000)]
    with pytest.raises(InputError, match="at most 20"):
        build_mechanism(SplittingParameters(21), 1000, labels)


@pytest.mark.parametrize(
    ("stored", "argument"),
    [
        ({}, "mechanism"),
        ({"mechanism": "other"}, "mechanism"),
        ({"mechanism": "splitting"}, "parameters"),
        ({"mechanism": "splitting", "queries": 3, "more": 1}, "parameters"),
        ({"mechanism": "splitting", "queries": 0}, "queries"),
        ({"mechanism": "gaussian", "schedule": {}}, "schedule"),
    ],
)
def test_what_is_no_parameters(stored: dict[str, object], argument: str) -> None:
    with pytest.raises(InputError, match=argument):
        parameters_from_json(stored)
