import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.thresholdout.privacy.accounting.minibatches import twin
from thresholdout.privacy.accounting import (
    E_tilde,
    F_tilde,
    rdp_fswor,
    rdp_fswor_lower,
    rdp_wang,
    taylor_moment,
    taylor_moment_bound,
)
from thresholdout.privacy.accounting.accountants.renyi_conversion import default_orders

Q = 0.0024


def theorem(alpha: float, sigma: float, m: int, leading: str = "paper") -> float:
    return float(rdp_fswor(alpha, sigma, Q, adjacency="replace_one", method="taylor", m=m, leading=leading))


def test_worked_terms() -> None:
    assert F_tilde(1.5, 6, 3) == pytest.approx(0.716287243525981, rel=1e-12)
    assert F_tilde(5.5, 6, 3) == pytest.approx(50.6517407921944, rel=1e-12)
    assert F_tilde(5.5, 6, 4) == pytest.approx(477.40914456471, rel=1e-12)
    assert E_tilde(1.5, 6, Q, 3) == pytest.approx(2.53215548242055e-9, rel=2e-12)
    assert E_tilde(5.5, 6, Q, 4) == pytest.approx(2.02080467790849e-9, rel=2e-12)
    assert E_tilde(20, 6, Q, 5) == pytest.approx(1.24232903194519e-8, rel=2e-12)
    assert F_tilde(2000, 0.3, 60) == math.inf
    assert E_tilde(200, 0.3, Q, 5) == math.inf


@for_each(
    ("alpha", "sigma", "m", "value"),
    [
        (1.5, 6, 4, 5.25089542794134e-7),
        (2, 6, 4, 7.00753890603343e-7),
        (5.5, 6, 4, 1.93957143834606e-6),
        (16.25, 6, 5, 5.84151589223359e-6),
        (2.5, 2, 3, 1.9836699380016e-5),
    ],
)
def test_worked_theorem(alpha: float, sigma: float, m: int, value: float) -> None:
    assert theorem(alpha, sigma, m) == pytest.approx(value, rel=1e-12)


def test_worked_sharp_theorem() -> None:
    assert theorem(2, 6, 4, "sharp") == pytest.approx(6.81955687284365e-7, rel=1e-12)
    assert theorem(5.5, 6, 4, "sharp") == pytest.approx(1.88787678866299e-6, rel=1e-12)


@for_each(
    ("alpha", "sigma", "value"),
    [
        (2, 6, 8.53624717378187e-7),
        (5.5, 6, 2.34747833721381e-6),
        (2.5, 1, 0.000740539395086361),
        (20.3, 2, 3.80516156628356),
    ],
)
def test_worked_envelope(alpha: float, sigma: float, value: float) -> None:
    found = rdp_fswor(alpha, sigma, Q, adjacency="replace_one", method="envelope")
    assert found == pytest.approx(value, rel=1e-12)


def is_the_envelope(alpha: float, sigma: float, q: float) -> None:
    exact = twin.envelope(alpha, sigma, q)
    found = rdp_fswor(alpha, sigma, q, adjacency="replace_one", method="envelope")
    assert found == pytest.approx(float(exact), rel=1e-10)
    assert found >= exact * (1 - 1e-12)


@pytest.mark.slow
def test_envelope_at_one_place() -> None:
    is_the_envelope(2.5, 2.0, 0.1)


@pytest.mark.slow
@settings(max_examples=6, deadline=None, derandomize=True)
@given(alpha=st.floats(1.05, 12), sigma=st.floats(0.7, 30), q=st.floats(1e-3, 0.9))
def test_envelope_by_its_definition(alpha: float, sigma: float, q: float) -> None:
    is_the_envelope(alpha, sigma, q)


def is_the_smallest(sigma: float, q: float, shape: tuple[float, float]) -> None:
    alpha = np.linspace(*shape, 3)
    best = rdp_fswor(alpha, sigma, q, adjacency="replace_one")
    lower = rdp_fswor_lower(alpha, sigma, q)
    assert np.isfinite(best).all()
    assert (best >= lower).all()
    envelope = rdp_fswor(alpha, sigma, q, adjacency="replace_one", method="envelope")
    assert (best <= envelope).all()
    assert (envelope <= 2 * alpha / sigma**2 * (1 + 1e-9)).all()
    assert (best <= rdp_wang(alpha, sigma, q, variant="min")).all()
    assert (best <= rdp_fswor(alpha, sigma, q, adjacency="replace_one", method="binomial")).all()
    for m in (3, 4, 5, 6):
        part = rdp_fswor(alpha, sigma, q, adjacency="replace_one", method="taylor", m=m)
        assert (best <= part * (1 + 1e-13)).all()
        assert (part >= lower).all()
        paper = rdp_fswor(alpha, sigma, q, adjacency="replace_one", method="taylor", m=m, leading="paper")
        assert (part <= paper).all()


