"""The mean of clipped vectors, with a sensitivity that is proved for floating-point numbers, and noise on it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import ULP
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import positive

__all__ = ["bounded_mean", "check_bound", "noisy_mean", "rounding_slack"]

Floats = NDArray[np.float64]

LEAST, MOST = 1e-100, 1e100  # within these bounds nothing underflows beside a norm (FEDERATED.md, F1)
CLOSE = 1.0 + 1e-9  # a norm that is meant to be the bound may be above it by rounding


def check_bound(value: object, name: str = "L") -> float:
    """Return a bound on norms, if it is between `LEAST` and `MOST`."""
    found = positive(value, name)
    if not LEAST <= found <= MOST:
        raise InputError(name, repr(found), f"a number in [{LEAST:g}, {MOST:g}]")
    return found


def rounding_slack(rows: int, columns: int) -> float:
    """Return the share of the bound that is set aside for the rounding of norms and means (FEDERATED.md, F1, F2)."""
    return (rows + columns + 16) * ULP


def bounded_mean(vectors: Floats, bound: float, *, clip: bool = True, name: str = "gradients") -> Floats:
    """Return the mean of vectors, each clipped to a norm.

    Two inputs that differ in one row have means at an exact distance of at most ``2 bound/rows``, rounding included.
    Rows are scaled to a norm below the bound by `rounding_slack`. Their entries are then cut to multiples of a power of
    two, so that the sum is exact in any order (FEDERATED.md, F1 and F2).
    """
    rows, columns = vectors.shape
    # A row below 2^-400 is below any bound as it is, so it needs no larger factor (F1).
    exponents = np.frexp(np.abs(vectors).max(axis=1, initial=0.0))[1].clip(-400, 1024)
    down = np.ldexp(1.0, -exponents)
    scaled = vectors * down[:, None]  # the largest entry of each row is in [1/2, 1), or the row is far below any bound
    norms = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    if not clip and (norms > bound * CLOSE * down).any():
        raise InputError(name, "a longer one", f"vectors of norm at most {bound:g}", "clip=True scales them down.")
    inner = bound * (1.0 - rounding_slack(rows, columns))
    unit = math.frexp(rows * bound)[1] + 1 - 53  # sums of so many multiples of 2^unit have 53 bits at most (F2)
    large = norms > inner * down
    factors = np.ldexp(1.0, np.minimum(exponents, 400) - unit)  # rows above 2^400 are large: replaced in the next line
    factors[large] = math.ldexp(inner, -unit) / norms[large]
    scaled *= factors[:, None]
    np.trunc(scaled, out=scaled)
    return np.asarray(np.ldexp(scaled.sum(axis=0), unit) / rows)


def noisy_mean(
    vectors: Floats,
    bound: float,
    noise_std: float,
    rng: np.random.Generator,
    *,
    clip: bool = True,
    non_finite: str = "raise",
    name: str = "gradients",
) -> Floats:
    """Return `bounded_mean` with Gaussian noise."""
    finite = np.asarray(np.isfinite(vectors).all(axis=1))
    if not finite.all():
        if non_finite == "raise":
            raise InputError(name, "a value that is not finite", "finite numbers")
        vectors = np.where(finite[:, None], vectors, 0.0)
    mean = bounded_mean(vectors, bound, clip=clip, name=name)
    return mean + noise_std * rng.standard_normal(mean.size)
