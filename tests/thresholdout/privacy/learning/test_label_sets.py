"""A set of labels that comes from the records shows the one that nobody else has: never in a private report."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

import thresholdout.privacy.learning as learning
from tests.cases import for_each
from tests.thresholdout.privacy.learning.private_learners import ESTIMATORS, LABELS, X, estimators_with, quiet_fit
from thresholdout.errors import InputError
from thresholdout.privacy.learning import EPClassifier

CLASSIFIERS = [name for name in ESTIMATORS if is_classifier(ESTIMATORS[name])]
NAMES = np.array(["healthy", "ill"])[LABELS]


def private(name: str, **more: Any) -> Any:
    return clone(ESTIMATORS[name]).set_params(random_state=0, **more)


def test_every_classifier_is_here() -> None:
    public = [name for name in estimators_with() if is_classifier(getattr(learning, name)())]
    assert set(public) == set(CLASSIFIERS) == set(estimators_with("classes"))


@for_each("name", CLASSIFIERS)
def test_labels_of_the_records_are_no_public_set(name: str) -> None:
    """One record's label, which is "ill" as the only one, must not be published by what calls itself private."""
    lonely = np.array(["healthy"] * 59 + ["ill"])
    model = private(name, classes=None)
    if "allow_leaks" in model.get_params():
        with pytest.raises(
            InputError,
            match=r"classes must be both labels; got .*allow_leaks=True",
        ):
            quiet_fit(model, X, lonely)
        assert not hasattr(model, "classes_")
        model.set_params(allow_leaks=True)
    found = quiet_fit(model, X, lonely).privacy_report_
    assert not found.private
    assert any("the set of classes" in words and "give classes" in words for words in found.leaks)


@for_each("name", CLASSIFIERS)
def test_named_classes_are_public(name: str) -> None:
    found = quiet_fit(private(name, classes=["healthy", "ill"]), X, NAMES)
    assert found.privacy_report_.private
    assert found.privacy_report_.leaks == ()
    assert not any("labels" in words for words in found.privacy_report_.assumptions)
    assert found.classes_.tolist() == ["healthy", "ill"]


def test_without_privacy_labels_are_read_as_everywhere() -> None:
    assert EPClassifier().fit(X, NAMES).classes_.tolist() == ["healthy", "ill"]


@for_each("name", estimators_with("standardize"))
def test_means_of_the_records_are_no_public_numbers(name: str) -> None:
    model = private(name, standardize=True)
    with pytest.raises(InputError, match="standardize") as refused:
        quiet_fit(model)
    assert "allow_leaks=True" in str(refused.value)
    found = quiet_fit(model.set_params(allow_leaks=True)).privacy_report_
    assert not found.private
    assert any("means and deviations" in words for words in found.leaks)
