"""Yearly sunspot numbers, 1700 to 2008, as a chain of quarters and as a hidden chain.

Run: python examples/sunspots.py [--picture sunspots.png]
The data come with statsmodels (pip install statsmodels).
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt
from statsmodels.datasets import sunspots

from graphs import HiddenMarkov, MarkovChain
from graphs.estimation import baum_welch, budget_interval, diagnose

EPSILON = 0.5


def main(arguments: list[str] | None = None) -> None:
    """Print diagnosis, models, budgets and inflations; draw the series with its hidden states."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", help="where to save the picture")
    options = parser.parse_args(arguments)

    data = sunspots.load_pandas().data
    years, spots = data["YEAR"].to_numpy(), data["SUNACTIVITY"].to_numpy()
    print(diagnose(spots, order=years, epsilon=EPSILON))

    high = (spots > np.median(spots)).astype(int)
    chain = MarkovChain.fit(high)
    print(f"\nAbove or below the median: {chain.describe()}")
    print(f"  transition {chain.transition.round(3).tolist()}")
    print(budget_interval(chain, MarkovChain.fit, EPSILON, draws=100))

    print("\nHidden chains with normal emissions:")
    for states in (2, 3):
        fit = baum_welch(spots, states=states)
        hidden = HiddenMarkov(fit.transition, len(spots), emission=fit.emission)
        budget, inflation = hidden.budget(EPSILON), hidden.variance_inflation()
        print(f"  {states} states: BIC {fit.bic:.1f}, budget {budget:.4g}, variance inflation {inflation:.3g}")

    hidden = HiddenMarkov.fit(spots)
    if options.picture:
        draw(hidden, years, spots, options.picture)
        print(f"Picture: {options.picture}")


def draw(hidden: HiddenMarkov, years: npt.NDArray[np.float64], spots: npt.NDArray[np.float64], path: str) -> None:
    """Draw the series, coloured by the probability that the sun is in its active state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.6), dpi=150, layout="constrained")
    ax = figure.add_subplot()
    active = hidden.posterior(spots)[:, -1]
    ax.plot(years, spots, color="#8a8a8a", linewidth=0.8, zorder=1)
    shown = ax.scatter(years, spots, c=active, cmap="viridis", s=16, zorder=2)
    ax.set(xlabel="year", ylabel="sunspot number (yearly mean)")
    ax.spines[["top", "right"]].set_visible(False)
    figure.colorbar(shown, ax=ax, label="P(active state | all years)")
    figure.savefig(path)


if __name__ == "__main__":
    main()
