"""What a service costs beside the same work in one process: submissions a second, health, memory, leaderboards.

Eight clients submit tables of 4,000 rows, each from a thread of one process, and wait for the answers, which are stored
durably by then; a service runs in processes of its own on the same cores. Beside it, in turn, as many threads do the
same work in one process, without HTTP, keys and Idempotency-Keys: parse, join, ask, commit. Ratios are of medians.
Meanwhile another process asks for /ready every 20 ms.

Run: ``python -m benchmarks.service``, in a folder on the disk to measure, ten minutes.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import get_args

import httpx
import numpy as np
import pandas as pd

from benchmarks.service_load.served import Load, Served, health_times, prepared, submitted, together
from benchmarks.service_load.tables import SHARE, TYPES, Format, files, labelled
from tests.thresholdout.ledger import postgres_server
from thresholdout.guard.query import Query
from thresholdout.ledger.cipher import KEY_VARIABLE
from thresholdout.ledger.database import Cursor
from thresholdout.ledger.entry import Asked, Entry
from thresholdout.mechanisms import Known
from thresholdout.noise.sources import SystemNoise
from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.http.uploads import read_upload
from thresholdout.service.limits import Limits
from thresholdout.service.prediction_guard import PredictionGuard
from thresholdout.service.store.submissions import SubmissionRow

__all__ = ["in_process", "main"]

RECORDS, CLIENTS, EACH, ROUNDS = 4000, 8, 25, 5
LIMITS = Limits()


def in_process(database: str, parts: tuple[pd.DataFrame, pd.DataFrame], format: Format, seed: int) -> float:
    """Return submissions a second of threads that do the work themselves."""
    guard = PredictionGuard.create(database, *parts, label="y", allow_duplicates=True)
    sent = [files(parts[1], format, EACH, 100 * seed + team) for team in range(CLIENTS)]

    def work(team: int) -> None:
        for body in sent[team]:
            guard.ask(read_upload(body, TYPES[format], LIMITS), expected=SHARE, client=f"team-{team}")

    work_of_all = [(team,) for team in range(CLIENTS)]
    return CLIENTS * EACH / together(work, work_of_all)


def rates(name: str, new_database: Callable[[], str], workers: int) -> None:
    """Print submissions a second of both, by format, and what /ready took meanwhile."""
    parts = labelled(RECORDS)
    database = new_database()
    keys = prepared(database, parts, CLIENTS)
    with Served(database, workers=workers) as served:
        for format in get_args(Format):
            plain: list[float] = []
            loads: list[Load] = []
            health: list[float] = []
            spent = 0.0
            for turn in range(ROUNDS):
                plain.append(in_process(new_database(), parts, format, turn))
                offset = 1_000_000 if format == "csv" else 2_000_000
                sent = [files(parts[1], format, EACH, offset + 100 * turn + team) for team in range(CLIENTS)]
                begun = served.seconds()
                with health_times(served.url) as times:
                    loads.append(submitted(served.url, keys, sent, TYPES[format]))
                spent += served.seconds() - begun
                health += times
            rate, base = float(np.median([load.rate for load in loads])), float(np.median(plain))
            waited = np.concatenate([load.times for load in loads])
            print(
                f"| {name} | {format} | {base:.0f} | {rate:.0f} | {rate / base:.2f} "
                f"| {1e3 * spent / (ROUNDS * CLIENTS * EACH):.1f} | {1e3 * np.median(waited):.0f} "
                f"| {1e3 * np.quantile(waited, 0.99):.0f} | {1e3 * np.median(health):.1f} "
                f"| {1e3 * np.quantile(health, 0.99):.1f} |",
                flush=True,
            )


def memory(folder: Path, clients: tuple[int, ...] = (1, 8, 32), records: int = 200_000) -> None:
    """Print the memory of a service while more and more clients send large tables at the same time."""
    parts = labelled(records)
    database = str(folder / "memory.db")
    keys = prepared(database, parts, max(clients))
    with Served(database) as served:
        print(f"\n| clients with {records:,} rows of CSV each | MB at most | MB before |\n|---|---|---|")
        for count in clients:
            sent = [[body] for body in files(parts[1], "csv", count, count)]
            before, most = served.memory(), 0.0
            with ThreadPoolExecutor(1) as pool:
                load = pool.submit(submitted, served.url, keys[:count], sent, TYPES["csv"])
                while not load.done():
                    most = max(most, served.memory())
                    time.sleep(0.05)
                load.result()
            print(f"| {count} | {most:.0f} | {before:.0f} |", flush=True)


def large(folder: Path, records: int = 1_000_000) -> None:
    """Print what one submission of a million rows takes."""
    parts = labelled(records)
    database = str(folder / "large.db")
    keys = prepared(database, parts, 1)
    sent = files(parts[1], "parquet", 4)
    with Served(database, options=["--wait", "60"]) as served:
        print("\n| submission of 1,000,000 rows, Parquet | s | processor s of the service |\n|---|---|---|")
        for number, body in enumerate(sent):
            begun = served.seconds()
            load = submitted(served.url, keys, [[body]], TYPES["parquet"])
            what = "first, opens the holdout" if number == 0 else "another"
            print(f"| {what} | {load.times[0]:.2f} | {served.seconds() - begun:.2f} |", flush=True)


def leaderboard(folder: Path, submissions: int = 100_000, teams: int = 300) -> None:
    """Print how long a leaderboard and a history take when there are so many submissions."""
    database = str(folder / "leaderboard.db")
    keys = prepared(database, labelled(200), teams)
    _filled(database, submissions, teams)
    with Served(database) as served:
        print(f"\n| {submissions:,} submissions of {teams} teams | first, ms | median, ms | 99 %, ms |")
        print("|---|---|---|---|")
        client = httpx.Client(base_url=served.url, headers={"Authorization": f"Bearer {keys[0]}"}, timeout=120)
        for what, path in (
            ("leaderboard", "/v1/holdouts/load/leaderboard"),
            ("page of the leaderboard", "/holdouts/load"),
            ("own history", "/v1/holdouts/load/submissions"),
            ("holdout", "/v1/holdouts/load"),
        ):
            times = []
            for _ in range(50):
                start = time.perf_counter()
                answer = client.get(path)
                times.append(1e3 * (time.perf_counter() - start))
                assert answer.status_code == 200, (path, answer.status_code)
            print(f"| {what} | {times[0]:.0f} | {np.median(times):.0f} | {np.quantile(times, 0.99):.0f} |", flush=True)


def _filled(database: str, count: int, teams: int) -> None:
    """Put answers of many teams into a holdout's history, and their submissions beside them."""
    names, team = [field.name for field in fields(SubmissionRow)], np.random.default_rng(0).integers(0, teams, count)
    service, entries = EvaluationService.open(database), []
    (identity,) = service.ledger.guards()
    guard = PredictionGuard.open(service.ledger, identity).guard
    values, mechanism, noise = np.arange(guard._records.n) % 20 < 17, guard._mechanism, SystemNoise()

    def answered(text: str, some: range) -> tuple[str, list[Entry]]:
        before, found = guard._engine._restored(text), []
        state = before.mechanism
        for number in some:
            known = Known(binary=True, client=f"team-{team[number]}")
            reading = mechanism.read(values, values.size, (0.0, 1.0), "values", known)
            state, outcome = mechanism.step(state, SHARE, reading, noise)
            query = Query(SHARE, (0.0, 1.0), "accuracy", f"{number:032x}", known)
            found.append(query.entry(outcome, None, outcome.interval))
        return replace(before, mechanism=state).to_text(), found

    for start in range(0, count, 1000):
        some = range(start, min(start + 1000, count))
        asked = [Asked(f"{number:032x}", SHARE, "accuracy", f"team-{team[number]}") for number in some]
        stored = service.ledger.ask_all(identity, asked, lambda text, _, some=some: answered(text, some))  # type: ignore[misc]
        entries += [entry for entry, _ in stored]
    turns = np.zeros(teams, dtype=np.int64)
    add = f"INSERT INTO service_submissions ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"

    def put(cursor: Cursor) -> None:
        for number in range(count):
            turns[team[number]] += 1
            row = SubmissionRow(
                f"{number:032x}", 1, f"team-{team[number]}", "", "score", f"{number}", "answered", 1e9, 1e9,
                query=number + 1, value=entries[number].value, low=entries[number].low, high=entries[number].high,
                place=number + 1, turn=int(turns[team[number]]),
            )  # fmt: skip
            cursor.execute(add, tuple(getattr(row, name) for name in names))

    service.ledger.database.transact(put)
    service.close()


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder, made = Path(name), iter(range(10**6))
        print(
            "| database | tables | in one process, a second | service | ratio | processor ms of each | median ms "
            "| 99 % ms | /ready, median ms | 99 % ms |"
        )
        print("|---" * 10 + "|", flush=True)
        rates("SQLite", lambda: str(folder / f"{next(made)}.db"), 1)
        if postgres_server.missing() is None:
            os.environ[KEY_VARIABLE] = postgres_server.KEY
            server = postgres_server.Server()
            try:
                rates("PostgreSQL, 2 workers", server.new_database, 2)
            finally:
                server.stop()
                del os.environ[KEY_VARIABLE]
        memory(folder)
        large(folder)
        leaderboard(folder)


if __name__ == "__main__":
    main()
