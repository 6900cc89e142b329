"""Upper limits of variance components: against the analysis of variance, dense algebra, and repeated samples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, f

from graphs import ArgumentError
from graphs.estimation.variance_ratios import crossed_limits, intraclass_limit

Array = npt.NDArray[np.float64]


def test_balanced_groups_have_the_closed_form() -> None:
    """(F / F_d - 1)/size, the classical limit of the variance ratio."""
    rng = np.random.default_rng(1)
    table = rng.standard_normal((30, 1)) + rng.standard_normal((30, 4)) + 1000.0
    means = table.mean(axis=1)
    between = 4 * ((means - means.mean()) ** 2).sum() / 29
    within = ((table - means[:, None]) ** 2).sum() / 90
    ratio = (between / within / f.ppf(0.01, 29, 90) - 1) / 4
    found = intraclass_limit(table.ravel(), np.repeat(np.arange(30), 4))
    assert ratio / (1 + ratio) <= found <= ratio / (1 + ratio) + 1e-7


def test_unequal_groups_have_the_limit_of_generalised_least_squares() -> None:
    """The pivot from dense matrices: y'V^-1 y with and without the group effects."""
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(12), rng.integers(1, 7, 12))
    values = rng.standard_normal(12)[groups] + rng.standard_normal(len(groups))
    indicators = np.eye(12)[groups]
    ones = np.ones((len(groups), 1))

    def left(design: Array, covariance: Array) -> float:
        inverse = np.linalg.inv(covariance)
        weight = inverse - inverse @ design @ np.linalg.pinv(design.T @ inverse @ design) @ design.T @ inverse
        return float(values @ weight @ values)

    def quotient(ratio: float) -> float:
        covariance = np.eye(len(groups)) + ratio * indicators @ indicators.T
        inside = left(indicators, np.eye(len(groups)))
        return float((left(ones, covariance) - inside) / 11 / (inside / (len(groups) - 12)))

    ratio = brentq(lambda r: quotient(r) - f.ppf(0.05, 11, len(groups) - 12), 0.0, 1e4)
    assert intraclass_limit(values, groups, 0.05) == pytest.approx(ratio / (1 + ratio), rel=1e-6)


def test_a_complete_design_has_the_mean_squares_of_two_way_analysis_of_variance() -> None:
    """With one record in each cell."""
    rng = np.random.default_rng(3)
    table = rng.standard_normal((20, 1)) + rng.standard_normal((1, 15)) + rng.standard_normal((20, 15))
    rows, columns = table.mean(axis=1), table.mean(axis=0)
    rest = table - rows[:, None] - columns + table.mean()
    error = (rest**2).sum() / (19 * 14)
    expected = []
    for means, size, degrees in ((rows, 15, 19), (columns, 20, 14)):
        square = size * ((means - means.mean()) ** 2).sum() / degrees
        ratio = (square / error / f.ppf(0.01, degrees, 19 * 14) - 1) / size
        expected.append(ratio / (1 + ratio))
    users, items = np.divmod(np.arange(300), 15)
    assert crossed_limits(table.ravel(), users, items, 0.02) == pytest.approx(expected, rel=1e-6)


def test_an_incomplete_design_agrees_with_projections() -> None:
    """Random cells, some twice, and users that share no item with others."""
    rng = np.random.default_rng(4)
    users, items = rng.integers(0, 10, 60), rng.integers(0, 8, 60)
    users[:4], items[:4] = [10, 10, 11, 11], [8, 8, 8, 8]
    values = rng.standard_normal(12)[users] + rng.standard_normal(9)[items] + rng.standard_normal(60)
    z, w = np.eye(12)[users], np.eye(9)[items]
    m = np.eye(60) - w @ np.linalg.pinv(w)
    basis = np.linalg.svd(m)[0][:, : round(np.trace(m))]
    y, x = basis.T @ values, basis.T @ z
    rank = np.linalg.matrix_rank(x)

    def quotient(ratio: float) -> float:
        whole = y @ np.linalg.inv(np.eye(len(y)) + ratio * x @ x.T) @ y
        inside = y @ (np.eye(len(y)) - x @ np.linalg.pinv(x)) @ y
        return float((whole - inside) / rank / (inside / (len(y) - rank)))

    ratio = brentq(lambda r: quotient(r) - f.ppf(0.05, rank, len(y) - rank), 0.0, 1e5)
    assert crossed_limits(values, users, items, 0.1)[0] == pytest.approx(ratio / (1 + ratio), rel=1e-6)


@pytest.mark.statistical
def test_limits_fail_as_often_as_stated_and_estimates_half_of_the_time() -> None:
    """Error rate 1e-9 by the binomial law; the estimate without a limit must be rejected."""
    rng, runs, share = np.random.default_rng(5), 400, 0.1
    groups = np.repeat(np.arange(15), rng.integers(1, 8, 15))
    missed, naive = 0, 0
    for _ in range(runs):
        values = np.sqrt(0.3) * rng.standard_normal(15)[groups] + np.sqrt(0.7) * rng.standard_normal(len(groups))
        missed += intraclass_limit(values, groups, share) < 0.3
        naive += intraclass_limit(values, groups, 0.5) < 0.3
    most = binom.isf(1e-9, runs, share)
    assert missed <= most < naive
    assert missed >= binom.ppf(1e-9, runs, share)  # exact, not only safe


def test_what_cannot_be_used_is_refused() -> None:
    """Each with the argument's name."""
    good = [0.1, 0.4, 0.2, 0.9]
    for values, groups, name in [
        (good, [0, 0, 0, 0], "groups"),
        (good, [0, 1, 2, 3], "groups"),
        (good, [0, 0, 1], "groups"),
        (good, [0, 0, 1, None], "groups"),
        ([1.0, 1.0, 2.0, 2.0], [0, 0, 1, 1], "values"),
        ([1.0, 1.0, 1.0, 1.0], [0, 0, 1, 1], "values"),
        ([1.0, np.nan, 1.0, 2.0], [0, 0, 1, 1], "values"),
        (["a", "b", "c", "d"], [0, 0, 1, 1], "values"),
    ]:
        with pytest.raises(ArgumentError) as caught:
            intraclass_limit(values, groups)
        assert caught.value.argument == name
    for failure in (0.0, 1.0, "0.1", float("nan")):
        with pytest.raises(ArgumentError, match="fit_failure"):
            intraclass_limit(good, [0, 0, 1, 1], failure)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"users must be .*; got an effect that the other one explains"):
        crossed_limits(good, [0, 0, 1, 1], [0, 0, 1, 1])


def test_equal_groups_have_no_correlation_and_copies_have_all() -> None:
    """The ends: means that differ less than chance would have it, and values that hardly differ within groups."""
    assert intraclass_limit([0.0, 1.0, 1.0, 0.0] * 20, np.repeat(np.arange(20), 4)) == 0.0
    copies = np.repeat(np.arange(10.0), 3) + np.tile([0.0, 1e-6, -1e-6], 10)
    assert intraclass_limit(copies, np.repeat(np.arange(10), 3)) == 1.0
