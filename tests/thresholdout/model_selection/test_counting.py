from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.stats import randint
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFECV
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    ParameterSampler,
    PredefinedSplit,
    RandomizedSearchCV,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from tests.sizes import corners
from tests.thresholdout.model_selection.digits import DEPTHS, TRAIN, X, Y, make, tree
from thresholdout import Claims, Thresholdout
from thresholdout.errors import InputError, InputTypeError
from thresholdout.model_selection import GuardedSearchCV, count_queries

GRID = {"max_depth": [1, 2, 3], "min_samples_leaf": [1, 2]}


def guarded(guard: Any, kind: Any = GridSearchCV, estimator: Any = None, grid: Any = None, **settings: Any) -> Any:
    settings = {"scoring": guard.scorer(cv="training"), "cv": guard.split(), **settings}
    return kind(tree() if estimator is None else estimator, DEPTHS if grid is None else grid, **settings)


def inner(guard: Any, **settings: Any) -> Any:
    return guarded(guard, **settings)


SEARCHES: dict[str, Any] = {
    "grid": lambda g: guarded(g, grid=GRID),
    "random": lambda g: guarded(g, RandomizedSearchCV, grid={"max_depth": randint(1, 9)}, n_iter=4),
    "random-small-grid": lambda g: guarded(g, RandomizedSearchCV, grid=DEPTHS, n_iter=10),
    "halving": lambda g: guarded(g, HalvingGridSearchCV, grid=GRID, min_resources=100, random_state=0),
    "halving-random": lambda g: guarded(
        g, HalvingRandomSearchCV, grid={"max_depth": randint(1, 9)}, random_state=0, factor=2, min_resources=200
    ),
    "halving-resource": lambda g: guarded(
        g,
        HalvingGridSearchCV,
        RandomForestClassifier(random_state=0),
        {"max_depth": [1, 2, 3]},
        resource="n_estimators",
        max_resources=20,
        min_resources=5,
        factor=2,
    ),
    "several": lambda g: guarded(g, scoring=g.scorer(["accuracy", "brier_score"], cv="training"), refit="accuracy"),
    "mapping": lambda g: guarded(
        g, scoring={"a": g.scorer(cv="training"), "b": "accuracy", "c": g.scorer(cv="training")}, refit=False
    ),
    "training-folds": lambda g: guarded(g, cv=3),
    "other-scoring": lambda g: guarded(g, scoring="accuracy"),
    "inside": lambda g: GridSearchCV(inner(g), {"refit": [True]}, cv=KFold(2)),
    "inside-no-refit": lambda g: GridSearchCV(inner(g), {"refit": [True]}, cv=KFold(2), refit=False),
    "outside": lambda g: guarded(g, estimator=GridSearchCV(tree(), DEPTHS, cv=2), grid={"refit": [True]}),
    "both": lambda g: guarded(g, estimator=inner(g), grid={"refit": [True]}),
    "scored-by-the-inner-search": lambda g: guarded(g, estimator=inner(g), grid={"refit": [True]}, scoring=None),
    "pipeline": lambda g: Pipeline([("search", inner(g))]),
    "searches-as-candidates": lambda g: GridSearchCV(
        Pipeline([("model", tree())]),
        {"model": [inner(g), inner(g, grid={"max_depth": [2]}), tree()]},
        cv=KFold(2),
        scoring="accuracy",
        refit=False,
    ),
    "nothing": lambda g: tree(),
    "guarded-search": lambda g: GuardedSearchCV(GridSearchCV(tree(), DEPTHS, cv=2), g, candidates=2),
    "grids-differ": lambda g: GridSearchCV(
        inner(g), {"param_grid": [{"max_depth": [1]}, {"max_depth": [1, 2, 3, 4]}]}, cv=KFold(2), refit=False
    ),
    "samples-differ": lambda g: GridSearchCV(
        guarded(g, RandomizedSearchCV, grid={"max_depth": range(1, 30)}, n_iter=2),
        {"n_iter": [1, 5]},
        cv=KFold(2),
        refit=False,
    ),
    "scorers-differ": lambda g: GridSearchCV(
        inner(g, refit=False),
        {"scoring": ["accuracy", g.scorer(["accuracy", "brier_score"], cv="training")]},
        cv=KFold(2),
        refit=False,
        scoring=lambda *records: 0.0,
    ),
    "splitters-differ": lambda g: GridSearchCV(inner(g), {"cv": [2, g.split()]}, cv=KFold(2), refit=False),
    "only-a-candidate-asks": lambda g: GridSearchCV(
        GridSearchCV(tree(), DEPTHS, cv=2),
        {"scoring": [g.scorer(cv="training")], "cv": [g.split()]},
        cv=KFold(2),
        refit=False,
    ),
    "halving-outside": lambda g: HalvingGridSearchCV(
        inner(g), {"estimator__min_samples_leaf": [1, 2, 3, 4]}, cv=KFold(2), min_resources=300, refit=False
    ),
    "train-scores": lambda g: guarded(g, return_train_score=True),
    "guarded-search-over-one-that-asks": lambda g: GuardedSearchCV(
        GridSearchCV(inner(g), {"refit": [True]}, scoring="accuracy", cv=KFold(2)), g
    ),
    "candidates-of-a-guarded-search": lambda g: GridSearchCV(
        GuardedSearchCV(GridSearchCV(tree(), DEPTHS, cv=2), g, candidates=1),
        [{"candidates": [None]}, {"candidates": [2], "search__estimator__min_samples_leaf": [5]}],
        cv=KFold(2),
        scoring="accuracy",
        refit=False,
    ),
}


