"""Queries that are functions: applied to the training part first, where a mistake costs nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from graphs.numerics.arguments import as_real
from thresholdout.data.identity import Part
from thresholdout.errors import InputError, InputTypeError, ThresholdoutError

__all__ = ["applied"]

_EXPECTED = "a function of X and y that returns one value per record, such as model.predict(X) == y"


def applied(query: Callable[..., object], train: Part) -> object:
    """Apply a query to the training part.

    Parameters
    ----------
    query : callable
        The query.
    train : tuple
        The pieces of the training part, which are its arguments.

    Returns
    -------
    object
        The values of the training records; their number and range are not checked.

    Raises
    ------
    InputError, InputTypeError
        When it does not take these arguments, fails, or returns a mean; what it raised is the cause.

    Examples
    --------
    >>> import numpy as np
    >>> applied(lambda X, y: np.mean(X == y), (np.arange(3), np.arange(3)))
    Traceback (most recent call last):
    thresholdout.errors.InputTypeError: train_values: a function that returns one number, 1.0, ...
    """
    try:
        inspect.signature(query).bind(*train)
    except TypeError:
        takes = "1 argument" if len(train) == 1 else f"{len(train)} arguments"
        expected = "a function of the records alone" if len(train) == 1 else _EXPECTED
        raise InputTypeError("train_values", f"a function that does not take {takes}", expected) from None
    except ValueError:  # no signature is known of it
        pass
    try:
        values = query(*train)
    except ThresholdoutError:
        raise
    except Exception as error:
        seen = f"a function that ends in {type(error).__name__} on the training part, so that nothing was asked"
        raise InputError("train_values", seen, _EXPECTED) from error
    if as_real(values) is not None or isinstance(values, bool) or getattr(values, "ndim", 1) == 0:
        seen = f"a function that returns one number, {values}, for {len(train[0])} training records"
        raise InputTypeError("train_values", seen, f"{_EXPECTED}; the guard takes the mean")
    return values
