"""Labels that are corrected and records that are withdrawn: what is asked, stored, shown, and still promised."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.cases import for_each
from tests.sizes import corners
from thresholdout.errors import InputError, LedgerDamaged
from thresholdout.guard.guard_state import GuardState
from thresholdout.guard.query_engine import LabelsCorrected
from thresholdout.ledger import Ledger, open_ledger
from thresholdout.mechanisms import Known, SparseVectorParameters
from thresholdout.mechanisms.claims import ClaimsParameters, LeaderboardMechanism
from thresholdout.noise.sources import SeededNoise
from thresholdout.service.corrections import MOST_CORRECTED, Corrections
from thresholdout.service.guarantee_text import estimand, promise
from thresholdout.service.prediction_guard import PredictionGuard

N = 1000
LABELS = np.random.default_rng(7).integers(0, 2, 2 * N)
IDS = [f"r{k}" for k in range(2 * N)]
TABLE = pd.DataFrame({"id": IDS, "y": LABELS, "patient": np.arange(2 * N) // 4, "day": np.arange(2 * N)})


def made(ledger: Ledger | None = None, table: pd.DataFrame = TABLE, **settings: Any) -> PredictionGuard:
    settings = {"label": "y", "allow_duplicates": True, **settings}
    return PredictionGuard.create(ledger or open_ledger(None), table[:N], table[N:], **settings)


def wrong_on(places: range | list[int]) -> pd.DataFrame:
    """Return predictions for the holdout that are right, by the first labels, but in these places."""
    found = LABELS[N:].copy()
    found[list(places)] = 1 - found[list(places)]
    return pd.DataFrame({"id": IDS[N:], "prediction": found})


def changed(places: range | list[int], label: Callable[[int], Any] = lambda old: 1 - old) -> pd.DataFrame:
    """Return corrections of the labels in these places of the holdout."""
    return pd.DataFrame({"id": [IDS[N + k] for k in places], "label": [label(LABELS[N + k]) for k in places]})


# What is answered, and what carries over


def test_answers_are_about_the_labels_as_they_are_and_what_was_told_carries_over() -> None:
    service = made()
    wrong = wrong_on(range(300))
    before = service.ask(wrong, expected=0.7, client="ann")
    risk = service.guard.status.error_budget_left
    entry = service.correct(changed(range(300)), "a second annotator", basis="public")
    assert (entry.source, entry.name, entry.query) == ("note", "labels checked: a second annotator", 2)
    assert service.guard.status.error_budget_left == risk
    after = service.ask(wrong, expected=1.0, client="ann")
    assert (after.repeated, after.query) == (False, 3)
    assert before.interval[0] < 0.7 < before.interval[1] < after.interval[0]
    assert after.interval[1] == 1.0
    assert service.ask(wrong, expected=1.0, client="ann").repeated
    assert service.guard.status.error_budget_left is not None
    assert risk is not None
    assert service.guard.status.error_budget_left < risk
    assert [one.submissions for one in service.standings()] == [2]


def test_a_ledger_keeps_them_and_other_processes_see_them(tmp_path: Any) -> None:
    service = made(open_ledger(tmp_path / "guard.db"))
    other = PredictionGuard.open(tmp_path / "guard.db")
    assert other.ask(wrong_on(range(300)), expected=0.7, client="ann").interval[1] < 0.8
    service.correct(changed(range(200)), "first", basis="public")
    service.correct(changed(range(200, 300)), "second", basis="public")
    assert other.ask(wrong_on(range(300)), expected=1.0, client="ann").interval[0] > 0.9
    assert len(other.corrections.notes) == 2
    again = PredictionGuard.open(tmp_path / "guard.db")
    assert again.identity == service.identity
    assert again.ask(wrong_on(range(300)), expected=1.0, client="ann").repeated
    same = PredictionGuard.create(
        tmp_path / "guard.db", TABLE[:N], TABLE[N:], label="y", allow_duplicates=True
    )  # the tables that it was made with
    assert len(same.corrections.notes) == 2


@for_each("mechanism", ["claims", "ladder", "leaderboard"])
def test_each_mechanism_with_notes_has_them(mechanism: str) -> None:
    service = made(mechanism=mechanism)
    service.ask(wrong_on(range(500)), expected=0.5)
    service.correct(changed(range(500)), "all of them", basis="public")
    answer = service.ask(wrong_on(range(500)), expected=1.0)
    assert answer.interval[1] == 1.0
    assert answer.interval[0] > 0.9
    assert answer.query == 3
    assert len(service.guard.history) == 3


def test_a_proposal_is_about_the_labels_as_they_are() -> None:
    service = made()
    new, old = wrong_on(range(60)), wrong_on([])
    assert not service.propose(new, old, client="ann")
    service.correct(changed(range(60)), "as it was agreed", basis="public")
    assert service.propose(new, old, client="ann")
    assert not service.propose(old, new, client="ann")


def test_what_is_computed_while_labels_are_corrected_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is charged or told for the labels that nobody has any more."""
    service = made()
    other = PredictionGuard(service.guard, service._records, None)
    plain, calls = service._on_holdout, []

    def late(*arguments: Any) -> Any:
        found = plain(*arguments)
        calls.append(found.mean())
        if len(calls) == 1:
            other.correct(changed(range(300)), "meanwhile", basis="public")
        return found

    monkeypatch.setattr(service, "_on_holdout", late)
    answer = service.ask(wrong_on(range(300)), expected=1.0, client="ann")
    assert answer.interval[0] > 0.9
    assert calls == [0.7, 1.0]
    assert service.guard.history["source"].tolist() == ["note", "train"]
    with pytest.raises(LabelsCorrected):  # whoever goes past the labels as they are now gets no answer
        service.guard.ask(0.5, LABELS[N:] == 1)
    assert len(service.guard.history) == 2


