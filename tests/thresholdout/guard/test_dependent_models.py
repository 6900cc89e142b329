"""Guards, plans and certificates for records of users and items, series that forget, and windows by time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from graphs import Crossed, DependenceModel, MixingSeries, MovingWindow
from tests.cases import for_each
from tests.thresholdout.planning.test_plan import width_of
from thresholdout import Thresholdout, certify, plan
from thresholdout.mechanisms import ClaimsParameters
from thresholdout.mechanisms.claims.gate_states import Rules
from thresholdout.mechanisms.claims.gate_tests import EntropyGate, HoeffdingGate, Proposal

USERS, ITEMS = np.divmod(np.arange(2000), 40)
RECORDS = np.arange(4000.0)[:, None]


def models() -> list[DependenceModel]:
    rng = np.random.default_rng(0)
    return [
        Crossed(USERS, ITEMS, 0.1, 0.1),
        Crossed(USERS, ITEMS, 0.3, 0.1).given(range(5)),
        MixingSeries([0.2], 2000, tail=0.5),
        MixingSeries.contraction(0.5, 2000),
        MovingWindow.of_times(rng.integers(0, 3000, size=2000), 2),
    ]


@for_each("model", models(), ids=lambda model: type(model).__name__)
def test_a_guard_answers_and_states_where_the_truth_is(model: DependenceModel) -> None:
    labels: NDArray[np.int64] = np.arange(4000) % 2
    guard = Thresholdout(
        (RECORDS[: model.n], labels[: model.n]), train=(RECORDS[2000:], labels[2000:]), dependence=model, random_state=0
    )
    right = (np.arange(4000) % 10 < 9).astype(float)
    answer = guard.ask(right[2000:], right[: model.n])
    low, high = answer.interval
    assert low < 0.9 < high
    assert isinstance(guard.parameters, ClaimsParameters)
    assert guard.parameters.inflation == model.variance_inflation()
    hoeffding = math.sqrt(math.log(2 / 0.05) * model.variance_inflation() / (2 * model.n))
    assert high - low < 6 * hoeffding


def test_few_records_of_each_effect_do_not_make_values_uncertain() -> None:
    """Limits by relative entropy have 40 records, Hoeffding's 1,000: a guard expects what the latter say."""
    model = Crossed(USERS, ITEMS, 0.1, 0.1)
    assert model.effective_records() == 40.0
    planned = plan(model, queries=20, anticipated_score=0.5)
    inflation = model.variance_inflation()
    exact = math.sqrt(math.log(2 * 20 / 0.05) * inflation / (2 * model.n))
    assert exact <= width_of(planned, "batch") <= 1.06 * exact  # on a grid
    assert exact < width_of(planned) < 1.7 * exact  # 3.6 where values were expected to vary like 40


def test_algorithm_1_is_certified_where_records_share_little() -> None:
    """Twenty records of each effect: the posterior route; a series that is dependent throughout has no such bound."""
    users, items = np.arange(20_000) // 20, np.arange(20_000) % 1000
    shared = certify(Crossed(users, items), threshold=0.05, noise_scale=0.01, budget=2, queries=20)
    alone = certify(MovingWindow(20_000, 0), threshold=0.05, noise_scale=0.01, budget=2, queries=20)
    assert alone.tolerance < shared.tolerance < 0.6
    series = certify(MixingSeries([0.2], 20_000, tail=0.5), threshold=0.05, noise_scale=0.01, budget=2, queries=20)
    assert series.tolerance >= 1


def test_gates_use_the_sharper_of_two_limits() -> None:
    """A candidate that is right on 92 of 100 records instead of 80: 40 records cannot settle it, 1,000 can."""
    before, after = (np.arange(2000) % 100 < right for right in (80, 92))
    model = Crossed(USERS, ITEMS, 0.1, 0.1)
    rules = Rules(ClaimsParameters().for_records(model, 0.95), 2000, 0.0, sign=False)
    assert rules.test_name == "Hoeffding's inequality"
    assert rules.effective == pytest.approx(2000 / model.variance_inflation())
    mean = 0.5 * (1.0 + float(after.mean()) - float(before.mean()))
    proposal = Proposal(0.12, 0.12, 2000, rules.effective)
    assert not EntropyGate(mean, 40.0).passes(proposal, math.log(0.01))
    assert HoeffdingGate(mean, rules.effective).passes(proposal, math.log(0.01))
    alike = Rules(ClaimsParameters().for_records(Crossed(USERS, ITEMS), 0.95), 2000, 0.0, sign=False)
    assert alike.test_name == "relative entropy"
