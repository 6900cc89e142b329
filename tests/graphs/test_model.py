"""What every model owes its caller: checks, the choice of routes, budgets, explanations."""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import (
    ArgumentError,
    DependenceModel,
    Groups,
    Independent,
    MarkovChain,
    MovingWindow,
    RouteUnavailable,
    exact_leakage,
)
from graphs.leakage.largest_budget import largest_below
from graphs.leakage.profile import Profile
from graphs.routes import INFLATIONS, ROUTES
from tests.cases import for_each
from tests.sizes import sizes

MATRIX = [[0.9, 0.1], [0.2, 0.8]]
MODELS: list[DependenceModel] = [
    Independent(6),
    Groups([0, 0, 1, 1, 1, 2]),
    MovingWindow(6, 2),
    MarkovChain(MATRIX, 6),
    MarkovChain([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]], 6, [1, 0, 0]),
]
names = pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)


@names
@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        (-0.1, "epsilon must be .*; got -0.1"),
        (float("nan"), "epsilon must be .*; got nan"),
        (float("inf"), "epsilon must be .*; got inf"),
        ([0.1, 0.2], r"epsilon must be a number, or an array of 6.*; got an array of shape \(2,\)"),
        ([[0.1] * 6], r"epsilon must be .*; got an array of shape \(1, 6\)"),
        ([0.1] * 5 + [-1.0], "epsilon must be .*; got -1.0"),
        ("0.1", "epsilon must be .*; got values of type"),
        (0.1 + 0j, "epsilon must be .*; got values of type complex"),
        ([0.1] * 5 + [None], "epsilon must be .*; got values of type object"),
        (True, "epsilon must be .*; got values of type bool"),
    ],
)
def test_leakage_refuses(model: DependenceModel, epsilon: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        model.leakage(epsilon)


@names
def test_unknown_choices(model: DependenceModel) -> None:
    with pytest.raises(ArgumentError, match=r"method must be .*; got 'mesages'"):
        model.leakage(0.1, "mesages")
    with pytest.raises(ArgumentError, match=r"adversary must be .*; got 'bored'"):
        model.leakage(0.1, adversary="bored")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"reduce must be .*; got 'min'"):
        model.budget(0.1, reduce="min")  # type: ignore[arg-type]
    targets: list[Any] = [0, -1, float("nan"), float("inf"), [0.1], "1"]
    for target in targets:
        with pytest.raises(ArgumentError, match="epsilon"):
            model.budget(target)


def test_routes_that_a_model_does_not_have() -> None:
    with pytest.raises(RouteUnavailable, match="Groups has no such route") as caught:
        Groups([1, 2]).leakage(0.1, "messages")
    assert caught.value.alternatives == ("best", "group")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


@pytest.mark.slow
@names
@settings(max_examples=25, deadline=None)
@given(first=st.floats(1e-6, 5), ratio=st.floats(1, 100))
def test_more_budget_leaks_more(model: DependenceModel, first: float, ratio: float) -> None:
    for adversary in ("informed", "uninformed"):
        low, high = (model.leakage(e, adversary=adversary) for e in (first, first * ratio))
        assert (high >= low * (1 - 1e-12)).all()
        assert (low >= first).all()


