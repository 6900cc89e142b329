"""The trinomial test of a difference: its size over the whole null hypothesis, enumerated, and twins that exceed it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom, norm

import thresholdout.limits.trinomial as trinomial
from tests.cases import for_each
from tests.sizes import corners
from thresholdout.limits.trinomial import difference_lower, difference_refuted, placed_difference

Outcome = tuple[int, int]


def outcomes_of(records: int) -> list[Outcome]:
    return [(won, lost) for won in range(records + 1) for lost in range(records + 1 - won)]


@cache
def refuted(records: int, edge: float, level: float) -> frozenset[Outcome]:
    return frozenset(
        (won, lost)
        for won, lost in outcomes_of(records)
        if difference_refuted(won, lost, records, edge, math.log(level))
    )


@cache
def limits(records: int, level: float) -> dict[Outcome, float]:
    return {each: difference_lower(*each, records, math.log(level)) for each in outcomes_of(records)}


def probability(outcomes: Iterable[Outcome], records: int, u: float, v: float) -> float:
    total = 0.0
    for won, lost in outcomes:
        coefficient = math.comb(records, won) * math.comb(records - won, lost)
        total += coefficient * u**won * v**lost * max(0.0, 1.0 - u - v) ** (records - won - lost)
    return total


def size(outcomes: frozenset[Outcome], records: int, edge: float, steps: int = 200) -> float:
    """The largest probability of some outcomes over laws with a difference of at most the edge."""
    largest = 0.0
    for share in np.linspace(0.0, 1.0, steps):
        for gap in (0.0, 0.05, 0.3):  # below the edge, too
            u, v = 0.5 * (share + edge - gap), 0.5 * (share - edge + gap)
            if u >= 0.0 and v >= 0.0:
                largest = max(largest, probability(outcomes, records, u, v))
    return largest


CASES = [(5, -0.4, 0.1), (8, -0.2, 0.2), (10, -0.1, 0.25), (8, 0.0, 0.1), (8, 0.1, 0.05), (6, 0.4, 0.6)]


@pytest.mark.slow
@for_each(("records", "edge", "level"), CASES)
def test_the_level_is_kept_on_every_false_law(records: int, edge: float, level: float) -> None:
    assert size(refuted(records, edge, level), records, edge) <= level


def wald(won: int, lost: int, records: int, edge: float) -> float:
    """Return the score at an edge with the unconstrained variance, at least that of half a record."""
    gain, number = won - lost, won + lost
    return (gain - records * edge) / math.sqrt(max(0.5, number - gain * gain / records))


def test_the_twin_with_the_normal_quantile_exceeds_it() -> None:
    largest = 0.0
    for records, edge, level in CASES[:3]:
        outcomes = frozenset(
            each for each in outcomes_of(records) if wald(*each, records, edge) >= float(norm.isf(level))
        )
        largest = max(largest, size(outcomes, records, edge) / level)
    assert largest > 1.05


@pytest.mark.slow
def test_the_twin_with_one_plausible_share_exceeds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The share that is seen, taken for the true one."""
    plain = trinomial._certain
    monkeypatch.setattr(trinomial, "_certain", lambda ones, records, log_level: plain(ones, records, math.log(0.5)))
    found = frozenset(each for each in outcomes_of(8) if difference_refuted(*each, 8, -0.4, math.log(0.2)))
    assert size(found, 8, -0.4) > 0.2


@pytest.mark.slow
@for_each(("records", "level"), [(4, 0.1), (6, 0.25)])
def test_limits_miss_no_law_more_often_than_the_level(records: int, level: float) -> None:
    found = limits(records, level)
    for share in np.linspace(0.02, 1.0, 30):
        for difference in np.linspace(-share, share, 41):
            u, v = 0.5 * (share + difference), 0.5 * (share - difference)
            missed = [each for each, limit in found.items() if limit > difference]
            assert probability(missed, records, u, v) <= level


