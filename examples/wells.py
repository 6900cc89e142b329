"""
Wells in two regions: errors by distance
========================================

Errors of a map are correlated over distances that one region tells and the other is judged by.

Run with ``python examples/wells.py``.

The data are generated: log concentrations at 200 wells of a region where the map was made, and at 500 of another,
larger one. Errors of neighbouring wells agree, the more the nearer they are. How far that reaches is an upper limit
from the first region; a guard answers queries about the second.
"""

from __future__ import annotations

import textwrap
import warnings

import numpy as np
import numpy.typing as npt

from graphs import GaussianField
from graphs.estimation import fit_kernel, range_limit
from thresholdout import Thresholdout, WideAnswersWarning

RANGE = 0.3  # km, which nobody knows


def main() -> None:
    """Print the model, half-widths, and answers."""
    rng = np.random.default_rng(1)
    made, judged = 8.0 * rng.random((200, 2)), [100.0, 0.0] + 16.0 * rng.random((500, 2))
    first, second = field(made, RANGE).sample(rng), field(judged, RANGE).sample(rng)

    model = fit_kernel(first, made, judged)
    at_truth = field(judged, RANGE).variance_inflation()
    print(f"Variance inflation {model.variance_inflation():.3g}, at the true range {at_truth:.3g};")
    print(f"one query about {model.n} wells is answered to ±{model.half_width():.3f},")
    if model.fitted_limits:
        print(textwrap.fill(model.fitted_limits.words, 110))

    print("\nMore wells in the same region, or as dense in a larger one?")
    limit = range_limit(first, made, model.fit_failure)
    for wells, side in ((1000, 16), (2000, 16), (2000, 32)):
        more = field(side * rng.random((wells, 2)), limit)
        print(f"  {wells} wells in {side} x {side} km: ±{more.half_width():.3f}")
    print(f"±0.05 takes {model.records_for(0.05):,} wells as dense as these.")

    print("\nHow often is the map within two standard deviations, and how often too low?")
    warnings.simplefilter("ignore", WideAnswersWarning)  # its width is printed above
    guard = Thresholdout(judged, dependence=model, queries=2)
    print(guard.ask(np.mean(np.abs(first) < 2), np.abs(second) < 2, name="within 2", binary=True))
    print(guard.ask(np.mean(first > 0), second > 0, name="too low", binary=True))


def field(places: npt.NDArray[np.float64], reach: float) -> GaussianField:
    """Return errors at places that correlate as exp(-distance / reach)."""
    return GaussianField.kernel(places, lambda distances: np.exp(-distances / reach))


if __name__ == "__main__":
    main()
