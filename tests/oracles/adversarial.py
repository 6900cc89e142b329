"""The worst statistics of a small law: those whose moment generating function is largest, beside those of `moments`."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def outcomes(table: FloatArray) -> tuple[FloatArray, list[IntArray]]:
    """Return the probabilities of the possible joint states, and the state of each record in them."""
    states = np.argwhere(table > 0)
    return table[table > 0], list(states.T)


def worst_lipschitz(table: FloatArray, rng: np.random.Generator, starts: int = 2, rounds: int = 6) -> float:
    """Return the largest ``8 n (ln E exp(u f) - u E f) / u^2`` found, over f that every record changes by 1/n at most.

    The moment is convex in f: a linear program maximises its tangent, again and again, from the number of records in
    the upper half of their states, and from random such functions.
    """
    n, (weights, seen) = table.ndim, outcomes(table)
    states = np.stack(seen, axis=1)
    distance = (states[:, None] != states).sum(axis=2)
    pairs = [(a, b) for a, b in itertools.permutations(range(len(states)), 2) if a != b]
    allowed = np.zeros((len(pairs), len(states)))
    for row, (a, b) in enumerate(pairs):
        allowed[row, a], allowed[row, b] = 1, -1
    limits = np.array([distance[pair] for pair in pairs]) / n
    best = 0.0
    for start in range(starts):
        values = (states >= np.array(table.shape) / 2).sum(axis=1) / n
        if start:
            values = np.min(rng.uniform(0, 1, len(states)) + distance / n, axis=1)
        u = n * float(rng.choice([0.5, 2.0, 6.0])) if start else 0.05
        for _ in range(rounds):
            for argument in (u / 2, u, 2 * u):
                moment = np.log(weights @ np.exp(argument * (values - weights @ values)))
                best = max(best, 8 * n * float(moment) / argument**2)
            tilted = weights * np.exp(u * (values - values.max()))
            slope = tilted / tilted.sum() - weights
            found = linprog(-slope, A_ub=allowed, b_ub=limits, bounds=(-1, 1), method="highs").x
            if found is None or np.allclose(found, values):
                break
            values = found
    return best


def worst_coins(table: FloatArray, effective: float, rng: np.random.Generator, starts: int = 3) -> float:
    """Return by how much ``ln E exp(u (q - p))`` is above ``N ln(1 - p + p e^(u/N)) - u p``, relative to that.

    The largest found over u and over functions of single records with values 0 or 1, turned round one at a time until
    nothing helps.
    """
    n, (weights, seen) = table.ndim, outcomes(table)
    inside = np.concatenate(
        [column[:, None] == np.arange(size) for column, size in zip(seen, table.shape, strict=True)], 1
    )
    half = np.concatenate([np.arange(size) >= size / 2 for size in table.shape]).astype(float)

    def excess(values: FloatArray, u: float) -> float:
        means = inside @ values / n
        p = float(weights @ means)
        if not 1e-9 < p < 1 - 1e-9:
            return -1.0
        coins = effective * float(np.logaddexp(np.log1p(-p), np.log(p) + u / effective)) - u * p
        if coins < 1e-6 * abs(u):  # too little to be compared
            return -1.0
        return float(np.log(weights @ np.exp(u * (means - p)))) / coins - 1

    best = -1.0
    for start in range(starts):
        values = rng.integers(0, 2, len(half)).astype(float) if start else half
        u = float(rng.choice([0.3, 2.0, 8.0, 25.0]) * rng.choice([-1, 1])) if start else 0.05
        reached, before = excess(values, u), -2.0
        while reached > before + 1e-9:
            before = reached
            for place in range(len(values)):
                turned = values.copy()
                turned[place] = 1 - turned[place]
                if (value := excess(turned, u)) > reached:
                    values, reached = turned, value
            for factor in (0.5, 2.0):
                if 0.05 <= abs(u * factor) <= 100 and (value := excess(values, u * factor)) > reached:
                    u, reached = u * factor, value
        best = max(best, reached)
    return best
