"""Thresholdout with one number, the remaining error budget: `ClaimsMechanism`."""

from thresholdout.mechanisms.claims.fold_claims import FoldClaims, FoldClaimsParameters
from thresholdout.mechanisms.claims.kinds import FinalCheck
from thresholdout.mechanisms.claims.leaderboard import LeaderboardMechanism
from thresholdout.mechanisms.claims.mechanism import ClaimsMechanism
from thresholdout.mechanisms.claims.parameters import ClaimsParameters
from thresholdout.mechanisms.claims.reading import Reading
from thresholdout.mechanisms.claims.state import ClaimsState

__all__ = [
    "ClaimsMechanism",
    "ClaimsParameters",
    "ClaimsState",
    "FinalCheck",
    "FoldClaims",
    "FoldClaimsParameters",
    "LeaderboardMechanism",
    "Reading",
]
