"""Generated stand-ins for public regression sets, for comparisons without downloads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresholdout.privacy.accounting.bound_arguments import count, positive

__all__ = ["make_linear_standin", "make_naval_standin", "make_wine_standin"]

Floats = NDArray[np.float64]


def make_naval_standin(n: int = 11934, seed: int = 0) -> tuple[Floats, Floats]:
    """Return a smooth function of 16 inputs without noise, of small size; for Naval.

    Parameters
    ----------
    n, seed : int

    Returns
    -------
    X : ndarray, shape (n, 16)
        Standard normal.
    y : ndarray, shape (n,)
        In (0.95, 1), a logistic function of a linear index and one product.

    Examples
    --------
    >>> X, y = make_naval_standin(3)
    >>> X.shape, bool((y > 0.95).all())
    ((3, 16), True)
    """
    rng = np.random.default_rng(count(seed, "seed", least=0))
    X = rng.standard_normal((count(n, "n"), 16))
    index = X @ (rng.standard_normal(16) / 4) + 0.3 * X[:, 0] * X[:, 1]
    return X, 0.95 + 0.05 / (1 + np.exp(-index))


def make_wine_standin(n: int = 1599, seed: int = 0) -> tuple[Floats, Floats]:
    """Return an ordinal target, a rounded noisy linear index of 11 inputs; for red wine quality.

    Parameters
    ----------
    n, seed : int

    Returns
    -------
    X : ndarray, shape (n, 11)
        Standard normal.
    y : ndarray, shape (n,)
        Whole numbers from 3 to 8.

    Examples
    --------
    >>> X, y = make_wine_standin(1000)
    >>> sorted(set(y.tolist()))
    [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    """
    rng = np.random.default_rng(count(seed, "seed", least=0))
    X = rng.standard_normal((count(n, "n"), 11))
    slopes = rng.standard_normal(11)
    index = 5.6 + 0.5 * X @ (slopes / np.linalg.norm(slopes)) + 0.65 * rng.standard_normal(len(X))
    return X, np.clip(np.round(index), 3, 8)


def make_linear_standin(n: int = 20_000, seed: int = 0, *, d: int = 5, noise: float = 0.5) -> tuple[Floats, Floats]:
    """Return a linear model with noise, of few dimensions, in which private expectation propagation works.

    Parameters
    ----------
    n, seed, d : int
    noise : float
        Standard deviation of the targets about their mean.

    Returns
    -------
    X : ndarray, shape (n, d)
        Standard normal.
    y : ndarray, shape (n,)

    Examples
    --------
    >>> X, y = make_linear_standin(100, d=3)
    >>> X.shape, y.shape
    ((100, 3), (100,))
    """
    rng = np.random.default_rng(count(seed, "seed", least=0))
    X = rng.standard_normal((count(n, "n"), count(d, "d")))
    return X, X @ rng.standard_normal(d) + positive(noise, "noise", zero=True) * rng.standard_normal(len(X))
