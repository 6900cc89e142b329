"""Proposals to a guard that holds labels: one bit, against what a client has."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.cases import for_each
from thresholdout import Claims
from thresholdout.errors import BudgetExhausted, InputError
from thresholdout.ledger import Ledger, open_ledger
from thresholdout.mechanisms import ClaimsParameters
from thresholdout.scoring.metrics import Metric
from thresholdout.service.prediction_guard import PredictionGuard

N = 1200
LABELS = np.random.default_rng(7).integers(0, 2, 2 * N)
TABLE = pd.DataFrame(
    {"id": [f"r{k}" for k in range(2 * N)], "y": LABELS, "patient": np.arange(2 * N) // 4, "day": np.arange(2 * N)}
)


def made(ledger: Ledger | None = None, table: pd.DataFrame = TABLE, **settings: Any) -> PredictionGuard:
    settings = {"label": "y", "allow_duplicates": True, **settings}
    return PredictionGuard.create(ledger or open_ledger(None), table[:N], table[N:], **settings)


def wrong_on(*places: int | range) -> pd.DataFrame:
    """Return predictions for the holdout that are right but in these places."""
    found = LABELS[N:].copy()
    for place in places:
        found[place] = 1 - found[place]
    return pd.DataFrame({"id": TABLE["id"][N:], "prediction": found})


def test_what_is_certified_is_kept_and_nothing_else_is_told() -> None:
    service = made()
    start = service.guard.status.error_budget_left
    decision = service.propose(wrong_on(), wrong_on(range(40)), client="ann", name="second")
    assert decision
    assert (decision.certified, decision.test, decision.name) == (True, "sign test", "second")
    assert decision.error_budget_left == service.guard.status.error_budget_left
    assert start is not None
    assert decision.cost == pytest.approx(math.log(start / decision.error_budget_left))
    assert decision.cost == pytest.approx(math.log(10), abs=0.01)
    entry = service.guard.history.iloc[0]
    assert (entry["source"], entry["client"], entry["low"], entry["high"]) == ("keep", "ann", 0.0, 1.0)
    worse = service.propose(wrong_on(range(40)), wrong_on(), client="ann")
    assert not worse
    entry = service.guard.history.iloc[1]
    assert (entry["source"], entry["value"], entry["low"], entry["high"]) == ("reject", 0.0, -1.0, 1.0)


def test_by_luck_nothing_is_kept() -> None:
    """Seven of ten: a sign test at the whole risk would not confirm it either."""
    old, new = wrong_on(range(7)), wrong_on(range(7, 10))
    assert not made().propose(new, old, client="ann")


def test_asked_again_it_is_the_same_decision_and_free_but_not_for_others() -> None:
    service = made()
    new, old = wrong_on(), wrong_on(range(40))
    first = service.propose(new, old, client="ann", name="mine")
    risk = service.guard.status.error_budget_left
    again = service.propose(new.sample(frac=1, random_state=0), old, client="ann", name="other", quota=1)
    assert (again.repeated, again.query, bool(again), again.cost) == (True, first.query, True, 0.0)
    assert service.guard.status.error_budget_left == risk
    assert not service.propose(new, old, client="bob").repeated
    kept = service.decoded(service.read(old).encoded)
    assert service.propose(service.read(new), kept, client="ann").repeated
    with pytest.raises(BudgetExhausted, match="The only query of this client"):
        service.propose(wrong_on(1), old, client="ann", quota=1)


def test_what_cannot_be_certified_costs_nothing_and_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal predictions, and a few that differ: a score would have to be read off labels for more than that."""
    service = made()
    risk = service.guard.status.error_budget_left

    def looked(*arguments: object) -> None:
        raise AssertionError("the holdout was looked at")

    monkeypatch.setattr(PredictionGuard, "_on_holdout", looked)
    for new in (wrong_on(range(40)), wrong_on(range(38)), wrong_on(*range(3, 40))):
        decision = service.propose(new, wrong_on(range(40)), client="ann", name=f"{len(new)}")
        assert (decision.outcome, decision.cost) == ("reject", 0.0)
    assert service.guard.status.error_budget_left == risk
    assert service.guard.history["source"].tolist() == ["skip"] * 3


def test_rows_of_training_records_decide_nothing() -> None:
    """Values there are what whoever proposes wants them to be."""
    found = []
    for train in (LABELS[:N], 1 - LABELS[:N]):
        service = made()
        new, old = (
            pd.DataFrame({"id": TABLE["id"], "prediction": np.concatenate([train, one["prediction"]])})
            for one in (wrong_on(), wrong_on(range(40)))
        )
        decision = service.propose(new, old, client="ann")
        found.append((decision.outcome, decision.cost, decision.gain, service.guard.history["train"].iloc[0]))
    assert found[0] == found[1]


