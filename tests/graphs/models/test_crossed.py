"""Crossed effects against enumeration: moment generating functions of the worst functions, and linear programs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import stats

from graphs import ArgumentError, Crossed, Groups, RouteUnavailable, exact_leakage
from graphs.models.crossed import SharedEffects
from tests.cases import for_each
from tests.oracles.moments import worst_inflation
from tests.sizes import sizes

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Levels = list[list[int]]


def coins(k: int) -> IntArray:
    return np.array(list(itertools.product((0, 1), repeat=k)), dtype=np.int64).reshape(-1, k)


def hidden_of(levels: Levels, noise: bool = True) -> tuple[FloatArray, list[IntArray]]:
    """Return the weights of all outcomes of fair effects and noise, and what each record sees, as a number."""
    starts = np.cumsum([0, *(max(column) + 1 for column in levels)])
    n = len(levels[0])
    outcomes = coins(int(starts[-1]) + (n if noise else 0))
    seen = []
    for record in range(n):
        columns = [start + column[record] for start, column in zip(starts, levels, strict=False)]
        columns += [int(starts[-1]) + record] if noise else []
        seen.append(outcomes[:, columns] @ (1 << np.arange(len(columns))))
    return np.full(len(outcomes), 1 / len(outcomes)), seen


def random_levels(rng: np.random.Generator, n: int, factors: int) -> Levels:
    return [np.unique(rng.integers(0, 3, size=n), return_inverse=True)[1].tolist() for _ in range(factors)]


@sizes("seeds", 1, 16)
@pytest.mark.parametrize("factors", [2, 3])
def test_no_functions_fluctuate_more(factors: int, seeds: int) -> None:
    """All functions of effects and noise are 0-1 tables; the worst are found by exact ascent."""
    for seed in range(seeds):
        rng = np.random.default_rng((seed, factors))
        levels = random_levels(rng, 5 if factors == 2 else 4, factors)
        weights, seen = hidden_of(levels, noise=False)
        model = Crossed.of_factors({str(k): column for k, column in enumerate(levels)})
        worst = worst_inflation(weights, seen, rng)
        assert worst <= model.variance_inflation() * (1 + 1e-9)
        assert worst <= model.variance_inflation(bounded_differences=True) * (1 + 1e-9)


@pytest.mark.slow
def test_a_full_table_attains_it_and_five_per_cent_less_is_refuted() -> None:
    rng = np.random.default_rng(0)
    levels = [[0, 0, 1, 1], [0, 1, 0, 1]]
    weights, seen = hidden_of(levels, noise=True)
    bound = Crossed(levels[0], levels[1]).variance_inflation()
    assert bound == pytest.approx(2.0, rel=1e-9)
    worst = worst_inflation(weights, seen, rng)
    assert 0.95 * bound < worst <= bound * (1 + 1e-9)


def test_three_factors_need_no_colouring() -> None:
    """Four records share an effect pairwise, so a colouring needs four colours; the inflation is 2."""
    levels = [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]]
    model = Crossed.of_factors({"user": levels[0], "item": levels[1], "day": levels[2]})
    assert model.variance_inflation() == pytest.approx(2.0, rel=1e-9)
    assert model.effective_records() == 2.0
    weights, seen = hidden_of(levels, noise=False)
    worst = worst_inflation(weights, seen, np.random.default_rng(0))
    assert 0.95 * 2 < worst <= 2 * (1 + 1e-9)


def emitted(levels: Levels, chances: list[FloatArray], weight: FloatArray) -> tuple[FloatArray, list[IntArray]]:
    """Return the law of binary records, where `chances[r][a, b]` is the probability of a one."""
    users, items = (max(column) + 1 for column in levels)
    n = len(levels[0])
    law = np.zeros(2**n)
    values = coins(n)
    for state in coins(users + items):
        p = np.array([chances[r][state[levels[0][r]], state[users + levels[1][r]]] for r in range(n)])
        law += np.prod(np.where(state, weight, 1 - weight)) * np.prod(np.where(values == 1, p, 1 - p), axis=1)
    return law, [values[:, r] for r in range(n)]


@sizes("seeds", 2, 40)
@pytest.mark.parametrize("spread", [(0.5, 0.5), (0.3, 0.8), (1.0, 0.4)])
def test_small_effects(spread: tuple[float, float], seeds: int) -> None:
    """Laws with the largest differences that the sizes allow, uneven weights of the states, optimised functions."""
    s, t = spread
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        levels = random_levels(rng, 5, 2)
        chances = []
        for _ in range(5):
            low = rng.uniform(0, max(0.0, 1 - s - t))
            signs = rng.integers(0, 2, size=2)
            table = low + np.array([[0, t], [s, s + t]])
            table = np.minimum(table, 1.0)[:: 1 - 2 * signs[0], :: 1 - 2 * signs[1]]
            chances.append(table)
        law, seen = emitted(levels, chances, rng.uniform(0.3, 0.7, size=sum(max(c) + 1 for c in levels)))
        model = Crossed(levels[0], levels[1], s, t)
        worst = worst_inflation(law, seen, rng)
        assert worst <= model.variance_inflation() * (1 + 1e-9)
        assert worst <= model.variance_inflation("crossed") * (1 + 1e-9)


def test_small_effects_in_closed_form() -> None:
    """One effect of size s on d records: (1 - s^2) + s^2 d, by the variance of a sum; 5 per cent less is refuted."""
    d, s = 200, 0.5
    truth = (1 - s**2) + s**2 * d
    bound = Crossed(np.zeros(d, dtype=int), np.arange(d), s, 0.0).variance_inflation()
    assert truth <= bound <= 1.01 * truth
    assert 0.95 * bound < truth
    many = Crossed(np.repeat(np.arange(50), d), np.arange(50 * d), s, 1.0)  # own items: noise under another name
    assert truth <= many.variance_inflation() <= 1.01 * truth


def test_the_choice_of_effects_that_are_integrated_first() -> None:
    """Rare users of full size and frequent items of a small one: both forms alone are worse."""
    users, items = np.repeat(np.arange(2000), 3), np.tile(np.arange(60), 100)
    model = Crossed(users, items, 1.0, 0.1)
    assert model.variance_inflation() == pytest.approx(3 + 0.01 * 100, rel=1e-6)
    assert model.variance_inflation("crossed") == pytest.approx(1 + 3 + 0.01 * 100, rel=1e-6)
    assert Crossed(users, items).variance_inflation() == pytest.approx(100, rel=1e-6)
    truth = 0.99 * 3 + 0.01 * 100  # each value its item's coin with probability 0.1, else its user's
    assert truth <= model.variance_inflation()


def test_exponents_are_feasible_in_exact_arithmetic() -> None:
    """Hoelder's exponents: their inverses sum to at most 1 for every effect, by fractions; their total counts."""
    from fractions import Fraction

    rng = np.random.default_rng(3)
    users, items = rng.zipf(1.6, size=300) % 40, rng.zipf(1.4, size=300) % 50
    shared = SharedEffects.crossed([np.unique(x, return_inverse=True)[1] for x in (users, items)], [1.0, 1.0])
    found = shared._shares(np.ones(600, dtype=bool), np.ones(300))
    sums = [Fraction(0)] * shared.n_effects
    for record, effect in zip(shared.records, shared.effects, strict=True):
        sums[effect] += 1 / Fraction(float(found.exponents[record]))
    assert max(sums) <= 1
    assert float(sum(map(Fraction, found.exponents.tolist()))) / 300 <= shared.for_means()


