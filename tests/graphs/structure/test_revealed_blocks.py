"""Blocks that are revealed one after another: by hand, and against all couplings of small laws."""

import itertools
import math
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from graphs import (
    DependencyGraph,
    GaussianField,
    Groups,
    HiddenMarkov,
    Independent,
    MarkovChain,
    MixingSeries,
    MovingWindow,
    Panel,
)
from graphs.inflation.concentration import forgetting_far
from graphs.models.law_free import GroupSizes
from graphs.structure.revealed_blocks import RevealedBlocks
from tests.cases import for_each

Floats = NDArray[np.float64]


def far_apart(p: Floats, q: Floats, states: Floats, most: int) -> float:
    """Return the least probability, over all couplings, that two draws differ in more than so many places."""
    costs = (states[p > 0][:, None] != states[q > 0]).sum(axis=2) > most
    rows = np.kron(np.eye(len(costs)), np.ones(costs.shape[1]))
    columns = np.kron(np.ones(len(costs)), np.eye(costs.shape[1]))
    found = linprog(costs.ravel().astype(float), A_eq=np.r_[rows, columns], b_eq=np.r_[p[p > 0], q[q > 0]])
    assert found.fun is not None
    return float(found.fun)


def largest_distance(law: Floats, start: int, end: int, most: int) -> float:
    """Return the largest `far_apart` over pasts up to `start`, and values of the block up to `end`."""
    n = int(np.log2(len(law)))
    states = np.array(list(itertools.product((0, 1), repeat=n)))
    worst = 0.0
    for past in itertools.product((0, 1), repeat=start):
        given = []
        for block in itertools.product((0, 1), repeat=end - start):
            mass = np.where((states[:, :end] == (*past, *block)).all(axis=1), law, 0.0)
            if mass.sum() > 0:
                given.append(mass / mass.sum())
        for p, q in itertools.combinations(given, 2):
            worst = max(worst, far_apart(p, q, states, most))
    return worst


def window_law(n: int, m: int) -> Floats:
    """Return the law of records that say whether m + 1 coins in a row came up."""
    law = np.zeros(2**n)
    for coins in itertools.product((0, 1), repeat=n + m):
        records = [int(all(coins[i : i + m + 1])) for i in range(n)]
        law[int("".join(map(str, records)), 2)] += 2.0 ** -(n + m)
    return law


def chain_law(n: int, kernel: Floats) -> Floats:
    """Return the law of a stationary symmetric chain."""
    law = np.full(2, 0.5)
    for _ in range(n - 1):
        law = (law[:, None] * kernel[np.arange(len(law)) % 2]).ravel()
    return law


def test_a_window_changes_its_block_and_as_many_records_as_it_reaches() -> None:
    law = window_law(5, 1)
    assert RevealedBlocks.of_series(5, 1).changes == (1, 2)  # blocks of one record, each with the next one
    for start in range(5):
        assert largest_distance(law, start, start + 1, 2) < 1e-9
    assert max(largest_distance(law, start, start + 1, 1) for start in range(4)) > 0.3  # fewer are not enough


@for_each("gap", [0, 1, 2])
def test_a_chain_changes_more_than_its_gap_as_rarely_as_stated(gap: int) -> None:
    """The first block that is stated, over all couplings; where it changes nothing behind it that is exact."""
    law = chain_law(7, np.array([[0.8, 0.2], [0.2, 0.8]]))
    missed = math.ceil(7 / max(gap, 1)) * 0.6 ** (gap + 1) * 1.01
    found = RevealedBlocks.of_forgetting(7, 0.6 ** np.arange(1.0, 7.0), missed)
    assert found.missed == pytest.approx(0.6 ** (gap + 1))
    change = found.changes[-1]
    exact = largest_distance(law, 0, change - gap, change)
    assert 0 < exact <= found.missed + 1e-9
    assert gap or exact == pytest.approx(found.missed)


@for_each("n", [1, 2, 3, 7, 10, 11, 12])
@for_each("gap", [0, 1, 2, 5, 20])
def test_blocks_of_a_series_cover_its_records(n: int, gap: int) -> None:
    """Block by block, and the best of three lengths."""
    lengths = {min(max(gap, 1), n), min(gap + 1, n), n}
    listed = [
        Counter(min(n - start, min(length, n - start) + gap) for start in range(0, n, length)) for length in lengths
    ]
    found = RevealedBlocks.of_series(n, gap)
    assert Counter(dict(zip(found.changes, found.counts, strict=True))) in listed
    assert found.squares == min(sum(count * change**2 for change, count in each.items()) for each in listed)
    assert list(found.changes) == sorted(found.changes)


