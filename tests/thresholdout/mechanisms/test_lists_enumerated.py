"""Lists, other private releases and statistics by exact enumeration: all analysts of small depth (B7, B8 and B9).

Each broken twin must exceed beta; the rule, and the program itself, must not.
"""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

import thresholdout.mechanisms.claims.mechanism as mechanism
from graphs import Independent
from tests.cases import for_each
from tests.oracles.listed import ListProgram
from tests.oracles.risk_left import Model
from tests.oracles.trees_left import Channel, ListRule, Lists, Releases, ReleasesRule, Statistics, StatisticsRule
from tests.sizes import corners
from thresholdout.certificates.change_of_measure import smallest_nats
from thresholdout.mechanisms import Known
from thresholdout.mechanisms.claims import ClaimsMechanism, ClaimsParameters
from thresholdout.mechanisms.claims.lists import Told, after_list, list_level
from thresholdout.mechanisms.claims.score import FAILURE_SHARE
from thresholdout.noise.sources import SeededNoise
from thresholdout.privacy.accounting import BlackBox

_ABOVE = 1e-9  # of sums of floats


class TestLists:
    """Risk counted in the 8 outcomes of three coins."""

    @for_each("risk", [1, 2])
    def test_no_analyst_exceeds_beta(self, risk: int) -> None:
        assert Lists(3, signed=False).worst(risk, 3) == risk

    @pytest.mark.slow
    @pytest.mark.parametrize("risk", [1, 2, 4])
    def test_no_analyst_exceeds_beta_with_all_queries(self, risk: int) -> None:
        assert Lists(3).worst(risk, 2) == risk
        assert Lists(4, signed=False).worst(risk, 2) == risk

    @for_each(
        ("rule", "risk", "reached"),
        [
            (ListRule(level="all of it"), 1, 2),
            (ListRule(left="not reduced"), 1, 3),
            (ListRule(left="each all of it"), 1, 4),
            (ListRule(best="one level"), 1, 2),
            (ListRule(best="place for nothing"), 1, 4),
            (ListRule(partial=True), 2, 3),
        ],
        ids=[
            "each of two queries has the level of the list",
            "R not reduced by what a list spent",
            "what a list told is for nothing",
            "the best of two has the level of one query",
            "the place of the best is for nothing",
            "R left after a partial list",
        ],
    )
    def test_broken_twins_exceed_beta(self, rule: ListRule, risk: int, reached: int) -> None:
        """Risk counted in the 4 outcomes of two coins."""
        assert Lists(2).worst(risk, 2) == risk
        assert Lists(2, rule).worst(risk, 2) == reached > risk


def _claims(confidence: float) -> ClaimsMechanism:
    return ClaimsMechanism(ClaimsParameters(confidence=confidence, noise=0.0, n_train=1e6), 3)


def _ends(claims: ClaimsMechanism) -> list[float]:
    """Expectations just outside of what lists of two queries say."""
    noise, ends = SeededNoise(0), set()
    for count in range(4):
        reading = claims.read(np.arange(3) < count, 3, (0, 1), "values", Known(binary=True))
        _, (outcome, _) = claims.step_all(claims.start(noise), [(0.5, reading)] * 2, noise, 0.0)
        assert outcome.interval is not None
        ends |= {outcome.interval[0] - 1e-9, outcome.interval[1] + 1e-9}
    return sorted(end for end in ends if 0.0 < end < 1.0)


def _worst(confidence: float, depth: int, *, signed: bool, laws: list[float]) -> float:
    models = [Model((p,) * 3, signed=signed) for p in laws]
    program = ListProgram(models[0], _claims(confidence))
    return max(program.against(model).worst(depth) for model in models)


