import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.thresholdout.privacy.accounting.minibatches import twin
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting import rdp_fswor, rdp_fswr, rdp_fswr_lower
from thresholdout.privacy.accounting.minibatches.with_replacement import Draws


@for_each(
    ("alpha", "sigma", "draws", "records", "value"),
    [
        (2, 6, 120, 50_000, 6.77099232749269e-7),
        (3, 6, 20, 20_000, 1.76319821874516e-7),
        (3, 1, 5, 100, 115.461223605089),
        (2.5, 2, 1, 100, 2.17575332281880e-4),
    ],
)
def test_worked_values(alpha: float, sigma: float, draws: int, records: int, value: float) -> None:
    assert rdp_fswr(alpha, sigma, draws, records) == pytest.approx(value, rel=1e-12)
    if alpha == int(alpha):
        lower = rdp_fswr_lower(int(alpha), sigma, draws, records)
        assert lower == pytest.approx(value, rel=1e-10)
        assert lower <= rdp_fswr(alpha, sigma, draws, records)


def test_worked_paper_bound() -> None:
    found = rdp_fswr(3, 6, 20, 20_000, method="paper", m=4, K=3)
    assert found == pytest.approx(1.76450986093069e-7, rel=1e-11)
    assert rdp_fswr(3, 6, 20, 20_000) < found


def test_the_paper_bound_is_far_above_the_truth() -> None:
    assert rdp_fswr(2, 6, 120, 50_000, method="paper") == pytest.approx(301.627, rel=2e-6)
    assert rdp_fswr(2, 6, 120, 50_000) == pytest.approx(6.771e-7, rel=1e-3)


@pytest.mark.slow
@settings(max_examples=3, deadline=None, derandomize=True)
@given(alpha=st.floats(1.02, 6), sigma=st.floats(0.7, 30), draws=st.integers(1, 6), extra=st.integers(1, 400))
def test_many_digits_in_both_directions(alpha: float, sigma: float, draws: int, extra: int) -> None:
    records = draws + extra
    for direction, added in (("remove", False), ("add", True)):
        exact = twin.with_replacement(alpha, sigma, draws, records, added=added)
        found = rdp_fswr(alpha, sigma, draws, records, direction=direction)
        assert exact <= found <= exact * (1 + 1e-10)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(alpha=st.integers(2, 6), sigma=st.floats(0.4, 50), draws=st.integers(1, 30), extra=st.integers(1, 10_000))
def test_the_recursion_is_the_exact_value(alpha: int, sigma: float, draws: int, extra: int) -> None:
    lower = rdp_fswr_lower(alpha, sigma, draws, draws + extra)
    exact = rdp_fswr(alpha, sigma, draws, draws + extra, direction="remove")
    assert lower <= exact == pytest.approx(lower, rel=1e-8)
    for chosen in ({draws}, {0, 1, draws}, {0, 1, 2} & set(range(draws + 1))):
        assert rdp_fswr_lower(alpha, sigma, draws, draws + extra, indices=chosen) <= exact


@pytest.mark.slow
@settings(max_examples=30, deadline=None, derandomize=True)
@given(alpha=st.floats(1.01, 30), sigma=st.floats(0.4, 300), draws=st.integers(1, 60), extra=st.integers(1, 10_000))
def test_bounds_and_monotony(alpha: float, sigma: float, draws: int, extra: int) -> None:
    records = draws + extra
    both = rdp_fswr(alpha, sigma, draws, records)
    assert math.isfinite(both)
    assert rdp_fswr(alpha, sigma, draws, records, direction="add") <= both * (1 + 1e-12)
    assert rdp_fswr(alpha, sigma * 1.2, draws, records) < both
    assert rdp_fswr(alpha * 1.1, sigma, draws, records) > both
    assert both <= rdp_fswr(alpha, sigma, draws, records, method="paper") * (1 + 1e-11)


def test_one_draw_is_without_replacement() -> None:
    alpha = np.array([1.1, 2.5, 40.0])
    assert np.allclose(rdp_fswr(alpha, 2, 1, 100), rdp_fswor(alpha, 2, 0.01), rtol=1e-12)


