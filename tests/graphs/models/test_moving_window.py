"""Windows by position and by time: enumeration, brute force, and what known records join."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import stats

from graphs import ArgumentError, DependencyGraph, MixingSeries, MovingWindow, RouteUnavailable
from graphs.inflation.concentration import block_inflation, even_block_inflation, uneven_block_inflation
from graphs.models.moving_window import Reach
from tests.cases import for_each
from tests.oracles.moments import worst_inflation, worst_of_bounded_differences
from tests.sizes import sizes

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def test_windows() -> None:
    model = MovingWindow(7, 2)
    assert model.m == 2
    assert model.leakage(0.1) == pytest.approx(np.full(7, 0.7), rel=1e-14)
    expected = np.array([3, 4, 5, 5, 5, 4, 3]) * 0.1
    assert model.leakage(0.1, adversary="uninformed") == pytest.approx(expected, rel=1e-14)
    budgets = np.arange(7) / 10
    sums = [budgets[max(i - 2, 0) : i + 3].sum() for i in range(7)]
    assert model.leakage(budgets, adversary="uninformed") == pytest.approx(sums, rel=1e-12)
    assert (model.leakage(budgets, adversary="uninformed") >= sums).all()
    assert model.budget(0.5, adversary="uninformed") == pytest.approx(0.1, rel=1e-11)
    with pytest.raises(RouteUnavailable, match="depend on each other once"):
        model.leakage(0.1, "quilt")
    assert model.independent_groups() is None
    assert model.describe() == "7 records in a series, independent when more than 2 apart"


def test_windows_at_their_ends() -> None:
    assert MovingWindow(5, 0).leakage(0.1).tolist() == [0.1] * 5
    none = MovingWindow(5, 0).independent_groups()
    assert none is not None
    assert none.tolist() == [1] * 5
    for m in (4, 9):
        whole = MovingWindow(5, m)
        for method in ("group", "quilt"):
            assert whole.leakage(0.1, method) == pytest.approx(np.full(5, 0.5), rel=1e-14)
    assert MovingWindow(1, 3).leakage(0.1).tolist() == [0.1]
    for n, m in ((2, 1), (4, 1), (4, 2), (9, 4), (10, 4), (10, 5)):
        sizes = [min(i, m) + min(n - 1 - i, m) + 1 for i in range(n)]
        assert MovingWindow(n, m).leakage(0.1, adversary="uninformed") == pytest.approx(np.array(sizes) * 0.1)


def joined(places: FloatArray, length: float) -> nx.Graph[int]:
    """Return which records are at most a length apart, pair by pair."""
    graph: nx.Graph[int] = nx.empty_graph(len(places))
    pairs = itertools.combinations(range(len(places)), 2)
    graph.add_edges_from((i, j) for i, j in pairs if abs(places[i] - places[j]) <= length)
    return graph


@sizes("seeds", 40, 200)
def test_times_against_the_graph_of_all_pairs(seeds: int) -> None:
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 12))
        times, length = rng.integers(0, 20, size=n), int(rng.integers(0, 6))
        graph = joined(times.astype(float), length)
        model = MovingWindow.of_times(times, length)
        cliques = [0] * n
        for clique in nx.find_cliques(graph):
            for record in clique:
                cliques[record] = max(cliques[record], len(clique))
        assert model.m + 1 == max(cliques)
        assert model.effective_records() == n / max(cliques)
        assert model.variance_inflation("colouring") == pytest.approx(max(1.0, sum(cliques) / n))
        parts = list(nx.connected_components(graph))
        squares = sum(len(part) ** 2 for part in parts) / n
        assert model.variance_inflation("components") == pytest.approx(squares)
        budgets = rng.uniform(0.1, 1.0, size=n)
        near = [budgets[[k, *graph[k]]].sum() for k in range(n)]
        whole = [budgets[list(nx.node_connected_component(graph, k))].sum() for k in range(n)]
        assert model.leakage(budgets, adversary="uninformed") == pytest.approx(near, rel=1e-9)
        assert model.leakage(budgets) == pytest.approx(whole, rel=1e-9)
        assert (model.leakage(budgets) >= np.array(whole) * (1 - 1e-15)).all()
        groups = model.independent_groups()
        if groups is not None:
            assert sorted(groups.tolist()) == sorted(map(len, parts))


def test_even_times_are_a_window() -> None:
    for n, m in ((1, 3), (7, 0), (9, 2), (30, 7), (5, 9)):
        by_time, by_place = MovingWindow.of_times(range(n), m), MovingWindow(n, m)
        for bounded in (False, True):
            assert by_time.variance_inflation(bounded_differences=bounded) <= by_place.variance_inflation(
                bounded_differences=bounded
            ) * (1 + 1e-12)
        for adversary in ("informed", "uninformed"):
            found = by_time.leakage(0.1, adversary=adversary)
            assert found == pytest.approx(by_place.leakage(0.1, adversary=adversary))


def moving_law(reach: Reach, hidden: IntArray) -> list[IntArray]:
    """Return what each record of a moving average sees of fair coins, one for each place, up to its last one."""
    return [
        hidden[:, place : int(last) + 1] @ (1 << np.arange(int(last) + 1 - place))
        for place, last in enumerate(reach.last)
    ]


def coins(k: int) -> IntArray:
    return np.array(list(itertools.product((0, 1), repeat=k)), dtype=np.int64)


@sizes("seeds", 3, 40)
def test_no_functions_fluctuate_more(seeds: int) -> None:
    """Moving averages of coins with uneven reach: the worst functions of all that a record sees."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        times = np.sort(rng.integers(0, 9, size=6))
        model = MovingWindow.of_times(times, 2)
        reach = Reach(np.arange(6), np.minimum(np.searchsorted(times, times + 2, side="right") - 1, np.arange(6) + 2))
        hidden = coins(6)
        weights = np.full(len(hidden), 1 / len(hidden))
        worst = worst_inflation(weights, moving_law(reach, hidden), rng, starts=2)
        assert worst <= model.variance_inflation() * (1 + 1e-9)


