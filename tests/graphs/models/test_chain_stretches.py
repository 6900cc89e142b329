"""One budget for all unknown records of a chain: exact leakages, chains by themselves, and the way record by record."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from graphs import MarkovChain, exact_leakage
from tests.cases import for_each
from tests.oracles.chains import random_chain

TWO = [[0.9, 0.1], [0.2, 0.8]]
METHODS = ("group", "messages", "long-edges", "quilt", "quilt-contracted")


@pytest.mark.slow
def test_no_mechanism_leaks_more() -> None:
    """Every record and every further knowledge of an adversary, by linear programs: any start, with zeros too."""
    rng = np.random.default_rng(3)
    for number in range(30):  # each number of states, kind of law and place of what is known with each other
        matrix, law = random_chain(rng, 2 + number % 2, number % 3 == 0, ("any", "few")[number % 2])
        chain = MarkovChain(matrix, 4, law)
        known = [(0,), (1,), (2,), (3,), (1, 3)][number % 5]
        rest, epsilon = chain.given(known), float(rng.choice([0.1, 0.7]))
        full = np.where(np.isin(np.arange(4), known), 0.0, epsilon)
        bounds = {method: rest.leakage(epsilon, method) for method in METHODS}
        for place, record in enumerate(rest.records.tolist()):
            others = [j for j in rest.records.tolist() if j != record]
            subsets = itertools.chain.from_iterable(itertools.combinations(others, k) for k in range(len(others) + 1))
            truth = max(exact_leakage(chain, full, record, known + more) for more in subsets)
            assert all(truth <= bound[place] + 1e-7 for bound in bounds.values())


def test_stretches_are_chains_by_themselves() -> None:
    rest = MarkovChain(TWO, 60).given([0, 20, 40])
    for method in METHODS:
        found, alone = rest.leakage(0.1, method), MarkovChain(TWO, 19).leakage(0.1, method)
        np.testing.assert_allclose(found[:19], alone, rtol=1e-12)
        np.testing.assert_array_equal(found, np.tile(found[:19], 3))


@pytest.mark.slow
@for_each("initial", [None, [1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
def test_the_same_as_record_by_record_or_less(initial: list[float] | None) -> None:
    """Budgets that differ in one bit take the other way; first edges have diameters of their own."""
    matrix = [[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.0, 0.6, 0.4]]
    rng = np.random.default_rng(3)
    chain = MarkovChain(matrix, 300, initial)
    rest = chain.given(np.flatnonzero(rng.random(300) < 0.08).tolist())
    other = np.full(rest.n, 0.05)
    other[0] = np.nextafter(0.05, 1)
    for method in METHODS:
        np.testing.assert_array_less(rest.leakage(0.05, method), rest.leakage(other, method) * (1 + 1e-9))
    for method in ("group", "messages", "long-edges"):
        np.testing.assert_allclose(rest.leakage(0.05, method), rest.leakage(other, method), rtol=1e-9)
    assert rest.budget(0.5, reduce="mean") >= rest.budget(0.5)


@pytest.mark.slow
def test_many_records_and_many_stretches() -> None:
    known = np.flatnonzero(np.random.default_rng(0).random(50_000) < 0.02).tolist()
    rest = MarkovChain(TWO, 50_000).given(known)
    budget = rest.budget(0.5)
    assert rest.leakage(budget).max() <= 0.5 < rest.leakage(budget * 1.001).max()
    assert MarkovChain(TWO, 50_000).budget(0.5) <= budget
