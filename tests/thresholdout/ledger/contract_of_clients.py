"""The part of the contract of a ledger that is about who asks; `LedgerContract` has it."""

from __future__ import annotations

import math
import threading
import time

import pytest

from tests.cases import for_each
from tests.thresholdout.ledger.mechanism import GUARD, Mechanism, assert_consistent
from thresholdout.data.client_states import client_key, join_state, split_state
from thresholdout.errors import BudgetExhausted, InputError, InputTypeError
from thresholdout.ledger import Ledger
from thresholdout.ledger.entry import Asked, Entry


class ClientsContract:
    """Subclasses have a fixture ``ledger``, with one guard in it."""

    def test_entries_know_who_asked(self, ledger: Ledger) -> None:
        names = ["ann", "", "bob", "ann", "größe", "ann"]
        made = [ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism(), client=name)[0] for name in names]
        assert [entry.client for entry in ledger.entries(GUARD)] == names
        for name in {*names, "nobody"}:
            of_name = [entry for entry in made if entry.client == name]
            assert ledger.entries(GUARD, client=name) == of_name
            assert ledger.count(GUARD, name) == len(of_name)
        assert ledger.count(GUARD) == len(names)
        assert ledger.entries(GUARD, 2, 1, "ann") == [made[3]]
        assert ledger.entries(GUARD, 4, 5, "ann") == [made[3], made[5]]
        assert ledger.entries(GUARD, 1, 0, "ann") == []
        assert ledger.verify(GUARD) == len(names)
        assert_consistent(ledger)

    def test_keys_are_each_client_s_own(self, ledger: Ledger) -> None:
        first, _ = ledger.ask(GUARD, "a", 0.5, "mine", Mechanism(), client="ann")
        second, repeated = ledger.ask(GUARD, "a", 0.7, "also mine", Mechanism(), client="bob")
        nobody, _ = ledger.ask(GUARD, "a", 0.1, "nobody's", Mechanism())
        assert not repeated
        assert [entry.name for entry in (first, second, nobody)] == ["mine", "also mine", "nobody's"]
        assert [ledger.find(GUARD, "a", name) for name in ("ann", "bob", "", "zoe")] == [first, second, nobody, None]
        assert ledger.ask(GUARD, "a", 0.5, "mine", Mechanism(), client="ann") == (first, True)
        with pytest.raises(InputError, match=r"train value 0\.5, now 0\.7"):
            ledger.ask(GUARD, "a", 0.7, "mine", Mechanism(), client="ann")
        assert first.key not in (second.key, nobody.key)
        assert ledger.find(GUARD, first.key, "bob") is None

    def test_a_quota_is_counted_for_each_client_and_repeats_are_none(self, ledger: Ledger) -> None:
        mechanism = Mechanism()
        for key in ("a", "b", "a"):
            ledger.ask(GUARD, key, 0.5, "accuracy", mechanism, client="ann", quota=2)
        state, asked = ledger.state(GUARD), len(mechanism.states)
        with pytest.raises(BudgetExhausted, match="All 2 queries of this client are used") as caught:
            ledger.ask(GUARD, "c", 0.5, "accuracy", mechanism, client="ann", quota=2)
        assert (caught.value.what, caught.value.limit) == ("quota", 2)
        assert (ledger.state(GUARD), len(mechanism.states)) == (state, asked)
        ledger.ask(GUARD, "c", 0.5, "accuracy", mechanism, client="bob", quota=1)
        ledger.ask(GUARD, "c", 0.5, "accuracy", mechanism, client="ann", quota=3)
        with pytest.raises(BudgetExhausted):
            ledger.ask(GUARD, None, 0.5, "accuracy", mechanism, client="zoe", quota=0)
        assert_consistent(ledger)

    def test_what_a_state_has_of_clients_is_given_to_their_own_queries_only(self, ledger: Ledger) -> None:
        """Also in a commit that several share, and where a query fails."""
        seen: list[tuple[str, dict[str, str]]] = []
        mechanism = Mechanism()

        def step(name: str, fails: bool = False) -> None:
            def compute(text: str) -> tuple[str, Entry]:
                main, clients = split_state(text)
                seen.append((name, clients))
                after, entry = mechanism(main)
                if fails:
                    raise ZeroDivisionError
                key = client_key(name)
                mine = {key: f"{clients.get(key, '')}{entry.query},"} if name else {}
                return join_state(after, mine), entry

            ledger.ask(GUARD, None, 0.5, "accuracy", compute, client=name)

        for name in ("ann", "bob", "", "ann"):
            step(name)
        with pytest.raises(ZeroDivisionError):
            step("ann", fails=True)
        ann, bob = client_key("ann"), client_key("bob")
        assert seen == [
            ("ann", {}), ("bob", {}), ("", {}), ("ann", {ann: "1,"}), ("ann", {ann: "1,4,"})
        ]  # fmt: skip
        assert ledger.clients(GUARD) == {ann: "1,4,", bob: "2,"}
        assert split_state(ledger.state(GUARD, "bob"))[1] == {bob: "2,"}
        assert split_state(ledger.state(GUARD))[1] == split_state(ledger.state(GUARD, "zoe"))[1] == {}
        threads = [threading.Thread(target=step, args=("ann",)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ledger.clients(GUARD) == {ann: "1,4,5,6,7,8,9,10,11,12,", bob: "2,"}
        assert_consistent(ledger)

    def test_entries_know_when_they_were_stored(self, ledger: Ledger) -> None:
        before = time.time()
        entry, _ = ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism(), client="ann")
        assert entry.time is not None
        assert before <= entry.time <= time.time()
        assert ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism(), client="ann") == (entry, True)
        assert ledger.entries(GUARD) == [entry]

    def test_a_quota_counts_from_a_time_on(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        mechanism = Mechanism()
        for now in (10.0, 20.0, 20.0, 30.0):
            monkeypatch.setattr("thresholdout.ledger.entry.time", lambda now=now: now)
            ledger.ask(GUARD, None, 0.5, "accuracy", mechanism, client="ann")
        ledger.ask(GUARD, None, 0.5, "accuracy", mechanism, client="bob")
        counts = [ledger.count(GUARD, "ann", since) for since in (None, 10, 10.5, 20.0, 20.5, 30.0, 30.5)]
        assert counts == [4, 4, 3, 3, 1, 1, 0]
        with pytest.raises(BudgetExhausted):
            ledger.ask(GUARD, None, 0.5, "accuracy", mechanism, client="ann", quota=3, since=20.0)
        assert ledger.count(GUARD) == 5
        ledger.ask(GUARD, None, 0.5, "accuracy", mechanism, client="ann", quota=4, since=20.0)
        listed = [Asked(None, 0.5, "accuracy", "ann", 3, 30.0)] * 2
        with pytest.raises(BudgetExhausted):  # two are there already
            ledger.ask_all(GUARD, listed, mechanism.all)
        ledger.ask_all(GUARD, listed[:1], mechanism.all)
        assert_consistent(ledger)

    def test_entries_without_a_time_are_older_than_any(self, ledger: Ledger) -> None:
        entry = Entry(1, "a", "accuracy", 0.5, 0.5, 0.4, 0.6, "train", None, 0.0, 1.0, client="ann")
        ledger.restore("old", {}, "state", {}, [entry])
        assert ledger.entries("old") == [entry]
        assert [ledger.count("old", "ann", since) for since in (None, -1e300)] == [1, 0]

    @for_each("since", [math.nan, math.inf, "yesterday"])
    def test_what_is_no_time_is_refused(self, ledger: Ledger, since: float) -> None:
        with pytest.raises(InputError, match=r"^since must be"):
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism(), client="ann", quota=1, since=since)
        with pytest.raises(InputError, match=r"^since must be"):
            ledger.count(GUARD, "ann", since)
        with pytest.raises(InputError, match=r"^since must be"):
            ledger.count(GUARD, since=0.0)
        assert ledger.count(GUARD) == 0

    def test_a_list_is_answered_within_the_quota_or_not_at_all(self, ledger: Ledger) -> None:
        listed = [Asked(key, 0.5, "accuracy", "ann", 3) for key in "abcd"]
        with pytest.raises(BudgetExhausted):
            ledger.ask_all(GUARD, listed, Mechanism().all)
        assert ledger.count(GUARD) == 0
        ledger.ask_all(GUARD, listed[:2], Mechanism().all)
        assert [found for _, found in ledger.ask_all(GUARD, listed[:3], Mechanism().all)] == [True, True, False]
        assert {entry.client for entry in ledger.entries(GUARD)} == {"ann"}

    def test_threads_of_one_client_stay_within_the_quota(self, ledger: Ledger) -> None:
        refused = []

        def run() -> None:
            for _ in range(4):
                try:
                    ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism(), client="ann", quota=7)
                except BudgetExhausted as error:
                    refused.append(error)

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (ledger.count(GUARD, "ann"), len(refused)) == (7, 9)
        assert_consistent(ledger)

    @for_each("quota", [-1, 1.5, "2"])
    def test_what_is_no_quota_or_client_is_refused(self, ledger: Ledger, quota: int) -> None:
        with pytest.raises(InputError, match=r"^quota must be"):
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism(), client="ann", quota=quota)
        with pytest.raises(InputTypeError, match=r"^client must be"):
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism(), client=3)  # type: ignore[arg-type]
        assert ledger.count(GUARD) == 0
