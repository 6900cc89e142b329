"""Comparisons by exact enumeration: all analysts of small depth against the program, and broken twins (G5, G7)."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

import thresholdout.limits.trinomial as trinomial
import thresholdout.mechanisms.claims.trinomial_claims as trinomial_claims
from tests.oracles.compared import Compared, Posed, differences, drawn, given_features, scored, wins
from tests.oracles.risk_left import coins
from tests.sizes import corners, sizes
from thresholdout.limits.trinomial import difference_refuted
from thresholdout.mechanisms import Known, Part
from thresholdout.mechanisms.base import PairedCounts
from thresholdout.mechanisms.claims import ClaimsMechanism, ClaimsParameters
from thresholdout.noise.sources import SeededNoise

NOISE = SeededNoise(0)


def claims(confidence: float, n: int, queries: int) -> ClaimsMechanism:
    """Return the program without noise, with training values that are as good as can be."""
    return ClaimsMechanism(ClaimsParameters(confidence=confidence, noise=0.0, n_train=1e9, queries=queries), n)


class TestSharesOfWins:
    """Records of one law with four values; the analyst knows the law and lies about training values."""

    @sizes("count", 1, 3)
    @pytest.mark.parametrize("beta", corners([0.25, 0.5], 0))
    @pytest.mark.parametrize("shares", [(0.45, 0.05, 0.5), pytest.param((0.8, 0.1, 0.1), marks=pytest.mark.slow)])
    def test_no_analyst_exceeds_beta(self, shares: tuple[float, ...], beta: float, count: int) -> None:
        n = 3
        program = claims(1 - beta, n, 2)
        counts, chances = drawn(shares, n)
        trains = [PairedCounts(100, 10, 400), PairedCounts(10, 100, 400), PairedCounts(300, 20, 400)][:count]
        found = [
            wins(program, counts, shares, kinds, train)
            for kinds in itertools.product((-1, 0, 1), repeat=3)
            for train in trains
        ]
        queries = [posed for posed in found if posed is not None]
        queries += [
            scored(program, counts, shares, kinds, train)
            for kinds in itertools.product((0, 1), repeat=3)
            for train in (0.1, 0.9)
        ]
        assert Compared(program, chances, queries).worst(2) <= beta

    @pytest.mark.slow
    def test_the_number_of_records_that_differ_must_not_be_shown(self) -> None:
        """Shown for two comparisons that say nothing, it tells which of the claims that are false will be confirmed."""
        beta, n, p = 0.25, 4, 0.393018761  # just outside of what is claimed about a score after them
        program = claims(1 - beta, n, 3)
        shares = ((1 - p) ** 2, p * (1 - p), p * (1 - p), p * p)
        counts, chances = drawn(shares, n)
        none = PairedCounts(0, 0, 10**6)
        compared = [wins(program, counts, shares, kinds, none) for kinds in ((0, 1, 0, -1), (0, 0, 1, -1))]
        queries = [posed for posed in compared if posed is not None]
        queries += [
            scored(program, counts, shares, kinds, k / n)
            for kinds in ((0, 1, 0, 1), (0, 0, 1, 1))
            for k in range(n + 1)
        ]
        assert Compared(program, chances, queries).worst(3) <= beta

        def number(reading: object) -> object:
            return sum(reading) if isinstance(reading, tuple) else None

        assert Compared(program, chances, queries, number).worst(3) > 1.1 * beta


class TestDifferencesOfOneLaw:
    """The exact trinomial test, with few cells: it refutes less, and each bound stays one."""

    def worst(self, monkeypatch: pytest.MonkeyPatch, beta: float, easier: float = 0.0) -> float:
        """Return the largest probability of a false claim where the difference is just below a first interval."""
        monkeypatch.setattr(trinomial, "_CELLS", 16)
        exact = cache(difference_refuted)
        monkeypatch.setattr(
            trinomial_claims, "difference_refuted", lambda *counts: exact(*counts[:4], counts[4] + easier)
        )
        n, differ = 14, 0.6
        program = claims(1 - beta, n, 2)
        known = Known(0.1, difference=True, trinomial=True)
        low, _ = program.first_claim(program.start(NOISE), 0.8, known).interval
        gain = 2.0 * low - 1.0 - 1e-6
        assert -differ < gain < differ
        shares = (0.5 * (differ + gain), 0.5 * (differ - gain), 1.0 - differ)
        counts, chances = drawn(shares, n)
        queries = [
            differences(program, counts, shares, kinds, train)
            for kinds, train in (((1, -1, 0), 0.8), ((1, -1, 0), 0.7), ((-1, 1, 0), 0.2))
        ]
        return Compared(program, chances, queries).worst(2)

    @pytest.mark.slow
    @pytest.mark.parametrize("beta", [pytest.param(0.1, marks=pytest.mark.slow), 0.3])
    def test_no_analyst_exceeds_beta_and_some_come_near(self, monkeypatch: pytest.MonkeyPatch, beta: float) -> None:
        assert 0.25 * beta < self.worst(monkeypatch, beta) <= beta

    @pytest.mark.slow
    def test_a_level_that_is_four_times_too_large_exceeds_beta(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.worst(monkeypatch, 0.1, math.log(4.0)) > 0.1


class TestGivenTheFeatures:
    """Records with laws of their own: any part of them, and who is right on each of it."""

    @pytest.mark.parametrize(
        ("beta", "binary"), corners([(0.25, True), (0.5, True), (0.25, False), (0.5, False)], 0, 1, 3)
    )
    @pytest.mark.parametrize(
        "law",
        [
            (0.9, 0.9, 0.1),
            pytest.param((0.99, 0.3, 0.3), marks=pytest.mark.slow),
            pytest.param((0.76, 0.0, 0.0), marks=pytest.mark.slow),
            pytest.param((0.24, 0.24, 0.24), marks=pytest.mark.slow),
        ],
    )
    def test_no_analyst_exceeds_beta(self, law: tuple[float, ...], binary: bool, beta: float) -> None:
        program = claims(1 - beta, len(law), 2)
        queries: list[Posed] = [
            given_features(program, law, differ, binary, train)
            for differ in itertools.product((-1, 0, 1), repeat=len(law))
            if any(differ)
            for train in (0.0, 1.0)
        ]
        worst = Compared(program, coins(law), queries).worst(2)
        assert worst <= beta
        assert worst > 0.3 * beta or not binary or beta < 0.5  # the laws are hard enough

    def test_a_part_that_is_as_random_as_the_labels_is_caught(self) -> None:
        """Bets on the records that differ, whose number is random, against the population's difference: an exact sum.

        One model is right wherever they differ, so its gain is exactly the share of these records given the features,
        and the law's q for the population.
        """
        n, q, beta = 40, 0.3, 0.05
        broken = given = 0.0
        for number in range(1, n + 1):
            program = claims(1 - beta, n, 1)
            known = Known(0.001, difference=True, part=Part(number, None, 1e6))
            reading = program.read(np.ones(number), number, (0, 1), "values", known)
            _, outcome = program.step(program.start(NOISE), 1.0, reading, NOISE)
            assert outcome.interval is not None
            low, high = (number / n * (2 * end - 1) for end in outcome.interval)
            chance = float(binom.pmf(number, n, q))
            broken += chance * (not low <= q <= high)
            given += chance * (not low <= number / n <= high)
        assert given == 0.0
        assert broken > 5 * beta
