"""The query engine: takes the steps of a guard's mechanism and stores them in the ledger.

A query is looked up by its key, checked, read on the holdout, stepped, stored and answered. Computations on the holdout
can fail, and a failure is a function of the whole holdout. So a stored answer is looked up before anything is computed,
and a failure or an interrupt is charged before it is shown. Only failure or interrupt is shown, since the kind of an
error could depend on labels. Every failure widens later intervals, by the number of places where failures can be
(PROOFS.md, "Failures").
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar, cast

from graphs.progress_bar import progress_bar
from thresholdout.errors import EngineFailed, InputError, LedgerDamaged
from thresholdout.guard.answer import Answer
from thresholdout.guard.guard_state import GuardState, corrected_of
from thresholdout.guard.query import Query
from thresholdout.ledger.entry import MADE, Asked, ContentKey, Entry, check_queries, check_repeat, check_short_texts
from thresholdout.mechanisms import Known, Mechanism, Outcome
from thresholdout.mechanisms.base import AnswerSource, SharesErrorBudget, refuse_if
from thresholdout.mechanisms.claims.lists import NOTHING
from thresholdout.suppressed_warnings import suppress_warnings

if TYPE_CHECKING:
    from thresholdout.certificates import Certificate
    from thresholdout.data.parts.lazy_part import LazyPart, Wanted
    from thresholdout.guard.registration import Opened
    from thresholdout.mechanisms.base import PairedCounts
    from thresholdout.mechanisms.claims.evidence import Evidence
    from thresholdout.mechanisms.claims.gate_states import Verdict
    from thresholdout.noise.sources import NoiseSource

__all__ = [
    "FAILURES",
    "RELEASES",
    "Certificates",
    "LabelsCorrected",
    "QueryEngine",
    "Read",
    "Scan",
    "failure_share",
    "key_of_list",
]

FAILURES: Final = 2.0**-20
"""Share of beta for interactions with failures: small, so that other answers hardly pay for it."""

RELEASES: Final = FAILURES / 4.0
"""Share of beta for releases with a delta beside Algorithm 1, a part of `FAILURES` (RELEASES.md, L6)."""


def failure_share(failures: int, asked: int, queries: int | None) -> float:
    """Return the share of beta of one arrangement of failures among the queries.

    The factor below 1 rounds conservatively: over all numbers of queries the weights 6/(pi k)^2 sum to 1.

    Examples
    --------
    >>> failure_share(1, 10, 1000) == FAILURES / 4000
    True
    """
    one = 1.0 / queries if queries is not None else 6.0 / (math.pi * asked) ** 2 * (1.0 - 2.0**-50)
    return FAILURES * (0.25 * one) ** failures


FAILED: Final = "This was charged as an answer from the holdout. The error is hidden, since it could show records."

Certificates: TypeAlias = "tuple[Certificate, Callable[[float], Certificate | None]]"
"""The certificate without failures, and a function that returns it for a smaller share of beta (``None`` if nothing is
proved) without using the ledger."""

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Counting(Protocol):
    """The state of a mechanism that decides."""

    @property
    def asked(self) -> int:
        """Queries so far."""

    @property
    def log_error_budget(self) -> float:
        """Logarithm of the remaining error budget."""


State = TypeVar("State", bound=Counting)


class Move(Protocol[State, T_contra]):
    """Plan for a candidate; it is public, apart from the test on the holdout."""

    @property
    def evaluates(self) -> bool:
        """Whether the holdout is evaluated."""

    def made(self, state: State, test: T_contra) -> tuple[State, Verdict]:
        """Return the state after the move, and its verdict."""


Read: TypeAlias = "tuple[Query, Callable[[], Any]]"
"""A query, and the function that reads the holdout's values for it."""

TotalsT = TypeVar("TotalsT")


