"""Keys of queries: equal for equal content in every process, different for different code."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, VotingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from tests.sizes import corners
from thresholdout import Claims
from thresholdout.guard.content_keys import content_key
from thresholdout.guard.kfold import KFoldGuard
from thresholdout.model_selection import GuardedSearchCV
from thresholdout.scoring.metrics import accuracy, squared_error

X, Y = load_breast_cancer(return_X_y=True)
X = X[:, :6] / X[:, :6].max(axis=0)

MODELS: dict[str, Any] = {
    "logistic": LogisticRegression(),
    "svc": SVC(),
    "boosting": HistGradientBoostingClassifier(max_iter=3, random_state=0),
    "older-boosting": GradientBoostingClassifier(n_estimators=3, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), FunctionTransformer(abs), LogisticRegression()),
    "voting": VotingClassifier([("a", LogisticRegression()), ("b", DecisionTreeClassifier(random_state=0))]),
}


def fitted_key(model: Any) -> str | None:
    return content_key(clone(model).fit(X, Y), 0.5)


def fitted(model: Any) -> Any:
    return clone(model).fit(X, Y)


@pytest.mark.slow
@pytest.mark.parametrize("name", corners(MODELS, list(MODELS).index("logistic")))
def test_a_model_has_one_key_wherever_it_was_fitted(name: str) -> None:
    here = fitted_key(MODELS[name])
    brought, other = Parallel(n_jobs=2)([delayed(fitted)(MODELS[name]), delayed(fitted_key)(MODELS[name])])
    assert here is not None
    assert content_key(brought, 0.5) == here == other
    assert content_key(clone(MODELS[name]).fit(X[1:], Y[1:]), 0.5) != here


def test_texts_are_known_again() -> None:
    texts = ["an apple", "a pear and an apple", "a plum"]
    keys = {content_key(TfidfVectorizer(stop_words=["an", "a"]).fit(texts)) for _ in range(2)}
    assert len(keys) == 1
    assert content_key(TfidfVectorizer(stop_words=["an"]).fit(texts)) not in keys


def test_metrics_count_by_what_they_do() -> None:
    assert content_key(accuracy()) == content_key(accuracy())
    assert content_key(squared_error(1.0)) != content_key(squared_error(2.0))


def test_what_cannot_be_told_has_no_key() -> None:
    assert content_key(threading.Lock()) is None
    lock = threading.Lock()
    assert content_key(lambda: lock) is None


def test_what_is_shared_inside_makes_no_difference_and_circles_end() -> None:
    one = [1.5]
    assert content_key([one, one]) == content_key([[1.5], [1.5]]) != content_key([[1.5], [2.5]])
    circle: list[Any] = [1]
    circle.append(circle)
    assert content_key(circle) is None


SCRIPT = """
from thresholdout.guard.content_keys import content_key

FACTOR = {factor}

def helper(x):
    return {{"a", "b"}} and x * FACTOR

class Model:
    def fit(self, X, y):
        return super().__init__()
    @property
    def size(self):
        return len({text!r})
    def predict(self, X):
        return [helper(x) for x in X if x in {{1, 2, "three"}}]

print(content_key(Model()), content_key(lambda x: helper(x) + {added}), content_key(Model))
"""


def keys_of_a_script(folder: Path, **changes: Any) -> list[str]:
    script = folder / "script.py"
    script.write_text(SCRIPT.format(**{"factor": 2, "text": "abc", "added": 1, **changes}))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.slow
def test_code_of_a_script_counts_and_its_process_does_not(tmp_path: Path) -> None:
    first = keys_of_a_script(tmp_path)
    assert len(set(first)) == 3
    assert "None" not in first
    assert keys_of_a_script(tmp_path) == first
    for changes, changed in (
        ({"factor": 3}, [True, True, True]),
        ({"text": "abd"}, [True, False, True]),
        ({"added": 2}, [False, True, False]),
    ):
        other = keys_of_a_script(tmp_path, **changes)
        assert [a != b for a, b in zip(first, other, strict=True)] == changed


def test_a_function_that_was_defined_again_is_another_query() -> None:
    """As in a notebook, where a cell is edited and run again under the same names."""
    guard = KFoldGuard((X, Y), cv=2, queries=20, mechanism=Claims(holdout_answers=10))
    asked = []
    for body in ("X", "X", "X * 0"):
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(f"def features(X):\n    return {body}\n", names)
        model = make_pipeline(FunctionTransformer(names["features"]), DecisionTreeClassifier(max_depth=1))
        from sklearn.model_selection import GridSearchCV

        search = GridSearchCV(model, {"decisiontreeclassifier__random_state": [0]})
        asked.append(GuardedSearchCV(search, guard).fit(X, Y).n_queries_)
    assert asked == [1, 0, 1]
