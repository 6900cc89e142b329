"""Scores by name: scorer objects of scikit-learn, refusals and the calls that they name, pickles."""

import math
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_predict

import thresholdout
from tests.cases import for_each
from thresholdout.errors import InputError, InputTypeError
from thresholdout.scoring import metrics, statistics

SCORERS = [
    ("accuracy", "accuracy"),
    ("balanced_accuracy", "balanced_accuracy"),
    ("f1", "f1"),
    ("f1_macro", "f1_macro"),
    ("f1_micro", "accuracy"),
    ("jaccard_macro", "jaccard_macro"),
    ("matthews_corrcoef", "matthews_corrcoef"),
    ("neg_brier_score", "brier_score"),
    ("neg_log_loss", "log_loss(clip=5.0)"),
    ("precision_micro", "accuracy"),
    ("roc_auc", "roc_auc"),
    ("roc_auc_ovo", "roc_auc_ovo"),
    ("roc_auc_ovr", "roc_auc_ovr"),
    ("top_k_accuracy", "top_2_accuracy"),
]


@for_each(("name", "ours"), SCORERS)
def test_scorer_objects_of_scikit_learn_are_what_they_compute(name: str, ours: str) -> None:
    assert statistics.get_score(sk.get_scorer(name)).name == ours
    if not name.startswith("neg_"):
        assert statistics.get_score(name).name == ours


def test_scorer_objects_with_options() -> None:
    made = statistics.get_score(sk.make_scorer(sk.f1_score, pos_label=0, zero_division=0.0))
    assert made.name == "f1(positive=0)"
    assert statistics.get_score(sk.make_scorer(sk.fbeta_score, beta=2.0)).name == "fbeta(beta=2.0)"
    top = statistics.get_score(sk.make_scorer(sk.top_k_accuracy_score, k=3, response_method="predict_proba"))
    assert top.name == "top_3_accuracy"


@for_each(
    ("scorer", "message"),
    [
        (sk.get_scorer("r2"), r"statistics.r2\(clip=\(errors\*\*2\).max\(\) / y_train.var\(\)\)"),
        (sk.get_scorer("neg_mean_squared_error"), r"thresholdout.scoring.metrics.squared_error\(clip="),
        (sk.get_scorer("neg_root_mean_squared_error"), r"statistics.root_mean_squared_error\(clip=errors.max\(\)\)"),
        (sk.get_scorer("f1_weighted"), "average='weighted'"),
        (sk.get_scorer("average_precision"), "one of balanced_accuracy,.*; got .*'average_precision_score'"),
        (sk.get_scorer("roc_auc_ovr_weighted"), "roc_auc_score"),
        (sk.make_scorer(sk.recall_score, labels=[1], average="macro"), "labels="),
        (sk.make_scorer(lambda y, said: 0.5), "bounded_difference"),
        (sk.get_scorer("jaccard_micro"), "average='micro'"),
        (sk.make_scorer(sk.roc_auc_score), "response_method='predict_proba'.*; got .*response_method='predict'"),
        (sk.make_scorer(sk.log_loss), "response_method='predict_proba'.*; got .*response_method='predict'"),
        (sk.make_scorer(sk.brier_score_loss), "response_method='predict_proba'.*; got .*response_method='predict'"),
    ],
)
def test_scorer_objects_that_are_none_of_these_are_refused(scorer: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        statistics.get_score(scorer)


def test_areas_of_scores_are_what_the_refusal_of_areas_of_predictions_names() -> None:
    assert statistics.get_score(sk.make_scorer(sk.roc_auc_score, response_method="predict_proba")).name == "roc_auc"


@for_each(
    "score",
    [statistics.f1(positive="a"), statistics.fbeta(2.0), statistics.r2(4.0), statistics.get_score("f1_macro"),
     statistics.sliced("accuracy", ("g", 3)), metrics.log_loss(3.0), metrics.top_k_accuracy(3)],
    ids=repr,
)  # fmt: skip
def test_scores_are_pickled_and_show_their_names(score: Any) -> None:
    again = pickle.loads(pickle.dumps(score))
    assert (again.name, again.bounds, repr(again)) == (score.name, score.bounds, repr(score))
    assert score.name in repr(score)
    assert "lambda" not in repr(score)
    assert pickle.dumps(again) == pickle.dumps(score)


REGRESSIONS = [
    ("r2", "r2"),
    ("mae", "neg_mean_absolute_error"),
    ("mean_absolute_error", "neg_mean_absolute_error"),
    ("neg_mean_absolute_error", "neg_mean_absolute_error"),
    ("mse", "neg_mean_squared_error"),
    ("neg_mean_squared_error", "neg_mean_squared_error"),
    ("rmse", "neg_root_mean_squared_error"),
    ("neg_root_mean_squared_error", "neg_root_mean_squared_error"),
    ("neg_median_absolute_error", "neg_median_absolute_error"),
]


@for_each(("name", "theirs"), REGRESSIONS)
def test_what_a_refused_score_of_regressors_names_can_be_called(name: str, theirs: str) -> None:
    """The call in the message, on a skewed target: it is scikit-learn's score where no error is beyond the clip."""
    rng = np.random.default_rng(1)
    X_train = rng.normal(size=(300, 3))
    y_train = np.exp(2.0 * rng.normal(size=300)) + X_train[:, 0]
    model = LinearRegression()
    with pytest.raises(InputError, match="a declared largest error") as refused:
        statistics.get_score(name)
    call, errors = (
        refused.value.advice.removeprefix("Take it from the training part: ")
        .removesuffix(".")
        .split(", with errors = ")
    )
    known = {"np": np, "thresholdout": thresholdout, "cross_val_predict": cross_val_predict, "model": model,
             "X_train": X_train, "y_train": y_train}  # fmt: skip
    known["errors"] = eval(errors, known)
    chosen = eval(call, known)
    said = cross_val_predict(model, X_train, y_train)
    function = sk.get_scorer(theirs)._score_func
    found = chosen.value(y_train, said) if isinstance(chosen, statistics.Statistic) else chosen.values(
        y_train, said, None
    ).mean()  # fmt: skip
    tolerance = 0.05 if "median" in name else 1e-9
    assert found == pytest.approx(function(y_train, said), rel=tolerance)


def test_names() -> None:
    for name in ("roc_auc", "balanced_accuracy", "f1"):
        assert statistics.get_statistic(name).name == name
    same = statistics.r2(2.0)
    assert statistics.get_statistic(same) is same
    for name in ("accuracy", "median_absolute_error", "neg_median_absolute_error", ""):
        with pytest.raises(InputError, match="statistic"):
            statistics.get_statistic(name)
    with pytest.raises(InputTypeError):
        statistics.get_statistic(3)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="decision_function or predict_proba"):
        statistics.roc_auc().of(LinearRegression(), np.zeros((2, 1)), np.array([0, 1]))
    for bad in (0.0, -1.0, math.nan):
        with pytest.raises(InputError, match="clip"):
            statistics.r2(bad)
    with pytest.raises(InputError, match="window"):
        statistics.median_absolute_error(1.0, window=2.0)
