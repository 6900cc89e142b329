"""The number of records of a kind that a width takes, against a direct search over all numbers and a closed form."""

from __future__ import annotations

import math
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

from graphs import DependenceModel, GaussianField, Groups, Independent, MarkovChain, MarkovField, MovingWindow, Panel
from graphs.fitted_limits import FittedLimits
from tests.cases import for_each
from thresholdout import InputError, InputTypeError, PlanError, plan
from thresholdout.planning.plan import Way

TRANSITION = np.array([[0.7, 0.3], [0.3, 0.7]])


def chain(n: int) -> DependenceModel:
    return MarkovChain(TRANSITION, n=n)


def windows(n: int) -> DependenceModel:
    return MovingWindow(n, 3)


def fours(n: int) -> DependenceModel:
    return Groups(np.arange(n) // 4)


def panel(n: int) -> DependenceModel:
    return Panel(MarkovChain(TRANSITION, n=10), max(1, n // 10))


def path(n: int) -> DependenceModel:
    return MarkovField.ising(nx.path_graph(n), 0.2)


@pytest.mark.slow
@for_each("family", [chain, windows, fours, panel, path])
@pytest.mark.parametrize("width", [0.25, pytest.param(0.15, marks=pytest.mark.slow)])
def test_a_direct_search_finds_the_same_number(family: Callable[[int], DependenceModel], width: float) -> None:
    """Ten by ten from the independent number on, without the search: the first that reaches the width."""
    found = plan(family, width=width, queries=5, adaptive=False)
    n = plan(width=width, queries=5, adaptive=False).records
    while plan(family(n), queries=5, adaptive=False).half_width > width:
        n += 10
    first = family(n).n
    assert first - 10 < found.records <= first + max(10, first // 200)  # ten: a step, or a unit of the panel
    assert found.half_width <= width
    assert found.model.fingerprint() == family(found.records).fingerprint()
    assert found.recommended.records == found.records


@pytest.mark.slow
def test_groups_take_what_relative_entropy_says() -> None:
    """Closed form for copies: n/4 effective records; each end of 20 intervals has the probability 0.05/40 at most.

    Stated limits are rounded outwards to multiples of 1/1024, so the width may have to be reached a step earlier.
    """
    found = plan(fours, width=0.1, queries=20, adaptive=False, anticipated_score=0.5, correlation=1.0)

    def records(width: float) -> float:
        entropy = 0.5 * math.log(0.5 / (0.5 + width)) + 0.5 * math.log(0.5 / (0.5 - width))
        return 4 * math.log(800) / entropy

    assert records(0.1) <= found.records + 4 <= records(0.1 - 1 / 1024) + 8  # whole groups


@pytest.mark.slow
def test_adaptive_queries_to_a_chain() -> None:
    found = plan(chain, width=0.1, queries=30)
    assert found.half_width <= 0.1
    assert plan(chain(round(0.985 * found.records)), queries=30).half_width > 0.1
    independent = plan(width=0.1, queries=30).records
    assert found.records > 2 * independent  # (1 + 0.4) / (1 - 0.4) of them
    ways: dict[str, Way] = {way.name: way for way in found.ways}
    for name, adaptive, queries in (("batch", False, 30), ("single", False, 1)):
        fewest = ways[name].records
        assert fewest is not None
        assert plan(chain(fewest), queries=queries, adaptive=adaptive).half_width <= 0.1


@pytest.mark.slow
def test_a_model_of_too_few_records_says_how_many_of_its_kind_it_takes() -> None:
    """Not how many independent ones: the number is that of the family within two per cent."""
    few = plan(chain(100), width=0.15, queries=10)
    assert few.recommended.records is not None
    assert few.recommended.records == pytest.approx(plan(chain, width=0.15, queries=10).records, rel=0.02)
    assert f"about {few.recommended.records:,} records of this kind" in few.warnings[0]
    with pytest.raises(PlanError, match=r"One query takes about [\d,]+ records of this kind"):
        plan(chain(60), width=0.05, adaptive=False)
    alone = plan(Groups([0] * 50), width=0.3, queries=3)
    assert alone.recommended.records is None
    assert "records of this kind" not in alone.warnings[0]


def test_records_in_order_are_a_kind() -> None:
    found = plan(order=True, window=3, width=0.2, queries=5)
    assert isinstance(found.model, MovingWindow)
    assert found.records == plan(windows, width=0.2, queries=5).records
    with pytest.raises(InputError, match="window"):
        plan(order=True, width=0.2)
    with pytest.raises(InputError, match="width= to find it"):
        plan(order=True, window=3)


@pytest.mark.slow
def test_limits_of_a_fitted_family_are_paid_for() -> None:
    def fitted(n: int) -> DependenceModel:
        return GaussianField.ar(0.3, n).fitted(FittedLimits("series", 500, 0.01))

    found = plan(fitted, width=0.25, queries=10, adaptive=False)
    declared = plan(lambda n: GaussianField.ar(0.3, n), width=0.25, queries=10, adaptive=False)
    assert found.model.fit_failure == 0.01
    assert found.records > declared.records
    assert plan(fitted(found.records), queries=10, adaptive=False).half_width <= 0.25


@pytest.mark.slow
def test_families_of_steps_and_of_no_limit() -> None:
    """A family that grows by doubling alone, and one of which more records do not help."""
    doubling = plan(lambda n: Independent(2 ** max(3, math.floor(math.log2(n)))), width=0.1, queries=5, adaptive=False)
    needed = plan(width=0.1, queries=5, adaptive=False).records
    assert doubling.records == 2 ** math.ceil(math.log2(needed))

    def copies(n: int) -> DependenceModel:
        return Groups(np.zeros(min(n, 1000), dtype=int))

    with pytest.raises(PlanError, match=r"No number of records up to 1e\+07"):
        plan(copies, width=0.1, queries=5)


def test_few_models_are_made() -> None:
    made: list[int] = []

    def counted(n: int) -> DependenceModel:
        made.append(n)
        return windows(n)

    found = plan(counted, width=0.05, queries=20)
    assert len(made) <= 25
    assert max(made) <= 1.5 * found.records


def test_a_family_is_a_function_to_models_beside_a_width() -> None:
    with pytest.raises(InputError, match="Pass width=, the half-width to reach"):
        plan(chain)
    with pytest.raises(InputTypeError, match="returns a int"):
        plan(lambda n: n, width=0.1)  # type: ignore[arg-type, return-value]
