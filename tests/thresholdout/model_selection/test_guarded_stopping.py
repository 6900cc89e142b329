import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

from tests.cases import for_each
from tests.sizes import corners
from thresholdout import BudgetExhausted, Claims, Thresholdout
from thresholdout.errors import GuardExhaustedWarning, InputError
from thresholdout.model_selection import GuardedStopping

X, Y = load_digits(return_X_y=True)
FIT, VALID = np.arange(600), np.arange(600, 1000)


def make(**changes: object) -> Thresholdout:
    choices: dict[str, Any] = {"queries": 60, "mechanism": Claims(holdout_answers=5), **changes}
    return Thresholdout((X[1000:], Y[1000:]), train=(X[:1000], Y[:1000]), **choices)


def train(stopping: GuardedStopping, rounds: int = 60, of: Callable[[Any], Any] = lambda rows: rows) -> list[Any]:
    """Fit a linear model, one pass a round, and return its coefficients after each round."""
    model = SGDClassifier(loss="log_loss", alpha=0.01, random_state=0)
    coefficients = []
    for _ in range(rounds):
        model.partial_fit(of(X[FIT]), Y[FIT], classes=np.arange(10))
        coefficients.append(model.coef_.copy())
        if stopping.update(model):
            break
    stopping.finish()
    return coefficients


def signals(coefficients: int) -> list[float]:
    """Return the validation accuracies of the rounds, computed on their own."""
    model = SGDClassifier(loss="log_loss", alpha=0.01, random_state=0)
    return [
        float(model.partial_fit(X[FIT], Y[FIT], classes=np.arange(10)).score(X[VALID], Y[VALID]))
        for _ in range(coefficients)
    ]


@pytest.mark.slow
def test_a_loop_follows_the_validation_part_and_asks_little() -> None:
    guard = make()
    stopping = GuardedStopping(guard, "accuracy", validation=VALID, patience=5)
    coefficients = train(stopping)
    expected = signals(len(coefficients))
    assert [evaluation.signal for evaluation in stopping.evaluations] == pytest.approx(expected)
    assert stopping.stopped
    assert len(coefficients) == int(np.argmax(expected)) + 1 + 5
    assert 1 <= stopping.asked == len(guard.history) == len(stopping.answers) <= 6
    assert stopping.best_round is not None
    assert stopping.best is stopping.answers[stopping.best_round]
    assert np.array_equal(stopping.best_model.coef_, coefficients[stopping.best_round])  # kept as it was then
    # The training values of the queries are the signals, not scores on records that were fitted.
    assert list(guard.history["train"]) == pytest.approx([expected[k] for k in stopping.answers])
    truth = float(np.mean(stopping.best_model.predict(X[1000:]) == Y[1000:]))
    assert abs(truth - stopping.best.value) <= stopping.best.half_width


def test_asking_in_every_round_asks_once_a_look() -> None:
    guard = make()
    stopping = GuardedStopping(guard, "accuracy", validation=VALID, patience=3, ask="rounds", every=2)
    coefficients = train(stopping, 30)
    assert sorted(stopping.answers) == list(range(0, len(coefficients), 2))
    assert stopping.asked == len(stopping.evaluations) == len(guard.history)


@pytest.mark.slow
def test_losses_are_minimised() -> None:
    stopping = GuardedStopping(make(), "log_loss", validation=VALID, patience=20, ask="rounds")
    train(stopping, 8)
    values = {number: answer.value for number, answer in stopping.answers.items()}
    assert len(set(values.values())) > 3
    assert stopping.best_round is not None
    assert values[stopping.best_round] == min(values.values())
    stopping = GuardedStopping(make(), "log_loss", validation=VALID, patience=3, queries=1)
    train(stopping)
    looked = [evaluation.signal for evaluation in stopping.evaluations]
    assert stopping.best_round == int(np.argmin(looked))
    assert len(looked) == int(np.argmin(looked)) + 1 + 3


@pytest.mark.slow
@for_each("policy", ["train", "nan", "stop"])
def test_exhaustion_keeps_to_the_policy(policy: Any) -> None:
    guard = make(queries=2)
    stopping = GuardedStopping(
        guard, "accuracy", validation=VALID, patience=50, ask="rounds", exhausted=policy, every=1
    )
    with pytest.warns(GuardExhaustedWarning, match="All 2 queries.*This search has 2 answers") as caught:
        coefficients = train(stopping, 6)
    assert len(caught) == 1
    assert (stopping.asked, stopping.exhausted, sorted(stopping.answers)) == (2, "queries", [0, 1])
    assert len(coefficients) == (3 if policy == "stop" else 6)
    assert stopping.stopped == (policy == "stop")
    assert stopping.replaced == (1 if policy == "stop" else 4)
    if policy == "train":
        assert stopping.last_value == stopping.evaluations[-1].signal
        told = [answer.value for _, answer in sorted(stopping.answers.items())] + signals(6)[2:]
        assert stopping.best_round == max(range(6), key=lambda k: (told[k], -k))
        assert stopping.best is None or stopping.best_round < 2
    else:
        assert np.isnan(stopping.last_value)
        assert stopping.best_round in (0, 1)
    assert "without an answer (queries used up)" in stopping.summary()


