"""Every attacker over records in groups, of equal and of heavy-tailed sizes: claims, lists, and gates with a tolerance.

Four of five groups are one coin each, and large groups have another mean than small ones. `rejection` says how many
broken sessions reject a mechanism; a valid one is rejected with probability at most 1e-9 in each test. The twins take
large groups for single records, or let an outcome of a gate cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.sizes import corners
from tests.statistical.claims_attackers import (
    ATTACKS,
    GROUPED,
    TAKEN_FOR_SINGLE,
    broken_sessions,
    clustered,
    equal_sizes,
    heavy_sizes,
    large_sizes,
)
from tests.statistical.claims_attackers import BETA as OF_CLAIMS
from tests.statistical.rejection import too_many
from thresholdout import Thresholdout
from thresholdout.limits.group_sums import GroupSizes, GroupSums
from thresholdout.mechanisms.base import Grouped
from thresholdout.mechanisms.claims.gate import Decision, GateState, settle, tolerated_shares
from thresholdout.mechanisms.claims.gate_tests import GroupGate, Proposal, TrinomialGate

pytestmark = pytest.mark.statistical

RECORDS = 240
BETA = 0.05
TOLERANCE = 0.1


CASES = [(attack, kind) for attack in ATTACKS for kind in GROUPED]


@pytest.mark.parametrize(("attack", "kind"), corners(CASES, 0, 1, 2, 4, 12, 15))
def test_no_attack_breaks_more_sessions_of_grouped_records_than_promised(attack: str, kind: str) -> None:
    assert not too_many(broken_sessions(attack, kind, 0.05, n=RECORDS, shapes=GROUPED), 60, OF_CLAIMS)


@pytest.mark.parametrize("kind", list(TAKEN_FOR_SINGLE))
def test_groups_that_are_declared_as_single_records_are_rejected(kind: str) -> None:
    """The side that must fail."""
    broken = broken_sessions("just outside", kind, 0.05, n=RECORDS, shapes=TAKEN_FOR_SINGLE)
    assert too_many(broken, 200, OF_CLAIMS)


Sizes = Callable[[int], list[int]]
Shares = Callable[[GateState, Proposal, GroupGate | TrinomialGate], tuple[float, float]]


def planned(state: GateState, proposal: Proposal, test: GroupGate | TrinomialGate) -> tuple[float, float]:
    return tolerated_shares(state, proposal, test, math.inf)


def halves(state: GateState, proposal: Proposal, test: GroupGate | TrinomialGate) -> tuple[float, float]:
    """As much as an attacker may ask for each outcome."""
    return 0.45, 0.45


def paid(state: GateState, decision: Decision) -> GateState:
    return decision.state


def free(state: GateState, decision: Decision) -> GateState:
    return state


def broken_gate(
    rng: np.random.Generator,
    sizes: Sizes | None,
    shares: Shares,
    after: Callable[[GateState, Decision], GateState],
    proposals: int,
    split: bool = False,
) -> bool:
    """Propose candidates that are as good, where "worse" is false, and worse by the tolerance, where "keep" is.

    The next candidate is of the other kind where the test of this one came near its level, as far as anyone is told.
    """
    state, drop = GateState(math.log(BETA)), TOLERANCE
    own = np.array([1] * RECORDS if sizes is None else sizes(RECORDS))
    index = np.arange(RECORDS) if split else np.repeat(np.arange(own.size), own)
    declared = np.bincount(index)
    groups = Grouped(index, GroupSizes.of(declared), 0.3, 200.0, 40.0)
    for turn in range(proposals):
        drop = TOLERANCE if turn % 3 else 0.0
        proposal = Proposal(0.0, 0.25, 200.0, RECORDS / 2, -TOLERANCE, None if sizes is None else groups)
        if sizes is None:
            lost, won, _ = rng.multinomial(RECORDS, [0.1 + drop, 0.1, 0.8 - drop])
            test: GroupGate | TrinomialGate = TrinomialGate(int(won), int(lost), RECORDS)
        else:
            values = clustered(sizes)(rng, RECORDS, 0.5 * (1.0 - drop))
            test = GroupGate(
                GroupSums(np.bincount(index, weights=values).astype(np.float64), declared.astype(np.float64), 0)
            )
        decision = settle(state, proposal, test, shares(state, proposal, test))
        if decision.outcome == ("keep" if drop else "worse"):
            return True
        state = after(state, decision)
    return False


LAWS = {"one law": None, "equal": equal_sizes, "heavy": heavy_sizes}


@pytest.mark.parametrize(
    ("shares", "law", "climbs"),
    corners([*((halves, law, 200) for law in LAWS), *((planned, law, 80) for law in LAWS)], 0, 1, 2),
)
def test_false_outcomes_of_gates_with_a_tolerance_are_as_rare_as_promised(
    shares: Shares, law: str, climbs: int
) -> None:
    rng = np.random.default_rng(21)
    assert not too_many((broken_gate(rng, LAWS[law], shares, paid, 8) for _ in range(climbs)), climbs, BETA)


def test_outcomes_that_cost_nothing_are_caught() -> None:
    rng, climbs = np.random.default_rng(22), 40
    assert too_many((broken_gate(rng, None, halves, free, 40) for _ in range(climbs)), climbs, BETA)


def test_gates_that_take_groups_for_single_records_are_caught() -> None:
    rng, climbs = np.random.default_rng(23), 200
    broken = (broken_gate(rng, large_sizes, halves, paid, 8, split=True) for _ in range(climbs))
    assert too_many(broken, climbs, BETA)


class Told:
    """A model whose predictions are a column of the records."""

    classes_ = np.array([0, 1])

    def __init__(self, column: int) -> None:
        self.column = column

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.asarray(X[:, self.column], dtype=np.int64)


def broken_guard(rng: np.random.Generator, sizes: Sizes) -> bool:
    """Propose candidates that are worse by more than the tolerance, and look as good on the training part."""
    own = np.array(sizes(RECORDS))
    labels = np.repeat(np.arange(own.size), own)
    draw = clustered(sizes)
    base = draw(rng, RECORDS, 0.8)
    columns = [base]
    for _ in range(6):
        lost = draw(rng, RECORDS, TOLERANCE / 0.8)  # of the records that the champion has right
        columns.append(base * (1.0 - lost))
    right = rng.random(RECORDS) < 0.8
    train = np.column_stack([np.where(rng.random(RECORDS) < 0.05, ~right, right) for _ in columns]).astype(float)
    guard = Thresholdout(
        (np.column_stack(columns), np.ones(RECORDS, dtype=int), labels),
        train=(train, np.ones(RECORDS, dtype=int), labels + own.size),
        confidence=1.0 - BETA,
        random_state=int(rng.integers(2**31)),
        allow_duplicates=True,
    )
    gate = guard.gate(Told(0), tolerance=TOLERANCE, train_values=train[:, 0])
    told = [gate.propose(Told(k), train_values=train[:, k]).outcome for k in range(1, len(columns))]
    return "keep" in told


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::thresholdout.WideAnswersWarning")
@pytest.mark.parametrize("sizes", [equal_sizes, heavy_sizes])
def test_a_guard_keeps_as_little_as_promised(sizes: Sizes) -> None:
    rng, climbs = np.random.default_rng(24), 25
    assert not too_many((broken_guard(rng, sizes) for _ in range(climbs)), climbs, BETA)
