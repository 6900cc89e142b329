"""
Ratings of items by users: crossed effects
==========================================

A recommender is judged on users and items that it has not seen.

Run with ``python examples/ratings.py``.

The data are generated: few users rate much, few items are rated often, and the error of a forecast depends a little on
the user and on the item. Neither users nor items are groups that cover both. Their shares of the variance are limits
from other users and items; a guard answers queries about these.
"""

from __future__ import annotations

import textwrap

import numpy as np
import numpy.typing as npt

from graphs import Crossed, Groups, Independent
from graphs.estimation import fit_components
from thresholdout import Thresholdout

IntArray = npt.NDArray[np.int64]


def main() -> None:
    """Print models, half-widths under each, and answers."""
    rng = np.random.default_rng(0)
    users, items, errors = rate(rng)
    known_users, known_items, known = rate(rng)  # other users, other items

    fitted = fit_components(known, {"user": known_users, "item": known_items}, {"user": users, "item": items})
    print(f"{len(users)} ratings, at most {np.bincount(users).max()} by a user, {np.bincount(items).max()} of an item")
    print(f"{'':38}inflation  half-width  ratings for ±0.05")
    for name, model in (
        ("independent (wrong)", Independent(len(users))),
        ("users as groups (wrong: shared items)", Groups(users)),
        ("Crossed, whatever the effects do", Crossed(users, items)),
        ("effects at upper limits", fitted),
    ):
        print(f"{name:38}{model.variance_inflation():9.3g}{model.half_width():12.3f}{model.records_for(0.05):19,}")
    if fitted.fitted_limits:
        print(textwrap.fill(f"The last is {fitted.fitted_limits.words}", 110))

    print("\nHow often is a forecast within one standard deviation, and how often too low?")
    guard = Thresholdout(np.column_stack([users, items]), dependence=fitted, queries=2)
    print(guard.ask(np.mean(np.abs(known) < 1), np.abs(errors) < 1, name="within 1", binary=True))
    print(guard.ask(np.mean(known > 0), errors > 0, name="too low", binary=True))


def rate(rng: np.random.Generator, ratings: int = 12_000) -> tuple[IntArray, IntArray, npt.NDArray[np.float64]]:
    """Draw users, items, and errors of forecasts: 4 % of their variance are users', 2 % items' effects."""
    users, items = 1.0 / np.arange(1, 1001) ** 0.6, 1.0 / np.arange(1, 1501) ** 0.4
    drawn = [rng.choice(len(rates), ratings, p=rates / rates.sum()) for rates in (users, items)]
    user, item = np.unique(np.column_stack(drawn), axis=0).T  # nobody rates an item twice
    effects = 0.2 * rng.standard_normal(len(users))[user] + 0.02**0.5 * rng.standard_normal(len(items))[item]
    return user, item, effects + 0.94**0.5 * rng.standard_normal(len(user))


if __name__ == "__main__":
    main()