def test_a_burst_pays_for_itself_alone() -> None:
    """Twenty copies at one time and eighty single records: exact, and five per cent less is refuted."""
    times = [0.0] * 20 + [10.0 * k for k in range(1, 81)]
    model = MovingWindow.of_times(times, 1.0)
    assert model.variance_inflation() == pytest.approx((20 * 20 + 80) / 100)
    assert model.variance_inflation(bounded_differences=True) == pytest.approx((20 * 20 + 80) / 100)
    assert model.effective_records() == 5.0
    chained = MovingWindow.of_times([0.0] * 20 + [float(k) for k in range(2, 82)], 1.0)
    assert chained.variance_inflation("components") == pytest.approx((400 + 6400) / 100)
    assert chained.variance_inflation() == pytest.approx((20 * 20 + 80 * 2) / 100)
    truth = (20 * 20 + 80 * 1) / 100  # the copies, and records that are independent after all
    assert 0.95 * model.variance_inflation() < truth <= model.variance_inflation() * (1 + 1e-9)


@sizes("seeds", 2, 24)
def test_statistics_with_bounded_differences(seeds: int) -> None:
    """Linear programs for the worst statistic of moving averages of three coins; copies attain blocks exactly."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        m = 1 + seed % 2
        hidden = coins(4 + m)
        tables = rng.integers(0, 2, size=(4, 2 ** (m + 1)))
        values = np.stack([tables[i][hidden[:, i : i + m + 1] @ (1 << np.arange(m + 1))] for i in range(4)], axis=1)
        law = np.bincount(values @ (8, 4, 2, 1), minlength=16) / len(hidden)
        worst = worst_of_bounded_differences(law.reshape(2, 2, 2, 2), rng)
        assert worst <= MovingWindow(4, m).variance_inflation(bounded_differences=True) * (1 + 1e-9)
    law = np.zeros((2, 2, 2))
    law[0, 0, 0] = law[1, 1, 1] = 0.5
    worst = worst_of_bounded_differences(law, np.random.default_rng(0))
    assert worst == pytest.approx(MovingWindow(3, 2).variance_inflation(bounded_differences=True), rel=1e-3)


def test_blocks_against_their_sum() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 17, 100):
        for _ in range(10):
            steps = np.sort(rng.random(int(rng.integers(0, 2 * n))))[::-1]
            beyond = float(rng.choice([0.0, 0.3]))
            sums = [float(steps[:r].sum()) + (beyond if r > len(steps) else 0.0) for r in range(n)]
            found = block_inflation(steps, beyond, n)
            every = []
            for length in range(1, n + 1):
                ends = [*range(length, n, length), n]
                starts = [0, *ends[:-1]]
                every.append(sum((b - a + sums[n - b]) ** 2 for a, b in zip(starts, ends, strict=True)) / n)
            assert min(every) <= found * (1 + 1e-12)
            assert found <= every[0] * (1 + 1e-9)
            assert found <= 1.2 * min(every)
            assert found <= max(1, 4 * (max(sums) + 1))
        for m in range(1, n):
            assert even_block_inflation(n, m) == pytest.approx(block_inflation(np.ones(m), 0.0, n), rel=1e-9)
    assert even_block_inflation(7, 9) == pytest.approx(7.0)
    assert even_block_inflation(6, 2) == pytest.approx(((3 + 2) ** 2 + 3**2) / 6)
    assert uneven_block_inflation(np.array([2, 2, 2])) == pytest.approx(3.0)


# Known records --------------------------------------------------------------------------------------------------


def joined_by_paths(graph: nx.Graph[int], known: set[int]) -> nx.Graph[int]:
    """Return the graph on the others: an edge where a path has known records only between its ends."""
    left = [k for k in graph if k not in known]
    found: nx.Graph[int] = nx.Graph()
    found.add_nodes_from(left)
    for a, b in itertools.combinations(left, 2):
        if nx.has_path(graph.subgraph([a, b, *known]), a, b):
            found.add_edge(a, b)
    place = {record: k for k, record in enumerate(sorted(left))}
    return nx.relabel_nodes(found, place)


@sizes("seeds", 15, 200)
def test_known_records_join_by_paths(seeds: int) -> None:
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 12))
        known = rng.choice(n, size=int(rng.integers(0, n)), replace=False).tolist()
        times, length = rng.integers(0, 20, size=n), int(rng.integers(0, 6))
        for model, graph in (
            (MovingWindow.of_times(times, length), joined(times.astype(float), length)),
            (MovingWindow(n, length), joined(np.arange(n, dtype=float), length)),
        ):
            given, rest = model.given(known), joined_by_paths(graph, set(known))
            near = [1 + len(rest[k]) for k in range(given.n)]
            assert given.leakage(0.1, "quilt", "uninformed") == pytest.approx(0.1 * np.array(near))
            largest = max(map(len, nx.find_cliques(rest)))
            assert given.effective_records() == pytest.approx(given.n / largest)
            assert given.variance_inflation() <= largest * (1 + 1e-12)
            parts = [nx.node_connected_component(rest, k) for k in range(given.n)]
            assert given.leakage(0.1) == pytest.approx(0.1 * np.array([len(part) for part in parts]))
        random: nx.Graph[int] = nx.gnp_random_graph(n, 0.3, seed=seed)
        by_graph, rest = DependencyGraph(random).given(known), joined_by_paths(random, set(known))
        near = [1 + len(rest[k]) for k in range(by_graph.n)]
        assert by_graph.leakage(0.1, "quilt", "uninformed") == pytest.approx(0.1 * np.array(near))
        assert by_graph.variance_inflation() <= 1 + 2 * rest.number_of_edges() / by_graph.n + 1e-9


@sizes("seeds", 6, 40)
def test_no_functions_fluctuate_more_given_known_records(seeds: int) -> None:
    """Moving averages of coins, two records known to be something: the law of the rest, and its worst functions."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        n, m = 7, 1
        hidden = coins(n + m)
        seen = [hidden[:, i : i + m + 1] @ (1 << np.arange(m + 1)) for i in range(n)]
        known = sorted(rng.choice(n, size=2, replace=False).tolist())
        fits, happened = np.ones(len(hidden), dtype=bool), int(rng.integers(len(hidden)))
        for record in known:
            table = rng.integers(0, 2, size=2 ** (m + 1))
            fits &= table[seen[record]] == table[seen[record][happened]]
        weights = np.full(int(fits.sum()), 1 / fits.sum())
        left = [k for k in range(n) if k not in known]
        worst = worst_inflation(weights, [seen[k][fits] for k in left], rng, starts=2)
        for model in (MovingWindow(n, m), DependencyGraph(nx.path_graph(n))):
            assert worst <= model.given(known).variance_inflation() * (1 + 1e-9)