class Scan(Generic[TotalsT]):
    """Computation of a query by an engine: counts, then a function of the counts.

    No value can make the operations of a query fail (`thresholdout.data.parts.expressions`), so a failed count is no
    function of the records and is not charged. Two failures are charged: that of a second pass, which only some values
    need, and that of the function of the counts. PROOFS.md, "Failures". Scans of a list are counted in one pass if
    `wanted` names the totals of a part that they need, of all records or `by` group.
    """

    __slots__ = ("_count", "_counted", "_late", "_read", "by", "part", "wanted")

    def __init__(
        self,
        count: Callable[[], TotalsT],
        read: Callable[[TotalsT], Any],
        part: LazyPart | None = None,
        wanted: Sequence[Wanted] = (),
        by: str | None = None,
    ) -> None:
        self._count, self._read, self.part, self.wanted, self.by = count, read, part, wanted, by
        self._counted: TotalsT | None = None
        self._late: EngineFailed | None = None

    def run(self) -> None:
        """Count once."""
        if self._counted is not None:
            return
        self._late = None
        try:
            self._counted = self._count()
        except EngineFailed as error:
            if not error.late:
                raise
            self._late = error

    def __call__(self) -> Any:
        """Return the reading for the mechanism."""
        if self._late is not None:
            raise self._late
        assert self._counted is not None
        return self._read(self._counted)


def scanned(*queries: Callable[[], Any]) -> None:
    """Run the scans among the computations of queries, before anything can be charged."""
    scans = [query for query in queries if isinstance(query, Scan)]
    with ExitStack() as passes:
        for part, by in {(one.part, one.by) for one in scans if one.part is not None} if len(scans) > 1 else ():
            wanted = [one for scan in scans if (scan.part, scan.by) == (part, by) for one in scan.wanted]
            passes.enter_context(part.fetched(wanted, by))
        for scan in scans:
            scan.run()


