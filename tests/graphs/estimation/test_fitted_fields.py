"""Models at upper limits: larger correlations are never less cautious, and what cannot be fitted is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from graphs import ArgumentError, GaussianField, Panel
from graphs.estimation import fit_autoregression, fit_components, fit_kernel, fit_panel
from graphs.fitted_limits import FittedLimits
from tests.cases import for_each
from tests.sizes import sizes


def inflation(correlation: Any) -> float:
    """Return what a dense field has."""
    return GaussianField(correlation).variance_inflation()


@for_each("seed", range(20))
def test_a_diagonal_above_larger_correlations_is_above_smaller_ones(seed: int) -> None:
    """In absolute value, whatever the signs: the diagonal of the limits serves every law within them."""
    rng = np.random.default_rng(seed)
    limits = np.abs(np.corrcoef(rng.standard_normal((6, 8))))
    diagonal = np.full(6, np.linalg.eigvalsh(limits)[-1])
    for _ in range(20):
        diagonal = diagonal * rng.uniform(0.9, 1.2, 6)
        if np.linalg.eigvalsh(np.diag(diagonal) - limits)[0] < 0:
            continue
        smaller = limits * np.triu(rng.uniform(-1, 1, (6, 6)), 1)
        smaller = smaller + smaller.T + np.eye(6)
        assert np.linalg.eigvalsh(np.diag(diagonal) - smaller)[0] >= -1e-12


@pytest.mark.slow
def test_fits_have_at_least_the_inflation_of_the_law_that_was_drawn() -> None:
    """Each fit once, with a failure that would be seen in one of ten thousand runs."""
    rng = np.random.default_rng(1)
    n, failure = 60, 1e-4
    times = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    values = Panel(GaussianField.ar(-0.6, 100), 5).sample(rng)
    assert fit_autoregression(
        values, n, units=np.repeat(np.arange(5), 100), fit_failure=failure
    ).variance_inflation() > (inflation((-0.6) ** times))
    users, items = np.divmod(np.arange(n), 10)
    labels = {"user": np.repeat(np.arange(40), 25), "item": np.tile(np.arange(25), 40)}
    drawn = GaussianField.components(labels, {"user": 0.2, "item": 0.1}).sample(rng)
    found = fit_components(drawn, labels, {"user": users, "item": items}, fit_failure=failure)
    truth = GaussianField.components({"user": users, "item": items}, {"user": 0.2, "item": 0.1})
    assert found.variance_inflation() > truth.variance_inflation()
    one = fit_components(drawn, {"user": labels["user"]}, {"user": users}, fit_failure=failure)
    assert one.variance_inflation() > 0.2 * 10 + 0.8
    places, others = rng.random((100, 2)), rng.random((n, 2))
    spread = GaussianField.kernel(places, lambda d: np.exp(-d / 0.02)).sample(rng)
    kernel = fit_kernel(spread, places, others, fit_failure=failure)
    assert kernel.variance_inflation() > GaussianField.kernel(others, lambda d: np.exp(-d / 0.02)).variance_inflation()
    firms = np.repeat(np.arange(80), 10)
    level = GaussianField.components({"firm": firms}, {"firm": 0.2}, series="firm", coefficients=0.3)
    panel = fit_panel(level.sample(rng), firms, 6, 10, fit_failure=failure)
    units = {"firm": np.repeat(np.arange(6), 10)}
    truth = GaussianField.components(units, {"firm": 0.2}, series="firm", coefficients=0.3)
    assert panel.variance_inflation() > truth.variance_inflation()
    for model in (found, one, kernel, panel):
        assert model.fit_failure == failure
        assert model.fitted_limits is not None
        assert "at most" in model.fitted_limits.family


@pytest.mark.statistical
@sizes("runs", 60, 200)
def test_certificates_of_fitted_components_cover(runs: int) -> None:
    """One query to new groups: signs; a plug-in estimate from few groups has to be rejected where it takes no limit.

    Error rate 1e-9 by the binomial law; the stated error is 0.05, half of it for the limit.
    """
    rng, broken, failed, naive = np.random.default_rng(3), 0, 0, 0
    groups, share = np.repeat(np.arange(8), 5), 0.3
    new = np.repeat(np.arange(40), 50)
    for _ in range(runs):
        values = np.sqrt(share) * rng.standard_normal(8)[groups] + np.sqrt(1 - share) * rng.standard_normal(40)
        model = fit_components(values, {"group": groups}, {"group": new}, fit_failure=0.025)
        signs = np.sqrt(share) * rng.standard_normal(40)[new] + np.sqrt(1 - share) * rng.standard_normal(2000) > 0
        width = np.sqrt(model.variance_inflation() * np.log(2 / 0.025) / 4000)
        broken += abs(signs.mean() - 0.5) > width
        failed += model.variance_inflation() < 1 + 49 * share
        table = values.reshape(8, 5)
        between, within = 5 * table.mean(axis=1).var(ddof=1), table.var(axis=1, ddof=1).mean()
        naive += max(between - within, 0) / (between + 4 * within) < share
    assert broken <= binom.isf(1e-9, runs, 0.05)
    assert failed <= binom.isf(1e-9, runs, 0.025) < naive


def test_known_values_count_for_nothing_more_in_a_fitted_field() -> None:
    """Conditional correlations at a limit are no limit: what `observed` gains is left out."""
    from graphs.fitted_limits import FittedLimits

    series = GaussianField.ar(0.9, 40)
    limits = FittedLimits("series", 100, 0.01)
    known = list(range(20))
    sharper = series.conditional_on_values().given(known).variance_inflation()
    for model in (series.fitted(limits).conditional_on_values(), series.conditional_on_values().fitted(limits)):
        assert model.given(known).variance_inflation() == 20.0 > sharper
        assert model.within_limits().given(known).variance_inflation() == 20.0


def test_what_cannot_be_fitted_is_refused() -> None:
    """Unit roots, unlimited ranges, effects that leave nothing, other factors."""
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.standard_normal(60))
    with pytest.raises(ArgumentError, match="unit root"):
        fit_autoregression(walk, 10)
    with pytest.raises(ArgumentError, match="unit root"):
        fit_panel(np.cumsum(rng.standard_normal((4, 8)), axis=1).ravel(), np.repeat(np.arange(4), 8), 3, 8)
    places = rng.random((30, 2))
    with pytest.raises(ArgumentError, match="exclude no range"):
        fit_kernel(places.sum(axis=1) + 1e-3 * places[:, 0] ** 2, places, places)
    users, items = np.divmod(np.arange(16), 4)
    few = rng.standard_normal(4)[users] * 3 + rng.standard_normal(4)[items] * 3 + rng.standard_normal(16)
    with pytest.raises(ArgumentError, match=r"limits .* of the shares"):
        fit_components(few, {"user": users, "item": items}, {"user": users, "item": items})
    with pytest.raises(ArgumentError, match="factors"):
        fit_components(few, {"user": users}, {"item": items})
    with pytest.raises(ArgumentError, match="factors"):
        fit_components(few, {}, {})


def test_places_far_apart_hang_together_though_their_correlation_underflows() -> None:
    """For every range below the limit the correlation is positive, so all records are one group."""
    rng = np.random.default_rng(0)
    model = fit_kernel(rng.standard_normal(80), rng.random((80, 2)), [[0.0, 0.0], [1e6, 0.0], [1e6, 1.0]])
    assert model.leakage(0.1) == pytest.approx([0.3, 0.3, 0.3])
    assert model.independent_groups() is None


@for_each("failure", [-0.5, 1.5, float("nan"), "0.01"])
def test_a_failure_that_is_no_probability_is_refused(failure: Any) -> None:
    """A negative one would be added to the confidence."""
    with pytest.raises(ArgumentError, match="a probability"):
        FittedLimits("laws of one kind", 500, failure)