SHAPES = [(1.001, 1.5), (2, 64), (500, 10_000)]


@pytest.mark.slow
@for_each(("sigma", "q", "shape"), [(6.0, Q, SHAPES[0]), (0.8, 0.2, SHAPES[1]), (40.0, 1e-5, SHAPES[2])])
def test_the_smallest_at_some_places(sigma: float, q: float, shape: tuple[float, float]) -> None:
    is_the_smallest(sigma, q, shape)


@pytest.mark.slow
@settings(max_examples=20, deadline=None, derandomize=True)
@given(sigma=st.floats(0.3, 1000), q=st.floats(1e-7, 0.99), shape=st.sampled_from(SHAPES))
def test_the_smallest_is_a_bound_and_never_above_its_parts(sigma: float, q: float, shape: tuple[float, float]) -> None:
    is_the_smallest(sigma, q, shape)


@pytest.mark.slow
@for_each("sigma", [0.3, 0.8, 2.0, 6.0, 60.0])
@for_each("q", [1e-4, 0.0024, 0.3])
def test_what_is_left_out_would_not_have_been_the_smallest(sigma: float, q: float) -> None:
    """Each order alone has the smallest of all bounds, though those that cannot be are not computed."""
    for order in (1.2, 1.999, 2.0, 2.001, 3.0, 8.5, 27.5625, 64.0, 300.0):
        named = ("envelope", "binomial")
        bounds = [rdp_fswor(order, sigma, q, adjacency="replace_one", method=method) for method in named]
        bounds += [rdp_wang(order, sigma, q, variant="min")]
        bounds += [rdp_fswor(order, sigma, q, adjacency="replace_one", method="taylor", m=m) for m in (3, 4, 5, 6)]
        assert rdp_fswor(order, sigma, q, adjacency="replace_one") == min(bounds)


def test_order_two_is_exact() -> None:
    """The binomial sum meets the lower bound at order 2, and is the smallest bound in the paper's main example."""
    for sigma, q in ((0.5, 0.3), (6, Q), (300, 1e-5)):
        best = rdp_fswor(2, sigma, q, adjacency="replace_one")
        assert best == pytest.approx(rdp_fswor_lower(2, sigma, q), rel=1e-11)
        assert rdp_fswor(1.5, sigma, q, adjacency="replace_one", method="binomial") == pytest.approx(best, rel=1e-11)


def test_binomial_sum_by_its_definition() -> None:
    for n, sigma, q in ((3, 2.0, 0.1), (5, 6.0, 0.01), (6, 0.8, 0.3)):
        total = 1 + math.comb(n, 2) * q**2 * math.expm1(4 / sigma**2)
        for j in range(3, n + 1):
            even = j % 2 == 0
            plain = (2 if even else 1) * math.exp(2 * j * (j - 1) / sigma**2)
            moments = [taylor_moment(sigma, k) for k in ((j, j) if even else (j - 1, j + 1))]
            total += math.comb(n, j) * q**j * min(plain, (4 if even else 3) * math.sqrt(moments[0] * moments[1]))
        found = rdp_fswor(n, sigma, q, adjacency="replace_one", method="binomial")
        assert found == pytest.approx(math.log(total) / (n - 1), rel=1e-11)
    half = rdp_fswor([3, 3.5, 4], 2, 0.1, adjacency="replace_one", method="binomial")
    assert 2.5 * half[1] == pytest.approx((2 * half[0] + 3 * half[2]) / 2, rel=1e-12)


def test_moments_of_differences_over_random_geometries() -> None:
    """E[(x - y)^k] of two ratios less 1 that share a base: at most 3 or 4 times the moment bound; here below 1."""
    rng, grid = np.random.default_rng(5), np.arange(-9, 13, 0.08)
    x = np.stack(np.meshgrid(grid, grid, indexing="ij"), -1).reshape(-1, 2)
    bell = np.exp(-0.5 * (x**2).sum(1)) * 0.0064 / (2 * math.pi)
    for _ in range(20):
        sigma, k = float(rng.uniform(4, 20)), int(rng.integers(3, 6))
        points = rng.normal(size=(3, 2))
        points *= rng.random((3, 1)) ** 0.2 / (np.linalg.norm(points, axis=1, keepdims=True) * sigma)
        one, other = points[0] - points[2], points[1] - points[2]
        difference = np.exp(x @ one - one @ one / 2) - np.exp(x @ other - other @ other / 2)
        found = float((np.abs(difference) ** k) @ bell)
        assert found <= (4 if k % 2 == 0 else 3) * taylor_moment_bound(sigma, k)


