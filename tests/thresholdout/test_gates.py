"""Gates through a guard: what is kept, what it costs, what survives, and what is refused."""

from __future__ import annotations

import math
import multiprocessing
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from scipy.stats import binomtest

from graphs import Groups, MarkovChain
from thresholdout import BudgetExhausted, InputError, LedgerDamaged, LedgerRetired, SeededNoise, Thresholdout
from thresholdout.cli.asking import history
from thresholdout.cli.keeping import verify
from thresholdout.gates import Decision, Gate
from thresholdout.ledger import open_ledger
from thresholdout.mechanisms.claims.climbs import remembered_by
from thresholdout.mechanisms.claims.score import RAISED
from thresholdout.metrics import Metric
from thresholdout.sharing import share

N = 1000
TRAIN = 2 * N
STEPS = 12


class Told:
    """A model whose predictions are a column of the records; it notes when it sees the holdout."""

    classes_ = np.array([0, 1])

    def __init__(self, column: int) -> None:
        self.column = column
        self.looks = 0

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        self.looks += len(X) == N
        return X[:, self.column].astype(int)

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        self.looks += len(X) == N
        one = 0.1 + 0.8 * X[:, self.column]
        return np.stack([1.0 - one, one], axis=1)


class Fails(Told):
    """A model that works on the training part and not on the holdout."""

    def __init__(self, column: int, error: type[BaseException] = ValueError) -> None:
        super().__init__(column)
        self.error = error

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        if len(X) == N:
            raise self.error(f"the first label is {X[0]}")
        return super().predict(X)


def columns(gains: list[float], seed: int = 0, changed: float = 0.08) -> NDArray[np.float64]:
    """Return whether models are right: each changes some records of the one before, and is better by a gain."""
    rng = np.random.default_rng(seed)
    right, accuracy = rng.random(N + TRAIN) < 0.6, 0.6
    found = [right]
    for gain in gains:
        change = max(changed, abs(gain))
        up, down = 0.5 * (change + gain) / (1.0 - accuracy), 0.5 * (change - gain) / accuracy
        u = rng.random(N + TRAIN)
        right, accuracy = np.where(right, u >= down, u < up), accuracy + gain
        found.append(right)
    return np.stack(found, axis=1).astype(float)


def guarded(right: NDArray[np.float64], **settings: Any) -> Thresholdout:
    settings = {"identically_distributed": True, "noise": SeededNoise(1), **settings}
    X = np.column_stack([right, np.arange(len(right))])
    y = np.ones(len(right), dtype=int)
    return Thresholdout((X[:N], y[:N]), train=(X[N:], y[N:]), **settings)


def p_value(right: NDArray[np.float64], new: int, old: int) -> float:
    """Return scipy's p-value of the sign test on the holdout."""
    wins = int(((right[:N, new] == 1) & (right[:N, old] == 0)).sum())
    losses = int(((right[:N, new] == 0) & (right[:N, old] == 1)).sum())
    return float(binomtest(wins, max(1, wins + losses), 0.5, alternative="greater").pvalue) if wins + losses else 1.0


def sources(guard: Thresholdout) -> list[str]:
    return list(guard.history["source"])


def test_a_better_model_is_kept_a_worse_one_is_not_looked_at() -> None:
    right = columns([0.06, -0.06])
    guard = guarded(right)
    gate = guard.gate(Told(0))
    assert "nothing is certified yet" in repr(gate)
    kept = gate.propose(Told(1), name="first")
    assert kept
    assert (kept.letter, kept.certified, kept.test, kept.query, kept.name) == ("keep", True, "sign test", 1, "first")
    assert kept.cost == pytest.approx(math.log(0.05) - math.log(kept.risk_left))
    assert 0.0 < kept.cost < 0.3
    assert guard.risk_left == kept.risk_left
    worse = Told(2)
    left = gate.propose(worse)
    assert not left
    assert (left.letter, left.certified, left.test, left.cost) == ("reject", False, None, 0.0)
    assert worse.looks == 0
    assert guard.risk_left == kept.risk_left
    assert gate.incumbent is gate.certified
    assert gate.incumbent.column == 1
    assert not gate.on_the_way
    told = guard.history
    assert list(told["source"]) == ["keep", "skip"]
    assert list(told["candidate"]) == ["first", ""]
    assert (told["low"][0], told["high"][0]) == (0.0, 1.0)
    assert (told["low"][1], told["high"][1]) == (-1.0, 1.0)
    gains = right[N:, 1].mean() - right[N:, 0].mean(), right[N:, 2].mean() - right[N:, 1].mean()
    assert list(told["train"]) == pytest.approx(gains)
    assert guard.told == pytest.approx(kept.cost, abs=1e-9)


