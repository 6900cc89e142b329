"""Checks that a fitted model can be applied to records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.data.identity import kind_of_labels
from thresholdout.errors import InputError, InputTypeError, ThresholdoutError

if TYPE_CHECKING:
    from thresholdout.scoring.metrics import Metric
    from thresholdout.scoring.statistics import Statistic

__all__ = ["check_applies", "check_booster", "check_classes", "classifies", "said_plainly"]

_HEAD: Final = 16  # records that show most failures at no cost


def check_applies(estimator: Any, X: Any, y: Any, response: str) -> None:
    """Apply a fitted model to a few training records, and refuse one that fails.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> check_applies(LogisticRegression(), np.ones((4, 2)), np.ones(4), "predict")
    Traceback (most recent call last):
    thresholdout.errors.InputError: estimator must be a fitted model; got a LogisticRegression that is not fitted. ...
    """
    from sklearn.utils import _safe_indexing

    size = X.shape[0] if hasattr(X, "shape") else len(X)
    with said_plainly(estimator, X, response):
        getattr(estimator, response)(_safe_indexing(X, np.arange(min(size, _HEAD))))
    check_classes(estimator, y)


def classifies(metric: Metric | Statistic) -> bool:
    """Whether a metric needs classes or their probabilities.

    Examples
    --------
    >>> from thresholdout.scoring.metrics import log_loss, squared_error
    >>> classifies(log_loss()), classifies(squared_error(1.0))
    (True, False)
    """
    named = metric.name in ("accuracy", "zero_one_loss") or getattr(metric, "response", "") == "predict_proba"
    return named or bool(getattr(metric, "classifies", False))


def check_booster(estimator: Any, *, classes: bool) -> None:
    """Refuse a booster of LightGBM or XGBoost that does not predict as an estimator does."""
    library = type(estimator).__module__.split(".")[0]
    if type(estimator).__name__ != "Booster" or library not in ("lightgbm", "xgboost"):
        return
    if library == "lightgbm" and not classes:
        return
    kind = "Classifier" if classes else "Regressor"
    does, X = ("puts out probabilities, not labels", "X")
    if library == "xgboost":
        does, X = ("takes no arrays", "xgboost.DMatrix(X)")
    values = f"(model.predict({X}) > 0.5) == y" if classes else f"abs(model.predict({X}) - y), bounds=(0, largest)"
    name = {"lightgbm": "lightgbm.LGBM", "xgboost": "xgboost.XGB"}[library] + kind
    seen = f"a Booster of {library}, which {does}"
    advice = f"Or ask for values of records: guard.ask(lambda X, y: {values})."
    raise InputTypeError("estimator", seen, f"a {name}", advice)


def check_classes(estimator: Any, y: Any) -> None:
    """Refuse a classifier of numbers for labels that are text, and the reverse."""
    classes, labels = getattr(estimator, "classes_", None), np.asarray(y)
    if isinstance(classes, np.ndarray) and {kind_of_labels(classes), kind_of_labels(labels)} == {"numbers", "text"}:
        seen = f"a {type(estimator).__name__} with classes of type {classes.dtype}"
        raise InputTypeError("estimator", seen, f"fitted to labels of the guard's type, {labels.dtype}")


@contextmanager
def said_plainly(estimator: Any, X: Any, response: str) -> Iterator[None]:
    """Return a context that turns a model's errors on training records into errors with advice."""
    from sklearn.exceptions import NotFittedError

    name = type(estimator).__name__
    if isinstance(estimator, type):
        seen = f"the class {estimator.__name__}"
        advice = f"Call {estimator.__name__}().fit(X_train, y_train)."
        raise InputTypeError("estimator", seen, "a fitted model", advice)
    try:
        yield
    except ThresholdoutError:
        raise
    except NotFittedError as error:
        advice = "Call model.fit(X_train, y_train) first."
        raise InputError("estimator", f"a {name} that is not fitted", "a fitted model", advice) from error
    except Exception as error:
        raise InputError("estimator", _why(estimator, X, name, response, error), *_expected(X)) from error


def _why(estimator: Any, X: Any, name: str, response: str, error: Exception) -> str:
    """Return how a model and records do not fit."""
    columns, known = getattr(X, "columns", None), getattr(estimator, "feature_names_in_", None)
    if columns is not None and known is not None:
        lacking = [str(column) for column in known if column not in set(columns)]
        more = [str(column) for column in columns if column not in set(known)]
        if lacking or more:
            said = [f"{what} {_few(names)}" for what, names in (("lack", lacking), ("have", more)) if names]
            return f"a {name} of {len(known)} columns, while the training records {' and '.join(said)}"
    wanted, there = getattr(estimator, "n_features_in_", None), tuple(getattr(X, "shape", (0,)))[1:]
    if wanted is not None and len(there) == 1 and there[0] != wanted:
        return f"a {name} that was fitted to {wanted} features, while the training records have {there[0]}"
    if len(there) == 0 and hasattr(X, "shape"):
        return f"a {name} for training records of shape {X.shape}"
    return f"a {name} whose {response} ends in {type(error).__name__} on training records"


def _few(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(repr(name) for name in names[:3]) + more


def _expected(X: Any) -> tuple[str, str]:
    if hasattr(X, "shape") and len(X.shape) == 1:
        return "a model for the guard's records", "Pass (X, y) in both parts, with a row of X per record."
    return "a model for the guard's records", "Any preparation of records belongs into a pipeline with it."
