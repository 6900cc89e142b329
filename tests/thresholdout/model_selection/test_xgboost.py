from typing import Any

import numpy as np
import pytest
import xgboost

from tests.cases import for_each
from tests.sizes import corners
from tests.thresholdout.model_selection.boosting_cases import CANCER, DIABETES, DIGITS, SQUARED, make, value
from thresholdout import BudgetExhausted
from thresholdout.errors import GuardExhaustedWarning, InputError
from thresholdout.model_selection import GuardedStopping, xgboost_callback

SMALL = {"nthread": 1, "max_depth": 3}
CASES: list[tuple[Any, Any, dict[str, Any]]] = [
    (DIGITS, "accuracy", {"objective": "multi:softprob", "num_class": 10}),
    (DIGITS, "accuracy", {"objective": "multi:softmax", "num_class": 10}),
    (CANCER, "log_loss", {"objective": "binary:logistic"}),
    (DIABETES, SQUARED, {"objective": "reg:squarederror"}),
]


def fit(data: Any, rows: slice, params: dict[str, Any], rounds: int = 150, **options: Any) -> xgboost.Booster:
    return xgboost.train(SMALL | params, xgboost.DMatrix(data[0][rows], data[1][rows]), rounds, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "metric", "params"), corners(CASES, 3), ids=["softprob", "softmax", "binary", "regression"]
)
def test_the_callback_stops_where_xgboost_would_and_asks_little(data: Any, metric: Any, params: Any) -> None:
    X, y = data
    guard, fitted, valid, held = make(data)
    stopping = GuardedStopping(guard, metric, validation=np.arange(len(y))[valid])
    booster = fit(data, fitted, params, callbacks=[xgboost_callback(stopping)])
    rounds = booster.num_boosted_rounds()
    scores = [
        value(metric, booster.predict(xgboost.DMatrix(X[valid]), iteration_range=(0, k + 1)), y[valid])
        for k in range(rounds)
    ]
    assert [evaluation.signal for evaluation in stopping.evaluations] == pytest.approx(scores, rel=1e-5)
    best = int(np.argmax(scores)) if metric == "accuracy" else int(np.argmin(scores))
    assert rounds == min(best + 11, 150)
    assert booster.best_iteration == stopping.best_round == best
    assert stopping.asked == len(guard.history) <= 6 < rounds
    assert stopping.best is not None
    assert booster.best_score == pytest.approx(stopping.best.value)
    truth = value(metric, booster.predict(xgboost.DMatrix(X[held]), iteration_range=(0, best + 1)), y[held])
    assert abs(truth - stopping.best.value) <= stopping.best.half_width


def test_scikit_learn_interface() -> None:
    X, y = DIGITS
    guard, fitted, valid, held = make(DIGITS)
    stopping = GuardedStopping(guard, "accuracy", validation=np.arange(len(y))[valid])
    model = xgboost.XGBClassifier(n_estimators=150, n_jobs=1, max_depth=3, callbacks=[xgboost_callback(stopping)])
    model.fit(X[fitted], y[fitted])
    assert model.best_iteration == stopping.best_round
    assert np.array_equal(stopping.best_model.predict(X[held]), model.predict(X[held]))


def test_regressor_and_texts_as_labels() -> None:
    X, y = DIABETES
    guard, fitted, valid, held = make(DIABETES)
    stopping = GuardedStopping(guard, SQUARED, validation=np.arange(len(y))[valid])
    model = xgboost.XGBRegressor(n_estimators=50, n_jobs=1, callbacks=[xgboost_callback(stopping)])
    model.fit(X[fitted], y[fitted])
    assert np.allclose(stopping.best_model.predict(X[held]), model.predict(X[held]))
    X, y = CANCER
    named = np.array(["benign", "malign"])[y]
    guard, fitted, valid, held = make((X, named))
    stopping = GuardedStopping(guard, "accuracy", validation=np.arange(len(y))[valid])
    fit(CANCER, fitted, {"objective": "binary:logistic"}, 20, callbacks=[xgboost_callback(stopping)])
    assert set(stopping.best_model.predict(X[held])) == {"benign", "malign"}


def test_a_continued_fit_counts_from_where_it_began() -> None:
    guard, fitted, valid, _ = make(CANCER)
    first = fit(CANCER, fitted, CASES[2][2], 5)
    stopping = GuardedStopping(guard, "log_loss", validation=np.arange(len(CANCER[1]))[valid], patience=100)
    more = fit(CANCER, fitted, CASES[2][2], 7, xgb_model=first, callbacks=[xgboost_callback(stopping)])
    assert more.num_boosted_rounds() == 12
    assert more.best_iteration == 5 + (stopping.best_round or 0)


def test_exhaustion() -> None:
    guard, fitted, valid, _ = make(CANCER, queries=1)
    rows = np.arange(len(CANCER[1]))[valid]
    stopping = GuardedStopping(guard, validation=rows, ask="rounds")
    with pytest.warns(GuardExhaustedWarning, match="The only query of this guard is used"):
        booster = fit(CANCER, fitted, CASES[2][2], callbacks=[xgboost_callback(stopping)])
    assert (booster.num_boosted_rounds(), booster.best_iteration, stopping.replaced) == (2, 0, 1)
    raising = GuardedStopping(guard, validation=rows)
    with pytest.raises(BudgetExhausted) as caught:  # without any answer
        fit(CANCER, fitted, CASES[2][2], callbacks=[xgboost_callback(raising)])
    assert "pass exhausted='nan' or 'train'" in "".join(caught.value.__notes__)
    stopping = GuardedStopping(guard, validation=rows, exhausted="nan")
    with pytest.warns(GuardExhaustedWarning):
        booster = fit(CANCER, fitted, CASES[2][2], callbacks=[xgboost_callback(stopping)])
    assert stopping.best is None
    assert booster.best_iteration == int(np.argmax([evaluation.signal for evaluation in stopping.evaluations]))
    assert booster.best_score == pytest.approx(stopping.evaluations[booster.best_iteration].signal)


def objective(output: Any, data: Any) -> tuple[Any, Any]:
    return output - data.get_label(), np.ones_like(output)


@for_each(
    ("params", "options", "message"),
    [
        ({}, {"obj": objective}, r"'reg:squarederror' with the metric 'accuracy' \(a custom objective"),
        ({"objective": "binary:logitraw"}, {}, "one of the library's own objectives.*; got 'binary:logitraw'"),
        ({"objective": "binary:logistic", "booster": "dart"}, {}, "'dart', which changes earlier trees"),
    ],
)
def test_what_cannot_be_served_is_refused(params: Any, options: Any, message: str) -> None:
    guard, fitted, _, _ = make(CANCER)
    with pytest.raises(InputError, match=message):
        fit(CANCER, fitted, params, 5, callbacks=[xgboost_callback(GuardedStopping(guard))], **options)
    assert guard.history.empty


def test_other_misuse_is_refused() -> None:
    X, y = CANCER
    guard, fitted, _, _ = make(CANCER)
    used = xgboost_callback(GuardedStopping(guard, queries=1))
    fit(CANCER, fitted, CASES[2][2], 2, callbacks=[used])
    with pytest.raises(InputError, match="a new one for each fit"):
        fit(CANCER, fitted, CASES[2][2], 2, callbacks=[used])
    data = xgboost.DMatrix(X[fitted], y[fitted])
    with pytest.raises(InputError, match=r"xgboost\.cv"):
        xgboost.cv(SMALL | CASES[2][2], data, 2, nfold=2, callbacks=[xgboost_callback(GuardedStopping(guard))])
