"""Statistics that are not means: values as scikit-learn's, influence of records by brute force, spreads by hand."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score, median_absolute_error, r2_score, roc_auc_score
from sklearn.naive_bayes import GaussianNB

from graphs import Groups, Independent, MarkovChain, MovingWindow
from thresholdout import certify, statistics
from thresholdout.errors import InputError, InputTypeError

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
    assert statistics.r2().bounds == (-3.0, 1.0)
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
    model = LogisticRegression(C=1e6, max_iter=5000).fit(X, y)
    assert statistics.roc_auc().of(model, X, y) > 0.95  # fits noise
    assert abs(statistics.roc_auc().cross_validated(model, X, y, cv=5) - 0.5) < 0.15
    assert statistics.r2().cross_validated(LinearRegression(), X, X[:, 0], cv=5) > 0.9


CLASSIFIERS = [statistics.roc_auc(), statistics.balanced_accuracy(), statistics.f1()]
CASES = [
    (statistics.roc_auc(), np.array([0, 0, 1, 1, 1]), [0.0, 0.5, 1.0]),
    (statistics.balanced_accuracy(), np.array([0, 0, 1, 1, 1]), [0, 1]),
    (statistics.balanced_accuracy(), np.array([0, 2, 1, 1, 1]), [0, 1, 2]),
    (statistics.f1(), np.array([0, 0, 1, 1, 1]), [0, 1]),
    (statistics.f1(), np.array([0, 0, 0, 0, 1]), [0, 1]),
    (statistics.r2(), np.array([0.0, 1.0, 2.0, 5.0]), [-9.0, 0.0, 2.0, 9.0]),
    (statistics.median_absolute_error(4.0, 0.3), np.zeros(5), [0.0, 1.0, 9.0]),
    (statistics.median_absolute_error(4.0, 0.1), np.zeros(4), [0.0, 1.0, 9.0]),
]


def changes(outputs: int, choices: list[float], group: tuple[int, ...]) -> Iterator[tuple[Floats, Floats]]:
    """All pairs of outputs that differ in a group of records only."""
    for output in itertools.product(choices, repeat=outputs):
        for other in itertools.product(choices, repeat=len(group)):
            before, after = np.array(output), np.array(output)
            after[list(group)] = other
            yield before, after


@pytest.mark.parametrize(("statistic", "y", "choices"), CASES, ids=[case[0].name for case in CASES])
def test_no_record_moves_a_statistic_by_more_than_its_bound(
    statistic: statistics.Statistic, y: NDArray[np.int64], choices: list[float]
) -> None:
    counts = statistic.counts(y)
    of_class = np.unique(y, return_inverse=True)[1] if counts.size > 1 else np.zeros(y.size, dtype=np.int64)
    bounds = statistic.differences(counts)[of_class]
    for record in range(y.size):
        moved = max(
            abs(statistic.unit_value(y, before, None) - statistic.unit_value(y, after, None))
            for before, after in changes(y.size, choices, (record,))
        )
        assert moved <= bounds[record] * (1 + 1e-12)
        if statistic.name in {"roc_auc", "balanced_accuracy"}:
            assert moved == pytest.approx(bounds[record])  # attained


def sizes_and_labellings() -> Iterator[tuple[tuple[int, ...], list[NDArray[np.int64]]]]:
    """Sizes of groups, and all labellings of them with two classes that have the same numbers of records."""
    for sizes in [
        (1, 1, 1, 1, 1, 1),
        (2, 2, 2),
        (1, 2, 3),
        (4, 1, 1, 1),
        (3, 3, 1),
        (2, 1, 1, 3),
        (6, 1),
        (5,),
        (4, 3, 2),
    ]:
        n = sum(sizes)
        for positive in range(1, n):
            chosen = itertools.combinations(range(n), positive)
            yield sizes, [np.isin(np.arange(n), some).astype(np.int64) for some in chosen]


def test_spreads_are_those_of_the_worst_labelling_and_the_same_for_all() -> None:
    """Sums of squares by hand for every labelling of small groups; the largest of them is attained."""
    for sizes, labellings in sizes_and_labellings():
        groups, model = np.repeat(np.arange(len(sizes)), sizes), Groups(np.repeat(np.arange(len(sizes)), sizes))
        a, b = int(labellings[0].sum()), int((1 - labellings[0]).sum())
        of_each = [(np.bincount(groups, y), np.bincount(groups, 1 - y)) for y in labellings]
        balanced = max(float(((p / (2 * a) + q / (2 * b)) ** 2).sum()) for p, q in of_each)
        positive = max(float(((2 * p) ** 2).sum()) for p, _ in of_each)
        area = max(float(((p / a + q / b - p * q / (a * b)) ** 2).sum()) for p, q in of_each)
        proxies = {s.name: s.proxy(s.counts(labellings[0]), np.array(sizes)) for s in CLASSIFIERS}
        assert proxies["balanced_accuracy"] == pytest.approx(balanced, rel=1e-12)
        squares = max(positive, float((np.array(sizes) ** 2).sum())) / a**2
        mixed = max(sizes) > 1
        assert proxies["f1"] == pytest.approx(min(squares, (9.6 if mixed else 4.8) * max(sizes) / a), rel=1e-12)
        share = max(float((p / a + q / b).max()) for p, q in of_each)
        matchings = share / (1 - share / 2) if share < 2 else math.inf
        assert min(area, matchings, 1 / min(a, b)) <= proxies["roc_auc"] * (1 + 1e-12)
        # Filled up from the largest group: where the rarer class ends with a group the sum is attained.
        if min(a, b) in np.cumsum(sorted(sizes, reverse=True)):
            assert proxies["roc_auc"] <= area * (1 + 1e-12)
        for statistic in CLASSIFIERS:
            assert len({statistic.spread(y, model) for y in labellings}) == 1


def test_spreads_of_regressors_show_nothing_of_the_labels() -> None:
    rng = np.random.default_rng(0)
    model = Groups([0, 0, 0, 1, 2, 2])
    for statistic in (statistics.r2(), statistics.median_absolute_error(1.0)):
        assert len({statistic.spread(rng.normal(size=6) * 10.0**k, model) for k in range(-3, 4)}) == 1


def test_the_worst_labelling_of_several_classes() -> None:
    """Balanced accuracy with three classes, against all labellings of seven records."""
    statistic = statistics.balanced_accuracy()
    for counts in [(1, 2, 4), (2, 2, 3), (1, 1, 5)]:
        labels = np.repeat([0, 1, 2], counts)
        weights = 1 / (3 * np.array(counts)[labels])
        for sizes in [(3, 2, 2), (1, 1, 5), (4, 3), (1, 2, 1, 3)]:
            groups = np.repeat(np.arange(len(sizes)), sizes)
            largest = max(
                float((np.bincount(groups, weights[list(order)]) ** 2).sum())
                for order in itertools.permutations(range(7))
            )
            assert statistic.proxy(statistic.counts(labels), np.array(sizes)) == pytest.approx(largest, rel=1e-12)


@pytest.mark.parametrize("sizes", [(2, 2, 2), (1, 2, 1, 2), (3, 1, 2), (2, 2, 1, 1)])
def test_the_area_is_as_concentrated_as_its_proxy_says_however_groups_are_labelled(sizes: tuple[int, ...]) -> None:
    """Exact moment generating functions, one coin for each group that turns or keeps its scores."""
    groups, n, statistic = np.repeat(np.arange(len(sizes)), sizes), sum(sizes), statistics.roc_auc()
    rng = np.random.default_rng(4)
    for positive in range(1, n):
        for some in itertools.combinations(range(n), positive):
            y = np.isin(np.arange(n), some).astype(np.int64)
            proxy = statistic.proxy(statistic.counts(y), np.array(sizes))
            scores = (y.astype(np.float64), 1.0 - y), (y + 0.0, np.full(n, 0.5)), tuple(rng.integers(0, 3, (2, n)) / 2)
            for heads, tails in scores:
                outcomes = np.array(list(itertools.product((0, 1), repeat=len(sizes))))
                for p in (np.full(len(sizes), 0.5), rng.random(len(sizes))):
                    law = np.prod(np.where(outcomes == 1, p, 1 - p), axis=1)
                    values = np.array(
                        [statistic.unit_value(y, np.where(o[groups] == 1, heads, tails), None) for o in outcomes]
                    )
                    assert largest_log_moment(values, law, float(values @ law)) <= proxy * (1 + 1e-9)


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (2, 2, 2), (1, 2, 3, 1), (1,) * 7, (3, 3, 2, 2, 1)])
def test_weights_of_pairs_of_groups_are_a_mean_of_matchings(sizes: tuple[int, ...]) -> None:
    """The step of the proof that rests on Edmonds' polytope, by a linear program over all matchings, loops included."""
    rng, count = np.random.default_rng(5), len(sizes)
    for _ in range(20):
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


