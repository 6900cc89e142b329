"""Run the slow tests: ``python -m tests.slow_run --minutes 45 --workers 2``.

Short files share a process and begin, since they have most tests; the others follow, the longest first, so that all
workers end at about the same time. `slow_times.tsv` has the seconds of each file, and ``--keep`` writes them anew. No
process is started after the deadline. Files for which the kept times leave no room come last, other ones each day.
Files that were left out are printed. The exit status is 1 if any test fails, also where files were left out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

PYTEST = [sys.executable, "-m", "pytest", "-q", "-m", "slow"]
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Workers use all cores: more threads of linear algebra wait for each other, and double its processor time."""
NO_TESTS = 5  # the exit status of pytest
TIMES = Path(__file__).with_name("slow_times.tsv")
UNKNOWN = 20.0  # seconds that a file is taken to need
STRIDE = 7  # places by which the files that come last move on each day: some ten are last at a time
SHARED = 100.0  # seconds that the files of one process need together; imports take some seconds of each process


@dataclass(frozen=True)
class Ended:
    """Files that one process ran: whether their tests passed, the seconds of each, and what was printed."""

    files: tuple[str, ...]
    passed: bool
    seconds: Mapping[str, float]
    output: str


def slow_files(folders: Sequence[str]) -> list[str]:
    """Return the files that have slow tests, sorted: those below folders, or all."""
    done = subprocess.run([*PYTEST, "--collect-only", *folders], capture_output=True, text=True)
    if done.returncode not in (0, NO_TESTS):
        raise SystemExit(done.stdout + done.stderr)
    return sorted({line.split("::")[0] for line in done.stdout.splitlines() if "::" in line})


def kept_times(path: Path = TIMES) -> dict[str, float]:
    """Return the seconds that each file took when they were kept."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return {file: float(seconds) for seconds, file in rows}


def processes(files: Sequence[str], times: Mapping[str, float]) -> list[tuple[str, ...]]:
    """Return the files of each process: those of several files, and then the longest first."""
    longest = sorted(files, key=lambda file: (-times.get(file, UNKNOWN), file))
    found: list[tuple[str, ...]] = []
    total = SHARED
    for file in longest:
        seconds = times.get(file, UNKNOWN)
        if total + seconds > SHARED:
            found.append(())
            total = 0.0
        found[-1] += (file,)
        total += seconds
    return sorted(found, key=lambda shared: len(shared) == 1)


def by_turns(
    groups: Sequence[tuple[str, ...]], times: Mapping[str, float], seconds: float, day: int
) -> list[tuple[str, ...]]:
    """Put last files for which the seconds of all workers leave no room: other ones each day."""
    over = sum(times.get(file, UNKNOWN) for group in groups for file in group) - seconds
    alone = sorted(group for group in groups if len(group) == 1)
    first = day * STRIDE % max(1, len(alone))
    late: list[tuple[str, ...]] = []
    for group in alone[first:] + alone[:first]:
        if over <= 0.0:
            break
        late.append(group)
        over -= times.get(group[0], UNKNOWN)
    return sorted(groups, key=lambda group: group in late)


def run_files(files: tuple[str, ...]) -> Ended:
    """Run the slow tests of some files in one process."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        start = time.monotonic()
        # xunit1 names the file of each test
        done = subprocess.run(
            [*PYTEST, "-o", "junit_family=xunit1", f"--junit-xml={report}", *files],
            capture_output=True,
            text=True,
            env=os.environ | ONE_THREAD,
        )
        rest = time.monotonic() - start
        seconds = dict.fromkeys(files, 0.0)
        for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
            if case.get("file") in seconds:
                seconds[case.attrib["file"]] += float(case.attrib["time"])
                rest -= float(case.attrib["time"])
    seconds[files[0]] += rest  # imports, and fixtures of modules
    return Ended(files, done.returncode in (0, NO_TESTS), seconds, done.stdout + done.stderr)


def run_until(
    groups: Sequence[tuple[str, ...]],
    seconds: float,
    workers: int,
    run: Callable[[tuple[str, ...]], Ended] = run_files,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[Ended], list[str]]:
    """Run groups in turn, and start none when the seconds are over; return those that ended and the files left out."""
    end = clock() + seconds

    def next_one(files: tuple[str, ...]) -> Ended | tuple[str, ...]:
        if clock() >= end:
            return files
        ended = run(files)
        for file in files:
            print(f"{'passed' if ended.passed else 'FAILED'} {ended.seconds[file]:7.1f} s  {file}", flush=True)
        return ended

    with ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(next_one, groups))
    ended = [result for result in results if isinstance(result, Ended)]
    return ended, [file for result in results if not isinstance(result, Ended) for file in result]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the slow tests, print what happened, and return the exit status."""
    parser = argparse.ArgumentParser(description="Run the slow tests, file by file, until a deadline.")
    parser.add_argument("--minutes", type=float, default=120.0, help="no file is started after them")
    parser.add_argument("--workers", type=int, default=2, help="files at a time")
    parser.add_argument("folders", nargs="*", help="where the tests are; everywhere by default")
    parser.add_argument("--keep", action="store_true", help="write the seconds of each file that ended")
    parser.add_argument("--left-out", type=Path, help="where to write the files that were left out, one a line")
    options = parser.parse_args(arguments)
    files = slow_files(options.folders)
    seconds, times = 60 * options.minutes, kept_times()
    groups = by_turns(processes(files, times), times, seconds * options.workers, date.today().toordinal())
    ended, left = run_until(groups, seconds, options.workers)
    failed = [one for one in ended if not one.passed]
    for one in failed:
        print(f"\n{' '.join(one.files)}\n{one.output}")
    count = sum(len(one.files) for one in failed)
    print(f"{len(files) - count - len(left)} files passed, {count} in processes that failed, {len(left)} left out")
    for file in left:
        print(f"left out: {file}")
    if options.left_out is not None:
        options.left_out.write_text("".join(f"{file}\n" for file in left), encoding="utf-8")
    if options.keep:
        times = kept_times()
        for one in ended:
            times.update(one.seconds)
        rows = sorted((-times[file], file) for file in files if file in times)
        TIMES.write_text("".join(f"{-seconds:.0f}\t{file}\n" for seconds, file in rows), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
