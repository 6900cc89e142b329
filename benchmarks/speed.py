"""What is waited for, in one run: each row beside a peer, in turn, as a ratio; or in seconds, where there is no peer.

Run with ``python -m benchmarks.speed``, about four minutes. Times are the processor's, and the least of some runs.
"""

from __future__ import annotations

import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.guard import ask_in_file, import_seconds, losses, losses_of_pairs, numbers, right_or_wrong
from graphs.numerics.arguments import IntArray

__all__ = ["main"]

Graph: TypeAlias = tuple[IntArray, int]

COLD = """
import numpy as np
from thresholdout import Thresholdout
rng = np.random.default_rng(0)
X, y = rng.random((2000, 3)), rng.integers(0, 2, 2000)
guard = Thresholdout((X[:1000], y[:1000]), train=(X[1000:], y[1000:]))
guard.ask(rng.random(1000) < 0.9, rng.random(1000) < 0.9)
"""


def least(repeats: int, *runs: Callable[[], object]) -> list[float]:
    """Return the least processor seconds of each of some runs, which take turns."""
    found = [float("inf")] * len(runs)
    for _ in range(repeats):
        for place, run in enumerate(runs):
            start = time.process_time()
            run()
            found[place] = min(found[place], time.process_time() - start)
    return found


def peak(run: Callable[[], object]) -> str:
    """Return the memory that a run takes for a while."""
    tracemalloc.start()
    run()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return f"{most / 2**20:,.1f} MiB"


def queries() -> Iterator[tuple[str, float, float, str, str]]:
    """Yield the rows of single queries."""
    for n, repeats in ((1_000_000, 15), (10_000_000, 5)):
        guard, train, holdout = losses(n)
        ask, means = partial(guard.ask, train, holdout), lambda a=train, b=holdout: (np.mean(a), np.mean(b))
        ask()
        here, peer = least(repeats, ask, means)
        yield f"`ask`, fractions, {n:,} records", here, peer, "np.mean of both parts", peak(ask)
    guard, train, holdout = right_or_wrong(1_000_000)
    number, both = partial(guard.ask, 0.8, holdout), partial(guard.ask, train, holdout)
    both()
    here, peer = least(15, number, both)
    yield "`ask(number, booleans)`, 1,000,000 records", here, peer, "ask(booleans, booleans)", peak(number)
    guard, train, holdout = losses_of_pairs(1_000_000)
    ask, pairs = partial(guard.ask, train, holdout), np.arange(1_000_000) // 2
    ask()
    here, peer = least(5, ask, lambda: [np.bincount(pairs, part) for part in (train, holdout)])
    yield "`ask` with groups of 2, fractions, 1,000,000 records", here, peer, "bincount of both parts", peak(ask)


def forest() -> Iterator[tuple[str, float, float, str, str]]:
    """Yield the row of a model that is predicted with, and recognised by its content."""
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import accuracy_score

    from thresholdout import Thresholdout

    X, y = make_classification(4000, 20, random_state=0)
    first, second = (X[:2000], y[:2000]), (X[2000:], y[2000:])
    models = [RandomForestClassifier(100, random_state=seed).fit(*first) for seed in range(8)]
    guard = Thresholdout(second, train=first, queries=1000)
    asked = iter(models)
    guard.score(next(asked), train_values=0.9)
    here, peer = least(
        6,
        lambda: guard.score(next(asked), train_values=0.9),
        lambda: accuracy_score(second[1], models[0].predict(second[0])),
    )
    yield "`score(model, train_values=)`, a forest, 2,000 records", here, peer, "predict and score", ""


def lists() -> Iterator[tuple[str, float, float, str, str]]:
    """Yield the rows of lists about columns in files, and of making such a guard."""
    import polars as pl

    from thresholdout import Thresholdout

    n, rng = 1_000_000, np.random.default_rng(0)
    columns = [f"m{place}" for place in range(8)]
    with tempfile.TemporaryDirectory() as folder:
        for part, start in (("holdout", 0), ("train", n)):
            y = rng.integers(0, 2, n, dtype=np.int8)
            made = {name: np.where(rng.random(n) < 0.9, y, 1 - y).astype(np.int8) for name in columns}
            table = pl.DataFrame({"id": np.arange(start, start + n), "y": y, **made})
            table.write_parquet(Path(folder) / f"{part}.parquet")
        scans = {part: pl.scan_parquet(Path(folder) / f"{part}.parquet") for part in ("holdout", "train")}

        def made_guard() -> Thresholdout:
            return Thresholdout((scans["holdout"], "y"), train=(scans["train"], "y"), queries=10**4)

        def own(means: Callable[[str], Any]) -> None:
            for scan in scans.values():
                scan.select([means(name) for name in columns]).collect(engine="streaming")

        begun = time.perf_counter()
        guard = made_guard()
        yield "making a guard of lazy frames, 1,000,000 records, s", time.perf_counter() - begun, 1.0, "", ""
        for metric, of in (
            ("accuracy", lambda name: (pl.col(name) == pl.col("y")).mean()),
            ("f1", lambda name: ((pl.col(name) == 1) & (pl.col("y") == 1)).sum().alias(name)),
        ):
            spent = []
            for run in (
                lambda metric=metric: guard.score_all(
                    columns, metric, keys=[f"{metric} {rng.random()}" for _ in columns]
                ),
                lambda of=of: own(of),
            ):
                run()
                times = []
                for _ in range(5):
                    begun = time.perf_counter()
                    run()
                    times.append(time.perf_counter() - begun)
                spent.append(min(times))
            yield f"`score_all` of 8 columns, {metric}, Polars", spent[0], spent[1], "8 aggregates of both parts", ""


