"""A service in processes of its own, as ``thresholdout serve`` starts it, and clients that submit to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import numpy as np
import pandas as pd

from benchmarks.service_load.tables import SHARE
from thresholdout.client.client import Client
from thresholdout.client.tables import Table
from thresholdout.service.evaluation import EvaluationService

__all__ = ["Load", "Served", "health_times", "prepared", "processor_seconds", "submitted"]

_TICKS = os.sysconf("SC_CLK_TCK")
_STARTS = 60.0


def prepared(
    database: str, parts: tuple[pd.DataFrame, pd.DataFrame], teams: int, *, key_file: Path | None = None
) -> list[str]:
    """Make a service with the holdout "load"; return the keys of so many teams."""
    service = EvaluationService.open(database, key_file=key_file)
    try:
        text = service.first_admin_token()
        admin = service.authenticate(text)
        service.create_holdout(admin, "load", *parts, label="y", public=True)
        return [service.new_token(admin, "team", f"team-{number}")[0] for number in range(teams)]
    finally:
        service.close()


class Served:
    """A service that runs until the block ends.

    Parameters
    ----------
    database : str
        Its file, or the address of a server.
    workers : int
        How many processes.
    port : int
        Where it listens; 0 is any that is free.
    options : sequence of str
        Further options of the command.
    """

    def __init__(self, database: str, *, workers: int = 1, port: int = 0, options: Sequence[str] = ()) -> None:
        words = [sys.executable, "-m", "thresholdout", "serve", "--database", database, "--port", str(port)]
        self._process = subprocess.Popen(
            [*words, "--workers", str(workers), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        try:
            self.url = self._address()
            self._wait()
        except BaseException:
            self.kill()
            raise

    def _address(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("http"):
                return line.split(": ")[0]
        raise RuntimeError("the service did not start")

    def _wait(self) -> None:
        until = time.monotonic() + _STARTS
        with httpx.Client() as client:  # making one takes longer than what it is asked for
            while time.monotonic() < until:
                with suppress(httpx.TransportError):
                    if client.get(f"{self.url}/ready").status_code == 200:
                        return
                time.sleep(0.02)
        raise RuntimeError("the service does not answer")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        self._process.wait(_STARTS)
        self.kill()

    def kill(self) -> None:
        """End all of its processes at once, in the middle of whatever they do."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def processes(self) -> list[int]:
        """Return its processes."""
        found = []
        for folder in Path("/proc").iterdir():
            with suppress(OSError, ValueError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(fields[2]) == self._process.pid:  # the process group
                    found.append(int(folder.name))
        return found

    def memory(self) -> float:
        """Return the megabytes that its processes have in memory; what they share counts once."""
        total = 0
        for process in self.processes():
            with suppress(OSError):
                lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
                total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        return total / 1024

    def seconds(self) -> float:
        """Return the processor time of its processes."""
        return processor_seconds(self.processes())


def processor_seconds(processes: Iterable[int]) -> float:
    """Return the processor time of some processes."""
    total = 0.0
    for process in processes:
        with suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / _TICKS
    return total


@dataclass(frozen=True)
class Load:
    """What clients measured: submissions a second, and the seconds of each."""

    rate: float
    times: np.ndarray


def submitted(url: str, keys: Sequence[str], files: Sequence[Sequence[bytes]], content_type: str) -> Load:
    """Let each key submit its files one after another, all keys at the same time; wait for all answers."""
    times: list[float] = []
    failures: list[BaseException] = []

    def work(key: str, own: Sequence[bytes]) -> None:
        try:
            with Client(url, key) as client:
                for body in own:
                    start = time.perf_counter()
                    found = client.submit("load", Table(body, content_type), expected=SHARE)
                    times.append(time.perf_counter() - start)
                    assert found.state == "answered", found
        except BaseException as error:
            failures.append(error)

    elapsed = together(work, list(zip(keys, files, strict=True)))
    if failures:
        raise failures[0]
    return Load(len(times) / elapsed, np.array(times))


def together(work: object, given: Sequence[tuple[object, ...]]) -> float:
    """Let a thread work on each of the given; return the seconds until all have ended."""
    threads = [threading.Thread(target=work, args=one) for one in given]  # type: ignore[arg-type]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


@contextmanager
def health_times(url: str, pause: float = 0.02) -> Iterator[list[float]]:
    """Ask for /ready again and again from a process of its own while the block runs; gives the seconds of each."""
    program = (
        "import sys, time, httpx\n"
        "client = httpx.Client()\n"
        "while True:\n"
        "    start = time.perf_counter()\n"
        f"    client.get({url + '/ready'!r}, timeout=60)\n"
        "    print(time.perf_counter() - start, flush=True)\n"
        f"    time.sleep({pause})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    times: list[float] = []
    assert process.stdout is not None
    process.stdout.readline()  # it has begun
    try:
        yield times
    finally:
        process.kill()
        times += [float(line) for line in process.communicate()[0].split("\n")[:-1] if line]
