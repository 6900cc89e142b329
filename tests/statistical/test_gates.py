"""Gates whose training values mislead: no candidate is better, all look so, and a keep breaks the climb.

`rejection` says how many broken climbs reject a gate; a valid one is rejected with probability at most 1e-9. A twin
that does not pay for rejections must be rejected. The first analyst proposes candidates that do nothing; the second one
proposes harmless changes, and then the majority of those that looked worst for the champion, a candidate that is fitted
to the holdout as far as rejections tell. The last tests put the first analyst before a whole guard.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.sizes import corners
from tests.statistical.rejection import too_many
from thresholdout import Thresholdout
from thresholdout.mechanisms.claims import gate_states as climbs_of_guards
from thresholdout.mechanisms.claims.gate import Decision, GateState, checkpoint, decide, propose, share_of_error_budget
from thresholdout.mechanisms.claims.gate_tests import BetGate, GateTest, Proposal, SignGate

pytestmark = pytest.mark.statistical

BETA = 0.05
N = 400
LOOKS_GOOD = Proposal(0.06, 0.05, 800.0, float(N))

Gate = Callable[[GateState, Proposal, GateTest], Decision]


def proposed(state: GateState, proposal: Proposal, test: GateTest) -> Decision:
    return propose(state, proposal, test, share_of_error_budget(state, proposal, test))


def free_rejections(state: GateState, proposal: Proposal, test: GateTest) -> Decision:
    made = proposed(state, proposal, test)
    return (
        replace(made, state=replace(made.state, log_error_budget=state.log_error_budget))
        if made.outcome == "reject"
        else made
    )


def half(state: GateState, proposal: Proposal, test: GateTest) -> Decision:
    return decide(state, proposal, test, 0.5)


def broken(gate: Gate, rng: np.random.Generator, proposals: int, kind: str) -> bool:
    """Propose candidates that do nothing, until one is kept."""
    state = GateState(math.log(BETA))
    for _ in range(proposals):
        down, up = rng.multinomial(N, [0.025, 0.025, 0.95])[:2]
        test = (
            SignGate(up, down, one_law=True)
            if kind == "sign"
            else BetGate(np.repeat([0.0, 1.0, 0.5], [down, up, N - down - up]))
        )
        made = gate(state, LOOKS_GOOD, test)
        if made.outcome == "keep":
            return True
        state = made.state
    return False


def smallest_edge(weights: list[float]) -> float:
    """Return the smallest edge that the score of a record is above with probability 1/2 at most: an exact sum."""
    law = {0.0: 1.0}
    for weight in weights:
        after: dict[float, float] = {}
        for value, chance in law.items():
            after[value] = after.get(value, 0.0) + 0.45 * chance
            after[value + weight] = after.get(value + weight, 0.0) + 0.55 * chance
        law = after
    return min(edge for edge in law if sum(chance for value, chance in law.items() if value > edge) <= 0.5)


def harvested(gate: Gate, rng: np.random.Generator) -> bool:
    """Learn from outcomes about candidates that are better by a little, then propose their majority, centred."""
    signs = rng.random((N, 12)) < 0.55  # wins of true candidates; all records differ
    state, weights = GateState(math.log(BETA)), []
    for column in signs.T[:11]:
        made = gate(state, LOOKS_GOOD, SignGate(int(column.sum()), int(N - column.sum()), one_law=True))
        weights.append(1.0 if made.outcome == "keep" else -1.0)
        state = made.state
    score = signs[:, :11] @ np.array(weights)
    wins = int((score > smallest_edge(weights)).sum())
    losses = N - wins
    return gate(state, LOOKS_GOOD, SignGate(wins, losses, one_law=True)).outcome == "keep"


@pytest.mark.parametrize("kind", ["sign", "bets"])
@pytest.mark.parametrize("gate", corners([proposed, checkpoint, half], 1, 2))
def test_false_keeps_are_as_rare_as_promised(gate: Gate, kind: str) -> None:
    rng, climbs = np.random.default_rng(11), 600
    assert not too_many((broken(gate, rng, 12, kind) for _ in range(climbs)), climbs, BETA)


def test_rejections_that_cost_nothing_are_caught() -> None:
    rng, climbs = np.random.default_rng(12), 600
    assert too_many((broken(free_rejections, rng, 12, "sign") for _ in range(climbs)), climbs, BETA)


@pytest.mark.parametrize("gate", [proposed, checkpoint])
def test_harvested_outcomes_do_not_help(gate: Gate) -> None:
    rng, climbs = np.random.default_rng(13), 400
    assert not too_many((harvested(gate, rng) for _ in range(climbs)), climbs, BETA)


class Told:
    """A model whose predictions are a column of the records."""

    classes_ = np.array([0, 1])

    def __init__(self, column: int) -> None:
        self.column = column

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        return X[:, self.column].astype(int)


def broken_guard(rng: np.random.Generator, certify: Literal["each", "milestones"], one_law: bool) -> bool:
    """Propose twelve candidates that look better and better on the training part, and are worth nothing."""
    base = rng.random(N) < 0.8
    draws = rng.random((12, N))
    holdout = [base, *(np.where(base, u >= 0.03125, u < 0.125) for u in draws)]  # 0.025 won and 0.025 lost
    u = rng.random(2 * N)
    X = np.column_stack([np.concatenate([row, u < 0.2 + 0.06 * k]) for k, row in enumerate(holdout)]).astype(float)
    y = np.ones(3 * N, dtype=int)
    guard = Thresholdout(
        (X[:N], y[:N]),
        train=(X[N:], y[N:]),
        confidence=1.0 - BETA,
        sampling="iid" if one_law else "independent",
        random_state=int(rng.integers(2**31)),
        allow_duplicates=True,
    )
    gate = guard.gate(Told(0), certify=certify)
    if any(gate.propose(Told(k), cv="training").certified for k in range(1, 13)):
        return True
    last = gate.last_evaluation() if certify == "milestones" else None
    return last is not None and last.certified


@pytest.mark.parametrize(("certify", "one_law"), corners([("each", True), ("each", False), ("milestones", True)], 2))
def test_a_guard_certifies_as_little_as_promised(certify: Literal["each", "milestones"], one_law: bool) -> None:
    rng, climbs = np.random.default_rng(14), 200
    assert not too_many((broken_guard(rng, certify, one_law) for _ in range(climbs)), climbs, BETA)


@pytest.mark.slow
def test_a_guard_whose_rejections_are_free_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def free(state: GateState, proposal: Proposal, test: GateTest, share: float | None) -> Decision:
        made = propose(state, proposal, test, share)
        return (
            replace(made, state=replace(made.state, log_error_budget=state.log_error_budget))
            if made.outcome == "reject"
            else made
        )

    monkeypatch.setattr(climbs_of_guards, "propose", free)
    rng, climbs = np.random.default_rng(15), 200
    assert too_many((broken_guard(rng, "each", True) for _ in range(climbs)), climbs, BETA)
