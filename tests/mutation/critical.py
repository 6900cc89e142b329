"""Definitions whose mutants are all tried: a wrong sign in one of them is a guarantee that does not hold."""

from __future__ import annotations

from typing import Final

#: Modules, and the definitions in them; the empty name stands for the whole module.
CRITICAL: Final[dict[str, tuple[str, ...]]] = {
    # conservative rounding
    "graphs.numerics.rounding": ("",),
    "graphs.numerics.bisection": ("",),
    "thresholdout.privacy.accounting.bound_arguments": ("",),
    "thresholdout.mechanisms.rounding_costs": ("mean_error", "integer_sensitivity", "round_up"),
    "thresholdout.certificates.route": ("larger_side", "Route"),  # and which routes are eligible
    # which routes apply, and are picked
    "thresholdout.certificates.certificate": ("certify",),
    "thresholdout.certificates.certify_parameters": ("",),
    # shares of beta
    "thresholdout.guard.query_engine": ("failure_share",),
    "thresholdout.mechanisms.claims.score": ("lowered",),
    "thresholdout.mechanisms.claims.final": ("share_of",),
    "thresholdout.mechanisms.claims.kinds": ("FinalCheck",),
    "thresholdout.mechanisms.ladder": ("Ladder._shares", "Ladder._after", "Ladder._paid", "_lower", "_upper"),
    "thresholdout.planning.algorithm_1": ("quiet_rise",),
    # scales of noise
    "thresholdout.mechanisms.sparse_vector": ("interaction_epsilon", "noise_slack", "_resolution", "_scales"),
    "thresholdout.mechanisms.claims.query_claims": ("Private", "private_noise", "EdgeNoise"),
    # tails
    "thresholdout.limits.binomial": ("",),
    "thresholdout.limits.entropy": ("",),
    "thresholdout.limits.bets": ("log_wealth", "bet_lower"),  # the others are guesses, not limits
    "thresholdout.limits.random_estimands": ("",),
}
