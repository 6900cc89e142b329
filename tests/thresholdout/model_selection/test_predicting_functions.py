from typing import Any

import numpy as np
import pytest

from tests.cases import for_each
from thresholdout.errors import InputError, InputTypeError
from thresholdout.model_selection.predicting_functions import (
    Classifier,
    Predictor,
    check_objective,
    predictor,
)
from thresholdout.scoring.fitted_models import classifies
from thresholdout.scoring.metrics import Metric, accuracy, log_loss, squared_error
from thresholdout.scoring.statistics import balanced_accuracy, r2, roc_auc


def test_probabilities_of_two_classes_may_be_one_column() -> None:
    second = np.array([0.25, 0.75], dtype=np.float32)
    for output in (second, second[:, None], np.stack([1 - second, second], axis=1)):
        model = Classifier(np.asarray, ["a", "b"])
        assert model.predict_proba(output).tolist() == [[0.75, 0.25], [0.25, 0.75]]
        assert model.predict(output).tolist() == ["a", "b"]


def test_single_precision_is_forgiven_and_removed() -> None:
    rough = np.full((2, 3), 1 / 3, dtype=np.float32) * np.float32(1.00001)
    table = Classifier(lambda _: rough, [0, 1, 2]).predict_proba(None)
    assert np.allclose(table.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    assert log_loss().values(np.array([0, 1]), table, np.array([0, 1, 2])) == pytest.approx([np.log(3)] * 2)


@for_each(
    ("output", "message"),
    [
        ([-1.5, 2.0], "probabilities, in one row per record with the sum 1.*raw scores"),
        ([0.5, np.nan], "probabilities.*; got values from nan to nan"),
        ([[0.5, 0.6], [0.5, 0.5]], r"rows with sums from 1 to 1\.1"),
        ([[0.2, 0.3, 0.5]], "classes must be .*; got 2 for 3 columns"),
    ],
)
def test_what_is_no_probability_is_refused(output: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Classifier(lambda _: output, [0, 1]).predict_proba(None)


def test_values_are_one_number_or_label_per_record() -> None:
    assert Predictor(lambda _: np.array([[1.0], [2.0]])).predict(None).tolist() == [1.0, 2.0]
    assert Predictor(lambda _: ["a", "b"]).predict(None).tolist() == ["a", "b"]
    with pytest.raises(InputError, match=r"one label or number per record.*; got shape \(1, 2\)"):
        Predictor(lambda _: [[0.4, 0.6]]).predict(None)
    with pytest.raises(InputTypeError, match=r"predictions must be .*; got a list"):
        Predictor(lambda _: [None, None]).predict(None)


def test_the_kind_chooses_the_estimator() -> None:
    assert isinstance(predictor(np.asarray, "probabilities", [0, 1]), Classifier)
    plain = predictor(np.asarray, "values", [0, 1], state="weights")
    assert isinstance(plain, Predictor)
    assert plain.state == "weights"
    assert not hasattr(plain, "predict_proba")  # a metric that needs it says so


def test_which_metrics_take_classes() -> None:
    share = Metric("share", "predict", lambda y, output, _: output == y, (0.0, 1.0), True)
    assert [classifies(metric) for metric in (accuracy(), log_loss(), balanced_accuracy())] == [True] * 3
    assert [classifies(metric) for metric in (squared_error(1.0), r2(4.0), roc_auc(), share)] == [False] * 4


def test_objectives() -> None:
    check_objective("binary", "probabilities", accuracy())
    check_objective("binary", "probabilities", squared_error(1.0))
    check_objective("regression", "values", squared_error(1.0))
    check_objective("regression", "values", roc_auc())  # ranks records, by whatever numbers
    with pytest.raises(InputError, match="'regression' with the metric 'accuracy'"):
        check_objective("regression", "values", accuracy())
    with pytest.raises(InputError, match=r"objective must be .*; got 'rank:ndcg'"):
        check_objective("rank:ndcg", None, accuracy())
    with pytest.raises(InputError, match="a custom objective, whose outputs are raw scores"):
        check_objective(None, None, squared_error(1.0))
