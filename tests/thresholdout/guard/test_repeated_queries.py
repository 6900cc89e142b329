"""A query that is asked again is known by its content: it has one answer, and is charged once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from tests.cases import for_each
from thresholdout import Claims, Thresholdout
from thresholdout.errors import BudgetExhausted, InputError
from thresholdout.guard.sharing.shared_objects import share
from thresholdout.scoring.metrics import Metric

RNG = np.random.default_rng(3)
N = 300
X = RNG.normal(size=(2 * N, 3))
Y = (X[:, 0] + RNG.normal(size=2 * N) > 0).astype(int)
TRAIN, HOLDOUT = (X[N:], Y[N:]), (X[:N], Y[:N])


def make(**settings: Any) -> Thresholdout:
    return Thresholdout(HOLDOUT, train=TRAIN, **settings)


def tree(depth: int, rows: int = N) -> DecisionTreeClassifier:
    return DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X[N : N + rows], Y[N : N + rows])


MODELS = {
    "neighbours": KNeighborsClassifier(3),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "tree": DecisionTreeClassifier(max_depth=2, random_state=0),
}


@pytest.mark.slow
@for_each("name", MODELS)
def test_a_model_is_known_again_fitted_again_or_loaded(name: str, tmp_path: Path) -> None:
    guard, fitted = make(ledger=tmp_path / "guard.db"), clone(MODELS[name]).fit(*TRAIN)
    first = guard.score(fitted)
    joblib.dump(fitted, tmp_path / "model")
    again = make(ledger=tmp_path / "guard.db")
    for model in (fitted, clone(MODELS[name]).fit(*TRAIN), joblib.load(tmp_path / "model")):
        for one in (guard, again, share(again)):
            answer = one.score(model)
            assert (answer.value, answer.interval, answer.repeated) == (first.value, first.interval, True)
    assert len(guard.history) == 1
    assert not guard.score(clone(MODELS[name]).fit(X[N + 1 :], Y[N + 1 :])).repeated


def test_everything_about_a_query_makes_another_one() -> None:
    guard, model = make(), tree(2)
    weights = np.ones(N), np.ones(N)
    asked: list[Callable[[], Any]] = [
        lambda: guard.score(model, cv="training"),
        lambda: guard.score(model, cv=3),
        lambda: guard.score(model, "zero_one_loss", cv="training"),
        lambda: guard.score(model, "balanced_accuracy", cv="training"),
        lambda: guard.score(model, cv="training", sample_weight=weights),
        lambda: guard.score(model, train_values=0.7),
        lambda: guard.score(model, train_values=0.71),
        lambda: guard.score(model, cv="training", key="mine"),
        lambda: guard.compare(model, tree(1), cv="training").answer,
        lambda: guard.compare(tree(1), model, cv="training").answer,
        lambda: guard.ask(lambda X, y: X[:, 0] > 0),
        lambda: guard.ask(lambda X, y: X[:, 0] > 0, bounds=(-1.0, 1.0)),
        lambda: guard.ask(lambda X, y: X[:, 0] > 0, binary=False),
        lambda: guard.ask(lambda X, y: X[:, 0] >= 0),
    ]
    first = [query() for query in asked]
    assert [answer.repeated for answer in first] == [False] * len(asked)
    again = [query() for query in asked]
    assert [answer.repeated for answer in again] == [True] * len(asked)
    assert [answer.query for answer in again] == [answer.query for answer in first]
    assert len(guard.history) == len(asked)


def test_values_are_a_new_query_each_time_and_nothing_is_said(recwarn: pytest.WarningsRecorder) -> None:
    guard = make()
    recwarn.clear()  # of the width
    for _ in range(2):
        assert not guard.ask(0.5, np.ones(N) / 2).repeated
        assert not guard.ask_all([(0.5, np.ones(N) / 2)])[0].repeated
    assert not recwarn.list


def test_what_cannot_be_told_is_a_new_query_and_is_said_once() -> None:
    guard = make()
    numbers = iter(range(100))

    def query(X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.bool_]:
        return X[:, 0] > 0 * next(numbers)

    with pytest.warns(UserWarning, match=r"cannot be identified by its content: .* Pass key= to identify it"):
        assert not guard.ask(query).repeated
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not guard.ask(query).repeated


class Outside:
    """What a prediction reads."""

    value = 0


def test_what_code_reads_counts_as_it_is_now() -> None:
    guard, level = make(), [0.0]

    def closed(X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.bool_]:
        return X[:, 0] > level[0]

    def other(X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.bool_]:
        return X[:, 0] > 100 * Outside.value

    assert [guard.ask(closed).repeated, guard.ask(closed).repeated] == [False, True]
    level[0] = -100.0  # which no record shows
    assert [guard.ask(closed).repeated, guard.ask(closed).repeated] == [False, True]
    assert [guard.ask(other).repeated, guard.ask(other).repeated] == [False, True]
    Outside.value = -1
    try:
        assert not guard.ask(other).repeated
    finally:
        Outside.value = 0


def test_predictions_that_are_others_each_time_are_other_queries() -> None:
    guard, model = make(), DummyClassifier(strategy="uniform").fit(*TRAIN)
    assert not guard.score(model, cv="training").repeated
    assert not guard.score(model, cv="training").repeated


def test_answers_are_given_again_when_nothing_is_left() -> None:
    guard = make(queries=2)
    one, other = guard.score(tree(1)), guard.score(tree(2))
    with pytest.raises(BudgetExhausted):
        guard.score(tree(3))
    assert (guard.score(tree(1)).value, guard.score(tree(2)).value) == (one.value, other.value)
    assert [answer.value for answer in guard.score_all([tree(2), tree(1)])] == [other.value, one.value]


def test_members_of_a_list_keep_their_answers() -> None:
    guard = make()
    alone = guard.score(tree(1))
    first = guard.score_all([tree(1), tree(2), tree(2)])
    assert [answer.repeated for answer in first] == [True, False, True]
    assert (first[0].value, first[2].value) == (alone.value, first[1].value)
    assert len(guard.history) == 2
    second = guard.score_all({"a": tree(2), "b": tree(3)})
    assert [answer.repeated for answer in second] == [True, False]
    assert len(guard.history) == 3
    assert guard.score(tree(3)).repeated


def test_the_best_of_a_list_is_about_the_whole_list() -> None:
    guard = make()
    models = {"a": tree(1), "b": tree(2)}
    first = guard.score_all(models, report="best")
    assert guard.score_all(models, report="best")[0].repeated
    assert guard.score_all(models, report="best")[0].candidate == first[0].candidate
    assert not guard.score_all({"a": tree(1), "c": tree(2)}, report="best")[0].repeated
    assert not guard.score_all({**models, "c": tree(3)}, report="best")[0].repeated
    assert not guard.score(tree(1)).repeated


def test_lists_of_comparisons() -> None:
    guard, base = make(), tree(1)
    alone = guard.compare(tree(2), base)
    found = guard.compare_all({"two": tree(2), "three": tree(3)}, base)
    assert [one.answer.repeated for one in found] == [True, False]
    assert found[0].interval == alone.interval
    assert [one.answer.repeated for one in guard.compare_all([tree(3), tree(2)], base)] == [True, True]
    assert len(guard.history) == 2


def test_the_final_check_is_a_query_of_its_own() -> None:
    guard = make(final_check=True)
    earlier = guard.score(tree(2))
    last = guard.final_check(tree(2))
    assert (last.repeated, last.query) == (False, earlier.query + 1)
    assert guard.final_check(tree(2)).repeated
    with pytest.raises(BudgetExhausted):
        guard.final_check(tree(1))


def test_a_search_that_runs_again_is_free() -> None:
    guard = make()
    search = GridSearchCV(tree(1), {"max_depth": [1, 2, 3]}, scoring=guard.scorer(), cv=guard.split(), refit=False)
    first = search.fit(*TRAIN).cv_results_["mean_test_score"]
    assert clone(search).fit(*TRAIN).cv_results_["mean_test_score"].tolist() == first.tolist()
    assert len(guard.history) == 3
    assert guard.score(tree(3)).repeated


def test_a_climb_that_runs_again_is_free() -> None:
    guard = make()

    def climb() -> list[tuple[str, float]]:
        gate = guard.gate(DummyClassifier().fit(*TRAIN))
        made = [gate.propose(tree(depth)) for depth in (1, 1, 2, 1)]
        return [(one.outcome, one.gain) for one in made]

    first, told = climb(), guard.status.error_budget_left
    assert first[0] == first[1]
    entries = len(guard.history)
    assert climb() == first
    assert (len(guard.history), guard.status.error_budget_left) == (entries, told)


def test_a_last_look_at_the_same_models_is_taken_once() -> None:
    guard = make()
    gate = guard.gate(DummyClassifier(strategy="constant", constant=1).fit(*TRAIN), certify="milestones")
    gate.propose(tree(1))
    first = gate.last_evaluation()
    told = guard.status.error_budget_left
    second = gate.last_evaluation()
    assert guard.status.error_budget_left == told
    assert second is None or (first is not None and second.repeated)


def test_keys_of_ones_own_cannot_be_those_that_are_made() -> None:
    guard = make()
    guard.score(tree(1))
    (made,) = guard.history["key"]
    assert made.startswith("content:")
    for ask in (
        lambda: guard.score(tree(2), key=made),
        lambda: guard.ask(0.5, np.ones(N), key="content:"),
        lambda: guard.score_all([tree(2)], keys=[made]),
        lambda: guard.gate(tree(1)).propose(tree(2), key=made),
    ):
        with pytest.raises(InputError, match="a text that begins with 'content:'"):
            ask()
    assert len(guard.history) == 1


@pytest.mark.slow
def test_a_key_says_nothing_of_what_it_is_made_from(tmp_path: Path) -> None:
    """Two guards of the same records make other keys from the same query: nobody can try contents."""
    keys = []
    for name in ("one", "other"):
        guard = make(ledger=tmp_path / f"{name}.db")
        guard.score(tree(1))
        keys += list(guard.history["key"])
    assert keys[0] != keys[1]


class Fails:
    """A model that fails on the holdout."""

    classes_ = np.array([0, 1])

    def __init__(self, first: float) -> None:
        self.first = first

    def fit(self, X: Any, y: Any) -> Fails:
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[np.int64]:
        if X[0, 0] == self.first:
            raise ValueError
        return np.ones(len(X), dtype=int)


def test_a_query_that_failed_is_charged_once_and_says_how_to_go_on() -> None:
    guard, model = make(), Fails(float(X[0, 0]))
    with pytest.raises(InputError, match="failed on the holdout"):
        guard.score(model, cv="training")
    with pytest.raises(InputError, match=r"works on both parts\. A key of your own asks it"):
        guard.score(model, cv="training")
    assert len(guard.history) == 1
    with pytest.raises(InputError, match="failed on the holdout"):
        guard.score(model, cv="training", key="once more")
    assert list(guard.history["source"]) == ["failed"] * 2


def test_a_training_value_that_differs_from_fit_to_fit_is_no_other_query() -> None:
    model = DecisionTreeClassifier(max_features=1, splitter="random").fit(*TRAIN)
    guard = make()
    first = guard.score(model)
    assert guard.score(model).value == first.value
    assert len(guard.history) == 1


THRESHOLDS = st.sampled_from([-1.0, -0.0, 0.0, 0.5])


def above(threshold: Any, column: int) -> Callable[[NDArray[Any], NDArray[Any]], NDArray[np.bool_]]:
    return lambda X, y: X[:, column] > threshold


def below(threshold: Any, column: int) -> Callable[[NDArray[Any], NDArray[Any]], NDArray[np.bool_]]:
    return lambda X, y: X[:, column] <= threshold


class Session(RuleBasedStateMachine):
    """Queries in any order, beside a dictionary by what they are: the same query has one answer, others another.

    What a query is, is written out here as a tuple; the guard sees objects that are made anew each time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.guard = make(mechanism=Claims(noise=0.0))
        self.told: dict[tuple[Any, ...], tuple[int, float]] = {}

    def check(self, query: tuple[Any, ...], answer: Any) -> None:
        assert answer.repeated == (query in self.told)
        assert self.told.setdefault(query, (answer.query, answer.value)) == (answer.query, answer.value)

    @rule(
        kind=st.sampled_from([above, below]),
        threshold=THRESHOLDS,
        column=st.integers(0, 1),
        number=st.booleans(),
        upper=st.sampled_from([1.0, 2.0]),
    )
    def ask(self, kind: Any, threshold: float, column: int, number: bool, upper: float) -> None:
        value = np.float64(threshold) if number else threshold
        answer = self.guard.ask(kind(value, column), bounds=(0.0, upper))
        self.check(("ask", kind.__name__, repr(threshold), column, number, upper), answer)

    @rule(
        depth=st.integers(1, 2),
        rows=st.sampled_from([N, N - 50]),
        metric=st.sampled_from(["accuracy", "brier_score"]),
        cv=st.sampled_from(["training", 2]),
    )
    def score(self, depth: int, rows: int, metric: str, cv: Any) -> None:
        self.check(("score", depth, rows, metric, cv), self.guard.score(tree(depth, rows), metric, cv=cv))

    @rule(depths=st.lists(st.integers(1, 3), min_size=1, max_size=3, unique=True))
    def list(self, depths: list[int]) -> None:
        answers = self.guard.score_all([tree(depth) for depth in depths], cv="training")
        for depth, answer in zip(depths, answers, strict=True):
            self.check(("score", depth, N, "accuracy", "training"), answer)

    @rule(b=st.integers(1, 2), a=st.integers(1, 2))
    def compare(self, b: int, a: int) -> None:
        self.check(("compare", b, a), self.guard.compare(tree(b), tree(a), cv="training").answer)

    @rule(scale=st.sampled_from([1.0, 2.0]))
    def own_metric(self, scale: float) -> None:
        def values(y: Any, output: Any, classes: Any) -> Any:
            return (y == output) / scale

        metric = Metric("own", "predict", values, (0.0, 1.0), True)
        self.check(("own", scale), self.guard.score(tree(1), metric, cv="training"))

    @invariant()
    def one_entry_for_each(self) -> None:
        assert len(self.guard.history) == len(self.told)


class LongSession(Session):
    """The same, more often."""


Session.TestCase.settings = settings(max_examples=2, stateful_step_count=10, deadline=None)
TestSession = Session.TestCase
LongSession.TestCase.settings = settings(max_examples=20, stateful_step_count=15, deadline=None)
TestLongSession = pytest.mark.slow(LongSession.TestCase)