class QueryEngine:
    """Answers queries; every step of the mechanism is stored in a ledger before its answer is returned."""

    def __init__(self, opened: Opened, noise: NoiseSource) -> None:
        self.ledger = self._ledger = opened.ledger
        self.identity = self._id = opened.identity
        self.parameters = self._parameters = opened.parameters
        self.confidence = self._confidence = opened.confidence
        self.worth: Callable[[], Certificates] = lambda: (opened.certificate, opened.for_share)
        self._mechanism: Mechanism[Any, Any] = opened.mechanism
        self._noise = noise
        self._last: tuple[str, GuardState[Any]] | None = None

    def state(self, client: str = "") -> Any:
        """Return the mechanism's state, with that of one client. Secret."""
        return self._restored(self._ledger.state(self._id, client)).mechanism

    def _restored(self, text: str) -> GuardState[Any]:
        """Return the stored state; the last one that was read or written is cached."""
        last = self._last
        if last is not None and last[0] == text:
            return last[1]
        try:
            state: GuardState[Any] = GuardState.from_text(text, self._mechanism.restore)
            self._last = text, state
            return state
        except InputError:
            pass
        raise LedgerDamaged(self._ledger.location, None, "The state of the guard cannot be read.")

    def log_error_budget_before(self, entry: Entry) -> float:
        """Return the logarithm of the error budget before an entry, for mechanisms with an error budget."""
        if entry.query > 1:
            (before,) = self._ledger.entries(self._id, entry.query - 1, 1)
            assert before.log_error_budget is not None
            return before.log_error_budget
        return math.log1p(-self._confidence) - self._parameters.information_released

    def cost(self, answer: Answer) -> float:
        """Return the nats of an answer, for mechanisms with an error budget."""
        (entry,) = self._ledger.entries(self._id, answer.query, 1)
        assert entry.log_error_budget is not None
        return (
            math.inf
            if entry.log_error_budget <= NOTHING
            else self.log_error_budget_before(entry) - entry.log_error_budget
        )

    def failures(self) -> int:
        """Return how many queries have failed."""
        return self._restored(self._ledger.state(self._id)).failures

    def read(self, values: object, n: int, query: Query, argument: str) -> Any:
        """Check the holdout's values and return the mechanism's reading of them."""
        return self._mechanism.read(values, n, query.limits, argument, query.known)

    def statistic(self, evidence: Sequence[Evidence], known: Known) -> Any:
        """Return the mechanism's reading of a statistic that is no mean."""
        return self._mechanism.statistic(evidence, known)

    def paired_counts(self, counts: PairedCounts, known: Known) -> Any:
        """Return the mechanism's reading of a win rate."""
        return self._mechanism.shares_error_budget("a win rate").paired_counts(counts, known)

    def find(self, query: Query) -> Answer | None:
        """Return the stored answer of the query's key, or ``None``; nothing is computed or charged."""
        stored = None if query.key is None else self._ledger.find(self._id, query.key, query.known.client)
        if stored is None:
            return None
        check_repeat(stored, query.shown)
        return self._told(query, stored, repeated=True)

    def recall(self, key: str | None, estimand: str = "") -> Answer | None:
        """Return the stored answer of a key that was made from the query's content, or ``None``."""
        stored = self._ledger.find(self._id, key) if isinstance(key, ContentKey) else None
        if stored is None:
            return None
        return self._told(Query.recalled(stored, cast(str, key), estimand), stored, repeated=True)

    def evaluate(
        self,
        argument: str,
        query: Query,
        compute: Callable[[], Any],
        *,
        final: bool = False,
    ) -> Answer:
        """Compute a query on the holdout and answer it."""
        check_texts([query])
        stored = self.find(query)
        if stored is not None:
            return stored
        self._check(self.state(query.known.client), query, final)
        scanned(compute)
        found, entry = self._computed(argument, query, compute, final=final)
        if entry is not None:  # another thread or process has asked it meanwhile
            return self._told(query, entry, repeated=True)
        return self._answered(query, found, final=final)  # no second check: its refusal would depend on the holdout

    def _computed(
        self,
        argument: str,
        query: Query,
        compute: Callable[[], Any],
        *,
        final: bool = False,
    ) -> tuple[Any, Entry | None]:
        """Compute a query on the holdout; charge a failure, or return the answer that another process got meanwhile."""
        try:
            with suppress_warnings():
                return compute(), None
        except BaseException as error:  # includes exits, interrupts and panics of extension modules
            interrupted = isinstance(error, KeyboardInterrupt)
        entry, repeated = self._fail(query, final=final)
        if interrupted:
            if repeated:  # the charge of an earlier answer does not cover the information of the interrupt
                self._fail(query.without_key(), final=final)
            raise KeyboardInterrupt(
                "A query was interrupted on the holdout, and charged as an answer from the holdout."
            )
        if repeated:
            return None, entry
        raise InputError(argument, "one that failed on the holdout", "a query that works on both parts", FAILED)

    def store_given(self, query: Query, holdout: Any) -> Answer:
        """Charge and store one query, then return its answer."""
        return self._answered(query, holdout, lambda state: self._check(state, query))

    def _answered(
        self,
        query: Query,
        holdout: Any,
        check: Callable[[Any], None] = lambda state: None,
        *,
        final: bool = False,
    ) -> Answer:
        """Take a step, charge and store it, and return the answer."""

        def step(state: Any) -> tuple[Any, Outcome]:
            check(state)
            if final:
                return self._sharing("a final check").final(state, query.train, holdout, self._noise)
            return self._mechanism.step(state, query.train, holdout, self._noise)

        entry, repeated = self._store(query, step)
        return self._told(query, entry, repeated)

    def _check(self, state: Any, query: Query, final: bool = False) -> None:
        """Refuse a query that is not answered, independently of its value on the holdout."""
        if final:
            refuse_if(self._sharing("a final check").refuses_final(state))
        else:
            refuse_if(self._mechanism.refuses(state, query.train, query.known))

    def _sharing(self, what: str) -> SharesErrorBudget[Any, Any]:
        return self._mechanism.shares_error_budget(what, "Or send one query after another.")

    def charge_release(self, name: str, nats: Callable[[float, bool], float], least: float) -> None:
        """Charge another private release about the holdout durably, for mechanisms that price releases."""
        mechanism = self._mechanism

        def compute(text: str) -> tuple[str, Entry]:
            before = self._restored(text)
            given = bool(getattr(before.mechanism, "given", False))
            state, outcome = mechanism.pay_release(before.mechanism, lambda risk: nats(risk, given))
            if state.log_error_budget < least:
                advice = "Intervals could be the whole range afterwards. Pass void=True to record it all the same."
                raise InputError("event", name, "a release that leaks less", advice)
            entry = Query(0.0, (0.0, 1.0), name, None).entry(outcome, mechanism.remaining(state))
            return replace(before, mechanism=state).to_text(), entry

        self._ledger.ask(self._id, None, 0.0, name, compute)

    def corrected(self) -> str:
        """Return the corrections of labels since the guard was made, as in `GuardState`. Secret."""
        return corrected_of(self._ledger.state(self._id))

    def correct(self, name: str, change: Callable[[str], tuple[str, float]]) -> Entry:
        """Replace the labels that queries were answered with, and note it in the history."""
        mechanism = self._mechanism

        def compute(text: str) -> tuple[str, Entry]:
            before = self._restored(text)
            state, outcome = mechanism.noted(before.mechanism)
            corrected, moved = change(before.corrected)
            outcome = replace(outcome, value=moved)
            entry = Query(0.0, (0.0, 1.0), name, None).entry(outcome, mechanism.remaining(state))
            return replace(before, mechanism=state, corrected=corrected).to_text(), entry

        return self._ledger.ask(self._id, None, 0.0, name, compute)[0]

    def _fail(self, query: Query, *, final: bool = False) -> tuple[Entry, bool]:
        """Charge and store a failed query; a final check also if declared limits are reached."""

        def step(state: Any) -> tuple[Any, Outcome]:
            if final:
                return self._sharing("a final check").fail(state, query.train, self._noise, final=True)
            after, outcome = self._mechanism.fail(state, query.train, self._noise)
            return self._mechanism.failed(state, after, query.known), outcome

        return self._store(query, step, failed=True)

    def _told(self, query: Query, entry: Entry, repeated: bool) -> Answer:
        approximate = bool(self._parameters.approximation)
        return query.answer(entry, repeated, self._mechanism.about, approximate=approximate)

    def _store(
        self, query: Query, step: Callable[[Any], tuple[Any, Outcome]], *, failed: bool = False
    ) -> tuple[Entry, bool]:
        """Take one step of the mechanism in the ledger."""
        certificate, for_share = self.worth()

        def compute(text: str) -> tuple[str, Entry]:
            before = self._restored(text)
            refuse_if(self._mechanism.client_refusal(before.mechanism, query.known))
            if not failed:
                check_labels(before, query)
            state, outcome = step(before.mechanism)
            failures = before.failures + failed
            interval = outcome.interval
            if certificate.chosen is None and not self._parameters.prices_releases:
                interval = (0.0, 1.0)  # no route certifies these releases, and only claims pay for them
            if interval is None:
                sure: Certificate | None = certificate
                if failures:
                    asked = 1 << (outcome.asked - 1).bit_length()  # rounded up, so that few certificates are computed
                    sure = for_share(failure_share(failures, asked, self._parameters.queries))
                interval = self._interval(sure, outcome)
            entry = query.entry(outcome, self._mechanism.remaining(state), interval)
            after = GuardState(state, failures, before.corrected)
            text = after.to_text()
            self._last = text, after
            return text, entry

        return self._ledger.ask(
            self._id,
            query.key,
            query.shown,
            query.name,
            compute,
            client=query.known.client,
            quota=query.quota,
            since=query.since,
        )

    def _interval(self, certificate: Certificate | None, outcome: Outcome) -> tuple[float, float]:
        """Return the interval of an answer from a certificate."""
        if certificate is None:
            return 0.0, 1.0
        source: AnswerSource = "train" if outcome.source == "train" else "holdout"
        try:
            return certificate.interval(outcome.asked, outcome.hits, source, outcome.value)
        except InputError:
            pass
        raise LedgerDamaged(self._ledger.location, None, "The state of the guard cannot be read.")

    def evaluate_all(
        self,
        argument: str,
        asked: Sequence[Read],
        reserve: float,
    ) -> list[Answer]:
        """Answer queries that were fixed together: all in one transaction, or none."""
        mechanism = self._mechanism.lists()
        check_texts([query for query, _ in asked])
        known = [self.find(query) for query, _ in asked]
        if all(answer is not None for answer in known):
            return [answer for answer in known if answer is not None]
        whole = _whole("list", asked)
        self.find(whole)  # refuses a list that failed before
        new = [place for place, answer in enumerate(known) if answer is None]
        found = self._read_all(argument, [asked[place] for place in new], len(new), whole)
        readings = dict(zip(new, found, strict=True))

        def compute(text: str, positions: tuple[int, ...]) -> tuple[str, list[Entry]]:
            before = self._restored(text)
            check_labels(before, *(query for query, _ in asked))
            some = [(asked[k][0].train, readings[k]) for k in positions]
            state, outcomes = mechanism.step_all(before.mechanism, some, self._noise, reserve)
            left = mechanism.remaining(state)
            entries = [
                asked[k][0].entry(outcome, None if left is None else left + len(positions) - 1 - place)
                for place, (k, outcome) in enumerate(zip(positions, outcomes, strict=True))
            ]
            return replace(before, mechanism=state).to_text(), entries

        stored = self._ledger.ask_all(self._id, [as_asked(query) for query, _ in asked], compute)
        return [self._told(query, entry, repeated) for (query, _), (entry, repeated) in zip(asked, stored, strict=True)]

    def evaluate_best(
        self,
        argument: str,
        asked: Sequence[Read],
        reserve: float,
        greatest: bool,
    ) -> Answer:
        """Return the best value of some queries on the holdout and its candidate, as one entry."""
        mechanism, whole = self._mechanism.lists(), _whole("best", asked)
        check_texts([query for query, _ in asked])
        known = self.find(whole)
        if known is not None:
            return known
        readings = self._read_all(argument, asked, 1, whole)

        def compute(text: str) -> tuple[str, Entry]:
            before = self._restored(text)
            check_labels(before, *(query for query, _ in asked))
            some = [(query.train, reading) for (query, _), reading in zip(asked, readings, strict=True)]
            state, outcome, place = mechanism.step_best(before.mechanism, some, self._noise, reserve, greatest)
            entry = whole.about(asked[place][0].candidate).entry(outcome, mechanism.remaining(state))
            return replace(before, mechanism=state).to_text(), entry

        entry, repeated = self._ledger.ask(self._id, whole.key, whole.shown, whole.name, compute)
        return self._told(whole, entry, repeated)

    def _read_all(self, argument: str, asked: Sequence[Read], answers: int, whole: Query) -> list[Any]:
        """Compute all queries of a list on the holdout; a failure of one is charged once for the whole list."""
        refuse_if(self._mechanism.lists().refusal(self.state(), answers))
        scanned(*(read for _, read in asked))
        try:
            with suppress_warnings():
                bar = progress_bar(asked, doing="scores of the holdout", unit="queries")
                return [read() for _, read in bar]
        except BaseException as error:
            interrupted = isinstance(error, KeyboardInterrupt)
        _, repeated = self._fail(whole)
        if interrupted:
            if repeated:
                self._fail(whole.without_key())
            raise KeyboardInterrupt("A list was interrupted on the holdout and charged as an answer from the holdout.")
        raise InputError(argument, "one that failed on the holdout", "queries that work on both parts", FAILED)

    def decide(
        self,
        query: Query,
        plan: Callable[[State], Move[State, T]],
        read: Callable[[], Callable[[NoiseSource], T]],
        blank: T,
        least: float,
        gain: float,
    ) -> tuple[Entry, bool]:
        """Decide about a candidate, and store the decision."""
        from thresholdout.mechanisms.claims.gate_states import FREE, PROVED

        mechanism, asked = self._mechanism, as_asked(query)
        check_texts([query])
        stored = None if asked.key is None else self._ledger.find(self._id, asked.key, asked.client)
        if stored is not None:
            check_repeat(stored, query.shown)
            query.check(stored, repeated=True)
            return stored, True
        before = self.state(asked.client)
        refuse_if(mechanism.refusal(before) or mechanism.client_refusal(before, query.known))
        move = plan(before)
        make: Callable[[NoiseSource], T] = lambda noise: blank  # noqa: E731
        if move.evaluates:
            scanned(read)
            make, entry = self._computed("candidate", query, read)
            if entry is not None:
                query.check(entry, repeated=True)
                return entry, True

        def compute(text: str) -> tuple[str, Entry]:
            before = self._restored(text)
            refuse_if(mechanism.refusal(before.mechanism) or mechanism.client_refusal(before.mechanism, query.known))
            check_labels(before, query)
            after, verdict = move.made(before.mechanism, make(self._noise))
            claimed = (least if verdict in PROVED else query.limits[0], 0.0 if verdict == "worse" else query.limits[1])
            value = query.shown if verdict in FREE else gain
            left = mechanism.remaining(after)
            made = query.decided(
                verdict, claimed, value, after.asked, remaining=left, log_error_budget=after.log_error_budget
            )
            return replace(before, mechanism=after).to_text(), made

        entry, repeated = self._ledger.ask(
            self._id,
            asked.key,
            asked.train,
            asked.name,
            compute,
            client=asked.client,
            quota=asked.quota,
            since=asked.since,
        )
        query.check(entry, repeated)
        return entry, repeated


