"""Kill servers under load: clients try again by themselves, and each submission has one answer and one charge."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.service_load.served import Served, prepared
from benchmarks.service_load.tables import SHARE, files, labelled
from tests.thresholdout.ledger.postgres_server import Server
from thresholdout.client.client import Client
from thresholdout.client.received import Submission
from thresholdout.client.tables import Table
from thresholdout.ledger import SQLLedger

RECORDS, TEAMS, DIFFERENT = 200, 4, 2000
PATIENCE = 300.0


class Clients:
    """Teams that submit one table after another until they are stopped, whatever becomes of the server."""

    def __init__(self, url: str, keys: Sequence[str], tables: Sequence[bytes]) -> None:
        self.told: list[dict[int, Submission]] = [{} for _ in keys]
        self.failed: list[BaseException] = []
        self._url, self._keys, self._tables = url, keys, tables
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(team,)) for team in range(len(keys))]
        for thread in self._threads:
            thread.start()

    def _work(self, team: int) -> None:
        try:
            with Client(self._url, self._keys[team], patience=PATIENCE) as client:
                for number in itertools.count():
                    if self._stopping.is_set():
                        return
                    self.told[team][number] = self.submit(client, number)
        except BaseException as error:
            self.failed.append(error)

    def submit(self, client: Client, number: int) -> Submission:
        """Submit a table, and wait for its answer."""
        return client.submit("load", Table(self._tables[number]), expected=SHARE, wait=PATIENCE)

    def answers(self) -> int:
        """Return how many answers there are."""
        return sum(map(len, self.told))

    def stop(self) -> None:
        """Let each team end with the answer that it waits for."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        if self.failed:
            raise self.failed[0]


def killed(database: str, kills: int, workers: int = 1) -> None:
    """Kill servers at random moments, and compare the ledger with what clients were told."""
    chosen = random.Random(0)
    train, holdout = labelled(RECORDS)
    keys, tables = prepared(database, (train, holdout), TEAMS), files(holdout, "csv", DIFFERENT)
    served = Served(database, workers=workers)
    url, port = served.url, served.port
    clients = Clients(url, keys, tables)
    try:
        for _ in range(kills):
            after = clients.answers() + chosen.randrange(1, 20)
            while clients.answers() < after and not clients.failed:
                time.sleep(0.001)
            served.kill()
            served = Served(database, workers=workers, port=port)
        clients.stop()
        check_again(url, keys, clients)
    finally:
        served.kill()
    check_stored(database, clients)


def check_again(url: str, keys: Sequence[str], clients: Clients) -> None:
    """Send everything once more: it has the answer that it had."""
    for key, told in zip(keys, clients.told, strict=True):
        with Client(url, key, patience=PATIENCE) as client:
            for number, first in told.items():
                again = clients.submit(client, number)
                assert again.repeated
                assert (again.id, again.query, again.low, again.high) == (first.id, first.query, first.low, first.high)


def check_stored(database: str, clients: Clients) -> None:
    """Compare the ledger with what was told: one entry for each submission, and no other."""
    with SQLLedger(database, must_exist=True) as ledger:
        (guard,) = ledger.guards()
        assert ledger.verify(guard, ledger.checkpoint(guard)) == clients.answers()
        for team, told in enumerate(clients.told):
            stored = ledger.entries(guard, client=f"team-{team}")
            assert [(one.query, one.value, one.low, one.high) for one in stored] == [
                (one.query, one.value, one.low, one.high) for one in told.values()
            ]


@pytest.mark.slow
def test_clients_of_a_server_that_is_killed_are_charged_once(tmp_path: Path) -> None:
    killed(str(tmp_path / "leaderboard.db"), 4)


@pytest.mark.slow
def test_clients_of_two_workers_that_are_killed_are_charged_once(server: Server) -> None:
    killed(server.new_database(), 2, workers=2)
