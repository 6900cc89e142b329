"""
A holdout whose records depend on each other
============================================

An analyst who looks for records that lean to one side together, on three ways of answering.

The records are the members of a network that grew by preferential attachment, and opinions pass along its edges. The
analyst asks how large the share of positive opinions is around each hub, turns each surrounding to the side that it was
told to lean to, and asks how often the classifier that says so is right. The truth of every query is 1/2.

Run with ``python examples/correlated_holdout.py``; ``--picture FILE`` draws it.
"""

from __future__ import annotations

import argparse

import networkx as nx

from graphs import MarkovField
from thresholdout.simulation import ClusterAnalyst, around_hubs, simulate


def main(picture: str | None = None) -> None:
    """Simulate, print the table, and draw it."""
    tree: nx.Graph[int] = nx.Graph(nx.barabasi_albert_graph(1000, 1, seed=1))
    model = MarkovField.ising(tree, coupling=0.6)
    analyst = ClusterAnalyst(around_hubs(tree, 20), largest=20)
    found = simulate(model, analyst, truth=0.5, sessions=10)
    print(found.table.round(2).to_string())
    if picture is not None:
        found.plot().figure.savefig(picture)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="A holdout whose records depend on each other.")
    options.add_argument("--picture", metavar="FILE", help="where to draw")
    main(options.parse_args().picture)
