"""State machines that answer queries: pure, without input or output, and without a clock.

Every mechanism is a `Mechanism`: a state and two numbers go in, a state and an `Outcome` come out. The guard keeps
the state in a ledger, as opaque text, and releases the outcome only after the new state is stored.
"""

from __future__ import annotations

from thresholdout.mechanisms.base import Mechanism, MechanismState, Outcome
from thresholdout.mechanisms.precision import mean_error
from thresholdout.mechanisms.thresholdout import (
    ZHAO_RATIOS,
    NoiseRatios,
    SparseVector,
    ThresholdoutParameters,
    ThresholdoutState,
    interaction_epsilon,
    noise_slack,
)

__all__ = [
    "ZHAO_RATIOS",
    "Mechanism",
    "MechanismState",
    "NoiseRatios",
    "Outcome",
    "SparseVector",
    "ThresholdoutParameters",
    "ThresholdoutState",
    "interaction_epsilon",
    "mean_error",
    "noise_slack",
]
