"""Cohen's kappa: values as scikit-learn's, levels by exact sums over small models, and twins that exceed them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score, make_scorer

from graphs import Groups, Independent, MovingWindow
from tests.cases import for_each
from tests.thresholdout.mechanisms.test_evidence import ABOVE, worst
from thresholdout import Thresholdout
from thresholdout.errors import InputError
from thresholdout.mechanisms.claims.agreement_evidence import AgreementEvidence
from thresholdout.scoring.statistics import Statistic, cohen_kappa, get_score
from thresholdout.scoring.statistics.statistic_parts import Judged

Law = dict[tuple[int, int], float]
"""Probabilities of labels and predictions."""
Said = list[tuple[float, float]]

ONE_LAW: dict[str, Law] = {
    "good": {(0, 0): 0.5, (0, 1): 0.05, (1, 0): 0.1, (1, 1): 0.35},
    "rare": {(0, 0): 0.9, (0, 1): 0.02, (1, 0): 0.05, (1, 1): 0.03},
    "opposite": {(0, 0): 0.1, (0, 1): 0.5, (1, 0): 0.3, (1, 1): 0.1},
    "three classes": {(0, 0): 0.4, (1, 1): 0.3, (2, 0): 0.2, (1, 2): 0.1},
}


def position(laws: Sequence[Law], apart: Callable[[int, int], float]) -> float:
    """(1 + kappa)/2 of the mean of some laws, from its marginal shares."""
    joint: Law = {}
    for law in laws:
        for cell, p in law.items():
            joint[cell] = joint.get(cell, 0.0) + p / len(laws)
    observed = sum(p * apart(*cell) for cell, p in joint.items())
    chance = sum(p * q * apart(y, said) for (y, _), p in joint.items() for (_, said), q in joint.items())
    return 1.0 - observed / (2.0 * chance)


def plain(y: int, said: int) -> float:
    return float(y != said)


def outcomes(laws: Sequence[Law]) -> Iterator[tuple[NDArray[np.int64], float]]:
    for cells in itertools.product(*laws):
        yield np.array(cells), math.prod(law[cell] for law, cell in zip(laws, cells, strict=True))


@dataclass(frozen=True)
class Side:
    """Evidence against the truth, or mirrored, by a bet that can lose this share."""

    upper: bool
    bold: float

    def against(self, truth: float, evidence: AgreementEvidence) -> float:
        if self.upper:
            return evidence.mirrored().against(1.0 - truth, self.bold / (2.0 * (1.0 - truth) * evidence.most))
        return evidence.against(truth, self.bold / evidence.most)


SIDES = [Side(upper, bold) for upper in (False, True) for bold in (0.3, 0.6, 0.95)]


def all_said(
    laws: Sequence[Law],
    truth: float,
    sides: Sequence[Side] = SIDES,
    *,
    one_law: bool = False,
    statistic: Statistic | None = None,
    classes: int = 2,
) -> list[Said]:
    """What the evidence against the truth says of each outcome; nothing where kappa does not exist."""
    (part,) = (statistic or cohen_kappa()).parts(None)
    found: list[Said] = [[] for _ in sides]
    for cells, p in outcomes(laws):
        judged = Judged(cells[:, 0], cells[:, 1], np.arange(classes))
        try:
            evidence = part.evidence(judged, Independent(len(cells)), one_law)
        except InputError:
            evidence = None
        for said, side in zip(found, sides, strict=True):
            assert evidence is None or isinstance(evidence, AgreementEvidence)
            said.append((0.0 if evidence is None else side.against(truth, evidence), p))
    return found


def mean_wealth(said: Said) -> float:
    return math.fsum(p * math.exp(found) for found, p in said)


def test_values_are_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    for classes in (2, 3, 7):
        y = rng.integers(0, classes, 300)
        said = np.where(rng.random(300) < 0.6, y, rng.integers(0, classes, 300))
        for weights in (None, "linear", "quadratic"):
            ours = cohen_kappa(weights)
            theirs = cohen_kappa_score(y, said, weights=weights)
            assert ours.value(y, said) == pytest.approx(theirs, abs=1e-13)
            assert get_score(make_scorer(cohen_kappa_score, weights=weights)).name == ours.name
        names = np.array(list("abcdefg"))
        assert cohen_kappa().value(names[y], names[said]) == pytest.approx(cohen_kappa_score(y, said), abs=1e-13)
    assert cohen_kappa().value([0, 1], [1, 0]) == -1.0


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="'linear' or 'quadratic'"):
        cohen_kappa("cubic")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="labels and predictions of two classes"):
        cohen_kappa().value([1, 1], [1, 1])
    with pytest.raises(InputError, match="the class 2"):
        cohen_kappa("linear").parts(None)[0].estimate(Judged(np.array([0, 1, 2]), np.array([0, 1, 1]), np.arange(2)))
    with pytest.raises(InputError, match="labels="):
        get_score(make_scorer(cohen_kappa_score, labels=[0, 1]))


@for_each("law", ONE_LAW.values())
def test_pairs_of_one_law_keep_the_level(law: Law) -> None:
    """Wealth has a mean of at most 1 at the truth, so no level is exceeded; four records of every outcome."""
    truth = position([law] * 4, plain)
    for said in all_said([law] * 4, truth, one_law=True, classes=3):
        assert mean_wealth(said) <= ABOVE
        assert worst(said) <= ABOVE


@for_each("weights", ["linear", "quadratic"])
def test_weighted_pairs_keep_the_level(weights: Any) -> None:
    law, power = ONE_LAW["three classes"], {"linear": 1, "quadratic": 2}[weights]
    truth = position([law], lambda y, said: (abs(y - said) / 2) ** power)
    for said in all_said([law] * 4, truth, SIDES[2::3], one_law=True, statistic=cohen_kappa(weights), classes=3):
        assert 0.95 < mean_wealth(said) <= ABOVE


def given_labels(labels: Sequence[int], wrong: Sequence[float]) -> list[Law]:
    return [{(y, y): 1.0 - p, (y, 1 - y): p} for y, p in zip(labels, wrong, strict=True)]


MIXED = given_labels((0, 0, 0, 1, 1, 0), (0.0, 0.3, 0.1, 0.5, 0.2, 0.9))


@for_each("laws", [MIXED, MIXED[:4], given_labels((0, 1, 1, 1, 1, 1), (0.05,) * 6)])
def test_records_given_their_labels_keep_the_level_for_any_laws(laws: list[Law]) -> None:
    truth = position(laws, plain)
    for said in all_said(laws, truth):
        assert mean_wealth(said) <= ABOVE
        assert worst(said) <= ABOVE


SIZES = np.array([3, 2, 1, 1])
COPIES = np.repeat(np.arange(4), SIZES)


def of_copies(model: Any, *, upper: bool) -> Said:
    """Evidence of groups whose records have one label and are predicted alike."""
    labels, wrong = (0, 1, 0, 1), (0.4, 0.3, 0.2, 0.1)
    y = np.repeat(labels, SIZES)
    truth = position(given_labels(y.tolist(), np.repeat(wrong, SIZES).tolist()), plain)
    (part,) = cohen_kappa().parts(None)
    found = []
    for flips in itertools.product((0, 1), repeat=4):
        judged = Judged(y, np.where(np.repeat(flips, SIZES), 1 - y, y), np.arange(2))
        evidence = part.evidence(judged, model, False)
        assert isinstance(evidence, AgreementEvidence)
        p = math.prod(w if flip else 1.0 - w for w, flip in zip(wrong, flips, strict=True))
        found.append((Side(upper, 0.9).against(truth, evidence), p))
    return found


def test_groups_given_their_labels_keep_the_level() -> None:
    """The twin bets on records of groups that are copies."""
    for upper in (False, True):
        assert mean_wealth(of_copies(Groups(COPIES), upper=upper)) <= ABOVE
        assert mean_wealth(of_copies(Independent(7), upper=upper)) > 1.1


def test_pairs_of_different_laws_exceed_the_level() -> None:
    """The twin: chance disagrees more between two records of different labels than in their mean law."""
    laws = given_labels((0, 1), (0.3, 0.3))
    truth, side = position(laws, plain), [Side(False, 0.95)]
    assert mean_wealth(all_said(laws, truth, side, one_law=True)[0]) > 1.1
    assert mean_wealth(all_said(laws, truth, side)[0]) <= ABOVE


def all_pairs(y: NDArray[np.int64], said: NDArray[np.int64], apart: Callable[[int, int], float]) -> AgreementEvidence:
    """Evidence of all pairs of records, one after the other."""
    own, crossed = [], []
    for (a, b), (c, d) in itertools.combinations(zip(y.tolist(), said.tolist(), strict=True), 2):
        own.append((apart(a, b) + apart(c, d)) / 2.0)
        crossed.append((apart(a, d) + apart(c, b)) / 2.0)
    times = np.full(len(own), (y.size // 2) / len(own))
    return AgreementEvidence(0.5, np.array(own), np.array(crossed), 1.0, times=times)


@for_each("weights", [None, "linear", "quadratic"])
def test_all_pairs_count_alike(weights: Any) -> None:
    """Counts of classes, or of kinds of records in parts, give the sum over all pairs."""
    apart = {None: plain, "linear": lambda y, said: abs(y - said) / 3, "quadratic": lambda y, said: (y - said) ** 2 / 9}
    (part,), rng = cohen_kappa(weights).parts(None), np.random.default_rng(4)
    for n in (2, 3, 8, 25):
        y = rng.integers(0, 4, n)
        y[:2] = 0, 3
        said = np.where(rng.random(n) < 0.5, y, rng.integers(0, 4, n))
        found, expected = (
            part.evidence(Judged(y, said, np.arange(4)), Independent(n), True),
            all_pairs(y, said, apart[weights]),
        )
        assert found.against(0.4, 0.7) == pytest.approx(expected.against(0.4, 0.7), abs=1e-11)
        assert found.mirrored().against(0.4, 0.7) == pytest.approx(expected.mirrored().against(0.4, 0.7), abs=1e-11)


def test_sorted_records_of_one_law_keep_the_level() -> None:
    """Records may be sorted after they were drawn. The twin has one division into pairs for all records."""
    n, p, bet = 8, 0.3763, 0.9587
    truth = position([{(0, 1): 1.0 - p, (1, 0): p}], plain)
    (part,) = cohen_kappa().parts(None)
    one, other = np.random.default_rng(0).permutation(n).reshape(2, -1)
    found, twin = [], []
    for ones in range(n + 1):
        y = np.repeat([0, 1], [n - ones, ones])
        probability = math.comb(n, ones) * p**ones * (1.0 - p) ** (n - ones)
        crossed = (y[one] == y[other]).astype(np.float64)  # each prediction is the class that its label is not
        divided = AgreementEvidence(0.5, np.ones(n // 2), crossed, 1.0)
        evidence = part.evidence(Judged(y, 1 - y, np.arange(2)), Independent(n), True) if 0 < ones < n else divided
        found.append((evidence.against(truth, bet), probability))
        twin.append((divided.against(truth, bet), probability))
    assert mean_wealth(found) <= ABOVE
    assert mean_wealth(twin) > 3.0


def test_kappa_given_the_labels_is_not_the_populations() -> None:
    """The twin: evidence given the labels against the truth of the law that the labels are drawn from."""
    law: Law = {(0, 0): 0.45, (0, 1): 0.05, (1, 0): 0.05, (1, 1): 0.45}
    truth = position([law], plain)
    (pairs,), (given,) = (all_said([law] * 4, truth, [Side(True, 0.95)], one_law=one_law) for one_law in (True, False))
    assert mean_wealth(pairs) <= ABOVE
    assert mean_wealth(given) > 1.4


def test_a_bet_that_could_lose_everything_says_nothing() -> None:
    """Also where nothing was lost: positive parts alone have a mean above 1."""
    evidence = AgreementEvidence(0.95, np.zeros(4), np.full(4, 0.5), 2.0)
    assert evidence.against(0.5, 0.499) > 0.0
    assert evidence.against(0.5, 0.5) == -math.inf
    assert evidence.mirrored().against(0.25, 1.0) == -math.inf
    assert math.isfinite(evidence.mirrored().against(0.25, 0.99))


N = 400
ALL = np.arange(2.0 * N)[:, None]


class Given:
    """A model that is known by its predictions."""

    classes_ = np.array([0, 1])

    def __init__(self, said: NDArray[np.int64]) -> None:
        self.said = said

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        return self.said[X[:, 0].astype(np.int64)]


def test_answers_contain_the_truth_and_cost_labels_once() -> None:
    """The population's under one law; otherwise given the labels, which costs half of the error budget."""
    rng = np.random.default_rng(5)
    y = (rng.random(2 * N) < 0.4).astype(np.int64)
    model = Given(np.where(rng.random(2 * N) < 0.9, y, 1 - y))
    law: Law = {(0, 0): 0.54, (0, 1): 0.06, (1, 0): 0.04, (1, 1): 0.36}
    truth = 2.0 * position([law], plain) - 1.0
    for options, halved in (
        ({"sampling": "iid"}, False),
        ({}, True),
        ({"dependence": Groups(np.arange(N) // 2), "sampling": "iid"}, True),
    ):
        guard, other = (
            Thresholdout((ALL[:N], y[:N]), train=(ALL[N:], y[N:]), random_state=0, **options) for _ in range(2)
        )
        low, high = guard.score(model, "cohen_kappa", cv="training").interval
        released = guard.status.information_released
        assert released is not None
        assert (released > math.log(2.0)) == halved
        assert low <= truth <= high
        assert high - low < 0.8
        (answer,) = other.score_all([model], cohen_kappa(), cv="training", reserve=0.0)
        assert answer.interval[0] <= truth <= answer.interval[1]
        assert answer.half_width < 0.16
    guard = Thresholdout((ALL[:N], y[:N]), train=(ALL[N:], y[N:]), dependence=MovingWindow(N, 1))
    with pytest.raises(InputError, match=r"estimand is given the labels.*independent"):
        guard.score(model, "cohen_kappa", cv="training")