def test_exhaustion_raises() -> None:
    stopping = GuardedStopping(make(queries=1), "accuracy", validation=VALID, ask="rounds", exhausted="raise")
    with pytest.raises(BudgetExhausted):
        train(stopping, 6)
    assert stopping.asked == 1


@pytest.mark.slow
def test_a_repeated_fit_with_a_key_is_not_charged_again(tmp_path: Path) -> None:
    results = []
    for _ in range(2):
        guard = make(ledger=tmp_path / "guard.db")
        stopping = GuardedStopping(guard, "accuracy", validation=VALID, patience=5, key="fit 1")
        train(stopping)
        results.append((stopping.best_round, {k: a.value for k, a in stopping.answers.items()}))
        asked = stopping.asked
    assert results[0] == results[1]
    assert asked == 0
    assert len(make(ledger=tmp_path / "guard.db").history) == len(results[0][1])


@pytest.mark.slow
def test_without_answers_the_signal_chooses() -> None:
    guard = make(queries=1)
    guard.ask(0.5, np.zeros(guard.n), name="the only one")
    with pytest.raises(BudgetExhausted) as refused:
        train(GuardedStopping(guard, "accuracy", validation=VALID, patience=5))
    assert "pass exhausted='nan' or 'train'" in "".join(refused.value.__notes__)
    stopping = GuardedStopping(guard, "accuracy", validation=VALID, patience=5, exhausted="nan")
    with pytest.warns(GuardExhaustedWarning):
        coefficients = train(stopping)
    assert stopping.best is None
    assert stopping.best_round == int(np.argmax(signals(len(coefficients))))
    assert stopping.best_model is not None
    assert stopping.summary().endswith(f"best round {stopping.best_round} by the signal alone")


@pytest.mark.parametrize("form", corners(["frame", "sparse", "list"], 1))
def test_other_containers(form: str) -> None:
    shape: dict[str, Callable[[Any], Any]] = {"frame": pd.DataFrame, "sparse": csr_matrix, "list": np.ndarray.tolist}
    of = shape[form]
    guard = Thresholdout(
        (of(X[1000:]), Y[1000:]), train=(of(X[:1000]), list(Y[:1000])), queries=60, mechanism=Claims(holdout_answers=5)
    )
    mask = np.arange(1000) >= 600
    stopping = GuardedStopping(guard, "accuracy", validation=mask, patience=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # SGDClassifier treats the intercept of sparse records differently, so it is fitted to dense ones.
        coefficients = train(stopping, 12, of if form != "sparse" else np.asarray)
    assert [evaluation.signal for evaluation in stopping.evaluations] == pytest.approx(signals(len(coefficients)))


def test_a_statistic_takes_the_whole_training_part() -> None:
    guard = make()
    stopping = GuardedStopping(guard, "balanced_accuracy", patience=3, queries=2)
    train(stopping, 10)
    assert set(guard.history["name"]) == {"balanced_accuracy"}
    with pytest.raises(InputError, match="no mean over records"):
        GuardedStopping(guard, "balanced_accuracy", validation=VALID)


def test_arguments_are_checked_before_anything_is_asked() -> None:
    guard = make()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"validation": [0, 0]}, "1 of 2 different"),
        ({"validation": [1000]}, "different positions from 0 to 999"),
        ({"validation": [-1]}, "different positions from 0 to 999"),
        ({"validation": np.zeros(1000, dtype=bool)}, "at least one position"),
        ({"validation": [0.5]}, "position of a training record"),
        ({"ask": "sometimes"}, "'claims' or 'rounds'"),
        ({"exhausted": "ignore"}, "'raise', 'train', 'nan', 'stop'"),
        ({"every": 0}, "an integer of at least 1"),
        ({"metric": "f2"}, "'accuracy'"),
    ]
    for arguments, message in wrong:
        with pytest.raises(InputError, match=message):
            GuardedStopping(guard, **arguments)
    assert guard.history.empty


def test_one_object_serves_one_fit() -> None:
    stopping = GuardedStopping(make(), "accuracy", validation=VALID, patience=2)
    train(stopping)
    with pytest.raises(InputError, match="a new GuardedStopping for each fit"):
        train(stopping, 1)
