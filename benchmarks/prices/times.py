"""How long a query and a plan take."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ledger import bare_commit, bare_connection, microseconds
from graphs import Groups
from thresholdout import SparseVector, Thresholdout, plan

__all__ = ["asking", "planning"]


def asking(n: int, repeats: int) -> dict[str, float]:
    """Return median microseconds of a bare commit, of Algorithm 1 by hand, and of the default, in turn.

    Every query is another one: values that are right about 0.9 of the records, a few more or less.
    """
    rng = np.random.default_rng(0)
    holdout, train = np.arange(float(n)), np.arange(float(n), 3.0 * n)
    values = [(rng.random(2 * n) < 0.9, rng.random(n) < 0.9) for _ in range(50)]
    by_hand = {"queries": 10**6, "mechanism": SparseVector(0.05, 0.0005, budget=10**5)}
    with tempfile.TemporaryDirectory() as folder, closing(bare_connection(Path(folder) / "bare.db")) as bare:

        def guard(name: str, **settings: Any) -> Callable[[], object]:
            made = Thresholdout(holdout, train=train, ledger=Path(folder) / f"{name}.db", **settings)
            asked = iter(range(10**9))
            return lambda: made.ask(*values[next(asked) % len(values)], binary=True)

        def in_memory(**settings: Any) -> Callable[[], object]:
            made = Thresholdout(holdout, train=train, **settings)
            asked = iter(range(10**9))
            return lambda: made.ask(*values[next(asked) % len(values)], binary=True)

        actions = {
            "a bare durable commit": bare_commit(bare),
            "the sparse vector by hand, in a file": guard("hand", **by_hand),
            "the default, in a file": guard("default"),
            "the sparse vector by hand, in memory": in_memory(**by_hand),
            "the default, in memory": in_memory(),
        }
        return {name: float(np.median(times)) for name, times in microseconds(actions, repeats).items()}


def planning() -> dict[str, float]:
    """Return seconds of processor time for planning and opening guards, once each."""
    holdout = np.arange(10_000.0)
    calls: dict[str, Callable[[], object]] = {
        "Thresholdout(holdout)": lambda: Thresholdout(holdout),
        "Thresholdout(holdout, queries=1000)": lambda: Thresholdout(holdout, queries=1000),
        "plan(10_000, queries=100)": lambda: plan(10_000, queries=100),
        "plan(10_000, width=0.02)": lambda: plan(10_000, width=0.02),
        "plan(queries=100, width=0.02)": lambda: plan(queries=100, width=0.02),
        "plan(Groups, queries=100)": lambda: plan(Groups(np.repeat(np.arange(2000), 5)), queries=100),
    }
    found = {}
    for name, call in calls.items():
        begun = time.process_time()
        call()
        found[name] = time.process_time() - begun
    return found
