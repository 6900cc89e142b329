"""
A grid search whose scores come from a guard
============================================

The guard as the scorer of a plain search, and a search that asks the guard at the end.

First the guard is the scorer of a plain ``GridSearchCV``: every candidate is a query, and its training value is
cross-validated. Then the same with the accuracy on the records that the tree was fitted to. The holdout contradicts it
for deep trees, and one answer from the holdout does not last: the search ends with the answers that it has. Finally
``GuardedSearchCV`` searches by cross-validation, and then queries all candidates as one list.

A guard that guesses and checks draws no noise, so everything comes out the same in every run.

Run with ``python examples/grid_search.py``.
"""

from __future__ import annotations

import textwrap
import warnings

from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.tree import DecisionTreeClassifier

from thresholdout import Claims, Thresholdout
from thresholdout.errors import GuardExhaustedWarning
from thresholdout.model_selection import GuardedSearchCV, count_queries

GRID = {"max_depth": [2, 3, 12, None]}


def main() -> None:
    """Search twice, and print the queries, their costs, and the intervals of the answers."""
    X, y = load_digits(return_X_y=True)
    X_train, X_holdout, y_train, y_holdout = train_test_split(X, y, test_size=0.5, random_state=3)
    tree = DecisionTreeClassifier(random_state=0)

    print(f"1. The guard as the scorer of a search, {len(X_holdout)} records held out")
    guard = new_guard((X_holdout, y_holdout), (X_train, y_train))
    search = GridSearchCV(tree, GRID, scoring=guard.scorer("accuracy"), cv=guard.split())
    print(f"it will ask {count_queries(guard, search)} queries")
    report(guard, search.fit(X_train, y_train).best_params_)

    print("\n2. The same with scores on the records that a tree was fitted to")
    guard = new_guard((X_holdout, y_holdout), (X_train, y_train))
    search = GridSearchCV(tree, GRID, scoring=guard.scorer("accuracy", cv="training"), cv=guard.split())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        search.fit(X_train, y_train)
    spent = [str(warning.message) for warning in said if issubclass(warning.category, GuardExhaustedWarning)]
    print(textwrap.shorten(spent[0], 110))
    report(guard, search.best_params_)

    print("\n3. A search by cross-validation that asks the guard at the end")
    guard = new_guard((X_holdout, y_holdout), (X_train, y_train))
    guarded = GuardedSearchCV(GridSearchCV(tree, GRID, cv=5, n_jobs=2), guard)
    print(f"it will ask {count_queries(guard, guarded)} queries")
    guarded.fit(X_train, y_train)
    report(guard, guarded.best_params_)
    print(
        f"accuracy of the best: {guarded.best_score_:.3f} ± {guarded.best_half_width_:.3f}; met: {guarded.exhausted_}"
    )
    again = GuardedSearchCV(GridSearchCV(tree, GRID, cv=5), guard).fit(X_train, y_train)
    print(f"the same search again: {again.n_queries_} new queries")


def new_guard(holdout: tuple[object, object], train: tuple[object, object]) -> Thresholdout:
    """Return a guard that answers 10 queries, at most one of them from the holdout."""
    return Thresholdout(holdout, train=train, queries=10, mechanism=Claims(holdout_answers=1, noise=0.0))


def report(guard: Thresholdout, best: dict[str, object]) -> None:
    """Print a guard's history in short."""
    sources = guard.history["source"].value_counts()
    free, paid = sources.get("train", 0), sources.get("holdout", 0)
    print(f"asked {len(guard.history)}: {free} answered by the training value, {paid} from the holdout")
    print(f"limit met: {guard.status.exhausted}; best: {best}")
    print(guard.history[["train", "half_width", "source"]].round(3).to_string(index=False))


if __name__ == "__main__":
    main()
