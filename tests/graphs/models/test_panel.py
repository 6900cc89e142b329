"""Panels: independent units against one unit, block structures, and the law of all records."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphs import (
    ArgumentError,
    Communities,
    DependenceModel,
    GaussianField,
    Groups,
    HiddenMarkov,
    Independent,
    MarkovChain,
    MarkovField,
    MovingWindow,
    Panel,
    exact_leakage,
)
from graphs.fitted_limits import FittedLimits
from graphs.models.out_of_fold import OutOfFold
from tests.cases import for_each

TWO = [[0.75, 0.25], [0.25, 0.75]]


def units() -> list[DependenceModel]:
    return [
        MarkovChain(TWO, 5),
        MarkovChain([[0.9, 0.1], [0.4, 0.6]], 4, [0.5, 0.5]),
        HiddenMarkov(TWO, 4, emission=[[0.8, 0.2], [0.3, 0.7]]),
        Groups([0, 0, 1]),
        MovingWindow(5, 1),
        Communities(["a", "a", "b"], emission=[[0.6, 0.4], [0.4, 0.6]]),
        MarkovField.ising(nx.cycle_graph(4), 0.3),
    ]


@pytest.mark.slow
@for_each("unit", units(), ids=lambda unit: type(unit).__name__)
def test_every_unit_is_like_one_unit(unit: DependenceModel) -> None:
    panel = Panel(unit, 3)
    assert panel.n == 3 * unit.n
    assert panel.variance_inflation() == unit.variance_inflation()
    assert panel.variance_inflation(bounded_differences=True) == unit.variance_inflation(bounded_differences=True)
    for method in ("best", *unit.methods):
        try:
            expected = unit.leakage(0.2, method)
        except ArgumentError:
            with pytest.raises(ArgumentError):
                panel.leakage(0.2, method)
            continue
        np.testing.assert_array_equal(panel.leakage(0.2, method), np.tile(expected, 3))
    assert panel.budget(0.5) == unit.budget(0.5)
    rows = np.random.default_rng(0).uniform(0, 0.3, (3, unit.n))
    rows[2] = rows[0]
    np.testing.assert_array_equal(panel.leakage(rows.ravel()), np.concatenate([unit.leakage(row) for row in rows]))


def test_a_panel_of_binary_chains_is_no_set_of_groups() -> None:
    panel = Panel(MarkovChain(TWO, 20), 200)
    assert Groups(np.repeat(np.arange(200), 20)).variance_inflation() == pytest.approx(20)
    unit = sum(0.5 ** abs(i - j) for i in range(20) for j in range(20)) / 20
    assert panel.variance_inflation() == pytest.approx(unit)
    table = panel.explain_inflation()
    assert table.loc["parts", "won"]
    assert table.loc["parts", "reason"] == "influences in each of 200 units"


def test_effective_records_are_those_of_the_units_together() -> None:
    assert Panel(MovingWindow(10, 1), 7).effective_records() == 35
    assert Panel(Groups([0, 0, 0, 1]), 5).effective_records() == pytest.approx(5 * 4 / 3)
    assert Panel(MarkovChain(TWO, 20), 200).effective_records() >= 200


@for_each("weaker", [1.0, 0.95])
def test_copies_in_every_unit_attain_inflation_and_effective_records(weaker: float) -> None:
    """Units of two copies of a fair coin: 3 units have ln E exp(u q) = 3 ln cosh(u/6) + u/2, exactly."""
    panel = Panel(Groups([0, 0]), 3)
    inflation, effective = panel.variance_inflation() * weaker, (panel.effective_records() or 0.0) / weaker
    levers = np.array([0.01, 0.1, 1.0, 5.0, 20.0])
    exact = 3 * np.log(np.cosh(levers / 6))
    assert bool((exact <= levers**2 * inflation / (8 * panel.n) + 1e-12).all()) == (weaker == 1.0)
    coins = effective * np.log(0.5 + 0.5 * np.exp(levers / effective)) - levers / 2
    assert bool((exact <= coins + 1e-12).all()) == (weaker == 1.0)


@for_each("unit", [units()[k] for k in (0, 1, 6)], ids=lambda unit: type(unit).__name__)
def test_known_records_cut_their_own_units_only(unit: DependenceModel) -> None:
    panel, width = Panel(unit, 3), unit.n
    known = [1, width + 1, width + 2]
    names = list(range(panel.n)) if panel._record_labels() is None else list(panel._record_labels() or ())
    given, rows = panel.given([names[k] for k in known]), np.random.default_rng(1).uniform(0.05, 0.3, 3 * unit.n)
    parts = [unit.given([1]), unit.given([1, 2]), unit]
    budgets = np.delete(rows, known)
    at = np.cumsum([0, *(part.n for part in parts)])
    expected = [part.leakage(budgets[a:b]) for part, a, b in zip(parts, at, at[1:], strict=False)]
    np.testing.assert_allclose(given.leakage(budgets), np.concatenate(expected), rtol=1e-12)
    assert given.n == 3 * width - 3


@pytest.mark.slow
@for_each("unit", units(), ids=lambda unit: type(unit).__name__)
def test_units_without_a_budget_leak_nothing(unit: DependenceModel) -> None:
    """A unit that is known as a whole, or that no query reads: the others leak what they do alone."""
    width = unit.n
    panel, alone = Panel(unit, 3), Panel(unit, 2)
    labels = panel._record_labels() or tuple(range(panel.n))
    given = panel.given(list(labels[:width]))
    rows = np.random.default_rng(2).uniform(0.05, 0.3, 2 * width)
    np.testing.assert_allclose(given.leakage(0.1), alone.leakage(0.1), rtol=1e-12)
    np.testing.assert_allclose(given.leakage(rows), alone.leakage(rows), rtol=1e-12)
    assert given.budget(0.5) == pytest.approx(alone.budget(0.5), rel=1e-9)
    assert given.explain(0.5)["budget"].max() == pytest.approx(alone.budget(0.5), rel=1e-9)
    unread = panel.leakage(np.concatenate([np.zeros(width), rows]))
    np.testing.assert_array_equal(unread[:width], 0.0)
    np.testing.assert_allclose(unread[width:], alone.leakage(rows), rtol=1e-12)


@pytest.mark.slow
def test_the_law_is_the_product_of_the_units() -> None:
    unit = MarkovChain([[0.9, 0.1], [0.4, 0.6]], 2)
    panel = Panel(unit, 2)
    table = panel.joint()
    for state in itertools.product((0, 1), repeat=4):
        assert table[state] == pytest.approx(unit.joint()[state[:2]] * unit.joint()[state[2:]])
    for record in range(4):
        assert exact_leakage(panel, np.full(4, 0.3), record) <= panel.leakage(0.3)[record] + 1e-7
    drawn = panel.sample(np.random.default_rng(0))
    assert drawn.shape == (4,)
    again = np.array([panel.given({0: 1}).sample(np.random.default_rng(seed)) for seed in range(2000)])
    assert abs(again[:, 0].mean() - 0.6) < 0.06  # 5 standard deviations are 0.055
    assert abs(again[:, 2].mean() - 0.2) < 0.06


def test_labels_and_fingerprints() -> None:
    field = MarkovField.ising(nx.path_graph(["x", "y"]), 0.3)
    panel = Panel(field, 2)
    assert panel.leakage({(0, "x"): 0.1, (0, "y"): 0.0, (1, "x"): 0.0, (1, "y"): 0.0})[2:].max() == 0
    assert panel.fingerprint() != Panel(field, 3).fingerprint()
    assert panel.given([(1, "y")]).n == 3


@for_each(
    ("model", "count", "message"),
    [
        (Independent(1), 5, "units of one record"),
        (MarkovChain(TWO, 3), 0, "units"),
        (MarkovChain(TWO, 3), 2.5, "units"),
        ([0, 1], 3, "a dependence model"),
        (OutOfFold([0, 0, 1, 1]), 3, "a model of the records"),
    ],
)
def test_what_is_no_panel_is_refused(model: Any, count: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Panel(model, count)


def test_too_many_joint_states_are_refused() -> None:
    with pytest.raises(ArgumentError, match="joint states"):
        Panel(MarkovChain(TWO, 5), 5).joint()


def family(n: int) -> MarkovChain:
    return MarkovChain(TWO, n=n)


def test_units_of_different_lengths_are_parts_of_their_own() -> None:
    lengths = [5, 2, 5, 1, 3]
    panel = Panel(family, lengths)
    alone = [family(n) for n in lengths]
    assert (panel.n, panel.units, panel.model.n) == (16, 5, 5)
    for bounded in (False, True):
        sums = sum(chain.n * chain.variance_inflation(bounded_differences=bounded) for chain in alone)
        assert panel.variance_inflation(bounded_differences=bounded) == pytest.approx(sums / 16, rel=1e-12)
    assert panel.effective_records() == pytest.approx(
        16 / max(chain.n / (chain.effective_records() or 1.0) for chain in alone), rel=1e-12
    )
    for epsilon in (0.2, np.random.default_rng(0).uniform(0, 0.3, 16)):
        rows = np.split(np.broadcast_to(epsilon, 16), np.cumsum(lengths)[:-1])
        for method in ("best", "messages", "quilt", "group"):
            expected = np.concatenate([c.leakage(row, method) for c, row in zip(alone, rows, strict=True)])
            np.testing.assert_allclose(panel.leakage(epsilon, method), expected, rtol=1e-12)
    assert panel.independent_groups().tolist() == lengths
    assert panel.revealed_blocks().blocks == sum(chain.revealed_blocks().blocks for chain in alone)
    np.testing.assert_allclose(panel.joint().sum(), 1.0)
    assert panel.sample(np.random.default_rng(0)).shape == (16,)
    assert Panel(family, [5, 2]).fingerprint() != Panel(family, [2, 5]).fingerprint()


def test_known_records_of_units_of_different_lengths() -> None:
    panel = Panel(family, [4, 2, 3])
    rest = panel.given({1: 0, 4: 1, 5: 0})  # one of the first unit, all of the second
    parts: list[DependenceModel] = [family(4).given([1]), family(3)]
    expected = sum(part.n * part.variance_inflation() for part in parts) / 6
    assert rest.variance_inflation() == pytest.approx(expected, rel=1e-12)
    leakages = np.concatenate([np.asarray(part.leakage(0.1), dtype=np.float64) for part in parts])
    np.testing.assert_allclose(rest.leakage(0.1), leakages, rtol=1e-12)
    law = rest.joint()
    np.testing.assert_allclose(law, np.multiply.outer(family(4).given({1: 0}).joint(), family(3).joint()), rtol=1e-12)
    drawn = rest.sample(np.random.default_rng(0))
    assert drawn.shape == (6,)
    record = 0
    others = list(range(1, 6))
    worst = max(
        exact_leakage(law, np.full(6, 0.1), record, known)
        for size in range(3)
        for known in itertools.combinations(others, size)
    )
    assert worst <= rest.leakage(0.1)[record] + 1e-7


@for_each(
    ("model", "units", "words"),
    [
        (family, 3, "number of records of each unit"),
        (family, [3, 0], "units"),
        (lambda n: MarkovChain(TWO, n=n + 1), [3, 2], "of 2 records"),
        (lambda n: n, [3], "of 3 records"),
        (3, [3], "function from the number of records"),
    ],
)
def test_families_that_are_refused(model: Any, units: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        Panel(model, units)


def test_known_records_beside_units_of_one_record() -> None:
    panel = Panel(lambda n: MarkovChain(TWO, n=n), [1, 2])
    np.testing.assert_allclose(panel.given([1]).leakage([0.1, 0.2]), [0.1, 0.2], rtol=1e-12)


def test_limits_of_different_units_may_all_fail() -> None:
    def fitted(n: int) -> DependenceModel:
        return GaussianField.ar(0.5, n).fitted(FittedLimits(f"series of {n}", 100 * n, n / 128))

    assert Panel(fitted, [2, 3, 3]).fit_failure == pytest.approx(5 / 128, rel=1e-12)
    assert Panel(fitted, [2, 3, 3]).fit_failure >= 5 / 128
    assert Panel(fitted, [100, 120]).fit_failure == 1.0
    once = FittedLimits("series", 500, 0.01)
    assert Panel(lambda n: GaussianField.ar(0.5, n).fitted(once), [2, 3]).fitted_limits == once
    assert Panel(lambda n: MarkovChain(TWO, n=n), [2, 3]).fit_failure == 0.0