class TestTheProgram:
    """Every list of two queries, the best of two, and a final check, among single queries and failures."""

    @pytest.mark.parametrize("confidence", corners([0.5, 0.75, 0.95], 1))
    def test_no_list_exceeds_beta(self, confidence: float) -> None:
        worst = _worst(confidence, 1, signed=True, laws=_ends(_claims(confidence))[1:3])
        assert 0.2 * (1 - confidence) < worst <= 1 - confidence

    @pytest.mark.slow
    def test_no_analyst_exceeds_beta_in_two_nodes(self) -> None:
        claims = _claims(0.75)
        assert ListProgram(Model((_ends(claims)[2],) * 3, signed=False), claims).worst(2) <= 0.25

    @pytest.mark.slow
    @for_each("confidence", [0.5, 0.75, 0.95])
    def test_no_final_check_exceeds_beta_and_some_come_near(self, confidence: float) -> None:
        claims, noise, ends = _claims(confidence), SeededNoise(0), set()
        for count, train in itertools.product(range(4), (0.0, 0.5, 1.0)):
            reading = claims.read(np.arange(3) < count, 3, (0, 1), "values", Known(binary=True))
            _, outcome = claims.final(claims.start(noise), train, reading, noise)
            assert outcome.interval is not None
            ends |= {round(outcome.interval[0] - 1e-9, 12), round(outcome.interval[1] + 1e-9, 12)}
        laws = sorted(end for end in ends if 0.0 < end < 1.0)[::2]
        program = ListProgram(Model((0.5,) * 3, signed=False), claims, keeps=(0.0,))
        worst = max(program.against(Model((p,) * 3, signed=False)).worst(1) for p in laws)
        assert 0.85 * (1 - confidence) < worst <= 1 - confidence

    @pytest.mark.slow
    @pytest.mark.parametrize("confidence", [0.5, 0.75, 0.95])
    def test_no_analyst_exceeds_beta_for_any_law(self, confidence: float) -> None:
        claims = _claims(confidence)
        laws = [(p,) * 3 for p in _ends(claims)] + [(0.5, 0.25, 0.75), (0.9, 0.9, 0.1), (0.99, 0.3, 0.3)]
        program = ListProgram(Model(laws[0], signed=False), claims)
        for law in laws:
            assert program.against(Model(law, signed=False)).worst(2) <= 1 - confidence

    def test_a_level_that_is_not_shared_exceeds_beta(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(mechanism, "list_level", lambda risk, k, keep: list_level(risk, 1, keep))
        assert _worst(0.5, 1, signed=True, laws=_ends(_claims(0.5))[2:3]) > 0.53

    @pytest.mark.slow
    def test_a_list_that_is_told_for_nothing_exceeds_beta(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(mechanism, "after_list", lambda risk, keep, told: after_list(risk, keep, []))
        assert _worst(0.5, 2, signed=False, laws=_ends(_claims(0.5))[1:2]) > 0.52

    @for_each("log_error_budget", [-0.1, -3.0, -1e3, -1e6, -1e8])
    def test_what_a_list_spends_and_leaves_adds_up_to_at_most_the_risk(self, log_error_budget: float) -> None:
        """In many digits, for the outcomes of a fair coin."""
        for keep in (0.01, 0.2, 0.5, 0.99):
            for k in (1, 3, 1000):
                told = [Told(0.5, (0.0, 1.0), math.log(2.0))]
                with mp.workdps(60):
                    total = (
                        2 * k * mp.exp(mp.mpf(list_level(log_error_budget, k, keep)) - log_error_budget)
                        + 2 * FAILURE_SHARE
                    )
                    total += 2 * mp.exp(mp.mpf(after_list(log_error_budget, keep, told)) - log_error_budget)
                    assert 1 - 1e-6 < total <= 1


class TestLooks:
    """A record with 16 or 32 equally likely values, of which a look tells something."""

    @for_each(
        "channel",
        [
            Channel.randomized_response(16, 5.0),
            Channel.randomized_response(32, 9.0),
            Channel.randomized_response(4, 3.0).of(2),
            Channel.erasure(16, 0.1),
        ],
        ids=["pure", "pure, finer", "pure, two records", "with a delta"],
    )
    @for_each("risk", [0.125, 0.25, 0.5])
    def test_no_analyst_exceeds_beta(self, channel: Channel, risk: float) -> None:
        """Looks, claims and looks again, each look at its exact price at the risk of its own node."""
        assert Releases(channel).worst(risk, 3) <= risk + _ABOVE

    @for_each(
        ("channel", "rule", "reached"),
        [
            (Channel.randomized_response(32, 9.0), ReleasesRule(free=True), 0.51),
            (Channel.erasure(16, 0.1), ReleasesRule(free=True), 0.39),
            (Channel.randomized_response(32, 9.0), ReleasesRule(at_the_start=True), 0.32),
            (Channel.erasure(16, 0.1), ReleasesRule(at_the_start=True), 0.268),
        ],
        ids=["free", "free, with a delta", "at the first's risk", "at the first's risk, with a delta"],
    )
    def test_broken_twins_exceed_beta(self, channel: Channel, rule: ReleasesRule, reached: float) -> None:
        assert Releases(channel, rule).worst(0.25, 3) > reached

    @for_each(
        ("one", "records", "event"),
        [
            (Channel.randomized_response(4, 3.0), 1, BlackBox(math.log(3.0))),
            (Channel.randomized_response(4, 3.0), 3, BlackBox(math.log(3.0))),
            (Channel.randomized_response(2, 1.2), 6, BlackBox(math.log(1.2))),
            (Channel.erasure(2, 1e-3), 4, BlackBox(0.0, 1e-3)),
            (Channel.erasure(2, 1e-5), 4, BlackBox(0.0, 1e-5)),
        ],
    )
    def test_prices_are_at_least_the_exact_ones(self, one: Channel, records: int, event: BlackBox) -> None:
        channel, model = one.of(records), Independent(records)
        epsilon = event.epsilon if event.delta == 0.0 else math.inf
        for risk in (0.5, 0.25, 0.05, 0.01, 1e-3):
            assert smallest_nats(model, event, epsilon, risk) >= math.log(risk / channel.fresh(risk)) - _ABOVE


class TestStatistics:
    """Label vectors and, for each, as many values of everything else; widths show a count of the labels."""

    @pytest.mark.slow
    @for_each(("labels", "others", "counts"), [(2, 3, (0, 0)), (2, 3, (0, 1)), (3, 2, (0, 1, 1))])
    def test_no_analyst_exceeds_beta(self, labels: int, others: int, counts: tuple[int, ...]) -> None:
        for risk in (2, 4):
            assert Statistics(labels, others, counts).worst(risk, 2) == risk

    @pytest.mark.slow
    def test_no_analyst_exceeds_beta_in_three_nodes(self) -> None:
        assert Statistics(2, 3, (0, 1)).worst(2, 3) == 2
        assert Statistics(4, 2, (0, 1, 1, 2)).worst(4, 2) == 4

    def test_counts_that_are_shown_for_nothing_exceed_beta(self) -> None:
        rule = StatisticsRule(counts_for_nothing=True)
        assert Statistics(3, 2, (0, 1, 2), rule).worst(2, 2) > 2

    def test_truths_that_labels_fix_exceed_beta_where_nothing_is_given_up(self) -> None:
        rule = StatisticsRule(halved=False)
        assert Statistics(2, 3, (0, 0), rule).worst(2, 2) == 3
