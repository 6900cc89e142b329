"""Run the default tests in several plain processes of pytest: ``python -m tests.parts --workers 2``.

Each process collects and runs the files of its own packages. A worker of pytest-xdist would collect every file, and
send each result to another process. `default_times.tsv` has the seconds of each package, and ``--keep`` writes them.
Other arguments are those of pytest.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.slow_run import NO_TESTS, ONE_THREAD, kept_times

TIMES = Path(__file__).with_name("default_times.tsv")


def package_of(path: Path) -> str:
    """Return the package that a file belongs to, as a module or as its tests, which load much the same libraries."""
    parts = path.parts[1:] if path.parts[0] == "tests" else path.parts
    return "/".join(parts[:-1][:2]) or "."


def parts_of(times: Mapping[str, float], count: int) -> dict[str, int]:
    """Return the part of each package: the longest first, each to the part with the fewest seconds until then."""
    seconds = [0.0] * count
    found = {}
    for package in sorted(times, key=lambda package: (-times[package], package)):
        found[package] = seconds.index(min(seconds))
        seconds[found[package]] += times[package]
    return found


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", help="PART/COUNT: collect only the files of this part, counted from 1")
    parser.addoption("--seconds-to", type=Path, help="where to write the seconds of each package")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--part"):
        config.pluginmanager.register(Part(config), "part")


class Part:
    """Collect the files of one part, and add up the seconds of each package."""

    def __init__(self, config: pytest.Config) -> None:
        part, count = (int(number) for number in config.getoption("--part").split("/"))
        self.root, self.written = config.rootpath, config.getoption("--seconds-to")
        left_out = config.getoption("ignore_glob") or ()
        times = kept_times(TIMES)
        times = {name: times[name] for name in times if not any(fnmatch(f"tests/{name}/", glob) for glob in left_out)}
        self.part, self.parts = part - 1, parts_of(times, count)
        self.seconds: dict[str, float] = defaultdict(float)

    def is_of_another(self, path: Path) -> bool:
        """Return whether a file is of another part; packages without kept seconds are in the first."""
        inside = path.is_relative_to(self.root)
        return inside and self.parts.get(package_of(path.relative_to(self.root)), 0) != self.part

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        return True if collection_path.is_file() and self.is_of_another(collection_path) else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out files that are arguments of their own, which pytest always collects."""
        items[:] = [item for item in items if not self.is_of_another(item.path)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[package_of(Path(report.nodeid.partition("::")[0]))] += report.duration

    def pytest_sessionfinish(self) -> None:
        if self.written:
            self.written.write_text("".join(f"{seconds}\t{name}\n" for name, seconds in self.seconds.items()))


def run_part(arguments: Sequence[str], printing: threading.Lock) -> int:
    """Run pytest, and print its lines as they come: those after the progress in one piece. Return its exit status."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.parts", *arguments]
    summary: list[str] = []
    begun = False
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | ONE_THREAD
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if summary or (begun and line.startswith("==")):
                summary.append(line)
            else:
                with printing:
                    print(line, end="", flush=True)
            begun = begun or line.startswith("==")
    with printing:
        print("".join(summary), end="", flush=True)
    return process.returncode


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests, print the output of all processes, and return the exit status."""
    parser = argparse.ArgumentParser(description="Run the default tests in several processes.", allow_abbrev=False)
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--keep", action="store_true", help="write the seconds of each package")
    options, others = parser.parse_known_args(arguments)
    printing = threading.Lock()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.workers) as pool:
        written = [Path(folder) / f"{part}" for part in range(options.workers)]
        statuses = list(
            pool.map(
                lambda part: run_part(
                    [f"--part={part + 1}/{options.workers}", f"--seconds-to={written[part]}", *others], printing
                ),
                range(options.workers),
            )
        )
        if options.keep:
            rows = sorted((-seconds, name) for file in written for name, seconds in kept_times(file).items())
            TIMES.write_text("".join(f"{-seconds:.1f}\t{name}\n" for seconds, name in rows), encoding="utf-8")
    wrong = [status for status in statuses if status not in (0, NO_TESTS)]
    return max(wrong, default=min(statuses))


if __name__ == "__main__":
    sys.exit(main())
