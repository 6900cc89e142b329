from .candidates import (
    CandidateVerdict as CandidateVerdict,
    GuardedCandidates as GuardedCandidates,
)
from .dspy_hooks import DSPyHoldout as DSPyHoldout
from .examples import guard_of_examples as guard_of_examples
from .gepa_hooks import GEPAHoldout as GEPAHoldout
from .programs import GuardedPrograms as GuardedPrograms
from .models import GuardedModels as GuardedModels

__all__: list[str]
