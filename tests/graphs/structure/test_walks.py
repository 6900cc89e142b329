"""Walks on short cycles: against all walks of small graphs, one by one."""

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphs.leakage.self_avoiding import Walks
from tests.cases import for_each

#: Vertices of a walk, and the number of the walk that stands for it.
Step = tuple[tuple[int, ...], int]


def links(graph: "nx.Graph[Any]") -> tuple[np.ndarray, np.ndarray]:
    both = np.array(sorted([*graph.edges, *((v, u) for u, v in graph.edges)]))
    return both[:, 0], both[:, 1]


def walked(walks: Walks, sources: np.ndarray, targets: np.ndarray, most: int) -> Iterator[Step]:
    """Yield everything that can be walked in up to `most` links."""
    followers: dict[int, list[int]] = {}
    for row, follower in zip(walks.rows.tolist(), walks.followers.tolist(), strict=True):
        followers.setdefault(row, []).append(follower)
    now: list[Step] = [((int(u), int(v)), k) for k, (u, v) in enumerate(zip(sources, targets, strict=True))]
    for _ in range(most - 1):
        yield from now
        onwards = [(way, follower) for way, walk in now for follower in followers.get(walk, [])]
        now = [((*way, int(targets[walks.last[walk]])), walk) for way, walk in onwards]
    yield from now


def all_walks(graph: "nx.Graph[Any]", barred: set[int], most: int, memory: int) -> set[tuple[int, ...]]:
    """Return all walks of up to `most` links in which nothing left in the last `memory` steps is entered again."""
    found: set[tuple[int, ...]] = set()
    now: list[tuple[int, ...]] = [(u, v) for edge in graph.edges for u, v in (edge, edge[::-1])]
    for links_so_far in range(1, most + 1):
        found.update(now)
        longer = []
        for way in now if links_so_far < most else []:
            left = way[-1 - memory : -1]
            shut = set(left) | {m for f in left if f in barred for m in graph[f]}
            longer += [(*way, k) for k in graph[way[-1]] if k not in shut]
        now = longer
    return found


@for_each("seed", range(12))
def test_without_limits_the_walks_are_the_self_avoiding_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(int(rng.integers(3, 8)), rng.uniform(0.4, 0.9), seed=seed)
    barred = set(rng.choice(len(graph), size=seed % 3, replace=False).tolist())
    graph.remove_edges_from([(u, v) for u, v in graph.edges if u in barred and v in barred])
    if not graph.number_of_edges():
        graph.add_edge(0, 1)
    sources, targets = links(graph)
    mask = np.isin(np.arange(len(graph)), list(barred))
    found = Walks.within(sources, targets, mask, len(graph), 10**6)
    assert found is not None
    walks = [way for way, _ in walked(found, sources, targets, len(graph))]
    assert len(walks) == len(set(walks))
    assert set(walks) == all_walks(graph, barred, len(graph), len(graph))


@pytest.mark.slow
@for_each("length", range(2, 8))
def test_walks_never_go_round_a_short_cycle_and_leave_out_nothing_else(length: int) -> None:
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 4))
    graph.add_edges_from([(0, 5), (9, 14)])
    sources, targets = links(graph)
    free = np.zeros(16, dtype=np.bool_)
    found = Walks.along(sources, targets, free, ~free, length, 10**6)
    assert found is not None
    walks = {way for way, _ in walked(found, sources, targets, 7)}
    assert walks == all_walks(graph, set(), 7, length - 1)


def test_vertices_that_may_not_be_passed_and_limits_only_shorten_what_is_remembered() -> None:
    graph = nx.wheel_graph(9)
    sources, targets = links(graph)
    free = np.zeros(9, dtype=np.bool_)
    passable = ~free
    passable[0] = False
    around = Walks.along(sources, targets, free, passable, 9, 10**6)
    whole = Walks.along(sources, targets, free, ~free, 9, 10**6)
    assert around is not None
    assert whole is not None
    assert len(sources) < len(around.last) < len(whole.last)
    truly = all_walks(graph, set(), 5, 9)
    for walks in (around, whole):
        assert truly <= {way for way, _ in walked(walks, sources, targets, 5)}
    assert Walks.along(sources, targets, free, ~free, 9, 500) is None
    assert Walks.within(sources, targets, free, 9, 10) is None
    limited = Walks.within(sources, targets, free, 9, 2000)
    assert limited is not None
    assert len(limited.last) + len(limited.rows) <= 2000
    assert not limited.complete


def test_the_hub_of_a_star_of_triangles_is_not_passed() -> None:
    """Two hundred triangles around one vertex: each is walked around from the hub and to it, not through it."""
    spokes = [(0, k) for k in range(1, 401)]
    graph = nx.Graph(spokes + [(k, k + 1) for k in range(1, 401, 2)])
    sources, targets = links(graph)
    free = np.zeros(401, dtype=np.bool_)
    found = Walks.within(sources, targets, free, 401, 600_000)
    assert found is not None
    assert len(found.last) == len(sources) + 800
