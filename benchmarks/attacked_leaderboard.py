"""A leaderboard of 30 teams, some of which attack the holdout, with 2,000 submissions against known truth.

The same teams play twice: behind a guard, and on a plain holdout that tells everybody the exact score, with the exact
interval of one score at 95 % ("alone"), or at a level for 2,000 scores that were fixed beforehand ("list"). Every
interval is compared with the truth of its predictions, given the features; on the leaderboards, every statement that
one team's best submission is better than another's: by certified intervals that do not overlap, or by scores. Attackers
also send the guard tables that are wrong: none is charged, and what they are told is the same when all labels of the
holdout are the other ones.

Run: ``python -m benchmarks.attacked_leaderboard``, two minutes. Seeds are 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations

import numpy as np
import pandas as pd

from benchmarks.service_load.teams import Predictions, Records, Team, Told, thirty_teams
from thresholdout.errors import BudgetExhausted, InputError
from thresholdout.ledger import MemoryLedger
from thresholdout.limits.binomial import binomial_lower, binomial_upper
from thresholdout.service.prediction_guard import PredictionGuard

__all__ = ["Behind", "Outcome", "Plain", "Submitted", "main", "play", "session"]

RECORDS, SUBMISSIONS, SEEDS, ATTACKERS = 4000, 2000, 2, (0, 6, 18)


@dataclass(frozen=True)
class Submitted:
    """An answered submission: its team's number, its truth, and what was told."""

    team: int
    attacks: bool
    truth: float
    told: Told

    @property
    def missed(self) -> bool:
        """Whether the interval is false."""
        return not self.told.low <= self.truth <= self.told.high


@dataclass
class Outcome:
    """What came out of one leaderboard.

    Attributes
    ----------
    answered : list of Submitted
        In order.
    refused : dict
        How many submissions were refused, of honest teams (False) and of others (True).
    """

    answered: list[Submitted] = field(default_factory=list)
    refused: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})

    @property
    def missed(self) -> int:
        """How many intervals are false."""
        return sum(one.missed for one in self.answered)

    def best(self, worth: Callable[[Submitted], float]) -> list[Submitted]:
        """Return each team's best submission, the best first."""
        found: dict[int, Submitted] = {}
        for one in self.answered:
            if one.team not in found or worth(one) > worth(found[one.team]):
                found[one.team] = one
        return sorted(found.values(), key=worth, reverse=True)

    def orders(self) -> tuple[int, int]:
        """Return how many pairs of teams intervals order, and how many of them wrongly."""
        best = self.best(lambda one: one.told.low)
        reach = {one.team: max(own.told.high for own in self.answered if own.team == one.team) for one in best}
        most = {one.team: max(own.truth for own in self.answered if own.team == one.team) for one in best}
        said = [(a, b) for a, b in permutations(best, 2) if a.told.low > reach[b.team]]
        return len(said), sum(a.truth <= most[b.team] for a, b in said)

    def score_orders(self) -> tuple[int, int]:
        """Return how many pairs of teams scores order, and how many of them wrongly."""
        best = self.best(lambda one: one.told.value)
        said = [(a, b) for a, b in permutations(best, 2) if a.told.value > b.told.value]
        return len(said), sum(a.truth < b.truth for a, b in said)


class Plain:
    """A holdout that tells its scores, with exact intervals for so many scores that are fixed beforehand."""

    def __init__(self, records: Records, scores: int) -> None:
        self._records, self._log_level = records, math.log(0.05 / (2 * scores))

    def ask(self, team: int, predictions: Predictions, expected: float) -> Told:
        """Score predictions."""
        n, right = predictions.size, int((predictions == self._records.labels).sum())
        return Told(right / n, binomial_lower(right, n, self._log_level), binomial_upper(right, n, self._log_level))


