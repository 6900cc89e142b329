"""A leaderboard of 30 teams with 20 submissions each: how wide certified intervals are, with and without junk.

Teams have true accuracies from 0.80 to 0.85, and drift upwards. What is expected of a submission is its accuracy on as
many other records as the holdout has ("cross-validated"), 1.0 ("training score": everybody's model fits its training
records), or nothing. Junk teams send random predictions and expect 1.0. Mechanisms: the leaderboard, and claims near
training values, which have the same numbers to begin with. Columns: half the length of the intervals of all honest
teams on the average, and of their last submissions; nats told to all; honest submissions that were refused; truths
that were missed, of all sessions.

Run: ``python -m benchmarks.leaderboard``, two minutes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Literal

import numpy as np

from thresholdout.errors import BudgetExhausted
from thresholdout.mechanisms import Known
from thresholdout.mechanisms.base import refuse_if
from thresholdout.mechanisms.claims import ClaimsMechanism, ClaimsParameters, LeaderboardMechanism
from thresholdout.noise.sources import SeededNoise

__all__ = ["Session", "main", "session"]

TEAMS, SUBMISSIONS, SEEDS = 30, 20, 3
Guess = Literal["cross-validated", "training score", "nothing"]


@dataclass
class Session:
    """What came out of one leaderboard."""

    widths: list[float] = field(default_factory=list)
    nats: float = 0.0
    refused: int = 0
    missed: int = 0


def session(n: int, junk: int, guess: Guess, seed: int, *, claims: bool = False, teams: int = TEAMS) -> Session:
    """Play one leaderboard.

    Parameters
    ----------
    n : int
        Records in the holdout.
    junk : int
        Teams that send random predictions.
    guess : {"cross-validated", "training score", "nothing"}
        What honest teams expect.
    seed : int
        Of everything.
    claims : bool
        Whether the guard makes claims near training values, as for one analyst.
    teams : int
        How many there are.
    """
    rng, noise, found = np.random.default_rng(seed), SeededNoise(seed), Session()
    plain = ClaimsParameters(n_train=float(n))
    mechanism = (
        ClaimsMechanism(plain, n)
        if claims
        else LeaderboardMechanism(ClaimsParameters(noise=0.0, allowance=24.0, n_train=float(n)), n)
    )
    state = mechanism.start(noise)
    first = state.log_error_budget
    skill = 0.80 + 0.05 * rng.random(teams)
    for _, team in product(range(SUBMISSIONS), range(teams)):
        honest = team >= junk
        skill[team] = max(skill[team], min(0.95, skill[team] + 0.006 * rng.normal()))
        truth = skill[team] if honest else 0.5
        expected = rng.binomial(n, truth) / n if honest and guess == "cross-validated" else 1.0
        known = Known(binary=True, client=f"team {team}", vague=honest and guess == "nothing")
        values = np.arange(n) < rng.binomial(n, truth)
        reading = mechanism.read(values, n, (0, 1), "values", known)
        try:
            refuse_if(mechanism.client_refusal(state, known))
            state, outcome = mechanism.step(state, expected, reading, noise)
        except BudgetExhausted:
            found.refused += honest
            continue
        assert outcome.interval is not None
        low, high = outcome.interval
        found.missed += not low <= truth <= high
        if honest:
            found.widths.append(0.5 * (high - low))
    found.nats = first - state.log_error_budget
    return found


def main() -> None:
    """Print the table."""
    print("| records | junk teams | expected | mechanism | half-width | of the last | nats | refused | missed |")
    print("|---|---|---|---|---|---|---|---|---|")
    for n in (1000, 4000, 10_000):
        for guess, junk, claims in (
            ("cross-validated", 0, False),
            ("cross-validated", 2, False),
            ("cross-validated", 10, False),
            ("training score", 0, False),
            ("nothing", 0, False),
            ("cross-validated", 0, True),
            ("cross-validated", 2, True),
            ("training score", 0, True),
        ):
            runs = [session(n, junk, guess, seed, claims=claims) for seed in range(SEEDS)]  # type: ignore[arg-type]
            mean = np.mean([np.mean(run.widths) for run in runs])
            last = np.mean([np.mean(run.widths[-TEAMS:]) for run in runs])
            nats = np.mean([run.nats for run in runs])
            refused, missed = (sum(getattr(run, name) for run in runs) for name in ("refused", "missed"))
            name = "claims" if claims else "leaderboard"
            print(
                f"| {n:,} | {junk} | {guess} | {name} | {mean:.3f} | {last:.3f} | {nats:,.0f} | {refused} | {missed} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
