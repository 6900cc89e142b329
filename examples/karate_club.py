"""The karate club: the side that each member took as an Ising field on who meets whom.

Run: python examples/karate_club.py [--picture karate.png]
"""

from __future__ import annotations

import argparse

import networkx as nx

from graphs import MarkovField
from graphs.estimation import budget_interval, diagnose, fit_ising
from graphs.plotting import plot_graph

EPSILON = 0.5


def main(arguments: list[str] | None = None) -> None:
    """Print diagnosis, model, budget and inflation; draw the club coloured by leakage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", help="where to save the picture")
    options = parser.parse_args(arguments)

    club = nx.karate_club_graph()
    sides = [club.nodes[member]["club"] for member in club]

    print("Does the side that a member takes depend on the members he meets?")
    print(diagnose(sides, graph=club, epsilon=EPSILON))

    fitted = fit_ising(club, sides)
    print(f"\nFitted: {fitted.describe()}; largest diameter of an edge {fitted.diameters.max():.3g}.")
    print(budget_interval(fitted, lambda drawn: fit_ising(club, drawn), EPSILON, draws=20))

    if fitted.budget(EPSILON) < 1.01 * EPSILON / fitted.n:
        print(f"So strong a field leaves what one group of all {fitted.n} members leaves, {EPSILON} / {fitted.n}.")

    print("\nWhat a weaker field would leave, for a leakage of 0.5 nats:")
    for coupling in (0.02, 0.05, 0.1):
        field = MarkovField.ising(club, coupling=coupling)
        budget, inflation = field.budget(EPSILON), field.variance_inflation()
        print(f"  coupling {coupling:<5} budget {budget:.4f}  variance inflation {inflation:5.2f}")

    if options.picture:
        ax = plot_graph(club, field.leakage(budget))
        ax.set_title(f"coupling {coupling}: leakage about each member at budget {budget:.3g}")
        ax.figure.savefig(options.picture)
        print(f"Picture: {options.picture}")


if __name__ == "__main__":
    main()