MEETS_A_MODEL_TWICE = {"random", "mapping", "both", "scored-by-the-inner-search", "grids-differ", "samples-differ"}


@pytest.mark.slow
@pytest.mark.parametrize("name", corners(SEARCHES, *range(0, len(SEARCHES), 10)))
@pytest.mark.filterwarnings("ignore:The total space of parameters")
@pytest.mark.filterwarnings("ignore:The scorer got training records")
@pytest.mark.filterwarnings("ignore:a query cannot be identified by its content. it holds a guard")
def test_as_many_as_fitting_asks(name: str) -> None:
    guard = make(queries=200, mechanism=Claims(holdout_answers=100))
    search = SEARCHES[name](guard)
    counted = count_queries(guard, search)
    assert guard.history.empty
    assert not hasattr(search, "best_index_")
    search.fit(*TRAIN)
    if name in MEETS_A_MODEL_TWICE:  # which is one query
        assert counted >= len(guard.history) > 0
    else:
        assert counted == len(guard.history)


@pytest.mark.slow
def test_expected_numbers() -> None:
    guard = make()
    numbers = {name: count_queries(guard, build(guard)) for name, build in SEARCHES.items()}
    assert numbers == {
        "grid": 6,
        "random": 4,
        "random-small-grid": 3,
        "halving": 6 + 2,
        "halving-random": 4 + 2 + 1,
        "halving-resource": 3 + 2,
        "several": 6,
        "mapping": 6,
        "training-folds": 0,
        "other-scoring": 0,
        "inside": 3 * 3,
        "inside-no-refit": 2 * 3,
        "outside": 1,
        "both": 3 + 1 + 3,
        "scored-by-the-inner-search": 3 + 1 + 3,
        "pipeline": 3,
        "searches-as-candidates": 2 * (3 + 1 + 0),
        "nothing": 0,
        "guarded-search": 2,
        "grids-differ": 2 * (1 + 4),
        "samples-differ": 2 * (1 + 5),
        "scorers-differ": 2 * (0 + 2 * 3),
        "splitters-differ": 2 * (0 + 3),
        "only-a-candidate-asks": 2 * 3,
        "halving-outside": 2 * 3 * (4 + 2),
        "train-scores": 3,
        "guarded-search-over-one-that-asks": 3 * 2 + 3 + 1,
        "candidates-of-a-guarded-search": 2 * (3 + 2),
    }


def test_records_that_are_given() -> None:
    guard = make()
    predefined = guarded(guard, cv=PredefinedSplit(np.r_[np.full(900, -1), np.zeros(897)]))
    assert count_queries(guard, predefined, X, Y) == 3
    with pytest.raises(InputError, match="not all in the guard's training part"):
        count_queries(guard, guarded(guard), X, Y)
    assert count_queries(guard, guarded(guard), X[:50], Y[:50]) == 3


def test_queries_to_another_guard_do_not_count() -> None:
    guard, other = make(), make()
    search = GridSearchCV(
        tree(), DEPTHS, scoring={"a": guard.scorer(cv="training"), "b": other.scorer(cv="training")}, cv=guard.split()
    )
    assert (count_queries(guard, search), count_queries(other, search)) == (3, 3)
    mixed = guarded(other, estimator=inner(guard), grid={"refit": [True]})
    assert (count_queries(guard, mixed), count_queries(other, mixed)) == (6, 1)
    assert count_queries(other, GuardedSearchCV(GridSearchCV(tree(), DEPTHS), guard)) == 0


def test_what_cannot_be_counted_says_so() -> None:
    guard = make()
    with pytest.raises(InputError, match="BaggingClassifier with a guard inside"):
        count_queries(guard, BaggingClassifier(inner(guard)))
    with pytest.raises(InputTypeError, match=r"search must be .*; got a str"):
        count_queries(guard, "search")


