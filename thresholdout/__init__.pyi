from .certificates import (
    Certificate as Certificate,
    certify as certify,
)
from .certificates.prior_queries import PriorQueries as PriorQueries
from .data.record_structure import TimeOrder as TimeOrder
from .errors import (
    BudgetExhausted as BudgetExhausted,
    DevelopmentOverfitWarning as DevelopmentOverfitWarning,
    EvaluationFileError as EvaluationFileError,
    EvaluationSetUsed as EvaluationSetUsed,
    GuardExhaustedWarning as GuardExhaustedWarning,
    InputError as InputError,
    InputTypeError as InputTypeError,
    LedgerDamaged as LedgerDamaged,
    LedgerError as LedgerError,
    LedgerMismatch as LedgerMismatch,
    LedgerPlaceWarning as LedgerPlaceWarning,
    LedgerClosed as LedgerClosed,
    LedgerEncrypted as LedgerEncrypted,
    LedgerUnusable as LedgerUnusable,
    LikelyMistakeWarning as LikelyMistakeWarning,
    MechanismWarning as MechanismWarning,
    OverlapError as OverlapError,
    PlanError as PlanError,
    SearchExhausted as SearchExhausted,
    SearchFailed as SearchFailed,
    SharingError as SharingError,
    ThresholdoutError as ThresholdoutError,
    UnencryptedLedgerWarning as UnencryptedLedgerWarning,
    WideAnswersWarning as WideAnswersWarning,
)
from .guard.answer import Answer as Answer
from .guard.guard import Thresholdout as Thresholdout
from .guard.kfold import KFoldGuard as KFoldGuard
from .noise.sources import (
    SeededNoise as SeededNoise,
    SystemNoise as SystemNoise,
)
from .planning.declaration import (
    Claims as Claims,
    SparseVector as SparseVector,
)
from .planning.plan import Plan as Plan
from .planning.planner import plan as plan

__all__ = [
    "Answer",
    "BudgetExhausted",
    "Certificate",
    "Claims",
    "DevelopmentOverfitWarning",
    "EvaluationFileError",
    "EvaluationSetUsed",
    "GuardExhaustedWarning",
    "InputError",
    "InputTypeError",
    "KFoldGuard",
    "LedgerClosed",
    "LedgerDamaged",
    "LedgerEncrypted",
    "LedgerError",
    "LedgerMismatch",
    "LedgerPlaceWarning",
    "LedgerUnusable",
    "LikelyMistakeWarning",
    "MechanismWarning",
    "OverlapError",
    "Plan",
    "PlanError",
    "PriorQueries",
    "SearchExhausted",
    "SearchFailed",
    "SeededNoise",
    "SharingError",
    "SparseVector",
    "SystemNoise",
    "Thresholdout",
    "ThresholdoutError",
    "TimeOrder",
    "UnencryptedLedgerWarning",
    "WideAnswersWarning",
    "certify",
    "plan",
]
__version__: str
