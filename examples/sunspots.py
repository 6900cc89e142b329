"""
Sunspots: a series
==================

Yearly sunspot numbers, 1700 to 2008: the errors of forecasts for one year ahead.

Run with ``python examples/sunspots.py``; ``--picture FILE`` draws.
The data come with statsmodels (pip install statsmodels).

Years before 1900 train, later ones are held out, so all guarantees are given the earlier years. The numbers themselves
remember for decades. The errors of a good forecast do not: answers about them have much narrower intervals.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from statsmodels.datasets import sunspots

from graphs import GaussianField
from graphs.estimation import autoregression_limit, diagnose
from thresholdout import Thresholdout, WideAnswersWarning

LAGS = 9


def main(arguments: list[str] | None = None) -> None:
    """Print diagnosis, models, half-widths, and answers; draw the tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", help="where to save the picture")
    options = parser.parse_args(arguments)

    data = sunspots.load_pandas().data
    years, spots = data["YEAR"].to_numpy(), np.sqrt(data["SUNACTIVITY"].to_numpy())
    n, train = len(spots), int((years < 1900).sum())
    past = np.column_stack([np.ones(n - LAGS), *(spots[LAGS - k : n - k] for k in range(1, LAGS + 1))])
    earlier = train - LAGS
    coefficients = np.linalg.lstsq(past[:earlier], spots[LAGS:train], rcond=None)[0]
    errors = spots[LAGS:] - past @ coefficients

    print(f"Errors of forecasts from {LAGS} years, 1709 to 1899 (square roots of sunspot numbers):")
    found = diagnose(errors[:earlier], order=True)
    print(found)

    levels = GaussianField.ar(coefficients[1:], n).conditional_on_values()
    limit = autoregression_limit(errors[:earlier], None, 0.01)
    remembering = GaussianField.ar(limit, n - LAGS).conditional_on_values()
    print(f"\nQueries about the {n - train} years from 1900 on, given all years before:")
    kinds = {
        "numbers, given what earlier ones tell of them": GaussianField.ar(coefficients[1:], n).given(range(train)),
        "numbers, given the Gaussian values of earlier ones": levels.given(range(train)),
        f"errors, with a coefficient of {limit:.2f}": remembering.given(range(earlier)),
    }
    for name, model in kinds.items():
        takes = model.records_for(0.05)
        years_more = f"±0.05 takes {takes:,} years" if np.isfinite(takes) else "more years need not help"
        print(f"  {name}: inflation {model.variance_inflation():.3g}, ±{model.half_width():.2f}; {years_more}")
    print("  (the coefficients are estimates from the years before 1900: no certificate is for them)")

    print("\nHow often is a forecast within 1.5 of the truth, and how often too low?")
    warnings.simplefilter("ignore", WideAnswersWarning)  # a century is short, and its width is printed above
    guard = Thresholdout(errors[earlier:].reshape(-1, 1), dependence=kinds[name], queries=2)
    seen, held = errors[:earlier], errors[earlier:]
    print(guard.ask(np.mean(np.abs(seen) < 1.5), np.abs(held) < 1.5, name="within 1.5", binary=True))
    print(guard.ask(np.mean(seen > 0), held > 0, name="too low", binary=True))

    if options.picture:
        found.plot()[0].figure.savefig(options.picture)


if __name__ == "__main__":
    main()
