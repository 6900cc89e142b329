"""Gates through a guard: what is kept, what it costs, what survives, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graphs import Groups, MarkovChain
from tests.cases import for_each
from tests.sizes import sizes
from tests.thresholdout.guard.gating import (
    TRAIN,
    Fails,
    N,
    Told,
    columns,
    guarded,
    misleading,
    p_value,
    public,
    sources,
)
from thresholdout import BudgetExhausted, Claims, InputError, LedgerClosed, SparseVector, Thresholdout
from thresholdout.guard.decision import Decision
from thresholdout.guard.gates import Gate
from thresholdout.ledger import open_ledger
from thresholdout.mechanisms.claims.score import FAILURE_SHARE
from thresholdout.scoring.metrics import Metric


def test_a_better_model_is_kept_a_worse_one_is_not_looked_at() -> None:
    right = columns([0.06, -0.06])
    guard = guarded(right)
    gate = guard.gate(Told(0))
    assert "nothing is certified yet" in repr(gate)
    kept = gate.propose(Told(1), name="first", cv="training")
    assert kept
    assert (kept.outcome, kept.certified, kept.test, kept.query, kept.name) == ("keep", True, "sign test", 1, "first")
    assert kept.cost == pytest.approx(math.log(0.05) - math.log(kept.error_budget_left))
    assert 0.0 < kept.cost < 0.3
    assert guard.status.error_budget_left == kept.error_budget_left
    worse = Told(2)
    left = gate.propose(worse, cv="training")
    assert not left
    assert (left.outcome, left.certified, left.test, left.cost) == ("reject", False, None, 0.0)
    assert worse.evaluations == 0
    assert guard.status.error_budget_left == kept.error_budget_left
    assert gate.champion is gate.certified
    assert gate.champion.column == 1
    assert not gate.on_the_way
    told = guard.history
    assert list(told["source"]) == ["keep", "skip"]
    assert list(told["candidate"]) == ["first", "Told"]
    assert (told["low"][0], told["high"][0]) == (0.0, 1.0)
    assert (told["low"][1], told["high"][1]) == (-1.0, 1.0)
    gains = right[N:, 1].mean() - right[N:, 0].mean(), right[N:, 2].mean() - right[N:, 1].mean()
    assert list(told["train"]) == pytest.approx(gains)
    assert guard.status.information_released == pytest.approx(kept.cost, abs=1e-9)


@sizes("seeds", 8, 40)
def test_the_level_is_that_of_the_sign_test_by_another_library(seeds: int) -> None:
    """Kept if and only if scipy's p-value is at most the level, which the decision and the risk before it show."""
    looked = [0, 0]
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        right = columns(list(rng.choice([0.03, 0.015, 0.0], 4)), seed)
        guard = guarded(right)
        gate, champion, before = guard.gate(Told(0)), 0, 0.05
        for new in range(1, 5):
            made = gate.propose(Told(new), cv="training")
            if made.test is not None:
                share = made.error_budget_left / before if made else 1.0 - made.error_budget_left / before
                looked[made.outcome == "keep"] += 1
                assert bool(made) == (p_value(right, new, champion) <= before * share * (1.0 - 3e-6))
            if made:
                champion = new
            before = made.error_budget_left
    assert min(looked) > 0.6 * seeds


def test_losses_are_put_to_bets_and_a_smaller_one_is_better() -> None:
    right = columns([0.06, -0.06])
    guard = guarded(right)
    gate = guard.gate(Told(0), "brier_score")
    made = gate.propose(Told(1), cv="training")
    assert made.certified
    assert made.test == "bets"
    assert made.gain == pytest.approx((right[N:, 1].mean() - right[N:, 0].mean()) * (0.81 - 0.01))  # 0.9^2 - 0.1^2
    assert not gate.propose(Told(2), cv="training")
    assert sources(guard) == ["keep", "skip"]
    wins = int((right[:N, 1] > right[:N, 0]).sum())
    losses = int((right[:N, 1] < right[:N, 0]).sum())
    bets = np.linspace(0.01, 0.99, 99)  # the best bet in hindsight wins at least as much as the one that was made
    wealth = wins * np.log1p(0.8 * bets) + losses * np.log1p(-0.8 * bets)
    assert wealth.max() >= -math.log(made.error_budget_left)


