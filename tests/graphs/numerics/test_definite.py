"""Proofs that a matrix is positive semidefinite: never one of what is not, and nearly all of what is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from graphs.numerics.definite import dominates, is_semidefinite, largest_eigenvalue, least_lift
from tests.cases import for_each


def exactly_definite(matrix: np.ndarray) -> bool:
    """Whether all pivots of the exact elimination are positive."""
    rows = [[Fraction(float(entry)) for entry in row] for row in matrix]
    for k in range(len(rows)):
        if rows[k][k] <= 0:
            return False
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return True


@for_each("n", [2, 5, 9])
def test_proofs_are_right_where_the_least_eigenvalue_is_a_rounding_error(n: int) -> None:
    rng = np.random.default_rng(n)
    proved = refuted = 0
    for shift in np.r_[-(10.0 ** np.arange(-17, -11)), 0.0, 10.0 ** np.arange(-17, -9)]:
        data = rng.standard_normal((n, n - 1))
        matrix = data @ data.T  # singular, up to rounding
        matrix = np.tril(matrix) + np.tril(matrix, -1).T + shift * np.eye(n)
        exact = exactly_definite(matrix)
        found = is_semidefinite(matrix)
        assert exact or not found
        proved += found
        refuted += not exact
        assert found or shift < 1e-10
    assert proved
    assert refuted


@for_each("shift", [-1e-15, 0.0, 1e-17])
def test_nothing_is_proved_at_the_edge(shift: float) -> None:
    ones = np.ones((50, 50))
    assert not dominates(np.full(50, 50.0 + shift), ones)
    assert dominates(np.full(50, 50.0 + 1e-10), ones)


@for_each("matrix", [np.full((2, 2), np.nan), np.array([[np.inf, 0.0], [0.0, 1.0]])])
def test_nothing_is_proved_of_what_is_not_finite(matrix: np.ndarray) -> None:
    assert not is_semidefinite(matrix)
    assert not dominates(np.full(2, 10.0), matrix)


def test_the_largest_eigenvalue_is_a_bound() -> None:
    assert 50.0 <= largest_eigenvalue(np.ones((50, 50))) <= 50.0 * (1 + 1e-10)
    rng = np.random.default_rng(0)
    for _ in range(20):
        matrix = rng.standard_normal((8, 8))
        matrix = matrix + matrix.T
        bound = largest_eigenvalue(matrix)
        assert exactly_definite(bound * np.eye(8) - matrix)
        assert bound <= np.linalg.eigvalsh(matrix)[-1] * (1 + 1e-9)


def test_a_ladder_that_ends_without_a_proof() -> None:
    assert least_lift(lambda lift: False, 1e-3, 1.0) is None
    assert least_lift(lambda lift: True, 1e-3, 1.0) == 1e-3
