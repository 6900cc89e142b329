"""What seeded guards answer: values, intervals, sources, what was told, what is left, and what their ledgers keep."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import KFold

from graphs import DependencyGraph, Groups, MarkovChain, MovingWindow
from tests.recorded.cases.registry import Cases
from thresholdout import BudgetExhausted, Claims, InputError, KFoldGuard, SeededNoise, SparseVector, Thresholdout
from thresholdout.guard.answer import Answer
from thresholdout.guard.comparison import Comparison
from thresholdout.ledger import MemoryLedger, export_history, import_history, move, open_ledger
from thresholdout.ledger.history_file import HistoryFile
from thresholdout.mechanisms import ClaimsParameters, LadderParameters
from thresholdout.privacy.accounting import BlackBox, GaussianAnswer
from thresholdout.simulation import AggregationAnalyst, BenignSearch, SimulatedGuard, interview
from thresholdout.simulation.simulated_session import Part

CASES = Cases()

N = 600
TRAIN = 900


class Column(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A model whose predictions are a column of the records."""

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def fit(self, X: NDArray[np.float64], y: NDArray[np.int64]) -> Column:
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        return X[:, self.column].astype(int)

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        one = 0.125 + 0.75 * X[:, self.column]
        return np.stack([1.0 - one, one], axis=1)


