"""The Baum-Welch algorithm: likelihood by brute force, monotone steps, recovery within statistical error."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

from graphs import ArgumentError, CategoricalEmission, GaussianEmission, HiddenMarkov
from graphs.estimation import baum_welch
from graphs.models.baum_welch import HiddenFit
from tests.cases import for_each
from tests.sizes import corners


def likelihood_by_paths(fit: HiddenFit, records: list[Any]) -> float:
    total = 0.0
    likely = np.exp(fit.emission.log_likelihood(records))
    for path in itertools.product(range(len(fit.initial)), repeat=len(records)):
        chance = fit.initial[path[0]] * np.prod([fit.transition[a, b] for a, b in itertools.pairwise(path)])
        total += float(chance * np.prod([likely[t, z] for t, z in enumerate(path)]))
    return float(np.log(total))


@pytest.mark.slow
@pytest.mark.parametrize("states", corners([1, 2, 3], 0, 1))
@for_each("emission", ["gaussian", "categorical"])
def test_likelihood_is_that_of_all_paths_and_never_falls(states: int, emission: Any) -> None:
    rng = np.random.default_rng(states)
    for seed in range(3):
        values = rng.integers(0, 4, size=9).tolist() if emission == "categorical" else rng.normal(size=9).tolist()
        fit = baum_welch(values, states=states, emission=emission, seed=seed, iterations=300)
        assert fit.log_likelihood == pytest.approx(likelihood_by_paths(fit, values), abs=1e-6)
        assert (np.diff(fit.history) >= -1e-9).all()
        assert fit.log_likelihood == fit.likelihoods.max()
        np.testing.assert_allclose(fit.transition.sum(axis=1), 1)


@pytest.mark.slow
def test_several_sequences_are_independent() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=6).tolist(), rng.normal(size=5).tolist()
    fit = baum_welch(first, second, restarts=2)
    separate = likelihood_by_paths(fit, first) + likelihood_by_paths(fit, second)
    assert fit.log_likelihood == pytest.approx(separate, abs=1e-6)
    assert fit.lengths == (6, 5)
    assert HiddenMarkov.fit(rng.normal(size=50), rng.normal(size=60), n=7).n == 7


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [False, True])
def test_parameters_are_recovered_within_their_error(wrong: bool) -> None:
    """Six standard errors of the complete data, doubled for what is hidden: rate below 1e-9; a wrong truth is seen."""
    transition, means, deviations = np.array([[0.95, 0.05], [0.1, 0.9]]), np.array([0.0, 4.0]), np.array([1.0, 1.5])
    truth = HiddenMarkov(transition, 4000, emission=GaussianEmission(means, deviations))
    fit = baum_welch(truth.sample(np.random.default_rng(2)), restarts=3)
    assert isinstance(fit.emission, GaussianEmission)
    if wrong:
        transition, means = transition @ transition, means + np.array([0.0, 0.7])
    visits = 4000 * truth.initial
    off = 2 * stats.norm.isf(5e-10) * np.sqrt(transition * (1 - transition) / visits[:, None])
    off_means = 2 * stats.norm.isf(5e-10) * deviations / np.sqrt(visits)
    good = (np.abs(fit.transition - transition) < off).all() and (np.abs(fit.emission.means - means) < off_means).all()
    assert good != wrong
    assert fit.converged


@pytest.mark.statistical
@pytest.mark.slow
def test_tables_are_recovered() -> None:
    law = CategoricalEmission([[0.8, 0.15, 0.05], [0.05, 0.15, 0.8]], symbols=["low", "mid", "top"])
    truth = HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], 3000, emission=law)
    fit = baum_welch(truth.sample(np.random.default_rng(3)), emission="categorical", restarts=2, tolerance=1e-5)
    assert isinstance(fit.emission, CategoricalEmission)
    assert fit.emission.symbols == ("low", "mid", "top")
    np.testing.assert_allclose(fit.emission.matrix, law.matrix, atol=0.12)
    np.testing.assert_allclose(fit.transition, truth.transition, atol=0.12)


def test_extreme_records_do_not_underflow() -> None:
    values = np.r_[np.zeros(50), np.full(50, 1e6)] + np.random.default_rng(4).normal(size=100)
    fit = baum_welch(values)
    assert np.isfinite(fit.log_likelihood)
    assert isinstance(fit.emission, GaussianEmission)
    np.testing.assert_allclose(fit.emission.means, [0, 1e6], atol=1)


def test_bic_counts_parameters() -> None:
    fit = baum_welch(np.random.default_rng(5).normal(size=40), states=3, restarts=1)
    assert fit.parameters == 6 + 2 + 6
    assert fit.bic == pytest.approx(-2 * fit.log_likelihood + 14 * np.log(40))
    table = baum_welch("abcabcacb", states=2, emission="categorical", restarts=1)
    assert table.parameters == 2 + 1 + 4


@for_each(
    ("arguments", "options", "match"),
    [
        ((), {}, "sequences is missing"),
        (([1.0],), {}, "different values"),
        (([1.0, 2.0], [1.0]), {}, "fewer than two"),
        (([1.0, np.nan],), {}, "record 1, which is nan"),
        (([1.0, 2.0],), {"states": 3}, "states must be .*; got 3"),
        (([1.0, 2.0],), {"states": 0}, "states must be .*; got 0"),
        (([1.0, 2.0],), {"restarts": 0}, "restarts must be .*; got 0"),
        (([1.0, 2.0],), {"emission": "poisson"}, "emission"),
        (([[1], [2]],), {"emission": "categorical"}, "cannot be hashed"),
        ((["a", None],), {"emission": "categorical"}, "missing"),
    ],
)
def test_refusals(arguments: Any, options: Any, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        baum_welch(*arguments, **options)
    if not arguments:
        with pytest.raises(ArgumentError, match="Several sequences"):
            HiddenMarkov.fit([1.0, 2.0, 1.0], [2.0, 1.0, 3.0])