@pytest.mark.slow
@for_each(("draws", "records"), [(40, 100), (2000, 2001), (5000, 1_000_000)])
def test_extreme_arguments_do_not_overflow(draws: int, records: int) -> None:
    for sigma in (0.3, 1000.0):
        found = rdp_fswr(np.array([1.001, 100.0, 10_000.0]), sigma, draws, records)
        assert np.isfinite(found).all()
        assert (np.diff(found) > 0).all()


def test_components_left_out_do_not_matter() -> None:
    """The ratio of 200 components, of which few are used at a node, beside the sum of all."""
    mixture = Draws(0.2, 200, 1000)
    nodes = np.linspace(-10, 30, 41)
    n = np.arange(201)
    logs = mixture.logs + n * 0.2 * (nodes[:, None] - n * 0.1)
    full = np.logaddexp.reduce(logs, axis=1)
    assert np.allclose(mixture.at(nodes).log, full, rtol=1e-11, atol=1e-12)


def test_tiny_data_sets_by_enumeration() -> None:
    best = 0.0
    for records, draws, sigma, alpha in ((2, 1, 1.0, 1.7), (3, 2, 2.0, 3.0), (4, 3, 0.8, 2.0), (5, 4, 3.0, 1.2)):
        bound = rdp_fswr(alpha, sigma, draws, records)
        for first, others in itertools.product((1.0, 0.3), (-np.ones(records - 1), np.linspace(-1, 1, records - 1))):
            larger = twin.batches([first, *others], draws, replacement=True)
            smaller = twin.batches(list(others), draws, replacement=True)
            for one, other in ((larger, smaller), (smaller, larger)):
                found = twin.finite(one, other, alpha, sigma)
                assert found <= bound
                best = max(best, found / bound)
    assert best > 1 - 1e-9


@pytest.mark.slow
def test_domination_in_two_dimensions() -> None:
    """Shifts that are not aligned give less, in either direction, as Kahane's inequality says."""
    rng = np.random.default_rng(7)
    a, weights = 0.8, np.array([0.5, 0.3, 0.2])
    grid = np.arange(-9, 13, 0.1)
    x = np.stack(np.meshgrid(grid, grid, indexing="ij"), -1).reshape(-1, 2)
    for alpha in (1.3, 2.0, 3.0):
        aligned = [
            float(twin.renyi(list(zip(weights, (0, a, 2 * a), strict=True)), alpha, added=added))
            for added in (False, True)
        ]
        for _ in range(4):
            one, two = rng.normal(size=(2, 2))
            one, two = a * one / np.linalg.norm(one), a * two / np.linalg.norm(two)
            means = np.stack([np.zeros(2), one, one + two])
            ratio = np.exp(x @ means.T - 0.5 * (means**2).sum(1)) @ weights
            bell = np.exp(-0.5 * (x**2).sum(1)) * 0.01 / (2 * math.pi)
            removed = math.log(float((ratio**alpha) @ bell)) / (alpha - 1)
            added = math.log(float((ratio ** (1 - alpha)) @ bell)) / (alpha - 1)
            assert removed <= aligned[0] + 1e-12
            assert added <= aligned[1] + 1e-12


def test_bad_arguments() -> None:
    for alpha in (1, 2.5, math.nan):
        with pytest.raises(InputError, match="alpha"):
            rdp_fswr_lower(alpha, 6, 20, 100)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="indices"):
        rdp_fswr_lower(3, 6, 20, 100, indices=[21])
    with pytest.raises(InputError, match="indices"):
        rdp_fswr_lower(3, 6, 20, 100, indices=[])
    with pytest.raises(InputError, match="K"):
        rdp_fswr(3, 6, 20, 100, method="paper", K=21)
    with pytest.raises(InputError, match="direction"):
        rdp_fswr(3, 6, 20, 100, direction="up")
    with pytest.raises(InputTypeError, match="batch_size"):
        rdp_fswr(3, 6, 0.2, 100)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        rdp_fswr(3, 6, 0.2)  # type: ignore[call-arg, arg-type]
