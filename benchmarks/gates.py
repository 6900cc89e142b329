"""Climbs of a hundred proposals: gates beside what people do.

Run with ``python -m benchmarks.gates``. Records are right or wrong under each model. A proposal changes a twentieth of
them at random; one in ten proposals is better by a step, the others are worse by up to one. Training values are of
twice as many records, out of fold. What is compared:

- *naive*: keep what is better on the holdout;
- *one sigma*: better by one standard deviation;
- *list*: the sign test at 0.05 / 100 for each proposal, as a Bonferroni list;
- *cross-validation*: better by two standard deviations on the training part, the holdout is not looked at;
- *gate*: `propose` with the sign test (records of one law), and with bets (any laws);
- *milestones*: climb on cross-validation, certify the present model now and then (the first column counts its
  steps, the gain is the certified one).

Two tables: what is kept, over climbs as they come; and false keeps where training values mislead (every proposal is
worse by 0.1 of a step, or no better, and looks better by three steps in cross-validation).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from thresholdout.limits.binomial import log_one_law_tail
from thresholdout.mechanisms.claims.gate import (
    GateState,
    checkpoint,
    climb,
    last_evaluation,
    propose,
    share_of_error_budget,
    worth_a_checkpoint,
)
from thresholdout.mechanisms.claims.gate_tests import BetGate, GateTest, Proposal, SignGate

BETA = 0.05
PROPOSALS = 100
CLIMBS = 60
CHANGED = 0.05
GOOD = 0.1
START = 0.8

Counts = tuple[int, int]
Keep = Callable[[Proposal, Counts], bool]


class World:
    """Records under a start model, and proposals that change some of them.

    Parameters
    ----------
    n : int
        Holdout records; twice as many are for training.
    step : float
        What a good proposal adds.
    seed : int
        Of everything.
    misleading : bool
        Whether no proposal is good, and all look good on the training part.
    """

    def __init__(self, n: int, step: float, seed: int, misleading: bool = False) -> None:
        rng = np.random.default_rng(seed)
        self.n, self.step, self.misleading = n, step, misleading
        self.good = rng.random(PROPOSALS) < GOOD
        self.gains = np.where(self.good, step, -step * rng.random(PROPOSALS))
        if misleading:
            self.gains = np.where(rng.random(PROPOSALS) < 0.5, 0.0, -0.1 * step)
        self.seeds = rng.integers(0, 2**62, PROPOSALS)
        self.start = rng.random(n if misleading else 3 * n) < START

    def candidate(self, number: int, right: np.ndarray, accuracy: float) -> np.ndarray:
        """Return which records a proposal is right on, made from the model that is right on `right`."""
        up = 0.5 * (CHANGED + self.gains[number]) / (1.0 - accuracy)
        down = 0.5 * (CHANGED - self.gains[number]) / accuracy
        u = np.random.default_rng(self.seeds[number]).random(right.size)
        changed: np.ndarray = np.where(right, u >= down, u < up)
        return changed

    def holdout(self, old: np.ndarray, new: np.ndarray) -> Counts:
        """Return wins and losses of the new model."""
        return wins_and_losses(old[: self.n], new[: self.n])

    def proposal(self, old: np.ndarray, new: np.ndarray) -> Proposal:
        """Return what cross-validation says."""
        if self.misleading:
            return Proposal(3.0 * self.step, CHANGED, 2.0 * self.n, float(self.n))
        wins, losses = wins_and_losses(old[self.n :], new[self.n :])
        number = 2 * self.n
        mean = (wins - losses) / number
        return Proposal(mean, max((wins + losses + 1) / number - mean * mean, 1 / number), number, self.n)


def wins_and_losses(old: np.ndarray, new: np.ndarray) -> Counts:
    return int(np.count_nonzero(new & ~old)), int(np.count_nonzero(old & ~new))


def climb_by(world: World, keep: Keep) -> tuple[float, float, float]:
    """Return good proposals that were kept, false keeps, and the gain in steps."""
    right, accuracy, kept, false = world.start, START, 0, 0
    for number in range(PROPOSALS):
        new = world.candidate(number, right, accuracy)
        if keep(world.proposal(right, new), world.holdout(right, new)):
            gain = float(world.gains[number])
            kept, false = kept + (gain > 0.0), false + (gain <= 0.0)
            right, accuracy = new, accuracy + gain
    return kept, false, (accuracy - START) / world.step


def climb_by_milestones(world: World) -> tuple[float, float, float]:
    """Return steps on the way, false certificates, and the certified gain in steps."""
    right = certified = world.start
    accuracy = best = START
    state, taken, false = GateState(math.log(BETA)), 0, 0

    def test() -> GateTest:
        return SignGate(*world.holdout(certified, right), one_law=True)

    for number in range(PROPOSALS):
        new = world.candidate(number, right, accuracy)
        better, state = climb(state, world.proposal(right, new))
        if not better:
            continue
        right, accuracy, taken = new, accuracy + float(world.gains[number]), taken + 1
        proposal = world.proposal(certified, right)
        if worth_a_checkpoint(state, proposal, test()):
            made = checkpoint(state, proposal, test())
            state = made.state
            if made.outcome == "keep":
                false += accuracy <= best
                certified, best = right, accuracy
    if state.ahead > 0.0:
        made = last_evaluation(state, world.proposal(certified, right), test())
        if made.outcome == "keep":
            false += accuracy <= best
            best = accuracy
    return taken, false, (best - START) / world.step


def ways(n: int) -> dict[str, Callable[[World], tuple[float, float, float]]]:
    """Return the ways to climb."""

    def sigma(times: float) -> Keep:
        return lambda proposal, counts: counts[0] - counts[1] > times * math.sqrt(max(1, sum(counts)))

    def sign_list(proposal: Proposal, counts: Counts) -> bool:
        return log_one_law_tail(counts[0], sum(counts), 0.5) <= math.log(BETA / PROPOSALS)

    def gate(world: World, make: Callable[[Counts], GateTest]) -> tuple[float, float, float]:
        state = GateState(math.log(BETA))

        def keep(proposal: Proposal, counts: Counts) -> bool:
            nonlocal state
            test = make(counts)
            made = propose(state, proposal, test, share_of_error_budget(state, proposal, test))
            state = made.state
            return made.outcome == "keep"

        return climb_by(world, keep)

    def bets(counts: Counts) -> GateTest:
        return BetGate(np.repeat([0.5, 1.0, 0.0], [n - sum(counts), *counts]))

    return {
        "naive": lambda world: climb_by(world, sigma(0.0)),
        "one sigma": lambda world: climb_by(world, sigma(1.0)),
        "list": lambda world: climb_by(world, sign_list),
        "cross-validation": lambda world: climb_by(world, lambda p, counts: p.difference > 2.0 * p.train_deviation),
        "gate, sign test": lambda world: gate(world, lambda counts: SignGate(*counts, one_law=True)),
        "gate, bets": lambda world: gate(world, bets),
        "milestones": climb_by_milestones,
    }


def main() -> None:
    begin = time.perf_counter()
    for n, step in ((500, 0.02), (2_000, 0.01), (10_000, 0.01)):
        worlds = [World(n, step, seed) for seed in range(CLIMBS)]
        good = np.mean([world.good.sum() for world in worlds])
        print(f"{n:,} records, steps of {step:g}, {good:.1f} good of {PROPOSALS}, {CLIMBS} climbs; means")
        print(f"{'':18}{'good kept':>10}{'false':>8}{'climbs with false':>19}{'gain':>7}{'of all':>8}")
        for name, way in ways(n).items():
            found = np.array([way(world) for world in worlds])
            kept, false, gain = found.mean(axis=0)
            broken = (found[:, 1] > 0).mean()
            print(f"{name:18}{kept:10.1f}{false:8.2f}{broken:19.2f}{gain:7.1f}{gain / good:8.2f}")
        print()
    print(f"misleading training values, 500 records, {4 * CLIMBS} climbs: climbs with a false keep")
    worlds = [World(500, 0.02, 1000 + seed, misleading=True) for seed in range(4 * CLIMBS)]
    for name, way in ways(500).items():
        print(f"{name:18}{np.mean([way(world)[1] > 0 for world in worlds]):8.3f}")
    print(f"\n{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