def test_a_known_sum_joins_and_forgetting_it_is_caught() -> None:
    """Coins z, reach 2: records 0, 1, 4, 5 show z_2, z_2, z_4, z_5, and the sums z_2 + z_4 and z_4 + z_5 are known."""
    hidden = coins(6)
    fits = (hidden[:, 2] == hidden[:, 4]) & (hidden[:, 4] == hidden[:, 5])
    values = [hidden[fits, k] for k in (2, 2, 4, 5)]
    worst = worst_inflation(np.full(int(fits.sum()), 1 / fits.sum()), values, np.random.default_rng(0))
    assert worst == pytest.approx(4.0, rel=5e-3)
    for model in (MovingWindow(6, 2), DependencyGraph(joined(np.arange(6.0), 2.0)), MixingSeries([1.0, 1.0], 6)):
        assert model.given([2, 3]).variance_inflation() == pytest.approx(4.0)
        assert model.variance_inflation() == pytest.approx(3.0)  # without the joins: too small
    with pytest.raises(RouteUnavailable, match="once records between them are known"):
        MovingWindow(9, 1).given([4]).leakage(0.1, "quilt")


def test_hubs_that_would_join_too_many_leave_groups() -> None:
    star = DependencyGraph(nx.star_graph(5_000))
    given = star.given([0])
    assert given.variance_inflation() == 5_000.0
    groups = given.independent_groups()
    assert groups is not None
    assert groups.tolist() == [5_000]