def models_of_dependence() -> Iterator[tuple[str, float, float, str, str]]:
    """Yield the seconds that large models take."""
    from graphs import MarkovChain, MarkovField

    def chain() -> MarkovChain:
        return MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=1_000_000)

    yield "chain of 1,000,000: inflation, s", least(2, lambda: chain().variance_inflation())[0], 1.0, "", ""
    yield "chain of 1,000,000: effective records, s", least(2, lambda: chain().effective_records())[0], 1.0, "", ""
    for name, graph in spatial_graphs():  # the cost as the work grows, and with no order of the nodes
        for bound in ("variance_inflation", "leakage"):
            given = (0.01,) if bound == "leakage" else ()

            def run(bound: str = bound, given: tuple[float, ...] = given, graph: Graph = graph) -> object:
                return getattr(MarkovField.ising(graph, 0.2), bound)(*given)

            title = "leakage at 0.01" if given else "inflation"
            small = graph[1] <= 40_000  # tracing the memory of more nodes takes minutes
            yield f"{name}: {title}, s", least(1, run)[0], 1.0, "", peak(run) if small else ""


def spatial_graphs() -> Iterator[tuple[str, Graph]]:
    """Yield grids, the last with shuffled labels, and a graph of close points: edges and the number of nodes."""
    from scipy.spatial import cKDTree

    rng = np.random.default_rng(0)
    for side in (100, 200, 316):
        place = np.arange(side**2).reshape(side, side)
        steps = [(place[:, :-1], place[:, 1:]), (place[:-1], place[1:])]
        edges = np.concatenate([np.stack([first.ravel(), second.ravel()], axis=1) for first, second in steps])
        yield f"grid of {side} by {side}", (edges, side**2)
    yield "the same, shuffled labels", (rng.permutation(side**2)[edges], side**2)
    n, degree = 100_000, 3.8
    close = cKDTree(rng.random((n, 2))).query_pairs((degree / np.pi / n) ** 0.5, output_type="ndarray")
    yield f"random geometric graph, mean degree {degree:g}", (close, n)


def starts() -> Iterator[tuple[str, float, float, str, str]]:
    """Yield the rows of a ledger's commit, a guard that is made, and a cold start."""
    from thresholdout import Thresholdout

    bare, ask = ask_in_file(1000)
    yield "durable `ask`, 1,000 values, one thread", ask, bare, "bare commit", ""
    features, labels = numbers(1_000_000, 4)
    half = len(labels) // 2
    made = partial(Thresholdout, (features[:half], labels[:half]), train=(features[half:], labels[half:]))
    yield "making a guard of arrays, 1,000,000 records, s", least(3, made)[0], 1.0, "", peak(made)
    here, peer = import_seconds([COLD, "import sklearn.linear_model"], 5)
    yield "first answer from a cold start", here, peer, "import of scikit-learn's linear models", ""


def submissions(rounds: int = 3, each: int = 40) -> Iterator[tuple[str, float, float, str, str]]:
    """Yield the row of submissions over HTTP: the processor time of a service, beside that of a bare handler."""
    import httpx

    from benchmarks.service_load.bare import bare
    from benchmarks.service_load.served import Served, prepared, submitted
    from benchmarks.service_load.tables import SHARE, TYPES, files, labelled

    parts = labelled(4000)
    with tempfile.TemporaryDirectory() as name:
        database = str(Path(name) / "service.db")
        keys = prepared(database, parts, 1)
        spent = [0.0, 0.0]
        with Served(database) as served, bare(Path(name), parts[1]) as peer, httpx.Client(base_url=peer.url) as client:
            for turn in range(rounds + 1):  # the first one loads modules, and does not count
                sent = files(parts[1], "csv", each, turn)
                begun = served.seconds(), peer.seconds()
                submitted(served.url, keys, [sent], TYPES["csv"])
                for body in sent:
                    client.post("/submissions", params={"expected": SHARE}, content=body).raise_for_status()
                ended = served.seconds(), peer.seconds()
                if turn:
                    spent = [total + end - start for total, end, start in zip(spent, ended, begun, strict=True)]
            memory = f"{served.memory():,.0f} MB"
    here, beside = (total / (rounds * each) for total in spent)
    yield "submission of 4,000 rows over HTTP", here, beside, "a bare handler with one commit", memory


def main() -> None:
    """Print the table."""
    print("| | here | peer | ratio, or seconds | beside | memory |\n|---|---|---|---|---|---|")
    for rows in (queries, forest, starts, submissions, lists, models_of_dependence):
        for name, here, peer, beside, memory in rows():
            shown = f"{peer * 1e3:,.2f} ms" if beside else ""
            print(f"| {name} | {here * 1e3:,.2f} ms | {shown} | {here / peer:.2f} | {beside} | {memory} |", flush=True)


if __name__ == "__main__":
    main()
