"""Evidence about statistics that are no means: levels by exact sums over small models, and twins that exceed them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from graphs import Groups, Independent
from tests.cases import for_each
from tests.sizes import corners, sizes
from thresholdout.limits.entropy import coin_divergence
from thresholdout.mechanisms.claims import area_evidence
from thresholdout.mechanisms.claims.area_evidence import AreaEvidence, ExpectedArea
from thresholdout.mechanisms.claims.evidence import (
    Bets,
    Counts,
    Dependent,
    Entropy,
    Evidence,
    Expected,
    ExpectedBets,
    ExpectedCounts,
    ExpectedDependent,
    ExpectedEntropy,
    ExpectedHoeffding,
    Hoeffding,
    WinBets,
    of_share,
    to_share,
)
from thresholdout.mechanisms.claims.statistic_claims import Layout, Part, StatisticTest
from thresholdout.scoring.statistics import balanced_accuracy, f1
from thresholdout.scoring.statistics.statistic_parts import Judged

Floats = NDArray[np.float64]
ABOVE = 1 + 1e-9


def tables(laws: tuple[tuple[float, float], ...]) -> Iterator[tuple[NDArray[np.int64], float]]:
    """All outcomes of independent records (1 wins, -1 loses, 0 does not count), with their probabilities."""
    for outcome in itertools.product((1, -1, 0), repeat=len(laws)):
        chances = [{1: win, -1: lose, 0: 1 - win - lose}[o] for o, (win, lose) in zip(outcome, laws, strict=True)]
        yield np.array(outcome), math.prod(chances)


def worst(said: list[tuple[float, float]]) -> float:
    """Largest ``e^x P(s >= x)`` over all x > 0, from evidence and its probabilities: at most 1."""
    ordered = sorted((found, p) for found, p in said if found > 0.0)[::-1]
    chances = np.cumsum([p for _, p in ordered])
    found = [math.exp(x) * chance for (x, _), chance in zip(ordered, chances, strict=True)]
    return max(found, default=0.0)


def excess(
    laws: tuple[tuple[float, float], ...], make: Callable[[NDArray[np.int64]], Evidence], end: float, bet: float
) -> float:
    return worst([(make(outcome).against(end, bet), p) for outcome, p in tables(laws) if outcome.any()])


def terms(outcome: NDArray[np.int64], weight: float) -> Bets:
    wins, losses = (outcome > 0).astype(np.float64), (outcome < 0).astype(np.float64)
    return Bets(weight * wins, weight * wins + losses, (1.0, weight))


def ratio(laws: tuple[tuple[float, float], ...], weight: float) -> float:
    wins, losses = (sum(law[k] for law in laws) for k in (0, 1))
    return weight * wins / (weight * wins + losses)


ONE_LAW = (((0.1, 0.2),) * 4, ((0.02, 0.01),) * 4, ((0.6, 0.4),) * 4, ((0.45, 0.05),) * 4)
LAWS = (*ONE_LAW[:2], ((0.9, 0.1), (0.0, 0.5), (0.3, 0.0), (0.1, 0.1)), ((0.5, 0.0), (0.0, 0.5), (0.2, 0.2)))


def counted(outcome: NDArray[np.int64], weight: float = 1.0) -> Counts:
    return Counts(int((outcome > 0).sum()), int((outcome < 0).sum()), weight)


@for_each("weight", [1.0, 2.0])
@for_each("laws", ONE_LAW)
def test_counts_of_one_law_keep_the_level_whatever_is_known_of_their_number(
    laws: tuple[tuple[float, float], ...], weight: float
) -> None:
    truth = ratio(laws, weight)
    for end in (truth, min(1.0, truth + 0.1), 0.99):
        assert excess(laws, lambda o: counted(o, weight), end, 0.0) <= ABOVE
    for end in (1 - truth, min(1.0, 1.1 - truth)):
        assert excess(laws, lambda o: counted(o, weight).mirrored(), end, 0.0) <= ABOVE


def test_counts_of_different_laws_exceed_the_level() -> None:
    """The twin: at least one win of two with the same expected share, where one of them has all of it."""
    laws = ((0.4, 0.6), (0.0, 1.0))
    assert ratio(laws, 1.0) == pytest.approx(0.2)
    assert excess(laws, counted, 0.2, 0.0) == pytest.approx(0.4 / (1 - 0.8**2), rel=1e-6)
    assert excess(laws, lambda o: terms(o, 1.0), 0.2, 0.5) <= ABOVE


@for_each("weight", [1.0, 2.0])
@for_each("laws", LAWS)
def test_bets_keep_the_level_for_any_laws(laws: tuple[tuple[float, float], ...], weight: float) -> None:
    truth = ratio(laws, weight)
    for bet in (0.3, 0.9):
        assert excess(laws, lambda o: terms(o, weight), truth, bet / truth / max(1.0, weight)) <= ABOVE
        assert excess(laws, lambda o: terms(o, weight), 0.5 * (1 + truth), 0.5 * bet) <= ABOVE
        assert excess(laws, lambda o: terms(o, weight).mirrored(), 1 - truth, 0.5 * bet / (1 - truth)) <= ABOVE


@for_each("laws", LAWS)
def test_means_of_what_is_left_keep_the_level_for_any_laws(laws: tuple[tuple[float, float], ...]) -> None:
    """Independent records are a special case of dependent ones."""
    n, truth = len(laws), ratio(laws, 1.0)

    def made(outcome: NDArray[np.int64]) -> Evidence:
        return Dependent(float((outcome > 0).mean()), float((outcome != 0).mean()), float(n), float(n))

    for end in (truth, 0.5 * (1 + truth)):
        assert excess(laws, made, end, 0.0) <= ABOVE
        assert excess(laws, lambda o: made(o).mirrored(), 1 - truth, 0.0) <= ABOVE


def test_bets_on_groups_keep_the_level() -> None:
    """Copies of a record, three and one of them: bets on sums; on records the level is exceeded."""
    laws, copies = ((0.3, 0.3), (0.2, 0.2)), np.array([3.0, 1.0])
    for bet in (0.3, 0.6):
        assert excess(laws, lambda o: Bets(copies * (o > 0), copies * (o != 0), (3.0, 3.0)), 0.5, bet) <= ABOVE
    assert excess(laws, lambda o: terms(np.repeat(o, [3, 1]), 1.0), 0.5, 1.7) > 1.2


def test_bets_keep_the_level_where_a_class_is_rarer_than_in_the_training_part() -> None:
    """One record of a class weighs as much as all others: where it can lose more than everything, nothing is said."""
    y, rights = np.array([1, 0, 0, 0, 0, 0]), (0.5, 1.0, 1.0, 0.9, 1.0, 1.0)
    part = balanced_accuracy().parts(np.array([0, 1]))[0]
    truth = 0.5 * (rights[0] + np.mean(rights[1:]))
    said: list[tuple[Evidence, float]] = []
    for outcome in itertools.product((True, False), repeat=6):
        chance = math.prod(p if right else 1 - p for right, p in zip(outcome, rights, strict=True))
        judged = Judged(y, np.where(outcome, y, 1 - y), np.array([0, 1]))
        said.append((part.evidence(judged, Independent(6), False), chance))
    for bet in (0.1, 0.3, 0.5, 0.9, 1.2, 3.0):
        assert worst([(found.against(float(truth), bet), p) for found, p in said]) <= ABOVE
        assert worst([(found.mirrored().against(float(1 - truth), bet), p) for found, p in said]) <= ABOVE


def test_bets_on_groups_keep_the_level_where_the_training_part_has_no_true_positive() -> None:
    """Against upper ends a true positive loses twice: the bet is made for that, whatever the training part shows."""
    part = f1().parts(np.array([0, 1]))[0]
    found = part.estimate(Judged(np.array([1, 0, 0, 0]), np.array([0, 1, 0, 0]), np.array([0, 1])))
    end, bet = part.expected(found, Groups(np.arange(400) // 2), False).mirrored().end(1.0, -20.0)
    assert 0.0 < bet * end * 4.0 < 1.0
    model = Groups([0, 0, 1, 1, 2, 2])
    groups = [(np.array([1, 1]), np.array([1, 1]), 0.45), (np.array([1, 0]), np.array([0, 1]), 0.55)]
    truth = 4 * 0.45 / (4 * 0.45 + 2 * 0.55)
    for most in (0.1, 0.2, 0.24, 0.3, 0.5):
        scaled = most / (1 - truth)
        said = []
        for drawn in itertools.product(groups, repeat=3):
            y, output = np.concatenate([one[0] for one in drawn]), np.concatenate([one[1] for one in drawn])
            judged = Judged(y, output, np.array([0, 1]))
            evidence = part.evidence(judged, model, False).mirrored()
            said.append((evidence.against(1 - truth, scaled), math.prod(one[2] for one in drawn)))
        assert worst(said) <= ABOVE


@pytest.mark.slow
@for_each("weight", [1.0, 2.0])
@for_each("trained", [0.1, 0.3, 0.5, 0.9])
def test_limits_by_bets_keep_the_level_wherever_the_training_part_says_the_value_is(
    weight: float, trained: float
) -> None:
    """Binomial wins: a bet that is made for another value must not be read as evidence where it can lose everything."""
    for number, level in ((5, 0.05), (12, 0.01), (12, 0.2)):
        expected = ExpectedCounts(float(number), weight, False)
        layout = Layout((Part(trained, 0.1, expected, expected.mirrored()),), None, 1.0, False)
        ends = []
        for wins in range(number + 1):
            evidence = terms(np.repeat([1, -1], [wins, number - wins]), weight)
            low, high = StatisticTest(10_000, layout, [evidence]).ends(math.log(level), trained)
            ends.append((low / 10_000, high / 10_000))
        for share in np.linspace(0.02, 0.99, 50):
            truth, chances = of_share(float(share), weight), binom.pmf(np.arange(number + 1), number, share)
            for missed in ([low > truth for low, _ in ends], [high < truth for _, high in ends]):
                assert chances[np.array(missed)].sum() <= level * ABOVE


def scores_of_two_classes(
    ahead: tuple[tuple[float, ...], ...], behind: tuple[tuple[float, ...], ...]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], float]]:
    """All scores 0, 1, 2 of independent records of two classes, each with a law of its own."""
    for one in itertools.product(range(3), repeat=len(ahead)):
        for other in itertools.product(range(3), repeat=len(behind)):
            chance = math.prod(law[s] for law, s in zip(ahead, one, strict=True))
            yield one, other, chance * math.prod(law[s] for law, s in zip(behind, other, strict=True))


def placements(one: Any, other: Any) -> Floats:
    pairs = np.subtract.outer(one, other)
    return np.asarray(((pairs > 0) + 0.5 * (pairs == 0)).mean(axis=1), dtype=np.float64)


UP, DOWN, SPREAD, SURE = (0.1, 0.3, 0.6), (0.6, 0.3, 0.1), (0.4, 0.2, 0.4), (0.0, 1.0, 0.0)
AREAS = [
    ((UP, UP), (DOWN, DOWN, DOWN)),
    ((UP, SPREAD), (DOWN, SURE, SPREAD)),
    ((SPREAD, SPREAD), (SURE,) * 3),
    ((SURE, SURE), (SPREAD,) * 3),
    ((UP,), (SPREAD, DOWN, SURE)),
]


@for_each(("ahead", "behind"), AREAS)
def test_areas_keep_the_level_for_any_laws_within_the_classes(
    ahead: tuple[tuple[float, ...], ...], behind: tuple[tuple[float, ...], ...]
) -> None:
    """By relative entropy and by bets, on both sides, for truths at the end and below."""
    said = [
        (
            AreaEvidence(
                placements(one, other),
                len(behind),
                float(min(len(ahead), len(behind))),
                float(np.mean(placements(other, one) ** 2)),
            ),
            p,
        )
        for one, other, p in scores_of_two_classes(ahead, behind)
    ]
    truth = sum(p * found.value for found, p in said)
    for bet in (0.0, 0.3, 0.95, -0.3, -0.95):
        for end in (truth, 0.5 * (1 + truth)):
            assert worst([(found.against(end, bet / end), p) for found, p in said]) <= ABOVE
        assert worst([(found.mirrored().against(1 - truth, bet / (1 - truth)), p) for found, p in said]) <= ABOVE


def test_bets_on_placements_that_forget_the_other_class_exceed_the_level() -> None:
    """The twin: one other record decides about all placements at once."""
    outcomes = scores_of_two_classes((SURE,) * 4, (SPREAD,))
    forgetful = [(float(np.log1p(0.9 * (placements(*scores) - 0.5)).sum()), p) for *scores, p in outcomes]
    assert worst(forgetful) > 1.5


def two_sided(size: int, others: int, well: float, easy: float) -> Iterator[tuple[AreaEvidence, float]]:
    """Placed records score 2, or 0 with the rest of `well`; others score -1, or 1 with the rest of `easy`."""
    for good in range(size + 1):
        for low in range(others + 1):
            chance = float(binom.pmf(good, size, well) * binom.pmf(low, others, easy))
            placed = np.repeat([1.0, low / others], [good, size - good])
            misses = (1.0 - low / others) * (1.0 - good / size) ** 2
            if chance > 1e-15:
                yield AreaEvidence(placed, others, float(min(size, others)), misses), chance


TWO_SIDED = [
    (60, 20, 0.8, 0.3),
    (60, 20, 0.0, 0.5),
    (12, 30, 0.95, 0.05),
    (30, 30, 0.5, 0.0),
    (4, 40, 0.5, 0.2),
    (20, 20, 0.0, 0.5),
]


def excess_of_both(size: int, others: int, well: float, easy: float, step: float) -> float:
    """The larger of both sides' excesses, with bets of `step` on each of the others."""
    said, truth, least = list(two_sided(size, others, well, easy)), well + (1.0 - well) * easy, step * others / size
    sides = (
        [(one.against(truth, -min(least, 0.9 / truth)), p) for one, p in said],
        [(one.mirrored().against(1.0 - truth, -min(least, 0.9 / (1.0 - truth))), p) for one, p in said],
    )
    return max(worst(side) for side in sides)


