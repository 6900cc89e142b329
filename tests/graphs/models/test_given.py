"""Known records against brute-force conditioning and linear programs."""

import itertools
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from graphs import (
    ArgumentError,
    Communities,
    DependenceModel,
    FactorGraph,
    Given,
    Groups,
    HiddenMarkov,
    Independent,
    MarkovChain,
    RouteUnavailable,
    exact_leakage,
)
from graphs.models.markov_field import MarkovField
from tests.cases import for_each
from tests.sizes import corners

FloatArray = npt.NDArray[np.float64]
TWO = [[0.9, 0.1], [0.2, 0.8]]


def small_models(rng: np.random.Generator) -> list[DependenceModel]:
    walk = rng.dirichlet(np.ones(3), size=3)
    walk[0, 2] = 0
    walk /= walk.sum(axis=1, keepdims=True)
    graph = nx.gnp_random_graph(5, 0.6, seed=int(rng.integers(1000)))
    factors = [((0, 1, 2), rng.uniform(0.3, 1, (2, 2, 2))), ((2, 3), rng.uniform(0.3, 1, (2, 2))), ((4,), [0.3, 0.7])]
    return [
        MarkovChain(rng.dirichlet(np.ones(2), size=2), 5, rng.dirichlet(np.ones(2))),
        MarkovChain(walk, 4, [0.2, 0.3, 0.5]),
        HiddenMarkov(rng.dirichlet(np.ones(2), size=2), 5, emission=rng.dirichlet(np.ones(2), size=2)),
        Communities(list("aabab"), emission=rng.dirichlet(np.ones(2), size=2)),
        MarkovField.ising(graph, coupling=0.4, field=0.2),
        FactorGraph([2] * 5, factors),
    ]


@for_each("case", range(6))
@pytest.mark.parametrize("known", corners([pytest.param(known) for known in [(0,), (2,), (1, 3), (0, 3)]], 2))
def test_no_mechanism_leaks_more_given_known_records(case: int, known: tuple[int, ...]) -> None:
    rng = np.random.default_rng(10 * case + len(known))
    model = small_models(rng)[case]
    given = model.given(known)
    epsilon = rng.uniform(0.1, 0.8, size=given.n)
    full = np.zeros(model.n)
    full[given.records] = epsilon
    bound = given.leakage(epsilon)
    np.testing.assert_array_equal(given.leakage(epsilon, adversary="uninformed"), bound)
    for place, record in enumerate(given.records.tolist()):
        others = [int(j) for j in given.records if j != record]
        for size in range(len(others) + 1):
            for more in itertools.combinations(others, size):
                assert exact_leakage(model, full, record, known + more) <= bound[place] + 1e-7
    unaware = model.leakage(full)[given.records]
    assert (bound <= unaware * (1 + 1e-12)).all()


@for_each("case", range(6))
def test_inflation_bounds_every_tail_of_the_conditional_law(case: int) -> None:
    rng = np.random.default_rng(50 + case)
    model = small_models(rng)[case]
    table = model.joint()
    known = {1: 0, 3: 1}
    given = model.given(known)
    conditional = table[:, 0, :, 1]
    conditional = conditional / conditional.sum()
    np.testing.assert_allclose(given.joint(), conditional, atol=1e-14)
    values = [rng.integers(0, 2, size=size).astype(float) for size in conditional.shape]
    means = np.sum(np.meshgrid(*values, indexing="ij"), axis=0) / given.n
    centred = means - float((conditional * means).sum())
    for bounded in (False, True):
        inflation = given.variance_inflation(bounded_differences=bounded)
        for t in np.unique(np.abs(centred)):
            tail = float(conditional[np.abs(centred) >= t - 1e-12].sum())
            assert tail <= 2 * np.exp(-2 * given.n * t**2 / inflation) + 1e-12


def test_a_known_record_cuts_a_chain() -> None:
    chain = MarkovChain(TWO, 9)
    given = chain.given([4])
    for method in ("messages", "long-edges"):
        np.testing.assert_allclose(given.leakage(0.1, method)[:4], MarkovChain(TWO, 4).leakage(0.1), rtol=1e-12)
    assert given.leakage(0.1, "group").max() == pytest.approx(0.4)
    assert np.asarray(given.independent_groups()).tolist() == [4, 4]
    assert given.variance_inflation("components") == pytest.approx(4)


def test_a_known_node_cuts_a_graph() -> None:
    star = MarkovField.ising(nx.star_graph(5), coupling=0.7)
    given = star.given([0])
    np.testing.assert_allclose(given.leakage(0.3), 0.3)
    assert given.variance_inflation() == pytest.approx(1)
    path = MarkovField.ising(nx.path_graph(9), coupling=0.3)
    cut = path.given([4])
    np.testing.assert_allclose(cut.leakage(0.1)[:4], MarkovField.ising(nx.path_graph(4), 0.3).leakage(0.1), rtol=1e-9)
    assert cut.variance_inflation("interdependence") < path.variance_inflation("interdependence")