class Behind:
    """The same holdout behind a guard; and its mirror, where all labels of the holdout are the other ones."""

    def __init__(self, records: Records) -> None:
        n = records.labels.size
        self._ids = np.arange(n, 2 * n)
        self.guard, self._mirror = (self._made(records, flip) for flip in (False, True))
        self.failures, self.texts_that_differ = 0, 0

    def _made(self, records: Records, flip: bool) -> PredictionGuard:
        n = records.labels.size
        train = pd.DataFrame({"id": np.arange(n), "y": np.arange(n) % 2})
        holdout = pd.DataFrame({"id": self._ids, "y": np.where(flip, 1 - records.labels, records.labels)})
        return PredictionGuard.create(MemoryLedger(), train, holdout, label="y", allow_duplicates=True)

    def ask(self, team: int, predictions: Predictions, expected: float) -> Told | None:
        """Submit predictions; nothing where the client is refused."""
        table = pd.DataFrame({"id": self._ids, "prediction": predictions})
        try:
            answer = self.guard.ask(table, expected=expected, client=f"team {team}")
        except BudgetExhausted:
            return None
        return Told(answer.value, *answer.interval)

    def fail(self, team: int, predictions: Predictions, kind: int) -> None:
        """Send a table that is wrong, to the guard and to its mirror."""
        table = pd.DataFrame({"id": self._ids, "prediction": predictions.astype(np.float64)})
        wrong = (
            table.drop(index=team),
            pd.concat([table, table.loc[[team]]]),
            table.assign(prediction=table["prediction"].where(table["id"] != self._ids[team])),
            table.assign(prediction=7),
            table.rename(columns={"prediction": "label"}),
        )[kind % 5]
        texts = [self._refusal(guard, wrong, team) for guard in (self.guard, self._mirror)]
        self.failures += 1
        self.texts_that_differ += texts[0] != texts[1]

    @staticmethod
    def _refusal(guard: PredictionGuard, wrong: pd.DataFrame, team: int) -> str:
        try:
            guard.ask(wrong, expected=0.5, client=f"team {team}")
        except InputError as error:
            return str(error)
        raise AssertionError("a table that is wrong was answered")


def play(
    records: Records,
    teams: list[Team],
    holdout: Plain | Behind,
    rng: np.random.Generator,
    submissions: int = SUBMISSIONS,
) -> Outcome:
    """Let teams submit in turn.

    Parameters
    ----------
    records : Records
        Of the holdout.
    teams : list of Team
        Who submits.
    holdout : Plain or Behind
        What answers; tables that are wrong are sent to the one behind a guard, by teams that attack.
    rng : Generator
        Of the order of teams, which is another one in each round.
    submissions : int
        How many, tables that are wrong apart.
    """
    found = Outcome()
    rounds = [rng.permutation(len(teams)) for _ in range(-(-submissions // len(teams)))]
    for number, place in enumerate(np.concatenate(rounds)[:submissions].tolist()):
        team = teams[place]
        predictions, expected = team.propose()
        if isinstance(holdout, Behind) and team.attacks and number % 10 == 0:
            holdout.fail(place, predictions, number // 10)
        told = holdout.ask(place, predictions, expected)
        team.learn(predictions, told)
        if told is None:
            found.refused[team.attacks] += 1
        else:
            found.answered.append(Submitted(place, team.attacks, records.truth(predictions), told))
    return found


def session(
    seed: int,
    attackers: int,
    holdout: Callable[[Records], Plain | Behind],
    submissions: int = SUBMISSIONS,
    size: int = RECORDS,
) -> Outcome:
    """Play one leaderboard on records of a seed; teams draw the same coins whatever answers them."""
    records = Records.drawn(size, np.random.default_rng(seed))
    teams = thirty_teams(records, np.random.default_rng(1_000 + seed), attackers)
    return play(records, teams, holdout(records), np.random.default_rng(2_000 + seed), submissions)


def row(found: Outcome, certified: bool) -> str:
    """Return the columns of a table."""
    said, wrong = found.orders() if certified else found.score_orders()
    first = found.best(lambda one: one.told.low if certified else one.told.value)[0]
    honest = np.mean([0.5 * (one.told.high - one.told.low) for one in found.answered if not one.attacks])
    worth = f"{first.told.low:.3f} to {first.told.high:.3f}" if certified else f"{first.told.value:.3f}"
    kind = "attacker" if first.attacks else "honest"
    return (
        f"{len(found.answered):,} | {found.refused[False]} | {found.refused[True]} | {found.missed} | {honest:.3f} "
        f"| {said} | {wrong} | {kind} | {worth} | {first.truth:.3f} |"
    )


def main() -> None:
    """Print the table."""
    print(
        "| attackers | seed | told by | answered | refused, honest | refused, attackers | intervals missed "
        "| half-width, honest | pairs ordered | wrongly | winner | its value or interval | its truth |"
    )
    print("|" + "---|" * 13, flush=True)
    sent = failures = charged = differ = 0
    for attackers in ATTACKERS:
        for seed in range(SEEDS):
            begun = f"| {attackers} | {seed} |"
            plain = {"score, interval alone": 1, "score, interval of a list": SUBMISSIONS}
            for name, scores in plain.items():
                print(begun, name, "|", row(session(seed, attackers, partial(Plain, scores=scores)), False), flush=True)
            behind = Behind(Records.drawn(RECORDS, np.random.default_rng(seed)))
            found = session(seed, attackers, lambda _: behind)  # noqa: B023
            print(begun, "guard |", row(found, True), flush=True)
            sent += len(found.answered)
            failures += behind.failures
            charged += len(behind.guard.guard.history)
            differ += behind.texts_that_differ
    print(
        f"\n{failures} tables that were wrong: {charged - sent} were charged, and {differ} had a refusal that depends "
        "on labels."
    )


if __name__ == "__main__":
    main()