# Times of all kinds ---------------------------------------------------------------------------------------------


@for_each(
    ("times", "length"),
    [
        ([3, 0, 1, 9], 2),
        ([3.0, 0.0, 1.0, 9.0], 2.0),
        (pd.Series([3, 0, 1, 9], index=list("abcd")), 2),
        (np.array([3, 0, 1, 9], dtype=np.int8), np.int64(2)),
        (np.array([3, 0, 1, 9], dtype=np.uint8), 2),
        (pd.to_datetime(["2024-01-04", "2024-01-01", "2024-01-02", "2024-01-10"]), pd.Timedelta(days=2)),
        (pd.to_datetime(["2024-01-04", "2024-01-01", "2024-01-02", "2024-01-10"]).as_unit("s"), pd.Timedelta("2D")),
        ([datetime.date(2024, 1, day) for day in (4, 1, 2, 10)], datetime.timedelta(days=2)),
        ([datetime.datetime(2024, 1, day) for day in (4, 1, 2, 10)], np.timedelta64(2, "D")),
        ([datetime.datetime(2024, 1, day, tzinfo=datetime.UTC) for day in (4, 1, 2, 10)], pd.Timedelta("2D")),
        (pd.to_datetime(["2024-01-04", "2024-01-01", "2024-01-02", "2024-01-10"], utc=True), pd.Timedelta("2D")),
        ([pd.Timestamp(2024, 1, day) for day in (4, 1, 2, 10)], pd.Timedelta("2D")),
        (np.array(["2024-01-04", "2024-01-01", "2024-01-02", "2024-01-10"], dtype="M8[D]"), np.timedelta64(2, "D")),
        (pd.to_timedelta([3, 0, 1, 9], unit="D"), pd.Timedelta("2D")),
        (np.array([3, 0, 1, 9], dtype="m8[D]"), pd.Timedelta("2D")),
    ],
)
def test_kinds_of_times(times: Any, length: Any) -> None:
    model = MovingWindow.of_times(times, length)
    assert model.leakage(0.1, adversary="uninformed") == pytest.approx([0.2, 0.2, 0.3, 0.1])
    assert model.leakage(0.1) == pytest.approx([0.3, 0.3, 0.3, 0.1])
    assert model.describe().startswith("4 records in time, at most 2 in any window of 2")
    assert model.fingerprint() == MovingWindow.of_times([3, 0, 1, 9], 2).fingerprint()


def test_what_is_within_rounding_of_the_length_is_within_it() -> None:
    assert 0.8 - 0.6 > 0.2
    assert MovingWindow.of_times([0.6, 0.8], 0.2).m == 1
    assert MovingWindow.of_times([2**60, 2**60 + 1], 0).m == 0  # integers are exact
    assert MovingWindow.of_times([5, 5, 6], 0).m == 1
    late = pd.Timestamp.max - pd.Timedelta(days=1)
    assert MovingWindow.of_times([pd.Timestamp.min + pd.Timedelta(days=1), late], pd.Timedelta.max).m in (0, 1)
    assert MovingWindow.of_times([late, late + pd.Timedelta(hours=1)], pd.Timedelta.max).m == 1


