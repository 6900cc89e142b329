"""State machines that answer queries: pure, without input or output, and without a clock.

Every mechanism is a `Mechanism`. A state, a train value and a reading of the holdout go in; a state and an `Outcome`
come out. The guard keeps the state in a ledger, as opaque text, and releases the outcome only after the new state is
stored.
"""

from __future__ import annotations

from thresholdout.mechanisms.base import UNKNOWN, Known, Mechanism, MechanismState, Outcome, Part, Past
from thresholdout.mechanisms.catalogue import build_mechanism, parameters_from_json, parameters_to_json
from thresholdout.mechanisms.claims import (
    ClaimsMechanism,
    ClaimsParameters,
    ClaimsState,
    FinalCheck,
    FoldClaims,
    FoldClaimsParameters,
)
from thresholdout.mechanisms.kind import Parameters
from thresholdout.mechanisms.ladder import Ladder, LadderParameters, LadderState
from thresholdout.mechanisms.rounding_costs import mean_error
from thresholdout.mechanisms.sparse_vector import (
    DWORK_RATIOS,
    ZHAO_RATIOS,
    NoiseRatios,
    SparseVectorMechanism,
    SparseVectorParameters,
    SparseVectorState,
    interaction_epsilon,
    noise_slack,
)

__all__ = [
    "DWORK_RATIOS",
    "UNKNOWN",
    "ZHAO_RATIOS",
    "ClaimsMechanism",
    "ClaimsParameters",
    "ClaimsState",
    "FinalCheck",
    "FoldClaims",
    "FoldClaimsParameters",
    "Known",
    "Ladder",
    "LadderParameters",
    "LadderState",
    "Mechanism",
    "MechanismState",
    "NoiseRatios",
    "Outcome",
    "Parameters",
    "Part",
    "Past",
    "SparseVectorMechanism",
    "SparseVectorParameters",
    "SparseVectorState",
    "build_mechanism",
    "interaction_epsilon",
    "mean_error",
    "noise_slack",
    "parameters_from_json",
    "parameters_to_json",
]