def test_a_search_after_a_scaler_would_be_refused_and_is_counted_as_a_part() -> None:
    guard = make()
    search = Pipeline([("scale", StandardScaler()), ("search", inner(guard))])
    assert count_queries(guard, search) == 3
    with pytest.raises(InputError, match="not all in the guard's training part"):
        search.fit(*TRAIN)


def test_sampled_candidates_are_those_of_the_seed() -> None:
    """Which matters when candidates are searches: here the seed decides how many of them are guarded."""
    guard = make()
    choices = {"model": [inner(guard), tree()]}
    for seed in range(4):
        search = RandomizedSearchCV(
            Pipeline([("model", tree())]), {**choices, "verbose": randint(0, 1)}, n_iter=3, random_state=seed,
            cv=KFold(2), scoring="accuracy", refit=False,
        )  # fmt: skip
        drawn = list(ParameterSampler(search.param_distributions, 3, random_state=seed))
        expected = 2 * 3 * sum(candidate["model"] is choices["model"][0] for candidate in drawn)
        assert count_queries(guard, search) == expected


class Twice(GridSearchCV):  # type: ignore[misc]
    """Searches in its own way."""

    def _run_search(self, evaluate_candidates: Any) -> None:
        evaluate_candidates([{"max_depth": 1}])
        evaluate_candidates([{"max_depth": 1}])


def around(scorer: Any) -> Any:
    return lambda estimator, X, y: scorer(estimator, X, y)


def test_what_asks_in_its_own_way_is_refused() -> None:
    guard = make()
    scorer = guard.scorer(cv="training")
    refused: list[tuple[Any, str]] = [
        (guarded(guard, Twice), "a Twice with a guard inside"),
        (guarded(guard, scoring=around(scorer)), "'<lambda>', a function with a guard inside"),
        (guarded(guard, scoring=partial(around(scorer), y=None)), "'partial', a function with a guard inside"),
        (guarded(guard, scoring={"a": around(guard)}, refit=False), "a function with a guard inside"),
        (guarded(guard, cv=iter([(np.arange(5), np.arange(5))])), "an iterator"),
        (RFECV(tree(), scoring=scorer, cv=guard.split()), "a RFECV with a guard inside"),
        (
            RandomizedSearchCV(guarded(guard, RandomizedSearchCV, n_iter=2), {"n_iter": randint(1, 9)}, n_iter=2),
            "drawn without a seed",
        ),
    ]
    for search, message in refused:
        with pytest.raises(InputError, match=message):
            count_queries(guard, search)
    assert count_queries(guard, guarded(guard, scoring=lambda estimator, X, y: 0.0)) == 0
    assert count_queries(guard, guarded(guard, scoring=around(make().scorer(cv="training")))) == 0


def test_a_guard_among_the_globals_of_a_function_is_found() -> None:
    guard = make()
    names: dict[str, Any] = {"__name__": "__main__", "scorer": guard.scorer(cv="training")}
    exec("def score(estimator, X, y):\n    return scorer(estimator, X, y)", names)
    with pytest.raises(InputError, match="'score', a function with a guard inside"):
        count_queries(guard, guarded(guard, scoring=names["score"]))


@pytest.mark.slow
def test_candidates_that_chance_chooses_count_as_those_that_ask_most() -> None:
    guard = make()
    search = RandomizedSearchCV(
        inner(guard), {"param_grid": [{"max_depth": [1]}, {"max_depth": [1, 2, 3]}, {"max_depth": [1, 2]}]}, n_iter=2,
        cv=KFold(2), scoring="accuracy", refit=False,
    )  # fmt: skip
    assert count_queries(guard, search) == 2 * (3 + 2)
    search.fit(*TRAIN)
    assert len(guard.history) <= 10


def test_training_records_that_are_all_equal_cannot_be_told_from_the_placeholder() -> None:
    """So their plain scores are queries, too, and are counted."""
    rows, labels = np.ones((100, 2)), np.zeros(100)
    guard = Thresholdout((rows + 1, labels), train=(rows, labels), queries=50, mechanism=Claims(holdout_answers=5))
    search = guarded(guard, grid={"max_depth": [1, 2]}, return_train_score=True)
    assert count_queries(guard, search) == 4
    search.fit(rows, labels)
    assert len(guard.history) == 2  # one for each model, whose plain score is the same query
    other = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(cv="training"), cv=KFold(2))
    assert count_queries(guard, other) == 6
    other.fit(rows, labels)
    assert 2 < len(guard.history) <= 2 + 6
