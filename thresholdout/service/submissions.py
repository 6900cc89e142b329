"""The steps of a submission: read, query or recognise, store, and show.

The ledger ensures that nothing is charged twice: the key of a query is made of its content, for its team, so a repeated
request finds the same entry after any interruption. The service's row holds the Idempotency-Key and the state. It is
stored before the query where the answer depends on other state of the service (a champion; the count of a blind phase),
or where the request does not wait for the answer.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from thresholdout.errors import BudgetExhausted, InputError, LedgerClosed, ThresholdoutError
from thresholdout.service.chained_answers import ChainedAnswers, comparison_key
from thresholdout.service.refusals import ServiceRefused, details_of
from thresholdout.service.schemas import Principal, Submission
from thresholdout.service.settings import check_request_key, check_text
from thresholdout.service.standings import served_metric
from thresholdout.service.store.submissions import Champion, Kind, SubmissionRow, Submissions, Verdict, submission_id
from thresholdout.service.views import shown

if TYPE_CHECKING:
    import pandas as pd

    from thresholdout.ledger import Ledger
    from thresholdout.ledger.entry import Entry
    from thresholdout.scoring.metrics import Metric
    from thresholdout.service.guard_cache import GuardCache
    from thresholdout.service.limits import Failures, Limits
    from thresholdout.service.prediction_guard import PredictionGuard
    from thresholdout.service.prediction_reader import Reading
    from thresholdout.service.receipts.issuing import Receipts
    from thresholdout.service.store.holdouts import HoldoutRow, Holdouts
    from thresholdout.service.store.submissions import Champions

__all__ = ["LEASE", "Desk", "Running", "WorkerPool"]

# Seconds for which a running row is valid.
LEASE: Final = 10.0

# Seconds after which it is extended.
_AGAIN: Final = 3.0


class Running:
    """The submissions that this process works on while no request waits for them."""

    def __init__(self, submissions: Submissions) -> None:
        self._submissions = submissions
        self._work: dict[str, Future[Any]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    def add(self, id: str, work: Future[Any]) -> None:
        """Extend a submission's row until its work is done."""
        with self._lock:
            self._work[id] = work
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._repeat, name="running submissions", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Stop extending rows."""
        self._stopped.set()
        thread = self._thread
        if thread is not None:
            thread.join()

    def _repeat(self) -> None:
        """Extend rows again and again until none is left."""
        while not self._stopped.wait(_AGAIN):
            with self._lock:
                self._work = {id: work for id, work in self._work.items() if not work.done()}
                ids = list(self._work)
                if not ids:
                    self._thread = None
                    return
            try:
                self._submissions.put_off(ids, time.time() + LEASE)
            except ThresholdoutError as error:
                _log.warning("what is running was not stored: %s", type(error).__name__)


Result = TypeVar("Result")


class WorkerPool:
    """Threads for at most `at_once` jobs at the same time; `most_waiting` more may wait."""

    def __init__(self, at_once: int, most_waiting: int) -> None:
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="submissions")
        self._room = threading.BoundedSemaphore(at_once + most_waiting)
        self._stopping = False

    def start(self, job: Callable[[], Result]) -> Future[Result]:
        """Run a job as soon as a thread is free."""
        if self._stopping:
            raise ServiceRefused("stopping", retry_after=5)
        if not self._room.acquire(blocking=False):
            raise ServiceRefused("busy", retry_after=1)
        try:
            future = self._threads.submit(job)
        except RuntimeError:  # it was stopped a moment ago
            self._room.release()
            raise ServiceRefused("stopping", retry_after=5) from None
        future.add_done_callback(lambda _: self._room.release())
        return future

    def stop(self) -> None:
        """Start no further job, and wait for running ones; drop waiting ones."""
        self._stopping = True
        self._threads.shutdown(wait=True, cancel_futures=True)


# Seconds after which a program may repeat a request that is refused permanently.
_EXHAUSTED: Final = 86400

_DAY: Final = 86400.0

_log: Final = logging.getLogger("thresholdout.service")

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class _Request:
    """A team's request, checked as far as that needs no guard."""

    by: Principal
    holdout: HoldoutRow
    kind: Kind
    id: str
    key: str
    name: str
    expected: float | None
    received: float


@dataclass(frozen=True, slots=True)
class _Read:
    """A request with its joined table, its guard, and the row to store."""

    request: _Request
    guard: PredictionGuard
    metric: Metric
    reading: Reading
    row: SubmissionRow