def test_the_level_is_that_of_the_sign_test_by_another_library() -> None:
    """Kept if and only if scipy's p-value is at most the level, which the decision and the risk before it show."""
    looked = [0, 0]
    for seed in range(40):
        rng = np.random.default_rng(seed)
        right = columns(list(rng.choice([0.03, 0.015, 0.0], 4)), seed)
        guard = guarded(right)
        gate, incumbent, before = guard.gate(Told(0)), 0, 0.05
        for new in range(1, 5):
            made = gate.propose(Told(new))
            if made.test is not None:
                share = made.risk_left / before if made else 1.0 - made.risk_left / before
                looked[made.letter == "keep"] += 1
                assert bool(made) == (p_value(right, new, incumbent) <= before * share * (1.0 - 3e-6))
            if made:
                incumbent = new
            before = made.risk_left
    assert min(looked) > 10


def test_losses_are_put_to_bets_and_a_smaller_one_is_better() -> None:
    right = columns([0.06, -0.06])
    guard = guarded(right)
    gate = guard.gate(Told(0), "brier_score")
    made = gate.propose(Told(1))
    assert made.certified
    assert made.test == "bets"
    assert made.gain == pytest.approx((right[N:, 1].mean() - right[N:, 0].mean()) * (0.81 - 0.01))  # 0.9^2 - 0.1^2
    assert not gate.propose(Told(2))
    assert sources(guard) == ["keep", "skip"]
    wins = int((right[:N, 1] > right[:N, 0]).sum())
    losses = int((right[:N, 1] < right[:N, 0]).sum())
    bets = np.linspace(0.01, 0.99, 99)  # the best bet in hindsight wins at least as much as the one that was made
    wealth = wins * np.log1p(0.8 * bets) + losses * np.log1p(-0.8 * bets)
    assert wealth.max() >= -math.log(made.risk_left)


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
    assert gate.propose(Told(1)).certified


