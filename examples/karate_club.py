"""
Members of a club: a network
============================

The karate club: which side a member takes, forecast from who meets whom.

Run with ``python examples/karate_club.py``; ``--picture FILE`` draws.

The sides depend so strongly on each other that 34 members count as one record. The errors of a forecast may depend
less: their places bound the coupling, for any number of errors. The example computes how many such clubs a query needs.
"""

from __future__ import annotations

import argparse
from itertools import combinations

import networkx as nx
import numpy as np
import numpy.typing as npt

from graphs import Groups, MarkovField, Panel
from graphs.estimation import diagnose, fit_ising
from graphs.plotting import plot_graph


def main(arguments: list[str] | None = None) -> None:
    """Print diagnosis, models and half-widths; draw the club coloured by leakage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", help="where to save the picture")
    options = parser.parse_args(arguments)

    club = nx.karate_club_graph()
    sides = np.array([club.nodes[member]["club"] == "Mr. Hi" for member in club])
    print("The side that a member takes:")
    print(diagnose(sides.astype(int), graph=club))

    split = nx.fiedler_vector(club, seed=0, method="tracemin_lu") > 0
    wrong = (split == split[0]) != sides  # the first member is Mr. Hi
    print(f"\nPrediction by the sparsest cut of the graph, which knows no side: {wrong.sum()} of {len(wrong)} wrong.")
    fitted = fit_ising(club, wrong.astype(int))
    likely = float(fitted.diameters.max()) / 4
    limit = largest_coupling(club, wrong)
    print(f"Coupling of the errors: {likely:.3f} fitted, at most {limit:.2f} with a confidence of 95%.")

    print("\nA share of right forecasts in a panel of such clubs:")
    members = len(club)
    print(f"  {'':26}inflation    one club   clubs for ±0.05")
    for name, model in (
        ("independent errors", MarkovField.ising(club, coupling=0.0)),
        ("errors as fitted", MarkovField.ising(club, coupling=likely)),
        ("errors at the limit", MarkovField.ising(club, coupling=limit)),
        ("clubs as groups", Groups(np.zeros(members, dtype=int))),
    ):
        clubs = Panel(model, 1000)
        alone, takes = model.half_width(), clubs.records_for(0.05) / members
        print(f"  {name:26}{model.variance_inflation():9.3g}{'±':>8}{alone:.2f}{np.ceil(takes):18,.0f}")

    if options.picture:
        ax = plot_graph(club, MarkovField.ising(club, coupling=likely).leakage(0.25))
        ax.set_title(f"coupling {likely:.3f}: leakage about each member at budget 0.25")
        ax.figure.savefig(options.picture)


def largest_coupling(club: nx.Graph[int], wrong: npt.NDArray[np.bool_], level: float = 0.05) -> float:
    """Return the largest coupling of an Ising field of which errors so far apart are no rare event.

    Given how many members are wrong, an Ising field prefers sets of them with few edges to the others, as
    exp(-2 coupling edges): a law without any other parameter, summed here over all sets of that size.
    """
    sets = combinations(club, int(wrong.sum()))
    edges = np.array([nx.cut_size(club, chosen) for chosen in sets])
    seen = nx.cut_size(club, np.flatnonzero(wrong).tolist())
    tried = np.arange(0.0, 2.0, 0.01)
    weights = np.exp(-2.0 * np.outer(tried, edges - edges.min()))
    rare = weights[:, edges >= seen].sum(axis=1) <= level * weights.sum(axis=1)
    return float(tried[np.argmax(rare)] if rare.any() else np.inf)


if __name__ == "__main__":
    main()
