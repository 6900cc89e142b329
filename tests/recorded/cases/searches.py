"""What searches, early stopping and statistics on their own give."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from tests.recorded.cases.guards import MODELS, Column, N, X, Y, _answer, _guard, _history, _standing
from tests.recorded.cases.registry import Cases
from thresholdout.model_selection import GuardedSearchCV, GuardedStopping, count_queries
from thresholdout.model_selection.early_stopping import EarlyStopping, EveryRound
from thresholdout.scoring import metrics
from thresholdout.scoring.statistics import (
    balanced_accuracy,
    f1,
    fbeta,
    jaccard,
    matthews_corrcoef,
    median_absolute_error,
    precision,
    r2,
    recall,
    roc_auc,
    root_mean_squared_error,
)

CASES = Cases()

GRID = {"column": [0, 3, 5, 6, 7]}
TRAIN = (X[N:], Y[N:])


@CASES.case("searches: a grid with a guard as its scorer")
def grid() -> Any:
    guard = _guard(queries=20)
    search = GridSearchCV(Column(), GRID, scoring=guard.scorer("accuracy", cv=3), cv=guard.split(), refit=False)
    search.fit(*TRAIN)
    return [search.cv_results_["mean_test_score"], search.best_params_["column"], _standing(guard), _history(guard)]


@CASES.case("searches: a grid, and a guard at its end")
def guarded_grid() -> Any:
    found = []
    for report in ("all", "best"):
        guard = _guard()
        search = GuardedSearchCV(GridSearchCV(Column(), GRID, cv=3), guard, report=report).fit(*TRAIN)
        answers = [_answer(answer) for answer in search.answers_]
        found.append([answers, search.best_params_["column"], search.n_queries_, _standing(guard)])
    return found


@CASES.case("searches: numbers of queries")
def queries() -> Any:
    search = GridSearchCV(Column(), {"column": list(range(6))}, cv=4)
    return [count_queries(_guard(), search), GuardedSearchCV(search, candidates=2).count_queries()]


@CASES.case("searches: early stopping with a guard")
def stopping() -> Any:
    guard = _guard(queries=10)
    stop = GuardedStopping(guard, "accuracy", validation=range(600, 900), patience=2)
    for model in (*MODELS[2:7], *MODELS[:5]):
        if stop.update(model):
            break
    stop.finish()
    return [stop.best_round, stop.asked, [_answer(answer) for answer in stop.answers.values()], _standing(guard)]


@CASES.case("searches: rules of early stopping")
def rules() -> Any:
    rule, every = EarlyStopping(1.0, patience=2, queries=3), EveryRound(patience=2)
    told = []
    for signal, answer in ((0.5, 0.5), (0.6, 0.5), (0.8, 0.78), (0.85, 0.8), (0.84, 0.8), (0.83, 0.81)):
        told.append([rule.stopped, every.stopped])
        if not rule.stopped and rule.update(signal):
            rule.tell(answer)
        if not every.stopped and every.update(signal):
            every.tell(answer)
    return [told, rule.best_round, rule.answers, every.best_round]


@CASES.case("searches: metrics by record")
def values() -> Any:
    made = (
        metrics.accuracy(),
        metrics.zero_one_loss(),
        metrics.brier_score(),
        metrics.log_loss(3.0),
        metrics.top_k_accuracy(1),
    )
    return [metric.of(MODELS[4], X[:6], Y[:6]) for metric in made]


@CASES.case("searches: statistics")
def statistics() -> Any:
    made = (
        precision(),
        recall(positive=0),
        f1(average="macro"),
        jaccard(),
        fbeta(2.0),
        matthews_corrcoef(),
        balanced_accuracy(),
        roc_auc(),
    )
    return [float(statistic.of(MODELS[k], X[:N], Y[:N])) for statistic in made for k in (0, 5)]


@CASES.case("searches: statistics of regressions")
def regressions() -> Any:
    y, said = X[:N, 8] / N, X[:N, 8] / N + (X[:N, 0] - 0.5) / 4
    made = (r2(4.0), root_mean_squared_error(2.0), median_absolute_error(2.0))
    return [float(np.asarray(statistic.value(y, said))) for statistic in made]
