"""Run the slow tests, file by file, until a deadline: ``python -m tests.slow_run --minutes 45 --workers 2``.

No file is started after the deadline, and those that were left out are printed. The order rotates with the commit, so
that a machine on which the deadline cuts the run short gets to every file in some run. The exit status is 1 if any
file fails, also where others were left out.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

PYTEST = [sys.executable, "-m", "pytest", "-q", "-m", "slow"]
NO_TESTS = 5  # the exit status of pytest


@dataclass(frozen=True)
class Ended:
    """A file that was run: whether its tests passed, the seconds that they took, and what was printed."""

    file: str
    passed: bool
    seconds: float
    output: str


def slow_files(folder: str) -> list[str]:
    """Return the files below a folder that have slow tests, sorted."""
    done = subprocess.run([*PYTEST, "--collect-only", folder], capture_output=True, text=True)
    if done.returncode not in (0, NO_TESTS):
        raise SystemExit(done.stdout + done.stderr)
    return sorted({line.split("::")[0] for line in done.stdout.splitlines() if "::" in line})


def commit() -> str:
    """Return the hash of the commit that is checked out, or 0 where there is none."""
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    except FileNotFoundError:
        return "0"
    return done.stdout.strip() or "0"


def rotated(files: Sequence[str], hash_of_commit: str) -> list[str]:
    """Return the files, beginning at one that the commit's hash chooses."""
    first = int(hash_of_commit, 16) % len(files) if files else 0
    return [*files[first:], *files[:first]]


def run_file(file: str) -> Ended:
    """Run the slow tests of one file."""
    start = time.monotonic()
    done = subprocess.run([*PYTEST, file], capture_output=True, text=True)
    return Ended(file, done.returncode in (0, NO_TESTS), time.monotonic() - start, done.stdout + done.stderr)


def run_until(
    files: Sequence[str],
    seconds: float,
    workers: int,
    run: Callable[[str], Ended] = run_file,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[Ended], list[str]]:
    """Run files in turn, and start none when the seconds are over; return those that ended and those left out."""
    end = clock() + seconds

    def next_one(file: str) -> Ended | str:
        if clock() >= end:
            return file
        ended = run(file)
        print(f"{'passed' if ended.passed else 'FAILED'} {ended.seconds:7.1f} s  {file}", flush=True)
        return ended

    with ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(next_one, files))
    ended = [result for result in results if isinstance(result, Ended)]
    return ended, [result for result in results if isinstance(result, str)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the slow tests, print what happened, and return the exit status."""
    parser = argparse.ArgumentParser(description="Run the slow tests, file by file, until a deadline.")
    parser.add_argument("--minutes", type=float, default=45.0, help="no file is started after them")
    parser.add_argument("--workers", type=int, default=2, help="files at a time")
    parser.add_argument("--folder", default="tests", help="where the tests are")
    options = parser.parse_args(arguments)
    ended, left = run_until(rotated(slow_files(options.folder), commit()), 60 * options.minutes, options.workers)
    failed = [one for one in ended if not one.passed]
    for one in failed:
        print(f"\n{one.file}\n{one.output}")
    print(f"{len(ended) - len(failed)} files passed, {len(failed)} failed, {len(left)} left out")
    for file in left:
        print(f"left out: {file}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
