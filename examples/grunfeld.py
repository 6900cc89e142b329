"""
Firms over the years: a panel
=============================

Grunfeld's investment data: the investment of a firm, forecast from other firms.

Run with ``python examples/grunfeld.py``; ``--picture FILE`` draws.
The data come with statsmodels (pip install statsmodels).

Years of one firm depend on each other (a series), and all firms on the shocks of a year. A forecast is the mean growth
of six firms in the same year; it is judged on five others. The guarantee is given the years' shocks, for which firms
are independent: so a panel, with a series in each firm. Its memory is estimated from differences between two firms,
which contain no shocks that move all firms alike. The limit is exact where the differences have one mean and variance.
"""

from __future__ import annotations

import argparse
import textwrap
import warnings

import numpy as np
from statsmodels.datasets import grunfeld

from graphs import Groups, Panel
from graphs.estimation import diagnose, fit_autoregression
from thresholdout import Thresholdout, WideAnswersWarning


def main(arguments: list[str] | None = None) -> None:
    """Print diagnosis, model, half-widths, and answers; draw the tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", help="where to save the picture")
    options = parser.parse_args(arguments)

    table = np.log(grunfeld.load_pandas().data.pivot(index="firm", columns="year", values="invest"))
    growth = table.diff(axis=1).iloc[:, 1:].to_numpy()  # 11 firms, 19 years
    others, judged = growth[:6], growth[6:]
    firms, years = judged.shape

    print("Growth of investment of six firms, with the year as a group:")
    found = diagnose(others.ravel(), groups=np.tile(np.arange(years), len(others)))
    print(found)

    # Each firm is in one pair: contrasts that share firms would depend on each other, as variances differ.
    pairs = others[::2] - others[1::2]
    left = diagnose(pairs.ravel(), groups=np.tile(np.arange(years), len(pairs))).tests[0]
    print(f"\nDifferences between two firms, years as groups: {left.effect:.2f}, p = {left.p_value:.2g}.")
    series = fit_autoregression(pairs.ravel(), years, units=np.repeat(np.arange(len(pairs)), years))
    panel = Panel(series, firms)
    print(f"Given the years, {firms} independent firms of {years} years each, with an upper limit for their memory;")
    print(textwrap.fill(f"what is promised is {series.fitted_limits.words}", 110) if series.fitted_limits else "")
    for name, model in (("firms as groups", Groups(np.repeat(np.arange(firms), years))), ("firms as series", panel)):
        print(
            f"  {name}: {model.n} firm-years answer a query to ±{model.half_width():.2f}; "
            f"±0.05 takes {model.records_for(0.05) / years:,.0f} firms"
        )

    print("\nIs the growth of a firm within 0.3 of the mean of other firms, and is it above?")
    warnings.simplefilter("ignore", WideAnswersWarning)  # five firms are few, and their width is printed above
    guard = Thresholdout(judged.reshape(-1, 1), dependence=panel, queries=2)
    apart = others - (others.sum(axis=0) - others) / (len(others) - 1)
    away = judged - others.mean(axis=0)
    print(guard.ask(np.mean(np.abs(apart) < 0.3), np.abs(away).ravel() < 0.3, name="within 0.3", binary=True))
    print(guard.ask(np.mean(apart > 0), away.ravel() > 0, name="above", binary=True))

    if options.picture:
        found.plot()[0].figure.savefig(options.picture)


if __name__ == "__main__":
    main()
