"""Kill processes that serve submissions, and send the same requests again; a program that tests start.

Run as ``python -m tests.thresholdout.service.killed_service DATABASE KILLS``. A forked process opens the service and
submits from five threads until it is killed at a random moment; the next one first sends again what had no answer, and
something that had one. What a process says goes through a pipe line by line, and outlives it. In the end everything is
sent once more, and the ledger is compared with all that was ever told.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from thresholdout.errors import WideAnswersWarning
from thresholdout.ledger import SQLLedger
from thresholdout.ledger.entry import Entry
from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.limits import Limits
from thresholdout.service.refusals import ServiceRefused

if TYPE_CHECKING:
    import pandas as pd

    from thresholdout.service.schemas import Principal, Submission

warnings.simplefilter("ignore", WideAnswersWarning)  # what answers are worth does not matter here

RECORDS, QUOTA = 400, 30
LABELS = np.random.default_rng(7).integers(0, 2, 2 * RECORDS)
LIMITS = Limits(at_once=6, failures_per_hour=10**6)
LINES = ("ann", "ann", "bob", "zoe", "eve")
"""Whose requests each thread sends; two threads send the same ones at the same time."""
REFUSED = (("quota", "few"), ("allowance", "duel"))
LATER = 3
"""Every so many requests are not waited for."""
ALSO = 5
"""Every so many requests are sent a second time under another Idempotency-Key."""


@dataclass(frozen=True, order=True)
class Request:
    """A request of a team: the number chooses the predictions, and `again` another Idempotency-Key for them."""

    holdout: str
    team: str
    number: int
    again: bool = False

    @property
    def key(self) -> str:
        """Its Idempotency-Key."""
        return f"{self.number}{' again' if self.again else ''}"

    @property
    def content(self) -> tuple[str, str, int]:
        """What is charged once."""
        return self.holdout, self.team, self.number

    @property
    def share(self) -> float:
        """Share of the records for which it is right; in comparisons the third one is the best of all."""
        if self.holdout != "duel":
            return 0.8
        return 0.3 * self.number if self.number <= 3 else (0.6, 0.3, 0.8)[self.number % 3]

    @property
    def expected(self) -> float:
        """The score, or the difference to the champion."""
        if self.holdout != "duel":
            return self.share
        return 0.3 if self.number <= 3 else self.share - 0.9

    def predictions(self) -> pd.DataFrame:
        """Return predictions that are right for their share of the records."""
        import pandas as pd

        rng = np.random.default_rng(self.number)
        wrong = rng.permutation(RECORDS) >= round(self.share * RECORDS)
        known = LABELS[RECORDS:]
        ids = [f"{self.holdout} {number}" for number in range(RECORDS, 2 * RECORDS)]
        return pd.DataFrame({"id": ids, "prediction": np.where(wrong, 1 - known, known)})


def requests_of(thread: int, first: int) -> Iterator[Request]:
    """Return what a thread sends from a number on."""
    team = LINES[thread]
    for number in itertools.count(first):
        if team == "zoe":
            yield Request("duel", team, number)
        elif team == "eve":
            yield Request("few", team, number)
        else:
            yield Request("open", team, number)
            if number % ALSO == 0:
                yield Request("open", team, number, again=True)


@dataclass
class Journal:
    """All that was ever sent and told.

    Attributes
    ----------
    begun : dict
        Requests that were sent, in order.
    told : dict
        What each content was told; of comparisons, each request.
    refused : dict
        Codes of refusals.
    repeats : int
        Answers that were given again.
    """

    begun: dict[Request, None] = field(default_factory=dict)
    told: dict[Request, list[object]] = field(default_factory=dict)
    refused: dict[Request, str] = field(default_factory=dict)
    repeats: int = 0

    def take(self, line: str) -> None:
        """Take notice of a line, and compare it with all earlier ones."""
        what, request_said, told = json.loads(line)
        request = Request(*request_said)
        if what == "begins":
            self.begun[request] = None
        elif what == "told":
            assert self.told.setdefault(request, told) == told, (request, self.told[request], told)
            if request.holdout != "duel":
                other = Request(*request.content, again=not request.again)
                assert self.told.get(other, told) == told, (request, self.told[other], told)
            assert self.refused.pop(request, None) != "quota", request  # what may be told can last again
        elif what == "repeated":
            self.repeats += 1
        elif what == "refused":
            assert request not in self.told, (request, told)
            assert (told, request.holdout) in REFUSED, (request, told)
            self.refused[request] = told
        else:
            assert what == "later", line

    def open(self, thread: int) -> list[Request]:
        """Return what a thread has to send again: what nobody was told, and one that somebody was told."""
        mine = [request for request in self.begun if request.team == LINES[thread]]
        settled = [request for request in mine if request in self.told]
        return [
            *(request for request in mine if request not in self.told and request not in self.refused),
            *random.sample(settled, min(1, len(settled))),
        ]

    def next_number(self, thread: int) -> int:
        """Return the first number that a thread has not sent."""
        return 1 + max((request.number for request in self.begun if request.team == LINES[thread]), default=0)


def say(what: str, request: Request, told: object = None) -> None:
    line = json.dumps([what, [request.holdout, request.team, request.number, request.again], told])
    os.write(1, f"{line}\n".encode())


def send(service: EvaluationService, by: Principal, request: Request, *, wait: bool) -> Submission | None:
    """Send one request, and say what became of it."""
    say("begins", request)
    ask = service.compare if request.holdout == "duel" else service.submit
    patience = None if wait or request.number % LATER else 0.0
    try:
        found = ask(
            by,
            request.holdout,
            request.predictions(),
            idempotency_key=request.key,
            expected=request.expected,
            wait=patience,
        )
    except ServiceRefused as refused:
        say("refused", request, refused.code)
        return None
    if found.state == "running":
        say("later", request)
    else:
        assert found.state == "answered", found
        if found.repeated:
            say("repeated", request)
        say("told", request, [found.query, found.value, found.low, found.high, found.verdict])
    return found


def prepare(database: str) -> dict[str, str]:
    """Make the service with its holdouts and teams; return the teams' keys."""
    import pandas as pd

    service = EvaluationService.open(database, limits=LIMITS)
    admin = service.authenticate(service.first_admin_token())
    for name, quota in (("open", None), ("few", QUOTA), ("duel", None)):
        table = pd.DataFrame({"id": [f"{name} {number}" for number in range(2 * RECORDS)], "y": LABELS})
        service.create_holdout(admin, name, table[:RECORDS], table[RECORDS:], label="y", quota=quota)
    keys = {team: service.new_token(admin, "team", team)[0] for team in dict.fromkeys(LINES)}
    service.close()
    return keys


