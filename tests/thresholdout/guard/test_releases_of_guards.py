"""Guards that know of other private releases about their holdout."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import networkx as nx
import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.linear_model import LogisticRegression

from graphs import DependencyGraph, GaussianField, Groups, MarkovChain, MixingSeries, MovingWindow, Panel
from tests.cases import for_each
from thresholdout import SparseVector, Thresholdout
from thresholdout.errors import BudgetExhausted, InputError, LedgerMismatch
from thresholdout.guard.releases import Releases
from thresholdout.ledger import MemoryLedger
from thresholdout.mechanisms import ClaimsMechanism, ClaimsParameters, Known, LadderParameters
from thresholdout.mechanisms.claims import Reading
from thresholdout.noise.sources import SeededNoise
from thresholdout.privacy.accounting import BlackBox, Composed, Event, GaussianAnswer, LaplaceAnswer, SelfComposed
from thresholdout.privacy.accounting.events.composed_events import leaves

HOLDOUT = np.arange(10_000.0)


def make(**settings: object) -> Thresholdout:
    """Return a guard of Algorithm 1, or of another mechanism."""
    given: dict[str, object] = {"queries": 100, "mechanism": SparseVector(0.04, 0.0025, budget=1)}
    return Thresholdout(HOLDOUT, **{**given, **settings})  # type: ignore[arg-type]


def claiming(**settings: object) -> Thresholdout:
    """Return a guard that makes claims."""
    return Thresholdout(HOLDOUT, **settings)  # type: ignore[arg-type]


def test_without_looks_nothing_changes() -> None:
    guard = make()
    assert guard.releases.recorded == Composed([])
    assert guard.certificate is guard.certificate
    assert guard.releases.preview(BlackBox(0.0)).tolerance == guard.certificate.tolerance


def test_another_thread_that_knows_of_fewer_looks_changes_no_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has found comes last, whatever this one has found."""
    guard = make()
    few = (), guard.certificate
    after = guard.releases.record(BlackBox(0.02))
    monkeypatch.setattr(Releases, "_seen", property(lambda self: few, lambda self, seen: None), raising=False)
    assert guard.certificate.tolerance == after.tolerance > few[1].tolerance


def test_answers_after_a_look_are_wider_and_earlier_ones_stay() -> None:
    guard = make()
    first = guard.ask(0.25, HOLDOUT < 2500)
    hypothetical = guard.releases.preview([BlackBox(0.02)])
    assert guard.releases.recorded == Composed([])
    after = guard.releases.record(BlackBox(0.02))
    assert after.tolerance == hypothetical.tolerance == guard.certificate.tolerance
    second = guard.ask(0.25, HOLDOUT < 2501)
    assert second.half_width > first.half_width * 1.05
    assert guard.history["half_width"].tolist() == [first.half_width, second.half_width]
    guard.releases.record(LaplaceAnswer(1.0, 0.02))
    assert guard.releases.recorded == Composed([BlackBox(0.02), LaplaceAnswer(1.0, 0.02)])
    assert guard.ask(0.25, HOLDOUT < 2502).half_width > second.half_width


def test_a_look_that_cannot_be_written_down_is_refused_before_anything_is_charged() -> None:
    deep: Event = BlackBox(1e-5)
    for _ in range(3000):
        deep = SelfComposed(deep, 1)
    for guard in (make(), claiming()):
        told, certificate = guard.status.information_released, guard.certificate
        with pytest.raises(InputError, match="more than 50 deep"):
            guard.releases.record(deep)
        assert guard.status.information_released == told
        assert guard.certificate == certificate
        assert guard.releases.recorded == Composed([])
        guard.releases.record(Composed([SelfComposed(event, count) for event, count in leaves(deep)]))
        assert guard.releases.recorded == Composed([Composed([SelfComposed(BlackBox(1e-5), 1)])])


def test_looks_last_and_reach_every_process(tmp_path: Path) -> None:
    path = tmp_path / "guard.db"
    one, two = make(ledger=path), make(ledger=path)
    plain = one.certificate.tolerance
    two.releases.record(BlackBox(0.02))
    two.releases.record(BlackBox(0.02))
    assert one.releases.recorded == two.releases.recorded == Composed([BlackBox(0.02), BlackBox(0.02)])
    assert one.certificate.tolerance == two.certificate.tolerance > plain
    assert one.ask(0.25, HOLDOUT < 2500).half_width > plain / 2
    assert make(ledger=path).certificate.tolerance == one.certificate.tolerance


