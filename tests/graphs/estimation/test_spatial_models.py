"""Diagnosis by coordinates: near neighbours by brute force, models by distance, refusals."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from graphs import ArgumentError, GaussianField, Groups
from graphs.estimation import diagnose
from graphs.estimation.candidate import FITTED, NEIGHBOURS, neighbour_edges
from graphs.estimation.permutation import morans_i
from graphs.models.markov_field import MarkovField
from tests.cases import for_each


@for_each(("n", "dimension"), [(3, 1), (50, 1), (80, 2), (60, 3)])
def test_near_neighbours_are_the_six_nearest_of_either(n: int, dimension: int) -> None:
    places = np.random.default_rng(0).normal(size=(n, dimension))
    distances = np.linalg.norm(places[:, None] - places, axis=2)
    np.fill_diagonal(distances, np.inf)
    near = {(i, int(j)) for i in range(n) for j in np.argsort(distances[i])[: min(NEIGHBOURS, n - 1)]}
    expected = {(min(pair), max(pair)) for pair in near}
    assert {tuple(pair) for pair in neighbour_edges(places).tolist()} == expected


def test_records_at_one_place_are_neighbours_of_each_other_and_never_of_themselves() -> None:
    edges = neighbour_edges(np.zeros((20, 2)))
    assert (edges[:, 0] < edges[:, 1]).all()
    assert len(np.unique(edges, axis=0)) == len(edges)


def field(n: int, reach: float) -> tuple[Any, Any]:
    rng = np.random.default_rng(2)
    places = rng.random((n, 2))
    return places, GaussianField.kernel(places, lambda d: np.exp(-d / reach)).sample(rng)


@pytest.mark.slow
def test_values_that_fall_with_distance_are_found() -> None:
    places, values = field(FITTED, 0.08)
    found = diagnose(values, coordinates=places, permutations=99)
    assert found.dependent
    assert found.model.fit_failure == 0.01
    (test,) = found.tests
    edges = neighbour_edges(places)
    assert test.name == "coordinates: Moran's I of near neighbours"
    centred = values - values.mean()
    effect = FITTED / len(edges) * (centred[edges[:, 0]] * centred[edges[:, 1]]).sum() / (centred**2).sum()
    assert test.effect == pytest.approx(effect, rel=1e-12)
    assert test.effect == morans_i(values[:, None], edges, 9, np.random.default_rng(0)).effect
    true = GaussianField.kernel(places, lambda d: np.exp(-d / 0.08))
    assert found.model.variance_inflation() > true.variance_inflation()


@pytest.mark.slow
def test_tables_of_coordinates_are_their_values() -> None:
    places, values = field(100, 0.08)
    found = diagnose(values, coordinates=places, permutations=99)
    table = pd.DataFrame(places, index=pd.RangeIndex(100) + 5)
    again = diagnose(pd.Series(values, index=table.index), coordinates=table, permutations=99)
    assert again.model.fingerprint() == found.model.fingerprint()


def test_categories_are_a_field_on_near_neighbours() -> None:
    places, values = field(200, 0.1)
    assert isinstance(diagnose(values > 0, coordinates=places, permutations=99).model, MarkovField)


@for_each("same", [False, True])
def test_where_no_range_is_found_all_records_are_one_group(same: bool) -> None:
    places, values = field(120, 30.0)
    places = np.round(places, 1) if same else places
    found = diagnose(values, coordinates=places, permutations=99)
    assert found.model.fingerprint() == Groups([0] * 120).fingerprint()
    assert found.costs().index.tolist() == ["independent", "distances, range not limited"]


@for_each(
    ("arguments", "match"),
    [
        ({"coordinates": np.zeros((4, 2))}, r"shape \(4, 2\)"),
        ({"coordinates": [0.0, np.nan, 1.0]}, "missing or infinite"),
        ({"coordinates": ["a", "b", "c"]}, "values of type"),
        ({"coordinates": np.zeros((3, 2)), "graph": nx.path_graph(3)}, "beside a graph"),
        ({"coordinates": pd.DataFrame({"x": [0.0, 1.0, 2.0]}, index=[2, 1, 0])}, r"coordinates\.loc\[values\.index\]"),
    ],
)
def test_refusals(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        diagnose(pd.Series([1.0, 2.0, 4.0]), **arguments)


def test_too_many_places_are_refused() -> None:
    with pytest.raises(ArgumentError, match="at most 3,000"):
        diagnose(np.arange(3001.0), coordinates=np.zeros((3001, 2)))
