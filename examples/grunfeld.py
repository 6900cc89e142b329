"""Grunfeld's investment data: 11 firms over 20 years, with the years of a firm as a group.

Run: python examples/grunfeld.py [--picture grunfeld.png]
The data come with statsmodels (pip install statsmodels).
"""

from __future__ import annotations

import argparse

import numpy as np
from statsmodels.datasets import grunfeld

from graphs import Communities, Groups
from graphs.estimation import diagnose

EPSILON = 0.5


def main(arguments: list[str] | None = None) -> None:
    """Print diagnosis, models, budgets and inflations; draw the tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", help="where to save the picture")
    options = parser.parse_args(arguments)

    panel = grunfeld.load_pandas().data
    explained = np.column_stack([np.ones(len(panel)), np.log(panel[["value", "capital"]])])
    invested = np.log(panel["invest"].to_numpy())
    residuals = invested - explained @ np.linalg.lstsq(explained, invested, rcond=None)[0]
    print("Residuals of log investment on log value and log capital:")
    found = diagnose(residuals, groups=panel["firm"], epsilon=EPSILON)
    print(found)

    print("\nModels for 220 firm-years:")
    firms = Groups(panel["firm"])
    mild = Communities(panel["firm"], emission=[[0.6, 0.4], [0.4, 0.6]])
    for name, model in (("firms as groups", firms), ("a mild state of each firm", mild)):
        budget, inflation = model.budget(EPSILON), model.variance_inflation()
        print(f"  {name:26} budget {budget:.4f}  variance inflation {inflation:.3g}")
    known = firms.given(np.flatnonzero(panel["year"] < 1945))
    print(f"  {'later years, given earlier':26} budget {known.budget(EPSILON):.4f}  ", end="")
    print(f"variance inflation {known.variance_inflation():.3g}")
    print("  (about E[q(X) | the years before 1945], not about E q(X))")

    if options.picture:
        found.plot().figure.savefig(options.picture)
        print(f"Picture: {options.picture}")


if __name__ == "__main__":
    main()
