from .candidates import (
    CandidateVerdict as CandidateVerdict,
    GuardedCandidates as GuardedCandidates,
)
from .examples import guard_of_examples as guard_of_examples

__all__: list[str]