def _records() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return columns that agree with the labels ever more often, but the last, which does so while training only."""
    rng = np.random.default_rng(7)
    y = (rng.random(N + TRAIN) < 0.5).astype(int)
    right = rng.random((N + TRAIN, 8)) < np.linspace(0.6, 0.95, 8)
    right[:N, 7] = rng.random(N) < 0.6
    X = np.where(right, y[:, None], 1 - y[:, None]).astype(float)
    return np.column_stack([X, np.arange(N + TRAIN)]), y


X, Y = _records()
MODELS = [Column(k).fit(X, Y) for k in range(8)]


def _guard(**settings: Any) -> Thresholdout:
    settings = {"train": (X[N:], Y[N:]), "random_state": 1, **settings}
    return Thresholdout((X[:N], Y[:N]), **settings)


def _answer(answer: Answer) -> Any:
    return [answer.value, answer.interval, answer.source, answer.query, answer.remaining, answer.repeated, answer.about]


def _standing(guard: Thresholdout | KFoldGuard) -> Any:
    return [
        guard.status.information_released,
        guard.status.error_budget_left,
        guard.status.answers_left,
        guard.status.exhausted,
    ]


def _history(guard: Thresholdout | KFoldGuard) -> Any:
    return guard.history[["train", "value", "low", "high", "source", "remaining"]].astype({"remaining": object})


def _searched(guard: Thresholdout, metric: Any = "accuracy") -> Any:
    """Ask about all models, the last of which misleads, and the same models again."""
    answers: list[Any] = []
    for model in (*MODELS[3:], *MODELS[:3]):
        try:
            answers.append([_answer(guard.score(model, metric, cv="training")), _standing(guard)])
        except BudgetExhausted as error:
            answers.append(type(error).__name__)
            break
    return answers


SESSIONS: dict[str, dict[str, Any]] = {
    "claims": {},
    "claims, limited": {"queries": 6, "mechanism": Claims(max_half_width=0.3, holdout_answers=2)},
    "claims at 0.99": {"confidence": 0.99, "queries": 8},
    "claims before a final check": {"final_check": True, "queries": 10},
    "claims, one law": {"sampling": "iid"},
    "claims given the features": {"sampling": "fixed_features"},
    "guess and check": {"mechanism": Claims(noise=0.0), "queries": 8},
    "private claims": {"mechanism": Claims(epsilon=2.0, holdout_answers=3)},
    "claims by parameters": {"mechanism": ClaimsParameters(noise=0.25, queries=9)},
    "algorithm 1": {"mechanism": SparseVector(0.04, 0.004, budget=3), "queries": 10},
    "algorithm 1 on a grid": {"mechanism": SparseVector(0.05, 0.01, budget=3, grid=1 / 128), "queries": 10},
    "ladder": {"mechanism": "ladder", "queries": 8},
    "claims of patients": {"dependence": Groups([k // 3 for k in range(N)])},
    "claims of a window": {"dependence": MovingWindow(N, 2)},
    "claims of a chain": {"dependence": MarkovChain([[0.6, 0.4], [0.5, 0.5]], N)},
    "claims of a graph": {"dependence": DependencyGraph(nx.cycle_graph(N))},
    "ladder of patients": {"mechanism": "ladder", "dependence": Groups([k // 3 for k in range(N)])},
}

for _name, _settings in SESSIONS.items():

    @CASES.case(f"guards: {_name}")
    def session(settings: dict[str, Any] = _settings) -> Any:
        guard = _guard(**settings)
        told = _searched(guard)
        return [told, _history(guard), guard.certificate.route, guard.certificate.tolerance, guard.status.epsilon]


@CASES.case("guards: queries by values")
def values() -> Any:
    guard = _guard(queries=12)
    rng = np.random.default_rng(5)
    told = []
    for expected, truth in ((0.5, 0.5), (0.9, 0.5), (0.02, 0.015), (0.7, 0.71)):
        holdout = rng.random(N) < truth
        told.append(_answer(guard.ask(expected, holdout, binary=True, key=f"{expected}")))
        told.append(_answer(guard.ask(expected, holdout, binary=True, key=f"{expected}")))
        told.append(_answer(guard.ask(2.0 * expected, 2.0 * (0.5 * holdout + 0.5 * truth), bounds=(-1.0, 3.0))))
    return [told, _standing(guard)]


@CASES.case("guards: queries by functions")
def functions() -> Any:
    guard = _guard()
    told = [_answer(guard.ask(lambda X, y, k=k: X[:, k] == y)) for k in range(4)]
    with pytest.raises(InputError, match="charged"):
        guard.ask(lambda X, y: y if len(X) != N else None)
    return [told, _answer(guard.score(MODELS[5], cv="training")), _standing(guard), _history(guard)]


@CASES.case("guards: other metrics")
def metrics() -> Any:
    guard = _guard()
    names = ("zero_one_loss", "brier_score", "log_loss", "accuracy")
    return [
        [_answer(guard.score(MODELS[k], name, cv="training")) for name in names for k in (2, 6, 7)],
        _standing(guard),
    ]


STATISTICS = ("precision", "recall", "f1", "jaccard", "balanced_accuracy", "roc_auc", "matthews_corrcoef", "f1_macro")

for _name in STATISTICS:

    @CASES.case(f"guards: {_name}")
    def statistic(name: str = _name) -> Any:
        plain, one_law = _guard(), _guard(sampling="iid")
        return [
            [_answer(guard.score(MODELS[k], name, cv="training")) for k in (2, 6, 7)] + [_standing(guard)]
            for guard in (plain, one_law)
        ]


@CASES.case("guards: a ladder that minimises")
def minimizing() -> Any:
    return _searched(_guard(mechanism=LadderParameters(direction="minimize")), "brier_score")


@CASES.case("guards: cross-validated training values")
def cross_validated() -> Any:
    guard = _guard(queries=10)
    return [[_answer(guard.score(MODELS[k], cv=3)) for k in (4, 5, 7)], _standing(guard)]


@CASES.case("guards: lists of models")
def lists() -> Any:
    found = []
    for settings in ({}, {"queries": 20, "final_check": True}):
        guard = _guard(**settings)
        found.append([_answer(answer) for answer in guard.score_all(MODELS, cv="training")])
        found.append(_standing(guard))
        found.append(_answer(guard.score(MODELS[6], cv="training", key="alone")))
        found.append(_answer(guard.final_check(MODELS[6], cv="training")))
        found.append(_standing(guard))
    best = _guard().score_all(MODELS, report="best", reserve=0.0, cv="training")
    return [found, [[_answer(answer), answer.candidate] for answer in best]]


@CASES.case("guards: lists of queries")
def lists_of_queries() -> Any:
    guard = _guard()
    asked = [(0.5, np.arange(N) < count) for count in (100, 300, 599, 600)]
    return [[_answer(answer) for answer in guard.ask_all(asked, binary=True, reserve=0.1)], _standing(guard)]


@CASES.case("guards: final checks")
def final_checks() -> Any:
    found = []
    for settings in ({}, {"final_check": True}, {"final_check": True, "queries": 5}):
        guard = _guard(**settings)
        before = [guard.status.final_half_width(score) for score in (0.6, 0.9)]
        guard.score(MODELS[6], cv="training")
        guard.score(MODELS[7], cv="training")
        found.append(
            [
                before,
                guard.status.final_half_width(0.9),
                _answer(guard.final_check(MODELS[6], cv="training")),
                _standing(guard),
            ]
        )
    return found


def _comparison(found: Comparison) -> Any:
    return [found.value, found.interval, found.verdict, found.settling, found.about, _answer(found.answer)]


@CASES.case("guards: comparisons")
def comparisons() -> Any:
    guard = _guard()
    told = [
        _comparison(guard.compare(MODELS[b], MODELS[a], cv="training")) for b, a in ((6, 5), (5, 6), (1, 0), (7, 6))
    ]
    wins = _guard(sampling="iid")
    told += [_comparison(wins.compare(MODELS[6], MODELS[4], about="win_rate", cv="training"))]
    return [told, _standing(guard), _standing(wins)]


@CASES.case("guards: lists of comparisons")
def comparison_lists() -> Any:
    guard = _guard()
    found = guard.compare_all({"one": MODELS[5], "two": MODELS[6], "three": MODELS[7]}, MODELS[4], cv="training")
    return [[[_comparison(each), each.candidate] for each in found], _standing(guard)]


def _climbed(guard: Thresholdout, certify: Any, metric: str = "accuracy", delta: float = 0.0) -> Any:
    gate = guard.gate(MODELS[0], metric, certify=certify, delta=delta)
    told: list[Any] = []
    for k in (2, 1, 4, 7, 5, 6, 3):
        found = gate.propose(Column(k).fit(X, Y), cv="training")
        told.append(
            [
                found.outcome,
                found.certified,
                found.test,
                found.cost,
                found.error_budget_left,
                found.remaining,
                found.gain,
            ]
        )
    last = gate.last_evaluation() if certify != "each" else None
    told.append(None if last is None else [last.outcome, last.certified, last.cost, last.error_budget_left])
    return [told, gate.test, gate.champion.column, gate.certified.column, gate.on_the_way, _standing(guard)]


@CASES.case("guards: gates")
def gates() -> Any:
    return [_climbed(_guard(**settings), "each") for settings in ({}, {"sampling": "iid"}, {"queries": 9})]


@CASES.case("guards: gates that certify milestones")
def milestones() -> Any:
    return [_climbed(_guard(sampling="iid"), "milestones"), _climbed(_guard(), "milestones")]


@CASES.case("guards: gates by losses and margins")
def loss_gates() -> Any:
    return [_climbed(_guard(), "each", "brier_score"), _climbed(_guard(), "each", delta=0.03)]


@CASES.case("guards: gates of patients")
def dependent_gates() -> Any:
    return _climbed(_guard(dependence=Groups([k // 3 for k in range(N)])), "each")


@CASES.case("guards: releases about the holdout")
def releases() -> Any:
    guard = _guard(queries=10)
    found = []
    for event in (BlackBox(0.01), GaussianAnswer(300.0)):
        expected = guard.releases.preview(event).expected_half_width(0.9)
        certificate = guard.releases.record(event)
        found.append(
            [
                expected,
                certificate.expected_half_width(0.9),
                _answer(guard.score(MODELS[5], cv="training", key=repr(event))),
                _standing(guard),
            ]
        )
    return found


@CASES.case("guards: releases beside algorithm 1")
def looks_beside_algorithm_1() -> Any:
    guard = _guard(mechanism=SparseVector(0.04, 0.004, budget=3), queries=10)
    certificate = guard.releases.record(BlackBox(0.01))
    return [certificate.tolerance, certificate.route, _answer(guard.score(MODELS[7], cv="training"))]


@CASES.case("guards: folds")
def folds() -> Any:
    found = []
    for settings in (
        {},
        {"queries": 10, "mechanism": Claims(holdout_answers=3)},
        {"groups": True},
        {"mechanism": "ladder"},
    ):
        groups = np.arange(N) // 3 if settings.pop("groups", False) else None
        guard = KFoldGuard((X[:N], Y[:N], groups), cv=4, random_state=2, **settings)
        told = [_answer(guard.score(MODELS[k])) for k in (3, 5, 6, 7)]
        certificate = guard.certificate
        found.append([told, _standing(guard), certificate.route, certificate.tolerance, _history(guard)])
    return found


@CASES.case("guards: members of folds")
def fold_members() -> Any:
    guard = KFoldGuard((X[:60], Y[:60]), cv=KFold(5, shuffle=True, random_state=3))
    return [guard.folds, guard.n]


@CASES.case("guards: simulated analysts")
def analysts() -> Any:
    rng = np.random.default_rng(0)
    part = [Part(X[k : k + 300, :8] > 0.5, Y[k : k + 300] > 0) for k in (0, 300)]
    found: list[Any] = []
    for analyst in (AggregationAnalyst(6), BenignSearch(6)):
        guard = SimulatedGuard(ClaimsParameters(queries=20), DependencyGraph(nx.empty_graph(300)), SeededNoise(3))
        session = interview(analyst, guard, part[1], part[0], rng)
        found.append([[each.reply.value, each.reply.half_width, each.reply.source] for each in session.history])
    return found


_KEPT = (
    "query",
    "name",
    "train",
    "value",
    "low",
    "high",
    "source",
    "remaining",
    "lower",
    "upper",
    "log_error_budget",
    "list",
)


def _entries(file: Path) -> Any:
    with HistoryFile(file) as history:
        rows = [[getattr(entry, name) for name in _KEPT] for entry in history.entries()]
        return [json.loads(history.header.parameters), history.header.count, rows]


@CASES.case("ledgers: exported histories")
def exported() -> Any:
    found = []
    declared: list[dict[str, Any]] = [{"queries": 20}, dict(SESSIONS["algorithm 1"])]
    with tempfile.TemporaryDirectory() as folder:
        for k, settings in enumerate(declared):
            ledger = open_ledger(Path(folder, f"{k}.db"))
            guard = _guard(ledger=ledger, **settings)
            _searched(guard)
            if k == 0:
                guard.score_all(MODELS[:3], cv="training", keys=["one", "two", "three"])
                guard.compare(MODELS[5], MODELS[4], cv="training")
            (name,) = ledger.guards()
            export_history(ledger, name, Path(folder, f"{k}.jsonl"))
            found.append([_entries(Path(folder, f"{k}.jsonl")), ledger.state(name), ledger.verify(name)])
            ledger.close()
    return found


@CASES.case("ledgers: moved, imported, opened again")
def moved() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        first, second, third = open_ledger(Path(folder, "a.db")), open_ledger(Path(folder, "b.db")), MemoryLedger()
        guard = _guard(ledger=first, queries=9)
        told = [_answer(guard.score(model, cv="training")) for model in MODELS[4:]]
        (name,) = first.guards()
        move(first, second, name)
        again = _guard(ledger=second, queries=9, random_state=8)
        told.append(_answer(again.score(MODELS[3], cv="training")))
        export_history(second, name, Path(folder, "b.jsonl"))
        imported = import_history(third, Path(folder, "b.jsonl"))
        rows = [[getattr(entry, field) for field in _KEPT] for entry in third.entries(imported)]
        found = [told, _standing(again), rows]
        first.close()
        second.close()
        return found
