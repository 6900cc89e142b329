"""Mechanisms from their parameters, and parameters through a ledger."""

from __future__ import annotations

import json

import pytest

from tests.cases import for_each
from thresholdout.errors import InputError
from thresholdout.mechanisms import (
    DWORK_RATIOS,
    ClaimsMechanism,
    ClaimsParameters,
    Ladder,
    LadderParameters,
    Parameters,
    SparseVectorMechanism,
    SparseVectorParameters,
    build_mechanism,
    parameters_from_json,
    parameters_to_json,
)

SPARSE = SparseVectorParameters(0.1, 1 / 3, 3, None, grid=1 / 7, ratios=DWORK_RATIOS)
ALL: list[tuple[Parameters, type]] = [
    (SPARSE, SparseVectorMechanism),
    (LadderParameters(0.99, "minimize", 5, 2.5), Ladder),
    (ClaimsParameters(0.9, queries=1 << 40, noise=1 / 3), ClaimsMechanism),
]


@for_each(("parameters", "kind"), ALL)
def test_parameters_survive_a_ledger(parameters: Parameters, kind: type) -> None:
    again = parameters_from_json(json.loads(json.dumps(parameters_to_json(parameters))))
    assert again == parameters
    assert type(again) is type(parameters)
    assert type(build_mechanism(again, 1000)) is kind


@for_each(
    ("stored", "argument"),
    [
        ({}, "mechanism"),
        ({"mechanism": "other"}, "mechanism"),
        ({"mechanism": "sparse-vector"}, "parameters"),
        ({"mechanism": "claims", "queries": 3, "more": 1}, "parameters"),
        ({"mechanism": "claims", "queries": 0}, "queries"),
        ({"mechanism": "sparse-vector", "threshold": {}, "noise_scale": 0.1, "budget": 1}, "threshold"),
    ],
)
def test_what_is_no_parameters(stored: dict[str, object], argument: str) -> None:
    with pytest.raises(InputError, match=argument):
        parameters_from_json(stored)
