"""Whoever can find out which rows are in the holdout, for nothing, breaks every guard with one charged query.

Records are drawn from a list of codes that everybody knows. The attacker probes every code, takes those that look
different from a row that nobody has, and asks one query: how frequent are they? At confidence 0.95 a session is
broken with probability at most 0.05, and eight broken ones of eight reject a guard, a valid one with probability at
most 1e-9. The same attacker with a membership oracle must be rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from tests.cases import for_each
from tests.statistical.rejection import too_many
from thresholdout import Claims, Thresholdout
from thresholdout.guard.holdout import origin
from thresholdout.guard.sharing.shared_objects import share
from thresholdout.model_selection import GuardedSearchCV

CODES, N, SESSIONS, CONFIDENCE = 900, 400, 8, 0.95
MODEL = DecisionTreeClassifier(max_depth=1).fit([[0.0], [1.0]], [0, 1])

Probe = Callable[[Any], Hashable]


def told(call: Callable[[], Any]) -> Hashable:
    """Return everything that a call shows, as a result or as an error."""
    try:
        return repr(call())
    except Exception as error:
        return type(error).__name__, str(error), tuple(map(repr, getattr(error, "args", ())))


def elsewhere(guard: Thresholdout) -> Any:
    return share(guard)


def through_a_handle(there: Any) -> Probe:
    return lambda row: told(lambda: origin(there, row))


def searched(guard: Thresholdout, rows: Any) -> Any:
    search = GridSearchCV(MODEL, {"max_depth": [1]}, cv=2)
    return GuardedSearchCV(search, guard).fit(rows, np.zeros(len(rows)))


ORACLES: dict[str, Callable[[Thresholdout], Probe]] = {
    "origin": lambda guard: lambda row: told(lambda: origin(guard, row)),
    "origin with labels": lambda guard: lambda row: told(lambda: [origin(guard, row, [y]) for y in (0, 1)]),
    "origin in single precision": lambda guard: lambda row: told(lambda: origin(guard, row.astype(np.float32))),
    "reference": lambda guard: through_a_handle(elsewhere(guard)),
    "split": lambda guard: lambda row: told(lambda: list(guard.split().split(row))),
    "scorer": lambda guard: (
        lambda row: told(lambda: guard.scorer(cv="training")(MODEL, np.vstack([row, row + CODES]), [0, 0]))
    ),
    "placeholder": lambda guard: (
        lambda row: told(lambda: guard.scorer(cv="training")(MODEL, np.vstack([row, row]), [0, 0]))
    ),
    "search": lambda guard: lambda row: told(lambda: searched(guard, row)),
}


def broken(seed: int, probing: Callable[[Thresholdout], Probe]) -> bool:
    """Attack one guard, and say whether its one answer is wrong."""
    rng = np.random.default_rng(seed)
    holdout, train = rng.integers(0, CODES, (2, N)).astype(float)[..., None] + 1 / 3
    labels = rng.integers(0, 2, (2, N))
    guard = Thresholdout(
        (holdout, labels[0]),
        train=(train, labels[1]),
        queries=20_000,
        mechanism=Claims(holdout_answers=1),
        random_state=seed,
        allow_duplicates=True,
    )
    probe = probing(guard)
    nobody = probe(np.array([[-1.0]]))
    own = {float(x) for x in train[:, 0]}
    candidates = [code + 1 / 3 for code in range(CODES) if code + 1 / 3 not in own]
    found = [code for code in candidates if probe(np.array([[code]])) != nobody]
    before = len(guard.history)
    answer = guard.ask(lambda X, y: np.isin(X[:, 0], found))
    assert len(guard.history) == before + 1
    return abs(answer.value - len(found) / CODES) > answer.half_width


def with_membership(guard: Thresholdout) -> Probe:
    inside = {float(x) for x in guard._records.holdout[0][:, 0]}
    return lambda row: float(row[0, 0]) in inside


def looks(probing: Callable[[Thresholdout], Probe], codes: int = 25) -> tuple[set[Hashable], set[Hashable]]:
    """Return what rows of the holdout are told to be, and what rows of nobody are."""
    rng = np.random.default_rng(0)
    holdout, train = (rng.permutation(100)[:40] + 1 / 3 + 200 * part for part in (0, 1))
    guard = Thresholdout(
        (holdout[:, None], rng.integers(0, 2, 40)),
        train=(train[:, None], rng.integers(0, 2, 40)),
        queries=100,
        mechanism=Claims(holdout_answers=1),
        random_state=0,
    )
    probe = probing(guard)
    nobody = [code + 1 / 3 for code in range(100) if code + 1 / 3 not in set(holdout.tolist())]
    inside, outside = ({probe(np.array([[row]])) for row in rows[:codes]} for rows in (holdout.tolist(), nobody))
    return inside, outside


@for_each("name", ORACLES)
def test_rows_of_the_holdout_look_like_rows_that_nobody_has(name: str) -> None:
    """What the attack lives on, without its chance: every row looks the same, or some row gives itself away."""
    inside, outside = looks(ORACLES[name])
    assert inside == outside
    assert len(inside) == 1


def test_a_look_that_tells_them_apart_is_seen() -> None:
    assert looks(with_membership) == ({True}, {False})


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", ORACLES)
def test_what_is_told_for_nothing_does_not_show_which_rows_are_in_the_holdout(name: str) -> None:
    assert not too_many((broken(seed, ORACLES[name]) for seed in range(SESSIONS)), SESSIONS, 1 - CONFIDENCE)


@pytest.mark.statistical
def test_an_attacker_who_knows_the_rows_of_the_holdout_is_seen() -> None:
    assert too_many((broken(seed, with_membership) for seed in range(SESSIONS)), SESSIONS, 1 - CONFIDENCE)
