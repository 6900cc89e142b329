import json
import logging
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import for_each
from tests.sizes import corners
from tests.thresholdout.integrations.climbs import EXAMPLES, SECRET, Evaluator, made, right
from thresholdout import Claims, InputError, OverlapError
from thresholdout.errors import GuardExhaustedWarning, InputTypeError, SharingError
from thresholdout.guard.sharing.shared_objects import share
from thresholdout.integrations import GuardedCandidates, guard_of_examples
from thresholdout.integrations.candidates import _packed, _unpacked

ROOT = Path(__file__).parents[3]


def outcomes(climb: GuardedCandidates, *texts: str) -> list[str]:
    return [climb.propose(text).outcome for text in texts]


def test_each_candidate_that_is_kept_outscores_those_before() -> None:
    climb = made()
    verdicts = [climb.propose(text) for text in ("aa", "aaaa", "aaa", "aaaaaa")]
    assert [verdict.outcome for verdict in verdicts] == ["first", "kept", "rejected", "kept"]
    assert [verdict.score for verdict in verdicts] == [1 / 2, 2 / 3, 0.0, 3 / 4]
    assert [bool(verdict) for verdict in verdicts] == [True, True, False, True]
    assert climb.champion == "aaaaaa"


def test_the_holdout_is_evaluated_only_where_it_is_looked_at() -> None:
    evaluate = Evaluator()
    climb = made(evaluate)
    outcomes(climb, "aaa", "aaaa", "aa")
    assert [call for call in evaluate.calls if call[1] == "holdout"] == [("aaaa", "holdout"), ("aaa", "holdout")]


def test_a_candidate_is_judged_once_whatever_became_of_the_champion() -> None:
    evaluate = Evaluator()
    climb = made(evaluate)
    first = [climb.propose(text) for text in ("aa", "aaaa", "aaa", "aaaaaa")]
    calls, asked, left = len(evaluate.calls), len(climb.guard.history), climb.guard.status.error_budget_left
    again = [climb.propose(text) for text in ("aaaa", "aaa", "aa", "aaaaaa")]
    assert [verdict.outcome for verdict in again] == ["kept", "rejected", "first", "kept"]
    assert [verdict.score for verdict in again] == [first[1].score, 0.0, first[0].score, first[3].score]
    assert all(verdict.repeated for verdict in again)
    assert (len(evaluate.calls), len(climb.guard.history), climb.guard.status.error_budget_left) == (calls, asked, left)
    assert climb.champion == "aaaaaa"
    assert climb.judged("aaaa") == again[0]
    assert climb.judged("never") is None


def test_what_raises_for_the_training_records_costs_nothing_however_often(caplog: pytest.LogCaptureFixture) -> None:
    climb = made(Evaluator())
    outcomes(climb, "aa")
    with caplog.at_level(logging.WARNING):
        assert outcomes(climb, *["raise on train"] * 4) == ["failed"] * 4
    assert len(climb.guard.history) == 0
    assert SECRET in caplog.text  # it has seen no holdout


