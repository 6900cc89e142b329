"""The parameters at which a bound is smallest: every parameter is valid, so a miss costs sharpness only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_parameters"]

Floats = NDArray[np.float64]


def best_parameters(
    cost: Callable[..., Floats], boxes: Sequence[tuple[float, float]], *, points: int = 13, rounds: int = 8
) -> tuple[tuple[float, ...], float]:
    """Minimise a function of a few parameters by grids that close in on the best point.

    Parameters
    ----------
    cost : callable
        Takes one array for each parameter, all of one shape, and returns the costs; ``inf`` where there is none.
    boxes : sequence of (low, high)
        Where to look, for each parameter.
    points : int
        Points of a grid along each parameter, at least 4.
    rounds : int
        Each grid reaches one step of the former to both sides of the best point, within the box.

    Returns
    -------
    parameters : tuple of float
        The best point seen.
    value : float
        Its cost; ``inf`` when no point has one.

    Examples
    --------
    >>> (x, y), value = best_parameters(lambda x, y: (x - 1) ** 2 + (y - 2) ** 2 + x * y, [(0, 3), (0, 3)])
    >>> round(x, 4), round(y, 4), round(value, 6)
    (0.0, 2.0, 1.0)
    """
    limits = list(boxes)
    best: tuple[float, ...] = tuple(low for low, _ in limits)
    value = float("inf")
    current = list(boxes)
    for _ in range(rounds):
        axes = [np.linspace(low, high, points) for low, high in current]
        mesh = np.meshgrid(*axes, indexing="ij")
        with np.errstate(all="ignore"):
            costs = np.where(np.isnan(found := cost(*mesh)), np.inf, found)
        where = int(np.argmin(costs))
        if costs.flat[where] < value:
            value = float(costs.flat[where])
            best = tuple(float(axis.flat[where]) for axis in mesh)
        elif value == float("inf"):
            break
        steps = [float(axis[1] - axis[0]) for axis in axes]
        current = [
            (max(low, centre - step), min(high, centre + step))
            for centre, step, (low, high) in zip(best, steps, limits, strict=True)
        ]
    return best, value