@pytest.mark.slow
@names
@sizes("examples", 8, 50)
def test_budget_inverts_leakage_on_the_safe_side(model: DependenceModel, examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(target=st.floats(1e-6, 20), reduce=st.sampled_from(["max", "mean"]))
    def check(target: float, reduce: str) -> None:
        for method in ("best", *model.methods):
            try:
                budget = model.budget(target, method, reduce=reduce)  # type: ignore[arg-type]
            except RouteUnavailable:
                continue
            value = np.max if reduce == "max" else np.mean
            assert 0 < budget <= target
            assert value(model.leakage(budget, method)) <= target * (1 + 1e-15)
            more = budget * (1 + 1e-9)
            assert value(model.leakage(more, method)) > target * (1 - 1e-12) or more > target

    check()


@pytest.mark.slow
@names
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_best_and_uninformed_are_never_larger(model: DependenceModel, data: st.DataObject) -> None:
    number = st.floats(0.001, 5)
    epsilon = data.draw(st.one_of(number, st.lists(st.one_of(st.just(0.0), number), min_size=6, max_size=6)))
    informed, uninformed = model.leakage(epsilon), model.leakage(epsilon, adversary="uninformed")
    assert (uninformed <= informed * (1 + 1e-12)).all()
    for method in model.methods:
        for adversary, best in (("informed", informed), ("uninformed", uninformed)):
            try:
                found = model.leakage(epsilon, method, adversary)  # type: ignore[arg-type]
            except RouteUnavailable:
                continue
            if not ROUTES[method].published:
                assert (best <= found).all()


@settings(max_examples=50, deadline=None)
@given(labels=st.lists(st.integers(0, 4), min_size=1, max_size=12), seed=st.integers(0, 1000))
def test_groups_do_not_care_about_order(labels: list[int], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(labels))
    shuffled = [labels[i] for i in order]
    assert Groups(shuffled).leakage(0.3).tolist() == Groups(labels).leakage(0.3)[order].tolist()
    assert Groups(shuffled).variance_inflation() == Groups(labels).variance_inflation()


def test_a_reversed_chain_leaks_in_reverse() -> None:
    model = MarkovChain(MATRIX, 9)
    budgets = np.linspace(0.1, 0.5, 9)
    for method in ("best", "messages", "long-edges", "quilt"):
        forward, backward = model.leakage(budgets, method), model.leakage(budgets[::-1], method)
        assert forward == pytest.approx(backward[::-1], rel=1e-9)


def test_explain_compares_all_routes() -> None:
    model = MarkovChain(MATRIX, 1000)
    table = model.explain(0.5)
    assert isinstance(table, pd.DataFrame)
    assert list(table.index) == list(model.methods)
    assert list(table.columns) == ["budget", "half_width", "source", "reason", "published", "won"]
    with pd.option_context("display.width", 80, "display.max_columns", 0):
        head = str(table).splitlines()[0]
    assert [name for name in table.columns if name in head.split()] == ["budget", "half_width", "published", "won"]
    assert table["won"].sum() == 1
    assert not table.loc[table["won"], "published"].any()
    for method in ("group", "messages", "quilt", "spectral-published"):
        assert table.loc[method, "budget"] == model.budget(0.5, method)
    assert np.isnan(table["budget"]["blanket-published"])
    assert "however small the privacy budget" in str(table["reason"]["blanket-published"])
    assert table["reason"]["messages"] == ""


@names
def test_fingerprints_are_stable(model: DependenceModel) -> None:
    assert len(model.fingerprint()) == 64
    assert model.fingerprint() == pickle.loads(pickle.dumps(model)).fingerprint()
    assert len({other.fingerprint() for other in MODELS}) == len(MODELS)


def test_fingerprints_do_not_change_between_versions() -> None:
    """Stored with every guard: changing what goes into them would orphan ledgers."""
    assert Independent(3).fingerprint() == hashlib.sha256(b"Independent\0n\0" + b"3").hexdigest()
    index = np.array([0, 0, 1], dtype="<i8").tobytes()
    assert Groups(["x", "x", "y"]).fingerprint() == hashlib.sha256(b"Groups\0index\0<i8(3,)" + index).hexdigest()


@names
def test_only_named_routes(model: DependenceModel) -> None:
    assert set(model.methods) <= set(ROUTES)
    assert set(model.inflation_methods) <= set(INFLATIONS)
    assert model.describe()
    assert model.sample(np.random.default_rng(0)).shape == (6,)


@for_each("model", MODELS[:3], ids=lambda m: type(m).__name__)
def test_no_law_to_enumerate(model: DependenceModel) -> None:
    with pytest.raises(ArgumentError, match="whose law is not stated"):
        exact_leakage(model, 0.1, 0)


@for_each(
    ("table", "arguments", "message"),
    [
        (np.array([0.5, 0.6]), (0.1, 0), "sum to"),
        (np.array([1.5, -0.5]), (0.1, 0), "sum to"),
        (np.array(1.0), (0.1, 0), "shape"),
        (np.full((2, 2), 0.25), (0.1, 2), "record must be records from 0 to 1; got 2"),
        (np.full((2, 2), 0.25), (0.1, 0, [0]), "known must be .*; got record 0 itself"),
        (np.full((2, 2), 0.25), (0.1, 0, [5]), "known must be .*; got 5"),
        (np.full((2, 2), 0.25), (-0.1, 0), "epsilon"),
        (np.full((2, 2), 0.25), (0.1, 0.5), "record"),
    ],
)
def test_the_oracle_refuses(table: Any, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        exact_leakage(table, *arguments)


def test_the_oracle_on_impossible_states() -> None:
    assert exact_leakage(np.array([1.0, 0.0]), 0.3, 0) == 0.0
    assert exact_leakage(np.array([0.5, 0.5]), 0.3, 0) == pytest.approx(0.3)
    assert exact_leakage(np.array([[0.5, 0.5], [0.0, 0.0]]), 0.3, 0) == 0.0


@settings(max_examples=50, deadline=None)
@given(slope=st.floats(0.01, 100), power=st.floats(0.3, 4), target=st.floats(1e-6, 1e3), step=st.floats(0, 2))
def test_search(slope: float, power: float, target: float, step: float) -> None:
    """Power laws, with a jump: the point found is within the target, and a hair further is not."""

    def leaked(x: float) -> float:
        return slope * float(x**power) + (step if x > 1 else 0.0)

    found = largest_below(leaked, target, 1.0)
    assert found is not None
    assert leaked(found) <= target
    assert leaked(found * (1 + 1e-11)) > target


def test_search_without_an_answer() -> None:
    assert largest_below(lambda x: 2.0 + x, 1.0, 1.0) is None
    assert largest_below(lambda x: float("inf") if x > 1e-9 else 0.5, 1.0, 1.0) == pytest.approx(1e-9)
    assert largest_below(lambda x: 0.5, 1.0, 1.0, most=3.0) == 3.0


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 10), st.integers(0, 4)), min_size=1, max_size=6),
    st.lists(st.tuples(st.floats(0, 10), st.integers(0, 4)), min_size=1, max_size=6),
)
def test_profiles_merge_like_arrays(first: list[tuple[float, int]], second: list[tuple[float, int]]) -> None:
    runs = []
    for pairs, total in ((first, sum(c for _, c in second)), (second, sum(c for _, c in first))):
        values, counts = np.array([v for v, _ in pairs]), np.array([c for _, c in pairs])
        runs.append(Profile(np.append(values, 1.5), np.append(counts, total + 1)))
    merged = runs[0].minimum(runs[1])
    assert merged.expand().tolist() == np.minimum(runs[0].expand(), runs[1].expand()).tolist()
    assert merged.largest() == merged.expand().max()
    assert merged.mean() == pytest.approx(merged.expand().mean(), abs=1e-12)
    assert merged.expand()[merged.worst()] == merged.largest()
