"""Analysts: what they see, what they do to a reused holdout, and how they take a refusal."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from graphs import Groups, Independent
from tests.cases import for_each
from thresholdout import BudgetExhausted, InputError, SeededNoise
from thresholdout.mechanisms import ClaimsParameters, SparseVectorParameters
from thresholdout.simulation import (
    AggregationAnalyst,
    BenignSearch,
    ClusterAnalyst,
    FeatureSelectionAnalyst,
    NaiveReuse,
    QuadraticAnalyst,
    SimulatedGuard,
    StrategicAnalyst,
    interview,
)
from thresholdout.simulation.analysts import Vote
from thresholdout.simulation.simulated_session import Analyst, Part, Query, Reply
from thresholdout.simulation.strategic import around_hubs

RECORDS, ATTRIBUTES = 300, 36
ANALYSTS: dict[str, Analyst] = {
    "aggregation": AggregationAnalyst(),
    "benign": BenignSearch(8),
    "benign, validated": BenignSearch(8, validated=True),
    "quadratic": QuadraticAnalyst(30),
    "quadratic, claims": QuadraticAnalyst(30, claim=0.5),
    "strategic": StrategicAnalyst(10, 6, 0.1),
    "strategic, guesses": StrategicAnalyst(3, 0, 0.1),
    "clusters": ClusterAnalyst(np.arange(RECORDS) // 50),
}


def coins(rng: np.random.Generator, n: int = RECORDS, d: int = ATTRIBUTES) -> Part:
    """Draw records without any signal."""
    return Part(rng.random((n, d)) < 0.5, rng.random(n) < 0.5)


@dataclass
class Deaf:
    """Answers from a list, whatever the holdout is, and evaluates every query on a probe."""

    answers: NDArray[np.float64]
    refuse_at: float = math.inf
    claims: list[float] = field(default_factory=list)

    def ask(self, train_values: Any, holdout_values: Any) -> Reply:
        if len(self.claims) == self.refuse_at:
            raise BudgetExhausted("budget", len(self.claims), len(self.claims))
        self.claims.append(float(np.mean(train_values)))
        return Reply(float(self.answers[len(self.claims) - 1]), 0.1, "holdout")


def probed(analyst: Analyst, holdout: Part, probe: Part, train: Part) -> list[Any]:
    """Return what all queries say about a probe, and all claims, when the holdout is not heard."""
    seen: list[Any] = []

    def truth(query: Query) -> float:
        seen.append(np.asarray(query(probe)).tolist())
        return 0.5

    mechanism = Deaf(np.random.default_rng(5).random(1000))
    interview(analyst, mechanism, train, holdout, np.random.default_rng(6), truth)
    return [seen, mechanism.claims]


@for_each("name", ANALYSTS)
def test_an_analyst_knows_the_training_part_and_the_answers_alone(name: str) -> None:
    rng = np.random.default_rng(1)
    train, probe, one, other = (coins(rng) for _ in range(4))
    first = probed(ANALYSTS[name], one, probe, train)
    assert first == probed(ANALYSTS[name], other, probe, train)
    assert len(first[0]) >= 3


@for_each("name", ANALYSTS)
@for_each("allowed", [0, 2])
def test_a_refusal_ends_every_analyst(name: str, allowed: int) -> None:
    rng = np.random.default_rng(2)
    mechanism = Deaf(np.full(1000, 0.6), refuse_at=allowed)
    session = interview(ANALYSTS[name], mechanism, coins(rng), coins(rng), rng)
    assert (session.refused, session.answered, session.reported) == (True, allowed, None)


@pytest.mark.statistical
def test_aggregation_overfits_as_much_as_theory_says() -> None:
    """A vote of k rules, each turned to its better side on n records, is right with share Phi(sqrt(2k/(pi n))).

    Each rule leans by sqrt(1/(2 pi n)) in the mean. Error rate 1e-9 at six standard errors of at most 0.5/sqrt(n) each.
    """
    n, k, sessions = 500, 200, 20
    rng = np.random.default_rng(3)
    reported, fresh = [], []
    for _ in range(sessions):
        train, holdout, world = (coins(rng, n, k) for _ in range(3))

        def truth(query: Query, world: Part = world) -> float:
            return float(np.mean(query(world)))

        session = interview(AggregationAnalyst(), NaiveReuse(), train, holdout, rng, truth)
        assert session.reported is not None
        reported.append(session.reported.holdout)
        fresh.append(session.reported.truth)
    allowed = 6.2 * 0.5 / math.sqrt(n * sessions)
    expected = NormalDist().cdf(math.sqrt(2 * k / (math.pi * n)))
    assert abs(np.mean(reported) - expected) < allowed + 0.005  # Phi is a limit
    assert abs(np.mean(fresh) - 0.5) < allowed
    assert expected - 0.5 > 4 * allowed  # an analyst without effect would fail


def test_an_aggregation_asks_for_as_many_rules_as_told() -> None:
    rng = np.random.default_rng(0)
    session = interview(AggregationAnalyst(rules=5), NaiveReuse(), coins(rng), coins(rng), rng)
    assert session.answered == 6


def test_the_quadratic_analyst_is_naive_bayes_at_squares() -> None:
    rng = np.random.default_rng(4)
    train, holdout = coins(rng), coins(rng)
    session = interview(QuadraticAnalyst(17, claim=0.25), NaiveReuse(), train, holdout, rng)
    assert {exchange.train for exchange in session.history} == {0.25}
    answers: list[float] = []
    for asked, exchange in enumerate(session.history, start=1):
        if asked in (4, 9, 16):
            right = 0
            for row, label in zip(holdout.features, holdout.labels, strict=True):
                score = sum(
                    math.log(a / (1 - a)) * (1 if value else -1) for a, value in zip(answers, row, strict=False)
                )
                right += (score > 0) == label
            assert exchange.holdout == pytest.approx(right / RECORDS, abs=1e-12)
        else:
            column = len(answers)
            answers.append(float(np.mean(holdout.features[:, column] == holdout.labels)))
            assert exchange.holdout == answers[-1]


def test_a_validated_search_claims_what_the_other_half_says() -> None:
    rng = np.random.default_rng(5)
    train, holdout = coins(rng), coins(rng)
    half = RECORDS // 2
    swapped = Part(
        np.vstack([train.features[:half], ~train.features[half:]]), train.labels
    )  # other values for the claims, the same candidates
    found = [
        interview(BenignSearch(5, validated=True), Deaf(np.full(99, 0.5)), part, holdout, rng)
        for part in (train, swapped)
    ]
    assert [x.holdout for x in found[0].history] == [x.holdout for x in found[1].history]
    largest = interview(BenignSearch(1, validated=True), NaiveReuse(), train, holdout, rng).history[0]
    leans = [(abs(np.mean(train.features[:half, j] == train.labels[:half]) - 0.5), -j) for j in range(ATTRIBUTES)]
    column = -max(leans)[1]
    agrees = train.features[:, column] == train.labels
    turned = agrees if agrees[:half].mean() > 0.5 else ~agrees
    assert largest.train == pytest.approx(turned[half:].mean())


def test_validated_claims_save_the_budget() -> None:
    rng = np.random.default_rng(6)
    n, d = 1000, 400
    chosen = SparseVectorParameters(0.1, 0.001, budget=20, queries=21)
    guard = SimulatedGuard(chosen, Independent(n), SeededNoise(0))
    train, holdout = coins(rng, n, d), coins(rng, n, d)
    spent = []
    for validated in (False, True):
        search = BenignSearch(20, validated=validated)
        session = interview(search, guard.renewed(SeededNoise(1)), train, holdout, rng)
        spent.append(sum(exchange.reply.source == "holdout" for exchange in session.history))
    assert spent[0] >= 10
    assert spent[1] == 0


def test_the_strategic_analyst_breaks_a_guard_that_ignores_groups_and_no_other() -> None:
    rng = np.random.default_rng(7)
    n, size = 2000, 100
    groups = np.arange(n) // size
    broken = []
    for model in (Independent(n), Groups(groups)):
        effective = model.effective_records()
        chosen = ClaimsParameters(
            0.9, effective=None if effective == n else effective, inflation=model.variance_inflation()
        )
        guard = SimulatedGuard(chosen, model, SeededNoise(0), 0.9)
        assert guard.certificate.route == "claims"
        sessions = []
        for seed in range(10):
            train, holdout = (
                Part(part.features[groups], part.labels[groups]) for part in (coins(rng, n // size) for _ in range(2))
            )
            analyst = StrategicAnalyst(12, 3, 0.05)
            sessions.append(interview(analyst, guard.renewed(SeededNoise(seed)), train, holdout, rng, 0.5).broken)
        broken.append(sum(sessions))
    assert broken[0] >= 5
    assert broken[1] == 0


def test_clusters_are_asked_about_the_largest_first() -> None:
    clusters = np.repeat([0, 1, 2], [50, 150, 100])
    part = Part(np.zeros((300, 1)), np.ones(300, dtype=bool))
    session = interview(ClusterAnalyst(clusters, largest=2), NaiveReuse(), part, part, np.random.default_rng(0))
    assert [x.holdout for x in session.history] == [1.0, 0.75, 0.5 + 50 / 300, 1.0]
    with pytest.raises(InputError, match="clusters"):
        interview(ClusterAnalyst(clusters[:9]), NaiveReuse(), part, part, np.random.default_rng(0))


def test_nodes_go_to_their_nearest_hub() -> None:
    graph = nx.barabasi_albert_graph(60, 1, seed=2)
    hubs = sorted(graph, key=lambda node: -graph.degree(node))[:4]
    nearest = around_hubs(graph, 4)
    distance = dict(nx.all_pairs_shortest_path_length(graph))
    for node, number in enumerate(nearest):
        assert distance[node][hubs[number]] == min(distance[node][hub] for hub in hubs)
    graph.add_node("far")
    assert around_hubs(graph, 4, ["far", 0])[0] == 4
    with pytest.raises(InputError, match="hubs"):
        around_hubs(graph, 0)


def test_ties_of_a_vote_and_no_vote_at_all_say_no() -> None:
    part = Part(np.array([[True, False], [True, True]]), np.array([False, True]))
    assert Vote(np.array([0, 1]), np.array([1.0, 1.0]))(part).tolist() == [True, True]
    empty = Vote(np.zeros(0, dtype=np.intp), np.zeros(0))
    assert empty.predict(part.features).tolist() == [False, False]


@for_each("sizes", [[], [2, 1], [1, 1], [-1]])
def test_sizes_increase(sizes: list[int]) -> None:
    with pytest.raises(InputError, match="sizes"):
        FeatureSelectionAnalyst(sizes)
