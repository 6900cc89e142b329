"""Variance inflation of means from influences that hold under every field.

A *field* multiplies a law by a function of each single record and normalises. Let J_ij bound, under every field, the
total variation distance between the laws of record j given two values of record i. Then (1/n) sum of J_ij is a variance
inflation for means, and n / p an effective sample size, p the spectral radius of J. Both hold under evidence. Proofs:
`graphs/PROOFS.md`, section on influences.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import FUNCTION_ULPS, UNIT, up

if TYPE_CHECKING:
    from scipy import sparse

__all__ = [
    "burn_in",
    "chain_influences",
    "dominating",
    "dominating_parts",
    "interdependence",
    "interdependence_squares",
    "passed_on",
    "spectral_radius",
]

#: Most iterations of the linear solver; a solution that has not converged is still certified or rejected.
ITERATIONS = 500

#: Steps of the power method that detects a spectral radius of at least 1 before the solver starts.
STEPS = 50

#: Weight of latent nodes on the right-hand side: positive, to certify the spectral radius there too.
FAINT = 1e-7


def interdependence(edges: IntArray, diameters: FloatArray, n_nodes: int) -> sparse.csr_array:
    """Return the matrix C of a pairwise network."""
    from scipy import sparse

    rows, columns = np.concatenate([edges, edges[:, ::-1]]).T
    both = np.concatenate([diameters, diameters])
    table = sparse.coo_array((both, (rows, columns)), shape=(n_nodes, n_nodes)).tocsr()
    most = int(np.bincount(rows, minlength=1).max(initial=1))
    table.data = np.minimum(up(np.tanh(up(table.data, most) / 4), FUNCTION_ULPS + 2), 1.0)
    return table


def dominating(matrix: sparse.csr_array, weights: FloatArray) -> FloatArray | None:
    """Return a vector v with v >= C^T v + weights, and so an upper bound on (I - C^T)^-1 weights.

    v > 0 and C^T v <= v - weights < v prove that the spectral radius is below 1 [Collatz-Wielandt]. So (I - C^T)^-1 is
    the sum of all powers of C^T, and iterating v >= C^T v + weights gives v >= the sum of (C^T)^k weights. An
    approximate solution by conjugate gradients (or BiCGStab) is enlarged until the inequality holds with the rounding
    of both sides.
    """
    found = dominating_parts(matrix, weights, np.zeros(len(weights), dtype=np.int64))
    return found if np.isfinite(found).all() else None


def dominating_parts(matrix: sparse.csr_array, weights: FloatArray, part: IntArray) -> FloatArray:
    """Return `dominating` for each independent part, infinite in parts where no such vector was found.

    >>> pairs = interdependence(np.array([[0, 1], [2, 3]]), np.array([4 * np.arctanh(0.5), np.inf]), 4)
    >>> dominating_parts(pairs, np.ones(4), np.array([0, 0, 1, 1])).round(6)
    array([ 2.,  2., inf, inf])
    """
    from scipy.sparse.linalg import LinearOperator, bicgstab, cg

    found = np.full(len(weights), np.inf)
    transposed = matrix.T.tocsr()
    symmetric = abs(matrix - transposed).sum() == 0
    kept = np.flatnonzero(~_growing(transposed, part)[part]) if symmetric else np.arange(len(weights))
    if not len(kept):
        return found
    if len(kept) < len(weights):
        transposed = transposed[kept][:, kept].tocsr()
        weights, part = weights[kept], part[kept]
    size = len(weights)
    operator = LinearOperator((size, size), matvec=lambda x: x - transposed @ x, dtype=np.float64)
    solve: Callable[..., Any] = cg if symmetric else bicgstab
    with np.errstate(all="ignore"):
        guess, _ = solve(operator, weights, x0=weights.copy(), rtol=1e-14, atol=0.0, maxiter=ITERATIONS)
        entries = np.diff(transposed.indptr)
        # the rest of v - C^T v, with the rounding of both sides charged; negative where the guess proves nothing
        passed = up(transposed @ guess, float(entries.max(initial=0) + 2))
        left = guess - passed - 2 * UNIT * guess
        shares = np.where(np.isfinite(guess) & (guess > 0), left / weights, -1.0)
        shares[np.isnan(shares)] = -1.0
        share = np.full(int(part.max()) + 1, np.inf)
        np.minimum.at(share, part, shares)
        # v - C^T v >= share * weights, so v / share is a solution of the inequality
        share *= 1 - 8 * UNIT
        factor = np.maximum(1.0, (1 / share) * (1 + 8 * UNIT))[part]
        found[kept] = np.where(share[part] > 0, guess * factor, np.inf)
    return found


def _growing(matrix: sparse.csr_array, part: IntArray) -> npt.NDArray[np.bool_]:
    """Return the parts in which a few steps of the power method show a spectral radius of 1 or more."""
    count = int(part.max()) + 1
    vector = np.ones(matrix.shape[0])
    growth = np.zeros(count)
    for _ in range(STEPS):
        following = matrix @ vector
        lengths = np.sqrt(np.bincount(part, weights=following**2, minlength=count))
        before = np.sqrt(np.bincount(part, weights=vector**2, minlength=count))
        growth = np.divide(lengths, before, out=np.zeros(count), where=before > 0)
        vector = np.divide(following, lengths[part], out=np.zeros(len(vector)), where=lengths[part] > 0)
    return growth >= 1


def interdependence_squares(matrix: sparse.csr_array, weights: FloatArray, part: IntArray) -> FloatArray:
    """Return, for each part, the smaller of the sums of w_i^2 and of 2 c_i w_i, w = (I - C^T)^-1 c."""
    bound = dominating_parts(matrix, np.maximum(weights, FAINT * weights.max()), part)
    used = np.where(weights > 0, bound, 0.0)
    first, second = (np.bincount(part, weights=terms).astype(np.float64) for terms in (used**2, 2 * weights * used))
    return up(np.minimum(first, second), len(weights) + 4)


def burn_in(matrix: sparse.csr_array, distance: float) -> int | None:
    """Return a number of sweeps after which a Gibbs sampler is close to its law.

    Couple a sweep with one from a stationary start, each update greedily; let e_i be the probability that the two
    differ at i. Updating i makes e_i at most (C e)_i. If e <= a v with C v <= theta v, then e <= a v stays true during
    a sweep and e <= theta a v holds after it. So k sweeps from e <= 1 leave sum e_i <= theta^k sum(v) / min(v).
    """
    bound = dominating(matrix.T.tocsr(), np.ones(matrix.shape[0]))
    if bound is None:
        return None
    # C v <= v - 1 <= (1 - 1/max v) v
    contraction = 1 - float((1 / bound).min()) * (1 - 4 * UNIT)
    if contraction <= 0 or matrix.nnz == 0:
        return 1
    spread = float(bound.sum()) / float(bound.min())
    return max(int(np.ceil(np.log(spread / distance) / -np.log(contraction))), 1)


#: Steps of the power method, from all ones and from a vector that is close.
STEPS, FEW = 32, 6

#: Most records for which the spectral radius is searched; with more the largest row sum is about as good.
MOST = 2_000


def chain_influences(contractions: FloatArray, weights: FloatArray) -> FloatArray:
    """Return sums over j of J_ij w_j along a chain, J_ij the product of the contractions between i and j."""
    after = passed_on(contractions[::-1], weights[::-1])[::-1]
    before = passed_on(contractions, weights)
    found: FloatArray = up(after + np.r_[0.0, contractions * before[:-1]], 4)
    return found


def passed_on(contractions: FloatArray, weights: FloatArray) -> FloatArray:
    """Return S with S_0 = w_0 and S_i = w_i + t_{i-1} S_{i-1}, rounded up.

    >>> passed_on(np.array([0.5, 0.5]), np.ones(3)).round(9)
    array([1.  , 1.5 , 1.75])
    """
    grow = 1 + 4 * UNIT  # a product and a sum in each step
    steps = zip(contractions.tolist(), weights[1:].tolist(), strict=True)
    found = accumulate(steps, lambda sums, step: (sums * step[0] + step[1]) * grow, initial=float(weights[0]))
    return np.fromiter(found, dtype=np.float64, count=len(weights))


def spectral_radius(
    influences: Callable[[FloatArray], FloatArray | None], n: int, start: FloatArray | None = None
) -> float | None:
    """Return an upper bound on the spectral radius of a matrix J with positive diagonal and no negative entries.

    The spectral radius is at most the largest (J v)_i / v_i, for every positive v [Collatz, Wielandt]. The power method
    improves v.
    """
    vector, found = np.ones(n) if start is None else start, float("inf")
    for _ in range((STEPS if start is None else FEW) if n <= MOST else 1):
        moved = influences(vector)
        if moved is None:
            return None
        found = min(found, up(float((moved / vector).max()), 2))
        vector = moved / float(moved.max())
    return found