def serve(database: str, keys: dict[str, str], plans: list[Iterable[Request]], *, wait: bool = False) -> None:
    """Open the service, and send what each thread has to; what a plan has no end of ends with the process."""
    service = EvaluationService.open(database, limits=LIMITS)

    def work(thread: int) -> None:
        by = service.authenticate(keys[LINES[thread]])
        for request in plans[thread]:
            send(service, by, request, wait=wait)

    threads = [threading.Thread(target=stopping, args=(work, thread)) for thread in range(len(plans))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    service.close()


def stopping(work: Callable[[int], None], thread: int) -> None:
    """Do a thread's work; whatever fails ends the process, and the program says so."""
    try:
        work(thread)
    except BaseException:
        traceback.print_exc()
        os._exit(3)


def forked(action: Callable[..., object], *given: object, **named: object) -> tuple[int, int]:
    """Fork a process that does something; return its number, and where its lines come out."""
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        _child(action, writer, given, named)
    os.close(writer)
    return process, reader


def _child(action: Callable[..., object], writer: int, given: tuple[object, ...], named: dict[str, object]) -> NoReturn:
    os.dup2(writer, 1)
    code = 3
    try:
        action(*given, **named)
        code = 0
    except BaseException:
        traceback.print_exc()
    os._exit(code)


def lines_of(reader: int, begun: bytes = b"") -> list[str]:
    """Return the whole lines that a process says until it has ended, after what was read of them."""
    with os.fdopen(reader, "rb") as rest:
        said = begun + rest.read()
    return said.decode().split("\n")[:-1]


def first_lines(reader: int, count: int) -> bytes:
    """Wait until a process has said so many lines."""
    said = b""
    while said.count(b"\n") < count:
        more = os.read(reader, 4096)
        assert more, f"a process ended by itself: {said.decode()}"
        said += more
    return said


def kill_one(database: str, keys: dict[str, str], journal: Journal) -> None:
    """Serve until a random moment, kill, and take notice of what was told."""
    plans = [
        itertools.chain(journal.open(thread), requests_of(thread, journal.next_number(thread)))
        for thread in range(len(LINES))
    ]
    process, reader = forked(serve, database, keys, plans)
    said = first_lines(reader, random.randrange(80))  # the speed of the machine does not matter
    time.sleep(0.02 * random.random())
    os.kill(process, signal.SIGKILL)
    lines = lines_of(reader, said)
    _, status = os.waitpid(process, 0)
    assert status == signal.SIGKILL, f"a process ended by itself: {status}"
    for line in lines:
        journal.take(line)


def check(database: str, journal: Journal, *, settled: bool) -> int:
    """Compare the ledger with what was told; return the number of entries."""
    charged: dict[str, list[Entry]] = {}
    with SQLLedger(database, must_exist=True) as ledger:
        for guard in ledger.guards():
            entries = ledger.entries(guard)
            assert ledger.verify(guard, ledger.checkpoint(guard)) == len(entries)
            for client in {entry.client for entry in entries}:
                own = ledger.entries(guard, client=client)
                assert ledger.count(guard, client) == len(own)
                charged[client] = own
    contents: dict[str, set[object]] = defaultdict(set)
    for request in journal.begun:
        contents[request.team].add(request.content)
    for request, (query, value, low, high, _) in journal.told.items():
        if query is not None:
            (stored,) = (entry for entry in charged[request.team] if entry.query == query)
            assert request.holdout == "duel" or (stored.value, stored.low, stored.high) == (value, low, high)
    for team, own in charged.items():
        assert len({entry.key for entry in own}) == len(own) <= len(contents[team])
    if settled:
        answered = {
            team: {told[0] for request, told in journal.told.items() if request.team == team} for team in charged
        }
        for team, own in charged.items():
            assert {entry.query for entry in own} == answered[team] - {None}, team
        assert len(charged["ann"]) == len(contents["ann"])
        assert len(charged["bob"]) == len(contents["bob"])
        assert len(charged["eve"]) == min(QUOTA, len(contents["eve"]))
    return sum(map(len, charged.values()))


def main(database: str, kills: str) -> None:
    """Kill so many times, and print kills, entries, answers that were given again, and refusals."""
    random.seed(0)
    process, reader = forked(lambda: os.write(1, f"{json.dumps((prepare(database), list(sys.modules)))}\n".encode()))
    keys, modules = json.loads(lines_of(reader)[0])
    assert os.waitpid(process, 0)[1] == 0
    for module in modules:  # so that no process has to
        with suppress(ImportError):
            import_module(module)
    journal = Journal()
    for number in range(int(kills)):
        kill_one(database, keys, journal)
        if number % 20 == 19:
            check(database, journal, settled=False)
    for _ in range(2):  # what nobody was told is told now, and then all of it is the same
        process, reader = forked(
            serve, database, keys, [[one for one in journal.begun if one.team == team] for team in LINES], wait=True
        )
        for line in lines_of(reader):
            journal.take(line)
        assert os.waitpid(process, 0)[1] == 0
    assert set(journal.begun) == set(journal.told) | set(journal.refused)
    entries = check(database, journal, settled=True)
    print(kills, entries, journal.repeats, len(journal.refused))


if __name__ == "__main__":
    main(*sys.argv[1:])
