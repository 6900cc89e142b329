"""Statistics that are not means: values as scikit-learn's, and answers of guards."""

import itertools
import math
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from sklearn import metrics as sk
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score, median_absolute_error, r2_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB

from graphs import DependenceModel, Groups, Independent, MovingWindow
from tests.cases import for_each
from thresholdout import Claims, Thresholdout
from thresholdout.errors import InputError, InputTypeError
from thresholdout.mechanisms.claims.evidence import Bets, Counts, Hoeffding, WinBets
from thresholdout.scoring import metrics, statistics
from thresholdout.scoring.out_of_fold import out_of_fold
from thresholdout.scoring.statistics.areas import matching_constant
from thresholdout.scoring.statistics.statistic_parts import Judged

Floats = NDArray[np.float64]


def test_classifier_statistics_are_scikit_learns() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :3]
    model = GaussianNB().fit(X[:200], y[:200])
    probability, predicted = model.predict_proba(X)[:, 1], model.predict(X)
    assert statistics.roc_auc().of(model, X, y) == pytest.approx(roc_auc_score(y, probability), abs=1e-14)
    assert statistics.f1().of(model, X, y) == pytest.approx(f1_score(y, predicted), abs=1e-15)
    assert statistics.f1(positive=0).of(model, X, y) == pytest.approx(f1_score(y, predicted, pos_label=0), abs=1e-15)
    expected = balanced_accuracy_score(y, predicted)
    assert statistics.balanced_accuracy().of(model, X, y) == pytest.approx(expected, abs=1e-15)
    linear = LogisticRegression(max_iter=5000).fit(X[:200], y[:200])
    expected = roc_auc_score(y, linear.decision_function(X))
    assert statistics.roc_auc().of(linear, X, y) == pytest.approx(expected, abs=1e-14)


def test_ties_text_labels_and_several_classes() -> None:
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 2, 300), rng.integers(0, 5, 300) / 4
    names = np.array(["ill", "well"])[y]
    expected = roc_auc_score(y, scores)
    assert statistics.roc_auc().value(names, scores) == pytest.approx(expected, abs=1e-14)
    assert statistics.roc_auc().value(names, np.column_stack([1 - scores, scores]), ["ill", "well"]) == pytest.approx(
        expected, abs=1e-14
    )
    X, y = load_iris(return_X_y=True)
    model = GaussianNB().fit(X[::3, :1], y[::3])
    expected = balanced_accuracy_score(y[:120], model.predict(X[:120, :1]))
    assert statistics.balanced_accuracy().of(model, X[:120, :1], y[:120]) == pytest.approx(expected, abs=1e-15)


def test_regressor_statistics_are_scikit_learns_until_they_are_clipped() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = LinearRegression().fit(X[:200], y[:200])
    predicted = model.predict(X)
    assert statistics.r2(clip=1e6).of(model, X, y) == pytest.approx(r2_score(y, predicted), abs=1e-6)
    shares = np.minimum((y - predicted) ** 2 / np.var(y), 0.5)
    assert statistics.r2(clip=0.5).of(model, X, y) == pytest.approx(1 - shares.mean(), abs=1e-13)
    assert statistics.r2(4.0).bounds == (-3.0, 1.0)
    # A window of 0.01 lies between the two middle errors of 100.
    narrow = statistics.median_absolute_error(1e4, window=0.01)
    expected = median_absolute_error(y[:100], predicted[:100])
    assert narrow.value(y[:100], predicted[:100]) == pytest.approx(expected, rel=1e-12)
    errors = np.sort(np.abs(y - predicted))[:442]
    wide = statistics.median_absolute_error(1e4, window=1.0)
    assert wide.value(y, predicted) == pytest.approx(errors.mean(), rel=1e-12)
    assert statistics.median_absolute_error(3.0).value(y, predicted) == 3.0
    half = statistics.median_absolute_error(100.0, window=0.5)
    assert half.value(np.zeros(8), np.arange(8.0)) == pytest.approx((2 + 3 + 4 + 5) / 4)
    assert half.value(np.zeros(5), np.arange(5.0)) == pytest.approx((0.75 * 1 + 2 + 0.75 * 3) / 2.5)


