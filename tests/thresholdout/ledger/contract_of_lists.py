"""The part of the contract of a ledger that is about records and lists; `LedgerContract` has it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.cases import for_each
from tests.thresholdout.ledger.contract_of_threads import OTHER
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, PARAMETERS, Mechanism, assert_consistent
from thresholdout.errors import InputError, LedgerClosed, LedgerError, LedgerMismatch
from thresholdout.ledger import Ledger
from thresholdout.ledger.contract import ComputeAll
from thresholdout.ledger.entry import CONTENT, Asked, Entry


class ListsContract:
    """Subclasses have a fixture ``ledger``, with one guard in it."""

    # For which records

    def test_a_guard_is_found_by_its_records(self, ledger: Ledger) -> None:
        assert ledger.known("records") is None
        assert ledger.create("new", PARAMETERS, FIRST, {CONTENT: "records"}) == "new"
        assert ledger.known("records") == "new"
        assert ledger.known("record") is None
        ledger.ask("new", None, 0.5, "accuracy", Mechanism())
        state = ledger.state("new")
        assert ledger.create("another", PARAMETERS, FIRST, {CONTENT: "records"}) == "new"
        assert (ledger.guards(), ledger.state("new")) == ([GUARD, "new"], state)
        with pytest.raises(LedgerMismatch, match="threshold"):
            ledger.create("another", {**PARAMETERS, "threshold": 0.2}, FIRST, {CONTENT: "records"})
        with pytest.raises(LedgerMismatch, match="for the same records"):
            ledger.restore("another", PARAMETERS, FIRST, {CONTENT: "records"}, [])
        assert ledger.guards() == [GUARD, "new"]

    def test_the_records_of_a_guard_never_change(self, ledger: Ledger) -> None:
        with pytest.raises(InputError, match="created with this document"):
            ledger.put_document(GUARD, CONTENT, "records")
        assert ledger.documents(GUARD) == ["labels"]

    # Sources

    def test_entries_are_counted_by_their_source(self, ledger: Ledger) -> None:
        assert ledger.sources(GUARD, 5) == {}
        for number, source in enumerate(["train", "holdout", "train", "größe", "holdout"], 1):
            entry = Entry(number, "", "", 0.5, 0.5, 0.0, 1.0, source, None, 0.0, 1.0)
            ledger.ask(GUARD, None, 0.5, "accuracy", lambda state, entry=entry: (state, entry))  # type: ignore[misc]
        assert ledger.sources(GUARD, 5) == ledger.sources(GUARD, 9) == {"train": 2, "holdout": 2, "größe": 1}
        assert ledger.sources(GUARD, 3) == {"train": 2, "holdout": 1}
        assert ledger.sources(GUARD, 0) == {}
        with pytest.raises(LedgerMismatch):
            ledger.sources(OTHER, 5)

    # Lists

    def test_queries_that_are_asked_together_form_a_list(self, ledger: Ledger) -> None:
        mechanism = Mechanism()
        alone, _ = ledger.ask(GUARD, None, 0.5, "accuracy", mechanism)
        asked = [Asked("a", 0.25, "first"), Asked(None, 0.5, "second"), Asked("c", 0.75, "third")]
        answers = ledger.ask_all(GUARD, asked, mechanism.all)
        entries = [entry for entry, _ in answers]
        assert [repeated for _, repeated in answers] == [False] * 3
        assert [entry.query for entry in entries] == [2, 3, 4]
        assert [(entry.name, entry.train) for entry in entries] == [(q.name, q.train) for q in asked]
        assert (entries[0].key, entries[2].key, len(entries[1].key)) == ("a", "c", 32)
        assert [entry.list for entry in (alone, *entries)] == [None, 2, 2, 2]
        after, _ = ledger.ask(GUARD, None, 0.5, "accuracy", mechanism)
        ((single, _),) = ledger.ask_all(GUARD, [Asked(None, 0.5, "last")], mechanism.all)
        assert (after.list, single.list) == (None, 6)
        assert ledger.entries(GUARD) == [alone, *entries, after, single]
        assert ledger.verify(GUARD, ledger.checkpoint(GUARD)) == 6
        assert_consistent(ledger)

    def test_a_list_that_is_repeated_costs_nothing(self, ledger: Ledger) -> None:
        mechanism = Mechanism()
        known, _ = ledger.ask(GUARD, "b", 0.5, "accuracy", mechanism)
        asked = [Asked(key, 0.5, "accuracy") for key in "abc"]
        places: list[tuple[int, ...]] = []

        def compute(state: str, new: tuple[int, ...]) -> tuple[str, list[Entry]]:
            places.append(new)
            return mechanism.all(state, new)

        answers = ledger.ask_all(GUARD, asked, compute)
        assert [repeated for _, repeated in answers] == [False, True, False]
        assert answers[1][0] == known
        assert [entry.query for entry, _ in answers] == [2, 1, 3]
        assert places == [(0, 2)]
        state = ledger.state(GUARD)
        again = ledger.ask_all(GUARD, asked, compute)
        assert again == [(entry, True) for entry, _ in answers]
        assert (places, ledger.state(GUARD)) == ([(0, 2)], state)
        with pytest.raises(InputError, match="'c', which was asked with train value"):
            ledger.ask_all(GUARD, [Asked("new", 0.5, ""), Asked("c", 0.25, "")], compute)
        assert ledger.find(GUARD, "new") is None
        assert_consistent(ledger)

    @pytest.mark.parametrize("failing", [ValueError, KeyboardInterrupt])
    def test_a_list_is_stored_as_a_whole_or_not_at_all(self, ledger: Ledger, failing: type[BaseException]) -> None:
        asked = [Asked(key, 0.5, "accuracy") for key in "abc"]
        mechanism = Mechanism()

        def fails(state: str, new: tuple[int, ...]) -> tuple[str, list[Entry]]:
            raise failing("on purpose")

        def short(state: str, new: tuple[int, ...]) -> tuple[str, list[Entry]]:
            after, entries = mechanism.all(state, new)
            return after, entries[:2]

        def wrong(state: str, new: tuple[int, ...]) -> tuple[str, list[Entry]]:
            after, entries = mechanism.all(state, new)
            return after, [*entries[:2], replace(entries[2], value=math.nan)]

        def numbered(state: str, new: tuple[int, ...]) -> tuple[str, list[Entry]]:
            after, entries = mechanism.all(state, new)
            return after, [*entries[:2], replace(entries[2], query=7)]

        cases: list[tuple[ComputeAll, type[BaseException], str]] = [
            (fails, failing, "on purpose"),
            (short, LedgerError, "answered 2 of 3 queries"),
            (wrong, InputError, "the value nan"),
            (numbered, LedgerError, "numbered query 3 as 7"),
        ]
        for compute, error, words in cases:
            with pytest.raises(error, match=words):
                ledger.ask_all(GUARD, asked, compute)
            assert (ledger.entries(GUARD), ledger.state(GUARD)) == ([], FIRST)
        assert len(ledger.ask_all(GUARD, asked, mechanism.all)) == 3
        assert_consistent(ledger)

    @for_each(
        ("asked", "words"),
        [
            ([], "no queries"),
            ([Asked("a", 0.5, ""), Asked("a", 0.5, "")], "two queries with the key 'a'"),
            ([Asked("a", math.nan, "")], "finite"),
            ([Asked("", 0.5, "")], "an empty string"),
        ],
    )
    def test_lists_that_cannot_be_are_refused(self, ledger: Ledger, asked: list[Asked], words: str) -> None:
        mechanism = Mechanism()
        with pytest.raises(InputError, match=words):
            ledger.ask_all(GUARD, asked, mechanism.all)
        with pytest.raises(LedgerMismatch):
            ledger.ask_all(OTHER, [Asked("a", 0.5, "")], mechanism.all)
        assert mechanism.states == []
        ledger.close_guard(GUARD, "why")
        with pytest.raises(LedgerClosed):
            ledger.ask_all(GUARD, [Asked("a", 0.5, "")], mechanism.all)
