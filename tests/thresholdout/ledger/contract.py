"""The contract of `thresholdout.ledger.Ledger` as a test suite; every kind of ledger runs it."""

from __future__ import annotations

import copy
import gc
import hashlib
import logging
import math
import pickle
import random
import signal
import struct
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.sizes import sizes
from tests.thresholdout.ledger.contract_of_clients import ClientsContract
from tests.thresholdout.ledger.contract_of_documents import DocumentsContract
from tests.thresholdout.ledger.contract_of_lists import ListsContract
from tests.thresholdout.ledger.contract_of_threads import OTHER, ThreadsContract
from tests.thresholdout.ledger.mechanism import (
    FIRST,
    GUARD,
    PARAMETERS,
    SECRET,
    Mechanism,
    assert_consistent,
    state_after,
)
from thresholdout.errors import (
    BudgetExhausted,
    InputError,
    InputTypeError,
    LedgerClosed,
    LedgerDamaged,
    LedgerError,
    LedgerMismatch,
    LedgerUnusable,
    SharingError,
)
from thresholdout.ledger import Ledger, MemoryLedger
from thresholdout.ledger.entry import JSON, Asked, Entry

finite = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


WRONG: list[dict[str, object]] = [
    {"query": 1},
    {"query": 3},
    {"value": math.nan},
    {"low": -math.inf},
    {"high": math.inf},
    {"low": 0.75, "high": 0.5},
    {"log_error_budget": math.nan},
    {"log_error_budget": 1e-300},
    {"source": "\ud800"},
    {"candidate": "a\0b"},
]


IMPOSSIBLE: list[dict[str, object]] = [
    {"query": 1},
    {"query": 4},
    {"key": "key 1"},
    {"key": ""},
    {"value": math.nan},
    {"list": 1},
    {"list": 3},
]


def answered(entry: Entry, state: str) -> tuple[str, Entry]:
    return state, entry


def measured(text: str) -> bytes:
    return b"%d:%s" % (len(text.encode()), text.encode())


