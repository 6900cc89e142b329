import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresholdout.errors import InputError, InputTypeError
from thresholdout.model_selection.early_stopping import EarlyStopping, EveryRound, StoppingRule

UNIT = st.floats(0, 1) | st.just(math.nan)


def run(rule: StoppingRule, signals: list[float], answers: list[float]) -> list[int]:
    """Drive a rule as a loop would, and return the rounds that were asked about."""
    asked: list[int] = []
    for signal in signals:
        number = rule.update(signal)
        if number is not None:
            asked.append(number)
            rule.tell(answers[number])
        if rule.stopped:
            break
    number = rule.finish()
    if number is not None:
        asked.append(number)
        rule.tell(answers[number])
    return asked


def textbook(signals: list[float], patience: int) -> tuple[int, int]:
    """Return the best round and the number of rounds of plain early stopping."""
    best = 0
    for k in range(len(signals)):
        if signals[k] > signals[best]:
            best = k
        if k - best >= patience:
            return best, k + 1
    return best, len(signals)


@pytest.mark.slow
@given(
    st.lists(UNIT, min_size=1, max_size=60),
    st.lists(UNIT, min_size=60, max_size=60),
    st.integers(1, 8),
    st.integers(1, 6),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.05, 0.3]),
)
@settings(max_examples=60, deadline=None)
def test_queries_are_bounded_whatever_happens(
    signals: list[float], answers: list[float], queries: int, patience: int, doubts: int, worth: float
) -> None:
    rule = EarlyStopping(1.0, patience=patience, queries=queries, worth=worth, doubts=doubts)
    asked = run(rule, signals, answers)
    assert len(asked) <= queries
    assert len(asked) == len(set(asked))
    assert all(number < rule.rounds for number in asked)
    first = next((signal for signal in signals if not math.isnan(signal)), 0.0)
    if worth:
        assert len(asked) <= 1 + math.floor((1 - first) / worth + 1e-9)
    known = {number: answers[number] for number in asked if not math.isnan(answers[number])}
    if known:
        assert rule.best_round is not None
        assert known[rule.best_round] == max(known.values())


def test_a_signal_that_rises_by_the_step_reaches_the_bound() -> None:
    signals = [k / 64 for k in range(65)]
    rule = EarlyStopping(1.0, queries=5)
    asked = run(rule, signals, signals)
    assert asked == [16, 32, 48, 64]  # the last claim is the last round, so there is none to ask about at the end
    rule = EarlyStopping(1.0, queries=5)
    assert run(rule, signals[:-1], signals) == [16, 32, 48, 63]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_with_one_query_it_is_plain_early_stopping(signals: list[float], patience: int) -> None:
    rule = EarlyStopping(1.0, patience=patience, queries=1)
    asked = run(rule, signals, signals)
    best, rounds = textbook(signals, patience)
    assert (asked, rule.best_round, rule.rounds) == ([best], best, rounds)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_every_round_is_plain_early_stopping_on_answers(answers: list[float], patience: int) -> None:
    rule = EveryRound(patience=patience)
    asked = run(rule, [0.0] * len(answers), answers)
    best, rounds = textbook(answers, patience)
    assert (asked, rule.best_round, rule.rounds) == (list(range(rounds)), best, rounds)


def test_min_delta_ignores_small_rises() -> None:
    signals = [0.5, 0.505, 0.509, 0.6, 0.601, 0.602]
    assert run(EarlyStopping(1.0, patience=2, queries=1, min_delta=0.01), signals, signals) == [0]
    assert run(EarlyStopping(1.0, patience=3, queries=1, min_delta=0.01), signals, signals) == [3]
    rule = EveryRound(patience=2, min_delta=0.01)
    assert run(rule, signals, signals) == [0, 1, 2]


def test_doubted_claims_end_the_loop() -> None:
    signals = [k / 128 for k in range(128)]  # rises for ever, like a score on records that are fitted
    truth = [0.4 + 0.01 * k if k < 48 else 0.88 - 0.005 * (k - 48) for k in range(128)]
    rule = EarlyStopping(1.0, queries=9, doubts=2)
    assert run(rule, signals, truth) == [16, 32, 48, 64, 80]
    assert (rule.best_round, rule.rounds) == (48, 81)


def test_answers_within_h_choose_a_round_within_2h_of_every_round_asked_about() -> None:
    rng = np.random.default_rng(1)
    half = 0.03
    for _ in range(200):
        truth = 0.9 - 0.4 * np.exp(-np.arange(200) / rng.uniform(5, 60)) - rng.uniform(0, 1e-3) * np.arange(200)
        signals = np.clip(truth + rng.normal(0, 0.02, 200), 0, 1)
        answers = truth + rng.uniform(-half, half, 200)
        rule = EarlyStopping(1.0, patience=10)
        asked = run(rule, signals.tolist(), answers.tolist())
        assert rule.best_round is not None
        assert abs(truth[rule.best_round] - answers[rule.best_round]) <= half
        assert truth[rule.best_round] >= truth[asked].max() - 2 * half


def test_simulated_loops_spend_few_queries_and_lose_nothing() -> None:
    """Over 200 simulated learning curves: at most 6 queries, tenfold fewer than one a round, for as good a round."""
    rng = np.random.default_rng(2)
    spent, naive, chosen, usual = 0, 0, [], []
    for _ in range(200):
        truth = 0.9 - 0.4 * np.exp(-np.arange(300) / rng.uniform(5, 60))
        signals = np.clip(truth + rng.normal(0, 0.01, 300), 0, 1).tolist()
        answers = (truth + rng.normal(0, 0.01, 300)).tolist()
        economical, rule = EarlyStopping(1.0, patience=10), EveryRound(patience=10)
        spent += len(run(economical, signals, answers))
        naive += len(run(rule, signals, answers))
        assert economical.best_round is not None
        assert rule.best_round is not None
        chosen.append(truth[economical.best_round])
        usual.append(truth[rule.best_round])
    assert naive > 10 * spent
    assert abs(np.mean(chosen) - np.mean(usual)) < 0.005  # five standard errors of the difference are 0.005


def test_an_unanswered_query_counts_for_nothing() -> None:
    rule = EarlyStopping(1.0, patience=2, queries=3, doubts=1)
    signals = [0.5, 0.8, 0.85, 0.8, 0.8]
    assert run(rule, signals, [math.nan] * 5) == [1, 2]
    assert rule.answers == {}
    assert rule.best_round == 2  # by the signal


def test_arguments_are_checked() -> None:
    with pytest.raises(InputError, match=r"patience must be .*; got 0"):
        EarlyStopping(1.0, patience=0)
    with pytest.raises(InputTypeError, match=r"queries must be .*; got 1.5"):
        EarlyStopping(1.0, queries=1.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"worth must be a finite number, not negative; got -0.1"):
        EarlyStopping(1.0, worth=-0.1)
    with pytest.raises(InputTypeError, match=r"min_delta must be .*; got 'a'"):
        EveryRound(min_delta="a")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"answer must be the answer about a round.*; got one without"):
        EarlyStopping(1.0).tell(0.5)