def test_groups_keep_their_independence() -> None:
    given = Groups([0, 0, 0, 1, 1]).given([0, 3])
    np.testing.assert_allclose(given.leakage(0.1), [0.2, 0.2, 0.1])
    assert np.asarray(given.independent_groups()).tolist() == [2, 1]
    assert given.variance_inflation() == pytest.approx(5 / 3)
    assert Independent(4).given([1]).variance_inflation() == pytest.approx(1)


def test_routes_for_an_adversary_who_knows_nothing_are_void() -> None:
    hidden = HiddenMarkov(TWO, 9).given([4])
    with pytest.raises(RouteUnavailable, match="void"):
        hidden.leakage(0.1, "quilt", "uninformed")
    assert hidden.variance_inflation() == hidden.variance_inflation("influences") < 8
    with pytest.raises(RouteUnavailable, match="no such route"):
        MarkovChain(TWO, 9).given([4]).variance_inflation("spectral")


def test_words_and_identity() -> None:
    chain = MarkovChain(TWO, 9)
    given = chain.given([7, 2])
    assert given.condition == "conditional on 2 known records of 9 (2, 7): about E[q(X) | known], not about E q(X)"
    assert given.condition in given.describe()
    assert given.records.tolist() == [0, 1, 3, 4, 5, 6, 8]
    assert given.known.tolist() == [2, 7]
    assert given.model is chain
    nested = chain.given([2]).given([6])
    assert nested.known.tolist() == [2, 7]
    assert nested.fingerprint() == given.fingerprint() != chain.given([2]).fingerprint()
    states = chain.given({2: 0}).given({6: 1})
    assert states.fingerprint() == chain.given({2: 0, 7: 1}).fingerprint()
    nobody = chain.given([])
    np.testing.assert_allclose(nobody.leakage(0.1), chain.leakage(0.1), rtol=1e-12)
    assert given.budget(0.5) > 0
    assert set(given.explain(0.5).index) == set(chain.methods)


def test_long_chains_with_many_known_records() -> None:
    given = MarkovChain(TWO, 100_000).given(range(0, 100_000, 10))
    assert given.leakage(0.1, "messages").max() == pytest.approx(MarkovChain(TWO, 9).leakage(0.1).max())


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [False, True])
def test_samples_follow_the_conditional_law(wrong: bool) -> None:
    """Chi-square at 1e-9, for a chain and by tables; the wrong states must be rejected."""
    rng = np.random.default_rng(3)
    for model in (MarkovChain(TWO, 5, states=["a", "b"]), HiddenMarkov(TWO, 5, emission=TWO)):
        a, b = ("a", "b") if isinstance(model, MarkovChain) else (0, 1)
        given: Any = model.given({1: a, 3: b})
        sampled: Any = model.given({1: b, 3: b}) if wrong else given
        draws = np.array([sampled.sample(rng) for _ in range(8000)])
        counts = np.bincount((draws == b) @ [4, 2, 1], minlength=8)
        p_value = stats.chisquare(counts, given.joint().ravel() * len(draws)).pvalue
        assert (p_value < 1e-9) == wrong


@for_each(
    ("make", "match"),
    [
        (lambda: MarkovChain(TWO, 3).given([3]), "records from 0 to 2"),
        (lambda: MarkovChain(TWO, 3).given([-1]), "known must be .*; got -1"),
        (lambda: MarkovChain(TWO, 3).given([0, 0]), "named twice"),
        (lambda: MarkovChain(TWO, 3).given([0, 1, 2]), "fewer than all records"),
        (lambda: MarkovChain(TWO, 3).given(1), "numbers of records"),  # type: ignore[arg-type]
        (lambda: MarkovChain(TWO, 3).given([0]).sample(np.random.default_rng(0)), "without their states"),
        (lambda: MarkovChain(TWO, 3).given([0]).given({0: 1}), "states of 1 of 2"),
        (lambda: MarkovChain(TWO, 3).given({0: 5}).sample(np.random.default_rng(0)), "state 5"),
        (
            lambda: MarkovChain([[1, 0], [0, 1]], 3, [1, 0]).given({0: 0, 2: 1}).sample(np.random.default_rng(0)),
            "cannot occur together",
        ),
        (lambda: MarkovChain([[1, 0], [0, 1]], 3, [1, 0]).given({0: 0, 2: 1}).joint(), "cannot occur together"),
        (lambda: MarkovField.ising(nx.path_graph(3), 1.0).given({0: 7}).joint(), "below 2"),
        (lambda: Given("chain", [0]), "a dependence model"),  # type: ignore[arg-type]
    ],
)
def test_refusals(make: Any, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        make()