@pytest.mark.parametrize(("law", "step"), corners(itertools.product(TWO_SIDED, (0.2, 0.6)), 4, 5, 8, 9, 10, 11))
def test_bets_that_are_charged_by_misses_keep_the_level(law: tuple[int, int, float, float], step: float) -> None:
    assert excess_of_both(*law, step) <= ABOVE


def test_bets_that_take_the_others_for_certain_exceed_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: others that miss nothing cost nothing."""
    monkeypatch.setattr(area_evidence, "_largest_misses", lambda *given: 0.0)
    assert excess_of_both(60, 20, 0.0, 0.5, 0.85) > 1.3


def test_expected_misses_are_seldom_larger_than_what_is_seen_allows() -> None:
    """Everything one record decides: a record that misses all others with probability p, and none otherwise."""
    for size, p in ((1, 0.5), (5, 0.2), (40, 0.02), (40, 0.3), (400, 0.01)):
        for nats in (0.5, 2.0, 6.0):
            missed = np.arange(size + 1)
            largest = np.array([area_evidence._largest_misses((k / size) ** 2, float(size), nats) for k in missed])
            assert binom.pmf(missed, size, p)[largest < p].sum() <= math.exp(-nats)


def test_stated_evidence_falls_with_the_end() -> None:
    for evidence, _ in itertools.islice(two_sided(30, 20, 0.8, 0.3), 0, None, 37):
        for one in (evidence, evidence.mirrored()):
            said = [one.against(end, -0.5) for end in np.linspace(0.02, 0.98, 40)]
            assert all(after <= before + 1e-9 for before, after in itertools.pairwise(said))


def test_the_number_of_all_pairs_is_too_much_for_relative_entropy() -> None:
    """The twin: as if every pair were a record of its own."""
    outcomes = scores_of_two_classes((SPREAD, SPREAD), (SURE,) * 3)
    pairs = [(Entropy(float(placements(*scores).mean()), 6.0).against(0.5, 0.0), p) for *scores, p in outcomes]
    assert worst(pairs) > 2.0


EXPECTED: list[tuple[Expected, Callable[[float], Evidence]]] = [
    (ExpectedCounts(100.0, 1.0, True), lambda v: Counts(round(100 * v), 100 - round(100 * v))),
    (
        ExpectedCounts(100.0, 1.0, False),
        lambda v: terms(
            np.sign(np.where(np.arange(200) < 100, 100 * v - 0.5 - np.arange(200), 0)).astype(np.int64), 1.0
        ),
    ),
    (ExpectedEntropy(100.0), lambda v: Entropy(v, 100.0)),
    (ExpectedHoeffding(100.0), lambda v: Hoeffding(v, 100.0)),
    (ExpectedDependent(0.5, 100.0, 50.0), lambda v: Dependent(0.5 * v, 0.5, 100.0, 50.0)),
    (ExpectedDependent(0.5, None, 50.0), lambda v: Dependent(0.5 * v, 0.5, None, 50.0)),
]


@for_each(("expected", "make"), EXPECTED)
@for_each("nats", [1.0, 4.0, 12.0])
def test_ends_are_as_far_as_what_is_expected_reaches(
    expected: Expected, make: Callable[[float], Evidence], nats: float
) -> None:
    """The evidence of a value at the edge is what is needed; with more of it the end is farther than needed."""
    for edge in (0.5, 0.8, 0.95):
        end, bet = expected.end(edge, -nats)
        assert 0.0 <= end < edge
        if end > 0.0:
            assert make(edge).against(end, bet) >= nats * (1 - 1e-6)
            assert make(edge).against(min(edge, end + 0.02), bet) < nats * (1 + 1e-6)
        assert expected.wider().end(edge, -nats)[0] <= end
        mirrored, bet = expected.mirrored().end(1 - edge, -nats)
        if mirrored > 0.0:
            assert make(edge).mirrored().against(mirrored, bet) >= nats * (1 - 1e-6)


@for_each("weight", [2.0, 0.5])
def test_ends_of_weighted_wins_are_those_of_their_shares(weight: float) -> None:
    """A score with 60 true positives and 40 errors, both sides, by counts and by bets."""
    value = of_share(0.6, weight)
    assert to_share(value, weight) == pytest.approx(0.6)
    evidence = terms(np.repeat([1, -1], [60, 40]), weight)
    assert evidence.value == pytest.approx(value)
    for exact, said in ((True, Counts(60, 40, weight)), (False, evidence)):
        expected = ExpectedCounts(100.0, weight, exact)
        plain = ExpectedCounts(100.0, 1.0, exact)
        end, bet = expected.end(value, -6.0)
        assert end == pytest.approx(of_share(plain.end(0.6, -6.0)[0], weight), rel=1e-9)
        assert said.against(end, bet) == pytest.approx(6.0, rel=1e-3)
        upper, bet = expected.mirrored().end(1 - value, -6.0)
        assert said.mirrored().against(upper, bet) == pytest.approx(6.0, rel=1e-3)


def test_cautious_bets_win_what_they_are_expected_to() -> None:
    """Values with the expected squares and the largest loss: the worst law that the bet is made for."""
    expected = ExpectedBets(1000, 1.0, 0.02, 0.0, 1.0)
    for edge in (0.9, 0.95):
        end, bet = expected.end(edge, -6.0)
        rng = np.random.default_rng(0)
        values = np.clip(edge + math.sqrt(0.02) * np.where(rng.random(1000) < 0.5, 1, -1), 0, 1)
        values += edge - values.mean()
        assert Bets(values, np.ones(1000), (1.0, 1.0)).against(end, bet) >= 6.0
    area = ExpectedArea(100.0, 1900.0, 0.004, 0.0, 0.01)
    end, bet = area.end(0.95, -6.0)
    assert bet > 0.0
    placed = np.repeat([0.95 - 0.0632, 0.95 + 0.05], [50, 50])
    placed += 0.95 - placed.mean()
    assert AreaEvidence(placed, 1900, 100.0, 0.01).against(end, bet) >= 6.0
    both = ExpectedArea(1000.0, 1000.0, 0.004, 0.0, 0.01)
    end, bet = both.end(0.95, -6.0)
    assert bet < 0.0
    assert AreaEvidence(np.repeat(placed, 10), 1000, 1000.0, 0.012).against(end, bet) >= 6.0
    assert end > ExpectedArea(1000.0, 1000.0, 0.004, 0.0, 1.0).end(0.95, -6.0)[0] + 0.002


@sizes("records", 4, 6)
@for_each("weight", [1.0, 2.0])
def test_bets_on_counts_are_bets_on_single_records(weight: float, records: int) -> None:
    """The same wealth, in the sum that keeps single terms, for every outcome of some records and both sides."""
    for outcome in itertools.product((1, -1, 0), repeat=records):
        if not any(outcome):
            continue
        single = terms(np.array(outcome), weight)
        counts = WinBets(outcome.count(1), outcome.count(-1), (weight, 1.0))
        for one, other in ((counts, single), (counts.mirrored(), single.mirrored())):
            assert one.value == other.value
            for end, bet in ((0.5, 0.7), (0.9, 1.0), (0.3, 3.0), (0.6, 1.7)):
                assert one.against(end, bet) == pytest.approx(other.against(end, bet), abs=1e-12)


def test_what_is_secret_is_not_shown() -> None:
    for evidence in (
        Counts(17, 23),
        WinBets(17, 23, (2.0, 1.0)),
        Bets(np.array([17.0]), np.array([23.0]), (23.0, 23.0)),
        Entropy(0.17, 23.0),
        Dependent(0.17, 0.23, 23.0, 5.0),
        Hoeffding(0.17, 5.0),
        AreaEvidence(np.array([0.17]), 23, 23.0, 0.17),
    ):
        assert "17" not in repr(evidence)
        assert "23" not in repr(evidence).replace("effective=23.0, records=5.0", "")


def test_exact_tails_are_binomial_and_divergences_are_entropy() -> None:
    assert Counts(7, 3).against(0.4, 0.0) == pytest.approx(-math.log(binom.sf(6, 10, 0.4)), rel=1e-9)
    assert Entropy(0.8, 30.0).against(0.6, 0.0) == pytest.approx(30 * coin_divergence(0.8, 0.6), rel=1e-6)
    assert Counts(0, 5).against(0.3, 0.0) == 0.0
    assert Entropy(0.3, 30.0).against(0.3, 0.0) == 0.0


def test_queries_that_are_chosen_by_a_count_exceed_the_level() -> None:
    """The twin: of eight fair coins it is shown how many came up, and one of two false claims is chosen by it."""
    chances, nats = binom.pmf(np.arange(9), 8, 0.5), -math.log(0.15)
    more = np.array([Counts(k, 8 - k).against(0.5, 0.0) >= nats for k in range(9)])
    less = np.array([Counts(k, 8 - k).mirrored().against(0.5, 0.0) >= nats for k in range(9)])
    assert chances[more].sum() == chances[less].sum() == pytest.approx(37 / 256)
    assert chances[more | less].sum() == pytest.approx(74 / 256)
