"""The largest variance inflation of a small law, over all functions of single records and all arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Arguments of the moment generating function, times the number of records.
ARGUMENTS = np.array([-12.0, -6.0, -3.0, -1.5, -0.5, -0.05, 0.05, 0.5, 1.5, 3.0, 6.0, 12.0])


def worst_inflation(
    weights: FloatArray,
    seen: list[IntArray],
    rng: np.random.Generator,
    starts: int = 4,
    arguments: FloatArray = ARGUMENTS,
) -> float:
    """Return a lower bound on the best Lambda: ``max 8 n (ln E exp(u q) - u E q) / u^2``.

    Parameters
    ----------
    weights : ndarray of shape (S,)
        Probabilities of the outcomes.
    seen : list of ndarray of shape (S,)
        The state of each record in each outcome, a number from 0 on.
    rng : numpy.random.Generator
        For the functions that the ascent begins with.
    starts : int
        How many ascents for each argument.
    arguments : ndarray
        Values of u / n.

    Notes
    -----
    For a fixed argument the exponent is convex in the table of each function, since it is the logarithm of a sum of
    exponentials less a linear term: its maximum over [0, 1] is at tables of zeros and ones, of which each ascent takes
    the best for one record after the other until none is better.
    """
    n = len(seen)
    tables = [_tables(int(column.max()) + 1) for column in seen]
    values = [table[:, column] for table, column in zip(tables, seen, strict=True)]  # all functions, all outcomes
    best = 0.0
    for argument in arguments:
        for start in range(starts):
            chosen = [int(rng.integers(0, len(table))) for table in tables]
            if start == 0:  # all records the same function of their state, where they have the same states
                chosen = [min(1, len(table) - 1) for table in tables]
            total = sum((values[k][chosen[k]] for k in range(n)), np.zeros(len(weights)))
            reached, moved = -np.inf, True
            while moved:
                moved = False
                for k in range(n):
                    rest = total - values[k][chosen[k]]
                    sums = rest + values[k]
                    found = np.log(np.exp(argument * sums) @ weights) - argument * (sums @ weights)
                    choice = int(np.argmax(found))
                    if found[choice] > reached + 1e-13:
                        reached, moved = float(found[choice]), True
                        chosen[k] = choice
                    total = rest + values[k][chosen[k]]
            best = max(best, 8 * reached / (n * float(argument) ** 2))
    return best


def _tables(states: int) -> FloatArray:
    """Return all functions of so many states with values 0 and 1, one in each row, up to complement of the first."""
    numbers = np.arange(2**states)
    return (numbers[:, None] >> np.arange(states) & 1).astype(np.float64)


def worst_of_bounded_differences(
    law: FloatArray, rng: np.random.Generator, starts: int = 3, arguments: FloatArray = ARGUMENTS[3:9]
) -> float:
    """Return the same for statistics that one record changes by 1/n at most.

    Parameters
    ----------
    law : ndarray
        Table of joint probabilities, one axis for each record.
    rng : numpy.random.Generator
        For the statistics that the ascent begins with.
    starts : int
        How many ascents for each argument.
    arguments : ndarray
        Values of u / n.

    Notes
    -----
    The exponent is convex in the statistic, so it is at least its tangent: each step takes the statistic at which the
    tangent is largest, a linear program over all pairs of outcomes that differ in one record.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    n, weights = law.ndim, law.ravel()
    numbers = np.arange(law.size).reshape(law.shape)
    pairs = []
    for axis, states in enumerate(law.shape):
        lines = np.moveaxis(numbers, axis, 0)
        for a in range(states):
            pairs += [np.stack([lines[a].ravel(), lines[b].ravel()], axis=1) for b in range(states) if b != a]
    ends = np.concatenate(pairs)
    rows = np.arange(len(ends))
    matrix: Any = sparse.csr_array(
        (np.r_[np.ones(len(ends)), -np.ones(len(ends))], (np.r_[rows, rows], np.r_[ends[:, 0], ends[:, 1]])),
        shape=(len(ends), law.size),
    )
    best = 0.0
    for argument in arguments:
        for _ in range(starts):
            reached = -np.inf
            statistic: FloatArray = rng.standard_normal(law.size)
            for _ in range(20):
                tilted = weights * np.exp(argument * (statistic - statistic.max()))
                slope = argument * (tilted / tilted.sum() - weights)
                found = linprog(-slope, A_ub=matrix, b_ub=np.ones(len(ends)), bounds=(0, n), method="highs")
                statistic = np.asarray(found.x, dtype=np.float64)
                mean = float(weights @ statistic)
                value = float(np.log(np.exp(argument * (statistic - mean)) @ weights))
                if value <= reached + 1e-12:
                    break
                reached = value
            best = max(best, 8 * reached / (n * float(argument) ** 2))
    return best
