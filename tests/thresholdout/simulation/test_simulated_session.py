"""Sessions: what an analyst sees, what is remembered, how one ends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from graphs import Groups, Independent
from tests.cases import for_each
from thresholdout import BudgetExhausted, InputError, SeededNoise, Thresholdout
from thresholdout.mechanisms import ClaimsParameters, SparseVectorParameters
from thresholdout.simulation import NaiveReuse, SimulatedGuard, interview
from thresholdout.simulation.simulated_session import Asking, Part, Query, Reply, Session

TRAIN = Part(np.zeros((4, 1)), np.array([1, 1, 1, 0]))
HOLDOUT = Part(np.zeros((4, 1)), np.array([1, 0, 0, 0]))


def labels(part: Part) -> Any:
    return part.labels


def test_parts_fit() -> None:
    with pytest.raises(InputError, match="labels"):
        Part(np.zeros((3, 2)), np.zeros(2))
    with pytest.raises(InputError, match="labels"):
        Part(np.zeros(3), np.zeros(3))


def test_everything_is_remembered_and_only_the_reply_is_shown() -> None:
    session = Session(NaiveReuse(), TRAIN, HOLDOUT, truth=lambda query: 0.5)
    reply = session.ask(labels)
    assert reply == Reply(0.25, reply.half_width, "unknown")
    assert math.isnan(reply.half_width)
    exchange = session.history[0]
    assert (exchange.train, exchange.holdout, exchange.truth, exchange.error) == (0.75, 0.25, 0.5, 0.25)
    assert not exchange.broken  # nothing was promised
    row = session.table().iloc[0]
    assert (row["answer"], row["train"], row["holdout"], row["truth"]) == (0.25, 0.75, 0.25, 0.5)


@for_each(("claim", "train"), [(0.3, 0.3), (-2.0, 0.0), (7.0, 1.0), (None, 0.75)])
def test_a_claim_takes_the_place_of_the_training_value(claim: float | None, train: float) -> None:
    session = Session(NaiveReuse(), TRAIN, HOLDOUT)
    session.ask(labels, claim)
    assert session.history[0].train == train


class Fixed:
    """Answers 0.6 ± 0.05, and refuses the third query."""

    def __init__(self) -> None:
        self.asked = 0

    def ask(self, train_values: Any, holdout_values: Any) -> Reply:
        self.asked += 1
        if self.asked == 3:
            raise BudgetExhausted("budget", 2, 2)
        return Reply(0.6, 0.05, "holdout")


@for_each(("truth", "broken"), [(0.62, False), (0.5, True)])
def test_a_promise_is_broken_beyond_the_half_width(truth: float, broken: bool) -> None:
    session = Session(Fixed(), TRAIN, HOLDOUT, truth)
    session.ask(labels)
    session.ask(labels)
    assert session.broken is broken
    assert session.largest_error == pytest.approx(abs(0.6 - truth))
    assert session.promised == 0.05


class Persistent:
    """Asks a number of times, and concludes or not."""

    def __init__(self, queries: int, conclusion: Query | None = labels) -> None:
        self.queries, self.conclusion = queries, conclusion

    def run(self, ask: Asking, train: Part, rng: np.random.Generator) -> Query | None:
        for _ in range(self.queries):
            ask(labels)
        return self.conclusion


def test_a_refusal_ends_the_session_without_a_report() -> None:
    session = interview(Persistent(5), Fixed(), TRAIN, HOLDOUT, np.random.default_rng(0))
    assert (session.refused, session.answered, session.reported) == (True, 2, None)


def test_the_last_answer_is_the_report_if_there_is_a_conclusion() -> None:
    rng = np.random.default_rng(0)
    assert interview(Persistent(2), Fixed(), TRAIN, HOLDOUT, rng).reported is not None
    assert interview(Persistent(2, None), Fixed(), TRAIN, HOLDOUT, rng).reported is None
    assert interview(Persistent(0), Fixed(), TRAIN, HOLDOUT, rng).reported is None


def test_a_simulated_guard_refuses_what_the_real_one_would_answer_too_widely() -> None:
    """Claims that know from training values that all values are 0 or 1, or only their mean."""
    rng = np.random.default_rng(0)
    parameters = ClaimsParameters(max_half_width=0.1)
    simulated = SimulatedGuard(parameters, Independent(600), SeededNoise(5))
    real = Thresholdout(np.arange(600.0), train=np.arange(600.0, 1200.0), mechanism=parameters, random_state=5)
    refused = 0
    for k in range(30):
        share = rng.choice([0.5, 0.97])
        values, train = rng.random(600) < share, rng.random(600) < share
        asked: Any = train if k % 3 else float(train.mean())
        try:
            answer = real.ask(asked, values)
        except BudgetExhausted as error:
            refused += error.what == "width"
            with pytest.raises(BudgetExhausted, match="above max_half_width"):
                simulated.ask(asked, values)
            continue
        reply = simulated.ask(asked, values)
        assert (reply.value, reply.source) == (answer.value, answer.source)
        assert reply.half_width == pytest.approx(answer.half_width, abs=1e-7)
    assert 0 < refused < 30


@pytest.mark.slow
@for_each("model", [Independent(600), Groups(np.arange(600) // 3)])
def test_a_simulated_guard_answers_as_the_real_one(model: Any) -> None:
    rng = np.random.default_rng(0)
    chosen = SparseVectorParameters(0.1, 0.002, budget=4, queries=30)
    simulated = SimulatedGuard(chosen, model, SeededNoise(5), 0.9)
    real = Thresholdout(np.arange(600), dependence=model, queries=30, mechanism=chosen, confidence=0.9, random_state=5)
    for _ in range(30):
        values = rng.random(600) < rng.random()
        train = float(np.clip(values.mean() + rng.choice([0.0, 0.4]), 0, 1))
        try:
            answer = real.ask(train, values)
        except BudgetExhausted:
            with pytest.raises(BudgetExhausted):
                simulated.ask(train, values)
            break
        reply = simulated.ask(train, values)
        assert (reply.value, reply.source) == (answer.value, answer.source)
        assert reply.half_width == pytest.approx(answer.half_width, abs=1e-7)  # the real one counts rounding


def test_a_renewed_guard_starts_again_and_leaves_the_first_alone() -> None:
    parameters = SparseVectorParameters(0.02, 0.001, budget=1, queries=10, grid=1 / 64)
    guard = SimulatedGuard(parameters, Independent(1000), SeededNoise(0))
    values = np.arange(1000) < 300
    guard.ask(0.9, values)
    with pytest.raises(BudgetExhausted):
        guard.ask(0.9, values)
    assert guard.renewed(SeededNoise(1)).ask(0.9, values).source == "holdout"
    with pytest.raises(BudgetExhausted):
        guard.ask(0.9, values)


def test_values_out_of_range_cost_nothing() -> None:
    parameters = SparseVectorParameters(0.02, 0.001, budget=1, queries=1, grid=1 / 64)
    guard = SimulatedGuard(parameters, Independent(4), SeededNoise(0))
    for wrong in ([0.1, 0.2, 2.0, 0.0], [0.1, math.nan, 0.0, 0.0], [0.1]):
        with pytest.raises(InputError):
            guard.ask(0.5, wrong)
    assert guard.ask(0.5, [0, 1, 0, 1]).value == 0.5
