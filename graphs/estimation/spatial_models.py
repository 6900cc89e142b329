"""Records at places: who is near whom, and the models that a diagnosis fits to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.estimation.candidate import Candidate, of_graph
from graphs.estimation.fitted_fields import fit_kernel
from graphs.models.law_free import Groups
from graphs.numerics.arguments import FloatArray, IntArray, real_array

__all__ = ["neighbour_edges", "of_places", "read_places"]

#: Neighbours of each record that are compared with it.
NEIGHBOURS = 6

#: Records to which a range is fitted; with more, that many are drawn.
FITTED = 300

#: Most records for which a model of distances is made.
MOST_PLACES = 3000

#: Probability of failure of the limit for the range.
FAILURE = 0.01


def read_places(coordinates: Any, n: int, values: Any) -> FloatArray:
    """Return where each record lies, shape (n, d).

    Parameters
    ----------
    coordinates : array_like or DataFrame
        A number or d numbers for each record.
    n : int
        Number of records.
    values : object
        What a table of coordinates has to have the index of, where both have one.

    Raises
    ------
    ArgumentError
        For other shapes, missing or infinite numbers, too many records, and an index that is not that of the values.

    Examples
    --------
    >>> read_places([0.0, 1.5], 2, None).tolist()
    [[0.0], [1.5]]
    """
    expected = f"a number or d finite numbers for each of {n} records"
    own, other = (getattr(each, "index", None) if hasattr(each, "iloc") else None for each in (coordinates, values))
    if own is not None and other is not None and not own.equals(other):
        raise ArgumentError("coordinates", "another index than that of the values", "coordinates.loc[values.index]")
    places = real_array("coordinates", coordinates, expected)
    places = places[:, None] if places.ndim == 1 else places
    if places.ndim != 2 or len(places) != n or not places.shape[1]:
        raise ArgumentError("coordinates", f"an array of shape {places.shape}", expected)
    if not np.isfinite(places).all():
        raise ArgumentError("coordinates", "a missing or infinite number", expected)
    if n > MOST_PLACES:
        raise ArgumentError("coordinates", f"{n:,} places", f"at most {MOST_PLACES:,}: diagnose some of the records")
    return places


def neighbour_edges(places: FloatArray) -> IntArray:
    """Return the pairs of records of which one is among the six nearest of the other.

    Parameters
    ----------
    places : ndarray of shape (n, d)
        Where they lie.

    Returns
    -------
    ndarray of shape (m, 2)
        Each pair once, the smaller number first.

    Examples
    --------
    >>> len(neighbour_edges(np.arange(7.0)[:, None]))  # each is among the six nearest of all
    21
    """
    from scipy.spatial import KDTree

    n = len(places)
    near = KDTree(places).query(places, k=min(NEIGHBOURS + 1, n))[1].reshape(n, -1)
    pairs = np.stack([np.repeat(np.arange(n), near.shape[1]), near.ravel()], axis=1)
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return np.unique(pairs, axis=0).astype(np.int64)


def of_places(
    places: FloatArray, edges: IntArray, codes: IntArray, numbers: FloatArray | None, seed: int
) -> list[Candidate]:
    """Return a field of numbers whose correlations fall with distance, or a field of categories on near neighbours.

    Parameters
    ----------
    places : ndarray of shape (n, d)
        Where the records lie.
    edges : ndarray of shape (m, 2)
        Near neighbours.
    codes : ndarray of shape (n,)
        Categories.
    numbers : ndarray of shape (n,) or None
        Numbers, where there are such: normal values with correlations ``exp(-distance/range)`` at an upper confidence
        limit of the range, or one group of all records where no range is excluded.
    seed : int
        Of the choice of the records to which the range is fitted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> places = rng.random((60, 2))
    >>> of_places(places, neighbour_edges(places), np.arange(60) % 2, None, 0)[0].name
    'Ising field'
    """
    n = len(places)
    if numbers is None:
        import networkx as nx

        graph: nx.Graph[int] = nx.empty_graph(n)
        graph.add_edges_from(edges.tolist())
        return of_graph(graph, codes, None)
    chosen = np.sort(np.random.default_rng([seed, 2]).permutation(n)[:FITTED])
    try:
        model = fit_kernel(numbers[chosen], places[chosen], places, fit_failure=FAILURE)
    except ArgumentError:  # no range is excluded, or records share a place
        return [Candidate("distances, range not limited", Groups(np.zeros(n, dtype=np.int64)))]
    return [Candidate("correlations by distance, upper limit", model)]
