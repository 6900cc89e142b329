import pickle
from typing import Any

import lightgbm
import numpy as np
import pytest

from tests.cases import for_each
from tests.thresholdout.model_selection.boosting_cases import CANCER, DIABETES, DIGITS, SQUARED, make, value
from thresholdout import BudgetExhausted, Claims, Thresholdout
from thresholdout.errors import GuardExhaustedWarning, InputError, SharingError
from thresholdout.model_selection import GuardedStopping, LightGBMCallback, LightGBMEval
from thresholdout.scoring.metrics import squared_error

QUIET = {"verbose": -1, "num_threads": 1, "num_leaves": 7, "deterministic": True}
CASES: list[tuple[Any, Any, dict[str, Any]]] = [
    (DIGITS, "accuracy", {"objective": "multiclass", "num_class": 10}),
    (CANCER, "log_loss", {"objective": "binary"}),
    (DIABETES, SQUARED, {"objective": "regression"}),
]


def fit(data: Any, rows: slice, params: dict[str, Any], rounds: int = 200, **options: Any) -> lightgbm.Booster:
    return lightgbm.train(QUIET | params, lightgbm.Dataset(data[0][rows], data[1][rows]), rounds, **options)


@pytest.mark.slow
@for_each(("data", "metric", "params"), CASES, ids=["digits", "cancer", "diabetes"])
def test_the_callback_stops_where_lightgbm_would_and_asks_little(data: Any, metric: Any, params: Any) -> None:
    guard, fitted, valid, held = make(data)
    stopping = GuardedStopping(guard, metric, validation=np.arange(len(data[1]))[valid])
    booster = fit(data, fitted, params, callbacks=[LightGBMCallback(stopping)])
    X, y = data
    # LightGBM's own early stopping on the same validation part, with the same metric and patience.
    greater = metric == "accuracy"
    own = fit(
        data,
        fitted,
        {**params, "metric": "none"},
        valid_sets=[lightgbm.Dataset(X[valid], y[valid])],
        feval=lambda output, _: ("own", value(metric, output, y[valid]), greater),
        callbacks=[lightgbm.early_stopping(10, verbose=False)],
    )
    assert booster.best_iteration == own.best_iteration
    assert stopping.rounds == own.best_iteration + 10
    assert stopping.best_round == own.best_iteration - 1
    assert stopping.asked == len(guard.history) <= 6 < stopping.rounds
    assert stopping.best is not None
    truth = value(metric, booster.predict(X[held]), y[held])  # predicts with best_iteration
    assert abs(truth - stopping.best.value) <= stopping.best.half_width


@pytest.mark.slow
def test_a_query_is_about_the_round_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = DIGITS
    guard, fitted, valid, held = make(DIGITS)
    asked: list[Any] = []
    score = guard.score

    def spy(model: Any, metric: Any, **options: Any) -> Any:
        asked.append(metric.of(model, X[held], y[held]))
        return score(model, metric, **options)

    monkeypatch.setattr(guard, "score", spy)
    stopping = GuardedStopping(guard, "accuracy", validation=np.arange(len(y))[valid], patience=5)
    fit(DIGITS, fitted, CASES[0][2], callbacks=[LightGBMCallback(stopping)])
    whole = fit(DIGITS, fitted, CASES[0][2], stopping.rounds)
    last = max(stopping.answers)
    assert last < stopping.rounds - 1  # asked about when it was no longer the present round
    for number, values in zip(stopping.answers, asked, strict=True):
        output = np.asarray(whole.predict(X[held], num_iteration=number + 1))
        assert np.array_equal(values, output.argmax(axis=1) == y[held])


@for_each("labels", [None, np.array(["benign", "malign"])], ids=["numbers", "texts"])
def test_scikit_learn_interface(labels: Any) -> None:
    X, y = CANCER
    named = y if labels is None else labels[y]
    guard, fitted, valid, held = make((X, named))
    stopping = GuardedStopping(guard, "accuracy", validation=np.arange(len(y))[valid])
    model = lightgbm.LGBMClassifier(n_estimators=200, verbose=-1, n_jobs=1)
    model.fit(X[fitted], named[fitted], callbacks=[LightGBMCallback(stopping)])
    assert model.best_iteration_ == (stopping.best_round or 0) + 1
    assert np.array_equal(stopping.best_model.predict(X[held]), np.asarray(model.predict(X[held])))