@pytest.mark.parametrize("way", ["raises", "values of the wrong length"])
def test_what_fails_for_the_holdout_is_charged_once_and_says_nothing(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    def evaluate(text: str, part: str) -> Any:
        if part == "holdout" and text == "aaaa!":
            if way == "raises":
                raise RuntimeError(SECRET)
            return right(text, part)[1:]
        return right(text, part)

    climb = made(evaluate, mechanism=Claims(holdout_answers=10))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        verdicts = [climb.propose(text) for text in ("aaa", "aaaa!", "aaaa!", "aaaa!")]
    assert [verdict.outcome for verdict in verdicts] == ["first", "failed", "failed", "failed"]
    assert list(climb.guard.history["source"]) == ["failed"]
    assert climb.guard.status.answers_left == 9
    shown = " ".join([*map(repr, verdicts), *(one.text for one in verdicts), *(str(one.message) for one in said)])
    assert "1007" not in shown + caplog.text + climb.guard.history.to_csv()
    assert outcomes(climb, "aaaaa") == ["kept"]  # beside the champion of before


def test_values_out_of_range_and_missing_ones_count_as_the_ends() -> None:
    seen = []

    def evaluate(text: str, part: str) -> Any:
        values = np.array(right(text, part), dtype=float)
        values[values == 1.0], values[values == 0.0] = 7.0, np.nan
        seen.append(part)
        return values

    climb = made(evaluate)
    assert outcomes(climb, "aaa", "aaaa") == ["first", "kept"]
    assert seen.count("holdout") == 2


def test_losses_are_better_when_they_are_smaller() -> None:
    def evaluate(text: str, part: str) -> Any:
        return [2.0 - value for value in map(float, right(text, part))]

    climb = made(evaluate, bounds=(1.0, 2.0), greater_is_better=False)
    assert outcomes(climb, "aaa", "aaaa", "aa") == ["first", "kept", "rejected"]


def test_an_exhausted_guard_evaluates_nothing_and_warns_once() -> None:
    evaluate = Evaluator()
    climb = made(evaluate, queries=1)
    outcomes(climb, "aa", "aaaa")
    calls = len(evaluate.calls)
    with pytest.warns(GuardExhaustedWarning, match="guard is exhausted"):
        verdict = climb.propose("aaaaaa")
    assert (verdict.outcome, verdict.score, bool(verdict)) == ("exhausted", 0.0, False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert climb.propose("aaaaaaa").outcome == "exhausted"
    assert climb.exhausted
    assert len(evaluate.calls) == calls
    assert climb.propose("aaaa").outcome == "kept"  # as it was
    assert climb.champion == "aaaa"


def test_draws_of_a_random_judge_are_kept() -> None:
    evaluate = Evaluator()
    climb = made(evaluate)
    outcomes(climb, "aaa", "random", "aaaa random", "random b")
    assert outcomes(climb, "random") == ["kept"]
    drawn = [call for call in evaluate.calls if "random" in call[0]]
    assert len(drawn) == len(set(drawn))


def test_what_an_evaluator_logs_about_the_holdout_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    def evaluate(text: str, part: str) -> Any:
        logging.getLogger("judge").error("%s of the %s part are right", sum(right(text, part)), part)
        return right(text, part)

    climb = made(evaluate)
    before = logging.root.manager.disable
    assert outcomes(climb, "aaa", "aaaa") == ["first", "kept"]
    assert logging.root.manager.disable == before
    assert [record.getMessage() for record in caplog.records] == [
        "300 of the train part are right",
        "400 of the train part are right",
    ]


def test_threads_that_propose_the_same_candidates_get_the_same_verdicts() -> None:
    climb = made()
    climb.propose("a")
    texts = ["aaa", "aaaaa", "aaaaaaa"] * 8
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(climb.propose, texts))
    found = {text: {verdict.outcome for verdict in told[k::3]} for k, text in enumerate(texts[:3])}
    assert all(len(which) == 1 for which in found.values())
    assert len(climb.guard.history) == 3
    assert climb.champion == "aaaaaaa"


def proposed(shared: Any, text: str) -> Any:
    return shared.propose(text)


def test_pools_of_processes_ask_the_one_object() -> None:
    climb = made()
    climb.propose("a")
    shared = share(climb)
    with get_context("fork").Pool(3) as pool:
        told = pool.starmap(proposed, [(shared, text) for text in ["aaaa", "aaaaaaaa", "aaaa", "aaaaaaaa"]])
    assert {verdict.outcome for verdict in told} <= {"kept", "rejected"}
    assert len(climb.guard.history) == 2
    assert climb.champion == "aaaaaaaa"


def test_a_copy_by_fork_is_refused_and_a_pickle_is_a_handle() -> None:
    climb = made()
    assert pickle.loads(pickle.dumps(climb)) is climb
    assert "0 kept after the first" in repr(climb)
    child = os.fork()
    if child == 0:
        try:
            climb.propose("a")
        except SharingError:
            os._exit(7)
        os._exit(8)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_values_can_come_from_elsewhere() -> None:
    climb = made(None)
    for text in ("aaa", "aaaa"):
        values = {f"{part}_values": right(text, part) for part in EXAMPLES}
        verdict = climb.propose(text, **values)
    assert verdict.outcome == "kept"
    with pytest.raises(InputError, match="train_values is missing"):
        climb.propose("aaaaa")
    with pytest.raises(InputError, match="holdout_values"):
        climb.propose("aaaaa", train_values=right("aaaaa", "train"), holdout_values=[1.0])
    assert len(climb.guard.history) == 1


@for_each("wrong", ["few", "uneven", "masked"])
@for_each("part", ["train", "holdout"])
def test_wrong_values_are_refused_before_a_candidate_is_evaluated(part: str, wrong: str) -> None:
    """Uneven ones too, and masked ones, whose numbers below the mask are nobody's values."""

    def evaluate(text: str, part: str) -> Any:
        raise AssertionError

    right_ones = right("aaa", part)
    values: dict[str, Any] = {
        "few": right_ones[1:],
        "uneven": [[1.0], [1.0, 0.0]],
        "masked": np.ma.masked_array(right_ones, np.arange(len(right_ones)) == 0),
    }
    climb = made(evaluate)
    with pytest.raises(InputError, match=f"{part}_values"):
        climb.propose("aaa", **{f"{part}_values": values[wrong]})
    assert climb.champion is None


@pytest.mark.slow
@for_each("certify", ["each", "milestones"])
def test_a_climb_that_is_made_again_goes_on_where_it_was(tmp_path: Path, certify: Any) -> None:
    texts = ["aa", "aaaa", "aaa", "aaaaaa", "aaaaa", "aaaaaaaa"]
    whole = made(ledger=tmp_path / "whole.db", certify=certify)
    expected = [(verdict.outcome, verdict.score) for verdict in map(whole.propose, texts)]
    found = []
    for text in texts:  # a process for each, so to speak
        climb = made(ledger=tmp_path / "parts.db", certify=certify)
        verdict = climb.propose(text)
        found.append((verdict.outcome, verdict.score))
    assert found == expected
    assert climb.champion == whole.champion == "aaaaaaaa"
    assert climb.guard.status.error_budget_left == whole.guard.status.error_budget_left


def test_steps_on_the_way_outlive_a_restart(tmp_path: Path) -> None:
    def evaluate(text: str, part: str) -> Any:  # a gain too small to certify, and to be seen by training values alone
        return [k % 1000 < 500 + 2 * len(text) for k in EXAMPLES[part]]

    first = made(evaluate, tmp_path / "guard.db", certify="milestones")
    assert outcomes(first, "a", "aaaa") == ["first", "on the way"]
    again = made(evaluate, tmp_path / "guard.db", certify="milestones")
    assert again.champion == "aaaa"
    assert outcomes(again, "aaaa", "aa") == ["on the way", "rejected"]


KILLED = """
import os, sys
from pathlib import Path
from tests.sizes import corners
from tests.thresholdout.integrations.climbs import made, right

def evaluate(text, part):
    if sys.argv[2] == f"{text} {part}":
        os._exit(9)
    return right(text, part)

climb = made(evaluate, Path(sys.argv[1]))
for text in ("aa", "aaaa", "aaaaaa"):
    climb.propose(text)
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", corners(["aaaa train", "aaaa holdout", "aaaaaa holdout"], 1))
def test_a_kill_in_the_middle_loses_and_doubles_nothing(tmp_path: Path, where: str) -> None:
    ledger = tmp_path / "guard.db"
    settings: dict[str, Any] = {"cwd": ROOT, "timeout": 60, "check": False}
    killed = subprocess.run([sys.executable, "-c", KILLED, str(ledger), where], **settings)
    assert killed.returncode == 9
    climb = made(ledger=ledger)
    assert outcomes(climb, "aa", "aaaa", "aaaaaa") == ["first", "kept", "kept"]
    assert len(climb.guard.history) == 2


def test_a_decision_whose_news_was_lost_is_found_in_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    climb = made()
    outcomes(climb, "aa", "aaa")
    gate = climb._gate
    assert gate is not None
    propose: Callable[..., Any] = gate.propose

    def lost(*args: Any, **settings: Any) -> None:
        propose(*args, **settings)
        raise ConnectionResetError

    monkeypatch.setattr(gate, "propose", lost)
    with pytest.raises(ConnectionResetError):
        climb.propose("aaaaaaaa")
    assert climb.champion == "aaaaaaaa"
    assert outcomes(climb, "aaaaaaaa", "aaaaaaa") == ["kept", "rejected"]


def test_two_climbs_of_one_guard_do_not_mix() -> None:
    one = made()
    two = GuardedCandidates(one.guard, right, name="another")
    outcomes(one, "aa", "aaaa")
    assert outcomes(two, "aaaa", "aa") == ["first", "rejected"]
    assert (one.champion, two.champion) == ("aaaa", "aaaa")


@for_each("other", [{"bounds": (0.0, 2.0)}, {"greater_is_better": False}, {"certify": "milestones"}])
def test_a_name_stays_with_what_its_candidates_were_judged_by(other: dict[str, Any]) -> None:
    climb = made()
    outcomes(climb, "aa", "aaaa")
    with pytest.raises(InputError, match=f"name must be another name for {next(iter(other))}=.*; got 'climb'"):
        GuardedCandidates(climb.guard, right, name="climb", **other)
    assert GuardedCandidates(climb.guard, right, name="climb").champion == "aaaa"


def test_of_two_that_draw_at_once_the_draws_of_the_faster_count(tmp_path: Path) -> None:
    """Each finds nothing kept, draws, and stores: as two processes do over one file."""
    drawn: list[str] = []

    def drawing(name: str, meanwhile: Any) -> Any:
        def evaluate(text: str, part: str) -> Any:
            if text == "aaaaaa" and part not in drawn:
                drawn.append(part)
                meanwhile(text, part)
            return [k % 10 < len(text) - (name == "slow") for k in EXAMPLES[part]]

        return evaluate

    fast = made(right, tmp_path / "guard.db")

    def meanwhile(text: str, part: str) -> None:
        digest = fast._digest(f'"{text}"')
        if part == "train":
            fast._keep(digest, {"candidate": f'"{text}"', "train": _packed(np.array(right(text, part), dtype=float))})
            return
        fast._keep(digest + "/holdout", {"values": _packed(np.array(right(text, part), dtype=float))})

    slow = made(drawing("slow", meanwhile), tmp_path / "guard.db")
    assert outcomes(slow, "aaa", "aaaaaa") == ["first", "kept"]
    assert drawn == ["train", "holdout"]
    kept = slow._document(slow._digest('"aaaaaa"') + "/holdout")
    assert kept is not None
    assert _unpacked(kept["values"]).mean() == 0.6


@for_each("candidate", [{1: "one"}, ("a", "b"), object(), float("nan"), {"f": print}])
def test_what_json_does_not_give_back_is_refused(candidate: Any) -> None:
    climb = made()
    with pytest.raises(InputTypeError, match="candidate"):
        climb.propose(candidate)
    assert climb.champion is None


def test_arguments_are_checked_before_anything_is_stored(tmp_path: Path) -> None:
    guard = made(ledger=tmp_path / "guard.db").guard
    before = guard._ledger.documents(guard._id)
    for settings in ({"name": ""}, {"name": "a/b"}, {"bounds": (1.0, 0.0)}, {"delta": 1.0}, {"certify": "all"}):
        with pytest.raises(InputError):
            GuardedCandidates(guard, right, **settings)
    with pytest.raises(InputTypeError, match="evaluate"):
        GuardedCandidates(guard, "right")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="another process"):
        GuardedCandidates(share(guard), right)
    assert guard._ledger.documents(guard._id) == before


class Example:
    """As DSPy has them."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def test_examples_are_known_by_their_fields() -> None:
    def examples(start: int) -> list[Example]:
        return [Example(question=str(k), answer=[k]) for k in range(start, start + 400)]

    plain = [json.loads(json.dumps(vars(example))) for example in examples(0)]
    guard = guard_of_examples(examples(400), examples(0))
    assert guard._records.identity == guard_of_examples(examples(400), plain)._records.identity
    with pytest.raises(OverlapError):
        guard_of_examples(examples(399), examples(0))
    for wrong in ("text", {"a": 1}, 3):
        with pytest.raises(InputTypeError, match="a list of examples"):
            guard_of_examples(wrong, plain)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="that JSON cannot write"):
        guard_of_examples([{"a": {1, 2}}], plain)
