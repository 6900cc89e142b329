"""What the history calls a model that nobody has named: its class, and the parameters that are not the defaults."""

from __future__ import annotations

import inspect
from typing import Any, Final

import numpy as np

__all__ = ["class_and_parameters"]

_LONGEST: Final = 120
_LONGEST_TEXT: Final = 24
_MOST: Final = 4


def class_and_parameters(model: Any) -> str:
    """Return a model's class with the parameters that differ from their defaults, in at most 120 characters.

    Parameters
    ----------
    model : object
        An estimator, or the name of a column of predictions; of anything else the class is all that is said.

    Notes
    -----
    The history is public, and parameters can hold records. So numbers, short texts and short tuples of whole numbers
    are shown as they are; of an array nothing but its shape, of everything else its class or its length.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> class_and_parameters(LogisticRegression(C=10))
    'LogisticRegression(C=10)'
    >>> class_and_parameters(make_pipeline(StandardScaler(), LogisticRegression(class_weight={0: 1.5, 1: 2.0})))
    'Pipeline(StandardScaler, LogisticRegression(class_weight=dict of 2))'
    """
    try:
        text = model if isinstance(model, str) else _model(model)
    except Exception:  # parameters may be anybody's objects
        text = type(model).__name__
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _model(model: Any) -> str:
    name = type(model).__name__
    if not hasattr(model, "get_params") or isinstance(model, type):
        return name
    known = {one.name: one.default for one in inspect.signature(type(model).__init__).parameters.values()}
    parts = []
    for parameter, value in model.get_params(deep=False).items():
        if parameter in ("steps", "estimators", "transformers") and isinstance(value, list):
            parts += [_model(step[1]) for step in value]
        elif not _same(value, known.get(parameter, inspect.Parameter.empty)):
            parts.append(f"{parameter}={_value(value)}")
    return f"{name}({', '.join(parts)})" if parts else name


def _same(value: Any, default: Any) -> bool:
    if type(value) is not type(default):
        return False
    return bool(value is default or (isinstance(value, (bool, int, float, str, tuple)) and value == default))


def _value(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
        return str(value)
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST_TEXT else f"{value[:_LONGEST_TEXT]}...")
    if hasattr(value, "get_params"):
        return _model(value)
    if isinstance(value, tuple) and len(value) <= _MOST and all(type(one) is int for one in value):
        return repr(value)
    kind, shape = type(value).__name__, getattr(value, "shape", None)
    if shape is not None:
        return f"{kind} of shape {tuple(shape)}"
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        return f"{kind} of {len(value)}"
    return str(getattr(value, "__name__", kind))
