"""Slow, independent answers about chains: enumeration and high precision, straight from the definitions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

__all__ = ["chain_table", "end_influence", "mp_messages", "mp_phi", "quilt_leakage", "random_chain", "tail"]


def chain_table(transition: Any, initial: Any, n: int) -> FloatArray:
    """Joint probabilities of a chain, one state sequence at a time."""
    matrix, start = np.asarray(transition, dtype=float), np.asarray(initial, dtype=float)
    table = np.zeros((len(start),) * n)
    for path in itertools.product(range(len(start)), repeat=n):
        table[path] = start[path[0]] * math.prod(matrix[a, b] for a, b in itertools.pairwise(path))
    return table


def random_chain(rng: np.random.Generator, states: int, zeros: bool, start: str) -> tuple[FloatArray, FloatArray]:
    """A transition matrix and an initial law, with zeros if wanted; `start`: "stationary", "any", "few"."""
    matrix = rng.dirichlet(np.full(states, rng.choice([0.3, 1.0, 3.0])), states)
    if zeros:
        matrix = np.where(rng.random((states, states)) < 0.35, 0.0, matrix)
        matrix[np.arange(states), rng.integers(0, states, states)] += 0.1
        matrix /= matrix.sum(axis=1, keepdims=True)
    law = rng.dirichlet(np.ones(states))
    if start == "stationary":
        lazy = np.linalg.matrix_power((matrix + np.eye(states)) / 2, 20_000)
        law = law @ lazy
    if start == "few":
        law = np.where(rng.random(states) < 0.5, 0.0, law)
        law[rng.integers(states)] += 0.3
    return matrix, law / law.sum()


def mp_phi(diameter: Any, leakage: Any) -> Any:
    """phi to 60 digits, in its first form."""
    if mpmath.isinf(diameter):
        return mpmath.mpf(leakage)
    with mpmath.workdps(60 + int((diameter + leakage) / 4)):
        product = mpmath.tanh(mpmath.mpf(diameter) / 4) * mpmath.tanh(mpmath.mpf(leakage) / 4)
        return 4 * mpmath.atanh(product)


def mp_messages(transition: Any, n: int, epsilon: float, steps: Sequence[int]) -> list[Any]:
    """Leakages of a chain in which all states are possible everywhere, by long edges, to 60 digits."""
    with mpmath.workdps(60):
        matrix = mpmath.matrix([[mpmath.mpf(float(p)) for p in row] for row in np.asarray(transition)])
        for i in range(matrix.rows):
            total = mpmath.fsum(matrix[i, j] for j in range(matrix.cols))
            for j in range(matrix.cols):
                matrix[i, j] /= total
        diameters = {m: _mp_diameter(matrix**m) for m in steps if m < n}
        eps = mpmath.mpf(epsilon)
        rho = [mpmath.mpf(0)] * n
        for k in range(1, n):
            options = [(m - 1) * eps + mp_phi(diameters[m], m * eps + rho[k - m]) for m in diameters if m <= k]
            rho[k] = min([k * eps, *options])
        return [eps + rho[i] + rho[n - 1 - i] for i in range(n)]


def _mp_diameter(kernel: Any) -> Any:
    best = mpmath.mpf(0)
    for a, b in itertools.permutations(range(kernel.rows), 2):
        for c, d in itertools.permutations(range(kernel.cols), 2):
            top, bottom = kernel[a, c] * kernel[b, d], kernel[a, d] * kernel[b, c]
            if bottom == 0 and top > 0:
                return mpmath.inf
            if bottom > 0 and top > 0:
                best = max(best, mpmath.log(top / bottom))
    for a, b in itertools.permutations(range(kernel.rows), 2):
        if any((kernel[a, c] == 0) != (kernel[b, c] == 0) for c in range(kernel.cols)):
            return mpmath.inf
    return best


def end_influence(table: FloatArray, record: int, quilt: Sequence[int], known: Sequence[int] = ()) -> float:
    """Max-influence I(X_quilt <- X_record | X_known), by enumeration of a joint table."""
    if not quilt:
        return 0.0
    keep = [*known, record, *quilt]
    drop = tuple(j for j in range(table.ndim) if j not in keep)
    marginal = table.sum(axis=drop).transpose(np.argsort(np.argsort(keep)))
    shape = marginal.shape[: len(known)]
    worst = 0.0
    for state in itertools.product(*map(range, shape)):
        part = marginal[state].reshape(marginal.shape[len(known)], -1)
        rows = part[part.sum(axis=1) > 0]
        rows = rows / rows.sum(axis=1, keepdims=True)
        for p, q in itertools.permutations(rows, 2):
            if (q[p > 0] == 0).any():
                return math.inf
            used = p > 0
            worst = max(worst, float(np.log(p[used] / q[used]).max()))
    return worst


def quilt_leakage(table: FloatArray, record: int, epsilon: FloatArray, factor: float, informed: bool) -> float:
    """The smallest quilt bound of one record of a chain: every quilt, every known subset of the near records."""
    n = table.ndim
    best = float(epsilon.sum())
    lefts: list[int | None] = [None, *range(record)]
    rights: list[int | None] = [None, *range(record + 1, n)]
    for left, right in itertools.product(lefts, rights):
        near = [j for j in range(n) if j != record]
        near = [j for j in near if (left is None or j > left) and (right is None or j < right)]
        quilt = [j for j in (left, right) if j is not None]
        subsets = itertools.chain.from_iterable(
            itertools.combinations(near, r) for r in range(len(near) + 1 if informed else 1)
        )
        influence = max(end_influence(table, record, quilt, known) for known in subsets)
        best = min(best, float(epsilon[[record, *near]].sum()) + factor * influence)
    return best


def tail(table: FloatArray, values: FloatArray) -> list[tuple[float, float]]:
    """Deviations t of a mean of per-record values from its expectation, each with P(|q - E q| >= t).

    `values` has shape (n, k): the value of each record in each of its states.
    """
    n = table.ndim
    means = np.zeros(table.shape)
    for record in range(n):
        shape = [1] * n
        shape[record] = table.shape[record]
        means = means + values[record].reshape(shape) / n
    deviation = np.abs(means - float((means * table).sum())).ravel()
    weights = table.ravel()
    order = np.argsort(-deviation)
    reached = np.cumsum(weights[order])
    return list(zip(deviation[order].tolist(), reached.tolist(), strict=True))
