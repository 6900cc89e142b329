from .fold_claims import FoldClaims as FoldClaims
from .fold_claims import FoldClaimsParameters as FoldClaimsParameters
from .kinds import FinalCheck as FinalCheck
from .leaderboard import LeaderboardMechanism as LeaderboardMechanism
from .mechanism import ClaimsMechanism as ClaimsMechanism
from .parameters import ClaimsParameters as ClaimsParameters
from .reading import Reading as Reading
from .state import ClaimsState as ClaimsState

__all__: list[str]