def test_scikit_learn_regressor() -> None:
    X, y = DIABETES
    guard, fitted, valid, held = make(DIABETES)
    stopping = GuardedStopping(guard, SQUARED, validation=np.arange(len(y))[valid])
    model = lightgbm.LGBMRegressor(n_estimators=200, verbose=-1, n_jobs=1)
    model.fit(X[fitted], y[fitted], callbacks=[LightGBMCallback(stopping)])
    assert model.best_iteration_ == (stopping.best_round or 0) + 1
    assert np.allclose(stopping.best_model.predict(X[held]), np.asarray(model.predict(X[held])))


def test_a_fit_that_ends_by_itself_asks_about_its_best_round() -> None:
    guard, fitted, valid, _ = make(DIGITS)
    stopping = GuardedStopping(guard, "accuracy", validation=np.arange(len(DIGITS[1]))[valid], patience=50)
    booster = fit(DIGITS, fitted, CASES[0][2], 12, callbacks=[LightGBMCallback(stopping)])
    best = int(np.argmax([evaluation.signal for evaluation in stopping.evaluations]))
    assert best in stopping.answers
    assert booster.best_iteration == (stopping.best_round or 0) + 1
    assert stopping.rounds == 12


def test_naive_early_stopping_spends_a_query_a_round() -> None:
    """What the economical way is compared with; it chooses the same round here, since no answer disagrees."""
    guard, fitted, valid, _ = make(CANCER, mechanism=Claims(holdout_answers=5))
    rows = np.arange(len(CANCER[1]))[valid]
    few, every = GuardedStopping(guard, validation=rows), GuardedStopping(guard, validation=rows, ask="rounds")
    for stopping in (few, every):
        fit(CANCER, fitted, CASES[1][2], callbacks=[LightGBMCallback(stopping)])
    assert every.rounds == few.rounds > 5 * few.asked
    assert every.rounds - few.asked <= every.asked < every.rounds  # those that `few` asked are known
    assert every.best_round == few.best_round


def test_exhaustion() -> None:
    guard, fitted, valid, _ = make(CANCER, queries=1)
    rows = np.arange(len(CANCER[1]))[valid]
    stopping = GuardedStopping(guard, validation=rows, ask="rounds")
    with pytest.warns(GuardExhaustedWarning, match="The only query of this guard is used"):
        booster = fit(CANCER, fitted, CASES[1][2], callbacks=[LightGBMCallback(stopping)])
    assert (stopping.rounds, booster.best_iteration, stopping.replaced) == (2, 1, 1)
    with pytest.raises(BudgetExhausted) as caught:  # without any answer
        fit(CANCER, fitted, CASES[1][2], callbacks=[LightGBMCallback(GuardedStopping(guard, validation=rows))])
    assert "pass exhausted='nan' or 'train'" in "".join(caught.value.__notes__)
    stopping = GuardedStopping(guard, validation=rows, exhausted="nan")
    with pytest.warns(GuardExhaustedWarning):
        booster = fit(CANCER, fitted, CASES[1][2], callbacks=[LightGBMCallback(stopping)])
    assert stopping.best is None
    assert booster.best_iteration == int(np.argmax([evaluation.signal for evaluation in stopping.evaluations])) + 1


