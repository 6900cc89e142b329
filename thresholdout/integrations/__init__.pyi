from .candidates import (
    CandidateVerdict as CandidateVerdict,
    GuardedCandidates as GuardedCandidates,
)
from .examples import guard_of_examples as guard_of_examples
from .gepa_hooks import GEPAHoldout as GEPAHoldout

__all__: list[str]