def largest_log_moment(values: Floats, weights: Floats, truth: float) -> float:
    """Largest (8 / u^2) ln E exp(u (f - truth)) over a grid of u."""
    grid = np.concatenate([-np.geomspace(0.1, 40, 40), np.geomspace(0.1, 40, 40)])
    return float(max(8 / u**2 * math.log(float(np.exp(u * (values - truth)) @ weights)) for u in grid))


def all_laws(n: int, rng: np.random.Generator) -> Iterator[tuple[list[tuple[int, ...]], Floats]]:
    for p in (*rng.random((6, n)), np.full(n, 0.5)):
        outcomes = list(itertools.product((0, 1), repeat=n))
        bits = np.array(outcomes)
        yield outcomes, np.prod(np.where(bits == 1, p, 1 - p), axis=1)


@pytest.mark.parametrize("labels", [[0, 0, 1, 1], [0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1]])
def test_the_area_is_as_concentrated_as_its_proxy_says(labels: list[int]) -> None:
    """Exact moment generating functions of independent scores in {0, 1}."""
    y = np.array(labels)
    statistic = statistics.roc_auc()
    proxy = statistic.proxy(statistic.counts(y), np.ones(y.size, dtype=np.int64))
    assert proxy == pytest.approx(1 / min(np.bincount(y)))
    for outcomes, law in all_laws(y.size, np.random.default_rng(1)):
        values = np.array([statistic.unit_value(y, np.array(o), None) for o in outcomes])
        assert largest_log_moment(values, law, float(values @ law)) <= proxy * (1 + 1e-9)