# Withdrawn records


def test_withdrawn_records_do_not_count_and_intervals_are_for_those_that_are_left() -> None:
    service, few = made(), made(table=TABLE[: 2 * N])
    few.correct(changed(range(900), lambda old: ""), "consent was withdrawn", basis="public")
    service.correct(changed(range(300), lambda old: None), "consent was withdrawn", basis="public")
    all_of_them = service.ask(wrong_on(range(300)), expected=1.0, client="ann")
    assert all_of_them.interval[0] > 0.9
    half = service.ask(wrong_on(range(300, 650)), expected=0.5, client="ann")
    assert half.interval[0] < 0.5 < half.interval[1]
    wide = few.ask(wrong_on(range(900, 950)), expected=0.5, client="ann")
    assert wide.half_width > 2 * half.half_width


@for_each("mechanism", ["claims", "leaderboard"])
@for_each(("gone", "groups"), [([0, 1, 17], True), ([k for k in range(N) if k % 4], False)])
def test_withdrawn_records_do_not_count_in_their_groups(mechanism: str, gone: list[int], groups: bool) -> None:
    """Some groups are smaller then, or all have one record, and are independent records."""
    service = made(groups="patient", sampling="fixed_features", mechanism=mechanism)
    both = TABLE[["id"]].assign(prediction=np.where(np.arange(2 * N) % 5 == 0, 1 - LABELS, LABELS))
    some = both.assign(prediction=np.where(np.arange(2 * N) % 3 == 0, 1 - LABELS, LABELS))
    right = TABLE[["id"]].assign(prediction=LABELS)
    kept = np.setdiff1d(np.arange(N), gone)

    def share(predictions: pd.DataFrame) -> float:
        return float((predictions["prediction"].to_numpy()[N:] == LABELS[N:])[kept].mean())

    answer = service.ask(both, client="ann")
    assert answer.interval[0] < 0.8 < answer.interval[1]
    service.correct(changed(gone, lambda old: None), "consent was withdrawn", basis="public")
    scored = service.ask(some, client="bob")
    assert scored.interval[0] < share(some) < scored.interval[1]
    assert scored.half_width < 0.25
    alone = service.ask(both[N:], client="bob", expected=0.8)
    assert alone.interval[0] < share(both) < alone.interval[1]
    listed = [service.ask(one, client="eve", name=f"{k}") for k, one in enumerate((both, some))]
    assert all(one.interval[0] < share(two) < one.interval[1] for one, two in zip(listed, (both, some), strict=True))
    compared = service.compare(both, some, client="eve")
    assert compared.interval[0] < share(both) - share(some) < compared.interval[1]
    decision = service.propose(right, some, client="eve")
    assert (bool(decision), decision.test) == (True, "bets on groups" if groups else "sign test")
    assert "failed" not in set(service.guard.history["source"])
    assert service.guard.status.error_budget_left is not None
    assert service.guard.status.error_budget_left > 1e-4


