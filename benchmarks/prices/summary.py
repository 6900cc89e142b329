"""The prices that a page of the documentation quotes, with their standard errors, in a file beside this one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.experiments.outcome import Number, mean_number
from benchmarks.prices.candidates import simulated
from benchmarks.prices.sessions import Run, checked, listed, searched

__all__ = ["RESULTS", "known", "quoted", "write"]

RESULTS = Path(__file__).parent / "summary.json"
RECORDS = (300, 2000, 20_000)
QUERIES = (20, 100)


def cells(seeds: int, records: tuple[int, ...] = RECORDS) -> Iterator[tuple[str, list[Run]]]:
    """Yield the sessions of each cell of the table: as many records train as are held out, or three times as many."""
    for n in records:
        yield f"look_{n}", [listed(list(simulated(n, n, 1, seed)), n, n, 0.0) for seed in range(seeds)]
        for m in QUERIES:
            yield f"list_{m}_{n}", [listed(list(simulated(n, n, m, seed)), n, n, 0.0) for seed in range(seeds)]
            for ratio in (1, 3):
                guards = (searched(simulated(n, ratio * n, m, seed), n, ratio * n, m) for seed in range(seeds))
                yield f"guard{ratio}_{m}_{n}", list(guards)
            yield f"checked_{m}_{n}", [checked(n, n, m, seed) for seed in range(seeds)]


def quoted(seeds: int, records: tuple[int, ...] = RECORDS) -> dict[str, Number]:
    """Return the mean price and the mean half length of each cell, and how many sessions missed some truth."""
    found: dict[str, Number] = {}
    missed = sessions = 0
    for name, runs in cells(seeds, records):
        found[f"price.ratio_{name}"] = mean_number([run.price for run in runs])
        found[f"price.half_{name}"] = mean_number([float(np.mean(run.half_lengths)) for run in runs])
        missed += sum(run.missed > 0 for run in runs)
        sessions += len(runs)
    return found | {"price.missed": Number(missed), "price.sessions": Number(sessions)}


def write(seeds: int, path: Path = RESULTS) -> None:
    """Measure, and write the file."""
    numbers = {
        key: {"se": float(f"{number.se:.3g}"), "value": float(f"{number.value:.6g}")}
        for key, number in sorted(quoted(seeds).items())
    }
    path.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


def known() -> dict[str, dict[str, float]]:
    """Return what the file says."""
    found: dict[str, dict[str, float]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found