def test_the_area_of_groups_of_unequal_sizes_is_as_concentrated_as_its_proxy_says() -> None:
    y, groups = np.array([0, 0, 0, 1, 1, 1, 1, 0]), np.array([0, 0, 1, 2, 2, 3, 4, 5])
    statistic = statistics.roc_auc()
    shares = statistic.proxy(statistic.counts(y), np.bincount(groups))
    assert shares == pytest.approx(0.5 / (1 - 0.5 / 2))  # the largest group has half of a class
    for outcomes, law in all_laws(6, np.random.default_rng(2)):
        values = np.array([statistic.unit_value(y, np.array(o)[groups], None) for o in outcomes])
        assert largest_log_moment(values, law, float(values @ law)) <= shares * (1 + 1e-9)


@pytest.mark.parametrize("labels", [[0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 0], [1, 1, 1, 1], [0] * 10 + [1, 1]])
def test_f1_deviates_from_that_of_expected_counts_as_its_proxy_says(labels: list[int]) -> None:
    y = np.array(labels)
    statistic = statistics.f1(positive=1)
    proxy = statistic.proxy(statistic.counts(y), np.ones(y.size, dtype=np.int64))
    assert proxy == pytest.approx(min(max(4 * y.sum(), y.size) / y.sum() ** 2, 4.8 / y.sum()))
    for outcomes, law in all_laws(y.size, np.random.default_rng(3)):
        bits = np.array(outcomes)
        p = law @ bits
        truth = 2 * p[y == 1].sum() / (y.sum() + p.sum())
        values = np.array([statistic.unit_value(y, o, np.array([0, 1])) for o in bits])
        for t in np.linspace(0.01, 1, 40):
            for side in (1, -1):
                assert law[side * (values - truth) >= t].sum() <= math.exp(-2 * t**2 / proxy) + 1e-12