class Desk:
    """Intake of submissions."""

    def __init__(
        self,
        ledger: Ledger,
        guards: GuardCache,
        holdouts: Holdouts,
        submissions: Submissions,
        champions: Champions,
        failures: Failures,
        answers: ChainedAnswers,
        proofs: Receipts,
        limits: Limits,
    ) -> None:
        self._ledger = ledger
        self._guards = guards
        self._holdouts = holdouts
        self._submissions = submissions
        self._incumbents = champions
        self._failures = failures
        self._answers = answers
        self._proofs = proofs
        self._pool = WorkerPool(limits.at_once, limits.most_waiting)
        self._running = Running(submissions)

    def take(
        self,
        by: Principal,
        holdout: HoldoutRow,
        kind: Kind,
        predictions: pd.DataFrame,
        *,
        idempotency_key: str,
        expected: float | None,
        title: str,
        wait: float | None,
    ) -> Submission:
        """Answer a submission, or return it as running after `wait` seconds."""
        key = check_request_key(idempotency_key)
        id = submission_id(holdout.number, by.team, key)
        name = check_text("title", title)
        expected = _check_expected(holdout, kind, expected)
        request = _Request(by, holdout, kind, id, key, name, expected, time.time())
        self._failures.check(by)
        read: Future[_Read] = Future()
        table = [predictions]
        del predictions
        # The list lets the worker drop the table as soon as it is read.
        answer = self._pool.start(lambda: self._work(request, table, read))
        answer.add_done_callback(lambda _: read.cancel())  # in case no thread begins it
        try:
            row = read.result().row
            try:
                return answer.result(wait)
            except NotYet:
                return answer.result() if answer.done() else self._later(request, row, answer)
        except CancelledError:
            raise ServiceRefused("stopping", retry_after=5) from None

    def close(self) -> None:
        """Accept nothing further, and finish running submissions."""
        self._pool.stop()
        self._running.stop()

    def _later(self, request: _Request, row: SubmissionRow, answer: Future[Submission]) -> Submission:
        """Store that a submission is running, for a request that no longer waits."""
        self._running.add(row.id, answer)
        return self._shown(request, self._stored(replace(row, state="running", until=time.time() + LEASE)))

    def _stored(self, row: SubmissionRow) -> SubmissionRow:
        """Store the state of a submission; refuse it if its key was stored for other content meanwhile."""
        return _own(row, self._submissions.put(row))

    def _work(self, request: _Request, table: list[pd.DataFrame], told: Future[_Read]) -> Submission:
        """Process a submission, and report its reading as soon as it is done."""
        try:
            read = self._read(request, table.pop())  # no frame of this function holds it
        except BaseException as error:
            told.set_exception(error)
            raise
        told.set_result(read)
        try:
            return self._answer(read)
        except ServiceRefused as refused:
            found = self._submissions.find(read.row.id)
            if found is not None and found.content == read.row.content:
                stored = self._submissions.put(replace(read.row, state="refused", refusal=refused.code))
                if not self._now(request).shows(None):
                    return self._shown(request, stored)
            raise
        except Exception as error:
            _log.error("a submission failed: %s", type(error).__name__)
            # The row counts as interrupted at once, so that a repeated request finishes it.
            self._submissions.put_off([read.row.id], 0.0)
            raise

    def _read(self, request: _Request, predictions: pd.DataFrame) -> _Read:
        """Check and join a table; a refusal here depends on identities and format alone."""
        guard = self._guards.get(request.holdout.identity)
        metric = served_metric(request.holdout.settings.metric)
        try:
            reading = guard.read(predictions, metric)
        except InputError as error:
            self._failures.count(request.by)
            raise ServiceRefused("bad_table", **details_of(error)) from None
        row = SubmissionRow(
            id=request.id,
            holdout=request.holdout.number,
            team=request.by.team,
            name=request.name,
            kind=request.kind,
            content=_digest(request.kind, metric.name, reading.digest, repr(request.expected)),
            state="running",
            received=request.received,
            until=request.received + LEASE,
        )
        known = self._submissions.find(request.id)
        if known is not None and known.content != row.content:
            raise ServiceRefused("key_used")
        return _Read(request, guard, metric, reading, row if known is None else replace(known, until=row.until))

    def _answer(self, read: _Read) -> Submission:
        """Answer a submission with its reading."""
        request, row = read.request, read.row
        settled = row.state == "answered" or (row.state == "refused" and not self._now(request).shows(None))
        if settled:
            return replace(self._shown(request, row), repeated=row.state == "answered")
        answered, repeated = self._compared(read) if row.kind == "comparison" else self._scored(read)
        receipt = self._proofs.of(request.holdout, answered, request.key, read.reading.digest)
        found = self._shown(request, self._stored(replace(answered, receipt=receipt)))
        return replace(found, repeated=repeated and found.state == "answered")

    def _scored(self, read: _Read) -> tuple[SubmissionRow, bool]:
        """Query a score; return the row with its answer, and whether that was stored before."""
        request, metric = read.request, read.metric
        known = self._known(read, read.row.content)
        row = self._counted(self._check_open(read, known), read.row)
        answer = self._asked(
            request,
            lambda quota, since: read.guard.ask(
                read.reading,
                metric,
                expected=_expected(read, request.expected),
                name=_title(read, known, metric.name),
                key=row.content,
                client=row.team,
                quota=quota,
                since=since,
            ),
        )
        low, high = answer.interval
        answered = replace(row, state="answered", query=answer.query, value=answer.value, low=low, high=high)
        return replace(answered, refusal=None), answer.repeated

    def _compared(self, read: _Read) -> tuple[SubmissionRow, bool]:
        """Compare with the team's champion; return the row with the answer, and whether that was stored before."""
        row = read.row
        if row.against is None:
            row = replace(row, against=self._incumbents.last(row.holdout, row.team))
        row = self._counted(self._now(read.request), row)
        if row.against == 0:
            self._check_open(read)
            if self._succeed(read, row):
                return replace(row, state="answered", verdict="first", refusal=None), False
            row = replace(row, against=self._incumbents.last(row.holdout, row.team))
        assert row.against is not None
        champion = self._incumbents.find(row.holdout, row.team, row.against)
        assert champion is not None
        is_the_same = champion.content == read.reading.digest
        if is_the_same and champion.submission == row.id:  # this request was cut off after it became the first
            return replace(row, state="answered", verdict="first", refusal=None), True
        if is_the_same:
            same = replace(row, state="answered", value=0.0, low=0.0, high=0.0, verdict="not settled", refusal=None)
            return same, False
        return self._compared_with(read, row, champion)

    def _compared_with(self, read: _Read, row: SubmissionRow, champion: Champion) -> tuple[SubmissionRow, bool]:
        """Query whether predictions are better than a champion, and replace it then."""
        decides = read.request.holdout.settings.feedback == "verdict"
        key = comparison_key(row.content, champion.content)
        known = self._known(read, key)
        self._check_open(read, known)
        stored = self._stored(row)
        if stored.against != row.against:  # the same request, sent twice, got its champion meanwhile
            return self._compared(replace(read, row=stored))
        row = stored
        ask = self._decided if decides else self._differed
        answered, repeated = ask(read, row, champion, key, known)
        if answered.verdict == "better":
            self._succeed(read, row)
        return answered, repeated

    def _differed(
        self, read: _Read, row: SubmissionRow, champion: Champion, key: str, known: Entry | None
    ) -> tuple[SubmissionRow, bool]:
        """Query the difference to a champion."""
        metric = read.metric
        found = self._asked(
            read.request,
            lambda quota, since: read.guard.compare(
                read.reading,
                self._decoded(read, champion),
                metric,
                expected=read.request.expected,
                name=_title(read, known, f"{metric.name}, difference"),
                key=key,
                client=row.team,
                quota=quota,
                since=since,
            ),
        )
        low, high = found.interval
        answered = replace(row, state="answered", query=found.answer.query, value=found.value, low=low, high=high)
        return replace(answered, verdict=found.verdict, refusal=None), found.answer.repeated

    def _decided(
        self, read: _Read, row: SubmissionRow, champion: Champion, key: str, known: Entry | None
    ) -> tuple[SubmissionRow, bool]:
        """Query the one bit whether predictions are certified to be better than a champion."""
        metric = read.metric
        found = self._asked(
            read.request,
            lambda quota, since: read.guard.propose(
                read.reading,
                self._decoded(read, champion),
                metric,
                name=_title(read, known, f"{metric.name}, proposal"),
                key=key,
                client=row.team,
                quota=quota,
                since=since,
            ),
        )
        verdict: Verdict = "better" if found else "not settled"
        return replace(row, state="answered", query=found.query, verdict=verdict, refusal=None), found.repeated

    def _succeed(self, read: _Read, row: SubmissionRow) -> bool:
        """Make a submission the champion after the one that it was compared with; return False if another one is."""
        assert row.against is not None
        champion = Champion(row.against + 1, row.id, read.reading.digest)
        text = base64.b64encode(read.reading.encoded).decode()
        try:
            self._ledger.put_document(read.guard.identity, _document(read.reading.digest), text)
        except LedgerClosed:
            raise _exhausted() from None
        return self._incumbents.add(row.holdout, row.team, champion)

    def _known(self, read: _Read, key: str) -> Entry | None:
        """Return the ledger's entry of a query, for an interrupted or repeated request."""
        return read.guard.stored(key, read.row.team)

    def _decoded(self, read: _Read, champion: Champion) -> Reading:
        """Return the predictions of a champion."""
        text = self._ledger.document(read.guard.identity, _document(champion.content))
        return read.guard.decoded(base64.b64decode(text or ""))

    def _counted(self, holdout: HoldoutRow, row: SubmissionRow) -> SubmissionRow:
        """Return a submission; in a blind phase store and count it first, before any step that depends on answers."""
        if holdout.shown is None:
            return row
        settings = holdout.settings
        stored = self._submissions.put_within(row, settings.quota, _since(settings.quota_days))
        if stored is None:
            raise self._beyond_quota(holdout, row.team)
        return _own(row, stored)

    def _check_open(self, read: _Read, known: Entry | None = None) -> HoldoutRow:
        """Return the current holdout; refuse new queries to a closed one."""
        holdout = self._now(read.request)
        if holdout.phase == "closed" and known is None:
            raise ServiceRefused("closed")
        return holdout

    def _asked(self, request: _Request, ask: Callable[[int | None, float | None], Found]) -> Found:
        """Query a guard; translate its refusals into the service's."""
        settings = request.holdout.settings
        try:
            return ask(settings.quota, _since(settings.quota_days))
        except BudgetExhausted as error:
            if error.what == "quota":
                raise self._beyond_quota(request.holdout, request.by.team) from None
            if error.what == "allowance":
                raise ServiceRefused("allowance", retry_after=_EXHAUSTED, permanent=True) from None
        except LedgerClosed:
            pass
        raise _exhausted()

    def _beyond_quota(self, holdout: HoldoutRow, team: str) -> ServiceRefused:
        """Return the refusal of a team that has used its quota, with the time of its next submission."""
        quota, days = holdout.settings.quota, holdout.settings.quota_days
        if days is None:
            return ServiceRefused("quota", retry_after=_EXHAUSTED, limit=quota, permanent=True)
        first = self._submissions.oldest(holdout.number, team, time.time() - days * _DAY)
        wait = 60.0 if first is None else first + days * _DAY - time.time()
        return ServiceRefused("quota", retry_after=max(1, math.ceil(wait)), limit=quota, days=days)

    def _now(self, request: _Request) -> HoldoutRow:
        """Return the current row of a request's holdout."""
        return self._holdouts.find(request.holdout.name) or request.holdout

    def _shown(self, request: _Request, row: SubmissionRow) -> Submission:
        """Return the submission as its team may see it now."""
        told = self._answers.of(request.holdout, [row])[0]
        return shown(self._now(request), self._proofs.current(request.holdout, told))