def test_paper_is_above_wang_at_small_noise() -> None:
    assert theorem(8, 2, 4) == pytest.approx(1.98e-4, rel=5e-3)
    assert theorem(8, 2, 3) == pytest.approx(1.07e-4, rel=5e-3)
    assert rdp_wang(8, 2, Q) == pytest.approx(1.63e-4, rel=5e-3)
    assert theorem(2, 1, 3) == pytest.approx(9.55, rel=5e-3)
    assert theorem(1.5, 1, 4) == pytest.approx(39.6, rel=5e-3)
    assert rdp_wang(2, 1, Q) == pytest.approx(1.234e-3, rel=5e-4)
    assert rdp_fswor_lower(2, 1, Q) == pytest.approx(3.087e-4, rel=5e-4)
    assert rdp_fswor(2, 1, Q, adjacency="replace_one") < 4.6e-4


def triples(rng: np.random.Generator, count: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    points = rng.normal(size=(3, count, dimension))
    points /= np.linalg.norm(points, axis=2, keepdims=True)
    points[:, ::2] *= rng.random((3, points[:, ::2].shape[1], 1)) ** 0.3
    return points[0] - points[2], points[1] - points[2]


@for_each("dimension", [1, 2, 3])
def test_sharp_leading_term_over_random_geometries(dimension: int) -> None:
    """e^{s|u|^2} + e^{s|v|^2} - 2 e^{s u.v} <= e^{4s} - 1, term by term; the paper's constant is not reached."""
    u, v = triples(np.random.default_rng(dimension), 50_000, dimension)
    a, b, c = (u * u).sum(1), (v * v).sum(1), (u * v).sum(1)
    for n in (1, 2, 3, 5, 9, 20):
        assert ((a**n + b**n - 2 * c**n) / 4.0**n).max() <= 1 + 1e-12
    for s in (0.01, 0.3, 2.0):
        total = np.expm1(s * a) + np.expm1(s * b) - 2 * np.expm1(s * c)
        assert total.max() <= math.expm1(4 * s) * (1 + 1e-12)
        assert math.expm1(4 * s) < 2 * (math.exp(4 * s) - math.exp(2 * s))  # half of (69)'s coefficient is smaller


def test_random_triples_never_exceed_the_bound() -> None:
    """Collinear gradients g, g' and g0 shared: also never above the add/remove value, as conjectured."""
    rng = np.random.default_rng(4)
    for _ in range(60):
        sigma, q = float(rng.choice([0.7, 1, 2, 6])), float(rng.choice([0.0024, 0.05, 0.3, 0.9]))
        alpha = float(rng.choice([1.1, 1.5, 2, 3.5]))
        g, other, shared = rng.choice([-1, 1]), rng.uniform(-1, 1), rng.choice([-1, 1, rng.uniform(-1, 1)])
        weights = np.array([1 - q, q])
        found = twin.finite([shared, g], [shared, other], alpha, sigma, weights)
        assert found <= rdp_fswor(alpha, sigma, q, adjacency="replace_one") + 1e-13
        assert found <= rdp_fswor(alpha, sigma, q) + 1e-13


def test_tiny_data_sets_by_enumeration() -> None:
    for records, size, sigma, alpha in ((2, 1, 1.0, 1.7), (4, 2, 2.0, 3.0), (5, 2, 0.7, 2.0)):
        bound = rdp_fswor(alpha, sigma, batch_size=size, dataset_size=records, adjacency="replace_one")
        for first, second in ((1.0, -1.0), (-1.0, 1.0), (1.0, 0.2), (0.5, -1.0)):
            for others in (-np.ones(records - 1), np.linspace(-1, 1, records - 1)):
                one, other = twin.batches([first, *others], size), twin.batches([second, *others], size)
                assert twin.finite(one, other, alpha, sigma) <= bound


@pytest.mark.slow
def test_default_grid_is_above_add_remove() -> None:
    orders = default_orders()
    for sigma in (0.5, 2, 6, 50):
        assert (rdp_fswor(orders, sigma, Q, adjacency="replace_one") >= rdp_fswor_lower(orders, sigma, Q)).all()