@for_each(
    ("settings", "test"),
    [
        ({"sampling": "independent"}, "bets"),
        ({"groups": "patient"}, "bets on groups"),
        ({"groups": "patient", "sampling": "independent"}, "bets on groups"),
        ({"order": "day", "window": 1}, "relative entropy"),
        ({"mechanism": Claims(noise=0.0), "sampling": "fixed_features"}, "sign test"),
    ],
)
def test_each_dependence_has_its_test(settings: dict[str, Any], test: str) -> None:
    service = made(**settings)
    good, bad = wrong_on(), wrong_on(range(N // 2))
    better = service.propose(good, bad, client="ann")
    assert (bool(better), better.test) == (True, test)
    assert not service.propose(bad, good, client="ann")


def test_many_classes_and_losses_are_bet_on() -> None:
    rng = np.random.default_rng(3)
    table = TABLE.assign(y=rng.integers(0, 5, 2 * N))
    service = made(table=table)
    right = table[N:].rename(columns={"y": "prediction"})[["id", "prediction"]]
    half = right.assign(prediction=np.where(np.arange(N) < N // 2, right["prediction"], 0))
    better = service.propose(right, half, client="ann")
    assert (bool(better), better.test) == (True, "bets")
    sharp, vague = ({f"p_{c}": np.where(table["y"][N:] == c, p, (1 - p) / 4) for c in range(5)} for p in (0.6, 0.5))
    first, second = (pd.DataFrame({"id": table["id"][N:], **columns}) for columns in (sharp, vague))
    assert service.propose(first, second, "brier_score", client="ann")
    assert not service.propose(second, first, "brier_score", client="ann")


def test_a_metric_that_fails_on_the_holdout_is_charged_and_refused_as_any_other_proposal() -> None:
    table = TABLE.assign(y=np.where(np.arange(2 * N) == 2 * N - 1, 7, LABELS))

    def values(y: Any, output: Any, classes: Any) -> Any:
        if (y == 7).any():
            raise KeyError(y[-1])
        return (y == output).astype(float)

    metric = Metric("own", "predict", values, (0.0, 1.0), True)
    service = made(table=table, mechanism=ClaimsParameters(noise=0.0, allowance=3.0), sampling="fixed_features")
    with pytest.raises(InputError, match="charged as an answer"):
        service.propose(wrong_on(), wrong_on(range(40)), metric, client="ann")
    assert service.guard.history["source"].tolist() == ["failed"]
    assert service.guard.history["client"].tolist() == ["ann"]
    refused = made(table=table, mechanism=ClaimsParameters(noise=0.0, allowance=2.0), sampling="fixed_features")
    for chosen in ("accuracy", metric):  # the longer outcome has more than that, whatever happens on the holdout
        with pytest.raises(BudgetExhausted, match="others may still ask"):
            refused.propose(wrong_on(), wrong_on(range(40)), chosen, client="ann")
    assert len(refused.guard.history) == 0


def test_what_answers_no_comparisons_answers_no_proposals() -> None:
    service = made(mechanism="ladder", queries=10)
    with pytest.raises(InputError, match="comparison"):
        service.propose(wrong_on(), wrong_on(range(40)))
    assert len(service.guard.history) == 0
    with pytest.raises(InputError, match="predictions that are old"):
        made().propose(wrong_on(), wrong_on().drop(columns="prediction"))


@pytest.mark.slow
def test_it_is_found_again_after_a_restart_and_fits_its_history(tmp_path: Any) -> None:
    ledger = open_ledger(tmp_path / "guard.db")
    service = made(ledger)
    service.propose(wrong_on(), wrong_on(range(40)), client="ann")
    service.propose(wrong_on(range(60)), wrong_on(range(40)), client="ann")
    service.propose(wrong_on(1), wrong_on(), client="ann")
    ledger.close()
    again = PredictionGuard.open(tmp_path / "guard.db")
    assert again.propose(wrong_on(), wrong_on(range(40)), client="ann").repeated
    answer = again.ask(wrong_on(range(120)), expected=0.9, client="bob")
    assert answer.interval[0] < 0.9 < answer.interval[1]
    assert [one.team for one in again.standings()] == ["bob"]
    assert "proposal" in again.guard.report().html