@pytest.mark.parametrize(
    ("settings", "delta", "test"),
    [
        ({}, 0.0, "sign test"),
        ({}, 0.01, "bets"),
        ({"identically_distributed": False}, 0.0, "bets"),
        ({"identically_distributed": False, "given": "features"}, 0.0, "bets"),
        ({"final_check": True}, 0.0, "sign test"),
        ({"dependence": Groups([k // 2 for k in range(N)])}, 0.0, "relative entropy"),
        ({"dependence": MarkovChain([[0.6, 0.4], [0.4, 0.6]], N)}, 0.0, "Hoeffding's inequality"),
    ],
)
def test_the_test_is_what_the_declarations_allow(settings: dict[str, Any], delta: float, test: str) -> None:
    right = columns([0.3], changed=0.35)
    guard = guarded(right, **settings)
    gate = guard.gate(Told(0), delta=delta)
    assert gate.test == test
    made = gate.propose(Told(1))
    assert (made.certified, made.test) == (True, test)
    assert guard.history["low"][0] == delta
    backwards = guarded(right, **settings).gate(Told(1), delta=delta).propose(Told(0))
    assert not backwards


@pytest.mark.parametrize("settings", [{}, {"identically_distributed": False}])
def test_more_than_delta_is_not_a_little_more(settings: dict[str, Any]) -> None:
    right = columns([0.06])
    assert not guarded(right, **settings).gate(Told(0), delta=0.07).propose(Told(1)).certified


@pytest.mark.parametrize("certify", ["each", "milestones"])
@pytest.mark.parametrize(
    "settings", [{}, {"identically_distributed": False}, {"dependence": Groups(np.arange(N) // 2)}]
)
def test_the_largest_delta_there_is(settings: dict[str, Any], certify: Any) -> None:
    """Half of one and the largest number below it is one, in floating point: of that nothing is bet."""
    right = np.column_stack([np.zeros(N + TRAIN), np.ones(N + TRAIN)])
    guard = guarded(right, **settings)
    gate = guard.gate(Told(0), certify=certify, delta=math.nextafter(1.0, 0.0))
    assert not gate.propose(Told(1)).certified
    if certify == "milestones":
        last = gate.last_look()
        assert last is not None
        assert not last.certified


def climbed(gate: Gate, models: list[Told], first: int = 0) -> list[Decision]:
    return [gate.propose(model, key=f"step {k}") for k, model in enumerate(models) if k >= first]


def gains(certify: str) -> list[float]:
    return [0.04, 0.0, 0.04, -0.02] * 3 if certify == "each" else [0.03, 0.02, -0.02, 0.03] * 3


def public(decision: Decision) -> tuple[Any, ...]:
    return decision.letter, decision.certified, decision.test, decision.risk_left, decision.query


@pytest.mark.parametrize("certify", ["each", "milestones"])
def test_a_program_that_starts_anew_is_where_it_was(tmp_path: Path, certify: Any) -> None:
    right = columns(gains(certify))
    models = [Told(k) for k in range(1, STEPS + 1)]
    straight = guarded(right)
    gate = straight.gate(Told(0), certify=certify)
    expected = climbed(gate, models)
    assert {"each": {"keep", "skip"}, "milestones": {"skip", "step", "milestone"}}[certify] <= set(sources(straight))
    for broken in (1, 4, 7, 10):
        file = tmp_path / f"{broken}.db"
        climbed(guarded(right, ledger=file).gate(Told(0), certify=certify), models[:broken])
        again = guarded(right, ledger=file)
        risk = again.risk_left
        found = again.gate(Told(0), certify=certify)
        repeated = climbed(found, models[:broken])
        assert all(decision.repeated and decision.cost == 0.0 for decision in repeated)
        assert again.risk_left == risk
        later = climbed(found, models, broken)
        assert [public(decision) for decision in repeated + later] == [public(decision) for decision in expected]
        assert found.incumbent.column == gate.incumbent.column
        assert found.certified.column == gate.certified.column
        assert found.on_the_way == gate.on_the_way
        assert sources(again) == sources(straight)


def test_what_cross_validation_said_survives_without_proposing_again(tmp_path: Path) -> None:
    right = columns(gains("each"))
    models = [Told(k) for k in range(1, STEPS + 1)]
    straight = guarded(right)
    expected = climbed(straight.gate(Told(0)), models)
    first = guarded(right, ledger=tmp_path / "guard.db").gate(Told(0))
    climbed(first, models[:7])
    again = guarded(right, ledger=tmp_path / "guard.db")
    known = remembered_by(again._steps.state(), "gate: accuracy").history
    assert known.count == 7
    later = climbed(again.gate(first.incumbent), models, 7)
    assert [public(decision) for decision in later] == [public(decision) for decision in expected[7:]]


def test_a_gate_of_another_metric_has_a_history_of_its_own() -> None:
    right = columns([0.06, 0.0])
    guard = guarded(right)
    guard.gate(Told(0)).propose(Told(1))
    guard.gate(Told(0), "brier_score").propose(Told(1))
    state = guard._steps.state()
    assert len(state.climbs) == 2
    assert remembered_by(state, "gate: brier_score").history.count == 1
    assert remembered_by(state, "gate: log_loss").history.count == 0


def test_a_lead_belongs_to_its_climb() -> None:
    """A new gate starts from what it is given: what an earlier one had reached is not added to its first step."""
    right = columns([0.02, 0.02], changed=0.05)
    guard = guarded(right)
    guard.gate(Told(0), certify="milestones").propose(Told(1))
    assert remembered_by(guard._steps.state(), "milestones: accuracy").ahead > 0.0
    guard.gate(Told(2), certify="milestones").propose(Told(1))
    assert remembered_by(guard._steps.state(), "milestones: accuracy").ahead == 0.0


def test_the_same_key_in_the_same_climb() -> None:
    right = columns([0.06, 0.06])
    guard = guarded(right)
    gate = guard.gate(Told(0))
    kept = gate.propose(Told(1), key="a")
    gate.propose(Told(2), key="b")
    again = gate.propose(Told(1), key="a")
    assert public(again) == public(kept)
    assert (again.repeated, again.cost) == (True, 0.0)
    assert gate.incumbent.column == 2
    assert len(guard.history) == 2
    with pytest.raises(InputError, match="a key names one candidate"):
        gate.propose(Told(0), key="a")


def test_a_key_is_of_a_candidate_or_of_a_question() -> None:
    right = columns([0.06])
    guard = guarded(right)
    gate = guard.gate(Told(0))
    guard.score(Told(1), key="score")
    with pytest.raises(InputError, match="key"):
        gate.propose(Told(1), key="score")
    made = gate.propose(Told(1), key="candidate")
    name, gain = "gate: accuracy", made.gain
    with pytest.raises(InputError, match="used for a candidate"):
        guard.ask(gain, np.zeros(N), bounds=(-1.0, 1.0), name=name, key="candidate")
    with pytest.raises(InputError, match="key"):  # a gate with another delta claims something else
        guard.gate(Told(0), delta=0.01).propose(Told(1), key="candidate")
    assert sources(guard) == ["train", "keep"]


def test_the_incumbent_itself_is_no_candidate_and_a_copy_is() -> None:
    right = columns([0.06])
    guard = guarded(right)
    gate, model = guard.gate(Told(0)), Told(1)
    gate.propose(model)
    model.column = 0
    with pytest.raises(InputError, match=r"copy\.deepcopy"):
        gate.propose(model)
    assert not gate.propose(Told(1))  # equal to the incumbent
    assert sources(guard) == ["keep", "skip"]


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("certify", ["each", "milestones"])
def test_a_candidate_that_fails_on_the_holdout_is_charged(error: type[BaseException], certify: Any) -> None:
    right = columns([0.08, 0.08])
    guard = guarded(right, budget=5)
    gate = guard.gate(Told(0), certify=certify)
    shown = KeyboardInterrupt if error is KeyboardInterrupt else InputError
    with pytest.raises(shown, match="charged") as caught:
        gate.propose(Fails(1, error), key="broken")
    assert "label" not in str(caught.value)
    assert sources(guard) == ["failed"]
    assert guard.remaining == 4
    assert guard.risk_left == pytest.approx(0.05 * RAISED)
    assert gate.incumbent.column == 0
    with pytest.raises(InputError, match="another key"):
        gate.propose(Fails(1, error), key="broken")
    assert len(guard.history) == 1
    good = gate.propose(Told(2))
    assert good
    assert guard.history["low"][0] == -1.0


def test_a_candidate_that_is_not_looked_at_cannot_fail() -> None:
    right = columns([-0.06])
    guard = guarded(right)
    assert not guard.gate(Told(0)).propose(Fails(1))
    assert sources(guard) == ["skip"]


def test_a_candidate_that_was_computed_is_tested_whoever_asked_meanwhile() -> None:
    """Turned down for nothing because the risk has fallen meanwhile, it would tell that it does not fail."""
    right = columns([0.03, 0.03])
    guard = guarded(right)

    class Meanwhile(Told):
        def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
            if len(X) == N:
                for _ in range(3):
                    with pytest.raises(InputError):
                        guard.score(Fails(1))
            return super().predict(X)

    made = guard.gate(Told(0)).propose(Meanwhile(1))
    assert sources(guard) == ["failed"] * 3 + ["reject"]
    assert (made.letter, made.test) == ("reject", "sign test")
    assert 0.0 < made.risk_left < 0.05 * RAISED**3
    assert guard.gate(Told(0)).propose(Told(1)).test is None  # planned now, it is not looked at


def test_limits_count_looks_and_not_what_is_free() -> None:
    right = columns([0.06, -0.06, 0.12, 0.06], changed=0.12)
    guard = guarded(right, queries=3, budget=3)
    gate = guard.gate(Told(0))
    assert gate.propose(Told(1)).remaining == 3
    assert not gate.propose(Told(2))
    assert gate.propose(Told(3)).certified
    guard.score(Told(3))
    with pytest.raises(BudgetExhausted) as caught:
        gate.propose(Told(4))
    assert (caught.value.what, guard.exhausted) == ("queries", "queries")
    assert len(guard.history) == 4


def misleading(seed: int = 0) -> NDArray[np.float64]:
    """Return columns of which all but the first look better on the training part, and are worse on the holdout."""
    right = columns([0.06] * 6, seed)
    right[:N] = columns([-0.02] * 6, seed + 1)[:N]
    return right


def test_what_the_holdout_does_not_confirm_is_charged_to_the_budget() -> None:
    right = misleading()
    guard = guarded(right, budget=2)
    gate = guard.gate(Told(0))
    first, second = gate.propose(Told(1)), gate.propose(Told(2))
    assert not first
    assert (first.test, first.remaining, second.remaining) == ("sign test", 1, 0)
    assert first.cost > 1.0  # it was sure of it
    assert sources(guard) == ["reject", "reject"]
    assert guard.exhausted == "budget"
    with pytest.raises(BudgetExhausted):
        gate.propose(Told(3))


def test_a_retired_guard_decides_no_more() -> None:
    right = columns([0.06, 0.06])
    ledger = open_ledger(None)
    guard = guarded(right, ledger=ledger)
    gate = guard.gate(Told(0))
    kept = gate.propose(Told(1), key="a")
    ledger.retire(ledger.guards()[0], "it is done")
    with pytest.raises(LedgerRetired):
        gate.propose(Told(2))
    assert guard.gate(Told(0)).propose(Told(1), key="a").risk_left == kept.risk_left


def test_milestones_say_what_is_certified_and_what_is_on_the_way() -> None:
    right = columns([0.02, -0.02, 0.1], changed=0.05)
    guard = guarded(right)
    gate = guard.gate(Told(0), certify="milestones")
    assert gate.last_look() is None
    step = gate.propose(Told(1))
    assert step
    assert (step.certified, step.test, step.cost) == (False, None, 0.0)
    assert "on the way, not certified" in repr(step)
    assert (gate.incumbent.column, gate.certified.column, gate.on_the_way) == (1, 0, True)
    assert "on the way and NOT certified" in repr(gate)
    assert not gate.propose(Told(2))
    made = gate.propose(Told(3))
    assert made.certified
    assert (gate.incumbent.column, gate.certified.column, gate.on_the_way) == (3, 3, False)
    assert gate.last_look() is None
    told = guard.history
    assert list(told["source"]) == ["step", "skip", "milestone"]
    assert list(told["low"]) == [-1.0, -1.0, 0.0]
    assert told["train"][2] == pytest.approx(right[N:, 3].mean() - right[N:, 1].mean())
    assert told["value"][2] == pytest.approx(right[N:, 3].mean() - right[N:, 0].mean())  # since the last milestone


def test_a_last_look_certifies_what_is_on_the_way() -> None:
    right = columns([0.02], changed=0.05)
    guard = guarded(right)
    gate = guard.gate(Told(0), certify="milestones")
    gate.propose(Told(1))
    made = gate.last_look(key="last")
    assert made is not None
    assert made.certified == (p_value(right, 1, 0) <= 0.05 * (1.0 - 3 * RAISED))
    assert made
    assert made.risk_left == pytest.approx(0.05, rel=1e-5)
    again = gate.last_look(key="last")
    assert again is not None
    assert public(again) == public(made)
    assert again.repeated
    assert not gate.on_the_way
    assert sources(guard) == ["step", "milestone"]
    for wrong in ([1], 5, ""):
        with pytest.raises(InputError, match="key: "):
            gate.last_look(key=wrong)  # type: ignore[arg-type]
    assert len(guard.history) == 2


def test_a_last_look_that_is_not_confirmed_leaves_a_millionth() -> None:
    right = misleading()
    guard = guarded(right)
    gate = guard.gate(Told(0), certify="milestones")
    while not gate.on_the_way or "unconfirmed" not in sources(guard):
        gate.propose(Told(gate.incumbent.column + 1))
    unconfirmed = guard.history[guard.history["source"] == "unconfirmed"].iloc[0]
    assert (unconfirmed["low"], unconfirmed["high"]) == (-1.0, 1.0)
    before = guard.risk_left
    last = gate.last_look()
    assert last is not None
    assert not last
    assert not last.certified
    assert before is not None
    assert last.risk_left == pytest.approx(before * RAISED, rel=1e-3)
    assert gate.on_the_way
    assert gate.certified.column == 0


def test_a_checkpoint_leaves_half() -> None:
    right = columns([0.08, 0.08])
    guard = guarded(right)
    gate = guard.gate(Told(0), certify="milestones")
    made = gate.propose(Told(1))
    assert made.certified
    assert made.risk_left == pytest.approx(0.025, rel=1e-5)
    assert made.risk_left == pytest.approx(math.exp(guard.history["risk"][0]))
    assert gate.propose(Told(2)).risk_left == pytest.approx(0.0125, rel=1e-5)


@pytest.mark.parametrize(
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
    with pytest.raises(InputError, match="certify='milestones'"):
        guard.gate(Told(0)).last_look()


@pytest.mark.parametrize(
    "settings",
    [
        {"mechanism": "gaussian", "queries": 5},
        {"mechanism": "ladder", "queries": 5},
        {"mechanism": "splitting", "queries": 5},
        {"threshold": 0.1, "noise_scale": 0.01, "queries": 5, "budget": 2},
    ],
)
def test_other_mechanisms_refuse_and_what_they_name_works(settings: dict[str, Any]) -> None:
    right = columns([0.06])
    guard = guarded(right, **settings)
    with pytest.raises(InputError, match=r"mechanism='thresholdout'.*score\(candidate\)"):
        guard.gate(Told(0))
    assert len(guard.history) == 0
    low, high = guard.score(Told(1)).interval
    assert 0.0 <= low < high <= 1.0
    assert guarded(right, mechanism="thresholdout").gate(Told(0)).propose(Told(1))
    assert guarded(right, mechanism="guess-and-check").gate(Told(0)).propose(Told(1))


def test_after_the_final_check_nothing_is_decided() -> None:
    right = columns([0.06, 0.06])
    guard = guarded(right, final_check=True)
    gate = guard.gate(Told(0))
    assert gate.propose(Told(1))
    guard.final_check(gate.certified)
    with pytest.raises(BudgetExhausted):
        gate.propose(Told(2))
    assert sources(guard)[0] == "keep"
    assert len(guard.history) == 2


def test_what_other_questions_pay_is_shared() -> None:
    right = columns([0.06, 0.06])
    guard = guarded(right)
    gate = guard.gate(Told(0))
    risks = [gate.propose(Told(1)).risk_left]
    answer = guard.score(Told(1))
    risks += [float(np.exp(guard.history["risk"].iloc[-1])), gate.propose(Told(2)).risk_left]
    assert risks == sorted(risks, reverse=True)
    assert answer.interval[0] < right[:N, 1].mean() < answer.interval[1]
    assert sources(guard) == ["keep", "train", "keep"]


def test_a_state_that_forgets_a_candidate_is_noticed(tmp_path: Path) -> None:
    right = columns([0.06, -0.06])
    file = tmp_path / "guard.db"
    gate = guarded(right, ledger=file).gate(Told(0))
    gate.propose(Told(1))
    before = guarded(right, ledger=file)._steps.state()
    gate.propose(Told(2))
    guard = guarded(right, ledger=file)
    state = guard._steps.state()
    assert (state.asked, state.free, state.hits) == (2, 1, 0)
    import sqlite3
    from dataclasses import replace

    for wrong in (replace(state, free=0), replace(state, hits=1, letters=1), before):
        with sqlite3.connect(file) as connection:
            connection.execute("UPDATE guards SET state = ?", (wrong.to_text(),))
        connection.close()
        with pytest.raises(LedgerDamaged):
            guarded(right, ledger=file)


def dies(file: Path, right: NDArray[np.float64], where: str) -> None:
    guard = guarded(right, ledger=file)
    gate = guard.gate(Told(0))
    if where == "before":

        class Dies(Told):
            def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
                if len(X) == N:
                    os._exit(3)
                return super().predict(X)

        gate.propose(Dies(1), key="a")
    gate._told = lambda *args, **kwargs: os._exit(3)  # type: ignore[method-assign]
    gate.propose(Told(1), key="a")


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_crash_before_or_after_the_decision_is_stored(tmp_path: Path, where: str) -> None:
    right = columns([0.06])
    file = tmp_path / "guard.db"
    child = multiprocessing.get_context("fork").Process(target=dies, args=(file, right, where), daemon=True)
    child.start()
    child.join(60)
    assert child.exitcode == 3
    guard = guarded(right, ledger=file)
    assert sources(guard) == ([] if where == "before" else ["keep"])
    made = guard.gate(Told(0)).propose(Told(1), key="a")
    assert made.certified
    assert made.repeated == (where == "after")
    assert sources(guard) == ["keep"]
    assert public(made) == public(guarded(right).gate(Told(0)).propose(Told(1), key="a"))


def in_children(function: Any, *args: tuple[Any, ...]) -> list[Any]:
    """Run a function in forked children, one after another, and return its results."""
    fork = multiprocessing.get_context("fork")
    found = []
    for given in args:
        receiving, sending = fork.Pipe(duplex=False)
        child = fork.Process(target=lambda given=given, sending=sending: sending.send(function(*given)), daemon=True)
        child.start()
        assert receiving.poll(60)
        found.append(receiving.recv())
        child.join(60)
    return found


def proposes(gate: Gate, column: int) -> tuple[int, Decision, bool, str]:
    made = gate.propose(Told(column), key=f"column {column}")
    return os.getpid(), made, gate.on_the_way, repr(gate)


def test_a_gate_is_used_from_other_processes() -> None:
    right = columns([0.06, -0.06])
    guard = guarded(right)
    gate = guard.gate(Told(0))
    assert pickle.loads(pickle.dumps(gate)) is gate
    found = in_children(proposes, (gate, 1), (gate, 1), (gate, 1))
    assert os.getpid() not in {process for process, _, _, _ in found}
    assert sorted(decision.repeated for _, decision, _, _ in found) == [False, True, True]
    assert all(decision.certified and not on_the_way for _, decision, on_the_way, _ in found)
    assert gate.incumbent.column == 1
    assert sources(guard) == ["keep"]
    assert found[0][3].startswith("<Gate: accuracy, each certified by sign test; the incumbent is certified")


def makes(guard: Thresholdout) -> tuple[Decision | None, int, str, float]:
    gate = guard.gate(Told(0), certify="milestones")
    gate.propose(Told(1))
    return gate.last_look(), gate.certified.column, gate.test, gate.delta


def test_a_gate_is_made_in_another_process() -> None:
    guard = guarded(columns([0.02], changed=0.05))
    share(guard)
    ((last, certified, test, delta),) = in_children(makes, (guard,))
    assert last.certified
    assert (certified, test, delta) == (1, "sign test", 0.0)
    assert sources(guard) == ["step", "milestone"]


def test_a_report_shows_candidates(tmp_path: Path) -> None:
    right = misleading()
    right[:N, 1:3] = columns([0.06, 0.06])[:N, 1:3]
    right[:N, 0] = columns([0.06, 0.06])[:N, 0]
    guard = guarded(right, ledger=tmp_path / "guard.db")
    gate = guard.gate(Told(0))
    for column in range(1, 7):
        gate.propose(Told(column), name=f"column {column}")
    guard.score(gate.certified)
    found = sources(guard)
    report = guard.report()
    assert len(report.answers) == 1
    assert report.questions == sum(source != "skip" for source in found)
    assert report.candidates == 6
    assert report.certified == found.count("keep") > 0
    assert "6 candidates were proposed" in report.html
    assert "column 1" in report.html
    assert guard.plot() is not None
    told = CliRunner().invoke(history, [str(tmp_path / "guard.db")])
    lines = told.output.splitlines()[1:]
    assert lines[0].split() == [
        "1",
        "gate:",
        "accuracy:",
        "column",
        "1",
        f"{report.history['train'][0]:.6g}",
        "-",
        "-",
        "keep",
        "-",
    ]
    assert [line.split()[-2] for line in lines] == found
    assert "7 entries, unchanged" in CliRunner().invoke(verify, [str(tmp_path / "guard.db")]).output