def test_cross_validated_values_are_out_of_fold() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 150)), rng.integers(0, 2, size=200)
    model = LogisticRegression(C=1e3, max_iter=300).fit(X, y)
    assert statistics.roc_auc().of(model, X, y) > 0.95  # fits noise
    folds = list(StratifiedKFold(5).split(X, y))
    found = out_of_fold(model, X, y, folds, statistics.roc_auc().response_of(model))
    assert abs(statistics.roc_auc().of_predictions(found, X, y) - 0.5) < 0.15
    found = out_of_fold(LinearRegression(), X, X[:, 0], folds, "predict")
    assert statistics.r2(4.0).of_predictions(found, X, X[:, 0]) > 0.9


@for_each("sizes", [(1, 1, 1, 1), (2, 2, 2), (1, 2, 3, 1), (1,) * 7, (3, 3, 2, 2, 1)])
def test_weights_of_pairs_of_groups_are_a_mean_of_matchings(sizes: tuple[int, ...]) -> None:
    """The step of the proof that rests on Edmonds' polytope, by a linear program over all matchings, loops included."""
    rng, count = np.random.default_rng(5), len(sizes)
    for _ in range(6):
        y = rng.permutation(np.repeat([0, 1], [sum(sizes) - sum(sizes) // 2, sum(sizes) // 2]))
        groups = np.repeat(np.arange(count), sizes)
        p, q = (np.bincount(groups, side) / side.sum() for side in (y, 1 - y))
        share = float((p + q).max())
        scale = share / (1 - share / 2)
        pairs = [(g, h) for g in range(count) for h in range(g, count)]
        weights = np.array([p[g] * q[h] + (p[h] * q[g] if g != h else 0) for g, h in pairs])
        all_matchings = list(matchings(tuple(range(count))))
        columns = np.array([[pair in matching for matching in all_matchings] for pair in pairs], dtype=np.float64)
        equal = np.vstack([columns, np.ones(len(all_matchings))])
        found = linprog(np.zeros(len(all_matchings)), A_eq=equal, b_eq=np.r_[weights / scale, 1.0])
        assert found.status == 0


def matchings(free: tuple[int, ...]) -> Iterator[frozenset[tuple[int, int]]]:
    """All sets of pairs g <= h of these groups in which each group takes part once at most."""
    if not free:
        yield frozenset()
        return
    first, rest = free[0], free[1:]
    for smaller in matchings(rest):
        yield smaller
        yield smaller | {(first, first)}
    for other in rest:
        for smaller in matchings(tuple(g for g in rest if g != other)):
            yield smaller | {(first, other)}


@for_each(
    ("statistic", "y", "output", "message"),
    [
        (statistics.roc_auc(), [1, 1], [0.1, 0.2], "one class"),
        (statistics.roc_auc(), [0, 1, 2], [0.1, 0.2, 0.3], "3 classes"),
        (statistics.roc_auc(), [0, 1], [0.1, math.nan], "finite"),
        (statistics.roc_auc(), [0, 1], [0.1, 0.2, 0.3], "shape"),
        (statistics.roc_auc(), [0.0, math.nan], [0.1, 0.2], "missing"),
        (statistics.roc_auc_ovr(), [0, 1, 2], [0, 1, 2], "a column for each"),
        (statistics.balanced_accuracy(), [1, 1], [1, 1], "one class"),
        (statistics.balanced_accuracy(), [0, 1], [1], "shape"),
        (statistics.f1(positive=1), [0, 0], [0, 0], "no records of the class 1, or predicted so"),
        (statistics.f1(), [0, 0], [1, 1], "one class"),
        (statistics.precision(), [0, 1], [0, 0], "no records predicted 1"),
        (statistics.recall(positive=2), [0, 1], [0, 0], "no records of the class 2"),
        (statistics.f1(), [0, 1, 2], [0, 1, 2], "positive= for one of them"),
        (statistics.matthews_corrcoef(), [0, 1], [0, 0], "no records predicted 1"),
        (statistics.r2(4.0), [2.0, 2.0], [1.0, 1.0], "all the same"),
        (statistics.r2(4.0), [0.1, 0.1, 0.1], [1.0, 1.0, 1.0], "all the same"),
        (statistics.r2(4.0), [0.0, math.inf], [1.0, 1.0], "missing or infinite"),
        (statistics.r2(4.0), ["a", "b"], [1.0, 1.0], "one number for each record"),
        (statistics.median_absolute_error(1.0), [0.0, 1.0], [1.0, math.nan], "finite"),
        (statistics.median_absolute_error(1.0), [], [], "number for each record"),
        (statistics.sliced("accuracy", (0, 1)), [0, 1], [0, 1], "no features"),
    ],
)
def test_refusals(statistic: statistics.Statistic, y: list[float], output: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        statistic.value(y, output)


def labelled(n: int, classes: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Labels, predictions that are right as often as not, and probabilities."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    said = np.where(rng.random(n) < 0.5, y, rng.integers(0, classes, n))
    probability = rng.dirichlet(np.ones(classes), n) + 0.5 * np.eye(classes)[y]
    return y, said, probability / probability.sum(axis=1, keepdims=True)


@for_each("classes", [2, 4])
def test_shares_and_averages_are_scikit_learns(classes: int) -> None:
    y, said, probability = labelled(200, classes, seed=classes)
    for name in ("precision", "recall", "f1", "jaccard"):
        theirs, ours = getattr(sk, f"{name}_score"), getattr(statistics, name)
        assert ours(average="macro").value(y, said) == pytest.approx(theirs(y, said, average="macro"), abs=1e-14)
        for label in range(classes):
            expected = theirs(y == label, said == label)
            assert ours(positive=label).value(y, said) == pytest.approx(expected, abs=1e-14)
        if classes == 2:
            assert ours().value(y, said) == pytest.approx(theirs(y, said), abs=1e-14)
    if classes == 2:
        assert statistics.matthews_corrcoef().value(y, said) == pytest.approx(sk.matthews_corrcoef(y, said), abs=1e-12)
        for beta in (0.5, 3.0):
            expected = sk.fbeta_score(y, said, beta=beta)
            assert statistics.fbeta(beta).value(y, said) == pytest.approx(expected, abs=1e-14)
    else:
        for kind in ("ovr", "ovo"):
            expected = roc_auc_score(y, probability, multi_class=kind)
            ours = statistics.get_statistic(f"roc_auc_{kind}")
            assert ours.value(y, probability, np.arange(classes)) == pytest.approx(expected, abs=1e-14)
        expected = sk.top_k_accuracy_score(y, probability, k=2)
        hits = metrics.top_k_accuracy(2).values(y, probability, np.arange(classes))
        assert hits.mean() == pytest.approx(expected, abs=1e-14)
    assert statistics.root_mean_squared_error(10.0).value(y, said) == pytest.approx(
        sk.root_mean_squared_error(y, said), abs=1e-14
    )


POSITIVE = [([0, 1], 1), ([-1, 1], 1), ([False, True], True), ([0.0, 1.0], 1.0)]
NONE_POSITIVE = [[1, 2], [2, 3], [0, 2], [-1, 0], ["no", "yes"], ["bad", "good"], ["0", "1"]]


@for_each("name", ["precision", "recall", "f1", "jaccard", "fbeta"])
@for_each("labels", [*(labels for labels, _ in POSITIVE), *NONE_POSITIVE])
def test_the_positive_class_is_named_wherever_scikit_learn_wants_it_named(name: str, labels: list[Any]) -> None:
    """Its functions take 1 and True; of labels 1 and 2 they take 1, the smaller one, which is refused here."""
    made = (lambda **named: statistics.fbeta(2.0, **named)) if name == "fbeta" else getattr(statistics, name)
    theirs = getattr(sk, f"{name}_score")
    beta = {"beta": 2.0} if name == "fbeta" else {}
    classes = np.array(labels)
    y, said = classes[[1, 1, 1, 0, 0]], classes[[1, 1, 0, 0, 1]]
    positive = next((label for known, label in POSITIVE if known is labels), None)
    if positive is not None:
        assert made().value(y, said) == pytest.approx(theirs(y, said, **beta))
        assert "of the class 1, or True" in made().target
    else:
        with pytest.raises(InputError, match=r"got .*none is said to be the positive class\. Pass positive="):
            made().value(y, said)
    for label in classes:
        plain = label.item()
        assert made(positive=plain).value(y, said) == pytest.approx(theirs(y, said, pos_label=plain, **beta))
        assert f"of the class {plain!r}" in made(positive=plain).target


def test_a_rare_class_of_text_is_not_answered_by_the_other_one() -> None:
    """Of labels "default" (10 %) and "ok" the last in the alphabet is the common one, which is easy."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(2 * N) < 0.1, "default", "ok")
    guard = guarded(y)
    model = Given(np.where(rng.random(2 * N) < 0.1, "ok", y))
    model.classes_ = np.array(["default", "ok"])
    before = guard.status.information_released
    with pytest.raises(InputError, match="positive='ok' or positive='default'"):
        guard.score(model, "f1", cv="training")
    assert guard.status.information_released == before
    assert guard.score(model, statistics.f1(positive="default"), cv="training").name == "f1(positive='default')"


class Given:
    """A model that is known by what it says of each record."""

    classes_ = np.array([0, 1])

    def __init__(self, said: NDArray[Any]) -> None:
        self.said = said

    def predict(self, X: NDArray[np.float64]) -> NDArray[Any]:
        return self.said[X[:, 0].astype(np.int64)]

    def decision_function(self, X: NDArray[np.float64]) -> NDArray[Any]:
        return self.predict(X)


N = 600
ALL = np.arange(2.0 * N)[:, None]
PAIRS = Groups(np.arange(N) // 2)


def guarded(y: NDArray[np.int64], model: DependenceModel | None = None, **options: Any) -> Any:
    return Thresholdout((ALL[:N], y[:N]), train=(ALL[N:], y[N:]), dependence=model, random_state=0, **options)


@for_each("mechanism", ["claims", Claims(noise=0.0)])
def test_answers_of_a_guard_contain_what_is_so(mechanism: Any) -> None:
    """Every statistic, one law or not, records or groups; half of the positives are found, by coins."""
    rng = np.random.default_rng(3)
    y = (rng.random(2 * N) < 0.3).astype(np.int64)
    right = rng.random(2 * N) < 0.8
    model = Given(np.where(right, y, 1 - y))
    tp, fn, fp, tn = 0.24, 0.06, 0.14, 0.56
    expected = {
        "precision": tp / (tp + fp),
        "recall": 0.8,
        "f1": 2 * tp / (2 * tp + fp + fn),
        "jaccard": tp / (tp + fp + fn),
        "balanced_accuracy": 0.8,
        "roc_auc": 0.8,
        "precision_macro": (tp / (tp + fp) + tn / (tn + fn)) / 2,
        "matthews_corrcoef": (tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)),
    }
    for options in ({}, {"sampling": "iid"}, {"model": Groups(np.arange(N) // 2)}):
        guard = guarded(y, mechanism=mechanism, **options)
        for name, truth in expected.items():
            answer = guard.score(model, name, cv="training")
            low, high = answer.interval
            assert low <= truth <= high
            assert answer.estimand == statistics.get_statistic(name).target
            assert answer.half_width < (1.2 if name == "matthews_corrcoef" else 0.4)
        sliced = guard.score(model, statistics.sliced("accuracy", lambda X: X[:, 0] % 2 == 0, "even"), cv="training")
        assert sliced.interval[0] <= 0.8 <= sliced.interval[1]
        assert "even" in sliced.estimand


def test_dependent_records_have_ratios_and_no_truths_given_labels() -> None:
    rng = np.random.default_rng(3)
    y = (rng.random(2 * N) < 0.5).astype(np.int64)
    model = Given(np.where(rng.random(2 * N) < 0.9, y, 1 - y))
    guard = guarded(y, MovingWindow(N, 1))
    low, high = guard.score(model, "f1", cv="training").interval
    assert low <= 0.9 <= high
    assert high - low < 0.9
    for name in ("roc_auc", "balanced_accuracy", statistics.r2(4.0)):
        with pytest.raises(InputError, match=r"estimand is given the labels.*independent"):
            guard.score(model, name, cv="training")
    assert len(guard.history) == 1


def test_one_law_takes_exact_counts_and_other_laws_bets() -> None:
    y = np.arange(8) % 2
    model = Given(y)
    records = ALL[:8], y, y, Independent(8)
    assert isinstance(statistics.f1().evidence(model, *records, True)[0], Counts)
    assert isinstance(statistics.f1().evidence(model, *records, False)[0], WinBets)
    assert isinstance(statistics.f1().evidence(model, *records[:3], Groups(np.arange(8) // 2), True)[0], Bets)


def test_only_truths_that_are_given_the_labels_cost_half_of_the_risk() -> None:
    """And that once: R2 always, balanced accuracy and areas where laws may differ, or labels tell about others."""
    y = np.arange(2 * N) % 2
    model = Given(np.where(np.arange(2 * N) % 7 == 0, 1 - y, y))
    costs = {}
    for case, one_law, groups in (("one law", True, None), ("laws", False, None), ("groups", True, PAIRS)):
        guard = guarded(y, groups, sampling="iid" if one_law else "independent", mechanism=Claims(noise=0.0))
        for name in ("f1", "balanced_accuracy", "roc_auc", statistics.r2(4.0)):
            before = guard.status.information_released
            guard.score(model, name, cv="training")
            costs[getattr(name, "name", name), case] = guard.status.information_released - before > math.log(2)
    halved = [query for query, half in costs.items() if half]
    assert halved == [("r2(clip=4)", "one law"), ("balanced_accuracy", "laws"), ("balanced_accuracy", "groups")]


def test_what_is_shown_does_not_depend_on_numbers_of_records() -> None:
    """Holdouts with other numbers of positive records, and the same outcomes, get the same answers."""
    train = np.arange(N) % 3 == 0
    for name in ("precision", "recall", "f1", "roc_auc", "balanced_accuracy", "matthews_corrcoef", "cohen_kappa"):
        shown = set()
        for shift in (0, 9):
            positive = np.concatenate([np.arange(N) < 200 + shift, train]).astype(np.int64)
            model = Given(np.where(np.arange(2 * N) % 10 == 3, 1 - positive, positive))
            guard = guarded(positive, mechanism=Claims(noise=0.0), sampling="iid")
            answer = guard.score(model, name, cv="training")
            assert answer.source == "train"
            shown.add((answer.value, answer.interval, guard.status.information_released))
        assert len(shown) == 1


def test_a_statistic_that_does_not_exist_on_the_holdout_is_a_query_that_fails() -> None:
    y = np.concatenate([np.zeros(N, dtype=np.int64), np.arange(N) % 2])
    guard = guarded(y)
    with pytest.raises(InputError, match="failed on the holdout"):
        guard.score(Given(y), "recall", cv="training")
    assert guard.history["source"].tolist() == ["failed"]
    with pytest.raises(InputError, match="no records predicted 1"):  # on the training part, for nothing
        guard.score(Given(0 * y), "precision", cv="training")
    assert len(guard.history) == 1


def test_statistics_in_lists() -> None:
    """Stated directly: every part's limits at a share of the level; the truth is inside, and nothing is left."""
    rng = np.random.default_rng(5)
    y = (rng.random(2 * N) < 0.4).astype(np.int64)
    models = [Given(np.where(rng.random(2 * N) < 0.8, y, 1 - y)) for _ in range(3)]
    for name, truth, width in (("recall", 0.8, 0.2), ("roc_auc", 0.8, 0.25), ("f1_macro", 0.7916, 0.3)):
        for answer in guarded(y, sampling="iid").score_all(models, name, reserve=0, cv="training"):
            low, high = answer.interval
            assert low <= truth <= high
            assert high - low < width


def test_a_declared_difference_is_one_of_as_many_fewer_records() -> None:
    """McDiarmid's inequality: a value that one of n records can move by c/n has n/c^2 records of a mean."""
    y = np.arange(2 * N) % 2
    for difference in (0.5, 3.0):
        mine = statistics.bounded_difference("mine", lambda y, said: 2.0, difference=difference, bounds=(1.0, 3.0))
        (evidence,) = mine.evidence(Given(y), ALL[:N], y[:N], y[N:], Groups(np.arange(N) // 2), False)
        assert isinstance(evidence, Hoeffding)
        assert evidence.value == 0.5
        assert evidence.records == pytest.approx(N / 2 / (difference / 2) ** 2)
        low, high = guarded(y).score(Given(y), mine, cv="training").interval
        assert low < 2.0 < high
    for bad in (0.0, math.nan):
        with pytest.raises(InputError, match="difference"):
            statistics.bounded_difference("mine", lambda y, said: 0.5, difference=bad)
    nothing = statistics.bounded_difference("mine", lambda y, said: math.nan, difference=1.0)
    with pytest.raises(InputError, match="not finite"):
        nothing.value([0, 1], [0, 1])


def test_slices_of_tables_and_of_losses() -> None:
    X = pd.DataFrame({"number": np.arange(6.0), "place": ["north", "south"] * 3})
    y, said = np.array([0, 0, 1, 1, 0, 1]), np.array([0, 1, 1, 0, 0, 1])
    north = statistics.sliced("zero_one_loss", ("place", "north"))
    assert north.name == "zero_one_loss where place = 'north'"
    assert north.of_output(y, said, X=X) == 0.0
    assert statistics.sliced("zero_one_loss", ("place", "south")).of_output(y, said, X=X) == pytest.approx(2 / 3)
    errors = statistics.sliced(metrics.absolute_error(4.0), lambda X: X[:, 0] > 0, "above")
    features = np.array([[0.0], [1.0], [2.0]])
    assert errors.of_output(np.array([9.0, 1.0, 9.0]), np.array([0.0, 0.0, 0.0]), X=features) == pytest.approx(2.5)
    with pytest.raises(InputError, match="one boolean for each of 3 records"):
        statistics.sliced("accuracy", lambda X: X[:, 0], "odd").of_output(y[:3], said[:3], X=features)
    with pytest.raises(InputError, match="a name, which the history shows"):
        statistics.sliced("accuracy", lambda X: X > 0)
    with pytest.raises(InputTypeError, match="where"):
        statistics.sliced("accuracy", 3)  # type: ignore[arg-type]


def test_estimates_are_numbers_that_keep_their_parts_in_other_processes() -> None:
    found = statistics.f1().of_output([0, 0, 1, 1], [0, 1, 1, 1])
    again = pickle.loads(pickle.dumps(found))
    assert again == found == 0.8
    assert again.parts == found.parts


def test_the_matchings_constant_of_the_worst_labelling_is_no_smaller_than_that_of_any() -> None:
    """Largest shares by brute force over all labellings of small groups."""
    for sizes in ((2, 2, 2), (1, 2, 3), (4, 1, 1, 1), (3, 3, 1)):
        groups, n = np.repeat(np.arange(len(sizes)), sizes), sum(sizes)
        for positive in range(1, n):
            share = 0.0
            for some in itertools.combinations(range(n), positive):
                chosen = np.isin(np.arange(n), some)
                p, q = (np.bincount(groups, side) / side.sum() for side in (chosen, ~chosen))
                share = max(share, float((p + q).max()))
            constant = share / (1 - share / 2) if share < 2 else math.inf
            assert matching_constant(positive, n - positive, max(sizes)) >= constant * (1 - 1e-12)


def test_a_metric_that_is_called_accuracy_and_has_other_values_is_no_count_of_wins() -> None:
    """It fails, on the training part for nothing: exact counts are of records that are right or wrong."""
    half = metrics.Metric("accuracy", "predict", lambda y, said, classes: 0.5 * (y == said), (0.0, 1.0), True)
    with pytest.raises(InputError, match="a metric with values 0 and 1"):
        guarded(np.arange(2 * N) % 2).score(
            Given(np.arange(2 * N) % 2), statistics.sliced(half, lambda X: X[:, 0] % 3 == 0, "thirds"), cv="training"
        )


@for_each("name", ["f1", "roc_auc", "matthews_corrcoef"])
def test_a_final_check_by_a_statistic_tells_the_value_of_the_holdout(name: str) -> None:
    rng = np.random.default_rng(7)
    y = (rng.random(2 * N) < 0.5).astype(np.int64)
    model = Given(np.where(rng.random(2 * N) < 0.85, y, 1 - y))
    guard = guarded(y, sampling="iid")
    answer = guard.final_check(model, name, cv="training")
    low, high = answer.interval
    assert answer.value == pytest.approx(statistics.get_statistic(name).value(y[:N], model.said[:N]), abs=1e-12)
    assert low <= (0.7 if name == "matthews_corrcoef" else 0.85) <= high
    assert high - low < (0.5 if name == "matthews_corrcoef" else 0.16)


def test_a_score_of_a_search_comes_without_parts_and_varies_as_is_usual_there() -> None:
    """The model is right on all training records; its cross-validated score of 0.8 says what to expect."""
    rng = np.random.default_rng(8)
    y = (rng.random(2 * N) < 0.5).astype(np.int64)
    model = Given(np.concatenate([np.where(rng.random(N) < 0.8, y[:N], 1 - y[:N]), y[N:]]))
    for name in ("f1", "roc_auc", "balanced_accuracy", "f1_macro"):
        statistic = statistics.get_statistic(name)
        found = statistic.estimate_at(0.8, model, ALL[N:], y[N:])
        honest = statistic.of_output(y[:N], model.said[:N])
        assert found == 0.8
        for part, other in zip(found.parts, honest.parts, strict=True):
            assert part.value == pytest.approx(0.8)
            assert 0.4 < part.variance / other.variance < 4.0
            assert part.squares > 0.4 * other.squares


def test_smoothed_medians_keep_the_level() -> None:
    """By enumeration: errors 0, 1/2 and 1 of four records with two laws; S5 charges ln 2 for both sides of F."""
    for window in (0.2, 0.6, 1.0):
        statistic = statistics.median_absolute_error(1.0, window=window)
        for first, second in (((0.4, 0.2, 0.4), (0.1, 0.1, 0.8)), ((0.5, 0.0, 0.5),) * 2, ((0.2, 0.7, 0.1),) * 2):
            middle = 0.5 * (first[0] + second[0]), 0.5 * (first[0] + second[0] + first[1] + second[1])
            below = [min(1.0, max(0.0, (at - 0.5 + window / 2.0) / window)) for at in middle]
            truth, found = 1.0 - 0.5 * sum(below), []
            for said in itertools.product((0, 1, 2), repeat=4):
                chance = math.prod((first, first, second, second)[k][one] for k, one in enumerate(said))
                judged = Judged(np.zeros(4), 0.5 * np.array(said, dtype=np.float64))
                (part,) = statistic.parts(None)
                found.append((part.evidence(judged, Independent(4), False), chance))
            for sided, end in ((False, truth), (True, 1.0 - truth)):
                nats = [((one.mirrored() if sided else one).against(end, 0.0), p) for one, p in found]
                for at in {n for n, _ in nats if n > 0.0}:
                    assert sum(p for n, p in nats if n >= at - 1e-12) <= math.exp(-at) * (1.0 + 1e-9)