def test_skewed_ratings_are_near_the_truth() -> None:
    """Each rating copies its user's coin or its item's: the variance of that mean is within 5 per cent."""
    users, items = skewed_ratings()
    model = Crossed(users, items)
    degrees = [np.bincount(x) for x in (users, items)]
    largest = max(int(d.max()) for d in degrees)
    copied = degrees[0][users] >= degrees[1][items]
    truth = sum(
        float((np.bincount(x[rows]).astype(float) ** 2).sum()) for x, rows in ((users, copied), (items, ~copied))
    ) / len(users)
    assert truth <= model.variance_inflation() <= 1.05 * truth
    assert model.effective_records() == len(users) / largest


def skewed_ratings(n: int = 40_313, seed: int = 7) -> tuple[IntArray, IntArray]:
    rng = np.random.default_rng(seed)
    found = []
    for count, power in ((2000, 0.8), (3000, 0.6)):
        law = 1 / np.arange(1, count + 1) ** power
        found.append(rng.choice(count, n, p=law / law.sum()))
    return found[0], found[1]


@sizes("seeds", 10, 30)
def test_effective_records(seeds: int) -> None:
    """ln E exp(u q) against so many coins, for 0-1 functions; copies attain it, five per cent more is refuted."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        levels = random_levels(rng, 5, 2)
        weights, seen = hidden_of(levels)
        values = np.stack([rng.integers(0, 2, size=8)[column] for column in seen], axis=1).astype(float)
        assert excess(values.mean(axis=1), weights, Crossed(levels[0], levels[1]).effective_records()) <= 1e-12
    copies = coins(2)[:, [0, 0, 1, 1]].mean(axis=1)
    model = Crossed([0, 0, 1, 1], [0, 1, 0, 1])
    assert abs(excess(copies, np.full(4, 0.25), model.effective_records())) <= 1e-12
    assert excess(copies, np.full(4, 0.25), 1.05 * model.effective_records()) > 1e-3


def excess(means: FloatArray, weights: FloatArray, effective: float) -> float:
    p = float(weights @ means)
    levers = (-30.0, -6.0, -1.5, -0.2, 0.2, 1.5, 6.0, 30.0)
    return max(
        math.log(weights @ np.exp(u * means)) - effective * math.log1p(p * math.expm1(u / effective)) for u in levers
    )


@sizes("seeds", 5, 30)
def test_no_functions_fluctuate_more_given_known_records(seeds: int) -> None:
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        levels = random_levels(rng, 6, 2)
        weights, seen = hidden_of(levels, noise=False)
        known = rng.choice(6, size=2, replace=False)
        fits, happened = np.ones(len(weights), dtype=bool), int(rng.integers(len(weights)))
        for record in known:
            table = rng.integers(0, 2, size=4)
            fits &= table[seen[record]] == table[seen[record][happened]]
        left = np.setdiff1d(np.arange(6), known)
        given = Crossed(levels[0], levels[1]).given(known.tolist())
        law = weights[fits] / weights[fits].sum()
        worst = worst_inflation(law, [seen[r][fits] for r in left], rng)
        assert worst <= given.variance_inflation() * (1 + 1e-9)
        assert worst <= given.variance_inflation(bounded_differences=True) * (1 + 1e-9)
        records = given.effective_records()
        assert records is not None
        values = np.stack([rng.integers(0, 2, size=4)[seen[r][fits]] for r in left], axis=1).mean(axis=1)
        assert excess(values, law, records) <= 1e-12


def test_a_known_record_ties_effects() -> None:
    """Known: the exclusive or of two coins. Twenty records are then copies of one, where the effects alone say ten."""
    users = [0, *[0] * 10, *range(1, 11)]
    items = [0, *range(1, 11), *[0] * 10]
    model = Crossed(users, items)
    assert model.given([]).variance_inflation() == pytest.approx(model.variance_inflation())
    assert 10 < model.variance_inflation() <= 11
    given = model.given([0])
    assert given.variance_inflation() == pytest.approx(20, rel=1e-9)
    assert given.effective_records() == 1.0
    assert model.given([3]).variance_inflation() == pytest.approx(Crossed(users[:20], items[:20]).variance_inflation())
    weak = Crossed(users, items, 0.3, 0.2).given([0])
    single = (10 * 0.3**2 + 10 * 0.2**2) / 20  # effects of one record each, which its own noise contains for means
    assert weak.variance_inflation("crossed") == pytest.approx(1 + (10 * 0.3 + 10 * 0.2) ** 2 / 20 + single)
    assert weak.variance_inflation() == pytest.approx(1 + (10 * 0.3 + 10 * 0.2) ** 2 / 20)


@pytest.mark.slow
def test_no_mechanism_leaks_more() -> None:
    """Linear programs: shared effects for who knows nothing, components for who knows records."""
    rng = np.random.default_rng(5)
    for levels in ([[0, 0, 1, 2], [0, 1, 1, 2]], [[0, 0, 1, 1], [0, 1, 0, 1]], [[0, 1, 2, 2], [0, 0, 1, 1]]):
        model = Crossed(levels[0], levels[1])
        weights, seen = hidden_of(levels, noise=False)
        tables = [rng.integers(0, 2, size=4) for _ in range(4)]
        tables = [table if 0 < table.sum() < 4 else np.array([0, 1, 1, 0]) for table in tables]
        joint = np.zeros((2, 2, 2, 2))
        np.add.at(joint, tuple(table[column] for table, column in zip(tables, seen, strict=True)), weights)
        budgets = rng.uniform(0.1, 0.6, size=4)
        nothing, any_set = model.leakage(budgets, adversary="uninformed"), model.leakage(budgets)
        for record in range(4):
            assert exact_leakage(joint, budgets, record) <= nothing[record] + 1e-7
            for size in range(1, 4):
                for known in itertools.combinations([k for k in range(4) if k != record], size):
                    assert exact_leakage(joint, budgets, record, known) <= any_set[record] + 1e-7
    copies = np.zeros((2, 2))
    copies[0, 0] = copies[1, 1] = 0.5
    assert exact_leakage(copies, 0.3, 0) == pytest.approx(Crossed([0, 0], [0, 1]).leakage(0.3)[0], rel=1e-6)


def test_a_known_sum_opens_the_way_to_records_that_share_nothing() -> None:
    """Record 1 is the exclusive or of the coins of records 0 and 2: who knows it learns about 0 from 2."""
    joint = np.zeros((2, 2, 2))
    for a, b in itertools.product((0, 1), repeat=2):
        joint[a, a ^ b, b] = 0.25
    model = Crossed([0, 0, 1], [0, 1, 1])
    assert exact_leakage(joint, 0.2, 0) <= model.leakage(0.2, adversary="uninformed")[0] + 1e-7
    assert exact_leakage(joint, 0.2, 0, [1]) == pytest.approx(0.4, abs=1e-6)
    assert model.leakage(0.2)[0] >= 0.4
    with pytest.raises(RouteUnavailable, match="tie the effects"):
        model.leakage(0.2, "quilt")


def test_words_and_kinds_of_labels() -> None:
    table = pd.DataFrame({"user": ["x", "y", "x"], "item": pd.to_datetime(["2024-01-01"] * 2 + ["2024-01-02"])})
    model = Crossed(table["user"], table["item"])
    assert model.describe() == "3 records of 2 users crossed with 2 items, at most 2 of one"
    assert model.fingerprint() == Crossed.of_factors(table).fingerprint() == Crossed([1, 2, 1], [0, 0, 1]).fingerprint()
    assert model.fingerprint() != Crossed(table["user"], table["item"], 0.5).fingerprint()
    moved = table["item"].iloc[::-1]
    assert Crossed(table["user"], moved).fingerprint() == model.fingerprint()  # aligned by the index
    assert model.factors == ("users", "items")
    assert Crossed.of_factors(table, {"user": 0.5, "item": 1}).effects == (0.5, 1.0)
    assert Crossed([(1, "a"), (2, "b")], [frozenset(), 3]).n == 2
    assert "effects of size 0.5, 1" in Crossed.of_factors(table, {"user": 0.5, "item": 1}).describe()
    assert Crossed.of_factors({"user": [0, 0, 1]}).describe() == "3 records of 2 levels of user, at most 2 of one"
    assert Crossed.of_factors({"user": [0, 0, 1]}).variance_inflation() == pytest.approx(
        Groups([0, 0, 1]).variance_inflation()
    )


def test_corners() -> None:
    one = Crossed(["u"], ["i"])
    assert (one.variance_inflation(), one.effective_records(), one.leakage(0.3).tolist()) == (1.0, 1.0, [0.3])
    apart = Crossed(range(5), range(5))
    assert apart.variance_inflation() == pytest.approx(1.0, rel=1e-9)
    groups = apart.independent_groups()
    assert groups is not None
    assert groups.tolist() == [1] * 5
    nothing = Crossed([0, 0], [0, 0], 0.0, 0.0)
    assert nothing.variance_inflation() == pytest.approx(1.0, rel=1e-9)
    assert nothing.leakage(0.1).tolist() == [0.1, 0.1]
    again = Crossed([0, 0, 0, 1], [0, 0, 0, 1])  # one user rates one item three times
    assert again.effective_records() == pytest.approx(4 / 3)
    assert again.leakage(0.1) == pytest.approx([0.3, 0.3, 0.3, 0.1])
    assert again.budget(0.3) == pytest.approx(0.1, rel=1e-9)
    sizes_left = Crossed([0, 0, 1], [0, 1, 1]).given([1]).independent_groups()
    assert sizes_left is None
    assert Crossed([0, 0, 1], [0, 1, 1]).leakage([0.0, 0.0, 0.0]).tolist() == [0.0] * 3


@for_each(
    ("make", "message"),
    [
        (lambda: Crossed([], []), "users is missing"),
        (lambda: Crossed([1, 2], [1]), "items must be 2.*; got 1 labels"),
        (lambda: Crossed([1, None], [1, 2]), "users must be .*; got a missing label of record 1"),
        (lambda: Crossed([1, 2], [float("nan"), 2]), "items must be .*; got a missing label of record 0"),
        (lambda: Crossed([1, 2], pd.Series([pd.NaT, pd.NaT])), "items must be .*; got a missing label of record 0"),
        (lambda: Crossed("ab", [1, 2]), "users must be .*; got the text 'ab'"),
        (
            lambda: Crossed(np.array([[1], [2]]).tolist(), [1, 2]),
            r"users must be .*; got \[1\] of type list for record 0",
        ),
        (lambda: Crossed({1: 2}, [1]), "users must be .*; got a mapping"),
        (lambda: Crossed(pd.DataFrame({"u": [1]}), [1]), "users must be .*; got a table with columns"),
        (lambda: Crossed([1], [1], 1.5), "user_effect must be a total variation distance.*; got 1.5"),
        (lambda: Crossed([1], [1], 1, -0.1), "item_effect must be .*; got -0.1"),
        (lambda: Crossed([1], [1], 1, float("nan")), "item_effect must be .*; got nan"),
        (lambda: Crossed([1], [1], True), "user_effect must be .*; got True"),
        (lambda: Crossed.of_factors({}), "factors must be .*; got no factor"),
        (lambda: Crossed.of_factors([[1, 2]]), "factors must be"),
        (lambda: Crossed.of_factors({"u": [1]}, {"v": 0.5}), "effects must be .*; got no factor and effect for 'v'"),
        (
            lambda: Crossed.of_factors({"u": [1], "i": [2]}, {"u": 0.5}),
            "effects must be .*; got no factor and effect for 'i'",
        ),
        (lambda: Crossed.of_factors({"u": [1], "i": [2]}, 2), "effects must be .*; got 2"),
        (lambda: Crossed.of_factors(pd.DataFrame([[1, 2]], columns=["u", "u"])), "two columns of one name"),
    ],
)
def test_refusals(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.statistical
def test_samples_have_the_dependence() -> None:
    """Error rate 1e-9: two records of one user agree with probability 1/2 + w^2/2, w the chance of copying the user."""
    rng = np.random.default_rng(4)
    draws = 2000
    for effects, w in (((1.0, 1.0), 0.5), ((0.6, 0.2), 0.6)):
        model = Crossed([0, 0, 1], [0, 1, 2], *effects)
        found = np.array([model.sample(rng) for _ in range(draws)])
        for first, second, p in ((0, 1, 0.5 + w**2 / 2), (0, 2, 0.5)):
            agree = int((found[:, first] == found[:, second]).sum())
            assert stats.binom.ppf(1e-10, draws, p) <= agree <= stats.binom.isf(1e-10, draws, p)
        assert int((found[:, 0] == found[:, 1]).sum()) > stats.binom.isf(1e-10, draws, 0.5)