@for_each(
    ("make", "message"),
    [
        (lambda: MovingWindow(0, 1), "n must be .*; got 0"),
        (lambda: MovingWindow(3, -1), "m must be an integer of at least 0; got -1"),
        (lambda: MovingWindow(3, 0.5), "m must be .*; got 0.5"),  # type: ignore[arg-type]
        (lambda: MovingWindow.of_times([], 1), "times is missing"),
        (lambda: MovingWindow.of_times([1.0, None], 1), "times must be .*; got a missing key, of record 1"),
        (lambda: MovingWindow.of_times([1.0, float("nan")], 1), "times must be .*; got a missing key, of record 1"),
        (lambda: MovingWindow.of_times([1.0, float("inf")], 1), "times must be finite times; got inf for record 1"),
        (lambda: MovingWindow.of_times(["2024-01-01"], 1), "times must be .*; got texts"),
        (lambda: MovingWindow.of_times([[1], [2]], 1), "times must be .*; got an array of shape"),
        (lambda: MovingWindow.of_times({1: 2}, 1), "times must be .*; got a mapping"),
        (
            lambda: MovingWindow.of_times([pd.NaT, pd.Timestamp(2024, 1, 1)], pd.Timedelta("1D")),
            "times must be .*; got a missing key",
        ),
        (lambda: MovingWindow.of_times([1, 2], -1), "length must be a finite number, not negative.*; got -1"),
        (lambda: MovingWindow.of_times([1, 2], float("inf")), "length must be .*; got inf"),
        (lambda: MovingWindow.of_times([1, 2], float("nan")), "length must be .*; got nan"),
        (lambda: MovingWindow.of_times([1, 2], pd.Timedelta("1D")), "as the times are numbers"),
        (lambda: MovingWindow.of_times([pd.Timestamp(2024, 1, 1)], 1), "length must be a time difference.*; got 1"),
        (
            lambda: MovingWindow.of_times([pd.Timestamp(2024, 1, 1)], pd.Timedelta("-1D")),
            "length must be .*; got Timedelta",
        ),
        (lambda: MovingWindow.of_times([pd.Timestamp(2024, 1, 1)], np.timedelta64("NaT")), "length must be"),
        (lambda: MovingWindow.of_times([pd.Timestamp(2024, 1, 1)], np.timedelta64(2, "M")), "length must be"),
        (lambda: MovingWindow.of_times(pd.period_range("2024", periods=2), pd.Timedelta("1D")), "to_timestamp"),
        (
            lambda: MovingWindow.of_times([1, pd.Timestamp(2024, 1, 1)], 1),
            "times must be .*; got keys of several kinds",
        ),
        (lambda: MovingWindow.of_times([True, False], 1), "times must be"),
    ],
)
def test_refusals(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.statistical
def test_samples_have_the_dependence() -> None:
    """Error rate 1e-9: records out of reach agree half of the time, near ones more often."""
    rng = np.random.default_rng(4)
    draws = 3000
    low, high = stats.binom.ppf(1e-10, draws, 0.5), stats.binom.isf(1e-10, draws, 0.5)
    for model, far, near in ((MovingWindow(4, 2), 3, 1), (MovingWindow.of_times([0, 5, 1, 7], 4), 3, 2)):
        found = np.array([model.sample(rng) for _ in range(draws)])
        assert low <= (found[:, 0] == found[:, far]).sum() <= high
        assert (found[:, 0] == found[:, near]).sum() > high
        assert set(np.unique(found)) == {0, 1}


def test_long_series_take_no_memory() -> None:
    """Numbers about 10^9 records: nothing of their length is made."""
    import tracemalloc

    tracemalloc.start()
    assert MovingWindow(10**9, 10**8).variance_inflation(bounded_differences=True) == pytest.approx(4e8, rel=0.1)
    model = MovingWindow(10**9, 20)
    assert model.budget(0.5) == pytest.approx(0.5e-9, rel=1e-9)
    assert model.budget(0.5, adversary="uninformed") == pytest.approx(0.5 / 41, rel=1e-9)
    assert model.variance_inflation() == 21.0
    assert model.variance_inflation(bounded_differences=True) == pytest.approx(80, rel=1e-6)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_spaced_records_are_further_apart_than_the_window() -> None:
    assert MovingWindow(10, 3).spaced().tolist() == [0, 4, 8]
    assert MovingWindow(3, 7).spaced().tolist() == [0]
    times = np.random.default_rng(0).permutation(np.r_[np.arange(20) / 7, np.arange(0.0, 90.0, 4.5)])
    model = MovingWindow.of_times(times, 4.0)
    at = times[model.spaced()]
    assert model.even is False
    assert (np.diff(at) > 4.0).all()
    assert at[0] == times.min()