class LedgerContract(ThreadsContract, ListsContract, ClientsContract, DocumentsContract, ABC):
    """Subclasses make an empty ledger."""

    @abstractmethod
    def make(self, folder: Path) -> Ledger: ...

    @pytest.fixture
    def empty(self, tmp_path: Path) -> Iterator[Ledger]:
        with self.make(tmp_path) as ledger:
            yield ledger

    @pytest.fixture
    def ledger(self, empty: Ledger) -> Ledger:
        empty.create(GUARD, PARAMETERS, FIRST, {"labels": f"{SECRET} label"})
        return empty

    # Guards

    def test_starts_empty(self, empty: Ledger) -> None:
        assert empty.guards() == []

    def test_new_guard_has_what_it_was_given(self, ledger: Ledger) -> None:
        assert ledger.guards() == [GUARD]
        assert ledger.parameters(GUARD) == PARAMETERS
        assert ledger.state(GUARD) == FIRST
        assert ledger.entries(GUARD) == []

    def test_creating_again_keeps_state_and_history(self, ledger: Ledger) -> None:
        entry, _ = ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism())
        state = ledger.state(GUARD)
        ledger.create(GUARD, PARAMETERS, FIRST, {"labels": "others", "more": "text"})
        assert ledger.state(GUARD) == state != FIRST
        assert ledger.entries(GUARD) == [entry]
        assert ledger.document(GUARD, "labels") == f"{SECRET} label"
        assert ledger.document(GUARD, "more") is None

    @for_each(
        "other",
        [
            {**PARAMETERS, "threshold": 0.2},
            {**PARAMETERS, "extra": 1},
            {name: value for name, value in PARAMETERS.items() if name != "threshold"},
        ],
    )
    def test_other_parameters_are_refused(self, ledger: Ledger, other: dict[str, JSON]) -> None:
        with pytest.raises(LedgerMismatch, match=r"threshold is 0\.1|extra is None"):
            ledger.create(GUARD, other, "fresh state")
        assert ledger.parameters(GUARD) == PARAMETERS
        assert ledger.state(GUARD) == FIRST

    @for_each("bad", [{"a": math.nan}, {"a": {1}}, {"a": {1: 2}}, {1: 2}, {"a": math.inf}])
    def test_parameters_that_json_cannot_hold_are_refused(self, empty: Ledger, bad: dict[str, object]) -> None:
        with pytest.raises(InputTypeError, match=r"^parameters must be"):
            empty.create(GUARD, bad, FIRST)  # type: ignore[arg-type]
        assert empty.guards() == []

    def test_guards_do_not_mix(self, ledger: Ledger) -> None:
        ledger.create(OTHER, {}, FIRST, {"labels": "b"})
        first, _ = ledger.ask(GUARD, "key", 0.5, "accuracy", Mechanism())
        second, repeated = ledger.ask(OTHER, "key", 0.6, "accuracy", Mechanism())
        assert not repeated
        assert ledger.guards() == [GUARD, OTHER]
        assert (ledger.entries(GUARD), ledger.entries(OTHER)) == ([first], [second])
        assert ledger.document(OTHER, "labels") == "b"
        assert_consistent(ledger, GUARD)
        assert_consistent(ledger, OTHER)

    def test_unknown_guard_is_refused(self, ledger: Ledger) -> None:
        mechanism = Mechanism()
        with pytest.raises(LedgerMismatch, match="has no guard 'another guar'"):
            ledger.ask(OTHER, None, 0.5, "accuracy", mechanism)
        for read in (ledger.state, ledger.parameters, ledger.entries):
            with pytest.raises(LedgerMismatch):
                read(OTHER)
        with pytest.raises(LedgerMismatch):
            ledger.document(OTHER, "labels")
        with pytest.raises(LedgerMismatch):
            ledger.put_document(OTHER, "labels", "text")
        assert mechanism.states == []

    # Queries

    def test_answer_is_stored_as_it_leaves(self, ledger: Ledger) -> None:
        entry, repeated = ledger.ask(GUARD, "first", 0.25, "accuracy", Mechanism(budget=7))
        assert not repeated
        assert (entry.query, entry.key, entry.train, entry.name) == (1, "first", 0.25, "accuracy")
        assert entry.remaining == 6
        assert ledger.entries(GUARD) == [entry]
        assert_consistent(ledger)

    def test_each_query_starts_where_the_last_one_ended(self, ledger: Ledger) -> None:
        mechanism = Mechanism()
        states = []
        for number in range(5):
            states.append(ledger.state(GUARD))
            ledger.ask(GUARD, f"key {number}", 0.5, "accuracy", mechanism)
        assert mechanism.states == states
        assert len(set(states)) == 5
        assert [entry.key for entry in ledger.entries(GUARD)] == [f"key {number}" for number in range(5)]
        assert_consistent(ledger)

    def test_repeated_key_gives_the_same_entry_for_nothing(self, ledger: Ledger) -> None:
        mechanism = Mechanism()
        first, _ = ledger.ask(GUARD, "a", 0.5, "accuracy", mechanism)
        ledger.ask(GUARD, "b", 0.5, "accuracy", mechanism)
        state = ledger.state(GUARD)
        again, repeated = ledger.ask(GUARD, "a", 0.5, "another name", mechanism)
        assert (again, repeated) == (first, True)
        assert ledger.state(GUARD) == state
        assert len(mechanism.states) == 2

    def test_repeated_key_is_answered_when_the_budget_is_gone(self, ledger: Ledger) -> None:
        mechanism = Mechanism(budget=1)
        first, _ = ledger.ask(GUARD, "a", 0.5, "accuracy", mechanism)
        with pytest.raises(BudgetExhausted):
            ledger.ask(GUARD, "b", 0.5, "accuracy", mechanism)
        assert ledger.ask(GUARD, "a", 0.5, "accuracy", mechanism) == (first, True)

    def test_repeated_key_with_another_train_value_is_refused(self, ledger: Ledger) -> None:
        mechanism = Mechanism()
        first, _ = ledger.ask(GUARD, "a", 0.5, "accuracy", mechanism)
        with pytest.raises(InputError, match=r"'a', which was asked with train value 0\.5, now 0\.25"):
            ledger.ask(GUARD, "a", 0.25, "accuracy", mechanism)
        assert ledger.entries(GUARD) == [first]
        assert_consistent(ledger)

    def test_a_train_value_summed_in_another_order_is_the_same(self, ledger: Ledger) -> None:
        first, _ = ledger.ask(GUARD, "a", 0.1 + 0.2, "accuracy", Mechanism())
        assert ledger.ask(GUARD, "a", 0.3, "accuracy", Mechanism()) == (first, True)
        with pytest.raises(InputError):
            ledger.ask(GUARD, "a", 0.300001, "accuracy", Mechanism())

    def test_no_key_makes_new_ones(self, ledger: Ledger) -> None:
        for _ in range(3):
            _, repeated = ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
            assert not repeated
        entry = ledger.entries(GUARD)[1]
        assert ledger.ask(GUARD, entry.key, 0.5, "accuracy", Mechanism()) == (entry, True)
        assert_consistent(ledger)

    def test_a_key_is_any_text(self, ledger: Ledger) -> None:
        entries = []
        for key in ("a", "x' OR 1=1 --", "?", "%s", "Ä", "A\u0308", "😀", " ", "a" * 5000, "%(guard)s"):
            entry, repeated = ledger.ask(GUARD, key, 0.5, key, Mechanism())
            entries.append(entry)
            assert (entry.key, entry.name, repeated) == (key, key, False)
            assert ledger.ask(GUARD, key, 0.5, "accuracy", Mechanism()) == (entry, True)
            assert ledger.entries(GUARD) == entries

    @for_each(
        ("key", "train", "name", "error"),
        [
            ("", 0.5, "accuracy", InputError),
            ("\ud800", 0.5, "accuracy", InputError),
            ("a\0b", 0.5, "accuracy", InputError),
            (3, 0.5, "accuracy", InputTypeError),
            ("a", math.nan, "accuracy", InputError),
            ("a", math.inf, "accuracy", InputError),
            ("a", "0.5", "accuracy", InputTypeError),
            ("a", 0.5, None, InputTypeError),
            ("a", 0.5, "\udfff", InputError),
        ],
    )
    def test_queries_that_cannot_be_stored_are_refused(
        self, ledger: Ledger, key: str, train: float, name: str, error: type[InputError]
    ) -> None:
        mechanism = Mechanism()
        with pytest.raises(error):
            ledger.ask(GUARD, key, train, name, mechanism)
        assert mechanism.states == []
        assert ledger.entries(GUARD) == []

    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        numbers=st.tuples(*[finite] * 4),
        ends=st.tuples(finite, finite).map(sorted),
        log_error_budget=st.none() | st.floats(max_value=0.0, allow_nan=False),
        words=st.tuples(*[texts] * 4),
    )
    def test_numbers_and_names_come_back_exactly(
        self,
        ledger: Ledger,
        numbers: tuple[float, ...],
        ends: list[float],
        log_error_budget: float | None,
        words: tuple[str, ...],
    ) -> None:
        query = len(ledger.entries(GUARD)) + 1
        (train, value, lower, upper), (name, source, candidate, client) = numbers, words
        bounds = (*ends, source, None, lower, upper, log_error_budget, None, candidate, client)
        computed = Entry(query, "", "", 0.0, value, *bounds)  # type: ignore[arg-type]
        entry, _ = ledger.ask(GUARD, None, train, name, lambda state: (state, computed), client=client)
        assert entry == replace(computed, key=entry.key, train=train, name=name, time=entry.time)
        assert ledger.entries(GUARD)[-1] == entry

    # Failures

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
    def test_a_mechanism_that_fails_stores_nothing(self, ledger: Ledger, error: type[BaseException]) -> None:
        def failing(state: str) -> tuple[str, Entry]:
            raise error("on purpose")

        ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism())
        state = ledger.state(GUARD)
        with pytest.raises(error, match="on purpose"):
            ledger.ask(GUARD, "b", 0.5, "accuracy", failing)
        assert ledger.state(GUARD) == state
        assert len(ledger.entries(GUARD)) == 1
        _, repeated = ledger.ask(GUARD, "b", 0.5, "accuracy", Mechanism())
        assert not repeated
        assert_consistent(ledger)

    @sizes("attempts", 60, 400)
    def test_an_interrupt_at_any_moment_stores_all_or_nothing(self, ledger: Ledger, attempts: int) -> None:
        class Interrupt(BaseException):
            pass

        def interrupt(number: int, frame: FrameType | None) -> None:
            raise Interrupt

        moments = random.Random(0)
        interrupts = 0
        handler = signal.signal(signal.SIGALRM, interrupt)
        gc.disable()  # an interrupt in a callback of the collector would be swallowed
        try:
            for attempt in range(attempts):
                answers: list[Entry] = []
                try:
                    signal.setitimer(signal.ITIMER_REAL, moments.uniform(1e-6, 4e-4))
                    answers.extend(ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())[0] for _ in range(10_000))
                except Interrupt:
                    interrupts += 1
                stored = ledger.entries(GUARD)
                assert ledger.state(GUARD) == state_after(stored), attempt
                assert set(answers) <= set(stored)
        finally:
            gc.enable()
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
        assert interrupts == attempts
        assert_consistent(ledger)

    @for_each("change", WRONG)
    def test_an_entry_that_cannot_be_kept_is_refused(self, ledger: Ledger, change: dict[str, object]) -> None:
        def wrong(state: str) -> tuple[str, Entry]:
            state, entry = Mechanism()(state)
            return state, replace(entry, **change)  # type: ignore[arg-type]

        ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism())
        with pytest.raises((LedgerError, InputError)):
            ledger.ask(GUARD, "b", 0.5, "accuracy", wrong)
        assert len(ledger.entries(GUARD)) == 1
        assert_consistent(ledger)

    def test_a_state_that_cannot_be_kept_is_refused(self, ledger: Ledger) -> None:
        def wrong(state: str) -> tuple[str, Entry]:
            return f"{SECRET}\ud800", Mechanism()(state)[1]

        with pytest.raises(InputError) as caught:
            ledger.ask(GUARD, "a", 0.5, "accuracy", wrong)
        assert SECRET not in str(caught.value)
        assert caught.value.__context__ is None
        assert ledger.entries(GUARD) == []

    def test_a_mechanism_cannot_ask(self, ledger: Ledger) -> None:
        def greedy(state: str) -> tuple[str, Entry]:
            ledger.ask(GUARD, "inner", 0.5, "accuracy", Mechanism())
            return Mechanism()(state)

        with pytest.raises(LedgerError, match="The mechanism used the ledger"):
            ledger.ask(GUARD, "outer", 0.5, "accuracy", greedy)
        assert ledger.entries(GUARD) == []
        ledger.ask(GUARD, "outer", 0.5, "accuracy", Mechanism())
        assert_consistent(ledger)

    # History

    def test_a_stored_answer_is_found_by_its_key(self, ledger: Ledger) -> None:
        entry, _ = ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism())
        state = ledger.state(GUARD)
        assert ledger.find(GUARD, "a") == entry
        assert ledger.find(GUARD, "b") is None
        assert ledger.state(GUARD) == state
        with pytest.raises(LedgerMismatch):
            ledger.find(OTHER, "a")
        with pytest.raises(InputTypeError):
            ledger.find(GUARD, 3)  # type: ignore[arg-type]

    def test_a_history_can_be_read_in_parts(self, ledger: Ledger) -> None:
        entries = [ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())[0] for _ in range(7)]
        for start in range(1, 9):
            assert ledger.entries(GUARD, start) == entries[start - 1 :]
            for count in (0, 1, 3, 100):
                assert ledger.entries(GUARD, start, count) == entries[start - 1 :][:count]

    @for_each(("start", "count"), [(0, None), (-1, 1), (1.5, 1), (1, -1), (1, 0.5)])
    def test_parts_that_cannot_be_are_refused(self, ledger: Ledger, start: int, count: int | None) -> None:
        with pytest.raises(InputError, match=r"^(start|count) must be "):
            ledger.entries(GUARD, start, count)

    def test_the_checkpoint_is_what_the_documentation_says(self, ledger: Ledger) -> None:
        text = '{"threshold": 0.1, "budget": 10, "grid": null, "bounds": [0.0, 1.0], "name": "gr\\u00f6\\u00dfe"}'
        digest = hashlib.sha256(b"thresholdout-guard-1 %s %s" % (measured(GUARD), measured(text))).hexdigest()
        assert ledger.checkpoint(GUARD) == digest
        for number, (key, name, remaining) in enumerate([("a", "größe 😀", 9), ("b c", "", None)], 1):
            computed = Entry(number, "", "", 0.0, 1 / 3, -1e-5, 0.5, "train", remaining, -0.0, 2.0**60)
            computed = replace(computed, log_error_budget=-0.5 if remaining else None, candidate="forest")
            entry, _ = ledger.ask(GUARD, key, 1, name, partial(answered, computed), client="Zoë")
            numbers = "".join(struct.pack("!d", x).hex() for x in (1.0, 1 / 3, -1e-5, 0.5, 0.0, 2.0**60))
            left = b"-" if remaining is None else b"%d" % remaining
            risk = struct.pack("!d", -0.5).hex().encode() if remaining else b"-"
            time = struct.pack("!d", entry.time).hex().encode()
            line = b"thresholdout-entry-1 %s %d %s - %s " % (digest.encode(), number, left, numbers.encode())
            line += b"%s %s " % (risk, time)
            line += b" ".join(measured(part) for part in (GUARD, entry.key, name, "train", "forest", "Zoë"))
            digest = hashlib.sha256(line).hexdigest()
            assert ledger.checkpoint(GUARD) == digest
        assert ledger.verify(GUARD, digest) == 2

    def test_every_checkpoint_that_was_kept_is_found(self, ledger: Ledger) -> None:
        checkpoints = [ledger.checkpoint(GUARD)]
        for _ in range(5):
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
            checkpoints.append(ledger.checkpoint(GUARD))
        assert len(set(checkpoints)) == 6
        told: list[int] = []
        assert [ledger.verify(GUARD, checkpoint, told.append) for checkpoint in checkpoints] == [5] * 6
        assert told == [5] * 6
        assert ledger.verify(GUARD) == 5

    def test_a_checkpoint_of_another_history_is_not_found(self, ledger: Ledger) -> None:
        ledger.create(OTHER, PARAMETERS, FIRST)
        for guard in (GUARD, OTHER):
            ledger.ask(guard, "a", 0.5, "accuracy", Mechanism())
        for wrong in (ledger.checkpoint(OTHER), "0" * 64):
            with pytest.raises(LedgerDamaged, match=r"None of the 1 entries .* the checkpoint that was kept") as caught:
                ledger.verify(GUARD, wrong)
            assert caught.value.query is None

    @for_each("checkpoint", ["", "0" * 63, "G" * 64, "A" * 64, 3])
    def test_what_is_no_checkpoint_is_refused(self, ledger: Ledger, checkpoint: str) -> None:
        with pytest.raises(InputError, match=r"^checkpoint must be"):
            ledger.verify(GUARD, checkpoint)

    def test_an_unknown_guard_has_no_history(self, ledger: Ledger) -> None:
        for read in (ledger.checkpoint, ledger.verify, ledger.closed, ledger.documents):
            with pytest.raises(LedgerMismatch, match="has no guard"):
                read(OTHER)
        with pytest.raises(LedgerMismatch, match="has no guard"):
            ledger.close_guard(OTHER, "why")

    def test_a_ledger_has_an_identity(self, ledger: Ledger) -> None:
        identity = ledger.identity()
        assert len(identity) == 32
        assert ledger.identity() == identity

    # Closing and restoration

    def test_a_closed_guard_answers_no_more(self, ledger: Ledger) -> None:
        entry, _ = ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism())
        state, checkpoint = ledger.state(GUARD), ledger.checkpoint(GUARD)
        assert ledger.closed(GUARD) is None
        ledger.close_guard(GUARD, "moved to über")
        assert ledger.closed(GUARD) == "moved to über"
        mechanism = Mechanism()
        for key in ("a", "b", None):
            with pytest.raises(LedgerClosed, match="moved to über") as caught:
                ledger.ask(GUARD, key, 0.5, "accuracy", mechanism)
            assert caught.value.why == "moved to über"
        with pytest.raises(LedgerClosed):
            ledger.put_document(GUARD, "new", "text")
        assert mechanism.states == []
        ledger.create(GUARD, PARAMETERS, "fresh state")
        assert ledger.find(GUARD, "a") == entry
        assert (ledger.entries(GUARD), ledger.state(GUARD), ledger.checkpoint(GUARD)) == ([entry], state, checkpoint)
        assert ledger.verify(GUARD, checkpoint) == 1

    def test_a_closed_guard_stays_so(self, ledger: Ledger) -> None:
        ledger.close_guard(GUARD, "first")
        ledger.close_guard(GUARD, "first")
        with pytest.raises(LedgerClosed, match="first"):
            ledger.close_guard(GUARD, "second")
        assert ledger.closed(GUARD) == "first"

    def test_a_guard_is_restored_with_its_history(self, ledger: Ledger) -> None:
        ledger.create(OTHER, PARAMETERS, FIRST)
        entries = [ledger.ask(OTHER, f"key {i}", 0.5, "accuracy", Mechanism())[0] for i in range(5)]
        ledger.restore("third", PARAMETERS, ledger.state(OTHER), {"labels": "c"}, iter(entries))
        ledger.restore("fourth", {}, "", {}, entries, closed="a copy")
        assert ledger.guards() == [GUARD, OTHER, "third", "fourth"]
        assert ledger.entries("third") == entries
        assert ledger.parameters("third") == PARAMETERS
        assert ledger.document("third", "labels") == "c"
        assert (ledger.closed("third"), ledger.closed("fourth")) == (None, "a copy")
        assert ledger.verify("third") == ledger.verify("fourth") == 5
        assert ledger.ask("third", "key 0", 0.5, "accuracy", Mechanism()) == (entries[0], True)
        entry, _ = ledger.ask("third", None, 0.5, "accuracy", Mechanism())
        assert entry.query == 6
        assert_consistent(ledger, "third")

    def test_the_same_history_leads_to_the_same_checkpoint(self, ledger: Ledger) -> None:
        entries = [ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())[0] for _ in range(3)]
        with MemoryLedger() as second:
            second.restore(GUARD, PARAMETERS, ledger.state(GUARD), {}, entries)
            assert second.checkpoint(GUARD) == ledger.checkpoint(GUARD)

    def test_no_history_is_joined_to_another(self, ledger: Ledger) -> None:
        entry, _ = ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism())
        with pytest.raises(LedgerMismatch, match="already"):
            ledger.restore(GUARD, PARAMETERS, "state", {"labels": "x"}, [replace(entry, key="b")])
        assert ledger.entries(GUARD) == [entry]
        assert ledger.document(GUARD, "labels") == f"{SECRET} label"
        assert_consistent(ledger)

    @pytest.mark.parametrize(
        "change",
        [{"query": 1}, {"query": 4}, {"key": "key 1"}, {"value": math.nan}, {"key": ""}, {"list": 1}, {"list": 3}],
    )
    def test_a_history_that_cannot_be_is_not_restored(self, ledger: Ledger, change: dict[str, object]) -> None:
        entries = [Entry(i, f"key {i}", "", 0.0, 0.5, 0.4, 0.6, "train", None, 0.0, 1.0) for i in (1, 2, 3)]
        entries[1] = replace(entries[1], **change)  # type: ignore[arg-type]
        with pytest.raises(InputError):
            ledger.restore(OTHER, {}, FIRST, {"labels": "x"}, entries)
        assert ledger.guards() == [GUARD]
        ledger.create(OTHER, {}, FIRST)
        assert ledger.entries(OTHER) == []
        assert ledger.documents(OTHER) == []

    @for_each(("guard", "state"), [("", FIRST), (OTHER, None), (None, FIRST)])
    def test_a_guard_that_is_not_text_is_refused(self, empty: Ledger, guard: str, state: str) -> None:
        with pytest.raises(InputError):
            empty.create(guard, {}, state)
        assert empty.guards() == []

    # Secrets and copies

    def test_nothing_tells_the_state(self, ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        for name in ("sqlalchemy", "sqlalchemy.engine", "sqlalchemy.pool"):
            caplog.set_level(logging.DEBUG, logger=name)
        shown = [repr(ledger), str(ledger), repr(vars(ledger))]
        entry, _ = ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism())
        shown.append(repr(entry))
        ledger.state(GUARD)
        ledger.document(GUARD, "labels")
        attempts: list[Callable[[], object]] = [
            lambda: ledger.create(GUARD, {}, f"{SECRET} again", {"labels": f"{SECRET} other"}),
            lambda: ledger.put_document(GUARD, "labels", f"{SECRET} other"),
            lambda: ledger.put_document(GUARD, "labels", f"{SECRET}\ud800"),
            lambda: ledger.create(OTHER, {}, f"{SECRET}\ud800"),
            lambda: ledger.ask(GUARD, "a", 0.1, "accuracy", Mechanism()),
            lambda: ledger.ask(GUARD, "b", 0.1, "accuracy", Mechanism(budget=0)),
        ]
        for attempt in attempts:
            with pytest.raises((LedgerError, InputError, BudgetExhausted)) as caught:
                attempt()
            shown.append("".join(traceback.format_exception(caught.value)))
            shown.append(repr(caught.value) + repr(caught.value.__context__))
        shown.append(caplog.text)
        for text in shown:
            assert SECRET not in text

    @for_each("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
    def test_a_ledger_cannot_be_copied(self, ledger: Ledger, duplicate: Callable[[object], object]) -> None:
        with pytest.raises(SharingError, match="cannot be copied"):
            duplicate(ledger)

    # The end

    def test_a_closed_ledger_refuses(self, ledger: Ledger) -> None:
        ledger.close()
        ledger.close()
        mechanism = Mechanism()
        uses: list[Callable[[], object]] = [
            lambda: ledger.ask(GUARD, None, 0.5, "accuracy", mechanism),
            lambda: ledger.create(OTHER, {}, FIRST),
            lambda: ledger.put_document(GUARD, "name", "text"),
            lambda: ledger.document(GUARD, "labels"),
            lambda: ledger.state(GUARD),
            lambda: ledger.parameters(GUARD),
            lambda: ledger.entries(GUARD),
            lambda: ledger.find(GUARD, "a"),
            lambda: ledger.ask_all(GUARD, [Asked(None, 0.5, "accuracy")], mechanism.all),
            lambda: ledger.known("records"),
            lambda: ledger.sources(GUARD, 1),
            lambda: ledger.checkpoint(GUARD),
            lambda: ledger.verify(GUARD),
            lambda: ledger.close_guard(GUARD, "why"),
            lambda: ledger.closed(GUARD),
            lambda: ledger.restore(OTHER, {}, FIRST, {}, []),
            lambda: ledger.documents(GUARD),
            ledger.identity,
            ledger.guards,
        ]
        for use in uses:
            with pytest.raises(LedgerUnusable, match="was closed"):
                use()
        assert mechanism.states == []