def seen_elsewhere(guard: Any) -> tuple[int, float, Composed, float, Composed]:
    """Use what a guard says about looks, and say in which process."""
    planned = guard.releases.preview([BlackBox(0.02)]).tolerance
    before = guard.releases.recorded
    recorded = guard.releases.record(BlackBox(0.02)).tolerance
    return os.getpid(), planned, before, recorded, guard.releases.recorded


@pytest.mark.slow
def test_looks_from_another_process() -> None:
    guard = make()
    plain = guard.certificate.tolerance
    with joblib.parallel_config("loky", n_jobs=2):
        process, planned, before, recorded, after = joblib.Parallel()([joblib.delayed(seen_elsewhere)(guard)])[0]
    assert process != os.getpid()
    assert planned == recorded == guard.certificate.tolerance > plain
    assert (before, after) == (Composed([]), Composed([BlackBox(0.02)]))
    assert guard.releases.recorded == after


def test_two_processes_that_record_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both want the same number; neither look is lost, even when they are equal."""
    ledger = MemoryLedger()
    one, two = make(ledger=ledger), make(ledger=ledger)
    put, others = ledger.put_document, [BlackBox(0.01)]

    def late(guard: str, name: str, text: str) -> None:
        if others:
            two.releases.record(others.pop())
        put(guard, name, text)

    monkeypatch.setattr(ledger, "put_document", late)
    one.releases.record(BlackBox(0.01))
    assert one.releases.recorded == Composed([BlackBox(0.01), BlackBox(0.01)])


def test_a_ledger_that_refuses_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = MemoryLedger()
    guard = make(ledger=ledger)

    def refuse(guard: str, name: str, text: str) -> None:
        raise LedgerMismatch("here", "no such guard")

    monkeypatch.setattr(ledger, "put_document", refuse)
    with pytest.raises(LedgerMismatch):
        guard.releases.record(BlackBox(0.01))


def test_looks_that_no_certificate_covers() -> None:
    guard = make(dependence=MovingWindow(len(HOLDOUT), 2), mechanism=SparseVector(0.1, 0.0025, budget=1))
    with pytest.raises(InputError, match=r"have a delta, which is covered for independent records.*mechanism='claims'"):
        guard.releases.record(GaussianAnswer(1000.0))
    assert guard.releases.recorded == Composed([])
    after = guard.releases.record(GaussianAnswer(1000.0), void=True)
    assert after.route == "none"
    assert guard.ask(0.25, HOLDOUT < 2500).interval == (0.0, 1.0)


@pytest.mark.slow
@for_each("groups", [None, np.arange(len(HOLDOUT)) // 2])
def test_a_look_with_a_delta_beside_algorithm_1(groups: np.ndarray | None) -> None:
    """At any time, on the route and the events of before."""
    guard = make(dependence=None if groups is None else Groups(groups))
    first = guard.ask(0.25, HOLDOUT < 2500)
    guard.releases.record(BlackBox(0.001))
    pure = guard.certificate
    after = guard.releases.record(GaussianAnswer(1000.0))
    second = guard.ask(0.25, HOLDOUT < 2501)
    assert (after.route, after.chosen and after.chosen.source) == ("posterior", "accounting/RELEASES.md, L6")
    assert pure.tolerance + 2**-12 < after.tolerance < pure.tolerance + 0.01
    assert second.half_width > first.half_width
    assert guard.history["half_width"][0] == first.half_width
    assert guard.releases.record(GaussianAnswer(1000.0)).tolerance > after.tolerance


@pytest.mark.slow
def test_a_ladder_pays_for_looks() -> None:
    guard = make(mechanism=LadderParameters(queries=3))
    high = guard.ask(0.25, HOLDOUT < 2500, binary=True).interval[1]
    risk = guard.status.error_budget_left
    assert risk is not None
    after = guard.releases.record(BlackBox(0.01))
    assert (after.route, after.tolerance) == ("ladder", 1.0)
    assert guard.status.error_budget_left == pytest.approx(risk * math.exp(-price(0.01, risk)), rel=1e-6)
    second = guard.ask(0.25, HOLDOUT < 2400, binary=True)
    assert second.interval[1] > high + 0.005
    assert guard.history["source"].tolist() == ["holdout", "release", "holdout"]
    guard.releases.record(GaussianAnswer(1000.0))
    guard.ask(0.25, HOLDOUT < 2400, binary=True)
    assert guard.status.exhausted == "queries"


def test_a_ladder_that_nothing_is_left_of() -> None:
    guard = make(mechanism=LadderParameters())
    with pytest.raises(InputError, match="Intervals could be the whole range"):
        guard.releases.record(BlackBox(1e300))
    guard.releases.record(BlackBox(1e300), void=True)
    with pytest.raises(BudgetExhausted, match="The error budget is exhausted after"):
        guard.ask(0.25, HOLDOUT < 2500)


def test_no_event() -> None:
    with pytest.raises(InputError):
        make().releases.record("training")  # type: ignore[arg-type]


def test_a_look_after_which_nothing_is_said_is_refused() -> None:
    guard = make()
    before = guard.certificate.tolerance
    with pytest.raises(InputError, match=r"half-widths could be .* of the range"):
        guard.releases.record(BlackBox(10.0))
    assert guard.certificate.tolerance == before < 1.0
    assert guard.releases.record(BlackBox(10.0), void=True).tolerance >= 1.0


def price(epsilon: float, risk: float) -> float:
    """Return the nats that a pure look at 10,000 independent records costs: the formulas M1 and M2 of RELEASES.md."""
    n = len(HOLDOUT)
    leaked = n * epsilon**2
    maximal = min(
        leaked / 8 + math.sqrt(leaked * math.log(1 / (share * risk)) / 2) - math.log(1 - share)
        for share in (0.5, 0.2, 0.05)
    )

    def information(t: float) -> float:
        fresh = risk * math.exp(-t)
        return risk * t + (1 - risk) * math.log((1 - risk) / (1 - fresh))

    return min(maximal, float(brentq(lambda t: information(t) - leaked / 8, 0.0, 1e6)))


def test_a_look_is_paid_from_the_risk_that_is_left() -> None:
    guard = claiming()
    first = guard.ask(0.25, HOLDOUT < 2500, binary=True)
    before, left = guard.status.information_released, guard.status.error_budget_left
    assert before is not None
    assert left is not None
    certificate = guard.releases.record(BlackBox(0.01))
    assert certificate.route == "claims"
    assert guard.status.information_released == pytest.approx(before + price(0.01, left), rel=1e-6)
    second = guard.ask(0.25, HOLDOUT < 2501, binary=True)
    assert second.half_width > first.half_width * 1.05
    history = guard.history
    assert history["source"].tolist() == ["train", "release", "train"]
    assert history["name"][1] == "BlackBox(epsilon=0.01)"
    assert (history["low"][0], history["high"][0]) == first.interval


def test_looks_are_paid_after_one_another_in_every_process(tmp_path: Path) -> None:
    one, two = claiming(ledger=tmp_path / "guard.db"), claiming(ledger=tmp_path / "guard.db")
    two.releases.record(BlackBox(0.005))
    after = one.status.error_budget_left
    assert after is not None
    assert after == pytest.approx(0.05 * math.exp(-price(0.005, 0.05)), rel=1e-6)
    one.releases.record(BlackBox(0.005))
    assert two.status.error_budget_left == pytest.approx(after * math.exp(-price(0.005, after)), rel=1e-6)
    assert claiming(ledger=tmp_path / "guard.db").status.error_budget_left == one.status.error_budget_left
    assert len(two.releases.recorded.events) == 2


def test_looks_are_no_queries() -> None:
    guard = claiming(queries=2)
    guard.releases.record(BlackBox(0.001))
    for _ in range(2):
        guard.ask(0.25, HOLDOUT < 2500, binary=True)
    assert guard.status.exhausted == "queries"


DEPENDENT: dict[str, dict[str, Any]] = {
    "independent": {},
    "pairs": {"dependence": Groups(np.arange(len(HOLDOUT)) // 2)},
    "window": {"dependence": MovingWindow(len(HOLDOUT), 2)},
    "graph": {"dependence": DependencyGraph(nx.path_graph(len(HOLDOUT)))},
    "chain": {"dependence": MarkovChain([[0.6, 0.4], [0.4, 0.6]], n=len(HOLDOUT))},
    "mixing": {"dependence": MixingSeries([0.05, 0.01, 0.0], len(HOLDOUT))},
}


@pytest.mark.slow
@for_each("name", list(DEPENDENT))
def test_a_look_with_a_delta_is_covered_at_any_time_where_dependence_ends(name: str) -> None:
    guard = claiming(**DEPENDENT[name])
    guard.ask(0.25, HOLDOUT < 2500, binary=True)
    guard.releases.record(GaussianAnswer(4000.0))
    low, high = guard.ask(0.25, HOLDOUT < 2501, binary=True).interval
    assert 0.1 < low < 0.25 < high < 0.4


@pytest.mark.slow
def test_looks_after_a_query_about_given_labels_are_priced_by_independent_groups() -> None:
    """Its truth is given the labels, which can tie all records of a unit to each other."""
    units, n = 20, 50
    X = np.random.default_rng(0).normal(size=(2 * units * n, 2))
    y = X[:, 0] > X[:, 1] ** 2 - 1
    model = LogisticRegression().fit(X[: units * n], y[: units * n])
    prices = []
    for dependence in (Panel(MovingWindow(n, 1), units), Groups(np.arange(units * n) // n)):
        half = slice(units * n, None)
        guard = Thresholdout((X[half], y[half]), train=(X[: units * n], y[: units * n]), dependence=dependence)
        for _ in range(2):
            before = guard.status.information_released or 0.0
            guard.releases.record(GaussianAnswer(4000.0))
            prices.append((guard.status.information_released or 0.0) - before)
            guard.score(model, "roc_auc")
    window, labelled, *groups = prices
    assert window < 0.5 * labelled
    assert labelled == pytest.approx(groups[1], rel=0.2)  # at nearly the same risk


@pytest.mark.slow
def test_a_look_with_a_delta_where_all_records_may_depend_on_each_other() -> None:
    one = claiming(dependence=GaussianField.ar(0.5, len(HOLDOUT)))
    with pytest.raises(InputError, match=r"GaussianAnswer\(std=1000.0\) .*how far dependence reaches"):
        one.releases.record(GaussianAnswer(1000.0))
    assert one.status.information_released == pytest.approx(0.0, abs=1e-11)
    assert one.releases.recorded == Composed([])
    one.releases.record(BlackBox(0.0001))
    one.releases.record(GaussianAnswer(1000.0), void=True)
    assert one.certificate.route == "none"
    with pytest.raises(BudgetExhausted, match="The error budget is exhausted after"):
        one.ask(0.25, HOLDOUT < 2500, binary=True)


@pytest.mark.slow
@for_each("release", [BlackBox(10.0), GaussianAnswer(1.0)])
def test_a_look_after_which_claims_say_nothing_is_refused(release: Any) -> None:
    guard = claiming()
    with pytest.raises(InputError, match="Intervals could be the whole range"):
        guard.releases.record(release)
    assert guard.status.information_released == pytest.approx(0.0, abs=1e-11)
    assert guard.history.empty
    guard.releases.record(release, void=True)
    low, high = guard.ask(0.5, HOLDOUT % 2, binary=True).interval
    assert low < 0.01
    assert high > 0.99


@for_each("epsilon", [1e160, 1e300])
def test_a_look_whose_squared_epsilon_is_no_float_is_refused(epsilon: float) -> None:
    guard = claiming()
    with pytest.raises(InputError, match="Intervals could be the whole range"):
        guard.releases.record(BlackBox(epsilon))
    guard.releases.record(BlackBox(epsilon), void=True)
    with pytest.raises(BudgetExhausted, match="The error budget is exhausted after"):
        guard.ask(0.5, HOLDOUT % 2, binary=True)


def test_a_look_at_a_risk_that_no_float_holds_leaves_nothing() -> None:
    """Its price grows as the risk falls, so that of a larger risk would be too small."""
    mechanism = ClaimsMechanism(ClaimsParameters(noise=0.0), 10**12)
    state = replace(mechanism.start(SeededNoise(0)), log_error_budget=-800.0)
    after, outcome = mechanism.pay_release(state, lambda risk: 1.0)
    assert outcome.log_error_budget == after.log_error_budget == -1e9
    with pytest.raises(BudgetExhausted, match="is exhausted after"):
        mechanism.step(after, 0.5, Reading((), Known()), SeededNoise(0))


@pytest.mark.slow
def test_a_query_while_a_look_is_recorded_is_paid_for() -> None:
    """The look has its own node, before that of the query."""
    ledger = MemoryLedger()
    one, two = claiming(ledger=ledger), claiming(ledger=ledger)
    put, others = ledger.put_document, [lambda: two.ask(0.25, HOLDOUT < 2500, binary=True)]

    def late(guard: str, name: str, text: str) -> None:
        if others:
            others.pop()()
        put(guard, name, text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "put_document", late)
        assert one.releases.record(GaussianAnswer(1000.0)).route == "claims"
    assert one.history["source"].tolist() == ["release", "train"]
    assert len(one.releases.recorded.events) == 1
