"""The trinomial test of a margin: its size over the whole null hypothesis, enumerated, and a twin that exceeds it."""

from __future__ import annotations

import math
from functools import cache, partial
from itertools import pairwise

import numpy as np
import pytest

from thresholdout.limits.trinomial import trinomial_passes

Outcomes = frozenset[tuple[int, int]]


def outcomes_of(records: int) -> list[tuple[int, int]]:
    return [(won, lost) for won in range(records + 1) for lost in range(records + 1 - won)]


@cache
def passing(records: int, margin: float, level: float) -> Outcomes:
    passes = partial(trinomial_passes, records=records, margin=margin, log_level=math.log(level))
    return frozenset((won, lost) for won, lost in outcomes_of(records) if passes(won, lost))


def tango(wins: int, losses: int, records: int, margin: float) -> float:
    """Tango's statistic by maximising the likelihood on a grid, without its closed form."""
    shares = np.linspace(0.0, 0.5 * (1.0 - margin), 20_001)[1:-1]
    ties = records - wins - losses
    likelihood = wins * np.log(shares) + losses * np.log(shares + margin) + ties * np.log1p(-2 * shares - margin)
    share = 0.0 if wins == 0 and likelihood.argmax() == 0 else float(shares[likelihood.argmax()])
    return (wins - losses + records * margin) / math.sqrt(records * (2 * share + margin - margin**2))


@cache
def unadjusted(records: int, margin: float, level: float) -> Outcomes:
    """The twin, Tango's statistic against the normal quantile."""
    from scipy.stats import norm

    bound = float(norm.isf(level))
    return frozenset(each for each in outcomes_of(records) if tango(*each, records, margin) >= bound)


def size(outcomes: Outcomes, records: int, margin: float, steps: int = 400) -> float:
    """The largest probability of some outcomes over laws that are worse by the margin or more."""
    largest = 0.0
    for v in np.linspace(margin, 1.0, steps):
        for gap in (0.0, 0.05, 0.3):  # below the edge, too
            u = v - margin - gap
            if u < 0.0 or u + v > 1.0:
                continue
            total = 0.0
            for won, lost in outcomes:
                coefficient = math.comb(records, won) * math.comb(records - won, lost)
                total += coefficient * u**won * v**lost * max(0.0, 1.0 - u - v) ** (records - won - lost)
            largest = max(largest, total)
    return largest


CASES = [(5, 0.4, 0.1), (8, 0.2, 0.2), (12, 0.1, 0.25), (15, 0.3, 0.05), (20, 0.15, 0.05)]


@pytest.mark.parametrize(("records", "margin", "level"), CASES)
def test_the_level_is_kept_on_every_false_law(records: int, margin: float, level: float) -> None:
    assert size(passing(records, margin, level), records, margin) <= level


def test_the_twin_with_the_normal_quantile_exceeds_it() -> None:
    assert max(size(unadjusted(*case), case[0], case[1]) / case[2] for case in CASES[:3]) > 1.05


@pytest.mark.parametrize(("records", "margin", "level"), CASES)
def test_outcomes_that_pass_are_monotone(records: int, margin: float, level: float) -> None:
    """One win more, or one loss less, never takes a pass away beyond the 1 % that the bound may lose."""
    outcomes = passing(records, margin, level)
    for won, lost in outcomes:
        assert lost == 0 or (won, lost - 1) in outcomes


@pytest.mark.parametrize(("records", "margin", "level"), CASES[:2])
def test_the_test_is_not_blind(records: int, margin: float, level: float) -> None:
    """Whatever has a supremum of 0.97 of the level by the enumeration passes."""
    statistics = sorted(((tango(*each, records, margin), each) for each in outcomes_of(records)), reverse=True)
    region: set[tuple[int, int]] = set()
    outcomes = passing(records, margin, level)
    for (statistic, each), (following, _) in pairwise(statistics):
        region.add(each)
        if following > statistic - 1e-3:  # a tie, which is decided with it
            continue
        if statistic <= 0.0 or size(frozenset(region), records, margin) > 0.97 * level:
            break
        assert each in outcomes


def test_many_records_agree_with_the_normal_law() -> None:
    """At n = 10,000 and a discordance of .1 the critical value is the normal one, but for 2 %."""
    records, margin, discordant = 10_000, 0.02, 1000
    needed = next(
        d
        for d in range(-152, 0, 4)
        if trinomial_passes((discordant + d) // 2, (discordant - d) // 2, records, margin, math.log(0.05))
    )
    statistic = (needed + records * margin) / math.sqrt(records * (0.1 - margin**2))
    assert 1.60 < statistic < 1.645 * 1.02 + 4 / math.sqrt(discordant)
