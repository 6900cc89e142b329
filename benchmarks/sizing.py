"""What a service needs: measured costs of submissions, and queues with these costs at a million submissions a day.

First the costs are measured: processor time to read a table and ask (Parquet, by rows), to open a holdout that is not
in memory, the time of a durable commit here, and bytes that an answer takes in the store. Then a peak hour is
simulated: holdouts are asked by Zipf's law, and the most asked one ends in this hour, so that as many again come to it
in the second half. Workers have one processor each; a transaction answers submissions for one holdout.

Run: ``python -m benchmarks.sizing``, in a folder on the disk to measure, five minutes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.service_load.queues import Store, Workers, answered, arrivals, read
from benchmarks.service_load.tables import SHARE, TYPES, files, labelled
from thresholdout.ledger import SQLLedger
from thresholdout.service.http.uploads import read_upload
from thresholdout.service.limits import Limits
from thresholdout.service.prediction_guard import PredictionGuard

__all__ = ["Costs", "Found", "capacity", "hour", "main", "measured", "workers_needed"]

ROWS = (4_000, 100_000, 1_000_000)
HOLDOUTS, DAY, PEAK, LATE = 10_000, 86_400.0, 3.0, 1.0
"""Holdouts, seconds, the peak hour's rate over the day's mean, and seconds that 99 % may wait."""

COMMIT, SLOTS, MANY = 0.005, 16, 20_000
"""Seconds of a commit on a data centre's disk, transactions that a server does at once, and submissions simulated."""


@dataclass(frozen=True)
class Costs:
    """What was measured.

    Attributes
    ----------
    work : tuple of float
        Processor seconds to read and score a table, by `ROWS`.
    opening : tuple of float
        Processor seconds to open a holdout that is not in memory, by `ROWS`.
    commit : float
        Seconds of a durable commit with one answer.
    each : float
        Seconds that each further answer of a commit adds.
    stored : float
        Bytes that an answer takes in the store.
    """

    work: tuple[float, ...]
    opening: tuple[float, ...]
    commit: float
    each: float
    stored: float


def measured(folder: Path) -> Costs:
    """Measure the costs on this machine, with a SQLite file in a folder."""
    found = [_of_rows(folder, rows, 40 if rows < 10_000 else 5) for rows in ROWS]
    commit, each = _commits(folder)
    return Costs(tuple(one[0] for one in found), tuple(one[1] for one in found), commit, each, _stored(folder))


def _of_rows(folder: Path, rows: int, count: int) -> tuple[float, float]:
    """Return processor seconds to read and score a table, and to open its holdout."""
    path, limits = folder / f"{rows}.db", Limits(most_rows=2 * rows)
    train, holdout = labelled(rows)
    PredictionGuard.create(path, train, holdout, label="y", allow_duplicates=True)
    sent = files(holdout, "parquet", 1 + min(count, 8))
    opened = _seconds(lambda: PredictionGuard.open(path).certificate, 3)
    guard = PredictionGuard.open(path)
    guard.ask(read_upload(sent[0], TYPES["parquet"], limits), expected=SHARE, client="warm")
    turns = iter(range(count))

    def ask() -> None:
        turn = next(turns)
        table = read_upload(sent[1 + turn % (len(sent) - 1)], TYPES["parquet"], limits)
        guard.ask(table, expected=SHARE, client=f"team {turn}")

    return _seconds(ask, count), opened


def _seconds(act: Callable[[], object], times: int) -> float:
    """Return the median of processor seconds of an action."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        act()
        taken.append(time.process_time() - start)
    return float(np.median(taken))


def _commits(folder: Path, times: int = 300) -> tuple[float, float]:
    """Return the seconds of a query's durable commit, and the processor time of its statements."""
    from benchmarks.ledger import Query

    with SQLLedger(folder / "commits.db") as ledger:
        query = Query(ledger, times)
        start, begun = time.perf_counter(), time.process_time()
        for _ in range(times):
            query()
        return (time.perf_counter() - start) / times, (time.process_time() - begun) / times


def _stored(folder: Path, count: int = 2000) -> float:
    """Return the bytes that an answer takes, with its indexes."""
    from benchmarks.ledger import Query

    path = folder / "stored.db"
    sizes: list[int] = []
    for _ in range(2):
        with closing(SQLLedger(path)) as ledger:
            query = Query(ledger, count, len(sizes) * count)
            for _ in range(count):
                query()
        sizes.append(sum(file.stat().st_size for file in folder.glob("stored.db*")))
    return (sizes[1] - sizes[0]) / count


# The queues


@dataclass(frozen=True)
class Found:
    """What came out of an hour: quantiles of the time beyond a submission's own work, and how busy workers are."""

    median: float
    late: float
    busy: float