def test_withdrawn_records_count_in_no_comparison() -> None:
    service = made()
    service.correct(changed(range(100), lambda old: None), "at the owners' wish", basis="public")
    for new, old in ((wrong_on([]), wrong_on(range(100))), (wrong_on(range(100)), wrong_on([]))):
        decision = service.propose(new, old, client="ann")
        assert (decision.outcome, decision.cost) == ("reject", 0.0)
    assert service.propose(wrong_on([]), wrong_on(range(160)), client="ann")
    compared = service.compare(wrong_on([]), wrong_on(range(560)), client="ann")
    low, high = compared.interval
    assert low < 460 / 900 <= high < 0.56


def test_groups_count_by_the_records_that_are_left() -> None:
    service = made(groups="patient")
    whole = service.ask(wrong_on(range(500)), expected=0.5, client="ann")
    service.correct(changed([k for k in range(N) if k % 4], lambda old: None), "one scan for each", basis="public")
    single = service.ask(wrong_on(range(500)), expected=0.5, client="ann")
    assert 0.7 < single.half_width / whole.half_width < 1.3  # 250 groups, of four records or of one


@for_each(
    ("settings", "basis", "words"),
    [
        ({"mechanism": "ladder"}, "public", "this one answers by ladder"),
        ({"sampling": "independent"}, "public", "not given the features"),
        ({}, "labels", "Declare basis='public'"),
    ],
)
def test_withdrawals_of_which_nothing_is_known_are_refused(settings: dict[str, Any], basis: Any, words: str) -> None:
    service = made(**settings)
    with pytest.raises(InputError, match=words):
        service.correct(changed([1], lambda old: None), "why", basis=basis)
    assert len(service.guard.history) == 0


# What is refused, and what is shown


@for_each(
    ("table", "words"),
    [
        (pd.DataFrame({"id": ["r0"], "label": [1]}), "id 'r0', which is no record of the holdout"),
        (pd.DataFrame({"id": ["nobody"], "label": [1]}), "id 'nobody', which is no record"),
        (pd.DataFrame({"id": ["r1000", "r1000"], "label": [1, 0]}), "got id 'r1000' twice"),
        (pd.DataFrame({"id": ["r1000"], "y": [1]}), "label"),
        (pd.DataFrame({"id": ["r1000"], "label": ["cat"]}), "column 'label'"),
        (pd.DataFrame({"id": ["r1000"], "label": [0.5]}), "no integer"),
        (changed(range(N), lambda old: None), "a withdrawal of all of them"),
    ],
)
def test_rows_that_cannot_be_used_are_refused(table: pd.DataFrame, words: str) -> None:
    service = made()
    with pytest.raises(InputError, match=words):
        service.correct(table, "why", basis="public")
    assert len(service.guard.history) == 0
    assert len(service.corrections.notes) == 0


def test_guards_without_notes_and_other_bases_are_refused() -> None:
    with pytest.raises(InputError, match="got a sparse vector"):
        made(mechanism=SparseVectorParameters(0.1, 0.01, budget=2, queries=5)).correct(changed([1]), "why")
    with pytest.raises(InputError, match="'public' or 'labels'"):
        made().correct(changed([1]), "why", basis="guess")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="reason"):
        made().correct(changed([1]), "a\x00b")


def test_a_guard_keeps_so_many_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_CORRECTED == 10_000
    monkeypatch.setattr("thresholdout.service.corrections.MOST_CORRECTED", 5)
    service = made()
    service.correct(changed(range(4)), "four")
    service.correct(changed(range(3, 5)), "one more")
    with pytest.raises(InputError, match="at most 5 records in all; got 6 records"):
        service.correct(changed([7]), "too many")