class Ends:
    """Values that are 0 or 1 on the training part, and not on the holdout."""

    @staticmethod
    def values(y: NDArray[Any], output: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
        return 0.9 * output if len(y) == N else output.astype(float)


def test_values_that_should_be_0_or_1_are_coins() -> None:
    right = columns([0.1])
    metric = Metric("ends", "predict", Ends.values, (0.0, 1.0), True)
    gate = guarded(right).gate(Told(0), metric)
    assert gate.test == "sign test"
    assert gate.propose(Told(1), cv="training").certified


#: A chain with zeros, of which no effective records are known.
WALK = [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]]


@for_each(
    ("settings", "delta", "test"),
    [
        ({}, 0.0, "sign test"),
        ({}, 0.01, "trinomial test"),
        ({"sampling": "independent"}, 0.01, "bets"),
        ({"sampling": "independent"}, 0.0, "bets"),
        ({"sampling": "fixed_features"}, 0.0, "bets"),
        ({"final_check": True}, 0.0, "sign test"),
        ({"dependence": Groups([k // 2 for k in range(N)])}, 0.0, "bets on groups"),
        ({"dependence": MarkovChain([[0.6, 0.4], [0.4, 0.6]], N)}, 0.0, "relative entropy"),
        ({"dependence": MarkovChain(WALK, N)}, 0.0, "Hoeffding's inequality"),
    ],
)
def test_the_test_is_what_the_declarations_allow(settings: dict[str, Any], delta: float, test: str) -> None:
    right = columns([0.3], changed=0.35)
    guard = guarded(right, **settings)
    gate = guard.gate(Told(0), delta=delta)
    assert gate.test == test
    made = gate.propose(Told(1), cv="training")
    assert (made.certified, made.test) == (True, test)
    assert guard.history["low"][0] == delta
    backwards = guarded(right, **settings).gate(Told(1), delta=delta).propose(Told(0), cv="training")
    assert not backwards


@for_each("settings", [{}, {"sampling": "independent"}])
def test_more_than_delta_is_not_a_little_more(settings: dict[str, Any]) -> None:
    right = columns([0.06])
    assert not guarded(right, **settings).gate(Told(0), delta=0.07).propose(Told(1), cv="training").certified


@for_each("certify", ["each", "milestones"])
@for_each("settings", [{}, {"sampling": "independent"}, {"dependence": Groups(np.arange(N) // 2)}])
def test_the_largest_delta_there_is(settings: dict[str, Any], certify: Any) -> None:
    """Half of one and the largest number below it is one, in floating point: of that nothing is bet."""
    right = np.column_stack([np.zeros(N + TRAIN), np.ones(N + TRAIN)])
    guard = guarded(right, **settings)
    gate = guard.gate(Told(0), certify=certify, delta=math.nextafter(1.0, 0.0))
    assert not gate.propose(Told(1), cv="training").certified
    if certify == "milestones":
        last = gate.last_evaluation()
        assert last is not None
        assert not last.certified


def test_the_champion_itself_is_no_candidate_and_a_copy_is() -> None:
    right = columns([0.06])
    guard = guarded(right)
    gate, model = guard.gate(Told(0)), Told(1)
    gate.propose(model, cv="training")
    model.column = 0
    with pytest.raises(InputError, match=r"copy\.deepcopy"):
        gate.propose(model, cv="training")
    assert not gate.propose(Told(1), cv="training")  # equal to the champion
    assert sources(guard) == ["keep", "skip"]


@for_each("error", [ValueError, SystemExit, KeyboardInterrupt])
@for_each("certify", ["each", "milestones"])
def test_a_candidate_that_fails_on_the_holdout_is_charged(error: type[BaseException], certify: Any) -> None:
    right = columns([0.08, 0.08])
    guard = guarded(right, mechanism=Claims(holdout_answers=5))
    gate = guard.gate(Told(0), certify=certify)
    shown = KeyboardInterrupt if error is KeyboardInterrupt else InputError
    with pytest.raises(shown, match="charged") as caught:
        gate.propose(Fails(1, error), key="broken", cv="training")
    assert "label" not in str(caught.value)
    assert sources(guard) == ["failed"]
    assert guard.status.answers_left == 4
    assert guard.status.error_budget_left == pytest.approx(0.05 * FAILURE_SHARE)
    assert gate.champion.column == 0
    with pytest.raises(InputError, match="another key"):
        gate.propose(Fails(1, error), key="broken", cv="training")
    assert len(guard.history) == 1
    good = gate.propose(Told(2), cv="training")
    assert good
    assert guard.history["low"][0] == -1.0


def test_a_candidate_that_is_not_looked_at_cannot_fail() -> None:
    right = columns([-0.06])
    guard = guarded(right)
    assert not guard.gate(Told(0)).propose(Fails(1), cv="training")
    assert sources(guard) == ["skip"]


def test_a_candidate_that_was_computed_is_tested_whoever_asked_meanwhile() -> None:
    """Turned down for nothing because the risk has fallen meanwhile, it would tell that it does not fail."""
    right = columns([0.03, 0.03])
    guard = guarded(right)

    class Meanwhile(Told):
        def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
            if len(X) == N:
                for number in range(3):
                    with pytest.raises(InputError):
                        guard.score(Fails(1), cv="training", key=f"{number}")
            return super().predict(X)

    made = guard.gate(Told(0)).propose(Meanwhile(1), cv="training", key="meanwhile")
    assert sources(guard) == ["failed"] * 3 + ["reject"]
    assert (made.outcome, made.test) == ("reject", "sign test")
    assert 0.0 < made.error_budget_left < 0.05 * FAILURE_SHARE**3
    assert guard.gate(Told(0)).propose(Told(1), cv="training").test is None  # planned now, it is not looked at


def test_limits_count_looks_and_not_what_is_free() -> None:
    right = columns([0.06, -0.06, 0.12, 0.06], changed=0.12)
    guard = guarded(right, queries=3, mechanism=Claims(holdout_answers=3))
    gate = guard.gate(Told(0))
    assert gate.propose(Told(1), cv="training").remaining == 3
    assert not gate.propose(Told(2), cv="training")
    assert gate.propose(Told(3), cv="training").certified
    guard.score(Told(3), cv="training")
    with pytest.raises(BudgetExhausted) as caught:
        gate.propose(Told(4), cv="training")
    assert (caught.value.what, guard.status.exhausted) == ("queries", "queries")
    assert len(guard.history) == 4


def test_what_the_holdout_does_not_confirm_is_charged_to_the_budget() -> None:
    right = misleading()
    guard = guarded(right, mechanism=Claims(holdout_answers=2))
    gate = guard.gate(Told(0))
    first, second = gate.propose(Told(1), cv="training"), gate.propose(Told(2), cv="training")
    assert not first
    assert (first.test, first.remaining, second.remaining) == ("sign test", 1, 0)
    assert first.cost > 1.0  # it was sure of it
    assert sources(guard) == ["reject", "reject"]
    assert guard.status.exhausted == "budget"
    with pytest.raises(BudgetExhausted):
        gate.propose(Told(3), cv="training")


def test_a_closed_guard_decides_no_more() -> None:
    right = columns([0.06, 0.06])
    ledger = open_ledger(None)
    guard = guarded(right, ledger=ledger)
    gate = guard.gate(Told(0))
    kept = gate.propose(Told(1), key="a", cv="training")
    ledger.close_guard(ledger.guards()[0], "it is done")
    with pytest.raises(LedgerClosed):
        gate.propose(Told(2), cv="training")
    assert guard.gate(Told(0)).propose(Told(1), key="a", cv="training").error_budget_left == kept.error_budget_left


def test_milestones_say_what_is_certified_and_what_is_on_the_way() -> None:
    right = columns([0.02, -0.02, 0.1], changed=0.05)
    guard = guarded(right)
    gate = guard.gate(Told(0), certify="milestones")
    assert gate.last_evaluation() is None
    step = gate.propose(Told(1), cv="training")
    assert step
    assert (step.certified, step.test, step.cost) == (False, None, 0.0)
    assert "on the way, not certified" in repr(step)
    assert (gate.champion.column, gate.certified.column, gate.on_the_way) == (1, 0, True)
    assert "on the way and NOT certified" in repr(gate)
    assert not gate.propose(Told(2), cv="training")
    made = gate.propose(Told(3), cv="training")
    assert made.certified
    assert (gate.champion.column, gate.certified.column, gate.on_the_way) == (3, 3, False)
    assert gate.last_evaluation() is None
    told = guard.history
    assert list(told["source"]) == ["step", "skip", "milestone"]
    assert list(told["low"]) == [-1.0, -1.0, 0.0]
    assert told["train"][2] == pytest.approx(right[N:, 3].mean() - right[N:, 1].mean())
    assert told["value"][2] == pytest.approx(right[N:, 3].mean() - right[N:, 0].mean())  # since the last milestone


def test_a_last_look_certifies_what_is_on_the_way() -> None:
    right = columns([0.02], changed=0.05)
    guard = guarded(right)
    gate = guard.gate(Told(0), certify="milestones")
    gate.propose(Told(1), cv="training")
    made = gate.last_evaluation(key="last")
    assert made is not None
    assert made.certified == (p_value(right, 1, 0) <= 0.05 * (1.0 - 3 * FAILURE_SHARE))
    assert made
    assert made.error_budget_left == pytest.approx(0.05, rel=1e-5)
    again = gate.last_evaluation(key="last")
    assert again is not None
    assert public(again) == public(made)
    assert again.repeated
    assert not gate.on_the_way
    assert sources(guard) == ["step", "milestone"]
    for wrong in ([1], 5, ""):
        with pytest.raises(InputError, match="key must be"):
            gate.last_evaluation(key=wrong)  # type: ignore[arg-type]
    assert len(guard.history) == 2


def test_a_last_look_that_is_not_confirmed_leaves_a_millionth() -> None:
    right = misleading()
    guard = guarded(right)
    gate = guard.gate(Told(0), certify="milestones")
    while not gate.on_the_way or "unconfirmed" not in sources(guard):
        gate.propose(Told(gate.champion.column + 1), cv="training")
    unconfirmed = guard.history[guard.history["source"] == "unconfirmed"].iloc[0]
    assert (unconfirmed["low"], unconfirmed["high"]) == (-1.0, 1.0)
    before = guard.status.error_budget_left
    last = gate.last_evaluation()
    assert last is not None
    assert not last
    assert not last.certified
    assert before is not None
    assert last.error_budget_left == pytest.approx(before * FAILURE_SHARE, rel=1e-3)
    assert gate.on_the_way
    assert gate.certified.column == 0


def test_a_checkpoint_leaves_half() -> None:
    right = columns([0.08, 0.08])
    guard = guarded(right)
    gate = guard.gate(Told(0), certify="milestones")
    made = gate.propose(Told(1), cv="training")
    assert made.certified
    assert made.error_budget_left == pytest.approx(0.025, rel=1e-5)
    assert made.error_budget_left == pytest.approx(math.exp(guard.history["log_error_budget"][0]))
    assert gate.propose(Told(2), cv="training").error_budget_left == pytest.approx(0.0125, rel=1e-5)


@for_each(
    ("settings", "argument"),
    [
        ({"metric": "f1"}, "metric"),
        ({"metric": "accurate"}, "metric"),
        ({"certify": "all"}, "certify"),
        ({"delta": 1.0}, "delta"),
        ({"delta": -0.1}, "delta"),
        ({"delta": "much"}, "delta"),
    ],
)
def test_what_is_no_gate_is_refused(settings: dict[str, Any], argument: str) -> None:
    guard = guarded(columns([0.06]))
    with pytest.raises(InputError) as caught:
        guard.gate(Told(0), **settings)
    assert caught.value.argument == argument
    assert len(guard.history) == 0


def test_a_gate_that_certifies_each_has_no_last_look() -> None:
    guard = guarded(columns([0.06]))
    with pytest.raises(InputError, match="'milestones' for last_evaluation"):
        guard.gate(Told(0)).last_evaluation()


@for_each(
    "settings",
    [
        {"mechanism": "ladder", "queries": 5},
        {"mechanism": SparseVector(0.1, 0.01, budget=2), "queries": 5},
    ],
)
def test_other_mechanisms_refuse_and_what_they_name_works(settings: dict[str, Any]) -> None:
    right = columns([0.06])
    guard = guarded(right, **settings)
    with pytest.raises(InputError, match=r"'claims' for a gate.*score\(candidate\)"):
        guard.gate(Told(0))
    assert len(guard.history) == 0
    low, high = guard.score(Told(1), cv="training").interval
    assert 0.0 <= low < high <= 1.0
    assert guarded(right, mechanism="claims").gate(Told(0)).propose(Told(1), cv="training")
    assert guarded(right, mechanism=Claims(noise=0.0)).gate(Told(0)).propose(Told(1), cv="training")


def test_after_the_final_check_nothing_is_decided() -> None:
    right = columns([0.06, 0.06])
    guard = guarded(right, final_check=True)
    gate = guard.gate(Told(0))
    assert gate.propose(Told(1), cv="training")
    guard.final_check(gate.certified, cv="training")
    with pytest.raises(BudgetExhausted):
        gate.propose(Told(2), cv="training")
    assert sources(guard)[0] == "keep"
    assert len(guard.history) == 2


def test_what_other_queries_pay_is_shared() -> None:
    right = columns([0.06, 0.06])
    guard = guarded(right)
    gate = guard.gate(Told(0))
    risks = [gate.propose(Told(1), cv="training").error_budget_left]
    answer = guard.score(Told(1), cv="training")
    risks += [
        float(np.exp(guard.history["log_error_budget"].iloc[-1])),
        gate.propose(Told(2), cv="training").error_budget_left,
    ]
    assert risks == sorted(risks, reverse=True)
    assert answer.interval[0] < right[:N, 1].mean() < answer.interval[1]
    assert sources(guard) == ["keep", "train", "keep"]


class TestTolerance:
    """Gates that certify "not worse by more than a tolerance" and "worse"."""

    @staticmethod
    def gate_of(n: int = 4000, **declared: Any) -> tuple[Gate, dict[str, Right], Thresholdout]:
        """Models that are right where their column says so: alike, a little worse, and much worse."""
        rng = np.random.default_rng(3)

        def part() -> tuple[np.ndarray, np.ndarray]:
            right = rng.random(n) < 0.8
            columns = [right]
            for changed, drop in ((0.02, 0.0), (0.1, 0.06), (0.02, 0.0)):
                chance = rng.random(n)
                lost = right & (chance < 0.5 * (changed + drop) / 0.8)
                won = ~right & (chance < 0.5 * (changed - drop) / 0.2)
                columns.append((right & ~lost) | won)
            return np.column_stack([*columns, rng.random(n)]), np.ones(n, dtype=int)

        holdout, train = part(), part()
        guard = Thresholdout(holdout, train=train, sampling="iid", random_state=0, **declared)
        models = {name: Right(k) for k, name in enumerate(("base", "alike", "worse", "again"))}
        gate = guard.gate(models["base"], tolerance=0.02, train_values=train[0][:, 0])
        return gate, models, guard

    def proposed(self, gate: Gate, model: Right, guard: Thresholdout) -> Decision:
        return gate.propose(model, train_values=guard.train[0][:, model.column])

    def test_alike_is_kept_and_worse_is_told_and_the_reference_stays(self) -> None:
        gate, models, guard = self.gate_of()
        kept = self.proposed(gate, models["alike"], guard)
        assert (kept.outcome, kept.certified, kept.test, bool(kept)) == ("keep", True, "trinomial test", True)
        assert gate.champion is models["base"]
        worse = self.proposed(gate, models["worse"], guard)
        assert (worse.outcome, worse.certified, worse.test, bool(worse)) == ("worse", True, "sign test", False)
        assert guard.history["source"].tolist() == ["keep", "worse"]
        assert guard.history["low"].tolist() == [-0.02, -1.0]
        assert guard.history["high"].tolist() == [1.0, 0.0]

    def test_of_declared_proposals_each_has_its_part_while_nothing_fires(self) -> None:
        gate, models, guard = self.gate_of(200, queries=300)
        told = self.proposed(gate, models["alike"], guard)
        assert told.outcome == "not settled"
        assert told.error_budget_left == pytest.approx(0.05 * 299 / 300, rel=1e-4)
        again = self.proposed(gate, models["again"], guard)
        assert again.outcome == "not settled"
        assert again.error_budget_left == pytest.approx(0.05 * 298 / 300, rel=1e-4)

    def test_a_tolerance_stands_alone(self) -> None:
        gate, models, guard = self.gate_of()
        with pytest.raises(InputError, match="tolerance"):
            guard.gate(models["base"], tolerance=0.0, train_values=guard.train[0][:, 0])
        with pytest.raises(InputError, match="tolerance must be None beside"):
            guard.gate(models["base"], tolerance=0.1, delta=0.1, train_values=guard.train[0][:, 0])
        with pytest.raises(InputError, match="tolerance must be None beside"):
            guard.gate(models["base"], tolerance=0.1, certify="milestones", train_values=guard.train[0][:, 0])
        assert "not worse by more than 0.02" in repr(gate)


class Right:
    """A model that is right where its column is 1."""

    def __init__(self, column: int) -> None:
        self.column = column
        self.classes_ = np.array([0, 1])

    def predict(self, X: np.ndarray) -> np.ndarray:
        return X[:, self.column].astype(int)