def hour(
    rate: float, work: np.ndarray, workers: Workers, store: Store, *, seconds: float = 3600.0, seed: int = 0
) -> Found:
    """Simulate so many seconds at a rate; the most asked holdout gets as many again in the second half."""
    drawn = arrivals(np.random.default_rng(seed), rate, seconds, holdouts=HOLDOUTS, skew=1.0, work=work, surge=rate)
    ready, readers = read(drawn, workers)
    waited = answered(ready, drawn.holdouts, store, readers) - drawn.times - drawn.work
    busy = float(drawn.work.sum() / (workers.count * drawn.times[-1]))
    return Found(float(np.median(waited)), float(np.quantile(waited, 0.99)), busy)


def workers_needed(rate: float, work: np.ndarray, workers: Workers, store: Store, *, seconds: float) -> int | None:
    """Return the fewest workers with which 99 % are answered in time; None where no number of workers is enough."""
    low = max(1, int(0.5 * rate * float(np.mean(work))))
    high = low
    while hour(rate, work, replace(workers, count=high), store, seconds=seconds).late > LATE:
        low, high = high + 1, 2 * high
        if high > 100 * (1.0 + rate * float(np.mean(work))):
            return None
    while low < high:
        middle = (low + high) // 2
        if hour(rate, work, replace(workers, count=middle), store, seconds=seconds).late > LATE:
            low = middle + 1
        else:
            high = middle
    return high


def capacity(fits: Callable[[float], bool], least: float = 1.0, most: float = 1e5) -> float:
    """Return the highest rate that fits, to a tenth."""
    while most > 1.1 * least:
        middle = (least * most) ** 0.5
        least, most = (middle, most) if fits(middle) else (least, middle)
    return least


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        costs = measured(Path(folder))
    print("| rows | read and ask, ms | open, ms |\n|---|---|---|")
    for rows, work, opening in zip(ROWS, costs.work, costs.opening, strict=True):
        print(f"| {rows:,} | {1e3 * work:.1f} | {1e3 * opening:.1f} |")
    print(
        f"\nA commit takes {1e3 * costs.commit:.2f} ms, {1e3 * costs.each:.2f} of it processor time; an answer "
        f"{costs.stored:,.0f} bytes.\n"
    )
    mixes = {
        "4,000 rows": np.full(100, costs.work[0]),
        "mixed: 9 % of 100,000, 1 % of 1,000,000": np.array(
            [costs.work[0]] * 90 + [costs.work[1]] * 9 + [costs.work[2]]
        ),
    }
    _needs(costs, mixes)
    _bottlenecks(costs, mixes["4,000 rows"])


def _needs(costs: Costs, mixes: dict[str, np.ndarray]) -> None:
    print("| submissions a day | tables | peak, a second | in a commit | workers | busy | waited, median s | 99 % s |")
    print("|---" * 8 + "|")
    for day in (1e6, 1e7, 1e8):
        for batch in (1, 1000):
            for name, work in mixes.items():
                rate = PEAK * day / DAY
                seconds, store = min(3600.0, MANY / rate), Store(COMMIT, costs.each, batch=batch, slots=SLOTS)
                workers = Workers(1, opening=costs.opening[0], cached=1000)
                needed = workers_needed(rate, work, workers, store, seconds=seconds)
                begun = f"| {day:.0e} | {name} | {rate:.0f} | {'one' if batch == 1 else 'all of a worker'} |"
                if needed is None:
                    print(begun, "no number | | | |", flush=True)
                    continue
                found = hour(rate, work, replace(workers, count=needed), store, seconds=seconds)
                print(begun, f"{needed} | {found.busy:.2f} | {found.median:.3f} | {found.late:.3f} |", flush=True)


def _bottlenecks(costs: Costs, work: np.ndarray) -> None:
    """Print how much each part can take where the others have room."""

    def most(work: np.ndarray, workers: Workers, store: Store) -> float:
        def fits(rate: float) -> bool:
            return hour(rate, work, workers, store, seconds=min(600.0, MANY / rate)).late <= LATE

        return capacity(fits)

    idle, one = np.zeros(1), Workers(1)
    rows = {
        "one worker, every holdout open": most(work, one, Store(0.0)),
        "one worker, 100 of 10,000 open": most(work, Workers(1, 100, costs.opening[0]), Store(0.0)),
        "one SQLite file for all, one answer in a commit": most(idle, one, Store(COMMIT, costs.each, slots=1)),
        "the most asked holdout, one answer in a commit": most(idle, one, Store(COMMIT, costs.each)),
        "the same, all that wait in one commit": most(idle, one, Store(COMMIT, costs.each, batch=10**6)),
        "one server, no holdout asked more than others": SLOTS / (COMMIT + costs.each),
    }
    print("\n| part | submissions a second | a day, at the peak | times 1e6 a day |\n|---|---|---|---|")
    for name, rate in rows.items():
        day = rate * DAY / PEAK
        print(f"| {name} | {rate:,.0f} | {day:.1e} | {day / 1e6:,.1f} |", flush=True)


if __name__ == "__main__":
    main()
