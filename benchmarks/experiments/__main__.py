"""Run the experiments: ``python -m benchmarks.experiments [--full] [--only NAME ...] [--jobs 2] [--folder DIR]``.

Pictures, tables and numbers go into ``benchmarks/experiments/results``; single cells are kept in ``--folder``, and a
run that was interrupted goes on there. ``--scaling`` measures a sweep with one worker and with two.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import inspect
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.experiments.outcome import RESULTS, Outcome, Size
from benchmarks.experiments.scaling import scaling

EXPERIMENTS = (
    "feature_selection",
    "dependent",
    "coverage",
    "sharper",
    "side_by_side",
    "auc",
    "agents",
    "search_choices",
    "budgets",
    "networks",
)
CELLS = Path(__file__).parent / ".cells"


def run(name: str, size: Size, jobs: int = 1, folder: Path | None = None) -> Outcome:
    """Run one experiment by its name; what its cells gave is kept by name, size and the experiment's source."""
    module = importlib.import_module(f"benchmarks.experiments.{name}")
    if folder is not None:
        version = hashlib.sha256(inspect.getsource(module).encode()).hexdigest()[:8]
        folder = folder / f"{name}-{size}-{version}"
    outcome: Outcome = module.run(size, jobs, folder)
    return outcome


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.experiments", description=__doc__)
    parser.add_argument("--full", action="store_true", help="the full sizes; hours")
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=EXPERIMENTS, metavar="NAME")
    parser.add_argument("--jobs", type=int, default=2, help="number of workers")
    parser.add_argument("--folder", type=Path, default=CELLS, help="where single cells are kept")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where pictures, tables and numbers go")
    parser.add_argument("--scaling", action="store_true", help="measure a sweep with one worker and with two, only")
    chosen = parser.parse_args(arguments)
    if chosen.scaling:
        sweep, bare = scaling()
        print(f"two workers are {sweep:.2f} times as fast as one; two bare processes {bare:.2f} times")
        return
    size: Size = "full" if chosen.full else "quick"
    for name in chosen.only:
        start = time.perf_counter()
        print(f"\n## {name}\n", flush=True)
        outcome = run(name, size, chosen.jobs, chosen.folder)
        outcome.write(chosen.results)
        print(f"{outcome.text()}\n\n({time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