def test_f1_of_groups() -> None:
    def proxy(counts: tuple[int, int], size: int) -> float:
        return statistics.f1().proxy(np.array(counts), np.bincount(np.arange(sum(counts)) // size))

    assert proxy((980, 20), 4) == pytest.approx(9.6 * 4 / 20)
    assert proxy((80, 20), 3) == pytest.approx((33 * 9 + 1) / 400)
    assert proxy((20, 80), 3) == pytest.approx(4 * (26 * 9 + 2**2) / 80**2)  # 26 groups of three, two of another
    assert proxy((70, 10), 4) == pytest.approx(20 * 16 / 100)
    assert proxy((0, 100), 4) == pytest.approx(min(4 * 25 * 16 / 100**2, 4.8 * 4 / 100))


def test_spreads_by_hand() -> None:
    y = np.repeat([0, 1], [80, 20])
    model = Independent(100)
    assert statistics.roc_auc().spread(y, model) == pytest.approx(math.sqrt(100 / 20))
    assert statistics.balanced_accuracy().spread(y, model) == pytest.approx(math.sqrt(100 / 4 * (1 / 80 + 1 / 20)))
    assert statistics.f1().spread(y, model) == pytest.approx(math.sqrt(100 * 4.8 / 20))
    assert statistics.r2().spread(y, model) == pytest.approx(1)
    assert statistics.median_absolute_error(1.0).spread(y, model) == pytest.approx(5)
    groups = Groups(np.arange(100) // 4)
    share = 4 / 20
    assert statistics.roc_auc().spread(y, groups) == pytest.approx(math.sqrt(share / (1 - share / 2) * 100 / 4))
    assert statistics.r2().spread(y, groups) == pytest.approx(1)
    assert statistics.median_absolute_error(1.0).spread(y, groups) == pytest.approx(5)
    assert all(s().spread(y, model) > 1 for s in (statistics.roc_auc, statistics.r2))  # rounded up


def test_other_models_count_only_when_they_are_declared_given_the_labels() -> None:
    y = np.repeat([0, 1], 50)
    chain = MarkovChain([[0.6, 0.4], [0.4, 0.6]], n=100)
    assert statistics.roc_auc().spread(y, chain) == math.inf
    assert statistics.r2().spread(y, chain) == math.inf
    assert statistics.r2().spread(y, chain, given_labels=True) == pytest.approx(1)
    ratio = chain.variance_inflation(bounded_differences=True) / chain.variance_inflation()
    assert statistics.roc_auc().spread(y, chain, given_labels=True) == pytest.approx(2 * math.sqrt(ratio))
    assert statistics.median_absolute_error(1.0).spread(y, chain) == pytest.approx(5 * math.sqrt(ratio))
    window = MovingWindow(100, 2)
    assert statistics.balanced_accuracy().spread(y, window, given_labels=True) == pytest.approx(1)
    assert statistics.roc_auc().spread(y, window, given_labels=True) == math.inf


def test_half_widths_grow_by_the_radius_alone() -> None:
    certificate = certify(Independent(10_000), threshold=0.01, noise_scale=1e-4, budget=3, queries=100, grid=1 / 64)
    assert certificate.route in statistics.Statistic.routes
    one, two, three = (certificate.half_width(9, 1, "holdout", spread) for spread in (1.0, 2.0, 3.0))
    assert two - one == pytest.approx(three - two)
    words = 8 * 65
    share = next(s for s in (0.5, 0.75, 0.9) if math.isclose(_radius(s, words), two - one, rel_tol=1e-6))
    assert share
    assert certificate.half_width(9, 1, "train", math.inf) == 1.0
    with pytest.raises(InputError, match="spread"):
        certificate.half_width(9, 1, "train", math.nan)


def _radius(share: float, words: int) -> float:
    return math.sqrt(math.log(2 * words * 100 * 3 / (0.05 * share)) / 20_000)


def test_other_routes_say_nothing_about_statistics() -> None:
    certificate = certify(Groups([0, 0, 0, 0]), threshold=0.5, noise_scale=0.1, budget=1, queries=1)
    assert certificate.route != "transcript"
    assert certificate.half_width(1, 0, "train", 1.5) == math.inf


@pytest.mark.parametrize(
    ("statistic", "y", "output", "message"),
    [
        (statistics.roc_auc(), [1, 1], [0.1, 0.2], "one class"),
        (statistics.roc_auc(), [0, 1, 2], [0.1, 0.2, 0.3], "3 classes"),
        (statistics.roc_auc(), [0, 1], [0.1, math.nan], "finite"),
        (statistics.roc_auc(), [0, 1], [0.1, 0.2, 0.3], "shape"),
        (statistics.roc_auc(), [0.0, math.nan], [0.1, 0.2], "missing"),
        (statistics.balanced_accuracy(), [1, 1], [1, 1], "one class"),
        (statistics.balanced_accuracy(), [0, 1], [1], "shape"),
        (statistics.f1(positive=1), [0, 0], [1, 1], "no records of the positive class 1"),
        (statistics.f1(), [0, 0], [1, 1], "one class"),
        (statistics.r2(), [2.0, 2.0], [1.0, 1.0], "all the same"),
        (statistics.r2(), [0.1, 0.1, 0.1], [1.0, 1.0, 1.0], "all the same"),
        (statistics.r2(), [0.0, math.inf], [1.0, 1.0], "missing or infinite"),
        (statistics.r2(), ["a", "b"], [1.0, 1.0], "one number for each record"),
        (statistics.median_absolute_error(1.0), [0.0, 1.0], [1.0, math.nan], "finite"),
        (statistics.median_absolute_error(1.0), [], [], "one number for each record"),
    ],
)
def test_refusals(statistic: statistics.Statistic, y: list[float], output: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        statistic.value(y, output)


def test_labels_must_match_the_model() -> None:
    with pytest.raises(InputError, match="one label for each record"):
        statistics.roc_auc().spread([0, 1], Independent(3))


def test_names() -> None:
    for name in ("roc_auc", "balanced_accuracy", "f1"):
        assert statistics.get_statistic(name).name == name
    same = statistics.r2(2.0)
    assert statistics.get_statistic(same) is same
    for name in ("accuracy", "median_absolute_error", "neg_median_absolute_error", ""):
        with pytest.raises(InputError, match="statistic"):
            statistics.get_statistic(name)
    with pytest.raises(InputTypeError):
        statistics.get_statistic(3)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="decision_function or predict_proba"):
        statistics.roc_auc().of(LinearRegression(), np.zeros((2, 1)), np.array([0, 1]))
    for bad in (0.0, -1.0, math.nan):
        with pytest.raises(InputError, match="clip"):
            statistics.r2(bad)
    with pytest.raises(InputError, match="window"):
        statistics.median_absolute_error(1.0, window=2.0)


def test_numbers_of_records_of_each_class_have_to_be_complete() -> None:
    """Half-widths show them, so a number that is left out is shown without being noticed."""
    own = replace(
        statistics.balanced_accuracy(),
        counts=lambda y: np.array([np.count_nonzero(y == 1)]),
        differences=lambda counts: 1.0 / counts,
        proxy=lambda counts, sizes: 1.0 / int(counts[0]),
    )
    with pytest.raises(InputError, match="counts: numbers with the sum 3; expected: 4, the number of all records"):
        own.spread([0, 1, 1, 1], Independent(4))
    assert statistics.balanced_accuracy().spread([0, 1, 1, 1], Independent(4)) < np.inf
