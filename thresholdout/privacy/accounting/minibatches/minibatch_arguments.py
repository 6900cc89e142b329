"""Arguments of minibatch bounds (orders, noise, sampling rates, batches), and batches drawn as these assume."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from thresholdout.data.arguments import check_word
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import count, number, open_unit, positive

__all__ = ["Floats", "Orders", "batch", "like", "order", "orders", "rate", "sample_minibatch", "sigma_of", "terms"]

Floats = NDArray[np.float64]
Orders = float | Iterable[float] | NDArray[np.floating[Any]]


def orders(alpha: Any, name: str = "alpha") -> Floats:
    """Check orders, and return them as an array of one dimension; each must be a finite number above 1."""
    if isinstance(alpha, (bool, str)):
        raise InputTypeError(name, f"a {type(alpha).__name__}", "a number above 1, or an array of such")
    try:
        found = np.asarray(alpha if hasattr(alpha, "__array__") or np.isscalar(alpha) else list(alpha), dtype=float)
    except (TypeError, ValueError):
        raise InputTypeError(name, f"a {type(alpha).__name__}", "a number above 1, or an array of such") from None
    if found.ndim > 1 or found.size == 0:
        raise InputError(name, f"an array of shape {found.shape}", "a number above 1, or an array with one axis")
    found = np.atleast_1d(found)
    bad = ~(np.isfinite(found) & (found > 1))
    if bad.any():
        raise InputError(name, repr(float(found[bad][0])), "finite orders above 1")
    return found


def order(alpha: object) -> float:
    """Check one order above 1."""
    found = number(alpha, "alpha")
    if found <= 1:
        raise InputError("alpha", repr(found), "an order above 1")
    return found


def like(alpha: Any, values: Floats) -> Any:
    """Return the values as a float if `alpha` was one number, else as the array."""
    return float(values[0]) if np.ndim(alpha) == 0 else values


def sigma_of(sigma: object) -> float:
    """Check the noise multiplier: standard deviation of the noise on the sum of gradients, over the clipping norm."""
    found = positive(sigma, "sigma")
    if not 0.01 <= found <= 1e8:
        raise InputError("sigma", repr(found), "a noise multiplier in [0.01, 1e8]", "Less noise protects nothing.")
    return found


def batch(batch_size: object, dataset_size: object) -> tuple[int, int]:
    """Check batch and data set sizes, 1 <= batch_size < dataset_size."""
    small, large = count(batch_size, "batch_size"), count(dataset_size, "dataset_size", least=2)
    if small >= large:
        raise InputError("batch_size", str(small), f"less than dataset_size = {large}")
    return small, large


def rate(q: object, batch_size: object, dataset_size: object) -> float:
    """Return the sampling rate, from itself or from the sizes (then rounded up)."""
    sizes = batch_size is not None or dataset_size is not None
    if (q is not None) == sizes:
        both = repr(q), "None beside batch_size and dataset_size"
        raise InputError("q", *(both if sizes else ("nothing", "q, or batch_size and dataset_size")))
    if q is not None:
        return open_unit(q, "q")
    small, large = batch(batch_size, dataset_size)
    return (
        small / large
        if (small / large).as_integer_ratio()[0] * large == small * ((small / large).as_integer_ratio()[1])
        else math.nextafter(small / large, 1.0)
    )


def terms(m: object, *, least: int = 3) -> int:
    """Check the number of Taylor terms; more than 60 never help."""
    found = count(m, "m", least=least)
    if found > 60:
        raise InputError("m", str(found), "at most 60", "More terms make the remainder larger.")
    return found


def sample_minibatch(
    rng: np.random.Generator, N: int, B: int, scheme: Literal["wor", "wr", "poisson"]
) -> NDArray[np.int64]:
    """Draw the indices of one batch of B of N records (B / N is the rate of "poisson").

    Notes
    -----
    **Draw afresh at every step**, as the accountants of this package assume. A loader that shuffles once per epoch and
    cuts the order into batches (epoch-partition shuffling) is *not* covered by any of them, since its batches depend on
    each other; no such sampler is offered here. A Poisson batch may be empty: the divisor stays B, and the step adds
    its noise all the same. Draw the noise from another generator, so that neither stream reveals the other. Numpy's
    generators are not cryptographic, and noise drawn in floating point is not exactly Gaussian.
    """
    if not isinstance(rng, np.random.Generator):
        raise InputTypeError("rng", f"a {type(rng).__name__}", "a numpy.random.Generator, for sampling only")
    size, records = batch(B, N)
    check_word("scheme", scheme, ("wor", "wr", "poisson"))
    if scheme == "wor":
        return rng.choice(records, size, replace=False)
    if scheme == "wr":
        return rng.integers(0, records, size)
    return np.flatnonzero(rng.random(records) < size / records)
