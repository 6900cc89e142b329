"""scikit-learn's checks of estimators for pytest: scikit-learn 1.6 gives a generator, which pytest 9 does not take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.sizes import corners


def each_check(
    estimators: Iterable[BaseEstimator], expected_failed_checks: Callable[[Any], dict[str, str]] | None = None
) -> pytest.MarkDecorator:
    """Parametrize a test by ``estimator`` and ``check``, as `parametrize_with_checks` does; most are slow."""
    mark = parametrize_with_checks(list(estimators), expected_failed_checks=expected_failed_checks)
    cases = list(mark.args[1])
    return pytest.mark.parametrize(mark.args[0], corners(cases, *range(0, len(cases), 10)), **mark.kwargs)
