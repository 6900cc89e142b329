"""Ask a holdout many adaptive questions and know what every answer is worth.

`Thresholdout` is the one class that most people need; `plan` and `certify` say what a guard will be worth before there
is one; the package `graphs`, beside this one, has the models of how records depend on each other.
"""

from thresholdout.certificates import Certificate, certify
from thresholdout.errors import (
    BudgetExhausted,
    GuardExhaustedWarning,
    InputError,
    InputTypeError,
    LedgerDamaged,
    LedgerError,
    LedgerMismatch,
    LedgerPlaceWarning,
    LedgerRetired,
    LedgerSealed,
    LedgerUnusable,
    OverlapError,
    PlanError,
    SearchExhausted,
    SearchFailed,
    SharingError,
    ThresholdoutError,
    UnsealedLedgerWarning,
)
from thresholdout.guard.answer import Answer
from thresholdout.guard.guard import Thresholdout
from thresholdout.guard.kfold import KFoldGuard
from thresholdout.noise.sources import SeededNoise, SystemNoise
from thresholdout.planning import Plan, plan

__all__ = [
    "Answer",
    "BudgetExhausted",
    "Certificate",
    "GuardExhaustedWarning",
    "InputError",
    "InputTypeError",
    "KFoldGuard",
    "LedgerDamaged",
    "LedgerError",
    "LedgerMismatch",
    "LedgerPlaceWarning",
    "LedgerRetired",
    "LedgerSealed",
    "LedgerUnusable",
    "OverlapError",
    "Plan",
    "PlanError",
    "SearchExhausted",
    "SearchFailed",
    "SeededNoise",
    "SharingError",
    "SystemNoise",
    "Thresholdout",
    "ThresholdoutError",
    "UnsealedLedgerWarning",
    "certify",
    "plan",
]