def test_records_that_reach_up_to_a_last_one() -> None:
    """Against all couplings of laws of coins that records share: reaches of 1, 2 and 0."""
    shared = [(0,), (0, 1), (1, 2), (2,), (3,)]  # the coins of each record, which is their sum modulo 2
    law = np.zeros(2**5)
    for coins in itertools.product((0, 1), repeat=4):
        law[int("".join(str(sum(coins[c] for c in each) % 2) for each in shared), 2)] += 2.0**-4
    assert RevealedBlocks.of_reach(np.array([1, 2, 3, 3, 4])) == RevealedBlocks((1, 2, 3), (1, 1, 1))
    for start, end, most in ((0, 2, 3), (2, 4, 2), (4, 5, 1)):
        assert largest_distance(law, start, end, most) < 1e-9
    assert largest_distance(law, 0, 2, 1) > 0.9  # fewer are not enough


def test_models_by_hand() -> None:
    assert Independent(10**15).revealed_blocks() == RevealedBlocks((1,), (10**15,))
    assert Groups([0, 0, 1, 2]).revealed_blocks() == RevealedBlocks((1, 2), (2, 1))
    assert GroupSizes({1: 4, 3: 2}).revealed_blocks() == RevealedBlocks((1, 3), (4, 2))
    assert MovingWindow(9, 2).revealed_blocks().changes[-1] <= 5
    assert MovingWindow.of_times([0, 1, 2, 10, 11, 20], 1).revealed_blocks() == RevealedBlocks((1, 2, 3), (1, 1, 1))
    assert DependencyGraph(nx.path_graph(100)).revealed_blocks().changes == (2, 3)
    assert DependencyGraph(nx.complete_graph(7)).revealed_blocks() == RevealedBlocks((7,), (1,))
    assert DependencyGraph(nx.empty_graph(7)).revealed_blocks() == RevealedBlocks((1,), (7,))
    assert GaussianField.ar(0.5, 50).revealed_blocks(0.1) == RevealedBlocks((50,), (1,))
    assert MixingSeries([0.1, 0.0], 100).revealed_blocks() == MovingWindow(100, 1).revealed_blocks()
    assert MixingSeries.contraction(0.1, 100).revealed_blocks(0.1) == RevealedBlocks((100,), (1,))
    assert MovingWindow(20, 1).given([3]).revealed_blocks() == MovingWindow(20, 1).given([3])._rest.revealed_blocks()  # type: ignore[union-attr]
    assert Panel(MovingWindow(10, 1), 7).revealed_blocks() == RevealedBlocks((1, 2), (7, 63))


def test_chains_forget_as_their_kernels_do() -> None:
    kernel = np.array([[0.9, 0.1], [0.2, 0.8]])
    chain = MarkovChain(kernel, n=100_000)
    found = chain.revealed_blocks(1e-6)
    gap = next(k for k in range(1, 200) if np.ceil(100_000 / k) * 0.7 ** (k + 1) <= 1e-6)
    assert found.changes[-1] - gap in (gap, gap + 1)
    assert found.missed == pytest.approx(0.7 ** (gap + 1), rel=1e-9)
    assert found.missed * found.blocks <= 1e-6
    assert HiddenMarkov(kernel, n=100_000, emission=kernel).revealed_blocks(1e-6) == found
    assert chain.revealed_blocks() == RevealedBlocks((100_000,), (1,))  # never with certainty, however small floats are
    assert MarkovChain([[0, 1], [1, 0]], n=10, initial=[0.5, 0.5]).revealed_blocks(0.5) == RevealedBlocks((10,), (1,))
    assert MarkovChain([[0.5, 0.5], [0.5, 0.5]], n=1).revealed_blocks(0.5) == RevealedBlocks((1,), (1,))


def test_powers_that_are_multiplied_are_no_smaller_than_they_are() -> None:
    far = forgetting_far(np.array([[0.9, 0.1], [0.2, 0.8]]), 10_000, 1e-200)
    assert np.all(np.log(far) >= np.arange(1, len(far) + 1) * np.log(0.7) - 1e-9)
    assert far.min() > 0


def test_a_series_that_forgets_too_slowly_is_one_block() -> None:
    assert RevealedBlocks.of_forgetting(100, np.full(99, 0.5), 0.1) == RevealedBlocks((100,), (1,))
