"""The loop of private gradient descent, and nothing else: every value it yields is covered by the accounting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresholdout.privacy.learning.dpsgd.batches import Batches
from thresholdout.privacy.learning.dpsgd.clipping import ClipNorm, ClippedSums, joint_norm
from thresholdout.privacy.learning.dpsgd.gradient_networks import Network

__all__ = ["Descent", "descend"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Descent:
    """What is done at each step; public numbers only.

    Parameters
    ----------
    batches : Batches
        How records are drawn.
    clip_norm : float or tuple of float
        C, the bound on the norm of each record's gradient in all parameters jointly; or one for each layer, of which C
        is the root of the sum of squares.
    noise : ndarray, shape (steps,)
        Each step's standard deviation of the noise on the *sum* of clipped gradients, over C.
    rates : ndarray, shape (steps,)
        Each step's learning rate.
    l2 : float
        Of the penalty ``l2 / 2 |weights|^2``, which knows no record and needs no noise; intercepts have none.
    """

    batches: Batches
    clip_norm: ClipNorm
    noise: Floats
    rates: Floats
    l2: float = 0.0


def descend(
    network: Network,
    parameters: Floats,
    X: Floats,
    targets: NDArray[Any],
    descent: Descent,
    *,
    sampling: np.random.Generator,
    noise: np.random.Generator,
    done: int = 0,
) -> Iterator[int]:
    """Take steps of private gradient descent, in place.

    Parameters
    ----------
    network : Network
    parameters : ndarray, shape (n_parameters,)
        Where to start from, and where every iterate is found.
    X : ndarray, shape (n, inputs)
    targets : ndarray, shape (n,)
        Numbers of classes, or numbers to predict.
    descent : Descent
    sampling, noise : numpy.random.Generator
        Two different ones: batches do not depend on how much noise is drawn.
    done : int
        How many of the steps were taken before. Their random numbers are drawn and thrown away, so that the others have
        those that they would have had.

    Yields
    ------
    int
        The number of the step that was taken, from `done`.

    Notes
    -----
    One step is ``parameters -= rate / B * (sum of clipped gradients + noise * C * Z) + rate * l2 * weights`` with Z
    standard normal. B is the divisor also when a Poisson batch has another size, and an empty one gets its noise all
    the same. The parameters are touched only after the noise was added: an interrupt leaves no sum without noise.

    Examples
    --------
    >>> X, y = np.array([[1.0], [2.0]]), np.array([0.5, 1.0])
    >>> descent = Descent(Batches("wor", 2, 2), 10.0, np.zeros(40), np.full(40, 0.3))
    >>> parameters, rng = np.zeros(1), np.random.default_rng(0)
    >>> steps = list(descend(Network((1, 1), intercept=False), parameters, X, y, descent, sampling=rng, noise=rng))
    >>> steps[-1], parameters.round(6)
    (39, array([0.5]))
    """
    batches = descent.batches
    sums = ClippedSums(network, X, targets, descent.clip_norm, _rows(batches))
    drawn = np.empty_like(parameters)
    weights = network.penalised() if descent.l2 else None
    bound = joint_norm(descent.clip_norm)
    for step, (multiplier, rate) in enumerate(zip(descent.noise.tolist(), descent.rates.tolist(), strict=True)):
        records = batches.draw(sampling, len(X))
        if multiplier > 0.0 and step < done:
            noise.standard_normal(out=drawn)
        if step < done:
            continue
        total = sums(parameters, records)
        if multiplier > 0.0:
            noise.standard_normal(out=drawn)
            drawn *= multiplier * bound
            total += drawn
        total *= rate / batches.batch_size
        with np.errstate(over="ignore", invalid="ignore"):
            if weights is not None:
                total += (rate * descent.l2) * weights * parameters
            parameters -= total
        yield step


def _rows(batches: Batches) -> int:
    """Return how many rows to make room for; most Poisson batches have at most six standard deviations more."""
    size = batches.batch_size
    return size if batches.sampling != "poisson" else int(size + 6 * size**0.5) + 1