class LabelsCorrected(Exception):
    """Labels were corrected while a query was computed with the earlier ones; nothing was shown or charged."""


def check_labels(before: GuardState[Any], *queries: Query) -> None:
    """Refuse values that were computed with other labels than the guard's present ones."""
    if any(query.corrected != before.corrected for query in queries):
        raise LabelsCorrected


def check_texts(queries: Sequence[Query]) -> None:
    """Refuse texts that no ledger can store, before anything is computed on the holdout.

    A later refusal, in place of a failure or an answer, would be an outcome that keeps all of R (PROOFS.md, B2).
    """
    check_queries(map(as_asked, queries))
    for query in queries:
        check_short_texts(candidate=query.candidate)


def as_asked(query: Query) -> Asked:
    """Return a query in the ledger's form."""
    client = query.known.client
    return Asked(query.key, query.shown, query.name, client, query.quota, query.since)


def key_of_list(how: str, keys: Sequence[str | None], names: Sequence[str]) -> str | None:
    """Return the key of the query that represents a list; ``None`` if one of its queries has no key."""
    if not all(keys):
        return None
    digest = sha256(json.dumps([how, *keys, *(names if how == "best" else ())]).encode()).hexdigest()
    return ContentKey(MADE + digest) if any(isinstance(key, ContentKey) for key in keys) else digest


def _whole(how: str, asked: Sequence[Read]) -> Query:
    """Return the query that represents a list, with a key if all its queries have one."""
    first = asked[0][0]
    names = [query.candidate for query, _ in asked]
    key = key_of_list(how, [query.key for query, _ in asked], names)
    return first.standing_for(f"{how} of {len(asked)}: {first.name}", key)
