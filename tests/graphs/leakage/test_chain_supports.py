"""How far the laws of a chain's records are from the stationary one, when that is known to some digits only."""

from __future__ import annotations

import math

import numpy as np

from graphs.leakage.influence import distances_from
from tests.cases import for_each

MATRIX = np.array([[0.9, 0.1], [0.2, 0.8]])
STATIONARY = np.array([2 / 3, 1 / 3])


@for_each("error", [1e-12, 1e-6, 1e-3])
@for_each("start", [0.5, 0.9])
def test_distances_hold_for_every_law_within_the_error(error: float, start: float) -> None:
    """Of the first record, max - min of ``ln P / law`` in closed form; the law is wrong in the worse direction."""
    initial = np.array([start, 1.0 - start])
    truth = abs(math.log(start / STATIONARY[0]) - math.log((1.0 - start) / STATIONARY[1]))
    for sign in (-1.0, 1.0):
        law = STATIONARY * (1.0 + sign * error * np.array([1.0, -1.0]))
        found = float(distances_from(law, error, MATRIX, initial, 1)[0])
        assert truth <= found <= truth + 5.0 * error + 1e-13
