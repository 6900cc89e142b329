"""The chain itself: what it accepts, its law, fitting and sampling."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from graphs import ArgumentError, HiddenMarkov, MarkovChain, RouteUnavailable
from graphs.leakage.spectral import period, stationary_law
from tests.cases import for_each
from tests.oracles.chains import chain_table

MATRIX = [[0.9, 0.1], [0.2, 0.8]]


def test_law_of_the_worked_chain() -> None:
    model = MarkovChain(MATRIX, 5)
    assert model.stationary == pytest.approx([2 / 3, 1 / 3], abs=1e-15)
    assert model.spectral_gap == pytest.approx(0.3, abs=1e-12)
    assert model.is_reversible
    assert model.is_stationary
    assert model.states == (0, 1)
    assert model.describe() == "Markov chain of 5 records over 2 states, stationary"
    assert not model.transition.flags.writeable


@for_each("seed", range(5))
def test_stationary_law_against_fractions(seed: int) -> None:
    """Exact elimination in rational numbers, over many orders of magnitude."""
    rng = np.random.default_rng(seed)
    states = 5
    matrix = 10.0 ** rng.uniform(-12, 0, (states, states))
    matrix /= matrix.sum(axis=1, keepdims=True)
    law, error = stationary_law(matrix)
    exact = [[Fraction(float(p)) for p in row] for row in matrix]
    for i in range(states):
        exact[i][i] = Fraction(0)
    for last in range(states - 1, 0, -1):
        total = sum(exact[last][:last], start=Fraction(0))
        for i in range(last):
            exact[i][last] /= total
            for j in range(last):
                exact[i][j] += exact[i][last] * exact[last][j] if i != j else 0
    truth = [Fraction(1)]
    for state in range(1, states):
        truth.append(sum((truth[i] * exact[i][state] for i in range(state)), start=Fraction(0)))
    total = sum(truth, start=Fraction(0))
    for found, value in zip(law, truth, strict=True):
        assert abs(Fraction(float(found)) / (value / total) - 1) <= error


@for_each(
    ("matrix", "expected"),
    [
        ([[0.5, 0.5], [0.5, 0.5]], 1),
        ([[0, 1], [1, 0]], 2),
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], 3),
        ([[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]], 2),
        ([[1, 0], [0, 1]], 0),
        ([[0.5, 0.5], [0, 1]], 0),
        ([[1.0]], 1),
    ],
)
def test_period(matrix: list[list[float]], expected: int) -> None:
    assert period(np.array(matrix, dtype=float)) == expected


def test_joint_and_sampling_agree_with_enumeration() -> None:
    for initial in (None, [1.0, 0.0]):
        model = MarkovChain(MATRIX, 4, initial)
        assert model.joint() == pytest.approx(chain_table(MATRIX, model.initial, 4), abs=1e-15)
        assert model.joint().sum() == pytest.approx(1)


def frequencies(model: MarkovChain, draws: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    counts = np.zeros((2, 2, 2))
    for _ in range(draws):
        counts[tuple(model.sample(rng))] += 1
    return counts


@pytest.mark.statistical
def test_sample_frequencies() -> None:
    """Every frequency of three records within its binomial limits, error rate 1e-9; a transposed kernel is caught."""
    draws = 20_000
    counts = frequencies(MarkovChain(MATRIX, 3), draws, 11)

    def inside(table: Any) -> bool:
        level = 1e-9 / (2 * table.size)
        low, high = stats.binom.ppf(level, draws, table), stats.binom.isf(level, draws, table)
        return bool(((counts >= low) & (counts <= high)).all())

    assert inside(chain_table(MATRIX, [2 / 3, 1 / 3], 3))
    assert not inside(chain_table(MATRIX, [0.6, 0.4], 3))
    assert not inside(chain_table([[0.88, 0.12], [0.24, 0.76]], [2 / 3, 1 / 3], 3))


def test_sampling_is_reproducible_and_names_states() -> None:
    model = MarkovChain(MATRIX, 50, states=["low", "high"])
    first, second = (model.sample(np.random.default_rng(3)) for _ in range(2))
    assert first.tolist() == second.tolist()
    assert set(first.tolist()) <= {"low", "high"}
    assert MarkovChain(MATRIX, 50).sample(np.random.default_rng(3)).dtype.kind == "i"
    assert MarkovChain(MATRIX, 3, states=[(0, 1), None]).sample(np.random.default_rng(0)).dtype == object


def test_fit_counts_inside_sequences() -> None:
    model = MarkovChain.fit("aab", "bba", n=10)
    assert model.states == ("a", "b")
    assert model.transition == pytest.approx(np.array([[0.5, 0.5], [0.5, 0.5]]))
    assert model.n == 10
    assert MarkovChain.fit([1, 2, 1, 1, 2]).n == 5


def test_fit_takes_any_hashable_and_smooths() -> None:
    path = [("x", 1), None.__class__, ("x", 1), ("x", 1), None.__class__]
    model = MarkovChain.fit(path)
    assert list(model.states) == [("x", 1), type(None)]
    assert model.transition == pytest.approx(np.array([[1 / 3, 2 / 3], [1.0, 0.0]]))
    smooth = MarkovChain.fit("abab", smoothing=1.0)
    assert smooth.transition == pytest.approx(np.array([[1 / 4, 3 / 4], [2 / 3, 1 / 3]]))
    assert MarkovChain.fit(np.array([0, 1, 1, 0, 0])).states == (0, 1)


def test_fit_recovers_a_chain() -> None:
    model = MarkovChain(MATRIX, 200_000)
    fitted = MarkovChain.fit(model.sample(np.random.default_rng(5)))
    assert fitted.transition == pytest.approx(np.array(MATRIX), abs=0.01)


@for_each(
    ("sequences", "options", "message"),
    [
        ((), {}, "sequences is missing"),
        (("a",), {}, "fewer than two records"),
        ((3,), {}, "sequences must be .*; got 3 as sequence 0"),
        (("ab",), {}, "'b', which is never followed"),
        (("abab", "ba"), {}, "n is missing: pass the number of records of the model"),
        (([1, math.nan, 1],), {}, "record 1 of sequence 0, which is missing"),
        ((["a", None, "a"],), {}, "record 1 of sequence 0, which is missing"),
        (([[1], [2]],), {}, "of type list"),
        (("abab",), {"smoothing": -1}, "smoothing must be .*; got -1"),
        (("abab",), {"smoothing": math.nan}, "smoothing must be .*; got nan"),
        (("abab",), {"smoothing": math.inf}, "smoothing must be .*; got inf"),
        (("abab",), {"smoothing": True}, "smoothing must be .*; got True"),
        (("abab",), {"n": 0}, "n must be .*; got 0"),
        (("abab",), {}, "initial must be .*; got None for a chain that is periodic"),
    ],
)
def test_fit_refuses(sequences: tuple[Any, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        MarkovChain.fit(*sequences, **options)


@for_each(
    ("matrix", "n", "initial", "message"),
    [
        (
            [[0.9, 0.1], [0.2, 0.77]],
            5,
            None,
            "transition must be a table whose rows sum to 1; got row 1, whose sum is 0.97",
        ),
        ([[1.1, -0.1], [0.2, 0.8]], 5, None, r"transition must be .*; got entry \(0, 1\), which is -0\.1"),
        ([[math.nan, 1.0], [0.2, 0.8]], 5, None, "transition must be .*; got entry"),
        ([[math.inf, 1.0], [0.2, 0.8]], 5, None, "transition must be .*; got entry"),
        ([[0.5, 0.5]], 5, None, r"transition must be .*; got an array of shape \(1, 2\)"),
        ([0.5, 0.5], 5, None, r"transition must be .*; got an array of shape \(2,\)"),
        ([], 5, None, "transition must be .*; got an array of shape"),
        ([[0.5, 0.5], [1.0]], 5, None, "transition must be .*; got rows of different lengths"),
        ([["a", "b"], ["c", "d"]], 5, None, "transition must be .*; got values of type"),
        ([[0.5 + 0j, 0.5], [0.5, 0.5]], 5, None, "transition must be .*; got values of type complex"),
        (np.array([[0.5, 0.5], [0.5, 0.5]], dtype=object), 5, None, "transition must be .*; got values of type object"),
        (MATRIX, 0, None, "n must be an integer of at least 1; got 0"),
        (MATRIX, 2.5, None, "n must be .*; got 2.5"),
        (MATRIX, True, None, "n must be .*; got True"),
        (MATRIX, 5, [0.5, 0.6], "initial must be .*; got the sum 1.1"),
        (MATRIX, 5, [1.0], "initial must be 2 probabilities.*; got 1 of them"),
        (MATRIX, 5, [-0.5, 1.5], "initial must be .*; got entry 0, which is -0.5"),
        ([[0.0, 1.0], [1.0, 0.0]], 5, None, r"initial must be .*; got None for a chain that is periodic \(2\)"),
        ([[0.5, 0.5], [0.0, 1.0]], 5, None, "initial must be .*; got None for a chain that is reducible"),
    ],
)
def test_refuses(matrix: Any, n: Any, initial: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        MarkovChain(matrix, n, initial)
    assert isinstance(caught.value, ValueError)
    assert caught.value.argument in ("transition", "n", "initial")


def test_refuses_names_that_do_not_match() -> None:
    for names in (["a"], ["a", "a"], []):
        with pytest.raises(ArgumentError, match="states"):
            MarkovChain(MATRIX, 5, states=names)


def test_refuses_queries_without_an_answer() -> None:
    reducible = MarkovChain([[0.5, 0.5], [0.0, 1.0]], 5, [1, 0])
    with pytest.raises(ArgumentError, match="reducible"):
        _ = reducible.stationary
    with pytest.raises(ArgumentError, match="period 2"):
        _ = MarkovChain([[0.0, 1.0], [1.0, 0.0]], 5, [1, 0]).spectral_gap
    with pytest.raises(ArgumentError, match="not reversible"):
        _ = MarkovChain([[0, 0.9, 0.1], [0.1, 0, 0.9], [0.9, 0.1, 0]], 5).spectral_gap
    with pytest.raises(ArgumentError, match="joint states"):
        MarkovChain(MATRIX, 40).joint()
    with pytest.raises(RouteUnavailable):
        reducible.variance_inflation("spectral")


def test_rows_within_rounding_are_normalised() -> None:
    model = MarkovChain([[0.9, 0.1 + 5e-10], [0.2, 0.8]], 5)
    assert model.transition.sum(axis=1) == pytest.approx(1, abs=1e-15)


def test_an_initial_law_that_is_the_stationary_one() -> None:
    model = MarkovChain(MATRIX, 5, [2 / 3, 1 / 3])
    assert model.is_stationary
    assert model.fingerprint() == MarkovChain(MATRIX, 5).fingerprint()
    assert not MarkovChain(MATRIX, 5, [0.6667, 0.3333]).is_stationary


def test_one_record_and_one_state() -> None:
    single = MarkovChain(MATRIX, 1)
    for method in ("best", "group", "quilt", "quilt-contracted", "messages", "long-edges", "blanket-published"):
        assert single.leakage(0.3, method) == pytest.approx([0.3], abs=1e-12)
    assert single.variance_inflation() == 1.0
    constant = MarkovChain([[1.0]], 4)
    assert constant.leakage(0.3) == pytest.approx(np.full(4, 0.3), abs=1e-12)
    assert constant.sample(np.random.default_rng(0)).tolist() == [0] * 4


@pytest.mark.slow
def test_extremes() -> None:
    """Tiny and huge entries, budgets and lengths give finite numbers at most the group bound, or infinity."""
    for matrix in ([[1 - 1e-300, 1e-300], [1e-300, 1 - 1e-300]], [[1 - 1e-12, 1e-12], [0.5, 0.5]]):
        model = MarkovChain(matrix, 1000, [0.5, 0.5])
        for epsilon in (1e-200, 1e-9, 1.0, 600.0):
            found = model.leakage(epsilon)
            assert (found >= epsilon).all()
            assert (found <= 1000 * epsilon * (1 + 1e-9)).all()
    assert MarkovChain(MATRIX, 10).leakage(0.0).tolist() == [0.0] * 10
    assert MarkovChain(MATRIX, 10).leakage(np.zeros(10)).tolist() == [0.0] * 10


def test_pickles_with_what_it_has_computed() -> None:
    model = MarkovChain(MATRIX, 30, states=["a", "b"])
    before = model.leakage(0.2)
    again = pickle.loads(pickle.dumps(model))
    assert again.leakage(0.2).tolist() == before.tolist()
    assert again.fingerprint() == model.fingerprint()


@pytest.mark.slow
def test_import_is_light() -> None:
    heavy = ("pandas", "scipy.optimize", "networkx", "sklearn", "matplotlib", "scipy.stats")
    code = f"import sys; from graphs import *; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_first_law_with_labels_is_refused_and_the_call_that_is_named_works() -> None:
    law = pd.Series([0.3, 0.7], index=["wet", "dry"])
    matrix = [[0.9, 0.1], [0.2, 0.8]]
    with pytest.raises(
        ArgumentError,
        match=r"initial must be values in the order of the states, without labels; .*Pass initial\[states\]\.to_numpy",
    ):
        MarkovChain(matrix, 5, initial=law, states=["dry", "wet"])
    chain = MarkovChain(matrix, 5, initial=law[["dry", "wet"]].to_numpy(), states=["dry", "wet"])
    assert chain.initial.tolist() == [0.7, 0.3]
    assert MarkovChain(matrix, 5, initial=pd.Series([0.7, 0.3])).initial.tolist() == [0.7, 0.3]


@pytest.mark.slow
@for_each("kind", [MarkovChain, HiddenMarkov])
def test_a_table_whose_columns_are_in_another_order_than_its_rows_is_refused(kind: Any) -> None:
    """By position the chain below is another one, with an inflation of 8.1 instead of 49."""
    rows = [[0.98, 0.01, 0.01], [0.02, 0.49, 0.49], [0.02, 0.49, 0.49]]
    law = pd.DataFrame(rows, index=list("abc"), columns=list("abc"))
    turned = law[["b", "c", "a"]]
    with pytest.raises(ArgumentError, match=r"another order than its rows\. Pass transition\[transition\.index\]"):
        kind(turned, 1000)
    expected = kind(rows, 1000).variance_inflation()
    for table in (law, turned[turned.index], law.reset_index(drop=True)):
        assert kind(table, 1000).variance_inflation() == expected


def test_a_transition_in_single_precision_is_normalised() -> None:
    rng = np.random.default_rng(0)
    for k in (2, 5, 30):
        exact = rng.dirichlet(np.ones(k), size=k)
        single = MarkovChain(exact.astype(np.float32), n=10)
        np.testing.assert_allclose(single.transition, exact, atol=1e-7)
        np.testing.assert_allclose(single.transition.sum(axis=1), 1.0, rtol=1e-15)
    short = np.array([[0.9, 0.1], [0.2, 0.7999]], dtype=np.float32)  # off by far more than rounding
    with pytest.raises(ArgumentError, match=r"row 1, whose sum is 0\.9998999"):
        MarkovChain(short, n=10)
    with pytest.raises(ArgumentError, match="row 0, whose sum is"):  # doubles are held to their own precision
        MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]], dtype=np.float32).astype(float), n=10)


def test_a_data_frame_names_the_states() -> None:
    table = pd.DataFrame([[0.9, 0.1], [0.2, 0.8]], index=["sun", "rain"], columns=["sun", "rain"])
    assert MarkovChain(table, n=10).states == ("sun", "rain")
    assert MarkovChain(table, n=10, states=["dry", "wet"]).states == ("dry", "wet")
    assert MarkovChain(table.to_numpy(), n=10).states == (0, 1)
