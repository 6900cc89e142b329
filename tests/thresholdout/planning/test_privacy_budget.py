"""Noise for a privacy budget: never more told than declared, by exact linear programs; certified widths; refusals."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphs import BayesianNetwork, DependenceModel, Groups, HiddenMarkov, Independent, MarkovChain, MarkovField
from graphs.leakage.exact import exact_leakage
from tests.cases import for_each
from tests.sizes import corners
from tests.thresholdout.planning.test_plan import Unlimited
from thresholdout import Claims, InputError, PlanError, SparseVector, Thresholdout, plan
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.errors import InputTypeError, MechanismWarning, WideAnswersWarning
from thresholdout.mechanisms import interaction_epsilon
from thresholdout.planning.declaration import BudgetMethod
from thresholdout.planning.declared_parameters import check_choice
from thresholdout.planning.privacy_budget import for_budget, record_budget

N = 10_000


def chain(gap: float, n: int) -> MarkovChain:
    stay = 1 - gap / 2
    return MarkovChain([[stay, 1 - stay], [1 - stay, stay]], n=n)


def two_parents() -> BayesianNetwork:
    graph: nx.DiGraph[str] = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d")])
    tables: dict[str, Any] = {
        "a": [0.5, 0.5],
        "b": [0.4, 0.6],
        "c": [[[0.8, 0.2], [0.5, 0.5]], [[0.4, 0.6], [0.3, 0.7]]],
        "d": [[0.7, 0.3], [0.35, 0.65]],
    }
    return BayesianNetwork(graph, tables)


SMALL: dict[str, Callable[[], DependenceModel]] = {
    "chain": lambda: chain(0.6, 5),
    "tree": lambda: MarkovField.ising(nx.star_graph(3), 0.3),
    "loop": lambda: MarkovField.ising(nx.cycle_graph(4), 0.25),
    "network": two_parents,
    "groups": lambda: Groups([0, 0, 1, 1, 1]),
}


def joint(model: DependenceModel) -> Any:
    """Return a law of groups: each is one fair coin; other models state their own."""
    if not isinstance(model, Groups):
        return model
    law = np.zeros((2,) * 5)
    for a, b in itertools.product((0, 1), repeat=2):
        law[a, a, b, b, b] = 0.25
    return law


def told(model: DependenceModel, per_record: float) -> float:
    """Return what the worst mechanism tells of any record, to whoever knows none or one other."""
    law, most = joint(model), 0.0
    names: Any = getattr(law, "records", range(model.n))
    for record in names:
        for known in [(), *((other,) for other in names if other != record)]:
            most = max(most, exact_leakage(law, per_record, record, known))
    return most


@pytest.mark.parametrize("name", corners(SMALL, 3, 4))
def test_no_mechanism_tells_more_than_declared(name: str) -> None:
    model = SMALL[name]()
    methods: tuple[BudgetMethod, ...] = ("best", "group", "quilt", "spectral", "messages")
    for method in methods:
        per_record = None
        with contextlib.suppress(InputError):
            per_record = record_budget(model, 0.5, method)
        if per_record is None:
            assert method in ("quilt", "spectral", "messages")
            continue
        assert 0 < per_record <= record_budget(model, 0.5)
        assert told(model, per_record) <= 0.5 + 1e-7


def test_the_budget_of_independent_records_tells_more() -> None:
    assert told(SMALL["chain"](), 0.5) > 0.6
    assert told(SMALL["groups"](), 0.5) > 1.4


def tabled(gap: float) -> HiddenMarkov:
    stay = 1 - gap / 2
    return HiddenMarkov([[stay, 1 - stay], [1 - stay, stay]], n=N, emission=[[0.73, 0.27], [0.27, 0.73]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "most"),
    [
        pytest.param(lambda: chain(0.5, N), 0.22, id="chain"),
        pytest.param(lambda: tabled(0.1), 0.34, id="hidden", marks=pytest.mark.slow),
        pytest.param(
            lambda: MarkovField.ising(nx.balanced_tree(2, 13).subgraph(range(N)).copy(), 0.36),
            0.31,
            id="tree",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda: MarkovField.ising(nx.grid_2d_graph(100, 100), 0.19), 0.25, id="grid", marks=pytest.mark.slow
        ),
    ],
)
def test_what_is_certified_at_an_epsilon_of_one_half(made: Any, most: float) -> None:
    model = made()
    wanted = SparseVector.for_budget(0.5, answers=5, queries=100)
    found = for_budget(model, wanted, queries=None, confidence=0.95)
    certificate = certify_parameters(model, found)
    assert certificate.tolerance <= most
    assert certificate.epsilon == interaction_epsilon(N, found.noise_scale, 5, found.ratios)
    assert certificate.epsilon <= model.budget(0.5)
    assert certificate.bayesian_epsilon is not None
    assert 0.49 < certificate.bayesian_epsilon <= 0.5


@pytest.mark.slow
def test_three_lines_to_a_noisy_certified_answer() -> None:
    rng = np.random.default_rng(0)
    model = MarkovField.ising(nx.random_labeled_tree(2000, seed=1), 0.3)
    holdout, train = model.sample(rng), model.sample(rng)
    guard = Thresholdout(
        (np.arange(2000.0)[:, None], holdout),
        train=(np.arange(2000.0)[:, None] + 0.5, train),
        dependence=model,
        mechanism="algorithm-1",
        epsilon=1.5,
        random_state=1,
    )
    answer = guard.ask(0.95, holdout == 1)
    assert answer.source == "holdout"
    assert answer.interval[0] <= 0.5 <= answer.interval[1]
    status = guard.status
    assert status.epsilon is not None
    assert status.bayesian_epsilon is not None
    assert status.epsilon < 0.8 < status.bayesian_epsilon <= 1.5
    assert model.leakage(status.epsilon).max() == status.bayesian_epsilon
    assert "per record and 1.5 with dependants" in repr(guard)
    assert (
        "Bayesian differentially private with epsilon 1.5 under the declared dependence" in guard.certificate.statement
    )


def test_claims_have_the_noise_for_a_record_and_its_dependants() -> None:
    model = Groups(np.arange(6000) // 3)
    guard = Thresholdout(np.arange(6000.0), dependence=model, mechanism=Claims(epsilon=3.0), random_state=0)
    assert guard.status.epsilon == pytest.approx(1.0, rel=1e-6)
    assert (guard.status.epsilon or 9.0) <= 1.0
    assert guard.status.bayesian_epsilon == pytest.approx(3.0, rel=1e-6)
    alone = Thresholdout(np.arange(6000.0), mechanism=Claims(epsilon=1.0), random_state=0)
    assert alone.status.epsilon == alone.status.bayesian_epsilon
    assert "dependants" not in repr(alone)


@pytest.mark.slow
@for_each("mechanism", [SparseVector.for_budget(0.01, answers=2), Claims(epsilon=0.01)])
def test_an_epsilon_that_hides_everything_names_one_that_does_not(mechanism: Any) -> None:
    model = Groups(np.arange(2000) // 2)
    with pytest.raises(PlanError, match="hides everything") as refused:
        Thresholdout(np.arange(2000.0), dependence=model, mechanism=mechanism)
    found = re.search(r"The smallest epsilon that does not is about ([\d.]+)\. ", str(refused.value))
    assert found is not None
    enough = float(found[1])

    def made(epsilon: float) -> Any:
        if isinstance(mechanism, Claims):
            return Claims(epsilon=epsilon)
        return SparseVector.for_budget(epsilon, answers=2)

    with pytest.warns(WideAnswersWarning):
        Thresholdout(np.arange(2000.0), dependence=model, mechanism=made(enough))
    with pytest.raises(PlanError):
        Thresholdout(np.arange(2000.0), dependence=model, mechanism=made(0.9 * enough))


@pytest.mark.slow
def test_records_of_which_no_epsilon_leaves_anything() -> None:
    with pytest.raises(PlanError, match="so does every other one"):
        Thresholdout(np.arange(20.0), mechanism=SparseVector.for_budget(0.5))


@pytest.mark.slow
def test_the_published_setting_certifies_nothing() -> None:
    """[Z17, Theorem 2] with c = 1/2: T = (1+c) tau/2 and sigma = (1-c) tau/(12 ln(4m/beta))."""
    wanted = SparseVector.for_budget(0.5, setting="published")
    with pytest.warns(MechanismWarning, match="certifies nothing .* setting='certified' certifies"):
        found = for_budget(Independent(N), wanted, queries=100, confidence=0.95)
    tolerance = found.noise_scale * 12 * math.log(4 * 100 / 0.05) / (1 - 0.5)
    assert found.threshold == pytest.approx(1.5 * tolerance / 2)
    assert found.noise_scale == pytest.approx(9 * 5 / (4 * N * 0.5), rel=1e-6)
    assert certify_parameters(Independent(N), found).tolerance >= 0.5


@pytest.mark.slow
def test_more_records_and_a_smaller_margin_certify_more() -> None:
    def width(n: int, **changes: Any) -> float:
        found = for_budget(Independent(n), SparseVector.for_budget(0.5, **changes), queries=None, confidence=0.95)
        return certify_parameters(Independent(n), found).tolerance

    assert width(20_000) < width(10_000) < width(10_000, quiet_margin=0.02) < 0.2
    assert width(10_000, answers=2) < width(10_000)


def test_a_choice_by_epsilon() -> None:
    assert check_choice("algorithm-1", 0.5) == SparseVector.for_budget(0.5)
    for mechanism, epsilon, kind, words in (
        ("algorithm-1", None, InputError, "epsilon is missing: pass a positive number"),
        ("claims", 0.5, InputError, "Claims\\(epsilon=...\\)"),
        (None, 0.5, InputError, "None without mechanism='algorithm-1'"),
        ("algorithm-1", "much", (InputError, InputTypeError), "a positive number"),
        ("algorithm-2", 0.5, InputError, "'algorithm-1'"),
    ):
        with pytest.raises(kind, match=words):
            check_choice(mechanism, epsilon)
    with pytest.raises(InputError, match=r"queries must be 20, as in for_budget"):
        Thresholdout(np.arange(900.0), queries=10, mechanism=SparseVector.for_budget(5.0, queries=20))
    with pytest.raises(InputError, match=r"method must be .*; got 'messages' for"):
        Thresholdout(
            np.arange(900.0),
            dependence=Groups(np.arange(900) // 2),
            mechanism=SparseVector.for_budget(5.0, method="messages"),
        )


@pytest.mark.slow
def test_a_guard_for_a_budget_is_continued(tmp_path: Any) -> None:
    given: dict[str, Any] = {
        "mechanism": "algorithm-1",
        "epsilon": 1.0,
        "ledger": tmp_path / "guard.db",
        "random_state": 1,
    }
    records = np.arange(4000.0)
    first = Thresholdout(records, **given)
    first.ask(0.9, records > 2000)
    again = Thresholdout(records, **given)
    assert again.parameters == first.parameters
    assert again.status == first.status


@pytest.mark.slow
def test_plans_have_a_row_for_every_way() -> None:
    for model, changes, absent in (
        (1000, {}, {"Algorithm 1"}),
        (1000, {"queries": 1}, {"Algorithm 1", "batch"}),
        (chain(0.5, N), {"epsilon": 0.5}, {"batch", "single"}),
        (Unlimited(100_000, 1), {"queries": 50}, {"adaptive", "batch", "single"}),
        (Independent(300), {"epsilon": 5.0, "queries": 20, "budget": 20}, {"batch", "single", "Algorithm 1"}),
    ):
        given: dict[str, Any] = changes
        found = plan(model, **given)
        assert {way.name for way in found.ways} == {"single", "batch", "adaptive", "Algorithm 1"}
        missing = {way.name for way in found.ways if not way.applies}
        assert missing == absent
        for name in missing:
            way = found.way(name)
            assert way.why_not
            assert way.half_width == math.inf
            assert way.parameters is None


@pytest.mark.slow
def test_a_plan_for_an_epsilon_is_what_guards_have() -> None:
    model = Groups(np.arange(N) // 2)
    found = plan(model, epsilon=0.5, queries=50, budget=3)
    way = found.way("Algorithm 1")
    assert way.parameters == for_budget(model, SparseVector.for_budget(0.5, 3), queries=50, confidence=0.95)
    assert found.way("adaptive").parameters is not None
    assert getattr(found.way("adaptive").parameters, "epsilon", None) == record_budget(model, 0.5)
    assert found.budgets.loc["group", "budget"] == pytest.approx(0.25)
    assert found.to_json()["epsilon"] == 0.5
    with pytest.raises(InputError, match="beside width="):
        plan(model, epsilon=0.5, width=0.1)
    with pytest.raises(PlanError, match="one after another"):
        plan(model, epsilon=0.5, queries=50, adaptive=False)
