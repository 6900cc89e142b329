"""The exact leakage of a small model by linear programming, the oracle for every bound in this package."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.arguments import SUM_TOLERANCE, FloatArray, check_epsilon, real_array
from graphs.structure.labelled_values import places_of

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["ModelWithLaw", "exact_leakage"]

#: Largest number of joint states, and of unknowns of one linear program.
MOST_STATES = 100_000
MOST_UNKNOWNS = 20_000


@runtime_checkable
class ModelWithLaw(Protocol):
    """Protocol of a model with a stated law."""

    def joint(self) -> FloatArray:
        """Return the table of joint probabilities, one axis per record."""

    def _record_labels(self) -> tuple[Hashable, ...] | None: ...

    def _budgets(self, epsilon: Any) -> float | FloatArray: ...


def exact_leakage(model: ModelWithLaw | FloatArray, epsilon: Any, record: Any, known: Iterable[Any] = ()) -> float:
    """Compute the exact leakage about one record: the largest over all mechanisms with a given privacy budget.

    The leakage is the privacy loss about a record, which also arises through the records that depend on it. Use this
    function on small models to see how far the bounds of `DependenceModel.leakage` are from the exact value. It solves
    linear programs over all joint states.

    Parameters
    ----------
    model : DependenceModel or ndarray of shape (k_1, ..., k_n)
        Small model whose distribution is fully stated, or the table of joint probabilities of n records.
    epsilon : float or array of shape (n,)
        Privacy budget of each record, in nats: one number for all records, or one for each.
    record : int, or name of a record
        Record about which the mechanism leaks, by name if the model names its records (`model.records`) and by number
        otherwise.
    known : iterable of records, default ()
        Other records that the adversary knows.

    Returns
    -------
    float
        Maximum over states and over mechanisms of ln P[y | x_i, x_S] / P[y | x_i', x_S] in nats, accurate to about
        1e-8.

    Raises
    ------
    ArgumentError
        If an argument cannot be used, or the model has no stated distribution or more than 100,000 joint states.
    ArithmeticError
        If the solver fails.

    Notes
    -----
    For each x_S and each pair of states of record i, with f(x) the density of one output given the data x, it solves
    max E[f | x_i, x_S] subject to E[f | x_i', x_S] = 1, f >= 0 and f(x) <= exp(eps'_j) f(x~) for all x, x~ that differ
    in record j alone. Every such f belongs to a mechanism: scale it below 1 and add a second output. Known records
    are fixed in f, since a function with these constraints on a part of the data sets extends to all of them.

    Examples
    --------
    Two copies of one coin: group privacy is attained.

    >>> round(exact_leakage(np.array([[0.5, 0.0], [0.0, 0.5]]), 0.1, 0), 6)
    0.2
    """
    table = _joint_table(model)
    n = table.ndim
    if isinstance(model, ModelWithLaw):
        labels, given = model._record_labels(), model._budgets(epsilon)
    else:
        labels, given = None, check_epsilon(epsilon, n)
    budgets = np.broadcast_to(np.asarray(given, dtype=np.float64), (n,))
    asked = record
    (record,) = places_of("record", [record], labels, n)
    fixed = sorted(set(places_of("known", known, labels, n)))
    if record in fixed:
        raise ArgumentError("known", f"record {asked!r} itself", "records other than `record`")
    free = [j for j in range(n) if j not in (record, *fixed)]
    arranged = table.transpose(*fixed, record, *free)
    slices = arranged.reshape(-1, *arranged.shape[len(fixed) :])
    pairs = [
        (part[a] / part[a].sum(), part[b] / part[b].sum(), a, b)
        for part in slices
        for a, b in itertools.permutations(np.flatnonzero(part.reshape(len(part), -1).sum(axis=1) > 0), 2)
    ]
    if not free:
        return float(budgets[record]) if pairs else 0.0
    shape, order = slices.shape[1:], [record, *free]
    constraints = _privacy_constraints(shape, budgets[order])
    return max([0.0, *_solve(pairs, shape, constraints)])


def _joint_table(model: ModelWithLaw | FloatArray) -> FloatArray:
    if isinstance(model, ModelWithLaw):
        return model.joint()
    expected = "a model, or a table of joint probabilities with one axis per record"
    table = real_array("model", model, expected)
    if table.ndim == 0 or table.size == 0 or table.size > MOST_STATES:
        advice = f"The table may have at most {MOST_STATES} entries."
        raise ArgumentError("model", f"a table of shape {table.shape}", expected, advice)
    if not np.isfinite(table).all() or (table < 0).any() or abs(table.sum() - 1) > SUM_TOLERANCE:
        raise ArgumentError(
            "model", f"entries that sum to {table.sum():.10g}", "a table of probabilities that sum to 1"
        )
    return table


def _privacy_constraints(shape: tuple[int, ...], budgets: FloatArray) -> sparse.csr_array:
    """Return the matrix A with A f <= 0 for every function f of the given budget in each coordinate."""
    from scipy import sparse

    numbers = np.arange(math.prod(shape)).reshape(shape)
    low, high, factor = [], [], []
    for axis, budget in enumerate(budgets):
        lines = np.moveaxis(numbers, axis, 0).reshape(shape[axis], -1)
        for u, v in itertools.permutations(range(shape[axis]), 2):
            low.append(lines[u])
            high.append(lines[v])
            factor.append(np.full(lines.shape[1], -math.exp(budget)))
    if not low:
        return sparse.csr_array((0, numbers.size))
    columns = np.concatenate([*low, *high])
    count = len(columns) // 2
    rows = np.tile(np.arange(count), 2)
    entries = np.concatenate([np.ones(count), *factor])
    return sparse.csr_array((entries, (rows, columns)), shape=(count, numbers.size))


def _solve(
    pairs: list[tuple[FloatArray, FloatArray, Any, Any]], shape: tuple[int, ...], constraints: sparse.csr_array
) -> list[float]:
    """Return the logarithm of the optimum for each pair of laws; many small programs are solved as one."""
    from scipy import sparse
    from scipy.optimize import linprog

    size = math.prod(shape)
    found: list[float] = []
    at_once = max(MOST_UNKNOWNS // size, 1)
    for start in range(0, len(pairs), at_once):
        block = pairs[start : start + at_once]
        gain, cost = np.zeros((len(block), *shape)), np.zeros((len(block), *shape))
        for k, (first, second, a, b) in enumerate(block):
            gain[k, a], cost[k, b] = first, second
        flat = cost.reshape(len(block), size)
        columns = np.arange(flat.size).reshape(flat.shape)
        rows = np.repeat(np.arange(len(block)), size)
        equal: Any = sparse.csr_array((flat.ravel(), (rows, columns.ravel())), shape=(len(block), flat.size))
        equal.eliminate_zeros()
        below: Any = sparse.kron(sparse.eye_array(len(block)), constraints, format="csr")
        result = linprog(
            -gain.ravel(),
            A_ub=below,
            b_ub=np.zeros(len(block) * constraints.shape[0]),
            A_eq=equal,
            b_eq=np.ones(len(block)),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if result.status != 0 or result.x is None:
            raise ArithmeticError(f"The linear program was not solved: {result.message}")
        # the programs of a block are independent, so the joint optimum is the optimum of each
        optimum = (gain.reshape(len(block), size) * result.x.reshape(len(block), size)).sum(axis=1)
        found.extend(float(value) for value in np.log(optimum))
    return found
