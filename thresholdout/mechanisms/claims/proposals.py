"""One bit for a client: whether what he proposes is certified to be better than what he has.

A claim "it is better" is tested at the level ``w = q R``. *Keep* leaves w of the risk R that is left, *reject* leaves
``(1 - q) R`` and claims nothing, and a little is set aside for failures. q is a function of how many of the client's
earlier proposals were kept, which is public; what he says of the training part decides nothing, since he knows the
labels there. Where no outcome could be certified, because both say the same of nearly all records, it is a rejection
without a look, and free. PROOFS.md, "Comparisons and gates" (G9).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from thresholdout.data.client_states import client_key
from thresholdout.errors import BudgetExhausted
from thresholdout.mechanisms.claims.clients import client_of, credited
from thresholdout.mechanisms.claims.difference_tests import DifferenceTest
from thresholdout.mechanisms.claims.gate_states import FREE, Verdict
from thresholdout.mechanisms.claims.score import RAISED, lowered
from thresholdout.mechanisms.claims.state import ClaimsState

__all__ = ["Proposed", "Proposer", "proposal_refusal", "proposer_of"]

_FIRST: Final = 0.1  # share of the risk of the first proposal
_BELIEF: Final = 2.0  # proposals that it counts for
_MOST: Final = 0.9
_KEPT: Final = math.log1p(-2.0 * RAISED)


@dataclass(frozen=True, slots=True)
class Proposer:
    """What is remembered of one client's proposals; public.

    Attributes
    ----------
    asked : float
        How many were tested on the holdout.
    kept : float
        How many of them were certified.

    Examples
    --------
    >>> Proposer().share, Proposer(asked=8.0).share, Proposer(asked=2.0, kept=2.0).share
    (0.1, 0.02, 0.55)
    """

    asked: float = 0.0
    kept: float = 0.0

    @property
    def share(self) -> float:
        """q, the share of the risk at which the next one is tested."""
        return min(_MOST, (_FIRST * _BELIEF + self.kept) / (_BELIEF + self.asked))


def proposer_of(state: ClaimsState, client: str) -> Proposer:
    """Return what a state remembers of a client's proposals."""
    return Proposer(*state.climbs.get(_known_as(client), ())[:2])


def proposal_refusal(state: ClaimsState, client: str, allowance: float | None) -> BudgetExhausted | None:
    """Return why a client may propose no more, or ``None``: the longer letter must fit the allowance.

    Parameters
    ----------
    state : ClaimsState
        Public numbers of it.
    client : str
        Who; the organiser, who has no name, has no allowance.
    allowance : float or None
        Nats that the answers of one client may tell together.
    """
    if not client or allowance is None:
        return None
    proposer, known = proposer_of(state, client), client_of(state, client)
    longest = -math.log(min(proposer.share, 1.0 - proposer.share)) - 2.0 * _KEPT
    asked = round(known.asked + proposer.asked)
    return BudgetExhausted("allowance", asked, asked) if known.told + longest > allowance else None


@dataclass(frozen=True, slots=True)
class Proposed:
    """Keep a proposal if the holdout certifies it, or reject it.

    Parameters
    ----------
    client : str
        Who proposes.
    looks : bool
        Whether the holdout is looked at; otherwise it is a rejection.
    """

    client: str
    looks: bool

    @classmethod
    def planned(cls, state: ClaimsState, client: str, test: DifferenceTest) -> Proposed:
        """Decide whether there is anything to look at.

        Examples
        --------
        >>> from thresholdout.mechanisms.claims.difference_tests import Signs
        >>> from thresholdout.mechanisms.claims.predictor import Memory
        >>> start = ClaimsState(-3.0, 0, 0, 0, -9, 0, Memory())
        >>> Proposed.planned(start, "ann", Signs(7)).looks, Proposed.planned(start, "ann", Signs(8)).looks
        (False, True)
        """
        return cls(client, test.least <= _level(state, proposer_of(state, client).share))

    def made(self, state: ClaimsState, test: float) -> tuple[ClaimsState, Verdict]:
        """Carry it out, with what the test of the holdout returned; see `thresholdout.guard.deciding.Move`.

        q is that of the state as it is by then, as for the allowance: others may have been decided since the plan.

        Examples
        --------
        >>> from thresholdout.mechanisms.claims.predictor import Memory
        >>> start = ClaimsState(-3.0, 0, 0, 0, -9, 0, Memory())
        >>> kept, verdict = Proposed("ann", True).made(start, -9.0)
        >>> verdict, round(start.log_risk - kept.log_risk, 3), proposer_of(kept, "ann")
        ('keep', 2.303, Proposer(asked=1.0, kept=1.0))
        >>> rejected, verdict = Proposed("ann", True).made(start, -5.0)
        >>> verdict, round(start.log_risk - rejected.log_risk, 3)
        ('reject', 0.105)
        """
        if not self.looks:
            return _counted(state, "skip"), "skip"
        before = proposer_of(state, self.client)
        level = _level(state, before.share)
        verdict: Verdict = "keep" if test <= level else "reject"
        left = level if verdict == "keep" else _level(state, 1.0 - before.share)
        numbers = (before.asked + 1.0, before.kept + (verdict == "keep"), 0.0, 0.0, 0.0, 0.0)
        after = replace(state, log_risk=left, climbs={**state.climbs, _known_as(self.client): numbers})
        return _counted(credited(after, self.client, state.log_risk - left), verdict), verdict


def _counted(state: ClaimsState, verdict: Verdict) -> ClaimsState:
    """Count a proposal as `ClaimsState.agrees` finds it in a history."""
    charged = verdict == "reject"
    return replace(
        state,
        asked=state.asked + 1,
        hits=state.hits + charged,
        letters=state.letters + charged,
        free=state.free + (verdict in FREE),
    )


def _level(state: ClaimsState, share: float) -> float:
    """Return the logarithm of a share of what is not set aside for failures, rounded down."""
    return lowered(state.log_risk + math.log(share) + _KEPT)


def _known_as(client: str) -> str:
    """Return what a state calls a client's proposals: no text that somebody else chose is in it."""
    return f"proposals:{client_key(client)}"
