"""Simulations of dependent records: exact laws, the same data for every way, and what each way says of itself."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest

from graphs import (
    BayesianNetwork,
    DependenceModel,
    GaussianField,
    Groups,
    HiddenMarkov,
    Independent,
    MarkovChain,
    MarkovField,
)
from tests.cases import for_each
from thresholdout import InputError, InputTypeError, SeededNoise, plan
from thresholdout.simulation import (
    AggregationAnalyst,
    ClusterAnalyst,
    DependentRecords,
    FeatureSelectionAnalyst,
    SimulatedGuard,
    simulate,
)
from thresholdout.simulation.comparison import DECLARED, IGNORED, REUSE
from thresholdout.simulation.simulated_session import NaiveReuse, Part, interview

VILLAGES = np.arange(1000) // 20
SWITCHING = [[0.9, 0.1], [0.1, 0.9]]


def directed() -> DependenceModel:
    graph = nx.DiGraph([(k, k + 1) for k in range(39)])
    return BayesianNetwork(graph, {0: [0.5, 0.5], **dict.fromkeys(range(1, 40), SWITCHING)})


@pytest.mark.slow
@for_each(
    "model",
    [
        Groups(np.arange(40) // 4),
        MarkovChain(SWITCHING, n=40),
        MarkovField.ising(nx.random_labeled_tree(40, seed=1), 0.3),
        MarkovField.ising(nx.grid_2d_graph(5, 8), 0.2),
        directed(),
        HiddenMarkov(SWITCHING, n=40),
        GaussianField.ar(0.5, 40),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_model_is_simulated(model: DependenceModel) -> None:
    found = simulate(model, ClusterAnalyst(np.arange(40) // 20), sessions=1, truth=0.5)
    assert set(found.queries["answers"]) == {REUSE, IGNORED, DECLARED}
    assert len(found.sessions) == 3
    assert (found.queries["truth"] == 0.5).all()


@pytest.mark.slow
def test_all_ways_answer_about_the_same_records_and_reuse_tells_their_means() -> None:
    found = simulate(Groups(VILLAGES), ClusterAnalyst(VILLAGES // 5, claim=0.5), truth=0.5, sessions=3).queries
    first = found[found["query"] == 0].pivot(index="session", columns="answers", values="holdout")
    assert (first.nunique(axis=1) == 1).all()
    assert first.nunique().min() == 3  # of other data in every session
    reuse = found[found["answers"] == REUSE]
    np.testing.assert_array_equal(reuse["answer"], reuse["holdout"])
    assert (reuse["error"] == (reuse["answer"] - 0.5).abs()).all()
    usual = Groups(VILLAGES).half_width(0.95)
    assert (reuse["half_width"] == usual).all()
    assert (reuse["broken"] == (reuse["error"] > usual)).all()


@pytest.mark.slow
def test_ignored_dependence_breaks_sessions_and_declared_does_not() -> None:
    """Groups of 20 equal labels, pairs of which the analyst turns to their side."""
    found = simulate(Groups(VILLAGES), ClusterAnalyst(VILLAGES // 2), truth=0.5, sessions=12)
    broken = found.table["broken"]
    assert broken[DECLARED] == 0.0
    assert broken[IGNORED] > 0.25
    assert found.table.loc[REUSE, "reported"] == pytest.approx(0.75, abs=0.05)  # 25 pairs of coins: E max = 3/4
    assert list(found.table.index) == [REUSE, IGNORED, DECLARED]
    by_hand = found.queries.groupby(["answers", "session"])["error"].max().groupby("answers").mean()
    assert found.table["error"].to_dict() == pytest.approx(by_hand.to_dict())


@pytest.mark.slow
def test_truths_that_are_not_declared_come_from_fresh_records() -> None:
    """A chain with the stationary law (2/3, 1/3): the share of positive labels is 1/3."""
    chain = MarkovChain([[0.8, 0.2], [0.4, 0.6]], n=500)
    found = simulate(chain, ClusterAnalyst(np.zeros(500, dtype=int), largest=0), sessions=2).queries
    share = found[found["query"] == 0]["truth"]
    assert share.nunique() == 1
    deviation = math.sqrt(1 / 3 * 2 / 3 * (1 + 0.4) / (1 - 0.4) / (500 * 30))
    assert share.iloc[0] == pytest.approx(1 / 3, abs=6.2 * deviation)


@pytest.mark.slow
def test_the_same_seed_is_the_same_simulation() -> None:
    first, again, other = (
        simulate(Groups(VILLAGES), ClusterAnalyst(VILLAGES // 10), sessions=2, truth=0.5, seed=seed).queries
        for seed in (1, 1, 2)
    )
    assert first.equals(again)
    assert not first.equals(other)


@pytest.mark.slow
def test_other_guards_by_name() -> None:
    own = SimulatedGuard(plan(1000, queries=20).parameters, Independent(1000), SeededNoise(0))
    kinds: dict[str, DependenceModel | SimulatedGuard] = {"own": own, "tens": Groups(np.arange(1000) // 10)}
    found = simulate(Groups(VILLAGES), ClusterAnalyst(VILLAGES // 10), protection=kinds, sessions=1, truth=0.5)
    assert list(found.table.index) == [REUSE, "own", "tens"]


@pytest.mark.slow
def test_pictures() -> None:
    law = DependentRecords(Groups(np.arange(200) // 4), attributes=9, draws=5)
    sizes = [2, 4, 8]
    found = simulate(law, FeatureSelectionAnalyst(sizes), sessions=2, truth=0.5)
    dots = [line for line in found.plot().lines if line.get_marker() == "o"]
    drawn = np.sort(np.concatenate([np.asarray(line.get_ydata()) for line in dots]))
    np.testing.assert_array_equal(drawn, np.sort(found.sessions["error"]))
    answers = found.plot_answers(sizes)
    assert len(answers.lines) == 6
    reuse = found.queries[found.queries["answers"] == REUSE]
    last = [group["answer"].to_numpy()[-3:] for _, group in reuse.groupby("session")]
    np.testing.assert_allclose(np.asarray(answers.lines[0].get_ydata(), dtype=float), np.mean(last, axis=0))
    assert np.asarray(answers.lines[0].get_xdata()).tolist() == sizes
    with pytest.raises(InputError, match="1 to 12 sizes"):
        found.plot_answers(range(13))


def test_the_analyst_who_selects_attributes_reads_booleans() -> None:
    """The same records as booleans and as -1 and 1: the same answers."""
    rng = np.random.default_rng(0)
    labels = rng.random((2, 400)) < 0.5
    features = labels[:, :, None] ^ (rng.random((2, 400, 10)) < 0.2)
    plain = [Part(f, y) for f, y in zip(features, labels, strict=True)]
    numbers = [Part(np.where(f, 1.0, -1.0), np.where(y, 1, -1)) for f, y in zip(features, labels, strict=True)]
    first, again = (
        interview(FeatureSelectionAnalyst([1, 9]), NaiveReuse(), train, holdout, rng)
        for train, holdout in (plain, numbers)
    )
    assert [x.reply.value for x in first.history] == [x.reply.value for x in again.history]
    assert first.reported is not None
    assert first.reported.holdout > 0.95  # nine attributes, each right with probability 0.8: 0.98
    zeros = Part(numbers[0].features, labels[0].astype(int))
    with pytest.raises(InputError, match="-1 and 1, or booleans"):
        interview(FeatureSelectionAnalyst([1]), NaiveReuse(), zeros, zeros, rng)


def test_what_cannot_be_simulated_is_refused() -> None:
    analyst = AggregationAnalyst()
    with pytest.raises(InputTypeError, match="records"):
        simulate(100, analyst)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a model of 1000 records"):
        simulate(Groups(VILLAGES), analyst, protection={"few": Independent(10)})
    with pytest.raises(InputTypeError, match=r"protection\['few'\]"):
        simulate(Groups(VILLAGES), analyst, protection={"few": 10})  # type: ignore[dict-item]
    with pytest.raises(InputError, match="truth"):
        simulate(Groups(VILLAGES), analyst, truth=2.0)
