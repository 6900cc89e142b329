"""Kinds of queries that seeded guards answer: statistics, slices, failures, parts of groups, fitted models."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphs import GaussianEmission, Groups, HiddenMarkov, MarkovChain, MarkovField
from graphs.estimation import budget_interval, diagnose
from graphs.estimation.permutation import autocorrelation, holm, intraclass_correlation, morans_i
from tests.recorded.cases.guards import MODELS, STATISTICS, N, X, Y, _answer, _guard, _history, _standing
from tests.recorded.cases.registry import Cases
from thresholdout import BudgetExhausted, Claims, InputError, KFoldGuard, SparseVector, Thresholdout
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.mechanisms import ClaimsParameters
from thresholdout.scoring.statistics import (
    bounded_difference,
    fbeta,
    median_absolute_error,
    precision,
    r2,
    recall,
    roc_auc_ovo,
    roc_auc_ovr,
    root_mean_squared_error,
    sliced,
)

CASES = Cases()


class Shares:
    """A model of three classes, or of a number, that says what columns of the records say."""

    classes_ = np.array([0, 1, 2])

    def __init__(self, column: int) -> None:
        self.column = column

    def predict(self, X: Any) -> Any:
        return X[:, self.column]

    def predict_proba(self, X: Any) -> Any:
        one = X[:, self.column]
        return np.stack([0.125 + 0.125 * one, 0.5 - 0.25 * one, 0.375 + 0.125 * one], axis=1)


def _tried(function: Any) -> Any:
    try:
        return _answer(function())
    except (InputError, BudgetExhausted) as error:
        return type(error).__name__


@CASES.case("guards: statistics of patients")
def dependent_statistics() -> Any:
    guard = _guard(dependence=Groups([k // 3 for k in range(N)]))
    return [[name, _tried(lambda name=name: guard.score(MODELS[6], name, cv="training"))] for name in STATISTICS] + [
        _standing(guard)
    ]


@CASES.case("guards: statistics without noise")
def quiet_statistics() -> Any:
    guard = _guard(mechanism=Claims(noise=0.0))
    made = (precision(positive=0), recall(positive=1), fbeta(0.5), "recall_macro")
    return [
        [_tried(lambda score=score: guard.score(MODELS[6], score, cv="training")) for score in made],
        _standing(guard),
    ]


@CASES.case("guards: slices")
def slices() -> Any:
    guard = _guard()
    where = [
        sliced("accuracy", lambda X: X[:, 0] > 0.5, "first"),
        sliced("brier_score", lambda X: X[:, 1] > 0.5, "second"),
    ]
    return [[_answer(guard.score(MODELS[k], part, cv="training")) for part in where for k in (3, 6)], _standing(guard)]


@CASES.case("guards: areas of several classes")
def areas() -> Any:
    labels = (Y + (X[:, 8] % 3 == 0)).astype(int)
    guard = Thresholdout((X[:N], labels[:N]), train=(X[N:], labels[N:]), random_state=1)
    return [
        [
            _answer(guard.score(Shares(k), score, cv="training"))
            for score in (roc_auc_ovr(), roc_auc_ovo())
            for k in (3, 6)
        ],
        _standing(guard),
    ]


@CASES.case("guards: regressions")
def regressions() -> Any:
    target = Y + X[:, 1] / 4
    guard = Thresholdout((X[:N], target[:N]), train=(X[N:], target[N:]), random_state=1)
    made = (r2(4.0), root_mean_squared_error(2.0), median_absolute_error(2.0))
    return [[_answer(guard.score(Shares(k), score, cv="training")) for score in made for k in (3, 6)], _standing(guard)]


@CASES.case("guards: a declared difference")
def declared() -> Any:
    most = bounded_difference("most", lambda y, said: max(float(np.mean(y == said)), 0.5), difference=1.0)
    guard = _guard()
    return [
        _answer(guard.score(MODELS[6], most, cv="training")),
        _answer(guard.score(MODELS[7], most, cv="training")),
        _standing(guard),
    ]


MECHANISMS: dict[str, dict[str, Any]] = {
    "claims": {},
    "algorithm 1": {"mechanism": SparseVector(0.04, 0.004, budget=3), "queries": 10},
    "ladder": {"mechanism": "ladder"},
}

for _name, _settings in MECHANISMS.items():

    @CASES.case(f"guards: failures, {_name}")
    def failures(settings: dict[str, Any] = _settings) -> Any:
        guard = _guard(**settings)
        told = [_answer(guard.score(MODELS[3], cv="training"))]
        with pytest.raises(InputError, match="charged"):
            guard.ask(lambda X, y: (X[:, 0] == y) if len(X) > N // 2 and X[0, 8] >= N else None)
        told.append(_answer(guard.score(MODELS[5], cv="training")))
        return [told, _standing(guard), _history(guard)]


@CASES.case("guards: sample weights")
def weights() -> Any:
    guard = _guard()
    given = 1.0 + X[:, 0]
    return [_answer(guard.score(MODELS[k], sample_weight=(given[N:], given[:N]), cv="training")) for k in (3, 6, 7)]


@CASES.case("guards: what is unlimited")
def unlimited() -> Any:
    guard = _guard(
        dependence=MarkovField.ising(nx.star_graph(N - 1), 0.001), queries=5, mechanism=Claims(holdout_answers=1)
    )
    return [_answer(guard.score(MODELS[5], cv="training")), guard.certificate.route, guard.certificate.tolerance]


@CASES.case("guards: folds of statistics and losses")
def folds() -> Any:
    guard = KFoldGuard((X[:N], Y[:N]), cv=3, random_state=4)
    return [
        [_tried(lambda score=score: guard.score(MODELS[6], score)) for score in ("brier_score", "f1", "log_loss")],
        _standing(guard),
    ]


@CASES.case("guards: final widths of certificates")
def final_widths() -> Any:
    found = certify_parameters(
        MarkovChain([[0.6, 0.4], [0.5, 0.5]], 900), ClaimsParameters(inflation=1.5, final_check=True)
    )
    assert found.final is not None
    return [found.final.share, [found.final.half_width(score) for score in (0.5, 0.97)]]


@CASES.case("fits: tests of dependence")
def tests_of_dependence() -> Any:
    rng = np.random.default_rng
    ring = np.array([[i, (i + 1) % 10] for i in range(10)])
    copies = np.repeat([0.0, 1.0, 3.0], 4)[:, None]
    made = [
        autocorrelation((np.arange(60) % 7 / 8.0)[:, None], 49, rng(0)),
        morans_i(np.repeat([0.0, 1.0], 5)[:, None], ring, 49, rng(0)),
        intraclass_correlation(copies, np.repeat([0, 1, 2], 4), 49, rng(0)),
    ]
    return [[[test.effect, test.p_value] for test in made], holm(np.array([0.01, 0.04, 0.03]))]


@CASES.case("fits: diagnoses")
def diagnoses() -> Any:
    values = np.random.default_rng(1).integers(0, 2, 60)
    by_groups = diagnose(np.repeat(values[:20], 3), groups=np.repeat(np.arange(20), 3), permutations=49)
    by_graph = diagnose(values[:12], graph=nx.cycle_graph(12), permutations=49)
    return [
        [[test.name, test.effect, test.p_value] for test in found.tests] + [found.dependent]
        for found in (by_groups, by_graph)
    ]


@CASES.case("fits: intervals of budgets")
def intervals() -> Any:
    data = MarkovChain([[0.75, 0.25], [0.375, 0.625]], 200).sample(np.random.default_rng(1))
    found = budget_interval(MarkovChain.fit(data), MarkovChain.fit, 0.5, draws=8)
    return [found.low, found.budget, found.high, found.inflation_low, found.inflation, found.inflation_high]


@CASES.case("fits: a hidden chain of numbers")
def hidden_numbers() -> Any:
    truth = HiddenMarkov([[0.875, 0.125], [0.25, 0.75]], 100, emission=GaussianEmission([0, 4], [1, 1]))
    model = HiddenMarkov.fit(truth.sample(np.random.default_rng(1)), restarts=2)
    return [model.transition.round(5), model.posterior([0.0, 4.0, 2.0]).round(5)]


@CASES.case("fits: fields of mappings")
def mappings() -> Any:
    graph = nx.path_graph(3)
    tables = {(0, 1): [[1.0, 2.0], [2.0, 1.0]], (1, 2): [[3.0, 1.0], [1.0, 0.5]]}
    return [
        MarkovField(graph, tables).leakage(0.1),
        MarkovField.ising(graph, [0.25, 0.5], [0.0, 0.5, 1.0]).leakage(0.1),
    ]
