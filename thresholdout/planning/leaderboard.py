"""Expected intervals of a leaderboard, for teams that guess their scores well or badly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphs.numerics.rounding import shown_above
from thresholdout.data.arguments import check_count, check_number
from thresholdout.errors import InputError
from thresholdout.mechanisms.claims import ClaimsParameters, LeaderboardMechanism
from thresholdout.noise.sources import SystemNoise
from thresholdout.planning.declared_parameters import ALLOWANCE

if TYPE_CHECKING:
    from thresholdout.planning.request import Use

__all__ = ["Leaderboard", "plan_leaderboard"]


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Intervals of a leaderboard after one answer to each team, if all teams have the anticipated score.

    `Plan.leaderboard` has it, for ``plan(..., teams=...)``.

    Attributes
    ----------
    teams : int
        Number of teams, with one answer each.
    anticipation_error : float
        Amount by which the teams overestimate their scores, beyond the sampling noise of their training part.
    half_width : float
        Half-width of the answer to a further team whose guess is right.
    information_released : float
        Information released by the answers to all teams, in nats.
    exact_half_width, exact_information_released : float
        The same two numbers for an ``anticipation_error`` of 0.

    Examples
    --------
    >>> from thresholdout import plan
    >>> found = plan(10_000, teams=200, anticipation_error=0.02, anticipated_score=0.85).leaderboard
    >>> found.teams, found.exact_half_width < found.half_width < 0.06
    (200, True)
    """

    teams: int
    anticipation_error: float
    half_width: float
    information_released: float
    exact_half_width: float
    exact_information_released: float

    def __str__(self) -> str:
        off = f"{abs(self.anticipation_error):g} too {'high' if self.anticipation_error > 0 else 'low'}"
        exact = f"± {shown_above(self.exact_half_width, 2)} ({self.exact_information_released:.0f} nats released)"
        if not self.anticipation_error:
            return f"A leaderboard has {exact} after {self.teams:,} teams that guess their scores well."
        return (
            f"A leaderboard has ± {shown_above(self.half_width, 2)} ({self.information_released:.0f} nats released) "
            f"after {self.teams:,} teams that guess their scores {off}; with exact guesses it has {exact}."
        )


def plan_leaderboard(use: Use, teams: object, anticipation_error: object) -> Leaderboard | None:
    """Return the leaderboard of a plan; ``None`` without teams."""
    error = check_number(
        "anticipation_error", anticipation_error, -1.0, 1.0, "by how much guesses are too high, in [-1, 1]"
    )
    if teams is None:
        if error:
            advice = "Pass the number of teams, such as teams=200."
            raise InputError("anticipation_error", error, "0 without teams=", advice)
        return None
    count = check_count("teams", teams)
    parameters = ClaimsParameters(
        noise=0.0, n_train=use.n_train, information_released=use.information_released, allowance=ALLOWANCE
    )
    mechanism = LeaderboardMechanism(parameters.for_records(use.model, use.confidence), use.model.n)
    exact = mechanism.expected_session(count, use.anticipated_score, 0.0)
    state = mechanism.expected_session(count, use.anticipated_score, error) if error else exact
    first = mechanism.start(SystemNoise()).log_error_budget
    return Leaderboard(
        teams=count,
        anticipation_error=error,
        half_width=mechanism.next_half_width(state, use.anticipated_score),
        information_released=first - state.log_error_budget,
        exact_half_width=mechanism.next_half_width(exact, use.anticipated_score),
        exact_information_released=first - exact.log_error_budget,
    )
