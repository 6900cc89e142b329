"""Cohen's kappa of lazy frames: by counts of labels and predictions, with the answers that arrays have."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics

from graphs.models.law_free import GroupSizes
from tests.sizes import corners
from tests.thresholdout.guard.lazy_guards import Column, Engine, N, guards, lazy_guard, of_polars, shown
from thresholdout import Claims, Thresholdout
from thresholdout.data.parts.lazy_part import LazyPart
from thresholdout.data.parts.totals import GroupTotals, Totals
from thresholdout.errors import InputError
from thresholdout.guard.column_agreement import disagreements_of_groups, table_of
from thresholdout.scoring.statistics import cohen_kappa
from thresholdout.scoring.statistics.agreement import Agreement, LabelTable

WEIGHTS: Any = (None, "linear", "quadratic")
NAMES = np.array(["1 poor", "2 fair", "3 good", "4 best"])


class Predicted(Column):
    """A model of ratings in a column."""

    classes_ = NAMES


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 4, size=2 * N)
    predicted = np.clip(truth + rng.integers(-1, 2, size=2 * N) * (rng.random(2 * N) < 0.5), 0, 3)
    group = (np.arange(2 * N) // 3 * 7) % N + np.where(np.arange(2 * N) < N, 0, N)
    return pd.DataFrame({"id": np.arange(2 * N), "g": group, "y": NAMES[truth], "predicted": NAMES[predicted]})


@pytest.mark.parametrize("declared", corners([{}, {"mechanism": Claims(noise=0.0)}, {"sampling": "iid"}], 0, 2))
def test_kappa_has_the_answers_of_arrays(engine: Engine, table: pd.DataFrame, declared: dict[str, Any]) -> None:
    """To the last bit, by the same function of the same counts."""
    lazy, eager = guards(engine, table, **declared)
    for weights in WEIGHTS:
        metric = cohen_kappa(weights)
        found, expected = lazy.score("predicted", metric), eager.score(Predicted("predicted"), metric, cv="training")
        assert shown(found) == shown(expected)
        assert lazy.score("predicted", metric).repeated
    found = lazy.score("predicted", "cohen_kappa", train_values=0.2)
    assert shown(found) == shown(eager.score(Predicted("predicted"), "cohen_kappa", train_values=0.2))
    assert found.source == "holdout"
    truth = sklearn.metrics.cohen_kappa_score(table.y[:N], table.predicted[:N])
    assert found.interval[0] <= truth <= found.interval[1]


@pytest.mark.parametrize("weights", WEIGHTS)
def test_kappa_of_groups_has_the_interval_of_arrays(engine: Engine, table: pd.DataFrame, weights: Any) -> None:
    """Groups come in another order than in memory, so that last digits may differ."""
    top, rest = table[:N], table[N:]
    declared: dict[str, Any] = {"mechanism": Claims(noise=0.0), "random_state": 3}
    lazy = Thresholdout((engine(top), "y"), train=(engine(rest), "y"), groups="g", **declared)
    eager = Thresholdout((top, top.y, top.g), train=(rest, rest.y, rest.g), **declared)
    found, expected = (
        lazy.score("predicted", cohen_kappa(weights)),
        eager.score(Predicted("predicted"), cohen_kappa(weights), cv="training"),
    )
    assert found.interval == pytest.approx(expected.interval, abs=1e-11)
    assert (found.source, found.estimand) == (expected.source, expected.estimand)


def test_a_list_takes_one_pass(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    lazy, eager = guards(of_polars, table.assign(other=np.roll(table.predicted, 1)))
    passes: list[str] = []
    row = LazyPart.row

    def counting(part: LazyPart, plan: Any) -> Any:
        passes.append(part.name)
        return row(part, plan)

    monkeypatch.setattr(LazyPart, "row", counting)
    found = lazy.score_all(["predicted", "other"], "cohen_kappa")
    assert passes == ["train", "holdout"]
    expected = eager.score_all([Predicted("predicted"), Predicted("other")], "cohen_kappa", cv="training")
    assert list(map(shown, found)) == list(map(shown, expected))


def test_values_that_are_missing_or_new_agree_with_nothing(engine: Engine, table: pd.DataFrame) -> None:
    """As arrays in which each of them is a class of its own, of labels or of predictions."""
    gone = table.copy()
    gone.loc[gone.index[:N][::7], "predicted"] = None
    gone.loc[gone.index[:N][::14], "y"] = None
    gone.loc[gone.index[:N][1::14], "predicted"] = "5 new"
    gone.loc[gone.index[:N][1::28], "y"] = "5 new"
    filled = gone.copy()
    filled["y"] = filled.y.where(filled.y.isin(NAMES), "8 label")
    filled["predicted"] = filled.predicted.where(filled.predicted.isin(NAMES), "9 prediction")
    for declared in ({}, {"sampling": "iid"}):
        lazy = lazy_guard(engine, gone, mechanism=Claims(noise=0.0), **declared)
        _, eager = guards(engine, filled, mechanism=Claims(noise=0.0), **declared)
        found, expected = (
            lazy.score("predicted", "cohen_kappa"),
            eager.score(Predicted("predicted"), "cohen_kappa", cv="training"),
        )
        assert shown(found) == shown(expected)
    gone.loc[gone.index[N:][:4], "predicted"] = None
    with pytest.raises(InputError, match="4 of 1500 values missing"):
        lazy_guard(engine, gone).score("predicted", "cohen_kappa")


def test_refusals(table: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="independent records or Groups"):
        guards(of_polars, table, dependence=GroupSizes({3: N // 3}))[0].score("predicted", "cohen_kappa")
    holdout, train = of_polars(table[:N]), of_polars(table[N:])
    with pytest.raises(InputError, match="more than 20 classes in the column 'id'"):
        Thresholdout((holdout, "id"), train=(train, "id")).score("g", "cohen_kappa")
    with pytest.raises(InputError, match="one column, except for areas"):
        guards(of_polars, table)[0].score({"1 poor": "predicted"}, "cohen_kappa")
    alike = table.assign(
        y=np.where(table.id < N, NAMES[0], table.y), predicted=np.where(table.id < N, NAMES[0], table.predicted)
    )
    lazy = guards(of_polars, alike)[0]
    with pytest.raises(InputError, match="failed on the holdout"):
        lazy.score("predicted", "cohen_kappa")
    assert lazy.history["source"].tolist() == ["failed"]


def totals(number: int, n: int) -> Totals:
    return Totals(n, 1, 2 * number)


def counted(y: Any, predicted: Any, classes: int) -> list[Totals]:
    """The counts of an engine, by plain loops; -1 is of no class."""
    n, kinds = len(y), range(classes)
    pairs = list(zip(y, predicted, strict=True))
    numbers = [sum(one == kind for one in y) for kind in kinds] + [
        sum(one == kind for one in predicted) for kind in kinds
    ]
    return [totals(one, n) for one in numbers + [pairs.count(kind) for kind in itertools.product(kinds, kinds)]]


def records(table: LabelTable) -> list[tuple[int, int]]:
    return [kind for kind in np.ndindex(table.counts.shape) for _ in range(table.counts[kind])]


def apart(one: int, other: int, classes: int, weights: Any) -> float:
    if min(one, other) < 0:
        return 1.0
    far = abs(one - other) / (classes - 1)
    return far**2 if weights == "quadratic" else far if weights else float(one != other)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_counts_and_groups_are_those_of_plain_loops(weights: Any) -> None:
    """The twin, in which labels and predictions of no class agree, has other disagreements."""
    rng, part = np.random.default_rng(3), Agreement(weights)
    for classes in (2, 3, 5):
        y, predicted = rng.integers(-1, classes, size=(2, 40))
        both = list(zip(y.tolist(), predicted.tolist(), strict=True))
        table = table_of(counted(y, predicted, classes), part)
        expected = [(classes if one < 0 else one, classes + 1 if other < 0 else other) for one, other in both]
        assert sorted(records(table)) == sorted(expected)
        own = [apart(one, other, classes, weights) for one, other in both]
        crossed = [np.mean([apart(label, other, classes, weights) for label, _ in both]) for _, other in both]
        value, chance = table.position()
        assert chance == pytest.approx(np.mean(crossed), rel=1e-14)
        assert value == pytest.approx(1.0 - 0.5 * np.mean(own) / np.mean(crossed), rel=1e-14)
        twin = [0.0 if one == other == -1 else away for away, (one, other) in zip(own, both, strict=True)]
        assert abs(1.0 - 0.5 * np.mean(twin) / np.mean(crossed) - value) > 1e-3
        groups = rng.integers(0, 7, size=40)
        sums = [np.bincount(groups, weights=y == kind, minlength=7) for kind in range(classes)]
        sums += [np.bincount(groups, weights=predicted == kind, minlength=7) for kind in range(classes)]
        known = (y >= 0) & (predicted >= 0)
        for far in range(classes - 1 if weights else 1):
            sums.append(np.bincount(groups, weights=known & (abs(y - predicted) == far), minlength=7))
        sizes = np.bincount(groups, minlength=7).astype(float)
        found = disagreements_of_groups([GroupTotals(one.astype(float), sizes, 1) for one in sums], part, classes)
        for each, of_records in zip(found, (own, crossed), strict=True):
            wanted = np.bincount(groups, weights=np.array(of_records), minlength=7)
            assert each == pytest.approx(wanted, rel=1e-14)


LAW: Any = {(0, 0): 0.25, (1, 1): 0.2, (0, 1): 0.1, (-1, -1): 0.3, (1, -1): 0.15}


def largest_wealth(weights: Any, one_law: bool, *, alike: bool = False) -> float:
    """The largest mean wealth against true hypotheses of four records with one law, or given their labels.

    With `alike` the counts take missing labels and missing predictions for one class.
    """
    part, n, classes, found = Agreement(weights), 4, 2, 0.0
    samples = [(float(np.prod([LAW[one] for one in sample])), sample) for sample in itertools.product(LAW, repeat=n)]
    given = {} if one_law else {tuple(one for one, _ in sample): 0.0 for _, sample in samples}
    for fixed in given or [None]:
        own = [one for one in samples if fixed is None or tuple(label for label, _ in one[1]) == fixed]
        total = sum(chance for chance, _ in own)
        others = list(itertools.permutations(range(n), 2) if fixed is None else itertools.product(range(n), repeat=2))
        d = b = 0.0
        for chance, sample in own:
            d += chance / total * float(np.mean([apart(one, other, classes, weights) for one, other in sample]))
            far = [apart(sample[i][0], sample[j][1], classes, weights) for i, j in others]
            b += chance / total * float(np.mean(far))
        end = 1.0 - 0.5 * d / b if b > 0.0 else 1.0
        if not 0.0 < end < 1.0:
            continue
        wealth = np.zeros(4)
        for chance, sample in own:
            y, predicted = zip(*sample, strict=True)
            table = table_of(counted(y, predicted, classes), part)
            if alike:
                table.weights[classes, classes + 1] = 0.0
            try:
                evidence = part.evidence_of(table, one_law)
            except InputError:
                continue  # a failure, which refutes nothing
            sides = [evidence.against(end, bet) for bet in (0.3, 0.9)]
            sides += [evidence.mirrored().against(1.0 - end, bet / max(1.0, 2.0 * (1.0 - end))) for bet in (0.3, 0.9)]
            wealth += chance / total * np.exp(sides)
        found = max(found, float(wealth.max()))
    return found


@pytest.mark.parametrize("weights", corners(WEIGHTS[:2], 1))
@pytest.mark.parametrize("one_law", [False, True])
def test_true_hypotheses_win_nothing_on_average(weights: Any, one_law: bool) -> None:
    """Enumeration of all samples, through the counts; the twin, in which missing values agree, wins."""
    assert 0.9 < largest_wealth(weights, one_law) <= 1.0 + 1e-9
    assert largest_wealth(weights, one_law, alike=True) > 1.1