def _own(row: SubmissionRow, stored: SubmissionRow) -> SubmissionRow:
    """Return the stored row of a submission; refuse other content."""
    if stored.content != row.content:
        raise ServiceRefused("key_used")
    return stored


def _exhausted() -> ServiceRefused:
    """Return the refusal of a holdout whose budget is used."""
    return ServiceRefused("exhausted", retry_after=_EXHAUSTED, permanent=True)


def _since(days: float | None) -> float | None:
    """Return the time from which submissions count."""
    return None if days is None else time.time() - days * _DAY


def _title(read: _Read, known: Entry | None, asked: str) -> str:
    """Return the name of a query: its first name, if it was asked before."""
    if known is None:
        return read.request.name
    return "" if known.name == asked else known.name.removesuffix(f" ({asked})")


def _document(content: str) -> str:
    """Return the ledger's name of stored predictions."""
    return f"predictions {content}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _expected(read: _Read, expected: float | None) -> float | None:
    """Return the anticipated score, or the middle of the range for a mechanism that ignores it."""
    if expected is not None or read.guard.guard.parameters.anticipates:
        return expected
    lower, upper = read.metric.bounds
    return lower + 0.5 * (upper - lower)


def _check_expected(holdout: HoldoutRow, kind: Kind, expected: object) -> float | None:
    """Return a team's anticipated score or difference; refuse one outside its range."""
    if expected is None:
        return None
    lower, upper = served_metric(holdout.settings.metric).bounds
    if kind == "comparison":
        lower, upper = lower - upper, upper - lower
    number = isinstance(expected, int | float) and not isinstance(expected, bool)
    if not number or not lower <= float(expected) <= upper:  # type: ignore[arg-type]
        raise ServiceRefused("bad_request", argument="expected", lowest=lower, highest=upper)
    return float(expected)  # type: ignore[arg-type]
