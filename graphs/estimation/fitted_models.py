"""Models that a diagnosis fits to groups and to graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphs.estimation.candidate import Candidate
from graphs.estimation.pseudo_likelihood import fit_ising, fit_potts
from graphs.models.law_free import Groups
from graphs.numerics.arguments import FloatArray, IntArray

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["of_graph", "of_groups"]


def of_groups(model: Groups) -> list[Candidate]:
    """Return the groups themselves: they need no fit."""
    return [Candidate("groups", model)]


def of_graph(graph: nx.Graph[Any], codes: IntArray, numbers: FloatArray | None) -> list[Candidate]:
    """Return a field of the categories, or of numbers above and below their median.

    Examples
    --------
    >>> import networkx as nx
    >>> of_graph(nx.cycle_graph(6), np.array([0, 0, 0, 1, 1, 1]), None)[0].name
    'Ising field'
    """
    if numbers is not None:
        middle = np.median(numbers)
        upper = numbers > middle if (numbers > middle).any() else numbers >= middle
        return [Candidate("Ising field of halves", fit_ising(graph, upper.astype(np.int64)))]
    if codes.max() == 1:
        return [Candidate("Ising field", fit_ising(graph, codes))]
    return [Candidate("Potts field", fit_potts(graph, codes))]