@pytest.mark.slow
@for_each(
    ("params", "adds"),
    [
        ({"objective": "binary", "sigmoid": 2.0}, True),
        ({"objective": "cross_entropy"}, True),
        ({"objective": "multiclass", "num_class": 2}, True),
        ({"objective": "poisson"}, True),
        ({"objective": "huber"}, True),
        ({"objective": "quantile", "alpha": 0.7}, True),
        ({"objective": "regression", "reg_sqrt": True}, False),
        ({"objective": "binary", "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}, False),
    ],
    ids=lambda case: "-".join(map(str, case.values())) if isinstance(case, dict) else "",
)
def test_signals_are_those_of_the_whole_ensemble(params: Any, adds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = CANCER
    classes = params["objective"] in ("binary", "cross_entropy", "multiclass")
    guard, fitted, valid, _ = make(CANCER)
    metric: Any = "log_loss" if classes else squared_error(1.0)
    stopping = GuardedStopping(guard, metric, validation=np.arange(len(y))[valid], patience=40, every=2)
    predict, trees = lightgbm.Booster.predict, 0

    def counted(self: Any, *given: Any, **named: Any) -> Any:
        nonlocal trees
        trees += named["num_iteration"]
        return predict(self, *given, **named)

    monkeypatch.setattr(lightgbm.Booster, "predict", counted)
    # Without an answer nothing but the free records is predicted.
    monkeypatch.setattr(stopping, "_ask", lambda evaluation: None)
    fit(CANCER, fitted, params, 40, callbacks=[LightGBMCallback(stopping)])
    monkeypatch.undo()
    evaluations = [evaluation.round for evaluation in stopping.evaluations]
    assert evaluations == list(range(0, 40, 2))
    # 20 looks at odd numbers of rounds, up to 39: added up, with the looks 1, 2, 4, 8, 16 predicted as a whole, or all.
    assert trees == 39 + 1 + 3 + 7 + 15 + 31 if adds else trees >= sum(range(1, 40, 2))
    whole = fit(CANCER, fitted, params, 40)
    for evaluation in stopping.evaluations:
        output: Any = whole.predict(X[valid], num_iteration=evaluation.round + 1)
        if classes:
            of_one = output[:, 1] if output.ndim == 2 else output
            expected = value("log_loss", of_one, y[valid])
        else:
            expected = float(np.mean(np.minimum((output - y[valid]) ** 2, 1.0)))
        assert evaluation.signal == pytest.approx(expected, rel=1e-9)


def objective(output: Any, data: Any) -> tuple[Any, Any]:
    probability = 1 / (1 + np.exp(-output))
    return probability - data.get_label(), probability * (1 - probability)


@for_each(
    ("params", "message"),
    [
        ({"objective": objective}, "a custom objective, whose outputs are raw scores"),
        ({"objective": "regression"}, "'regression' with the metric 'accuracy'"),
        ({"objective": "lambdarank"}, "one of the library's own objectives.*; got 'lambdarank'"),
        ({"objective": "binary", "boosting": "dart"}, "'dart', which changes earlier trees"),
    ],
)
def test_what_cannot_be_served_is_refused(params: Any, message: str) -> None:
    X, y = CANCER
    guard, fitted, _, _ = make(CANCER)
    rank: Any = {"group": [len(y[fitted])]} if params["objective"] == "lambdarank" else {}
    with pytest.raises(InputError, match=message):
        lightgbm.train(
            QUIET | params,
            lightgbm.Dataset(X[fitted], y[fitted], **rank),
            5,
            callbacks=[LightGBMCallback(GuardedStopping(guard))],
        )
    assert guard.history.empty


def test_other_misuse_is_refused() -> None:
    X, y = CANCER
    guard, fitted, _, _ = make(CANCER)
    used = LightGBMCallback(GuardedStopping(guard, queries=1))
    fit(CANCER, fitted, CASES[1][2], 2, callbacks=[used])
    with pytest.raises(InputError, match="a new one for each fit"):
        fit(CANCER, fitted, CASES[1][2], 2, callbacks=[used])
    with pytest.raises(InputError, match=r"lightgbm\.cv"):
        lightgbm.cv(
            QUIET | CASES[1][2],
            lightgbm.Dataset(X[fitted], y[fitted]),
            2,
            nfold=2,
            callbacks=[LightGBMCallback(GuardedStopping(guard))],
        )
    digits, rows, _, _ = make(DIGITS)
    few = LightGBMCallback(GuardedStopping(digits), classes=[0, 1, 2])
    with pytest.raises(InputError, match="the labels of all columns"):
        fit(DIGITS, rows, CASES[0][2], 2, callbacks=[few])


def datasets(data: Any, function: LightGBMEval, *rows: slice) -> tuple[Any, list[Any]]:
    """Return sets of these records, the first for training, and after them the one that stands for the holdout."""
    X, y = data
    first, *others = [lightgbm.Dataset(X[part], y[part]) for part in rows]
    return first, [first, *others, function.holdout(first)]


@pytest.mark.slow
@for_each(("data", "metric", "params"), CASES, ids=["digits", "cancer", "diabetes"])
def test_the_evaluation_function_asks_every_so_many_rounds(data: Any, metric: Any, params: Any) -> None:
    guard, fitted, valid, held = make(data)
    function = LightGBMEval(guard, metric, every=4)
    shown: dict[str, Any] = {}
    first, sets = datasets(data, function, fitted, valid)
    booster = lightgbm.train(
        QUIET | {"metric": "none"} | params,
        first,
        10,
        valid_sets=sets,
        valid_names=["train", "valid", "held"],
        feval=function,
        callbacks=[lightgbm.record_evaluation(shown)],
    )
    X, y = data
    values = shown["held"][function.metric.name]
    assert sorted(function.answers) == [0, 4, 8]
    assert values == [function.answers[k - k % 4].value for k in range(10)]
    assert function.asked == len(guard.history) == 3
    # The free set just before the holdout, the validation part, gives the training values.
    free = [value(metric, booster.predict(X[valid], num_iteration=k + 1), y[valid]) for k in range(10)]
    assert shown["valid"][function.metric.name] == pytest.approx(free, rel=1e-5)
    assert list(guard.history["train"]) == pytest.approx([free[0], free[4], free[8]], rel=1e-5)
    truth = [value(metric, booster.predict(X[held], num_iteration=k + 1), y[held]) for k in (0, 4)]
    for number, true in zip((0, 4), truth, strict=True):
        assert abs(function.answers[number].value - true) <= function.answers[number].half_width


def test_lightgbms_own_early_stopping_works_on_the_answers() -> None:
    guard, fitted, valid, _ = make(CANCER)
    function = LightGBMEval(guard, "accuracy", every=1)
    first, sets = datasets(CANCER, function, fitted, valid)
    names = ["train", "valid", "held"]
    shown: dict[str, Any] = {}
    booster = lightgbm.train(
        QUIET | {"metric": "none", "objective": "binary"},
        first,
        100,
        valid_sets=[sets[0], sets[2]],
        valid_names=[names[0], names[2]],
        feval=function,
        callbacks=[lightgbm.early_stopping(10, verbose=False), lightgbm.record_evaluation(shown)],
    )
    answers = [function.answers[k].value for k in sorted(function.answers)]
    assert booster.best_iteration == int(np.argmax(answers)) + 1
    assert function.asked == booster.best_iteration + 10


@for_each("policy", ["train", "nan", "stop"])
def test_exhaustion_of_the_evaluation_function(policy: Any) -> None:
    guard, fitted, _, _ = make(CANCER, queries=2)
    function = LightGBMEval(guard, "accuracy", every=2, exhausted=policy)
    shown: dict[str, Any] = {}
    first, sets = datasets(CANCER, function, fitted)
    with pytest.warns(GuardExhaustedWarning) as caught:
        lightgbm.train(
            QUIET | {"metric": "none", "objective": "binary"},
            first,
            8,
            valid_sets=sets,
            valid_names=["train", "held"],
            feval=function,
            callbacks=[lightgbm.record_evaluation(shown)],
        )
    assert len(caught) == 1
    assert (function.asked, function.replaced, function.exhausted) == (2, 2, "queries")
    stand_in = shown["held"]["accuracy"][4:]
    if policy != "train":
        assert np.isnan(stand_in).all()
    else:
        trained = shown["train"]["accuracy"]
        assert stand_in == [trained[4], trained[4], trained[6], trained[6]]


def test_the_evaluation_function_refuses_what_it_cannot_do() -> None:
    guard, fitted, _, _ = make(CANCER, queries=1)
    function = LightGBMEval(guard)
    first, sets = datasets(CANCER, function, fitted)
    with pytest.raises(InputError, match="no free set before it"):
        lightgbm.train(QUIET | CASES[1][2], first, 2, valid_sets=sets[1:], feval=function)
    with pytest.raises(InputError, match="a second call of"):
        function.holdout(first)
    function = LightGBMEval(guard)
    first, sets = datasets(CANCER, function, fitted)
    with pytest.raises(InputError, match="raw scores"):
        lightgbm.train(QUIET | {"objective": objective}, first, 9, valid_sets=sets, feval=function)
    assert guard.history.empty
    function = LightGBMEval(guard, every=1, exhausted="raise")
    first, sets = datasets(CANCER, function, fitted)
    with pytest.raises(BudgetExhausted):
        lightgbm.train(QUIET | CASES[1][2], first, 9, valid_sets=sets, feval=function)
    function = LightGBMEval(guard, every=1)  # nothing is left: without any answer
    first, sets = datasets(CANCER, function, fitted)
    with pytest.raises(BudgetExhausted) as caught:
        lightgbm.train(QUIET | CASES[1][2], first, 9, valid_sets=sets, feval=function)
    assert "pass exhausted='nan' or 'train'" in "".join(caught.value.__notes__)


def test_lightgbms_own_early_stopping_keeps_the_best_answered_round() -> None:
    guard, fitted, _, _ = make(CANCER, queries=4)
    function = LightGBMEval(guard, "accuracy", every=1)
    first, sets = datasets(CANCER, function, fitted)
    with pytest.warns(GuardExhaustedWarning, match="This search has 4 answers") as caught:
        booster = lightgbm.train(
            QUIET | {"metric": "none", "objective": "binary"},
            first,
            200,
            valid_sets=sets,
            valid_names=["train", "held"],
            feval=function,
            callbacks=[lightgbm.early_stopping(10, verbose=False)],
        )
    assert len(caught) == 1
    assert booster.best_iteration == 1 + int(np.argmax([function.answers[k].value for k in range(4)]))
    assert 4 + function.replaced == booster.best_iteration + 10


@for_each("data", [CANCER, DIABETES], ids=["cancer", "diabetes"])
def test_a_set_of_ones_own_whose_records_can_be_seen_has_training_records(data: Any) -> None:
    X, y = data
    guard, fitted, _, held = make(data)
    metric: Any = "accuracy" if data is CANCER else SQUARED
    params = CASES[1][2] if data is CANCER else CASES[2][2]
    order = np.random.default_rng(0).permutation(len(y[held]))
    refusals = set()
    for rows in (X[held], X[held][order], X[held][:50], X[held][:50] + 1.0):
        first = lightgbm.Dataset(X[fitted], y[fitted])
        own = lightgbm.Dataset(rows, y[held][: len(rows)], reference=first, free_raw_data=False)
        with pytest.raises(InputError, match="not all in the guard's training part") as caught:
            lightgbm.train(
                QUIET | params, first, 3, valid_sets=[first, own], feval=LightGBMEval(guard, metric, every=1)
            )
        refusals.add(str(caught.value))
    assert len(refusals) == 1
    assert guard.history.empty
    function = LightGBMEval(guard, metric, every=1)  # what the refusal names
    first = lightgbm.Dataset(X[fitted], y[fitted], free_raw_data=False)
    lightgbm.train(QUIET | params, first, 2, valid_sets=[first, function.holdout(first)], feval=function)
    assert function.asked == 2


def test_labels_of_the_holdout_are_not_compared_with_anybodys() -> None:
    """Sets without records are served alike, whether their labels are those of the holdout or others."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 3)), np.tile(np.repeat([0, 1], 150), 2)
    guard = Thresholdout((X[300:], y[300:]), train=(X[:300], y[:300]), queries=99, mechanism=Claims(holdout_answers=5))
    params = QUIET | {"metric": "none", "objective": "binary", "min_data_in_leaf": 5}
    for ones in range(148, 153):
        labels = np.arange(300) < ones
        function = LightGBMEval(guard, every=2)
        first = lightgbm.Dataset(X[:300], labels.astype(int))
        booster = lightgbm.train(params, first, 3, valid_sets=[first, function.holdout(first)], feval=function)
        free = [np.mean((np.asarray(booster.predict(X[:300], num_iteration=k)) > 0.5) == labels) for k in (1, 3)]
        assert list(guard.history["train"])[-2:] == pytest.approx(free)


def test_lightgbms_own_metrics_see_no_label_of_the_holdout() -> None:
    X = CANCER[0]
    guard, fitted, _, held = make(CANCER)
    function = LightGBMEval(guard, every=100)
    first, sets = datasets(CANCER, function, fitted)
    shown: dict[str, Any] = {}
    params = QUIET | {"metric": "binary_error", "objective": "binary"}
    options: dict[str, Any] = {"callbacks": [lightgbm.record_evaluation(shown)], "valid_names": ["train", "held"]}
    booster = lightgbm.train(params, first, 2, valid_sets=sets, feval=function, **options)
    output = np.asarray(booster.predict(X[held])) > 0.5
    assert shown["held"]["binary_error"][1] == pytest.approx(output.mean())  # as if every label were 0
    assert np.ptp(sets[1].get_label()) == 0.0


def test_neither_the_function_nor_its_set_can_be_pickled() -> None:
    guard, fitted, _, _ = make(CANCER)
    function = LightGBMEval(guard)
    for secret in (function, datasets(CANCER, function, fitted)[1][1]):
        with pytest.raises(SharingError, match="cannot be pickled"):
            pickle.dumps(secret)
    assert len(pickle.dumps(guard)) < 1000


def test_a_failure_on_the_holdout_is_charged_and_hidden() -> None:
    guard, fitted, _, held = make(CANCER)
    function = LightGBMEval(guard, "log_loss", every=1)
    first, (_, own) = datasets(CANCER, function, fitted)
    first.construct()
    own.construct()
    size = len(CANCER[1][fitted])
    assert function(np.full(size, 0.5), first)[1] == pytest.approx(np.log(2.0))
    with pytest.raises(InputError, match="one that failed on the holdout"):
        function(np.full(len(CANCER[1][held]), 7.0), own)
    assert list(guard.history["source"]) == ["failed"]
