"""Variance inflation of series and chains, by blocks, couplings and spectra.

Every number here is an upper bound on a Lambda with ln E exp(u (q(X) - E q(X))) <= u^2 Lambda / (8 n) for every u and
means q of per-record values in [0, 1]; proofs and sources in `graphs/PROOFS.md`, section 5.
"""

from __future__ import annotations

import math

import numpy as np

from graphs.leakage.spectral import symmetrised
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import UNIT, up

__all__ = [
    "block_inflation",
    "coupling_inflation",
    "dobrushin_coefficient",
    "dobrushin_inflation",
    "even_block_inflation",
    "forgetting",
    "forgetting_far",
    "operator_norm",
    "spectral_inflation",
    "uneven_block_inflation",
]


def block_inflation(steps: FloatArray, beyond: float, n: int) -> float:
    """Return the variance inflation of n records with equal blocks of the best length, rounded up."""
    sums = np.r_[0.0, np.cumsum(steps[: n - 1])]
    sums[1:] = up(sums[1:], len(sums))
    whole = float(sums[-1]) + (beyond if len(sums) < n else 0.0)
    lengths = {1, n}
    if whole < n:
        lengths |= {max(1, math.floor(whole)), math.ceil(whole) or 1}
    return min(_with_blocks(length, sums, whole, n) for length in sorted(lengths))


def _with_blocks(length: int, sums: FloatArray, whole: float, n: int) -> float:
    """Return the inflation with blocks of this length, the last one possibly shorter."""
    full = (n - 1) // length  # blocks with a successor
    last = n - full * length
    near = min(full, (len(sums) - 1) // length + 1)  # blocks whose future may be shorter than the sums
    after = last + length * np.arange(near)
    moved = np.where(after < len(sums), sums[np.minimum(after, len(sums) - 1)], whole)
    total = float(((length + moved) ** 2).sum()) + float(last) ** 2
    if full > near:
        total += (full - near) * (length + whole) ** 2
    return up(total / n, near + 8)


def even_block_inflation(n: int, m: int) -> float:
    """Return the same for a window of m > 0 places, in blocks of m or m + 1, without arrays."""
    totals = [n**2]
    for length in (m, m + 1):
        full = (n - 1) // length
        last = n - full * length
        before = (length + min(m, last)) ** 2 + (full - 1) * (length + m) ** 2 if full else 0
        totals.append(before + last**2)
    return min(up(min(totals) / n, 1), float(n))


def uneven_block_inflation(last: IntArray) -> float:
    """Return the same for records whose dependence ends at a last record, a different one for each."""
    reach, total, start = last.tolist(), 0, 0
    while start < len(reach):
        end = reach[start]
        total += (reach[end] - start + 1) ** 2
        start = end + 1
    return up(float(total) / len(reach), 2)


#: Steps enumerated when dependence is summed along a chain; a geometric bound covers the rest.
STEPS = 20_000
#: Products below this are replaced by it: smaller floats lose accuracy, and a larger bound is valid.
LEAST = 1e-300


def dobrushin_coefficient(kernel: FloatArray, relative_error: float = 0.0) -> float:
    """Return the largest total variation distance between two rows, rounded up, at most 1.

    >>> round(dobrushin_coefficient(np.array([[0.9, 0.1], [0.2, 0.8]])), 9)
    0.7
    """
    distances = [np.abs(row - kernel[a:]).sum(axis=1).max() for a, row in enumerate(kernel)]
    return min(float(max(distances)) / 2 + relative_error + (len(kernel) + 4) * UNIT, 1.0)


def dobrushin_inflation(coefficient: float, n: int) -> float:
    """Return the inflation of a chain revealed in blocks, at most (1 - theta)^-2 and about 4 theta / (1 - theta)."""
    powers = coefficient ** np.arange(min(n, STEPS), dtype=np.float64)
    tail = up(float(powers[-1]) * coefficient, 8 * STEPS) / (1 - coefficient) if coefficient < 1 else float("inf")
    return block_inflation(up(powers[1:], 16), up(tail, 4), n)


def coupling_inflation(transition: FloatArray, n: int) -> float:
    """Return the same with the Dobrushin coefficient of P^m in place of theta^m."""
    coefficients = forgetting(transition, n)
    last = float(coefficients[-1]) if len(coefficients) else 1.0
    tail = up(len(coefficients) * last / (1 - last), 4) if last < 1 else float("inf")
    return block_inflation(coefficients, tail, n)


def forgetting(transition: FloatArray, n: int) -> FloatArray:
    """Return the Dobrushin coefficients of the powers of a kernel, from the first on, until they are small.

    >>> forgetting(np.array([[0.9, 0.1], [0.2, 0.8]]), 4).round(6)
    array([0.7  , 0.49 , 0.343])
    """
    states = len(transition)
    most = int(np.clip(20_000_000 / states**3, 64, 2048))
    coefficients, kernel = [1.0], np.eye(states)
    for m in range(1, min(n, most)):
        kernel = kernel @ transition
        # twice the first-order error of a product of m non-negative matrices (PROOFS.md, rounding)
        coefficients.append(min(dobrushin_coefficient(kernel, 2 * m * (states + 2) * UNIT), coefficients[-1]))
        if coefficients[-1] < 1e-9:  # later terms no longer change the sums
            break
    return np.array(coefficients[1:])


def forgetting_far(transition: FloatArray, n: int, least: float) -> FloatArray:
    """Return the same until a coefficient falls to `least`, for at most `STEPS` steps.

    The coefficient over k + l steps is at most the product of those over k and over l steps.
    """
    known = np.maximum(forgetting(transition, n), LEAST)
    found, pieces = known, [known]
    while (
        len(known) and found[-1] > max(least, LEAST) and known[-1] < 1 and len(pieces) * len(known) < min(n - 1, STEPS)
    ):
        found = np.maximum(up(known * pieces[-1][-1], 1), LEAST)
        pieces.append(found)
    return np.concatenate(pieces)


def spectral_inflation(transition: FloatArray, law: FloatArray, law_error: float) -> float:
    """Return (1 + lambda) / (1 - lambda), lambda the norm of the kernel on mean-zero functions of L2(law).

    lambda is the second singular value of D^{1/2} P D^{-1/2}, D the diagonal matrix of the law: for a reversible
    chain the largest modulus of an eigenvalue other than 1, in general the square root of the second eigenvalue of
    the multiplicative reversibilisation.
    """
    root, scaled = np.sqrt(law), symmetrised(transition, law)
    error = (law_error + (len(law) + 8) * UNIT) * (float(np.linalg.norm(scaled)) + 1)
    norm = operator_norm(scaled - np.outer(root, root)) + 2 * error
    if norm >= 1:
        return float("inf")
    return up((1 + norm) / (1 - norm), 4)


def operator_norm(matrix: FloatArray) -> float:
    """Return an upper bound on the largest singular value of a matrix.

    Computed singular values need not be accurate. With U, V near orthogonal and R the residual of U S V, norm(A) <=
    norm(S) norm(U) norm(V) + norm(R), and norm(U)^2 <= 1 + norm(U^T U - I). The residuals are enlarged by their own
    rounding errors.
    """
    left, values, right = np.linalg.svd(matrix)
    unit = np.eye(len(matrix))
    size = len(matrix) ** 2 * (len(matrix) + 3) * UNIT
    stretch = [float(np.linalg.norm(q.T @ q - unit)) + 2 * size for q in (left, right)]
    residual = float(np.linalg.norm(matrix - (left * values) @ right)) + 4 * size * float(values[0])
    return up(float(values[0]) * (1 + stretch[0]) * (1 + stretch[1]) + residual, 8)
