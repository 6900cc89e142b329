"""Definitions whose mutants are all tried: a wrong sign in one of them is a guarantee that does not hold."""

from __future__ import annotations

from typing import Final

#: Modules, and the definitions in them; the empty name stands for the whole module.
CRITICAL: Final[dict[str, tuple[str, ...]]] = {
    # rounding to the safe side
    "graphs/numerics/rounding.py": ("",),
    "thresholdout/privacy/accounting/parameter_sums.py": ("",),
    "thresholdout/mechanisms/rounding_costs.py": ("mean_error", "integer_sensitivity", "round_up"),
    "thresholdout/certificates/route.py": ("larger_side", "up", "Route"),  # and which routes are eligible
    # which routes apply, and are picked
    "thresholdout/certificates/certificate.py": ("certify", "_inside"),
    "thresholdout/certificates/certify_parameters.py": ("",),
    "thresholdout/certificates/gaussian/certify_gaussian.py": ("",),
    "thresholdout/certificates/split_records.py": (
        "splitting_width",
        "splitting_intervals",
        "splitting_routes",
        "_baseline",
    ),
    # shares of beta
    "thresholdout/guard/answering.py": ("failure_share",),
    "thresholdout/mechanisms/claims/score.py": ("lowered",),
    "thresholdout/mechanisms/claims/final.py": ("share_of",),
    "thresholdout/mechanisms/claims/final_check.py": ("FinalCheck",),
    "thresholdout/mechanisms/ladder.py": ("Ladder._shares", "Ladder._paid", "_lower", "_upper"),
    "thresholdout/certificates/routes/mutual_information.py": ("divergence_width", "monitor_width"),
    "thresholdout/planning/algorithm_1.py": ("quiet_rise",),
    # scales of noise
    "thresholdout/mechanisms/thresholdout.py": ("interaction_epsilon", "noise_slack", "_resolution", "_scales"),
    "thresholdout/mechanisms/claims/edges.py": ("Private", "private_noise", "EdgeNoise"),
    "thresholdout/mechanisms/gaussian.py": ("NoiseSchedule.scale", "NoiseSchedule.scales", "GaussianGuard.noise_slack"),
    # tails
    "thresholdout/limits/binomial.py": ("",),
    "thresholdout/limits/entropy.py": ("",),
    "thresholdout/limits/bets.py": ("log_wealth", "bet_lower"),  # the others are guesses, not limits
    "thresholdout/limits/random_truths.py": ("",),
    "thresholdout/limits/noisy.py": ("",),
    "thresholdout/limits/one_law.py": ("",),
}