def test_nothing_shows_labels(tmp_path: Any) -> None:
    table = TABLE.assign(y=np.where(LABELS == 1, "yes", "no"))
    ledger = open_ledger(tmp_path / "guard.db")
    service = made(ledger, table)
    new = pd.DataFrame({"id": IDS[N : N + 2], "label": ["secret", "secret"]})
    entry = service.correct(new, "two of them")
    assert "secret" not in repr(entry) + repr(service.corrections) + repr(service._labels) + promise(
        service, "interval"
    )
    assert (service._labels.now().values[:2] == "secret").all()
    state = ledger.state(service.identity)
    broken = GuardState.from_text(state, service.guard._mechanism.restore)
    assert "secret" not in broken.corrected
    monkey = state.replace(broken.corrected, "c2VjcmV0")
    with pytest.raises(LedgerDamaged, match="corrections of its labels cannot be read"):
        service._labels._read(GuardState.from_text(monkey, service.guard._mechanism.restore).corrected)
    with pytest.raises(ValueError, match="no corrections"):
        Corrections.from_text("AAAA")


def test_no_key_of_another_query_is_taken_for_one_with_other_labels() -> None:
    """Neither names the labels of another time, whatever words clients choose for keys."""
    service = made()
    first = service.ask(wrong_on(range(N // 2)), expected=0.5, name="it", key="k, labels 1")
    service.correct(changed([1]), "a date that was fixed", basis="public")
    second = service.ask(wrong_on([]), expected=0.5, name="it", key="k")
    assert not second.repeated
    assert second.interval[0] > first.interval[1]
    assert service.ask(wrong_on([]), expected=0.5, name="it", key="k").repeated


def test_the_page_says_what_the_promise_is_worth() -> None:
    service = made()
    assert "With probability 0.95 every interval" in promise(service, "interval")
    assert "Labels were" not in promise(service, "interval")
    assert "features are fixed, and labels are random" in estimand(service)
    service.correct(changed([1]), "a date that was fixed", basis="public")
    assert "the guarantee holds for all of them" in promise(service, "verdict")
    service.correct(changed([2]), "somebody saw it")
    assert "nothing is proved about those after it, which no leaderboard counts" in promise(service, "verdict")
    service.correct(changed([3]), "a date that was fixed", basis="public")  # what was lost stays lost
    assert "nothing is proved about those after it" in promise(service, "interval", "blind")
    assert "blind phase" in promise(service, "interval", "blind")
    assert "Nothing is claimed about a single submission" in promise(made(mechanism="ladder"), "best")
    assert "best of all submissions" in estimand(made(mechanism="ladder"))
    assert "nothing is proved" in estimand(made(order="day", window=2))


def test_the_best_before_a_correction_stays_the_best_and_the_promise_says_so() -> None:
    """Right on all records, and on none as the labels are now: what leads is the truth of its time."""
    service = made(mechanism="ladder")
    first = service.ask(wrong_on([]), expected=1.0)
    service.correct(changed(range(N)), "all of them", basis="public")
    later = service.ask(wrong_on(range(N // 2)), expected=0.5)
    assert later.interval[0] > 0.9
    assert first.interval[0] > 0.9
    said = promise(service, "best")
    assert "about the labels of the time of its answer" in said
    assert "as they are then" not in said


# What is proved, on models that are small enough for all their labels


def interval_of(values: np.ndarray, guess: float) -> tuple[float, float]:
    """Return the interval of a first query in a leaderboard, at a low confidence."""
    n = len(values)
    mechanism = LeaderboardMechanism(ClaimsParameters(noise=0.0, allowance=24.0, confidence=0.6), n)
    known = Known(binary=True, client="ann")
    reading = mechanism.read(values, n, (0.0, 1.0), "values", known)
    _, outcome = mechanism.step(mechanism.start(SeededNoise(0)), guess, reading, SeededNoise(0))
    assert outcome.interval is not None
    return outcome.interval


Rule = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From the labels, and what a second look would find, to the labels afterwards."""

LEADER = np.array([1, 1, 1, 0, 0, 1, 1, 0, 1, 1])


def where_the_leader_is_wrong(labels: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.where(labels == LEADER, labels, second)


def first_half_looked_at(labels: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.where(np.arange(len(labels)) < 5, second, labels)


def false_intervals(rule: Rule, guess: float) -> float:
    """Return how probable it is that the interval after a correction is false: exact, over all labels.

    Labels are coins of different laws; a second look finds what it finds with probability 0.8 for 1.
    """
    chances = np.array([0.5, 0.9, 0.5, 0.2, 0.5, 0.6, 0.5, 0.5, 0.7, 0.5])
    outcomes: dict[tuple[int, ...], float] = {}
    for labels in itertools.product((0, 1), repeat=10):
        y = np.array(labels)
        weight = float(np.prod(np.where(y == 1, chances, 1.0 - chances)))
        # a second look at a record is a coin of its own; those that a rule does not use are summed out
        used = np.flatnonzero(rule(y, np.zeros(10, int)) != rule(y, np.ones(10, int)))
        for found in itertools.product((0, 1), repeat=len(used)):
            second = np.zeros(10, int)
            second[used] = found
            after = tuple((rule(y, second) == LEADER).astype(int).tolist())
            one = weight * math.prod(0.8 if each else 0.2 for each in found)
            outcomes[after] = outcomes.get(after, 0.0) + one
    expected = sum(weight * np.mean(right) for right, weight in outcomes.items())
    total = 0.0
    by_count: dict[int, float] = {}
    for right, weight in outcomes.items():
        by_count[sum(right)] = by_count.get(sum(right), 0.0) + weight
    for count, weight in by_count.items():
        low, high = interval_of(np.arange(10) < count, guess)
        total += weight * (not low <= expected <= high)
    assert sum(by_count.values()) == pytest.approx(1.0)
    return total


@pytest.mark.parametrize(
    ("rule", "guess"), corners(product([where_the_leader_is_wrong, first_half_looked_at], [0.3, 0.6, 0.9]), 2)
)
def test_rules_that_judge_each_record_by_itself_keep_the_promise(rule: Rule, guess: float) -> None:
    assert false_intervals(rule, guess) <= 0.4


def test_a_rule_that_compares_records_breaks_it() -> None:
    """The broken rule: labels follow most labels. Fair coins become equal, the truth of "all are 1" stays a half.

    Whichever the majority is, and so with probability 1, the interval is false.
    """
    n = 24
    for most in (0.0, 1.0):
        low, high = interval_of(np.full(n, most), 0.5)
        assert not low <= 0.5 <= high


# Leaderboards


def test_a_leaderboard_widens_what_was_answered_before_and_all_of_it_is_about_the_labels_as_they_are() -> None:
    service = made()
    first = service.ask(wrong_on(range(200)), expected=0.8, client="ann")
    entry = service.correct(changed(range(50)), "as it was agreed", basis="public")
    assert (entry.value, entry.low, entry.high) == (0.05, 0.0, 1.0)
    (ann,) = service.standings()
    assert (ann.low, ann.high) == pytest.approx((first.interval[0] - 0.05, first.interval[1] + 0.05))
    assert ann.low < first.interval[0] - 0.05 < first.interval[1] + 0.05 < ann.high
    second = service.ask(wrong_on(range(200)), expected=0.85, client="bob")
    by = {one.team: one for one in service.standings()}
    assert (by["bob"].low, by["bob"].high) == second.interval
    service.correct(changed(range(100), lambda old: None), "withdrawn", basis="public")
    again = {one.team: one for one in service.standings()}
    assert again["bob"].low == pytest.approx(second.interval[0] - 100 / 900)
    assert again["ann"].low == pytest.approx(by["ann"].low - 100 / 900)


def test_truths_before_and_after_are_as_near_as_the_note_says() -> None:
    """The most that k new labels, s withdrawn records and a that come back move a mean, over random values."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        n, values = 12, rng.integers(0, 2, 12).astype(float)
        gone = rng.random(n) < 0.3
        looked = rng.random(n) < 0.5
        after, left = values.copy(), gone.copy()
        after[looked] = rng.integers(0, 2, looked.sum())
        left[looked] = rng.random(looked.sum()) < 0.4
        least = min((~gone).sum(), (~left).sum())
        if least:
            assert abs(values[~gone].mean() - after[~left].mean()) <= looked.sum() / least + 1e-12


def test_no_leaderboard_counts_what_is_not_proved() -> None:
    service = made()
    first = service.ask(wrong_on(range(200)), expected=0.8, client="ann")
    assert service.correct(changed(range(50)), "somebody saw it").value == 1.0
    service.ask(wrong_on([]), expected=0.9, client="bob")
    (ann,) = service.standings()
    assert (ann.team, (ann.low, ann.high)) == ("ann", first.interval)