@for_each("records", [1, 2, 3, 5, 9, 20, 40])
def test_a_model_that_always_loses_has_no_lower_limit(records: int) -> None:
    """Its difference can be -1, of which every record is a loss; the quadratic equation has a double root there."""
    for level in (0.5, 0.3, 0.1, 0.05, 0.01, 0.003, 1e-5):
        assert difference_lower(0, records, records, math.log(level)) == -1.0


def test_every_outcome_is_in_its_own_region() -> None:
    for records in (2, 3, 5, 9, 20):
        for level in (0.5, 0.3, 0.1, 0.05, 0.01, 1e-5, 1e-20):
            for won, lost in outcomes_of(records):
                least = trinomial._Outcome(won, lost, records, math.log(level))._least
                assert lost == records or least[won + lost] <= won


def test_more_records_have_more_slack() -> None:
    """The logarithm of the binomial law is off by 3e-7 at 1e8 records."""
    assert trinomial._slack(10**6) == 1e-8
    assert trinomial._slack(10**8) > 5e-7


def test_limits_are_used_up() -> None:
    """The largest probability of a miss, just below a limit."""
    records, level = 6, 0.25
    found = limits(records, level)
    largest = 0.0
    for limit in {limit for limit in found.values() if limit > -1.0}:
        outcomes = frozenset(each for each, its in found.items() if its >= limit)
        largest = max(largest, size(outcomes, records, limit - 1e-9, steps=100))
    assert 0.85 * level < largest <= level


@pytest.mark.parametrize(("records", "edge", "level"), corners(CASES, 0, 5))
def test_outcomes_that_are_refuted_are_monotone(records: int, edge: float, level: float) -> None:
    outcomes = refuted(records, edge, level)
    for won, lost in outcomes:
        assert lost == 0 or (won, lost - 1) in outcomes


def test_a_limit_refutes_itself_and_hardly_more() -> None:
    for won, lost in ((50, 30), (10, 40), (3, 0)):
        log_level = math.log(0.025)
        limit = difference_lower(won, lost, 400, log_level)
        assert difference_refuted(won, lost, 400, limit, log_level)
        assert not difference_refuted(won, lost, 400, limit + 0.03 * ((won - lost) / 400 - limit) + 1e-4, log_level)


def test_where_nothing_is_lost_limits_are_those_of_a_binomial_law() -> None:
    """No loss in n: at most ln(1/w)/n of losses, but for what the plausible range costs."""
    found = difference_lower(0, 0, 1000, math.log(0.05))
    assert -1.05 * 3.0 / 1000 < found < -0.97 * (1.0 - 0.05 ** (1 / 1000))
    everywhere = difference_lower(1000, 0, 1000, math.log(0.05))
    assert 1.0 - 6.5 / 1000 < everywhere < 1.0 - 2.0 * (1.0 - 0.05 ** (1 / 1000)) * 0.49


def test_many_records_agree_with_the_normal_law() -> None:
    records, discordant = 10_000, 1000
    for log_level in (math.log(0.025), math.log(1.7e-4)):
        radius = -difference_lower(discordant // 2, discordant // 2, records, log_level)
        wald_radius = float(norm.isf(math.exp(log_level))) * math.sqrt(discordant) / records
        assert 1.0 < radius / wald_radius < 1.02
        assert placed_difference(0.0, discordant / records, records, log_level) == pytest.approx(-radius, rel=0.03)


def test_levels_that_floats_cannot_prove_refute_nothing() -> None:
    assert not difference_refuted(900, 0, 1000, -0.5, -1e4)
    assert difference_lower(900, 0, 1000, -1e4) == -1.0


def test_the_bound_is_above_the_exact_probability() -> None:
    """Against a sum by the binomial law of the wins, given the number of records that differ."""
    records, z = 60, 1.7
    least = trinomial._least_wins(-9.0, records, z)
    for u, v in ((0.1, 0.2), (0.0, 0.1), (0.4, 0.6)):
        exact = sum(
            float(binom.pmf(number, records, u + v) * binom.sf(int(least[number]) - 1, number, u / (u + v)))
            for number in range(records + 1)
        )
        bound = trinomial._probability(least, u, v, math.log(0.01))
        assert exact <= bound <= exact * (1 + 1e-7) + 1e-15
